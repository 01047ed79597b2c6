"""A run with a results file keeps the replies to rows in progress: none is paid twice."""

import json
from collections import Counter

import pytest
from langchain_core.exceptions import ModelAuthenticationError

from langchain_judges import create_bsm_judge
from langchain_judges.errors import ModelAccessError, OutputError
from langchain_judges.runs.files import reply_journal
from langchain_judges.runs.files.reply_journal import ReplyJournal
from langchain_judges.runs.files.results import Results
from tests.fakes import FakeChatModel, goods, judged_by
from tests.model_server import pairs
from tests.test_runs import KINDS, collect


def journal_of(folder):
    results = Results(folder / "o.jsonl", "mark")
    results.close()  # the next run may open it
    return ReplyJournal(results)


@KINDS
def test_a_run_that_was_stopped_pays_for_no_reply_of_an_unfinished_row_again(tmp_path, kind):
    answered, answer = Counter[str](), judged_by(goods)
    good_key: list[int] = []

    def respond(prompt):
        if answered.total() == 5 and not good_key:
            return ModelAuthenticationError("revoked")
        answered[prompt] += 1
        return answer(prompt)

    judge = create_bsm_judge(FakeChatModel(replies=respond), criteria=["Depth", "Tone"])
    settings = {"out": tmp_path / "o.jsonl", "max_concurrency": 1}
    with pytest.raises(ModelAccessError):
        collect(judge, pairs(2), kind, **settings)
    assert len(list(tmp_path.iterdir())) == 2
    good_key.append(1)
    rows, _ = collect(judge, pairs(2), kind, **settings)
    # Two criteria in two orders for each of two rows; what came before the end counts too.
    assert (len(answered), set(answered.values())) == (8, {1})
    assert [row["verdict"]["usage"]["calls"] for row in rows] == [4, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["o.jsonl"]


def test_each_reply_of_an_earlier_run_is_given_out_once(tmp_path):
    first = journal_of(tmp_path).of("row")
    first.keep("call", "one")
    first.keep("call", "two")
    assert first.take("call") is None  # the same request of the same run is asked
    again = journal_of(tmp_path).of("row")
    assert [again.take("call"), again.take("call"), again.take("call")] == ["one", "two", None]
    assert [again.take("other"), journal_of(tmp_path).of("other").take("call")] == [None, None]


def test_a_line_that_a_kill_cut_off_costs_only_its_reply(tmp_path):
    journal = journal_of(tmp_path)
    journal.of("row").keep("call", {"data": "é\ud800"})
    with journal.path.open("a") as file:
        file.write('{"row": "row", "call": "oth')
    again = journal_of(tmp_path)
    assert again.take("row", "call") == {"data": "é\ud800"}
    assert [json.loads(line)["call"] for line in again.path.read_text().splitlines()] == [
        "call"
    ]


def test_replies_to_finished_rows_leave_the_file_when_it_is_long(tmp_path, monkeypatch):
    monkeypatch.setattr(reply_journal, "_MOST_BYTES", 200)
    journal = journal_of(tmp_path)
    journal.keep("open", "call", "x")
    for number in range(100):
        journal.keep(str(number), "call", "y" * 50)
        journal.forget(str(number))
    # Never more than the limit, a line, and what is in progress.
    assert journal.path.stat().st_size < 400
    assert journal_of(tmp_path).take("open", "call") == "x"


def test_a_journal_that_cannot_be_written_is_one_sentence(tmp_path):
    journal = journal_of(tmp_path)
    journal.path.symlink_to("/dev/full")
    with pytest.raises(OutputError, match="Replies cannot be written to"):
        journal.keep("row", "call", "x")
