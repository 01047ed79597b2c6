"""The page to look and label: what it shows, who is let in, and what the file holds."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections import Counter
from contextlib import closing
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from langchain_judges import create_relative_judge, create_rubric_judge, judge_many, report
from langchain_judges.asking.reply_log import ReplyStore
from langchain_judges.cli import app as cli
from langchain_judges.errors import InputError, OutputError
from langchain_judges.orders import naming_sides
from langchain_judges.report.labelling import AnswerFile, LabelFile, Questionnaire, sides
from langchain_judges.rows import files as row_files
from langchain_judges.rows.files import read_table
from langchain_judges.runs import row_reader
from langchain_judges.runs.run_files import replies_beside
from langchain_judges.testing import FakeChatModel
from langchain_judges.viewer import View, items, render, view
from langchain_judges.viewer.app import Page, Server, create_app, export
from langchain_judges.viewer.desks import LabelDesk, ProposalDesk, labels_of, open_labels
from langchain_judges.viewer.items import Collection, collected, of_run, read_collection
from langchain_judges.viewer.render import rendered_markdown, texts, verdicts
from tests.cases import for_each
from tests.judged_rows import data_of, items_of, run_of, texts_of
from tests.memories import memory_of
from tests.planners import planning
from tests.test_allure_audit import loop
from tests.test_cli_audit import proposal
from tests.test_cli_label import first_where_both_are_bad

HERE = "http://127.0.0.1:8000"
SCORED = {"explanation": "So.", "label": 1, "score": 1}
HOSTILE = (
    "<script>window.owned=1</script><img src=x onerror=window.owned=2> "
    "[a](javascript:window.owned=3) ![b](http://127.0.0.1:9/b.png) </script></template>"
    "<style>body{display:none}</style>\u202ebackwards\u202c"
)


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def pairs_and_run():
    """Six pairs: sure and right, flipped, failed, wrong, unsure, people divided."""
    data = data_of(["A", None, None, "A", None, ["A", "B"]])
    run = run_of(["A", ("A", "B"), None, "B", "A", "A"])
    run[4]["verdict"]["confidence"] = 0.6
    return data, run


@pytest.fixture
def desk(tmp_path):
    """A desk for six judged pairs, asked as a whole and by clearness."""
    data, run = pairs_and_run()
    found = collected(Collection(data), {"judge": run})
    with closing(LabelFile(tmp_path / "l.jsonl")) as file:
        yield LabelDesk(found, file, Questionnaire((0, 1), {"clear": ()}))


def client_of(page, **headers):
    return TestClient(create_app(page, "secret"), base_url=HERE, headers=headers)


def shown(client, place=0, **query):
    return client.get(f"/row/{place}", params={"t": "secret", **query})


def answer(client, **sent):
    return client.post("/answer", params={"t": "secret"}, json={"place": 0, **sent})


def test_every_row_is_found_by_what_is_doubtful_or_disputed_about_it():
    data, run = pairs_and_run()
    found = collected(Collection(data), {"one": run, "two": run_of(["A"] * 6)})
    tags = [{tag for tag in found.tags(place) if ": " not in tag} for place in range(6)]
    assert tags == [
        set(),
        {"flipped", "judges differ"},
        {"not judged", "failed"},
        {"judges differ", "judge against people"},
        {"low confidence"},
        {"people differ"},
    ]
    assert "judge: B" in found.tags(3)


def test_the_page_opens_with_each_row_read_once_and_no_text_rendered(tmp_path, monkeypatch):
    done: Counter[str] = Counter()

    def counting(path, *args, **kwargs):
        return (done.update(["read"]) or each for each in read_table(path, *args, **kwargs))

    def counted(own):
        return lambda *args, **kwargs: done.update([own.__name__]) or own(*args, **kwargs)

    for owner in (items, row_files):
        monkeypatch.setattr(owner, "read_table", counting)
    places: list[tuple[Any, str]] = [
        (row_reader.Records, "row"),
        (render, "texts"),
        (render, "verdicts"),
    ]
    for owner, name in places:
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    file = written(tmp_path / "rows.jsonl", data_of(["A"] * 300))
    assert '"r299"' in client_of(Page(read_collection([file]))).get("/?t=secret").text
    # A first record also says what the table is, and of what kind.
    assert done.pop("read") <= 300 + 3
    assert done == {"row": 300}


def test_single_texts_are_found_by_criterion_and_label():
    run = items_of([1], subscores=[{"criterion": "tone", "label": "rude"}])
    found = collected(Collection(texts_of([0])), {"judge": run})
    assert {"tone: rude", "judge: 1", "judge against people"} <= {*found.tags(0)}


@for_each(
    ("headers", "query"),
    [
        ({}, {}),
        ({}, {"t": "wrong"}),
        ({"host": "evil.example:8000"}, {"t": "secret"}),
        ({"origin": "http://evil.example"}, {"t": "secret"}),
        ({"origin": "http://127.0.0.1:9"}, {"t": "secret"}),
        ({"origin": "null"}, {"t": "secret"}),
    ],
)
def test_only_this_page_with_the_token_is_let_in(headers, query):
    client = client_of(Page(Collection(data_of(["A"]))), **headers)
    for address in ("/", "/row/0", "/state", "/find", "/page.js"):
        assert client.get(address, params=query).status_code == 403


def test_a_tunnel_from_another_port_is_let_in_and_nothing_may_be_fetched_or_framed(desk):
    client = client_of(Page(desk.found, desk), host="localhost:4711")
    for address in ("/", "/row/0", "/page.css", "/page.js", "/state", "/find"):
        answered = client.get(address, params={"t": "secret"})
        assert answered.status_code == 200
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answered.headers["referrer-policy"] == "no-referrer"


def test_hostile_texts_are_shown_and_never_obeyed():
    run = run_of(["A"], ballots=[{"order": "AB", "preference": "A", "explanation": HOSTILE}])
    run[0]["verdict"]["rationale"] = HOSTILE
    data = [{**data_of(["A"])[0], "input": HOSTILE, "output_a": HOSTILE, "id": HOSTILE}]
    run[0]["id"] = HOSTILE
    page = Page(collected(Collection(data), {HOSTILE: run}))
    for html in (shown(client_of(page)).json()["text"], export(page)):
        bare = re.sub(r"<script>.*?</script>", "", html, flags=re.S) if "<html" in html else html
        assert "window.owned" in bare
        assert not re.search(r"<[^>]*(onerror|javascript:|http:)", bare)
        assert "⟦U+202E⟧backwards" in bare
    assert "<script>window" not in export(page)
    assert client_of(page).get("/", params={"t": "secret"}).text.count("<script") == 2


def test_markdown_is_rendered_and_pathological_texts_are_not_slow():
    assert "<strong>b</strong>" in rendered_markdown("**b**")
    assert "<td>1</td>" in rendered_markdown("| a |\n|---|\n| 1 |")
    assert '<code class="language-python">' in rendered_markdown("```python\nx\n```")
    assert rendered_markdown("x" * 60_000).startswith("<pre>")


def test_code_outside_fences_keeps_its_indentation_and_cells_their_side():
    assert "<br />\n\u00a0\u00a0return 1" in rendered_markdown("def f():\n  return 1")
    assert '<td class="right">3</td>' in rendered_markdown("| a |\n|--:|\n| 3 |")
    assert rendered_markdown("> said").startswith("<blockquote>\n<p>said</p>")


def test_addresses_of_links_and_images_are_shown_to_read():
    html = rendered_markdown("[docs](http://far.example/a) and ![cat](http://far.example/b.png)")
    assert "<u>docs</u> <small>(http://far.example/a)</small>" in html
    assert "image cat <small>(http://far.example/b.png)</small>" in html


def test_a_single_line_break_of_a_judged_text_is_shown():
    assert "Literature.<br />\nHistory." in rendered_markdown("Literature.\nHistory.")


def test_an_agents_run_is_steps_of_which_calls_and_results_are_folded():
    call = {"name": "search", "args": {"q": "ferry"}, "id": "1"}
    work = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "At eight.", "tool_call_id": "1"},
        {"role": "assistant", "content": "It leaves **at eight**."},
    ]
    html = texts({"input": "When?", "output": work}, blind=False)
    steps = re.findall(r'<details class="step"><summary>([\w ]+) <small>', html)
    assert steps == ["call of search", "result of search"]
    assert "<h3>final answer</h3><p>It leaves <strong>at eight" in html


def test_images_and_sounds_are_shown_where_they_are_data_and_named_where_not():
    data = base64.b64encode(b"x").decode()
    blocks = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        {"type": "image_url", "image_url": {"url": "https://far.example/a.png"}},
        {"type": "image", "base64": data, "mime_type": "image/svg+xml"},
    ]
    row = {"input": [{"role": "user", "content": blocks}], "output": "A cat."}
    html = texts(row, blind=False)
    assert re.findall(r'src="(data:[\w/]+)', html) == ["data:image/png", "data:audio/wav"]
    assert html.count("not loaded") == 2
    assert "https://far.example/a.png" in html


def test_differences_are_marked_by_word_in_both_texts():
    row = {"input": "q", "output_a": "one two three", "output_b": "one 2 three"}
    html = texts(row, blind=False, marked=True)
    assert "one <mark>two</mark> three" in html
    assert "one <mark>2</mark> three" in html


@for_each(
    ("said", "here"),
    [
        ("A is better. Scores 3 (A) to 4 (B).", "2 is better. Scores 3 (2) to 4 (1)."),
        ("The orders disagree: A (A first).", "The orders disagree: 2 (2 first)."),
        (
            "With B first: Response B rhymes, text A not.",
            "With 1 first: Response 1 rhymes, text 2 not.",
        ),
        (
            "Votes 2.00 (A) to 1.00 (B). For A: Critic.",
            "Votes 2.00 (2) to 1.00 (1). For 2: Critic.",
        ),
        ("B first", "1 first"),
        ("A good answer gets an A.", "A good answer gets an A."),
        (
            "Option (B); plan A is better. Puts A first.",
            "Option (B); plan A is better. Puts A first.",
        ),
    ],
)
def test_a_rationale_names_texts_by_their_places_on_the_page(said, here):
    assert naming_sides(said, {"A": "2", "B": "1"}) == here


def test_judges_and_people_stay_hidden_until_ones_own_answer_is_in(desk):
    client = client_of(Page(desk.found, desk))
    before = shown(client, by="Ana").json()
    assert (before["verdict"], before["isDone"], before["said"]) == (None, False, {})
    assert "because" not in before["text"]
    for name in ("", "clear"):
        after = answer(client, by="Ana", do="say", name=name, key="1").json()["row"]
    assert "because" in after["verdict"]
    assert after["said"] == {"": "1", "clear": "1"}
    # Another person has not answered.
    assert shown(client, by="Bo").json()["verdict"] is None


def test_no_name_of_a_system_and_no_side_is_told_to_who_labels(desk):
    desk.found.rows[0] = {**desk.found.rows[0], "systems": ["gpt-9", "mine"]}
    html = shown(client_of(Page(desk.found, desk))).json()["text"]
    assert "gpt-9" not in html
    for name in ("", "clear"):
        after = answer(
            client_of(Page(desk.found, desk)), by="Ana", do="say", name=name, key="1"
        ).json()["row"]
        assert ("gpt-9" in str(after["verdict"])) == (name == "clear")  # the last question
    assert re.findall(r"<h2>(\d|A|B)</h2>", html) == ["1", "2"]
    looked_at = shown(client_of(Page(desk.found))).json()["text"]
    assert "A · gpt-9" in looked_at


def test_an_answer_names_the_text_that_stood_there_and_is_in_the_file_at_once(desk):
    client = client_of(Page(desk.found, desk))
    row = desk.found.rows[1]
    assert answer(client, place=1, by="Ana", do="say", name="", key="2").status_code == 200
    line = json.loads(desk.file.path.read_text())
    assert line["label"] == sides(row)[1]
    assert answer(client, place=1, by="Ana", do="say", name="clear", key="x").status_code == 200
    assert answer(client, place=1, by="Bo", do="say", name="", key="t").status_code == 200
    line = json.loads(desk.file.path.read_text())
    assert line["human_votes"] == [sides(row)[1], "tie"]
    own = {"label": sides(row)[1], "labels": {"clear": None}}
    assert line["answers"][0] == {"by": "Ana", "first": sides(row)[0], **own}


def test_a_note_says_later_which_text_it_calls_1(desk):
    client = client_of(Page(desk.found, desk))
    answer(client, by="Ana", do="note", text="1 is rude.")
    [said] = desk.people(0)
    assert said == {"by": "Ana", "first": sides(desk.found.rows[0])[0], "note": "1 is rude."}
    later = verdicts(desk.found, 0, desk.people(0))
    assert f"“1 is rude.” (1 was {said['first']})" in later
    answer(client, by="Ana", do="note", text="", was="1 is rude.")
    assert desk.people(0) == []


def test_the_record_says_that_the_verdict_was_opened_first(desk):
    client = client_of(Page(desk.found, desk))
    opened = answer(client, by="Ana", do="open").json()["row"]
    assert "because" in opened["verdict"]
    for name in ("", "clear"):
        answer(client, by="Ana", do="say", name=name, key="1")
        answer(client, by="Bo", do="say", name=name, key="1")
    answer(client, by="Bo", do="open")  # his answer is in
    said = {each["by"]: each.get("opened") for each in desk.people(0)}
    assert said == {"Ana": True, "Bo": None}


def test_notes_are_kept_and_what_cannot_be_answered_is_refused(desk):
    client = client_of(Page(desk.found, desk))
    noted = answer(client, by="Ana", do="note", text="Both are odd.").json()["row"]
    assert noted["note"] == "Both are odd."
    wrong: list[dict] = [
        {"key": "9"},
        {"name": "other", "key": "1"},
        {"place": 99, "key": "1"},
        {"do": "eat"},
    ]
    for each in wrong:
        refused = answer(client, **{"do": "say", "name": "", "key": "1", **each})
        assert refused.status_code == 400
        assert refused.text.startswith("not saved")
    assert "65,536 bytes" in answer(client, do="note", text="x" * 70_000).text


def test_a_note_of_half_a_character_is_kept_and_its_row_shown(desk):
    client = client_of(Page(desk.found, desk), **{"content-type": "application/json"})
    sent = json.dumps({"do": "note", "place": 0, "text": "a \ud800", "by": "Ann"})
    assert client.post("/answer", params={"t": "secret"}, content=sent).status_code == 200
    assert shown(client, by="Ann").json()["note"] == "a \ud800"


def test_undo_says_again_what_was_said_before(desk):
    client = client_of(Page(desk.found, desk))
    answer(client, by="Ana", do="say", name="", key="1")
    answer(client, by="Ana", do="note", text="Mind the date.")
    answer(client, by="Ana", do="say", name="", key="t", was="1")
    answer(client, place=1, by="Bo", do="say", name="", key="2")
    undone = answer(client, place=3, by="Ana", do="undo").json()["row"]
    assert (undone["place"], undone["said"], undone["note"]) == (0, {"": "1"}, "Mind the date.")
    assert answer(client, by="Ana", do="undo").json()["row"]["said"] == {}
    assert answer(client, by="Ana", do="undo").text.startswith("not saved: ")
    assert desk.answered(1, "Bo") == {"": "2"}


def test_an_answer_from_a_page_that_shows_an_older_one_is_refused(desk):
    client = client_of(Page(desk.found, desk))
    answer(client, by="Ana", do="say", name="", key="1")
    answer(client, by="Ana", do="note", text="Mine.")
    late: list[dict] = [{"do": "say", "name": "", "key": "2"}, {"do": "note", "text": "Old."}]
    for each in late:
        refused = answer(client, by="Ana", **each)
        assert (refused.status_code, "in another window" in refused.text) == (400, True)
    assert (desk.answered(0, "Ana"), desk.noted(0, "Ana")) == ({"": "1"}, "Mine.")


def test_an_answer_that_cannot_be_written_is_none(desk, monkeypatch):
    client = client_of(Page(desk.found, desk))
    monkeypatch.setattr(desk.file, "path", desk.file.path / "no folder")
    assert answer(client, by="Ana", do="say", name="", key="1").status_code == 507
    assert shown(client, by="Ana").json()["said"] == {}


def test_opening_a_row_of_which_nothing_is_known_is_not_noted(desk):
    desk.found.judges.clear()
    client = client_of(Page(desk.found, desk))
    answer(client, place=1, by="Ana", do="open")
    answer(client, place=1, by="Ana", do="say", name="", key="1", opened=True)
    assert "opened" not in desk.people(1)[0]
    answer(client, place=0, by="Ana", do="open")  # a person labelled it before
    assert desk.people(0)[0]["opened"] is True
    assert [shown(client, place, by="Bo").json()["isTold"] for place in (0, 2)] == [True, False]


def test_what_a_report_says_of_a_row_is_hidden_from_who_labels_it():
    row = {"input": "q", "output": "x", "reported": "People: 0. The judge: 1."}
    assert "The judge: 1" in texts(row, blind=False)
    assert "The judge: 1" not in texts(row, blind=True)


def test_a_row_that_is_half_answered_is_neither_done_nor_untouched(desk):
    page = Page(desk.found, desk)
    state = answer(client_of(page), by="Ana", do="say", name="", key="1").json()["state"]
    assert (state["done"], state["begun"]) == ([], {"0": "1 of 2"})
    assert page.state("Bo")["begun"] == {}


def test_an_answer_that_differs_from_an_earlier_label_is_said(desk):
    client = client_of(Page(desk.found, desk))
    key = str(sides(desk.found.rows[0]).index("B") + 1)  # the row came with A
    first = answer(client, by="Ana", do="say", name="", key=key).json()["row"]
    last = answer(client, by="Ana", do="say", name="clear", key="1").json()["row"]
    assert first["differs"] == ""  # other questions are open
    assert re.search("A, B.* tie", last["differs"])


def test_every_label_has_a_key_also_the_thirtieth():
    asked = Questionnaire.read(",".join(f"k{n}" for n in range(30)), (), is_named=True)
    [question] = asked.of({"output": "x"})
    assert [*question.choices.values()] == [f"k{n}" for n in range(30)]
    assert [*question.choices][8:12] == ["9", "0", "b", "c"]
    assert question.choices["30"] == "k29"
    found = Collection(texts_of([f"k{n}" for n in range(12)]))
    assert len(labels_of(found).split(",")) == 12


def test_a_text_that_is_nowhere_is_said_to_be(tmp_path):
    _, run = pairs_and_run()
    found = read_collection([written(tmp_path / "v.jsonl", run)])
    html = texts(found.rows[0], blind=False)
    assert html.count("not in these files") == 2
    assert "Request" not in html
    assert "an empty text" in texts({"input": "q", "output": ""}, blind=False)


def test_progress_counts_agreement_and_names_the_next_command(desk):
    desk.found.files = {"judge": "v.jsonl"}
    client = client_of(Page(desk.found, desk))
    for place, row in enumerate(desk.found.rows):
        # Who labels is not told meanwhile with whom the judge agrees.
        assert desk.standing() == ([], "")
        key = str(sides(row).index("A") + 1)
        answer(client, place=place, by="Ana", do="say", name="", key=key)
    state = client.get("/state", params={"t": "secret", "by": "Ana"}).json()
    # Of the four that were judged for one side, one is for B; a flip is a tie.
    assert state["told"] == ["judge agrees on 3 of 5"]
    assert state["next"].startswith("langchain-judges trust ")
    assert state["next"].endswith("l.jsonl --verdicts v.jsonl")


def test_the_next_command_asks_for_the_rubric_of_single_texts(tmp_path):
    with closing(LabelFile(tmp_path / "l.jsonl")) as file:
        desk = LabelDesk(Collection(texts_of([None])), file, Questionnaire((0, 1)))
        desk.say(0, "Ana", "", "1", "")
        assert desk.standing()[1].endswith("l.jsonl --model MODEL --set rubric=RUBRIC")


@pytest.mark.whole
def test_labels_made_on_the_page_change_what_trust_answers(tmp_path):
    run, data = run_of(["A"] * 44), data_of(["A"] * 4 + [None] * 40)
    with closing(LabelFile(tmp_path / "l.jsonl")) as file:
        desk = LabelDesk(collected(Collection(data), {"judge": run}), file, Questionnaire())
        client = client_of(Page(desk.found, desk))
        for place, row in enumerate(data):
            if row["label"] is None:
                key = str(sides(row).index("B") + 1)
                answer(client, place=place, by="Ana", do="say", name="", key=key)
    rows = [json.loads(line) for line in (tmp_path / "l.jsonl").read_text().splitlines()]
    answers = [report.trust(run, each).uses["single"] for each in (data, data[:4] + rows)]
    # Four rows say too little; of all of them forty are wrong.
    assert [each.word for each in answers] == ["not yet", "no"]


def test_rows_that_tell_most_come_first(desk):
    order = desk.order()
    # Two are doubtful and unsure is one too; the three that people labelled come last.
    assert {*order[:3]} == {1, 2, 4}
    assert {*order[3:]} == {0, 3, 5}


def test_free_text_finds_texts_and_names_and_no_verdict(desk):
    client = client_of(Page(desk.found, desk))
    asked = {"t": "secret"}
    assert client.get("/find", params={**asked, "q": "QUESTION 3"}).json() == [3]
    assert client.get("/find", params={**asked, "q": "r4"}).json() == [4]
    assert client.get("/find", params={**asked, "q": "because"}).json() == []


def test_it_reads_tables_results_reports_and_folders(tmp_path):
    data, run = pairs_and_run()
    rows, results = written(tmp_path / "d.jsonl", data), tmp_path / "run"
    results.mkdir()
    written(results / "v.jsonl", run)
    report.trust(run, data, name="mine").to_json(tmp_path / "r.json")
    found = read_collection([rows, results, tmp_path / "r.json"])
    assert len(found.rows) == 6  # what the report shows of its one mistake is among them
    assert [len(each) for each in found.judges.values()] == [6]
    assert found.reports[0].title == "mine"
    alone = read_collection([results / "v.jsonl"])
    assert "name the rows too" in alone.problems[0]
    assert len(alone.rows) == 6
    bad = tmp_path / "bad.json"
    bad.write_text('{"a": 1}')
    with pytest.raises(InputError, match="not a table"):
        read_collection([bad])


def test_a_comparison_and_the_result_of_an_audit_are_read_with_their_tables(tmp_path):
    data, run = pairs_and_run()
    both = report.compare({"mine": run, "yours": run[::-1]}, data)
    both.to_json(tmp_path / "comparison.json")
    result = loop(memory_of(), max_rounds=1).invoke({"items": planning(2)})
    (tmp_path / "audit.json").write_text(json.dumps(result, default=str))
    found = read_collection([tmp_path / "comparison.json", tmp_path / "audit.json"])
    compared, *judges, audited = found.reports
    assert compared.lines == both.sentence.splitlines()
    assert [each.title for each in judges] == [each.name for each in both.reports]
    assert all(each.tables[0].title == "Numbers" for each in judges)
    [decisions] = audited.tables
    assert (decisions.title, len(decisions.rows)) == ("Decisions", 2)
    page = client_of(Page(found)).get("/", params={"t": "secret"}).text
    assert "Stopped: max_rounds." in page
    assert decisions.rows[0][0] in page


def test_a_judged_table_is_both_rows_and_verdicts_and_no_label_of_the_judge_is_a_persons(tmp_path):
    replies = {"explanation": "So.", "preference": "1"}
    judge = create_relative_judge(FakeChatModel(replies=lambda _: replies))
    out = tmp_path / "scores.csv"
    rows = [{"id": "a", "input": "q", "output_a": "x", "output_b": "y", "label": "B"}]
    list(judge_many(judge, rows, out=out, keep_requests=True, progress=False))
    found = read_collection([out])
    assert (found.rows[0]["label"], found.rows[0]["output_b"]) == ("B", "y")
    [run] = found.judges.values()
    assert run[0].verdict["flipped"] is True
    html = shown(client_of(Page(found))).json()["verdict"]
    # Both orders were asked; each request is there whole, with its reply.
    assert html.count("request and reply") == 2
    assert "&#34;preference&#34;: &#34;1&#34;" in html


def test_without_the_option_a_run_keeps_no_request(tmp_path):
    judge = create_relative_judge(
        FakeChatModel(replies=lambda _: {"explanation": "", "preference": "1"})
    )
    row = {"id": "a", "input": "q", "output_a": "x", "output_b": "y"}
    list(judge_many(judge, [row], records=tmp_path / "v.jsonl", progress=False))
    assert [each.name for each in tmp_path.iterdir()] == ["v.jsonl"]
    written(tmp_path / "d.jsonl", [row])
    found = read_collection([tmp_path / "d.jsonl", tmp_path / "v.jsonl"])
    assert "--keep-requests</code> keeps them" in shown(client_of(Page(found))).json()["verdict"]


def test_labels_are_those_that_are_there():
    found = collected(Collection(texts_of(["rude", None])), {"j": items_of(["polite", "rude"])})
    assert labels_of(found) == "polite,rude"
    assert labels_of(Collection(texts_of([None]))) == "01"


def test_proposals_of_an_audit_are_decided_with_mode_and_note(tmp_path):
    request = {
        "proposals": [proposal(name) for name in "abc"],
        "labels": [0, 1],
        "modes": [{"name": "keywords", "description": ""}],
    }
    with closing(AnswerFile(tmp_path / "r.jsonl", lambda each: each["id"])) as file:
        desk = ProposalDesk(request, file)
        client = client_of(Page(desk.found, desk))
        answer(client, do="note", by="Ana", text="Mind the order.")
        answer(client, do="say", by="Ana", name="", key="a", mode="keywords")
        answer(client, place=1, do="say", by="", name="", key="0")
        state = answer(client, place=2, do="say", by="", name="", key="r").json()["state"]
        before = shown(client, 0).json()
        assert (before["said"], before["mode"]) == ({"": "a"}, "keywords")
        answer(client, do="say", by="Ana", name="", key="r", was="a")
        answer(client, do="undo", by="Ana")
        assert "the audit goes on" in state["told"][0]
    mode = {"answer": "mode", "mode": "keywords", "note": "Mind the order.", "auditor": "Ana"}
    assert file.answers == {
        "a": {"id": "a", **mode},
        "b": {"id": "b", "note": "", "answer": "label", "label": 0},
        "c": {"id": "c", "note": "", "answer": "reject"},
    }


def test_an_audit_of_many_labels_has_a_key_for_each(tmp_path):
    labels = [f"class {n}" for n in range(25)]
    request = {"proposals": [proposal("a")], "labels": labels, "modes": []}
    with closing(AnswerFile(tmp_path / "r.jsonl", lambda each: each["id"])) as file:
        desk = ProposalDesk(request, file)
        [question] = desk.questions(0)
        keys = {words: key for key, words in question["keys"].items()}
        desk.say(0, "", "", keys["the label is class 24"], "")
        assert file.answers["a"]["label"] == "class 24"
        assert len(keys) == 3 + 25


def test_a_notebook_shows_a_run_or_a_report_in_a_frame_or_prints_an_address(tmp_path):
    data, run = pairs_and_run()
    html = view(run, data)._repr_html_()
    assert re.match('<iframe [^>]*sandbox="allow-scripts" srcdoc=', html)
    assert "Question 3" in html
    of_report = view(report.trust(run, data, name="mine"))
    assert "Question 3" in of_report.html
    assert "mine" in of_report.html
    of_report.save(tmp_path / "page.html")
    assert "default-src &#39;none&#39;" in (tmp_path / "page.html").read_text()
    assert "save(path)" in repr(View())
    assert len(of_run([{**data[0], "verdict": run[0]["verdict"]}]).judges) == 1


def test_agents_runs_in_the_shape_of_a_provider_are_shown_from_python():
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    work = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "nothing"},
        {"role": "assistant", "content": "There is none."},
    ]
    html = view([{"id": 1, "input": "Find it.", "output": work}]).html
    assert html.count('<details class="step">') == 2
    assert "find" in html


def test_a_second_writer_is_refused(desk):
    with pytest.raises(OutputError, match="Somebody else is writing"):
        open_labels(desk.found, desk.file.path, None, ())


def test_the_command_prints_the_address_and_what_is_asked_and_next(tmp_path, monkeypatch):
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    rows, out = written(tmp_path / "d.jsonl", data_of(["A"] * 3)), tmp_path / "l.jsonl"
    for more in ([], ["-o", str(out)]):
        result = CliRunner().invoke(cli, ["view", str(rows), *more])
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?t=\S+\n", result.stdout), result.output
        assert "Open this address in a browser. Ctrl-C ends it." in result.stderr
        assert ("Pairs are compared as a whole." in result.stderr) == bool(more)
        assert (f"0 rows in {out}." in result.stderr.replace("\n", "")) == bool(more)


def test_a_page_closes_no_handler_of_the_process_s_logs():
    closed: list[str] = []

    class Handler(logging.NullHandler):
        def close(self) -> None:
            closed.append("handler")

    handler = Handler()
    with closing(Server(Page(Collection()))):
        assert not closed
    handler.close()
    assert closed


def test_the_command_exports_a_page_and_names_what_cannot_be_read(tmp_path):
    data, run = pairs_and_run()
    rows = written(tmp_path / "d.jsonl", [*data, {"id": "x", "input": "only"}])
    words = ["view", rows, written(tmp_path / "v.jsonl", run), "--export", tmp_path / "p.html"]
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert done.exit_code == 0, done.output
    assert "d.jsonl, row 7: " in done.stderr
    assert (tmp_path / "p.html").read_text().count("<template id=") == 6


def test_a_run_that_goes_on_keeps_its_requests_to_itself(tmp_path):
    data, run = pairs_and_run()
    rows, results = written(tmp_path / "d.jsonl", data), written(tmp_path / "v.jsonl", run)
    found = read_collection([rows, results])
    with closing(ReplyStore(replies_beside(results))) as store:
        store.keep("asked 0", "000000", {"unit": "", "messages": [["human", "Which?"]]})
        assert found.requests("judge", found.judges["judge"][0]) == []
    kept = found.requests("judge", found.judges["judge"][0])
    assert kept == [{"unit": "", "messages": [["human", "Which?"]]}]


def test_texts_of_a_writer_are_looked_at_beside_what_was_asked(tmp_path):
    written_rows = [{"id": "a", "concepts": ["dog", "run"], "text": "The dog runs.", "missing": ""}]
    found = read_collection([written(tmp_path / "t.jsonl", written_rows)])
    html = shown(client_of(Page(found))).json()["text"]
    assert "The dog runs." in html
    assert "dog<br />\nrun" in html


def test_a_comparison_of_two_systems_shows_their_texts(serve, tmp_path):
    rows = [f"r{n},Why {n}?,good,bad" for n in range(3)]
    table, out = tmp_path / "rows.csv", tmp_path / "scores.csv"
    table.write_text("\n".join(["id,question,v1,v2", *rows]))
    model = ["--model", "m", "--base-url", serve(first_where_both_are_bad).url]
    words = ["compare", table, "--systems", "v1,v2", *model, "-o", out]
    assert CliRunner().invoke(cli, list(map(str, words))).exit_code == 0
    found = read_collection([out])
    assert (found.rows[0]["output_a"], found.rows[0]["output_b"]) == ("good", "bad")
    assert [len(run) for run in found.judges.values()] == [3]


@for_each("head", ["Frage,Antwort", "question,Antwort", "index,n"])
def test_a_table_with_headers_of_its_own_is_refused_with_what_is_there_and_what_to_write(
    tmp_path, head
):
    path = tmp_path / "d.csv"
    path.write_text(f"{head}\n" + "a,b\n" * 290)
    first, second = head.split(",")
    there = (
        r"no text to look at \(290 such rows\); "
        + f"there are '{first}', '{second}'; .* --column output=COLUMN"
    )
    with pytest.raises(InputError, match=there) as caught:
        read_collection([path])
    assert str(caught.value).count("no text") == 1


def test_a_sheet_of_results_and_the_rows_to_label_are_the_same_rows(tmp_path):
    rows = [
        {"ticket": f"T{n}", "Frage": f"Wo ist {n}?", "Antwort": f"- hier\r\n- {n}"}
        for n in range(4)
    ]
    judge = create_rubric_judge(FakeChatModel(replies=lambda _: SCORED), rubric="Is it polite?")
    out, columns = tmp_path / "r.xlsx", {"id": "ticket", "input": "Frage", "output": "Antwort"}
    list(judge_many(judge, rows, out=out, columns=columns, progress=False))
    first = [dict(zip(columns, row.values(), strict=True)) for row in rows[1:3]]
    label = written(tmp_path / "r.label.jsonl", [{**row, "doubt": "unsure"} for row in first])
    for files in ([out, label], [label, out]):
        found = read_collection(files)
        assert sorted(row["id"] for row in found.rows) == ["T0", "T1", "T2", "T3"]
        assert [len(run) for run in found.judges.values()] == [4]
        assert found.problems == []


def test_rows_of_two_files_are_one_where_their_texts_are_whatever_their_names(tmp_path):
    twice = [{"input": "q", "output": text} for text in ("one", "two", "two")]
    table = written(tmp_path / "d.jsonl", [{"id": n, **row} for n, row in enumerate(twice)])
    named = written(tmp_path / "n.jsonl", [{"id": "x", **twice[0]}, {"id": "y", **twice[1]}])
    assert [row["id"] for row in read_collection([table, named]).rows] == ["0", "1", "2", "y"]
