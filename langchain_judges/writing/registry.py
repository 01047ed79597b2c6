"""Every writer by name: its presets and its factory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.methods.registry import Builder, options_of
from langchain_judges.writing import branch, single_prompt
from langchain_judges.writing.steps import WriterOptions

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

WRITERS: dict[str, type[WriterOptions]] = {
    kind.method: kind for kind in (branch.BranchWriter, single_prompt.SinglePromptWriter)
}
# By the same names what makes a writer of checked options and a model.
BUILDERS: dict[str, Builder] = {"branch": branch.build, "single_prompt": single_prompt.build}


def load_writer(
    method: str, model: str | BaseChatModel, *, preset: str | None = None, **options: Any
) -> JudgeGraph:
    """Create a writer by the name of its method.

    Args:
        method: A key of `WRITERS`: `"branch"`, or `"single_prompt"` for the baselines.
        model: What `resolve_model` takes.
        preset: One of the method's presets.
        **options: Keywords of the method's factory; they override the preset's.

    Raises:
        OptionError: The method, preset or an option is unknown.
    """
    checked = options_of(WRITERS, method, preset, options)
    return BUILDERS[method](checked, model)
