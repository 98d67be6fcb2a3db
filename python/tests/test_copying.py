"""Copies between URLs, paths and file objects."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest
from conftest import files_in, soon

import ucxio

large = bytes(range(256)) * 50_000  # some parts of 4 MiB


def test_copy_from_and_to_each_place(
    server: ucxio.Server, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    local = tmp_path_factory.mktemp("local")
    with server.publish_directory(tmp_path, writable=True):
        for size in (0, 1, 4 << 20, len(large)):
            (local / "a").write_bytes(large[:size])
            told: list[int] = []
            assert ucxio.copy(local / "a", server.url + "/a", progress=told.append) == size
            assert (tmp_path / "a").read_bytes() == large[:size]
            assert sum(told) == size
            assert ucxio.copy(server.url + "/a", server.url + "/b") == size
            assert ucxio.copy(server.url + "/b", str(local / "b")) == size
            assert (local / "b").read_bytes() == large[:size]
            into = io.BytesIO()
            assert ucxio.copy(server.url + "/b", into) == size
            assert into.getvalue() == large[:size]
            assert ucxio.copy(io.BytesIO(large[:size]), server.url + "/c") == size
            assert (tmp_path / "c").read_bytes() == large[:size]
        assert files_in(local) == ["a", "b"]


class StopError(Exception):
    pass


def test_copy_that_fails_gives_no_name(
    store: ucxio.Client, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    local = tmp_path_factory.mktemp("local")
    (local / "a").write_bytes(large)
    (local / "old").write_bytes(b"old")
    (tmp_path / "b").write_bytes(large)
    (tmp_path / "old").write_bytes(b"old")

    def stop(_: int) -> None:
        raise StopError

    for source in (local / "a", store.url + "/b"):
        for target in (store.url + "/old", local / "old", store.url + "/new", local / "new"):
            with pytest.raises(StopError):
                ucxio.copy(source, target, progress=stop)
    assert files_in(local) == ["a", "old"]
    assert soon(lambda: files_in(tmp_path) == ["b", "old"])
    assert (local / "old").read_bytes() == (tmp_path / "old").read_bytes() == b"old"
    with pytest.raises(FileNotFoundError):
        ucxio.copy(store.url + "/nothing", local / "new")
    with pytest.raises(FileNotFoundError):
        ucxio.copy(local / "nothing", local / "new")
    with pytest.raises(FileNotFoundError):
        ucxio.copy(local / "a", local / "nowhere/new")
    with pytest.raises(IsADirectoryError):
        ucxio.copy(local / "a", local)
    assert files_in(local) == ["a", "old"]


def test_copy_to_memory_of_a_fixed_size(local_server: ucxio.Server) -> None:
    memory = bytearray(10)
    with local_server.publish("memory", memory, writable=True) as shown:
        assert ucxio.copy(io.BytesIO(b"0123"), shown.url) == 4
        assert memory == b"0123" + bytes(6)
        with pytest.raises(OSError, match="the end"):
            ucxio.copy(io.BytesIO(bytes(11)), shown.url)


def test_copy_through_a_fifo(local_server: ucxio.Server, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(fifo.read_bytes()))
    reader.start()
    with local_server.publish("data", large) as shown:
        assert ucxio.copy(shown.url, fifo) == len(large)
    reader.join()
    assert found == [large]
    assert fifo.is_fifo()


def test_copy_writes_all_where_a_write_is_short(local_server: ucxio.Server) -> None:
    class Short(io.RawIOBase):
        written = b""

        def writable(self) -> bool:
            return True

        def write(self, data: object, /) -> int:
            part = bytes(data)[:1000]  # type: ignore[call-overload]
            self.written += part
            return len(part)

    with local_server.publish("data", large[:10_500]) as shown, Short() as short:
        assert ucxio.copy(shown.url, short) == 10_500
        assert short.written == large[:10_500]


def test_copy_of_files_that_do_not_wait() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    with open(reading, "rb", 0) as source, open(writing, "wb", 0) as target:
        with pytest.raises(BlockingIOError):
            ucxio.copy(source, io.BytesIO())
        with pytest.raises(BlockingIOError):
            ucxio.copy(io.BytesIO(large), target)


def test_copy_of_what_is_no_file() -> None:
    for source, target in ((5, io.BytesIO()), (io.BytesIO(), 5), (None, None)):
        with pytest.raises(TypeError, match="a URL, a path or a binary file"):
            ucxio.copy(source, target)
