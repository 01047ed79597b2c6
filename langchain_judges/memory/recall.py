"""Which remembered examples a judge is shown: the choices, and the guard against leaks."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.rows.messages import plain_row
from langchain_judges.rows.texts import judged, transcript, with_source

Label = str | int | float
Kind = Literal["all", "uniform", "balanced", "knn", "mmr", "leave_out", "greedy_dev"]
Score = Callable[[list[Any]], Any]
"""How well a judge does on development data with some examples; it may be async."""

ALIKE = 0.9
"""Share of common word triples from which on two texts count as the same."""


class Example(TypedDict):
    """An audited mistake of a judge, and what it should have said."""

    id: str
    family: str
    """What it is an example of; a judge recalls within the family of its item."""
    input: str | list[dict[str, Any]]
    output: str | list[dict[str, Any]] | dict[str, Any]
    """The judged text; for a pair `{"output_a", "output_b"}`."""
    expected: str | list[str] | None
    wrong: Label | None
    """What the judge said; for a pair `"A"`, `"B"` or `"tie"`."""
    corrected: Label
    mode: Label | None
    """The failure mode, as the auditor named it."""
    source: str | None
    """The id of the item it comes from."""
    group: str | None
    """The group of that item; no item of it is shown the example."""
    round: int | None
    auditor: str | None
    note: str | None
    version: int
    """1, and one more for each time it was corrected again."""


@dataclass(frozen=True)
class Recall:
    """A choice of examples; make it with the functions of this module."""

    kind: Kind
    m: int | None = None
    seed: int = 0
    relevance: float = 0.5
    mode: Label | None = None
    within: Recall | None = None
    score: Score | None = None
    pool: int | None = None
    any_family: bool = False

    def __str__(self) -> str:
        """Return what is shown in metadata: `knn:8`."""
        parts = [
            self.kind,
            *(str(p) for p in (self.mode, self.m, self.within) if p is not None),
        ]
        return ":".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Return the choice as plain data; a function is named."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        if self.within:
            own["within"] = self.within.as_json()
        if self.score:
            own["score"] = getattr(self.score, "__qualname__", type(self.score).__name__)
        return own


def all_(*, any_family: bool = False) -> Recall:
    """Choose every example, in the order they were remembered (Hasanbeig et al. 2023)."""
    return Recall("all", any_family=any_family)


def uniform(m: int, *, seed: int = 0, any_family: bool = False) -> Recall:
    """Choose `m` examples by chance, the same ones for every item that may see them.

    A larger `m` under the same seed keeps the examples of a smaller one.
    """
    return Recall("uniform", _many(m), seed=seed, any_family=any_family)


def balanced(m: int, *, seed: int = 0, any_family: bool = False) -> Recall:
    """Choose `m` examples by chance, as many of one corrected label as of each other."""
    return Recall("balanced", _many(m), seed=seed, any_family=any_family)


def knn(m: int = 8, *, any_family: bool = False) -> Recall:
    """Choose the `m` examples nearest to the item, by task, response and expected answer."""
    return Recall("knn", _many(m), any_family=any_family)


def mmr(m: int = 8, *, relevance: float = 0.5, any_family: bool = False) -> Recall:
    """Choose `m` examples near to the item and unlike each other.

    Args:
        m: How many.
        relevance: 1 looks at nearness only, 0 at variety only.
        any_family: Choose from the examples of every family.
    """
    if not isinstance(relevance, int | float) or not 0 <= relevance <= 1:
        raise OptionError(f"`relevance` must be from 0 to 1, got {relevance!r}")
    return Recall("mmr", _many(m), relevance=relevance, any_family=any_family)


def leave_out(mode: Label, how: Recall | str = "all") -> Recall:
    """Choose as `how` does among the examples of every failure mode but one (section 5.5)."""
    within = read_recall(how)
    return Recall("leave_out", mode=mode, within=within, any_family=within.any_family)


def greedy_dev(
    m: int, score: Score, *, pool: int | None = 20, seed: int = 0, any_family: bool = False
) -> Recall:
    """Choose up to `m` examples one by one, each the one that helps most on development data.

    It ends early where no further example helps. The choice is made once for a family and a
    version of the memory.

    Args:
        m: Most examples.
        score: Takes a list of examples and returns how well the judge does with them.
        pool: Candidates, drawn by chance; None tries every example.
        seed: Of that draw.
        any_family: Choose from the examples of every family.
    """
    if not callable(score):
        raise OptionError(f"`score` must be a function of a list of examples, got {score!r}")
    pool = None if pool is None else _many(pool)
    return Recall(
        "greedy_dev", _many(m), seed=seed, score=score, pool=pool, any_family=any_family
    )


_MADE: dict[str, Callable[[int], Recall]] = {
    "uniform": uniform,
    "balanced": balanced,
    "knn": knn,
    "mmr": mmr,
}


def read_recall(how: Recall | str) -> Recall:
    """Return a choice from itself or from its name: `"all"`, `"knn:8"`, `"leave_out:2:knn:8"`.

    Raises:
        OptionError: There is no such choice.
    """
    if isinstance(how, Recall):
        return how
    name, _, rest = how.partition(":") if isinstance(how, str) else ("", "", "")
    if name == "all" and not rest:
        return all_()
    if name == "leave_out" and rest:
        mode, _, then = rest.partition(":")
        return leave_out(int(mode) if mode.isdigit() else mode, then or "all")
    if name in _MADE and (rest.isdigit() or (not rest and name in {"knn", "mmr"})):
        return _MADE[name](int(rest or 8))
    raise OptionError(
        "`recall` must be 'all', 'uniform:m', 'balanced:m', 'knn:m', 'mmr:m', "
        f"'leave_out:mode:…' or made by a function of `recall.py`, got {how!r}"
    )


def _many(m: int) -> int:
    if not isinstance(m, int) or isinstance(m, bool) or m < 1:
        raise OptionError(f"`m` must be a whole number of at least 1, got {m!r}")
    return m


class Recalled(list[Any]):
    """The examples that were recalled, as a list, and how they came to be chosen."""

    how: Recall = Recall("all")
    version: str = ""
    """Of the memory they come from."""
    allow_leak: bool = False
    leaked: tuple[str, ...] = ()
    """Ids of those that are the item itself or of its group; empty unless allowed."""
    barred: tuple[str, ...] = ()
    """Ids of those that were met and held back because they would leak."""


def drawn(examples: Iterable[Example], seed: int) -> list[Example]:
    """Return examples in an order by chance that does not depend on which others there are."""

    def rank(example: Example) -> str:
        return hashlib.sha256(f"{seed}:{example['id']}".encode()).hexdigest()

    return sorted(examples, key=rank)


def by_turns(examples: Iterable[Example]) -> list[Example]:
    """Return examples so that their corrected labels take turns, each in its given order."""
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(json.dumps(example["corrected"]), []).append(example)
    ranked = [
        (place, label, example)
        for label, group in sorted(groups.items())
        for place, example in enumerate(group)
    ]
    return [example for _, _, example in sorted(ranked, key=lambda row: row[:2])]


class Texts(NamedTuple):
    """What an item or an example says."""

    task: str
    outputs: tuple[str, ...]
    """The response; both of them, in a fixed order, for a pair."""
    expected: str

    def joined(self) -> str:
        """Return the text whose embedding stands for it; what differs most comes first."""
        return "\n\n".join(part for part in (*self.outputs, self.expected, self.task) if part)


def texts_of(item: Mapping[str, Any]) -> Texts:
    """Return the texts of an item, a pair or an example."""
    task = item.get("input") or ""
    output = item.get("output")
    if output is None and "output_a" in item:
        output = item
    if isinstance(output, Mapping):
        outputs = tuple(judged(output[side]) for side in ("output_a", "output_b"))
    else:
        outputs = (judged(output),) if output else ()
    expected = item.get("expected") or item.get("reference") or ""
    known = expected if isinstance(expected, str) else "\n".join(map(str, expected))
    if not (task or outputs or known):
        known = "\n".join(value for value in item.values() if isinstance(value, str))
    return Texts(transcript(task) if task else "", outputs, known)


def asked_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as examples are made of it, so that the two can be compared.

    The source that a single text is judged by stands behind the task; what names the item
    is a text, or None.
    """
    plain = plain_row(item)
    for name in ("id", "group", "family"):
        value = plain.get(name)
        plain[name] = None if value in (None, "") else str(value)
    # An example's `source` is the id of the item that it comes from, and no text.
    source = plain.get("source") if "output" in plain and "corrected" not in plain else None
    if isinstance(source, str):
        plain["input"] = with_source(plain.get("input") or "", source).strip()
    return plain


class Guard:
    """Knows which examples would show a judge the very item it is to judge."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        """Remember the item, as `asked_of` gives it."""
        self._id, self._group = item.get("id"), item.get("group")
        self._texts = texts_of(item)

    def bars(self, example: Example) -> bool:
        """Say whether an example is the item, nearly the item, or of its group."""
        if self._id is not None and self._id in (str(example["source"]), example["id"]):
            return True
        if self._group is not None and self._group == str(example["group"]):
            return True
        theirs = texts_of(example)
        mine = self._texts
        if len(mine.outputs) != len(theirs.outputs) or not same(mine.task, theirs.task):
            return False
        turned = theirs.outputs[::-1]
        return _all_same(mine.outputs, theirs.outputs) or _all_same(mine.outputs, turned)


def _all_same(these: Sequence[str], those: Sequence[str]) -> bool:
    return all(same(a, b) for a, b in zip(these, those, strict=True))


def same(a: str, b: str) -> bool:
    """Say whether two texts are the same but for case, spaces, punctuation or a few words."""
    if a == b:
        return True
    (words_a, triples_a), (words_b, triples_b) = _print(a), _print(b)
    if words_a == words_b:
        # Texts of signs alone have no words to compare.
        return bool(words_a)
    few, many = sorted((len(triples_a), len(triples_b)))
    if few < ALIKE * many or not few:
        return False
    common = len(triples_a & triples_b)
    return common >= ALIKE * (few + many - common)


@lru_cache(maxsize=8192)
def _print(text: str) -> tuple[tuple[str, ...], frozenset[tuple[str, ...]]]:
    words = tuple(re.findall(r"\w+", text.casefold()))
    return words, frozenset(zip(words, words[1:], words[2:], strict=False))


def narrowed(how: Recall, examples: Sequence[Example]) -> tuple[Recall, list[Example]]:
    """Take the failure modes that are left out from the examples; return what is left to do."""
    kept = list(examples)
    while how.kind == "leave_out" and how.within:
        kept = [example for example in kept if str(example["mode"]) != str(how.mode)]
        how = replace(how.within, any_family=how.any_family)
    return how, kept
