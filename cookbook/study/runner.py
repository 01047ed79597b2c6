"""What every study shares: tables of arms, one cache of replies, cells beside the paper's.

A table has parts (sets of rows), arms (judges) and columns (figures). The runner judges each
part by each arm, once for all tables that need it, and writes into the study's folder:

- `manifest.json`: models, wordings, seed, limit, versions and a hash of the rows;
- `replies.jsonl`: every different request with its reply, shared by all arms and runs;
- `MODEL/PART/ARM.jsonl`: the verdicts; `results.json`: every cell with n and interval.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from math import isnan
from pathlib import Path
from statistics import fmean, stdev
from threading import Lock
from typing import Any, Self

import yaml
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation
from rich.console import Console
from rich.table import Table as Screen

from cookbook.study.sets import load
from langchain_judges import judge_many, load_judge, resolve_model
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.registry import METHODS
from langchain_judges.rows.files import read_table
from langchain_judges.writing.writers import WRITERS, load_writer

Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True)
class Cell:
    """One figure: its value, how many cases it rests on, and its 95 % interval."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    note: str = ""

    @classmethod
    def of(cls, result: Any) -> Cell:
        """A statistic of `langchain_judges.metrics` as a cell."""
        if result.reason:
            return cls(None, result.n, note=result.reason)
        low, high = result.interval or (None, None)
        return cls(float(result), result.n, low, high)

    def __str__(self) -> str:
        """The cell as a table shows it."""
        if self.value is None:
            return "-"
        ends = "" if self.low is None else f" ({self.low:.3f} to {self.high:.3f})"
        return f"{self.value:.3f}{ends}, n {self.n:,}"


Figures = Mapping[str, Cell]


@dataclass(frozen=True)
class Arm:
    """One line of a table: a method with options, or a judge made by hand."""

    name: str
    method: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[Bench, str], Any] | None = None
    """Makes the judge of a part instead."""
    score: Callable[[Rows], list[float | None]] | None = None
    """Scores the rows without a judge, such as by overlap of words."""

    def judge(self, bench: Bench, part: str) -> Any:
        """The judge; what it draws is of the round's seed."""
        if self.make is not None:
            return self.make(bench, part)
        methods = WRITERS if self.method in WRITERS else METHODS
        load = load_writer if self.method in WRITERS else load_judge
        own = dict(self.options)
        if "seed" in methods[self.method].defaults():
            own["seed"] = bench.seed
        return load(self.method, bench.model, **own)


@dataclass(frozen=True)
class Table:
    """One table or figure of a paper.

    Args:
        title: What it shows.
        parts: The rows of each part, by name.
        arms: The lines of a part.
        columns: The figures of an arm: from the rows and, in their order, its results and
            those of every other arm of the part.
        note: A sentence below the table.
        needs: Options of the study without which the table is left out.
        after: More figures by arm, which need more judgments.
        more: What else is asked, with its most calls, beside the arms.
        average: The column whose mean over the parts is a part of its own, `AVG`.
    """

    title: str
    parts: Mapping[str, Callable[[Bench], Rows]]
    arms: Callable[[Bench, str], Sequence[Arm]]
    columns: Callable[[str, Rows, Mapping[str, Rows]], dict[str, Cell]]
    note: str = ""
    needs: frozenset[str] = frozenset()
    after: (
        Callable[[Bench, str, Rows, Mapping[str, Rows]], Mapping[str, Mapping[str, Cell]]] | None
    ) = None
    more: Callable[[Bench, str], Mapping[str, int]] | None = None
    average: str = ""


@dataclass
class Bench:
    """Surroundings of a study: a model, its folder, and limits."""

    model: Any
    name: str
    out: Path
    data: Path | None = None
    limit: int | None = None
    seed: int = 0
    concurrency: int = 16
    max_calls: int | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    """Options of one paper alone, such as `self=gpt-4`."""
    rows: Path | None = None
    """A file of rows that is read in place of every public set."""
    dry: bool = False
    """Ask nothing: what would need replies takes a stand-in of the same size."""
    results: dict[tuple[str, str, str], Rows] = field(default_factory=dict)
    sets: dict[tuple[str, str], Rows] = field(default_factory=dict)
    """Public sets, by name and options: each table and arm reads some of them again."""

    def folder(self, *names: str) -> Path:
        """A folder of this model's results."""
        path = self.out.joinpath(slug(self.name), *map(slug, names))
        path.mkdir(parents=True, exist_ok=True)
        return path

    def load(self, name: str, **options: Any) -> list[dict[str, Any]]:
        """Read a public set from the data folder, or from the hub where that has it.

        Rows of a caller's own stand in for any set.
        """
        if self.rows is not None:
            return [own_row(number, row, self.rows) for number, row in self._own()]
        folder = self.data / name if self.data else None
        if folder is not None and not folder.exists():
            raise InputError(f"there is no {folder}: `--data` is the folder of the sets")
        key = name, repr(options)
        if key not in self.sets:
            self.sets[key] = load(name, folder, **options)
        return [dict(row) for row in self.sets[key]]

    def _own(self) -> Iterable[tuple[int, Row]]:
        assert self.rows is not None  # noqa: S101 - `load` has looked
        return enumerate(read_table(self.rows), 1)

    def named(self, name: str) -> Any:
        """The model that an option names; without it, the one that is studied."""
        chosen = self.extra.get(name)
        return sharing(resolve_model(chosen), self.model.cache) if chosen else self.model

    def says(self, name: str) -> bool:
        """Whether an option is yes; without it, it is no.

        Raises:
            OptionError: It is neither yes nor no.
        """
        value = self.extra.get(name, "no").casefold()
        if value not in {"yes", "no"}:
            raise OptionError(f"`--set {name}` takes yes or no, got {self.extra[name]!r}")
        return value == "yes"

    def judged(self, arm: Arm, part: str, rows: Rows) -> Rows:
        """Judge the rows of a part by an arm, once; in the order of the rows."""
        key = (part, arm.name, hash_of(rows))
        if key not in self.results:
            if arm.score is not None:
                self.results[key] = [{"value": value} for value in arm.score(rows)]
            else:
                path = self.folder(part) / f"{slug(arm.name)}.jsonl"
                run = judge_many(
                    arm.judge(self, part),
                    [_asked(row) for row in rows],
                    records=path,
                    max_concurrency=self.concurrency,
                    max_calls=self.max_calls,
                )
                by_id = {row["id"]: row for row in run}
                self.results[key] = [by_id[row["id"]] for row in rows if row["id"] in by_id]
        return self.results[key]


def own_row(number: int, row: Row, path: Path) -> dict[str, Any]:
    """A row of a caller's own file with what the public sets have."""
    name = str(row.get("id") or number)
    return {"group": name, "turn": 1, "category": path.stem, **row, "id": name}


def hash_of(rows: Rows) -> str:
    """A hash of rows: equal rows are judged once for all tables."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()


def _asked(row: Row) -> dict[str, Any]:
    """A row without what only the figures need."""
    return {name: row[name] for name in row if name != "human"}


def slug(name: str) -> str:
    """A name as a file is called."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-").lower() or "x"


def first_groups(rows: Iterable[Row], limit: int | None) -> list[dict[str, Any]]:
    """The rows of the first so many groups."""
    groups: set[Any] = set()
    chosen = []
    for row in rows:
        group = row.get("group", row["id"])
        if limit is None or group in groups or len(groups) < limit:
            groups.add(group)
            chosen.append(dict(row))
    return chosen


def usage_of(results: Rows) -> dict[str, Cell]:
    """Calls and tokens for a row, as columns."""
    usages = [row["verdict"]["usage"] for row in results if "verdict" in row]
    if not usages:
        return {}
    n = len(usages)
    tokens = [usage["input_tokens"] + usage["output_tokens"] for usage in usages]
    return {
        "calls": Cell(fmean(usage["calls"] for usage in usages), n),
        "tokens": Cell(fmean(tokens), n),
    }


def failed(results: Rows) -> int:
    """Number of rows that were not judged."""
    verdicts = [row["verdict"] for row in results if "verdict" in row]
    return sum(v.get("preference", v.get("label")) is None for v in verdicts)


class PricedReply(AIMessage):
    """A reply whose copy costs what it cost when it came.

    LangChain makes the copy of what a cache holds, and sets its cost to zero.
    """

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The reply as it came."""
        return super().model_copy(deep=deep)


class Replies(BaseCache):
    """A model's replies, shared by all arms of a study and by all runs of it.

    Arms that ask the same share what was replied, so their comparison is paired. A reply from
    here has the usage that it had when it came: each arm costs what it would alone.

    Args:
        path: The file, one JSON object for each reply; a torn last line is cut off.
    """

    def __init__(self, path: Path) -> None:
        """Read what earlier runs wrote."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_bytes() if path.exists() else b""
        end = text.rfind(b"\n") + 1
        if end < len(text):
            os.truncate(path, end)
        self._path, self._lock = path, Lock()
        lines = map(json.loads, text[:end].decode().splitlines())
        self._messages: dict[str, Any] = {row["request"]: row["messages"] for row in lines}

    def __len__(self) -> int:
        """Number of different requests that were answered."""
        return len(self._messages)

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        """The reply to a request, or None."""
        messages = self._messages.get(_request(prompt, llm_string))
        if messages is None:
            return None
        replies = messages_from_dict(messages)
        return [ChatGeneration(message=PricedReply(**each.model_dump())) for each in replies]

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        """Write a reply down."""
        request = _request(prompt, llm_string)
        messages = [message_to_dict(each.message) for each in return_val]
        line = json.dumps({"request": request, "messages": messages}, default=str)
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            self._messages[request] = json.loads(line)["messages"]

    def clear(self, **_: Any) -> None:
        """Forget all replies."""
        with self._lock:
            self._path.unlink(missing_ok=True)
            self._messages.clear()


def _request(prompt: str, llm_string: str) -> str:
    return hashlib.sha256(f"{llm_string}\n{prompt}".encode()).hexdigest()


def sharing(model: BaseChatModel, replies: Replies) -> BaseChatModel:
    """A model that answers an equal request from the replies that came before."""
    return model.model_copy(update={"cache": replies})


def bare(name: str) -> str:
    """A name without what stands in brackets behind it: an encoder, a condition."""
    return name.partition(" (")[0]


@cache
def printed(paper: str) -> Mapping[str, Any]:
    """The cells that a paper prints: table → model → part → arm → column → value."""
    cells = yaml.safe_load(Path(__file__).with_name("cells.yaml").read_text("utf-8"))
    return dict(cells.get(paper) or {})


def paper_cells(paper: str, number: str, part: str, arm: str, column: str) -> dict[str, float]:
    """A cell as the paper prints it, of each of its models."""
    found = {}
    for model, parts in (printed(paper).get(number) or {}).items():
        value = ((parts.get(bare(part)) or {}).get(bare(arm)) or {}).get(column)
        if value is not None:
            found[model] = float(value)
    return found


def run_table(paper: str, number: str, table: Table, bench: Bench) -> list[dict[str, Any]]:
    """Judge what a table needs with one model, and return its cells."""
    cells: list[dict[str, Any]] = []
    for part, read in table.parts.items():
        rows = read(bench)
        results = {arm.name: bench.judged(arm, part, rows) for arm in table.arms(bench, part)}
        after = table.after(bench, part, rows, results) if table.after else {}
        print_of = "" if bench.rows else paper  # a caller's own rows are in no paper
        for arm in dict.fromkeys([*results, *after]):
            own, figures = results.get(arm, []), dict(after.get(arm, {}))
            if arm in results:
                figures = table.columns(arm, rows, results) | figures | usage_of(own)
            cells += [
                _cell(print_of, number, bench.name, part, arm, column, cell, failed(own))
                for column, cell in figures.items()
            ]
    averaged = [each for each in cells if each["column"] == table.average]
    if len(table.parts) == 1:
        return cells
    for arm in dict.fromkeys(each["arm"] for each in averaged):
        own_cells = [each for each in averaged if each["arm"] == arm]
        values = [each["value"] for each in own_cells if each["value"] is not None]
        mean = Cell(fmean(values) if len(values) == len(table.parts) else None, len(values))
        unjudged = sum(each["not_judged"] for each in own_cells)
        name = bench.name
        cells.append(_cell(paper, number, name, "AVG", arm, table.average, mean, unjudged))
    return cells


def _cell(  # noqa: PLR0913 - the fields of a cell
    paper: str, number: str, model: str, part: str, arm: str, column: str, cell: Cell, lost: int
) -> dict[str, Any]:
    if cell.value is not None and isnan(cell.value):
        cell = Cell(None, cell.n, note="not defined for these rows")  # JSON has no NaN
    return {
        "table": number,
        "model": model,
        "part": part,
        "arm": arm,
        "column": column,
        **cell.__dict__,
        "paper": paper_cells(paper, number, part, arm, column),
        "not_judged": lost,
    }


def over_rounds(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """The mean of each cell over rounds of other seeds; its note has the deviation."""
    places = ("table", "model", "part", "arm", "column")
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for each in rounds:
        for cell in each:
            cells.setdefault(tuple(cell[place] for place in places), []).append(cell)
    merged = []
    for own in cells.values():
        values = [cell["value"] for cell in own if cell["value"] is not None]
        spread = f"sd {stdev(values):.4f} over {len(values)}" if len(values) > 1 else ""
        mean = Cell(fmean(values) if values else None, own[0]["n"], note=spread)
        merged.append({**own[0], **mean.__dict__, "not_judged": own[0]["not_judged"]})
    return merged


def planned(table: Table, bench: Bench) -> list[dict[str, Any]]:
    """The cost of a table: rows and calls of each arm. Nothing is asked."""
    plan: list[dict[str, Any]] = []
    for part, read in table.parts.items():
        rows = read(bench)
        for name, calls in (table.more(bench, part) if table.more else {}).items():
            plan.append({"part": part, "arm": name, "rows": [{}], "calls": calls})
        for arm in table.arms(bench, part):
            if arm.score is not None:
                continue
            judge = arm.judge(bench, part)
            calls = int((getattr(judge, "config", None) or {})["metadata"]["calls"])
            plan.append(
                {"part": part, "arm": arm.name, "rows": rows, "calls": calls, "judge": judge}
            )
    return plan


def manifest(
    paper: str, tables: Iterable[str], benches: Sequence[Bench], plans: Iterable[Row]
) -> dict[str, Any]:
    """The settings that decide the figures of a study."""
    rows, wordings = {}, {}
    for each in plans:
        if "judge" in each:
            name = f"{each['table']}: {each['part']}: {each['arm']}"
            metadata = (getattr(each["judge"], "config", None) or {}).get("metadata", {})
            rows[name], wordings[name] = hash_of(each["rows"]), metadata.get("prompt_version")
    first = benches[0]
    return {
        "paper": paper,
        "tables": list(tables),
        "models": [bench.name for bench in benches],
        "prompt_versions": wordings,
        "rows_sha256": rows,
        "limit": first.limit,
        "seed": first.seed,
        "options": dict(first.extra),
        "package": version("langchain-judges"),
        "commit": _commit(),
    }


def joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a folder after a run that adds tables, models or options to it.

    Raises:
        InputError: What it holds already was made otherwise.
    """
    whole: dict[str, Any] = {**new}
    for name in ("paper", "limit", "seed", "rounds", "rows", "package"):
        if old.get(name) != new.get(name):
            raise InputError(f"the folder holds a study with another {name}")
    for name in ("prompt_versions", "rows_sha256", "options"):
        mine, theirs = new[name], old.get(name, {})
        if other := sorted(key for key in mine.keys() & theirs if mine[key] != theirs[key]):
            raise InputError(f"the folder holds a study with other {name} of {other[0]}")
        whole[name] = {**theirs, **mine}
    for name in ("tables", "models"):
        whole[name] = list(dict.fromkeys([*old.get(name, []), *new[name]]))
    return whole


def _commit() -> str | None:
    """The commit of the checkout, without asking git."""
    folder = Path(__file__).parents[2] / ".git"
    head = folder / "HEAD"
    if not head.is_file():
        return None
    name = head.read_text().strip().removeprefix("ref: ")
    branch = folder / name
    return branch.read_text().strip() if branch.is_file() else name


def show(console: Console, number: str, table: Table, cells: Sequence[Mapping[str, Any]]) -> None:
    """Print a table: a line for each model, part and arm; the paper's cell in brackets."""
    models = dict.fromkeys(model for cell in cells for model in list(cell["paper"])[:1])
    every = list(dict.fromkeys(cell["column"] for cell in cells))
    # Those of one turn, system or other arm stand in the file alone: a screen has no room.
    columns = [each for each in every if "," not in each and " with " not in each]
    screen = Screen(title=f"{number}. {table.title}", title_justify="left")
    for name in ("model", "part", "arm", *columns, "not judged"):
        screen.add_column(name, overflow="fold")
    lines: dict[tuple[str, str, str], dict[str, Mapping[str, Any]]] = {}
    for cell in cells:
        key = cell["model"], cell["part"], cell["arm"]
        lines.setdefault(key, {})[cell["column"]] = cell
    for key, own in lines.items():
        texts = [_shown(own.get(column)) for column in columns]
        screen.add_row(*key, *texts, str(next(iter(own.values()))["not_judged"]))
    console.print(screen)
    if hidden := [each for each in every if each not in columns]:
        text = f"{len(hidden)} more columns are in the file, such as {hidden[-1]!r}."
        console.print(text, style="dim")
    if models:
        console.print(f"In brackets: the paper's cell, of {' and '.join(models)}.", style="dim")
    if table.note:
        console.print(table.note, style="dim")


def _shown(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    if cell["column"] in ("calls", "tokens"):
        return f"{cell['value']:,.1f}"
    text = str(Cell(*(cell[name] for name in ("value", "n", "low", "high"))))
    text += f", {cell['note']}" if cell["note"].startswith("sd") else ""
    return f"{text} [{next(iter(cell['paper'].values())):g}]" if cell["paper"] else text
