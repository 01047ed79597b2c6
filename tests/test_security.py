"""Each promise of SECURITY.md has a test or an attack that shows it; some are tested here."""

import ast
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

import langchain_judges
from langchain_judges import create_relative_judge, create_rubric_judge, judge_many
from langchain_judges.errors import OptionError
from langchain_judges.runs.tables import FORMS
from tests.attacks.__main__ import CLASSES
from tests.cases import for_each
from tests.fakes import FakeChatModel
from tests.judges import PAIR
from tests.test_architecture import tree_of

HERE = Path(__file__).parent
# A test by its file, or a class of `tests.attacks`; the beginning of a promise names it.
SHOWN_BY = {
    "it stays inside the fence of its own text": [
        "attacks: no_text_of_a_prompt_contains_a_token_of_it"
    ],
    "a quoted verdict is not read": ["replies_that_are_no_verdict", "recorded_replies_changed"],
    "no terminal and no page runs it": [
        "cells_of_tables",
        "report_page: judged_texts_are_shown_and_never_obeyed",
        "sheets: no_cell_nor_name_of_a_column_is_live",
        "sinks: nothing_that_others_wrote_steers_what_shows_it",
        "viewer: hostile_texts_are_shown_and_never_obeyed",
    ],
    "what a judge said of it steers": [
        "cells_of_tables",
        "sinks: no_way_out_of_a_run_steers_who_reads_it_or_shows_a_secret",
    ],
    "each call, result and turn": ["agents_that_forge_steps"],
    "an example keeps its source": [
        "memory: what_is_remembered_comes_back_whole_and_once",
        "attacks: no_text_of_a_prompt_contains_a_token_of_it",
    ],
    "forgetting one removes": ["memory: no_file_keeps_what_was_forgotten"],
    "admission can ask": [
        "audit_admission: a_memory_that_disturbs_at_random_is_refused_and_one_that_helps"
    ],
    "only options that the owner lists": [
        "server: a_client_is_refused_what_is_the_owners",
        "server: no_owner_hands_out_paths_models_or_objects",
    ],
    "a bound on replies holds": ["server: a_run_is_stopped_at_its_last_call_whatever_was_foreseen"],
    "nothing is pickled or executed": [
        "security: nothing_of_a_file_is_run",
        "security: no_module_can_run_what_it_reads",
    ],
    "what a run reads back": ["files_damaged"],
    "a file that is not ours": [
        "damaged_files: a_file_of_the_user_is_refused_and_stays_as_it_is",
        "damaged_files: no_file_of_the_user_becomes_one_of_replies",
    ],
    "results, replies and memories": [
        "damaged_files: what_a_run_or_a_memory_keeps_is_for_its_owner_alone",
        "security: a_table_that_is_named_is_for_those_whom_the_umask_allows",
    ],
    "a reply that came and was written down": ["deaths_at_writes", "runs_ended_by_signals"],
    "after a signal nothing": [
        "signals: a_command_asks_nothing_after_a_signal",
        "signals: nothing_is_asked_after_ctrl_c",
    ],
    "behind marked thoughts": ["replies_that_are_no_verdict", "messages_of_odd_forms"],
    "anything else is asked for once more": [
        "ask: every_fault_is_a_failure_with_its_reason_and_its_cost",
        "ask: one_repair_shows_what_was_wrong",
    ],
    "of any reply of up to": [
        "attacks: a_long_reply_is_read_in_a_moment",
        "security: a_reply_of_more_characters_than_are_read_is_no_verdict",
    ],
    "they are counted and named": [
        "runs: rows_of_another_server_are_counted_named_and_judged_again_on_request"
    ],
    "`same_server=True` judges": [
        "runs: rows_of_another_server_are_counted_named_and_judged_again_on_request"
    ],
    "bounded retries, causes in words": [
        "ask: a_request_is_sent_four_times_and_once_for_each_setting_that_is_refused",
        "ask: redirects_in_a_circle_are_not_asked_again",
        "messages_of_odd_forms",
    ],
    "keys masked in errors": [
        "sinks: no_way_out_of_a_run_steers_who_reads_it_or_shows_a_secret",
        "tracing: no_answer_that_repeats_the_key_puts_it_into_a_result_a_file_or_a_trace",
    ],
    "of an answer to a `ChatOpenAI`": ["bodies: no_more_than_the_bound_is_unpacked"],
}


def promises() -> list[str]:
    """Clauses of the third column of SECURITY.md."""
    lines = (HERE.parent / "SECURITY.md").read_text().splitlines()
    cells = [line.split(" | ")[2] for line in lines if line.startswith("| ")][1:]
    return [clause for cell in cells for clause in cell.split("; ")]


def test_each_promise_has_what_shows_it_and_nothing_shows_what_is_not_promised():
    begun = [[name for name in SHOWN_BY if each.startswith(name)] for each in promises()]
    assert begun == [[name] for name in SHOWN_BY]


@for_each("name", {name for names in SHOWN_BY.values() for name in names})
def test_what_shows_a_promise_is_there(name):
    file, _, test = name.partition(": ")
    attacks = {each.__name__ for each in CLASSES}
    assert f"def test_{test}" in (HERE / f"test_{file}.py").read_text() if test else file in attacks


RUNS = '!!python/object/apply:os.mkdir ["ran"]'


@for_each("option", ["file", "prompts"])
def test_nothing_of_a_file_is_run(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(f"criteria: {RUNS}\nevaluate: {RUNS}\n")
    options: Any = {option: Path("spec.yaml")}
    with pytest.raises(OptionError):
        create_rubric_judge(FakeChatModel(replies=[]), **options)
    assert not Path("ran").exists()


def test_no_module_can_run_what_it_reads():
    able = {"eval", "exec", "pickle", "marshal", "shelve"}
    paths = [*Path(langchain_judges.__file__).parent.rglob("*.py")]
    for path in [each for each in paths if re.search("|".join(able), each.read_text())]:
        for node in ast.walk(tree_of(path)):
            named = [getattr(node, "id", ""), getattr(node, "module", "")]
            named += [each.name for each in getattr(node, "names", []) if hasattr(each, "name")]
            assert not able & {*named}, path


@for_each("ending", FORMS)
def test_a_table_that_is_named_is_for_those_whom_the_umask_allows(ending, tmp_path):
    out, before = tmp_path / f"o{ending}", os.umask(0o027)
    try:
        list(judge_many(of_length(1), [PAIR], out=out, progress=False))
    finally:
        os.umask(before)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640


def of_length(size):
    """A judge whose model writes so many characters before its choice."""
    said = json.dumps({"explanation": "x" * size, "preference": "1"})
    model = FakeChatModel(replies=lambda _: AIMessage(said))
    return create_relative_judge(model, orders="none", repairs=0)


@for_each("size, preference", [(99_900, "A"), (100_001, None)])
def test_a_reply_of_more_characters_than_are_read_is_no_verdict(size, preference):
    verdict = of_length(size).invoke(PAIR)["verdict"]
    assert verdict["preference"] == preference
    assert bool(verdict["failures"]) == (preference is None)
