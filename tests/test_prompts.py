"""Prompts are short and of one voice: what each step of each method sends beside the texts."""

import doctest
import re
from contextlib import suppress
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks import prompts
from benchmarks.prompts import measured, prompts_of
from langchain_judges import create_bsm_judge, create_relative_judge, create_rubric_judge
from langchain_judges.errors import OptionError
from langchain_judges.methods.declaration import name_and_text, with_name
from langchain_judges.methods.pairs import MATERIAL_RULE
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeChatModel
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.judges import item_of, of_method

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
    "drpe": {"roles": 105, "vote": 217},  # asked as `response`, where readers differ
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


PIECES = (
    "Tone",
    ":",
    " ",
    "\n",
    "10:30",
    "https://x.y",
    "C:\\a",
    "：",
    "é",
    "🎉",
    "{x}",
    "<b>",
    "-",
)
CRITERIA = st.text(max_size=20) | st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
TEXT = {"input": PAIR["input"], "output": PAIR["output_a"]}
ALONE = "\nThe criterion: {}\n"
# By how criteria are given: who takes them, what stands behind the first, and its lines.
FORMS: dict[str, tuple[Any, dict[str, list[str]], str]] = {
    "alone": (create_rubric_judge, {"rubric": []}, ALONE),
    "listed": (create_rubric_judge, {"rubric": ["Wit"]}, "criterion_1, {}\n"),
    "a plan": (create_bsm_judge, {"criteria": []}, ALONE),
    "what counts": (create_relative_judge, {"criteria": []}, "\n- {}\n"),
}


@settings(max_examples=20)
@given(CRITERIA, st.sampled_from([*FORMS]))
def test_a_criterion_is_sent_as_it_is_written(text, form):
    assume(name_and_text(text)[1] != "")  # a colon that nothing stands behind
    model = FakeChatModel(replies=fitting_reply)
    create, options, lines = FORMS[form]
    criteria = {name: [text, *more] for name, more in options.items()}
    with suppress(OptionError):  # a text that says nothing
        create(model, **criteria).invoke(PAIR if "criteria" in criteria else TEXT)
        sent, own = "\n".join(model.prompts), (text, text.strip())
        assert any(lines.format(each) in sent for each in own)


# A name alone, with what it means, a question, an order; and in other languages.
OWN = """
Höflichkeit | Tact: is it kind? | Ton : poli ? | Is the answer right? | Names no competitor.
回答礼貌吗？ | هل الجواب مهذب؟
- Says where each fact is from, and names whoever it was that found it first.
"""
OWN_CRITERIA = [each.strip() for each in OWN.strip().replace("\n", "|").split("|")]
ASKED_ALONE, FOUND = "The criterion: {}", "(The criterion: )?{}"
# Who takes them, with which options, and each line of a prompt that holds one.
TAKEN: list[tuple[str, dict[str, Any], str]] = [
    ("bsm", {"criteria": OWN_CRITERIA}, ASKED_ALONE),
    ("bsm", {"criteria": OWN_CRITERIA, "wording": "paper", "merge": "model"}, FOUND),
    ("relative", {"criteria": OWN_CRITERIA}, "- {}"),
    ("absolute", {"criteria": OWN_CRITERIA}, "- {}"),
    ("direct", {"aspects": OWN_CRITERIA[:1]}, r".* Compare them by these aspects: {}\."),
    ("sc2", {"aspects": OWN_CRITERIA[4:], "samples": 1}, r"\d\. {}|\| {} \|.*"),
    ("rubric", {"rubric": OWN_CRITERIA}, r"criterion_\d, {}"),
    ("rubric", {"rubric": OWN_CRITERIA[3]}, ASKED_ALONE),
    ("allure", {"rubric": OWN_CRITERIA[2]}, ASKED_ALONE),
]


@for_each(("method", "options", "line"), TAKEN)
def test_nothing_is_put_beside_the_words_of_a_callers_criterion(method, options, line):
    model = FakeChatModel(replies=fitting_reply)
    of_method(method, model, **options).invoke(item_of(method))
    sent = {each for prompt in model.prompts for each in prompt.split("\n")}
    [own, *_] = options.values()
    for words in [own] if isinstance(own, str) else own:
        held = [each for each in sent if words in each]
        assert held
        assert all(re.fullmatch(line.replace("{}", re.escape(words)), each) for each in held)


WHOLE = """
At 10:30 it opens | https://x.y is linked | 10:1 ratio | C:\\Users | std::move | Tone:polite
"""


@for_each("text", [each.strip() for each in WHOLE.strip().split("|")])
def test_a_colon_within_a_text_ends_no_name(text):
    assert name_and_text(text) == (text, None)


NAMED = """
Tone: polite | 10:1 ratio: kept | 語調: 丁寧か | 礼貌：是否礼貌 | Ton : est-il poli ?
Tone:  spaced
"""


@for_each("text", [each.strip() for each in NAMED.strip().replace("\n", "|").split("|")])
def test_a_colon_and_a_space_or_a_wide_one_end_a_name_and_are_sent_as_they_stand(text):
    name, about = name_and_text(f" {text}\n")
    assert name in {"Tone", "10:1 ratio", "語調", "礼貌", "Ton"}
    assert with_name(name, about or "") == text
