"""DRPE (Wu et al. 2023): tables 1 and 2, the first version's table, and panel sizes.

Sets: `cnn2022` and `bbc2022` of `goyal_news2022` (the summaries people named best and worst;
human value 1 or 0) and `summeval` of `summeval16` (two best and two worst of 16 systems; human
value the mean rating). Every summary is scored against a reference. CNN and BBC have none, so
the model, or that of `--set reference_model=NAME`, writes one for each article: three to four
sentences for CNN, one for BBC.

Figures: |Pearson| with people and Kendall's τ, with bootstrap intervals clustered by article;
`p (r)` is Williams' test and `p (τ)` a paired bootstrap, both against the judge without roles.
All methods share one cache of replies, so they judge by the same panels. Overlap scores need
the packages that `overlap.py` names; BERTScore and MoverScore take the encoder of
`--set encoder=NAME`, by default the packaged all-MiniLM-L6-v2, which is smaller than the one
the paper used. `AVG` is the mean over the sets. `--table wordings` asks in five wordings, as
the paper averages over slightly changed prompts, and gives mean and deviation of |Pearson|.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean, stdev
from typing import Any

import numpy as np
from langchain_core.prompts import ChatPromptTemplate
from pydantic import BaseModel
from scipy.stats import kendalltau

from cookbook.study.overlap import OVERLAPS, overlap
from cookbook.study.runner import Arm, Bench, Cell, Row, Rows, Table, first_groups
from cookbook.study.summaries import SUMMARIZE
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import run
from langchain_judges.asking.question import Account, Question
from langchain_judges.errors import InputError
from langchain_judges.methods.drpe.options import SETS as ROLES
from langchain_judges.methods.drpe.options import SUBJECTIVE
from langchain_judges.methods.tasks import TASKS
from langchain_judges.metrics import correlate, williams_test
from langchain_judges.rows.texts import readable
from langchain_judges.runs.table_form import by_coin

SETS = ("cnn2022", "summeval", "bbc2022")
RIVAL = "llm_score"
"""The judge without roles that every method is tested against."""
ABLATIONS = ("drpe", "no_batch", "no_clustering", "no_dynamic", "no_static")
RESAMPLES = 2000
"""Of the articles, for the p-value of τ."""
SIZES = (0, 2, 4, 6)
"""Numbers of generated roles."""
ENCODED = ("bertscore", "moverscore")
QUESTIONS = (
    TASKS["summary"]["question"],
    "Which of the two tells the most important points of the text better?",
    "Of the two, which one is the better account of what matters most in the text?",
    "The most important points of the text: which of the two sums them up better?",
    "Which of the two would you choose as the summary of the main points of the text?",
)
"""The question to judges, in five wordings."""
LENGTHS = {"cnn2022": "three to four sentences", "bbc2022": "one sentence"}
"""Of references: as long as the summaries that they are compared with."""
_REFERENCE = ChatPromptTemplate.from_messages(
    [("human", "Summarize this article in {length}.\n\n{article}")]
)


class _Summary(BaseModel):
    summary: str


def candidates(name: str, bench: Bench) -> Rows:
    """One row for each summary: A the summary, B the reference, `human` its value."""
    if bench.rows:
        return _valued(first_groups(bench.load(name), bench.limit))
    if name == "summeval":
        rows = bench.load("summeval16", form="candidates", select="extremes")
        return _valued(first_groups(rows, bench.limit))
    rule = bench.extra.get("rule", "unique")
    rows = bench.load("goyal_news2022", dataset=name, rule=rule, form="candidates")
    chosen = first_groups(rows, bench.limit)
    references = _references(name, chosen, bench)
    return _valued([{**row, "output_b": references[row["group"]]} for row in chosen])


def _valued(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{**row, "human": _value(row["label"])} for row in rows]


def _value(label: Any) -> float:
    """People's value of A: of a pair 1 where A is better, 0.5 for a tie, else 0."""
    return {"A": 1.0, "B": 0.0, "tie": 0.5}[label] if isinstance(label, str) else float(label)


def pairs(name: str, bench: Bench) -> Rows:
    """Pair the best with the worst summary, the second best with the second worst, and so on.

    Of both, `human` holds the values, A first.
    """
    if bench.rows:
        given = candidates(name, bench)
        return [{**row, "human": [row["human"], 1 - row["human"]]} for row in given]
    groups: dict[str, list[Row]] = {}
    for row in candidates(name, bench):
        groups.setdefault(row["group"], []).append(row)
    chosen = []
    for group, rows in groups.items():
        ranked = sorted(rows, key=lambda row: -row["human"])
        for better, worse in zip(ranked, reversed(ranked), strict=True):
            if better["human"] <= worse["human"]:
                break
            texts = better["output_a"], worse["output_a"]
            ids = f"{better['id']}|{worse['id']}"
            pair = by_coin(bench.seed, ids, *texts, systems=("better", "worse"))
            values = {"better": better["human"], "worse": worse["human"]}
            human = [values[system] for system in pair["systems"]]
            own = {"id": ids, "input": better["input"], "group": group, "human": human}
            chosen.append({**pair, **own})
    return chosen


def _references(name: str, rows: Rows, bench: Bench) -> Mapping[str, str]:
    """A reference for each article; what an earlier run wrote is not paid again."""
    if bench.dry:
        return {row["group"]: row["output_a"] for row in rows}
    path = bench.folder(name) / "references.json"
    known: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    model = ModelAdapter(bench.named("reference_model"))
    question = Question("study", "reference", model, _REFERENCE, _Summary, "2")
    for row in rows:
        if row["group"] in known:
            continue
        article = row["input"].removeprefix(f"{SUMMARIZE}\n\n")
        fields = {"article": article, "length": LENGTHS[name]}
        reply = run(ask(question, fields, Account(), unit=row["group"]))
        if reply.data is None:
            raise InputError(f"no reference for {row['group']}: {reply.failures}")
        known[row["group"]] = reply.data["summary"]
        path.write_text(json.dumps(known, ensure_ascii=False, indent=1), "utf-8")
    return known


def method_arm(name: str) -> Arm:
    """The arm of a preset of DRPE, or of the judge without roles."""
    method, preset = (RIVAL, "paper") if name == RIVAL else ("drpe", name)
    return Arm(name, method, {"preset": preset, "task": "summary"})


def overlap_arm(name: str, bench: Bench) -> Arm:
    """An arm that scores by overlap of words or vectors, without a judge."""
    encoder = bench.extra.get("encoder") if name in ENCODED else None

    def score(rows: Rows) -> list[float | None]:
        texts = [readable(row["output_a"]) for row in rows]
        references = [[readable(row["output_b"])] for row in rows]
        return list(overlap(name, texts, references, model=encoder))

    label = f"{name} ({encoder or 'all-MiniLM-L6-v2'})" if name in ENCODED else name
    return Arm(label, score=score)


def size_arm(panel: str, size: int) -> Arm:
    """An arm whose panel has so many generated (or subjective) roles."""
    static: Any = {"drpe": "summary", "no_static": []}.get(panel, [])
    options: dict[str, Any] = {"static": static, "dynamic": size}
    if panel == "manual":
        options = {"static": [*ROLES["summary"], *SUBJECTIVE[:size]], "dynamic": 0}
    own_views = {"common_ground": False}  # as in the papers' presets
    chosen = {"panel": options, "voting": own_views, "task": "summary"}
    return Arm(f"{panel}, {size} roles", "drpe", chosen)


def wording_arms(bench: Bench, part: str) -> list[Arm]:
    """The panel and the judge without roles, each asked in five wordings."""
    del bench, part
    chosen = []
    for own in (method_arm("drpe"), method_arm(RIVAL)):
        for number, question in enumerate(QUESTIONS, 1):
            options = {**own.options, "task": {**TASKS["summary"], "question": question}}
            chosen.append(Arm(f"{own.name}, wording {number}", own.method, options))
    return chosen


def over_wordings(
    bench: Bench, part: str, rows: Rows, results: Mapping[str, Rows]
) -> dict[str, dict[str, Cell]]:
    """Mean and deviation of |Pearson| over the wordings of each method."""
    del bench, part
    columns = {}
    for method in ("drpe", RIVAL):
        arms = [arm for arm in results if arm.startswith(f"{method}, ")]
        cells = [correlations(arm, rows, results)["|Pearson|"].value for arm in arms]
        values = [value for value in cells if value is not None]
        columns[method] = {
            "|Pearson|": Cell(fmean(values) if values else None, len(values)),
            "sd": Cell(stdev(values) if len(values) > 1 else None, len(values)),
        }
    return columns


def score_of(result: Row) -> float | None:
    """A summary's score: over valid votes, of the judge without roles, or of overlap."""
    value = result.get("value", result.get("score_norm", result.get(RIVAL)))
    return None if value is None else float(value)


def correlations(arm: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """|Pearson| and τ of an arm that scores each summary, and its tests."""
    rival = results.get(RIVAL) if arm != RIVAL else None
    return _correlations(
        [score_of(each) for each in results[arm]],
        [row["human"] for row in rows],
        [row["group"] for row in rows],
        None if rival is None else [score_of(each) for each in rival],
    )


def pair_correlations(arm: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """The figures of an arm that compares best with worst: each text's mean vote."""
    scores = [score for row in results[arm] for score in _sums(row)]
    human = [value for row in rows for value in row["human"]]
    groups = [row["group"] for row in rows for _ in row["human"]]
    rival = results.get(RIVAL) if arm != RIVAL else None
    others = None if rival is None else [score for row in rival for score in _sums(row)]
    return _correlations(scores, human, groups, others)


def _sums(row: Row) -> tuple[float | None, float | None]:
    """Both texts' sums over the valid votes."""
    sums, votes = row["verdict"]["scores"], row.get("votes")
    valid = 1 if votes is None else sum(vote["preference"] is not None for vote in votes)
    if not sums or not valid:
        return None, None
    return sums["A"] / valid, sums["B"] / valid


Scores = Sequence[float | None]


def _correlations(
    scores: Scores, human: Sequence[float], groups: Sequence[str], rival: Scores | None
) -> dict[str, Cell]:
    places = [n for n, score in enumerate(scores) if score is not None]
    x, y = [scores[n] for n in places], [human[n] for n in places]
    own = [groups[n] for n in places]
    if len(places) < 3 or len(set(x)) < 2 or len(set(y)) < 2:
        note = "scores or labels are all equal"
        return {"|Pearson|": Cell(None, len(places), note=note)}
    kinds: tuple[tuple[str, Any], ...] = (("|Pearson|", "pearson"), ("tau", "kendall"))
    cells = {label: _absolute(correlate(x, y, kind, groups=own)) for label, kind in kinds}
    return cells | ({} if rival is None else _tests(scores, rival, human, groups))


def _absolute(result: Any) -> Cell:
    """The value without its sign, as the papers print it; the interval turns with it."""
    cell = Cell.of(result)
    if cell.value is None or cell.value >= 0:
        return cell
    low, high = (None if end is None else -end for end in (cell.high, cell.low))
    return Cell(-cell.value, cell.n, low, high)


def _tests(
    scores: Scores, rival: Scores, human: Sequence[float], groups: Sequence[str]
) -> dict[str, Cell]:
    """One-sided p-values against the judge without roles (section 4.2)."""
    both = [n for n, pair in enumerate(zip(scores, rival, strict=True)) if None not in pair]
    own, other = [scores[n] for n in both], [rival[n] for n in both]
    truth, clusters = [human[n] for n in both], [groups[n] for n in both]
    r = [float(correlate(a, b)) for a, b in ((own, truth), (other, truth), (own, other))]
    if len(both) < 4 or any(value != value for value in r):
        return {}
    return {
        "p (r)": Cell(williams_test(r[0], r[1], r[2], len(both)).p, len(both)),
        "p (tau)": Cell(_tau_p(own, other, truth, clusters), len(both)),
    }


def _tau_p(own: Sequence[Any], other: Sequence[Any], truth: Any, groups: Sequence[str]) -> float:
    """The share of resampled articles in which the arm's τ is not the larger one."""
    values = np.array([own, other, truth], dtype=float)
    names = sorted(set(groups))
    members = [np.flatnonzero(np.array(groups) == name) for name in names]
    draw, worse = np.random.default_rng(0), 0
    for _ in range(RESAMPLES):
        chosen = np.concatenate([members[n] for n in draw.integers(len(names), size=len(names))])
        first, second, people = values[:, chosen]
        lead = kendalltau(first, people)[0] - kendalltau(second, people)[0]
        worse += not lead > 0
    return (1 + worse) / (RESAMPLES + 1)


def _table(title: str, names: Sequence[str], *, in_pairs: bool = False) -> Table:
    read, columns = (pairs, pair_correlations) if in_pairs else (candidates, correlations)
    return Table(
        title,
        {name: partial(read, name) for name in SETS},
        lambda bench, part: [
            overlap_arm(name, bench) if name in OVERLAPS else method_arm(name) for name in names
        ],
        columns,
        average="|Pearson|",
        more=_reference_calls,
    )


def _reference_calls(bench: Bench, part: str) -> dict[str, int]:
    """The references that are written: one for each article that has none."""
    if part not in LENGTHS:
        return {}
    return {"references": len({row["group"] for row in candidates(part, bench)})}


TABLES = {
    "1": _table("Correlation with people", [*OVERLAPS, RIVAL, "drpe"]),
    "2": _table("Ablations", [RIVAL, *ABLATIONS]),
    "v1": _table(
        "The first version: best against worst", [RIVAL, "manual", "drpe_v1"], in_pairs=True
    ),
    "sizes": Table(
        "Roles beside the static ones",
        {name: partial(candidates, name) for name in SETS},
        lambda bench, part: [
            size_arm(panel, size)
            for panel in ("drpe", "no_static", "manual")
            for size in SIZES
            if size or panel != "no_static"  # a panel of nobody
        ],
        correlations,
        more=_reference_calls,
    ),
    "wordings": Table(
        "Five wordings, mean and deviation",
        {name: partial(candidates, name) for name in SETS},
        wording_arms,
        correlations,
        after=over_wordings,
        more=_reference_calls,
    ),
}
