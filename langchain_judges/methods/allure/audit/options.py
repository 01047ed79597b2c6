"""The options of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, Lt
from pydantic import AfterValidator, InstanceOf

from langchain_judges.methods.allure import prompts as texts
from langchain_judges.methods.allure.audit.auditors import Auditor
from langchain_judges.methods.allure.audit.check import Check
from langchain_judges.methods.allure.audit.checks import CHECKS
from langchain_judges.methods.allure.audit.modes import Mode
from langchain_judges.methods.options import GraphOptions, Seed, Written
from langchain_judges.methods.rubric.criteria import read_labels
from langchain_judges.options import ClientMost, NotSerialisable, Owner, Rule
from langchain_judges.verdict import Label

Again = Literal["families", "all"]
"""Which items a round of an audit judges again: those of families that learnt, or all."""
Unmeasured = Literal["wait", "admit"]
"""What becomes of examples that no item of dev can be shown."""
Dev = float | Sequence[Mapping[str, Any]]
"""The items that are held out, or their share."""


def _labels(labels: Sequence[Label] | None) -> tuple[Label, ...] | None:
    return None if labels is None else tuple(read_labels(labels))


def _share(dev: Dev | None) -> Dev | None:
    if isinstance(dev, int | float) and not 0 < dev < 1:
        raise ValueError("no share")
    return dev


class AuditOptions(GraphOptions):
    """The options of an audit."""

    method = "allure_audit"
    summary = "ALLURE's audit: find a judge's mistakes, have them audited, remember them."
    events = {"proposals": "proposal"}
    templates = {"audit": texts.AUDIT}

    check: Annotated[
        InstanceOf[Check] | Callable[..., Any] | str | None,
        Owner(),
        Rule(f"one of {sorted(CHECKS)} or a function"),
    ] = None
    """Finds likely mistakes: a name (default `"normalised_sequence"`), a `Check`, or a function
    from item and label; see `checks.py`."""
    auditor: Annotated[Auditor, Owner(), Rule("'human', a model or a function")] = "human"
    """`"human"`: the graph is interrupted with all proposals of a round, and resumes with
    `Command(resume=answers)`; see `review.py` for answers. Or a function from one proposal to
    an answer, or a model."""
    modes: Annotated[
        Sequence[Mode | str | Mapping[str, str]] | None,
        NotSerialisable(),
        Rule("a list of failure modes"),
    ] = None
    """Your own failure modes, in addition to the paper's five."""
    right_share: Annotated[float, Ge(0), Lt(1)] = 0.25
    """The largest share of cases that the judge got right among the examples of a round: labels
    that the auditor upholds against the check, which need no extra decision. A memory of only
    mistakes teaches a judge to invert its labels; one right case for three mistakes prevents
    that, and leaves most of the room to mistakes. 0 is the paper's memory."""
    draw_right: bool = False
    """Also ask the auditor about labels that no rule doubts, one for each three doubted ones
    with the default share: an exact check leaves no upheld labels. They are drawn at random,
    first from doubted families and labels; a wrong one among them is a mistake that the check
    missed."""
    max_rounds: Annotated[int, Ge(1), ClientMost(20)] = 5
    """Most rounds."""
    patience: Annotated[int, Ge(1), ClientMost(20)] = 2
    """Rounds without a gain in balanced accuracy on dev that end the loop; the paper saw a fall
    before a gain, so it should be two at least."""
    dev: Annotated[
        Dev | None,
        AfterValidator(_share),
        Rule("a list of items or a share above 0 and below 1"),
    ] = None
    """Items that are judged and never audited, each with its true label: a list, or the share
    of the items to hold out, by group. With it, examples enter the memory only if balanced
    accuracy does not fall on the items of dev for which the judge may show them; the others
    wait. They are tried on an overlay of the memory that only this judge sees, in this
    process."""
    admit: Literal["round", "example"] = "round"
    """Whether the examples of a round are tried together or one by one. A rejected batch is
    halved until the harmful examples are isolated; waiting examples are retried when the memory
    has changed."""
    unmeasured: Unmeasured = "wait"
    """Whether examples of a family without items in dev wait, or are admitted and marked; the
    result names the families."""
    risk: Annotated[float, Ge(0), Le(1)] = 0.5
    """Largest share of bootstrap resamples in which dev may have fallen."""
    truth: Written = "label"
    """The field in which items carry their true label."""
    labels: Annotated[
        Sequence[Label] | None,
        AfterValidator(_labels),
        Rule("two or more distinct numbers or texts, from worst to best"),
    ] = None
    """The judge's labels, worst first; default those of the judge, else 0 and 1."""
    again: Again = "families"
    """`"families"` judges items again only if their family got new examples."""
    allow_leak: bool = False
    """Let dev share groups with the items; every result says so."""
    seed: Seed = 0
    """Seed of the split and the bootstrap."""
    max_concurrency: Annotated[int, Ge(1), Owner()] = 16
    """Items judged at the same time."""

    def calls(self) -> int:
        """Return 0: how much an audit asks depends on what it finds."""
        return 0

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return self.max_concurrency
