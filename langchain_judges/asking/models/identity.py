"""What decides a model's replies: its name and the settings that all may see."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from langchain_judges.asking.models.clients import is_openai_kin

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_NO_IDENTITY = re.compile(
    r"key|secret|password|token(?!s|_id|iz)|auth|credential|url|uri|api_base|host|address|endpoint|domain"
    r"|proxy|header|cache|verbose|timeout|retries|organization|project|region|zone|location"
    r"|stream|usage|user|account|tenant|workspace|tags|callback"
    r"|^(user_?|run_|deployment_|azure_)*(name|base|port)$"
)
"""Settings that say where, how and by whom a model is reached, and not what it replies."""
_SAMPLING = frozenset(
    {
        *(
            "temperature",
            "top_k",
            "top_p",
            "min_p",
            "typical_p",
            "mirostat",
            "do_sample",
            "seed",
        ),
        *("frequency_penalty", "presence_penalty", "repeat_penalty", "repetition_penalty"),
        *("n", "best_of", "logit_bias", "stop", "num_ctx", "num_predict", "max_tokens"),
        *("max_completion_tokens", "max_new_tokens", "max_output_tokens"),
        *("thinking", "thinking_budget", "thinking_level", "enable_thinking"),
        *("reasoning", "reasoning_effort", "effort", "verbosity"),
        *("chat_template_kwargs", "quantization"),
    }
)
"""Settings that decide what a model replies, as providers call them: shown as they are."""
_WITHIN = ("model_kwargs", "extra_body")
"""Settings that hold further ones."""


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
    fields = type(model).model_fields
    settings = {
        field: getattr(model, field, None) for field in sorted(_SAMPLING & fields.keys())
    }
    kin = is_openai_kin(model)
    # Of a class that we do not know, whatever was set may decide what it replies.
    others = () if kin else sorted(model.model_fields_set - settings.keys() - set(_WITHIN))
    settings |= {field: getattr(model, field, None) for field in others}
    within = {field: _settings(getattr(model, field, None) or {}) for field in _WITHIN}
    return {
        "class": type(model).__name__,
        "name": model_name(model),
        **_settings(settings),
        **{field: value for field, value in within.items() if value},
        **({"file": file_hash} if file_hash else {}),
    }


def _settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Return settings for all to see: known ones as they are, others as one hash.

    An unknown one may decide the replies, and may be a secret that nobody should read.
    """
    plain: dict[str, object] = {}
    unknown: dict[str, object] = {}
    for name, value in settings.items():
        if value is None or value in ({}, []):
            continue
        if name in _SAMPLING:
            plain[name] = _without_access(value)
        elif isinstance(value, str | int | float | bool | list | dict | tuple):
            unknown[name] = _without_access(value)
    others = {
        k: v for k, v in unknown.items() if not _NO_IDENTITY.search(k) and v not in ({}, [])
    }
    if others:
        data = json.dumps(others, sort_keys=True, default=str)
        plain["others"] = hashlib.sha256(data.encode()).hexdigest()[:12]
    return plain


def _without_access(value: object) -> object:
    """Return a setting without what says how a model is reached, however deep it stands."""
    if isinstance(value, Mapping):
        inner = {k: _without_access(v) for k, v in value.items() if isinstance(k, str)}
        # A bare `name` is that of what the setting is about, such as an adapter.
        plain_names = _SAMPLING | {"name"}
        return {
            k: v for k, v in inner.items() if k in plain_names or not _NO_IDENTITY.search(k)
        }
    if isinstance(value, list | tuple):
        return [_without_access(each) for each in value]
    return value
