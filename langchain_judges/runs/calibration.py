"""The thresholds of a cascade, from labelled rows, with a guarantee on its agreement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.cascade.judge import cascade_of
from langchain_judges.methods.cascade.options import Cascade
from langchain_judges.methods.describe import metadata_of, unwrapped
from langchain_judges.methods.members import CombinedGraph, Member
from langchain_judges.options import with_options
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.options import CalibrationOptions
from langchain_judges.runs.rows import ResultRow, answer_of, content_key
from langchain_judges.runs.run_state import Rows


@with_options(CalibrationOptions)
def calibrate_cascade(
    cascade: CombinedGraph, rows: Rows, options: CalibrationOptions
) -> CombinedGraph:
    """Return a cascade with the lowest thresholds that guarantee an agreement.

    Every judge of the cascade judges every row. Each judge's threshold is then the lowest at
    which the verdicts that it decides agree with the labels in at least `agreement` of the
    cases; the probability that any of them does not is at most `delta`
    (`metrics.selective_cascade`). A judge that cannot give the guarantee never decides (None),
    and a row for which no judge is certain enough is not judged. The guarantee holds for rows
    like these.

    Args:
        cascade: A cascade; its thresholds do not matter.
        rows: Rows with a `label`; some hundreds.
        options: Each by its name.

    Returns:
        A cascade with `thresholds`, and with `calibration` in its options and its spec: the
        guarantee, a hash of the rows, and the coverage and shares on them.

    Raises:
        OptionError: `cascade` is not a cascade, or no judge reaches the agreement; the message
            says which one can be reached.
        InputError: No row has a label.

    Source: Jung, Brahman & Choi 2024 (arXiv 2407.18370).
    """
    # Loaded on use, for the metrics load scipy.
    from langchain_judges.metrics import certainty, selective_cascade

    graph = unwrapped(cascade)
    cascade_options = getattr(graph, "options", None)
    if not isinstance(cascade_options, Cascade):
        raise OptionError(f"`cascade` must be a cascade, got {type(graph).__name__}")
    data = list(rows)
    runs = [_results(member, data, options) for member in graph.members]
    answers = [[answer_of(row["verdict"]) for row in run] for run in runs]
    labels: list[Any] = answers[-1] if options.by_last else [row.get("label") for row in data]
    if all(label is None for label in labels):
        raise InputError("no row has a `label`; `by_last=True` asks the last judge for them")
    stages = len(runs) - 1 if options.by_last else len(runs)
    columns = [
        (answers[place], [certainty(row["verdict"], calibrated=True) for row in runs[place]])
        for place in range(stages)
    ]
    selection = selective_cascade(
        columns, labels, alpha=1 - options.agreement, delta=options.delta
    )
    gates = [gate.value if gate.value <= 1 else None for gate in selection.thresholds]
    calibration = {
        "agreement": options.agreement,
        "delta": options.delta,
        "against": "last judge" if options.by_last else "labels",
        "rows": len(data),
        "data": _mark(data, labels),
        "coverage": float(selection.coverage),
        "shares": selection.shares,
    }
    if not any(selection.shares):
        raise _unreachable(columns, labels, options)
    changes = {"thresholds": gates, "calibration": calibration}
    options_with_gates = cascade_options.model_copy(update=changes)
    return cascade_of(options_with_gates, graph.members)


def _results(
    member: Member, rows: Sequence[Mapping[str, object]], options: CalibrationOptions
) -> list[ResultRow]:
    if "method" not in metadata_of(member.judge):
        raise OptionError(f"the judge {member.name!r} does not say what decides its verdicts")
    run = judge_many(
        member.judge,
        rows,
        out=options.out,
        max_concurrency=options.max_concurrency,
        progress=options.progress,
        keep_failed=options.keep_failed,
    )
    with run:
        return list(run)


def _unreachable(
    columns: Sequence[Any], labels: Sequence[Any], options: CalibrationOptions
) -> OptionError:
    """Return an error that says which agreement can be promised."""
    from langchain_judges.metrics import selective_cascade

    steps = (percent / 100 for percent in range(int(options.agreement * 100), 0, -1))

    def is_reached(agreement: float) -> bool:
        gates = selective_cascade(columns, labels, alpha=1 - agreement, delta=options.delta)
        return any(gates.shares)

    best = next(filter(is_reached, steps), None)
    reach = "none can be promised"
    if best is not None:
        reach = f"the best that can be promised is {best:.0%}"
    return OptionError(
        f"no judge of the cascade reaches an `agreement` of {options.agreement:.0%} on "
        f"{len(labels):,} rows (chance of error {options.delta:.0%}): {reach}; lower it, label "
        "more rows, take a stronger judge, or one that says how sure it is"
    )


def _mark(rows: Sequence[Mapping[str, object]], labels: Sequence[object]) -> str:
    """Return a hash of the rows and their labels."""
    keys = [[content_key(row), label] for row, label in zip(rows, labels, strict=True)]
    return hashlib.sha256(json.dumps(keys, default=str).encode()).hexdigest()[:12]
