"""Shared parts of writers: state, and the steps to begin, show, ask and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Generic, Literal, NotRequired, Self, TypeVar

from pydantic import BaseModel, Field, model_validator
from typing_extensions import TypedDict

from langchain_judges.asking import effects, models, reading
from langchain_judges.asking.ask import ask
from langchain_judges.asking.question import Account, Reply, chat_prompt
from langchain_judges.lazy import packaged
from langchain_judges.methods.context import JudgeContext, StateSchema
from langchain_judges.methods.pairs import Worded
from langchain_judges.rows import checks, fences
from langchain_judges.verdict import Failure, Usage
from langchain_judges.writing import coverage

_WRITTEN = packaged(__package__, "prompts.yaml")
_ALL = {step: chat_prompt(_WRITTEN["system"], text) for step, text in _WRITTEN["steps"].items()}

# Every prompt of the Branch-Solve-Merge writer, and of the baselines, by the name of its step.
PROMPTS = {step: _ALL[step] for step in ("split", "solve", "merge", "repair")}
DIRECT_PROMPTS = {"plan": _ALL["plan"], "draft": _ALL["solve"], "choose": _ALL["choose"]}

# What the prompts are filled with.
WORDS: Mapping[str, str] = _WRITTEN["words"]


class WritingTask(TypedDict):
    """The concepts that a text has to use, and the text that is wanted.

    Attributes:
        instruction: What is written; default a story of one paragraph.
    """

    concepts: list[str]
    instruction: NotRequired[str | None]
    id: NotRequired[str]


class WriteState(WritingTask, total=False):
    """State of the graph; every value is plain JSON.

    Attributes:
        concepts: Those asked for, repetitions left out.
        text: None: nothing usable was written, see `failures`.
        groups: The concepts by the draft that had to use them.
        drafts: The drafts, in the order of `groups`; None for one that failed.
    """

    topic: str | None
    text: str | None
    groups: list[list[str]]
    drafts: list[str | None]
    missing: list[coverage.Missing]
    failures: list[Failure]
    usage: Usage


class GivenPart(TypedDict):
    """A text to work on, and the concepts that it has to use."""

    concepts: list[str]
    text: str


class DraftReply(BaseModel):
    """A text."""

    text: str = Field(pattern=r"\w")


class Topic(BaseModel):
    """A topic."""

    topic: str = Field(pattern=r"\w", json_schema_extra={"maxLength": 100})


@cache
def groups_shape(groups: int, concepts: int) -> type[BaseModel]:
    """The shape of a division into `groups` groups: a topic, then each group.

    What stands in the groups is not checked here: the division is corrected afterwards.
    """
    short = Annotated[str, Field(json_schema_extra={"maxLength": 40})]
    many = Annotated[list[short], Field(json_schema_extra={"maxItems": concepts})]
    topic = Annotated[str, Field(json_schema_extra={"maxLength": 100})]
    names = (f"group_{n}" for n in range(1, groups + 1))
    return reading.shape_of("Split", {"topic": topic, **dict.fromkeys(names, many)})


@cache
def pick_shape(texts: int) -> type[BaseModel]:
    """The shape of a choice among so many texts."""
    numbers = tuple(str(n) for n in range(1, texts + 1))
    return reading.shape_of("Pick", {"explanation": str, "choice": Literal[numbers]})


# The types of a writer's graph.
RESULTS = (
    *("id", "concepts", "text", "topic", "groups", "drafts", "missing"),
    *("usage", "failures"),
)
SCHEMA = StateSchema(WriteState, RESULTS, WritingTask)
# Characters of a text by a local model, whose strings are kept short elsewhere. Even if each is
# a token of its own, as where it repeats itself, the reply is not cut.
LONGEST_DRAFT = 360


class WriterOptions(Worded):
    """The options of every writer.

    Attributes:
        strict: Count a concept only in its exact form.
        language: The language whose word forms count: `"english"`, or one with a Snowball
            stemmer, such as `"german"`.
    """

    strict: bool = False

    language: str = coverage.ENGLISH

    @model_validator(mode="after")
    def _can_tell_word_forms(self) -> Self:
        if not self.strict:
            coverage.check_word_forms(self.language)
        return self

    @property
    def counting(self) -> coverage.Counting:
        """The rule of using a concept."""
        return {"strict": self.strict, "language": self.language}


Own = TypeVar("Own", bound=WriterOptions)


@dataclass(frozen=True)
class Writer(Generic[Own]):
    """The steps that the writers share, with their options."""

    options: Own
    context: JudgeContext

    @classmethod
    def of(cls, options: Own, model: models.ModelLike) -> Self:
        """Choose prompts and models; a local model may write longer texts than it judges."""
        context = JudgeContext.of(options, model, SCHEMA)
        for adapter in context.adapters.values():
            if adapter.text_limit:
                adapter.text_limit = LONGEST_DRAFT
        return cls(options, context)

    def start(self, state: WriteState, account: Account) -> effects.Update:
        """Check the task and empty what an earlier run of the thread left."""
        checks.check_task(dict(state))
        return {**self.context.schema.blank, "concepts": coverage.distinct(state["concepts"])}

    async def ask(
        self,
        step: str,
        shape: type[BaseModel],
        material: Mapping[str, object],
        account: Account,
        unit: str = "",
        **more: Any,
    ) -> Reply:
        """Ask a step's question.

        Args:
            step: The step.
            shape: What the reply must look like.
            material: What `prompt_variables` returned.
            account: Of the row.
            unit: What the step works on.
            more: Fields of the question, and `seed`.
        """
        seed = more.pop("seed", None)
        if unit:
            more["label"] = "{unit}" if step == "draft" else f"{step}: {{unit}}"
        question = self.context.question(step, shape, **more)
        return await ask(question, material, account, unit=unit, seed=seed)

    def prompt_variables(
        self, about: Mapping[str, Any], parts: Sequence[GivenPart] = (), **more: str
    ) -> dict[str, object]:
        """The variables of a prompt: the concepts, texts to work on, the caller's wishes.

        Args:
            about: Holds `concepts`, and `instruction` and `topic` where there are any.
            parts: Texts, each with the concepts that it has to use.
            **more: Texts in fences of their own.
        """
        texts_in = {"concepts": "\n".join(about["concepts"]), **more}
        token = fences.fence(*texts_in.values(), *(part["text"] for part in parts))
        added, topic = self.options.instructions, about.get("topic")
        instruction = about.get("instruction") or WORDS["instruction"]
        # A task of the caller's own may state a length, and the paper's prompts state none.
        is_brief = instruction == WORDS["instruction"] and self.options.wording == "own"
        drafts = [
            (WORDS["draft"] if part["concepts"] else WORDS["attempt"]).format(
                number=n, fence=token, concepts="\n".join(part["concepts"]), text=part["text"]
            )
            for n, part in enumerate(parts, 1)
        ]
        form = (
            "any" if coverage.tells_forms(about["concepts"], **self.options.counting) else "exact"
        )
        return {
            "fence": token,
            "forms": WORDS[f"{form}_form"],
            "instruction": instruction,
            "what": about.get("place") or WORDS["whole"],
            "brief": WORDS["brief"] if is_brief else "",
            "instructions": WORDS["instructions"].format(instructions=added) if added else "",
            "topic": WORDS["topic"].format(topic=topic) if topic else "",
            "parts": len(parts),
            "drafts": "\n".join(drafts),
            **texts_in,
        }

    async def written(
        self, step: str, name: str, material: Mapping[str, object], account: Account, **more: Any
    ) -> str | None:
        """Ask for a text, and tell it under a name when it lands; None where none came."""
        reply = await self.ask(step, DraftReply, material, account, **more)
        text = reply.data["text"].strip() if reply.data else None
        effects.emit("draft", step, {"unit": name, "text": text})
        return text

    def outcome(
        self,
        state: WriteState,
        text: str | None,
        groups: list[list[str]],
        drafts: Sequence[str | None],
    ) -> effects.Update:
        """The text, and what it lacks."""
        missing = coverage.losses(state["concepts"], groups, drafts, text, **self.options.counting)
        return {"text": text, "groups": groups, "drafts": list(drafts), "missing": missing}
