"""Awaited calls that end early, and servers that stop or die meanwhile."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from conftest import Process, Run, go_on, is_free, stop, waiting

import ucxio
from ucxio import aio

# What a call waits for while its server is stopped.
short = 0.1


async def calls_of(
    client: aio.Client, buffer: bytearray
) -> list[Callable[[], Coroutine[Any, Any, Any]]]:
    """Return calls that wait for the server."""
    region = await client.open("data", "read_write")
    new = await client.create("store/new")
    await new.write_from(b"x")

    async def write() -> None:
        await region.write_from(buffer)
        await region.flush()

    calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
        client.list,
        lambda: client.open("data"),
        lambda: client.open_many(["data"] * 100),
        lambda: client.write_many([("store/a", buffer)]),
        new.commit,
        write,
        lambda: region.load(0),
    ]
    if region.transfer_method == "message":  # else the owner is not needed
        calls += [
            lambda: region.read_into(buffer),
            lambda: region.read_batch([(0, buffer)]),
            region.read,
        ]
    return calls


@pytest.mark.parametrize("how", ["timeout", "cancel", "twice"])
def test_cancelled_call_has_let_go_of_its_buffer(
    far_server: Process, run: Run[None], how: str
) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]

    async def ended(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        if how == "timeout":
            with pytest.raises(TimeoutError) as failed:
                async with asyncio.timeout(short):
                    await call()
            assert not isinstance(failed.value, ucxio.Error)
            return
        task = asyncio.ensure_future(call())
        done, _ = await asyncio.wait([task], timeout=short)
        assert not done
        task.cancel()
        if how == "twice":
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def program() -> None:
        buffer = bytearray(100_000)
        client = await aio.connect(url)
        calls = await calls_of(client, buffer)
        for number in range(len(calls)):
            if not client.is_connected:  # what had to be dropped took the connection along
                await client.close()
                client = await aio.connect(url)
                calls = await calls_of(client, buffer)
            stop(far_server)
            try:
                await ended(calls[number])
                assert is_free(buffer)
                assert not client._driver._waiting
            finally:
                go_on(far_server)
        await client.close()
        async with await aio.connect(url) as client:
            assert await client.exists("data")

    run(program())


def test_deadline_of_an_operation(far_server: Process, run: Run[None]) -> None:
    async def program() -> None:
        async with await aio.connect(far_server.url) as client:  # type: ignore[attr-defined]
            stop(far_server)
            try:
                with pytest.raises(TimeoutError) as failed:
                    await client.stat("data", timeout=short)
                assert failed.value.code == "timed_out"  # type: ignore[attr-defined]
            finally:
                go_on(far_server)
            assert (await client.stat("data")).size == 1 << 20

    run(program())


def test_connecting_is_cancelled(far_server: Process, run: Run[None]) -> None:
    async def program() -> None:
        stop(far_server)
        try:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(short):
                    await aio.connect(far_server.url)  # type: ignore[attr-defined]
            with pytest.raises(ucxio.Error):
                await aio.connect(far_server.url, connect_timeout=short)  # type: ignore[attr-defined]
        finally:
            go_on(far_server)
        async with await aio.connect(far_server.url) as client:  # type: ignore[attr-defined]
            assert await client.exists("data")

    run(program())


def test_files_that_open_at_once_share_what_connecting_ends_with(
    far_server: Process, run: Run[None]
) -> None:
    url = far_server.url + "/data"  # type: ignore[attr-defined]

    async def program() -> None:
        files = await asyncio.gather(*(aio.open(url) for _ in range(5)))
        assert len({id(each._client) for each in files}) == 1
        for each in files:
            await each.close()
        outcomes = await asyncio.gather(
            *(aio.open("ucx+unix:///run/none.sock/data") for _ in range(5)), return_exceptions=True
        )
        assert all(isinstance(each, ConnectionRefusedError) for each in outcomes)

    run(program())


def test_killed_server_is_a_lost_connection(far_server: Process, run: Run[None]) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]
    lost = ("connection_reset", "closed_by_peer", "connection_refused", "timed_out", "closed")

    async def program() -> None:
        client = await aio.connect(url)
        region = await client.open("data", "read_write")
        new = await aio.open(url + "/store/new", "wb")
        await new.write(b"half")
        stop(far_server)
        asked = asyncio.ensure_future(client.list())
        await asyncio.sleep(0)
        far_server.running.kill()
        far_server.running.wait()
        for call in (
            lambda: asked,
            client.list,
            lambda: region.load(0),
            new.close,
            lambda: aio.open(url + "/data"),
        ):
            with pytest.raises(OSError) as failed:
                await call()  # type: ignore[operator]
            assert isinstance(failed.value, ucxio.Error)
            assert failed.value.code in lost
        assert new.closed
        await client.close()

    run(program())


def test_cancelled_twice_is_asked_to_end_once(far_server: Process, run: Run[None]) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]

    class Counted:
        """An operation that does not end before its second look."""

        number = 0
        done = False
        cancels = 0
        released = False

        def cancel(self) -> None:
            self.cancels += 1

        def release(self) -> None:
            self.released = True

    async def program() -> None:
        async with await aio.connect(url) as client:
            for finish in (
                client._driver.finish,
                lambda operation: client._driver.finish_all([operation]),
            ):
                operation = Counted()
                task = asyncio.ensure_future(finish(operation))  # type: ignore[arg-type]
                for _ in range(3):
                    await asyncio.sleep(0)
                    task.cancel()
                await asyncio.sleep(0)
                assert operation.cancels == 1
                operation.done = True
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert operation.cancels == 1
                assert operation.released

    run(program())


def test_cancelled_write_of_a_new_file_is_no_name(far_server: Process, run: Run[None]) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]

    async def program() -> None:
        async with await aio.connect(url, **waiting(url)) as client:
            file = await aio.open("store/new", "wb", client=client)
            stop(far_server)
            try:
                task = asyncio.ensure_future(file.write(bytes(32 << 20)))
                done, _ = await asyncio.wait([task], timeout=short)
                assert not done
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            finally:
                go_on(far_server)
            with pytest.raises(ucxio.Error, match="thrown away") as failed:
                await file.close()
            assert failed.value.errno == errno.ECANCELED
            assert file.closed
        async with await aio.connect(url) as client:
            assert not await client.exists("store/new")

    run(program())


def test_close_of_a_server_that_does_not_answer_is_silent(
    far_server: Process, run: Run[None]
) -> None:
    async def program() -> None:
        client = await aio.connect(far_server.url)  # type: ignore[attr-defined]
        stop(far_server)
        try:
            await client.close()
            assert not client.is_connected
        finally:
            go_on(far_server)
        with pytest.raises(ValueError, match="closed"):
            await client.list()

    run(program())
