"""Prompts of the baselines, in our own words.

What each of them asks for follows Saha et al. 2023 (section 4: relative, absolute, plan &
solve, self-consistency), Yan et al. 2023 (SC², appendix: direct prompting and chain of
thought) and Wu et al. 2023 (section 4: the judge without roles). Each can be replaced by a
template with the same variables. What parallel calls share comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.asking.ask import chat_prompt
from langchain_judges.methods.few_shot import WorkedExample, shown_examples
from langchain_judges.methods.pairs import (
    BY_ITSELF,
    CHOOSE,
    COMPARES,
    FAIR,
    MATERIAL,
    MATERIAL_RULE,
    PLAN_CRITERIA,
)
from langchain_judges.methods.tasks import CORRECT_FIRST

_SCORES = f"You score two responses to the same request. {MATERIAL_RULE}"

RELATIVE = chat_prompt(
    COMPARES,
    "{examples}",
    MATERIAL,
    f"Which response is better for the person who asked? {FAIR} ",
    CORRECT_FIRST,
    """

Give your reasons in a few sentences, then the preference: 1 or 2, or tie if no difference \
matters.""",
)
"""Asks for one of three labels (zero-shot relative; the pairwise judge of MT-Bench)."""

ABSOLUTE = chat_prompt(
    _SCORES,
    MATERIAL,
    """Score how well each response serves the person who asked, from {low} to {high}. \
{anchors} """,
    BY_ITSELF,
    """ If there is a right answer, work it out first: {right}

{reply}""",
)
"""Asks for two scores in one call (zero-shot absolute)."""

CRITERIA = "\n\nOnly these criteria count:\n{criteria}"
"""Put behind the material, where the caller names criteria."""

DIRECT = chat_prompt(
    COMPARES,
    MATERIAL,
    CHOOSE,
    """{aspects}

Give your reasons in one or two sentences, then the preference: 1 or 2. There is no tie.""",
)
"""Asks for one of two labels (direct prompting, with or without aspects)."""

COT = chat_prompt(
    COMPARES,
    "{examples}",
    MATERIAL,
    CHOOSE,
    """

Think step by step: what the request needs, what each response does about it, which difference \
decides. Then give the preference: 1 or 2. There is no tie.""",
)
"""Asks for steps of reasoning and one of two labels (chain of thought, 0 to 5 shots)."""

PLAN = chat_prompt(
    f"You plan how responses to a request will be scored. {MATERIAL_RULE}",
    """<request-{fence}>
{request}
</request-{fence}>{focus}{instructions}

""",
    PLAN_CRITERIA,
)
"""Asks for criteria from the request alone (plan & solve, first call)."""

SOLVE = chat_prompt(
    _SCORES,
    MATERIAL,
    """The criteria:
{criteria}

Take them in this order, and score both responses on each and on nothing else, from {low} to \
{high}. {anchors} """,
    BY_ITSELF,
    """ For a criterion of what is right, work that out first: {right}

{reply}""",
)
"""Asks for the scores on every criterion at once (plan & solve, second call)."""

LLM_SCORE = chat_prompt(
    f"You choose the better of two passages written for the same text. {MATERIAL_RULE}",
    """<text-{fence_request}>
{request}
</text-{fence_request}>{reference}
<passage-1-{fence_1}>
{response_1}
</passage-1-{fence_1}>
<passage-2-{fence_2}>
{response_2}
</passage-2-{fence_2}>{focus}{instructions}

{about} """,
    CHOOSE,
    """

Give your reason in one sentence, then the preference: 1 or 2. There is no tie.""",
)
"""Asks one judge without any role for the better passage (DRPE's `LLMScore`)."""

EXPLAINED = "Score response 1, then response 2{each}, then explain in a few sentences."
EXPLAINED_FIRST = "Explain in a few sentences, then score response 1, then response 2{each}."
"""How scores are replied; `{each}` of several criteria."""

ASPECTS = " Compare them by these aspects: {aspects}."
"""Added to DIRECT where there are aspects."""


def render_shots(shots: Sequence[WorkedExample], *, steps: bool) -> str:
    """Render worked examples; empty for none.

    They are those that methods with tables show. Of a table only its aspects are shown, as
    in the one-shot chain of thought of Yan et al. 2023.

    Args:
        shots: The examples.
        steps: Whether the reply thinks step by step; else it says only what decides.
    """
    return shown_examples([(shot, "", _reply(shot, steps)) for shot in shots])


def _reply(shot: WorkedExample, steps: bool) -> dict[str, str]:
    aspects = ", ".join(row["aspect"] for row in shot["rows"])
    prefix = f"Compared by {aspects}: " if aspects else ""
    explanation = shot.get("reasoning") or shot["comparison"] if steps else shot["comparison"]
    return {"explanation": prefix + explanation, "preference": shot["preferred"]}
