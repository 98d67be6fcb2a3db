"""File objects over URLs, read and written by coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import warnings
import weakref
from types import TracebackType
from typing import Any, Self

from .. import _core
from .._buffer import Buffer
from ..errors import Error, ErrorCode
from ..files import _check_mode, _creations
from .client import Client, connect
from .region import Region

__all__ = ["RemoteFile", "open"]


class RemoteFile:
    """The bytes of a published name, with a position and without a buffer. `open` makes it.

    One task at a time uses a file. `seek`, `tell` and what asks for properties send nothing, and
    are no coroutines.

    Notes
    -----
    A file that was created gets its name at `close`, whole. Leaving an ``async with`` block by an
    exception throws it away, and so do `discard` and garbage collection. After a write that failed
    or was cancelled it can not be completed.
    """

    def __init__(
        self,
        region: Region,
        mode: str,
        client: Client,
        timeout: float | None,
        verify: bool,
        shared: _Shared | None = None,
    ) -> None:
        """Wrap an open region. Use `open` instead."""
        self._region: Region | None = region
        self._client = client
        self._shared = shared  # the files that have the connection, if it is not the user's
        self.name = region.url
        self.mode = mode
        self._timeout = timeout
        self._verify = verify
        self._reads = "r" in mode or "+" in mode
        self._writes = mode[0] != "r" or "+" in mode
        self._appends = mode[0] == "a"
        # A name that was published by itself has a fixed size, and is there already.
        self._is_new = mode[0] in "wx" and region.max_size > region.size
        self._position = region.size if self._appends else 0
        self._is_dirty = False  # reads may not see all writes yet
        self._failure: Error | None = None  # why a new file can not be completed

    def _open_region(self) -> Region:
        if self._region is None:
            raise ValueError("I/O operation on closed file.")
        return self._region

    def readable(self) -> bool:
        """Return whether the file can be read."""
        self._open_region()
        return self._reads

    def writable(self) -> bool:
        """Return whether the file can be written."""
        self._open_region()
        return self._writes

    def seekable(self) -> bool:
        """Return True. A seek sends nothing."""
        self._open_region()
        return True

    @property
    def size(self) -> int:
        """The bytes of the file, as far as is known."""
        return self._open_region().size

    @property
    def closed(self) -> bool:
        """Whether `close` or `discard` was called."""
        return self._region is None

    def tell(self) -> int:
        """Return the position."""
        self._open_region()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a position, which may be beyond the end, and return it.

        Raises
        ------
        ValueError
            The position is negative, or `whence` is unknown.
        """
        size = self._open_region().size
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"invalid whence ({whence}, should be 0, 1 or 2)")
        offset += {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: size}[whence]
        if offset < 0:
            raise ValueError(f"negative seek position {offset}")
        self._position = offset
        return offset

    async def _check_reading(self) -> Region:
        region = self._open_region()
        if not self._reads:
            raise io.UnsupportedOperation("not readable")
        if self._is_dirty:
            await self.flush()
        return region

    async def readinto(self, buffer: Buffer, /) -> int:
        """Read into a buffer, without a copy. Return how many bytes: none at the end.

        Raises
        ------
        TypeError, ValueError, Error
            Those of `ucxio.Region.read_into`.
        """
        region = await self._check_reading()
        started = region._checked().read_into(
            buffer, self._position, True, self._timeout, self._verify
        )
        count = await region._driver.finish(started)
        self._position += count
        return count

    async def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes; without a size, all up to the end."""
        rest = -1 if size is None else size
        found = await self._read_at(self._position, rest)
        self._position += len(found)
        return found

    async def pread(self, size: int, offset: int, /) -> bytes:
        """Return up to `size` bytes at `offset`. The position stays."""
        return await self._read_at(offset, max(size, 0))

    async def _read_at(self, offset: int, size: int) -> bytes:
        region = await self._check_reading()
        rest = max(region.size - offset, 0)
        wanted = rest if size < 0 else min(size, rest)
        if not wanted:
            return b""
        return await region.read(offset, wanted, timeout=self._timeout, verify=self._verify)

    async def write(self, data: Buffer, /) -> int:
        """Write a buffer, and return how many bytes. It is never 0, but for no bytes.

        Raises
        ------
        Error
            ``no_space`` (errno ENOSPC: the end of a fixed size, a disk, a quota),
            ``permission_denied``.
        TypeError, ValueError
            Those of `ucxio.Region.write_from`.
        """
        region = self._open_region()
        if not self._writes:
            raise io.UnsupportedOperation("not writable")
        if self._appends:
            self._position = region.size
        started = region._checked().write_from(data, self._position, True, self._timeout)
        self._is_dirty = True
        try:
            count = await region._driver.finish(started)
        except BaseException as failed:
            self._lose(failed)
            raise
        self._position += count
        return count

    async def flush(self) -> None:
        """Return when all that was written is visible at the server.

        Raises
        ------
        Error
            The first failure of a write since the last flush.
        """
        region = self._open_region()
        if not self._writes:
            return
        try:
            await region.flush(timeout=self._timeout)
        except BaseException as failed:
            self._lose(failed)
            raise
        self._is_dirty = False

    def _lose(self, failed: BaseException) -> None:
        """Take note that bytes are lost: a new file can not be completed."""
        text = f"{self.name}: the new file was thrown away, since a write failed"
        if isinstance(failed, Error):
            why = failed.errno or errno.EIO, f"{text}: {failed.strerror}", failed.code
            self._failure = Error(*why, failed.ucx_status)
        else:
            self._failure = Error(errno.ECANCELED, text, ErrorCode.canceled)

    async def truncate(self, size: int | None = None, /) -> int:
        """Make the file `size` bytes long; without a size, as long as the position.

        Raises
        ------
        Error
            ``not_supported``, ``no_such_region`` (a name that was published by itself has a fixed
            size), ``no_space``.
        """
        region = self._open_region()
        if not self._writes:
            raise io.UnsupportedOperation("truncate")
        wanted = self._position if size is None else size
        if wanted < 0:
            raise ValueError(f"negative size {wanted}")
        if wanted != region.size or self._is_new:
            await region.resize(wanted, timeout=self._timeout)
        return wanted

    def memoryview(self) -> memoryview:
        """Return the bytes in place, where memory of this machine is mapped. Nothing is copied.

        Raises
        ------
        Error
            ``not_supported``: the text says why it is not mapped.
        """
        return self._open_region().memoryview(writable=self._writes)

    async def close(self) -> None:
        """Make everything visible, give a new file its name, and close. Idempotent.

        Raises
        ------
        Error
            That of a failed write whose bytes a new file lacks; those of `ucxio.Region.flush` and
            `ucxio.Region.commit`. A new file is then thrown away.
        BufferError
            A memoryview of the file exists.
        """
        region = self._region
        if region is None:
            return
        try:
            if self._writes:
                if self._is_new and self._failure is not None:
                    raise self._failure
                await self.flush()
                if self._is_new:
                    await region.commit(close=True, timeout=self._timeout)
        finally:
            await self._let_go(region)

    async def _let_go(self, region: Region) -> None:
        """Close the region, and with the last file the connection that files share."""
        await region.close()
        self._region = None
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.leave(self._client)

    async def discard(self) -> None:
        """Close. A new file is thrown away and gets no name. Idempotent."""
        if self._region is not None:
            await self._let_go(self._region)

    async def __aenter__(self) -> Self:
        self._open_region()
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
        if getattr(self, "_region", None) is not None:
            if self._shared is not None:
                self._shared.forget(self._client)
            warnings.warn(f"unclosed file {self!r}", ResourceWarning, stacklevel=2, source=self)

    def __repr__(self) -> str:
        closed = " closed" if self.closed else ""
        return f"<ucxio.aio.RemoteFile {self.name!r} mode={self.mode!r}{closed}>"


class _Shared:
    """The connections that the files of an event loop share, while they are open."""

    def __init__(self) -> None:
        self.clients: weakref.WeakValueDictionary[str, Client] = weakref.WeakValueDictionary()
        # Those that are being made. They end with None, or with the failure.
        self.pending: dict[str, asyncio.Future[Exception | None]] = {}
        self._users: weakref.WeakKeyDictionary[Client, int] = weakref.WeakKeyDictionary()

    def join(self, client: Client) -> Client:
        """Take note of a user of a client, and return the client."""
        self._users[client] = self._users.get(client, 0) + 1
        return client

    def forget(self, client: Client) -> bool:
        """Take note that a user has gone. Return whether it was the last."""
        left = self._users[client] = self._users[client] - 1
        if left == 0 and self.clients.get(client.url) is client:
            del self.clients[client.url]
        return left == 0

    async def leave(self, client: Client) -> None:
        """Close a client whose last user goes."""
        if self.forget(client):
            with contextlib.suppress(Error):  # the file is closed, which is what counts
                await client.close()


_shared: weakref.WeakKeyDictionary[Any, _Shared] = weakref.WeakKeyDictionary()


async def _client_of(server: str, shared: _Shared) -> Client:
    """Return the client of a server that the files of this loop share. The caller has joined it."""
    loop = asyncio.get_running_loop()
    while True:
        client = shared.clients.get(server)
        if client is not None and client.is_connected:
            return shared.join(client)
        pending = shared.pending.get(server)
        if pending is None:
            break
        failure = await asyncio.shield(pending)
        try:
            if failure is not None:
                raise failure
        finally:
            del failure, pending  # the failure's frames refer to this one
    pending = shared.pending[server] = loop.create_future()
    failure = None
    try:
        client = shared.clients[server] = await connect(server)
        return shared.join(client)
    except Exception as failed:
        failure = failed
        raise
    finally:
        del shared.pending[server]
        pending.set_result(failure)
        del failure, pending


async def open(
    url: str,
    mode: str = "rb",
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> RemoteFile:
    """Open a published name as a file of bytes.

    Parameters
    ----------
    url : str
        The URL of a name: ``ucxs://host:port/name``. With `client`, the name itself.
    mode : {"rb", "r+b", "wb", "w+b", "xb", "x+b", "ab", "a+b"}
        As for `ucxio.open`.
    client : Client, optional
        The connection. Without it the files of this event loop share one to each server.
    timeout : float, optional
        Seconds that each transfer may take.
    verify : bool
        Compares what is read with checksums of the server.

    Raises
    ------
    ValueError
        The mode makes no sense, or is for text. An `Error` that is also a ValueError: not a URL
        (``bad_url``).
    Error
        Those of `ucxio.open`.
    """
    bytes_mode, is_text = _check_mode(mode)
    if is_text:
        raise ValueError(f"mode {mode!r} is for text: these files have bytes, so add 'b'")
    name = url
    shared = None
    if client is None:
        server, name = _core.split_url(url)
        if not name:
            raise Error(errno.EINVAL, f"{url}: the URL has no name", ErrorCode.bad_url)
        shared = _shared.setdefault(asyncio.get_running_loop(), _Shared())
        client = await _client_of(server, shared)
    first, both = bytes_mode[0], "+" in bytes_mode
    try:
        if first == "r":
            region = await client.open(name, "read_write" if both else "read", timeout=timeout)
        else:
            region = await client.create(name, _creations[first], readable=both, timeout=timeout)
        return RemoteFile(region, bytes_mode, client, timeout, verify, shared)
    except BaseException:
        if shared is not None:
            await shared.leave(client)
        raise
