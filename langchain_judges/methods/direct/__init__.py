"""The baselines of the papers: one prompt, chain of thought, self-consistency, plan & solve."""

from langchain_judges.methods.direct.judge import (
    create_absolute_judge,
    create_cot_judge,
    create_direct_judge,
    create_llm_score_judge,
    create_plan_solve_judge,
    create_relative_judge,
    create_self_consistency_judge,
)

__all__ = [
    "create_absolute_judge",
    "create_cot_judge",
    "create_direct_judge",
    "create_llm_score_judge",
    "create_plan_solve_judge",
    "create_relative_judge",
    "create_self_consistency_judge",
]
