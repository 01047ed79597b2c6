"""Letting the panel vote, and the verdict."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langgraph.types import Send

from langchain_judges.asking.ask import ask, recorded
from langchain_judges.asking.nodes import Next
from langchain_judges.asking.question import Question, sample_seed
from langchain_judges.asking.replies.reading import lax_shape
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.memory.shown import block, example_texts
from langchain_judges.methods.drpe import prompts as texts
from langchain_judges.methods.drpe.ballots import read_ballots, spoken, vote_failure, weighed
from langchain_judges.methods.drpe.parse import ALTERNATIVES, confidences, soft_votes
from langchain_judges.methods.drpe.replies import (
    DRPEState,
    RoleVote,
    VoteWork,
    unit_names,
    votes_shape,
)
from langchain_judges.methods.drpe.steps import DRPESteps
from langchain_judges.methods.drpe.stopping import next_roles
from langchain_judges.methods.drpe.tally import (
    decide,
    divided,
    fewest_valid,
    norm,
    order_sums,
    role_votes,
    votes_by_order,
)
from langchain_judges.methods.pairs import examples_in, pair_of
from langchain_judges.methods.second_order import (
    due_orders,
    first_of,
    first_order,
    first_order_sentence,
)
from langchain_judges.methods.stopping import not_asked_sentence
from langchain_judges.orders import ORDER_NAMES, Order, in_slots
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import judged
from langchain_judges.verdict import Pair, Role, add_usage, not_judged


class VoteSteps(DRPESteps):
    """The steps that ask the panel, and decide."""

    def choose(self, state: DRPEState) -> Update:
        """Say which roles are due: the next ones, while they can change the verdict."""
        roles, asked = state["roles"], state["asked"]
        orders = self.orders(pair_of(state))
        more = next_roles(self.options, roles, state["ballots"], orders, asked)
        upto = asked + more
        return {
            "asked": upto,
            "due": list(range(asked, upto)),
            "not_asked": [role["type"] for role in roles[upto:]],
        }

    def ask_panel(self, state: DRPEState) -> Next:
        """Send the panel, or each of its roles, in every order and as often as sampled."""
        pair = pair_of(state)
        orders = self.orders(pair)
        due = state["due"] if self.options.poll.adaptive else range(len(state["roles"]))
        works = [
            VoteWork(
                pair=pair,
                roles=state["roles"],
                positions=seats,
                order=order,
                sample=sample,
                examples=examples_in(state),
            )
            for order in due_orders(self.options, pair, state.get("first_order"), orders)
            for sample in range(self.options.poll.replies)
            for seats in self._seats(pair, due, sample)
            if seats
        ]
        return [Send("vote", work) for work in works] or "score"

    def _seats(self, pair: Pair, due: Sequence[int], sample: int) -> list[list[int]]:
        """Return the positions that each call asks, in the order in which it shows them."""
        if not self.options.poll.batch:
            return [[i] for i in due]
        everyone = list(due)
        if self.options.poll.shuffled:
            # The same for both orders, whichever text is A.
            coin = random.Random(f"{self.chance(pair)}:{sample}")  # noqa: S311 - no secret
            coin.shuffle(everyone)
        return [everyone]

    def vote(self, work: VoteWork) -> Steps[Update]:
        """Ask the panel, or one role of it, which text is better and why.

        In a trace every role of a panel that was asked at once has a run of its own.
        """
        voters = [work["roles"][i] for i in work["positions"]]
        question, batch, order = self._question(voters), self.options.poll.batch, work["order"]
        place = self._place(work)
        sampled = self.options.poll.replies > 1
        seed = sample_seed(self.options.seed, work["sample"]) if sampled else None
        reply = yield from ask(
            question,
            self._variables(work, voters),
            unit=f"{'panel' if batch else voters[0]['type']}{place}",
            order=order,
            seed=seed,
        )
        ballots, missing = read_ballots(reply, work, voters, batch, place)
        ballots.sort(key=lambda ballot: ballot["position"])
        for ballot in ballots if batch else []:
            role, unit = work["roles"][ballot["position"]], f"{ballot['role']}{place}"
            played = replace(question, label="role")
            yield recorded(played, role, {**ballot}, unit=unit, order=order, seed=seed)
        return {
            "ballots": ballots,
            "failures": [*reply.failures, *missing],
            "usages": [reply.usage],
        }

    def _question(self, voters: Sequence[Role]) -> Question:
        poll, batch = self.options.poll, self.options.poll.batch
        measured, soft = poll.confidence in {"auto", "logprobs"}, poll.confidence == "soft"
        measure = partial(confidences, kind=poll.span) if measured else soft_votes
        return self.context.question(
            "vote",
            votes_shape(len(voters)) if batch else RoleVote,
            "vote" if batch else "vote_alone",
            label="vote" if batch else "role",
            partial=lax_shape(tuple(unit_names(len(voters)))) if batch else None,
            parse=partial(spoken, roles=voters, batch=batch),
            measure=partial(measure, roles=voters, alone=not batch)
            if measured or soft
            else None,
            measured_as="soft" if soft else poll.span,
            sampled=poll.replies > 1,
            shares_material=poll.replies > 1 or not batch,
            logprobs=measured or soft,
            alternatives=ALTERNATIVES if soft else 0,
        )

    def _variables(self, work: VoteWork, voters: Sequence[Role]) -> dict[str, object]:
        """Return the variables of the prompt that asks for votes."""
        pair, order, examples = work["pair"], work["order"], work["examples"]
        text, reference = self.article(pair), pair.get("reference") or ""
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        first, second = in_slots(order, a, b)
        answer, (_, task) = "", self.task(pair)
        if reference:
            answer = texts.REFERENCE.format(fence=fence(reference), reference=reference)
        lessons = block(examples, fence(*example_texts(examples)), order=order, noun=self.noun)
        described = [f"{role['type']}: {role['description']}" for role in voters]
        lines = [f"{number}. {line}" for number, line in enumerate(described, 1)]
        return {
            "fence_text": fence(text),
            "fence_1": fence(first),
            "fence_2": fence(second),
            "text": text,
            "about": task["about"].replace("{noun}", self.noun),
            "everyone": task["everyone"],
            "candidate_1": first,
            "candidate_2": second,
            "roles": "\n".join(lines if self.options.poll.batch else described),
            "request": texts.REQUESTS[self.options.poll.variant].format(
                question=task["question"]
            ),
            "instructions": self.frame(pair, answer + lessons)["instructions"],
        }

    def _place(self, work: VoteWork) -> str:
        """Return the part of a call's name that tells it from similar calls: order, sample."""
        marks = [ORDER_NAMES[work["order"]]] if self.options.orders != "none" else []
        marks += [f"sample {work['sample'] + 1}"] if self.options.poll.replies > 1 else []
        return f" ({', '.join(marks)})" if marks else ""

    def first_order(self, state: DRPEState) -> Update:
        """Weigh the first order: whether the panel is united enough to decide alone."""
        order = first_of(pair_of(state))
        verdict = self._decided(state, (order,))["verdict"]
        lead = None if verdict["score"] is None else abs(2 * verdict["score"] - 1)
        return {"first_order": first_order(self.options, order, verdict, lead)}

    def score(self, state: DRPEState) -> Update:
        """Sum the weighed votes for each text, and prefer as the rule of orders says."""
        first = state.get("first_order")
        alone = first and not first["second_asked"]
        orders = (first["order"],) if first and alone else self.orders(pair_of(state))
        update = self._decided(state, orders)
        verdict = update["verdict"]
        if verdict["preference"]:
            verdict["rationale"] += first_order_sentence(self.options, first)
            verdict["rationale"] += not_asked_sentence(
                state["not_asked"], self.options.poll.adaptive
            )
        return update

    def _decided(self, state: DRPEState, orders: Sequence[Order]) -> Update:
        """Return the verdict by the votes of some orders."""
        poll = self.options.poll
        roles = state["roles"][: state["asked"] if poll.adaptive else None]
        ballots, unweighed = weighed(state["ballots"], poll.confidence)
        usage, sampled = add_usage(state["usages"]), poll.replies > 1
        votes = role_votes(roles, ballots, sampled)
        by_order = votes_by_order(roles, ballots, orders, sampled)
        failures = [*state["failures"], *unweighed, *divided(by_order)]
        least = poll.min_valid or len(roles) // 2 + 1
        valid = fewest_valid(by_order)
        if not roles or valid < least:
            why = f"{valid} of {len(roles)} roles voted, at least {least} must"
            failures = failures or [vote_failure("panel", "missing", why)]
            verdict = not_judged(failures, usage, f"Not judged: {why}.")
            return {"votes": votes, "score_norm": None, "verdict": verdict}
        soft = poll.confidence == "soft"
        norms = [norm(order_sums(each, soft), each) or 0.0 for each in by_order.values()]
        verdict = decide(votes, by_order, self.options.orders, failures, usage, soft)
        return {"votes": votes, "score_norm": sum(norms) / len(norms), "verdict": verdict}
