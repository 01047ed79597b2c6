"""Preferring one of two texts, beside the table that won, and the verdict."""

from __future__ import annotations

from functools import cached_property

from langgraph.types import Overwrite, Send

from langchain_judges.asking.nodes import Call, Next
from langchain_judges.asking.question import Question, Reply
from langchain_judges.asking.steps import Update
from langchain_judges.methods.few_shot import shown_examples
from langchain_judges.methods.pairs import examples_in, pair_of
from langchain_judges.methods.sc2 import prompts as texts
from langchain_judges.methods.sc2.parse import label_probability, parse_preference
from langchain_judges.methods.sc2.replies import (
    PreferenceReply,
    PreferenceWork,
    Preferred,
    SC2State,
)
from langchain_judges.methods.sc2.steps import SC2Steps
from langchain_judges.methods.sc2.stopping import more_samples
from langchain_judges.methods.sc2.tables import in_prompt
from langchain_judges.methods.sc2.tally import decide, search_sentence
from langchain_judges.methods.second_order import (
    due_orders,
    first_of,
    first_order,
    first_order_sentence,
    options_of,
)
from langchain_judges.methods.stopping import not_asked_sentence
from langchain_judges.orders import ORDER_NAMES, Order, naming_identities, preferred_slot
from langchain_judges.rows.fences import fence
from langchain_judges.verdict import Pair, Preference, add_usage, not_judged


class PreferenceSteps(SC2Steps):
    """The steps that decide."""

    @cached_property
    def question(self) -> Question:
        """What each order is asked, with the texts hidden or not."""
        return self.context.question(
            "preference",
            Preferred,
            "table_only" if self.options.table_only else "preference",
            parse=parse_preference,
            measure=label_probability,
            sampled=self.options.preference_samples > 1,
            shares_material=self.options.preference_samples > 1,
            logprobs=True,
        )

    def ask_each(self, state: SC2State) -> Next:
        """Send every order, as often as it is sampled."""
        if self.options.table_only and state["table"] is None:
            return "verdict"
        samples = range(self.options.preference_samples)
        due = [(order, sample) for order in self._due(state) for sample in samples]
        return [
            Send(
                "preference",
                PreferenceWork(
                    pair=pair_of(state),
                    table=state["table"],
                    order=order,
                    sample=sample,
                    examples=examples_in(state),
                ),
            )
            for order, sample in (state["due"] if self.options.stops else due)
        ] or "verdict"

    def choose(self, state: SC2State) -> Update:
        """Say which samples are due: the next ones, while they can change the verdict."""
        options = self.options
        asked = state["asked"] or dict.fromkeys(options.order_list, 0)
        if options.table_only and state["table"] is None:
            return {}
        more = more_samples(options, state["choices"], asked)
        upto = {order: count + more.get(order, 0) for order, count in asked.items()}
        return {
            "due": [(o, n) for o in options.order_list for n in range(asked[o], upto[o])],
            "asked": upto,
            "not_asked": [
                self._unit(order, sample)
                for order in options.order_list
                for sample in range(upto[order], options.preference_samples)
            ],
        }

    def _unit(self, order: Order, sample: int) -> str:
        names = [ORDER_NAMES[order]] if len(self.options.order_list) > 1 else []
        names += [f"sample {sample + 1}"] if self.options.preference_samples > 1 else []
        return ", ".join(names)

    def _due(self, state: SC2State) -> tuple[Order, ...]:
        options, first = self.options, state.get("first_order")
        return due_orders(options, pair_of(state), first, options.order_list)

    def first_order(self, state: SC2State) -> Update:
        """Weigh the first order: whether it is sure enough to decide alone."""
        order = first_of(pair_of(state))
        options, coin = self.options.in_order(order), self._coin(pair_of(state))
        verdict = decide(options, state["choices"], [], add_usage([]), "", coin)
        return {"first_order": first_order(self.options, order, verdict)}

    def _coin(self, pair: Pair) -> Preference:
        """Return the side that counts where samples are even, whichever text is A."""
        a, b = self.sides(pair)
        winner = self.coin(pair, "samples").choice(sorted([a, b]))
        return "A" if winner == a else "B"

    def preference(self, work: PreferenceWork) -> Call:
        """Ask which text is preferred, with the table where there is one."""
        order, sample, pair = work["order"], work["sample"], work["pair"]
        several = self.options.preference_samples > 1
        variables = {
            **self.material(pair, order, work["examples"], reference=True),
            "table": self._shown_table(work, order),
            "examples": self._worked(work["table"] is not None),
            **self.options.aim,
        }
        seed = self.sample_seed(sample + 1) if several else None
        return Call(self.question, variables, self._unit(order, sample), order, seed)

    def preferred(self, work: PreferenceWork, reply: Reply) -> Update:
        """Keep what one reply preferred, by identity of the texts."""
        if not reply.data:
            return {}
        choice: PreferenceReply = {
            "order": work["order"],
            "sample": work["sample"],
            "preference": preferred_slot(work["order"], reply.data["preferred"]),
            "probability": reply.measured.get("probability"),
            "comparison": naming_identities(reply.data["comparison"], work["order"]),
        }
        return {"choices": [choice]}

    def verdict(self, state: SC2State) -> Update:
        """Combine the preferences, and put the bracket in order."""
        usage, pair = add_usage(state["usages"]), pair_of(state)
        table, failures = state["table"], state["failures"]
        place = {lane: i for i, lane in enumerate(self.lanes(state["aspects"]))}
        bracket = Overwrite(
            sorted(state["bracket"], key=lambda m: (place[m["aspect"]], m["round"], m["match"]))
        )
        if self.options.table_only and table is None:
            why = "Not judged: there is no table, and the texts are hidden."
            return {"verdict": not_judged(failures, usage, why), "bracket": bracket}
        how = search_sentence(table, self.options.samples, state["comparisons"])
        first = state.get("first_order")
        options = options_of(self.options, first)
        verdict = decide(options, state["choices"], failures, usage, how, self._coin(pair))
        if verdict["preference"]:
            verdict["rationale"] += first_order_sentence(options, first)
            verdict["rationale"] += not_asked_sentence(state["not_asked"], options.adaptive)
        return {"verdict": verdict, "bracket": bracket}

    def _shown_table(self, work: PreferenceWork, order: Order) -> str:
        """Render the table for the preference prompt, by slots; empty without a table."""
        if work["table"] is None:
            return ""
        table = in_prompt(work["table"]["rows"], order)
        template = (
            texts.TABLE_MATERIAL_ALONE if self.options.table_only else texts.TABLE_MATERIAL
        )
        return template.format(table_fence=fence(table), table=table)

    def _worked(self, tables: bool) -> str:
        """Render the worked examples, with their tables or without."""
        return shown_examples(
            [
                (
                    example,
                    f"{in_prompt(example['rows'])}\n" if tables else "",  # type: ignore[arg-type]
                    {
                        "comparison": example["comparison"],
                        "preferred": example["preferred"],
                    },
                )
                for example in self.options.worked
            ]
        )
