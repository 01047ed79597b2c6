"""Numbers of a spreadsheet as a person sees them: by the format of their cell."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

from langchain_judges.lazy import packaged


class FormattedInt(int):
    """A whole number with the text that its cell shows."""

    shown = ""


class FormattedFloat(float):
    """A number with the text that its cell shows."""

    shown = ""


_SIGN: str = packaged(__package__, "names.yaml")["sign_of_format"]
_FORMAT = re.compile(
    rf"(?P<before>(?:{_SIGN})*)(?P<whole>#,##0|0+)(?:\.(?P<places>0+))?(?P<after>(?:{_SIGN})*)"
)


def formatted(value: float, code: str) -> float | None:
    """A number with the text that its cell shows, or alone; None if the format is not known here.

    >>> cells = [(0.85, "0%"), (7, "000"), (-3.5, '0.00" EUR"'), (0.1 + 0.2, "General")]
    >>> [formatted(*cell).shown for cell in cells]
    ['85%', '007', '-3.50 EUR', '0.3']
    """
    shown = f"{value:.15g}" if code in ("General", "@") else _by_code(value, code)
    if shown == str(value):
        return value
    number = FormattedInt(value) if isinstance(value, int) else FormattedFloat(value)
    number.shown = shown
    return number if shown else None


def _by_code(value: float, code: str) -> str:
    """The text by the section for the sign of a number: one alone has a minus; "" if unknown."""
    first, *others = code.split(";")
    own = others[value == 0] if value <= 0 and others[value == 0 :] else first
    if not (parts := _FORMAT.fullmatch(own)) or abs(value) >= 1e15:  # a power of ten to Excel
        return ""
    before, after = (re.sub(_SIGN, r"\1\2\3\4", parts[name]) for name in ("before", "after"))
    percent = 100 if "%" in re.sub(_SIGN, r"\1", own) else 1
    number, places = percent * Decimal(f"{abs(value):.15g}"), len(parts["places"] or "")
    number = number.quantize(Decimal(10) ** -places, ROUND_HALF_UP)
    width = parts["whole"].count("0") + (places and 1 + places)
    digits = f"{number:0{width}{',' * (',' in parts['whole'])}f}"
    return f"{'-' * (value < 0 and own is first)}{before}{digits}{after}".strip()
