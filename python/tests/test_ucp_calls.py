"""Messages by calls that do not wait, by the names of UCX-Py's ucx_api."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from conftest import Process, is_free
from test_hardening import bound, flat
from test_ucp_memory import driven, flush, ignore, patient  # noqa: F401

from ucxio.ucp import exceptions
from ucxio.ucp._libs import arr, ucx_api, utils

Feature = ucx_api.Feature


@pytest.fixture(autouse=True)
def on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UCXPY_IFNAME", raising=False)


class Pair:
    """A worker, and both ends of its connection to itself."""

    def __init__(self, *features: ucx_api.Feature) -> None:
        self.worker = ucx_api.UCXWorker(ucx_api.UCXContext(feature_flags=features))
        accepted: list[ucx_api.UCXEndpoint] = []

        def accept(conn_request: Any, *, into: list[ucx_api.UCXEndpoint]) -> None:
            create = ucx_api.UCXEndpoint.create_from_conn_request
            into.append(create(self.worker, conn_request, endpoint_error_handling=True))
            with pytest.raises(exceptions.UCXError, match="taken"):
                create(self.worker, conn_request)

        listener = ucx_api.UCXListener(
            worker=self.worker, port=0, cb_func=accept, cb_kwargs={"into": accepted}
        )
        assert (listener.ip, utils.get_address()) == ("127.0.0.1", "127.0.0.1")
        assert str(listener.port) in repr(listener)
        self.mine = ucx_api.UCXEndpoint.create(self.worker, listener.ip, listener.port)
        assert driven(self.worker, lambda: accepted)
        self.other = accepted[0]
        listener.close()
        assert "closed" in repr(listener)

    def outcome(self, call: Callable[..., object], *arguments: Any) -> Exception | None:
        """Return how a call ends."""
        return outcome(self.worker, call, *arguments)

    def receive_active(self) -> Any:
        told: list[Any] = []
        ucx_api.am_recv_nb(self.other, lambda *what: told.append(what))
        assert driven(self.worker, lambda: told)
        return told[0]


def outcome(
    worker: ucx_api.UCXWorker, call: Callable[..., object], *arguments: Any
) -> Exception | None:
    told: list[Exception | None] = []
    try:
        request = call(*arguments, cb_func=lambda _, failure: told.append(failure))
    except exceptions.UCXBaseException as failed:
        return failed
    if request is None:
        return None
    assert driven(worker, lambda: told)
    return told[0]


@pytest.mark.parametrize("size", [0, 10, 1 << 24])
def test_tagged_message_arrives(size: int) -> None:
    pair = Pair(Feature.TAG)
    sent, came = os.urandom(size), bytearray(size + 1)
    told: list[Any] = []
    receive = ucx_api.tag_recv_nb(
        pair.worker,
        came,
        size,
        3,
        lambda *what, last: told.append((*what, last)),
        (7,),
        {"last": 8},
    )
    assert receive is not None
    going = ucx_api.tag_send_nb(pair.mine, arr.Array(sent), size, 3, ignore, name="mine")
    assert driven(pair.worker, lambda: told)
    assert told == [(receive, None, 7, 8)]
    assert driven(pair.worker, lambda: going is None or going.closed())
    assert came == sent + b"\0"
    assert is_free(came)


def test_message_of_another_length_is_told() -> None:
    pair = Pair(Feature.TAG)
    for size in (5, 3):
        assert pair.outcome(ucx_api.tag_send_nb, pair.mine, b"four", 4, 0) is None
        got = pair.outcome(ucx_api.tag_recv_nb, pair.worker, bytearray(size), size, 0)
        assert isinstance(got, exceptions.UCXMsgTruncated)


def test_message_is_probed() -> None:
    pair = Pair(Feature.TAG)
    assert not pair.worker.tag_probe(1)
    assert pair.outcome(ucx_api.tag_send_nb, pair.mine, b"data", 4, 1) is None
    assert driven(pair.worker, lambda: pair.worker.tag_probe(1))
    assert not pair.worker.tag_probe(2)
    pair.mine.close()
    assert driven(pair.worker, lambda: not pair.other.is_alive())
    with pytest.raises(exceptions.UCXBaseException):
        pair.other.raise_on_error()
    came = bytearray(4)
    assert pair.outcome(ucx_api.tag_recv_nb, pair.worker, came, 4, 1) is None
    assert came == b"data"
    assert isinstance(
        pair.outcome(ucx_api.tag_send_nb, pair.other, b"x", 1, 1), exceptions.UCXBaseException
    )


def test_receives_are_cancelled() -> None:
    pair = Pair(Feature.TAG, Feature.AM)
    told: list[Any] = []

    def note(_: object, failure: Exception | None, number: int) -> None:
        told.append((number, type(failure), str(failure).partition(">")[0]))

    buffers = [bytearray(1) for _ in range(3)]
    requests = [
        ucx_api.tag_recv_nb(pair.worker, each, 1, 0, note, (i,), ep=(pair.other, None, None)[i])
        for i, each in enumerate(buffers)
    ]
    assert requests[1] is not None
    pair.worker.request_cancel(requests[1])
    assert driven(pair.worker, lambda: told)
    assert told.pop() == (1, exceptions.UCXCanceled, "<tag_recv_nb")
    # No flush waits for a receive.
    flush(pair.worker)
    flush(pair.other)
    ucx_api.am_recv_nb(pair.other, note, (3,))
    assert pair.worker.cancel_inflight_messages() == 3
    assert driven(pair.worker, lambda: len(told) == 3)
    assert sorted(told) == [
        (0, exceptions.UCXCanceled, "<tag_recv_nb"),
        (2, exceptions.UCXCanceled, "<tag_recv_nb"),
        (3, exceptions.UCXCanceled, "<am_recv"),
    ]
    assert pair.worker.cancel_inflight_messages() == 0
    assert all(map(is_free, buffers))
    told.clear()
    ucx_api.tag_recv_nb(pair.worker, buffers[0], 1, 0, note, (0,), ep=pair.other)
    ucx_api.tag_recv_nb(pair.worker, buffers[1], 1, 0, note, (1,), ep=pair.mine)
    ucx_api.am_recv_nb(pair.other, note, (2,))
    pair.other.close()
    assert driven(pair.worker, lambda: len(told) == 2)
    assert sorted(each[0] for each in told) == [0, 2]
    for call in (pair.other.am_probe, lambda: ucx_api.am_recv_nb(pair.other, note)):
        with pytest.raises(exceptions.UCXCloseError):
            call()


@pytest.mark.parametrize("size", [0, 10, 1 << 24])
def test_active_message_arrives(size: int) -> None:
    pair = Pair(Feature.AM)
    assert not pair.other.am_probe()
    told: list[Any] = []
    for number in range(2):
        ucx_api.am_recv_nb(pair.other, lambda *what: told.append(what), (number,))
    sent = [os.urandom(size) for _ in range(3)]
    going = [ucx_api.am_send_nbx(pair.mine, arr.Array(each), size, ignore) for each in sent]
    assert driven(pair.worker, lambda: len(told) == 2 and pair.other.am_probe())
    assert told == [(sent[0], None, 0), (sent[1], None, 1)]
    assert isinstance(told[0][0], bytearray)
    pair.worker.register_am_allocator(
        lambda length: numpy.zeros(length, "u1"), ucx_api.AllocatorType.HOST
    )
    came, failure = pair.receive_active()
    assert failure is None
    assert isinstance(came, numpy.ndarray)
    assert came.tobytes() == sent[2]
    assert driven(pair.worker, lambda: all(each is None or each.closed() for each in going))


def test_allocator_that_fails_is_told() -> None:
    pair = Pair(Feature.AM)
    with pytest.raises(exceptions.UCXError, match="no type"):
        pair.worker.register_am_allocator(bytearray, ucx_api.AllocatorType.UNSUPPORTED)
    made: list[Any] = [lambda _: 1 // 0, lambda length: bytes(length), lambda _: bytearray(1)]
    kinds = (ZeroDivisionError, TypeError, exceptions.UCXMsgTruncated)
    for allocator, kind in zip(made, kinds, strict=True):
        pair.worker.register_am_allocator(allocator, ucx_api.AllocatorType.HOST)
        ucx_api.am_send_nbx(pair.mine, b"data", 4, ignore)
        came, failure = pair.receive_active()
        assert came is None
        assert isinstance(failure, kind)


def test_active_message_is_received_after_the_end() -> None:
    pair = Pair(Feature.AM)
    ucx_api.am_send_nbx(pair.mine, b"last", 4, ignore)
    pair.mine.close()
    assert driven(pair.worker, lambda: not pair.other.is_alive() and pair.other.am_probe())
    assert pair.receive_active() == (b"last", None)
    with pytest.raises(exceptions.UCXBaseException):
        ucx_api.am_recv_nb(pair.other, ignore)


def test_stream_has_no_boundaries() -> None:
    pair = Pair(Feature.STREAM)
    for part in (b"abc", b"defg", bytes(300_000)):
        ucx_api.stream_send_nb(pair.mine, part, len(part), ignore)
    for size, expected in ((2, b"ab"), (5, b"cdefg"), (300_000, bytes(300_000))):
        came = bytearray(size)
        assert pair.outcome(ucx_api.stream_recv_nb, pair.other, came, size) is None
        assert came == expected


@pytest.mark.parametrize("by_peer", [False, True])
def test_end_is_told_once(by_peer: bool, caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair(Feature.TAG)
    ended: list[int] = []

    def end() -> None:
        ended.append(1)
        raise KeyError("mine")

    pair.other.set_close_callback(end)
    with caplog.at_level(logging.ERROR, "ucx"):
        (pair.mine if by_peer else pair.other).close()
        assert driven(pair.worker, lambda: ended)
        pair.other.close()
        pair.worker.progress()
    assert ended == [1]
    assert "KeyError" in caplog.text
    with pytest.raises(exceptions.UCXCloseError):
        pair.other.set_close_callback(end)


def test_peer_that_was_not_taken_is_turned_away() -> None:
    worker = ucx_api.UCXWorker(ucx_api.UCXContext(feature_flags=(Feature.TAG,)))
    asked: list[str] = []
    listener = ucx_api.UCXListener(worker, 0, lambda request: asked.append(repr(type(request))))
    endpoint = ucx_api.UCXEndpoint.create(worker, "localhost", listener.port)
    assert driven(worker, lambda: asked and not endpoint.is_alive())
    with pytest.raises(exceptions.UCXError):
        ucx_api.UCXListener(worker, listener.port, ignore)


def test_endpoint_by_worker_address_has_keys_and_tags() -> None:
    context = ucx_api.UCXContext(feature_flags=(Feature.RMA, Feature.TAG, Feature.AM))
    worker = ucx_api.UCXWorker(context)
    memory = context.map(bytearray(b"memory"))
    endpoint = ucx_api.UCXEndpoint.create_from_worker_address(worker, worker.get_address())
    remote = ucx_api.RemoteMemory(endpoint.unpack_rkey(memory.pack_rkey()), memory.address, 6)
    came = bytearray(6)
    for begin in (remote.get_nb, remote.put_nb):
        assert outcome(worker, begin, came) is None
    assert came == b"memory"
    assert outcome(worker, ucx_api.tag_send_nb, endpoint, b"x", 1, 5) is None
    into = bytearray(1)
    assert outcome(worker, ucx_api.tag_recv_nb, worker, into, 1, 5) is None
    assert into == b"x"
    flush(endpoint)
    assert endpoint.is_alive()
    for call in (
        lambda: ucx_api.am_recv_nb(endpoint, ignore),
        lambda: ucx_api.am_send_nbx(endpoint, b"x", 1, ignore),
    ):
        with pytest.raises(exceptions.UCXError, match="tags only"):
            call()
    endpoint.close()
    assert not endpoint.is_alive()


def test_calls_that_do_not_fit_are_refused(unused_port: int) -> None:
    tags = Pair(Feature.TAG)
    for size in (5, -1):
        with pytest.raises(ValueError, match="4 bytes"):
            ucx_api.tag_send_nb(tags.mine, b"four", size, 0, ignore)
        with pytest.raises(ValueError, match="4 bytes"):
            ucx_api.tag_recv_nb(tags.worker, bytearray(4), size, 0, ignore)
    with pytest.raises(TypeError):
        ucx_api.tag_recv_nb(tags.worker, b"four", 4, 0, ignore)
    with pytest.raises(TypeError):
        arr.Array(3)  # type: ignore[type-var]
    assert not arr.asarray(arr.Array(b"x")).cuda
    for call, feature in (
        (lambda: ucx_api.am_send_nbx(tags.mine, b"x", 1, ignore), "AM"),
        (lambda: ucx_api.am_recv_nb(tags.mine, ignore), "AM"),
        (lambda: ucx_api.stream_send_nb(tags.mine, b"x", 1, ignore), "STREAM"),
    ):
        with pytest.raises(ValueError, match=f"Feature.{feature}"):
            call()
    with pytest.raises(exceptions.UCXError, match=r"Feature\.RMA"):
        tags.mine.unpack_rkey(ucx_api.PackedRemoteKey(b"key"))
    keys = ucx_api.UCXWorker(ucx_api.UCXContext(feature_flags=(Feature.RMA,)))
    with pytest.raises(ValueError, match="TAG"):
        ucx_api.UCXListener(keys, 0, ignore)
    both = ucx_api.UCXWorker(ucx_api.UCXContext())
    endpoint = ucx_api.UCXEndpoint.create(both, "127.0.0.1", unused_port)
    with pytest.raises(exceptions.UCXError, match="for keys"):
        ucx_api.tag_send_nb(endpoint, b"x", 1, 0, ignore)
    assert str(hex(tags.mine.handle)) in tags.mine.info()


echo_server = """
import sys
from ucxio.ucp._libs import ucx_api
from ucxio.ucp._libs.arr import Array

size, kind = int(sys.argv[1]), sys.argv[2]
feature = ucx_api.Feature.AM if kind == "am" else ucx_api.Feature.TAG
worker = ucx_api.UCXWorker(ucx_api.UCXContext(feature_flags=(feature,)))
ep, ended = None, []

def sent(request, exception, message):
    assert exception is None

def received_active(message, exception):
    assert exception is None
    message = Array(message)
    ucx_api.am_send_nbx(ep, message, message.nbytes, cb_func=sent, cb_args=(message,))

def received(request, exception, message):
    assert exception is None
    ucx_api.tag_send_nb(ep, message, message.nbytes, tag=0, cb_func=sent, cb_args=(message,))

def accept(conn_request):
    global ep
    ep = ucx_api.UCXEndpoint.create_from_conn_request(worker, conn_request, True)
    ep.set_close_callback(lambda: ended.append(True))
    if kind == "am":
        ucx_api.am_recv_nb(ep, cb_func=received_active)
    else:
        message = Array(bytearray(size))
        ucx_api.tag_recv_nb(worker, message, size, tag=0, cb_func=received, cb_args=(message,))

listener = ucx_api.UCXListener(worker=worker, port=0, cb_func=accept)
print(listener.port, flush=True)
while not ended:
    worker.progress()
"""


@pytest.mark.parametrize("size", [10, 1 << 24])
@pytest.mark.parametrize("kind", ["tag", "am"])
def test_messages_go_between_processes(kind: str, size: int) -> None:
    feature = Feature.AM if kind == "am" else Feature.TAG
    worker = ucx_api.UCXWorker(ucx_api.UCXContext(feature_flags=(feature,)))
    sent = os.urandom(size)
    with Process(echo_server, str(size), kind) as serves:
        endpoint = ucx_api.UCXEndpoint.create(worker, "127.0.0.1", int(serves.line()))
        if kind == "am":
            told: list[Any] = []
            assert outcome(worker, ucx_api.am_send_nbx, endpoint, sent, size) is None
            ucx_api.am_recv_nb(endpoint, lambda *what: told.append(what))
            assert driven(worker, lambda: told)
            assert told == [(sent, None)]
        else:
            came = bytearray(size)
            assert outcome(worker, ucx_api.tag_send_nb, endpoint, sent, size, 0) is None
            assert outcome(worker, ucx_api.tag_recv_nb, worker, came, size, 0) is None
            assert came == sent
        endpoint.close()
        assert serves.end() == (0, "", "")


in_flight = """
import sys
from ucxio.ucp._libs import ucx_api

features = (ucx_api.Feature.TAG, ucx_api.Feature.AM)
worker = ucx_api.UCXWorker(ucx_api.UCXContext(feature_flags=features))
peers = []
def accept(request):
    peers.append(ucx_api.UCXEndpoint.create_from_conn_request(worker, request))
listener = ucx_api.UCXListener(worker, 0, accept)
mine = ucx_api.UCXEndpoint.create(worker, listener.ip, listener.port)
while not peers:
    worker.progress()
memory = [bytearray(8 << 20) for _ in range(4)]
for each in memory[:2]:
    ucx_api.tag_recv_nb(worker, each, len(each), 1, print)
    ucx_api.am_recv_nb(mine, print)
for each in memory[2:]:
    ucx_api.tag_send_nb(mine, each, len(each), 2, print)
print("in flight", flush=True)
"""


def test_interpreter_ends_with_messages_in_flight() -> None:
    with Process(in_flight) as running:
        assert running.line() == "in flight"
        assert running.running.wait(bound) == 0
        assert running.end()[1:] == ("", "")


def test_endpoints_that_are_dropped_are_closed_and_keep_nothing() -> None:
    pair = Pair(Feature.TAG)
    came: list[ucx_api.UCXEndpoint] = []
    listener = ucx_api.UCXListener(
        pair.worker,
        0,
        lambda request: came.append(
            ucx_api.UCXEndpoint.create_from_conn_request(pair.worker, request)
        ),
    )
    kept = len(pair.worker._listening)
    for _ in range(20):
        endpoint = ucx_api.UCXEndpoint.create(pair.worker, "127.0.0.1", listener.port)
        assert driven(pair.worker, lambda: came)
        del endpoint
        assert driven(pair.worker, lambda: not came[0].is_alive())
        came.clear()
    gc.collect()
    assert len(pair.worker._listening) == kept


def test_ten_thousand_messages_keep_nothing() -> None:
    pair = Pair(Feature.TAG, Feature.AM)
    out, into = bytearray(64), bytearray(64)
    told: list[None] = []

    def note(*_: object) -> None:
        told.append(None)

    def transfer() -> None:
        told.clear()
        ucx_api.tag_recv_nb(pair.worker, into, 64, 0, note)
        ucx_api.am_recv_nb(pair.other, note)
        ucx_api.tag_send_nb(pair.mine, out, 64, 0, None)
        ucx_api.am_send_nbx(pair.mine, out, 64, None)
        while len(told) < 2:
            pair.worker.progress()

    kept = (out, into, pair.worker, pair.mine, pair.other)
    counts = [sys.getrefcount(each) for each in kept]
    flat(transfer, 10_000 // 4)  # of four messages each
    assert counts == [sys.getrefcount(each) for each in kept]
    assert is_free(out)
    assert is_free(into)
