"""Corrections that people made in LangSmith, as proposals for a correction memory.

Proposals are plain dictionaries with the fields of a remembered example. They must be audited
before a judge learns from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langsmith import Client
from langsmith.schemas import Feedback, Run

from langchain_judges.errors import InputError
from langchain_judges.integrations.langsmith_runs import runs_of
from langchain_judges.rows.applications import task_in, work_in
from langchain_judges.rows.kinds import kind_in
from langchain_judges.verdict import Label

_LABEL_KEYS = ("label", "preference", "value", "score")


def read_corrections(
    client: Client, runs: Iterable[Any], *, key: str | None = None
) -> list[dict[str, Any]]:
    """Read the feedback with a `correction` on some runs.

    Args:
        client: A `langsmith.Client`.
        runs: Ids of the runs that were judged, such as those of an experiment.
        key: The evaluator's key, to read only its feedback.

    Returns:
        Proposals in the order of the feedback: `input` and `output` as the judge saw them
        (`{"output_a", "output_b"}` of a pair), `expected` the expected answer if it had one,
        `wrong` the judge's label and `corrected` the person's, `family` the key, `source` the
        id of the dataset's example or of the run, `auditor` the person who corrected and
        `note` the reason. Corrections without a label are omitted.
    """
    ids = [str(run) for run in runs]
    if not ids:
        return []
    keys = [key] if key else None
    feedback = list(client.list_feedback(run_ids=ids, feedback_key=keys))
    corrections = [f for f in feedback if _label(f.correction) is not None]
    model_feedback = {(str(f.run_id), f.key): f for f in feedback if _by_model(f)}
    runs_by_id = {str(run.id): run for run in runs_of(client, id=ids)} if corrections else {}
    judge_ids = {_judge_run(f) for f in model_feedback.values()} - {None}
    judge_runs = (
        runs_of(client, id=sorted(map(str, judge_ids))) if corrections and judge_ids else []
    )
    judge_runs_by_id = {str(run.id): run for run in judge_runs}
    proposals = []
    for each in corrections:
        verdict = model_feedback.get((str(each.run_id), each.key))
        proposals.append(
            _proposal(
                each,
                verdict,
                runs_by_id.get(str(each.run_id)),
                judge_runs_by_id.get(str(_judge_run(verdict))),
            )
        )
    return proposals


def _proposal(
    feedback: Feedback, verdict: Feedback | None, run: Run | None, judge_run: Run | None
) -> dict[str, Any]:
    mistake = verdict or feedback
    source = getattr(run, "reference_example_id", None) or feedback.run_id
    note = feedback.correction.get("comment") if isinstance(feedback.correction, dict) else None
    return {
        **_case(run, judge_run),
        "family": feedback.key,
        "wrong": mistake.value if isinstance(mistake.value, str) else mistake.score,
        "corrected": _label(feedback.correction),
        "mode": None,
        "source": str(source),
        "auditor": _person(feedback),
        "note": str(note or feedback.comment or ""),
    }


def _case(run: Run | None, judge_run: Run | None) -> dict[str, Any]:
    """Return the judge's inputs; without its run, the texts of the judged run."""
    inputs = (judge_run.inputs if judge_run else None) or {}
    kind = kind_in(inputs)
    if kind == "pair":
        sides = {"output_a": inputs["output_a"], "output_b": inputs["output_b"]}
        return {"input": inputs["input"], "output": sides, "expected": inputs.get("reference")}
    if kind == "item":
        return {name: inputs.get(name) for name in ("input", "output", "expected")}
    try:
        task, text = task_in(run and run.inputs), work_in(run and run.outputs)
    except InputError:
        task, text = (run and run.inputs) or "", (run and run.outputs) or ""  # type: ignore[assignment]
    return {"input": task, "output": text, "expected": None}


def _label(correction: Any) -> Label | None:
    """Return the label of a correction, in any of its forms."""
    if isinstance(correction, Mapping):
        labels: Sequence[Any] = [correction[name] for name in _LABEL_KEYS if name in correction]
        if not labels and len(correction) == 1:
            labels = list(correction.values())
        return _label(labels[0]) if labels else None
    if isinstance(correction, bool):
        return int(correction)
    return correction if isinstance(correction, str | int | float) else None


def _by_model(feedback: Feedback) -> bool:
    source = feedback.feedback_source
    return bool(source and source.type == "model")


def _judge_run(feedback: Feedback | None) -> str | None:
    source = feedback.feedback_source if feedback else None
    metadata = (getattr(source, "metadata", None) or {}).get("__run") or {}
    return metadata.get("run_id")


def _person(feedback: Feedback) -> str:
    source: Any = feedback.feedback_source
    name = getattr(source, "user_name", None) or getattr(source, "user_id", None)
    return str(name or "langsmith")
