"""Memory of a peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..._buffer import Buffer
from ..._core import KeyedRegion, Operation, size_of_buffer
from ...errors import Error
from ..exceptions import failure_of
from .ucx_request import Call, UCXRequest
from .ucx_rkey import UCXRkey

__all__ = ["RemoteMemory"]

_Start: TypeAlias = "Callable[[KeyedRegion, Buffer, int, int], Operation[None]]"


class RemoteMemory:
    """Memory of a peer, which is read and written.

    Making it waits until the endpoint is connected. All of its calls have a `size`: the bytes of
    the buffer that count, or 0 for the whole buffer. A buffer is in use until its operation ends.

    Parameters
    ----------
    rkey : UCXRkey
        The key to the memory.
    base : int
        Where the memory is in the peer: `UCXMemoryHandle.address`.
    length : int
        The number of bytes.

    Raises
    ------
    UCXError
        UCX refuses the key, or can not move the bytes; the methods: the transfer failed.
    UCXConnectionReset, UCXUnreachable, TimeoutError
        The peer has gone, or does not connect.
    UCXCloseError
        The key, or its endpoint, was closed.
    IndexError
        Of the methods: the bytes are not within the memory.
    """

    def __init__(self, rkey: UCXRkey, base: int, length: int) -> None:
        self._rkey = rkey
        self._base, self._length = base, length
        self._core = rkey._open(base, length)

    def put_nb(
        self,
        memory: Buffer,
        cb_func: Callable[..., object] | None,
        cb_args: tuple[Any, ...] | None = None,
        cb_kwargs: Mapping[str, Any] | None = None,
        offset: int = 0,
        size: int = 0,
    ) -> UCXRequest | None:
        """Write a buffer to the memory. It is at the peer after a flush.

        Parameters
        ----------
        memory : object with the buffer protocol, array of a device
            C-contiguous.
        cb_func : callable
            Gets the request, and an exception or None, when the buffer may be changed. It is called
            by `UCXWorker.progress`.
        cb_args : tuple, optional
            Further arguments.
        cb_kwargs : dict, optional
            Further arguments, by their names.
        offset : int
            Where to begin in the memory.
        size : int
            How many bytes; 0 for the whole buffer.

        Returns
        -------
        UCXRequest or None
            None where it has ended: the function is not called then.
        """
        call = (cb_func, cb_args, cb_kwargs)
        return self._requested(KeyedRegion.put, "put_nb", memory, offset, size, call)

    def get_nb(
        self,
        memory: Buffer,
        cb_func: Callable[..., object] | None,
        cb_args: tuple[Any, ...] | None = None,
        cb_kwargs: Mapping[str, Any] | None = None,
        offset: int = 0,
        size: int = 0,
    ) -> UCXRequest | None:
        """Read the memory into a writable buffer. Otherwise as `put_nb`."""
        call = (cb_func, cb_args, cb_kwargs)
        return self._requested(KeyedRegion.get, "get_nb", memory, offset, size, call)

    def put_nbi(self, memory: Buffer, size: int = 0, offset: int = 0) -> bool:
        """Write a buffer to the memory. It is at the peer after a flush.

        Returns
        -------
        bool
            Whether the transfer has ended, so that the buffer may be used. Where not, it has after
            a flush of the endpoint or worker, which tells of a failure, too.
        """
        return self._implicit(KeyedRegion.put, "put_nbi", memory, offset, size)

    def get_nbi(self, memory: Buffer, size: int = 0, offset: int = 0) -> bool:
        """Read the memory into a writable buffer. Otherwise as `put_nbi`."""
        return self._implicit(KeyedRegion.get, "get_nbi", memory, offset, size)

    def _begin(
        self, start: _Start, doing: str, memory: Buffer, offset: int, size: int
    ) -> Operation[None]:
        self._rkey._check()
        count = size or size_of_buffer(memory)
        if offset < 0 or count < 0 or offset + count > self._length:
            raise IndexError(f"{count} bytes at {offset} of memory of {self._length} bytes")
        try:
            return start(self._core, memory, offset, count)
        except Error as failed:
            raise failure_of(failed, doing) from failed

    def _requested(
        self, start: _Start, doing: str, memory: Buffer, offset: int, size: int, call: Call
    ) -> UCXRequest | None:
        operation = self._begin(start, doing, memory, offset, size)
        endpoint = self._rkey.ep
        return endpoint.worker._start(operation, doing, endpoint._number, call)

    def _implicit(self, start: _Start, doing: str, memory: Buffer, offset: int, size: int) -> bool:
        operation = self._begin(start, doing, memory, offset, size)
        endpoint = self._rkey.ep
        return endpoint.worker._start_implicit(operation, doing, endpoint._number)

    def __repr__(self) -> str:
        return f"<ucxio.ucp RemoteMemory, {self._length} bytes at {self._base:#x}>"
