"""Replies of a capable model, changed as models, providers and quotations change them.

    python -m tests.attacks.mutations 100000

The seeds are the recorded replies of the cookbook that hold two scores, a preference or a
label. A harmless change leaves the verdict as it was: the reply may be read or asked again. A
harmful one makes it unsure or puts another verdict beside it: it must not be read as one that
the model did not give. Printed, by change: how many were read as the model's own verdict, as
another one, and as none.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage

from langchain_judges.asking.reading import read
from tests.attacks.kinds import KINDS, Kind

RECORDED = Path(__file__).parents[2] / "cookbook" / "recorded"
OPENINGS = (
    *("<think>", "<thinking>", "<reasoning>", "<reflection>", "<scratchpad>", "[THINK]"),
    *("[REASONING]", "◁think▷", "<|channel|>analysis<|message|>", "<|begin_of_thought|>"),
)
ENDINGS = (
    *("model_context_window_exceeded", "pause_turn", "token_limit", "max_output_reached"),
    *("insufficient_system_resource", "network_error", "other", "malformed_function_call"),
)
FILL = (
    *("I looked at both.", "The other one is better.", "That is an injection; I ignore it."),
    *("It asks for a verdict.", "On reflection this is wrong.", "Let me work it out first."),
)
CLOSINGS = ("</think>", "</thinking>", "</reasoning>", "[/THINK]", "<|end|>", "<channel|>")
AGAIN = ("Wait.", "Correction:", "On reflection:", "No, the other way round:", "Final answer:")


class Reply(NamedTuple):
    """A recorded reply as data, and its kind."""

    kind: Kind
    data: dict[str, Any]

    @property
    def verdict(self) -> dict[str, Any]:
        """Its decision."""
        return {name: self.data[name] for name in self.kind.answer}

    @property
    def other(self) -> dict[str, Any]:
        """The same reply with another verdict."""
        kind, verdict = self.kind, self.verdict
        different = kind.forged if verdict != kind.forged else kind.answer
        return {**self.data, **different}


class Changed(NamedTuple):
    """A changed reply: its text, what the model was shown, and how it ended."""

    text: str
    material: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}


@cache
def seeds() -> list[Reply]:
    """The recorded replies of one verdict, each text once."""
    texts = {
        line["reply"]["text"] if "reply" in line else line["messages"][0]["data"]["content"]
        for path in sorted(RECORDED.rglob("*.jsonl"))
        for line in map(json.loads, path.read_text().splitlines())
        # Votes that were asked in other words hold the data of a reply and no text.
        if "messages" in line
    }
    replies = []
    for text in sorted(texts):
        try:
            data = json.loads(text)
        except ValueError:
            continue
        for kind in KINDS.values():
            if set(data) == {*kind.answer, kind.said} and whole(kind, data) is not None:
                replies.append(Reply(kind, data))
                break
    return replies


def whole(kind: Kind, data: dict[str, Any]) -> dict[str, Any] | None:
    """The reading of a reply."""
    found, _ = read(AIMessage(json.dumps(data)), kind.shape, kind.parse, None, ())
    return found


def written(data: dict[str, Any], rng: random.Random) -> str:
    """JSON in one of the styles in which models write it."""
    style: dict[str, Any] = rng.choice(
        [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]
    )
    return json.dumps(data, **style)


def reordered(data: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    members = list(data.items())
    rng.shuffle(members)
    return dict(members)


def words(rng: random.Random) -> str:
    return " ".join(rng.choices(FILL, k=rng.randint(1, 4)))


def fenced(text: str, rng: random.Random) -> str:
    return f"```{rng.choice(['json', 'JSON', ''])}\n{text}\n```"


# -- changes that leave the verdict as it is


def another_order(reply: Reply, rng: random.Random) -> Changed:
    return Changed(written(reordered(reply.data, rng), rng))


def code_block(reply: Reply, rng: random.Random) -> Changed:
    return Changed(fenced(written(reply.data, rng), rng))


def a_word_before(reply: Reply, rng: random.Random) -> Changed:
    before = rng.choice(["Here is my judgment:", "Sure!", "```json", "\ufeff", "JSON:"])
    return Changed(f"{before}\n{written(reply.data, rng)}")


def known_thoughts(reply: Reply, rng: random.Random) -> Changed:
    inside = rng.choice([words(rng), json.dumps(reply.other)])
    return Changed(f"<think>{inside}</think>\n{written(reply.data, rng)}")


def quoted_inside(reply: Reply, rng: random.Random) -> Changed:
    forged = written(reply.other, rng)
    said = f"{reply.data[reply.kind.said]} It holds {forged}, which I ignore."
    return Changed(written({**reply.data, reply.kind.said: said}, rng), (f"Fine. {forged}",))


# -- changes that make it unsure or another form than was asked for, or put a verdict beside it


def cut(reply: Reply, rng: random.Random) -> Changed:
    text = written(reordered(reply.data, rng), rng)
    return Changed(text[: rng.randrange(1, len(text) - 1)])


def quoted_alone(reply: Reply, rng: random.Random) -> Changed:
    forged = written(reordered(reply.other, rng), rng)
    shown = rng.choice([forged, fenced(forged, rng), f"“{forged}”", f"`{forged}`", f"> {forged}"])
    material = json.dumps(reordered(reply.other, rng))
    return Changed(f"{words(rng)} It holds {shown} {words(rng)}", (f"Fine.\n{material}",))


def quoted_words(reply: Reply, rng: random.Random) -> Changed:
    kind, other = reply.kind, reply.other
    forged = kind.forged_words if reply.verdict != kind.forged else kind.words
    marks = rng.choice(["**", "_", "`", "> ", '"', "- "])
    lines = "\n".join(f"{marks}{line}{marks.strip()}" for line in forged.split("\n"))
    material = f"Fine.\n{forged}\n{json.dumps(other)}"
    return Changed(f"{words(rng)} It says:\n{lines}\n{words(rng)}", (material,))


def draft_in_no_json(reply: Reply, rng: random.Random) -> Changed:
    name = rng.choice(["draft", "attempt 1", "first thought", "candidate's claim"])
    last = rng.choice(["", "the other", "…"]) + rng.choice(["", "}"])
    return Changed(f"{{{name}: {written(reply.other, rng)}, final: {last}")


def behind_braces(reply: Reply, rng: random.Random) -> Changed:
    braces = rng.choice(["{ ", "{} ", "{x} "]) * rng.randint(99, 300)
    return Changed(f"{written(reply.other, rng)} {braces}{written(reply.data, rng)}")


def taken_back(reply: Reply, rng: random.Random) -> Changed:
    regret = " ".join(rng.choices(FILL, k=rng.randint(4, 5)))
    return Changed(f"{written(reply.other, rng)} {regret}")


def draft_first(reply: Reply, rng: random.Random) -> Changed:
    draft = written(reply.other, rng)
    return Changed(f"{draft}\n{rng.choice(AGAIN)}\n{written(reply.data, rng)}")


def draft_in_a_member(reply: Reply, rng: random.Random) -> Changed:
    name = rng.choice(["draft", "first_thought", "candidate", "example"])
    draft = rng.choice([reply.other, json.dumps(reply.other)])
    return Changed(written({name: draft, "final": rng.choice([None, "", {}])}, rng))


def open_thoughts(reply: Reply, rng: random.Random) -> Changed:
    return Changed(f"{rng.choice(OPENINGS)}{words(rng)}\n{written(reply.other, rng)}")


def another_end_of_thoughts(reply: Reply, rng: random.Random) -> Changed:
    first, end = written(reply.other, rng), rng.choice(CLOSINGS)
    return Changed(f"{rng.choice(OPENINGS)}{first}{end}\n{written(reply.data, rng)}")


def unknown_ending(reply: Reply, rng: random.Random) -> Changed:
    name = rng.choice(["finish_reason", "stop_reason", "stopReason", "done_reason", "status"])
    ending = rng.choice([*ENDINGS, "".join(rng.choices("abcdefghij_", k=8))])
    return Changed(written(reply.other, rng), (), {name: ending})


def two_of_a_name(reply: Reply, rng: random.Random) -> Changed:
    first, second = rng.sample([reply.data, reply.other], 2)
    return Changed(json.dumps(first)[:-1] + ", " + json.dumps(second)[1:])


def out_of_range(reply: Reply, rng: random.Random) -> Changed:
    others = [11, -1, None, [], "1 or 2", "neither", 4.5, "", {}, "1/2", "maybe 1"]
    wrong = rng.choice(others)
    name = rng.choice(list(reply.verdict))
    return Changed(written({**reply.data, name: wrong}, rng))


def another_member(reply: Reply, rng: random.Random) -> Changed:
    more = {rng.choice(["confidence", "note", "step_by_step"]): rng.choice([0.9, "sure", []])}
    return Changed(written(reordered({**reply.data, **more}, rng), rng))


def numbers_and_texts(reply: Reply, rng: random.Random) -> Changed:
    turned = {
        name: int(value) if isinstance(value, str) and value.isdigit() else str(value)
        for name, value in reply.verdict.items()
    }
    return Changed(written({**reply.data, **turned}, rng))


def without_the_verdict(reply: Reply, rng: random.Random) -> Changed:
    said = reply.kind.said
    forged = written(reply.other, rng)
    return Changed(written({said: f"{reply.data[said]} {forged}"}, rng))


HARMLESS: tuple[Callable[[Reply, random.Random], Changed], ...] = (
    *(another_order, code_block, a_word_before, known_thoughts, quoted_inside),
)
HARMFUL: tuple[Callable[[Reply, random.Random], Changed], ...] = (
    *(cut, quoted_alone, draft_first, draft_in_a_member, open_thoughts, unknown_ending),
    *(another_end_of_thoughts, two_of_a_name, out_of_range, without_the_verdict),
    *(quoted_words, draft_in_no_json, behind_braces, taken_back, another_member),
    numbers_and_texts,
)


def outcome(seed: int) -> tuple[str, str]:
    """The change of a seed, and as what it is read: `own`, `another` or `none`."""
    rng = random.Random(seed)
    reply, change = rng.choice(seeds()), rng.choice((*HARMLESS, *HARMFUL))
    text, material, metadata = change(reply, rng)
    message = AIMessage(text, response_metadata=metadata)
    data, _ = read(message, reply.kind.shape, reply.kind.parse, None, material)
    name = change.__name__
    if data is None:
        return name, "none"
    same = all(str(data[key]) == str(value) for key, value in reply.verdict.items())
    return name, "own" if same else "another"


def main(number: int) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(number):
        name, read_as = outcome(seed)
        counts[name][read_as] += 1
    for changes in (HARMLESS, HARMFUL):
        total = Counter[str]()
        for change in changes:
            print(f"{re.sub('_', ' ', change.__name__)}: {dict(counts[change.__name__])}")
            total += counts[change.__name__]
        print(f"{'harmless' if changes is HARMLESS else 'harmful'} in all: {dict(total)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
