"""From what a user names (`"openai:gpt-…"`, `"local"`, a chat model) to a chat model."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NotRequired
from urllib.parse import urlsplit

from typing_extensions import TypedDict

from langchain_judges.asking.clients import is_openai_compatible
from langchain_judges.errors import ModelSetupError, OptionError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


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


_PASSWORD = re.compile(r"//[^/@\s]*:[^/@\s]*@")
_ADDRESSES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")


def resolve_model(
    model: str | BaseChatModel,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 120.0,
    settings: Mapping[str, Any] | None = None,
) -> BaseChatModel:
    """Return the chat model that `model` names.

    Args:
        model: A chat model (returned as it is); a decision model, such as `OpenAIDecisions`;
            `"local"`, the small model that runs in
            this process; `"local:/path/to.gguf"`, any other model file; or a string as
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
    from langchain_core.language_models import BaseChatModel

    if isinstance(model, BaseChatModel):
        addresses = (getattr(model, name, None) for name in _SERVERS)
        if any(isinstance(each, str) and _PASSWORD.search(each) for each in addresses):
            raise OptionError(
                "the model's address holds a password, which logs and traces would show; give "
                "it as a header: `default_headers={'Authorization': 'Basic …'}`"
            )
        return model
    if is_decision_model(model):
        from langchain_judges.asking.decisions import decision_chat_model

        return decision_chat_model(model)
    if base_url and not base_url.startswith(("http://", "https://")):
        raise OptionError(f"`base_url` must begin with http:// or https://, got {base_url!r}")
    if not isinstance(model, str) or not model.strip():
        raise OptionError(
            "`model` must be a chat model, 'local', 'local:/path/to.gguf' or a name such "
            f"as 'openai:gpt-5-mini', got {_description(model)}"
        )
    if model == "local" or model.startswith("local:"):
        from langchain_judges.asking.local import local_model

        return local_model(model.partition(":")[2] or None)
    access = {} if api_key is None else {"api_key": api_key}
    return _named_model(model, base_url, {**(settings or {}), **access, "timeout": timeout})


def model_of_spec(spec: ModelSpec) -> BaseChatModel:
    """Return the chat model that plain JSON describes.

    Raises:
        OptionError: A field is missing or unknown.
        ModelSetupError: The model cannot be made, or its key's variable is not set.
    """
    fields = set(spec)
    if "name" not in fields or fields - ModelSpec.__annotations__.keys():
        raise OptionError(
            "the `model` of a spec is a name, or an object of "
            f"{', '.join(ModelSpec.__annotations__)}; got {sorted(map(str, fields))}"
        )
    key = None
    if variable := spec.get("api_key_env"):
        key = os.environ.get(variable)
        if key is None:
            raise ModelSetupError(f"The key's environment variable {variable} is not set.")
    return resolve_model(
        spec["name"],
        base_url=spec.get("base_url"),
        api_key=key,
        timeout=spec.get("timeout", 120.0),
        settings=spec.get("settings"),
    )


def is_decision_model(model: object) -> bool:
    """Say whether a model answers closed questions only."""
    return any(base.__name__ == "OpenAIDecisions" for base in type(model).__mro__)


def _description(model: object) -> str:
    if isinstance(model, str | int | float | None):
        return repr(model)
    return f"a {type(model).__name__} (give the chat model without `bind` or `with_retry`)"


def _named_model(
    model: str, base_url: str | None, settings: Mapping[str, Any]
) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    # `ask()` retries by its own rule, so the provider's library must not.
    options: dict[str, Any] = {"max_retries": 0, **settings}
    if model.startswith(("openai:", "gpt-")):
        base_url = base_url or own_address()
    if base_url:
        # A compatible server speaks chat completions, whatever the model's name suggests.
        options = {
            "model_provider": "openai",
            "base_url": base_url,
            "api_key": os.environ.get("OPENAI_API_KEY") or "none",
            "use_responses_api": False,
            **options,
        }
        model = model.removeprefix("openai:")
    try:
        chat: BaseChatModel = init_chat_model(model, **options)
    except ImportError as exc:
        raise ModelSetupError(f"The model {model!r} cannot be loaded: {exc}") from exc
    except ValueError as exc:
        reason = str(exc).split("\n")[0]
        raise ModelSetupError(f"The model {model!r} is not known: {reason}") from exc
    except Exception as exc:  # each provider's package raises its own
        raise ModelSetupError(f"The model {model!r} cannot be used: {exc}") from exc
    return resolve_model(chat)


_SERVERS = ("openai_api_base", "anthropic_api_url", "azure_endpoint", "base_url")


def server_of(model: str | ModelSpec | BaseChatModel) -> str:
    """Return a short hash of the server that a model is asked at; empty where it is not known.

    A hash, for an address stands in no result.
    """
    address: object = None
    if isinstance(model, str):
        address = own_address() if model.startswith(("openai:", "gpt-")) else None
    elif isinstance(model, Mapping):
        address = model.get("base_url")
        if not address:
            return server_of(model.get("name", ""))
    elif "model_file" not in (getattr(model, "metadata", None) or {}):
        address = next(filter(None, (getattr(model, name, None) for name in _SERVERS)), None)
    place = urlsplit(str(address or "")).netloc
    return hashlib.sha256(place.encode()).hexdigest()[:8] if place else ""


def own_address() -> str | None:
    """Return the address that the environment names in place of OpenAI's own."""
    return next(filter(None, map(os.environ.get, _ADDRESSES)), None)


# Settings that say where, how and by whom a model is reached, and not what it replies.
_NO_IDENTITY = re.compile(
    r"key|secret|password|token(?!s|_id|iz)|auth|credential|url|uri|api_base|host|address|endpoint|domain"
    r"|proxy|header|cache|verbose|timeout|retries|organization|project|region|zone|location"
    r"|stream|usage|user|account|tenant|workspace|tags|callback"
    r"|^(user_?|run_|deployment_|azure_)*(name|base|port)$"
)
# Settings that decide what a model replies, as providers call them: shown as they are.
_SAMPLING = frozenset(
    (
        *("temperature", "top_k", "top_p", "min_p", "typical_p", "mirostat", "do_sample"),
        *("frequency_penalty", "presence_penalty", "repeat_penalty", "repetition_penalty"),
        *("n", "best_of", "logit_bias", "stop", "seed", "num_ctx", "num_predict"),
        *("max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens"),
        *("thinking", "thinking_budget", "thinking_level", "enable_thinking"),
        *("reasoning", "reasoning_effort", "effort", "verbosity", "quantization"),
    )
)
# Settings that hold further ones.
_WITHIN = ("model_kwargs", "extra_body", "chat_template_kwargs")


def model_name(model: BaseChatModel) -> str:
    """Return the name by which the provider knows the model."""
    for field in ("model_name", "model", "model_id", "deployment_name"):
        if isinstance(name := getattr(model, field, None), str) and name:
            return name
    return type(model).__name__


def model_identity(model: BaseChatModel) -> dict[str, object]:
    """Return what decides a model's replies: class, name and sampling parameters.

    Never its address, port or key: the same model behind another door is the same model.
    Settings whose meaning we do not know count as a hash. A local model is known by its
    file's hash.
    """
    file_hash = (getattr(model, "metadata", None) or {}).get("model_file")
    names = {*_SAMPLING, *_WITHIN} & type(model).model_fields.keys()
    if not is_openai_compatible(model):
        # Of a class that we do not know, whatever was set may decide what it replies.
        names |= model.model_fields_set
    return {
        "class": type(model).__name__,
        "name": model_name(model),
        **_settings({name: getattr(model, name, None) for name in sorted(names)}),
        **({"file": file_hash} if file_hash else {}),
    }


def _settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings for all to see: known ones as they are, others as one hash.

    An unknown one may decide the replies, and may be a secret that nobody should read.
    """
    plain: dict[str, object] = {}
    unknown: dict[str, object] = {}
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
        data = json.dumps(unknown, sort_keys=True, default=str)
        plain["others"] = hashlib.sha256(data.encode()).hexdigest()[:12]
    return plain
