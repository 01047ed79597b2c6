"""Annotation queues of LangSmith: people label runs there, or answer what an audit asks.

The first closes the loop of production: `watch_project` queues doubtful runs, people label
them, and an audit with `auditor="labels"` teaches the judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from uuid import UUID, uuid5

from langsmith import Client

from langchain_judges.errors import InputError
from langchain_judges.integrations.cases import CaseReader, TextSources
from langchain_judges.integrations.langsmith_runs import (
    CORRECTED,
    is_of_people,
    label_of_correction,
    runs_by_id,
    runs_in_queue,
)
from langchain_judges.methods.allure.review import AuditAnswer, AuditProposal
from langchain_judges.methods.describe import unwrapped
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.rows.fields import TextSource
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import Label

if TYPE_CHECKING:
    from langsmith.schemas import Feedback, Run


class QueuedRuns(NamedTuple):
    """The runs of an annotation queue."""

    items: list[dict[str, object]]
    """Those that people labelled, as an audit takes them: `label`, `note`, `auditor`."""
    left_out: list[tuple[str, str]]
    """The ids of the others, and why each was left out."""


def labelled_runs(
    client: Client,
    queue: str,
    judge: Judge,
    *,
    key: str | None = None,
    context: TextSource = None,
) -> QueuedRuns:
    """Return the runs of an annotation queue that people labelled.

    A label is people's feedback on the run: the value, else the score; or their correction of
    a judge's feedback. A score from 0 to 1 stands for the label at that place between the worst
    and the best, as `watch_project` posts it.

    Args:
        client: LangSmith's client.
        queue: The name of the queue.
        judge: A judge of one text, which decides what is read of a run and what a label is.
        key: The name of the feedback; default the only one that people gave.
        context: Where the source is, as in `as_evaluator`.

    Raises:
        InputError: There is no such queue, or people gave feedback under several names.
    """
    runs = runs_in_queue(client, queue)
    ids = [str(run.id) for run in runs]
    answers = _by_people(client, ids, key)
    reader = CaseReader(judge, TextSources(None, None, None, context), None)
    options = getattr(unwrapped(judge), "options", None)
    labels = options.human_labels if isinstance(options, LabelOptions) else ()
    result = QueuedRuns([], [])
    for run in runs:
        try:
            result.items.append(_item(run, answers.get(str(run.id)), reader, labels))
        except InputError as exc:
            result.left_out.append((str(run.id), str(exc)))
    return result


def _by_people(client: Client, ids: list[str], key: str | None) -> dict[str, Feedback]:
    """Return the latest label of people by run."""
    if not ids:
        return {}
    every = client.list_feedback(run_ids=ids, feedback_key=[key] if key else None)
    own = [each for each in every if is_of_people(each)]
    if len(keys := sorted({each.key for each in own})) > 1:
        raise InputError(
            f"people gave feedback under several names: {', '.join(keys)}; say which of them "
            "is the label, by `key` or --column label=NAME"
        )
    return {str(each.run_id): each for each in sorted(own, key=lambda one: one.modified_at)}


def person_of(feedback: Feedback) -> str:
    """Return who gave a feedback."""
    source = feedback.feedback_source
    name = getattr(source, "user_name", None) or getattr(source, "user_id", None)
    return str(name or "langsmith")


def _item(
    run: Run, feedback: Feedback | None, reader: CaseReader, labels: Sequence[Label]
) -> dict[str, object]:
    if feedback is None:
        raise InputError("nobody has labelled it yet")
    item = {**reader.of_run(run), "label": _label(feedback, labels)}
    item["auditor"] = person_of(feedback)
    return {**item, "note": feedback.comment} if feedback.comment else item


def _is_score(correction: object) -> bool:
    """Return whether a correction gives a score alone, which is a place among the labels."""
    return isinstance(correction, Mapping) and {*CORRECTED} & correction.keys() == {"score"}


def _label(feedback: Feedback, labels: Sequence[Label]) -> Label:
    value: object = feedback.value
    given: object = feedback.score
    corrected = label_of_correction(feedback)
    if corrected is not None and _is_score(feedback.correction):
        value, given = None, corrected
    elif corrected is not None:
        value, given = corrected, None
    value = _number(value)
    if isinstance(value, str | int | float):
        return value
    if not isinstance(given, int | float):
        raise InputError(f"its feedback is no label: {value!r}")
    score = float(given)
    if not 0 <= score <= 1 or not labels:
        return _number(score)  # type: ignore[return-value]  # a number
    at_place = labels[round(score * (len(labels) - 1))]
    if score in labels and at_place != score:
        raise InputError(
            f"its score {score:g} may be a label or a place between the worst and the best; "
            "people have to give a value"
        )
    return at_place


PROJECT = "langchain-judges audits"
"""The project that holds one run for each proposal."""
KEYS = {"audit": "answer", "audit_label": "label", "audit_mode": "mode"}
"""The feedback keys that people fill in, and what they are in an answer."""

_SPACE = UUID("6f1c5a40-3f0e-5c0b-9a53-0d4e3f6f7a11")
_RUBRIC = (
    f"A judge labelled this response, and a check doubts the label. Fill in `audit` with one "
    f"of {', '.join(get_args(AuditAnswer))}; with `label` also `audit_label`, with `mode` also "
    "`audit_mode`. A comment on `audit` becomes the example's note."
)


def send_proposals(
    proposals: Sequence[AuditProposal], queue: str, client: Client, *, project: str = PROJECT
) -> int:
    """Put proposals into an annotation queue, made if it is missing; return how many are new.

    A proposal has the same run whenever it is sent: what a kill left without its place in the
    queue gets it the next time, and nothing stands there twice.

    Args:
        proposals: What an audit asks.
        queue: The name of the queue.
        client: LangSmith's client.
        project: The project for the runs that stand for the proposals.
    """
    session = client.create_project(project, upsert=True)
    existing = next(client.list_annotation_queues(name=queue, limit=1), None)
    place = existing or client.create_annotation_queue(name=queue, rubric_instructions=_RUBRIC)
    queued = client.list_runs_from_annotation_queue(place.id) if existing else ()
    known = {run.id for run in queued}
    new = {run_of(each, queue): each for each in proposals if run_of(each, queue) not in known}
    there = runs_by_id(client, session.id, list(map(str, new)))
    now = datetime.now(UTC)
    for id, proposal in new.items():
        if str(id) in there:
            continue
        inputs, outputs = _run_fields(proposal)
        client.create_run(
            f"audit:{proposal['id']}",
            inputs,
            "chain",
            project_name=project,
            id=id,
            outputs=outputs,
            start_time=now,
            end_time=now,
        )
    client.flush()
    begun = {id: there[str(id)].start_time if str(id) in there else now for id in new}
    keys: list[Any] = [
        {"run_id": id, "session_id": session.id, "start_time": start}
        for id, start in begun.items()
    ]
    if keys:
        client.add_runs_to_annotation_queue(place.id, runs=keys)
    return len(keys)


def read_answers_from(
    proposals: Sequence[AuditProposal], queue: str, client: Client
) -> list[dict[str, object]]:
    """Return the answers that people have given so far, as the audit takes them.

    Args:
        proposals: What was sent.
        queue: The name of the queue.
        client: LangSmith's client.
    """
    by_run = {run_of(proposal, queue): proposal["id"] for proposal in proposals}
    answers: dict[str, dict[str, object]] = {}
    feedback_list = client.list_feedback(run_ids=list(by_run), feedback_key=list(KEYS))
    for feedback in sorted(feedback_list, key=lambda each: each.modified_at):
        id = by_run.get(UUID(str(feedback.run_id)))
        value = feedback.value if feedback.value is not None else feedback.score
        if id is None or value is None:
            continue
        answer = answers.setdefault(id, {"id": id, "auditor": "langsmith"})
        answer[KEYS[feedback.key]] = _number(value)
        if feedback.key == "audit" and feedback.comment:
            answer["note"] = feedback.comment
    return [answer for answer in answers.values() if "answer" in answer]


def run_of(proposal: AuditProposal, queue: str) -> UUID:
    """Return the id of the run that stands for a proposal in a queue."""
    parts = [queue, proposal["id"], proposal["round"], proposal["label"], proposal["proposed"]]
    return uuid5(_SPACE, "\x00".join(map(str, parts)))


def _run_fields(proposal: AuditProposal) -> tuple[dict[str, object], dict[str, object]]:
    item = proposal["item"]
    inputs: dict[str, object] = {
        "task": transcript(item["input"]),
        "expected": item.get("expected"),
    }
    if item.get("source"):
        inputs["source"] = item["source"]
    names = ("label", "score", "rationale", "proposed", "why", "check", "mode")
    fields: Mapping[str, object] = proposal
    response = judged(item["output"])
    return inputs, {"response": response, **{name: fields[name] for name in names}}


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
