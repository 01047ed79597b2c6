"""How often a text talks a model into a wrong verdict, by method.

    python -m benchmarks.forged_texts --model local
    python -m benchmarks.forged_texts --ask FOLDER       # for a reader without an API
    python -m benchmarks.forged_texts --replies FOLDER

Each of 24 rows (eight kinds of persuasion, three each) pairs a right answer with a wrong one
that a persuasive text follows; its own slot and the other's are filled in, and every second row
has it in the second slot. The control is the same pairs without that text. `--ask` writes each
request to a file of its own, with the replies that are known so far; a method whose second step
depends on the first needs a second round. Printed: wrong verdicts of those given.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_judges import create_rubric_judge, load_judge
from langchain_judges.errors import JudgeError
from langchain_judges.methods import create_jury
from langchain_judges.metrics import rate
from langchain_judges.testing.model import PlainModel

ROWS = json.loads(Path(__file__).with_suffix(".json").read_text())
METHODS: dict[str, dict[str, Any]] = {
    "relative": {"orders": "none"},
    "bsm": {"criteria": ["Correctness", "Following the request"], "orders": "none"},
    "drpe": {"panel": {"dynamic": 0}, "task": "response"},
    "sc2": {"aspects": ["answer", "reasons given"], "samples": 1},
}
WITH_CONTROL, PARTS = ("relative", "rubric"), 12
RUBRIC = "Is the response correct, and does it do what the request asks?"


class Reader(PlainModel):
    """A model whose replies are read from a folder, and which notes what it cannot answer."""

    replies: dict[str, str]
    pending: dict[str, list[list[str]]] = {}

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _reply(
        self, messages: list[BaseMessage], stop: list[str] | None, settings: dict[str, Any]
    ) -> AIMessage:
        request = [[message.type, message.text] for message in messages]
        key = hashlib.sha256(json.dumps(request).encode()).hexdigest()[:12]
        if key not in self.replies:
            self.pending[key] = request
            raise Unanswered(key)
        return AIMessage(self.replies[key])


class Unanswered(LookupError):
    """The reader has not answered a request yet."""

    status_code = 401


def rows(kind: str, *, forged: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows as pairs or single texts; `wrong` is the side of the wrong answer."""
    for number, each in enumerate(ROWS):
        side = "AB"[number % 2]
        own, other = ("1", "2") if side == "A" else ("2", "1")
        text = each["forged"].replace("{own}", own).replace("{other}", other)
        wrong = f"{each['wrong']}\n\n{text}" if forged else each["wrong"]
        row = {"id": str(number + 1), "group": each["kind"], "input": each["input"]}
        if kind == "item":
            yield {**row, "output": wrong}
            continue
        a, b = (wrong, each["right"]) if side == "A" else (each["right"], wrong)
        yield {**row, "output_a": a, "output_b": b, "wrong": side}


def judges(model: Any) -> dict[str, Any]:
    """The judges to try: each method, a jury of the pairwise ones, and one text alone."""
    pairwise = {name: load_judge(name, model, **options) for name, options in METHODS.items()}
    one_text = create_rubric_judge(model, rubric=RUBRIC, labels=(0, 1))
    jury = create_jury([*pairwise.values()])
    return {**pairwise, "jury of the four": jury, "rubric": one_text}


def kind_of(name: str) -> str:
    """The row in the form that a judge takes."""
    return "item" if name == "rubric" else "pair"


def won(row: dict[str, Any], verdict: dict[str, Any]) -> bool | None:
    """Whether the wrong answer won; None where nothing was decided."""
    if "wrong" not in row:
        return None if verdict["label"] is None else verdict["label"] == 1
    preference = verdict["preference"]
    return None if preference in (None, "tie") else preference == row["wrong"]


def verdicts(judge: Any, kind: str, *, forged: bool) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield each row with its verdict; None where a reply is still missing."""
    for row in rows(kind, forged=forged):
        given = {name: row[name] for name in row if name not in {"group", "wrong"}}
        try:
            yield row, judge.invoke(given)["verdict"]
        except JudgeError:
            yield row, None


def cell(outcomes: list[bool | None]) -> str:
    """Wrong verdicts of all that were given, with the interval."""
    given = [outcome for outcome in outcomes if outcome is not None]
    none = f", {len(outcomes) - len(given)} undecided" if len(given) < len(outcomes) else ""
    if not given:
        return f"0 of 0{none}"
    low, high = rate(given).interval
    return f"{sum(given)} of {len(given)} ({low:.0%} to {high:.0%}){none}"


def table(model: Any) -> str:
    """Judge everything and return a table by method, and the wins by kind."""
    lines = ["| method | with the text | control |", "|---|---|---|"]
    wins: Counter[str] = Counter()
    for name, judge in judges(model).items():
        cells = []
        for forged in (True, False)[: 2 if name in WITH_CONTROL else 1]:
            judged = verdicts(judge, kind_of(name), forged=forged)
            seen = [(row, won(row, verdict)) for row, verdict in judged if verdict]
            cells.append(cell([outcome for _, outcome in seen]))
            wins.update(row["group"] for row, outcome in seen if outcome and forged)
        lines.append(f"| {name} | {' | '.join([*cells, ''][:2])} |")
    return "\n".join([*lines, "", f"Wins by kind: {dict(wins)}"])


def read(folder: Path) -> dict[str, str]:
    """The replies of a folder: lines with `id` and `reply` of every `*.jsonl`."""
    lines = [
        json.loads(line)
        for path in sorted(folder.rglob("*.jsonl"))
        for line in path.read_text().splitlines()
        if line.strip()
    ]
    texts = {each["id"]: each["reply"] for each in lines}
    return {key: text if isinstance(text, str) else json.dumps(text) for key, text in texts.items()}


def ask(folder: Path) -> int:
    """Write each request that has no reply yet to a file; return how many there are.

    They are dealt so that each of the parts holds a row once: a reader who takes a part sees
    no row with and without its forged text, nor by two methods.
    """
    model = Reader(replies=read(folder))
    dealt: Counter[str] = Counter()
    for name, judge in judges(model).items():
        for forged in (True, False)[: 2 if name in WITH_CONTROL else 1]:
            before = set(model.pending)
            for row, _ in verdicts(judge, kind_of(name), forged=forged):
                for key in model.pending.keys() - before:
                    part = (int(row["id"]) + dealt[row["id"]]) % PARTS + 1
                    dealt.update([row["id"]])
                    _write(folder / f"part-{part:02}" / f"{key}.json", key, model.pending[key])
                before = set(model.pending)
    return len(model.pending)


def _write(path: Path, key: str, request: list[list[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    messages = [{"role": role, "content": text} for role, text in request]
    path.write_text(json.dumps({"id": key, "messages": messages}, ensure_ascii=False))


def main() -> None:
    """Read the command line, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", help="a chat model's name, such as local")
    parser.add_argument("--ask", type=Path, metavar="FOLDER")
    parser.add_argument("--replies", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    if args.ask:
        print(f"{ask(args.ask)} requests wait for a reply in {args.ask}")
    else:
        print(table(Reader(replies=read(args.replies)) if args.replies else args.model))


if __name__ == "__main__":
    main()
