"""The page of a report: what it shows, and what a browser makes of it."""

from __future__ import annotations

import json
import math
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from langchain_judges import report
from langchain_judges.report.overview import (
    FileNames,
    head_text,
    markdown,
    next_step,
    overview,
    table_text,
)
from langchain_judges.verdict import no_usage
from tests.cases import for_each
from tests.chromium import Chromium, needed
from tests.judged_rows import data_of, items_of, run_of, texts_of
from tests.test_cli_words import GROUP
from tests.test_report import voted

NBSP = "\u00a0"


class Page(HTMLParser):
    """Content of a page: the numbers by key, its tags and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self.shown: dict[str, list[str]] = {}
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self._key: str | None = None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self._key = attributes.get("data-key")
        if "data-value" in attributes:
            self.values.setdefault(attributes["data-key"], []).append(attributes["data-value"])

    def handle_data(self, data):
        self.text += data
        if self._key and data.strip():
            self.shown.setdefault(self._key, []).append(data.strip())
            self._key = None


def test_the_page_shows_the_numbers_of_the_report():
    rows, data = voted()
    trust_report = report.trust(rows, data, name="mine")
    page = Page(trust_report.to_html())
    for answer in trust_report.uses.values():
        assert answer.title in page.text
        assert answer.reason[1:] in page.text
    listed = [key for key in trust_report.numbers if not key.startswith("category.")]
    assert {"agreement.votes.wrong", "bias.flips"} <= {*page.values}
    for key in listed:
        value = "" if math.isnan(trust_report[key]) else f"{trust_report[key]:.6f}"
        assert set(page.values[key]) == {value}, key
    percent = f"{100 * trust_report['agreement.votes.wrong']:.1f}{NBSP}%"
    assert percent in page.shown["agreement.votes.wrong"]


def test_page_markdown_and_terminal_show_one_table_and_one_step():
    rows, data = voted()
    trust_report = report.trust(rows, data, name="mine")
    page, terminal = Page(trust_report.to_html()).text, table_text(trust_report)
    summary = markdown(trust_report, []).replace("\\", "")
    titles = [line.title for line in overview(trust_report)]
    assert titles[0] == "Agreement with people"
    assert titles[-3:] == ["Flips when the texts swap places", "Ties by the judge", "Not judged"]
    for line in overview(trust_report):
        for shown in (page, terminal, summary):
            assert line.title in shown
            assert " ".join(line.found.split()) in " ".join(shown.split())
    for shown in (page, head_text(trust_report), summary):
        assert trust_report.legend in shown
        for title, limit in trust_report.limits.items():
            assert f"{title}: {limit}" in shown
    for shown in (page, terminal, summary):
        assert trust_report.verdict in shown
    # Of 30 rows five are not judged; three answers each, of which each pair of people is one.
    rows_of = {line.title: line.rows for line in overview(trust_report)}
    assert rows_of["Agreement with people"].endswith("; 5 rows not judged, counted as wrong")
    assert rows_of["Ties by the judge"] == "10 of 25 rows; 5 rows not judged, left out"
    assert rows_of["Not judged"] == "5 of 30 rows"
    for shown in (page, terminal, summary):
        assert next_step(trust_report).command in shown


def with_words(*words):
    found = report.trust(run_of(["A", "B"] * 6), data_of(["A", "B"] * 6))
    for use, word in zip(found.uses, words, strict=True):
        found.uses[use] = replace(found.uses[use], word=word)
    return found


NONE, SO_FAR, GOOD = "not measured", "not yet", "yes"


@for_each(
    ("words", "said"),
    [
        (
            (GOOD, SO_FAR, GOOD, NONE),
            "Yes: averages over many rows, in place of a person. Not yet: single verdicts.",
        ),
        ((SO_FAR, "no", NONE, NONE), "No: single verdicts. Not yet: averages over many rows."),
        ((NONE,) * 4, "Not measured."),
    ],
)
def test_the_head_answers_in_a_word_and_has_the_limits_of_what_was_measured(words, said):
    found = with_words(*words)
    assert found.verdict == said
    measured = [use.title for use in found.uses.values() if use.word != NONE]
    assert list(found.limits) == measured
    assert ("Good enough" in head_text(found)) == bool(measured)


# A judge that is wrong on every fourth text; people who are divided on a third; one that is
# right on 300 texts; and 12 texts.
STEPS: dict[str, tuple[list[int], list[Any]]] = {
    "are 0 in place of 1": ([0 if i % 4 == 0 else i % 2 or 1 for i in range(80)], [1, 1, 1, 1]),
    "they differ on 27 rows": ([1, 0] * 40, [[0, 1], 1, 0]),
    "Stop here": ([1, 0] * 150, [1, 0]),
    "Label ": ([1, 0] * 6, [1, 0]),
}


@for_each("text", STEPS)
def test_the_next_step_is_one_and_has_a_command(text):
    answers, kinds = STEPS[text]
    labels = [kinds[i % len(kinds)] for i in range(len(answers))]
    labels[-20:] = [0 if own == 1 and len(kinds) == 4 else own for own in labels[-20:]]
    data = texts_of(labels)
    for row in data:
        if isinstance(row["label"], list):
            row |= {"human_votes": row["label"], "label": None}
    step = next_step(report.trust(items_of(answers), data))
    assert text in step.sentence
    for line in step.command.splitlines():
        program, name, *words = shlex.split(line)
        known = {flag for each in GROUP.get_command(None, name).params for flag in each.opts}
        assert program == "langchain-judges"
        assert {word for word in words if word.startswith("-")} <= known


def test_a_judge_that_takes_one_position_is_told_so_first():
    run = run_of([("A", "B")] * 19 + [("A", "A")])
    found = report.trust(run, data_of(["A", "B"] * 10))
    said = f"It takes the text shown first in 97.5{NBSP}% of answers, so 95{NBSP}% of pairs are"
    assert next_step(found).sentence.startswith(
        f"{said} ties. Try a stronger model and criteria, until at most 20{NBSP}% of pairs"
    )
    always = report.trust(run_of([("B", "A")] * 20), data_of(["A", "B"] * 10))
    said = f"it takes the text shown last in 100{NBSP}% of answers, so every pair ends as a tie"
    assert always.uses["averages"].text.startswith(f"No: {said}. So its figure says nothing, ")
    assert always.uses["averages"].brief == said


# A judge that is no equal of a person: labels would settle its single verdicts as no, or yes.
@for_each(
    ("rows", "wrong", "leaning", "step"),
    [
        (30, 9, "no", "Try a stronger model and criteria; this one is not good enough: in place"),
        (60, 9, "yes", "Label 1,400 new rows like these; that is likely to settle single verdicts"),
    ],
)
def test_labels_are_asked_for_only_where_they_may_end_in_a_yes(rows, wrong, leaning, step):
    run = run_of(["A", "B"] * (rows - wrong) + ["B", "A"] * wrong)
    found = report.trust(run, data_of([["A", "A"], ["B", "B"]] * rows))
    assert (found.uses["person"].word, found.uses["single"].word) == ("no", "not yet")
    ends = {
        "yes": "settle it, as things stand with a yes.",
        "no": "more labels would lead to a no.",
    }
    assert found.uses["single"].more.endswith(ends[leaning])
    assert next_step(found).text.startswith(step)
    end = "; not enough for averages over many rows; still no: in place of a person. "
    end += "Then test again."
    assert next_step(found).text.endswith(end) == (leaning == "yes")


# Pairs, and how many of their 60 answers are wrong or half wrong: of few, labels settle the rest.
@for_each("wrong", [0, 3, 8, 10, 12, 24, 40])
def test_what_is_good_enough_is_never_named_as_the_fault(wrong):
    labels: list[Any] = ["A", "B", "tie"] * 20
    turned = {"A": "tie", "B": "A", "tie": "B"}
    said = [turned[own] if i < wrong else own for i, own in enumerate(labels)]
    found = report.trust(run_of(said), data_of(labels))
    step, words = next_step(found).text, {use.word for use in found.uses.values()}
    fault = step.partition("not good enough: ")[2].lower()
    good = [use.title.lower() for use in found.uses.values() if use.word == "yes"]
    assert not [title for title in good if title in fault]
    assert ("Stop here: it is good enough for single verdicts" in step) == (wrong in (8, 10))
    assert "no" not in words or "Stop here" not in step


def test_ratings_that_are_off_ask_for_another_judge_of_the_same_columns():
    rated = report.trust(items_of([5, 4, 5, 5] * 20), texts_of([1, 2, 3, 5] * 20))
    rated.files = FileNames(["rows.csv"], "v.jsonl", ["--column", "label=ann"])
    words = ["--model", "STRONGER-MODEL", "--set", "rubric=RUBRIC"]
    step = ["langchain-judges", "trust", "rows.csv", "--column", "label=ann", *words]
    assert shlex.split(next_step(rated).command) == step
    # The judge's mean is 4.75, the labels' 2.75.
    assert rated.uses["averages"].brief.startswith("+2.00 (")


def test_rows_to_label_are_chosen_by_the_verdicts_that_there_are():
    found = report.trust(run_of(["A"] * 20), data_of(["A"] * 5 + [None] * 15))
    found.files = FileNames(["rows.csv"], "v.jsonl")
    label = "langchain-judges label rows.csv --verdicts v.jsonl -o labels.jsonl --max-rows"
    assert label in next_step(found).command


def test_rows_labelled_by_criteria_are_not_to_be_labelled_again():
    both = {"Tone": 1, "Help": 0}
    data = [{"id": str(i), "input": "q", "output": "a", "labels": both} for i in range(20)]
    rows = [
        {**row, "verdict": item["verdict"], "subscores": [
            {"criterion": name, "label": label} for name, label in both.items()
        ]}
        for row, item in zip(data, items_of([1] * 20), strict=True)
    ]  # fmt: skip
    assert "NEW-ROWS.jsonl" in next_step(report.trust(rows, data)).command


def test_frame_csv_and_json_hold_every_number(tmp_path):
    rows, data = voted()
    trust_report = report.trust(rows, data, name="mine", data_name="the data")
    frame = trust_report.to_dataframe()
    assert list(frame["key"]) == list(trust_report.numbers)
    row = frame.set_index("key").loc["agreement.votes.wrong"]
    result = trust_report["agreement.votes.wrong"]
    assert (row["value"], row["low"], row["high"]) == (float(result), *result.interval)
    assert (row["n"], row["n_failed"], row["judge"]) == (60, 5, "mine")
    assert trust_report.to_csv(tmp_path / "r.csv").splitlines()[0].startswith("judge,section,key")
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 1 + len(frame)
    trust_report.to_json(tmp_path / "r.json")
    plain = json.loads((tmp_path / "r.json").read_text())
    assert plain["sentence"] == trust_report.sentence
    assert {n["key"]: n["value"] for n in plain["numbers"]}["agreement.votes.wrong"] == result
    assert plain["confusion"]["n_failed"] == {"refusal": 5}


HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> {{ 7 * 7 }} \x00 \ud800"


def test_judged_texts_are_shown_and_never_obeyed(tmp_path):
    data = data_of(["A", "B"] * 12)
    for number, row in enumerate(data):
        row |= {"input": HOSTILE, "output_a": HOSTILE + "a", "output_b": HOSTILE, "id": HOSTILE}
        row["category"] = f"{HOSTILE[: 20 + number % 2]}$x_{number % 3}$"
    rows = run_of(["B", "A"] * 12)
    for row in rows:
        row["id"] = HOSTILE
        row["verdict"]["rationale"] = HOSTILE
        row["votes"] = [{"role": HOSTILE, "preference": "B", "reason": HOSTILE}]
    trust_report = report.trust(rows, data, name=HOSTILE, data_name=HOSTILE)
    html = trust_report.to_html(tmp_path / "r.html")
    page = Page(html)
    assert not {"img", "script"} & {*page.tags}
    assert "alert('x')" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not re.search(r"<[^>]*\sonerror=", html)
    assert "default-src 'none'" in html


def test_a_page_loads_nothing_and_names_nothing_twice():
    rows, data = voted()
    html = report.compare({"one": rows, "two": rows}, data).to_html()
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert not {"img", "iframe", "script"} & {*page.tags}
    assert re.findall(r'<link[^>]*href="([^"]*)"', html) == ["data:,"]
    assert not re.findall(r"url\((?!#)", html)
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', html)
    assert set(used) <= set(page.ids)


def test_the_judges_own_evidence_stands_beside_a_disagreement():
    vote = {"role": "Critic", "preference": "B", "confidence": 0.75, "reason": "It rhymes."}
    part = {"criterion": "Clarity", "order": "BA", "sample": 0, "scores": {"A": 2, "B": 5}}
    rows = run_of(["B", "A"])
    for row in rows:
        row |= {"votes": [vote], "subscores": [{**part, "explanation": "B is plain."}]}
    text = Page(report.trust(rows, data_of(["A", "A"])).to_html()).text
    for message in ("Critic", "0.75", "It rhymes.", "Clarity", "B first", "B is plain."):
        assert message in text


def test_categories_and_disagreements_that_are_cut_say_how_many_there_are():
    data = data_of(["A"] * 83)
    for number, row in enumerate(data):
        row["category"] = f"c{number // 8}"  # ten of eight rows, and one of three
    html = report.trust(run_of(["B"] * 20 + ["A"] * 63), data).to_html()
    assert "4 more, all nearer to 0" in html
    assert "10 of 20: 20 wrong; first where people agree most" in html
    all_of_them = report.trust(run_of(["A", "B", "B"]), data_of(["A"] * 3)).to_html()
    assert "first where people agree most" not in all_of_them
    assert "all nearer to 0" not in all_of_them


def test_dollars_are_told_where_the_run_knew_the_price_of_every_row():
    rows = run_of(["A", "B"], cost=0.25)
    for row in rows:
        row["verdict"]["usage"] = {**no_usage(), "calls": 1, "input_tokens": 10}
    trust = report.trust(rows, data_of(["A", "B"]))
    assert trust.to_dict()["dollars"] == 0.5
    assert "$0.5000 in all" in Page(trust.to_html()).text
    rows[0]["cost"] = None
    assert report.trust(rows, data_of(["A", "B"])).dollars is None


# ---- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def made_pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    rows, data = voted()
    long = "x" * 300
    for row in data:
        row["category"] = long if row["id"] == "r0" else row["id"][-1]
    for row in rows:
        row["votes"] = [{"role": long, "preference": "A", "reason": long}]
    report.trust(rows, data, name=long).to_html(folder / "one.html")
    report.compare({"one": rows, long: rows}, data).to_html(folder / "two.html")
    return [folder / "one.html", folder / "two.html"]


@pytest.mark.system
@needed
@pytest.mark.parametrize(("width", "dark"), [(400, True), (1400, False)])
def test_a_browser_shows_it_whole_and_without_complaint(browser, made_pages, width, dark):
    for page in made_pages:
        browser.open(page, width, dark=dark)
        for shut in (True, False):
            browser.ask(f"document.querySelectorAll('details').forEach(d => d.open = {shut:d})")
            wide = browser.ask("document.documentElement.scrollWidth")
            assert wide <= browser.ask("window.innerWidth") == width
        assert browser.complaints() == []
        assert browser.requested() == [page.as_uri()]
        background = browser.ask("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background))) < 150) == dark


BEYOND = """[...document.querySelectorAll('main *')].filter(
    e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.outerHTML.slice(0, 80))"""


@pytest.mark.system
@needed
def test_nothing_is_cut_on_paper_or_a_phone(browser, tmp_path):
    answers, labels = ["unsafe"] * 30 + ["fine"] * 90, ["unsafe", "fine", "fine"] * 40
    data = texts_of(labels)
    for number, row in enumerate(data):
        row["category"] = f"category {number % 3}"
    report.trust(items_of(answers), data).to_html(tmp_path / "one.html")
    runs = {name: run_of([("A", "B"), ("B", "B")] * 12) for name in ("GPT-4", "Haiku 4.5")}
    report.compare(runs, data_of([["A", "B"]] * 24)).to_html(tmp_path / "two.html")
    for page in ("one.html", "two.html"):
        # A4 leaves 718 px between Chromium's margins.
        for width, media in ((718, "print"), (390, "screen")):
            browser.open(tmp_path / page, width)
            browser.call("Emulation.setEmulatedMedia", media=media)
            assert browser.ask(BEYOND) == []
        browser.call("Emulation.setEmulatedMedia", media="")
