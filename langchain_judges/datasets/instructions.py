"""Pairs of answers to instructions: LLMBar, PandaLM, JudgeBench, RewardBench 2, Auto-J."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_judges.datasets.rows import RowStream, numbered, plurality, shuffled
from langchain_judges.datasets.source import (
    NO_TEXT,
    Hub,
    Source,
    SourceRecord,
    by_number,
    digest,
)
from langchain_judges.errors import OptionError
from langchain_judges.rows.files import read_table

JUDGE_BENCH = Hub("ScalerLab/JudgeBench", split="gpt")
REWARD_BENCH_2 = Hub("allenai/reward-bench-2", split="test")


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
        source: The hub's set, a copy of it, a clone of ScalerLab/JudgeBench, or one file.
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
    """Read a file, the files of a clone, or the hub's set."""
    model = JUDGE_BENCH_MODELS[split or "gpt"]
    pattern = f"dataset=judgebench,response_model={model}*.jsonl"
    files = [*source.matching(f"data/{pattern}"), *source.matching(pattern)]
    # The files of judges' verdicts are named alike, but are not the set.
    files = [file for file in files if "judge_name=" not in file.name]
    if source.path is not None and source.path.is_file():
        files = [source.path]
    if not files:
        yield from source.hub(Hub(JUDGE_BENCH.repo, split=split or "gpt"))
        return
    count = 0
    for record in (record for file in files for record in read_table(file)):
        if split is None or str(record["response_model"]).startswith(model):
            count += 1
            yield record
    if not count:
        raise OptionError(f"no pair in {files[0]} is of the split {split!r}")


def reward_bench_2(source: Source, seed: int) -> RowStream:
    """Read RewardBench 2 as pairs: each right completion against each wrong one.

    Its own score counts a prompt only if a right completion beats every wrong one: group
    by `group` for that. Its subset of ties (`category` "Ties") asks for more than pairs.
    """
    for record in source.hub(REWARD_BENCH_2):
        for i, right in enumerate(record["chosen"]):
            for j, wrong in enumerate(record["rejected"]):
                key = f"rewardbench2:{record['subset']}:{record['id']}:{i}:{j}"
                row = shuffled(seed, key, right, wrong)
                yield row | {
                    "input": record["prompt"],
                    "group": f"{record['subset']}:{record['id']}",
                    "category": record["subset"],
                }


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
