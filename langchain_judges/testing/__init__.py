"""Fake and recorded chat models and a fake model server, for tests of what is built on judges.

`FakeChatModel` replies by a script. `RecordingChatModel` writes the replies of a real model to
a file, and `ReplayChatModel` gives them again without it. `FakeModelServer` speaks the protocol
of OpenAI on a loopback port, so that a real client meets errors, broken bodies and replies that
do not come. Only recording needs a model; none needs a test framework.

    >>> model = FakeChatModel(replies=['{"label": "1", "explanation": "It is polite."}'])
    >>> model.invoke("Is it polite?").text
    '{"label": "1", "explanation": "It is polite."}'
    >>> model.prompts
    ['Is it polite?']
"""

from langchain_judges.testing.attack import WinRate, attack_rates, forged_rows
from langchain_judges.testing.forgeries import Forgery, forgeries
from langchain_judges.testing.model import (
    FakeChatModel,
    FakeToolModel,
    ScriptEnded,
    with_logprobs,
)
from langchain_judges.testing.replay import NotRecorded, RecordingChatModel, ReplayChatModel
from langchain_judges.testing.server import (
    FakeModelServer,
    ServerCall,
    ServerReply,
    error,
    reply,
)

__all__ = [
    "FakeChatModel",
    "FakeModelServer",
    "FakeToolModel",
    "Forgery",
    "NotRecorded",
    "RecordingChatModel",
    "ReplayChatModel",
    "ScriptEnded",
    "ServerCall",
    "ServerReply",
    "WinRate",
    "attack_rates",
    "error",
    "forged_rows",
    "forgeries",
    "reply",
    "with_logprobs",
]
