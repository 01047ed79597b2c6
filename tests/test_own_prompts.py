"""Prompts of a caller's own: sent byte for byte, and read as their file says."""

import re
from typing import Any

import pytest
import yaml
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from typer.testing import CliRunner

from langchain_judges import (
    create_bsm_judge,
    create_drpe_judge,
    create_relative_judge,
    create_rubric_judge,
    create_sc2_judge,
    load_judge,
)
from langchain_judges.cli import app
from langchain_judges.errors import InputError, OptionError
from langchain_judges.testing import FakeChatModel, FakeModelServer
from tests.cases import for_each
from tests.fakes import turns, unfenced

TALK = {
    "input": turns("user", "Name two {rivers}.", "Which is longer?"),
    "output_a": turns("assistant", "Elbe, Oder", "Elbe"),
    "output_b": turns("assistant", "Rhine, Po", "Po"),
}
PAIR = {"input": "Why?", "output_a": "Because.", "output_b": "No idea."}
# Of the form that the papers print, in other words.
BSM_FILE = r"""
branch:
  prompt: |-
    We rate assistants. Which points count for the task below?
    [Task] {turn_1} / {turn_2}
    Points:
  reply: '\d+\. (?P<name>[^:]+): (?P<description>.+)'
solve:
  system: You rate two assistants.
  prompt: |-
    [User, turn 1]
    {turn_1}
    [A] {response_1_turn_1}
    [B] {response_2_turn_1}
    [User, turn 2]
    {turn_2}
    [A] {response_1_turn_2}
    [B] {response_2_turn_2}

    Rate each for "{criterion_name}" ({criterion_description}), 1 to 5.
  reply: '(?s)Rating of A:.*?(?P<score_1>\d)\s.*Rating of B:.*?(?P<score_2>\d)\.?\s*$'
merge:
  prompt: |-
    Weigh:
    {findings}
    End with [[A]], [[B]] or [[C]].
  reply: '\[\[(?P<preference>[ABC])\]\]'
  values: {A: "1", B: "2", C: tie}
"""


def script(prompt: str) -> str:
    if "Points:" in prompt:
        return "1. Truth: is it so\n2. Tone: is it kind"
    if "Weigh:" in prompt:
        return "A is right more often. [[A]]" if "first" in prompt else "All in all: [[C]]"
    return "Rating of A: it knows rivers. 4\nRating of B: it errs in one. 2."


@pytest.fixture
def bsm_file(tmp_path):
    path = tmp_path / "prompts.yaml"
    path.write_text(BSM_FILE)
    return path


def test_the_prompts_of_bsm_are_sent_byte_for_byte_and_read_as_the_file_says(bsm_file):
    model = FakeChatModel(replies=script)
    judge = create_bsm_judge(model, prompts=bsm_file, merge="model", orders="none")
    result = judge.invoke(TALK)
    assert [each["name"] for each in result["criteria"]] == ["Truth", "Tone"]
    assert [s["scores"] for s in result["subscores"]] == [{"A": 4, "B": 2}] * 2
    assert (result["verdict"]["preference"], result["verdict"]["failures"]) == ("tie", [])
    branch, *solves, _ = model.prompts
    assert branch == (
        "We rate assistants. Which points count for the task below?\n"
        "[Task] Name two {rivers}. / Which is longer?\nPoints:"
    )
    talk = (
        "You rate two assistants.\n---\n[User, turn 1]\nName two {rivers}.\n[A] Elbe, Oder\n"
        "[B] Rhine, Po\n[User, turn 2]\nWhich is longer?\n[A] Elbe\n[B] Po\n\nRate each for "
    )
    ends = ('"Truth" (is it so), 1 to 5.', '"Tone" (is it kind), 1 to 5.')
    assert sorted(solves) == sorted(talk + end for end in ends)


def test_a_server_is_asked_in_the_words_of_the_file_and_for_no_format(bsm_file):
    with FakeModelServer(lambda call: script(call.prompt)) as server:
        judge = create_bsm_judge(server.chat(), prompts=bsm_file, orders="strict")
        assert judge.invoke(TALK)["verdict"]["preference"] == "tie"
    for call in server.calls:
        assert not {"response_format", "tools"} & set(call.body)
        assert call.body["messages"][-1]["role"] == "user"


SOLVE = {"prompt": "{response_1}\n{response_2}\nRate:"}
MARKS = r"(?s)A: (?P<score_1>\d).*B: (?P<score_2>\d)"


@for_each(
    ("pattern", "reply", "scores"),
    [
        (MARKS, "It shows \\frac{1}{2}. A: 4, B: 2", {"A": 4, "B": 2}),
        (MARKS, "No brace {closes it. A: 4, B: 2", {"A": 4, "B": 2}),
        (MARKS, '{"score_1": 5, "score_2": 1, "explanation": "x"}', None),
        (MARKS, "<think>A: 1, B: 5</think>A: 4, B: 2", {"A": 4, "B": 2}),
        (MARKS, "<think>A: 1, B: 5", None),
        (r'"a": (?P<score_1>\d), "b": (?P<score_2>\d)', '{"a": 4, "b": 2}', {"A": 4, "B": 2}),
    ],
)
def test_a_reply_is_read_by_the_pattern_alone(pattern, reply, scores):
    prompts = {"solve": {**SOLVE, "reply": pattern}}
    model = FakeChatModel(replies=[reply])
    judge = create_bsm_judge(model, prompts=prompts, criteria=["Truth"], orders="none")
    result = judge.invoke(PAIR)
    assert [each["scores"] for each in result["subscores"]] == ([scores] if scores else [])
    assert bool(result["verdict"]["failures"]) == (scores is None)


def test_values_are_found_in_any_case():
    read = {"reply": "(?i)(?P<label>yes|no)$", "values": {"yes": "1", "no": "0"}}
    model = FakeChatModel(replies=["It is polite.\nYes"])
    prompts = {"evaluate": {"prompt": "{task}\n{response}\nPolite?", **read}}
    judge = create_rubric_judge(model, rubric="Is the reply polite?", prompts=prompts)
    assert judge.invoke({"input": "Hi", "output": "Hello!"})["verdict"]["label"] == 1


ROLES = {
    "vote": {
        "prompt": "{text}\n1) {response_1}\n2) {response_2}\n"
        "As {role_1_type} ({role_1_description}), as {role_2_type} and as {role_3_type}:",
        "reply": r"(?P<vote>[12]) because (?P<reason>.+)",
    }
}


@for_each(
    "reply",
    [
        "1 because it says why.\n2 because it is honest.",
        "1 because it says why.\n1 because I am sure.\n2 because of tone.\n2 because of all.",
    ],
)
def test_votes_that_cannot_be_told_to_roles_count_for_none(reply):
    judge = create_drpe_judge(
        FakeChatModel(replies=[reply]), panel={"dynamic": 0}, prompts=ROLES
    )
    result = judge.invoke(PAIR)
    assert result["verdict"]["preference"] is None
    assert "unparsable" in {each["reason"] for each in result["verdict"]["failures"]}


TABLES = {
    "table": {
        "prompt": "{turn_1}\n{response_1}\n{response_2}\n{aspect_1}, {aspect_2}, one row each:",
        "reply": r"\| (?P<common>[^|]*) \| (?P<only_1>[^|]*) \| (?P<only_2>[^|]*) \|",
    },
    "match": {
        "prompt": "A:\n{table_1}\nB:\n{table_2}\nMore consistent:",
        "reply": "^(?P<preferred>[AB])$",
        "values": {"A": "1", "B": "2"},
    },
    "preference": {
        "prompt": "{table_text}\nPreferred:",
        "reply": "^(?P<preferred>[AB])$",
        "values": {"A": "1", "B": "2"},
    },
}


def test_the_tables_of_sc2_are_asked_for_compared_and_judged_in_own_words():
    def reply(prompt):
        if "one row each" in prompt:
            return f"| both | {len(model.prompts)} | two |\n| none | clear | vague |"
        return "A" if "More consistent" in prompt else "B"

    model = FakeChatModel(replies=reply)
    judge = create_sc2_judge(model, aspects=["Tone", "Depth"], samples=2, prompts=TABLES)
    result = judge.invoke(PAIR)
    assert result["verdict"]["preference"] == "B"
    assert [row["only_b"] for row in result["table"]["rows"]] == ["two", "vague"]
    tables, rest = model.prompts[:2], model.prompts[2:]
    assert tables == ["Why?\nBecause.\nNo idea.\nTone, Depth, one row each:"] * 2
    for number, sent in enumerate(rest):
        assert sent.endswith(("More consistent:", "Preferred:")[number == len(rest) - 1])


ITEM = {"input": "Hi {x}", "output": "Hello!", "expected": "Hey.", "source": "A letter."}
POLITE = (
    "Is {outputs} polite, for {inputs}, beside {reference_outputs} and {context}, in {tone}?"
)
TEMPLATES: dict[str, Any] = {
    "a text": POLITE,
    "our names": "Is {response} polite, for {task}, beside {expected} and {source}, in {tone}?",
    "a template": ChatPromptTemplate([("system", "Be fair."), ("human", POLITE)]),
    "of one string": PromptTemplate.from_template(POLITE),
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
    assert ("Be fair." in shown) == (form == "a template")
    with pytest.raises(InputError, match="tone"):
        judge.invoke(ITEM)


def test_the_same_names_fill_prompts_of_pairs():
    model = FakeChatModel(replies=[{"explanation": "-", "preference": p} for p in "12"])
    judge = create_relative_judge(
        model, prompts="{inputs} {task} {outputs} {response_1} {tone}"
    )
    verdict = judge.invoke({**PAIR, "tone": "brief"})["verdict"]
    assert verdict["preference"] == "A"
    assert model.prompts[0].count("Because.") == 2
    assert model.prompts[0].count("Why?") == 2
    assert "brief" in model.prompts[0]


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
        ({"solve": "Rate {"}, "'solve' is no template"),
        ("Which? {outputs}", "`prompts` takes .*, got"),
        ({"solve": {"prompt": "x", "patern": "y"}}, "`prompt` and, as one likes"),
        ({"solve": {"prompt": "x", "reply": "("}}, "'solve' is no template or pattern"),
        ({"solve": {"prompt": "{table_9}"}}, r"got \['table_9'\] too"),
    ],
)
def test_a_file_that_says_no_prompts_is_refused(prompts: Any, message):
    with pytest.raises(OptionError, match=message):
        create_bsm_judge(FakeChatModel(replies=[]), prompts=prompts)


def test_a_row_without_a_piece_that_the_prompt_shows_is_not_judged(bsm_file):
    judge = create_bsm_judge(FakeChatModel(replies=script), prompts=bsm_file)
    with pytest.raises(InputError, match=r"'branch' shows \['turn_2'\], which this row does"):
        judge.invoke(PAIR)


def test_each_role_stands_where_the_file_puts_it_and_each_line_is_one_vote():
    reply = "1 because it says why.\n1 because it is an answer.\n2 because it is honest."
    model = FakeChatModel(replies=lambda _: reply)
    judge = create_drpe_judge(model, panel={"dynamic": 0}, prompts=ROLES)
    result = judge.invoke(PAIR)
    roles = {role["type"]: role["description"] for role in result["roles"]}
    (sent,) = model.prompts
    match = re.fullmatch(
        r"Why\?\n1\) (.+)\n2\) (.+)\nAs (.+?) \((.+)\), as (.+) and as (.+):", sent, re.DOTALL
    )
    assert match
    assert {match[1], match[2]} == {"Because.", "No idea."}
    assert {match[3], match[5], match[6]} == set(roles)
    assert match[4] == roles[match[3]]
    first = "A" if match[1] == "Because." else "B"
    votes = {vote["role"]: vote["preference"] for vote in result["votes"]}
    assert votes[match[3]] == votes[match[5]] == first != votes[match[6]]


def test_another_way_to_read_replies_is_another_version_of_the_prompts():
    def version(**read):
        prompts = {"solve": {**SOLVE, "reply": MARKS, **read}}
        judge: Any = create_bsm_judge(FakeChatModel(replies=[]), prompts=prompts)
        return judge.config["metadata"]["prompt_version"]

    swapped = (
        MARKS.replace("score_1", "x").replace("score_2", "score_1").replace("x", "score_2")
    )
    versions = {version(), version(reply=swapped), version(values={"4": "5"})}
    assert len(versions) == 3


def test_a_reply_of_another_form_is_a_failure_and_is_not_repaired(bsm_file):
    model = FakeChatModel(replies=lambda p: "4 and 2" if "Rate each" in p else script(p))
    verdict = create_bsm_judge(model, prompts=bsm_file, orders="none").invoke(TALK)["verdict"]
    assert verdict["preference"] is None
    assert {each["reason"] for each in verdict["failures"]} == {"unparsable"}
    assert len(model.prompts) == 3
