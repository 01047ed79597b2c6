"""Examples from callers and files: validated, in the form of a memory, and back into files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from langchain_judges.errors import InputError
from langchain_judges.memory.example import ExampleFields, NewExample, texts_of
from langchain_judges.memory.faiss import plain_files
from langchain_judges.rows.kinds import kind_in
from langchain_judges.rows.messages import plain_row

FIELDS = tuple(ExampleFields.__annotations__)
_KEYS = (*FIELDS, "output_a", "output_b", "reference", "version", "at")
_IGNORED_KEYS = {"label", "category", "systems", "turn", "human_votes"}
"""Fields of data rows that an example does not have and that are ignored."""


def check_example(raw: Mapping[str, object]) -> NewExample:
    """Return an example with every field.

    Raises:
        InputError: The value is not an example; the message says why.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"an example must be an object, got {type(raw).__name__}")
    if unknown := sorted(set(raw) - {*_KEYS, *_IGNORED_KEYS}):
        raise InputError(f"an example has no {unknown!r}; it takes {list(_KEYS)!r}")
    row = plain_row(raw)
    example = {name: row.get(name) for name in FIELDS}
    if example["output"] is None and kind_in(row) == "pair":
        example["output"] = {name: row.get(name) for name in ("output_a", "output_b")}
    elif isinstance(example["output"], Mapping):
        example["output"] = plain_row(example["output"])
    if example["expected"] is None:
        example["expected"] = row.get("reference")
    _check_output(example["output"])
    _check_labels(example)
    if example["round"] is not None and not isinstance(example["round"], int):
        raise InputError(f"`round` must be a whole number, got {example['round']!r}")
    example["family"] = str(example["family"] or "")
    example["input"] = example["input"] or ""
    if row.get("at"):
        example["at"] = str(row["at"])
    try:
        plain: NewExample = json.loads(json.dumps(example, allow_nan=False))
        texts_of(plain)
    except (
        *(TypeError, ValueError, AttributeError, KeyError, IndexError),
        RecursionError,
    ) as exc:
        raise InputError(f"an example must be plain JSON data: {exc}") from exc
    return plain


def check_examples(examples: Iterable[Mapping[str, object]]) -> list[NewExample]:
    """Return examples with every field.

    Raises:
        InputError: A value is not an example, or one example was passed instead of several.
    """
    if isinstance(examples, Mapping | str):
        raise InputError("`examples` must be a list of examples, not one")
    return [check_example(example) for example in examples]


def _check_labels(example: dict[str, object]) -> None:
    for name in ("wrong", "corrected"):
        label = example[name]
        if isinstance(label, bool):
            example[name] = int(label)
        elif not isinstance(label, str | int | float) and (name, label) != ("wrong", None):
            raise InputError(f"`{name}` must be a label (text or number), got {label!r}")


def _check_output(output: object) -> None:
    sides = [output]
    if isinstance(output, Mapping):
        sides = [output.get("output_a"), output.get("output_b")]
    if any(not isinstance(side, str | list) or not side for side in sides):
        raise InputError(
            "an example needs `output`, a text or messages, or `output_a` and `output_b`; "
            f"got {str(output)[:60]!r}"
        )


def read_lines(path: Path) -> list[NewExample]:
    """Return the examples of a JSONL file.

    Raises:
        InputError: The file cannot be read, or a line is not an example.
    """
    try:
        if not path.is_file():  # reading a device might never end
            raise InputError(f"there is no file {path}")
        text = path.read_text("utf-8", "surrogatepass")
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(f"{path} cannot be read: {exc}") from exc
    examples = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                examples.append(check_example(json.loads(line)))
            except (ValueError, RecursionError) as exc:
                raise InputError(f"{path}, line {number}: {exc}") from exc
    return examples


def write_lines(path: Path, examples: Iterable[Mapping[str, object]]) -> None:
    """Write examples as JSONL, atomically.

    Raises:
        InputError: The file cannot be written.
    """
    lines = [json.dumps(example, ensure_ascii=False) for example in examples]
    try:
        plain_files.replace(
            path, [f"{line}\n".encode("utf-8", "surrogatepass") for line in lines]
        )
    except OSError as exc:
        raise InputError(f"{path} cannot be written: {exc.strerror}") from exc
