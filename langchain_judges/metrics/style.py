"""The style of texts: what catches the eye, counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S", re.MULTILINE)
_HEADER = re.compile(r"^#{1,6}[ \t]+\S", re.MULTILINE)
_BOLD = re.compile(r"\*\*[^*\n]+\*\*|__[^_\n]+__")
_CODE_BLOCK = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)


def style_features(text: str) -> dict[str, int]:
    """Count what catches the eye: characters, list items, headers, bold, code blocks.

    Fenced code is one block, whatever stands in it: its comments and minus signs are neither
    headers nor lists. A block that is never closed goes to the end of the text.
    """
    prose, blocks = _CODE_BLOCK.subn("", text)
    return {
        "characters": len(text),
        "list_items": len(_LIST_ITEM.findall(prose)),
        "headers": len(_HEADER.findall(prose)),
        "bold": len(_BOLD.findall(prose)),
        "code_blocks": blocks,
    }


def in_deviations(values: Sequence[float]) -> list[float]:
    """Return numbers in units of their standard deviation."""
    spread = float(np.std(values)) if len(values) else 0.0
    return [value / spread if spread else 0.0 for value in values]


def style_gaps(outputs_a: Iterable[str], outputs_b: Iterable[str]) -> dict[str, list[float]]:
    """Return by feature how far each text A is ahead of its B, in standard deviations.

    A feature in which no pair differs from another is absent.
    """
    counts = [[style_features(text) for text in texts] for texts in (outputs_a, outputs_b)]
    features = {}
    for name in ("characters", "list_items", "headers", "bold"):
        gaps = [_relative(name, a, b) for a, b in zip(*counts, strict=True)]
        if len(set(gaps)) > 1:
            features[name] = in_deviations(gaps)
    return features


def _relative(name: str, a: Mapping[str, int], b: Mapping[str, int]) -> float:
    one, other = (
        float(side[name]) if name == "characters" else side[name] / (side["characters"] + 1)
        for side in (a, b)
    )
    return (one - other) / (one + other) if one + other else 0.0
