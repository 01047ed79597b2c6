"""Measuring written texts: coverage, losses by source, quality against others."""

import asyncio
from typing import Any

import pytest

from langchain_judges import create_bsm_judge, create_bsm_writer
from langchain_judges.errors import InputError, OptionError
from langchain_judges.writing.direct import create_direct_writer
from langchain_judges.writing.quality import (
    aevaluate_writing,
    evaluate_writing,
    load_story_judge,
)
from tests.cases import for_each
from tests.fakes import FakeChatModel, writes

CONCEPTS = ["snow", "wall", "goat", "vest"]


def text(words, drafts=None):
    row = {"concepts": CONCEPTS, "text": words}
    if drafts:
        row |= {"groups": [CONCEPTS[:2], CONCEPTS[2:]], "drafts": drafts}
    return row


ROWS = [
    text("Snow on walls, goats, vests.", ["Snow on a wall.", "A goat's vest."]),
    # goat lost in merge
    text("Snow on walls, vests.", ["Snow on a wall.", "A goat's vest."]),
    # wall lost in merge, goat in solve
    text("Snow, vests.", ["Snow on a wall.", "A vest."]),
    text(None, [None, None]),
]


def test_coverage_and_losses_are_counted_over_written_texts():
    # All there: one task of four. Missing: 0/4, 1/4, 2/4 of three texts; failing by solve
    # 1/3, by merge alone 1/3.
    summary = evaluate_writing(ROWS)
    assert summary == {
        "tasks": 4,
        "written": 3,
        "all_present": 0.25,
        "missing": pytest.approx(0.25),
        "lost_in": {"solve": 1, "merge": 2},
        "failing": {"solve": pytest.approx(1 / 3), "merge": pytest.approx(1 / 3)},
        "quality": None,
    }


def test_texts_from_elsewhere_need_no_drafts():
    summary = evaluate_writing([text("Snow."), text("A vest, a wall, snow and goats.")])
    assert summary["missing"] == 0.375
    assert summary["failing"] is None
    assert evaluate_writing([text("Snowy goats.")], strict=True)["missing"] == 1.0


def test_nothing_written_has_no_shares():
    summary = evaluate_writing([text(None)])
    assert (summary["written"], summary["all_present"], summary["missing"]) == (0, 0.0, None)


OTHERS = [text("good good"), text("bad"), text("good"), text("good")]
OURS = [text("bad"), text("good"), text("good"), text(None)]


def judge(**options):
    return create_bsm_judge(FakeChatModel(), criteria=["Coherence"], **options)


EXPECTED = {
    "compared": 3,
    "win": 1,
    "tie": 1,
    "loss": 1,
    "not_judged": 0,
    "not_compared": 1,
    "flips": 0,
}


def test_quality_is_won_tied_or_lost_by_any_of_our_judges():
    assert evaluate_writing(OURS, OTHERS, judge=judge())["quality"] == EXPECTED
    later = asyncio.run(aevaluate_writing(OURS, OTHERS, judge=judge()))
    assert later["quality"] == EXPECTED


def test_a_judge_that_looks_at_places_gives_no_win():
    first = FakeChatModel(replies=lambda p: '{"score_1": 5, "score_2": 1, "explanation": ""}')
    biased = create_bsm_judge(first, criteria=["Coherence"])
    quality = evaluate_writing(OURS, OTHERS, judge=biased)["quality"]
    # The two identical texts are a tie by themselves.
    assert quality == {**EXPECTED, "win": 0, "tie": 3, "loss": 0, "flips": 2}


def test_verdicts_are_kept(tmp_path):
    out = tmp_path / "verdicts.jsonl"
    model = FakeChatModel()
    for _ in range(2):
        judge_with_file = create_bsm_judge(model, criteria=["Coherence"])
        assert (
            evaluate_writing(OURS, OTHERS, judge=judge_with_file, out=out)["quality"]
            == EXPECTED
        )
    # Two orders of two pairs; the third pair is identical.
    assert len(model.prompts) == 4


def test_failed_judgments_are_no_wins():
    broken = create_bsm_judge(FakeChatModel(replies=lambda p: "no"), criteria=["Coherence"])
    quality = evaluate_writing(OURS, OTHERS, judge=broken)["quality"]
    assert (quality["win"], quality["tie"], quality["not_judged"]) == (0, 1, 2)


@for_each(
    ("rows", "others", "message"),
    [
        ([{"text": "Snow."}], None, "row 0: `concepts` must be a list"),
        ([text("Snow.")], [], "must have a row for each of 1, got 0"),
        (
            [text("Snow.")],
            [{"concepts": ["ski"], "text": "x"}],
            "row 0 of `against` is of other",
        ),
        (["Snow."], None, "row 0: a writing task must be an object, got str"),
        ([{"concepts": ["ski"], "text": 5}], None, "row 0: `text` must be a text or null"),
        ([text("Snow.", ["Snow."])], None, "row 0: `groups` must be lists of concepts"),
        ([text("Snow.", "ab")], None, "row 0: `groups` must be lists of concepts"),
        ([text("Snow.")], ["x"], "row 0 of `against`: a writing task must be an object"),
        ([text("Snow.")], [{"concepts": 5, "text": "x"}], "row 0 of `against`: `concepts`"),
    ],
)
def test_rows_of_another_form_are_refused(rows, others, message):
    with pytest.raises(InputError, match=message):
        evaluate_writing(rows, others, judge=judge())


def test_a_blank_text_is_no_text():
    summary = evaluate_writing([text(" \n")], [text("good")], judge=judge())
    assert (summary["written"], summary["quality"]["not_compared"]) == (0, 1)


def test_comparing_needs_a_judge():
    with pytest.raises(OptionError, match="load_story_judge"):
        evaluate_writing(OURS, OTHERS)


def test_what_writers_return_can_be_measured():
    writers = [create_bsm_writer(FakeChatModel(replies=writes))]
    writers.append(create_direct_writer(FakeChatModel(replies=writes)))
    for writer in writers:
        summary = evaluate_writing([writer.invoke({"concepts": CONCEPTS})])
        assert (summary["all_present"], summary["failing"]) == (
            1.0,
            {"solve": 0.0, "merge": 0.0},
        )


def test_the_judge_of_stories_sees_the_stories_and_nothing_else():
    replies = '{"explanation": "reads well", "preference": "1"}'
    model = FakeChatModel(replies=lambda _: replies)
    evaluate_writing(OURS, OTHERS, judge=load_story_judge(model))
    assert model.prompts
    for prompt in model.prompts:
        assert all(word in prompt for word in ("grammar", "coherent", "engages", "tie"))
        assert not any(word in prompt for word in ("oncepts", "helpful", "deep", "request"))


def test_instructions_are_added_to_the_judge_of_stories():
    model = FakeChatModel(replies=lambda _: '{"explanation": "", "preference": "tie"}')
    judge = load_story_judge(model, instructions="Answer in Dutch.")
    judge.invoke({"input": "x", "output_a": "y", "output_b": "z"})
    assert "Answer in Dutch." in model.prompts[0]
    assert "grammar" in model.prompts[0]


def test_a_task_without_a_text_counts_against_all_present():
    # One of two tasks has a text, and that uses everything.
    rows: list[dict[str, Any]] = [
        {"concepts": ["snow"], "text": "Snow."},
        {"concepts": ["snow"], "text": None},
    ]
    summary = evaluate_writing(rows)
    assert (summary["written"], summary["all_present"], summary["missing"]) == (1, 0.5, 0.0)
