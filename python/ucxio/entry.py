"""The description of a published name."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Literal

__all__ = ["Entry"]

Access = Literal["read", "write", "read_write"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a server tells of one name.

    Attributes
    ----------
    name : str
        The name. It may contain slashes.
    type : {"memory", "file", "directory"}
        What is behind it.
    size : int
        Bytes.
    access : {"read", "write", "read_write"}
        What clients may do.
    kind : str
        The kind of memory: "host", "cuda", "cuda_managed".
    generation : int
        Another number after the content was replaced.
    modified_ns : int or None
        When a file was changed last, in nanoseconds since 1970. None where it is not known, as for
        memory.
    device : int or None
        The number of the device whose memory it is.
    """

    name: str
    type: Literal["memory", "file", "directory"]
    size: int
    access: Access
    kind: str
    generation: int
    modified_ns: int | None
    device: int | None

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory of a store."""
        return self.type == "directory"

    @property
    def modified(self) -> datetime.datetime | None:
        """`modified_ns` as a time in UTC, or None."""
        if self.modified_ns is None:
            return None
        since = datetime.timedelta(microseconds=self.modified_ns // 1000)
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + since
