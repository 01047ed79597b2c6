"""Proposals in an annotation queue of LangSmith, and the answers that people left there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args
from uuid import UUID, uuid5

from langchain_judges.methods.allure.audit.review import AuditAnswer, AuditProposal
from langchain_judges.rows.texts import judged, transcript

if TYPE_CHECKING:
    from langsmith import Client

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
    """Put proposals into an annotation queue, made if it is missing; return how many.

    Args:
        proposals: What an audit asks.
        queue: The name of the queue.
        client: A LangSmith client.
        project: The project for the runs that stand for the proposals.
    """
    session = client.create_project(project, upsert=True)
    existing = next(client.list_annotation_queues(name=queue, limit=1), None)
    place = existing or client.create_annotation_queue(name=queue, rubric_instructions=_RUBRIC)
    now = datetime.now(UTC)
    for proposal in proposals:
        inputs, outputs = _run_fields(proposal)
        client.create_run(
            f"audit:{proposal['id']}",
            inputs,
            "chain",
            project_name=project,
            id=run_of(proposal, queue),
            outputs=outputs,
            start_time=now,
            end_time=now,
        )
    client.flush()
    client.add_runs_to_annotation_queue(
        place.id,
        runs=[
            {"run_id": run_of(proposal, queue), "session_id": session.id, "start_time": now}
            for proposal in proposals
        ],
    )
    return len(proposals)


def read_queue(
    proposals: Sequence[AuditProposal], queue: str, client: Client
) -> list[dict[str, object]]:
    """Return the answers that people have given so far, as the audit takes them.

    Args:
        proposals: What was sent.
        queue: The name of the queue.
        client: A LangSmith client.
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
