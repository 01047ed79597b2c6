"""Pairs of answers that people compared: LLMBar, PandaLM, MT-Bench, helpful dialogues."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_judges.errors import OptionError
from langchain_judges.rows.files import read_table
from langchain_judges.runs.sources import SourceRecord
from langchain_judges.runs.table_form import NO_TEXT, RowStream, by_coin
from langchain_judges.verdict import Preference

_HH_TURN = re.compile(r"\n\n(Human|Assistant):")


@dataclass(frozen=True)
class PublicSet:
    """A set's name and where to read it."""

    name: str
    path: Path | None

    def has(self, file: str) -> bool:
        """Whether `path` is a folder with this file."""
        return self.path is not None and (self.path / file).is_file()

    def lines(self, *files: str) -> Iterator[dict[str, Any]]:
        """Read the first of these files that the folder has, or `path` itself if it is one.

        Raises:
            OptionError: There is no path, or no such file in it.
        """
        names = " or ".join(files)
        if self.path is None:
            raise OptionError(f"{self.name!r} is read from a folder: give `path`, with {names}")
        if self.path.is_file():
            return read_table(self.path)
        for file in files:
            if self.has(file):
                return read_table(self.path / file)
        raise OptionError(f"{self.name!r} is read from {names}; {self.path} has none")


def group_name(text: str) -> str:
    """A short name for a text: the same text, the same group."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def preference_of_number(value: object, *, swap: bool = False) -> Preference | None:
    """Map the number of the preferred text to A or B, 0 to a tie, anything else to None.

    Args:
        value: 1, 2 or 0.
        swap: Whether the source's second text is A.
    """
    names: dict[object, Preference] = {0: "tie", 2 if swap else 1: "A", 1 if swap else 2: "B"}
    return names.get(value)


def numbered(record: SourceRecord, key: str) -> dict[str, Any]:
    """The pair of a record with `output_1`, `output_2` and the better one's number."""
    return {
        "id": key,
        "input": record["input"],
        "output_a": record["output_1"],
        "output_b": record["output_2"],
        "label": preference_of_number(record["label"]),
    }


def llmbar(source: PublicSet, seed: int) -> RowStream:
    """Read LLMBar: 419 pairs with an objective label; the subset is the category.

    Args:
        source: A folder with `items.jsonl.gz`, or a clone of princeton-nlp/LLMBar.
        seed: Not used: the source mixes the slots.
    """
    for item in _llmbar_items(source):
        row = numbered(item, f"llmbar:{item['set']}:{item['idx']}")
        yield row | {"group": group_name(item["input"]), "category": item["set"]}


def _llmbar_items(source: PublicSet) -> Iterator[SourceRecord]:
    if not source.has("Dataset/LLMBar/Natural/dataset.json"):
        yield from source.lines("items.jsonl.gz")
        return
    for subset in ("Natural", "Neighbor", "GPTInst", "GPTOut", "Manual"):
        folder = subset if subset == "Natural" else f"Adversarial/{subset}"
        for number, item in enumerate(source.lines(f"Dataset/LLMBar/{folder}/dataset.json")):
            yield {**item, "set": subset, "idx": number}


def pandalm(source: PublicSet, seed: int) -> RowStream:
    """Read the PandaLM test set: three people's votes each, the majority as label.

    Args:
        source: A folder with `pandalm_testset.jsonl.gz`, or a clone of WeOpenML/PandaLM.
        seed: Not used: the source mixes the slots.
    """
    # Loaded on use, for the metrics load numpy.
    from langchain_judges.metrics.agreement import majority_vote

    for item in source.lines("pandalm_testset.jsonl.gz", "data/testset-v1.json"):
        # The source writes a missing input as NaN.
        context = item["input"] if isinstance(item["input"], str) else ""
        task = f"{item['instruction']}\n\n{context}" if context else item["instruction"]
        people = item.get("human_labels") or [item.get(f"annotator{n}") for n in (1, 2, 3)]
        preferences = [preference for v in people if (preference := preference_of_number(v))]
        yield {
            "id": f"pandalm:{item['idx']}",
            "input": task,
            "output_a": _response_text(item["response1"]),
            "output_b": _response_text(item["response2"]),
            "label": majority_vote(preferences),
            "human_votes": preferences,
            "group": group_name(task),
            "category": item["motivation_app"],
            "systems": item["cmp_key"].split("_", 1),
        }


def _response_text(response: object) -> str:
    """A response as text: the source has some answers as JSON's true and false."""
    return str(response).strip() or NO_TEXT


def mt_bench_200(source: PublicSet, seed: int) -> RowStream:
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


def hh(source: PublicSet, seed: int) -> RowStream:
    """Read Anthropic's preferences: the chosen against the rejected answer, slots shuffled.

    The messages both sides share are the input. Four of the 2,354 helpful pairs have an empty
    answer, which is shown as `NO_TEXT`.

    Args:
        source: A folder with `pairs.jsonl.gz`.
        seed: Says which answer is A.
    """
    for number, record in enumerate(source.lines("pairs.jsonl.gz")):
        # The set has two names, and one order of the slots.
        key = f"hh_helpful:{record.get('idx', number)}"
        row = by_coin(seed, key, record["chosen"], record["rejected"])
        yield row | {"input": messages(record["prompt"]), "group": group_name(record["prompt"])}


def messages(dialogue: str) -> str | list[dict[str, str]]:
    """Read `Human: … Assistant: …` as chat messages; a single turn is its text alone."""
    parts = _HH_TURN.split(f"\n\n{dialogue.strip()}")
    turns = [
        {"role": "user" if who == "Human" else "assistant", "content": text.strip() or NO_TEXT}
        for who, text in zip(parts[1::2], parts[2::2], strict=True)
    ]
    return turns[0]["content"] if len(turns) == 1 else turns
