"""The prompt of ALLURE's audit by a model, in our own words.

Method: Hasanbeig et al., "ALLURE: Auditing and Improving LLM-based Evaluation of Text using
Iterative In-Context-Learning", 2023. The judge's own prompts are those of `methods/rubric`.
"""

from __future__ import annotations

from langchain_judges.asking.question import chat_prompt
from langchain_judges.methods.pairs import MATERIAL_RULE

# Asks a model to audit one proposal, where no person does. Returns `Audited`.
AUDIT = chat_prompt(
    "You audit the labels of a judge of responses. A rule suggests a label too; the rule is "
    f"weak and often mistaken itself. {MATERIAL_RULE}{{standard}}",
    """<task-{fence}>
{task}
</task-{fence}>{source}{expected}
<response-{fence}>
{response}
</response-{fence}>{reason}

The judge says {label}; the rule suggests {proposed}, because {why}.
Kinds of mistakes:
{modes}

First work out yourself which label is right. Answer accept if the rule's label is right, \
whether or not the judge says the same; check_wrong if only the judge's label is right; reject \
if neither is, or if the material does not decide it. If you accept and the judge was wrong, \
name the kind of mistake that misled it, or none if no kind fits; otherwise say none. Give the \
reason first, in one or two sentences.""",
)

# What the audited judge goes by; left out where it is not known.
STANDARD = """

The judge was to label by this:
{criterion}

Labels: {labels}."""

# Why the judge gave its label; left out where it gave no reason.
REASON = """
<judge-{fence}>
{rationale}
</judge-{fence}>"""

# How the examples of GUIDELINES are introduced: there is no case yet.
MISTAKES = "People checked these judgments of the judge.\n{examples}"

# Asks for short guidelines in place of the mistakes themselves. Returns at most so many lines.
GUIDELINES = chat_prompt(
    f"You write guidelines for a judge of responses. {MATERIAL_RULE}{{standard}}",
    """{examples}

Write at most {most} guidelines by which the judge would have given the right labels. Each is \
one sentence, names no case, and holds for cases that have nothing in common with these. What \
only one case or a doubtful label speaks for is none.""",
)
