"""Each object says what it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from test_pipes import both

import ucxio
import ucxio.fsspec
from ucxio import aio


def test_files_say_their_kind_name_and_mode(local_server: ucxio.Server, tmp_path: Path) -> None:
    with local_server.publish_directory(tmp_path, "store", writable=True) as store:
        assert repr(store) == "<ucxio.Publication 'store'>"
        url = local_server.url_of("store/file")
        for mode, kind in ("wb", "Writer"), ("rb", "Reader"), ("r+b", "Random"), ("rt", "Text"):
            with ucxio.open(url, mode) as file:
                shown = f"<ucxio.files.{kind} {url!r} mode={mode!r}"
                assert repr(file) == shown + ">"
            assert repr(file) == shown + " closed>"
        with ucxio.Client(local_server.url) as client:
            found = client.list_directory("store")
            assert repr(found).startswith("<ucxio.DirectoryListing [Entry(name='store/file', ")
            found.unserved = 2
            assert repr(found).endswith("], 2 not served>")
    assert repr(store) == "<ucxio.Publication 'store', closed>"


def test_file_systems_say_their_server(local_server: ucxio.Server) -> None:
    made = ucxio.fsspec.UcxFileSystem(local_server.url)
    assert repr(made) == f"<ucxio.fsspec.UcxFileSystem of {local_server.url}>"


def test_awaited_objects_say_what_they_are(local_server: ucxio.Server) -> None:
    async def main() -> None:
        async with await aio.connect(local_server.url) as client:
            assert repr(client) == f"<ucxio.aio.Client of {local_server.url}>"
            region = await client.open("data")
            assert repr(region) == f"<ucxio.aio.Region {shown.url}, 4 bytes, read>"
            async with await aio.open(shown.url) as file:
                assert repr(file) == f"<ucxio.aio.RemoteFile {shown.url!r} mode='rb'>"

    with local_server.publish("data", b"data") as shown:
        asyncio.run(main())


def test_server_ends_with_its_block() -> None:
    with pytest.raises(KeyError), ucxio.Server("unix:") as server:
        shown = server.publish("data", b"data")
        url = shown.url
        assert repr(server) == f"<ucxio.Server {server.url}>"
        raise KeyError
    assert repr(server) == "<ucxio.Server, closed>"
    assert server.closed
    assert shown.closed
    with pytest.raises(ConnectionRefusedError):
        ucxio.open(url)
    server.close()


def test_pipes_say_their_kind_name_and_mode() -> None:
    with ucxio.Server("unix:", pipes=True) as server:
        url = server.url_of("pipe")
        for mode, kind in ("rb", "PipeReader"), ("r", "PipeText"):
            reader, writer = both(url, mode, "wb")
            with reader, writer:
                assert repr(writer) == f"<ucxio.pipes.PipeWriter {url!r} mode='wb'>"
                assert repr(reader) == f"<ucxio.pipes.{kind} {url!r} mode={mode!r}>"
            assert repr(reader) == f"<ucxio.pipes.{kind} {url!r} mode={mode!r} closed>"


def test_files_that_were_detached_say_so(local_server: ucxio.Server) -> None:
    with ucxio.Server("unix:", pipes=True) as server:
        reader, writer = both(server.url_of("pipe"), "r", "wb")
        with reader.detach(), writer.detach():
            assert repr(reader) == "<ucxio.pipes.PipeText detached>"
            assert repr(writer) == "<ucxio.pipes.PipeWriter detached>"
            for call in reader.read, lambda: writer.write(b"x"):
                with pytest.raises(ValueError, match="detached"):
                    call()
    with local_server.publish("data", bytes(8)) as shown:
        file = ucxio.open(shown.url)
        with file.detach():
            assert repr(file) == f"<ucxio.files.{type(file).__name__} detached>"
