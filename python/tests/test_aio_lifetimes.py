"""Awaited calls, tasks and connections that are dropped; loops that end or are disturbed."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import (
    Process,
    Run,
    go_on,
    is_free,
    make_loop,
    serve,
    soon,
    stop,
    until,
    waiting,
    ways,
)

import ucxio
from ucxio import _core, aio
from ucxio.aio import _driver


def is_open(descriptor: int, was: str) -> bool:
    """Return whether a descriptor is still that of the file it was of."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") == was
    except FileNotFoundError:
        return False


@pytest.mark.usefixtures("nothing_left_behind")
def test_dropped_coroutine_leaves_its_buffer_to_the_request(
    far_server: Process, run: Run[None]
) -> None:
    """A coroutine that nothing runs on, as a loop leaves it that was closed."""
    url: str = far_server.url  # type: ignore[attr-defined]

    async def program() -> None:
        buffer = bytearray(100_000)
        async with await aio.connect(url, **waiting(url)) as client:
            region = await client.open("data")
            stop(far_server)
            try:
                going = region.read_into(buffer)
                future = going.send(None)
                assert asyncio.isfuture(future)
                assert not is_free(buffer)
                going.close()
                del going, future
                gc.collect()
                # UCX has let go of it, or it is kept.
                assert is_free(buffer) or _core.count_left_behind() > 0
            finally:
                go_on(far_server)
            assert await until(lambda: _core.count_left_behind() == 0)
            assert is_free(buffer)
        async with await aio.connect(url) as client:
            assert await client.exists("data")

    run(program())


@pytest.mark.usefixtures("nothing_left_behind")
@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_loop_that_closes_with_calls_in_flight(far_server: Process, kind: str) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]
    buffer = bytearray(100_000)
    loop = make_loop(kind)
    client = loop.run_until_complete(aio.connect(url, **waiting(url)))
    region = loop.run_until_complete(client.open("data", "read_write"))
    descriptor = client._driver._descriptor
    was = os.readlink(f"/proc/self/fd/{descriptor}")
    stop(far_server)
    try:
        tasks = [
            loop.create_task(client.list()),
            loop.create_task(client.open("data")),
            loop.create_task(region.read_into(buffer)),
            loop.create_task(region.digest()),
        ]
        loop.run_until_complete(asyncio.sleep(0.01))
        assert not any(each.done() for each in tasks)
        assert not is_free(buffer)
        for each in tasks:
            each._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        del tasks, each, client, region, loop
        gc.collect()
    finally:
        go_on(far_server)
    # No thread drives the worker: it goes with the loop, and has the buffers given back.
    assert soon(lambda: _core.count_left_behind() == 0)
    assert is_free(buffer)
    assert soon(lambda: not is_open(descriptor, was))


@pytest.mark.parametrize("what", ["client", "region", "connecting"])
def test_what_is_dropped_does_not_wait_for_the_server(
    far_server: Process, run: Run[None], what: str
) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]
    # By then a drop that waits for the server is told that it may go on.
    patience = 3

    async def program() -> None:
        client = await aio.connect(url, **waiting(url))
        region = await client.open("data", "read_write")
        goes_on = threading.Timer(patience, go_on, [far_server])
        stop(far_server)
        try:
            goes_on.start()
            # More bytes than go out while the server takes none.
            going = [region.write_from(bytes(1 << 20)) for _ in range(32)]
            for each in going:
                with contextlib.suppress(StopIteration):
                    each.send(None)
            for each in going:
                each.close()
            del going, each
            if what == "client":
                del region, client
            else:
                del client, region
            gc.collect()
            assert goes_on.is_alive()
        finally:
            goes_on.cancel()
            goes_on.join()
            go_on(far_server)
        async with await aio.connect(url) as client:
            assert await client.exists("data")

    async def connecting() -> None:
        core = await asyncio.to_thread(_core.LoopWorker, url, [], "", None, None, {})
        operation = core.connect(url, None)
        while not operation.done:
            core.turn(64)
            await asyncio.sleep(0)
        goes_on = threading.Timer(patience, go_on, [far_server])
        stop(far_server)
        try:
            goes_on.start()
            operation.release()
            del operation
            assert goes_on.is_alive()
        finally:
            goes_on.cancel()
            goes_on.join()
            go_on(far_server)

    run(connecting() if what == "connecting" else program())


def test_result_is_taken_once(local_server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        async with await aio.connect(local_server.url) as client:
            for end in ("result", "release"):
                operation = client._core.list(None)
                with pytest.raises(ucxio.Error) as failed:
                    operation.result()
                assert failed.value.code == "busy"
                client._driver.soon()
                while not operation.done:
                    await asyncio.sleep(0.001)
                assert getattr(operation, end)() == ([] if end == "result" else None)
                with pytest.raises(ucxio.Error) as failed:
                    operation.result()
                assert failed.value.code == "closed"
                operation.release()

    run(program())


def test_last_file_closes_the_shared_connection(
    store: ucxio.Client, tmp_path: Path, run: Run[None]
) -> None:
    (tmp_path / "file").write_bytes(b"0123")
    url = store.url + "/file"

    async def program() -> None:
        first, second = await asyncio.gather(aio.open(url), aio.open(url))
        client = first._client
        assert second._client is client
        with pytest.raises(FileNotFoundError):
            await aio.open(url + "-none")
        await first.close()
        await first.close()
        assert client.is_connected
        assert await second.read() == b"0123"
        await second.discard()
        assert not client.is_connected
        third = await aio.open(url)
        assert third._client is not client
        del client
        assert await third.read() == b"0123"
        with pytest.raises(FileNotFoundError):
            await aio.open(url + "-none")
        assert third._client.is_connected
        await third.close()
        assert not third._client.is_connected
        # The user's own stays.
        async with await aio.connect(store.url) as own:
            async with await aio.open("file", client=own) as file:
                assert await file.read() == b"0123"
            assert own.is_connected

    run(program())


def test_waiting_task_needs_no_reference(far_server: Process, run: Run[None]) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]
    told: list[int] = []

    async def call() -> None:
        async with await aio.connect(url) as client:
            stop(far_server)
            told.append(0)
            told.append(len(await client.list()))

    async def program() -> None:
        asyncio.get_running_loop().create_task(call())
        try:
            assert await until(lambda: told)
            for _ in range(5):
                await asyncio.sleep(0.01)
                gc.collect()
        finally:
            go_on(far_server)
        assert await until(lambda: len(told) == 2)
        assert told[1] >= 1

    run(program())


@pytest.mark.parametrize("way", ways)
@pytest.mark.parametrize("when", ["idle", "before"])
def test_handler_is_told_of_a_killed_server(run: Run[None], way: str, when: str) -> None:
    told: list[str] = []

    async def program(server: Process) -> None:
        client = await aio.connect(server.line())
        driver = client._driver

        def kill() -> None:
            server.running.kill()
            server.running.wait()

        if when == "before":
            kill()
            assert await until(lambda: not client.is_connected, 60)
            driver._unwatch()  # no turn comes by itself
            assert await until(lambda: not driver._has_turn)
            driver.tell_end(client._core, lambda: told.append("end"))
        else:
            driver.tell_end(client._core, lambda: told.append("end"))
            await asyncio.sleep(0.01)
            kill()
        assert await until(lambda: told, 60)
        assert not client.is_connected
        await asyncio.sleep(0)
        assert told == ["end"]

    with Process(serve, repr(ways[way])) as server:
        run(program(server))


def test_handler_has_the_context_of_who_connects(
    local_server: ucxio.Server, run: Run[None]
) -> None:
    told: list[str] = []
    name = contextvars.ContextVar("name", default="none")

    async def handler() -> None:
        told.append(name.get())

    async def connecting() -> aio.Client:
        name.set("mine")
        return await aio.connect(local_server.url, on_closed=handler)

    async def program() -> None:
        client = await asyncio.ensure_future(connecting())
        assert name.get() == "none"
        client._driver._unwatch()
        await asyncio.get_running_loop().run_in_executor(None, local_server.close)
        # A turn that another makes.
        assert await until(lambda: client._driver.turn() or told)
        await client.close()

    run(program())
    assert told == ["mine"]


def test_handler_of_a_closed_loop_is_forgotten(run: Run[None]) -> None:
    begun: list[int] = []

    async def handler() -> None:
        begun.append(1)
        await asyncio.get_running_loop().create_future()

    async def program(server: ucxio.Server) -> None:
        before = len(begun)
        client = await aio.connect(server.url, on_closed=handler)
        await asyncio.get_running_loop().run_in_executor(None, server.close)
        assert await until(lambda: len(begun) > before)
        await client.close()

    for _ in range(3):
        loop = asyncio.new_event_loop()
        with ucxio.Server("unix:") as server:
            loop.run_until_complete(program(server))
        for each in _driver._handlers:
            each._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        assert len(_driver._handlers) <= 1
    _driver._handlers.clear()


def test_write_that_can_not_start_leaves_earlier_buffers_free(
    far_server: Process, run: Run[None]
) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]

    class Fickle:
        """An array that has no memory any more when it is asked again."""

        asked = 0

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            self.asked += 1
            if self.asked > 1:
                raise AttributeError
            return {
                "shape": (0,),
                "typestr": "|u1",
                "data": (0, False),
                "version": 3,
                "stream": None,
            }

    async def program() -> None:
        buffer = bytearray(8 << 20)
        async with await aio.connect(url, **waiting(url)) as client:
            with pytest.raises(TypeError, match="a buffer is needed"):
                await client.write_many([("store/a", buffer), ("store/b", Fickle())])
            assert is_free(buffer)
            assert client.is_connected
            assert not await client.exists("store/a")

    run(program())


@pytest.mark.parametrize("failure", [MemoryError, ucxio.Error])
def test_turn_that_is_disturbed_is_made_again(
    local_server: ucxio.Server, run: Run[None], failure: type[Exception]
) -> None:
    class Disturbed:
        """Makes a turn, and loses what it found."""

        def __init__(self, core: _core.LoopWorker) -> None:
            self.core = core
            self.found: list[int] = []

        def turn(self, rounds: int) -> Any:
            made = self.core.turn(rounds)
            if made[0] and not self.found:
                self.found += made[0]
                if failure is ucxio.Error:
                    raise ucxio.Error(5, "something else", ucxio.ErrorCode.io_error)
                raise failure
            return made

    async def program() -> None:
        loop = asyncio.get_running_loop()
        told: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, what: told.append(what))
        async with await aio.connect(local_server.url) as client:
            driver = client._driver
            core = Disturbed(driver._core)
            driver._core = core  # type: ignore[assignment]
            asked = [asyncio.ensure_future(client.list()) for _ in range(3)]
            for each in await asyncio.gather(*asked):
                assert each == []
            assert core.found
            driver._core = core.core
        assert [type(each["exception"]) for each in told] == [failure]

    run(program())


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_two_loops_in_two_threads(server: ucxio.Server, kind: str) -> None:
    outcomes: list[object] = []

    async def program(start: threading.Barrier) -> int:
        async with await aio.connect(server.url) as client:
            region = await client.open("data")
            start.wait(60)
            found: list[bytes] = []
            for _ in range(10):
                found += await asyncio.gather(*(region.read(i, 1) for i in range(20)))
            async with await aio.open(server.url_of("data")) as file:
                assert await file.read(1) == b"\0"
            return sum(each[0] for each in found)

    def run_one(start: threading.Barrier) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: make_loop(kind)) as runner:
                outcomes.append(runner.run(asyncio.wait_for(program(start), 120)))
        except BaseException as failed:
            outcomes.append(failed)

    make_loop(kind).close()  # or skip
    with server.publish("data", bytes(range(20))):
        both = threading.Barrier(2)
        threads = [threading.Thread(target=run_one, args=[both]) for _ in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert outcomes == [10 * sum(range(20))] * 2


@pytest.mark.parametrize("far_server", ["ucx+unix", "ucx"], indirect=True)
def test_exit_with_an_operation_in_flight_is_quiet(far_server: Process) -> None:
    program = """
import asyncio, sys, ucxio.aio
buffer = bytearray(100_000)
async def main(url):
    global client, region, going
    client = await ucxio.aio.connect(url, transports=sys.argv[2:])
    region = await client.open("data")
    print("open", flush=True)
    sys.stdin.readline()
    going = region.read_into(buffer)
    assert asyncio.isfuture(going.send(None))
asyncio.run(main(sys.argv[1]))
"""
    url: str = far_server.url  # type: ignore[attr-defined]
    with Process(program, url, *waiting(url).get("transports", [])) as running:
        assert running.line() == "open"
        stop(far_server)
        try:
            out, errors = running.running.communicate("\n", timeout=240)
        finally:
            go_on(far_server)
        assert (running.running.returncode, out, errors) == (0, "", "")
