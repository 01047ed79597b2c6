"""A table of what two texts share and what only one of them has, for people and for prompts."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.printable import clean

if TYPE_CHECKING:
    from rich.table import Table as RichTable

TableLike = Mapping[str, Any] | Sequence[Mapping[str, str]]
"""A table `{"rows": […]}` of SC², a result that holds one as `table`, or a table's rows
`{"aspect", "common", "only_a", "only_b"}`."""

NOTHING = "none"
"""What a cell holds that has nothing to say."""

_CELLS = ("common", "only_a", "only_b")
_STYLE = (
    "border-collapse:collapse;font:14px/1.45 system-ui,sans-serif;max-width:72em;"
    "border-top:2px solid #444;border-bottom:2px solid #444"
)
_CELL = "padding:.5em .8em;vertical-align:top;text-align:left;border-bottom:1px solid #ddd;"
_TINTS = ("", "background:#eef4ee;", "background:#eef1fa;", "background:#faf1ea;")


@overload
def render_table(
    table: TableLike,
    format: Literal["markdown", "html"] = ...,
    *,
    names: tuple[str, str] = ...,
) -> str: ...
@overload
def render_table(
    table: TableLike, format: Literal["rich"], *, names: tuple[str, str] = ...
) -> RichTable: ...
def render_table(
    table: TableLike,
    format: Literal["markdown", "rich", "html"] = "markdown",
    *,
    names: tuple[str, str] = ("A", "B"),
) -> str | RichTable:
    """Render a comparison table with its aspects as rows.

    Args:
        table: A table of `create_sc2_judge`, its rows, or the result that it returned.
        format: `"markdown"` and `"html"` return text (HTML that stands alone, with every
            cell escaped), `"rich"` a table to print on a terminal.
        names: What the two texts are called in the head.

    Raises:
        OptionError: The format is another, or `names` are not two.
        InputError: It is no table, or a result without one.
    """
    rows = [{k: v and clean(v) for k, v in row.items()} for row in _rows(table)]
    if not isinstance(names, list | tuple) or list(map(type, names)) != [str, str]:
        raise OptionError(f"`names` must be two texts, got {names!r}")
    first, second = map(clean, names)
    heads = ("Aspect", "In both", f"Only in {first}", f"Only in {second}")
    if format == "markdown":
        return markdown(rows, heads)
    if format == "html":
        return _html(rows, heads)
    if format == "rich":
        return _rich(rows, heads)
    raise OptionError(f"`format` must be 'markdown', 'rich' or 'html', got {format!r}")


def markdown(rows: Sequence[Mapping[str, str]], heads: Sequence[str]) -> str:
    """Return the rows as a Markdown table; no cell can break out of its place."""
    lines = [heads, ["---"] * len(heads), *(_cells(row) for row in rows)]
    return "\n".join("| " + " | ".join(map(_in_a_cell, line)) + " |" for line in lines)


def _rows(table: object) -> Sequence[Mapping[str, str]]:
    """Return the rows of a table, or say why they are none."""
    if isinstance(table, Mapping) and "rows" not in table and "table" in table:
        table = table["table"]
    if table is None:
        raise InputError("there is no table: SC² compared the texts without one")
    rows = table.get("rows") if isinstance(table, Mapping) else table
    if not isinstance(rows, list | tuple) or not all(map(_is_row, rows)):
        raise InputError(
            "a table must be a result of SC², its `table`, or rows with 'aspect', "
            f"{', '.join(map(repr, _CELLS))}, got {str(table)[:80]}"
        )
    return rows


def _is_row(row: object) -> bool:
    return (
        isinstance(row, Mapping)
        and isinstance(row.get("aspect"), str)
        and all(isinstance(row.get(name, 0), str | None) for name in _CELLS)
    )


def _cells(row: Mapping[str, str]) -> list[str]:
    return [row["aspect"], *(row[name] or NOTHING for name in _CELLS)]


def _in_a_cell(text: str) -> str:
    # A backslash before a bar would undo the bar's own: every bar gets an odd number.
    return " ".join(re.sub(r"(\\*)\|", r"\1\1\\|", text).split())


def _html(rows: Sequence[Mapping[str, str]], heads: Sequence[str]) -> str:
    head = "".join(
        f'<th scope="col" style="{_CELL}{tint}">{html.escape(name)}</th>'
        for name, tint in zip(heads, _TINTS, strict=True)
    )
    body = "".join(f"<tr>{_html_row(_cells(row))}</tr>" for row in rows)
    return (
        f'<table style="{_STYLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    )


def _html_row(cells: Sequence[str]) -> str:
    parts = [f'<th scope="row" style="{_CELL}">{html.escape(cells[0])}</th>']
    for cell, tint in zip(cells[1:], _TINTS[1:], strict=True):
        faint = "color:#999;" if cell == NOTHING else "color:#222;"
        text = "–" if cell == NOTHING else html.escape(cell)
        parts.append(f'<td style="{_CELL}{tint}{faint}">{text}</td>')
    return "".join(parts)


def _rich(rows: Sequence[Mapping[str, str]], heads: Sequence[str]) -> RichTable:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=False)
    for head, style in zip(heads, ("bold", "green", "cyan", "yellow"), strict=True):
        table.add_column(Text(head), style=style, ratio=1 if style == "bold" else 2)
    for row in rows:
        aspect, *cells = _cells(row)
        texts = [Text("–", style="dim") if c == NOTHING else Text(c) for c in cells]
        table.add_row(Text(aspect), *texts)
    return table
