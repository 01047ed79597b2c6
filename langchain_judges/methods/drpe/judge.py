"""DRPE judging a pair: roles → vote → score (Wu et al. 2023, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from langchain_judges.asking import effects, reading
from langchain_judges.asking.ask import ask, traced
from langchain_judges.asking.question import Account, Question, sample_seed
from langchain_judges.methods import declaration, pairs
from langchain_judges.methods.drpe import role_selection, tally
from langchain_judges.methods.drpe.options import DRPE, sets_mark
from langchain_judges.options import factory
from langchain_judges.orders import ORDER_NAMES, Order
from langchain_judges.verdict import Pair, Role, not_judged, why_not


class VoteSteps(role_selection.RoleSteps):
    """All steps: after those that find the roles, those that ask the panel, and decide."""

    state = tally.DRPEState

    def phases(self) -> Sequence[declaration.Phase]:
        """Roles, vote, tally."""
        return [self.roles, self.vote, self.tally]

    def fingerprint(self) -> dict[str, Any]:
        """The embedder; and the wording of the sets, which decides what sits by task."""
        sets = {"sets": sets_mark()} if self.panel.by_task else {}
        return {"embeddings": type(self.embeddings).__name__, **sets}

    async def vote(self, state: tally.DRPEState, account: Account) -> effects.Update:
        """Ask the panel, or each of its roles, in every order and as often as sampled."""
        pair = pairs.pair_of(state)
        calls = [
            tally.Call(state["roles"], seats, order, sample)
            for order in self.orders(pair)
            for sample in range(self.options.voting.replies)
            for seats in self._seats(pair, len(state["roles"]), sample)
        ]
        steps = [self._votes(pair, call, account.part()) for call in calls]
        return {"ballots": [ballot for part in await effects.gather(steps) for ballot in part]}

    def _seats(self, pair: Pair, seats: int, sample: int) -> list[list[int]]:
        """The positions that each call asks, in the order in which it shows them.

        Later roles of a batch read the votes of earlier ones, so their order is drawn for the
        pair and sample.
        """
        everyone = list(range(seats))
        if not self.options.voting.batch:
            return [[i] for i in everyone]
        # The same for both orders, whichever text is A.
        pairs.coin_of(pair, self.options.seed, sample).shuffle(everyone)
        return [everyone] if everyone else []

    async def _votes(
        self, pair: pairs.ShownPair, call: tally.Call, account: Account
    ) -> list[tally.RoleBallot]:
        """The votes of the panel, or of one role of it, by which text is better and why.

        In a trace every role of a panel that was asked at once has a run of its own.
        """
        voting, voters, order = self.options.voting, call.voters, call.order
        place, question = self._place(call), self._question(voters)
        seed = sample_seed(self.options.seed, call.sample) if voting.replies > 1 else None
        unit = f"{'panel' if voting.batch else voters[0]['type']}{place}"
        variables = self._variables(pair, order, voters)
        reply = await ask(question, variables, account, unit=unit, order=order, seed=seed)
        ballots, missing = tally.read_ballots(reply, call, voting.batch, place)
        account.fail(missing)
        ballots.sort(key=lambda ballot: ballot["position"])
        for ballot in ballots if voting.batch else []:
            role, name = call.roles[ballot["position"]], f"{ballot['role']}{place}"
            played = replace(question, label="role").config(name, order, seed)
            await traced(played, role, {**ballot})
        effects.emit_each("vote", "vote", ballots)
        return ballots

    def _question(self, voters: Sequence[Role]) -> Question:
        voting = self.options.voting
        measured = voting.confidence in {"auto", "logprobs"}
        own: dict[str, Any] = {
            "measure": tally.confidences if measured else None,
            "sampled": voting.replies > 1,
            "logprobs": measured,
        }
        if not voting.batch:
            own |= {"label": "role", "shares_material": True}
            return self.context.question("vote", tally.RoleVote, "vote_alone", **own)
        shape = tally.votes_shape(len(voters))
        own |= {"label": "vote", "shares_material": voting.replies > 1}
        own |= {"partial": reading.lax_shape(tuple(tally.unit_names(len(voters))))}
        return self.context.question("vote", shape, "vote", **own)

    def _variables(
        self, pair: pairs.ShownPair, order: Order, voters: Sequence[Role]
    ) -> dict[str, object]:
        """The variables of the prompt that asks for votes."""
        material, (_, task) = self.prompt_variables(pair, order), self.task(pair)
        described = [declaration.with_name(role["type"], role["description"]) for role in voters]
        # Named as in the reply: a bare number would be taken for a vote.
        lines = [f"role_{number}, {line}" for number, line in enumerate(described, 1)]
        return {
            **material,
            "fence_text": material["fence_request"],
            "text": material["request"],
            "about": task["about"].replace("{noun}", self.noun),
            "everyone": task["everyone"] if self.options.voting.common_ground else "",
            "roles": "\n".join(lines if self.options.voting.batch else described),
            "question": task["question"],
            "instructions": f"{material['instructions']}{material['reference']}".rstrip(),
        }

    def _place(self, call: tally.Call) -> str:
        """The part of a call's name that tells it from similar calls: order, sample."""
        marks = [ORDER_NAMES[call.order]] if self.options.orders != "none" else []
        marks += [f"sample {call.sample + 1}"] if self.options.voting.replies > 1 else []
        return f" ({', '.join(marks)})" if marks else ""

    async def tally(self, state: tally.DRPEState, account: Account) -> effects.Update:
        """Sum the weighed votes for each text, and prefer as the rule of orders says."""
        options, roles = self.options, state["roles"]
        ballots, unweighed = tally.weighed(state["ballots"], options.voting.confidence)
        sampled = options.voting.replies > 1
        votes = tally.role_votes(roles, ballots, sampled)
        by_order = {
            order: tally.role_votes(roles, [b for b in ballots if b["order"] == order], sampled)
            for order in self.orders(pairs.pair_of(state))
        }
        account.fail([*unweighed, *tally.divided(by_order)])
        # In the order in which the fewest roles prefer a text.
        counts = [sum(v["preference"] is not None for v in own) for own in by_order.values()]
        least, valid = len(roles) // 2 + 1, min(counts)
        if not roles or valid < least:
            why = f"{valid} of {len(roles)} roles voted, at least {least} must"
            if not account.failures:
                account.fail([reading.Problem("missing", why).failure("vote", "panel")])
            verdict = not_judged(**account.booked, rationale=why_not(account.failures, why))
            return {"votes": votes, "score_norm": None, "verdict": verdict}
        verdict = tally.decide(options, votes, by_order, account)
        score_norm = fmean(map(tally.norm, by_order.values()))
        return {"votes": votes, "score_norm": score_norm, "verdict": verdict}


build = VoteSteps.build
create_drpe_judge = factory(DRPE, build, "create_drpe_judge")
