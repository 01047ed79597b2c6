"""Words of models and of other people, made fit for a terminal."""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, changes of direction, halves of characters."""


def clean(text: str) -> str:
    r"""Return a text without what would steer the terminal that shows it.

    >>> clean("fine\x1b[2J")
    'fine�[2J'
    """
    return _STEERING.sub("�", text.replace("\r\n", "\n"))
