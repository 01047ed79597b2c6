"""DRPE judging a pair: roles → vote → score (Wu et al. 2023, figure 2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any, Self, cast

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, StateGraph
from langgraph.types import Send
from pydantic import BeforeValidator, model_validator

from langchain_judges.asking.ask import Question, ask, recorded
from langchain_judges.asking.embeddings import SentenceEmbeddings, default_embeddings
from langchain_judges.asking.gate import Once
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.rendering import RememberedPair, block, told
from langchain_judges.methods.budgets import Budget
from langchain_judges.methods.drpe import prompts as texts
from langchain_judges.methods.drpe.ballots import (
    read_ballots,
    spoken,
    vote_failure,
    weighed,
)
from langchain_judges.methods.drpe.evidence import EVIDENCE, sketch
from langchain_judges.methods.drpe.options import Panel, Voting
from langchain_judges.methods.drpe.replies import (
    DRPEResult,
    DRPEState,
    RoleVote,
    Work,
    both_readers_shape,
    readers_shape,
    some_votes_shape,
    votes_shape,
)
from langchain_judges.methods.drpe.roles import RoleLike, read_roles, sets_mark
from langchain_judges.methods.drpe.seats import Context, Seating
from langchain_judges.methods.drpe.stopping import next_roles
from langchain_judges.methods.drpe.tally import decide, divided, norm, order_sums, role_votes
from langchain_judges.methods.drpe.votes import ALTERNATIVES, confidences, soft_votes
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.methods.options import JudgeOptions, OtherModel, Seed, check_quorum
from langchain_judges.methods.pairs import (
    Next,
    PairState,
    PairSteps,
    begin,
    examples_in,
    pair_of,
)
from langchain_judges.methods.setup import Setup
from langchain_judges.methods.stopping import not_asked_sentence
from langchain_judges.methods.tasks import AutoTask, Task, settle
from langchain_judges.options import Here, Rule, factory, group
from langchain_judges.orders import ORDER_NAMES, Order, OrderRule, in_slots, orders_of
from langchain_judges.rows.texts import fence_token, judged, transcript
from langchain_judges.verdict import Failure, Pair, Role, add_usage, cached_usage, not_judged

_CHARACTERS = 3
"""Characters of a token, by a cautious guess, where an article may not fit."""
_KEPT_FREE = 1500
"""Tokens kept free for instructions, roles and the reply."""
_LEAST = 500
"""Characters of an article that are always shown."""


def _manual(roles: object) -> object:
    if roles is None:
        return None
    read = read_roles(roles, "manual") if not isinstance(roles, str) else ()
    if not read:
        raise OptionError(f"`roles` must be at least one role, got {roles!r}")
    return read


class DRPE(JudgeOptions):
    """Create a judge that is a panel of role-players (Wu et al. 2023, DRPE).

    `roles` generates readers of the text by two prompts, clusters them for diversity and
    seats them beside the static judges; `vote` asks the panel which text is better, all in
    one call; `score` sums the votes for each text, each weighed by the length-normalised
    probability of its own tokens (equation 4). With the defaults that is three calls; roles
    of one text are generated once and serve every pair that shares it.

    `task` says what the two texts are, and so which question is asked, what the generated
    readers look for something in, and which static judges sit: the paper writes them by hand
    for each task, and gives those for summaries. By default it is chosen from the pair where
    it is obvious, and the result says which.

    A is the candidate and B the reference, as in the NLPCC version; the first version
    compares any two summaries. A pair's own `reference`, beside the two, is shown to the
    voters. Where the papers are silent or we differ: generated roles
    alone are clustered, so that the static judges always sit; two role prompts and a
    comparison are three calls, not two (`Panel(merged_prompt=True)` makes them two); where
    a model gives no log-probabilities every vote weighs one, and a note says so; an article
    longer than the model's context is cut, alike for every prompt, and flagged `input_cut`;
    where the embedder fails the first generated roles sit, and a failure says so.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "task", "roles", "proposed", "votes",
        "score_norm", "roles_key", "not_asked"}`. `verdict.scores` are the sums of equation
        4, the mean of those of both orders; `verdict.score` is A's share of them, 0.5 for a
        tie; `score_norm` is A's sum over the valid votes.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "drpe"
    summary = "DRPE: a panel of static and generated role-players votes; votes are weighed."
    presets = {
        "drpe": {},
        "drpe_v1": {
            "panel": {
                "dynamic": 5,
                # About five in all are named, not five of each kind.
                "pool": 3,
                "clustering": "dbscan",
                "capped": True,
                "merged_prompt": True,
            },
            "voting": {"first": "random"},
        },
        "manual": {"panel": {"static": "manual", "dynamic": 0}},
        "no_batch": {"voting": {"batch": False}},
        "no_clustering": {"panel": {"clustering": None}},
        "no_dynamic": {"panel": {"dynamic": 0}},
        "no_static": {"panel": {"static": []}},
    }
    # Four readers or more, each asked alone, as many as the paper's sweep has; else a panel
    # of seven asked at once; else the static roles.
    budgets = (
        Budget(5, 1, "panel.dynamic", least=4, most=6, also={"voting": {"batch": False}}),
        Budget(3),
        Budget(1, also={"panel": {"dynamic": 0}}),
    )
    events = {"roles": "role", "ballots": "vote"}
    evidence = EVIDENCE
    sketches = (sketch,)
    templates = texts.PROMPTS

    panel: Annotated[
        Panel | Mapping[str, Any], group(Panel), Rule("a Panel or its fields by name")
    ] = Panel()
    """Who sits; a `Panel`, or its fields by name."""
    voting: Annotated[
        Voting | Mapping[str, Any], group(Voting), Rule("a Voting or its fields by name")
    ] = Voting()
    """How they vote; a `Voting`, or its fields by name."""
    task: AutoTask = "auto"
    """`"summary"`, `"helpful"`, `"harmless"`, `"document"`, `"dialogue"`; `"auto"`, a summary
    or a dialogue where the pair obviously is one, else `"helpful"`; or `{"question", "quality",
    "about", "sought", "everyone", "panel"}` of your own, the first required."""
    orders: OrderRule = "none"
    """`"none"` (the papers: one order, B first), `"score_mean"` (the sums of both orders are
    averaged), `"strict"` (a text wins if both orders prefer it) or `"lenient"`."""
    roles: Annotated[
        Sequence[RoleLike] | None, BeforeValidator(_manual), Rule("a list of roles")
    ] = None
    """A panel to use as it is, such as another result's `roles`; nothing is generated then."""
    role_model: OtherModel = None
    """Generates roles instead of `model`."""
    embeddings: Annotated[
        Embeddings | None, Here(), Rule("a LangChain `Embeddings` or None")
    ] = None
    """Embeds `"type: description"` for clustering; default all-MiniLM-L6-v2."""
    seed: Seed = 0
    """Of the clustering, of sampled votes and of the coin for `Voting(first="random")`."""

    @property
    def seating(self) -> Panel:
        """Who sits."""
        return cast("Panel", self.panel)

    @property
    def poll(self) -> Voting:
        """How they vote."""
        return cast("Voting", self.voting)

    @property
    def manual(self) -> list[Role]:
        """The roles that are used as they are."""
        return cast("list[Role]", list(self.roles or ()))

    @property
    def order_list(self) -> tuple[Order, ...]:
        """The orders that are asked; a single one shows B first."""
        return ("BA",) if self.orders == "none" else orders_of(self.orders)

    @property
    def seats(self) -> int:
        """The most roles that can sit."""
        return len(self.manual) or self.seating.most()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of readers, each asked for by a prompt of its own."""
        return ("merged",) if self.seating.merged_prompt else ("coarse", "fine")

    @property
    def generates(self) -> bool:
        """Whether a model is asked for roles."""
        return bool(self.seating.dynamic) and not self.roles

    @model_validator(mode="after")
    def _quorum_can_be_met(self) -> Self:
        check_quorum(self.poll.min_valid, self.seats)
        return self

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        seats = 1 if self.poll.batch else self.seats
        return max(2, len(self.order_list) * self.poll.replies * seats)

    def calls(self) -> int:
        """Return the calls for one pair with a full panel, excluding repairs."""
        seats = 1 if self.poll.batch else self.seats
        votes = len(self.order_list) * self.poll.replies * seats
        return votes + (len(self.kinds) if self.generates else 0)

    def build(self, model: str | BaseChatModel) -> JudgeGraph:
        """Return the judge."""
        clusters = self.seating.clustering and self.generates
        embeddings = self.embeddings or (
            default_embeddings() if clusters else SentenceEmbeddings()
        )
        others = {"roles": self.role_model, "vote": None}
        setup = Setup.of(self, model, others, shown=("vote",))
        return _graph(PanelSteps(setup, self, embeddings, Once()))


@dataclass(frozen=True)
class PanelSteps(PairSteps):
    """The steps of the method."""

    own: DRPE
    embeddings: Embeddings
    drawn: Once[Update]
    lists = ("ballots",)
    empty = {
        "votes": [],
        "proposed": [],
        "roles": [],
        "score_norm": None,
        "asked": 0,
        "due": [],
        "not_asked": [],
    }

    @property
    def noun(self) -> str:
        """What a prompt calls a judged text."""
        return "candidate"

    @cached_property
    def seating(self) -> Seating:
        """How roles are found."""
        panel = self.own.seating
        shape = both_readers_shape if panel.merged_prompt else readers_shape
        questions = {
            kind: self.setup.question("roles", shape(panel.asked), kind)
            for kind in self.own.kinds
        }
        return Seating(panel, questions, self.embeddings, self.own.seed)

    def begin(self, state: PairState) -> Update:
        """Check the pair, and say what it is about and whose roles it may share."""
        update = super().begin(state)
        name, task = self._task(pair_of(state))
        return {
            **update,
            "task": name,
            "roles_key": self.seating.key(self._context(state), task),
        }

    def roles(self, state: DRPEState) -> Steps[Update]:
        """Seat the panel: the static judges, and diverse readers of the text."""
        own, cut = self.own, self._cut(pair_of(state))
        _, task = self._task(pair_of(state))
        if not own.generates:
            roles = own.manual or list(own.seating.static_roles(task))
            return {"roles": roles, "failures": cut}
        drawn, reused = yield from self.drawn.get(
            state["roles_key"],
            lambda: self.seating.draw(self._context(state), task),
            lambda drawn: bool(drawn["whole"]),
        )
        return {
            "proposed": drawn["proposed"],
            "roles": drawn["roles"],
            "failures": [*cut, *drawn["failures"]],
            "usages": [cached_usage("roles")] if reused else drawn["usages"],
        }

    def choose(self, state: DRPEState) -> Update:
        """Say which roles are due: the next ones, while they can change the verdict."""
        roles, asked = state["roles"], state["asked"]
        orders = self._orders(pair_of(state))
        more = next_roles(self.own, roles, state["ballots"], orders, asked)
        upto = asked + more
        return {
            "asked": upto,
            "due": list(range(asked, upto)),
            "not_asked": [role["type"] for role in roles[upto:]],
        }

    def ask_panel(self, state: DRPEState) -> Next:
        """Send the panel, or each of its roles, in every order and as often as sampled."""
        pair = pair_of(state)
        due = state["due"] if self.own.poll.adaptive else range(len(state["roles"]))
        return [
            Send(
                "vote",
                Work(
                    pair=pair,
                    roles=state["roles"],
                    positions=seat,
                    order=order,
                    sample=sample,
                    examples=examples_in(state),
                ),
            )
            for order in self._orders(pair)
            for sample in range(self.own.poll.replies)
            for seat in self._seats(pair, due, sample)
            if seat
        ] or "score"

    def _seats(self, pair: Pair, due: Sequence[int], sample: int) -> list[list[int]]:
        """Return the positions that each call asks, in the order in which it shows them."""
        if not self.own.poll.batch:
            return [[i] for i in due]
        everyone = list(due)
        if self.own.poll.shuffled:
            # The same for both orders, whichever text is A.
            random.Random(f"{self._chance(pair)}:{sample}").shuffle(everyone)  # noqa: S311
        return [everyone]

    def vote(self, work: Work) -> Steps[Update]:
        """Ask the panel, or one role of it, which text is better and why.

        In a trace every role of a panel that was asked at once has a run of its own.
        """
        voters = [work["roles"][i] for i in work["positions"]]
        question, batch, order = self._question(voters), self.own.poll.batch, work["order"]
        place = self._place(work)
        sampled = self.own.poll.replies > 1
        seed = sample_seed(self.own.seed, work["sample"]) if sampled else None
        reply = yield from ask(
            question,
            self._shown(work, voters),
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

    def score(self, state: DRPEState) -> Update:
        """Sum the weighed votes for each text, and prefer as the rule of orders says."""
        poll = self.own.poll
        roles = state["roles"][: state["asked"] if poll.adaptive else None]
        ballots, unweighed = weighed(state["ballots"], poll.confidence)
        usage, sampled = add_usage(state["usages"]), poll.replies > 1
        votes = role_votes(roles, ballots, sampled)
        by_order = {
            order: role_votes(roles, [b for b in ballots if b["order"] == order], sampled)
            for order in self._orders(pair_of(state))
        }
        failures = [*state["failures"], *unweighed, *divided(by_order)]
        least = poll.min_valid or len(roles) // 2 + 1
        valid = min(
            sum(vote["preference"] is not None for vote in each) for each in by_order.values()
        )
        if not roles or valid < least:
            why = f"{valid} of {len(roles)} roles voted, at least {least} must"
            failures = failures or [vote_failure("panel", "missing", why)]
            verdict = not_judged(failures, usage, f"Not judged: {why}.")
            return {"votes": votes, "score_norm": None, "verdict": verdict}
        soft = poll.confidence == "soft"
        norms = [norm(order_sums(each, soft), each) or 0.0 for each in by_order.values()]
        verdict = decide(votes, by_order, self.own.orders, failures, usage, soft)
        verdict["rationale"] += not_asked_sentence(state["not_asked"], poll.adaptive)
        return {"votes": votes, "score_norm": sum(norms) / len(norms), "verdict": verdict}

    def _question(self, voters: Sequence[Role]) -> Question:
        poll, batch = self.own.poll, self.own.poll.batch
        measured, soft = poll.confidence in {"auto", "logprobs"}, poll.confidence == "soft"
        measure = partial(confidences, kind=poll.span) if measured else soft_votes
        return self.setup.question(
            "vote",
            votes_shape(len(voters)) if batch else RoleVote,
            "vote" if batch else "vote_alone",
            label="vote" if batch else "role",
            partial=some_votes_shape(len(voters)) if batch else None,
            parse=partial(spoken, roles=voters, batch=batch),
            measure=partial(measure, roles=voters, alone=not batch)
            if measured or soft
            else None,
            measured_as="soft" if soft else poll.span,
            sampled=poll.replies > 1,
            logprobs=measured or soft,
            alternatives=ALTERNATIVES if soft else 0,
        )

    def _context(self, state: PairState) -> Context:
        """Return the text and the candidate that the role prompts see."""
        pair, sees = pair_of(state), self.own.seating.context
        article, candidate = self._article(pair), judged(pair["output_a"])
        if sees == "candidate":
            return Context(candidate, "")
        return Context(article, candidate if sees == "both" else "")

    def _article(self, pair: Pair) -> str:
        """Return the article, cut alike for every prompt if a model's context is too short."""
        article = transcript(pair["input"])
        contexts = [channel.context for channel in self.setup.channels.values()]
        known = [context for context in contexts if context]
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
        return [{"step": "roles", "unit": "article", "reason": "input_cut", "detail": detail}]

    def _orders(self, pair: Pair) -> tuple[Order, ...]:
        """Return the orders to ask; where it is one, a coin may choose it."""
        own = self.own
        if own.orders != "none" or own.poll.first == "reference":
            return own.order_list
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        coin = random.Random(self._chance(pair))  # noqa: S311
        return ("AB",) if a == coin.choice(sorted([a, b])) else ("BA",)

    def _task(self, pair: Pair) -> tuple[str, Task]:
        return settle(self.own.task, pair)

    def _chance(self, pair: Pair) -> str:
        """Return what coins hang on: the judge's seed and the pair, whichever text is A."""
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        return f"{self.own.seed}:{sorted([a, b])}:{transcript(pair['input'])}"

    def _place(self, work: Work) -> str:
        """Return what tells a call from its like in names: the order of two, the sample."""
        marks = [ORDER_NAMES[work["order"]]] if self.own.orders != "none" else []
        marks += [f"sample {work['sample'] + 1}"] if self.own.poll.replies > 1 else []
        return f" ({', '.join(marks)})" if marks else ""

    def _shown(self, work: Work, voters: Sequence[Role]) -> dict[str, object]:
        """Return the variables of the prompt that asks for votes."""
        pair, order, examples = work["pair"], work["order"], work["examples"]
        text, reference = self._article(pair), pair.get("reference") or ""
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        first, second = in_slots(order, a, b)
        token = fence_token([text, a, b, *filter(None, [reference]), *told(examples)])
        shown = texts.REFERENCE.format(fence=fence_token([reference]), reference=reference)
        answer, (_, task) = shown if reference else "", self._task(pair)
        lessons = block(examples, token, order=order, noun=self.noun)
        described = [f"{role['type']}: {role['description']}" for role in voters]
        lines = [f"{number}. {line}" for number, line in enumerate(described, 1)]
        return {
            "fence_text": fence_token([text]),
            "fence_1": fence_token([first]),
            "fence_2": fence_token([second]),
            "text": text,
            "about": task["about"].replace("{noun}", self.noun),
            "everyone": task["everyone"],
            "candidate_1": first,
            "candidate_2": second,
            "roles": "\n".join(lines if self.own.poll.batch else described),
            "request": texts.REQUESTS[self.own.poll.variant].format(question=task["question"]),
            "instructions": self.frame(pair, answer + lessons)["instructions"],
        }


def _graph(steps: PanelSteps) -> JudgeGraph:
    graph: StateGraph[DRPEState, None, Any, Any] = StateGraph(
        DRPEState, input_schema=RememberedPair, output_schema=DRPEResult
    )
    graph.add_node("roles", steps.setup.node(steps.roles))
    graph.add_node("vote", steps.setup.node(steps.vote))
    graph.add_node("score", steps.setup.plain(steps.score))
    begin(graph, steps, lambda _: "roles", ["roles"])
    before = "roles"
    if steps.own.poll.adaptive:
        before = "choose"
        graph.add_node("choose", steps.setup.plain(steps.choose))
        graph.add_edge("roles", "choose")
    graph.add_conditional_edges(before, steps.ask_panel, ["vote", "score"])
    graph.add_edge("vote", "choose" if steps.own.poll.adaptive else "score")
    graph.add_edge("score", END)
    # What sits by task is decided by the wording of the sets.
    sets = {"sets": sets_mark()} if steps.own.seating.static is None else {}
    return steps.setup.finish(graph, embeddings=type(steps.embeddings).__name__, **sets)


create_drpe_judge = factory(DRPE, DRPE.build, "create_drpe_judge")
