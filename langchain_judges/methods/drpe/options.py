"""The options of a DRPE judge, grouped by what they are about, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeVar, get_args

from langchain_judges.errors import OptionError
from langchain_judges.methods.drpe.prompts import REQUESTS
from langchain_judges.methods.drpe.roles import RoleLike, read_roles
from langchain_judges.methods.drpe.votes import SpanKind
from langchain_judges.verdict import Role

RoleContext = Literal["article", "candidate", "both"]
Clustering = Literal["kmeans", "dbscan"]
ConfidenceKind = Literal["auto", "logprobs", "samples", "none"]
VoteOrder = Literal["reference_first", "random", "both"]


@dataclass(frozen=True)
class Panel:
    """Who sits on the panel (DRPE, sections 3.1 and 3.2).

    Args:
        static: Roles that always sit: a set by name (`"summary"`, the paper's three,
            `"manual"`, `"question_answering"`, `"dialogue"`), or roles of your own.
        dynamic: Roles generated for the text and kept; 0 generates none.
        merged_prompt: Ask for both kinds of readers in one call instead of two.
        context: What the role prompts see: the article, the candidate, or both.
        pool: Readers asked of each kind; default the larger of 4 and `dynamic`.
        clustering: How diverse roles are chosen; None keeps every role.
        clustered: Whether generated roles alone are clustered, and static ones always
            kept (our reading), or all roles together, as the papers' text says.
        eps: DBSCAN's largest cosine distance between neighbours.
        min_samples: Members that make a DBSCAN neighbourhood dense.
        capped: Keep at most `dynamic` of what DBSCAN finds, those of the largest clusters.
    """

    static: str | Sequence[RoleLike] = "summary"
    dynamic: int = 4
    merged_prompt: bool = False
    context: RoleContext = "article"
    pool: int | None = None
    clustering: Clustering | None = "kmeans"
    clustered: Literal["dynamic", "all"] = "dynamic"
    eps: float = 0.35
    min_samples: int = 2
    capped: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        _one_of("context", self.context, get_args(RoleContext))
        _one_of("clustering", self.clustering, (*get_args(Clustering), None))
        _one_of("clustered", self.clustered, ("dynamic", "all"))
        _true_or_false(self, "merged_prompt", "capped")
        _whole("dynamic", self.dynamic, 0)
        _whole("min_samples", self.min_samples, 1)
        if self.pool is not None:
            _whole("pool", self.pool, 1)
        if not isinstance(self.eps, int | float) or not 0 < self.eps <= 2:
            raise OptionError(f"`eps` must be above 0 and at most 2, got {self.eps!r}")
        if not self.static_roles and not self.dynamic:
            raise OptionError("a panel needs `static` roles, `dynamic` ones, or both")

    @property
    def static_roles(self) -> tuple[Role, ...]:
        """The roles that always sit."""
        return read_roles(self.static)

    @property
    def asked(self) -> int:
        """How many readers each prompt asks for."""
        return self.pool or max(4, self.dynamic)

    def most(self) -> int:
        """Return the most roles that can sit."""
        if not self.dynamic:
            return len(self.static_roles)
        exact = self.clustering == "kmeans" or (self.clustering and self.capped)
        kept = self.dynamic if exact else 2 * self.asked
        return len(self.static_roles) + kept


@dataclass(frozen=True)
class Voting:
    """How the panel votes (DRPE, section 3.3).

    Args:
        batch: Ask all roles in one call; False asks each by itself.
        confidence: What a vote weighs: `"logprobs"`, the probability of its tokens (the
            paper); `"samples"`, how often the role votes so in `samples` replies; `"none"`,
            one; `"auto"`, log-probabilities where there are any, else one.
        span: Whose tokens count: `"joint"` (vote and reason), `"vote"` or `"reason"`.
        samples: Replies with `confidence="samples"`.
        order: `"reference_first"` (the papers), `"random"` (a coin seeded by the pair), or
            `"both"`, in which case the sums of both orders are averaged.
        variant: Which of the five wordings of the request, from 0.
        min_valid: Fewest valid votes in an order; default more than half of the panel.
    """

    batch: bool = True
    confidence: ConfidenceKind = "auto"
    span: SpanKind = "joint"
    samples: int = 5
    order: VoteOrder = "reference_first"
    variant: int = 0
    min_valid: int | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        _true_or_false(self, "batch")
        _one_of("confidence", self.confidence, get_args(ConfidenceKind))
        _one_of("span", self.span, get_args(SpanKind))
        _one_of("order", self.order, get_args(VoteOrder))
        _whole("variant", self.variant, 0)
        _one_of("variant", self.variant, tuple(range(len(REQUESTS))))
        _whole("samples", self.samples, 2)
        if self.min_valid is not None:
            _whole("min_valid", self.min_valid, 1)

    @property
    def replies(self) -> int:
        """How often the same votes are asked for."""
        return self.samples if self.confidence == "samples" else 1


GroupT = TypeVar("GroupT", Panel, Voting)


def group(kind: type[GroupT], given: GroupT | Mapping[str, Any] | None, name: str) -> GroupT:
    """Return a group of options, from itself or from its fields by name.

    Raises:
        OptionError: It is of another type, or a field is unknown or not allowed.
    """
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        raise OptionError(f"`{name}` must be a {kind.__name__} or its fields, got {given!r}")
    known = [each.name for each in fields(kind)]
    if unknown := sorted(set(given or {}) - set(known)):
        raise OptionError(f"`{name}` has no {unknown!r}; it takes {known!r}")
    return kind(**(given or {}))


def calls(panel: Panel, voting: Voting, given: bool) -> int:
    """Return the calls for one pair with a full panel: three with the defaults.

    Args:
        panel: Who sits.
        voting: How they vote.
        given: Whether the roles were given, so that none are generated.
    """
    generated = 0 if given or not panel.dynamic else 1 if panel.merged_prompt else 2
    each = 1 if voting.batch else panel.most()
    orders = 2 if voting.order == "both" else 1
    return generated + each * orders * voting.replies


def as_json(panel: Panel, voting: Voting) -> dict[str, Any]:
    """Return the options as plain data."""
    seats = {**asdict(panel), "static": [dict(role) for role in panel.static_roles]}
    return {"panel": seats, "voting": asdict(voting)}


def _true_or_false(options: object, *names: str) -> None:
    for name in names:
        if not isinstance(value := getattr(options, name), bool):
            raise OptionError(f"`{name}` must be true or false, got {value!r}")


def _one_of(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed or isinstance(value, bool):
        raise OptionError(f"`{name}` must be one of {list(allowed)!r}, got {value!r}")


def _whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` must be a whole number of at least {least}, got {value!r}")
