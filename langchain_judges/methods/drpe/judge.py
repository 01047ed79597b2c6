"""DRPE judging a pair: roles → vote → score (Wu et al. 2023, figure 2)."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.account import Account
from langchain_judges.asking.ask import Asked, Question, ask, recorded, sample_seed
from langchain_judges.asking.effects import SingleFlight, Step, Update, emit_each, gather
from langchain_judges.asking.embeddings import SentenceEmbeddings, default_embeddings
from langchain_judges.asking.reading import lax_shape
from langchain_judges.memory.shown import block
from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.drpe import prompts as texts
from langchain_judges.methods.drpe.options import DRPE
from langchain_judges.methods.drpe.replies import (
    DRPEResult,
    DRPEState,
    RoleBallot,
    RoleVote,
    VoteWork,
    confidences,
    unit_names,
    votes_shape,
)
from langchain_judges.methods.drpe.role_selection import DRPESteps, RoleSteps
from langchain_judges.methods.drpe.roles import sets_mark
from langchain_judges.methods.drpe.tally import (
    decide,
    divided,
    fewest_valid,
    is_open,
    norm,
    order_sums,
    read_ballots,
    role_votes,
    vote_failure,
    votes_by_order,
    weighed,
)
from langchain_judges.methods.early_stop import in_waves, not_asked_sentence
from langchain_judges.methods.pairs import examples_in, pair_of
from langchain_judges.options import factory
from langchain_judges.orders import ORDER_NAMES, Order, in_slots
from langchain_judges.rows.fences import fence
from langchain_judges.rows.texts import shown, shown_task
from langchain_judges.verdict import Pair, Role, not_judged

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph


class VoteSteps(DRPESteps):
    """The steps that ask the panel, and decide."""

    async def vote(self, state: DRPEState, account: Account) -> Update:
        """Ask the panel, or each of its roles, in every order and as often as sampled."""
        if self.options.poll.adaptive:
            return await self._in_waves(state, account)
        pair = pair_of(state)
        works = [
            self._work(state, order, sample, seats)
            for order in self.orders(pair)
            for sample in range(self.options.poll.replies)
            for seats in self._seats(pair, len(state["roles"]), sample)
        ]
        ballots = await gather([self._votes(self._asked(w, account), w) for w in works])
        return {"ballots": [ballot for part in ballots for ballot in part]}

    async def _in_waves(self, state: DRPEState, account: Account) -> Update:
        """Ask roles one by one, and only while they can change the verdict."""
        pair, roles = pair_of(state), state["roles"]
        orders = self.orders(pair)

        def undecided(
            parts: Sequence[list[RoleBallot]], asked: Mapping[Order, int]
        ) -> Collection[Order]:
            ballots = [ballot for part in parts for ballot in part]
            left = is_open(roles, ballots, orders, min(asked.values()), self.options)
            return orders if left else []

        def ask_role(order: Order, position: int) -> Step[list[RoleBallot]]:
            work = self._work(state, order, 0, [position])
            return self._votes(self._asked(work, account), work)

        parts, asked = await in_waves(orders, len(roles), ask_role, undecided)
        not_asked = [role["type"] for role in roles[min(asked.values()) :]]
        ballots = [ballot for part in parts for ballot in part]
        return {"ballots": ballots, "not_asked": not_asked}

    def _work(
        self, state: DRPEState, order: Order, sample: int, positions: list[int]
    ) -> VoteWork:
        return VoteWork(
            pair=pair_of(state),
            roles=state["roles"],
            positions=positions,
            order=order,
            sample=sample,
            examples=examples_in(state),
        )

    def _seats(self, pair: Pair, seats: int, sample: int) -> list[list[int]]:
        """Return the positions that each call asks, in the order in which it shows them.

        Later roles of a batch read the votes of earlier ones, so their order is drawn for the
        pair and sample.
        """
        everyone = list(range(seats))
        if not self.options.poll.batch:
            return [[i] for i in everyone]
        # The same for both orders, whichever text is A.
        coin = random.Random(f"{self.chance(pair)}:{sample}")  # noqa: S311 - no secret
        coin.shuffle(everyone)
        return [everyone] if everyone else []

    def _asked(self, work: VoteWork, account: Account) -> Asked:
        """Ask the panel, or one role of it, which text is better and why."""
        voters = [work["roles"][i] for i in work["positions"]]
        name = "panel" if self.options.poll.batch else voters[0]["type"]
        return ask(
            self._question(voters),
            self._variables(work, voters),
            account,
            unit=f"{name}{self._place(work)}",
            order=work["order"],
            seed=self._seed(work),
        )

    def _seed(self, work: VoteWork) -> int | None:
        sampled = self.options.poll.replies > 1
        return sample_seed(self.options.seed, work["sample"]) if sampled else None

    async def _votes(self, asked: Asked, work: VoteWork) -> list[RoleBallot]:
        """Keep the votes of one reply.

        In a trace every role of a panel that was asked at once has a run of its own.
        """
        voters = [work["roles"][i] for i in work["positions"]]
        batch, place, order = self.options.poll.batch, self._place(work), work["order"]
        reply = await asked
        ballots, missing = read_ballots(reply, work, voters, batch, place)
        reply.failures += missing
        ballots.sort(key=lambda ballot: ballot["position"])
        for ballot in ballots if batch else []:
            role, unit = work["roles"][ballot["position"]], f"{ballot['role']}{place}"
            played = replace(self._question(voters), label="role")
            seed = self._seed(work)
            await recorded(played, role, {**ballot}, unit=unit, order=order, seed=seed)
        emit_each("vote", "vote", ballots)
        return ballots

    def _question(self, voters: Sequence[Role]) -> Question:
        poll, batch = self.options.poll, self.options.poll.batch
        measured = poll.confidence in {"auto", "logprobs"}
        return self.context.question(
            "vote",
            votes_shape(len(voters)) if batch else RoleVote,
            "vote" if batch else "vote_alone",
            label="vote" if batch else "role",
            partial=lax_shape(tuple(unit_names(len(voters)))) if batch else None,
            measure=confidences if measured else None,
            sampled=poll.replies > 1,
            shares_material=poll.replies > 1 or not batch,
            logprobs=measured,
        )

    def _variables(self, work: VoteWork, voters: Sequence[Role]) -> dict[str, object]:
        """Return the variables of the prompt that asks for votes."""
        pair, order, examples = work["pair"], work["order"], work["examples"]
        text, reference = shown_task(pair["input"]), pair.get("reference") or ""
        a, b = shown(pair["output_a"]), shown(pair["output_b"])
        first, second = in_slots(order, a, b)
        answer, (_, task) = "", self.task(pair)
        if reference:
            answer = texts.REFERENCE.format(fence=fence(reference), reference=reference)
        lessons = block(examples, order=order, noun=self.noun)
        described = [f"{role['type']}: {role['description']}" for role in voters]
        lines = [f"{number}. {line}" for number, line in enumerate(described, 1)]
        pieces = {
            f"role_{number}{part}": words
            for number, (role, line) in enumerate(zip(voters, described, strict=True), 1)
            for part, words in (
                ("", line),
                ("_type", role["type"]),
                ("_description", role["description"]),
            )
        }
        return {
            **self.pieces(pair, order),
            **pieces,
            "fence_text": fence(text),
            "fence_1": fence(first),
            "fence_2": fence(second),
            "text": text,
            "about": task["about"].replace("{noun}", self.noun),
            "everyone": task["everyone"] if self.options.poll.common_ground else "",
            "response_1": first,
            "response_2": second,
            "roles": "\n".join(lines if self.options.poll.batch else described),
            "question": task["question"],
            **self.frame(pair, lessons),
            "instructions": self.frame(pair)["instructions"] + answer,
        }

    def _place(self, work: VoteWork) -> str:
        """Return the part of a call's name that tells it from similar calls: order, sample."""
        marks = [ORDER_NAMES[work["order"]]] if self.options.orders != "none" else []
        marks += [f"sample {work['sample'] + 1}"] if self.options.poll.replies > 1 else []
        return f" ({', '.join(marks)})" if marks else ""

    async def tally(self, state: DRPEState, account: Account) -> Update:
        """Sum the weighed votes for each text, and prefer as the rule of orders says."""
        options, not_asked = self.options, state["not_asked"]
        roles = state["roles"]
        ballots, unweighed = weighed(state["ballots"], options.poll.confidence)
        usage, sampled = account.usage, options.poll.replies > 1
        voters = roles[: len(roles) - len(not_asked)]
        votes = role_votes(voters, ballots, sampled)
        by_order = votes_by_order(voters, ballots, self.orders(pair_of(state)), sampled)
        account.fail([*unweighed, *divided(by_order)])
        failures = account.failures
        least, valid = len(roles) // 2 + 1, fewest_valid(by_order)
        if not roles or valid < least:
            why = f"{valid} of {len(roles)} roles voted, at least {least} must"
            failures = failures or [vote_failure("panel", "missing", why)]
            verdict = not_judged(failures, usage, f"Not judged: {why}.")
            return {"votes": votes, "score_norm": None, "verdict": verdict}
        norms = [norm(order_sums(each), each) or 0.0 for each in by_order.values()]
        verdict = decide(votes, by_order, options.orders, failures, usage)
        verdict["rationale"] += not_asked_sentence(not_asked)
        return {"votes": votes, "score_norm": sum(norms) / len(norms), "verdict": verdict}


_SCHEMA = StateSchema(DRPEState, DRPEResult)


def build(options: DRPE, model: str | BaseChatModel) -> JudgeGraph:
    """Return the judge."""
    clusters = options.seating.clustering and options.generates
    embeddings = options.embeddings or (
        default_embeddings() if clusters else SentenceEmbeddings()
    )
    others = {"roles": options.role_model, "vote": None}
    context = JudgeContext.of(options, model, others, _SCHEMA, examples_in=("vote",))
    roles = RoleSteps(context, options, embeddings, SingleFlight())
    votes = VoteSteps(context, options)
    # What sits by task is decided by the wording of the sets.
    sets = {"sets": sets_mark()} if options.seating.by_task else {}
    phases = roles.roles, votes.vote, votes.tally
    return context.compile(roles, *phases, embeddings=type(embeddings).__name__, **sets)


create_drpe_judge = factory(DRPE, build, "create_drpe_judge")
