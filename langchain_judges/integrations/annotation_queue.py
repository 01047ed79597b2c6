"""Annotation queues of LangSmith: people label doubtful runs there.

That closes the loop of production: `watch_project` queues doubtful runs, people label them, and
an audit with `auditor="labels"` teaches the judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from langsmith import Client

from langchain_judges.errors import InputError
from langchain_judges.integrations.cases import CaseReader, TextSources
from langchain_judges.integrations.langsmith_runs import (
    CORRECTED,
    is_of_people,
    label_of_correction,
    runs_in_queue,
)
from langchain_judges.methods.describe import unwrapped
from langchain_judges.methods.rubric.options import LabelOptions
from langchain_judges.rows.lookup import TextSource
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import Label

if TYPE_CHECKING:
    from langsmith.schemas import Feedback, Run


class QueuedRuns(NamedTuple):
    """The runs of an annotation queue.

    Attributes:
        items: Those that people labelled, as an audit takes them: `label`, `note`, `auditor`.
        left_out: The ids of the others, and why each was left out.
    """

    items: list[dict[str, object]]
    left_out: list[tuple[str, str]]


def labelled_runs(
    client: Client,
    queue: str,
    judge: Judge,
    *,
    key: str | None = None,
    context: TextSource = None,
) -> QueuedRuns:
    """Return the runs of an annotation queue that people labelled.

    A label is people's feedback on the run: the value, else the score; or their correction of
    a judge's feedback. A score from 0 to 1 stands for the label at that place between the worst
    and the best, as `watch_project` posts it.

    Args:
        client: LangSmith's client.
        queue: The name of the queue.
        judge: A judge of one text, which decides what is read of a run and what a label is.
        key: The name of the feedback; default the only one that people gave.
        context: Where the source is, as in `as_evaluator`.

    Raises:
        InputError: There is no such queue, or people gave feedback under several names.
    """
    runs = runs_in_queue(client, queue)
    ids = [str(run.id) for run in runs]
    answers = _by_people(client, ids, key)
    reader = CaseReader(judge, TextSources(None, None, None, context))
    options = getattr(unwrapped(judge), "options", None)
    labels = options.human_labels if isinstance(options, LabelOptions) else ()
    result = QueuedRuns([], [])
    for run in runs:
        try:
            result.items.append(_item(run, answers.get(str(run.id)), reader, labels))
        except InputError as exc:
            result.left_out.append((str(run.id), str(exc)))
    return result


def _by_people(client: Client, ids: list[str], key: str | None) -> dict[str, Feedback]:
    """Return the latest label of people by run."""
    if not ids:
        return {}
    every = client.list_feedback(run_ids=ids, feedback_key=[key] if key else None)
    own = [each for each in every if is_of_people(each)]
    if len(keys := sorted({each.key for each in own})) > 1:
        raise InputError(
            f"people gave feedback under several names: {', '.join(keys)}; say which of them "
            "is the label, by `key` or --column label=NAME"
        )
    return {str(each.run_id): each for each in sorted(own, key=lambda one: one.modified_at)}


def _item(
    run: Run, feedback: Feedback | None, reader: CaseReader, labels: Sequence[Label]
) -> dict[str, object]:
    if feedback is None:
        raise InputError("nobody has labelled it yet")
    item = {**reader.of_run(run), "label": _label(feedback, labels)}
    source = feedback.feedback_source
    person = getattr(source, "user_name", None) or getattr(source, "user_id", None)
    item["auditor"] = str(person or "langsmith")
    return {**item, "note": feedback.comment} if feedback.comment else item


def _label(feedback: Feedback, labels: Sequence[Label]) -> Label:
    value: object = feedback.value
    given: object = feedback.score
    if (corrected := label_of_correction(feedback)) is not None:
        fields = feedback.correction if isinstance(feedback.correction, Mapping) else {}
        # A score alone is a place among the labels.
        is_score = {*CORRECTED} & fields.keys() == {"score"}
        value, given = (None, corrected) if is_score else (corrected, None)
    value = _number(value)
    if isinstance(value, str | int | float):
        return value
    if not isinstance(given, int | float):
        raise InputError(f"its feedback is no label: {value!r}")
    score = float(given)
    if not 0 <= score <= 1 or not labels:
        return _number(score)  # type: ignore[return-value]  # a number
    at_place = labels[round(score * (len(labels) - 1))]
    if score in labels and at_place != score:
        raise InputError(
            f"its score {score:g} may be a label or a place between the worst and the best; "
            "people have to give a value"
        )
    return at_place


def _number(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
