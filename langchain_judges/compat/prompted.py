"""A judge by a prompt of the caller's own: what it is sent, and how its reply is read."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from math import inf, isfinite
from string import Formatter
from typing import Annotated, Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, convert_to_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.prompts.structured import StructuredPrompt
from langchain_core.runnables import Runnable, RunnableSequence
from langchain_core.utils.function_calling import convert_to_json_schema
from langchain_core.utils.json_schema import dereference_refs
from pydantic import AfterValidator, BaseModel, WithJsonSchema, create_model, model_validator

from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.own_prompts import as_text, in_fence, unescaped
from langchain_judges.asking.question import Account, Question
from langchain_judges.asking.reading import Parse
from langchain_judges.errors import InputError, NotJudgedError, OptionError
from langchain_judges.integrations.eval_cases import attachment_blocks
from langchain_judges.lazy import packaged
from langchain_judges.rows.fences import MATERIAL_RULE

# Prompts of the other packages, and longer messages.
WORDS: Mapping[str, Any] = packaged(__package__, "prompts.yaml")

# A prompt in any form: a template as `str.format` fills it, a LangChain prompt, or a function
# of the call's keywords to messages.
PromptLike = str | Runnable[Any, Any] | Callable[..., Any]
_PROMPT = ChatPromptTemplate([MessagesPlaceholder("messages")])
# Fields of a row; other keywords of a call are variables as they are.
_TEXTS = ("inputs", "outputs", "reference_outputs")


@dataclass
class OwnPromptJudge:
    """Asks one question in the caller's words, and checks the reply.

    Attributes:
        prompt: What is asked.
        judge: A chat model, or a client of OpenAI's protocol.
        model: The name of the model.
        system: The system message for a prompt that is a string.
        continuous: Whether the score is a number.
        choices: The numbers that the score may be.
        use_reasoning: Whether a reason is asked before the score.
        few_shot_examples: Appended to the prompt.
        output_schema: What the reply must look like, instead of a score.
        parse: Reads a reply in plain text.
    """

    prompt: PromptLike
    judge: Any = None
    model: str | None = None
    system: str | None = None
    continuous: bool = False
    choices: Sequence[float] | None = None
    use_reasoning: bool = True
    few_shot_examples: Sequence[Mapping[str, Any]] | None = None
    output_schema: Any = None
    parse: Parse | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without a model."""
        if self.system is not None and not isinstance(self.prompt, str):
            raise OptionError("`system` goes with a `prompt` that is a string")
        if isinstance(self.prompt, str):
            _check_braces(self.prompt)
        steps = self.prompt.steps if isinstance(self.prompt, RunnableSequence) else [self.prompt]
        *_, last = held = [getattr(step, "bound", step) for step in steps]
        if any(isinstance(each, BaseLanguageModel) for each in held):
            raise OptionError(WORDS["holds_model"])
        if isinstance(last, StructuredPrompt):
            if self.output_schema is not None:
                raise OptionError("`output_schema` does not go with a `StructuredPrompt`")
            self.output_schema = last.schema_
        self.shape = _shape_of(self.output_schema or self._score_schema())

    @cached_property
    def adapter(self) -> ModelAdapter:
        """Adapter of the model, made at the first call: its key may be set late."""
        if callable(_create_of(self.judge)):
            if not self.model:
                raise OptionError("with a client as `judge`, `model` names the model")
            return ModelAdapter(_model_of(self.judge, self.model.removeprefix("openai:")))
        chosen = self.model if self.judge is None else self.judge
        if chosen is None:
            raise OptionError("`judge` or `model` must say which model is asked")
        return ModelAdapter(chosen)

    async def ask(self, name: str, values: Mapping[str, Any]) -> Any:
        """Ask, and return the data of the reply; a pydantic `output_schema` as its instance.

        Args:
            name: What the call is named in traces.
            values: Fill the prompt.

        Raises:
            NotJudgedError: No reply could be used.
        """
        question = Question(
            method="own prompt",
            step=name,
            adapter=self.adapter,
            prompt=_PROMPT,
            reply_schema=self.shape,
            version="",
            parse=self.parse,
        )
        reply = await ask(question, self._shown(values), Account())
        if reply.data is None:
            failure = reply.failures[-1]
            raise NotJudgedError(f"not judged ({failure['reason']}): {failure['detail']}")
        asked = self.shape.model_fields
        data = {k: v for k, v in reply.data.items() if v is not None or asked[k].is_required()}
        schema = self.output_schema
        return schema.model_validate(data) if _is_model(schema) else data

    def _shown(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The messages to send, and the texts in them that others wrote."""
        given = {k: v for k, v in values.items() if v is not None and k != "attachments"}
        texts = {k: as_text(v) if k in _TEXTS else v for k, v in given.items()}
        messages: list[BaseMessage]
        if isinstance(self.prompt, str):
            blocks = attachment_blocks(values.get("attachments"))
            messages = [HumanMessage(_filled(self.prompt, texts, blocks))]
        elif isinstance(self.prompt, Runnable):
            fenced = {k: in_fence(k, v) if isinstance(v, str) else v for k, v in texts.items()}
            messages = unescaped(self.prompt).invoke(fenced).to_messages()
        else:
            messages = convert_to_messages(self.prompt(**{**dict.fromkeys(_TEXTS), **values}))
        if self.few_shot_examples:
            messages = _with_examples(messages, self.few_shot_examples)
        rules = [self.system] if self.system is not None else []
        if isinstance(self.prompt, str | Runnable) and texts:
            rules.append(MATERIAL_RULE)
        material = "\n".join(text for text in texts.values() if isinstance(text, str))
        return {"messages": _with_rules(messages, rules), "response": material}

    def _score_schema(self) -> dict[str, Any]:
        score: dict[str, Any] = {"type": "boolean", "description": f"Whether {_HOLDS}."}
        if self.continuous:
            told = f"How far {_HOLDS}, from 0.0 to 1.0."
            score = {"type": "number", "description": told, "minimum": 0, "maximum": 1}
        if choices := self.choices:
            score = {"type": "number", "enum": [*choices], "description": f"How far {_HOLDS}."}
        reason = {"reasoning": {"type": "string", "description": "The reason for the score."}}
        asked = {**(reason if self.use_reasoning else {}), "score": score}
        return {"title": "score", "properties": asked, "required": [*asked]}


_HOLDS = "what the prompt asks for holds"


def prompt_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a factory's arguments that an `OwnPromptJudge` takes."""
    return {each.name: given[each.name] for each in fields(OwnPromptJudge) if each.name in given}


def _create_of(client: Any) -> Any:
    """Function that calls a client of OpenAI's protocol, such as `openai.OpenAI()`."""
    return getattr(getattr(getattr(client, "chat", None), "completions", None), "create", None)


def _model_of(client: Any, name: str) -> Any:
    """A chat model that sends its requests through a client."""
    from langchain_openai import ChatOpenAI

    kind = "async_" if inspect.iscoroutinefunction(_create_of(client)) else ""
    access: dict[str, Any] = {
        "api_key": getattr(client, "api_key", None) or "none",
        "base_url": str(getattr(client, "base_url", "")) or None,
        f"root_{kind}client": client,
        f"{kind}client": client.chat.completions,
    }
    return ChatOpenAI(model=name, use_responses_api=False, **access)


class _Fencing(Formatter):
    """`str.format` with a fence around each text that is put in."""

    def get_field(self, name: str, args: Any, values: Any) -> Any:
        """Look a variable up, as a text in its fence; numbers stay what they are."""
        try:
            value, first = super().get_field(name, args, values)
        except (LookupError, TypeError, AttributeError) as exc:
            raise InputError(WORDS["not_given"].format(name, sorted(values))) from exc
        is_number = isinstance(value, bool | int | float)
        return (value if is_number else in_fence(str(first), as_text(value))), first


def _check_braces(template: str) -> None:
    """Check that each brace of a template is a variable's.

    Raises:
        OptionError: One is not.
    """
    try:
        names = [name for _, name, *_ in Formatter().parse(template) if name is not None]
        odd = [f"{name!r} is no name" for name in names if not name[:1].isidentifier()]
    except ValueError as exc:
        odd = [str(exc)]
    if odd:
        raise OptionError(WORDS["lone_brace"].format(odd[0]))


def _filled(
    template: str, texts: Mapping[str, Any], blocks: Sequence[dict[str, Any]]
) -> str | list[str | dict[Any, Any]]:
    """A prompt, with attachments where it names them."""
    if not blocks:
        return _Fencing().vformat(template, (), texts)
    before, _, after = template.partition("{attachments}")
    ends = [_Fencing().vformat(part, (), texts) for part in (before, after)]
    text = [{"type": "text", "text": part} for part in ends]
    return [part for part in [text[0], *blocks, text[1]] if part.get("text") != ""]


def _with_examples(
    messages: list[BaseMessage], examples: Sequence[Mapping[str, Any]]
) -> list[BaseMessage]:
    """Messages with judged examples at the end of the last."""
    *before, last = messages
    shown = "\n\n".join(_example(number, each) for number, each in enumerate(examples, 1))
    text, old = f"\n\nExamples, judged right:\n\n{shown}", last.content
    new = old + text if isinstance(old, str) else [*old, {"type": "text", "text": text}]
    return [*before, last.model_copy(update={"content": new})]


def _example(number: int, example: Mapping[str, Any]) -> str:
    texts = [in_fence(name, as_text(example[name])) for name in _TEXTS if name in example]
    reply = {name: example[name] for name in ("reasoning", "score") if name in example}
    return "\n".join([f"Example {number}", *texts, f"Reply: {json.dumps(reply)}"])


def _with_rules(messages: list[BaseMessage], rules: Sequence[str]) -> list[BaseMessage]:
    """Messages with the rules added to the system message."""
    if rules and isinstance(first := messages[0], SystemMessage):
        rules, messages = [first.text, *rules], messages[1:]
    return [SystemMessage("\n\n".join(rules)), *messages] if rules else messages


def _is_model(schema: object) -> bool:
    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _shape_of(schema: Any) -> type[BaseModel]:
    """Model of a reply, from its schema; a pydantic schema validates the reply as well.

    Raises:
        OptionError: It is no pydantic model, `TypedDict` or JSON schema of an object.
    """
    inner = schema.get("schema", schema) if isinstance(schema, Mapping) else schema
    named = {"title": "Reply", **inner} if isinstance(inner, Mapping) else inner
    try:
        form = dereference_refs(convert_to_json_schema(named))
        fields = form["properties"].items()
    except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as exc:
        raise OptionError(WORDS["output_schema"].format(schema)) from exc
    needed = form.get("required", [*form["properties"]])
    types: Any = {
        name: (_type_of(part), ...) if name in needed else (_type_of(part) | None, None)
        for name, part in fields
    }

    def whole(reply: BaseModel) -> BaseModel:
        schema.model_validate(reply.model_dump(exclude_unset=True))
        return reply

    checks: Any = {"whole": model_validator(mode="after")(whole)} if _is_model(schema) else {}
    return create_model(str(form.get("title", "Reply")), __validators__=checks, **types)


_TYPES: Mapping[str, Any] = {
    **{"string": str, "integer": int, "number": int | float, "boolean": bool},
    **{"array": list[Any], "object": dict[str, Any], "null": None},
}


def _type_of(form: Mapping[str, Any]) -> Any:
    """Type of a property, which checks choices and parts; its schema is sent unchanged."""
    kind, items = _TYPES.get(str(form.get("type")), Any), form.get("items")
    kind = list[_type_of(items)] if isinstance(items, Mapping) else kind  # type: ignore[misc]
    return Annotated[kind, AfterValidator(partial(_checked, form)), WithJsonSchema(dict(form))]


def _checked(form: Mapping[str, Any], value: Any) -> Any:
    choices, low, high = form.get("enum"), form.get("minimum", -inf), form.get("maximum", inf)
    if choices and value not in choices:
        raise ValueError(f"must be one of {choices}")
    if isinstance(value, int | float) and not low <= value <= high:
        raise ValueError(f"must be from {low} to {high}")
    if form.get("properties"):
        _shape_of(form).model_validate(value, strict=True)
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("must be a finite number")
    return value
