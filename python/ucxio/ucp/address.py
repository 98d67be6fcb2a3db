"""The address of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._core import framed_address, native_address
from ..errors import Error
from .exceptions import failure_of

if TYPE_CHECKING:
    from ._libs.ucx_worker import UCXWorker

__all__ = ["UCXAddress"]


class UCXAddress(bytes):
    """The address of a worker, with a checksum: other programs may have its bytes, or a pickle."""

    __slots__ = ()

    @property
    def length(self) -> int:
        """The number of bytes."""
        return len(self)

    @classmethod
    def from_buffer(cls, buffer: bytes | bytearray | memoryview) -> UCXAddress:
        """Return the address that a buffer has. Its bytes are looked at when one connects by it."""
        return cls(buffer)

    @classmethod
    def from_worker(cls, worker: UCXWorker) -> UCXAddress:
        """Return the address of a worker: as `UCXWorker.get_address` does."""
        return worker.get_address()

    @classmethod
    def from_native(cls, buffer: bytes | bytearray | memoryview) -> UCXAddress:
        """Return the address of a program without ucxio, of UCX's own bytes.

        They have neither a length nor a checksum, and UCX may crash where a bit of them is wrong.
        """
        return cls(framed_address(buffer))

    @property
    def native(self) -> bytes:
        """UCX's own bytes, for programs without ucxio.

        Raises
        ------
        UCXError
            The address is damaged.
        """
        try:
            return native_address(self)
        except Error as failed:
            raise failure_of(failed, "UCXAddress") from failed

    def __reduce__(self) -> tuple[type[UCXAddress], tuple[bytes]]:
        return UCXAddress, (bytes(self),)

    def __repr__(self) -> str:
        return f"<ucxio.ucp.UCXAddress of {len(self)} bytes>"
