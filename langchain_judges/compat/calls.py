"""Calls of other packages' evaluators: traced, logged in pytest, sync and async."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

from langsmith import trace
from langsmith.evaluation import EvaluationResult

from langchain_judges.asking.effects import run
from langchain_judges.integrations.feedback import logged_in_test

P = ParamSpec("P")
# An asynchronous evaluator.
AsyncEvaluator = Callable[..., Coroutine[Any, Any, Any]]


def in_threads(factory: Callable[P, AsyncEvaluator]) -> Callable[P, Callable[..., Any]]:
    """A factory of synchronous evaluators, made from one of asynchronous evaluators."""

    @wraps(factory)
    def create(*args: P.args, **options: P.kwargs) -> Callable[..., Any]:
        return now(factory(*args, **options))

    create.__name__ = factory.__name__.replace("_async", "")
    return create


def now(evaluator: AsyncEvaluator) -> Callable[..., Any]:
    """A synchronous evaluator, made from an asynchronous one."""

    @wraps(evaluator)
    def evaluate(**fields: Any) -> Any:
        return run(evaluator(**fields))

    return evaluate


@contextmanager
def recorded(name: str, inputs: Mapping[str, Any]) -> Iterator[Callable[..., Any]]:
    """Trace an evaluation; yields a function that records its result and returns it.

    In a test of LangSmith's pytest plugin the evaluation is traced apart from what it judges,
    and a result with a key is logged as feedback.

    Args:
        name: What the evaluation is called in traces.
        inputs: Its inputs.
    """
    with logged_in_test(name) as log, trace(name, inputs=dict(inputs)) as run_tree:

        def record(result: Any, key: str | None = None) -> Any:
            run_tree.end(outputs=result if isinstance(result, dict) else {"output": result})
            if key is not None:
                log([EvaluationResult(**{n: result[n] for n in ("key", "score", "comment")})])
            return result

        yield record


def result_of(key: str, score: Any, reasoning: Any = None, metadata: Any = None) -> Any:
    """A score as openevals and agentevals return it."""
    return {"key": key, "score": score, "comment": reasoning, "metadata": metadata}
