"""Whole files that one call of fsspec writes."""

from __future__ import annotations

import errno
import io
from collections.abc import Mapping
from typing import Any

from fsspec.spec import AbstractFileSystem

from .errors import Error, ErrorCode

__all__ = ["write_files"]


def write_files(fs: AbstractFileSystem, files: Mapping[str, Any], mode: str) -> None:
    """Write files by path: together, or in a transaction one after the other."""
    if mode not in ("overwrite", "create"):
        raise ValueError(f"{mode!r} is no mode: overwrite, create")
    if fs._intrans:
        for path, value in files.items():
            _write(fs, path, "xb" if mode == "create" else "wb", value)
        return
    failures = fs.client.write_many(files, "exclusive" if mode == "create" else "replace")
    for (path, value), failed in zip(files.items(), failures, strict=True):
        if isinstance(failed, io.UnsupportedOperation):
            fs._refuse_directory(path, failed)
            _write(fs, path, "wb", value)
        elif failed is not None:
            raise failed


def _write(fs: AbstractFileSystem, path: str, mode: str, value: Any) -> None:
    with fs.open(path, mode) as file:
        size = memoryview(value).nbytes
        if not file.raw._is_new and file.size != size:
            text = f"{path}: published memory keeps its {file.size} bytes, and gets no {size}"
            raise Error(errno.ENOTSUP, text, ErrorCode.not_supported)
        file.write(value)
