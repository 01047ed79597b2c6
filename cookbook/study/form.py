"""The human study of SC²'s paper (Figure 4): does a comparison table help people to decide?

    python -m cookbook.study sc2 --table "figure 3" --models NAME --data ../data --out study
    python -m cookbook.study.form make study/NAME/hh_helpful_test --out form.html
    python -m cookbook.study.form score study/NAME/hh_helpful_test answers-*.json

`make` writes a page that works without a network: it asks which of two texts is better, then
shows a table, and asks again. Half of the questions have the table of one sample, half the
best of eight; `--form 1` turns the halves for another person, so nobody sees a question twice.
The page keeps what was answered in the browser and saves it as a file. It holds no labels.

`score` reads those files: right is +1, undecided 0, wrong −1, before and after the table, with
95 % intervals clustered by question, and lists the reasons that people gave.
"""

from __future__ import annotations

import html
import json
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cookbook.study.runner import slug
from langchain_judges.cli.messages import table_console
from langchain_judges.errors import InputError
from langchain_judges.metrics import Result, mean, paired_difference
from langchain_judges.rows.texts import readable, transcript

ARMS = ("sc2 C1", "sc2 C8")
"""Arms of Figure 3: one table, and the best of eight."""
CHOICES = {"A": "A is better", "B": "B is better", "tie": "I cannot decide"}

Study = Annotated[Path, typer.Argument(help="Folder of one set in a study of SC².")]


def make(
    study: Study,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("form.html"),
    questions: Annotated[int, typer.Option(min=2, help="Most questions.")] = 96,
    form: Annotated[int, typer.Option(min=0, max=1, help="Which half has which table.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the order of the questions.")] = 0,
) -> Path:
    """Write a form that asks before and after a table."""
    pairs, tables = _pairs(study), {arm: _tables(study, arm) for arm in ARMS}
    names = sorted(name for name in pairs if all(name in tables[arm] for arm in ARMS))
    if len(names) < 2:
        raise InputError(f"fewer than two pairs in {study} have a table in both arms")
    random.Random(seed).shuffle(names)  # noqa: S311 - no secret
    parts = []
    for number, name in enumerate(names[:questions]):
        arm = ARMS[(number + form) % 2]
        parts.append(_question(pairs[name], tables[arm][name], arm))
    key = f"sc2-{study.name}-{form}-{seed}-{questions}"
    page = _PAGE.replace("%KEY%", html.escape(key)).replace("%QUESTIONS%", "".join(parts))
    out.write_text(page, "utf-8")
    table_console().print(f"{len(parts)} questions are in {out}.")
    return out


def _pairs(study: Path) -> dict[str, dict[str, Any]]:
    """The judged pairs by id."""
    path = study / "pairs.jsonl"
    if not path.exists():
        raise InputError(f"{study} is no folder of one set in a study of SC²")
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return {row["id"]: row for row in rows}


def _tables(study: Path, arm: str) -> dict[str, Any]:
    path = study / f"{slug(arm)}.jsonl"
    if not path.exists():
        raise InputError(f"{study} has no results of {arm}")
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return {row["id"]: row["table"] for row in rows if row.get("table")}


def _question(pair: Mapping[str, Any], table: Mapping[str, Any], arm: str) -> str:
    """One question; everything that a model or a person wrote is escaped."""
    texts = [("What was asked", transcript(pair["input"]))]
    texts += [(side, readable(pair[f"output_{side.lower()}"])) for side in "AB"]
    blocks = "".join(
        f"<h2>{title}</h2><div class=text>{html.escape(text)}</div>" for title, text in texts
    )
    buttons = "".join(
        f'<button type="button" value="{value}">{label}</button>'
        for value, label in CHOICES.items()
    )
    return (
        f'<section hidden data-id="{html.escape(pair["id"])}" data-arm="{arm}">{blocks}'
        f'<div class="before"><p>Which text is better?</p>{buttons}</div>'
        '<div class="after" hidden><h2>A comparison of the two</h2>'
        "<p>It was made by a model and may be wrong or incomplete.</p>"
        f"{_table(table['rows'])}<p>Having seen it: which text is better?</p>"
        "<p><label>Why, in a few words, if you like: <input></label></p>"
        f"{buttons}</div></section>"
    )


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    lines = [("Aspect", "In both", "Only in A", "Only in B")]
    lines += [(row["aspect"], row["common"], row["only_a"], row["only_b"]) for row in rows]
    cells = (f"<td>{'<td>'.join(map(html.escape, line))}" for line in lines)
    return f"<table border><tr>{'<tr>'.join(cells)}</table>"


def score(
    study: Study, answers: Annotated[list[Path], typer.Argument(help="Files that the form saved.")]
) -> dict[str, DecisionAid]:
    """Print what the tables did to people's answers, by number of tables."""
    labels = {name: pair["label"] for name, pair in _pairs(study).items()}
    rows = [_checked(each, labels, path) for path in answers for each in _read(path)]
    aids: dict[str, DecisionAid] = {}
    screen = Table(
        *("table", "answers", "before", "after", "change (95 %)", "wrong to right"),
        "right to wrong",
        title=f"{len(answers)} people",
    )
    for arm in ARMS:
        own = [each for each in rows if each["arm"] == arm]
        if not own:
            continue
        before, after = ([each[key] for each in own] for key in ("before", "after"))
        ids = [each["id"] for each in own]
        aid = aids[arm] = decision_aid(before, after, [labels[name] for name in ids], groups=ids)
        ends = aid.mean_change.interval
        change = f"{aid.mean_change:+.3f}"
        change += f" ({ends.low:+.3f} to {ends.high:+.3f})" if ends else ""
        moves = (str(aid.wrong_to_right), str(aid.right_to_wrong))
        screen.add_row(arm, str(aid.n), f"{aid.before:+.3f}", f"{aid.after:+.3f}", change, *moves)
    console = table_console()
    console.print(screen)
    for each in rows:
        if each.get("why"):
            change = f"{each['before']} → {each['after']} (right: {labels[each['id']]})"
            console.print(f"{each['arm']}, {change}: {each['why']}", markup=False)
    return aids


@dataclass(frozen=True)
class DecisionAid:
    """Effect of seeing a table on people's answers: right is +1, a tie 0, wrong −1."""

    before: Result
    after: Result
    mean_change: Result
    wrong_to_right: int
    right_to_wrong: int
    n: int


def decision_aid(
    before: Sequence[str], after: Sequence[str], truth: Sequence[str], groups: Sequence[str]
) -> DecisionAid:
    """Mean scores before and after, and their change (SC², Figure 4)."""
    old, new = (
        [
            1 if answer == label else 0 if answer == "tie" else -1
            for answer, label in zip(answers, truth, strict=True)
        ]
        for answers in (before, after)
    )
    moves = Counter(zip(old, new, strict=True))
    return DecisionAid(
        before=mean(old, groups=groups),
        after=mean(new, groups=groups),
        mean_change=paired_difference(new, old, groups=groups),
        wrong_to_right=moves[-1, 1],
        right_to_wrong=moves[1, -1],
        n=len(old),
    )


def _read(path: Path) -> Sequence[Any]:
    try:
        answers = json.loads(path.read_text("utf-8"))["answers"]
    except (ValueError, TypeError, KeyError) as exc:
        raise InputError(f"{path} is no file that the form saved") from exc
    if not isinstance(answers, list):
        raise InputError(f"{path} is no file that the form saved")
    return answers


def _checked(answer: Any, labels: Mapping[str, str], path: Path) -> dict[str, str]:
    """Read an answer of the study, or say that it is none."""
    fields = answer if isinstance(answer, dict) else {}
    fits = fields.get("id") in labels and fields.get("arm") in ARMS
    if not fits or any(fields.get(key) not in CHOICES for key in ("before", "after")):
        raise InputError(f"{path} has an answer that is not of this study: {answer!r:.100}")
    return {name: str(value) for name, value in fields.items()}


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Which text is better?</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
h2{font-size:1em;margin:1.2em 0 .3em}
.text{white-space:pre-wrap;border-left:3px solid #999;padding:.2em 1em;overflow-wrap:anywhere}
button{font:inherit;padding:.5em 1em;margin:0 .5em .5em 0}
</style></head>
<body data-key="%KEY%"><p id="place" role="status"></p>
%QUESTIONS%
<section id="end" hidden><p>That was the last question. Thank you!</p>
<button type="button" id="save">Save the answers as a file</button></section>
<script>
"use strict";
const key = document.body.dataset.key;
const questions = [...document.querySelectorAll("section[data-id]")];
let answers = [];
try { answers = JSON.parse(localStorage.getItem(key)) || []; } catch { answers = []; }
function show() {
  questions.forEach((each, n) => { each.hidden = n !== answers.length; });
  const done = answers.length >= questions.length;
  document.getElementById("end").hidden = !done;
  document.getElementById("place").textContent =
    done ? "" : `Question ${answers.length + 1} of ${questions.length}`;
  window.scrollTo(0, 0);
}
for (const each of questions) {
  const [before, after] = ["before", "after"].map(name => each.querySelector("." + name));
  let first = null;
  before.addEventListener("click", event => {
    if (!event.target.value) return;
    first = event.target.value;
    before.hidden = true;
    after.hidden = false;
  });
  after.addEventListener("click", event => {
    if (!event.target.value) return;
    answers.push({id: each.dataset.id, arm: each.dataset.arm,
                  before: first, after: event.target.value,
                  why: each.querySelector("input").value.trim()});
    try { localStorage.setItem(key, JSON.stringify(answers)); } catch { /* kept in memory */ }
    show();
  });
}
document.getElementById("save").addEventListener("click", () => {
  const link = document.createElement("a");
  const text = JSON.stringify({form: key, answers}, null, 1);
  link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  link.download = "answers-" + key + ".json";
  link.click();
});
show();
</script></body></html>
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; an error is one sentence and exit code 2."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(make)
    app.command()(score)
    try:
        app(args=None if arguments is None else list(arguments), standalone_mode=False)
    except (InputError, FileNotFoundError) as exc:
        print(exc, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
