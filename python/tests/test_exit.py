"""The end of the interpreter, of servers and of regions, while somebody uses their memory."""

from __future__ import annotations

import pytest
from conftest import Process, ways


@pytest.mark.parametrize("way", ways)
def test_server_does_not_close_while_arrays_of_its_memory_exist(way: str) -> None:
    program = """
import sys, ucxio
server = ucxio.Server(**eval(sys.argv[1]))
memory = server.allocate("memory", 1 << 20)
array = memory.array()
array[:] = 7
for _ in range(2):
    try:
        server.close()
    except BufferError as failed:
        print(failed)
assert (memory.closed, server.closed) == (False, False)
assert ucxio.open_region(memory.url).read(0, 1) == bytes([7])
print(array.sum() == 7 << 20)
del array
server.close()
for call in memory.memoryview, memory.array, server.list:
    try:
        call()
    except ValueError as failed:
        assert failed.code == "closed"
memory.close()
"""
    text = "closing a server while memoryviews of its memory exist\n"
    with Process(program, repr(ways[way])) as running:
        assert running.end() == (0, text + text + "True\n", "")


def test_array_outlives_a_block_that_could_not_close_its_server() -> None:
    program = """
import ucxio
try:
    with ucxio.Server("unix:") as server, server.allocate("memory", 4096) as memory:
        array = memory.array()
        array[:] = 1
except BufferError as failed:
    print(failed)
print(array.sum())
"""
    with Process(program) as running:
        text = "closing a server while memoryviews of its memory exist\n4096\n"
        assert running.end() == (0, text, "")


@pytest.mark.parametrize("way", ways)
def test_array_keeps_a_server_that_nobody_has_any_more(way: str) -> None:
    program = """
import gc, sys, ucxio
server = ucxio.Server(**eval(sys.argv[1]))
memory = server.allocate("memory", 4096)
url = memory.url
array = memory.array()
array[:] = 1
del server, memory
gc.collect()
print(array.sum(), flush=True)
del array
try:
    ucxio.open_region(url)
except OSError:
    print("gone")
"""
    with Process(program, repr(ways[way])) as running:
        assert running.end() == (0, "4096\ngone\n", "")


@pytest.mark.parametrize("way", ways)
def test_arrays_can_be_read_until_the_interpreter_has_ended(way: str) -> None:
    program = """
import atexit, sys
@atexit.register
def after_ours():
    print(array[0], flush=True)
import ucxio
server = ucxio.Server(**eval(sys.argv[1]))
memory = server.allocate("memory", 4096)
array = memory.array()
array[:] = 3
class Late:
    def __del__(self, array=array):
        print(array[0], flush=True)
late = Late()
"""
    with Process(program, repr(ways[way])) as running:
        assert running.end() == (0, "3\n3\n", "")


def test_region_closes_while_other_threads_make_views() -> None:
    program = """
import sys, threading, time, ucxio
sys.setswitchinterval(1e-5)
server = ucxio.Server(transport="ucx")
memory = server.allocate("memory", 4096)
client = ucxio.Client(server.url)
assert client.open("memory").transfer_method == "mapped"
def look(region):
    try:
        while True:
            with region.memoryview() as view:
                for _ in range(20):
                    bytes(view)
            region.why_not("rma")
    except ucxio.Error as failed:
        assert failed.code == "closed", failed
for _ in range(20):
    region = client.open("memory", "read_write")
    threads = [threading.Thread(target=look, args=(region,)) for _ in range(2)]
    for each in threads:
        each.start()
    while not region.closed:
        try:
            region.close()
        except BufferError:
            pass
    for each in threads:
        each.join()
"""
    with Process(program) as running:
        assert running.end() == (0, "", "")


asking = """
import atexit, threading
ends = threading.Event()
asked = threading.Event()
def ask():
    while not ends.is_set():
        client.list()
        region.read()
        asked.set()
@atexit.register  # runs after that of the package
def join():
    if is_joined:
        ends.set()
        for each in threads:
            each.join()
        print("joined", flush=True)
import ucxio
server = ucxio.Server("unix:")
memory = server.publish("memory", bytes(4096))
far = ucxio.Server("unix:")
kept = far.allocate("kept", 4096)
view = kept.memoryview()  # this server is closed last
region = ucxio.open_region(far.url_of("kept"))
client = ucxio.Client(far.url)
threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
for each in threads:
    each.start()
asked.wait()
"""


def test_thread_that_waits_can_be_joined_as_the_interpreter_ends() -> None:
    with Process("is_joined = True\n" + asking) as running:
        assert running.end() == (0, "joined\n", "")


def test_threads_that_wait_do_not_disturb_the_end() -> None:
    for _ in range(10):
        with Process("is_joined = False\n" + asking) as running:
            assert running.end() == (0, "", "")


def test_forked_child_of_a_busy_parent_ends() -> None:
    program = """
import os, sys, warnings
warnings.simplefilter("ignore")
for _ in range(4):
    child = os.fork()
    if child == 0:
        ucxio._core.end(1e6)  # it has nobody to wait for
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    with Process("is_joined = False\n" + asking + program) as running:
        assert running.end() == (0, "", "")


def test_interrupt_as_servers_are_closed_leaves_nothing_out() -> None:
    program = """
import ucxio
from ucxio import server
real = server._core
class Interrupted:
    def end(self):
        raise KeyboardInterrupt
class Core:
    def __getattr__(self, name):
        return getattr(real, name)
    def end(self, limit):
        print("ended", flush=True)
        real.end(limit)
made = ucxio.Server("unix:")
made._core = Interrupted()
server._core = Core()
"""
    with Process(program) as running:
        code, out, errors = running.end()
        assert (code, out) == (0, "ended\n")
        assert "KeyboardInterrupt" in errors
