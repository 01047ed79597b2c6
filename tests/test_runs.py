"""Runs: bounded, in order, resumable after a kill, within a budget, stopped by Ctrl-C."""

import asyncio
import itertools
import json
import os
import random
import re
import threading
import time
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from langchain_judges import ajudge_many, create_bsm_judge, create_drpe_judge, judge_many
from langchain_judges.errors import (
    InputError,
    ModelAccessError,
    OptionError,
    OutputError,
    RepeatedFailureError,
)
from langchain_judges.report import read_verdicts
from langchain_judges.rows.checks import ANNOTATIONS
from langchain_judges.runs.options import RunOptions
from langchain_judges.runs.results import Results
from langchain_judges.runs.run_row import _decisive
from langchain_judges.runs.run_state import RunState
from langchain_judges.testing import error, fitting_reply
from langchain_judges.verdict import even_verdict
from tests.cases import for_each
from tests.conftest import chat
from tests.fakes import FakeChatModel, goods, judged_by
from tests.frozen_cases import item_memory
from tests.judges import ITEM, PAIR, answer, item_of, of_method
from tests.model_server import good, pairs


def collect(judge, rows, kind, **options):
    """Run to the end, in threads or in an event loop; return the rows and the summary."""
    options = {"progress": False, **options}
    if kind == "sync":
        run = judge_many(judge, rows, **options)
        return list(run), run.summary

    async def gather():
        run = ajudge_many(judge, rows, **options)
        return [row async for row in run], run.summary

    return asyncio.run(gather())


KINDS = pytest.mark.parametrize("kind", ["sync", "async"])


@KINDS
def test_results_come_in_order_with_their_ids_and_what_people_know(kind):
    def respond(prompt):
        time.sleep(random.random() / 200)
        return judged_by(goods)(prompt)

    inputs = [{**pair, "label": "A", "group": "g"} for pair in pairs(20)]
    judge = create_bsm_judge(FakeChatModel(replies=respond), criteria=["Depth"])
    rows, summary = collect(judge, iter(inputs), kind)
    assert [(row["index"], row["id"]) for row in rows] == [(i, f"p{i}") for i in range(20)]
    assert all(row["verdict"]["preference"] == "A" for row in rows)
    assert {(row["label"], row["group"]) for row in rows} == {("A", "g")}
    assert rows[3]["criteria"] == [{"name": "Depth", "description": ""}]
    assert (summary.rows, summary.calls, summary.preferences["A"]) == (20, 40, 20)


@KINDS
@pytest.mark.parametrize("places", [1, 8])
def test_as_many_calls_are_in_flight_as_allowed_and_no_more(serve, kind, places):
    full = threading.Event()

    def behave(call):
        # Solves wait for each other until every place is taken; one too many has time to come.
        if call.shape != "Plan" and server.waiting == places:
            full.set()
        if call.shape == "Plan":
            return good(call)
        return replace(good(call), hold=full, delay=0.01)

    server = serve(behave)
    judge = create_bsm_judge(chat(server), max_criteria=5)
    collect(judge, pairs(3), kind, max_concurrency=places)
    assert len(server.calls) == 33
    assert server.peak == places


@KINDS
def test_out_holds_each_row_once_and_the_second_run_asks_nothing(tmp_path, kind):
    model = FakeChatModel()
    judge = create_bsm_judge(model, criteria=["Depth"])
    out = tmp_path / "deep" / "out.jsonl"
    rows, _ = collect(judge, pairs(5), kind, records=out)
    calls = len(model.prompts)
    again, summary = collect(judge, pairs(5), kind, records=out)
    assert again == rows
    assert len(model.prompts) == calls
    assert (summary.resumed, summary.calls) == (5, 0)
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(len(row.pop("checksum")) == 8 for row in written)
    assert sorted(written, key=lambda row: row["index"]) == rows


def test_what_decides_a_verdict_is_in_the_key_and_the_rest_is_not(tmp_path):
    def key(judge, **change):
        pair = {**pairs(1)[0], **change}
        return next(iter(judge_many(judge, [pair], progress=False)))["key"]

    def judge(**options):
        return create_bsm_judge(FakeChatModel(), **{"criteria": ["Depth"], **options})

    base = key(judge())
    assert key(judge()) == base
    assert key(judge(), label="B", category="c") == base
    assert key(judge(name="other")) == base
    others = [
        key(judge(), output_a="x"),
        key(judge(), reference="r"),
        key(judge(criteria=["Tone"])),
        key(judge(temperature=1.0)),
        key(judge(instructions="Be kind.")),
    ]
    assert len({base, *others}) == 6


@KINDS
def test_a_finished_run_with_a_bad_row_resumes_where_that_row_is_all_that_is_left(kind, tmp_path):
    rows = [{"input": "q", "output": text} for text in ("fine", "", "good")]
    model, out = FakeChatModel(replies=fitting_reply), tmp_path / "r.xlsx"
    judge = of_method("rubric", model, rubric="Is it good?")
    for resumed in (0, 2):
        found, summary = collect(judge, rows, kind, out=out)
        assert [row["verdict"]["label"] is None for row in found] == [False, True, False]
        assert summary.resumed == resumed


def test_equal_pairs_are_each_judged_and_resumed(tmp_path):
    same = [pairs(1)[0]] * 3
    model = FakeChatModel()
    judge = create_bsm_judge(model, criteria=["Depth"])
    rows, _ = collect(judge, same, "sync", records=tmp_path / "o.jsonl")
    assert len({row["key"] for row in rows}) == 3
    calls = len(model.prompts)
    collect(judge, same, "sync", records=tmp_path / "o.jsonl")
    assert len(model.prompts) == calls == 6


def test_a_torn_tail_goes_and_failed_rows_are_tried_again(tmp_path):
    out = tmp_path / "o.jsonl"
    broken = [True]

    def respond(prompt):
        return "no" if broken[0] and "Why 1?" in prompt else judged_by(goods)(prompt)

    judge = create_bsm_judge(FakeChatModel(replies=respond), criteria=["Depth"])
    _, summary = collect(judge, pairs(3), "sync", records=out)
    assert summary.not_judged == {"unparsable": 1}
    with out.open("a") as file:
        file.write('{"index": 9, "key": "to')
    broken[0] = False
    again, summary = collect(judge, pairs(3), "sync", records=out)
    assert [row["verdict"]["preference"] for row in again] == ["A"] * 3
    assert (summary.resumed, summary.calls) == (2, 2)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(line["index"] for line in lines) == [0, 1, 2]


def test_rows_of_another_server_are_counted_named_and_judged_again_on_request(
    serve, tmp_path, caplog
):
    servers = [serve(good), serve(good)]
    rows, out = [PAIR, {**PAIR, "input": "How?"}], tmp_path / "o.jsonl"
    counts = []
    for server, options in (
        (servers[0], {}),
        (servers[1], {}),
        (servers[1], {"same_server": True}),
        (servers[1], {"same_server": True}),
    ):
        judge = of_method("relative", chat(server), orders="none")
        _, summary = collect(judge, rows, "sync", records=out, **options)
        counts.append((summary.resumed, summary.elsewhere))
    assert counts == [(0, 0), (2, 2), (0, 0), (2, 0)]
    assert [len(server.calls) for server in servers] == [2, 2]
    assert "at another address" in caplog.text
    assert not any(server.url.partition("//")[2] in out.read_text() for server in servers)


SEEDS = itertools.count()


def flipped(data):
    """Data with one bit changed, somewhere in the third line."""
    lines, chance = data.splitlines(keepends=True), random.Random(next(SEEDS))
    place = sum(map(len, lines[:2])) + chance.randrange(len(lines[2]) - 1)
    return data[:place] + bytes([data[place] ^ 1 << chance.randrange(7)]) + data[place + 1 :]


def edited(old, new):
    return lambda data: b"".join(
        line.replace(old, new) if n == 2 else line
        for n, line in enumerate(data.splitlines(keepends=True))
    )


@pytest.mark.parametrize(
    "damage",
    [
        *[flipped] * 8,
        lambda data: data.replace(data.splitlines(keepends=True)[2], b"\0" * 500 + b"\n"),
        lambda data: b"".join(data.splitlines(keepends=True)[:-1]) + b"\0" * 4096,
        edited(b'"preference": "tie"', b'"preference": "A"'),
        edited(b'"score": 0.5', b'"score": 999'),
        edited(b'"failures": [], ', b""),
    ],
)
def test_a_damaged_line_is_named_set_aside_and_its_row_judged_again(tmp_path, caplog, damage):
    model = FakeChatModel()
    judge = of_method("relative", model, orders="none")
    out, others = tmp_path / "o.jsonl", [{**PAIR, "input": f"Why {n}?"} for n in range(5)]
    first, _ = collect(judge, others, "sync", records=out)
    good = out.read_bytes()
    out.write_bytes(damage(good))
    assert out.read_bytes() != good
    again, summary = collect(judge, others, "sync", records=out)
    assert again == first
    assert (summary.resumed, len(model.prompts)) == (4, 6)
    assert re.search(r"o\.jsonl: damaged lines.* [35]$", caplog.messages[-1])
    assert (tmp_path / "o.jsonl.damaged").read_bytes().count(b"\n") == 1
    assert collect(judge, others, "sync", records=out)[1].resumed == 5


def test_a_line_that_somebody_edited_is_in_no_report(tmp_path):
    out = tmp_path / "o.jsonl"
    collect(of_method("relative", FakeChatModel()), pairs(2), "sync", records=out)
    [verdicts] = read_verdicts(out).values()
    assert len(verdicts) == 2
    line = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(line[0] + line[1].replace(b'"tie"', b'"A"'))
    with pytest.raises(InputError, match=r"o\.jsonl, line 2: changed"):
        read_verdicts(out)
    # Rows of another program have no checksum, and promise nothing.
    out.write_text('{"verdict": {"preference": "A"}}\n')
    assert read_verdicts(out)


def test_a_file_of_something_else_is_not_touched(tmp_path):
    out = tmp_path / "notes.txt"
    out.write_text("my notes\n")
    foreign = [
        {"my": "data"}, pairs(1)[0], {"key": [], "verdict": {}}, {"key": "k", "verdict": 5},
        {"key": "k", "text": "", "judge": "me"}, {"key": "k", "text": "", "failures": [1]},
    ]  # fmt: skip
    texts = ["my notes\n", "torn", "[" * 100_000, *map(json.dumps, foreign)]
    utf16 = json.dumps({"key": "k", "verdict": {}}).encode("utf-16")
    for precious in (utf16, *(text.encode() for text in texts)):
        out.write_bytes(precious)
        with pytest.raises(OutputError, match=r"notes\.txt, line 1"):
            collect(create_bsm_judge(FakeChatModel()), pairs(1), "sync", records=out)
        assert out.read_bytes() == precious
    assert list(tmp_path.iterdir()) == [out]


def test_tidying_follows_no_link_leaves_no_copy_and_takes_the_longest_names(tmp_path):
    judge = create_bsm_judge(FakeChatModel(), criteria=["Depth"])
    out, victim = tmp_path / ("o" * 249 + ".jsonl"), tmp_path / "victim"
    collect(judge, pairs(1), "sync", records=out)
    victim.write_text("mine")
    # A name that can be foreseen, and one that a run which was killed left behind.
    (tmp_path / f".{'o' * 100}.{os.getpid()}.tmp").symlink_to(victim)
    (tmp_path / f"{Results.prefix_of(out)}abc.tmp").symlink_to(victim)
    with out.open("a") as file:
        file.write('{"index": 1, "key": "to')
    assert collect(judge, pairs(1), "sync", records=out)[1].resumed == 1
    assert victim.read_text() == "mine"
    assert out.read_text().count("\n") == out.read_text().count('{"index') == 1
    assert len(list(tmp_path.iterdir())) == 3


@for_each("place", [".", "/proc/x.jsonl", "/dev/full"])
def test_a_place_that_cannot_be_written_is_one_sentence(place):
    judge = create_bsm_judge(FakeChatModel(), criteria=["Depth"])
    with pytest.raises(OutputError, match="cannot be written"):
        collect(judge, pairs(1), "sync", records=place)


def test_a_line_is_written_whole_or_not_at_all_and_links_and_modes_stay(tmp_path, monkeypatch):
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(real)
    judge = create_bsm_judge(FakeChatModel(), criteria=["Depth"])
    collect(judge, pairs(1), "sync", records=link)
    real.chmod(0o600)
    collect(judge, pairs(2), "sync", records=link)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert len(real.read_text().splitlines()) == 2
    write, calls = os.write, []

    def short(file, data):
        calls.append(1)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return write(file, bytes(data)[:10])

    monkeypatch.setattr("langchain_judges.runs.results.os.write", short)
    for kind in ("sync", "async"):
        calls.clear()
        with pytest.raises(OutputError, match="No space left"):
            collect(judge, pairs(3), kind, records=link)
    assert len(real.read_text().splitlines()) == 2


@KINDS
def test_an_error_while_a_stored_row_is_read_is_raised(tmp_path, kind):
    out = tmp_path / "o.jsonl"
    judge = create_bsm_judge(FakeChatModel(), criteria=["Depth"])
    collect(judge, pairs(4), "sync", records=out)
    rows = iter(pairs(4))

    def moving():
        yield next(rows)
        out.write_bytes(b"")
        yield from rows

    with pytest.raises(OutputError, match=r"Another program .*o\.jsonl"):
        collect(judge, moving(), kind, records=out, max_concurrency=1)


def test_prompts_filled_beforehand_and_other_embedders_make_another_judge():
    def mark(judge):
        return RunState(judge, [], RunOptions()).name["mark"]

    def bsm(tone):
        text = "Score {response_1} and {response_2} by {criterion}, be {tone}."
        prompt = ChatPromptTemplate.from_template(text).partial(tone=tone)
        return create_bsm_judge(FakeChatModel(), prompts={"solve": prompt})

    def drpe(size):
        embedder = DeterministicFakeEmbedding(size=size)
        return create_drpe_judge(FakeChatModel(), embeddings=embedder)

    assert mark(bsm("kind")) == mark(bsm("kind")) != mark(bsm("strict"))
    assert mark(drpe(8)) == mark(drpe(8)) != mark(drpe(16))


@pytest.mark.parametrize("form", ["function", "sequence"])
def test_what_does_not_say_what_decides_its_verdicts_has_no_results_file(tmp_path, form):
    judge: Runnable[Any, Any] = RunnableLambda(lambda _: {"verdict": even_verdict()})
    if form == "sequence":
        judge = create_bsm_judge(FakeChatModel(), criteria=["Depth"]) | judge
    out = tmp_path / "o.jsonl"
    with pytest.raises(OptionError, match="judge with metadata"):
        judge_many(judge, pairs(1), records=out)
    marked = judge.with_config(metadata={"method": "mine 1"})
    collect(marked, pairs(1), "sync", records=out)
    assert collect(marked, pairs(1), "sync", records=out)[1].resumed == 1


def test_two_runs_cannot_write_to_one_file(tmp_path):
    judge = create_bsm_judge(FakeChatModel(), criteria=["Depth"])
    first = judge_many(judge, pairs(3), records=tmp_path / "o.jsonl", progress=False)
    next(first)
    with pytest.raises(OutputError, match="Another run is writing"):
        collect(judge, pairs(3), "sync", records=tmp_path / "o.jsonl")
    first.close()
    assert len(collect(judge, pairs(3), "sync", records=tmp_path / "o.jsonl")[0]) == 3


@KINDS
def test_a_budget_of_calls_judges_whole_pairs_and_leaves_the_rest_for_later(tmp_path, kind):
    model = FakeChatModel()
    judge = create_bsm_judge(model, max_criteria=5)
    out = tmp_path / "o.jsonl"
    rows, summary = collect(judge, pairs(5), kind, records=out, max_calls=25)
    judged = [row["verdict"]["preference"] for row in rows]
    assert judged == ["A", "A", None, None, None]
    assert summary.not_judged == {"over_budget": 3}
    assert summary.calls == len(model.prompts) == 22
    rows, summary = collect(judge, pairs(5), kind, records=out)
    assert all(row["verdict"]["preference"] == "A" for row in rows)
    assert summary.calls == 33


@KINDS
def test_repairs_beyond_the_budget_end_a_pair_as_over_budget_with_its_cost(kind):
    judge = create_bsm_judge(FakeChatModel(replies=lambda _: "no"), criteria=["Depth"])
    rows, summary = collect(judge, pairs(1), kind, max_calls=3)
    verdict = rows[0]["verdict"]
    assert [f["reason"] for f in verdict["failures"]] == ["over_budget"]
    assert summary.calls == verdict["usage"]["calls"] == 3


@KINDS
def test_a_wrong_key_stops_the_run_at_once(serve, kind):
    server = serve(lambda call: error(401, "wrong key"))
    judge = create_bsm_judge(chat(server))
    with pytest.raises(ModelAccessError, match="wrong key"):
        collect(judge, pairs(500), kind, max_concurrency=4)
    assert len(server.calls) <= 8


@KINDS
def test_ten_rows_that_fail_alike_stop_the_run(serve, kind):
    server = serve(lambda call: error(400, "no such deployment"))
    judge = create_bsm_judge(chat(server), criteria=["Depth"], orders="none")
    with pytest.raises(RepeatedFailureError, match=r"10 rows.* HTTP 400"):
        collect(judge, pairs(500), kind, max_concurrency=2)
    assert len(server.calls) < 20


def test_ten_texts_that_a_provider_refuses_do_not_stop_the_run(serve):
    server = serve(lambda call: error(400, "content management policy"))
    judge = create_bsm_judge(chat(server), criteria=["Depth"], orders="none")
    rows, _ = collect(judge, pairs(11), "sync", max_concurrency=2)
    assert [row["verdict"]["failures"][0]["reason"] for row in rows] == ["refusal"] * 11


class ObjectId:  # as MongoDB has them
    def __str__(self):
        return "507f"


VALUES = [
    *((UUID(int=7), str(UUID(int=7))), (ObjectId(), "507f"), (b"ab", "ab"), (Decimal("7"), "7")),
    *((np.int64(3), 3), (np.float32(0.5), 0.5), (date(2026, 1, 2), "2026-01-02")),
    *((float("nan"), None), (7, 7), ("p7", "p7"), ((1, 2), [1, 2])),
]


@for_each("field", ["id", *({*ANNOTATIONS} - {"human_votes"})])
@for_each("value, kept", VALUES)
def test_ids_and_annotations_of_any_type_are_kept_as_plain_data(field, value, kept):
    if field == "group" and isinstance(kept, int | float):
        kept = str(kept)
    cell, known = ({"Tone": each} if field == "labels" else each for each in (value, kept))
    judge = of_method("rubric", FakeChatModel(replies=answer))
    [row], _ = collect(judge, [{**ITEM, field: cell}], "sync")
    assert row["judged"]
    assert json.loads(json.dumps(row)).get(field) == known


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@for_each(
    ("rows", "message"),
    [
        ([5], "row 1: a row must have named fields, .* got int"),
        ([{**pairs(1)[0], "label": ENDLESS}], "row 1: data that contain themselves"),
    ],
)
def test_rows_that_cannot_be_judged_or_written_are_refused_before_they_are_paid(rows, message):
    model = FakeChatModel()
    with pytest.raises(InputError, match=message):
        collect(create_bsm_judge(model), rows, "sync")
    assert model.prompts == []


@for_each(
    ("judge", "rows", "message"),
    [
        (FakeChatModel(), [], "`judge` must be a judge, .* got the model FakeChatModel"),
        (RunnableLambda(str), pairs(1)[0], "`rows` must be a list"),
    ],
)
def test_swapped_arguments_are_told(judge, rows, message):
    for many in (judge_many, ajudge_many):
        with pytest.raises(OptionError, match=message):
            many(judge, rows)


@KINDS
def test_a_bad_row_later_on_costs_that_row_and_says_why(serve, tmp_path, kind):
    judge = create_bsm_judge(chat(serve(good)), criteria=["Depth"], orders="none")
    nested: list[Any] = []
    for _ in range(3000):
        nested = [nested]
    deep = {**pairs(1)[0], "label": nested}
    path = [*pairs(6), {"input": "q", "id": "x"}, 5, deep, *pairs(8)]
    rows, summary = collect(judge, path, kind, records=tmp_path / "o.jsonl", max_concurrency=4)
    assert [row["index"] for row in rows] == list(range(17))
    failures = [row["verdict"]["failures"][0] for row in rows[6:9]]
    assert {failure["reason"] for failure in failures} == {"invalid_input"}
    assert failures[0]["detail"].startswith("the field `output_a`")
    assert rows[6]["id"] == "x"
    assert summary.not_judged == {"invalid_input": 3}


@pytest.mark.parametrize("count", [3, 500])
@KINDS
def test_a_model_that_refuses_every_row_stops_the_run(serve, kind, count):
    server = serve(lambda call: error(404, "no such model"))
    judge = create_bsm_judge(chat(server), criteria=["Depth"], orders="none")
    with pytest.raises(ModelAccessError, match="refuses every call: HTTP 404"):
        collect(judge, pairs(count), kind, max_concurrency=4)
    assert len(server.calls) <= 40


@KINDS
def test_a_service_that_fails_on_one_row_costs_that_row(kind):
    def fragile(pair):
        if "3" in pair["input"]:
            raise ConnectionError("it was lost")
        return {"verdict": even_verdict()}

    rows, _ = collect(RunnableLambda(fragile), pairs(12), kind)
    (failure,) = [row["verdict"] for row in rows if row["verdict"]["preference"] is None]
    assert failure["failures"][0]["detail"] == "ConnectionError: it was lost"


# ---- what no model sees makes no row new


def rerun(method, tmp_path, row, changed, **options):
    """The calls of a second run, and its result, of a row that was changed."""
    model, out = FakeChatModel(replies=answer), tmp_path / "out.jsonl"
    judge = of_method(method, model, **options)
    list(judge_many(judge, [row], records=out, progress=False))
    before = len(model.prompts)
    (result,) = judge_many(judge, [changed], records=out, progress=False)
    return len(model.prompts) - before, result


@for_each("method", ["relative", "rubric"])
def test_a_changed_id_group_or_family_judges_no_row_again(method, tmp_path):
    row = {**item_of(method), "id": "1", "group": "g", "family": "f", "label": "x"}
    changed = {**item_of(method), "id": "2", "group": "h", "family": "other"}
    calls, result = rerun(method, tmp_path, row, changed)
    assert (calls, result["id"], result["group"]) == (0, "2", "h")
    assert "label" not in result


def test_what_a_memory_chooses_by_does_make_a_row_new(tmp_path):
    row = {**ITEM, "id": "1", "family": "gates"}
    for changed in ({**row, "family": "other"}, {**row, "group": "g"}, {**row, "id": "2"}):
        memory = item_memory()
        calls, _ = rerun("allure", tmp_path / str(len(changed)), row, changed, memory=memory)
        assert calls == 1, changed


def test_a_judge_of_your_own_may_read_the_id(tmp_path):
    seen: list[str] = []

    def own(row: dict[str, Any]) -> dict[str, Any]:
        seen.append(row["id"])
        return {"verdict": even_verdict()}

    judge = RunnableLambda(own).with_config(metadata={"takes": "pair", "method": "mine"})
    for name in ("1", "2", "2"):
        list(judge_many(judge, [{**PAIR, "id": name}], records=tmp_path / "o.jsonl"))
    assert seen == ["1", "2"]


async def test_an_iteration_that_is_left_frees_its_files_for_the_next(tmp_path, capsys):
    first = asyncio.Event()

    async def hangs(pair):
        if first.is_set():
            await asyncio.Event().wait()
        first.set()
        return {"verdict": even_verdict()}

    def judged(work):
        judge = RunnableLambda(lambda pair: {}, work).with_config(metadata={"method": "m"})
        pairs = [{**PAIR, "id": str(n), "input": str(n)} for n in range(9)]
        return ajudge_many(judge, pairs, records=tmp_path / "r.jsonl", progress=False)

    async def at_once(pair):
        return {"verdict": even_verdict()}

    async for _ in judged(hangs):
        break
    rows = [row async for row in judged(at_once)]
    assert len(rows) == 9
    assert "never retrieved" not in capsys.readouterr().err


def test_a_loop_that_is_left_frees_its_files_for_the_next(tmp_path):
    def judged():
        judge: Any = RunnableLambda(lambda pair: {"verdict": even_verdict()})
        pairs = [{**PAIR, "id": str(n), "input": str(n)} for n in range(9)]
        named = judge.with_config(metadata={"method": "m"})
        return judge_many(named, pairs, records=tmp_path / "r.jsonl", progress=False)

    for _ in judged():
        break
    assert len(list(judged())) == 9


def test_when_calls_are_sent_makes_no_other_judge(tmp_path):
    for cache_first in (True, False):
        judge = of_method("relative", FakeChatModel(replies=answer), cache_first=cache_first)
        run = judge_many(judge, [PAIR], records=tmp_path / "r.jsonl", progress=False)
        assert len(list(run)) == 1
    assert (run.summary.resumed, run.summary.others) == (1, 0)
    jury = [{"members": [{"options": {"cache_first": each, "samples": 2}}]} for each in (0, 1)]
    assert _decisive(jury[0]) == _decisive(jury[1]) == {"members": [{"options": {"samples": 2}}]}
