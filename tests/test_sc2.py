"""SC² against its paper: aspects, tables, the search for the best one, the preference."""

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langchain_judges import create_sc2_judge
from langchain_judges.asking.reading import json_schema
from langchain_judges.errors import OptionError
from langchain_judges.methods.sc2.options import SC2, normal_form
from langchain_judges.methods.sc2.tally import (
    in_prompt,
    meetings,
    read_rows,
    seeded_order,
    survivors,
    table_shapes,
)
from langchain_judges.methods.tasks import WORKED
from langchain_judges.testing import reply
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, with_logprobs
from tests.model_server import responses

PAIR = {"input": "Why?", "output_a": "good reason", "output_b": "bad reason"}
SWAPPED = {"input": "Why?", "output_a": "bad reason", "output_b": "good reason"}
ASPECTS = ["Tone", "Depth"]


def rows(prompt, first="polite", second="brief", common="on topic SEED"):
    """A table with a row for every aspect that the prompt lists, unlike the others."""
    count = len(re.findall(r"^\d+\. ", prompt.split("in this order:")[1], re.M))
    cells = {"common": common, "only_1": first, "only_2": second}
    return json.dumps({f"aspect_{i + 1}": cells for i in range(count)})


def step_of(prompt):
    if "aspects to compare them by" in prompt:
        return "aspects"
    if "side by side in a table" in prompt:
        return "table"
    return "match" if "<table-2-" in prompt else "preference"


def respond(prompt):
    """Prefer the response with the word `good`."""
    step = step_of(prompt)
    if step == "aspects":
        return json.dumps({"reasoning": "well", "aspects": ["the tones", "Depth"]})
    if step == "table":
        first, second = responses(prompt)
        return rows(prompt, *(text.replace("\n", "") for text in (first, second)))
    if step == "match":
        return json.dumps({"more_consistent": "1", "justification": "no overlap"})
    slot = "1" if "good" in responses(prompt)[0] else "2"
    return json.dumps({"comparison": "It is good.", "preferred": slot})


def judged(pair=PAIR, answers=None, **options):
    """Judge a pair; `answers` says by step what the model replies instead."""

    def said(prompt):
        answer = (answers or {}).get(step_of(prompt))
        got = answer(prompt) if callable(answer) else answer
        return respond(prompt) if got is None else got

    model = FakeChatModel(replies=said)
    settings = {"aspects": ASPECTS, **options}
    return create_sc2_judge(model, **settings).invoke(pair), model


def steps(model):
    return [step_of(prompt) for prompt in model.prompts]


def reasons(result):
    return [(f["step"], f["reason"]) for f in result["verdict"]["failures"]]


# Closed forms: calls, comparisons and rounds.


@for_each(
    ("options", "calls"),
    [
        # C tables, the comparisons of the mode, one preference.
        ({}, 16),
        ({"samples": 7}, 14),
        ({"inference": "random"}, 2),
        ({"inference": "exact", "samples": 3}, 10),
        # Online aspects add m calls, the second order one.
        ({"aspects": None}, 24),
        ({"aspects": None, "aspect_samples": 3, "samples": 1}, 3 + 2),
        ({"orders": "strict"}, 17),
        ({"orders": "score_mean", "samples": 2}, 2 + 1 + 2),
    ],
)
def test_calls_are_the_closed_form(options, calls):
    result, model = judged(**options)
    assert len(model.prompts) == result["verdict"]["usage"]["calls"] == calls
    assert SC2(**{"aspects": ASPECTS, **options}).calls() == calls


# The search, as pure functions.


def play(mode, quality, seed):
    """Play a search to its end; the table with the larger quality always wins."""
    contenders, bracket, number = seeded_order(quality, seed), [], 0
    while len(contenders) > 1:
        number += 1
        played: Any = [
            {
                "round": number,
                "tables": tables,
                "winner": max(tables, key=quality.__getitem__),
                "asked": len(tables) == 2,
            }
            for tables in meetings(mode, contenders, number, seed)
        ]
        bracket += played
        contenders = survivors(mode, contenders, played)
    return contenders[0], bracket


@given(st.permutations(range(13)), st.integers(1, 13), st.integers(0, 10_000))
def test_a_transitive_comparator_crowns_the_same_table_in_every_mode(order, count, seed):
    quality = dict(zip(range(1, count + 1), order, strict=False))
    best = max(quality, key=quality.__getitem__)
    for mode in ("tournament", "exact"):
        winner, played = play(mode, quality, str(seed))
        assert winner == best
        comparisons = sum(match["asked"] for match in played)
        assert comparisons == SC2(inference=mode, samples=count).comparisons
        rounds = max((m["round"] for m in played), default=0)
        assert rounds == (min(count - 1, 1) if mode == "exact" else math.ceil(math.log2(count)))


@given(st.integers(2, 16), st.integers(0, 10_000))
def test_nobody_has_two_byes_in_a_knockout(count, seed):
    _, played = play("tournament", {n: n for n in range(count)}, str(seed))
    byes = [m["winner"] for m in played if not m["asked"]]
    assert len(byes) == len(set(byes))


# The graph.


def test_the_bracket_says_who_met_whom_who_won_and_why():
    result, _ = judged(samples=6)
    bracket = result["bracket"]
    assert [(m["round"], m["match"]) for m in bracket] == [
        *((1, 1), (1, 2), (1, 3)),
        *((2, 1), (2, 2)),
        (3, 1),
    ]
    assert [m["decided_by"] for m in bracket].count("bye") == 1
    assert {m["why"] for m in bracket} == {"no overlap", "bye"}
    assert bracket[-1]["winner"] == result["table"]["number"]
    assert sorted(n for m in bracket[:3] for n in m["tables"]) == [1, 2, 3, 4, 5, 6]
    assert json.loads(json.dumps(result)) == result


def test_a_cell_that_names_a_text_names_it_in_both_orders():
    (row,) = read_rows({"aspect_1": {"only_1": "unlike response 2, warm"}}, ["Tone"])
    assert row["only_a"] == "unlike response B, warm"
    assert "none | unlike response 1, warm |" in in_prompt([row], "BA")


@for_each(
    ("cell", "told"),
    [
        ("uprzejma jak odpowiedź 2", True),
        ("답변 1보다 길다", True),
        ("مثل الإجابة ٢", True),
        ("उत्तर १ जैसा", True),
        ("names 12 sources of 2026", False),
    ],
)
def test_cells_that_may_number_texts_are_told_apart_where_the_order_is_turned(cell, told):
    _, model = judged(answers={"table": lambda prompt: rows(prompt, cell)}, orders="strict")
    asked = [p for p in model.prompts if step_of(p) == "preference"]
    # Both are asked at once: which comes first is not said.
    assert sorted("1 is response 2 here" in prompt for prompt in asked) == [False, told]


def test_tables_and_aspects_are_sampled_with_distinct_seeds(serve):
    server = serve(lambda call: reply(respond(call.prompt)))
    judge = create_sc2_judge(chat(server), samples=4, aspect_samples=3)
    judge.invoke(PAIR)
    calls = [(step_of(call.prompt), call.body) for call in server.calls]
    for step, count in (("aspects", 3), ("table", 4)):
        bodies = [body for name, body in calls if name == step]
        assert len({body["seed"] for body in bodies}) == count
        assert {body["temperature"] for body in bodies} == {0.7}
    rest = [body for name, body in calls if name in {"match", "preference"}]
    assert {body["temperature"] for body in rest} == {0.0}
    assert all("seed" not in body for body in rest)


def with_label(text, logprob):
    """Answer with the label as a token of its own."""
    at = text.rindex('"preferred": "') + len('"preferred": "')
    pieces = [(text[:at], -3.0), (text[at], logprob), (text[at + 1 :], -2.0)]
    return reply(with_logprobs(*((piece, math.exp(value)) for piece, value in pieces)))


def labelled(logprob):
    def behave(call):
        text = respond(call.prompt).replace("SEED", str(call.body.get("seed")))
        return with_label(text, logprob) if call.body.get("logprobs") else reply(text)

    return behave


@pytest.mark.parametrize(("pair", "score"), [(PAIR, 0.8), (SWAPPED, 0.2)])
def test_the_score_is_the_probability_of_the_label(serve, pair, score):
    judge = create_sc2_judge(chat(serve(labelled(math.log(0.8)))), aspects=ASPECTS, samples=1)
    verdict = judge.invoke(pair)["verdict"]
    assert verdict["score"] == pytest.approx(score)
    assert verdict["scores"] == {"A": pytest.approx(score), "B": pytest.approx(1 - score)}
    assert verdict["confidence"] == pytest.approx(0.8)
    assert verdict["confidence_source"] == "logprobs"


def test_a_label_that_the_format_forced_is_still_what_is_preferred(serve):
    judge = create_sc2_judge(chat(serve(labelled(-9.0))), aspects=ASPECTS, samples=1)
    verdict = judge.invoke(PAIR)["verdict"]
    assert verdict["preference"] == "A"
    assert 0.5 < verdict["score"] < 0.52
    assert verdict["confidence"] == pytest.approx(math.exp(-9))


def test_both_orders_show_the_table_in_slots_and_find_flips():
    result, model = judged(samples=1, orders="strict")
    assert result["verdict"]["flipped"] is False
    swapped = model.prompts[-1] if "bad" in responses(model.prompts[-1])[0] else model.prompts[-2]
    assert re.search(r"\| Tone \| on topic \d+ \| bad reason \| good reason \|", swapped)
    first = json.dumps({"comparison": "x", "preferred": "1"})
    for rule in ("strict", "lenient", "score_mean"):
        verdict = judged(samples=1, orders=rule, answers={"preference": first})[0]["verdict"]
        assert (verdict["preference"], verdict["score"], verdict["flipped"]) == ("tie", 0.5, True)


@for_each("shots", [0, 3, 5])
def test_worked_examples_stand_in_the_preference_prompt(shots):
    _, model = judged(samples=1, shots=shots)
    assert len(re.findall(r"^Example \d\nRequest:", model.prompts[-1], re.M)) == shots
    assert model.prompts[-1].count("| aspect | both |") == shots + 1


def test_instructions_and_turns_reach_no_table_and_no_comparison():
    """Both are to look at the texts or tables alone, not at what is to be preferred."""
    turns = [{"role": "user", "content": text} for text in ("Name a prime.", "Another?")]
    _, model = judged({**PAIR, "input": turns}, samples=2, aspects=None, instructions="Be kind.")
    for words in ("Be kind.", "Only the responses to the last turn are judged"):
        assert {step_of(p) for p in model.prompts if words in p} == {"aspects", "preference"}
    assert {"table", "match"} < set(steps(model))


def test_a_reference_is_shown_where_the_preference_is_asked_and_nowhere_else():
    _, model = judged({**PAIR, "reference": "the best reason"}, samples=2, aspects=None)
    steps_with_it = {step_of(each) for each in model.prompts if "the best reason" in each}
    assert steps_with_it == {"preference"}
    tags = {tag for each in model.prompts for tag in re.findall(r"<request-(\w+)>", each)}
    assert len(tags) == 1


def test_the_comparator_sees_two_tables_and_neither_request_nor_texts():
    _, model = judged(samples=2)
    prompt = next(p for p in model.prompts if step_of(p) == "match")
    assert re.findall(r"^<(\w+-\d)-\w+>", prompt, re.M) == ["table-1", "table-2"]
    assert PAIR["input"] not in prompt
    assert prompt.count("| aspect | both |") == 3


def test_online_aspects_are_what_the_samples_agree_on():
    proposals = iter([["Tone"], ["tones", "Wit"], ["Depth", "the tone"], ["Wit", "Speed"]])

    def aspects(prompt):
        return json.dumps({"reasoning": "", "aspects": next(proposals)})

    result, _ = judged(
        aspects=None, aspect_samples=4, n_aspects=2, samples=1, answers={"aspects": aspects}
    )
    # Samples are asked at the same time: which of the forms of a word comes first is open.
    assert [normal_form(aspect) for aspect in result["aspects"]] == ["tone", "wit"]
    assert set(result["aspects"]) <= {
        name for each in result["proposals"] for name in each["aspects"]
    }
    assert len(result["proposals"]) == 4


# Cases that must be right.


@for_each("orders", ["none", "strict"])
def test_if_every_table_is_invalid_the_texts_are_compared_directly(orders):
    result, model = judged(answers={"table": "no"}, samples=3, repairs=0, orders=orders)
    assert result["verdict"]["preference"] == "A"
    assert reasons(result) == [("table", "unparsable")] * 3 + [("table", "missing")]
    assert "directly" in result["verdict"]["rationale"]
    assert result["table"] is None
    assert result["bracket"] == []
    assert "match" not in steps(model)
    assert "<table-" not in model.prompts[-1]
    assert len(model.prompts) == 3 + (1 if orders == "none" else 2)


def test_without_aspects_the_texts_are_compared_directly():
    result, model = judged(aspects=None, aspect_samples=2, repairs=0, answers={"aspects": ""})
    assert steps(model) == ["aspects", "aspects", "preference"]
    assert result["verdict"]["preference"] == "A"
    assert ("table", "missing") in reasons(result)


@for_each(("came", "valid"), [((2,), False), ((2, 3), True)])
def test_a_row_that_is_missing_is_filled_up_and_most_must_have_come(came, valid):
    row = {"common": "c", "only_1": "x", "only_2": ""}
    table = json.dumps({f"aspect_{n}": row for n in came})
    result, _ = judged(aspects=list("abc"), answers={"table": table}, samples=1, repairs=0)
    assert result["tables"][0]["valid"] is valid
    if valid:
        assert [list(row.values()) for row in result["table"]["rows"]] == [
            ["a", "none", "none", "none"],
            ["b", "c", "x", "none"],
            ["c", "c", "x", "none"],
        ]
        assert reasons(result) == [("table", "missing")]


def test_a_cell_that_holds_a_word_for_nothing_may_be_about_it():
    (row,) = read_rows({"aspect_1": {"common": "null", "only_1": "Na", "only_2": "None."}}, ["x"])
    assert (row["common"], row["only_a"], row["only_b"]) == ("null", "Na", "none")


@for_each("cells", [("none", "-", "N/A"), ("немає", "немає", "немає"), ("なし", "なし", "なし")])
def test_a_table_that_says_nothing_is_not_valid(cells):
    def table(prompt):
        return rows(prompt, *cells)

    result, _ = judged(answers={"table": table}, samples=1)
    assert reasons(result) == [("table", "empty"), ("table", "missing")]


def test_a_long_cell_is_cut_before_it_is_compared_and_the_verdict_says_so():
    def table(prompt):
        return rows(prompt, f"x {prompt.count('x')}" * 500)

    result, model = judged(answers={"table": table}, samples=2)
    # Both tables have cells of more than 800 characters on both aspects.
    assert reasons(result) == [("table", "input_cut")] * 2
    cells = [row["only_a"] for each in result["tables"] for row in each["rows"]]
    assert all(700 < len(cell) <= 800 and cell.endswith(" …") for cell in cells)
    shown = [prompt for prompt in model.prompts if step_of(prompt) == "preference"]
    assert all(len(prompt) < 6_000 for prompt in shown)
    assert result["verdict"]["preference"] == "A"


@for_each(
    ("inference", "winners"),
    # Where both orders are drawn, the first of identical tables wins each once.
    [("tournament", None), ("exact", [2, 1])],
)
def test_identical_tables_are_not_compared(inference, winners):
    one = json.dumps({f"aspect_{n}": {"common": "x", "only_1": "y", "only_2": "z"} for n in (1, 2)})
    result, model = judged(samples=2, inference=inference, answers={"table": one})
    assert steps(model) == ["table", "table", "preference"]
    assert {match["decided_by"] for match in result["bracket"]} == {"identical"}
    assert {match["asked"] for match in result["bracket"]} == {False}
    if winners:
        assert sorted(match["winner"] for match in result["bracket"]) == sorted(winners)


def test_the_cells_of_a_table_share_the_length_that_a_local_model_has_for_texts():
    # Three strings of 160 characters over 15 cells; of 500; and never less than 24.
    for rows, limit, cell in ((5, 160, 32), (5, 500, 100), (8, 160, 24), (5, None, None)):
        whole, _ = table_shapes(rows, limit)
        properties = json_schema(whole, limit)["properties"]["aspect_1"]["properties"]
        assert properties["common"].get("maxLength") == cell


@for_each("text", ["neither", "3", "", None])
def test_a_comparator_that_says_neither_is_replaced_by_a_coin_and_reported(text):
    answer = json.dumps({"more_consistent": text, "justification": "x"})
    result, _ = judged(answers={"match": answer}, samples=4, repairs=0)
    assert {m["decided_by"] for m in result["bracket"]} == {"coin"}
    assert reasons(result) == [("match", "invalid_label")] * 3
    assert "won: 3 comparisons, 3 settled by a coin." in result["verdict"]["rationale"]
    assert {m["asked"] for m in result["bracket"]} == {True}
    assert result["verdict"]["preference"] == "A"
    again, _ = judged(answers={"match": answer}, samples=4, repairs=0)
    assert again["bracket"] == result["bracket"]


def test_in_the_papers_wording_the_comparator_sees_the_texts_and_a_coin_breaks_its_ties():
    even = json.dumps({"more_consistent": "tie", "justification": "x"})
    result, model = judged(answers={"match": even}, samples=4, wording="paper")
    assert [match["why"] for match in result["bracket"]] == ["equally consistent"] * 3
    assert reasons(result) == []
    prompt = next(p for p in model.prompts if step_of(p) == "match")
    shown = [PAIR["input"], PAIR["output_a"], PAIR["output_b"]]
    assert all(text in prompt for text in shown)


def test_aspects_that_say_the_same_are_one_and_too_many_are_cut():
    result, _ = judged(aspects=["Tone", "the tones", "- Depth.", "tone"], samples=1)
    assert result["aspects"] == ["Tone", "- Depth."]
    many = json.dumps({"reasoning": "", "aspects": [f"aspect {c}" for c in "abcdefgh"]})
    result, _ = judged(aspects=None, n_aspects=3, samples=1, answers={"aspects": many})
    assert result["aspects"] == ["aspect a", "aspect b", "aspect c"]


BOTH = " and ".join(json.dumps({"comparison": "x", "preferred": slot}) for slot in "12")


@for_each("text", ["Preferred: A or B", '{"comparison": "x", "preferred": "A or B"}', BOTH])
def test_a_preference_that_names_both_labels_is_none(text):
    result, model = judged(samples=1, answers={"preference": text})
    assert result["verdict"]["preference"] is None
    assert result["verdict"]["score"] is None
    assert reasons(result)[0][0] == "preference"
    assert steps(model).count("preference") == 2


# Running it.


class Crash(BaseException):
    pass


@for_each("crash_at", ["table", "match", "preference"])
def test_a_crash_is_not_paid_twice(crash_at):
    prompts_paid = []
    fragile = [True]

    def said(prompt):
        if fragile and step_of(prompt) == crash_at:
            fragile.clear()
            raise Crash
        prompts_paid.append(step_of(prompt))
        return respond(prompt)

    judge = create_sc2_judge(
        FakeChatModel(replies=said), aspects=ASPECTS, samples=4, checkpointer=InMemorySaver()
    )
    config: RunnableConfig = {"configurable": {"thread_id": "1"}, "max_concurrency": 1}
    with pytest.raises(Crash):
        judge.invoke(PAIR, config)
    result = judge.invoke(None, config)
    assert result["verdict"]["preference"] == "A"
    assert len(prompts_paid) == 8 == result["verdict"]["usage"]["calls"]


@for_each(
    ("options", "message"),
    [
        ({"inference": "best"}, r"`inference` must be one of 'tournament', .* got 'best'"),
        ({"aspects": ["Tone", "!!!"]}, r"each with a word, .* got \['Tone', '!!!'\]"),
        ({"aspects": {"aspects": "Tone"}}, "`aspects` must be a list"),
        ({"aspects": "no such"}, "there are no learned aspects in 'no such'"),
        ({"task": {"question": "q", "qualty": "x"}}, r"'quality'}, .* got .*'qualty'"),
        ({"task": {"question": " "}}, "the `question` not empty"),
        ({"shots": 6}, "`shots` must be between 0 and 5, got 6"),
        ({"examples": [1], "shots": 1}, r"`examples` must be a list of .*, got \[1\]"),
        (
            {"examples": [{**WORKED[0], "rows": [{"aspect": "x"}]}], "shots": 1},
            r"'rows' \(each with 'aspect', 'common', 'only_a', 'only_b'\)",
        ),
    ],
)
def test_options_are_checked_with_the_rule_and_the_value(options, message):
    with pytest.raises(OptionError, match=message):
        create_sc2_judge(FakeChatModel(), **options)


@for_each(("inference", "count"), [("tournament", 2), ("exact", 6)])
def test_an_invalid_table_costs_no_comparison_in_any_mode(inference, count):
    """Without the one invalid table: 2 matches of 3 tables, or all of them met twice."""

    def table(prompt, counter=[]):  # noqa: B006 - counts its own calls
        counter.append(1)
        return "no" if len(counter) == 3 else None

    result, model = judged(answers={"table": table}, samples=4, repairs=0, inference=inference)
    asked = sum(match["asked"] for match in result["bracket"])
    assert asked == steps(model).count("match") == count
    invalid = next(t["number"] for t in result["tables"] if not t["valid"])
    assert result["table"]["number"] != invalid
    assert all(invalid not in match["tables"] for match in result["bracket"])
