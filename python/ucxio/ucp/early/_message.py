"""A message, as endpoints send and receive it."""

from __future__ import annotations

from typing import Any

from ._region import buffer_region

__all__ = ["ucp_msg"]


class ucp_msg:
    """A message: memory of a `buffer_region`, or of its own.

    Parameters
    ----------
    buf_reg : buffer_region, optional
        The memory. Without it the message has none until `alloc_host` or `alloc_cuda`.
    """

    def __init__(self, buf_reg: buffer_region | None = None) -> None:
        self._region = buffer_region() if buf_reg is None else buf_reg
        self._length = -1
        self._is_own = False

    def alloc_host(self, len: int) -> None:
        """Allocate `len` zeroed bytes of the host for it: as `buffer_region.alloc_host`."""
        self._region.alloc_host(len)

    def alloc_cuda(self, len: int) -> None:
        """Allocate `len` bytes of a device for it: as `buffer_region.alloc_cuda`."""
        self._region.alloc_cuda(len)

    def free_host(self) -> None:
        """Let go of the memory: as `buffer_region.free_host`."""
        self._region.free_host()

    def free_cuda(self) -> None:
        """Let go of the memory: as `buffer_region.free_cuda`."""
        self._region.free_cuda()

    def free_mem(self) -> None:
        """Let go of the memory that a receive made. Other memory stays."""
        if self._is_own:
            self._region.free_host()

    def set_mem(self, c: int, len: int) -> None:
        """Set the first `len` bytes to `c`."""
        self._region._fill(c, len)

    def check_mem(self, c: int, len: int) -> int:
        """Return how many of the first `len` bytes are not `c`."""
        return self._region._differing(c, len)

    def get_comm_len(self) -> int:
        """Return the length of the last transfer: of a receive that has ended, what came.

        It is -1 before the first one.
        """
        return self._length

    def get_obj(self) -> Any:
        """Return what was received: as `buffer_region.return_obj`."""
        return self._region.return_obj()

    def _take(self, came: memoryview, is_text: bool) -> None:
        self._region._take(came, is_text)
        self._length, self._is_own = came.nbytes, True

    def __repr__(self) -> str:
        return f"<ucxio.ucp.early.ucp_msg over {self._region!r}>"
