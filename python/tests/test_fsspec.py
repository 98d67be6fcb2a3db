from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Process, files_in, soon

import ucxio

fsspec = pytest.importorskip("fsspec")

from ucxio._fsspec_names import split  # noqa: E402
from ucxio.fsspec import UcxFileSystem  # noqa: E402

schemes = ("ucxs", "ucx", "ucx+tcp", "ucx+unix", "ucx+file")


@pytest.fixture(autouse=True)
def _own_instances() -> Iterator[None]:
    """Sockets of later servers may have the same path."""
    yield
    UcxFileSystem.clear_instance_cache()


def system_of(server: ucxio.Server, **options: Any) -> UcxFileSystem:
    return UcxFileSystem(server.url, skip_instance_cache=True, **options)


@pytest.fixture
def fs(server: ucxio.Server, tmp_path: Path) -> Iterator[UcxFileSystem]:
    """A writable store, by each way."""
    with server.publish_directory(tmp_path, writable=True):
        yield system_of(server)


@pytest.fixture
def local_fs(local_server: ucxio.Server, tmp_path: Path) -> Iterator[UcxFileSystem]:
    """A writable store by a Unix socket."""
    with local_server.publish_directory(tmp_path, writable=True):
        yield system_of(local_server)


# URLs, instances


def test_import_of_ucxio_imports_no_fsspec() -> None:
    with Process("import sys, ucxio; print('fsspec' in sys.modules)") as running:
        assert running.end() == (0, "False\n", "")


def test_every_scheme_is_an_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    points = project["project"]["entry-points"]["fsspec.specs"]
    assert tuple(points) == schemes == UcxFileSystem.protocol
    assert set(points.values()) == {"ucxio.fsspec:UcxFileSystem"}
    for scheme in schemes:
        assert fsspec.get_filesystem_class(scheme) is UcxFileSystem
        assert ucxio._core.has_url_scheme(f"{scheme}://x")


def test_url_gives_the_server_and_the_name(server: ucxio.Server) -> None:
    found, path = fsspec.url_to_fs(server.url_of("a folder/50%?.csv"))
    assert isinstance(found, UcxFileSystem)
    assert (found.fsid, path) == (server.url, "a folder/50%?.csv")
    assert found.protocol == server.url.partition(":")[0]
    assert found.unstrip_protocol(path) == server.url_of("a folder/50%?.csv")
    assert found.unstrip_protocol(server.url + "/x") == server.url + "/x"
    assert found._strip_protocol([server.url + "/a/", "/b"]) == ["a", "b"]
    assert found._parent("a/b") == "a"
    assert found._parent("a") == found._parent("") == ""


def test_characters_of_patterns_stay_as_they_are() -> None:
    assert UcxFileSystem._strip_protocol("ucxs://h:1/a/*.csv?x#[1]") == "a/*.csv?x#[1]"
    assert UcxFileSystem._strip_protocol("ucxs://h:1") == ""
    assert UcxFileSystem._strip_protocol("ucx+unix:///run/x.sock/a/b") == "a/b"


def test_address_file_names_the_server(server: ucxio.Server, tmp_path: Path) -> None:
    if not server.url.startswith("ucx://"):
        pytest.skip("a server without UCX has no address file")
    server.publish_address(tmp_path / "address")
    with server.publish("data", b"content"):
        url = f"ucx+file://{tmp_path}/address/data"
        with fsspec.open(url, "rb") as file:
            assert file.read() == b"content"


def test_two_servers_share_no_instance(tmp_path: Path) -> None:
    with ucxio.Server("unix:") as first, ucxio.Server("unix:") as second:
        with first.publish("x", b"first"), second.publish("x", b"second"):
            systems = [fsspec.url_to_fs(each.url_of("x"))[0] for each in (first, second)]
            assert systems[0] != systems[1]
            assert [each.cat_file("x") for each in systems] == [b"first", b"second"]
            assert fsspec.url_to_fs(first.url_of("y"))[0] is systems[0]
            other = fsspec.url_to_fs(first.url_of("x"), timeout=7)[0]
            assert other is not systems[0]
            assert other.client is not systems[0].client
            with pytest.raises(ValueError, match="this is the file system of"):
                systems[0].cat_file(second.url_of("x"))


def test_instances_of_all_threads_share_a_client(local_server: ucxio.Server) -> None:
    clients = []
    threads = [
        threading.Thread(
            target=lambda: clients.append(fsspec.filesystem("ucxs", server=local_server.url).client)
        )
        for _ in range(3)
    ]
    clients.append(fsspec.filesystem("ucxs", server=local_server.url).client)
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(clients) == 4
    assert len(set(map(id, clients))) == 1


def test_address_of_ipv6_is_spelled_out() -> None:
    assert split("ucxs://[::1]:7471/x") == ("ucxs://[0:0:0:0:0:0:0:1]:7471", "x")
    assert split("ucx://[0:0:0:0:0:0:0:1]:7471/x") == ("ucx://[0:0:0:0:0:0:0:1]:7471", "x")
    assert UcxFileSystem("ucxs://[fe80::7]:1").unstrip_protocol("x") == (
        "ucxs://[fe80:0:0:0:0:0:0:7]:1/x"
    )
    for url in ("ucxs://[::1]:7471/x", "ucx+tcp://[fe80::7]:7471/x"):
        with pytest.raises(ValueError, match=r"\[0:0:0:0:0:0:0:1\] for \[::1\]"):
            fsspec.open(url)
    fs, path = fsspec.url_to_fs("ucxs://[0:0:0:0:0:0:0:1]:7471/x")
    assert (fs.fsid, path) == ("ucxs://[0:0:0:0:0:0:0:1]:7471", "x")


def test_file_system_is_pickled_and_serialized(server: ucxio.Server) -> None:
    with server.publish("data", b"content"):
        made = fsspec.filesystem("ucx", server=server.url, timeout=12)
        for again in (
            pickle.loads(pickle.dumps(made)),
            fsspec.AbstractFileSystem.from_json(made.to_json()),
        ):
            assert again == made
            assert again.cat_file("data") == b"content"
        opened = pickle.loads(pickle.dumps(fsspec.open(server.url_of("data"), "rt")))
        with opened as file:
            assert file.read() == "content"


def test_file_system_is_pickled_to_another_process(server: ucxio.Server) -> None:
    program = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).cat_file('x'))"
    with server.publish("x", b"content"):
        made = pickle.dumps(fsspec.filesystem("ucx", server=server.url)).hex()
        with Process(program, made) as running:
            assert running.end() == (0, "b'content'\n", "")


def test_chain_of_file_systems_goes_through(local_fs: UcxFileSystem, tmp_path: Path) -> None:
    local_fs.pipe("data", b"content")
    url = local_fs.unstrip_protocol("data")
    options = {"simplecache": {"cache_storage": str(tmp_path / "cache")}}
    with fsspec.open(f"simplecache::{url}", "rb", **options) as file:
        assert file.read() == b"content"
    below = fsspec.filesystem("dir", fs=local_fs, path="folder")
    below.pipe("x", b"in a folder")
    assert (tmp_path / "folder/x").read_bytes() == b"in a folder"


# What there is


def test_store_is_listed(fs: UcxFileSystem, tmp_path: Path) -> None:
    (tmp_path / "one/two").mkdir(parents=True)
    (tmp_path / "one/file").write_bytes(b"12345")
    (tmp_path / "one/two/deep.txt").write_bytes(b"")
    (tmp_path / "top.csv").write_bytes(b"a,b")
    assert fs.ls("", detail=False) == ["one", "top.csv"]
    assert fs.ls("/one/", detail=False) == ["one/file", "one/two"]
    assert fs.ls("one/file") == [fs.info("one/file")]
    found = fs.info("one/file")
    assert (found["name"], found["size"], found["type"]) == ("one/file", 5, "file")
    assert found["mtime"] == pytest.approx((tmp_path / "one/file").stat().st_mtime)
    assert fs.info("one")["type"] == fs.info("")["type"] == "directory"
    assert fs.find("") == ["one/file", "one/two/deep.txt", "top.csv"]
    assert fs.find("one", withdirs=True) == ["one", "one/file", "one/two", "one/two/deep.txt"]
    assert fs.find("one", maxdepth=1) == ["one/file"]
    assert fs.find("top.csv") == ["top.csv"]
    assert fs.find("nothing") == []
    assert fs.glob("**/*.txt") == ["one/two/deep.txt"]
    assert fs.glob("*.csv") == fs.glob(fs.unstrip_protocol("") + "/*.csv") == ["top.csv"]
    assert list(fs.walk("")) == [
        ("", ["one"], ["top.csv"]),
        ("one", ["two"], ["file"]),
        ("one/two", [], ["deep.txt"]),
    ]
    assert fs.du("") == 8
    assert fs.modified("top.csv").timestamp() == pytest.approx(found["mtime"], abs=60)
    assert [fs.exists(each) for each in ("one", "one/file", "nothing", "a//b")] == [
        True,
        True,
        False,
        False,
    ]
    assert fs.isdir("one")
    assert fs.isfile("one/file")
    assert not fs.isdir("one/file")
    assert not fs.isfile("nothing")
    for call in (fs.info, fs.ls, fs.cat_file, fs.modified, fs.checksum, fs.rm, fs.open):
        with pytest.raises(FileNotFoundError):
            call("one/nothing")
    for call in (lambda: fs.created("one/file"), lambda: fs.modified("")):
        with pytest.raises(NotImplementedError):
            call()


def test_names_that_were_published_by_themselves_make_directories(server: ucxio.Server) -> None:
    with (
        server.publish("models/a/weights", b"12345"),
        server.publish("models/b", b"12", writable=False),
        server.publish("table", bytearray(3), writable=True) as table,
    ):
        fs = system_of(server)
        assert fs.ls("", detail=False) == ["models", "table"]
        assert fs.find("") == ["models/a/weights", "models/b", "table"]
        assert fs.ls("models", detail=False) == ["models/a", "models/b"]
        assert fs.isdir("models/a")
        assert not fs.exists("models/c")
        assert not fs.exists("mod")
        assert fs.info("table")["is_memory"]
        assert fs.ls("table") == [fs.info("table")]
        assert fs.info("table")["mtime"] is None
        with pytest.raises(FileNotFoundError):
            fs.ls("nothing")
        with pytest.raises(NotImplementedError):
            fs.modified("table")
        with pytest.raises(io.UnsupportedOperation):
            fs.checksum("table")
        assert fs.cat(["models/a/weights", "models/b"]) == {
            "models/a/weights": b"12345",
            "models/b": b"12",
        }
        fs.pipe("table", b"abc")
        assert bytes(table.memoryview()) == b"abc"
        with pytest.raises(PermissionError):
            fs.pipe("models/b", b"xy")


def test_names_in_no_store_are_not_hidden_by_one(server: ucxio.Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with (
        server.publish_directory(tmp_path, "data/store"),
        server.publish("other/name", b"y"),
    ):
        fs = system_of(server)
        assert fs.ls("", detail=False) == ["data", "other"]
        assert fs.find("") == ["data/store/file", "other/name"]
        assert not fs.exists("data/store/none")
        assert not fs.exists("data/none")
        assert fs.isdir("data")


def test_checksum_is_of_the_content(local_fs: UcxFileSystem) -> None:
    local_fs.pipe({"a": b"content", "b": b"content", "c": b"other", "empty": b""})
    assert local_fs.checksum("a") == local_fs.checksum("b") != local_fs.checksum("c")
    assert local_fs.checksum("empty") == 0x99AA06D3014798D86001C324468D497F  # as xxh128sum has it


# Reading


def test_slices_are_those_of_python(fs: UcxFileSystem) -> None:
    data = bytes(range(100))
    fs.pipe("file", data)
    slices = [(None, None), (10, 20), (-10, None), (None, -90), (-20, -10), (50, 1000), (90, 80)]
    slices += [(100, 200), (1000, 2000), (-1000, 5)]
    for start, end in slices:
        assert fs.cat_file("file", start, end) == data[start:end]
    found = fs.cat_ranges(["file"] * len(slices), *map(list, zip(*slices, strict=True)))
    assert found == [data[start:end] for start, end in slices]
    assert fs.cat_ranges(["file", "file"], 1, 3) == [data[1:3]] * 2
    assert fs.cat_ranges(("file", "file"), (1, None), (3, 4)) == [data[1:3], data[:4]]
    assert fs.cat(["file"], start=-3) == {"file": data[-3:]}
    assert fs.cat("fi*", start=1, end=3) == {"file": data[1:3]}
    assert fs.cat("file", start=1, end=3) == data[1:3]
    assert fs.cat("", recursive=True, end=3) == {"file": data[:3]}
    for call in (fs.cat, fs.cat_file):
        with pytest.raises(TypeError):
            call("file", ende=3)
    with pytest.raises(ValueError, match="bogus"):
        fs.cat(["file"], on_error="bogus")
    assert fs.head("file", 3) == data[:3]
    assert fs.tail("file", 3) == data[-3:]
    assert fs.read_block("file", 10, 5) == data[10:15]


def test_many_slices_of_many_files(fs: UcxFileSystem) -> None:
    big = os.urandom(3 << 20)
    files = {f"f/{i:03}": bytes([i]) * i for i in range(150)} | {"f/big": big}
    fs.pipe(files)
    paths = [each for each in files for _ in range(2)]
    found = fs.cat_ranges(paths, [0, 5] * len(files), [None, 9] * len(files))
    for path, got, (start, end) in zip(paths, found, [(0, None), (5, 9)] * len(files), strict=True):
        assert got == files[path][start:end], path
    assert fs.cat("f", recursive=True) == files
    assert fs.cat(list(files)) == files
    assert fs.cat("f/00*") == {path: files[path] for path in files if path.startswith("f/00")}
    got = fs.cat_ranges(["f/001", "f/none", "f"], 0, 1)
    assert got[0] == b"\x01"
    assert isinstance(got[1], FileNotFoundError)
    assert isinstance(got[2], IsADirectoryError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(["f/001", "f/none"], 0, 1, on_error="raise")
    with pytest.raises(FileNotFoundError):
        fs.cat(["f/001", "f/none"])
    assert fs.cat(["f/001", "f/none"], on_error="omit") == {"f/001": b"\x01"}
    assert isinstance(fs.cat(["f/none"], on_error="return")["f/none"], FileNotFoundError)
    assert isinstance(fs.cat(["f"], on_error="return")["f"], IsADirectoryError)
    for wrong in ([0], [0, 1, 2]):
        with pytest.raises(ValueError):
            fs.cat_ranges(["f/001", "f/002"], wrong, 1)
    with pytest.raises(TypeError):
        fs.cat_ranges(["f/001"], [0.5], 1)
    with pytest.raises(ValueError):
        fs.cat_ranges(["f/001"], 0, 1, on_error="bogus")
    with pytest.raises(TypeError):
        fs.cat_ranges("f/001", 0, 1)
    with pytest.raises(NotImplementedError):
        fs.cat_ranges(["f/001"], 0, 1, max_gap=4)


def test_reads_can_be_verified(local_server: ucxio.Server, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    with local_server.publish_directory(tmp_path):
        fs = system_of(local_server, verify=True)
        assert fs.cat(["a"]) == {"a": b"content"}
        assert fs.cat_file("a", 1, 3) == b"on"
        with fs.open("a") as file:
            assert file.read() == b"content"


def test_mapping_of_a_store(local_fs: UcxFileSystem) -> None:
    mapping = local_fs.get_mapper("m")
    mapping["a/0"] = b"0"
    mapping.setitems({"a/1": b"1", "b": b"2"})
    assert sorted(mapping) == ["a/0", "a/1", "b"]
    assert mapping.getitems(["a/0", "b", "none"], on_error="omit") == {"a/0": b"0", "b": b"2"}
    with pytest.raises(KeyError):
        mapping["none"]
    del mapping["b"]
    assert "b" not in mapping
    mapping.clear()
    assert list(mapping) == []


# Files


def test_modes_of_open(fs: UcxFileSystem, tmp_path: Path) -> None:
    with fs.open("file", "wb", block_size=100, cache_type="none") as file:
        file.write(b"0123456789")
        assert not (tmp_path / "file").exists()
    with fs.open("file", "r+b") as file:
        file.seek(2)
        file.write(b"ab")
    with fs.open("file", "ab") as file:
        file.write(b"!")
    with fs.open("file", block_size="default", cache_type="readahead", cache_options={}) as file:
        assert (file.read(), file.size) == (b"01ab456789!", 11)
    with fs.open("file", "w+b") as file:
        file.write(b"new")
        file.seek(0)
        assert file.read() == b"new"
    with pytest.raises(FileExistsError):
        fs.open("file", "xb").close()
    with fs.open("text", "w", encoding="utf-16", newline="\r\n") as file:
        file.write("é\n")
    with fs.open("text", "rt", encoding="utf-16") as file:
        assert file.read() == "é\n"
    assert fs.read_text("text", encoding="utf-16", newline="") == "é\r\n"
    fs.write_text("text", "é")
    assert (tmp_path / "text").read_bytes() == "é".encode()
    with pytest.raises(ValueError):
        fs.open("text", "rb", encoding="utf-8")
    with pytest.raises(ValueError):
        fs.open("text", "rw")


@pytest.mark.parametrize("mode", ["wb", "w", "x", "w+b"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_exception_in_with_throws_a_new_file_away(
    local_fs: UcxFileSystem, tmp_path: Path, mode: str, compression: str | None
) -> None:
    if compression and "+" in mode:
        pytest.skip("no codec reads and writes at once")
    with pytest.raises(KeyError):
        with local_fs.open("file", mode, compression=compression) as file:
            file.write(b"half" if "b" in mode else "half")
            raise KeyError
    assert soon(lambda: not files_in(tmp_path))


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz", "zip"])
def test_compressed_files_are_whole_when_they_are_closed(
    local_fs: UcxFileSystem, tmp_path: Path, codec: str
) -> None:
    data = os.urandom(10_000) + bytes(100_000)
    with local_fs.open("file", "wb", compression=codec) as file:
        file.write(data[:5])
        file.write(data[5:])
    assert (len((tmp_path / "file").read_bytes()) < 50_000) == (codec != "zip")
    with local_fs.open("file", "rb", compression=codec) as file:
        assert file.read() == data


def test_compression_is_taken_from_the_name(local_fs: UcxFileSystem, tmp_path: Path) -> None:
    with local_fs.open("text.gz", "wt", compression="infer") as file:
        file.write("one\ntwo\n")
    assert gzip.decompress((tmp_path / "text.gz").read_bytes()) == b"one\ntwo\n"
    with local_fs.open("text.gz", "rt", compression="infer") as file:
        assert list(file) == ["one\n", "two\n"]
    with local_fs.open("text", "w", compression="infer") as file:
        file.write("plain")
    assert (tmp_path / "text").read_bytes() == b"plain"
    with pytest.raises(ValueError):
        local_fs.open("text", "wb", compression="none of them")
    with fsspec.open(local_fs.unstrip_protocol("again.gz"), "wt", compression="gzip") as file:
        file.write("by fsspec.open")
    assert gzip.decompress((tmp_path / "again.gz").read_bytes()) == b"by fsspec.open"


def test_compressed_file_that_is_not_closed_warns_and_is_thrown_away(
    local_fs: UcxFileSystem, tmp_path: Path
) -> None:
    for mode in ("wb", "wt"):
        file = local_fs.open("file", mode, compression="gzip")
        file.write("x" if mode == "wt" else b"x")
        with pytest.warns(ResourceWarning, match="unclosed"):
            del file
        assert soon(lambda: not files_in(tmp_path))
    local_fs.pipe("file", gzip.compress(b"one\ntwo\n"))
    file = local_fs.open("file", compression="gzip")
    assert list(file) == [b"one\n", b"two\n"]
    del file  # programs do not close what they read


# Changes


def test_store_is_changed(fs: UcxFileSystem, tmp_path: Path) -> None:
    fs.mkdir("one/two")
    assert (tmp_path / "one/two").is_dir()
    with pytest.raises(FileExistsError):
        fs.mkdir("one")
    with pytest.raises(FileExistsError):
        fs.makedirs("one")
    with pytest.raises(FileNotFoundError):
        fs.mkdir("three/four", create_parents=False)
    fs.makedirs("one/two", exist_ok=True)
    fs.makedirs("", exist_ok=True)
    fs.touch("one/file")
    assert (tmp_path / "one/file").read_bytes() == b""
    with pytest.raises(FileExistsError):
        fs.makedirs("one/file", exist_ok=True)
    fs.pipe("one/file", b"content")
    with pytest.raises(NotImplementedError):
        fs.touch("one/file", truncate=False)
    assert fs.cat("one/file") == b"content"
    fs.touch("one/new", truncate=False)
    fs.touch("one/file")
    assert fs.cat("one/file") == b""
    with pytest.raises(FileExistsError):
        fs.pipe("one/file", b"x", mode="create")
    with pytest.raises(ValueError):
        fs.pipe("one/file", b"x", mode="anew")
    with pytest.raises(IsADirectoryError):
        fs.pipe("one/two", b"x")
    with pytest.raises(IsADirectoryError):
        fs.open("one/two", "wb")
    with pytest.raises(IsADirectoryError):
        fs.cat_file("one/two")
    fs.cp_file("one/file", "one/copy")
    fs.cp("one", "again", recursive=True)
    assert fs.find("again") == ["again/copy", "again/file", "again/new"]
    assert fs.isdir("again/two")
    with pytest.raises(NotADirectoryError):
        fs.rmdir("one/file")
    with pytest.raises(FileExistsError):
        fs.rmdir("one")
    fs.rmdir("one/two")
    with pytest.raises(IsADirectoryError):
        fs.rm("one")
    fs.rm("one/c*")
    fs.rm(["one/new"])
    assert fs.find("one") == ["one/file"]
    fs.rm("again", recursive=True)
    assert not (tmp_path / "again").exists()
    with pytest.raises(FileNotFoundError):
        fs.rm("again", recursive=True)


def test_tree_is_removed_down_to_a_depth(local_fs: UcxFileSystem) -> None:
    local_fs.pipe({"a/1": b"", "a/b/2": b"", "a/c/d/3": b""})
    local_fs.rm("a", recursive=True, maxdepth=1)
    assert local_fs.find("a") == ["a/b/2", "a/c/d/3"]
    local_fs.rm("", recursive=True)
    assert local_fs.ls("") == []


def test_files_and_directories_are_moved(fs: UcxFileSystem, tmp_path: Path) -> None:
    fs.pipe({"a/1": b"1", "a/2": b"2", "b/3": b"3"})
    fs.mv("a/1", "a/one")
    assert fs.find("a") == ["a/2", "a/one"]
    fs.mv("a/one", "b")
    fs.mv("a/2", "c/")
    assert fs.find("") == ["b/3", "b/one", "c/2"]
    fs.mv("b", "d/e")
    assert fs.find("d") == ["d/e/3", "d/e/one"]
    fs.mv("d", "c")
    assert fs.find("c") == ["c/2", "c/d/e/3", "c/d/e/one"]
    fs.mv("c/d/e/*", "f/")
    assert fs.find("f") == ["f/3", "f/one"]
    fs.mv("f/3", "f/3")
    assert fs.cat("f/3") == b"3"
    with pytest.raises(FileNotFoundError):
        fs.mv("nothing", "x")
    with pytest.raises(FileNotFoundError):
        fs.mv("nothing*", "x")


def test_move_between_stores_copies(local_server: ucxio.Server) -> None:
    with (
        local_server.allocate_directory("one", quota=1 << 20),
        local_server.allocate_directory("two", quota=1 << 20),
    ):
        fs = system_of(local_server)
        fs.pipe({"one/a": b"a", "one/dir/b": b"b"})
        fs.mv("one/a", "two/a")
        fs.mv("one/dir", "two/dir")
        assert fs.find("two") == ["two/a", "two/dir/b"]
        assert fs.find("one") == []


# Errors


def test_read_only_store_refuses_every_change(server: ucxio.Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with server.publish_directory(tmp_path):
        fs = system_of(server)
        changes = {
            "pipe": lambda: fs.pipe("file", b"x"),
            "pipe of a new one": lambda: fs.pipe("new", b"x"),
            "open": lambda: fs.open("file", "wb"),
            "append": lambda: fs.open("file", "ab"),
            "edit": lambda: fs.open("file", "r+b"),
            "touch": lambda: fs.touch("file"),
            "mkdir": lambda: fs.mkdir("folder"),
            "makedirs": lambda: fs.makedirs("folder", exist_ok=True),
            "rm": lambda: fs.rm("file"),
            "mv": lambda: fs.mv("file", "other"),
            "cp": lambda: fs.cp_file("file", "other"),
        }
        for name, change in changes.items():
            with pytest.raises(PermissionError):
                change()
                pytest.fail(name)
        assert fs.cat("file") == b"content"


def test_client_without_rights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with ucxio.Server("unix:", rules="deny anybody read file") as server:
        with server.publish_directory(tmp_path):
            fs = system_of(server)
            with pytest.raises(PermissionError):
                fs.cat_file("file")


def test_dead_server_is_an_os_error_and_one_that_is_back_is_found() -> None:
    server = ucxio.Server("unix:")
    shown = server.publish("data", b"content")
    url = server.url
    fs = system_of(server)
    assert fs.cat_file("data") == b"content"
    server.close()
    calls = {
        "exists": lambda: fs.exists("data"),
        "isfile": lambda: fs.isfile("data"),
        "isdir": lambda: fs.isdir("data"),
        "ls": lambda: fs.ls(""),
        "find": lambda: fs.find(""),
        "walk": lambda: list(fs.walk("")),
        "glob": lambda: fs.glob("*"),
        "info": lambda: fs.info(""),
        "cat": lambda: fs.cat("data"),
        "open": lambda: fs.open("data"),
        "pipe": lambda: fs.pipe("data", b"x"),
    }
    for name, call in calls.items():
        with pytest.raises(ConnectionError):
            call()
            pytest.fail(name)
    assert shown.closed
    with ucxio.Server("unix:" + url.removeprefix("ucx+unix://")) as again:
        assert again.url == url
        with again.publish("data", b"anew"):
            assert fs.cat_file("data") == b"anew"


def test_nobody_listens_there(unused_port: int) -> None:
    fs = UcxFileSystem(f"ucx+tcp://127.0.0.1:{unused_port}", connect_timeout=20)
    with pytest.raises(ConnectionRefusedError):
        fs.exists("x")
    with pytest.raises(ValueError) as failed:
        UcxFileSystem("127.0.0.1:7471")
    assert failed.value.code == "bad_url"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        fsspec.filesystem("ucxs")


def test_server_that_goes_meanwhile_ends_a_file(local_fs: UcxFileSystem) -> None:
    file = local_fs.open("file", "wb", block_size=100)
    file.write(b"x" * 1000)
    local_fs.client.close()
    with pytest.raises(OSError):
        file.close()
    assert local_fs.find("") == []


def test_options_are_those_of_a_client(local_server: ucxio.Server, tmp_path: Path) -> None:
    options = {"timeout": 9, "connect_timeout": 8, "token_file": tmp_path / "tokens"}
    fs = system_of(local_server, **options, configuration={})
    assert fs.client._options == {
        "timeout": 9,
        "connect_timeout": 8,
        "transports": [],
        "token_file": str(tmp_path / "tokens"),
        "configuration": {},
    }
    with pytest.raises(TypeError, match="timeuot"):
        system_of(local_server, timeuot=3)
    system_of(local_server, use_listings_cache=False, asynchronous=False)
    system_of(local_server, block_size=4096, cache_type="none", cache_options={})
    json.loads(fsspec.filesystem("ucxs", server=local_server.url, timeout=9).to_json())
