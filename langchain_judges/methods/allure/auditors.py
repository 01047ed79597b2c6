"""Who answers proposals: a person, through an interrupt; a function; or a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args
from uuid import UUID, uuid5

from langchain_core.language_models import BaseChatModel
from langgraph.types import interrupt
from pydantic import BaseModel, create_model

from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.question import Question
from langchain_judges.asking.steps import Steps, Wait, together
from langchain_judges.asking.store import ThreadReplies, key_of
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.allure import prompts as texts
from langchain_judges.methods.allure.modes import Mode
from langchain_judges.methods.allure.review import (
    AuditAnswer,
    AuditDecision,
    AuditProposal,
    AuditRequest,
    read_answers,
)
from langchain_judges.methods.context import prompt_set
from langchain_judges.methods.describe import unwrapped
from langchain_judges.methods.items import material
from langchain_judges.methods.options import GraphOptions
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.methods.rubric.prompts import criterion_words, label_words
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Label, Usage

if TYPE_CHECKING:
    from langsmith import Client

Auditor = str | BaseChatModel | Callable[[AuditProposal], Any]
"""`"human"`, a model, or a function from a proposal to an answer."""

Audited = tuple[list[AuditDecision], list[Usage]]
"""Decisions, and what they cost."""
Audit = Callable[[Sequence[AuditProposal]], Steps[Audited]]
"""Decides proposals."""

_AT_A_TIME = 8
"""Proposals that a model audits at the same time."""

Standard = Callable[[Mapping[str, Any]], str]
"""Says by what the audited judge labels an item; empty where that is not known."""


def standard_of(judge: object) -> Standard:
    """Return what says by what a judge labels."""
    options = getattr(unwrapped(judge), "options", None)
    if not isinstance(options, LabelOptions):
        return lambda _: ""

    def standard(item: Mapping[str, Any]) -> str:
        criteria = options.rubric_of(item).criteria
        if len(criteria) != 1:
            return ""
        criterion = criterion_words(criteria[0])
        return texts.STANDARD.format(criterion=criterion, labels=label_words(criteria[0]))

    return standard


def resolve_auditor(
    auditor: Auditor,
    options: GraphOptions,
    *,
    labels: Sequence[Label],
    modes: Sequence[Mode],
    paid: ThreadReplies,
    standard: Standard = lambda _: "",
) -> Audit:
    """Return who decides.

    Args:
        auditor: `"human"`, a model, or a function.
        options: Hold a replacement for the prompt of a model, and how it is asked again.
        labels: What a label may be.
        modes: The failure modes there are.
        paid: Holds what a model has answered.
        standard: Tells a model by what the judge labels.

    Raises:
        OptionError: It is nobody.
        ModelSetupError: The model cannot be made.
    """
    if auditor == "human":
        return partial(_by_people, labels=labels, modes=modes)
    if isinstance(auditor, BaseChatModel) or (isinstance(auditor, str) and auditor.strip()):
        return _by_model(_question(auditor, modes, options), labels, modes, paid, standard)
    if callable(auditor):
        return partial(_by_function, function=auditor, labels=labels)
    raise OptionError(f"`auditor` must be 'human', a function or a chat model, got {auditor!r}")


def _by_people(
    proposals: Sequence[AuditProposal], labels: Sequence[Label], modes: Sequence[Mode]
) -> Steps[Audited]:
    """Interrupt the graph with all proposals, until each of them has an answer.

    Answers may come in several parts; what is missing or cannot be read is asked again,
    with the problems beside it.
    """
    yield from ()
    open_proposals = list(proposals)
    decisions: list[AuditDecision] = []
    problems: list[str] = []
    while open_proposals:
        request: AuditRequest = {
            "round": open_proposals[0]["round"],
            "proposals": open_proposals,
            "labels": list(labels),
            "modes": [{"name": mode.name, "description": mode.description} for mode in modes],
            "problems": problems,
        }
        reply = interrupt(request)
        try:
            new, problems = read_answers(reply, open_proposals, labels, "human")
        except InputError as exc:
            new, problems = [], [str(exc)]
        decisions += new
        ids = {decision["id"] for decision in decisions}
        open_proposals = [each for each in open_proposals if each["id"] not in ids]
    return decisions, []


def _by_function(
    proposals: Sequence[AuditProposal],
    function: Callable[[AuditProposal], object],
    labels: Sequence[Label],
) -> Steps[Audited]:
    """Ask a function about each proposal."""
    name = getattr(function, "__name__", type(function).__name__)

    async def later(proposal: AuditProposal) -> object:
        answer = function(proposal)
        return await answer if inspect.isawaitable(answer) else answer

    answers: dict[str, object] = {}
    for proposal in proposals:
        answers[proposal["id"]] = yield Wait(
            partial(function, proposal), partial(later, proposal)
        )
    decisions, problems = read_answers(answers, proposals, labels, name)
    if problems:
        raise InputError(f"the auditor {name}: {problems[0]}")
    return decisions, []


def _question(
    model: str | BaseChatModel, modes: Sequence[Mode], options: GraphOptions
) -> Question:
    """Return what a model is asked of each proposal."""
    prompts, version = prompt_set({"audit": texts.AUDIT}, options.prompts)
    return Question(
        method="allure",
        step="audit",
        adapter=ModelAdapter(model),
        prompt=prompts["audit"],
        shape=audited_shape(tuple(mode.name for mode in modes)),
        version=version,
        repairs=options.repairs,
    )


def _by_model(
    question: Question,
    labels: Sequence[Label],
    modes: Sequence[Mode],
    paid: ThreadReplies,
    standard: Standard,
) -> Audit:
    name = str(question.adapter.identity["name"])

    def answer(proposal: AuditProposal) -> Steps[tuple[dict[str, object], Usage]]:
        variables = _variables(proposal, modes, standard(proposal["item"]))
        reply = yield from ask(question, variables, unit=str(proposal["id"]))
        if reply.data is None:
            why = reply.failures[0]["reason"]
            return {"answer": "reject", "note": f"not audited: {why}"}, reply.usage
        mode = reply.data["mode"]
        fields = {"answer": reply.data["answer"], "note": reply.data["reason"]}
        return {**fields, "mode": None if mode == "none" else mode}, reply.usage

    def audit(proposals: Sequence[AuditProposal]) -> Steps[Audited]:
        answers: dict[str, dict[str, object]] = {}
        usages: list[Usage] = []
        for start in range(0, len(proposals), _AT_A_TIME):
            some = proposals[start : start + _AT_A_TIME]
            keys = [key_of("audit", question.version, name, each) for each in some]
            calls = [partial(answer, each) for each in some]
            replies = yield from together(list(map(paid.once, keys, calls)))
            for proposal, (fields, usage) in zip(some, replies, strict=True):
                answers[proposal["id"]] = fields
                usages.append(usage)
        decisions, _ = read_answers(answers, proposals, labels, name)
        return decisions, usages

    return audit


def _variables(
    proposal: AuditProposal, modes: Sequence[Mode], standard: str
) -> Mapping[str, object]:
    rationale = proposal["rationale"]
    parts = material(proposal["item"], also=[rationale])
    reason = texts.REASON.format(fence=parts["fence"], rationale=rationale)
    return {
        **parts,
        "standard": standard,
        "reason": reason if rationale.strip() else "",
        "label": proposal["label"],
        "proposed": proposal["proposed"],
        "why": proposal["why"],
        "modes": "\n".join(f"- {mode.name}: {mode.description}" for mode in modes),
    }


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


def audited_shape(modes: tuple[str, ...]) -> type[BaseModel]:
    """Return the shape of a model's audit of one proposal."""
    names = (*modes, "none")
    fields: dict[str, Any] = {
        "reason": (str, ...),
        "answer": (Literal["accept", "reject", "check_wrong"], ...),
        "mode": (Literal[names], ...),
    }
    return create_model("Audited", **fields)
