from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

# Tokens of TLS are not the developer's; a crash is to be seen as what it is.
# Paths of Unix sockets are short.
_home = tempfile.mkdtemp(prefix="ucxio-python-", dir="/tmp")
os.environ["XDG_CONFIG_HOME"] = _home
os.environ["XDG_RUNTIME_DIR"] = _home
os.environ.setdefault("UCX_HANDLE_ERRORS", "none")
os.environ.pop("UCXIO_TOKEN", None)
# A script that runs in the background has its programs ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

import ucxio  # noqa: E402
from ucxio import _core, ucp  # noqa: E402

# Newer UCX waits 50 ms for each function that it patches, so that threads leave it: 0.4 s of each
# start of the processes of the tests, which have no threads then.
if ucp.get_ucx_version() >= (1, 21):
    os.environ.setdefault("UCX_MEM_BISTRO_GRACE_DURATION", "1ms")

# It is as if there were no driver, until a test initialises it.
_driver = Path(_core.__file__ or "").parents[2] / "lib/libucxio-ready-cuda.so"
if _driver.is_file():
    os.environ.setdefault("UCXIO_CUDA_DRIVER", str(_driver))

# How servers are reached: each moves bytes in another way.
ways: dict[str, dict[str, Any]] = {
    "ucx+unix": {"bind": "unix:"},
    "ucxs": {},
    "ucx+tcp": {"transport": "socket"},
    "ucx": {"transport": "ucx"},
}


def pytest_sessionfinish() -> None:
    shutil.rmtree(_home, ignore_errors=True)


def soon(condition: Callable[[], object], limit: float = 60) -> bool:
    """Wait until the condition holds, with a bound that no working machine reaches."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


def is_free(buffer: bytearray) -> bool:
    """Return whether no view of the buffer is left."""
    try:
        buffer.append(1)
    except BufferError:
        return False
    del buffer[-1]
    return True


def waiting(url: str) -> dict[str, Any]:
    """Return options of a connection by which reads and writes wait for a server that stopped."""
    return {"transports": ["tcp"]} if url.startswith("ucx://") else {}


def files_in(directory: Path) -> list[str]:
    """Return the names of the files of a store, and of those that it has begun."""
    return sorted(each.name for each in directory.rglob("*") if each.is_file())


@pytest.fixture(params=list(ways))
def server(request: pytest.FixtureRequest) -> Iterator[ucxio.Server]:
    """A server of each way, in this process."""
    with ucxio.Server(**ways[request.param]) as made:
        yield made


@pytest.fixture
def local_server() -> Iterator[ucxio.Server]:
    """A server by a Unix socket, for what is the same by all ways."""
    with ucxio.Server("unix:") as made:
        yield made


@pytest.fixture
def store(local_server: ucxio.Server, tmp_path: Path) -> Iterator[ucxio.Client]:
    """A client of a writable store, which is `tmp_path`."""
    publication = local_server.publish_directory(tmp_path, writable=True)
    with ucxio.Client(local_server.url) as client:
        yield client
    publication.close()


class Process:
    """A Python program of its own, which tells by lines how far it is."""

    def __init__(self, program: str, *arguments: str, **environment: str) -> None:
        folder = str(Path(ucxio.__file__).parent.parent)
        self.running = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=_home,  # the folder of the sources has no extension
            env={**os.environ, "PYTHONPATH": folder, **environment},
        )

    def line(self) -> str:
        assert self.running.stdout is not None
        return self.running.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str, str]:
        out, errors = self.running.communicate(timeout=240)
        return self.running.returncode, out, errors

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.running.kill()
        self.running.communicate()


def stop(process: Process) -> None:
    process.running.send_signal(signal.SIGSTOP)
    status = Path(f"/proc/{process.running.pid}/stat")
    assert soon(lambda: status.read_text().rpartition(")")[2].split()[0] == "T")


def go_on(process: Process) -> None:
    process.running.send_signal(signal.SIGCONT)


serve = """
import sys, ucxio
server = ucxio.Server(**eval(sys.argv[1]))
data = bytearray(range(256)) * 4096
shown = server.publish("data", data, writable=True)
store = server.allocate_directory("store", quota=64 << 20)
print(server.url, flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["ucx+unix", "ucx"])
def far_server(request: pytest.FixtureRequest) -> Iterator[Process]:
    """A server in another process, which is killed at the end; `url` is its URL."""
    with Process(serve, repr(ways[request.param])) as running:
        running.url = running.line()  # type: ignore[attr-defined]
        yield running


@pytest.fixture
def nothing_left_behind() -> None:
    """What tests before this one published is gone: until then it counts as left behind."""
    gc.collect()
    assert soon(lambda: _core.count_left_behind() == 0)


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port of the loopback interface on which nobody listens, or can begin to."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield int(probe.getsockname()[1])


def forked(before: str, in_child: str, after: str) -> str:
    """Return a program that forks. In the child each of `calls`, by name, has to be refused.

    `before` has the imports and makes `calls`; `in_child` and `after` are what the child, and then
    the parent, do at the end.
    """
    return f"""
import os, sys, traceback, warnings
warnings.simplefilter("ignore")
{before}
child = os.fork()
if child == 0:
    code = 0
    for name, call in calls.items():
        try:
            call()
            print(name, "raised nothing", flush=True)
            code = 1
        except RuntimeError as failed:
            if failed.code != "forked_child" or "multiprocessing_context" not in str(failed):
                print(name, failed, flush=True)
                code = 1
        except BaseException:
            print(name, traceback.format_exc(), flush=True)
            code = 1
    {"; ".join(in_child.strip().splitlines())}
    sys.exit(code)
_, status = os.waitpid(child, 0)
{after}
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture
def cuda_driver() -> str:
    """The CUDA driver that the process uses: one that there is no device behind."""
    named = os.environ.get("UCXIO_CUDA_DRIVER")
    if named is None:
        pytest.skip(f"there is no pretended CUDA driver: {_driver}")
    return named


def new_messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A context of `ucxio.ucp` for a test, which waits for as long as a machine may stall."""
    for name in ("UCXPY_IFNAME", "UCX_TLS", "UCX_SEG_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UCXPY_CONNECT_TIMEOUT", "100")
    monkeypatch.setattr(ucp, "_last_words", 60.0)
    monkeypatch.setattr(ucp, "_close_timeout", 60.0)
    gc.collect()
    ucp.reset()
    yield
    gc.collect()
    ucp.reset()


T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]


def make_loop(kind: str) -> asyncio.AbstractEventLoop:
    if kind == "asyncio":
        return asyncio.new_event_loop()
    try:
        import uvloop
    except ImportError as missing:
        pytest.skip(f"uvloop is not installed: {missing}")
    return uvloop.new_event_loop()


def run_in(kind: str, program: Coroutine[Any, Any, T]) -> T:
    """Run a program in a new loop, in debug mode. A loop tells of callbacks of more than 60 s."""
    try:
        loop = make_loop(kind)
    except BaseException:
        program.close()
        raise
    loop.slow_callback_duration = 60
    with asyncio.Runner(debug=True, loop_factory=lambda: loop) as runner:
        return runner.run(asyncio.wait_for(program, 120))


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[Run[Any]]:
    """Runs a coroutine. The loop, in debug mode, has nothing to say about it."""
    with caplog.at_level(logging.WARNING):
        yield lambda program: run_in(request.param, program)
        gc.collect()
        assert [each.message for each in caplog.records] == []


async def until(condition: Callable[[], object], limit: float = 60) -> bool:
    """Wait until the condition holds, while the loop runs."""
    loop = asyncio.get_running_loop()
    end = loop.time() + limit
    while not condition():
        if loop.time() > end:
            return False
        await asyncio.sleep(0.002)
    return True
