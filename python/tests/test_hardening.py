"""Ends, leaks, many threads and processes: what long jobs meet sooner or later."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy
import pytest
from conftest import Process, Run, soon, stop, ways
from test_pipes import both

import ucxio
from ucxio import aio

# What hangs reaches this. Without that the end takes 2 s at most, and less on an idle machine.
bound = 120.0

in_flight = """
import asyncio, sys, threading, ucxio
from ucxio import aio
url, pipe = sys.argv[1:3]
options = eval(sys.argv[4])
client = ucxio.Client(url, **options)
region = client.open("data", "read_write")
file = ucxio.open("data", "r+b", 0, client=client)
raw, writer = ucxio.open_pipe(pipe, "rb", 0), None
buffers = [bytearray(1 << 20) for _ in range(8)]
begun = threading.Semaphore(0)
def again(call):
    begun.release()
    try:
        while True:
            call()
    except (OSError, ValueError):
        pass  # what is open is given up as the interpreter ends
calls = [
    lambda: region.read_into(buffers[0]), lambda: region.write_from(buffers[1]), client.list,
    region.read, lambda: raw.readinto(buffers[2]), lambda: file.readinto(buffers[3]),
]
for each in calls:
    threading.Thread(target=again, args=(each,), daemon=True).start()
def loop():
    async def main():
        async with await aio.connect(url, **options) as client:
            region = await client.open("data")
            begun.release()
            while True:
                await asyncio.gather(*(region.read_into(each) for each in buffers[4:]))
    asyncio.run(main())
threading.Thread(target=loop, daemon=True).start()
for _ in range(len(calls) + 1):
    begun.acquire()
print("in flight", flush=True)
sys.stdin.readline()
if sys.argv[3] == "exception":
    raise SystemExit(3)
"""


@pytest.mark.parametrize("how", ["end", "exception", "stopped server"])
def test_interpreter_ends_while_threads_transfer(far_server: Process, how: str) -> None:
    url: str = far_server.url  # type: ignore[attr-defined]
    # By UCX the bytes move without the owner, which would not be in flight.
    options = {"transports": ["tcp"]} if url.startswith("ucx://") else {}
    with ucxio.Server("unix:", pipes=True) as meeting:
        pipe = meeting.url_of("pipe")
        with Process(in_flight, url, pipe, how, repr(options)) as running:
            with ucxio.open_pipe(pipe, "wb", 0) as writer:
                assert running.line() == "in flight"
                if how == "stopped server":
                    stop(far_server)
                assert running.running.stdin is not None
                running.running.stdin.write("\n")
                running.running.stdin.flush()
                assert running.running.wait(bound) == (3 if how == "exception" else 0)
                assert running.end()[2] == ""
                writer.discard()


everything = """
import asyncio, gc, sys, ucxio
from concurrent.futures import ThreadPoolExecutor
from ucxio import aio
server = ucxio.Server(**eval(sys.argv[1]), pipes=True)
shown = server.publish("data", bytearray(4096), writable=True)
memory = server.allocate("memory", 4096)
client = ucxio.Client(server.url)
region = client.open("data", "read_write")
file = ucxio.open(shown.url, buffering=0)
with ThreadPoolExecutor(2) as threads:
    ends = [threads.submit(ucxio.open_pipe, server.url_of("p"), mode, 0) for mode in ("rb", "wb")]
    ends = [each.result() for each in ends]
loop = asyncio.new_event_loop()
awaited = loop.run_until_complete(aio.connect(server.url))
far = loop.run_until_complete(awaited.open("data"))
async def meet():
    url = server.url_of("q")
    return await asyncio.gather(aio.open_pipe(url, "rb"), aio.open_pipe(url, "wb"))
pipes = loop.run_until_complete(meet())
task = loop.create_task(pipes[0].read(1))
task._log_destroy_pending = False
loop.run_until_complete(asyncio.sleep(0))
class Knot:
    pass
knot = Knot()
knot.all = [server, shown, memory, client, region, file, *ends, awaited, far, *pipes, task]
knot.self = knot
if sys.argv[2] == "collected":
    del server, shown, memory, client, region, file, ends, awaited, far, pipes, task, knot
    if sys.argv[3] == "early":
        gc.collect()
elif sys.argv[2] == "builtins":
    import builtins
    builtins.kept = knot
"""


# In which order objects go does not depend on the way.
@pytest.mark.parametrize(
    ("way", "arguments"),
    [(way, ("kept", "")) for way in ways]
    + [
        ("ucx+unix", each) for each in (("collected", ""), ("collected", "early"), ("builtins", ""))
    ],
)
def test_garbage_is_collected_at_the_end(way: str, arguments: tuple[str, str]) -> None:
    with Process(everything, repr(ways[way]), *arguments) as running:
        assert running.end() == (0, "", "")


def flat(operation: Callable[[], object], times: int) -> None:
    """Check that many operations keep no memory, and no reference to `operation` itself."""
    for _ in range(100):  # caches fill
        operation()
    gc.collect()
    references = sys.getrefcount(operation)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(times):
            operation()
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Less than the smallest object that would be kept for each.
    assert after - before < 32 * times
    assert sys.getrefcount(operation) == references


def test_ten_thousand_operations_keep_nothing(local_server: ucxio.Server) -> None:
    buffer = bytearray(64)
    array = numpy.zeros(8)
    with local_server.publish("data", bytearray(64), writable=True) as shown:
        with ucxio.Client(local_server.url) as client, ucxio.open(shown.url, "r+b", 0) as file:
            region = client.open("data", "read_write")

            def transfer() -> None:
                region.read_into(buffer)
                region.write_from(array)
                region.read(0, 8)
                region.fetch_add(0, 1)
                file.seek(0)
                file.write(buffer)
                file.seek(0)
                file.readinto(array)

            def ask() -> None:
                client.stat("data")
                client.open("data").close()
                with pytest.raises(FileNotFoundError):
                    client.stat("none")

            counts = sys.getrefcount(buffer), sys.getrefcount(array), sys.getrefcount(region)
            flat(transfer, 10_000 // 8)  # of eight operations each
            flat(ask, 300)
            assert counts == (
                sys.getrefcount(buffer),
                sys.getrefcount(array),
                sys.getrefcount(region),
            )
            region.close()
    buffer.append(1)  # no view is left


def test_ten_thousand_reads_of_a_pipe_keep_nothing() -> None:
    with ucxio.Server("unix:", pipes=True) as server:
        reader, writer = both(server.url_of("pipe"), ("rb", 0), ("wb", 0))
        with reader, writer:
            into, out = bytearray(64), bytearray(64)

            def move() -> None:
                writer.write(out)
                writer.flush()
                assert reader.readinto(into) > 0

            counts = sys.getrefcount(into), sys.getrefcount(out)
            flat(move, 10_000 // 3)
            assert counts == (sys.getrefcount(into), sys.getrefcount(out))
        into.append(1)


def test_pipes_that_come_and_go_keep_nothing() -> None:
    with ucxio.Server("unix:", pipes=True) as server:

        def come_and_go() -> None:
            reader, writer = both(server.url_of("pipe"), ("rb", 0), ("wb", 0))
            writer.close()
            reader.close()

        for _ in range(5):
            come_and_go()
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(60):
            come_and_go()
        gc.collect()
        assert len(gc.get_objects()) - before < 30


def test_ten_thousand_awaited_operations_keep_nothing(
    local_server: ucxio.Server, run: Run[None]
) -> None:
    buffer = bytearray(64)

    async def main() -> None:
        async with await aio.connect(local_server.url) as client:
            region = await client.open("data")

            async def transfer(times: int) -> None:
                for _ in range(times):
                    await region.read_into(buffer)
                    await region.read(0, 8)

            await transfer(500)
            gc.collect()
            count = sys.getrefcount(buffer)
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                await transfer(5000)
                gc.collect()
                after, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert after - before < 32 * 5000
            assert sys.getrefcount(buffer) == count
            assert not client._driver._waiting

    with local_server.publish("data", bytes(64)):
        asyncio_debug_is_slow(run, main())
    buffer.append(1)


def asyncio_debug_is_slow(run: Run[None], program: object) -> None:
    """Run without the debug mode, which keeps tracebacks of each handle."""

    async def main() -> None:
        asyncio.get_running_loop().set_debug(False)
        await program  # type: ignore[misc]

    run(main())


@pytest.mark.parametrize("way", ["ucx+unix", "ucx"])
def test_many_threads_share_a_client(way: str) -> None:
    count, rounds = 32, 20
    with ucxio.Server(**ways[way]) as server, ucxio.Client(server.url) as client:
        memory = bytearray(8 * count)
        with server.publish("numbers", memory, writable=True):
            region = client.open("numbers", "read_write")

            def work(number: int) -> int:
                own = client.open("numbers", "read_write")
                total = 0
                for _ in range(rounds):
                    region.fetch_add(8 * number, 1)
                    total += own.fetch_add(0, 0) >= 0
                    own.read(8 * number, 8)
                    with pytest.raises(FileNotFoundError):
                        client.stat(f"none{number}")
                own.close()
                return total

            with ThreadPoolExecutor(count) as threads:
                assert list(threads.map(work, range(count))) == [rounds] * count
            found = numpy.frombuffer(region.read(), numpy.uint64)
            assert found.tolist() == [rounds] * count
            region.close()


def test_many_threads_have_pipes() -> None:
    count = 8
    with ucxio.Server("unix:", pipes=True) as server:

        def end(number: int) -> bytes:
            url = server.url_of(f"pipe{number // 2}")
            if number % 2:
                with ucxio.open_pipe(url, "wb", connect_timeout=120) as writer:
                    writer.write(bytes([number]) * 100_000)
                return b""
            with ucxio.open_pipe(url, "rb", connect_timeout=120) as reader:
                return bytes(reader.read())

        with ThreadPoolExecutor(2 * count) as threads:
            found = list(threads.map(end, range(2 * count)))
    assert found == [b"" if i % 2 else bytes([i + 1]) * 100_000 for i in range(2 * count)]


def work_in_process(region: ucxio.Region, pipe: str, number: int) -> int:
    """Run in a process that was spawned: the region is opened again by its URL."""
    region.fetch_add(0, number)
    with ucxio.open_pipe(pipe, "wb", connect_timeout=120) as writer:
        writer.write(bytes([number]))
    return len(region.read())


def test_spawned_processes_have_regions_and_pipes(
    local_server: ucxio.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ucxio.Server("unix:", pipes=True) as meeting:
        pipe = meeting.url_of("all")
        with local_server.publish("number", bytearray(8), writable=True) as shown:
            with ucxio.open_region(shown.url, "read_write") as region:
                context = multiprocessing.get_context("spawn")
                with ProcessPoolExecutor(2, context) as processes:
                    going = [
                        processes.submit(work_in_process, region, pipe, number) for number in (1, 2)
                    ]
                    with ucxio.open_pipe(pipe, writers=2, connect_timeout=120) as reader:
                        assert sorted(reader.read()) == [1, 2]
                    assert [each.result(120) for each in going] == [8, 8]
                assert soon(lambda: region.load(0) == 3)
