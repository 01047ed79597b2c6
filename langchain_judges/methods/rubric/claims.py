"""Claim by claim: split what is said into atomic claims, check all of them in one call.

DeCE (arXiv:2509.16093) decomposes the answer and the gold answer likewise: precision is the
share of the claims of the response that the basis supports, recall the share of the claims of
the expected answer that the response states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, NotRequired

from langgraph.constants import END
from pydantic import BaseModel, Field

from langchain_judges.asking.nodes import Call, Emits, Next, Route
from langchain_judges.asking.reading import check, lax_shape, shape_of
from langchain_judges.asking.send import Reply
from langchain_judges.asking.steps import Update
from langchain_judges.methods.context import StateSchema, begin
from langchain_judges.methods.items import ItemState, ItemSteps, item_of, material
from langchain_judges.methods.pairs import instructions_block
from langchain_judges.methods.rubric.criteria import Explain
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.methods.rubric.prompts import AGREES, COVERED, RESPONSE, SUPPORTED
from langchain_judges.methods.rubric.replies import (
    CriterionScore,
    RubricResult,
    distinct_lines,
    label_shape,
)
from langchain_judges.methods.rubric.tally import Claim, ClaimSide, claims_verdict
from langchain_judges.verdict import Failure, Item, add_usage, not_labelled

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph

MOST_CLAIMS = 50
"""Claims of one text that are checked."""
_FIELDS: Mapping[str, ClaimSide] = {"claims": "response", "expected_claims": "expected"}
"""What a reply calls the claims of each text."""
_UNITS: Mapping[ClaimSide, str] = {"response": "claim", "expected": "expected"}
"""What the claims of each text are called where they are checked."""


class ClaimState(ItemState, total=False):
    """State of the graph; every value is plain JSON."""

    claims: Annotated[list[Claim], Emits("claim")]
    subscores: Annotated[list[CriterionScore], Emits("subscore")]


class ClaimResult(RubricResult):
    """What the judge returns."""

    claims: NotRequired[list[Claim]]
    """Those of the response, then those of the expected answer."""


CLAIM_SCHEMA = StateSchema(ClaimState, ClaimResult, Item)


@dataclass(frozen=True)
class ClaimSteps(ItemSteps):
    """The steps of the judge: split → check → total."""

    options: LabelOptions

    def check(self, item: Item) -> None:
        """Check that an item brings what its rubric needs."""
        self.options.check(item)

    def split(self, state: ClaimState) -> Call:
        """Ask for the claims of the response, and of the expected answer."""
        item = self._item(state)
        texts = "the response"
        if self._compares(item):
            texts += " and, in a list of their own, those of the expected answer"
        variables = {**material(item), "source": "", "texts": texts, "most": MOST_CLAIMS}
        question = self.context.question("split", split_shape(self._compares(item)))
        instructions = instructions_block(self.options.instructions)
        return Call(question, {**variables, "instructions": instructions})

    def unlabelled_claims(self, state: ClaimState, reply: Reply) -> Update:
        """Return the claims, without a label yet."""
        if reply.data is None:
            return {"verdict": not_labelled([*state["failures"], *reply.failures], reply.usage)}
        claims: list[Claim] = []
        failures: list[Failure] = []
        for field, side in _FIELDS.items():
            texts = distinct_lines(reply.data.get(field) or ())
            claims += [_claim(side, text) for text in texts[:MOST_CLAIMS]]
            if (surplus := len(texts) - MOST_CLAIMS) > 0:
                failures.append(_cut(side, surplus))
        return {"claims": claims, "failures": [*reply.failures, *failures]}

    def next(self, state: ClaimState) -> Next:
        """Return where to go: there may be nothing to check."""
        if state.get("verdict"):
            return END
        present = {claim["of"] for claim in state["claims"]}
        return "check" if present == {*self._sides(state)} else "total"

    def ask(self, state: ClaimState) -> Call:
        """Ask for the label of every claim."""
        item, claims = self._item(state), state["claims"]
        fields = material(item, [claim["claim"] for claim in claims])
        rules = SUPPORTED.format(basis="source")
        response = ""
        if self._compares(item):
            rules = f"{AGREES} {COVERED}"
            response = RESPONSE.format(fence=fields["fence"], response=fields["response"])
        names = _names(claims)
        lines = [f"{name}: {claim['claim']}" for name, claim in zip(names, claims, strict=True)]
        variables = {**fields, "response": response, "rules": rules, "claims": "\n".join(lines)}
        question = self.context.question(
            "check",
            check_shape(tuple(names), self.options.explain),
            partial=lax_shape(tuple(names)),
        )
        instructions = instructions_block(self.options.instructions)
        return Call(question, {**variables, "instructions": instructions})

    def checked(self, state: ClaimState, reply: Reply) -> Update:
        """Return the claims with the labels that could be read."""
        if reply.data is None:
            return {}
        claims: list[Claim] = []
        failures: list[Failure] = []
        shape = label_shape((0, 1), self.options.explain)
        for name, claim in zip(_names(state["claims"]), state["claims"], strict=True):
            data, problem = check(reply.data.get(name), shape)
            if problem or data is None:
                failures += [problem.failure("check", name)] if problem else []
                claims.append(claim)
                continue
            reason = str(data.get("explanation") or "").strip()
            claims.append({**claim, "supported": data["label"] == "1", "reason": reason})
        return {"claims": claims, "failures": [*reply.failures, *failures]}

    def total(self, state: ClaimState) -> Update:
        """Return the verdict: the share of the claims that hold, or F1 of both shares."""
        claims, sides = state["claims"], self._sides(state)
        if not any(claim["of"] == "response" for claim in claims):
            nothing = "The response states nothing that can be checked."
            claims = [{**claim, "supported": False, "reason": nothing} for claim in claims]
        usage = add_usage(state["usages"])
        verdict, subscores = claims_verdict(claims, sides, state["failures"], usage)
        return {"verdict": verdict, "subscores": subscores, "claims": claims}

    def _sides(self, state: ClaimState) -> tuple[ClaimSide, ...]:
        return ("response", "expected") if self._compares(item_of(state)) else ("response",)

    def _compares(self, item: Item) -> bool:
        return self.options.rubric_of(item).needs == "expected"

    def _item(self, state: ClaimState) -> Item:
        """Return the item with the text alone that its claims are checked against."""
        item = item_of(state)
        if self._compares(item):
            item.pop("source", None)
        else:
            item.pop("expected", None)
        return item


def claims_graph(steps: ClaimSteps, **marks: object) -> JudgeGraph:
    """Return the graph of a judge that checks claims.

    Args:
        steps: Its steps.
        **marks: What decides verdicts beside the options.
    """
    context = steps.context
    graph = context.graph()
    graph.add_node("split", context.asks(steps.split, steps.unlabelled_claims))
    graph.add_node("check", context.asks(steps.ask, steps.checked))
    graph.add_node("total", context.plain(steps.total))
    begin(graph, steps, lambda _: "split", ["split"])
    graph.add_conditional_edges("split", Route(steps.next), ["check", "total", END])
    graph.add_edge("check", "total")
    graph.add_edge("total", END)
    return context.finish(graph, **marks)


@cache
def split_shape(compares: bool) -> type[BaseModel]:
    """Return the shape of the claims of the response, and of the expected answer if asked."""
    claims = Annotated[list[str], Field(json_schema_extra={"maxItems": MOST_CLAIMS})]
    names = _FIELDS if compares else ["claims"]
    return shape_of("Claims", dict.fromkeys(names, claims))


@cache
def check_shape(names: tuple[str, ...], explain: Explain) -> type[BaseModel]:
    """Return the shape of a label, 0 or 1, for every claim: one property each, all required."""
    return shape_of("Checked", dict.fromkeys(names, label_shape((0, 1), explain)))


def _names(claims: Sequence[Claim]) -> list[str]:
    """Return what a prompt calls each claim, such as `claim_1` and `expected_1`."""
    counts: dict[ClaimSide, int] = dict.fromkeys(_UNITS, 0)
    names = []
    for claim in claims:
        counts[claim["of"]] += 1
        names.append(f"{_UNITS[claim['of']]}_{counts[claim['of']]}")
    return names


def _claim(side: ClaimSide, text: str) -> Claim:
    return {"claim": text, "of": side, "supported": None, "reason": ""}


def _cut(side: ClaimSide, count: int) -> Failure:
    detail = f"{count} claims beyond the first {MOST_CLAIMS} were not checked"
    return {"step": "split", "unit": side, "reason": "input_cut", "detail": detail}
