"""The address of a worker."""

from __future__ import annotations

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

    def __reduce__(self) -> tuple[type[UCXAddress], tuple[bytes]]:
        return UCXAddress, (bytes(self),)

    def __repr__(self) -> str:
        return f"<ucxio.ucp.UCXAddress of {len(self)} bytes>"
