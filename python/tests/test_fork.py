from __future__ import annotations

import pytest
from conftest import Process, forked, ways

before = """
import concurrent.futures
import ucxio
server = ucxio.Server(**eval(sys.argv[1]))
shown = server.publish("data", bytearray(b"data"))
meeting = ucxio.Server("unix:", pipes=True)
with concurrent.futures.ThreadPoolExecutor(1) as threads:
    opened = threads.submit(ucxio.open_pipe, meeting.url_of("pipe"), "wb", 0)
    reader = ucxio.open_pipe(meeting.url_of("pipe"), "rb", 0)
    writer = opened.result()
store = server.allocate_directory("store", quota=1 << 20)
client = ucxio.Client(server.url)
region = client.open("data")
file = ucxio.open(shown.url)
new = ucxio.open(server.url_of("store/new"), "wb")
new.write(b"half")
url = server.url
calls = {
    "Server": lambda: ucxio.Server("unix:"),
    "url": lambda: server.url,
    "list of server": server.list,
    "publish": lambda: server.publish("x", b"x"),
    "allocate": lambda: server.allocate("x", 10),
    "publish_directory": lambda: server.publish_directory("/tmp"),
    "statistics": lambda: server.statistics,
    "publication": lambda: shown.size,
    "view": shown.memoryview,
    "Client": lambda: ucxio.Client(url),
    "list": client.list,
    "stat": lambda: client.stat("data"),
    "exists": lambda: client.exists("data"),
    "open by client": lambda: client.open("data"),
    "create": lambda: client.create("store/x"),
    "read_many": lambda: client.read_many(["store/x"]),
    "write_many": lambda: client.write_many({"store/x": b"x"}),
    "open_many": lambda: client.open_many(["data"]),
    "remove": lambda: client.remove("store/x"),
    "read": region.read,
    "read_into": lambda: region.read_into(bytearray(4)),
    "write_from": lambda: region.write_from(b"x"),
    "read_batch": lambda: region.read_batch([]),
    "load": lambda: region.load(0),
    "flush": region.flush,
    "size": lambda: region.size,
    "memoryview": region.memoryview,
    "open": lambda: ucxio.open(shown_url),
    "open_region": lambda: ucxio.open_region(shown_url),
    "read of file": file.read,
    "open_pipe": lambda: ucxio.open_pipe("ucx+unix:///run/none.sock/pipe"),
    "read of pipe": lambda: reader.readinto(bytearray(1)),
    "write of pipe": lambda: writer.write(b"x"),
    "show_config": ucxio.show_config,
}
shown_url = shown.url
"""
in_child = """
new.discard()
file.close()
reader.close()
writer.discard()
region.close()
client.close()
server.close()
"""
after = """
# Nothing of the parent's has changed.
assert region.read() == b"data"
assert file.read() == b"data"
writer.write(b"pipe")
writer.close()
assert reader.readall() == b"pipe"
reader.close()
new.write(b" and half")
new.close()
assert client.open("store/new").read() == b"half and half"
file.close()
"""


@pytest.mark.parametrize("way", ways)
def test_every_call_in_a_forked_child_raises_at_once(way: str) -> None:
    with Process(forked(before, in_child, after), repr(ways[way])) as running:
        assert running.end() == (0, "", "")


def test_child_of_a_parent_that_used_nothing_may_use_it() -> None:
    program = """
import os, sys, warnings, ucxio
child = os.fork()
if child == 0:
    with ucxio.Server("unix:") as server, server.publish("data", b"data") as shown:
        assert ucxio.open_region(shown.url).read() == b"data"
    sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    with Process(program) as running:
        assert running.end() == (0, "", "")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_are_started_otherwise_use_pickled_regions(method: str) -> None:
    program = """
import multiprocessing, sys, ucxio
from pathlib import Path
def main():
    server = ucxio.Server("unix:")
    shown = server.publish("data", b"data")
    region = ucxio.open_region(shown.url)
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        assert pool.map(ucxio.Region.read, [region, region]) == [b"data", b"data"]
if __name__ == "__main__":
    main()
"""
    with Process(program, method) as running:
        assert running.end() == (0, "", "")
