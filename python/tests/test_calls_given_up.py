"""Calls whose callers give up before their functions begin."""

from __future__ import annotations

import threading
import time

import pytest
from conftest import Process, soon, stop
from test_calls import Gate, add

import ucxio
from ucxio import _core


def enter(server: ucxio.Server) -> tuple[Gate, threading.Thread]:
    """Have the one thread of a server wait in a function. Return what opens and ends it."""
    gate = Gate()
    server.calls.add("wait", gate)

    def call() -> None:
        with ucxio.Client(server.url) as client:
            client.call("wait", timeout=100)

    waits = threading.Thread(target=call)
    waits.start()
    assert gate.entered.acquire(timeout=60)
    return gate, waits


def count(server: ucxio.Server) -> list[int]:
    """Serve a function of bytes. Return where it notes how many it got."""
    counted: list[int] = []
    server.calls.add("count", lambda some: counted.append(len(some)), signature="(bytes)->nil")
    return counted


def queue_of(server: ucxio.Server) -> _core.CallQueue:
    queue = server.calls._queue
    assert queue is not None
    return queue


def test_calls_that_are_given_up_leave_and_do_not_run(local_server: ucxio.Server) -> None:
    counted = count(local_server)
    local_server.calls.add("add", add)
    gate, waits = enter(local_server)
    queue = queue_of(local_server)
    with ucxio.Client(local_server.url) as client:
        client.signatures()
        for _ in range(20):
            with pytest.raises(ucxio.Error):
                client.call("count", bytes(4096), timeout=0.02)
        client.signatures()  # the server knows of all that was told before
        assert soon(lambda: queue.waiting == 0)
        gate.open.set()
        waits.join()
        assert client.call("add", 1, 2, timeout=60) == 3
        assert counted == []
        client.call("count", b"four", timeout=60)
        assert counted == [4]


def test_loop_is_not_told_of_calls_that_left(local_server: ucxio.Server) -> None:
    queue = _core.CallQueue()
    form = _core.CallForm("wait", "()->nil", {})
    local_server._core.add_call(form, queue, 0, "")
    with ucxio.Client(local_server.url) as client:
        with pytest.raises(TimeoutError):
            client.call("wait", timeout=0.02)
        assert soon(lambda: queue.waiting == 0)
    assert queue.take_all() == ([], [])
    queue.close()


stopped_caller = """
import sys, ucxio
with ucxio.Client(sys.argv[1]) as client:
    client.signatures()
    print("begun", flush=True)
    client.call("count", b"1", timeout=2)
"""


@pytest.mark.parametrize("takes_all", [False, True])
def test_call_whose_time_is_over_does_not_run(local_server: ucxio.Server, takes_all: bool) -> None:
    counted = count(local_server)
    gate, waits = enter(local_server)
    queue = queue_of(local_server)
    with Process(stopped_caller, local_server.url) as caller:
        assert caller.line() == "begun"
        assert soon(lambda: queue.waiting == 1)
        stop(caller)  # it does not tell that it gives up
        end = time.monotonic() + 2
        assert soon(lambda: time.monotonic() > end)
        if takes_all:
            assert queue.take_all() == ([], [])
        gate.open.set()
        waits.join()
        assert soon(lambda: queue.waiting == 0)
        with ucxio.Client(local_server.url) as client:
            client.call("count", b"four", timeout=60)
        assert counted == [4]
