"""A chat model whose replies are a function of what it is asked, and a broken embedder."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import ConfigDict, Field, PrivateAttr

from tests.model_server import FIVE, responses


def judged_by(quality: Callable[[str], int]) -> Callable[[str], str]:
    """Plan five criteria and score each response by `quality`, from 1 to 5."""

    def respond(prompt: str) -> str:
        if '"score_1"' in prompt:
            first, second = responses(prompt)
            return json.dumps(
                {
                    "score_1": quality(first),
                    "score_2": quality(second),
                    "explanation": "by quality",
                }
            )
        if '"preference"' in prompt:
            found = re.findall(r"response 1 scored (\S+), response 2 scored (\S+)\.", prompt)
            lead = sum(float(a) - float(b) for a, b in found)
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


def writes(prompt: str) -> str:
    """Write, divide or choose as the prompts for writing ask; every concept is used.

    Concepts are dealt out in turn, a text is the list of what it has to use, and the first
    attempt is chosen.
    """
    lists = re.findall(r"<concepts(?:-\d+)?-\w{10}>\n(.*?)\n</concepts", prompt, re.DOTALL)
    concepts = [concept for each in lists for concept in each.split("\n")]
    if asked := re.search(r"divide the concepts into (\d+) groups", prompt):
        k = int(asked[1])
        groups = {f"group_{n + 1}": concepts[n::k] for n in range(k)}
        return json.dumps({"topic": "a day out", **groups})
    if "Which of them uses most" in prompt:
        return json.dumps({"explanation": "the first does", "choice": "1"})
    if "Propose a topic" in prompt:
        return json.dumps({"topic": "a day out"})
    return json.dumps({"text": f"The {', the '.join(concepts)}."})


class FakeChatModel(BaseChatModel):
    """Asked in plain text: it knows neither tools nor structured output."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    respond: Callable[[str], str | AIMessage] = Field(default=judged_by(goods))
    _prompts: list[str] = PrivateAttr(default_factory=list)
    _settings: list[dict[str, Any]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def prompts(self) -> list[str]:
        """Every prompt it was sent, messages joined by a line of their own."""
        return self._prompts

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The keywords of every call."""
        return self._settings

    @property
    def _llm_type(self) -> str:
        return "fake"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        prompt = "\n---\n".join(str(message.content) for message in messages)
        with self._lock:
            self._prompts.append(prompt)
            self._settings.append(kwargs)
        said = self.respond(prompt)
        if isinstance(said, str):
            usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
            said = AIMessage(said, usage_metadata=usage)  # type: ignore[arg-type]
        return ChatResult(generations=[ChatGeneration(message=said)])


class BrokenEmbeddings(DeterministicFakeEmbedding):
    """An embedder that raises, or gives what it is told."""

    gives: object

    def embed_documents(self, texts: list[str]) -> Any:
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives
