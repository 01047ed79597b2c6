"""The baselines of the papers: one prompt, chain of thought, self-consistency, plan & solve."""

from langchain_judges.methods.direct.judge import create_absolute_judge as create_absolute_judge
from langchain_judges.methods.direct.judge import create_cot_judge as create_cot_judge
from langchain_judges.methods.direct.judge import create_direct_judge as create_direct_judge
from langchain_judges.methods.direct.judge import (
    create_llm_score_judge as create_llm_score_judge,
)
from langchain_judges.methods.direct.judge import (
    create_plan_solve_judge as create_plan_solve_judge,
)
from langchain_judges.methods.direct.judge import create_relative_judge as create_relative_judge
from langchain_judges.methods.direct.judge import (
    create_self_consistency_judge as create_self_consistency_judge,
)
