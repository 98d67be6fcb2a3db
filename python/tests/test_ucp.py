"""Messages by the names of UCX-Py."""

from __future__ import annotations

import array
import asyncio
import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import pytest
from conftest import Run, is_free, new_messages, until

from ucxio import ucp
from ucxio.ucp import exceptions

sizes = [0, 1, 5000, 300_000, 5 << 20]


anew = pytest.fixture(autouse=True)(new_messages)


async def pair() -> tuple[ucp.Endpoint, ucp.Endpoint, ucp.Listener]:
    """Return both ends of a connection of this process to itself, and the listener."""
    accepted: asyncio.Future[ucp.Endpoint] = asyncio.get_running_loop().create_future()
    listener = ucp.create_listener(accepted.set_result)
    mine = await ucp.create_endpoint(listener.ip, listener.port)
    return mine, await accepted, listener


async def ends(*endpoints: ucp.Endpoint) -> None:
    for each in endpoints:
        await each.close()


def counting(size: int) -> bytes:
    return bytes(bytearray(range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("size", sizes)
def test_message_arrives(run: Run[None], size: int) -> None:
    async def program() -> None:
        async def echo(peer: ucp.Endpoint) -> None:
            length = numpy.empty(1, "u8")
            await peer.recv(length)
            came = bytearray(length[0])
            await peer.recv(came)
            await peer.send(came)
            await peer.close()

        listener = ucp.create_listener(echo)
        endpoint = await ucp.create_endpoint(ucp.get_address(), listener.port)
        await endpoint.send(numpy.array([size], "u8"))
        await endpoint.send(counting(size))
        came = numpy.zeros(size, "u1")
        await endpoint.recv(came)
        assert came.tobytes() == counting(size)
        listener.close()
        await endpoint.close()

    run(program())


@pytest.mark.parametrize("allocator", [bytearray, partial(numpy.empty, dtype="u1")])
def test_object_arrives_with_its_length(run: Run[None], allocator: Callable[[int], Any]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        sent = numpy.arange(100_000, dtype="f8").reshape(100, 1000)
        _, came = await asyncio.gather(
            mine.send_obj(sent, tag="x"), other.recv_obj(tag="x", allocator=allocator)
        )
        assert bytes(came) == sent.tobytes()
        assert type(came) is type(allocator(0))
        listener.close()
        await ends(mine, other)

    run(program())


def test_several_buffers_are_one_message(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        sent = [b"abc", b"", numpy.arange(10_000, dtype="u4"), bytearray(1 << 20)]
        for tag in (None, 3):
            _, came = await asyncio.gather(
                mine.send_multi(sent, tag=tag), other.recv_multi(tag=tag)
            )
            assert [bytes(each) for each in came] == [bytes(each) for each in sent]
            came[0][:1] = b"A"
            assert bytes(came[0]) == b"Abc"
        await mine.send_multi([], tag=1 << 63, force_tag=True)
        assert await other.recv_multi(tag=1 << 63, force_tag=True) == []
        listener.close()
        await ends(mine, other)
        assert bytes(came[0]) == b"Abc"  # they are the program's

    run(program())


def test_message_goes_to_the_receive_with_its_tag(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        tags: list[Any] = ["b", b"b", 1, ("b", 1), None, -1, 2.5]
        found = [bytearray(1) for _ in tags]
        waiting = [
            asyncio.create_task(other.recv(into, tag=tag))
            for tag, into in zip(tags, found, strict=True)
        ]
        for number, tag in reversed(list(enumerate(tags))):
            assert not waiting[number].done()
            await mine.send(bytes([number]), tag=True if tag == 1 else tag)
            await waiting[number]
        assert [each[0] for each in found] == list(range(len(tags)))
        listener.close()
        await ends(mine, other)

    run(program())


def test_messages_of_a_tag_come_in_order(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        lengths = [10, 200_000, 3, 0, 1 << 20, 70_000]
        sends = asyncio.gather(*(mine.send(counting(each)) for each in lengths))
        for each in lengths:
            into = bytearray(each)
            await other.recv(into)
            assert into == counting(each)
        await sends
        listener.close()
        await ends(mine, other)

    run(program())


@pytest.mark.parametrize("size", [3, 500_000])
def test_message_of_another_length_is_told(run: Run[None], size: int) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        sends = asyncio.gather(
            *(mine.send(counting(size)) for _ in range(3)), return_exceptions=True
        )
        with pytest.raises(
            exceptions.UCXMsgTruncated, match=rf"{size} \(got\) != {size + 9} \(exp"
        ):
            await other.recv(bytearray(size + 9))
        short = bytearray(size - 1)
        with pytest.raises(exceptions.UCXMsgTruncated) as failed:
            await other.recv(short)
        assert isinstance(failed.value, exceptions.UCXError)
        assert short == bytes(size - 1)
        whole = bytearray(size)
        await other.recv(whole)
        assert whole == counting(size)
        outcomes = await sends
        assert outcomes[0] is None
        assert outcomes[2] is None
        assert size == 3 or isinstance(outcomes[1], exceptions.UCXMsgTruncated)
        listener.close()
        await ends(mine, other)

    run(program())


@pytest.mark.parametrize("size", sizes)
@pytest.mark.parametrize("waits", [False, True])
def test_active_message_arrives(run: Run[None], size: int, waits: bool) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        sent = counting(size)
        if waits:
            receives = asyncio.create_task(other.am_recv())
            assert await until(lambda: other._line)
            await mine.am_send(sent)
            came = await receives
        else:
            sends = asyncio.create_task(mine.am_send(sent))
            assert await until(lambda: other._ep is not None and other._ep.has_active)
            came = await other.am_recv()
            await sends
        assert type(came) is bytearray
        assert came == sent
        listener.close()
        await ends(mine, other)

    run(program())


def test_active_messages_come_in_order_into_what_the_allocator_makes(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        ucp.register_am_allocator(partial(numpy.empty, dtype="u1"), "host")
        with pytest.raises(exceptions.UCXError, match="no type"):
            ucp.register_am_allocator(bytearray, "disk")
        lengths = [4, 100_000, 0, 9, 2 << 20]
        receives = [asyncio.create_task(other.am_recv()) for _ in lengths]
        given_up = asyncio.create_task(other.am_recv())
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(*(mine.am_send(counting(each)) for each in lengths))
        for length, receive in zip(lengths, receives, strict=True):
            came = await receive
            assert came.dtype == "u1"
            assert came.tobytes() == counting(length)
        with pytest.raises(asyncio.CancelledError):
            await given_up
        listener.close()
        await ends(mine, other)

    run(program())


calls: dict[str, Callable[[ucp.Endpoint], Any]] = {
    r"am_recv": lambda endpoint: endpoint.am_recv(),
    r"Recv.*tag": lambda endpoint: endpoint.recv(bytearray(1)),
    r"Recv #.*tag: 0x7": lambda endpoint: endpoint.recv(bytearray(1), tag=7, force_tag=True),
    r"Recv Multi.*tag": lambda endpoint: endpoint.recv_multi(),
}


@pytest.mark.parametrize("text", list(calls))
@pytest.mark.parametrize(
    ("how", "run"),
    [
        ("peer", "asyncio"),
        ("peer", "uvloop"),
        ("self", "asyncio"),
        ("abort", "asyncio"),
        ("peer aborts", "asyncio"),
    ],
    indirect=["run"],
)
def test_end_of_the_endpoint_cancels_a_receive(run: Run[None], text: str, how: str) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        receives = asyncio.create_task(calls[text](mine))
        assert await until(lambda: mine._receives or mine._line)
        if how == "abort":
            mine.abort()
        elif how == "peer aborts":
            other.abort()
        else:
            await (mine if how == "self" else other).close()
        with pytest.raises(exceptions.UCXCanceled, match=text):
            await receives
        assert mine.closed
        assert mine.closed() is True
        ended = (exceptions.UCXCloseError, exceptions.UCXConnectionReset)
        for call in calls.values():
            with pytest.raises(ended):
                await call(mine)
        for call in (
            lambda: mine.send(b"x"),
            lambda: mine.am_send(b"x"),
            lambda: mine.send_obj(b"x"),
            lambda: mine.send_multi([b"x"]),
            mine.flush,
        ):
            with pytest.raises(ended):
                await call()
        listener.close()
        await ends(mine, other, mine)

    run(program())


@pytest.mark.parametrize("kind", ["tag", "active"])
@pytest.mark.parametrize("closes", [True, False])
def test_messages_from_before_the_end_are_received(run: Run[None], kind: str, closes: bool) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        if kind == "tag":
            await mine.send(b"one")
            await mine.send(b"two")
        else:
            await mine.am_send(b"one")
            await mine.am_send(b"two")
        if closes:
            await mine.close()
        else:
            del mine  # what was sent goes out all the same
        assert await until(lambda: other.closed)
        for expected in (b"one", b"two"):
            came = bytearray(3)
            if kind == "tag":
                await other.recv(came)
            else:
                came = await other.am_recv()
            assert came == expected
        with pytest.raises(exceptions.UCXCloseError):
            await other.recv(bytearray(3))
        listener.close()
        await other.close()

    run(program())


def test_endpoint_closes_itself_after_some_messages(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()

        async def receive() -> None:
            await other.send(b"x")
            await mine.recv(bytearray(1))

        await receive()
        await receive()
        with pytest.raises(exceptions.UCXError, match="`n` cannot be less than current recv_count"):
            mine.close_after_n_recv(1, count_from_ep_creation=True)
        mine.close_after_n_recv(1)
        with pytest.raises(exceptions.UCXError, match="close_after_n_recv has already been set to"):
            mine.close_after_n_recv(1)
        assert not mine.closed
        await receive()
        assert mine.closed
        await other.close()
        mine, other, _ = await pair()
        mine.close_after_n_recv(2, count_from_ep_creation=True)
        await other.send(b"short")
        with pytest.raises(exceptions.UCXMsgTruncated):  # it does not count
            await mine.recv(bytearray(6))
        await other.am_send(b"x")
        await mine.am_recv()
        await other.send_multi([b"x"])
        await mine.recv_multi()
        assert mine.closed
        again, other, _ = await pair()
        again.close_after_n_recv(0)
        assert again.closed
        listener.close()

    run(program())


@pytest.mark.parametrize("how", ["peer", "peer aborts", "close", "abort", "drop"])
@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_close_callback_is_called_once(run: Run[None], how: str, kind: str) -> None:
    async def program() -> None:
        told: list[str] = []
        mine, other, listener = await pair()

        def function() -> None:
            told.append("end")

        async def coroutine() -> None:
            await asyncio.sleep(0)
            function()

        mine.set_close_callback(function if kind == "function" else coroutine)
        if how == "peer":
            await other.close()
        elif how == "peer aborts":
            other.abort()
        elif how == "close":
            await mine.close()
        elif how == "abort":
            mine.abort()
        else:
            del mine
            gc.collect()
        assert await until(lambda: told)
        if how != "drop":
            await mine.close()
            mine.abort()
            mine.set_close_callback(lambda: told.append("more"))
        await other.close()
        assert told == ["end"]
        listener.close()

    run(program())


def test_listener(run: Run[None]) -> None:
    async def program() -> None:
        unhandled: list[object] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, what: unhandled.append((type(what["exception"]), what["message"]))
        )

        connected = asyncio.Event()

        async def fails(endpoint: ucp.Endpoint) -> None:
            await connected.wait()
            del endpoint  # the exception has the frames
            raise KeyError("mine")

        listener = ucp.create_listener(fails)
        assert listener.ip == "127.0.0.1" == ucp.get_address()
        assert listener.closed() is False
        assert not listener.closed
        assert f"127.0.0.1:{listener.port}, open" in repr(listener)
        with pytest.raises(exceptions.UCXError, match="another process listens"):
            ucp.create_listener(fails, listener.port)
        endpoint = await ucp.create_endpoint("localhost", listener.port)
        connected.set()
        assert await until(lambda: unhandled)
        assert unhandled == [(KeyError, f"Exception in {fails!r} of ucxio")]
        with pytest.raises(exceptions.UCXBaseException):  # the other end has gone
            await endpoint.recv(bytearray(1))
        port = listener.port
        listener.close()
        listener.close()
        assert listener.closed() is True
        with pytest.raises(exceptions.UCXNotConnected):
            await ucp.create_endpoint(listener.ip, port)
        dropped = ucp.create_listener(fails, ip_address="0.0.0.0")
        assert dropped.ip == "0.0.0.0"
        port = dropped.port
        del dropped
        gc.collect()
        with pytest.raises(exceptions.UCXError):
            await ucp.create_endpoint("127.0.0.1", port)
        await endpoint.close()

    run(program())


def test_connecting_fails(run: Run[None], unused_port: int) -> None:
    async def program() -> None:
        with pytest.raises(exceptions.UCXNotConnected) as failed:
            await ucp.create_endpoint("127.0.0.1", unused_port)
        assert isinstance(failed.value, exceptions.UCXError)
        with pytest.raises(OSError):
            await ucp.create_endpoint("no host of this name", unused_port)
        with pytest.raises(exceptions.UCXError):
            await ucp.create_endpoint_from_worker_address(ucp.UCXAddress(b"damaged"))
        with pytest.raises(OSError):
            ucp.get_address("nothing0")
        assert ucp.get_address("lo") == "127.0.0.1"

    run(program())


def test_given_up_receive_has_let_go_of_its_buffer(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        into = bytearray(5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await mine.recv(into)
        assert is_free(into)
        await other.send(b"later")
        await mine.recv(into)
        assert into == b"later"
        listener.close()
        await ends(mine, other)

    run(program())


def test_sender_waits_where_messages_are_not_received(run: Run[None]) -> None:
    """More than the worker keeps of one peer: 4 MiB."""

    async def program() -> None:
        mine, other, listener = await pair()
        part = counting(50_000)
        sends = [asyncio.create_task(mine.send(part)) for _ in range(200)]
        assert await until(lambda: any(each.done() for each in sends))
        for _ in range(500):
            await asyncio.sleep(0)
        assert sum(each.done() for each in sends) * len(part) <= 4 << 20
        into = bytearray(len(part))
        for _ in sends:
            await other.recv(into)
            assert into == part
        await asyncio.gather(*sends)
        listener.close()
        await ends(mine, other)

    run(program())


def test_wrong_arguments(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        with pytest.raises(TypeError, match="read-only"):
            await mine.recv(b"0123")
        with pytest.raises(TypeError, match="an object with a buffer"):
            await mine.send("text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="an object with a buffer"):
            await mine.send_obj(None)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="strides"):
            await mine.am_send(numpy.zeros((2, 2), order="F"))
        with pytest.raises(TypeError, match="a number"):
            await mine.send(b"x", tag="x", force_tag=True)
        with pytest.raises(TypeError):
            await mine.send(b"x", tag=-1, force_tag=True)
        with pytest.raises(TypeError, match="unhashable"):
            await mine.send(b"x", tag=[])  # type: ignore[arg-type]
        await mine.send(b"x")  # it lives on
        await other.recv(array.array("B", [0]))
        listener.close()
        await ends(mine, other)

    run(program())


def test_facts(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        assert mine.uid != other.uid
        assert mine.get_ucp_worker() == other.get_ucp_worker() == ucp.get_ucp_worker() > 0
        assert mine.get_ucp_endpoint() > 0
        assert mine.cuda_support() in (True, False)
        assert "tcp" in mine.ucx_info()
        assert hex(mine.uid) in repr(mine)
        assert "open" in repr(mine)
        assert (repr(mine.closed), repr(mine.closed())) == ("False", "False")
        ucp.fence()
        await ucp.flush()
        await mine.flush()
        assert ucp.progress() in (True, False)
        ucp.continuous_ucx_progress()
        ucp.continuous_ucx_progress(asyncio.get_running_loop())
        listener.close()
        await ends(mine, other)
        assert "closed" in repr(mine)

    run(program())
