"""The answer for each use of a judge, yes, no or not yet, and the number behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy

from langchain_judges.lazy import packaged
from langchain_judges.metrics import Result, intervals

# A share in [0, 1], a difference of shares, or a number in units of its own.
NumberUnit = Literal["share", "points", "number"]


@dataclass(frozen=True)
class Number:
    """One number of a report.

    Attributes:
        key: Its name, such as `agreement.label.wrong`; the first part is the section.
        title: Its name for people.
        result: The number, with its interval.
        unit: `share` in [0, 1], `points` for a difference of shares in [-1, 1], or `number`.
        note: What it counts, or what to compare it with.
    """

    key: str
    title: str
    result: Result
    unit: NumberUnit = "share"
    note: str = ""

    @property
    def section(self) -> str:
        """Its section."""
        return self.key.partition(".")[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, flat."""
        result = self.result.to_dict()
        low, high = result["interval"] or (None, None)
        return {
            "section": self.section,
            "key": self.key,
            "title": self.title,
            "value": result["value"],
            "low": low,
            "high": high,
            "n": result["n"],
            "n_failed": sum(result["n_failed"].values()),
            "unit": self.unit,
            "reason": result["reason"],
            "no_interval": result["no_interval"],
        }


NO_BREAK = "\u00a0"


def percent(value: float, digits: int = 0) -> str:
    """A share as a percentage without its sign."""
    return rounded(100 * value, digits)


def rounded(value: float, digits: int) -> str:
    """A number with halves rounded away from zero, as people do, and a proper minus sign."""
    step = 10.0**digits
    size = math.floor(abs(value) * step + 0.5 + 1e-9) / step
    return f"{'−' if value < 0 and size else ''}{size:.{digits}f}"


def value_text(number: Number, digits: int = 1) -> str:
    """A number in its unit."""
    value = number.result
    if math.isnan(value):
        return "unknown"
    if number.unit == "share":
        return f"{percent(value, digits)}{NO_BREAK}%"
    if number.unit == "points":
        return f"{'+' if value >= 0 else ''}{rounded(100 * value, digits)}{NO_BREAK}points"
    return rounded(value, 2)


def range_text(number: Number, digits: int = 1) -> str:
    """The ends of a number's interval, or nothing."""
    interval = number.result.interval
    if interval is None or math.isnan(interval.low):
        return ""
    scale, places = (1.0, 2) if number.unit == "number" else (100.0, digits)
    low, high = (rounded(scale * end, places) for end in interval)
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


# `not yet`: too few labels to say; `not measured`: the rows lack what it takes.
Word = Literal["yes", "no", "not yet", "not measured"]
Use = Literal["averages", "single", "person", "ordering"]

WORDS: dict[str, Any] = packaged(__package__, "words.yaml")
TITLES: dict[Use, str] = WORDS["uses"]
REFUSED: dict[str, str] = WORDS["refused"]


@dataclass(frozen=True)
class TrustPolicy:
    """Limits for each of the four uses, as shares between 0 and 1.

    Attributes:
        margin: How far the judge's average may be from people's; of ratings, of their range.
        max_wrong: How many single verdicts may be wrong: about as often as two people differ.
        below_people: How far its agreement with a person may be below another person's.
        settled: Of the pairs of systems next to each other in people's ranking, how many the
            judge must put in the same order beyond chance.
        in_order: Of two texts that people rate differently, how often it must rate the same
            one higher.

    Raises:
        OptionError: A limit is not between 0 and 1.
    """

    margin: float = 0.05
    max_wrong: float = 0.2
    below_people: float = 0.05
    settled: float = 0.8
    in_order: float = 0.75

    def __post_init__(self) -> None:
        intervals.check_shares(**asdict(self))

    def limits(self, ranges: Mapping[str, str], *, systems: bool) -> dict[Use, str]:
        """Limits of each use in words.

        Args:
            ranges: By criterion the range of ratings in words, empty where nothing is rated; of
                a judge of one thing under no name.
            systems: Whether systems are put in order, and not texts.
        """
        shares = {name: percent_text(share) for name, share in asdict(self).items()}
        sign = f"{NO_BREAK}%"
        shares["below_people"] = shares["below_people"].replace(sign, f"{NO_BREAK}points")
        points = shares["margin"].replace(sign, " percentage points")
        rated = f"{shares['margin']} of the ratings' range ({{}})"
        near = {name: rated.format(own) if own else points for name, own in ranges.items()}
        several = (f"{text} for {name}" for name, text in near.items())
        shares["margin"] = ", ".join(several if len({*near.values()}) > 1 else {*near.values()})
        words = WORDS["limits"] | (WORDS["limits_of_systems"] if systems else {})
        return {use: text.format(**shares) for use, text in words.items()}


POLICY = TrustPolicy()
# With fewer rows of a label its share of right answers is hardly known.
LEAST_OF_A_LABEL = 8
# More labels than these settle less than a better judge would.
MOST_TO_LABEL = 2_000


@dataclass(frozen=True)
class UseAnswer:
    """Whether a judge may be used for one thing.

    Attributes:
        reason: What was found, and the limit.
        number: The number that decides, with its interval.
        limit: The values between which the number must lie.
        labels: How many more labels would settle it, if other rows are like these, or with
            `missing` how many are needed before anything is known; None: too many to ask for.
        missing: What it takes to settle it, where labels alone do not.
        basis: How many rows it rests on, and why others are left out.
        brief: The number in a few words, for a table.
        parts: The same number by system or category, furthest from 0 first; or by the label
            that the judge gives.
        leaning: The answer that more labels are most likely to give.
    """

    use: Use
    word: Word
    reason: str
    number: Number | None = None
    limit: tuple[float, float] = (-math.inf, math.inf)
    labels: int | None = None
    missing: str = ""
    basis: str = ""
    brief: str = ""
    parts: tuple[Number, ...] = ()
    leaning: Word = "not yet"

    @property
    def title(self) -> str:
        """Name of the use."""
        return TITLES[self.use]

    @property
    def hopeful(self) -> bool:
        """Whether more labels may lead to a yes, as far as can be seen."""
        return bool(self.missing or (self.labels and self.leaning == "yes"))

    @property
    def more(self) -> str:
        """The labels that would settle it, or what else is needed, in a sentence."""
        if self.missing:
            return f"{self.missing}."
        return labels_text(self.labels, self.leaning) if self.word == "not yet" else ""

    @property
    def text(self) -> str:
        """The answer in sentences."""
        rows = self.basis and f"Counted: {self.basis}"
        parts = [f"{self.word.capitalize()}: {self.reason}", rows]
        return " ".join([f"{part}." for part in parts if part] + [self.more]).rstrip()

    @property
    def sentence(self) -> str:
        """The use, and the answer."""
        return f"{self.title}. {self.text}"

    def word_of(self, part: Number) -> Word:
        """The answer for a part alone, as the page asks it."""
        return decided(part.result, self.limit)

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data."""
        return {
            "use": self.use,
            "answer": self.word,
            "text": self.text,
            "labels_needed": self.labels,
            "missing": self.missing,
            "rows": self.basis,
            "limit": [end if math.isfinite(end) else None for end in self.limit],
            "number": None if self.number is None else self.number.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
        }


def decided(result: Result, limit: tuple[float, float]) -> Word:
    """Yes or no where the whole interval lies on one side of the limit."""
    if math.isnan(result) or result.interval is None:
        return "not yet"
    low, high = result.interval
    if limit[0] <= low and high <= limit[1]:
        return "yes"
    return "no" if high < limit[0] or low > limit[1] else "not yet"


def leaning_of(result: Result, limit: tuple[float, float]) -> Word:
    """Yes or no from a value alone, without its interval."""
    return "yes" if limit[0] <= result <= limit[1] else "no"


def labels_to_settle(result: Result, limit: tuple[float, float], several: int = 1) -> int | None:
    """Number of further labels likely to bring the interval to one side of the limit.

    The value is expected to move within its uncertainty, and the interval to narrow with the
    square root of the number of labels. They must suffice in four cases of five; of a share in
    nine of ten with 50 labels or fewer so far, where the prediction comes true less often. The
    items that are added to a difference are not seen, and weigh ever less beside labels: a
    quarter of them stands for what may still turn up.

    Args:
        result: The number so far, with its interval.
        limit: The values between which, or outside of which, it is to lie.
        several: How many numbers are to be settled at once.

    Returns:
        At most 2,000; None where that is not enough, or nothing can be said.

    Source: predictive power, Spiegelhalter, Freedman & Blackburn 1986.
    """
    if math.isnan(result) or result.interval is None or result in limit:
        return None
    low, high = result.interval
    error, is_all_seen = (high - low) / (2 * 1.96), not isinstance(result, intervals.Difference)
    seen = 1.0 if is_all_seen else 0.25 + 0.75 * min(1.0, ((result.se or 0.0) / error) ** 2)
    power = 1 - (0.2 - is_all_seen * min(0.1, 5 / result.n)) / several
    more = np.unique(np.ceil(np.geomspace(1, MOST_TO_LABEL, 400)))
    kept = result.n / (result.n + more)
    move = error * np.sqrt(seen * (1 - kept)) + 1e-12
    # The value may end this far up and down for its interval to lie within, or beyond.
    narrow = np.sqrt(seen * kept + (1 - seen) * kept**2)
    up, down = ((end - result) * narrow for end in (high, low))
    below, above = (end - result for end in limit)
    inside = scipy.special.ndtr((above - up) / move) - scipy.special.ndtr((below - down) / move)
    beyond = scipy.special.ndtr((below - up) / move) + scipy.special.ndtr((down - above) / move)
    enough = more[np.maximum(inside, 0.0) + beyond >= power]
    return rounded_up(float(enough[0])) if len(enough) else None


def rounded_up(count: float) -> int:
    """A count, rounded up to two significant digits."""
    digits = 10 ** (max(2, len(str(int(count)))) - 2)
    return int(math.ceil(count / digits) * digits)


def by_number(  # noqa: PLR0913 - the parts of an answer
    use: Use,
    number: Number,
    limit: tuple[float, float],
    reason: str,
    basis: str,
    brief: str,
    *,
    word: Word | None = None,
    parts: tuple[Number, ...] = (),
) -> UseAnswer:
    """The answer that a number gives, and where it is open how many labels settle it.

    Args:
        use: What it answers.
        number: The number, with its interval.
        limit: Between which values it has to lie.
        reason: As in `UseAnswer`, also below.
        basis: How many of the rows.
        brief: For a table.
        word: The answer, if parts of the number decide.
        parts: By system or category.
    """
    word = word or decided(number.result, limit)
    labels, missing = None, ""
    if word == "not yet":
        labels = labels_to_settle(number.result, limit)
        missing = "" if number.result.interval else "More labels, before anything can be said"
    leaning = leaning_of(number.result, limit)
    own: Any = {"labels": labels, "missing": missing, "basis": basis, "brief": brief}
    return UseAnswer(use, word, reason, number, limit, parts=parts, leaning=leaning, **own)


def labels_text(labels: int | None, leaning: str = "") -> str:
    """Sentence about how many labels would settle something; None: too many to ask for."""
    if leaning == "no":
        return "As things stand, more labels would lead to a no."
    if labels:
        seen = f", as things stand with a {leaning}" if leaning else ""
        return f"About {labels:,} more labels are likely to settle it{seen}."
    return f"Even {MOST_TO_LABEL:,} more labels may not settle it."


def percent_text(value: float) -> str:
    """A share as people read it: 76 %, 76.3 %."""
    return f"{percent(value, 1).removesuffix('.0')}{NO_BREAK}%"


def with_range(number: Number) -> str:
    """A number with its range, or why it has none."""
    value = value_text(number).replace(f".0{NO_BREAK}%", f"{NO_BREAK}%")
    span = range_text(number) or number.result.no_interval
    return f"{value} ({span})" if span else value


def two_texts(one: float, other: float, unit: NumberUnit) -> tuple[str, str]:
    """Two means, with digits that make their difference the one that is printed."""
    scale, places = (1.0, 2) if unit == "number" else (100.0, 1)
    for digits in range(places, places + 3):
        texts = [rounded(scale * value, digits) for value in (one, other)]
        first, second = (float(text.replace("−", "-")) for text in texts)
        if rounded(first - second, places) == rounded(scale * (one - other), places):
            break
    if unit != "number":
        whole = all(text.endswith(".0") for text in texts)
        texts = [f"{text.removesuffix('.0' * whole)}{NO_BREAK}%" for text in texts]
    return texts[0], texts[1]


def plus(number: Number) -> str:
    """The sign of a positive difference that has none in its unit."""
    return "+" if number.unit == "number" and number.result > 0 else ""


def difference_text(number: Number, beside: str = "") -> str:
    """A difference with its range; where nothing is found, how far it could be off.

    Args:
        number: The difference.
        beside: From whom, where it is not said before.
    """
    interval = number.result.interval
    if interval is None or value_text(replace(number, unit="points")).strip("+−")[:3] != "0.0":
        return f"{plus(number)}{with_range(number)}{beside and f' compared with {beside}'}"
    far = replace(number, result=Result(max(-interval.low, interval.high), n=0))
    return f"no difference found, but it could be {value_text(far, 0).lstrip('+')} either way"
