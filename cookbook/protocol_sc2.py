"""The studies of SC²'s paper (Yan et al. 2023) with any model, on two public sets.

    python cookbook/protocol_sc2.py --model openai:gpt-5-mini --data ../data --out sc2-study

`--data` is a folder with `hh_helpful_test/pairs.jsonl.gz` (fields prompt, chosen, rejected) and
`summeval12/docs.jsonl.gz`, `summaries.jsonl.gz` (fields id, text; id, model_id, summary,
expert_mean). Run it again to resume: no request is sent twice. All arms share one cache of
replies, so that those with the same tables compare the same ones.

The offline aspects are learned from fifty pairs that are not judged, nor is any other pair of
their dialogues or articles, which are ten of SummEval's hundred. Another model, seed or set
learns its own.

Studies: `methods` (Table 1), `inference` (Table 2), `aspects` (Table 3), `tables` (Figure 3),
`budgets` (Table 4), `few_shot` (Table 5).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from langchain_core.runnables import RunnableLambda
from protocols import (
    BaseUrl,
    Concurrency,
    Data,
    Limit,
    Model,
    Out,
    Replies,
    Seed,
    in_flight,
    inside,
    named,
    program,
    sharing,
)

import langchain_judges
from langchain_judges.asking.models import model_identity, resolve_model
from langchain_judges.cli.common import table_console
from langchain_judges.methods.budgets import ASPECTS
from langchain_judges.methods.registry import METHODS, load_judge, within_budget
from langchain_judges.report.side_by_side import comparison_table
from langchain_judges.runs.contest import Comparison, Contestant, compare, save

BUDGETS = (8, 15, 24)
"""Calls for a pair (Table 4)."""
ROWS = 500
"""Pairs of each set that are judged."""
CORPUS = 50
"""Pairs from which the offline aspects are learned."""
EACH = 5
"""Most pairs of one group, such as an article, among them."""


@dataclass(frozen=True)
class Arm:
    """One column of a study: a method with settings."""

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    online: bool = False
    """Whether it compares by the aspects that SC² found online, which is run before."""


@dataclass(frozen=True)
class DataSet:
    """A public set, and how a judge is told what it is about."""

    rows: Callable[[Path, int], list[dict[str, Any]]]
    task: str
    """Its name among SC²'s tasks."""
    instructions: str | None
    """What methods without such tasks are told."""


def jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def sided(better: str, worse: str, coin: random.Random) -> dict[str, str]:
    """Put the better text on a side by a coin, and say which."""
    if coin.random() < 0.5:
        return {"output_a": better, "output_b": worse, "label": "A"}
    return {"output_a": worse, "output_b": better, "label": "B"}


def hh_helpful(data: Path, seed: int) -> list[dict[str, Any]]:
    """Return the pairs of HH-RLHF's helpful test set; a few with an empty text are left out."""
    coin = random.Random(seed)  # noqa: S311 - no secret
    rows = []
    for row in jsonl(data / "hh_helpful_test" / "pairs.jsonl.gz"):
        if row["chosen"].strip() and row["rejected"].strip():
            side = sided(row["chosen"], row["rejected"], coin)
            name = str(row["idx"])
            rows.append({"id": name, "group": name, "input": row["prompt"], **side})
    coin.shuffle(rows)
    return rows


def summeval(data: Path, seed: int) -> list[dict[str, Any]]:
    """Return pairs of summaries of the same article, one of them graded higher overall.

    As in the paper the label is the higher overall score, which is the mean of the experts'
    four dimensions; equal ones are left out. Every article comes once before any comes twice.
    """
    coin = random.Random(seed)  # noqa: S311 - no secret
    articles = {doc["id"]: doc["text"] for doc in jsonl(data / "summeval12" / "docs.jsonl.gz")}
    graded: dict[str, list[tuple[float, str, str]]] = {}
    for row in jsonl(data / "summeval12" / "summaries.jsonl.gz"):
        overall = fmean(row["expert_mean"].values())
        graded.setdefault(row["id"], []).append((overall, row["model_id"], row["summary"]))
    rounds: list[tuple[int, dict[str, Any]]] = []
    for article, summaries in graded.items():
        found = [
            (max(pair), min(pair))
            for pair in combinations(summaries, 2)
            if pair[0][0] != pair[1][0]
        ]
        coin.shuffle(found)
        for turn, (better, worse) in enumerate(found):
            name = f"{article}:{better[1]}>{worse[1]}"
            side = sided(better[2], worse[2], coin)
            row = {"id": name, "group": article, "input": articles[article], **side}
            rounds.append((turn, row))
    coin.shuffle(rounds)
    return [row for _, row in sorted(rounds, key=lambda each: each[0])]


SETS = {
    "hh_helpful_test": DataSet(hh_helpful, "helpful", None),
    "summeval12": DataSet(
        summeval,
        "summary",
        "The request is an article, and the responses are summaries of it. The better one "
        "has the most important points, precisely and concisely.",
    ),
}


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
        "tables": [tables(n) for n in (1, 2, 4, 8, 12, 16)],
        "budgets": [arm for n in BUDGETS for arm in (self_consistency(n), budgeted(n))],
        "few_shot": [arm for n in (3, 5) for budget in BUDGETS for arm in few_shot(n, budget)],
    }


@dataclass(frozen=True)
class Protocol:
    """One set, one model: contestants by arm, and where their results are."""

    set: DataSet
    model: Any
    out: Path
    seed: int
    concurrency: int

    def aspects(self, corpus: list[dict[str, Any]]) -> list[str]:
        """Return the offline aspects: learned once, or fixed ones without SC²."""
        learn = getattr(langchain_judges, "learn_aspects", None)
        if learn is None:
            return list(ASPECTS)
        texts = [row[side] for row in corpus for side in ("output_a", "output_b")]
        # Kept by what they were learned from: another model or corpus is told by others.
        mark = _mark([model_identity(self.model), self.set.task, texts])
        path = self.out / f"learned_aspects-{mark}.json"
        if path.exists():
            return list(json.loads(path.read_text("utf-8"))["aspects"])
        return list(learn(self.model, texts, n=5, task=self.set.task, name=path)["aspects"])

    def contestant(self, arm: Arm) -> Contestant:
        """Return the judge of an arm, told what the set is about."""
        options = dict(arm.options)
        takes = METHODS[arm.method].defaults()
        if "task" in takes:
            options["task"] = self.set.task
        elif self.set.instructions:
            options["instructions"] = self.set.instructions
        if "seed" in takes:
            options["seed"] = self.seed
        if arm.online:
            judge = self._online(options)
            return {
                "name": arm.label,
                "method": arm.method,
                "options": options,
                "calls": 1,
                "judge": judge,
            }
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
        """Return direct prompting with the aspects that SC² found for each pair online."""
        path = self.out / "sc2 online.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        found = {row["id"]: row.get("aspects") or None for row in map(json.loads, lines)}

        def judge(pair: dict[str, Any]) -> Any:
            own = {**options, "aspects": found.get(pair["id"])}
            return load_judge("direct", self.model, **own).invoke(pair)

        # Its results are kept by its name: other aspects or another model are another judge.
        mark = _mark([model_identity(self.model), found, options])
        name = f"direct online {mark}"
        return RunnableLambda(judge, name=name).with_config(metadata={"method": name})

    def run(self, study: str, arms: list[Arm], rows: list[dict[str, Any]]) -> Comparison:
        """Run the arms that can be run, and write what the study came to."""
        known = [arm for arm in arms if ("sc2" if arm.online else arm.method) in METHODS]
        first = [arm for arm in known if not arm.online]
        comparison = self._compare(first, arms, rows)
        if len(first) < len(known):
            comparison = self._compare(known, arms, rows)
        save(comparison, self.out / f"{study}.json")
        return comparison

    def _compare(
        self, known: list[Arm], arms: list[Arm], rows: list[dict[str, Any]]
    ) -> Comparison:
        contestants = [self.contestant(arm) for arm in known]
        return compare(
            contestants,
            rows,
            budget=max((each["calls"] for each in contestants), default=0),
            skipped={arm.label: "not registered" for arm in arms if arm not in known},
            out=self.out,
            max_concurrency=self.concurrency,
        )


def _mark(told: Any) -> str:
    """Return a short hash of plain data."""
    return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()[:12]


def parted(
    pairs: list[dict[str, Any]], rows: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the pairs to judge and, of other groups, those that aspects are learned from.

    Groups are taken from the other end, so the two never meet, however many rows a later run
    asks for.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in pairs:
        groups.setdefault(row["group"], []).append(row)
    corpus: list[dict[str, Any]] = []
    wanted = min(CORPUS, len(pairs) // 2)
    while len(groups) > 1 and len(corpus) < wanted:
        _, last = groups.popitem()
        corpus += last[:EACH]
    judged = [row for row in pairs if row["group"] in groups]
    return judged[:rows], corpus[:wanted]


def main(  # noqa: PLR0913 - one parameter for each option
    model: Model,
    base_url: BaseUrl = None,
    data: Data = None,
    out: Out = Path("sc2-study"),
    limit: Limit = None,
    only: Annotated[str, typer.Option(help="Studies, with commas between.")] = "",
    sets: Annotated[str, typer.Option(help="Sets, with commas between.")] = ",".join(SETS),
    seed: Seed = 0,
    concurrency: Concurrency = None,
) -> dict[str, dict[str, Comparison]]:
    """Run the studies of SC²'s paper; the same command resumes where it stopped."""
    console = table_console()
    listed = named(sets, SETS, "--sets")
    asked = named(only, studies([]), "--only")
    # Nothing is asked before every set was found.
    pairs = {name: SETS[name].rows(inside(data, name).parent, seed) for name in listed}
    replies = Replies(out / "replies.jsonl")
    chat = sharing(resolve_model(model, base_url=base_url), replies)
    flying = in_flight(model, concurrency)
    found: dict[str, dict[str, Comparison]] = {}
    for name in listed:
        protocol = Protocol(SETS[name], chat, out / name, seed, flying)
        chosen, corpus = parted(pairs[name], limit or ROWS)
        wanted = studies(protocol.aspects(corpus))
        found[name] = {}
        for study in asked or wanted:
            comparison = found[name][study] = protocol.run(study, wanted[study], chosen)
            console.print(f"\n{name}, {study}, {len(chosen):,} pairs", style="bold")
            console.print(comparison_table(comparison))
            for arm, why in comparison["skipped"].items():
                console.print(f"{arm}: {why}")
    console.print(replies.sentence())
    return found


if __name__ == "__main__":
    program(main)()
