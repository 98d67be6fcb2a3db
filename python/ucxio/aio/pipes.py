"""Pipes between processes, in an event loop."""

from __future__ import annotations

import asyncio
import io
import warnings
from types import TracebackType
from typing import Any, Self, Unpack, cast

from .. import _core
from .._buffer import Buffer
from ..pipes import PipeOptions, _check_mode, _Failure, _has_begun, _place
from ._driver import Driver

__all__ = ["Pipe", "open_pipe"]

_piece = 1 << 20


class Pipe:
    """One end of a pipe, without a buffer: `ucxio.Pipe`, awaited. `open_pipe` makes it.

    One task at a time reads, and one writes.

    Notes
    -----
    A reader sees the end only after a clean `close` of the writer. Leaving an ``async with`` block
    by an exception, `discard` and garbage collection give up: the other end fails. So does a
    cancelled `close`, unless the readers' processes have all bytes. After a cancelled `read` or
    `flush` the pipe goes on, and what had come is read next. After a failed or cancelled `write` no
    other one is possible, and `close` fails.
    """

    def __init__(self, core: _core.LoopPipe, name: str, mode: str, driver: Driver) -> None:
        """Wrap an end that is connected. Use `open_pipe` instead."""
        self._core: _core.LoopPipe | None = core
        self._driver = driver
        self.name = name
        self.mode = mode
        self._counts = 0, 0
        # What a read that was cancelled, or failed, had taken.
        self._kept = b""
        self._unread: _Failure | None = None
        self._unwritten: _Failure | None = None
        self._closing: asyncio.Future[_Failure | None] | None = None

    def _checked(self) -> _core.LoopPipe:
        """Return the extension's pipe, for a caller in the loop of the connection."""
        if self._core is None:
            raise ValueError("I/O operation on closed file.")
        self._driver.check()
        return self._core

    @property
    def closed(self) -> bool:
        """Whether `close` or `discard` was called."""
        return self._core is None

    @property
    def received(self) -> int:
        """The bytes that were read here."""
        return self._core.received if self._core is not None else self._counts[0]

    @property
    def sent(self) -> int:
        """The bytes that were written and sent."""
        return self._core.sent if self._core is not None else self._counts[1]

    async def readinto(self, buffer: Buffer, /) -> int:
        """Read into a buffer, and return how many bytes: those that are there, at least one.

        It waits for the first one. The clean end is 0.

        Raises
        ------
        Error
            Those of `ucxio.Pipe.readinto`.
        """
        core = self._checked()
        if self.mode == "wb":
            raise io.UnsupportedOperation("not readable")
        if self._unread is not None:
            raise self._unread.error()
        if self._kept:
            into = memoryview(cast("Any", buffer)).cast("B")
            count = min(into.nbytes, len(self._kept))
            into[:count] = self._kept[:count]
            self._kept = self._kept[count:]
            return count
        before = core.received
        try:
            return await self._driver.finish(core.read_into(buffer))
        except BaseException as failed:
            # It may have ended just before it was cancelled.
            if count := self.received - before:
                self._keep(buffer, count, failed)
            raise

    def _keep(self, buffer: Buffer, count: int, failed: BaseException) -> None:
        try:
            self._kept = bytes(memoryview(cast("Any", buffer)).cast("B")[:count])
        except (TypeError, ValueError, BufferError):  # such as memory of a device
            self._unread = _Failure(failed, "reading", self.name)

    async def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes that are there; without a size, all up to the clean end.

        Raises
        ------
        Error
            Those of `readinto`. The bytes that had come are read next.
        """
        if size >= 0:
            one = bytearray(size)
            count = await self.readinto(one)
            return bytes(memoryview(one)[:count])
        found = bytearray()
        piece = bytearray(_piece)
        try:
            while count := await self.readinto(piece):
                found += memoryview(piece)[:count]
        except BaseException:
            self._kept = bytes(found) + self._kept
            raise
        return bytes(found)

    async def write(self, data: Buffer, /) -> int:
        """Write all of a buffer, and return how many bytes.

        It returns when the buffer can be used again. The bytes are sent with later ones, or by
        `flush`.

        Raises
        ------
        Error
            Those of `ucxio.Pipe.write`.
        """
        core = self._checked()
        if self.mode == "rb":
            raise io.UnsupportedOperation("not writable")
        if self._unwritten is not None:
            raise self._unwritten.error()
        try:
            return await self._driver.finish(core.write_from(data))
        except BaseException as failed:
            if _has_begun(failed):
                self._unwritten = self._unwritten or _Failure(failed, "writing", self.name)
            raise

    async def flush(self) -> None:
        """Send what was written. Nothing is known about the reader."""
        core = self._checked()
        if self._unwritten is not None:
            raise self._unwritten.error()
        if self.mode != "rb":
            await self._driver.finish(core.flush())

    async def close_output(self) -> None:
        """End writing, as `close` does. Reading goes on."""
        await self._driver.finish(self._checked().close_output())

    async def close(self) -> None:
        """Stop reading, end writing, and close. Idempotent.

        A writer's returns when the readers' processes have all bytes. Of several tasks each waits
        for the end, and sees the failure.

        Raises
        ------
        Error
            Those of `ucxio.Pipe.close`. The pipe was then given up, and the reader fails.
        """
        if self._core is None:
            return
        if self._driver.is_over:
            self._drop()
            return
        core = self._checked()
        if self._closing is not None:
            failure = await asyncio.shield(self._closing)
            if failure is not None:
                raise failure.error()
            return
        ended = self._closing = asyncio.get_running_loop().create_future()
        failure = None
        try:
            await self._driver.finish(core.close())
        except BaseException as failed:
            failure = _Failure(failed, "closing", self.name)
            raise
        finally:
            try:
                self._drop()
            finally:
                ended.set_result(failure)

    async def discard(self) -> None:
        """Give up, and close: the other end fails. Does not wait for it. Idempotent.

        In another loop than the pipe's it gives up, too.
        """
        self._drop()

    def _drop(self) -> None:
        core = self._core
        if core is None:
            return
        self._core = None
        try:
            if not self._driver.is_over:
                self._counts = core.received, core.sent
                core.abort()
        finally:
            core.drop()
            self._driver.end()

    async def __aenter__(self) -> Self:
        self._checked()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.close()
        else:
            await self.discard()

    def __del__(self) -> None:
        if getattr(self, "_core", None) is not None:
            warnings.warn(f"unclosed pipe {self!r}", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        closed = " closed" if self.closed else ""
        return f"<ucxio.aio.Pipe {self.name!r} mode={self.mode!r}{closed}>"


async def open_pipe(url: str, mode: str = "rb", **options: Unpack[PipeOptions]) -> Pipe:
    """Open one end of a pipe. Return when the other end is there.

    Parameters
    ----------
    url : str
        As for `ucxio.open_pipe`.
    mode : {"rb", "wb", "r+b"}
        Reads, writes, or both.
    **options
        Those of `ucxio.open_pipe`, from `window` on.

    Raises
    ------
    ValueError
        The mode makes no sense, or is for text.
    Error
        Those of `ucxio.open_pipe`.
    RuntimeError
        No event loop runs.

    Notes
    -----
    The server is looked up on a thread of the loop's executor. The loop has to run while the pipe
    is open: otherwise the other end takes this one for dead.
    """
    bytes_mode, is_text = _check_mode(mode)
    if is_text:
        raise ValueError(f"mode {mode!r} is for text: these pipes have bytes, so add 'b'")
    # A thread of the executor would not be there.
    _core.refuse_forked_child()
    place = await asyncio.to_thread(_place, url, bytes_mode, True, **options)
    driver = Driver(place.worker())
    try:
        started = cast("_core.Operation[_core.LoopPipe]", place.open())
        core = await driver.finish(started)
    except BaseException:
        driver.close()
        raise
    return Pipe(core, url, bytes_mode, driver)
