"""Failure modes: the kinds of mistakes of a judge, suggested by rule and confirmed by people.

The five of the paper (Hasanbeig et al. 2023, section 4) and whatever a user adds. A mode says
what about the response misled the judge, and not whether the response is right: "Room 1, Room
3" is a right answer to "1, 3", with words around it that a judge may stumble over. The paper
sorts by hand; the rules that suggest a mode are ours.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_judges.errors import OptionError
from langchain_judges.memory.example import MEANINGS
from langchain_judges.methods.allure.label_checks import ANSWER, NOUNS, WORD
from langchain_judges.rows.checks import expected_answers
from langchain_judges.rows.texts import judged, transcript

# Share of a response's n-grams that stand in the task, from which it parrots.
_COMMON_SHARE = 0.6
# Share of known words below which a response is gibberish.
_VOCABULARY_SHARE = 0.5
# Compression ratios outside of which a long text is no prose: repeated, or random.
_SQUEEZED = (0.12, 0.85)
# Characters from which a compression ratio says anything.
_LONG_ENOUGH = 200
# Words more than the expected answer from which a response that reasons argues at length.
_ARGUED = 40
_REASONS = re.compile(
    r"\b(because|since|therefore|thus|hence|so that|which means|first|then|finally|however)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Corpus:
    """The usual among the responses of a round.

    Attributes:
        long: Characters of the 95th percentile.
        vocabulary: Words that tasks hold, or that occur in several responses.
    """

    long: float
    vocabulary: frozenset[str]


# Says whether an item's response looks like a failure mode.
Suspect = Callable[[Mapping[str, Any], Corpus], bool]


@dataclass(frozen=True)
class Mode:
    """A kind of mistake.

    Attributes:
        description: One sentence, shown to the auditor and to the judge.
        suspect: Suggests the mode; None: only people name it.
    """

    name: str
    description: str
    suspect: Suspect | None = None


def corpus_of(items: Sequence[Mapping[str, Any]]) -> Corpus:
    """The usual among the responses of some items."""
    responses = [judged(item["output"]) for item in items]
    lengths = sorted(map(len, responses)) or [0]
    counts = Counter(word for response in responses for word in set(_words(response)))
    words = (word for item in items for word in _words(_texts_of(item)))
    several = {word for word, times in counts.items() if times > 1}
    return Corpus(
        long=lengths[int(0.95 * (len(lengths) - 1))], vocabulary=frozenset(words) | several
    )


def suggest_mode(item: Mapping[str, Any], corpus: Corpus, modes: Iterable[Mode]) -> str | None:
    """The name of the first mode that an item's response looks like, or None."""
    for mode in modes:
        if mode.suspect and mode.suspect(item, corpus):
            return mode.name
    return None


def read_modes(modes: Sequence[str] | None) -> tuple[Mode, ...]:
    """A user's modes before the paper's five; an own one replaces its namesake.

    Args:
        modes: Each as `"name: description"`.

    Raises:
        OptionError: They are no list of texts, or a mode has no name.
    """
    if modes is not None and not isinstance(modes, list | tuple):
        raise OptionError(f"`modes` must be a list of failure modes, got {modes!r}")
    parts = [str(each).partition(":") for each in modes or ()]
    own_modes = [Mode(name.strip(), description.strip()) for name, _, description in parts]
    if not all(mode.name for mode in own_modes):
        raise OptionError("a failure mode needs a name: 'name: description'")
    names = {mode.name for mode in own_modes}
    return (*own_modes, *(mode for mode in FIVE if mode.name not in names))


def _words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def _texts_of(item: Mapping[str, Any]) -> str:
    parts = [transcript(item["input"]), *expected_answers(item), str(item.get("source") or "")]
    return "\n".join(parts)


def _parrots(item: Mapping[str, Any], corpus: Corpus) -> bool:
    del corpus
    reply, task = _trigrams(judged(item["output"])), _trigrams(transcript(item["input"]))
    return len(reply) >= 5 and len(reply & task) >= _COMMON_SHARE * len(reply)


def _trigrams(text: str) -> set[tuple[str, ...]]:
    words = _words(text)
    return set(zip(words, words[1:], words[2:], strict=False))


def _is_gibberish(item: Mapping[str, Any], corpus: Corpus) -> bool:
    response = judged(item["output"])
    words = [word for word in _words(response) if not word.isdigit()]
    familiar = sum(word in corpus.vocabulary for word in words)
    if len(words) >= 5 and familiar < _VOCABULARY_SHARE * len(words) and not _speakable(words):
        return True
    if len(response) < _LONG_ENOUGH:
        return False
    raw = response.encode("utf-8", "surrogatepass")
    low, high = _SQUEEZED
    return not low <= len(zlib.compress(raw, 9)) / len(raw) <= high


def _speakable(words: Sequence[str]) -> bool:
    """Say whether words nobody else used look like words at all, whatever the language."""
    latin = [word for word in words if word.isascii()]
    odd = sum(
        bool(re.search(r"[bcdfghjklmnpqrstvwxz]{5}|^[b-df-hj-np-tv-xz]{4,}$|\d[a-z]|^.{25}", w))
        for w in latin
    )
    return odd < 0.3 * max(1, len(latin))


def _is_lengthy(item: Mapping[str, Any], corpus: Corpus) -> bool:
    response = judged(item["output"])
    concludes = re.search(r"\b(answer|conclusion|therefore|result)\b.{0,20}:", response, re.I)
    if len(response) > corpus.long and len(response) > _LONG_ENOUGH and not concludes:
        return True
    shortest = min((len(_words(answer)) for answer in expected_answers(item)), default=0)
    argued = len(_words(response)) - shortest >= _ARGUED
    return argued and len(_REASONS.findall(response)) >= 2


def _is_partial(item: Mapping[str, Any], corpus: Corpus) -> bool:
    del corpus
    reply = _answer_words(judged(item["output"]))
    return any(
        reply != answer and (_is_within(reply, answer) or _is_within(answer, reply))
        for answer in map(_answer_words, expected_answers(item))
        if reply and answer and len(reply) <= 3 * len(answer)
    )


def _answer_words(text: str) -> list[str]:
    return [word for word in _words(ANSWER.split(text)[-1]) if word not in NOUNS]


def _is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Say whether `part` is what is left of `whole` when some words are struck out."""
    rest = iter(whole)
    return all(word in rest for word in part)


def _names_keywords(item: Mapping[str, Any], corpus: Corpus) -> bool:
    del corpus
    reply = _answer_words(judged(item["output"]))
    raw = _words(ANSWER.split(judged(item["output"]))[-1])
    task_words = set(_words(transcript(item["input"])))
    for answer in expected_answers(item):
        key_words = _answer_words(answer)
        if not key_words or not set(key_words) <= set(reply):
            continue
        more = set(reply) - set(key_words)
        # The answer itself, with words around it: "Room 1, Room 3" for "1, 3".
        if reply == key_words and raw != _words(answer):
            return True
        # Words of the task beside the answer's, or the same words in another order.
        if reply != key_words and (more & task_words or not more):
            return True
    return False


# The paper's modes, in the order in which they are suggested.
FIVE = tuple(
    Mode(name, MEANINGS[name], suspect)
    for name, suspect in (
        ("parroting", _parrots),
        ("gibberish", _is_gibberish),
        ("lengthy argument", _is_lengthy),
        ("partial correctness", _is_partial),
        ("keywords", _names_keywords),
    )
)
