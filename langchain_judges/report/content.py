"""What a report holds, whatever it is written as."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from langchain_judges import metrics
from langchain_judges.metrics import Result
from langchain_judges.report.answers import (
    MARGIN,
    MOST_WRONG,
    Number,
    Use,
    UseAnswer,
    labels_to_settle,
    range_text,
    value_text,
    with_range,
)
from langchain_judges.report.evidence import costliest
from langchain_judges.report.measure import headline_key, measure
from langchain_judges.report.sample import Sample
from langchain_judges.report.uses import answers_of
from langchain_judges.report.watch import Drift
from langchain_judges.rows.checks import SIDES
from langchain_judges.verdict import Usage, add_usage, is_abstention, no_usage


@dataclass(frozen=True)
class Contest:
    """Two judges on the rows that both have; a failed judgment is wrong."""

    first: str
    """The one that is right more often, so far."""
    second: str
    n: int
    """Rows that both have, and that have a label."""
    difference: Result
    """Agreement of the first − agreement of the second, with its interval."""
    p: float
    """Two-sided, of the test that the interval inverts."""
    holm_p: float
    """`p` adjusted for all pairs of judges."""

    @property
    def settled(self) -> bool:
        """Whether one of the two is right more often, all pairs of judges considered."""
        return self.holm_p < 0.05

    @property
    def sentence(self) -> str:
        """Which of the two is right more often, by how much, and whether that is settled."""
        if not self.n:
            return f"{self.first} and {self.second} have no row in common."
        number = Number("", "", self.difference, "points")
        lead = with_range(number).lstrip("+")
        if self.settled:
            return f"{self.first} is right more often than {self.second} by {lead}."
        labels = labels_to_settle(self.difference, (0.0, math.inf))
        more = f" About {labels:,} more labels would settle it." if labels else ""
        ahead = f"so far {self.first} leads by {lead}"
        if not self.difference:
            ahead = f"right equally often ({range_text(number)})"
        return f"Not settled between {self.first} and {self.second}: {ahead}.{more}"

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON data, flat."""
        low, high = self.difference.interval or (None, None)
        ends = {"difference": float(self.difference), "low": low, "high": high}
        parts = asdict(self) | ends
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
        self.details = _details(sample, self.numbers, self.headline)
        """What was measured, in one sentence."""
        self.notes = sample.notes()
        """Which rows some numbers cannot count, a sentence each."""
        self.confusion = metrics.confusion(sample.verdicts, sample.labels, _classes(sample))
        """Rows by people's label, columns by the judge's answer."""
        self.disagreements = costliest(sample)
        """The costliest first."""
        self.n_disagreements = len(sample.mistakes)
        """How many there are in all."""
        self.provenance: dict[str, str] = {}
        """Where the report comes from: date, versions, judge, data, command."""
        self.drift: Drift | None = None
        """What changed since an earlier report."""
        # Verdicts of other runnables may lack parts of it.
        usages = (row.verdict.get("usage") or {} for row in sample.rows)
        self.usage: Usage = add_usage({**no_usage(), **usage} for usage in usages)
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


def _dollars(sample: Sample) -> float | None:
    """Return what the rows cost if the run knew the price of every reply."""
    costs = [row.row["cost"] for row in sample.rows if "cost" in row.row]
    complete = len(costs) == len(sample.rows) and None not in costs
    return sum(costs) if complete else None


def _details(sample: Sample, numbers: Mapping[str, Number], headline: Number) -> str:
    """Return what else was counted, in one sentence."""
    count = len(sample.rows)
    lost = sum(row.answer is None and not is_abstention(row.verdict) for row in sample.rows)
    parts = [
        _agreed(sample, headline),
        _flips(numbers),
        _leaning(numbers),
        _abstained(numbers, count),
        f"{lost:,} of {count:,} not judged",
    ]
    sentence = "; ".join(filter(None, parts))
    return f"{sentence[0].upper()}{sentence[1:]}."


def _agreed(sample: Sample, headline: Number) -> str:
    if math.isnan(headline.result):
        return "how far it agrees with people is unknown, because no judged row has a label"
    if sample.by_criteria:
        return f"least with {sample.whom} by {headline.title} {value_text(headline)}"
    if sample.rated:
        return f"rank correlation with {sample.whom} {with_range(headline)}"
    return f"agrees with {sample.whom} {with_range(headline, 0)} of the time"


def _abstained(numbers: Mapping[str, Number], rows: int) -> str:
    """Say how often the judge abstained, and whether people would have judged."""
    number = numbers.get("failures.abstained.labelled")
    if number is None:
        return ""
    count, labelled = number.result.n, round(number.result * number.result.n)
    return (
        f"says of {count:,} of {rows:,} that it cannot assess them; people labelled "
        f"{labelled:,} of these"
    )


def _flips(numbers: Mapping[str, Number]) -> str:
    flips = numbers.get("bias.flips")
    if flips is None:
        return ""
    if math.isnan(flips.result):
        return f"flips unknown: {flips.result.reason}"
    other, undecided = numbers.get("bias.flips.other"), numbers.get("bias.flips.undecided")
    if other is None or undecided is None:
        return f"flips on {value_text(flips, 0)}"
    return (
        f"when the texts swap places it names the other text on {value_text(other, 0)} of rows "
        f"and is undecided on {value_text(undecided, 0)}"
    )


def _leaning(numbers: Mapping[str, Number]) -> str:
    number = numbers.get("bias.first_slot_rate")
    interval = None if number is None else number.result.interval
    if interval is None or interval.covers(0.5):
        return ""
    return f"leans to the {'first' if interval.low > 0.5 else 'second'} slot"
