"""Moves, removals and copies of many files: none is lost, and none is left by half."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ucxio

pytest.importorskip("fsspec")

from ucxio.fsspec import UcxFileSystem

content = {"a": b"1", "b": b"2", "d/x": b"3", "d/sub/y": b"4"}


@pytest.fixture
def fs(local_server: ucxio.Server, tmp_path: Path) -> Iterator[UcxFileSystem]:
    """A writable store with a few files."""
    with local_server.publish_directory(tmp_path, writable=True):
        made = UcxFileSystem(local_server.url, skip_instance_cache=True)
        made.pipe(content)
        yield made


def all_of(fs: UcxFileSystem) -> dict[str, bytes]:
    found: dict[str, bytes] = fs.cat("", recursive=True)
    return found


stays: dict[str, Callable[[Any], object]] = {
    "list": lambda fs: fs.mv(["a"], ["/a"]),
    "URL": lambda fs: fs.mv(["a"], [fs.unstrip_protocol("a")]),
    "string": lambda fs: fs.mv("a", "/a/"),
    "into its directory": lambda fs: fs.mv(["a", "b"], "/"),
    "one into its directory": lambda fs: fs.mv("d/x", "d/"),
    "pattern": lambda fs: fs.mv("d/x*", "d"),
    "pattern at the top": lambda fs: fs.mv("a*", "/"),
    "pattern of a tree": lambda fs: fs.mv("d/*", "d/", recursive=True),
    "pattern of directories": lambda fs: fs.mv("d/s*", "d/", recursive=True),
    "tree": lambda fs: fs.mv(["d"], ["d"], recursive=True),
    "directory with a slash": lambda fs: fs.mv("d/", "d/", recursive=True),
}


@pytest.mark.parametrize("name", stays)
def test_file_that_is_moved_to_its_own_place_stays(fs: UcxFileSystem, name: str) -> None:
    stays[name](fs)
    assert all_of(fs) == content


refused: dict[str, tuple[Callable[[Any], object], type[Exception]]] = {
    "depth": (lambda fs: fs.mv("d", "n", recursive=True, maxdepth=1), NotImplementedError),
    "chain": (lambda fs: fs.mv(["a", "b"], ["b", "c"]), ValueError),
    "swap": (lambda fs: fs.mv(["a", "b"], ["b", "a"]), ValueError),
    "one name for two": (lambda fs: fs.mv(["a", "b"], ["n", "/n"]), ValueError),
    "two names for one": (lambda fs: fs.mv(["a", "/a"], ["n", "m"]), ValueError),
    "file that stays": (lambda fs: fs.mv(["a", "b"], ["a", "a"]), ValueError),
    "into itself": (lambda fs: fs.mv("d/*", "d/sub/", recursive=True), ValueError),
    "lists of two lengths": (lambda fs: fs.mv(["a", "b"], ["n"]), ValueError),
    "directory": (lambda fs: fs.mv(["a", "d"], ["n", "m"]), IsADirectoryError),
    "none there": (lambda fs: fs.mv(["a", "none"], "n"), FileNotFoundError),
    "pattern of none": (lambda fs: fs.mv(["a", "none*"], "n"), FileNotFoundError),
}


@pytest.mark.parametrize("name", refused)
def test_move_that_would_lose_a_file_changes_nothing(fs: UcxFileSystem, name: str) -> None:
    call, kind = refused[name]
    with pytest.raises(kind):
        call(fs)
    assert all_of(fs) == content


def test_lists_and_patterns_are_moved(fs: UcxFileSystem) -> None:
    fs.mv(["a", fs.unstrip_protocol("b")], ["n/1", "/n/2"])
    assert all_of(fs) == {"n/1": b"1", "n/2": b"2", "d/x": b"3", "d/sub/y": b"4"}
    fs.mv(["n/1", "n/2"], "m")
    assert all_of(fs) == {"m/1": b"1", "m/2": b"2", "d/x": b"3", "d/sub/y": b"4"}
    fs.mv("m/*", "")
    fs.mv("d/*", "e")  # without directories
    assert all_of(fs) == {"1": b"1", "2": b"2", "e/x": b"3", "d/sub/y": b"4"}
    fs.mv(["d"], ["f"], recursive=True)
    fs.mv("e/", "f", recursive=True)
    assert all_of(fs) == {"1": b"1", "2": b"2", "f/x": b"3", "f/sub/y": b"4"}
    fs.mv("f/*", "g", recursive=True)
    assert all_of(fs) == {"1": b"1", "2": b"2", "g/x": b"3", "g/sub/y": b"4"}
    assert fs.ls("f") == []
    assert not fs.exists("d")
    assert not fs.exists("e")


def test_one_path_and_a_list_are_moved(fs: UcxFileSystem) -> None:
    fs.mv("a", ["n"])
    fs.mv(("b",), ("m",))
    assert all_of(fs) == {"n": b"1", "m": b"2", "d/x": b"3", "d/sub/y": b"4"}


def test_move_in_a_transaction_that_fails_loses_nothing(fs: UcxFileSystem) -> None:
    with pytest.raises(KeyError), fs.transaction:
        fs.mv(["a", "b"], "n")
        fs.mv("d/*", "m", recursive=True)
        raise KeyError
    assert sorted(all_of(fs).values()) == sorted(content.values())


def test_name_with_characters_of_patterns_is_moved(fs: UcxFileSystem) -> None:
    fs.pipe({"f[1]": b"5", "g?": b"6", "h*/x": b"7"})
    fs.mv("f[1]", "f[2]")
    assert fs.cat_file("f[2]") == b"5"
    fs.mv("h*", "i*")
    fs.mv(["f[2]", "g?"], "i*")
    assert fs.find("i*") == ["i*/f[2]", "i*/g?", "i*/x"]
    assert fs.cat_file("i*/f[2]") == b"5"


def test_published_memory_is_not_copied_by_a_move(local_server: ucxio.Server) -> None:
    with (
        local_server.allocate_directory("store", quota=1 << 20),
        local_server.publish("memory", bytearray(b"content"), writable=True),
    ):
        fs = UcxFileSystem(local_server.url, skip_instance_cache=True)
        fs.pipe("store/a", b"1")
        for old, new in (("memory", "store/x"), (["store/a", "memory"], ["store/b", "store/x"])):
            with pytest.raises(io.UnsupportedOperation, match=r"memory|not supported"):
                fs.mv(old, new)
        assert fs.find("store") == ["store/a"]


def test_file_that_may_only_be_read_is_not_copied_by_a_move(
    local_server: ucxio.Server, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"1")
    with (
        local_server.publish_directory(tmp_path, "read"),
        local_server.allocate_directory("store", quota=1 << 20),
    ):
        fs = UcxFileSystem(local_server.url, skip_instance_cache=True)
        with pytest.raises(PermissionError):
            fs.mv("read/a", "store/a")
        with pytest.raises(PermissionError):
            fs.mv(["read/a"], "store")
        assert fs.find("store") == []


@pytest.mark.parametrize("maxdepth", [None, 9])
def test_paths_below_others_are_removed_once(fs: UcxFileSystem, maxdepth: int | None) -> None:
    fs.rm("d/**", recursive=True, maxdepth=maxdepth)
    assert fs.find("") == ["a", "b"]
    fs.pipe(content)
    fs.rm(["d", "d/sub", "d/sub/y", "a"], recursive=True, maxdepth=maxdepth)
    assert fs.find("") == ["b"]
    fs.pipe(content)
    fs.rm(["", "d"], recursive=True, maxdepth=maxdepth)
    assert fs.ls("") == []
