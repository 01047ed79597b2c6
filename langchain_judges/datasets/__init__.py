"""Tables of your own, and a few public sets, as rows that a judge takes.

`rows` reads a table; `load` gives the pairs of a set with what people said of them (`Row`).

Sets, with the rows that `load` gives by default and the licence of the source. Each is read
from a folder named by `path`, with the files that its reader names or, where it says so, a
clone of the source.

| name | rows | licence |
|---|---|---|
| `mtbench_human200` | 200 pairs of MT-Bench, majority labels, turn 1 | MIT; votes CC BY 4.0 |
| `llmbar` | 419, objective labels | MIT |
| `pandalm` | 999, three votes each | Apache-2.0 |
| `hh_helpful` | 2,354 (test) | MIT |

Sources: princeton-nlp/LLMBar, WeOpenML/PandaLM and anthropics/hh-rlhf on GitHub. What else the
papers' studies read is in `cookbook/study/sets.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_judges.datasets import pairs
from langchain_judges.datasets.pairs import PublicSet
from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.rows.columns import Columns
from langchain_judges.rows.files import no_table
from langchain_judges.rows.spreadsheets import sheet_in
from langchain_judges.runs.table_form import RowStream, TableForm, or_no_text
from langchain_judges.verdict import Label

__all__ = ["knows", "load", "names", "rows"]

_SETS: dict[str, Callable[[PublicSet, int], RowStream]] = {
    **dict.fromkeys(("hh_helpful", "hh_helpful_test"), pairs.hh),
    **{"llmbar": pairs.llmbar, "mtbench_human200": pairs.mt_bench_200, "pandalm": pairs.pandalm},
}


def names() -> list[str]:
    """The names that `load` knows, sorted."""
    return sorted(_SETS)


def load(
    name: str, path: str | PathLike[str] | None = None, *, seed: int = 0
) -> list[dict[str, Any]]:
    """Load a public set as rows: `input`, `output_a`, `output_b` and what is known of them.

    Beside the texts a row has `id` and, where the source has them, `label` (A, B or tie, by
    identity), `human_votes` (of each person), `group` (question), `category`, `turn`,
    `systems` (who wrote A and B) and `reference`. Where the source puts the better text first,
    the slots are shuffled by `seed`. An empty text is shown as "(no text)".

    Args:
        name: One of `names()`; small and capital letters, `-` and `_` are the same.
        path: A folder with the set, a clone of its source, or one of its files.
        seed: For shuffled slots.

    Raises:
        OptionError: The name is unknown, or the set cannot be found.
        InputError: A file is damaged.
    """
    set_name = _set_name(name)
    if set_name not in _SETS:
        nearest = did_you_mean(name, names())
        raise OptionError(f"there is no set {name!r}; {nearest}there are {', '.join(names())}")
    source = PublicSet(set_name, None if path is None else Path(path))
    if source.path is not None and not source.path.exists():
        raise OptionError(f"there is no folder or file {source.path}")
    task = {"task_kind": "helpful"} if set_name.startswith("hh_") else {}
    return [with_texts(row) | task for row in _SETS[set_name](source, seed)]


def with_texts(row: dict[str, Any]) -> dict[str, Any]:
    """A row with empty answers as `(no text)`: people judged them, and no judge takes them."""
    answers = {"output", "output_a", "output_b"} & row.keys()
    return row | {name: or_no_text(row[name]) for name in answers}


def rows(
    source: object,
    columns: Columns | None = None,
    *,
    labels: Mapping[Any, Label] | None = None,
    seed: int = 0,
) -> RowStream:
    """Read rows from a table, from the folder of a known set, or from a set by its name.

    Args:
        source: A file (`.jsonl`, `.json`, `.csv`, `.tsv`, each also `.gz`, or `.parquet`); a
            folder named as a known set, such as `../data/llmbar`; a name of `load`; or a
            DataFrame, a Hugging Face `Dataset`, a list or another table of `judge_many`.
        columns: Of a table: field of a row → column, such as
            `{"input": "question", "output_a": "answer_1", "output_b": "answer_2"}`, or to
            several, `{"systems": ["model_1", "model_2"], "human_votes": ["ann", "bob"]}`. The
            fields `chosen` and `rejected` instead of the outputs shuffle the slots.
            Columns that are not named here keep their names.
        labels: Of a table: its labels and votes → the judge's, such as `{1: "A", 2: "B"}`;
            an empty cell is no label. Without it the usual spellings are read, such as
            `model_a` and `A>B`.
        seed: For shuffled slots.

    Returns:
        The rows, read as they are wanted.

    Raises:
        OptionError: The source or a field is unknown.
        InputError: A column is missing, or a file is damaged.
    """
    if not isinstance(source, str | PathLike) or sheet_in(path := Path(source))[0].is_file():
        return TableForm(columns, labels, seed, named=columns).rows(source)
    if columns is not None or labels is not None:
        raise OptionError(f"`columns` and `labels` are for a table; {source} is not a file")
    if knows(source):
        folder = path.resolve() if path.is_dir() else None
        return iter(load(folder.name if folder else str(source), folder, seed=seed))
    raise OptionError(f"{no_table(path, names())}; known sets are {', '.join(names())}")


def knows(source: str | PathLike[str]) -> bool:
    """Whether `rows` would read a source as a set: its name, or a folder named as it."""
    path = Path(source)
    name = path.resolve().name if path.is_dir() else str(source)
    return not path.is_file() and _set_name(name) in _SETS


def _set_name(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")
