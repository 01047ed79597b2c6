"""The published figures of the public sets beside what the package makes of the same data.

Run `python -m benchmarks.published`; `--write` puts the table into docs/evidence.md. The
sets are read from ../shared/data, or from the folder that `--data` names.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.evidence_page import write_section
from cookbook import recorded_judges as judges
from cookbook.study import sets
from cookbook.study.sets import answer_matches
from langchain_judges import metrics

ROOT = Path(__file__).parents[1]


class Figure(NamedTuple):
    """One figure."""

    name: str
    published: float
    ours: float
    digits: int
    note: str = ""

    @property
    def alike(self) -> bool:
        """Whether both are the same to the digits that were published."""
        return abs(self.published - self.ours) < 0.5 * 10.0**-self.digits + 1e-9


def orders_of(records: Any) -> dict[tuple[str, str], dict[str, dict[str, Any]]]:
    """Preferences in each order, by judge and setting, by row."""
    table: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in records:
        own = table[record["judge"], record["setting"]]
        own.setdefault(record["id"], {"AB": None, "BA": None})
        own[record["id"]][record["order"]] = record["preference"]
    return table


def columns(by_id: dict[str, dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    return [each["AB"] for each in by_id.values()], [each["BA"] for each in by_id.values()]


def llmbar(data: Path) -> Iterator[Figure]:
    path = data / "llmbar"
    rows = {row["id"]: row for row in sets.load("llmbar", path)}
    expected = json.loads((path / "expected.json").read_text())
    parts: dict[str, dict[str, Any]] = defaultdict(dict)
    for (judge, setting), by_id in orders_of(judges.recorded("llmbar", path)).items():
        for key, preferences in by_id.items():
            parts[f"{rows[key]['category']}|{judge}|{setting}"][key] = preferences
    names = ("accuracy_mean_of_orders", "accuracy_both_orders", "order_agreement")
    gaps: dict[str, list[float]] = {name: [] for name in names}
    for name, by_id in parts.items():
        first, second = columns(by_id)
        truth = [rows[key]["label"] for key in by_id]
        ours = (
            metrics.order_accuracy(first, second, truth, "mean_of_orders"),
            metrics.order_accuracy(first, second, truth, "both_right"),
            metrics.order_agreement(first, second).with_unread,
        )
        for key, value in zip(names, ours, strict=True):
            gaps[key].append(abs(100 * value - expected[name][key]))
    for name, all_gaps in gaps.items():
        title = f"largest difference, points, {len(all_gaps)} settings: {name.replace('_', ' ')}"
        yield Figure(title, 0.0, max(all_gaps), 6)


def mt_bench(data: Path) -> Iterator[Figure]:
    path = data / "mtbench_human200"
    rows = sets.load("mtbench_human200", path)
    labels = {row["id"]: row["label"] for row in rows}
    published = {
        "GPT-4": (81.0, 87.0),
        "ChatGPT": (71.25, 57.5),
        "LLaMA2": (72.0, 67.0),
        "PaLM2": (70.25, 73.5),
    }
    records = judges.recorded("mtbench_human200", path, setting="Vanilla_NoRules")
    table = orders_of(records)
    for judge, (right, alike) in published.items():
        by_id = table[judge, "Vanilla_NoRules"]
        first, second = columns(by_id)
        truth = [labels[key] for key in by_id]
        mean = metrics.order_accuracy(first, second, truth, "mean_of_orders")
        yield Figure(f"accuracy, mean of orders, %: {judge}", right, 100 * mean, 2)
        agreed = metrics.order_agreement(first, second)
        unread = sum(a is b is None for a, b in zip(first, second, strict=True))
        note = f"{unread} unread pairs count as agreeing there; {100 * agreed:.1f} without"
        name = f"orders agree, %: {judge}"
        yield Figure(name, alike, 100 * agreed.with_unread, 1, note if unread else "")


def position_bias(data: Path) -> Iterator[Figure]:
    path = data / "mtbench_position_bias"
    published = {"gpt-4-0613": 81.54, "gpt-3.5-turbo-1106": 69.59, "gemini-pro": 57.47}
    table = orders_of(judges.recorded("mtbench_position_bias", path, setting="full"))
    for judge, figure in published.items():
        first, second = columns(table[judge, "full"])
        strict = metrics.order_agreement(first, second)
        pairs = list(zip(first, second, strict=True))
        alone = sum((a is None) != (b is None) for a, b in pairs)
        unread = sum((a is None) + (b is None) for a, b in pairs)
        ours = 100 * (strict * 2 * len(pairs) + alone) / (2 * len(pairs) - unread)
        note = f"by its rule for unread verdicts; strictly {100 * strict:.2f}" if unread else ""
        yield Figure(f"consistent, %: {judge}", figure, ours, 2, note)


def pandalm(data: Path) -> Iterator[Figure]:
    path = data / "pandalm"
    rows = sets.load("pandalm", path)
    people = list(zip(*(row["human_votes"] for row in rows), strict=True))
    for (a, b), figure in zip(combinations(range(3), 2), (0.85, 0.88, 0.86), strict=True):
        kappa = float(metrics.cohen_kappa(people[a], people[b]))
        yield Figure(f"Cohen's κ of annotators: {a + 1} and {b + 1}", figure, kappa, 2)
    labels = [row["label"] for row in rows]
    for name, count in (("A", 422), ("B", 472), ("tie", 105)):
        yield Figure(f"majority says: {name}", count, labels.count(name), 0)


def goyal(data: Path) -> Iterator[Figure]:
    with gzip.open(data / "goyal_news2022" / "generic.jsonl.gz", "rt") as file:
        records = [json.loads(line) for line in file]
    published = {
        ("cnn2022", "best"): (36, 8, 58),
        ("cnn2022", "worst"): (24, 67, 9),
        ("bbc2022", "best"): (20, 30, 57),
        ("bbc2022", "worst"): (56, 29, 15),
    }
    for (part, end), counts in published.items():
        own = [record[f"{end}_votes"] for record in records if record["dataset"] == part]
        for system, count in zip(("brio", "t0", "gpt3"), counts, strict=True):
            ours = sum(votes[system] >= 2 for votes in own)
            yield Figure(f"{end} for two of three, {part}: {system}", count, ours, 0)


def cogeval(data: Path) -> Iterator[Figure]:
    records = list(judges.recorded("cogeval", data / "cogeval"))
    yield Figure("grades of single texts", 59338, len(records), 0)
    counts: list[tuple[Literal["normalised", "exact"], int, int]] = [
        ("normalised", 3687, 96),
        ("exact", 7327, 9),
    ]
    for how, accepted, rejected in counts:
        pairs = [(r["label"], answer_matches(r["raw"], r["expected"], how)) for r in records]
        name = f"graded right, no match: {how}"
        yield Figure(name, accepted, pairs.count((1, False)), 0)
        yield Figure(f"graded wrong, match: {how}", rejected, pairs.count((0, True)), 0)


def summeval(data: Path) -> Iterator[Figure]:
    path = data / "summeval12"
    rows = sets.load("summeval12", path, form="candidates")
    scores: dict[str, Any] = defaultdict(lambda: defaultdict(dict))
    for rating in judges.ratings("summeval12", path):
        if (rating["judge"], rating["setting"]) == ("gpt-3.5-turbo-0301", "rts"):
            scores[rating["dimension"]][rating["system"]][rating["group"]] = rating["score"]
    every = list(combinations(sorted({row["systems"][0] for row in rows}), 2))
    close = {tuple(r["id"].split(":")[2:]) for r in judges.recorded("summeval12", path)}
    for name, systems, figure in (("66", every, 58.5), ("11 close", close, 7.0)):
        title = f"pairs of systems ordered as by experts: of {name}"
        yield Figure(title, figure, _ordered_alike(rows, scores, systems), 2)


def _ordered_alike(rows: Any, scores: Any, systems: Any) -> float:
    def sign(gap: float) -> int:
        return (gap > 1e-9) - (gap < -1e-9)

    hits = 0
    for dimension in ("coherence", "consistency", "fluency", "relevance"):
        people: dict[str, dict[str, float]] = defaultdict(dict)
        for row in rows:
            people[row["systems"][0]][row["group"]] = row["human"][dimension]
        for a, b in systems:
            ours, theirs = (
                sign(sum(sign(table[a][each] - table[b][each]) for each in table[a]))
                for table in (people, scores[dimension])
            )
            hits += ours == theirs
    return hits / 4


SETS: dict[str, tuple[str, Callable[[Path], Iterator[Figure]]]] = {
    "LLMBar (Zeng et al. 2023), the worst of 325 settings": ("llmbar", llmbar),
    "MT-Bench, 200 pairs (processed by LLMBar's authors)": ("mtbench_human200", mt_bench),
    "Position bias on MT-Bench (Shi et al. 2024)": ("mtbench_position_bias", position_bias),
    "PandaLM (Wang et al. 2023)": ("pandalm", pandalm),
    "SummEval (Fabbri et al. 2021; judges: Shen et al. 2023)": ("summeval12", summeval),
    "News study (Goyal et al. 2022)": ("goyal_news2022", goyal),
    "CogEval, as ALLURE's paper uses it (counted by the set's page)": ("cogeval", cogeval),
}


def differing(figures: list[Figure]) -> str:
    """The figures that differ from what was published, and what to know of others."""
    found = []
    for figure in figures:
        published, ours = (f"{each:.{figure.digits}f}" for each in figure[1:3])
        number = published if figure.alike else f"{published}, **ours {ours}**"
        if figure.note or not figure.alike:
            found.append(f"{figure.name}: {number} ({figure.note})".replace(" ()", ""))
    return "; ".join(found)


def table(data: Path) -> str:
    """Number of figures of each set that are the same, and those that are not, as Markdown."""
    lines = ["| set | figures | the same | differences and notes |", "|---|---|---|---|"]
    for name, (folder, compute) in SETS.items():
        if not (data / folder).is_dir():
            lines.append(f"| {name} | | | not in {data} |")
            continue
        figures = list(compute(data))
        alike = sum(figure.alike for figure in figures)
        lines.append(f"| {name} | {len(figures)} | {alike} | {differing(figures)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print every figure and the table, or write the table into the docs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--write", action="store_true", help="into docs/evidence.md")
    options = parser.parse_args()
    for folder, compute in SETS.values():
        if (options.data / folder).is_dir():
            print(*compute(options.data), sep="\n")
    figures_table = table(options.data)
    print(figures_table)
    if options.write:
        write_section("published figures", figures_table)


if __name__ == "__main__":
    main()
