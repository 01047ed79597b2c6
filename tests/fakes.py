"""Scripts of fake chat models: what judges and writers are told; and a broken embedder."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from langchain_judges import testing
from tests.model_server import FIVE, responses


def judged_by(quality: Callable[[str], int]) -> Callable[[str], str]:
    """Plan five criteria and score each response by `quality`, from 1 to 5."""

    def respond(prompt: str) -> str:
        if '"score_1"' in prompt:
            first, second = responses(prompt)
            return json.dumps(
                {"score_1": quality(first), "score_2": quality(second), "explanation": "by quality"}
            )
        if '"preference"' in prompt:
            results = re.findall(r"response 1 scored (\S+), response 2 scored (\S+)\.", prompt)
            lead = sum(float(a) - float(b) for a, b in results)
            choice = "1" if lead > 0 else "2" if lead < 0 else "tie"
            return json.dumps({"explanation": "weighed", "preference": choice})
        if '"answer"' in prompt:
            return json.dumps({"answer": "a reference"})
        criteria = [{"name": name, "description": f"how much {name}"} for name in FIVE]
        return json.dumps({"criteria": criteria})

    return respond


def goods(text: str) -> int:
    """Count the word `good`, on the scale from 1 to 5."""
    return 1 + min(4, text.count("good"))


def unfenced(text):
    """A record as a prompt shows it, with marks in brackets in place of fences."""
    text = re.sub(r"\n</[\w./-]+-[0-9a-f]{10}>", "\n", text).rstrip("\n")
    return re.sub(r"<([\w./-]+)-[0-9a-f]{10}>", r"[\1]", text)


def writes(prompt: str) -> str:
    """Write, divide or choose as the prompts for writing ask; every concept is used.

    Concepts are dealt out in turn, a text is the list of what it has to use, and the first
    attempt is chosen.
    """
    lists = re.findall(r"<concepts(?:-\d+)?-\w{10}>\n(.*?)\n</concepts", prompt, re.DOTALL)
    concepts = [concept for each in lists for concept in each.split("\n")]
    if match := re.search(r"divide the concepts into (\d+) groups", prompt):
        k = int(match[1])
        groups = {f"group_{n + 1}": concepts[n::k] for n in range(k)}
        return json.dumps({"topic": "a day out", **groups})
    if "Which of them uses most" in prompt:
        return json.dumps({"explanation": "the first does", "choice": "1"})
    if "Propose a topic" in prompt:
        return json.dumps({"topic": "a day out"})
    return json.dumps({"text": f"The {', the '.join(concepts)}."})


class FakeChatModel(testing.FakeChatModel):
    """Judges by the word `good`, unless it is given a script."""

    replies: Sequence[Any] | Callable[[str], Any] = Field(default=judged_by(goods))

    def _message(self, reply: Any, settings: Mapping[str, Any]) -> AIMessage:
        """Put the seed of the call where the script has `SEED`, so that samples differ."""
        message = super()._message(reply, settings)
        if not isinstance(message.content, str):
            return message
        text = message.content.replace("SEED", str(settings.get("seed")))
        return message.model_copy(update={"content": text})


class BrokenEmbeddings(DeterministicFakeEmbedding):
    """An embedder that raises, or gives what it is told."""

    gives: object

    def embed_documents(self, texts: list[str]) -> Any:
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


def turns(role: str, *texts: str) -> list[dict[str, str]]:
    """Messages of one role."""
    return [{"role": role, "content": text} for text in texts]


class FakeToolModel(testing.FakeChatModel):
    """A `FakeChatModel` that takes tools and structured output.

    A reply that is a dictionary is sent as a call of the first tool that is bound.
    """

    profile: Any = None

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        """Bind tools, as the tools of OpenAI's protocol."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _message(self, reply: Any, settings: Mapping[str, Any]) -> AIMessage:
        tools = settings.get("tools")
        if not tools or not isinstance(reply, Mapping):
            return super()._message(reply, settings)
        call = {"name": tools[0]["function"]["name"], "args": dict(reply), "id": "call-1"}
        return AIMessage("", tool_calls=[call])


Token = tuple[str, float] | tuple[str, float, Mapping[str, float]]
"""Text, probability in (0, 1] and, where they matter, the probabilities of alternatives."""


def with_logprobs(*tokens: Token) -> AIMessage:
    """A reply with the log-probability of each of its tokens, as OpenAI reports them.

    Args:
        tokens: The tokens whose texts are the reply.

    >>> reply = with_logprobs(('{"vote": "', 1), ("1", 0.5, {"1": 0.5, "2": 0.25}), ('"}', 1))
    >>> reply.text, round(reply.response_metadata["logprobs"]["content"][1]["logprob"], 3)
    ('{"vote": "1"}', -0.693)
    """
    content = []
    for text, probability, *rest in tokens:
        alternatives = [_token(*each) for each in (rest[0] if rest else {}).items()]
        content.append({**_token(text, probability), "top_logprobs": alternatives})
    spelt = "".join(token[0] for token in tokens)
    return AIMessage(spelt, response_metadata={"logprobs": {"content": content}})


def _token(text: str, probability: float) -> dict[str, Any]:
    return {"token": text, "bytes": list(text.encode()), "logprob": math.log(probability)}
