"""DRPE judging a pair: roles → vote → score (Wu et al. 2023, figure 2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from statistics import fmean
from typing import Any

from langchain_core.embeddings import Embeddings

from langchain_judges.asking import effects, reading, reply_log
from langchain_judges.asking.ask import ask, traced
from langchain_judges.asking.embeddings import SentenceEmbeddings, default_embeddings, embedded
from langchain_judges.asking.question import Account, Question, Reply, sample_seed
from langchain_judges.methods import declaration, pairs, tasks
from langchain_judges.methods.drpe import role_selection, tally
from langchain_judges.methods.drpe.options import DRPE, SETS, WORDS, Panel
from langchain_judges.options import factory
from langchain_judges.orders import ORDER_NAMES, Order
from langchain_judges.rows import fences, texts
from langchain_judges.verdict import Failure, Pair, Role, not_judged, why_not


class DRPESteps(pairs.PairSteps):
    """The steps of the method: those that find the roles, ask the panel, and decide."""

    options: DRPE
    state = tally.DRPEState

    def phases(self) -> Sequence[declaration.Phase]:
        """Roles, vote, tally."""
        return [self.roles, self.vote, self.tally]

    def fingerprint(self) -> dict[str, Any]:
        """The embedder; and the wording of the sets, which decides what sits by task."""
        # A reworded set is another panel.
        sets = {"sets": reply_log.key_of(SETS)[:12]} if self.panel.by_task else {}
        return {"embeddings": type(self.embeddings).__name__, **sets}

    def task(self, pair: Pair) -> tuple[str, tasks.Task]:
        """The task of a pair, and its name."""
        return tasks.choose_task(self.options.task, pair)

    def orders(self, pair: Pair) -> tuple[Order, ...]:
        """The orders to ask; where it is one, a coin may choose it."""
        options = self.options
        if options.orders != "none" or options.voting.first == "reference":
            return options.order_list
        return ("AB",) if pairs.coin_side(pair, options.seed) == "A" else ("BA",)

    @cached_property
    def embeddings(self) -> Embeddings:
        """The embedder of the roles, where they are clustered."""
        clusters = self.panel.clustering and self.panel.dynamic
        if self.options.embeddings or not clusters:
            return self.options.embeddings or SentenceEmbeddings()
        return default_embeddings(", or no readers: `preset=manual`, or `panel.dynamic` 0")

    @cached_property
    def panels(self) -> effects.SingleFlight[tuple[list[Role], list[Failure]]]:
        """The panels that were seated, for rows of the same text."""
        return effects.SingleFlight()

    @property
    def panel(self) -> Panel:
        """Who sits."""
        return self.options.panel

    def begin(self, state: pairs.PairState, account: Account) -> effects.Update:
        """Check the pair, and say what it is about and whose roles it may share."""
        update = super().begin(state, account)
        name, task = self.task(pairs.pair_of(state))
        return {**update, "task": name, "roles_key": self.key(self._context(state), task)}

    async def roles(self, state: tally.DRPEState, account: Account) -> effects.Update:
        """Seat the panel: the static judges, and diverse readers of the text."""
        pair = pairs.pair_of(state)
        replies = await self._replies(pair, account) if self.panel.dynamic else {}
        # Readers beyond those that were asked for would be votes that nobody counted on.
        distinct = role_selection.distinct_roles(role_selection.proposals(replies))
        proposed = role_selection.first_of_each_kind(distinct, self.panel.readers)
        kinds = {str((reply.data or {}).get("wanted", "")) for reply in replies.values()} - {""}
        if len(kinds) > 1:  # the words of a response fit both
            detail = f"the replies differ on what the text wants: {', '.join(sorted(kinds))}"
            account.fail([reading.Problem("one_of_several", detail).failure("roles", "wanted")])
        said = {"task_kind": kinds.pop()} if len(kinds) == 1 else {}
        name, task = tasks.choose_task(self.options.task, {**pair, **said})
        static = self.panel.static_roles(task)
        names = {role["type"].casefold() for role in static}
        new = [role for role in proposed if role["type"].casefold() not in names]
        roles = [*static, *await self._seated(new, account)]
        effects.emit_each("role", "roles", roles)
        return {"proposed": proposed, "roles": roles, "task": name, **said}

    def _context(self, pair: Pair) -> str:
        """The text that the role prompts see."""
        if self.panel.context == "candidate":
            return texts.shown(pair["output_a"])
        return texts.shown_task(pair["input"])

    def key(self, text: str, task: tasks.Task) -> str:
        """A key that is equal where the same roles would be found."""
        identity = self.context.adapters["roles"].identity
        view = [fences.unsealed(text), self.panel.as_json(), identity, self.context.version]
        about = [self._sought(task), self.panel.static_roles(task)]
        return reply_log.key_of([view, about, self.options.seed])[:16]

    async def _replies(self, pair: pairs.ShownPair, account: Account) -> dict[str, Reply]:
        """Ask for readers of both kinds; rows of the same text share the replies.

        Where nobody says what the texts are, the model that reads the request does.
        """
        panel, text = self.panel, self._context(pair)
        open_task = panel.context == "article" and tasks.is_unsaid(self.options.task, pair)
        variables = {
            "fence_text": fences.fence(text),
            "text": text,
            "sought": self._sought(self.task(pair)[1]),
            "pool": panel.readers,
            "wanted": WORDS["wanted"] if open_task else "",
        }
        shape = tally.readers_shape(panel.readers, panel.merged_prompt, is_open=open_task)
        kinds, asks = self.options.kinds, []
        for kind in kinds:
            question = self.context.question("roles", shape, kind, is_shared=True)
            asks.append(ask(question, variables, account.part(), unit=kind))
        return dict(zip(kinds, await effects.gather(asks), strict=True))

    async def _seated(self, pool: list[Role], account: Account) -> list[Role]:
        """Choose the diverse ones."""
        target, seats = self.panel.dynamic, pool
        if len(pool) < target and (pool or not account.failures):
            few = reading.Problem("missing", f"{len(pool)} usable roles came, {target} were wanted")
            account.fail([few.failure("roles", "")])
        if self.panel.clustering and pool:
            key = json.dumps([pool, target])
            (seats, failures), _ = await self.panels.get(
                key, lambda: self._diverse(pool, target), lambda seated: not seated[1]
            )
            account.fail(failures)
        return seats

    def _sought(self, task: tasks.Task) -> str:
        """The text that readers read: something for the text shown, or that text itself."""
        return "this text" if self.panel.context == "candidate" else task["sought"]

    async def _diverse(self, pool: list[Role], seats: int) -> tuple[list[Role], list[Failure]]:
        """One role for each cluster; the first ones, where the embedder fails."""
        vectors, failures = await embedded(
            self.embeddings,
            [declaration.with_name(role["type"], role["description"]) for role in pool],
            step="roles",
            unit="clustering",
            instead="roles were not clustered, the first ones sit",
        )
        if vectors is None:
            return pool[:seats], failures
        # Loading scikit-learn and clustering take long enough to hold up a loop.
        medoids = await effects.aside(lambda: self._medoids(vectors, seats))
        return [pool[i] for i in sorted(medoids[:seats])], failures

    def _medoids(self, vectors: Sequence[Sequence[float]], seats: int) -> list[int]:
        if self.panel.clustering == "kmeans":
            return role_selection.kmeans_medoids(vectors, seats, self.options.seed)
        return role_selection.dbscan_medoids(vectors)

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


build = DRPESteps.build
create_drpe_judge = factory(DRPE, build, "create_drpe_judge")
