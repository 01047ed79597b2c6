"""A judge inside an agent: as middleware that requests better answers, and as a tool."""

from __future__ import annotations

import json
import logging
import math
import threading
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired, get_args

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.runtime import Runtime
from langsmith import Client
from langsmith.run_helpers import get_current_run_tree
from langsmith.run_trees import get_cached_client
from langsmith.utils import LangSmithError
from pydantic import BaseModel, BeforeValidator, Field
from typing_extensions import TypedDict

from langchain_judges.asking.steps import Steps, arun, run
from langchain_judges.errors import InputError, JudgeError, OptionError
from langchain_judges.integrations.cases import check_basis_of, item_for, pair_for
from langchain_judges.integrations.evaluators import (
    config_for,
    criteria_of,
    error_verdict,
    outcome_of,
    reason_for,
    verdict_of,
)
from langchain_judges.methods.marks import kind_of, marks_of, scale_of
from langchain_judges.rows.applications import (
    check_words,
    comment_of,
    score_of,
    task_in,
    with_blocks,
    work_in,
)
from langchain_judges.rows.media import is_content
from langchain_judges.rows.messages import message_in
from langchain_judges.rows.texts import Text, check_text, plain
from langchain_judges.runs.workload import Judge

_LOGGER = logging.getLogger(__name__)
_JUDGE = "judge"
"""Name of the messages that the middleware sends to the agent's model."""

Reference = str | Callable[[Any], str | None] | None
"""A text, or a function of the agent's state."""
OnError = Literal["pass", "raise"]
"""What to do if the judge raises an error."""
_Basis = tuple[Text, str | None]
"""The task and the source."""


class Judged(TypedDict):
    """An answer of the agent, and the judge's verdict on it."""

    answer: Text
    """A message if it contains images."""
    work: NotRequired[Text]
    """The trajectory that was judged; only with `trajectory`."""
    score: float | int | None
    verdict: dict[str, Any] | None
    """None if there was nothing to compare with yet."""
    criteria: NotRequired[list[dict[str, Any]]]
    """The sub-scores of a judge with several criteria."""


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
        threshold: The lowest score that is good enough: in [0, 1] for a judge of pairs, on
            the scale of its labels for a judge of one text.
        max_revisions: The most revisions in one run of the agent.
        reference: A reference answer: a text, or a function of the agent's state.
        rubric: For a judge of one text: its criteria, in place of those it was created
            with. A judge of pairs gets its rubric when it is created (`instructions=`).
        context: The source that the answer is checked against: a text, or a function of the
            agent's state. A judge of pairs reads it after the task.
        request: The request for a better answer, in your own words; `{reasons}` in it is
            replaced by the judge's reasons. Default: two sentences around the reasons.
        trajectory: Judge everything that the agent did since the user's last message: its
            tool calls, their results and the final answer. By default only the final answer
            is judged. Rejected drafts are omitted.
        keep_drafts: Whether rejected drafts and the requests to revise them stay in the
            agent's messages at the end. The state's `judged` has the drafts in any case.
        on_error: What to do if the judge raises an error, such as a rejected key: `"pass"`
            returns the answer as not judged, `"raise"` ends the agent's run.
        key: Name of the feedback; default the method.

    Raises:
        OptionError: An option is not allowed, or the judge takes neither pair nor item.
    """

    state_schema = JudgedState

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
        trajectory: bool = False,
        keep_drafts: bool = True,
        on_error: OnError = "pass",
        key: str | None = None,
    ) -> None:
        """Check the options, without a call to a model."""
        super().__init__()
        self.judge = judge
        self.kind = kind_of(judge)
        _check_threshold(judge, threshold)
        check_words(rubric=rubric, request=request, key=key)
        for name, option, allowed in (
            ("trajectory", trajectory, (True, False)),
            ("keep_drafts", keep_drafts, (True, False)),
            ("on_error", on_error, get_args(OnError)),
        ):
            if option not in allowed:
                raise OptionError(f"`{name}` must be one of {allowed!r}, got {option!r}")
        for name, text in (("reference", reference), ("context", context)):
            if not (text is None or isinstance(text, str) or callable(text)):
                raise OptionError(
                    f"`{name}` must be a text or a function of the agent's state, got {text!r}"
                )
        if isinstance(max_revisions, bool) or not isinstance(max_revisions, int):
            raise OptionError(f"`max_revisions` must be a whole number, got {max_revisions!r}")
        if max_revisions < 0:
            raise OptionError(f"`max_revisions` must be at least 0, got {max_revisions!r}")
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
        self.key = key or str(self.marks["method"])

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Clear the judged answers of an earlier run on the same thread."""
        return {"judged": []}

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Clear the judged answers of an earlier run on the same thread."""
        return self.before_agent(state, runtime)

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Judge the answer, synchronously."""
        return run(self._after(state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Judge the answer, asynchronously."""
        return await arun(self._after(state))

    def _after(self, state: Mapping[str, Any]) -> Steps[dict[str, Any] | None]:
        messages: Sequence[AnyMessage] = state["messages"]
        last = messages[-1] if messages else None
        if not isinstance(last, AIMessage) or last.tool_calls:
            return None
        text = plain(last.content)
        if not text.strip():
            return None
        answer = with_blocks(text, last)
        earlier: list[Judged] = list(state.get("judged") or [])
        reference = self.reference(state) if callable(self.reference) else self.reference
        source = self.context(state) if callable(self.context) else self.context
        judge_run = uuid.uuid4()
        basis = _task(messages), source
        work = _work(messages) if self.trajectory else answer
        outcome = yield from self._outcome(basis, work, reference, earlier, judge_run)
        verdict = outcome["verdict"] if outcome else None
        score = None if verdict is None else score_of(verdict)
        current: Judged = {"answer": answer, "score": score, "verdict": verdict}
        if parts := criteria_of(outcome or {}, self.key):
            current["criteria"] = [dict(part) for part in parts]
        if self.trajectory:
            current["work"] = work
        answers = [*earlier, current]
        if self._needs_revision(current) and len(answers) <= self.max_revisions:
            return {
                "judged": answers,
                "messages": [HumanMessage(self._reasons(current, reference), name=_JUDGE)],
                "jump_to": "model",
            }
        if current["verdict"]:
            _send_feedback(self.key, current, self.marks, judge_run, revisions=len(earlier))
        best = self._best(answers)["answer"]
        changes: list[Any] = [] if self.keep_drafts else _drafts(messages)
        if best != answer:
            changes += [] if self.keep_drafts else [RemoveMessage(id=str(last.id))]
            changes.append(AIMessage(best if isinstance(best, str) else best[-1]["content"]))
        return {"judged": answers, **({"messages": changes} if changes else {})}

    def _outcome(
        self,
        basis: _Basis,
        answer: Text,
        reference: str | None,
        earlier: Sequence[Judged],
        judge_run: uuid.UUID,
    ) -> Steps[dict[str, Any] | None]:
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
        answer: Text,
        reference: str | None,
        earlier: Sequence[Judged],
    ) -> dict[str, Any] | None:
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


def _check_threshold(judge: Judge, threshold: Any) -> None:
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if not number or not math.isfinite(threshold):
        raise OptionError(f"`threshold` must be a number, got {threshold!r}")
    low, high = scale_of(judge) or (threshold, threshold)
    if not low <= threshold <= high:
        raise OptionError(f"`threshold` must be from {low} to {high}, got {threshold!r}")


def _task(messages: Sequence[AnyMessage]) -> Text:
    """Return the agent's task, without its drafts and the judge's reasons."""
    places = [i for i, m in enumerate(messages) if m.type == "human" and m.name != _JUDGE]
    until = messages[: places[-1] + 1] if places else messages[:-1]
    rejected = {removed.id for removed in _drafts(until)}
    request = [m for m in until if m.type != "system" and str(m.id) not in rejected]
    try:
        task = task_in(request)
    except InputError:
        return "(no task)"
    if len(task) == 1 and not isinstance(task, str) and isinstance(task[0]["content"], str):
        return task[0]["content"]
    return task


def _work(messages: Sequence[AnyMessage]) -> Text:
    """Return an agent's work since the user's last message, without rejected drafts."""
    rejected = {removed.id for removed in _drafts(messages)}
    places = [i for i, m in enumerate(messages) if m.type == "human" and m.name != _JUDGE]
    since = messages[places[-1] + 1 :] if places else messages
    return work_in([message for message in since if str(message.id) not in rejected])


def _drafts(messages: Sequence[AnyMessage]) -> list[RemoveMessage]:
    """Return the removals of each request to revise and of the draft before it."""
    removed: list[AnyMessage] = []
    for before, message in pairwise(messages):
        if message.type == "human" and message.name == _JUDGE:
            removed += [before, message] if before.type == "ai" else [message]
    return [RemoveMessage(id=str(message.id)) for message in removed]


def _send_feedback(
    key: str, current: Judged, marks: dict[str, Any], judge_run: uuid.UUID, revisions: int
) -> None:
    """Add the score to the agent's trace, if there is one, without waiting for LangSmith."""
    tree = get_current_run_tree()
    if tree is None:
        return
    client = tree.ls_client if isinstance(tree.ls_client, Client) else get_cached_client()
    verdict = current["verdict"] or {}
    shared: dict[str, Any] = {
        "run_id": tree.trace_id,
        "trace_id": tree.trace_id,
        "source_info": marks,
        "feedback_source_type": "model",
        "source_run_id": judge_run,
    }
    extra = {"revisions": revisions, "failures": verdict.get("failures") or []}
    total = {
        "key": key,
        "score": current["score"],
        "comment": comment_of(verdict),
        "extra": extra,
    }
    parts = [
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


def _message_text(value: Any) -> Any:
    """Return the text of a message; code that calls the tool may pass one."""
    message = message_in(value)
    if is_content(value) or (message and is_content(message["content"])):
        raise ValueError("a tool's argument must be a text, not an image or a file")
    return value if message is None else plain(message["content"])


Words = Annotated[str, BeforeValidator(_message_text)]


class PairArguments(BaseModel):
    """Arguments of a judge of pairs as a tool."""

    input: Words = Field(description="The task that both texts answer.")
    output_a: Words = Field(description="The first text.")
    output_b: Words = Field(description="The second text.")


class ItemArguments(BaseModel):
    """Arguments of a judge of one text as a tool."""

    input: Words = Field(description="The task that the text answers.")
    output: Words = Field(description="The text to judge.")
    expected: Words | None = Field(None, description="A known answer, if there is one.")
    source: Words | None = Field(None, description="What the text must be true to, if any.")


def judge_tool(
    judge: Judge, *, name: str | None = None, description: str | None = None
) -> BaseTool:
    """Make a judge a tool for an agent.

    The tool returns `{"preference" or "label", "score", "rationale"}` as JSON, and the full
    verdict as its artifact. If the texts cannot be judged, the model gets the reason.

    Args:
        judge: A judge of this package, or a runnable that declares what it takes.
        name: Name of the tool; default `compare_texts` or `judge_text`.
        description: The tool's description for the model.

    Raises:
        OptionError: `judge` takes neither a pair nor an item, or an option is not allowed.
    """
    check_words(name=name, description=description)
    pairs = kind_of(judge) == "pair"

    def steps(arguments: dict[str, Any]) -> Steps[tuple[str, dict[str, Any]]]:
        case = {field: value for field, value in arguments.items() if value is not None}
        try:
            for field in case:
                check_text(case[field], field)
            if not pairs:
                check_basis_of(judge, case)
            verdict = yield from verdict_of(judge, case, config_for(judge))
        except InputError as exc:
            raise ToolException(str(exc)) from exc
        summary: dict[str, Any] = {
            k: verdict[k] for k in ("preference", "label") if k in verdict
        }
        summary |= {"score": score_of(verdict), "rationale": comment_of(verdict)}
        return json.dumps(summary, ensure_ascii=False), verdict

    def now(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return run(steps(arguments))

    async def later(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return await arun(steps(arguments))

    purpose = "Say which of two texts answers a task better." if pairs else "Judge a text."
    return StructuredTool.from_function(
        func=now,
        coroutine=later,
        name=name or ("compare_texts" if pairs else "judge_text"),
        description=description or purpose,
        args_schema=PairArguments if pairs else ItemArguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
