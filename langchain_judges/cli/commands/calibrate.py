"""`langchain-judges calibrate`: the thresholds of a cascade, found on labelled rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from langchain_judges.cli.estimates import tell_dry_run, warn_of_size
from langchain_judges.cli.flag_groups import DryRunFlags, JudgeFlags, RowFlags
from langchain_judges.cli.flags import Concurrency, KeepFailed, Results, flag
from langchain_judges.cli.messages import ctrl_c_as_exit, error_console, refusals_as_exits
from langchain_judges.cli.named_judge import named_judge
from langchain_judges.cli.row_files import check_file, checked_rows, judge_rows
from langchain_judges.cli.unfolding import Without, unfolded
from langchain_judges.runs.options import CalibrationOptions

if TYPE_CHECKING:
    from langchain_judges.methods.combined import CombinedGraph


@dataclass(frozen=True)
class CascadeFlags(JudgeFlags):
    """The cascade: a spec of it, or its models."""

    method: str = "cascade"


@dataclass(frozen=True)
class CalibrationFlags:
    """What is promised, and how the verdicts that tell it are got."""

    agreement: Annotated[float, flag("agreement", of=CalibrationOptions)] = 0.9
    delta: Annotated[float, flag("delta", of=CalibrationOptions)] = 0.1
    by_last: Annotated[bool, flag("by_last", "--by-last", of=CalibrationOptions)] = False
    out: Results = None
    max_concurrency: Concurrency = None
    keep_failed: KeepFailed = False


@unfolded
def calibrate(
    rows: Annotated[
        Path,
        typer.Argument(help="JSONL, CSV, TSV or Parquet file of rows with a label."),
    ],
    save: Annotated[
        Path, typer.Option(help="Where the calibrated cascade is written, as JSON.")
    ],
    judge: Annotated[CascadeFlags, Without("method", "preset", "memory")],
    calibration: CalibrationFlags,
    table: RowFlags,
    plan: DryRunFlags,
) -> None:
    """Find the thresholds of a cascade; the same command with --out resumes where it stopped.

    The cascade is that of --spec, or of the models that --model names, the cheapest first.
    What is written is a spec: judge --spec runs it.

    Exit codes: 0 done, 2 wrong use or refused, 130 Ctrl-C.
    """
    errors = error_console()
    with refusals_as_exits(errors, judge.address):
        check_file("--save", save)
        named = named_judge(judge)
        file = judge_rows(rows, named.rows_like, table)
        good = checked_rows(file, table.skip_bad, errors, "row to judge")
        warn_of_size(file.longest, errors)
        if plan.dry_run:
            tell_dry_run(named.outline(errors), good.amount, plan.prices, errors)
            return
        # Loaded here: a dry run needs nothing of it.
        from langchain_judges.runs.studies.calibration import calibrate_cascade

        with ctrl_c_as_exit(errors, saved=calibration.out is not None):
            cascade = cast("CombinedGraph", named.build())  # which is checked there
            calibrated = calibrate_cascade(cascade, good, **vars(calibration))
        text = json.dumps(calibrated.spec, indent=2, ensure_ascii=False) + "\n"
        save.write_text(text, encoding="utf-8")
    _print_thresholds(calibrated, save)


def _print_thresholds(cascade: CombinedGraph, path: Path) -> None:
    """Print from which certainty on each judge decides, and how much it then decides."""
    options = cascade.spec["options"]
    calibration, gates = options["calibration"], options["thresholds"]
    shares = calibration["shares"]
    for place, member in enumerate(cascade.members):
        if place == len(gates):
            typer.echo(f"{member.name}: decides the rest")
        elif gates[place] is None:
            typer.echo(f"{member.name}: never decides")
        else:
            share = f"{shares[place]:.0%} of the rows"
            typer.echo(f"{member.name}: decides from {gates[place]:.3g} on, {share}")
    if not any(shares) and len(gates) == len(cascade.members):
        typer.echo(
            f"No judge reaches an agreement of {calibration['agreement']:.0%} with enough "
            f"certainty on {calibration['rows']:,} rows, so this cascade judges nothing. "
            "Lower --agreement, label more rows, or let the last judge decide with --by-last. "
            f"Written to {path}."
        )
        return
    typer.echo(
        f"Agreement of at least {calibration['agreement']:.0%} is promised, "
        f"but for a chance of {calibration['delta']:.0%}, by {calibration['rows']:,} rows. "
        f"Written to {path}."
    )
