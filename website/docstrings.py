"""What the reference shows of a docstring: examples as code, and its options by a link."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

from langchain_judges.methods.registry import COMBINATIONS, METHODS

OPTIONS = re.compile(r"(?ms)^Args:\n(?:    .*?\n| *\n)*?(?=^\S|\Z)")


def shortened(text: str, name: str) -> str:
    """Return a docstring with a link instead of the options that every judge takes too."""
    text = re.sub(r"(?m)^Example:$", "Examples:", text)
    text = re.sub(r"(?ms)^(>>> .*?)\n*(?=\n\n|\Z)", r"```python\n\1\n```", text)
    if not re.search(r"(?m)^    cache_first: ", text):
        return text
    method = name.removeprefix("create_").removesuffix("_judge")
    anchor = f"#{method}" if method in METHODS or method in COMBINATIONS else ""
    link = f"Its [options]({anchor or '#options'}).\n\n"
    return OPTIONS.sub(link, text, count=1)


class Docstrings(Extension):
    """Change docstrings before they are parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Shorten the docstring of an object."""
        if obj.docstring:
            obj.docstring.value = shortened(obj.docstring.value, obj.name)
