"""A judge as a tool of an agent."""

from __future__ import annotations

import json

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field

from langchain_judges.asking.effects import run
from langchain_judges.errors import InputError, OptionError, OverBudget
from langchain_judges.integrations import eval_cases as cases
from langchain_judges.methods.describe import kind_of, leaves_of, option_of
from langchain_judges.rows.lookup import check_words
from langchain_judges.runs.run_state import Judge
from langchain_judges.verdict import score_of


class PairArguments(BaseModel, extra="forbid"):
    """Arguments of a judge of pairs as a tool."""

    input: str = Field(description="The task that both texts answer.")
    output_a: str = Field(description="The first text.")
    output_b: str = Field(description="The second text.")


class ItemArguments(BaseModel, extra="forbid"):
    """Arguments of a judge of one text as a tool."""

    input: str = Field(description="The task that the text answers.")
    output: str = Field(description="The text to judge.")
    expected: str | None = Field(None, description="A known answer, if there is one.")
    source: str | None = Field(None, description="What the text must be true to, if any.")


def judge_tool(
    judge: Judge, *, name: str | None = None, description: str | None = None
) -> BaseTool:
    """Make a judge a tool for an agent.

    The tool returns `{"preference" or "label", "score", "rationale"}` as JSON, and the full
    verdict as its artifact. If the texts cannot be judged, the model gets the reason.

    Args:
        judge: A judge of this package, or a runnable that declares what it takes.
        name: Name of the tool; default `compare_texts` or `judge_text`.
        description: The tool's description for the model; default what it judges, and by what.

    Raises:
        OptionError: `judge` takes neither a pair nor an item, or needs more than texts; or an
            option is not allowed.
    """
    check_words(name=name, description=description)
    pairs = kind_of(judge) == "pair"
    needed = _needs(judge)
    if more := sorted(needed - {"expected", "source"}):
        raise OptionError(cases.WORDS["needs_more"].format(more=", ".join(more)))

    async def steps(**arguments: object) -> tuple[str, cases.CaseVerdict]:
        # A model may write nothing where nothing is known.
        case = {n: own for n, own in arguments.items() if own or n not in ("expected", "source")}
        if lost := sorted(needed - case.keys()):
            raise ToolException(f"give {', '.join(lost)} too: without it there is no verdict")
        try:
            outcome = await cases.judge_aside(judge, case)
        except (InputError, OverBudget) as exc:
            raise ToolException(str(exc)) from exc
        verdict = outcome["verdict"]
        summary = {k: v for k, v in verdict.items() if k in {"preference", "label"}}
        summary |= {"score": score_of(verdict), "rationale": cases.reasons_of(outcome)}
        return json.dumps(summary, ensure_ascii=False), verdict

    return StructuredTool.from_function(
        func=lambda **arguments: run(steps(**arguments)),
        coroutine=steps,
        name=name or ("compare_texts" if pairs else "judge_text"),
        description=description or _purpose(judge, pairs),
        args_schema=PairArguments if pairs else ItemArguments,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _needs(judge: Judge) -> set[str]:
    """The parts of a row that a judge cannot do without, besides the task and the text."""
    needs = [
        {*(option_of(leaf, "needed") or ()), *["source"] * bool(option_of(leaf, "needs_source"))}
        for leaf in leaves_of(judge)
    ]
    return set.intersection(*needs)  # one member that lacks something leaves others to judge


def _purpose(judge: Judge, pairs: bool) -> str:
    """Description of the tool, with its criteria."""
    rubric = option_of(judge, "own_rubric")
    by = [each.description or each.name for each in rubric.criteria] if rubric else []
    if instructions := option_of(judge, "instructions"):
        by.append(instructions)
    purpose = "Say which of two texts answers a task better." if pairs else "Judge a text."
    return f"{purpose} It is judged by: {' '.join(by)}"[:1000] if by else purpose
