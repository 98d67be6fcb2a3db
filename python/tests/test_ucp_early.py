"""Messages by the names of UCX-Py's first bindings."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import socket
import sys
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
from conftest import Run, is_free, soon, until

import ucxio.ucp.early as ucp
from ucxio.ucp import exceptions
from ucxio.ucp.early import _cuda, _endpoint

sizes = [0, 1, 5000, 300_000, 5 << 20]


@pytest.fixture(autouse=True)
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A context for a test, which waits for as long as a machine may stall."""
    for name in ("UCXPY_IFNAME", "UCX_TLS", "UCX_SEG_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UCXPY_CONNECT_TIMEOUT", "100")
    monkeypatch.setattr(ucp, "_last_words", 60.0)
    monkeypatch.setattr(ucp, "_close_timeout", 60.0)
    assert ucp.init() == 0
    yield
    assert ucp.fin() == 0


def progressed(condition: Any) -> bool:
    """Wait until the condition holds, and make progress meanwhile."""

    def look() -> bool:
        ucp.progress()
        return bool(condition())

    return soon(look)


def pair() -> tuple[ucp.ucp_py_ep, ucp.ucp_py_ep]:
    """Return both ends of a connection of this process to itself."""
    accepted: list[ucp.ucp_py_ep] = []
    assert ucp.start_listener(accepted.append, 0) == 0
    mine = ucp.get_endpoint("127.0.0.1", ucp.get_listener_port())
    assert progressed(lambda: accepted)
    ucp.stop_listener()
    return mine, accepted[0]


def message(size: int) -> ucp.ucp_msg:
    region = ucp.buffer_region()
    region.alloc_host(size)
    return ucp.ucp_msg(region)


def content(of: ucp.ucp_msg) -> bytes:
    return bytes(of.get_obj())


@pytest.mark.parametrize("size", sizes)
@pytest.mark.parametrize("suffix", ["", "_fast"])
def test_message_arrives(size: int, suffix: str) -> None:
    mine, other = pair()
    out, into = message(size), message(size + 3)
    assert (out.get_comm_len(), into.get_comm_len()) == (-1, -1)
    out.set_mem(200, size)
    into.set_mem(7, size + 3)
    came = getattr(other, "recv" + suffix)(into, size + 3)
    assert not came.done()
    sent = getattr(mine, "send" + suffix)(out, size)
    assert came.result() is into
    assert sent.result() is out
    assert sent.done()
    assert came.done()
    assert (out.get_comm_len(), into.get_comm_len()) == (size, size)
    assert into.check_mem(200, size) == 0
    assert into.check_mem(200, size + 3) == 3
    assert into.check_mem(7, size + 3) == size


def test_part_of_the_memory_is_sent() -> None:
    mine, other = pair()
    out, into = message(100), message(100)
    out.set_mem(1, 100)
    sent = mine.send(out, 40)
    assert other.recv(into, 50).result().get_comm_len() == 40
    sent.result()
    assert into.check_mem(1, 100) == 60
    for length in (101, -1):
        with pytest.raises(ValueError, match="bytes"):
            mine.send(out, length)
        with pytest.raises(ValueError, match="bytes"):
            other.recv(into, length)


def test_message_that_is_too_long_is_lost_and_no_more() -> None:
    mine, other = pair()
    into = message(10)
    mine.send_obj(bytes(11), 11).result()
    mine.send_obj(bytes([1]) * 10, 10).result()
    came = other.recv(into, 10)
    with pytest.raises(exceptions.UCXMsgTruncated):
        came.result()
    assert isinstance(came.exception(), exceptions.UCXMsgTruncated)
    assert came.done()
    assert into.check_mem(0, 10) == 0
    other.recv(into, 10).result()
    assert into.check_mem(1, 10) == 0


@pytest.mark.parametrize("size", sizes)
def test_blind_receive_makes_memory(size: int) -> None:
    mine, other = pair()
    came = other.recv_future()
    out = message(size)
    out.set_mem(5, size)
    sent = mine.send(out, size)
    found = came.result()
    sent.result()
    assert found.get_comm_len() == size
    assert found.check_mem(5, size) == 0
    assert ucp.get_obj_from_msg(found) == bytes([5]) * size
    found.free_mem()
    with pytest.raises(ValueError, match="no object"):
        found.get_obj()


@pytest.mark.parametrize("names", [("send_obj", "recv_obj"), ("send_msg", "recv_msg")])
def test_objects_arrive(names: tuple[str, str]) -> None:
    mine, other = pair()
    send, receive = getattr(mine, names[0]), getattr(other, names[1])
    for sent in ("a text of é and 中", "é" * 5000, "", b"some bytes", b""):
        for template in ("?", b"?"):
            going = send(sent, sys.getsizeof(sent))
            came = receive(template, sys.getsizeof(template)).result()
            going.result()
            assert ucp.get_obj_from_msg(came) == sent
            assert ucp.get_obj_from_msg(came) is ucp.get_obj_from_msg(came)
            assert template in ("?", b"?")
        going = send(sent, sys.getsizeof(sent))
        assert other.recv_future().result().get_obj() == sent
        going.result()
    numbers = numpy.arange(1000.0).reshape(10, 100)
    for into in (numpy.zeros((10, 100)), bytearray(8000)):
        going = send(numbers, sys.getsizeof(numbers))
        assert receive(into, sys.getsizeof(into)).result().get_obj() is into
        going.result()
        assert bytes(into) == numbers.tobytes()
    going = send(numbers, 0)
    came = receive(b"", 0).result()
    assert came.get_obj() == numbers.tobytes()
    assert came.get_comm_len() == going.result().get_comm_len() == 8000
    region = ucp.buffer_region()
    region.populate_ptr(numbers)
    for length in (16, 1 << 20):
        going = mine.send(ucp.ucp_msg(region), length)
        assert other.recv_future().result().get_obj() == numbers.tobytes()[:length]
        assert going.result().get_comm_len() == min(length, 8000)


def test_only_text_and_buffers_are_objects() -> None:
    mine, other = pair()
    for each in (5, ["list"], None, object()):
        with pytest.raises(TypeError):
            mine.send_obj(each, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            other.recv_obj(each, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="contiguous"):
        mine.send_obj(numpy.zeros((4, 4)).T[1:], 1)


def test_text_that_is_no_text_is_refused_when_it_is_looked_at() -> None:
    mine, other = pair()
    assert mine._core is not None
    going = mine._core.send(b"\xff", _endpoint._text_tag)
    came = other.recv_future().result()
    assert progressed(lambda: going.done)
    with pytest.raises(UnicodeDecodeError):
        came.get_obj()
    assert came.check_mem(255, 1) == 0


def test_each_receive_takes_the_next_message() -> None:
    mine, other = pair()
    into = message(3)
    receives: list[Any] = [
        other.recv(into, 3),
        other.recv_future(),
        other.recv_obj("", 0),
        other.recv_fast(message(3), 3),
    ]
    for each in ("one", b"two", "é", b"4"):
        mine.send_obj(each, 3)
    for number in (3, 1, 0, 2):
        receives[number].result()
    assert [ucp.get_obj_from_msg(each.result()) for each in receives[1:3]] == [b"two", "é"]
    assert content(into) == b"one"
    assert content(receives[3].result()) == b"4\0\0"


def test_memory_of_a_region() -> None:
    region = ucp.buffer_region()
    assert "empty" in repr(region)
    for call in (region.return_obj, lambda: ucp.ucp_msg(region).set_mem(1, 1)):
        with pytest.raises(ValueError, match="no object|no memory"):
            call()
    region.alloc_host(4)
    assert "4 bytes of the host" in repr(region)
    made = ucp.ucp_msg(region)
    made.set_mem(511, 3)
    assert region.return_obj() == b"\xff\xff\xff\0"
    assert made.check_mem(-1, 4) == 1
    with pytest.raises(ValueError, match="5 bytes"):
        made.set_mem(1, 5)
    region.free_host()
    region.free_host()
    with pytest.raises(ValueError, match="no memory"):
        made.check_mem(1, 1)
    region.populate_ptr("text")
    assert region.return_obj() == "text"
    assert "str" in repr(made)
    with pytest.raises(TypeError):
        region.populate_ptr(3)  # type: ignore[arg-type]
    assert region.return_obj() == "text"
    own = ucp.ucp_msg()
    own.alloc_host(2)
    own.set_mem(1, 2)
    own.free_mem()  # it is the program's
    assert own.get_obj() == b"\1\1"
    own.free_host()
    with pytest.raises(ValueError, match="no object"):
        own.get_obj()


def test_memory_that_was_let_go_stays_until_the_transfer_ends() -> None:
    mine, other = pair()
    out, into = message(5 << 20), message(5 << 20)
    out.set_mem(1, 5 << 20)
    memory = into.get_obj()
    came, sent = other.recv(into, 5 << 20), mine.send(out, 5 << 20)
    out.free_host()
    into.free_host()
    assert not is_free(memory)
    came.result()
    sent.result()
    assert memory == bytes([1]) * (5 << 20)
    assert is_free(memory)


def test_memory_of_devices(cuda_driver: str) -> None:
    assert ucp.set_cuda_dev(0) == 0
    mine, other = pair()
    size = 300_000
    regions = [ucp.buffer_region() for _ in range(2)]
    for each in regions:
        each.alloc_cuda(size)
    assert f"{size} bytes of a device" in repr(regions[0])
    out, into = map(ucp.ucp_msg, regions)
    out.set_mem(200, size)
    into.set_mem(1, size)
    came = other.recv(into, size)
    sent = mine.send(out, size - 5)
    regions[0].free_cuda()
    assert came.result().get_comm_len() == size - 5
    sent.result()
    assert into.check_mem(200, size) == 5
    with pytest.raises(ValueError, match="no object"):
        into.get_obj()
    with pytest.raises(ValueError, match="bytes"):
        into.set_mem(1, size + 1)
    with pytest.raises(ValueError, match="-1 bytes"):
        into.alloc_cuda(-1)
    into.free_cuda()
    own = ucp.ucp_msg()
    own.alloc_cuda(0)
    assert own.check_mem(0, 0) == 0
    with pytest.raises(exceptions.UCXError, match="cuDeviceGet"):
        ucp.set_cuda_dev(1 << 20)


def test_memory_of_devices_needs_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UCXIO_CUDA_DRIVER", "/nowhere/libcuda.so")
    monkeypatch.setattr(_cuda, "_library", _cuda._library.__wrapped__)
    with pytest.raises(exceptions.UCXError, match="nowhere"):
        ucp.buffer_region().alloc_cuda(1)


def test_future_has_the_methods_of_futures() -> None:
    mine, other = pair()
    told: list[Any] = []
    came = other.recv_future()
    assert isinstance(came, ucp.CommFuture)
    assert isinstance(came, concurrent.futures.Future)
    assert "pending" in repr(came)
    came.add_done_callback(told.append)
    with pytest.raises(TimeoutError):
        came.result(timeout=0.001)
    with pytest.raises(TimeoutError):
        came.exception(timeout=0)
    mine.send_obj("x", 1)
    assert progressed(came.done)
    assert told == [came]
    assert came.exception() is None
    assert came.result(timeout=0).get_obj() == "x"
    assert not came.cancel()
    assert "done" in repr(came)


def test_future_is_cancelled_when_its_memory_is_free() -> None:
    mine, other = pair()
    into = message(3)
    came = other.recv(into, 3)
    assert came.cancel()
    assert came.cancelled()
    assert came.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        came.result()
    assert is_free(into.get_obj())
    mine.send_obj("one", 3)
    assert other.recv(into, 3).result().get_obj() == b"one"


def test_transfers_are_awaited(run: Run[None]) -> None:
    async def program() -> None:
        accepted: asyncio.Future[ucp.ucp_py_ep] = asyncio.get_running_loop().create_future()
        ucp.start_server(accepted.set_result, server_port=0)
        mine = ucp.get_endpoint(b"localhost", ucp.get_listener_port())
        other = await accepted
        came = other.recv_future()
        tasks = [asyncio.ensure_future(wait_for(came)) for _ in range(3)]
        into = message(300_000)
        fast = other.recv_fast(into, 300_000)
        await asyncio.sleep(0)
        assert not came.done()
        assert await mine.send_obj("text", 4) is not None
        assert [each.get_obj() for each in await asyncio.gather(*tasks)] == ["text"] * 3
        assert (await came).get_obj() == "text"
        assert came.result().get_obj() == "text"
        out = message(300_000)
        out.set_mem(3, 300_000)
        sent = mine.send(out, 300_000)
        assert await fast is into
        assert await sent is out
        assert into.check_mem(3, 300_000) == 0
        truncated = other.recv(into, 1)
        await mine.send_obj("ab", 2)
        with pytest.raises(exceptions.UCXMsgTruncated):
            await truncated
        with pytest.raises(exceptions.UCXMsgTruncated):
            await truncated
        assert ucp.destroy_ep(mine) == 0

    run(program())


async def wait_for(future: ucp.CommFuture) -> ucp.ucp_msg:
    return await future


def test_cancelled_task_gives_its_transfer_up(run: Run[None]) -> None:
    async def program() -> None:
        accepted: asyncio.Future[ucp.ucp_py_ep] = asyncio.get_running_loop().create_future()
        ucp.start_listener(accepted.set_result, 0)
        mine = ucp.get_endpoint("127.0.0.1", ucp.get_listener_port())
        other = await accepted
        into = message(3)
        came = other.recv(into, 3)
        first, second = (asyncio.ensure_future(wait_for(came)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert is_free(into.get_obj())
        with pytest.raises(exceptions.UCXCanceled):
            await second
        assert came.done()
        with pytest.raises(exceptions.UCXCanceled):
            came.result()
        await mine.send_obj("one", 3)
        await other.recv_fast(into, 3)
        assert into.get_obj() == b"one"

    run(program())


@pytest.mark.parametrize("older", [False, True])
def test_coroutine_of_a_listener_ends_when_it_stops(run: Run[None], older: bool) -> None:
    start = ucp.start_server if older else ucp.start_listener
    stop = ucp.stop_server if older else ucp.stop_listener
    served: list[str] = []

    async def greet(ep: ucp.ucp_py_ep) -> None:
        await ep.send_obj("hello", 5)
        served.append((await ep.recv_future()).get_obj())
        ucp.destroy_ep(ep)
        if len(served) == 2:
            stop()

    async def ask(ep: ucp.ucp_py_ep) -> None:
        assert (await ep.recv_obj("", 0)).get_obj() == "hello"
        await ep.send_obj("thanks", 6)

    coroutine = start(greet, 0, is_coroutine=True)
    assert not isinstance(coroutine, int)
    # Both are there before the loop runs.
    peers = [ucp.get_endpoint("127.0.0.1", ucp.get_listener_port()) for _ in range(2)]

    async def program() -> None:
        await asyncio.gather(coroutine, *map(ask, peers))

    run(program())
    assert served == ["thanks"] * 2
    stop()
    with pytest.raises(RuntimeError, match="no listener"):
        ucp.get_listener_port()


def test_fin_ends_the_coroutine_of_a_listener(run: Run[None]) -> None:
    async def program() -> None:
        coroutine = ucp.start_listener(print, 0, is_coroutine=True)
        assert not isinstance(coroutine, int)
        task = asyncio.create_task(coroutine)
        await asyncio.sleep(0)
        assert not task.done()
        ucp.fin()
        await task

    run(program())


def test_function_that_raises_is_told(caplog: pytest.LogCaptureFixture) -> None:
    def accept(ep: ucp.ucp_py_ep) -> None:
        ucp.destroy_ep(ep)
        raise KeyError("mine")

    ucp.start_listener(accept, 0)
    with caplog.at_level(logging.ERROR, "ucx"):
        made = ucp.get_endpoint("127.0.0.1", ucp.get_listener_port())
        assert progressed(lambda: caplog.records)
    assert "accept" in caplog.text
    with pytest.raises(exceptions.UCXCanceled):
        made.recv_future().result()


def test_message_is_received_after_its_endpoint_was_closed() -> None:
    mine, other = pair()
    mine.send_obj("last", 4).result()
    into = message(1)
    waiting = mine.recv(into, 1)
    assert ucp.destroy_ep(mine) == 0
    assert "closed" in repr(mine)
    with pytest.raises(exceptions.UCXCanceled):
        waiting.result()
    assert is_free(into.get_obj())
    assert ucp.destroy_ep(mine) == 0
    for call in (mine.recv_future, lambda: mine.send_obj("x", 1), lambda: mine.recv(into, 1)):
        with pytest.raises(exceptions.UCXCloseError):
            call()
    assert other.recv_future().result().get_obj() == "last"
    with pytest.raises(exceptions.UCXCanceled):
        other.recv_future().result()
    with pytest.raises(exceptions.UCXError):
        other.send_obj("x", 1).result()
    ucp.destroy_ep(other)


def test_context_is_made_and_dropped() -> None:
    with pytest.raises(RuntimeError, match="fin"):
        ucp.init()
    mine, other = pair()
    came = other.recv_future()
    assert ucp.fin() == 0
    assert ucp.fin() == 0
    with pytest.raises(exceptions.UCXCanceled):
        came.result()
    with pytest.raises(exceptions.UCXCloseError):
        mine.recv_future()
    for call in (
        ucp.progress,
        lambda: ucp.get_endpoint("127.0.0.1", 1),
        lambda: ucp.start_server(print),
    ):
        with pytest.raises(RuntimeError, match="init"):
            call()
    ucp.init()
    again, _ = pair()
    assert ucp.destroy_ep(again) == 0


def test_places_where_nobody_listens(unused_port: int) -> None:
    with pytest.raises(exceptions.UCXNotConnected):
        ucp.get_endpoint("127.0.0.1", unused_port)
    for name in ("no.such.host.invalid", "a" * 300):
        with pytest.raises(exceptions.UCXUnreachable):
            ucp.get_endpoint(name, 1)
    with pytest.raises(exceptions.UCXError):
        ucp.start_listener(print, unused_port)
    ucp.start_listener(print, 0)
    with pytest.raises(RuntimeError, match="already"):
        ucp.start_server(print, 0)


def test_listener_is_of_loopback_and_of_the_old_port(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ucp._usual_port == 13337
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = int(probe.getsockname()[1])
    monkeypatch.setattr(ucp, "_usual_port", free)
    ucp.start_server(print)
    assert ucp.get_listener_port() == free
    assert ucp._listener is not None
    assert ucp._listener._core.host == "127.0.0.1"
    ucp.stop_server()
    ucp.start_server(print, 0, ip_address="127.0.0.2")
    assert ucp._listener._core.host == "127.0.0.2"


def test_loop_drives_what_a_call_waits_for(run: Run[None]) -> None:
    """A call that waits in a loop takes the news of tasks, which go on all the same."""

    async def program() -> None:
        accepted: list[ucp.ucp_py_ep] = []
        ucp.start_listener(accepted.append, 0)
        mine = ucp.get_endpoint("127.0.0.1", ucp.get_listener_port())
        assert await until(lambda: accepted)
        task = asyncio.ensure_future(wait_for(accepted[0].recv_future()))
        await asyncio.sleep(0)
        mine.send_obj("x", 1).result()
        ucp.get_endpoint("127.0.0.1", ucp.get_listener_port())
        assert (await task).get_obj() == "x"

    run(program())
