"""SC² (Yan et al. 2023): tables 1 to 6 and figures 3 and 4 with any models.

Sets: `hh_helpful_test` (people's preferences between two answers) and `summeval12` (the better
graded of two summaries, in place of the paper's CNN/DM). Pairs that people found equal are left
out. The
offline aspects are learned from fifty pairs of other groups than those that are judged; another
model, seed or set learns its own. `--set comparison_model=NAME` finds aspects, makes tables and
compares them, while the model decides which text is preferred, as in the paper.

All arms ask as the paper does (`wording="paper"`) and share their tables with a model that
takes a seed; of others each arm samples tables of its own.

`accuracy` counts a pair that was not judged as wrong, as the paper does; `comparisons` is what
Table 2 counts as calls. Figure 4, the human
study: `python -m cookbook.study.form make OUT/MODEL/PART`.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping
from functools import partial
from statistics import fmean
from typing import Any, cast

from langchain_core.runnables import RunnableLambda

from cookbook.study.runner import Arm, Bench, Cell, Row, Rows, Table, first_groups
from langchain_judges import learn_aspects, load_judge
from langchain_judges.asking.models import model_identity
from langchain_judges.methods.registry import METHODS
from langchain_judges.metrics import accuracy
from langchain_judges.rows.texts import readable
from langchain_judges.runs.table_form import NO_TEXT
from langchain_judges.verdict import add_usage, no_usage

TASKS = {"hh_helpful_test": "helpful", "summeval12": "summary"}
"""The task of each set; of others `--set task=NAME`."""
ROWS, CORPUS, EACH = 500, 50, 5
"""Pairs that are judged, those that aspects are learned from, and most of these of a group."""
BUDGETS = (8, 15, 24)
"""Calls for a pair (Table 4)."""
SIZES = (1, 2, 4, 8, 12, 16)
"""Numbers of tables (Figure 3)."""
SEARCH = ("table", "match")
"""Steps whose tokens are the decoded length of Table 2."""
STAND_IN = ["Correctness", "Completeness", "Clarity", "Relevance", "Tone"]
"""Aspects of a plan in which nothing is asked."""


def dealt(rows: Iterable[Row], seed: int) -> list[dict[str, Any]]:
    """Draw an order in which every group comes once before any comes twice.

    A coin says which text is A.
    """
    coin = random.Random(seed)  # noqa: S311 - no secret
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sides = row["output_a"], row["output_b"]
        if row["label"] not in ("A", "B") or NO_TEXT in sides:
            continue
        pair = {name: row[name] for name in ("id", "group", "input", "label")}
        if coin.random() < 0.5:
            sides = sides[1], sides[0]
            pair["label"] = "BA"["AB".index(row["label"])]
        pair |= {"output_a": sides[0], "output_b": sides[1]}
        groups.setdefault(row["group"], []).append(pair)
    turns: list[tuple[int, dict[str, Any]]] = []
    for own in groups.values():
        coin.shuffle(own)
        turns += enumerate(own)
    coin.shuffle(turns)
    return [pair for _, pair in sorted(turns, key=lambda each: each[0])]


def parted(pairs: Rows, rows: int, most: int = CORPUS) -> tuple[Rows, Rows]:
    """The pairs to judge and, of other groups, those that aspects are learned from.

    Groups are taken from the other end, so that the two never meet, however many rows a later
    run asks for.
    """
    groups: dict[str, list[Row]] = {}
    for row in pairs:
        groups.setdefault(row["group"], []).append(row)
    corpus: list[Row] = []
    size = min(most, len(pairs) // 2)
    while len(groups) > 1 and len(corpus) < size:
        _, last = groups.popitem()
        corpus += last[:EACH]
    return [row for row in pairs if row["group"] in groups][:rows], corpus[:size]


def read(part: str, bench: Bench) -> tuple[Rows, Rows]:
    """The judged pairs of a set and those that aspects are learned from."""
    pairs = dealt(bench.load(part, seed=bench.seed), bench.seed)
    corpus = int(bench.extra.get("corpus", CORPUS))
    rows, corpus_rows = parted(pairs, ROWS, corpus)
    return first_groups(rows, bench.limit), corpus_rows


def judged_pairs(part: str, bench: Bench) -> Rows:
    """Judge the pairs, and keep them for the form of the human study."""
    rows, _ = read(part, bench)
    if not bench.dry:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (bench.folder(part) / "pairs.jsonl").write_text(lines, "utf-8")
    return rows


def task_of(bench: Bench, part: str) -> str:
    """The task of a set's preference."""
    return TASKS.get(part) or bench.extra.get("task", "helpful")


def aspects(bench: Bench, part: str) -> list[str]:
    """The offline aspects of a set, learned once by what they are learned from."""
    if bench.dry:
        return STAND_IN
    model, task = bench.named("comparison_model"), task_of(bench, part)
    sides = ("output_a", "output_b")
    texts = [readable(row[side]) for row in read(part, bench)[1] for side in sides]
    mark = mark_of([model_identity(model), task, texts])
    path = bench.folder(part) / f"learned_aspects-{mark}.json"
    if path.exists():
        return list(json.loads(path.read_text("utf-8"))["aspects"])
    return list(learn_aspects(model, texts, n=5, task=task, path=path)["aspects"])


def mark_of(settings: Any) -> str:
    """A short hash of plain data."""
    return hashlib.sha256(json.dumps(settings, default=str).encode()).hexdigest()[:12]


def arm(name: str, method: str, **options: Any) -> Arm:
    """An arm; `aspects=True` stands for the learned ones of the part."""

    def make(bench: Bench, part: str) -> Any:
        return load_judge(method, bench.model, **_options(method, options, bench, part))

    return Arm(name, make=make)


def _options(method: str, options: Mapping[str, Any], bench: Bench, part: str) -> dict[str, Any]:
    own = {"wording": "paper", **options, "task": task_of(bench, part)}
    if own.get("aspects") is True:
        own["aspects"] = aspects(bench, part)
    if "seed" in METHODS[method].defaults():
        own["seed"] = bench.seed
    if method == "sc2" and bench.extra.get("comparison_model"):
        own["comparison_model"] = bench.named("comparison_model")
    return own


ONLINE = arm("sc2 online", "sc2", samples=8)


def direct_online(bench: Bench, part: str) -> Any:
    """Direct prompting with the aspects that SC² found for each pair online.

    What they cost is the judge's cost too. It runs after SC² online.
    """
    options = _options("direct", {}, bench, part)
    if bench.dry:
        return load_judge("direct", bench.model, **options, aspects=STAND_IN)
    rows = bench.judged(ONLINE, part, judged_pairs(part, bench))
    found = {row["id"]: row.get("aspects") or None for row in rows}
    costs = {row["id"]: row["verdict"]["usage"]["by_step"].get("aspects") for row in rows}

    def judge(pair: dict[str, Any]) -> Any:
        own = load_judge("direct", bench.model, **options, aspects=found.get(pair["id"]))
        result = own.invoke(pair)
        extra = no_usage()
        if step := costs.get(pair["id"]):
            for name in ("calls", "input_tokens", "cached_tokens", "output_tokens"):
                extra[name] = step[name]
            extra["by_step"] = {"aspects": cast("Any", step)}
        usage = add_usage([result["verdict"]["usage"], extra])
        return {**result, "verdict": {**result["verdict"], "usage": usage}}

    # Its results are kept by its name: other aspects or another model are another judge.
    name = f"direct online {mark_of([model_identity(bench.model), found, options])}"
    return RunnableLambda(judge, name=name).with_config(metadata={"method": name})


def tables(n: int) -> Arm:
    """SC² with so many tables and the learned aspects."""
    return arm(f"sc2 C{n}", "sc2", samples=n, aspects=True)


def inference(how: str) -> Arm:
    """SC² with eight tables and one way to find the best."""
    return arm(f"sc2 {how}", "sc2", samples=8, aspects=True, inference=how)


def budgeted(budget: int, shots: int = 0) -> list[Arm]:
    """Self-consistency and SC² within a number of calls."""
    end = f" {shots}s" if shots else ""
    few = {"shots": shots} if shots else {}
    own = {"samples": budget // 2, "aspects": True}  # a table and a match for each
    return [
        arm(f"cot_sc {budget}{end}", "cot_sc", samples=budget, **few),
        arm(f"sc2 of {budget}{end}", "sc2", **own, **few),
        # The paper's 15: eight tables and seven comparisons, and the preference apart.
        *([arm(f"sc2 of 8 + 7{end}", "sc2", samples=8, aspects=True, **few)] * (budget == 15)),
    ]


OFFLINE = arm("direct aspects", "direct", aspects=True)


def figures(name: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """Accuracy, and the tokens that were decoded, in all and for tables and matches."""
    own = results[name]
    usages = [row["verdict"]["usage"] for row in own]
    groups = [row["group"] for row in rows]
    search = [
        sum(usage["by_step"].get(step, {}).get("output_tokens", 0) for step in SEARCH)
        for usage in usages
    ]
    labels = [row["label"] for row in rows]
    return {
        "accuracy": Cell.of(accuracy(own, labels, errors="wrong", groups=groups)),
        "decoded": Cell(fmean(usage["output_tokens"] for usage in usages), len(usages)),
        "decoded in search": Cell(fmean(search), len(search)),
        "comparisons": Cell(fmean(map(_comparisons, own)), len(own)),
    }


def _comparisons(row: Row) -> float:
    """Number of comparisons of tables for a pair."""
    return float(sum(match["asked"] for match in row.get("bracket") or []))


def sizes(name: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """Size of a set, and the number of words of its texts."""
    del name, results
    groups = len({row["group"] for row in rows})
    sides = ("output_a", "output_b")
    words = [len(readable(row[side]).split()) for row in rows for side in sides]
    return {
        "pairs": Cell(len(rows), len(rows)),
        "groups": Cell(groups, len(rows)),
        "words of a text": Cell(fmean(words), len(words)),
    }


def everything(part: str, bench: Bench) -> Rows:
    """Every pair of a set that can be judged."""
    return dealt(bench.load(part, seed=bench.seed), bench.seed)


PARTS = {part: partial(judged_pairs, part) for part in TASKS}


def _table(title: str, arms: list[Arm]) -> Table:
    return Table(title, PARTS, lambda bench, part: arms, figures, more=_learning_calls)


def _learning_calls(bench: Bench, part: str) -> dict[str, int]:
    """The calls that learn the aspects of a set: one for each text, and the merging."""
    return {"aspects": 2 * len(read(part, bench)[1]) + 1}


TABLES = {
    "1": _table(
        "Accuracy of all methods",
        [
            arm("direct", "direct"),
            OFFLINE,
            arm("cot", "cot"),
            arm("cot 1-shot", "cot", shots=1),
            arm("cot_sc", "cot_sc", samples=8),
            tables(8),
        ],
    ),
    "2": _table(
        "Ways to find the best table", [inference("random"), tables(8), inference("exact")]
    ),
    "3": _table(
        "Aspects online and offline",
        [OFFLINE, ONLINE, Arm("direct online", make=direct_online), tables(8)],
    ),
    "4": _table("Budgets of calls", [each for n in BUDGETS for each in budgeted(n)]),
    "5": _table("Few shots", [each for s in (3, 5) for n in BUDGETS for each in budgeted(n, s)]),
    "6": Table(
        "Sizes of the sets",
        {part: partial(everything, part) for part in TASKS},
        lambda bench, part: [Arm("all", score=lambda rows: [1.0 for _ in rows])],
        sizes,
    ),
    "figure 3": _table("Accuracy by number of tables", [tables(n) for n in SIZES]),
}
