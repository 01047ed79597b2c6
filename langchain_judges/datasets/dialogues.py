"""Anthropic's preferences between two ends of a dialogue: helpful and harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable

from langchain_judges.datasets.rows import RowStream, shuffled
from langchain_judges.datasets.source import NO_TEXT, Hub, Source, SourceRecord, digest
from langchain_judges.errors import OptionError

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
