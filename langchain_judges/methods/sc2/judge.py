"""SC² judging a pair: aspects → tables → knockout → preference (Yan et al. 2023, figure 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langgraph.constants import END
from langgraph.types import Overwrite, Send

from langchain_judges.asking.ask import Question, Reply, sample_seed
from langchain_judges.asking.effects import Update
from langchain_judges.asking.nodes import Call, Next, Route
from langchain_judges.methods.context import JudgeContext, StateSchema, begin
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
from langchain_judges.verdict import Failure, FailureReason, Pair, add_usage

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


@dataclass(frozen=True)
class SC2Steps(PairSteps):
    """The steps of the method, in the order of the graph."""

    options: SC2

    def propose_each(self, state: SC2State) -> Next:
        """Send every online sample of aspects."""
        pair = pair_of(state)
        samples = [
            Send("aspects", TableWork(pair=pair, aspects=[], number=i + 1))
            for i in range(self.options.proposals)
        ]
        return samples or "agree"

    @cached_property
    def _aspects_question(self) -> Question:
        shape = aspects_shape(self.options.n_aspects)
        return self.context.question(
            "aspects",
            shape,
            sampled=True,
            shares_material=self.options.proposals > 1,
        )

    def aspects(self, work: TableWork) -> Call:
        """Ask for the aspects of one pair, once."""
        number, several = work["number"], self.options.proposals > 1
        variables = {
            **self._material(work["pair"], "AB"),
            "question": self.options.aim["question"],
            "n_aspects": self.options.n_aspects,
        }
        unit = f"sample {number}" if several else ""
        seed = sample_seed(self.options.seed, number)
        return Call(self._aspects_question, variables, unit, seed=seed)

    def named(self, work: TableWork, reply: Reply) -> Update:
        """Keep the aspects that one sample named."""
        if not reply.data:
            return {}
        number = work["number"]
        if aspects := distinct(reply.data["aspects"], self.options.n_aspects):
            return {"proposals": [AspectProposal(sample=number, aspects=aspects)]}
        blank = _failure("aspects", f"sample {number}", "empty", "the reply names no aspect")
        return {"failures": [*reply.failures, blank]}

    def agree(self, state: SC2State) -> Update:
        """Settle the aspects: the caller's, or those that most online samples name."""
        named = by_frequency([proposal["aspects"] for proposal in state["proposals"]])
        return {"aspects": list(self.options.phrases) or named[: self.options.n_aspects]}

    def tabulate_each(self, state: SC2State) -> Next:
        """Send every table that is to be sampled; without aspects there is none."""
        pair, aspects = pair_of(state), state["aspects"]
        if not aspects:
            return "round"
        numbers = list(range(1, self.options.samples + 1))
        if self.options.inference == "random":
            numbers = [seeded(self._chance(pair), "random").choice(numbers)]
        return [
            Send("table", TableWork(pair=pair, aspects=aspects, number=number))
            for number in numbers
        ]

    @cached_property
    def _table_question(self) -> Question:
        """What one table is asked by; its shape is replaced by that of the pair's aspects."""
        shares = self.options.samples > 1
        return self.context.question(
            "table", Aspects, label="{unit}", sampled=True, shares_material=shares
        )

    def table(self, work: TableWork) -> Call:
        """Ask for one table: a row for each aspect, of what is shared and what is not."""
        aspects, number = work["aspects"], work["number"]
        whole, part = table_shapes(len(aspects), self.context.adapters["table"].text_limit)
        variables = {
            **self._material(work["pair"], "AB"),
            "aspects": "\n".join(f"{i}. {name}" for i, name in enumerate(aspects, 1)),
            **{f"aspect_{i}": name for i, name in enumerate(aspects, 1)},
        }
        return Call(
            replace(self._table_question, shape=whole, partial=part),
            variables,
            f"table {number}",
            seed=sample_seed(self.options.seed, number),
        )

    def tabled(self, work: TableWork, reply: Reply) -> Update:
        """Keep one table, and say what is missing in it."""
        number = work["number"]
        unit = f"table {number}"
        if reply.data is None:
            table: ComparisonTable = {"number": number, "rows": [], "valid": False}
            return {"tables": [table], "failures": reply.failures}
        rows = read_rows(reply.data, work["aspects"])
        empty = silent_rows(rows)
        valid = 2 * len(empty) < len(rows)
        failures: list[Failure] = []
        if reply.problem:
            # A part of the reply is used; what is missing are cells that say nothing.
            failures.append(_failure("table", unit, "missing", reply.problem.detail))
        elif not valid:
            detail = f"nothing is said of {', '.join(empty)}"
            failures.append(_failure("table", unit, "empty", detail))
        if (fitting := [fit(row) for row in rows]) != rows:
            detail = f"cells were cut to {MOST_CHARACTERS} characters"
            failures.append(_failure("table", unit, "input_cut", detail))
        table = {"number": number, "rows": fitting, "valid": valid}
        return {"tables": [table], "failures": [*reply.failures, *failures]}

    def round(self, state: SC2State) -> Update:
        """Draw the next matches, deciding those that need no comparator; or crown a table."""
        tables, seed = _by_number(state), f"{self._chance(pair_of(state))}:"
        if not any(table["valid"] for table in tables.values()):
            detail = "no table could be used: compared directly"
            fallback = _failure("table", "every table", "missing", detail)
            return {"pending": [], "table": None, "failures": [fallback]}
        played = list(state["bracket"])
        decided, pending = advance(self.options.inference, played, tables, seed)
        if pending:
            return {"bracket": decided, "pending": pending}
        mode, entrants, played = self.options.inference, sorted(tables), [*played, *decided]
        return {
            "bracket": decided,
            "pending": [],
            "table": tables[champion(mode, entrants, played, seed)],
            "comparisons": {
                "mode": mode,
                "spent": sum(match["asked"] for match in played),
                "rounds": max((match["round"] for match in played), default=0),
            },
        }

    def after_round(self, state: SC2State) -> Next:
        """Send the matches of this round; where there is none, every order's preference."""
        pair, tables = pair_of(state), _by_number(state)
        matches = [
            Send(
                "match",
                MatchWork(pair=pair, match=match, tables=[tables[n] for n in match["tables"]]),
            )
            for match in state["pending"]
        ]
        return matches or [
            Send(
                "preference",
                PreferenceWork(pair=pair, table=state["table"], order=order),
            )
            for order in self.options.order_list
        ]

    @cached_property
    def _match_question(self) -> Question:
        return self.context.question("match", Decision, parse=DECISION.parse, label="{unit}")

    def match(self, work: MatchWork) -> Call:
        """Ask which of two tables is more consistent."""
        first, second = (in_prompt(table["rows"]) for table in work["tables"])
        variables = {
            "fence_1": fence(first),
            "fence_2": fence(second),
            "table_1": first,
            "table_2": second,
        }
        return Call(self._match_question, variables, match_name(work["match"]))

    def met(self, work: MatchWork, reply: Reply) -> Update:
        """Keep who won; a coin where the reply says neither."""
        match = work["match"]
        one, other = match["tables"]
        if reply.data:
            winner = one if reply.data["more_consistent"] == "1" else other
            why = " ".join(reply.data["justification"].split())[:500]
            why = naming(why, {"1": f"{one}", "2": f"{other}"}, "table")
            return {"bracket": [won(match, winner, "comparator", why)]}
        coin = seeded(self._chance(work["pair"]), "neither", match_name(match))
        why = "the comparator's reply could not be used"
        return {"bracket": [won(match, coin.choice(sorted(match["tables"])), "coin", why)]}

    @cached_property
    def _preference_question(self) -> Question:
        return self.context.question(
            "preference",
            Preferred,
            parse=PREFERRED.parse,
            measure=PREFERRED.measure,
            logprobs=True,
        )

    def preference(self, work: PreferenceWork) -> Call:
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
        return Call(self._preference_question, variables, unit, order)

    def preferred(self, work: PreferenceWork, reply: Reply) -> Update:
        """Keep what one reply preferred, by identity of the texts."""
        if not reply.data:
            return {}
        choice: PreferenceReply = {
            "order": work["order"],
            "preference": preferred_slot(work["order"], reply.data["preferred"]),
            "probability": reply.measured.get("label"),
            "comparison": naming_identities(reply.data["comparison"], work["order"]),
        }
        return {"choices": [choice]}

    def verdict(self, state: SC2State) -> Update:
        """Combine the preferences, and put the bracket in order."""
        options, usage = self.options, add_usage(state["usages"])
        how = search_sentence(state["table"], options.samples, state["comparisons"])
        bracket = sorted(state["bracket"], key=lambda match: (match["round"], match["match"]))
        verdict = decide(
            options.orders,
            options.order_list,
            state["choices"],
            state["failures"],
            usage,
            how,
        )
        return {"verdict": verdict, "bracket": Overwrite(bracket)}

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
    graph = context.graph()
    graph.add_node("aspects", context.asks(steps.aspects, steps.named))
    graph.add_node("agree", context.plain(steps.agree))
    graph.add_node("table", context.asks(steps.table, steps.tabled))
    graph.add_node("round", context.plain(steps.round))
    graph.add_node("match", context.asks(steps.match, steps.met))
    graph.add_node("preference", context.asks(steps.preference, steps.preferred))
    graph.add_node("verdict", context.plain(steps.verdict))
    begin(graph, steps, steps.propose_each, ["aspects", "agree"])
    graph.add_edge("aspects", "agree")
    graph.add_conditional_edges("agree", Route(steps.tabulate_each), ["table", "round"])
    graph.add_edge("table", "round")
    graph.add_conditional_edges("round", Route(steps.after_round), ["match", "preference"])
    graph.add_edge("match", "round")
    graph.add_edge("preference", "verdict")
    graph.add_edge("verdict", END)
    return context.finish(graph, worked=list(options.worked))


create_sc2_judge = factory(SC2, build, "create_sc2_judge")
