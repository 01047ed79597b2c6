"""Decision models as chat models: closed questions, a probability for every answer, no reason.

A decision model (`langchain_openai.decisions.OpenAIDecisions`) takes a text and closed
questions. The shape of a reply says which questions a prompt asks: each property with an enum
or bounds is one, all of a prompt in one request. Its answers come back as the JSON that a chat
model would write, with the probabilities as those of the label's tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from langchain_judges.errors import OptionError

# Stands in place of a reason.
NO_REASON = "A decision model gives no reason."
# Numbers of a scale that are asked as answers.
_MOST = 101
_LEAST = 1e-12
Path = tuple[str, ...]


class DecisionChatModel(BaseChatModel):
    """A decision model that is asked as a chat model is.

    Attributes:
        decisions: The decision model.
        model: Its name.
    """

    decisions: Any
    model: str

    @property
    def _llm_type(self) -> str:
        return "decisions"

    def bind_tools(
        self, tools: Sequence[Any], **_: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model that answers the questions of a tool's schema.

        It takes no temperature, seed or other setting.
        """
        return self.bind(schema=tools[0]["function"]["parameters"])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **settings: Any,
    ) -> ChatResult:
        request = _request(messages, settings)
        return _result(self.decisions.invoke(request), settings["schema"])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **settings: Any,
    ) -> ChatResult:
        request = _request(messages, settings)
        return _result(await self.decisions.ainvoke(request), settings["schema"])


def decision_chat_model(model: Any) -> DecisionChatModel:
    """Return a decision model as a chat model; retries are left to whoever asks it."""
    own = model.model_copy(update={"max_retries": 0})
    return DecisionChatModel(decisions=own, model=model.model)


def _request(messages: Sequence[BaseMessage], settings: Mapping[str, Any]) -> dict[str, Any]:
    from langchain_openai.decisions import Choice

    if "schema" not in settings:
        raise OptionError("a decision model answers closed questions only")
    questions = {}
    for path, answers in _questions(settings["schema"]):
        within = f" {', '.join(path[:-1])}" if len(path) > 1 else ""
        ask = f"Which {path[-1]} fits{within}, by what the text asks for?"
        questions[".".join(path)] = Choice(instructions=ask, choices=dict.fromkeys(answers))
    return {"input": "\n\n".join(each.text for each in messages), "questions": questions}


def _questions(schema: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, list[str]]]:
    """Yield what is asked: the way to each closed property, and its answers.

    Raises:
        OptionError: A property is open, such as a plan.
    """
    for name, part in schema["properties"].items():
        here = (*path, name)
        if part.get("type") == "object":
            yield from _questions(part, here)
        elif "enum" in part or "const" in part:
            yield here, [str(each) for each in part.get("enum", [part.get("const")])]
        elif part.get("type") == "integer" and part["maximum"] - part["minimum"] < _MOST:
            yield here, [str(n) for n in range(part["minimum"], part["maximum"] + 1)]
        elif name != "explanation":
            raise OptionError(f"a decision model answers closed questions only, not {name!r}")


def _result(response: Any, schema: Mapping[str, Any]) -> ChatResult:
    refused = list(response.refusals)
    tokens = [] if refused else list(_tokens(response, schema))
    read, written = response.usage.input_tokens or 0, response.usage.output_tokens or 0
    usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    message = AIMessage(
        "".join(str(token["token"]) for token in tokens),
        additional_kwargs={"refusal": f"no answer to {refused[0]}"} if refused else {},
        response_metadata={"model_name": response.model, "logprobs": {"content": tokens}},
        usage_metadata=usage,
    )
    return ChatResult(generations=[ChatGeneration(message=message)])


def _tokens(
    response: Any, schema: Mapping[str, Any], path: Path = ()
) -> Iterator[dict[str, object]]:
    """Yield the reply in pieces: each answer is one, with the probability of every other."""
    yield _piece("{")
    for number, (name, part) in enumerate(schema["properties"].items()):
        here = (*path, name)
        yield _piece(f"{', ' if number else ''}{json.dumps(name)}: ")
        if part.get("type") == "object":
            yield from _tokens(response, part, here)
        elif name == "explanation":
            yield _piece(json.dumps(NO_REASON))
        else:
            quote = "" if part.get("type") == "integer" else '"'
            yield _piece(quote)
            yield _answer(response.choices[".".join(here)])
            yield _piece(quote)
    yield _piece("}")


def _piece(text: str) -> dict[str, object]:
    return {"token": text, "logprob": 0.0, "top_logprobs": []}


def _answer(answer: Any) -> dict[str, object]:
    """Return an answer as a token; without probabilities of the known form it has none."""
    shares = answer.probabilities if isinstance(answer.probabilities, Mapping) else {}
    offered = [
        {"token": str(value), "logprob": math.log(max(share, _LEAST))}
        for value, share in shares.items()
        if isinstance(share, int | float) and 0 <= share <= 1
    ]
    own = [each for each in offered if each["token"] == str(answer.choice)]
    is_known = own and len(offered) == len(shares)
    return {**own[0], "top_logprobs": offered} if is_known else {"token": str(answer.choice)}
