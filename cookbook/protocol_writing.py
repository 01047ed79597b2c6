"""The protocol of writing under constraints: every writer on the same lists, in one table.

    python cookbook/protocol_writing.py --model openai:gpt-5-mini --data ../data -o texts

`--data` is a folder with `commongen_hard/concepts.jsonl`, or such a file: one
`{"concepts": [...]}` a line. Of each of the first hundred lists ten concepts are drawn by a
seed. Every method writes into a file of its own under `--out`; the same command resumes where
it stopped. With `--judge MODEL` each method's texts are compared with the zero-shot ones, in
both orders; the name of `--model` is that same model.

Source: Saha et al. 2023, section 4.2 and table 6.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import protocols
import typer
from protocols import in_flight, inside, program, shared_model

from langchain_judges import judge_many
from langchain_judges.writing.quality import Writing, evaluate_writing, load_story_judge
from langchain_judges.writing.registry import load_writer

ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "zero-shot": ("direct", {"preset": "zero_shot"}),
    "plan & solve": ("direct", {"preset": "plan_solve"}),
    "self-consistency": ("direct", {"preset": "self_consistency"}),
    "best of 5 by coverage": ("direct", {"preset": "best_coverage"}),
    "zero-shot, repaired": ("direct", {"rewrites": 1}),
    "Branch-Solve-Merge (paper)": ("bsm", {"preset": "paper"}),
    "Branch-Solve-Merge": ("bsm", {}),
}
"""The methods by the name they have in the table; the first is what others are held against."""


CONCEPTS = "concepts.jsonl"
ROWS = 100
"""Lists of concepts that are written."""


def draw(lines: Iterable[str], rows: int, size: int, seed: int) -> list[dict[str, Any]]:
    """Draw `size` concepts of each of the first `rows` lists; a shorter list is taken whole.

    Each list has a generator of its own, so that its draw does not depend on the others.
    """
    tasks = []
    for number, line in enumerate(lines):
        if number == rows:
            break
        concepts = json.loads(line)["concepts"]
        draws = random.Random(f"{seed}:{number}")  # noqa: S311 - a draw, no secret
        sample = draws.sample(concepts, min(size, len(concepts)))
        tasks.append({"id": str(number), "concepts": sample})
    return tasks


def carry_out(
    model: Any,
    tasks: list[dict[str, Any]],
    out: Path,
    judge: Any = None,
    progress: bool = True,
    concurrency: int = 16,
) -> dict[str, Writing]:
    """Write every task by every method, and measure what came of it.

    Args:
        model: What writes.
        tasks: The lists of concepts.
        out: The folder of the results.
        judge: Compares each method's texts with those of the first; None compares nothing.
        progress: Show progress on the terminal.
        concurrency: Most model calls in flight.
    """
    results: dict[str, Writing] = {}
    first: list[dict[str, Any]] = []
    for name, (method, options) in ARMS.items():
        slug = "".join(c if c.isalnum() else "_" for c in name.lower()).strip("_")
        writer = load_writer(method, model, **options)
        texts = out / f"{slug}.jsonl"
        run: dict[str, Any] = {"max_concurrency": concurrency}
        rows = list(judge_many(writer, tasks, out=texts, progress=progress, **run))
        verdicts = out / f"{slug}.verdicts.jsonl"
        compared: dict[str, Any] = (
            {"against": first, "judge": judge, "out": verdicts} if judge and first else {}
        )
        results[name] = evaluate_writing(rows, **compared, **run)
        first = first or rows
    return results


def table(results: dict[str, Writing]) -> str:
    """Render the results as Markdown; shares in percent."""
    head = ["method", "texts", "all present", "missing", "failing: solve", "failing: merge"]
    lines = [[*head, "win/tie/loss"], ["---"] * (len(head) + 1)]
    for name, each in results.items():
        failing, quality = each["failing"] or {}, each["quality"]
        lines.append(
            [
                name,
                f"{each['written']} of {each['tasks']}",
                *map(_percent, (each["all_present"], each["missing"])),
                *map(_percent, (failing.get("solve"), failing.get("merge"))),
                "{win}/{tie}/{loss}".format(**quality) if quality else "-",
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def main(  # noqa: PLR0913 - one parameter for each option
    model: protocols.Model,
    base_url: protocols.BaseUrl = None,
    data: protocols.Data = None,
    out: protocols.Out = Path("writing-study"),
    limit: protocols.Limit = None,
    size: Annotated[int, typer.Option(min=1, help="Concepts drawn from each list.")] = 10,
    judge: Annotated[
        str | None, typer.Option(help="The model that compares texts; none compares nothing.")
    ] = None,
    seed: protocols.Seed = 0,
    concurrency: protocols.Concurrency = None,
) -> dict[str, Writing]:
    """Write the same lists by every method; the same command resumes where it stopped."""
    lists = data if data and data.is_file() else inside(data, "commongen_hard", CONCEPTS)
    with lists.open(encoding="utf-8") as lines:
        tasks = draw(lines, limit or ROWS, size, seed)
    chat, replies = shared_model(model, base_url, out)
    other = load_story_judge(chat if judge == model else judge) if judge else None
    out.mkdir(parents=True, exist_ok=True)
    flying = in_flight(model, concurrency)
    results = carry_out(chat, tasks, out, other, concurrency=flying)
    print(table(results))
    print(replies.sentence())
    return results


if __name__ == "__main__":
    program(main)()
