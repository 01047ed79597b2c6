"""What decides a judge's verdicts, and the mark by which stored rows name their judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable

from langchain_judges.methods.marks import memory_of, metadata_of, unwrapped

_DECISIVE = ("method", "options", "model", "prompt_version")


def marks_of(judge: Runnable[Any, Any]) -> tuple[dict[str, Any], int]:
    """Return what decides a judge's verdicts, and the calls it makes for a pair.

    Its factory attached both, or whoever made it did, by its metadata; of a sequence around
    a judge nothing is known, for its other parts may decide too.
    """
    metadata = metadata_of(judge)
    marks = {key: metadata[key] for key in _DECISIVE if key in metadata}
    if isinstance(options := marks.get("options"), Mapping):
        # How a graph is called in traces decides nothing.
        marks["options"] = {key: value for key, value in options.items() if key != "name"}
    if (memory := memory_of(judge)) is not None:
        marks["memory"] = str(memory.version)
    if embeddings := _embeddings(judge):
        # Loaded on use: most judges embed nothing.
        from langchain_judges.memory.faiss.embedder import identity_of

        identities = [identity_of(each) for each in embeddings]
        marks["embeddings"] = identities[0] if len(identities) == 1 else identities
    return marks, int(metadata.get("calls", 0))


def _embeddings(judge: Runnable[Any, Any]) -> list[Any]:
    """Return the embeddings that a judge was given, or the judges that it is made of."""
    own = unwrapped(judge)
    if members := getattr(own, "members", ()):
        return [each for member in members for each in _embeddings(member.judge)]
    embeddings = getattr(getattr(own, "options", None), "embeddings", None)
    return [] if embeddings is None else [embeddings]


def name_of(marks: Mapping[str, Any]) -> dict[str, str]:
    """Return how a row names its judge: the method, the model and a mark of all settings."""
    data = json.dumps(marks, sort_keys=True, default=str)
    models = {str(model.get("name")) for model in marks.get("model", {}).values()}
    return {
        "mark": hashlib.sha256(data.encode()).hexdigest()[:12],
        "method": str(marks["method"]),
        "model": ", ".join(sorted(models)),
    }
