"""The evaluations of the Branch-Solve-Merge paper, rebuilt from MT-Bench votes with any model.

    python cookbook/protocol_bsm.py --model openai:gpt-5-mini --data votes.jsonl
    python cookbook/protocol_bsm.py --model local --data ../data --limit 10 \
        --only 10 --settings "BSM 2 branches"

`--data` names the set `mtbench_human200` (one majority label a pair, first turns only), the
folder that has it, or a table of pairs with `category`, `turn`, `group`, `systems`, `label` and
`human_votes`. Tables 1 to 5 and 7 to 11; table 6 is of stories, not of votes.

Figures, over both turns and for each of them (Saha et al. 2023, section 4; fractions):

- Ag, agreement: every person's vote is matched with the verdict, a tie with a tie. A pair
  that was not judged counts as no match. Table 9 takes the plurality of the votes instead.
- PB, position bias: pairs whose two orders disagree, into or out of a tie too.
- LB, length bias: of the votes for the shorter answer (by characters of the judged turn),
  those where the verdict is not that answer.

Table 2 keeps the pairs with an answer by the judge (`--self`) and divides by their number;
the paper divides PB by all 300 pairs. Tables 7, 10 and 11 take 100 pairs drawn by `--seed`.
A pair is judged once for every setting, whatever the tables that need it. All settings share
one file of replies, `replies.jsonl`, in this run and later ones; run it again to resume after a
stop. Table 4 says how many of its
pairs have a reference answer; without any it is judged without, and its title says so.
It also prints how similar the plans of two questions are, in one category and in two.
Methods that are not installed are left out, with a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import protocols
import typer
from bsm_figures import Row, figures, human_agreement, plan_likeness, screen_table
from protocols import in_flight, named, program, shared_model
from rich.console import Console

from langchain_judges import judge_many, load_judge
from langchain_judges.datasets import load
from langchain_judges.methods.registry import METHODS

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "relative": ("relative", {}),
    "absolute": ("absolute", {}),
    "plan & solve": ("plan_solve", {}),
    "self-consistency": ("relative_sc", {}),
    "BSM": ("bsm", {}),
    "BSM + self-consistency": ("bsm", {"samples": 5}),
    "BSM 1-10": ("bsm", {"scale": (1, 10)}),
    **{f"BSM {n} branches": ("bsm", {"max_criteria": n}) for n in (2, 3, 4)},
}
"""Each line of a table: a method by name and its options."""

BOTH = ("relative", "BSM")


@dataclass(frozen=True)
class Study:
    """One table of the paper: which pairs, and which settings on them."""

    number: int
    title: str
    categories: tuple[str, ...]
    settings: tuple[str, ...] = BOTH
    references: bool = False
    """Show the reference answer of a pair, where there is one."""
    own: bool = False
    """Only pairs with an answer by the judge."""
    drawn: int | None = None
    """So many pairs of each category, drawn by a seed."""
    majority: bool = False
    """Match the verdict with the plurality of a pair's votes, once."""


STUDIES = (
    Study(
        1,
        "All methods on writing",
        ("writing",),
        ("relative", "absolute", "plan & solve", "self-consistency", "BSM"),
    ),
    Study(2, "Self-enhancement: writing, one answer by the judge", ("writing",), own=True),
    Study(3, "Writing, by model", ("writing",)),
    Study(4, "With references", ("coding", "reasoning", "math"), references=True),
    Study(5, "Other categories", ("roleplay", "extraction", "stem", "humanities")),
    Study(7, "Reasoning without references", ("reasoning",), drawn=100),
    Study(8, "Samples of each branch", ("writing",), ("BSM", "BSM + self-consistency")),
    Study(9, "Majority of the votes on writing", ("writing",), majority=True),
    Study(
        10,
        "Branching factor 2 to 5",
        ("writing",),
        (*(f"BSM {n} branches" for n in (2, 3, 4)), "BSM"),
        drawn=100,
    ),
    Study(11, "Scale of the scores", ("writing",), ("BSM", "BSM 1-10"), drawn=100),
)


def main(  # noqa: PLR0913 - one parameter for each option
    model: protocols.Model,
    base_url: protocols.BaseUrl = None,
    data: protocols.Data = None,
    out: protocols.Out = Path("bsm-study"),
    limit: protocols.Limit = None,
    only: Annotated[str, typer.Option(help="Numbers of tables, with commas between.")] = "",
    settings: Annotated[
        str, typer.Option(help="Lines of the tables, with commas between; default all.")
    ] = "",
    own: Annotated[
        str | None, typer.Option("--self", help="The judge's name among the answering models.")
    ] = None,
    seed: protocols.Seed = 0,
    concurrency: protocols.Concurrency = None,
) -> dict[str, Any]:
    """Rebuild the paper's tables; the same command resumes where it stopped."""
    console = Console(highlight=False)
    numbers = named(only, [str(study.number) for study in STUDIES], "--only")
    lines = named(settings, SETTINGS, "--settings")
    rows = _rows(data, limit)
    chat, replies = shared_model(model, base_url, out)
    results = study_tables(
        chat,
        rows,
        out,
        numbers=[int(number) for number in numbers] or None,
        settings=lines or None,
        own=own,
        seed=seed,
        concurrency=in_flight(model, concurrency),
        say=console.print,
    )
    for table in results["tables"]:
        console.print(screen_table(table))
    console.print(f"Likeness of plans (Jaccard): {results['plans']}")
    (out / "tables.json").write_text(json.dumps(results, indent=2))
    console.print(replies.sentence())
    return results


def _rows(data: Path | None, limit: int | None) -> list[Row]:
    if data is None:
        raise typer.BadParameter("name the folder of the set, or a table", param_hint="--data")
    folder = data / "mtbench_human200"
    if data.is_dir():
        rows = load("mtbench_human200", folder if folder.is_dir() else data)
    else:
        rows = load(str(data))
    if limit is None:
        return list(rows)
    counts: dict[tuple[str, int], int] = {}
    selection: list[Row] = []
    for row in rows:
        cell = (row["category"], row["turn"])
        counts[cell] = counts.get(cell, 0) + 1
        if counts[cell] <= limit:
            selection.append(row)
    return selection


def study_tables(  # noqa: PLR0913 - what a study can vary
    model: Any,
    rows: Sequence[Row],
    out: Path,
    *,
    numbers: Iterable[int] | None = None,
    settings: Sequence[str] | None = None,
    own: str | None = None,
    seed: int = 0,
    concurrency: int = 16,
    say: Callable[[str], object] = lambda _: None,
) -> dict[str, Any]:
    """Judge what the tables need and return their figures.

    Args:
        model: A chat model.
        rows: Of MT-Bench, with `human_votes` or a `label`, `category`, `turn` and `systems`.
        out: A folder for the verdicts of each setting.
        numbers: Of the wanted tables; None for all.
        settings: The wanted lines of each table; None for all. A table without any is left out.
        own: The judge's name among `systems`; without it table 2 is left out.
        seed: Of the drawn pairs.
        concurrency: Most calls in flight.
        say: Told what is left out and why.
    """
    wanted = None if numbers is None else set(numbers)
    studies = [study for study in STUDIES if wanted is None or study.number in wanted]
    if settings is not None:
        studies = _with_settings(studies, settings)
    if own is None and any(study.own for study in studies):
        say("Table 2 needs --self, the judge's name among the answering models: left out.")
        studies = [study for study in studies if not study.own]
    missing = sorted({s for study in studies for s in study.settings if not _installed(s)})
    for setting in missing:
        say(f"The method {SETTINGS[setting][0]!r} is not installed: {setting} is left out.")
    tables, plans = [], dict[str, Row]()
    for study in studies:
        pairs = _select(study, rows, own, seed)
        verdicts = {
            setting: _judge(model, setting, pairs, study.references, out, concurrency)
            for setting in study.settings
            if setting not in missing
        }
        tables.append(_table(study, pairs, verdicts))
        plans |= verdicts.get("BSM", {})
        if study.references and not tables[-1]["references"]:
            say(f"Table {study.number}: no pair has a reference answer; judged without.")
    by_id = {row["id"]: row for row in rows}
    overlap = plan_likeness([(by_id[name], result) for name, result in plans.items()])
    return {"human": human_agreement(rows), "tables": tables, "plans": overlap}


def _with_settings(studies: Iterable[Study], settings: Sequence[str]) -> list[Study]:
    """Return the tables with some of their lines, without those that have none of them."""
    narrowed = [
        replace(study, settings=tuple(line for line in study.settings if line in settings))
        for study in studies
    ]
    return [study for study in narrowed if study.settings]


def _installed(setting: str) -> bool:
    return SETTINGS[setting][0] in METHODS


def _select(study: Study, rows: Sequence[Row], own: str | None, seed: int) -> list[Row]:
    """Return the pairs of a table, in their order."""
    selection: list[Row] = []
    for category in study.categories:
        candidates = [row for row in rows if row["category"] == category]
        if study.own:
            candidates = [row for row in candidates if own in row["systems"]]
        if study.drawn is not None and len(candidates) > study.drawn:
            lots = sorted(
                candidates, key=lambda row: sha256(f"{seed}|{row['id']}".encode()).digest()
            )
            ids = {row["id"] for row in lots[: study.drawn]}
            candidates = [row for row in candidates if row["id"] in ids]
        selection += candidates
    return selection


def _judge(
    model: Any,
    setting: str,
    rows: Sequence[Row],
    references: bool,
    out: Path,
    concurrency: int,
) -> dict[str, Row]:
    """Judge the pairs that are not judged yet; return the results by id."""
    method, options = SETTINGS[setting]
    inputs = [
        row if references else {name: row[name] for name in row if name != "reference"}
        for row in rows
    ]
    judge = load_judge(method, model, **options)
    slug = "".join(letter if letter.isalnum() else "-" for letter in setting.lower())
    file = out / f"{slug}.jsonl"
    results = judge_many(judge, inputs, out=file, max_concurrency=concurrency)
    return {row["id"]: row for row in results}


def _table(
    study: Study, rows: Sequence[Row], verdicts: Mapping[str, Mapping[str, Row]]
) -> dict[str, Any]:
    lines = []
    for setting, results in verdicts.items():
        for category in study.categories:
            own = [row for row in rows if row["category"] == category]
            turns = {"overall": own} | {
                f"turn {turn}": [row for row in own if row["turn"] == turn]
                for turn in sorted({row["turn"] for row in own})
            }
            line = {
                name: figures(part, results, study.majority) for name, part in turns.items()
            }
            lines.append({"setting": setting, "category": category} | line)
    references = sum(bool(row.get("reference")) for row in rows) if study.references else 0
    title = study.title
    if study.references:
        title += (
            f": {references} of {len(rows)} pairs have one" if references else ": none given"
        )
    return {"number": study.number, "title": title, "lines": lines, "references": references}


if __name__ == "__main__":
    program(main)()
