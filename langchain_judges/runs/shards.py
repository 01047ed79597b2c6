"""One run over many machines: each writes the results of its shard to its own part.

A row's shard follows from its content, so that every machine reads the same file and needs no
coordination with the others. `merge_shards` joins the parts into one table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from langchain_judges.errors import OptionError, OutputError
from langchain_judges.rows.files import whole_file, writing
from langchain_judges.runs import results, tables
from langchain_judges.runs.run_row import RUN_ERRORS, ResultRow, judged_row

_PART_NAME = re.compile(r"part-(\d{5})-of-(\d{5})\.jsonl")


@dataclass(frozen=True)
class Shard:
    """One of `of` equal shares of the rows; `number` counts from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard that a text such as `"3/16"` names.

        Raises:
            OptionError: The text does not name a shard.
        """
        match = re.fullmatch(r"(\d{1,5})/(\d{1,5})", text.strip())
        shard = cls(int(match[1]), int(match[2])) if match else cls(0, 0)
        if not 1 <= shard.number <= shard.of:
            raise OptionError(f"`shard` must be NUMBER/OF, such as '3/16', got {text!r}")
        return shard

    def __str__(self) -> str:
        """The name of the shard."""
        return f"{self.number}/{self.of}"

    def holds(self, digest: bytes) -> bool:
        """Whether a row belongs to this shard, by its digest; so do equal rows."""
        return int.from_bytes(digest[:8]) % self.of == self.number - 1

    def part(self, folder: str | os.PathLike[str]) -> Path:
        """The file of this shard's results in the folder of a run.

        Raises:
            OutputError: `folder` is a file.
        """
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise OutputError(RUN_ERRORS["no_folder"].format(place))
        return place / f"part-{self.number:05}-of-{self.of:05}.jsonl"


class Receipt(NamedTuple):
    """A file that a shard writes beside its part when all of its rows are in it.

    Attributes:
        mark: The mark of the judge and its settings.
        rows: Rows of the whole run, including other shards.
        own: Rows of this shard.
        content: The digest of the whole run's rows.
        stale: Keys of rows in the part that an earlier run had and this one has not.
    """

    mark: str
    rows: int
    own: int
    content: str = ""
    stale: Sequence[str] = ()

    @staticmethod
    def of(part: Path) -> Path:
        """The path of a part's receipt."""
        return part.with_suffix(".done.json")

    @classmethod
    def read(cls, part: Path) -> Receipt | None:
        """The receipt of a part; None if it has none yet.

        Raises:
            OutputError: The file is not a receipt.
        """
        found = results.read_receipt(cls.of(part), "shard", "run the shard again")
        return None if found is None else cls(**found)


class Merged(NamedTuple):
    """The numbers of rows, judged rows and parts that `merge_shards` joined."""

    rows: int
    judged: int
    parts: int


def merge_shards(source: str | os.PathLike[str], out: str | os.PathLike[str]) -> Merged:
    """Join the parts of a sharded run, in the order of its rows, or convert a results file.

    Args:
        source: The folder that the shards wrote to, the records of a run, or its table.
        out: The file to write: `.jsonl` (unchanged rows), or a table (`.csv`, `.tsv`, `.xlsx`,
            `.parquet`; `.md` for the counts alone).

    Returns:
        The numbers of rows, judged rows and parts.

    Raises:
        OutputError: A part is missing or not finished, the parts are of different runs or
            `source` is of several judges, a row occurs twice, or `out` cannot be written.
        OptionError: The suffix of `out` is not one of these.
        MissingExtraError: Parquet needs the extra `hub`, `.xlsx` the extra `excel`.
    """
    place, target = Path(source), tables.table_path(out)
    if not place.exists():
        raise OutputError(f"There is no {place}.")
    parts, whole = _run_parts(place) if place.is_dir() else ({tables.records_of(place): []}, None)
    if any(part.resolve() == target.resolve() for part in parts):
        raise OptionError(f"`out` is {target}, which is also read; name another file")
    places, judged = _row_places(parts, whole.mark if whole else None)
    if whole and len(places) != whole.rows:
        raise OutputError(f"{place}: {len(places):,} of {whole.rows:,} rows; run its shards again.")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as draft:
            tables.write_results(draft, _in_order([*parts], places))
    return Merged(len(places), judged, len(parts))


def _run_parts(folder: Path) -> tuple[dict[Path, Sequence[str]], Receipt]:
    """The parts of one finished run in a folder, each with its stale keys; a receipt."""
    names = [_PART_NAME.fullmatch(path.name) for path in folder.iterdir()]
    parts = {Shard(int(n[1]), int(n[2])) for n in names if n}
    sizes = {shard.of for shard in parts}
    if len(sizes) != 1:
        raise OutputError(f"{folder} holds the parts of {len(sizes)} runs, not of one.")
    shards = [Shard(number, *sizes) for number in range(1, max(sizes) + 1)]
    receipts = {each: Receipt.read(each.part(folder)) for each in shards if each in parts}
    if undone := ", ".join(str(each) for each in shards if not receipts.get(each)):
        raise OutputError(f"Shards that have not finished: {undone}; run them again.")
    found = [receipt for receipt in receipts.values() if receipt]
    runs = {(receipt.mark, receipt.rows, receipt.content) for receipt in found}
    if len(runs) > 1 or sum(each.own for each in found) != found[0].rows:
        raise OutputError(RUN_ERRORS["shards_differ"].format(folder))
    stale = {shard.part(folder): each.stale for shard, each in zip(shards, found, strict=True)}
    return stale, found[0]


def _row_places(
    parts: Mapping[Path, Sequence[str]], wanted: str | None
) -> tuple[list[tuple[int, int, int, int]], int]:
    """Index, part, offset and length of each row, by index; and how many are judged.

    Args:
        parts: Files of results, each with the keys of rows that are left out.
        wanted: The mark of the judge whose rows they are of; None: of the only one.
    """
    places: list[tuple[int, int, int, int]] = []
    taken: set[tuple[str, int]] = set()
    marks: set[str] = set()
    judged = 0
    for number, (part, left_out) in enumerate(parts.items()):
        offset, stale = 0, {*left_out}
        with part.open("rb") as file:
            for line_number, line in enumerate(file, 1):
                row = _parse(line, part, line_number)
                if wanted in (None, row["judge"]["mark"]) and row["key"] not in stale:
                    if (place := (row["judge"]["mark"], row["index"])) in taken:
                        raise OutputError(RUN_ERRORS["twice"].format(part, row["index"] + 1))
                    taken.add(place)
                    marks.add(row["judge"]["mark"])
                    places.append((int(row["index"]), number, offset, len(line)))
                    judged += judged_row(row)
                offset += len(line)
    if len(marks) > 1 or not (places or wanted):
        raise OutputError(RUN_ERRORS["several_judges"].format(next(iter(parts)), len(marks)))
    return sorted(places), judged


def _parse(line: bytes, part: Path, number: int) -> ResultRow:
    if (row := results.row_in(line)) is None or "key" not in row:
        raise OutputError(RUN_ERRORS["damaged"].format(part, number))
    return row


def _in_order(parts: list[Path], places: list[tuple[int, int, int, int]]) -> Iterator[ResultRow]:
    with ExitStack() as stack:
        files = [stack.enter_context(part.open("rb")) for part in parts]
        for _, number, offset, length in places:
            files[number].seek(offset)
            yield _parse(files[number].read(length), parts[number], 0)
