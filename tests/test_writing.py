"""Written texts measured, and `langchain-judges write` as a person meets it."""

import json
import re

import pytest
from typer.testing import CliRunner

from langchain_judges import create_bsm_judge
from langchain_judges.cli import app
from langchain_judges.errors import InputError
from langchain_judges.testing import reply
from langchain_judges.writing.evaluation import create_story_judge, evaluate_writing
from tests.cases import for_each
from tests.fakes import FakeChatModel, writes
from tests.model_server import refusal

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


OTHERS = [text("good good"), text("bad"), text("good"), text("good")]
OURS = [text("bad"), text("good"), text("good"), text(None)]


def judge(**options):
    return create_bsm_judge(FakeChatModel(), criteria=["Coherence"], **options)


def test_quality_is_won_tied_or_lost_by_any_of_our_judges():
    quality = evaluate_writing(OURS, OTHERS, judge=judge())["quality"]
    counts = {"win": 1, "tie": 1, "loss": 1, "not_judged": 0, "flips": 0}
    assert quality == {"compared": 3, "not_compared": 1, **counts}


def test_failed_judgments_are_no_wins():
    broken = create_bsm_judge(FakeChatModel(replies=lambda p: "no"), criteria=["Coherence"])
    quality = evaluate_writing(OURS, OTHERS, judge=broken)["quality"]
    assert (quality["win"], quality["tie"], quality["not_judged"]) == (0, 1, 2)


@for_each(
    ("rows", "others", "message"),
    [
        ([{"text": "Snow."}], None, "row 1: `concepts` must be a list"),
        ([text("x")], [{"concepts": ["ski"], "text": "x"}], "row 1 of `against` is of other"),
        ([text("Snow.", ["Snow."])], None, "row 1: `groups` must be lists of concepts"),
    ],
)
def test_rows_of_another_form_are_refused(rows, others, message):
    with pytest.raises(InputError, match=message):
        evaluate_writing(rows, others, judge=judge())


def test_the_judge_of_stories_sees_the_stories_and_nothing_else():
    replies = '{"explanation": "reads well", "preference": "1"}'
    model = FakeChatModel(replies=lambda _: replies)
    evaluate_writing(OURS, OTHERS, judge=create_story_judge(model))
    assert model.prompts
    for prompt in model.prompts:
        assert all(word in prompt for word in ("grammar", "coherent", "engages", "tie"))
        assert not any(word in prompt for word in ("oncepts", "helpful", "deep", "request"))


# The command.


def behave(call):
    return reply(writes(call.prompt))


def tasks(n):
    return [
        {"id": f"t{i}", "concepts": ["snow", "goat", "ice cream", f"concept{i}"]} for i in range(n)
    ]


@pytest.fixture
def file_of(tmp_path):
    def lines(rows):
        path = tmp_path / "tasks.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return path

    return lines


def writing(path, server, *more):
    arguments = ["write", path, "--model", "fake", "--base-url", server.url, *more]
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_texts_are_written_into_a_file_counted_and_resumed(serve, file_of, tmp_path):
    server, out = serve(behave), tmp_path / "texts.jsonl"
    result = writing(file_of(tasks(3)), server, "--records", out)
    assert result.exit_code == 0, result.output
    assert "at most 15 calls" in result.stderr
    counted = " ".join(result.stdout.split())
    assert re.search("3 of 3 texts.* 0 of 12 concepts.* 0", counted)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(row["id"] for row in rows) == ["t0", "t1", "t2"]
    assert all(row["text"] and row["missing"] == [] for row in rows)
    again = writing(file_of(tasks(4)), server, "--records", out)
    assert "resumed 3" in " ".join(again.stdout.split())
    assert len(server.calls) == 16


def test_without_a_file_every_text_is_printed_with_what_it_lacks(serve, file_of):
    def lossy(call):
        return reply(
            '{"text": "Snow."}' if "Combine them into one" in call.prompt else writes(call.prompt)
        )

    result = writing(file_of(tasks(1)), serve(lossy), "--preset", "paper")
    assert "t0: 1 of 4 concepts" in result.stdout
    assert "Snow." in result.stdout
    assert "lost in merge: goat, ice cream, concept0" in result.stdout
    counted = " ".join(result.stdout.split())
    assert "3 of 4 concepts" in counted


@for_each(
    ("rows", "more", "message"),
    [
        ([{"input": "x"}], [], "row 1: `concepts` must be a list of at least one word"),
        (tasks(1), ["--method", "drpe"], "there is no method 'drpe'; there are branch"),
        (tasks(1), ["--set", "criteria=[]"], "'branch' has no option 'criteria'"),
    ],
)
def test_wrong_use_is_a_sentence_and_code_2(serve, file_of, rows, more, message):
    server = serve(behave)
    result = writing(file_of(rows), server, *more)
    assert result.exit_code == 2
    assert message in result.stderr
    assert server.calls == []


def test_failures_are_counted_shown_and_code_1_under_strict(serve, file_of):
    def refusing(call):
        return refusal() if "Make one" in call.prompt else behave(call)

    result = writing(file_of(tasks(2)), serve(refusing), "--strict")
    assert result.exit_code == 1
    assert "t0: not written" in result.stdout
    assert "No usable text" in result.stdout
    assert "not written 2 2 refusal" in " ".join(result.stdout.split())
