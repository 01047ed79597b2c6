"""The members of a judge made of judges: read and named, as ready judges, models or specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from langchain_judges.errors import OptionError
from langchain_judges.methods.combination import Combination, MembersLike
from langchain_judges.methods.marks import (
    Kind,
    kind_of,
    marks_of,
    metadata_of,
    one_kind,
    unwrapped,
)
from langchain_judges.methods.registry import build


class Member(NamedTuple):
    """A judge that another judge asks."""

    name: str
    """How results and traces call it."""
    judge: Runnable[Any, Any]


def kind_of_members(members: Sequence[Member]) -> Kind:
    """Return what members judge: pairs, or single texts.

    Raises:
        OptionError: They do not judge the same.
    """
    return one_kind([(member.name, kind_of(member.judge)) for member in members])


def read_members(options: Combination, value: MembersLike) -> tuple[Member, ...]:
    """Return the members of a judge made of judges, those that are models made into judges.

    Args:
        options: Its options, with those that go to the members that are made here.
        value: The members: judges, models by object or name, or specs as `judge.spec`
            returns them; a single model is asked by each of `methods`.

    Raises:
        OptionError: The members do not fit together, or an option is not allowed.
    """
    if options.prompts:
        raise OptionError("`prompts` are those of a method; give them to the members")
    entries: list[object] = (
        [value] if isinstance(value, str | BaseChatModel | Mapping | Runnable) else list(value)
    )
    if not entries:
        raise OptionError(f"{options.method!r} needs at least one member")
    if all(map(_is_model, entries)):
        return _with_names(list(map(build, options.specs_of_models(entries))))
    names = [*options.shared(), *(["methods"] if options.methods else [])]
    if names:
        quoted = ", ".join(f"`{name}`" for name in names)
        raise OptionError(f"{quoted} cannot change a ready judge: give it to each member")
    return _with_names([_judge(each) for each in entries])


def _judge(value: object) -> Runnable[Any, Any]:
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


def _with_names(judges: Sequence[Runnable[Any, Any]]) -> tuple[Member, ...]:
    """Name members by what tells them apart: model, method, or both; else by number.

    Raises:
        OptionError: The caller gave two of them the same name.
    """
    marks = [marks_of(judge) for judge in judges]
    models = [", ".join(mark.get("models") or []) for mark in marks]
    methods = [mark["method"] for mark in marks]
    method_and_model = [
        f"{method} {model}".strip() for method, model in zip(methods, models, strict=True)
    ]
    numbered = [f"{name} {number}" for number, name in enumerate(method_and_model, 1)]
    forms = (models, methods, method_and_model, numbered)
    names = next(form for form in forms if all(form) and len(set(form)) == len(form))
    given_names = [
        getattr(getattr(unwrapped(each), "options", None), "name", None) for each in judges
    ]
    member_names = [name or other for name, other in zip(given_names, names, strict=True)]
    if len(set(member_names)) < len(member_names):
        raise OptionError(f"each member needs a name of its own, got {member_names!r}")
    return tuple(map(Member, member_names, judges))
