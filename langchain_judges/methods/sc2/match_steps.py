"""Letting tables meet, two at a time, until the most consistent one is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial

from langgraph.types import Send

from langchain_judges.asking.ask import recorded
from langchain_judges.asking.nodes import Call
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.methods.pairs import pair_of
from langchain_judges.methods.sc2.inference import (
    DecidedBy,
    Pairing,
    TableMatch,
    champion,
    cyclic_triples,
    disputed,
    next_round,
    not_asked,
    seeded,
    strongest,
)
from langchain_judges.methods.sc2.parse import label_probability, parse_decision
from langchain_judges.methods.sc2.replies import (
    CheckedTable,
    Comparisons,
    ComparisonTable,
    Decision,
    MatchWork,
    SC2State,
)
from langchain_judges.methods.sc2.steps import SC2Steps
from langchain_judges.methods.sc2.tables import in_prompt, only_row, silent_rows
from langchain_judges.orders import naming
from langchain_judges.rows.texts import fence_token
from langchain_judges.verdict import Failure


class MatchSteps(SC2Steps):
    """The steps that search the best table."""

    @cached_property
    def question(self) -> Question:
        """What the comparator is asked."""
        weighed = self.own.crown == "strength"
        return self.setup.question(
            "match",
            Decision,
            parse=parse_decision,
            label="{unit}",
            shares_material=self.own.samples > 2,
            logprobs=weighed,
            measure=partial(label_probability, field="more_consistent") if weighed else None,
        )

    def round(self, state: SC2State) -> Steps[Update]:
        """Draw the next matches, deciding those that need no comparator; or crown a table."""
        tables = {table["number"]: table for table in state["tables"]}
        if not any(table["valid"] for table in tables.values()):
            return {"pending": [], "table": None, "failures": [self._fallback()]}
        seed = self.chance(pair_of(state))
        decided: list[TableMatch] = []
        pending: list[TableMatch] = []
        for lane in self.lanes(state["aspects"]):
            ended, open_ = self._advance(lane, state, tables, f"{seed}:{lane}")
            decided += ended
            pending += open_
        for match in decided:
            if match["decided_by"] in {"validity", "check", "identical"}:
                yield recorded(self.question, match, {**match}, unit=match_name(match))
        if pending:
            return {"bracket": decided, "pending": pending}
        played = [*state["bracket"], *decided]
        return {
            "bracket": decided,
            "pending": [],
            "table": self._crowned(state["aspects"], tables, played, seed),
            "comparisons": self._counted(state["aspects"], tables, played, seed),
        }

    def ask_each(self, state: SC2State) -> list[Send]:
        """Send the matches of this round."""
        tables = {table["number"]: table for table in state["tables"]}
        return [
            Send(
                "match",
                MatchWork(
                    pair=pair_of(state),
                    match=match,
                    tables=[tables[n] for n in match["tables"]],
                ),
            )
            for match in state["pending"]
        ]

    def match(self, work: MatchWork) -> Call:
        """Ask which of two tables is more consistent."""
        match, pair = work["match"], work["pair"]
        rows = [only_row(table, match["aspect"])["rows"] for table in work["tables"]]
        first, second = (in_prompt(each) for each in rows)
        variables = {
            **self.material(pair, "AB"),
            "table_fence": fence_token([self.texts_token(pair), first, second]),
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
            if self.own.crown == "strength":
                won["probability"] = reply.measured.get("probability")
            return {"bracket": [won]}
        coin = seeded(self.chance(work["pair"]), "neither", match_name(match))
        why = "the comparator's reply could not be used"
        return {"bracket": [_won(match, coin.choice(sorted(match["tables"])), "coin", why)]}

    def _advance(
        self, lane: str, state: SC2State, tables: Mapping[int, ComparisonTable], seed: str
    ) -> tuple[list[TableMatch], list[TableMatch]]:
        """Return matches that decide themselves, and the next that need the comparator."""
        played = [match for match in state["bracket"] if match["aspect"] == lane]
        decided = disputed(played, seed)
        checks = {check["number"]: check for check in state["checks"]}
        while True:
            done = [*played, *decided]
            number = max((match["round"] for match in done), default=0) + 1
            pairings = next_round(
                self.own.inference, sorted(tables), done, seed, adaptive=self.own.adaptive
            )
            pending: list[TableMatch] = []
            for pairing in pairings:
                match = _drawn_match(pairing, number, lane)
                free = self._free(match, tables, checks, seed)
                if not free:
                    pending.append(match)
                elif not any(_same(free, other) for other in decided):
                    decided.append(free)
            if pending or not pairings:
                return decided, pending

    def _free(
        self,
        match: TableMatch,
        tables: Mapping[int, ComparisonTable],
        checks: Mapping[int, CheckedTable],
        seed: str,
    ) -> TableMatch | None:
        """Decide a match without the comparator, if that can be done."""
        free: TableMatch = {**match, "asked": False}
        if len(match["tables"]) == 1:
            return _won(free, match["tables"][0], "bye", "bye")
        valid = _valid(match, tables)
        if len(valid) == 1:
            why = f"the other {'row says nothing' if match['aspect'] else 'table is not valid'}"
            return _won(free, valid[0], "validity", why)
        if not valid:
            winner = seeded(seed, "invalid", match_name(match)).choice(sorted(match["tables"]))
            why = "neither row says a thing" if match["aspect"] else "neither is valid"
            return _won(free, winner, "coin", why)
        one, other = (only_row(tables[n], match["aspect"])["rows"] for n in match["tables"])
        if one == other:
            # The first one: where both orders are drawn, each wins once.
            return _won(free, match["tables"][0], "identical", "the tables are identical")
        check = self.own.check
        if check is None or not check.prefilter:
            return None
        clean = [n for n in match["tables"] if checks[n]["clean"]]
        if len(clean) != 1:
            return None
        return _won(free, clean[0], "check", "only this table passed the table check")

    def _crowned(
        self,
        aspects: Sequence[str],
        tables: Mapping[int, ComparisonTable],
        played: Sequence[TableMatch],
        seed: str,
    ) -> ComparisonTable:
        """Return the winner, or with `row_wise` the table of the rows that won."""
        by_wins = partial(champion, self.own.inference)
        crown = strongest if self.own.crown == "strength" else by_wins
        winners = {
            lane: crown(
                sorted(tables),
                [match for match in played if match["aspect"] == lane],
                f"{seed}:{lane}",
            )
            or 0
            for lane in self.lanes(aspects)
        }
        if not self.own.row_wise:
            return tables[winners[""]]
        rows = [tables[winners[a]]["rows"][i] for i, a in enumerate(aspects)]
        return {"number": 0, "rows": rows, "valid": True}

    def _counted(
        self,
        aspects: Sequence[str],
        tables: Mapping[int, ComparisonTable],
        played: Sequence[TableMatch],
        seed: str,
    ) -> Comparisons:
        """Return what the search took."""
        mode, entrants = self.own.inference, sorted(tables)
        open_matches = 0
        for lane in self.lanes(aspects):
            own = [match for match in played if match["aspect"] == lane]
            open_matches += len(not_asked(mode, entrants, own, f"{seed}:{lane}"))
        # Two legs are one entry where neither had to be asked.
        legs = 2 if mode == "double_round" else 1
        whole = not self.own.row_wise and not open_matches
        circles = cyclic_triples(mode, entrants, played) if whole else None
        return {
            "mode": mode,
            "spent": sum(match["asked"] for match in played),
            "saved": sum(match["decided_by"] == "check" for match in played) * legs,
            "rounds": max((match["round"] for match in played), default=0),
            "cyclic_triples": circles,
            "not_asked": open_matches,
        }

    def _fallback(self) -> Failure:
        hidden = self.own.table_only
        instead = "nothing is left to prefer by" if hidden else "compared directly"
        return {
            "step": "table",
            "unit": "every table",
            "reason": "missing",
            "detail": f"no table could be used: {instead}",
        }


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


def _drawn_match(pairing: Pairing, number: int, lane: str) -> TableMatch:
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
