"""Marks on the type of an option: how its rule is said, and who may set it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import annotated_types as bounds
from pydantic import BaseModel, BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class Rule:
    """How the rule of an option is said, where its type alone would say it badly."""

    text: str


class NotSerialisable:
    """Marks an option that holds a live object: it exists in this process alone.

    Such an option stands in no JSON, no preset, no command line and no server's context.
    """


class Owner:
    """Marks an option that only the owner of the process may set: a path, a model, a pattern.

    A command line and a spec may set it; a client of a server may not.
    """


@dataclass(frozen=True)
class ForClient:
    """The type in which the client of a server may set an option that others set freely."""

    type: object


@dataclass(frozen=True)
class ClientMost:
    """The highest number that the client of a server may set, unless the owner allows more."""

    most: int


@dataclass(frozen=True)
class Group:
    """Marks an option that is a group of options; see `group`."""

    kind: type[BaseModel]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Make the group of a mapping before it is checked."""

        def read(value: object) -> object:
            if not isinstance(value, Mapping):
                return value
            return self.kind(**{str(name): each for name, each in value.items()})

        return core_schema.no_info_before_validator_function(read, handler(source))


def _pair(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


_Grade = Annotated[int, ClientMost(1000)]

Scale = Annotated[
    tuple[_Grade, _Grade],
    BeforeValidator(_pair),
    bounds.Predicate(lambda ends: ends[0] < ends[1]),
    Rule("two whole numbers (low, high)"),
]
"""The lowest and the highest score."""
