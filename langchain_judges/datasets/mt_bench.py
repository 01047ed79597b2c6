"""MT-Bench: people's votes on pairs of answers, 200 pairs of them, and the questions alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_judges.datasets.rows import RowStream, numbered, plurality
from langchain_judges.datasets.source import Hub, Source, SourceRecord, coin
from langchain_judges.verdict import Preference

MT_BENCH = Hub("lmsys/mt_bench_human_judgments", split="human")

MT_BENCH_CATEGORIES = (
    "writing",
    "roleplay",
    "reasoning",
    "math",
    "coding",
    "extraction",
    "stem",
    "humanities",
)
"""Ten questions each, numbered from 81 on."""


def mt_bench_category(question: int) -> str:
    """Return the category of an MT-Bench question by its number, 81 to 160."""
    return MT_BENCH_CATEGORIES[(question - 81) // 10]


def mt_bench(
    source: Source,
    seed: int,
    *,
    voters: Literal["experts", "all"] = "experts",
    references: Mapping[int, Sequence[str]] | None = None,
) -> RowStream:
    """Read MT-Bench votes: one row for each question, pair of models and turn.

    `human_votes` has every person's vote by identity, "tie (inconsistent)" as a tie; `label` is
    the plurality. The second turn is given as messages. A is the first or the second model
    of the alphabet, by the seed.

    Args:
        source: The hub's set, or a copy.
        seed: Says which model is A.
        voters: `"experts"` leaves the authors' votes out, as the published agreement does.
        references: Answers to the turns by question number; a row of the first turn gets
            the first, one of the second both.
    """
    rows: dict[str, dict[str, Any]] = {}
    for record in source.hub(MT_BENCH):
        judge = record["judge"]
        if not isinstance(judge, str) or not (voters == "all" or judge.startswith("expert")):
            continue
        models = sorted([record["model_a"], record["model_b"]])
        key = f"mt_bench:{record['question_id']}:{'|'.join(models)}:{record['turn']}"
        swap = coin(seed, key) != (models[0] == record["model_b"])
        row = rows.setdefault(key, _mt_bench_row(key, record, swap))
        row["human_votes"].append(_mt_bench_vote(record, swap))
    for row in rows.values():
        row["label"] = plurality(row["human_votes"])
        if references and int(row["group"]) in references:
            row["reference"] = _reference(references[int(row["group"])][: row["turn"]])
        yield row


def _reference(answers: Sequence[str]) -> str:
    if len(answers) == 1:
        return answers[0]
    return "\n\n".join(f"[Turn {turn}]\n{text}" for turn, text in enumerate(answers, 1))


def _mt_bench_row(key: str, record: SourceRecord, swap: bool) -> dict[str, Any]:
    turn = record["turn"]
    texts: dict[str, Any] = {}
    for side, name in zip("ab", "ba" if swap else "ab", strict=True):
        turns = record[f"conversation_{name}"][: 2 * turn]
        answers = [m for m in turns if m["role"] == "assistant"]
        texts["input"] = [dict(m) for m in turns if m["role"] == "user"]
        texts[f"output_{side}"] = [dict(m) for m in answers]
    if turn == 1:
        texts = {field: messages[0]["content"] for field, messages in texts.items()}
    names = [record["model_a"], record["model_b"]]
    return {
        "id": key,
        **texts,
        "group": str(record["question_id"]),
        "category": mt_bench_category(record["question_id"]),
        "turn": turn,
        "systems": names[::-1] if swap else names,
        "human_votes": [],
    }


def _mt_bench_vote(record: SourceRecord, swap: bool) -> Preference:
    if record["winner"] not in {"model_a", "model_b"}:
        return "tie"
    return "A" if (record["winner"] == "model_a") != swap else "B"


def mt_bench_200(source: Source, seed: int) -> RowStream:
    """Read the 200 first-turn pairs with a majority label that LLMBar's authors drew."""
    for item in source.lines("items.jsonl.gz"):
        row = numbered(item, f"mtbench_human200:{item['idx']}")
        row |= {
            "group": str(item["question_id"]),
            "category": item["category"],
            "turn": 1,
            "systems": [item["model_1"], item["model_2"]],
        }
        if item.get("reference"):
            row["reference"] = item["reference"]
        yield row


def mt_bench_questions(source: Source, seed: int) -> RowStream:
    """Read the 80 questions with their reference answers; there are no answers to judge.

    FastChat has them in `fastchat/llm_judge/data/mt_bench`.
    """
    references: dict[int, list[str]] = {}
    answers = ("reference_answers_gpt4.jsonl", "reference_answer/gpt-4.jsonl")
    if any(map(source.has, answers)):
        for record in source.lines(*answers):
            references[record["question_id"]] = record["choices"][0]["turns"]
    for record in source.lines("questions.jsonl", "question.jsonl"):
        number = record["question_id"]
        yield {
            "id": f"mtbench:{number}",
            "input": [{"role": "user", "content": turn} for turn in record["turns"]],
            "category": record["category"],
            "group": str(number),
            "references": references.get(number, []),
        }
