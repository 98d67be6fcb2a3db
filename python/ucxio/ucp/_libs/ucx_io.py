"""A file object over memory of a peer."""

from __future__ import annotations

import errno
import io
import operator
from typing import Any

from ..._core import KeyedRegion, size_of_buffer
from ..exceptions import translated
from .ucx_rkey import UCXRkey

__all__ = ["UCXIO"]


class UCXIO(io.RawIOBase):
    """Memory of a peer as a file object, without a buffer.

    `io.BufferedReader`, `io.BufferedRandom` and `io.TextIOWrapper` take it. Its calls wait, without
    the GIL, and drive the worker meanwhile. They end by KeyboardInterrupt. Making it waits until
    the endpoint is connected.

    Parameters
    ----------
    dest : int
        Where the memory is in the peer: `UCXMemoryHandle.address`.
    length : int
        The number of bytes, which never changes.
    rkey : UCXRkey
        The key to the memory, of a program with ucxio or with UCX alone.
    timeout : float
        Seconds that a read or write may take, the wait until the bytes are at the peer included.

    Raises
    ------
    UCXError, UCXConnectionReset, UCXUnreachable, UCXCloseError
        As by `RemoteMemory`.
    TimeoutError
        The peer does not connect, or a call took too long.
    ValueError
        Of the methods: the file is closed.

    Notes
    -----
    After TimeoutError or KeyboardInterrupt the position is where it was, and any of the bytes may
    be at the peer: `io.BufferedWriter` writes them again. Where RDMA hardware was moving bytes, the
    connection is lost, too.
    """

    # None of a file that is closed, or could not be made.
    _core: KeyedRegion | None = None
    _rkey: UCXRkey | None = None

    def __init__(self, dest: int, length: int, rkey: UCXRkey, *, timeout: float = 60.0) -> None:
        super().__init__()
        if not timeout > 0:
            raise ValueError("a timeout has to be above 0 seconds")
        self._rkey = rkey
        self._length = length
        self._timeout = timeout
        self._position = 0
        self._core = rkey._open(dest, length)

    def close(self) -> None:
        """Close the file, and let go of the key and the connection. Idempotent."""
        super().close()
        self._core = self._rkey = None

    def _opened(self) -> KeyedRegion:
        core, rkey = self._core, self._rkey
        if self.closed or core is None or rkey is None:
            raise ValueError("I/O operation on closed file.")
        rkey._check()
        return core

    def _check(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    def readable(self) -> bool:
        """Return True."""
        self._check()
        return True

    def writable(self) -> bool:
        """Return True."""
        self._check()
        return True

    def seekable(self) -> bool:
        """Return True. A seek sends nothing."""
        self._check()
        return True

    def tell(self) -> int:
        """Return the position."""
        self._check()
        return self._position

    def seek(self, pos: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position, and return it. It is never before the beginning or beyond the end."""
        self._check()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise ValueError(f"there is no whence {whence}")
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._length}[whence]
        self._position = min(max(begin + operator.index(pos), 0), self._length)
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer, without a copy. Return how many bytes: none at the end."""
        core = self._opened()
        with translated("read"):
            count = core.read_into(buffer, self._position, self._timeout)
        self._position += count
        return count

    def readall(self) -> bytes:
        """Return all bytes up to the end."""
        self._check()
        rest = bytearray(self._length - self._position)
        del rest[self.readinto(rest) :]
        return bytes(rest)

    def write(self, data: Any, /) -> int:
        """Write a buffer, and return how many bytes. They are at the peer then.

        Raises
        ------
        OSError
            ``ENOSPC``: the position is the end.
        """
        core = self._opened()
        if self._position == self._length and size_of_buffer(data):
            raise OSError(errno.ENOSPC, "writing at the end of memory of a fixed size")
        with translated("write"):
            count = core.write_from(data, self._position, self._timeout)
        self._position += count
        return count

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"at {self._position}"
        return f"<ucxio.ucp UCXIO, {self._length} bytes, {state}>"
