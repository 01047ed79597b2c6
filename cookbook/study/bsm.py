"""Branch-Solve-Merge (Saha et al. 2023, section 4): tables 1 to 11 with any models.

Rows: `mtbench_human200` in the data folder (one majority label a pair, first turns), or a file
`votes.jsonl` there with `human_votes`, `turn`, `category` and `systems` on each pair. Figures:

- Ag, agreement: every person's vote is matched with the verdict, a tie with a tie; a pair that
  was not judged matches nothing. Table 9 takes the plurality of a pair's votes, once.
- PB, position bias: pairs whose two orders disagree, into or out of a tie too.
- LB, length bias: of the votes for the shorter answer (characters of the judged turn), those
  where the verdict is not that answer.

Table 2 keeps the pairs with an answer by the judge (`--set self=NAME`) and divides by their
number; the paper divides PB by all 300 pairs. Tables 7, 10 and 11 take 100 drawn pairs. Table 6
is of stories: `AP`, the share of texts with every concept, and `MC`, the mean share of missing
ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import combinations
from statistics import fmean
from typing import Any

from cookbook.study.runner import Arm, Bench, Cell, Row, Rows, Table
from langchain_judges.errors import InputError
from langchain_judges.metrics import (
    length_bias,
    majority_agreement,
    mean,
    rate,
    vote_agreement,
)
from langchain_judges.rows.texts import judged
from langchain_judges.writing.coverage import missing

ARMS = {
    "relative": Arm("relative", "relative"),
    "absolute": Arm("absolute", "absolute"),
    "plan & solve": Arm("plan & solve", "plan_solve"),
    "self-consistency": Arm("self-consistency", "relative_sc"),
    "BSM": Arm("BSM", "bsm"),
    "BSM + self-consistency": Arm("BSM + self-consistency", "bsm", {"samples": 5}),
    "BSM 1-10": Arm("BSM 1-10", "bsm", {"scale": (1, 10)}),
    **{
        f"BSM {n} branches": Arm(f"BSM {n} branches", "bsm", {"max_criteria": n})
        for n in (2, 3, 4)
    },
}
"""A judge for each line of the tables, by its name."""


def votes_of(row: Row) -> list[Any]:
    """Return what people said of a pair."""
    return list(row.get("human_votes") or [row["label"]])


def read_pairs(bench: Bench) -> list[dict[str, Any]]:
    """Return the pairs of MT-Bench."""
    path = bench.data / "votes.jsonl" if bench.data else None
    if path is not None and path.exists():
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [{"turn": 1, **row} for row in bench.load("mtbench_human200")]


def of_category(
    category: str, bench: Bench, *, drawn: int | None = None, own: bool = False
) -> Rows:
    """Return a category's pairs, the first of them or a number that a seed draws."""
    rows = [row for row in read_pairs(bench) if row["category"] == category]
    if own:
        if "self" not in bench.extra:
            raise InputError("table 2 needs `--set self=NAME`, the judge among the systems")
        rows = [row for row in rows if bench.extra["self"] in row["systems"]]
    if drawn is not None:
        lots = sorted(rows, key=lambda row: _lot(bench.seed, row))[:drawn]
        ids = {row["id"] for row in lots}
        rows = [row for row in rows if row["id"] in ids]
    return rows[: bench.limit]


def _lot(seed: int, row: Row) -> bytes:
    return sha256(f"{seed}|{row['id']}".encode()).digest()


def with_references(category: str, bench: Bench) -> Rows:
    """Return pairs with GPT-4's reference answers, which FastChat publishes."""
    references = {
        int(question["group"]): question["references"]
        for question in bench.load("fastchat_mtbench")
        if question.get("references")
    }
    rows = []
    for row in of_category(category, bench):
        own = references.get(int(row["group"]))
        rows.append({**row, "reference": own[row["turn"] - 1]} if own else dict(row))
    return rows


def figures(
    arm: str, rows: Rows, results: Mapping[str, Rows], *, majority: bool = False
) -> dict[str, Cell]:
    """Return Ag, PB and LB, over all turns and for each where there are two."""
    own = results[arm]
    turns = sorted({row["turn"] for row in rows})
    parts: dict[str, list[int]] = {"": list(range(len(rows)))}
    if len(turns) > 1:
        for turn in turns:
            parts[f", turn {turn}"] = [n for n, row in enumerate(rows) if row["turn"] == turn]
    columns: dict[str, Cell] = {}
    for suffix, places in parts.items():
        chosen, verdicts = [rows[n] for n in places], [own[n] for n in places]
        columns |= {
            f"{name}{suffix}": cell
            for name, cell in _figures(chosen, verdicts, majority).items()
        }
    return columns


def _figures(rows: Sequence[Row], results: Sequence[Row], majority: bool) -> dict[str, Cell]:
    votes = [votes_of(row) for row in rows]
    questions = [row.get("group", row["id"]) for row in rows]
    agree = majority_agreement if majority else vote_agreement
    lengths = [[len(judged(row[f"output_{side}"])) for row in rows] for side in "ab"]
    valid = [each["verdict"] for each in results if each["verdict"]["preference"]]
    return {
        "Ag": Cell.of(agree(results, votes, groups=questions)),
        "PB": Cell.of(rate(verdict["flipped"] for verdict in valid)),
        "LB": Cell.of(length_bias(results, votes, *lengths)),
    }


def plan_likeness(rows: Rows, results: Rows) -> dict[str, float | None]:
    """Return how alike the plans of two questions are: Jaccard, within and between categories.

    Likeness is of the names of the criteria; a question counts once (section 4.3).
    """
    plans: dict[Any, tuple[str, set[str]]] = {}
    for row, result in zip(rows, results, strict=True):
        names = {each["name"].casefold() for each in result.get("criteria") or []}
        if names:
            key = row["category"], row.get("group"), row["turn"]
            plans.setdefault(key, (row["category"], names))
    indices: dict[str, list[float]] = {"within": [], "between": []}
    for (one, mine), (other, theirs) in combinations(plans.values(), 2):
        index = len(mine & theirs) / len(mine | theirs)
        indices["within" if one == other else "between"].append(index)
    return {name: fmean(each) if each else None for name, each in indices.items()}


def _pairs(title: str, categories: Sequence[str], arms: Sequence[str], **how: Any) -> Table:
    majority = how.pop("majority", False)
    read = how.pop("read", of_category)
    return Table(
        title,
        {name: partial(read, name, **how) for name in categories},
        lambda bench, part: [ARMS[name] for name in arms],
        partial(figures, majority=majority),
        needs=frozenset({"self"} if how.get("own") else ()),
    )


# Stories (table 6).

STORIES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "zero-shot": ("single_prompt", {"preset": "zero_shot"}),
    "plan & solve": ("single_prompt", {"preset": "plan_solve"}),
    "self-consistency": ("single_prompt", {"preset": "self_consistency"}),
    "BSM": ("branch", {"preset": "paper"}),
}


def read_lists(bench: Bench) -> Rows:
    """Return a hundred lists of ten concepts, drawn by the seed."""
    return bench.load("commongen_hard", seed=bench.seed)[: bench.limit]


def _story_arms(bench: Bench, part: str) -> list[Arm]:
    from langchain_judges.writing.registry import load_writer

    def make(name: str, bench: Bench, part: str) -> Any:
        del part
        method, options = STORIES[name]
        return load_writer(method, bench.model, **options)

    del bench, part
    return [Arm(name, make=partial(make, name)) for name in STORIES]


def story_figures(arm: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """Return the share of texts with every concept, and the mean share that is missing.

    A text that was not written lacks every concept.
    """
    shares = [
        len(missing(row["concepts"], result["text"] or "")) / len(row["concepts"])
        for row, result in zip(rows, results[arm], strict=True)
    ]
    return {
        "AP": Cell.of(rate(share == 0 for share in shares)),
        "MC": Cell.of(mean(shares)),
    }


BOTH = ("relative", "BSM")
TABLES = {
    "1": _pairs(
        "All methods on writing",
        ["writing"],
        ["relative", "absolute", "plan & solve", "self-consistency", "BSM"],
    ),
    "2": _pairs("Self-enhancement: one answer by the judge", ["writing"], BOTH, own=True),
    "3": _pairs("Writing, by model", ["writing"], BOTH),
    "4": _pairs("With references", ["coding", "reasoning", "math"], BOTH, read=with_references),
    "5": _pairs("Other categories", ["roleplay", "extraction", "stem", "humanities"], BOTH),
    "6": Table("Constrained writing", {"stories": read_lists}, _story_arms, story_figures),
    "7": _pairs("Reasoning without references", ["reasoning"], BOTH, drawn=100),
    "8": _pairs("Samples of each branch", ["writing"], ["BSM", "BSM + self-consistency"]),
    "9": _pairs("Majority of the votes on writing", ["writing"], BOTH, majority=True),
    "10": _pairs(
        "Branching factor 2 to 5",
        ["writing"],
        [*(f"BSM {n} branches" for n in (2, 3, 4)), "BSM"],
        drawn=100,
    ),
    "11": _pairs("Scale of the scores", ["writing"], ["BSM", "BSM 1-10"], drawn=100),
}
