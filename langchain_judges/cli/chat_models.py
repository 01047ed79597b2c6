"""The chat models that a command names: made, or checked as far as that takes no key."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_judges.cli.flags import SECONDS
from langchain_judges.cli.messages import error_console
from langchain_judges.cli.settings import setting
from langchain_judges.errors import ModelSetupError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from langchain_judges.asking.models import ModelSpec


def chat_model(
    model: str,
    base_url: str | None,
    timeout: float,
    settings: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> BaseChatModel:
    """Return the model that a command names; a dry run asks nothing, so it needs no key."""
    from langchain_judges.asking.models import resolve_model

    more = dict(setting(each, "--model-set") for each in settings or ())
    try:
        return resolve_model(model, base_url=base_url, timeout=timeout, settings=more)
    except ModelSetupError:
        if not dry_run:
            raise
    # Errors that are not about the key are raised as they are without a dry run.
    chat = resolve_model(
        model, base_url=base_url, api_key="none", timeout=timeout, settings=more
    )
    error_console().print(f"No key for {model} was found; asking needs one.", markup=False)
    return chat


def check_model(spec: ModelSpec, errors: Console) -> None:
    """Check that a model could be made, as far as that takes no key.

    OpenAI's models with only a name are not made: their library takes longer to load than all
    else that a dry run needs.

    Raises:
        ModelSetupError: The model is not known, or a package is missing.
    """
    from langchain_judges.asking.models import own_address

    name, own = spec["name"], spec["name"].removeprefix("openai:")
    is_openai = own and ":" not in own and (own != name or own.startswith("gpt-"))
    address = spec.get("base_url") or (own_address() if is_openai else None)
    is_plain = is_openai or str(address).startswith(("http://", "https://"))
    if not is_plain or not own or spec.get("settings") or "api_key_env" in spec:
        more = [f"{key}={json.dumps(value)}" for key, value in spec.get("settings", {}).items()]
        chat_model(name, address, spec.get("timeout", SECONDS), more, dry_run=True)
    elif not address and not os.environ.get("OPENAI_API_KEY"):
        errors.print(f"No key for {name} was found; asking needs one.", markup=False)
