"""Who answers proposals: people, now or by their labels; a function; or a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langgraph.types import interrupt
from pydantic import BaseModel

from langchain_judges.asking import adapter, effects, models, own_prompts, reading, reply_log
from langchain_judges.asking.ask import ask
from langchain_judges.asking.question import Account, Question, run_of
from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.example import MEANINGS
from langchain_judges.methods import describe, items
from langchain_judges.methods.allure import label_checks
from langchain_judges.methods.allure import state as states
from langchain_judges.methods.declaration import name_and_text, with_name
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.methods.rubric.prompts import criterion_words, label_words
from langchain_judges.verdict import Label, Usage

# Decisions, and what they cost.
Decided = tuple[list[states.AuditDecision], list[Usage]]
# Decides proposals.
Audit = Callable[[Sequence[states.AuditProposal]], effects.Step[Decided]]

# Proposals that a model audits at the same time.
_AT_A_TIME = 8

# Says by what the audited judge labels an item; empty where that is not known.
Standard = Callable[[Mapping[str, Any]], str]


def standard_of(judge: object) -> Standard:
    """The standard that a judge labels by, item by item."""
    options = getattr(describe.unwrapped(judge), "options", None)
    if not isinstance(options, LabelOptions):
        return lambda _: ""

    def standard(item: Mapping[str, Any]) -> str:
        criteria = options.rubric_of(item).criteria
        if len(criteria) != 1:
            return ""
        criterion, labels = criterion_words(criteria[0]), label_words(criteria[0])
        return str(states.WORDS["standard"]).format(criterion=criterion, labels=labels)

    return standard


def resolve_auditor(
    options: states.AuditOptions,
    labels: Sequence[Label],
    modes: Mapping[str, str],
    paid: reply_log.ReplyLog,
    standard: Standard,
) -> Audit:
    """Who decides.

    Args:
        options: Hold the `auditor`, `"human"`, `"labels"`, a model or a function; a replacement
            for the prompt of a model, and how it is asked again.
        labels: What a label may be.
        modes: What the failure modes mean, by name.
        paid: Holds what a model has answered.
        standard: Tells a model by what the judge labels.

    Raises:
        OptionError: It is none of these.
        ModelSetupError: The model cannot be made.
    """
    auditor = models.plain_model(options.auditor)
    if auditor == "human":
        return partial(_people_in_common, labels=labels, modes=modes)
    if auditor == "labels":
        function = partial(by_label, labels=labels)
        return partial(_by_function, function=function, labels=labels, name="labels")
    if isinstance(auditor, BaseChatModel) or (isinstance(auditor, str) and auditor.strip()):
        return _by_model(auditor, options, labels, modes, paid, standard)
    if callable(auditor):
        name = getattr(auditor, "__name__", type(auditor).__name__)
        return partial(_by_function, function=auditor, labels=labels, name=name)
    raise OptionError(states.WORDS["no_auditor"].format(auditor))


async def _people_in_common(
    proposals: Sequence[states.AuditProposal], labels: Sequence[Label], modes: Mapping[str, str]
) -> Decided:
    """Interrupt the graph with all proposals, until each of them has an answer.

    Answers may come in several parts; what is missing or cannot be read is asked again,
    with the problems beside it.
    """
    open_proposals = list(proposals)
    decisions: list[states.AuditDecision] = []
    problems: list[str] = []
    while open_proposals:
        request: states.AuditRequest = {
            "round": open_proposals[0]["round"],
            "proposals": open_proposals,
            "labels": list(labels),
            "modes": [{"name": name, "description": text} for name, text in modes.items()],
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


async def _by_function(
    proposals: Sequence[states.AuditProposal],
    function: Callable[[states.AuditProposal], object],
    labels: Sequence[Label],
    name: str,
) -> Decided:
    """Ask a function about each proposal."""

    async def later(proposal: states.AuditProposal) -> object:
        answer = function(proposal)
        return await answer if inspect.isawaitable(answer) else answer

    answers: dict[str, object] = {}
    for each in proposals:
        answers[each["id"]] = await effects.Effect(partial(function, each), partial(later, each))
    decisions, problems = read_answers(answers, proposals, labels, name)
    if problems:
        raise InputError(f"the auditor {name}: {problems[0]}")
    return decisions, []


def by_label(proposal: states.AuditProposal, labels: Sequence[Label]) -> dict[str, object]:
    """Answer a proposal by the label that people gave the item, with their reason."""
    item = proposal["item"]
    if item.get("label") is None:
        return {"answer": "reject", "note": "nobody has labelled it"}
    fields = {name: item[name] for name in ("note", "auditor") if item.get(name)}
    label = label_checks.nearest(item["label"], labels, proposal["label"])
    return {"answer": "label", "label": label, **fields}


def _by_model(
    model: models.ModelLike,
    options: states.AuditOptions,
    labels: Sequence[Label],
    modes: Mapping[str, str],
    paid: reply_log.ReplyLog,
    standard: Standard,
) -> Audit:
    """Ask a model about each proposal."""
    prompts, version = own_prompts.prompt_set(options.templates, options.prompts)
    question = Question(
        method="allure",
        step="audit",
        adapter=adapter.ModelAdapter(model),
        prompt=prompts["audit"],
        reply_schema=audited_shape(tuple(modes)),
        version=version,
        repairs=options.repairs,
    )
    name = str(question.adapter.identity["name"])

    async def answer(proposal: states.AuditProposal) -> tuple[dict[str, object], Usage]:
        variables = _variables(proposal, modes, standard(proposal["item"]))
        account = Account(run=run_of(effects.running_config()))
        reply = await ask(question, variables, account, unit=str(proposal["id"]))
        if reply.data is None:
            why = reply.failures[0]["reason"]
            return {"answer": "reject", "note": f"not audited: {why}"}, reply.usage
        mode = reply.data["mode"]
        fields = {"answer": reply.data["answer"], "note": reply.data["reason"]}
        return {**fields, "mode": None if mode == "none" else mode}, reply.usage

    async def audit(proposals: Sequence[states.AuditProposal]) -> Decided:
        answers: dict[str, dict[str, object]] = {}
        usages: list[Usage] = []
        for start in range(0, len(proposals), _AT_A_TIME):
            some = proposals[start : start + _AT_A_TIME]
            keys = [reply_log.key_of("audit", question.version, name, each) for each in some]
            calls = [partial(answer, each) for each in some]
            replies = await effects.gather(list(map(paid.once, keys, calls)), options.branches())
            for proposal, (fields, usage) in zip(some, replies, strict=True):
                answers[proposal["id"]] = fields
                usages.append(usage)
        decisions, _ = read_answers(answers, proposals, labels, name)
        return decisions, usages

    return audit


def _variables(
    proposal: states.AuditProposal, modes: Mapping[str, str], standard: str
) -> Mapping[str, object]:
    rationale = proposal["rationale"]
    parts = items.prompt_variables(proposal["item"], also=[rationale])
    reason = states.WORDS["reason"].format(fence=parts["fence"], rationale=rationale)
    return {
        **parts,
        "standard": standard,
        "reason": reason if rationale.strip() else "",
        "label": proposal["label"],
        "proposed": proposal["proposed"],
        "why": proposal["why"],
        "modes": "\n".join(f"- {with_name(name, text)}" for name, text in modes.items()),
    }


def audited_shape(modes: tuple[str, ...]) -> type[BaseModel]:
    """The shape of a model's audit of one proposal."""
    answer, names = Literal["accept", "reject", "check_wrong"], (*modes, "none")
    return reading.shape_of("Audited", {"reason": str, "answer": answer, "mode": Literal[names]})


def read_modes(modes: Sequence[str] | None) -> dict[str, str]:
    """Meaning of each failure mode by name: the caller's, then the paper's five.

    Args:
        modes: Each as `"name: description"`; yours replaces one of the same name.

    Raises:
        OptionError: A mode has no name.
    """
    parts = [name_and_text(str(each)) for each in modes or ()]
    own = {name: description or "" for name, description in parts}
    if not all(own):
        raise OptionError("a failure mode needs a name: 'name: description'")
    return {**own, **{name: text for name, text in MEANINGS.items() if name not in own}}


def read_answers(
    answers: object,
    proposals: Sequence[states.AuditProposal],
    labels: Sequence[Label],
    auditor: str,
) -> tuple[list[states.AuditDecision], list[str]]:
    """The decisions that some answers amount to, and what is wrong with the rest.

    Args:
        answers: By the id of a proposal `{"answer", "label"?, "mode"?, "note"?, "auditor"?}`,
            or the name of the answer alone.
        proposals: What was asked; an answer to anything else is a problem.
        labels: What a label may be.
        auditor: Who answered, where an answer does not say.
    """
    if not isinstance(answers, Mapping):
        raise InputError(f"answers are a mapping by the id of a proposal, got {answers!r}")
    by_id = {proposal["id"]: proposal for proposal in proposals}
    decisions: dict[str, states.AuditDecision] = {}
    problems: list[str] = []
    for id, answer in answers.items():
        if id not in by_id:
            problems.append(f"{id!r} is not one of the proposals")
            continue
        try:
            decisions[id] = resolve(by_id[id], answer, labels, auditor)
        except InputError as exc:
            problems.append(f"{id}: {exc}")
    return list(decisions.values()), problems


def resolve(
    proposal: states.AuditProposal, reply: object, labels: Sequence[Label], auditor: str
) -> states.AuditDecision:
    """The decision that an answer to a proposal amounts to.

    An auditor who gives the judge's own label says that a check that doubts it was wrong.

    Raises:
        InputError: The answer or its label is not allowed.
    """
    fields: Mapping[str, object] = reply if isinstance(reply, Mapping) else {"answer": reply}
    answer: Any = fields.get("answer")
    if answer not in (known := get_args(states.AuditAnswer)):
        raise InputError(f"`answer` must be one of {known!r}, got {answer!r}")
    label = _corrected_label(fields, answer, proposal, labels)
    mode = str(fields.get("mode") or "").strip() or None
    if label == proposal["label"]:
        # Where no rule doubts the label, the auditor says the same as both.
        answer = "check_wrong" if proposal["proposed"] != label else "accept"
    return {
        "id": proposal["id"],
        "round": proposal["round"],
        "answer": answer,
        "wrong": proposal["label"],
        "label": label,
        "mode": mode if label not in {None, proposal["label"]} else None,
        "note": str(fields.get("note") or ""),
        "auditor": str(fields.get("auditor") or auditor),
        "check": proposal["check"],
    }


def _corrected_label(
    fields: Mapping[str, object],
    answer: states.AuditAnswer,
    proposal: states.AuditProposal,
    labels: Sequence[Label],
) -> Label | None:
    if answer == "reject":
        return None
    if answer == "check_wrong":
        return proposal["label"]
    choice = fields.get("label")
    if choice is None:
        if answer == "label":
            raise InputError("`answer` 'label' needs the `label`")
        return proposal["proposed"]
    by_name = {str(label).casefold(): label for label in labels}
    if str(choice).casefold() not in by_name:
        raise InputError(f"`label` must be one of {list(labels)!r}, got {choice!r}")
    return by_name[str(choice).casefold()]
