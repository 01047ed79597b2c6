"""What is said where expected scores were wanted and a reply tells none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_judges.asking.question import Reply
from langchain_judges.asking.steps import Update
from langchain_judges.methods.bsm.replies import SolveWork
from langchain_judges.verdict import Failure

if TYPE_CHECKING:
    from langchain_judges.methods.bsm.judge import BSM


def unmeasured(options: BSM, work: SolveWork, reply: Reply) -> Update:
    """Return a failure where expected scores were wanted and the reply tells none."""
    if options.score == "mode" or len(reply.measured) == len(work["criteria"]):
        return {}
    names = ", ".join(criterion["name"] for criterion in work["criteria"])
    failure: Failure = {
        "step": "solve",
        "unit": f"{names} ({work['order'][0]} first)",
        "reason": "no_logprobs",
        "detail": "the provider reports no probabilities of other scores; the score counts "
        "as it was given",
    }
    return {"failures": [*reply.failures, failure]}
