"""What a judgment is about: the caller, the row or the model says it, and no word list."""

import json
import re
from typing import Any

import pytest

from langchain_judges import create_bsm_judge, create_drpe_judge, create_llm_score_judge
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.drpe.options import WORDS
from langchain_judges.methods.tasks import TASKS, choose_task
from langchain_judges.testing.schema_replies import fitting_reply
from tests.cases import for_each
from tests.fakes import FakeChatModel

ARTICLE = "Die Brücke ist seit Montag gesperrt. 桥梁于星期一关闭。 " * 40
TURNS = [{"role": "user", "content": text} for text in ("Hello.", "And now?")]
# The same two requests in English, German, French and Japanese.
SUMMARIES = {
    "en": "TL;DR",
    "de": "Fasse den folgenden Artikel zusammen:",
    "fr": "Résumez cet article :",
    "ja": "次の記事を要約してください。",
}
RIGHTS = {
    "en": "Correct grammar: no errors of spelling",
    "de": "Richtige Grammatik: keine Fehler der Rechtschreibung",
    "fr": "Exactitude : aucune faute d'orthographe",
    "ja": "正しい文法: 誤字がない",
}


@for_each(
    ("request_", "task"),
    [(ARTICLE, "response"), (f"Summarize this.\n\n{ARTICLE}", "response"), (TURNS, "dialogue")],
)
def test_no_word_of_a_request_decides_what_it_is_about(request_, task):
    assert choose_task("auto", {"input": request_})[0] == task


def test_a_row_says_what_its_texts_are():
    pair = {"input": ARTICLE, "output_a": "a", "output_b": "b"}
    assert choose_task("auto", {**pair, "task_kind": "summary"})[0] == "summary"
    assert choose_task("harmless", {**pair, "task_kind": "summary"})[0] == "harmless"
    with pytest.raises(InputError, match="`task_kind`"):
        choose_task("auto", {**pair, "task_kind": "maths"})


def asked(create, request, replies, **options):
    """The result of a pair, and its prompts without the request."""
    model = FakeChatModel(replies=replies)
    pair = {"input": request, "output_a": "Kurz.", "output_b": "Lang."}
    result = create(model, **options).invoke(pair)
    bare = [re.sub(r"(?<=-)\w{10}(?=>)", "", each.replace(request, "")) for each in model.prompts]
    return result, sorted(bare)


def names_readers(wanted):
    """The script of a model that says what a request wants."""

    def reply(prompt):
        if '"readers"' not in prompt:
            return fitting_reply(prompt)
        readers = [{"type": f"Reader {n}", "description": "looks"} for n in range(4)]
        said = {"wanted": wanted} if "wanted" in prompt else {}
        return json.dumps({**said, "readers": readers})

    return reply


def panel(request, wanted="summary", **options):
    own: Any = {"panel": {"clustering": None}, "repairs": 0, **options}
    return asked(create_drpe_judge, request, names_readers(wanted), **own)


@for_each("wanted", ["summary", "response"])
def test_the_same_pair_in_any_language_gets_the_panel_that_the_model_says(wanted):
    told = [panel(f"{words}\n\n{ARTICLE}", wanted) for words in SUMMARIES.values()]
    results, prompts = zip(*told, strict=True)
    # A coin draws in which order a panel is shown: its lines are compared without numbers.
    lines = [
        sorted(re.sub(r"^role_\d, ", "", "\n".join(p), flags=re.M).split("\n")) for p in prompts
    ]
    assert lines == [lines[0]] * 4
    assert {each["task"] for each in results} == {wanted}
    assert sum(WORDS["wanted"] in prompt for prompt in prompts[0]) == 2
    assert all(TASKS[wanted]["question"] in each[-1] for each in prompts)
    seats = [[role["type"] for role in each["roles"]] for each in results]
    assert seats == [seats[0]] * 4


@for_each("said", [{"task": "summary"}, {"task": "response"}])
def test_a_model_is_not_asked_what_the_caller_says(said):
    result, prompts = panel(ARTICLE, "summary", **said)
    assert result["task"] == said["task"]
    assert not any("wanted" in prompt for prompt in prompts)


def test_criteria_of_the_caller_are_asked_unchanged_in_any_language():
    for criterion in RIGHTS.values():
        _, prompts = asked(create_bsm_judge, "q", fitting_reply, criteria=[criterion])
        ends = [prompt.partition("The criterion: ")[2].split("\n\n")[0] for prompt in prompts]
        assert ends == [criterion] * 2


@for_each(
    ("said", "asks_right"),
    [("yes", True), ("Yes.", True), (True, True), ("no", False), (False, False), (None, False)],
)
def test_a_planned_criterion_gets_the_rule_of_what_is_right_where_the_plan_says_so(
    said, asks_right
):
    def plan(name):
        line = {"name": name, "description": "d", "asks_right": said}
        return lambda p: {"criteria": [line]} if "You plan how" in p else fitting_reply(p)

    for name in ("Correctness", "Richtigkeit", "正しさ"):
        _, prompts = asked(create_bsm_judge, "q", plan(name))
        rules = ["Work out first what is right" in prompt for prompt in prompts]
        assert sum(rules) == 2 * asks_right


@for_each("create", [create_drpe_judge, create_llm_score_judge])
def test_candidates_do_not_decide_the_task(create):
    options: Any = {"panel": {"dynamic": 0}} if create is create_drpe_judge else {}
    for side in ("The bridge is closed; repairs cost four million.", "I cross daily. " * 40):
        model = FakeChatModel(replies=lambda _: "nothing to use")
        judge = create(model, repairs=0, **options)
        judge.invoke({"input": ARTICLE, "output_a": side, "output_b": "It is closed."})
        assert all(TASKS["response"]["question"] in prompt for prompt in model.prompts)


def test_a_caller_says_which_criterion_asks_what_is_right_and_other_keys_are_refused():
    criteria = [{"name": "Truth", "asks_right": True}, {"name": "Tone", "description": "d"}]
    _, prompts = asked(create_bsm_judge, "q", fitting_reply, criteria=criteria)
    told = [each for each in prompts if "Work out first what is right" in each]
    assert len(told) == 2
    assert all("The criterion: Truth" in each for each in told)
    with pytest.raises(OptionError, match=r"'asks_right'\} or None, got .*weight"):
        create_bsm_judge("local", criteria=[{"name": "Tone", "weight": 2}])
