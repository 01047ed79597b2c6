"""Files opened with care: never through a link, never a device, never larger than expected.

Every fault is an `OutputError` with a sentence, except a missing file: whether that is one
is for the caller to say.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from langchain_judges.errors import OutputError

_CAREFUL = 0
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # not every system has each
    _CAREFUL |= getattr(os, _name, 0)


@contextmanager
def open_file(path: Path, flags: int) -> Iterator[int]:
    """Yield the descriptor of a regular file, which is closed afterwards.

    Raises:
        FileNotFoundError: There is none.
        OutputError: It is a link, a device or a folder, or cannot be opened.
    """
    try:
        descriptor = os.open(path, flags | _CAREFUL, 0o644)
    except FileNotFoundError:
        raise
    except OSError as exc:
        if exc.errno in {errno.ELOOP, errno.EMLINK}:
            raise OutputError(f"{path} is a symbolic link, which is never followed") from exc
        raise OutputError(f"{path} cannot be opened: {exc.strerror}") from exc
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OutputError(f"{path} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read(path: Path, *, size: int | None = None, most: int | None = None) -> bytes:
    """Return what a file holds.

    Args:
        path: The file.
        size: The bytes that it must have.
        most: The bytes that it may have.

    Raises:
        FileNotFoundError: There is none.
        OutputError: It is no regular file, or has another size.
    """
    with open_file(path, os.O_RDONLY) as descriptor:
        actual = os.fstat(descriptor).st_size
        if size is not None and actual != size:
            raise OutputError(f"{path} is damaged: it has {actual} bytes instead of {size}")
        if most is not None and actual > most:
            raise OutputError(f"{path} has {actual} bytes; at most {most} are expected")
        return read_from(descriptor, 0, actual)


def read_from(descriptor: int, offset: int, size: int) -> bytes:
    """Return up to `size` bytes from an offset."""
    parts: list[bytes] = []
    os.lseek(descriptor, offset, os.SEEK_SET)
    while size and (part := os.read(descriptor, min(size, 1 << 26))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write(descriptor: int, data: bytes) -> None:
    """Write all of `data`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def create(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a new file, in place of whatever has its name, and make it last.

    Raises:
        OSError: It cannot be written.
    """
    with suppress(FileNotFoundError):
        path.unlink()
    with open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        for chunk in chunks:
            write(descriptor, chunk)
        os.fsync(descriptor)


def replace(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file under a name nobody can guess, and put it in the place of `path`.

    Raises:
        OSError: It cannot be written.
    """
    copy = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        create(copy, chunks)
        os.replace(copy, path)
    except BaseException:
        with suppress(OSError):
            copy.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Make new names in a folder last; only POSIX can and needs to."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
