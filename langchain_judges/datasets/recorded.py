"""What other judges said: verdicts, grades and ratings, read from files.

Traps of the sources, and what is done here:

- LLMBar counts a pair on which neither reply could be read as agreeing between the orders
  (its processed MT-Bench too: PaLM2's 73.5 % are 70.0 % without 7 such pairs), and its own κ
  against the labels compares 1/2 with 0/1. Here an unread reply has no preference, so that
  such a pair is not judged. Its `Rating` settings score each text on its own, so that their
  orders cannot disagree.
- The position-bias study calls a verdict consistent if its partner could not be read. Here
  such a pair is not consistent.
- JudgeBench names the better slot, not the better text, of its second order too; so do Auto-J's
  exchanged verdicts. Reward models there score each text on its own, so that their second order
  is the first one turned round, where it is there at all.
- PandaLM's "garbage" replies have no preference.
- CogEval has one grade of 3 among zeros and ones; a grade of at least 1 is label 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from langchain_judges.datasets import recorded_pairs as pairs
from langchain_judges.datasets import recorded_texts as texts
from langchain_judges.datasets.recorded_pairs import Recorded
from langchain_judges.datasets.recorded_texts import Graded, Rating
from langchain_judges.datasets.source import Source
from langchain_judges.errors import OptionError

SourceReader = TypeVar("SourceReader")

_VERDICTS: Mapping[str, Callable[[Source], Iterator[Recorded] | Iterator[Graded]]] = {
    "autoj": pairs.auto_j,
    "cogeval": texts.cogeval,
    "judgebench": pairs.judge_bench,
    "llmbar": pairs.llmbar,
    "mtbench_human200": pairs.mt_bench_200,
    "mtbench_position_bias": pairs.position_bias,
    "pandalm": pairs.pandalm,
    "summeval12": pairs.head_to_head,
}
_RATINGS: Mapping[str, Callable[[Source], Iterator[Rating]]] = {"summeval12": texts.summeval12}
_ONE_FILE_SETS = {"autoj", "judgebench"}
"""Sets of which a file of verdicts can be named in place of the folder."""


def recorded(
    name: str,
    path: str | PathLike[str] | None = None,
    *,
    judge: str | None = None,
    setting: str | None = None,
) -> Iterator[Any]:
    """Yield what judges said of a set: `Recorded` for each judge, setting and order.

    Sets: `llmbar` (65 settings), `judgebench` (a clone's folder `outputs`; the setting is the
    name of the judge's protocol), `autoj` (Auto-J's own verdicts), `mtbench_human200` (8),
    `mtbench_position_bias` (3 judges in both orders on 2,400 pairs, and 9 judges three times
    over on 96: settings `full`, `repetition 1` … `3`; A is vicuna-13b-v1.3; the texts are not
    in that source), `pandalm` (2 judges, one order), `summeval12` (GPT-3.5 on 11 close pairs
    of systems; the setting is the dimension). Of `cogeval` come 59,338 `Graded`: grades of
    one text each by its authors' judge, with the graded and the accepted answers.

    Args:
        name: One of these.
        path: The set's folder, or a clone of its source; of `judgebench` and `autoj` also one
            of its files.
        judge: Only this judge's.
        setting: Only of this setting.

    Raises:
        OptionError: There are no recorded verdicts by this name, or no such folder.
    """
    reader = _reader(_VERDICTS, name, "verdicts")
    return (
        record
        for record in reader(_source(name, path))
        if judge in {None, record["judge"]} and setting in {None, record["setting"]}
    )


def ratings(name: str, path: str | PathLike[str] | None = None) -> Iterator[Rating]:
    """Yield recorded ratings of single texts: `summeval12`, three judges, three protocols.

    Raises:
        OptionError: There are no recorded ratings by this name, or no such folder.
    """
    return _reader(_RATINGS, name, "ratings")(_source(name, path))


def _reader(table: Mapping[str, SourceReader], name: str, what: str) -> SourceReader:
    by_letters = {_letters(source): reader for source, reader in table.items()}
    if _letters(name) not in by_letters:
        raise OptionError(f"there are recorded {what} of {sorted(table)!r}, not {name!r}")
    return by_letters[_letters(name)]


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _source(name: str, path: str | PathLike[str] | None) -> Source:
    one_file = _letters(name) in _ONE_FILE_SETS and path is not None and Path(path).is_file()
    if path is None or not (one_file or Path(path).is_dir()):
        raise OptionError(f"recorded verdicts of {name!r} are read from a folder, got {path!r}")
    return Source(name, Path(path))
