"""An agent's calls compared with a reference trajectory, without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Literal

from langsmith.evaluation import EvaluationResult

from langchain_judges.errors import InputError
from langchain_judges.integrations.eval_cases import WORDS
from langchain_judges.integrations.feedback import Feedback, logged_in_test
from langchain_judges.options import check_value
from langchain_judges.rows import fields, lookup, record, texts
from langchain_judges.rows.messages import holds, messages_in
from langchain_judges.rows.tool_calls import ARGUMENTS, as_read, call_in, unnamed_in
from langchain_judges.rows.work import outputs_of, work_in

# How the calls must agree: the same in the same order, the same in any order, only calls of
# the reference, or at least all of them. Calls that a model makes at once have no order.
CallOrder = Literal["same", "any", "subset", "superset"]
# How the arguments of two calls must agree: all, only those of the reference's call, at least
# those, or not at all.
Arguments = Literal["equal", "subset", "superset", "ignored"]
# Whether the arguments of a call agree, from its name, its arguments and the reference's.
ArgumentsMatch = Callable[[str, Any, Any], bool]
# Calls; those that were made at once together.
_Turns = Sequence[Sequence[texts.ToolCall]]


def trajectory_evaluator(
    order: CallOrder = "same",
    *,
    arguments: Arguments | ArgumentsMatch = "equal",
    key: str | None = None,
    output: lookup.TextSource = None,
    reference: lookup.TextSource = None,
) -> Callable[..., Feedback]:
    """Create an evaluator that compares an agent's calls of tools with a reference.

    It takes LangSmith's `outputs` and `reference_outputs`, each in any shape in which a judge
    takes an agent's work; calls before the request that stands in `inputs` do not count. Its
    score is 1 if the calls agree, else 0; the comment names the calls that are missing or were
    not wanted. The reference may also be a list of names (`["search", "pay"]`, whose arguments
    do not matter) or of calls (`{"name", "args"}`). Outputs without a trajectory get no score.

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
    check_value("order", order, CallOrder)
    check_value("arguments", arguments, Arguments | ArgumentsMatch)
    lookup.check_words(key=key)
    lookup.check_sources(output=output, reference=reference)
    name = key or "trajectory_match"
    agree = arguments if callable(arguments) else AGREE[arguments]

    def evaluate(
        *, outputs: object, reference_outputs: object, inputs: object = None, **others: object
    ) -> Feedback:
        with logged_in_test(name) as log:
            feedback = compared(outputs, reference_outputs, inputs)
            log([EvaluationResult(**feedback)])
        return feedback

    def compared(outputs: object, reference_outputs: object, inputs: object) -> Feedback:
        try:
            made = _turns(outputs, output, "output", inputs)
            wanted = _turns(reference_outputs, reference, "reference", inputs)
            if isinstance(wanted, _Listed) or isinstance(made, _Listed):
                # A bare list does not say which calls were made at once.
                made, wanted = ([[call] for call in chain(*turns)] for turns in (made, wanted))
        except InputError as exc:
            return Feedback(key=name, score=None, comment=f"Not compared: {exc}")
        agrees, comment = _compared(made, wanted, order, agree)
        return Feedback(key=name, score=float(agrees), comment=comment)

    evaluate.__name__ = name
    return evaluate


AGREE: Mapping[Arguments, ArgumentsMatch] = {
    "equal": lambda _, made, wanted: bool(made == wanted),
    "subset": lambda _, made, wanted: holds(wanted, made),
    "superset": lambda _, made, wanted: holds(made, wanted),
    "ignored": lambda *_: True,
}


class _Listed(list[Sequence[texts.ToolCall]]):
    """Calls of a bare list, each by itself."""


# Stands for the arguments of a call of which only the name is known.
_ANY = object()


def _turns(value: object, source: lookup.TextSource, field: lookup.Field, inputs: object) -> _Turns:
    """The calls in an agent's work on a request.

    Raises:
        InputError: The value holds neither messages nor calls.
    """
    run = record.opened(value)
    part = outputs_of(run, kinds=["tool"]) if record.is_run(run) else value
    part = part if record.is_state(part) and source is None else _part(part, source, field)
    if (listed := _listed(part, field)) is not None:
        return listed
    work: texts.PlainText = work_in(part, None, field)
    with suppress(InputError):  # of inputs that hold no task
        task = record.with_talk(fields.task_in(inputs), [] if isinstance(work, str) else [work])
        work = work_in(part, None, field, task=task)
    if isinstance(work, str) and not record.record_in(part):
        raise InputError(WORDS["no_calls"].format(field=field, got=work[:40]))
    messages = [] if isinstance(work, str) else work
    turns = [calls for message in messages if (calls := message.get("tool_calls"))]
    if not turns and any(message["role"] == "tool" for message in messages):
        raise InputError(f"`{field}`: it has results of tools, and no call is read in it")
    return turns


def _part(value: object, source: lookup.TextSource, field: lookup.Field) -> object:
    """The part of a value that holds calls; what has none of the usual keys itself."""
    if source is None and isinstance(value, Mapping) and _LISTS & value.keys():
        lists = {name: value[name] for name in value if name in _LISTS}
        known = [name for name in lists if lists[name] is not None] or [*lists]
        if rivals := [repr(n) for n in known[1:] if lists[n] != lists[known[0]]]:
            named = {"field": field, "first": known[0], "rest": ", ".join(rivals)}
            raise InputError(WORDS["several_lists"].format(**named))
        return lists[known[0]]
    return value if _listed(value, field) is not None else lookup.find(value, field, source)


# The names under which a list of calls stands.
_LISTS = frozenset({"tool_calls", "expected_tool_calls", "tools_called", "trajectory", "steps"})


def _listed(value: object, field: lookup.Field) -> _Listed | None:
    """The calls of a list of names or of calls; None of anything else."""
    if not isinstance(value, list | tuple) or messages_in(value):
        return None
    calls = _Listed()
    for each in value:
        call = {"name": each} if isinstance(each, str) and each.strip() else each
        function = as_read(call.get("function", call)) if isinstance(call, Mapping) else {}
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            return None
        if unnamed := unnamed_in(function):
            words = {"field": field, "got": lookup.keys_in(unnamed), "name": ARGUMENTS[0]}
            raise InputError(WORDS["unnamed"].format(**words))
        is_told = any(function.get(name) is not None for name in ARGUMENTS)
        calls.append([call_in(call) if is_told else {**call_in(call), "args": _ANY}])
    return calls


def _compared(
    made: _Turns, wanted: _Turns, order: CallOrder, agree: ArgumentsMatch
) -> tuple[bool, str]:
    all_made, all_wanted = [*chain(*made)], [*chain(*wanted)]
    missing, surplus = unmatched(all_made, all_wanted, agree)
    in_order = not any(any(unmatched(*turn, agree)) for turn in zip(made, wanted, strict=False))
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
        faults.append(f"missing: {', '.join(map(_written, missing))}")
    if surplus and order != "superset":
        faults.append(f"not in the reference: {', '.join(map(_written, surplus))}")
    return False, "; ".join(faults) or f"another order: {', '.join(map(_written, all_made))}"


def _written(call: texts.ToolCall) -> str:
    args = json.dumps(call["args"], sort_keys=True, default=str)
    return call["name"] if call["args"] is _ANY else f"{call['name']}({args})"


def unmatched(
    made: Sequence[texts.ToolCall], wanted: Sequence[texts.ToolCall], agree: ArgumentsMatch
) -> tuple[list[texts.ToolCall], list[texts.ToolCall]]:
    """The calls that are missing and those that nobody wanted.

    Each call is matched with one of the other side; as many are matched as can be.
    """
    if not (made and wanted):
        return list(wanted), list(made)
    # Loaded on use, for it loads numpy.
    from scipy.optimize import linear_sum_assignment

    def fit(one: texts.ToolCall, other: texts.ToolCall) -> bool:
        args = one["args"], other["args"]
        return one["name"] == other["name"] and (_ANY in args or agree(one["name"], *args))

    fits = [[fit(one, other) for other in wanted] for one in made]
    places = zip(*linear_sum_assignment(fits, maximize=True), strict=True)
    pairs = [(i, j) for i, j in places if fits[i][j]]
    of_made, of_wanted = {i for i, _ in pairs}, {j for _, j in pairs}
    return (
        [call for j, call in enumerate(wanted) if j not in of_wanted],
        [call for i, call in enumerate(made) if i not in of_made],
    )
