"""Judging methods, one folder each; and what a method of your own is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# For type checkers; a test holds it equal to the table below.
if TYPE_CHECKING:
    from langchain_judges.asking.account import Account as Account
    from langchain_judges.asking.ask import ask as ask
    from langchain_judges.asking.effects import emit as emit
    from langchain_judges.asking.effects import gather as gather
    from langchain_judges.asking.question import Question as Question
    from langchain_judges.asking.question import Reply as Reply
    from langchain_judges.methods.cascade import create_cascade as create_cascade
    from langchain_judges.methods.declaration import JudgeOptions as JudgeOptions
    from langchain_judges.methods.jury import create_jury as create_jury
    from langchain_judges.methods.pairs import COMPARES as COMPARES
    from langchain_judges.methods.pairs import MATERIAL as MATERIAL
    from langchain_judges.methods.pairs import PairState as PairState
    from langchain_judges.methods.pairs import PairSteps as PairSteps
    from langchain_judges.methods.pairs import order_verdict as order_verdict
    from langchain_judges.methods.pairs import pair_of as pair_of
    from langchain_judges.methods.pairs import pair_prompt as pair_prompt
    from langchain_judges.methods.registry import register as register
    from langchain_judges.options import Rule as Rule
    from langchain_judges.options import factory as factory
    from langchain_judges.orders import ORDER_NAMES as ORDER_NAMES
    from langchain_judges.orders import Order as Order
    from langchain_judges.orders import OrderRule as OrderRule
    from langchain_judges.orders import Slot as Slot
    from langchain_judges.orders import SlotOrTie as SlotOrTie
    from langchain_judges.orders import by_identity as by_identity
    from langchain_judges.orders import preferred_slot as preferred_slot
    from langchain_judges.rows.fences import fence as fence
    from langchain_judges.verdict import Preference as Preference


_HOMES = {
    "asking.account": "Account",
    "asking.ask": "ask",
    "asking.effects": "emit gather",
    "asking.question": "Question Reply",
    "methods.cascade": "create_cascade",
    "methods.declaration": "JudgeOptions",
    "methods.jury": "create_jury",
    "methods.pairs": "COMPARES MATERIAL PairState PairSteps order_verdict pair_of pair_prompt",
    "methods.registry": "register",
    "options": "Rule factory",
    "orders": "ORDER_NAMES Order OrderRule Slot SlotOrTie by_identity preferred_slot",
    "rows.fences": "fence",
    "verdict": "Preference",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
