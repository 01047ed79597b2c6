"""The JSON schema by which a reply is asked for."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_core.utils.json_schema import dereference_refs
from pydantic import BaseModel


@cache
def json_schema(shape: type[BaseModel], text_limit: int | None = None) -> dict[str, Any]:
    """Return the JSON schema of `shape`, flat and closed, as providers want it.

    Args:
        shape: What the reply must look like.
        text_limit: Longest string in characters, for models whose replies are cut soon.
    """
    schema = dereference_refs(shape.model_json_schema())
    flat = {key: value for key, value in schema.items() if key != "$defs"}
    closed: dict[str, Any] = _closed(flat, text_limit)
    return closed


def _closed(node: Any, text_limit: int | None) -> Any:
    if isinstance(node, list):
        return [_closed(part, text_limit) for part in node]
    if not isinstance(node, dict):
        return node
    schema = {
        key: {name: _closed(part, text_limit) for name, part in value.items()}
        if key == "properties"
        else _closed(value, text_limit)
        for key, value in node.items()
        if key not in {"title", "default"} or not isinstance(value, str)
    }
    if schema.get("type") == "object":
        schema["additionalProperties"] = False
        # The docstring of a class, written for readers of the code.
        schema.pop("description", None)
    if schema.get("type") == "string" and "enum" not in schema:
        # Not every provider's strict mode knows bounds on strings; the check knows them.
        schema.pop("minLength", None)
        schema.pop("pattern", None)
        longest: Any = schema.pop("maxLength", text_limit)
        if text_limit:
            schema["maxLength"] = min(longest, text_limit)
    return schema
