"""What every method asks and answers, recorded, so that a rewrite cannot change it unseen.

`frozen/` holds, in a file for each method, for every preset and for options that reach other
prompts (`frozen_cases.py`), judged with a fake model that answers any schema
(`schema_models.py`):

- `calls`: how many calls were made, and how many the judge's metadata promise;
- `shapes`: the replies asked for, with their fields, bounds and choices;
- `asked`: each call, sorted: run name | shape's name | settings | digest of its messages;
- `verdict`, without its usage, and `result`, a digest of all that was returned.

It also holds how aspects are learned and an audit by a model. Prompts are digests; to read
them:

    python -m tests.test_frozen --show bsm/paper       # a case's prompts
    python -m tests.test_frozen --update               # records everything anew
    python -m tests.test_frozen --update bsm others     # records these files anew

A failing test shows the lines that differ, and the new prompt of each step once. A change
on purpose is recorded with `--update`, in the same commit; any other change is a bug.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from langchain_judges import create_allure_audit, learn_aspects, load_judge
from langchain_judges.methods.registry import COMBINATIONS, METHODS, leaf_of, method_of
from langchain_judges.writing.writers import load_writer
from tests.frozen_cases import (
    CASES,
    ITEM,
    OTHER,
    PAIR,
    TASK,
    Case,
    item_memory,
    model_of,
    pair_memory,
)
from tests.memories import Letters
from tests.schema_models import Call, Recorder

JUDGES = METHODS | COMBINATIONS
FOLDER = Path(__file__).with_name("frozen")
RECORDED: dict[str, Any] = {
    name: entry
    for file in sorted(FOLDER.glob("*.json"))
    for name, entry in json.loads(file.read_text()).items()
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def rounded(value: Any) -> Any:
    """Round every number to nine digits, so that platforms agree."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value


def whole(result: Any) -> str:
    return digest(json.dumps(rounded(result), sort_keys=True, ensure_ascii=False))


def line_of(call: Call) -> str:
    settings = " ".join(f"{name}={value}" for name, value in call.settings.items())
    return f"{call.name} | {call.shape.partition(' {')[0]} | {settings} | {digest(call.prompt)}"


def asked(calls: list[Call]) -> dict[str, Any]:
    return {"shapes": sorted({call.shape for call in calls}), "asked": sorted(map(line_of, calls))}


def build(case: Case, recorder: Recorder) -> tuple[Any, dict[str, Any]]:
    """The judge or writer of a case, and what it is given."""
    model = case.model(recorder) if case.model else model_of(recorder)
    options = {
        name: model_of(recorder, model_name=OTHER) if value == OTHER else value
        for name, value in case.options.items()
    }
    if case.method.startswith("write "):
        method = case.method.removeprefix("write ")
        writer = load_writer(method, model, preset=case.preset, **options)
        return writer, {**TASK, **case.row}
    kind = method_of(leaf_of({"method": case.method, "options": case.options})[0]).takes
    if case.memory:
        options["memory"] = pair_memory() if kind == "pair" else item_memory()
    if case.method == "drpe":
        # The default depends on what is installed.
        options["embeddings"] = Letters()
    judge = load_judge(case.method, model, preset=case.preset, **options)
    row = {**(PAIR if kind == "pair" else ITEM), **case.row}
    return judge, {name: value for name, value in row.items() if value is not None}


def run_case(case: Case) -> tuple[dict[str, Any], list[Call]]:
    """The record of a case, and its calls."""
    recorder = Recorder()
    graph, row = build(case, recorder)
    result = graph.invoke(row)
    outcome = result.get("verdict") or {
        name: result[name] for name in ("text", "missing", "failures")
    }
    entry = {
        "calls": [len(recorder.calls), graph.config["metadata"]["calls"]],
        **asked(recorder.calls),
        "verdict": rounded({name: part for name, part in outcome.items() if name != "usage"}),
        "result": whole(result),
    }
    return entry, recorder.calls


def run_learning() -> tuple[dict[str, Any], list[Call]]:
    """Record how aspects are learned from a corpus."""
    recorder = Recorder()
    learned = learn_aspects(model_of(recorder), [PAIR], n=2, instructions="Be brief.")
    return {**asked(recorder.calls), "aspects": learned["aspects"]}, recorder.calls


def run_audit() -> tuple[dict[str, Any], list[Call]]:
    """Record an audit by a model: its prompts, and those that show what it taught."""
    recorder, memory = Recorder(), item_memory()
    judge = load_judge("allure", model_of(recorder), memory=memory)
    audit = create_allure_audit(
        judge, memory, auditor=model_of(recorder, model_name=OTHER), max_rounds=2
    )
    items = [
        {**ITEM, "id": f"i{n}", "group": f"g{n}", "label": n % 2, "output": f"Answer: {n}, 7"}
        for n in range(4)
    ]
    result = audit.invoke({"items": items})
    outputs = sorted(str(example["output"]) for example in memory.examples())
    entry = {**asked(recorder.calls), "remembered": outputs, "keys": sorted(result)}
    return entry, recorder.calls


OTHERS = {"learn aspects": run_learning, "audit by a model": run_audit}


def entry_of(name: str) -> tuple[Any, list[Call]]:
    """The file of a name in `frozen/`, as it is now, and its calls."""
    return OTHERS[name]() if name in OTHERS else run_case(CASES[name])


NAMES = [*CASES, *OTHERS]


def file_of(name: str) -> str:
    """The file that holds an entry: its method or `others`."""
    first = re.split("[ /]", name)[0]
    return first if first in {*JUDGES, "write"} else "others"


FILES = sorted(set(map(file_of, NAMES)))


def difference(recorded: Any, now: Any) -> str:
    """The lines that differ."""
    before, after = (
        json.dumps(each, indent=1, ensure_ascii=False).split("\n") for each in (recorded, now)
    )
    return "\n".join([*difflib.unified_diff(before, after, n=0, lineterm="")][2:])


def changed_prompts(recorded: Any, calls: list[Call]) -> dict[str, str]:
    """A call and its prompt, by each step that asks what it did not ask before."""
    asked_before = set((recorded or {}).get("asked", ()))
    lines = sorted((line_of(call), call.prompt) for call in calls)
    new = [(line, prompt) for line, prompt in lines if line not in asked_before]
    return {re.split("[: ]", line)[0]: f"=== {line}\n{prompt}" for line, prompt in new[::-1]}


@pytest.mark.parametrize("file", FILES)
def test_what_is_asked_and_answered_is_as_recorded(file):
    changes, prompts = list[str](), dict[str, str]()
    for name in NAMES:
        if file_of(name) == file:
            now, calls = entry_of(name)
            recorded = RECORDED.get(name)
            if now != recorded:
                changes.append(f"{name} has changed:\n{difference(recorded, now)}")
                prompts = {**changed_prompts(recorded, calls), **prompts}
    if changes:
        how = f"On purpose? python -m tests.test_frozen --update {file}"
        pytest.fail("\n\n".join([*changes, *prompts.values(), how]), pytrace=False)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(" unusable")])
def test_a_row_that_could_not_be_judged_names_the_reasons_of_its_failures(name):
    verdict = RECORDED[name]["verdict"]
    assert verdict["failures"]
    assert all(each["reason"] in verdict["rationale"] for each in verdict["failures"])


def test_the_files_hold_no_entry_without_a_case():
    assert sorted(RECORDED) == sorted(NAMES)


def compact(entries: Mapping[str, Any]) -> str:
    """JSON with a line for each call and each other field."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    def field(value: Any) -> str:
        if value and isinstance(value, list) and isinstance(value[0], str):
            return "[\n   " + ",\n   ".join(map(line, value)) + "\n  ]"
        return line(value)

    blocks = [
        f" {line(name)}: {{\n  "
        + ",\n  ".join(f"{line(key)}: {field(part)}" for key, part in entry.items())
        + "\n }"
        for name, entry in entries.items()
    ]
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def show(name: str) -> None:
    entry, calls = entry_of(name)
    for call in sorted(calls, key=line_of):
        print(f"=== {line_of(call)}\n{call.shape}\n{call.prompt}\n")
    rest = {key: part for key, part in entry.items() if key not in ("asked", "shapes")}
    print(json.dumps(rest, indent=1, ensure_ascii=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--update", nargs="*", metavar="FILE", choices=FILES, help="record these, or all, anew"
    )
    parser.add_argument("--show", metavar="NAME", choices=NAMES, help="print its prompts")
    args = parser.parse_args()
    for name in list(os.environ):
        if name.startswith(("LANGSMITH", "LANGCHAIN", "OPENAI", "ANTHROPIC")):
            del os.environ[name]
    logging.disable()  # what cases are warned of, each time they run
    if args.show:
        show(args.show)
    if args.update is not None:
        update(args.update or FILES)


def update(files: Iterable[str]) -> None:
    for file in files:
        entries = {name: entry_of(name)[0] for name in sorted(NAMES) if file_of(name) == file}
        (FOLDER / f"{file}.json").write_text(compact(entries))
        print(f"{file}: {len(entries)} entries recorded")


if __name__ == "__main__":
    main()
