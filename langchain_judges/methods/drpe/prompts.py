"""Prompts of DRPE, in our own words.

Method: Wu et al., "Large Language Models are Diverse Role-Players for Summarization
Evaluation", NLPCC 2023 (arXiv:2303.15078), sections 3.1 and 3.2. The papers print none of
them; the content follows their description and the public re-implementation's. Each can be
replaced by a template with the same variables. All begin with the same system message and the
text, so that a provider's cache reads both once; what a step asks comes last.
"""

from __future__ import annotations

from langchain_judges.asking.question import chat_prompt
from langchain_judges.methods.pairs import FAIR, MATERIAL_RULE, RESPONSES

_SYSTEM = "You speak for different people who judge the same texts. " + MATERIAL_RULE
_TEXT = """<text-{fence_text}>
{text}
</text-{fence_text}>"""
_GENERAL = "kinds of people, by occupation or interest, who would commonly read {sought}"
_FAMILIAR = """from experts or people directly involved to complete beginners in its subject"""
_READERS = """ Give each a type of one to three words and one sentence on the qualities that \
such a person looks for in it.{wanted}"""

# Added where nobody says what the judged texts are.
WANTED = """ In wanted say what the text wants: summary, if it wants a text that it gives \
summed up; else response."""

# Asks for readers by occupation (section 3.1, coarse). Returns `Readers`.
COARSE = chat_prompt(_SYSTEM, _TEXT, "\n\nName {pool} ", _GENERAL, ", no two alike.", _READERS)

# Asks for readers by their familiarity (section 3.1, fine). Returns `Readers`.
FINE = chat_prompt(
    _SYSTEM,
    _TEXT,
    "\n\nName {pool} kinds of people who may read {sought}, ",
    _FAMILIAR,
    ", no two alike.",
    _READERS,
)

# Asks for both kinds in one call (arXiv v1: two calls a case). Returns `BothReaders`.
MERGED = chat_prompt(
    _SYSTEM,
    _TEXT,
    "\n\nFirst name {pool} ",
    _GENERAL,
    ", then {pool} who may read it, ",
    _FAMILIAR,
    "; no two alike.",
    _READERS,
)

_MATERIAL = f"{_TEXT}{RESPONSES}{{focus}}{{instructions}}\n\n{{about}} {{everyone}}\n\n"

# Asks every role at once (section 3.2, batch prompting). Returns one `RoleVote` for each.
VOTE = chat_prompt(
    _SYSTEM,
    _MATERIAL,
    """The judges are:
{roles}

{question} Give for each judge in turn one sentence of reason from their own point of view, \
then their vote for response 1 or 2. None may abstain. """
    + FAIR,
)

# Asks one role by itself (the ablation without batch). Returns one `RoleVote`.
VOTE_ALONE = chat_prompt(
    f"You judge texts as one particular person of a panel. {MATERIAL_RULE}",
    _MATERIAL,
    """You are:
{roles}

{question} Give one sentence of reason from your own point of view, then your vote for \
response 1 or 2. You may not abstain. """
    + FAIR,
)

# Every prompt of the judge, by its name.
PROMPTS = {
    "coarse": COARSE,
    "fine": FINE,
    "merged": MERGED,
    "vote": VOTE,
    "vote_alone": VOTE_ALONE,
}
