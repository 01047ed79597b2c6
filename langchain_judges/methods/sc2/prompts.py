"""Prompts of SC², in our own words.

Method: Yan et al., "On What Basis? Predicting Text Preference Via Structured Comparative
Reasoning" (arXiv:2311.08390), sections 3 and 4 and appendix. Each can be replaced by a template
with the same variables (`create_sc2_judge(prompts={"table": …})`). Steps that see the texts
have the same system message and the texts first, each in a fence of its own: their calls share
that prefix, which a provider's cache then reads once. What a step asks comes behind it.
"""

from __future__ import annotations

from langchain_judges.asking.question import chat_prompt
from langchain_judges.methods.pairs import (
    CHOOSE,
    COMPARES,
    MATERIAL,
    MATERIAL_ALONE,
    MATERIAL_RULE,
)

_NEUTRAL = """neutral noun phrases, no two alike, the weightiest first: "final answer", not \
"correctness of the final answer"; "examples", not "better examples"."""

# Asks for aspects of one pair (section 4, online). Returns `Aspects`.
ASPECTS = chat_prompt(
    COMPARES,
    MATERIAL,
    """The two will be compared by the question: {question} Say in two sentences what the \
answer turns on, then name at most {n_aspects} aspects to compare them by, """,
    _NEUTRAL,
)

# Asks for the aspects of one text (section 4, offline). Returns `Extracted`.
EXTRACT = chat_prompt(
    "You name the aspects of a text by which it is compared with others of its kind. "
    + MATERIAL_RULE,
    """{context}<text-{fence}>
{text}
</text-{fence}>{instructions}

Texts of this kind are compared by the question: {question}
Name at most eight aspects of this text that matter for it, """,
    _NEUTRAL,
)

# Merges aspects of a corpus into exactly n (section 4, offline). Returns n phrases.
CONSOLIDATE = chat_prompt(
    "You sort aspects by which texts are compared. " + MATERIAL_RULE,
    """<aspects-{fence}>
{phrases}
</aspects-{fence}>{instructions}

These aspects were found in many texts, the most frequent first. Texts of this kind are \
compared by the question: {question}
Merge what means the same, leave out what has no bearing on the question, and give exactly {n} \
aspects that together cover what matters, """,
    _NEUTRAL,
)

# Asks for a whole table (section 3.1). Returns one row of three cells for each aspect.
TABLE = chat_prompt(
    COMPARES,
    MATERIAL_ALONE,
    """

Set them side by side in a table of these aspects, in this order:
{aspects}

Each cell holds short entries with semicolons between, or none. For example, of two recipes:
baking | both: in a hot oven | only 1: 40 minutes; 180 °C | only 2: an hour; no temperature
Entries say what a response says, or lacks though the request asks for it, not how good that \
is; no cell repeats another of its row.""",
)

# Asks which of two tables is more consistent (section 3.2). Returns `Decision`. It sees the
# tables alone; figure 19 is in `papers.yaml`, with demonstrations of ours: the paper's are
# not printed.
MATCH = chat_prompt(
    "You compare two tables. " + MATERIAL_RULE,
    """<table-1-{table_fence_1}>
{table_1}
</table-1-{table_fence_1}>
<table-2-{table_fence_2}>
{table_2}
</table-2-{table_fence_2}>

Both tables set the same two responses side by side: what both have in an aspect, what only \
response 1 has, what only response 2 has. The better table repeats itself less. A repeat is an \
entry that says, in the same or other words, what another cell of its own row says; a general \
entry with particulars beside it is no repeat. This table has three:
| aspect | both | only response 1 | only response 2 |
| --- | --- | --- | --- |
| rooms | clean; small | spotless; large windows | quiet at night |
| breakfast | gives the hours | from seven on | from eight on |
| staff | friendly | speak French | welcoming |
| parking | none | in front of the house | at the door |
They are spotless, welcoming and at the door: each says again what stands beside it.

Name the repeats of each table in one or two sentences, then the better one, 1 or 2: the table \
with fewer repeats; of equally many, the one that tells the responses apart better. An entry \
that would fit any response, such as answers the request, tells nothing.""",
)

# Asks for the preference (section 3.1, figures 6 to 18). Returns `Preferred`. Without a table
# this is direct prompting, for pairs of which no table could be made.
PREFERENCE = chat_prompt(
    COMPARES,
    "{examples}",
    MATERIAL,
    "{table}",
    CHOOSE,
    """

In one to three sentences say what decides, then give the preference: 1 or 2. There is no \
tie.""",
)

# Every prompt of the judge, by the name of its step.
PROMPTS = {"aspects": ASPECTS, "table": TABLE, "match": MATCH, "preference": PREFERENCE}

# The prompts of `learn_aspects`.
LEARN_PROMPTS = {"extract": EXTRACT, "consolidate": CONSOLIDATE}

# Added to PREFERENCE where there is a table, with what it is.
TABLE_MATERIAL = """<table-{table_fence}>
{table}
</table-{table_fence}>

{note}

"""

TABLE_NOTES = {
    "own": "The table sets the responses side by side. It may be wrong or incomplete: where "
    "the responses say otherwise, go by them.",
    "paper": "The table is an analysis of what the responses share and where they differ.",
}

# Added to EXTRACT where the text answers a request.
CONTEXT = """<request-{fence}>
{request}
</request-{fence}>
"""
