"""The paper's baselines of writing: one prompt, a topic first, several texts to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer, Send

from langchain_judges.asking.channel import Channel
from langchain_judges.asking.seeds import sample_seed
from langchain_judges.asking.steps import Node, Steps, Update
from langchain_judges.methods.old_base import check_common, finish, prompt_set
from langchain_judges.writing import prompts as texts
from langchain_judges.writing.options import DirectOptions, check_direct_options
from langchain_judges.writing.state import (
    Draft,
    Piece,
    Topic,
    WriteResult,
    WriteState,
    WriteWork,
    WritingTask,
    pick_shape,
)
from langchain_judges.writing.steps import StepModels, Writer, write_questions


def create_direct_writer(  # noqa: PLR0913 - the options of four baselines
    model: str | BaseChatModel,
    *,
    plan: bool = False,
    samples: int = 1,
    choose: Literal["model", "coverage"] = "model",
    repair: int = 0,
    strict: bool = False,
    seed: int = 0,
    instructions: str | None = None,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "write",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[WriteState, None, WritingTask, WriteResult]:
    """Create a writer that divides nothing: the baselines of Saha et al. 2023, section 4.2.

    As it stands it is the zero-shot baseline (1 call); `plan=True` is plan & solve (2
    calls), `samples=5` is self-consistency (6 calls), `samples=5, choose="coverage"` counts
    the concepts instead of asking a model which text has most of them (5 calls).

    Args:
        model: Chat model that writes; a chat model, or a name as `resolve_model` takes it.
        plan: Find a topic first.
        samples: Texts written, at temperature 0.7 if there are several; the paper does not
            say how many.
        choose: Who chooses among several: `"model"`, by one more call, or `"coverage"`,
            for free; of equally good ones the first. A model that fails to choose leaves
            no text.
        repair: Turns in which missing concepts are named and the text is asked for again;
            the paper has none.
        strict: Count a concept as used only in its exact form, not in any word form.
        seed: Of the samples.
        instructions: Your wishes or the language to write in; shown to every step.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply of any step.
        prompts: Replacements for `writing.prompts.DIRECT_PROMPTS`.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph that takes and returns what `create_bsm_writer` does: one group
        with all concepts, and the chosen text as its draft; what that lacks was lost in
        `solve`, and what only a repair lost in `merge`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model cannot be made.
    """
    check_common(
        seed=seed,
        instructions=instructions,
        repairs=repairs,
        name=name,
        checkpointer=checkpointer,
        cache=cache,
        store=store,
    )
    options = check_direct_options(
        plan=plan,
        samples=samples,
        choose=choose,
        repair=repair,
        strict=strict,
        seed=seed,
        instructions=instructions,
        repairs=repairs,
    )
    chosen, version = prompt_set(texts.DIRECT_PROMPTS, prompts)
    channel = Channel(model, temperature)
    steps: StepModels = {
        "plan": (channel, Topic),
        "draft": (channel, Draft),
        "choose": (channel, Topic),
        "repair": (channel, Draft),
    }
    questions = write_questions(steps, chosen, version, repairs, cache)
    questions["draft"] = replace(questions["draft"], sampled=samples > 1)
    writer = _Direct(options, questions)
    graph = StateGraph(WriteState, input_schema=WritingTask, output_schema=WriteResult)
    graph.add_node("start", Node(writer.start))
    graph.add_node("plan", Node(writer.plan))
    graph.add_node("draft", Node(writer.draft))
    graph.add_node("choose", Node(writer.choose))
    graph.add_node("check", Node(writer.check))
    graph.add_node("repair", Node(writer.repair))
    graph.add_edge(START, "start")
    if plan:
        graph.add_edge("start", "plan")
    graph.add_conditional_edges("plan" if plan else "start", writer.draft_each, ["draft"])
    graph.add_edge("draft", "choose")
    graph.add_edge("choose", "check")
    graph.add_conditional_edges("check", writer.after_check, ["repair", END])
    graph.add_edge("repair", "check")
    compiled = graph.compile(checkpointer=checkpointer, store=store, name=name)
    return finish(
        compiled,
        method="write_direct",
        options=options.as_json(),
        models={"write": channel.identity},
        prompt_version=version,
        calls=options.calls(),
        branches=samples,
    )


class _Direct(Writer[DirectOptions]):
    """The steps of the baselines, with their options and questions."""

    def plan(self, state: WriteState) -> Steps[Update]:
        """Find a topic."""
        reply = yield from self.ask("plan", self.material(state))
        topic = reply.data["topic"].strip() if reply.data else None
        return {"topic": topic, "failures": reply.failures, "usages": [reply.usage]}

    def draft_each(self, state: WriteState) -> list[Send]:
        """Send every sample."""
        several = self.options.samples > 1
        return [
            Send(
                "draft",
                {
                    "unit": f"sample {number}" if several else "",
                    "path": str(number),
                    "concepts": state["concepts"],
                    "instruction": state.get("instruction"),
                    "topic": state.get("topic"),
                    "parts": [],
                },
            )
            for number in range(1, self.options.samples + 1)
        ]

    def draft(self, work: WriteWork) -> Steps[Update]:
        """Write one text with all the concepts."""
        number = int(work["path"]) - 1
        seed = sample_seed(self.options.seed, number) if work["unit"] else None
        reply = yield from self.ask("draft", self.material(work), work["unit"], seed=seed)
        text = reply.data["text"].strip() if reply.data else None
        piece: Piece = {"step": "solve", "unit": work["path"], "text": text}
        return {"pieces": [piece], "failures": reply.failures, "usages": [reply.usage]}

    def choose(self, state: WriteState) -> Steps[Update]:
        """Choose among the texts: by the model, or by what they lack."""
        written = [piece["text"] for piece in state["pieces"] if piece["text"]]
        if not written or len(written) == 1:
            return {"text": written[0] if written else None}
        if self.options.choose == "coverage":
            return {"text": min(written, key=lambda text: len(self.lacking(state, text)))}
        reply = yield from self.ask(
            "choose",
            self.material(state, [{"concepts": [], "text": text} for text in written]),
            shape=pick_shape(len(written)),
        )
        text = written[int(reply.data["choice"]) - 1] if reply.data else None
        return {"text": text, "failures": reply.failures, "usages": [reply.usage]}

    def check(self, state: WriteState) -> Steps[Update]:
        """See what the text lacks; asks nothing."""
        yield from ()
        # The draft is the text before any repair.
        drafts: list[str | None] = state["drafts"] if state["turns"] else [state["text"]]
        return self.outcome(state, state["text"], [state["concepts"]], drafts)

    def after_check(self, state: WriteState) -> str:
        """Say what follows."""
        return "repair" if self.wants_repair(state) else END
