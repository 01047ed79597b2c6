"""Names that are loaded when they are asked for: of a package, and of a table."""

from __future__ import annotations

import ast
import sys
from collections import UserDict
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

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


class Lazy(UserDict[str, T]):
    """Classes or functions by name; a text, `"module:name"`, is loaded when it is asked for."""

    def __getitem__(self, name: str) -> T:
        """Return what a name stands for, loaded now if it was not."""
        home: Any = self.data[name]
        if isinstance(home, str):
            home = self.data[name] = resolve_name(home)
        return cast("T", home)
