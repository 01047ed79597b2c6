"""What the reference shows of a docstring: examples as code, options of every judge once."""

from __future__ import annotations

import re
from typing import Any

from griffe import Class, Extension, LinesCollection, Object

from langchain_judges.methods.declaration import GraphOptions, JudgeOptions
from langchain_judges.options import described

SHARED = "|".join({*GraphOptions.model_fields, *JudgeOptions.model_fields})
OPTION = re.compile(rf"(?m)^    (?:{SHARED}): .*\n(?: {{5,}}.*\n)*")
LINK = "Also takes [every judge's options][langchain_judges.methods.JudgeOptions].\n\nArgs:\n"


def shortened(text: str) -> str:
    """Docstring of a factory without the options that every judge takes."""
    text = re.sub(r"(?m)^Example:$", "Examples:", text)
    text = re.sub(r"(?ms)^(>>> .*?)\n*(?=\n\n|\Z)", r"```python\n\1\n```", text)
    if not re.search(r"(?m)^Args:\n(?:    .*\n)*    cache_first: ", text):
        return text
    return OPTION.sub("", text).replace("Args:\n", LINK, 1)


class Docstrings(Extension):
    """Changes docstrings before they are parsed."""

    def on_module_node(self, *, node: Any, agent: Any, **_: Any) -> None:
        """Leave out where in its file each object stands: it takes long, and no page shows it."""
        agent.lines_collection = LinesCollection()

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Shorten a docstring; that of `JudgeOptions` gets its bases' options too."""
        if obj.is_attribute and "property" not in obj.labels:
            obj.docstring = None  # that of its value's class
        if obj.docstring and obj.name == "JudgeOptions":
            lines = [f"    {name}: {text}\n" for name, text in described(JudgeOptions).items()]
            obj.docstring.value = f"What every judge takes.\n\nAttributes:\n{''.join(lines)}"
        elif obj.docstring:
            obj.docstring.value = shortened(obj.docstring.value)

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Show what a class takes, where its `__init__` says it."""
        init = cls.members.get("__init__")
        said = init.docstring.value if init and init.docstring else ""
        mark, rest = said.partition("\n\nArgs:\n")[1:]
        if cls.docstring and mark:
            cls.docstring.value += mark + rest
