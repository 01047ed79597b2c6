"""How many tokens each step of a method sends: its instructions, and the texts it shows.

    python -m benchmarks.prompts [--model NAME] [METHOD …]

Ten pairs that were not written for this package (LLMBar, `../shared/data`, else those of the
cookbook). Instructions are what stands outside of fences. A token is a word or a mark, which
comes within a tenth of what tokenizers of large models count in English. With `--model` the
rows are judged by it, and what it wrote stands beside.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from langchain_judges import load_judge
from langchain_judges.methods.registry import METHODS, leaf_of, method_of
from tests.conftest import DATA
from tests.frozen_cases import model_of
from tests.memories import Letters
from tests.schema_models import Recorder

COOKBOOK = Path(__file__).parents[1] / "cookbook" / "data"
_FENCED = re.compile(r"<([\w-]+)-(\w{10})>\n(.*?)\n</\1-\2>", re.DOTALL)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "sc2": {"aspect_samples": 1, "samples": 2},
    "drpe": {"embeddings": Letters()},
    "cot_sc": {"samples": 2},
    "relative_sc": {"samples": 2},
    "allure": {"rubric": "Is the response right?"},
    "rubric": {"rubric": "Is the response right?"},
}


def tokens(text: str) -> int:
    """Number of words and marks of a text."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def sizes(prompt: str) -> tuple[int, int]:
    """The tokens of a prompt's instructions and of its material.

    >>> sizes("Judge this.\\n<text-0123456789>\\nA b c.\\n</text-0123456789>\\nIs it short?")
    (7, 4)
    """
    prompt = re.sub(r"^\[(?:system|human|ai)\]$", "", prompt, flags=re.MULTILINE)
    material = sum(tokens(match[3]) for match in _FENCED.finditer(prompt))
    return tokens(_FENCED.sub("", prompt)), material


def rows() -> list[dict[str, Any]]:
    """Ten pairs."""
    path = DATA / "llmbar" / "items.jsonl.gz"
    if not path.exists():
        lines = (COOKBOOK / "contested.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines][:10]
    with gzip.open(path, "rt") as file:
        items = [json.loads(line) for line in file]
    chosen = random.Random(0).sample(items, 10)
    return [
        {"input": row["input"], "output_a": row["output_1"], "output_b": row["output_2"]}
        for row in chosen
    ]


def row_of(method: str, pair: Mapping[str, Any]) -> dict[str, Any]:
    """The row that a method judges of a pair."""
    pair = {key: pair[key] for key in ("input", "output_a", "output_b")}
    spec = {"method": method, "options": OPTIONS.get(method, {})}
    if method_of(leaf_of(spec)[0]).takes == "pair":
        return pair
    return {"input": pair["input"], "output": pair["output_a"]}


def prompts_of(method: str, pair: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The questions of a method about a pair: each step with its prompt."""
    recorder = Recorder()
    judge = load_judge(method, model_of(recorder), **OPTIONS.get(method, {}))
    judge.invoke(row_of(method, pair))
    return [(re.split(r"[: ]", call.name)[0], call.prompt) for call in recorder.calls]


def measured(
    method: str, pairs: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[float, float, float]]:
    """Calls for a row, and mean tokens of instructions and of material, by step."""
    steps: dict[str, list[tuple[int, int]]] = {}
    for step, prompt in [each for pair in pairs for each in prompts_of(method, pair)]:
        steps.setdefault(step, []).append(sizes(prompt))
    return {
        step: (
            len(each) / len(pairs),
            fmean(instructions for instructions, _ in each),
            fmean(material for _, material in each),
        )
        for step, each in steps.items()
    }


def written(method: str, pairs: Sequence[Mapping[str, Any]], model: str) -> dict[str, float]:
    """Mean tokens that a model wrote in a call, by step."""
    judge = load_judge(method, model, **OPTIONS.get(method, {}))
    usages = [judge.invoke(row_of(method, pair))["verdict"]["usage"] for pair in pairs]
    spent = [(step, use) for usage in usages for step, use in usage["by_step"].items()]
    return {
        name: sum(use["output_tokens"] for step, use in spent if step == name)
        / max(1, sum(use["calls"] for step, use in spent if step == name))
        for name in dict(spent)
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=list(METHODS), metavar="METHOD")
    parser.add_argument("--model", help="judge the rows by it, and count what it wrote")
    arguments = parser.parse_args()
    pairs = rows()
    print("| method | step | calls | instructions | material | output |\n" + "|---" * 6 + "|")
    for method in arguments.methods:
        output = written(method, pairs, arguments.model) if arguments.model else {}
        for step, (calls, instructions, material) in sorted(measured(method, pairs).items()):
            wrote = f"{output[step]:.0f}" if step in output else "-"
            print(
                f"| {method} | {step} | {calls:.1f} | {instructions:.0f} | {material:.0f} | "
                f"{wrote} |"
            )


if __name__ == "__main__":
    main()
