# What the package exports: `lazy.exports` and type checkers read it.
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
from langchain_judges.testing.model import NotRecorded as NotRecorded
from langchain_judges.testing.model import ReplayChatModel as ReplayChatModel
from langchain_judges.testing.model import ScriptEnded as ScriptEnded
from langchain_judges.testing.schema_replies import fitting_reply as fitting_reply
