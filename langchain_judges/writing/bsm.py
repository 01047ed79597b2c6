"""Branch-Solve-Merge writing under constraints: split → solve → merge (Saha et al. 2023)."""

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

from langchain_judges.asking.ask import Reply
from langchain_judges.asking.channel import Channel
from langchain_judges.asking.steps import Node, Steps, Update
from langchain_judges.methods.old_base import check_common, finish, prompt_set
from langchain_judges.writing import prompts as texts
from langchain_judges.writing.options import WriteOptions, check_write_options
from langchain_judges.writing.split import ToDo, Tree, placed, runs
from langchain_judges.writing.state import (
    Draft,
    Piece,
    Topic,
    WriteResult,
    WriteState,
    WriteWork,
    WritingTask,
    parse_split,
    split_shape,
)
from langchain_judges.writing.steps import StepModels, Writer, write_questions


def create_bsm_writer(  # noqa: PLR0913 - the options of the method
    model: str | BaseChatModel,
    *,
    groups: int = 2,
    merge: Literal["once", "tree"] = "once",
    depth: int = 1,
    repair: int = 1,
    strict: bool = False,
    split_model: str | BaseChatModel | None = None,
    merge_model: str | BaseChatModel | None = None,
    instructions: str | None = None,
    temperature: float | None = None,
    repairs: int = 1,
    prompts: Mapping[str, ChatPromptTemplate] | None = None,
    name: str = "write",
    checkpointer: Checkpointer = None,
    cache: BaseCache | None = None,
    store: BaseStore | None = None,
) -> CompiledStateGraph[WriteState, None, WritingTask, WriteResult]:
    """Create a writer of texts that use every one of many concepts (Saha et al. 2023, 4).

    `split` finds a topic and divides the concepts into groups; `solve` drafts a text for
    each group at the same time; `merge` makes one text of the drafts; `repair` names what
    is still missing and asks for the text again. As printed in the paper that is
    1 + 2 + 1 calls, and no repair (`repair=0`).

    Where the paper is silent or we differ: the division is never trusted but mended without
    a call (`split.placed`); where it fails, the list is cut into runs, the drafts choose
    their own topic, and the failure is reported. A draft that failed is left out of the
    merge and reported; what it had to use counts as lost in `solve` and is what `repair`
    asks for. A merge that failed leaves no text. A repaired text is kept if it lacks fewer
    concepts; what a repair loses counts as lost in `merge`. A single concept is neither
    divided nor merged.

    Args:
        model: Chat model that writes, and divides and merges too unless others are given;
            a chat model, or a name as `resolve_model` takes it.
        groups: Groups of concepts at each division, k.
        merge: `"once"` merges k drafts by one call; `"tree"` two and two, k - 1 calls.
        depth: Levels of division, d: each group is divided again, k^d drafts in all (the
            recursion that the paper proposes); with k = 2, (2^d - 1) + 2^d + (2^d - 1) calls.
        repair: Turns in which missing concepts are named and the text is asked for again;
            none is made where nothing is missing.
        strict: Count a concept as used only in its exact form, not in any word form.
        split_model: Divides instead of `model`.
        merge_model: Merges and repairs instead of `model`.
        instructions: Your wishes or the language to write in; shown to every step.
        temperature: Overrides the model's own.
        repairs: Turns in which a model may mend an unusable reply of any step.
        prompts: Replacements for `writing.prompts.PROMPTS`, with the same variables.
        name: Name of the graph in traces.
        checkpointer: LangGraph checkpointer: `SqliteSaver` for `invoke`,
            `AsyncSqliteSaver` for `ainvoke`.
        cache: LangChain cache for checked replies.
        store: LangGraph store, passed on.

    Returns:
        A compiled graph from `{"concepts", "instruction"?}` to `{"concepts", "text",
        "topic", "groups", "drafts", "missing", "usage", "failures"}`. `text` is None where
        nothing usable was written; `missing` holds `{"concept", "lost_in"}`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: A model cannot be made.

    Example:
        >>> from langchain_judges import create_bsm_writer
        >>> writer = create_bsm_writer("local")  # doctest: +SKIP
        >>> writer.invoke({"concepts": ["snow", "piano", "goat"]})["text"]  # doctest: +SKIP
    """
    check_common(
        split_model=split_model,
        merge_model=merge_model,
        instructions=instructions,
        repairs=repairs,
        name=name,
        checkpointer=checkpointer,
        cache=cache,
        store=store,
    )
    options = check_write_options(
        groups=groups,
        merge=merge,
        depth=depth,
        repair=repair,
        strict=strict,
        instructions=instructions,
        repairs=repairs,
    )
    chosen, version = prompt_set(texts.PROMPTS, prompts)
    own = Channel(model, temperature)
    merger = Channel(merge_model, temperature) if merge_model else own
    steps: StepModels = {
        "split": (Channel(split_model, temperature) if split_model else own, Topic),
        "solve": (own, Draft),
        "merge": (merger, Draft),
        "repair": (merger, Draft),
    }
    questions = write_questions(steps, chosen, version, repairs, cache)
    questions["split"] = replace(questions["split"], parse=parse_split)
    writer = _BranchSolveMerge(options, questions)
    graph = StateGraph(WriteState, input_schema=WritingTask, output_schema=WriteResult)
    graph.add_node("start", Node(writer.start))
    graph.add_node("split", Node(writer.split))
    graph.add_node("solve", Node(writer.solve))
    graph.add_node("merge", Node(writer.merge))
    graph.add_node("check", Node(writer.check))
    graph.add_node("repair", Node(writer.repair))
    graph.add_edge(START, "start")
    graph.add_conditional_edges("start", writer.next_work, ["split", "solve"])
    for step in ("split", "solve", "merge", "repair"):
        graph.add_edge(step, "check")
    graph.add_conditional_edges(
        "check", writer.next_work, ["split", "solve", "merge", "repair", END]
    )
    compiled = graph.compile(checkpointer=checkpointer, store=store, name=name)
    return finish(
        compiled,
        method="write",
        options=options.as_json(),
        models={step: channel.identity for step, (channel, _) in steps.items()},
        prompt_version=version,
        calls=options.calls(),
        branches=options.solves(),
    )


class _BranchSolveMerge(Writer[WriteOptions]):
    """The steps of the method, with their options and questions."""

    def split(self, work: WriteWork) -> Steps[Update]:
        """Find a topic and divide concepts into groups."""
        concepts, topic = work["concepts"], work["topic"]
        groups = min(self.options.groups, len(concepts))
        wanted = texts.SETTLED.format(topic=topic) if topic else texts.PROPOSE
        reply = yield from self.ask(
            "split",
            {**self.material(work), "topic": wanted, "groups": groups},
            work["unit"],
            shape=split_shape(groups, len(concepts)),
        )
        division = runs(concepts, groups)
        if reply.data:
            names = [reply.data[f"group_{n}"] for n in range(1, groups + 1)]
            division = placed(concepts, names)
        update: Update = {
            "branchings": [{"path": work["path"], "groups": division}],
            "failures": reply.failures,
            "usages": [reply.usage],
        }
        if not work["path"]:
            update["topic"] = (reply.data or {}).get("topic", "").strip() or None
        return update

    def solve(self, work: WriteWork) -> Steps[Update]:
        """Draft a text with the concepts of one group."""
        reply = yield from self.ask("solve", self.material(work), work["unit"])
        return _piece("solve", work["unit"], reply)

    def merge(self, work: WriteWork) -> Steps[Update]:
        """Make one text of several, with the concepts of all of them."""
        shown = self.material(work, work["parts"])
        reply = yield from self.ask("merge", shown, work["unit"])
        return _piece("merge", work["unit"], reply)

    def check(self, state: WriteState) -> Steps[Update]:
        """See how far the text is, and once it is there what it lacks; asks nothing."""
        yield from ()
        tree = self._tree(state)
        if tree.next:
            return {"turns": 0}
        text = state["text"] if state["turns"] and state["text"] else tree.text
        return self.outcome(state, text, tree.groups, tree.drafts)

    def next_work(self, state: WriteState) -> list[Send] | str:
        """Send every call that can be made now."""
        tree = self._tree(state)
        if tree.next:
            return [Send(todo.step, _work(state, todo)) for todo in tree.next]
        return "repair" if self.wants_repair(state) else END

    def _tree(self, state: WriteState) -> Tree:
        return Tree(
            state["concepts"],
            state.get("branchings", []),
            state.get("pieces", []),
            depth=self.options.depth,
            pairwise=self.options.merge == "tree",
        )


def _work(state: WriteState, todo: ToDo) -> WriteWork:
    return {
        "unit": todo.unit,
        "path": todo.path,
        "concepts": todo.concepts,
        "instruction": state.get("instruction"),
        "topic": state.get("topic"),
        "parts": [{"concepts": part.concepts, "text": part.text} for part in todo.parts],
    }


def _piece(step: Literal["solve", "merge"], unit: str, reply: Reply) -> Update:
    text = reply.data["text"].strip() if reply.data else None
    piece: Piece = {"step": step, "unit": unit, "text": text}
    return {"pieces": [piece], "failures": reply.failures, "usages": [reply.usage]}
