"""ALLURE (Hasanbeig et al. 2023, sections 4 and 5): what remembered mistakes bring.

`e1`: planning answers of `cogeval` against expected answers. `e2`: factual consistency of
summaries of `summeval16` (below 2.5 of 5 is label 0). A judge without examples labels
everything; its mistakes on the training items, audited against the known labels, fill a memory;
the arms judge the held-out items and vary what of the memory is shown:

- `none`, `bare`, `criteria`: no examples; instructions in steps (default), none, or the
  rubric alone;
- `size N, draw S`: N examples drawn by S (figure 3); `all`: every one;
- `own map`: all examples of the item's own cognitive map or set alone, as the paper keys its
  memory, and `own map, size N`;
- `with right cases`: as many cases that the judge got right beside its mistakes;
- `without MODE`: all but one failure mode, and `without N at random`, as many others, which
  tells the loss of a mode from that of examples (figures 6 and 7).

Columns beside the metrics: `errors, TYPE` by planning problem and `accuracy, SYSTEM` (figures
7c and 8), `kappa with ARM` of two arms (figure 7a), and `leaks`, the items that were shown an
example of themselves or their group. Examples come from training groups alone, so that is 0;
`--set leak=yes` is the paper's own setting, in which they come from the very items that are
measured.

Failure modes are a person's to say: `--set modes=FILE` names a JSON object from an example's
source to its mode; without it no mode is left out. The study writes `modes.json` beside its
results with every source to fill in.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableLambda

from cookbook.study.runner import Arm, Bench, Cell, Row, Rows, Table, first_groups
from langchain_judges import FailureMemory, create_allure_audit, create_allure_judge, metrics
from langchain_judges.memory.example import MEANINGS
from langchain_judges.memory.recall import Recall
from langchain_judges.methods.allure.held_out import split_by_group
from langchain_judges.methods.allure.judge import ALLURE
from langchain_judges.methods.allure.label_checks import annotated

SIZES = (4, 8, 15, 30, 45)
DRAWS = 3
HELD_OUT = 0.3
"""Share of the groups that is measured."""


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper."""

    title: str
    dataset: str
    options: Mapping[str, Any]


EXPERIMENTS = {
    "e1": Experiment("Planning answers against expected answers", "cogeval", {}),
    "e2": Experiment(
        "Factual consistency of summaries",
        "summeval16",
        # Improve-abs, T5, GPT-2 and Pegasus.
        {"form": "items", "systems": ["M11", "M17", "M20", "M23"], "threshold": 2.5},
    ),
}


def items_of(preset: str, bench: Bench) -> tuple[Rows, Rows]:
    """The training items and the held-out ones; in the leaking setting both are all."""
    experiment = EXPERIMENTS[preset]
    rows = bench.load(experiment.dataset, **experiment.options)
    groups = sorted({str(row.get("group", row["id"])) for row in rows})
    random.Random(bench.seed).shuffle(groups)  # noqa: S311 - no secret
    order = {name: place for place, name in enumerate(groups)}
    rows.sort(key=lambda row: order[str(row.get("group", row["id"]))])
    chosen = first_groups(rows, bench.limit)
    if bench.says("leak"):
        return chosen, chosen
    train, held_out = split_by_group(chosen, HELD_OUT, seed=bench.seed)
    return train, held_out


def held_out(preset: str, bench: Bench) -> Rows:
    """The items that are measured."""
    return items_of(preset, bench)[1]


def judge_of(preset: str, bench: Bench, **options: Any) -> Any:
    """The judge of an experiment, as the paper's prompt shows an item."""
    shown = {key: value for key, value in ALLURE.presets[preset].items() if key != "recall"}
    own = {**shown, "allow_leak": bench.says("leak"), **options}
    return create_allure_judge(bench.model, **own)


def labelled(preset: str, bench: Bench) -> Rows:
    """Label every item without examples, once."""
    train, measured = items_of(preset, bench)
    rows = list({row["id"]: row for row in (*train, *measured)}.values())
    arm = Arm("none, all items", make=lambda bench, part: judge_of(preset, bench))
    return bench.judged(arm, preset, rows)


def memory_of(preset: str, bench: Bench, right_share: float = 0.0) -> FailureMemory:
    """A memory of the mistakes on the training items, audited by their known labels."""
    train, _ = items_of(preset, bench)
    memory = audited(labelled(preset, bench), train, right_share)
    return _with_modes(memory, preset, bench)


def audited(results: Rows, items: Rows, right_share: float = 0.0) -> FailureMemory:
    """A memory of the mistakes in results on items whose labels are known."""
    verdicts = {row["id"]: {"verdict": row["verdict"]} for row in results}
    memory = FailureMemory()
    audit = create_allure_audit(
        RunnableLambda(lambda item: verdicts[item["id"]]),
        memory,
        check=annotated("label"),
        auditor=known_label,
        max_rounds=1,
        right_share=right_share,
    )
    audit.invoke({"items": list(items)})
    return memory


def known_label(proposal: Mapping[str, Any]) -> str:
    """Audit by the known label: what the check proposes is that label."""
    del proposal
    return "accept"


def _with_modes(memory: FailureMemory, preset: str, bench: Bench) -> FailureMemory:
    examples = memory.examples()
    form = bench.folder(preset) / "modes.json"
    if not form.exists():
        sources = {str(each["source"]): each["output"] for each in examples}
        form.write_text(json.dumps(sources, ensure_ascii=False, indent=1), "utf-8")
    modes: Mapping[str, str] = {}
    if "modes" in bench.extra:
        modes = json.loads(Path(bench.extra["modes"]).read_text("utf-8"))
    named = FailureMemory()
    named.remember({**each, "mode": modes.get(str(each["source"]))} for each in examples)
    return named


def arms(preset: str, bench: Bench, part: str) -> Sequence[Arm]:
    """The arms of an experiment; what is shown depends on what was remembered."""
    del part
    plain = {"none": {}, "bare": {"instruct": "bare"}, "criteria": {"instruct": "criteria"}}
    own = [Arm(name, make=partial(_judge, preset, options)) for name, options in plain.items()]
    if bench.dry:  # how many mistakes there will be nobody knows yet
        most = [f"size {size}, draw {draw}" for size in SIZES for draw in range(DRAWS)]
        most += ["all", "own map", *(f"own map, size {size}" for size in SIZES)]
        most.append("with right cases")
        if "modes" in bench.extra:
            most += [f"{arm} {mode}" for mode in MEANINGS for arm in ("without", "but as many as")]
        return [*own, *(Arm(name, make=partial(_judge, preset, {})) for name in most)]
    memory = memory_of(preset, bench)
    for name, options in shown(memory, bench.seed).items():
        own.append(Arm(name, make=partial(_judge, preset, options)))
    if len(memory):
        right = memory_of(preset, bench, right_share=0.5)
        both = {"memory": right, "recall": Recall("all", any_family=True)}
        own.append(Arm("with right cases", make=partial(_judge, preset, both)))
    return own


def _judge(preset: str, options: Mapping[str, Any], bench: Bench, part: str) -> Any:
    del part
    return judge_of(preset, bench, **options)


def shown(memory: FailureMemory, seed: int) -> dict[str, dict[str, Any]]:
    """The recall of each arm, and its memory."""
    examples = memory.examples()
    everything = Recall("all", any_family=True)
    draws: dict[str, Any] = {
        f"size {size}, draw {draw}": Recall("uniform", size, seed=seed + draw, any_family=True)
        for size in SIZES
        if size < len(examples)
        for draw in range(DRAWS)
    }
    chosen = {name: {"memory": memory, "recall": recall} for name, recall in draws.items()}
    if examples:
        chosen["all"] = {"memory": memory, "recall": everything}
        chosen["own map"] = {"memory": memory, "recall": Recall("all")}
    most = max(Counter(each["family"] for each in examples).values(), default=0)
    for size in (size for size in SIZES if size < most):
        own = Recall("uniform", size, seed=seed)
        chosen[f"own map, size {size}"] = {"memory": memory, "recall": own}
    counts = Counter(str(each["mode"]) for each in examples if each["mode"])
    for mode, count in counts.items():
        others = FailureMemory()
        others.remember(each for each in examples if str(each["mode"]) != mode)
        chosen[f"without {mode}"] = {"memory": others, "recall": everything}
        rest = Recall("uniform", len(examples) - count, seed=seed, any_family=True)
        chosen[f"without {count} at random"] = {"memory": memory, "recall": rest}
    return chosen


def figures(arm: str, rows: Rows, results: Mapping[str, Rows]) -> dict[str, Cell]:
    """Measures of how well an arm tells the labels apart; label 1 is the positive class.

    The AUC is there only where every judged item has a probability: of labels alone it would
    be the balanced accuracy, which has its own column.
    """
    own = results[arm]
    labels = [row["verdict"]["label"] for row in own]
    truth = [row["label"] for row in rows]
    groups = [str(row.get("group", row["id"])) for row in rows]
    pairs = zip(labels, truth, strict=True)
    wrong = [None if label is None else label != right for label, right in pairs]
    sources = [row["verdict"]["confidence_source"] for row in own if _judged(row)]
    cells = {
        "accuracy": Cell.of(metrics.accuracy(labels, truth, "drop", groups=groups)),
        "balanced": Cell.of(metrics.balanced_accuracy(labels, truth, groups=groups)),
        "precision": Cell.of(metrics.precision(labels, truth, groups=groups)),
        "recall": Cell.of(metrics.recall(labels, truth, groups=groups)),
        "recall of 0": Cell.of(metrics.recall(labels, truth, 0, groups=groups)),
        "F1": Cell.of(metrics.f1(labels, truth, groups=groups)),
        "errors": Cell(float(wrong.count(True)), len(rows)),
        "leaks": Cell(float(sum(bool(_recalled(row)["leaked"]) for row in own)), len(rows)),
        "examples": Cell(sum(len(_recalled(row)["ids"]) for row in own) / len(own), len(own)),
    }
    if sources and set(sources) == {"logprobs"}:
        scores = [row["verdict"]["score"] if _judged(row) else None for row in own]
        cells["AUC"] = Cell.of(metrics.auc(scores, truth, 1, groups=groups))
    for name in compared(arm, results):
        others = [row["verdict"]["label"] for row in results[name]]
        cells[f"kappa with {name}"] = Cell.of(metrics.cohen_kappa(labels, others))
    return cells | _by_kind(rows, wrong)


def compared(arm: str, results: Mapping[str, Rows]) -> list[str]:
    """The arms whose labels an arm's are compared with: all examples, and other modes.

    Of two arms each agreement is told once.
    """
    modes = [name for name in results if name.startswith("without ") and name[8:9].isalpha()]
    chosen = ["all", *(modes if arm in modes else [])]
    return [name for name in chosen if name in results and name != arm][
        : None if arm not in modes else 1 + modes.index(arm)
    ]


def _by_kind(rows: Rows, wrong: Sequence[bool | None]) -> dict[str, Cell]:
    """Errors by planning problem and accuracy by system, where there are several.

    An item that was not judged is in neither.
    """
    cells = {}
    for label, kind in (("errors", _problem), ("accuracy", _system)):
        kinds = [kind(row) for row in rows]
        for name in sorted(set(filter(None, kinds))) if len(set(kinds)) > 1 else ():
            places = [n for n, each in enumerate(kinds) if each == name and wrong[n] is not None]
            groups = [rows[n].get("group", rows[n]["id"]) for n in places]
            share = metrics.rate([not wrong[n] for n in places], groups=groups)
            errors = Cell(float(sum(bool(wrong[n]) for n in places)), len(places))
            cells[f"{label}, {name}"] = errors if label == "errors" else Cell.of(share)
    return cells


def _problem(row: Row) -> str:
    return str(row.get("category") or "")


def _system(row: Row) -> str:
    return str(next(iter(row.get("systems") or []), ""))


def _recalled(row: Row) -> Mapping[str, Any]:
    """The examples of a memory that an item was shown; none without one."""
    return row.get("recalled") or {"ids": [], "leaked": []}


def _judged(row: Row) -> bool:
    return row["verdict"]["label"] is not None


def _audited_calls(preset: str, bench: Bench, part: str) -> dict[str, int]:
    """The labels of all items without examples, from which the memory comes."""
    del part
    train, measured = items_of(preset, bench)
    return {"none, all items": len({row["id"] for row in (*train, *measured)})}


TABLES = {
    preset: Table(
        experiment.title,
        {preset: partial(held_out, preset)},
        partial(arms, preset),
        figures,
        note="The most frequent label alone is right as often as the accuracy of a constant.",
        more=partial(_audited_calls, preset),
    )
    for preset, experiment in EXPERIMENTS.items()
}
