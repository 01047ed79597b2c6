"""The options of a run, declared once for Python, the command line and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt, Lt, Predicate
from pydantic import InstanceOf

from langchain_judges.options import NotSerialisable, Options, Owner, Rule

if TYPE_CHECKING:
    from langchain_core.rate_limiters import BaseRateLimiter
    from langchain_core.runnables import RunnableConfig

    from langchain_judges.asking.limiter import MinuteLimiter
else:
    # Commands read the limits before they know whether anything of LangChain is needed.
    RunnableConfig = dict[str, Any]
    BaseRateLimiter = MinuteLimiter = object

# A file of the owner, for results to write or prices to read.
FilePath = Annotated[str | InstanceOf[PathLike[str]] | None, Owner(), Rule("a path or None")]


class CallLimits(Options):
    """Bounds on the calls of everything that asks.

    Attributes:
        max_concurrency: Maximum number of model calls in flight; default 16, or 4 with a local
            model.
        max_calls: Stop after this many replies; the remaining rows are reported as
            `over_budget`, and a later run judges them.
        prices: Prices of tokens: a JSON file `{"date", "models": {name: {"input", "output",
            "cached_input", "cache_write", "flex"}}}`, in dollars per million tokens, or
            `"genai-prices"` for that package's table (extra `prices`). The summary and each row
            then show their cost.
        max_dollars: Stop after spending this many dollars; needs `prices`. Where tokens
            were not counted, four bytes of text count as one.
        rate_limiter: Limits the rate of calls: `MinuteLimiter(rpm=…, tpm=…)`, or another
            LangChain rate limiter.
    """

    called: ClassVar[str] = "budget"

    max_concurrency: Annotated[int, Ge(1)] | None = None
    max_calls: Annotated[int, Ge(1)] | None = None
    prices: FilePath = None
    max_dollars: Annotated[float, Gt(0)] | None = None
    rate_limiter: Annotated[
        InstanceOf[BaseRateLimiter | MinuteLimiter] | None,
        Predicate(lambda own: own is None or hasattr(own, "acquire") or hasattr(own, "turn")),
        NotSerialisable(),
        Rule("a LangChain rate limiter or None"),
    ] = None


class RunLimits(CallLimits):
    """Options of every run over many rows.

    Attributes:
        progress: Show progress on the terminal.
    """

    progress: bool = True

    def of_run(self, **others: Any) -> dict[str, Any]:
        """Options of a run within these limits, and others of it."""
        return {name: getattr(self, name) for name in RunLimits.model_fields} | others


class RunOptions(RunLimits):
    """Options of `judge_many` and `ajudge_many`.

    Attributes:
        columns: Columns of a table by the field of a row, such as `{"output": "reply"}`;
            fields that are not named are found by the names that people use. `human_votes`,
            `source` and the two `systems` may be read from a list of columns.
        client: Reads `rows` where they are the name of a LangSmith data set.
        out: The table to write (`.csv`, `.tsv`, `.xlsx`, `.parquet`, `.jsonl`; `.md` for the
            counts by criterion alone): your own columns, then the judge's. `.xlsx` has those
            counts and the failures on separate sheets; a name such as `scores.excel.csv` gets
            the byte-order mark that Excel looks for. The file is written when the run ends. Run
            it again to resume: new rows are judged, and those that could not be. Its state is
            in the hidden folder next to the table, such as `.scores.csv.run`.
        raw: Leave your own cells unchanged in `.csv`, `.tsv` and `.xlsx`, even those that a
            spreadsheet would run as a formula. Otherwise such cells get a leading quote, and
            control characters are replaced.
        same_server: Treat the model's address as part of the judge, so that rows judged without
            this are judged again; otherwise `summary.elsewhere` counts rows taken from another
            address.
        records: A JSONL file that gets each whole result as it arrives. The same call resumes
            from it: rows that it holds for the same texts, method, options, model and prompts
            are not judged again.
        keep_requests: Keep each request with its reply in a hidden file next to the results,
            for `view` to show. They contain the judged texts.
        shard: Judge only this share of the rows, such as `"3/16"`; `records` is then a folder
            with a part for each shard, and `merge` joins the parts.
        open_rows: The most rows that are started and not finished; None for twice
            `max_concurrency`.
        max_rows: Judge at most this many rows, from the top.
        on_bug: What a bug in a judge's code does, such as a KeyError in a step: `"raise"` ends
            the run with it, `"collect"` makes the row a failure `internal_error` and goes on.
        config: Callbacks, tags and metadata for every judgment.
        graph: Let LangGraph run each judgment even where nobody would notice: without callbacks
            and a checkpointer its phases are awaited, and traced without LangGraph's own
            metadata, one after the other, which saves about a millisecond a row.
    """

    called: ClassVar[str] = "judge_many"

    columns: Annotated[Mapping[str, str | Sequence[str]] | None, Rule("columns by field")] = None
    client: Annotated[object, NotSerialisable(), Rule("a LangSmith client or None")] = None
    out: FilePath = None
    raw: bool = False
    same_server: bool = False
    records: FilePath = None
    keep_requests: bool = False
    shard: Annotated[str | None, Rule("NUMBER/OF, such as '3/16'")] = None
    open_rows: Annotated[int, Ge(1)] | None = None
    max_rows: Annotated[int, Ge(1)] | None = None
    on_bug: Literal["raise", "collect"] = "raise"
    config: Annotated[RunnableConfig | None, NotSerialisable(), Rule("a `RunnableConfig`")] = None
    graph: bool = False


class CalibrationOptions(RunLimits):
    """Options of `calibrate_cascade`.

    Attributes:
        agreement: The share of verdicts that must equal the label.
        delta: The probability that the guarantee does not hold.
        records: A JSONL file for the verdicts of all judges, from which an interrupted run
            resumes.
    """

    called: ClassVar[str] = "calibrate_cascade"

    agreement: Annotated[float, Gt(0), Lt(1)] = 0.9
    delta: Annotated[float, Gt(0), Lt(1)] = 0.1
    records: FilePath = None
