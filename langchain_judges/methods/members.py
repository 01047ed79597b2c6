"""Judges that a judge is made of: read, named and asked, with what each of them costs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, NotRequired

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langgraph.constants import END, START
from langgraph.errors import GraphBubbleUp
from langgraph.types import Overwrite
from pydantic import AfterValidator
from typing_extensions import TypedDict

from langchain_judges.asking.faults import diagnosis
from langchain_judges.asking.nodes import Route, plain
from langchain_judges.asking.steps import Effect, Steps, Update
from langchain_judges.errors import InputError, JudgeError, ModelAccessError, OptionError
from langchain_judges.methods.items import item_of
from langchain_judges.methods.marks import (
    Kind,
    kind_of,
    marks_of,
    metadata_of,
    unwrapped,
)
from langchain_judges.methods.options import JudgeOptions
from langchain_judges.methods.pairs import pair_of
from langchain_judges.methods.setup import SPARE_THREADS
from langchain_judges.options import ForClient, Rule
from langchain_judges.rows.texts import check_item, check_pair, judged
from langchain_judges.verdict import (
    Failure,
    FailureReason,
    Preference,
    Usage,
    even_verdict,
    no_usage,
)

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from langchain_judges.methods.combined import CombinedGraph
    from langchain_judges.methods.graph import JudgeGraph

SHARED = ("instructions", "temperature", "repairs", "cache", "memory", "recall", "allow_leak")
"""Options that go to each member which is made here; a ready judge has its own."""

MembersLike = Any
"""Judges, models (objects or names) and specs in a list; or one model for several methods."""


class Member(NamedTuple):
    """A judge that another judge asks."""

    name: str
    """How results and traces call it."""
    judge: Runnable[Any, Any]


Named = str | Mapping[str, Any]
"""A method by name, or as a spec without a model: `{"method", "options"?, "preset"?}`."""


def _is_list(methods: Sequence[Named] | None) -> Sequence[Named] | None:
    if isinstance(methods, str) or (methods is not None and not methods):
        raise ValueError
    return methods


class Combination(JudgeOptions):
    """What every judge made of judges takes, beside its members."""

    default_methods: ClassVar[tuple[str, ...]] = ("relative",)
    """How a single model judges, where no method is named."""

    methods: Annotated[
        Sequence[Named] | None,
        AfterValidator(_is_list),
        Rule("a list of methods, each a name or {'method', 'options', 'preset'}"),
        ForClient(
            Annotated[list[str] | None, AfterValidator(_is_list), Rule("a list of names")]
        ),
    ] = None
    """Methods of the members that are given as models: one for all of them, one for each, or
    several for a single model; each a name, or `{"method", "options", "preset"}`. None:
    `"relative"` for several models."""

    def build(self, model: MembersLike) -> JudgeGraph:
        """Return the judge.

        Args:
            model: The members: judges, models by object or name, or specs as `judge.spec`
                returns them; a single model is asked by each of `methods`.

        Raises:
            OptionError: The members do not fit together, or an option is not allowed.
        """
        members = self._members(model)
        kinds = {kind_of(member.judge) for member in members}
        if len(kinds) > 1:
            raise OptionError(
                "all members must judge the same: pairs, or single texts; got "
                + ", ".join(f"{m.name} ({kind_of(m.judge)})" for m in members)
            )
        # What members were given stands in their own marks and specs.
        own = self.model_copy(update=dict.fromkeys(SHARED, None) | _UNSET)
        return own.combine_members(members, kinds.pop())

    def combine_members(self, members: tuple[Member, ...], kind: Kind) -> JudgeGraph:
        """Return the judge that asks these members."""
        raise NotImplementedError

    def _members(self, value: MembersLike) -> tuple[Member, ...]:
        if self.prompts:
            raise OptionError("`prompts` are those of a method; give them to the members")
        alone = isinstance(value, str | BaseChatModel | Mapping | Runnable)
        entries = [value] if alone else list(value)
        if not entries:
            raise OptionError(f"{self.method!r} needs at least one member")
        if all(map(_is_model, entries)):
            return _with_names(self._of_models(entries))
        shared = {name: getattr(self, name) for name in SHARED if name in self.model_fields_set}
        if shared or self.methods:
            names = [*shared, *(["methods"] if self.methods else [])]
            options = ", ".join(f"`{name}`" for name in names)
            raise OptionError(f"{options} cannot change a ready judge: give it to each member")
        return _with_names([self._read(each) for each in entries])

    def _of_models(self, models: Sequence[Any]) -> list[JudgeGraph]:
        from langchain_judges.methods.registry import build

        default = self.default_methods if len(models) == 1 else ("relative",)
        methods = list(self.methods or default)
        if len(models) > 1 and len(methods) not in {1, len(models)}:
            raise OptionError(
                f"`methods` must be one for all models or one for each; got {len(methods)} for "
                f"{len(models)} models"
            )
        shared = {name: getattr(self, name) for name in SHARED if name in self.model_fields_set}
        size = max(len(models), len(methods))
        each_model = models if len(models) == size else list(models) * size
        each_method = methods if len(methods) == size else methods * size
        specs: list[dict[str, Any]] = [
            dict(each) if isinstance(each, Mapping) else {"method": each}
            for each in each_method
        ]
        for spec in specs:
            spec["options"] = {**shared, **(spec.get("options") or {})}
        return [
            build({**spec, "model": model})
            for spec, model in zip(specs, each_model, strict=True)
        ]

    def _read(self, value: object) -> Runnable[Any, Any]:
        from langchain_judges.methods.registry import build

        if _is_model(value):
            return build({"method": "relative", "model": value})
        if isinstance(value, Mapping):
            return build(value)
        if not isinstance(value, Runnable) or "method" not in metadata_of(value):
            raise OptionError(
                f"a member must be a judge, a model or a spec, got {type(value).__name__}; "
                "of a runnable of your own say what decides its verdicts: "
                '`.with_config(metadata={"method": "mine, version 1", "takes": "pair"})`'
            )
        return value


def _is_model(value: object) -> bool:
    """Say whether a member is a model: an object, a name, or an object of JSON with a name."""
    is_model_spec = isinstance(value, Mapping) and "method" not in value
    return is_model_spec or isinstance(value, str | BaseChatModel)


_UNSET = {"methods": None, "repairs": 1, "allow_leak": False}


def _with_names(judges: Sequence[Runnable[Any, Any]]) -> tuple[Member, ...]:
    """Name members by what tells them apart: model, method, or both; else by number.

    Raises:
        OptionError: The caller gave two of them the same name.
    """
    marks = [marks_of(judge) for judge in judges]
    models = [", ".join(mark.get("models") or []) for mark in marks]
    methods = [mark["method"] for mark in marks]
    both = [f"{method} {model}".strip() for method, model in zip(methods, models, strict=True)]
    numbered = [f"{name} {number}" for number, name in enumerate(both, 1)]
    forms = (models, methods, both, numbered)
    names = next(form for form in forms if all(form) and len(set(form)) == len(form))
    own = [getattr(getattr(unwrapped(each), "options", None), "name", None) for each in judges]
    member_names = [name or other for name, other in zip(own, names, strict=True)]
    if len(set(member_names)) < len(member_names):
        raise OptionError(f"each member needs a name of its own, got {member_names!r}")
    return tuple(map(Member, member_names, judges))


class Opinion(TypedDict):
    """What one member decided."""

    member: str
    preference: NotRequired[Preference | None]
    """Of a judge of pairs; None: not judged."""
    label: NotRequired[int | float | str | None]
    """Of a judge of one text; None: not judged."""
    score: float | None
    confidence: float | None
    flipped: NotRequired[bool | None]
    rationale: str
    calls: int


class MemberJudgment(NamedTuple):
    """What became of one member's judgment."""

    opinion: Opinion
    verdict: dict[str, Any]
    """Its verdict as it gave it."""
    failures: list[Failure]
    usage: Usage
    subscores: list[Any]
    """What it found by each criterion, where it judges by several."""


def ask_member(member: Member, kind: Kind, row: Mapping[str, Any]) -> Steps[MemberJudgment]:
    """Ask a member about a row; what goes wrong with it is its failure, not the row's.

    Raises:
        JudgeError: The run was stopped, or the provider refuses the key.
    """
    judge: Any = member.judge
    field = "preference" if kind == "pair" else "label"
    try:
        result = yield Effect(
            lambda: judge.invoke(row, {"run_name": member.name}),
            lambda: judge.ainvoke(row, {"run_name": member.name}),
        )
    except Exception as exc:
        if _ends_all(exc):
            raise
        problem = diagnosis(exc)
        invalid = isinstance(exc, InputError)
        reason: FailureReason = "invalid_input" if invalid else problem.reason
        failure: Failure = {
            "step": "ask",
            "unit": "",
            "reason": reason,
            "detail": problem.detail[:500],
        }
        verdict: dict[str, Any] = {field: None, "failures": [failure]}
        result = {}
    else:
        verdict = result["verdict"]
    fields = (field, "score", "confidence", *(["flipped"] if kind == "pair" else []))
    failures: list[Any] = [
        {**failure, "unit": f"{member.name}: {failure['unit']}".removesuffix(": ")}
        for failure in verdict.get("failures") or []
    ]
    usage = verdict.get("usage") or no_usage()
    steps = {f"{member.name}: {step}": cost for step, cost in usage["by_step"].items()}
    opinion: Any = {
        "member": member.name,
        **{name: verdict.get(name) for name in fields},
        "rationale": verdict.get("rationale") or "",
        "calls": usage["calls"],
    }
    parts = result.get("subscores") or []
    return MemberJudgment(opinion, verdict, failures, {**usage, "by_step": steps}, parts)


def _ends_all(exc: Exception) -> bool:
    if isinstance(exc, ModelAccessError):
        return exc.status == 401
    own = isinstance(exc, JudgeError) and not isinstance(exc, InputError)
    return own or isinstance(exc, GraphBubbleUp)


def row_of(kind: Kind, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row that a state holds, as members are given it."""
    more = {name: state.get(name) for name in ("id", "group", "family")}
    row = {**pair_of(state), **more} if kind == "pair" else item_of(state)
    return {name: value for name, value in row.items() if value is not None}


@dataclass(frozen=True)
class Start:
    """How a judgment by members begins."""

    kind: Kind
    lists: tuple[str, ...]
    """State keys that its nodes add to."""
    empty: Mapping[str, Any]
    """Other state keys as they are before it begins."""

    def begin(self, state: Mapping[str, Any]) -> Update:
        """Check the row; two identical texts are a tie already, without a call."""
        # A checkpointed thread still holds the lists of its previous run.
        update: Update = {key: Overwrite([]) for key in self.lists} | dict(self.empty)
        if self.kind == "item":
            check_item(state)
            return {**update, "verdict": None}
        check_pair(state)
        same = judged(state["output_a"]) == judged(state["output_b"])
        return {**update, "verdict": even_verdict() if same else None}


def begin(
    graph: StateGraph[Any, Any, Any, Any], start: Start, first: Any, targets: Sequence[str]
) -> None:
    """Add the node with which every judgment by members begins.

    Args:
        graph: The graph.
        start: How it begins.
        first: Where it goes from there.
        targets: Every node that `first` may name.
    """
    graph.add_node("begin", plain(start.begin, {}))
    graph.add_edge(START, "begin")

    def unless_even(state: Any) -> Any:
        return END if state.get("verdict") else first(state)

    graph.add_conditional_edges("begin", Route(unless_even), [*targets, END])


def finish(
    options: Combination, members: tuple[Member, ...], kind: Kind, builder: Any, **marks: Any
) -> CombinedGraph:
    """Compile a graph of members and mark it with what decides its verdicts.

    Args:
        options: The checked options.
        members: The judges that it asks.
        kind: What they judge.
        builder: The `StateGraph`.
        **marks: More plain data that decides verdicts, beside the options.
    """
    # Loaded on use: to check options and count calls takes no graph.
    from langchain_judges.methods.combined import CombinedGraph

    compiled = builder.compile(
        checkpointer=options.checkpointer,
        store=options.store,
        name=options.name or options.method,
    )
    member_metadata = [metadata_of(member.judge) for member in members]
    plain_options = options.as_json()
    for name in (*SHARED, "methods"):
        plain_options.pop(name, None)
    metadata = {
        "method": options.method,
        "takes": kind,
        "options": {**plain_options, **marks, "members": list(map(_mark, member_metadata))},
        "model": {
            f"{member.name}: {step}": identity
            for member, own in zip(members, member_metadata, strict=True)
            for step, identity in (own.get("model") or {}).items()
        },
        "prompt_version": _digest([own.get("prompt_version") for own in member_metadata]),
        "calls": sum(int(own.get("calls") or 0) for own in member_metadata),
    }
    graph = CombinedGraph(**vars(compiled), options=options, model=members)  # type: ignore[arg-type]
    return graph.with_config(metadata=metadata, max_concurrency=len(members) + SPARE_THREADS)


def _mark(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides a member's verdicts; how it is called in traces does not."""
    options = {k: v for k, v in (metadata.get("options") or {}).items() if k != "name"}
    return {"method": metadata.get("method"), "options": options}


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, default=str).encode()).hexdigest()[:12]
