"""The paper's experiments, run with any model (Hasanbeig et al. 2023, sections 4.1 and 4.2).

One judge without examples labels all items; its mistakes on the training items, audited
against their known labels, fill a memory; and runs over the held-out items vary what of the
memory the judge is shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda

from allure_sweep.figures import figures
from allure_sweep.plan import Arm, Plan, plan_sweep
from allure_sweep.results import Runs
from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.models.embeddings import default_embeddings
from langchain_judges.errors import JudgeError, OptionError
from langchain_judges.memory.failure_memory import FailureMemory
from langchain_judges.methods.allure.audit import create_allure_audit
from langchain_judges.methods.allure.checks import annotated
from langchain_judges.methods.allure.judge import create_allure_judge
from langchain_judges.methods.allure.options import ALLURE
from langchain_judges.methods.allure.review import AuditProposal
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.rows import judged_row

__all__ = ["Plan", "SweepFailed", "SweepStopped", "plan_sweep", "run_sweep"]

OWN = {"allow_leak", "instruct", "labels", "memory", "recall"}
"""Options of the judge that the sweep sets itself."""
_SPENT = "The budget is spent at the run `{}`; the same sweep resumes where it stopped."


class SweepStopped(JudgeError):
    """The budget of calls is spent; the same sweep resumes where it stopped."""


class SweepFailed(JudgeError):
    """A run of a sweep judged nothing at all; the message says why."""


def run_sweep(  # noqa: PLR0913 - one keyword for each limit
    plan: Plan,
    model: str | BaseChatModel,
    out: str | os.PathLike[str],
    *,
    embeddings: Embeddings | None = None,
    options: Mapping[str, Any] | None = None,
    max_concurrency: int = 16,
    max_calls: int | None = None,
    keep_failed: bool = False,
    progress: bool = True,
    tell: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """Run a sweep and return its figures; the same call resumes where it stopped.

    `out` gets the results of each run (`runs/*.jsonl`), the examples (`memory.jsonl`, which
    `FailureMemory.import_` reads), the split (`split.json`) and the figures
    (`results.json`). `page.write_report` makes plots and a page of them.

    Args:
        plan: From `plan_sweep`.
        model: Chat model that judges, or a name as `resolve_model` takes it.
        out: A folder.
        embeddings: Embeds examples, for the map of them and for nearest ones; default
            all-MiniLM-L6-v2.
        options: More options of `create_allure_judge`, such as `explain`.
        max_concurrency: Most calls in flight.
        max_calls: Most replies before `SweepStopped` is raised.
        keep_failed: Do not try again what an earlier call could not have judged.
        progress: Show the progress of each run.
        tell: Is called with a sentence about what happens next.

    Raises:
        OptionError: An option is not allowed.
        SweepStopped: `max_calls` are spent.
        SweepFailed: A run judged nothing.
        JudgeError: A judge was shown an example of the item's own group; or as `judge_many`.
    """
    settings = dict(options or {})
    if conflicts := OWN & set(settings):
        raise OptionError(f"a sweep sets {sorted(conflicts)!r} itself")
    folder = Path(out)
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    runner = _Runner(
        plan=plan,
        model=model,
        folder=folder,
        options={**shown_as_in_the_paper(plan.preset), **settings},
        embeddings=_Once(embeddings or default_embeddings()),
        max_concurrency=max_concurrency,
        calls_left=max_calls,
        keep_failed=keep_failed,
        progress=progress,
        tell=tell or (lambda _: None),
    )
    return runner.run()


def shown_as_in_the_paper(preset: str) -> dict[str, Any]:
    """Return the options of a preset but the choice of examples, which the sweep varies."""
    options = ALLURE.presets[preset]
    return {name: value for name, value in options.items() if name != "recall"}


@dataclass
class _Runner:
    plan: Plan
    model: str | BaseChatModel
    folder: Path
    options: dict[str, Any]
    embeddings: Embeddings
    max_concurrency: int
    calls_left: int | None
    keep_failed: bool
    progress: bool
    tell: Callable[[str], object]
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def run(self) -> dict[str, Any]:
        plan = self.plan
        ids = {
            "train": [item["id"] for item in plan.train],
            "held_out": [item["id"] for item in plan.held_out],
        }
        write_json(self.folder / "split.json", ids)
        base_rows = self._judge(Arm("none", "none", size=0), None, plan.items)
        by_id = {row["id"]: row for row in base_rows}
        memory = self._audited(by_id)
        memory.export(self.folder / "memory.jsonl")
        examples = memory.examples()
        modes = list(dict.fromkeys(str(e["mode"]) for e in examples))
        arms = plan.arms(self._pool(memory), modes)
        self.tell(
            f"{len(examples)} mistakes on {len(plan.train)} training items are remembered; "
            f"{len(arms) - 1} runs over {len(plan.held_out)} items follow."
        )
        self.rows["none"] = [by_id[item["id"]] for item in plan.held_out]
        for number, arm in enumerate(arms[1:], 1):
            self.tell(f"run {number} of {len(arms) - 1}: {arm.name}")
            memory_of_arm = self._partly(memory, arm) if arm.kind == "curve" else memory
            self.rows[arm.name] = self._judge(arm, memory_of_arm, plan.held_out)
        identity = ModelAdapter(self.model).identity
        runs = Runs(plan, arms, self.rows, memory)
        results = {"model": str(identity["name"]), "options": self.options, **figures(runs)}
        write_json(self.folder / "results.json", results)
        return results

    def _judge(
        self, arm: Arm, memory: FailureMemory | None, items: Iterable[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Judge the items as one run asks for; results of an earlier sweep are kept."""
        item_list = list(items)
        if self.calls_left is not None and self.calls_left < 1:
            raise SweepStopped(_SPENT.format(arm.name))
        judge = create_allure_judge(
            self.model,
            memory=None if arm.recall is None else memory,
            recall=arm.recall,
            instruct=arm.instruct,
            allow_leak=self.plan.allow_leak,
            **self.options,
        )
        run = judge_many(
            judge,
            _Sized(item_list),
            out=self.folder / "runs" / f"{arm.name}.jsonl",
            max_concurrency=self.max_concurrency,
            progress=self.progress,
            max_calls=self.calls_left,
            keep_failed=self.keep_failed,
        )
        rows = list(run)
        if self.calls_left is not None:
            self.calls_left -= run.summary.calls
        if run.summary.not_judged["over_budget"]:
            raise SweepStopped(_SPENT.format(arm.name))
        if rows and not any(judged_row(row) for row in rows):
            ((cause, times),) = run.summary.causes.most_common(1)
            raise SweepFailed(
                f"The run {arm.name} judged none of its {len(rows):,} items; "
                f"{times:,} by {cause}"
            )
        if memory is not None and not self.plan.allow_leak:
            _refuse_leaks(rows, item_list, memory)
        return rows

    def _audited(self, rows: Mapping[str, Mapping[str, Any]]) -> FailureMemory:
        """Return a memory of the mistakes on the training items, audited by known labels."""
        memory = FailureMemory(embeddings=self.embeddings)
        recorded: Runnable[Any, Any] = RunnableLambda(
            lambda item: {"verdict": rows[item["id"]]["verdict"]}
        )
        audit = create_allure_audit(
            recorded,
            memory,
            check=annotated("label"),
            auditor=known_label,
            max_rounds=1,
            right_share=0,
        )
        audit.invoke({"items": list(self.plan.train)})
        return memory

    def _pool(self, memory: FailureMemory) -> int:
        examples = memory.examples()
        if not self.plan.by_family:
            return len(examples)
        families = [example["family"] for example in examples]
        return max((families.count(each) for each in set(families)), default=0)

    def _partly(self, memory: FailureMemory, arm: Arm) -> FailureMemory:
        """Return what the memory held when the first portions had been audited."""
        audited = self.plan.first(arm.portion or 0)
        part = FailureMemory(embeddings=self.embeddings)
        part.remember([e for e in memory.examples() if e["source"] in audited])
        return part


class _Sized(list[Any]):
    """Rows whose number is known, for the progress."""

    def __length_hint__(self) -> int:
        return len(self)


class _Once(Embeddings):
    """Embeds each text once, for several memories hold the same examples."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._vectors: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            vectors = self._embeddings.embed_documents(new)
            self._vectors.update(zip(new, vectors, strict=True))
        return [self._vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def known_label(proposal: AuditProposal) -> str:
    """Audit by the known label: what the check proposes is that label, so accept it."""
    del proposal
    return "accept"


def _refuse_leaks(
    rows: Sequence[Mapping[str, Any]],
    items: Sequence[Mapping[str, Any]],
    memory: FailureMemory,
) -> None:
    groups = {example["id"]: example["group"] for example in memory.examples()}
    own = {item["id"]: item.get("group") for item in items}
    for row in rows:
        example_groups = {groups.get(each) for each in row["verdict"].get("recalled", [])} - {
            None
        }
        if own[row["id"]] in example_groups:
            raise JudgeError(f"{row['id']} was judged with an example of its own group")


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file in one step."""
    copy = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    text = json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False)
    copy.write_text(text + "\n", "utf-8", "surrogatepass")
    os.replace(copy, path)
