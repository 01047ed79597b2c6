"""`langchain-judges bench`: which methods pay with your model on your labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.cli.comparisons import (
    LineUpFlags,
    PairRows,
    announce,
    labelled_pairs,
    pair_methods,
    print_comparison,
)
from langchain_judges.cli.flag_groups import ModelFlags, RowFlags, RunFlags
from langchain_judges.cli.messages import ctrl_c_as_exit, error_console, refusals_as_exits
from langchain_judges.cli.unfolding import Without, unfolded

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langchain_judges.runs.studies.line_up import Contestant


@dataclass(frozen=True)
class BenchFlags(LineUpFlags):
    """The methods and judges that take part, and with which settings."""

    methods: Annotated[
        str | None,
        typer.Option(
            help="Names of methods, separated by commas; default: all that judge pairs, a "
            "cascade of relative and bsm, and a jury of three methods."
        ),
    ] = None
    budget_calls: Annotated[
        int,
        typer.Option(
            min=1, help="Calls for a pair within which methods run beside their own cost."
        ),
    ] = 16
    spec: Annotated[
        list[Path] | None,
        typer.Option(
            help="A judge of yours as JSON, such as a calibrated cascade; repeatable."
        ),
    ] = None


@unfolded
def bench(
    pairs: PairRows,
    model: ModelFlags,
    contest: BenchFlags,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Directory for results, bench.json and bench.html; resumable."
        ),
    ] = Path("bench"),
    rows: RowFlags,
    run: Annotated[RunFlags, Without("max_calls", "max_tokens")],
) -> None:
    """Run every method on labelled rows and draw agreement against cost on a page.

    Each method runs with its own settings, and with those that fit a budget of calls where
    they differ. The same command resumes where it stopped. Needs the extra trust.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    130 Ctrl-C.
    """
    from langchain_judges.report.methods import comparison_page
    from langchain_judges.runs.studies.comparison import compare, save

    errors = error_console()
    with refusals_as_exits(errors, model.address), ctrl_c_as_exit(errors):
        names = contest.names([*pair_methods(), "cascade", "jury"])
        settings = contest.settings("bench", names)
        good = labelled_pairs(pairs, rows, errors)
        chat = model.chat(dry_run=run.dry_run)
        contestants, skipped = _line_up(names, chat, contest, settings)
        announce(contestants, skipped, good.number, errors)
        if run.dry_run:
            return
        comparison = compare(
            contestants,
            good,
            budget=contest.budget_calls,
            skipped=skipped,
            out=out,
            **run.options(),
        )
        save(comparison, out / "bench.json")
        page = out / "bench.html"
        page.write_text(comparison_page(comparison, pairs.name), encoding="utf-8")
    print_comparison(comparison, errors, model.address, strict=run.strict)
    errors.print(f"The picture is in {page}.", markup=False)


def _line_up(
    names: Sequence[str], chat: BaseChatModel, contest: BenchFlags, settings: dict[str, Any]
) -> tuple[list[Contestant], dict[str, str]]:
    """Return who takes part at its own cost or at the budget, and why others do not."""
    from langchain_judges.runs.studies.line_up import at_own_cost, line_up, of_specs

    budget = contest.budget_calls
    with contest.refusals():
        within, skipped = line_up(names, chat, budget=budget, **settings)
        contestants = at_own_cost(names, chat, within, budget, settings)
    contestants += of_specs(contest.spec or [])
    taking_part = {each["method"] for each in contestants}
    return contestants, {name: why for name, why in skipped.items() if name not in taking_part}
