"""`langchain-judges power`: how many labels tell which of two judges is better."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from langchain_judges.cli.flags import Columns
from langchain_judges.cli.messages import error_console, refusals_as_exits
from langchain_judges.cli.row_files import named_columns
from langchain_judges.cli.unfolding import unfolded
from langchain_judges.errors import OptionError
from langchain_judges.rows.printable import InertConsole

LEADS = (0.01, 0.02, 0.05, 0.1, 0.2)
USUAL = 0.2
"""The disagreement of two good judges that are not of one family, where none is named."""


@dataclass(frozen=True)
class JudgesFlags:
    """How far the two judges are apart: by their verdicts, or by a number."""

    verdicts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Results of a judge; name two, and their disagreement is counted.",
        ),
    ] = None
    disagreement: Annotated[
        float | None,
        typer.Option(
            min=0.001, max=1, help="Share of rows on which one alone is right; default: 0.2."
        ),
    ] = None
    column: Columns = None


@dataclass(frozen=True)
class PowerFlags:
    """What the test is to find, and how surely."""

    lead: Annotated[
        float | None,
        typer.Option(min=0.001, max=1, help="How much more often one is right, such as 0.05."),
    ] = None
    chance: Annotated[
        float, typer.Option("--power", min=0.01, max=0.999, help="How often to find the lead.")
    ] = 0.8
    level: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Level of the test.")] = 0.05


@unfolded
def power(
    judges: JudgesFlags,
    test: PowerFlags,
    data: Annotated[
        str | None,
        typer.Argument(help="The judged rows, with labels if any; needs --verdicts."),
    ] = None,
) -> None:
    """Say how many labels it takes to find out which of two judges is better.

    One of the two may be a rule, such as always picking the longer text. The test is McNemar's,
    as `trust` and `compare` make it; its power is simulated. Exit codes: 0 done, 2 wrong use.
    """
    # Loaded here: statistics take a second.
    from langchain_judges.metrics import labels_needed

    errors, console = error_console(), InertConsole(highlight=False, soft_wrap=True)
    with refusals_as_exits(errors):
        share = _disagreement(data, judges, console)
        leads = [test.lead] if test.lead else [lead for lead in LEADS if lead <= share]
        chance, level = test.chance, test.level
        needed = {lead: labels_needed(lead, share, chance, level=level) for lead in leads}
    _print(needed, share, chance, console)


def _disagreement(data: str | None, judges: JudgesFlags, console: Console) -> float:
    """Return the share of rows on which one judge alone is right."""
    verdicts = judges.verdicts
    if data is not None and not verdicts:
        raise OptionError("rows alone are not enough: name two judges by --verdicts")
    if judges.column and data is None:
        raise OptionError("--column is for a table: name the judged rows")
    if not verdicts:
        return USUAL if judges.disagreement is None else judges.disagreement
    if len(verdicts) != 2 or judges.disagreement is not None:
        raise OptionError("name --verdicts twice, or --disagreement")
    return _counted(data, verdicts, judges.column, console)


def _counted(
    data: str | None, verdicts: list[Path], columns: list[str] | None, console: Console
) -> float:
    """Count how far two judges are apart, and say it."""
    from langchain_judges.datasets.row_file import open_rows
    from langchain_judges.report.rows import read_verdicts
    from langchain_judges.report.versus import how_far_apart

    runs = [run for path in verdicts for run in read_verdicts(path).values()]
    if len(runs) != 2:
        raise OptionError(f"--verdicts must name two judges in all, got {len(runs)}")
    table = None
    if data is not None:
        table = list(open_rows(Path(data), None, lambda row: None, named_columns(columns)))
    first, second = runs
    apart = how_far_apart(first, second, table)
    share = f"{100 * apart.disagreement:.1f} % of {apart.rows:,} rows"
    if apart.lead is None:
        console.print(f"The judges differ on {share}, and one alone is right on at most these.")
    else:
        lead = f"{100 * apart.lead:+.1f} points for the first"
        console.print(f"One judge alone is right on {share} with labels; so far {lead}.")
    if not apart.disagreement:
        raise OptionError("the judges never differ: no number of labels separates them")
    return apart.disagreement


def _print(needed: dict[float, int], share: float, chance: float, console: Console) -> None:
    console.print(
        f"Labels to find a lead in {100 * chance:.0f} of 100 samples, where one judge alone is "
        f"right on {100 * share:.0f} % of rows:"
    )
    for lead, labels in needed.items():
        console.print(f"  {100 * lead:5.1f} points  {labels:>9,} labels")
    console.print("Rows that share a question count as one: label that many questions.")
