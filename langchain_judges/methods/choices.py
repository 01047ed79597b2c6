"""Replies of one label: which text is better."""

from pydantic import BaseModel

from langchain_judges.orders import Slot, SlotOrTie


class Choice(BaseModel):
    """A reply with one of three labels."""

    explanation: str
    preference: SlotOrTie


class ForcedChoice(BaseModel):
    """A reply with one of two labels."""

    explanation: str
    preference: Slot
