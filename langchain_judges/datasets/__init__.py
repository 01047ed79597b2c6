"""Public sets of judged texts as rows a judge takes, and verdicts recorded on them.

`load` gives pairs with what people said of them (`Row`), or items for a judge of one text;
`rows` reads your own table too.

Sets, with the rows that `load` gives by default and the licence of the source. Each is read
from a folder named by `path`, with the files that its reader names or, where it says so, a
clone of the source.

| name | rows | licence |
|---|---|---|
| `mtbench_human200` | 200 pairs of MT-Bench, majority labels, turn 1 | MIT; votes CC BY 4.0 |
| `fastchat_mtbench` | 80 questions, 30 references | Apache-2.0 |
| `llmbar` | 419, objective labels | MIT |
| `pandalm` | 999, three votes each | Apache-2.0 |
| `hh_helpful` | 2,354 (test) | MIT |
| `summeval12` | 6,600 | MIT; articles CNN/DailyMail |
| `summeval16` | 12,000 | MIT; articles CNN/DailyMail |
| `cnn2022`, `bbc2022` | 71, 80; both: `goyal_news2022` | CC BY 4.0; articles CNN, BBC |
| `cogeval` | 2,169 items | MIT |
| `commongen_hard` | 100 lists of concepts | Apache-2.0 |

Sources: princeton-nlp/LLMBar, lm-sys/FastChat, WeOpenML/PandaLM, anthropics/hh-rlhf,
DAMO-NLP-SG/LLM_summeval, neulab/BARTScore, tagoyal/tagoyal.github.io, cogeval/cogmaps
and madaan/self-refine on GitHub.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from langchain_judges.datasets import items, pairs, summaries
from langchain_judges.datasets.source import Source
from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.rows.lookup import Columns
from langchain_judges.runs.sources import RowStream, TableForm, shown

__all__ = ["knows", "load", "names", "rows"]

_SETS: dict[str, Callable[..., RowStream]] = {
    "bbc2022": partial(summaries.news, dataset="bbc2022"),
    "cnn2022": partial(summaries.news, dataset="cnn2022"),
    "cogeval": items.cogeval,
    "commongen_hard": items.commongen_hard,
    "fastchat_mtbench": pairs.mt_bench_questions,
    "goyal_news2022": summaries.news,
    "hh_helpful": pairs.hh,
    "llmbar": pairs.llmbar,
    "mtbench_human200": pairs.mt_bench_200,
    "pandalm": pairs.pandalm,
    "summeval12": summaries.summeval,
    "summeval16": summaries.summeval,
}

_TASKS = {
    **dict.fromkeys(("bbc2022", "cnn2022", "goyal_news2022"), "summary"),
    **dict.fromkeys(("summeval12", "summeval16"), "summary"),
    "hh_helpful": "helpful",
}
"""What the texts of a set are, as judges with `task="auto"` ask for it."""

_ALSO = {
    "commongen": "commongen_hard",
    "hh_helpful_test": "hh_helpful",
    "news2022": "goyal_news2022",
    "summeval_12": "summeval12",
    "summeval_16": "summeval16",
}
"""Other names in use."""


def names() -> list[str]:
    """Return the names that `load` knows, sorted."""
    return sorted(_SETS)


def load(
    name: str, path: str | PathLike[str] | None = None, *, seed: int = 0, **options: Any
) -> list[dict[str, Any]]:
    """Load a public set as rows: `input`, `output_a`, `output_b` and what is known of them.

    Beside the texts a row has `id` and, where the source has them, `label` (A, B or tie, by
    identity; candidates: a number), `human_votes` (of each person), `group` (question or
    article), `category`, `turn`, `systems` (who wrote A and B) and `reference`. Where the
    source puts the better text first, the slots are shuffled by `seed`. An empty text is
    shown as "(no text)".

    Args:
        name: One of `names()`; small and capital letters, `-` and `_` are the same.
        path: A folder with the set, a clone of its source, or one of its files.
        seed: Of the slots and of every draw.
        **options: Of the set, such as `form="candidates"` for summaries: keywords of its
            reader in this folder.

    Raises:
        OptionError: The name or an option is unknown, or the set is nowhere to be read.
        InputError: A file is damaged.
    """
    set_name = _set_name(name)
    if set_name is None:
        nearest = did_you_mean(name, names())
        raise OptionError(f"there is no set {name!r}; {nearest}there are {', '.join(names())}")
    reader = _SETS[set_name]
    accepted = set(inspect.signature(reader).parameters) - {"source", "seed"}
    accepted -= set(getattr(reader, "keywords", {}))
    if unknown := set(options) - accepted:
        raise OptionError(
            f"{set_name!r} takes the options {sorted(accepted)!r}, got {sorted(unknown)!r}"
        )
    source = Source(set_name, None if path is None else Path(path))
    if source.path is not None and not source.path.exists():
        raise OptionError(f"there is no folder or file {source.path}")
    task = {"task_kind": _TASKS[set_name]} if set_name in _TASKS else {}
    return [_with_texts(row) | task for row in reader(source, seed, **options)]


def _with_texts(row: dict[str, Any]) -> dict[str, Any]:
    """Show empty answers as `(no text)`: people judged them, and no judge here takes them."""
    answers = {"output", "output_a", "output_b"} & row.keys()
    return row | {name: shown(row[name]) for name in answers}


def rows(
    source: str | PathLike[str],
    columns: Columns | None = None,
    *,
    labels: Mapping[Any, str] | None = None,
    seed: int = 0,
) -> RowStream:
    """Read rows from a table, from the folder of a known set, or from a set by its name.

    Args:
        source: A file (`.jsonl`, `.json`, `.csv`, `.tsv`, each also `.gz`, or `.parquet`); a
            folder named as a known set, such as `../data/llmbar`; or a name of `load`.
        columns: Of a table: field of a row → column, such as
            `{"input": "question", "output_a": "answer_1", "output_b": "answer_2"}`, or to
            several, `{"systems": ["model_1", "model_2"], "human_votes": ["ann", "bob"]}`. The
            fields `chosen` and `rejected` instead of the outputs shuffle the slots.
            Columns that are not named here keep their names.
        labels: Of a table: its labels and votes → A, B or tie, such as `{1: "A", 2: "B"}`;
            an empty cell is no label. Without it the usual spellings are read, such as
            `model_a` and `A>B`.
        seed: Of shuffled slots.

    Returns:
        The rows, read as they are wanted.

    Raises:
        OptionError: The source or a field is unknown.
        InputError: A column is missing, or a file is damaged.
    """
    path = Path(source)
    if path.is_file():
        return TableForm(columns, labels, seed).rows(path)
    if columns is not None or labels is not None:
        raise OptionError(f"`columns` and `labels` are for a table; {source} is no file")
    if knows(source):
        folder = path.resolve() if path.is_dir() else None
        return iter(load(folder.name if folder else str(source), folder, seed=seed))
    if path.is_dir():
        problem = f"the folder {path} is not named as a known set"
    else:
        problem = f"{source} is neither a file, a folder nor a known set"
    raise OptionError(f"{problem}: {', '.join(names())}")


def knows(source: str | PathLike[str]) -> bool:
    """Say whether `rows` would read a source as a set: its name, or a folder named as it."""
    path = Path(source)
    if path.is_file():
        return False
    return _set_name(path.resolve().name if path.is_dir() else str(source)) is not None


def _set_name(name: str) -> str | None:
    plain = name.lower().replace("-", "_").replace(" ", "_")
    plain = _ALSO.get(plain, plain)
    return plain if plain in _SETS else None
