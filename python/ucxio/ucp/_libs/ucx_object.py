"""What the objects of UCX have in common."""

from __future__ import annotations

import weakref

__all__ = ["UCXObject"]


class UCXObject:
    """An object of UCX's, and those that were made from it."""

    def __init__(self) -> None:
        """Begin open, with nothing made from it."""
        self._children: weakref.WeakSet[UCXObject] = weakref.WeakSet()
        self._is_open = True

    @property
    def initialized(self) -> bool:
        """Whether it is open."""
        return self._is_open

    def close(self) -> None:
        """Close what was made from the object, and then the object. Idempotent.

        Where KeyboardInterrupt ends it, a further call closes the rest.
        """
        if not self._is_open:
            return
        for each in list(self._children):
            each.close()
        self._is_open = False
        self._drop()

    def _drop(self) -> None:
        """Let go of what the object is made of."""
