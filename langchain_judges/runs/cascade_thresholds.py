"""The thresholds of a cascade, from labelled rows, with a guarantee on its agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from langchain_judges import metrics, verdict
from langchain_judges.errors import InputError, OptionError, OverBudget
from langchain_judges.methods.cascade import Cascade, cascade_of
from langchain_judges.methods.describe import kind_of, metadata_of, unwrapped
from langchain_judges.methods.ensemble import CombinedGraph, Member
from langchain_judges.options import with_options
from langchain_judges.runs import many, row_reader, run_state, sources
from langchain_judges.runs.options import CalibrationOptions
from langchain_judges.runs.run_row import RUN_ERRORS, ResultRow, content_key, digest_of


@with_options(CalibrationOptions)
def calibrate_cascade(
    cascade: CombinedGraph, rows: run_state.Rows, options: CalibrationOptions
) -> CombinedGraph:
    """Create a cascade with the lowest thresholds that guarantee an agreement.

    Every judge of the cascade judges every row. Each judge's threshold is then the lowest at
    which the verdicts that it decides agree with the labels in at least `agreement` of the
    cases; the probability that any of them does not is at most `delta`
    (`metrics.selective_cascade`). A judge that cannot give the guarantee never decides (None),
    and a row about which no judge is certain enough is not judged. A last judge that gives no
    certainty decides all rows that reach it, or none. The guarantee holds for rows like these.

    Args:
        cascade: A cascade; its thresholds do not matter.
        rows: Rows with a `label`; a few hundred.
        options: Passed by name.

    Returns:
        A cascade with `thresholds`. The `calibration` in its options and its spec holds the
        guarantee (`agreement`, `delta`), a hash of the rows, and what was found on them:
        `coverage`, the share of rows that are judged; `risk`, the share of their verdicts that
        differ from the label; `shares`, the share that each judge decides; and with `prices`
        `dollars`, what a row costs on average, and `dollars_last`, what it costs if the last
        judge is always asked.

    Raises:
        OptionError: `cascade` is not a cascade, or no judge reaches the agreement; the message
            says which one can be reached.
        InputError: No row has a label, or a table cannot be read.
        OverBudget: The limits did not let each judge judge each row; a call with the same
            `records` goes on.

    Source: Jung, Brahman & Choi 2024 (arXiv 2407.18370).
    """
    graph = unwrapped(cascade)
    cascade_options = getattr(graph, "options", None)
    if not isinstance(cascade_options, Cascade):
        raise OptionError(f"`cascade` must be a cascade, got {type(graph).__name__}")
    wish = options.agreement
    source = sources.source_of(rows)
    records = row_reader.Records(source, None, kind_of(cascade))
    data = [records.row(record, number) for number, record in enumerate(source.records)]
    if all(row.get("label") is None for row in data):
        raise InputError("no row has a `label`")
    runs = _results(graph.members, data, options)
    answers = [[verdict.decision(row["verdict"]) for row in run] for run in runs]
    labels = [row.get("label") for row in data]
    sure = [[metrics.certainty(row["verdict"], calibrated=True) for row in run] for run in runs]
    is_silent = all(chance is None for chance in sure[-1])
    if is_silent:
        # It decides whatever it is asked or nothing, by how often it is right there.
        sure[-1] = [None if each is None else 1.0 for each in answers[-1]]
    columns = list(zip(answers, sure, strict=True))
    selection = metrics.selective_cascade(columns, labels, alpha=1 - wish, delta=options.delta)
    if not any(selection.shares):
        raise _unreachable(columns, labels, wish, options.delta)
    gates = [gate.value if gate.value <= 1 else None for gate in selection.thresholds]
    if is_silent and gates[-1] is not None:
        gates[-1] = 0.0
    calibration = {
        "agreement": wish,
        "delta": options.delta,
        "rows": len(data),
        "data": digest_of([[content_key(row), row.get("label")] for row in data]).hex()[:12],
        "coverage": float(selection.coverage),
        "risk": round(1 - float(selection.agreement), 4),
        "shares": selection.shares,
        **_dollars(runs, sure, gates),
    }
    changes = {"thresholds": gates, "calibration": calibration}
    return cascade_of(cascade_options.model_copy(update=changes), graph.members)


def _results(
    members: Sequence[Member], rows: Sequence[Mapping[str, object]], options: CalibrationOptions
) -> list[list[ResultRow]]:
    """The results of each judge; all judges share the limits."""
    results, calls, dollars = list[list[ResultRow]](), options.max_calls, options.max_dollars
    for member in members:
        if "method" not in metadata_of(member.judge):
            raise OptionError(f"the judge {member.name!r} does not say what decides a verdict")
        if 0 in (calls, dollars):
            raise OverBudget(f"the budget is spent before {member.name!r} was asked")
        left = {"max_calls": calls, "max_dollars": dollars, "records": options.records}
        with many.judge_many(member.judge, rows, **options.of_run(**left)) as run:
            results.append(list(run))
        if run.summary.not_judged["over_budget"]:
            raise OverBudget(f"the budget is spent before {member.name!r} judged every row")
        calls = calls and calls - run.summary.calls
        dollars = dollars and max(0.0, dollars - run.summary.cost)
    return results


def _dollars(
    runs: Sequence[Sequence[ResultRow]],
    sure: Sequence[Sequence[float | None]],
    gates: Sequence[float | None],
) -> dict[str, float]:
    """Cost of a row in the cascade, and if the last judge alone is asked.

    Args:
        runs: The results of each judge.
        sure: The certainty of each judge about each row.
        gates: Their thresholds.

    Returns:
        Nothing where the price of a reply is not known.
    """
    costs = [[row["cost"] for row in run if row.get("cost") is not None] for run in runs]
    if any(len(known) < len(run) for known, run in zip(costs, runs, strict=True)):
        return {}
    spent, waiting = 0.0, list(range(len(runs[0])))
    for run, chances, gate in zip(costs, sure, gates, strict=True):
        spent += sum(run[row] for row in waiting)
        if gate is not None:
            unsure = [chance is None or chance < gate for chance in chances]
            waiting = [row for row in waiting if unsure[row]]
    return {"dollars": spent / len(runs[0]), "dollars_last": fmean(costs[-1])}


def _unreachable(
    columns: Sequence[Any], labels: Sequence[Any], wish: float, delta: float
) -> OptionError:
    """An error that says which agreement can be promised."""
    reach = "none can be promised"
    for percent in range(int(wish * 100), 0, -1):
        gates = metrics.selective_cascade(columns, labels, alpha=1 - percent / 100, delta=delta)
        if any(gates.shares):
            reach = f"the best that can be promised is {percent}%"
            break
    told = {"wish": wish, "number": len(labels), "delta": delta, "reach": reach}
    return OptionError(RUN_ERRORS["unreachable"].format(**told))
