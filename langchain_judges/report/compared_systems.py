"""Systems compared: the pairs that decided, a Markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from langchain_judges.metrics import Result
from langchain_judges.orders import naming_sides
from langchain_judges.report.overview import from_template
from langchain_judges.runs.comparison import Ranked, Ranking
from langchain_judges.runs.summary import Summary, conclusion, counted, number_of

# Pairs that are shown for each system.
MOST_SHOWN = 3


@dataclass
class Duel:
    """Two systems compared on the same inputs.

    Attributes:
        rows: Results of pairs that one system won.
    """

    names: Sequence[str]
    summary: Summary = field(default_factory=Summary)
    rows: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep what is shown of a result."""
        verdict = row["verdict"]
        if verdict.get("preference") in ("A", "B"):
            kept = ("preference", "score", "rationale")
            name = row.get("id") or row["index"] + 1
            self.rows.append({"id": name, **{n: verdict.get(n) for n in kept}})

    def sentences(self) -> list[str]:
        """Sentence that says who is better, by how much, and where they differ."""
        return conclusion(self.summary, self.names)

    def deciding(self) -> dict[str, list[Mapping[str, Any]]]:
        """By system the pairs that it won most clearly."""
        clearest = sorted(self.rows, key=lambda row: -abs((row["score"] or 0.5) - 0.5))
        won = {side: [row for row in clearest if row["preference"] == side] for side in "AB"}
        return {name: won[side][:MOST_SHOWN] for name, side in zip(self.names, "AB", strict=True)}

    def bars(self) -> list[tuple[str, Result, int]]:
        """The share of pairs that the second system won, and its losses: in all, by category."""
        names = {category for answer, _, category, _ in self.summary.answers if answer != "tie"}
        parts = sorted(filter(None, names)) if len(names) > 1 else []
        shares = [
            (part or "all", self.summary.share("B", category=part)) for part in (None, *parts)
        ]
        return [(name, share, share.n - number_of(share)) for name, share in shares if share.n]

    @property
    def counts(self) -> str:
        """The ties, the flips and the pairs that were not judged."""
        ties, both = self.summary.preferences["tie"], self.summary.both_orders
        flips = f"flips on {self.summary.flips:,} of {both:,}" if both else "flips not known"
        return f"{counted(ties, 'tie')}, {flips}, {self.summary.not_judged.total():,} not judged."

    def reason(self, row: Mapping[str, Any]) -> str:
        """Why a pair was decided, with the systems' names in place of A and B."""
        names = dict(zip("AB", self.names, strict=True))
        return naming_sides(row["rationale"] or "no reason given", names)[:300]

    def markdown(self) -> str:
        """A summary for a pull request."""
        return from_template("duel.md", duel=self)


@dataclass
class RankedSystems:
    """Several systems ranked."""

    ranking: Ranking

    def sentences(self) -> list[str]:
        """The neighbours whose order is settled, and what it took."""
        told, cost = counted(self.ranking["calls"], "call"), self.ranking["cost"]
        end = "; the limit is reached" if self.ranking["over_budget"] else ""
        return [
            *(
                f"{better['system']} before {worse['system']}: {_standing(better)}."
                for better, worse in pairwise(self.ranking["systems"])
            ),
            f"It took {told}{'' if cost is None else f' and ${cost:,.4f}'}{end}.",
        ]

    def markdown(self) -> str:
        """A summary for a pull request."""
        return from_template("ranking.md", ranked=self)


def _standing(better: Ranked) -> str:
    """Whether a system's lead over the next is settled, and what would settle it."""
    if better["parted"]:
        return "settled"
    if better["more"] is None:
        return "not settled, and too even for more comparisons to settle it soon"
    more = counted(better["more"], "more comparison")
    return f"not settled; about {more} of the two would settle a lead of this size"
