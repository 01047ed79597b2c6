"""Prompts are short and of one voice: what each step of each method sends beside the texts."""

import doctest

from benchmarks import prompts
from benchmarks.prompts import measured, prompts_of
from langchain_judges.methods.pairs import MATERIAL_RULE
from langchain_judges.methods.registry import METHODS
from tests.cases import for_each

PAIR = {
    "input": "How do I keep basil alive on a windowsill?",
    "output_a": "Give it six hours of light.",
    "output_b": "Water it every day.",
}
BUDGETS = {
    "allure": {"evaluate": 60},
    "rubric": {"evaluate": 60},
    "bsm": {"branch": 130, "solve": 120},
    # Of these the names and descriptions of seven roles are about a hundred.
    "drpe": {"roles": 85, "vote": 230},
    "sc2": {"aspects": 110, "table": 130, "match": 255, "preference": 175},
    "relative": {"judge": 145},
    "absolute": {"judge": 160},
    "direct": {"judge": 150},
    "cot": {"judge": 165},
    "cot_sc": {"sample": 165},
    "relative_sc": {"sample": 145},
    "plan_solve": {"plan": 130, "judge": 210},
    "llm_score": {"judge": 185},
}
"""Tokens of instructions, by method and step: at most so many."""


@for_each("method", BUDGETS)
def test_the_instructions_of_a_step_keep_within_their_budget(method):
    sizes = {
        step: instructions for step, (_, instructions, _) in measured(method, [PAIR]).items()
    }
    assert sizes.keys() == BUDGETS[method].keys()
    assert {step: size for step, size in sizes.items() if size > BUDGETS[method][step]} == {}


@for_each("method", BUDGETS)
def test_every_prompt_says_once_and_first_that_texts_are_material(method):
    for _, prompt in prompts_of(method, PAIR):
        assert prompt.count(MATERIAL_RULE) == 1
        assert prompt.index(MATERIAL_RULE) < prompt.index("<")


def test_every_method_has_a_budget():
    assert BUDGETS.keys() == METHODS.keys()
    assert doctest.testmod(prompts).failed == 0
