"""Branch-Solve-Merge writing under constraints: split → solve → merge (Saha et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated

from annotated_types import Ge, Le
from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.account import Account
from langchain_judges.asking.effects import Update, emit_each, gather
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.options import factory
from langchain_judges.writing import prompts as texts
from langchain_judges.writing.coverage import fold, missing, present
from langchain_judges.writing.steps import (
    Draft,
    GivenPart,
    Shapes,
    Topic,
    Writer,
    WriterOptions,
    WriteState,
    split_shape,
)

Groups = list[list[str]]


def placed(concepts: Sequence[str], proposed: Sequence[Iterable[str]]) -> Groups:
    """A division of `concepts` made of a proposed one that nobody trusts.

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


class BranchWriter(WriterOptions):
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

    Attributes:
        groups: Number of groups, each with a draft of its own.
        rewrites: Most turns in which the model adds missing concepts.

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

    method = "branch"
    summary = "Branch-Solve-Merge: concepts in groups, a draft of each, merged and rewritten."
    presets = {"paper": {"wording": "paper", "rewrites": 0}}
    templates = texts.PROMPTS

    groups: Annotated[int, Ge(2), Le(256)] = 2
    rewrites: Annotated[int, Ge(0)] = 1

    @property
    def label(self) -> str:
        """The name of the method in results and traces."""
        return "write"

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return self.groups

    def calls(self) -> int:
        """The calls for a text with enough concepts, every rewrite included.

        With k groups and no rewrite that is 1 + k + 1.
        """
        return 2 + self.groups + self.rewrites


class _BranchSolveMerge(Writer[BranchWriter]):
    """The steps of the method, with their options and questions."""

    async def split(self, state: WriteState, account: Account) -> Update:
        """Find a topic and divide the concepts into groups; a single one is not divided."""
        if len(state["concepts"]) == 1:
            return {}
        concepts = state["concepts"]
        groups = min(self.options.groups, len(concepts))
        reply = await self.ask(
            "split",
            {**self.prompt_variables(state), "topic": texts.PROPOSE, "groups": groups},
            account,
            reply_schema=split_shape(groups, len(concepts)),
        )
        division = runs(concepts, groups)
        if reply.data:
            names = [reply.data[f"group_{n}"] for n in range(1, groups + 1)]
            division = placed(concepts, names)
        emit_each("group", "split", division)
        topic = (reply.data or {}).get("topic", "").strip() or None
        return {"groups": division, "topic": topic}

    async def solve(self, state: WriteState, account: Account) -> Update:
        """Draft a text with the concepts of each group."""
        groups = _groups(state)
        # The paper's drafts are whole stories of half of the concepts.
        in_parts = len(groups) > 1 and self.options.wording == "own"
        part = texts.PART if in_parts else ""
        drafts = []
        for n, group in enumerate(groups, 1):
            place = part.format(number=n, parts=len(groups))
            material = self.prompt_variables({**state, "concepts": group, "place": place})
            unit = f"group {n}"
            drafts.append(self.written("solve", unit, material, account.part(), unit=unit))
        return {"drafts": await gather(drafts)}

    async def merge(self, state: WriteState, account: Account) -> Update:
        """Make one text of the drafts; then name what it lacks, and ask for it again."""
        text = await self._merged(state, account)
        for turn in range(1, self.options.rewrites + 1):
            lacking = missing(state["concepts"], text or "", **self.options.counting)
            if not text or not lacking:
                break
            text = await self._repaired(state, text, lacking, turn, account)
        return self.outcome(state, text, _groups(state), state["drafts"])

    async def _merged(self, state: WriteState, account: Account) -> str | None:
        parts: list[GivenPart] = [
            {"concepts": group, "text": text}
            for group, text in zip(_groups(state), state["drafts"], strict=True)
            if text
        ]
        if len(parts) < 2:
            return parts[0]["text"] if parts else None
        concepts = [concept for part in parts for concept in part["concepts"]]
        material = self.prompt_variables({**state, "concepts": concepts}, parts)
        return await self.written("merge", "whole", material, account)

    async def _repaired(
        self,
        state: WriteState,
        text: str,
        lacking: Sequence[str],
        turn: int,
        account: Account,
    ) -> str:
        """Ask for the text again, with the concepts that it lacks; keep the better one."""
        reply = await self.ask(
            "repair",
            self.prompt_variables(state, text=text, missing="\n".join(lacking)),
            account,
            f"turn {turn}" if turn > 1 else "",
        )
        again = reply.data["text"].strip() if reply.data else ""
        still = missing(state["concepts"], again, **self.options.counting)
        return again if again and len(still) < len(lacking) else text


def _groups(state: WriteState) -> Groups:
    return state["groups"] or [state["concepts"]]


def build(options: BranchWriter, model: str | BaseChatModel) -> JudgeGraph:
    """The writer."""
    shapes: Shapes = {"split": Topic, "solve": Draft, "merge": Draft, "repair": Draft}
    writer = _BranchSolveMerge.of(options, model, shapes)
    return writer.context.compile(writer.start, [writer.split, writer.solve, writer.merge])


create_bsm_writer = factory(BranchWriter, build, "create_bsm_writer")
