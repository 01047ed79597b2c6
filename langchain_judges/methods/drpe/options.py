"""The options of a DRPE judge, and the roles that they name or hold.

Ready-made roles stand in `roles.yaml`: a set for each task (`methods/tasks.py`), and the six
fixed ones of the first version (MDRPE).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge
from langchain_core.embeddings import Embeddings
from pydantic import BeforeValidator, model_validator

from langchain_judges.asking.models import ModelLike
from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.lazy import packaged
from langchain_judges.methods import declaration, pairs, tasks
from langchain_judges.options import NotSerialisable, Options, Rule
from langchain_judges.orders import Order, OrderRule
from langchain_judges.verdict import Role

PROMPTS = "drpe/prompts.yaml"
# What the prompts are filled with.
WORDS = pairs.words_in(PROMPTS)

# A role as callers write it: `"type: description"`, or `{"type", "description"}`.
RoleLike = str | Mapping[str, str]

RoleKind = Literal["static", "coarse", "fine", "manual"]


def _roles(kind: RoleKind, described: Mapping[str, str]) -> tuple[Role, ...]:
    return tuple(
        {"type": name, "description": description, "kind": kind}
        for name, description in described.items()
    )


_ROLES_YAML = packaged(__package__, "roles.yaml")

# Manual roles with a point of view: the first version's three, and three of ours, so that their
# number can be varied up to six.
SUBJECTIVE = _roles("manual", _ROLES_YAML["subjective"])
# Manual roles with a point of view for other tasks than summaries.
VIEWS = _roles("manual", _ROLES_YAML["views"])


def manual_roles(panel: str) -> tuple[Role, ...]:
    """The six fixed roles of the first version (MDRPE) for a task.

    Three have a point of view; the others are the static ones of the task. For summaries all
    are the paper's.

    Args:
        panel: The set of static roles that the task names.
    """
    if panel in {"summary", "manual"}:
        return (*SUBJECTIVE[:3], *_roles("manual", _ROLES_YAML["static"]["summary"]))
    return (*VIEWS, *_roles("manual", _ROLES_YAML["static"][panel]))


# The sets of roles by name.
SETS: Mapping[str, tuple[Role, ...]] = {
    **{name: _roles("static", described) for name, described in _ROLES_YAML["static"].items()},
    "manual": manual_roles("summary"),
}


def read_roles(value: object) -> tuple[Role, ...]:
    """The roles that a caller named or wrote.

    Raises:
        OptionError: There is no such set, a role has no type or description, or two roles
            have the same type.
    """
    if isinstance(value, str):
        if value not in SETS:
            hint = f"; {did_you_mean(value, SETS)}".rstrip("; ")
            rule = f"must be one of {sorted(SETS)!r} or roles"
            raise OptionError(f"`static` {rule}, got {value!r}{hint}")
        return SETS[value]
    if not isinstance(value, Sequence):
        raise OptionError(f"`static` must be a list or the name of a set, got {value!r}")
    roles = tuple(map(_role, value))
    names = [role["type"].casefold() for role in roles]
    if len(set(names)) < len(names):
        raise OptionError(f"`static` must have distinct types, got {names!r}")
    return roles


def _role(value: object) -> Role:
    fields = value if isinstance(value, Mapping) else {}
    if isinstance(value, str):
        fields = dict(zip(("type", "description"), declaration.name_and_text(value), strict=True))
    texts = [fields.get(field) for field in ("type", "description")]
    is_told = all(isinstance(text, str) and text.strip() for text in texts)
    if not is_told or fields.keys() - Role.__annotations__.keys():
        raise OptionError(declaration.WORDS["role"].format(value))
    name, description = (str(text).strip() for text in texts)
    return {"type": name, "description": description, "kind": fields.get("kind", "static")}


RoleContext = Literal["article", "candidate"]
Clustering = Literal["kmeans", "dbscan"]
ConfidenceKind = Literal["auto", "logprobs", "samples", "none"]


def _static(roles: object) -> object:
    if roles is None:
        return None
    panel = read_roles(roles)
    return roles if isinstance(roles, str) else panel


class Panel(Options):
    """The members of the panel (DRPE, section 3.1).

    Attributes:
        static: Roles that always sit: a set by name (`"summary"`, the paper's three,
            `"question_answering"`, `"dialogue"`, `"document"`, `"harmlessness"`), or roles of
            your own; None: the set that fits the `task`; `"manual"`: that set, and the first
            version's three with a point of view.
        dynamic: Roles generated for the text that sit too; 0 generates none.
        merged_prompt: Ask for both kinds of readers in one call instead of two.
        context: What the role prompts see: the article, or the candidate.
        clustering: How diverse roles are chosen among the generated ones, static ones always
            sit (our reading): `"kmeans"` (NLPCC version); `"dbscan"` (first version), of at
            most `dynamic` readers, larger clusters first; None keeps every role.
    """

    called = "panel"

    static: Annotated[
        str | Sequence[RoleLike] | None,
        BeforeValidator(_static),
        Rule("roles, or the name of a set"),
    ] = None
    dynamic: Annotated[int, Ge(0)] = 4
    merged_prompt: bool = False
    context: RoleContext = "article"
    clustering: Clustering | None = "kmeans"

    @model_validator(mode="after")
    def _somebody_sits(self) -> Self:
        if self.static is not None and not self.static_roles() and not self.dynamic:
            raise OptionError("a panel needs `static` roles, `dynamic` ones, or both")
        return self

    def as_json(self) -> dict[str, Any]:
        """The options as plain JSON, with the static roles in full.

        A set may be reworded under the same name, and is then another panel. Where the task
        decides who sits, the fingerprint holds the wording of all sets.
        """
        if self.by_task:
            return super().as_json()
        return {**super().as_json(), "static": [dict(role) for role in self.static_roles()]}

    def static_roles(self, task: tasks.Task | None = None) -> tuple[Role, ...]:
        """The roles that always sit.

        Args:
            task: The task whose set of roles is used where none are named, or besides the
                manual ones.
        """
        panel = (task or tasks.TASKS["summary"])["panel"]
        if self.static == "manual":
            return manual_roles(panel)
        return SETS[panel] if self.static is None else read_roles(self.static)

    @property
    def by_task(self) -> bool:
        """Whether the task decides who always sits."""
        return self.static is None or self.static == "manual"

    @property
    def readers(self) -> int:
        """The readers that each prompt asks for; the first version asked for few in all."""
        return -(-self.dynamic // 2) if self.clustering == "dbscan" else max(4, self.dynamic)

    def most(self) -> int:
        """The most roles that can sit."""
        static = len(self.static_roles())
        if not self.dynamic:
            return static
        return static + (self.dynamic if self.clustering else 2 * self.readers)


class Voting(Options):
    """The vote of the panel (DRPE, section 3.2).

    Attributes:
        batch: Ask all roles in one call; False asks each by itself.
        confidence: What a vote weighs: `"logprobs"`, the probability of the tokens of its
            reason and label (the paper); `"samples"`, how often the role votes so in `samples`
            replies; `"none"`, one; `"auto"`, log-probabilities where there are any, else one.
        samples: Replies with `confidence="samples"`; with an even number a role may be split.
        first: What comes first if a single order is asked: `"reference"`, which is B
            (NLPCC version), or either text, by a coin seeded by the pair (first version).
        common_ground: Tell the panel what counts for every judge, such as a wrong answer
            (ours). It makes subjective judges more alike, so the papers' presets leave it out.
    """

    called = "voting"

    batch: bool = True
    confidence: ConfidenceKind = "auto"
    samples: Annotated[int, Ge(2)] = 5
    first: Literal["reference", "random"] = "reference"
    common_ground: bool = True

    @property
    def replies(self) -> int:
        """The number of replies with the same votes."""
        return self.samples if self.confidence == "samples" else 1


class DRPE(declaration.JudgeOptions):
    """Create a judge that is a panel of role-players (Wu et al. 2023, DRPE).

    `roles` generates readers of the text by two prompts, clusters them for diversity and
    adds them to the static judges; `vote` asks the panel which text is better, all in one call;
    `score` sums the votes for each text, each weighed by the length-normalised probability of
    its own tokens (equation 4). With the defaults that is three calls; roles of one text are
    generated once and serve every pair that shares it.

    `task` says what the two texts are. It decides the question, what the generated readers
    read, and which static judges sit; the paper writes these by hand for each task, and gives
    those for summaries. By default the model that names the readers says whether a summary is
    wanted, in whatever language, and the result says which it is.

    A is the candidate and B the reference, as in the NLPCC version; the first version
    compares any two summaries. A pair's own `reference`, beside the two, is shown to the
    voters. Where the papers are silent or we differ: generated roles
    alone are clustered, so that the static judges always sit; two role prompts and a
    comparison are three calls, not two (`Panel(merged_prompt=True)` makes them two); where
    a model gives no log-probabilities every vote weighs one, and a note says so; where the
    embedder fails the first generated roles sit, and a failure says so.

    Attributes:
        panel: Who is on the panel: a `Panel`, or its fields by name.
        voting: How the panel votes: a `Voting`, or its fields by name.
        task: `"summary"`, `"helpful"`, `"harmless"`, `"document"`, `"dialogue"`, `"response"`
            (any text); `"auto"`: the row's `task_kind`, else what the model says, if it is
            asked for readers; or `{"question", "quality", "about", "sought", "everyone",
            "panel"}` of your own, the first required.
        orders: `"none"` (the paper: one order, B first), `"score_mean"`, `"strict"` or
            `"lenient"`.
        role_model: Generates roles instead of `model`.
        embeddings: Embeds `"type: description"` for clustering; default all-MiniLM-L6-v2.
        seed: Seed of the clustering, of sampled votes and of the coin.

    Returns:
        A compiled graph from `Pair` to `{"verdict", "task", "roles", "proposed", "votes",
        "score_norm", "roles_key"}`. `verdict.scores` are the sums of equation
        4, the mean of those of both orders; `verdict.score` is A's share of them, 0.5 for a
        tie; `score_norm` is A's sum over the valid votes.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """

    method = "drpe"
    summary = "DRPE: a panel of static and generated role-players votes; votes are weighed."
    few = {"panel": {"dynamic": 0}}
    result_tables = {"votes": "Votes of the panel"}
    templates = pairs.prompts_in(PROMPTS, "drpe")
    examples_in = ("vote",)
    results = ("roles", "proposed", "votes", "score_norm", "roles_key", "task")

    panel: Panel = Panel()
    voting: Voting = Voting()
    task: tasks.AutoTask = "auto"
    orders: OrderRule = "none"
    role_model: declaration.OtherModel = None
    embeddings: Annotated[
        Embeddings | None, NotSerialisable(), Rule("a LangChain `Embeddings` or None")
    ] = None
    seed: declaration.Seed = 0

    @property
    def models(self) -> Mapping[str, ModelLike | None]:
        """The steps that ask a model, each with its own or None."""
        return {"roles": self.role_model, "vote": None}

    @property
    def single(self) -> Order:
        """The order of a judge that asks one: B first."""
        return "BA"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of readers, each asked for by a prompt of its own."""
        return ("merged",) if self.panel.merged_prompt else ("coarse", "fine")

    @property
    def unasked(self) -> set[str]:
        """The steps with a prompt that nothing is asked by with these options."""
        roles = self.kinds if self.panel.dynamic else ()
        return {*self.templates}.difference(roles, ["vote" if self.voting.batch else "vote_alone"])

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return max(2, self._votes)

    def calls(self) -> int:
        """The calls for one pair with a full panel, excluding repairs."""
        return self._votes + (len(self.kinds) if self.panel.dynamic else 0)

    @property
    def _votes(self) -> int:
        """The number of calls that ask for votes."""
        seats = 1 if self.voting.batch else self.panel.most()
        return len(self.order_list) * self.voting.replies * seats
