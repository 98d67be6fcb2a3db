"""Memory and files of a server, read and written at offsets."""

from __future__ import annotations

from collections.abc import Iterable

from . import _core
from ._buffer import Buffer
from ._closing import Closing
from ._core import Region as CoreRegion
from ._region_facts import RegionFacts, Width, bits
from .entry import Access

__all__ = ["Region"]


class Region(RegionFacts, Closing):
    """A published name that a client has open.

    Clients make it: `Client.open`, `Client.create`, `open_region`. All offsets and sizes are
    bytes. It can be pickled where it has a URL and a name: the name is then opened again.

    Notes
    -----
    Each call that waits releases the GIL, ends by its deadline, and lets signal handlers run: a
    KeyboardInterrupt comes soon; where a request has to be dropped, within the worker's
    ``heartbeat_timeout``. **The buffer of an interrupted transfer may change until UCX has let go
    of it**; the library keeps it alive so long.

    A `timeout` is in seconds; None means the client's. Every method may raise `Error` with one of
    the codes ``connection_reset``, ``timed_out``, ``revoked``, ``stale_region``, ``closed``, and in
    a forked child ``forked_child``.

    Any thread may call it.
    """

    __slots__ = ("__weakref__",)

    _core: CoreRegion

    def __init__(self, core: CoreRegion, server: str, name: str) -> None:
        """Wrap an open region. Use `Client.open` instead."""
        super().__init__(core, server, name)

    def read_into(
        self,
        buffer: Buffer,
        offset: int = 0,
        *,
        timeout: float | None = None,
        verify: bool = False,
    ) -> int:
        """Fill a buffer with the bytes from `offset` on, without a copy.

        Parameters
        ----------
        buffer : object with the buffer protocol, array of a device
            A writable, C-contiguous buffer of any shape and format: a NumPy array, bytearray,
            memoryview, mmap. All of it is filled. Without the buffer protocol: an array with the
            CUDA array interface, or with DLPack.
        offset : int
            The first byte in the region.
        timeout : float, optional
            Seconds that the transfer may take.
        verify : bool
            Has the owner send checksums, and compares them.

        Returns
        -------
        int
            The bytes that were read: the buffer's size.

        Raises
        ------
        TypeError
            The object has no buffer, or a read-only one.
        ValueError
            The buffer is not C-contiguous: the text has its shape and strides. An array's
            interface is malformed, or no CUDA driver knows its memory.
        BufferError
            DLPack would give a copy.
        Error
            ``out_of_range``, ``permission_denied``, ``checksum_mismatch`` (`verify`),
            ``not_supported`` (`verify`, in a device).
        """
        return self._core.read_into(buffer, offset, False, timeout, verify)

    def read(
        self,
        offset: int = 0,
        size: int | None = None,
        *,
        timeout: float | None = None,
        verify: bool = False,
    ) -> bytes:
        """Return `size` bytes from `offset` on; without a size, all up to the end.

        Raises
        ------
        Error
            ``out_of_range``, ``permission_denied``, ``checksum_mismatch`` (`verify`).
        """
        if size is None:
            size = max(self._core.size - offset, 0)
        return self._core.read(offset, size, timeout, verify)

    def write_from(self, buffer: Buffer, offset: int = 0, *, timeout: float | None = None) -> int:
        """Write the bytes of a buffer to `offset`, without a copy.

        Returns when the buffer can be used again. The bytes are visible at the owner after `flush`.

        Parameters
        ----------
        buffer : object with the buffer protocol, array of a device
            A C-contiguous buffer of any shape and format, as for `read_into`.
        offset : int
            Where its first byte goes.
        timeout : float, optional
            Seconds that the transfer may take.

        Returns
        -------
        int
            The bytes that were written: the buffer's size.

        Raises
        ------
        TypeError
            The object has no buffer.
        ValueError, BufferError
            Those of `read_into`.
        Error
            ``no_space`` or ``out_of_range`` (beyond `max_size`), ``permission_denied``.
        """
        return self._core.write_from(buffer, offset, False, timeout)

    def flush(self, *, timeout: float | None = None) -> None:
        """Return when all that was written is visible at the owner.

        Raises
        ------
        Error
            The first failure of a write since the last flush.
        """
        self._core.flush(timeout)

    def read_batch(
        self,
        pieces: Iterable[tuple[int, Buffer]],
        *,
        timeout: float | None = None,
        verify: bool = False,
    ) -> None:
        """Fill many buffers in one operation.

        Parameters
        ----------
        pieces : iterable of (int, buffer)
            Offsets, and the buffers that are filled from there on.
        timeout : float, optional
            Seconds that all of it may take.
        verify : bool
            As for `read_into`.

        Raises
        ------
        TypeError, ValueError, Error
            Those of `read_into`. Nothing is sent if any piece is out of range.
        """
        self._core.read_batch(pieces, timeout, verify)

    def write_batch(
        self, pieces: Iterable[tuple[int, Buffer]], *, timeout: float | None = None
    ) -> None:
        """Write many buffers in one operation. Pieces that overlap land in either order.

        Parameters
        ----------
        pieces : iterable of (int, buffer)
            Offsets, and the buffers that go there.
        timeout : float, optional
            Seconds that all of it may take.

        Raises
        ------
        TypeError, ValueError, Error
            Those of `write_from`. Nothing is sent if any piece is out of range.
        """
        self._core.write_batch(pieces, timeout)

    # Atomic accesses to numbers of 4 or 8 bytes, in the owner's byte order.

    def _fetch(
        self, operation: str, offset: int, value: int, width: Width, timeout: float | None
    ) -> int:
        return self._core.atomic(operation, offset, width, bits(value, width), 0, True, timeout)

    def load(self, offset: int, *, width: Width = 8, timeout: float | None = None) -> int:
        """Return the number at `offset`, as an unsigned one.

        Every atomic access has this one's rules. The owner's processor performs it, once or, where
        it failed, not at all.

        Parameters
        ----------
        offset : int
            The place of the number. It has to be aligned in the owner's memory.
        width : {8, 4}
            Its bytes.
        timeout : float, optional
            Seconds that the access may take.

        Raises
        ------
        Error
            ``invalid_argument`` (a width that is neither, a number that is not aligned),
            ``out_of_range``, ``permission_denied``, ``not_supported`` (a file, memory of a device).
        OverflowError
            A value does not fit the width.
        """
        return self._fetch("load", offset, 0, width, timeout)

    def store(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> None:
        """Replace the number at `offset`."""
        self._core.atomic("store", offset, width, bits(value, width), 0, False, timeout)

    def exchange(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Replace the number at `offset`, and return the one before."""
        return self._fetch("store", offset, value, width, timeout)

    def fetch_add(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Add to the number at `offset`, modulo 2**(8 * width), and return the one before.

        `value` may be negative.
        """
        return self._fetch("add", offset, value, width, timeout)

    def fetch_and(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Combine the number at `offset` with `value` by and; return the one before."""
        return self._fetch("bit_and", offset, value, width, timeout)

    def fetch_or(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Combine the number at `offset` with `value` by or; return the one before."""
        return self._fetch("bit_or", offset, value, width, timeout)

    def fetch_xor(
        self, offset: int, value: int, *, width: Width = 8, timeout: float | None = None
    ) -> int:
        """Combine the number at `offset` with `value` by exclusive or; return the one before."""
        return self._fetch("bit_xor", offset, value, width, timeout)

    def compare_exchange(
        self,
        offset: int,
        expected: int,
        desired: int,
        *,
        width: Width = 8,
        timeout: float | None = None,
    ) -> int:
        """Replace the number at `offset` by `desired` if it is `expected`.

        Returns
        -------
        int
            The number before: it was replaced if that equals `expected`.
        """
        return self._core.atomic(
            "compare_exchange",
            offset,
            width,
            bits(desired, width),
            bits(expected, width),
            True,
            timeout,
        )

    def notify(self, value: int, *, timeout: float | None = None) -> None:
        """Tell the owner `value`, after every earlier write through this object is in place.

        Raises
        ------
        Error
            ``busy`` (the owner has 1024 notifications that it did not look at),
            ``permission_denied``.
        """
        self._core.notify(value, timeout)

    def digest(
        self,
        offset: int = 0,
        size: int | None = None,
        *,
        chunk: int | None = None,
        timeout: float | None = None,
    ) -> list[str]:
        """Have the server hash a file, without fetching it.

        Parameters
        ----------
        offset, size : int
            The bytes; without a size, all up to the end.
        chunk : int, optional
            The bytes that are hashed by themselves; without it, all are hashed as one.

        Returns
        -------
        list of str
            The XXH3-128 hash of each chunk, as `xxh128sum` prints it.

        Raises
        ------
        Error
            ``not_supported`` (memory), ``out_of_range``, ``busy``.
        """
        if size is None:
            size = max(self._core.size - offset, 0)
        return self._core.digest(
            offset, size, chunk if chunk is not None else max(size, 1), timeout
        )

    def refresh(self, *, known: int = 0, wait: float = 0, timeout: float | None = None) -> int:
        """Ask for the present size of a file, and let `size` reach so far.

        Parameters
        ----------
        known : int
            Returns when the size is not this any more.
        wait : float
            At the latest after so many seconds.

        Raises
        ------
        Error
            ``not_supported`` (memory).
        """
        return self._core.refresh(known, wait, timeout)

    def resize(self, size: int, *, timeout: float | None = None) -> None:
        """Make a file that this client writes `size` bytes long. Added bytes are zero.

        Raises
        ------
        Error
            ``permission_denied``, ``no_space``, ``no_such_region`` (not a file of a store).
        """
        self._core.resize(size, timeout)

    def commit(
        self, *, durable: bool = False, close: bool = False, timeout: float | None = None
    ) -> None:
        """Give a file of `Client.create` its name, when every write is in it.

        Parameters
        ----------
        durable : bool
            Returns when the file and its name are on the server's device.
        close : bool
            The writing ends, and other writers may open the name. The region is closed.

        Raises
        ------
        Error
            That of a failed write, or of the store: the file is then thrown away. ``no_space``,
            ``already_exists``, ``permission_denied`` (it was opened for reading).
        """
        self._core.commit(durable, close, timeout)
        if close:
            self._core.close()

    def close(self) -> None:
        """Let go of the region. A new file that was not committed is thrown away. Idempotent.

        Raises
        ------
        BufferError
            A memoryview of it exists.
        """
        self._core.close()

    def __reduce__(self) -> tuple[object, ...]:
        if not self._server:
            raise TypeError("a region of a server without a URL can not be pickled")
        return open_region, (self.url, self.access)


def open_region(url: str, access: Access = "read", *, timeout: float | None = None) -> Region:
    """Open the name of a URL over the connection that the process shares.

    Parameters
    ----------
    url : str
        The URL of a published name: ``ucxs://host:port/name``.
    access : {"read", "write", "read_write"}
        What is to be done.
    timeout : float, optional
        Seconds that opening may take, without connecting.

    Raises
    ------
    Error
        ``bad_url``, ``no_such_name``, ``permission_denied``; those of `Client` for connecting.
    ValueError
        There is no such access.
    """
    server, name = _core.split_url(url)
    if not name:
        raise ValueError(f"{url}: the URL has no name")
    return Region(_core.Client.shared(server).open(name, access, timeout), server, name)
