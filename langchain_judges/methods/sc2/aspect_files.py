"""Aspects as callers give them; learned ones are a small JSON file, found by name or path."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from errno import EISDIR
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.methods.sc2.aspects import distinct
from langchain_judges.verdict import Failure, Usage

FOLDER_VARIABLE = "LANGCHAIN_JUDGES_ASPECTS"
"""Environment variable: the folder of named aspects; default `aspects`, where one works."""


class AspectSet(TypedDict):
    """Aspects of one kind of texts, and what they were learned from."""

    name: str
    aspects: list[str]
    task: str
    prompt_version: str
    model: dict[str, object]
    """The identity of the model; never an address or a key."""
    corpus: str
    """Hash of the texts, in their order."""
    texts: int
    failures: list[Failure]
    usage: Usage


AspectsLike = Sequence[str] | AspectSet | str | os.PathLike[str]
"""Aspects as callers give them: a list, what `learn_aspects` returned, its name or path."""


def aspects_path(name: str | os.PathLike[str]) -> Path:
    """Return the file of a name, or the path itself if it is one."""
    path = Path(name)
    if path.suffix == ".json" or path.parent != Path("."):
        return path
    return Path(os.environ.get(FOLDER_VARIABLE) or "aspects") / f"{name}.json"


def check_savable(name: str | os.PathLike[str]) -> None:
    """Check, by making its folder and a draft, that aspects can be kept under a name or path.

    Raises:
        OptionError: Nothing can be written there.
    """
    _draft(aspects_path(name), "").unlink()


def save_aspects(learned: AspectSet, path: str | os.PathLike[str]) -> Path:
    """Write aspects to a name or path, whole or not at all; return the file.

    Raises:
        OptionError: Nothing can be written there.
    """
    file = aspects_path(path)
    draft = _draft(file, json.dumps(learned, indent=2, ensure_ascii=False) + "\n")
    return draft.replace(file)


def _draft(file: Path, text: str) -> Path:
    """Write what is to become a file beside it."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        if file.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, "utf-8")
    except (OSError, ValueError) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise OptionError(f"learned aspects cannot be written to {file}: {why}") from exc
    return draft


def load_aspects(name: str | os.PathLike[str]) -> AspectSet:
    """Read aspects by name or path.

    Raises:
        OptionError: There is no such file, or it holds something else.
    """
    file = aspects_path(name)
    try:
        data = json.loads(file.read_text("utf-8"))
    except FileNotFoundError as exc:
        raise OptionError(
            f"there are no learned aspects {str(name)!r}: no file {file}; make them with "
            "`learn_aspects`, or give a list of aspects"
        ) from exc
    except (OSError, ValueError) as exc:
        raise OptionError(f"{file} cannot be read as learned aspects: {exc}") from exc
    aspects = data.get("aspects") if isinstance(data, Mapping) else None
    if not isinstance(aspects, list) or not aspects or not all(map(_phrase, aspects)):
        raise OptionError(f"{file} holds no learned aspects: no list of texts under `aspects`")
    learned: AspectSet = data
    return learned


def _phrase(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def read_aspects(
    aspects: AspectsLike | None,
) -> tuple[tuple[str, ...], Mapping[str, object] | None]:
    """Return the aspects, each meaning once, and where learned ones came from.

    Raises:
        OptionError: They are of another type or empty, or there is no such file.
    """
    if aspects is None:
        return (), None
    learned = None
    source: Any = load_aspects(aspects) if isinstance(aspects, str | os.PathLike) else aspects
    if isinstance(source, Mapping):
        learned = {key: source[key] for key in _SOURCE if key in source}
        source = source.get("aspects", [])
    texts = list(source) if isinstance(source, Sequence) and not isinstance(source, str) else []
    if not texts or not all(isinstance(each, str) and distinct([each]) for each in texts):
        raise OptionError(
            "`aspects` must be a list of at least one text, each with a word, what "
            f"`learn_aspects` returned, or its name or path, got {aspects!r}"
        )
    return tuple(distinct(texts)), learned


_SOURCE = ("name", "corpus", "prompt_version", "model")
"""What is kept of learned aspects beside their names."""
