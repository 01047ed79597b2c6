"""Options of every judge and writer, and the declaration of a method."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar, NotRequired, cast

from annotated_types import Ge, Le
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import BasePromptTemplate, ChatPromptTemplate
from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import AfterValidator, BeforeValidator, InstanceOf, SkipValidation, model_validator
from typing_extensions import TypedDict

from langchain_judges import lazy, orders
from langchain_judges.asking.effects import Step, Update
from langchain_judges.asking.models import ModelLike, plain_model
from langchain_judges.asking.own_prompts import read_prompts
from langchain_judges.asking.question import Account
from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import Recall, read_recall
from langchain_judges.memory.shown import Memory, Recaller, is_memory
from langchain_judges.options import NotSerialisable, Options, Owner, Rule, rule_of
from langchain_judges.rows import files, texts
from langchain_judges.rows.checks import Kind

PRESETS: Mapping[str, Mapping[str, Any]] = lazy.packaged(__package__, "presets.yaml")
# What prompts of several methods are filled with, and longer messages.
WORDS: Mapping[str, Any] = lazy.packaged(__package__, "words.yaml")
# One phase of a method: from the graph's state, and the row's account, to what changes.
Phase = Callable[[Any, Account], Step[Update]]


class JudgeSpec(TypedDict):
    """A judge as plain JSON, from which `load_judge` makes it.

    Attributes:
        model: By name or as a `ModelSpec`; of a judge made of judges the specs of its members.
    """

    method: str
    model: Any
    options: NotRequired[dict[str, Any]]
    preset: NotRequired[str | None]


def checked_spec(spec: Mapping[str, object]) -> JudgeSpec:
    """Plain JSON that has the form of a judge; its options are not looked at.

    Raises:
        OptionError: A field is missing or unknown, or has the wrong type.
    """
    names = set(spec) if isinstance(spec, Mapping) else set()
    if not {"method", "model"} <= names or names - {"method", "model", "options", "preset"}:
        raise OptionError(WORDS["spec"].format(sorted(map(str, names)) or spec))
    options, preset = spec.get("options"), spec.get("preset")
    if not isinstance(options, Mapping | None) or {*map(type, options or ())} - {str}:
        raise OptionError(f"the `options` of a spec must be an object, got {options!r}")
    if not isinstance(spec["method"], str) or not isinstance(preset, str | None):
        wrong = preset if isinstance(spec["method"], str) else spec["method"]
        raise OptionError(f"`method` and `preset` of a spec must be texts, got {wrong!r}")
    return cast("JudgeSpec", spec)


def read_spec(path: Path) -> dict[str, Any]:
    """The judge that a file describes, as `load_judge` takes it.

    Raises:
        OptionError: The file cannot be read, or holds no spec.
    """
    try:
        spec = files.json_in(path)
    except (OSError, ValueError) as exc:
        raise OptionError(f"{path} cannot be read as JSON: {exc}") from exc
    if not isinstance(spec, dict) or "method" not in spec:
        raise OptionError(f'{path} must hold {{"method", "model", "options"}}')
    return spec


def _check_text(text: str) -> str:
    if texts.is_blank(text):
        raise ValueError("empty")
    return text


# A name on one line, and a description behind a colon and a space, or a colon that is wide.
_NAMED = re.compile(r"(.*?)[^\S\n]*(?::(?=\s|$)|：)\s*((?s:.*))")


def name_and_text(text: str) -> tuple[str, str | None]:
    """The name and the description in `"name: description"`; all of another text is its name.

    A colon without a space behind it parts nothing. Whatever is read, `with_name` puts both
    together again as the text was written: behind another colon the description is all of it.

    >>> name_and_text("Tone: polite"), name_and_text("At 10:30 it opens")
    (('Tone', 'polite'), ('At 10:30 it opens', None))
    >>> name_and_text("Ton : est-il poli ?")
    ('Ton', 'Ton : est-il poli ?')
    """
    if not (parts := _NAMED.fullmatch(text := text.strip())):
        return text, None
    name, description = parts.groups()
    return name, description if f"{name}: {description}".rstrip() == text else text


def with_name(name: str, description: str) -> str:
    """A description behind its name, unless it begins with it.

    >>> with_name("Ton", "Ton : est-il poli ?"), with_name("Tone", "polite"), with_name("Wit", "")
    ('Ton : est-il poli ?', 'Tone: polite', 'Wit')
    """
    if re.match(rf"{re.escape(name)}\s*[:：]", description):
        return description
    return f"{name}: {description}" if description else name


# A text with something in it.
Written = Annotated[str, AfterValidator(_check_text), Rule("a text that is not empty")]


def _chat_model(value: ModelLike | None) -> str | BaseChatModel | None:
    model: Any = plain_model(value)
    if not isinstance(model, str | BaseChatModel | None):
        raise ValueError("no model")
    return model


# A model for one step, instead of the judge's own.
OtherModel = Annotated[
    Written | InstanceOf[Runnable[Any, Any]] | None,
    AfterValidator(_chat_model),
    Owner(),
    Rule("a chat model, 'local', 'local:/path/to.gguf' or a name such as 'openai:gpt-5-mini'"),
]

# Of random choices.
Seed = Annotated[int, Ge(0)]


def _stripped(text: str | None) -> str | None:
    return (text or "").strip() or None


class AskingOptions(Options):
    """The options of everything that asks a model.

    Attributes:
        instructions: Your rubric, or the language to answer in; shown to every step.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may correct an unusable reply.
        prompts: Your own prompts, by step, or only the one that judges: each a text, a
            template, or a mapping with `prompt` and `system`; or a YAML file.
        cache: LangChain cache for checked replies.
    """

    instructions: Annotated[str | None, AfterValidator(_stripped)] = None
    temperature: Annotated[float, Ge(0), Le(2)] | None = None
    repairs: Annotated[int, Ge(0)] = 1
    prompts: Annotated[
        Mapping[str, Any] | InstanceOf[BasePromptTemplate[Any]] | str | PathLike[str] | None,
        BeforeValidator(read_prompts),
        Owner(),
        Rule("a prompt, prompts by step, or the path of a YAML file of them"),
    ] = None
    cache: Annotated[
        BaseCache | None, NotSerialisable(), Rule("a LangChain `BaseCache` or None")
    ] = None

    @property
    def filled(self) -> set[str]:
        """The options that are set, which a prompt may have to show."""
        return {name for name, _ in self.__repr_args__() if name}


class GraphOptions(AskingOptions):
    """The options of every judge and writer, and the facts about its method.

    Attributes:
        method: The method's name on the command line, in traces and in results.
        summary: One line for lists of methods.
        presets: Options by name; a preset is data, not another code path, and those of the
            package are in `presets.yaml`, by the name of their method.
        few: Options with which a judgment takes few calls, for examples and tests.
        result_tables: Results that a page shows as tables next to the verdict, with titles.
        templates: Its prompts by name; a step usually asks by the one of its own name.
        results: What it returns besides the verdict: keys of its state.
        revision: Raised when the code decides otherwise than before, so that a run which is
            resumed judges its rows again.
        name: Name of the graph in traces; default the method's.
        checkpointer: LangGraph checkpointer: `SqliteSaver` for `invoke`, `AsyncSqliteSaver`
            for `ainvoke`.
        cache_first: Send the first of several calls with a common beginning ahead, for
            providers' prompt caches.
    """

    method: ClassVar[str]
    summary: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    few: ClassVar[Mapping[str, Any]] = {}
    result_tables: ClassVar[Mapping[str, str]] = {}
    templates: ClassVar[Mapping[str, ChatPromptTemplate]]

    results: ClassVar[tuple[str, ...]] = ()
    revision: ClassVar[int] = 0

    name: Written | None = None
    checkpointer: Annotated[
        BaseCheckpointSaver[Any] | bool | None,
        NotSerialisable(),
        Rule("a LangGraph checkpointer, such as `SqliteSaver`, or None"),
    ] = None
    cache_first: bool = True

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Give a method of the package its presets."""
        if "presets" not in vars(cls):
            cls.presets = PRESETS.get(getattr(cls, "method", ""), cls.presets)

    @property
    def prompt_texts(self) -> Mapping[str, ChatPromptTemplate]:
        """The prompts that are used with these options."""
        return self.templates

    @property
    def judging(self) -> str:
        """The step of a caller's one prompt, which judges; empty: there is none."""
        return next((each for each in ("judge", "evaluate") if each in self.prompt_texts), "")

    @property
    def unasked(self) -> set[str]:
        """The steps with a prompt that nothing is asked by with these options."""
        return set()

    @property
    def models(self) -> Mapping[str, ModelLike | None]:
        """The steps that ask a model, each with its own or None: the judge's."""
        return dict.fromkeys(self.prompt_texts)

    def given(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row given to `invoke`, in the form that this graph takes."""
        return row

    @property
    def label(self) -> str:
        """The method's name in results and traces."""
        return self.method

    def fingerprint(self) -> dict[str, Any]:
        """Plain data that decides verdicts, besides the options: the content of files."""
        return {}

    def calls(self) -> int:
        """The calls for one row, excluding repairs."""
        raise NotImplementedError(f"{type(self).__name__} needs `calls`: replies for a row")

    def branches(self) -> int:
        """The most calls in flight at the same time."""
        return self.calls()


def _choice(recall: Recall | str) -> Recall | str:
    read_recall(recall)
    return recall


_Choice = Annotated[
    Recall | str, AfterValidator(_choice), Rule("a choice of examples such as 'knn:8'")
]


class JudgeOptions(GraphOptions):
    """The options of every judge.

    Attributes:
        takes: What it judges: two texts, or one.
        examples_in: The steps whose prompts show remembered examples.
        describes: The steps that describe texts and judge nothing: their prompts need neither
            the caller's instructions nor the reference.
        memory: Audited mistakes; the judge sees those similar to the row. Or a list of examples
            with `input`, `output`, `label` and `reason`, which it sees all.
        recall: How examples are chosen, such as `"near:8"`; default the memory's own strategy.
        allow_leak: Allow examples of the row itself and of its group.
        context: Tokens that fit in a prompt; default: from the model's profile. Longer rows
            lose the middle of their longest parts, and the verdict says so.
    """

    takes: ClassVar[Kind] = "pair"
    examples_in: ClassVar[tuple[str, ...]] = ()
    describes: ClassVar[tuple[str, ...]] = ()

    memory: Annotated[
        Memory | Sequence[Mapping[str, Any]] | None,
        SkipValidation,
        Rule("a FailureMemory or a list of examples"),
        NotSerialisable(),
    ] = None
    recall: _Choice | None = None
    allow_leak: bool = False
    context: Annotated[int, Ge(500)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, values: Any) -> Any:
        listed = values.get("memory") if isinstance(values, dict) else None
        if listed is None or is_memory(listed):
            return values
        if not isinstance(listed, list | tuple):
            said = rule_of(cls, "memory")
            raise OptionError(f"`memory` must be {said}, got {type(listed).__name__}")
        # Loaded on use: most judges have no memory.
        from langchain_core.embeddings import DeterministicFakeEmbedding

        from langchain_judges.memory.failure_memory import FailureMemory

        # Where all are shown nothing is searched for, and any vectors do.
        how = values.get("recall")
        vectors = None if how else DeterministicFakeEmbedding(size=1)
        memory = FailureMemory(embeddings=vectors, recall=how or "all")
        # They are on the scale of the judge that they are given to.
        memory.remember([{"scale": [], **e} if isinstance(e, Mapping) else e for e in listed])
        return {**values, "memory": memory}

    def recaller(self, contexts: Sequence[int | None]) -> Recaller | None:
        """The way in which the judge queries its memory; None without one.

        Args:
            contexts: Tokens that fit into each model that is shown examples, where known.

        Raises:
            OptionError: An option of the memory is set, and there is none.
        """
        if is_memory(self.memory):
            how = read_recall(self.memory.how if self.recall is None else self.recall)
            context = min(filter(None, contexts), default=None)
            return Recaller(self.memory, how, self.allow_leak, context)
        if self.recall is not None or self.allow_leak:
            raise OptionError("`recall` and `allow_leak` need a `memory`")
        return None

    @property
    def order_rule(self) -> orders.OrderRule:
        """The rule that combines the verdicts of both orders."""
        return getattr(self, "orders", None) or "none"

    @property
    def single(self) -> orders.Order:
        """The order of a judge that asks one."""
        return "AB"

    @property
    def order_list(self) -> tuple[orders.Order, ...]:
        """The orders that are asked."""
        return (self.single,) if self.order_rule == "none" else ("AB", "BA")


def check_quorum(least: int | None, most: int) -> None:
    """Check that `min_valid` can be met.

    Raises:
        OptionError: It cannot be met.
    """
    if least is not None and least > most:
        raise OptionError(f"`min_valid` must be at most {most}, got {least!r}")
