"""The evaluations of the Branch-Solve-Merge paper, rebuilt from MT-Bench votes with any model.

    python cookbook/protocol_bsm.py --model openai:gpt-5-mini --out bsm-study
    python cookbook/protocol_bsm.py --model local --data ../data --limit 10

The votes come from the hub (`pip install 'langchain-judges[hub]'`), or from the folder named by
`--data`: a copy of the hub's repository, `mtbench_human200` with one majority label a pair and
first turns only, or a folder with one of these as `mt_bench` or `mtbench_human200`. Tables 1 to
5 and 7 to 11; table 6 is of stories, not of votes.

Figures, over both turns and for each of them (Saha et al. 2023, section 4; fractions):

- Ag, agreement: every person's vote is matched with the verdict, a tie with a tie. A pair
  that was not judged counts as no match. Table 9 takes the plurality of the votes instead.
- PB, position bias: pairs whose two orders disagree, into or out of a tie too.
- LB, length bias: of the votes for the shorter answer (by characters of the judged turn),
  those where the verdict is not that answer.

Table 2 keeps the pairs with an answer by the judge (`--self`) and divides by their number;
the paper divides PB by all 300 pairs. Tables 7, 10 and 11 take 100 pairs drawn by `--seed`.
A pair is judged once for every setting, whatever the tables that need it, and all settings
share one cache of replies; run it again to resume after a stop. Table 4 says how many of its
pairs have a reference answer; without any it is judged without, and its title says so.
Beside the tables stands how alike the plans of two questions are, in one category and in two.
Methods that are not installed are left out, and said to be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer
from langchain_core.caches import BaseCache, InMemoryCache
from protocols import (
    BaseUrl,
    Concurrency,
    Data,
    Limit,
    Model,
    Out,
    Seed,
    in_flight,
    named,
    program,
)
from rich.console import Console
from rich.table import Table as Screen

from langchain_judges import judge_many, load_judge, resolve_model
from langchain_judges.datasets import load
from langchain_judges.methods.registry import METHODS
from langchain_judges.metrics import (
    Result,
    length_bias,
    majority_agreement,
    people_agreement,
    rate,
    vote_agreement,
)
from langchain_judges.rows.texts import judged

Row = Mapping[str, Any]
Figures = dict[str, Any]

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "relative": ("relative", {}),
    "absolute": ("absolute", {}),
    "plan & solve": ("plan_solve", {}),
    "self-consistency": ("relative_sc", {}),
    "BSM": ("bsm", {}),
    "BSM + self-consistency": ("bsm", {"samples": 5}),
    "BSM, 1-10": ("bsm", {"scale": (1, 10)}),
    **{f"BSM, {n} branches": ("bsm", {"max_criteria": n}) for n in (2, 3, 4)},
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
        (*(f"BSM, {n} branches" for n in (2, 3, 4)), "BSM"),
        drawn=100,
    ),
    Study(11, "Scale of the scores", ("writing",), ("BSM", "BSM, 1-10"), drawn=100),
)


def main(  # noqa: PLR0913 - one parameter for each option
    model: Model,
    base_url: BaseUrl = None,
    data: Data = None,
    out: Out = Path("bsm-study"),
    limit: Limit = None,
    only: Annotated[str, typer.Option(help="Numbers of tables, with commas between.")] = "",
    references: Annotated[
        Path | None, typer.Option(help="A folder with FastChat's questions.")
    ] = None,
    own: Annotated[
        str | None, typer.Option("--self", help="The judge's name among the answering models.")
    ] = None,
    seed: Seed = 0,
    concurrency: Concurrency = None,
) -> dict[str, Any]:
    """Rebuild the paper's tables; the same command resumes where it stopped."""
    console = Console(highlight=False)
    numbers = named(only, [str(study.number) for study in STUDIES], "--only")
    rows = _rows(data, references, limit)
    found = study_tables(
        resolve_model(model, base_url=base_url),
        rows,
        out,
        numbers=[int(number) for number in numbers] or None,
        own=own,
        seed=seed,
        concurrency=in_flight(model, concurrency),
        say=console.print,
    )
    for table in found["tables"]:
        console.print(_screen(table))
    console.print(f"Likeness of plans (Jaccard): {found['plans']}")
    out.mkdir(parents=True, exist_ok=True)
    (out / "tables.json").write_text(json.dumps(found, indent=2))
    return found


def _rows(data: Path | None, references: Path | None, limit: int | None) -> list[Row]:
    within = [data / name for name in ("mtbench_human200", "mt_bench")] if data else []
    data = next((path for path in within if path.is_dir()), data)
    if data is not None and data.resolve().name == "mtbench_human200":
        rows = load("mtbench_human200", data)
    else:
        rows = load("mt_bench", data, references=_references(references))
    if limit is None:
        return list(rows)
    taken: dict[tuple[str, int], int] = {}
    kept: list[Row] = []
    for row in rows:
        cell = (row["category"], row["turn"])
        taken[cell] = taken.get(cell, 0) + 1
        if taken[cell] <= limit:
            kept.append(row)
    return kept


def _references(folder: Path | None) -> dict[int, list[str]] | None:
    """Return the reference answers to both turns by question."""
    if folder is None:
        return None
    questions = load("fastchat_mtbench", folder)
    return {int(q["group"]): q["references"] for q in questions if q["references"]}


def study_tables(  # noqa: PLR0913 - what a study can vary
    model: Any,
    rows: Sequence[Row],
    out: Path,
    *,
    numbers: Iterable[int] | None = None,
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
        own: The judge's name among `systems`; without it table 2 is left out.
        seed: Of the drawn pairs.
        concurrency: Most calls in flight.
        say: Told what is left out and why.
    """
    wanted = [study for study in STUDIES if numbers is None or study.number in set(numbers)]
    if own is None and any(study.own for study in wanted):
        say("Table 2 needs --self, the judge's name among the answering models: left out.")
        wanted = [study for study in wanted if not study.own]
    missing = sorted({s for study in wanted for s in study.settings if not _installed(s)})
    for setting in missing:
        say(f"The method {SETTINGS[setting][0]!r} is not installed: {setting} is left out.")
    tables, cache, plans = [], InMemoryCache(), dict[str, Row]()
    for study in wanted:
        chosen = _chosen(study, rows, own, seed)
        settings = [setting for setting in study.settings if setting not in missing]
        verdicts = {
            setting: _judged(model, setting, chosen, study.references, out, concurrency, cache)
            for setting in settings
        }
        tables.append(_table(study, chosen, verdicts))
        plans |= verdicts.get("BSM", {})
        if study.references and not tables[-1]["references"]:
            say(f"Table {study.number}: no pair has a reference answer; judged without.")
    by_id = {row["id"]: row for row in rows}
    overlap = plan_likeness([(by_id[name], result) for name, result in plans.items()])
    return {"human": human_agreement(rows), "tables": tables, "plans": overlap}


def plan_likeness(judged: Iterable[tuple[Row, Row]]) -> dict[str, Any]:
    """Return how alike the plans of two questions are, within a category and between two.

    Likeness is the Jaccard index of the names of their criteria; a question counts once.

    Args:
        judged: Rows with their results.
    """
    plans: dict[Any, tuple[str, set[str]]] = {}
    for row, result in judged:
        names = {each["name"].casefold() for each in result.get("criteria") or []}
        if names:
            plans.setdefault(
                (row["category"], row.get("group"), row["turn"]), (row["category"], names)
            )
    found: dict[str, list[float]] = {"within": [], "between": []}
    for (one, mine), (other, theirs) in combinations(plans.values(), 2):
        index = len(mine & theirs) / len(mine | theirs)
        found["within" if one == other else "between"].append(index)
    means = {name: fmean(each) if each else None for name, each in found.items()}
    return {"plans": len(plans), **means}


def _installed(setting: str) -> bool:
    return SETTINGS[setting][0] in METHODS


def _chosen(study: Study, rows: Sequence[Row], own: str | None, seed: int) -> list[Row]:
    """Return the pairs of a table, in their order."""
    kept: list[Row] = []
    for category in study.categories:
        found = [row for row in rows if row["category"] == category]
        if study.own:
            found = [row for row in found if own in row["systems"]]
        if study.drawn is not None and len(found) > study.drawn:
            lots = sorted(
                found, key=lambda row: sha256(f"{seed}|{row['id']}".encode()).digest()
            )
            drawn = {row["id"] for row in lots[: study.drawn]}
            found = [row for row in found if row["id"] in drawn]
        kept += found
    return kept


def _judged(  # noqa: PLR0913 - what a setting is judged with
    model: Any,
    setting: str,
    rows: Sequence[Row],
    references: bool,
    out: Path,
    concurrency: int,
    cache: BaseCache,
) -> dict[str, Row]:
    """Judge the pairs that are not judged yet; return the results by id."""
    method, options = SETTINGS[setting]
    shown = [
        row if references else {name: row[name] for name in row if name != "reference"}
        for row in rows
    ]
    judge = load_judge(method, model, cache=cache, **options)
    slug = "".join(letter if letter.isalnum() else "-" for letter in setting.lower())
    file = out / f"{slug}.jsonl"
    results = judge_many(judge, shown, out=file, max_concurrency=concurrency)
    return {row["id"]: row for row in results}


def _table(
    study: Study, rows: Sequence[Row], verdicts: Mapping[str, Mapping[str, Row]]
) -> dict[str, Any]:
    lines = []
    for setting, found in verdicts.items():
        for category in study.categories:
            own = [row for row in rows if row["category"] == category]
            turns = {"overall": own} | {
                f"turn {turn}": [row for row in own if row["turn"] == turn]
                for turn in sorted({row["turn"] for row in own})
            }
            line = {name: figures(part, found, study.majority) for name, part in turns.items()}
            lines.append({"setting": setting, "category": category} | line)
    given = sum(bool(row.get("reference")) for row in rows) if study.references else 0
    title = study.title
    if study.references:
        title += f": {given} of {len(rows)} pairs have one" if given else ": none given"
    return {"number": study.number, "title": title, "lines": lines, "references": given}


def figures(rows: Sequence[Row], results: Mapping[str, Row], majority: bool = False) -> Figures:
    """Return Ag, PB and LB of the pairs with what each is out of; None where that is none.

    `Ag_interval` is clustered by question.
    """
    votes = [_votes(row) for row in rows]
    said = [results[row["id"]] for row in rows]
    questions = [row.get("group", row["id"]) for row in rows]
    agree = majority_agreement if majority else vote_agreement
    agreement = agree(said, votes, groups=questions)
    lengths = [[len(judged(row[f"output_{side}"])) for row in rows] for side in "ab"]
    bias = length_bias(said, votes, *lengths)
    given = [result["verdict"] for result in said if result["verdict"]["preference"]]
    flips = rate(verdict["flipped"] for verdict in given)
    return {
        "Ag": _known(agreement),
        "Ag_interval": list(agreement.interval) if agreement.interval else None,
        "PB": _known(flips),
        "LB": _known(bias),
        "pairs": len(rows),
        "votes": agreement.n,
        "both_orders": flips.n,
        "for_the_shorter": bias.n,
        "not_judged": len(said) - len(given),
    }


def _known(found: Result) -> float | None:
    return None if found.reason else float(found)


def _votes(row: Row) -> list[Any]:
    return list(row.get("human_votes") or [row["label"]])


def human_agreement(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how often two people agree on a pair, beside which a judge stands."""
    ceiling = people_agreement([_votes(row) for row in rows])
    return {"agreement": _known(ceiling), "pairs": ceiling.n}


def _screen(table: Mapping[str, Any]) -> Screen:
    names = ["overall", "turn 1", "turn 2"]
    screen = Screen(title=f"Table {table['number']}. {table['title']}", title_justify="left")
    screen.add_column("setting")
    screen.add_column("category")
    for name in names:
        screen.add_column(f"{name}: Ag PB LB", justify="right")
    screen.add_column("not judged", justify="right")
    for line in table["lines"]:
        cells = [_cell(line.get(name)) for name in names]
        failed = f"{line['overall']['not_judged']}/{line['overall']['pairs']}"
        screen.add_row(line["setting"], line["category"], *cells, failed)
    return screen


def _cell(found: Figures | None) -> str:
    if found is None:
        return "-"
    shares = (found["Ag"], found["PB"], found["LB"])
    return " ".join("-" if share is None else f"{share:.2f}" for share in shares)


if __name__ == "__main__":
    program(main)()
