"""`langchain-judges compare`: systems by their outputs, two compared and several ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_judges.cli import judge_flags, label, messages, row_files
from langchain_judges.cli.flags import Outs, RowFlags, RunFlags, unfolded
from langchain_judges.cli.row_files import RowFile, checked_rows, named_columns
from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows import fields, files, texts
from langchain_judges.rows.data import is_nothing
from langchain_judges.runs.book import Book
from langchain_judges.runs.run_row import ResultRow
from langchain_judges.runs.sources import Source, source_of
from langchain_judges.runs.summary import counted

if TYPE_CHECKING:
    from langchain_judges.methods.graph import JudgeGraph
    from langchain_judges.report.compared_systems import Duel, RankedSystems


@dataclass(frozen=True)
class PlaceFlags:
    """Files of results.

    Attributes:
        out: What to write, repeatable: the table of two systems (.csv, .xlsx and others), a
            summary for a pull request (.md).
    """

    out: Outs = None
    records: Path | None = None

    def table(self, systems: int) -> Path | None:
        """The table of a comparison of systems; where the rest goes is checked.

        Raises:
            OptionError: Two are tables, there are more than two systems, or a file is in no
                folder.
        """
        tables = [path for path in self.out or [] if path.suffix != ".md"]
        if len(tables) > 1:
            raise OptionError(f"--out may name one table, got {', '.join(map(str, tables))}")
        if systems > 2 and any(path.suffix != ".xlsx" for path in tables):
            raise OptionError(messages.WORDS["ranked_out"])
        for path in self.out or []:
            if path not in tables:
                row_files.check_file("--out", path)
            elif systems == 2:
                row_files.check_table(path)
        return next(iter(tables), None)

    @property
    def journal(self) -> Path | None:
        """File of the verdicts: `--records`, or else next to the first file."""
        if self.records or not self.out:
            return self.records
        return self.out[0].with_name(f".{self.out[0].name}.run") / "records.jsonl"

    @property
    def places(self) -> tuple[Path | None, ...]:
        """Files that may exist when a command is stopped."""
        return (self.records, *(self.out or []))

    def write(self, answer: Duel | RankedSystems) -> None:
        """Write the summaries."""
        from langchain_judges.report.compared_systems import RankedSystems

        for path in self.out or []:
            if path.suffix == ".md":
                files.write_text(path, answer.markdown())
            elif isinstance(answer, RankedSystems):
                systems, book = answer.ranking["systems"], Book()
                rows = [list(each.values()) for each in systems]
                book.add("ranking", list(systems[0]), partial(iter, rows))
                book.save(path)


@unfolded
def compare(
    data: list[str],
    judge: judge_flags.JudgeFlags,
    output: PlaceFlags,
    rows: RowFlags,
    run: RunFlags,
    systems: Annotated[str | None, typer.Option(metavar="COLUMN,COLUMN")] = None,
) -> None:
    """Find out which system gives better outputs; the same command resumes.

    More than two systems are ranked: those whose order is in doubt are compared until it is
    settled. To find out which judge agrees with people, use trust.

    Exit codes: 0 done, 1 no row judged, or failures under --strict, 2 wrong use or refused,
    3 budget spent, 130 Ctrl-C.

    Args:
        data: A table with --systems; or a file of each system, joined by input and id;
            langsmith:NAME is an experiment.
        systems: The columns with the outputs of systems, or names for the files of systems.

    Examples:
        langchain-judges compare v1.jsonl v2.jsonl --model openai:gpt-5-mini -o pr.md
        langchain-judges compare texts.csv --systems a,b,c --model local -o rank.md
    """
    from langchain_judges.methods.registry import estimate_calls, load_judge

    with messages.ctrl_c_as_exit(*output.places):
        spec = judge_flags.judge_spec(judge)
        plan = estimate_calls(spec)  # refused before the rows are read, as the table is
        if plan.kind != "pair":
            raise OptionError(messages.WORDS["no_pairs"].format(plan=plan, **spec))
        source, names = _table_of_systems(data, systems, rows)
        output.table(len(names))
        own = rows.column or [] if len(data) == 1 else []
        columns = {**(named_columns(own) or {}), "output_a": names[0], "output_b": names[1]}
        check = partial(_check_answers, names) if names[2:] else row_files.check_labelled_pair
        source = replace(source.first(rows.max_rows), check=check)
        good = checked_rows(RowFile(Path(data[0]), source, columns, "pair"), kept=not names[2:])
        pairs, size, pair = good.number, good.size, next(iter(good))
        if names[2:]:
            pairs, size, pair = _pairs_of(good, names)
        judge_flags.tell_plan(plan, pairs, size, run, spec, pair)
        messages.tell_kept(*output.places)
        if not run.dry_run:
            (_order if names[2:] else _duel)(load_judge(spec), good, names, run, output)


def _table_of_systems(
    paths: Sequence[str], systems: str | None, rows: RowFlags
) -> tuple[Source, list[str]]:
    """One table with a column for each system, and the names of these columns."""
    from langchain_judges.runs.comparison import joined

    names = [name.strip() for name in (systems or "").split(",") if name.strip()]
    if len(paths) == 1:
        source = source_of(Path(paths[0]))
        if len(set(names)) < 2:
            raise OptionError(f"--systems must name two columns or more, got {systems!r}")
        return source, names
    names = names or [Path(path.removeprefix(messages.LANGSMITH)).stem for path in paths]
    if len(set(names)) < len(paths):
        raise OptionError(f"--systems must name each of {len(paths)} files, got {names!r}")
    sources = dict(zip(names, _sources(paths), strict=True))
    table, alone, differ = joined(sources, named_columns(rows.column))
    for name, number in alone.items():
        if number:
            left = counted(number, "row")
            messages.warn(f"{name}: {left} left out: no partner of its input and id")
    for number in dict.fromkeys(differ.values()):
        own = ", ".join(f"`{name}`" for name in differ if differ[name] == number)
        messages.warn(f"{counted(number, 'row')}: files differ in {own}; the first one's is kept.")
    return Source(table, True), names


def _sources(paths: Sequence[str]) -> list[Source]:
    told = [path for path in paths if path.startswith(messages.LANGSMITH)]
    if not told:
        return [source_of(Path(path)) for path in paths]
    from langchain_judges.integrations.langsmith_runs import experiment_rows

    with messages.langsmith_client() as client:
        rows = experiment_rows(client, *(each.removeprefix(messages.LANGSMITH) for each in told))
    read = dict(zip(told, rows, strict=True))
    return [Source(read[p], True) if p in read else source_of(Path(p)) for p in paths]


def _answers(names: Sequence[str], row: Mapping[str, Any]) -> dict[str, object]:
    """The answers of systems in a row that are not empty, by system."""
    found = [row.get(field) for field in ("output_a", "output_b", *names[2:])]
    own = zip(names, found, strict=True)
    return {name: answer for name, answer in own if not is_nothing(answer)}


def _check_answers(names: Sequence[str], row: Mapping[str, Any]) -> None:
    """Check a row of several systems by the first two that have an answer.

    Raises:
        InputError: Fewer have one, or a field cannot be used.
    """
    answers = _answers(names, row)
    if len(answers) < 2:
        given = ", ".join(answers) or "no system"
        raise InputError(f"there are no two answers to compare: {given} of {', '.join(names)}")
    pair = dict(zip(("output_a", "output_b"), answers.values(), strict=False))
    row_files.check_labelled_pair(fields.plain_row({**row, **pair}))


def _pairs_of(rows: RowFile, names: Sequence[str]) -> tuple[int, int, dict[str, Any]]:
    """Number of pairs of answers, bytes of their texts, and one; what has no answer is said.

    Raises:
        OptionError: A system has no answer at all.
    """
    number, size, pair, answered = 0, 0, dict[str, Any](), Counter[str]()
    for row in rows:
        answers = _answers(names, row)
        for first, second in combinations(answers.values(), 2):
            pair = fields.plain_row({**row, "output_a": first, "output_b": second})
            number, size = number + 1, size + texts.bytes_of(texts.texts_read(pair))
        answered.update([*answers])
    for name in names:
        if not answered[name]:
            raise OptionError(f"--systems: no row has an answer of {name!r}")
        if lacks := rows.number - answered[name]:
            unanswered = counted(lacks, "row")
            messages.warn(f"Of {name} {unanswered} without an answer left out of its pairs.")
    return number, size, pair


def _duel(
    judge: JudgeGraph, rows: RowFile, names: Sequence[str], run: RunFlags, output: PlaceFlags
) -> None:
    """Report which of two systems is better, and exit with the matching code."""
    from langchain_judges.report.compared_systems import Duel

    duel = Duel(names)
    table = output.table(len(names))
    first = label.FirstToLabel(rows, table or output.records)

    def add(result: ResultRow) -> None:
        duel.add(result)
        first.add(result)

    records = output.records if table else output.journal
    places = {"out": table, "records": records, "columns": rows.columns} | run.options()
    duel.summary, stopped = messages.run_rows(judge, rows.whole(), places, False, add)
    first.tell(duel.summary)
    if not stopped:
        output.write(duel)
    messages.leave_with(duel.summary, run.strict, *output.places, interrupted=stopped)


def _order(
    judge: JudgeGraph, rows: RowFile, names: Sequence[str], run: RunFlags, output: PlaceFlags
) -> None:
    """Rank several systems; leave with 1 where nothing was judged, or not all that must be."""
    from langchain_judges.report.compared_systems import RankedSystems
    from langchain_judges.report.terminal import ranking_table
    from langchain_judges.runs.comparison import rank

    tasks = ({**row, "outputs": _answers(names, row)} for row in rows)
    ranking = rank(tasks, judge, records=output.journal, progress=False, **run.options())
    answer, console = RankedSystems(ranking), messages.table_console()
    console.print(ranking_table(ranking), *answer.sentences(), sep="\n")
    output.write(answer)
    undone, asked = ranking["not_judged"], ranking["comparisons"]
    if undone:
        messages.warn(f"{undone:,} of {counted(asked, 'comparison')} could not be judged")
    failed = undone == asked or (run.strict and undone)
    if ranking["over_budget"] or failed:
        raise typer.Exit(messages.SPENT if ranking["over_budget"] else messages.FAILED)
