"""SC² judging a pair: aspects → tables → knockout → preference (Yan et al. 2023, figure 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.account import Account
from langchain_judges.asking.ask import Asked, Question, Reply, ask, sample_seed
from langchain_judges.asking.effects import Update, emit, emit_each, gather
from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.few_shot import shown_examples
from langchain_judges.methods.pairs import (
    PairSteps,
    ShownPair,
    pair_of,
)
from langchain_judges.methods.sc2 import prompts as texts
from langchain_judges.methods.sc2.aspects import by_frequency, distinct
from langchain_judges.methods.sc2.options import SC2
from langchain_judges.methods.sc2.replies import (
    DECISION,
    PREFERRED,
    AspectProposal,
    Aspects,
    ComparisonTable,
    Decision,
    MatchWork,
    PreferenceReply,
    PreferenceWork,
    Preferred,
    SC2Result,
    SC2State,
    TableMatch,
    TableWork,
    aspects_shape,
    table_shapes,
)
from langchain_judges.methods.sc2.tables import (
    MOST_CHARACTERS,
    fit,
    in_prompt,
    read_rows,
    silent_rows,
)
from langchain_judges.methods.sc2.tally import (
    advance,
    champion,
    decide,
    match_name,
    search_sentence,
    seeded,
    won,
)
from langchain_judges.options import factory
from langchain_judges.orders import (
    ORDER_NAMES,
    Order,
    naming,
    naming_identities,
    preferred_slot,
)
from langchain_judges.rows.fences import digest, fence
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Failure, FailureReason, Pair

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


@dataclass(frozen=True)
class SC2Steps(PairSteps):
    """The steps of the method, in the order of the graph."""

    options: SC2

    async def aspects(self, state: SC2State, account: Account) -> Update:
        """Settle the aspects: the caller's, or those that most online samples name."""
        works = [
            TableWork(pair=pair_of(state), aspects=[], number=i + 1)
            for i in range(self.options.proposals)
        ]
        steps = [self._named(self._proposed(work, account), work) for work in works]
        proposals = [each for each in await gather(steps) if each]
        named = by_frequency([proposal["aspects"] for proposal in proposals])
        aspects = list(self.options.phrases) or named[: self.options.n_aspects]
        emit_each("aspect", "aspects", aspects)
        return {"proposals": proposals, "aspects": aspects}

    @cached_property
    def _aspects_question(self) -> Question:
        shape = aspects_shape(self.options.n_aspects)
        return self.context.question(
            "aspects",
            shape,
            sampled=True,
            shares_material=self.options.proposals > 1,
        )

    def _proposed(self, work: TableWork, account: Account) -> Asked:
        """Ask for the aspects of one pair, once."""
        number, several = work["number"], self.options.proposals > 1
        variables = {
            **self._material(work["pair"], "AB"),
            "question": self.options.aim["question"],
            "n_aspects": self.options.n_aspects,
        }
        unit = f"sample {number}" if several else ""
        seed = sample_seed(self.options.seed, number)
        return ask(self._aspects_question, variables, account, unit=unit, seed=seed)

    async def _named(self, asked: Asked, work: TableWork) -> AspectProposal | None:
        """Keep the aspects that one sample named."""
        reply, number = await asked, work["number"]
        if not reply.data:
            return None
        if aspects := distinct(reply.data["aspects"], self.options.n_aspects):
            proposal = AspectProposal(sample=number, aspects=aspects)
            emit("proposal", "aspects", proposal)
            return proposal
        blank = _failure("aspects", f"sample {number}", "empty", "the reply names no aspect")
        reply.failures.append(blank)
        return None

    async def tables(self, state: SC2State, account: Account) -> Update:
        """Sample the tables; without aspects there is none."""
        pair, aspects = pair_of(state), state["aspects"]
        numbers = list(range(1, self.options.samples + 1)) if aspects else []
        if self.options.inference == "random" and numbers:
            numbers = [seeded(self._chance(pair), "random").choice(numbers)]
        works = [TableWork(pair=pair, aspects=aspects, number=number) for number in numbers]
        steps = [self._tabled(self._table(work, account), work) for work in works]
        return {"tables": await gather(steps)}

    @cached_property
    def _table_question(self) -> Question:
        """What one table is asked by; its shape is replaced by that of the pair's aspects."""
        shares = self.options.samples > 1
        return self.context.question(
            "table", Aspects, label="{unit}", sampled=True, shares_material=shares
        )

    def _table(self, work: TableWork, account: Account) -> Asked:
        """Ask for one table: a row for each aspect, of what is shared and what is not."""
        aspects, number = work["aspects"], work["number"]
        whole, part = table_shapes(len(aspects), self.context.adapters["table"].text_limit)
        variables = {
            **self._material(work["pair"], "AB"),
            "aspects": "\n".join(f"{i}. {name}" for i, name in enumerate(aspects, 1)),
            **{f"aspect_{i}": name for i, name in enumerate(aspects, 1)},
        }
        question = replace(self._table_question, shape=whole, partial=part)
        seed = sample_seed(self.options.seed, number)
        return ask(question, variables, account, unit=f"table {number}", seed=seed)

    async def _tabled(self, asked: Asked, work: TableWork) -> ComparisonTable:
        """Keep one table, and say what is missing in it."""
        table = self._read(await asked, work)
        emit("table", "table", table)
        return table

    def _read(self, reply: Reply, work: TableWork) -> ComparisonTable:
        number = work["number"]
        unit = f"table {number}"
        if reply.data is None:
            return {"number": number, "rows": [], "valid": False}
        rows = read_rows(reply.data, work["aspects"])
        empty = silent_rows(rows)
        valid = 2 * len(empty) < len(rows)
        failures = reply.failures
        if reply.problem:
            # A part of the reply is used; what is missing are cells that say nothing.
            failures.append(_failure("table", unit, "missing", reply.problem.detail))
        elif not valid:
            detail = f"nothing is said of {', '.join(empty)}"
            failures.append(_failure("table", unit, "empty", detail))
        if (fitting := [fit(row) for row in rows]) != rows:
            detail = f"cells were cut to {MOST_CHARACTERS} characters"
            failures.append(_failure("table", unit, "input_cut", detail))
        return {"number": number, "rows": fitting, "valid": valid}

    async def tournament(self, state: SC2State, account: Account) -> Update:
        """Let the tables meet, round by round, until one is left."""
        tables, pair = _by_number(state), pair_of(state)
        if not any(table["valid"] for table in tables.values()):
            detail = "no table could be used: compared directly"
            account.fail([_failure("table", "every table", "missing", detail)])
            return {"table": None}
        mode, seed = self.options.inference, f"{self._chance(pair)}:"
        played: list[TableMatch] = []
        pending: list[TableMatch] | None = None
        while pending is None or pending:
            # Some matches need no comparator; the others of a round are asked at the same time.
            decided, pending = advance(mode, played, tables, seed)
            emit_each("match", "match", decided)
            works = [
                MatchWork(pair=pair, match=match, tables=[tables[n] for n in match["tables"]])
                for match in pending
            ]
            met = await gather([self._met(self._match(work, account), work) for work in works])
            played += [*decided, *met]
        return {
            "bracket": sorted(played, key=lambda match: (match["round"], match["match"])),
            "table": tables[champion(mode, sorted(tables), played, seed)],
            "comparisons": {
                "mode": mode,
                "spent": sum(match["asked"] for match in played),
                "rounds": max((match["round"] for match in played), default=0),
            },
        }

    @cached_property
    def _match_question(self) -> Question:
        return self.context.question("match", Decision, parse=DECISION.parse, label="{unit}")

    def _match(self, work: MatchWork, account: Account) -> Asked:
        """Ask which of two tables is more consistent."""
        first, second = (in_prompt(table["rows"]) for table in work["tables"])
        variables = {
            "fence_1": fence(first),
            "fence_2": fence(second),
            "table_1": first,
            "table_2": second,
        }
        return ask(self._match_question, variables, account, unit=match_name(work["match"]))

    async def _met(self, asked: Asked, work: MatchWork) -> TableMatch:
        """Keep who won; a coin where the reply says neither."""
        match = self._decided(await asked, work)
        emit("match", "match", match)
        return match

    def _decided(self, reply: Reply, work: MatchWork) -> TableMatch:
        match = work["match"]
        one, other = match["tables"]
        if reply.data:
            winner = one if reply.data["more_consistent"] == "1" else other
            why = " ".join(reply.data["justification"].split())[:500]
            why = naming(why, {"1": f"{one}", "2": f"{other}"}, "table")
            return won(match, winner, "comparator", why)
        coin = seeded(self._chance(work["pair"]), "neither", match_name(match))
        why = "the comparator's reply could not be used"
        return won(match, coin.choice(sorted(match["tables"])), "coin", why)

    @cached_property
    def _preference_question(self) -> Question:
        return self.context.question(
            "preference",
            Preferred,
            parse=PREFERRED.parse,
            measure=PREFERRED.measure,
            logprobs=True,
        )

    async def preference(self, state: SC2State, account: Account) -> Update:
        """Ask in every order which text is preferred, and combine the orders."""
        options, pair = self.options, pair_of(state)
        works = [
            PreferenceWork(pair=pair, table=state["table"], order=order)
            for order in options.order_list
        ]
        steps = [self._preferred(self._compared(work, account), work) for work in works]
        choices = [each for each in await gather(steps) if each]
        how = search_sentence(state["table"], options.samples, state["comparisons"])
        failures, usage = account.failures, account.usage
        verdict = decide(options.orders, options.order_list, choices, failures, usage, how)
        return {"choices": choices, "verdict": verdict}

    def _compared(self, work: PreferenceWork, account: Account) -> Asked:
        """Ask which text is preferred, with the table where there is one."""
        order = work["order"]
        table = in_prompt(work["table"]["rows"], order) if work["table"] else ""
        material = texts.TABLE_MATERIAL.format(table_fence=fence(table), table=table)
        variables = {
            **self._material(work["pair"], order, prefers=True),
            "table": material if table else "",
            "table_text": table,
            "examples": self._worked(bool(table)),
            **self.options.aim,
        }
        unit = ORDER_NAMES[order] if len(self.options.order_list) > 1 else ""
        return ask(self._preference_question, variables, account, unit=unit, order=order)

    async def _preferred(self, asked: Asked, work: PreferenceWork) -> PreferenceReply | None:
        """Keep what one reply preferred, by identity of the texts."""
        reply = await asked
        if not reply.data:
            return None
        choice: PreferenceReply = {
            "order": work["order"],
            "preference": preferred_slot(work["order"], reply.data["preferred"]),
            "probability": reply.measured.get("label"),
            "comparison": naming_identities(reply.data["comparison"], work["order"]),
        }
        emit("choice", "preference", choice)
        return choice

    def _material(
        self, pair: ShownPair, order: Order, *, prefers: bool = False
    ) -> dict[str, object]:
        """Return the variables of a prompt that shows request and texts.

        What the memory recalled and a known good answer are shown to steps that prefer.
        """
        variables = self.material(pair, order)
        # Behind the texts: calls that do not see the reference share the prefix before it.
        behind = {"instructions": f"{variables['instructions']}{variables['reference']}"}
        return {**variables, "reference": "", **(behind if prefers else {"shared": ""})}

    def _chance(self, pair: Pair) -> str:
        """Return what coins hang on: the judge's seed and the pair, whichever text is A."""
        sides = judged(pair["output_a"]), judged(pair["output_b"])
        return f"{self.options.seed}:{digest(transcript(pair['input']), *sides)[:10]}"

    def _worked(self, tables: bool) -> str:
        """Render the worked examples, with their tables or without."""
        return shown_examples(
            [
                (
                    example,
                    f"{in_prompt(example['rows'])}\n" if tables else "",
                    {
                        "comparison": example["comparison"],
                        "preferred": example["preferred"],
                    },
                )
                for example in self.options.worked
            ]
        )


def _by_number(state: SC2State) -> dict[int, ComparisonTable]:
    return {table["number"]: table for table in state["tables"]}


def _failure(step: str, unit: str, reason: FailureReason, detail: str) -> Failure:
    return {"step": step, "unit": unit, "reason": reason, "detail": detail}


def build(options: SC2, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    models = {
        "aspects": options.comparison_model,
        "table": options.comparison_model,
        "match": options.comparison_model,
        "preference": None,
    }
    schema = StateSchema(SC2State, SC2Result)
    context = JudgeContext.of(options, model, models, schema, examples_in=("preference",))
    steps = SC2Steps(context, options)
    phases = steps.aspects, steps.tables, steps.tournament, steps.preference
    return context.compile(steps, *phases, worked=list(options.worked))


create_sc2_judge = factory(SC2, build, "create_sc2_judge")
