"""Filters by metadata: which slots of an index have which values."""

from __future__ import annotations

import json
from array import array
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from langchain_judges.errors import InputError
from langchain_judges.memory.faiss.indexes import Mask


class MetadataSlots:
    """The slots of every value of every metadata field, ascending; some may be dead."""

    def __init__(self) -> None:
        """Start without slots."""
        self._slots: dict[str, dict[Hashable, array[int]]] = {}

    def add(self, slot: int, metadata: Mapping[str, object]) -> None:
        """Register the metadata of a slot higher than all others."""
        for name, value in metadata.items():
            slots = self._slots.setdefault(name, {})
            tokens = {_token(value)}
            if isinstance(value, list | tuple | set):
                tokens |= {_token(each) for each in value}
            for token in tokens:
                slots.setdefault(token, array("q")).append(slot)

    def mask(self, where: Mapping[str, object], count: int) -> Mask | None:
        """Return which of `count` slots have the given values; None if all living ones do.

        Args:
            where: Fields of the metadata and the value each must have (or contain, if the
                field is a list), or `{"$in": [values]}`.
            count: How many slots there are.

        Raises:
            InputError: A condition is of another form.
        """
        mask: Mask | None = None
        for name, condition in where.items():
            slots = self._slots.get(name, {})
            tokens = dict.fromkeys(_token(value) for value in _options(name, condition))
            lists = [slots[token] for token in tokens if token in slots]
            if any(len(each) == count for each in lists):
                continue
            own = np.zeros(count, bool)
            for each in lists:
                own[np.array(each)] = True
            mask = own if mask is None else mask & own
        return mask


def _options(name: str, condition: object) -> Sequence[object]:
    """Return the values that a filter allows for a field."""
    if not isinstance(condition, Mapping) or not any(
        str(key).startswith("$") for key in condition
    ):
        return [condition]
    if set(condition) == {"$eq"}:
        return [condition["$eq"]]
    if set(condition) == {"$in"} and isinstance(condition["$in"], list | tuple | set):
        return list(condition["$in"])
    raise InputError(
        f"a filter takes a value, {{'$eq': value}} or {{'$in': [values]}} for {name!r}, "
        f"got {condition!r}"
    )


def _token(value: object) -> Hashable:
    """Return what a metadata value is looked up by."""
    if value is None or isinstance(value, str | int | float):
        return value
    return ("json", json.dumps(value, sort_keys=True, default=str))
