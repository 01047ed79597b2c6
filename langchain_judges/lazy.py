"""Names that are loaded when they are asked for, of a package and of a table; packaged data."""

from __future__ import annotations

import ast
import sys
from collections import UserDict
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import get_data, resolve_name
from typing import Any, TypeVar, cast

T = TypeVar("T")


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names are loaded on use.

    They are the names that its `__init__.pyi` imports, which type checkers read too.

    Args:
        package: Its `__name__`.
    """
    stub = ast.parse(get_data(package, "__init__.pyi") or b"")
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    modules = {each.name: str(line.module) for line in imports for each in line.names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(modules)
    return load, lambda: names, names


@cache
def packaged(package: str, name: str) -> Any:
    """Data of a YAML file that comes with a package of ours."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is much faster
    return loader(get_data(package, name) or b"").get_single_data()


class Lazy(UserDict[str, T]):
    """Classes or functions by name; a text, `"module:name"`, is loaded when it is asked for."""

    def __getitem__(self, name: str) -> T:
        """Class or function of a name, loaded now if it was not."""
        home: Any = self.data[name]
        if isinstance(home, str):
            home = self.data[name] = resolve_name(home)
        return cast("T", home)
