"""Corrections that people made in LangSmith, as proposals for a correction memory.

They are proposals: plain dictionaries with the fields of a remembered example, to be audited
before anything learns from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langsmith import Client
from langsmith.schemas import Feedback, Run

from langchain_judges.errors import InputError
from langchain_judges.integrations.evaluators import runs_of
from langchain_judges.rows.applications import task_in, work_in

Label = str | int | float

_NAMED = ("label", "preference", "value", "score")


def read_corrections(
    client: Client, runs: Iterable[Any], *, key: str | None = None
) -> list[dict[str, Any]]:
    """Read feedback with a `correction` on some runs.

    Args:
        client: A `langsmith.Client`.
        runs: Ids of the runs that were judged, such as those of an experiment.
        key: Only feedback under this key; the evaluator's.

    Returns:
        Proposals in the order of the feedback: `input` and `output` as the judge was shown
        them (`{"output_a", "output_b"}` of a pair), `expected` the known answer if it had
        one, `wrong` the judge's label and `corrected` the person's, `family` the key,
        `source` the id of the dataset's example or of the run, `auditor` who corrected and
        `note` why. A correction that names no label is left out.
    """
    ids = [str(run) for run in runs]
    if not ids:
        return []
    keys = [key] if key else None
    feedback = list(client.list_feedback(run_ids=ids, feedback_key=keys))
    corrected = [f for f in feedback if _label(f.correction) is not None]
    said = {(str(f.run_id), f.key): f for f in feedback if _by_model(f)}
    shown = {str(run.id): run for run in runs_of(client, id=ids)} if corrected else {}
    judged = {_judge_run(f) for f in said.values()} - {None}
    found = runs_of(client, id=sorted(map(str, judged))) if corrected and judged else []
    judging = {str(run.id): run for run in found}
    proposals = []
    for each in corrected:
        own = said.get((str(each.run_id), each.key))
        proposals.append(
            _proposal(each, own, shown.get(str(each.run_id)), judging.get(str(_judge_run(own))))
        )
    return proposals


def _proposal(
    feedback: Feedback, own: Feedback | None, run: Run | None, judging: Run | None
) -> dict[str, Any]:
    wrong = own or feedback
    source = getattr(run, "reference_example_id", None) or feedback.run_id
    note = feedback.correction.get("comment") if isinstance(feedback.correction, dict) else None
    return {
        **_case(run, judging),
        "family": feedback.key,
        "wrong": wrong.value if isinstance(wrong.value, str) else wrong.score,
        "corrected": _label(feedback.correction),
        "mode": None,
        "source": str(source),
        "auditor": _person(feedback),
        "note": str(note or feedback.comment or ""),
    }


def _case(run: Run | None, judging: Run | None) -> dict[str, Any]:
    """Return what the judge was shown; without its run, what the judged run holds."""
    told = (judging.inputs if judging else None) or {}
    if "output_a" in told:
        sides = {"output_a": told["output_a"], "output_b": told["output_b"]}
        return {"input": told["input"], "output": sides, "expected": told.get("reference")}
    if "output" in told:
        return {name: told.get(name) for name in ("input", "output", "expected")}
    try:
        task, text = task_in(run and run.inputs), work_in(run and run.outputs)
    except InputError:
        task, text = (run and run.inputs) or "", (run and run.outputs) or ""  # type: ignore[assignment]
    return {"input": task, "output": text, "expected": None}


def _label(correction: Any) -> Label | None:
    """Return the label that a correction names, in any of the forms it is written in."""
    if isinstance(correction, Mapping):
        named: Sequence[Any] = [correction[name] for name in _NAMED if name in correction]
        if not named and len(correction) == 1:
            named = list(correction.values())
        return _label(named[0]) if named else None
    if isinstance(correction, bool):
        return int(correction)
    return correction if isinstance(correction, str | int | float) else None


def _by_model(feedback: Feedback) -> bool:
    source = feedback.feedback_source
    return bool(source and source.type == "model")


def _judge_run(feedback: Feedback | None) -> str | None:
    source = feedback.feedback_source if feedback else None
    found = (getattr(source, "metadata", None) or {}).get("__run") or {}
    return found.get("run_id")


def _person(feedback: Feedback) -> str:
    source: Any = feedback.feedback_source
    name = getattr(source, "user_name", None) or getattr(source, "user_id", None)
    return str(name or "langsmith")
