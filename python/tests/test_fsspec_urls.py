"""URLs of names, and names of two servers."""

from __future__ import annotations

import pickle
import socket
import threading
from collections.abc import Iterator

import pytest

import ucxio
from ucxio import _connection

fsspec = pytest.importorskip("fsspec")

from ucxio.fsspec import UcxFileSystem  # noqa: E402


@pytest.fixture(autouse=True)
def _own_instances() -> Iterator[None]:
    """Sockets of later servers may have the same path."""
    yield
    UcxFileSystem.clear_instance_cache()


@pytest.fixture
def servers() -> Iterator[tuple[ucxio.Server, ucxio.Server]]:
    """Two servers, each with a writable store."""
    with ucxio.Server("unix:") as first, ucxio.Server("unix:") as second:
        stores = [each.allocate_directory("store", quota=1 << 20) for each in (first, second)]
        for each in (first, second):
            UcxFileSystem(each.url).pipe("store/x", each.url.encode())
        yield first, second
        for store in stores:
            store.close()


def test_list_of_urls_reads_no_name_of_another_server(
    servers: tuple[ucxio.Server, ucxio.Server],
) -> None:
    first, second = servers
    urls = [each.url_of("store/x") for each in servers]
    files = fsspec.open_files(urls)
    with files[0] as file:
        assert file.read() == first.url.encode()
    for each in (files[1], pickle.loads(pickle.dumps(files[1]))):
        with pytest.raises(ValueError, match="this is the file system of") as failed, each:
            pass
        assert urls[1] in str(failed.value)
    with pytest.raises(ValueError, match="this is the file system of"):
        fsspec.open_files([urls[0], second.url_of("store/*")])
    for names in ("store/n/y", "store/n*/y"):
        urls = [first.url_of("store/y"), f"{second.url}/{names}"]
        with pytest.raises(ValueError, match="this is the file system of"):
            fsspec.open_files(urls, "wb", num=2)
        made = fsspec.open_files(urls, "wb", num=2, auto_mkdir=False)
        with pytest.raises(ValueError, match="this is the file system of"), made[1]:
            pass
    for each in servers:
        assert UcxFileSystem(each.url).find("store") == ["store/x"]


def test_path_of_a_url_is_its_name(servers: tuple[ucxio.Server, ucxio.Server]) -> None:
    first, second = servers
    fs, path = fsspec.url_to_fs(first.url_of("store/x"))
    assert path == "store/x"
    assert pickle.loads(pickle.dumps(path)) == "store/x"
    assert fs.info(path)["name"] == "store/x"
    assert type(fs._strip_protocol(path)) is str
    assert UcxFileSystem._parent(first.url_of("store/x")) == fs._parent(path) == "store"
    for call in (fs.info, fs.ls, fs.find, fs.cat, fs.rm, fs.open, fs.glob, fs.isdir):
        with pytest.raises(ValueError, match="this is the file system of"):
            call(fsspec.url_to_fs(second.url_of("store/x"))[1])


def test_two_colons_of_a_name_are_encoded(local_server: ucxio.Server) -> None:
    names = ["run", "run::42", "::", ":::x::", "file::a"]
    with local_server.allocate_directory("", quota=1 << 20):
        fs = UcxFileSystem(local_server.url)
        fs.pipe({name: name.encode() for name in names})
        for name in names:
            for url in (fs.unstrip_protocol(name), local_server.url_of(name)):
                assert "::" not in url
                with fsspec.open(url, "rb") as file:
                    assert file.read() == name.encode()
                assert fsspec.url_to_fs(url)[1] == name
                with ucxio.open(url) as file:
                    assert file.read() == name.encode()


def test_urls_of_names_with_two_colons_keep_an_address_of_ipv6() -> None:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError as failed:
        pytest.skip(f"no IPv6 here: {failed}")
    with ucxio.Server("[::1]:0") as server:
        assert "[::1]" in server.url_of("run::42")
        assert server.url_of("run::42").endswith("/run%3A%3A42")


def test_no_two_threads_get_two_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    held: list[object] = []

    class Locked:
        """A lock that two threads come to at once."""

        inner = threading.Lock()

        def __enter__(self) -> None:
            both.wait(60)
            self.inner.acquire()

        def __exit__(self, *_: object) -> None:
            self.inner.release()

    monkeypatch.setattr(_connection, "_connections_lock", Locked())
    threads = [
        threading.Thread(target=lambda: held.append(_connection.connection_to("ucxs://h:1")))
        for _ in range(2)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert held[0] is held[1]
