"""The type of an option in words, for error messages, and in the form of source code."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Literal, Union, get_args, get_origin

import annotated_types as bounds

from langchain_judges.options.marks import Rule

_WORDS: dict[object, str] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text",
    type(None): "None",
}


def wording(annotation: object, metadata: Sequence[object] = ()) -> str:
    """Return what the values of a type must be.

    Args:
        annotation: The type.
        metadata: Marks of the option itself.
    """
    for mark in metadata:
        if isinstance(mark, Rule):
            return mark.text
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return wording(inner, [*metadata, *marks])
    if get_origin(annotation) is Literal:
        allowed = [repr(value) for value in get_args(annotation)]
        return f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(wording(part, metadata) for part in get_args(annotation))
    word = _WORDS.get(annotation)
    if word is None:
        return f"a {getattr(annotation, '__name__', str(annotation))}"
    return word + _limits(metadata) if annotation in (int, float) else word


def _limits(metadata: Sequence[object]) -> str:
    low = high = ""
    for mark in metadata:
        for each in mark if isinstance(mark, bounds.GroupedMetadata) else (mark,):
            if isinstance(each, bounds.Ge):
                low = f"at least {each.ge}"
            elif isinstance(each, bounds.Gt):
                low = f"above {each.gt}"
            elif isinstance(each, bounds.Le):
                high = f"at most {each.le}"
            elif isinstance(each, bounds.Lt):
                high = f"below {each.lt}"
    limits = " and ".join(filter(None, [low, high]))
    glue = " " if low.startswith("above") or (not low and high.startswith("below")) else " of "
    return glue + limits if limits else ""


def written(annotation: object) -> str:
    """Return a type in the short form of source code, without the marks of its parts."""
    if get_origin(annotation) is Annotated:
        return written(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(written, get_args(annotation))))
    if get_origin(annotation) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(annotation)))}]"
    name: str = getattr(get_origin(annotation) or annotation, "__name__", str(annotation))
    parts = [written(part) for part in get_args(annotation) if part is not Ellipsis]
    return {"NoneType": "None"}.get(name, name) + (f"[{', '.join(parts)}]" if parts else "")
