"""The form of SC²'s human study, and what its answers come to."""

import json
import re
from pathlib import Path

import pytest

from cookbook.study import form as sc2_form
from cookbook.study.runner import slug
from langchain_judges.errors import InputError
from tests.chromium import Chromium, needed

CELLS = {"common": "hot", "only_a": "none", "only_b": "none"}


@pytest.fixture
def study(tmp_path):
    """Four pairs, of which A is better, with a table in both arms but the last."""
    texts = {"input": "Which <b>tea</b>?", "output_a": "Green </script>", "output_b": "Black"}
    pairs = [{"id": f"p{n}", "label": "A", **texts} for n in range(4)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    for arm, count in zip(sc2_form.ARMS, (4, 3), strict=True):
        table = {"rows": [{"aspect": arm, **CELLS}]}
        rows = [{"id": f"p{n}", "table": table if n < count else None} for n in range(4)]
        text = "\n".join(map(json.dumps, rows))
        (tmp_path / f"{slug(arm)}.jsonl").write_text(text)
    return tmp_path


def saved(path, *answers):
    fields = ("id", "arm", "before", "after")
    rows = [dict(zip(fields, answer, strict=True)) for answer in answers]
    path.write_text(json.dumps({"answers": rows}))
    return path


def test_each_question_has_one_table_and_the_other_form_has_the_other(study):
    pages = [
        sc2_form.make(study, study / f"{form}.html", form=form).read_text() for form in (0, 1)
    ]
    questions = [
        dict(re.findall(r'data-id="(p\d)" data-arm="(sc2 C\d)"', page)) for page in pages
    ]
    # The fourth pair has no table in one arm.
    assert set(questions[0]) == set(questions[1]) == {"p0", "p1", "p2"}
    assert all(questions[0][name] != questions[1][name] for name in questions[0])


def test_a_form_holds_no_label_and_no_markup_of_the_texts(study):
    page = sc2_form.make(study, study / "form.html").read_text()
    assert set(re.findall(r" data-(\w+)", page)) == {"key", "id", "arm"}
    assert "Which &lt;b&gt;tea&lt;/b&gt;?" in page
    assert page.count("</script>") == 1


def test_answers_are_scored_by_number_of_tables(study, capsys):
    one, eight = sc2_form.ARMS
    first = saved(study / "1.json", ("p0", one, "B", "A"), ("p1", eight, "A", "A"))
    second = saved(study / "2.json", ("p1", one, "tie", "B"), ("p0", eight, "tie", "A"))
    result = sc2_form.score(study, [first, second])
    # One table: -1 and 0 before, +1 and -1 after. Eight: +1 and 0 before, +1 and +1 after.
    assert (result[one].before, result[one].after) == (-0.5, 0)
    assert (result[eight].before, result[eight].after) == (0.5, 1)
    assert (result[one].wrong_to_right, result[one].right_to_wrong) == (1, 0)
    assert "2 people" in capsys.readouterr().out


@pytest.mark.parametrize("answer", [("p9", "sc2 C1", "A", "A"), ("p0", "sc2 C1", "A", "C")])
def test_an_answer_of_another_study_is_refused(study, answer):
    with pytest.raises(InputError, match="not of this study"):
        sc2_form.score(study, [saved(study / "1.json", answer)])


def test_the_form_is_made_and_scored_from_the_command_line(study, capsys):
    page = str(study / "f.html")
    assert sc2_form.main(["make", str(study), "-o", page]) == 0
    assert "3 questions are in" in capsys.readouterr().out
    assert sc2_form.main(["score", str(study), page]) == 2
    assert "no file that the form saved" in capsys.readouterr().err


CLICK = "[...document.querySelectorAll('section:not([hidden]) > div:not([hidden])')].at(-1)"


def _place(browser: Chromium, page: Path) -> object:
    """Open the page again, and return the question that it shows."""
    browser.open(page, 900)
    return browser.ask("document.getElementById('place').textContent")


@needed
@pytest.mark.figures
def test_a_browser_asks_before_and_after_the_table_and_resumes(study, tmp_path):
    page = sc2_form.make(study, study / "form.html")
    with Chromium(tmp_path / "profile") as browser:
        browser.open(page, 900)
        assert browser.ask("document.querySelectorAll('table').length") == 3
        for answers in (("A", "B"), ("tie", "A")):
            visible = "document.querySelector('section:not([hidden]) .after').hidden"
            assert browser.ask(visible) is True
            for answer in answers:
                browser.ask(f"{CLICK}.querySelector('button[value={answer}]').click()")
        # A browser stores answers beside the page: opened at once, it may not show them yet.
        places = (_place(browser, page) for _ in range(100))
        assert "Question 3 of 3" in places
        for _ in range(2):
            browser.ask(f"{CLICK}.querySelector('button[value=A]').click()")
        assert browser.ask("document.getElementById('end').hidden") is False
        assert browser.complaints() == []
        answers_json = browser.ask("JSON.stringify({answers})")
    (study / "answers.json").write_text(str(answers_json))
    assert [(e["before"], e["after"]) for e in json.loads(str(answers_json))["answers"]] == [
        *(("A", "B"), ("tie", "A"), ("A", "A")),
    ]
    assert sum(aid.n for aid in sc2_form.score(study, [study / "answers.json"]).values()) == 3
