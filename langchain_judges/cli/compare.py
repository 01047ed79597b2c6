"""`langchain-judges compare`: systems by their outputs, or methods on the same rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langchain_judges.cli.flags import RowFlags, RunFlags, unfolded
from langchain_judges.cli.judge_flags import (
    ModelFlags,
    chat_model,
    tell_cost,
    warn_local,
)
from langchain_judges.cli.messages import (
    FAILED,
    ctrl_c_as_exit,
    refusals_as_exits,
    say,
    table_console,
    tell_undone,
    warn,
)
from langchain_judges.cli.rank import ContestFlags, PlaceFlags, compare_systems
from langchain_judges.cli.row_files import check_labelled_pair, checked_rows, open_rows
from langchain_judges.errors import OptionError

if TYPE_CHECKING:
    from langchain_judges.runs.comparison import Comparison


@unfolded
def compare(
    data: Annotated[
        list[str],
        typer.Argument(
            help="Pairs: a table or a public data set. Or outputs of systems: a table with "
            "--systems, or a file of each, joined by id; langsmith:NAME is an experiment."
        ),
    ],
    model: ModelFlags,
    contest: ContestFlags,
    output: PlaceFlags,
    rows: RowFlags,
    run: RunFlags,
) -> None:
    """Compare systems by their outputs, or methods by agreement with labels, flips and cost.

    More than two systems are ranked: pairs of systems are compared where their order is in
    doubt, until it is settled. The same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    130 Ctrl-C.

    Examples:
        langchain-judges compare v1.jsonl v2.jsonl --model openai:gpt-5-mini -o pr.md
        langchain-judges compare pairs.csv --model local --method relative,bsm
    """
    with refusals_as_exits(), ctrl_c_as_exit(*output.places):
        if contest.systems or len(data) > 1:
            compare_systems(data, model, contest, rows, run, output)
        else:
            _compare_methods(Path(data[0]), model, contest, rows, run, output.folder())


def _compare_methods(
    pairs: Path,
    model: ModelFlags,
    contest: ContestFlags,
    rows: RowFlags,
    run: RunFlags,
    folder: Path | None,
) -> None:
    from langchain_judges.methods.describe import is_local, metadata_of
    from langchain_judges.methods.registry import METHODS, kind_of_rows
    from langchain_judges.runs.comparison import compare, line_up, of_specs, save

    if contest.option:
        raise OptionError(
            "--set is for the judge of systems; --spec names methods with options"
        )
    if contest.method:
        names = [name.strip() for name in contest.method.split(",") if name.strip()]
    else:
        all_pairs = (name for name, kind in METHODS.items() if kind.takes == "pair")
        names = [*all_pairs, "cascade", "jury"]
    if single := [name for name in names if kind_of_rows(name, {}) == "item"]:
        raise OptionError(
            f"`compare` is for judges of pairs, and {', '.join(single)} labels single texts; "
            "`trust --verdicts` puts finished runs of such judges side by side"
        )
    good = checked_rows(open_rows(pairs, check_labelled_pair, rows, "pair"))
    chat = chat_model(model.spec_of(model.model), dry_run=run.dry_run)
    judges, skipped = line_up(names, chat, budget=contest.budget)
    judges |= of_specs(contest.spec or [])
    for name, judge in judges.items():
        calls = metadata_of(judge)["calls"]
        say(
            f"{name}: at most {good.number * calls:,} calls ({calls} for each pair), "
            "excluding retries."
        )
        if run.dry_run:
            tell_cost(judge, good.number, good.size, run.prices)
    if any(map(is_local, judges.values())):
        warn_local()
    for method, why in skipped.items():
        warn(f"{method} takes no part: {why}.")
    if run.dry_run:
        return
    comparison = compare(judges, good, out=folder, **run.options())
    if folder is not None:
        save(comparison, folder / "comparison.json")
    _print(comparison, strict=run.strict)


def _print(comparison: Comparison, *, strict: bool) -> None:
    """Print the results of every method, and exit with 1 if nothing was judged."""
    from langchain_judges.report.terminal import comparison_table

    table_console().print(comparison_table(comparison))
    for method, each in comparison.items():
        causes = Counter({f"{method}: {why}": n for why, n in each["causes"].items()})
        tell_undone(each["not_judged"], each["rows"], causes)
    if all(each["not_judged"] == each["rows"] for each in comparison.values()):
        raise typer.Exit(FAILED)
    if strict and any(each["failures"] for each in comparison.values()):
        raise typer.Exit(FAILED)
