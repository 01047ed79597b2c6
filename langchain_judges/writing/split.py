"""Dividing concepts into groups that can be trusted, and the tree of what is still to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from langchain_judges.writing.coverage import fold, present
from langchain_judges.writing.state import Branching, Piece

Groups = list[list[str]]


def placed(concepts: Sequence[str], proposed: Sequence[Iterable[str]]) -> Groups:
    """Return a division of `concepts` made of a proposed one that nobody trusts.

    Concepts get their original spelling back, also where another word form was written;
    strangers are dropped; of repetitions the first counts; what was left out goes to the
    smallest group; an empty group gets half of the largest; if nothing is usable, the
    list is cut into even runs.

    Args:
        concepts: Distinct concepts, at least as many as there are groups.
        proposed: The groups as a model wrote them.

    Returns:
        As many groups as proposed, none empty; together they hold each concept once.

    Source: Saha et al. 2023, section 4.1 (branch); the correction is our reading.
    """
    open_concepts = {_key(concept): concept for concept in concepts}
    groups: Groups = [[] for _ in proposed]
    for exact in (True, False):
        # Every exact spelling first: "skis" must not take the place of "ski".
        for group, names in zip(groups, proposed, strict=True):
            for name in names:
                key = _key(name) if exact else _form_of(name, open_concepts)
                if key is not None and key in open_concepts:
                    group.append(open_concepts.pop(key))
    if not any(groups):
        return runs(concepts, len(groups))
    for concept in open_concepts.values():
        min(groups, key=len).append(concept)
    while not all(groups):
        empty = min(groups, key=len)
        largest = max(groups, key=len)
        half = (len(largest) + 1) // 2
        empty += largest[half:]
        del largest[half:]
    return groups


def runs(concepts: Sequence[str], groups: int) -> Groups:
    """Cut a list into so many runs of even length, longer ones first."""
    size, longer = divmod(len(concepts), groups)
    cuts = [n * size + min(n, longer) for n in range(groups + 1)]
    return [list(concepts[start:end]) for start, end in pairwise(cuts)]


def _key(name: str) -> str:
    # What `distinct` keeps apart, "ice cream" and "ice-cream", has keys of its own.
    return " ".join(fold(name).split())


def _form_of(name: str, open_concepts: Mapping[str, str]) -> str | None:
    size = _size(_key(name))
    forms = [
        key
        for key, concept in open_concepts.items()
        if _size(key) == size and present(concept, name)
    ]
    return forms[0] if len(forms) == 1 else None


def _size(key: str) -> int:
    return len(key.replace("-", " ").split())


@dataclass(frozen=True)
class Part:
    """A text in the making, and the concepts it has to use."""

    label: str
    concepts: list[str]
    text: str


@dataclass(frozen=True)
class ToDo:
    """A call that can be made now."""

    step: Literal["split", "solve", "merge"]
    unit: str
    path: str
    concepts: list[str]
    parts: list[Part] = field(default_factory=list)


class Tree:
    """What is done and what can be done next, by what the calls so far have brought.

    Args:
        concepts: The concepts of the task.
        branchings: The divisions made.
        pieces: The drafts and merged texts made.
        depth: Levels of division.
        pairwise: Merge two and two instead of all parts at once.
    """

    def __init__(
        self,
        concepts: list[str],
        branchings: Iterable[Branching],
        pieces: Iterable[Piece],
        depth: int,
        pairwise: bool,
    ) -> None:
        """Walk the tree once."""
        self.next: list[ToDo] = []
        """Calls that can be made at the same time; empty when the text is done."""
        self.groups: Groups = []
        self.drafts: list[str | None] = []
        self._divided = {each["path"]: each["groups"] for each in branchings}
        self._texts = {(each["step"], each["unit"]): each["text"] for each in pieces}
        self._depth = depth
        self._pairwise = pairwise
        _, root = self._node("", concepts)
        self.text = root.text if root else None
        """The whole text; None while there is something to do, and where all failed."""

    def _node(self, path: str, concepts: list[str]) -> tuple[bool, Part | None]:
        """Return whether a place in the tree is done, and its text if there is one."""
        level = path.count(".") + bool(path)
        if level == self._depth or len(concepts) < 2:
            return self._leaf(path, concepts)
        if path not in self._divided:
            self.next.append(ToDo("split", _name_of(path), path, concepts))
            return False, None
        children = [
            self._node(f"{path}.{number}".lstrip("."), group)
            for number, group in enumerate(self._divided[path], 1)
        ]
        if not all(complete for complete, _ in children):
            return False, None
        return self._merged(path, [part for _, part in children if part])

    def _leaf(self, path: str, concepts: list[str]) -> tuple[bool, Part | None]:
        unit = f"group {path or 1}"
        text = self._texts.get(("solve", unit))
        self.groups.append(concepts)
        self.drafts.append(text)
        if ("solve", unit) not in self._texts:
            self.next.append(ToDo("solve", unit, path, concepts))
            return False, None
        return True, Part(path, concepts, text) if text else None

    def _merged(self, path: str, parts: list[Part]) -> tuple[bool, Part | None]:
        while len(parts) > 1:
            step = 2 if self._pairwise else len(parts)
            batches = [parts[start : start + step] for start in range(0, len(parts), step)]
            parts, waiting = [], False
            for batch in batches:
                label = "+".join(part.label for part in batch)
                unit = _name_of(path) if len(batches) == 1 else f"groups {label}"
                concepts = [concept for part in batch for concept in part.concepts]
                if len(batch) == 1:
                    parts += batch
                elif ("merge", unit) not in self._texts:
                    self.next.append(ToDo("merge", unit, path, concepts, batch))
                    waiting = True
                elif text := self._texts["merge", unit]:
                    parts.append(Part(label, concepts, text))
            if waiting:
                return False, None
        return True, Part(path, parts[0].concepts, parts[0].text) if parts else None


def _name_of(path: str) -> str:
    return f"group {path}" if path else ""
