"""The panel of a DRPE judge: two groups of options, who sits on it and how it votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Gt, Le
from pydantic import BeforeValidator, model_validator

from langchain_judges.errors import OptionError
from langchain_judges.methods.drpe.parse import SpanKind
from langchain_judges.methods.drpe.prompts import REQUESTS
from langchain_judges.methods.drpe.roles import SETS, RoleLike, manual_roles, read_roles
from langchain_judges.methods.stopping import Adaptive
from langchain_judges.methods.tasks import TASKS, Task
from langchain_judges.options import Options, Rule
from langchain_judges.verdict import Role

RoleContext = Literal["article", "candidate", "both"]
Clustering = Literal["kmeans", "dbscan"]
ConfidenceKind = Literal["auto", "logprobs", "soft", "samples", "none"]


def _static(roles: object) -> object:
    if roles is None:
        return None
    panel = read_roles(roles)
    return roles if isinstance(roles, str) else panel


class Panel(Options):
    """The members of the panel (DRPE, section 3.1)."""

    called = "panel"

    static: Annotated[
        str | Sequence[RoleLike] | None,
        BeforeValidator(_static),
        Rule("roles, or the name of a set"),
    ] = None
    """Roles that always sit: a set by name (`"summary"`, the paper's three,
    `"question_answering"`, `"dialogue"`, `"document"`, `"harmlessness"`), or roles of your own;
    None: the set that fits the `task`; `"manual"`: that set, and the first version's three
    with a point of view."""
    dynamic: Annotated[int, Ge(0)] = 4
    """Roles generated for the text that sit too; 0 generates none."""
    merged_prompt: bool = False
    """Ask for both kinds of readers in one call instead of two."""
    context: RoleContext = "article"
    """What the role prompts see: the article, the candidate, or both."""
    pool: Annotated[int, Ge(1)] | None = None
    """Readers asked of each kind; default the larger of 4 and `dynamic`."""
    clustering: Clustering | None = "kmeans"
    """How diverse roles are chosen; None keeps every role."""
    clustered: Literal["dynamic", "all"] = "dynamic"
    """Whether generated roles alone are clustered, and static ones always sit (our reading),
    or all roles together, as the papers' text says."""
    eps: Annotated[float, Gt(0), Le(2)] = 0.35
    """DBSCAN's largest cosine distance between neighbours."""
    min_samples: Annotated[int, Ge(1)] = 2
    """Members that make a DBSCAN neighbourhood dense."""
    capped: bool = False
    """Keep at most `dynamic` of what DBSCAN finds: of each kind in turn, larger clusters
    first."""

    @model_validator(mode="after")
    def _somebody_sits(self) -> Self:
        if self.static is not None and not self.static_roles() and not self.dynamic:
            raise OptionError("a panel needs `static` roles, `dynamic` ones, or both")
        return self

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain JSON, with the static roles in full.

        A set may be reworded under the same name, and is another panel then. Where the task
        decides who sits, the mark holds the wording of all sets.
        """
        if self.by_task:
            return super().as_json()
        return {**super().as_json(), "static": [dict(role) for role in self.static_roles()]}

    def static_roles(self, task: Task | None = None) -> tuple[Role, ...]:
        """Return the roles that always sit.

        Args:
            task: Whose set sits where no roles are named, or beside the manual ones.
        """
        panel = (task or TASKS["summary"])["panel"]
        if self.static == "manual":
            return manual_roles(panel)
        return SETS[panel] if self.static is None else read_roles(self.static)

    @property
    def by_task(self) -> bool:
        """Whether the task decides who always sits."""
        return self.static is None or self.static == "manual"

    @property
    def readers(self) -> int:
        """How many readers each prompt asks for."""
        return self.pool or max(4, self.dynamic)

    def most(self) -> int:
        """Return the most roles that can sit."""
        static = len(self.static_roles())
        if not self.dynamic:
            return static
        exact = self.clustering == "kmeans" or (self.clustering and self.capped)
        generated = self.dynamic if exact else 2 * self.readers
        return static + generated


class Voting(Options):
    """How the panel votes (DRPE, section 3.2)."""

    called = "voting"

    batch: bool = True
    """Ask all roles in one call; False asks each by itself."""
    confidence: ConfidenceKind = "auto"
    """What a vote weighs: `"logprobs"`, the probability of its tokens (the paper); `"soft"`,
    the share of 1 and of 2 in the probability at the vote's token, so that a role gives each
    text its share (ours); `"samples"`, how often the role votes so in `samples` replies; \
`"none"`, one; `"auto"`,
    log-probabilities where there are any, else one."""
    span: SpanKind = "joint"
    """Whose tokens count: `"joint"` (vote and reason), `"vote"` or `"reason"`."""
    samples: Annotated[int, Ge(2)] = 5
    """Replies with `confidence="samples"`; of an even number a role may be divided."""
    first: Literal["reference", "random"] = "reference"
    """What stands first where a single order is asked: `"reference"`, which is B (NLPCC
    version), or either text, by a coin seeded by the pair (first version)."""
    shuffled: bool = True
    """Show the roles of a batch in an order drawn for the pair and sample, for later roles read
    the votes of earlier ones; False: in the panel's order."""
    variant: Annotated[int, Ge(0), Le(len(REQUESTS) - 1)] = 0
    """Which of the five wordings of the request, from 0."""
    min_valid: Annotated[int, Ge(1)] | None = None
    """Fewest valid votes in an order; default more than half of the roles that were asked."""
    adaptive: Adaptive = False
    """Let roles vote one after the other, in the panel's order, and stop when the others
    cannot change the verdict; a probability such as 0.95 stops when they would not, with at
    least that probability. `not_asked` names the others. Needs `batch=False`."""

    @model_validator(mode="after")
    def _roles_vote_alone(self) -> Self:
        if self.adaptive and self.batch:
            raise OptionError("`adaptive` needs roles that vote one by one: `batch=False`")
        return self

    @property
    def replies(self) -> int:
        """How often the same votes are asked for."""
        return self.samples if self.confidence == "samples" else 1
