"""Names that are loaded when they are asked for: of a package, and of a table."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, from its one list of names.

    The list is the imports under `if TYPE_CHECKING:`, which type checkers need; each name
    stands there as `from home import name as name`.

    Args:
        package: Its `__name__`.
    """
    homes = _homes(package)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(homes)
    return load, lambda: names, names


def _homes(package: str) -> dict[str, str]:
    """Return the module of each name that a package's source lists for type checkers."""
    spec = sys.modules[package].__spec__ or find_spec(package)
    source = spec.loader.get_source(package)  # type: ignore[union-attr]
    return {
        name.name: str(line.module)
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }


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
