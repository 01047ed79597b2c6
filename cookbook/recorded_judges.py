"""What other judges said: verdicts, grades and ratings, read from files.

Traps of the sources, and what is done here:

- LLMBar counts a pair on which neither reply could be read as agreeing between the orders
  (its processed MT-Bench too: PaLM2's 73.5 % are 70.0 % without 7 such pairs), and its own κ
  against the labels compares 1/2 with 0/1. Here an unread reply has no preference, so that
  such a pair is not judged. Its `Rating` settings score each text on its own, so that their
  orders cannot disagree.
- The position-bias study calls a verdict consistent if its partner could not be read. Here
  such a pair is not consistent.
- PandaLM's "garbage" replies have no preference.
- CogEval has one grade of 3 among zeros and ones; a grade of at least 1 is label 1.

`replay` makes verdicts of them as if a judge gave them now, and `recorded_judge` a judge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from statistics import fmean
from textwrap import shorten
from typing import Any, Literal, TypeVar

from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import TypedDict

from langchain_judges.datasets.pairs import PublicSet, preference_of_number
from langchain_judges.errors import InputError, OptionError
from langchain_judges.orders import ORDER_NAMES, Order, OrderRule, combine, disagree, preferred_slot
from langchain_judges.rows.checks import kind_of_verdict
from langchain_judges.runs.sources import SourceRecord
from langchain_judges.verdict import (
    Failure,
    LabelVerdict,
    Preference,
    Verdict,
    no_usage,
    not_judged,
)


class Recorded(TypedDict):
    """One recorded verdict on a pair, in one order."""

    id: str
    """The row's id, as `load` gives it."""
    judge: str
    setting: str
    """The prompt or protocol."""
    order: Order
    """`AB` showed A first."""
    preference: Preference | None
    """By identity of the text; None: the reply could not be read."""
    raw: str | None
    """The reply, where the source has it."""


Records = Iterator[Recorded]
_Slot = Literal["1", "2", "tie"]
_BY_LETTER: Mapping[object, _Slot] = {"A": "1", "B": "2", "C": "tie"}
_ORDERS: tuple[Order, Order] = ("AB", "BA")
_VICUNA = "vicuna-13b-v1.3"


def _preferred(order: Order, slot: _Slot | None) -> Preference | None:
    return preferred_slot(order, slot) if slot else None


def _both_orders(record: SourceRecord, key: str, setting: str, *, swap: bool = False) -> Records:
    """Yield the verdicts of both orders, which the source gives by identity.

    Args:
        record: Has `verdict_12` and `verdict_21`.
        key: The row's id.
        setting: The prompt or protocol.
        swap: Whether the source's second text is A.
    """
    for order, numbers in zip(_ORDERS[::-1] if swap else _ORDERS, ("12", "21"), strict=True):
        yield {
            "id": key,
            "judge": record["judge"],
            "setting": setting,
            "order": order,
            "preference": preference_of_number(record[f"verdict_{numbers}"], swap=swap),
            "raw": record.get(f"raw_{numbers}"),
        }


def llmbar(source: PublicSet) -> Records:
    """Read LLMBar's judges and prompts."""
    raw = {_llmbar_key(record): record for record in source.lines("judgments_raw.jsonl.gz")}
    for record in source.lines("verdicts_all.jsonl.gz"):
        key = f"llmbar:{record['set']}:{record['idx']}"
        recording = raw.get(_llmbar_key(record), {})
        replies = {name: recording.get(name) for name in ("raw_12", "raw_21")}
        yield from _both_orders(record | replies, key, record["strategy"])


def _llmbar_key(record: SourceRecord) -> tuple[object, ...]:
    return tuple(record[name] for name in ("set", "idx", "judge", "strategy"))


def mt_bench_200(source: PublicSet) -> Records:
    """Read LLMBar's judges on 200 pairs of MT-Bench."""
    for record in source.lines("judgments.jsonl.gz"):
        key = f"mtbench_human200:{record['idx']}"
        yield from _both_orders(record, key, record["strategy"])


def position_bias(source: PublicSet) -> Records:
    """Read the study of position bias on MT-Bench; A is vicuna-13b-v1.3."""
    for record in source.lines("judgments_full.jsonl.gz"):
        key = f"mtbench_position_bias:{record['question_id']}:{record['model_2']}"
        yield from _both_orders(record, key, "full")
    for record in source.lines("repetition.jsonl.gz"):
        straight = record["A"] == _VICUNA
        order: Order = "AB" if straight else "BA"
        other = record["B" if straight else "A"]
        for number, letter in enumerate(record["verdicts"], 1):
            yield {
                "id": f"mtbench_position_bias:{record['question_id']}:{other}",
                "judge": record["judge"],
                "setting": f"repetition {number}",
                "order": order,
                "preference": _preferred(order, _BY_LETTER.get(letter)),
                "raw": record["raw_1"] if number == 1 else None,
            }


def pandalm(source: PublicSet) -> Records:
    """Read the two judges of PandaLM's test set."""
    for record in source.lines("pandalm_testset.jsonl.gz"):
        for judge, reply in record["judges"].items():
            yield {
                "id": f"pandalm:{record['idx']}",
                "judge": judge,
                "setting": "testset-v1",
                "order": "AB",
                "preference": preference_of_number(reply["verdict"]),
                "raw": reply["reason"],
            }


def head_to_head(source: PublicSet) -> Records:
    """Read GPT-3.5 on close pairs of SummEval's systems."""
    for record in source.lines("h2h_gpt35.jsonl.gz"):
        systems = (record["model_1"], record["model_2"])
        # `load` calls the system with the lower number A.
        swap = int(systems[0][1:]) > int(systems[1][1:])
        first, second = reversed(systems) if swap else systems
        key = f"summeval12:{record['id']}:{first}:{second}"
        yield from _both_orders(record, key, record["dim"], swap=swap)


class Graded(TypedDict):
    """One recorded grade of one text."""

    id: str
    judge: str
    setting: str
    label: int
    expected: list[str]
    """Every accepted answer."""
    raw: str | None
    """The graded answer."""


class Rating(TypedDict):
    """One recorded rating of one text on a scale."""

    id: str
    """As the `candidates` and `items` of the set have it."""
    judge: str
    setting: str
    dimension: str
    group: str
    system: str
    score: float | None
    raw: str | None


def cogeval(source: PublicSet) -> Iterator[Graded]:
    """Read the grades of CogEval's own judge."""
    for record in source.lines("verdicts_all.jsonl.gz"):
        yield {
            "id": f"cogeval:{record['path']}",
            "judge": "gpt_rubric",
            "setting": record["condition"],
            "label": int(record["judge_score"] >= 1),
            "expected": record["expected"],
            "raw": record["parsed"],
        }


def summeval12(source: PublicSet) -> Iterator[Rating]:
    """Read three judges' ratings of SummEval's summaries, by three protocols."""
    for file in ("ratings_openai.jsonl.gz", "ratings_llama2_70b.jsonl.gz"):
        for record in source.lines(file):
            yield {
                "id": f"summeval12:{record['id']}:{record['model_id']}",
                "judge": record["judge"],
                "setting": record["protocol"],
                "dimension": record["dim"],
                "group": record["id"],
                "system": record["model_id"],
                "score": record["score"],
                "raw": record["raw"],
            }


SourceReader = TypeVar("SourceReader")

_VERDICTS: Mapping[str, Callable[[PublicSet], Iterator[Recorded] | Iterator[Graded]]] = {
    "cogeval": cogeval,
    "llmbar": llmbar,
    "mtbench_human200": mt_bench_200,
    "mtbench_position_bias": position_bias,
    "pandalm": pandalm,
    "summeval12": head_to_head,
}
_RATINGS: Mapping[str, Callable[[PublicSet], Iterator[Rating]]] = {"summeval12": summeval12}


def recorded(
    name: str,
    path: str | PathLike[str] | None = None,
    *,
    judge: str | None = None,
    setting: str | None = None,
) -> Iterator[Any]:
    """Yield what judges said of a set: `Recorded` for each judge, setting and order.

    Sets: `llmbar` (65 settings), `mtbench_human200` (8), `mtbench_position_bias` (3 judges in
    both orders on 2,400 pairs, and 9 judges three times over on 96: settings `full`,
    `repetition 1` … `3`; A is vicuna-13b-v1.3; the texts are not in that source), `pandalm`
    (2 judges, one order), `summeval12` (GPT-3.5 on 11 close pairs of systems; the setting is
    the dimension). Of `cogeval` come 59,338 `Graded`: grades of
    one text each by its authors' judge, with the graded and the accepted answers.

    Args:
        name: One of these.
        path: The set's folder.
        judge: Only this judge's.
        setting: Only of this setting.

    Raises:
        OptionError: There are no recorded verdicts by this name, or no such folder.
    """
    reader = _reader(_VERDICTS, name, "verdicts")
    return (
        record
        for record in reader(_source(name, path))
        if judge in {None, record["judge"]} and setting in {None, record["setting"]}
    )


def ratings(name: str, path: str | PathLike[str] | None = None) -> Iterator[Rating]:
    """Yield recorded ratings of single texts: `summeval12`, three judges, three protocols.

    Raises:
        OptionError: There are no recorded ratings by this name, or no such folder.
    """
    return _reader(_RATINGS, name, "ratings")(_source(name, path))


def _reader(table: Mapping[str, SourceReader], name: str, what: str) -> SourceReader:
    by_letters = {_letters(source): reader for source, reader in table.items()}
    if _letters(name) not in by_letters:
        raise OptionError(f"there are recorded {what} of {sorted(table)!r}, not {name!r}")
    return by_letters[_letters(name)]


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _source(name: str, path: str | PathLike[str] | None) -> PublicSet:
    if path is None or not Path(path).is_dir():
        raise OptionError(f"recorded verdicts of {name!r} are read from a folder, got {path!r}")
    return PublicSet(name, Path(path))


_COPIED_FIELDS = ("label", "group", "category", "systems", "turn", "human_votes")
_POINTS: dict[Preference, float] = {"A": 1.0, "tie": 0.5, "B": 0.0}


def replay(
    records: Iterable[SourceRecord],
    rows: Iterable[SourceRecord] = (),
    *,
    orders: OrderRule = "strict",
) -> Iterator[dict[str, Any]]:
    """Yield recorded verdicts as rows of a run, as `judge_many` yields them.

    The verdicts of the two orders on a pair become one by the rule `orders`; `by_order` has
    each. A pair of which an order is recorded as unread, is not judged: its failure is
    `unparsable`. Where only one order was recorded, it decides and `flipped` is None. The
    score is the mean of 1 for A, 0.5 for a tie and 0 for B over the orders, 0.5 for a tie.
    Nothing was asked, so the usage is empty. Grades of one text become label verdicts.

    Args:
        records: What `recorded` yields; several judges and settings may be mixed, and each
            of them is a judge of its own.
        rows: What `load` gives: `label`, `group`, `category`, `systems`, `turn` and
            `human_votes` are put on the verdicts with the same id.
        orders: `"strict"`, `"lenient"`, `"score_mean"`, or `"none"` for A first alone.

    Yields:
        `{"index", "id", "key", "label", …, "verdict", "by_order", "judge"}`, judge by judge
        in the order in which they first appear.
    """
    rule_orders = [*ORDER_NAMES][: 1 if orders == "none" else 2]
    row_of = {row["id"]: row for row in rows}
    judges: dict[tuple[str, str], dict[str, list[SourceRecord]]] = {}
    for record in records:
        own = judges.setdefault((record["judge"], record["setting"]), {})
        own.setdefault(record["id"], []).append(record)
    for (judge, setting), by_id in judges.items():
        name = {
            "method": setting,
            "model": judge,
            "mark": _digest(f"{judge}|{setting}|{orders}")[:12],
        }
        for index, (key, own_records) in enumerate(by_id.items()):
            source = row_of.get(key, {})
            yield {
                "index": index,
                "id": key,
                "key": _digest(f"{name['mark']}|{key}"),
                **{field: source[field] for field in _COPIED_FIELDS if field in source},
                **_outcome(own_records, rule_orders, orders),
                "judge": name,
            }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _outcome(
    records: Sequence[SourceRecord], rule_orders: Sequence[Order], rule: OrderRule
) -> dict[str, object]:
    if kind_of_verdict(records[0]) == "item":
        return {"verdict": _graded(records[0])}
    own = [record for record in records if record["order"] in rule_orders]
    by_order = {order: r for order in rule_orders for r in own if r["order"] == order}
    if len(by_order) < len(own):
        raise InputError(f"{records[0]['id']!r} has two verdicts in the same order")
    return {
        "verdict": _verdict(by_order, rule),
        "by_order": {order: {"preference": r["preference"]} for order, r in by_order.items()},
    }


def _verdict(by_order: Mapping[Order, SourceRecord], rule: OrderRule) -> Verdict:
    answers = {order: record["preference"] for order, record in by_order.items()}
    failures: list[Failure] = [
        {
            "step": "recorded",
            "unit": ORDER_NAMES[order],
            "reason": "unparsable",
            "detail": "the source could not read this reply",
        }
        for order, preference in answers.items()
        if preference is None
    ]
    preferences: list[Preference] = [each for each in answers.values() if each is not None]
    if failures or not preferences:
        return not_judged(failures, no_usage())
    preference = combine(rule, preferences)
    points = fmean(_POINTS[each] for each in preferences)
    reasons = [record["raw"] for record in by_order.values() if record.get("raw")]
    return {
        "preference": preference,
        "score": 0.5 if preference == "tie" else points,
        "scores": None,
        "confidence": None,
        "confidence_source": "none",
        "flipped": disagree(preferences),
        "rationale": shorten(reasons[0], 300, placeholder=" …") if reasons else "",
        "failures": [],
        "usage": no_usage(),
    }


def _graded(record: SourceRecord) -> LabelVerdict:
    return {
        "label": record["label"],
        "score": float(record["label"]),
        "confidence": None,
        "confidence_source": "none",
        "rationale": "",
        "failures": [],
        "usage": no_usage(),
        "recalled": [],
    }


def recorded_judge(
    records: Iterable[SourceRecord], *, orders: OrderRule = "strict"
) -> Runnable[dict[str, Any], dict[str, Any]]:
    """Create a judge that answers by recorded verdicts, found by the pair's `id`.

    It is a runnable as every judge is, for `judge_many`, evaluators and tests.

    Args:
        records: The verdicts of one judge in one setting, from `recorded`.
        orders: See `replay`.

    Raises:
        OptionError: There is no record, or there are several judges or settings.
    """
    replayed = list(replay(records, orders=orders))
    judges = {(row["judge"]["model"], row["judge"]["method"]) for row in replayed}
    if len(judges) != 1:
        raise OptionError(
            "a recorded judge is one judge in one setting; name both to `recorded`, got "
            f"{sorted(judges)[:5]!r}"
        )
    model, method = judges.pop()
    metadata = {
        "method": f"recorded:{method}",
        "takes": kind_of_verdict(replayed[0]["verdict"]),
        "model": {"recorded": {"name": model}},
        "options": {"orders": orders},
        "calls": 0,
    }
    by_id = {row["id"]: row for row in replayed}

    def said(pair: dict[str, Any]) -> dict[str, Any]:
        row = by_id.get(pair.get("id"))
        if row is None:
            missing: Failure = {
                "step": "recorded",
                "unit": "",
                "reason": "missing",
                "detail": f"no verdict is recorded on {pair.get('id')!r}",
            }
            return {"verdict": not_judged([missing], no_usage()), "by_order": {}}
        return {name: row[name] for name in ("verdict", "by_order") if name in row}

    return RunnableLambda(said, name="RecordedJudge").with_config(metadata=metadata)
