"""Fake and recorded chat models and a fake model server, for tests of what is built on judges.

`FakeChatModel` replies by a script. `ReplayChatModel` writes the replies of a real model to a
file, and gives them again without it. `FakeModelServer` speaks the protocol of OpenAI on a
loopback port, so that a real client meets errors, broken bodies and replies that do not come.
`check_method` checks a judging method of your own. Only recording needs a model; none needs a
test framework.

    >>> model = FakeChatModel(replies=['{"label": "1", "explanation": "It is polite."}'])
    >>> model.invoke("Is it polite?").text
    '{"label": "1", "explanation": "It is polite."}'
    >>> model.prompts
    ['Is it polite?']
"""

from __future__ import annotations

from langchain_judges.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__)
