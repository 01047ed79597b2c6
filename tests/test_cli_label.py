"""`langchain-judges label`: people label rows, blind to sides, doubtful ones first."""

from __future__ import annotations

import io
import json
import re
from contextlib import closing
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from typer.testing import CliRunner

from langchain_judges.cli import app
from langchain_judges.cli.label import FirstToLabel
from langchain_judges.cli.terminal import Terminal
from langchain_judges.errors import InputError, OptionError, OutputError
from langchain_judges.report.joined_rows import join
from langchain_judges.report.labelling import (
    AnswerFile,
    LabelFile,
    Questionnaire,
    chosen,
    doubt_of,
    doubts,
    sides,
)
from langchain_judges.runs.summary import Summary
from langchain_judges.testing import reply
from langchain_judges.verdict import UNANSWERED
from langchain_judges.viewer.desks import LabelDesk
from langchain_judges.viewer.items import Collection
from tests.cases import for_each
from tests.judged_rows import data_of, run_of
from tests.test_direct import respond


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def label(*arguments, keys):
    result = CliRunner().invoke(app, ["label", *map(str, arguments)], input=keys)
    assert result.exit_code == 0, result.output
    return result.stderr


def labels(path):
    rows = map(json.loads, path.read_text().splitlines())
    return {row["id"]: row.get("label") for row in rows}


def test_answers_name_the_text_that_stood_there(tmp_path):
    data, out = written(tmp_path / "d.jsonl", data_of([None] * 6)), tmp_path / "l.jsonl"
    said = label(data, "-o", out, keys="111tt2")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    shown = [sides(row) for row in rows]
    expected = [*(each[0] for each in shown[:3]), "tie", "tie", shown[5][1]]
    assert [row["label"] for row in rows] == expected
    assert set(shown) == {"AB", "BA"}
    assert "6 labelled now" in said


def test_labelling_resumes_skips_and_takes_back(tmp_path):
    data, out = written(tmp_path / "d.jsonl", data_of([None] * 4)), tmp_path / "l.jsonl"
    label(data, "-o", out, "--max-rows", "2", keys="tu1q")
    assert len(labels(out)) == 1
    arguments = label(data, "-o", out, keys="stt")
    assert len(labels(out)) == 3
    assert "3 in" in arguments


def test_a_key_that_means_nothing_is_told_with_the_same_question(tmp_path):
    data, out = written(tmp_path / "d.jsonl", data_of([None] * 2)), tmp_path / "l.jsonl"
    said = label(data, "-o", out, keys="anot done\nsu1t")
    assert said.count("'a' is not one of the keys") == said.count("is not one of") == 1
    assert len(labels(out)) == 2


def test_a_row_that_is_skipped_comes_last_and_the_next_one_is_shown(tmp_path):
    rows = [{"id": f"t{i}", "input": "q", "output": f"text {i}\nsecond"} for i in range(3)]
    data, out = written(tmp_path / "d.jsonl", rows), tmp_path / "l.jsonl"
    said = label(data, "-o", out, "--labels", "01", keys="s0")
    shown = re.findall(r"text (\d)", said)
    assert [row["id"] for row in map(json.loads, out.read_text().splitlines())] == [f"t{shown[1]}"]
    assert len({*shown[:3]}) == 3
    assert "XX" not in said
    # A key that is its label stands alone, and so does a question about the whole row.
    assert "\n[0] · [1] · [x] cannot say" in said


@for_each(
    "texts, titles",
    [
        ({"output": "x"}, ["task", "text"]),
        ({"output": "x", "expected": "y", "source": "z"}, ["task", "expected", "source", "text"]),
        ({"output_a": "x", "output_b": "y", "reference": "z"}, ["task", "reference", "1", "2"]),
    ],
)
def test_a_screen_has_each_text_by_its_title_and_the_note_of_who_wrote_it(tmp_path, texts, titles):
    data, out = written(tmp_path / "d.jsonl", [{"input": "q", **texts}]), tmp_path / "l.jsonl"
    out.unlink(missing_ok=True)
    screens = label(data, "-o", out, "--name", "Ana", keys="nOdd.\nq").split("1 of 1")[:2]
    shown = [re.findall("╭─ (.*?) ─", screen) for screen in screens]
    assert shown == [titles, [*titles, "note"]]
    assert "│ Odd. " in screens[1]
    assert all(f"│ {text} " in screens[0] for text in ("q", *texts.values()))


@for_each("width, beside", [(99, False), (100, True)])
def test_two_texts_stand_side_by_side_where_there_is_room(tmp_path, width, beside):
    row = {"input": "q", "output_a": "x", "output_b": "long " * 99}
    screen, keys = io.StringIO(), iter("q")
    with closing(LabelFile(tmp_path / "l.jsonl")) as file:
        desk = LabelDesk(Collection([row]), file, Questionnaire())
        console = Console(file=screen, width=width)
        Terminal(console, lambda: next(keys), desk).go_through([(0, "")])
    [line] = [line for line in screen.getvalue().splitlines() if "╭─ 1 ─" in line]
    # Each has half of the width, whichever is longer.
    assert [found.start() for found in re.finditer("╭", line)] == [0, 50][: 1 + beside]


def test_rows_without_a_text_to_label_are_refused_with_the_fields_that_there_are(tmp_path):
    data = written(tmp_path / "d.jsonl", [{"id": "a", "input": "q", "output_a": "x"}])
    result = CliRunner().invoke(app, ["label", str(data), "-o", str(tmp_path / "l.jsonl")])
    said = " ".join(result.output.split())
    assert (result.exit_code, "to label; the fields are 'id', 'input'," in said) == (2, True)
    assert "--column output=COLUMN" in said


def test_a_second_writer_is_refused_until_the_first_has_closed_the_file(tmp_path):
    out = tmp_path / "l.jsonl"
    file = LabelFile(out)
    file.say({"id": "a", "output": "x"}, "Ana", "", 1)
    assert file.difference({"id": "nobody's", "output": "y"}) == ""
    with pytest.raises(OutputError, match="Somebody else"):
        LabelFile(out)
    file.close()
    assert LabelFile(out).answered({"id": "a", "output": "x"}, "Ana") == {"": 1}


def test_what_a_kill_left_of_the_last_line_is_dropped_and_no_other_line(tmp_path):
    out = tmp_path / "l.jsonl"
    out.write_text('{"id": "a", "label": 1}\n{"id": "b", "la')
    file = AnswerFile(out, itemgetter("id"))
    file.put({"id": "c", "label": 0})
    file.close()
    assert labels(out) == {"a": 1, "c": 0}
    out.write_text('{"id": "a"\n{"id": "b"}\n')
    with pytest.raises(InputError, match=r"l\.jsonl, line 1: not an answer"):
        AnswerFile(out, itemgetter("id"))


def test_each_person_is_kept_apart_and_the_row_says_what_most_say(tmp_path):
    file, row = LabelFile(tmp_path / "l.jsonl"), {"id": "a", "output": "x", "label": 0}
    for name, label in (("Ana", 1), ("Bo", 1), ("Cy", None)):
        file.say(row, name, "", label)
    file.say(row, "Ana", "tone", "rude")
    line = json.loads((tmp_path / "l.jsonl").read_text())
    # The label that the row came with counts as one more person's.
    assert (line["label"], line["human_votes"]) == (1, [0, 1, 1])
    assert line["labels"] == {"tone": "rude"}
    assert [each["by"] for each in line["answers"]] == ["Bo", "Cy", "Ana"]
    file.relabel(row, "Bo", {})
    # One against one: nobody knows.
    assert "label" not in json.loads((tmp_path / "l.jsonl").read_text())
    file.close()


def test_single_texts_take_digits(tmp_path):
    rows = [{"id": f"t{i}", "input": "q", "output": "text"} for i in range(3)]
    data, out = written(tmp_path / "d.jsonl", rows), tmp_path / "l.jsonl"
    label(data, "-o", out, "--labels", "12345", keys="95x1\n3")
    assert list(labels(out).values()) == [5, None, 1]
    assert json.loads(out.read_text().splitlines()[1])["answers"][0]["label"] is None


def test_a_label_of_0_is_kept(tmp_path):
    data, out = (
        written(tmp_path / "d.jsonl", [{"input": "q", "output": "text"}]),
        tmp_path / "l.jsonl",
    )
    label(data, "-o", out, keys="0")
    assert json.loads(out.read_text())["answers"] == [{"by": "", "label": 0}]


def test_words_are_chosen_by_their_place_and_criteria_are_asked_in_turn(tmp_path):
    rows = [{"id": f"t{i}", "input": "q", "output": "text"} for i in range(2)]
    data, out = written(tmp_path / "d.jsonl", rows), tmp_path / "l.jsonl"
    words = ["--labels", "rude,polite", "--labels", "tone=", "--labels", "facts=01"]
    said = label(data, "-o", out, *words, "--name", "Ana", keys="21u01nOdd.\n0")
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["labels"] for row in found] == [
        {"tone": "polite", "facts": 0},
        {"tone": "rude", "facts": 0},
    ]
    assert "label" not in found[0]
    assert found[1]["answers"][0] == {"by": "Ana", "labels": found[1]["labels"], "note": "Odd."}
    assert "2 labelled now, 2 in" in said
    assert "tone polite: 1, tone rude: 1" in said
    assert "\ntone: [1] rude · [2] polite" in said


def test_labels_without_a_key_are_typed(tmp_path):
    rows = [{"id": f"t{i}", "input": "q", "output": "text"} for i in range(2)]
    data, out = written(tmp_path / "d.jsonl", rows), tmp_path / "l.jsonl"
    words = ",".join(f"k{n}" for n in range(24))
    said = label(data, "-o", out, "--labels", words, keys="c=k23\n")
    assert sorted(labels(out).values()) == ["k11", "k23"]
    assert "k21, k22, k23" in " ".join(said.split())


def test_rows_on_which_people_differ_are_named(tmp_path):
    rows = [{"id": f"t{i}", "input": "q", "output": "text", "label": 0} for i in range(2)]
    file = LabelFile(tmp_path / "l.jsonl")
    for row, given in zip(rows, (0, 1), strict=True):
        file.say(row, "Ana", "", given)
    new: dict[str, object] = {"id": "new", "output": "x"}
    told = [file.difference(row) for row in (*rows, new)]
    assert ["0, 1" in each for each in told] == [False, True, False]
    file.close()


@for_each("criteria", [(), ("tone=rude,polite",), ("tone",), ("tone=rude,polite", "help=")])
@for_each("is_named", [True, False])
def test_labels_are_told_as_they_are_asked_and_usual_ones_as_such(criteria, is_named):
    asked = Questionnaire.read("123", criteria, is_named=is_named)
    row = {"input": "q", "output": "x"}
    told = asked.sentence([row])
    for question in asked.of(row):
        labels = ", ".join(map(str, question.choices.values()))
        assert (f"by {question.name} {labels}" if question.name else f": {labels}") in told
    has_usual = any([*q.choices.values()] == [1, 2, 3] for q in asked.of(row))
    assert ("1, 2, 3" in told) == has_usual
    assert told.endswith("; --labels names others.") == (has_usual and not is_named)


@for_each("text", ["1", "", "rude,rude", "rude polite", "a,"])
def test_labels_that_cannot_be_told_apart_are_refused(text):
    with pytest.raises(OptionError, match=r"`labels`"):
        Questionnaire.read(text, (), is_named=True)


def test_verdicts_are_doubtful_that_flip_fail_or_contradict():
    data = data_of([None] * 4)
    one = run_of([("A", "A"), ("A", "B"), ("B", "B"), (None, None)])
    one[3]["verdict"]["preference"] = None
    two = run_of(["A", "tie", "A"])
    names = ["sure", "flipped", "judges disagree", "not judged"]
    judged = ({r.place: r.verdict for r in join(run, data).rows} for run in (one, two))
    assert doubts(data, judged) == names


@for_each("confidence, doubt", [(0.74, "unsure"), (0.75, "sure"), (None, "sure")])
def test_a_verdict_of_little_confidence_is_doubtful(confidence, doubt):
    assert doubt_of({"label": 1, "confidence": confidence}) == doubt


def test_half_of_the_rows_to_label_are_doubtful_and_the_rest_are_by_chance():
    kinds = ["sure"] * 60 + ["flipped"] * 30 + [""] * 10
    places = chosen(kinds, 20)
    assert [kinds[place] for place in places] == ["flipped"] * 10 + ["sure"] * 10
    assert len(set(places)) == 20
    assert chosen(kinds, 20) == places
    # Where few are sure the doubtful ones take their place; rows with a label never do.
    assert len(chosen(["flipped"] * 9 + ["sure"] + [""] * 5, 8)) == 8
    assert sorted(chosen(["flipped", "", "sure"], 50)) == [0, 2]


def first_where_both_are_bad(call):
    prompt = call.prompt + json.dumps(call.body.get("response_format"))
    return reply(respond(prompt, lambda _: "1") if "bad too" in prompt else respond(prompt))


def test_what_is_not_settled_names_a_file_of_rows_that_label_opens(serve, tmp_path):
    rows = [{"id": f"r{n}", "question": f"Why {n}?", "v1": "good", "v2": "bad"} for n in range(8)]
    # v2 is the better of rows 4 to 7, but of rows 6 and 7 whichever stands first.
    for row in rows[4:]:
        row["v1"], row["v2"] = "bad", "good" if row["id"] < "r6" else "bad too"
    table, out = tmp_path / "rows.csv", tmp_path / "scores.csv"
    table.write_text(
        "".join(",".join(each) + "\n" for each in [list(rows[0]), *map(dict.values, rows)])
    )
    model = ["--model", "m", "--base-url", serve(first_where_both_are_bad).url]
    words = ["compare", table, "--systems", "v1,v2", *model, "-o", out]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    assert "not settled" in done.stdout
    found = tmp_path / "scores.label.jsonl"
    assert f"Worth labelling: 8 rows in {found}, doubtful ones first" in done.stderr
    first = [json.loads(line) for line in found.read_text().splitlines()]
    assert {row["id"] for row in first[:2]} == {"r6", "r7"}
    assert [row["doubt"] for row in first] == ["flipped"] * 2 + ["sure"] * 6
    assert (first[0]["output_a"], first[0]["output_b"]) == ("bad", "bad too")
    labelled = tmp_path / "labels.jsonl"
    label(found, "-o", labelled, "--max-rows", "3", keys="111")
    assert list(labels(labelled)) == [row["id"] for row in first[:3]]


def test_labels_that_failed_are_the_first_to_label_and_a_spent_budget_is_none(serve, tmp_path):
    def behave(call):
        return reply("no idea" if "Why 1?" in call.prompt else '{"explanation": "", "label": 1}')

    rows = [{"id": f"t{n}", "input": f"Why {n}?", "output": "So."} for n in range(4)]
    data, out = written(tmp_path / "my rows.jsonl", rows), tmp_path / "my scores.csv"
    model = ["--model", "m", "--base-url", serve(behave).url, "--concurrency", "1"]
    words = ["judge", data, *model, "--method", "rubric", "--set", "rubric=Polite?", "-o", out]
    done = CliRunner().invoke(app, [*map(str, words), "--max-calls", "4"])
    assert done.exit_code == 3, done.output
    assert f"langchain-judges label '{tmp_path}/my scores.label.jsonl' -o" in done.stderr
    found = (tmp_path / "my scores.label.jsonl").read_text().splitlines()
    kinds = {row["id"]: row["doubt"] for row in map(json.loads, found)}
    assert (kinds["t1"], kinds["t0"], "t3" in kinds) == ("not judged", "sure", False)


@for_each("reason", sorted(UNANSWERED))
def test_rows_that_no_judge_answered_are_not_worth_labelling(reason, tmp_path):
    first = FirstToLabel(cast(Any, SimpleNamespace(at=None)), tmp_path / "s.csv")
    failure = {"step": "evaluate", "unit": "", "reason": reason, "detail": "down"}
    for _ in range(3):
        first.add({"verdict": {"label": None, "failures": [failure]}})
    open_run = Summary()
    open_run.preferences.update(A=1, B=1)
    first.tell(open_run)
    assert first.kinds == [""] * 3
    assert [*tmp_path.iterdir()] == []


def test_a_report_that_is_not_sure_names_the_rows_to_label_first(tmp_path):
    data = data_of(["A", "B"] * 4 + [None] * 30)
    answers = [*["A", "B"] * 4, *[("A", "B")] * 5, *["A", "B", "A", "B", "A"] * 5]
    run = [{**row, "verdict": row["verdict"]} for row in run_of(answers)]
    table, verdicts = written(tmp_path / "d.jsonl", data), written(tmp_path / "v.jsonl", run)
    words = ["trust", table, "--verdicts", verdicts, "-o", tmp_path / "r.html"]
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, done.output
    first = [json.loads(line) for line in (tmp_path / "r.label.jsonl").read_text().splitlines()]
    assert {row["id"] for row in first[:5]} == {f"r{n}" for n in range(8, 13)}
    assert not any(row.get("label") for row in first)
    assert "Worth labelling: 30 rows in" in done.stderr
