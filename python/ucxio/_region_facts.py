"""What is known of an open region without asking its server."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

from . import _core
from .entry import Access

__all__ = ["RegionFacts", "Width", "bits"]

Width = Literal[4, 8]


class RegionFacts:
    """The properties of a region, for calls that wait and for those that are awaited."""

    __slots__ = ("_core", "_name", "_server")

    _shown: ClassVar[str] = "ucxio.Region"

    def __init__(self, core: _core.Region | _core.LoopRegion, server: str, name: str) -> None:
        self._core: _core.Region | _core.LoopRegion = core
        self._server = server
        self._name = name

    @property
    def name(self) -> str:
        """The published name."""
        return self._name

    @property
    def url(self) -> str:
        """The URL of the name, or "" where the server was connected without one."""
        return _core.join_url(self._server, self._name) if self._server else ""

    @property
    def size(self) -> int:
        """How many bytes can be read. Of a file: those at opening, and those written since."""
        return self._core.size

    def __len__(self) -> int:
        return self._core.size

    @property
    def max_size(self) -> int:
        """Where a write has to end. More than `size` for a file that grows."""
        return self._core.max_size

    @property
    def access(self) -> Access:
        """What may be done: "read", "write" or "read_write"."""
        return cast(Access, self._core.access)

    @property
    def kind(self) -> str:
        """The kind of the owner's memory: "host", "cuda"."""
        return self._core.kind

    @property
    def transfer_method(self) -> str:
        """How the bytes move: "message", "rma", "mapped", "cma" or "cuda_ipc"."""
        return self._core.transfer_method

    def why_not(self, transfer_method: str) -> str:
        """Return why the bytes do not move so, in words; "" where they do.

        Raises
        ------
        ValueError
            There is no such transfer method.
        """
        return self._core.why_not(transfer_method)

    @property
    def generation(self) -> int:
        """The number of the content when the region was opened: another one after it changed."""
        return self._core.generation

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._core.is_open

    def memoryview(
        self, offset: int = 0, size: int | None = None, *, writable: bool = False
    ) -> memoryview:
        """Return the owner's memory itself, in place: nothing is sent or copied.

        The owner and others may change it at any time. While such a view exists, `close` raises
        BufferError.

        Parameters
        ----------
        offset, size : int
            The bytes; without a size, all up to the end.
        writable : bool
            Lets the program write them. Every process sees a written byte at once.

        Raises
        ------
        Error
            ``not_supported`` (the memory is not mapped here: the text says why), ``out_of_range``,
            ``permission_denied``.
        """
        return self._core.view(offset, size, writable)

    def __repr__(self) -> str:
        where = self.url or self._name
        if self.closed:
            return f"<{self._shown} {where}, closed>"
        return f"<{self._shown} {where}, {self.size} bytes, {self.access}>"


def bits(value: int, width: int) -> int:
    """Return the number as an unsigned one of so many bytes."""
    bits = 8 * width
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise OverflowError(f"{value} does not fit {width} bytes")
    return value & ((1 << bits) - 1)
