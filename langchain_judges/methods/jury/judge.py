"""A jury: the graph [ask]: every member, then one verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_judges.asking.account import Account
from langchain_judges.asking.effects import Update, emit, gather
from langchain_judges.errors import OptionError
from langchain_judges.methods import ensemble
from langchain_judges.methods.describe import metadata_of
from langchain_judges.methods.ensemble_options import MembersLike, Opinion
from langchain_judges.methods.items import ItemState
from langchain_judges.methods.jury.options import (
    Ballots,
    Jury,
    MemberWeights,
    label_verdict,
    pair_verdict,
)
from langchain_judges.methods.pairs import PairState
from langchain_judges.options import factory
from langchain_judges.rows.checks import Kind
from langchain_judges.verdict import Label, LabelVerdict, Verdict


class JuryState(PairState, total=False):
    """State of a jury on pairs."""

    members: list[Opinion]


class ItemJuryState(ItemState, total=False):
    """State of a jury on single texts."""

    members: list[Opinion]


def _weights(
    weights: MemberWeights | None, members: Sequence[ensemble.Member]
) -> dict[str, float]:
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


def _grades(members: Sequence[ensemble.Member]) -> tuple[float, ...]:
    """The labels of judges of single texts; none where a label is a text."""
    labels: set[Label] = set()
    for member in members:
        labels.update((metadata_of(member.judge).get("options") or {}).get("labels") or (0, 1))
    numbers = [label for label in labels if isinstance(label, int | float)]
    return tuple(sorted(numbers)) if len(numbers) == len(labels) else ()


@dataclass(frozen=True)
class JurySteps:
    """The steps of the graph."""

    options: Jury
    members: tuple[ensemble.Member, ...]
    kind: Kind
    weights: Mapping[str, float]
    grades: tuple[float, ...]

    async def ask(self, state: JuryState | ItemJuryState, account: Account) -> Update:
        """Ask all members at the same time, and make one verdict of what they say."""
        row = ensemble.row_of(self.kind, state)
        opinions = await gather([self._asked(m, row, account.part()) for m in self.members])
        return {"members": opinions, "verdict": self._merged(opinions, account)}

    async def _asked(
        self, member: ensemble.Member, row: Mapping[str, object], account: Account
    ) -> Opinion:
        answer = await ensemble.ask_member(member, self.kind, row, account)
        emit("opinion", "ask", answer.opinion)
        return answer.opinion

    def _merged(self, opinions: Sequence[Opinion], account: Account) -> Verdict | LabelVerdict:
        ballots = Ballots(
            opinions,
            self.weights,
            self.options.combine,
            self.options.min_valid or len(self.members) // 2 + 1,
        )
        if self.kind == "item":
            return label_verdict(ballots, self.grades, account)
        return pair_verdict(ballots, account)


def build(options: Jury, members: MembersLike) -> ensemble.CombinedGraph:
    """The judge."""
    return _jury(options.without_shared(), ensemble.read_members(options, members))


def _jury(options: Jury, members: tuple[ensemble.Member, ...]) -> ensemble.CombinedGraph:
    options.check_size(len(members))
    kind = ensemble.kind_of_members(members)
    steps = JurySteps(
        options, members, kind, _weights(options.weights, members), _grades(members)
    )
    by_number = {"item": {"mean", "median"}, "pair": {"median"}}[kind]
    if options.combine in by_number and not (kind == "item" and steps.grades):
        raise OptionError(f"`combine={options.combine!r}` needs labels that are numbers")
    return ensemble.compiled(options, members, kind, (JuryState, ItemJuryState), steps.ask)


create_jury = factory(Jury, build, "create_jury", "members")
