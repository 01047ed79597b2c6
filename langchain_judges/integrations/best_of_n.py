"""Best of n: sample several answers and keep the one that wins a judge's knockout."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableLambda, ensure_config
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.config import DEFAULT_RECURSION_LIMIT, patch_config
from typing_extensions import TypedDict

from langchain_judges import verdict as verdicts
from langchain_judges.asking.effects import Effect, Step, emit, gather, run, running_config
from langchain_judges.asking.failures import NOT_FAILURES, failure_of
from langchain_judges.asking.models import is_openai_compatible, plain_model, resolve_model
from langchain_judges.asking.question import run_of, sample_seed
from langchain_judges.errors import InputError, OptionError, OverBudget
from langchain_judges.integrations import eval_cases as cases
from langchain_judges.methods.describe import kind_of, layers_of, tell_good
from langchain_judges.options import Count, Rule, check_value
from langchain_judges.rows import data, work
from langchain_judges.rows.fields import expected_in, source_in, task_in
from langchain_judges.rows.texts import Text
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import Failure, Usage, decision, score_of

AnswerSource = Annotated[
    str | Runnable[Any, Any] | Callable[[Any], object] | None,
    Rule("a model, its name, a runnable or a function"),
]


class AnswerMatch(TypedDict):
    """One match of the bracket; for a judge of one text, the score of one answer.

    Attributes:
        a: Index of the answer.
        winner: None if a single answer could not be judged.
    """

    round: int
    a: int
    b: int | None
    winner: int | None
    verdict: cases.CaseVerdict


# An answer as it was given, which may hold its documents, and its text.
_Draft = tuple[Any, Text]
# Judges one answer, or two: takes the round, their indices and the name of the match.
_Judged = Callable[[int, int, int | None, str], Step[AnswerMatch]]


class Best(TypedDict):
    """Result of `best_of`.

    Attributes:
        answers: Every answer, a message if it contains images; None if the sample failed.
        usage: Usage of the judge; the model that writes the samples is not counted.
    """

    output: Text
    index: int
    answers: list[Text | None]
    bracket: list[AnswerMatch]
    failures: list[Failure]
    usage: Usage


def best_of(
    n: int, judge: Judge, answer: AnswerSource = None, *, seed: int = 0
) -> Runnable[Any, Best]:
    """Sample n answers and keep the one that wins a knockout of the judge.

    Answers are compared in rounds until one is left: n - 1 judgments. A tie, or a match that
    could not be judged or was over a budget, goes to the answer that comes first in the draw.
    A judge of one text needs no matches: the answer with the highest label wins. Where nothing
    was judged the first answer is given, and a warning logged.

    Args:
        n: How many answers.
        judge: A judge of this package, or a runnable that declares what it takes.
        answer: The writer of the answers: a chat model or its name, a function, or any runnable
            but a graph with a checkpointer, whose samples would be turns of one thread. An
            OpenAI-compatible chat model gets a different seed for each sample, and temperature
            0.7 unless it sets its own. Without `answer`, the input must hold
            the answers: `{"input": …, "answers": […]}`. The input may also hold a
            `reference` and a `context` for the judge.
        seed: Seed of the draw.

    Returns:
        A runnable from the task to `{"output", "index", "answers", "bracket", "failures",
        "usage"}`.

    Raises:
        OptionError: An option is not allowed, or `answer` has a checkpointer.
        ModelSetupError: The model does not exist.
        OverBudget: When it is called: a budget let no answer be judged.
    """
    check_value("n", n, Annotated[int, Ge(1)])
    check_value("seed", seed, Count)
    check_value("answer", answer, AnswerSource)
    written = resolve_model(answer) if isinstance(answer, str) else plain_model(answer)
    writer = written if written is None else coerce_to_runnable(written)
    if any(getattr(layer, "checkpointer", None) for layer in layers_of(writer)):
        raise OptionError(cases.WORDS["keeps_threads"])
    held = _Contest(n, judge, writer, seed).held
    tell_good(judge)
    return RunnableLambda(lambda task: run(held(task)), afunc=held, name=f"best of {n}")


class _Contest:
    def __init__(self, n: int, judge: Judge, answer: Runnable[Any, Any] | None, seed: int) -> None:
        self.n, self.judge, self.answer, self.seed = n, judge, answer, seed
        self.takes_items = kind_of(judge) == "item"

    async def held(self, request: object) -> Best:
        """Let the answers be written and judged, and return the best."""
        fields = request if isinstance(request, Mapping) else {}
        task, source = task_in(request), source_in(fields, None)
        known = (fields.get(name) for name in ("expected", "reference"))
        expected = next((expected_in(each) for each in known if not data.is_nothing(each)), None)
        cases.check_basis_of(self.judge, {"input": task, "expected": expected, "source": source})
        drafts, failures = await self._answers(request)
        texts = {i: draft[1] for i, draft in enumerate(drafts) if draft}
        if not texts:
            details = "; ".join(failure["detail"] for failure in failures)
            raise InputError(f"there is no answer to choose from: {details}")

        judged = self._judged_by(task, expected, source, [draft and draft[0] for draft in drafts])
        if self.takes_items:
            bracket = await self._played(judged(1, i, None, "") for i in texts)
            scores = {match["a"]: score_of(match["verdict"]) for match in bracket}
            labelled = [i for i in texts if scores[i] is not None]
            winner = max(labelled or [*texts][:1], key=lambda i: (scores[i] or 0, -i))
        else:
            winner, bracket = await self._knockout([*texts], judged)
        found = [match["verdict"] for match in bracket]
        lost = [failure for each in found for failure in each.get("failures") or []]
        is_judged = any(decision(each) is not None for each in found)
        if not is_judged and {*map(verdicts.reason_of, found)} == {"over_budget"}:
            raise OverBudget("the budget is spent: no answer was judged")
        if lost and not is_judged:
            logging.getLogger(__name__).warning("No answer was judged: %s", lost[0]["detail"])
        return Best(
            output=texts[winner],
            index=winner,
            answers=[*map(texts.get, range(self.n))],
            bracket=bracket,
            failures=failures + lost,
            usage=verdicts.add_usage([each.get("usage") or verdicts.no_usage() for each in found]),
        )

    def _judged_by(self, task: Text, known: Any, source: object, given: Any) -> _Judged:
        """The judge of one answer or two of a task, beside what is known of it."""

        async def judged(number: int, a: int, b: int | None, place: str) -> AnswerMatch:
            name = f"answer {a + 1}"
            if b is None:
                case = cases.item_for(self.judge, task, given[a], expected=known, source=source)
            else:
                name = f"{place}: {name} vs answer {b + 1}"
                best = known[0] if isinstance(known, list) else known
                case = cases.pair_for(task, given[a], given[b], reference=best, source=source)
            try:
                verdict = (await cases.judge_aside(self.judge, case, run_name=name))["verdict"]
            except OverBudget as exc:  # the answers, and what was decided, are paid for
                verdict = cases.error_verdict(self.judge, exc)
            lost = b is None and decision(verdict) is None
            winner = b if decision(verdict) == "B" else None if lost else a
            match = AnswerMatch(round=number, a=a, b=b, winner=winner, verdict=verdict)
            emit("match", "best_of", match, name)
            return match

        return judged

    async def _played(self, matches: Iterable[Step[AnswerMatch]]) -> list[AnswerMatch]:
        """Matches at once; within a budget in turn, or each might get half of its calls."""
        own = (getattr(each, "config", None) for each in layers_of(self.judge))
        limits = (run.limiter for run in map(run_of, (running_config(), *own)) if run)
        if all(each.max_calls is None and each.max_dollars is None for each in limits):
            return await gather([*matches])
        return [await each for each in matches]

    async def _knockout(self, players: list[int], judged: _Judged) -> tuple[int, list[AnswerMatch]]:
        random.Random(self.seed).shuffle(players)  # noqa: S311 - a draw, no secret
        bracket: list[AnswerMatch] = []
        number = 0
        while len(players) > 1:
            number += 1
            sides = enumerate(zip(players[::2], players[1::2], strict=False), 1)
            calls = (judged(number, *side, f"match {number}.{i}") for i, side in sides)
            matches = await self._played(calls)
            bracket += matches
            winners = [match["winner"] for match in matches if match["winner"] is not None]
            players = winners + players[2 * len(matches) :]
        return players[0], bracket

    async def _answers(self, request: object) -> tuple[list[_Draft | None], list[Failure]]:
        if self.answer is None:
            answers = request.get("answers") if isinstance(request, Mapping) else None
            if not isinstance(answers, list) or len(answers) != self.n:
                raise InputError(cases.WORDS["no_answers"].format(n=self.n))
            return [(own, work.work_in(own, task=task_in(request))) for own in answers], []
        if isinstance(self.answer, BaseChatModel) and isinstance(request, Mapping):
            request = task_in(request)
        tasks = [_sample(self.answer, request, (self.seed, i)) for i in range(self.n)]
        samples = await gather(tasks)
        return [draft for draft, _ in samples], [each for _, lost in samples for each in lost]


async def _sample(
    writer: Runnable[Any, Any], prompt: object, draw: tuple[int, int]
) -> tuple[_Draft | None, list[Failure]]:
    """Write one answer; `draw` is the seed and the index of the sample."""
    unit = f"sample {draw[1] + 1}"
    settings: dict[str, float] = {}
    if is_openai_compatible(writer):
        settings["seed"] = sample_seed(*draw)
        if getattr(writer, "temperature", None) is None:
            settings["temperature"] = 0.7
    own = patch_config(ensure_config(), run_name=unit)
    if own["recursion_limit"] == DEFAULT_RECURSION_LIMIT:
        del own["recursion_limit"]  # of nobody's choice: an agent may have a limit of its own
    try:
        reply = await Effect.of(writer, "invoke", prompt, own, **settings)
        return (reply, work.work_in(reply, task=prompt)), []
    except NOT_FAILURES:
        raise
    except Exception as exc:  # noqa: BLE001 - a sample fails, whatever its writer raises
        return None, [{**failure_of(exc, "sample"), "unit": unit}]
