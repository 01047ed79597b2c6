"""Run a study: `python -m cookbook.study bsm --table 1,3 --models a,b --data ../data`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cookbook.study import allure, bsm, drpe, runner, sc2, small
from cookbook.study.plots import draw
from cookbook.study.runner import Bench, Replies, Table
from langchain_judges import resolve_model
from langchain_judges.errors import JudgeError, MissingExtraError, OptionError, did_you_mean
from langchain_judges.runs.prices import TABLE, Prices, estimate

PAPERS: Mapping[str, Mapping[str, Table]] = {
    "allure": allure.TABLES,
    "bsm": bsm.TABLES,
    "drpe": drpe.TABLES,
    "sc2": sc2.TABLES,
    "small": small.TABLES,
}


def chosen(paper: str, names: str) -> dict[str, Table]:
    """The tables that a list with commas names; all where it is empty."""
    if paper not in PAPERS:
        raise OptionError(f"there is no study {paper!r}; {_nearest(paper, PAPERS)}")
    tables = PAPERS[paper]
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in tables:
            raise OptionError(f"{paper} has no table {name!r}; {_nearest(name, tables)}")
    return {name: tables[name] for name in wanted or tables}


def _nearest(name: str, names: Mapping[str, Any]) -> str:
    return f"{did_you_mean(name, names)}there are {', '.join(names)}"


SETTINGS = {
    "allure": ("leak", "modes"),
    "bsm": ("self",),
    "drpe": ("encoder", "reference_model", "rule"),
    "sc2": ("comparison_model", "corpus", "task"),
    "small": (),
}
"""Options of `--set`, by study."""


def settings_of(paper: str, lines: Sequence[str]) -> dict[str, str]:
    """A mapping of `NAME=VALUE` lines."""
    pairs = [line.partition("=") for line in lines]
    for name, _, _ in pairs:
        if name not in SETTINGS[paper]:
            allowed = ", ".join(SETTINGS[paper]) or "nothing"
            raise OptionError(f"`--set` of {paper} takes {allowed}, got {name!r}")
    if bad := [name for name, equals, _ in pairs if not equals]:
        raise OptionError(f"`--set` takes NAME=VALUE, got {bad[0]!r}")
    return {name: value for name, _, value in pairs}


def tell_plan(
    console: Console, benches: Sequence[Bench], plans: Sequence[Any], rounds: int
) -> None:
    """Print what a study would ask: calls at most, tokens and dollars where known."""
    try:
        prices: Prices | None = Prices.read(TABLE)
    except MissingExtraError:
        prices = None
    for bench in benches:
        calls = rounds * sum(each["calls"] * len(each["rows"]) for each in plans)
        dollars: float | None = 0.0
        tokens = 0
        for each in (plan for plan in plans if "judge" in plan):
            size = sum(len(json.dumps(row, default=str)) for row in each["rows"])
            size, n = rounds * size, rounds * len(each["rows"])
            guess = estimate(each["judge"], n=n, size=size, prices=prices)
            tokens += guess.input_tokens + guess.output_tokens
            unknown = dollars is None or guess.dollars is None
            dollars = None if unknown else dollars + guess.dollars  # type: ignore[operator]
        price = "price not known" if dollars is None else f"about ${dollars:,.2f}"
        console.print(
            f"{bench.name}: at most {calls:,} calls, about {tokens:,} tokens, {price}; "
            "requests that arms share are sent once, unusable replies are asked again once."
        )
    for each in plans:
        console.print(
            f"  {each['part']}: {each['arm']}: {len(each['rows']):,} rows × {each['calls']}"
        )


def study(  # noqa: PLR0913 - one parameter for each option
    paper: Annotated[str, typer.Argument(help="allure, bsm, drpe, sc2 or small.")],
    models: Annotated[str, typer.Option(help="Models, with commas between.")],
    table: Annotated[str, typer.Option(help="Tables, with commas between; default all.")] = "",
    data: Annotated[Path | None, typer.Option(help="The folder of the public sets.")] = None,
    rows: Annotated[
        Path | None, typer.Option(exists=True, help="Your own rows, in place of the sets.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Resumable folder.")] = Path("study"),
    limit: Annotated[int | None, typer.Option(min=1, help="Most groups of a part.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn.")] = 0,
    rounds: Annotated[int, typer.Option(min=1, help="Of seeds from `seed` on; means.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, help="Most calls in flight.")] = 16,
    max_calls: Annotated[int | None, typer.Option(min=1, help="Of each arm.")] = None,
    base_url: Annotated[str | None, typer.Option(help="An OpenAI-compatible server.")] = None,
    option: Annotated[list[str] | None, typer.Option("--set", help="NAME=VALUE.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
) -> None:
    """Run a paper's tables with your models; the same command resumes where it stopped.

    A group is a question, an article or a list of concepts, with all its rows.
    """
    console = Console(highlight=False)
    tables = chosen(paper, table)
    if rows is not None:
        tables = {number: with_rows(own, rows) for number, own in tables.items()}
    names = [name.strip() for name in models.split(",") if name.strip()]
    replies = Replies(out / "replies.jsonl")
    extra = settings_of(paper, option or [])
    plain = Bench(None, "", out, data, limit, seed, concurrency, max_calls, extra, rows)
    benches = []
    for name in names:
        model = runner.sharing(resolve_model(name, base_url=base_url), replies)
        benches.append(replace(plain, model=model, name=name, results={}))
    if not table:
        for number in [name for name, own in tables.items() if own.needs - plain.extra.keys()]:
            console.print(
                f"Table {number} needs --set {', '.join(tables[number].needs)}=…: left out."
            )
            del tables[number]
    dry = replace(benches[0], dry=True)
    plans = [
        {"table": number, **each}
        for number, own in tables.items()
        for each in runner.planned(own, dry)
    ]
    if dry_run:
        tell_plan(console, benches, plans, rounds)
        return
    record = {
        **runner.manifest(paper, tables, benches, plans),
        "rounds": rounds,
        "rows": None if rows is None else str(rows),
    }
    path = out / "manifest.json"
    if path.exists():
        record = runner.joined(json.loads(path.read_text("utf-8")), record)
    path.write_text(json.dumps(record, indent=1), "utf-8")
    cells = []
    for number, own in tables.items():
        runs = [
            [
                cell
                for bench in benches
                for cell in runner.run_table(paper, number, own, of_round(bench, turn))
            ]
            for turn in range(rounds)
        ]
        part = runner.over_rounds(runs) if rounds > 1 else runs[0]
        runner.show(console, number, own, part)
        cells += part
    kept = _kept(out / "results.json", cells)
    (out / "results.json").write_text(json.dumps([*kept, *cells], indent=1), "utf-8")
    plots = draw(paper, cells, out)
    console.print(
        f"{len(replies):,} different requests were sent for all arms together, in this run and "
        f"those that it resumes. Every cell: {out}/results.json"
        + (f"; drawn: {', '.join(plots)}" if plots else "")
    )


def with_rows(table: Table, path: Path) -> Table:
    """A table over a caller's own rows: one part, called as their file."""
    return replace(table, parts={path.stem: next(iter(table.parts.values()))})


def of_round(bench: Bench, turn: int) -> Bench:
    """The bench of a round: of the next seed, in a folder of its own after the first."""
    if not turn:
        return bench
    out = bench.out / f"round-{turn + 1}"
    return replace(bench, seed=bench.seed + turn, out=out, results={})


def _kept(path: Path, cells: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The cells of earlier runs that this one did not make anew."""
    old = json.loads(path.read_text("utf-8")) if path.exists() else []
    new = {(cell["table"], cell["model"]) for cell in cells}
    return [cell for cell in old if (cell["table"], cell["model"]) not in new]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; an error is one sentence and exit code 2, Ctrl-C is 130."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(study)
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except (JudgeError, FileNotFoundError) as exc:
        print(exc, file=sys.stderr)
        return 2
    except typer.Exit as exc:
        return int(exc.exit_code)
    except KeyboardInterrupt:
        print("Stopped; the same command resumes where it stopped.", file=sys.stderr)
        return 130
    except Exception as exc:  # the parser's own refusals, which name a flag
        if not hasattr(exc, "format_message"):
            raise
        print(exc.format_message(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
