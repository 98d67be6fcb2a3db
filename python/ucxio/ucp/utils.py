"""What programs import from ``ucp.utils``."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Hashable

__all__ = ["get_event_loop", "hash64bits"]


def get_event_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop, or a new one."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.new_event_loop()


def hash64bits(*args: object) -> int:
    """Return a hash of the texts of the arguments: a number of 64 bits."""
    digest = hashlib.sha256(repr(args).encode())
    return int.from_bytes(digest.digest()[:8], "big")


def stable_hash(tag: Hashable) -> int:
    """Return a hash of a tag that is equal in all processes, for text, bytes, numbers and tuples.

    Equal tags have equal hashes. -1 and -2 have one, as with `hash`.
    """
    if tag is None:
        return hash64bits("none")
    if isinstance(tag, str):
        return hash64bits("str", str(tag))
    if isinstance(tag, bytes):
        return hash64bits("bytes", bytes(tag))
    if isinstance(tag, tuple):
        return hash64bits("tuple", *(stable_hash(each) for each in tag))
    return hash64bits("hash", hash(tag))
