"""A caller's own prompt: nothing beside it is dropped, blank or replaced without a word."""

import json
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate
from typer.testing import CliRunner

from langchain_judges import (
    as_evaluator,
    create_allure_judge,
    create_bsm_judge,
    create_drpe_judge,
    create_relative_judge,
    create_rubric_judge,
    create_sc2_judge,
    judge_many,
    load_judge,
)
from langchain_judges.asking.own_prompts import OUR_NAMES
from langchain_judges.cli import app
from langchain_judges.errors import InputError, LackingError, OptionError
from langchain_judges.lazy import packaged
from langchain_judges.methods.registry import METHODS
from langchain_judges.testing import FakeChatModel
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.writing import load_writer
from langchain_judges.writing.writers import WRITERS
from tests.cases import for_each

PAIR = {"input": "Why?", "output_a": "Because.", "output_b": "No idea."}
ITEM = {"input": "Hi", "output": "Hello!"}
SHOWN = {**ITEM, "expected": "Hey.", "source": "A letter."}
NEEDED = packaged("langchain_judges.asking", "names.yaml")["needed"]["always"]
# A text that no prompt of ours holds, where each option puts it.
ZEBRA = "zebra"
_SHOT = {"input": ZEBRA, "response_1": "a", "response_2": "b", "rows": []}
SAYING: dict[str, list[dict[str, Any]]] = {
    "instructions": [{"instructions": ZEBRA}],
    "rubric": [
        {"rubric": "Is it a zebra?"},
        {"rubric": {"Kind": "A zebra?", "Tone": "Polite?"}},
        {"rubric": [{"name": "Kind", "labels": {0: ZEBRA, 1: "a horse"}}]},
    ],
    "criteria": [{"criteria": [ZEBRA]}],
    "steps": [{"steps": [ZEBRA]}],
    "labels": [{"labels": {0: ZEBRA, 1: "a horse"}}],
    "aspects": [{"aspects": [ZEBRA, "Depth"]}],
    "task": [
        {"task": {"question": "Which?", part: ZEBRA}}
        for part in ("question", "quality", "about", "everyone", "sought")
    ],
    "panel": [{"panel": {"static": ["zebra: reads"], "dynamic": 0}}],
    "examples": [{"examples": [{**_SHOT, "comparison": "-", "preferred": "1"}], "shots": 1}],
    "memory": [{"memory": [{"input": ZEBRA, "output": "It is.", "label": 0}]}],
}
KINDS: dict[str, Any] = {**METHODS, **WRITERS}


def row_of(method):
    if method in WRITERS:
        return {"concepts": ["snow", "piano", "goat"]}
    return PAIR if METHODS[method].takes == "pair" else SHOWN


def prompts_with_it(method, options):
    """How many prompts of one row hold the text."""
    model: Any = FakeChatModel(replies=fitting_reply)
    load: Any = load_writer if method in WRITERS else load_judge
    load(method, model, **options).invoke(row_of(method))
    return sum(ZEBRA in prompt for prompt in model.prompts)


def cases():
    """Each method with each of its options that say something, as it takes them."""
    for method, kind in KINDS.items():
        for option, values in SAYING.items():
            for options in values if option in kind.model_fields else ():
                is_pair = getattr(kind, "takes", "") == "pair"
                whole = {**kind.few, **options}
                try:
                    made: Any = kind(**whole)
                except OptionError:
                    continue  # such as a task of what compares without one
                texts = {s: t for s, t in made.prompt_texts.items() if s not in made.unasked}
                if not (option == "memory" and is_pair):
                    yield method, whole, texts


def steps_of(texts):
    return [step for step in texts if not step.endswith("example")]


def bare(template):
    """A text of the fewest variables that are taken."""
    names = [name for name in template.input_variables if name in (*NEEDED, "response")]
    return "Now. " + " ".join(f"{{{name}}}" for name in names if name != "labels")


def own_prompts(texts):
    """Prompts that say nothing of an option: of each step, of all steps, or of none."""
    plain = {step: bare(texts[step]) for step in steps_of(texts)}
    for own in (
        plain,
        {s: ChatPromptTemplate([("human", text)]) for s, text in plain.items()},
        {s: {"system": "Be fair.", "prompt": text} for s, text in plain.items()},
    ):
        yield from (own, *({step: prompt} for step, prompt in own.items()))
    yield "{outputs}"


@pytest.mark.whole
@for_each("method", KINDS)
def test_what_an_option_says_is_sent_beside_an_own_prompt_or_refused(method):
    for name, options, texts in cases():
        for own in own_prompts(texts) if name == method else ():
            try:
                sent = prompts_with_it(method, {**options, "prompts": own})
            except OptionError:
                continue
            assert sent >= prompts_with_it(method, options), (options, own)


@pytest.mark.whole
@for_each("method", KINDS)
def test_an_own_prompt_with_the_variables_of_ours_shows_what_every_option_says(method):
    for name, options, texts in cases():
        own = {
            step: " ".join(f"{{{each}}}" for each in texts[step].input_variables)
            for step in (steps_of(texts) if name == method else ())
        }
        if own:
            sent = prompts_with_it(method, {**options, "prompts": own})
            assert sent == prompts_with_it(method, options), options


def refusal(create, prompts, **options):
    with pytest.raises(OptionError) as caught:
        create(FakeChatModel(replies=[]), prompts=prompts, **options)
    return str(caught.value)


# Prompts with options, and the variable that is lacking and told.
LEFT_OUT: dict[str, Any] = {
    "a text": (create_rubric_judge, "{outputs}?", {"rubric": "Brief?"}, "{criteria}"),
    "several": (create_rubric_judge, "{outputs}?", {"rubric": ["a", "b"]}, "{criteria}"),
    "each": (create_rubric_judge, "{outputs}?", {"rubric": ["a", "b"], "each": True}, "{criteria}"),
    "ready": (
        create_rubric_judge,
        "{outputs}? {criteria}",
        {"rubric": "groundedness", "steps": ["Read."]},
        "{steps}",
    ),
    "alone": (create_allure_judge, "{outputs}?", {"instructions": "x"}, "{instructions}"),
    "words": (create_relative_judge, "{outputs}?", {"criteria": ["a"]}, "{instructions}"),
    "tools": (create_relative_judge, "{outputs}?", {"tools": [len]}, "{instructions}"),
    "found": (create_rubric_judge, "{outputs}?", {"tools": [len]}, "{source} or {context}"),
    "plan": (create_bsm_judge, {"solve": "{outputs}"}, {}, "{criterion}"),
    "panel": (create_drpe_judge, {"vote": "{outputs}"}, {}, "{roles}"),
    "table": (create_sc2_judge, {"preference": "{outputs}"}, {}, "{table}"),
    "nothing": (create_rubric_judge, {"evaluate": "Is it polite?"}, {}, "{response}"),
}


@for_each("case", LEFT_OUT)
def test_a_prompt_without_what_only_it_can_show_is_refused(case):
    create, prompts, options, variable = LEFT_OUT[case]
    assert f"must show {variable}" in refusal(create, prompts, **options)


@for_each("prompt", ["Better? {output_a}", "{response_1} {reference_outputs}"])
def test_a_prompt_of_a_pair_shows_both_texts(prompt):
    said = refusal(create_relative_judge, prompt)
    assert "must show {response_2} or {outputs} or {output_b}" in said


@for_each(
    ("create", "name"), [(create_rubric_judge, "output_a"), (create_relative_judge, "output")]
)
def test_a_placeholder_of_the_other_kind_of_row_is_refused(create, name):
    assert f"got ['{name}'] too" in refusal(create, f"{{outputs}} {{{name}}}")


def test_what_a_template_is_filled_with_beforehand_is_sent_and_no_option_beside_it():
    text = "{outputs} in {tone}? {instructions} {labels} {ask}"
    own = ChatPromptTemplate.from_template(text).partial(instructions="Be strict.", tone="red")
    model = FakeChatModel(replies=fitting_reply)
    create_rubric_judge(model, prompts=own).invoke(ITEM)
    assert "Be strict." in model.prompts[0]
    assert "must show {instructions}" in refusal(create_rubric_judge, own, instructions="x")


def test_the_prompt_of_another_step_than_the_one_that_asks_is_refused():
    own = {"evaluate": "{outputs} {criteria}"}
    said = refusal(create_rubric_judge, own, rubric=["a", "b"])
    assert "asks by 'criteria', got ['evaluate']" in said
    both = {**own, "criteria": "{outputs} {criteria}"}
    create_rubric_judge(FakeChatModel(replies=[]), rubric=["a", "b"], prompts=both)


@for_each("each", [False, True])
def test_one_prompt_asks_by_several_criteria_that_it_shows(each):
    model = FakeChatModel(replies=fitting_reply)
    own: Any = {"prompts": "MINE {outputs} {criteria}", "each": each}
    judge = create_rubric_judge(model, rubric={"Tone": "Polite?", "Size": "Brief?"}, **own)
    assert judge.invoke(ITEM)["verdict"]["score"] is not None
    assert len(model.prompts) == 1 + each
    assert all("MINE" in prompt for prompt in model.prompts)
    assert all(text in " ".join(model.prompts) for text in ("Polite?", "Brief?"))


@for_each("name", ["reference_outputs", "expected", "context", "source", "tone"])
@for_each("value", [None, "", " ", float("nan"), []])
def test_a_row_that_lacks_what_a_prompt_names_is_not_judged(name, value):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, prompts=f"Is {{outputs}} so, by {{{name}}}?")
    said = f"shows {{{name}}}, which the row lacks"
    with pytest.raises(LackingError, match=said):
        judge.invoke({**ITEM, name: value})
    result = as_evaluator(judge)(inputs="Hi", outputs="Hello!")
    assert (result["score"], said in result["comment"]) == (None, True)
    assert not model.prompts


PAIRED: dict[str, Any] = {
    "pair": (create_relative_judge, PAIR, ["reference", "reference_outputs", "context", "tone"]),
    "item": (create_rubric_judge, ITEM, ["expected", "source", "tone"]),
}


@for_each("kind", PAIRED)
def test_a_run_judges_the_rows_that_have_what_a_prompt_names(kind):
    create, row, names = PAIRED[kind]
    for name in names:
        model = FakeChatModel(replies=fitting_reply)
        judge = create(model, prompts=f"{{outputs}} {{{name}}}")
        whole = {**row, "reference" if name == "reference_outputs" else name: "It was warm."}
        results = list(judge_many(judge, [whole, row, whole]))
        failures = [[each["reason"] for each in r["verdict"]["failures"]] for r in results]
        assert failures == [[], ["lacking"], []], name
        assert all("warm" in prompt for prompt in model.prompts)


def test_a_command_tells_what_a_row_lacks_that_its_prompt_names(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(ITEM) + "\n")
    own = ["--method", "rubric", "--set", "prompts=Is {outputs} in {context}?"]
    nobody = ["--model", "m", "--base-url", "http://127.0.0.1:1/v1"]
    shown = CliRunner().invoke(app, ["judge", str(rows), *own, *nobody])
    assert shown.exit_code != 0
    assert "shows {context}, which the row lacks" in " ".join(shown.output.split())


@for_each("empty", [{}, {"expected": None}, {"source": ""}])
def test_a_copy_of_our_prompt_shows_parts_of_a_row_where_there_are_some(empty):
    model = FakeChatModel(replies=fitting_reply)
    human = "<r-{fence}>\n{response}\n</r-{fence}>{expected}{source} {criteria} {labels}"
    judge = create_rubric_judge(model, rubric="Polite?", prompts={"evaluate": human})
    assert judge.invoke({**ITEM, **empty})["verdict"]["label"] is not None


def test_a_reference_that_the_judge_writes_is_lacking_in_no_row():
    options: Any = {"prompts": {"solve": "{outputs} {criterion} {reference}"}}
    model = FakeChatModel(replies=fitting_reply)
    judge = create_bsm_judge(model, criteria=["Tone"], reference_model=model, **options)
    assert judge.invoke(PAIR)["verdict"]["preference"]


def test_the_rubric_of_a_row_is_shown_by_an_own_prompt_or_the_row_is_refused():
    model, row = FakeChatModel(replies=fitting_reply), {**ITEM, "rubric": "A zebra?"}
    with pytest.raises(InputError, match="the row has a `rubric`"):
        create_rubric_judge(model, prompts="{outputs}?").invoke(row)
    create_rubric_judge(model, prompts="{outputs}? {criteria}").invoke(row)
    assert len(model.prompts) == ("A zebra?" in model.prompts[0])


@for_each(
    ("prompts", "labels", "is_told"),
    [
        ("Rate from 1 to 5. {outputs}", None, True),
        ({"evaluate": {"system": "Rate from 1 to 7.", "prompt": "{outputs}"}}, None, True),
        ("Rate from 1 to 9. {outputs}", [1, 5, 9], False),
        ("Is it polite? {outputs}", None, False),
    ],
)
def test_a_range_in_an_own_prompt_with_labels_0_and_1_is_told(
    prompts: Any, labels: Any, is_told, caplog
):
    caplog.clear()
    create_rubric_judge(FakeChatModel(replies=[]), prompts=prompts, labels=labels)
    assert ("its labels are 0 and 1" in caplog.text) == is_told


def test_every_name_of_a_variable_stands_for_one_that_a_prompt_has():
    ours = {
        name
        for kind in KINDS.values()
        for template in kind.templates.values()
        for name in (*template.input_variables, "shared", "examples")
    }
    assert not {part for parts in OUR_NAMES.values() for part in parts} - ours
    assert not {*NEEDED} - ours - {"phrases"}  # of `learn_aspects`


@for_each(("prompt", "looks"), [("{outputs}?", False), ("{outputs}? {instructions}", True)])
def test_nothing_is_looked_up_that_an_own_prompt_has_no_place_for(prompt, looks):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_relative_judge(model, prompts=prompt, context=2_000)
    long = {**PAIR, "output_a": "It scatters light. " * 2_000}
    reasons = [each["reason"] for each in judge.invoke(long)["verdict"]["failures"]]
    assert any("You collect evidence" in each for each in model.prompts) == looks
    assert looks or reasons == ["input_cut"]
