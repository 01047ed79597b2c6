"""Seating the panel: the static roles, and diverse readers of the text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from langchain_core.embeddings import Embeddings

from langchain_judges.asking.steps import SingleFlight, Steps, Update
from langchain_judges.methods.drpe.replies import (
    DRPEState,
    both_readers_shape,
    readers_shape,
)
from langchain_judges.methods.drpe.seats import Context, Seating
from langchain_judges.methods.drpe.steps import DRPESteps
from langchain_judges.methods.pairs import PairState, pair_of
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Failure, Pair, cached_usage


@dataclass(frozen=True)
class RoleSteps(DRPESteps):
    """The steps that find the roles."""

    embeddings: Embeddings
    panels: SingleFlight[Update]

    @cached_property
    def seating(self) -> Seating:
        """How roles are found."""
        panel = self.options.seating
        shape = both_readers_shape if panel.merged_prompt else readers_shape
        questions = {
            kind: self.context.question("roles", shape(panel.readers), kind)
            for kind in self.options.kinds
        }
        return Seating(panel, questions, self.embeddings, self.options.seed)

    def begin(self, state: PairState) -> Update:
        """Check the pair, and say what it is about and whose roles it may share."""
        update = super().begin(state)
        name, task = self.task(pair_of(state))
        return {
            **update,
            "task": name,
            "roles_key": self.seating.key(self._context(state), task),
        }

    def roles(self, state: DRPEState) -> Steps[Update]:
        """Seat the panel: the static judges, and diverse readers of the text."""
        options, pair = self.options, pair_of(state)
        cut = _cut_failures(pair, self.article(pair))
        _, task = self.task(pair)
        if not options.generates:
            roles = options.manual or list(options.seating.static_roles(task))
            return {"roles": roles, "failures": cut}
        panel, is_cached = yield from self.panels.get(
            state["roles_key"],
            lambda: self.seating.draw(self._context(state), task),
            lambda panel: bool(panel["whole"]),
        )
        return {
            "proposed": panel["proposed"],
            "roles": panel["roles"],
            "failures": [*cut, *panel["failures"]],
            "usages": [cached_usage("roles")] if is_cached else panel["usages"],
        }

    def _context(self, state: PairState) -> Context:
        """Return the text and the candidate that the role prompts see."""
        pair, context = pair_of(state), self.options.seating.context
        article, candidate = self.article(pair), judged(pair["output_a"])
        if context == "candidate":
            return Context(candidate, "")
        return Context(article, candidate if context == "both" else "")


def _cut_failures(pair: Pair, article: str) -> list[Failure]:
    """Return what a verdict says of an article that was cut.

    Args:
        pair: The pair, whose input is the whole article.
        article: What is shown of it.
    """
    whole = len(transcript(pair["input"]))
    if len(article) == whole:
        return []
    detail = (
        f"the article was cut from {whole:,} to {len(article):,} characters to fit the context"
    )
    return [{"step": "roles", "unit": "article", "reason": "input_cut", "detail": detail}]
