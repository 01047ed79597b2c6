"""The study of Branch-Solve-Merge, on the recorded labels of MT-Bench and with fake models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import protocol_bsm as protocol
import pytest
from bsm_figures import figures, human_agreement, plan_likeness
from protocols import Replies, sharing

from langchain_judges.methods.registry import METHODS
from tests.fakes import FakeChatModel, judged_by
from tests.model_server import responses, scores

CATEGORIES = (
    *("writing", "roleplay", "reasoning", "math"),
    *("coding", "extraction", "stem", "humanities"),
)


def scorer(decide: Callable[[str, str], tuple[int, int]]) -> FakeChatModel:
    """Plan as usual, and score both responses by `decide`."""
    plan = judged_by(lambda _: 3)

    def respond(prompt: str) -> str:
        if '"preference"' not in prompt and '"score_1"' not in prompt:
            return plan(prompt)
        first, second = decide(*responses(prompt))
        if '"preference"' in prompt:
            choice = "1" if first > second else "2"
            return json.dumps({"explanation": "as told", "preference": choice})
        return scores(first, second)

    return FakeChatModel(replies=respond)


def longer(first: str, second: str) -> tuple[int, int]:
    return (5, 1) if len(first) > len(second) else (1, 5)


def first_slot(first: str, second: str) -> tuple[int, int]:
    return 5, 1


def lines(results: dict, number: int) -> dict[tuple[str, str], dict]:
    table = next(table for table in results["tables"] if table["number"] == number)
    return {(line["setting"], line["category"]): line for line in table["lines"]}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    """Return five pairs of each category, in the form of `load("mtbench_human200")`."""
    return [
        {
            "id": f"mtbench_human200:{n}",
            "input": f"What is {n} good for?",
            "output_a": "It is good for a start. " * (1 + n % 3),
            "output_b": "Nothing much comes of it, whatever people say.",
            "label": "AAB"[n % 3],
            "group": str(81 + n),
            "category": CATEGORIES[n % 8],
            "turn": 1,
            "systems": ["gpt-4" if n % 16 < 8 else "vicuna-13b", "llama-13b"],
        }
        for n in range(40)
    ]


@pytest.mark.figures
def test_a_judge_of_slots_is_all_position_bias_and_all_ties(rows, tmp_path: Path) -> None:
    study_result = protocol.study_tables(scorer(first_slot), rows, tmp_path, numbers=[8])
    for line in lines(study_result, 8).values():
        # No label is a tie, so that ties agree with nobody.
        assert line["overall"] == line["turn 1"]
        assert (line["overall"]["Ag"], line["overall"]["PB"]) == (0.0, 1.0)
        assert line["overall"]["LB"] == 1.0
        assert "turn 2" not in line


@pytest.mark.figures
def test_every_table_is_there_and_a_second_run_asks_nothing(
    rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fake model knows one pair of scores to a reply, and this baseline asks for several.
    monkeypatch.setattr(protocol, "METHODS", set(METHODS) - {"plan_solve"})
    model = scorer(longer)
    study_result = protocol.study_tables(model, rows, tmp_path, own="gpt-4")
    assert [table["number"] for table in study_result["tables"]] == [
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        9,
        10,
        11,
    ]
    again = scorer(longer)
    assert protocol.study_tables(again, rows, tmp_path, own="gpt-4") == study_result
    assert (len(model.prompts) > 0, len(again.prompts)) == (True, 0)


def test_a_pair_of_several_tables_is_judged_once(rows, tmp_path: Path) -> None:
    writing = [row for row in rows if row["category"] == "writing"]
    replies = Replies(tmp_path / "replies.jsonl")
    model = scorer(longer)
    shared = sharing(model, replies)
    protocol.study_tables(shared, writing, tmp_path, numbers=[8])
    calls = len(model.prompts)
    # One plan for both and ten scores, with five samples fifty; a pair of equal texts costs
    # nothing.
    assert calls == len(replies) == len(writing) * (11 + 50)
    study_result = protocol.study_tables(shared, writing, tmp_path, numbers=[11])
    ten = lines(study_result, 11)["BSM 1-10", "writing"]["overall"]["pairs"]
    assert len([p for p in model.prompts[calls:] if '"criteria"' in p]) >= ten


def test_a_study_can_be_narrowed_to_some_lines(rows, tmp_path: Path) -> None:
    model = scorer(longer)
    study_result = protocol.study_tables(
        model, rows, tmp_path, numbers=[1, 10], settings=["BSM 2 branches"]
    )
    # Of Table 1 nothing is left; a plan of three is cut to two criteria.
    assert [table["number"] for table in study_result["tables"]] == [10]
    assert list(lines(study_result, 10)) == [("BSM 2 branches", "writing")]
    # Five pairs of writing: a plan, and two criteria in both orders.
    assert len(model.prompts) == 5 * (1 + 2 * 2)


def test_a_later_run_of_another_table_asks_for_no_reply_again(rows, tmp_path: Path) -> None:
    math = [row | {"category": "reasoning"} for row in rows[:2]]
    for number in (4, 7):
        model = scorer(longer)
        shared = sharing(model, Replies(tmp_path / "replies.jsonl"))
        protocol.study_tables(shared, math, tmp_path / str(number), numbers=[number])
        # Relative asks twice a pair, BSM once for the plan and ten times for scores; without a
        # reference the second table asks the very same.
        assert len(model.prompts) == (2 * (2 + 11) if number == 4 else 0)


def test_the_self_enhancement_table_divides_by_its_own_size(rows, tmp_path: Path) -> None:
    study_result = protocol.study_tables(
        scorer(first_slot), rows, tmp_path, numbers=[2], own="gpt-4"
    )
    own = [r for r in rows if r["category"] == "writing" and "gpt-4" in r["systems"]]
    cell = lines(study_result, 2)["BSM", "writing"]["overall"]
    assert len(own) == 3
    assert (cell["pairs"], cell["both_orders"], cell["PB"]) == (len(own), len(own), 1.0)


def test_what_cannot_be_judged_is_left_out_and_said(
    rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "METHODS", set(METHODS) - {"absolute"})
    notes: list[str] = []
    study_result = protocol.study_tables(
        scorer(longer), rows[:20], tmp_path, numbers=[1, 2], say=notes.append
    )
    assert [table["number"] for table in study_result["tables"]] == [1]
    assert not [key for key in lines(study_result, 1) if key[0] == "absolute"]
    assert "Table 2 needs --self" in notes[0]
    assert any("absolute is left out" in words for words in notes)


def test_references_are_shown_in_table_4_and_not_in_table_7(rows, tmp_path: Path) -> None:
    results = [row for row in rows if row["category"] == "reasoning"][:3]
    reasoning = [row | {"reference": "The sages say so."} for row in results]
    for number, expected in ((4, True), (7, False)):
        model = scorer(longer)
        protocol.study_tables(model, reasoning, tmp_path, numbers=[number])
        solves = [prompt for prompt in model.prompts if '"score_1"' in prompt]
        mentions = ["The sages say so." in prompt for prompt in solves]
        assert mentions == [expected] * len(solves)
        assert len(solves) >= 30


def test_a_hundred_pairs_are_drawn_the_same_way_from_any_order() -> None:
    study = protocol.Study(7, "", ("math",), drawn=100)
    rows = [{"id": str(n), "category": "math"} for n in range(300)]
    pair_ids = protocol._select(study, rows, None, 0)
    back = protocol._select(study, rows[::-1], None, 0)
    assert len(pair_ids) == 100
    assert sorted(row["id"] for row in pair_ids) == sorted(row["id"] for row in back)
    assert pair_ids != protocol._select(study, rows, None, 1)


# ---- the figures, by hand


def sample(key: str, votes: str, a: str = "long text", b: str = "short") -> dict:
    cast = ["tie" if vote == "t" else vote for vote in votes]
    return {"id": key, "human_votes": cast, "output_a": a, "output_b": b, "turn": 1}


def result(preference: str | None, flipped: bool | None = False) -> dict:
    return {"verdict": {"preference": preference, "flipped": flipped}}


# Votes A, A, tie and the verdict A: two of three match; by majority one of one.
def test_agreement_matches_every_vote_and_ties_with_ties() -> None:
    rows = [sample("1", "AAt")]
    assert figures(rows, {"1": result("A")})["Ag"] == pytest.approx(2 / 3)
    assert figures(rows, {"1": result("tie")})["Ag"] == pytest.approx(1 / 3)
    assert figures(rows, {"1": result("A")}, majority=True)["Ag"] == 1.0


# Four votes for the shorter text B; the verdicts on them are B, A, tie, A: three are not B.
def test_length_bias_is_out_of_the_votes_for_the_shorter() -> None:
    rows = [sample("1", "BA"), sample("2", "B"), sample("3", "Bt"), sample("4", "B")]
    results = {"1": result("B"), "2": result("A"), "3": result("tie"), "4": result("A")}
    outcome = figures(rows, results)
    assert (outcome["LB"], outcome["for_the_shorter"]) == (0.75, 4)


def test_texts_of_equal_length_have_no_shorter_side() -> None:
    results = figures([sample("1", "AB", "same", "size")], {"1": result("A")})
    assert (results["LB"], results["for_the_shorter"]) == (None, 0)


# Of three pairs one flips and one was not judged: half of two; its votes match nothing.
def test_pairs_that_were_not_judged_match_no_vote_and_have_no_bias() -> None:
    rows = [sample("1", "A"), sample("2", "A"), sample("3", "BB")]
    results = {"1": result("A", True), "2": result("A"), "3": result(None, None)}
    outcome = figures(rows, results)
    assert (outcome["Ag"], outcome["votes"]) == (0.5, 4)
    assert (outcome["PB"], outcome["both_orders"], outcome["not_judged"]) == (0.5, 2, 1)
    assert outcome["for_the_shorter"] == 0


# Pairs of votes: A-A agree, A-tie twice do not, B-B agree: 2 of 4.
def test_people_agree_with_each_other_by_pairs_of_votes() -> None:
    results = human_agreement([sample("1", "AAt"), sample("2", "BB"), sample("3", "A")])
    assert results == {"agreement": 0.5, "pairs": 4}


def test_the_second_turn_is_measured_on_its_last_answer() -> None:
    def talk(*texts: str) -> list[dict]:
        return [{"role": "assistant", "content": text} for text in texts]

    row = sample("1", "AB") | {
        "output_a": talk("a very long first answer", "b"),
        "output_b": talk("x", "longer"),
    }
    results = figures([row], {"1": result("B")})
    assert (results["LB"], results["for_the_shorter"]) == (1.0, 1)


def test_a_table_of_votes_gives_both_turns_and_references(tmp_path: Path) -> None:
    common = {"group": "101", "category": "reasoning", "systems": ["m", "n"]}
    first = {**common, "id": "1", "turn": 1, "input": "Q1", "label": "tie", "reference": "R1"}
    second = {**common, "id": "2", "turn": 2, "input": "Q2", "label": "B", "reference": "R2"}
    pairs = [
        {**first, "output_a": "one", "output_b": "one", "human_votes": ["tie"]},
        {**second, "output_a": "x" * 9, "output_b": "y", "human_votes": ["B"]},
    ]
    path = tmp_path / "votes.jsonl"
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    rows = protocol._rows(path, None)
    study_result = protocol.study_tables(scorer(longer), rows, tmp_path / "out", numbers=[4])
    line = lines(study_result, 4)["BSM", "reasoning"]
    # Equal first answers are a tie, as the vote says; the second vote is for the shorter one.
    assert [line[turn]["Ag"] for turn in ("overall", "turn 1", "turn 2")] == [0.5, 1.0, 0.0]
    assert (line["turn 2"]["LB"], line["turn 2"]["for_the_shorter"]) == (1.0, 1)


def test_the_program_prints_and_keeps_its_tables(
    serve, small_sets, tmp_path: Path, capsys
) -> None:
    server = serve()
    study_result = protocol.main(
        model="openai:fake",
        base_url=server.url,
        data=small_sets,
        out=tmp_path,
        only="3,5",
        limit=2,
    )
    printed = capsys.readouterr().out
    assert "Table 5. Other categories" in printed
    assert json.loads((tmp_path / "tables.json").read_text()) == study_result
    assert lines(study_result, 5)["BSM", "stem"]["overall"]["pairs"] == 2


def test_a_table_by_reference_says_where_there_is_none(rows, tmp_path):
    notes: list[str] = []
    judge = scorer(longer)
    study_result = protocol.study_tables(
        judge, rows, tmp_path / "a", numbers=[4], say=notes.append
    )
    assert study_result["tables"][0]["title"] == "With references: none given"
    assert notes == ["Table 4: no pair has a reference answer; judged without."]
    referenced = [{**row, "reference": "r"} for row in rows]
    study_result = protocol.study_tables(judge, referenced, tmp_path / "b", numbers=[4])
    size = study_result["tables"][0]["references"]
    assert (
        study_result["tables"][0]["title"]
        == f"With references: {size} of {size} pairs have one"
    )


def test_plans_are_compared_within_and_between_categories():
    # Two plans of writing share 1 of 3 names, and each shares 1 of 4 with math:
    # ("depth", "tone") and ("depth", "wit"): 1/3; with ("depth", "proof", "steps"): 1/4, 1/4.
    def judged(category, group, *names):
        row = {"category": category, "group": group, "turn": 1}
        return row, {"criteria": [{"name": name} for name in names]}

    outcome = plan_likeness(
        [
            judged("writing", 1, "Depth", "Tone"),
            judged("writing", 1, "Depth", "Tone"),
            judged("writing", 2, "Depth", "Wit"),
            judged("math", 3, "Depth", "Proof", "Steps"),
        ]
    )
    assert outcome == {"plans": 3, "within": pytest.approx(1 / 3), "between": 0.25}
