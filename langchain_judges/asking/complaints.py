"""What a provider's refusal of a request says about the request's parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

_LONGEST = 2000
"""Characters of a message that are read; some errors repeat the whole prompt."""
_REFUSING = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|unavailable|not permitted"
    r"|not allowed|invalid|only the default|extra inputs?|does not",
    re.IGNORECASE,
)
_FORMAT_REJECTED = re.compile(
    r"response_format|json_schema|json schema|structured outputs?|tool_choice"
    r"|fail\w* to (?:parse|initialize) \w*\s*grammar|(?:tool|function)s?\b(?=.*\bsupport)",
    re.IGNORECASE,
)
_FORMAT_PARAMETERS = {"response_format", "tools", "tool_choice", "functions", "function_call"}


class Complaint(NamedTuple):
    """A refusal as the provider put it."""

    parameter: str | None
    """The parameter at fault, where the provider names it in a field of its own."""
    message: str
    prompt_words: frozenset[tuple[str, str]]
    """Neighbouring words of the prompt: where the message has them too, it may be quoting."""

    def refused(self, settings: Collection[str]) -> str | None:
        """Return the first of some settings that the provider refuses."""
        if self.parameter:
            return self.parameter if self.parameter in settings else None
        for sentence in re.split(r"\.(?=\s|$)|\n", self.message):
            if _REFUSING.search(sentence):
                for setting in settings:
                    if self._says(rf"\b{re.escape(setting)}\b", sentence):
                        return setting
        return None

    @property
    def format_rejected(self) -> bool:
        """Whether the provider refuses the form in which a reply was asked for."""
        if self.parameter:
            return self.parameter in _FORMAT_PARAMETERS
        return any(self._says(_FORMAT_REJECTED, line) for line in self.message.split("\n"))

    def _says(self, pattern: str | re.Pattern[str], sentence: str) -> bool:
        """Say whether the provider itself says something, and not a text that it repeats."""
        return any(
            not self.prompt_words
            & {_pair(sentence, match.start()), _pair(sentence, match.end())}
            for match in re.finditer(pattern, sentence)
        )


def complaint_of(error: Exception, prompt: Sequence[str]) -> Complaint:
    """Return what a provider complains of.

    Args:
        error: What the client library raised.
        prompt: The texts that were sent, which errors may repeat.
    """
    body = getattr(error, "body", None) or getattr(error.__cause__, "body", None)
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    fields = body if isinstance(body, dict) else {}
    parameter = fields.get("param")
    root = re.split(r"[.\[]", parameter)[0] if isinstance(parameter, str) else None
    message = str(fields.get("message") or error)[:_LONGEST]
    words = [re.findall(r"\w+", text.casefold()) for text in prompt]
    pairs = frozenset(pair for each in words for pair in pairwise(each))
    return Complaint(root or None, message, pairs)


def _pair(sentence: str, at: int) -> tuple[str, str]:
    """Return the words on both sides of a place, with the word that it parts."""
    before = re.findall(r"\w+", sentence[max(0, at - 80) : at].casefold())
    after = re.search(r"\w+", sentence[at : at + 80].casefold())
    return (before[-1] if before else "", after[0] if after else "")
