"""The page in a real browser: keys, two tabs, a server that dies, no mouse, a phone."""

from __future__ import annotations

import json
import re
import signal
from typing import Any

import pytest

from langchain_judges import report
from langchain_judges.report.labelling import sides
from langchain_judges.viewer import view
from tests.chromium import Chromium, needed
from tests.judged_rows import data_of, run_of
from tests.processes import start
from tests.test_viewer import HOSTILE, written

pytestmark = [pytest.mark.system, needed]
READY = "document.querySelector('main article') && document.querySelector('#told').textContent"
# In one task of the page: on a busy machine the next row might be there before the last key.
ALL_AT_ONCE = """["1", "t", "2"].forEach((key) => document.body.dispatchEvent(
    new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true})))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def serving(tmp_path):
    """A function that starts the command on some pairs; it gives the address."""
    programs: list[Any] = []

    def run(*more, rows=None):
        data = rows or data_of([None] * 6)
        answers = (["A", ("A", "B"), None, "B", "A", "A"] * len(data))[: len(data)]
        files = [
            written(tmp_path / "d.jsonl", data),
            written(tmp_path / "v.jsonl", run_of(answers)),
        ]
        out = tmp_path / "l.jsonl"
        words = ["-m", "langchain_judges.cli", "view", *files, "-o", out, "--name", "Ana", *more]
        programs.append(start(*words))
        command.program, command.out = programs[-1], out
        return programs[-1].stdout.readline().strip()

    command: Any = run
    yield command
    for each in programs:
        each.kill()
        if not each.stdout.closed:
            each.communicate()


def lines(out):
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def opened(browser, address, width=1300):
    browser.open(address, width)
    browser.wait_for(READY)


def answered(browser, number):
    """Wait until so many rows are answered, and the next one is on screen."""
    browser.wait_for(f"document.querySelector('#count').textContent.startsWith('{number} of')")
    browser.wait_for("!busy && !waiting.length")


def test_keys_in_one_moment_count_for_the_row_on_screen(browser, serving):
    opened(browser, serving("--labels", "clear="))
    told = "document.querySelector('#told').textContent"
    assert browser.ask(told).endswith("Question 1 of 2: as a whole")
    for number in range(1, 7):
        # Two questions, and one key too many, which neither changes them nor the next row.
        browser.ask(ALL_AT_ONCE)
        answered(browser, number)
    found = lines(serving.out)
    assert len(found) == 6
    for row in found:
        assert (row["label"], row["labels"]) == (sides(row)[0], {"clear": "tie"})
    assert browser.complaints() == []


def test_an_answer_is_taken_back_skipped_and_changed_without_a_mouse(browser, serving):
    opened(browser, serving())
    browser.press("1")
    answered(browser, 1)
    first = lines(serving.out)[0]
    browser.press("u")
    answered(browser, 0)
    assert lines(serving.out) == []
    # A key counts for the row that is on screen when it is pressed.
    browser.press("s")
    browser.wait_for(f"rows[row.place].id !== '{first['id']}' && !busy")
    browser.press("2")
    answered(browser, 1)
    assert lines(serving.out)[0]["id"] != first["id"]
    browser.press("n")
    browser.press(*"odd", "Enter")
    browser.wait_for("document.activeElement.id === 'item'")
    browser.wait_for("document.querySelector('#told').textContent === 'The note is saved.'")
    assert [row["answers"][0].get("note") for row in lines(serving.out)] == [None, "odd"]


def test_undo_after_a_change_gives_the_earlier_answer_back(browser, serving):
    opened(browser, serving())
    browser.press("1")
    answered(browser, 1)
    browser.press("k")
    browser.wait_for("row.isDone")
    browser.press("t")
    browser.wait_for(
        "!busy && document.querySelector('#told').textContent.includes('a tie, saved')"
    )
    assert lines(serving.out)[0]["label"] == "tie"
    browser.press("u")
    browser.wait_for("!busy && row.isDone && row.said[''] === '1'")
    [line] = lines(serving.out)
    assert line["label"] == sides(line)[0]


def test_a_tab_that_shows_an_older_answer_overwrites_none(browser, serving, tmp_path):
    address = serving()
    opened(browser, address)
    with Chromium(tmp_path / "other") as other:
        opened(other, address)
        browser.press("1")
        answered(browser, 1)
        other.press("2")
        other.wait_for("document.querySelector('#told').textContent.includes('another window')")
        other.wait_for("row.isDone && row.said[''] === '1'")
    [line] = lines(serving.out)
    assert line["label"] == sides(line)[0]


@pytest.mark.parametrize("width", [1300, 390])
def test_keys_scroll_a_long_text_also_after_a_button_was_pressed(browser, serving, width):
    long = [{**row, "output_a": "word " * 9_000} for row in data_of([None] * 3)]
    opened(browser, serving(rows=long), width)
    top = "Math.max(document.querySelector('main').scrollTop, window.scrollY)"
    # Chromium scrolls what it has painted.
    browser.wait_for("performance.getEntriesByName('first-contentful-paint').length")
    for key in ("PageDown", " ", "End"):
        before = browser.ask(top)
        browser.press(key)
        browser.wait_for(f"{top} > {before}")
    browser.press("Home")
    browser.wait_for(f"{top} === 0")
    browser.ask("document.querySelector('#keys button').click()")
    answered(browser, 1)
    browser.painted()  # the next row
    browser.press("PageDown")
    browser.wait_for(f"{top} > 0")


def test_keys_are_explained_and_one_that_does_nothing_says_so(browser, serving):
    opened(browser, serving())
    browser.press("z")
    browser.wait_for("document.querySelector('#told').textContent.includes('? shows the keys')")
    browser.press("?")
    browser.wait_for("document.querySelector('#help').open")
    browser.press("1")  # nobody answers behind the list of keys
    browser.press("Escape")
    browser.wait_for("!document.querySelector('#help').open")
    assert lines(serving.out) == []


def test_steps_of_an_agent_unfold_and_fold_at_once(browser, tmp_path):
    call = {"name": "find", "args": {"q": "x"}, "id": "c"}
    work = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "line\n" * 80},
        {"role": "assistant", "content": "There is one."},
    ]
    view([{"input": "Find it.", "output": work}]).save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html", 1300)
    browser.wait_for("document.querySelectorAll('main details').length === 2")
    for number in (2, 0):
        browser.press("o")
        browser.wait_for(f"document.querySelectorAll('main details[open]').length === {number}")
    browser.press("o")
    cut = "[...document.querySelectorAll('pre')].some(e => e.scrollHeight > e.clientHeight + 1)"
    assert not browser.ask(cut)


@pytest.mark.parametrize("width", [1300, 390])
def test_reports_open_below_what_closes_them(browser, tmp_path, width):
    data, run = data_of(["A", "B", None]), run_of(["A", "A", "A"])
    report.trust(run, data, name="mine").to_json(tmp_path / "r.json")
    view([tmp_path / "r.json"]).save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html", width)
    for is_open in ("true", "false"):
        place = browser.ask(
            "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector("
            "'#reports summary').getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            x, y = place
            press = {"button": "left", "clickCount": 1}
            browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **press)
        browser.wait_for(f"document.querySelector('#reports').open === {is_open}")


def test_two_tabs_of_two_people_write_one_file(browser, serving, tmp_path):
    address = serving()
    opened(browser, address)
    with Chromium(tmp_path / "other") as other:
        opened(other, address)
        other.ask("Object.assign(document.querySelector('#name'), {value: 'Bo'}).onchange()")
        other.wait_for("name === 'Bo' && !busy")
        for number in (1, 2, 3):
            browser.press("1")
            other.press("2")
            answered(browser, number)
            answered(other, number)
    found = lines(serving.out)
    assert len(found) == 3
    for row in found:
        assert {each["by"]: each["label"] for each in row["answers"]} == {
            "Ana": sides(row)[0],
            "Bo": sides(row)[1],
        }


def test_what_was_answered_before_the_server_was_killed_is_there_and_nothing_else_seems_so(
    browser, serving
):
    opened(browser, serving())
    browser.press("1")
    answered(browser, 1)
    serving.program.send_signal(signal.SIGKILL)
    serving.program.communicate()
    place = browser.ask("row.place")
    browser.press("1")
    browser.wait_for("document.querySelector('#told').textContent.startsWith('Not saved')")
    assert browser.ask("row.place") == place
    assert len(lines(serving.out)) == 1
    opened(browser, serving())
    assert browser.ask("document.querySelector('#count').textContent") == "1 of 6 answered"
    browser.press("1")
    answered(browser, 2)
    assert len(lines(serving.out)) == 2


def test_the_verdict_shows_after_the_answer_and_on_request(browser, serving):
    opened(browser, serving())
    assert browser.ask("document.querySelector('#verdict').textContent") == ""
    browser.press("v")
    browser.wait_for("document.querySelector('#verdict').textContent.includes('because')")
    browser.press("1")
    answered(browser, 1)
    browser.press("1")
    answered(browser, 2)
    assert [row["answers"][0].get("opened") for row in lines(serving.out)] == [True, None]


def test_filters_and_search_leave_the_rows_that_are_like_them(browser, serving):
    opened(browser, serving())
    visible = "[...document.querySelectorAll('#list li')].filter(e => !e.hidden).length"
    browser.ask("document.querySelector('#filters [data-filter=flipped]').click()")
    assert browser.ask(visible) == 1
    browser.wait_for("row.place === 1")
    browser.press("1")
    browser.wait_for(
        "document.querySelector('#told').textContent.endsWith('Every row here is answered.')"
    )
    browser.ask("document.querySelector('#filters [data-filter=flipped]').click()")
    browser.press("/")
    browser.press(*"question 4")
    browser.wait_for(f"{visible} === 1")


@pytest.mark.parametrize("width", [1300, 390])
def test_controls_have_names_and_nothing_is_wider_than_the_screen(browser, serving, width):
    long = {
        **data_of([None])[0],
        "output_a": "x" * 900,
        "output_b": "| a | b |\n|-|-|\n| " + "y" * 300,
    }
    opened(browser, serving("--labels", "clear=", rows=[long, *data_of([None] * 3)[1:]]), width)
    assert browser.ask("document.documentElement.scrollWidth") == width
    tall = browser.ask("document.querySelector('footer').offsetHeight")
    assert tall < (220 if width == 1300 else 145)  # of 900 pixels
    top = browser.ask("document.querySelector('main').getBoundingClientRect().top")
    assert top < 130
    seen = "[...document.querySelectorAll('button')].filter(b => b.checkVisibility())"
    edges = f"{seen}.map(b => b.getBoundingClientRect())"
    assert browser.ask(f"{edges}.every(b => b.left >= 0 && b.right <= innerWidth)")
    browser.call("Accessibility.enable")
    tree = browser.call("Accessibility.getFullAXTree")["nodes"]
    asked = {"button", "textbox", "searchbox", "listbox", "option", "progressbar", "main"}
    named = [
        (each["role"]["value"], each.get("name", {}).get("value", ""))
        for each in tree
        if not each["ignored"] and each.get("role", {}).get("value") in asked
    ]
    assert [role for role, name in named if not name.strip()] == []
    names = {name for _, name in named}
    assert {"1 is better", "clear: a tie", "Your name", "Find", "Rows"} <= names or width == 390
    # As they are seen: no answer looks like another one, and no name of a row is cut.
    seen = browser.ask(
        "[...document.querySelectorAll('fieldset[aria-current] button')].map(b => b.innerText)"
    )
    assert len({*seen}) == len(seen) == 4
    name = "document.querySelector('#list span')"
    assert browser.ask(f"{name}.scrollWidth <= {name}.clientWidth")
    browser.call("Accessibility.disable")
    browser.press("Tab")
    assert browser.ask("document.activeElement.tagName") != "BODY"


def test_labels_given_by_keys_change_what_trust_answers(browser, serving):
    data, run = data_of([None] * 24), run_of(["A", "A", "A", "B"] * 6)
    opened(browser, serving(rows=data))
    before = report.trust(run, data)
    assert {each.word for each in before.uses.values()} == {"not measured"}
    for number in range(1, 21):
        own = browser.ask("rows[row.place].id")
        browser.press(str(sides(next(r for r in data if r["id"] == own)).index("A") + 1))
        answered(browser, number)
    after = report.trust(run, lines(serving.out))
    assert len(after.sample.rows) == 20
    wrong = sum(row.answer == "B" for row in after.sample.rows)
    assert after.uses["single"].number.result == wrong / 20
    assert after.uses["single"].word == "not yet"


def test_ten_thousand_rows_scroll_and_are_labelled(browser, serving):
    opened(browser, serving(rows=data_of([None] * 10_000)))
    assert browser.ask("document.querySelectorAll('#list li').length") == 10_000
    scrolled = browser.ask(
        """new Promise(done => { const list = document.querySelector('#list');
        list.scrollTop = list.scrollHeight;
        requestAnimationFrame(() => requestAnimationFrame(() => done(list.scrollTop))); })"""
    )
    assert scrolled > 200_000  # pixels
    browser.press("1")
    answered(browser, 1)
    assert len(lines(serving.out)) == 1


def test_hostile_texts_do_nothing_on_the_page_and_in_a_file(browser, serving, tmp_path):
    row = {"id": HOSTILE, "input": HOSTILE, "output_a": HOSTILE, "output_b": HOSTILE + "b"}
    run = run_of(["A"])
    run[0] |= {"id": HOSTILE, "verdict": {**run[0]["verdict"], "rationale": HOSTILE}}
    view(run, [row]).save(tmp_path / "page.html")
    address = serving(rows=[row])
    for page in (address, tmp_path / "page.html"):
        browser.open(page, 1300)
        browser.wait_for("document.querySelector('main article')")
        assert browser.ask("typeof window.owned") == "undefined"
        inside = "document.querySelectorAll('main :is(script, style, a, img, iframe)').length"
        assert browser.ask(inside) == 0
        own = address if page == address else (tmp_path / "page.html").as_uri()
        here = own.partition("?")[0]
        assert [each for each in browser.requested() if not each.startswith((here, "data:"))] == []
        assert browser.complaints() == []


def test_an_exported_page_is_searched_and_walked_through_without_a_server(browser, tmp_path):
    data = data_of(["A", "B", None])
    view(run_of(["A", "A", ("A", "B")]), data).save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html", 1300)
    browser.wait_for("document.querySelector('#verdict').textContent.includes('because')")
    browser.press("j")
    browser.wait_for("document.querySelector('main').textContent.includes('Question 1')")
    browser.press("/")
    browser.press(*"question 2")
    browser.wait_for("document.querySelector('main').textContent.includes('Question 2')")
    assert re.search("flipped", browser.ask("document.querySelector('#verdict').textContent"))
