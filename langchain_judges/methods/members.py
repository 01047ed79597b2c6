"""The members of a judge made of judges: read and named, as ready judges, models or specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from pydantic import AfterValidator

from langchain_judges.errors import OptionError
from langchain_judges.methods.marks import (
    Kind,
    kind_of,
    marks_of,
    metadata_of,
    unwrapped,
)
from langchain_judges.methods.options import JudgeOptions
from langchain_judges.options import ForClient, Rule

if TYPE_CHECKING:
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
    """Methods for members that are models: one for all, one for each, or several for a single
    model; each is a name, or `{"method", "options", "preset"}`. None: `"relative"` for several
    models."""

    def build(self, model: MembersLike) -> JudgeGraph:
        """Return the judge.

        Args:
            model: The members: judges, models by object or name, or specs as `judge.spec`
                returns them; a single model is asked by each of `methods`.

        Raises:
            OptionError: The members do not fit together, or an option is not allowed.
        """
        members = self._members(model)
        kind = one_kind([(member.name, kind_of(member.judge)) for member in members])
        # What members were given stands in their own marks and specs.
        own = self.model_copy(update=dict.fromkeys(SHARED, None) | _UNSET)
        return own.combine_members(members, kind)

    def check_size(self, size: int) -> None:
        """Check that the options fit so many members.

        Raises:
            OptionError: They do not.
        """

    def combine_members(self, members: tuple[Member, ...], kind: Kind) -> JudgeGraph:
        """Return the judge that asks these members."""
        raise NotImplementedError

    def _members(self, value: MembersLike) -> tuple[Member, ...]:
        from langchain_judges.methods.registry import build

        if self.prompts:
            raise OptionError("`prompts` are those of a method; give them to the members")
        alone = isinstance(value, str | BaseChatModel | Mapping | Runnable)
        entries = [value] if alone else list(value)
        if not entries:
            raise OptionError(f"{self.method!r} needs at least one member")
        if all(map(_is_model, entries)):
            return _with_names(list(map(build, self.specs_of_models(entries))))
        shared = {name: getattr(self, name) for name in SHARED if name in self.model_fields_set}
        if shared or self.methods:
            names = [*shared, *(["methods"] if self.methods else [])]
            options = ", ".join(f"`{name}`" for name in names)
            raise OptionError(f"{options} cannot change a ready judge: give it to each member")
        return _with_names([self._read(each) for each in entries])

    def specs_of_models(self, models: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the judge that each model is to be, as a spec.

        Raises:
            OptionError: There are more or fewer methods than models.
        """
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
        return [{**spec, "model": model} for spec, model in zip(specs, each_model, strict=True)]

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


def one_kind(members: Sequence[tuple[str, Kind]]) -> Kind:
    """Return what members judge, each given with its name.

    Raises:
        OptionError: Some judge pairs, others single texts.
    """
    if len({kind for _, kind in members}) > 1:
        raise OptionError(
            "all members must judge the same: pairs, or single texts; got "
            + ", ".join(f"{name} ({kind})" for name, kind in members)
        )
    return members[0][1]


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
