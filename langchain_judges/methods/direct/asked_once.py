"""The baselines that ask for one reply in each order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator

from langchain_judges.errors import OptionError
from langchain_judges.methods.direct import prompts as texts
from langchain_judges.methods.direct.options import AboutATask, Baseline, Form, ShownExamples
from langchain_judges.methods.direct.replies import LLMScoreResult
from langchain_judges.methods.options import Budget
from langchain_judges.methods.tasks import ASPECTS, AutoTask
from langchain_judges.options import Rule, Scale
from langchain_judges.orders import Order, OrderRule


class Relative(ShownExamples):
    """Create a judge that is asked, in each order, which text is better, or if neither is.

    Zero-shot relative evaluation (Saha et al. 2023, section 4; the pairwise prompt of
    MT-Bench, in our words): two calls, a tie is allowed, and a text is preferred only if
    both orders prefer it.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.score` is the mean
        probability of A over the orders where the model gives log-probabilities of the
        label, else 1, 0.5 or 0; a tie is 0.5.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "relative"
    summary = "Zero-shot relative: which is better, or a tie; both orders must agree."
    presets = {"one_order": {"orders": "none"}}
    budgets = (Budget(2),)
    templates = {"judge": texts.RELATIVE}

    orders: OrderRule = "strict"
    """`"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`."""

    @property
    def form(self) -> Form:
        """What is asked in each order: one of three labels."""
        return Form(reads="label")


class Absolute(Baseline):
    """Create a judge that scores both texts in one call, in each order.

    Zero-shot absolute evaluation (Saha et al. 2023, section 4; the two-score prompt of
    MT-Bench, in our words): two calls, the higher score wins its order, equal scores are a
    tie, and a text is preferred only if both orders prefer it.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.scores` are the
        sums over the orders, `verdict.score` the mean of 1, 0.5 and 0 over the orders, with
        `score="mean"` that of the probability that A scores higher.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "absolute"
    summary = "Zero-shot absolute: two scores in one call; both orders must agree."
    presets = {"five_points": {"scale": (1, 5)}}
    budgets = (Budget(2),)
    templates = {"judge": texts.ABSOLUTE}

    scale: Scale = (1, 10)
    """Lowest and highest score."""
    score: Literal["mode", "mean"] = "mode"
    """`"mode"` uses each score as written (the paper); `"mean"` uses its expected value over
    the alternative tokens, if the provider reports their probabilities: fewer ties, and a
    confidence, the probability that the preferred text scores higher."""
    orders: OrderRule = "strict"
    """`"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`."""

    @property
    def form(self) -> Form:
        """What is asked in each order: two scores."""
        return Form(reads="scores", scale=self.scale, by_mean=self.score == "mean")


def _distinct(aspects: Sequence[str] | None) -> tuple[str, ...] | None:
    if aspects is None:
        return None
    names = tuple(aspect.strip() for aspect in aspects)
    if isinstance(aspects, str) or not names or not all(names):
        raise ValueError("no names")
    if len({name.casefold() for name in names}) < len(names):
        raise OptionError(f"`aspects` must be a list of distinct names, got {aspects!r}")
    return names


class Direct(AboutATask):
    """Create a judge that is asked once for the better text (direct prompting).

    Yan et al. 2023 (SC², section 4), with or without aspects: one call, A stands first,
    and there is no tie. The question and what a good text is like are those of
    `create_sc2_judge` with the same `task`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.score` is the
        probability of the label A where the model gives log-probabilities, else 1 or 0.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "direct"
    summary = "Direct prompting: one call, A or B."
    presets = {
        "with_aspects": {"aspects": list(ASPECTS)},
        "both_orders": {"orders": "strict"},
    }
    budgets = (Budget(1),)
    templates = {"judge": texts.DIRECT}

    aspects: Annotated[
        Sequence[str] | None, AfterValidator(_distinct), Rule("a list of distinct names")
    ] = None
    """Aspects to compare by, such as the offline aspects of SC²."""
    orders: OrderRule = "none"
    """`"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`."""

    @property
    def form(self) -> Form:
        """What is asked in each order, by the aspects."""
        return Form(about=self.task, aspects=self.aspects or ())


class ChainOfThought(ShownExamples, AboutATask):
    """Create a judge that thinks step by step and then names the better text.

    Chain of thought with no, one or more worked examples (Yan et al. 2023, SC², section 4
    and table 5): one call, A stands first, and there is no tie. The question is that of
    `create_sc2_judge` with the same `task`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`, as `create_direct_judge`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "cot"
    summary = "Chain of thought: one call that reasons first, then A or B."
    presets = {"one_shot": {"shots": 1}, "few_shot": {"shots": 5}}
    budgets = (Budget(1),)
    templates = {"judge": texts.COT}

    orders: OrderRule = "none"
    """`"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`."""


class LLMScore(Baseline):
    """Create the judge without roles that DRPE is compared with (Wu et al. 2023).

    `LLMScore`, in the NLPCC version `GPT-D3`: one call names the better passage, with a
    reason. A is the candidate; B is the reference and stands first, as for DRPE. Its score
    is `1(A preferred) · P`, where P is the length-normalised probability of reason and
    choice (equation 3); without log-probabilities P is one, and a note says so.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "llm_score"}`. `llm_score` is
        the number to correlate with people's, None where nothing was judged;
        `verdict.scores` holds it for A and for B, `verdict.score` the probability of A.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "llm_score"
    summary = "DRPE's judge without roles: one choice, weighed by its token confidence."
    presets = {"both_orders": {"orders": "strict"}}
    budgets = (Budget(1),)
    templates = {"judge": texts.LLM_SCORE}
    result = LLMScoreResult
    noun = "passage"
    weighs_choice = True

    task: AutoTask = "auto"
    """What the passages are: as `create_drpe_judge` takes it."""
    orders: OrderRule = "none"
    """`"none"` (the paper: the reference first), `"strict"`, `"lenient"` or `"score_mean"`."""

    @property
    def form(self) -> Form:
        """What is asked in each order, about the passages."""
        return Form(about=self.task)

    @property
    def single(self) -> Order:
        """The order of a judge that asks one: B first, as DRPE does."""
        return "BA"
