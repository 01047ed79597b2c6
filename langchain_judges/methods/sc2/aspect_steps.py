"""Finding what two texts can be compared in: samples of a model, and what they agree on."""

from __future__ import annotations

from functools import cached_property

from langgraph.types import Send

from langchain_judges.asking.nodes import Call, Next
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.methods.pairs import pair_of
from langchain_judges.methods.sc2.aspects import agree, distinct, normal_form
from langchain_judges.methods.sc2.parse import parse_aspects
from langchain_judges.methods.sc2.replies import (
    AspectProposal,
    SC2State,
    TableWork,
    aspects_shape,
)
from langchain_judges.methods.sc2.steps import SC2Steps
from langchain_judges.verdict import Failure


class AspectSteps(SC2Steps):
    """The steps that find aspects."""

    @cached_property
    def question(self) -> Question:
        """What one sample is asked."""
        shape = aspects_shape(self.options.n_aspects)
        return self.context.question(
            "aspects",
            shape,
            parse=parse_aspects,
            sampled=True,
            shares_material=self.options.proposals > 1,
        )

    def ask_each(self, state: SC2State) -> Next:
        """Send every online sample of aspects."""
        pair = pair_of(state)
        samples = [
            Send("aspects", TableWork(pair=pair, aspects=[], number=i + 1))
            for i in range(self.options.proposals)
        ]
        return samples or "agree"

    def aspects(self, work: TableWork) -> Call:
        """Ask for the aspects of one pair, once."""
        number, several = work["number"], self.options.proposals > 1
        variables = {
            **self.material(work["pair"], "AB"),
            "question": self.options.aim["question"],
            "n_aspects": self.options.n_aspects,
        }
        unit = f"sample {number}" if several else ""
        return Call(self.question, variables, unit, seed=self.sample_seed(number))

    def named(self, work: TableWork, reply: Reply) -> Update:
        """Keep the aspects that one sample named."""
        if not reply.data:
            return {}
        number = work["number"]
        if aspects := distinct(reply.data["aspects"], self.options.n_aspects):
            return {"proposals": [AspectProposal(sample=number, aspects=aspects)]}
        unit, detail = f"sample {number}", "the reply names no aspect"
        blank = Failure(step="aspects", unit=unit, reason="empty", detail=detail)
        return {"failures": [*reply.failures, blank]}

    def agree(self, state: SC2State) -> Steps[Update]:
        """Settle the aspects: the caller's, or what the online samples agree on."""
        if self.options.phrases:
            return {"aspects": list(self.options.phrases)}
        lists = [proposal["aspects"] for proposal in state["proposals"]]
        forms = list(dict.fromkeys(normal_form(p) for each in lists for p in each))
        vectors, failures = yield from self.embed(
            forms if len(forms) > 1 else [],
            step="aspects",
            unit="merging",
            instead="aspects were merged by their words alone",
        )
        aspects = agree(lists, vectors, self.options.n_aspects, self.options.agreement)
        return {"aspects": aspects, "failures": failures}
