"""Tables whose cells a spreadsheet would run, or that steer a terminal: made from seeds.

All that a table shows is somebody else's: names of columns, cells, what a judge said of them.
"""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet

from langchain_judges.runs.tables import FORMS
from langchain_judges.verdict import no_usage

ROWS = 40
_FORMULA = re.compile("[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_HARMLESS = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?|[-+\s]*", re.IGNORECASE)
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe]")
_PARTS = (
    *('=HYPERLINK("http://x")', "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "+1", "\t=1", "\r=1"),
    *("\x1b[2J", "\x00", "\u202e", "\ud800", "\ufeff", "\u200b", " ", "'", '"', ",", "\n"),
    *("-0.5", "=", "\uff1d1+1", "fine", "\x9b", "\u2066", "1e5", "\x85", "\u2028", "; ", "|"),
)
_VALUES = (math.nan, math.inf, 10**400, 2**70, 1j, True, None, b"\xff", date.min, {1}, [["="]])
# Of each a text is as likely as of the next.
_PLANES = (range(1, 128), range(128, 0x3000), range(0xD000, 0x10000), range(0x10000, 0x110000))


def text(rng: random.Random) -> str:
    """A cell of dangerous parts, or of any characters."""
    if rng.random() < 0.7:
        return "".join(rng.choices(_PARTS, k=rng.randint(1, 4)))
    size = rng.randint(1, 8)
    return "".join(chr(rng.choice(plane)) for plane in rng.choices(_PLANES, k=size))


def own_cell(rng: random.Random) -> object:
    """A cell of the user's: mostly a text."""
    return text(rng) if rng.random() < 0.8 else rng.choice(_VALUES)


def judged(rng: random.Random, number: int, known: list[str]) -> dict[str, Any]:
    """A result of which all words are a model's, an endpoint's or a rubric's."""
    names = rng.sample(known, 2)
    failure = {name: text(rng) for name in ("step", "unit", "reason", "detail")}
    verdict = {"score": 1.0, "confidence": None, "rationale": text(rng), "usage": no_usage()}
    verdict |= {"failures": [failure] if rng.random() < 0.5 else []}
    result = {"index": number, "id": text(rng), "judged": True, "judge": {"model": text(rng)}}
    if rng.random() < 0.3:
        verdict |= {"preference": rng.choice("AB"), "flipped": None}
        return {**result, "kind": "pair", "verdict": verdict, "systems": names}
    parts = [{"criterion": n, "label": rng.choice(known), "reason": text(rng)} for n in names]
    verdict["label"] = rng.choice(known)
    return {**result, "kind": "item", "verdict": verdict, "subscores": parts}


def live_in_rows(folder: Path, suffix: str, seed: int, *, raw: bool) -> Iterator[str]:
    """Write a table, and yield of each of its rows the cells that run or steer something.

    Where one's own cells stay as they came, they are harmless here.
    """
    rng, out = random.Random(seed), folder / f"{seed}{suffix}"
    head = [text(rng) for _ in range(rng.randint(1, 4))]
    names = [text(rng) for _ in range(6)]
    with closing(FORMS[suffix](out, raw=raw)) as file:
        for number in range(ROWS):
            own = (
                {"mine": "fine"}
                if raw or suffix == ".parquet"
                else {name: own_cell(rng) for name in head}
            )
            file.add(own, judged(rng, number, names))
    runs = suffix in {".csv", ".tsv", ".xlsx"}
    live = [repr([c for c in row if _is_live(c, runs=runs)] or "") for row in cells_in(out)]
    out.unlink()
    yield from ("" if each == "''" else each for each in live)


def _is_live(cell: str, *, runs: bool) -> bool:
    bare = cell.replace("\r\n", "")
    formula = _FORMULA.match(bare.lstrip(" \ufeff\u200b")) and not _HARMLESS.fullmatch(cell)
    return bool((runs and formula) or _STEERS.search(bare))


def cells_in(path: Path) -> Iterator[list[str]]:
    """Yield the cells of each row of a table, the names of its columns first."""
    if path.suffix == ".xlsx":
        for sheet in openpyxl.load_workbook(path):
            for row in sheet:
                # What is a formula is live however it begins.
                yield ["=" if c.data_type == "f" else str(c.value or "") for c in row]
    elif path.suffix == ".parquet":
        table = pyarrow.parquet.read_table(path)
        yield table.column_names
        yield from ([str(cell or "") for cell in row.values()] for row in table.to_pylist())
    else:
        whole = path.read_bytes().decode()  # one lone surrogate would raise
        if path.suffix in {".csv", ".tsv"}:
            tab = "\t" if path.suffix == ".tsv" else ","
            yield from csv.reader(io.StringIO(whole, newline=""), delimiter=tab)
        else:
            yield from ([line] for line in whole.split("\n"))
