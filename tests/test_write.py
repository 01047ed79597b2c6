"""Writing under constraints against its paper: call counts, divisions, losses, failures."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import create_bsm_writer
from langchain_judges.errors import InputError
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.notes import unshown
from langchain_judges.writing.writers import create_single_prompt_writer, load_writer, placed
from tests.cases import for_each
from tests.fakes import FakeChatModel, writes

TEN = ["vest", "snow", "wall", "pit", "deck", "wine", "goat", "piano", "ice cream", "run"]
TASK = {"concepts": TEN}


def scripted(replies=None):
    """A model that answers `replies(prompt)`, or as `writes` where that is None."""
    return FakeChatModel(replies=lambda p: (replies and replies(p)) or writes(p))


def written(task=TASK, replies=None, **options):
    model = scripted(replies)
    return create_bsm_writer(model, **options).invoke(task), model


def many(n):
    return {"concepts": [f"concept{i}" for i in range(n)]}


def is_split(prompt):
    return "divide the concepts" in prompt


def is_solve(prompt):
    return "Leave none of them out" in prompt


def is_merge(prompt):
    return "Make one coherent text" in prompt


def is_repair(prompt):
    return "Write it again" in prompt


def said(text):
    return json.dumps({"text": text})


def test_a_text_is_written_as_the_paper_says():
    result, model = written()
    assert result["text"] == f"The {', the '.join(TEN[0::2] + TEN[1::2])}."
    assert result["topic"] == "a day out"
    assert result["groups"] == [TEN[0::2], TEN[1::2]]
    assert result["drafts"] == [f"The {', the '.join(part)}." for part in result["groups"]]
    assert result["missing"] == result["failures"] == []
    assert result["usage"]["calls"] == len(model.prompts) == 4
    steps = {step: cost["calls"] for step, cost in result["usage"]["by_step"].items()}
    assert steps == {"split": 1, "solve": 2, "merge": 1}


def test_calls_follow_the_closed_form():
    # A split, the solves and the merge; then the rewrites.
    result, model = written(many(10), groups=5, rewrites=0)
    assert len(model.prompts) == result["usage"]["calls"] == 1 + 5 + 1
    for rewrites, calls in ((0, 7), (1, 8)):
        writer = load_writer("branch", model, groups=5, rewrites=rewrites)
        assert writer.config["metadata"]["calls"] == calls


@for_each(
    ("preset", "calls"),
    [("zero_shot", 1), ("plan_solve", 2), ("self_consistency", 6), ("best_coverage", 5)],
)
def test_the_baselines_are_there_by_name(preset, calls):
    model = scripted()
    writer = load_writer("single_prompt", model, preset=preset)
    result = writer.invoke(TASK)
    assert len(model.prompts) == result["usage"]["calls"] == calls
    assert writer.config["metadata"]["calls"] == calls
    assert result["text"]
    assert result["groups"] == [TEN]
    assert result["topic"] == ("a day out" if preset == "plan_solve" else None)


def of_samples(texts):
    """A model whose samples are these texts, by their seed, and which chooses `3`."""
    waiting = list(texts)

    def respond(prompt):
        if "Which of them" in prompt:
            return json.dumps({"explanation": "so", "choice": "3"})
        return said(waiting.pop(0))

    return FakeChatModel(replies=respond)


SAMPLES = ["Snow.", "Snow on the wall and a vest.", "A vest."]


def test_coverage_chooses_the_text_that_lacks_least():
    # Drafts run at the same time, so which text is which sample's is not fixed.
    writer = create_single_prompt_writer(of_samples(SAMPLES), samples=3, choose="coverage")
    result = writer.invoke({"concepts": ["snow", "wall", "vest", "goat"]})
    assert result["text"] == SAMPLES[1]
    assert result["missing"] == [{"concept": "goat", "lost_in": "solve"}]


def test_a_model_chooses_by_number():
    model = of_samples(SAMPLES)
    result = create_single_prompt_writer(model, samples=3).invoke({"concepts": ["snow", "wall"]})
    third = re.search(r"<text-3-(\w+)>\n(.*?)\n</text-3-\1>", model.prompts[-1], re.S)
    assert result["text"] == third[2]


def test_where_no_choice_can_be_read_the_text_that_lacks_least_is_kept():
    waiting = list(SAMPLES)

    def respond(prompt):
        return "the best one" if "Which of them" in prompt else said(waiting.pop(0))

    writer = create_single_prompt_writer(FakeChatModel(replies=respond), samples=3, repairs=0)
    result = writer.invoke({"concepts": ["snow", "wall", "vest", "goat"]})
    assert (result["text"], result["drafts"]) == (SAMPLES[1], [SAMPLES[1]])
    assert [f["step"] for f in result["failures"]] == ["choose"]
    assert result["missing"] == [{"concept": "goat", "lost_in": "solve"}]


# --- the division ---


@for_each(
    ("proposed", "expected"),
    [
        # strangers dropped, repetitions kept once, spelling restored, rest to the smaller
        ([["A1", "zebra"], ["a1", "C1 "]], [["a1", "b1"], ["c1", "d1"]]),
        ([["a1", "b1", "c1"], ["d1", "a1"]], [["a1", "b1", "c1"], ["d1"]]),
        ([["a1", "b1", "c1", "d1"], []], [["a1", "b1"], ["c1", "d1"]]),
        ([["zebra"], ["yak"]], [["a1", "b1"], ["c1", "d1"]]),
        ([["a1"], [], []], [["a1", "d1"], ["b1"], ["c1"]]),
    ],
)
def test_a_division_is_mended(proposed, expected):
    assert placed(["a1", "b1", "c1", "d1"], proposed) == expected


def test_word_forms_get_the_spelling_of_the_input_back():
    concepts = ["Ice Cream", "ski", "skis", "leaf", "mother-in-law"]
    proposed = [["ice creams", "skis", "mother in law"], ["leaves", "ski"]]
    assert placed(concepts, proposed) == [["skis", "Ice Cream", "mother-in-law"], ["ski", "leaf"]]


def test_concepts_that_differ_in_capitals_are_each_asked_for():
    concepts = ["US", "us", "Polish", "polish", "C++", "c++"]
    result, model = written({"concepts": [*concepts, " US"]})
    assert result["concepts"] == concepts
    assert "US\nus\nPolish\npolish\nC++\nc++" in model.prompts[0]
    assert sorted(each for group in result["groups"] for each in group) == sorted(concepts)


def test_of_concepts_that_differ_in_capitals_the_spelling_that_is_proposed_counts():
    assert placed(["US", "us", "gull"], [["us", "GULL"], ["US"]]) == [["us", "gull"], ["US"]]


names = st.sampled_from([*"abcdefghij", "zebra", "A", " b ", "", "a b", "a-b", "-"])


@given(
    st.lists(st.sampled_from([*"abcdefghij", "A", "a b", "a-b", "-"]), min_size=1, unique=True),
    st.lists(st.lists(names, max_size=12), min_size=1, max_size=6),
)
def test_every_concept_stands_in_one_group_and_no_group_is_empty(concepts, proposed):
    proposed = proposed[: len(concepts)]
    groups = placed(concepts, proposed)
    assert len(groups) == len(proposed)
    assert all(groups)
    assert sorted(concept for group in groups for concept in group) == sorted(concepts)


def test_a_failed_division_is_replaced_and_reported():
    result, model = written(replies=lambda p: "no" if is_split(p) else None)
    assert result["groups"] == [TEN[:5], TEN[5:]]
    assert result["topic"] is None
    assert [(f["step"], f["reason"]) for f in result["failures"]] == [("split", "unparsable")]
    assert result["text"]
    assert not any("The topic:" in prompt for prompt in model.prompts)


# --- coverage and repair ---


def lossy(prompt):
    return said("Snow.") if is_merge(prompt) else None


def test_repair_names_what_is_missing_and_keeps_the_rest():
    result, model = written({"concepts": ["snow", "vest", "goat"]}, replies=lossy)
    assert len(model.prompts) == 5
    prompt = model.prompts[-1]
    assert re.search(r"<missing-\w+>\nvest\ngoat\n</missing-", prompt)
    assert re.search(r"<text-\w+>\nSnow\.\n</text-", prompt)
    assert result["text"] == "The snow, the vest, the goat."
    assert result["missing"] == []


@for_each(
    ("again", "calls", "failures"), [(said("Goats."), 6, []), ("sorry", 8, ["repair", "repair"])]
)
def test_a_rewrite_that_is_worse_or_fails_keeps_the_text(again, calls, failures):
    task = {"concepts": ["snow", "vest", "goat"]}
    result, model = written(task, replies=lambda p: again if is_repair(p) else lossy(p), rewrites=2)
    assert len(model.prompts) == calls
    assert result["text"] == "Snow."
    assert [f["step"] for f in result["failures"]] == failures


# --- failures ---


def failing(word):
    """Fail the drafts that have to use `word`, and no other call."""
    return lambda p: "I cannot." if is_solve(p) and word in p else None


def test_a_failed_draft_is_left_out_reported_and_asked_for_in_the_repair():
    result, model = written(many(6), replies=failing("concept1"), groups=3, rewrites=0)
    assert result["drafts"][1] is None
    assert [(f["step"], f["unit"]) for f in result["failures"]] == [("solve", "group 2")]
    assert {m["concept"] for m in result["missing"]} == {"concept1", "concept4"}
    assert {m["lost_in"] for m in result["missing"]} == {"solve"}
    assert "Here are 2 parts" in model.prompts[-1]
    mended, _ = written(many(6), replies=failing("concept1"), groups=3)
    assert mended["missing"] == []


REFUSED = AIMessage(said("Snow."), additional_kwargs={"refusal": "no"})


@for_each(
    ("step", "reply"), [(is_solve, "I cannot help."), (is_merge, said(" … ")), (is_merge, REFUSED)]
)
def test_without_a_usable_reply_there_is_no_text(step, reply):
    result, model = written(replies=lambda p: reply if step(p) else None)
    assert result["text"] is None
    assert len(result["missing"]) == 10
    assert result["failures"]
    assert not any(is_repair(prompt) for prompt in model.prompts)


# --- input ---


@for_each(
    ("task", "message"),
    [({}, "`concepts` is missing"), ({"concepts": ["snow", " "]}, "`concepts` is empty")],
)
def test_bad_tasks_are_refused_in_a_sentence_and_without_a_call(task, message):
    model = scripted()
    with pytest.raises(InputError, match=message):
        create_bsm_writer(model).invoke(task)
    assert model.prompts == []


def test_one_concept_is_written_of_by_one_call():
    result, model = written({"concepts": ["snow", "snow "]})
    assert len(model.prompts) == 1
    assert result["concepts"] == ["snow"]
    assert result["groups"] == [["snow"]]
    assert result["text"] == "The snow."


def test_a_thread_hands_no_instruction_to_the_next_task():
    model = FakeChatModel(replies=writes)
    writer = create_bsm_writer(model, checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    task = {"concepts": ["a cat", "a dog"]}
    first = writer.invoke({**task, "instruction": "A SECRET poem.", "id": "p1"}, config)
    assert first["id"] == "p1"
    before = len(model.prompts)
    assert writer.invoke(task, config)["id"] is None
    assert len(model.prompts) > before
    assert not any("SECRET" in prompt for prompt in model.prompts[before:])


@for_each(
    ("concepts", "language", "forms"),
    [
        (["sea", "café"], "english", "any of its word forms"),
        (["sea", "море"], "english", "exactly the form given"),
        (["고양이", "바다"], "english", "exactly the form given"),
        (["море", "кот"], "russian", "any of its word forms"),
        (["海", "猫"], "russian", "exactly the form given"),
    ],
)
def test_a_model_is_told_to_use_the_exact_form_where_no_other_counts(concepts, language, forms):
    _, model = written({"concepts": concepts}, groups=2, language=language)
    assert all(f"each in {forms}." in prompt for prompt in [model.prompts[0], model.prompts[-1]])


@for_each(
    ("task", "told", "left"),
    [
        ({"input": "Write a poem."}, "Write a poem.", []),
        ({"instruction": "Write a song.", "input": "Of joy."}, "Write a song.", ["input"]),
        ({"instruction": "Write a song.", "reference": "La la."}, "Write a song.", ["reference"]),
    ],
)
def test_a_task_may_stand_under_input_and_what_a_writer_is_not_shown_is_named(task, told, left):
    _, model = written({**TASK, **task})
    assert told in model.prompts[-1]
    assert unshown(plain_row({**TASK, **task})) == left


@for_each(
    ("instruction", "brief"),
    [
        (None, True),
        ("A story of 300-400 words.", False),
        ("Eine Geschichte von 300 Wörtern.", False),
    ],
)
def test_a_length_that_a_task_states_in_any_language_is_not_undercut(instruction, brief):
    _, model = written({**TASK, "instruction": instruction})
    solves = filter(is_solve, model.prompts)
    assert {"as short as" in prompt for prompt in solves} == {brief}


def test_a_rewrite_is_not_bought_for_a_word_form_of_the_language():
    def replies(prompt):
        return '{"text": "Na stole jsou knihy."}'

    task = {"concepts": ["kniha"]}
    czech, english = FakeChatModel(replies=replies), FakeChatModel(replies=replies)
    assert create_bsm_writer(czech, language="czech").invoke(task)["missing"] == []
    create_bsm_writer(english).invoke(task)
    assert (len(czech.prompts), len(english.prompts)) == (1, 2)
