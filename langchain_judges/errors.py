"""Every exception the package raises on purpose.

JudgeError
├── OptionError        an option of a factory or command is not allowed (also a ValueError)
├── InputError         a pair, or what a metric is given, cannot be used (also a ValueError)
│   └── LackingError       a row holds nothing of what it would be judged by
├── NotJudgedError     an evaluator of `compat` has no score, because its judge has no verdict
├── OutputError        the results file cannot be used
├── ModelSetupError    the model cannot be made: unknown name, missing package or key
│   └── ModelAccessError   the provider refuses access: a wrong key, no such model
├── MissingExtraError  a package of one of the extras is not installed (also an ImportError)
├── RepeatedFailureError   the first rows all failed alike, so the run was stopped
└── RunStopped         a run closed its gate: nothing more is asked
    └── OverBudget     … because its budget of calls or tokens is spent

A reply that cannot be used is not an exception: it is a `Failure` in the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, requires

# Control characters except tab and line feed, changes of direction, lone surrogates.
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


class JudgeError(Exception):
    """Base class of all exceptions of this package.

    Its text is safe to print, even if it repeats a file name that holds control characters.
    """

    def __str__(self) -> str:
        """The message without characters that control a terminal."""
        return STEERING.sub("\N{REPLACEMENT CHARACTER}", super().__str__())


class OptionError(JudgeError, ValueError):
    """An option has a value that is not allowed; the message says which are."""


class InputError(JudgeError, ValueError):
    """A pair lacks a field, a field has the wrong type or is empty, or columns do not match."""


class LackingError(InputError):
    """A row holds nothing of what it would be judged by, so any verdict would be a guess."""


class NotJudgedError(JudgeError):
    """A text was not judged, where nothing but a score could be returned; it says why."""


class OutputError(JudgeError):
    """The results file is being written by another run, or is not one of ours."""


class ModelSetupError(JudgeError):
    """The model cannot be made: an unknown name, a missing package or key."""


class ModelAccessError(ModelSetupError):
    """The provider refuses access (HTTP 401, 403, 404): a wrong key, no such model.

    Raised for 401 always, and for 403 and 404 only by a model that has answered nothing yet:
    of one that has, they cost the call, for a router may refuse one prompt by them.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        """Keep the HTTP status with the message."""
        super().__init__(message)
        self.status = status


class MissingExtraError(JudgeError, ImportError):
    """A feature needs a package that one of the extras brings; the message has the command."""


class RepeatedFailureError(JudgeError):
    """The first rows of a run all failed with the same client error."""


class RunStopped(JudgeError):
    """The run asks nothing more; the pair at hand was not finished."""


class OverBudget(RunStopped):
    """The run's budget of calls or tokens is spent.

    What comes to one result raises it. Of several rows, evaluations or matches the one that it
    meets is not judged, its failure is `over_budget`, and the others stand.
    """


def missing_extra(extra: str, what: str, package: str, otherwise: str = "") -> MissingExtraError:
    """The error that names the extra which brings a package.

    Args:
        extra: The extra of langchain-judges.
        what: What needs the package; the sentence begins with it.
        package: What is missing.
        otherwise: What else helps, after the command.
    """
    command = f"pip install {' '.join(_brought(extra) or [package.partition('.')[0]])}"
    text = f"{what} needs {package}: {command} (the extra {extra}){otherwise}."
    return MissingExtraError(text, name=package)


def _brought(extra: str) -> list[str]:
    """Requirements of an extra, without this package's own name: no index has it yet."""
    try:
        declared = requires("langchain-judges") or []
    except PackageNotFoundError:
        return []
    own = (each for each in declared if re.search(rf"extra == .{extra}.", each))
    return [re.split(r"[\s;<>=!~\[]", each)[0] for each in own]


@contextmanager
def needs(extra: str, what: str, otherwise: str = "") -> Iterator[None]:
    """Import what an extra brings inside of this, so that a missing one is one sentence.

    Args:
        extra: The extra of langchain-judges.
        what: What needs it; the sentence begins with it.
        otherwise: What else helps, after the command.

    Raises:
        MissingExtraError: An import failed.
    """
    try:
        yield
    except ImportError as exc:
        raise missing_extra(extra, what, exc.name or str(exc), otherwise) from exc


def did_you_mean(name: str, names: Iterable[str], other: Mapping[str, str] | None = None) -> str:
    """A question that offers the nearest name, with a space behind it, or nothing.

    Args:
        name: What was written.
        names: What there is.
        other: What else people call them, each with the name here.
    """
    known = {**dict(zip(names := list(names), names, strict=True)), **(other or {})}
    # Half of a long name in common is chance; in a short one a letter is a third.
    near = get_close_matches(name, known, n=1, cutoff=0.6 if len(name) < 6 else 0.75)
    return f"did you mean {known[near[0]]!r}? " if near else ""
