"""Answers inside texts: their words, their numbers, and what may be overlooked."""

from __future__ import annotations

import re
from collections.abc import Collection

from langchain_judges.errors import OptionError

NOUNS = frozenset(
    "a an the answer room rooms field fields zone zones".split()  # noqa: SIM905 - a word list
)
"""Words that carry no answer in the paper's planning tasks: "the rose field" means "rose"."""

ANSWER = re.compile(r"answer\s*:", re.IGNORECASE)
WORD = re.compile(r"\w+")
_NUMBER = re.compile(
    r"(?:(?<![\w.])[-+])?(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
)
"""A minus that follows a word is a hyphen: "pages 3-4"."""


def squeezed(text: str) -> str:
    """Return a text without spaces, full stops, case and a leading "answer:"."""
    return re.sub(r"[\s.]", "", text).casefold().removeprefix("answer:")


def answer_words(text: str, left_out: Collection[str]) -> list[str]:
    """Return the words of the answer; without the usual ones only if others are left.

    An answer of signs alone, such as "<=", stands for itself.
    """
    answer = ANSWER.split(text)[-1].casefold()
    words = WORD.findall(answer)
    return [word for word in words if word not in left_out] or words or answer.split()


def last_number(text: str) -> float | None:
    """Return the last number of the answer; None where it has none."""
    numbers = _NUMBER.findall(ANSWER.split(text)[-1])
    return float(numbers[-1].replace(",", "")) if numbers else None


def compiled(expression: str) -> re.Pattern[str]:
    """Return a regular expression that overlooks case.

    Raises:
        OptionError: It cannot be compiled.
    """
    try:
        return re.compile(expression, re.IGNORECASE)
    except re.error as exc:
        raise OptionError(f"{expression!r} is no regular expression: {exc}") from exc
