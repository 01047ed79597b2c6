"""The settings that determine a judge's verdicts, and the mark of stored rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.methods.describe import memory_of, metadata_of, unwrapped

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_DECISIVE = ("method", "options", "model", "prompt_version")


class Marks(TypedDict, total=False):
    """The settings that determine a judge's verdicts, as far as they are known."""

    method: str
    options: Mapping[str, object]
    model: Mapping[str, Mapping[str, object]]
    """The identity of the model of each step."""
    prompt_version: str
    memory: str
    """The version of its memory."""
    embeddings: object
    """The identity of its embeddings, or of those of each member."""


def marks_of(judge: object) -> tuple[Marks, int]:
    """Return the settings that determine a judge's verdicts, and its calls for a row.

    Both are in the judge's metadata, from its factory or its author. A sequence around a
    judge has none, because its other parts may affect the verdict too.
    """
    metadata = metadata_of(judge)
    marks = cast("Marks", {key: metadata[key] for key in _DECISIVE if key in metadata})
    if isinstance(options := marks.get("options"), Mapping):
        # A graph's name in traces does not affect verdicts.
        marks["options"] = {key: value for key, value in options.items() if key != "name"}
    if (memory := memory_of(judge)) is not None:
        marks["memory"] = str(memory.version)
    if embeddings := _embeddings(judge):
        # Loaded on use: most judges use no embeddings.
        from langchain_judges.memory.faiss.embedder import identity_of

        identities = [identity_of(each) for each in embeddings]
        marks["embeddings"] = identities[0] if len(identities) == 1 else identities
    return marks, int(metadata.get("calls", 0))


def _embeddings(judge: object) -> list[Embeddings]:
    """Return the embeddings of a judge, or of its members."""
    own = unwrapped(judge)
    if members := getattr(own, "members", ()):
        return [each for member in members for each in _embeddings(member.judge)]
    embeddings = getattr(getattr(own, "options", None), "embeddings", None)
    return [] if embeddings is None else [embeddings]


def name_of(marks: Marks) -> dict[str, str]:
    """Return a row's description of its judge: method, model and a mark of all settings."""
    data = json.dumps(marks, sort_keys=True, default=str)
    models = {str(model.get("name")) for model in marks.get("model", {}).values()}
    return {
        "mark": hashlib.sha256(data.encode()).hexdigest()[:12],
        "method": str(marks["method"]),
        "model": ", ".join(sorted(models)),
    }


def check_identity(name: str, marks: Marks) -> None:
    """Check that results of a judge can be distinguished from those of another.

    Raises:
        OptionError: Its marks name no method.
    """
    if "method" not in marks:
        raise OptionError(
            "`out` needs a judge with metadata that identify it, so that a later run can "
            f"tell whether it is the same; {name!r} has none. Name it and its "
            'version by `.with_config(metadata={"method": "my judge, version 1"})`'
        )
