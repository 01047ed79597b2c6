"""The studies of SC²'s paper (Yan et al. 2023) with any model, on public sets.

    python cookbook/protocol_sc2.py --model openai:gpt-5-mini --data ../data --out sc2-study
    python cookbook/protocol_sc2.py --model openai:gpt-5-mini --data ../data
    python cookbook/protocol_sc2.py --model local --data ../data --limit 10 --corpus 2 \
        --sets hh_helpful_test --only tables --arms "sc2 C2"

`--data` is a folder in which each set has a folder of its name, with the files that
`langchain_judges.datasets` lists; without it sets are read from the hub, where that has them.
Run it again to resume: no request is sent twice. All arms share one cache of replies, so that
those with the same tables compare the same ones.

The offline aspects are learned from fifty pairs that are not judged, nor is any other pair of
their dialogues or articles. Another model, seed or set learns its own. `--comparison-model`
finds aspects, makes tables and compares them, and `--model` decides which text is preferred,
as in the paper. `--rounds 5` repeats all that is sampled with other seeds.

Studies: `methods` (Table 1), `inference` (Table 2), `aspects` (Table 3), `tables` (Figure 3),
`budgets` (Table 4), `few_shot` (Table 5). The sizes of the sets (Table 6) come first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import protocols
import typer
from langchain_core.runnables import RunnableLambda
from protocols import in_flight, inside, named, program, shared_model, sharing
from rich.console import Console
from rich.table import Table
from sc2_figures import draw, results, sizes_table, summary, summary_table
from sc2_sets import CORPUS, ROWS, SETS, USUAL, parted, read

from langchain_judges import learn_aspects
from langchain_judges.asking.models import model_identity, resolve_model
from langchain_judges.cli.messages import table_console
from langchain_judges.methods.registry import METHODS, load_judge, within_budget
from langchain_judges.report.methods import comparison_table
from langchain_judges.runs.comparison import Comparison, Contestant, compare, save
from langchain_judges.verdict import StepUsage, Usage, add_usage, no_usage

BUDGETS = (8, 15, 24)
"""Calls for a pair (Table 4)."""
SIZES = (1, 2, 4, 8, 12, 16)
"""Numbers of tables (Figures 3 and 5)."""


@dataclass(frozen=True)
class Arm:
    """One column of a study: a method with settings."""

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    online: bool = False
    """Whether it compares by the aspects that SC² found online, which is run before."""


def studies(aspects: list[str]) -> dict[str, list[Arm]]:
    """Return the arms of every study; arms of equal settings have equal labels."""

    def tables(n: int, **options: Any) -> Arm:
        return Arm(f"sc2 C{n}", "sc2", {"samples": n, "aspects": aspects, **options})

    def self_consistency(n: int) -> Arm:
        return Arm(f"cot_sc {n}", "cot_sc", {"samples": n})

    def few_shot(shots: int, budget: int) -> list[Arm]:
        half = {**within_budget("sc2", budget), "aspects": aspects, "shots": shots}
        whole = {"samples": budget, "shots": shots}
        return [
            Arm(f"cot_sc {budget} {shots}s", "cot_sc", whole),
            Arm(f"sc2 {budget} {shots}s", "sc2", half),
        ]

    def budgeted(budget: int) -> Arm:
        return Arm(
            f"sc2 of {budget}", "sc2", {**within_budget("sc2", budget), "aspects": aspects}
        )

    def inference(how: str) -> Arm:
        return Arm(f"sc2 {how}", "sc2", {"aspects": aspects, "samples": 8, "inference": how})

    offline = Arm("direct aspects", "direct", {"aspects": aspects})
    return {
        "methods": [
            Arm("direct", "direct"),
            offline,
            Arm("cot", "cot"),
            Arm("cot 1-shot", "cot", {"shots": 1}),
            self_consistency(8),
            tables(8),
        ],
        "inference": [inference("random"), tables(8), inference("exact")],
        "aspects": [
            offline,
            Arm("sc2 online", "sc2", {"samples": 8}),
            Arm("direct online", "direct", online=True),
            tables(8),
        ],
        "tables": [tables(n) for n in SIZES],
        "budgets": [arm for n in BUDGETS for arm in (self_consistency(n), budgeted(n))],
        "few_shot": [arm for n in (3, 5) for budget in BUDGETS for arm in few_shot(n, budget)],
    }


@dataclass(frozen=True)
class Protocol:
    """One set, one model: contestants by arm, and where their results are."""

    task: str
    """Its name among SC²'s tasks."""
    model: Any
    out: Path
    """Of one round."""
    seed: int
    concurrency: int
    comparison_model: Any = None
    """Finds aspects, makes tables and compares them; None: the model."""

    def aspects(self, corpus: list[dict[str, Any]], folder: Path) -> list[str]:
        """Return the offline aspects, learned once and kept in a folder."""
        texts = [row[side] for row in corpus for side in ("output_a", "output_b")]
        model = self.comparison_model or self.model
        # Kept by what they were learned from: another model or corpus learns others.
        mark = _mark([model_identity(model), self.task, texts])
        path = folder / f"learned_aspects-{mark}.json"
        if path.exists():
            return list(json.loads(path.read_text("utf-8"))["aspects"])
        return list(learn_aspects(model, texts, n=5, task=self.task, name=path)["aspects"])

    def contestant(self, arm: Arm) -> Contestant:
        """Return the judge of an arm."""
        options = {**arm.options, "task": self.task}
        if "seed" in METHODS[arm.method].defaults():
            options["seed"] = self.seed
        if arm.method == "sc2" and self.comparison_model:
            options |= dict.fromkeys(_BACKBONE, self.comparison_model)
        if arm.online:
            judge = self._online(options)
            calls = 1 + int(METHODS["sc2"].defaults()["aspect_samples"])
        else:
            judge = load_judge(arm.method, self.model, **options)
            calls = int((judge.config or {})["metadata"]["calls"])
        return {
            "name": arm.label,
            "method": arm.method,
            "options": options,
            "calls": calls,
            "judge": judge,
        }

    def _online(self, options: dict[str, Any]) -> Any:
        """Return direct prompting with the aspects that SC² found for each pair online.

        What they cost is the judge's cost too.
        """
        path = self.out / "sc2 online.jsonl"
        rows = results(self.out, "sc2 online") if path.exists() else []
        aspects = {row["id"]: row.get("aspects") or None for row in rows}
        costs = {row["id"]: row["verdict"]["usage"]["by_step"].get("aspects") for row in rows}

        def judge(pair: dict[str, Any]) -> Any:
            own = {**options, "aspects": aspects.get(pair["id"])}
            result = load_judge("direct", self.model, **own).invoke(pair)
            usage = add_usage([result["verdict"]["usage"], _usage_of(costs.get(pair["id"]))])
            return {**result, "verdict": {**result["verdict"], "usage": usage}}

        # Its results are kept by its name: other aspects or another model are another judge.
        mark = _mark([model_identity(self.model), aspects, options])
        name = f"direct online {mark}"
        return RunnableLambda(judge, name=name).with_config(metadata={"method": name})

    def run(self, study: str, arms: list[Arm], rows: list[dict[str, Any]]) -> Comparison:
        """Run the arms, those that need another's results last, and write what came out."""
        self.out.mkdir(parents=True, exist_ok=True)
        comparison = self._compare([arm for arm in arms if not arm.online], rows)
        if any(arm.online for arm in arms):
            comparison = self._compare(arms, rows)
        save(comparison, self.out / f"{study}.json")
        return comparison

    def _compare(self, arms: list[Arm], rows: list[dict[str, Any]]) -> Comparison:
        contestants = [self.contestant(arm) for arm in arms]
        return compare(
            contestants,
            rows,
            budget=max(each["calls"] for each in contestants),
            out=self.out,
            max_concurrency=self.concurrency,
        )


_BACKBONE = ("aspect_model", "comparison_model", "comparator_model")


def _usage_of(step: Mapping[str, int] | None) -> Usage:
    """Return the cost of the aspects as a whole usage."""
    usage = no_usage()
    if step:
        for name in ("calls", "input_tokens", "cached_tokens", "output_tokens"):
            usage[name] = step[name]
        usage["by_step"] = {"aspects": cast("StepUsage", step)}
    return usage


def _mark(settings: Any) -> str:
    """Return a short hash of plain data."""
    return hashlib.sha256(json.dumps(settings, default=str).encode()).hexdigest()[:12]


def main(  # noqa: PLR0913 - one parameter for each option
    model: protocols.Model,
    base_url: protocols.BaseUrl = None,
    data: protocols.Data = None,
    out: protocols.Out = Path("sc2-study"),
    limit: protocols.Limit = None,
    only: Annotated[str, typer.Option(help="Studies, with commas between.")] = "",
    arms: Annotated[
        str, typer.Option(help="Arms of the studies, with commas between; default all.")
    ] = "",
    sets: Annotated[str, typer.Option(help="Sets, with commas between.")] = ",".join(USUAL),
    corpus: Annotated[
        int, typer.Option(min=1, help="Pairs that aspects are learned from.")
    ] = CORPUS,
    comparison_model: Annotated[
        str | None, typer.Option(help="For aspects, tables and comparisons; default the model.")
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, help="Times that all which is sampled is repeated.")
    ] = 1,
    seed: protocols.Seed = 0,
    concurrency: protocols.Concurrency = None,
) -> dict[str, dict[str, Any]]:
    """Run the studies of SC²'s paper; the same command resumes where it stopped."""
    console = table_console()
    set_names = named(sets, SETS, "--sets")
    study_names = named(only, studies([]), "--only") or list(studies([]))
    arm_names = named(
        arms, {arm.label for s in study_names for arm in studies([])[s]}, "--arms"
    )
    # Nothing is asked before every set was found.
    pairs = {name: read(name, data and inside(data, name), seed) for name in set_names}
    chat, replies = shared_model(model, base_url, out)
    comparer = comparison_model and sharing(
        resolve_model(comparison_model, base_url=base_url), replies
    )
    parts = {name: parted(pairs[name], limit or ROWS, corpus) for name in set_names}
    console.print(sizes_table({name: _sizes(pairs[name], *parts[name]) for name in set_names}))
    figures: dict[str, dict[str, Any]] = {}
    for name, (rows, learned_from) in parts.items():
        protocols = [
            Protocol(
                SETS[name],
                chat,
                out / name / f"round-{number + 1}",
                seed + number,
                in_flight(model, concurrency),
                comparer,
            )
            for number in range(rounds)
        ]
        own = narrowed(studies(protocols[0].aspects(learned_from, out / name)), arm_names)
        # Results hold hashes of the texts; the form of the human study needs them.
        lines = (json.dumps(row) + "\n" for row in rows)
        (out / name / "pairs.jsonl").write_text("".join(lines), "utf-8")
        figures[name] = {
            study: _study(console, protocols, study, own[study], rows)
            for study in study_names
            if own[study]
        }
        (out / name / "studies.json").write_text(json.dumps(figures[name], indent=2))
    console.print(replies.sentence())
    return figures


def narrowed(arms: dict[str, list[Arm]], names: list[str]) -> dict[str, list[Arm]]:
    """Return the arms that are named, and those that they need; all where none is named."""
    online = {"sc2 online"} if "direct online" in names else set()
    return {
        study: [arm for arm in own if not names or arm.label in {*names, *online}]
        for study, own in arms.items()
    }


def _sizes(pairs: list[Any], judged_pairs: list[Any], corpus: list[Any]) -> dict[str, int]:
    groups = len({pair["group"] for pair in pairs})
    return {
        "pairs": len(pairs),
        "groups": groups,
        "judged": len(judged_pairs),
        "learned from": len(corpus),
    }


def _study(
    console: Console,
    protocols: list[Protocol],
    study: str,
    arms: list[Arm],
    rows: list[dict[str, Any]],
) -> dict[str, Any]:
    """Run a study in every round, print it and return its figures by arm."""
    comparisons = {each.out: each.run(study, arms, rows) for each in protocols}
    out = protocols[0].out
    title = f"{out.parent.name}, {study}, {len(rows):,} pairs"
    console.print(f"\n{title}", style="bold")
    console.print(comparison_table(comparisons[out]))
    figures = summary(comparisons)
    console.print(summary_table(figures, f"{title}, {len(protocols)} rounds"))
    if study == "tables":
        points = {n: figures[f"sc2 C{n}"]["accuracy"] for n in SIZES if f"sc2 C{n}" in figures}
        table = Table("|C|", *map(str, points), title="Figure 3")
        shares = points.values()
        table.add_row("accuracy", *("-" if v is None else f"{v:.3f}" for v in shares))
        console.print(table)
        draw(points, out.parent / "tables.png", title)
    return figures


if __name__ == "__main__":
    program(main)()
