"""What endpoints and listeners of `ucxio.ucp` leave behind, and news that are told late."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading
import weakref
from typing import Any

import pytest
from conftest import Run, make_loop, new_messages, soon, until
from test_ucp import ends, pair

from ucxio import Error, ErrorCode, _core, ucp
from ucxio.aio import _driver
from ucxio.ucp import _context, exceptions

anew = pytest.fixture(autouse=True)(new_messages)


@pytest.mark.parametrize("times", [1, 3])
def test_news_outlast_what_is_raised_in_a_turn(
    run: Run[None], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    async def program() -> None:
        unhandled: list[type[BaseException]] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, what: unhandled.append(type(what["exception"]))
        )
        accepted: list[ucp.Endpoint] = []
        listener = ucp.create_listener(accepted.append)
        tell = _context.Context.tell

        def fail(context: _context.Context, number: int) -> None:
            if len(unhandled) < times:
                raise MemoryError
            tell(context, number)

        monkeypatch.setattr(_context.Context, "tell", fail)
        mine = await ucp.create_endpoint(listener.ip, listener.port)
        assert await until(lambda: accepted)
        assert unhandled == [MemoryError] * times
        receives = asyncio.create_task(mine.am_recv())
        await accepted[0].am_send(b"x")
        assert await receives == b"x"
        listener.close()
        await ends(mine, *accepted)

    run(program())


def test_progress_that_raises_loses_no_news(
    run: Run[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> None:
        accepted: list[ucp.Endpoint] = []
        listener = ucp.create_listener(accepted.append)
        told: list[int] = []
        tell = _context.Context.tell

        def fail(context: _context.Context, number: int) -> None:
            told.append(number)
            if len(told) == 1:
                raise KeyboardInterrupt
            tell(context, number)

        monkeypatch.setattr(_context.Context, "tell", fail)
        connects = asyncio.create_task(ucp.create_endpoint(listener.ip, listener.port))
        await asyncio.sleep(0)  # it has begun
        with pytest.raises(KeyboardInterrupt):
            soon(lambda: (ucp.progress(), False)[1])
        mine = await connects
        assert await until(lambda: accepted)
        listener.close()
        await ends(mine, *accepted)

    run(program())


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_tasks_of_a_closed_loop_are_left_out(kind: str) -> None:
    unhandled: list[dict[str, Any]] = []
    first, second = make_loop(kind), make_loop(kind)
    second.set_exception_handler(lambda _, what: unhandled.append(what))
    mine, other, listener = second.run_until_complete(pair())

    async def begin() -> list[asyncio.Task[Any]]:
        tasks = [
            asyncio.create_task(mine.recv(bytearray(5))),
            asyncio.create_task(mine.am_recv()),
        ]
        assert await until(lambda: mine._receives and mine._line)
        return tasks

    async def program() -> None:
        into = bytearray(6)
        receives = asyncio.create_task(mine.recv(into))
        await other.send(b"first")  # for the task of the closed loop
        await other.send(b"second")
        await other.am_send(b"x")
        await receives
        assert into == b"second"
        await other.close()
        assert await until(lambda: mine.closed)

    left = first.run_until_complete(begin())
    first.close()
    second.run_until_complete(asyncio.wait_for(program(), 120))
    assert unhandled == []
    for each in left:
        each._log_destroy_pending = False  # type: ignore[attr-defined]
    del each
    left.clear()
    mine.abort()
    listener.close()
    second.close()


def test_future_of_a_loop_of_another_thread_is_set() -> None:
    waits = threading.Event()
    futures: list[asyncio.Future[None]] = []

    async def program() -> None:
        futures.append(asyncio.get_running_loop().create_future())
        waits.set()
        await asyncio.wait_for(futures[0], 60)

    other = threading.Thread(target=asyncio.run, args=(program(),))
    other.start()
    assert waits.wait(60)
    _driver.set_done(futures[0])
    other.join(60)
    assert not other.is_alive()
    assert futures[0].done()
    assert not futures[0].cancelled()


@pytest.mark.parametrize("stands", [True, False])
def test_closed_listener_leaves_no_peer(run: Run[None], stands: bool) -> None:
    """It passes on those that have connected, and closes the others."""

    async def program() -> None:
        accepted: list[ucp.Endpoint] = []
        listener = ucp.create_listener(accepted.append)
        told: list[int] = []
        # The listener itself is told nothing, as if the peer had come just now.
        number, context = listener._core.number, ucp._get_ctx()
        context.listen_to(number, lambda: told.append(number), keep=True)
        mine = await ucp.create_endpoint(listener.ip, listener.port)
        if stands:
            assert await until(lambda: told)
            listener.close()
            assert await until(lambda: accepted)
            await accepted[0].send(b"x")
            await mine.recv(bytearray(1))
        else:
            listener._core.close()
            with pytest.raises(exceptions.UCXBaseException):
                await mine.recv(bytearray(1))
            listener.close()
            assert accepted == []
        await ends(mine, *accepted)

    run(program())


def test_given_up_receives_keep_no_endpoint(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await mine.am_recv()
        assert mine._waiters == []
        await asyncio.sleep(0)  # the loop lets go of the exception
        gone = weakref.ref(mine)
        del mine
        gc.collect()
        assert gone() is None
        assert await until(lambda: other.closed)
        listener.close()
        await other.close()

    run(program())


def test_close_returns_when_another_task_has_closed(run: Run[None]) -> None:
    async def program() -> None:
        mine, other, listener = await pair()
        await mine.send(bytes(1000))
        first = asyncio.create_task(mine.close())
        await asyncio.sleep(0)
        assert mine._is_closing
        await mine.close()
        assert mine.closed
        await first
        listener.close()
        await other.close()

    run(program())


def test_reset_behind_a_loop_that_does_not_run() -> None:
    loop = asyncio.new_event_loop()
    ucp.continuous_ucx_progress(loop)
    ucp.reset()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def test_exceptions_are_pickled() -> None:
    for name in exceptions.__all__:
        made = getattr(exceptions, name)("text", 1)
        again = pickle.loads(pickle.dumps(made))
        assert (type(again), again.args) == (type(made), made.args)
    for code in ErrorCode:
        if code == ErrorCode.forked_child:
            continue
        failed = Error(_core.errno_of(code), "why", code)
        for made in (
            exceptions.failure_of(failed, "call"),
            exceptions.failure_of_receive(failed, "call"),
            exceptions.end_of(failed, "0x1"),
        ):
            again = pickle.loads(pickle.dumps(made))
            assert (type(again), again.args) == (type(made), made.args)


def test_timeouts_of_ucxx_are_ignored(run: Run[None]) -> None:
    async def program() -> None:
        accepted: list[ucp.Endpoint] = []
        listener = ucp.create_listener(accepted.append, exchange_peer_info_timeout=1e-9)
        mine = await ucp.create_endpoint(
            listener.ip, listener.port, exchange_peer_info_timeout=1e-9
        )
        assert await until(lambda: accepted)
        listener.close()
        await ends(mine, *accepted)

    run(program())
