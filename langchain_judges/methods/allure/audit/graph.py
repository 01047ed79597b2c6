"""The loop: evaluate → check → propose → audit → try → admit → measure, again or stop.

Hasanbeig et al. 2023, figure 1. The judge labels, a check finds likely mistakes, an auditor
decides, and what was accepted is shown to the judge in the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, Lt
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import AfterValidator, InstanceOf

from langchain_judges.asking.journal import ThreadJournal
from langchain_judges.asking.nodes import Route
from langchain_judges.asking.steps import Node, Steps, Update
from langchain_judges.memory.protocol import Memory
from langchain_judges.methods.allure import prompts as texts
from langchain_judges.methods.allure.audit.admission import Admission, Reach, Unmeasured
from langchain_judges.methods.allure.audit.auditors import Auditor, resolve_auditor, standard_of
from langchain_judges.methods.allure.audit.checks import CHECKS, Check, resolve_check
from langchain_judges.methods.allure.audit.modes import Mode, read_modes
from langchain_judges.methods.allure.audit.nodes import Loop
from langchain_judges.methods.allure.audit.state import AuditInput, AuditResult, AuditState
from langchain_judges.methods.allure.judge import judge_to_audit
from langchain_judges.methods.allure.options import Again
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.methods.options import GraphOptions, Seed, Written
from langchain_judges.methods.rubric.criteria import read_labels
from langchain_judges.options import ClientMost, Here, Owner, Rule, with_options
from langchain_judges.verdict import Label


def _labels(labels: Sequence[Label] | None) -> tuple[Label, ...] | None:
    return None if labels is None else tuple(read_labels(labels))


def _share(dev: float | Sequence[Mapping[str, Any]] | None) -> Any:
    if isinstance(dev, int | float) and not 0 < dev < 1:
        raise ValueError("no share")
    return dev


class AuditOptions(GraphOptions):
    """The options of an audit."""

    method = "allure_audit"
    summary = "ALLURE's audit: find a judge's mistakes, have them audited, remember them."
    events = {"proposals": "proposal"}
    templates = {"audit": texts.AUDIT}

    check: Annotated[
        InstanceOf[Check] | Callable[..., Any] | str | None,
        Owner(),
        Rule(f"one of {sorted(CHECKS)} or a function"),
    ] = None
    """Finds likely mistakes: a name (default `"normalised_sequence"`), a `Check`, or a function
    from item and label; see `checks.py`."""
    auditor: Annotated[Auditor, Owner(), Rule("'human', a model or a function")] = "human"
    """`"human"`: the graph is interrupted with all proposals of a round, and resumes with
    `Command(resume=answers)`; see `review.py` for answers. Or a function from one proposal to
    an answer, or a model."""
    modes: Annotated[
        Sequence[Mode | str | Mapping[str, str]] | None, Here(), Rule("a list of failure modes")
    ] = None
    """Your own failure modes, in addition to the paper's five."""
    right_share: Annotated[float, Ge(0), Lt(1)] = 0.25
    """The largest share of cases that the judge got right among the examples of a round: labels
    that the auditor upholds against the check, which need no extra decision. A memory of only
    mistakes teaches a judge to invert its labels; one right case for three mistakes prevents
    that, and leaves most of the room to mistakes. 0 is the paper's memory."""
    draw_right: bool = False
    """Also ask the auditor about labels that no rule doubts, one for each three doubted ones
    with the default share: an exact check leaves no upheld labels. They are drawn at random,
    first from doubted families and labels; a wrong one among them is a mistake that the check
    missed."""
    max_rounds: Annotated[int, Ge(1), ClientMost(20)] = 5
    """Most rounds."""
    patience: Annotated[int, Ge(1), ClientMost(20)] = 2
    """Rounds without a gain in balanced accuracy on dev that end the loop; the paper saw a fall
    before a gain, so it should be two at least."""
    dev: Annotated[
        float | Sequence[Mapping[str, Any]] | None,
        AfterValidator(_share),
        Rule("a list of items or a share above 0 and below 1"),
    ] = None
    """Items that are judged and never audited, each with its true label: a list, or the share
    of the items to hold out, by group. With it, examples enter the memory only if balanced
    accuracy does not fall on the items of dev for which the judge may show them; the others
    wait. They are tried on an overlay of the memory that only this judge sees, in this
    process."""
    admit: Literal["round", "example"] = "round"
    """Whether the examples of a round are tried together or one by one. A rejected batch is
    halved until the harmful examples are isolated; waiting examples are retried when the memory
    has changed."""
    unmeasured: Unmeasured = "wait"
    """Whether examples of a family without items in dev wait, or are admitted and marked; the
    result names the families."""
    risk: Annotated[float, Ge(0), Le(1)] = 0.5
    """Largest share of bootstrap resamples in which dev may have fallen."""
    truth: Written = "label"
    """The field in which items carry their true label."""
    labels: Annotated[
        Sequence[Label] | None,
        AfterValidator(_labels),
        Rule("two or more distinct numbers or texts, from worst to best"),
    ] = None
    """The judge's labels, worst first; default those of the judge, else 0 and 1."""
    again: Again = "families"
    """`"families"` judges items again only if their family got new examples."""
    allow_leak: bool = False
    """Let dev share groups with the items; every result says so."""
    seed: Seed = 0
    """Seed of the split and the bootstrap."""
    max_concurrency: Annotated[int, Ge(1), Owner()] = 16
    """Items judged at the same time."""

    def calls(self) -> int:
        """Return 0: how much an audit asks depends on what it finds."""
        return 0

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return self.max_concurrency


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
    teaches, metadata = judge_to_audit(
        judge,
        memory,
        options.labels,
        instructions=options.instructions,
        temperature=options.temperature,
        cache=options.cache,
        # A judge that is given has its own.
        repairs=options.repairs if isinstance(judge, str | BaseChatModel) else None,
    )
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
    own = metadata.get("options") or {}
    modes = read_modes(options.modes)
    labels = tuple(own.get("labels") or (0, 1)) if options.labels is None else None
    label_names = labels or tuple(options.labels or ())
    # What a judge that is not ours may be shown, nobody knows.
    everywhere = options.again == "all" or _across((own.get("memory") or {}).get("recall"))
    judge_reach = Reach(everywhere or metadata.get("method") != "allure")
    return Loop(
        judge=_alone(judge),
        mark={
            key: metadata.get(key) for key in ("method", "options", "model", "prompt_version")
        },
        memory=memory,
        journal=ThreadJournal.of(options.checkpointer),
        admission=_admission(memory, judge_reach, label_names, options),
        reach=Reach(everywhere),
        check=resolve_check(options.check or "normalised_sequence"),
        audit_by=resolve_auditor(options.auditor, modes, options, standard_of(judge)),
        modes=modes,
        right_share=options.right_share,
        draw_right=options.draw_right,
        max_rounds=options.max_rounds,
        patience=options.patience,
        dev=options.dev,
        truth=options.truth,
        labels=label_names,
        allow_leak=options.allow_leak,
        leaky=options.allow_leak or bool(own.get("allow_leak")),
        seed=options.seed,
    )


def _admission(
    memory: Memory, reach: Reach, labels: Sequence[Label], options: AuditOptions
) -> Admission:
    return Admission(
        memory=memory,
        reach=reach,
        labels=tuple(labels),
        truth=options.truth,
        admit=options.admit,
        unmeasured=options.unmeasured,
        risk=options.risk,
        seed=options.seed,
        lanes=options.max_concurrency,
    )


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
        graph.add_node(name, Node(step, AuditOptions.events))
    graph.add_edge(START, "prepare")
    graph.add_conditional_edges("prepare", Route(loop.stale_items), ["evaluate", "check"])
    graph.add_edge("evaluate", "check")
    graph.add_edge("check", "propose")
    graph.add_edge("propose", "audit")
    admission = loop.admission
    graph.add_conditional_edges("audit", Route(admission.next_batch), ["stage", "measure"])
    graph.add_conditional_edges("stage", Route(admission.on_trial), ["try", "admit"])
    graph.add_edge("try", "admit")
    graph.add_conditional_edges("admit", Route(admission.next_batch), ["stage", "measure"])
    graph.add_conditional_edges(
        "measure", Route(loop.again_or_stop), ["evaluate", "check", END]
    )
    return graph


def _across(recall: Any) -> bool:
    """Say whether a judge's choice of examples, as its options tell it, crosses families."""
    return isinstance(recall, Mapping) and bool(recall.get("any_family"))


def _alone(judge: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a judge that does not write checkpoints of its own into those of the loop."""
    if isinstance(judge, CompiledStateGraph) and judge.checkpointer is None:
        return judge.copy(update={"checkpointer": False})
    return judge
