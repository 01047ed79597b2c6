"""Whole reports, word for word as a person has read them.

Where words or numbers change on purpose: `pytest tests/test_report_whole.py --snapshot-update`,
then read the difference.
"""

from __future__ import annotations

import io
import math
import random
import re
from collections import Counter
from typing import Any

import pytest
from rich.console import Console

from langchain_judges import report
from langchain_judges.escaping import escaped
from langchain_judges.report import terminal
from langchain_judges.report.compared_runs import contests
from langchain_judges.report.compared_systems import Duel, RankedSystems
from langchain_judges.report.overview import markdown, table_text
from langchain_judges.runs.summary import Summary
from langchain_judges.verdict import no_usage
from tests.cases import for_each
from tests.judged_rows import answered, data_of, items_of, run_of, texts_of


def pairs(seed: int, skill: float, rows: int = 48) -> Any:
    """Verdicts in both orders and rows with votes, systems, categories and groups."""
    draw = random.Random(seed)
    answers, votes = list[Any](), list[Any]()
    for _ in range(rows):
        side = draw.choice("AB")
        other = "B" if side == "A" else "A"
        said = [side if draw.random() < skill else draw.choice([other, "tie"]) for _ in "12"]
        answers.append(None if draw.random() < 0.05 else tuple(said))
        votes.append([side if draw.random() < 0.9 else other for _ in "123"])
    run, data = run_of(answers), data_of(votes)
    for i, (row, item) in enumerate(zip(run, data, strict=True)):
        row["verdict"]["confidence"] = None if answers[i] is None else 0.5 + 0.5 * draw.random()
        systems = [["x", "y"], ["y", "z"], ["x", "z"]][i % 3]
        item |= {"systems": systems, "category": "ab"[i % 2], "group": i // 2}
    return report.trust(run, data, name="pairs", data_name="set")


def ratings(shift: int = 1) -> Any:
    """Ratings of three systems by three people."""
    draw = random.Random(3)
    truth = [draw.randint(1, 5) for _ in range(60)]
    near = [[min(5, max(1, t + draw.choice([-1, 0, 0, 1]))) for _ in "123"] for t in truth]
    data = texts_of([None] * 60)
    for i, row in enumerate(data):
        row |= {"human_votes": near[i], "system": "xyz"[i % 3]}
    said = [None if i == 7 else min(5, t + shift * (i % 2)) for i, t in enumerate(truth)]
    return report.trust(items_of(said), data, name="ratings")


def labels(skill: float = 0.8, rows: int = 60) -> Any:
    """Labels, of which one is rare, by people who differ on some rows."""
    draw = random.Random(4)
    truth = [int(draw.random() < 0.3) for _ in range(rows)]
    said: list[Any] = [t if draw.random() < skill else 1 - t for t in truth]
    run, data = items_of(said), texts_of([None] * rows)
    for i, row in enumerate(data):
        row["human_votes"] = [truth[i], truth[i] if i % 9 else 1 - truth[i]]
        sure = 0.99 if said[i] == truth[i] else 0.6
        run[i]["verdict"] |= {"confidence": sure, "confidence_source": "logprobs"}
    return report.trust(run, data, name="labels")


def criteria() -> Any:
    """Labels by criterion."""
    both = [{"Tone": i % 2, "Help": int(i % 3 == 0)} for i in range(30)]
    data = [{"id": str(i), "output": "a", "labels": own} for i, own in enumerate(both)]
    run = items_of([1] * 30)
    for i, row in enumerate(run):
        said = {"Tone": both[i]["Tone"] if i % 5 else 0, "Help": 1}
        own = [{"criterion": name, "label": label} for name, label in said.items()]
        row |= {"id": str(i), "subscores": own}
    return report.trust(run, data, name="criteria")


CASES: dict[str, Any] = {
    "a good judge of pairs": lambda: pairs(1, 0.95),
    "a poor judge of pairs": lambda: pairs(2, 0.6),
    "a judge that takes what is shown first": lambda: report.trust(
        run_of([("A", "B")] * 20), data_of(["A", "B"] * 10), name="first"
    ),
    "ratings a step too high": ratings,
    "ratings that are right": lambda: ratings(0),
    "labels": labels,
    "labels that are right": lambda: labels(1.0, 120),
    "criteria": criteria,
    "half not judged": lambda: report.trust(
        run_of(["A", None] * 10), data_of(["A", "B"] * 10), name="half"
    ),
    "a perfect judge of 300 pairs": lambda: report.trust(
        run_of(["A", "B"] * 150), data_of([["A"] * 2, ["B"] * 2] * 150), name="perfect"
    ),
}


def told(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.4f}"


def numbers(found: Any) -> str:
    """Every number of a report, one a line."""
    lines = [(n, n.to_dict()) for n in found.numbers.values()]
    cells = [
        [n.key, n.title, n.unit, n.note, *(told(d[k]) for k in ("value", "low", "high"))]
        for n, d in lines
    ]
    ends = [[d["n"], d["n_failed"], d["reason"], d["no_interval"]] for _, d in lines]
    return "\n".join(
        " | ".join(map(str, [*own, *end])) for own, end in zip(cells, ends, strict=True)
    )


def page_of(found: Any) -> str:
    """The text of a page, without its style, its date and its version."""
    html = re.sub(r"<style.*?</style>|<dl.*?</dl>", "", found.to_html(), flags=re.DOTALL)
    return re.sub(r"\n\s*\n+", "\n", re.sub(r"<[^>]*>", "\n", html))


def plain(found: Any) -> str:
    """The parts of a report's data that are no numbers, with whole numbers of digits."""
    data = found.to_dict()
    kept = ("judge", "data", "rows", "absent", "left_out", "policy", "next_step", "confusion")
    parts = {name: data[name] for name in (*kept, "usage", "dollars", "drift")}
    uses = [
        {**use, "number": use["number"] and use["number"]["key"], "parts": len(use["parts"])}
        for use in data["uses"]
    ]
    shown = [(d["id"], d["people"], d["judge"], told(d["cost"])) for d in data["disagreements"]]
    return "\n".join(map(str, [*parts.items(), *uses, *shown, *data["answers"][:3]]))


@pytest.mark.whole
@for_each("name", CASES)
def test_a_report_is_the_one_that_a_person_has_read(name, snapshot):
    found = CASES[name]()
    checks = report.gates(found, 0.7, 0.2)
    parts = [markdown(found, checks), table_text(found), numbers(found), plain(found)]
    assert "\n\n".join([*parts, found.sentence]) == snapshot


def test_a_comparison_is_the_one_that_a_person_has_read(snapshot):
    good, poor = pairs(1, 0.95).sample, pairs(2, 0.6).sample
    runs = {n: [row.row for row in own.rows] for n, own in (("good", good), ("poor", poor))}
    data = [dict(row.data_row) for row in good.rows]
    both: Any = report.compare({**runs, "twin": runs["good"]}, data)
    earlier = both["good"].to_dict() | {"provenance": {"date": "2026-01-01"}}
    later = report.trust(runs["poor"], data, baseline=earlier)
    checks = report.gates(later, 0.5)
    lines = [both.sentence, *(str(each.to_dict()) for each in both.contests)]
    rounded = re.sub(r"\d\.\d{5,}", lambda found: f"{float(found[0]):.4f}", "\n".join(lines))
    said = [rounded, later.drift.sentence, *map(str, checks), page_of(both)]
    assert "\n".join(said) == snapshot


def test_the_data_of_a_report_and_its_names_are_as_they_are_documented():
    found = labels()
    data = found.to_dict()
    assert data["absent"] == 0
    assert {"overview", "numbers", "provenance", "sentence"} <= data.keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", data["provenance"]["date"])
    assert escaped("a|b <i> *c*") == "a\\|b &lt;i> \\*c\\*"


def test_the_better_of_two_judges_is_named_first_in_either_order():
    good, poor = pairs(1, 0.95).sample, pairs(2, 0.6).sample
    for samples in ({"good": good, "poor": poor}, {"poor": poor, "good": good}):
        (contest,) = contests(samples)
        assert (contest.first, contest.second) == ("good", "poor")


# ---- at a terminal


def printed(shown: Any) -> str:
    console = Console(width=110, record=True, file=io.StringIO())
    console.print(shown)
    return console.export_text()


FAILURE = {"step": "s", "unit": "u", "reason": "refusal", "detail": "no"}
USAGE = no_usage() | {"calls": 2, "input_tokens": 1000, "output_tokens": 23}
VERDICT = {"preference": "A", "score": 0.75, "flipped": True, "rationale": "why"}
SUMMARY = answered(Summary(
    rows=10, preferences=Counter(tie=1), not_judged=Counter(refusal=2),
    failures=Counter(refusal=2, empty=1), flips=1, both_orders=8, labelled=6, agreed=4,
    leaks=1, resumed=3, elsewhere=1, others=2, calls=40, tokens=1000, cached_tokens=250,
    prices="a table", cost=0.5, unpriced=3, seconds=1.5, abstained=1,
    stages=Counter(cheap=7, dear=1),
), {"A": 5, "B": 2}, "x")  # fmt: skip
WROTE = Summary(
    rows=3, wrote=True, texts=2, complete=1, concepts=8, lost=Counter(merge=2, solve=1),
    not_judged=Counter(empty=1), calls=2,
)  # fmt: skip
LABELLED = answered(Summary(rows=3, labels=3), {"0": 1, "1": 2})
RANKING: Any = {
    "systems": [
        {"system": "x", "strength": 0.9, "low": 0.5, "high": 1.3, "comparisons": 1200,
         "parted": True, "more": None},
        {"system": "y", "strength": 0.1, "low": -0.3, "high": 0.5, "comparisons": 90,
         "parted": False, "more": 40},
        {"system": "w", "strength": -0.2, "low": -0.5, "high": 0.3, "comparisons": 90,
         "parted": False, "more": None},
        {"system": "z", "strength": -0.8, "low": -1.3, "high": -0.5, "comparisons": 80,
         "parted": None, "more": None},
    ],
    "calls": 2920, "cost": 1.5, "over_budget": True,
}  # fmt: skip
ROUND = {
    "round": 1, "evaluated": 9, "doubted": 4, "accepted": 3, "rejected": 1, "check_wrong": 1,
    "remembered": 2, "waiting": 1, "usage": USAGE,
}  # fmt: skip
ENDS = {"low": 0.1, "high": 0.9}
GAIN = {
    "problem": "",
    "before": {"n": 8, "accuracy": 0.5, "balanced_accuracy": 0.4, "majority": 0.6, **ENDS},
    "after": {"n": 8, "accuracy": 0.4, "balanced_accuracy": 0.3, "low": None, "high": None},
    "gain": -0.1, **ENDS,
}  # fmt: skip


def audit(**more: Any) -> Any:
    decided = [{"answer": "check_wrong"}, {"answer": "accept"}]
    waiting = [{"why": "harms"}, {"why": "harms"}, {"why": "untried"}]
    own = {"history": [ROUND], "decisions": decided, "waiting": waiting}
    return terminal.audit_report({**own, "stopped": "max_rounds", "gain": GAIN, **more})


SCREENS: dict[str, Any] = {
    "a verdict": lambda: terminal.verdict_panel(
        {
            "index": 4,
            "recalled": {"allow_leak": True, "ids": ["e1"]},
            "verdict": VERDICT | {"failures": [FAILURE], "usage": USAGE},
        }
    ),
    "a verdict that was shown examples": lambda: terminal.verdict_panel(
        {
            "id": "r1",
            "verdict": {
                **VERDICT,
                **{"flipped": False, "failures": [], "recalled": ["e1", "e2"]},
                "usage": no_usage() | {"calls": 1},
            },
        }
    ),
    "a text": lambda: terminal.text_panel(
        {
            **{"id": "t", "text": "words", "failures": [], "usage": USAGE},
            "concepts": ["a", "b", "c"],
            "missing": [{"concept": "a", "lost_in": "merge"}, {"concept": "b", "lost_in": "solve"}],
        }
    ),
    "no text": lambda: terminal.text_panel(
        {"index": 2, "text": None, "missing": None, "failures": [FAILURE], "usage": USAGE}
    ),
    "a summary": lambda: terminal.summary_table(SUMMARY),
    "a summary of texts": lambda: terminal.summary_table(WROTE),
    "a summary of labels": lambda: terminal.summary_table(LABELLED),
    "a ranking": lambda: terminal.ranking_table(RANKING),
    "an audit": audit,
    "an audit without a measure": lambda: audit(
        gain={"problem": "dev is empty"}, stopped="nothing_new", waiting=[], decisions=[]
    ),
}


@for_each("name", SCREENS)
def test_a_screen_is_the_one_that_a_person_has_read(name, snapshot):
    assert printed(SCREENS[name]()) == snapshot


@pytest.fixture
def duel() -> Duel:
    found = Duel(["one", "two"], SUMMARY)
    for i, side in enumerate(["A", "B", "A", "tie", "A", "A", None]):
        score = {"A": 0.6 + i / 20, "B": 0.1}.get(str(side))
        why = None if i == 2 else f"reason\n{i}"
        own = {"preference": side, "score": score, "rationale": why}
        found.add({"index": i, "id": f"r{i}" if i % 2 else None, "verdict": own})
    return found


def test_summaries_of_systems_are_the_ones_that_a_person_has_read(snapshot, duel):
    more = answered(Summary(rows=11), {"A": 5}, "x")
    several = Duel(["one", "two"], answered(more, {"B": 2}, "y"))
    said = [duel.markdown(), several.markdown(), RankedSystems(RANKING).markdown()]
    duels = duel, several, Duel(["a", "b"], Summary())
    bars = [str([(name, won.n, lost) for name, won, lost in each.bars()]) for each in duels]
    assert "\n".join([*said, *bars]) == snapshot


@for_each(
    ("counts", "line"),
    [
        ({"resumed": 2}, "resumed 2 rows of an earlier run"),
        (
            {"resumed": 2, "elsewhere": 1},
            "resumed 2 rows of an earlier run, 1 of them at another address",
        ),
        ({"prices": "p.json", "cost": 0.5}, "dollars 0.5000 by p.json"),
        (
            {"prices": "p.json", "unpriced": 3},
            "dollars 0.0000 by p.json; no price is known for 3 calls",
        ),
        ({"calls": 2}, "tokens not reported "),
        ({"calls": 2, "tokens": 8}, "tokens 8 "),
        (
            {"calls": 2, "tokens": 8, "cached_tokens": 2},
            "tokens 8 25% of them from the provider's cache",
        ),
    ],
)
def test_a_line_of_a_summary_says_what_there_was_and_no_more(counts, line):
    assert line in [" ".join(parts) for parts in terminal._lines(Summary(rows=4, **counts))]
