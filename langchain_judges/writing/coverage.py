"""Coverage of concepts in a text: in any of their word forms, or in their exact form.

Word forms are those of LemmInflect: the dictionary of the SPECIALIST lexicon with all the
readings of a word (leaves: leaf and leave), and learnt rules for words that it lacks
(tattoos). It is English. For other languages the word forms are those with the same stem, by
the Snowball stemmer of the language that is named.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict, Unpack

from langchain_judges.errors import OptionError, needs


class Missing(TypedDict):
    """A concept that a text does not use, and the step that lost it.

    Attributes:
        lost_in: `merge` if the draft that had to use it did.
    """

    concept: str
    lost_in: Literal["solve", "merge"]


class Counting(TypedDict, total=False):
    """The rule of using a concept; keywords of `present`, which says what they mean."""

    strict: bool
    language: str


class _Word(NamedTuple):
    text: str
    # Characters between this word and the one before; None if they separate them.
    joint: str | None


ENGLISH = "english"
# With the vowel signs and accents of Hebrew, Arabic and the scripts of India.
_LETTER = "(?:[^\\W_]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff])"
# What goes on after a letter, as in C++, or after a digit, as in 10,000 and 10:30.
_SIGN = r"(?<=[^\W\d_])(?:\+\+|[+#](?!\w))"
_POINT = r"(?<=\d)[.,:](?=\d)"
# Beside a single letter, as in R&D and AT&T.
_AND = r"&(?=[^\W_](?![^\W_]))|(?<=(?<![^\W_])[^\W_])&(?=[^\W_])"
_WORD = re.compile(rf"{_LETTER}+(?:(?:'|{_POINT}|{_AND}){_LETTER}+)*(?:{_SIGN})?")
_JOINT = re.compile(r"[\s-]+")
_SIGNS = str.maketrans("’ʼ‐‑İ", "''--i", "\xad\u200b\ufe0e\ufe0f")
# Thai to Burmese, Khmer, and the scripts of Chinese and Japanese.
_UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
# A letter of a script of which no word form is English.
_NOT_LATIN = re.compile("[^\\W\\d_\0-\u024f\u1e00-\u1eff]")
_LOCK = threading.Lock()
# Irregular plurals that the dictionary has as words of their own only.
_LACKING = {"oxen": "ox", "people": "person"}
# Letters of a word that the rules for unknown words may take endings from.
_SHORTEST_GUESS = 3


def fold(text: str, language: str = ENGLISH) -> str:
    """`text` without what tells no words apart: capitals, kinds of hyphens and of signs."""
    composed = unicodedata.normalize("NFC", text)
    if language == "turkish":
        composed = composed.replace("I", "ı")
    return unicodedata.normalize("NFC", composed.translate(_SIGNS).casefold())


def distinct(concepts: Iterable[str]) -> list[str]:
    """The concepts without repetitions; "Polish" and "polish" are two."""
    return list(dict.fromkeys(" ".join(concept.split()) for concept in concepts))


def present(concept: str, text: str, *, strict: bool = False, language: str = ENGLISH) -> bool:
    """Whether `text` uses `concept`.

    A concept of several words must stand together, in its order: with spaces or hyphens
    between its words or as one word. Capitals never count. A concept that is a base form
    is no form of another word: "see" does not stand for the tool "saw".

    Args:
        concept: A word or several; with other signs (`C++`) or in a script without spaces,
            it is looked for as it stands.
        text: The text.
        strict: Take the exact form only, hyphens and spaces included.
        language: Whose word forms count: `"english"`, or a language of Snowball.

    Returns:
        Whether it occurs as whole words; "car" is not in "scar".

    Source: Saha et al. 2023, section 4.2 (missing concepts); the matching is our reading.
    """
    phrase = " ".join(fold(concept, language).split())
    if not phrase:
        return False
    parts = tuple(_WORD.findall(phrase))
    if strict or _UNSPACED.search(phrase) or _WORD.sub("", phrase).strip(" -") or not parts:
        return _literally(phrase, fold(text, language))
    words = _words(text, language)
    size = len(parts)
    same = _is_form if language == ENGLISH else _same_stem(language)
    for start in range(len(words) - size + 1):
        run = words[start : start + size]
        if all(word.joint for word in run[1:]) and all(
            same(word.text, part) for word, part in zip(run, parts, strict=True)
        ):
            return True
    compound = "".join(parts)
    whole = _compounds(words) if size == 1 else [word.text for word in words]
    return any(same(word, compound) for word in whole)


def tells_forms(concepts: Iterable[str], *, strict: bool = False, language: str = ENGLISH) -> bool:
    """Whether every concept counts in any of its word forms, and none in its exact form alone.

    >>> tells_forms(["café", "sea"]), tells_forms(["море"]), tells_forms(["море"], strict=True)
    (True, False, False)
    """
    words = fold(" ".join(concepts), language)
    is_foreign = language == ENGLISH and _NOT_LATIN.search(words)
    return not (strict or is_foreign or _UNSPACED.search(words))


def missing(concepts: Iterable[str], text: str, **counting: Unpack[Counting]) -> list[str]:
    """The concepts that `text` does not use, as they are spelled and ordered."""
    return [concept for concept in concepts if not present(concept, text, **counting)]


def losses(
    concepts: Iterable[str],
    groups: Sequence[Sequence[str]],
    drafts: Sequence[str | None],
    text: str | None,
    **counting: Unpack[Counting],
) -> list[Missing]:
    """The concepts missing from a text, and the step that lost each of them.

    Args:
        concepts: Every concept.
        groups: The concepts by the draft that had to use them.
        drafts: The drafts, in the order of their groups; None for one that failed.
        text: The text made of them; None if there is none, which uses nothing.
        counting: The rule of using a concept, as of `present`.

    Source: Saha et al. 2023, section 4.2: lost in solve if its draft lacks it, else in merge.
    """
    draft_of = {name: draft for group, draft in zip(groups, drafts, strict=True) for name in group}
    omissions: list[Missing] = []
    for concept in missing(concepts, text or "", **counting):
        in_draft = present(concept, draft_of.get(concept) or "", **counting)
        omissions.append({"concept": concept, "lost_in": "merge" if in_draft else "solve"})
    return omissions


def _literally(phrase: str, text: str) -> bool:
    pattern = re.escape(phrase).replace(r"\ ", r"\s+")
    if not _UNSPACED.search(phrase):
        is_word = re.match(rf"{_LETTER}|[.#@]", phrase)
        before = rf"(?<!{_LETTER})(?<!{_POINT}|{_AND})" if is_word else ""
        after = rf"(?!{_LETTER}|{_POINT}|{_SIGN}|{_AND})" if re.match(_LETTER, phrase[-1]) else ""
        # An emoji may be a part of a larger one.
        pattern = f"(?<!\u200d){before}{pattern}{after}(?![\u200d\u20e3])"
    return re.search(pattern, text) is not None


@lru_cache(maxsize=512)
def _words(text: str, language: str) -> tuple[_Word, ...]:
    folded = fold(text, language)
    words: list[_Word] = []
    end = 0
    for word in _WORD.finditer(folded):
        between = folded[end : word.start()]
        words.append(_Word(word[0], between if _JOINT.fullmatch(between) else None))
        end = word.end()
    return tuple(words)


def _compounds(words: Sequence[_Word]) -> list[str]:
    """Pairs of words with a hyphen between them, as one word: e-mail, email."""
    return [one.text + two.text for one, two in pairwise(words) if two.joint == "-"]


def _is_form(word: str, concept: str) -> bool:
    if word == concept or word.removesuffix("'s") == concept:
        return True
    forms = _forms(concept)
    return any(
        form in forms
        or concept in _bases(form)
        # Nouns too become verbs that the dictionary lacks: unicycling.
        or (not (_bases(concept) and _bases(form)) and concept in _guessed_bases(form))
        for form in {word, word.removesuffix("'s")}
    )


@lru_cache(maxsize=8192)
def _forms(concept: str) -> frozenset[str]:
    """Every form of the word that `concept` is a form of."""
    known = _bases(concept)
    # A guess counts if it leads back: the rules cut the é off "café".
    guessed = (base for base in _guessed_bases(concept) if concept in _inflected(base))
    bases = {concept} if concept in known else known or {*guessed}
    return frozenset({concept}).union(bases, *map(_inflected, bases))


@lru_cache(maxsize=8)
def _same_stem(language: str) -> Callable[[str, str], bool]:
    """A test whether two words have one stem."""
    stemmer = _package("snowballstemmer").stemmer(language)

    @lru_cache(maxsize=8192)
    def stem(word: str) -> str:
        with _LOCK:  # it keeps the word that it works on
            return str(stemmer.stemWord(word))

    return lambda word, concept: word == concept or stem(word) == stem(concept)


def languages() -> list[str]:
    """The languages whose word forms can be told.

    Raises:
        MissingExtraError: The extra `writing` is not installed.
    """
    return [name for name in _package("snowballstemmer").algorithms() if "porter" not in name]


def check_word_forms(language: str = ENGLISH) -> None:
    """Check that word forms can be told; better said before a call is paid.

    Raises:
        MissingExtraError: The extra `writing` is not installed.
        OptionError: The language is unknown.
    """
    _package("lemminflect")
    if language != ENGLISH and language not in languages():
        rule = f"`language` must be one of {', '.join(languages())}, got {language!r}"
        raise OptionError(f"{rule}; or count exact forms alone (strict)")


def _package(name: str) -> Any:
    with needs("writing", "Telling word forms", ", or count exact forms alone (strict)"):
        return import_module(name)


@lru_cache(maxsize=8192)
def _bases(word: str) -> frozenset[str]:
    """The words that `word` can be a form of; none if the dictionary lacks it."""
    with _LOCK:
        found = _package("lemminflect").getAllLemmas(word)
    lemmas = frozenset[str](base for bases in found.values() for base in bases)
    return lemmas | ({_LACKING[word]} if word in _LACKING else frozenset())


@lru_cache(maxsize=8192)
def _guessed_bases(word: str) -> frozenset[str]:
    if len(word) < _SHORTEST_GUESS or not word.isalpha():
        return frozenset()
    with _LOCK:
        guesses = [_package("lemminflect").getAllLemmasOOV(word, kind) for kind in ("NOUN", "VERB")]
    return frozenset(base for tagged in guesses for bases in tagged.values() for base in bases)


@lru_cache(maxsize=8192)
def _inflected(base: str) -> frozenset[str]:
    inflect = _package("lemminflect")
    with _LOCK:
        inflections = [inflect.getAllInflections(base)]
        if not inflections[0] and len(base) >= _SHORTEST_GUESS:
            inflections = [inflect.getAllInflectionsOOV(base, kind) for kind in ("NOUN", "VERB")]
    return frozenset(form for each in inflections for forms in each.values() for form in forms)
