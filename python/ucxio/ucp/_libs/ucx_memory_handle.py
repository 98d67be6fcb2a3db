"""Memory that other programs reach."""

from __future__ import annotations

from collections.abc import Callable

from ..._buffer import Buffer
from ..._core import ExposedMemory
from ..exceptions import UCXCloseError, UCXError, translated
from .packed_remote_key import PackedRemoteKey
from .ucx_context import UCXContext
from .ucx_object import UCXObject

__all__ = ["UCXMemoryHandle"]


class UCXMemoryHandle(UCXObject):
    """Memory that UCX knows: `map` and `alloc` make it.

    It is other programs' to use until `close`, or until no object refers to it any more. Close it
    when they have ended their transfers: UCX does not tell this side of them.
    """

    def __init__(self, ctx: UCXContext, make: Callable[[], ExposedMemory]) -> None:
        """Wrap memory. Use `map` or `alloc` instead."""
        super().__init__()
        with translated("UCXMemoryHandle"):
            self._core: ExposedMemory | None = make()
        self._context = ctx
        self._address, self._length = self._core.address, self._core.length
        ctx._children.add(self)

    @classmethod
    def alloc(cls, ctx: UCXContext, size: int) -> UCXMemoryHandle:
        """Allocate `size` zeroed bytes, which peers may read and write.

        Raises
        ------
        UCXError
            There is not so much memory.
        """
        core = ctx._opened()
        if size < 0:
            raise ValueError(f"memory can not have {size} bytes")
        if size >= 1 << 63:
            raise UCXError(f"<UCXMemoryHandle>: there are no {size} bytes of memory")
        return cls(ctx, lambda: ExposedMemory.allocate(core, size))

    @classmethod
    def map(cls, ctx: UCXContext, mem: Buffer) -> UCXMemoryHandle:
        """Expose a buffer of the program's, which is kept until `close`.

        Parameters
        ----------
        ctx : UCXContext
            The workers of which serve the memory.
        mem : object with the buffer protocol
            C-contiguous memory of the host, which may be written: UCX's keys carry no rights.

        Raises
        ------
        TypeError
            The buffer is read-only, or there is none.
        """
        core = ctx._opened()
        return cls(ctx, lambda: ExposedMemory.map(core, mem))

    def _opened(self) -> ExposedMemory:
        if self._core is None:
            raise UCXCloseError("the memory was closed")
        return self._core

    def _drop(self) -> None:
        core, self._core = self._core, None
        if core is not None:
            core.close()

    def pack_rkey(self) -> PackedRemoteKey:
        """Return UCX's key to the memory. That to memory of no bytes is empty.

        Raises
        ------
        UCXError
            UCX has none: the memory is a CUDA device's, or the context is without RMA.
        """
        with translated("pack_rkey"):
            return PackedRemoteKey(self._opened().key())

    @property
    def mem_handle(self) -> int:
        """UCX's registration: ``ucp_mem_h``."""
        with translated("mem_handle"):
            return self._opened().handle

    @property
    def address(self) -> int:
        """Where the memory is in this process."""
        return self._address

    @property
    def length(self) -> int:
        """The number of bytes."""
        return self._length

    def __repr__(self) -> str:
        state = "open" if self.initialized else "closed"
        return f"<ucxio.ucp UCXMemoryHandle, {self._length} bytes, {state}>"
