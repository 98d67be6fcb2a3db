"""Names that were published by themselves, in file systems of fsspec."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import ucxio

pytest.importorskip("fsspec")

from ucxio.fsspec import UcxFileSystem


@pytest.mark.parametrize("in_transaction", [False, True])
def test_memory_keeps_its_size(server: ucxio.Server, in_transaction: bool) -> None:
    with server.publish("memory", bytearray(b"y" * 100), writable=True) as shown:
        fs = UcxFileSystem(server.url, skip_instance_cache=True)
        if in_transaction:
            fs.start_transaction()
        for size in (0, 20, 101):
            with pytest.raises(io.UnsupportedOperation, match="keeps its 100 bytes"):
                fs.pipe("memory", b"x" * size)
        for call in (lambda: fs.touch("memory"), lambda: fs.pipe({"memory": b"x"})):
            with pytest.raises(io.UnsupportedOperation, match="keeps its 100 bytes"):
                call()
        with pytest.raises(FileExistsError):
            fs.pipe("memory", b"x" * 100, mode="create")
        assert bytes(shown.memoryview()) == b"y" * 100
        fs.pipe("memory", memoryview(bytes(range(100))).cast("I"))
        assert bytes(shown.memoryview()) == bytes(range(100))
        if in_transaction:
            fs.end_transaction()


def test_root_store_may_go(local_server: ucxio.Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    fs = UcxFileSystem(local_server.url, skip_instance_cache=True)
    with local_server.publish("models/a", b"12345"):
        for _ in range(2):
            with local_server.publish_directory(tmp_path):
                assert not fs.exists("models")
                assert not fs.exists("none")
                assert fs.ls("", detail=False) == ["file"]
            assert fs.isdir("models")
            assert fs.ls("models", detail=False) == ["models/a"]
            assert fs.ls("", detail=False) == ["models"]
            assert not fs.exists("none")
