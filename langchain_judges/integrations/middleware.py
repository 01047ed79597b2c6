"""A judge inside an agent: middleware that requests better answers."""

from __future__ import annotations

import logging
import threading
import uuid
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NotRequired, get_args

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    TracePolicy,
    hook_config,
    omit_payload,
)
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
)
from langgraph.runtime import Runtime
from langsmith import Client
from langsmith.run_helpers import get_current_run_tree
from langsmith.run_trees import get_cached_client
from langsmith.utils import LangSmithError
from typing_extensions import TypedDict

from langchain_judges.asking.steps import Steps, Update, arun, run
from langchain_judges.errors import InputError, JudgeError, OptionError
from langchain_judges.integrations.cases import (
    CaseVerdict,
    JudgmentResult,
    config_for,
    criteria_of,
    error_verdict,
    feedback_key,
    item_for,
    outcome_of,
    pair_for,
    reason_for,
)
from langchain_judges.methods.describe import kind_of, marks_of
from langchain_judges.methods.rubric.replies import CriterionScore
from langchain_judges.rows.fields import check_words, task_in, work_in
from langchain_judges.rows.messages import as_json
from langchain_judges.rows.texts import PlainText, plain
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import comment_of, score_of

_LOGGER = logging.getLogger(__name__)
REVISER = "judge"
"""Name of the messages that request a revision of the agent's model."""


def task_of(messages: Sequence[AnyMessage]) -> PlainText:
    """Return the agent's task, without its drafts and the judge's reasons."""
    places = [i for i, m in enumerate(messages) if m.type == "human" and m.name != REVISER]
    until = messages[: places[-1] + 1] if places else messages[:-1]
    rejected = {removed.id for removed in drafts_in(until)}
    request = [m for m in until if m.type != "system" and str(m.id) not in rejected]
    try:
        task = task_in(request)
    except InputError:
        return "(no task)"
    if len(task) == 1 and not isinstance(task, str) and isinstance(task[0]["content"], str):
        return task[0]["content"]
    return task


def work_of(messages: Sequence[AnyMessage]) -> PlainText:
    """Return an agent's work since the user's last message, without rejected drafts."""
    rejected = {removed.id for removed in drafts_in(messages)}
    places = [i for i, m in enumerate(messages) if m.type == "human" and m.name != REVISER]
    since = messages[places[-1] + 1 :] if places else messages
    return work_in([message for message in since if str(message.id) not in rejected])


def drafts_in(messages: Sequence[AnyMessage]) -> list[RemoveMessage]:
    """Return the removals of each request to revise and of the draft before it."""
    removed: list[AnyMessage] = []
    for place, message in enumerate(messages):
        if message.type == "human" and message.name == REVISER:
            removed += [*answer_at_end(messages[:place]), message]
    return [RemoveMessage(id=str(message.id)) for message in removed]


def answer_at_end(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the messages of the last answer: one, or a call with the results after it.

    A structured response that a tool's call gives ends in that tool's result.
    """
    start = len(messages) - 1
    while start > 0 and messages[start].type == "tool":
        start -= 1
    return messages[start:] if start >= 0 and messages[start].type == "ai" else []


def answered(state: JudgedState) -> list[AnyMessage]:
    """Return the messages with a structured response as the last, in place of its call."""
    messages, structured = state["messages"], state.get("structured_response")
    end = answer_at_end(messages)
    if structured is None or len(end) < 2:
        return messages
    # The results of other tools, called at the same time, are still to be seen.
    before = messages[: -len(end)] if len(end) == 2 else messages
    return [*before, AIMessage(as_json(structured))]


class Judged(TypedDict):
    """An answer of the agent, and the judge's verdict on it."""

    answer: PlainText
    """A message if it contains images."""
    work: NotRequired[PlainText]
    """The trajectory that was judged; only with `trajectory`."""
    score: float | int | None
    verdict: CaseVerdict | None
    """None if there was nothing to compare with yet."""
    criteria: NotRequired[list[CriterionScore]]
    """The sub-scores of a judge with several criteria."""
    structured_response: NotRequired[Any]
    """The answer as the agent's `response_format`, if it has one."""


def send_feedback(
    key: str, current: Judged, marks: dict[str, object], judge_run: uuid.UUID, revisions: int
) -> None:
    """Add the score to the agent's trace, if there is one, without waiting for LangSmith."""
    tree = get_current_run_tree()
    if tree is None:
        return
    client = tree.ls_client if isinstance(tree.ls_client, Client) else get_cached_client()
    verdict = current["verdict"]
    shared: dict[str, Any] = {
        "run_id": tree.trace_id,
        "trace_id": tree.trace_id,
        "source_info": marks,
        "feedback_source_type": "model",
        "source_run_id": judge_run,
    }
    failures = (verdict and verdict.get("failures")) or []
    total: dict[str, Any] = {
        "key": key,
        "score": current["score"],
        "comment": comment_of(verdict or {}),
        "extra": {"revisions": revisions, "failures": failures},
    }
    parts: list[dict[str, Any]] = [
        {"key": part["criterion"], "score": part["score"], "comment": reason_for(part)}
        for part in current.get("criteria") or ()
    ]

    def send() -> None:
        try:
            with warnings.catch_warnings():
                # A trace that is still being written has no session id yet.
                warnings.filterwarnings("ignore", "Creating feedback for a run without")
                for each in (total, *parts):
                    client.create_feedback(**shared, **each)
        except (LangSmithError, OSError, ValueError) as exc:
            _LOGGER.warning("The score was not sent to LangSmith: %s", exc)

    threading.Thread(target=send, name="judge-feedback", daemon=True).start()


Reference = str | Callable[[Any], str | None] | None
"""A text, or a function of the agent's state."""
OnError = Literal["pass", "raise"]
"""What to do if the judge raises an error."""
_Basis = tuple[PlainText, str | None]
"""The task and the source."""


class JudgedState(AgentState[Any]):
    """The agent's state with its judged answers."""

    judged: NotRequired[list[Judged]]
    """Every answer of this run of the agent, in order."""


class JudgeMiddleware(AgentMiddleware[Any, Any, Any]):
    """Judges an agent's answer, and requests a revision if the score is too low.

    A judge of pairs takes the answer as A and the reference as B; without a reference B is
    the best draft so far, so the first answer is always revised once. A judge of one text
    takes the answer alone, with the reference as the expected answer, the context as its
    source and the rubric as its criteria.
    Below `threshold` the reasons go back to the model for one more turn. The agent ends with
    the best answer, even if it is an earlier one. The scores are in the state under `judged`,
    and in LangSmith as feedback on the agent's trace. An answer that could not be judged is
    returned unchanged, and the feedback says why.

    Args:
        judge: A judge of this package, or a runnable that declares what it takes.
        threshold: The lowest score that is good enough, from 0 to 1.
        max_revisions: The most revisions in one run of the agent.
        reference: A reference answer: a text, or a function of the agent's state.
        rubric: For a judge of one text: its criteria, in place of those it was created
            with. A judge of pairs gets its rubric when it is created (`instructions=`).
        context: The source that the answer is checked against: a text, or a function of the
            agent's state. A judge of pairs reads it after the task.
        request: The request for a better answer, in your own words; `{reasons}` in it is
            replaced by the judge's reasons. Default: two sentences around the reasons.
        trajectory: Judge everything that the agent did since the user's last message: its
            tool calls, their results and the final answer, without rejected drafts. False:
            only the final answer.
        keep_drafts: Whether rejected drafts and the requests to revise them stay in the
            agent's messages at the end. The state's `judged` has the drafts in any case.
        on_error: What to do if the judge raises an error, such as a rejected key: `"pass"`
            returns the answer as not judged, `"raise"` ends the agent's run.
        key: Name of the feedback; default as in `as_evaluator`.

    Raises:
        OptionError: An option is not allowed, or the judge takes neither pair nor item.
    """

    state_schema = JudgedState
    # The messages stand in the runs of the agent already.
    trace_policy = TracePolicy(process_inputs=omit_payload)

    def __init__(  # noqa: PLR0913 - the options
        self,
        judge: Judge,
        *,
        threshold: float = 0.5,
        max_revisions: int = 1,
        reference: Reference = None,
        rubric: str | None = None,
        context: Reference = None,
        request: str | None = None,
        trajectory: bool = True,
        keep_drafts: bool = True,
        on_error: OnError = "pass",
        key: str | None = None,
    ) -> None:
        """Check the options, without a call to a model."""
        super().__init__()
        self.judge = judge
        self.kind = kind_of(judge)
        _check_threshold(threshold)
        check_words(rubric=rubric, request=request, key=key)
        _check_choices(trajectory=trajectory, keep_drafts=keep_drafts, on_error=on_error)
        _check_sources(reference=reference, context=context)
        _check_revisions(max_revisions)
        if rubric and self.kind == "pair":
            raise OptionError(
                "`rubric` is for judges of one text; give a judge of pairs its rubric by "
                "`instructions` when you create it"
            )
        self.threshold, self.max_revisions = threshold, max_revisions
        self.reference, self.rubric, self.context = reference, rubric, context
        self.request, self.keep_drafts, self.on_error = request, keep_drafts, on_error
        self.trajectory = trajectory
        self.marks = marks_of(judge)
        self.key = key or feedback_key(judge)

    def before_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update:
        """Clear the judged answers of an earlier run on the same thread."""
        return {"judged": []}

    async def abefore_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update:
        """Clear the judged answers of an earlier run on the same thread."""
        return self.before_agent(state, runtime)

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update | None:
        """Judge the answer, synchronously."""
        return run(self._after(state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update | None:
        """Judge the answer, asynchronously."""
        return await arun(self._after(state))

    def _after(self, state: JudgedState) -> Steps[Update | None]:
        messages = answered(state)
        last = messages[-1] if messages else None
        if not isinstance(last, AIMessage) or last.tool_calls:
            return None
        if not plain(last.content).strip():
            return None
        answer = work_in([last])
        earlier = state.get("judged") or []
        reference, source = _text_of(self.reference, state), _text_of(self.context, state)
        judge_run = uuid.uuid4()
        basis = task_of(messages), source
        work = work_of(messages) if self.trajectory else answer
        outcome = yield from self._outcome(basis, work, reference, earlier, judge_run)
        verdict = outcome["verdict"] if outcome else None
        score = None if verdict is None else score_of(verdict)
        current: Judged = {"answer": answer, "score": score, "verdict": verdict}
        if outcome and (parts := criteria_of(outcome, self.key)):
            current["criteria"] = parts
        if work != answer:
            current["work"] = work
        if (structured := state.get("structured_response")) is not None:
            current["structured_response"] = structured
        answers = [*earlier, current]
        if self._needs_revision(current) and len(answers) <= self.max_revisions:
            return {
                "judged": answers,
                "messages": [_request(self._reasons(current, reference))],
                "jump_to": "model",
            }
        if verdict:
            send_feedback(self.key, current, self.marks, judge_run, revisions=len(earlier))
        return {"judged": answers, **self._ending(state["messages"], answers)}

    def _ending(self, messages: list[AnyMessage], answers: Sequence[Judged]) -> dict[str, Any]:
        """Return the changes of the state after which it ends with the best answer."""
        changes: list[BaseMessage] = [] if self.keep_drafts else [*drafts_in(messages)]
        best, update = self._best(answers), dict[str, Any]()
        if best["answer"] != answers[-1]["answer"]:
            if not self.keep_drafts:
                changes += [RemoveMessage(id=str(m.id)) for m in answer_at_end(messages)]
            answer = best["answer"]
            changes.append(
                AIMessage(answer if isinstance(answer, str) else answer[-1]["content"])
            )
            if "structured_response" in best:
                update["structured_response"] = best["structured_response"]
        return {**update, "messages": changes} if changes else update

    def _outcome(
        self,
        basis: _Basis,
        answer: PlainText,
        reference: str | None,
        earlier: Sequence[Judged],
        judge_run: uuid.UUID,
    ) -> Steps[JudgmentResult | None]:
        """Return the judge's outcome; None if there is nothing to compare with yet."""
        try:
            case = self._case(basis, answer, reference, earlier)
            if case is None:
                return None
            config = config_for(self.judge, run_id=judge_run, run_name=self.key)
            return (yield from outcome_of(self.judge, case, config))
        except JudgeError as exc:
            if self.on_error == "raise":
                raise
            _LOGGER.warning("The answer was not judged: %s", exc)
            return {"verdict": error_verdict(exc)}

    def _case(
        self,
        basis: _Basis,
        answer: PlainText,
        reference: str | None,
        earlier: Sequence[Judged],
    ) -> dict[str, object] | None:
        """Return a `Pair` or an `Item`; None if there is nothing to compare with yet."""
        task, source = basis
        if self.kind == "item":
            fields = {"expected": reference, "source": source, "rubric": self.rubric}
            return item_for(self.judge, task, answer, **fields)
        best = self._best(earlier) if earlier else None
        other = reference or (best and best.get("work", best["answer"]))
        return pair_for(task, answer, other, source=source) if other else None

    def _needs_revision(self, current: Judged) -> bool:
        if current["verdict"] is None:
            return True
        return current["score"] is not None and current["score"] < self.threshold

    def _best(self, answers: Sequence[Judged]) -> Judged:
        """Return the best answer: the last, unless an earlier one was better."""
        best = answers[0]
        for answer in answers[1:]:
            against_best = self.kind == "pair" and not self.reference
            bar = self.threshold if against_best else best["score"]
            if answer["score"] is None or bar is None or answer["score"] >= bar:
                best = answer
        return best

    def _reasons(self, current: Judged, reference: str | None) -> str:
        reasons = comment_of(current["verdict"]) if current["verdict"] else ""
        if self.request is not None:
            return self.request.replace("{reasons}", reasons)
        if not current["verdict"]:
            return "Look at your answer again and give a better one, whole and on its own."
        if self.kind == "pair":
            other = "a known answer" if reference else "your earlier draft"
            reasons = f"A is your answer and B {other}. {reasons}"
        return (
            f"Your answer was judged and is not good enough yet. {reasons}\n"
            "Give a better answer, whole and on its own."
        )


def _request(text: str) -> HumanMessage:
    """Return a request to revise, tagged as no turn of the user."""
    return HumanMessage(text, name=REVISER, additional_kwargs={"lc_source": REVISER})


def _text_of(source: Reference, state: JudgedState) -> str | None:
    return source(state) if callable(source) else source


def _check_choices(**options: bool | str) -> None:
    for name, option in options.items():
        allowed = get_args(OnError) if name == "on_error" else (True, False)
        if option not in allowed:
            raise OptionError(f"`{name}` must be one of {allowed!r}, got {option!r}")


def _check_sources(**sources: Reference) -> None:
    for name, text in sources.items():
        if not (text is None or isinstance(text, str) or callable(text)):
            raise OptionError(
                f"`{name}` must be a text or a function of the agent's state, got {text!r}"
            )


def _check_revisions(number: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int):
        raise OptionError(f"`max_revisions` must be a whole number, got {number!r}")
    if number < 0:
        raise OptionError(f"`max_revisions` must be at least 0, got {number!r}")


def _check_threshold(threshold: Any) -> None:
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not number or not 0 <= threshold <= 1:
        raise OptionError(f"`threshold` must be a number from 0 to 1, got {threshold!r}")
