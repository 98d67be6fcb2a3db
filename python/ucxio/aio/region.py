"""Memory and files of a server, read and written at offsets by coroutines."""

from __future__ import annotations

from collections.abc import Iterable

from .._buffer import Buffer
from .._core import LoopRegion
from .._region_facts import RegionFacts, Width, bits
from ._closing import AsyncClosing
from ._driver import Driver

__all__ = ["Region"]


class Region(RegionFacts, AsyncClosing):
    """A published name that a client of the event loop has open: `ucxio.Region`, awaited.

    `Client.open` and `Client.create` make it. All offsets and sizes are bytes.

    Notes
    -----
    A `timeout` is in seconds; None means the client's. A method may raise the errors of its
    namesake of `ucxio.Region`, RuntimeError in another event loop, and CancelledError: UCX has let
    go of the buffers then. That may take as long as the worker's ``heartbeat_timeout`` of 5 s. What
    a cancelled change has done is not known.

    Bytes in memory of this machine may be copied within the call, without a suspension. A call that
    ends at once does not suspend.
    """

    __slots__ = ("__weakref__", "_driver")

    _shown = "ucxio.aio.Region"

    _core: LoopRegion

    def __init__(self, core: LoopRegion, server: str, name: str, driver: Driver) -> None:
        """Wrap an open region. Use `Client.open` instead."""
        super().__init__(core, server, name)
        self._driver = driver

    def _checked(self) -> LoopRegion:
        """Return the extension's region, for a caller in the loop of the connection."""
        self._driver.check()
        return self._core

    async def read_into(
        self,
        buffer: Buffer,
        offset: int = 0,
        *,
        timeout: float | None = None,
        verify: bool = False,
    ) -> int:
        """Fill a buffer with the bytes from `offset` on, without a copy (`Region.read_into`)."""
        started = self._checked().read_into(buffer, offset, False, timeout, verify)
        return await self._driver.finish(started)

    async def read(
        self,
        offset: int = 0,
        size: int | None = None,
        *,
        timeout: float | None = None,
        verify: bool = False,
    ) -> bytes:
        """Return `size` bytes from `offset` on; without a size, all up to the end."""
        core = self._checked()
        if size is None:
            size = max(core.size - offset, 0)
        return await self._driver.finish(core.read(offset, size, timeout, verify))

    async def write_from(
        self, buffer: Buffer, offset: int = 0, *, timeout: float | None = None
    ) -> int:
        """Write the bytes of a buffer to `offset`, without a copy (`Region.write_from`).

        Returns when the buffer can be used again. The bytes are visible at the owner after `flush`.
        """
        started = self._checked().write_from(buffer, offset, False, timeout)
        return await self._driver.finish(started)

    async def flush(self, *, timeout: float | None = None) -> None:
        """Return when all that was written is visible at the owner."""
        await self._driver.finish(self._checked().flush(timeout))

    async def read_batch(
        self,
        pieces: Iterable[tuple[int, Buffer]],
        *,
        timeout: float | None = None,
        verify: bool = False,
    ) -> None:
        """Fill many buffers in one operation: pairs of an offset and a buffer."""
        await self._driver.finish(self._checked().read_batch(pieces, timeout, verify))

    async def write_batch(
        self, pieces: Iterable[tuple[int, Buffer]], *, timeout: float | None = None
    ) -> None:
        """Write many buffers in one operation. Pieces that overlap land in either order."""
        await self._driver.finish(self._checked().write_batch(pieces, timeout))

    # Atomic accesses to numbers of 4 or 8 bytes, in the owner's byte order.

    async def _change(
        self,
        operation: str,
        offset: int,
        value: int,
        width: Width,
        timeout: float | None,
        *,
        expected: int = 0,
        fetches: bool = True,
    ) -> int:
        started = self._checked().atomic(
            operation, offset, width, bits(value, width), bits(expected, width), fetches, timeout
        )
        return await self._driver.finish(started)

    async def load(self, offset: int, *, width: Width = 8, timeout: float | None = None) -> int:
        """Return the number at `offset`, as an unsigned one (`Region.load` has the rules)."""
        return await self._change("load", offset, 0, width, timeout)

    async def store(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> None:
        """Replace the number at `offset`."""
        await self._change("store", offset, value, width, timeout, fetches=False)

    async def exchange(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Replace the number at `offset`, and return the one before."""
        return await self._change("store", offset, value, width, timeout)

    async def fetch_add(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Add to the number at `offset`, modulo 2**(8 * width), and return the one before."""
        return await self._change("add", offset, value, width, timeout)

    async def fetch_and(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Combine the number at `offset` with `value` by and; return the one before."""
        return await self._change("bit_and", offset, value, width, timeout)

    async def fetch_or(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Combine the number at `offset` with `value` by or; return the one before."""
        return await self._change("bit_or", offset, value, width, timeout)

    async def fetch_xor(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Combine the number at `offset` with `value` by exclusive or; return the one before."""
        return await self._change("bit_xor", offset, value, width, timeout)

    async def compare_exchange(
        self,
        offset: int,
        expected: int,
        desired: int,
        *,
        width: Width = 8,
        timeout: float | None = None,
    ) -> int:
        """Replace the number at `offset` by `desired` if it is `expected`; return the one before.

        It was replaced if that equals `expected`.
        """
        return await self._change(
            "compare_exchange", offset, desired, width, timeout, expected=expected
        )

    async def notify(self, value: int, *, timeout: float | None = None) -> None:
        """Tell the owner `value`, after every earlier write through this object is in place."""
        await self._driver.finish(self._checked().notify(value, timeout))

    async def digest(
        self,
        offset: int = 0,
        size: int | None = None,
        *,
        chunk: int | None = None,
        timeout: float | None = None,
    ) -> list[str]:
        """Have the server hash a file, without fetching it (`Region.digest`)."""
        core = self._checked()
        if size is None:
            size = max(core.size - offset, 0)
        started = core.digest(offset, size, chunk if chunk is not None else max(size, 1), timeout)
        return await self._driver.finish(started)

    async def refresh(
        self, *, known: int = 0, wait: float = 0, timeout: float | None = None
    ) -> int:
        """Ask for the present size of a file, and let `size` reach so far (`Region.refresh`)."""
        return await self._driver.finish(self._checked().refresh(known, wait, timeout))

    async def resize(self, size: int, *, timeout: float | None = None) -> None:
        """Make a file that this client writes `size` bytes long. Added bytes are zero."""
        await self._driver.finish(self._checked().resize(size, timeout))

    async def commit(
        self, *, durable: bool = False, close: bool = False, timeout: float | None = None
    ) -> None:
        """Give a file of `Client.create` its name, when every write is in it (`Region.commit`)."""
        await self._driver.finish(self._checked().commit(durable, close, timeout))
        if close:
            self._core.close()

    async def close(self) -> None:
        """Let go of the region. A new file that was not committed is thrown away. Idempotent.

        Raises
        ------
        BufferError
            A memoryview of it exists.
        """
        if self._driver.is_over:
            self._core.close()
            return
        self._checked().close()
        self._driver.turn()  # so that the server knows before what is asked next
