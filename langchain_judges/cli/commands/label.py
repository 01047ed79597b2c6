"""`langchain-judges label`: people label the rows that tell most, at a terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from langchain_judges.cli.flag_groups import RowFlags
from langchain_judges.cli.keyboard import read_key
from langchain_judges.cli.messages import error_console, refusals_as_exits
from langchain_judges.cli.row_files import (
    check_file,
    check_known_of,
    check_not_read,
    checked_rows,
    rows_of,
)
from langchain_judges.cli.unfolding import unfolded
from langchain_judges.errors import OptionError
from langchain_judges.rows.checks import kind_of_row


@dataclass(frozen=True)
class LabellingFlags:
    """Which rows are shown, how many, and what a person may answer."""

    verdicts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="Results of a judge: doubtful rows come first, and the labels correct its "
            "win rate; repeat it for several judges.",
        ),
    ] = None
    budget: Annotated[int, typer.Option(min=1, help="How many rows to label now.")] = 20
    labels: Annotated[
        str, typer.Option(help="Labels of single texts, one digit each, such as 01 or 12345.")
    ] = "01"
    seed: Annotated[int, typer.Option(help="Of the choice of rows and of slots.")] = 0


@unfolded
def label(
    data: Annotated[str, typer.Argument(help="Rows to label: a table or a known set.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Labelled rows, JSONL; added to if it is there.")
    ],
    labelling: LabellingFlags,
    table: RowFlags,
) -> None:
    """Label rows at a terminal; each answer is in the file before the next row is shown.

    The texts of a pair stand in either place by chance, and nothing says which is A. Keys:
    1 and 2 name the better text, t a tie (of single texts a digit is the label), s skips,
    u takes the last answer back, q stops. The same command resumes where it stopped.

    Exit codes: 0 done or stopped, 2 wrong use.
    """
    # Loaded on use: statistics and methods cost more than the other commands together.
    from langchain_judges.cli.label_desk import LabelDesk, LabelFile
    from langchain_judges.cli.label_statistics import doubts, estimate
    from langchain_judges.metrics import label_next
    from langchain_judges.report.rows import read_verdicts

    errors, labels, seed = error_console(), labelling.labels, labelling.seed
    with refusals_as_exits(errors):
        if not labels.isdigit() or len(set(labels)) != len(labels):
            raise OptionError(f"--labels must be different digits, got {labels!r}")
        paths = labelling.verdicts or []
        check_file("--out", out)
        check_not_read([Path(data), *paths], [out])
        file = rows_of(Path(data), check_known_of, table)
        rows = list(checked_rows(file, table.skip_bad, errors, "row"))
        runs = [run for path in paths for run in read_verdicts(path).values()]
        desk = LabelDesk(errors, read_key, labels, seed)
        answers = LabelFile(out, rows)
        scores, strata = doubts(rows, runs)
        places = label_next(scores, answers.points(), strata, labelling.budget, seed=seed)
    added = desk.go_through(rows, places, answers)
    counts = Counter(str(row["label"]) for row in answers.rows)
    shares = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    errors.print(f"{added} labelled now, {len(answers.rows)} in {out}: {shares}.", markup=False)
    if runs:
        pairs = kind_of_row(rows[0]) == "pair"
        text = estimate(scores, answers.points(), strata, pairs=pairs)
        errors.print(text, markup=False, highlight=False)
