"""Branch-Solve-Merge writing under constraints: split → solve → merge (Saha et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal, Self

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START
from langgraph.types import Send
from pydantic import model_validator

from langchain_judges.asking.nodes import Route
from langchain_judges.asking.steps import Steps, Update
from langchain_judges.errors import OptionError
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.options import factory
from langchain_judges.writing import prompts as texts
from langchain_judges.writing.coverage import fold, missing, present
from langchain_judges.writing.state import (
    Branching,
    Draft,
    Piece,
    Topic,
    WriteState,
    WriteWork,
    split_shape,
)
from langchain_judges.writing.steps import (
    Shapes,
    Writer,
    WriterOptions,
    piece_of,
    writer_context,
)

Groups = list[list[str]]


def placed(concepts: Sequence[str], proposed: Sequence[Iterable[str]]) -> Groups:
    """Return a division of `concepts` made of a proposed one that nobody trusts.

    Concepts get their original spelling back, also where another word form was written;
    strangers are dropped; of repetitions the first counts; what was left out goes to the
    smallest group; an empty group gets half of the largest; if nothing is usable, the
    list is cut into even runs.

    Args:
        concepts: Distinct concepts, at least as many as there are groups.
        proposed: The groups as a model wrote them.

    Returns:
        As many groups as proposed, none empty; together they hold each concept once.

    Source: Saha et al. 2023, section 4.1 (branch); the correction is our reading.
    """
    open_concepts = {_key(concept): concept for concept in concepts}
    groups: Groups = [[] for _ in proposed]
    for exact in (True, False):
        # Every exact spelling first: "skis" must not take the place of "ski".
        for group, names in zip(groups, proposed, strict=True):
            for name in names:
                key = _key(name) if exact else _form_of(name, open_concepts)
                if key is not None and key in open_concepts:
                    group.append(open_concepts.pop(key))
    if not any(groups):
        return runs(concepts, len(groups))
    for concept in open_concepts.values():
        min(groups, key=len).append(concept)
    while not all(groups):
        empty = min(groups, key=len)
        largest = max(groups, key=len)
        half = (len(largest) + 1) // 2
        empty += largest[half:]
        del largest[half:]
    return groups


def runs(concepts: Sequence[str], groups: int) -> Groups:
    """Cut a list into so many runs of even length, longer ones first."""
    size, longer = divmod(len(concepts), groups)
    cuts = [n * size + min(n, longer) for n in range(groups + 1)]
    return [list(concepts[start:end]) for start, end in pairwise(cuts)]


def _key(name: str) -> str:
    # What `distinct` keeps apart, "ice cream" and "ice-cream", has keys of its own.
    return " ".join(fold(name).split())


def _form_of(name: str, open_concepts: Mapping[str, str]) -> str | None:
    size = _size(_key(name))
    forms = [
        key
        for key, concept in open_concepts.items()
        if _size(key) == size and present(concept, name)
    ]
    return forms[0] if len(forms) == 1 else None


def _size(key: str) -> int:
    return len(key.replace("-", " ").split())


@dataclass(frozen=True)
class Part:
    """A text in the making, and the concepts it has to use."""

    label: str
    concepts: list[str]
    text: str


@dataclass(frozen=True)
class ToDo:
    """A call that can be made now."""

    step: Literal["split", "solve", "merge"]
    unit: str
    path: str
    concepts: list[str]
    parts: list[Part] = field(default_factory=list)


class Tree:
    """What is done and what can be done next, by what the calls so far have brought.

    Args:
        concepts: The concepts of the task.
        branchings: The divisions made.
        pieces: The drafts and merged texts made.
        depth: Levels of division.
        pairwise: Merge two and two instead of all parts at once.
    """

    def __init__(
        self,
        concepts: list[str],
        branchings: Iterable[Branching],
        pieces: Iterable[Piece],
        depth: int,
        pairwise: bool,
    ) -> None:
        """Walk the tree once."""
        self.next: list[ToDo] = []
        """Calls that can be made at the same time; empty when the text is done."""
        self.groups: Groups = []
        self.drafts: list[str | None] = []
        self._divided = {each["path"]: each["groups"] for each in branchings}
        self._texts = {(each["step"], each["unit"]): each["text"] for each in pieces}
        self._depth = depth
        self._pairwise = pairwise
        _, root = self._node("", concepts)
        self.text = root.text if root else None
        """The whole text; None while there is something to do, and where all failed."""

    def _node(self, path: str, concepts: list[str]) -> tuple[bool, Part | None]:
        """Return whether a place in the tree is done, and its text if there is one."""
        level = path.count(".") + bool(path)
        if level == self._depth or len(concepts) < 2:
            return self._leaf(path, concepts)
        if path not in self._divided:
            self.next.append(ToDo("split", _name_of(path), path, concepts))
            return False, None
        children = [
            self._node(f"{path}.{number}".lstrip("."), group)
            for number, group in enumerate(self._divided[path], 1)
        ]
        if not all(complete for complete, _ in children):
            return False, None
        return self._merged(path, [part for _, part in children if part])

    def _leaf(self, path: str, concepts: list[str]) -> tuple[bool, Part | None]:
        unit = f"group {path or 1}"
        text = self._texts.get(("solve", unit))
        self.groups.append(concepts)
        self.drafts.append(text)
        if ("solve", unit) not in self._texts:
            self.next.append(ToDo("solve", unit, path, concepts))
            return False, None
        return True, Part(path, concepts, text) if text else None

    def _merged(self, path: str, parts: list[Part]) -> tuple[bool, Part | None]:
        while len(parts) > 1:
            step = 2 if self._pairwise else len(parts)
            batches = [parts[start : start + step] for start in range(0, len(parts), step)]
            parts, waiting = [], False
            for batch in batches:
                label = "+".join(part.label for part in batch)
                unit = _name_of(path) if len(batches) == 1 else f"groups {label}"
                concepts = [concept for part in batch for concept in part.concepts]
                if len(batch) == 1:
                    parts += batch
                elif ("merge", unit) not in self._texts:
                    self.next.append(ToDo("merge", unit, path, concepts, batch))
                    waiting = True
                elif text := self._texts["merge", unit]:
                    parts.append(Part(label, concepts, text))
            if waiting:
                return False, None
        return True, Part(path, parts[0].concepts, parts[0].text) if parts else None


def _name_of(path: str) -> str:
    return f"group {path}" if path else ""


_MOST_DRAFTS = 256


class BSMWriter(WriterOptions):
    """Create a writer of texts that use every one of many concepts (Saha et al. 2023, 4).

    `split` finds a topic and divides the concepts into groups; `solve` drafts a text for
    each group at the same time; `merge` makes one text of the drafts; `repair` names what
    is still missing and asks for the text again. As printed in the paper that is
    1 + 2 + 1 calls, and no rewriting (`rewrites=0`).

    Where the paper is silent or we differ: the division is never trusted but corrected without
    a call (`split.placed`); where it fails, the list is cut into runs, the drafts choose
    their own topic, and the failure is reported. A draft that failed is left out of the
    merge and reported; what it had to use counts as lost in `solve` and is what `repair`
    asks for. A merge that failed leaves no text. A repaired text is kept if it lacks fewer
    concepts; what a repair loses counts as lost in `merge`. A single concept is neither
    divided nor merged.

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

    method = "bsm"
    summary = "Branch-Solve-Merge: concepts in groups, a draft of each, merged and rewritten."
    presets = {
        "paper": {"rewrites": 0},
        "tree": {"groups": 4, "merge": "tree"},
        "recursive": {"depth": 2},
    }
    templates = texts.PROMPTS

    groups: Annotated[int, Ge(2)] = 2
    """Number of groups at each division, k."""
    merge: Literal["once", "tree"] = "once"
    """`"once"` merges k drafts in one call; `"tree"` merges two at a time."""
    depth: Annotated[int, Ge(1)] = 1
    """Levels of division, d: each group is divided again, k^d drafts in all."""
    rewrites: Annotated[int, Ge(0)] = 1
    """Most turns in which the model adds missing concepts."""

    @property
    def label(self) -> str:
        """What the method is called in results and traces."""
        return "write"

    @model_validator(mode="after")
    def _few_drafts(self) -> Self:
        # A power of a huge depth would take for ever.
        if self.depth > _MOST_DRAFTS or self.branches() > _MOST_DRAFTS:
            raise OptionError(
                f"`groups` to the power of `depth` must be at most {_MOST_DRAFTS}, "
                f"got {self.groups!r} and {self.depth!r}"
            )
        return self

    def branches(self) -> int:
        """Return the most drafts: one for each leaf of the tree, k^d."""
        return int(self.groups**self.depth)

    def calls(self) -> int:
        """Return the calls for a text with enough concepts, every rewrite included.

        With k groups and depth d there are (k^d - 1) / (k - 1) places that divide and merge;
        merging two and two takes k - 1 calls at each. k = 2, d = 1 is 1 + 2 + 1.
        """
        inner = (self.branches() - 1) // (self.groups - 1)
        merges = inner * (self.groups - 1) if self.merge == "tree" else inner
        return inner + self.branches() + merges + self.rewrites


def _graph(writer: _BranchSolveMerge) -> JudgeGraph:
    context = writer.context
    graph = context.graph()
    graph.add_node("start", context.plain(writer.start))
    graph.add_node("split", context.node(writer.split))
    graph.add_node("solve", context.node(writer.solve))
    graph.add_node("merge", context.node(writer.merge))
    graph.add_node("check", context.plain(writer.check))
    graph.add_node("repair", context.node(writer.repair))
    graph.add_edge(START, "start")
    graph.add_conditional_edges("start", Route(writer.next_work), ["split", "solve"])
    for step in ("split", "solve", "merge", "repair"):
        graph.add_edge(step, "check")
    graph.add_conditional_edges(
        "check", Route(writer.next_work), ["split", "solve", "merge", "repair", END]
    )
    return context.finish(graph)


class _BranchSolveMerge(Writer[BSMWriter]):
    """The steps of the method, with their options and questions."""

    def split(self, work: WriteWork) -> Steps[Update]:
        """Find a topic and divide concepts into groups."""
        concepts, topic = work["concepts"], work["topic"]
        groups = min(self.options.groups, len(concepts))
        instruction = texts.SETTLED.format(topic=topic) if topic else texts.PROPOSE
        reply = yield from self.ask(
            "split",
            {**self.material(work), "topic": instruction, "groups": groups},
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
        return piece_of("solve", work["unit"], reply)

    def merge(self, work: WriteWork) -> Steps[Update]:
        """Make one text of several, with the concepts of all of them."""
        material = self.material(work, work["parts"])
        reply = yield from self.ask("merge", material, work["unit"])
        return piece_of("merge", work["unit"], reply)

    def repair(self, state: WriteState) -> Steps[Update]:
        """Ask for the text again, with the concepts that it lacks; keep the better one."""
        text = state["text"] or ""
        lacking = [each["concept"] for each in state["missing"]]
        turn = state["turns"] + 1
        reply = yield from self.ask(
            "repair",
            self.material(state, text=text, missing="\n".join(lacking)),
            f"turn {turn}" if turn > 1 else "",
        )
        update: Update = {
            "turns": turn,
            "failures": reply.failures,
            "usages": [reply.usage],
        }
        if reply.data:
            again = reply.data["text"].strip()
            still = missing(state["concepts"], again, **self.options.counting)
            if len(still) < len(lacking):
                update["text"] = again
        return update

    def check(self, state: WriteState) -> Update:
        """See how far the text is, and once it is there what it lacks."""
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
        lacks = bool(state["text"] and state["missing"])
        return "repair" if lacks and state["turns"] < self.options.rewrites else END

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
        "place": _place(state, todo),
    }


def _place(state: WriteState, todo: ToDo) -> str:
    """Say which part of the text a draft is; how many there are is known at one level only."""
    if todo.step != "solve" or not todo.path:
        return ""
    parts = len(state["branchings"][0]["groups"])
    if "." in todo.path or len(state["branchings"]) > 1:
        return texts.SOME_PART
    return texts.PART.format(number=todo.path, parts=parts)


def build(options: BSMWriter, model: str | BaseChatModel) -> JudgeGraph:
    """Return the writer."""
    shapes: Shapes = {"split": Topic, "solve": Draft, "merge": Draft, "repair": Draft}
    context = writer_context(options, model, shapes)
    questions = {step: context.question(step, shape) for step, shape in shapes.items()}
    return _graph(_BranchSolveMerge(options, context, questions))


create_bsm_writer = factory(BSMWriter, build, "create_bsm_writer")
