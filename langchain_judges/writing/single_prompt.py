"""The paper's baselines of writing: one prompt, a topic first, several texts to choose from."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from annotated_types import Ge
from langchain_core.language_models import BaseChatModel

from langchain_judges.asking.account import Account
from langchain_judges.asking.effects import Update, gather
from langchain_judges.asking.question import sample_seed
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
    pick_shape,
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
        """The name of the method in results and traces."""
        return "write_single_prompt"

    def branches(self) -> int:
        """The most calls that are in flight at the same time."""
        return self.samples

    def calls(self) -> int:
        """The calls for a text."""
        return self.plan + self.samples + (self.samples > 1 and self.choose == "model")


class _SinglePrompt(Writer[SinglePromptWriter]):
    """The steps of the baselines, with their options and questions."""

    async def plan(self, state: WriteState, account: Account) -> Update:
        """Find a topic."""
        reply = await self.ask("plan", self.prompt_variables(state), account)
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
        if self.options.choose == "coverage":
            wanted, counting = state["concepts"], self.options.counting
            lacking = [len(missing(wanted, text, **counting)) for text in candidates]
            return candidates[lacking.index(min(lacking))]
        reply = await self.ask(
            "choose",
            self.prompt_variables(
                state, [{"concepts": [], "text": text} for text in candidates]
            ),
            account,
            reply_schema=pick_shape(len(candidates)),
        )
        return candidates[int(reply.data["choice"]) - 1] if reply.data else None


def build(options: SinglePromptWriter, model: str | BaseChatModel) -> JudgeGraph:
    """The writer."""
    shapes: Shapes = {"plan": Topic, "draft": Draft, "choose": Topic}
    writer = _SinglePrompt.of(options, model, shapes)
    questions = writer.questions
    questions["draft"] = replace(questions["draft"], sampled=options.samples > 1)
    plan = [writer.plan] if options.plan else []
    return writer.context.compile(writer.start, [*plan, writer.draft, writer.choose])


create_single_prompt_writer = factory(SinglePromptWriter, build, "create_single_prompt_writer")
