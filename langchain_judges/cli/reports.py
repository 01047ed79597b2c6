"""What `trust` prints and writes: reports, their limits, their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_judges.cli.messages import error_console
from langchain_judges.cli.row_files import kept_apart
from langchain_judges.errors import OptionError, OutputError
from langchain_judges.rows.console import InertConsole

if TYPE_CHECKING:
    from langchain_judges.report import ComparisonReport, TrustReport


def reports(
    runs: dict[str, list[dict[str, Any]]],
    table: Sequence[dict[str, Any]] | None,
    options: dict[str, Any],
) -> TrustReport | ComparisonReport:
    """Create the report and print its answer."""
    from langchain_judges.report import compare
    from langchain_judges.report import trust as report_on

    console = InertConsole(highlight=False, soft_wrap=True)
    if len(runs) == 1:
        ((name, rows),) = runs.items()
        report = report_on(rows, table, name=name, **options)
        console.print(report.sentence, markup=False)
        _say(report.left_out)
        return report
    if options.pop("baseline") is not None:
        raise OptionError(f"--baseline is for one judge, got {len(runs)}")
    several = compare(runs, table, **options)
    for each in several.reports:
        console.print(f"{each.name}: {each.sentence}", markup=False)
        _say(each.left_out and f"{each.name}: {each.left_out}")
    return several


def check_paths(
    read: list[Path], written: dict[str, Path | None], baseline: Path | None, json: Path | None
) -> None:
    """Check that what is written is no folder and nothing that is read.

    Args:
        read: The rows and verdicts.
        written: What each flag names.
        baseline: A report that nothing but the next one may replace.
        json: Where the next one goes.

    Raises:
        OptionError: It is.
    """
    for flag, path in [*written.items(), ("--json", json)]:
        if path is not None and path.is_dir():
            raise OptionError(f"{flag} must name a file, and {path} is a folder")
    kept_apart([*read, baseline], written.values())
    kept_apart(read, [json])  # the next baseline may take the place of the last one


def write(report: TrustReport | ComparisonReport, paths: dict[str, Path | None]) -> None:
    """Write a report in each form that has a path.

    Raises:
        OutputError: A file cannot be written.
    """
    for form, path in paths.items():
        _to(path, getattr(report, f"to_{form}"))


def _to(path: Path | None, writes: Callable[[Path], Any]) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writes(path)
    except OSError as exc:
        raise OutputError(f"{path} cannot be written: {exc.strerror}") from exc


def gates_passed(
    answer: TrustReport | ComparisonReport,
    min_agreement: float | None,
    max_flips: float | None,
    path: Path | None,
) -> bool:
    """Say which bars were passed, write the summary, and return whether all were."""
    from langchain_judges.report.bars import gates
    from langchain_judges.report.markdown import markdown

    reports = getattr(answer, "reports", None) or [answer]
    console, parts, passed = error_console(), [], True
    for report in reports:
        checks = gates(report, min_agreement, max_flips)
        parts.append(markdown(report, checks))
        for check in checks:
            passed = passed and check.passed
            word = "passed" if check.passed else "failed"
            style = "green" if check.passed else "red"
            text = f"{word}: {check.title} {check.value}; the bar is: {check.bar}"
            console.print(text, style=style, markup=False, highlight=False)
    _to(path, lambda own: own.write_text("\n".join(parts), encoding="utf-8", errors="replace"))
    return passed


def _say(left_out: str) -> None:
    if left_out:
        error_console().print(left_out, style="yellow", markup=False)
