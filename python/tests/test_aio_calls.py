"""Calls that are awaited, and functions that run in an event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from conftest import Process, Run, until
from test_calls import Point, add, serve_calls

import ucxio
from ucxio import aio
from ucxio.calls import CallContext


async def add_later(a: int, b: int) -> int:
    """Add, after the others had their turn."""
    await asyncio.sleep(0)
    return a + b


def test_calls_are_awaited(server: ucxio.Server, run: Run[None]) -> None:
    server.calls.add("add", add)
    server.calls.add(
        "move", lambda each: each, signature="(Point{x:f64,y:f64})->Point{x:f64,y:f64}"
    )

    async def program() -> None:
        async with await aio.connect(server.url) as client:
            assert await client.call("add", 25, 17) == 42
            some = (client.call("add", each, 1, timeout=60) for each in range(100))
            assert await asyncio.gather(*some) == list(range(1, 101))
            assert await client.call("move", Point(1, 2), records=[Point]) == Point(1, 2)
            assert [each.name for each in await client.signatures()] == ["add", "move"]
            with pytest.raises(TypeError, match="needs i64, not str"):
                await client.call("add", "1", 2)
            with pytest.raises(FileNotFoundError):
                await client.call("none")
            with pytest.raises(ucxio.Error) as failed:
                await client.call("add", 1, 2, signature="(i32,i32)->i32")
            assert failed.value.code == "signature_differs"
            assert "(i64,i64)->i64" in str(failed.value)

    run(program())


def test_functions_run_in_the_loop(server: ucxio.Server, run: Run[None]) -> None:
    threads: list[int] = []

    def plain() -> None:
        threads.append(threading.get_ident())

    async def fails(call: CallContext, text: str) -> None:
        assert call.identity
        await asyncio.sleep(0)
        raise KeyError(text)

    async def program() -> None:
        async with aio.Calls(server) as calls, await aio.connect(server.url) as client:
            calls.add("add", add_later)
            calls.add("plain", plain)
            calls.add("fails", fails)
            server.calls.add("other", add)
            assert await client.call("add", 25, 17) == 42
            assert await client.call("other", 25, 17) == 42
            assert await client.call("plain") is None
            assert threads == [threading.get_ident()]
            with pytest.raises(ucxio.Error, match="KeyError: 'text'") as failed:
                await client.call("fails", "text")
            assert (failed.value.code, failed.value.cause) == ("call_failed", None)
            found = {each.name: each.documentation for each in await client.signatures()}
            assert found["add"] == "Add, after the others had their turn."

    run(program())


class Waiting:
    """A coroutine function that waits for good."""

    def __init__(self) -> None:
        self.begun = 0
        self.cancelled = 0

    async def wait(self) -> None:
        self.begun += 1
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def test_call_that_is_given_up_cancels_its_task(local_server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        waiting = Waiting()
        async with aio.Calls(local_server) as calls:
            calls.add("wait", waiting.wait)
            client = await aio.connect(local_server.url)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await client.call("wait")
            assert await until(lambda: waiting.cancelled == waiting.begun)
            with pytest.raises(TimeoutError) as failed:
                await client.call("wait", timeout=0.05)
            assert failed.value.code == "timed_out"  # type: ignore[attr-defined]
            assert await until(lambda: waiting.cancelled == waiting.begun)
            begun = waiting.begun
            task = asyncio.create_task(client.call("wait", timeout=100))
            assert await until(lambda: waiting.begun == begun + 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await until(lambda: waiting.cancelled == waiting.begun)
            task = asyncio.create_task(client.call("wait", timeout=100))
            assert await until(lambda: waiting.begun == begun + 2)
            await client.close()
            with pytest.raises(ucxio.Error):
                await task
            assert await until(lambda: waiting.cancelled == waiting.begun)

    run(program())


def test_closed_functions_fail_their_calls(local_server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        waiting = Waiting()
        async with await aio.connect(local_server.url) as client:
            calls = aio.Calls(local_server)
            calls.add("wait", waiting.wait)
            task = asyncio.create_task(client.call("wait", timeout=100))
            assert await until(lambda: waiting.begun == 1)
            await calls.close()
            await calls.close()
            assert waiting.cancelled == 1
            for each in (task, client.call("wait", timeout=100)):
                with pytest.raises(ucxio.Error) as failed:
                    await each
                assert (failed.value.code, failed.value.cause) == ("call_failed", "canceled")
            with pytest.raises(ucxio.Error) as failed:
                calls.add("other", add)
            assert failed.value.code == "closed"

    run(program())


def test_server_that_closes_ends_the_functions(local_server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        calls = aio.Calls(local_server)
        calls.add("add", add_later)
        async with await aio.connect(local_server.url) as client:
            assert await client.call("add", 1, 2) == 3
        await asyncio.to_thread(local_server.close)
        await calls.close()
        with pytest.raises(ucxio.Error):
            calls.add("other", add)

    run(program())


def test_functions_belong_to_one_loop(local_server: ucxio.Server, run: Run[None]) -> None:
    async def begin() -> aio.Calls:
        calls = aio.Calls(local_server)
        await calls.close()
        return calls

    calls = asyncio.run(begin())

    async def program() -> None:
        with pytest.raises(RuntimeError, match="another event loop"):
            calls.add("add", add)

    run(program())
    with pytest.raises(RuntimeError):
        aio.Calls(local_server)


def test_killed_server_leaves_the_outcome_unknown(run: Run[None]) -> None:
    async def program(running: Process) -> None:
        async with await aio.connect(running.line()) as client:
            assert await client.call("add", 1, 2) == 3
            task = asyncio.create_task(client.call("wait", timeout=100))
            assert await asyncio.to_thread(running.line) == "entered"
            running.running.kill()
            with pytest.raises(ucxio.Error) as failed:
                await task
            assert failed.value.code == "call_outcome_unknown"

    with Process(serve_calls, repr({"bind": "unix:"})) as running:
        run(program(running))


def test_many_calls_are_busy(local_server: ucxio.Server, run: Run[None]) -> None:
    async def program() -> None:
        gate = asyncio.Event()

        async def wait() -> bool:
            return await gate.wait()

        async with aio.Calls(local_server) as calls, await aio.connect(local_server.url) as client:
            calls.add("wait", wait)
            assert len(await client.signatures()) == 1
            tasks = [asyncio.create_task(client.call("wait")) for _ in range(300)]
            assert await until(lambda: sum(each.done() for each in tasks) == 300 - 256)
            gate.set()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        codes = [each.code for each in ended if isinstance(each, ucxio.Error)]
        assert codes == ["busy"] * (300 - 256)
        assert ended.count(True) == 256

    run(program())
