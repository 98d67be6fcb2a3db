"""Copies of files between URLs, paths and file objects."""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeAlias

from . import _core
from .files import RemoteFile
from .files import open as open_remote

__all__ = ["copy"]

_chunk = 4 << 20

Place: TypeAlias = str | os.PathLike[str] | Any


def copy(
    source: Place,
    target: Place,
    *,
    progress: Callable[[int], object] | None = None,
    timeout: float | None = None,
) -> int:
    """Copy the bytes of a file, and return how many.

    Parameters
    ----------
    source, target : str, path or file object
        A URL of ucxio (``ucxs://host:port/name``), a local path, or an open binary file: one with
        `readinto` is read from its position on, one with `write` is written there, and neither is
        closed. A regular file and a file of a store get their names when all bytes are in place:
        a file that had the name is replaced then.
    progress : function, optional
        Called in this thread with the bytes that were copied since the last call, such as the
        `update` of a bar of tqdm. An exception of it ends the copy.
    timeout : float, optional
        Seconds that each transfer over a URL may take.

    Raises
    ------
    Error
        Those of `open`, of reads and of writes. Then the target's name is as it was.
    OSError
        Those of local files; BlockingIOError of a file object that does not wait.
    TypeError
        A source or target that is nothing of these.

    Notes
    -----
    The next part is read by another thread while one is written. Each is of 4 MiB. After a
    KeyboardInterrupt a read of a file object may go on there.
    """
    copied = 0
    with (
        _reading(source, timeout) as reading,
        _writing(target, timeout) as writing,
        _ReadAhead(reading, is_own=reading is not source) as parts,
    ):
        for part in parts:
            _write_all(writing, part)
            copied += len(part)
            if progress is not None:
                progress(len(part))
    return copied


class _ReadAhead:
    """The parts of a file. While one is used, another thread reads the next."""

    def __init__(self, file: Any, *, is_own: bool) -> None:
        self._file = file
        self._is_own = is_own
        self._other = ThreadPoolExecutor(1, "ucxio.copy")

    def __iter__(self) -> Iterator[memoryview]:
        used, ahead = bytearray(_chunk), bytearray(_chunk)
        reading = self._other.submit(self._file.readinto, ahead)
        while count := _counted(reading.result()):
            used, ahead = ahead, used
            reading = self._other.submit(self._file.readinto, ahead)
            yield memoryview(used)[:count]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A read over a URL ends when its file is closed. One of a descriptor has to end before.
        waits = kind is None or isinstance(self._file, io.FileIO)
        if kind is not None and issubclass(kind, Exception):
            waits = not (self._is_own and isinstance(self._file, RemoteFile))
        self._other.shutdown(wait=waits)


def _write_all(file: Any, data: memoryview) -> None:
    while data:
        data = data[_counted(file.write(data)) :]


def _counted(count: int | None) -> int:
    """Return a file's number of bytes, which is None where a call would have to wait."""
    if count is None:
        raise BlockingIOError(errno.EAGAIN, "the file object does not wait for its bytes")
    return count


@contextlib.contextmanager
def _reading(place: Place, timeout: float | None) -> Iterator[Any]:
    if isinstance(place, str) and _core.has_url_scheme(place):
        with open_remote(place, "rb", 0, timeout=timeout) as remote:
            yield remote
    elif isinstance(place, str | os.PathLike):
        with builtins.open(place, "rb", 0) as local:
            yield local
    elif hasattr(place, "readinto"):
        yield place
    else:
        raise TypeError(f"a URL, a path or a binary file can be read, not {type(place).__name__}")


@contextlib.contextmanager
def _writing(place: Place, timeout: float | None) -> Iterator[Any]:
    if isinstance(place, str) and _core.has_url_scheme(place):
        with open_remote(place, "wb", 0, timeout=timeout) as remote:
            yield remote
    elif isinstance(place, str | os.PathLike):
        with _new_file(os.fspath(place)) as local:
            yield local
    elif hasattr(place, "write"):
        yield place
    else:
        raise TypeError(
            f"a URL, a path or a binary file can be written, not {type(place).__name__}"
        )


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[Any]:
    """Write a file beside the path, and give it that name at the end."""
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        is_regular = True
    if not is_regular:  # a device, a FIFO; a directory fails
        with builtins.open(path, "wb", 0) as present:
            yield present
        return
    beside = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with builtins.open(beside, "xb", 0) as made:
            yield made
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
