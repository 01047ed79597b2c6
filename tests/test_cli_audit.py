"""The review of an audit at the terminal, and elsewhere."""

import io
import json
import os
import re
from contextlib import closing
from operator import itemgetter
from typing import Any

import httpx
import pytest
from rich.console import Console
from typer.testing import CliRunner

from langchain_judges import FailureMemory
from langchain_judges.cli import app
from langchain_judges.cli.terminal import Terminal, read_key
from langchain_judges.report.labelling import AnswerFile
from langchain_judges.runs.results import locked
from langchain_judges.testing import reply
from langchain_judges.viewer.desks import ProposalDesk
from tests.cases import for_each
from tests.planners import fooled, planning
from tests.processes import start


def behave(call):
    messages = "\n---\n".join(str(m["content"]) for m in call.body["messages"])
    return reply(fooled(messages))


@pytest.fixture
def auditing(serve, tmp_path, letter_encoder):
    """A function that runs the command on three wrong answers of six."""
    server, path = serve(behave), tmp_path / "items.jsonl"
    path.write_text("\n".join(json.dumps(item) for item in planning(3)))

    def run(keys="", *more):
        arguments = ["audit", path, "--model", "fake", "--base-url", server.url]
        memory = [] if "--memory" in more else ["--memory", tmp_path / "memory"]
        arguments += [*memory, "--set", "recall=all", *more]
        return CliRunner().invoke(app, [str(each) for each in arguments], input=keys)

    command: Any = run
    command.server, command.folder = server, tmp_path
    return command


def kept(auditing):
    """The mistakes in the memory's file."""
    examples = FailureMemory(path=auditing.folder / "memory").examples()
    return [(e["source"], e["mode"], e["note"]) for e in examples if e["wrong"] != e["corrected"]]


@pytest.mark.whole
def test_a_person_answers_one_proposal_a_screen(auditing):
    result = auditing("aawa")
    assert result.exit_code == 0, result.output
    assert kept(auditing) == [("0w", None, ""), ("1w", None, "")]
    screen = " ".join(result.stdout.replace("│", "").split())
    for part in (
        "1 of 4: 0w",
        "Which path leads through house 0?",
        "Answer: 50, 20, 1",
        "1 (score 1.00): the words are there",
        "the response does not match an expected answer",
        "3 of 4: 2w",
        "no rule doubts this label",
        "[a] accept: the judge is right",
        "The last round taught nothing new.",
        "Answers that the check was wrong: 1.",
    ):
        assert part in screen
    assert len(auditing.server.calls) == 12
    # The next judge reads the same file.
    path = auditing.folder
    arguments = ["judge", path / "items.jsonl", "--method", "allure", "--model", "fake"]
    arguments += ["--base-url", auditing.server.url, "--memory", path / "memory"]
    judged = CliRunner().invoke(app, [str(each) for each in arguments])
    assert "0w: label 0" in judged.stdout, judged.output
    assert "shown 1 remembered example" in judged.stdout


def test_an_audit_stops_at_its_budget_and_a_higher_one_pays_for_the_rest_alone(auditing):
    limited = auditing("", "--auditor", "labels", "--max-calls", "3", "--concurrency", "1")
    assert (limited.exit_code, len(auditing.server.calls)) == (3, 3)
    assert "budget of 3 calls" in limited.stderr
    whole = auditing("", "--auditor", "labels")
    assert whole.exit_code == 0, whole.output
    assert len(auditing.server.calls) == 12
    # Not the calls of the first round alone.
    assert "at most 30 calls" in " ".join(whole.stderr.split())


def test_two_audits_do_not_pay_for_one_memory(auditing):
    state = auditing.folder / "memory.audit"
    state.touch()
    with locked(state, state):
        refused = auditing("", "--auditor", "labels")
    assert (refused.exit_code, list(auditing.server.calls)) == (2, [])
    assert "Another run is writing to" in refused.stderr
    assert auditing("", "--auditor", "labels").exit_code == 0


def test_an_audit_of_a_budget_in_dollars_needs_prices(auditing):
    result = auditing("", "--auditor", "labels", "--max-dollars", "1")
    assert (result.exit_code, "--max-dollars needs --prices" in result.stderr) == (2, True)
    assert not auditing.server.calls


def test_labels_modes_and_notes_are_edited(auditing):
    result = auditing("nMind the order.\n0mown mode\nm5\na")
    assert result.exit_code == 0, result.output
    assert kept(auditing) == [
        ("0w", None, "Mind the order."),
        ("1w", "own mode", ""),
        ("2w", "keywords", ""),
    ]


def test_the_first_mode_is_chosen_by_its_number(auditing):
    first, again = auditing("m1\nm1\nm1\na"), auditing("m1\nm1\nm1\n")
    assert first.exit_code == again.exit_code == 0
    [mode] = {mode for _, mode, _ in kept(auditing)}
    assert f"\n  1  {mode}\n" in first.stdout


def test_an_answer_is_undone_and_a_proposal_skipped(auditing):
    # Skip the first, reject the second, take that back and accept it, then the rest.
    result = auditing("sruaaaa")
    assert result.exit_code == 0, result.output
    assert [source for source, *_ in kept(auditing)] == ["0w", "1w", "2w"]


@pytest.mark.whole
def test_proposals_are_decided_on_a_page_before_the_audit_goes_on(auditing, monkeypatch):
    def press_enter(console, _):
        # A browser would: the page is asked by its address, which was printed.
        address = httpx.URL(re.search(r"http://\S+", said.getvalue())[0])
        for place in range(4):
            sent = {"place": place, "do": "say", "name": "", "key": "a", "by": "Ana"}
            answered = httpx.post(address.copy_with(path="/answer"), json=sent)
            assert answered.status_code == 200, answered.text
        raise EOFError

    said = io.StringIO()
    console = Console(file=said, soft_wrap=True)
    monkeypatch.setattr("langchain_judges.cli.messages.error_console", lambda: console)
    monkeypatch.setattr("langchain_judges.cli.audit.error_console", lambda: console)
    monkeypatch.setattr(Console, "input", press_enter)
    result = auditing("", "--auditor", "page")
    assert result.exit_code == 0, result.output
    assert [source for source, *_ in kept(auditing)] == ["0w", "1w", "2w"]


@pytest.mark.parametrize("end", ["q", "\x03"])
def test_a_review_resumes_where_it_was_stopped_also_by_a_slower_run(auditing, end):
    stopped = auditing("a" + end, "--concurrency", "4")
    assert stopped.exit_code == 0, stopped.output
    assert "3 of 4" in stopped.stderr
    assert kept(auditing) == []
    result = auditing("aaa", "--concurrency", "1")
    assert "2 of 4: 1w" in result.stdout
    assert "1 of 4: 0w" not in result.stdout
    assert len(kept(auditing)) == 3
    # Nothing that was evaluated was paid again.
    assert len(auditing.server.calls) == 12
    assert not list(auditing.folder.glob("memory.review-*"))


@pytest.mark.whole
def test_a_finished_audit_is_shown_and_another_setting_makes_another(auditing):
    out = auditing.folder / "result.json"
    auditing("aaaa", "-o", out)
    result = json.loads(out.read_text())
    assert (result["stopped"], len(result["decisions"])) == ("nothing_new", 4)
    again = auditing()
    assert "This audit is finished" in again.stderr
    assert "taught nothing new" in again.stdout
    assert len(auditing.server.calls) == 12
    for setting in ("audit.max_rounds=1", "model.temperature=0.5"):
        other = auditing("", "--set", setting)
        assert (other.exit_code, "is finished" in other.stderr) == (0, False)
    assert len(auditing.server.calls) == 24


def test_labels_by_people_need_no_review(auditing):
    check = ["--check", "annotated", "--set", "check.field=label"]
    result = auditing("", *check, "--auditor", "labels")
    assert result.exit_code == 0, result.output
    assert [source for source, *_ in kept(auditing)] == ["0w", "1w", "2w"]


@pytest.mark.whole
def test_what_an_audit_brought_is_said_of_test_alone(auditing):
    rows = [json.dumps(item) for item in planning(12)]
    (auditing.folder / "items.jsonl").write_text("\n".join(rows))
    settings = ("--auditor", "labels", "--dev", "0.3", "--set")
    few = auditing("", *settings, "audit.test=0.1")
    said = " ".join(few.stdout.split())
    assert "not measured: `test`" in said
    enough = auditing("", *settings, "audit.test=0.4", "--memory", auditing.folder / "other")
    said = " ".join(enough.stdout.split())
    assert "accuracy 0.50 (" in said, enough.output
    assert ") before and 1.00 (" in said
    assert "label: 0.50 right" in said


DYING = """
import os, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from langchain_judges.asking import embeddings
from langchain_judges.cli import app

embeddings._encoder = lambda: lambda texts: [[1.0 + len(text)] * 26 for text in texts]
at, calls, put = int(sys.argv[1]), [], SqliteSaver.put

def dying(*arguments, **options):
    calls.append(1)
    if len(calls) == at:
        os._exit(9)
    return put(*arguments, **options)

SqliteSaver.put = dying
app(sys.argv[2:])
"""
"""An audit that dies as a checkpoint is to be written, which the writes before it are."""


@pytest.mark.system
def test_an_audit_that_dies_before_any_checkpoint_pays_nothing_again(serve, tmp_path):
    for at in range(1, 100):
        server, folder = serve(behave), tmp_path / f"{at}"
        folder.mkdir()
        (folder / "items.jsonl").write_text("\n".join(map(json.dumps, planning(2))))
        arguments = ["audit", folder / "items.jsonl", "--model", "fake", "--base-url"]
        arguments += [server.url, "--memory", folder / "memory", "--auditor", "labels"]
        arguments += ["--concurrency", "1", "--set", "recall=all"]
        dying = start("-c", DYING, at, *arguments)
        said = dying.communicate()
        if dying.returncode == 9:
            again = start("-c", DYING, 0, *arguments)
            said = again.communicate()
            assert again.returncode == 0, said
        assert len(server.calls) == 8, (at, said)
        memory = FailureMemory(path=folder / "memory").examples()
        assert [each["source"] for each in memory] == ["0w", "1w"], at
        if dying.returncode == 0:
            break
    assert at > 10


@for_each(
    ("more", "problem"),
    [
        (["--check", "exat"], "there is no check 'exat'; did you mean 'exact'?"),
        (["--set", "check.colour=red"], "'check' has no option 'colour'; it takes none"),
        (
            ["--set", "audit.rounds=2"],
            "'audit' has no option 'rounds'; did you mean 'max_rounds'? it",
        ),
        (["--dev", "2"], "--dev must be a list of items or a share above 0"),
        (["--set", "memory=x"], "--set takes no ['memory']"),
        (["--memory", __file__], "is not a store of this package"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_2(auditing, more, problem):
    result = auditing("", *more)
    assert result.exit_code == 2, result.output
    assert problem in " ".join(result.stderr.split())


def test_answers_that_another_wrote_may_come_twice_lack_a_note_or_an_id(auditing):
    assert auditing("r").exit_code == 0
    [file] = auditing.folder.glob("memory.review-*")
    [own] = [json.loads(line)["id"] for line in file.read_text().splitlines()]
    lines = [{"id": own, "answer": "reject"}, {"answer": "accept"}, {"id": own, "answer": "accept"}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = auditing("rrr")
    assert result.exit_code == 0, result.output
    assert [source for source, *_ in kept(auditing)] == [own]


def proposal(own, **item):
    return {
        "id": own,
        "round": 1,
        "item": {"input": "task", "output": "response", "expected": ["a", "b"], **item},
        "label": 1,
        "score": None,
        "rationale": "so",
        "proposed": 0,
        "why": "no match",
        "check": "exact",
    }


def test_long_texts_are_cut_until_they_are_asked_for(tmp_path):
    entry = proposal("x", output="\n".join(f"line {n}" for n in range(40)))
    request = {"labels": [0, 1], "modes": [], "proposals": [entry]}
    screen, keys = io.StringIO(), iter("vq")
    console = Console(width=80, file=screen)
    with closing(AnswerFile(tmp_path / "r.jsonl", itemgetter("id"))) as file:
        Terminal(console, lambda: next(keys), ProposalDesk(request, file)).go_through([(0, "")])
    cut, _, whole = screen.getvalue().partition("1 of 1")
    assert "… 28 more lines" in cut
    assert "line 39" not in cut
    assert "line 39" in whole


def test_keys_are_taken_from_a_terminal_one_by_one_without_enter(tmp_path, monkeypatch):
    pty = pytest.importorskip("pty", reason="no pseudo-terminals here")
    master, slave = pty.openpty()
    proposals = [proposal(str(n)) for n in range(3)]
    request = {"labels": [0, 1], "modes": [], "proposals": proposals}
    with os.fdopen(slave, "r") as terminal, open(tmp_path / "screen", "w") as screen:
        monkeypatch.setattr("sys.stdin", terminal)
        console = Console(file=screen, force_terminal=True, width=80)
        monkeypatch.setattr(console, "input", lambda _: "own")
        # An arrow key, which sends three characters, does nothing.
        presses = iter([b"a", b"\x1b[A", b"u", b"w", b"m", b"v", b"r"])

        def press():
            os.write(master, next(presses))
            return read_key()

        file = AnswerFile(tmp_path / "r.jsonl", itemgetter("id"))
        desk = ProposalDesk(request, file)
        Terminal(console, press, desk).go_through([(place, "") for place in range(3)])
        file.close()
    os.close(master)
    answers = [(a["answer"], a.get("mode")) for a in file.answers.values()]
    assert answers == [("check_wrong", None), ("mode", "own"), ("reject", None)]
    assert "\x1b[2J" in (tmp_path / "screen").read_text()
