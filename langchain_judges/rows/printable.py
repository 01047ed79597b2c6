"""Words of models and of other people, made fit for what shows them: inert, and nothing else.

What a model, a provider or a file's name says may hold characters that steer a terminal
(ESC, OSC, C1), turn the direction of a line, or make a cell of a table a formula.
"""

from __future__ import annotations

import re
from typing import Any

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, changes of direction, halves of characters."""
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I)


def clean(text: str) -> str:
    r"""Return a text without what would steer the terminal or page that shows it.

    >>> clean("fine\x1b[2J")
    'fine�[2J'
    """
    return _STEERING.sub("�", text.replace("\r\n", "\n"))


def inert_json(text: str) -> str:
    r"""Return JSON that says the same and steers no terminal: such characters as escapes.

    >>> inert_json('"a\u202eb"') == '"a' + '\\' + 'u202eb"'
    True
    """
    return _STEERING.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    # Between its strings JSON has no such character but line ends.
    return found[0] if found[0] in "\r\n" else f"\\u{ord(found[0]):04x}"


def inert_cell(value: Any) -> Any:
    """Return a cell for CSV; a text that a spreadsheet would calculate gets a quote in front.

    >>> inert_cell("=1+1"), inert_cell("-0.5"), inert_cell(-0.5)
    ("'=1+1", '-0.5', -0.5)
    """
    if not isinstance(value, str):
        return value
    text = clean(value)
    if _FORMULA.match(text.lstrip(" \ufeff\u200b")) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
