"""Letting tables meet, two at a time, until the most consistent one is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

from langgraph.types import Send

from langchain_judges.asking.ask import recorded
from langchain_judges.asking.nodes import Call
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.methods.pairs import pair_of
from langchain_judges.methods.sc2.pairings import Pairing, next_round, not_asked
from langchain_judges.methods.sc2.parse import label_probability, parse_decision
from langchain_judges.methods.sc2.replies import (
    CheckedTable,
    Comparisons,
    ComparisonTable,
    DecidedBy,
    Decision,
    MatchWork,
    SC2State,
    TableMatch,
)
from langchain_judges.methods.sc2.standings import (
    champion,
    cyclic_triples,
    disputed,
    seeded,
    strongest,
)
from langchain_judges.methods.sc2.steps import SC2Steps
from langchain_judges.methods.sc2.tables import in_prompt, only_row, silent_rows
from langchain_judges.orders import naming
from langchain_judges.rows.fences import fence
from langchain_judges.verdict import Failure


class Lane(NamedTuple):
    """One search for the best: of the whole table, or of one row with `row_wise`."""

    aspect: str
    """The row; empty for the whole table."""
    seed: str
    """Of its shuffle and coins."""
    played: list[TableMatch]


class MatchSteps(SC2Steps):
    """The steps that search the best table."""

    @cached_property
    def question(self) -> Question:
        """What the comparator is asked."""
        weighed = self.options.crown == "strength"
        return self.context.question(
            "match",
            Decision,
            parse=parse_decision,
            label="{unit}",
            shares_material=self.options.samples > 2,
            logprobs=weighed,
            measure=partial(label_probability, field="more_consistent") if weighed else None,
        )

    def round(self, state: SC2State) -> Steps[Update]:
        """Draw the next matches, deciding those that need no comparator; or crown a table."""
        tables = _by_number(state)
        if not any(table["valid"] for table in tables.values()):
            return {"pending": [], "table": None, "failures": [self._fallback()]}
        checks = {check["number"]: check for check in state["checks"]}
        seed, matches = self.chance(pair_of(state)), state["bracket"]
        lanes = [
            Lane(aspect, f"{seed}:{aspect}", [m for m in matches if m["aspect"] == aspect])
            for aspect in self.lanes(state["aspects"])
        ]
        decided: list[TableMatch] = []
        pending: list[TableMatch] = []
        for lane in lanes:
            decisions, open_ = self._advance(lane, tables, checks)
            decided += decisions
            pending += open_
            lane.played.extend(decisions)
        for match in decided:
            if match["decided_by"] in {"validity", "check", "identical"}:
                yield recorded(self.question, match, {**match}, unit=match_name(match))
        if pending:
            return {"bracket": decided, "pending": pending}
        return {
            "bracket": decided,
            "pending": [],
            "table": self._best_table(lanes, tables),
            "comparisons": self._account(lanes, sorted(tables)),
        }

    def ask_each(self, state: SC2State) -> list[Send]:
        """Send the matches of this round."""
        pair, tables = pair_of(state), _by_number(state)
        works = [
            MatchWork(pair=pair, match=match, tables=[tables[n] for n in match["tables"]])
            for match in state["pending"]
        ]
        return [Send("match", work) for work in works]

    def match(self, work: MatchWork) -> Call:
        """Ask which of two tables is more consistent."""
        match, pair = work["match"], work["pair"]
        rows = [only_row(table, match["aspect"])["rows"] for table in work["tables"]]
        first, second = (in_prompt(each) for each in rows)
        variables = {
            **self.material(pair, "AB"),
            "table_fence": fence(first, second),
            "table_1": first,
            "table_2": second,
        }
        return Call(self.question, variables, match_name(match))

    def met(self, work: MatchWork, reply: Reply) -> Update:
        """Keep who won; a coin where the reply says neither."""
        match = work["match"]
        one, other = match["tables"]
        if reply.data:
            winner = one if reply.data["more_consistent"] == "1" else other
            why = " ".join(reply.data["justification"].split())[:500]
            why = naming(why, (f"{one}", f"{other}"), "table")
            won = _won(match, winner, "comparator", why)
            if self.options.crown == "strength":
                won["probability"] = reply.measured.get("probability")
            return {"bracket": [won]}
        coin = self.coin(work["pair"], "neither", match_name(match))
        why = "the comparator's reply could not be used"
        return {"bracket": [_won(match, coin.choice(sorted(match["tables"])), "coin", why)]}

    def _advance(
        self,
        lane: Lane,
        tables: Mapping[int, ComparisonTable],
        checks: Mapping[int, CheckedTable],
    ) -> tuple[list[TableMatch], list[TableMatch]]:
        """Return matches that decide themselves, and the next that need the comparator."""
        options, decided = self.options, disputed(lane.played, lane.seed)
        while True:
            played = [*lane.played, *decided]
            number = max((match["round"] for match in played), default=0) + 1
            pairings = next_round(
                options.inference, sorted(tables), played, lane.seed, adaptive=options.adaptive
            )
            pending: list[TableMatch] = []
            for pairing in pairings:
                match = _new_match(pairing, number, lane.aspect)
                decision = self._decision(match, tables, checks, lane.seed)
                if not decision:
                    pending.append(match)
                elif not any(_same(decision, other) for other in decided):
                    decided.append(decision)
            if pending or not pairings:
                return decided, pending

    def _decision(
        self,
        match: TableMatch,
        tables: Mapping[int, ComparisonTable],
        checks: Mapping[int, CheckedTable],
        seed: str,
    ) -> TableMatch | None:
        """Decide a match without the comparator, if that can be done."""
        decision: TableMatch = {**match, "asked": False}
        if len(match["tables"]) == 1:
            return _won(decision, match["tables"][0], "bye", "bye")
        valid = _valid(match, tables)
        if len(valid) == 1:
            why = f"the other {'row says nothing' if match['aspect'] else 'table is not valid'}"
            return _won(decision, valid[0], "validity", why)
        if not valid:
            winner = seeded(seed, "invalid", match_name(match)).choice(sorted(match["tables"]))
            why = "neither row says a thing" if match["aspect"] else "neither is valid"
            return _won(decision, winner, "coin", why)
        one, other = (only_row(tables[n], match["aspect"])["rows"] for n in match["tables"])
        if one == other:
            # The first one: where both orders are drawn, each wins once.
            return _won(decision, match["tables"][0], "identical", "the tables are identical")
        check = self.options.check
        if check is None or not check.prefilter:
            return None
        clean = [n for n in match["tables"] if checks[n]["clean"]]
        if len(clean) != 1:
            return None
        return _won(decision, clean[0], "check", "only this table passed the table check")

    def _best_table(
        self, lanes: Sequence[Lane], tables: Mapping[int, ComparisonTable]
    ) -> ComparisonTable:
        """Return the winner, or with `row_wise` the table of the rows that won."""
        winners = [tables[self._winner(lane, sorted(tables))] for lane in lanes]
        if not self.options.row_wise:
            return winners[0]
        rows = [winner["rows"][i] for i, winner in enumerate(winners)]
        return {"number": 0, "rows": rows, "valid": True}

    def _winner(self, lane: Lane, entrants: Sequence[int]) -> int:
        if self.options.crown == "strength":
            return strongest(entrants, lane.played, lane.seed)
        return champion(self.options.inference, entrants, lane.played, lane.seed)

    def _account(self, lanes: Sequence[Lane], entrants: Sequence[int]) -> Comparisons:
        """Return what the search took."""
        mode = self.options.inference
        played = [match for lane in lanes for match in lane.played]
        open_matches = sum(
            len(not_asked(mode, entrants, lane.played, lane.seed)) for lane in lanes
        )
        # Two legs are one entry where neither had to be asked.
        legs = 2 if mode == "double_round" else 1
        whole = not self.options.row_wise and not open_matches
        return {
            "mode": mode,
            "spent": sum(match["asked"] for match in played),
            "saved": sum(match["decided_by"] == "check" for match in played) * legs,
            "rounds": max((match["round"] for match in played), default=0),
            "cyclic_triples": cyclic_triples(mode, entrants, played) if whole else None,
            "not_asked": open_matches,
        }

    def _fallback(self) -> Failure:
        hidden = self.options.table_only
        instead = "nothing is left to prefer by" if hidden else "compared directly"
        detail = f"no table could be used: {instead}"
        return Failure(step="table", unit="every table", reason="missing", detail=detail)


def _by_number(state: SC2State) -> dict[int, ComparisonTable]:
    return {table["number"]: table for table in state["tables"]}


def match_name(match: TableMatch) -> str:
    """Return what a match is called: `match 1.2: table 3 vs table 5`, first shown first."""
    tables = " vs ".join(f"table {number}" for number in match["tables"])
    row = f" ({match['aspect']})" if match["aspect"] else ""
    return f"match {match['round']}.{match['match']}: {tables}{row}"


def _valid(match: TableMatch, tables: Mapping[int, ComparisonTable]) -> list[int]:
    """Return the tables of a match that can win."""
    single_rows = {n: only_row(tables[n], match["aspect"]) for n in match["tables"]}
    valid = [n for n, table in single_rows.items() if table["valid"]]
    if match["aspect"]:
        # A row that says nothing overlaps with nothing: a comparator may find it best.
        valid = [n for n in valid if not silent_rows(single_rows[n]["rows"])]
    return valid


def _new_match(pairing: Pairing, number: int, lane: str) -> TableMatch:
    return {
        "round": number,
        "match": pairing.match,
        "tables": list(pairing.tables),
        "winner": None,
        "decided_by": "comparator",
        "why": "",
        "asked": True,
        "aspect": lane,
    }


def _won(match: TableMatch, winner: int, by: DecidedBy, why: str) -> TableMatch:
    return {**match, "winner": winner, "decided_by": by, "why": why}


def _same(one: TableMatch, other: TableMatch) -> bool:
    """Say whether two entries are one match, as the two orders of it are."""
    return (one["round"], one["match"]) == (other["round"], other["match"])
