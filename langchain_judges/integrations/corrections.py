"""Corrections that people made in LangSmith, as proposals for a correction memory.

Proposals are plain dictionaries with the fields of a remembered example. They must be audited
before a judge learns from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from langsmith import Client
from langsmith.schemas import Feedback, Run

from langchain_judges.errors import InputError
from langchain_judges.integrations.langsmith_runs import runs_by_id
from langchain_judges.rows.applications import task_in, work_in
from langchain_judges.rows.checks import kind_in
from langchain_judges.verdict import Label

EVALUATORS = "evaluators"
"""The project in which LangSmith keeps the runs of evaluators."""
_LABEL_KEYS = ("label", "preference", "value", "score")


def read_corrections(
    client: Client, runs: Iterable[object], *, key: str | None = None
) -> list[dict[str, object]]:
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
    feedback = list(client.list_feedback(run_ids=ids, feedback_key=[key] if key else None))
    corrections = [f for f in feedback if _label(f.correction) is not None]
    if not corrections:
        return []
    verdicts = {(str(f.run_id), f.key): f for f in feedback if _by_model(f)}
    judge_ids = {_judge_run(f) for f in verdicts.values()} - {None}
    judged_runs: dict[str, Run] = {}
    for project in {f.session_id for f in corrections} - {None}:
        own = sorted({str(f.run_id) for f in corrections if f.session_id == project})
        judged_runs |= runs_by_id(client, project, own)
    judge_runs = {}
    if judge_ids and client.has_project(EVALUATORS):
        evaluators = client.read_project(project_name=EVALUATORS)
        judge_runs = runs_by_id(client, evaluators.id, sorted(map(str, judge_ids)))
    proposals = []
    for each in corrections:
        run_id = str(each.run_id)
        verdict = verdicts.get((run_id, each.key))
        judge_run = judge_runs.get(str(_judge_run(verdict)))
        proposals.append(_proposal(each, verdict, judged_runs.get(run_id), judge_run))
    return proposals


def _proposal(
    feedback: Feedback, verdict: Feedback | None, run: Run | None, judge_run: Run | None
) -> dict[str, object]:
    mistake = verdict or feedback
    source = getattr(run, "reference_example_id", None) or feedback.run_id
    note = feedback.correction.get("comment") if isinstance(feedback.correction, dict) else None
    return {
        **_case(run, judge_run),
        "family": feedback.key,
        "wrong": mistake.score if mistake.value is None else mistake.value,
        "corrected": _label(feedback.correction),
        "mode": None,
        "source": str(source),
        "auditor": person_of(feedback),
        "note": str(note or feedback.comment or ""),
    }


def _case(run: Run | None, judge_run: Run | None) -> dict[str, object]:
    """Return the judge's inputs; without its run, the texts of the judged run."""
    inputs = (judge_run.inputs if judge_run else None) or {}
    kind = kind_in(inputs)
    if kind == "pair":
        sides = {"output_a": inputs["output_a"], "output_b": inputs["output_b"]}
        return {"input": inputs["input"], "output": sides, "expected": inputs.get("reference")}
    if kind == "item":
        return {name: inputs.get(name) for name in ("input", "output", "expected")}
    run_inputs, run_outputs = (run.inputs, run.outputs) if run else ({}, {})
    try:
        texts = {"input": task_in(run_inputs), "output": work_in(run_outputs)}
    except InputError:
        return {"input": run_inputs or "", "output": run_outputs or "", "expected": None}
    return {**texts, "expected": None}


def _label(correction: object) -> Label | None:
    """Return the label of a correction, in any of its forms."""
    if isinstance(correction, Mapping):
        labels = [correction[name] for name in _LABEL_KEYS if name in correction]
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


def label_of_correction(feedback: Feedback) -> Label | None:
    """Return the label to which people corrected a judge's feedback, if they did."""
    return _label(feedback.correction)


def person_of(feedback: Feedback) -> str:
    """Return who gave a feedback."""
    source = feedback.feedback_source
    name = getattr(source, "user_name", None) or getattr(source, "user_id", None)
    return str(name or "langsmith")
