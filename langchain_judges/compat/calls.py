"""How other packages' evaluators are called: traced, logged in pytest, in two kinds."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, Protocol

from langsmith import trace
from typing_extensions import TypedDict

from langchain_judges.asking.effects import run
from langchain_judges.integrations.feedback import logged_in_test

P = ParamSpec("P")


class EvaluatorResult(TypedDict):
    """What an evaluator of openevals or agentevals returns."""

    key: str
    score: Any
    comment: str | None
    metadata: dict[str, Any] | None


class Record(Protocol):
    """Records a result and returns it; under a key also as feedback of a test."""

    def __call__(self, result: Any, key: str | None = None) -> Any:
        """Record a result."""


# A score, and the reason for it.
Scored = tuple[Any, str | None]
# An evaluator for event loops, and one for threads.
AsyncEvaluator = Callable[..., Coroutine[Any, Any, Any]]
Evaluator = Callable[..., Any]


def in_threads(factory: Callable[P, AsyncEvaluator]) -> Callable[P, Evaluator]:
    """Return a factory of evaluators for threads, made of one for event loops."""

    @wraps(factory)
    def create(*args: P.args, **options: P.kwargs) -> Evaluator:
        return now(factory(*args, **options))

    create.__name__ = factory.__name__.replace("_async", "")
    return create


def now(evaluator: AsyncEvaluator) -> Evaluator:
    """Return an evaluator for threads, made of one for event loops."""

    @wraps(evaluator)
    def evaluate(**fields: Any) -> Any:
        return run(evaluator(**fields))

    return evaluate


@contextmanager
def recorded(name: str, inputs: Mapping[str, Any]) -> Iterator[Record]:
    """Trace an evaluation; yields what records its result and returns it.

    In a test of LangSmith's pytest plugin the evaluation is traced apart from what it judges,
    and a result with a score is logged as feedback.

    Args:
        name: What the evaluation is called in traces.
        inputs: What it was given.
    """
    with logged_in_test(name) as log, trace(name, inputs=dict(inputs)) as run_tree:

        def record(result: Any, key: str | None = None) -> Any:
            run_tree.end(outputs=result if isinstance(result, dict) else {"output": result})
            if key is not None:
                log(result)
            return result

        yield record


def result_of(key: str, scored: Scored, metadata: dict[str, Any] | None = None) -> Any:
    """Return a score as openevals does."""
    score, comment = scored
    return EvaluatorResult(key=key, score=score, comment=comment, metadata=metadata)
