"""What the steps of SC² share: what prompts show of a pair, and what coins hang on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.embeddings import Embeddings

from langchain_judges.asking.models.embeddings import embedded
from langchain_judges.asking.question import sample_seed
from langchain_judges.asking.steps import Steps
from langchain_judges.memory.example import Example
from langchain_judges.memory.shown import block, example_texts
from langchain_judges.methods.pairs import FOCUS, PairSteps, fences, reference_block
from langchain_judges.methods.sc2.options import SC2
from langchain_judges.methods.sc2.standings import seeded
from langchain_judges.orders import Order, in_slots
from langchain_judges.rows.fences import digest, fence
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Failure, Pair


@dataclass(frozen=True)
class SC2Steps(PairSteps):
    """What the steps of the method share."""

    options: SC2
    embeddings: Embeddings
    lists = ("proposals", "tables", "bracket", "choices")
    empty = {
        "aspects": [],
        "checks": [],
        "pending": [],
        "table": None,
        "comparisons": None,
        "due": [],
        "asked": None,
        "not_asked": [],
    }
    focus = FOCUS

    def material(
        self,
        pair: Pair,
        order: Order,
        examples: Sequence[Example] = (),
        *,
        reference: bool = False,
    ) -> dict[str, object]:
        """Return the variables of a prompt that shows request and texts.

        Args:
            pair: The pair.
            order: Which text is shown first.
            examples: What the memory recalled.
            reference: Whether a known good answer is shown too.
        """
        a, b = judged(pair["output_a"]), judged(pair["output_b"])
        first, second = in_slots(order, a, b)
        request, answer = transcript(pair["input"]), pair.get("reference") or ""
        # Behind the texts: calls that do not see the reference share the prefix before it.
        reference_text = reference_block(answer) if reference else ""
        lessons = reference_text + block(examples, fence(*example_texts(examples)), order=order)
        return {
            **fences(request, first, second),
            "request": request,
            "reference": "",
            "response_1": first,
            "response_2": second,
            **self.frame(pair, lessons),
        }

    def sides(self, pair: Pair) -> tuple[str, str]:
        """Return the judged texts, A and B."""
        return judged(pair["output_a"]), judged(pair["output_b"])

    def texts_token(self, pair: Pair) -> str:
        """Return a hash of request and texts, whichever of them is A."""
        return digest(transcript(pair["input"]), *self.sides(pair))[:10]

    def chance(self, pair: Pair) -> str:
        """Return what coins hang on: the judge's seed and the pair, whichever text is A."""
        return f"{self.options.seed}:{self.texts_token(pair)}"

    def coin(self, pair: Pair, *parts: str) -> random.Random:
        """Return a source of chance for one decision about a pair.

        Args:
            pair: Which is judged.
            *parts: What is decided.
        """
        return seeded(self.chance(pair), *parts)

    def sample_seed(self, number: int) -> int:
        """Return the seed of one sample of many."""
        return sample_seed(self.options.seed, number)

    def lanes(self, aspects: Sequence[str]) -> list[str]:
        """Return what is searched for by itself: every row, or the whole table as ''."""
        return list(aspects) if self.options.row_wise else [""]

    def embed(
        self, phrases: list[str], **words: str
    ) -> Steps[tuple[dict[str, Sequence[float]], list[Failure]]]:
        """Return an embedding by phrase, and the failure if there are none.

        Args:
            phrases: What is embedded.
            **words: What a failure says: `step`, `unit`, `instead`.
        """
        vectors, failures = yield from embedded(self.embeddings, phrases, **words)
        return dict(zip(phrases, vectors or [], strict=False)), failures
