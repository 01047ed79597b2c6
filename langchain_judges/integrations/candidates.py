"""Best of n: sample several answers and keep the one that wins a judge's knockout."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, ensure_config
from langchain_core.runnables.config import patch_config
from typing_extensions import TypedDict

from langchain_judges.asking.clients import is_openai_compatible
from langchain_judges.asking.models import resolve_model
from langchain_judges.asking.send import sample_seed
from langchain_judges.asking.steps import Steps, Wait, arun, emit, run, together
from langchain_judges.errors import InputError, OptionError
from langchain_judges.integrations.cases import (
    CaseVerdict,
    check_basis_of,
    config_for,
    item_for,
    pair_for,
    verdict_of,
)
from langchain_judges.methods.describe import kind_of
from langchain_judges.rows.fields import (
    expected_in,
    source_in,
    task_in,
    work_in,
)
from langchain_judges.rows.texts import Text
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import Failure, Usage, add_usage, decision, no_usage, score_of

AnswerSource = str | BaseChatModel | Runnable[Any, Any] | Callable[[Any], object] | None


class AnswerMatch(TypedDict):
    """One match of the bracket; for a judge of one text, the score of one answer."""

    round: int
    a: int
    """Index of the answer."""
    b: int | None
    winner: int | None
    """None if a single answer could not be judged."""
    verdict: CaseVerdict


class Best(TypedDict):
    """What `best_of` returns."""

    output: Text
    index: int
    answers: list[Text | None]
    """Every answer, a message if it contains images; None if the sample failed."""
    bracket: list[AnswerMatch]
    failures: list[Failure]
    usage: Usage
    """Usage of the judge; the model that writes the samples is not counted."""


def best_of(
    n: int, judge: Judge, answer: AnswerSource = None, *, seed: int = 0
) -> Runnable[Any, Best]:
    """Sample n answers and keep the one that wins a knockout of the judge.

    Answers are compared in rounds until one is left: n - 1 judgments. A tie, or a match that
    could not be judged, goes to the answer that comes first in the draw. A judge of one text
    needs no matches: the answer with the highest label wins.

    Args:
        n: How many answers.
        judge: A judge of this package, or a runnable that declares what it takes.
        answer: The writer of the answers: a chat model or its name, any runnable, or a
            function. An OpenAI-compatible chat model gets a different seed for each sample,
            and temperature 0.7 unless it sets its own. Without `answer`, the input must hold
            the answers: `{"input": …, "answers": […]}`. The input may also hold a
            `reference` and a `context` for the judge.
        seed: Seed of the draw.

    Returns:
        A runnable from the task to `{"output", "index", "answers", "bracket", "failures",
        "usage"}`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model does not exist.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise OptionError(f"`n` must be a whole number of at least 1, got {n!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise OptionError(f"`seed` must be a whole number of at least 0, got {seed!r}")
    knockout = _Knockout(n, judge, _writer(answer), seed)

    def now(task: object, config: RunnableConfig) -> Best:
        return run(knockout.play(task, config))

    async def later(task: object, config: RunnableConfig) -> Best:
        return await arun(knockout.play(task, config))

    return RunnableLambda(now, afunc=later, name=f"best of {n}")


def _writer(answer: AnswerSource) -> Runnable[Any, Any] | None:
    if isinstance(answer, str):
        return resolve_model(answer)
    if answer is None or isinstance(answer, Runnable):
        return answer
    if callable(answer):
        return RunnableLambda(answer)
    raise OptionError(
        f"`answer` must be a model, its name, a runnable or a function, got {answer!r}"
    )


class MatchBasis(NamedTuple):
    """What every answer is judged by."""

    task: Text
    expected: str | list[str] | None
    source: str | None


def _match_basis(request: object) -> MatchBasis:
    """Read the task, and the reference and the source if the request has them."""
    task = task_in(request)
    if not isinstance(request, Mapping):
        return MatchBasis(task, None, None)
    reference = request.get("expected") or request.get("reference")
    expected = expected_in(reference) if reference else None
    return MatchBasis(task, expected, source_in(request, None))


class _Knockout:
    def __init__(
        self, n: int, judge: Judge, answer: Runnable[Any, Any] | None, seed: int
    ) -> None:
        self.n, self.judge, self.answer, self.seed = n, judge, answer, seed
        self.kind = kind_of(judge)

    def play(self, request: object, config: RunnableConfig) -> Steps[Best]:
        basis = _match_basis(request)
        if self.kind == "item":
            check_basis_of(self.judge, basis._asdict())
        answers, failures = yield from self._answers(request, ensure_config(config))
        texts = {i: text for i, text in enumerate(answers) if text is not None}
        if not texts:
            details = "; ".join(failure["detail"] for failure in failures)
            raise InputError(f"there is no answer to choose from: {details}")
        play = self._labels if self.kind == "item" else self._rounds
        winner, bracket = yield from play(basis, texts)
        for match in bracket:
            failures += match["verdict"].get("failures") or []
        usages = [match["verdict"].get("usage") or no_usage() for match in bracket]
        return {
            "output": texts[winner],
            "index": winner,
            "answers": answers,
            "bracket": bracket,
            "failures": failures,
            "usage": add_usage(usages),
        }

    def _labels(
        self, basis: MatchBasis, texts: Mapping[int, Text]
    ) -> Steps[tuple[int, list[AnswerMatch]]]:
        bracket = yield from together([self._label(basis, *each) for each in texts.items()])
        scores = {match["a"]: score_of(match["verdict"]) for match in bracket}
        labelled = [i for i in texts if scores[i] is not None]
        return max(labelled or list(texts)[:1], key=lambda i: (scores[i] or 0, -i)), bracket

    def _label(self, basis: MatchBasis, i: int, text: Text) -> Steps[AnswerMatch]:
        task, expected, source = basis
        item = item_for(self.judge, task, text, expected=expected, source=source)
        name = f"answer {i + 1}"
        verdict = yield from verdict_of(self.judge, item, config_for(self.judge, run_name=name))
        winner = None if decision(verdict) is None else i
        return _announce(
            {"round": 1, "a": i, "b": None, "winner": winner, "verdict": verdict}, name
        )

    def _rounds(
        self, basis: MatchBasis, texts: Mapping[int, Text]
    ) -> Steps[tuple[int, list[AnswerMatch]]]:
        players = list(texts)
        random.Random(self.seed).shuffle(players)  # noqa: S311 - a draw, no secret
        bracket: list[AnswerMatch] = []
        number = 0
        while len(players) > 1:
            number += 1
            matchups = list(zip(players[::2], players[1::2], strict=False))
            spare = players[2 * len(matchups) :]
            matches = yield from together(
                [
                    self._match(basis, texts, (number, place), sides)
                    for place, sides in enumerate(matchups, 1)
                ]
            )
            bracket += matches
            winners = (match["winner"] for match in matches)
            players = [i for i in winners if i is not None] + spare
        return players[0], bracket

    def _match(
        self,
        basis: MatchBasis,
        texts: Mapping[int, Text],
        place: tuple[int, int],
        sides: tuple[int, int],
    ) -> Steps[AnswerMatch]:
        a, b = sides
        name = f"match {place[0]}.{place[1]}: answer {a + 1} vs answer {b + 1}"
        task, expected, source = basis
        reference = expected[0] if isinstance(expected, list) else expected
        pair = pair_for(task, texts[a], texts[b], reference=reference, source=source)
        verdict = yield from verdict_of(self.judge, pair, config_for(self.judge, run_name=name))
        winner = b if decision(verdict) == "B" else a
        return _announce(
            {"round": place[0], "a": a, "b": b, "winner": winner, "verdict": verdict}, name
        )

    def _answers(
        self, request: object, config: RunnableConfig
    ) -> Steps[tuple[list[Text | None], list[Failure]]]:
        if self.answer is None:
            answers = request.get("answers") if isinstance(request, Mapping) else None
            if not isinstance(answers, list) or len(answers) != self.n:
                raise InputError(
                    f"without `answer` the input must hold `answers`, a list of {self.n}"
                )
            return [work_in(text, task=task_in(request)) for text in answers], []
        if isinstance(self.answer, BaseChatModel) and isinstance(request, Mapping):
            request = task_in(request)
        samples = yield from together(
            [_sample(self.answer, request, config, (self.seed, i)) for i in range(self.n)]
        )
        return [text for text, _ in samples], [f for _, failures in samples for f in failures]


def _sample(
    writer: Runnable[Any, Any], prompt: object, config: RunnableConfig, draw: tuple[int, int]
) -> Steps[tuple[Text | None, list[Failure]]]:
    """Write one answer; `draw` is the seed and the index of the sample."""
    unit = f"sample {draw[1] + 1}"
    settings: dict[str, float] = {}
    if is_openai_compatible(writer):
        settings["seed"] = sample_seed(*draw)
        if getattr(writer, "temperature", None) is None:
            settings["temperature"] = 0.7
    own = patch_config(config, run_name=unit)
    try:
        reply = yield Wait(
            lambda: writer.invoke(prompt, own, **settings),
            lambda: writer.ainvoke(prompt, own, **settings),
        )
        return work_in(reply, task=prompt), []
    except Exception as exc:  # noqa: BLE001 - a sample fails, whatever its writer raises
        failure: Failure = {
            "step": "sample",
            "unit": unit,
            "reason": "provider_error",
            "detail": f"{type(exc).__name__}: {exc}"[:500],
        }
        return None, [failure]


def _announce(match: AnswerMatch, name: str) -> AnswerMatch:
    """Tell the stream of a match, and return it."""
    emit("match", "best_of", match, name)
    return match
