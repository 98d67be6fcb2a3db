"""Calls that are awaited: what they do, over each way and in each kind of loop."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import select
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Process, Run, files_in, forked, until, ways

import ucxio
from ucxio import aio
from ucxio.aio import _driver


def test_region_is_read_and_written(server: ucxio.Server, run: Run[None]) -> None:
    data = bytearray(range(256)) * 1000
    expected = bytes(data)

    async def program() -> None:
        async with (
            await aio.connect(server.url) as client,
            await client.open("data", "read_write") as region,
        ):
            assert (region.name, region.size, len(region)) == ("data", 256000, 256000)
            assert region.url == server.url_of("data")
            assert repr(region).startswith("<ucxio.aio.Region ")
            assert await region.read() == expected
            assert await region.read(10, 5) == expected[10:15]
            assert await region.read(256000) == b""
            into = numpy.zeros(1000, "u4")
            assert await region.read_into(into, 100, verify=True) == 4000
            assert into.tobytes() == expected[100:4100]
            pieces = [(0, bytearray(10)), (1000, bytearray(20))]
            await region.read_batch(pieces)
            assert [each for _, each in pieces] == [expected[:10], expected[1000:1020]]
            assert await region.write_from(b"written", 3) == 7
            await region.write_batch([(20, b"one"), (30, b"two")])
            await region.flush()
            assert data[3:10] == b"written"
            assert (data[20:23], data[30:33]) == (b"one", b"two")
            await region.notify(7)
        assert region.closed
        assert not client.is_connected

    with server.publish("data", data, writable=True):
        run(program())


def test_atomic_accesses(server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        async with await aio.connect(server.url) as client:
            region = await client.open("numbers", "read_write")
            assert await region.fetch_add(8, 5) == 0
            assert await region.fetch_add(8, -1) == 5
            assert await region.load(8) == 4
            assert await region.exchange(8, 12) == 4
            assert await region.compare_exchange(8, 12, 1) == 12
            assert await region.fetch_or(8, 6) == 1
            assert await region.fetch_and(8, 3) == 7
            assert await region.fetch_xor(8, 1) == 3
            await region.store(8, -1)
            assert await region.load(8) == 2**64 - 1
            assert await region.load(8, width=4) == 2**32 - 1
            with pytest.raises(OverflowError):
                await region.store(8, 2**64)
            with pytest.raises(ucxio.Error) as failed:
                await region.load(3)
            assert failed.value.code == "invalid_argument"

    with server.publish("numbers", numpy.zeros(4, "u8"), writable=True):
        run(program())


def test_store_is_changed(server: ucxio.Server, tmp_path: Path, run: Run[None]) -> None:
    async def program() -> None:
        async with await aio.connect(server.url) as client:
            await client.make_directory("one/two")
            async with await client.create("one/file", readable=True) as made:
                await made.write_from(b"0123456789")
                await made.flush()
                assert await made.read() == b"0123456789"
                await made.resize(12)
                await made.commit(close=True)
            assert (tmp_path / "one/file").read_bytes() == b"0123456789\0\0"
            await client.resize("one/file", 4)
            await client.rename("one/file", "other")
            assert (tmp_path / "other").read_bytes() == b"0123"
            listing = await client.list_directory()
            assert [each.name for each in listing] == ["one", "other"]
            assert listing.unserved == 0
            assert (await client.stat("other")).size == 4
            assert await client.exists("other")
            region = await client.open("other")
            assert len(await region.digest(chunk=2)) == 2
            with (tmp_path / "other").open("ab") as log:
                log.write(b"more")
            assert await region.refresh(known=4, wait=20) == 8
            await client.remove("other")
            assert not await client.exists("other")
            with pytest.raises(FileNotFoundError):
                await client.remove("other")
            with pytest.raises(FileExistsError):
                await client.make_directory("one")
            with pytest.raises(ValueError, match="no creation"):
                await client.create("x", "anew")  # type: ignore[arg-type]
            async with await client.create("thrown away") as made:
                await made.write_from(b"x")
            assert await until(lambda: files_in(tmp_path) == [])

    with server.publish_directory(tmp_path, writable=True):
        run(program())


def test_many_files_at_once(store: ucxio.Client, tmp_path: Path, run: Run[None]) -> None:
    files = {f"many/{i:03}": bytes([i]) * i for i in range(200)}

    async def program() -> None:
        async with await aio.connect(store.url) as client:
            assert await client.write_many(files) == [None] * 200
            found = await client.read_many([*files, "nothing"])
            assert found[:-1] == list(files.values())
            assert isinstance(found[-1], FileNotFoundError)
            regions = await client.open_many(["many/007", "nothing"])
            assert isinstance(regions[0], aio.Region)
            assert await regions[0].read() == bytes([7]) * 7
            assert isinstance(regions[1], FileNotFoundError)
            short = await client.read_many(["many/100"], max_size=10)
            assert isinstance(short[0], ucxio.Error)
            assert short[0].code == "message_truncated"
            wrong = [("many/007", b"x"), ("many/new", b"y")]
            exists = await client.write_many(wrong, "exclusive")
            assert isinstance(exists[0], FileExistsError)
            assert exists[1] is None
            with pytest.raises(TypeError):
                await client.write_many({"a": b"", "b": "text"})  # type: ignore[dict-item]
            assert not await client.exists("a")

    run(program())
    assert len(list((tmp_path / "many").iterdir())) == 201


def test_files(store: ucxio.Client, tmp_path: Path, run: Run[None]) -> None:
    url = store.url + "/file"

    async def program() -> None:
        async with await aio.open(url, "wb") as file:
            assert file.writable()
            assert not file.readable()
            assert await file.write(b"0123456789") == 10
            assert file.tell() == 10
            with pytest.raises(io.UnsupportedOperation):
                await file.read()
            assert files_in(tmp_path) != ["file"]
        assert file.closed
        assert (tmp_path / "file").read_bytes() == b"0123456789"
        async with await aio.open(url) as file, await aio.open(url) as second:
            assert second._client is file._client
            assert await file.read(3) == b"012"
            assert file.seek(2, os.SEEK_CUR) == 5
            into = bytearray(10)
            assert await file.readinto(into) == 5
            assert into[:5] == b"56789"
            assert await file.readinto(into) == 0
            assert await file.read() == b""
            assert file.seek(-4, os.SEEK_END) == 6
            assert await file.read() == b"6789"
            assert await file.pread(2, 1) == b"12"
            assert file.tell() == file.size == 10
            with pytest.raises(ValueError, match="negative"):
                file.seek(-1)
            with pytest.raises(ValueError, match="whence"):
                file.seek(0, 7)
            with pytest.raises(io.UnsupportedOperation):
                await file.write(b"x")
        async with await aio.open(url, "r+b") as file:
            await file.write(b"AB")
            assert await file.read(2) == b"23"
            await file.truncate(4)
        async with await aio.open(url, "ab") as file:
            await file.write(b"end")
        assert (tmp_path / "file").read_bytes() == b"AB23end"
        with pytest.raises(FileExistsError):
            await aio.open(url, "xb")
        with pytest.raises(RuntimeError, match="stop"):
            async with await aio.open(url, "wb") as file:
                await file.write(b"half")
                raise RuntimeError("stop")
        new = await aio.open(url + "-2", "wb")
        await new.discard()
        await new.close()
        assert (tmp_path / "file").read_bytes() == b"AB23end"
        assert not (tmp_path / "file-2").exists()
        with pytest.raises(ValueError, match="closed"):
            await new.read()
        with pytest.raises(ValueError, match="for text"):
            await aio.open(url, "r")
        with pytest.raises(ValueError, match="no name"):
            await aio.open(store.url)
        with pytest.raises(FileNotFoundError):
            await aio.open(store.url + "/none")
        async with (
            await aio.connect(store.url) as client,
            await aio.open("file", client=client) as file,
        ):
            assert await file.read() == b"AB23end"

    run(program())


def test_file_of_a_fixed_size_is_full(local_server: ucxio.Server, run: Run[None]) -> None:
    data = bytearray(8)

    async def program() -> None:
        async with await aio.open(local_server.url_of("data"), "wb") as file:
            assert await file.write(b"0123456789") == 8
            with pytest.raises(OSError, match="the end"):
                await file.write(b"89")

    with local_server.publish("data", data, writable=True):
        run(program())
    assert data == b"01234567"


def test_unclosed_file_is_thrown_away_with_a_warning(
    store: ucxio.Client, tmp_path: Path, run: Run[None]
) -> None:
    async def program() -> None:
        file: aio.RemoteFile | None = await aio.open(store.url + "/file", "wb")
        await file.write(b"half")
        with pytest.warns(ResourceWarning, match="unclosed file"):
            file = None
        assert await until(lambda: files_in(tmp_path) == [])

    run(program())


def test_many_tasks_share_a_connection(server: ucxio.Server, run: Run[None]) -> None:
    data = numpy.arange(100_000, dtype="u8")

    async def program() -> None:
        async with await aio.connect(server.url) as client:
            region = await client.open("data")
            found = await asyncio.gather(*(region.read(8 * i, 8) for i in range(500)))
            assert [int.from_bytes(each, "little") for each in found] == list(range(500))
            assert not client._driver._waiting

    with server.publish("data", data):
        run(program())


def test_loop_watches_once_and_has_one_timer_and_no_task(
    far_server: Process, run: Run[None]
) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]

    async def program() -> None:
        loop = asyncio.get_running_loop()
        client = await aio.connect(url)
        timers: list[asyncio.TimerHandle] = []
        readers: list[int] = []
        call_later, add_reader = _driver.Driver._ring_in, _driver.Driver._watch

        def ring(self: _driver.Driver, seconds: float) -> None:
            call_later(self, seconds)
            assert self._timer is not None
            if self._timer not in timers:
                timers.append(self._timer)
            alive = [each for each in timers if not each.cancelled() and each is not self._timer]
            assert all(each.when() <= loop.time() for each in alive)

        def watch(self: _driver.Driver) -> None:
            readers.append(self._descriptor)
            add_reader(self)

        tasks: list[Any] = []

        def make(of: asyncio.AbstractEventLoop, program: Any, **options: Any) -> Any:
            tasks.append(program.__qualname__)
            return asyncio.Task(program, loop=of, **options)

        loop.set_task_factory(make)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_driver.Driver, "_ring_in", ring)
            patch.setattr(_driver.Driver, "_watch", watch)
            region = await client.open("data", "read_write")
            for _ in range(20):
                await asyncio.gather(*(region.read(0, 10) for _ in range(10)), region.flush())
                await client.list()
            assert readers == []
            # Those of `gather`.
            assert set(tasks) == {"Region.read", "Region.flush"}
            assert len(tasks) == 20 * 11
            await client.close()

    run(program())


def test_idle_connection_costs_nothing(far_server: Process, run: Run[None]) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]

    async def program() -> None:
        async with await aio.connect(url) as client:
            region = await client.open("data")
            await region.read(0, 100)
            driver = client._driver

            def is_idle() -> bool:
                readable, _, _ = select.select([driver._descriptor], [], [], 0)
                return not readable and not driver._has_turn and driver._timer is None

            assert await until(is_idle)

    run(program())


def test_connection_has_no_thread(run: Run[None]) -> None:
    def others() -> int:
        """Return how many threads there are that are not Python's."""
        return len(os.listdir("/proc/self/task")) - threading.active_count()

    async def program(url: str) -> None:
        before = others()
        async with await aio.connect(url) as client:
            await client.list()
            assert others() <= before

    with Process(served_alone) as running:
        run(program(running.line()))


served_alone = """
import sys, ucxio
server = ucxio.Server("unix:")
print(server.url, flush=True)
sys.stdin.read()
"""


def test_other_callbacks_run_while_bytes_come(
    server: ucxio.Server, run: Run[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(64 << 20)
    monkeypatch.setattr(_driver, "_rounds", 1)  # one round has a part of the bytes, at any speed

    async def program() -> None:
        async with await aio.connect(server.url) as client:
            region = await client.open("data")
            counted = 0

            def count() -> None:
                nonlocal counted
                counted += 1
                if not over:
                    asyncio.get_running_loop().call_soon(count)

            over = False
            count()
            await region.read_into(bytearray(64 << 20))
            before = counted
            assert await until(lambda: counted > before)
            over = True
            if region.transfer_method == "message":
                assert before > 10

    with server.publish("data", data):
        run(program())


def test_two_runs_in_a_row(server: ucxio.Server, run: Run[int]) -> None:
    kept: list[Any] = []

    async def program() -> int:
        client = await aio.connect(server.url)
        region = await client.open("data")
        kept.extend([client, region])  # neither is closed
        return len(await region.read())

    async def other() -> None:
        for call in (kept[0].list, kept[1].read, kept[1].close, kept[0].close):
            with pytest.raises(RuntimeError, match="another event loop"):
                await call()

    with server.publish("data", b"data"):
        assert run(program()) == 4
        assert run(program()) == 4
        run(other())  # type: ignore[arg-type]
        kept.clear()


def test_what_is_dropped_is_closed(far_server: Process, run: Run[None]) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]

    async def program() -> None:
        client = await aio.connect(url)
        region = await client.open("data")
        descriptor = client._driver._descriptor
        del client
        gc.collect()
        assert len(await region.read()) == 1 << 20  # it keeps the connection
        del region
        gc.collect()
        loop = asyncio.get_running_loop()
        assert await until(lambda: not loop.remove_reader(descriptor))

    run(program())


class Handled(Exception):
    pass


@pytest.mark.parametrize("kind", ["function", "coroutine"])
@pytest.mark.parametrize("fails", [False, True])
def test_handler_is_told_of_the_end(
    local_server: ucxio.Server, run: Run[None], kind: str, fails: bool
) -> None:
    told: list[str] = []
    unhandled: list[dict[str, Any]] = []

    def function() -> None:
        told.append("end")
        if fails:
            raise Handled

    async def coroutine() -> None:
        await asyncio.sleep(0)
        function()

    handler: Callable[[], Awaitable[None] | None] = function if kind == "function" else coroutine

    async def program() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unhandled.append(what))
        client = await aio.connect(local_server.url, on_closed=handler)
        closes = await aio.connect(local_server.url, on_closed=lambda: told.append("mine"))
        await closes.close()
        await asyncio.get_running_loop().run_in_executor(None, local_server.close)
        assert await until(lambda: told and (unhandled or not fails))
        assert not client.is_connected
        with pytest.raises(OSError):
            await client.list()
        await client.close()

    run(program())
    assert told == ["end"]
    assert [type(each["exception"]) for each in unhandled] == ([Handled] if fails else [])


def test_wrong_arguments(local_server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        async with await aio.connect(local_server.url) as client:
            region = await client.open("data")
            with pytest.raises(TypeError, match="read-only"):
                await region.read_into(b"0123")
            with pytest.raises(TypeError, match="an object with a buffer"):
                await region.read_into(None)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="strides"):
                await region.read_into(numpy.zeros((2, 2), order="F"))
            with pytest.raises(ValueError, match="above 0"):
                await region.read(timeout=0)
            with pytest.raises(PermissionError):
                await region.write_from(b"x")
            with pytest.raises(ucxio.Error) as failed:
                await region.read(0, 5)
            assert failed.value.code == "out_of_range"
            with pytest.raises(FileNotFoundError):
                await client.open("nothing")
            with pytest.raises(ValueError, match="no access"):
                await client.open("data", "execute")  # type: ignore[arg-type]
            await region.close()
            with pytest.raises(ValueError, match="closed"):
                await region.read()
            again = await client.open("data")
        for call in (client.list, again.read, lambda: client.open("data")):
            with pytest.raises(ValueError, match="closed"):
                await call()
        await client.close()
        with pytest.raises(ValueError):
            await aio.connect("http://127.0.0.1")
        with pytest.raises(ConnectionRefusedError):
            await aio.connect("ucx+unix:///run/none.sock")
        with pytest.raises(TypeError):
            await aio.connect(local_server.url, configuration={"A": 1})  # type: ignore[dict-item]

    with local_server.publish("data", b"data"):
        run(program())


def test_without_a_loop() -> None:
    program = aio.connect("ucx+unix:///run/none.sock")
    with pytest.raises(RuntimeError, match="no running event loop"):
        program.send(None)


def test_view_keeps_a_region_open(server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        async with await aio.connect(server.url) as client:
            region = await client.open("memory")
            try:
                view = region.memoryview()
            except io.UnsupportedOperation:
                return  # it is not mapped
            with pytest.raises(BufferError):
                await region.close()
            assert bytes(view[:2]) == b"\0\0"
            view.release()
            await region.close()

    with server.allocate("memory", 4096):
        run(program())


before = """
import asyncio, ucxio.aio
server = ucxio.Server(**eval(sys.argv[1]))
shown = server.publish("data", bytearray(b"data"))
loop = asyncio.new_event_loop()
client = loop.run_until_complete(ucxio.aio.connect(server.url))
region = loop.run_until_complete(client.open("data"))
url = server.url
kinds = {
    "list": client.list,
    "open": lambda: client.open("data"),
    "read": region.read,
    "read_into": lambda: region.read_into(bytearray(4)),
    "connect": lambda: ucxio.aio.connect(url),
    "open a file": lambda: ucxio.aio.open(url + "/data"),
}
async def run(kind):
    await kinds[kind]()
calls = {
    **{f"{kind} in its loop": lambda kind=kind: loop.run_until_complete(run(kind))
       for kind in kinds},
    **{f"{kind} in another": lambda kind=kind: asyncio.run(run(kind)) for kind in kinds},
}
"""
in_child = """
loop.run_until_complete(region.close())
loop.run_until_complete(client.close())
"""
after = """
assert loop.run_until_complete(region.read()) == b"data"
loop.run_until_complete(client.close())
loop.close()
"""


@pytest.mark.parametrize("way", ways)
def test_every_call_in_a_forked_child_raises_at_once(way: str) -> None:
    with Process(forked(before, in_child, after), repr(ways[way])) as running:
        assert running.end() == (0, "", "")


def test_exit_with_everything_open_is_quiet() -> None:
    program = """
import asyncio, sys, ucxio.aio
server = ucxio.Server(**eval(sys.argv[1]))
shown = server.publish("data", bytearray(1 << 20))
async def main():
    global client, region
    client = await ucxio.aio.connect(server.url)
    region = await client.open("data")
    await region.read()
loop = asyncio.new_event_loop()
loop.slow_callback_duration = 60
loop.run_until_complete(main())
if sys.argv[2] == "closed":
    loop.close()
print("made")
"""
    for way in ways.values():
        with Process(program, repr(way), "closed", PYTHONDEVMODE="1") as running:
            assert running.end() == (0, "made\n", "")
        with Process(program, repr(way), "open") as running:
            assert running.end() == (0, "made\n", "")
