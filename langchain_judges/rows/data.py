"""Values of any library as plain JSON data, and such data as text."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from ctypes import c_float
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from io import BytesIO
from typing import Any

from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from langchain_judges.errors import InputError
from langchain_judges.rows.checks import KNOWN_NAMES, plain_name
from langchain_judges.rows.media import kind_of_block, standard
from langchain_judges.rows.number_formats import FormattedFloat, FormattedInt
from langchain_judges.rows.texts import is_blank, plain

# Keys of a block of a medium; an address beside others is one of data.
_OF_MEDIA = {*KNOWN_NAMES["of_media"]}.union(*KNOWN_NAMES["media_parts"].values())


def plain_data(value: Any) -> Any:
    r"""Data in the types of JSON, as far as these have a form for it.

    Arrays and sets are lists (sets sorted, as they have another order in each process), bytes
    texts or else their base64, missing values None, times without hours dates, data classes
    objects, filled prompts messages; messages, models of pydantic and whatever is not known are
    left as they are.

    Raises:
        InputError: They contain themselves.

    >>> plain_data({"parts": {7, 2}, "share": float("nan"), "raw": (b"Kyiv", b"\x89PNG\0")})
    {'parts': [2, 7], 'share': None, 'raw': ('Kyiv', 'iVBORwA=')}
    """
    try:
        return _json_value(value)
    except RecursionError as exc:
        raise InputError(_ENDLESS) from exc


# A tuple of types is much faster here than their union.
_OF_KEYS = (str, int, float, type(None))


def _json_value(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in {str, int, bool}:  # at once: most values are
        return value
    if kind in {list, tuple}:
        return kind(map(_json_value, value))
    if kind is dict or isinstance(value, Mapping):
        names = (n if isinstance(n, _OF_KEYS) else _python_form(n) for n in value)
        return dict(zip(names, map(_json_value, value.values()), strict=True))
    if isinstance(value, set | frozenset | deque):
        parts = map(_json_value, value)
        return [*parts] if isinstance(value, deque) else sorted(parts, key=as_json)
    return _foreign_value(value)


def _foreign_value(value: Any) -> Any:
    if isinstance(value, PromptValue):
        return value.to_messages()
    if hasattr(value, "tolist"):  # of numpy, where times of nanoseconds are numbers
        is_time = getattr(getattr(value, "dtype", None), "kind", "") in {"m", "M"}
        return _json_value((value.astype(str) if is_time else value).tolist())
    if isinstance(value, str | int) and not isinstance(value, Enum):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _json_value({each.name: getattr(value, each.name, None) for each in fields(value)})
    if type(value).__module__.startswith("PIL.") and hasattr(value, "save"):
        value.save(file := BytesIO(), "PNG")
        return {"type": "image", "image": b64encode(file.getvalue()).decode()}
    # Of a missing value of pandas the comparison is missing too.
    if isinstance(value, float) or type(value).__module__.startswith("pandas."):
        value = value if (value == value) is True else None
    # A state of LangGraph is a named tuple, and what comes bit by bit is not read here.
    if isinstance(value, float | tuple | Iterator | type) or hasattr(value, "model_dump"):
        return value
    if isinstance(value, datetime) and value.isoformat().endswith("T00:00:00"):
        return str(value.date())  # a date, of which pandas and Excel have none
    if isinstance(value, bytes | bytearray):
        written = b64encode(value) if b"\0" in value else value  # which no image lacks
        return written.decode("utf-8", "backslashreplace")
    with suppress(PydanticSerializationError):
        return to_jsonable_python(value, inf_nan_mode="null")
    return value


_ENDLESS = "data that contain themselves, or are nested too deep, cannot be read"


def _unreadable(exc: Exception) -> InputError:
    is_told = isinstance(exc, InputError | PydanticSerializationError)
    return InputError(str(exc) if is_told else _ENDLESS)


def dump_of(model: BaseModel) -> Any:
    """The dump of a model, with its parts by their own class and not by the declared one.

    Raises:
        InputError: It contains itself, or a serializer of its own fails.
    """
    try:
        return plain_data(model.model_dump(serialize_as_any=True))
    except (ValueError, RecursionError) as exc:
        raise _unreadable(exc) from exc


def _python_form(value: object) -> str:
    """Python's form of a value, without its address: it is another in each process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def as_json(value: object) -> str:
    """Data, or a model of it, as JSON; a number alone as its cell shows it, or shortest.

    Raises:
        InputError: They contain themselves.

    >>> as_json(1889.0), as_json(0.10000000149011612), as_json({"price": 5.0})
    ('1889', '0.1', '{"price": 5.0}')
    """
    try:
        if isinstance(value := plain_data(value), FormattedInt | FormattedFloat):
            return value.shown
        value = _shortest(value) if isinstance(value, float) else value
        return json.dumps(value, ensure_ascii=False, default=_dumped)
    except (ValueError, RecursionError) as exc:
        raise _unreadable(exc) from exc


def as_plain_json(value: object) -> Any:
    """A value in the types of JSON alone; its text where it has no form in them."""
    return json.loads(json.dumps(plain_data(value), default=_dumped))


def _shortest(number: float) -> float:
    """The number of a cell: a table makes 1889 a float, where another cell is empty.

    One of 32 bits has the digits that tell it from its neighbours.
    """
    if number.is_integer() and abs(number) < 2**53:
        return int(number)
    # Hardly any other number that 32 bits hold is as long.
    if len(str(number)) > 13 and c_float(number).value == number:
        short = (float(f"{number:.{digits}g}") for digits in range(6, 10))
        return next(each for each in short if c_float(each).value == number)
    return number


def _dumped(value: object) -> object:
    return dump_of(value) if isinstance(value, BaseModel) else _python_form(value)


def text_in(value: object) -> str:
    """A tool's result as text."""
    value = plain_data(value)
    are_said = isinstance(value, list) and all(map(_is_said, value)) and plain(value).strip()
    return plain(value) if isinstance(value, str) or are_said else as_json(value)


def decoded(content: str) -> str:
    """The text of a file in base64; of one that is no text its size."""
    with suppress(ValueError):
        if "\0" not in (text := b64decode(content).decode("utf-8-sig")):
            return text
    return f"(binary, {len(content.rstrip('=')) * 3 // 4:,} bytes)"


def as_content(content: object, *, of_provider: bool = False) -> str | list[Any]:
    """Result of a tool, or data: text and media unchanged, all other data as JSON.

    Args:
        content: What there is.
        of_provider: Whether a tool that the provider runs has it.
    """
    content = bare_data(content) if of_provider else content
    if not isinstance(content, list):
        return [content] if kind_of_block(content) and _is_said(content) else text_in(content)
    # Of Azure the result stands within its block.
    own = (each.get("tool_result", each) if isinstance(each, Mapping) else each for each in content)
    return [each if _is_said(each) else {"type": "text", "text": text_in(each)} for each in own]


def as_block(block: Any) -> Any:
    """A block as it is shown: what is neither text nor a medium as JSON."""
    fields = block if isinstance(block, Mapping) else {}
    if _is_said(block) or kind_of_block(block) or isinstance(fields.get("text"), str):
        return block
    return {"type": "text", "text": text_in(fields.get("refusal") or bare_data(block))}


_MUTE = re.compile(KNOWN_NAMES["mute"]).match


def bare_data(value: Any) -> Any:
    """Data of a provider without what says nothing, such as ciphers."""
    if isinstance(value, Mapping):
        return {n: bare_data(v) for n, v in value.items() if not _MUTE(f"{plain_name(n)} {v}")}
    return [*map(bare_data, value)] if isinstance(value, list) else value


def is_text(block: object) -> bool:
    """Whether a block of a content is a text."""
    fields = block if isinstance(block, Mapping) else {"text": block}
    is_named = fields.get("type") in KNOWN_NAMES["texts"] or fields.keys() == {"text"}
    return is_named and isinstance(fields.get("text"), str)


def _is_said(block: object) -> bool:
    fields = block if isinstance(block, Mapping) else {"text": block}
    held = standard(fields) if kind_of_block(block) else {}
    is_medium = bool(held) and ("url" not in held or {*map(plain_name, fields)} <= _OF_MEDIA)
    return is_medium or is_text(block)


def is_streamed(parts: Sequence[object]) -> bool:
    """Whether texts are the pieces of one that a generator yielded.

    Most are cut at the space between two words, and some elsewhere: a list that was split at
    its commas has the space at each edge, one of lines with blanks behind them at few.
    """
    text = "\0".join(filter(None, map(str, parts)))
    spaced = len(re.findall(r"(?<=\s)\0|\0(?=\s)", text))
    return text.count("\0") < 2 * spaced < 2 * (len(parts) - 1)


def is_nothing(value: object) -> bool:
    """Whether a value is missing, empty or a blank text; 0 and False are something."""
    # Of what is in a list or an object nothing counts.
    data = value if isinstance(value, list | Mapping) else plain_data(value)
    if isinstance(data, str):
        return is_blank(data)
    return data is None or (isinstance(data, list | tuple | Mapping) and not data)


def holds_nothing(data: object) -> bool:
    """Whether inputs or outputs hold nothing, as `{"output": None}` of a target that raised."""
    return all(map(is_nothing, data.values() if isinstance(data, Mapping) else [data]))


def spelt(value: Any) -> Any:
    """The data that a text spells in JSON; any other value unchanged."""
    with suppress(ValueError, RecursionError):
        return json.loads(value) if isinstance(value, str) else value
    return value


def listed(value: object) -> Sequence[Any]:
    """A list; of anything else, where data should have one, nothing."""
    return value if isinstance(value, list | tuple) else ()


def mappings_in(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list."""
    return [each for each in listed(value) if isinstance(each, Mapping)]


def first_value(fields: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """The value under the first of some names that has one."""
    return next((fields[name] for name in names if fields.get(name) is not None), default)
