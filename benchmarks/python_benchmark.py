#!/usr/bin/env python3
"""The Python package beside the C++ library, local files and sockets, in turns. Prints a table of ratios of times.

  benchmarks/python_benchmark.py CONTENDER [PASSES [SECONDS]]        CONTENDER: the program python_contender

The package `ucxio` has to be there. The server runs on core 0, the contenders on core 1.
"""
import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import ucxio
import ucxio.aio
import ucxio.fsspec

MIB = 1 << 20
SIZE = 64 * MIB
LINES = 20_000
SERVER = """
import os, sys, ucxio
os.sched_setaffinity(0, {0})
server = ucxio.Server(**eval(sys.argv[1]))
kept = server.publish("data", bytearray(os.urandom(1 << 20)) * 64)
text = server.publish("text", b"%072d\\n" % 7 * int(sys.argv[2]))
def add(a: int, b: int) -> int:
    return a + b
server.calls.add("add", add)
print(server.url, flush=True)
sys.stdin.read()
"""
ECHO = """
import os, socket
os.sched_setaffinity(0, {0})
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
peer, _ = listener.accept()
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while some := peer.recv(4096):
    peer.sendall(some)
"""


def time_of_call(seconds, call):
    begin, calls = time.perf_counter(), 0
    while True:
        call()
        calls += 1
        passed = time.perf_counter() - begin
        if passed >= seconds:
            return passed / calls


async def time_of_await(seconds, call):
    begin, calls = time.perf_counter(), 0
    while True:
        await call()
        calls += 1
        passed = time.perf_counter() - begin
        if passed >= seconds:
            return passed / calls


class Far:
    """A process that answers lines."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        return self.process.stdout.readline().strip()

    def ask(self, what):
        print(what, file=self.process.stdin, flush=True)
        return float(self.line())


def rounds(file, buffer, call):
    """Returns a function that reads a part of a file, from its beginning again at its end."""
    def one():
        if file.tell() + MIB > SIZE:
            file.seek(0)
        call(file, buffer)
    return one


def lines_of(open_text):
    def one():
        with open_text() as file:
            if sum(1 for _ in file) != LINES:
                raise RuntimeError("lines are missing")
    return one


def contenders_of(url, far, folder, loop, echo):
    """Returns the lines: a name, and what is timed of ucxio and of the other."""
    buffer, eight = bytearray(MIB), bytearray(8)
    client = ucxio.Client(url)
    region = client.open("data")
    raw = ucxio.open(f"{url}/data", buffering=0)
    local = os.path.join(folder, "text")
    with open(local, "wb") as file:
        shutil.copyfileobj(ucxio.open(f"{url}/text"), file)
    files = ucxio.fsspec.UcxFileSystem(url)
    parts = [random.randrange(SIZE - 4096) for _ in range(1000)]

    def ranges():
        files.cat_ranges(["data"] * 1000, parts, [each + 4096 for each in parts])

    def preads():
        for each in parts:
            region.read(each, 4096)

    awaited = loop.run_until_complete(ucxio.aio.connect(url))
    of_loop = loop.run_until_complete(awaited.open("data"))
    reader, writer = loop.run_until_complete(asyncio.open_connection("127.0.0.1", echo))

    async def echoed():
        writer.write(b"12345678")
        await reader.readexactly(8)

    def in_loop(call):
        return lambda seconds: loop.run_until_complete(time_of_await(seconds, call))

    def here(call):
        return lambda seconds: time_of_call(seconds, call)

    def there(what):
        return lambda seconds: far.ask(f"{what} {seconds}")

    return [
        ("readinto of 1 MiB, C++ stream", here(rounds(raw, buffer, lambda f, b: f.readinto(b))), there("stream")),
        ("read of 1 MiB, C++ stream", here(rounds(raw, buffer, lambda f, b: f.read(MIB))), there("stream")),
        ("read_into of 8 bytes, C++ read_at", here(lambda: region.read_into(eight)), there("pread")),
        ("lines of text, local file", here(lines_of(lambda: ucxio.open(f"{url}/text", "rt"))), here(lines_of(lambda: open(local)))),
        ("cat_ranges of 1000 x 4 KiB, loop of reads", here(ranges), here(preads)),
        ("await read of 8 bytes, asyncio socket", in_loop(lambda: of_loop.read(0, 8)), in_loop(echoed)),
        ("call of add, read_into of 8 bytes", here(lambda: client.call("add", 25, 17)), here(lambda: region.read_into(eight))),
        ("await call of add, asyncio socket", in_loop(lambda: awaited.call("add", 25, 17)), in_loop(echoed)),
    ]


def compare(way, contender, passes, seconds, folder):
    server = Far(sys.executable, "-c", SERVER, repr(way), str(LINES))
    url = server.line()
    far = Far(contender, f"{url}/data")
    echo = Far(sys.executable, "-c", ECHO)
    loop = asyncio.new_event_loop()
    all_lines = contenders_of(url, far, folder, loop, int(echo.line()))
    times = {name: [] for name, _, _ in all_lines}
    for _ in range(passes):
        for name, ours, other in random.sample(all_lines, len(all_lines)):
            first = random.random() < 0.5
            one = (ours if first else other)(seconds)
            two = (other if first else ours)(seconds)
            times[name].append((one, two) if first else (two, one))
    for name, found in times.items():
        ratios = [a / b for a, b in found]
        low, middle, high = statistics.quantiles(ratios, n=4)
        ours, other = (statistics.median(each) * 1e6 for each in zip(*found))
        print(f"| {url.split(':')[0]} | {name} | {middle:.2f} ({low:.2f}-{high:.2f}) | {ours:.1f}/{other:.1f} |", flush=True)
    for each in (far, echo, server):
        each.process.kill()
        each.process.wait()


def main():
    os.sched_setaffinity(0, {1})
    contender = sys.argv[1]
    passes = int(sys.argv[2]) if len(sys.argv) > 2 else 9
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.2
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for way in ({"transport": "ucx"}, {"bind": "unix:"}, {"transport": "socket"}):
            compare(way, contender, passes, seconds, folder)


if __name__ == "__main__":
    main()
