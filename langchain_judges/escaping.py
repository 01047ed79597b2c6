"""Make untrusted text safe to print, without changing anything else.

The words of a model or a provider, or a file's name, may contain characters that control a
terminal (ESC, OSC, C1), change the direction of a line, or turn a table's cell into a formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from langchain_judges.errors import STEERING

# What begins a formula, in full width too.
_BLANK = r"\s\u200b-\u200f\u2060\ufeff"
_FORMULA = re.compile(rf"[{_BLANK}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[{_BLANK}]*?[\t\r]")
# Numbers, and dashes that stand for nothing.
_HARMLESS = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+\-\s]*", re.I)


def clean(text: str) -> str:
    r"""A text without characters that would control the terminal or page that shows it.

    >>> clean("fine\x1b[2J")
    'fine�[2J'
    """
    # Python looks at most texts much faster than the pattern does.
    return text if text.isprintable() else STEERING.sub("�", text.replace("\r\n", "\n"))


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, cut at a word and marked where it is longer.

    >>> shortened("one long sentence of terms", 20)
    'one long sentence …'
    """
    if len(text) <= most:
        return text
    head = text[: most - 2]
    return (head.rpartition(" ")[0] or head).rstrip(" ,;:") + " …"


def escaped(text: str) -> str:
    """A text that Markdown shows as it is; names are other people's."""
    # Between letters and digits an underscore means nothing.
    text = re.sub(r"[\\|`*\[\]]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text)
    return " ".join(clean(text).replace("<", "&lt;").split())


def inert_json(text: str) -> str:
    r"""Equivalent JSON with characters that would control a terminal as escapes.

    >>> inert_json('"a\u202eb"') == '"a' + '\\' + 'u202eb"'
    True
    """
    return text if text.isprintable() else STEERING.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    # Outside strings, line ends are the only such characters in JSON.
    return match[0] if match[0] in "\r\n" else f"\\u{ord(match[0]):04x}"


def inert_cell(value: Any) -> Any:
    """A cell for a spreadsheet; a text that it would evaluate is prefixed by a quote.

    >>> inert_cell("=1+1"), inert_cell("-0.5"), inert_cell(-0.5)
    ("'=1+1", '-0.5', -0.5)
    """
    if not isinstance(value, str):
        return value
    text = "\r\n".join(map(clean, value.split("\r\n")))
    if _FORMULA.match(text) and not _HARMLESS.fullmatch(text):
        return f"'{text}"
    return text


class InertConsole(Console):
    """A console whose own styles control the terminal, and never a printed text."""

    def __init__(self, **options: Any) -> None:
        """Read no markup in what is printed, and colour no numbers."""
        super().__init__(markup=False, highlight=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as `rich` does; each text is made inert."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(clean(segment.text), segment.style)
