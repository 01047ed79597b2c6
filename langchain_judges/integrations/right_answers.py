"""The right answer in a reference, the criteria in it, and what is neither."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_judges import errors
from langchain_judges import verdict as verdicts
from langchain_judges.rows import checks, data, fields, lookup, record, work
from langchain_judges.rows.notes import lines_in
from langchain_judges.rows.texts import Text, plain
from langchain_judges.verdict import Notes

# Where the criteria of one row stand beside, or in place of, its reference.
_CRITERIA = ("assertions", "criteria", "rubric")
# What stands in reference outputs that is no answer.
_NO_ANSWER = {*_CRITERIA, *checks.ANNOTATIONS}
# The fence of a block of Markdown that a text is.
_FENCE = re.compile(r"^\s*```\w*|```\s*$")


def fields_returned(outputs: object, text: Text | None = None) -> dict[str, object]:
    """The fields that an application returns, also as JSON in its text.

    Args:
        outputs: Its outputs.
        text: The text or the record in them that is judged, if it has been read.
    """
    with suppress(errors.InputError):
        text = text or work.work_in(outputs)
    said = text[-1]["content"] if isinstance(text, list) else text
    levels = (*_levels(data.spelt(_FENCE.sub("", plain(said)))), *_levels(data.plain_data(outputs)))
    return {name: own for each in levels for name, own in each.items()}


def _levels(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield an object, the only one that it holds, and so on."""
    while isinstance(value := record.opened(value), Mapping):
        yield value
        value = next(iter(value.values())) if len(value) == 1 else None


def right_answer(
    reference: Mapping[str, Any], returned: Sequence[Mapping[str, object]]
) -> tuple[dict[str, Any], Notes]:
    """The right answer in reference outputs, with a note on what else they hold.

    Criteria and what people know of a row are no answer. What the application returns itself
    is, also a word beside an answer of a usual name, which is not shown.

    Args:
        reference: The reference outputs, as plain data.
        returned: The fields that the application returned, or that several did.
    """
    theirs = set[str]().union(*returned)
    kept = {n: own for n, own in reference.items() if n in theirs or n not in _NO_ANSWER}
    inner: Mapping[str, Any] = [{}, *_levels(kept)][-1]  # none of a run
    read = next(iter(lookup.usual_in(inner, "reference")), None)
    # A reader notes other texts beside it.
    words = [n for n in inner if not (checks.is_of_run(n) or lines_in(inner[n], alone=False))]
    wanted = [n for n in words if any(own.get(n, inner[n]) != inner[n] for own in returned)]
    left = {n: reference[n] for n in reference if n not in kept}
    left |= {n: inner[n] for n in wanted if read and n != read}
    notes = Notes()
    if names := verdicts.first_names([n for n in left if not data.is_nothing(left[n])]):
        notes.add("reference", f"leaves out {names}")
    return kept, notes


@dataclass(frozen=True)
class ReferenceReader:
    """Reads the right answer in references, the expected one of a text, and the criteria.

    Attributes:
        place: Where a person says that the right answer is.
        of_criteria: Where they say that the criteria of a row are.
        compares: Whether the judge compares with a right answer where it has one.
        has_rubric: Whether the judge has criteria of its own.
    """

    place: lookup.TextSource
    of_criteria: lookup.TextSource
    compares: bool
    has_rubric: bool

    @property
    def is_wanted(self) -> bool:
        """Whether the right answer was asked for, by its place or by what the judge does."""
        return bool(self.place) or self.compares

    def answer(self, held: object, notes: Notes, *returned: Mapping[str, object]) -> object:
        """The right answer in a reference where no place is named, with a note on the rest."""
        held = held if callable(self.place) else data.plain_data(held)
        if self.place is not None or not isinstance(held, Mapping):
            return held
        answer, own = right_answer(held, returned)
        notes += own if answer or self.is_wanted else []
        return answer

    def expected(
        self, reference: object, output: object, called: bool, has_criteria: bool
    ) -> str | list[str] | None:
        """The expected answer of a row, if it has one that the judge is to see.

        Args:
            reference: The right answer in its reference.
            output: What the application returned.
            called: Whether it comes from a caller, and not from a data set.
            has_criteria: Whether the row is judged by criteria of its own.

        Raises:
            InputError: A place is named for it, and there is none.
        """
        is_there = not data.is_nothing(reference)
        if is_there and (called or self.is_wanted):
            return fields.expected_in(reference, self.place, output=output)
        if is_there:
            with suppress(errors.InputError):  # the judge can do without
                return fields.expected_in(reference, output=output)
        if self.place is not None and not has_criteria:
            raise errors.LackingError("`reference`: it is named and the example has no outputs")
        return None

    def criteria(
        self, inputs: object, reference: object, returned: Mapping[str, object], notes: Notes
    ) -> tuple[object, object]:
        """The criteria that a row is judged by, and its reference without any.

        Criteria and LangSmith's assertions are no expected answer. Where no place is named, a
        judge with a rubric asks that alone.

        Raises:
            InputError: A place is named for them, and they are not there.
        """
        held = reference if isinstance(reference, Mapping) else {}
        if self.of_criteria is not None:
            values = {"inputs": inputs, "reference_outputs": reference}
            found = lookup.find_in(values, "rubric", self.of_criteria)
            criteria = [name for name in held if held[name] is found]
        else:
            others = {*returned, self.place}
            criteria = [n for n in _CRITERIA if held.get(n) and n not in others]
            asked = [] if self.has_rubric else criteria[:1]
            found = held[asked[0]] if asked else None
            if unasked := verdicts.first_names(criteria[len(asked) :]):
                own = "the judge's own (one without a rubric asks others, or this by `rubric=`)"
                origin = f"read from {asked[0]!r}" if asked else own
                notes.add("rubric", f"is {origin}; not asked: {unasked}")
        rest = {name: held[name] for name in held if name not in criteria}
        return found, rest if held else reference
