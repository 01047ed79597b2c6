"""SC² judging a pair: aspects → tables → knockout → preference (Yan et al. 2023, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.asking.ask import ask
from langchain_judges.asking.effects import Update, emit, emit_each, gather
from langchain_judges.asking.question import Account, Reply, sample_seed
from langchain_judges.asking.reading import Problem
from langchain_judges.methods import declaration, tasks
from langchain_judges.methods.pairs import PairSteps, ShownPair, pair_of, seeded
from langchain_judges.methods.sc2 import tally
from langchain_judges.methods.sc2.options import SC2, WORDS
from langchain_judges.options import factory
from langchain_judges.orders import ORDER_NAMES, Order, naming, naming_ab, preferred_slot
from langchain_judges.rows.fences import digest, fence
from langchain_judges.rows.texts import readable, transcript
from langchain_judges.verdict import Pair


class SC2Steps(PairSteps):
    """The steps of the method, in the order of the graph."""

    options: SC2
    state = tally.SC2State

    def phases(self) -> Sequence[declaration.Phase]:
        """Aspects, tables, tournament, preference."""
        return [self.aspects, self.tables, self.tournament, self.preference]

    async def aspects(self, state: tally.SC2State, account: Account) -> Update:
        """Settle the aspects: the caller's, or those that most online samples name."""
        numbers = range(1, self.options.proposals + 1)
        steps = [self._proposed(pair_of(state), n, account.part()) for n in numbers]
        proposals = [each for each in await gather(steps) if each]
        named = tally.by_frequency([proposal["aspects"] for proposal in proposals])
        aspects = list(self.options.phrases) or named[: self.options.n_aspects]
        emit_each("aspect", "aspects", aspects)
        return {"proposals": proposals, "aspects": aspects}

    async def _proposed(
        self, pair: ShownPair, number: int, account: Account
    ) -> tally.AspectProposal | None:
        """The aspects that one sample names."""
        options = self.options
        variables = {
            **self._material(pair, "AB"),
            "question": options.aim["question"],
            "n_aspects": options.n_aspects,
        }
        shape, several = tally.aspects_shape(options.n_aspects), options.proposals > 1
        question = self.context.question("aspects", shape, sampled=True, shares_material=several)
        unit = f"sample {number}" if several else ""
        seed = sample_seed(options.seed, number)
        reply = await ask(question, variables, account, unit=unit, seed=seed)
        if not reply.data:
            return None
        if aspects := tally.distinct_phrases(reply.data["aspects"], options.n_aspects):
            proposal = tally.AspectProposal(sample=number, aspects=aspects)
            emit("proposal", "aspects", proposal)
            return proposal
        blank = Problem("empty", "the reply names no aspect")
        account.fail([blank.failure("aspects", f"sample {number}")])
        return None

    async def tables(self, state: tally.SC2State, account: Account) -> Update:
        """Sample the tables; without aspects there is none."""
        pair, aspects = pair_of(state), state["aspects"]
        numbers = list(range(1, self.options.samples + 1)) if aspects else []
        if self.options.inference == "random" and numbers:
            numbers = [seeded(self._chance(pair), "random").choice(numbers)]
        steps = [self._table(pair, aspects, number, account.part()) for number in numbers]
        return {"tables": await gather(steps)}

    async def _table(
        self, pair: ShownPair, aspects: Sequence[str], number: int, account: Account
    ) -> tally.ComparisonTable:
        """One table: a row for each aspect, of what is shared and what is not."""
        whole, part = tally.table_shapes(len(aspects), self.context.adapters["table"].text_limit)
        variables = {
            **self._material(pair, "AB"),
            "aspects": "\n".join(f"{i}. {name}" for i, name in enumerate(aspects, 1)),
        }
        question = self.context.question(
            "table",
            whole,
            partial=part,
            label="{unit}",
            sampled=True,
            shares_material=self.options.samples > 1,
        )
        unit, seed = f"table {number}", sample_seed(self.options.seed, number)
        reply = await ask(question, variables, account, unit=unit, seed=seed)
        table = _read_table(reply, aspects, number, account)
        emit("table", "table", table)
        return table

    async def tournament(self, state: tally.SC2State, account: Account) -> Update:
        """Let the tables meet, round by round, until one is left; invalid ones take no part."""
        tables = {table["number"]: table for table in state["tables"] if table["valid"]}
        if not tables:
            problem = Problem("missing", "no table could be used: compared directly")
            account.fail([problem.failure("table", "every table")])
            return {"table": None}
        pair, mode = pair_of(state), self.options.inference
        seed = f"{self._chance(pair)}:"
        contenders = tally.seeded_order(tables, seed)
        bracket: list[tally.TableMatch] = []
        number = 0
        while len(contenders) > 1:
            number += 1
            matches = [
                self._match(pair, (number, n), [tables[i] for i in each], account.part())
                for n, each in enumerate(tally.meetings(mode, contenders, number, seed), 1)
            ]
            played = await gather(matches)
            bracket += played
            contenders = tally.survivors(mode, contenders, played)
        return {"bracket": bracket, "table": tables[contenders[0]]}

    async def _match(
        self,
        pair: ShownPair,
        place: tuple[int, int],
        tables: Sequence[tally.ComparisonTable],
        account: Account,
    ) -> tally.TableMatch:
        """A match, won by the more consistent table; by a coin where the reply names neither.

        Args:
            pair: The pair.
            place: The number of the round, and of the match in it.
            tables: Those that meet, in the order they are shown; one alone has a bye.
            account: Of the match.
        """
        numbers = [table["number"] for table in tables]
        match: tally.TableMatch = {
            "round": place[0],
            "match": place[1],
            "tables": numbers,
            # Where both orders of identical tables are drawn, each wins once.
            "winner": numbers[0],
            "decided_by": "bye",
            "why": "bye",
            "asked": False,
        }
        if len(tables) > 1 and tables[0]["rows"] == tables[1]["rows"]:
            match |= {"decided_by": "identical", "why": "the tables are identical"}
        elif len(tables) > 1:
            winner, by, why = await self._more_consistent(pair, place, tables, account)
            match |= {"winner": winner, "decided_by": by, "why": why, "asked": True}
        emit("match", "match", match)
        return match

    async def _more_consistent(
        self,
        pair: ShownPair,
        place: tuple[int, int],
        tables: Sequence[tally.ComparisonTable],
        account: Account,
    ) -> tuple[int, tally.DecidedBy, str]:
        """The winner that the comparator names or a coin decides, and why."""
        first, second = (tally.in_prompt(table["rows"]) for table in tables)
        one, other = (table["number"] for table in tables)
        variables = {
            **self._material(pair, "AB"),
            "table_fence_1": fence(first),
            "table_fence_2": fence(second),
            "table_1": first,
            "table_2": second,
        }
        name = f"match {place[0]}.{place[1]}: table {one} vs table {other}"
        shape = tally.Decision if self.options.wording == "own" else tally.EvenDecision
        question = self.context.question("match", shape, parse=tally.DECISION.parse, label="{unit}")
        reply = await ask(question, variables, account, unit=name)
        said = reply.data["more_consistent"] if reply.data else None
        if not reply.data or said == "tie":
            coin = seeded(self._chance(pair), "neither", name)
            why = "equally consistent" if said else "the comparator's reply could not be used"
            return coin.choice(sorted([one, other])), "coin", why
        why = " ".join(reply.data["justification"].split())[:500]
        why = naming(why, {"1": f"{one}", "2": f"{other}"}, "table")
        return one if said == "1" else other, "comparator", why

    async def preference(self, state: tally.SC2State, account: Account) -> Update:
        """Ask in every order which text is preferred, and combine the orders."""
        options, pair = self.options, pair_of(state)
        table = state["table"]
        steps = [self._preferred(pair, table, o, account.part()) for o in options.order_list]
        choices = [each for each in await gather(steps) if each]
        mode, bracket = options.inference, state["bracket"]
        how = tally.search_sentence(table, options.samples, mode, bracket)
        return {"choices": choices, "verdict": tally.decide(options, choices, account, how)}

    async def _preferred(
        self, pair: ShownPair, table: tally.ComparisonTable | None, order: Order, account: Account
    ) -> tally.PreferenceReply | None:
        """The text that one reply prefers, shown the table where there is one."""
        rows = tally.in_prompt(table["rows"], order) if table else ""
        note = WORDS["table_notes"][self.options.wording]
        if order == "BA" and table and tally.may_number(table["rows"]):
            note += WORDS["turned"]
        shown = WORDS["table_material"].format(table_fence=fence(rows), table=rows, note=note)
        variables = {
            **self._material(pair, order, prefers=True),
            "table": shown if rows else "",
            "examples": self._worked(bool(rows)),
            **self.options.aim,
        }
        unit = ORDER_NAMES[order] if len(self.options.order_list) > 1 else ""
        question = self.context.question(
            "preference",
            tally.Preferred,
            parse=tally.PREFERRED.parse,
            measure=tally.PREFERRED.measure,
            logprobs=True,
        )
        reply = await ask(question, variables, account, unit=unit, order=order)
        if not reply.data:
            return None
        choice: tally.PreferenceReply = {
            "order": order,
            "preference": preferred_slot(order, reply.data["preferred"]),
            "probability": reply.measured.get("label"),
            "comparison": naming_ab(reply.data["comparison"], order),
        }
        emit("choice", "preference", choice)
        return choice

    def _material(
        self, pair: ShownPair, order: Order, *, prefers: bool = False
    ) -> dict[str, object]:
        """The variables of a prompt that shows request and texts.

        What the memory recalled and a known good answer are shown to steps that prefer.
        """
        variables = self.prompt_variables(pair, order)
        # Behind the texts: calls that do not see the reference share the prefix before it.
        behind = {"instructions": f"{variables['instructions']}{variables['reference']}"}
        return {**variables, "reference": "", **(behind if prefers else {"shared": ""})}

    def _chance(self, pair: Pair) -> str:
        """The seed of coins: that of the judge and the pair, whichever text is A."""
        sides = readable(pair["output_a"]), readable(pair["output_b"])
        return f"{self.options.seed}:{digest(transcript(pair['input']), *sides)[:10]}"

    def _worked(self, tables: bool) -> str:
        """Render the worked examples, with their tables or without."""
        shots = []
        for example in self.options.worked:
            table = f"{tally.in_prompt(example['rows'])}\n" if tables else ""
            reply = {"comparison": example["comparison"], "preferred": example["preferred"]}
            shots.append((example, table, reply))
        return tasks.shown_examples(shots)


def _read_table(
    reply: Reply, aspects: Sequence[str], number: int, account: Account
) -> tally.ComparisonTable:
    """The table of a reply; what it lacks is booked."""
    if reply.data is None:
        return {"number": number, "rows": [], "valid": False}
    rows, cut = tally.within(tally.read_rows(reply.data, aspects))
    empty, problems = tally.silent_rows(rows), list[Problem]()
    if cut:
        detail = f"cells on {', '.join(cut)} were cut at {tally.CELL_SIZE} characters"
        problems.append(Problem("input_cut", detail))
    valid = 2 * len(empty) < len(rows)
    if reply.problem:
        # A part of the reply is used; what is missing are cells that say nothing.
        problems.append(Problem("missing", reply.problem.detail))
    elif not valid:
        problems.append(Problem("empty", f"nothing is said of {', '.join(empty)}"))
    account.fail([each.failure("table", f"table {number}") for each in problems])
    return {"number": number, "rows": rows, "valid": valid}


build = SC2Steps.build
create_sc2_judge = factory(SC2, build, "create_sc2_judge")
