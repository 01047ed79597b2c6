"""The results of a sweep: figures of its runs, each a pure function of rows and items."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from allure_sweep.ablation import ablation, kappas, wrong_labels
from allure_sweep.averages import (
    averaged,
    majority_of,
    mean_accuracy,
)
from allure_sweep.plan import Arm, system_of
from allure_sweep.results import Runs
from allure_sweep.roc import roc_curves
from langchain_judges.memory.example import texts_of
from langchain_judges.memory.recall import knn
from langchain_judges.methods.allure.holdout import group_of
from langchain_judges.rows.checks import expected_answers
from langchain_judges.rows.texts import judged, transcript

MAP_SEEDS = (0, 1, 2)
"""Seeds of the t-SNE map: what does not come back under another seed is not there."""


def figures(runs: Runs) -> dict[str, Any]:
    """Return everything the report shows, as plain JSON."""
    plan, examples = runs.plan, runs.memory.examples()
    problems = {str(item["id"]): str(item["problem"]) for item in plan.items}
    mistakes = [
        {"mode": str(each["mode"] or "none named"), "problem": problems[str(each["source"])]}
        for each in examples
    ]
    return {
        "preset": plan.preset,
        "title": plan.experiment.title,
        "problems": plan.experiment.problems,
        "leak_allowed": plan.allow_leak,
        "by_family": plan.by_family,
        "items": {"train": len(plan.train), "held_out": len(plan.held_out)},
        "groups": {
            "train": len({group_of(item, n) for n, item in enumerate(plan.train)}),
            "held_out": len(set(runs.groups)),
        },
        "majority": majority_of(runs.truth),
        "most_calls": plan.most_calls,
        "examples": {
            "count": len(examples),
            "version": runs.memory.version,
            "by_mode": dict(Counter(each["mode"] for each in mistakes)),
            "by_problem": _crossed((each["problem"], each["mode"]) for each in mistakes),
        },
        "runs": {arm.name: run_figures(runs, arm) for arm in runs.arms},
        "sizes": size_sweep(runs),
        "sizes_left_out": _left_out(runs),
        "instructions": _instructions(runs),
        "ablation": ablation(runs),
        "roc": roc_curves(runs),
        "kappa": kappas(runs),
        "learning_curve": learning_curve(runs),
        "turned": turned(runs),
        "map": example_map(runs),
    }


def run_figures(runs: Runs, arm: Arm) -> dict[str, Any]:
    """Return the figures of one run."""
    rows, labels = runs.rows[arm.name], runs.labels(arm.name)
    wrong = [a is not None and a != b for a, b in zip(labels, runs.truth, strict=True)]
    example_counts = [len(row["verdict"].get("recalled") or []) for row in rows]
    reasons = [{f["reason"] for f in row["verdict"]["failures"]} for row in rows]
    usage = [row["verdict"]["usage"] for row in rows]
    items = runs.plan.held_out
    errors = Counter(item["problem"] for item, bad in zip(items, wrong, strict=True) if bad)
    of = Counter(item["problem"] for item in items)
    return {
        "kind": arm.kind,
        "size": arm.size,
        "seed": arm.seed,
        "mode": arm.mode,
        "n": len(rows),
        "not_judged": labels.count(None),
        "shown": sum(example_counts) / len(example_counts),
        "cut": sum("input_cut" in each for each in reasons),
        "leaked": _leaked(runs, arm),
        "metrics": runs.metrics[arm.name],
        "majority": majority_of(runs.truth),
        "by_system": _by_system(runs, [arm]),
        "errors": sum(wrong),
        **wrong_labels(labels, runs.truth),
        "errors_by_problem": {
            name: {"errors": errors[name], "n": of[name]} for name in sorted(of)
        },
        "calls": sum(each["calls"] for each in usage),
        "tokens": sum(each["input_tokens"] + each["output_tokens"] for each in usage),
    }


def _crossed(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row, column in pairs:
        counts[row][column] += 1
    return {row: dict(counts[row]) for row in sorted(counts)}


def _leaked(runs: Runs, arm: Arm) -> int:
    """Count the items that were shown an example of their own group."""
    groups = {each["id"]: each["group"] for each in runs.memory.examples()}
    return sum(
        item.get("group") is not None
        and item["group"] in {groups.get(each) for each in row["verdict"].get("recalled") or []}
        for item, row in zip(runs.plan.held_out, runs.rows[arm.name], strict=True)
    )


def size_sweep(runs: Runs) -> list[dict[str, Any]]:
    """Return the metrics by number of examples: the mean over seeds, with its interval."""
    by_size: dict[int, list[Arm]] = defaultdict(list)
    for arm in [*runs.of("none"), *runs.of("size")]:
        by_size[arm.size or 0].append(arm)
    rows_by_size = [{"size": size, **_over_seeds(runs, arms)} for size, arms in by_size.items()]
    if runs.named("all"):
        rows_by_size.append({"size": "all", **_over_seeds(runs, runs.of("all"))})
    return rows_by_size


def _over_seeds(runs: Runs, arms: Sequence[Arm]) -> dict[str, Any]:
    example_counts = [
        len(row["verdict"].get("recalled") or []) for arm in arms for row in runs.rows[arm.name]
    ]
    return {
        "runs": [arm.name for arm in arms],
        "shown": sum(example_counts) / len(example_counts),
        "metrics": averaged(
            [runs.metrics[arm.name] for arm in arms],
            [runs.rows[arm.name] for arm in arms],
            runs.truth,
            runs.groups,
        ),
        "by_system": _by_system(runs, arms),
        "majority": majority_of(runs.truth),
    }


def _by_system(runs: Runs, arms: Sequence[Arm]) -> dict[str, dict[str, Any]]:
    """Return the accuracy on each system's responses, with the majority baseline."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(runs.plan.held_out):
        places[system_of(item)].append(place)
    by_system = {}
    for system in sorted(places):
        own_places = places[system]
        truth = [runs.truth[i] for i in own_places]
        groups = [runs.groups[i] for i in own_places]
        rows = [[runs.rows[arm.name][i] for i in own_places] for arm in arms]
        accuracy = mean_accuracy(rows, truth, groups)
        by_system[system] = {**accuracy, "n": len(own_places), "majority": majority_of(truth)}
    return by_system


def _left_out(runs: Runs) -> list[int]:
    planned = {each for each in runs.plan.sizes if each > 0}
    return sorted(planned - {arm.size for arm in runs.of("size")})


def _instructions(runs: Runs) -> list[dict[str, str]]:
    """Return the runs that differ in the instructions of the judge, from least to most."""
    names = {"bare": "bare", "criteria": "criteria", "steps": "none", "examples": "all"}
    return [{"name": name, "run": run} for name, run in names.items() if runs.named(run)]


def learning_curve(runs: Runs) -> list[dict[str, Any]]:
    """Return the metrics by how many training items were audited, everything recalled."""
    plan = runs.plan
    points: list[tuple[int, str]] = [(0, "none")]
    points += [(len(plan.first(arm.portion or 0)), arm.name) for arm in runs.of("curve")]
    points += [(len(plan.train), "all")] if runs.named("all") else []
    sources = [str(each["source"]) for each in runs.memory.examples()]
    order = {str(item["id"]): place for place, item in enumerate(plan.train)}
    return [
        {
            "audited": audited,
            "examples": sum(order[source] < audited for source in sources),
            "run": name,
        }
        for audited, name in points
    ]


def turned(runs: Runs) -> dict[str, Any]:
    """Return the items that memory turned from wrong to right, each with its nearest example.

    `worsened` counts those that it turned from right to wrong.
    """
    if not runs.named("all"):
        return {"worsened": 0, "items": []}
    wide = not runs.plan.by_family
    before, after = runs.labels("none"), runs.labels("all")
    triples = list(zip(before, after, runs.truth, strict=True))
    worsened = sum(a == truth and b not in (truth, None) for a, b, truth in triples)
    changes = []
    for item, (was, now, truth) in zip(runs.plan.held_out, triples, strict=True):
        if was in (truth, None) or now != truth:
            continue
        near = runs.memory.recall(
            item, knn(1, any_family=wide), allow_leak=runs.plan.allow_leak
        )
        changes.append(
            {
                "id": item["id"],
                "problem": item["problem"],
                "input": transcript(item["input"]),
                "output": judged(item["output"]),
                "expected": expected_answers(item),
                "label": truth,
                "before": was,
                "nearest": dict(near[0]) if near else None,
            }
        )
    return {"worsened": worsened, "items": changes}


def example_map(runs: Runs) -> dict[str, Any]:
    """Return the t-SNE map of the examples' embeddings under several seeds."""
    examples = runs.memory.examples()
    modes = [str(each["mode"] or "none named") for each in examples]
    if len(examples) < 4:
        return {"seeds": [], "modes": modes, "places": []}
    import numpy as np
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    texts = [texts_of(each).joined() for each in examples]
    vectors = np.asarray(runs.memory.embeddings.embed_documents(texts))
    near = min(30.0, (len(examples) - 1) / 3)
    # Its threads wait for each other at each of a thousand steps, on a busy machine for long.
    with threadpool_limits(limits=1):
        maps = [
            TSNE(perplexity=near, init="random", random_state=seed).fit_transform(vectors)
            for seed in MAP_SEEDS
        ]
    places = [[[round(float(v), 3) for v in xy] for xy in each] for each in maps]
    return {"seeds": list(MAP_SEEDS), "modes": modes, "places": places}
