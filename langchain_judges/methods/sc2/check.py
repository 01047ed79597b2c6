"""Checking a table without a model: overlapping cells, unsupported cells, coverage.

Our own addition, but for entailment and coverage over |C|, which is figure 5 of the paper
(measured there with scorers that are not public; here by words, sentence embeddings or any
entailment model of yours).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated

from annotated_types import Ge, Le

from langchain_judges.asking.faults import in_a_line
from langchain_judges.errors import JudgeError, OptionError
from langchain_judges.methods.sc2.aspects import cosine, normal_form
from langchain_judges.methods.sc2.replies import CheckedTable, ComparisonTable, TableRow
from langchain_judges.methods.sc2.table_view import NOTHING
from langchain_judges.methods.sc2.tables import filled_cells
from langchain_judges.options import NotSerialisable, Options, Rule

Nli = Callable[[str, str], float]
"""From a premise and a hypothesis to the probability of entailment, in [0, 1]."""

_STOP = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be been but by can do does for from had has have he her his how i
        if in into is it its more no not of on or our she so than that the their them then
        there these they this to was we were what when where which who will with you your""",
    )
)
_UNSPACED = re.compile(
    "([\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"
    "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
"""Thai, Lao, Burmese, Khmer, kana and Han, which are written without spaces between words."""

_LONGEST = 60
"""Sentences of a text that are looked at."""


class TableCheck(Options):
    """How tables are checked; the limits are ours, and untuned."""

    called = "table_check"

    lexical: Annotated[float, Ge(0), Le(1)] = 0.7
    """Share of the shorter cell's content words, found again in the other, from which a shared
    and an exclusive cell overlap."""
    cosine: Annotated[float, Ge(0), Le(1)] = 0.9
    """Cosine of their embeddings from which they overlap."""
    support: Annotated[float, Ge(0), Le(1)] = 0.5
    """Least support of a cell by a text."""
    prefilter: bool = True
    """Let a table that passes win against one that does not, without asking the comparator."""
    embed: bool = True
    """Use embeddings beside words."""
    nli: Annotated[Nli | None, NotSerialisable(), Rule("a function of two texts")] = None
    """An entailment model instead of words and embeddings for support and coverage, called as
    `nli(premise, hypothesis)`; it returns a number from 0 to 1."""

    @property
    def nli_name(self) -> str | None:
        """What the entailment model is called."""
        return getattr(self.nli, "__name__", type(self.nli).__name__) if self.nli else None


PhraseVectors = Mapping[str, Sequence[float]]


def phrases_of(tables: Sequence[ComparisonTable], texts: Sequence[str]) -> list[str]:
    """Return every cell and sentence that the check compares, each once."""
    cells = [c for t in tables for row in t["rows"] for c in filled_cells(row).values()]
    return list(dict.fromkeys([*cells, *(s for text in texts for s in sentences(text))]))


def check_table(
    check: TableCheck, table: ComparisonTable, text_a: str, text_b: str, vectors: PhraseVectors
) -> CheckedTable:
    """Check one table against the two texts.

    Args:
        check: The limits.
        table: A table; one that is not valid is not clean.
        text_a: The judged text A.
        text_b: The judged text B.
        vectors: Embeddings by phrase; empty compares words alone.

    Raises:
        OptionError: The entailment model fails, or returns no number from 0 to 1.
    """
    worst, overlapping = 0.0, False
    for row in table["rows"]:
        for only in (row["only_a"], row["only_b"]):
            words, near = _overlap(row["common"], only, vectors)
            worst = max(worst, words, near)
            overlapping |= words >= check.lexical or near >= check.cosine
    supports = _Supports(check, {"only_a": text_a, "only_b": text_b}, vectors)
    entailed, unsupported = supports.of_cells(table["rows"])
    return {
        "number": table["number"],
        "overlap": round(worst, 4),
        "entailment": round(fmean(entailed), 4) if entailed else None,
        "coverage": supports.coverage(table["rows"]),
        "unsupported": unsupported,
        "clean": table["valid"] and not overlapping and not unsupported,
    }


@dataclass(frozen=True)
class _Supports:
    """How far the two texts support cells, and the cells tell the texts."""

    check: TableCheck
    texts: Mapping[str, str]
    """By the cell that holds what a text alone has."""
    vectors: PhraseVectors

    def of_cells(self, rows: Sequence[TableRow]) -> tuple[list[float], list[dict[str, str]]]:
        """Return each cell's support by the texts it speaks of, and cells without any."""
        entailed: list[float] = []
        unsupported: list[dict[str, str]] = []
        for row in rows:
            for name, cell in filled_cells(row).items():
                by = {side: self._support(text, cell) for side, text in self.texts.items()}
                entailed.append(by.get(name, min(by.values())))
                if max(by.values()) < self.check.support:
                    unsupported.append({"aspect": row["aspect"], "cell": name, "text": cell})
        return entailed, unsupported

    def coverage(self, rows: Sequence[TableRow]) -> float | None:
        """Return the mean share of both texts' sentences that their cells tell."""
        shares: list[float] = []
        for side, text in self.texts.items():
            cells = [
                cell
                for row in rows
                for name, cell in filled_cells(row).items()
                if name in {"common", side}
            ]
            shares += [self._coverage_of(cells, sentence) for sentence in sentences(text)]
        return round(fmean(shares), 4) if shares else None

    def _support(self, text: str, cell: str) -> float:
        if self.check.nli:
            return self._entailment(self.check.nli, text, cell)
        if _quotes(text, cell):
            return 1.0
        near = [self._cosine(cell, sentence) for sentence in sentences(text)]
        return max([_share(cell, text), *near])

    def _coverage_of(self, cells: Sequence[str], sentence: str) -> float:
        if not cells:
            return 0.0
        if self.check.nli:
            return self._entailment(self.check.nli, ". ".join(cells), sentence)
        near = [self._cosine(cell, sentence) for cell in cells]
        return max([_share(sentence, " ".join(cells)), *near])

    def _entailment(self, nli: Nli, premise: str, hypothesis: str) -> float:
        model_name = f"the entailment model `nli` ({self.check.nli_name})"
        try:
            answer = nli(premise, hypothesis)
        except JudgeError:
            raise
        except Exception as exc:  # a function of the caller's may raise anything
            raise OptionError(f"{model_name} failed: {in_a_line(exc)}") from exc
        try:
            value = float(answer)
        except (TypeError, ValueError):
            value = math.nan
        if not 0 <= value <= 1:
            raise OptionError(f"{model_name} must return a number from 0 to 1, got {answer!r}")
        return value

    def _cosine(self, one: str, other: str) -> float:
        if one not in self.vectors or other not in self.vectors:
            return 0.0
        return max(0.0, cosine(self.vectors[one], self.vectors[other]))


def sentences(text: str) -> list[str]:
    """Return the first sixty sentences of a text that have a content word."""
    parts = re.split(r"(?<=[.!?])\s+|(?<=[。！？।])|\n+", text)
    return [part.strip() for part in parts if _words(part)][:_LONGEST]


def _overlap(common: str, only: str, vectors: PhraseVectors) -> tuple[float, float]:
    """Return by words and by embedding how far two cells say the same."""
    if {common, only} & {NOTHING, ""}:
        return 0.0, 0.0
    if _plain(common) == _plain(only):
        return 1.0, 1.0
    one, other = _words(common), _words(only)
    shared, smaller = len(one & other), min(len(one), len(other))
    # One word that two cells share is their topic more often than their claim.
    words = shared / smaller if smaller > 1 else shared / max(1, len(one | other))
    comparable = common in vectors and only in vectors
    near = max(0.0, cosine(vectors[common], vectors[only])) if comparable else 0.0
    return words, near


def _share(part: str, whole: str) -> float:
    """Return the share of a phrase's content words that another text has; 1 if it has none."""
    words = _words(part)
    return len(words & _words(whole)) / len(words) if words else 1.0


def _words(text: str) -> frozenset[str]:
    """Return content words; of scripts without spaces, pairs of neighbouring characters."""
    words = (word for word in normal_form(text).split() if word not in _STOP)
    return frozenset(part for word in words for part in _parts(word))


def _parts(word: str) -> list[str]:
    parts: list[str] = []
    for run in filter(None, _UNSPACED.split(word)):
        pairs = [run[i : i + 2] for i in range(len(run) - 1)]
        parts += pairs if pairs and _UNSPACED.match(run) else [run]
    return parts


def _quotes(text: str, cell: str) -> bool:
    """Say whether a text has a cell's very characters, and not in the midst of a word."""
    part, whole = _plain(cell), _plain(text)
    if not part:
        return False
    before, after = (r"\b" if _spaced(char) else "" for char in (part[0], part[-1]))
    return bool(re.search(before + re.escape(part) + after, whole))


def _spaced(char: str) -> bool:
    return char.isalnum() and not _UNSPACED.match(char)


def _plain(text: str) -> str:
    """Return a text in lower case, in one encoding, without the space and stops around it."""
    words = " ".join(unicodedata.normalize("NFC", text.casefold()).split())
    return words.strip(" .,;:…。、，；：")
