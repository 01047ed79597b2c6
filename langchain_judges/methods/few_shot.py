"""Worked examples of a preference, for few-shot prompts of any method (SC², Table 5).

Written for this package. Every one has a table, so that a method with tables and one
without are shown the same cases; right answers stand in either slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import model_validator
from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.methods.base import JudgeOptions
from langchain_judges.options import ClientMost, Rule


class WorkedExample(TypedDict):
    """A pair with its table, what decides, and the slot that is preferred."""

    input: str
    response_1: str
    response_2: str
    rows: list[dict[str, str]]
    """`{"aspect", "common", "only_a", "only_b"}`; A is response 1."""
    comparison: str
    preferred: str
    """`"1"` or `"2"`."""


def _row(aspect: str, common: str, only_a: str, only_b: str) -> dict[str, str]:
    return {"aspect": aspect, "common": common, "only_a": only_a, "only_b": only_b}


WORKED: tuple[WorkedExample, ...] = (
    {
        "input": "My tomato plants have yellow leaves at the bottom. What is wrong?",
        "response_1": "Plants can be many colours. I like tomatoes.",
        "response_2": "Old lower leaves yellow first when nitrogen is short. Feed them a "
        "balanced fertiliser, and water at the roots.",
        "rows": [
            _row("Cause", "none", "none", "too little nitrogen"),
            _row("Advice", "none", "none", "fertilise, water at the roots"),
        ],
        "comparison": "Only response 2 names a cause and what to do; response 1 does not "
        "answer.",
        "preferred": "2",
    },
    {
        "input": "Sum up: The library closes at six from May on, an hour later than before, "
        "and opens on Sundays too.",
        "response_1": "From May the library stays open until six, and on Sundays as well.",
        "response_2": "The library changes its hours in May and will be closed on Sundays.",
        "rows": [
            _row("Hours", "they change in May", "open until six", "none"),
            _row("Sundays", "none", "open", "closed"),
        ],
        "comparison": "Response 2 gets Sundays wrong and leaves the hour out; response 1 has "
        "both right.",
        "preferred": "1",
    },
    {
        "input": "How do I undo my last git commit but keep the changes?",
        "response_1": "Use `git reset --hard HEAD~1`.",
        "response_2": "Use `git reset --soft HEAD~1`; your changes stay staged.",
        "rows": [
            _row("Command", "git reset to HEAD~1", "--hard", "--soft"),
            _row("Changes", "none", "thrown away", "kept, staged"),
        ],
        "comparison": "The changes were to be kept; what response 1 says throws them away.",
        "preferred": "2",
    },
    {
        "input": "Is it safe to look at a solar eclipse through ordinary sunglasses?",
        "response_1": "No. Only eclipse glasses made for it, or a projection, keep your eyes "
        "from harm.",
        "response_2": "Dark sunglasses are fine if you look only now and then.",
        "rows": [
            _row("Answer", "none", "not safe", "safe for short looks"),
            _row("Other ways", "none", "eclipse glasses, projection", "none"),
        ],
        "comparison": "Response 2 would cost somebody their sight; response 1 is right and "
        "names safe ways.",
        "preferred": "1",
    },
    {
        "input": "Write one friendly line to remind a colleague of the report due on Friday.",
        "response_1": "The report is due on Friday. Do not forget it again.",
        "response_2": "Hi Ana, a small reminder that the report is due on Friday. Thank you!",
        "rows": [
            _row("Content", "report due on Friday", "none", "none"),
            _row("Tone", "none", "reproachful", "friendly, thanks her"),
        ],
        "comparison": "Both say when it is due; only response 2 is friendly, as was asked.",
        "preferred": "2",
    },
)
"""Five worked examples; `shots=3` shows the first three."""


class FewShot(JudgeOptions):
    """A judge that can show worked examples."""

    shots: Annotated[int, ClientMost(20)] = 0
    """Worked examples shown first; 0 to 5, where they are ours."""
    examples: Annotated[
        Sequence[Mapping[str, Any]] | None,
        Rule("a list of worked examples, each a dictionary as in `WORKED`"),
    ] = None
    """Worked examples of your own instead, in the form of `few_shot.WORKED`."""

    @property
    def worked(self) -> Sequence[WorkedExample]:
        """The worked examples that are shown."""
        return worked_examples(self.shots, self.examples)

    @model_validator(mode="after")
    def _enough_examples(self) -> Self:
        worked_examples(self.shots, self.examples)
        return self


def worked_examples(
    shots: int, examples: Sequence[Mapping[str, Any]] | None = None
) -> list[WorkedExample]:
    """Return the first `shots` worked examples, ours or the caller's.

    Raises:
        OptionError: There are not so many, or one lacks a field.
    """
    given: Sequence[Mapping[str, Any]] = WORKED if examples is None else examples
    if not isinstance(given, list | tuple):
        raise OptionError(f"`examples` must be a list, got {given!r}")
    whole = isinstance(shots, int) and not isinstance(shots, bool)
    if not whole or not 0 <= shots <= len(given):
        raise OptionError(f"`shots` must be between 0 and {len(given)}, got {shots!r}")
    for example in given:
        _check(example)
    return [
        WorkedExample(**{key: example[key] for key in WorkedExample.__annotations__})  # type: ignore[typeddict-item]
        for example in given[:shots]
    ]


def _check(example: object) -> None:
    """Check that an example is whole, or say what is wrong with it."""
    if not isinstance(example, Mapping):
        raise OptionError(f"an example must be a dictionary as in `WORKED`, got {example!r}")
    if missing := [key for key in WorkedExample.__annotations__ if key not in example]:
        raise OptionError(f"an example lacks {missing!r}, got {sorted(example)!r}")
    for name in ("input", "response_1", "response_2", "comparison"):
        if not isinstance(example[name], str):
            raise OptionError(f"an example's `{name}` must be a text, got {example[name]!r}")
    rows = example["rows"]
    if not isinstance(rows, list | tuple) or not all(map(_is_row, rows)):
        raise OptionError(
            "an example's `rows` must each have 'aspect', 'common', 'only_a', 'only_b' as "
            f"texts, got {rows!r}"
        )
    if example["preferred"] not in ("1", "2"):
        raise OptionError(
            f"an example's `preferred` must be '1' or '2', got {example['preferred']!r}"
        )


def _is_row(row: object) -> bool:
    names = ("aspect", "common", "only_a", "only_b")
    return isinstance(row, Mapping) and all(isinstance(row.get(n), str) for n in names)
