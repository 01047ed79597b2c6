"""Claim by claim: split what is said into atomic claims, check all of them in one call.

DeCE (arXiv:2509.16093) decomposes the answer and the gold answer likewise: precision is the
share of the claims of the response that the basis supports, recall the share of the claims of
the expected answer that the response states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import harmonic_mean
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Update, emit_each
from langchain_judges.asking.question import Account, Reply
from langchain_judges.asking.reading import Problem, ReplyData, check, lax_shape, shape_of
from langchain_judges.methods import context, declaration, lookups
from langchain_judges.methods.items import item_of, label_verdict, prompt_variables
from langchain_judges.methods.rubric import criteria, prompts, replies
from langchain_judges.verdict import Item, LabelVerdict, not_labelled, why_not

# Claims of one text that are checked.
MOST_CLAIMS = 50
# Claims that a rationale quotes.
MOST_QUOTED = 5

# Whose claims: those of the response, or of the expected answer.
ClaimSide = Literal["response", "expected"]


class _Side(NamedTuple):
    """A text whose claims are checked.

    Attributes:
        field: What a reply calls its claims.
        unit: What one is called where it is checked.
        share: What the share that holds is called.
    """

    field: str
    unit: str
    share: str
    text: str


_SIDES: Mapping[ClaimSide, _Side] = {
    "response": _Side("claims", "claim", "precision", "the response"),
    "expected": _Side("expected_claims", "expected", "recall", "the expected answer"),
}


class Claim(TypedDict):
    """One atomic claim, and whether it holds.

    Attributes:
        of: Whose claim: one of the response is looked up in the source or the expected answer,
            one of the expected answer in the response.
        supported: None: not checked, see the verdict's failures.
    """

    claim: str
    of: ClaimSide
    supported: bool | None
    reason: str


class ClaimState(replies.RubricState, total=False):
    """State of the graph; every value is plain JSON.

    Attributes:
        claims: Those of the response, then those of the expected answer.
    """

    claims: list[Claim]


class ClaimSteps(replies.RubricSteps):
    """The steps of the judge: split → check."""

    state = ClaimState

    def phases(self) -> Sequence[declaration.Phase]:
        """Split, check."""
        return [self.split, self.check_claims]

    async def split(self, state: ClaimState, account: Account) -> Update:
        """Ask for the claims of the response, and of the expected answer."""
        item = self._item(state)
        # Users may speak between the answers of a conversation.
        texts = "the response" if isinstance(item["output"], str) else "the answers in the response"
        if self._compares(item):
            texts += " and, in a list of their own, those of the expected answer"
        variables = {**self._shown(item), "source": "", "texts": texts, "most": MOST_CLAIMS}
        reply = await self.ask("split", claims_shape(self._compares(item)), variables, account)
        if reply.data is None:
            return {"verdict": not_labelled(**account.booked)}
        claims = self._unlabelled(reply.data, account)
        emit_each("claim", "split", claims)
        return {"claims": claims}

    def _unlabelled(self, data: ReplyData, account: Account) -> list[Claim]:
        """The claims of a reply, without a label yet."""
        claims: list[Claim] = []
        for side, names in _SIDES.items():
            kept = replies.distinct_lines(data.get(names.field) or ())[:MOST_CLAIMS]
            claims += [Claim(claim=text, of=side, supported=None, reason="") for text in kept]
            if len(kept) == MOST_CLAIMS:  # of a longer text a model that obeys names no more
                detail = f"claims beyond the first {MOST_CLAIMS}, if any, were not checked"
                account.fail([Problem("input_cut", detail).failure("split", side)])
        return claims

    async def check_claims(self, state: ClaimState, account: Account) -> Update:
        """Ask for the label of every claim, where each side has some; then sum them up."""
        claims = state["claims"]
        if {claim["of"] for claim in claims} == {*self._sides(state)}:
            claims = self._labelled(claims, await self._checked(state, account), account)
            emit_each("claim", "check", claims)
        return self._total(state, claims, account)

    async def _checked(self, state: ClaimState, account: Account) -> Reply:
        """Ask for the label of every claim."""
        item, claims = self._item(state), state["claims"]
        fields = self._shown(item, [claim["claim"] for claim in claims])
        rules = prompts.WORDS["supported"].format(basis="source")
        response = ""
        if self._compares(item):
            rules = f"{prompts.WORDS['agrees']} {prompts.WORDS['covered']}"
            response = prompts.WORDS["response"].format(**fields)
        names = tuple(_names(claims))
        lines = [f"{name}: {claim['claim']}" for name, claim in zip(names, claims, strict=True)]
        fields["source"] += lookups.findings(state.get("lookups") or [])
        variables = {**fields, "response": response, "rules": rules, "claims": "\n".join(lines)}
        shape = check_shape(names, self.options.explain)
        question = self.context.question("check", shape, partial=lax_shape(names))
        return await ask(question, variables, account)

    def _shown(self, item: Item, claims: Sequence[str] = ()) -> dict[str, str]:
        """The item as both prompts show it, with the caller's words."""
        instructions = context.instructions_block(self.options.instructions)
        return {**prompt_variables(item, claims), "instructions": instructions}

    def _labelled(self, unlabelled: Sequence[Claim], reply: Reply, account: Account) -> list[Claim]:
        """The claims with the labels that could be read."""
        if reply.data is None:
            return list(unlabelled)
        claims: list[Claim] = []
        shape = replies.label_shape((0, 1), self.options.explain)
        for name, claim in zip(_names(unlabelled), unlabelled, strict=True):
            data, problem = check(reply.data.get(name), shape)
            if problem:
                account.fail([problem.failure("check", name)])
            if data is None:
                claims.append(claim)
                continue
            reason = str(data.get("explanation") or "").strip()
            claims.append({**claim, "supported": data["label"] == "1", "reason": reason})
        return claims

    def _total(self, state: ClaimState, claims: Sequence[Claim], account: Account) -> Update:
        """The verdict: the share of the claims that hold, or F1 of both shares."""
        sides = self._sides(state)
        if not any(claim["of"] == "response" for claim in claims):
            nothing = f"The response {_NOTHING}."
            claims = [{**claim, "supported": False, "reason": nothing} for claim in claims]
        verdict, subscores = claims_verdict(claims, sides, account)
        emit_each("subscore", "check", subscores)
        return {"verdict": verdict, "subscores": subscores, "claims": list(claims)}

    def _sides(self, state: ClaimState) -> tuple[ClaimSide, ...]:
        return ("response", "expected") if self._compares(item_of(state)) else ("response",)

    def _compares(self, item: Item) -> bool:
        return "expected" in self.options.rubric_of(item).needs

    def _item(self, state: ClaimState) -> Item:
        """The item with only the text that its claims are checked against."""
        item = item_of(state)
        other: Literal["source", "expected"] = "source" if self._compares(item) else "expected"
        item.pop(other, None)
        return item


@cache
def claims_shape(compares: bool) -> type[BaseModel]:
    """The shape of the claims of the response, and of the expected answer if asked."""
    claims = Annotated[list[str], Field(json_schema_extra={"maxItems": MOST_CLAIMS})]
    sides = [side.field for side in _SIDES.values()]
    return shape_of("Claims", dict.fromkeys(sides if compares else sides[:1], claims))


@cache
def check_shape(names: tuple[str, ...], explain: criteria.Explain) -> type[BaseModel]:
    """The shape of a label, 0 or 1, for every claim: one property each, all required."""
    return shape_of("Checked", dict.fromkeys(names, replies.label_shape((0, 1), explain)))


def _names(claims: Sequence[Claim]) -> list[str]:
    """The name of each claim in a prompt, such as `claim_1` and `expected_1`."""
    counts = {side: sum(claim["of"] == side for claim in claims) for side in _SIDES}
    return [f"{_SIDES[of].unit}_{n}" for of in counts for n in range(1, counts[of] + 1)]


def claims_verdict(
    claims: Sequence[Claim], sides: Sequence[ClaimSide], account: Account
) -> tuple[LabelVerdict, list[replies.CriterionScore]]:
    """The verdict on the claims of a text, and its precision and recall.

    With the claims of one side the score is their precision; with those of both it is F1. A
    response without claims has no precision, and none of the expected claims: its score is 0
    where an expected answer makes some, and it is not judged where there is only a source.

    Args:
        claims: The claims, checked.
        sides: Whose claims count.
        account: Of the row.
    """
    by_side = {side: [claim for claim in claims if claim["of"] == side] for side in sides}
    if not by_side[sides[-1]]:
        problem = Problem("empty", f"{_SIDES[sides[-1]].text} {_NOTHING}")
        why = f"Not judged: {problem.detail}."
        account.fail([problem.failure("split", sides[-1])])
        return not_labelled(**account.booked, rationale=why), []
    for side, own in by_side.items():
        checked = sum(claim["supported"] is not None for claim in own)
        if own and 2 * checked <= len(own):
            share = f"{checked} of {len(own)} claims of {_SIDES[side].text} were checked"
            why = why_not(account.failures, f"{share}, more than half must be")
            return not_labelled(**account.booked, rationale=why), []
    subscores = [_share(own, side, len(sides) > 1) for side, own in by_side.items()]
    total = round(harmonic_mean([each["score"] or 0.0 for each in subscores]), 4)
    heading = f"F1 {total:.2f}. " if len(sides) > 1 else ""
    why = heading + " ".join(each["reason"] for each in subscores)
    return label_verdict(account, why, total, total), subscores


_NOTHING = "states nothing that can be checked"


def _share(claims: Sequence[Claim], side: ClaimSide, compares: bool) -> replies.CriterionScore:
    """The share of the claims of one side that hold, and which do not."""
    labels = [claim["supported"] for claim in claims if claim["supported"] is not None]
    basis = "the expected answer" if compares else "the source"
    end = f"supported by {basis}" if side == "response" else "in the response"
    reason = f"The response {_NOTHING}."
    if labels:
        share = sum(labels) / len(labels)
        wrong = [f"\u201c{c['claim']}\u201d" for c in claims if c["supported"] is False]
        more = [f"and {len(wrong) - MOST_QUOTED} more"] if len(wrong) > MOST_QUOTED else []
        quoted = "; ".join([*wrong[:MOST_QUOTED], *more])
        summary = f"{sum(labels)} of {len(labels)} claims of {_SIDES[side].text} are {end}"
        reason = f"{summary}; not: {quoted}." if wrong else f"{summary}."
    blank = replies.subscore(criteria.Criterion(name=_SIDES[side].share), None, {})
    found: Any = {"label": round(share, 4), "score": share, "holds": share == 1} if labels else {}
    return {**blank, **found, "reason": reason}
