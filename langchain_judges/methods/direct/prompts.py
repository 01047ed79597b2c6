"""Words that fill the prompts of the baselines; the prompts are in `prompts.yaml`."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.methods.tasks import WorkedExample, shown_examples

# Put behind the material, where the caller names criteria.
CRITERIA = "\n\nOnly these criteria count:\n{criteria}"

EXPLAINED = "Score response 1, then response 2{each}, then explain in a few sentences."
# How scores are replied; `{each}` of several criteria.
EXPLAINED_FIRST = "Explain in a few sentences, then score response 1, then response 2{each}."

# Added to DIRECT where there are aspects.
BY_ASPECTS = " Compare them by these aspects: {aspects}."


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
