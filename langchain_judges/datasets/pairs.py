"""Pairs of answers: LLMBar, PandaLM, JudgeBench, Auto-J, MT-Bench, helpful dialogues."""

from __future__ import annotations

import re
from collections.abc import Iterator

from langchain_judges.datasets.source import Source, by_number, digest, numbered, plurality
from langchain_judges.errors import OptionError
from langchain_judges.rows.files import read_table
from langchain_judges.runs.columns import NO_TEXT, RowStream, SourceRecord, shuffled


def llmbar(source: Source, seed: int) -> RowStream:
    """Read LLMBar: 419 pairs with an objective label; the subset is the category.

    Args:
        source: A folder with `items.jsonl.gz`, or a clone of princeton-nlp/LLMBar.
        seed: Not used: the source mixes the slots.
    """
    for item in _llmbar_items(source):
        row = numbered(item, f"llmbar:{item['set']}:{item['idx']}")
        yield row | {"group": digest(item["input"]), "category": item["set"]}


def _llmbar_items(source: Source) -> Iterator[SourceRecord]:
    if not source.has("Dataset/LLMBar/Natural/dataset.json"):
        yield from source.lines("items.jsonl.gz")
        return
    for subset in ("Natural", "Neighbor", "GPTInst", "GPTOut", "Manual"):
        folder = subset if subset == "Natural" else f"Adversarial/{subset}"
        items = source.lines(f"Dataset/LLMBar/{folder}/dataset.json")
        for number, item in enumerate(items):
            yield {**item, "set": subset, "idx": number}


def pandalm(source: Source, seed: int) -> RowStream:
    """Read the PandaLM test set: three people's votes each, the majority as label.

    Args:
        source: A folder with `pandalm_testset.jsonl.gz`, or a clone of WeOpenML/PandaLM.
        seed: Not used: the source mixes the slots.
    """
    for item in source.lines("pandalm_testset.jsonl.gz", "data/testset-v1.json"):
        # The source writes a missing input as NaN.
        context = item["input"] if isinstance(item["input"], str) else ""
        task = f"{item['instruction']}\n\n{context}" if context else item["instruction"]
        votes = [item.get(f"annotator{n}") for n in (1, 2, 3)]
        people = item.get("human_labels") or votes
        preferences = [preference for v in people if (preference := by_number(v))]
        yield {
            "id": f"pandalm:{item['idx']}",
            "input": task,
            "output_a": _text(item["response1"]),
            "output_b": _text(item["response2"]),
            "label": plurality(preferences),
            "human_votes": preferences,
            "group": digest(task),
            "category": item["motivation_app"],
            "systems": item["cmp_key"].split("_", 1),
        }


def _text(response: object) -> str:
    """Return a response as text: the source has some answers as JSON's true and false."""
    return str(response).strip() or NO_TEXT


JUDGE_BENCH_MODELS = {"gpt": "gpt-4o", "claude": "claude-3-5-sonnet"}
"""How the names of a split's response models begin."""


def judge_bench(source: Source, seed: int, *, split: str | None = None) -> RowStream:
    """Read JudgeBench: pairs of answers by one model, one right and one wrong.

    Args:
        source: A clone of ScalerLab/JudgeBench, or one of its files.
        seed: Not used: the source mixes the slots.
        split: `"gpt"` (350 pairs by GPT-4o) or `"claude"` (270 by Claude 3.5 Sonnet); None
            is `"gpt"`, and of a single file all its pairs.

    Raises:
        OptionError: The split is another, or the file has no pair of it.
    """
    if split is not None:
        # Loaded on use: metrics load numpy, which reading a table does not need.
        from langchain_judges.metrics.inputs import one_of

        one_of("split", split, JUDGE_BENCH_MODELS)
    for record in _judge_bench_records(source, split):
        # The sources LiveBench and LiveCodeBench give their questions no number.
        number = record.get("original_id")
        question = digest(record["question"]) if number is None else number
        yield {
            "id": f"judgebench:{record['pair_id']}",
            "input": record["question"],
            "output_a": record["response_A"],
            "output_b": record["response_B"],
            "label": {"A>B": "A", "B>A": "B"}.get(record["label"], "tie"),
            "group": f"{record['source']}:{question}",
            "category": record["source"],
            "systems": [record["response_model"]] * 2,
        }


def _judge_bench_records(source: Source, split: str | None) -> Iterator[SourceRecord]:
    """Read a file, or the files of a clone."""
    model = JUDGE_BENCH_MODELS[split or "gpt"]
    pattern = f"dataset=judgebench,response_model={model}*.jsonl"
    files = [*source.matching(f"data/{pattern}"), *source.matching(pattern)]
    # The files of judges' verdicts are named alike, but are not the set.
    files = [file for file in files if "judge_name=" not in file.name]
    if source.path is not None and source.path.is_file():
        files = [source.path]
    if not files:
        raise OptionError(f"'judgebench' is read from data/{pattern}; {source.path} has none")
    count = 0
    for record in (record for file in files for record in read_table(file)):
        if split is None or str(record["response_model"]).startswith(model):
            count += 1
            yield record
    if not count:
        raise OptionError(f"no pair in {files[0]} is of the split {split!r}")


def auto_j(source: Source, seed: int) -> RowStream:
    """Read Auto-J's pairwise test set: 1,392 pairs of 58 scenarios.

    Args:
        source: The file, its folder, or a clone of GAIR-NLP/auto-j.
        seed: Not used: the source mixes the slots.
    """
    files = ("testdata_pairwise.jsonl", "data/test/testdata_pairwise.jsonl")
    for number, record in enumerate(source.lines(*files)):
        prompt = record.get("prompt") or record["instruction"]
        yield {
            "id": f"autoj:{number}",
            "input": prompt,
            "output_a": record["response 1"],
            "output_b": record["response 2"],
            "label": {0: "A", 1: "B", 2: "tie"}[record["label"]],
            "group": digest(prompt),
            "category": record["scenario"],
        }


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


_HH_TURN = re.compile(r"\n\n(Human|Assistant):")


def hh(source: Source, seed: int) -> RowStream:
    """Read Anthropic's preferences: the chosen against the rejected answer, slots shuffled.

    The messages both sides share are the input. Four of the 2,354 helpful pairs have an empty
    answer, which is shown as `NO_TEXT`.

    Args:
        source: A folder with `pairs.jsonl.gz`.
        seed: Says which answer is A.
    """
    for number, record in enumerate(source.lines("pairs.jsonl.gz")):
        key = f"{source.name}:{record.get('idx', number)}"
        row = shuffled(seed, key, record["chosen"], record["rejected"])
        yield row | {"input": messages(record["prompt"]), "group": digest(record["prompt"])}


def messages(dialogue: str) -> str | list[dict[str, str]]:
    """Read `Human: … Assistant: …` as chat messages; a single turn is its text alone."""
    parts = _HH_TURN.split(f"\n\n{dialogue.strip()}")
    turns = [
        {"role": "user" if who == "Human" else "assistant", "content": text.strip() or NO_TEXT}
        for who, text in zip(parts[1::2], parts[2::2], strict=True)
    ]
    return turns[0]["content"] if len(turns) == 1 else turns
