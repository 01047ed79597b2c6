"""A cascade: the graph [ask]: judge after judge until one is sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast, overload

from langchain_judges.asking.account import Account
from langchain_judges.asking.effects import Update, emit
from langchain_judges.asking.reading import Problem
from langchain_judges.errors import OptionError
from langchain_judges.methods import ensemble
from langchain_judges.methods.cascade.options import Cascade
from langchain_judges.methods.ensemble_options import MembersLike, Opinion
from langchain_judges.methods.items import ItemState
from langchain_judges.methods.pairs import PairState
from langchain_judges.metrics.confidence import certainty
from langchain_judges.options import factory
from langchain_judges.rows.checks import Kind
from langchain_judges.verdict import add_usage, decision, not_judged, not_labelled

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Concatenate


P = ParamSpec("P")


class Stage(Opinion):
    """The decision of one judge of a cascade, and its certainty."""

    certainty: float | None


class CascadeState(PairState, total=False):
    """State of a cascade on pairs.

    Attributes:
        stages: What each judge said that was asked.
        stage: The judge that decided; None: none of them.
    """

    stages: list[Stage]
    stage: str | None


class ItemCascadeState(ItemState, total=False):
    """State of a cascade on single texts.

    Attributes:
        subscores: What the judge that decided found by each criterion; empty without several
            criteria.
    """

    stages: list[Stage]
    stage: str | None
    subscores: list[Any]


@dataclass(frozen=True)
class CascadeSteps:
    """The steps of the graph.

    Attributes:
        calibrated: Whether the thresholds were found on labelled rows, so that a lead of scores
            counts.
        open_agreement: The agreement for which thresholds are still to be found.
    """

    members: tuple[ensemble.Member, ...]
    kind: Kind
    gates: Sequence[float | None]
    calibrated: bool
    open_agreement: float | None = None

    async def ask(self, state: CascadeState | ItemCascadeState, account: Account) -> Update:
        """Ask judge after judge until one is sure enough.

        Raises:
            OptionError: The thresholds for the agreement were not found yet.
        """
        if self.open_agreement is not None:
            raise OptionError(
                "the cascade has no thresholds for an `agreement` of "
                f"{self.open_agreement:.0%} yet: take the cascade that "
                "`calibrate_cascade(cascade, rows)` returns, of some hundreds of labels"
            )
        row, stages = ensemble.row_of(self.kind, state), list[Stage]()
        for member in self.members:
            answer = await ensemble.ask_member(member, self.kind, row, account)
            sure = certainty(answer.verdict, calibrated=self.calibrated)
            stages.append(cast("Stage", {**answer.opinion, "certainty": sure}))
            emit("opinion", "ask", stages[-1])
            if self._decides(stages):
                break
        parts = {"subscores": answer.subscores} if self.kind == "item" else {}
        return {"stages": stages, **parts, **self._decided(stages, answer.verdict, account)}

    def _decides(self, stages: Sequence[Stage]) -> bool:
        """Say whether the judge that was asked last is sure enough."""
        place, sure = len(stages) - 1, stages[-1]["certainty"]
        gate = self.gates[place]
        if place + 1 == len(self.members) and gate == 0:
            return True
        return gate is not None and sure is not None and sure >= gate

    def _decided(
        self, stages: Sequence[Stage], answer: Mapping[str, Any], account: Account
    ) -> Update:
        """Take the verdict of the judge that was asked last, or none."""
        last = stages[-1]
        if not self._decides(stages):
            unsure = Problem("unsure", "; ".join(map(_how_sure, stages)))
            account.fail([unsure.failure("decide", "")])
            without: Any = not_judged if self.kind == "pair" else not_labelled
            nothing: Update = {"subscores": []} if self.kind == "item" else {}
            return {"verdict": without(**account.booked), "stage": None, **nothing}
        place = f"{len(stages)} of {len(self.members)}"
        rationale = f"Decided by {last['member']} ({place}). {last['rationale']}".strip()
        is_judged = decision(last) is not None
        return {
            "verdict": {
                **_blank(self.kind),
                **answer,
                **account.booked,
                "rationale": rationale,
            },
            "stage": last["member"] if is_judged else None,
        }


def _blank(kind: Kind) -> dict[str, object]:
    """The parts of a verdict that another runnable may leave out."""
    no_cost = add_usage([])
    return dict(not_judged([], no_cost) if kind == "pair" else not_labelled([], no_cost))


def _how_sure(stage: Stage) -> str:
    sure = stage["certainty"]
    if sure is None:
        return f"{stage['member']} says nothing of its certainty"
    return f"{stage['member']} {sure:.2f}"


def build(options: Cascade, members: MembersLike | None) -> ensemble.CombinedGraph:
    """The judge."""
    if (members is None) == (options.first is None):
        raise OptionError("give the judges as `members`, or as `first` and `then`")
    stages = _stages(options) if members is None else members
    own = options.without_shared().model_copy(update={"first": None, "then": None})
    return cascade_of(own, ensemble.read_members(options, stages))


def _stages(options: Cascade) -> list[Any]:
    """The judges of `first` and `then`; a model as `first` judges as `then` does."""
    then: Any = options.then
    others = list(then) if isinstance(then, list | tuple) else [then]
    return [ensemble.judges_as(options.first, others[0]), *others]


def cascade_of(
    options: Cascade, members: tuple[ensemble.Member, ...]
) -> ensemble.CombinedGraph:
    """A cascade of ready judges."""
    kind = ensemble.kind_of_members(members)
    gates = options.gates(len(members))
    open_agreement = options.agreement if options.is_open else None
    is_calibrated = options.calibration is not None
    # Without a threshold none decides; the last is asked, so that a row says how sure it was.
    last = len(members) - 1
    places = [n for n, gate in enumerate(gates) if gate is not None or n == last]
    asked, asked_gates = tuple(members[n] for n in places), [gates[n] for n in places]
    steps = CascadeSteps(asked, kind, asked_gates, is_calibrated, open_agreement)
    return ensemble.compiled(
        options, members, kind, (CascadeState, ItemCascadeState), steps.ask
    )


class _CreateCascade(Protocol[P]):
    """A factory to which the judges are given as its argument, or by `first` and `then`."""

    @overload
    def __call__(
        self, members: MembersLike, *args: P.args, **options: P.kwargs
    ) -> ensemble.CombinedGraph: ...
    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> ensemble.CombinedGraph: ...


def _or_by_stages(
    create: Callable[Concatenate[MembersLike | None, P], ensemble.CombinedGraph],
) -> _CreateCascade[P]:
    return cast("_CreateCascade[P]", create)


create_cascade = _or_by_stages(
    factory(Cascade, build, "create_cascade", "members", needed=False)
)
