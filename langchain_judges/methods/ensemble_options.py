"""Options of judges made of judges, and how their members are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import Annotated, Any, ClassVar, NotRequired, Self

from annotated_types import MinLen
from langchain_core.language_models import BaseChatModel
from typing_extensions import TypedDict

from langchain_judges import options, verdict
from langchain_judges.asking.models import ModelLike
from langchain_judges.errors import OptionError
from langchain_judges.methods.declaration import WORDS, JudgeOptions


class Opinion(TypedDict):
    """The decision of one member.

    Attributes:
        preference: Of a judge of pairs; None: not judged.
        label: Of a judge of one text; None: not judged.
    """

    member: str
    preference: NotRequired[verdict.Preference | None]
    label: NotRequired[int | float | str | None]
    score: float | None
    confidence: float | None
    flipped: NotRequired[bool | None]
    rationale: str
    calls: int


# A judge, a model by name, as an object or as JSON, or the spec of a judge.
MemberLike = ModelLike | Mapping[str, Any]
# Members in a list; or one model for several methods.
MembersLike = MemberLike | Sequence[MemberLike]
# Options that go to each member which is made here; a ready judge has its own.
COMMON = (
    *("instructions", "temperature", "repairs", "cache", "memory", "recall", "allow_leak"),
    "context",
)

_UNSET = {"methods": None, "repairs": 1, "allow_leak": False}
# A method by name, or as a spec without a model: `{"method", "options"?, "preset"?}`.
Named = str | Mapping[str, object]


def _is_model(value: object) -> bool:
    """Whether a member is a model: an object, a name, or an object of JSON with a name."""
    is_model_spec = isinstance(value, Mapping) and "method" not in value
    return is_model_spec or isinstance(value, str | BaseChatModel)


class Combination(JudgeOptions):
    """The options of every judge made of judges, apart from its members.

    Attributes:
        default_methods: How a single model judges, where no method is named.
        methods: Methods for members that are models: one for all, one for each, or several for
            a single model; names, or `{"method", "options", "preset"}`. Default `"relative"`.
    """

    default_methods: ClassVar[tuple[str, ...]] = ("relative",)

    methods: Annotated[
        Annotated[Sequence[Named], MinLen(1)] | None,
        options.Owner(),
        options.Rule("a list of methods, each a name or {'method', 'options', 'preset'}"),
    ] = None

    def check_size(self, size: int) -> None:
        """Check that the options fit this many members.

        Raises:
            OptionError: They do not fit.
        """

    def without_shared(self) -> Self:
        """The options without those of its members, which are in their specs."""
        return self.model_copy(update=dict.fromkeys(COMMON, None) | _UNSET)

    def shared(self) -> dict[str, object]:
        """The options that were given for each member which is made here."""
        return {name: getattr(self, name) for name in COMMON if name in self.model_fields_set}

    def specs_of(self, members: Sequence[Any]) -> list[Any]:
        """The members, a spec of a judge in place of each model.

        Raises:
            OptionError: There are none, more or fewer methods than models, or options of
                members beside one that is ready.
        """
        if not members:
            raise OptionError(f"{self.method!r} needs at least one member")
        if all(map(_is_model, members)):
            return self._specs_of_models(members)
        if names := [*self.shared(), *(["methods"] if self.methods else [])]:
            quoted = ", ".join(f"`{name}`" for name in names)
            raise OptionError(f"{quoted} cannot change a ready judge: give it to each member")
        return [{"method": "relative", "model": m} if _is_model(m) else m for m in members]

    def _specs_of_models(self, models: Sequence[object]) -> list[dict[str, Any]]:
        default = self.default_methods if len(models) == 1 else ("relative",)
        methods = list(self.methods or default)
        if len(models) > 1 and len(methods) not in {1, len(models)}:
            raise OptionError(WORDS["methods"].format(len(methods), len(models)))
        shared = self.shared()
        specs: list[dict[str, Any]] = []
        both = zip(cycle(methods), cycle(models), strict=False)
        for method, model in islice(both, max(len(models), len(methods))):
            spec: Any = method if isinstance(method, Mapping) else {"method": method}
            own = {**shared, **(spec.get("options") or {})}
            specs.append({**spec, "options": own, "model": model})
        return specs
