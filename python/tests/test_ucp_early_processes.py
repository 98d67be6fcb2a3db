"""Programs of UCX-Py's first bindings between two processes, and what long jobs meet."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import tracemalloc

import pytest
from conftest import Process, Run, forked, is_free
from test_hardening import asyncio_debug_is_slow, bound, flat
from test_ucp_early import begun, message, pair  # noqa: F401

import ucxio.ucp.early as ucp
from ucxio.ucp import exceptions


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes wait for as long as a machine may stall."""
    monkeypatch.setenv("UCXPY_CONNECT_TIMEOUT", "100")


# As programs of that time are written, but for the import, and for the port that is told.
head = """
import argparse, asyncio, socket, sys
import ucxio.ucp.early as ucp

parser = argparse.ArgumentParser()
for name in ("--server", "--port", "--object", "--memory"):
    parser.add_argument(name)
for name in ("--check", "--blind", "--fast", "--asyncio"):
    parser.add_argument(name, action="store_true")
args = parser.parse_args()
ucp.init()

def region(size):
    made = ucp.buffer_region()
    made.alloc_cuda(size) if args.memory == "cuda" else made.alloc_host(size)
    return made

def free(made):
    made.free_cuda() if args.memory == "cuda" else made.free_host()

def listen(function, is_coroutine=True):
    made = ucp.start_server(function, 0, is_coroutine)
    print(ucp.get_listener_port(), flush=True)
    return made

def run(as_server, as_client):
    if args.server is None:
        waits_for = listen(as_server)
    else:
        waits_for = as_client(args.server.encode(), int(args.port))
    loop = asyncio.new_event_loop()
    loop.run_until_complete(waits_for)
    loop.close()
    ucp.fin()
"""

# Each process is server and client at a time.
duality = """
size = 1 << 21

async def talk(ep, mine, other, sends_first):
    out, into = region(size), region(size)
    sent, came = ucp.ucp_msg(out), ucp.ucp_msg(into)
    sent.set_mem(mine, size)
    came.set_mem(mine, size)
    if sends_first:
        await ep.send(sent, size)
    came = await (ep.recv_future() if args.blind else ep.recv(came, size))
    if not sends_first:
        await ep.send(sent, size)
    assert came.check_mem(other, size) == 0
    free(out)
    free(into)

async def as_server(ep):
    await talk(ep, 0, 1, True)
    ucp.destroy_ep(ep)
    ucp.stop_listener()

async def as_client(ip, port):
    ep = ucp.get_endpoint(ip, port)
    await talk(ep, 1, 0, False)
    ucp.destroy_ep(ep)

async def both():
    serving = listen(as_server)
    port = int(sys.stdin.readline())
    await asyncio.gather(serving, as_client(b"127.0.0.1", port))

loop = asyncio.new_event_loop()
loop.run_until_complete(both())
loop.close()
ucp.fin()
"""


@pytest.mark.parametrize("options", [(), ("--blind",), ("--memory", "cuda")])
def test_processes_are_server_and_client(
    options: tuple[str, ...], request: pytest.FixtureRequest
) -> None:
    if "cuda" in options:
        request.getfixturevalue("cuda_driver")
    with Process(head + duality, *options) as one, Process(head + duality, *options) as two:
        ports = one.line(), two.line()
        for each, port in ((one, ports[1]), (two, ports[0])):
            assert each.running.stdin is not None
            each.running.stdin.write(port + "\n")
            each.running.stdin.flush()
        assert one.end() == (0, "", "")
        assert two.end() == (0, "", "")


def between(program: str, *options: str) -> list[str]:
    """Run a program as server and as client. Return what either printed."""
    with Process(head + program, *options) as serves:
        port = serves.line()
        with Process(head + program, "--server", "127.0.0.1", "--port", port, *options) as asks:
            asked = asks.end()
        served = serves.end()
    assert (asked[0], asked[2]) == (0, "")
    assert (served[0], served[2]) == (0, "")
    return [served[1], asked[1]]


memories = """
size = 1 << 21

async def talk(ep, sends_first):
    out, into = region(size), region(size)
    send, receive = (ep.send_fast, ep.recv_fast) if args.fast else (ep.send, ep.recv)
    if sends_first:
        await send(ucp.ucp_msg(out), size)
    if args.blind:
        await ep.recv_future()
    else:
        await receive(ucp.ucp_msg(into), size)
    if not sends_first:
        await send(ucp.ucp_msg(out), size)
    free(out)
    free(into)
    ucp.destroy_ep(ep)

async def as_server(ep):
    await talk(ep, True)
    print("passed")
    ucp.stop_server()

async def as_client(ip, port):
    await talk(ucp.get_endpoint(ip, port), False)
    print("passed")

run(as_server, as_client)
"""


@pytest.mark.parametrize("options", [(), ("--fast",), ("--blind",)])
def test_memory_goes_both_ways(options: tuple[str, ...]) -> None:
    assert between(memories, *options) == ["passed\n"] * 2


objects = """
def object_of(text):
    return text.encode() if args.object == "bytes" else text

async def talk(ep, name, sends_first):
    sent = object_of("hello from " + name)
    if sends_first:
        await ep.send_msg(sent, sys.getsizeof(sent))
    if args.blind:
        came = await ep.recv_future()
    else:
        into = object_of("hello from nobody")
        came = await ep.recv_msg(into, sys.getsizeof(into))
    if not sends_first:
        await ep.send_msg(sent, sys.getsizeof(sent))
    print(ucp.get_obj_from_msg(came))
    ucp.destroy_ep(ep)

async def as_server(ep):
    await talk(ep, "the server", True)
    ucp.stop_server()

async def as_client(ip, port):
    await talk(ucp.get_endpoint(ip, port), "the client", False)

run(as_server, as_client)
"""


@pytest.mark.parametrize("options", [(), ("--blind",)])
@pytest.mark.parametrize("kind", ["str", "bytes"])
def test_objects_go_both_ways(kind: str, options: tuple[str, ...]) -> None:
    texts = ["hello from the client", "hello from the server"]
    expected = [repr(each.encode()) if kind == "bytes" else each for each in texts]
    assert between(objects, "--object", kind, *options) == [each + "\n" for each in expected]


latency = """
sizes, rounds = [1 << i for i in range(0, 21, 4)], 20

def calls(ep, out, into, size):
    send, receive = (ep.send_fast, ep.recv_fast) if args.fast else (ep.send, ep.recv)
    def receives():
        return ep.recv_future() if args.blind else receive(ucp.ucp_msg(into), size)
    both = [lambda: send(ucp.ucp_msg(out), size), receives]
    return both if args.server is None else both[::-1]

def talk(ep):
    out, into = region(sizes[-1]), region(sizes[-1])
    for size in sizes:
        for _ in range(rounds):
            for call in calls(ep, out, into, size):
                assert call().result().get_comm_len() == size
    ucp.destroy_ep(ep)

async def talk_async(ep):
    out, into = region(sizes[-1]), region(sizes[-1])
    for size in sizes:
        for _ in range(rounds):
            for call in calls(ep, out, into, size):
                assert (await call()).get_comm_len() == size
    ucp.destroy_ep(ep)

is_done = False

def as_server(ep):
    global is_done
    talk(ep)
    is_done = True
    ucp.stop_server()

async def as_server_async(ep):
    await talk_async(ep)
    ucp.stop_server()

async def as_client_async(ip, port):
    await talk_async(ucp.get_endpoint(ip, port))

if args.asyncio:
    run(as_server_async, as_client_async)
else:
    if args.server is None:
        listen(as_server, False)
        while not is_done:
            ucp.progress()
    else:
        talk(ucp.get_endpoint(args.server.encode(), int(args.port)))
    ucp.fin()
"""


@pytest.mark.parametrize("options", [(), ("--fast",), ("--blind",)])
@pytest.mark.parametrize("kind", [(), ("--asyncio",)])
def test_messages_go_to_and_fro(kind: tuple[str, ...], options: tuple[str, ...]) -> None:
    assert between(latency, *kind, *options) == ["", ""]


bandwidth = """
sizes, rounds, window = [1, 1 << 10, 1 << 18], 4, 64
is_done = False

def talk(ep):
    memory = region(sizes[-1])
    begin = ep.send if args.server is None else ep.recv
    for size in sizes:
        for _ in range(rounds):
            pending = [begin(ucp.ucp_msg(memory), size) for _ in range(window)]
            while pending:
                pending = [each for each in pending if not each.done()]
    free(memory)
    ucp.destroy_ep(ep)

def as_server(ep):
    global is_done
    talk(ep)
    is_done = True

if args.server is None:
    listen(as_server, False)
    while not is_done:
        ucp.progress()
else:
    talk(ucp.get_endpoint(args.server, int(args.port)))
"""


def test_windows_of_messages_go_one_way() -> None:
    assert between(bandwidth) == ["", ""]


greeting = (
    head
    + """
held = []
async def as_server(ep):
    held.append(ep)
    await ep.send_obj("hello", 5)
    await ep.recv_future()
run(as_server, None)
"""
)


def test_killed_peer_is_told() -> None:
    with Process(greeting) as serves:
        ep = ucp.get_endpoint("127.0.0.1", int(serves.line()))
        assert ep.recv_obj("", 0).result().get_obj() == "hello"
        into = message(8)
        waiting = ep.recv(into, 8)
        assert not waiting.done()
        serves.running.send_signal(signal.SIGKILL)
        with pytest.raises(exceptions.UCXCanceled):
            waiting.result()
        assert is_free(into.get_obj())
        with pytest.raises(exceptions.UCXError):
            ep.send_obj("x", 1).result()
        assert ucp.destroy_ep(ep) == 0


in_flight = """
import asyncio, sys
import ucxio.ucp.early as ucp

ucp.init()
ep = ucp.get_endpoint("127.0.0.1", int(sys.argv[1]))
assert ep.recv_obj("", 0).result().get_obj() == "hello"
memory = [ucp.buffer_region() for _ in range(8)]
for each in memory:
    each.alloc_host(8 << 20)
receives = [ep.recv(ucp.ucp_msg(each), 8 << 20) for each in memory[:4]] + [ep.recv_future()]
sends = [ep.send(ucp.ucp_msg(each), 8 << 20) for each in memory[4:]]
if sys.argv[2] == "awaited":
    async def wait():
        await receives[0]
    loop = asyncio.new_event_loop()
    task = loop.create_task(wait())
    task._log_destroy_pending = False
    loop.run_until_complete(asyncio.sleep(0))
elif sys.argv[2] == "listening":
    ucp.start_listener(print, 0)
print("in flight", flush=True)
if sys.argv[2] == "exception":
    raise SystemExit(3)
"""


@pytest.mark.parametrize("how", ["end", "exception", "awaited", "listening"])
def test_interpreter_ends_with_transfers_in_flight(how: str) -> None:
    with Process(greeting) as serves, Process(in_flight, serves.line(), how) as running:
        assert running.line() == "in flight"
        assert running.running.wait(bound) == (3 if how == "exception" else 0)
        assert running.end()[2] == ""


def test_ten_thousand_transfers_keep_nothing() -> None:
    mine, other = pair()
    out, into = message(64), message(64)
    memory = [each.get_obj() for each in (out, into)]

    def transfer() -> None:
        for begin in (mine.send, mine.send_fast):
            came = other.recv(into, 64)
            begin(out, 64).result()
            came.result()
        mine.send_obj("text", 4).result()
        assert other.recv_future().result().get_obj() == "text"

    counts = [sys.getrefcount(each) for each in (*memory, mine, other, out, into)]
    flat(transfer, 10_000 // 6)  # of six transfers each
    assert counts == [sys.getrefcount(each) for each in (*memory, mine, other, out, into)]
    assert all(is_free(each) for each in memory)


def test_ten_thousand_awaited_transfers_keep_nothing(run: Run[None]) -> None:
    async def program() -> None:
        accepted: asyncio.Future[ucp.ucp_py_ep] = asyncio.get_running_loop().create_future()
        ucp.start_listener(accepted.set_result, 0)
        mine = ucp.get_endpoint("127.0.0.1", ucp.get_listener_port())
        other = await accepted
        out, into = message(64), message(64)

        async def transfer(times: int) -> None:
            for _ in range(times):
                came = other.recv(into, 64)
                await mine.send_fast(out, 64)
                await came

        await transfer(500)
        gc.collect()
        counts = [sys.getrefcount(each) for each in (mine, other, out, into)]
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            await transfer(5000)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert after - before < 32 * 5000
        assert counts == [sys.getrefcount(each) for each in (mine, other, out, into)]

    asyncio_debug_is_slow(run, program())


before = """
import ucxio.ucp.early as ucp
ucp.init()
accepted = []
ucp.start_listener(accepted.append, 0)
mine = ucp.get_endpoint("127.0.0.1", ucp.get_listener_port())
while not accepted:
    ucp.progress()
other = accepted[0]
out = ucp.ucp_msg()
out.alloc_host(1)
waiting = other.recv_future()
calls = {
    "send": lambda: mine.send(out, 1),
    "recv": lambda: mine.recv(out, 1),
    "recv_future": mine.recv_future,
    "result": waiting.result,
    "done": waiting.done,
    "progress": ucp.progress,
    "connect": lambda: ucp.get_endpoint("127.0.0.1", 1),
}
"""
in_child = """
repr(mine)
ucp.destroy_ep(mine)
ucp.fin()
"""
after = """
# Nothing of the parent's has changed.
mine.send_obj("x", 1)
assert waiting.result().get_obj() == "x"
ucp.destroy_ep(other)
ucp.fin()
"""


def test_forked_child_is_refused() -> None:
    with Process(forked(before, in_child, after)) as running:
        assert running.end() == (0, "", "")
