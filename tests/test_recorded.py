"""Recorded verdicts of the cookbook as a run's rows, and as a judge."""

from __future__ import annotations

from cookbook import recorded_judges as judges
from langchain_judges import judge_many
from langchain_judges.runs.run_row import judged_row
from tests.cases import for_each


def record(order: str, preference: str | None, key: str = "1", **changes: object) -> dict:
    said = {"order": order, "preference": preference, "raw": f"said {preference}"}
    return {"id": key, "judge": "j", "setting": "s", **said, **changes}


@for_each(
    ("rule", "first", "second", "preference", "score", "flipped"),
    [
        ("strict", "A", "A", "A", 1.0, False),
        ("strict", "A", "B", "tie", 0.5, True),
        ("score_mean", "B", "tie", "B", 0.25, True),
        ("none", "B", "A", "B", 0.0, None),
    ],
)
def test_two_orders_become_one_verdict(rule, first, second, preference, score, flipped) -> None:
    (row,) = judges.replay([record("AB", first), record("BA", second)], orders=rule)
    verdict = row["verdict"]
    assert (verdict["preference"], verdict["score"], verdict["flipped"]) == (
        preference,
        score,
        flipped,
    )
    assert row["by_order"]["AB"] == {"preference": first}
    assert verdict["rationale"] == f"said {first}"


@for_each("unread", [("AB",), ("AB", "BA")])
def test_an_unread_order_is_not_judged(unread: tuple[str, ...]) -> None:
    records = [record(o, None if o in unread else "A") for o in ("AB", "BA")]
    (row,) = judges.replay(records)
    assert not judged_row(row)
    assert [f["reason"] for f in row["verdict"]["failures"]] == ["unparsable"] * len(unread)


def test_judges_are_kept_apart_and_rows_carry_what_is_known() -> None:
    records = [record("AB", "A"), record("AB", "B", judge="k"), record("AB", "A", key="2")]
    fields = {"id": "1", "label": "A", "group": "g", "human_votes": ["A"], "input": "not kept"}
    rows = list(judges.replay(records, [fields]))
    names = [(row["judge"]["model"], row["id"], row["index"]) for row in rows]
    assert names == [("j", "1", 0), ("j", "2", 1), ("k", "1", 0)]
    assert (rows[0]["label"], rows[0]["group"], rows[0]["human_votes"]) == ("A", "g", ["A"])
    assert "input" not in rows[0]
    assert len({row["key"] for row in rows}) == 3


PAIR = {"input": "Q", "output_a": "x", "output_b": "y"}


def test_a_recorded_judge_runs_as_every_judge_does(tmp_path) -> None:
    judge = judges.recorded_judge([record("AB", "A"), record("BA", "A"), record("AB", "B", "2")])
    fields = {"label": "A", "turn": 2, "human_votes": ["A", "tie"]}
    pairs = [{**PAIR, **fields, "id": key} for key in ("1", "2", "3")]
    out = tmp_path / "verdicts.jsonl"
    rows = list(judge_many(judge, pairs, records=out, progress=False))
    replayed = list(judges.replay([record("AB", "A"), record("BA", "A"), record("AB", "B", "2")]))
    assert [row["verdict"] for row in rows[:2]] == [row["verdict"] for row in replayed]
    assert rows[0].keys() == {*replayed[0].keys(), *fields, "content", "kind", "judged"}
    assert rows[0]["human_votes"] == ["A", "tie"]
    assert rows[2]["verdict"]["failures"][0]["reason"] == "missing"
    again = judge_many(judge, pairs, records=out, progress=False)
    assert len(list(again)) == 3
    assert again.summary.resumed == 2
