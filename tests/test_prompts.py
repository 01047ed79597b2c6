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
    # The plan says which criterion asks what is right; `solve` then says how to find out.
    "bsm": {"branch": 135, "solve": 147},
    # Of these the names and descriptions of seven roles are about a hundred.
    "drpe": {"roles": 105, "vote": 215},
    "sc2": {"aspects": 100, "table": 130, "match": 258, "preference": 155},
    "relative": {"judge": 127},
    "absolute": {"judge": 137},
    "direct": {"judge": 125},
    "cot": {"judge": 138},
    "cot_sc": {"sample": 138},
    "relative_sc": {"sample": 127},
    "plan_solve": {"plan": 125, "judge": 198},
    "llm_score": {"judge": 167},
}
"""Tokens of instructions, by method and step: at most so many."""


@for_each("method", BUDGETS)
def test_the_instructions_of_a_step_keep_within_their_budget(method):
    sizes = {step: instructions for step, (_, instructions, _) in measured(method, [PAIR]).items()}
    assert sizes.keys() == BUDGETS[method].keys()
    over = {
        step: f"{size:g} tokens, {BUDGETS[method][step]} at most"
        for step, size in sizes.items()
        if size > BUDGETS[method][step]
    }
    assert not over, f"say it in fewer words: {over}"


@for_each("method", BUDGETS)
def test_every_prompt_says_once_and_first_that_texts_are_material(method):
    for _, prompt in prompts_of(method, PAIR):
        assert prompt.count(MATERIAL_RULE) == 1
        assert prompt.index(MATERIAL_RULE) < prompt.index("<")


def test_every_method_has_a_budget():
    assert BUDGETS.keys() == METHODS.keys()
    assert doctest.testmod(prompts).failed == 0
