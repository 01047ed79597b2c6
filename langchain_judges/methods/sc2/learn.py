"""Learning aspects offline (section 4 of the paper): named in every text, merged to n, kept."""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge, Le
from langchain_core.caches import BaseCache
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from pydantic import InstanceOf, PlainValidator

from langchain_judges.asking.adapter import ModelAdapter
from langchain_judges.asking.ask import ask
from langchain_judges.asking.send import Question, Reply
from langchain_judges.asking.steps import Steps, arun, run, together
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods.context import prompt_set
from langchain_judges.methods.pairs import instructions_block
from langchain_judges.methods.sc2 import prompts as texts_of
from langchain_judges.methods.sc2.aspects import (
    AspectSet,
    by_frequency,
    check_savable,
    distinct,
    save_aspects,
)
from langchain_judges.methods.sc2.replies import (
    Extracted,
    merged_shape,
)
from langchain_judges.methods.tasks import AboutTask, read_task
from langchain_judges.options import NotSerialisable, Options, Owner, Rule, with_options
from langchain_judges.rows.checks import check_text
from langchain_judges.rows.fences import fence
from langchain_judges.rows.fields import plain_row
from langchain_judges.rows.texts import judged, transcript
from langchain_judges.verdict import Failure, Usage, add_usage, no_usage

BATCH = 60
"""Aspects that are merged in one call."""

TextLike = str | Mapping[str, Any]
"""A text, or a pair, both of whose texts are read beside the request they answer."""


class Passage(NamedTuple):
    """One text of a corpus."""

    request: str
    """What it answers; empty for a text by itself."""
    text: str


def read_corpus(texts: Iterable[TextLike]) -> list[Passage]:
    """Return requests and texts; a pair gives two, a plain text has no request.

    Raises:
        InputError: A text is none.
    """
    several = isinstance(texts, Iterable) and not isinstance(texts, str | Mapping)
    items = list(texts) if several else []
    if not items:
        raise InputError("`texts` must be a list of at least one text or pair")
    corpus: list[Passage] = []
    for index, each in enumerate(items):
        try:
            corpus += _passages(each)
        except InputError as exc:
            raise InputError(f"text {index}: {exc}") from exc
    return corpus


def _passages(text: TextLike) -> list[Passage]:
    if isinstance(text, str):
        check_text(text, "text")
        return [Passage("", text)]
    if not isinstance(text, Mapping):
        raise InputError(f"a text or a pair is wanted, got {type(text).__name__}")
    pair = plain_row(text)
    for field in ("input", "output_a", "output_b"):
        check_text(pair.get(field), field)
    request = transcript(pair["input"])
    return [Passage(request, judged(pair[side])) for side in ("output_a", "output_b")]


def corpus_hash(corpus: Sequence[Passage]) -> str:
    """Return a hash of the texts of a corpus, in their order."""
    data = json.dumps(corpus, ensure_ascii=True)
    return hashlib.sha256(data.encode()).hexdigest()[:16]


def _check_set_name(name: object) -> object:
    if not (name is None or (isinstance(name, str | os.PathLike) and str(name).strip())):
        raise ValueError("no name and no path")
    return name


class LearnOptions(Options):
    """How aspects are learned from a corpus."""

    called = "learn_aspects"

    n: Annotated[int, Ge(1)] = 5
    """Aspects wanted."""
    name: Annotated[
        str | os.PathLike[str] | None,
        PlainValidator(_check_set_name),
        Owner(),
        Rule("a name, a path or None"),
    ] = None
    """Keep the result as `aspects/NAME.json` (the folder is the environment variable
    `JUDGES_ASPECTS`), or at a path; None keeps nothing."""
    task: AboutTask = "helpful"
    """What the texts will be compared by, as in `create_sc2_judge`."""
    max_concurrency: Annotated[int, Ge(1)] = 8
    """Most model calls in flight."""
    instructions: str | None = None
    """Your own words, shown to every step."""
    temperature: Annotated[float, Ge(0), Le(2)] | None = None
    """Overrides the model's own."""
    repairs: Annotated[int, Ge(0)] = 1
    """Turns in which a model may correct an unusable reply."""
    prompts: Annotated[
        Mapping[str, InstanceOf[ChatPromptTemplate]] | None,
        NotSerialisable(),
        Rule("prompts by step, each a `ChatPromptTemplate`"),
    ] = None
    """Replacements for `sc2.prompts.LEARN_PROMPTS`."""
    cache: Annotated[
        BaseCache | None, NotSerialisable(), Rule("a LangChain `BaseCache` or None")
    ] = None
    """LangChain cache for checked replies; a second try pays for failures only."""

    @property
    def question(self) -> str:
        """What the texts will be compared by."""
        return read_task(self.task)["question"]

    @property
    def words(self) -> str:
        """The caller's own words, as prompts show them."""
        return instructions_block((self.instructions or "").strip())


@with_options(LearnOptions)
def learn_aspects(
    model: str | BaseChatModel, texts: Iterable[TextLike], options: LearnOptions
) -> AspectSet:
    """Learn n aspects from a corpus, once for a kind of texts (SC², section 3.1, offline).

    One call for every text names its aspects; then they are merged, in batches if there are
    many, down to exactly n. The paper reads 50 pairs, which is 100 texts, and keeps five
    aspects. Pass the result to `create_sc2_judge(aspects=…)`, or its name.

    Args:
        model: What `resolve_model` takes.
        texts: The corpus: texts, or pairs `{"input", "output_a", "output_b"}`.
        options: Each by its name.

    Returns:
        The aspects with the task, prompt version, model, hash of the corpus, failures and
        usage. A text that failed is left out. Where merging failed, the most frequent
        aspects stand in and `failures` say so.

    Raises:
        OptionError: An option is not allowed, `name` cannot be written, or fewer than n
            aspects were found.
        InputError: A text is none.
    """
    return run(_Learner(options, *_questions(model, options)).learn(texts))


@with_options(LearnOptions)
async def alearn_aspects(
    model: str | BaseChatModel, texts: Iterable[TextLike], options: LearnOptions
) -> AspectSet:
    """Learn aspects in the running event loop; takes and raises what `learn_aspects` does.

    Args:
        model: What `resolve_model` takes.
        texts: The corpus: texts, or pairs `{"input", "output_a", "output_b"}`.
        options: Each by its name.
    """
    return await arun(_Learner(options, *_questions(model, options)).learn(texts))


def _questions(model: str | BaseChatModel, options: LearnOptions) -> tuple[Question, Question]:
    prompts, version = prompt_set(texts_of.LEARN_PROMPTS, options.prompts)
    extract = Question(
        method="sc2",
        step="extract",
        adapter=ModelAdapter(model, options.temperature),
        prompt=prompts["extract"],
        shape=Extracted,
        version=version,
        repairs=options.repairs,
        cache=options.cache,
    )
    consolidate = replace(
        extract,
        step="consolidate",
        prompt=prompts["consolidate"],
        shape=merged_shape(options.n),
    )
    return extract, consolidate


@dataclass(frozen=True)
class _Learner:
    """The two steps of learning: extract, then consolidate."""

    options: LearnOptions
    extract: Question
    consolidate: Question

    def learn(self, texts: Iterable[TextLike]) -> Steps[AspectSet]:
        """Read the corpus, merge what it names, and keep the result."""
        corpus, name = read_corpus(texts), self.options.name
        if name is not None:
            # What cannot be kept must not be paid for.
            check_savable(name)
        replies = yield from self._extracted(corpus)
        failures = [failure for reply in replies for failure in reply.failures]
        no_aspect = "the reply names no aspect"
        failures += [
            Failure(step="extract", unit=f"text {number}", reason="empty", detail=no_aspect)
            for number, reply in enumerate(replies, 1)
            if reply.data and not distinct(reply.data["aspects"])
        ]
        usages = [reply.usage for reply in replies]
        lists = [distinct(reply.data["aspects"]) for reply in replies if reply.data]
        phrases = by_frequency(lists)
        n = self.options.n
        if len(phrases) < n:
            raise OptionError(
                f"{n} aspects were wanted, and {len(phrases)} found in {len(corpus)} texts"
                + (f"; the first failure: {failures[0]['detail']}" if failures else "")
            )
        aspects = yield from self._consolidated(phrases, failures, usages)
        learned: AspectSet = {
            "name": str(name or ""),
            "aspects": aspects,
            "task": self.options.question,
            "prompt_version": self.extract.version,
            "model": self.extract.adapter.identity,
            "corpus": corpus_hash(corpus),
            "texts": len(corpus),
            "failures": failures,
            "usage": add_usage(usages),
        }
        if name is not None:
            save_aspects(learned, name)
        return learned

    def _extracted(self, corpus: Sequence[Passage]) -> Steps[list[Reply]]:
        """Read every text, `max_concurrency` at a time; replies in the corpus' order."""
        waiting = deque(enumerate(corpus))
        replies: dict[int, Reply] = {}

        def work() -> Steps[None]:
            while True:
                try:
                    index, passage = waiting.popleft()
                except IndexError:
                    return
                replies[index] = yield from self._read(index, passage)

        workers = min(self.options.max_concurrency, len(corpus))
        yield from together([work() for _ in range(workers)])
        return [replies[index] for index in range(len(corpus))]

    def _read(self, index: int, passage: Passage) -> Steps[Reply]:
        request, text = passage
        token = fence(request, text)
        context = texts_of.CONTEXT.format(fence=token, request=request) if request else ""
        variables = {
            "fence": token,
            "context": context,
            "text": text,
            "question": self.options.question,
            "instructions": self.options.words,
        }
        return ask(self.extract, variables, unit=f"text {index + 1}")

    def _consolidated(
        self, phrases: list[str], failures: list[Failure], usages: list[Usage]
    ) -> Steps[list[str]]:
        """Merge batches until one is left, then that one: map, then reduce."""
        # A merged batch must be shorter than it was, or merging would never end.
        batch, level = max(BATCH, 2 * self.options.n), 1
        while True:
            parts = [phrases[i : i + batch] for i in range(0, len(phrases), batch)]
            whole = len(parts) == 1
            units = ["" if whole else f"batch {level}.{i + 1}" for i in range(len(parts))]
            merged = yield from together(
                [self._merge(part, unit) for part, unit in zip(parts, units, strict=True)]
            )
            for reply, _ in merged:
                failures += reply.failures
                usages.append(reply.usage)
            shorter = distinct(phrase for _, own_phrases in merged for phrase in own_phrases)
            if whole:
                return self._exactly(shorter, phrases, failures)
            phrases, level = shorter, level + 1

    def _merge(self, phrases: list[str], unit: str) -> Steps[tuple[Reply, list[str]]]:
        """Merge one batch; where that fails, its most frequent phrases stand in."""
        if len(phrases) <= self.options.n:
            return Reply({}, [], no_usage()), phrases
        lines = "\n".join(f"- {phrase}" for phrase in phrases)
        variables = {
            "fence": fence(lines),
            "phrases": lines,
            "n": self.options.n,
            "question": self.options.question,
            "instructions": self.options.words,
        }
        reply = yield from ask(self.consolidate, variables, unit=unit)
        if reply.data is None:
            return reply, phrases[: self.options.n]
        return reply, distinct(reply.data.values())

    def _exactly(
        self, merged: list[str], phrases: list[str], failures: list[Failure]
    ) -> list[str]:
        """Return n aspects; phrases as they were found fill up what merging left open."""
        n = self.options.n
        if len(merged) < n:
            detail = f"{len(merged)} distinct aspects came of {n}; the most frequent fill up"
            failures.append(
                Failure(step="consolidate", unit="", reason="missing", detail=detail)
            )
        return distinct([*merged, *phrases], n)
