"""The loop: evaluate → check → propose → audit → try → admit → measure, again or stop.

Hasanbeig et al. 2023, figure 1. The judge labels, a check finds likely mistakes, an auditor
decides, and what was accepted is shown to the judge in the next round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph

from langchain_judges.asking.nodes import Node, Route, plain
from langchain_judges.asking.store import ThreadJournal
from langchain_judges.memory.recall import Memory
from langchain_judges.methods.allure.audit.admission import Admission, Reach
from langchain_judges.methods.allure.audit.auditors import resolve_auditor, standard_of
from langchain_judges.methods.allure.audit.checks import resolve_check
from langchain_judges.methods.allure.audit.modes import read_modes
from langchain_judges.methods.allure.audit.nodes import Loop
from langchain_judges.methods.allure.audit.options import AuditOptions
from langchain_judges.methods.allure.audit.state import AuditInput, AuditResult, AuditState
from langchain_judges.methods.allure.audit.teaching import alone, judge_to_audit
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.options import with_options


@with_options(AuditOptions)
def create_allure_audit(
    judge: Runnable[Any, Any] | str, memory: Memory, options: AuditOptions
) -> JudgeGraph:
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
            made (with `instructions`, `temperature`, `cache` and `repairs` of the audit); or
            any runnable from `Item` to `{"verdict": LabelVerdict}`, such as recorded verdicts.
        memory: Where accepted examples go, such as a `FailureMemory`.
        options: The options.

    Returns:
        A compiled graph from `{"items": […]}` to `AuditResult`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.
    """
    teaches, metadata = judge_to_audit(judge, memory, options)
    loop = _loop(teaches, memory, metadata, options)
    compiled = _graph(loop).compile(
        checkpointer=options.checkpointer,
        store=options.store,
        name=options.name or "audit",
    )
    marks = {
        "method": options.method,
        "options": {
            **options.as_json(),
            "check": loop.check.name,
            "modes": [mode.name for mode in loop.modes],
            "labels": list(loop.labels),
            "allow_leak": loop.leaky,
        },
        "model": metadata.get("model") or {},
        "prompt_version": str(metadata.get("prompt_version", "")),
        "calls": 0,
    }
    graph = JudgeGraph(**vars(compiled), options=options, model=teaches.get_name())
    return graph.with_config(metadata=marks, max_concurrency=options.max_concurrency)


def _loop(
    judge: Runnable[Any, Any],
    memory: Memory,
    metadata: Mapping[str, Any],
    options: AuditOptions,
) -> Loop:
    judge_options = metadata.get("options") or {}
    modes = read_modes(options.modes)
    labels = tuple(options.labels or judge_options.get("labels") or (0, 1))
    # What a judge that is not ours may be shown, nobody knows.
    everywhere = options.again == "all" or _across(
        (judge_options.get("memory") or {}).get("recall")
    )
    judge_reach = Reach(everywhere or metadata.get("method") != "allure")
    journal = ThreadJournal.of(options.checkpointer)
    return Loop(
        judge=alone(judge),
        mark={
            key: metadata.get(key) for key in ("method", "options", "model", "prompt_version")
        },
        memory=memory,
        journal=journal,
        admission=Admission(memory, judge_reach, labels, options),
        reach=Reach(everywhere),
        check=resolve_check(options.check or "normalised_sequence"),
        audit_by=resolve_auditor(
            options.auditor,
            options,
            labels=labels,
            modes=modes,
            journal=journal,
            standard=standard_of(judge),
        ),
        modes=modes,
        labels=labels,
        leaky=options.allow_leak or bool(judge_options.get("allow_leak")),
        options=options,
    )


def _graph(loop: Loop) -> StateGraph[AuditState, None, AuditInput, AuditResult]:
    graph = StateGraph(AuditState, input_schema=AuditInput, output_schema=AuditResult)
    admission, events = loop.admission, AuditOptions.events
    nodes = {
        "prepare": plain(loop.prepare, events),
        "evaluate": Node(loop.evaluate, events),
        "check": plain(loop.check_labels, events),
        "propose": plain(loop.propose, events),
        "audit": Node(loop.audit, events),
        "stage": plain(admission.stage, events),
        "try": Node(loop.try_out, events),
        "admit": Node(admission.decide, events),
        "measure": Node(loop.measure_round, events),
    }
    for name, node in nodes.items():
        graph.add_node(name, node)
    graph.add_edge(START, "prepare")
    graph.add_conditional_edges("prepare", Route(loop.stale_items), ["evaluate", "check"])
    graph.add_edge("evaluate", "check")
    graph.add_edge("check", "propose")
    graph.add_edge("propose", "audit")
    graph.add_conditional_edges("audit", Route(admission.next_batch), ["stage", "measure"])
    graph.add_conditional_edges("stage", Route(admission.on_trial), ["try", "admit"])
    graph.add_edge("try", "admit")
    graph.add_conditional_edges("admit", Route(admission.next_batch), ["stage", "measure"])
    graph.add_conditional_edges(
        "measure", Route(loop.again_or_stop), ["evaluate", "check", END]
    )
    return graph


def _across(recall: object) -> bool:
    """Say whether a judge's choice of examples, as its options tell it, crosses families."""
    return isinstance(recall, Mapping) and bool(recall.get("any_family"))
