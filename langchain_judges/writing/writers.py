"""The writers: Branch-Solve-Merge under constraints, and the paper's baselines, by name.

Saha et al. 2023, section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le

from langchain_judges.asking.effects import Update, emit_each, gather
from langchain_judges.asking.models import ModelLike
from langchain_judges.asking.question import Account, sample_seed
from langchain_judges.methods.declaration import Seed
from langchain_judges.methods.graph import JudgeGraph
from langchain_judges.methods.registry import Builder, options_of
from langchain_judges.options import factory
from langchain_judges.writing import coverage, steps
from langchain_judges.writing.steps import DraftReply, Topic, Writer, WriterOptions, WriteState

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
    open_concepts = [*concepts]
    groups: Groups = [[] for _ in proposed]
    # Every exact word first: "skis" must not take the place of "ski".
    for is_named in (_is_same, _is_form):
        for group, names in zip(groups, proposed, strict=True):
            for name in (" ".join(each.split()) for each in names):
                named = [concept for concept in open_concepts if is_named(concept, name)]
                named = [name] if name in named else named
                if len(named) == 1:
                    open_concepts.remove(named[0])
                    group += named
    if not any(groups):
        return runs(concepts, len(groups))
    for concept in open_concepts:
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


@lru_cache(maxsize=4096)
def _concept_key(name: str) -> str:
    # "ice cream" and "ice-cream" have keys of their own.
    return " ".join(coverage.fold(name).split())


def _is_same(concept: str, name: str) -> bool:
    return _concept_key(concept) == _concept_key(name)


def _is_form(concept: str, name: str) -> bool:
    return _size(concept) == _size(name) and coverage.present(concept, name)


def _size(name: str) -> int:
    return len(_concept_key(name).replace("-", " ").split())


class BranchWriter(WriterOptions):
    """Create a writer of texts that use every one of many concepts (Saha et al. 2023, 4).

    `split` finds a topic and divides the concepts into groups; `solve` drafts a text for
    each group at the same time; `merge` makes one text of the drafts; `repair` names what
    is still missing and asks for the text again. As printed in the paper that is
    1 + 2 + 1 calls, and no rewriting (`rewrites=0`).

    Where the paper is silent or we differ: the division is never trusted but corrected without
    a call (`placed`); where it fails, the list is cut into runs, the drafts choose
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
    label: ClassVar[str] = "write"
    summary = "Branch-Solve-Merge: concepts in groups, a draft of each, merged and rewritten."
    templates = steps.PROMPTS

    groups: Annotated[int, Ge(2), Le(256)] = 2
    rewrites: Annotated[int, Ge(0)] = 1

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return self.groups

    def calls(self) -> int:
        """The calls for a text with enough concepts, every rewrite included.

        With k groups and no rewrite that is 1 + k + 1.
        """
        return 2 + self.groups + self.rewrites


class _BranchSolveMerge(Writer[BranchWriter]):
    """The steps of the method, with their options."""

    async def split(self, state: WriteState, account: Account) -> Update:
        """Find a topic and divide the concepts into groups; a single one is not divided."""
        if len(state["concepts"]) == 1:
            return {}
        concepts = state["concepts"]
        groups = min(self.options.groups, len(concepts))
        shown = {**self.prompt_variables(state), "topic": steps.WORDS["propose"], "groups": groups}
        reply = await self.ask("split", steps.groups_shape(groups, len(concepts)), shown, account)
        division = runs(concepts, groups)
        if reply.data:
            division = placed(concepts, [reply.data[f"group_{n}"] for n in range(1, groups + 1)])
        emit_each("group", "split", division)
        return {"groups": division, "topic": (reply.data or {}).get("topic", "").strip() or None}

    async def solve(self, state: WriteState, account: Account) -> Update:
        """Draft a text with the concepts of each group."""
        groups = _groups(state)
        # The paper's drafts are whole stories of half of the concepts.
        part = steps.WORDS["part"] if len(groups) > 1 and self.options.wording == "own" else ""
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
            lacking = coverage.missing(state["concepts"], text or "", **self.options.counting)
            if not text or not lacking:
                break
            text = await self._repaired(state, text, lacking, turn, account)
        return self.outcome(state, text, _groups(state), state["drafts"])

    async def _merged(self, state: WriteState, account: Account) -> str | None:
        parts: list[steps.GivenPart] = [
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
        self, state: WriteState, text: str, lacking: Sequence[str], turn: int, account: Account
    ) -> str:
        """Ask for the text again, with the concepts that it lacks; keep the better one."""
        reply = await self.ask(
            "repair",
            DraftReply,
            self.prompt_variables(state, text=text, missing="\n".join(lacking)),
            account,
            f"turn {turn}" if turn > 1 else "",
        )
        again = reply.data["text"].strip() if reply.data else ""
        still = coverage.missing(state["concepts"], again, **self.options.counting)
        return again if again and len(still) < len(lacking) else text


def _groups(state: WriteState) -> Groups:
    return state["groups"] or [state["concepts"]]


def build_branch(options: BranchWriter, model: ModelLike) -> JudgeGraph:
    """The writer."""
    writer = _BranchSolveMerge.of(options, model)
    return writer.context.compile(writer.start, [writer.split, writer.solve, writer.merge])


create_bsm_writer = factory(BranchWriter, build_branch, "create_bsm_writer")


class SinglePromptWriter(WriterOptions):
    """Create a writer that divides nothing: the baselines of Saha et al. 2023, section 4.2.

    As it stands it is the zero-shot baseline (1 call); `plan=True` is plan & solve (2
    calls), `samples=5` is self-consistency (6 calls), `samples=5, choose="coverage"` counts
    the concepts instead of asking a model which text has most of them (5 calls).

    Attributes:
        plan: Find a topic first.
        samples: Texts written, at temperature 0.7 if there are several.
        choose: Who chooses among several: `"model"`, by one more call, or `"coverage"`,
            without one, as where no reply can be read.
        seed: Seed of the samples.

    Returns:
        A compiled graph that takes and returns what `create_bsm_writer` does. It has one group
        with all concepts, and the chosen text as its draft; what that lacks was lost in
        `solve`.

    Raises:
        OptionError: An option is not allowed.
        ModelSetupError: The model cannot be made.
    """

    method = "single_prompt"
    label: ClassVar[str] = "write_single_prompt"
    summary = "The paper's baselines: all concepts in one prompt, a topic first, samples."
    templates = steps.DIRECT_PROMPTS

    plan: bool = False
    samples: Annotated[int, Ge(1)] = 1
    choose: Literal["model", "coverage"] = "model"
    seed: Seed = 0

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return self.samples

    def calls(self) -> int:
        """The calls for a text."""
        return self.plan + self.samples + (self.samples > 1 and self.choose == "model")


class _SinglePrompt(Writer[SinglePromptWriter]):
    """The steps of the baselines, with their options."""

    async def plan(self, state: WriteState, account: Account) -> Update:
        """Find a topic."""
        reply = await self.ask("plan", Topic, self.prompt_variables(state), account)
        return {"topic": reply.data["topic"].strip() if reply.data else None}

    async def draft(self, state: WriteState, account: Account) -> Update:
        """Draft texts with all the concepts, as many as are sampled."""
        material, several = self.prompt_variables(state), self.options.samples > 1
        drafts = [
            self.written(
                "draft",
                str(n),
                material,
                account.part(),
                unit=f"sample {n}" if several else "",
                sampled=several,
                seed=sample_seed(self.options.seed, n - 1) if several else None,
            )
            for n in range(1, self.options.samples + 1)
        ]
        return {"drafts": await gather(drafts)}

    async def choose(self, state: WriteState, account: Account) -> Update:
        """Choose among the texts, and see what the one that is chosen lacks."""
        text = await self._chosen(state, account)
        return self.outcome(state, text, [state["concepts"]], [text])

    async def _chosen(self, state: WriteState, account: Account) -> str | None:
        """Choose among the texts: by the model, or by what they lack."""
        candidates = [draft for draft in state["drafts"] if draft]
        if not candidates or len(candidates) == 1:
            return candidates[0] if candidates else None
        if self.options.choose == "model":
            parts: list[steps.GivenPart] = [{"concepts": [], "text": text} for text in candidates]
            shape, shown = steps.pick_shape(len(parts)), self.prompt_variables(state, parts)
            reply = await self.ask("choose", shape, shown, account)
            if reply.data:
                return candidates[int(reply.data["choice"]) - 1]
        wanted, counting = state["concepts"], self.options.counting
        lacking = [len(coverage.missing(wanted, text, **counting)) for text in candidates]
        return candidates[lacking.index(min(lacking))]


def build_single_prompt(options: SinglePromptWriter, model: ModelLike) -> JudgeGraph:
    """The writer."""
    writer = _SinglePrompt.of(options, model)
    plan = [writer.plan] if options.plan else []
    return writer.context.compile(writer.start, [*plan, writer.draft, writer.choose])


create_single_prompt_writer = factory(
    SinglePromptWriter, build_single_prompt, "create_single_prompt_writer"
)


WRITERS: dict[str, type[WriterOptions]] = {
    kind.method: kind for kind in (BranchWriter, SinglePromptWriter)
}
# By the same names what makes a writer of checked options and a model.
WRITER_BUILDERS: dict[str, Builder] = {"branch": build_branch, "single_prompt": build_single_prompt}


def load_writer(
    method: str, model: ModelLike, *, preset: str | None = None, **options: Any
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
    return WRITER_BUILDERS[method](options_of(WRITERS, method, preset, options), model)
