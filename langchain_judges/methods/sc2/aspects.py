"""Aspects that a caller gives: a list, or what `learn_aspects` learned and kept in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.methods.sc2.replies import distinct_phrases
from langchain_judges.rows.files import json_in
from langchain_judges.verdict import Failure, Usage


class AspectSet(TypedDict):
    """Aspects of one kind of texts, and what they were learned from.

    Attributes:
        model: The identity of the model; never an address or a key.
        corpus: Hash of the texts, in their order.
    """

    aspects: list[str]
    task: str
    prompt_version: str
    model: dict[str, object]
    corpus: str
    texts: int
    failures: list[Failure]
    usage: Usage


# Aspects as callers give them: a list, what `learn_aspects` returned, or the file of it.
AspectsLike = Sequence[str] | AspectSet | str | os.PathLike[str]


def check_savable(path: str | os.PathLike[str]) -> None:
    """Check that aspects can be kept in a file.

    Raises:
        OptionError: Nothing can be written there.
    """
    folder = Path(path).parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise OptionError(f"learned aspects cannot be written to {path}: no folder to write to")


def load_aspects(path: str | os.PathLike[str]) -> AspectSet:
    """Read the aspects that `learn_aspects` kept in a file.

    Raises:
        OptionError: There is no such file, or it holds something else.
    """
    try:
        data = json_in(Path(path))
    except (OSError, ValueError) as exc:
        raise OptionError(
            f"there are no learned aspects in {str(path)!r} ({exc}): make the file with "
            "`learn_aspects`, or give a list of aspects"
        ) from exc
    if not isinstance(data, Mapping) or not _phrases(data.get("aspects")):
        raise OptionError(f"{path} holds no learned aspects: no list of texts under `aspects`")
    learned: Any = data
    return learned  # type: ignore[no-any-return]


def _phrases(value: object) -> list[str]:
    """A list of phrases, each meaning once; empty for anything else."""
    texts = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    usable = all(isinstance(each, str) and distinct_phrases([each]) for each in texts)
    return distinct_phrases(texts) if usable else []


def read_aspects(aspects: AspectsLike | None) -> list[str] | None:
    """The aspects, each meaning once; None for none.

    Raises:
        OptionError: They are of another type or empty, or there is no such file.
    """
    if aspects is None:
        return None
    source: Any = load_aspects(aspects) if isinstance(aspects, str | os.PathLike) else aspects
    phrases = _phrases(source.get("aspects") if isinstance(source, Mapping) else source)
    if not phrases:
        raise OptionError(
            "`aspects` must be a list of at least one text, each with a word, what "
            f"`learn_aspects` returned, or the file of it, got {aspects!r}"
        )
    return phrases
