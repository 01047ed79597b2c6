"""The report: its numbers are the metrics', and a browser shows them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from typing import Any, Literal, cast

import pytest
from typer.testing import CliRunner

from langchain_judges import datasets as sets
from langchain_judges import judge_many, metrics, report
from langchain_judges.cli import app
from langchain_judges.errors import InputError, OptionError
from langchain_judges.testing import reply
from langchain_judges.verdict import Preference, no_usage
from tests.cases import for_each
from tests.chromium import Chromium, needed
from tests.judged_rows import data_of, run_of, verdict
from tests.model_server import good, pairs, refusal
from tests.processes import start

NBSP = "\u00a0"


class Page(HTMLParser):
    """What a page holds: the numbers by key, its tags and its text."""

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


# ---- the numbers


VOTES: list[list[Preference | None]] = [
    ["A", "A"],
    ["A", "B"],
    ["B", "B"],
    ["tie", "B"],
    ["A", "A"],
    ["B", "A"],
] * 5
ANSWERS = [("A", "A"), ("A", "B"), ("B", "B"), ("B", "A"), (None, "A"), ("A", "A")] * 5


def voted():
    rows = run_of(ANSWERS)
    for row in rows:
        if None in [each["preference"] for each in row["by_order"].values()]:
            row["verdict"] = verdict(None)
    return rows, data_of(VOTES, category="c")


def test_every_agreement_is_the_metrics_own():
    rows, data = voted()
    trust_report = report.trust(rows, data)
    labels = [metrics.majority_vote(votes) for votes in VOTES]
    first, second = ([answer[i] for answer in ANSWERS] for i in (0, 1))
    ways: list[Literal["wrong", "drop"]] = ["wrong", "drop"]
    for errors in ways:
        votes = metrics.vote_agreement(rows, VOTES, errors=errors)
        assert trust_report[f"agreement.votes.{errors}"] == votes
        label = metrics.accuracy(rows, labels, errors=errors)
        assert trust_report[f"agreement.label.{errors}"] == label
        for rule in ("mean_of_orders", "both_right"):
            expected = metrics.order_accuracy(first, second, labels, rule, errors)
            assert trust_report[f"agreement.{rule}.{errors}"] == expected
    assert trust_report["agreement.label.wrong"] < trust_report["agreement.label.drop"]
    assert trust_report["agreement.people"] == metrics.people_agreement(VOTES)
    assert trust_report["agreement.kappa"] == metrics.cohen_kappa(rows, labels)
    assert trust_report["bias.flips"] == metrics.position_bias(first, second).flip_rate
    assert trust_report["failures.reason.refusal"] == 5 / 30
    assert trust_report["agreement.votes.wrong"].n_failed == {"refusal": 5}
    # Each order by itself beside people, every row alike: what failed agrees with nobody.
    orders = [[pair[side] for pair in ANSWERS] for side in (0, 1)]
    beside = metrics.beside_people(orders[0], VOTES, orders[1])
    assert trust_report["agreement.over_people"] == pytest.approx(float(beside.lead))


# By hand: of the votes on six rows the judge matches 2, 0, 2, 1, (failed) 0 and 1, so 6 of 12;
# two people agree on 3 of the 6 rows.
def test_dollars_are_told_where_the_run_knew_the_price_of_every_row():
    usage = {**no_usage(), "calls": 1, "input_tokens": 10}
    rows = [
        {**row, "cost": 0.25, "verdict": {**row["verdict"], "usage": usage}}
        for row in run_of(["A", "B"])
    ]
    trust = report.trust(rows, data_of(["A", "B"]))
    assert trust.to_dict()["dollars"] == 0.5
    assert "$0.5000 in all" in Page(trust.to_html()).text
    rows[0]["cost"] = None
    unknown = report.trust(rows, data_of(["A", "B"]))
    assert unknown.dollars is None
    assert "in all." not in Page(unknown.to_html()).text


def test_the_details_say_agreement_people_flips_and_failures():
    rows, data = voted()
    sentence = report.trust(rows, data).details.replace(NBSP, " ")
    assert re.match(r"Agrees with people 50 % \(\d+–\d+\) of the time; when", sentence)
    assert "names the other text on 40 % of rows and is undecided on 0 %" in sentence
    assert sentence.endswith("5 of 30 not judged.")


def test_baselines_and_lead_are_measured_on_the_same_votes():
    rows, data = voted()
    trust_report = report.trust(rows, data)
    flat = [(row, vote) for row, votes in zip(data, VOTES, strict=True) for vote in votes]
    truth = [vote for _, vote in flat]
    leads = [len(row["output_a"]) - len(row["output_b"]) for row, _ in flat]
    longer = ["A" if lead > 0 else "B" if lead < 0 else "tie" for lead in leads]
    assert trust_report["baseline.length"] == float(metrics.accuracy(longer, truth))
    assert trust_report["baseline.first_slot"] == truth.count("A") / len(truth)
    assert trust_report["baseline.majority"] == max(truth.count("A"), truth.count("B")) / len(
        truth
    )
    best = max(
        trust_report[f"baseline.{name}"] for name in ("length", "first_slot", "majority")
    )
    # The judge calls a tie where its orders differ; the baselines are asked once.
    alone = [metrics.vote_agreement([answer[i] for answer in ANSWERS], VOTES) for i in (0, 1)]
    assert trust_report["baseline.lead"] == pytest.approx(sum(alone) / 2 - best)


def test_groups_widen_the_interval():
    labels = ["A"] * 10 + ["B"] * 10
    data = data_of(labels)
    alone = report.trust(run_of(["A"] * 20), data)["agreement.label.wrong"].interval
    for number, row in enumerate(data):
        row["group"] = number // 10
    shared = report.trust(run_of(["A"] * 20), data)["agreement.label.wrong"].interval
    assert shared.high - shared.low > alone.high - alone.low


def test_a_judge_that_follows_slot_and_length_is_told_on():
    labels = ["A", "B"] * 40
    data = data_of(labels)
    for number, row in enumerate(data):
        row["output_a"], row["output_b"] = ("x" * 90, "y" * 10)[:: 1 if number % 3 else -1]
    follows = ["A" if len(row["output_a"]) > 50 else "B" for row in data]
    noisy = ["AB"[x == "A"] if number % 7 == 0 else x for number, x in enumerate(follows)]
    sentence = report.trust(run_of(noisy), data).sentence
    assert "leans to longer texts" in sentence
    assert "one order was asked" in sentence
    slotted = [("A", "B") if number % 4 else ("A", "A") for number in range(80)]
    assert "leans to the first slot" in report.trust(run_of(slotted), data).sentence


def test_judges_of_one_text_have_balanced_accuracy_and_no_slots():
    labels = [1, 1, 1, 0, None, 1, 1, 0]
    truth = [1, 1, 1, 1, 1, 0, 0, 0]
    rows = run_of(["A"] * 8)
    for row, label in zip(rows, labels, strict=True):
        fields = {k: v for k, v in verdict("A" if label is not None else None).items()}
        del fields["preference"], fields["flipped"], fields["scores"]
        row["verdict"] = {**fields, "label": label, "score": label, "recalled": ["m1"]}
    data = [
        {"id": f"r{i}", "input": "q", "output": "text", "expected": ["x", "y"], "label": t}
        for i, t in enumerate(truth)
    ]
    trust_report = report.trust(rows, data)
    # Recall of 1 is 3 of 5, of 0 it is 1 of 3; without the failure 3 of 4.
    assert trust_report["agreement.balanced.wrong"] == pytest.approx((3 / 5 + 1 / 3) / 2)
    assert trust_report["agreement.balanced.drop"] == pytest.approx((3 / 4 + 1 / 3) / 2)
    assert trust_report["agreement.label.wrong"] == 4 / 8
    assert trust_report["baseline.majority"] == 5 / 8
    assert trust_report.confusion.counts == [[1, 2], [1, 3]]
    assert trust_report.confusion.not_judged == [0, 1]
    assert not [key for key in trust_report.numbers if key.startswith("bias.")]
    assert trust_report.details.startswith("Agrees with the labels 50")
    page = Page(trust_report.to_html())
    assert "x / y" in page.text
    assert "Remembered examples shown" in page.text
    assert "slot" not in page.text.lower()


@pytest.mark.system
def test_names_are_functions_whatever_was_imported_first():
    code = """
import importlib, sys
for first in ("page", "versus", "report", "rows"):
    for name in [name for name in sys.modules if name.startswith("langchain_judges")]:
        del sys.modules[name]
    importlib.import_module(f"langchain_judges.report.{first}")
    from langchain_judges import report
    print(callable(report.trust), callable(report.compare))
"""
    printed, errors = start("-c", code).communicate()
    assert printed == "True True\n" * 4, errors


# ---- rows and their data


def test_rows_are_matched_by_id_and_else_by_place():
    data = data_of(["A", "B", "tie"])
    rows = run_of(["A", "B", "tie"])
    assert report.trust(rows[::-1], data)["agreement.label.wrong"] == 1
    for row in rows:
        row["id"] = None
    assert report.trust(rows[::-1], data)["agreement.label.wrong"] == 1
    repeated = [{**row, "id": "same"} for row in data]
    again = [{**row, "id": "same"} for row in rows]
    assert report.trust(again, repeated)["agreement.label.wrong"] == 1


def test_without_data_the_run_is_enough_for_agreement():
    trust_report = report.trust(run_of(["A", "B", "A", "A"], label="A"))
    assert trust_report["agreement.label.wrong"] == 0.75
    assert "baseline.length" not in trust_report.numbers
    assert "The texts are unknown" in trust_report.to_html()


def test_rows_that_the_run_does_not_hold_are_told():
    trust_report = report.trust(run_of(["A", "B"]), data_of(["A"] * 5))
    assert trust_report.to_dict()["absent"] == 3
    assert "3 more are not in this run" in trust_report.to_html()
    assert "more are not in this run" not in report.trust(run_of(["A"] * 5)).to_html()


@for_each(
    ("rows", "data", "message"),
    [
        ([], None, "no verdicts to report on"),
        ([{"id": "x", "index": 0}], None, "without a verdict"),
        (run_of(["A"]), [{"id": "other", "label": "A"}], "1 of rows that are not in the data"),
        (run_of(["A"], label="left"), None, "must be 'A', 'B' or 'tie', got 'left'"),
        (
            [*run_of(["A"]), {"id": "i", "index": 1, "verdict": {"label": 1}}],
            None,
            "pairs and on single texts need separate reports",
        ),
        (
            [*run_of(["A"], judge={"mark": "1"}), *run_of(["A"], judge={"mark": "2"})],
            None,
            "verdicts of one judge",
        ),
    ],
)
def test_what_cannot_be_reported_on_is_one_sentence(rows, data, message):
    with pytest.raises(InputError, match=re.escape(message)):
        report.trust(rows, data)


# ---- the forms


def test_frame_csv_and_json_hold_every_number(tmp_path):
    rows, data = voted()
    trust_report = report.trust(rows, data, name="mine", data_name="the data")
    frame = trust_report.to_dataframe()
    assert list(frame["key"]) == list(trust_report.numbers)
    row = frame.set_index("key").loc["agreement.votes.wrong"]
    result = trust_report["agreement.votes.wrong"]
    assert (row["value"], row["low"], row["high"]) == (float(result), *result.interval)
    assert (row["n"], row["n_failed"], row["judge"]) == (60, 5, "mine")
    assert (
        trust_report.to_csv(tmp_path / "r.csv").splitlines()[0].startswith("judge,section,key")
    )
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 1 + len(frame)
    trust_report.to_json(tmp_path / "r.json")
    plain = json.loads((tmp_path / "r.json").read_text())
    assert plain["sentence"] == trust_report.sentence
    assert {n["key"]: n["value"] for n in plain["numbers"]}["agreement.votes.wrong"] == result
    assert plain["confusion"]["n_failed"] == {"refusal": 5}


def test_the_page_shows_the_numbers_of_the_report():
    rows, data = voted()
    trust_report = report.trust(rows, data, name="mine")
    page = Page(trust_report.to_html())
    for answer in trust_report.uses.values():
        assert answer.title in page.text
        assert answer.reason[1:] in page.text
    listed = [key for key in trust_report.numbers if not key.startswith("category.")]
    assert {"agreement.votes.wrong", "agreement.votes.drop", "bias.flips"} <= {*page.values}
    for key in listed:
        value = "" if math.isnan(trust_report[key]) else f"{trust_report[key]:.6f}"
        assert set(page.values[key]) == {value}, key
    percent = f"{100 * trust_report['agreement.votes.wrong']:.1f}{NBSP}%"
    assert percent in page.shown["agreement.votes.wrong"]


HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> $\\frac{ \x00"
HOSTILE += " {{ 7 * 7 }} \ud800"


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
    assert page.tags.count("script") == 2  # the rows as data, and the page's own
    assert "img" not in page.tags
    assert "alert('x')" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not re.search(r"<[^>]*\sonerror=", html)
    assert "default-src 'none'" in html


def test_a_page_loads_nothing_and_names_nothing_twice():
    rows, data = voted()
    html = report.compare({"one": rows, "two": rows}, data).to_html()
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert not {"img", "iframe"} & {*page.tags}
    # The rows as data, and the script that lists them, which the policy names by its hash.
    assert re.findall(r"<script[^>]*>", html) == [
        '<script type="text/plain" id="rows-data">',
        "<script>",
    ]
    own = html.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in html
    assert re.findall(r'<link[^>]*href="([^"]*)"', html) == ["data:,"]
    assert not re.findall(r"url\((?!#)", html)
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', html)
    assert set(used) <= set(page.ids)


EVIDENCE = {
    "votes": [
        {"role": "Critic", "preference": "B", "confidence": 0.75, "reason": "It rhymes."}
    ],
    "subscores": [
        {
            "criterion": "Clarity",
            "order": "BA",
            "sample": 0,
            "scores": {"A": 2, "B": 5},
            "explanation": "B is plain.",
        }
    ],
    "table": {
        "rows": [{"aspect": "Tone", "common": "warm", "only_a": "a joke", "only_b": "none"}]
    },
    "ballots": [{"order": "AB", "sample": 1, "preference": "B", "explanation": "Shorter."}],
}


@for_each("kind", sorted(EVIDENCE))
def test_the_judges_own_evidence_stands_beside_a_disagreement(kind):
    rows = run_of(["B", "A"])
    for row in rows:
        row[kind] = EVIDENCE[kind]
    text = Page(report.trust(rows, data_of(["A", "A"])).to_html()).text
    texts = {
        "votes": ["Critic", "0.75", "It rhymes."],
        "subscores": ["Clarity", "B first", "2", "5", "B is plain."],
        "table": ["Tone", "warm", "a joke"],
        "ballots": ["A first", "Shorter."],
    }
    for message in texts[kind]:
        assert message in text


def test_the_costliest_disagreements_come_first():
    rows = run_of(["B", "B", "B", None, "A"])
    for row, score in zip(rows, (0.4, 0.1, 0.0, None, 1.0), strict=True):
        row["verdict"]["score"] = score
    data = data_of([["A", "A"], ["A", "A"], ["A", "A", "B"], ["A", "A"], ["A", "A"]])
    trust_report = report.trust(rows, data)
    # Sure to 0.9 where all agree; to 1 where two of three do; to 0.6.
    assert [each.id for each in trust_report.disagreements] == ["r1", "r2", "r0"]
    assert [round(each.cost, 3) for each in trust_report.disagreements] == [0.9, 0.667, 0.6]


# ---- several judges


def test_judges_are_tested_in_pairs():
    labels = ["A"] * 20
    runs = {
        "good": run_of(["A"] * 18 + ["B"] * 2),
        "poor": run_of(["A"] * 8 + ["B"] * 12),
        "none": run_of([None] * 20),
    }
    trust_report = report.compare(runs, data_of(labels))
    first = trust_report.contests[0]
    right = [[x == "A" for x in ["A"] * n + ["B"] * (20 - n)] for n in (18, 8)]
    assert (first.only_first, first.only_second) == (10, 0)
    assert first.difference == 0.5
    assert first.p == metrics.paired_difference(*right).p
    p = [each.p for each in trust_report.contests]
    order = sorted(range(3), key=p.__getitem__)
    adjusted = [each.holm_p for each in trust_report.contests]
    assert adjusted[order[0]] == pytest.approx(3 * p[order[0]])
    assert adjusted[order[2]] == pytest.approx(max(p[order[2]], 2 * p[order[1]]))
    assert trust_report["none"]["agreement.label.wrong"] == 0
    assert list(trust_report.contests_dataframe()["second"]) == ["poor", "none", "none"]
    assert set(trust_report.to_dataframe()["judge"]) == {"good", "poor", "none"}
    page = Page(trust_report.to_html())
    assert "+50.0" in page.text


def test_judges_without_rows_in_common_are_not_tested():
    halves = [run_of(["A"] * 6)[:3], run_of(["A"] * 6)[3:]]
    trust_report = report.compare(dict(zip("ab", halves, strict=True)), data_of(["A"] * 6))
    assert trust_report.contests[0].n == 0
    assert "no row in common" in trust_report.to_html()


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


@pytest.mark.system
@needed
def test_a_browser_shows_the_reports_numbers(browser, tmp_path):
    rows, data = voted()
    trust_report = report.trust(rows, data)
    trust_report.to_html(tmp_path / "r.html")
    browser.open(tmp_path / "r.html", 400)
    texts = browser.ask("[...document.querySelectorAll('.use')].map(e => e.innerText)")
    for text, answer in zip(texts, trust_report.uses.values(), strict=True):
        assert text.split()[: len(answer.title.split())] == answer.title.split()
        assert answer.reason[1:].split()[-1] in text
    # The dot lies on its line, and within the chart.
    boxes = browser.ask(
        "[...document.querySelectorAll('.scale')].map(e => ['.dot', '.span'].map(part => {"
        "const [b, all] = [e.querySelector(part), e].map(x => x.getBoundingClientRect());"
        "return [b.left - all.left, b.right - all.left, all.width]}))"
    )
    assert len(boxes) == 3
    for (left, right, width), (low, high, _) in boxes:
        assert low - 8 <= (left + right) / 2 <= high + 8
        assert -8 <= left < right <= width + 8


@pytest.mark.system
@needed
def test_a_browser_obeys_no_judged_text(browser, tmp_path):
    rows, data = run_of(["B"]), data_of(["A"])
    data[0]["output_a"] = "<script>document.title = 'owned'</script>"
    report.trust(rows, data).to_html(tmp_path / "r.html")
    browser.open(tmp_path / "r.html", 1400)
    assert browser.ask("document.title") != "owned"
    assert "owned" in browser.ask("document.body.textContent")
    assert browser.complaints() == []


# ---- the command


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def labelled(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [{**pair, "label": "B" if i == 2 else "A"} for i, pair in enumerate(pairs(4))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_trust_judges_reports_and_goes_on_where_it_was(serve, labelled, tmp_path):
    server, out = serve(), tmp_path / "deep" / "report.html"
    arguments = ("trust", labelled, "--model", "fake", "--base-url", server.url, "-o", out)
    first = invoke(*arguments, "-o", tmp_path / "r.csv", "-o", tmp_path / "r.json")
    assert first.exit_code == 0, first.output
    assert "agrees with the label 75" in first.stdout.lower().replace(NBSP, " ")
    assert "at most 44 calls (11 for each row)" in first.stderr
    calls = len(server.calls)
    page = Page(out.read_text())
    assert page.values["agreement.label.wrong"] == ["0.750000"]
    assert f"{calls}" in page.text
    assert json.loads((tmp_path / "r.json").read_text())["usage"]["calls"] == calls
    assert "agreement.label.wrong" in (tmp_path / "r.csv").read_text()
    again = invoke(*arguments)
    assert again.exit_code == 0
    assert len(server.calls) == calls
    file = out.with_suffix(".verdicts.jsonl")
    finished = invoke("trust", labelled, "--verdicts", file, "-o", tmp_path / "f.html")
    assert finished.exit_code == 0, finished.output
    assert Page((tmp_path / "f.html").read_text()).values == page.values


def test_trust_puts_finished_runs_side_by_side(labelled, tmp_path):
    data = [json.loads(line) for line in labelled.read_text().splitlines()]
    paths = []
    for name, answer in (("one", "A"), ("two", "B")):
        record = {"judge": name, "setting": "s", "order": "AB", "preference": answer}
        judge = sets.recorded_judge([{**record, "id": row["id"], "raw": ""} for row in data])
        paths.append(tmp_path / f"{name}.jsonl")
        list(judge_many(judge, data, out=paths[-1], progress=False))
    arguments = [part for path in paths for part in ("--verdicts", path)]
    result = invoke("trust", labelled, *arguments, "-o", tmp_path / "r.html")
    assert result.exit_code == 0, result.output
    assert "one · recorded:s: Averages over many rows. Not yet" in result.stdout
    assert "only first" in (tmp_path / "r.html").read_text()


def test_a_spent_budget_reports_what_was_judged(serve, labelled, tmp_path):
    out = tmp_path / "r.html"
    arguments = ("--model", "fake", "--base-url", serve().url, "-o", out, "--max-calls", "22")
    result = invoke("trust", labelled, *arguments)
    assert result.exit_code == 3
    assert "0 of 2 not judged" in result.stdout
    assert "left out: 2 that were not asked because the budget was spent" in result.stderr
    outcome = invoke(
        "trust", labelled, "--verdicts", out.with_suffix(".verdicts.jsonl"), "-o", out
    )
    assert "0 of 2 not judged" in outcome.stdout
    assert "left out: 2 that were not asked" in out.read_text()
    nothing = invoke(
        "trust", labelled, *arguments[:4], "-o", tmp_path / "n.html", "--max-calls", "5"
    )
    assert nothing.exit_code == 3
    assert not (tmp_path / "n.html").exists()


def test_nothing_that_is_read_is_written_over(serve, labelled, tmp_path):
    server = serve()
    arguments = ("--model", "fake", "--base-url", server.url)
    before = labelled.read_bytes()
    page = tmp_path / "page.html"
    for written in (("-o", labelled), ("-o", page, "-o", labelled)):
        result = invoke("trust", labelled, *arguments, *written)
        assert (result.exit_code, server.calls) == (2, [])
        assert "is read by this command" in result.stderr
    assert labelled.read_bytes() == before


def test_labels_without_texts_or_ids_meet_no_verdict_by_number(serve, tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "v.jsonl"
    lines = ["nr,question,one,two,label"]
    lines += [f"{n},q{n},{'good ' * n}a,b{n},{'A' if n % 2 else 'B'}" for n in range(1, 5)]
    table.write_text("\n".join(lines))
    columns = ["--column", "input=question", "--column", "output_a=one"]
    columns += ["--column", "output_b=two", "--column", "id=nr"]
    server = serve()
    arguments = ("--model", "fake", "--base-url", server.url)
    assert invoke("judge", table, *columns, *arguments, "-o", out).exit_code == 0
    page = tmp_path / "r.html"
    result = invoke("trust", table, "--verdicts", out, "-o", page)
    assert result.exit_code == 2
    assert "no verdict belongs to a row of the data" in result.stderr
    assert invoke("trust", table, *columns, "--verdicts", out, "-o", page).exit_code == 0


def test_a_file_of_other_verdicts_is_one_sentence(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"judge": "careful", "preference": "A"}\n')
    result = invoke("trust", "--verdicts", path, "-o", tmp_path / "r.html")
    assert result.exit_code == 2
    assert "a row without a verdict" in result.stderr


def test_strict_minds_failures(serve, labelled, tmp_path):
    def behave(call):
        return good(call) if call.shape != "Scores" else refusal()

    arguments = ("--model", "fake", "--base-url", serve(behave).url, "-o", tmp_path / "r.html")
    result = invoke("trust", labelled, *arguments, "--strict")
    assert result.exit_code == 1
    assert "4 of 4 not judged" in result.stdout
    assert "no row was judged" in result.stdout


@for_each(
    ("arguments", "message"),
    [
        ((), "name either --model"),
        (("--model", "fake"), "name the rows to judge"),
        (
            ("nowhere.csv", "--model", "fake"),
            "There is no file nowhere.csv, and no public data set",
        ),
        (("--verdicts", "nowhere.jsonl"), "there is no file nowhere.jsonl"),
    ],
)
def test_wrong_use_is_one_sentence(arguments, message):
    result = invoke("trust", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_bad_rows_are_named_before_anything_is_asked(serve, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("input,output_a,output_b,label\nq,x,y,A\nq,,y,B\n")
    server = serve(lambda _: reply("no"))
    result = invoke("trust", path, "--model", "fake", "--base-url", server.url)
    assert result.exit_code == 2
    assert "row 2: the field `output_a` is missing" in result.stderr
    assert server.calls == []


def test_trust_without_labels_is_refused_before_anything_is_asked(serve, tmp_path):
    path = tmp_path / "win.csv"
    path.write_text("input,output_a,output_b,winner\nWhy 1?,good,bad,A\n")
    server = serve()
    inputs = (
        "trust",
        path,
        "--model",
        "fake",
        "--base-url",
        server.url,
        "-o",
        tmp_path / "r.html",
    )
    result = invoke(*inputs)
    assert (result.exit_code, server.calls) == (2, [])
    assert "as in --column label=COLUMN. There are 'input', 'output_a'" in result.stderr
    outcome = invoke(*inputs, "--column", "label=winner")
    assert outcome.exit_code == 0, outcome.output
    assert "Agrees with the label 100" in outcome.stdout


def test_verdicts_on_an_older_text_or_a_row_that_is_gone_are_left_out(
    serve, labelled, tmp_path
):
    server, file = serve(), tmp_path / "v.jsonl"
    arguments = ("--model", "fake", "--base-url", server.url, "-o", tmp_path / "e2.html")
    assert invoke("trust", labelled, *arguments, "--results", file).exit_code == 0
    rows = [json.loads(line) for line in labelled.read_text().splitlines()]
    rows[0]["output_a"] = "bad now"
    # Another order and no ids: the texts tell which verdict is of which row.
    edited = [{k: v for k, v in row.items() if k != "id"} for row in [rows[2], rows[1]]]
    labelled.write_text("".join(json.dumps(row) + "\n" for row in [rows[0], *edited]))
    calls = len(server.calls)
    result = invoke("trust", labelled, "--verdicts", file, "-o", tmp_path / "e3.html")
    assert result.exit_code == 0, result.output
    assert len(server.calls) == calls
    assert (
        "left out: 1 of an older text of their row and 1 of rows that are not" in result.stderr
    )
    # Of the two that are left people contradict one.
    assert "Agrees with the label 50" in result.stdout
    assert "1 of an older text" in (tmp_path / "e3.html").read_text()
    labelled.write_text(json.dumps({**rows[0], "id": "p0"}) + "\n")
    none = invoke("trust", labelled, "--verdicts", file, "-o", tmp_path / "e4.html")
    assert none.exit_code == 2
    assert (
        "no verdict belongs to a row of the data. Verdicts left out: 1 of an older"
        in none.stderr
    )


@for_each(
    ("rows", "data", "message"),
    [
        ("v.jsonl", None, "`verdicts` must be rows, got the name 'v.jsonl'; `read_verdicts`"),
        (run_of(["A"])[0], None, "`verdicts` must be rows, got dict"),
        (run_of(["A"]), "d.jsonl", "got the name 'd.jsonl'; `datasets.rows` reads it"),
        (run_of(["A"]), data_of(["A"], group={"a": 1}), "row 0: `group` must be a text"),
    ],
)
def test_what_are_no_rows_is_told_in_one_sentence(rows, data, message):
    with pytest.raises(InputError, match=re.escape(message)):
        report.trust(rows, data)


@for_each(
    ("orders", "agreement"),
    # Said in the two orders: A A, A B, tie A, B tie; every label is A.
    [("strict", 0.25), ("lenient", 0.5), ("none", 0.5)],
)
def test_the_rule_for_two_orders_can_be_chosen(orders, agreement):
    run = run_of([("A", "A"), ("A", "B"), ("tie", "A"), ("B", "tie")])
    trust_report = report.trust(run, data_of(["A"] * 4), orders=orders)
    assert trust_report.numbers["agreement.label.wrong"].result == agreement
    assert f"orders combined by {orders}" in trust_report.name


def test_rows_of_one_order_keep_their_answer_under_any_rule():
    trust_report = report.trust(run_of(["A", "B"]), data_of(["A", "A"]), orders="lenient")
    assert trust_report.numbers["agreement.label.wrong"].result == 0.5


def test_a_rule_that_there_is_not_is_refused():
    with pytest.raises(OptionError, match="`orders` must be one of"):
        report.trust(run_of(["A"]), data_of(["A"]), orders=cast("Any", "both_right"))
