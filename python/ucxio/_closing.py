"""How objects leave a ``with`` block."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["Closing", "Discarding"]


class Closing:
    """What is closed at the end of a ``with`` block."""

    __slots__ = ()

    def close(self) -> None:
        """Close the object."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Discarding:
    """A file that is thrown away where a ``with`` block ends by an exception."""

    __slots__ = ()

    def close(self) -> None:
        """Complete the file, and close it."""
        raise NotImplementedError

    def discard(self) -> None:
        """Close the file. A new one is thrown away."""
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
