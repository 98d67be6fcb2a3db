"""A compressed file over another file, which both are closed, or thrown away, together."""

from __future__ import annotations

import contextlib
import io
from typing import Any, cast

from ._closing import Discarding
from .files import RemoteFile, _collect

__all__ = ["Compressed"]


class Compressed(Discarding, io.BufferedIOBase):
    """What a codec makes of a file of `open`: leaving ``with`` by an exception throws it away."""

    def __init__(self, codec: Any, file: Any) -> None:
        self._codec = codec
        self._file = file
        self.mode: str = file.mode

    @property
    def _raw(self) -> RemoteFile:
        return cast(RemoteFile, self._file._raw)

    @property
    def name(self) -> str:
        """The URL."""
        return str(self._file.name)

    def __repr__(self) -> str:
        return f"<ucxio.fsspec.{type(self).__name__} over {self._file!r}>"

    def readable(self) -> bool:
        """Return whether the file can be read."""
        return bool(self._codec.readable())

    def writable(self) -> bool:
        """Return whether the file can be written."""
        return bool(self._codec.writable())

    def seekable(self) -> bool:
        """Return whether the codec can seek."""
        return bool(self._codec.seekable())

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes of the content."""
        return bytes(self._codec.read(-1 if size is None else size))

    def read1(self, size: int = -1, /) -> bytes:
        """Return some bytes of the content."""
        return bytes(self._codec.read1(size) if hasattr(self._codec, "read1") else self.read(size))

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return a line of the content, or up to `size` bytes of it."""
        return bytes(self._codec.readline(-1 if size is None else size))

    def write(self, data: Any, /) -> int:
        """Write bytes of the content."""
        return int(self._codec.write(data))

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a position of the content."""
        return int(self._codec.seek(offset, whence))

    def tell(self) -> int:
        """Return the position in the content."""
        return int(self._codec.tell())

    def flush(self) -> None:
        """Compress what is buffered. It is whole after `close` alone."""
        if not self.closed:
            self._codec.flush()

    @property
    def closed(self) -> bool:
        """Whether `close` or `discard` was called."""
        return bool(self._file.closed)

    def close(self) -> None:
        """Write the end, and close the file: a new one then has its name. Idempotent."""
        if self.closed:
            return
        try:
            self._codec.close()
        except BaseException:
            self.discard()
            raise
        self._file.close()

    def commit(self) -> None:
        """Close, and give a new file its name (`RemoteFile.commit`)."""
        self.close()
        self._file.commit()

    def discard(self) -> None:
        """Close. A new file is thrown away. Idempotent."""
        self._file.discard()
        # It wants to write its end.
        with contextlib.suppress(OSError, ValueError):
            self._codec.close()

    def __del__(self) -> None:
        _collect(self)
