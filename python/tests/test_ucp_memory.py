"""Memory by UCX's keys, by the names of UCX-Py."""

from __future__ import annotations

import array
import ctypes
import errno
import gc
import io
import mmap
import os
import pickle
import socket
import subprocess
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Process, forked

from ucxio import _core, ucp
from ucxio.ucp import exceptions
from ucxio.ucp._libs import ucx_api

_patience = 120.0


@pytest.fixture(autouse=True, scope="module")
def patient() -> Iterator[None]:
    """UCX's own choice of transports, and connections that may take long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("UCX_TLS", raising=False)
        patch.setenv("UCXPY_CONNECT_TIMEOUT", str(_patience))
        yield


def ignore(*_: object) -> None:
    pass


def driven(worker: ucx_api.UCXWorker, condition: Callable[[], object]) -> bool:
    """Drive a worker until the condition holds."""
    end = time.monotonic() + _patience
    while not condition():
        worker.progress()
        if time.monotonic() > end:
            return False
    return True


def flush(of: Any) -> None:
    """Flush, as programs of UCX-Py do."""
    finished: list[BaseException | None] = []
    worker = getattr(of, "worker", of)
    if of.flush(lambda _, failure: finished.append(failure)) is not None:
        assert driven(worker, lambda: finished)
        assert finished == [None]


class Own:
    """A worker that is connected to itself, and memory of its process."""

    def __init__(self, size: int = 1024, config: dict[str, str] | None = None) -> None:
        self.context = ucx_api.UCXContext(config or {})
        self.memory = ucx_api.UCXMemoryHandle.alloc(self.context, size)
        self.worker = ucx_api.UCXWorker(self.context)
        self.endpoint = ucx_api.UCXEndpoint.create_from_worker_address(
            self.worker, self.worker.get_address(), endpoint_error_handling=True
        )
        self.rkey = self.endpoint.unpack_rkey(self.memory.pack_rkey())

    def remote(self, size: int | None = None) -> ucx_api.RemoteMemory:
        length = self.memory.length if size is None else size
        return ucx_api.RemoteMemory(self.rkey, self.memory.address, length)

    def file(self) -> ucx_api.UCXIO:
        return ucx_api.UCXIO(self.memory.address, self.memory.length, self.rkey, timeout=_patience)

    def content(self) -> bytes:
        return ctypes.string_at(self.memory.address, self.memory.length)


@pytest.fixture(scope="module")
def shared(patient: None) -> Own:
    """One for tests that leave it as it is."""
    return Own()


buffers = [
    bytearray(),
    bytearray(b"abcd"),
    array.array("i", [0, 1, 2, 3]),
    array.array("d", []),
    memoryview(array.array("B", range(6))).cast("B", (3, 2)),
    memoryview(bytearray(b"abcd")),
    mmap.mmap(-1, 5),
]


@pytest.mark.parametrize("buffer", buffers, ids=lambda each: type(each).__name__)
def test_buffers_are_mapped(shared: Own, buffer: Any) -> None:
    size = memoryview(buffer).nbytes
    for mapped in (
        ucx_api.UCXMemoryHandle.map(shared.context, buffer),
        shared.context.map(buffer),
    ):
        assert mapped.length == size
        assert bool(mapped.pack_rkey().length) == bool(size)
        mapped.close()


@pytest.mark.parametrize("buffer", [b"", b"abcd", memoryview(bytearray(4)).toreadonly()])
def test_read_only_buffers_are_refused(shared: Own, buffer: Any) -> None:
    with pytest.raises(TypeError, match="read-only"):
        ucx_api.UCXMemoryHandle.map(shared.context, buffer)
    with pytest.raises(TypeError, match="read-only"):
        shared.context.map(buffer)


def test_buffer_is_kept_until_close(shared: Own) -> None:
    buffer = bytearray(8)
    mapped = shared.context.map(buffer)
    with pytest.raises(BufferError):
        buffer.append(1)
    mapped.close()
    mapped.close()
    buffer.append(1)
    with pytest.raises(exceptions.UCXCloseError):
        mapped.pack_rkey()
    assert "closed" in repr(mapped)
    with pytest.raises(TypeError):
        shared.context.map(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        shared.context.alloc(-1)
    with pytest.raises(exceptions.UCXError):
        shared.context.alloc(1 << 70)


def test_keys_and_addresses_are_bytes(shared: Own) -> None:
    key = shared.memory.pack_rkey()
    again = pickle.loads(pickle.dumps(key))
    assert type(again) is ucx_api.PackedRemoteKey
    assert again == key == ucx_api.PackedRemoteKey.from_buffer(bytearray(key))
    assert hash(again) == hash(key)
    assert key == ucx_api.PackedRemoteKey.from_mem_handle(shared.memory)
    assert again.length == len(key) == len(bytes(memoryview(again)))
    address = ucx_api.UCXAddress.from_worker(shared.worker)
    assert address == shared.worker.get_address()
    assert ucx_api.UCXAddress.from_native(address.native) == address
    with pytest.raises(exceptions.UCXError):
        _ = ucp.UCXAddress(address[:-1]).native
    with pytest.raises(exceptions.UCXError):
        ucx_api.UCXEndpoint.create_from_worker_address(shared.worker, ucp.UCXAddress(address[:-1]))


@pytest.mark.parametrize("length", [0, 4097])
def test_key_of_wrong_length_is_refused(shared: Own, length: int) -> None:
    key = ucx_api.PackedRemoteKey.from_buffer(bytes(length))
    with pytest.raises(exceptions.UCXError, match=f"{length} bytes"):
        shared.endpoint.unpack_rkey(key)


def test_context_tells_of_itself(shared: Own) -> None:
    assert shared.context.get_config()["TLS"]
    assert ucx_api.get_current_options()["TLS"]
    assert len(ucx_api.get_ucx_version()) == 3
    assert shared.context.info()
    assert shared.context.cuda_support in (True, False)
    assert shared.worker.info()
    assert shared.endpoint.info()
    for handle in (shared.context, shared.worker, shared.endpoint):
        assert handle.handle
        assert "open" in repr(handle)
    assert shared.memory.mem_handle
    with pytest.raises(exceptions.UCXConfigError):
        ucx_api.UCXContext({"NO_SUCH_KEY": "1"})


def test_context_without_rma_has_no_keys() -> None:
    context = ucx_api.UCXContext(feature_flags=(ucx_api.Feature.AM, ucx_api.Feature.AMO32))
    memory = context.alloc(10)
    with pytest.raises(exceptions.UCXError):
        memory.pack_rkey()


@pytest.mark.parametrize("size", [10, 1 << 22])
def test_implicit_transfers(size: int) -> None:
    own = Own(size)
    remote = own.remote(size)
    sent = os.urandom(size)
    if not remote.put_nbi(sent):
        flush(own.endpoint)
    flush(own.worker)
    assert own.content()[:size] == sent
    came = bytearray(size)
    if not remote.get_nbi(came):
        flush(own.worker)
    assert came == sent
    came.append(1)  # no transfer has it


@pytest.mark.parametrize("size", [10, 1 << 22])
def test_explicit_transfers(size: int) -> None:
    own = Own(size)
    remote = own.remote(size)
    told: list[Any] = []

    def note(request: ucx_api.UCXRequest, failure: Exception | None, word: str, *, by: str) -> None:
        told.append((request, failure, word, by))

    sent = os.urandom(size)
    request = remote.put_nb(sent, note, cb_args=("put",), cb_kwargs={"by": "name"})
    if request is not None:
        assert not request.closed()
        assert "pending" in repr(request)
        assert driven(own.worker, request.closed)
        assert told.pop() == (request, None, "put", "name")
        assert request.info["status"] == "finished"
    flush(own.endpoint)
    came = bytearray(size)
    if remote.get_nb(came, ignore) is not None:
        flush(own.endpoint)  # it covers reads, too
    assert came == sent
    assert told == []


def test_parts_are_transferred() -> None:
    own = Own(100)
    remote = own.remote(100)
    remote.put_nbi(b"abcdef", size=3, offset=10)
    flush(own.endpoint)
    assert own.content()[:20] == bytes(10) + b"abc" + bytes(7)
    came = bytearray(b"......")
    remote.get_nb(came, None, offset=9, size=4)
    flush(own.endpoint)
    assert came == b"\0abc.."
    remote.put_nbi(b"", offset=100)
    flush(own.worker)


def test_wrong_places_are_refused(shared: Own) -> None:
    remote = shared.remote(100)
    for buffer, size, offset in (
        (bytearray(101), 0, 0),
        (bytearray(10), 0, 91),
        (bytearray(10), 0, -1),
        (bytearray(10), -5, 0),
        (b"", 0, 101),
    ):
        with pytest.raises(IndexError):
            remote.put_nb(buffer, ignore, size=size, offset=offset)
        with pytest.raises(IndexError):
            remote.get_nbi(buffer, size=size, offset=offset)
    with pytest.raises(ValueError, match="10 bytes"):
        remote.put_nbi(bytes(10), size=11)
    with pytest.raises(TypeError):
        remote.get_nbi(b"read-only")
    with pytest.raises(TypeError):
        remote.put_nbi(5)  # type: ignore[arg-type]
    for base, length in ((-1, 10), (0, -1), ((1 << 64) - 5, 10), (0, 1 << 64)):
        with pytest.raises(ValueError):
            ucx_api.RemoteMemory(shared.rkey, base, length)
        with pytest.raises(ValueError):
            ucx_api.UCXIO(base, length, shared.rkey)


@pytest.mark.parametrize("closed", ["rkey", "endpoint", "worker", "context"])
def test_closed_objects_are_refused(closed: str) -> None:
    own = Own()
    remote, file = own.remote(), own.file()
    getattr(own, closed).close()
    getattr(own, closed).close()
    assert not getattr(own, closed).initialized
    assert not own.rkey.initialized
    for call in (
        lambda: remote.put_nbi(b"x"),
        lambda: remote.get_nb(bytearray(1), ignore),
        lambda: file.read(1),
        lambda: file.write(b"x"),
        own.remote,
        own.file,
    ):
        with pytest.raises(exceptions.UCXCloseError):
            call()
    if closed != "rkey":
        assert not own.endpoint.is_alive()
        for call in (
            lambda: own.endpoint.unpack_rkey(ucx_api.PackedRemoteKey(b"x")),
            lambda: own.endpoint.flush(ignore),
            own.endpoint.raise_on_error,
        ):
            with pytest.raises(exceptions.UCXCloseError):
                call()
    if closed in ("worker", "context"):
        for call in (own.worker.progress, own.worker.get_address, own.worker.fence):
            with pytest.raises(exceptions.UCXCloseError):
                call()
    if closed == "context":
        with pytest.raises(exceptions.UCXCloseError):
            ucx_api.UCXWorker(own.context)
        with pytest.raises(exceptions.UCXCloseError):
            own.context.alloc(1)


def test_file_is_read_and_written() -> None:
    own = Own(64)
    with own.file() as file:
        assert file.readable()
        assert file.writable()
        assert file.seekable()
        assert file.write(b"0123456789") == 10
        assert own.content()[:10] == b"0123456789"
        assert file.tell() == 10
        assert file.seek(-8, io.SEEK_CUR) == 2
        assert file.read(4) == b"2345"
        assert file.seek(-60, io.SEEK_END) == 4
        assert file.readall() == b"456789" + bytes(54)
        assert file.read(1) == b""
        assert file.write(b"") == 0
        with pytest.raises(OSError) as full:
            file.write(b"x")
        assert full.value.errno == errno.ENOSPC
        assert file.seek(62) == 62
        assert file.write(b"abcd") == 2  # as much as there is room for
        into = bytearray(8)
        file.seek(60)
        assert file.readinto(into) == 4
        assert into == b"\0\0ab\0\0\0\0"
        with pytest.raises(ValueError):
            file.seek(0, 7)
        with pytest.raises(TypeError):
            file.seek(1.0)  # type: ignore[arg-type]
        with pytest.raises(io.UnsupportedOperation):
            file.truncate(10)
        assert "at 64" in repr(file)
    for call in (file.tell, file.read, file.readable, lambda: file.write(b"x")):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert "closed" in repr(file)
    file.close()
    with pytest.raises(ValueError):
        ucx_api.UCXIO(own.memory.address, 64, own.rkey, timeout=0)


@pytest.mark.parametrize("whence", [io.SEEK_SET, io.SEEK_CUR, io.SEEK_END])
def test_seeks_stay_within_the_memory(shared: Own, whence: int) -> None:
    file = shared.file()
    file.seek(5)
    assert file.seek(-(2 << 30), whence) == 0
    assert file.seek(2 << 30, whence) == shared.memory.length


def test_closed_file_keeps_nothing() -> None:
    own = Own()
    gone = weakref.ref(own.rkey)
    file = own.file()
    del own.rkey
    gc.collect()
    assert gone() is not None
    file.close()
    gc.collect()
    assert gone() is None


def test_file_is_buffered_by_io() -> None:
    own = Own(1 << 16)
    with io.BufferedRandom(own.file()) as both:
        for number in range(1000):
            both.write(b"line %d\n" % number)
        both.flush()
        assert own.content().startswith(b"line 0\nline 1\n")
        both.seek(0)
        assert both.readline() == b"line 0\n"
    with io.TextIOWrapper(io.BufferedReader(own.file())) as text:
        lines = [next(text) for _ in range(1000)]
    assert lines == [f"line {number}\n" for number in range(1000)]


# Other processes.

owner = """
import ctypes, select, sys
from ucxio.ucp._libs import ucx_api

context = ucx_api.UCXContext(eval(sys.argv[1]))
worker = ucx_api.UCXWorker(context)
size = int(sys.argv[3])
data = bytearray(size)
memory = context.alloc(size) if sys.argv[2] == "alloc" else context.map(data)
ctypes.memset(memory.address, 1, size)
print(worker.get_address().hex(), memory.pack_rkey().hex(), memory.address, flush=True)
kept = []
while True:
    worker.progress()
    if not select.select([sys.stdin], [], [], 0)[0]:
        continue
    words = sys.stdin.readline().split()
    if not words:
        break
    if words[0] == "sum":
        print(sum(ctypes.string_at(memory.address, size)), flush=True)
    elif words[0] == "stop":
        print("stopped", flush=True)
        sys.stdin.readline()
    elif words[0] == "put":
        peer = ucx_api.UCXAddress.from_buffer(bytes.fromhex(words[1]))
        ep = ucx_api.UCXEndpoint.create_from_worker_address(worker, peer, True)
        rkey = ep.unpack_rkey(ucx_api.PackedRemoteKey.from_buffer(bytes.fromhex(words[2])))
        remote = ucx_api.RemoteMemory(rkey, int(words[3]), 8)
        remote.put_nbi(b"from it!")
        done = []
        if ep.flush(lambda request, failure: done.append(failure)) is not None:
            while not done:
                worker.progress()
        kept.append(ep)
"""

ways = {
    "tcp": ({"TLS": "tcp", "NET_DEVICES": "lo"}, "map"),
    "host": ({"TLS": "posix,cma,self"}, "alloc"),
}


class Owner(Process):
    """A process that exposes memory, and drives its worker."""

    def __init__(self, way: str, size: int = 1 << 20) -> None:
        config, kind = ways[way]
        super().__init__(owner, repr(config), kind, str(size))
        address, key, base = self.line().split()
        self.size = size
        self.base = int(base)
        self.context = ucx_api.UCXContext(config)
        self.worker = ucx_api.UCXWorker(self.context)
        self.endpoint = ucx_api.UCXEndpoint.create_from_worker_address(
            self.worker,
            ucx_api.UCXAddress.from_buffer(bytes.fromhex(address)),
            endpoint_error_handling=True,
        )
        packed = ucx_api.PackedRemoteKey.from_buffer(bytes.fromhex(key))
        self.rkey = self.endpoint.unpack_rkey(packed)

    def tell(self, line: str) -> None:
        assert self.running.stdin is not None
        print(line, file=self.running.stdin, flush=True)

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.line()

    def file(self, timeout: float = _patience) -> ucx_api.UCXIO:
        return ucx_api.UCXIO(self.base, self.size, self.rkey, timeout=timeout)

    def remote(self) -> ucx_api.RemoteMemory:
        return ucx_api.RemoteMemory(self.rkey, self.base, self.size)

    def stop(self) -> None:
        """Have it make no progress: what begins from now on is in flight until `go_on`."""
        assert self.ask("stop") == "stopped"

    def go_on(self) -> None:
        self.tell("go on")


@pytest.mark.parametrize("way", list(ways))
def test_memory_of_another_process(way: str) -> None:
    with Owner(way) as peer:
        remote = ucx_api.RemoteMemory(peer.rkey, peer.base, peer.size)
        came = bytearray(peer.size)
        remote.get_nbi(came)
        flush(peer.endpoint)
        assert came == b"\1" * peer.size
        remote.put_nb(b"\2" * 1000, ignore, offset=peer.size - 1000)
        flush(peer.worker)
        assert peer.ask("sum") == str(peer.size + 1000)
        peer.worker.fence()
        with io.BufferedReader(peer.file()) as file:
            file.seek(-1001, io.SEEK_END)
            assert file.read() == b"\1" + b"\2" * 1000
        assert peer.endpoint.is_alive()
        peer.endpoint.raise_on_error()
        # The other way round.
        mine = peer.context.alloc(8)
        address = peer.worker.get_address()
        peer.tell(f"put {address.hex()} {mine.pack_rkey().hex()} {mine.address}")
        assert driven(peer.worker, lambda: ctypes.string_at(mine.address, 8) == b"from it!")
        peer.endpoint.close()


def test_peer_that_was_killed() -> None:
    with Owner("tcp") as peer:
        file = peer.file()
        assert file.read(1) == b"\1"
        peer.running.kill()
        peer.running.wait(_patience)
        with pytest.raises(exceptions.UCXConnectionReset):
            file.read(1 << 20)
        assert driven(peer.worker, lambda: not peer.endpoint.is_alive())
        with pytest.raises(exceptions.UCXConnectionReset, match="Endpoint 0x[1-9a-f]"):
            peer.endpoint.raise_on_error()
        with pytest.raises(exceptions.UCXConnectionReset):
            ucx_api.RemoteMemory(peer.rkey, peer.base, 8)


def test_connection_to_nothing(unused_port: int) -> None:
    context = ucx_api.UCXContext({"TLS": "tcp", "NET_DEVICES": "lo"})
    worker = ucx_api.UCXWorker(context)
    memory = context.alloc(8)
    with pytest.raises((exceptions.UCXError, TimeoutError)):
        endpoint = ucx_api.UCXEndpoint.create(worker, "localhost", unused_port)
        rkey = endpoint.unpack_rkey(memory.pack_rkey())
        ucx_api.RemoteMemory(rkey, memory.address, 8)


@pytest.mark.parametrize("failure", [socket.gaierror(-2, "unknown"), UnicodeError("too long")])
def test_host_without_an_address(
    shared: Own, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fails(_: str) -> str:
        raise failure

    monkeypatch.setattr(socket, "gethostbyname", fails)
    with pytest.raises(exceptions.UCXUnreachable, match="some-host"):
        ucx_api.UCXEndpoint.create(shared.worker, "some-host", 1)


_plain = Path(_core.__file__ or "").parents[2] / "bin/ucxio-plain-peer"


@pytest.mark.parametrize("where", ["address", "127.0.0.1"])
def test_peer_that_has_ucx_alone(where: str) -> None:
    if not _plain.is_file():
        pytest.skip(f"there is no program without ucxio: {_plain}")
    command = [str(_plain), "tcp", where, "own", "1000000"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as plain:
        assert plain.stdin is not None
        assert plain.stdout is not None
        ready, told, key, base = plain.stdout.readline().split()
        assert ready == "ready"
        context = ucx_api.UCXContext({"TLS": "tcp", "NET_DEVICES": "lo"})
        worker = ucx_api.UCXWorker(context)
        if where == "address":
            address = ucx_api.UCXAddress.from_native(bytes.fromhex(told))
            endpoint = ucx_api.UCXEndpoint.create_from_worker_address(worker, address, True)
        else:
            endpoint = ucx_api.UCXEndpoint.create(worker, where, int(told), True)
        packed = ucx_api.PackedRemoteKey.from_buffer(bytes.fromhex(key))
        rkey = endpoint.unpack_rkey(packed)
        with ucx_api.UCXIO(int(base, 16), 1_000_000, rkey, timeout=_patience) as file:
            assert file.read(30) == b"abcdefghijklmnopqrstuvwxyzabcd"
            assert file.readall()[-4:] == b"klmn"
            file.seek(0)
            for _ in range(10):
                file.write(b"\1" * 100_000)
        print("sum", file=plain.stdin, flush=True)
        assert plain.stdout.readline() == "1000000\n"
        endpoint.close()
        plain.stdin.close()
        assert plain.wait(_patience) == 0


def test_forked_child_is_refused() -> None:
    before = """
from ucxio.ucp._libs import ucx_api
context = ucx_api.UCXContext({"TLS": "tcp", "NET_DEVICES": "lo"})
memory = context.alloc(8)
worker = ucx_api.UCXWorker(context)
address = worker.get_address()
ep = ucx_api.UCXEndpoint.create_from_worker_address(worker, address, True)
rkey = ep.unpack_rkey(memory.pack_rkey())
remote = ucx_api.RemoteMemory(rkey, memory.address, 8)
file = ucx_api.UCXIO(memory.address, 8, rkey)
calls = {
    "context": lambda: ucx_api.UCXContext(),
    "info": context.info,
    "map": lambda: context.map(bytearray(8)),
    "alloc": lambda: context.alloc(8),
    "key": memory.pack_rkey,
    "worker": lambda: ucx_api.UCXWorker(context),
    "progress": worker.progress,
    "flush": lambda: worker.flush(None),
    "endpoint": lambda: ucx_api.UCXEndpoint.create_from_worker_address(worker, address, True),
    "remote": lambda: ucx_api.RemoteMemory(rkey, memory.address, 8),
    "put": lambda: remote.put_nbi(b"x"),
    "get": lambda: remote.get_nbi(bytearray(1)),
    "read": lambda: file.read(1),
    "write": lambda: file.write(b"x"),
}
"""
    with Process(forked(before, "ep.close()", "file.write(b'12345678')")) as program:
        assert program.end() == (0, "", "")
