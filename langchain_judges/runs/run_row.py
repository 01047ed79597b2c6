"""One row of a run: read, checked and keyed; its outcome; its stored result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_judges import lazy, verdict
from langchain_judges.rows import checks, texts

# What a run refuses, and why.
RUN_ERRORS: dict[str, str] = lazy.packaged(__package__, "words.yaml")
_DECISIVE = ("method", "options", "model", "prompt_version")


# The settings that determine a judge's verdicts, as far as they are known: `method`,
# `options`, `model` (the identity of each step's), `prompt_version`, `memory`, `embeddings`.
Fingerprint = dict[str, Any]


def digest_of(content: object) -> bytes:
    """The SHA-256 of some data as JSON, whatever the order of its fields."""
    data = json.dumps(content, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(data.encode()).digest()


def run_fingerprint(judge: object, memory: str) -> tuple[Fingerprint, int]:
    """The settings that determine a judge's verdicts, and its calls for a row.

    Both are in the judge's metadata, from its factory or its author. A sequence around a
    judge has none, because its other parts may affect the verdict too.

    Args:
        judge: The judge.
        memory: The version of its memories; empty without any.
    """
    # Loaded on use: reading results needs no judge.
    from langchain_judges.methods.describe import leaves_of, metadata_of, option_of

    metadata = metadata_of(judge)
    fingerprint = {key: metadata[key] for key in _DECISIVE if key in metadata}
    if isinstance(options := fingerprint.get("options"), Mapping):
        # A graph's name in traces does not affect verdicts.
        fingerprint["options"] = _decisive({k: v for k, v in options.items() if k != "name"})
    if memory:
        fingerprint["memory"] = memory
    found = (option_of(each, "embeddings") for each in leaves_of(judge))
    if embeddings := [each for each in found if each is not None]:
        # Loaded on use: most judges use no embeddings.
        from langchain_judges.asking.embeddings import identity_of

        identities = [identity_of(each) for each in embeddings]
        fingerprint["embeddings"] = identities[0] if len(identities) == 1 else identities
    return fingerprint, int(metadata.get("calls", 0))


def _decisive(options: Any) -> Any:
    """Options, of members too, without the one that only says when calls are sent."""
    if isinstance(options, Mapping):
        return {k: _decisive(part) for k, part in options.items() if k != "cache_first"}
    return [_decisive(part) for part in options] if isinstance(options, list) else options


def servers_of(judge: object) -> str:
    """Marks of the servers of a judge's models; empty: not known."""
    # Loaded on use: reading results needs no judge.
    from langchain_judges.asking.models import server_of
    from langchain_judges.methods.describe import leaves_of, unwrapped

    models: list[Any] = []
    for own in map(unwrapped, leaves_of(judge)):
        options = getattr(own, "options", None)
        steps = (name for name in getattr(options, "model_fields_set", ()) if "_model" in name)
        models += [getattr(own, "model", None), *(getattr(options, n) for n in sorted(steps))]
    servers = (server_of(each) for each in models if each is not None)
    return " ".join(dict.fromkeys(filter(None, servers)))


def name_of(fingerprint: Fingerprint) -> dict[str, Any]:
    """A row's description of its judge: method, model, prompts, a mark of all that."""
    models = {str(model.get("name")) for model in fingerprint.get("model", {}).values()}
    known = {
        "mark": digest_of(fingerprint).hex()[:12],
        "method": str(fingerprint["method"]),
        "model": ", ".join(sorted(models)),
    }
    prompts = fingerprint.get("prompt_version")
    return known | ({"prompts": str(prompts)} if prompts else {})


# `{"index", "key", "kind", "judged", "judge", "id", "content", "verdict", …}` and the
# method's own results.
ResultRow = dict[str, Any]


# A verdict of either kind; of a written text only failures and usage.
AnyVerdict = Mapping[str, Any]


def outcome_of(result: Mapping[str, Any]) -> AnyVerdict:
    """The part of a result with failures and usage: its verdict, or a written row itself."""
    return result if checks.kind_of_result(result) == "task" else result.get("verdict") or {}


def judged_row(result: Mapping[str, Any]) -> bool:
    """Whether a result holds a verdict, or a text if one was to be written."""
    if checks.kind_of_result(result) == "task":
        return result["text"] is not None
    return verdict.decision(outcome_of(result)) is not None


def content_key(row: Mapping[str, object]) -> dict[str, str]:
    """A short hash of each text of a row: they tell what a verdict is of.

    Unlike the key of a result it says nothing of the judge, the row's id or its place.
    """
    read = [field for field in texts.READ if row.get(field) not in (None, "")]
    return {field: digest_of(row[field]).hex()[:12] for field in read}


@dataclass
class RunRow:
    """One row of a run.

    Attributes:
        data: The row itself, as plain JSON.
        problem: Why it cannot be judged at all; empty for a good row.
        own: The user's own columns, unchanged.
    """

    index: int
    data: Mapping[str, object]
    key: str
    kind: checks.RowKind = "pair"
    over_budget: bool = False
    problem: str = ""
    own: Mapping[str, object] = field(default_factory=dict)

    def labels(self) -> dict[str, object]:
        """The annotations of the row: its label, its group and the like."""
        return {name: self.data[name] for name in checks.ANNOTATIONS if name in self.data}

    def again(self, result: ResultRow) -> ResultRow:
        """The stored result of the row with what the row says of itself now."""
        rest = {name: value for name, value in result.items() if name not in checks.ANNOTATIONS}
        return {**rest, "index": self.index, "id": self.data.get("id"), **self.labels()}


def outcome_without(
    row: RunRow, failure: verdict.Failure, usage: verdict.Usage | None = None
) -> Mapping[str, object]:
    """The outcome of a row that was not judged, by its failure."""
    if row.kind == "task":
        return {"text": None, "failures": [failure], "usage": usage or verdict.no_usage()}
    return {"verdict": verdict.WITHOUT_ANSWER[row.kind]([failure], usage or verdict.no_usage())}


def result_row(
    row: RunRow,
    outcome: Mapping[str, Any],
    judge: Mapping[str, Any],
    spent: Mapping[str, float | None],
) -> ResultRow:
    """The result of a row.

    Args:
        row: The row.
        outcome: What its judge returned, or why it was not judged.
        judge: The judge's method, model, mark and labels.
        spent: What it cost in dollars, as `cost`, where calls were made.
    """
    # The verdict of another runnable may omit these.
    empty = {"failures": [], "usage": verdict.no_usage()}
    if row.kind == "task":
        outcome = {"text": None, **empty, **outcome}
    else:
        said = {**empty, **(outcome.get("verdict") or {})}
        outcome = {**outcome, "verdict": verdict.noted(said, verdict.Notes.of(row.data))}
    judged = {**outcome, "kind": row.kind}
    lacking = outcome_of(judged)["usage"].get("asked_without")
    # No method's result may name these.
    head = {"index": row.index, "key": row.key, "kind": row.kind, "judged": judged_row(judged)}
    head |= {"judge": judge}
    return {
        **head,
        "id": row.data.get("id"),
        **({} if row.kind == "task" else {"content": content_key(row.data)}),
        **row.labels(),
        **{name: value for name, value in outcome.items() if name not in head},
        **spent,
        **({"asked_without": lacking} if lacking else {}),
    }
