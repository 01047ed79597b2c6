"""Worked examples of a preference, for few-shot prompts of any method (SC², Table 5).

Written for this package, in `worked_examples.yaml`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Annotated, NotRequired, Self

import yaml
from pydantic import model_validator
from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.methods.options import JudgeOptions
from langchain_judges.options import Rule


class WorkedExample(TypedDict):
    """A pair with its table, what decides, and the slot that is preferred."""

    input: str
    response_1: str
    response_2: str
    rows: list[dict[str, str]]
    """`{"aspect", "common", "only_a", "only_b"}`; A is response 1."""
    comparison: str
    """What decides, in one or two sentences."""
    preferred: str
    """`"1"` or `"2"`."""
    reasoning: NotRequired[str]
    """The steps by which a chain of thought comes to it; default the comparison."""


WORKED: tuple[WorkedExample, ...] = tuple(
    yaml.load(
        (files(__package__) / "worked_examples.yaml").read_text("utf-8"),
        getattr(yaml, "CSafeLoader", yaml.SafeLoader),  # noqa: S506 - safe, and fast where it can
    )
)
"""Five worked examples; `shots=3` shows the first three."""

EXAMPLES = """Worked examples of how this is done:

{examples}

Now the comparison that is wanted.

"""
"""Put before the material where there are worked examples."""

EXAMPLE = """Example {number}
Request: {input}
Response 1: {response_1}
Response 2: {response_2}
{table}Reply: {reply}"""
"""One worked example, with the reply in the form that is asked for."""


def shown_examples(shots: Sequence[tuple[WorkedExample, str, Mapping[str, str]]]) -> str:
    """Render worked examples for a prompt; empty for none.

    Args:
        shots: Each with its table, empty or a text that ends in a line break, and the reply.
    """
    if not shots:
        return ""
    rendered = [
        EXAMPLE.format(
            number=number,
            input=shot["input"],
            response_1=shot["response_1"],
            response_2=shot["response_2"],
            table=table,
            reply=json.dumps(reply, ensure_ascii=False),
        )
        for number, (shot, table, reply) in enumerate(shots, 1)
    ]
    return EXAMPLES.format(examples="\n\n".join(rendered))


class FewShot(JudgeOptions):
    """A judge that can show worked examples."""

    shots: int = 0
    """Number of worked examples shown first; 0 to 5 of ours."""
    examples: Annotated[
        Sequence[Mapping[str, object]] | None,
        Rule("a list of worked examples, each a dictionary as in `WORKED`"),
    ] = None
    """Your own worked examples instead, in the form of `few_shot.WORKED`."""

    @property
    def worked(self) -> Sequence[WorkedExample]:
        """The worked examples that are shown."""
        return worked_examples(self.shots, self.examples)

    @model_validator(mode="after")
    def _enough_examples(self) -> Self:
        worked_examples(self.shots, self.examples)
        return self


def worked_examples(
    shots: int, examples: Sequence[Mapping[str, object]] | None = None
) -> list[WorkedExample]:
    """Return the first `shots` worked examples, ours or the caller's.

    Raises:
        OptionError: There are not so many, or one lacks a field.
    """
    pool: Sequence[Mapping[str, object]] = WORKED if examples is None else examples
    if not isinstance(pool, list | tuple):
        raise OptionError(f"`examples` must be a list, got {pool!r}")
    is_number = isinstance(shots, int) and not isinstance(shots, bool)
    if not is_number or not 0 <= shots <= len(pool):
        raise OptionError(f"`shots` must be between 0 and {len(pool)}, got {shots!r}")
    for example in pool:
        _check(example)
    return [
        WorkedExample(**{k: example[k] for k in WorkedExample.__annotations__ if k in example})  # type: ignore[typeddict-item]
        for example in pool[:shots]
    ]


_REQUIRED = ("input", "response_1", "response_2", "rows", "comparison", "preferred")


def _check(example: object) -> None:
    """Check that an example is whole, or say what is wrong with it."""
    if not isinstance(example, Mapping):
        raise OptionError(f"an example must be a dictionary as in `WORKED`, got {example!r}")
    if missing := [key for key in _REQUIRED if key not in example]:
        raise OptionError(f"an example lacks {missing!r}, got {sorted(example)!r}")
    for name in ("input", "response_1", "response_2", "comparison", "reasoning"):
        if not isinstance(text := example.get(name, ""), str):
            raise OptionError(f"an example's `{name}` must be a text, got {text!r}")
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
