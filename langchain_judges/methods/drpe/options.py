"""The options of a DRPE judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, cast

from langchain_core.embeddings import Embeddings
from pydantic import BeforeValidator, model_validator

from langchain_judges.errors import OptionError
from langchain_judges.methods.drpe import prompts as texts
from langchain_judges.methods.drpe.evidence import EVIDENCE, sketch
from langchain_judges.methods.drpe.panel import Panel, Voting
from langchain_judges.methods.drpe.roles import RoleLike, read_roles
from langchain_judges.methods.options import Budget, OtherModel, Seed, check_quorum
from langchain_judges.methods.second_order import TwoOrders
from langchain_judges.methods.tasks import AutoTask
from langchain_judges.options import NotSerialisable, Rule, group
from langchain_judges.orders import Order, OrderRule
from langchain_judges.verdict import Role


def _manual(roles: object) -> object:
    if roles is None:
        return None
    panel = read_roles(roles, "manual") if not isinstance(roles, str) else ()
    if not panel:
        raise OptionError(f"`roles` must be at least one role, got {roles!r}")
    return panel


class DRPE(TwoOrders):
    """Create a judge that is a panel of role-players (Wu et al. 2023, DRPE).

    `roles` generates readers of the text by two prompts, clusters them for diversity and
    adds them to the static judges; `vote` asks the panel which text is better, all in one call;
    `score` sums the votes for each text, each weighed by the length-normalised probability of
    its own tokens (equation 4). With the defaults that is three calls; roles of one text are
    generated once and serve every pair that shares it.

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
    evidence = EVIDENCE
    sketches = (sketch,)
    templates = texts.PROMPTS

    panel: Annotated[
        Panel | Mapping[str, Any], group(Panel), Rule("a Panel or its fields by name")
    ] = Panel()
    """Who is on the panel: a `Panel`, or its fields by name."""
    voting: Annotated[
        Voting | Mapping[str, Any], group(Voting), Rule("a Voting or its fields by name")
    ] = Voting()
    """How the panel votes: a `Voting`, or its fields by name."""
    task: AutoTask = "auto"
    """`"summary"`, `"helpful"`, `"harmless"`, `"document"`, `"dialogue"`, `"text"`; or
    `"auto"`: a summary or a dialogue if the pair obviously is one, `"text"` if both are about a
    long text without a request, otherwise `"helpful"`; or `{"question", "quality", "about",
    "sought", "everyone", "panel"}` of your own, the first required."""
    orders: OrderRule = "none"
    """`"none"` (the papers: one order, B first), `"score_mean"` (the sums of both orders are
    averaged), `"strict"` (a text wins if both orders prefer it) or `"lenient"`."""
    roles: Annotated[
        Sequence[RoleLike] | None, BeforeValidator(_manual), Rule("a list of roles")
    ] = None
    """A fixed panel, such as another result's `roles`; no roles are generated then."""
    role_model: OtherModel = None
    """Generates roles instead of `model`."""
    embeddings: Annotated[
        Embeddings | None, NotSerialisable(), Rule("a LangChain `Embeddings` or None")
    ] = None
    """Embeds `"type: description"` for clustering; default all-MiniLM-L6-v2."""
    seed: Seed = 0
    """Seed of the clustering, of sampled votes and of the coin for `Voting(first="random")`."""

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
    def single(self) -> Order:
        """The order of a judge that asks one: B first."""
        return "BA"

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
    def _orders_follow_each_other(self) -> Self:
        self.refuse_waiting({"`voting.adaptive`": bool(self.poll.adaptive)})
        return self

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
