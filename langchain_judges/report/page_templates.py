"""The templates of pages, which are filled with texts that may hold markup."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from langchain_judges.report.wording import p_text, percent, range_text, value_text

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from langchain_judges.report.number import Number


def template(name: str) -> Template:
    """Return a template by its file's name."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("langchain_judges.report"),
        autoescape=True,  # the judged texts are other people's, and may hold markup
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        value=value_text, range=range_text, percent=percent, plain=_plain, p=p_text
    )
    environment.tests["undefined_number"] = _is_undefined
    return environment


def _is_undefined(number: Number) -> bool:
    return math.isnan(number.result)


def _plain(text: object) -> str:
    """Return a text that UTF-8 can carry."""
    return str(text).encode("utf-8", "replace").decode()
