"""Cells that a spreadsheet would run, or that steer a terminal; and what of a file is so."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

_FORMULA = re.compile("[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_HARMLESS = re.compile(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?|[-+\s]*", re.IGNORECASE)
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe]")
_parts = st.sampled_from(
    [
        *('=HYPERLINK("http://x")', "-2+3+cmd|' /C calc'!A0", "@SUM(1)", "+1", "\t=1", "\r=1"),
        *("\x1b[2J", "\x00", "\u202e", "\ud800", "\ufeff", "\u200b", " ", "'", '"', ",", "\n"),
        *("-0.5", "=", "\uff1d1+1", "fine", "\x9b", "\u2066", "1e5", "\x85", "\u2028"),
    ]
)
live_cells = st.lists(_parts, min_size=1, max_size=4).map("".join) | st.text(min_size=1)


def live_in(path: Path) -> Iterator[str]:
    """Yield the cells of a file that run or steer something."""
    text = path.read_bytes().decode()  # one lone surrogate would raise
    tab = "\t" if path.suffix == ".tsv" else ","
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=tab):
        for cell in row:
            bare = cell.replace("\r\n", "").lstrip(" \ufeff\u200b")
            runs = _FORMULA.match(bare) and not _HARMLESS.fullmatch(cell)
            if runs or _STEERS.search(cell.replace("\r\n", "")):
                yield cell
