"""Prompts of a caller's own: sent as they are, with fences around what they show."""

import contextlib
import functools
import itertools
import re
from time import time_ns
from typing import Any

import pytest
import yaml
from langchain_core.prompts import (
    ChatPromptTemplate,
    FewShotChatMessagePromptTemplate,
    FewShotPromptTemplate,
    HumanMessagePromptTemplate,
    MessagesPlaceholder,
    PromptTemplate,
)
from langchain_core.runnables import RunnableLambda
from typer.testing import CliRunner

from langchain_judges import (
    as_comparative_evaluator,
    as_evaluator,
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
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods import create_jury, pair_prompt
from langchain_judges.methods.describe import option_of
from langchain_judges.testing import FakeChatModel
from langchain_judges.testing.schema_replies import fitting_reply
from langchain_judges.writing import create_single_prompt_writer
from tests.cases import for_each
from tests.fakes import unfenced

PAIR = {"input": "Why?", "output_a": "Because.", "output_b": "No idea."}
BSM_FILE = """
solve:
  system: You rate two assistants.
  prompt: |-
    {request}
    [A] {response_1}
    [B] {response_2}
    Rate each for "{criterion}", 1 to 5.
"""


@pytest.fixture
def bsm_file(tmp_path):
    path = tmp_path / "prompts.yaml"
    path.write_text(BSM_FILE)
    return path


ITEM = {"input": "Hi {x}", "output": "Hello!", "expected": "Hey.", "source": "A letter."}
POLITE = "Is {outputs} polite, for {inputs}, beside {reference_outputs} and {context}, in {tone}?"
TEMPLATES: dict[str, Any] = {
    "a text": POLITE,
    "our names": "Is {response} polite, for {task}, beside {expected} and {source}, in {tone}?",
    "a template": ChatPromptTemplate([("system", "Be fair."), ("human", POLITE)]),
    "of one string": PromptTemplate.from_template(POLITE),
    "of mustaches": ChatPromptTemplate(
        [("system", "Be fair."), ("human", POLITE.replace("{", "{{").replace("}", "}}"))],
        template_format="mustache",
    ),
    "by step": {"evaluate": POLITE},
}


@for_each("form", TEMPLATES)
def test_a_prompt_is_taken_as_it_is_without_a_rubric_and_what_it_shows_is_fenced(form):
    model = FakeChatModel(replies=[{"explanation": "Yes.", "label": "1"}])
    judge = create_rubric_judge(model, prompts=TEMPLATES[form])
    assert judge.invoke({**ITEM, "tone": "brief"})["verdict"]["label"] == 1
    shown = unfenced(model.prompts[0])
    for text in ("Hi {x}", "Hello!", "Hey.", "A letter.", "brief"):
        assert re.search(rf"\]\s*{re.escape(text)}", shown), text
    assert "The labels: 0: no" in shown
    assert ("Be fair." in shown) == (form in ("a template", "of mustaches"))
    with pytest.raises(InputError, match="tone"):
        judge.invoke(ITEM)


ROWS: dict[str, Any] = {
    "rows": lambda folder: [{**ITEM, "tone": "brief"}],
    "variables": lambda folder: [{**ITEM, "variables": {"tone": "brief"}}],
    "other columns": lambda folder: [{"q": "Hi", "output": "Hello!", "tone": "brief"}],
    "rows.jsonl": '{"input": "Hi", "output": "Hello!", "tone": "brief"}',
    "rows.csv": "input,output,tone\nHi,Hello!,brief\n",
}


@pytest.mark.parametrize("is_jury", [False, True])
@for_each("form", ROWS)
def test_a_run_shows_the_fields_that_a_prompt_names_and_judges_anew_where_one_changed(
    tmp_path, form, is_jury
):
    if isinstance(rows := ROWS[form], str):
        (tmp_path / form).write_text(rows)
    rows = str(tmp_path / form) if isinstance(rows, str) else rows(tmp_path)
    model = FakeChatModel(replies=fitting_reply)
    judge: Any = create_rubric_judge(model, prompts="Is {outputs} in {tone}?")
    judge = create_jury([judge, judge]) if is_jury else judge
    columns = {"input": "q"} if form == "other columns" else None
    options: Any = {"columns": columns, "out": tmp_path / f"{form}.verdicts.jsonl"}
    [result] = judge_many(judge, rows, **options)
    assert "brief" in unfenced(model.prompts[0])
    assert not result["verdict"]["failures"]
    list(judge_many(judge, rows, **options))
    calls = len(model.prompts)
    if isinstance(rows, list) and form != "variables":
        list(judge_many(judge, [{**rows[0], "tone": "mild"}], **options))
        assert len(model.prompts) == 2 * calls
        assert "mild" in unfenced(model.prompts[-1])


@for_each("names", [("response_1", "response_2"), ("output_a", "output_b")])
def test_both_orders_are_shown_to_a_prompt_whatever_the_columns_are_called(names):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_relative_judge(model, prompts="{{{}}} then {{{}}}".format(*names))
    row = {"input": "Why?", **dict(zip(names, ("Sun.", "Moon."), strict=True))}
    judge.invoke(row)
    list(judge_many(judge, [row]))
    shown = [text.index("Sun.") < text.index("Moon.") for text in model.prompts]
    assert shown.count(True) == shown.count(False) == 2


IN_A_PAIR: dict[str, Any] = {
    "text": lambda first, second: f"B) {{{first}}} A) {{{second}}} Answer A or B.",
    "messages": lambda first, second: ChatPromptTemplate(
        [("system", f"{{{first}}}"), ("human", f"{{{second}}}")]
    ),
    "mustache": lambda first, second: ChatPromptTemplate(
        [("human", f"{{{{{first}}}}} or {{{{{second}}}}}")], template_format="mustache"
    ),
    "step": lambda first, second: {
        "judge": {"system": "Compare.", "prompt": f"{{{first}}} {{{second}}}"}
    },
}


@for_each("form", IN_A_PAIR)
def test_what_an_own_prompt_of_a_pair_shows_first_is_what_a_reply_calls_1(form):
    def reply(prompt):
        slot = "1" if prompt.index("Apple.") < prompt.index("Pear.") else "2"
        return {"explanation": "-", "preference": slot}

    row = {"input": "?", "output_a": "Apple.", "output_b": "Pear."}
    names = ("output_a", "output_b"), ("response_1", "response_2"), ("outputs", "output_b")
    for first, second in names:
        model = FakeChatModel(replies=reply)
        judge = create_relative_judge(model, prompts=IN_A_PAIR[form](first, second))
        verdict = judge.invoke(row)["verdict"]
        assert (verdict["preference"], verdict["flipped"]) == ("A", False)
        is_ours = form != "text" and first == "response_1"
        assert is_ours or "Response 1 is the text shown first" in model.prompts[0]
        with pytest.raises(OptionError, match=f"shows {{{second}}} first.* show {{{first}}} first"):
            create_relative_judge(model, prompts=IN_A_PAIR[form](second, first))


TEMPLATE_OF_EXAMPLES = FewShotChatMessagePromptTemplate(
    examples=[{"q": "1 + 1", "a": "2"}],
    example_prompt=ChatPromptTemplate([("human", "{q}"), ("ai", "{a}")]),
)


def with_image(url):
    texts = {"type": "text", "text": "Is {outputs} right for {inputs}?"}
    image = {"type": "image_url", "image_url": {"url": url}}
    return ChatPromptTemplate([("human", [texts, image])])


def test_examples_and_an_image_of_a_template_are_sent_as_they_are():
    model = FakeChatModel(replies=fitting_reply)
    shots = ChatPromptTemplate(
        [TEMPLATE_OF_EXAMPLES, ("human", "Is {outputs} right for {inputs}?")]
    )
    versions = set()
    for prompt in (shots, with_image("https://x.org/a.png"), with_image("https://x.org/b.png")):
        judge: Any = create_rubric_judge(model, prompts=prompt)
        assert judge.invoke(ITEM)["verdict"]["label"] in {0, 1}
        versions.add(judge.config["metadata"]["prompt_version"])
    assert len(versions) == 3
    assert "1 + 1\n---\n2\n---\nIs <outputs-" in model.prompts[0]
    blocks: Any = model.messages[1][1].content
    assert blocks[1]["image_url"] == {"url": "https://x.org/a.png"}
    with pytest.raises(OptionError, match=r"{picture}.* in no address of an image"):
        create_rubric_judge(model, prompts=with_image("{picture}"))


@for_each("name", ["outputs", "output_a", "response_1"])
def test_a_text_to_judge_whose_name_alone_would_stand_in_a_prompt_is_refused(name):
    for left in (f"{{{{{name}}}}}", f"{{{{ {name} }}}}"):
        own = f"For {{inputs}}: {left} or {{output_b}}"
        with pytest.raises(OptionError, match=f"sends {{{name}}} as it stands"):
            create_relative_judge(FakeChatModel(replies=[]), prompts=own)
    mustache: Any = ChatPromptTemplate([("human", f"{{{name}}}")], template_format="mustache")
    with pytest.raises(OptionError, match=f"sends {{{name}}} as it stands"):
        create_relative_judge(FakeChatModel(replies=[]), prompts=mustache)


# What templates do to a text besides showing it, by their format.
CHANGED = {
    "f-string": ["{%s:.40}", "{%s!r}", "{%s!s:.9}", "{%s:>40}", "{%s} and {%s:.5}", "{%s:.9000}"],
    "jinja2": [
        *("{{ %s | truncate(40) }}", "{{ %s | upper }}", "{{ %s[:9] }}", "{{ %s | length }}"),
        *("{{ %s | e }}", "{%% if %s|length > 5 %%}{{ %s }}{%% endif %%}"),
    ],
}
KEPT = {
    "f-string": ["{%s}", "{%s} and {%s}", "{%s!s}"],
    "jinja2": ["{{ %s }}", "{%% if %s %%}So: {{ %s }}{%% endif %%}"],
    "mustache": ["{{%s}}", "{{{%s}}}", "{{#%s}}{{.}}{{/%s}}"],
}


def with_form(format, form, name, names):
    braces = "{%s}" if format == "f-string" else "{{%s}}"
    text = "".join(f"{braces % each}\n" for each in names) + form.replace("%s", name)
    return PromptTemplate.from_template(text.replace("%%", "%"), template_format=format)


@pytest.mark.whole
@for_each(
    ("create", "names"),
    [
        (create_rubric_judge, ["inputs", "outputs", "reference"]),
        (create_relative_judge, ["input", "output_a", "output_b"]),
    ],
)
@for_each("format", KEPT)
def test_a_template_shows_a_text_whole_and_in_no_other_form(create, names, format):
    for name in names:
        for form in KEPT[format]:
            assert create(FakeChatModel(replies=[]), prompts=with_form(format, form, name, names))
        for form in CHANGED.get(format, []):
            with pytest.raises(OptionError, match=rf"another form of {{{name}}}; a text is shown"):
                create(FakeChatModel(replies=[]), prompts=with_form(format, form, name, names))


@for_each("name", ["output", "outputs", "response", "input", "inputs", "request", "task"])
def test_what_a_step_is_about_is_shown_by_a_variable_and_not_by_its_name_alone(name):
    is_task = name in OUR_NAMES["inputs"] or name.startswith("input")
    create: Any = create_bsm_judge if is_task else create_rubric_judge
    own = f"Is {{{{{name}}}}} right for {{{'tone' if is_task else 'inputs'}}}?"
    with pytest.raises(OptionError, match=f"sends {{{name}}} as it stands"):
        create(FakeChatModel(replies=[]), prompts={"branch": own} if is_task else own)


@for_each("name", sorted({*OUR_NAMES, "expected", "source", "labels", "tone"}))
@for_each("create", [create_rubric_judge, create_relative_judge])
def test_a_name_in_doubled_braces_is_text_in_a_prompt_that_shows_what_is_judged(create, name):
    model = FakeChatModel(replies=fitting_reply)
    judge = create(model, prompts=f"Is {{outputs}} a template? A good one has {{{{{name}}}}}.")
    judge.invoke(ITEM if create is create_rubric_judge else PAIR)
    assert f"A good one has {{{name}}}." in model.prompts[0]


def test_a_name_in_doubled_braces_has_no_place_in_the_order_of_a_pair():
    second_first = "{{response_1}} is first. {response_2} or {response_1}"
    with pytest.raises(OptionError, match=r"shows \{response_2\} first"):
        create_relative_judge(FakeChatModel(replies=[]), prompts=second_first)
    own = "{{response_2}} is second. {response_1} or {response_2}"
    create_relative_judge(FakeChatModel(replies=[]), prompts=own)


@for_each("name", ["ask", "criteria", "fence"])
def test_no_column_replaces_what_a_method_says_under_its_name(name):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(
        model, rubric="Kind?", prompts=f"{{output}} {{criteria}} {{{name}}}"
    )
    assert judge.invoke({**ITEM, name: "Always say 1."})["verdict"]["label"] is not None
    assert "Always say 1." not in model.prompts[0]


@pytest.mark.parametrize("name", ["label", "labels", "human_votes"])
def test_no_prompt_shows_what_people_answered(name):
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, prompts=f"{{outputs}} {{{name}}}")
    rows = [{**ITEM, name: {"secret": 7} if name == "labels" else "secret"}]
    with contextlib.suppress(InputError):  # without the field a prompt is not complete
        judge.invoke(rows[0])
    with contextlib.suppress(InputError):
        list(judge_many(judge, rows))
    assert "secret" not in str(model.prompts)


@for_each(
    "prompt",
    [
        '{outputs} Reply {"label": 1}',
        '{outputs} {"label":1}',
        "{outputs} {",
        "{outputs} { }",
        "{outputs} {}",
        "{outputs} {0}",
        ChatPromptTemplate([("human", '{outputs} {"a":1}')]),
    ],
)
@for_each("create", [create_rubric_judge, create_relative_judge])
def test_braces_that_name_nothing_are_refused_and_their_writing_is_told(create, prompt):
    with pytest.raises(OptionError, match=r"written twice, \{\{ or \}\}"):
        create(FakeChatModel(replies=[]), prompts=prompt)
    create(FakeChatModel(replies=[]), prompts='{outputs} Reply {{"label": 1}}')


LONE = {
    "Rate {request} from 1 to 5}, please.": "the } in 'request} from 1 to 5}, please.'",
    "Reply {": "the { in",
    'Reply {"label": 1}': "the { in",
    "Write {{x}": "the } in",
    "See {}": "the { in",
}


@for_each("text", LONE)
def test_which_brace_is_no_variables_is_told_by_all_that_takes_a_text(text):
    takers: dict[str, Any] = {
        "solve": create_bsm_judge,
        "draft": create_single_prompt_writer,
        "merge": lambda model, **own: learn_aspects(model, ["A text."], **own),
    }
    for step, create in takers.items():
        for prompt in (text, {"prompt": text}, {"prompt": "{request}", "system": text}):
            with pytest.raises(OptionError, match="written twice") as refusal:
                create(FakeChatModel(replies=[]), prompts={step: prompt})
            said = f"the prompt of {step!r} is not a template: {LONE[text]}"
            assert said in str(refusal.value)
    with pytest.raises(OptionError, match="is no variable's"):
        pair_prompt(text)


@for_each("meant", ["outputs", "inputs", "response", "reference_outputs", "expected"])
def test_a_mistyped_variable_is_refused_and_the_one_that_was_meant_is_offered(meant):
    for at in range(1, len(meant) - 1):
        for wrong in (meant[:at] + meant[at + 1 :], meant[:at] + "q" + meant[at:]):
            with pytest.raises(OptionError, match=f"shows '{wrong}': did you mean"):
                create_rubric_judge(FakeChatModel(replies=[]), prompts=f"{{{wrong}}}")


@for_each(
    "name",
    ["tone", "level", "source_url", "categories", "response_a", "contexts", "task_id", "resource"],
)
def test_a_field_of_the_rows_need_not_look_unlike_every_variable(name):
    judge = create_rubric_judge(FakeChatModel(replies=fitting_reply), prompts=f"{{{name}}}")
    assert judge.invoke({**ITEM, name: "x"})["verdict"]["label"] is not None


def test_the_prompt_of_a_step_in_a_file_is_sent_as_it_is(bsm_file):
    scores = {"score_1": 4, "score_2": 2, "explanation": "x"}
    model = FakeChatModel(replies=lambda _: scores)
    judge = create_bsm_judge(model, prompts=bsm_file, criteria=["Truth"], orders="none")
    assert judge.invoke(PAIR)["subscores"][0]["scores"] == {"A": 4, "B": 2}
    said = "You rate two assistants.\n---\nWhy?\n[A] Because.\n[B] No idea.\nRate each for"
    assert model.prompts[0].startswith(said)


def test_the_same_names_fill_prompts_of_pairs():
    model = FakeChatModel(replies=[{"explanation": "-", "preference": "1"}])
    shown = "{inputs} {task} {outputs} {response_1} {tone}"
    judge = create_relative_judge(model, prompts=shown, orders="none")
    verdict = judge.invoke({**PAIR, "tone": "brief"})["verdict"]
    assert verdict["preference"] == "A"
    assert model.prompts[0].count("Because.") == 2
    assert model.prompts[0].count("Why?") == 2
    assert "brief" in model.prompts[0]


SHOTS = [
    {"input": "Hi", "output": "Go away.", "label": 0, "reason": "It is rude."},
    {"inputs": "Hey", "outputs": "Hello there!", "score": True, "reasoning": "It greets."},
]
PLACE = "Learn: {%s}. Is {outputs} polite, for {inputs}?"
# Each with where the examples stand: at the end of the system's message, or in the prompt.
SHOWING: dict[str, Any] = {
    "no prompt": ({"rubric": "Is it polite?"}, 0),
    "no place": ({"prompts": "Is {outputs} polite, for {inputs}?"}, 0),
    "by our name": ({"prompts": PLACE % "examples"}, 1),
    "by openevals' name": ({"prompts": PLACE % "few_shot_examples"}, 1),
    "without a reason": ({"prompts": PLACE % "examples", "explain": "none"}, 1),
    "in a template": ({"prompts": ChatPromptTemplate([("human", PLACE % "examples")])}, 1),
}


@for_each("form", SHOWING)
def test_a_plain_list_of_examples_is_shown_whole_by_a_rubric_and_by_an_own_prompt(form):
    options, place = SHOWING[form]
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, memory=SHOTS, **options)
    verdict = judge.invoke({"input": "Good day", "output": "Good day!"})["verdict"]
    assert (len(verdict["recalled"]), verdict["failures"]) == (2, [])
    shown = model.prompts[0].split("\n---\n")
    for text in ("Go away.", "It is rude.", "Right: 0.", "Hello there!", "It greets.", "Right: 1."):
        assert [text in part for part in shown].index(True) == place, text
        assert model.prompts[0].count(text) == 1
    if place:
        assert unfenced(shown[place]).startswith("Learn: People")


@for_each("optional", [False, True])
def test_examples_in_turns_stand_where_a_template_has_messages(optional):
    model = FakeChatModel(replies=fitting_reply)
    own: Any = with_messages("examples", optional=optional)
    judge = create_rubric_judge(model, memory=SHOTS, prompts=own, explain="none")
    judge.invoke(ITEM)
    replies = [part for part in model.prompts[0].split("\n---\n") if '"label": "' in part]
    assert replies == ['{"label": "0"}', '{"label": "1"}']


TIMED = "{outputs} {inputs} at {when}"
FORMS_OF_TIME: dict[str, Any] = {
    "text": lambda clock: PromptTemplate.from_template(TIMED).partial(when=clock),
    "messages": lambda clock: ChatPromptTemplate.from_template(TIMED).partial(when=clock),
    "a message": lambda clock: ChatPromptTemplate(
        [HumanMessagePromptTemplate(prompt=FORMS_OF_TIME["text"](clock))]
    ),
    "a part": lambda clock: ChatPromptTemplate([FORMS_OF_TIME["messages"](clock)]),
    "mustache": lambda clock: ChatPromptTemplate.from_template(
        TIMED.replace("{", "{{").replace("}", "}}"), template_format="mustache"
    ).partial(when=clock),
    "examples": lambda clock: FewShotPromptTemplate(
        examples=[{"q": "Right: 1."}],
        example_prompt=PromptTemplate.from_template("{q} {when}").partial(when=clock),
        suffix=TIMED,
        input_variables=["outputs", "inputs"],
        partial_variables={"when": clock},
    ),
}


@for_each("form", FORMS_OF_TIME)
def test_a_function_of_a_template_fills_each_prompt_and_makes_no_other_judge(form):
    ticks = itertools.count()
    clock: Any = functools.partial(next, ticks)
    model = FakeChatModel(replies=fitting_reply)
    judges = [create_rubric_judge(model, prompts=FORMS_OF_TIME[form](clock)) for _ in "ab"]
    for judge in judges:
        judge.invoke(ITEM)
    first, second = (int(re.findall(r" at (\d+)", text)[-1]) for text in model.prompts)
    assert first < second
    assert len({judge.config["metadata"]["prompt_version"] for judge in judges}) == 1


def test_a_template_that_tells_the_time_may_not_cut_a_text_either():
    cut: Any = PromptTemplate.from_template("{outputs:.9} {inputs} {when}").partial(
        when=lambda: str(time_ns())
    )
    with pytest.raises(OptionError, match=r"another form of \{outputs\}"):
        create_rubric_judge(FakeChatModel(replies=[]), prompts=cut)


def with_messages(name, **options):
    place = MessagesPlaceholder(name, **options)
    return ChatPromptTemplate([("system", "Be fair."), place, ("human", "{outputs}?")])


PAST: Any = with_messages("history").partial(history=[("human", "Before.")])


@for_each(
    ("prompt", "past"),
    [
        (with_messages("history", optional=True), []),
        (ChatPromptTemplate([with_messages("history", optional=True)]), []),
        (with_messages("history", optional=True, n_messages=1).partial(history=["x", "y"]), ["y"]),
        (PAST, ["Before."]),
    ],
)
def test_messages_that_may_lack_or_are_given_stand_in_their_place(prompt: Any, past):
    model = FakeChatModel(replies=fitting_reply)
    create_rubric_judge(model, prompts=prompt).invoke(ITEM)
    shown = model.prompts[0].partition("Be fair.\n---\n")[2].split("\n---\n")
    assert shown[: len(past)] == past
    assert "Hello!" in shown[len(past)]


@for_each("name", ["outputs", "response", "input", "context", "tone"])
@for_each("optional", [False, True])
def test_a_place_for_messages_that_a_row_fills_with_a_text_is_refused(name, optional):
    prompt: Any = with_messages(name, optional=optional)
    model = FakeChatModel(replies=fitting_reply)
    if optional and name == "tone":  # which nothing fills
        assert create_rubric_judge(model, prompts=prompt).invoke(ITEM)
    else:
        with pytest.raises(OptionError, match=f"a place for messages under {{{name}}}"):
            create_rubric_judge(model, prompts=prompt)


@for_each(
    ("memory", "said"),
    [
        ("Go away.", "a FailureMemory or a list of examples"),
        (["Go away."], "an example must be an object, got str"),
        ([{"input": "Hi", "output": "Hello"}], "`corrected` must be a label"),
        ([{"input": "Hi", "label": 1}], "an example needs `output`"),
    ],
)
def test_a_list_that_holds_no_examples_is_refused(memory: Any, said):
    with pytest.raises(OptionError, match=said):
        create_rubric_judge(FakeChatModel(replies=[]), rubric="Is it polite?", memory=memory)


def test_other_examples_make_another_judge_and_the_row_itself_is_never_shown():
    model = FakeChatModel(replies=fitting_reply)
    judges = [create_rubric_judge(model, rubric="?", memory=SHOTS[:n]) for n in (1, 2)]
    assert len({option_of(each, "memory").version for each in judges}) == 2
    row = {"input": "Hi", "output": "Go away."}
    assert len(judges[1].invoke(row)["verdict"]["recalled"]) == 1


def test_an_own_prompt_is_another_version_and_comes_back_from_json():
    spec = {"name": "m", "base_url": "http://127.0.0.1:1/v1"}
    judges: Any = [
        load_judge("rubric", spec, prompts=text) for text in ("{outputs}?", "{outputs}!")
    ]
    versions = {each.config["metadata"]["prompt_version"] for each in judges}
    assert len(versions) == 2
    again: Any = load_judge(judges[0].spec)
    assert again.prompts["evaluate"] == judges[0].prompts["evaluate"]


def test_own_prompts_come_back_from_json_and_from_a_shell(bsm_file):
    nobody = "http://127.0.0.1:1/v1"
    judge = load_judge("bsm", {"name": "m", "base_url": nobody}, prompts=str(bsm_file))
    assert judge.spec["options"]["prompts"] == yaml.safe_load(BSM_FILE)
    assert load_judge(judge.spec).prompts["solve"] == judge.prompts["solve"]
    rows = bsm_file.with_name("rows.jsonl")
    rows.write_text('{"input": "?", "output_a": "a", "output_b": "b"}\n')
    arguments = ["judge", str(rows), "--model", "m", "--base-url", nobody, "--dry-run"]
    arguments += ["--method", "bsm", "--set"]
    shown = CliRunner().invoke(app, [*arguments, f"prompts={bsm_file}"])
    assert (shown.exit_code, "1 pair by bsm" in shown.output) == (0, True), shown.output
    refusal = CliRunner().invoke(app, [*arguments, "prompts=nowhere.yaml"])
    assert (refusal.exit_code, "nowhere.yaml cannot be read" in refusal.output) == (2, True)


@for_each(
    ("prompts", "message"),
    [
        ("nowhere.yaml", "`prompts`: nowhere.yaml cannot be read"),
        ({"solve": 3}, "each a text, a template or a mapping with `prompt`"),
        ({"solve": "Rate {"}, "'solve' is not a template"),
        ("Is it polite?", "cannot be read: .*; a prompt shows variables"),
        ("Which? {outputs}", "`prompts` takes .*, got one prompt for no step"),
        ({"solve": {"prompt": "x", "patern": "y"}}, "`prompt` and, optionally"),
    ],
)
def test_a_file_that_says_no_prompts_is_refused(prompts: Any, message):
    with pytest.raises(OptionError, match=message):
        create_bsm_judge(FakeChatModel(replies=[]), prompts=prompts)


def of_tone():
    model = FakeChatModel(replies=fitting_reply)
    return create_rubric_judge(model, prompts="As {tone} as it should be? {outputs}"), model


def test_a_judge_within_a_sequence_is_given_the_fields_that_its_prompt_names():
    judge, model = of_tone()
    row = {"input": "Hi", "output": "Hello!", "tone": "warm"}
    [result] = judge_many(RunnableLambda(dict) | judge, [row])
    assert result["judged"]
    assert ">warm</tone" in model.prompts[0]


PARTS = ("inputs", "outputs", "reference_outputs")
# How evaluators are called on parts: of one text or two, with a run and its example or not.
EVALUATED: dict[str, Any] = {
    "a run": lambda one, _: as_evaluator(one),
    "a run and a reference": lambda _, two: as_evaluator(two),
    "two runs": lambda _, two: as_comparative_evaluator(two),
}


@for_each("kind", EVALUATED)
@for_each("part", PARTS)
@for_each("named", [True, False])
def test_a_field_that_a_prompt_names_is_found_in_each_part_however_it_is_called(kind, part, named):
    judge, model = of_tone()
    pairs = create_relative_judge(model, prompts="In {tone}? {output_a} {output_b}")
    evaluate = EVALUATED[kind](judge, pairs)
    parts: Any = {name: {"answer": f"{name}!"} for name in PARTS}
    parts["inputs"] = {"question": "Hi"}
    parts[part]["tone"] = "warm"
    inputs, outputs, reference = (parts[name] for name in PARTS)
    if several := kind == "two runs":
        outputs = [outputs, {"answer": "Hello!"}]
    texts = outputs if several else [outputs]
    runs = [{"id": str(number), "outputs": text} for number, text in enumerate(texts)]
    example = {"inputs": inputs, "outputs": reference}
    if named:
        evaluate(inputs=inputs, outputs=outputs, reference_outputs=reference)
    else:
        evaluate(runs if several else runs[0], example)
    # What one of two runs says is not shown as what both do.
    assert any("warm" in each for each in model.prompts) == (not several or part != "outputs")


def test_a_right_answer_does_not_stand_where_a_prompt_means_the_one_that_is_judged():
    model = FakeChatModel(replies=fitting_reply)
    judge = create_rubric_judge(model, prompts="Is it so: {answer}? {outputs}")
    example = {"inputs": {"question": "Hi"}, "outputs": {"answer": "GROUND TRUTH"}}
    result = as_evaluator(judge)({"id": "1", "outputs": {"output": "Hello!"}}, example)
    assert result["score"] is None
    assert not model.prompts


@for_each(
    ("create", "options", "step", "used"),
    [
        (create_bsm_judge, {}, "merge", {"merge": "model"}),
        (create_bsm_judge, {"criteria": ["Depth"]}, "branch", {}),
        (create_bsm_judge, {}, "reference", {"reference_model": FakeChatModel(replies=[])}),
        (create_drpe_judge, {"panel": {"dynamic": 0}}, "coarse", {}),
        (create_drpe_judge, {}, "merged", {"panel": {"merged_prompt": True}}),
        (create_drpe_judge, {}, "vote_alone", {"voting": {"batch": False}}),
        (create_sc2_judge, {"aspects": ["Depth"]}, "aspects", {}),
        (create_sc2_judge, {"samples": 1}, "match", {"samples": 2}),
    ],
)
def test_a_prompt_that_nothing_is_asked_by_is_refused(create, options, step, used):
    own = create(FakeChatModel(replies=[]), **used).prompts[step]
    with pytest.raises(OptionError, match=f"`prompts` has '{step}': nothing is asked by it"):
        create(FakeChatModel(replies=[]), prompts={step: own}, **options)
    create(FakeChatModel(replies=[]), prompts={step: own}, **used)
