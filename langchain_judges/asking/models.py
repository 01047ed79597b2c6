"""From what a user names (`"openai:gpt-…"`, `"local"`, a chat model) to a model for `ask()`.

With it come the copies of a chat model that `ask()` needs: without retries of its own, with
connections of its own, and with replies that stay plain JSON.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from types import MethodType
from typing import Any, NotRequired, TypeGuard
from urllib.parse import urlsplit

import orjson
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from typing_extensions import TypedDict

from langchain_judges.asking import bodies, failures, masking, reply_log
from langchain_judges.asking.reading import ASK_ERRORS, REPLY_NAMES
from langchain_judges.errors import ModelSetupError, OptionError

_PASSWORD = re.compile(r"//[^/@\s]*:[^/@\s]*@")
# Before a model's name whose it is; behind it a tag of a word, and a version or date.
_AROUND = re.compile(r"^(.*/)?([a-z]+\.)*|(:(beta|free|latest)|-latest)$")
_VERSION = re.compile(r"(-preview|-(\d{3,}|\d\d-\d\d+)(-\d\d)*|-v\d[\d.:]*)*")
_SERVERS = ("openai_api_base", "anthropic_api_url", "azure_endpoint", "base_url")
_NO_IDENTITY = re.compile("|".join(REPLY_NAMES["no_identity"]))
# Settings that decide what a model replies, as providers call them: shown as they are.
_SAMPLING = frozenset(REPLY_NAMES["settings"])
# Settings that hold further ones.
_WITHIN = ("model_kwargs", "extra_body", "chat_template_kwargs")
# Fields of a `ChatOpenAI`: its clients, and the part of each that brings replies.
_CLIENT_FIELDS = (("root_client", "client"), ("root_async_client", "async_client"))
# Keywords of a call that are not part of its body.
_OPTIONS = {"extra_headers", "extra_query", "timeout"}


class ModelSpec(TypedDict):
    """A chat model as plain JSON, to be made in another process; keys are only named.

    Attributes:
        name: As `resolve_model` takes it, such as `"openai:gpt-5-mini"`.
        base_url: Address of an OpenAI-compatible server.
        api_key_env: The environment variable that holds the key; by default the provider's own.
        timeout: Seconds to wait for one reply.
        settings: What else the chat model takes, such as `{"reasoning_effort": "low"}`.
    """

    name: str
    base_url: NotRequired[str]
    api_key_env: NotRequired[str]
    timeout: NotRequired[float]
    settings: NotRequired[dict[str, Any]]


# A chat model, also as `bind`, `with_retry` and the like return it, or its name.
ModelLike = str | BaseChatModel | Runnable[Any, Any]


def resolve_model(
    model: ModelLike,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 120.0,
    settings: Mapping[str, Any] | None = None,
) -> BaseChatModel:
    """The chat model that `model` names.

    Args:
        model: A chat model (returned as it is), also as `bind`, `with_retry`, `with_fallbacks`
            or `with_config` return it; `"local"`, the small model that runs in this process;
            `"local:/path/to.gguf"`, any other model file; or a string as
            `langchain.chat_models.init_chat_model` takes it, such as `"openai:gpt-5-mini"`.
        base_url: Address of an OpenAI-compatible server (vLLM, Ollama, LM Studio …);
            `model` is then the name the server knows, with or without `openai:`.
        api_key: Key for that server; default `OPENAI_API_KEY`, else a placeholder.
        timeout: Seconds to wait for one reply, or for its next part; five more and the
            whole of it counts as timed out.
        settings: What else the chat model takes, such as `{"reasoning_effort": "low"}`.

    Raises:
        ModelSetupError: The name is unknown, or a package, key or file is missing.
        OptionError: `model` is neither a name nor a chat model.
    """
    model = plain_model(model)
    if isinstance(model, BaseChatModel):
        return model
    if base_url and not base_url.startswith(("http://", "https://")):
        raise OptionError(f"`base_url` must begin with http:// or https://, got {base_url!r}")
    if not isinstance(model, str) or not model.strip():
        is_plain = isinstance(model, str | int | float | None)
        got = repr(model) if is_plain else f"a {type(model).__name__}"
        raise OptionError(ASK_ERRORS["no_model"].format(got=got))
    if model == "local" or model.startswith("local:"):
        from langchain_judges.asking.local import local_model

        return local_model(model.partition(":")[2] or None)
    access = {} if api_key is None else {"api_key": api_key}
    return _by_name(model, base_url, {**(settings or {}), **access, "timeout": timeout})


def plain_model(model: Any) -> Any:
    """A value as it is; of a chat model that LangChain has wrapped, a chat model.

    What only repeats a request or configures it is left: requests are repeated here. Bound
    settings become those of the model, where it has them.
    """
    if isinstance(model, BaseChatModel):
        return _checked(model)
    if isinstance(model, RunnableBindingBase):
        parts, settings = [model.bound], dict(model.kwargs)
    elif isinstance(model, RunnableWithFallbacks):
        parts, settings = [model.runnable, *model.fallbacks], {}
    else:
        return model
    members = [plain_model(each) for each in parts]
    if not all(isinstance(each, BaseChatModel) for each in members):
        return model
    if len(parts) == 1 and settings.keys() <= _SAMPLING & type(members[0]).model_fields.keys():
        return _checked(members[0].model_copy(update=settings)) if settings else members[0]
    names = [model_name(each) for each in members]
    name = ", else ".join(names) + (f" with {', '.join(sorted(settings))}" if settings else "")
    warnings.warn(ASK_ERRORS["unknown_form"].format(name), stacklevel=4)
    chosen = [t for each in members if (t := own_setting(each, "temperature")) is not None]
    # What decides replies; it may hold secrets.
    own = {"temperature": chosen or None, "members": [*map(model_identity, members)], **settings}
    first, *others = map(quiet, members)
    inside = {"runnable": first, "fallbacks": others} if others else {"bound": first}
    inner = model.model_copy(update=inside)
    # Its members look into LangChain's cache themselves.
    return _checked(WrappedModel(runnable=inner, model_name=name, own=own, cache=False))


def quiet(model: BaseChatModel) -> BaseChatModel:
    """A copy of a model that neither retries by itself nor tells a secret."""
    return masking.masked(without_own_retries(model))


def _checked(model: BaseChatModel) -> BaseChatModel:
    """A chat model whose address holds no password and that gives one reply to a request.

    Raises:
        OptionError: It is not so.
    """
    addresses = (getattr(model, name, None) for name in _SERVERS)
    if any(isinstance(each, str) and _PASSWORD.search(each) for each in addresses):
        raise OptionError(ASK_ERRORS["password"])
    if (n := own_setting(model, "n") or 1) != 1:
        raise OptionError(f"the model's n={n!r} asks for several replies, and one is read: drop n")
    return model


def own_setting(model: BaseChatModel, name: str) -> Any:
    """A setting that a caller gave his model; None if there is none but a library's default.

    Of a model with others behind it, all of theirs.
    """
    if isinstance(model, WrappedModel):
        return model.own.get(name)
    is_own = name in model.model_fields_set or not failures.is_installed(type(model).__module__)
    return getattr(model, name, None) if is_own else None


class WrappedModel(BaseChatModel):
    """A chat model behind settings, or with others behind it, by LangChain's wrapper."""

    runnable: Any
    model_name: str
    own: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return "wrapped"

    # LangChain looks whether a class takes a `run_manager`: this one has no use for it.
    def _generate(self, messages: list[BaseMessage], *_: Any, **settings: Any) -> ChatResult:
        return _result_of(self.runnable.invoke(messages, **_set(settings)))

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **settings: Any) -> ChatResult:
        return _result_of(await self.runnable.ainvoke(messages, **_set(settings)))


def _set(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a call without a `stop` that is None."""
    return {name: value for name, value in settings.items() if (name, value) != ("stop", None)}


def _result_of(message: Any) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def model_of_spec(spec: ModelSpec) -> BaseChatModel:
    """The chat model that plain JSON describes.

    Raises:
        OptionError: A field is missing or unknown.
        ModelSetupError: The model cannot be made, or its key's variable is not set.
    """
    fields = set(spec)
    if "name" not in fields or fields - ModelSpec.__annotations__.keys():
        names = ", ".join(ModelSpec.__annotations__)
        raise OptionError(ASK_ERRORS["model_spec"].format(names, sorted(map(str, fields))))
    options: dict[str, Any] = {**spec}
    name, variable = options.pop("name"), options.pop("api_key_env", None)
    if variable and variable not in os.environ:
        raise ModelSetupError(f"The key's environment variable {variable} is not set.")
    return resolve_model(name, api_key=os.environ[variable] if variable else None, **options)


def _by_name(model: str, base_url: str | None, settings: Mapping[str, Any]) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    # `ask()` retries by its own rule, so the provider's library must not.
    options: dict[str, Any] = {"max_retries": 0, **settings}
    if model.startswith(("openai:", "gpt-")):
        base_url = base_url or own_address()
    if base_url:
        # A compatible server speaks chat completions, whatever the model's name suggests.
        key = os.environ.get("OPENAI_API_KEY") or "none"
        server = {"model_provider": "openai", "base_url": base_url, "api_key": key}
        options = {**server, "use_responses_api": False, **options}
        model = model.removeprefix("openai:")
    try:
        chat: BaseChatModel = init_chat_model(model, **options)
    except ValueError as exc:
        told = ASK_ERRORS["unknown_model"].format(model=model, reason=str(exc).split("\n")[0])
        raise ModelSetupError(told) from exc
    except Exception as exc:  # a package is missing; or it raises its own
        raise ModelSetupError(f"The model {model!r} cannot be loaded: {exc}") from exc
    return resolve_model(chat)


def server_of(model: ModelSpec | ModelLike) -> str:
    """A short hash of the server that a model is asked at; empty where it is not known.

    A hash, for an address stands in no result.
    """
    address: object = None
    if isinstance(model, str):
        address = own_address() if model.startswith(("openai:", "gpt-")) else None
    elif isinstance(model, Mapping):
        if not (address := model.get("base_url")):
            return server_of(model.get("name", ""))
    elif "model_file" not in (getattr(model, "metadata", None) or {}):
        address = next(filter(None, (getattr(model, name, None) for name in _SERVERS)), None)
    place = urlsplit(str(address or "")).netloc
    return reply_log.key_of(place)[:8] if place else ""


def own_address() -> str | None:
    """The address that the environment names in place of OpenAI's own."""
    return next(filter(None, map(os.environ.get, ("OPENAI_BASE_URL", "OPENAI_API_BASE"))), None)


def model_name(model: BaseChatModel) -> str:
    """The name by which the provider knows the model."""
    fields = ("model_name", "model", "model_id", "deployment_name")
    found = (getattr(model, field, None) for field in fields)
    return next((each for each in found if isinstance(each, str) and each), type(model).__name__)


def is_same_model(asked: str, answered: str) -> bool:
    """Whether two names are equal but for whose the model is, a tag, and one's version."""
    names = (_AROUND.sub("", each.casefold()).replace("@", "-") for each in (asked, answered))
    short, long = sorted(names, key=len)
    return long.startswith(short) and bool(_VERSION.fullmatch(long, len(short)))


def model_identity(model: BaseChatModel) -> dict[str, object]:
    """Identity of a model, which decides its replies: class, name and sampling parameters.

    Never its address, port or key: the same model behind another door is the same model.
    Settings whose meaning we do not know count as a hash. A local model is known by its
    file's hash.
    """
    file_hash = (getattr(model, "metadata", None) or {}).get("model_file")
    names = {*_SAMPLING, *_WITHIN} & type(model).model_fields.keys()
    if not is_openai_compatible(model):
        # Of a class that we do not know, whatever was set may decide what it replies.
        names |= model.model_fields_set
    if own_setting(model, "temperature") is None:  # the judge decides
        names.discard("temperature")
    settings = _settings({name: getattr(model, name, None) for name in sorted(names)})
    file = {"file": file_hash} if file_hash else {}
    return {"class": type(model).__name__, "name": model_name(model), **settings, **file}


def _settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Settings for all to see: known ones as they are, others as one hash.

    An unknown one may decide the replies, and may be a secret that nobody should read.
    """
    plain, unknown = dict[str, object](), dict[str, object]()
    for name, value in settings.items():
        if name in _WITHIN and isinstance(value, Mapping):
            value = _settings(value)
        if value is None or value in ({}, []) or _NO_IDENTITY.search(name):
            continue
        if name in _SAMPLING or name in _WITHIN:
            plain[name] = value
        elif isinstance(value, str | int | float | bool | list | dict | tuple):
            unknown[name] = value
    if unknown:
        plain["others"] = reply_log.key_of(unknown)[:12]
    return plain


def is_openai_compatible(model: object) -> bool:
    """Whether `model` is a `ChatOpenAI` or derived from it.

    Read from the class names, because importing `langchain_openai` only to ask costs more
    than the rest of the package.
    """
    bases = (base for base in type(model).__mro__ if base.__name__ == "BaseChatOpenAI")
    return any(base.__module__.startswith("langchain_openai.") for base in bases)


def changed_clients(model: BaseChatModel, change: Callable[[Any], Any]) -> dict[str, Any]:
    """The clients of a `ChatOpenAI` that a change replaces, by field.

    Args:
        model: The model.
        change: Returns a client in place of another, or the same.
    """
    fields: dict[str, Any] = {}
    for root, completions in _CLIENT_FIELDS:
        client = getattr(model, root, None)
        if client is not None and (changed := change(client)) is not client:
            fields |= {root: changed, completions: changed.chat.completions}
    return fields


def without_own_retries(model: BaseChatModel) -> BaseChatModel:
    """A copy of a model that does not retry by itself.

    Two layers of retries multiply, and attempts that we cannot see cannot be counted. A class
    that made its client when it was built keeps what that client does.
    """
    if not is_openai_compatible(model):
        retries = getattr(model, "max_retries", None)
        if not retries or "max_retries" not in type(model).model_fields:
            return model
        copy = model.model_copy(update={"max_retries": 0})
        # Clients that were made on first use are made again, by the new number; what else a
        # model keeps, such as weights, may be costly and knows nothing of it.
        for name in dir(type(copy)):
            is_cached = isinstance(getattr(type(copy), name, None), cached_property)
            if is_cached and "client" in name.lower():
                vars(copy).pop(name, None)
        return copy

    def once(client: Any) -> Any:
        # A client that wraps another, to trace it, need not have the number.
        return client.with_options(max_retries=0) if getattr(client, "max_retries", 0) else client

    clients = changed_clients(model, once)
    return model.model_copy(update={"max_retries": 0, **clients}) if clients else model


def with_own_connections(model: BaseChatModel, *, in_loop: bool) -> BaseChatModel:
    """A copy of a `ChatOpenAI` with an HTTP client of its own, which bounds answers.

    langchain-openai shares one asynchronous client between all event loops of a process. A
    connection that a loop left behind takes the request, which is paid for, and then fails
    with "Event loop is closed". A client that the caller gave is kept, and in threads one of
    the caller's own sockets.

    Args:
        model: The model.
        in_loop: Whether it is for the running event loop alone; otherwise for threads.
    """
    kind = "async_" if in_loop else ""
    root = getattr(model, f"root_{kind}client", None)
    if root is None or getattr(model, f"http_{kind}client", None) is not None:
        return model
    if not in_loop and getattr(model, "http_socket_options", None) is not None:
        return model
    http = bodies.client_of_loop() if in_loop else bodies.client_of_threads()
    own = root.with_options(http_client=http)
    changes = changed_clients(model, lambda client: own if client is root else client)
    return model.model_copy(update=changes)


def with_plain_json(model: BaseChatModel) -> BaseChatModel:
    """A copy of a `ChatOpenAI` or `AzureChatOpenAI` whose replies stay plain JSON.

    Building the client's typed objects takes longer than the rest of a call. Classes of other
    packages read fields of them, and are returned as they are.
    """
    if not type(model).__module__.startswith("langchain_openai."):
        return model
    return model.model_copy(update=changed_clients(model, _plain_client))


def _plain_client(client: Any) -> Any:
    if type(client).__module__.partition(".")[0] != "openai":
        return client
    from openai import omit

    send = client.chat.completions.with_raw_response.create
    unsaid = {} if _is_read(client) else {"model": omit, "messages": omit}

    def create(**payload: Any) -> _Reply:
        return _Reply(send(**{**_as_body(payload), **unsaid}))

    async def acreate(**payload: Any) -> _Reply:
        return _Reply(await send(**{**_as_body(payload), **unsaid}))

    ask = acreate if type(client).__name__.startswith("Async") else create
    raw = _Beside(client.chat.completions, create=ask, parse=ask)
    completions = _Beside(client.chat.completions, with_raw_response=raw)
    return _Beside(client, chat=_Beside(client.chat, completions=completions))


def _is_read(client: Any) -> bool:
    """Whether somebody reads the keywords of a call beside its body.

    Azure's client puts the model into the address, and who traces calls puts a `create` of his
    own in place of the client's.
    """
    create = client.chat.completions.create
    if type(create) is not MethodType or "Azure" in type(client).__name__:
        return True
    return not str(create.__func__.__globals__["__name__"]).startswith("openai.")


def _as_body(payload: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call whose body is sent as it is: to check it costs a fifth."""
    options = {name: payload.pop(name) for name in _OPTIONS & payload.keys()}
    extra_body = payload.pop("extra_body", None) or {}
    body = {**payload, **extra_body}
    return {"model": payload["model"], "messages": (), "extra_body": body, **options}


class _Beside:
    """An object hidden behind a few attributes."""

    def __init__(self, behind: Any, **attributes: Any) -> None:
        self._behind = behind
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


class _Reply(_Beside):
    def parse(self) -> object:
        """A common reply as a dictionary, any other as the client reads it."""
        content = self._behind.http_response.content
        # It takes half of the time, and no half of a character.
        read = json.loads if b"\\ud" in content.lower() else orjson.loads
        try:
            body: Any = read(content)
        except (ValueError, RecursionError):
            return self._behind.parse()
        if not _is_common(body):
            return self._behind.parse()
        for choice in body["choices"]:
            _slim(choice.get("logprobs"), choice["message"].get("content"))
            for call in choice["message"].get("tool_calls") or ():
                _mark_no_object(call.get("function"))
        return body


def _is_common(body: object) -> TypeGuard[dict[str, Any]]:
    """Whether LangChain reads all of a reply from a dictionary: not where it refuses."""
    choices = body.get("choices") if isinstance(body, dict) and not body.get("error") else None
    if not isinstance(choices, list) or not choices:
        return False
    messages = [one.get("message") if isinstance(one, dict) else None for one in choices]
    return all(
        isinstance(each, dict)
        and each.get("role") == "assistant"
        and not each.get("refusal")
        and isinstance(calls := each.get("tool_calls") or [], list)
        and all(isinstance(call, dict) for call in calls)
        for each in messages
    )


def _slim(logprobs: Any, text: object) -> None:
    """Keep tokens as one JSON text, for traces walk over data; drop what says nothing more.

    The bytes of tokens that spell the text, those of alternatives, and empty lists of these.
    """
    # Tokens of any other form stay as they are.
    with suppress(AttributeError, KeyError, TypeError):
        known = logprobs["content"]
        is_spelt = "".join([token["token"] for token in known]) == text
        for token in known:
            for each in [*([token] if is_spelt else []), *(token.get("top_logprobs") or ())]:
                each.pop("bytes", None)
            if token.get("top_logprobs") == []:
                del token["top_logprobs"]
        logprobs["content"] = reply_log.json_text(known)


def _mark_no_object(function: object) -> None:
    """Mark arguments that are JSON and no object: LangChain raises, and the reply is paid."""
    arguments = function.get("arguments") if isinstance(function, dict) else None
    try:
        value = json.loads(arguments) if arguments and isinstance(arguments, str) else {}
    except (ValueError, RecursionError):  # LangChain says of these that they are invalid
        return
    if isinstance(function, dict) and not isinstance(value, dict):
        function["arguments"] = f"no object: {arguments}"
