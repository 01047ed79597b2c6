"""The options of the writers, checked, and what they cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from langchain_judges.errors import OptionError
from langchain_judges.writing.coverage import check_word_forms


@dataclass(frozen=True)
class CommonOptions:
    """What every writer takes."""

    repair: int
    strict: bool
    instructions: str
    repairs: int

    def as_json(self) -> dict[str, Any]:
        """Return the options as plain data, for metadata and keys."""
        return asdict(self)


@dataclass(frozen=True)
class WriteOptions(CommonOptions):
    """Checked options of the Branch-Solve-Merge writer."""

    groups: int
    merge: Literal["once", "tree"]
    depth: int

    def solves(self) -> int:
        """Return the most drafts: one for each leaf of the tree, k^d."""
        return int(self.groups**self.depth)

    def calls(self) -> int:
        """Return the calls for a text with enough concepts, every repair turn included.

        With k groups and depth d there are (k^d - 1) / (k - 1) places that divide and merge;
        merging two and two takes k - 1 calls at each. k = 2, d = 1 is 1 + 2 + 1.
        """
        inner = (self.solves() - 1) // (self.groups - 1)
        merges = inner * (self.groups - 1) if self.merge == "tree" else inner
        return inner + self.solves() + merges + self.repair


@dataclass(frozen=True)
class DirectOptions(CommonOptions):
    """Checked options of the baselines."""

    plan: bool
    samples: int
    choose: Literal["model", "coverage"]
    seed: int

    def calls(self) -> int:
        """Return the calls for a text, every repair turn included."""
        chosen = self.samples > 1 and self.choose == "model"
        return self.plan + self.samples + chosen + self.repair


def check_write_options(**given: Any) -> WriteOptions:
    """Return the options of the Branch-Solve-Merge writer.

    Raises:
        OptionError: The message names the rule and the value.
    """
    options = WriteOptions(**_common(given))
    at_least("groups", options.groups, 2)
    at_least("depth", options.depth, 1)
    if options.merge not in ("once", "tree"):
        raise OptionError(f"`merge` must be 'once' or 'tree', got {options.merge!r}")
    # A power of a huge depth would take for ever.
    if options.depth > _MOST_DRAFTS or options.solves() > _MOST_DRAFTS:
        raise OptionError(
            f"`groups` to the power of `depth` must be at most {_MOST_DRAFTS}, "
            f"got {options.groups!r} and {options.depth!r}"
        )
    return options


def check_direct_options(**given: Any) -> DirectOptions:
    """Return the options of a baseline.

    Raises:
        OptionError: The message names the rule and the value.
    """
    options = DirectOptions(**_common(given))
    at_least("samples", options.samples, 1)
    if not isinstance(options.plan, bool):
        raise OptionError(f"`plan` must be true or false, got {options.plan!r}")
    if options.choose not in ("model", "coverage"):
        raise OptionError(f"`choose` must be 'model' or 'coverage', got {options.choose!r}")
    return options


def _common(given: dict[str, Any]) -> dict[str, Any]:
    at_least("repair", given["repair"], 0)
    if not isinstance(given["strict"], bool):
        raise OptionError(f"`strict` must be true or false, got {given['strict']!r}")
    if not given["strict"]:
        check_word_forms()
    return {**given, "instructions": (given["instructions"] or "").strip()}


_MOST_DRAFTS = 256


def at_least(name: str, value: object, least: int) -> None:
    """Check that an option is a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise OptionError(f"`{name}` must be a whole number of at least {least}, got {value!r}")
