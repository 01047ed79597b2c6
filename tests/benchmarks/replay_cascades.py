"""Recorded verdicts of judges as stages of cascades and members of juries: calls and agreement.

    python -m tests.benchmarks.replay_cascades [DATA] [SPLITS]

LLMBar (419 pairs) and 200 pairs of MT-Bench, verdicts in both orders, which must agree. In
each of SPLITS random halves the threshold of the first judge is calibrated
(`selective_threshold`: its verdicts must agree with the labels as often as promised, δ = 0.05),
and the other half is judged. `held` is the share of the splits in which the promise is true of
all pairs, for calibration rows drawn with replacement, as the guarantee has it. Juries:
agreement of the best member and of the majority with the labels, and the effective voters.
"""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from langchain_judges import create_jury, judge_many
from langchain_judges.datasets import load, recorded, recorded_judge
from langchain_judges.metrics import certainty, effective_voters, selective_threshold

DELTA = 0.05
PROMISED = {"llmbar": 0.8, "mtbench_human200": 0.7}
"""The agreement with the labels that is promised of the first judge's verdicts."""
Setting = tuple[str, str]


class Told(NamedTuple):
    """What a judge says of each row."""

    answers: list[Any]
    sure: list[float | None]
    rows: list[dict[str, Any]]


CASCADES: dict[str, list[tuple[list[Setting], Setting]]] = {
    "llmbar": [
        ([("GPT-4", "Vanilla")], ("GPT-4", "Metrics_Reference")),
        ([("GPT-4", "Swap")], ("GPT-4", "Metrics_Reference")),
        ([("PaLM2", "Metrics_Reference")], ("GPT-4", "Metrics_Reference")),
        (
            [("PaLM2", s) for s in ("Metrics_Reference", "Swap", "Reference")],
            ("GPT-4", "Metrics_Reference"),
        ),
    ],
    "mtbench_human200": [
        ([("ChatGPT", "Vanilla_NoRules")], ("GPT-4", "Vanilla_NoRules")),
        ([("LLaMA2", "Vanilla_NoRules")], ("GPT-4", "Vanilla_NoRules")),
        ([("PaLM2", "Vanilla_NoRules")], ("GPT-4", "Vanilla_NoRules")),
        (
            [(m, "Vanilla_NoRules") for m in ("ChatGPT", "LLaMA2", "PaLM2")],
            ("GPT-4", "Vanilla_NoRules"),
        ),
    ],
}
JURIES: dict[str, list[list[Setting]]] = {
    "llmbar": [
        [("GPT-4", s) for s in ("Vanilla", "Metrics_Reference", "Swap")],
        [(m, "Metrics_Reference") for m in ("GPT-4", "PaLM2", "LLaMA2", "ChatGPT", "Falcon")],
    ],
    "mtbench_human200": [
        [(m, "Vanilla_NoRules") for m in ("ChatGPT", "LLaMA2", "PaLM2")],
        [(m, "Vanilla_NoRules") for m in ("GPT-4", "ChatGPT", "LLaMA2", "PaLM2")],
    ],
}


def judge_of(name: str, folder: Path, setting: Setting) -> Any:
    model, prompt = setting
    return recorded_judge(recorded(name, folder, judge=model, setting=prompt))


def told_by(name: str, folder: Path, settings: list[Setting], rows: list[Any]) -> Told:
    """Return what a judge, or a jury of several, says of the rows."""
    judges = [judge_of(name, folder, setting) for setting in settings]
    judge = judges[0] if len(judges) == 1 else create_jury(judges)
    results = list(judge_many(judge, rows, progress=False))
    verdicts = [row["verdict"] for row in results]
    return Told([v["preference"] for v in verdicts], list(map(certainty, verdicts)), results)


def agreement(answers: list[Any], labels: list[Any], places: Any = None) -> float:
    places = range(len(labels)) if places is None else places
    return fmean(answers[place] == labels[place] for place in places)


def gate_of(cheap: Told, labels: list[Any], places: list[int], least: float) -> float:
    """Return the certainty from which on the cheap judge's verdicts are taken."""
    results = selective_threshold(
        [cheap.answers[n] for n in places],
        [cheap.sure[n] for n in places],
        [labels[n] for n in places],
        alpha=1 - least,
        delta=DELTA,
    )
    return results.value


def study(
    cheap: Told, strong: Told, labels: list[Any], splits: int, promise: float
) -> dict[str, float]:
    """Return the means over the splits."""
    results: dict[str, list[float]] = {
        name: [] for name in ("cascade", "strong", "asked", "held")
    }
    size = len(labels)
    for seed in range(splits):
        draw = random.Random(seed)
        shuffled = draw.sample(range(size), size)
        calibration, test = shuffled[: size // 2], shuffled[size // 2 :]
        gate = gate_of(cheap, labels, calibration, promise)
        test_rows = [n for n in test if cheap.sure[n] is not None and cheap.sure[n] >= gate]
        own = set(test_rows)
        final = [cheap.answers[n] if n in own else strong.answers[n] for n in range(size)]
        results["cascade"].append(agreement(final, labels, test))
        results["strong"].append(agreement(strong.answers, labels, test))
        results["asked"].append(1 - len(test_rows) / len(test))
        sample = draw.choices(range(size), k=size // 2)
        gate = gate_of(cheap, labels, sample, promise)
        sure_rows = [
            n for n in range(size) if cheap.sure[n] is not None and cheap.sure[n] >= gate
        ]
        results["held"].append(
            not sure_rows or agreement(cheap.answers, labels, sure_rows) >= promise
        )
    return {name: fmean(values) for name, values in results.items()}


def said(settings: list[Setting]) -> str:
    """Return how a table calls a judge."""
    if len(settings) == 1:
        return " ".join(settings[0])
    models = list(dict.fromkeys(model for model, _ in settings))
    prompts = list(dict.fromkeys(prompt for _, prompt in settings))
    return f"jury of {len(settings)}: {', '.join(models)} ({', '.join(prompts)})"


def main(data: Path, splits: int) -> None:
    for name, cascades in CASCADES.items():
        rows = load(name, data / name)
        labels = [row["label"] for row in rows]
        print(f"\n{name}: {len(rows)} pairs, {splits} splits, {PROMISED[name]:.0%} promised\n")
        print("| first | strong | strong alone | cascade | strong asked | held |")
        print("|---|---|---|---|---|---|")
        for first, last in cascades:
            cheap = told_by(name, data / name, first, rows)
            strong = told_by(name, data / name, [last], rows)
            mean = study(cheap, strong, labels, splits, PROMISED[name])
            print(
                f"| {said(first)} | {said([last])} | {mean['strong']:.1%} | "
                f"{mean['cascade']:.1%} | {mean['asked']:.0%} | {mean['held']:.1%} |"
            )
        print("\n| jury | best member | majority | effective voters |\n|---|---|---|---|")
        for members in JURIES[name]:
            alone = [told_by(name, data / name, [each], rows).answers for each in members]
            jury = told_by(name, data / name, members, rows)
            worth = effective_voters(jury.rows, labels)
            best = max(agreement(answers, labels) for answers in alone)
            print(
                f"| {said(members)} | {best:.1%} | {agreement(jury.answers, labels):.1%} | "
                f"{float(worth):.1f} of {len(members)} |"
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("../shared/data")
    main(folder, int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
