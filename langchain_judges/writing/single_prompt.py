"""The paper's baselines of writing: one prompt, a topic first, several texts to choose from."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START
from langgraph.types import Send

from langchain_judges.asking.ask import sample_seed
from langchain_judges.asking.effects import Update
from langchain_judges.asking.nodes import Route
from langchain_judges.methods.declaration import Seed
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.options import factory
from langchain_judges.writing import prompts as texts
from langchain_judges.writing.coverage import missing
from langchain_judges.writing.steps import (
    Draft,
    Shapes,
    Topic,
    Writer,
    WriterOptions,
    WriteState,
    WriteWork,
    pick_shape,
    piece_of,
)


class SinglePromptWriter(WriterOptions):
    """Create a writer that divides nothing: the baselines of Saha et al. 2023, section 4.2.

    As it stands it is the zero-shot baseline (1 call); `plan=True` is plan & solve (2
    calls), `samples=5` is self-consistency (6 calls), `samples=5, choose="coverage"` counts
    the concepts instead of asking a model which text has most of them (5 calls).

    Attributes:
        plan: Find a topic first.
        samples: Texts written, at temperature 0.7 if there are several.
        choose: Who chooses among several: `"model"`, by one more call, or `"coverage"`,
            without one.
        seed: Seed of the samples.

    Returns:
        A compiled graph that takes and returns what `create_bsm_writer` does: one group
        with all concepts, and the chosen text as its draft; what that lacks was lost in
        `solve`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model cannot be made.
    """

    method = "single_prompt"
    summary = "The paper's baselines: all concepts in one prompt, a topic first, samples."
    presets = {
        "zero_shot": {},
        "plan_solve": {"plan": True},
        "self_consistency": {"samples": 5},
        "best_coverage": {"samples": 5, "choose": "coverage"},
    }
    templates = texts.DIRECT_PROMPTS

    plan: bool = False
    samples: Annotated[int, Ge(1)] = 1
    choose: Literal["model", "coverage"] = "model"
    seed: Seed = 0

    @property
    def label(self) -> str:
        """What the method is called in results and traces."""
        return "write_single_prompt"

    def branches(self) -> int:
        """Return the most calls that are in flight at the same time."""
        return self.samples

    def calls(self) -> int:
        """Return the calls for a text."""
        return self.plan + self.samples + (self.samples > 1 and self.choose == "model")


def _graph(writer: _SinglePrompt) -> JudgeGraph:
    context, first = writer.context, "start"
    graph = context.graph()
    graph.add_node("start", context.plain(writer.start))
    graph.add_edge(START, "start")
    if writer.options.plan:
        first = "plan"
        graph.add_node("plan", context.node(writer.plan))
        graph.add_edge("start", "plan")
    graph.add_node("draft", context.node(writer.draft))
    graph.add_node("choose", context.node(writer.choose))
    graph.add_node("check", context.plain(writer.check))
    graph.add_conditional_edges(first, Route(writer.draft_each), ["draft"])
    graph.add_edge("draft", "choose")
    graph.add_edge("choose", "check")
    graph.add_edge("check", END)
    return context.finish(graph)


class _SinglePrompt(Writer[SinglePromptWriter]):
    """The steps of the baselines, with their options and questions."""

    async def plan(self, state: WriteState) -> Update:
        """Find a topic."""
        reply = await self.ask("plan", self.material(state))
        topic = reply.data["topic"].strip() if reply.data else None
        return {"topic": topic, "failures": reply.failures, "usages": [reply.usage]}

    def draft_each(self, state: WriteState) -> list[Send]:
        """Send every sample."""
        numbers = range(1, self.options.samples + 1)
        units = [f"sample {n}" if self.options.samples > 1 else "" for n in numbers]
        return [
            Send("draft", {**self.work(state, state["concepts"], unit), "sample": number})
            for number, unit in zip(numbers, units, strict=True)
        ]

    async def draft(self, work: WriteWork) -> Update:
        """Write one text with all the concepts."""
        number = work["sample"]
        seed = sample_seed(self.options.seed, number - 1) if work["unit"] else None
        reply = await self.ask("draft", self.material(work), work["unit"], seed=seed)
        return piece_of(str(number), reply)

    async def choose(self, state: WriteState) -> Update:
        """Choose among the texts: by the model, or by what they lack."""
        candidates = [piece["text"] for piece in state["pieces"] if piece["text"]]
        if not candidates or len(candidates) == 1:
            return {"text": candidates[0] if candidates else None}
        if self.options.choose == "coverage":
            wanted, counting = state["concepts"], self.options.counting
            lacking = [len(missing(wanted, text, **counting)) for text in candidates]
            return {"text": candidates[lacking.index(min(lacking))]}
        reply = await self.ask(
            "choose",
            self.material(state, [{"concepts": [], "text": text} for text in candidates]),
            shape=pick_shape(len(candidates)),
        )
        text = candidates[int(reply.data["choice"]) - 1] if reply.data else None
        return {"text": text, "failures": reply.failures, "usages": [reply.usage]}

    def check(self, state: WriteState) -> Update:
        """See what the text lacks."""
        text = state["text"]
        return self.outcome(state, text, [state["concepts"]], [text])


def build(options: SinglePromptWriter, model: str | BaseChatModel) -> JudgeGraph:
    """Return the writer."""
    shapes: Shapes = {"plan": Topic, "draft": Draft, "choose": Topic}
    writer = _SinglePrompt.of(options, model, shapes)
    questions = writer.questions
    questions["draft"] = replace(questions["draft"], sampled=options.samples > 1)
    return _graph(writer)


create_single_prompt_writer = factory(SinglePromptWriter, build, "create_single_prompt_writer")
