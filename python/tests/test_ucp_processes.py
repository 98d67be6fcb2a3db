"""Messages by the names of UCX-Py between processes, and the context that they share."""

from __future__ import annotations

import asyncio
import pickle
import signal
from typing import Any

import pytest
from conftest import Process, Run, forked, new_messages, run_in, soon, until

import ucxio
from ucxio import ucp
from ucxio.ucp import exceptions, utils

anew = pytest.fixture(autouse=True)(new_messages)


class Program(Process):
    """A program that waits for as long as a machine may stall."""

    def __init__(self, program: str, *arguments: str, **environment: str) -> None:
        patient = "from ucxio import ucp\nucp._last_words = ucp._close_timeout = 60.0\n"
        super().__init__(patient + program, *arguments, **environment)


# As programs of UCX-Py are written, but for the import.
server = """
import asyncio
import numpy as np
from ucxio import ucp

async def answer(ep):
    arr = np.empty(1 << 20, dtype="u1")
    await ep.recv(arr)
    arr += 1
    await ep.send(arr)
    await ep.close()
    lf.close()

async def main():
    global lf
    lf = ucp.create_listener(answer, 0)
    print(lf.port, flush=True)
    while not lf.closed():
        await asyncio.sleep(0.01)

asyncio.run(main())
"""
client = """
import asyncio, sys
import numpy as np
from ucxio import ucp

async def main():
    host = ucp.get_address(ifname="lo")
    ep = await ucp.create_endpoint(host, int(sys.argv[1]))
    msg = np.zeros(1 << 20, dtype="u1")
    await ep.send(msg)
    resp = np.empty_like(msg)
    await ep.recv(resp)
    await ep.close()
    np.testing.assert_array_equal(msg + 1, resp)

asyncio.run(main())
"""


@pytest.mark.parametrize("interface", ["", "lo"])
def test_examples_run(interface: str) -> None:
    told = {"UCXPY_IFNAME": interface} if interface else {}
    with Program(server, **told) as serves:
        port = serves.line()
        with Program(client, port) as asks:
            assert asks.end() == (0, "", "")
        assert serves.end() == (0, "", "")


by_address_server = """
import asyncio, sys
import numpy as np
from ucxio import ucp

async def main():
    print(ucp.get_worker_address().hex(), flush=True)
    for _ in range(2):
        size = np.empty(1, dtype=np.int64)
        await ucp.recv(size, tag=0)
        address = bytearray(int(size[0]))
        await ucp.recv(address, tag=0)
        peer = ucp.get_ucx_address_from_buffer(address)
        ep = await ucp.create_endpoint_from_worker_address(peer)
        await ep.send(np.arange(10, dtype=np.int64), tag=1, force_tag=True)
        await ep.send_multi([b"a", b"bc"], tag=2, force_tag=True)

asyncio.run(main())
"""
by_address_client = """
import asyncio, sys
import numpy as np
from ucxio import ucp

async def main():
    mine = ucp.get_worker_address()
    server = ucp.get_ucx_address_from_buffer(bytes.fromhex(sys.argv[1]))
    ep = await ucp.create_endpoint_from_worker_address(server)
    await ep.send(np.array(mine.length, np.int64), tag=0, force_tag=True)
    await ep.send(mine, tag=0, force_tag=True)
    came = np.empty(10, dtype=np.int64)
    await ep.recv(came, tag=1, force_tag=True)
    np.testing.assert_array_equal(came, np.arange(10))
    assert [bytes(each) for each in await ep.recv_multi(tag=2, force_tag=True)] == [b"a", b"bc"]

asyncio.run(main())
"""


def test_peers_connect_by_worker_address() -> None:
    with Program(by_address_server) as serves:
        address = serves.line()
        for _ in range(2):
            with Program(by_address_client, address) as asks:
                assert asks.end() == (0, "", "")
        assert serves.end() == (0, "", "")


def test_endpoint_by_worker_address_has_tags_of_both_sides(run: Run[None]) -> None:
    async def program() -> None:
        address = ucp.get_worker_address()
        again = pickle.loads(pickle.dumps(address))
        assert again == address == ucp.get_ucx_address_from_buffer(bytearray(address))
        assert again.length == len(address) == len(bytes(memoryview(again)))
        assert hash(again) == hash(address)
        assert str(len(address)) in repr(address)
        endpoint = await ucp.create_endpoint_from_worker_address(address)
        with pytest.raises(ValueError, match="force_tag"):
            await endpoint.send(b"x")
        with pytest.raises(ValueError, match="force_tag"):
            await endpoint.recv(bytearray(1), tag=1)
        with pytest.raises(exceptions.UCXError, match="with tags only"):
            await endpoint.am_send(b"x")
        with pytest.raises(exceptions.UCXError, match="with tags only"):
            await endpoint.am_recv()
        await endpoint.send(b"to myself", tag=5, force_tag=True)
        came = bytearray(9)
        await ucp.recv(came, 5)
        assert came == b"to myself"
        with pytest.raises(exceptions.UCXError):
            await ucp.create_endpoint_from_worker_address(ucp.UCXAddress(address[:-1]))
        await endpoint.close()

    run(program())


answering = """
import asyncio
from ucxio import ucp

async def answer(ep):
    await ep.send(b"x")
    await ep.recv(bytearray(1))

async def main():
    listener = ucp.create_listener(answer)
    print(listener.port, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["recv", "am_recv"])
def test_killed_peer_is_told(run: Run[None], kind: str) -> None:
    with Program(answering) as serves:
        port = int(serves.line())

        async def program() -> None:
            endpoint = await ucp.create_endpoint("127.0.0.1", port)
            await endpoint.recv(bytearray(1))
            waits = asyncio.create_task(
                endpoint.recv(bytearray(1)) if kind == "recv" else endpoint.am_recv()
            )
            assert await until(lambda: endpoint._receives or endpoint._line)
            serves.running.send_signal(signal.SIGKILL)
            with pytest.raises(exceptions.UCXCanceled):
                await waits
            with pytest.raises(exceptions.UCXConnectionReset):
                await endpoint.recv(bytearray(1))
            with pytest.raises(exceptions.UCXConnectionReset):
                await endpoint.send(b"x")
            await endpoint.close()

        run(program())


@pytest.mark.parametrize("open_one", ["endpoint", "listener", "call"])
def test_reset_names_what_is_open(run: Run[None], open_one: str) -> None:
    async def program() -> None:
        accepted: list[ucp.Endpoint] = []
        listener = ucp.create_listener(accepted.append)
        endpoint = await ucp.create_endpoint(listener.ip, listener.port)
        assert await until(lambda: accepted)
        accepted.pop().abort()
        receives: asyncio.Task[None] | None = None
        if open_one == "call":
            receives = asyncio.create_task(ucp.recv(bytearray(1), 3))
            await asyncio.sleep(0)
        if open_one != "listener":
            listener.close()
        if open_one != "endpoint":
            await endpoint.close()
        with pytest.raises(exceptions.UCXError, match="not all Endpoints and/or Listeners"):
            ucp.reset()
        endpoint.abort()
        listener.close()
        if receives is not None:
            receives.cancel()
            await asyncio.wait([receives])
        ucp.reset()
        ucp.init()
        assert ucp.get_ucp_worker() > 0

    run(program())


def test_init(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "TLS" in ucp.get_config()
    assert ucp._ctx is None  # the questions make none
    monkeypatch.setenv("UCX_SEG_SIZE", "2M")
    options = {"SEG_SIZE": "3M"}
    ucp.init(options)
    assert ucp.get_config()["SEG_SIZE"] == "3M"
    with pytest.raises(RuntimeError, match="reset"):
        ucp.init()
    ucp.reset()
    ucp.reset()
    ucp.init(options, env_takes_precedence=True, blocking_progress_mode=False)
    assert ucp.get_config()["SEG_SIZE"] == "2M"
    assert options == {"SEG_SIZE": "3M"}
    ucp.reset()
    for wrong in ({"SEG_SIZE": "long"}, {"NO_SUCH_KEY": "1"}):
        with pytest.raises(exceptions.UCXConfigError) as failed:
            ucp.init(wrong)
        assert isinstance(failed.value.__cause__, ucxio.Error)
    with pytest.raises(ValueError, match="timeout"):
        ucp.init(connect_timeout=0)


@pytest.mark.parametrize("names", ["tcp", "posix,tcp"])
def test_information(names: str) -> None:
    ucp.init({"TLS": names})
    found = ucp.get_active_transports()
    assert found == set(names.split(","))
    assert "tcp" in ucp.get_ucp_context_info()
    assert "tcp" in ucp.get_ucp_worker_info()
    assert ucp.get_ucx_version() == tuple(int(each) for each in ucp.__ucx_version__.split("."))
    assert ucp.__version__ == ucxio.__version__
    assert ucp.progress() in (True, False)
    ucp.fence()


def test_calls_without_a_context(run: Run[None]) -> None:
    ucp.fence()
    run(ucp.flush())
    ucp.continuous_ucx_progress()  # no loop runs


def test_tags_are_alike_in_all_processes() -> None:
    program = """
from ucxio.ucp import utils
print(utils.stable_hash(("x", b"y", 1, 2.5, None)), utils.hash64bits("a", 1))
"""
    found = set()
    for seed in ("1", "2"):
        with Program(program, PYTHONHASHSEED=seed) as running:
            found.add(running.end())
    here = f"{utils.stable_hash(('x', b'y', True, 2.5, None))} {utils.hash64bits('a', 1)}\n"
    assert found == {(0, here, "")}


def test_several_loops_use_one_context() -> None:
    """A loop is left while a task waits in it, and goes on later."""

    async def listen() -> ucp.Listener:
        return ucp.create_listener(accepted.append)

    async def connect() -> ucp.Endpoint:
        endpoint = await ucp.create_endpoint(listener.ip, listener.port)
        assert await until(lambda: accepted)
        return endpoint

    async def begin() -> asyncio.Task[Any]:
        task = asyncio.create_task(mine.recv(into))
        assert await until(lambda: mine._receives)
        return task

    async def finish(task: asyncio.Task[Any]) -> None:
        await task

    accepted: list[ucp.Endpoint] = []
    into = bytearray(5)
    first, second = utils.get_event_loop(), asyncio.new_event_loop()
    listener = first.run_until_complete(listen())
    mine = second.run_until_complete(connect())
    task = first.run_until_complete(begin())
    second.run_until_complete(accepted[0].send(b"hello"))
    first.run_until_complete(asyncio.wait_for(finish(task), 60))
    assert into == b"hello"
    second.close()
    first.run_until_complete(mine.close())
    listener.close()
    accepted.clear()
    first.close()


def test_loop_is_told_what_came_without_one() -> None:
    told: list[ucp.Endpoint] = []

    async def connect() -> ucp.Endpoint:
        return await ucp.create_endpoint(listener.ip, listener.port)

    async def wait() -> None:
        ucp.continuous_ucx_progress()
        assert await until(lambda: told)

    listener = ucp.create_listener(told.append)
    with Program(waiting_client, str(listener.port)) as running:
        assert running.line() == "begun"
        # The listener answers without a loop.
        assert soon(lambda: (ucp.progress(), ucp._get_ctx()._late)[1])
        run_in("asyncio", wait())
        assert told[0].closed() in (True, False)
        told[0].abort()
    listener.close()


waiting_client = """
import asyncio, sys
from ucxio import ucp

async def main():
    print("begun", flush=True)
    endpoint = await ucp.create_endpoint("127.0.0.1", int(sys.argv[1]))
    await endpoint.recv(bytearray(1))

asyncio.run(main())
"""

before = """
import asyncio
from ucxio import ucp
loop = asyncio.new_event_loop()
accepted = []
address = ucp.get_worker_address()
async def pair():
    global listener
    listener = ucp.create_listener(accepted.append)
    made = await ucp.create_endpoint(listener.ip, listener.port)
    async with asyncio.timeout(100):
        while not accepted:
            await asyncio.sleep(0.001)
    return made, accepted.pop()
mine, other = loop.run_until_complete(pair())
run = loop.run_until_complete
calls = {
    "recv of endpoint": lambda: run(mine.recv(bytearray(1))),
    "recv with a forced tag": lambda: run(mine.recv(bytearray(1), tag=1, force_tag=True)),
    "recv_multi": lambda: run(mine.recv_multi()),
    "send": lambda: run(mine.send(b"x")),
    "am_recv": lambda: run(mine.am_recv()),
    "am_send": lambda: run(mine.am_send(b"x")),
    "flush of endpoint": lambda: run(mine.flush()),
    "close": lambda: run(mine.close()),
    "closed": lambda: mine.closed,
    "ucx_info": mine.ucx_info,
    "handle": mine.get_ucp_endpoint,
    "handle of worker": ucp.get_ucp_worker,
    "flush": lambda: run(ucp.flush()),
    "recv": lambda: loop.run_until_complete(ucp.recv(bytearray(1), 1)),
    "address": ucp.get_worker_address,
    "config": ucp.get_config,
    "progress": ucp.progress,
    "fence": ucp.fence,
    "listen": lambda: ucp.create_listener(print),
    "connect by address": lambda: loop.run_until_complete(
        ucp.create_endpoint_from_worker_address(address)),
}
"""
in_child = """
repr(mine)
mine.abort()
listener.close()
"""
after = """
# Nothing of the parent's has changed.
async def end():
    await other.send(b"x")
    await mine.recv(bytearray(1))
    await mine.close()
    await other.close()
loop.run_until_complete(end())
listener.close()
loop.close()
"""


def test_forked_child_is_refused() -> None:
    with Program(forked(before, in_child, after)) as running:
        assert running.end() == (0, "", "")


def test_exit_with_everything_open_is_quiet() -> None:
    program = """
import asyncio, sys
from ucxio import ucp

async def main():
    global listener, mine, other, receives
    accepted = asyncio.get_running_loop().create_future()
    listener = ucp.create_listener(accepted.set_result)
    mine = await ucp.create_endpoint(listener.ip, listener.port)
    other = await accepted
    await other.send(b"x")
    await mine.am_send(b"y")

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
if sys.argv[1] == "closed":
    loop.close()
print("made")
"""
    for how in ("closed", "open"):
        with Program(program, how) as running:
            assert running.end() == (0, "made\n", "")


def test_what_was_sent_goes_out_at_the_end_of_the_process() -> None:
    sends = """
import asyncio, sys
from ucxio import ucp

async def main():
    endpoint = await ucp.create_endpoint("127.0.0.1", int(sys.argv[1]))
    for i in range(50):
        await endpoint.send(bytes([i]) * 1000)

asyncio.run(main())
"""

    async def program() -> None:
        accepted: asyncio.Future[ucp.Endpoint] = asyncio.get_running_loop().create_future()
        listener = ucp.create_listener(accepted.set_result)
        with Program(sends, str(listener.port)) as running:
            peer = await accepted
            assert await asyncio.to_thread(running.end) == (0, "", "")
            came = bytearray(1000)
            for i in range(50):
                await peer.recv(came)
                assert came == bytes([i]) * 1000
            await peer.close()
        listener.close()

    run_in("asyncio", program())
