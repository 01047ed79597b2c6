# What the package exports: `lazy.exports` and type checkers read it.
from langchain_judges.asking.models import resolve_model as resolve_model
from langchain_judges.errors import JudgeError as JudgeError
from langchain_judges.integrations.best_of_n import best_of as best_of
from langchain_judges.integrations.evaluators import (
    as_comparative_evaluator as as_comparative_evaluator,
)
from langchain_judges.integrations.evaluators import as_evaluator as as_evaluator
from langchain_judges.integrations.middleware import JudgeMiddleware as JudgeMiddleware
from langchain_judges.memory.failure_memory import FailureMemory as FailureMemory
from langchain_judges.memory.faiss_store import FaissStore as FaissStore
from langchain_judges.methods.allure.audit import create_allure_audit as create_allure_audit
from langchain_judges.methods.allure.judge import create_allure_judge as create_allure_judge
from langchain_judges.methods.bsm.judge import create_bsm_judge as create_bsm_judge
from langchain_judges.methods.direct.judge import create_absolute_judge as create_absolute_judge
from langchain_judges.methods.direct.judge import create_cot_judge as create_cot_judge
from langchain_judges.methods.direct.judge import create_direct_judge as create_direct_judge
from langchain_judges.methods.direct.judge import create_llm_score_judge as create_llm_score_judge
from langchain_judges.methods.direct.judge import create_plan_solve_judge as create_plan_solve_judge
from langchain_judges.methods.direct.judge import create_relative_judge as create_relative_judge
from langchain_judges.methods.direct.judge import (
    create_self_consistency_judge as create_self_consistency_judge,
)
from langchain_judges.methods.drpe.judge import create_drpe_judge as create_drpe_judge
from langchain_judges.methods.drpe.options import Panel as Panel
from langchain_judges.methods.drpe.options import Voting as Voting
from langchain_judges.methods.registry import load_judge as load_judge
from langchain_judges.methods.rubric.judge import create_rubric_judge as create_rubric_judge
from langchain_judges.methods.sc2.judge import create_sc2_judge as create_sc2_judge
from langchain_judges.methods.sc2.learn import learn_aspects as learn_aspects
from langchain_judges.runs.many import ajudge_many as ajudge_many
from langchain_judges.runs.many import judge_many as judge_many
from langchain_judges.verdict import Failure as Failure
from langchain_judges.verdict import Item as Item
from langchain_judges.verdict import LabelVerdict as LabelVerdict
from langchain_judges.verdict import Pair as Pair
from langchain_judges.verdict import Role as Role
from langchain_judges.verdict import Row as Row
from langchain_judges.verdict import Usage as Usage
from langchain_judges.verdict import Verdict as Verdict
from langchain_judges.verdict import Vote as Vote
from langchain_judges.writing.writers import create_bsm_writer as create_bsm_writer

__version__: str
__all__: list[str]
