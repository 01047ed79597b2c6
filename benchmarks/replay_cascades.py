"""Recorded verdicts of judges as stages of cascades and members of juries.

    python -m benchmarks.replay_cascades [--data FOLDER] [--splits N] [--write] [--figure]

LLMBar (419 pairs), 200 pairs of MT-Bench, and a simulated judge with label probabilities, which
no recorded judge has. A first and a last judge of every kind of certainty are two stages, and
`selective_cascade` finds their thresholds on half as many rows as there are, drawn with
replacement, so that the promise can be held against all rows: it holds in a draw if the
verdicts agree with the labels at least as often as promised. `--write` puts the tables into
docs/evidence.md, `--figure` draws the figure of docs/several-judges.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.evidence_page import write_section
from cookbook.recorded_judges import recorded, recorded_judge
from langchain_judges import judge_many
from langchain_judges.datasets import load
from langchain_judges.methods import create_jury
from langchain_judges.metrics import certainty, effective_voters, selective_cascade

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "certainty.png"
DELTA = 0.05
PROMISED = {"llmbar": 0.8, "mtbench_human200": 0.7, "simulated": 0.9}
"""The agreement with the labels that is promised."""
TITLES = {"llmbar": "LLMBar", "mtbench_human200": "MT-Bench", "simulated": "simulated"}
PRICES = {"GPT-4": (30, 60), "ChatGPT": (1.5, 2), "PaLM2": (1, 1), "LLaMA2": (1, 1)}
"""Dollars for a million tokens in and out, assumed: what such models cost when they judged."""
INSTRUCTIONS, REPLY = 150, 10
"""Tokens of a question beside its texts, and of a reply that names a label."""
Setting = tuple[str, str]


class Stage(NamedTuple):
    """A judge of a kind of certainty, and the recorded judges that it asks."""

    kind: str
    settings: list[Setting]
    orders: Any = "strict"


class Said(NamedTuple):
    """Verdicts of a judge by row, its certainty, and the cost of a row."""

    stage: Stage
    answers: list[Any]
    sure: list[float | None]
    dollars: float


def _stages(model: str, others: list[str], prompt: str, *, rated: str = "") -> list[Stage]:
    members = [(each, prompt) for each in others] if others[0] != prompt else []
    members = members or [(model, each) for each in others]
    stages = [
        Stage("unknown", [(model, prompt)], "none"),
        Stage("orders", [(model, prompt)]),
        Stage("members", members),
    ]
    return [*stages, *([Stage("scores", [(model, rated)])] if rated else [])]


FIRST: dict[str, list[Stage]] = {
    "llmbar": [
        *_stages("PaLM2", ["Metrics_Reference", "Reference", "Swap"], "Metrics_Reference"),
        Stage("orders", [("GPT-4", "Vanilla")]),
        Stage("scores", [("GPT-4", "Rating_NoRules")]),
    ],
    "mtbench_human200": _stages("ChatGPT", ["ChatGPT", "LLaMA2", "PaLM2"], "Vanilla_NoRules"),
}
LAST: dict[str, list[Stage]] = {
    "llmbar": _stages(
        "GPT-4",
        ["Metrics_Reference", "Reference", "Metrics"],
        "Metrics_Reference",
        rated="Rating_Metrics_Reference",
    ),
    "mtbench_human200": _stages("GPT-4", ["GPT-4", "ChatGPT", "PaLM2"], "Vanilla_NoRules"),
}
JURIES: dict[str, list[list[Setting]]] = {
    "llmbar": [
        [("GPT-4", each) for each in ("Vanilla", "Metrics_Reference", "Swap")],
        [(m, "Metrics_Reference") for m in ("GPT-4", "PaLM2", "LLaMA2", "ChatGPT", "Falcon")],
    ],
    "mtbench_human200": [
        [(m, "Vanilla_NoRules") for m in ("ChatGPT", "LLaMA2", "PaLM2")],
        [(m, "Vanilla_NoRules") for m in ("GPT-4", "ChatGPT", "LLaMA2", "PaLM2")],
    ],
}


def judge_of(name: str, folder: Path, setting: Setting, orders: Any = "strict") -> Any:
    model, prompt = setting
    return recorded_judge(recorded(name, folder, judge=model, setting=prompt), orders=orders)


def verdicts_of(name: str, folder: Path, stage: Stage, rows: list[Any]) -> list[Any]:
    """The verdicts of a recorded judge, or of a jury of several."""
    if stage.kind == "scores":
        return list(_rated(folder, stage.settings[0]))
    judges = [judge_of(name, folder, each, stage.orders) for each in stage.settings]
    judge = judges[0] if len(judges) == 1 else create_jury(judges)
    return [row["verdict"] for row in judge_many(judge, rows, progress=False)]


def _rated(folder: Path, setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield verdicts with the scores that a judge gave each text on its own, in file order."""
    with gzip.open(folder / "verdicts_all.jsonl.gz", "rt") as file:
        for each in map(json.loads, file):
            if (each["judge"], each["strategy"]) == setting:
                a, b = (float(each[f"score_{n}"] or "nan") for n in (1, 2))
                better = "A" if a > b else "B" if b > a else "tie"
                label = better if a == a and b == b else None
                scores = {"A": a, "B": b}
                yield {"preference": label, "scores": scores, "score": a / (a + b or 1)}


def said_by(name: str, folder: Path, stage: Stage, rows: list[Any]) -> Said:
    verdicts = verdicts_of(name, folder, stage, rows)
    texts = ("input", "output_a", "output_b")
    tokens = fmean(sum(len(row[each]) for each in texts) / 4 for row in rows)
    orders = 1 if stage.orders == "none" else 2
    dollars = sum(
        orders * ((tokens + INSTRUCTIONS) * paid + REPLY * got) / 1e6
        for paid, got in (PRICES[model] for model, _ in stage.settings)
    )
    sure = [certainty(verdict, calibrated=True) for verdict in verdicts]
    return Said(stage, [verdict["preference"] for verdict in verdicts], sure, dollars)


def simulated(count: int = 800) -> tuple[list[str], Said, Said]:
    """Labels, a judge right as often as its probabilities say, and a strong one.

    Seven rows of ten are clear to the first judge, which deserves to decide these.
    """
    draw = random.Random(3)
    labels = [draw.choice("AB") for _ in range(count)]
    ends = [(0.94, 1.0) if draw.random() < 0.7 else (0.5, 0.7) for _ in range(count)]
    sure: list[float | None] = [draw.uniform(*each) for each in ends]

    def answers(chances: list[Any]) -> list[str]:
        pairs = zip(labels, chances, strict=True)
        return [a if draw.random() < p else {"A": "B", "B": "A"}[a] for a, p in pairs]

    first = Said(Stage("label probabilities", []), answers(sure), sure, 0.0001)
    strong = answers([0.95] * count)
    return labels, first, Said(Stage("unknown", []), strong, [None] * count, 0.004)


Stages = tuple[list[Said], list[Said]]
"""The first judges, and the last."""


class Table(NamedTuple):
    """A table, the least share of draws in which a promise held, and what agreement changes."""

    lines: str
    held: float
    leads: list[float]
    costs: list[float]
    """By pair of judges: of a cascade whose last judge always decides over that judge alone."""


class Outcome(NamedTuple):
    """The means over the draws."""

    agreement: float
    judged: float
    escalated: float
    dollars: float
    held: float
    always: float
    """The agreement where the last judge always decides."""


def _decided(gates: list[Any], columns: list[Any], row: int) -> tuple[int, Any] | None:
    """The place of the stage that decides a row, and its answer; None: no stage is sure."""
    for place, (gate, (answers, sure)) in enumerate(zip(gates, columns, strict=True)):
        if answers[row] is not None and sure[row] is not None and sure[row] >= gate.value:
            return place, answers[row]
    return None


def study(first: Said, last: Said, labels: list[Any], splits: int, promise: float) -> Outcome:
    """Calibrate two stages on drawn rows, and let them judge all."""
    size = len(labels)
    silent = all(each is None for each in last.sure)
    final = [None if a is None else 1.0 for a in last.answers] if silent else last.sure
    columns = [(first.answers, first.sure), (last.answers, final)]
    right, judged, escalated, held, always = [], [], [], [], []
    for seed in range(splits):
        places = random.Random(seed).choices(range(size), k=size // 2)
        drawn = [([a[n] for n in places], [s[n] for n in places]) for a, s in columns]
        gates = selective_cascade(
            drawn, [labels[n] for n in places], alpha=1 - promise, delta=DELTA
        )
        told = [_decided(gates.thresholds, columns, n) for n in range(size)]
        hits = [each[1] == labels[n] for n, each in enumerate(told) if each]
        right += [fmean(hits)] if hits else []
        judged.append(len(hits) / size)
        escalated.append(1 - sum(bool(each) and each[0] == 0 for each in told) / size)
        held.append(not hits or fmean(hits) >= promise)
        answers = [
            each[1] if each and each[0] == 0 else last.answers[n] for n, each in enumerate(told)
        ]
        always.append(agreement(answers, labels))
    dollars = first.dollars + last.dollars * fmean(escalated)
    means = [fmean(judged), fmean(escalated), dollars, fmean(held), fmean(always)]
    return Outcome(fmean(right) if right else float("nan"), *means)


def agreement(answers: list[Any], labels: list[Any]) -> float:
    return fmean(answer == label for answer, label in zip(answers, labels, strict=True))


def called(stage: Stage) -> str:
    models = ", ".join(dict.fromkeys(model for model, _ in stage.settings))
    return f"{stage.kind} ({models})" if models else stage.kind


def surest_half(judge: Said, labels: list[Any]) -> str:
    """Say how often a judge is right in the half of the rows of which it is surest."""
    levels = sorted((each for each in judge.sure if each is not None), reverse=True)
    if not levels:
        return "unknown"
    gate = levels[min(len(labels) // 2, len(levels) - 1)]
    sure = [n for n, each in enumerate(judge.sure) if each is not None and each >= gate]
    right = fmean(judge.answers[n] == labels[n] for n in sure)
    return f"{right:.0%} of {len(sure) / len(labels):.0%}"


def cascade_table(name: str, stages: Stages, labels: list[Any], splits: int) -> Table:
    """A line for each first judge, with a cell for each last one."""
    least, leads, costs = 1.0, [], []
    last = [called(each.stage) for each in stages[1]]
    lines = [
        f"| {TITLES[name]}: first, then | surest half | {' | '.join(last)} |",
        "|---" * (len(last) + 2) + "|",
    ]
    for first in stages[0]:
        cells = []
        for end in stages[1]:
            found = study(first, end, labels, splits, PROMISED[name])
            least = min(least, found.held)
            leads.append(found.always - agreement(end.answers, labels))
            costs.append(found.dollars / end.dollars)
            cells.append(
                f"{found.agreement:.0%} of {found.judged:.0%}; {found.escalated:.0%}; "
                f"{costs[-1]:.2f}"
            )
        surest = surest_half(first, labels)
        lines.append(f"| {called(first.stage)} | {surest} | {' | '.join(cells)} |")
    alone = [f"{agreement(each.answers, labels):.0%}; 1" for each in stages[1]]
    lines.append(f"| the last alone | | {' | '.join(alone)} |")
    return Table("\n".join(lines), least, leads, costs)


def jury_lines(name: str, folder: Path, rows: list[Any]) -> Iterator[str]:
    labels = [row["label"] for row in rows]
    for settings in JURIES[name]:
        judges = [judge_of(name, folder, each) for each in settings]
        jury = list(judge_many(create_jury(judges), rows, progress=False))
        alone = [
            [row["verdict"]["preference"] for row in judge_many(each, rows, progress=False)]
            for each in judges
        ]
        best = max(agreement(answers, labels) for answers in alone)
        answers = [row["verdict"]["preference"] for row in jury]
        undecided = fmean(answer is None for answer in answers)
        worth = float(effective_voters(jury, labels))
        members = ", ".join(dict.fromkeys(model for model, _ in settings))
        if len({model for model, _ in settings}) == 1:
            members = f"{len(settings)} prompts on {members}"
        yield (
            f"| {TITLES[name]}: {members} | {best:.0%} | {agreement(answers, labels):.0%} | "
            f"{undecided:.0%} | {worth:.1f} of {len(settings)} |"
        )


def tables(data: Path, splits: int) -> tuple[str, str]:
    """Tables of cascades to print; what they promise, and juries, for docs/evidence.md."""
    juries = [
        "| jury | best member | majority | undecided | effective voters |",
        "|---|---|---|---|---|",
    ]
    labels, *ends = simulated()
    found = [cascade_table("simulated", ([ends[0]], [ends[1]]), labels, splits)]
    for name in FIRST:
        rows = load(name, data / name)
        own = [
            [said_by(name, data / name, stage, rows) for stage in table[name]]
            for table in (FIRST, LAST)
        ]
        labels = [row["label"] for row in rows]
        found.append(cascade_table(name, (own[0], own[1]), labels, splits))
        juries += jury_lines(name, data / name, rows)
    leads = [lead for each in found for lead in each.leads]
    costs = [cost for each in found for cost in each.costs]
    promises = ", ".join(f"{TITLES[name]} {promise:.0%}" for name, promise in PROMISED.items())
    note = (
        f"Promised: {promises}. In {splits} draws the promise held in at least "
        f"{min(each.held for each in found):.0%} for every pair of judges. A cascade whose "
        f"last judge always decides agreed with the labels {100 * min(leads):+.1f} to "
        f"{100 * max(leads):+.1f} points more often than that judge alone. Cascades cost "
        f"{min(costs):.2f} to {max(costs):.2f} times as much as their last judge alone."
    )
    cascades = "\n\n".join(each.lines for each in found)
    return cascades, f"{note}\n\n" + "\n".join(juries)


def shares_of(data: Path, model: str) -> list[tuple[float, bool]]:
    """Shares of a model's verdicts that agree, by row, and whether they are right."""
    votes: dict[tuple[str, int], list[int]] = {}
    folder = data / "llmbar"
    with gzip.open(folder / "verdicts_all.jsonl.gz", "rt") as file:
        for each in map(json.loads, file):
            if each["judge"] == model and "Rating" not in each["strategy"]:
                own = votes.setdefault((each["set"], each["idx"]), [])
                own += [vote for vote in (each["verdict_12"], each["verdict_21"]) if vote]
    with gzip.open(folder / "items.jsonl.gz", "rt") as file:
        labels = {(each["set"], each["idx"]): each["label"] for each in map(json.loads, file)}
    return [
        (max(own.count(1), own.count(2)) / len(own), own.count(labels[key]) > len(own) / 2)
        for key, own in votes.items()
        if own
    ]


EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Of the shares that are drawn together; a point has at least 15 rows."""


def draw(data: Path) -> None:
    """Draw how often a model is right by how many of its verdicts agree."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    axes.plot([0.5, 1], [0.5, 1], "--", color="0.6", label="as often as it says")
    for model, mark in (("GPT-4", "o"), ("PaLM2", "s"), ("ChatGPT", "^")):
        rows = shares_of(data, model)
        parts = [[row for row in rows if low <= row[0] < high] for low, high in pairwise(EDGES)]
        points = [
            (fmean(share for share, _ in part), fmean(right for _, right in part))
            for part in parts
            if len(part) >= 15
        ]
        axes.plot(*zip(*points, strict=True), marker=mark, label=model)
    axes.set(xlabel="share of its verdicts that agree", ylabel="right", ylim=(0, 1.02))
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(FIGURE, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--splits", type=int, default=500)
    parser.add_argument("--write", action="store_true", help="put them into docs/evidence.md")
    parser.add_argument("--figure", action="store_true", help="draw the figure alone")
    args = parser.parse_args()
    if args.figure:
        draw(args.data)
        return
    cascades, shown = tables(args.data, args.splits)
    print(cascades, shown, sep="\n\n")
    if args.write:
        write_section("cascades and juries", shown)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
