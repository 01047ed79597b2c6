"""What `trust` prints and writes: reports, their limits, their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.cli.messages import error_console
from langchain_judges.cli.row_files import check_not_read
from langchain_judges.errors import OptionError, OutputError
from langchain_judges.orders import OrderRule
from langchain_judges.rows.printable import InertConsole

if TYPE_CHECKING:
    from langchain_judges.report import ComparisonReport, TrustReport


@dataclass(frozen=True)
class ReportFlags:
    """What a report must reach, and in which forms it is written."""

    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    )
    results: Annotated[
        Path | None,
        typer.Option(help="Where verdicts are kept; default: OUT with .verdicts.jsonl."),
    ] = None
    csv: Annotated[Path | None, typer.Option(help="Write the numbers as CSV too.")] = None
    json: Annotated[Path | None, typer.Option(help="Write everything as JSON too.")] = None
    markdown: Annotated[
        Path | None, typer.Option(help="Write a summary in Markdown too, the bars first.")
    ] = None
    min_agreement: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 4 under this agreement, such as 0.7."),
    ] = None
    max_flips: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Exit with 4 over this share of flips, such as 0.1."),
    ] = None
    orders: Annotated[
        OrderRule | None,
        typer.Option(
            help="How two orders become one answer on the page; default: as the judge did."
        ),
    ] = None
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="An earlier report as JSON (--json): exit with 4 if the judge is clearly "
            "worse on the same rows."
        ),
    ] = None

    @property
    def verdicts(self) -> Path:
        """Where the verdicts are kept."""
        return self.results or self.out.with_suffix(".verdicts.jsonl")

    def check_paths(self, read: Sequence[Path]) -> None:
        """Check that what is written is no folder and nothing that is read.

        Args:
            read: The rows and verdicts.

        Raises:
            OptionError: It is.
        """
        written = {
            "--out": self.out,
            "--results": self.results,
            "--csv": self.csv,
            "--markdown": self.markdown,
        }
        for flag, path in [*written.items(), ("--json", self.json)]:
            if path is not None and path.is_dir():
                raise OptionError(f"{flag} must name a file, and {path} is a folder")
        # Nothing but the next report may take the place of the last one.
        check_not_read([*read, self.baseline], written.values())
        check_not_read(read, [self.json])

    def options(self) -> dict[str, Any]:
        """Return the options of a report in Python.

        Raises:
            InputError: The baseline cannot be read.
        """
        from langchain_judges.report import read_baseline

        return {
            "min_agreement": self.min_agreement,
            "orders": self.orders,
            "baseline": read_baseline(self.baseline) if self.baseline else None,
        }

    def write(self, report: TrustReport | ComparisonReport) -> None:
        """Write a report in each form that has a path.

        Raises:
            OutputError: A file cannot be written.
        """
        _to(self.out, report.to_html)
        _to(self.csv, report.to_csv)
        _to(self.json, report.to_json)


def reports(
    runs: Mapping[str, Sequence[Mapping[str, object]]],
    table: Sequence[Mapping[str, object]] | None,
    *,
    baseline: Mapping[str, object] | None,
    **options: Any,
) -> TrustReport | ComparisonReport:
    """Create the report and print its answer.

    Args:
        runs: The verdicts by judge.
        table: The labelled rows.
        baseline: An earlier report, for one judge.
        options: As `report.trust` and `report.compare` take them.
    """
    from langchain_judges.report import compare
    from langchain_judges.report import trust as report_on

    console = InertConsole(highlight=False, soft_wrap=True)
    if len(runs) == 1:
        ((name, rows),) = runs.items()
        report = report_on(rows, table, name=name, baseline=baseline, **options)
        console.print(report.sentence, markup=False)
        _say(report.left_out)
        return report
    if baseline is not None:
        raise OptionError(f"--baseline is for one judge, got {len(runs)}")
    several = compare(runs, table, **options)
    for each in several.reports:
        console.print(f"{each.name}: {each.sentence}", markup=False)
        _say(each.left_out and f"{each.name}: {each.left_out}")
    return several


def gates_passed(answer: TrustReport | ComparisonReport, flags: ReportFlags) -> bool:
    """Say which bars were passed, write the summary, and return whether all were."""
    from langchain_judges.report.report import markdown
    from langchain_judges.report.watch import gates

    reports = getattr(answer, "reports", None) or [answer]
    console, parts, passed = error_console(), [], True
    for report in reports:
        checks = gates(report, flags.min_agreement, flags.max_flips)
        parts.append(markdown(report, checks))
        for check in checks:
            passed = passed and check.passed
            word = "passed" if check.passed else "failed"
            style = "green" if check.passed else "red"
            text = f"{word}: {check.title} {check.value}; the bar is: {check.bar}"
            console.print(text, style=style, markup=False, highlight=False)
    text = "\n".join(parts)
    _to(flags.markdown, lambda own: own.write_text(text, encoding="utf-8", errors="replace"))
    return passed


def _to(path: Path | None, writes: Callable[[Path], object]) -> None:
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        writes(path)
    except OSError as exc:
        raise OutputError(f"{path} cannot be written: {exc.strerror}") from exc


def _say(left_out: str) -> None:
    if left_out:
        error_console().print(left_out, style="yellow", markup=False)
