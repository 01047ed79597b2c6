"""What modules hold, by name, each loaded when it is asked for: one method loads no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from pkgutil import resolve_name
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(MutableMapping[str, T], Generic[T]):
    """Classes or functions by name, which know where they are declared.

    Args:
        package: The package of all modules.
        homes: By name `"module:name"`, or what is there already.
    """

    def __init__(self, package: str, homes: Mapping[str, str | T]) -> None:
        """Remember the names; nothing is loaded."""
        self._package = package
        self._homes = dict(homes)

    def __getitem__(self, name: str) -> T:
        """Return what a name stands for, loaded now if it was not."""
        home = self._homes[name]
        if isinstance(home, str):
            home = self._homes[name] = resolve_name(f"{self._package}.{home}")
        return home

    def __setitem__(self, name: str, value: T) -> None:
        """Add a name, or replace what it stands for."""
        self._homes[name] = value

    def __delitem__(self, name: str) -> None:
        """Forget a name."""
        del self._homes[name]

    def __contains__(self, name: object) -> bool:
        """Say whether there is such a name; nothing is loaded."""
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._homes)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._homes)

    def __or__(self, other: Lazy[T]) -> Lazy[T]:
        """Return the names of both; a name in both has the value of `other`."""
        return Lazy(self._package, {**self._homes, **other._homes})
