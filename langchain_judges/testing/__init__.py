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

from typing import TYPE_CHECKING

from langchain_judges.lazy import exports

# For type checkers; a test holds it equal to the table below.
if TYPE_CHECKING:
    from langchain_judges.testing.contract import check_method as check_method
    from langchain_judges.testing.fault_server import FakeModelServer as FakeModelServer
    from langchain_judges.testing.fault_server import ServerCall as ServerCall
    from langchain_judges.testing.fault_server import ServerReply as ServerReply
    from langchain_judges.testing.fault_server import error as error
    from langchain_judges.testing.fault_server import reply as reply
    from langchain_judges.testing.forged_texts import Forgery as Forgery
    from langchain_judges.testing.forged_texts import attack_rates as attack_rates
    from langchain_judges.testing.forged_texts import forged_rows as forged_rows
    from langchain_judges.testing.forged_texts import forgeries as forgeries
    from langchain_judges.testing.model import FakeChatModel as FakeChatModel
    from langchain_judges.testing.model import ScriptEnded as ScriptEnded
    from langchain_judges.testing.replay import NotRecorded as NotRecorded
    from langchain_judges.testing.replay import ReplayChatModel as ReplayChatModel
    from langchain_judges.testing.schema_replies import fitting_reply as fitting_reply


_HOMES = {
    "testing.contract": "check_method",
    "testing.fault_server": "FakeModelServer ServerCall ServerReply error reply",
    "testing.forged_texts": "Forgery attack_rates forged_rows forgeries",
    "testing.model": "FakeChatModel ScriptEnded",
    "testing.replay": "NotRecorded ReplayChatModel",
    "testing.schema_replies": "fitting_reply",
}
__getattr__, __dir__, __all__ = exports(__name__, _HOMES)
