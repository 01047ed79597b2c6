"""Small public sets, written for the tests in the files and fields of the real ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MODELS = ("M1", "M2", "M3", "M4")
NEWS = ("brio", "t0", "gpt3")


def mtbench() -> Iterable[Mapping[str, Any]]:
    for n in range(4):
        yield {
            "idx": n,
            "input": f"What is {n} good for?",
            "output_1": "It is good for a start.",
            "output_2": "Nothing much comes of it.",
            "label": 1 + n % 2,
            "question_id": 81 + n,
            "category": "writing",
            "model_1": "gpt-4",
            "model_2": "llama-13b",
        }


def llmbar() -> Iterable[Mapping[str, Any]]:
    for n in range(4):
        yield {
            "set": "Natural" if n < 2 else "GPTInst",
            "idx": n % 2,
            "input": f"Name {n + 2} colours.",
            "output_1": "Red, blue and whatever else there is.",
            "output_2": "Colours are nice.",
            "label": 1,
        }


def cogeval() -> Iterable[Mapping[str, Any]]:
    for n in range(4):
        messages = [{"role": "user", "content": f"Which rooms lead to room {n}?"}]
        yield {
            "path": f"conversations/line/rooms/{n}",
            "graph": "line",
            "domain": "rooms",
            "condition": "1stepPath",
            "model": "model-a",
            "conversation": messages,
            "response": f"Answer: {n}",
            "parsed": str(n),
            "expected": [str(n)],
        }


def articles() -> Iterable[Mapping[str, Any]]:
    for n in range(4):
        sentences = [f"House {n} burnt.", f"A fire took house {n}."]
        text = f"In the night a fire took house {n} on the hill. Nobody was hurt."
        article = {"id": f"article-{n}", "text": text}
        yield {**article, "references": sentences, "reference": sentences[0]}


def summaries() -> Iterable[Mapping[str, Any]]:
    for n in range(4):
        for m, model in enumerate(MODELS):
            grade = 1.0 + m + n % 2 / 2
            grades = dict.fromkeys(("coherence", "consistency", "fluency", "relevance"), grade)
            summary = f"A fire took house {n}. " * (1 + m) + "Nobody was hurt." * (n % 2)
            yield {"id": f"article-{n}", "model_id": model, "summary": summary,
                   "expert_mean": grades}  # fmt: skip


def news() -> Iterable[Mapping[str, Any]]:
    for dataset in ("cnn2022", "bbc2022"):
        for n in range(8):
            # People like the longer texts, except of the last article that all agree on.
            short, other, long = NEWS
            best, worst = (short, long) if n == 5 else (long, short)
            one_each = dict.fromkeys(NEWS, 1)
            # Six articles with a clear choice, one with two best texts, one without a choice.
            votes = [{best: 3}] * 6 + [{best: 2, other: 2}, one_each]
            against = [{worst: 3}] * 7 + [one_each]
            yield {
                "dataset": dataset,
                "id": n,
                "article": f"The mayor opened bridge {n} and spoke of the river. " * 3,
                "summaries": {
                    name: f"Something happened to bridge {n}. " * (1 + 3 * i + n % 2)
                    for i, name in enumerate(NEWS)
                },
                "best_votes": {name: votes[n].get(name, 0) for name in NEWS},
                "worst_votes": {name: against[n].get(name, 0) for name in NEWS},
            }


FILES = {
    "mtbench_human200/items": mtbench,
    "llmbar/items": llmbar,
    "cogeval/sample": cogeval,
    "summeval16/articles": articles,
    "summeval16/summaries": summaries,
    "goyal_news2022/generic": news,
}


def write_sets(folder: Path) -> Path:
    """Write every set into a folder, and return it."""
    for name, records in FILES.items():
        path = folder / f"{name}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(record) + "\n" for record in records())
        path.write_bytes(gzip.compress(text.encode()))
    return folder
