"""An agent's calls compared with a reference trajectory, without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_judges.errors import InputError
from langchain_judges.options import check_value
from langchain_judges.rows.fields import work_in
from langchain_judges.rows.lookup import TextSource, check_sources, check_words
from langchain_judges.rows.texts import PlainText, ToolCall

# How the calls must agree: the same in the same order, the same in any order, only calls of
# the reference, or at least all of them. Calls that a model makes at once have no order.
Order = Literal["same", "any", "subset", "superset"]
# How the arguments of two calls must agree: all, only those of the reference's call, at least
# those, or not at all.
Arguments = Literal["equal", "subset", "superset", "ignored"]
# Whether the arguments of a call agree, from its name, its arguments and the reference's.
ArgumentsMatch = Callable[[str, Any, Any], bool]
# Calls; those that were made at once together.
_Turns = Sequence[Sequence[ToolCall]]


def trajectory_evaluator(
    order: Order = "same",
    *,
    arguments: Arguments | ArgumentsMatch = "equal",
    key: str | None = None,
    output: TextSource = None,
    reference: TextSource = None,
) -> Callable[..., dict[str, Any]]:
    """Return an evaluator that compares an agent's calls of tools with a reference.

    It takes LangSmith's `outputs` and `reference_outputs`, each in any shape in which a judge
    takes an agent's work; of a graph's trajectory (`{"steps": …}`) the nodes are compared. Its
    score is 1 if the calls agree, else 0; the comment names the calls that are missing or were
    not wanted. What cannot be read has no score.

    Args:
        order: How the calls must agree.
        arguments: How their arguments must agree, or a function that says whether they do:
            `lambda name, made, wanted: made["city"].lower() == wanted["city"].lower()`.
        key: Name of the feedback; default `trajectory_match`.
        output: Where the work is in the outputs, as in `as_evaluator`.
        reference: Where it is in the reference outputs.

    Raises:
        OptionError: An option is not allowed.
    """
    check_value("order", order, Order)
    check_value("arguments", arguments, Arguments | ArgumentsMatch)
    check_words(key=key)
    check_sources(output=output, reference=reference)
    name = key or "trajectory_match"
    agree = arguments if callable(arguments) else _AGREE[arguments]

    def evaluate(*, outputs: object, reference_outputs: object) -> dict[str, Any]:
        try:
            made = _turns(outputs, output, "output")
            wanted = _turns(reference_outputs, reference, "reference")
        except InputError as exc:
            return {"key": name, "score": None, "comment": f"Not compared: {exc}"}
        agrees, comment = _compared(made, wanted, order, agree)
        return {"key": name, "score": float(agrees), "comment": comment}

    evaluate.__name__ = name
    return evaluate


_AGREE: Mapping[Arguments, ArgumentsMatch] = {
    "equal": lambda _, made, wanted: bool(made == wanted),
    "subset": lambda _, made, wanted: _holds(wanted, made),
    "superset": lambda _, made, wanted: _holds(made, wanted),
    "ignored": lambda *_: True,
}


def _holds(more: Any, less: Any) -> bool:
    """Return whether some arguments are all among others; what is no object must be equal."""
    if not (isinstance(more, Mapping) and isinstance(less, Mapping)):
        return bool(more == less)
    return all(name in more and more[name] == value for name, value in less.items())


def _turns(value: object, source: TextSource, field: Literal["output", "reference"]) -> _Turns:
    """Return the calls in an agent's work, or the nodes that a graph went through."""
    if source is None and isinstance(value, Mapping) and isinstance(value.get("steps"), list):
        return [
            [{"name": str(node), "args": {}, "id": ""}]
            for number, turn in enumerate(value["steps"], 1)
            for node in (f"turn {number}", *turn)
        ]
    work: PlainText = work_in(value, source, field)
    messages = [] if isinstance(work, str) else work
    return [calls for message in messages if (calls := message.get("tool_calls"))]


def _compared(
    made: _Turns, wanted: _Turns, order: Order, agree: ArgumentsMatch
) -> tuple[bool, str]:
    all_made, all_wanted = _flat(made), _flat(wanted)
    missing, surplus = _unmatched(all_made, all_wanted, agree)
    turns = zip(made, wanted, strict=False)
    in_order = not any(any(_unmatched(*turn, agree)) for turn in turns)
    agrees = {
        "same": in_order and len(made) == len(wanted),
        "any": not missing and not surplus,
        "subset": not surplus,
        "superset": not missing,
    }[order]
    if agrees:
        counts = f"{len(all_made)} made, {len(all_wanted)} in the reference"
        return True, f"The calls agree ({counts})."
    faults = []
    if missing and order != "subset":
        faults.append(f"missing: {_written(missing)}")
    if surplus and order != "superset":
        faults.append(f"not in the reference: {_written(surplus)}")
    return False, "; ".join(faults) or f"another order: {_written(all_made)}"


def _flat(turns: _Turns) -> list[ToolCall]:
    return [call for calls in turns for call in calls]


def _written(calls: Sequence[ToolCall]) -> str:
    return ", ".join(
        f"{call['name']}({json.dumps(call['args'], sort_keys=True, default=str)})"
        for call in calls
    )


def _unmatched(
    made: Sequence[ToolCall], wanted: Sequence[ToolCall], agree: ArgumentsMatch
) -> tuple[list[ToolCall], list[ToolCall]]:
    """Return the calls that are missing and those that nobody wanted.

    Each call is matched with one of the other side; as many are matched as can be.
    """
    if not (made and wanted):
        return list(wanted), list(made)
    # Loaded on use, for it loads numpy.
    from scipy.optimize import linear_sum_assignment

    fits = [
        [one["name"] == other["name"] and agree(one["name"], one["args"], other["args"])
         for other in wanted]
        for one in made
    ]  # fmt: skip
    places = zip(*linear_sum_assignment(fits, maximize=True), strict=True)
    pairs = [(i, j) for i, j in places if fits[i][j]]
    of_made, of_wanted = {i for i, _ in pairs}, {j for _, j in pairs}
    return (
        [call for j, call in enumerate(wanted) if j not in of_wanted],
        [call for i, call in enumerate(made) if i not in of_made],
    )
