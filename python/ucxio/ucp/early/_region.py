"""Memory for messages."""

from __future__ import annotations

from typing import Any

from ..._buffer import Buffer
from ..._core import size_of_buffer
from ._cuda import CudaMemory, CudaPart

__all__ = ["buffer_region"]


class buffer_region:
    """Memory for the messages of an endpoint: of the host, of a device, or of an object.

    It has none until `alloc_host`, `alloc_cuda` or `populate_ptr`.
    """

    def __init__(self) -> None:
        self._memory: bytearray | memoryview | CudaMemory | None = None
        self._object: Any = None
        self._size = 0  # of the object
        self._is_text = False

    def alloc_host(self, len: int) -> None:
        """Allocate `len` zeroed bytes of the host."""
        self._drop()
        self._memory = bytearray(len)

    def alloc_cuda(self, len: int) -> None:
        """Allocate `len` bytes of the CUDA device that `set_cuda_dev` chose, or of the first one.

        Raises
        ------
        UCXError
            There is no CUDA driver, no device, or not so much memory.
        """
        if len < 0:
            raise ValueError(f"memory can not have {len} bytes")
        self._drop()
        self._memory = CudaMemory(len)

    def free_host(self) -> None:
        """Let go of the memory. A transfer that uses it keeps it until its end. Idempotent."""
        self._drop()

    def free_cuda(self) -> None:
        """Let go of the memory: as `free_host`."""
        self._drop()

    def populate_ptr(self, pyobj: str | Buffer) -> None:
        """Have an object for memory: text, or a buffer, which the region keeps.

        Raises
        ------
        TypeError
            It is neither. Other objects become bytes by `pickle.dumps`, where peers are trusted.
        """
        size = len(pyobj.encode()) if isinstance(pyobj, str) else size_of_buffer(pyobj)
        self._drop()
        self._object, self._size = pyobj, size

    def return_obj(self) -> Any:
        """Return the object that the region has.

        Returns
        -------
        str, bytes or bytearray
            What was received, text where it was sent as text; or the memory of `alloc_host`. The
            object of `populate_ptr` where a receive could write it, and where none did anything.

        Raises
        ------
        ValueError
            There is nothing, the memory is a device's, or what came as text is no UTF-8.
        """
        if self._object is not None:
            return self._object
        if isinstance(self._memory, memoryview):
            self._object = str(self._memory, "utf-8") if self._is_text else bytes(self._memory)
            return self._object
        if isinstance(self._memory, bytearray):
            return self._memory
        raise ValueError("the region has no object")

    def _drop(self) -> None:
        self._memory = self._object = None
        self._is_text = False

    def _source(self, length: int) -> tuple[Buffer, int]:
        """Return the bytes of a send, and how many there are. Text is sent as a whole."""
        if isinstance(self._object, str):
            return self._object.encode(), self._size
        return self._part(length), length if self._object is None else min(length, self._size)

    def _place(self, length: int) -> Buffer | None:
        """Return where a receive puts the bytes; None where it has to make memory for them."""
        if self._object is not None:
            try:
                if isinstance(self._object, str) or memoryview(self._object).readonly:
                    return None
            except (TypeError, ValueError):  # a device has it, or its type is none of C
                pass
        return self._part(length)

    def _part(self, length: int) -> Buffer:
        if length < 0:
            raise ValueError(f"a message can not have {length} bytes")
        if self._object is not None:
            whole: Buffer = self._object
            if length >= self._size:
                return whole
            return memoryview(whole).cast("B")[:length]  # type: ignore[arg-type]
        if self._memory is None:
            raise ValueError("the region has no memory")
        size = self._memory.size if isinstance(self._memory, CudaMemory) else len(self._memory)
        if length > size:
            raise ValueError(f"{length} bytes of memory of {size} bytes")
        if isinstance(self._memory, CudaMemory):
            return CudaPart(self._memory, length)
        return memoryview(self._memory)[:length]

    def _take(self, came: memoryview, is_text: bool) -> None:
        """Have a message that was received into memory of its own."""
        self._drop()
        self._memory, self._is_text = came, is_text

    def _fill(self, value: int, length: int) -> None:
        if isinstance(self._memory, CudaMemory):
            self._part(length)
            self._memory.fill(value & 0xFF, length)
        else:
            memoryview(self._part(length)).cast("B")[:] = (  # type: ignore[arg-type]
                bytes([value & 0xFF]) * length
            )

    def _differing(self, value: int, length: int) -> int:
        """Return how many of the first bytes have not a value."""
        part = self._part(length)
        if isinstance(self._memory, CudaMemory):
            content = self._memory.content(length)
        else:
            content = bytes(memoryview(part))  # type: ignore[arg-type]
        return len(content) - content.count(value & 0xFF)

    def __repr__(self) -> str:
        if self._object is not None:
            return f"<ucxio.ucp.early.buffer_region of a {type(self._object).__name__}>"
        if self._memory is None:
            return "<ucxio.ucp.early.buffer_region, empty>"
        kind = "a device" if isinstance(self._memory, CudaMemory) else "the host"
        size = self._memory.size if isinstance(self._memory, CudaMemory) else len(self._memory)
        return f"<ucxio.ucp.early.buffer_region, {size} bytes of {kind}>"
