"""Feedback as a caller gets it, on which scale; logged in a test, sent to an agent's run."""

from __future__ import annotations

import logging
import threading
import uuid
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, NamedTuple, Self

from langsmith.evaluation import EvaluationResult
from langsmith.run_helpers import get_current_run_tree
from langsmith.utils import LangSmithError

from langchain_judges.errors import OptionError
from langchain_judges.integrations import eval_cases as cases
from langchain_judges.methods import describe
from langchain_judges.options import check_value
from langchain_judges.runs.run_row import digest_of, run_fingerprint
from langchain_judges.runs.run_state import Judge

_LOGGER = logging.getLogger(__name__)

# How the score of 3 of 5 is given: as 0.5 between the worst and the best, as 0.6 of the best,
# or as 3.
ScoreScale = Literal["unit", "share", "raw"]


class Feedback(dict[str, Any]):
    """Result of an evaluator: `key`, `score`, `comment`, `metadata` and more.

    Of several criteria it is the total, with all feedback as a list under `results`, where
    LangSmith looks for it. Awaited it is itself.
    """

    def __await__(self) -> Generator[None, None, Self]:
        """The outcome, without waiting."""
        yield from ()
        return self


def in_openevals_form(results: Sequence[EvaluationResult]) -> Feedback:
    """LangSmith's results in the form of openevals, the first with all under `results`."""
    several = list[Feedback]()
    for each in results:
        own = {name: getattr(each, name) for name in ("key", "score", "comment")}
        own["source_run_id"] = each.source_run_id and str(each.source_run_id)
        about = {**each.evaluator_info, **(each.extra or {"label": each.value})}
        several.append(Feedback(own, metadata=about))
    return Feedback(several[0], results=several) if len(several) > 1 else several[0]


class Span(NamedTuple):
    """The scale of scores, and the worst and the best label where labels are numbers.

    The best may be the lowest, where scores are not shares of it.
    """

    scale: ScoreScale = "unit"
    low: float = 0.0
    high: float = 1.0

    def score(self, unit: float | None) -> float | None:
        """A score from 0 to 1 on this scale."""
        if unit is None or self.scale == "unit":
            return unit
        return (self.low + unit * (self.high - self.low)) / self._whole

    @property
    def _whole(self) -> float:
        return self.high if self.scale == "share" else 1.0

    @property
    def config(self) -> dict[str, object]:
        """The scale as LangSmith draws it."""
        low, high = sorted((self.low / self._whole, self.high / self._whole))
        return {"type": "continuous", "min": low, "max": high}

    @property
    def said(self) -> dict[str, object]:
        """The metadata of feedback on it."""
        return {"scale": self.scale, "direction": f"{self.high / self._whole:g} is good"}


UNIT = Span()


def spans_of(judge: object, key: str, scale: ScoreScale) -> Mapping[str, Span]:
    """The spans of a judge's scores by key, where they are not from 0 to 1.

    Args:
        judge: The judge.
        key: Key of its total, which has a span if all its criteria have the same.
        scale: How scores are given.

    Raises:
        OptionError: The scale is none, or the judge's labels are no numbers, or of shares no
            numbers from 0 up to the best.
    """
    check_value("scale", scale, ScoreScale)
    if scale == "unit":
        return {}
    rubric = describe.option_of(judge, "own_rubric")
    criteria = rubric.criteria if rubric else ()
    ends = {each.name: (each.names[0], each.names[-1]) for each in criteria if each.is_graded}
    are_shares = scale != "share" or all(0 <= worst < best for worst, best in ends.values())
    if not ends or len(ends) < len(criteria) or not are_shares:
        raise OptionError(cases.WORDS["scale"].format(scale=scale))
    spans = {name: Span(scale, *own) for name, own in ends.items()}
    return {**spans, key: next(iter(spans.values()))} if len({*spans.values()}) == 1 else spans


def judge_mark(judge: Judge) -> str:
    """Mark of all that decides a judge's verdicts but for what its memory learns."""
    return digest_of(run_fingerprint(judge, "")[0]).hex()[:12]


def feedback_of(
    judge: Judge, score: cases.CaseScore, span: Span = UNIT, source: uuid.UUID | None = None
) -> EvaluationResult:
    """A score as feedback, with what gave it and on which scale.

    Args:
        judge: The judge that gave it.
        score: The score.
        span: The scale on which it is given.
        source: The judge's own run.
    """
    info: Any = {**describe.fingerprint_of(judge), "mark": judge_mark(judge), **span.said}
    if assumed := describe.assumptions_of(judge):
        info["assumed"] = " ".join(assumed)
    own: Any = {name: getattr(score, name) for name in ("key", "value", "comment", "extra")}
    own |= {"score": span.score(score.score), "feedback_config": span.config}
    return EvaluationResult(**own, evaluator_info=info, source_run_id=source)


def posted(feedback: EvaluationResult) -> dict[str, Any]:
    """Fields that LangSmith's `create_feedback` takes, as `evaluate` gives them."""
    own = feedback.model_dump(exclude={"evaluator_info", "metadata", "target_run_id"})
    return {**own, "source_info": feedback.evaluator_info, "feedback_source_type": "model"}


@contextmanager
def logged_in_test(name: str) -> Iterator[Callable[[Sequence[EvaluationResult]], None]]:
    """Yield what logs feedback in a test of LangSmith's pytest plugin, and elsewhere nothing.

    There the evaluation is traced apart from what it judges.

    Args:
        name: What the evaluation is called in traces.
    """
    # Loaded on use: most programs are no tests.
    from langsmith import testing

    with ExitStack() as stack:
        is_test = True
        try:
            stack.enter_context(testing.trace_feedback(name=name))
        except ValueError:  # the plugin's way to say that this is none of its tests
            is_test = False

        def log(results: Sequence[EvaluationResult]) -> None:
            for each in results if is_test else ():
                testing.log_feedback(**posted(each))

        yield log


def send_feedback(
    judge: Judge, outcome: cases.JudgmentResult, key: str, judge_run: uuid.UUID, revisions: int
) -> None:
    """Add the scores to the agent's run, if it is traced, without waiting for LangSmith."""
    tree = get_current_run_tree()
    if tree is None:
        return
    # The agent of this node; others may be above it in the trace.
    client, run_id, trace_id = tree.client, tree.parent_run_id or tree.id, tree.trace_id

    def send() -> None:
        try:
            with warnings.catch_warnings():
                # A trace that is still being written has no session id yet.
                warnings.filterwarnings("ignore", "Creating feedback for a run without")
                for each in cases.scores_of(outcome, key):
                    extra = each.extra and {**each.extra, "revisions": revisions}
                    said = feedback_of(judge, each._replace(extra=extra), source=judge_run)
                    client.create_feedback(run_id, trace_id=trace_id, **posted(said))
        except (LangSmithError, OSError, ValueError) as exc:
            _LOGGER.warning("The score was not sent to LangSmith: %s", exc)

    threading.Thread(target=send, name="judge-feedback", daemon=True).start()
