"""A jury: several judges or models on the same row, and their majority's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from textwrap import shorten
from typing import Annotated, Any, Literal

from annotated_types import Ge
from pydantic import AfterValidator

from langchain_judges import verdict
from langchain_judges.asking.effects import Update, emit, gather
from langchain_judges.asking.question import Account
from langchain_judges.asking.reading import Problem
from langchain_judges.errors import OptionError
from langchain_judges.methods import declaration, ensemble, items, pairs
from langchain_judges.methods.ensemble_options import Combination, MembersLike, Opinion
from langchain_judges.options import Owner, Rule, factory
from langchain_judges.rows.checks import Kind

MemberWeights = Sequence[float] | Mapping[str, float]


def _check_weights(weights: MemberWeights | None) -> MemberWeights | None:
    values = weights.values() if isinstance(weights, Mapping) else weights or [1.0]
    if not any(weight > 0 for weight in values) or any(weight < 0 for weight in values):
        raise ValueError
    return weights


class Jury(Combination):
    """Create a judge that asks several judges about a row and takes the majority answer.

    A panel of different models costs less and is less biased than one large model (Verga et al.
    2024, arXiv:2404.18796), if its members make different errors: `metrics.effective_voters`
    says how many independent voters it is worth.

    A member may be a judge of this package, another jury, any runnable whose metadata name
    its `method` and what it `takes`, a model, or a spec. All judge pairs, or all single texts.
    One that fails is reported in `failures`, and the verdict holds with `min_valid` others.

    Attributes:
        combine: `"majority"`, the default: what more than half of all members say. `"mean"`,
            the default of totals over several criteria: the mean score.
            `"median"`: the middle of labels that are numbers, the lower of two.
        weights: How much each member counts in a majority or a mean.
        min_valid: Members that must have judged the row; default: more than half.

    Returns:
        A compiled graph to `{"verdict", "members"}`; `members` holds what each one said.
        `verdict.confidence` is the share of the votes, by weight, that say what the verdict
        says; `verdict.score` the mean of 1, 0.5 and 0 over them, with `combine="mean"` of their
        scores; of single texts the mean of labels, or of scores. Calls are in `usage.by_step`
        under `member: step`.

    Raises:
        OptionError: An option is not allowed, or the members do not fit together.
        ModelSetupError: A model cannot be made.
    """

    method = "jury"
    summary = "Jury: several judges or models on the same row, and what most of them say."
    default_methods = ("relative", "cot", "plan_solve")
    results = ("members",)
    result_tables = {"members": "What each member said"}

    combine: Literal["majority", "mean", "median"] | None = None
    weights: Annotated[
        Sequence[float] | Mapping[str, float] | None,
        AfterValidator(_check_weights),
        Owner(),
        Rule("weights of at least 0, one for each member, in a list or by name; one above 0"),
    ] = None
    min_valid: Annotated[int, Ge(1)] | None = None

    def check_size(self, size: int) -> None:
        """Check that the required number of members can judge a row."""
        declaration.check_quorum(self.min_valid, size)


@dataclass(frozen=True)
class Ballots:
    """The opinions of the members, and the rule that combines them."""

    opinions: Sequence[Opinion]
    weights: Mapping[str, float]
    combine: str
    min_valid: int

    @property
    def valid(self) -> list[Opinion]:
        """The opinions of members that judged the row."""
        return [each for each in self.opinions if verdict.decision(each) is not None]

    def mean(self, value: Callable[[Opinion], float]) -> float:
        """The mean over the valid opinions, by weight."""
        weights = [self.weights[each["member"]] for each in self.valid]
        parts = zip(weights, self.valid, strict=True)
        return fsum(weight * value(each) for weight, each in parts) / fsum(weights)

    def majority(self) -> Any:
        """The answer of members with more than half of all weight; None if there is none."""
        half = self.weight_of(self.opinions) / 2
        answers = {verdict.decision(each) for each in self.valid}
        return next((a for a in answers if self.weight_of(self.saying(a)) > half), None)

    def saying(self, answer: object) -> list[Opinion]:
        """The opinions with an answer."""
        return [each for each in self.valid if verdict.decision(each) == answer]

    def weight_of(self, opinions: Sequence[Opinion]) -> float:
        """The weight of some members together."""
        return fsum(self.weights[each["member"]] for each in opinions)

    def agreement(self, answer: object) -> float:
        """The share of all members, by weight, that say what the verdict says.

        A tie because two orders disagree agrees with nobody: it does not say that
        the texts are equal.
        """
        said = self.saying(answer)
        agreeing = [each for each in said if answer != "tie" or not each.get("flipped")]
        return self.weight_of(agreeing) / self.weight_of(self.opinions)

    @property
    def lost(self) -> str:
        """Why there is no verdict; empty if one is possible."""
        valid = self.valid
        if len(valid) < self.min_valid:
            share = f"{len(valid)} of {len(self.opinions)} members gave a verdict"
            return f"{share}, at least {self.min_valid} must"
        return "" if self.weight_of(valid) else "the members that gave a verdict weigh nothing"

    @property
    def votes(self) -> str:
        """Every member's answer, in one line that does not depend on their order."""
        sides: dict[str, list[str]] = {}
        for each in self.opinions:
            answer = verdict.decision(each)
            side = "not judged" if answer is None else str(answer)
            sides.setdefault(side, []).append(each["member"])
        return "; ".join(f"{side}: {', '.join(sorted(sides[side]))}" for side in sorted(sides))

    def rationale(self, answer: object) -> str:
        """Sentence about each member's answer, with a reason from one that agrees."""
        agreeing = sorted(self.saying(answer), key=lambda each: each["member"])
        reasons = filter(None, (each["rationale"] for each in agreeing))
        return f"{self.votes}. {shorten(next(reasons, ''), 300, placeholder=' …')}".strip()


def verdict_of(
    ballots: Ballots, kind: Kind, scale: Sequence[verdict.Label], account: Account
) -> dict[str, Any]:
    """The verdict on a row.

    Args:
        ballots: What the members said.
        kind: Whether they judge pairs or single texts.
        scale: The labels of single texts from the worst, of which a mean takes the nearest;
            empty: totals from 0 to 1.
        account: Of the row.
    """
    without = verdict.WITHOUT_ANSWER[kind]
    if lost := ballots.lost:
        return dict(without(**account.booked, rationale=verdict.why_not(account.failures, lost)))
    answer, score = _preferred(ballots) if kind == "pair" else _jury_label(ballots, scale)
    if answer is None:
        undecided = f"no answer has more than half of the members: {ballots.votes}"
        account.fail([Problem("no_majority", undecided).failure("merge", "")])
        return dict(without(**account.booked, rationale=f"Not judged: {undecided}."))
    flips = {each.get("flipped") for each in ballots.saying(answer)}
    both = {"flipped": None if None in flips else True in flips} if kind == "pair" else {}
    return {
        **without(**account.booked, rationale=ballots.rationale(answer)),
        **both,
        "preference" if kind == "pair" else "label": answer,
        "score": score,
        "confidence": ballots.agreement(answer),
        "confidence_source": "samples",
    }


def _preferred(ballots: Ballots) -> tuple[verdict.Preference | None, float]:
    """The preference on a pair, and how far A is preferred."""
    if ballots.combine == "mean":
        score = ballots.mean(lambda each: _score_of(each, verdict.POINTS))
        preference: Any = "A" if score > 0.5 else "B" if score < 0.5 else "tie"
        return preference, score
    preference = ballots.majority()
    score = ballots.mean(lambda each: verdict.POINTS[each["preference"] or "tie"])
    return preference, 0.5 if preference == "tie" else score


def _score_of(opinion: Opinion, places: Mapping[Any, float]) -> float:
    """The score of a member, or that of its answer."""
    score = opinion["score"]
    return places[verdict.decision(opinion)] if score is None else score


def _jury_label(
    ballots: Ballots, scale: Sequence[verdict.Label]
) -> tuple[verdict.Label | None, float | None]:
    """The label of one text, and its score."""
    labels = [verdict.decision(each) for each in ballots.valid]
    places = verdict.positions_of(scale)
    is_placed = bool(places) and all(label in places for label in labels)
    if not is_placed:  # totals; or those of a runnable, which may say anything
        places = {label: label for label in labels if not isinstance(label, str)}
    if any(label not in places for label in labels):
        return ballots.majority(), None
    said, score = ballots.majority(), ballots.mean(lambda each: places[verdict.decision(each)])
    if ballots.combine == "mean":
        middle, score = score, ballots.mean(lambda each: _score_of(each, places))
        said = min(places, key=lambda n: abs(places[n] - score)) if is_placed else middle
    elif ballots.combine == "median":
        said = sorted(labels, key=lambda label: places[label])[(len(labels) - 1) // 2]
    return said, score if 0 <= score <= 1 else None


class JuryState(pairs.PairState, total=False):
    """State of a jury on pairs."""

    members: list[Opinion]


class ItemJuryState(items.ItemState, total=False):
    """State of a jury on single texts."""

    members: list[Opinion]


def _weights(weights: MemberWeights | None, members: Sequence[ensemble.Member]) -> dict[str, float]:
    names = [member.name for member in members]
    if weights is None:
        return dict.fromkeys(names, 1.0)
    if isinstance(weights, Mapping):
        if set(weights) != set(names):
            raise OptionError(f"`weights` must name {names!r}, got {sorted(weights)!r}")
        return dict(weights)
    if len(weights) != len(names):
        raise OptionError(f"`weights` must be one for each of {names!r}, got {weights!r}")
    return dict(zip(names, weights, strict=True))


@dataclass(frozen=True)
class JurySteps:
    """The steps of the graph."""

    options: Jury
    members: tuple[ensemble.Member, ...]
    kind: Kind
    weights: Mapping[str, float]

    async def ask(self, state: JuryState | ItemJuryState, account: Account) -> Update:
        """Ask all members at the same time, and combine their answers in one verdict."""
        row = ensemble.row_of(self.kind, state)
        opinions = await gather([self._asked(m, row, account.part()) for m in self.members])
        least = self.options.min_valid or len(self.members) // 2 + 1
        scale = ensemble.scale_of(self.members[0], row) if self.kind == "item" else ()
        # Equal totals over several criteria, which a row may bring, are no agreement.
        usual = "mean" if self.kind == "item" and not scale else "majority"
        ballots = Ballots(opinions, self.weights, self.options.combine or usual, least)
        return {"members": opinions, "verdict": verdict_of(ballots, self.kind, scale, account)}

    async def _asked(
        self, member: ensemble.Member, row: Mapping[str, object], account: Account
    ) -> Opinion:
        answer = await ensemble.ask_member(member, self.kind, row, account)
        emit("opinion", "ask", answer.opinion)
        return answer.opinion


def build(options: Jury, members: MembersLike) -> ensemble.CombinedGraph:
    """The judge."""
    jurors, options = ensemble.read_members(options, members), options.without_shared()
    options.check_size(len(jurors))
    kind, weights = ensemble.kind_of_members(jurors), _weights(options.weights, jurors)
    scale = ensemble.scale_of(jurors[0]) if kind == "item" else ()
    is_graded = kind == "item" and not any(isinstance(label, str) for label in scale)
    by_number = {"median"} if kind == "pair" else {"mean", "median"}
    if options.combine == "median" and options.weights is not None:
        raise OptionError("`weights` go with `combine='majority'` or `'mean'`")
    if options.combine in by_number and not is_graded:
        raise OptionError(f"`combine={options.combine!r}` needs labels that are numbers")
    steps = JurySteps(options, jurors, kind, weights)
    return ensemble.graph_of(options, jurors, kind, (JuryState, ItemJuryState), steps.ask)


create_jury = factory(Jury, build, "create_jury", "members")
