"""The steps of DRPE: generate and choose roles, let them vote, weigh the votes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END
from langgraph.types import Overwrite, Send

from langchain_judges.asking.ask import Question, Reply, ask, recorded
from langchain_judges.asking.embeddings import embedded
from langchain_judges.asking.gate import Once
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Effect, Steps, Update, together
from langchain_judges.memory.example import Example
from langchain_judges.memory.rendering import Reminder, block, cut_failures, told
from langchain_judges.methods.drpe import prompts as texts
from langchain_judges.methods.drpe.cluster import dbscan_medoids, kmeans_medoids
from langchain_judges.methods.drpe.options import Panel, Voting, as_json
from langchain_judges.methods.drpe.roles import distinct
from langchain_judges.methods.drpe.state import (
    Ballot,
    DRPEState,
    RoleVote,
    Work,
    both_readers_shape,
    readers_shape,
    some_votes_shape,
    votes_shape,
)
from langchain_judges.methods.drpe.tally import decide, norm, order_sums, role_votes
from langchain_judges.methods.drpe.votes import confidences, slot_vote, spoken_votes
from langchain_judges.orders import ORDER_NAMES, Order, in_slots, preferred_slot
from langchain_judges.rows.texts import check_pair, fence_token, judged, transcript
from langchain_judges.verdict import (
    Failure,
    Pair,
    Role,
    add_usage,
    cached_usage,
    even_verdict,
    not_judged,
)

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where an article may not fit."""
_KEPT_FREE = 1500
"""Tokens kept free for instructions, roles and the reply."""
_LEAST = 500
"""Characters of an article that are always shown."""


@dataclass(frozen=True)
class PanelSteps:
    """The steps of the method, with their options and questions."""

    panel: Panel
    voting: Voting
    given: tuple[Role, ...] | None
    embeddings: Embeddings
    seed: int
    instructions: str
    namer: Question
    voter: Question
    prompts: Mapping[str, ChatPromptTemplate]
    drawn: Once[Update]
    reminding: Reminder | None = None

    def roles(self, state: DRPEState) -> Steps[Update]:
        """Generate readers, choose diverse ones and seat them beside the static judges."""
        check_pair(state)
        pair = _pair(state)
        fresh: Update = {
            **{key: Overwrite([]) for key in ("ballots", "failures", "usages")},
            **{"votes": [], "proposed": [], "roles": [], "score_norm": None},
            "roles_key": self._roles_key(pair),
            "verdict": None,
        }
        if judged(pair["output_a"]) == judged(pair["output_b"]):
            untouched = self.reminding.untouched if self.reminding else {}
            return {**fresh, **untouched, "verdict": even_verdict()}
        cut = self._cut(pair)
        if self.reminding:
            found = yield from self.reminding.remind(state)
            fresh.update(reminded=found, recalled=found["account"])
            cut += cut_failures(found["account"])
        fresh["failures"] = Overwrite(cut)
        if self.given:
            return {**fresh, "roles": list(self.given)}
        if not self.panel.dynamic:
            return {**fresh, "roles": list(self.panel.static_roles)}
        drawn, reused = yield from self.drawn.get(
            fresh["roles_key"], lambda: self._draw(pair), lambda drawn: bool(drawn["whole"])
        )
        usages = [cached_usage("roles")] if reused else drawn["usages"]
        return {
            **fresh,
            "proposed": drawn["proposed"],
            "roles": drawn["roles"],
            "failures": Overwrite([*cut, *drawn["failures"]]),
            "usages": Overwrite(usages),
        }

    def ask_panel(self, state: DRPEState) -> list[Send] | str:
        """Send the panel, or each of its roles, in every order and as often as sampled."""
        if state.get("verdict"):
            return END
        pair, roles = _pair(state), state["roles"]
        everyone = list(range(len(roles)))
        seats = [everyone] if self.voting.batch else [[i] for i in everyone]
        work: list[Work] = [
            {"pair": pair, "roles": roles, "positions": seat, "order": order, "sample": n}
            for order in self._orders(pair)
            for n in range(self.voting.replies)
            for seat in seats
            if seat
        ]
        if (reminded := state.get("reminded")) and reminded["examples"]:
            work = [{**part, "examples": reminded["examples"]} for part in work]
        return [Send("vote", part) for part in work] or "score"

    def vote(self, work: Work) -> Steps[Update]:
        """Ask the panel, or one role of it, which text is better and why."""
        voters = [work["roles"][i] for i in work["positions"]]
        batch = self.voting.batch
        question = replace(
            self.voter,
            prompt=self.prompts["vote" if batch else "vote_alone"],
            label="vote" if batch else "role",
            shape=votes_shape(len(voters)) if batch else RoleVote,
            partial=some_votes_shape(len(voters)) if batch else None,
            parse=partial(_spoken, roles=voters, batch=batch),
            measure=partial(confidences, roles=voters, kind=self.voting.span, alone=not batch)
            if self.voter.logprobs
            else None,
            measured_as=self.voting.span,
        )
        order, place = work["order"], self._place(work)
        sampled = self.voting.replies > 1
        seed = sample_seed(self.seed, work["sample"]) if sampled else None
        reply = yield from ask(
            question,
            self._material(work["pair"], voters, order, work.get("examples", [])),
            unit=f"{'panel' if batch else voters[0]['type']}{place}",
            order=order,
            seed=seed,
        )
        ballots, missing = _ballots(reply, work, voters, batch, place)
        for ballot in ballots if batch else []:
            role, unit = work["roles"][ballot["position"]], f"{ballot['role']}{place}"
            played = replace(question, label="role")
            yield recorded(played, role, {**ballot}, unit=unit, order=order, seed=seed)
        return {
            "ballots": ballots,
            "failures": [*reply.failures, *missing],
            "usages": [reply.usage],
        }

    def score(self, state: DRPEState) -> Steps[Update]:
        """Sum the weighed votes for each text, and prefer the larger sum."""
        yield from ()
        roles, failures = state["roles"], list(state["failures"])
        ballots, lost = self._weighed(state["ballots"], roles)
        failures += lost
        usage = add_usage(state["usages"])
        sampled = self.voting.replies > 1
        votes = role_votes(roles, ballots, sampled)
        orders = self._orders(_pair(state))
        by_order = {
            order: role_votes(roles, [b for b in ballots if b["order"] == order], sampled)
            for order in orders
        }
        least = self.voting.min_valid or len(roles) // 2 + 1
        valid = min(
            sum(v["preference"] is not None for v in each) for each in by_order.values()
        )
        if not roles or valid < least:
            why = f"Not judged: {valid} of {len(roles)} roles voted, at least {least} must."
            verdict = not_judged(failures, usage, why)
            return {"votes": votes, "score_norm": None, "verdict": verdict}
        sums = {order: order_sums(each) for order, each in by_order.items()}
        verdict = decide(votes, by_order, failures, usage)
        norms = [norm(sums[order], by_order[order]) or 0.0 for order in orders]
        return {"votes": votes, "score_norm": sum(norms) / len(norms), "verdict": verdict}

    def _weighed(
        self, ballots: Sequence[Ballot], roles: Sequence[Role]
    ) -> tuple[list[Ballot], list[Failure]]:
        """Settle what votes weigh where the log-probabilities of some are not known.

        Probabilities and plain ones are never summed together.
        """
        lacking = [ballot for ballot in ballots if ballot["confidence"] is None]
        if self.voting.confidence not in {"auto", "logprobs"} or not lacking:
            return list(ballots), []
        if self.voting.confidence == "auto":
            plain: list[Ballot] = [
                {**b, "confidence": None, "confidence_source": "none", "tokens": None}
                for b in ballots
            ]
            detail = "every vote weighs one: the model gave no token log-probabilities"
            return plain, [_failure("panel", "no_logprobs", detail)]
        detail = "the vote needs token log-probabilities, and the model gave none"
        return (
            [ballot for ballot in ballots if ballot["confidence"] is not None],
            [_failure(roles[b["position"]]["type"], "no_logprobs", detail) for b in lacking],
        )

    def _draw(self, pair: Pair) -> Steps[Update]:
        """Ask for readers of both kinds and choose the diverse ones."""
        asked = ["merged"] if self.panel.merged_prompt else ["coarse", "fine"]
        replies = yield from together([self._ask_readers(pair, kind) for kind in asked])
        named: list[Any] = []
        for kind, reply in zip(asked, replies, strict=True):
            data = reply.data or {}
            parts = {"coarse": data.get("general", []), "fine": data.get("familiarity", [])}
            if not self.panel.merged_prompt:
                parts = {kind: data.get("readers", [])}
            for source, readers in parts.items():
                named += [{**reader, "kind": source} for reader in readers]
        proposed = distinct(named)
        failures = [failure for reply in replies for failure in reply.failures]
        usable, wanted = len(self._new(proposed)), self.panel.dynamic
        if usable < wanted and (usable or not failures):
            detail = f"{usable} usable roles came, {wanted} were wanted"
            failures.append({**_failure("", "missing", detail), "step": "roles"})
        roles, unclustered = yield from self._choose(proposed)
        return {
            "proposed": proposed,
            "roles": roles,
            "failures": failures + unclustered,
            "usages": [reply.usage for reply in replies],
            "whole": all(reply.data for reply in replies) and not unclustered,
        }

    def _new(self, proposed: Sequence[Role]) -> list[Role]:
        """Return the proposed roles that do not sit on the panel already."""
        names = {role["type"].casefold() for role in self.panel.static_roles}
        return [role for role in proposed if role["type"].casefold() not in names]

    def _choose(self, proposed: list[Role]) -> Steps[tuple[list[Role], list[Failure]]]:
        """Return the panel: static roles, and those that stand for their cluster."""
        static = list(self.panel.static_roles)
        pool = self._new(proposed)
        whole = self.panel.clustered == "all"
        pool = static + pool if whole else pool
        failures: list[Failure] = []
        if self.panel.clustering and pool:
            wanted = self.panel.dynamic + (len(static) if whole else 0)
            vectors, failures = yield from embedded(
                self.embeddings,
                [f"{role['type']}: {role['description']}" for role in pool],
                step="roles",
                unit="clustering",
                instead="roles were not clustered, the first ones sit",
            )
            if vectors is None:
                pool = pool[:wanted]
            else:
                # Loading scikit-learn and clustering take long enough to hold up a loop.
                chosen = yield Effect(
                    lambda: self._medoids(vectors, wanted),
                    lambda: asyncio.to_thread(self._medoids, vectors, wanted),
                )
                pool = [pool[i] for i in chosen]
        return (pool if whole else static + pool), failures

    def _medoids(self, vectors: Sequence[Sequence[float]], wanted: int) -> list[int]:
        if self.panel.clustering == "kmeans":
            return kmeans_medoids(vectors, wanted, self.seed)
        return dbscan_medoids(
            vectors,
            eps=self.panel.eps,
            min_samples=self.panel.min_samples,
            most=wanted if self.panel.capped else None,
        )

    def _ask_readers(self, pair: Pair, kind: str) -> Steps[Reply]:
        text, candidate = self._context(pair)
        token = fence_token([text, candidate])
        merged = kind == "merged"
        shape = both_readers_shape if merged else readers_shape
        shown = texts.SUMMARIES.format(fence=token, candidate_1=candidate) if candidate else ""
        return ask(
            replace(self.namer, prompt=self.prompts[kind], shape=shape(self.panel.asked)),
            {"fence": token, "text": text, "summaries": shown, "pool": self.panel.asked},
            unit=kind,
        )

    def _context(self, pair: Pair) -> tuple[str, str]:
        """Return the text and the candidate that the role prompts see."""
        article, candidate = self._article(pair), judged(pair["output_a"])
        if self.panel.context == "candidate":
            return candidate, ""
        return article, candidate if self.panel.context == "both" else ""

    def _article(self, pair: Pair) -> str:
        """Return the article, cut alike for every prompt if a model's context is too short."""
        article = transcript(pair["input"])
        channels = (self.namer.channel, self.voter.channel)
        known = [channel.context for channel in channels if channel.context]
        if not known:
            return article
        # The candidates, the roles and the reply must fit too.
        others = len(judged(pair["output_a"]) + judged(pair["output_b"]))
        others += len(pair.get("reference") or "")
        room = _CHARACTERS * (min(known) - _KEPT_FREE) - others
        return article[: max(room, _LEAST)]

    def _cut(self, pair: Pair) -> list[Failure]:
        whole, shown = len(transcript(pair["input"])), len(self._article(pair))
        if shown == whole:
            return []
        detail = (
            f"the article was cut from {whole:,} to {shown:,} characters to fit the context"
        )
        failure: Failure = {
            "step": "roles",
            "unit": "article",
            "reason": "input_cut",
            "detail": detail,
        }
        return [failure]

    def _roles_key(self, pair: Pair) -> str:
        seats = as_json(self.panel, self.voting)["panel"]
        told = [self._context(pair), seats, self.namer.channel.identity, self.namer.version]
        data = json.dumps([told, self.seed], sort_keys=True, default=str)
        return hashlib.sha256(data.encode()).hexdigest()[:16]

    def _orders(self, pair: Pair) -> tuple[Order, ...]:
        """Return the orders to ask; the papers show the reference first, which is B."""
        if self.voting.order == "both":
            return ("AB", "BA")
        if self.voting.order == "reference_first":
            return ("BA",)
        texts_of = sorted([judged(pair["output_a"]), judged(pair["output_b"])])
        coin = random.Random(f"{self.seed}:{texts_of}:{transcript(pair['input'])}")  # noqa: S311
        first = coin.choice(texts_of)
        return ("AB",) if judged(pair["output_a"]) == first else ("BA",)

    def _place(self, work: Work) -> str:
        """Return what tells a call from its like in names: the order of two, the sample."""
        marks = [ORDER_NAMES[work["order"]]] if self.voting.order == "both" else []
        marks += [f"sample {work['sample'] + 1}"] if self.voting.replies > 1 else []
        return f" ({', '.join(marks)})" if marks else ""

    def _material(
        self, pair: Pair, voters: Sequence[Role], order: Order, examples: Sequence[Example]
    ) -> dict[str, object]:
        text = self._article(pair)
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        first, second = in_slots(order, a, b)
        lines = [f"{i + 1}. {r['type']}: {r['description']}" for i, r in enumerate(voters)]
        added = self.instructions
        known = pair.get("reference") or ""
        token = fence_token([text, a, b, *([known] if known else []), *told(examples)])
        asked = texts.INSTRUCTIONS.format(instructions=added) if added else ""
        if known:
            asked += texts.REFERENCE.format(fence=token, reference=known)
        return {
            "fence": token,
            "text": text,
            "candidate_1": first,
            "candidate_2": second,
            "roles": "\n".join(lines) if self.voting.batch else lines[0].removeprefix("1. "),
            "request": texts.REQUESTS[self.voting.variant],
            "instructions": asked + block(examples, token, order=order, noun="candidate"),
        }


def _pair(state: DRPEState) -> Pair:
    return {
        "input": state["input"],
        "output_a": state["output_a"],
        "output_b": state["output_b"],
        "reference": state.get("reference"),
    }


def _spoken(text: str, roles: Sequence[Role], batch: bool) -> dict[str, Any] | None:
    """Read votes in plain words into the shape that JSON replies have."""
    found = spoken_votes(text, roles, alone=not batch)
    data = {
        f"role_{position + 1}": {"reason": vote.reason, "vote": vote.vote}
        for position, vote in found.items()
    }
    return (data or None) if batch else data.get("role_1")


def _ballots(
    reply: Reply, work: Work, voters: Sequence[Role], batch: bool, place: str
) -> tuple[list[Ballot], list[Failure]]:
    """Return the usable ballots of a reply, and a failure for every role without one."""
    if reply.data is None:
        return [], []
    ballots: list[Ballot] = []
    failures: list[Failure] = []
    for i, (position, role) in enumerate(zip(work["positions"], voters, strict=True)):
        name = f"role_{i + 1}"
        said = reply.data.get(name) if batch else reply.data
        vote = slot_vote(said)
        if vote is None:
            reason = "missing" if said is None else "invalid_label"
            detail = f"no vote for 1 or 2 from {role['type']}{place}: {str(said)[:80]}"
            failures.append(_failure(role["type"], reason, detail))
            continue
        known = reply.measured.get(name)
        ballots.append(
            {
                "position": position,
                "role": role["type"],
                "order": work["order"],
                "sample": work["sample"],
                "preference": preferred_slot(work["order"], vote.vote),
                "reason": vote.reason,
                "confidence": float(known[0]) if known else None,
                "confidence_source": "logprobs" if known else "none",
                "tokens": int(known[1]) if known else None,
            }
        )
    return ballots, failures


def _failure(unit: str, reason: Any, detail: str) -> Failure:
    return {"step": "vote", "unit": unit, "reason": reason, "detail": detail}
