"""Aspects: phrases and their normal form, what samples agree on, and files of learned ones.

Online aspects (section 4 of the paper: "self-consistency to select the most agreeable
aspect"). It gives neither the number of samples nor the rule. Ours: near-duplicates are one
aspect; those that most samples name are kept, of equals those named earlier.
"""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from errno import EISDIR
from pathlib import Path
from statistics import fmean
from typing import Any

from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.verdict import Failure, Usage

NEAR = 0.8
"""Cosine from which two phrases name the same aspect."""

_ARTICLES = {"the", "a", "an"}


_OUTSIDE = re.compile(r"(?<=\w)([+#]+)(?![\w+#])|([^\w\s])")
"""What is no word: plus and number signs that end one, as in C++ and C#, or one character."""


def normal_form(phrase: str) -> str:
    """Return a phrase in lower case, without articles and punctuation, in the singular.

    Of a phrase without a word its pictures are kept.

    >>> normal_form("The main Arguments.")
    'main argument'
    """
    text = unicodedata.normalize("NFC", phrase.casefold().replace("_", " "))
    words = _OUTSIDE.sub(_spelled, text).split()
    rest = [word for word in words if word not in _ARTICLES] or words
    pictures = [char for char in text if unicodedata.category(char) == "So"]
    return " ".join(map(_singular, rest)) or "".join(pictures)


def _spelled(outside: re.Match[str]) -> str:
    """Return what stands for something outside of a word; marks are parts of one."""
    if outside[1]:
        return outside[1]
    kind = unicodedata.category(outside[2])
    # Joiners and other format characters part no words.
    return outside[2] if kind.startswith("M") else "" if kind == "Cf" else " "


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def distinct(phrases: Iterable[str], most: int | None = None) -> list[str]:
    """Return the phrases on one line each, the first of every normal form.

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


def by_frequency(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return every phrase once, those of most lists first."""
    counts = Counter(normal_form(phrase) for each in lists for phrase in each)
    once = distinct(phrase for each in lists for phrase in each)
    return sorted(once, key=lambda phrase: -counts[normal_form(phrase)])


def agree(
    lists: Sequence[Sequence[str]], vectors: Mapping[str, Sequence[float]], n: int
) -> list[str]:
    """Return the aspects that most samples name, at most n.

    Args:
        lists: The aspects of each sample, best first.
        vectors: An embedding for every normal form; forms that are missing are alike only
            to themselves.
        n: Aspects wanted.
    """
    lists = [phrases for phrases in (distinct(each) for each in lists) if phrases]
    if not lists:
        return []
    group = _groups(lists, vectors)
    ranks = _ranks(lists, group)
    order = sorted(ranks, key=lambda leader: (-len(ranks[leader]), fmean(ranks[leader])))
    names = {normal_form(phrase): phrase for each in reversed(lists) for phrase in each}
    return [names[leader] for leader in order[:n]]


def _groups(
    lists: Sequence[Sequence[str]], vectors: Mapping[str, Sequence[float]]
) -> dict[str, str]:
    """Map every normal form to the one that leads its group of near-duplicates.

    The forms that most samples name lead, so the grouping does not hang on chance order.
    """
    forms = {normal_form(phrase): normal_form(phrase) for each in lists for phrase in each}
    ranks = _ranks(lists, forms)
    group: dict[str, str] = {}
    for form in sorted(ranks, key=lambda form: (-len(ranks[form]), fmean(ranks[form]))):
        near = (
            leader
            for leader in dict.fromkeys(group.values())
            if form in vectors
            and leader in vectors
            and cosine(vectors[form], vectors[leader]) >= NEAR
        )
        group[form] = next(near, form)
    return group


def _ranks(lists: Sequence[Sequence[str]], group: Mapping[str, str]) -> dict[str, list[int]]:
    """Return the best rank of each group in every sample that names it."""
    ranks: dict[str, list[int]] = {}
    for each in lists:
        best: dict[str, int] = {}
        for rank, phrase in enumerate(each):
            best.setdefault(group[normal_form(phrase)], rank)
        for leader, rank in best.items():
            ranks.setdefault(leader, []).append(rank)
    return ranks


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors; 0 if one of them is null."""
    norms = math.hypot(*one) * math.hypot(*other)
    return math.fsum(x * y for x, y in zip(one, other, strict=True)) / norms if norms else 0.0


FOLDER_VARIABLE = "JUDGES_ASPECTS"
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
