"""Reading the votes of a panel: from a reply to votes by slot, each with its confidence."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage
from pydantic import ValidationError

from langchain_judges.asking.confidence import (
    Confidence,
    Span,
    json_spans,
    reply_tokens,
    span_confidence,
)
from langchain_judges.methods.drpe.state import RoleVote
from langchain_judges.verdict import Role

SpanKind = Literal["joint", "vote", "reason"]
"""Whose tokens count: those of vote and reason together, or of one of them."""

_NUMBERED = re.compile(r"^\s*(?:[-*•]\s+)?(?:(?P<number>\d{1,2})[.):]\s*)?(?P<text>\S.*)$")
_NAME = re.compile(r"^\s*(?:[-*•]\s+)?(?:\d{1,2}[.):]\s*)?(?P<name>[^.:!?\n]{1,60}):")
_VOTE = re.compile(
    r"(?:vote|choice|prefers?|preferred|choose|chooses|winner)\W{0,4}(?:is|for)?\W{0,4}"
    r"(?:candidate|summary|response)?\s*[*\"']*(?P<vote>\d+|equal|tie|both|neither)\b",
    re.IGNORECASE,
)


class Spoken(NamedTuple):
    """A vote in plain words, and where it and its reason stand in the reply."""

    reason: str
    vote: str
    spans: dict[str, Span]


def spoken_votes(text: str, roles: Sequence[Role], alone: bool = False) -> dict[int, Spoken]:
    """Read votes in plain words, one line or paragraph for each role, by its name or number.

    Votes may come in any order; the first of a role counts; those of roles that are not on
    the panel are passed over. A role that was asked alone need not say its name.
    """
    found: dict[int, Spoken] = {}
    for start, part in _paragraphs(text, roles):
        position = _whose(part, roles)
        votes = list(_VOTE.finditer(part))
        if position is None or position in found or not votes:
            continue
        last = votes[-1]
        name_end = part.find(":") + 1
        spans = {
            "reason": (start + name_end, start + last.start()),
            "vote": (start + last.start("vote"), start + last.end("vote")),
        }
        reason = part[name_end : last.start()].strip(" \n-–—*.;,")
        found[position] = Spoken(reason, last["vote"].lower(), spans)
    return found or (_unnamed_vote(text) if alone else {})


def _unnamed_vote(text: str) -> dict[int, Spoken]:
    votes = list(_VOTE.finditer(text))
    if not votes:
        return {}
    last = votes[-1]
    spans = {"reason": (0, last.start()), "vote": last.span("vote")}
    reason = text[: last.start()].strip(" \n-–—*.;,").removeprefix("Reason:").strip()
    return {0: Spoken(reason, last["vote"].lower(), spans)}


def _paragraphs(text: str, roles: Sequence[Role]) -> list[tuple[int, str]]:
    """Cut the text before every line that begins with a name; return parts and places."""
    starts: list[int] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if _named(line) or _whose(line, roles) is not None:
            starts.append(at)
        at += len(line)
    ends = [*starts, len(text)][1:]
    return [(start, text[start:end]) for start, end in zip(starts, ends, strict=True)]


def _whose(part: str, roles: Sequence[Role]) -> int | None:
    """Return the position of the role that a line begins with, by name, else by number."""
    line = _NUMBERED.match(next(iter(part.splitlines()), ""))
    if line is None:
        return None
    name, colon, _ = line["text"].partition(":")
    names = [role["type"].casefold() for role in roles]
    wanted = name.strip(" *_\"'").casefold()
    close = difflib.get_close_matches(wanted, names, n=1, cutoff=0.8) if colon else []
    if close:
        return names.index(close[0])
    number = int(line["number"] or 0)
    return number - 1 if 0 < number <= len(roles) and not _named(part) else None


def _named(line: str) -> bool:
    """Say whether a line begins with what looks like a name, and is no vote."""
    found = _NAME.match(line)
    return bool(found) and not _VOTE.search(found["name"].strip(" *-") + ": 1")  # type: ignore[index]


def slot_vote(data: Any) -> RoleVote | None:
    """Return a vote as it was meant to be, or None for anything else, an even one too."""
    try:
        return RoleVote.model_validate(data)
    except ValidationError:
        return None


def confidences(
    message: AIMessage,
    data: Mapping[str, Any],
    roles: Sequence[Role],
    kind: SpanKind,
    alone: bool = False,
) -> dict[str, list[float | int]]:
    """Return `{"role_1": [confidence, tokens], …}` of the roles whose tokens are known.

    Eq. 3 of the paper is taken over the tokens of the reason and the vote themselves: no
    names, quotes or commas, which the format and not the role decides.
    """
    tokens = reply_tokens(message)
    text = message.text
    found: dict[str, list[float | int]] = {}
    for unit, spans in _spans(text, data, roles, alone).items():
        wanted = ["reason", "vote"] if kind == "joint" else [kind]
        measured: Confidence | None = span_confidence(
            text, tokens, [spans[part] for part in wanted if part in spans]
        )
        if measured:
            found[unit] = [measured.value, measured.tokens]
    return found


def _spans(
    text: str, data: Mapping[str, Any], roles: Sequence[Role], alone: bool
) -> dict[str, Mapping[str, Span]]:
    """Return where each role's reason and vote stand, in a JSON reply or a spoken one."""
    written = json_spans(text, data)
    units = [f"role_{i + 1}" for i in range(len(roles))]
    if any((unit, "vote") in written for unit in units):
        return {
            unit: {
                part: written[unit, part]
                for part in ("reason", "vote")
                if (unit, part) in written
            }
            for unit in units
        }
    if ("vote",) in written:
        return {
            "role_1": {
                part: written[(part,)] for part in ("reason", "vote") if (part,) in written
            }
        }
    spoken = spoken_votes(text, roles, alone)
    return {units[position]: vote.spans for position, vote in spoken.items()}
