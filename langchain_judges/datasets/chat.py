"""Sets of answers to questions and instructions: MT-Bench, LLMBar, PandaLM and others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from langchain_judges.datasets.rows import RowStream, plurality, shuffled
from langchain_judges.datasets.source import (
    NO_TEXT,
    Hub,
    Source,
    SourceRecord,
    by_number,
    coin,
    digest,
)
from langchain_judges.errors import OptionError
from langchain_judges.rows.files import read_table
from langchain_judges.verdict import Preference

MT_BENCH = Hub("lmsys/mt_bench_human_judgments", split="human")
JUDGE_BENCH = Hub("ScalerLab/JudgeBench", split="gpt")
REWARD_BENCH_2 = Hub("allenai/reward-bench-2", split="test")

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
        row = _numbered(item, f"mtbench_human200:{item['idx']}")
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


def llmbar(source: Source, seed: int) -> RowStream:
    """Read LLMBar: 419 pairs with an objective label; the subset is the category.

    Args:
        source: A folder with `items.jsonl.gz`, or a clone of princeton-nlp/LLMBar.
        seed: Not used: the source mixes the slots.
    """
    for item in _llmbar_items(source):
        row = _numbered(item, f"llmbar:{item['set']}:{item['idx']}")
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


def _numbered(item: SourceRecord, key: str) -> dict[str, Any]:
    return {
        "id": key,
        "input": item["input"],
        "output_a": item["output_1"],
        "output_b": item["output_2"],
        "label": by_number(item["label"]),
    }


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
        people: list[Any] = item.get("human_labels") or votes
        preferences = [preference for v in people if (preference := by_number(v))]
        yield {
            "id": f"pandalm:{item['idx']}",
            "input": task,
            "output_a": _text(item["response1"]),
            "output_b": _text(item["response2"]),
            "label": plurality(preferences),  # type: ignore[arg-type]
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
        # Loaded on use: it loads numpy, which reading a table does not need.
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


_HH_TURN = re.compile(r"\n\n(Human|Assistant):")


def hh(
    source: Source, seed: int, *, tranche: str | None = None, split: str | None = None
) -> RowStream:
    """Read Anthropic's preferences: the chosen against the rejected answer, slots shuffled.

    The messages both sides share are the input; where the dialogues part before the last
    turn, an output goes on to its end. Four of the 2,354 helpful pairs have an empty
    answer, which is shown as `NO_TEXT`.

    Args:
        source: The hub's set, a copy, or a folder with `pairs.jsonl.gz`.
        seed: Says which answer is A.
        tranche: `"helpful-base"`, `"harmless-base"`, `"helpful-online"` or
            `"helpful-rejection-sampled"`; None: the first of these.
        split: `"test"` or `"train"`; None: `"test"`.

    Raises:
        OptionError: A part is named of a file, which is read whole.
    """
    source.only_of_the_hub(tranche=tranche, split=split)
    if source.has("pairs.jsonl.gz") and (
        tranche not in {None, "helpful-base"} or split not in {None, "test"}
    ):
        raise OptionError("pairs.jsonl.gz holds the test split of helpful-base alone")
    yield from _hh(source, seed, tranche or "helpful-base", split or "test")


def hh_harmless(source: Source, seed: int, *, split: str | None = None) -> RowStream:
    """Read Anthropic's preferences for the less harmful answer; see `hh`.

    Args:
        source: As for `hh`.
        seed: As for `hh`.
        split: As for `hh`.

    Raises:
        OptionError: A split is named of a file, which is read whole.
    """
    source.only_of_the_hub(split=split)
    yield from _hh(source, seed, "harmless-base", split or "test")


def _hh(source: Source, seed: int, tranche: str, split: str) -> RowStream:
    records: Iterable[SourceRecord]
    if source.has("pairs.jsonl.gz"):
        records = source.lines("pairs.jsonl.gz")
    else:
        where = Hub("Anthropic/hh-rlhf", split=split, data_dir=tranche)
        records = map(_split_dialogues, source.hub(where))
    for number, record in enumerate(records):
        key = f"{source.name}:{record.get('idx', number)}"
        row = shuffled(seed, key, record["chosen"], record["rejected"])
        yield row | {"input": messages(record["prompt"]), "group": digest(record["prompt"])}


def _split_dialogues(record: SourceRecord) -> dict[str, str]:
    """Return what two whole dialogues share, up to the last answer they share, and the rest."""
    if "prompt" in record:
        return dict(record)
    chosen, rejected = record["chosen"], record["rejected"]
    same = 0
    for a, b in zip(chosen, rejected, strict=False):
        if a != b:
            break
        same += 1
    mark = "\n\nAssistant:"
    # An answer may begin alike on both sides, so the cut is before it.
    cut = chosen.rfind(mark, 0, same)
    if cut < 0:
        raise OptionError(f"not a dialogue of Human and Assistant: {chosen[:60]!r}")
    return {
        "prompt": chosen[:cut].strip(),
        "chosen": chosen[cut + len(mark) :].strip(),
        "rejected": rejected[cut + len(mark) :].strip(),
    }


def messages(dialogue: str) -> str | list[dict[str, str]]:
    """Read `Human: … Assistant: …` as chat messages; a single turn is its text alone."""
    parts = _HH_TURN.split(f"\n\n{dialogue.strip()}")
    turns = [
        {"role": "user" if who == "Human" else "assistant", "content": text.strip() or NO_TEXT}
        for who, text in zip(parts[1::2], parts[2::2], strict=True)
    ]
    return turns[0]["content"] if len(turns) == 1 else turns
