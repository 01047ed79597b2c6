"""Reading what a judge is given: a row, messages, or the state of a graph around it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, NotRequired, get_origin, get_type_hints

from langgraph.types import Command
from pydantic import BaseModel, create_model, model_validator

from langchain_judges.errors import InputError
from langchain_judges.rows.messages import plain_row


def read_input(source: object, schema: Any, most: int | None) -> object:
    """Return what a judge is given as a row with every field of its input.

    Args:
        source: A dictionary, messages in any form, the state of a graph around the judge;
            None or a `Command` resumes a run and stays what it is.
        schema: The `TypedDict` of the judge's input.
        most: Characters allowed, written as JSON; None: any number.

    Raises:
        InputError: A field is missing, or the row is too long.
    """
    if source is None or isinstance(source, Command):
        return source
    needed, optional = _fields(schema)
    if isinstance(source, BaseModel) or (is_dataclass(source) and not isinstance(source, type)):
        # The state of a graph that this judge is a node of; it may have fields of its own.
        state = {name: getattr(source, name, None) for name in (*needed, *optional)}
        source = {name: value for name, value in state.items() if value is not None}
    if not isinstance(source, Mapping):
        names = ", ".join(f"`{key}`" for key in needed)
        raise InputError(
            f"the input must be a dictionary with {names}, got {type(source).__name__}"
        )
    absent = [key for key in needed if source.get(key) is None]
    if absent:
        names = ", ".join(map(repr, source)) or "none"
        raise InputError(f"the field `{absent[0]}` is missing or null; the fields are {names}")
    row = {**dict.fromkeys((*needed, *optional)), **plain_row(source)}
    if most is not None:
        check_length("the input", row, most)
    return row


def check_length(name: str, data: object, most: int) -> None:
    """Check how long plain data is, written as JSON.

    Raises:
        InputError: It is longer than `most` characters.
    """
    length = len(json.dumps(data, default=str, ensure_ascii=False))
    if length > most:
        raise InputError(f"{name} has {length:,} characters; {most:,} are allowed here")


def arguments(name: str, schema: Any) -> type[BaseModel]:
    """Return the fields of an input as the arguments of a tool."""
    needed, _ = _fields(schema)
    fields: dict[str, Any] = {
        field: (hint, ...) if field in needed else (hint | None, None)
        for field, hint in get_type_hints(schema).items()
    }
    # Messages, in whatever form, become the dictionaries that a judge's input is made of.
    reading: Any = model_validator(mode="before")(lambda row: plain_row(row))
    return create_model(name, __validators__={"read": reading}, **fields)


@cache
def _fields(schema: Any) -> tuple[list[str], list[str]]:
    """Return what an input must have, and what it may leave out."""
    hints = get_type_hints(schema, include_extras=True)
    optional = [key for key, hint in hints.items() if get_origin(hint) is NotRequired]
    return [key for key in hints if key not in optional], optional
