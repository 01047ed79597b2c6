"""Names that are loaded when they are asked for: of a package, and of a table."""

from __future__ import annotations

import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

T = TypeVar("T")


def exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names are loaded on use.

    Args:
        package: Its `__name__`.
        homes: The public names of each module that has some, separated by spaces; modules are
            named below `langchain_judges`.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"langchain_judges.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(modules)
    return load, lambda: names, names


class Lazy(UserDict[str, T]):
    """Classes or functions by name; a text, `"module:name"`, is loaded when it is asked for."""

    def __getitem__(self, name: str) -> T:
        """Class or function of a name, loaded now if it was not."""
        home: Any = self.data[name]
        if isinstance(home, str):
            home = self.data[name] = resolve_name(home)
        return cast("T", home)
