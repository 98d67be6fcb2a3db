"""Transfers by UCX's keys that have not ended: their ends, and what may happen before."""

from __future__ import annotations

import gc
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import test_ucp_memory
from conftest import is_free, soon
from test_ucp_memory import Owner, driven, ignore

from ucxio import _core
from ucxio.ucp import exceptions
from ucxio.ucp._libs import ucx_api

patient = test_ucp_memory.patient
_patience = 120.0


@pytest.fixture
def peer(patient: None) -> Iterator[Owner]:
    """A process over TCP, without whose progress nothing is read."""
    with Owner("tcp") as made:
        yield made


def begun(request: ucx_api.UCXRequest | None) -> ucx_api.UCXRequest:
    assert request is not None
    assert not request.closed()
    return request


def in_readinto(thread: int) -> bool:
    """Wait until a thread waits in `UCXIO.readinto`: it stands at the same place for a while."""
    places: list[Any] = []

    def looks() -> bool:
        frame = sys._current_frames()[thread]
        place = (frame.f_code, frame.f_lasti)
        if frame.f_code is not ucx_api.UCXIO.readinto.__code__ or places[:1] != [place]:
            places.clear()
        places.append(place)
        return len(places) > 5 and frame.f_code is ucx_api.UCXIO.readinto.__code__

    return soon(looks, _patience)


def outcome(of: Any) -> BaseException | None:
    """Return what a flush tells."""
    failures: list[BaseException | None] = []
    worker = getattr(of, "worker", of)
    try:
        request = of.flush(lambda _, failure: failures.append(failure))
    except exceptions.UCXBaseException as failed:
        return failed
    if request is None:
        return None
    assert driven(worker, lambda: failures)
    return failures[0]


def killed(peer: Owner) -> None:
    peer.running.kill()
    peer.running.wait(_patience)


def test_function_has_its_arguments(peer: Owner) -> None:
    remote, came = peer.remote(), bytearray(8)
    told: list[Any] = []

    def note(request: ucx_api.UCXRequest, failure: Exception | None, word: str, *, by: str) -> None:
        told.append((request, failure, word, by))

    peer.stop()
    request = begun(remote.get_nb(came, note, cb_args=("get",), cb_kwargs={"by": "name"}))
    assert "pending" in repr(request)
    peer.worker.progress()
    assert told == []
    assert not is_free(came)
    peer.go_on()
    assert driven(peer.worker, request.closed)
    assert told == [(request, None, "get", "name")]
    assert request.info["status"] == "finished"
    assert came == b"\1" * 8
    assert is_free(came)


def test_flush_waits_for_all(peer: Owner) -> None:
    remote = peer.remote()
    came = [bytearray(8) for _ in range(4)]
    told: list[int] = []
    peer.stop()
    for number in (0, 1):
        begun(remote.get_nb(came[number], lambda *_, number=number: told.append(number)))
    for number in (2, 3):
        assert not remote.get_nbi(came[number])
    remote.put_nb(b"\2" * 8, None, offset=100)
    begun(peer.endpoint.flush(lambda *_: told.append(4)))
    begun(peer.worker.flush(lambda *_: told.append(5)))
    peer.worker.progress()
    assert told == []
    peer.go_on()
    assert driven(peer.worker, lambda: len(told) == 4)
    assert sorted(told[:2]) == [0, 1]
    assert came == [b"\1" * 8] * 4
    assert peer.ask("sum") == str(peer.size + 8)


def test_function_that_raises_is_logged(peer: Owner, caplog: pytest.LogCaptureFixture) -> None:
    def fails(*_: object) -> None:
        raise ValueError("of the program")

    remote, told = peer.remote(), []
    peer.stop()
    begun(remote.get_nb(bytearray(8), fails))
    begun(remote.get_nb(bytearray(8), lambda _, failure: told.append(failure)))
    peer.go_on()
    with caplog.at_level(logging.ERROR):
        assert driven(peer.worker, lambda: told)
    assert told == [None]
    logged = [str(each.exc_info[1]) for each in caplog.records if each.exc_info]
    assert logged == ["of the program"]


def test_interrupted_function_keeps_no_other_from_its_call(peer: Owner) -> None:
    def interrupts(*_: object) -> None:
        raise KeyboardInterrupt

    remote = peer.remote()
    told: list[Any] = []
    flushed: list[Any] = []
    peer.stop()
    begun(remote.get_nb(bytearray(8), interrupts))
    begun(remote.get_nb(bytearray(8), interrupts))
    begun(remote.get_nb(bytearray(8), lambda _, failure: told.append(failure)))
    begun(peer.endpoint.flush(lambda _, failure: flushed.append(failure)))
    peer.go_on()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            driven(peer.worker, lambda: flushed)
    assert driven(peer.worker, lambda: told and flushed)
    assert (told, flushed) == ([None], [None])


def test_interrupted_end_is_told_again(peer: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a signal between any two of the steps."""
    places = []

    def interrupted(cls: Any, name: str) -> None:
        does = getattr(cls, name)

        def fails_once(*arguments: Any) -> Any:
            result = does(*arguments)
            if name not in places:
                places.append(name)
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(cls, name, fails_once)

    remote, told = peer.remote(), []
    peer.stop()
    request = begun(remote.get_nb(bytearray(8), lambda _, failure: told.append(failure)))
    begun(peer.endpoint.flush(lambda _, failure: told.append(failure)))
    interrupted(type(request._started), "end")
    interrupted(ucx_api.UCXRequest, "_ended")
    interrupted(ucx_api.UCXRequest, "_tell")
    peer.go_on()
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            driven(peer.worker, lambda: len(told) == 2)
    assert driven(peer.worker, lambda: len(told) == 2)
    assert sorted(places) == ["_ended", "_tell", "end"]
    assert told == [None, None]
    assert not peer.worker._flights
    assert not peer.worker._due


def test_function_may_make_progress(peer: Owner) -> None:
    remote = peer.remote()
    told: list[int] = []

    def goes_on(*_: object) -> None:
        peer.worker.progress()
        told.append(1)

    peer.stop()
    begun(remote.get_nb(bytearray(8), goes_on))
    begun(remote.get_nb(bytearray(8), goes_on))
    begun(peer.endpoint.flush(lambda *_: told.append(2)))
    peer.go_on()
    assert driven(peer.worker, lambda: len(told) == 3)
    assert sorted(told) == [1, 1, 2]


def test_request_that_was_closed_calls_nothing(peer: Owner) -> None:
    remote, came = peer.remote(), bytearray(8)
    told: list[Any] = []
    peer.stop()
    request = begun(remote.get_nb(came, lambda *all: told.append(all)))
    request.close()
    assert request.closed()
    peer.worker.request_cancel(request)  # it has ended for the program
    peer.go_on()
    assert outcome(peer.worker) is None
    assert came == b"\1" * 8
    assert told == []


def test_request_is_canceled(peer: Owner) -> None:
    remote, came = peer.remote(), bytearray(8)
    told: list[Any] = []
    peer.stop()
    request = begun(remote.get_nb(came, lambda _, failure: told.append(failure)))
    peer.worker.request_cancel(request)
    assert driven(peer.worker, request.closed)
    assert [type(each) for each in told] == [exceptions.UCXCanceled]
    peer.go_on()


begins: dict[str, Callable[[ucx_api.RemoteMemory, bytearray], object]] = {
    "get_nbi": lambda remote, came: remote.get_nbi(came),
    "get_nb": lambda remote, came: begun(remote.get_nb(came, None)),
}


@pytest.mark.parametrize("begin", list(begins))
@pytest.mark.parametrize("of", ["endpoint", "worker"])
def test_failure_is_kept_for_a_flush(peer: Owner, begin: str, of: str) -> None:
    remote, came = peer.remote(), bytearray(8)
    peer.stop()
    begins[begin](remote, came)
    killed(peer)
    assert driven(peer.worker, lambda: not peer.worker._flights)
    assert is_free(came)
    assert list(peer.worker._failures) == [peer.endpoint._number]
    assert isinstance(outcome(getattr(peer, of)), exceptions.UCXBaseException)
    assert not peer.endpoint.is_alive()
    if of == "worker":
        assert peer.worker._failures == {}


def test_flush_that_has_begun_tells_of_a_failure(peer: Owner) -> None:
    remote, came = peer.remote(), bytearray(8)
    peer.stop()
    assert not remote.get_nbi(came)
    failures: list[Any] = []
    told: list[Any] = []
    begun(remote.get_nb(bytearray(8), lambda _, failure: told.append(failure)))
    begun(peer.endpoint.flush(lambda _, failure: failures.append(failure)))
    killed(peer)
    assert driven(peer.worker, lambda: failures and told)
    for each in failures + told:
        assert isinstance(each, exceptions.UCXBaseException)


@pytest.mark.parametrize("closed", ["endpoint", "worker", "context"])
def test_closed_in_flight(peer: Owner, closed: str) -> None:
    remote, came = peer.remote(), bytearray(8)
    told: list[Any] = []
    peer.stop()
    begun(remote.get_nb(came, lambda *all: told.append(all)))
    getattr(peer, closed).close()
    if closed == "endpoint":
        assert driven(peer.worker, lambda: told)
        assert isinstance(told[0][1], exceptions.UCXBaseException)
    del remote
    assert soon(lambda: (_core.count_left_behind(), is_free(came))[1])
    peer.go_on()


def test_interrupted_close_of_a_worker_is_one(peer: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    remote, came = peer.remote(), bytearray(8)
    peer.stop()
    assert not remote.get_nbi(came)

    def interrupts(_: ucx_api.UCXWorker) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(ucx_api.UCXWorker, "progress", interrupts)
    with pytest.raises(KeyboardInterrupt):
        peer.worker.close()
    assert not peer.worker.initialized
    assert peer.worker._core is None
    peer.worker.close()
    with pytest.raises(exceptions.UCXCloseError):
        peer.worker.arm()
    del remote
    assert soon(lambda: (_core.count_left_behind(), is_free(came))[1])
    peer.go_on()


def test_dropped_in_flight(peer: Owner) -> None:
    remote, came = peer.remote(), bytearray(8)
    peer.stop()
    assert not remote.get_nbi(came)
    del remote
    gc.collect()
    assert not is_free(came)  # the worker has the transfer
    del peer.rkey, peer.endpoint, peer.worker, peer.context
    gc.collect()
    assert soon(lambda: (_core.count_left_behind(), is_free(came))[1])
    peer.go_on()


def test_descriptor_tells_of_progress(peer: Owner) -> None:
    remote, came = peer.remote(), bytearray(8)
    told: list[Any] = []
    descriptor = peer.worker.init_blocking_progress_mode()
    peer.stop()
    begun(remote.get_nb(came, lambda _, failure: told.append(failure)))
    peer.go_on()
    end = time.monotonic() + _patience
    while not told and time.monotonic() < end:
        if peer.worker.arm():
            assert select.select([descriptor], [], [], _patience)[0]
        peer.worker.progress()
    assert told == [None]


def test_file_waits_without_the_gil(peer: Owner) -> None:
    file, main = peer.file(), threading.get_ident()
    seen: list[bool] = []
    peer.stop()

    def lets_it_go_on() -> None:
        seen.append(in_readinto(main))
        peer.go_on()

    helper = threading.Thread(target=lets_it_go_on, daemon=True)
    helper.start()
    assert file.read(10) == b"\1" * 10
    helper.join(_patience)
    assert seen == [True]


def test_file_ends_by_keyboard_interrupt(peer: Owner) -> None:
    file, main = peer.file(), threading.get_ident()
    peer.stop()

    def interrupts() -> None:
        assert in_readinto(main)  # which ends by nothing else
        os.kill(os.getpid(), signal.SIGINT)

    helper = threading.Thread(target=interrupts, daemon=True)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        file.read(10)
    helper.join(_patience)
    assert file.tell() == 0
    peer.go_on()
    assert file.read(10) == b"\1" * 10


def test_file_has_a_time_out(peer: Owner) -> None:
    file = peer.file(timeout=0.05)
    peer.stop()
    with pytest.raises(TimeoutError):
        file.read(10)
    with pytest.raises(TimeoutError):
        file.write(b"\2" * 10)
    assert file.tell() == 0
    peer.go_on()


def test_file_of_another_thread(peer: Owner) -> None:
    file, remote = peer.file(), peer.remote()
    told: list[Any] = []
    came: list[Any] = []
    peer.stop()
    other = threading.Thread(target=lambda: came.append(file.read(10)), daemon=True)
    other.start()
    assert other.ident is not None
    assert in_readinto(other.ident)
    begun(remote.get_nb(bytearray(8), lambda _, failure: told.append(failure)))
    begun(peer.worker.flush(ignore))
    peer.worker.progress()
    assert (told, came) == ([], [])
    peer.go_on()
    assert driven(peer.worker, lambda: told and came)
    other.join(_patience)
    assert (told, came) == ([None], [b"\1" * 10])
