"""All rows of a report, listed by the page's own script."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from langchain_judges import report
from langchain_judges.report import page
from tests.chromium import Chromium, needed
from tests.judged_rows import data_of, run_of


def unpacked(reports):
    return json.loads(gzip.decompress(base64.b64decode(str(page.packed_rows(reports)))))


def test_every_row_of_every_judge_is_there_with_texts_votes_and_orders():
    data = data_of([["A", "B"], ["B", "B"]])
    both = report.compare({"one": run_of([("A", "A"), ("A", "B")]), "two": run_of(["A"])}, data)
    listed = unpacked(both.reports)
    # The one that agrees more often comes first.
    assert listed["judges"] == ["two", "one"]
    row = listed["rows"][1]
    assert row["votes"] == ["B", "B"]
    assert row["judges"][1]["orders"] == ["A", "B"]
    assert row["judges"][0] is None
    assert [name for name, _ in row["texts"]] == ["A", "B"]


def test_long_texts_are_cut_and_say_by_how_much(monkeypatch):
    monkeypatch.setattr(page, "LONGEST", 10)
    data = data_of(["A"])
    data[0]["output_a"] = "x" * 1010
    (row,) = unpacked([report.trust(run_of(["B"]), data)])["rows"]
    assert row["texts"][0] == ["A", "xxxxxxxxxx … (1,000 more characters)"]


def test_a_page_holds_the_texts_of_the_costliest_rows_first(monkeypatch):
    monkeypatch.setattr(page, "MOST_CHARACTERS", 1)
    rows = unpacked([report.trust(run_of(["A", "B"]), data_of(["A", "A"]))])["rows"]
    assert [bool(row["texts"]) for row in rows] == [False, True]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Chromium(tmp_path_factory.mktemp("profile")) as started:
        yield started


def opened(browser, page, width=1400, *, dark=False):
    browser.open(page, width, dark=dark)
    while browser.ask("document.getElementById('rows').hidden"):
        pass
    browser.ask("document.querySelector('#rows details').open = true")
    return browser


COUNT = "document.getElementById('rows-count').textContent"
FIRST = "document.querySelector('#rows-list .row').innerText.split(/\\s+/)[0]"


@pytest.mark.system
@needed
def test_a_browser_lists_filters_sorts_and_opens_rows(browser, tmp_path):
    labels = ["A", "B"] * 500
    answers = ["A" if i % 10 else "tie" for i in range(1000)]
    report.trust(run_of(answers), data_of(labels)).to_html(tmp_path / "r.html")
    opened(browser, tmp_path / "r.html")
    assert browser.ask(COUNT) == "1,000 of 1,000 rows"
    # A screenful stands in the page, not a thousand.
    assert browser.ask("document.querySelectorAll('#rows-list .row').length") < 40
    choose = (
        "document.getElementById('{0}').value = '{1}';"
        "document.getElementById('{0}').dispatchEvent(new Event('change'))"
    )
    browser.ask(choose.format("rows-kind", "ties"))
    assert browser.ask(COUNT) == "100 of 1,000 rows"
    browser.ask(choose.format("rows-order", "file"))
    assert browser.ask(FIRST) == "r0"
    browser.ask("document.querySelector('#rows-list .row').click()")
    assert "Question 0" in browser.ask("document.getElementById('rows-view').innerText")
    assert browser.complaints() == []


WIDE = """[...document.querySelectorAll('.scroll')].filter(t => t.clientWidth).map(t => [
    t.scrollWidth > t.clientWidth + 1,
    t.classList.contains('more') &&
        getComputedStyle(t, '::before').content.includes('more to the right')])"""


@pytest.mark.system
@needed
@pytest.mark.parametrize("dark", [True, False])
def test_a_table_that_is_wider_than_the_screen_says_so(browser, tmp_path, dark):
    data = data_of([["A", "B", "B"]] * 24, difficulty="hard")
    for number, row in enumerate(data):
        row |= {"systems": [f"system {number % 3}", f"system {(number + 1) % 3}"]}
    runs = {name: run_of([("A", "B"), ("B", "B")] * 12) for name in ("one", "two")}
    report.compare(runs, data).to_html(tmp_path / "r.html")
    for width in (1400, 400):
        opened(browser, tmp_path / "r.html", width, dark=dark)
        browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
        browser.ask("dispatchEvent(new Event('resize'))")
        tables = browser.ask(WIDE)
        assert len(tables) > 8
        assert all(wide == hint for wide, hint in tables)
        assert any(wide for wide, _ in tables) == (width == 400)
    # At its end nothing is left to be seen.
    browser.ask("document.querySelector('.scroll.more').scrollLeft = 9999")
    browser.ask("dispatchEvent(new Event('resize'))")
    assert not browser.ask("document.querySelector('.scroll').classList.contains('more')")


@pytest.mark.system
@needed
def test_a_listed_text_is_shown_and_never_obeyed(browser, tmp_path):
    data = data_of(["A"])
    data[0]["output_a"] = "<img src=x onerror=\"document.title='owned'\">"
    report.trust(run_of(["B"]), data).to_html(tmp_path / "r.html")
    opened(browser, tmp_path / "r.html", 400)
    browser.ask("document.querySelector('#rows-list .row').click()")
    assert "onerror" in browser.ask("document.getElementById('rows-view').innerText")
    assert browser.ask("document.title") != "owned"
    assert browser.ask("document.documentElement.scrollWidth") == 400


def test_rows_beyond_a_thousand_stand_in_a_file_beside_the_page(tmp_path):
    labels = ["A", "B"] * 600
    answers = ["A" if i % 3 else "tie" for i in range(1200)]
    data = data_of(labels)
    data[7]["id"] = "=1+1"
    rows = run_of(answers)
    rows[7]["id"] = "=1+1"
    text = report.trust(rows, data).to_html(tmp_path / "r.html")
    lines = (tmp_path / "r.rows.csv").read_text().splitlines()
    assert len(lines) == 1 + 1200
    assert lines[8].startswith("'=1+1,")  # no spreadsheet calculates it
    packed = text.partition('id="rows-data">')[2].partition("<")[0]
    listed = json.loads(gzip.decompress(base64.b64decode(packed)))["rows"]
    assert len(listed) == 1000
    assert "All 1,200 rows are in <code>r.rows.csv</code>" in text
    assert not (tmp_path / "s.rows.csv").exists()
    report.trust(rows[:9], data).to_html(tmp_path / "s.html")
    assert not (tmp_path / "s.rows.csv").exists()
