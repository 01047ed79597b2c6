"""Planning items and a judge that falls for keywords, until a remembered case warns it."""

from __future__ import annotations

import json
import re

from tests.fakes import FakeChatModel

WARNING = "A judge said 1."


def planning(groups, *, first=0, family="maps"):
    """Two items for each group: a right path, and its rooms in a wrong order."""
    items = []
    for number in range(first, first + groups):
        path = [f"{number + 1}", f"{number + 20}", f"{number + 50}"]
        for label, rooms in ((1, path), (0, path[::-1])):
            items.append(
                {
                    "id": f"{number}{'wr'[label]}",
                    "input": f"Which path leads through house {number}?",
                    "output": f"Answer: {', '.join(rooms)}",
                    "expected": ", ".join(path),
                    "family": family,
                    "group": f"house {number}",
                    "label": label,
                }
            )
    return items


def _words(tag, text):
    fenced = re.search(rf"<{tag}-(\w+)>\n(.*?)\n</{tag}-\1>", text, re.DOTALL)
    return re.findall(r"\d+", fenced[2]) if fenced else []


def fooled(prompt):
    """Label by the words of the expected answer; by their order too, once warned."""
    item_text = prompt.split("\n---\n")[-1]
    response, expected = _words("response", item_text), _words("expected-answer", item_text)
    right = response == expected if WARNING in prompt else set(response) == set(expected)
    return json.dumps({"label": str(int(right)), "explanation": "the words are there"})


def fooled_model():
    return FakeChatModel(replies=fooled)


def as_labelled(proposal):
    """Audit like a person who knows the label."""
    truth = proposal["item"]["label"]
    return "accept" if truth == proposal["proposed"] else "check_wrong"
