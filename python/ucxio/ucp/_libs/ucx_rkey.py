"""A key to memory of a peer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core import KeyedRegion
from ..exceptions import UCXCloseError, UCXError, translated
from .packed_remote_key import PackedRemoteKey
from .ucx_object import UCXObject

if TYPE_CHECKING:
    from .ucx_endpoint import UCXEndpoint

__all__ = ["UCXRkey"]

# The longest key of UCX's that the library takes.
_longest = 4096


class UCXRkey(UCXObject):
    """A key to memory of the peer of an endpoint: `UCXEndpoint.unpack_rkey` makes it."""

    def __init__(self, ep: UCXEndpoint, rkey: PackedRemoteKey) -> None:
        """Take a key's bytes. Use `UCXEndpoint.unpack_rkey` instead."""
        super().__init__()
        with memoryview(rkey) as view:
            if not 0 < view.nbytes <= _longest:
                raise UCXError(f"a key of {view.nbytes} bytes: it may have 1 to {_longest}")
            self._key = view.tobytes()
        self.ep = ep
        ep._children.add(self)

    def _check(self) -> None:
        """Raise where the key, or its endpoint, was closed."""
        if not (self.initialized and self.ep.initialized):
            raise UCXCloseError("the key, or its endpoint, was closed")

    def _open(self, base: int, length: int) -> KeyedRegion:
        """Wait for the connection, and return the memory at `base` of the peer."""
        self._check()
        if base < 0 or length < 0 or base + length >= 1 << 64:
            raise ValueError(f"there can not be {length} bytes at {base:#x}")
        with translated("unpack_rkey"):
            return self.ep._opened().open(base, length, self._key)

    def __repr__(self) -> str:
        state = "open" if self.initialized else "closed"
        return f"<ucxio.ucp UCXRkey of {len(self._key)} bytes, {state}>"
