from __future__ import annotations

import errno
import gc
import io
import json
import os
import pickle
import tarfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import files_in, soon

import ucxio


@pytest.fixture
def url(local_server: ucxio.Server, tmp_path: Path) -> str:
    """The URL of a writable store's file that is not there; the store is `tmp_path`."""
    kept.append(local_server.publish_directory(tmp_path, writable=True))
    return local_server.url_of("file")


kept: list[ucxio.Publication] = []


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> object:
    yield
    kept.clear()


@pytest.mark.parametrize("buffering", [-1, 0, 16, 5000])
def test_bytes_are_read_as_of_a_local_file(
    server: ucxio.Server, tmp_path: Path, buffering: int
) -> None:
    content = b"".join(b"line %d\n" % i for i in range(20_000))
    (tmp_path / "file").write_bytes(content)
    with (
        server.publish("file", tmp_path / "file") as shown,
        ucxio.open(shown.url, "rb", buffering) as file,
        open(tmp_path / "file", "rb", buffering) as local,
    ):
        for each in (file, local):
            assert (each.readable(), each.writable(), each.seekable()) == (True, False, True)
        for name, *arguments in (
            ("read", 10), ("tell",), ("readline",), ("readlines", 100), ("seek", 1000), ("read", 0),
            ("read", 70_000), ("seek", -50, 1), ("readline",), ("seek", -20, 2), ("read",),
            ("read", 5), ("read",), ("seek", 10_000_000), ("read", 5), ("tell",), ("seek", 0),
            ("read", -1), ("tell",), ("readline",),
        ):  # fmt: skip
            assert getattr(file, name)(*arguments) == getattr(local, name)(*arguments), name
        for into in (bytearray(100), np.zeros((5, 5), "u8"), bytearray(200_000)):
            file.seek(7)
            local.seek(7)
            other = into.copy()
            assert file.readinto(into) == local.readinto(other)
            assert bytes(into) == bytes(other)
        for wrong in ((-1, 0), (0, 7), (-10_000_000, 2)):
            with pytest.raises((ValueError, OSError)):
                file.seek(*wrong)
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"x")
        with pytest.raises(io.UnsupportedOperation):
            file.fileno()
        assert not file.isatty()


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_text_is_read_and_written_with_encodings(url: str, tmp_path: Path, encoding: str) -> None:
    lines = [f"Zeile {i}: äöü\n" for i in range(5000)]
    with ucxio.open(url, "w", encoding=encoding) as file:
        file.writelines(lines)
        assert file.mode == "w"
    assert (tmp_path / "file").read_text(encoding) == "".join(lines)
    with ucxio.open(url, "rt", encoding=encoding) as file:
        assert list(file) == lines
        file.seek(0)
        assert file.readline() == lines[0]
    with ucxio.open(url, "r", encoding="ascii", errors="replace") as file:
        assert "�" in file.read() or encoding == "utf-16"


def test_newlines_are_those_of_open(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\nb\rc\n")
    for newline in (None, "", "\n", "\r\n"):
        with (
            ucxio.open(url, "r", newline=newline) as file,
            open(tmp_path / "file", newline=newline) as local,
        ):
            assert file.readlines() == local.readlines()


@pytest.mark.parametrize("buffering", [-1, 0, 100])
@pytest.mark.parametrize("mode", ["wb", "xb", "w+b", "x+b"])
def test_new_file_gets_its_name_at_close(
    url: str, tmp_path: Path, mode: str, buffering: int
) -> None:
    with ucxio.open(url, mode, buffering) as file:
        assert file.write(b"begin ") == 6
        assert file.write(memoryview(bytes(100_000))) == 100_000
        file.flush()
        file.seek(0)
        assert file.write(b"BEGIN") == 5
        assert file.tell() == 5
        if "+" in mode:
            assert file.read(3) == b" \0\0"
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"BEGIN " + bytes(100_000)
    assert file.closed
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.write(b"x")


def test_file_is_replaced_whole(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"the old one, which is longer")
    with ucxio.open(url, "wb") as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "file").read_bytes() == b"the old one, which is longer"
    assert (tmp_path / "file").read_bytes() == b"new"
    with pytest.raises(FileExistsError):
        ucxio.open(url, "xb")


def test_empty_file_is_made(url: str, tmp_path: Path) -> None:
    ucxio.open(url, "wb").close()
    assert (tmp_path / "file").read_bytes() == b""
    with ucxio.open(url) as file:
        assert file.read() == b""
        assert file.readline() == b""
        assert file.readinto(bytearray(5)) == 0


@pytest.mark.parametrize("mode", ["wb", "w", "w+b", "xb", "x+"])
@pytest.mark.parametrize("buffering", [-1, 0])
def test_exception_in_a_with_block_leaves_no_file(
    url: str, tmp_path: Path, mode: str, buffering: int
) -> None:
    if buffering == 0 and "b" not in mode:
        return
    data = b"half" * 1000 if "b" in mode else "half" * 1000
    with pytest.raises(ZeroDivisionError):
        with ucxio.open(url, mode, buffering) as file:
            file.write(data)
            file.flush()
            raise ZeroDivisionError
    assert file.closed
    assert soon(lambda: not files_in(tmp_path))


def test_exception_keeps_the_file_before(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    with pytest.raises(KeyboardInterrupt):
        with ucxio.open(url, "wb") as file:
            file.write(b"x" * 5_000_000)
            raise KeyboardInterrupt
    assert soon(lambda: files_in(tmp_path) == ["file"])
    assert (tmp_path / "file").read_bytes() == b"before"


@pytest.mark.parametrize("mode", ["wb", "w", "w+b", "rb", "r"])
@pytest.mark.parametrize("buffering", [-1, 0])
def test_file_that_is_forgotten_is_thrown_away_with_a_warning(
    url: str, tmp_path: Path, mode: str, buffering: int
) -> None:
    if buffering == 0 and "b" not in mode:
        return
    if "r" in mode:
        (tmp_path / "file").write_bytes(b"before")
    file = ucxio.open(url, mode, buffering)
    if "w" in mode:
        file.write(b"half" if "b" in mode else "half")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del file
        gc.collect()
    assert [each.category for each in told] == [ResourceWarning]
    assert "unclosed file" in str(told[0].message)
    assert soon(lambda: files_in(tmp_path) == ["file"] * ("r" in mode))


def test_file_in_a_cycle_is_thrown_away(url: str, tmp_path: Path) -> None:
    file = ucxio.open(url, "w")
    cycle: list[object] = [file]
    cycle.append(cycle)
    file.write("half")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del file, cycle
        gc.collect()
    assert [each.category for each in told] == [ResourceWarning]
    assert soon(lambda: not files_in(tmp_path))


def test_discarded_file_leaves_nothing(url: str, tmp_path: Path) -> None:
    for mode, data in (("wb", b"half"), ("w", "half"), ("x+b", b"half")):
        file = ucxio.open(url, mode)
        file.write(data)
        file.discard()
        file.discard()
        assert file.closed
        file.close()
    assert soon(lambda: not files_in(tmp_path))


def test_file_is_edited_in_place(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    with ucxio.open(url, "r+b") as file:
        assert file.read(2) == b"01"
        file.write(b"AB")
        assert file.read(2) == b"45"
        file.seek(0, os.SEEK_END)
        file.write(b"end")
        file.flush()
        assert (tmp_path / "file").read_bytes() == b"01AB456789end"
        file.seek(4)
        assert file.truncate() == 4
    assert (tmp_path / "file").read_bytes() == b"01AB"
    with pytest.raises(FileNotFoundError):
        ucxio.open(url + "2", "r+b")


@pytest.mark.parametrize("mode", ["ab", "a+b", "a"])
def test_appended_bytes_go_to_the_end(url: str, tmp_path: Path, mode: str) -> None:
    for part in ("one ", "two ", "three"):
        with ucxio.open(url, mode) as file:
            file.write(part if mode == "a" else part.encode())
    assert (tmp_path / "file").read_bytes() == b"one two three"
    with ucxio.open(url, "a+b", 0) as raw:
        raw.seek(0)
        assert raw.read(3) == b"one"
        raw.write(b"!")
        assert raw.tell() == 14
    assert (tmp_path / "file").read_bytes() == b"one two three!"


def test_memory_is_written_in_place_up_to_its_end(server: ucxio.Server) -> None:
    data = bytearray(b"0123456789")
    with server.publish("data", data, writable=True) as shown:
        with ucxio.open(shown.url, "wb") as file:
            file.write(b"AB")
        assert data == b"AB23456789"
        with ucxio.open(shown.url, "r+b") as both:
            both.seek(8)
            both.write(b"YZ")
            both.seek(0)
            assert both.read() == b"AB234567YZ"
        with ucxio.open(shown.url, "wb", 0) as raw:
            raw.seek(7)
            assert raw.write(b"12345") == 3
            with pytest.raises(OSError) as failed:
                raw.write(b"45")
            assert failed.value.errno == errno.ENOSPC
            assert raw.write(b"") == 0
        assert data == b"AB23456123"
        with pytest.raises(OSError) as failed:
            with ucxio.open(shown.url, "wb") as file:
                file.write(bytes(11))
                file.flush()
        assert failed.value.errno == errno.ENOSPC
        with pytest.raises(FileExistsError):
            ucxio.open(shown.url, "xb")
        with pytest.raises(io.UnsupportedOperation):
            ucxio.open(shown.url, "ab")
        with ucxio.open(shown.url, "r+b") as file, pytest.raises(OSError):
            file.truncate(3)


def test_full_store_is_no_space_and_makes_no_file(server: ucxio.Server) -> None:
    with server.allocate_directory("store", quota=100_000), ucxio.Client(server.url) as client:
        file = ucxio.open("store/file", "wb", client=client)
        with pytest.raises(OSError) as failed:
            for _ in range(10):
                file.write(bytes(200_000))
                file.flush()
        assert failed.value.errno == errno.ENOSPC
        with pytest.raises(OSError):
            file.close()
        assert file.closed
        assert soon(lambda: not client.exists("store/file"))


def test_file_by_client_and_name(server: ucxio.Server) -> None:
    with server.publish("data", b"data"), ucxio.Client(server.url) as client:
        with ucxio.open("data", client=client, verify=True, timeout=10) as file:
            assert file.read() == b"data"


def test_mapped_file_is_seen_in_place() -> None:
    with ucxio.Server(transport="ucx") as server, server.allocate("shared", 1000) as shown:
        shown.memoryview()[:5] = b"hello"
        with ucxio.open(shown.url, "r+b") as file:
            view = file.memoryview()
            assert bytes(view[:5]) == b"hello"
            view[:5] = b"HELLO"
            view.release()
        assert bytes(shown.memoryview()[:5]) == b"HELLO"
        with server.publish("file", __file__) as other, ucxio.open(other.url) as file:
            with pytest.raises(io.UnsupportedOperation):
                file.memoryview()


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("", {}), ("b", {}), ("rw", {}), ("rr", {}), ("rz", {}), ("rbt", {}), ("r++", {}),
        ("rb", {"encoding": "utf-8"}), ("rb", {"newline": ""}), ("r", {"buffering": 0}),
        ("rb", {"buffering": -2}), ("U", {}),
    ],
)  # fmt: skip
def test_modes_without_meaning_are_value_errors(
    url: str, mode: str, options: dict[str, object]
) -> None:
    with pytest.raises(ValueError):
        ucxio.open(url, mode, **options)  # type: ignore[call-overload]


def test_unknown_encoding_leaves_no_file(url: str, tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        ucxio.open(url, "w", encoding="nonsense")
    assert soon(lambda: not files_in(tmp_path))


def test_closed_file_is_a_value_error(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    for mode, buffering in (("rb", -1), ("rb", 0), ("r", -1), ("r+b", -1)):
        file = ucxio.open(url, mode, buffering)
        file.close()
        for call in (file.read, file.tell, file.readable, file.__enter__, lambda: file.seek(0)):
            with pytest.raises(ValueError, match="closed|detached"):
                call()
        with pytest.raises(TypeError):
            pickle.dumps(file)


def test_what_is_on_the_way_is_named(url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    with ucxio.open(url, "rb") as file:
        assert file.name == url
        assert repr(file.raw) == f"<ucxio.RemoteFile {url!r} mode='rb'>"
        assert file.raw.pread(3, 2) == b"for"
        assert file.raw.pread(10, 5) == b"e"
        assert file.raw.pread(10, 7) == b""


def test_libraries_take_the_files(url: str, tmp_path: Path) -> None:
    values = {"a": [1, 2, 3], "b": "text"}
    with ucxio.open(url, "w") as file:
        json.dump(values, file)
    with ucxio.open(url, "r") as file:
        assert json.load(file) == values
    with ucxio.open(url, "wb") as file:
        pickle.dump(values, file)
    with ucxio.open(url) as file:
        assert pickle.load(file) == values
    array = np.arange(100_000).reshape(1000, 100)
    with ucxio.open(url, "wb") as file:
        np.save(file, array)
    with ucxio.open(url) as file:
        assert (np.load(file) == array).all()
    with ucxio.open(url, "wb") as file, zipfile.ZipFile(file, "w") as packed:
        packed.writestr("inner", b"content" * 1000)
    with ucxio.open(url) as file, zipfile.ZipFile(file) as packed:
        assert packed.read("inner") == b"content" * 1000
    with ucxio.open(url, "wb") as file, tarfile.open(fileobj=file, mode="w") as tar:
        tar.add(__file__, "test")
    with ucxio.open(url) as file, tarfile.open(fileobj=file) as tar:
        inner = tar.extractfile("test")
        assert inner is not None
        assert inner.read() == Path(__file__).read_bytes()


def test_text_is_read_in_large_parts(
    local_server: ucxio.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"line {number}\n" for number in range(300_000)]
    asked: list[int] = []

    def readinto(self: ucxio.RemoteFile, buffer: memoryview) -> int:
        asked.append(len(buffer))
        return reads(self, buffer)

    reads = ucxio.RemoteFile.readinto
    monkeypatch.setattr(ucxio.RemoteFile, "readinto", readinto)
    with local_server.publish("lines", "".join(lines).encode()) as shown:
        with ucxio.open(shown.url, "r") as file:
            assert list(file) == lines
        assert len(asked) < 10  # 8 KiB at a time would be 470
        with ucxio.open(shown.url, "r", buffering=4096) as file:
            assert file.readline() == lines[0]
            place = file.tell()
            rest = file.read()
            file.seek(place)
            assert file.read() == rest == "".join(lines[1:])
