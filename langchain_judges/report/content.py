"""What a report holds, whatever it is written as."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from typing_extensions import TypedDict

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.evidence import costliest, differs
from langchain_judges.report.measure import headline_key, measure
from langchain_judges.report.number import Number
from langchain_judges.report.sample import Sample
from langchain_judges.report.uses import MARGIN, MOST_WRONG, Use, UseAnswer, answers_of, details
from langchain_judges.rows.labels import SIDES
from langchain_judges.verdict import Usage, add_usage, no_usage


class Moment(TypedDict):
    """What a history keeps of a report."""

    date: str
    judge: str
    agreement: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Drift:
    """A report beside an earlier one, on the rows that both have."""

    since: str
    """When the earlier report was made."""
    change: Result
    """Agreement now − agreement then, in [−1, 1], paired by row."""
    changed: Result
    """The share of rows on which the judge says something else now."""
    history: list[Moment]
    """Agreement by date, earliest first."""

    @property
    def worse(self) -> bool:
        """Whether the whole interval of the change is below 0."""
        return self.change.interval is not None and self.change.interval.high < 0

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON data."""
        return {
            "since": self.since,
            "worse": self.worse,
            "change": self.change.to_dict(),
            "changed": self.changed.to_dict(),
        }


@dataclass(frozen=True)
class Contest:
    """Two judges on the rows that both have; a failed judgment is wrong."""

    first: str
    second: str
    n: int
    """Rows that both have, and that have a label."""
    difference: Result
    """Agreement of the first − agreement of the second, with its interval."""
    p: float
    """Two-sided, of the test that the interval inverts."""
    holm_p: float
    """`p` adjusted for all pairs of judges."""
    only_first: int
    """Rows on which the first alone says what the label says."""
    only_second: int

    same: Result = field(default_factory=lambda: Result.undefined("not counted"))
    """The share of the rows on which both say the same."""
    same_error: Result = field(default_factory=lambda: Result.undefined("not counted"))
    """Of the rows on which either is wrong, the share on which both are, with one answer: how
    far a second judge repeats the mistakes of the first."""

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON data, flat."""
        nested = ("difference", "same", "same_error")
        parts = {k: v for k, v in asdict(self).items() if k not in nested}
        parts |= {"same": float(self.same), "same_error": float(self.same_error)}
        low, high = self.difference.interval or (None, None)
        parts |= {"difference": float(self.difference), "low": low, "high": high}
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in parts.items()
        }


class ReportContent:
    """A judge's agreement with people, and its biases: what every form of the report shows."""

    def __init__(
        self,
        sample: Sample,
        name: str,
        data_name: str,
        disagreements: int,
        *,
        margin: float = MARGIN,
        max_wrong: float = MOST_WRONG,
    ) -> None:
        """Measure a sample of judged rows."""
        self.sample = sample
        self.name = name
        """What the judge is called."""
        self.data_name = data_name
        self.absent = 0
        """Rows of the data that the run does not hold, judged or not; no number counts them."""
        self.left_out = ""
        """Which verdicts are of no row, or of an older text, in a sentence; no number counts
        them."""
        self.numbers: dict[str, Number] = {n.key: n for n in measure(sample)}
        """Every number by its key, such as `agreement.label.wrong`."""
        self.uses: dict[Use, UseAnswer] = answers_of(
            sample, self.numbers, margin=margin, max_wrong=max_wrong
        )
        """For each use whether the judge may be trusted: `yes`, `no` or `not yet`, and why."""
        self.details = details(sample, self.numbers, self.headline)
        """What was measured, in one sentence."""
        self.notes = sample.notes()
        """Which rows some numbers cannot count, a sentence each."""
        self.confusion = metrics.confusion(sample.verdicts, sample.labels, _classes(sample))
        """Rows by people's label, columns by the judge's answer."""
        self.disagreements = costliest(sample, disagreements)
        """The costliest first."""
        self.n_disagreements = sum(map(differs, sample.rows))
        """How many there are in all."""
        self.provenance: dict[str, str] = {}
        """Where the report comes from: date, versions, judge, data, command."""
        self.drift: Drift | None = None
        """What changed since an earlier report."""
        self.usage = _usage(sample)
        """What the verdicts cost."""
        self.dollars = _dollars(sample)
        """What they cost in dollars; None: the run was given no prices, or lacked one."""

    @property
    def sentence(self) -> str:
        """The answers, one a line, and what else was counted."""
        lines = [f"{each.title}. {each.text}" for each in self.uses.values()]
        return "\n".join([*lines, self.details])

    @property
    def headline(self) -> Number:
        """The agreement that the sentence tells."""
        return self.numbers[headline_key(self.sample, self.numbers)]

    def __getitem__(self, key: str) -> metrics.Result:
        """Return a number by its key."""
        return self.numbers[key].result


def _classes(sample: Sample) -> Sequence[str] | None:
    """Return the answers of pairs, a tie only if there is one; None: whatever there is."""
    if not sample.pairs:
        return None
    return SIDES if "tie" in [*sample.labels, *sample.answers] else SIDES[:2]


def _usage(sample: Sample) -> Usage:
    # Verdicts of other runnables may lack parts of it.
    return add_usage({**no_usage(), **(row.verdict.get("usage") or {})} for row in sample.rows)


def _dollars(sample: Sample) -> float | None:
    """Return what the rows cost if the run knew the price of every reply."""
    costs = [row.row["cost"] for row in sample.rows if "cost" in row.row]
    complete = len(costs) == len(sample.rows) and None not in costs
    return sum(costs) if complete else None
