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
from pathlib import Path
from statistics import fmean
from threading import Lock
from typing import Any

import yaml
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, Generation
from rich.console import Console
from rich.table import Table as Screen

from langchain_judges import judge_many, load_judge
from langchain_judges.datasets import load
from langchain_judges.errors import InputError

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
        """Return a statistic of `langchain_judges.metrics` as a cell."""
        if result.reason:
            return cls(None, result.n, note=result.reason)
        low, high = result.interval or (None, None)
        return cls(float(result), result.n, low, high)

    def __str__(self) -> str:
        """Return it as a table shows it."""
        if self.value is None:
            return "-"
        ends = "" if self.low is None else f" ({self.low:.3f} to {self.high:.3f})"
        return f"{self.value:.3f}{ends}, n {self.n:,}"


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
        """Return the judge."""
        if self.make is not None:
            return self.make(bench, part)
        return load_judge(self.method, bench.model, **self.options)


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
    """

    title: str
    parts: Mapping[str, Callable[[Bench], Rows]]
    arms: Callable[[Bench, str], Sequence[Arm]]
    columns: Callable[[str, Rows, Mapping[str, Rows]], dict[str, Cell]]
    note: str = ""
    needs: frozenset[str] = frozenset()


@dataclass
class Bench:
    """What a study runs with: a model, its folder, and limits."""

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
    dry: bool = False
    """Ask nothing: what would need replies takes a stand-in of the same size."""
    results: dict[tuple[str, str, str], Rows] = field(default_factory=dict)

    def folder(self, *names: str) -> Path:
        """Return a folder of this model's results."""
        path = self.out.joinpath(slug(self.name), *map(slug, names))
        path.mkdir(parents=True, exist_ok=True)
        return path

    def load(self, name: str, **options: Any) -> list[dict[str, Any]]:
        """Read a public set from the data folder, or from the hub where that has it."""
        folder = self.data / name if self.data else None
        if folder is not None and not folder.exists():
            raise InputError(f"there is no {folder}: `--data` is the folder of the sets")
        return [dict(row) for row in load(name, folder, **options)]

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


def hash_of(rows: Rows) -> str:
    """Return a hash of rows: equal rows are judged once for all tables."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()


def _asked(row: Row) -> dict[str, Any]:
    """Return a row without what only the figures need."""
    return {name: row[name] for name in row if name != "human"}


def slug(name: str) -> str:
    """Return a name as a file is called."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-").lower() or "x"


def first_groups(rows: Iterable[Row], limit: int | None) -> list[dict[str, Any]]:
    """Return the rows of the first so many groups."""
    groups: set[Any] = set()
    chosen = []
    for row in rows:
        groups.add(row.get("group", row["id"]))
        if limit is not None and len(groups) > limit:
            break
        chosen.append(dict(row))
    return chosen


def usage_of(results: Rows) -> dict[str, Cell]:
    """Return calls and tokens for a row, as columns."""
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
    """Return how many rows were not judged."""
    verdicts = [row["verdict"] for row in results if "verdict" in row]
    return sum(v.get("preference", v.get("label")) is None for v in verdicts)


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
        """Return how many different requests were answered."""
        return len(self._messages)

    def lookup(self, prompt: str, llm_string: str) -> list[Generation] | None:
        """Return the reply to a request, or None."""
        messages = self._messages.get(_request(prompt, llm_string))
        if messages is None:
            return None
        return [ChatGeneration(message=message) for message in messages_from_dict(messages)]

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
    """Return a model that answers an equal request from the replies that came before."""
    return model.model_copy(update={"cache": replies})


@cache
def printed(paper: str) -> Mapping[str, Any]:
    """Return the cells that a paper prints: table → part → arm → column → value."""
    cells = yaml.safe_load(Path(__file__).with_name("cells.yaml").read_text("utf-8"))
    return dict(cells.get(paper) or {})


def paper_cell(paper: str, number: str, part: str, arm: str, column: str) -> float | None:
    """Return a cell as the paper prints it, of its strongest model; None where it has none."""
    tables = printed(paper).get(number) or {}
    value = ((tables.get(part) or {}).get(arm) or {}).get(column)
    return None if value is None else float(value)


def run_table(paper: str, number: str, table: Table, bench: Bench) -> list[dict[str, Any]]:
    """Judge what a table needs with one model, and return its cells."""
    cells = []
    for part, read in table.parts.items():
        rows = read(bench)
        results = {arm.name: bench.judged(arm, part, rows) for arm in table.arms(bench, part)}
        for arm_name in results:
            figures = table.columns(arm_name, rows, results) | usage_of(results[arm_name])
            cells += [
                {
                    "table": number,
                    "model": bench.name,
                    "part": part,
                    "arm": arm_name,
                    "column": column,
                    **cell.__dict__,
                    "paper": paper_cell(paper, number, part, arm_name, column),
                    "not_judged": failed(results[arm_name]),
                }
                for column, cell in figures.items()
            ]
    return cells


def planned(table: Table, bench: Bench) -> list[dict[str, Any]]:
    """Return what a table would ask: rows and calls of each arm. Nothing is asked."""
    plan = []
    for part, read in table.parts.items():
        rows = read(bench)
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
    """Return what decides the figures of a study."""
    rows, wordings = hashlib.sha256(), {}
    for each in plans:
        rows.update(json.dumps(each["rows"], sort_keys=True, default=str).encode())
        metadata = (getattr(each["judge"], "config", None) or {}).get("metadata", {})
        wordings[f"{each['part']}: {each['arm']}"] = metadata.get("prompt_version")
    first = benches[0]
    return {
        "paper": paper,
        "tables": list(tables),
        "models": [bench.name for bench in benches],
        "prompt_versions": wordings,
        "rows_sha256": rows.hexdigest(),
        "limit": first.limit,
        "seed": first.seed,
        "options": dict(first.extra),
        "package": version("langchain-judges"),
        "commit": _commit(),
    }


def _commit() -> str | None:
    """Return the commit of the checkout, without asking git."""
    folder = Path(__file__).parents[2] / ".git"
    head = folder / "HEAD"
    if not head.is_file():
        return None
    name = head.read_text().strip().removeprefix("ref: ")
    branch = folder / name
    return branch.read_text().strip() if branch.is_file() else name


def show(
    console: Console, number: str, table: Table, cells: Sequence[Mapping[str, Any]]
) -> None:
    """Print a table: a line for each model, part and arm; the paper's cell in brackets."""
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
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
    if table.note:
        console.print(table.note, style="dim")


def _shown(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    if cell["column"] in ("calls", "tokens"):
        return f"{cell['value']:,.1f}"
    text = str(Cell(*(cell[name] for name in ("value", "n", "low", "high"))))
    return text if cell["paper"] is None else f"{text} [{cell['paper']:g}]"
