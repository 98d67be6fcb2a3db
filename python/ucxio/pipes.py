"""Pipes between processes, as file objects."""

from __future__ import annotations

import atexit
import codecs
import contextlib
import functools
import io
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import IO, Any, Literal, Self, TypedDict, TypeVar, Unpack, cast, overload

from . import _core
from ._buffer import Buffer
from ._closing import Discarding
from .errors import Error, ErrorCode

__all__ = ["Pipe", "PipeOptions", "open_pipe"]

_default_buffer = 1 << 20

_modes: dict[str, Literal["read", "write", "both"]] = {"rb": "read", "wb": "write", "r+b": "both"}
_open_pipes: weakref.WeakSet[Pipe] = weakref.WeakSet()


def _has_begun(failed: BaseException) -> bool:
    """Return whether a call may have moved bytes: it did not fail for its arguments alone."""
    if isinstance(failed, Error | UnicodeDecodeError):
        return True
    if isinstance(failed, UnicodeEncodeError | io.UnsupportedOperation):
        return False
    # What a signal handler raises has its frame.
    is_raised_here = failed.__traceback__ is None or failed.__traceback__.tb_next is None
    return not (is_raised_here and isinstance(failed, TypeError | ValueError | BufferError))


class _Failure:
    """Why a direction does not go on. What goes on after a time-out is not to be tried again."""

    def __init__(self, failed: BaseException, what: str, name: str) -> None:
        self._code = ErrorCode.canceled
        if isinstance(failed, Error) and failed.code != ErrorCode.timed_out:
            self._code = failed.code
        why = str(failed) or type(failed).__name__
        self._text = f"{name}: {what} does not go on after a failure: {why}"

    def error(self) -> Error:
        return Error(_core.errno_of(self._code), self._text, self._code)


class Pipe(Discarding, io.RawIOBase):
    """One end of a pipe, without a buffer: what `open_pipe` gives with ``buffering=0``.

    Notes
    -----
    A reader sees the end only after a clean `close` of the writer. Leaving a ``with`` block by an
    exception, `discard`, garbage collection and the end of the process give up: the other end
    fails. One thread at a time reads, and one writes.

    After a failed write no other one is possible, and `close` fails. A failed `readinto` has read
    nothing, so reading goes on. It does not after a failed `readall` or `readline` that had bytes.
    """

    def __init__(self, core: _core.Pipe, name: str, mode: str) -> None:
        """Wrap an end that is connected. Use `open_pipe` instead."""
        self._core: _core.Pipe | None = core
        self.name = name
        self.mode = mode
        self._counts = 0, 0
        self._is_buffered = False
        self._unread: _Failure | None = None
        self._unwritten: _Failure | None = None
        _open_pipes.add(self)

    def _open_core(self) -> _core.Pipe:
        if self._core is None:
            raise ValueError("I/O operation on closed file.")
        return self._core

    def _fail(self, failed: BaseException, reading: bool) -> None:
        """Let no call of this direction go on. A buffer above has lost bytes, or sent a part."""
        core = self._core
        if core is None or not _has_begun(failed):
            return
        if reading:
            self._unread = self._unread or _Failure(failed, "reading", self.name)
            return
        self._unwritten = self._unwritten or _Failure(failed, "writing", self.name)
        if self._is_buffered:
            core.abort()  # the reader is not to take what comes for the whole

    def _refuse_if_failed(self) -> None:
        failure = self._unread or self._unwritten
        if failure is not None and self._core is not None:
            raise failure.error()

    def readable(self) -> bool:
        """Return whether this end reads."""
        self._open_core()
        return "r" in self.mode

    def writable(self) -> bool:
        """Return whether this end writes."""
        self._open_core()
        return self.mode != "rb"

    def seekable(self) -> bool:
        """Return False."""
        self._open_core()
        return False

    @property
    def received(self) -> int:
        """The bytes that were read here."""
        return self._core.received if self._core is not None else self._counts[0]

    @property
    def sent(self) -> int:
        """The bytes that were written and sent."""
        return self._core.sent if self._core is not None else self._counts[1]

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer, and return how many bytes: those that are there, at least one.

        It waits for the first one. The clean end is 0.

        Raises
        ------
        Error
            ``connection_reset`` (the writer died, or gave up, before its end: ConnectionResetError,
            after all bytes that came), ``timed_out``, ``protocol_error``.
        TypeError, ValueError
            Those of `Region.read_into`.
        """
        core = self._open_core()
        if self.mode == "wb":
            raise io.UnsupportedOperation("not readable")
        if self._unread is not None:
            raise self._unread.error()
        try:
            return core.read_into(buffer)
        except BaseException as failed:
            if self._is_buffered:
                self._fail(failed, True)
            raise

    def readall(self) -> bytes:
        """Return all bytes up to the clean end.

        Raises
        ------
        Error
            Those of `readinto`. The bytes that came before are lost then, and reading fails from
            then on.
        """
        found = bytearray()
        piece = bytearray(_default_buffer)
        try:
            while count := self.readinto(piece):
                found += memoryview(piece)[:count]
            return bytes(found)
        except BaseException as failed:
            self._lose(failed, found)
            raise

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return a line, or as much of it. A byte at a time: a buffer is faster.

        Raises
        ------
        Error
            Those of `readall`.
        """
        found = bytearray()
        try:
            while size is None or size < 0 or len(found) < size:
                one = self.read(1)
                if not one:
                    break
                found += one
                if one == b"\n":
                    break
            return bytes(found)
        except BaseException as failed:
            self._lose(failed, found)
            raise

    def _lose(self, failed: BaseException, found: bytearray) -> None:
        if found or not isinstance(failed, Error):
            self._fail(failed, True)

    def write(self, data: Buffer, /) -> int:
        """Write all of a buffer, and return how many bytes.

        It returns when the buffer can be used again. The bytes are sent with later ones, or by
        `flush`. Up to 255.5 KiB are not split, nor mixed with those of other writers.

        Raises
        ------
        Error
            ``broken_pipe`` (the reader left: BrokenPipeError), ``connection_reset`` (it died),
            ``timed_out``, ``protocol_error``. Part of it may be sent. Later writes and `close` then
            fail, and so does the reader.
        TypeError, ValueError
            Those of `Region.write_from`.
        """
        core = self._open_core()
        if self.mode == "rb":
            raise io.UnsupportedOperation("not writable")
        if self._unwritten is not None:
            raise self._unwritten.error()
        try:
            return core.write_from(data)
        except BaseException as failed:
            self._fail(failed, False)
            raise

    def flush(self) -> None:
        """Send what was written. Nothing is known about the reader.

        Raises
        ------
        Error
            Those of `write`.
        """
        core = self._open_core()
        if self._unwritten is not None:
            raise self._unwritten.error()
        if self.mode != "rb":
            core.flush()

    def close_output(self) -> None:
        """End writing, as `close` does. Reading goes on.

        Raises
        ------
        Error
            Those of `close`.
        """
        self._open_core().close_output()

    def close(self) -> None:
        """Stop reading, end writing, and close. Idempotent.

        A writer's returns when the readers' processes have all bytes.

        Raises
        ------
        Error
            ``broken_pipe`` (a reader left before it had all), ``connection_reset``, ``timed_out``;
            that of a failed write. The pipe was then given up, and the reader fails.
        """
        core = self._core
        if core is None:
            return
        try:
            if not _core.is_forked_child():
                core.close()
        finally:
            self._drop()

    def discard(self) -> None:
        """Give up, and close: the other end fails. Does not wait for it. Idempotent."""
        self._drop()

    def _drop(self) -> None:
        core = self._core
        if core is None:
            return
        if not _core.is_forked_child():
            self._counts = core.received, core.sent
        core.drop()
        self._core = None

    @property
    def closed(self) -> bool:
        """Whether `close` or `discard` was called."""
        return self._core is None

    def __enter__(self) -> Self:
        self._open_core()
        return self

    @property
    def _raw(self) -> Pipe:
        return self

    def __del__(self) -> None:
        _collect(self)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(f"cannot pickle {self!r}: pickle its URL")

    def __repr__(self) -> str:
        closed = " closed" if self.closed else ""
        return f"<ucxio.Pipe {self.name!r} mode={self.mode!r}{closed}>"


def _collect(pipe: Any) -> None:
    """Give up a pipe that nobody closed."""
    try:
        if pipe.closed:
            return
        try:
            warnings.warn(f"unclosed pipe {pipe!r}", ResourceWarning, stacklevel=2, source=pipe)
        finally:
            pipe.discard()
    except (AttributeError, ValueError):
        pass  # it was not made whole


def _close_buffer(file: Any, raw: Pipe, below: Any) -> None:
    """Flush a buffer, and close what is below it. If that fails the pipe is given up.

    The methods of `io` close what is below after any failure, as if it had all the bytes.
    """
    try:
        file.flush()
    except BaseException:
        raw.discard()
        raise
    below.close()


def _shown(file: Any) -> str:
    """Return how an end with a buffer shows."""
    kind = type(file).__name__
    try:
        closed = " closed" if file._raw.closed else ""
        return f"<ucxio.pipes.{kind} {file.name!r} mode={file.mode!r}{closed}>"
    except ValueError:
        return f"<ucxio.pipes.{kind} detached>"


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _guarded(method: _Method) -> _Method:
    """Return a method of a buffer that gives up where it fails.

    What `io` had taken out of its buffer, or out of the pipe, is lost then, and what it keeps is
    written again: the pipe would go on as if all bytes had come once.
    """

    @functools.wraps(method)
    def guarded(self: Any, *arguments: Any, **named: Any) -> Any:
        raw: Pipe = self._raw
        raw._refuse_if_failed()
        try:
            return method(self, *arguments, **named)
        except BaseException as failed:
            raw._fail(failed, raw.mode == "rb")
            raise

    return cast(_Method, guarded)


class _Buffered(Discarding):
    """What ends with a buffer have in common."""

    raw: Any

    @property
    def _raw(self) -> Pipe:
        raw = cast(Pipe | None, self.raw)
        if raw is None:
            raise ValueError("raw stream has been detached")
        return raw

    @property
    def received(self) -> int:
        """The bytes that were read here, with those that are buffered."""
        return self._raw.received

    @property
    def sent(self) -> int:
        """The bytes that were written and sent."""
        return self._raw.sent

    def close(self) -> None:
        """Send what is buffered, and close (`Pipe.close`). Idempotent.

        Raises
        ------
        Error
            Those of `Pipe.close`.
        """
        if not self.closed:  # type: ignore[attr-defined]
            _close_buffer(self, self.raw, self.raw)

    def discard(self) -> None:
        """Give up (`Pipe.discard`), also what is buffered. Idempotent."""
        self.raw.discard()

    def truncate(self, size: int | None = None, /) -> int:
        """Raise io.UnsupportedOperation."""
        raise io.UnsupportedOperation("truncate")

    def __del__(self) -> None:
        _collect(self)

    def __repr__(self) -> str:
        return _shown(self)


class PipeReader(_Buffered, io.BufferedReader):
    """A buffered end that reads. After a failed call it reads no more."""

    read = _guarded(io.BufferedReader.read)
    read1 = _guarded(io.BufferedReader.read1)
    readinto = _guarded(io.BufferedReader.readinto)
    readinto1 = _guarded(io.BufferedReader.readinto1)
    readline = _guarded(io.BufferedReader.readline)
    peek = _guarded(io.BufferedReader.peek)


class PipeWriter(_Buffered, io.BufferedWriter):
    """A buffered end that writes. A failed call gives up, and `close` then fails."""

    write = _guarded(io.BufferedWriter.write)

    @_guarded
    def flush(self) -> None:
        """Send what was written. Nothing is known about the reader."""
        super().flush()
        self.raw.flush()


class PipeText(Discarding, io.TextIOWrapper):
    """An end for text. After a failed call it does not go on, like what it is made of."""

    read = _guarded(io.TextIOWrapper.read)
    readline = _guarded(io.TextIOWrapper.readline)
    write = _guarded(io.TextIOWrapper.write)
    _write_pending = _guarded(io.TextIOWrapper.flush)

    def flush(self) -> None:
        """Send what was written. Nothing is known about the reader."""
        if self._raw.mode == "wb":
            self._write_pending()
        else:
            super().flush()

    def discard(self) -> None:
        """Give up (`Pipe.discard`), also what is buffered. Idempotent."""
        cast(_Buffered, self.buffer).discard()

    def close(self) -> None:
        """Send what is buffered, and close (`Pipe.close`). Idempotent.

        Raises
        ------
        Error
            Those of `Pipe.close`.
        """
        if not self.closed:
            _close_buffer(self, self._raw, self.buffer)

    @property
    def _raw(self) -> Pipe:
        buffer = cast(_Buffered | None, self.buffer)
        if buffer is None:
            raise ValueError("underlying buffer has been detached")
        return buffer._raw

    def __del__(self) -> None:
        _collect(self)

    def __repr__(self) -> str:
        return _shown(self)


def _check_mode(mode: str) -> tuple[str, bool]:
    """Return the mode in bytes, and whether it is for text."""
    letters = "".join(sorted(mode))
    found = {"br": "rb", "bw": "wb", "+br": "r+b", "r": "rb", "rt": "rb", "w": "wb", "tw": "wb"}
    if letters not in found:
        raise ValueError(f"invalid mode of a pipe: {mode!r}")
    return found[letters], "b" not in letters


class PipeOptions(TypedDict, total=False):
    """The options by name of `open_pipe`, which describes them."""

    window: int
    timeout: float | None
    connect_timeout: float | None
    heartbeat_timeout: float | None
    writers: int
    readers: int
    slow_reader: Literal["wait", "drop"]
    slow_reader_timeout: float | None
    transports: Sequence[str]
    token_file: str | PathLike[str]
    configuration: Mapping[str, str] | None


def _place(
    url: str,
    mode: str,
    in_loop: bool,
    *,
    window: int = 8 << 20,
    timeout: float | None = None,
    connect_timeout: float | None = None,
    heartbeat_timeout: float | None = None,
    writers: int = 1,
    readers: int = 1,
    slow_reader: Literal["wait", "drop"] = "wait",
    slow_reader_timeout: float | None = None,
    transports: Sequence[str] = (),
    token_file: str | PathLike[str] = "",
    configuration: Mapping[str, str] | None = None,
) -> _core.PipePlace:
    """Return where the pipe is to be opened, and how. Waits for the server."""
    return _core.PipePlace(
        url,
        _modes[mode],
        in_loop,
        window,
        timeout,
        connect_timeout,
        heartbeat_timeout,
        writers,
        readers,
        slow_reader,
        slow_reader_timeout,
        list(transports),
        fspath(token_file),
        dict(configuration or {}),
    )


_Read = Literal["rb", "br"]
_Write = Literal["wb", "bw"]
_Both = Literal["r+b", "rb+", "+rb", "br+", "b+r", "+br"]
_TextMode = Literal["r", "rt", "tr", "w", "wt", "tw"]


@overload
def open_pipe(  # type: ignore[overload-overlap]
    url: str,
    mode: _Read | _Write | _Both,
    buffering: Literal[0],
    **options: Unpack[PipeOptions],
) -> Pipe: ...
@overload
def open_pipe(  # type: ignore[overload-overlap]
    url: str, mode: _Both, buffering: int = -1, **options: Unpack[PipeOptions]
) -> Pipe: ...
@overload
def open_pipe(
    url: str, mode: _Read = "rb", buffering: int = -1, **options: Unpack[PipeOptions]
) -> PipeReader: ...
@overload
def open_pipe(
    url: str, mode: _Write, buffering: int = -1, **options: Unpack[PipeOptions]
) -> PipeWriter: ...
@overload
def open_pipe(
    url: str,
    mode: _TextMode,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    **options: Unpack[PipeOptions],
) -> PipeText: ...
@overload
def open_pipe(
    url: str,
    mode: str,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    **options: Unpack[PipeOptions],
) -> IO[Any]: ...
def open_pipe(
    url: str,
    mode: str = "rb",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    **options: Unpack[PipeOptions],
) -> Any:
    """Open one end of a pipe. Return when the other end is there.

    Parameters
    ----------
    url : str
        A name of the program's choice at a server that takes pipes: ``Server(pipes=True)``,
        ``ucxio serve --pipes``, or the URL that ``ucxio pipe`` prints. Either end may come first.
    mode : {"rb", "wb", "r+b", "r", "w"}
        Reads or writes, or with "r+b" both, without a buffer. Modes without "b" are for text.
    buffering : int
        The bytes of the buffer. 0 gives a `Pipe`, for binary modes only; -1 is 1 MiB, and so is 1
        (line buffering) for text. "r+b" takes 0 and -1.
    encoding, errors, newline : str, optional
        As for the built-in `open`; the encoding is UTF-8 without it.
    window : int
        For a reader: the bytes of each writer that may be on their way, or wait to be read. Beyond
        that the writer waits. 64 KiB to 1 GiB; 8 MiB without it.
    timeout : float, optional
        Seconds that one wait for bytes may take, or a whole write, flush or close. A `Pipe` goes on
        after a `readinto` or flush that timed out, and a buffer does not. Without it they wait as
        long as the other process lives.
    connect_timeout : float, optional
        Seconds to wait for the other end; 30 without it. To reach the server takes up to 10 more:
        1 to 5, twice by ``ucxs://``.
    heartbeat_timeout : float, optional
        Seconds of silence after which the other process counts as dead, while something waits for
        it; 5 without it.
    writers, readers : int
        How many of them a reader, or a writer, waits for. A reader reads the bytes of its writers
        in turns. Each reader gets every byte.
    slow_reader : {"wait", "drop"}
        For a writer with many readers: waits for one that does not read, or drops it.
    slow_reader_timeout : float, optional
        Seconds until it is dropped; 5 without it.
    transports, token_file, configuration
        As for `Client`.

    Returns
    -------
    io.BufferedReader, io.BufferedWriter, io.TextIOWrapper or Pipe
        A file object, with the method `discard`, too.

    Raises
    ------
    ValueError
        The mode makes no sense. An `Error` that is also a ValueError: not a URL, or none with a
        name (``bad_url``); options that make no sense (``invalid_argument``).
    Error
        ``timed_out`` (no other end came: TimeoutError), ``not_supported`` (the server takes no
        pipes; a reader at ``ucx+file:``), ``busy``; those of `Client` for connecting.

    Notes
    -----
    `close` of a writer returns when the readers' processes have all bytes. Only then does the
    reader see the end. Leaving a ``with`` block by an exception gives up, and so does garbage
    collection, with a ResourceWarning: the reader gets ConnectionResetError.

    An end with a buffer, or for text, does not go on after a failed call (a time-out and
    KeyboardInterrupt, too): bytes are lost with the buffer. A writer is given up by it, its `close`
    fails, and so does the reader. What a reader reads later fails. Wrong arguments change nothing.
    """
    bytes_mode, is_text = _check_mode(mode)
    if not is_text and (encoding is not None or errors is not None or newline is not None):
        raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
    if is_text and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if buffering < -1:
        raise ValueError("invalid buffering size")
    if bytes_mode == "r+b" and buffering > 0:
        raise ValueError("a pipe that reads and writes has no buffer")
    if is_text:
        # The other end is not to meet one that fails at once.
        io.TextIOWrapper(io.BytesIO(), encoding or "utf-8", errors, newline)
        codecs.lookup_error(errors or "strict")
    place = _place(url, bytes_mode, False, **options)
    raw = Pipe(cast(_core.Pipe, place.open()), url, bytes_mode)
    if buffering == 0 or bytes_mode == "r+b":
        return raw
    size = buffering if buffering > 1 else _default_buffer
    raw._is_buffered = True
    try:
        file = PipeReader(raw, size) if bytes_mode == "rb" else PipeWriter(raw, size)
        if not is_text:
            return file
        text = PipeText(file, encoding or "utf-8", errors, newline, line_buffering=buffering == 1)
        text.mode = mode  # type: ignore[misc]
        return text
    except BaseException:
        raw.discard()
        raise


@atexit.register
def _end() -> None:
    """Give up the pipes that are open: their threads end before the process's static objects."""
    for each in list(_open_pipes):
        with contextlib.suppress(OSError, ValueError):
            each.discard()
