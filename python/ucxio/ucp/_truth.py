"""A truth value that can be called."""

from __future__ import annotations

__all__ = ["Truth"]


class Truth(int):
    """True or False, as a property has it: ``closed``, and as a method returns it: ``closed()``."""

    __slots__ = ()

    def __new__(cls, value: bool) -> Truth:
        """Make one of a bool."""
        return super().__new__(cls, value)

    def __call__(self) -> bool:
        """Return the bool."""
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))
