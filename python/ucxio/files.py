"""File objects over URLs: what `open` gives for paths."""

from __future__ import annotations

import builtins
import errno
import io
import os
import warnings
from typing import IO, Any, Literal, Self, cast, overload

from . import _core
from ._closing import Discarding
from .client import Client
from .entry import Access
from .errors import Error, ErrorCode
from .region import Region

__all__ = ["RemoteFile", "open"]

_default_buffer = 1 << 20
_first_read = 16 << 10

_creations: dict[str, Literal["overwrite", "exclusive", "append"]] = {
    "w": "overwrite",
    "x": "exclusive",
    "a": "append",
}


class RemoteFile(Discarding, io.RawIOBase):
    """The bytes of a published name, without a buffer: what `open` gives with ``buffering=0``.

    Parameters
    ----------
    region : Region
        What is read and written. The file owns it from then on.
    mode : {"rb", "r+b", "wb", "w+b", "xb", "x+b", "ab", "a+b"}
        What is done with it.
    timeout : float, optional
        Seconds that each transfer may take.
    verify : bool
        Compares what is read with checksums of the server.
    is_deferred : bool
        A new file gets its name at `commit`, and not at `close`.

    Notes
    -----
    A file that was created gets its name at `close`, unless bytes are missing. Leaving a ``with``
    block by an exception, `discard` and garbage collection throw it away.
    """

    def __init__(
        self,
        region: Region,
        mode: str = "rb",
        *,
        timeout: float | None = None,
        verify: bool = False,
        is_deferred: bool = False,
    ) -> None:
        self._core: _core.Region | None = region._core
        self._is_deferred = is_deferred
        # Garbage collection of an open file gives a ResourceWarning.
        self._warns = True
        # A closed new file that waits for `commit`.
        self._uncommitted: _core.Region | None = None
        self.name = region.url or region.name
        self.mode = mode
        self._timeout = timeout
        self._verify = verify
        self._reads = "r" in mode or "+" in mode
        self._writes = mode[0] != "r" or "+" in mode
        self._appends = mode[0] == "a"
        # A name that was published by itself has a fixed size, and is there already.
        self._is_new = mode[0] in "wx" and region.max_size > region.size
        self._position = region.size if self._appends else 0
        # Where bytes are missing since a write failed, until they are written again.
        self._missing: int | None = None
        # Bytes were lost that nobody has any more: a new file can not be completed.
        self._is_broken = False
        # Why that is so.
        self._failure: BaseException | None = None
        # There are writes that reads may not see yet.
        self._is_dirty = False
        # What a reader's buffer asks for, which needs less; 0 without one.
        self._buffer_size = 0
        self._sequential = _first_read
        self._expected = -1

    def _open_core(self) -> _core.Region:
        if self._core is None:
            raise ValueError("I/O operation on closed file.")
        return self._core

    def readable(self) -> bool:
        """Return whether the file can be read."""
        self._open_core()
        return self._reads

    def writable(self) -> bool:
        """Return whether the file can be written."""
        self._open_core()
        return self._writes

    def seekable(self) -> bool:
        """Return True. A seek sends nothing."""
        self._open_core()
        return True

    @property
    def size(self) -> int:
        """The bytes of the file, as far as is known."""
        return self._open_core().size

    def tell(self) -> int:
        """Return the position."""
        self._open_core()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a position, which may be beyond the end, and return it.

        Raises
        ------
        ValueError
            The position is negative, or `whence` is unknown.
        """
        core = self._open_core()
        if whence == os.SEEK_CUR:
            offset += self._position
        elif whence == os.SEEK_END:
            offset += core.size
        elif whence != os.SEEK_SET:
            raise ValueError(f"invalid whence ({whence}, should be 0, 1 or 2)")
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        self._position = offset
        return offset

    def _check_reading(self) -> _core.Region:
        core = self._open_core()
        if not self._reads:
            raise io.UnsupportedOperation("not readable")
        if self._is_dirty:
            self.flush()
        return core

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer, without a copy. Return how many bytes: none at the end.

        Raises
        ------
        TypeError, ValueError, Error
            Those of `Region.read_into`.
        """
        core = self._check_reading()
        if self._buffer_size and len(buffer) == self._buffer_size:
            # It fills a buffer in front: after a seek few of those bytes may be wanted.
            in_order = self._position == self._expected
            self._sequential = (
                min(4 * self._sequential, self._buffer_size) if in_order else _first_read
            )
            buffer = builtins.memoryview(buffer)[: self._sequential]
        count = core.read_into(buffer, self._position, True, self._timeout, self._verify)
        self._position += count
        self._expected = self._position
        return count

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes; without a size, all up to the end."""
        core = self._check_reading()
        rest = max(core.size - self._position, 0)
        wanted = rest if size is None or size < 0 else min(size, rest)
        if not wanted:
            return b""
        found = core.read(self._position, wanted, self._timeout, self._verify)
        self._position += wanted
        self._expected = self._position
        return found

    def readall(self) -> bytes:
        """Return all bytes up to the end."""
        return self.read(-1)

    def pread(self, size: int, offset: int, /) -> bytes:
        """Return up to `size` bytes at `offset`. The position stays."""
        core = self._check_reading()
        wanted = min(size, max(core.size - offset, 0))
        return core.read(offset, wanted, self._timeout, self._verify) if wanted > 0 else b""

    def write(self, data: Any, /) -> int:
        """Write a buffer, and return how many bytes. It is never 0, but for no bytes.

        Raises
        ------
        Error
            ``no_space`` (errno ENOSPC: the end of a fixed size, a disk, a quota),
            ``permission_denied``.
        TypeError, ValueError
            Those of `Region.write_from`.
        """
        core = self._open_core()
        if not self._writes:
            raise io.UnsupportedOperation("not writable")
        if self._appends:
            self._position = core.size
        self._is_dirty = True
        try:
            count = core.write_from(data, self._position, True, self._timeout)
        except BaseException as failed:
            wrong = isinstance(failed, TypeError | ValueError)
            if not wrong or isinstance(failed, Error):
                self._missing = self._position
                self._failure = failed.with_traceback(None)
            raise
        if self._missing is not None and self._position <= self._missing < self._position + count:
            self._missing = None
        self._position += count
        return count

    def flush(self) -> None:
        """Return when all that was written is visible at the server.

        Raises
        ------
        Error
            The first failure of a write since the last flush.
        """
        if self._core is None:
            raise ValueError("I/O operation on closed file.")
        if self._writes:
            self._flush(self._core)

    def _flush(self, core: _core.Region) -> None:
        try:
            core.flush(self._timeout)
        except BaseException as failed:
            self._lose(failed)
            raise
        self._is_dirty = False

    def _lose(self, failed: BaseException) -> None:
        """Take note that bytes are lost: a new file can not be completed."""
        self._is_broken = True
        self._failure = failed.with_traceback(None)

    def truncate(self, size: int | None = None, /) -> int:
        """Make the file `size` bytes long; without a size, as long as the position.

        Raises
        ------
        Error
            ``not_supported``, ``no_such_region`` (a name that was published by itself has a fixed
            size), ``no_space``.
        """
        core = self._open_core()
        if not self._writes:
            raise io.UnsupportedOperation("truncate")
        wanted = self._position if size is None else size
        if wanted < 0:
            raise ValueError(f"negative size {wanted}")
        if wanted != core.size or self._is_new:
            core.resize(wanted, self._timeout)
        return wanted

    def memoryview(self) -> memoryview:
        """Return the bytes in place, where memory of this machine is mapped. Nothing is copied.

        Raises
        ------
        Error
            ``not_supported``: the text says why it is not mapped.
        """
        return self._open_core().view(0, None, self._writes)

    def close(self) -> None:
        """Make everything visible, give a new file its name, and close. Idempotent.

        Raises
        ------
        Error
            That of a failed write whose bytes a new file lacks; those of `Region.flush` and
            `Region.commit`. A new file is then thrown away.
        BufferError
            A memoryview of the file exists.
        """
        core = self._core
        if core is None:
            return
        waits = False
        try:
            if self._writes and not _core.is_forked_child():
                if self._is_new and (self._is_broken or self._missing is not None):
                    raise self._lost()
                self._flush(core)
                waits = self._is_new and self._is_deferred
                if self._is_new and not waits:
                    core.commit(False, True, self._timeout)
        finally:
            if waits:
                self._uncommitted = core
            else:
                core.close()
            self._core = None

    def commit(self) -> None:
        """Close, and give a new file its name, also one that does not get it by `close`.

        Raises
        ------
        Error, BufferError
            Those of `close`.
        """
        self.close()
        core, self._uncommitted = self._uncommitted, None
        if core is not None:
            try:
                core.commit(False, True, self._timeout)
            finally:
                core.close()

    def _lost(self) -> Error:
        """Return the error of a new file that lacks bytes."""
        text = f"{self.name}: the new file was thrown away, since a write failed"
        why = self._failure
        if isinstance(why, Error):
            return Error(
                why.errno or errno.EIO, f"{text}: {why.strerror}", why.code, why.ucx_status
            )
        return Error(errno.ECANCELED, text, ErrorCode.canceled)

    def discard(self) -> None:
        """Close. A new file is thrown away and gets no name. Idempotent."""
        if self._core is not None:
            self._core.close()
            self._core = None
        if self._uncommitted is not None:
            self._uncommitted.close()
            self._uncommitted = None

    @property
    def closed(self) -> bool:
        """Whether `close` or `discard` was called."""
        return self._core is None

    def __enter__(self) -> Self:
        self._open_core()
        return self

    @property
    def _raw(self) -> RemoteFile:
        return self

    def __del__(self) -> None:
        _collect(self)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(f"cannot pickle {self!r}: pickle its URL")

    def __repr__(self) -> str:
        return (
            f"<ucxio.RemoteFile {self.name!r} mode={self.mode!r}{' closed' if self.closed else ''}>"
        )


def _close_buffer(file: Any, raw: RemoteFile, below: Any) -> None:
    """Flush a buffer, and close what is below it. A new file whose flush failed gets no name.

    The methods of `io` close what is below after any failure, as if it had all the bytes.
    """
    try:
        file.flush()
    except BaseException as failed:
        raw._lose(failed)
        try:
            raw.close()
        except Error:
            if isinstance(failed, Error):
                raise
        raise
    below.close()


def _collect(file: Any) -> None:
    """End a file that nobody closed."""
    try:
        if file.closed:
            return
        try:
            if file._raw._warns:
                warnings.warn(f"unclosed file {file!r}", ResourceWarning, stacklevel=2, source=file)
        finally:
            file.discard()
    except (AttributeError, ValueError):
        pass  # it was not made whole


def _shown(file: Any) -> str:
    """Return how a file with a buffer shows."""
    kind = type(file).__name__
    try:
        closed = " closed" if file._raw.closed else ""
        return f"<ucxio.files.{kind} {file.name!r} mode={file.mode!r}{closed}>"
    except (AttributeError, ValueError):
        return f"<ucxio.files.{kind} detached>"


class _Buffered(Discarding):
    """What buffered files have in common: flush to the server, and throw away."""

    raw: Any

    @property
    def _raw(self) -> RemoteFile:
        return cast(RemoteFile, self.raw)

    @property
    def size(self) -> int:
        """The bytes of the file, as far as is known, without those that are buffered."""
        return self._raw.size

    def commit(self) -> None:
        """Close, and give a new file its name (`RemoteFile.commit`)."""
        self.close()
        self.raw.commit()

    def discard(self) -> None:
        """Close. A new file is thrown away, and what is buffered too. Idempotent."""
        self.raw.discard()

    def memoryview(self) -> memoryview:
        """Return the bytes in place (`RemoteFile.memoryview`)."""
        self.flush()
        return cast("memoryview", self.raw.memoryview())

    def flush(self) -> None:
        """Return when all that was written is visible at the server."""
        super().flush()  # type: ignore[misc]
        self.raw.flush()

    def close(self) -> None:
        """Make everything visible, give a new file its name, and close. Idempotent.

        Raises
        ------
        Error, BufferError
            Those of `RemoteFile.close`.
        """
        if not self.closed:  # type: ignore[attr-defined]
            _close_buffer(self, self.raw, self.raw)

    def __del__(self) -> None:
        _collect(self)

    def __repr__(self) -> str:
        return _shown(self)


class Reader(_Buffered, io.BufferedReader):
    """A buffered file that is read."""


class Writer(_Buffered, io.BufferedWriter):
    """A buffered file that is written."""


class Random(_Buffered, io.BufferedRandom):
    """A buffered file that is read and written."""


class Text(Discarding, io.TextIOWrapper):
    """A text file that can be thrown away."""

    def read_at_once(self, size: int) -> None:
        """Have a file that is read take so many bytes of its buffer at a time, instead of 8 KiB."""
        self._CHUNK_SIZE = size

    def discard(self) -> None:
        """Close. A new file is thrown away, and what is buffered too. Idempotent."""
        cast(_Buffered, self.buffer).discard()

    def write(self, text: str, /) -> int:
        """Write a text, and return how many characters."""
        try:
            return super().write(text)
        except BaseException as failed:
            self._lose(failed)
            raise

    def flush(self) -> None:
        """Return when all that was written is visible at the server."""
        try:
            super().flush()
        except BaseException as failed:
            self._lose(failed)
            raise

    def close(self) -> None:
        """Make everything visible, give a new file its name, and close. Idempotent.

        Raises
        ------
        Error, BufferError
            Those of `RemoteFile.close`.
        """
        if not self.closed:
            _close_buffer(self, self._raw, self.buffer)

    def commit(self) -> None:
        """Close, and give a new file its name (`RemoteFile.commit`)."""
        self.close()
        cast(_Buffered, self.buffer).commit()

    @property
    def _raw(self) -> RemoteFile:
        return cast(_Buffered, self.buffer)._raw

    def _lose(self, failed: BaseException) -> None:
        """Take note that the text of earlier calls may be lost, unless the call was wrong."""
        wrong = isinstance(failed, TypeError | UnicodeError | io.UnsupportedOperation)
        if (not wrong or isinstance(failed, Error)) and not self.closed:
            self._raw._lose(failed)

    def __del__(self) -> None:
        _collect(self)

    def __repr__(self) -> str:
        return _shown(self)


def _check_mode(mode: str) -> tuple[str, bool]:
    """Return the mode in bytes, and whether it is for text."""
    letters = set(mode)
    if len(letters) != len(mode) or letters - set("rwxabt+"):
        raise ValueError(f"invalid mode: {mode!r}")
    if len(letters & set("rwxa")) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    if letters >= {"b", "t"}:
        raise ValueError("can't have text and binary mode at once")
    (first,) = letters & set("rwxa")
    return f"{first}{'+' if '+' in letters else ''}b", "b" not in letters


def _open_raw(
    url: str,
    mode: str,
    client: Client | None,
    timeout: float | None = None,
    verify: bool = False,
    is_deferred: bool = False,
) -> RemoteFile:
    if client is None:
        server, name = _core.split_url(url)
        if not name:
            raise Error(errno.EINVAL, f"{url}: the URL has no name", ErrorCode.bad_url)
        core = _core.Client.shared(server)
    else:
        core, server, name = client._core, client.url, url
    first, both = mode[0], "+" in mode
    if first == "r":
        wanted: Access = "read_write" if both else "read"
        opened = core.open(name, wanted, timeout)
    else:
        opened = core.create(name, _creations[first], both, timeout)
    return RemoteFile(
        Region(opened, server, name),
        mode,
        timeout=timeout,
        verify=verify,
        is_deferred=is_deferred,
    )


def _buffered(raw: RemoteFile, size: int) -> Reader | Writer | Random:
    if raw.mode == "rb":
        raw._buffer_size = size
        return Reader(raw, size)
    return Writer(raw, size) if raw.mode in ("wb", "xb", "ab") else Random(raw, size)


def _open_binary(
    name: str, mode: str, buffering: int, client: Client, *, verify: bool, is_deferred: bool
) -> Reader | Writer | Random:
    """Open a name of a client with a buffer; -1 is the default size."""
    raw = _open_raw(name, mode, client, None, verify, is_deferred)
    try:
        return _buffered(raw, buffering if buffering > 0 else _default_buffer)
    except BaseException:
        raw.discard()
        raise


_Read = Literal["rb", "br"]
_Write = Literal["wb", "bw", "xb", "bx", "ab", "ba"]
_Update = Literal[
    "r+b", "rb+", "+rb", "w+b", "wb+", "+wb", "x+b", "xb+", "+xb", "a+b", "ab+", "+ab"
]
_TextMode = Literal[
    "r", "rt", "w", "wt", "x", "xt", "a", "at", "r+", "rt+", "r+t", "w+", "wt+", "w+t",
    "x+", "xt+", "x+t", "a+", "at+", "a+t",
]  # fmt: skip


@overload
def open(  # type: ignore[overload-overlap]
    url: str,
    mode: _Read | _Write | _Update,
    buffering: Literal[0],
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> RemoteFile: ...
@overload
def open(
    url: str,
    mode: _Read = "rb",
    buffering: int = -1,
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> Reader: ...
@overload
def open(
    url: str,
    mode: _Write,
    buffering: int = -1,
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> Writer: ...
@overload
def open(
    url: str,
    mode: _Update,
    buffering: int = -1,
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> Random: ...
@overload
def open(
    url: str,
    mode: _TextMode,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> Text: ...
@overload
def open(
    url: str,
    mode: str,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> IO[Any]: ...
def open(
    url: str,
    mode: str = "rb",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> Any:
    """Open a published name, as the built-in `open` opens a path.

    Parameters
    ----------
    url : str
        The URL of a name: ``ucxs://host:port/name``. With `client`, the name itself.
    mode : str
        As for the built-in `open`; "rb" without it. Modes without "b" are for text.

        ========== ================================== ================================
        mode       file of a writable store           name that was published by itself
        ========== ================================== ================================
        r, r+      the file; with + edited in place   the bytes; with + in place
        w, w+      a new file, named at `close`       written in place from 0
        x, x+      a new file, whose name is free     FileExistsError
        a, a+      appended to, in place              io.UnsupportedOperation
        ========== ================================== ================================
    buffering : int
        The bytes of the buffer. 0 gives a `RemoteFile`, for binary modes only; -1 is 1 MiB, and so
        is 1 (line buffering) for text.
    encoding, errors, newline : str, optional
        As for the built-in `open`; the encoding is UTF-8 without it.
    client : Client, optional
        The connection. Without it the process's shared connection to the server.
    timeout : float, optional
        Seconds that each transfer may take.
    verify : bool
        Compares what is read with checksums of the server.

    Returns
    -------
    io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper or RemoteFile
        A file object, with the methods `discard` and, in binary modes, `memoryview`, too.

    Raises
    ------
    ValueError
        The mode makes no sense. An `Error` that is also a ValueError: not a URL (``bad_url``).
    Error
        ``no_such_name`` (FileNotFoundError), ``permission_denied`` (PermissionError),
        ``already_exists`` (FileExistsError), ``busy`` (another client writes it),
        ``not_supported`` (io.UnsupportedOperation); those of `Client` for connecting.

    Notes
    -----
    Leaving a ``with`` block by an exception throws a new file away: half a file never has a name.
    Garbage collection does, too, with a ResourceWarning. `fileno` raises io.UnsupportedOperation.
    One thread at a time uses a file, as with those of `open`.
    """
    bytes_mode, is_text = _check_mode(mode)
    if not is_text and (encoding is not None or errors is not None or newline is not None):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    if is_text and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if buffering < -1:
        raise ValueError("invalid buffering size")
    raw = _open_raw(url, bytes_mode, client, timeout, verify)
    try:
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else _default_buffer
        file = _buffered(raw, size)
        if not is_text:
            return file
        text = Text(file, encoding or "utf-8", errors, newline, line_buffering=buffering == 1)
        if bytes_mode == "rb":
            text.read_at_once(size)
        text.mode = mode  # type: ignore[misc]
        return text
    except BaseException:
        raw.discard()
        raise
