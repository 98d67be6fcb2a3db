"""Messages from and into memory of CUDA devices, by a driver that tests pretend to have."""

from __future__ import annotations

import asyncio

import pytest
from conftest import Run, run_in
from test_devices import Array, Driver, driver  # noqa: F401
from test_ucp import anew, counting, ends, pair  # noqa: F401

from ucxio import ucp
from ucxio.ucp import exceptions


@pytest.fixture
def run() -> Run[None]:
    return lambda program: run_in("asyncio", program)


@pytest.mark.parametrize("size", [100, 300_000])
def test_messages_of_devices(driver: Driver, run: Run[None], size: int) -> None:  # noqa: F811
    async def program() -> None:
        mine, other, listener = await pair()
        source, target = driver.memory(counting(size)), driver.memory(bytes(size))
        into = bytearray(size)
        await asyncio.gather(mine.send(Array(source)), other.recv(into))
        assert into == counting(size)
        await asyncio.gather(mine.send_obj(Array(source)), other.recv_obj())
        await asyncio.gather(mine.send(into), other.recv(Array(target)))
        assert target.content() == counting(size)
        sends = asyncio.gather(mine.am_send(Array(source)), return_exceptions=True)
        with pytest.raises(exceptions.UCXError, match='no allocator of type "cuda"'):
            await other.am_recv()
        await sends
        ucp.register_am_allocator(lambda length: Array(driver.memory(bytes(length))), "cuda")
        _, came = await asyncio.gather(mine.am_send(Array(source)), other.am_recv())
        assert came.memory.content() == counting(size)
        stream = driver.stream()
        driver.fill(source, 7, stream)
        await asyncio.gather(mine.send(Array(source, stream=stream)), other.recv(into))
        assert into == bytes([7]) * size
        listener.close()
        await ends(mine, other)

    run(program())
