"""The limits of a run, each declared once: for Python, the command line and comparisons."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from annotated_types import Ge, Gt
from pydantic import AfterValidator, InstanceOf

from langchain_judges.options import Here, Options, Owner, Rule

if TYPE_CHECKING:
    from langchain_core.rate_limiters import BaseRateLimiter
    from langchain_core.runnables import RunnableConfig
else:
    # Commands read the limits before they know whether anything of LangChain is needed.
    RunnableConfig = dict[str, Any]
    BaseRateLimiter = object

FilePath = Annotated[str | InstanceOf[PathLike[str]] | None, Owner(), Rule("a path or None")]
"""A file of the owner's: results are written to it, or prices read from it."""


def _limits(value: object) -> object:
    if value is not None and not callable(getattr(value, "acquire", None)):
        raise ValueError
    return value


class RunLimits(Options):
    """What bounds every run over many rows."""

    max_concurrency: Annotated[int, Ge(1)] | None = None
    """Most model calls in flight; None: 16, with a local model 4."""
    progress: bool = True
    """Show progress on the terminal."""
    keep_failed: bool = False
    """Do not try rows again that an earlier run could not judge."""


class RunOptions(RunLimits):
    """How `judge_many` and `ajudge_many` run."""

    called: ClassVar[str] = "judge_many"

    out: FilePath = None
    """A JSONL file to which each result is appended as it comes. Rows that it holds already,
    under the same method, options, model and prompts, are not judged again; rows that were
    not judged are tried again."""
    shard: Annotated[str | None, Rule("NUMBER/OF, such as '3/16'")] = None
    """Judge only this share of the rows, such as `"3/16"`; `out` is then a folder in which
    each shard has a part of its own, and `merge` joins them."""
    with_texts: bool = False
    """Write what was judged into each result, too."""
    open_rows: Annotated[int, Ge(1)] | None = None
    """Most rows begun and not finished; None: twice `max_concurrency`. Each takes up to half a
    megabyte."""
    max_calls: Annotated[int, Ge(1)] | None = None
    """Ask nothing more after so many replies; the rest is reported as `over_budget`, and
    judged by a later run."""
    max_tokens: Annotated[int, Ge(1)] | None = None
    """Ask nothing more after so many tokens; replies in flight still come in."""
    prices: FilePath = None
    """What tokens cost: a JSON file `{"date", "models": {name: {"input", "output",
    "cached_input", "batch"}}}`, in dollars for a million tokens, or `"genai-prices"` for that
    package's table (extra `prices`). The summary and each row then have their cost."""
    max_cost: Annotated[float, Gt(0)] | None = None
    """Ask nothing more after so many dollars; needs `prices`."""
    rate_limiter: Annotated[
        InstanceOf[BaseRateLimiter] | None,
        AfterValidator(_limits),
        Here(),
        Rule("a LangChain rate limiter or None"),
    ] = None
    """Bounds how often a call is made: `MinuteLimiter(rpm=…, tpm=…)`, or another of
    LangChain's."""
    config: Annotated[RunnableConfig | None, Here(), Rule("a `RunnableConfig`")] = None
    """Callbacks, tags and metadata for every judgment."""
