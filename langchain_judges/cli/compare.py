"""`langchain-judges compare`: systems by their outputs, or methods on the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from langchain_judges.cli.flags import RowFlags, RunFlags, Without, unfolded
from langchain_judges.cli.judges import (
    ModelFlags,
    check_settable,
    set_options,
    settings_as_flags,
)
from langchain_judges.cli.messages import (
    FAILED,
    ctrl_c_as_exit,
    error_console,
    refusals_as_exits,
    table_console,
    tell_undone,
)
from langchain_judges.cli.rank import ContestFlags, PlaceFlags, compare_systems
from langchain_judges.cli.rows import (
    RowFile,
    check_labelled_pair,
    checked_rows,
    open_rows,
)
from langchain_judges.errors import OptionError, did_you_mean

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_judges.runs.comparison import Comparison, Contestant


@dataclass(frozen=True)
class LineUpFlags(ContestFlags):
    """The methods that take part, and with which settings."""

    def names(self) -> list[str]:
        """Return the names of the methods."""
        from langchain_judges.methods.registry import METHODS

        if self.method:
            return [name.strip() for name in self.method.split(",") if name.strip()]
        return [*(n for n, kind in METHODS.items() if kind.takes == "pair"), "cascade", "jury"]

    def contestants(
        self, names: Sequence[str], chat: BaseChatModel
    ) -> tuple[list[Contestant], dict[str, str]]:
        """Return who takes part, and why others do not."""
        from langchain_judges.runs.comparison import line_up, of_specs

        with settings_as_flags(set_options(self.option or [])):
            own = settings_by_method(names, self.option or [])
            contestants, skipped = line_up(names, chat, budget=self.budget, options=own)
        return [*contestants, *of_specs(self.spec or [])], skipped


def settings_by_method(
    names: Sequence[str], options: list[str]
) -> dict[str, dict[str, object]]:
    """Return what `--set METHOD.NAME=VALUE` gave, by method.

    Args:
        names: The methods that take part.
        options: The values of `--set`.

    Raises:
        OptionError: A method labels single texts or takes no part, or there is no such
            option.
    """
    from langchain_judges.methods.registry import COMBINATIONS, METHODS, kind_of_rows

    if single := [name for name in names if kind_of_rows(name, {}) == "item"]:
        raise OptionError(
            f"`compare` is for judges of pairs, and {', '.join(single)} labels single texts; "
            "`trust --verdicts` puts finished runs of such judges side by side"
        )
    by_method: dict[str, dict[str, object]] = {}
    for name, value in set_options(options).items():
        method, dot, option = name.partition(".")
        if not dot:
            raise OptionError(f"--set takes METHOD.NAME=VALUE here, got {name!r}")
        by_method.setdefault(method, {})[option] = value
    for method, own in by_method.items():
        if method not in names:
            nearest = did_you_mean(method, names)
            raise OptionError(
                f"--set {method}.… names no method that takes part; {nearest}there are "
                f"{', '.join(names)}"
            )
        check_settable(METHODS | COMBINATIONS, method, own)
    return by_method


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
    contest: LineUpFlags,
    output: PlaceFlags,
    rows: RowFlags,
    run: Annotated[RunFlags, Without("max_calls")],
) -> None:
    """Compare systems by their outputs, or methods by agreement with labels, flips and cost.

    More than two systems are ranked: pairs of systems are compared where their order is in
    doubt, until it is settled. The same command resumes where it stopped.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    130 Ctrl-C.
    """
    from langchain_judges.runs.comparison import compare as compare_methods
    from langchain_judges.runs.comparison import save

    errors = error_console()
    with (
        refusals_as_exits(errors, model.address),
        ctrl_c_as_exit(errors, saved=bool(output.out)),
    ):
        if contest.systems or len(data) > 1:
            compare_systems(data, model, contest, rows, run, output)
            return
        pairs = Path(data[0])
        folder = output.folder()
        names = contest.names()
        settings_by_method(names, contest.option or [])  # refused before the rows are read
        good = _labelled_pairs(pairs, rows, errors)
        chat = model.chat(dry_run=run.dry_run)
        contestants, skipped = contest.contestants(names, chat)
        _announce(contestants, skipped, good.number, errors)
        if run.dry_run:
            return
        comparison = compare_methods(
            contestants,
            good,
            budget=contest.budget,
            skipped=skipped,
            out=folder,
            **run.options(),
        )
        if folder is not None:
            save(comparison, folder / "comparison.json")
    _print(comparison, errors, model.address, strict=run.strict)


def _labelled_pairs(path: Path, flags: RowFlags, errors: Console) -> RowFile:
    return checked_rows(open_rows(path, check_labelled_pair, flags, "pair"), errors)


def _announce(
    contestants: Sequence[Contestant], skipped: Mapping[str, str], rows: int, errors: Console
) -> None:
    """Print what each method asks at most, and which take no part."""
    from langchain_judges.methods.describe import is_local

    for contestant in contestants:
        each = contestant["calls"]
        errors.print(
            f"{contestant['name']}: at most {rows * each:,} calls ({each} for each pair), "
            "excluding retries."
        )
    for method, why in skipped.items():
        errors.print(f"{method} takes no part: {why}.", style="yellow", markup=False)
    if any(is_local(contestant["judge"]) for contestant in contestants):
        errors.print(
            "A small local model shows how the methods work; its verdicts are poor.",
            style="yellow",
        )


def _print(comparison: Comparison, errors: Console, address: str, *, strict: bool) -> None:
    """Print the results of every method, and exit with 1 if nothing was judged."""
    from langchain_judges.report.terminal import comparison_table

    table_console().print(comparison_table(comparison))
    standings = comparison["methods"]
    for method, each in standings.items():
        causes = Counter({f"{method}: {why}": n for why, n in each["causes"].items()})
        tell_undone(each["not_judged"], each["rows"], causes, errors, address)
    if all(each["not_judged"] == each["rows"] for each in standings.values()):
        raise typer.Exit(FAILED)
    if strict and any(each["failures"] for each in standings.values()):
        raise typer.Exit(FAILED)
