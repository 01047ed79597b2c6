"""An audited mistake, and the texts by which it is compared with an item."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from typing_extensions import TypedDict

from langchain_judges import lazy, verdict
from langchain_judges.errors import InputError
from langchain_judges.rows import checks, fields, files
from langchain_judges.rows.texts import Text, readable, transcript, with_source

# Fields of data rows that an example does not have and that are ignored.
_IGNORED_KEYS = {"category", "systems", "turn", "human_votes"}
_SHOWN_YAML = lazy.packaged(__package__, "shown.yaml")
# Names of fields in data rows and in openevals' examples.
_OTHER_NAMES: dict[str, str] = _SHOWN_YAML["names"]
# In which a judge is shown examples.
WORDS: dict[str, str] = _SHOWN_YAML["words"]
# Patterns of what people's words may call a text, by the sentence that says which it is.
CALLED: dict[str, str] = _SHOWN_YAML["called"]
# Of examples, of choices of them, and of stores.
ERRORS: dict[str, str] = _SHOWN_YAML["errors"]
# One sentence for each of the paper's five failure modes, by name.
MEANINGS: dict[str, str] = _SHOWN_YAML["meanings"]


class ExampleFields(TypedDict):
    """An audited mistake of a judge with the correct label, as stored in one version.

    Attributes:
        family: The task family; a judge recalls within the family of its item.
        output: The judged text; for a pair `{"output_a", "output_b"}`.
        wrong: The judge's label; for a pair `"A"`, `"B"` or `"tie"`.
        mode: The failure mode, as the auditor named it.
        mode_meaning: What the mode means, in one sentence; None: the meaning of the paper's
            mode of that name, if any.
        scale: The judge's labels, worst first; empty where they are not known.
        source: The id of the item it comes from.
        group: The group of that item; no item of the group recalls the example.
    """

    id: str
    family: str
    input: Text
    output: Text | dict[str, Text]
    expected: str | list[str] | None
    wrong: verdict.Label | None
    corrected: verdict.Label
    mode: verdict.Label | None
    mode_meaning: str | None
    scale: list[verdict.Label]
    source: str | None
    group: str | None
    round: int | None
    auditor: str | None
    note: str | None


class NewExample(ExampleFields):
    """An example that is to be remembered.

    Attributes:
        at: When it was first remembered; only exported examples have it.
    """

    at: NotRequired[str]


class Example(ExampleFields):
    """An audited mistake of a judge in its last version.

    Attributes:
        version: 1, plus 1 for each later correction.
    """

    version: int


class Texts(NamedTuple):
    """The texts of an item or an example.

    Attributes:
        outputs: The response; both of them, in a fixed order, for a pair.
    """

    task: str
    outputs: tuple[str, ...]
    expected: str

    def joined(self) -> str:
        """The text to embed; the most distinctive part comes first."""
        return "\n\n".join(part for part in (*self.outputs, self.expected, self.task) if part)


def texts_of(item: Mapping[str, Any]) -> Texts:
    """The texts of an item, a pair or an example."""
    task = item.get("input") or ""
    output = item.get("output")
    if output is None and checks.kind_in(item) == "pair":
        item = {**item, "output": item}
    if checks.kind_of_example(item) == "pair":
        outputs = tuple(readable(item["output"][side]) for side in ("output_a", "output_b"))
    else:
        outputs = (readable(output),) if output else ()
    expected = item.get("expected") or item.get("reference") or ""
    answer = expected if isinstance(expected, str) else "\n".join(map(str, expected))
    if not (task or outputs or answer):
        answer = "\n".join(value for value in item.values() if isinstance(value, str))
    return Texts(transcript(task) if task else "", outputs, answer)


def query_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item in the form of an example, so that the two can be compared.

    The source of a single text is appended to the task; id, group and family are texts or
    None.
    """
    plain = fields.plain_row(item)
    for name in ("id", "group", "family"):
        value = plain.get(name)
        plain[name] = None if value in (None, "") else str(value)
    # An example's `source` is the id of the item that it comes from, not a text.
    is_item = checks.kind_in(plain) == "item" and "corrected" not in plain
    source = plain.get("source") if is_item else None
    if isinstance(source, str):
        plain["input"] = with_source(plain.get("input") or "", source).strip()
    return plain


EXAMPLE_FIELDS = tuple(ExampleFields.__annotations__)
_EXAMPLE_KEYS = (*EXAMPLE_FIELDS, "output_a", "output_b", "reference", "version", "at")


def check_example(raw: Mapping[str, object]) -> NewExample:
    """An example with every field.

    Raises:
        InputError: The value is not an example; the message says why.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"an example must be an object, got {type(raw).__name__}")
    others = {new: raw[old] for old, new in _OTHER_NAMES.items() if old in raw}
    raw = {**others, **{n: value for n, value in raw.items() if n not in _OTHER_NAMES}}
    if unknown := sorted(set(raw) - {*_EXAMPLE_KEYS, *_IGNORED_KEYS}):
        raise InputError(f"an example has no {unknown!r}; it takes {list(_EXAMPLE_KEYS)!r}")
    row = fields.plain_row(raw)
    example = {name: row.get(name) for name in EXAMPLE_FIELDS}
    if example["output"] is None and checks.kind_in(row) == "pair":
        example["output"] = {name: row.get(name) for name in ("output_a", "output_b")}
    elif isinstance(example["output"], Mapping):
        example["output"] = fields.plain_row(example["output"])
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
    except (TypeError, ValueError, AttributeError, LookupError, RecursionError) as exc:
        raise InputError(f"an example must be plain JSON data: {exc}") from exc
    return plain


def check_examples(examples: Iterable[Mapping[str, object]]) -> list[NewExample]:
    """Examples with every field.

    Raises:
        InputError: A value is not an example, or one example was passed instead of several.
    """
    is_table = hasattr(examples, "columns")
    if is_table or isinstance(examples, Mapping | str) or not isinstance(examples, Iterable):
        got = type(examples).__name__
        raise InputError(f"`examples` must be a list, as `frame.to_dict('records')`, got {got}")
    return [check_example(example) for example in examples]


def _check_labels(example: dict[str, object]) -> None:
    for name in ("wrong", "corrected"):
        label, is_pair = example[name], isinstance(example["output"], Mapping)
        if isinstance(label, bool) and not is_pair:
            example[name] = int(label)
        elif not isinstance(label, str | int | float) and (name, label) != ("wrong", None):
            raise InputError(f"`{name}` must be a label (text or number), got {label!r}")
        elif is_pair:
            example[name] = checks.read_label(label)
            checks.check_label(name, example[name], checks.SIDES, outside=False)
    if example["scale"] is None:
        # Who corrects 0 to 1 has, but for rare scales, the labels of a judge by default.
        example["scale"] = [0, 1] if {example["wrong"], example["corrected"]} == {0, 1} else []
    elif not isinstance(example["scale"], list):
        raise InputError(f"`scale` must be a list of labels, worst first, got {example['scale']!r}")


def _check_output(output: object) -> None:
    sides = [output]
    if isinstance(output, Mapping):
        sides = [output.get("output_a"), output.get("output_b")]
    if any(not isinstance(side, str | list) or not side for side in sides):
        raise InputError(ERRORS["no_output"].format(got=str(output)[:60]))


def read_examples(path: Path) -> list[NewExample]:
    """The examples of a JSONL file.

    Raises:
        InputError: The file cannot be read, or a line is not an example.
    """
    examples = []
    for number, record in enumerate(files.read_table(path, ending="jsonl"), 1):
        try:
            examples.append(check_example(record))
        except InputError as exc:
            raise InputError(f"{path}, record {number}: {exc}") from exc
    return examples


def write_lines(path: Path, examples: Iterable[Mapping[str, object]]) -> None:
    """Write examples as JSONL, atomically.

    Raises:
        OutputError: The file cannot be written.
    """
    lines = [f"{json.dumps(example, ensure_ascii=False)}\n" for example in examples]
    data = "".join(lines).encode("utf-8", "surrogatepass")
    with files.writing(path), files.whole_file(path) as draft:
        draft.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
