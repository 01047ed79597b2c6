"""Aspects: phrases and their normal form, what samples agree on, and files of learned ones.

Online aspects (section 4 of the paper: "self-consistency to select the most agreeable
aspect"). It gives neither the number of samples nor the rule. Ours: phrases of one normal form
are one aspect; those that most samples name are kept, of equals those named earlier.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.rows.files import json_in
from langchain_judges.verdict import Failure, Usage

_ARTICLES = {"the", "a", "an"}


def normal_form(phrase: str) -> str:
    """A phrase in lower case, without articles and punctuation, in the singular.

    >>> normal_form("The main Arguments.")
    'main argument'
    """
    text = unicodedata.normalize("NFC", phrase.casefold())
    # The number sign tells C# from C; letters of some scripts are joined by marks.
    parted = [
        " " if unicodedata.category(char)[0] == "P" and char != "#" else char for char in text
    ]
    words = "".join(parted).split()
    return " ".join(map(_singular, [word for word in words if word not in _ARTICLES] or words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def distinct_phrases(phrases: Iterable[str], most: int | None = None) -> list[str]:
    """The phrases on one line each, the first of every normal form.

    Numbers and bullets before a phrase are dropped; what is longer than eighty characters
    is no phrase, and is cut.
    """
    by_form: dict[str, str] = {}
    for phrase in phrases:
        bare = re.sub(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+", "", phrase)
        line = " ".join(bare.split()).strip(" .:;,*_\"'`")[:80]
        if normal_form(line):
            by_form.setdefault(normal_form(line), line)
    return list(by_form.values())[:most]


def by_frequency(lists: Iterable[Sequence[str]]) -> list[str]:
    """Every phrase once: those of most lists first, of equals those named earlier.

    Args:
        lists: Phrases, in each list the best first.
    """
    distinct_lists = [distinct_phrases(each) for each in lists]
    names = {normal_form(name): name for each in reversed(distinct_lists) for name in each}
    ranks: dict[str, list[int]] = {}
    for phrases in distinct_lists:
        for rank, phrase in enumerate(phrases):
            ranks.setdefault(normal_form(phrase), []).append(rank)
    forms = sorted(ranks, key=lambda form: (-len(ranks[form]), fmean(ranks[form])))
    return [names[form] for form in forms]


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
