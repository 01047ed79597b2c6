"""A cascade: a cheap judge first, the next only where it is unsure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from langchain_judges.asking.effects import Update, emit
from langchain_judges.asking.question import Account
from langchain_judges.asking.reading import Problem
from langchain_judges.errors import OptionError
from langchain_judges.methods import declaration, ensemble, ensemble_options, items, pairs
from langchain_judges.options import Owner, Rule, Share, factory
from langchain_judges.rows.checks import Kind
from langchain_judges.verdict import WITHOUT_ANSWER, decision


class Cascade(ensemble_options.Combination):
    """Create a judge that asks a cheap judge, and the next one only if that one is unsure.

    "Trust or Escalate" (Jung, Brahman & Choi 2024, arXiv:2407.18370): a judge's verdict is
    accepted if its certainty is at least the threshold; otherwise the next judge is asked. The
    certainty (`metrics.certainty`) is the verdict's confidence: the probability of its label,
    or the agreement of samples or members; else whether both orders agree. A judge that
    offers none of these (one order, no log-probabilities) is never certain, and neither is a
    lead of scores, unless `calibrate_cascade` found the thresholds on labelled rows, with a
    guarantee on the agreement. Ours: the stages may be any judges, of any method.

    Attributes:
        thresholds: The lowest certainty at which a verdict is accepted: one number, or a list.
            Without a number the last judge always decides.
        calibration: Set by `calibrate_cascade`: its rows and the guarantee.

    Returns:
        A compiled graph to `{"verdict", "stage", "stages"}`. The verdict is that of the judge
        that decided (`stage`); `stages` holds the answers of the judges that were asked. If the
        last one has a threshold and is unsure too, the row is not judged (`unsure`).

    Raises:
        OptionError: An option is not allowed, or the judges do not fit together.
        ModelSetupError: A model cannot be made.
    """

    method = "cascade"
    summary = "Cascade: a cheap judge first, the next one only where it is unsure."
    default_methods = ("relative", "bsm")
    results = ("stages", "stage", "subscores")
    result_tables = {"stages": "Judges asked in turn"}

    thresholds: Annotated[
        Share | Sequence[Share | None],
        Owner(),
        Rule("a number from 0 to 1, or one for each judge (None: it never decides)"),
    ] = 0.5
    calibration: Annotated[
        Mapping[str, Any] | None, Owner(), Rule("what `calibrate_cascade` wrote, or None")
    ] = None

    def gates(self, size: int) -> list[float | None]:
        """The threshold of each judge; 0 for one that always decides.

        Args:
            size: How many judges there are.

        Raises:
            OptionError: There are more or fewer thresholds than judges.
        """
        if isinstance(self.thresholds, int | float):
            return [*[float(self.thresholds)] * (size - 1), 0.0]
        thresholds = list(self.thresholds)
        if len(thresholds) not in {size - 1, size}:
            told = declaration.WORDS["thresholds"]
            raise OptionError(told.format(less=size - 1, size=size, got=thresholds))
        return thresholds if len(thresholds) == size else [*thresholds, 0.0]

    def check_size(self, size: int) -> None:
        """Check that there is a threshold for each judge."""
        self.gates(size)


class Stage(ensemble_options.Opinion):
    """The decision of one judge of a cascade, and its certainty."""

    certainty: float | None


class CascadeState(pairs.PairState, total=False):
    """State of a cascade on pairs.

    Attributes:
        stages: What each judge said that was asked.
        stage: The judge that decided; None: none of them.
    """

    stages: list[Stage]
    stage: str | None


class ItemCascadeState(items.ItemState, total=False):
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
    """

    members: tuple[ensemble.Member, ...]
    kind: Kind
    gates: Sequence[float | None]
    calibrated: bool

    async def ask(self, state: CascadeState | ItemCascadeState, account: Account) -> Update:
        """Ask one judge after another until one is sure enough."""
        # Loaded on use, because the metrics load scipy.
        from langchain_judges.metrics.confidence import certainty

        row, stages = ensemble.row_of(self.kind, state), list[Stage]()
        for member in self.members:
            answer = await ensemble.ask_member(member, self.kind, row, account)
            sure = certainty(answer.verdict, calibrated=self.calibrated)
            stages.append(cast("Stage", {**answer.opinion, "certainty": sure}))
            emit("opinion", "ask", stages[-1])
            if self._decides(stages):
                break
        found = answer.subscores if self._decides(stages) else []
        parts = {"subscores": found} if self.kind == "item" else {}
        return {"stages": stages, **parts, **self._decided(stages, answer.verdict, account)}

    def _decides(self, stages: Sequence[Stage]) -> bool:
        """Whether the last judge asked is sure enough."""
        place, sure = len(stages) - 1, stages[-1]["certainty"]
        gate = self.gates[place]
        if place + 1 == len(self.members) and gate == 0:
            return True
        return gate is not None and sure is not None and sure >= gate

    def _decided(
        self, stages: Sequence[Stage], answer: Mapping[str, Any], account: Account
    ) -> Update:
        """Take the verdict of the last judge asked, or none."""
        last = stages[-1]
        if not self._decides(stages):
            unsure = Problem("unsure", "; ".join(map(_how_sure, stages)))
            account.fail([unsure.failure("decide", "")])
            return {"verdict": WITHOUT_ANSWER[self.kind](**account.booked), "stage": None}
        place = f"{len(stages)} of {len(self.members)}"
        rationale = f"Decided by {last['member']} ({place}). {last['rationale']}".strip()
        return {
            "verdict": {**answer, **account.booked, "rationale": rationale},
            "stage": last["member"] if decision(last) is not None else None,
        }


def _how_sure(stage: Stage) -> str:
    sure = stage["certainty"]
    if sure is None:
        return f"{stage['member']} says nothing of its certainty"
    return f"{stage['member']} {sure:.2f}"


def build(options: Cascade, members: ensemble_options.MembersLike) -> ensemble.CombinedGraph:
    """The judge."""
    return cascade_of(options.without_shared(), ensemble.read_members(options, members))


def cascade_of(options: Cascade, members: tuple[ensemble.Member, ...]) -> ensemble.CombinedGraph:
    """A cascade of ready judges."""
    kind = ensemble.kind_of_members(members)
    gates = options.gates(len(members))
    is_calibrated = options.calibration is not None
    # Without a threshold none decides; the last is asked, so that a row says how sure it was.
    places = [n for n, gate in enumerate(gates) if gate is not None or n == len(members) - 1]
    asked, asked_gates = tuple(members[n] for n in places), [gates[n] for n in places]
    steps = CascadeSteps(asked, kind, asked_gates, is_calibrated)
    return ensemble.graph_of(options, members, kind, (CascadeState, ItemCascadeState), steps.ask)


create_cascade = factory(Cascade, build, "create_cascade", "members")
