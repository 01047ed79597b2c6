"""Aspects as phrases: their normal form, and what several samples agree on.

Online aspects (section 3.1 of the paper: "self-consistency to select the most agreeable
aspect"). It gives neither the number of samples nor the rule. Ours: near-duplicates are one
aspect; those that most samples name are kept, of equals those named earlier.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Literal

AspectAgreement = Literal["frequency", "list_medoid"]
"""Keep the aspects that most samples name, or the list that is most like the others."""

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
    lists: Sequence[Sequence[str]],
    vectors: Mapping[str, Sequence[float]],
    n: int,
    rule: AspectAgreement = "frequency",
) -> list[str]:
    """Return the aspects that the samples agree on, at most n.

    Args:
        lists: The aspects of each sample, best first.
        vectors: An embedding for every normal form; forms that are missing are alike only
            to themselves.
        n: Aspects wanted.
        rule: `"frequency"`, or `"list_medoid"`: the list with the largest mean Jaccard
            similarity to the others.
    """
    lists = [phrases for phrases in (distinct(each) for each in lists) if phrases]
    if not lists:
        return []
    group = _groups(lists, vectors)
    if rule == "list_medoid":
        sets = [{group[normal_form(phrase)] for phrase in each} for each in lists]
        scores = [
            fmean([_jaccard(one, other) for j, other in enumerate(sets) if j != i] or [0.0])
            for i, one in enumerate(sets)
        ]
        best = lists[scores.index(max(scores))]
        unlike = {group[normal_form(phrase)]: phrase for phrase in reversed(best)}
        return list(reversed(unlike.values()))[:n]
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


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0
