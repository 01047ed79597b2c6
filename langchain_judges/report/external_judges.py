"""Trust any judge: columns of a table, or a function that evaluates a row."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_judges.errors import InputError, did_you_mean
from langchain_judges.escaping import shortened
from langchain_judges.metrics.inputs import is_missing, one_of
from langchain_judges.orders import OrderRule, combine
from langchain_judges.report.answers import REFUSED, WORDS
from langchain_judges.report.joined_rows import NUMBERS_ALONE, rows_in
from langchain_judges.report.report import ComparisonReport, TrustReport, report_on
from langchain_judges.rows import checks, lookup
from langchain_judges.rows.checks import KNOWN_NAMES, SIDES, label_place, read_label
from langchain_judges.rows.columns import columns_of
from langchain_judges.rows.data import as_json, is_nothing, plain_data
from langchain_judges.runs import row_reader, table_form
from langchain_judges.verdict import POINTS, WITHOUT_ANSWER, Failure, Label, no_usage

Table = Iterable[Mapping[str, Any]]

# The column of a judge's answers; or that with A shown first, and that with B shown first.
JudgeColumn = str | tuple[str, ...]


def trust_columns(
    rows: Table,
    judge: JudgeColumn | Sequence[JudgeColumn],
    label: str | Sequence[str],
    *,
    order_rule: OrderRule = "strict",
    **options: Any,
) -> TrustReport | ComparisonReport:
    """Report on judges whose answers are in a column of a table, next to people's.

    Any judge will do: answers may be sides of a pair (`A`, `B`, `tie`, `model_a` …), labels of
    any kind, or ratings on any scale. Columns `input`, `output`, `output_a`, `output_b`,
    `category`, `group`, `system` and `systems` are used where a table has them.

    Args:
        rows: A row for each item, such as of a CSV file; an empty cell is a missing answer.
        judge: The column of the judge's answers; a list of several compares judges. Two
            columns as a tuple, `("first", "second")`, are its answers with A and with B shown
            first, each by the name of the text: flips are then measured.
        label: The column of people's answers; several are the votes of several people, and so
            are lists in one. Where there is no `label`, `human_votes` are taken for it.
        order_rule: How two orders are combined: `strict`, `lenient` or `score_mean`.
        options: As for `trust` and `compare`.

    Raises:
        InputError: There is no such column, no row has an answer, or two orders are of answers
            that are not sides of pairs; or the table has two texts, and answers may be codes of
            their sides or grades of preference.
    """
    one_of("order_rule", order_rule, ("strict", "lenient", "score_mean"))
    table = rows_in(rows, "rows")
    given = judge if isinstance(judge, list) else [cast("JudgeColumn", judge)]
    specs = [(each,) if isinstance(each, str) else each for each in given]
    if bad := next((spec for spec in specs if len(spec) not in (1, 2)), None):
        raise InputError(REFUSED["columns_of_judge"].format(got=bad))
    in_both = "the judge of {} (A first) and {} (B first)"
    judges = {in_both.format(*spec) if spec[1:] else spec[0]: spec for spec in specs}
    people = [label] if isinstance(label, str) else list(label)
    lost = {name: sum(lookup.not_given_at(row, name) for row in table) for name in people}
    table, people = _votes_apart(table, people)
    sources = [name for spec in specs for name in spec]
    in_orders = len(sources) > len(specs)
    for name in [*sources, *people]:
        there = (name in row or lookup.known_at(row, name) is not None for row in table)
        if not (lost.get(name) or any(there)):
            names = list(dict.fromkeys(str(key) for row in table[:50] for key in row))
            hint = f"{did_you_mean(name, names)}there are {', '.join(names) or 'no rows'}"
            hint += "; `label=` names people's answers, or --column label=COLUMN" * (name in people)
            raise InputError(f"no row has a column {name!r}; {hint}")
    named = [*sources, *people]
    columns = {name: [_cell(name, lookup.known_at(row, name)) for row in table] for name in named}
    texts = {"input": "", **{name: "" for name in table[0] if name not in columns}}
    kind = "pair" if in_orders else row_reader.kind_of_columns([texts])
    is_sided = kind == "pair" and (in_orders or _may_be_sides(columns, table))
    read = _reading_sides(columns, texts) if is_sided else _reading(columns, kind)
    for name in columns if read is read_label else ():
        _check_names(name, columns[name], table)
    answers = {name: [*map(read, own)] for name, own in columns.items()}
    votes = [[answers[name][i] for name in people] for i in range(len(table))]
    names, pairs = _names(table), read is read_label
    texts_of_pairs = () if pairs else ("output_a", "output_b")  # whose labels are sides
    rest = [{n: row[n] for n in row if n not in texts_of_pairs} for row in table]
    data = [_facts(*each) for each in zip(rest, names, votes, strict=True)]
    if not any(value is not None for name in sources for value in answers[name]):
        raise InputError(f"the column {sources[0]!r} is empty")
    runs = {
        name: [
            _in_orders(row, own, order_rule) if own[1:] else _verdict(row, *own, pairs=pairs)
            for row, *own in zip(names, *(answers[s] for s in spec), strict=True)
        ]
        for name, spec in judges.items()
    }
    found = report_on(runs, data, **options)
    told = [WORDS["rated_pairs"]] * (kind == "pair" and read is _number)
    told += [WORDS["not_given"].format(sum(lost.values()))] * any(lost.values())
    for report in found.shown()[0]:
        report.left_out = " ".join(filter(None, (*told, report.left_out)))
    return found


def trust_evaluator(
    evaluator: Callable[..., Any],
    rows: Table,
    label: str | Sequence[str] = "label",
    *,
    name: str | None = None,
    **options: Any,
) -> TrustReport:
    """Run an evaluator on rows that people labelled, and report how far it may be trusted.

    Args:
        evaluator: A function such as openevals makes (`create_llm_as_judge`), or one of
            `evaluate` of LangSmith. It is given what its parameters name: `inputs`, `outputs`,
            `reference_outputs` (also `input`, `output`, `expected`), any other field of the
            row, or the whole `row`. It returns a score, a label, or `{"score": …}`; True and
            False are 1 and 0. A row on which it raises an error counts as not judged.
        rows: Rows with `input`, `output` (or `output_a` and `output_b`) and a label.
        label: The column of people's answers; several are the votes of several people.
        name: What the evaluator is called; by default its own name.
        options: As for `trust`.

    Raises:
        InputError: The evaluator is asynchronous, or a parameter names no field.
    """
    if inspect.iscoroutinefunction(evaluator):
        raise InputError("the evaluator must not be asynchronous: wrap it in `asyncio.run`")
    own = name or str(getattr(evaluator, "__name__", type(evaluator).__name__))
    column = f"answer of {own}"  # which may be called as a field of the rows is
    table = rows_in(rows, "rows")
    wanted, reasons, judged = _parameters(evaluator, table), list[str](), []
    for row in table:
        score = None
        try:
            score = _score_in(evaluator(**{key: row.get(wanted[key], row) for key in wanted}))
        except Exception as exc:  # noqa: BLE001 - other people's code, whatever it raises
            reasons.append(f"{type(exc).__name__}: {exc}")
        judged.append({**row, column: score})
    if len(reasons) == len(table):
        raise InputError(f"the evaluator failed on every row; first {reasons[0]}")
    return cast("TrustReport", trust_columns(judged, column, label, name=own, **options))


def _votes_apart(
    table: list[Mapping[str, Any]], people: Sequence[str]
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The table with a column for each of the votes that a cell lists, and people's columns."""
    columns, found = {name for row in table for name in row}, list[str]()
    for name in people:
        known = "human_votes" if name == "label" and name not in columns else name
        are_many, own = known == "human_votes", list[str]()
        cells = [lookup.known_at(row, known) for row in table]
        votes = [_listed(cell, are_many=are_many) for cell in cells]
        if any(each and each[0] is not cell for each, cell in zip(votes, cells, strict=True)):
            own = [f"{known}, vote {i + 1}" for i in range(max(map(len, votes)))]
            by_name = (zip(own, each, strict=False) for each in votes)
            table = [{**row, **dict(each)} for row, each in zip(table, by_name, strict=True)]
        found += own or [known if known in columns else name]
    return table, found


def _listed(cell: Any, *, are_many: bool) -> list[Any]:
    """The votes in a cell, which may list them, or be one; empty where it holds none."""
    found = table_form.spelt_votes(cell, are_many=are_many)
    listed = plain_data(found)  # of Parquet it is an array
    votes = [*listed] if isinstance(listed, list | tuple) else [found]
    return votes if all(isinstance(vote, str | int | float | None) for vote in votes) else []


def _parameters(evaluator: Callable[..., Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """For each parameter of an evaluator, the field passed to it; `row` has none."""
    fields = {"row", *(str(key) for row in rows for key in row)}
    wanted: dict[str, str] = {}
    for name, each in inspect.signature(evaluator).parameters.items():
        if (field := KNOWN_NAMES["parameters"].get(name, name)) in fields:
            wanted[name] = field
        elif each.default is each.empty and "*" not in str(each):
            raise InputError(f"no row has what the evaluator calls {name!r}")
    return wanted


def _score_in(outcome: Any) -> Any:
    """The score of what an evaluator returns: a number, a label, or a mapping."""
    if isinstance(outcome, list | tuple) and outcome:
        outcome = outcome[0]
    if hasattr(outcome, "model_dump"):
        outcome = outcome.model_dump()
    if not isinstance(outcome, Mapping):
        return outcome
    found = (outcome.get(name) for name in ("score", "value", "label"))
    return next((score for score in found if score is not None), None)


def _cell(column: str, value: object) -> object:
    if is_nothing(value := plain_data(value)):
        return None
    parts = value if isinstance(value, list) else []
    places = [label_place(f"{column}.{i}", each) for i, each in enumerate(parts)]
    if places or (place := label_place(column, value)) != column:
        named = ", ".join(map(repr, places or [place]))
        raise InputError(f"{column!r} holds {as_json(value)[:60]}; name the labels in it: {named}")
    value = value.strip() if isinstance(value, str) else value
    return int(value) if isinstance(value, bool) else value


_SIDED = re.compile(KNOWN_NAMES["sided"])
_TRUTHS = {"true": 1, "false": 0}


def _may_be_sides(columns: Mapping[str, Sequence[object]], rows: Table) -> bool:
    """Whether answers on two texts may be sides, and no ratings or words on both of them.

    Numbers may be where they are codes, or grades around a middle: -3 to 3, 1 to 2, 0 to 1.
    """
    both = [own for row in rows if isinstance(own := row.get("systems"), list | tuple)]
    systems = {str(name) for own in both for name in own}
    found = [str(value) for own in columns.values() for value in own if value is not None]
    is_one = any(v in systems or read_label(v) in SIDES or _SIDED.search(v) for v in found)
    numbers = [_TRUTHS.get(value.casefold(), _number(value)) for value in found] or [0]
    if is_one or None in numbers:
        return is_one
    return min(numbers) < 0 or max(numbers) <= 2 or {*numbers} <= {0, 1, 2, 3}


def _reading_sides(
    columns: Mapping[str, Sequence[object]], texts: Mapping[str, object]
) -> Callable[[object], Label | None]:
    """Reader of answers that are all sides of pairs: nothing here says how numbers are coded.

    Raises:
        InputError: One is none, or the names of the texts do not say which is A.
    """
    sides = ("output_a", "output_b")
    if {"chosen", "rejected"} <= texts.keys() and not {*sides} <= texts.keys():
        raise InputError(REFUSED["chosen"])
    found = columns_of(texts, "pair")
    shown = ", ".join(str(found.get(side, side)) for side in sides)
    for name, own in columns.items():
        odd = {repr(value) for value in own if value is not None and read_label(value) not in SIDES}
        if odd:
            got = shortened(", ".join(sorted(odd)), 80)
            raise InputError(REFUSED["no_answers"].format(shown=shown, name=name, got=got))
    return read_label


def _check_names(column: str, own: Sequence[object], rows: Table) -> None:
    """Check that no answer says one side, and is the name of the system on the other side.

    Raises:
        InputError: One is.
    """
    for number, (row, said) in enumerate(zip(rows, own, strict=True), 1):
        systems, side = row.get("systems"), read_label(said)
        if isinstance(systems, list | tuple) and len(systems) == 2 and side in ("A", "B"):
            of_side, other = systems if side == "A" else systems[::-1]
            if said == other != of_side:
                where = {"column": column, "number": number, "said": said, "side": side}
                raise InputError(REFUSED["name_of_side"].format(**where))


def _reading(
    columns: Mapping[str, Sequence[object]], kind: str | None
) -> Callable[[object], Label | None]:
    """Reader of a table's answers: as sides of pairs, as numbers, or unchanged.

    Args:
        columns: The answers of each column.
        kind: What the texts of the table are; None: not known.

    Raises:
        InputError: One column has sides of pairs, in words that say so, and another has not; or
            one has numbers beside words.
    """
    said = {name: [v for v in own if v is not None] for name, own in columns.items()}
    odd = {name: [v for v in own if read_label(v) not in SIDES] for name, own in said.items()}
    pairs = [n for n in said if not odd[n] and {"A", "B"} & {*map(read_label, said[n])}]
    found = [value for own in said.values() for value in own]
    # A letter alone may be the name of a class, as of a grade; C is a tie of two texts alone.
    grades = kind == "item" or (kind is None and {"C", "c"} & {*map(str, found)})
    if grades and all(len(str(value)) == 1 for value in found):
        pairs = []
    if pairs and not any(odd.values()):
        return read_label
    if worded := [n for n in pairs if any(len(str(v)) > 1 for v in said[n])]:
        other = next(f"{name!r} {own[0]!r}" for name, own in odd.items() if own)
        raise InputError(f"{worded[0]!r} says A, B or tie, and {other}; use the same names")
    truths = {**_TRUTHS, "1": 1, "0": 0}
    if {*map(str, found)} & {"1", "0"} and all(str(v).casefold() in truths for v in found):
        return lambda value: truths.get(str(value).casefold())
    commas = [value for value in found if checks.COMMA.fullmatch(str(value))]
    if commas and checks.number_in(commas) == commas:
        name = next(n for n, own in said.items() if commas[0] in own)
        raise InputError(REFUSED["thousands"].format(name=name, cell=commas[0]))
    words = {n: next((v for v in own if _number(v) is None), None) for n, own in said.items()}
    if found and not any(words.values()):
        return _number
    parts = {value: _OF_SCALE.fullmatch(str(value)) for value in found}
    if all(parts.values()) and len({part and part[2] for part in parts.values()}) == 1:
        return {value: part and _number(part[1]) for value, part in parts.items()}.get
    for name, own in said.items():  # alone, words may be the names of classes
        if words[name] is not None and any(_number(value) is not None for value in own):
            raise InputError(f"{name!r} holds numbers beside {words[name]!r}; {NUMBERS_ALONE}")
    # The first spelling counts.
    spellings = {str(value).casefold(): str(value) for value in reversed(found)}
    return lambda value: None if value is None else spellings[str(value).casefold()]


# A number with its scale: 4/5, 3 out of 5, 80%.
_OF_SCALE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(%|(?:/|(?:out )?of)\s*\d+)")


def _number(value: object) -> Any:
    """A number, whole where it is, with a point or a comma; None if it is none."""
    try:
        number = float(str(value).replace(",", "."))
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of rows: their ids where each has its own, else their numbers from 1."""
    ids = [str(row["id"]) for row in rows if row.get("id") not in (None, "")]
    alone = len(set(ids)) == len(rows)
    return ids if alone else [str(number) for number in range(1, len(rows) + 1)]


def _facts(row: Mapping[str, Any], name: str, votes: Sequence[Label | None]) -> dict[str, Any]:
    """The row of the data, under the names of this package."""
    facts = {key: value for key, value in row.items() if not is_missing(value)}
    several = {"label": None, "human_votes": votes}
    return {**facts, "id": name, **(several if len(votes) > 1 else {"label": votes[0]})}


def _in_orders(name: str, both: Sequence[Any], rule: OrderRule) -> dict[str, Any]:
    """A row of a run that was asked in both orders."""
    given = [answer for answer in both if answer is not None]
    # As in JudgeBench's own code an order that failed is neither side; strictly it decides.
    whole = len(given) == 2 or (given and rule != "strict")
    row = _verdict(name, combine(rule, given) if whole else None, pairs=True)
    row["verdict"]["flipped"] = given[0] != given[1] if len(given) == 2 else None
    orders = zip(("AB", "BA"), both, strict=True)
    return {**row, "by_order": {order: {"preference": answer} for order, answer in orders}}


def _verdict(name: str, answer: Label | None, *, pairs: bool) -> dict[str, Any]:
    """A row of a run with this answer alone."""
    failed = Failure(step="judge", unit="", reason="empty", detail="no answer")
    empty = WITHOUT_ANSWER["pair" if pairs else "item"]([failed][answer is not None :], no_usage())
    said = {"preference": answer, "score": POINTS.get(answer)}
    if not pairs:
        said = {"label": answer, "score": answer if isinstance(answer, int | float) else None}
    return {"id": name, "verdict": {**empty, "rationale": "", **said}}
