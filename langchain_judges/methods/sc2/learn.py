"""Learning aspects offline (section 4 of the paper): named in every text, merged to n, kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge

from langchain_judges.asking import adapter, effects, own_prompts, reading, reply_log
from langchain_judges.asking.ask import ask
from langchain_judges.asking.models import ModelLike
from langchain_judges.asking.question import Account, Question, Reply, run_of
from langchain_judges.errors import InputError, OptionError
from langchain_judges.methods import declaration, pairs, tasks
from langchain_judges.methods.context import instructions_block
from langchain_judges.methods.sc2 import tally
from langchain_judges.methods.sc2.options import PROMPTS, WORDS, AspectSet
from langchain_judges.options import NotSerialisable, Owner, Rule, with_options
from langchain_judges.rows import checks, fences, fields, files
from langchain_judges.rows.texts import readable, transcript
from langchain_judges.verdict import Failure, add_usage

LEARN_PROMPTS = pairs.prompts_in(PROMPTS, "learn_aspects")
# Phrases that are merged: the most frequent of those that were found.
MERGED = 400

# A text, or a pair, both of whose texts are read beside the request they answer.
TextLike = str | Mapping[str, Any]


class Passage(NamedTuple):
    """One text of a corpus.

    Attributes:
        request: What it answers; empty for a text by itself.
    """

    request: str
    text: str


def read_corpus(texts: Iterable[TextLike]) -> list[Passage]:
    """Requests and texts; a pair gives two, a plain text has no request.

    Raises:
        InputError: One of `texts` is not a text.
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
        checks.check_text(text, "text")
        return [Passage("", text)]
    if not isinstance(text, Mapping):
        raise InputError(f"a text or a pair is wanted, got {type(text).__name__}")
    pair = fields.plain_row(text)
    checks.check_pair(pair)
    request = transcript(pair["input"])
    return [Passage(request, readable(pair[side])) for side in ("output_a", "output_b")]


class LearnOptions(declaration.AskingOptions):
    """The options of learning aspects from a corpus.

    Attributes:
        n: Aspects wanted.
        path: The JSON file in which the result is kept; None keeps nothing.
        task: What the texts will be compared by, as in `create_sc2_judge`.
        max_concurrency: Maximum number of model calls in flight.
        config: Bounds what is asked: `langchain_judges.runs.budget(max_calls=…)`.
    """

    called = "learn_aspects"

    n: Annotated[int, Ge(1)] = 5
    path: Annotated[str | os.PathLike[str] | None, Owner()] = None
    task: tasks.AboutTask = "helpful"
    max_concurrency: Annotated[int, Ge(1)] = 8
    config: Annotated[Mapping[str, Any] | None, NotSerialisable(), Rule("a `RunnableConfig`")] = (
        None
    )

    @property
    def shared(self) -> dict[str, str]:
        """The words that both prompts share."""
        return {
            "question": tasks.read_task(self.task)["question"],
            "instructions": instructions_block(self.instructions),
        }


@with_options(LearnOptions)
def learn_aspects(model: ModelLike, texts: Iterable[TextLike], options: LearnOptions) -> AspectSet:
    """Learn n aspects from a corpus, once for each kind of text (SC², section 3.1, offline).

    One call for every text names its aspects; then one call merges them to exactly n. The
    paper reads 50 pairs, which is 100 texts, and keeps five aspects. Pass the result, or its
    file, to `create_sc2_judge(aspects=…)`.

    Args:
        model: What `resolve_model` takes.
        texts: The corpus: texts, or pairs `{"input", "output_a", "output_b"}`.
        options: Passed by name.

    Returns:
        The aspects with the task, prompt version, model, hash of the corpus, failures and
        usage. A text that failed is left out. If merging fails, the most frequent
        aspects are used and `failures` say so.

    Raises:
        OptionError: An option is not allowed, the file cannot be written, or fewer than n
            aspects were found.
        InputError: One of `texts` is not a text.
    """
    return effects.run(alearn_aspects(model, texts, **dict(options)))


@with_options(LearnOptions)
async def alearn_aspects(
    model: ModelLike, texts: Iterable[TextLike], options: LearnOptions
) -> AspectSet:
    """Learn aspects in the running event loop; takes and raises what `learn_aspects` does.

    Args:
        model: What `resolve_model` takes.
        texts: The corpus: texts, or pairs `{"input", "output_a", "output_b"}`.
        options: Passed by name.
    """
    prompts, version = own_prompts.prompt_set(LEARN_PROMPTS, options.prompts, filled=options.filled)
    extract = Question(
        method="sc2",
        step="extract",
        adapter=adapter.ModelAdapter(model, options.temperature),
        prompt=prompts["extract"],
        reply_schema=tally.Extracted,
        version=version,
        repairs=options.repairs,
        cache=options.cache,
    )
    corpus = read_corpus(texts)
    if options.path is not None:
        # What cannot be kept must not be paid for.
        path, folder = Path(options.path), Path(options.path).parent
        if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise OptionError(f"learned aspects cannot be written to {path}: no folder to write to")
    answers, phrases, failures = await _named(extract, corpus, options)
    consolidate = replace(
        extract,
        step="consolidate",
        prompt=prompts["consolidate"],
        reply_schema=tally.merged_shape(options.n),
    )
    lines = "\n".join(f"- {phrase}" for phrase in phrases[:MERGED])
    variables = {"fence": fences.fence(lines), "phrases": lines, "n": options.n, **options.shared}
    merged = await ask(consolidate, variables, Account(run=run_of(options.config)))
    learned: AspectSet = {
        "aspects": tally.distinct_phrases([*(merged.data or {}).values(), *phrases], options.n),
        "task": options.as_json()["task"],
        "prompt_version": version,
        "model": extract.adapter.identity,
        "corpus": reply_log.key_of(corpus)[:16],
        "texts": len(corpus),
        "failures": [*failures, *merged.failures, *_too_few(merged, options.n)],
        "usage": add_usage([reply.usage for reply in (*answers, merged)]),
    }
    if options.path is not None:
        files.write_text(options.path, json.dumps(learned, indent=2, ensure_ascii=False) + "\n")
    return learned


async def _named(
    extract: Question, corpus: Sequence[Passage], options: LearnOptions
) -> tuple[list[Reply], list[str], list[Failure]]:
    """The replies on each text, the aspects they name by frequency, and what failed."""
    asks = [_read(extract, number, each, options) for number, each in enumerate(corpus, 1)]
    answers = await effects.gather(asks, options.max_concurrency)
    failures = [failure for reply in answers for failure in reply.failures]
    failures += [
        reading.Problem("empty", "the reply names no aspect").failure("extract", f"text {number}")
        for number, reply in enumerate(answers, 1)
        if reply.data and not tally.distinct_phrases(reply.data["aspects"])
    ]
    phrases = tally.by_frequency([reply.data["aspects"] for reply in answers if reply.data])
    if len(phrases) < options.n:
        found = f"{options.n} aspects were wanted, and {len(phrases)} found in {len(corpus)} texts"
        first = f"; the first failure: {failures[0]['detail']}" if failures else ""
        raise OptionError(found + first)
    return answers, phrases, failures


async def _read(question: Question, number: int, part: Passage, options: LearnOptions) -> Reply:
    """Ask for the aspects of one text."""
    request, text = part
    token = fences.fence(request, text)
    context = WORDS["context"].format(fence=token, request=request) if request else ""
    variables = {"fence": token, "context": context, "text": text, **options.shared}
    account = Account(run=run_of(options.config))
    return await ask(question, variables, account, unit=f"text {number}")


def _too_few(merged: Reply, n: int) -> list[Failure]:
    """The failure of merging to fewer aspects; the most frequent fill the gap."""
    found = len(tally.distinct_phrases((merged.data or {}).values()))
    if not merged.data or found >= n:
        return []
    detail = f"{found} distinct aspects came of {n}; the most frequent fill up"
    return [reading.Problem("missing", detail).failure("consolidate", "")]
