"""Options shared by all baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from annotated_types import Ge
from langchain_core.prompts import ChatPromptTemplate
from pydantic import AfterValidator, model_validator

from langchain_judges.errors import OptionError
from langchain_judges.methods import declaration, lookups, pairs, tasks
from langchain_judges.options import Rule, Scale
from langchain_judges.orders import Order, OrderRule
from langchain_judges.rows.texts import is_blank

PROMPTS = "direct/prompts.yaml"

# What a reply holds: one of three labels, one of two, or scores for both texts.
Reads = Literal["label", "forced_label", "scores"]


class BaselineSpec(NamedTuple):
    """The question of a baseline in each order; most fields are options of some baselines.

    The others have the values below, which cannot stand in `Baseline` itself: pydantic warns of
    an option that hides what a class above has, and a test checks that it does.

    Attributes:
        reads: What a reply holds.
        samples: How many replies each order is asked for.
        min_valid: The fewest of them that must be valid; None: more than half.
        coin: Whether a coin decides where the replies of one order are even.
        task: What the judgment is about; None where the prompt has its own question.
        max_criteria: Most criteria of the plan; 0 where nothing is planned.
    """

    reads: Reads = "forced_label"
    samples: int = 1
    min_valid: int | None = None
    coin: bool = False
    seed: int = 0
    task: str | Mapping[str, str] | None = None
    aspects: Sequence[str] | None = None
    scale: tuple[int, int] = (1, 10)
    explain_first: bool = True
    max_criteria: int = 0


class Baseline(lookups.LookupOptions, pairs.Worded):
    """The options of all baselines.

    Attributes:
        reads: What a reply holds.
        weighs_choice: Whether the choice is weighted by the probability of its tokens (DRPE,
            equation 4).
    """

    result_tables: ClassVar[Mapping[str, str]] = {"ballots": "Answers"}
    examples_in = ("judge",)
    results: ClassVar[tuple[str, ...]] = ("ballots",)
    noun: ClassVar[str] = "response"
    reads: ClassVar[Reads] = "forced_label"
    weighs_choice: ClassVar[bool] = False

    @cached_property
    def form(self) -> BaselineSpec:
        """The question of each order."""
        names = (name for name in BaselineSpec._fields if hasattr(self, name))
        return BaselineSpec(**{name: getattr(self, name) for name in names})

    @property
    def worked(self) -> Sequence[tasks.WorkedExample]:
        """The worked examples that are shown."""
        return ()

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return len(self.order_list) * self.form.samples

    def calls(self) -> int:
        """The calls for one pair, excluding repairs."""
        return self.lookup_rounds + bool(self.form.max_criteria) + self.branches()


class AboutATask(Baseline):
    """A baseline that asks what SC² asks, in the same words.

    Attributes:
        task: As for `sc2`.
    """

    task: tasks.AboutTask = "helpful"


def _lines(criteria: Sequence[str] | Mapping[str, str]) -> Sequence[str]:
    about = criteria if isinstance(criteria, Mapping) else {}
    texts = [*criteria, *filter(None, about.values())]
    if isinstance(criteria, str) or not texts or any(map(is_blank, texts)):
        raise ValueError("no criteria")
    return [f"{name}: {about[name]}" if about.get(name) else name for name in criteria]


_Criteria = Annotated[
    Sequence[str] | Mapping[str, str],
    AfterValidator(_lines),
    Rule("a list of criteria, or a mapping of them to what each asks"),
]


class ByCriteria(Baseline):
    """A baseline that can be told which criteria count.

    Attributes:
        criteria: The only criteria that count: names, or names with descriptions.
    """

    criteria: _Criteria | None = None

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        own = pairs.prompts_in(PROMPTS, f"{self.method}_by_criteria") if self.criteria else {}
        return {**super().prompt_texts, **own}


class Relative(tasks.FewShot, ByCriteria):
    """Create a judge that is asked in each order which text is better, or whether they tie.

    Zero-shot relative evaluation (Saha et al. 2023, section 4; the pairwise prompt of
    MT-Bench, in our words): two calls, a tie is allowed, and a text is preferred only if
    both orders prefer it.

    Attributes:
        orders: `"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`.

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
    templates = pairs.prompts_in(PROMPTS, "relative")
    reads = "label"

    orders: OrderRule = "strict"


class ScoresBoth(Baseline):
    """The options of baselines whose replies score both texts.

    Attributes:
        explain_first: Ask for the explanation before the scores.
    """

    reads = "scores"

    explain_first: bool = True


class Absolute(ScoresBoth, ByCriteria):
    """Create a judge that scores both texts in one call, in each order.

    Zero-shot absolute evaluation (Saha et al. 2023, section 4; the two-score prompt of
    MT-Bench, in our words): two calls, the higher score wins its order, equal scores are a
    tie, and a text is preferred only if both orders prefer it.

    Attributes:
        scale: Lowest and highest score.
        orders: `"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.scores` are the
        sums over the orders, `verdict.score` the mean of 1, 0.5 and 0 over the orders.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "absolute"
    summary = "Zero-shot absolute: two scores in one call; both orders must agree."
    templates = pairs.prompts_in(PROMPTS, "absolute")

    scale: Scale = (1, 10)
    orders: OrderRule = "strict"


def _distinct(aspects: Sequence[str]) -> tuple[str, ...]:
    names = tuple(aspect.strip() for aspect in aspects)
    is_list = not isinstance(aspects, str) and names and not any(map(is_blank, names))
    if not is_list or len({name.casefold() for name in names}) < len(names):
        raise ValueError("no distinct names")
    return names


_Names = Annotated[Sequence[str], AfterValidator(_distinct), Rule("a list of distinct names")]


class Direct(AboutATask):
    """Create a judge that is asked once for the better text (direct prompting).

    Yan et al. 2023 (SC², section 4), with or without aspects: one call, A first,
    and there is no tie. The question and what a good text is like are those of
    `create_sc2_judge` with the same `task`.

    Attributes:
        aspects: Aspects to compare by, such as the offline aspects of SC².
        orders: `"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`. `verdict.score` is the
        probability of the label A where the model gives log-probabilities, else 1 or 0.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "direct"
    summary = "Direct prompting: one call, A or B."
    templates = pairs.prompts_in(PROMPTS, "direct")

    aspects: _Names | None = None
    orders: OrderRule = "none"


class ChainOfThought(tasks.FewShot, AboutATask):
    """Create a judge that thinks step by step and then names the better text.

    Chain of thought with no, one or more worked examples (Yan et al. 2023, SC², section 4
    and table 5): one call, A first, and there is no tie. The question is that of
    `create_sc2_judge` with the same `task`.

    Attributes:
        orders: `"none"` (the paper), `"strict"`, `"lenient"` or `"score_mean"`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`, as `create_direct_judge`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "cot"
    summary = "Chain of thought: one call that reasons first, then A or B."
    templates = pairs.prompts_in(PROMPTS, "cot")

    orders: OrderRule = "none"


class LLMScore(Baseline):
    """Create the judge without roles that DRPE is compared with (Wu et al. 2023).

    `LLMScore`, in the NLPCC version `GPT-D3`: one call names the better passage, with a
    reason. A is the candidate; B is the reference and comes first, as for DRPE. Its score
    is `1(A preferred) · P`, where P is the length-normalised probability of reason and
    choice (equation 3); without log-probabilities P is one, and a note says so.

    Attributes:
        task: What the passages are: as `create_drpe_judge` takes it.
        orders: `"none"` (the paper: the reference first), `"strict"`, `"lenient"` or
            `"score_mean"`.

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
    templates = pairs.prompts_in(PROMPTS, "llm_score")
    results = ("ballots", "llm_score")
    noun = "passage"
    weighs_choice = True

    task: tasks.AutoTask = "auto"
    orders: OrderRule = "none"

    @property
    def single(self) -> Order:
        """The order of a judge that asks one: B first, as DRPE does."""
        return "BA"


class PlanSolve(ScoresBoth):
    """Create a judge that plans criteria, then scores all of them in one call.

    Plan & solve as Saha et al. 2023 (section 4) compare it with Branch-Solve-Merge: one
    call plans from the request alone, one call for each order scores both texts on every
    criterion, the sums are compared, and a text is preferred only if both orders prefer it.
    That is three calls. A criterion that one order lacks is left out of both.

    Attributes:
        max_criteria: Most criteria in the plan.
        scale: Lowest and highest score.
        orders: `"strict"` (the paper), `"lenient"`, `"score_mean"` or `"none"`.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots", "criteria", "subscores"}`.
        `verdict.scores` are the totals over the orders, `verdict.score` the mean of 1, 0.5
        and 0 over them.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "plan_solve"
    summary = "Plan & solve: a plan of criteria, then all of them scored in one call."
    result_tables = {"ballots": "Answers", "subscores": "Scores by criterion"}
    templates = pairs.prompts_in(PROMPTS, "plan_solve")
    results = ("ballots", "criteria", "subscores")

    max_criteria: Annotated[int, Ge(1)] = 5
    scale: Scale = (1, 5)
    orders: OrderRule = "strict"


class SelfConsistency(tasks.FewShot, AboutATask):
    """Create a judge that asks for several replies and takes the majority.

    `prompt="cot"` is the self-consistency of Yan et al. 2023 (SC²): eight chains of thought,
    one order, and a seeded coin where they are even. `prompt="relative"` is that of Saha et
    al. 2023 (BSM): the relative prompt, as many samples in each order as its branching
    factor, which is five, an order without a plurality is a tie, and a text is preferred
    only if both orders prefer it. Samples are asked in parallel at temperature 0.7, each
    with a seed of its own; with one sample the judge is the chain of thought, or the
    relative judge, itself.

    Attributes:
        prompt: `"cot"`, chains of thought, or `"relative"`, relative verdicts.
        samples: Replies in each order; default 8 for `"cot"`, 5 for `"relative"`.
        orders: In which orders; default `"none"` for `"cot"`, `"strict"` for `"relative"`.
        min_valid: Fewest valid samples in an order; default more than half of those asked.
        seed: Seed of the samples and of the coin.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "ballots"}`.
        `verdict.scores` are the votes, `verdict.score` the share of A (where a coin decided,
        just above or below 0.5: a score above 0.5 always means A), `verdict.confidence` that of
        the preference.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "cot_sc"
    summary = "Self-consistency of SC²'s paper: the majority of eight chains of thought."
    few = {"samples": 3}
    templates = pairs.prompts_in(PROMPTS, "cot")

    prompt: Literal["cot", "relative"] = "cot"
    samples: Annotated[int, Ge(1)] | None = None
    orders: OrderRule | None = None
    min_valid: Annotated[int, Ge(1)] | None = None
    seed: declaration.Seed = 0

    @property
    def label(self) -> str:
        """The name of the method in results and traces."""
        return f"{self.prompt}_sc"

    @property
    def form(self) -> BaselineSpec:
        """The question of each order: several replies with a label."""
        cot = self.prompt == "cot"
        return super().form._replace(
            reads="forced_label" if cot else "label",
            samples=self.samples or (8 if cot else 5),
            coin=cot,
        )

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompt of each step."""
        kind: type[Baseline] = ChainOfThought if self.prompt == "cot" else Relative
        return kind.texts(self.wording)

    @property
    def order_rule(self) -> OrderRule:
        """The rule by which the verdicts of the orders become one."""
        return self.orders or ("none" if self.prompt == "cot" else "strict")

    @model_validator(mode="after")
    def _check(self) -> Self:
        declaration.check_quorum(self.min_valid, self.form.samples)
        if self.prompt != "cot" and self.task != "helpful":
            raise OptionError(f"`task` needs `prompt='cot'`, got {self.task!r}")
        return self


class RelativeSelfConsistency(SelfConsistency):
    """The self-consistency of Saha et al. 2023, under a name of its own.

    Attributes:
        prompt: `"cot"`, chains of thought, or `"relative"`, relative verdicts.
    """

    method = "relative_sc"
    summary = "Self-consistency of BSM's paper: five relative verdicts in each order."
    templates = pairs.prompts_in(PROMPTS, "relative")

    prompt: Literal["cot", "relative"] = "relative"
