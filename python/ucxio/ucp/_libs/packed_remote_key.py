"""The bytes of UCX's key to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._buffer import Buffer

if TYPE_CHECKING:
    from .ucx_memory_handle import UCXMemoryHandle

__all__ = ["PackedRemoteKey"]


class PackedRemoteKey(bytes):
    """UCX's own bytes of a key, as they are sent to others.

    They have neither a length nor a checksum, and UCX may crash where a bit of them is wrong. Send
    them by something that has a checksum.
    """

    __slots__ = ()

    @property
    def length(self) -> int:
        """The number of bytes."""
        return len(self)

    @classmethod
    def from_buffer(cls, buffer: Buffer) -> PackedRemoteKey:
        """Return the key that a buffer has: of `UCXMemoryHandle.pack_rkey`, or of any program's.

        Its length is looked at by `UCXEndpoint.unpack_rkey`.
        """
        with memoryview(buffer) as view:  # type: ignore[arg-type]
            return cls(view.tobytes())

    @classmethod
    def from_mem_handle(cls, mem: UCXMemoryHandle) -> PackedRemoteKey:
        """Return the key to memory: as `UCXMemoryHandle.pack_rkey` does."""
        return mem.pack_rkey()

    def __reduce__(self) -> tuple[type[PackedRemoteKey], tuple[bytes]]:
        return PackedRemoteKey, (bytes(self),)

    def __repr__(self) -> str:
        return f"<ucxio.ucp PackedRemoteKey of {len(self)} bytes>"
