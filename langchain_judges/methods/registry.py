"""Every judging method by name, the one list of them: its factory, presets, and calls for a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from langchain_judges.asking.models import ModelSpec, model_of_spec
from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.lazy import Lazy, packaged
from langchain_judges.methods import describe
from langchain_judges.methods.declaration import GraphOptions, JudgeOptions, checked_spec
from langchain_judges.options import factory
from langchain_judges.rows.checks import Kind

if TYPE_CHECKING:
    from langchain_judges.methods.ensemble_options import Combination, MembersLike
    from langchain_judges.methods.graph import JudgeGraph

P = ParamSpec("P")
T = TypeVar("T")


# Methods by name; a method is the class of its options.
Methods = Mapping[str, "type[GraphOptions]"]

OwnOptions = TypeVar("OwnOptions", bound="JudgeOptions")
# Makes a judge of checked options and a model.
Builder = Callable[[Any, Any], "JudgeGraph"]

_HOMES: Mapping[str, Mapping[str, Any]] = packaged(__package__, "registry.yaml")
# Each name, and the module and class of its options, loaded when they are asked for.
METHODS: Lazy[type[JudgeOptions]] = Lazy(_HOMES["methods"])
# Judges made of other judges, by name; wherever a judge is named, they can be named too.
COMBINATIONS: Lazy[type[JudgeOptions]] = Lazy(_HOMES["combinations"])
# By the same names what makes a judge of checked options and a model, or of members.
BUILDERS: Lazy[Builder] = Lazy(_HOMES["builders"])


def method_of(name: str) -> type[JudgeOptions]:
    """The options of the method of a name.

    Raises:
        OptionError: There is no such method.
    """
    return named(METHODS | COMBINATIONS, name, "method")


def leaf_of(spec: Mapping[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
    """Method, preset and options of a judge; if made of judges, its first member's.

    Args:
        spec: A judge as plain JSON.
    """
    while spec["method"] in COMBINATIONS:
        members, options = spec.get("model"), spec.get("options") or {}
        first = members[0] if isinstance(members, list) and members else None
        if not isinstance(first, Mapping) or "method" not in first:
            # The methods by which the models are asked of which the judge is made.
            combination = cast("type[Combination]", COMBINATIONS[spec["method"]])
            given = options.get("methods")
            methods = given if isinstance(given, list | tuple) else ()
            first = (methods or combination.default_methods)[0]
        spec = first if isinstance(first, Mapping) else {"method": first}
    return spec["method"], spec.get("preset"), dict(spec.get("options") or {})


def load_judge(
    method: str | Mapping[str, object],
    model: MembersLike | None = None,
    *,
    preset: str | None = None,
    **options: Any,
) -> JudgeGraph:
    """Create a judge by the name of its method, or from what `judge.spec` returned.

    Args:
        method: A key of `METHODS`, such as `"bsm"`, or of `COMBINATIONS`, such as `"jury"`; or
            a whole judge as plain JSON: `{"method", "model", "options"?, "preset"?}`. Its model
            is a name, or `{"name", "base_url"?, "api_key_env"?, "timeout"?, "settings"?}`; of a
            judge made of judges the list of its members' specs.
        model: What `resolve_model` takes; of a combination its members.
        preset: One of the method's presets.
        **options: Keywords of the method's factory; they override the preset's.

    Raises:
        OptionError: The method, preset or an option is unknown, or there is no model.
    """
    if isinstance(method, Mapping):
        if model is not None or preset or options:
            raise OptionError("a judge as plain JSON holds its model, preset and options")
        spec = checked_spec(method)
        method, model, preset = spec["method"], spec["model"], spec.get("preset")
        options = spec.get("options") or {}
    if model is None:
        raise OptionError(f"{method!r} needs a model")
    return built(options_of(METHODS | COMBINATIONS, method, preset, options), model)


def built(options: GraphOptions, model: Any) -> JudgeGraph:
    """The judge of checked options and a model, which may be plain JSON.

    Raises:
        ModelSetupError: The model cannot be made.
    """
    build = BUILDERS[options.method]
    if not isinstance(model, Mapping) or options.method in COMBINATIONS:
        return build(options, model)
    spec = cast("ModelSpec", model)
    judge = build(options, model_of_spec(spec))
    judge.model = spec
    return judge


def result_tables(method: str | None = None) -> Mapping[str, str]:
    """The results that a method, or any, shows as tables: their keys and titles."""
    known = METHODS | COMBINATIONS
    if method is not None and method in known:
        return known[method].result_tables
    return {key: title for kind in known.values() for key, title in kind.result_tables.items()}


def register(
    kind: Callable[P, OwnOptions], builder: Callable[[OwnOptions, Any], JudgeGraph]
) -> Callable[Concatenate[Any, P], JudgeGraph]:
    """Make a method of your own known wherever methods are named, and return its factory.

    A class that is defined again, as when a notebook's cell is rerun, replaces the earlier one.

    Args:
        kind: The class of its options.
        builder: Makes a judge of checked options and a model, as `factory` takes it.

    Raises:
        OptionError: There is another method of its name.
    """
    options = cast("type[JudgeOptions]", kind)
    name = options.method
    known = METHODS.get(name, options)
    is_same = known.__module__ == kind.__module__ and known.__qualname__ == kind.__qualname__
    if name in COMBINATIONS or not is_same:
        raise OptionError(f"there is a method {name!r} already")
    METHODS[name] = options
    BUILDERS[name] = builder
    return factory(kind, builder, f"create_{name}_judge")


def options_of(
    table: Methods, method: str, preset: str | None, options: Mapping[str, object]
) -> GraphOptions:
    """The checked options of a method, on top of those of a preset.

    Raises:
        OptionError: The method, preset or an option is unknown.
    """
    kind = named(table, method, "method")
    preset_options = named(kind.presets, preset, f"preset of {method!r}") if preset else {}
    return kind(**{**preset_options, **options})


def named(table: Mapping[str, T], name: str, what: str) -> T:
    """The entry of a name, or an `OptionError` with all names."""
    if name in table:
        return table[name]
    from langchain_judges.methods.rubric.criteria import other_names

    called = {other: own for other, own in other_names().items() if own in table}
    hint = did_you_mean(name, table, called)
    others = f"there are {', '.join(sorted(table))}" if table else "there are none"
    kind, of, whose = what.partition(" of ")
    raise OptionError(f"there is no {kind} {name!r}{of}{whose}; {hint}{others}")


class Asked(NamedTuple):
    """A model, and how many calls it gets for a row.

    Attributes:
        more: Further calls for a row that does not fit into the model's context.
    """

    calls: int
    model: ModelSpec
    more: int = 0


class CallEstimate(NamedTuple):
    """The rows of a judge, and the calls of each model for one."""

    method: str
    kind: Kind
    asked: tuple[Asked, ...]

    @property
    def calls(self) -> int:
        """The most calls for a row, excluding retries."""
        return sum(each.calls for each in self.asked)

    @property
    def more(self) -> int:
        """The most further calls for a row too long for the model's context."""
        return sum(each.more for each in self.asked)

    @property
    def is_local(self) -> bool:
        """Whether a model inside this process is asked."""
        return any(each.model["name"].partition(":")[0] == "local" for each in self.asked)


def estimate_calls(spec: Mapping[str, object]) -> CallEstimate:
    """The calls of the judge of a spec; its options are checked.

    Args:
        spec: A judge as `load_judge` takes it; `options` may hold a memory too.

    Raises:
        OptionError: A field or an option is not allowed, or members do not fit together.
    """
    judge = checked_spec(spec)
    method, model = judge["method"], judge["model"]
    preset, given = judge.get("preset"), judge.get("options") or {}
    options = options_of(METHODS | COMBINATIONS, method, preset, given)
    if method not in COMBINATIONS:
        judge_options = cast("JudgeOptions", options)
        model_spec: ModelSpec = {"name": model} if isinstance(model, str) else model
        asked = Asked(judge_options.calls(), model_spec, getattr(options, "rounds_without_room", 0))
        return CallEstimate(method, judge_options.takes, (asked,))
    combination = cast("Combination", options)
    entries = list(model) if isinstance(model, list | tuple) else [model]
    members = [estimate_calls(each) for each in combination.specs_of(entries)]
    kinds = [(member.method, member.kind) for member in members]
    combination.check_size(len(members))
    wanted = tuple(each for member in members for each in member.asked)
    return CallEstimate(method, describe.one_kind(kinds), wanted)
