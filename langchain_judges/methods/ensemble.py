"""The members of a judge made of judges: how they are read, named and asked, and the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

from langchain_core.runnables import Runnable

from langchain_judges import verdict as verdicts
from langchain_judges.asking.effects import Update
from langchain_judges.asking.failures import ends_the_run, failure_of, is_bug
from langchain_judges.asking.models import plain_model
from langchain_judges.asking.question import Account, Booking
from langchain_judges.asking.reply_log import key_of
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.shown import RememberedPair
from langchain_judges.methods import context, declaration, describe, items, pairs, registry
from langchain_judges.methods.ensemble_options import COMMON, Combination, MembersLike, Opinion
from langchain_judges.methods.graph import JudgeGraph, chain
from langchain_judges.rows.checks import Kind, check_item, check_pair
from langchain_judges.rows.texts import compared


class Member(NamedTuple):
    """A judge that another judge asks.

    Attributes:
        name: Its name in results and traces.
    """

    name: str
    judge: Runnable[Any, Any]


def kind_of_members(members: Sequence[Member]) -> Kind:
    """The kind of row that members judge: pairs, or single texts.

    Raises:
        OptionError: They do not judge the same kind of row, or label texts on several scales.
    """
    kind = describe.one_kind([(each.name, describe.kind_of(each.judge)) for each in members])
    if kind == "item" and len({scale_of(each) for each in members}) > 1:
        told = "; ".join(f"{m.name}: {[*scale_of(m)] or 'a total'}" for m in members)
        raise OptionError(declaration.WORDS["other_labels"].format(told))
    return kind


def scale_of(member: Member, row: Mapping[str, object] | None = None) -> tuple[verdicts.Label, ...]:
    """The labels of a judge of single texts, from the worst; empty: a total from 0 to 1.

    Those of a row are its own where it brings a rubric.
    """
    judge, *_ = describe.leaves_of(member.judge)  # those of a judge of judges share one scale
    if row and row.get("rubric") and (rubric_of := describe.option_of(judge, "rubric_of")):
        with suppress(InputError):  # each member says so
            criteria = rubric_of(row).criteria
            return criteria[0].names if len(criteria) == 1 else ()
    own = describe.option_of(judge, "human_labels")
    return tuple(describe.stated_labels(judge) or (0, 1)) if own is None else own


def read_members(options: Combination, value: MembersLike) -> tuple[Member, ...]:
    """The members of a judge made of judges, those that are models made into judges.

    Args:
        options: Its options, with those that go to the members that are made here.
        value: The members: judges, models by object or name, or specs as `judge.spec`
            returns them; a single model is asked by each of `methods`.

    Raises:
        OptionError: The members do not fit together, or an option is not allowed.
    """
    if options.prompts:
        raise OptionError("`prompts` are those of a method; give them to the members")
    members = [value] if isinstance(value, str | Mapping | Runnable) else value
    return _with_names(list(map(_judge, options.specs_of([plain_model(each) for each in members]))))


def _judge(value: object) -> Runnable[Any, Any]:
    if isinstance(value, Mapping):
        return registry.load_judge(value)
    if not isinstance(value, Runnable) or "method" not in describe.metadata_of(value):
        raise OptionError(declaration.WORDS["no_member"].format(type(value).__name__))
    describe.check_no_budget(value, "the whole judge")
    return value


def _with_names(judges: Sequence[Runnable[Any, Any]]) -> tuple[Member, ...]:
    """Name members by what distinguishes them: model, method, or both; else by number.

    Raises:
        OptionError: The caller gave two of them the same name.
    """
    prints = [describe.fingerprint_of(judge) for judge in judges]
    models = [", ".join(mark.get("models") or []) for mark in prints]
    methods = [mark["method"] for mark in prints]
    method_and_model = [
        f"{method} {model}".strip() for method, model in zip(methods, models, strict=True)
    ]
    numbered = [f"{name} {number}" for number, name in enumerate(method_and_model, 1)]
    forms = (models, methods, method_and_model, numbered)
    names = next(form for form in forms if all(form) and len(set(form)) == len(form))
    given_names = [describe.option_of(each, "name") for each in judges]
    member_names = [name or other for name, other in zip(given_names, names, strict=True)]
    if len(set(member_names)) < len(member_names):
        raise OptionError(f"each member needs a name of its own, got {member_names!r}")
    return tuple(map(Member, member_names, judges))


class MemberJudgment(NamedTuple):
    """The outcome of one member's judgment.

    Attributes:
        verdict: Its verdict as it gave it.
        subscores: What it found by each criterion, where it judges by several.
    """

    opinion: Opinion
    verdict: dict[str, Any]
    subscores: list[Any]


async def ask_member(
    member: Member, kind: Kind, row: Mapping[str, object], account: Account
) -> MemberJudgment:
    """Ask a member about a row; an error in it is the member's failure, not the row's.

    Raises:
        JudgeError: The run was stopped, or the provider refuses the key.
        Exception: A bug in a member, as it was raised.
    """
    try:
        result = await describe.judgment_of(member.judge, kind, row, {"run_name": member.name})
    except Exception as exc:  # a judge of any kind may raise anything: only it is lost
        if ends_the_run(exc) or is_bug(exc):
            raise
        failed: Any = verdicts.WITHOUT_ANSWER[kind]([failure_of(exc, "ask")], verdicts.no_usage())
        result = {"verdict": failed}
    verdict: dict[str, Any] = result["verdict"]
    failures: list[Any] = [
        {**failure, "unit": f"{member.name}: {failure['unit']}".removesuffix(": ")}
        for failure in verdicts.failures_in(verdict)  # how the row was read is said once
    ]
    usage: verdicts.Usage = verdict["usage"]
    steps = {f"{member.name}: {step}": cost for step, cost in usage["by_step"].items()}
    account.bookings.append(Booking(failures, {**usage, "by_step": steps}))
    opinion: Any = {
        "member": member.name,
        **{name: verdict[name] for name in Opinion.__annotations__ if name in verdict},
        "calls": usage["calls"],
    }
    return MemberJudgment(opinion, verdict, result.get("subscores") or [])


def row_of(kind: Kind, state: Mapping[str, Any]) -> dict[str, object]:
    """The row in a state, as members receive it."""
    more = {name: state.get(name) for name in ("id", "group", "family")}
    row = {**pairs.pair_of(state), **more} if kind == "pair" else items.item_of(state)
    return {name: value for name, value in row.items() if value is not None}


class CombinedGraph(JudgeGraph):
    """A judge made of judges."""

    @property
    def members(self) -> tuple[Member, ...]:
        """The judges that it asks."""
        return cast("tuple[Member, ...]", self.model)

    @property
    def fields_named(self) -> set[str]:
        """The fields that a prompt of any member names."""
        return set[str]().union(*(describe.fields_named(each.judge) for each in self.members))

    def _plain_model(self) -> list[declaration.JudgeSpec]:
        """The spec of each member."""
        specs = []
        for member in self.members:
            judge = describe.unwrapped(member.judge)
            if not isinstance(judge, JudgeGraph):
                raise OptionError(declaration.WORDS["no_spec"].format(member.name))
            specs.append(judge.spec)
        return specs


def graph_of(
    options: Combination,
    members: tuple[Member, ...],
    kind: Kind,
    states: tuple[type, type],
    *phases: declaration.Phase,
) -> CombinedGraph:
    """Compile a graph of members and mark it with what decides its verdicts.

    Args:
        options: The checked options.
        members: The judges that it asks.
        kind: What they judge.
        states: The types of its state, of judges of pairs and of single texts.
        *phases: What it does once the row is checked; two identical texts are a tie already.
    """
    results = ("id", "verdict", *options.results, "recalled")
    state, source = (states[0], RememberedPair) if kind == "pair" else (states[1], verdicts.Item)
    schema = context.StateSchema(state, results, source)

    def begin(state: Mapping[str, Any], account: Account) -> Update:
        (check_pair if kind == "pair" else check_item)(state)
        same = kind == "pair" and compared(state["output_a"]) == compared(state["output_b"])
        return {**schema.blank, "verdict": verdicts.even_verdict() if same else None}

    member_metadata = [describe.metadata_of(member.judge) for member in members]
    plain_options = options.as_json()
    for name in (*COMMON, "methods"):
        plain_options.pop(name, None)
    metadata = {
        "method": options.method,
        "takes": kind,
        "options": {**plain_options, "members": list(map(_mark, member_metadata))},
        "model": {
            f"{member.name}: {step}": identity
            for member, its in zip(members, member_metadata, strict=True)
            for step, identity in (its.get("model") or {}).items()
        },
        "prompt_version": key_of([each.get("prompt_version") for each in member_metadata])[:12],
        "calls": sum(int(each.get("calls") or 0) for each in member_metadata),
    }
    graph, places = chain(schema.graph(), begin, phases), len(members) + context.SPARE_THREADS
    return CombinedGraph.of(graph, options, metadata, places, model=members)


def _mark(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The data that decide a member's verdicts; its name in traces does not."""
    options = {k: v for k, v in (metadata.get("options") or {}).items() if k != "name"}
    return {"method": metadata.get("method"), "options": options}
