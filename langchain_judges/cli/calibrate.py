"""`langchain-judges calibrate`: the thresholds of a cascade, found on labelled rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from langchain_judges.cli.estimates import Amount, tell_dry_run, warn_of_size
from langchain_judges.cli.messages import (
    address_of,
    ctrl_c_as_exit,
    error_console,
    refusals_as_exits,
)
from langchain_judges.cli.options import (
    SECONDS,
    BaseUrl,
    Columns,
    Concurrency,
    DryRun,
    DryRunPrices,
    KeepFailed,
    Limit,
    ModelSettings,
    OptionalModel,
    Results,
    Settings,
    SkipBad,
    Spec,
    Timeout,
    flag,
)
from langchain_judges.cli.row_files import Sized, check_file, checked, rows_of
from langchain_judges.cli.specs import named_judge
from langchain_judges.runs.options import CalibrationOptions


def calibrate(  # noqa: PLR0913 - one parameter for each option
    rows: Annotated[
        Path,
        typer.Argument(help="JSONL, CSV, TSV or Parquet file of rows with a label."),
    ],
    save: Annotated[
        Path, typer.Option(help="Where the calibrated cascade is written, as JSON.")
    ],
    model: OptionalModel = None,
    spec: Spec = None,
    agreement: Annotated[float, flag("agreement", of=CalibrationOptions)] = 0.9,
    delta: Annotated[float, flag("delta", of=CalibrationOptions)] = 0.1,
    by_last: Annotated[bool, flag("by_last", "--by-last", of=CalibrationOptions)] = False,
    out: Results = None,
    column: Columns = None,
    option: Settings = None,
    model_set: ModelSettings = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    timeout: Timeout = SECONDS,
    limit: Limit = None,
    prices: DryRunPrices = None,
    dry_run: DryRun = False,
    skip_bad: SkipBad = False,
    keep_failed: KeepFailed = False,
) -> None:
    """Find the thresholds of a cascade; the same command with --out resumes where it stopped.

    The cascade is that of --spec, or of the models that --model names, the cheapest first.
    What is written is a spec: judge --spec runs it.

    Exit codes: 0 done, 2 wrong use or refused, 130 Ctrl-C.
    """
    errors, address = error_console(), address_of(model, base_url)
    with refusals_as_exits(errors, address):
        check_file("--save", save)
        named = named_judge(spec, "cascade", model, None, option, base_url, timeout, model_set)
        method, preset, options = named.rows_like
        file = rows_of(rows, method, limit, column, preset, options)
        number = checked(file, skip_bad, errors, "row to judge")
        warn_of_size(file.longest, errors)
        if dry_run:
            amount = Amount(file, number, file.size)
            tell_dry_run(named.outline(errors), amount, prices, errors)
            return
        # Loaded here: a dry run needs nothing of it.
        from langchain_judges.runs.studies.calibration import calibrate_cascade

        with ctrl_c_as_exit(errors, saved=out is not None):
            calibrated: Any = calibrate_cascade(
                named.build(),
                Sized(file, number),
                agreement=agreement,
                delta=delta,
                by_last=by_last,
                out=out,
                max_concurrency=concurrency,
                keep_failed=keep_failed,
            )
        text = json.dumps(calibrated.spec, indent=2, ensure_ascii=False) + "\n"
        save.write_text(text, encoding="utf-8")
    _print_thresholds(calibrated, save)


def _print_thresholds(cascade: Any, path: Path) -> None:
    """Print from which certainty on each judge decides, and how much it then decides."""
    calibration = cascade.options.calibration
    gates, shares = cascade.options.thresholds, calibration["shares"]
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
