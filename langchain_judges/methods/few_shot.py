"""Worked examples of a preference, for few-shot prompts of any method (SC², Table 5).

Written for this package. Every one has a table, so that a method with tables and one
without are shown the same cases; right answers stand in either slot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired, Self

from pydantic import model_validator
from typing_extensions import TypedDict

from langchain_judges.errors import OptionError
from langchain_judges.methods.second_order import TwoOrders
from langchain_judges.options import ClientMost, Rule


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


def _row(aspect: str, common: str, only_a: str, only_b: str) -> dict[str, str]:
    return {"aspect": aspect, "common": common, "only_a": only_a, "only_b": only_b}


WORKED: tuple[WorkedExample, ...] = (
    {
        "input": "A jacket costs 80 euros and is reduced by 15 %. What does it cost now?",
        "response_1": "A reduction of 15 % means that you pay a part of the old price. First "
        "find the reduction: 15 % of 80 is 80 x 0.15 = 12. That is what you save. The new "
        "price is therefore 80 - 12 = 78 euros. Always check whether a reduction is taken at "
        "the till!",
        "response_2": "68 euros: you pay 85 % of 80.",
        "rows": [
            _row("Final price", "none", "78 euros", "68 euros"),
            _row("Method", "a share of the old price", "80 - 12 euros", "85 % of 80"),
            _row("Intermediate result", "none", "a saving of 12 euros", "none"),
            _row("Advice", "none", "to check the reduction at the till", "none"),
        ],
        "comparison": "Both take a share of the old price, but 80 - 12 is 68: only response 2 "
        "arrives there. That response 1 explains more does not make up for a wrong price.",
        "preferred": "2",
        "reasoning": "The request wants one number, so I work it out first: 15 % of 80 is 12, "
        "and 80 - 12 is 68. Response 1 finds the 12 correctly, but then writes 80 - 12 = 78, "
        "so the price that it gives is wrong. Response 2 says 68 and names a way that leads "
        "there, 85 % of 80. Response 1 is longer and shows its steps; what decides is the "
        "final price, and only response 2 has it right.",
    },
    {
        "input": "Sum up: The library closes at six from May on, an hour later than before, "
        "and opens on Sundays too. The reading room stays shut until July.",
        "response_1": "From May the library stays open until six, and on Sundays as well; the "
        "reading room is shut until July.",
        "response_2": "The library changes its hours in May and will be closed on Sundays, "
        "while the reading room is shut until July.",
        "rows": [
            _row("Weekday hours", "they change in May", "open until six", "no hour is named"),
            _row("Sundays", "none", "open", "closed"),
            _row("Reading room", "shut until July", "none", "none"),
        ],
        "comparison": "Both have May and the reading room; response 2 says the opposite about "
        "Sundays and leaves the hour out.",
        "preferred": "1",
        "reasoning": "The text has four points: six o'clock from May on, later than before, "
        "Sundays too, the reading room shut until July. Response 1 has three of them and "
        "leaves out only that six is later than before. Response 2 has May and the reading "
        "room, names no hour, and says closed on Sundays where the text says open. A summary "
        "that says the opposite of its text misleads, which decides for response 1.",
    },
    {
        "input": "How do I undo my last git commit but keep the changes?",
        "response_1": "Use `git reset --hard HEAD~1`. This moves the branch back by one "
        "commit. Then look at `git status` to see that all is clean.",
        "response_2": "Use `git reset --soft HEAD~1`; your changes stay staged.",
        "rows": [
            _row("Command", "git reset to HEAD~1", "with --hard", "with --soft"),
            _row("Fate of the changes", "none", "a clean state", "kept, staged"),
            _row("Explanation", "none", "the branch moves back; git status", "none"),
        ],
        "comparison": "Both move the branch back by one commit. With --hard the changes are "
        "lost, which the request wanted to keep; --soft keeps them.",
        "preferred": "2",
        "reasoning": "The request has two parts: the commit is to go, the changes are to stay. "
        "`git reset HEAD~1` undoes the commit in both responses, so the option decides. --hard "
        "throws the changes away, and the clean status that response 1 promises means just "
        "that. --soft leaves them staged, as response 2 says. Response 1 explains more but "
        "destroys what was to be kept, so response 2 is better.",
    },
    {
        "input": "Is it safe to look at a solar eclipse through ordinary sunglasses?",
        "response_1": "No. Only eclipse glasses made for it, or a projection, keep your eyes "
        "from harm.",
        "response_2": "No, it is not. Ordinary sunglasses let far too much light through. By "
        "the way, the longest eclipse of this century lasted over six minutes, and ancient "
        "peoples feared such days.",
        "rows": [
            _row("Answer", "not safe", "none", "none"),
            _row("Reason", "none", "none", "sunglasses let too much light through"),
            _row("Safe ways", "none", "eclipse glasses, projection", "none"),
            _row("Other facts", "none", "none", "longest eclipse, ancient fears"),
        ],
        "comparison": "Both say correctly that it is not safe. Response 1 goes on to what is "
        "safe; response 2 gives a reason and then wanders off.",
        "preferred": "1",
        "reasoning": "The right answer is no, and both give it, so correctness does not "
        "separate them. Next I look at what helps somebody who wants to watch: response 1 "
        "names two safe ways. Response 2 gives the reason, which is useful too, but spends "
        "its second half on facts that nobody asked for. Safe ways matter more to the person "
        "than a record of length, so response 1 is better.",
    },
    {
        "input": "Write one friendly line to remind a colleague of the report due on Friday.",
        "response_1": "Dear Ana, I hope you are well. As you know, the report is due on "
        "Friday. I should like to point out that it was late last time. Please see to it that "
        "this does not happen again.",
        "response_2": "Hi Ana, a small reminder that the report is due on Friday. Thank you!",
        "rows": [
            _row("Content", "the report is due on Friday", "it was late last time", "none"),
            _row("Tone", "greets her by name", "warns her", "thanks her"),
            _row("Length", "none", "four sentences", "one line and a thank-you"),
        ],
        "comparison": "Both greet Ana and say when the report is due; only response 2 is one "
        "line and friendly, as was asked.",
        "preferred": "2",
        "reasoning": "The request sets three things: one line, friendly, and the report due "
        "on Friday. Both responses have the report and the day. Response 1 takes four "
        "sentences and ends in a reproach, so it misses two of the three. Response 2 is a "
        "line with a thank-you behind it and sounds friendly. It does what was asked, so it "
        "is better.",
    },
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


class FewShot(TwoOrders):
    """A judge that can show worked examples."""

    shots: Annotated[int, ClientMost(20)] = 0
    """Number of worked examples shown first; 0 to 5 of ours."""
    examples: Annotated[
        Sequence[Mapping[str, Any]] | None,
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
    shots: int, examples: Sequence[Mapping[str, Any]] | None = None
) -> list[WorkedExample]:
    """Return the first `shots` worked examples, ours or the caller's.

    Raises:
        OptionError: There are not so many, or one lacks a field.
    """
    pool: Sequence[Mapping[str, Any]] = WORKED if examples is None else examples
    if not isinstance(pool, list | tuple):
        raise OptionError(f"`examples` must be a list, got {pool!r}")
    whole = isinstance(shots, int) and not isinstance(shots, bool)
    if not whole or not 0 <= shots <= len(pool):
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
