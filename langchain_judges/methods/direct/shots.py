"""Worked examples as the baselines show them: each with a reply in the form that is asked."""

from __future__ import annotations

import json
from collections.abc import Sequence

from langchain_judges.methods.direct.prompts import EXAMPLE, EXAMPLES
from langchain_judges.methods.few_shot import WorkedExample


def render_shots(shots: Sequence[WorkedExample]) -> str:
    """Render worked examples; empty for none.

    They are those that methods with tables show. Of a table only its aspects are told, as
    in the one-shot chain of thought of Yan et al. 2023.
    """
    if not shots:
        return ""
    shown = [
        EXAMPLE.format(
            number=number,
            input=shot["input"],
            output_1=shot["response_1"],
            output_2=shot["response_2"],
            reply=json.dumps(_reply(shot), ensure_ascii=False),
        )
        for number, shot in enumerate(shots, 1)
    ]
    return EXAMPLES.format(examples="\n\n".join(shown))


def _reply(shot: WorkedExample) -> dict[str, str]:
    aspects = ", ".join(row["aspect"] for row in shot["rows"])
    told = f"Compared by {aspects}: " if aspects else ""
    return {"explanation": told + shot["comparison"], "preference": shot["preferred"]}
