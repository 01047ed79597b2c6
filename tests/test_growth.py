"""Twice as much of what makes a row long is about twice the work."""

import asyncio
import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from langchain_core.messages import AIMessage

from benchmarks.growth import JOBS, pairs
from langchain_judges import ajudge_many, create_allure_audit, judge_many
from langchain_judges.asking.reading import read
from langchain_judges.asking.reply_text import SLOT_FORMS, spoken_label
from langchain_judges.metrics import alt_test
from langchain_judges.rows import fences
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import steps_of
from tests.attacks.kinds import KINDS
from tests.cases import for_each
from tests.judges import item_of, of_method
from tests.memories import example, memory_of
from tests.planners import fooled_model, planning
from tests.test_grammar import MANY

pytestmark = pytest.mark.whole

# A square whose part of the work is 4 % at the smallest size is more; of 0.8 %.
MOST, EXACT = 2.2, 2.05
SIZED = frozenset({str, list, tuple, dict})
ROOT = str(Path(__file__).parents[1])
LIBRARIES = str(Path(pytest.__file__).parents[1])


def work(do):
    """Count lines that run, and the size of each text and collection a function is given.

    Of libraries the calls count without their lines, which loading and caches change.
    """
    count = 0

    def line(*_):
        nonlocal count
        count += 1
        return line

    def call(frame, *_):
        nonlocal count
        if frame.f_lasti < 8:  # a generator that goes on is not given anew
            code, known = frame.f_code, frame.f_locals
            given = map(known.get, code.co_varnames[: code.co_argcount])
            count += sum([len(each) for each in given if type(each) in SIZED])
        traced = line()
        return traced if is_own(frame.f_code.co_filename) else None

    sys.settrace(call)
    try:
        do()
    finally:
        sys.settrace(None)
    return count


@cache
def is_own(file):
    return file.startswith(ROOT) and not file.startswith(LIBRARIES)


def told(many, words=9):
    """A conversation."""
    return [
        {"role": ("user", "assistant")[place % 2], "content": f"{place} {side} " * words}
        for place in range(many)
        for side in ["tide"]
    ]


def called(many):
    """An agent's calls, all made before the first of them is answered."""
    call = {"name": "search", "args": {}}
    calls = [
        {"role": "assistant", "content": "", "tool_calls": [{**call, "id": f"c{place}"}]}
        for place in range(many)
    ]
    results = [
        {"role": "tool", "content": "found", "tool_call_id": f"c{place}"}
        for place in reversed(range(many))
    ]
    return [{"role": "user", "content": "Why?"}, *calls, *results]


ROWS = {
    "messages": lambda many: {"input": "Why?", "output": told(many), "rubric": "-"},
    "messages of the task": lambda many: {"input": told(many), "output": "So.", "rubric": "-"},
    "the length of messages": lambda many: {
        "input": "Why?",
        "output": told(20, many),
        "rubric": "-",
    },
    "calls of tools": lambda many: {"input": "Why?", "output": called(many), "rubric": "-"},
    "documents": lambda many: {"input": "Why?", "output": "So.", "context": ["A text."] * many},
    "accepted answers": lambda many: {"input": "Why?", "output": "So.", "expected": ["a"] * many},
}
PAIRS = {
    "messages": lambda many: {"input": "Why?", "output_a": told(many), "output_b": told(many + 1)},
    "calls of tools": lambda many: {"input": "Why?", "output_a": called(many), "output_b": "No."},
}


def ran(method, row):
    judge = of_method(method)
    return lambda: asyncio.run(judge.ainvoke(plain_row(row)))


def growth(of, few=10):
    """How many times the work of the first doubling the second takes: 2, or 4 for a square.

    What any size takes is in neither, so that small sizes show what grows.
    """
    of(few)()  # loads what the first call loads
    first, second, third = (work(of(size * few)) for size in (1, 2, 4))
    return (third - second) / (second - first)


@for_each("name", ROWS)
def test_judging_a_text_is_linear_in(name):
    assert growth(lambda many: ran("rubric", ROWS[name](many))) <= MOST


@for_each("method", ["bsm", "relative", "sc2"])
@for_each("name", PAIRS)
def test_judging_a_pair_is_linear_in(name, method):
    assert growth(lambda many: ran(method, PAIRS[name](many))) <= MOST


def numbered(many):
    return [f"Point {place}" for place in range(many)]


OPTIONS = {
    "criteria": lambda many: ("bsm", {"criteria": numbered(many)}),
    "criteria of a text": lambda many: ("rubric", {"rubric": numbered(many)}),
    "replies to criteria": lambda many: ("rubric", {"rubric": numbered(many), "each": True}),
    "aspects of a table": lambda many: ("sc2", {"aspects": numbered(many)}),
    "tables": lambda many: ("sc2", {"samples": many}),
    "votes": lambda many: ("cot_sc", {"samples": many}),
    "examples": lambda many: (
        "rubric",
        {"rubric": "-", "recall": "all", "memory": memory_of(*map(of_number, range(many)))},
    ),
}


def of_number(place):
    return example(f"text {place}", place % 2, input=f"task {place}")


@for_each("name", OPTIONS)
def test_judging_is_linear_in(name):
    def of(many):
        method, options = OPTIONS[name](many)
        judge, row = of_method(method, **options), item_of(method)
        return lambda: asyncio.run(judge.ainvoke(row))

    assert growth(of, 10 if name == "criteria" else 5) <= EXACT


def test_a_run_is_linear_in_the_columns_of_its_table(tmp_path):
    def of(many):
        columns = {name: "cell" for name in numbered(many)}
        rows = [{"input": f"{n}?", "output": "So.", **columns} for n in range(3)]
        judge = of_method("rubric", rubric="-")
        return lambda: judge_many(judge, rows, progress=False).to_csv(tmp_path / "all.csv")

    assert growth(of, 50) <= MOST


def test_testing_a_judge_against_annotators_is_linear_in_them():
    def of(many):
        answers = {name: [*"ABA" * 10, None] for name in numbered(many)}
        return lambda: alt_test(["A"] * 31, answers)

    assert growth(of, 20) <= MOST


def audited(items, **settings):
    model = fooled_model()
    settings = {"auditor": "labels", "max_rounds": 1, **settings}
    audit = create_allure_audit(model, memory_of(), **settings)
    return model, lambda: asyncio.run(audit.ainvoke({"items": items}))


def test_an_audit_is_linear_in_its_items():
    assert growth(lambda many: audited(planning(many))[1], 2) <= MOST


@for_each("groups, calls", [(10, 4 + 2 * 20 + 2 * 20), (15, 4 + 2 * 30 + 2 * 20)])
def test_an_example_is_left_out_on_twenty_items_of_dev_at_most(groups, calls):
    model, audit = audited(planning(2), dev=planning(groups, first=50))
    audit()
    # Four items; dev without and with both examples; twenty items without each of them.
    assert len(model.prompts) == calls


def test_results_find_their_calls_in_whatever_order_they_come():
    assert growth(lambda many: lambda: steps_of(called(many)), 100) <= MOST


def test_tokens_are_sought_once_however_many_there_are_and_however_many_digits():
    def digits(many):
        texts = [hashlib.sha256(str(place).encode()).hexdigest() for place in range(many)]
        parts = [f"<t-{fences.fence(text)}>{text}" for text in texts]
        return lambda: fences.sealed(parts)

    assert growth(digits, 50) <= MOST


async def judged(many, folder):
    # In one thread: how often several look for work is not the same twice.
    judge = of_method("relative")
    run = ajudge_many(judge, pairs(many), records=folder / "runs.jsonl", progress=False)
    assert len([row async for row in run]) == many


# An audit has a test of its own.
ROW_JOBS = {
    job: JOBS[job] for job in JOBS if job not in ("judge, `records=`", "audit with a checkpointer")
}
ROW_JOBS["judge in a loop"] = (lambda *_: None, lambda *given: asyncio.run(judged(*given)))


@pytest.mark.figures
@for_each("job", ROW_JOBS)
def test_a_job_is_linear_in_its_rows(job, tmp_path, letter_encoder):
    prepare, do = ROW_JOBS[job]

    def of(many):
        folder = Path(mkdtemp(dir=tmp_path))
        prepare(many, folder)
        return lambda: do(many, folder)

    few = 20 if "report" in job else 10  # of fewer a report computes less
    of(4 * few)()  # loads what only many rows load
    assert growth(of, few) <= EXACT


@for_each("part", MANY.values(), ids=MANY)
def test_reading_a_reply_is_linear_in_its_length(part):
    def of(size):
        text = part * (size // len(part))
        return lambda: [
            read(AIMessage(reply), kind.shape, kind.parse, None, [text])
            for reply in (text, f"<think>{text}", f'{{"a": [{text}')
            for kind in KINDS.values()
        ]

    assert growth(of, 5_000) <= MOST


def test_a_reply_of_one_text_takes_as_many_calls_however_long_it_is():
    kind = next(iter(KINDS.values()))

    def calls(words):
        said = json.dumps({kind.said: "so " * words, **kind.answer})
        message, count = AIMessage(said), 0

        def called(_, event, __):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(called)
        try:
            read(message, kind.shape, kind.parse, None)
        finally:
            sys.setprofile(None)
        return count

    calls(10)  # loads and caches
    assert calls(1_000) == calls(10)


@for_each("part", ["\n", " ", "\t ", "\u00a0", "`", "*", "_`", "```", "the ", "my "])
def test_no_pattern_looks_at_every_pair_of_places_around_an_answer(part):
    # Each would take a minute, and the limit of the suite would end it.
    many = part * (90_000 // len(part))
    for kind in KINDS.values():
        whole = json.dumps({kind.said: "Because.", **kind.answer})
        answers = (whole, kind.words, kind.words.partition(":")[0])
        texts = [text for each in answers for text in (f"{each}{many}x", f"{many}x{each}")]
        for text in (*texts, f"Winner:{many}1{many}x"):
            assert read(AIMessage(text), kind.shape, kind.parse, None, [])[0] is None
            assert spoken_label(text, SLOT_FORMS) is None
