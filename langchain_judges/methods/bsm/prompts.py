"""Prompts of Branch-Solve-Merge, in our own words.

Method: Saha et al., "Branch-Solve-Merge Improves Large Language Model Evaluation and
Generation", NAACL 2024, section 3. Each can be replaced by a template with the same
variables (`create_bsm_judge(prompts={"solve": …})`).

All solve calls of one order share everything but the criterion, which stands last: a
provider's prefix cache then serves them. Each text has a fence of its own, so that the request
looks the same in each.
"""

from __future__ import annotations

from langchain_judges.asking.question import chat_prompt
from langchain_judges.methods.pairs import (
    BY_ITSELF,
    MATERIAL_ALONE,
    MATERIAL_RULE,
    PLAN_CRITERIA,
    REQUEST,
)

# Asks for the plan of criteria (section 3.2, branch). Returns `Plan`.
BRANCH = chat_prompt(
    f"You plan how responses to a request will be scored. {MATERIAL_RULE}",
    REQUEST,
    "{focus}{instructions}\n\n",
    f"{PLAN_CRITERIA} In asks_right say whether a criterion asks what is right or true.",
)

# Asks for both scores on one criterion (section 3.2, solve). Returns `Scores`.
SOLVE = chat_prompt(
    f"You score two responses to the same request on one criterion. {MATERIAL_RULE}",
    MATERIAL_ALONE,
    """{focus}{instructions}

Score both responses on the criterion below and on nothing else, from {low} to {high}. \
{anchors} """,
    BY_ITSELF,
    """ {reply}

The criterion: {criterion}""",
)

# Asks for a verdict from all findings of one order (section 3.1, merge by a model). The paper
# prints no prompt for it; this is our reading. Returns `Choice`.
MERGE = chat_prompt(
    f"You decide from findings which of two responses to a request is better. {MATERIAL_RULE}",
    REQUEST,
    """
<findings-{fence_findings}>
{findings}
</findings-{fence_findings}>{focus}{instructions}

Each finding scores both responses on one criterion, from {low} (worst) to {high} (best). \
Weigh the criteria by how much each matters for this request; being right outweighs the rest. \
Go by the findings alone: you do not see the responses.

Give your reasons in one or two sentences, then the preference: 1 or 2, or tie if no \
difference matters.""",
)

# Asks for an answer to judge by (section 4, reference-based). Returns `Answer`.
REFERENCE = chat_prompt(
    "You respond to requests. Your response is the reference that others are held against.",
    REQUEST,
    "{focus}\n\nWork it out with care, then give the response that an expert would give.",
)

# Every prompt of the judge, by the name of its step.
PROMPTS = {"branch": BRANCH, "solve": SOLVE, "merge": MERGE, "reference": REFERENCE}

# Added to REFERENCE where the request has several turns.
ANSWER_FOCUS = "\n\nRespond to the last turn only; the earlier ones are context."

# Put behind what says which turn is judged, where there were some (section 4).
NOT_SHOWN = " The responses to the earlier turns are not shown."

# Added behind remembered examples where criteria are planned.
LESSONS = "\nPlan so that the corrected verdicts would have come out, where they bear on this."

EXPLAINED = "Score response 1, then response 2, then explain in one or two sentences."
# How a solve call replies.
EXPLAINED_FIRST = "Explain in one or two sentences, then score response 1, then response 2."

# Put behind a criterion of the caller's that is a name alone.
UNDESCRIBED = "as far as the request calls for it"
