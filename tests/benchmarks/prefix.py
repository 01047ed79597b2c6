"""How much of what a judgment sends stands in a prefix that an earlier call of it sent too.

    python -m tests.benchmarks.prefix

Providers bill a prompt's longest prefix that was sent shortly before at a fraction of its
price. The judges are run on a pair of usual length with a model that answers by schema, and
each prompt is compared, character by character, with all that were sent before it, those of
the same judgment and of a second one of the same request. The first prompt shares nothing.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from typing import Any

from langchain_judges import load_judge
from tests.frozen_cases import model_of
from tests.schema_models import LetterCounts, Recorder

SENTENCE = """The plants on the sill need more light than a window gives in winter and less
water than most people think so move them close to the glass by day and away from it at night"""
WORDS = SENTENCE.split()
"""From which texts of a usual length are made."""


def text(words: int, start: int) -> str:
    return " ".join(WORDS[(start + i) % len(WORDS)] for i in range(words))


PAIR = {"input": text(60, 0) + "?", "output_a": text(190, 3), "output_b": text(170, 11)}
SECOND = {**PAIR, "output_b": text(180, 17)}
ASPECTS = ["Light", "Watering", "Place", "Season", "Final advice"]
CASES: dict[str, dict[str, Any]] = {
    "bsm": {"criteria": ASPECTS},
    "sc2": {"aspects": ASPECTS, "embeddings": LetterCounts()},
    "sc2 online": {"embeddings": LetterCounts()},
    "drpe": {"embeddings": LetterCounts()},
    "drpe no_batch": {"embeddings": LetterCounts(), "voting": {"batch": False}},
    "cot_sc": {},
    "relative": {},
    "plan_solve": {},
}


def common(one: str, other: str) -> int:
    """Return how many characters two prompts have in common at their beginning."""
    return len(os.path.commonprefix([one, other]))  # noqa: RUF071 - no paths


def shares(prompts: Sequence[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Return by step the characters that were sent before, and all of them.

    >>> shares([("a", "one two"), ("a", "one three"), ("b", "one")])
    {'a': (5, 16), 'b': (3, 3)}
    """
    results: dict[str, tuple[int, int]] = {}
    for i, (step, prompt) in enumerate(prompts):
        shared_length = max((common(prompt, earlier) for _, earlier in prompts[:i]), default=0)
        shared, whole = results.get(step, (0, 0))
        results[step] = (shared + shared_length, whole + len(prompt))
    return results


def measured(case: str) -> dict[str, tuple[int, int]]:
    """Return the shares of a judgment, and of a second one of the same request, by step."""
    recorder = Recorder()
    judge = load_judge(case.split()[0], model_of(recorder), **CASES[case])
    for pair in (PAIR, SECOND):
        judge.invoke(pair)
    return shares([(call.shape.split()[0], call.prompt) for call in recorder.calls])


def main() -> None:
    for case in CASES:
        steps = measured(case)
        total = tuple(map(sum, zip(*steps.values(), strict=True)))
        parts = ", ".join(
            f"{step} {shared_length / whole:.0%}"
            for step, (shared_length, whole) in steps.items()
        )
        print(f"{case:15} {total[0] / total[1]:.0%} of {total[1]:,} characters ({parts})")


if __name__ == "__main__":
    main()
