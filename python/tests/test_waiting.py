"""Waits: interrupted, beside other threads, and for servers that died."""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Process, files_in, go_on, soon, stop, ways

import ucxio
from ucxio import _core

# Only what hangs reaches this: operations have 30 seconds.
bound = 10.0


def raised(outcome: object) -> None:
    assert isinstance(outcome, Exception)
    raise outcome


def interrupted(call: Callable[[], object], when: Callable[[], object] | None = None) -> float:
    """Interrupt a call while it waits, when that holds, and return how long it took to end."""
    sent: list[float] = []

    def interrupt() -> None:
        if when is None:
            time.sleep(0.3)
        else:
            soon(when)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    early: object = None
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        try:
            call()
            early = "it did not wait"
        except Exception as failed:
            early = failed
        thread.join()  # the signal must not come later
        time.sleep(bound)
    took = time.monotonic() - sent[0]
    thread.join()
    assert early is None
    return took


def interrupted_while_stopped(process: Process, call: Callable[[], object]) -> None:
    """Interrupt a call while the server does nothing, which is not for long enough to be lost."""
    stop(process)
    try:
        assert interrupted(call) < bound
    finally:
        go_on(process)


@pytest.mark.usefixtures("nothing_left_behind")
def test_keyboard_interrupt_ends_a_read_and_the_buffer_comes_back(far_server: Process) -> None:
    with ucxio.open_region(f"{far_server.url}/data") as region:  # type: ignore[attr-defined]
        whole = region.read()
        method = region.transfer_method
        if method in ("cma", "mapped", "rma"):
            return  # the owner is not needed to read
        into = bytearray(len(whole))
        interrupted_while_stopped(far_server, lambda: region.read_into(into))
        interrupted_while_stopped(far_server, region.read)
        interrupted_while_stopped(far_server, lambda: region.read_batch([(0, into)]))
        parts = [(region._core, [(0, into)]), (region._core, [(0, bytearray(10))])]
        interrupted_while_stopped(far_server, lambda: _core.Region.read_across(parts, None, False))

        def free() -> bool:
            region.read(0, 1)  # drives what was left behind
            return _core.count_left_behind() == 0

        assert soon(free)
        into.append(1)  # no view is left
        assert region.read() == whole


def test_keyboard_interrupt_ends_questions(far_server: Process) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]
    client = ucxio.Client(url)
    with client.create("store/file") as region:
        region.write_from(b"x")
        for call in (
            client.list,
            lambda: client.open("data"),
            lambda: client.read_many(["store/x"]),
            # What is written now can not be confirmed.
            lambda: (region.write_from(b"y"), region.flush()),
            region.commit,
            lambda: ucxio.Client(url),
            lambda: ucxio.open(url + "/data"),
        ):
            interrupted_while_stopped(far_server, call)
    assert soon(lambda: client.exists("data"))
    client.close()


def test_keyboard_interrupt_ends_a_copy(store: ucxio.Client, tmp_path: Path) -> None:
    goes_on = threading.Event()

    class Slow(io.RawIOBase):
        def readinto(self, _: object, /) -> int:
            goes_on.wait(60)
            return 0

    with Slow() as slow:
        try:
            took = interrupted(lambda: ucxio.copy(slow, store.url + "/file"))
        finally:
            goes_on.set()
    assert took < bound
    assert soon(lambda: files_in(tmp_path) == [])


def test_handler_of_a_signal_runs_while_a_call_waits(far_server: Process) -> None:
    class HandledError(Exception):
        pass

    def handle(*_: object) -> None:
        raise HandledError

    before = signal.signal(signal.SIGUSR1, handle)
    client = ucxio.Client(far_server.url)  # type: ignore[attr-defined]
    stop(far_server)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    try:
        with pytest.raises(HandledError):
            client.list(timeout=10)
    finally:
        go_on(far_server)
        timer.join()
        signal.signal(signal.SIGUSR1, before)
        client.close()


def test_other_threads_run_while_a_call_waits(far_server: Process) -> None:
    client = ucxio.Client(far_server.url)  # type: ignore[attr-defined]
    counts = {"all": 0}
    ends = threading.Event()

    def count() -> None:
        while not ends.is_set():
            counts["all"] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    stop(far_server)
    thread.start()
    try:
        for call in (
            lambda: client.list(timeout=0.5),
            lambda: raised(client.read_many(["store/x"], timeout=0.5)[0]),
            lambda: ucxio.Client(client.url, connect_timeout=0.5),
        ):
            before = counts["all"]
            with pytest.raises(OSError) as failed:
                call()
            assert isinstance(failed.value, ucxio.Error)
            assert counts["all"] - before > 5
    finally:
        ends.set()
        go_on(far_server)
        thread.join()
        client.close()


def test_stopped_server_times_out_and_the_client_goes_on(far_server: Process) -> None:
    client = ucxio.Client(far_server.url)  # type: ignore[attr-defined]
    stop(far_server)
    try:
        with pytest.raises(TimeoutError) as failed:
            client.stat("data", timeout=0.2)
        assert failed.value.code == ucxio.ErrorCode.timed_out  # type: ignore[attr-defined]
    finally:
        go_on(far_server)
    assert client.stat("data").size == 1 << 20
    client.close()


def test_killed_server_is_a_lost_connection(far_server: Process) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]
    client = ucxio.Client(url)
    region = client.open("data", "read_write")
    file = ucxio.open(url + "/data")
    new = ucxio.open(url + "/store/new", "wb")
    new.write(b"half")
    far_server.running.kill()
    far_server.running.wait()
    lost = ("connection_reset", "closed_by_peer", "connection_refused", "timed_out")
    for call in (
        lambda: client.list(),
        lambda: client.open("data"),
        lambda: region.load(0),
        lambda: file.read(),
        lambda: new.close(),
        lambda: ucxio.open(url + "/data"),
    ):
        with pytest.raises(OSError) as failed:
            call()
        assert isinstance(failed.value, ucxio.Error)
        assert failed.value.code in lost
        assert failed.value.errno
    file.discard()
    region.close()
    client.close()


def test_exit_with_everything_open_is_quiet() -> None:
    program = """
import sys, ucxio
server = ucxio.Server(**eval(sys.argv[1]))
data = bytearray(1 << 20)
shown = server.publish("data", data)
client = ucxio.Client(server.url)
region = client.open("data")
region.read()
shared = ucxio.open_region(shown.url)
memory = server.allocate("memory", 4096)
view = memory.memoryview()
print("made")
"""
    for way in ways.values():
        with Process(program, repr(way), PYTHONDEVMODE="1") as running:
            assert running.end() == (0, "made\n", "")


def test_exit_while_a_thread_waits_is_quick(far_server: Process) -> None:
    program = """
import sys, threading, time, ucxio
client = ucxio.Client(sys.argv[1])
def ask():
    print("waits", flush=True)
    try:
        client.list()
    except ucxio.Error:
        pass
threading.Thread(target=ask, daemon=True).start()
sys.stdin.readline()
"""
    with Process(program, far_server.url) as running:  # type: ignore[attr-defined]
        assert running.line() == "waits"
        stop(far_server)
        try:
            code, _, errors = running.end()
        finally:
            go_on(far_server)
        assert (code, errors) == (0, "")
