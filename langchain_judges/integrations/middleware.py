"""A judge inside an agent: middleware that requests better answers."""

from __future__ import annotations

import logging
import threading
import uuid
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    TracePolicy,
    hook_config,
    omit_payload,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langsmith import Client
from langsmith.run_helpers import get_current_run_tree
from langsmith.run_trees import get_cached_client
from langsmith.utils import LangSmithError
from typing_extensions import TypedDict

from langchain_judges.asking.effects import Update, run
from langchain_judges.errors import InputError, JudgeError
from langchain_judges.integrations.framework_cases import (
    NO_TASK,
    CaseVerdict,
    JudgmentResult,
    criteria_of,
    error_verdict,
    feedback_key,
    item_for,
    outcome_of,
    pair_for,
    scores_of,
)
from langchain_judges.methods.describe import fingerprint_of, kind_of
from langchain_judges.methods.rubric.replies import CriterionScore
from langchain_judges.options import Count, Rule, Share, check_value
from langchain_judges.rows.fields import task_in, work_in
from langchain_judges.rows.lookup import check_words
from langchain_judges.rows.messages import as_json
from langchain_judges.rows.texts import PlainText, plain
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import comment_of, score_of

_LOGGER = logging.getLogger(__name__)
# Name of the messages that request a revision of the agent's model.
REVISER = "judge"


def task_of(messages: Sequence[AnyMessage]) -> PlainText:
    """Return the agent's task, without its drafts and the judge's reasons."""
    until = messages[: _beginning(messages)] or messages[:-1]
    rejected = drafts_in(until)
    request = [m for m in until if m.type != "system" and str(m.id) not in rejected]
    try:
        task = task_in(request)
    except InputError:
        return NO_TASK
    if len(task) == 1 and not isinstance(task, str) and isinstance(task[0]["content"], str):
        return task[0]["content"]
    return task


def work_of(messages: Sequence[AnyMessage]) -> PlainText:
    """Return an agent's work since the user's last message, without rejected drafts."""
    rejected, since = drafts_in(messages), messages[_beginning(messages) :]
    return work_in([message for message in since if str(message.id) not in rejected])


def _beginning(messages: Sequence[AnyMessage]) -> int:
    """Return where the work after the user's last message begins."""
    users = (i for i, m in enumerate(messages, 1) if m.type == "human" and m.name != REVISER)
    return max(users, default=0)


def drafts_in(messages: Sequence[AnyMessage]) -> set[str]:
    """Return the ids of each request to revise and of the draft before it."""
    drafts: list[AnyMessage] = []
    for place, message in enumerate(messages):
        if message.type == "human" and message.name == REVISER:
            drafts += [*answer_at_end(messages[:place]), message]
    return {str(message.id) for message in drafts}


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
    """An answer of the agent, and the judge's verdict on it.

    Attributes:
        answer: A message if it contains images.
        work: The trajectory that was judged; only with `trajectory`.
        verdict: None if there was nothing to compare with yet.
        criteria: The sub-scores of a judge with several criteria.
        structured_response: The answer as the agent's `response_format`, if it has one.
    """

    answer: PlainText
    work: NotRequired[PlainText]
    score: float | int | None
    verdict: CaseVerdict | None
    criteria: NotRequired[list[CriterionScore]]
    structured_response: NotRequired[Any]


def send_feedback(
    outcome: JudgmentResult,
    key: str,
    marks: dict[str, object],
    judge_run: uuid.UUID,
    revisions: int,
) -> None:
    """Add the scores to the agent's trace, if there is one, without waiting for LangSmith."""
    tree = get_current_run_tree()
    if tree is None:
        return
    client = tree.ls_client if isinstance(tree.ls_client, Client) else get_cached_client()
    failures = outcome["verdict"].get("failures") or []

    def send() -> None:
        try:
            with warnings.catch_warnings():
                # A trace that is still being written has no session id yet.
                warnings.filterwarnings("ignore", "Creating feedback for a run without")
                for each in scores_of(outcome, key):
                    client.create_feedback(
                        run_id=tree.trace_id,
                        trace_id=tree.trace_id,
                        key=each.key,
                        score=each.score,
                        comment=each.comment,
                        source_info=marks,
                        feedback_source_type="model",
                        source_run_id=judge_run,
                        extra=each.extra and {"revisions": revisions, "failures": failures},
                    )
        except (LangSmithError, OSError, ValueError) as exc:
            _LOGGER.warning("The score was not sent to LangSmith: %s", exc)

    threading.Thread(target=send, name="judge-feedback", daemon=True).start()


Reference = Annotated[
    str | Callable[[Any], str | None] | None,
    Rule("a text or a function of the agent's state"),
]


class JudgedState(AgentState[Any]):
    """The agent's state with its judged answers.

    Attributes:
        judged: Every answer of this run of the agent, in order.
    """

    judged: NotRequired[list[Judged]]


class JudgeMiddleware(AgentMiddleware[Any, Any, Any]):
    """Judges an agent's answer, and requests a revision if the score is too low.

    A judge of pairs takes the answer as A and the reference as B; without a reference B is
    the best draft so far, so the first answer is always revised once. A judge of one text
    takes the answer alone, with the reference as the expected answer and the context as its
    source.
    Below `threshold` the reasons go back to the model for one more turn. The agent ends with
    the best answer, even if it is an earlier one. The scores are in the state under `judged`,
    and in LangSmith as feedback on the agent's trace. An answer that could not be judged is
    returned unchanged, also if the judge raises an error, and the feedback says why.

    Args:
        judge: A judge of this package, or a runnable that declares what it takes.
        threshold: The lowest score that is good enough, from 0 to 1.
        max_revisions: The most revisions in one run of the agent.
        reference: A reference answer: a text, or a function of the agent's state.
        context: The source that the answer is checked against: a text, or a function of the
            agent's state. A judge of pairs reads it after the task.
        trajectory: Judge everything that the agent did since the user's last message: its
            tool calls, their results and the final answer, without rejected drafts. False:
            only the final answer.
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
        context: Reference = None,
        trajectory: bool = True,
        key: str | None = None,
    ) -> None:
        """Check the options, without a call to a model."""
        super().__init__()
        self.judge = judge
        self.kind = kind_of(judge)
        check_value("threshold", threshold, Share)
        check_value("max_revisions", max_revisions, Count)
        for name, text in (("reference", reference), ("context", context)):
            check_value(name, text, Reference)
        check_value("trajectory", trajectory, bool)
        check_words(key=key)
        self.threshold, self.max_revisions = threshold, max_revisions
        self.reference, self.context, self.trajectory = reference, context, trajectory
        self.marks = fingerprint_of(judge)
        self.key = key or feedback_key(judge)

    def before_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update:
        """Clear the judged answers of an earlier run on the same thread."""
        return {"judged": []}

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update | None:
        """Judge the answer, synchronously."""
        return run(self._after(state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update | None:
        """Judge the answer, asynchronously."""
        return await self._after(state)

    async def _after(self, state: JudgedState) -> Update | None:
        messages = answered(state)
        last = messages[-1] if messages else None
        is_answer = isinstance(last, AIMessage) and not last.tool_calls
        if last is None or not is_answer or not plain(last.content).strip():
            return None
        answer = work_in([last])
        work = work_of(messages) if self.trajectory else answer
        earlier = state.get("judged") or []
        judge_run = uuid.uuid4()
        outcome = await self._outcome(state, task_of(messages), work, judge_run)
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
        is_too_low = verdict is None or (score is not None and score < self.threshold)
        if is_too_low and len(earlier) < self.max_revisions:
            request = HumanMessage(
                self._request(state, verdict),
                name=REVISER,
                additional_kwargs={"lc_source": REVISER},
            )
            return {"judged": answers, "messages": [request], "jump_to": "model"}
        if outcome:
            send_feedback(outcome, self.key, self.marks, judge_run, revisions=len(earlier))
        return {"judged": answers, **self._ending(answers)}

    def _ending(self, answers: Sequence[Judged]) -> dict[str, Any]:
        """Return the changes of the state after which it ends with the best answer."""
        best = self._best(answers)
        if (answer := best["answer"]) == answers[-1]["answer"]:
            return {}
        content = answer if isinstance(answer, str) else answer[-1]["content"]
        update: dict[str, Any] = {"messages": [AIMessage(content)]}
        if "structured_response" in best:
            update["structured_response"] = best["structured_response"]
        return update

    async def _outcome(
        self, state: JudgedState, task: PlainText, work: PlainText, judge_run: uuid.UUID
    ) -> JudgmentResult | None:
        """Return the judge's outcome; None if there is nothing to compare with yet."""
        try:
            if (case := self._case(state, task, work)) is None:
                return None
            names: RunnableConfig = {"run_id": judge_run, "run_name": self.key}
            return await outcome_of(self.judge, case, **names)
        except JudgeError as exc:
            _LOGGER.warning("The answer was not judged: %s", exc)
            return {"verdict": error_verdict(self.judge, exc)}

    def _case(
        self, state: JudgedState, task: PlainText, work: PlainText
    ) -> dict[str, object] | None:
        """Return a `Pair` or an `Item`; None if there is nothing to compare with yet."""
        reference, source = _text_of(self.reference, state), _text_of(self.context, state)
        if self.kind == "item":
            return item_for(self.judge, task, work, expected=reference, source=source)
        earlier = state.get("judged")
        best = self._best(earlier) if earlier else None
        other = reference or (best and best.get("work", best["answer"]))
        return pair_for(task, work, other, source=source) if other else None

    def _best(self, answers: Sequence[Judged]) -> Judged:
        """Return the best answer: the last, unless an earlier one was better."""
        best = answers[0]
        for answer in answers[1:]:
            against_best = self.kind == "pair" and not self.reference
            bar = self.threshold if against_best else best["score"]
            if answer["score"] is None or bar is None or answer["score"] >= bar:
                best = answer
        return best

    def _request(self, state: JudgedState, verdict: CaseVerdict | None) -> str:
        """Return the words that ask for a better answer."""
        if verdict is None:
            return "Look at your answer again and give a better one, whole and on its own."
        reasons = comment_of(verdict)
        if self.kind == "pair":
            known = _text_of(self.reference, state)
            other = "a known answer" if known else "your earlier draft"
            reasons = f"A is your answer and B {other}. {reasons}"
        return (
            f"Your answer was judged and is not good enough yet. {reasons}\n"
            "Give a better answer, whole and on its own."
        )


def _text_of(source: Reference, state: JudgedState) -> str | None:
    return source(state) if callable(source) else source
