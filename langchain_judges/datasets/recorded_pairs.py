"""Verdicts on pairs that were recorded by other judges, in each order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from typing_extensions import TypedDict

from langchain_judges.datasets.source import Source, SourceRecord, by_number
from langchain_judges.errors import OptionError
from langchain_judges.orders import Order, preferred_slot
from langchain_judges.rows.files import read_table
from langchain_judges.verdict import Preference


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
_BY_SIGN: Mapping[object, _Slot] = {"A>B": "1", "B>A": "2", "A=B": "tie"}
_BY_PLACE: Mapping[object, _Slot] = {0: "1", 1: "2", 2: "tie"}
_ORDERS: tuple[Order, Order] = ("AB", "BA")
_VICUNA = "vicuna-13b-v1.3"


def _preferred(order: Order, slot: _Slot | None) -> Preference | None:
    return preferred_slot(order, slot) if slot else None


def _both_orders(
    record: SourceRecord, key: str, setting: str, *, swap: bool = False
) -> Records:
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
            "preference": by_number(record[f"verdict_{numbers}"], swap=swap),
            "raw": record.get(f"raw_{numbers}"),
        }


def llmbar(source: Source) -> Records:
    """Read LLMBar's judges and prompts."""
    raw = {_llmbar_key(record): record for record in source.lines("judgments_raw.jsonl.gz")}
    for record in source.lines("verdicts_all.jsonl.gz"):
        key = f"llmbar:{record['set']}:{record['idx']}"
        recording = raw.get(_llmbar_key(record), {})
        replies = {name: recording.get(name) for name in ("raw_12", "raw_21")}
        yield from _both_orders(record | replies, key, record["strategy"])


def _llmbar_key(record: SourceRecord) -> tuple[object, ...]:
    return tuple(record[name] for name in ("set", "idx", "judge", "strategy"))


def mt_bench_200(source: Source) -> Records:
    """Read LLMBar's judges on 200 pairs of MT-Bench."""
    for record in source.lines("judgments.jsonl.gz"):
        key = f"mtbench_human200:{record['idx']}"
        yield from _both_orders(record, key, record["strategy"])


def position_bias(source: Source) -> Records:
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


def judge_bench(source: Source) -> Records:
    """Read the files of judges' verdicts of a clone of JudgeBench.

    Raises:
        OptionError: There are none.
    """
    pattern = "dataset=judgebench,*judge_name=*.jsonl"
    files = [*source.matching(f"outputs/{pattern}"), *source.matching(pattern)]
    if source.path is not None and source.path.is_file() and "judge_name=" in source.path.name:
        files = [source.path]
    if not files:
        raise OptionError(
            f"'judgebench' is read from outputs/{pattern}; {source.path} has none"
        )
    for file in files:
        fields = dict(part.split("=", 1) for part in file.stem.split(",") if "=" in part)
        for record in read_table(file):
            for order, judgment in zip(_ORDERS, record["judgments"], strict=False):
                yield _judge_bench_verdict(record, fields, order, judgment or {})


def _judge_bench_verdict(
    record: SourceRecord, fields: Mapping[str, str], order: Order, judgment: SourceRecord
) -> Recorded:
    reply = judgment.get("judgment")
    reply = reply.get("response") if isinstance(reply, Mapping) else reply
    return {
        "id": f"judgebench:{record['pair_id']}",
        "judge": fields["judge_model"],
        "setting": fields["judge_name"],
        "order": order,
        "preference": _preferred(order, _BY_SIGN.get(judgment.get("decision"))),
        "raw": reply if isinstance(reply, str) else None,
    }


_AUTO_J_FILES: dict[Order, str] = {
    "AB": "pairwise_example_output.jsonl",
    "BA": "pairwise_exchange_example_output.jsonl",
}


def auto_j(source: Source) -> Records:
    """Read Auto-J's own verdicts."""
    files = _AUTO_J_FILES
    if source.path is not None and source.path.is_file():
        # The name of a user's own file says the order, as in the source.
        own: Order = "BA" if "exchange" in source.path.name else "AB"
        files = {own: source.path.name}
    for order, file in files.items():
        for number, record in enumerate(source.lines(file, f"data/outputs/{file}")):
            yield {
                "id": f"autoj:{number}",
                "judge": "auto-j",
                "setting": "pairwise",
                "order": order,
                "preference": _preferred(order, _BY_PLACE.get(record["output"])),
                "raw": None,
            }


def pandalm(source: Source) -> Records:
    """Read the two judges of PandaLM's test set."""
    for record in source.lines("pandalm_testset.jsonl.gz"):
        for judge, reply in record["judges"].items():
            yield {
                "id": f"pandalm:{record['idx']}",
                "judge": judge,
                "setting": "testset-v1",
                "order": "AB",
                "preference": by_number(reply["verdict"]),
                "raw": reply["reason"],
            }


def head_to_head(source: Source) -> Records:
    """Read GPT-3.5 on close pairs of SummEval's systems."""
    for record in source.lines("h2h_gpt35.jsonl.gz"):
        systems = (record["model_1"], record["model_2"])
        # `load` calls the system with the lower number A.
        swap = int(systems[0][1:]) > int(systems[1][1:])
        first, second = reversed(systems) if swap else systems
        key = f"summeval12:{record['id']}:{first}:{second}"
        yield from _both_orders(record, key, record["dim"], swap=swap)
