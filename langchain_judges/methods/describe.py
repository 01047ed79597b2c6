"""Description of a judge: its method, options, input and memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaError
from typing_extensions import TypedDict

from langchain_judges import verdict as verdicts
from langchain_judges.asking.effects import Effect
from langchain_judges.asking.question import run_of
from langchain_judges.errors import OptionError
from langchain_judges.memory.shown import Memory, is_memory
from langchain_judges.methods.declaration import WORDS
from langchain_judges.rows.checks import Kind, RowKind, kind_in


def layers_of(runnable: object) -> Iterator[Any]:
    """Yield a runnable, then all that it wraps by `bind`, `with_config` and `with_retry`."""
    yield runnable
    if isinstance(runnable, RunnableBindingBase):
        yield from layers_of(runnable.bound)


def unwrapped(runnable: object) -> Any:
    """The runnable inside of `bind`, `with_config` and `with_retry`."""
    return [*layers_of(runnable)][-1]


def option_of(judge: object, name: str) -> Any:
    """An option of a judge, or what its options say; None of a judge that has none."""
    return getattr(getattr(unwrapped(judge), "options", None), name, None)


def places_of(judge: object) -> int | None:
    """The `max_concurrency` that somebody gave a judge by `with_config`, if anybody did."""
    configs = (getattr(each, "config", None) or {} for each in layers_of(judge))
    usual = (None, getattr(unwrapped(judge), "threads", None))
    found = (each.get("max_concurrency") for each in configs)
    return next((each for each in found if each not in usual), None)


def fields_named(judge: object) -> set[str]:
    """The fields of a row that prompts of a judge name, also of one within a sequence."""
    parts = [judge, *getattr(unwrapped(judge), "steps", ())]
    return {n for part in parts for n in getattr(unwrapped(part), "fields_named", ())}


def metadata_of(runnable: object) -> dict[str, Any]:
    """The metadata of a graph, from its factory and from whatever is wrapped around it."""
    configs = [getattr(each, "config", None) or {} for each in layers_of(runnable)]
    return {k: v for each in configs[::-1] for k, v in (each.get("metadata") or {}).items()}


def stated_labels(judge: object) -> Sequence[verdicts.Label]:
    """The labels that the metadata of a judge state, from the worst; empty: it states none."""
    return (metadata_of(judge).get("options") or {}).get("labels") or ()


def check_no_budget(judge: object, whole: str) -> None:
    """Check that a judge, with all that is wrapped around it, has no limits of its own.

    Args:
        judge: The judge.
        whole: What calls it within limits of its own.

    Raises:
        OptionError: It has limits of its own.
    """
    if any(run_of(getattr(each, "config", None)) for each in layers_of(judge)):
        raise OptionError(WORDS["own_budget"].format(whole))


def memory_of(runnable: object) -> Memory | None:
    """The memory that a graph's verdicts depend on, or None."""
    memory = option_of(runnable, "memory")
    return memory if is_memory(memory) else None


def leaves_of(judge: object) -> list[Any]:
    """The judges inside a judge of judges, at any depth; any other judge alone."""
    members = getattr(unwrapped(judge), "members", ())
    return [each for own in members for each in leaves_of(own.judge)] if members else [judge]


def document_use(judge: object) -> str | None:
    """The use of documents beside an answer by a judge, or by those that it asks.

    They are a `"source"`, or `"hidden"` from a rubric in a caller's own words, which may be
    about them; None: no rubric is.
    """
    uses = [option_of(leaf, "document_use") for leaf in leaves_of(judge)]
    return next((use for use in ("source", "hidden") if use in uses), None)


def memories_of(runnable: object) -> list[Memory]:
    """The memories of a judge, or of its members, each once."""
    memories = map(memory_of, leaves_of(runnable))
    return list({id(memory): memory for memory in memories if memory is not None}.values())


def assumptions_of(judge: object) -> list[str]:
    """Sentences that say which labels of a judge count as good though nobody said so."""
    return [told for leaf in leaves_of(judge) for told in option_of(leaf, "assumed") or ()]


@cache
def _tell(sentence: str) -> None:
    logging.getLogger(__name__).warning(sentence)


def tell_good(judge: object) -> None:
    """Warn, once, of the labels that count as good though nobody said so."""
    for sentence in assumptions_of(judge):
        _tell(sentence)


def is_local(runnable: object) -> bool:
    """Whether any step of a judge or writer asks a model inside this process."""
    return any("file" in each for each in (metadata_of(runnable).get("model") or {}).values())


def check_judge(judge: object) -> None:
    """Check that something is a judge, and not a model.

    Raises:
        OptionError: It is not.
    """
    # Loaded on use: what a spec says needs no model.
    from langchain_core.language_models import BaseLanguageModel

    is_model = isinstance(given := unwrapped(judge), BaseLanguageModel)
    if is_model or not isinstance(judge, Runnable):
        got = f"{'the model ' if is_model else ''}{type(given).__name__}"
        raise OptionError(WORDS["no_judge"].format(got))


def kind_of(judge: Any) -> Kind:
    """Whether a judge takes a `Pair` or an `Item`, by what it declares.

    Raises:
        OptionError: `judge` is not a judge, or declares neither.
    """
    check_judge(judge)
    takes = metadata_of(judge).get("takes") or option_of(judge, "takes")
    if takes in {"pair", "item"}:
        return takes  # type: ignore[no-any-return]
    # What is wrapped around a graph may not know the graph's own schema.
    schemas = (each.get_input_jsonschema() for each in (judge, unwrapped(judge)))
    properties, fields = (schema.get("properties") for schema in schemas), dict[str, object]()
    with suppress(SchemaError):  # LangGraph's RemoteGraph has no schema
        fields = next(filter(None, properties), fields)
    kind = kind_in(fields)
    if kind == "pair" or kind == "item":
        return kind
    raise OptionError(WORDS["no_kind"].format(sorted(fields) or "no fields"))


class _Result(TypedDict):
    verdict: dict[str, Any]


_form = cache(TypeAdapter[Any])


def _faults(form: Any, data: object) -> list[Any]:
    try:
        _form(form).validate_python(data)
    except ValidationError as exc:
        return exc.errors()
    return []


async def judgment_of(
    judge: Runnable[Any, Any], kind: RowKind, row: object, config: RunnableConfig | None = None
) -> Mapping[str, Any]:
    """The outcome of a judge; that of a runnable of somebody else's with a whole verdict.

    What is wrong beside the answer is left out and noted: of its cost, the wrong parts alone.
    Where no score is given it is that of the answer: A, tie and B, or its place among the labels.
    """
    result: Mapping[str, Any] = await Effect.of(judge, "invoke", row, config)
    if kind == "task" or hasattr(unwrapped(judge), "fields_named"):  # a writer, a judge of ours
        return result
    form: Any = verdicts.Verdict if kind == "pair" else verdicts.LabelVerdict
    field = "preference" if kind == "pair" else "label"
    without = verdicts.WITHOUT_ANSWER[kind]
    blank: Any = {**without([], verdicts.no_usage()), "rationale": ""}
    del blank[field]
    beside = {*form.__annotations__} - {field, "score"}
    failure: Any = {"step": "judge", "unit": "", "reason": "internal_error"}
    faults = _faults(_Result, result)
    said = {} if faults else result["verdict"]
    own = {name: part for name, part in said.items() if part is not None or name == field}
    given, notes = {**blank, **own}, dict[str, Any]()
    # The answer last, so that the cost of one that is wrong is known.
    faults = faults or _faults(form, given)
    for fault in sorted(faults, key=lambda each: beside.isdisjoint(each["loc"][:1])):
        place, *parts = fault["loc"] or ("result",)
        got = fault["input"] if parts or fault["type"] != "missing" else result
        told = WORDS["fault"].format(place, fault["msg"], got)
        if place not in beside:
            failure["detail"] = WORDS["no_verdict"].format(told)
            usage = _form(verdicts.Usage).validate_python(given["usage"])
            return {"verdict": without([failure], usage)}
        if place == "usage" and parts:
            given[place] = {**given[place], parts[0]: blank[place].get(parts[0], [])}
        else:
            given[place] = blank.get(place, [])
        notes.setdefault(place, {**failure, "reason": "unparsable", "detail": told})
    found = _form(form).validate_python(given)
    if found[field] != found[field]:  # NaN
        found[field] = None
    if found["score"] is None:
        labels = stated_labels(judge) or ((0, 1) if isinstance(given[field], bool) else ())
        points = verdicts.POINTS if kind == "pair" else verdicts.positions_of(labels)
        found["score"] = points.get(found[field])
    if found[field] is None and not found["failures"]:
        failure |= {"reason": "cannot_assess", "detail": "it gave no answer"}
        found["failures"] = [failure]
    found["failures"] += notes.values()
    return {**result, "verdict": {**said, **found}}


def fingerprint_of(judge: Runnable[Any, Any]) -> dict[str, Any]:
    """The fingerprint of a judge: method, models by name, prompt version."""
    metadata = metadata_of(judge)
    fingerprint: dict[str, Any] = {"method": str(metadata.get("method") or judge.get_name())}
    if models := metadata.get("model"):
        fingerprint["models"] = sorted({str(model.get("name")) for model in models.values()})
    if version := metadata.get("prompt_version"):
        fingerprint["prompt_version"] = version
    return fingerprint


def one_kind(members: Sequence[tuple[str, Kind]]) -> Kind:
    """The kind of row that members judge, each given with its name.

    Raises:
        OptionError: Some judge pairs, and others single texts.
    """
    if len({kind for _, kind in members}) > 1:
        told = ", ".join(f"{name} ({kind})" for name, kind in members)
        raise OptionError(WORDS["other_kinds"].format(told))
    return members[0][1]
