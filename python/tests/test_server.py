from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ucxio


def test_urls_have_the_scheme_of_the_transport() -> None:
    for options, scheme in (
        ({}, "ucxs://127.0.0.1:"),
        ({"transport": "socket"}, "ucx+tcp://127.0.0.1:"),
        ({"transport": "ucx"}, "ucx://127.0.0.1:"),
        ({"bind": "unix:"}, "ucx+unix:///"),
    ):
        with ucxio.Server(**options) as server:  # type: ignore[arg-type]
            assert server.url.startswith(scheme)
            assert repr(server) == f"<ucxio.Server {server.url}>"
            assert server.url_of("a b") == f"{server.url}/a%20b"
        assert repr(server) == "<ucxio.Server, closed>"


def test_allocated_memory_is_an_array_and_shared(server: ucxio.Server) -> None:
    with server.allocate("table", (10, 3), "f8") as shown:
        assert (shown.name, shown.size, shown.access) == ("table", 240, "read_write")
        shown.array()[:] = np.arange(30).reshape(10, 3)
        found = np.empty((10, 3))
        with ucxio.open_region(shown.url) as region:
            region.read_into(found)
        assert (found == np.arange(30).reshape(10, 3)).all()
    assert repr(shown) == "<ucxio.Publication 'table', closed>"


def test_memory_that_can_not_be_is_a_value_error(local_server: ucxio.Server) -> None:
    for wrong in (0, -1, (3, 0), (2, -2)):
        with pytest.raises(ValueError, match="shape|no bytes"):
            local_server.allocate("x", wrong)
    with pytest.raises(ValueError, match="shape"):
        local_server.publish("y", b"data").array()


def test_names_that_can_not_be_are_errors(local_server: ucxio.Server, tmp_path: Path) -> None:
    with local_server.publish("taken", b"data"):
        with pytest.raises(FileExistsError):
            local_server.publish("taken", b"other")
        with pytest.raises(ValueError) as failed:
            local_server.publish("", b"data")
        assert failed.value.code == ucxio.ErrorCode.bad_name  # type: ignore[attr-defined]
    with pytest.raises(FileNotFoundError):
        local_server.publish("file", tmp_path / "nothing")
    with pytest.raises(OSError):
        local_server.publish("folder", tmp_path)
    with pytest.raises(ValueError, match="directory"):
        local_server.publish("file", tmp_path, writable=True)
    with pytest.raises(TypeError):
        local_server.publish("number", 7)  # type: ignore[arg-type]


def test_address_that_is_not_loopback_is_refused_without_tls() -> None:
    with pytest.raises(PermissionError) as failed:
        ucxio.Server("0.0.0.0:0", transport="socket")
    assert failed.value.code == ucxio.ErrorCode.not_secure  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="no transport"):
        ucxio.Server(transport="pigeon")  # type: ignore[arg-type]
    with pytest.raises(ucxio.Error) as told:
        ucxio.Server("nonsense")
    assert told.value.code in ("bad_address", "host_not_found")


def test_rules_decide_what_clients_may_do() -> None:
    with (
        ucxio.Server("unix:", rules="deny anybody all secret\nallow anybody all **\n") as server,
        server.publish("secret", b"data"),
        server.publish("open", b"data"),
        ucxio.Client(server.url) as client,
    ):
        assert client.open("open").read() == b"data"
        with pytest.raises(OSError):
            client.open("secret")
    with pytest.raises(ucxio.Error) as failed:
        ucxio.Server("unix:", rules="nonsense")
    assert failed.value.code == ucxio.ErrorCode.bad_configuration


def test_statistics_count(local_server: ucxio.Server) -> None:
    with local_server.publish("data", b"data"), ucxio.Client(local_server.url) as client:
        client.open("data")
        found = local_server.statistics
        assert (found.clients, found.names, found.opens) == (1, 1, 1)


def test_address_file_reaches_a_server_by_ucx(tmp_path: Path) -> None:
    with ucxio.Server(transport="ucx") as server, server.publish("data", b"data"):
        server.publish_address(tmp_path / "address")
        with ucxio.open(f"ucx+file://{tmp_path}/address/data") as file:
            assert file.read() == b"data"
    with ucxio.Server("unix:") as other, pytest.raises(OSError):
        other.publish_address(tmp_path / "address")


def test_memory_store_is_written(server: ucxio.Server) -> None:
    with server.allocate_directory("store", quota=1 << 20) as store:
        assert store.name == "store"
        with ucxio.open(server.url_of("store/a"), "wb") as file:
            file.write(b"content")
        with ucxio.open(server.url_of("store/a")) as file:
            assert file.read() == b"content"
        with pytest.raises(OSError):
            store.memoryview()


def test_closed_server_is_a_value_error() -> None:
    server = ucxio.Server("unix:")
    server.close()
    server.close()
    assert server.closed
    for call in (lambda: server.url, server.list, lambda: server.publish("x", b"x")):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_publication_keeps_its_buffer_and_gives_it_back(local_server: ucxio.Server) -> None:
    shown = local_server.publish("data", np.arange(10, dtype="u1"))  # nobody else has the array
    assert ucxio.open_region(shown.url).read() == bytes(range(10))
    data = bytearray(10)
    kept = local_server.publish("other", data)
    del kept
    data.append(1)
    with pytest.raises(FileNotFoundError):
        ucxio.open(local_server.url_of("other"))
