"""Transactions, and files that get their names by `commit`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import files_in, soon

import ucxio

pytest.importorskip("fsspec")

from ucxio.fsspec import UcxFileSystem


@pytest.fixture
def fs(server: ucxio.Server, tmp_path: Path) -> Iterator[UcxFileSystem]:
    """A writable store, by each way."""
    with server.publish_directory(tmp_path, writable=True):
        yield UcxFileSystem(server.url, skip_instance_cache=True)


@pytest.fixture
def local_fs(local_server: ucxio.Server, tmp_path: Path) -> Iterator[UcxFileSystem]:
    """A writable store by a Unix socket."""
    with local_server.publish_directory(tmp_path, writable=True):
        yield UcxFileSystem(local_server.url, skip_instance_cache=True)


def test_transaction_names_files_at_its_end(fs: UcxFileSystem, tmp_path: Path) -> None:
    with fs.transaction:
        with fs.open("a", "wb") as file:
            file.write(b"first")
        fs.pipe({"b": b"second"})
        with fs.open("c.gz", "wt", compression="gzip") as file:
            file.write("third")
        left_open = fs.open("d", "wb")
        left_open.write(b"fourth")
        assert fs.find("") == []
    assert fs.find("") == ["a", "b", "c.gz", "d"]
    assert fs.cat(["a", "b", "d"]) == {"a": b"first", "b": b"second", "d": b"fourth"}
    with pytest.raises(KeyError):
        with fs.transaction:
            fs.pipe({"a": b"other", "e": b"fifth"})
            raise KeyError
    assert fs.cat("a") == b"first"
    assert not fs.exists("e")
    fs.pipe("e", b"behind it")
    assert fs.cat("e") == b"behind it"
    assert soon(lambda: files_in(tmp_path) == ["a", "b", "c.gz", "d", "e"])


def test_file_without_autocommit_waits_for_commit(local_fs: UcxFileSystem) -> None:
    kept = local_fs._open("kept", "wb", autocommit=False)
    thrown = local_fs._open("thrown", "wb", autocommit=False)
    for each in (kept, thrown):
        each.write(b"content")
        each.close()
        assert each.closed
    assert local_fs.find("") == []
    kept.commit()
    thrown.discard()
    kept.commit()
    assert local_fs.find("") == ["kept"]


def test_text_of_a_transaction_is_whole(local_fs: UcxFileSystem, tmp_path: Path) -> None:
    with local_fs.transaction:
        files = [
            local_fs.open("text", "w"),
            local_fs.open("text.gz", "wt", compression="gzip"),
            local_fs.open("bytes.gz", "wb", compression="gzip"),
        ]
        for each in files:
            each.write(b"hello" if each.mode == "wb" else "hello")
    assert (tmp_path / "text").read_bytes() == b"hello"
    for name in ("text.gz", "bytes.gz"):
        assert gzip.decompress((tmp_path / name).read_bytes()) == b"hello"
    assert all(each.closed for each in files)
    with pytest.raises(KeyError):
        with local_fs.transaction:
            files = [local_fs.open("other", "w"), local_fs.open("o", "wt", compression="gzip")]
            for each in files:
                each.write("hello")
            raise KeyError
    assert local_fs.find("") == ["bytes.gz", "text", "text.gz"]
    assert soon(lambda: files_in(tmp_path) == ["bytes.gz", "text", "text.gz"])


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("closes", [False, True])
def test_text_without_autocommit_waits_for_commit(
    local_fs: UcxFileSystem, compression: str | None, closes: bool
) -> None:
    file = local_fs.open("x", "w", compression=compression, autocommit=False)
    thrown = local_fs.open("y", "w", compression=compression, autocommit=False)
    for each in (file, thrown):
        each.write("hello")
        if closes:
            each.close()
    assert local_fs.find("") == []
    file.commit()
    thrown.discard()
    assert local_fs.find("") == ["x"]
    with local_fs.open("x", "rt", compression=compression) as again:
        assert again.read() == "hello"


def test_transaction_writes_memory_at_once(local_server: ucxio.Server) -> None:
    memory = bytearray(5)
    with local_server.publish("memory", memory, writable=True):
        fs = UcxFileSystem(local_server.url, skip_instance_cache=True)
        with fs.transaction:
            fs.pipe("memory", b"hello")
            assert memory == b"hello"
