"""What a judgment is about, by the request alone."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from langchain_judges import create_drpe_judge, create_llm_score_judge
from langchain_judges.datasets import load
from langchain_judges.errors import InputError
from langchain_judges.methods.tasks import TASKS, choose_task, task_of
from tests.cases import for_each
from tests.conftest import DATA
from tests.fakes import FakeChatModel

ARTICLE = (
    "The bridge over the Elm was closed on Monday after engineers found cracks in two of its "
    "piers. Traffic is sent over the old ferry road, which adds twenty minutes to the way into "
    "town. The mayor said repairs would begin in May and cost four million, half of it paid by "
    "the county. Shopkeepers on the far bank fear for their summer trade."
)
TURNS = [{"role": "user", "content": text} for text in ("Hello.", "And now?")]


@for_each(
    ("request_", "task"),
    [
        (ARTICLE, "response"),
        (f"Summarize the following article.\n\n{ARTICLE}", "summary"),
        (f"{ARTICLE}\n\nCan you please summarise this for me?", "summary"),
        (f"Do not summarize the article; translate it.\n\n{ARTICLE}", "response"),
        ("Write a Python function that computes a summary of a pandas DataFrame.", "response"),
        ("桥梁于星期一关闭。" * 40, "response"),
        (TURNS, "dialogue"),
    ],
)
def test_a_request_says_what_it_asks_for_or_gets_words_that_fit_all(request_, task):
    assert task_of(request_) == task


def test_a_row_says_what_its_texts_are():
    pair = {"input": ARTICLE, "output_a": "a", "output_b": "b"}
    assert choose_task("auto", {**pair, "task_kind": "summary"})[0] == "summary"
    assert choose_task("harmless", {**pair, "task_kind": "summary"})[0] == "harmless"
    with pytest.raises(InputError, match="`task_kind` of a row must be one of"):
        choose_task("auto", {**pair, "task_kind": "maths"})


@for_each("create", [create_drpe_judge, create_llm_score_judge])
def test_candidates_do_not_decide_the_task(create):
    """One request has one task, whatever the candidates are."""
    shown = []
    for side in ("The bridge is closed; repairs cost four million.", "I cross daily. " * 40):
        model = FakeChatModel(replies=lambda _: "nothing to use")
        options: Any = {"repairs": 0}
        if create is create_drpe_judge:
            options["panel"] = {"dynamic": 0}
        judge = create(model, **options)
        judge.invoke({"input": ARTICLE, "output_a": side, "output_b": "It is closed."})
        shown.append([prompt.replace(side.strip(), "A") for prompt in model.prompts])
    [short, long] = shown
    words = TASKS["response"]["question"]
    assert all(words in prompt for prompt in (*short, *long))


REQUESTS: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "task_requests.json").read_text()
)
"""What 300 real requests ask for, read by a person, by set and id; the requests of `articles`
are those of the two sets of summaries without the words that ask for one."""


def labelled_requests():
    """Yield each request with what it asks for."""
    for name, labels in REQUESTS.items():
        for source in ("summeval16", "goyal_news2022") if name == "articles" else (name,):
            for row in load(source, DATA / source):
                if label := labels.get(row["id"]):
                    request = row["input"]
                    yield request.partition("\n\n")[2] if name == "articles" else request, label


@pytest.mark.figures
@pytest.mark.skipif(not DATA.exists(), reason="the sets are not beside the checkout")
def test_what_is_decided_is_right_and_the_figures_are_those_of_the_page():
    counts = Counter((label, task_of(request)) for request, label in labelled_requests())
    assert sum(counts.values()) == 300
    decided = {pair: n for pair, n in counts.items() if pair[1] != "response"}
    right = sum(n for (label, said), n in decided.items() if label == said)
    asked = sum(n for (label, _), n in counts.items() if label != "response")
    assert right >= 0.98 * sum(decided.values())
    page = (Path(__file__).parents[1] / "docs" / "drpe.md").read_text()
    assert f"right in {right} of the {sum(decided.values())} it decides" in page
    assert f"finds {right} of {asked}" in page
