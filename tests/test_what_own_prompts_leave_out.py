"""A caller's own prompt: nothing beside it is dropped, blank or replaced without a word."""

import json
import re
from typing import Any, cast

import openevals.prompts
import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.prompts.structured import StructuredPrompt
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
    learn_aspects,
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


# An own prompt in each form that is taken, by its step.
OWN_FORMS: dict[str, Any] = {
    "text": lambda step, text: {step: text},
    "of one string": lambda step, text: {step: PromptTemplate.from_template(text)},
    "messages": lambda step, text: {step: ChatPromptTemplate([("human", text)])},
    "file": lambda step, text: {step: {"system": "Be fair.", "prompt": text}},
    "alone": lambda step, text: text,
}


def without(template, *left_out):
    """All variables of a prompt but some."""
    names = {*template.input_variables}.difference(left_out)
    return "Now. " + " ".join(f"{{{name}}}" for name in sorted(names))


@pytest.mark.whole
@for_each("method", METHODS)
def test_no_prompt_of_a_step_that_shows_what_is_judged_leaves_it_out(method):
    kind: Any = METHODS[method]
    for options in ({}, *kind.presets.values()):
        options = {**kind.few, **options}
        made: Any = kind(**options)
        ours = {s: t for s, t in made.prompt_texts.items() if s not in made.unasked}
        judging = {step: ours[step] for step in ours if step == made.judging}
        for step, template in ours.items():
            for name in {"response", "response_1", "response_2"} & {*template.input_variables}:
                text = without(template, name, "source", "examples")
                for form in {*OWN_FORMS} - (set() if step in judging else {"alone"}):
                    own = OWN_FORMS[form](step, text)
                    own = own if form == "alone" else {**judging, **own}
                    with pytest.raises(OptionError, match=f"must show {{{name}}} or"):
                        load_judge(method, FakeChatModel(replies=[]), prompts=own, **options)


@for_each("form", OWN_FORMS)
@for_each(
    ("shown", "is_seen"),
    [
        *(("outputs", True), ("output", True), ("response", True)),
        *(("context", True), ("source", True), ("answer", True), ("chunks", True)),
        *(("criteria", False), ("task", False), ("reference_outputs", False), ("expected", False)),
        *(("question", False), ("ground_truth", False), ("id", False), ("label", False)),
    ],
)
def test_a_prompt_of_one_text_shows_a_text_that_may_be_judged(form, shown, is_seen):
    own = OWN_FORMS[form]("evaluate", f"Is this right, for {{inputs}}? {{{shown}}}")
    if is_seen:
        create_rubric_judge(FakeChatModel(replies=[]), prompts=own)
    else:
        said = refusal(create_rubric_judge, own)
        assert "must show {response} or {output} or {outputs}, as ours does" in said


def test_a_place_for_messages_that_may_lack_shows_no_text_to_judge():
    past = MessagesPlaceholder("history", optional=True)
    own = ChatPromptTemplate([past, ("human", "Is it right, for {inputs}?")])
    assert "must show {response}" in refusal(create_rubric_judge, own)


@for_each("name", [each for each in vars(openevals.prompts) if each.endswith("_PROMPT")])
def test_a_prompt_of_openevals_is_taken_where_it_shows_an_answer_or_what_was_retrieved(name):
    own = getattr(openevals.prompts, name)
    if "{outputs}" in own or "{context}" in own:
        create_rubric_judge(FakeChatModel(replies=[]), prompts=own)
    else:
        assert "must show {response}" in refusal(create_rubric_judge, own)


@for_each(
    ("create", "step", "name"),
    [
        (create_rubric_judge, "example", "reply"),
        (create_bsm_judge, "reference", "request"),
        (lambda model, **own: learn_aspects(model, ["A text."], **own), "extract", "text"),
    ],
)
def test_a_step_that_judges_nothing_shows_what_it_is_about(create, step, name):
    options = {"reference_model": FakeChatModel(replies=[])} if step == "reference" else {}
    own = {step: "Say something. {instructions}" if step == "extract" else "Now. {response}"}
    own = {step: "Write an answer."} if options else own
    assert f"must show {{{name}}}" in refusal(create, own, **options)


def test_an_example_in_a_callers_words_is_fenced_and_follows_the_systems_message():
    own = {
        "evaluate": ChatPromptTemplate(
            [("system", "{criteria}"), MessagesPlaceholder("examples"), ("human", "{outputs}?")]
        ),
        "example": ChatPromptTemplate([("human", "MINE {inputs}: {outputs}"), ("ai", "{reply}")]),
    }
    model = FakeChatModel(replies=fitting_reply)
    shots = [{"input": "Hey", "output": "Go away.", "label": 0}]
    judge = create_rubric_judge(model, rubric="?", prompts=own, memory=shots, explain="none")
    judge.invoke(ITEM)
    assert [each.type for each in model.messages[0]] == ["system", "human", "ai", "human", "human"]
    assert re.search("MINE <inputs-.*>Hey<.*<outputs-.*>Go away.<", model.prompts[0])


GRADE = {"title": "Grade", "type": "object", "properties": {"score": {"type": "number"}}}


class RuledPrompt(ChatPromptTemplate):
    """One that says more than its messages."""

    rule: str = "Be strict."


def with_more():
    """Prompts that hold more than messages, as LangChain makes them."""
    plain = ChatPromptTemplate([("human", "From 1 to 10? {outputs}")])
    parsed: Any = {"output_parser": StrOutputParser()}
    model, ruled = FakeChatModel(replies=[]), cast("Any", RuledPrompt)
    return [
        StructuredPrompt(plain.messages, GRADE),
        plain | model,
        plain | model | StrOutputParser(),
        plain.bind(stop=["."]),
        plain.model_copy(update=parsed),
        PromptTemplate.from_template("{outputs}?").model_copy(update=parsed),
        ruled(plain.messages),
    ]


@pytest.mark.filterwarnings("ignore:.*StructuredPrompt:Warning")
@for_each(
    ("create", "step"),
    [
        (create_rubric_judge, "evaluate"),
        (create_relative_judge, "judge"),
        (create_bsm_judge, "solve"),
        (lambda model, **own: learn_aspects(model, ["A text."], **own), "extract"),
    ],
)
def test_what_a_prompt_holds_beside_messages_is_refused_and_what_to_give_is_told(create, step):
    for prompt in with_more():
        for own in (prompt, {step: prompt}):
            said = refusal(create, own)
            assert f"is a {type(prompt).__name__}: of what it holds beside messages" in said
            assert "ChatPromptTemplate(it.messages)" in said


@pytest.mark.filterwarnings("ignore:.*StructuredPrompt:Warning")
def test_the_messages_of_a_prompt_with_a_schema_are_taken():
    model = FakeChatModel(replies=fitting_reply)
    own = ChatPromptTemplate(with_more()[0].messages)
    create_rubric_judge(model, prompts=own, labels=[*range(1, 11)]).invoke(ITEM)
    assert "From 1 to 10? <outputs" in model.prompts[0]


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
    assert ("its labels are 0, 1" in caplog.text) == is_told


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
