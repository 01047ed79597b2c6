"""A judge inside an agent: middleware that requests better answers."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Ge, MinLen
from langchain.agents import middleware as agents
from langchain.agents.middleware import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.tracers.context import register_configure_hook
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from langchain_judges.asking.effects import Update, run
from langchain_judges.errors import InputError, JudgeError
from langchain_judges.integrations import agent_work as agent
from langchain_judges.integrations import eval_cases as cases
from langchain_judges.integrations.feedback import send_feedback
from langchain_judges.methods.describe import kind_of, tell_good
from langchain_judges.methods.rubric.replies import CriterionScore
from langchain_judges.options import Count, Options, Rule, Share, with_options
from langchain_judges.rows.data import is_nothing, plain_data
from langchain_judges.rows.texts import PlainText
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import comment_of, reason_of, score_of

_LOGGER = logging.getLogger(__name__)
_UNJUDGED = "An answer passes without a score (`context=` and `trajectory=` say what is shown): %s"
_NOT_REVISED = "An answer below the threshold is not revised: no model wrote it, or none its words"


class Judged(TypedDict):
    """An answer of the agent, and the judge's verdict on it.

    Attributes:
        answer: A message if it contains images.
        work: The trajectory that was judged; only with `trajectory`.
        verdict: None if there was nothing to compare with yet.
        run: The same for all answers of one run of the agent.
        judge: The name of the middleware that judged.
        criteria: The sub-scores of a judge with several criteria.
        structured_response: The answer as the agent's `response_format`, if it has one.
        files: Those of a deep agent's state at this answer.
        revised: True where the judge asked for a better one.
    """

    answer: PlainText
    work: NotRequired[PlainText]
    score: float | int | None
    verdict: cases.CaseVerdict | None
    run: str
    judge: str
    criteria: NotRequired[list[CriterionScore]]
    structured_response: NotRequired[Any]
    files: NotRequired[Mapping[str, Any]]
    revised: NotRequired[bool]


class _Replies(BaseCallbackHandler):
    """Keeps the system message of each call of a model, as all middleware have made it."""

    run_inline = True

    def __init__(self) -> None:
        # By the run of a call, and once it has answered by the id of the reply.
        self.systems: dict[object, str | None] = {}

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], *, run_id: Any, **_: Any
    ) -> None:
        first = messages[0][0]
        self.systems[run_id] = first.text if first.type == "system" else None

    def on_llm_end(self, response: Any, *, run_id: Any, **_: Any) -> None:
        self.systems[response.generations[0][0].message.id] = self.systems.pop(run_id)

    def system_of(self, messages: Sequence[BaseMessage]) -> str | None:
        """That of the call whose reply is among the messages, else of the last call."""
        own = [message.id for message in messages if message.id in self.systems]
        return self.systems[[*self.systems, *own][-1]] if self.systems else None


# LangChain's own hook takes a variable: who stands in it hears every call within, whatever
# threads and graphs the agent starts.
_HEARD: ContextVar[_Replies | None] = ContextVar("_HEARD", default=None)
register_configure_hook(_HEARD, inheritable=True)


@contextmanager
def _kept(state: Any, sees: bool) -> Iterator[Callable[[ModelResponse], ExtendedModelResponse]]:
    """Yield what puts next to a model's response what other middleware may change.

    That is the messages, which may be summed up later, those that a model wrote, and the
    system message.

    Args:
        state: The agent's state.
        sees: Whether the judge is shown that message.
    """
    messages = agent.with_removed(state)
    start = 0 if state.get("seen") else agent.request_at(messages, state.get("begun"))

    def kept(said: ModelResponse) -> ExtendedModelResponse:
        # A call that failed has no reply's id.
        written = said.result if any(isinstance(key, str) for key in heard.systems) else []
        update = {"seen": messages[max(0, start - 1) :], "written": written}
        system = {"system_sent": heard.system_of(said.result)} if sees else {}
        return ExtendedModelResponse(said, Command(update={**update, **system}))

    heard = _HEARD.get() or _Replies()  # several judges of an agent hear the same
    token = _HEARD.set(heard)
    try:
        yield kept
    finally:
        _HEARD.reset(token)


def _latest(_: object, value: Any) -> Any:
    return value  # several judges keep the same


Reference = Annotated[
    str | Callable[[Any], str | None] | None, Rule("a text or a function of the agent's state")
]


Callback = Annotated[Callable[[Any], object] | None, Rule("a function of an evaluation")]


class JudgedState(agents.AgentState[Any]):
    """The agent's state with its judged answers.

    Attributes:
        judged: Every answer of this run of the agent, in order.
        rubric: What this run's answers are judged by, in place of the judge's own: a text, or
            a criterion on each line after a dash.
        answers: The same, which no subagent hands back.
        seen: The messages of this run, and the last one before it.
        begun: The id of the last message before this run.
        written: The messages of the last response, if a model has answered.
        system_sent: The agent's instructions, if the judge is shown them.
        files_before: The files of a deep agent that this run began with.
    """

    judged: NotRequired[Annotated[list[Judged], _latest]]
    rubric: NotRequired[str]
    answers: NotRequired[Annotated[list[Judged], PrivateStateAttr, _latest]]
    seen: NotRequired[Annotated[list[AnyMessage], PrivateStateAttr, _latest]]
    begun: NotRequired[Annotated[str | None, PrivateStateAttr, _latest]]
    written: NotRequired[Annotated[list[AnyMessage], PrivateStateAttr, _latest]]
    system_sent: NotRequired[Annotated[str | None, PrivateStateAttr, _latest]]
    files_before: NotRequired[Annotated[Any, PrivateStateAttr, _latest]]


# What came of an answer, in the words of deepagents' RubricMiddleware.
RubricResult = Literal[
    "satisfied", "needs_revision", "failed", "max_iterations_reached", "grader_error"
]


class RubricEvaluation(TypedDict):
    """One answer's evaluation, as deepagents' RubricMiddleware hands it to `on_evaluation`.

    Attributes:
        iteration: How many answers were judged before it.
        criteria: Each `{"name", "passed"}`, one that fails with what it lacks as its `gap`.
    """

    grading_run_id: str
    iteration: int
    result: RubricResult
    explanation: str
    criteria: list[dict[str, Any]]
    unverified: bool


_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+(.+)")


def rubric_in(text: str | None) -> str | list[dict[str, str]] | None:
    r"""A rubric of the agent's state: a list's lines as criteria, else the text.

    >>> rubric_in("- It cites sources.\n- It is brief.")[1]
    {'name': 'It is brief.', 'description': 'It is brief.'}
    """
    lines = [line for line in (text or "").splitlines() if line.strip()]
    found = [match[1].strip() for line in lines if (match := _BULLET.fullmatch(line))]
    if len(found) < 2 or len(found) < len(lines):
        return text or None
    return [{"name": each, "description": each} for each in found]


# What deep agents keep of each file beside its content; older versions have the first alone.
_OF_DEEP = {"modified_at", "encoding"}


def _files_in(state: Any, name: str) -> Mapping[str, Any]:
    files = state.get(name)
    return files if isinstance(files, Mapping) else {}


class AnswerOptions(Options):
    """Options of the judgment of an agent's answers.

    Attributes:
        threshold: The lowest score that is good enough, from 0 to 1.
        max_revisions: The most revisions in one run of the agent.
        reference: A reference answer: a text, or a function of the agent's state.
        context: The source that the answer is checked against: a text, or a function of the
            agent's state. A judge of pairs reads it after the task.
        trajectory: Judge everything that the agent did since the user's last message: its
            tool calls, their results, the files it wrote and the final answer, without rejected
            drafts, also where other middleware sums it up; files of a deep agent that were
            there before stand in the task. False: only the final answer.
        key: Name of the feedback; default as in `as_evaluator`.
        max_iterations: The most judged answers, in place of `max_revisions`.
        on_evaluation: Called with the `RubricEvaluation` of each answer.
        keep_drafts: Leave rejected drafts, and the requests to revise them, in the messages.
        system: Show the agent's instructions before the task: the system message as its model
            got it. A judge that needs `"instructions"` is shown them without it.
    """

    called = "JudgeMiddleware"

    threshold: Share = 0.5
    max_revisions: Count = 1
    reference: Reference = None
    context: Reference = None
    trajectory: bool = True
    key: Annotated[str, MinLen(1)] | None = None
    max_iterations: Annotated[int, Ge(1)] | None = None
    on_evaluation: Callback = None
    keep_drafts: bool = False
    system: bool = False

    @property
    def revisions(self) -> int:
        """The most revisions, by whichever option says it."""
        return self.max_iterations - 1 if self.max_iterations else self.max_revisions

    def texts(self, state: JudgedState) -> list[str | None]:
        """The reference and the source of a run of the agent."""
        found = (each(state) if callable(each) else each for each in (self.reference, self.context))
        return [None if is_nothing(each) else plain_data(each) for each in found]


class JudgeMiddleware(agents.AgentMiddleware[Any, Any, Any]):
    """Judges an agent's answer, and requests a revision if the score is too low.

    A judge of pairs takes the answer as A and the reference as B; without a reference B is
    the best draft so far, so the first answer is always revised once. A judge of one text
    takes the answer alone, with the reference as the expected answer and the context as its
    source.
    Below `threshold` the reasons go back to the model for one more turn. The agent ends with
    the best answer, even if it is an earlier one, and with the files that a deep agent's state
    had then; other drafts and the comments on them are removed from its messages. The scores are
    stored in the state under `judged`, and in LangSmith as feedback on the agent's run. An
    answer that could not be judged is returned unchanged, even if the judge raises an error; the
    feedback and a logged warning say why. One that no model wrote in this run, as a guardrail's
    rejection or the notice of a limit, is judged but never sent back, and a logged warning says
    so; after a draft, the draft is returned. A reply that other middleware rebuilt counts as the
    model's.

    A run of the agent may bring its own `rubric`, as with deepagents' `RubricMiddleware`, and a
    judge of one text then uses it. A judge that has no rubric, reference or context judges only
    such runs.
    """

    state_schema = JudgedState
    # The messages stand in the runs of the agent already.
    trace_policy = agents.TracePolicy(process_inputs=agents.omit_payload)

    @with_options(AnswerOptions)
    def __init__(self, judge: Judge, options: AnswerOptions) -> None:
        """Check the options, without a call to a model.

        Args:
            judge: A judge of this package, or a runnable that declares what it takes.
            options: Passed by name.

        Raises:
            OptionError: An option is not allowed, or the judge takes neither pair nor item.
        """
        super().__init__()
        tell_good(judge)
        self.judge, self.kind, self.options = judge, kind_of(judge), options
        self.key = cases.feedback_key(judge, options.key)
        own = cases.label_options(judge)
        self._sees = options.system or (own is not None and "instructions" in own.needed)

    @property
    def name(self) -> str:
        """Its name in the agent, where several need a `key=` each."""
        return re.sub("[:|]", "_", f"{super().name} {self.options.key or ''}".strip())

    def _earlier(self, state: JudgedState) -> list[Judged]:
        """The answers that this middleware judged."""
        return [each for each in state.get("answers") or [] if each["judge"] == self.name]

    def wrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], ModelResponse]
    ) -> ExtendedModelResponse:
        """Keep the messages and the agent's instructions, synchronously."""
        with _kept(request.state, self._sees) as kept:
            return kept(handler(request))

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ExtendedModelResponse:
        """Keep the messages and the agent's instructions, asynchronously."""
        with _kept(request.state, self._sees) as kept:
            return kept(await handler(request))

    def before_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update:
        """Clear the judged answers of an earlier run on the same thread."""
        last = state["messages"][-1].id if state["messages"] else None
        new: Update = {"judged": [], "answers": [], "seen": [], "written": []}
        return {**new, "begun": last, "files_before": _files_in(state, "files")}

    @agents.hook_config(can_jump_to=["model"])
    def after_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update | None:
        """Judge the answer, synchronously."""
        return run(self._after(state))

    @agents.hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: JudgedState, runtime: Runtime[Any]) -> Update | None:
        """Judge the answer, asynchronously."""
        return await self._after(state)

    async def _after(self, state: JudgedState) -> Update | None:
        if not (is_written := agent.is_by_model(state)):
            state = agent.as_of_now(state)
        judged = state.get("answers") or []
        whole = {**state, "messages": agent.with_removed(state)}
        messages, earlier = agent.with_answer(whole), self._earlier(state)
        if not messages or not self._has_basis(state):
            return {"judged": judged}  # a subagent may have handed back its own
        current, outcome, judge_run = await self._judged(state, messages)
        answers, verdict, score = [*earlier, current], current["verdict"], current["score"]
        is_too_low = verdict is None or (score is not None and score < self.options.threshold)
        revisions = sum("revised" in each for each in earlier)
        is_last = revisions >= self.options.revisions or not is_written
        if is_too_low and not is_last:
            current["revised"] = True
        elif is_too_low and not is_written:
            _LOGGER.warning(_NOT_REVISED)
        kept: Update = {key: [*judged, current] for key in ("judged", "answers")}
        if outcome:
            too_low: RubricResult = "max_iterations_reached" if is_last else "needs_revision"
            self._report(outcome, too_low if is_too_low else "satisfied", answers)
        if "revised" in current:
            request = HumanMessage(
                self._request(state, outcome),
                name=agent.REVISER,
                additional_kwargs={"lc_source": agent.REVISER, "draft": agent.draft_in(state)},
            )
            return {**kept, "messages": [request], "jump_to": "model"}
        if outcome:
            send_feedback(self.judge, outcome, self.key, judge_run, revisions=revisions)
        if not current["answer"] or (earlier and not is_written):
            return {**kept, **(self._ending(state, earlier, None) if earlier else {})}
        return {**kept, **self._ending(state, answers, current)}

    async def _judged(
        self, state: JudgedState, messages: Sequence[AnyMessage]
    ) -> tuple[Judged, cases.JudgmentResult | None, uuid.UUID]:
        """Judge the last message; return the answer with its score, the outcome and its run."""
        answer, judge_run = agent.answer_in(messages[-1]), uuid.uuid4()
        before, now = _files_in(state, "files_before"), _files_in(state, "files")
        files = {name: now[name] for name in now if now[name] != before.get(name)}
        start = agent.beginning(messages, state.get("begun"))
        is_whole = self.options.trajectory and answer
        work = agent.work_of(messages[start:], files) if is_whole else answer
        asked = messages[:start] or messages[:-1]
        task = agent.task_of(asked, state.get("system_sent") or "", before)
        outcome = await self._outcome(state, task, work, judge_run)
        verdict = outcome["verdict"] if outcome else None
        score = None if verdict is None else score_of(verdict)
        earlier = state.get("answers") or []
        current: Judged = {
            "answer": answer,
            "score": score,
            "verdict": verdict,
            "run": earlier[0]["run"] if earlier else str(judge_run),
            "judge": self.name,
        }
        if outcome and (parts := cases.criteria_of(outcome, self.key)):
            current["criteria"] = parts
        if work != answer:
            current["work"] = work
        if (structured := state.get("structured_response")) is not None:
            current["structured_response"] = structured
        if now:
            current["files"] = now
        return current, outcome, judge_run

    def _has_basis(self, state: JudgedState) -> bool:
        """Whether there is something to judge by."""
        of_judge, own = cases.label_options(self.judge), self.options
        if of_judge is None or of_judge.own_rubric is not None:
            return True
        return bool(own.reference or own.context or state.get("rubric"))

    def _report(
        self, outcome: cases.JudgmentResult, result: RubricResult, answers: Sequence[Judged]
    ) -> None:
        """Hand an evaluation to the caller, if they want it."""
        if not self.options.on_evaluation:
            return
        verdict = outcome["verdict"]
        if answers[-1]["score"] is None:
            is_bad = reason_of(verdict) in ("lacking", "invalid_input")
            result = "failed" if is_bad else "grader_error"
        criteria: list[dict[str, Any]] = [
            {"name": part["criterion"], "passed": bool(part["holds"])}
            | ({} if part["holds"] else {"gap": part["reason"]})
            for part in outcome.get("subscores") or []
            if part.get("label") is not None
        ]
        evaluation = RubricEvaluation(
            grading_run_id=answers[0]["run"],
            iteration=len(answers) - 1,
            result=result,
            explanation=comment_of(verdict),
            criteria=criteria,
            unverified=False,
        )
        self.options.on_evaluation(evaluation)

    def _ending(
        self, state: JudgedState, answers: Sequence[Judged], current: Judged | None
    ) -> dict[str, Any]:
        """The changes of the state after which it ends with the best answer.

        Args:
            state: The agent's state.
            answers: What was judged.
            current: The last answer; None if the agent ended without one.
        """
        messages: list[AnyMessage] = state["messages"]
        best = self._best(answers)
        gone = set() if self.options.keep_drafts else agent.drafts_in(messages)
        if not (best is current or self.options.keep_drafts):
            gone |= {*agent.draft_in(state)}
        removed: list[Any] = [RemoveMessage(str(m.id)) for m in messages if str(m.id) in gone]
        if best is current:
            return {"messages": removed} if removed else {}
        answer = best["answer"]
        drafts = (m for m in agent.with_removed(state) if agent.answer_in(m) == answer)
        said = next(drafts, AIMessage(answer if isinstance(answer, str) else answer[-1]["content"]))
        again = said.model_copy(update={"id": str(uuid.uuid4())})  # at the end, not at its place
        update: dict[str, Any] = {"messages": [*removed, again], "written": [again]}
        if "structured_response" in best:
            update["structured_response"] = best["structured_response"]
        files, now = best.get("files", {}), _files_in(state, "files")
        if files != now:  # None takes out a deep agent's file, whose state merges; others replace
            merged = (n for n, f in now.items() if isinstance(f, Mapping) and _OF_DEEP & f.keys())
            update["files"] = {**dict.fromkeys(merged), **files}
        return update

    async def _outcome(
        self, state: JudgedState, task: PlainText, work: PlainText, judge_run: uuid.UUID
    ) -> cases.JudgmentResult | None:
        """The judge's outcome; None if there is nothing to compare with yet."""
        try:
            if not work:
                raise InputError("`output`: the agent's last message is no answer with text")
            if (case := self._case(state, task, work)) is None:
                return None
            outcome = await cases.judge_aside(self.judge, case, run_id=judge_run, run_name=self.key)
        except JudgeError as exc:
            outcome = {"verdict": cases.error_verdict(self.judge, exc)}
        if score_of(outcome["verdict"]) is None:
            _LOGGER.warning(_UNJUDGED, comment_of(outcome["verdict"]))
        return outcome

    def _case(
        self, state: JudgedState, task: PlainText, work: PlainText
    ) -> dict[str, object] | None:
        """A `Pair` or an `Item`; None if there is nothing to compare with yet."""
        reference, source = self.options.texts(state)
        if self.kind == "item":
            own: Any = {"rubric": rubric_in(state.get("rubric"))}
            return cases.item_for(self.judge, task, work, expected=reference, source=source, **own)
        earlier = self._earlier(state)
        best = self._best(earlier) if earlier else None
        other = (best and best.get("work", best["answer"])) if reference is None else reference
        return None if other is None else cases.pair_for(task, work, other, source=source)

    def _best(self, answers: Sequence[Judged]) -> Judged:
        """The best answer: the last, unless an earlier one was better."""
        best = answers[0]
        for answer in answers[1:]:
            against_best = self.kind == "pair" and not self.options.reference
            bar = self.options.threshold if against_best else best["score"]
            if answer["score"] is None or bar is None or answer["score"] >= bar:
                best = answer
        return best

    def _request(self, state: JudgedState, outcome: cases.JudgmentResult | None) -> str:
        """The words that ask for a better answer."""
        if outcome is None:
            return cases.WORDS["look_again"]
        reasons = cases.reasons_of(outcome)
        if self.kind == "pair":
            known, _ = self.options.texts(state)
            other = "a known answer" if known else "your earlier draft"
            reasons = f"A is your answer and B {other}. {reasons}"
        return cases.WORDS["revise"].format(reasons=reasons)
