"""A criterion, and the forms in which people give one or several."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from annotated_types import Gt, Le, Predicate
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from langchain_judges.errors import OptionError, did_you_mean
from langchain_judges.lazy import packaged
from langchain_judges.methods.declaration import Written, name_and_text
from langchain_judges.options import Options, Owner, Rule, Scale
from langchain_judges.rows import checks, texts
from langchain_judges.verdict import Label, first_of, positions_of

# A row may have the rubric that others have.
warn_once = lru_cache(1024)(logging.getLogger(__name__).warning)
# What messages say of a rubric that cannot be judged by.
REFUSALS: Mapping[str, str] = packaged(__package__, "refusals.yaml")

# Labels from lowest to highest, or each with what it means.
LabelsLike = Sequence[Label] | Mapping[Label, str]
# Whether a reply gives its reason before the label, or not at all.
Explain = Literal["first", "none"]

# What 0 and 1 mean of a criterion that says nothing else, be it a question or a statement.
YES_NO: Mapping[Label, str] = {0: "no", 1: "yes"}
# From the lowest to the highest number of a scale: every one of them is a label.
_WIDEST = 100
_LABELS = REFUSALS["labels"]


def read_labels(labels: object) -> tuple[Label, ...] | dict[Label, str]:
    """At least two labels, all numbers or all texts, or each with its meaning.

    The keys of a JSON object are texts: where all of them spell numbers, they are numbers.

    Raises:
        OptionError: They are something else.
    """
    if isinstance(labels, Mapping):
        if not all(isinstance(each, str | None) for each in labels.values()):
            raise OptionError(f"`labels` must be {_LABELS}, in words, got {labels!r}")
        meanings = [(each or "").strip() for each in labels.values()]
        return dict(zip(read_labels(as_numbers([*labels])), meanings, strict=True))
    each = tuple(labels) if isinstance(labels, list | tuple) else ()
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in each):
        fits = [*each] in (sorted(each), sorted(each, reverse=True))
    else:
        fits = all(isinstance(one, str) and not texts.is_blank(one) for one in each)
    distinct = len({str(one).strip().casefold() for one in each}) == len(each)
    if len(each) < 2 or not fits or not distinct:
        raise OptionError(f"`labels` must be {_LABELS}, got {labels!r}")
    return each


def as_numbers(names: Sequence[Any]) -> Sequence[Any]:
    """Names as the numbers that all of them spell, whole ones without a point; else the names."""
    try:
        numbers = [float(name) for name in names]
    except (TypeError, ValueError, OverflowError):
        return names
    return [int(number) if number.is_integer() else number for number in numbers]


# Whose labels are the options' own, not a criterion's.
JUDGE = "the judge"


def oriented(values: Mapping[str, Any], whose: str) -> dict[str, Any]:
    """Options with their labels from the worst to the best, as `best` says it.

    Words without a stated better end are read in their order, and the log says so.

    Raises:
        OptionError: `best` is at neither end of the labels, or there are none.
    """
    labels, best = values.get("labels") or values.get("scale"), values.get("best")
    if isinstance(labels, Mapping):  # of a JSON object, whose keys are texts
        labels = dict(zip(as_numbers([*labels]), labels.values(), strict=True))
    names = list(labels) if isinstance(labels, list | tuple | Mapping) else []
    ends = names[:1] + names[-1:]
    if best is not None and best not in ends and (names or whose == JUDGE):
        rule = f"must be one of {ends!r}" if names else "needs `labels` beside it"
        raise OptionError(f"`best` of {whose} {rule}, got {best!r}")
    if best is not None and best in names[:1] and values.get("labels"):
        turned = names[::-1]
        own = {name: labels[name] for name in turned} if isinstance(labels, Mapping) else turned
        return {**values, "labels": own}
    if best is None and len(names) > 1 and not _rises(names):
        how = "`best=%r` or `best=%r`" if whose == JUDGE else 'its own "best", %r or %r'
        warn_once(REFUSALS["no_best"].format(how), whose, *ends, *ends)
    return dict(values)


def _rises(names: Sequence[Any]) -> bool:
    numbers = [name for name in as_numbers(names) if isinstance(name, int | float)]
    return len(numbers) == len(names) and numbers == sorted(numbers)


# The type of an option that holds labels.
Labels = Annotated[LabelsLike, BeforeValidator(read_labels), Rule(_LABELS)]


class Criterion(Options):
    """One thing that a text is judged by.

    Attributes:
        name: What its score is called in results and in LangSmith.
        description: What to look at, in a sentence or as a question; default the name alone.
        weight: How much it counts in the total.
        labels: What may be said of it, from lowest to highest, or each label with what it
            means. Default: the labels of the judge.
        best: The better end of its labels or its scale, the first or the last; default the
            last. Where neither is given, of the labels of the judge.
        scale: Whole numbers (lowest, highest) instead of labels.
        anchors: What some numbers of the scale mean: `{1: "…", 5: "…"}`.
        unless: What leaves nothing to judge, such as "there is no plan": the model then answers
            `cannot_assess`, and there is no label.
        required: Whether the text fails as a whole if it fails this criterion.
        least: The lowest label with which the criterion holds; default the first that is not
            in the lower half of its labels.

    Raises:
        OptionError: A value is not allowed.

    >>> Criterion(name="Tone", labels={"rude": "it blames", "polite": "it thanks"}).names
    ('rude', 'polite')
    """

    called = "a criterion"

    name: Written
    description: Annotated[str, AfterValidator(str.strip)] = ""
    weight: Annotated[float, Gt(0), Le(1000)] = 1.0
    labels: Labels | None = None
    best: Label | None = None
    scale: Annotated[
        Scale | None,
        Predicate(lambda ends: ends is None or ends[1] - ends[0] <= _WIDEST),
        Rule("two whole numbers (low, high), at most 100 apart, or None"),
    ] = None
    anchors: Annotated[Mapping[int, str], Rule("what numbers of the scale mean, by number")] = {}
    unless: Annotated[str, AfterValidator(str.strip)] = ""
    required: bool = False
    least: Label | None = None
    # Whether its scale is read from its description, which does not say which end is the best.
    _is_read: bool = False

    @model_validator(mode="before")
    @classmethod
    def _read_rubric(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        values = oriented(values, f"{values.get('name')!r}")
        if isinstance(anchors := values.get("anchors"), Mapping):
            numbers = as_numbers(list(anchors))
            values = {**values, "anchors": dict(zip(numbers, anchors.values(), strict=True))}
        return values

    @model_validator(mode="after")
    def _check(self) -> Criterion:
        if self.scale and self.labels:
            raise OptionError(f"{self.name!r}: give `labels` or `scale`, not both")
        if odd := [number for number in self.anchors if number not in self.names]:
            raise OptionError(f"{self.name!r}: `anchors` has {odd[0]!r}, not on its scale")
        if self.least is not None and (self.scale or self.labels):
            self.position(self.least)
        return self

    @property
    def names(self) -> tuple[Label, ...]:
        """Its labels, from lowest to highest."""
        if not self.scale:
            return tuple(self.labels or (0, 1))
        rising = range(self.scale[0], self.scale[1] + 1)
        return tuple(rising[::-1] if self.best == rising[0] else rising)

    @property
    def meanings(self) -> Mapping[Label, str]:
        """The meanings of some of its labels."""
        if isinstance(self.labels, Mapping):
            return {label: meaning for label, meaning in self.labels.items() if meaning}
        if self.names == (0, 1) and not self.scale:
            return YES_NO
        return {number: meaning for number, meaning in self.anchors.items()}

    @property
    def is_graded(self) -> bool:
        """Whether its labels are numbers."""
        return not isinstance(self.names[0], str)

    @property
    def assumed(self) -> str:
        """The sentence that says which label counts as good though nobody said so, or ""."""
        worst, best = self.names[0], self.names[-1]
        if self.best is not None or self.least is not None or not _rises(self.names):
            return ""
        told = f"{best} ({self.meanings[best]})" if best in self.meanings else best
        how = f"say `best={worst}` where it is a fault, else `best={best}`"
        return f"Of {self.name!r}, {told} counts as good: {how}."

    @property
    def doubt(self) -> str:
        """The sentence that its labels are not, or not surely, the scale that it names, or ""."""
        read = REFUSALS["read"].format(self.names[0], self.names[-1])
        return read if self._is_read else other_scale(self.description, self.names)

    def position(self, label: Label) -> float:
        """Position of a label between the lowest, 0, and the highest, 1.

        Numbers keep their place on the scale; words are evenly spaced.

        Raises:
            OptionError: It is none of the labels.
        """
        if label not in self.names:
            raise OptionError(f"{self.name!r} has no label {label!r}; it has {self.names!r}")
        return positions_of(self.names)[label]

    def holds(self, label: Label) -> bool:
        """Whether a text with this label meets the criterion."""
        return self.position(label) >= (0.5 if self.least is None else self.position(self.least))

    def with_labels(self, labels: LabelsLike | None, best: Label | None) -> Criterion:
        """The criterion with these labels, unless it has its own or there are none.

        Where there are none, "Score 1: …" to "Score 5: …" in its description are its scale.

        Raises:
            OptionError: Its better end is at neither end of them.
        """
        if self.labels or self.scale:
            return self
        if labels is None and (numbers := scale_in(self.description)):
            own = Criterion(**{**dict(self), "scale": (numbers[0], numbers[-1])})
            own._is_read = own.best is None and numbers != [0, 1]
            return own
        if labels is None and self.best is None:
            return self
        labels = labels or YES_NO
        if self.best is not None:
            return Criterion(**{**dict(self), "labels": labels})
        fields = {**dict(self), "labels": labels, "best": [*labels][-1]}
        return Criterion(**fields).model_copy(update={"best": best})


# A range from 0 or 1 to 3 or more, as digits write it in any language: "1-5", "0 to 10", "١-٥".
_RANGE = re.compile(checks.KNOWN_NAMES["range"])


# A number with its meaning, where a line or a clause begins: "Score 1: rude", "2 = fair".
_MEANT = re.compile(checks.KNOWN_NAMES["meant"])


def _digits(text: str) -> str:
    return "".join(str(unicodedata.decimal(each, each)) for each in text)


def _meant(text: str) -> tuple[list[int], bool]:
    """The numbers that a text gives meanings, rising or falling; whether it calls each a score."""
    found = _MEANT.findall(_digits(text))
    numbers = [int(number) for *_, low, high in found for number in (low, high) if number]
    are_scores = len(numbers) > 1 and all(word for _, word, *_ in found)
    rising = sorted({*numbers})
    is_listed = len(numbers) < 3 or bool(re.search(checks.KNOWN_NAMES["listed"], text))
    is_scale = numbers in (rising, rising[::-1]) and (are_scores or not is_listed)
    return (rising, are_scores) if is_scale else ([], False)


def scale_in(text: object) -> list[int]:
    """The numbers from the lowest to the highest of a scale of scores with meanings, or none."""
    numbers, are_scores = _meant(text) if isinstance(text, str) else ([], False)
    return numbers if are_scores and numbers[-1] - numbers[0] == len(numbers) - 1 else []


@lru_cache(1024)
def other_scale(text: str, labels: tuple[Label, ...]) -> str:
    """The sentence that a text names a scale which is not the labels, or "".

    >>> other_scale("0 = rude, 1 = curt, 2 = polite", (0, 1))
    "names '0, 1, 2', and its labels are 0, 1: set others by `labels`"
    """
    known, (numbers, _) = [*map(str, labels)], _meant(text)
    found = _RANGE.search(_digits(text)) if labels == (0, 1) and not numbers else None
    named = text[slice(*found.span())] if found else ", ".join(map(str, numbers))
    is_other = found or not {*map(str, numbers)} <= {*known}
    return REFUSALS["scale"].format(named, first_of(known)) if is_other else ""


def tell_scale(doubt: str) -> None:
    """Warn, once, that a rubric or a prompt names a scale that is not surely the labels."""
    if doubt:
        warn_once("A rubric or a prompt %s", doubt)


# A criterion as callers write it: a name or `"name: description"`, or its fields by name.
CriterionLike = str | Criterion | Mapping[str, object]
# One criterion as a text or several: a list, or a mapping of names to descriptions.
RubricLike = CriterionLike | Sequence[CriterionLike]


def read_rubric(rubric: RubricLike) -> tuple[Criterion, ...]:
    """The criteria of a caller.

    A text is one criterion, named `rubric`; the criteria of a list are named each by itself;
    a mapping is a criterion by its fields where it has a `name`, else names to descriptions.

    Raises:
        OptionError: There are none, or two have the same name.
    """
    if isinstance(rubric, str):
        rubric = {"rubric": rubric}
    if isinstance(rubric, Mapping) and "name" not in rubric:
        rubric = [_described(name, about) for name, about in rubric.items()]
    elif isinstance(rubric, Mapping | Criterion):
        rubric = [rubric]
    if not isinstance(rubric, list | tuple):
        raise OptionError(f"`rubric` must be a text, a list or a mapping, got {rubric!r}")
    criteria = tuple(map(_read_criterion, rubric))
    names = [criterion.name.casefold() for criterion in criteria]
    twice = [name for name in names if names.count(name) > 1]
    if not criteria or twice:
        fault = f"two criteria are named {twice[0]!r}" if twice else "it has no criterion"
        raise OptionError(f"`rubric`: {fault}")
    return criteria


def _described(name: object, about: object) -> Criterion:
    if isinstance(about, str) and texts.is_blank(about):
        raise OptionError(REFUSALS["blank"].format(name=name))
    own = about if isinstance(about, Mapping) else {"description": about or ""}
    return _read_criterion({"name": name, **own})


def _read_criterion(criterion: object) -> Criterion:
    if isinstance(criterion, Criterion):
        return criterion
    if isinstance(criterion, str):
        if criterion in ready_names():
            raise OptionError(REFUSALS["listed"].format(name=criterion))
        return _described(*name_and_text(criterion))
    if isinstance(criterion, Mapping):
        if len(criterion) == 1 and Criterion.model_fields.keys().isdisjoint(criterion):
            return _described(*next(iter(criterion.items())))  # of YAML, "- name: description"
        try:
            return Criterion(**{str(key): value for key, value in criterion.items()})
        except OptionError as exc:
            if (who := repr(criterion.get("name", criterion))) in str(exc):
                raise
            raise OptionError(f"criterion {who}: {exc}") from exc
    raise OptionError(REFUSALS["criterion"].format(given=criterion))


# What a row must have besides task and output: one of them, or several.
Needs = Annotated[
    tuple[checks.Need, ...],
    BeforeValidator(lambda needs: (needs,) if isinstance(needs, str) else needs),
    Rule(f"one or several of {', '.join(get_args(checks.Need))}"),
]
_PRESET_NAME = re.compile(r"[a-z]+(_[a-z]+)*")
_FOLDER = files("langchain_judges.methods.rubric") / "ready"


class Rubric(Options):
    """Criteria, and how to judge by them.

    Attributes:
        criteria: In the order in which they are asked.
        about: What it is for, in a line.
        steps: How to judge, step by step.
        needs: What a row must have besides task and output.
        counts: Whether its scale counts documents: it ends where there are fewer.
        judges: What is judged: the row's output, or its source as the result of a search.
    """

    called = "a rubric"

    criteria: Annotated[tuple[Criterion, ...], BeforeValidator(read_rubric)]
    about: str = ""
    steps: Annotated[Sequence[str], Field()] = ()
    needs: Needs = ()
    counts: bool = False
    judges: Literal["output", "source"] = "output"


_BOOL = "tag:yaml.org,2002:bool"
_RESOLVERS = {
    first: [(tag, form) for tag, form in forms if tag != _BOOL or first in "tTfF"]
    for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_SAFE_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the first is much faster
# Reads `yes`, `no`, `on` and `off` as the words they are: labels may be called so.
_LOADER = type("Loader", (_SAFE_LOADER,), {"yaml_implicit_resolvers": _RESOLVERS})


def load_rubric(path: Any) -> Any:
    """The rubric in a YAML or JSON file, or as a spec holds one that was read; else the value.

    The file holds a list of criteria, a mapping of names to descriptions, or a mapping with
    `criteria` and, optionally, `steps`, `needs` and `about`.

    Raises:
        OptionError: It cannot be read, or holds no rubric.
    """
    if not isinstance(path, str | PathLike):
        return Rubric(**path) if isinstance(path, Mapping) else path
    try:
        return _read_rubric(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, OptionError) as exc:
        raise OptionError(f"`file`: {path} holds no rubric that can be read: {exc}") from exc


# A rubric by the path of its file, which is read once; only an owner may set it.
RubricFile = Annotated[
    str | PathLike[str] | Rubric | None, BeforeValidator(load_rubric), Owner(), Rule("a path")
]


def _read_rubric(text: str) -> Rubric:
    data = yaml.load(text, _LOADER)  # noqa: S506 - a SafeLoader with fewer words
    if isinstance(data, Mapping) and "criteria" in data:
        return Rubric(**{str(name): value for name, value in data.items()})
    if not isinstance(data, list | Mapping):
        raise OptionError(f"a rubric must be a list or a mapping of criteria, got {data!r}")
    return Rubric(criteria=read_rubric(data))


@cache
def ready_rubric(name: str) -> Rubric:
    """The rubric of the package that has a name, one of `ready_names()`."""
    return _read_rubric(ready_text(name))


def ready_text(name: str) -> str:
    """The file of the ready rubric of a name."""
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


@cache
def ready_names() -> tuple[str, ...]:
    """The names of the rubrics of the package."""
    names = [file.name for file in _FOLDER.iterdir()]
    return tuple(sorted(n.removesuffix(".yaml") for n in names if n.endswith(".yaml")))


@cache
def other_names() -> Mapping[str, str]:
    """The ready rubrics by what other packages and papers call them."""
    called = packaged(__package__, "other_names.yaml")
    return {other: name for name, others in called.items() for other in others}


# Where prompts of other packages put texts.
_PLACES = re.compile(checks.KNOWN_NAMES["places"])


def checked_name(text: str) -> str:
    """A text, checked that it is a ready rubric's name if it looks like a name.

    Raises:
        OptionError: There is no rubric of that name, or it is a file's name, or a prompt with
            places for texts.
    """
    if re.fullmatch(r"[^\n]{1,300}\.(ya?ml|json|md|txt)", text.strip()):
        raise OptionError(REFUSALS["file"].format(name=text))
    if places := _PLACES.findall(text):
        raise OptionError(REFUSALS["whole_prompt"].format(place=places[0]))
    name = "_".join(text.split()).casefold()
    if text not in ready_names() and (name in ready_names() or _PRESET_NAME.fullmatch(text)):
        hint = did_you_mean(name, ready_names(), other_names())
        names = ", ".join(ready_names())
        raise OptionError(REFUSALS["unknown"].format(name=text, hint=hint, names=names))
    return text
