"""What options of an ALLURE judge and of its audit may be."""

from __future__ import annotations

from typing import Literal

Instruct = Literal["bare", "criteria", "steps"]
"""What the prompt contains besides the labels: nothing, the criteria, or also steps."""

Again = Literal["families", "all"]
"""Which items a round of an audit judges again: those of families that learnt, or all."""
