"""Proposals and what auditors answer to them: the words of the audit, checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, cast, get_args

from typing_extensions import TypedDict

from langchain_judges.errors import InputError, OptionError
from langchain_judges.memory.example import MEANINGS
from langchain_judges.rows.checks import expected_answers
from langchain_judges.rows.texts import judged, with_source
from langchain_judges.verdict import Item, Label

# What an auditor answers: the proposed label is right; nothing to learn here; the judge was
# wrong, with a label of the auditor's own; with a failure mode of the auditor's own; the judge
# was right, so the check was wrong.
AuditAnswer = Literal["accept", "reject", "label", "mode", "check_wrong"]


class AuditItem(Item):
    """An item of an audit, which has an id by then, and may have its true label.

    Attributes:
        label: The true label.
        note: Why it is right, by the person who gave it.
        auditor: Who gave it.
    """

    label: NotRequired[Label]
    note: NotRequired[str]
    auditor: NotRequired[str]


class AuditProposal(TypedDict):
    """A label that a check doubts, or one drawn among the others, for an auditor to decide.

    Attributes:
        id: The item's id.
        item: The item, with what people know of it.
        label: What the judge said.
        rationale: The judge's reason.
        proposed: What the check would say; the judge's own label where no rule doubts it.
    """

    id: str
    round: int
    item: AuditItem
    label: Label
    score: float | None
    rationale: str
    proposed: Label
    why: str
    check: str


class AuditRequest(TypedDict):
    """The request of an interrupted audit to people.

    Attributes:
        proposals: Those without an answer.
        modes: Names and descriptions of the failure modes.
        problems: Why answers given before could not be taken.
    """

    round: int
    proposals: list[AuditProposal]
    labels: list[Label]
    modes: list[dict[str, str]]
    problems: list[str]


class AuditDecision(TypedDict):
    """An auditor's answer to a proposal, resolved.

    Attributes:
        wrong: What the judge said.
        label: The audited label; None where the proposal was rejected.
    """

    id: str
    round: int
    answer: AuditAnswer
    wrong: Label
    label: Label | None
    mode: str | None
    note: str
    auditor: str
    check: str


class AuditedExample(TypedDict):
    """The example that a decision makes of a proposal, as a memory takes it."""

    family: str | None
    input: str
    output: str
    expected: str | list[str] | None
    wrong: Label
    corrected: Label | None
    mode: str | None
    mode_meaning: str | None
    source: str
    group: str | None
    round: int
    auditor: str
    note: str


def read_modes(modes: Sequence[str] | None) -> dict[str, str]:
    """What failure modes mean, by name: a caller's, then the paper's five.

    Args:
        modes: Each as `"name: description"`; an own one replaces its namesake.

    Raises:
        OptionError: They are no list of texts, or a mode has no name.
    """
    if modes is not None and not isinstance(modes, list | tuple):
        raise OptionError(f"`modes` must be a list of failure modes, got {modes!r}")
    parts = [str(each).partition(":") for each in modes or ()]
    own = {name.strip(): description.strip() for name, _, description in parts}
    if not all(own):
        raise OptionError("a failure mode needs a name: 'name: description'")
    return {**own, **{name: text for name, text in MEANINGS.items() if name not in own}}


def read_answers(
    answers: object,
    proposals: Sequence[AuditProposal],
    labels: Sequence[Label],
    auditor: str,
) -> tuple[list[AuditDecision], list[str]]:
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
    decisions: dict[str, AuditDecision] = {}
    problems: list[str] = []
    for id, answer in answers.items():
        if id not in by_id:
            problems.append(f"{id!r} is none of the proposals")
            continue
        try:
            decisions[id] = resolve(by_id[id], answer, labels, auditor)
        except InputError as exc:
            problems.append(f"{id}: {exc}")
    return list(decisions.values()), problems


def resolve(
    proposal: AuditProposal, reply: object, labels: Sequence[Label], auditor: str
) -> AuditDecision:
    """The decision that an answer to a proposal amounts to.

    An auditor who gives the judge's own label says that a check that doubts it was wrong.

    Raises:
        InputError: The answer or its label is none of those allowed.
    """
    fields: Mapping[str, object] = reply if isinstance(reply, Mapping) else {"answer": reply}
    answer = _answer(fields.get("answer"))
    label = _label(fields, answer, proposal, labels)
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


def _answer(value: object) -> AuditAnswer:
    if value in get_args(AuditAnswer):
        return cast("AuditAnswer", value)
    raise InputError(f"`answer` must be one of {get_args(AuditAnswer)!r}, got {value!r}")


def _label(
    fields: Mapping[str, object],
    answer: AuditAnswer,
    proposal: AuditProposal,
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


def example_of(
    proposal: AuditProposal, decision: AuditDecision, meanings: Mapping[str, str]
) -> AuditedExample:
    """The example that a decision makes of a proposal, as a memory keeps it.

    Args:
        proposal: What was audited.
        decision: What the auditor decided.
        meanings: What the failure modes of the audit mean, by name.
    """
    item = proposal["item"]
    answers = expected_answers(item)
    return {
        "family": item.get("family"),
        "input": with_source(item["input"], item.get("source")),
        "output": judged(item["output"]),
        "expected": answers[0] if len(answers) == 1 else answers or None,
        "wrong": decision["wrong"],
        "corrected": decision["label"],
        "mode": decision["mode"],
        "mode_meaning": meanings.get(decision["mode"] or "") or None,
        "source": proposal["id"],
        "group": item.get("group"),
        "round": decision["round"],
        "auditor": decision["auditor"],
        "note": decision["note"],
    }


def right_beside(mistakes: int, share: float) -> int:
    """The most right cases beside some mistakes that are no larger share of all."""
    # Three mistakes at a share of a tenth are .33 right cases; nine are one, not .9999.
    return int(mistakes * share / (1 - share) + 1e-9)


def drawn_beside(
    mistakes: Sequence[AuditProposal],
    candidates: Sequence[AuditProposal],
    share: float,
    seed: int,
) -> list[AuditProposal]:
    """Undoubted labels to audit beside doubted ones.

    Those of a family and label that the judge is doubted on come first: beside "a judge said 1,
    right is 0" they show where 1 is right. The rest is chance.
    """
    kinds = {(each["item"].get("family"), each["label"]) for each in mistakes}
    families = {family for family, _ in kinds}

    def rank(candidate: AuditProposal) -> tuple[bool, bool, bytes]:
        family = candidate["item"].get("family")
        lot = hashlib.sha256(f"{seed}|{candidate['id']}".encode()).digest()
        return (family, candidate["label"]) not in kinds, family not in families, lot

    return sorted(candidates, key=rank)[: right_beside(len(mistakes), share)]


def learnt_from(
    decisions: Mapping[str, AuditDecision], share: float
) -> tuple[list[str], list[str]]:
    """The ids of audited mistakes, and of right cases that are learnt with them.

    Labels that the auditor upheld against the check come first: no others are as near to a
    mistake, and they cost no decision more.
    """
    lessons = {id: each for id, each in decisions.items() if each["answer"] != "reject"}
    mistakes = [id for id, each in lessons.items() if each["label"] != each["wrong"]]
    false_alarms = [id for id, each in lessons.items() if each["answer"] == "check_wrong"]
    sample = [id for id in lessons if id not in {*mistakes, *false_alarms}]
    return mistakes, [*false_alarms, *sample][: right_beside(len(mistakes), share)]
