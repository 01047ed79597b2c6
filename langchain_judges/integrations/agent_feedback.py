"""A judged answer of an agent, and its scores as feedback on the agent's trace."""

from __future__ import annotations

import logging
import threading
import uuid
import warnings
from typing import Any, NotRequired

from langsmith import Client
from langsmith.run_helpers import get_current_run_tree
from langsmith.run_trees import get_cached_client
from langsmith.utils import LangSmithError
from typing_extensions import TypedDict

from langchain_judges.integrations.judging import CaseVerdict, reason_for
from langchain_judges.methods.rubric.replies import CriterionScore
from langchain_judges.rows.texts import PlainText
from langchain_judges.verdict import comment_of

_LOGGER = logging.getLogger(__name__)


class Judged(TypedDict):
    """An answer of the agent, and the judge's verdict on it."""

    answer: PlainText
    """A message if it contains images."""
    work: NotRequired[PlainText]
    """The trajectory that was judged; only with `trajectory`."""
    score: float | int | None
    verdict: CaseVerdict | None
    """None if there was nothing to compare with yet."""
    criteria: NotRequired[list[CriterionScore]]
    """The sub-scores of a judge with several criteria."""


def send_feedback(
    key: str, current: Judged, marks: dict[str, object], judge_run: uuid.UUID, revisions: int
) -> None:
    """Add the score to the agent's trace, if there is one, without waiting for LangSmith."""
    tree = get_current_run_tree()
    if tree is None:
        return
    client = tree.ls_client if isinstance(tree.ls_client, Client) else get_cached_client()
    verdict = current["verdict"]
    shared: dict[str, Any] = {
        "run_id": tree.trace_id,
        "trace_id": tree.trace_id,
        "source_info": marks,
        "feedback_source_type": "model",
        "source_run_id": judge_run,
    }
    failures = (verdict and verdict.get("failures")) or []
    total: dict[str, Any] = {
        "key": key,
        "score": current["score"],
        "comment": comment_of(verdict or {}),
        "extra": {"revisions": revisions, "failures": failures},
    }
    parts: list[dict[str, Any]] = [
        {"key": part["criterion"], "score": part["score"], "comment": reason_for(part)}
        for part in current.get("criteria") or ()
    ]

    def send() -> None:
        try:
            with warnings.catch_warnings():
                # A trace that is still being written has no session id yet.
                warnings.filterwarnings("ignore", "Creating feedback for a run without")
                for each in (total, *parts):
                    client.create_feedback(**shared, **each)
        except (LangSmithError, OSError, ValueError) as exc:
            _LOGGER.warning("The score was not sent to LangSmith: %s", exc)

    threading.Thread(target=send, name="judge-feedback", daemon=True).start()
