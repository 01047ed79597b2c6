"""The judge that an audit teaches: given, or made of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel, BaseLanguageModel
from langchain_core.runnables import Runnable
from langgraph.graph.state import CompiledStateGraph

from langchain_judges.errors import OptionError
from langchain_judges.memory.recall import Memory, check_memory
from langchain_judges.methods.allure.audit.options import AuditOptions
from langchain_judges.methods.allure.judge import create_allure_judge
from langchain_judges.methods.describe import memory_of, metadata_of, unwrapped


def judge_to_audit(
    judge: Runnable[Any, Any] | str, memory: Memory, options: AuditOptions
) -> tuple[Runnable[Any, Any], Mapping[str, Any]]:
    """Return the judge that an audit teaches, made first of a model, and its metadata.

    Args:
        judge: A judge, or a model as `create_allure_judge` takes it.
        memory: What the judge must show examples of.
        options: Of the audit; some are those of a judge that is made here.

    Raises:
        OptionError: It is no judge, or one that would learn nothing of `memory`; or it is one
            and the options cannot be its own any more.
        ModelSetupError: The model cannot be made.
    """
    check_memory(memory)
    if memory is None:
        raise OptionError("`memory` must be a FailureMemory, got None")
    judge_options = {
        name: getattr(options, name) for name in ("instructions", "temperature", "cache")
    }
    if isinstance(judge, str | BaseChatModel):
        labels = (0, 1) if options.labels is None else options.labels
        judge_options["repairs"] = options.repairs
        judge = create_allure_judge(judge, memory=memory, labels=labels, **judge_options)
    elif late := [option for option, value in judge_options.items() if value is not None]:
        raise OptionError(f"`{late[0]}` goes with a model; the judge that is given has its own")
    inner = unwrapped(judge)
    if not isinstance(inner, Runnable) or isinstance(inner, BaseLanguageModel):
        raise OptionError(
            "`judge` must be a judge of one text, such as `create_allure_judge` makes, or a "
            f"chat model (without `bind` or `with_retry`), got {type(judge).__name__}"
        )
    marks = metadata_of(judge)
    method = marks.get("method", "")
    if method not in ("", "allure"):
        raise OptionError(f"`judge` must be a judge of one text, got the method {method!r}")
    if method and memory_of(judge) is not memory:
        has = "no memory" if memory_of(judge) is None else "another memory"
        raise OptionError(f"`judge` has {has}, so it would learn nothing of the audit")
    return judge, marks


def alone(judge: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a judge that does not write checkpoints of its own into those of the loop."""
    if isinstance(judge, CompiledStateGraph) and judge.checkpointer is None:
        return judge.copy(update={"checkpointer": False})
    return judge
