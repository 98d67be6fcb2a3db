"""What programs import from ``ucp._libs.arr``."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..._buffer import Buffer
from ..._core import size_of_buffer

__all__ = ["Array", "asarray", "part_of"]

T = TypeVar("T", bound=Buffer)


class Array(Generic[T]):
    """A buffer, and its number of bytes. Calls for messages take it, and every buffer.

    Parameters
    ----------
    obj : object with the buffer protocol, array of a device
        C-contiguous.
    """

    __slots__ = ("nbytes", "obj")

    def __init__(self, obj: T) -> None:
        self.obj = obj
        self.nbytes = size_of_buffer(obj)

    @property
    def cuda(self) -> bool:
        """Whether it tells of its memory by the CUDA array interface."""
        return hasattr(self.obj, "__cuda_array_interface__")

    def __repr__(self) -> str:
        return f"<ucxio.ucp Array, {self.nbytes} bytes>"


def asarray(obj: T | Array[T]) -> Array[T]:
    """Return the `Array` of a buffer. One that there is already is returned itself."""
    return obj if isinstance(obj, Array) else Array(obj)


def part_of(buffer: Buffer | Array[Buffer], nbytes: int) -> Buffer:
    """Return the first bytes of a buffer.

    Raises
    ------
    ValueError
        It has not so many.
    """
    whole = asarray(buffer)
    if not 0 <= nbytes <= whole.nbytes:
        raise ValueError(f"{nbytes} bytes of a buffer of {whole.nbytes} bytes")
    if nbytes == whole.nbytes:
        return whole.obj
    return memoryview(whole.obj).cast("B")[:nbytes]  # type: ignore[arg-type]
