"""Meaning of an exception: what a provider said, whether it can pass, whose fault it is.

What a model raises while it is asked is told apart by LangChain's standard classes, by the HTTP
status and by name: importing every provider's package to compare classes would slow every
start. What leaves a judge is the end of a run, a failed row or a bug: a service fails by a
status or an exception of its own library, code by one of Python's.
"""

from __future__ import annotations

import json
import logging
import math
import random
import re
import sys
import sysconfig
import time
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core import exceptions
from langchain_core.messages import AIMessage
from langgraph.errors import GraphBubbleUp

from langchain_judges import errors
from langchain_judges.asking.reading import REPLY_NAMES, Problem, TokenUsage, tokens_in
from langchain_judges.escaping import clean
from langchain_judges.verdict import Failure

_LOG = logging.getLogger(__name__)
# Frames of these say how a step was called, and not what is wrong with it.
_FRAMEWORKS = {"langchain_core", "langgraph", "langsmith", *sys.stdlib_module_names}


# The bugs that were logged, by class and place.
_REPORTED: set[tuple[type[Exception], str]] = set()
# Most seconds that a provider's retry-after is honoured.
LONGEST_WAIT = 120.0


# What client libraries raise where an answer came that is not of the protocol: no JSON, a byte
# that is no text, a number for a text, nothing for a list. All of it may pass.
_UNREAD = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
# Functions of LangChain's classes that make a request: what they raise is said of no answer.
_PREPARING = {*REPLY_NAMES["preparing"]}
_NO_REPLY = "the server answered without a reply, as if it had succeeded"
# Headers that say when to ask again, and their unit in seconds.
_WAITS = (("retry-after-ms", 0.001), ("retry-after", 1.0))
# Headers that say when a limit ends, and the parts of a duration in them.
_RESET = re.compile("rate-?limit.*reset")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|[smhd])"
# Characters of a message that are read; some errors repeat the whole prompt.
_LONGEST = 2000
# Errors that the OpenAI client raises for a reply that came and was paid for.
_PAID = {name: Problem(*problem) for name, problem in REPLY_NAMES["paid"].items()}
_SAID = {
    name: re.compile("|".join(each), re.IGNORECASE) for name, each in REPLY_NAMES["said"].items()
}


def said_by(error: Exception) -> str:
    """The text of an exception, or that it cannot be read."""
    return str(traceback.TracebackException.from_exception(error, limit=0))


def paid_error(error: Exception) -> Problem | None:
    """The problem with a reply that came but was raised as an exception."""
    if isinstance(error, exceptions.OutputParserException):
        return Problem("unparsable", in_a_line(error))
    return _PAID.get(type(error).__name__)


def reply_in(error: Exception) -> AIMessage | None:
    """The reply that a provider sends with an error, for it cannot read it itself."""
    body = _body_of(error)
    if not (isinstance(written := body.get("failed_generation"), str) and written.strip()):
        return None
    is_cut = "max completion tokens" in str(body.get("message"))
    return AIMessage(written, response_metadata={"finish_reason": "length"} if is_cut else {})


def usage_despite(error: Exception) -> TokenUsage | None:
    """Cost of a reply that the client library threw away, if it did that."""
    if paid_error(error) is None:
        return None
    cut = getattr(error, "completion", None)
    reply = cut.model_dump() if cut else _body_of(error)
    return tokens_in(reply.get("usage") or {}, reply.get("service_tier"))


def status_of(error: Exception) -> int | None:
    """HTTP status of an error, if it has one or means one.

    Google has it as a number `code`.
    """
    statuses = (
        *_answered(error),
        getattr(error, "code", None),
        (error_under_200(error) or {}).get("code"),
        *(REPLY_NAMES["statuses"].get(kind.__name__) for kind in type(error).__mro__),
    )
    return next((own for own in statuses if isinstance(own, int) and 400 <= own < 600), None)


def _answered(error: Exception) -> list[int]:
    """The statuses of an answer, be it a success, as its client has them.

    OpenAI, Anthropic and others have a `status_code`, boto a response that is a dictionary;
    Ollama has -1 for what a stream brought.
    """
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata") if isinstance(response, dict) else None
    statuses = (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        metadata.get("HTTPStatusCode") if isinstance(metadata, dict) else None,
    )
    return [each for each in statuses if isinstance(each, int)]


def error_under_200(error: Exception) -> Mapping[str, object] | None:
    """The error that a server sent with the status of a success; empty without its words.

    Routers do so when the provider behind them fails after they have begun to answer, and
    any server in the midst of a stream. What a client says of an answer that it could not
    read is such an error too.
    """
    body = error.args[0] if type(error) is ValueError and error.args else None
    statuses, said = _answered(error), body if isinstance(body, dict) else _body_of(error)
    if any(300 <= each < 600 for each in statuses) or not (statuses or "message" in said):
        return None
    return said if "message" in said else {}


def unreadable(error: Exception) -> str | None:
    """The fault of an answer that is no reply, in words; None for other errors."""
    if packed := [each for each in chain_of(error) if type(each).__name__ == "DecodingError"]:
        return f"the server's answer cannot be read: {packed[0]}"
    if isinstance(error, json.JSONDecodeError):
        return "the server's answer is empty, was cut or is not JSON"
    if isinstance(error, IndexError):
        return _NO_REPLY
    room = _places(error)[-1][0].partition(".")[0]
    is_of_langchain = room.startswith("langchain_") and room != "langchain_judges"
    is_of_client = is_of_langchain or room in REPLY_NAMES["clients"]
    is_unsent = any(code and code.co_name in _PREPARING for _, code, _ in _places(error))
    if not isinstance(error, _UNREAD) or _refuses_keyword(error) or not is_of_client or is_unsent:
        return None
    if "NoneType" in said_by(error):
        return _NO_REPLY
    return f"the server's answer cannot be read: {type(error).__name__}: {said_by(error)}"


def _refuses_keyword(error: Exception) -> bool:
    return isinstance(error, TypeError) and " argument" in said_by(error)


def redirects_in_circles(error: Exception) -> bool:
    """Whether a server has redirected a request again and again."""
    return any(type(each).__name__ == "TooManyRedirects" for each in chain_of(error))


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those it came from; their classes may be of whichever httpx."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def rejects(error: Exception) -> bool:
    """Whether the request as such was rejected, by the provider or by its library."""
    return status_of(error) in {400, 422} or _refuses_keyword(error)


def can_pass(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    if redirects_in_circles(error):
        return False
    if isinstance(error, exceptions.ModelError):
        return error.is_retryable
    if (status := status_of(error)) is not None:
        says_so = not rejects(error) and _SAID["again"].search(said_by(error)[:_LONGEST])
        return status in {408, 409, 424, 425, 429} or status >= 500 or bool(says_so)
    if not is_of_own_code(error) and (error_under_200(error) is not None or unreadable(error)):
        return True
    is_of_network = _SAID["passing"].search(type(error).__name__) or isinstance(error, OSError)
    return bool(is_of_network) or _lost_its_loop(error)


def _lost_its_loop(error: Exception) -> bool:
    """Whether a client that the caller gave was used in an event loop that has ended since."""
    return isinstance(error, RuntimeError) and "Event loop is closed" in said_by(error)


def refuses_text(error: Exception) -> bool:
    """Whether a provider refuses the texts of a request, and not the request as such."""
    said = str(_body_of(error).get("code")), said_by(error)[:_LONGEST]
    return status_of(error) in {400, 403} and any(map(_SAID["refused"].search, said))


def _body_of(error: Exception) -> Mapping[str, Any]:
    """A provider's words on an error in the body of its answer; empty where it has none."""
    body = getattr(error, "body", None) or getattr(error.__cause__, "body", None)
    with suppress(ValueError, RuntimeError):  # no JSON, or nobody has read it
        body = body or getattr(getattr(error, "response", None), "text", None)
        body = json.loads(body) if isinstance(body, str) else body
    said = body.get("error") if isinstance(body, dict) else None
    body = {"message": said} if isinstance(said, str) else said or body
    return body if isinstance(body, dict) else {}


def diagnosis(error: Exception) -> Problem:
    """The failure that an error comes to when it is final."""
    message = in_a_line(error)
    is_too_long = status_of(error) != 429 and _SAID["overflow"].search(said_by(error))
    if is_too_long or isinstance(error, exceptions.ContextOverflowError):
        return Problem("context_overflow", message)
    if refuses_text(error):
        return Problem("refusal", message)
    late = isinstance(error, TimeoutError | exceptions.ModelTimeoutError)
    if late or status_of(error) in {408, 504} or _SAID["late"].search(type(error).__name__):
        return Problem("timeout", message)
    return _bug(error) if is_of_own_code(error) else Problem("provider_error", message)


def in_a_line(error: Exception) -> str:
    """The error on one line, with its HTTP status first where it has one."""
    status, hidden = status_of(error), (error_under_200(error) or {}).get("message") or ""
    circle = redirects_in_circles(error) and "the server redirects every request in a circle"
    text = circle or str(hidden) or unreadable(error) or said_by(error)
    # Some providers repeat the key that they refuse, and failures are kept in files.
    message = clean(_SAID["key"].sub(r"\1***", " ".join(text.split()))[:300]) + _address(error)
    if status is not None:
        return f"HTTP {status}: {message.removeprefix(f'Error code: {status} - ')}"
    return message if message.startswith("the server") else f"{type(error).__name__}: {message}"


def _address(error: Exception) -> str:
    """Address of a request that got no answer, without anything secret."""
    url: Any = getattr(vars(error).get("request"), "url", None)
    host = getattr(url, "netloc", None)
    if status_of(error) is not None or not isinstance(host, bytes):  # one of httpx has bytes
        return ""
    path = re.sub("/(chat/completions|responses)$", "", url.path)
    return f" ({url.scheme}://{host.decode().rpartition('@')[2]}{path})"


def wait_after(error: Exception, wait: float) -> float:
    """The seconds to wait: what the provider says, else the back-off with jitter."""
    holders = (held for e in chain_of(error) for held in (e, getattr(e, "response", None)))
    named = [getattr(each, "headers", None) for each in holders]
    metadata = _body_of(error).get("metadata")  # where routers repeat a provider's headers
    named.append(metadata.get("headers") if isinstance(metadata, dict) else None)
    found = [{str(k).lower(): v for k, v in h.items()} for h in named if isinstance(h, Mapping)]
    said = [_seconds_until(each.get(name), unit) for each in found for name, unit in _WAITS]
    said += map(_seconds_until, _SAID["delay"].findall(said_by(error)))
    if status_of(error) == 429:
        said += map(_end_of_limits, found)
    if (seconds := next((s for s in said if s is not None and s >= 0), None)) is not None:
        return min(seconds, LONGEST_WAIT)
    return wait * random.uniform(0.75, 1.25)  # noqa: S311 - spreads retries, no secret


def _end_of_limits(headers: Mapping[str, object]) -> float | None:
    """The seconds until the last limit ends of which nothing remains, if headers name any.

    One of hours or a day is not waited for: no attempt would be made after it.
    """
    resets = (name for name in headers if _RESET.search(name))
    spent = (n for n in resets if str(headers.get(n.replace("reset", "remaining"), 0)) == "0")
    end = max((_seconds_until(headers[name]) or 0.0 for name in spent), default=0.0)
    return end if 0 < end <= LONGEST_WAIT else None


def _seconds_until(value: object, unit: float = 1.0) -> float | None:
    """The seconds that a server says: a number of a unit, `1m30s`, or a time in any form."""
    text = str(value).strip()
    with suppress(ValueError):
        seconds = float(text) * unit
        # Also seconds or milliseconds since 1970, which no wait is as long as.
        if since := next((each for each in (1e3, 1.0) if seconds / each > 1e9), None):
            seconds = seconds / since - time.time()
        return seconds if math.isfinite(seconds) else None
    if re.fullmatch(f"(?:{_DURATION})+", text):
        return sum(float(n) * _SECONDS[each] for n, each in re.findall(_DURATION, text))
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(TypeError, ValueError):
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()
    return None


class Complaint(NamedTuple):
    """A refusal as the provider put it.

    Attributes:
        parameter: The parameter at fault, where the provider names it in a field of its own.
        prompt_words: Neighbouring words of the prompt: where the message has them too, it may
            be quoting.
    """

    parameter: str | None
    message: str
    prompt_words: frozenset[tuple[str, str]]

    def refused(self, settings: Collection[str]) -> str | None:
        """The first of some settings that a provider names where it rejects a request."""
        if self.parameter:
            return self.parameter if self.parameter in settings else None
        said = (each for each in settings if self._says(rf"\b{re.escape(each)}\b", self.message))
        return next(said, None)

    @property
    def format_rejected(self) -> bool:
        """Whether the provider refuses the form in which a reply was asked for."""
        if self.parameter:
            return self.parameter in REPLY_NAMES["format_parameters"]
        return any(self._says(_SAID["format_rejected"], line) for line in self.message.split("\n"))

    def _says(self, pattern: str | re.Pattern[str], sentence: str) -> bool:
        """Whether the provider itself says something, and not a text that it repeats."""
        places = ((one.start(), one.end()) for one in re.finditer(pattern, sentence))
        pairs = ({_pair(sentence, at) for at in place} for place in places)
        return any(not self.prompt_words & each for each in pairs)


def complaint_of(error: Exception, prompt: Sequence[str]) -> Complaint:
    """Complaint of a provider.

    Args:
        error: What the client library raised.
        prompt: The texts that were sent, which errors may repeat.
    """
    fields = _body_of(error)
    parameter = fields.get("param")
    root = re.split(r"[.\[]", parameter)[0] if isinstance(parameter, str) else None
    message = str(fields.get("message") or said_by(error))[:_LONGEST]
    words = [re.findall(r"\w+", text.casefold()) for text in prompt]
    pairs = frozenset(pair for each in words for pair in pairwise(each))
    return Complaint(root or None, message, pairs)


def _pair(sentence: str, at: int) -> tuple[str, str]:
    """The words on both sides of a place, with the word that it parts."""
    before = re.findall(r"\w+", sentence[max(0, at - 80) : at].casefold())
    after = re.search(r"\w+", sentence[at : at + 80].casefold())
    return (before[-1] if before else "", after[0] if after else "")


# What no part of a judge may take for a failure: a stop, and what hands control to LangGraph.
NOT_FAILURES = (errors.RunStopped, GraphBubbleUp)


def ends_the_run(exc: Exception) -> bool:
    """Whether an exception concerns the whole run: a refused key, a stop, an interrupt."""
    if isinstance(exc, errors.ModelAccessError):
        return exc.status == 401
    is_of_judge = isinstance(exc, errors.JudgeError) and not isinstance(exc, errors.InputError)
    return is_of_judge or isinstance(exc, GraphBubbleUp)


def is_bug(exc: Exception) -> bool:
    """Whether an exception is a fault in code, which no service and no row is to blame for."""
    is_known = isinstance(exc, errors.JudgeError | GraphBubbleUp | OSError)
    is_answer = status_of(exc) is not None or error_under_200(exc) is not None
    if is_known or is_answer or _lost_its_loop(exc):
        return False
    package = type(exc).__module__.partition(".")[0]
    return package in REPLY_NAMES["of_code"] or not is_installed(package)


@cache
def is_installed(module: str) -> bool:
    """Whether a module is of a library, and not of the user's own program."""
    file = Path(getattr(sys.modules.get(module.partition(".")[0]), "__file__", None) or "/")
    # A virtual environment may also see the packages of another Python, by a path of its own.
    in_packages = not {"site-packages", "dist-packages"}.isdisjoint(file.parts)
    paths = map(sysconfig.get_path, ("stdlib", "purelib"))
    places = Path(__file__).parents[1], *map(Path, filter(None, paths))
    return in_packages or any(file.is_relative_to(place) for place in places)


def failure_of(exc: Exception, step: str) -> Failure:
    """The failure that an exception of a judge comes to; a bug is logged with its traceback.

    Args:
        exc: What the judge raised.
        step: Where it was asked: `run`, `ask`.
    """
    # LangGraph's for an error of a graph on a server, which tells no more than its class.
    told: Any = exc.args[0] if type(exc).__name__ == "RemoteException" and exc.args else None
    name = told.get("error") if isinstance(told, Mapping) else None
    if name in ("InputError", "LackingError", "OverBudget"):
        exc = getattr(errors, name)(f"the server says {name}: {told.get('message')}")
    if is_bug(exc):
        problem = _bug(exc)
    elif isinstance(exc, errors.InputError):
        lacks = isinstance(exc, errors.LackingError)
        problem = Problem("lacking" if lacks else "invalid_input", str(exc))
    elif isinstance(exc, errors.ModelAccessError):
        detail = str(exc).partition("refuses every call: ")[2] or str(exc)
        problem = Problem("provider_error", detail)
    elif isinstance(exc, errors.OverBudget):
        problem = Problem("over_budget", str(exc))
    else:
        problem = diagnosis(exc)
    return problem.failure(step, "")


def _bug(exc: Exception) -> Problem:
    """The problem of a fault in code, which is logged once."""
    place = place_of(exc)
    if (type(exc), place) not in _REPORTED:
        _REPORTED.add((type(exc), place))
        trace = "".join(traceback.format_exception(exc))
        _LOG.error("A bug, not a fault of the provider (%s):\n%s", place, trace)
    return Problem("internal_error", f"{type(exc).__name__}: {said_by(exc)} ({place})")


def is_of_own_code(error: Exception) -> bool:
    """Whether what a model raised is a fault in code of the caller's own.

    It is an exception of Python's that no library raised, or that LangChain raised for what a
    model's class returned: to ask again would raise it again.
    """
    if type(error).__module__ not in REPLY_NAMES["of_code"] or not is_bug(error):
        return False
    if _places(error)[-1][0] == "langchain_core.language_models.chat_models":
        return not isinstance(error, IndexError)  # which it raises where there is no reply
    return (room := _own_place(error)[0]) != "" and not is_installed(room)


def place_of(exc: Exception) -> str:
    """The innermost place in code that is no framework's: `merge, my_method.py:34`."""
    _, code, line = _own_place(exc)
    if not code:
        return "its place is not known"
    return f"{code.co_qualname}, {Path(code.co_filename).name}:{line}"


def _own_place(exc: Exception) -> tuple[str, Any, int]:
    places = _places(exc)
    own = [each for each in places if each[0].partition(".")[0] not in _FRAMEWORKS]
    return (own if own[-1][0] else places)[-1]


def _places(exc: Exception) -> list[tuple[str, Any, int]]:
    """Module, code and line of each place that an exception came through, its origin last."""
    frames = traceback.walk_tb(exc.__traceback__)
    named = ((frame.f_globals.get("__name__", ""), frame.f_code, line) for frame, line in frames)
    return [("", None, 0), *named]
