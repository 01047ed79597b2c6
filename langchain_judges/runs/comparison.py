"""Systems ranked by their outputs on the same tasks, and files of outputs joined."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NotRequired

from annotated_types import Ge, Gt, Lt
from typing_extensions import TypedDict

from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.describe import kind_of, metadata_of
from langchain_judges.options import with_options
from langchain_judges.rows import checks, data, texts
from langchain_judges.rows.columns import Columns, facts_in
from langchain_judges.runs import many, row_reader
from langchain_judges.runs.options import FilePath, RunLimits
from langchain_judges.runs.run_state import Judge, Rows
from langchain_judges.runs.sources import Source, source_of
from langchain_judges.verdict import NOTES, POINTS, Notes

if TYPE_CHECKING:
    from numpy.random import Generator

    from langchain_judges.metrics.inputs import Floats
    from langchain_judges.metrics.tournament import Tournament


# Fields of the row of one system that are none of a pair's: what people say of its text, and who
# wrote it.
_OF_ONE = {"output", NOTES, "system", *checks.ANNOTATIONS} - {"group", "category"}
# Rounds in which each system meets neighbours, before pairs are chosen by uncertainty.
FIRST_ROUNDS = 2


def joined(
    systems: Mapping[str, Source], columns: Columns | None = None
) -> tuple[list[dict[str, Any]], dict[str, int], Counter[str]]:
    """Join files of outputs by `input`, and by `id` too where rows have one.

    An `id` alone does not say that the task is the same: it may number the rows of a file.

    Args:
        systems: Rows with `input` and `output` by the name of the system.
        columns: Field → column, where names are unusual.

    Returns:
        A row for each input of several systems, with their fields that are a pair's, each of the
        first system that has it and as a pair names it, and the output of each system under its
        name, or None. By system the number of rows without a partner. And by field that several
        systems have the number of rows in which that of another system is a different one.

    Raises:
        InputError: A row occurs twice, or no row has a partner.
    """
    rows = {name: _by_key(name, source, columns) for name, source in systems.items()}
    number = Counter(key for own in rows.values() for key in own)
    shared = [key for key in number if number[key] > 1]
    if not shared:
        raise InputError(f"no row of {' and '.join(rows)} has the same `input` and `id`")
    table, differ = list[dict[str, Any]](), Counter[str]()
    for key in shared:
        found = [own[key] for own in rows.values() if key in own]
        # A judge of pairs is shown no source.
        notes = Notes(e for e in Notes.of(found[0]) if e["unit"] not in ("output", "source"))
        for name, own in rows.items():
            read = Notes.of(own.get(key, {}))
            notes += [{**each, "unit": name} for each in read if each["unit"] == "output"]
        kept = {f: v for own in found[::-1] for f, v in own.items() if f not in _OF_ONE}
        fields = {"reference" if f == "expected" else f: own for f, own in kept.items()}
        fields |= {n: own.get(key, {}).get("output") for n, own in rows.items()}
        table.append(fields | ({NOTES: notes} if notes else {}))
        for name in [name for name in kept if name not in ("id", "input")]:
            cells = [checks.number_in(each[name]) for each in found if name in each]
            differ[name] += any(cell != cells[0] for cell in cells)
    alone = {n: sum(number[key] == 1 for key in own) for n, own in rows.items()}
    return table, alone, +differ


def _by_key(name: str, source: Source, columns: Columns | None) -> dict[object, dict[str, Any]]:
    records, rows = row_reader.Records(source, columns, "item"), dict[object, dict[str, Any]]()
    for index, record in enumerate(source.records):
        try:
            row = records.row(record, index)
            if not row.get("input"):
                raise checks.without_field("input", row)
        except InputError as exc:
            raise InputError(f"{name}, row {index + 1}: {exc}") from exc
        # A table without ids numbers its rows: numbers of two tables must not meet.
        if record.get({**facts_in(tuple(record)), **(columns or {})}.get("id", "id")) in (None, ""):
            row.pop("id", None)
        # As data, whatever the order of their keys; of numbers of tables 1 is 1.0.
        is_data = isinstance(asked := data.spelt(row["input"]), Mapping)
        task = json.dumps(asked, sort_keys=True) if is_data else texts.transcript(row["input"])
        key = " ".join(task.split()), checks.number_in(row.get("id"))
        if key in rows:
            raise InputError(checks.KNOWN_NAMES["twice"].format(name=name, number=index + 1))
        rows[key] = row
    if rows and not any("output" in row for row in rows.values()):
        raise InputError(f"{name}: {checks.without_field('output', row)}")
    return rows


class RankOptions(RunLimits):
    """Options of `rank`.

    Attributes:
        confidence: The order is settled when the intervals of all neighbours' differences,
            jointly and over all checks at this level, exclude 0.
        batch: Comparisons between two checks of the order.
        seed: Seed of the drawn tasks, and of which system is A.
        records: A JSONL file for the verdicts; the same call resumes from it.
    """

    called: ClassVar[str] = "rank"

    confidence: Annotated[float, Gt(0), Lt(1)] = 0.95
    batch: Annotated[int, Ge(1)] = 32
    seed: Annotated[int, Ge(0)] = 0
    records: FilePath = None


class RankedTask(TypedDict):
    """A task, and what each system wrote for it.

    Attributes:
        outputs: Texts or messages by the name of the system.
        notes: How the row was read, that of an output by its system's name.
    """

    notes: NotRequired[Notes]
    id: str
    input: object
    outputs: dict[str, object]
    reference: object


class Ranked(TypedDict):
    """A system and its strength.

    Attributes:
        strength: log π; the mean is 0, and a lead of 1 gives odds of e.
        low: Lower end of its interval, at `confidence`.
        high: Upper end.
        comparisons: Its comparisons that were judged.
        parted: Whether its lead over the next system is settled; None for the last one.
        more: About how many more comparisons with the next system would settle a lead of
            this size; None where it is settled or too small.
    """

    system: str
    strength: float
    low: float
    high: float
    comparisons: int
    parted: bool | None
    more: int | None


class Ranking(TypedDict):
    """The result of a ranking; plain JSON.

    Attributes:
        systems: Strongest first.
        settled: Whether the order of all neighbours is settled.
        comparisons: Comparisons that were made.
        possible: Comparisons of all pairs of systems on all tasks.
        not_judged: Those of the made ones that have no verdict.
        calls: Replies that the comparisons took, in earlier runs too.
        cost: Dollars of these with a known price; None without prices.
        over_budget: Whether a limit ended it; the same call with `records` then resumes.
    """

    systems: list[Ranked]
    settled: bool
    comparisons: int
    possible: int
    not_judged: int
    calls: int
    cost: float | None
    over_budget: bool


@with_options(RankOptions)
def rank(outputs: Rows, judge: Judge, options: RankOptions) -> Ranking:
    """Rank systems by a judge's preferences between their outputs on the same tasks.

    After a first round in which each system meets some others, pairs are drawn by the
    uncertainty of their order (Bradley–Terry), until each system's lead over the next is
    settled, a limit is reached or all pairs are compared. The intervals hold at every check:
    equal systems are called settled in at most 1 − `confidence` of rankings.

    Args:
        outputs: One row for each task: `{"input", "outputs": {system: text}}`, optionally with
            `id` and `reference`, in any form that `judge_many` takes.
        judge: A judge of pairs.
        options: Passed by name.

    Raises:
        InputError: A row has another form, or there are fewer than two systems.
        OptionError: `judge` judges single texts.

    Source: Bradley & Terry 1952; pairs are chosen by uncertainty sampling; intervals that may
    be checked at any time by Robbins 1970 (`sequential_quantile`).
    """
    if kind_of(judge) != "pair":
        raise OptionError("`rank` needs a judge of pairs")
    return _Contest(tasks_of(outputs), judge, options).run()


def tasks_of(rows: Rows) -> list[RankedTask]:
    """One task for each input, with the outputs of all systems.

    Raises:
        InputError: A row has no `input` or `outputs`.
    """
    tasks: dict[str, RankedTask] = {}
    for number, row in enumerate(source_of(rows).records, 1):
        outputs = row.get("outputs") if isinstance(row, Mapping) else None
        if not isinstance(outputs, Mapping) or not outputs or not row.get("input"):
            held = ", ".join(map(repr, row)) if isinstance(row, Mapping) else repr(row)
            raise InputError(checks.KNOWN_NAMES["ranked"].format(number=number, held=held))
        new: Any = {"id": str(row.get("id") or len(tasks)), "input": row["input"], "outputs": {}}
        new |= {"reference": row.get("reference"), "notes": Notes.of(row)}
        tasks.setdefault(repr(row["input"]), new)["outputs"] |= outputs
    return list(tasks.values())


@dataclass
class _Contest:
    """The comparisons made so far.

    Attributes:
        calls: Replies that they took; of this run, or else its verdicts, `asked` counts
            against the limit.
        cost: Their dollars; `spent` counts against the limit.
        pools: The tasks on which each pair can still be compared.
    """

    tasks: Sequence[RankedTask]
    judge: Judge
    options: RankOptions
    comparisons: int = 0
    not_judged: int = 0
    calls: int = 0
    cost: float = 0.0
    asked: int = 0
    spent: float = 0.0
    over_budget: bool = False
    pools: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def run(self) -> Ranking:
        # Loaded on use, for the metrics load scipy.
        import numpy as np

        from langchain_judges.metrics.tournament import first_pairs, next_pairs, tournament

        self.names = list(dict.fromkeys(s for task in self.tasks for s in task["outputs"]))
        size = len(self.names)
        if size < 2:
            raise InputError(f"a ranking needs two systems or more, got {self.names!r}")
        generator = np.random.default_rng(self.options.seed)
        for i, j in combinations(range(size), 2):
            both = {self.names[i], self.names[j]}
            common = [n for n, task in enumerate(self.tasks) if both <= task["outputs"].keys()]
            self.pools[i, j] = [int(n) for n in generator.permutation(common)]
        possible = sum(map(len, self.pools.values()))
        points = np.zeros((size, size))
        pairs = first_pairs(size, FIRST_ROUNDS, self._remaining(size))
        while pairs and (most := self._affordable()):
            for (i, j), share in self._outcomes(pairs[:most], generator):
                points[i, j] += share
                points[j, i] += 1 - share
            state, level = tournament(points), self.options.confidence
            if not state.unsettled(level):
                return self._ranking(state, points, possible)
            pairs = next_pairs(state, self._remaining(size), self.options.batch, generator, level)
        self.over_budget |= bool(pairs)
        return self._ranking(tournament(points), points, possible)

    def _affordable(self) -> int:
        """Number of comparisons that the limits still allow."""
        calls, dollars = self._left.values()
        if self.over_budget or (dollars is not None and dollars <= 0):
            return 0
        most = self.options.batch
        each = max(1, int(metadata_of(self.judge).get("calls", 1)))
        return most if calls is None else min(most, calls // each)

    @property
    def _left(self) -> dict[str, Any]:
        """The rest of the limits."""
        calls, dollars = self.options.max_calls, self.options.max_dollars
        left = (calls and calls - self.asked, dollars and dollars - self.spent)
        return dict(zip(("max_calls", "max_dollars"), left, strict=True))

    def _remaining(self, size: int) -> Floats:
        import numpy as np

        counts = np.zeros((size, size))
        for (i, j), pool in self.pools.items():
            counts[i, j] = counts[j, i] = len(pool)
        return counts

    def _outcomes(
        self, pairs: Sequence[tuple[int, int]], generator: Generator
    ) -> list[tuple[tuple[int, int], float]]:
        """Compare pairs of systems, each on its own task; return the first one's share."""
        orders = [pair if generator.random() < 0.5 else pair[::-1] for pair in pairs]
        own = {"records": self.options.records, **self._left}
        rows = [self._row(self.pools[p].pop(), *o) for p, o in zip(pairs, orders, strict=True)]
        with many.judge_many(self.judge, rows, **self.options.of_run(**own)) as run:
            results = [*run]
        answers = [row["verdict"]["preference"] for row in results]
        asked, over = run.summary, run.summary.not_judged["over_budget"]
        is_counted = metadata_of(self.judge).get("calls")
        self.asked += asked.calls if is_counted else asked.rows - asked.resumed
        self.spent += asked.spent
        self.calls += sum(row["verdict"]["usage"]["calls"] for row in results)
        self.cost += sum(row.get("cost") or 0.0 for row in results)
        self.over_budget |= bool(over)
        self.comparisons += len(pairs) - over
        self.not_judged += answers.count(None) - over
        return [
            (pair, POINTS[answer] if order == pair else 1 - POINTS[answer])
            for pair, order, answer in zip(pairs, orders, answers, strict=True)
            if answer is not None
        ]

    def _row(self, place: int, first: int, second: int) -> dict[str, object]:
        """The row that compares two systems on a task."""
        task, systems = self.tasks[place], [self.names[first], self.names[second]]
        others = task["outputs"].keys() - {*systems}
        notes = Notes(each for each in task.get("notes", ()) if each["unit"] not in others)
        return {
            "input": task["input"],
            "output_a": task["outputs"][systems[0]],
            "output_b": task["outputs"][systems[1]],
            "reference": task["reference"],
            "id": f"{task['id']}: {' / '.join(systems)}",
            "group": task["id"],
            "systems": systems,
            **({NOTES: notes} if notes else {}),
        }

    def _ranking(self, state: Tournament, points: Floats, possible: int) -> Ranking:
        from langchain_judges.metrics.tournament import comparisons_to_settle, sequential_quantile

        level = self.options.confidence
        reaches = sequential_quantile(state.errors, level) * state.errors
        open_pairs = set(state.unsettled(level))
        following = dict(pairwise(state.order))
        systems: list[Ranked] = []
        for own in state.order:
            strength, reach = float(state.strengths[own]), float(reaches[own])
            pair = (own, following[own]) if own in following else None
            more = comparisons_to_settle(points, pair, level) if pair in open_pairs else None
            systems.append(
                {
                    "system": self.names[own],
                    "strength": strength,
                    "low": strength - reach,
                    "high": strength + reach,
                    "comparisons": round(float(points[own].sum() + points[:, own].sum())),
                    "parted": None if pair is None else pair not in open_pairs,
                    "more": more,
                }
            )
        return {
            "systems": systems,
            "settled": not open_pairs,
            "comparisons": self.comparisons,
            "possible": possible,
            "not_judged": self.not_judged,
            "calls": self.calls,
            "cost": None if self.options.prices is None else self.cost,
            "over_budget": self.over_budget,
        }
