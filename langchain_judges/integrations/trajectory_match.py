"""An agent's calls compared with a reference trajectory, without a model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from langchain_judges.errors import InputError, OptionError
from langchain_judges.rows.fields import TextSource, check_sources, check_words, work_in
from langchain_judges.rows.texts import PlainText

Order = Literal["same", "any", "subset", "superset"]
"""How the calls must agree: the same in the same order, the same in any order, only calls of
the reference, or at least all of them."""
Arguments = Literal["equal", "ignored"]
"""Whether calls with other arguments are other calls."""


def trajectory_evaluator(
    order: Order = "same",
    *,
    arguments: Arguments = "equal",
    key: str | None = None,
    output: TextSource = None,
    reference: TextSource = None,
) -> Callable[..., dict[str, Any]]:
    """Return an evaluator that compares an agent's calls of tools with a reference.

    It takes LangSmith's `outputs` and `reference_outputs`, each in any shape in which a judge
    takes an agent's work. Its score is 1 if the calls agree, else 0; the comment names the
    calls that are missing or were not wanted. What cannot be read has no score.

    Args:
        order: How the calls must agree.
        arguments: Whether their arguments must be equal too.
        key: Name of the feedback; default `trajectory_match`.
        output: Where the work is in the outputs, as in `as_evaluator`.
        reference: Where it is in the reference outputs.

    Raises:
        OptionError: An option is not allowed.
    """
    for name, value, kind in (("order", order, Order), ("arguments", arguments, Arguments)):
        if value not in get_args(kind):
            raise OptionError(f"`{name}` must be one of {get_args(kind)!r}, got {value!r}")
    check_words(key=key)
    check_sources(output=output, reference=reference)
    name = key or "trajectory_match"

    def evaluate(*, outputs: object, reference_outputs: object) -> dict[str, Any]:
        try:
            made = _calls(work_in(outputs, output), arguments)
            wanted = _calls(work_in(reference_outputs, reference, "reference"), arguments)
        except InputError as exc:
            return {"key": name, "score": None, "comment": f"Not compared: {exc}"}
        agrees, comment = _compared(made, wanted, order)
        return {"key": name, "score": float(agrees), "comment": comment}

    evaluate.__name__ = name
    return evaluate


def _calls(work: PlainText, arguments: Arguments) -> list[str]:
    """Return the calls in an agent's work, in its order."""
    messages: Sequence[Mapping[str, Any]] = [] if isinstance(work, str) else work
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    if arguments == "ignored":
        return [call["name"] for call in calls]
    return [
        f"{call['name']}({json.dumps(call['args'], sort_keys=True, default=str)})"
        for call in calls
    ]


def _compared(made: Sequence[str], wanted: Sequence[str], order: Order) -> tuple[bool, str]:
    missing = list((Counter(wanted) - Counter(made)).elements())
    surplus = list((Counter(made) - Counter(wanted)).elements())
    agrees = {
        "same": list(made) == list(wanted),
        "any": not missing and not surplus,
        "subset": not surplus,
        "superset": not missing,
    }[order]
    faults = []
    if missing and order != "subset":
        faults.append(f"missing: {', '.join(missing)}")
    if surplus and order != "superset":
        faults.append(f"not in the reference: {', '.join(surplus)}")
    if agrees:
        return True, f"The calls agree ({len(made)} made, {len(wanted)} in the reference)."
    return False, "; ".join(faults) if faults else f"another order: {', '.join(made)}"
