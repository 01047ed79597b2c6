"""Evaluation of written texts: what they lack, where it was lost, and how they read.

`evaluate_writing` needs no model for the first two. How texts read is asked of a judge of
pairs, by default the zero-shot relative one that `create_story_judge` makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NotRequired

from typing_extensions import TypedDict

from langchain_judges.asking.models import ModelLike
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods import graph, registry
from langchain_judges.methods.pairs import prompts_in
from langchain_judges.rows.checks import check_task
from langchain_judges.runs.many import judge_many
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import Pair, Verdict
from langchain_judges.writing.coverage import ENGLISH, Counting, distinct, losses, missing
from langchain_judges.writing.steps import WORDS


class TextRow(TypedDict):
    """A text that is measured, and the task that it was written for."""

    concepts: list[str]
    text: str | None
    instruction: NotRequired[str | None]
    groups: NotRequired[list[list[str]]]
    drafts: NotRequired[list[str | None]]


class Quality(TypedDict):
    """Wins and losses of texts against others of the same tasks; a win needs both orders.

    Attributes:
        not_compared: Tasks for which one side has no text.
    """

    compared: int
    win: int
    tie: int
    loss: int
    not_judged: int
    not_compared: int
    flips: int


class Writing(TypedDict):
    """The quality of texts; shares are None if nothing was written.

    Attributes:
        written: The shares below are over these, but for `all_present`.
        all_present: The share of all tasks with a text that uses every concept; a task without
            a text has none.
        missing: The mean over texts of the share of concepts that are missing.
        lost_in: Missing concepts by the step that lost them, over texts that come with their
            drafts.
        failing: The share of texts with something missing, by its source: `solve` if any
            concept was lost there, else `merge`; None if a text comes without its drafts.
        quality: None where the texts were compared with none.
    """

    tasks: int
    written: int
    all_present: float | None
    missing: float | None
    lost_in: dict[str, int]
    failing: dict[str, float] | None
    quality: Quality | None


def evaluate_writing(
    results: Iterable[Mapping[str, object]],
    against: Iterable[Mapping[str, object]] | None = None,
    *,
    judge: Judge | None = None,
    strict: bool = False,
    language: str = ENGLISH,
    **limits: Any,
) -> Writing:
    """Measure written texts: coverage, losses by source, and quality against other texts.

    Args:
        results: What writers return, or any rows with `concepts` and `text` (None where
            nothing was written); `instruction`, `groups` and `drafts` if there are any.
        against: Other texts for the same tasks, in the same order, such as a baseline's.
        judge: Any judge of pairs; its own rule combines the orders, and the default rule
            `strict` of the judges here gives a win only if both orders agree. Default with
            a model: `create_story_judge(model)`.
        strict: Count a concept as used only in its exact form.
        language: Whose word forms count, as of the writer.
        limits: `max_calls`, `max_dollars` and other options of `judge_many`.

    Returns:
        A `Writing`; texts that were not written are counted, fail `all_present`, and are left
        out of the other shares.

    Raises:
        InputError: A row has no concepts, or the two sides are not of the same tasks.
        OptionError: There is something to compare with and no judge.

    Source: Saha et al. 2023, section 4.2 and table 6 (all present, missing concepts).
    """
    counting: Counting = {"strict": strict, "language": language}
    rows = _measurable_rows(results)
    pairs = _pairs(rows, against, judge)
    verdicts: list[Any] = []
    if pairs and judge is not None:
        run = judge_many(judge, pairs, **{"progress": False, **limits})
        verdicts = [row["verdict"] for row in run]
    return _measured(rows, pairs, verdicts, counting)


def _measurable_rows(results: Iterable[Mapping[str, object]], side: str = "") -> list[TextRow]:
    """Rows that can be measured; a blank text is none."""
    rows: list[TextRow] = []
    for number, result in enumerate(results, 1):
        row: Any = dict(result) if isinstance(result, Mapping) else result
        try:
            check_task(row)
            _check_text_row(row)
        except InputError as exc:
            raise InputError(f"row {number}{side}: {exc}") from exc
        row["text"] = row["text"] if (row.get("text") or "").strip() else None
        rows.append(row)
    return rows


def _check_text_row(row: Mapping[str, Any]) -> None:
    text, groups, drafts = row.get("text"), row.get("groups"), row.get("drafts")
    if text is not None and not isinstance(text, str):
        raise InputError(f"`text` must be a text or null, got {type(text).__name__}")
    are_lists = isinstance(groups, list) and isinstance(drafts, list)
    if (groups and drafts) and not (
        are_lists
        and len(groups) == len(drafts)
        and all(isinstance(group, list) for group in groups)
        and all(isinstance(draft, str | None) for draft in drafts)
    ):
        raise InputError("`groups` must be lists of concepts, with a draft or null for each")


def _pairs(
    rows: list[TextRow], against: Iterable[Mapping[str, object]] | None, judge: Judge | None
) -> list[Pair] | None:
    """The pairs to judge, ours as A; None if there is nothing to compare with."""
    if against is None:
        return None
    if judge is None:
        raise OptionError(WORDS["no_judge"])
    others = _measurable_rows(against, " of `against`")
    if len(others) != len(rows):
        raise InputError(f"`against` needs a row for each of {len(rows)}, got {len(others)}")
    pairs: list[Pair] = []
    for number, (row, other) in enumerate(zip(rows, others, strict=True), 1):
        concepts = distinct(row["concepts"])
        if distinct(other["concepts"]) != concepts:
            raise InputError(f"row {number} of `against` is of other concepts")
        if row["text"] and other["text"]:
            # Without the concepts: how many a text uses was counted, and must not decide.
            task = row.get("instruction") or WORDS["instruction"]
            pairs.append({"input": task, "output_a": row["text"], "output_b": other["text"]})
    return pairs


def _measured(
    rows: list[TextRow], pairs: list[Pair] | None, verdicts: list[Verdict], counting: Counting
) -> Writing:
    texts = [(row, row["text"]) for row in rows if row["text"]]
    shares: list[float] = []
    lost_in: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    drafts = 0
    for row, text in texts:
        concepts = distinct(row["concepts"])
        shares.append(len(missing(concepts, text, **counting)) / len(concepts))
        if row.get("groups") and row.get("drafts"):
            drafts += 1
            omissions = losses(concepts, row["groups"], row["drafts"], text, **counting)
            lost = [each["lost_in"] for each in omissions]
            lost_in.update(lost)
            sources.update(["solve" if "solve" in lost else "merge"] if lost else [])
    complete, steps = bool(texts) and drafts == len(texts), ("solve", "merge")
    return {
        "tasks": len(rows),
        "written": len(texts),
        "all_present": _ratio(shares.count(0), len(rows)),
        "missing": _ratio(sum(shares), len(texts)),
        "lost_in": {step: lost_in[step] for step in steps},
        "failing": {step: sources[step] / drafts for step in steps} if complete else None,
        "quality": None if pairs is None else _quality(len(rows), verdicts),
    }


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def _quality(tasks: int, verdicts: list[Verdict]) -> Quality:
    preferred = Counter(verdict["preference"] for verdict in verdicts)
    return {
        "compared": len(verdicts),
        "win": preferred["A"],
        "tie": preferred["tie"],
        "loss": preferred["B"],
        "not_judged": preferred[None],
        "not_compared": tasks - len(verdicts),
        "flips": sum(bool(verdict.get("flipped")) for verdict in verdicts),
    }


def create_story_judge(model: ModelLike, **options: Any) -> graph.JudgeGraph:
    """Create the default judge of `evaluate_writing`: zero-shot, relative, in both orders.

    It is shown the two texts alone: no concepts, no task.

    Args:
        model: What `resolve_model` takes.
        **options: Keywords of the relative judge; `instructions` are added to its prompt.
    """
    story = prompts_in("direct/prompts.yaml", "story")
    return registry.load_judge("relative", model, **{"prompts": story, **options})
