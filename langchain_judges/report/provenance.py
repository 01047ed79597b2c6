"""Where a report comes from, so that it can be made again."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from langchain_judges.report.judged_row import JudgedRow
from langchain_judges.runs.result_row import content_key


def provenance_of(
    rows: Sequence[JudgedRow],
    data: Iterable[Mapping[str, Any]] | None,
    more: Mapping[str, str],
) -> dict[str, str]:
    """Return date, package version, what the rows say of their judge, and the data's hash."""
    judge = rows[0].row.get("judge")
    description = judge if isinstance(judge, Mapping) else {}
    parts = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "langchain-judges": version("langchain-judges"),
        "method": str(description.get("method", "")),
        "model": str(description.get("model", "")),
        "judge settings": str(description.get("mark", "")),
        "data": data_hash(data if data is not None else [row.data_row for row in rows]),
        **more,
    }
    return {name: text for name, text in parts.items() if text}


def data_hash(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a short hash of the texts, labels and votes of rows, in their order."""
    digest = hashlib.sha256()
    for row in rows:
        labels = [row.get("label"), row.get("human_votes")]
        line = json.dumps([content_key(row), labels], sort_keys=True, default=str)
        digest.update(line.encode() + b"\n")
    return f"sha256:{digest.hexdigest()[:16]}"


def judge_provenance(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return method, options, models and prompt version of a judge, as texts.

    Args:
        metadata: `judge.config["metadata"]`.
    """
    options = metadata.get("options") or {}
    models = metadata.get("model") or {}
    parts = {
        "method": metadata.get("method"),
        "options": json.dumps(options, ensure_ascii=False, sort_keys=True, default=str),
        "model": json.dumps(models, ensure_ascii=False, sort_keys=True, default=str),
        "prompts": metadata.get("prompt_version"),
    }
    return {name: str(value) for name, value in parts.items() if value}


_SECRET = re.compile(r"(\w*(?:key|token|secret|password)\w*=).*", re.IGNORECASE | re.DOTALL)
_USER = re.compile(r"(//)[^/@\s]*@")


def command_text(arguments: Sequence[str]) -> str:
    """Return a command line as a shell takes it, without keys and passwords."""
    words = [_USER.sub(r"\1", _SECRET.sub(r"\1…", part)) for part in arguments[1:]]
    return shlex.join(["langchain-judges", *words])
