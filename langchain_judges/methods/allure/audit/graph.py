"""The loop: evaluate → check → propose → audit → try → admit → measure, again or stop.

Hasanbeig et al. 2023, figure 1. The judge labels, a check finds likely mistakes, an auditor
decides, and what was accepted is shown to the judge in the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from langchain_core.caches import BaseCache
from langchain_core.runnables import Runnable
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from langchain_judges.asking.steps import Node, Steps, Update
from langchain_judges.errors import OptionError
from langchain_judges.memory.protocol import Memory
from langchain_judges.methods.allure.audit.admission import Admission, Reach, Unmeasured
from langchain_judges.methods.allure.audit.auditors import Auditor, resolve_auditor
from langchain_judges.methods.allure.audit.checks import CheckLike, Label, resolve_check
from langchain_judges.methods.allure.audit.journal import Journal
from langchain_judges.methods.allure.audit.modes import Mode, read_modes
from langchain_judges.methods.allure.audit.nodes import Loop
from langchain_judges.methods.allure.audit.state import AuditInput, AuditResult, AuditState
from langchain_judges.methods.allure.judge import judge_to_audit
from langchain_judges.methods.allure.options import Again, check_audit, read_labels
from langchain_judges.methods.old_base import check_common, finish


def create_allure_audit(  # noqa: PLR0913 - the settings of the loop
    judge: Runnable[Any, Any] | str,
    memory: Memory,
    *,
    check: CheckLike | None = None,
    auditor: Auditor = "human",
    modes: Sequence[Mode | str | Mapping[str, str]] | None = None,
    max_rounds: int = 5,
    patience: int = 2,
    dev: float | Sequence[Mapping[str, Any]] | None = None,
    admit: Literal["round", "example"] = "round",
    unmeasured: Unmeasured = "wait",
    risk: float = 0.5,
    truth: str = "label",
    labels: Sequence[Label] | None = None,
    again: Again = "families",
    allow_leak: bool = False,
    seed: int = 0,
    max_concurrency: int = 16,
    instructions: str | None = None,
    temperature: float | None = None,
    name: str = "audit",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[AuditState, None, AuditInput, AuditResult]:
    """Create the loop that audits a judge and teaches it its audited mistakes.

    Each round judges the items, lets the check doubt labels, has the doubted ones audited,
    remembers what was accepted and measures the judge on dev. It ends after `max_rounds`, a
    round in which nothing was learnt, or `patience` rounds without a gain on dev. With a
    checkpointer it resumes after a kill or a wait of days: each verdict, and each audit by a
    model, is written to it before the next step, and none is paid twice.

    Where the paper is silent or we differ: nothing enters the memory unaudited; the label
    proposed may be edited; an item is proposed once for each label it got; only families
    that learnt something are judged again; an auditor who says that the judge was right
    marks the check and not the judge (`decisions` with `check_wrong`).

    Args:
        judge: An ALLURE judge with this memory; a chat model or its name, of which one is
            made; or any runnable from `Item` to `{"verdict": LabelVerdict}`, such as
            recorded verdicts.
        memory: Where accepted examples go, such as a `FailureMemory`.
        check: Finds likely mistakes: a name (`"normalised_sequence"`, the default, …), a
            `Check`, or a function from item and label; see `checks.py`.
        auditor: `"human"`: the graph is interrupted with all proposals of a round, and goes
            on with `Command(resume=answers)`; see `review.py` for answers. Or a function
            from one proposal to an answer, or a model.
        modes: Failure modes of your own, beside the paper's five.
        max_rounds: Most rounds.
        patience: Rounds without a gain in balanced accuracy on dev that end the loop; the
            paper saw a fall before a gain, so it should be two at least.
        dev: Items that are judged and never audited, each with its true label: a list, or
            the share of the items to hold out, by group. With it, examples enter the memory
            only if balanced accuracy on dev does not fall, on every item of dev that the judge
            may show them for; the others wait. They are tried on an overlay of the memory that
            only this judge sees, in this process; a judge elsewhere is not shown them.
        admit: Whether the examples of a round are tried together or one by one. What is
            refused together is halved until those that harm stand alone; what waits is tried
            again when the memory has changed.
        unmeasured: Whether examples of a family that no item of dev can be shown wait, or are
            admitted and marked; the result names the families.
        risk: Largest share of bootstrap resamples in which dev may have fallen.
        truth: The field in which items carry their true label.
        labels: The judge's labels, worst first; default those of the judge, else 0 and 1.
        again: `"families"` judges items again only if their family learnt something.
        allow_leak: Let dev share groups with the items; every result says so.
        seed: Of the split and the bootstrap.
        max_concurrency: Items judged at the same time.
        instructions: Your words to the judge, where a model is given.
        temperature: Overrides the model's own, where a model is given.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer; an audit by people needs one.
        cache: LangChain cache for checked replies, where a model is given.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `{"items": […]}` to `AuditResult`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    check_common(seed=seed, name=name, checkpointer=checkpointer, store=store)
    judge, metadata = judge_to_audit(
        judge, memory, labels, instructions=instructions, temperature=temperature, cache=cache
    )
    if unmeasured not in get_args(Unmeasured):
        raise OptionError(
            f"`unmeasured` must be one of {get_args(Unmeasured)!r}, got {unmeasured!r}"
        )
    check_audit(
        max_rounds=max_rounds,
        patience=patience,
        max_concurrency=max_concurrency,
        dev=dev,
        admit=admit,
        risk=risk,
        truth=truth,
        again=again,
        allow_leak=allow_leak,
    )
    own = metadata.get("options") or {}
    known = read_modes(modes)
    named = read_labels(own.get("labels") or (0, 1) if labels is None else labels)
    # What a judge that is not ours may be shown, nobody knows.
    everywhere = again == "all" or _across((own.get("memory") or {}).get("recall"))
    admission = Admission(
        memory=memory,
        reach=Reach(everywhere or metadata.get("method") != "allure"),
        labels=named,
        truth=truth,
        admit=admit,
        unmeasured=unmeasured,
        risk=risk,
        seed=seed,
        lanes=max_concurrency,
    )
    loop = Loop(
        judge=_alone(judge),
        mark={
            key: metadata.get(key) for key in ("method", "options", "model", "prompt_version")
        },
        memory=memory,
        journal=Journal(
            checkpointer if isinstance(checkpointer, BaseCheckpointSaver) else None
        ),
        admission=admission,
        reach=Reach(everywhere),
        check=resolve_check("normalised_sequence" if check is None else check),
        audit_by=resolve_auditor(auditor, known),
        modes=known,
        max_rounds=max_rounds,
        patience=patience,
        dev=dev,
        truth=truth,
        labels=named,
        allow_leak=allow_leak,
        leaky=allow_leak or bool(own.get("allow_leak")),
        seed=seed,
    )
    compiled = _graph(loop).compile(checkpointer=checkpointer, store=store, name=name)
    graph = finish(
        compiled,
        method="allure_audit",
        options={
            "check": loop.check.name,
            "auditor": auditor if isinstance(auditor, str) else type(auditor).__name__,
            "modes": [mode.name for mode in known],
            "labels": list(loop.labels),
            **{"max_rounds": max_rounds, "patience": patience, "admit": admit, "risk": risk},
            **{
                "unmeasured": unmeasured,
                "truth": truth,
                "again": again,
                "allow_leak": loop.leaky,
                "seed": seed,
            },
        },
        models=metadata.get("model") or {},
        prompt_version=str(metadata.get("prompt_version", "")),
        calls=0,
        branches=max_concurrency,
    )
    # No threads to spare for checkpoints, as elsewhere: the journal is written first.
    return graph.with_config(max_concurrency=max_concurrency)


def _graph(loop: Loop) -> StateGraph[AuditState, None, AuditInput, AuditResult]:
    graph = StateGraph(AuditState, input_schema=AuditInput, output_schema=AuditResult)
    steps: dict[str, Callable[[Any], Steps[Update]]] = {
        "prepare": loop.prepare,
        "evaluate": loop.evaluate,
        "check": loop.check_labels,
        "propose": loop.propose,
        "audit": loop.audit,
        "stage": loop.admission.stage,
        "try": loop.try_out,
        "admit": loop.admission.decide,
        "measure": loop.measure_round,
    }
    for name, step in steps.items():
        graph.add_node(name, Node(step))
    graph.add_edge(START, "prepare")
    graph.add_conditional_edges("prepare", loop.stale_items, ["evaluate", "check"])
    graph.add_edge("evaluate", "check")
    graph.add_edge("check", "propose")
    graph.add_edge("propose", "audit")
    admission = loop.admission
    graph.add_conditional_edges("audit", admission.next_batch, ["stage", "measure"])
    graph.add_conditional_edges("stage", admission.on_trial, ["try", "admit"])
    graph.add_edge("try", "admit")
    graph.add_conditional_edges("admit", admission.next_batch, ["stage", "measure"])
    graph.add_conditional_edges("measure", loop.again_or_stop, ["evaluate", "check", END])
    return graph


def _across(recall: Any) -> bool:
    """Say whether a judge's choice of examples, as its options tell it, crosses families."""
    return isinstance(recall, Mapping) and bool(recall.get("any_family"))


def _alone(judge: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a judge that does not write checkpoints of its own into those of the loop."""
    if isinstance(judge, CompiledStateGraph) and judge.checkpointer is None:
        return judge.copy(update={"checkpointer": False})
    return judge
