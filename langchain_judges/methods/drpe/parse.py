"""Reading the votes of a panel: from a reply to votes by slot, each with its confidence."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage
from pydantic import ValidationError

from langchain_judges.asking.replies.confidence import (
    Span,
    json_spans,
    placed_tokens,
    reply_tokens,
    spelling,
)
from langchain_judges.methods.drpe.replies import RoleVote, unit_names
from langchain_judges.verdict import Role

SpanKind = Literal["joint", "vote", "reason"]
"""Whose tokens count: those of vote and reason together, or of one of them."""
ALTERNATIVES = 5
"""Tokens whose probabilities are asked for beside the vote's own, for soft votes."""

_NUMBERED = re.compile(r"^\s*(?:[-*•]\s+)?(?:(?P<number>\d{1,2})[.):]\s*)?(?P<text>\S.*)$")
_NAME = re.compile(r"^\s*(?:[-*•]\s+)?(?:\d{1,2}[.):]\s*)?(?P<name>[^.:!?\n]{1,60}):")
_VOTE = re.compile(
    r"\b(?:vote|choice|prefers?|preferred|choose|chooses|winner)\W{0,4}(?:is|for)?\W{0,4}"
    r"(?:(?:candidate|summary|response)\W{0,4})?(?P<vote>\d{1,3}|equal|tie|both|neither)\b"
    r"(?P<after>[*_\"'”’)\]]{0,4}(?:[.;,!:](?!\d)|\s{0,4}$|\s+(?:because|since|as|for|[-–—(])))",
    re.IGNORECASE | re.MULTILINE,
)
_CLAUSE = re.compile(r"[.,;:!?\n\u2013\u2014]|\s-\s")
_QUOTES = ('"', "'", "“", "‘", "«", "„")
_NOT_OWN = re.compile(
    r"n[o']t\b|\b(?:no|never|cannot|neither|nor|if|unless|whether|says?|said|claims?|asks?"
    r"|tells?|wants?|reads?|writes?|quotes?|demands?|could|might)\b",
    re.IGNORECASE,
)
"""What makes of a vote none, in its own clause: it is denied, doubted or somebody else's."""
_CLAUSE_LENGTH = 100
_MOST_LINES = 2000
"""Lines of a reply in plain words; no panel writes more."""


class SpokenVote(NamedTuple):
    """A vote in plain words, and where it and its reason stand in the reply."""

    reason: str
    vote: str
    spans: dict[str, Span]


def spoken_votes(
    text: str, roles: Sequence[Role], alone: bool = False
) -> dict[int, SpokenVote]:
    """Read votes in plain words, one line or paragraph for each role, by its name or number.

    Votes may come in any order; those of roles that are not on the panel are passed over, and
    of a role that votes twice, differently, nobody knows which counts. A role that was asked
    alone need not say its name.
    """
    votes: dict[int, list[SpokenVote]] = {}
    for start, part in _paragraphs(text, roles):
        position = _whose(part, roles)
        if position is not None:
            votes.setdefault(position, []).extend(_votes(start, part, part.find(":") + 1))
    if not any(votes.values()) and alone:
        votes = {0: _votes(0, text, 0)}
    return {
        position: role_votes[0]
        for position, role_votes in votes.items()
        if len({vote.vote for vote in role_votes}) == 1
    }


def _votes(start: int, part: str, reason_at: int) -> list[SpokenVote]:
    """Return the different votes in a part of a reply, each where it stands last; two at most.

    More than one is none, so nobody needs the third.
    """
    by_vote: dict[str, re.Match[str]] = {}
    for vote in _VOTE.finditer(part):
        if _is_own(part, vote):
            by_vote[vote["vote"].casefold()] = vote
    return [_prose_vote(start, part, reason_at, vote) for vote in list(by_vote.values())[:2]]


def _prose_vote(start: int, part: str, reason_at: int, vote: re.Match[str]) -> SpokenVote:
    spans = {
        "reason": (start + reason_at, start + vote.start()),
        "vote": (start + vote.start("vote"), start + vote.end("vote")),
    }
    reason = part[reason_at : vote.start()].strip(" \n-–—*.;,")
    return SpokenVote(reason.removeprefix("Reason:").strip(), vote["vote"].casefold(), spans)


def _is_own(part: str, vote: re.Match[str]) -> bool:
    """Say whether a vote is not quoted, denied or doubted where it stands."""
    before = part[max(0, vote.start() - _CLAUSE_LENGTH) : vote.start()]
    clause = _CLAUSE.split(before)[-1]
    return not before.endswith(_QUOTES) and not _NOT_OWN.search(clause)


def _paragraphs(text: str, roles: Sequence[Role]) -> list[tuple[int, str]]:
    """Cut the text before every line that begins with a name; return parts and places."""
    starts: list[int] = []
    at = 0
    lines = text.splitlines(keepends=True)
    for line in lines if len(lines) <= _MOST_LINES else []:
        if _is_name_line(line) or _whose(line, roles) is not None:
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
    target = name.strip(" *_\"'").casefold()
    close = difflib.get_close_matches(target, names, n=1, cutoff=0.8) if colon else []
    if close:
        return names.index(close[0])
    number = int(line["number"] or 0)
    return number - 1 if 0 < number <= len(roles) and not _is_name_line(part) else None


def _is_name_line(line: str) -> bool:
    """Say whether a line begins with what looks like a name, and is no vote."""
    match = _NAME.match(line)
    return bool(match) and not _VOTE.search(match["name"].strip(" *-") + ": 1")  # type: ignore[index]


def slot_vote(data: object) -> RoleVote | None:
    """Return a vote as it was meant to be, or None for anything else, an even one too."""
    try:
        return RoleVote.model_validate(data)
    except ValidationError:
        return None


def confidences(
    message: AIMessage,
    data: Mapping[str, object],
    roles: Sequence[Role],
    kind: SpanKind,
    alone: bool = False,
) -> dict[str, list[float | int]]:
    """Return `{"role_1": [confidence, tokens], …}` of the roles whose tokens are known.

    Eq. 3 of the paper is taken over the tokens of the reason and the vote themselves: no
    names, quotes or commas, which the format and not the role decides.
    """
    text = message.text
    letters = spelling(text, reply_tokens(message))
    if letters is None:
        return {}
    parts = ["reason", "vote"] if kind == "joint" else [kind]
    measured = {
        unit: letters.confidence([spans[part] for part in parts if part in spans])
        for unit, spans in _spans(text, data, roles, alone).items()
    }
    return {unit: list(confidence) for unit, confidence in measured.items() if confidence}


def soft_votes(
    message: AIMessage, data: Mapping[str, object], roles: Sequence[Role], alone: bool = False
) -> dict[str, list[float | int]]:
    """Return `{"role_1": [share, 1], …}`, the share of the chosen label at the vote's token.

    The share is P(1) / (P(1) + P(2)) for a vote for 1, over the token's alternatives; a role
    of whose token they are not known is left out.
    """
    text = message.text
    shares: dict[str, list[float | int]] = {}
    for unit, spans in _spans(text, data, roles, alone).items():
        start, end = spans.get("vote", (0, 0))
        mass = {"1": 0.0, "2": 0.0}
        for choice in _offered(message, start):
            label = str(choice.get("token", "")).strip(" \"'")
            if label in mass and isinstance(choice.get("logprob"), int | float):
                mass[label] += math.exp(choice["logprob"])
        vote = text[start:end]
        if mass.get(vote):
            shares[unit] = [mass[vote] / math.fsum(mass.values()), 1]
    return shares


def _offered(message: AIMessage, at: int) -> list[Mapping[str, Any]]:
    """Return the alternatives of the token that holds a character; empty where unknown."""
    token = next((each.token for each in placed_tokens(message) if each.end > at), {})
    return [each for each in token.get("top_logprobs") or () if isinstance(each, Mapping)]


def _spans(
    text: str, data: Mapping[str, object], roles: Sequence[Role], alone: bool
) -> dict[str, dict[str, Span]]:
    """Return where each role's reason and vote stand, in a JSON reply or a spoken one."""
    places, units = json_spans(text, data), unit_names(len(roles))

    def spans_at(*path: str) -> dict[str, Span]:
        parts = {part: places.get((*path, part)) for part in ("reason", "vote")}
        return {part: span for part, span in parts.items() if span}

    by_unit = {unit: spans_at(unit) for unit in units}
    if any("vote" in spans for spans in by_unit.values()):
        return by_unit
    if "vote" in (spans := spans_at()):
        return {"role_1": spans}
    prose_votes = spoken_votes(text, roles, alone)
    return {units[position]: vote.spans for position, vote in prose_votes.items()}
