"""Prompts of the judges that label one text by criteria, in our own words.

What all items share comes first (what is judged, by which labels and steps), then the
examples, then the item, so that a provider's prefix cache serves a whole run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from langchain_judges.asking.question import chat_prompt
from langchain_judges.methods.pairs import MATERIAL_RULE
from langchain_judges.methods.rubric.criteria import Criterion, Explain
from langchain_judges.verdict import Label

_RESPONSE = """{source}{expected}
<response-{fence}>
{response}
</response-{fence}>"""
_REQUEST = """<request-{fence}>
{task}
</request-{fence}>"""
_CASE = _REQUEST + _RESPONSE
_ALONE = "The response:" + _RESPONSE + "\n\n{ask}"

# Asks for the label of one response by one criterion. Returns `label_shape`.
EVALUATE = ChatPromptTemplate.from_messages(
    [
        (
            "system",
            f"You label how a response meets a criterion. {MATERIAL_RULE}"
            "{criteria}\n\nThe labels: {labels}.{steps}{instructions}",
        ),
        MessagesPlaceholder("examples"),
        ("human", _CASE + "\n\n{ask}"),
    ]
)

# One audited example as two turns, in the form of what is asked and answered.
EXAMPLE = ChatPromptTemplate.from_messages([("human", _CASE + "\n\n{ask}"), ("ai", "{reply}")])

# Asks for the label of a response beside its expected answer or source alone.
ANSWER = ChatPromptTemplate.from_messages(
    [
        EVALUATE.messages[0],
        MessagesPlaceholder("examples"),
        ("human", _ALONE),
    ]
)

# One audited example as two turns, without its request.
ANSWER_EXAMPLE = ChatPromptTemplate.from_messages([("human", _ALONE), ("ai", "{reply}")])

# Asks the same where each criterion has a call of its own: the criterion stands last, so that
# the calls share the item. Returns `label_shape`.
EACH = chat_prompt(
    f"You label how a response meets a criterion. {MATERIAL_RULE}",
    _CASE,
    "{steps}{instructions}{criteria}\n\nThe labels: {labels}.\n\n{ask}",
)

# Asks for the labels of one response by all criteria. Returns `labels_shape`.
CRITERIA = chat_prompt(
    "You label how a response meets several criteria, each on its own: a label by one says "
    f"nothing of the others. {MATERIAL_RULE}"
    "{criteria}{steps}{instructions}",
    _CASE,
    "\n\n{ask}",
)

# How a label is asked for; `{each}` of several criteria.
ASK: Mapping[Explain, str] = {
    "first": "Give your reason in one or two sentences, then the label{each}.",
    "none": "Give the label{each}.",
}

# The label of a text that cannot be assessed, where a judge may abstain.
CANNOT_ASSESS = "cannot_assess"
# Added to how a label is asked for, where a judge may abstain.
ABSTAIN = f" If what is shown does not suffice to tell, the label is {CANNOT_ASSESS}."

# Asks for the claims of the response, and of the expected answer where there is one. Returns
# `split_shape`.
SPLIT = chat_prompt(
    "You list the claims of {texts}. A claim states one fact that is true or false, and names "
    "what it is about, so that it can be understood alone; a bare answer claims to answer the "
    "request. List each claim once, in the order and language of its text, also one that "
    "you think is wrong; at most {most} of a text. Leave out questions, greetings and what a "
    f"text says of itself. A text that states nothing has no claims. {MATERIAL_RULE}"
    "{instructions}",
    _CASE,
    "\n\nList the claims of {texts}.",
)

# Asks for the label of every claim in one call. Returns `check_shape`.
CHECK = chat_prompt(
    "You check claims, each on its own, by the texts that are shown and not by what you know. "
    "{rules} " + MATERIAL_RULE + "{instructions}",
    """<request-{fence}>
{task}
</request-{fence}>{source}{expected}{response}
<claims-{fence}>
{claims}
</claims-{fence}>

Label every claim.""",
)

# Added where claims are looked up in the response.
RESPONSE = """
<response-{fence}>
{response}
</response-{fence}>"""
SUPPORTED = """Label a claim 1 if the {basis} states it or it follows from it, and 0 if the \
{basis} contradicts it or does not contain it, however likely it is."""
# How claims of the response are labelled.
AGREES = """Label a claim 1 if the expected answer or the request states it or it follows from \
them, as a step on the way to the expected answer does; and 0 if they contradict it or do not \
bear it out, however likely it is."""
# How claims of the expected answer are labelled.
COVERED = """Claims whose names begin with `expected` are of the expected answer: label such a \
claim 1 if the response says it, in whatever words, and 0 if it does not."""

# Put before remembered examples where several criteria are asked.
WHOLE = """

The corrections below are of responses as a whole: a label in them says nothing of any one \
criterion. Take from them what misled a judge, and not their labels."""

# Every prompt that asks for labels, by name.
PROMPTS = {"evaluate": EVALUATE, "example": EXAMPLE, "each": EACH, "criteria": CRITERIA}
# Every prompt of a judge by one criterion that may leave out the task.
ANSWER_PROMPTS = {
    **{"evaluate": EVALUATE, "example": EXAMPLE},
    **{"answer": ANSWER, "answer_example": ANSWER_EXAMPLE},
}
# Every prompt that asks claim by claim.
CLAIM_PROMPTS = {"split": SPLIT, "check": CHECK}

# The criterion, where it is asked alone.
ONE = "\n\nThe criterion: {criterion}"
# One of several criteria.
LISTED = "criterion_{number}, {name}{description}\nIts labels: {labels}."
# Added where examples are shown with their labels alone.
LABELLED = "The labels of the examples below are correct."
# Labels that are named one by one; of more, the ends.
_LISTED = 11
# The name of a criterion that has none of its own.
_UNNAMED = "rubric"


def label_words(criterion: Criterion) -> str:
    """The labels as a prompt names them, with what they mean.

    >>> label_words(Criterion(name="Tone", labels=["rude", "neutral", "polite"]))
    'rude, neutral or polite (from rude, the lowest, to polite, the highest)'
    """
    names = [str(label) for label in criterion.names]
    listed = " or ".join([", ".join(names[:-1]), names[-1]])
    if len(names) > _LISTED:
        listed = f"a whole number from {names[0]} to {names[-1]}"
    meanings = [f"{name}: {meaning}" for name, meaning in criterion.meanings.items()]
    if len(meanings) == len(names):
        return "; ".join(meanings)
    if meanings:
        return f"{listed} ({'; '.join(meanings)}{_between(names, criterion.meanings)})"
    if len(names) == 2 and not criterion.is_graded:
        return listed
    return f"{listed} (from {names[0]}, the lowest, to {names[-1]}, the highest)"


def _between(names: Sequence[str], meanings: Mapping[Label, str]) -> str:
    """Say what labels mean that have no meaning of their own, where both ends have one."""
    ends = {names[0], names[-1]} <= {str(name) for name in meanings}
    return "; the others lie between" if ends and len(meanings) < len(names) else ""


def criterion_words(criterion: Criterion) -> str:
    """The words on what is judged, where it is asked alone."""
    name, description = criterion.name, criterion.description
    if name.casefold() == _UNNAMED and description:
        return description
    return f"{name}: {description}" if description else name


def listed_criteria(criteria: Sequence[Criterion]) -> str:
    """Several criteria as one prompt lists them."""
    return "\n\n".join(
        LISTED.format(
            number=number,
            name=criterion.name,
            description=f": {criterion.description}" if criterion.description else "",
            labels=label_words(criterion),
        )
        for number, criterion in enumerate(criteria, 1)
    )


def numbered_steps(steps: Sequence[str], note: str) -> str:
    """The steps by which to judge, and a note on the examples that are shown."""
    lines = [f"{number}. {step}" for number, step in enumerate(steps, 1)]
    return "".join(f"\n\n{part}" for part in ("\n".join(lines), note) if part)
