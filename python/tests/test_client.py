from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from conftest import files_in, soon

import ucxio


def test_names_are_listed_described_and_found(server: ucxio.Server, tmp_path: Path) -> None:
    file = tmp_path / "a file"
    file.write_bytes(b"content")
    with (
        server.publish("memory", bytes(100)),
        server.publish("file", file),
        server.publish("by text", str(file)),
        ucxio.Client(server.url) as client,
    ):
        assert [each.name for each in client.list()] == ["by text", "file", "memory"]
        assert [each.name for each in server.list()] == ["by text", "file", "memory"]
        memory = client.stat("memory")
        assert (memory.type, memory.size, memory.access, memory.kind) == (
            "memory",
            100,
            "read",
            "host",
        )
        assert memory.modified is None
        entry = client.stat("file")
        assert (entry.type, entry.size) == ("file", 7)
        assert entry.modified_ns == file.stat().st_mtime_ns
        assert entry.modified is not None
        assert abs(entry.modified.timestamp() - file.stat().st_mtime) < 1e-3
        assert client.exists("memory")
        assert not client.exists("nothing")
        with pytest.raises(FileNotFoundError):
            client.stat("nothing")
        with pytest.raises(FileNotFoundError):
            client.open("nothing")
        assert client.is_connected
        assert client.server_version == ucxio.__version__
        assert repr(client) == f"<ucxio.Client of {server.url}>"


def test_store_is_changed(store: ucxio.Client, tmp_path: Path) -> None:
    store.make_directory("one/two")
    assert (tmp_path / "one/two").is_dir()
    with store.create("one/file", readable=True) as region:
        region.write_from(b"0123456789")
        region.flush()
        assert region.read() == b"0123456789"
        assert not (tmp_path / "one/file").exists()
        region.commit()
        assert (tmp_path / "one/file").read_bytes() == b"0123456789"
    store.resize("one/file", 4)
    assert (tmp_path / "one/file").read_bytes() == b"0123"
    store.rename("one/file", "three/other")
    assert (tmp_path / "three/other").read_bytes() == b"0123"
    listing = store.list_directory("")
    assert [(each.name, each.is_directory) for each in listing] == [("one", True), ("three", True)]
    assert listing.unserved == 0
    store.remove("three/other")
    assert list((tmp_path / "three").iterdir()) == []
    with pytest.raises(FileNotFoundError):
        store.remove("three/other")
    with pytest.raises(FileExistsError):
        store.make_directory("one")
    with pytest.raises(ValueError, match="no creation"):
        store.create("x", "anew")  # type: ignore[arg-type]


def test_file_that_was_not_committed_has_no_name(store: ucxio.Client, tmp_path: Path) -> None:
    with store.create("file") as region:
        region.write_from(b"x")
        region.flush()
    assert soon(lambda: not files_in(tmp_path))


def test_committed_and_closed_file_is_free_for_others(store: ucxio.Client, tmp_path: Path) -> None:
    region = store.create("file")
    region.write_from(b"first")
    region.commit(durable=True, close=True)
    assert region.closed
    with store.create("file") as second:
        second.write_from(b"second")
        second.commit()
    assert (tmp_path / "file").read_bytes() == b"second"


def test_second_writer_is_busy(store: ucxio.Client) -> None:
    with store.create("file"), pytest.raises(BlockingIOError) as failed:
        store.create("file")
    assert failed.value.code == ucxio.ErrorCode.busy  # type: ignore[attr-defined]


def test_many_files_at_once(store: ucxio.Client, tmp_path: Path) -> None:
    files = {f"many/{i:03}": bytes([i]) * i for i in range(200)}
    assert store.write_many(files) == [None] * 200
    assert len(list((tmp_path / "many").iterdir())) == 200
    found = store.read_many([*files, "nothing"])
    assert found[:-1] == list(files.values())
    assert isinstance(found[-1], FileNotFoundError)
    regions = store.open_many(["many/007", "nothing"])
    assert isinstance(regions[0], ucxio.Region)
    assert regions[0].read() == bytes([7]) * 7
    assert isinstance(regions[1], FileNotFoundError)
    short = store.read_many(["many/100"], max_size=10)
    assert isinstance(short[0], ucxio.Error)
    assert short[0].code == ucxio.ErrorCode.message_truncated
    exists = store.write_many([("many/007", b"x"), ("many/new", b"y")], "exclusive")
    assert isinstance(exists[0], FileExistsError)
    assert exists[1] is None
    with pytest.raises(TypeError):
        store.write_many({"many/wrong": "text"})  # type: ignore[dict-item]


def test_batch_of_writes_leaves_no_reference(store: ucxio.Client) -> None:
    data = bytearray(10)
    store.write_many({"file": data})
    data.append(1)


def test_digest_is_of_the_content(store: ucxio.Client, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content" * 1000)
    (tmp_path / "b").write_bytes(b"content" * 1000)
    with store.open("a") as first, store.open("b") as second:
        assert first.digest() == second.digest()
        assert len(first.digest(chunk=1000)) == 7
        assert first.digest(0, 7) == first.digest(7, 7)
        assert first.digest(0, 7) != first.digest(1, 7)


def test_grown_file_is_seen_after_refresh(store: ucxio.Client, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one")
    with store.open("log") as region:
        with (tmp_path / "log").open("ab") as log:
            log.write(b"two")
        assert region.refresh(known=3, wait=20) == 6
        assert region.read() == b"onetwo"


def test_client_is_pickled_by_its_url_and_options(server: ucxio.Server) -> None:
    with server.publish("data", b"data"):
        with ucxio.Client(server.url, timeout=12) as client:
            again = pickle.loads(pickle.dumps(client))
        assert again.open("data").read() == b"data"
        assert again._options["timeout"] == 12
        again.close()


def test_closed_client_is_a_value_error(local_server: ucxio.Server) -> None:
    client = ucxio.Client(local_server.url)
    client.close()
    client.close()
    for call in (client.list, lambda: client.open("x"), lambda: client.stat("x")):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_server_that_closes_ends_its_clients(server: ucxio.Server) -> None:
    shown = server.publish("data", b"data")
    client = ucxio.Client(server.url)
    region = client.open("data")
    server.close()
    with pytest.raises(OSError) as failed:
        region.read()
    assert isinstance(failed.value, ucxio.Error)
    with pytest.raises(OSError):
        client.list()
    assert shown.closed
    client.close()
