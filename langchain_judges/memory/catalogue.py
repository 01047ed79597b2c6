"""What a memory holds: the versions of every example, in the order they were remembered."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from langchain_core.documents import Document

from langchain_judges.errors import InputError
from langchain_judges.memory.recall import Example, texts_of
from langchain_judges.rows.messages import plain_row

_FIELDS = tuple(name for name in Example.__annotations__ if name != "version")
_PROVENANCE = ("source", "group", "round", "auditor")
_CONTENT = ("family", "input", "output", "expected")
_TAKEN = (*_FIELDS, "output_a", "output_b", "reference", "version", "at")
_LEFT_OUT = {"label", "category", "systems", "turn", "human_votes"}
"""What people know of a row; a corrected row may bring it, and no example holds it."""


@dataclass(frozen=True)
class Record:
    """One version of an example, as it stands in the store."""

    key: str
    seq: int
    at: str
    text: str
    example: dict[str, Any]

    @classmethod
    def new(cls, example: dict[str, Any], seq: int, at: str, again: int = 0) -> Record:
        """Make a record; `again` says how many alike the example has had before."""
        digest = hashlib.sha256(f"{_canonical(example)}{again}".encode()).digest()
        key = str(uuid.UUID(bytes=digest[:16], version=4))
        return cls(key, seq, at, texts_of(example).joined() or " ", example)

    @classmethod
    def read(cls, document: Document) -> Record:
        """Return the record that a document of the store holds."""
        told = document.metadata
        example = json.loads(told["example"])
        return cls(told["key"], told["seq"], told["at"], document.page_content, example)

    def document(self, memory: str) -> Document:
        """Return the document of the store that holds the record."""
        # Texts and numbers alone: some stores take nothing else as metadata.
        told = {
            "memory": memory,
            "family": self.example["family"],
            "key": self.key,
            "seq": self.seq,
            "at": self.at,
            "example": json.dumps(self.example),
        }
        return Document(id=self.key, page_content=self.text, metadata=told)


@dataclass
class Catalogue:
    """What a memory holds, in order."""

    records: list[Record]
    chains: dict[str, list[Record]] = field(default_factory=dict)
    """The versions of every example, by its id."""
    active: list[Example] = field(default_factory=list)
    families: dict[str, list[Example]] = field(default_factory=dict)
    last: dict[str, Example] = field(default_factory=dict)
    """The examples by the key of their last record."""
    version: str = ""

    def __post_init__(self) -> None:
        for record in self.records:
            self.chains.setdefault(record.example["id"], []).append(record)
        for chain in self.chains.values():
            example = cast("Example", {**chain[-1].example, "version": _corrections(chain)})
            self.active.append(example)
            self.families.setdefault(example["family"], []).append(example)
            self.last[chain[-1].key] = example
        self.version = _version(chain[-1] for chain in self.chains.values())

    def placed(
        self, examples: Sequence[dict[str, Any]], now: str
    ) -> tuple[list[str], list[Record]]:
        """Return the id of every example, and records of those that are new."""
        chains = {name: list(chain) for name, chain in self.chains.items()}
        ids = {_content(chain[-1].example): name for name, chain in chains.items()}
        seq = max((record.seq for record in self.records), default=0)
        told: list[str] = []
        fresh: list[Record] = []
        for given in examples:
            at = given.pop("at", None)
            content = _content(given)
            name = ids.get(content) or given["id"] or content[:16]
            ids[content] = name
            told.append(name)
            example = {**given, "id": name}
            chain = chains.setdefault(name, [])
            if _is_known(example, at, chain):
                continue
            seq += 1
            again = sum(record.example == example for record in chain)
            record = Record.new(example, seq, at or now, again)
            chain.append(record)
            fresh.append(record)
        return told, fresh

    def history(self) -> list[dict[str, Any]]:
        """Return what was remembered together, as `FailureMemory.history` tells it."""
        entries: list[dict[str, Any]] = []
        last: dict[str, Record] = {}
        for record in self.records:
            own = record.example
            told = {"at": record.at, "round": own["round"], "auditor": own["auditor"]}
            if not entries or {name: entries[-1][name] for name in told} != told:
                entries.append({**told, "added": [], "corrected": []})
            entries[-1]["corrected" if own["id"] in last else "added"].append(own["id"])
            last[own["id"]] = record
            entries[-1].update(size=len(last), version=_version(last.values()))
        return entries


def _version(records: Iterable[Record]) -> str:
    told = "\n".join(_canonical(record.example) for record in records)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _is_known(example: dict[str, Any], at: str | None, chain: Sequence[Record]) -> bool:
    """Say whether an example says nothing new after the versions there are.

    One from an export is known if it stands anywhere among them.
    """
    for record in reversed(chain):
        if record.example == example and at in (None, record.at):
            return True
        if at is None and _lesson(record.example) != _lesson(example):
            return False
    return False


def _lesson(example: Mapping[str, Any]) -> list[Any]:
    """Return what an example teaches, whoever audited it and when."""
    return [example[name] for name in _FIELDS if name not in _PROVENANCE]


def _corrections(chain: Sequence[Record]) -> int:
    """Return how often what an example teaches has been said anew."""
    lessons = [_lesson(record.example) for record in chain]
    return 1 + sum(a != b for a, b in pairwise(lessons))


def _canonical(example: Mapping[str, Any]) -> str:
    return json.dumps({name: example[name] for name in _FIELDS}, sort_keys=True)


def _content(example: Mapping[str, Any]) -> str:
    told = json.dumps([example[name] for name in _CONTENT], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def copied(example: Example) -> Example:
    """Return an example that can be changed without harm."""
    return cast("Example", json.loads(json.dumps(example)))


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an example with every field.

    Raises:
        InputError: It is none; the message says why.
    """
    if not isinstance(given, Mapping):
        raise InputError(f"an example must be an object, got {type(given).__name__}")
    if unknown := sorted(set(given) - {*_TAKEN, *_LEFT_OUT}):
        raise InputError(f"an example has no {unknown!r}; it takes {list(_TAKEN)!r}")
    given = plain_row(given)
    example = {name: given.get(name) for name in _FIELDS}
    if example["output"] is None and "output_a" in given:
        example["output"] = {name: given.get(name) for name in ("output_a", "output_b")}
    elif isinstance(example["output"], Mapping):
        example["output"] = plain_row(example["output"])
    if example["expected"] is None:
        example["expected"] = given.get("reference")
    _check_output(example["output"])
    _check_labels(example)
    if example["round"] is not None and not isinstance(example["round"], int):
        raise InputError(f"`round` must be a whole number, got {example['round']!r}")
    example["family"] = str(example["family"] or "")
    example["input"] = example["input"] or ""
    if given.get("at"):
        example["at"] = str(given["at"])
    try:
        plain: dict[str, Any] = json.loads(json.dumps(example, allow_nan=False))
        texts_of(plain)
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as exc:
        raise InputError(f"an example must be plain JSON data: {exc}") from exc
    return plain


def _check_labels(example: dict[str, Any]) -> None:
    for name in ("wrong", "corrected"):
        label = example[name]
        if isinstance(label, bool):
            example[name] = int(label)
        elif not isinstance(label, str | int | float) and (name, label) != ("wrong", None):
            raise InputError(f"`{name}` must be a label (text or number), got {label!r}")


def _check_output(output: Any) -> None:
    pair = isinstance(output, Mapping)
    sides = [output.get("output_a"), output.get("output_b")] if pair else [output]
    if any(not isinstance(side, str | list) or not side for side in sides):
        raise InputError(
            "an example needs `output`, a text or messages, or `output_a` and `output_b`; "
            f"got {str(output)[:60]!r}"
        )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the examples of a JSONL file.

    Raises:
        InputError: It cannot be read, or a line is no example.
    """
    try:
        text = path.read_text("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(f"{path} cannot be read: {exc}") from exc
    examples = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                examples.append(checked(json.loads(line)))
            except ValueError as exc:
                raise InputError(f"{path}, line {number}: {exc}") from exc
    return examples
