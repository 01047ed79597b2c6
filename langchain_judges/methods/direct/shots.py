"""Worked examples as the baselines show them: each with a reply in the form that is asked."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_judges.methods.few_shot import WorkedExample, shown_examples


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
