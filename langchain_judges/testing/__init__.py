"""A fake chat model and a fake model server, for tests of what is built on judges.

`FakeChatModel` replies inside the process. `FakeModelServer` speaks the protocol of OpenAI on
a loopback port, so that a real client meets errors, broken bodies and replies that do not come.
Neither needs a network, a key or a test framework.

    >>> model = FakeChatModel(replies=['{"label": "1", "explanation": "It is polite."}'])
    >>> model.invoke("Is it polite?").text
    '{"label": "1", "explanation": "It is polite."}'
    >>> model.prompts
    ['Is it polite?']
"""

from langchain_judges.testing.forgeries import Forgery, forgeries
from langchain_judges.testing.model import (
    FakeChatModel,
    FakeToolModel,
    ScriptEnded,
    with_logprobs,
)
from langchain_judges.testing.server import Answer, Call, FakeModelServer, error, reply

__all__ = [
    "Answer",
    "Call",
    "FakeChatModel",
    "FakeModelServer",
    "FakeToolModel",
    "Forgery",
    "ScriptEnded",
    "error",
    "forgeries",
    "reply",
    "with_logprobs",
]
