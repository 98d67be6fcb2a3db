from __future__ import annotations

import contextlib
import io
import pickle
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Process, is_free, soon, ways
from test_waiting import interrupted

import ucxio

limit = 120.0
size = 3_000_000
whole = bytes(range(256)) * (size // 256)


@pytest.fixture(params=list(ways))
def meeting(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a pipe, at a server of each way."""
    with ucxio.Server(**ways[request.param], pipes=True) as server:
        yield server.url_of("some/pipe")


@pytest.fixture
def place() -> Iterator[str]:
    """The URL of a pipe, for what is the same by all ways."""
    with ucxio.Server("unix:", pipes=True) as server:
        yield server.url_of("pipe")


def both(url: str, *modes: Any, **options: Any) -> tuple[Any, ...]:
    """Return ends of a pipe, of these modes; first a reader and a writer."""
    options.setdefault("timeout", limit)
    openings = [(mode,) if isinstance(mode, str) else mode for mode in modes or ("rb", "wb")]
    with ThreadPoolExecutor(len(openings)) as threads:
        ends = [threads.submit(ucxio.open_pipe, url, *each, **options) for each in openings]
        return tuple(each.result(120) for each in ends)


def on_thread(call: Callable[[], object]) -> threading.Thread:
    """Run what waits for this thread. A failure of it shows at the other end."""

    def run() -> None:
        with contextlib.suppress(OSError):
            call()

    made = threading.Thread(target=run, daemon=True)
    made.start()
    return made


def joined(thread: threading.Thread) -> None:
    thread.join(limit)
    assert not thread.is_alive()


def test_bytes_arrive_and_then_the_end(meeting: str) -> None:
    reader, writer = both(meeting)

    def write() -> None:
        with writer:
            writer.write(whole)

    thread = on_thread(write)
    with reader:
        assert reader.read() == whole
        assert reader.read() == b""
        assert reader.received == len(whole)
    joined(thread)
    assert writer.closed
    assert writer.sent == len(whole)


def test_bytes_go_by_tls_where_that_is_asked_for() -> None:
    with ucxio.Server(pipes=True) as server:
        reader, writer = both(server.url_of("pipe"), transports=["tls"])
        thread = on_thread(lambda: (writer.write(whole), writer.close()))
        with reader:
            assert reader.read() == whole
        joined(thread)


def test_reads_straight_into_arrays(place: str) -> None:
    reader, writer = both(place, ("rb", 0), ("wb", 0))
    sent = numpy.arange(200_000.0)
    thread = on_thread(lambda: (writer.write(sent), writer.close()))
    found = numpy.empty_like(sent)
    rest = memoryview(found).cast("B")
    with reader:
        while rest.nbytes:
            count = reader.readinto(rest)
            assert count > 0
            rest = rest[count:]
        assert reader.readinto(bytearray(1)) == 0
    joined(thread)
    assert (found == sent).all()


def test_text_goes_by_lines(place: str) -> None:
    reader, writer = both(place, "r", ("w", 1))
    with writer:
        writer.write("ä first\n")
        assert reader.readline() == "ä first\n"  # it was flushed
        writer.write("second")
        joined(on_thread(writer.close))
    with reader:
        assert list(reader) == ["second"]


def test_close_returns_when_the_reader_has_all(place: str) -> None:
    reader, writer = both(place)
    writer.write(b"all of it")
    writer.close()
    writer.close()
    with reader:
        assert reader.read() == b"all of it"


class OwnError(Exception):
    pass


def leave_by_exception(writer: Any) -> None:
    with pytest.raises(OwnError), writer:
        raise OwnError


def forget(writer: Any) -> None:
    holder = [writer]
    del writer
    with pytest.warns(ResourceWarning, match="unclosed pipe"):
        holder.clear()  # nothing else refers to it


@pytest.mark.parametrize("mode", ["wb", "w", ("wb", 0)])
@pytest.mark.parametrize("give_up", [leave_by_exception, forget, lambda writer: writer.discard()])
def test_what_is_no_clean_end_is_a_failure(
    place: str, mode: Any, give_up: Callable[[Any], None]
) -> None:
    ends = [*both(place, ("rb", 0), mode)]
    ends[1].write("half" if mode == "w" else b"half")
    ends[1].flush()
    with ends[0] as reader:
        assert reader.read(100) == b"half"
        give_up(ends.pop())
        with pytest.raises(ConnectionResetError) as failed:
            reader.read(1)
        assert failed.value.code == "connection_reset"
        assert failed.value.errno != 0


def test_what_was_buffered_is_not_sent_by_giving_up(place: str) -> None:
    reader, writer = both(place)
    writer.write(b"buffered")
    writer.discard()
    writer.discard()
    with pytest.raises(ConnectionResetError), reader:
        assert reader.read() == b""


@pytest.mark.parametrize("mode", ["wb", "w"])
def test_close_whose_flush_fails_is_no_clean_end(place: str, mode: str) -> None:
    reader, writer = both(place, ("rb", 0), mode)
    writer.write("x" if mode == "w" else b"x")
    raw = writer._raw
    core = raw._core

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(core, name)

        def write_from(self, _: object) -> int:
            raise ucxio.Error(5, "no", ucxio.ErrorCode.io_error)

    raw._core = Failing()
    with pytest.raises(ucxio.Error, match="no"):
        writer.close()
    assert writer.closed
    with pytest.raises(ConnectionResetError), reader:
        reader.read(1)


def test_writer_learns_that_the_reader_left(place: str) -> None:
    reader, writer = both(place, ("rb", 0), ("wb", 0))
    reader.close()

    def write() -> bool:
        writer.write(whole)
        writer.flush()
        return False

    with pytest.raises(BrokenPipeError):
        soon(write)
    with pytest.raises(BrokenPipeError):
        writer.close()
    assert writer.closed


program = """
import sys, ucxio
end = ucxio.open_pipe(sys.argv[1], sys.argv[2], 0)
if sys.argv[2] == "wb":
    end.write(b"some")
    end.flush()
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("way", ["ucx+unix", "ucxs"])
def test_reader_of_a_killed_writer_fails(way: str) -> None:
    with ucxio.Server(**ways[way], pipes=True) as server:
        url = server.url_of("pipe")
        with (
            Process(program, url, "wb") as other,
            ucxio.open_pipe(url, "rb", 0, timeout=limit) as reader,
        ):
            assert reader.read(100) == b"some"
            other.running.kill()
            with pytest.raises(ConnectionResetError) as failed:
                reader.read(1)
            assert "4 bytes" in str(failed.value)


def test_writer_to_a_killed_reader_fails(place: str) -> None:
    with (
        Process(program, place, "rb") as other,
        ucxio.open_pipe(place, "wb", 0, timeout=limit) as writer,
    ):
        assert other.line() == "there"
        other.running.kill()
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            soon(lambda: not writer.write(whole))
        writer.discard()


def test_process_that_ends_without_closing_is_no_clean_end(place: str) -> None:
    with Process(program + "end.write(b'unsent')", place, "wb") as other:
        with ucxio.open_pipe(place, "rb", 0, timeout=limit) as reader:
            assert reader.read(100) == b"some"
            assert other.line() == "there"
            code, _, errors = other.end()
            assert (code, errors) == (0, "")
            with pytest.raises(ConnectionResetError):
                reader.readall()


def test_one_end_may_have_the_server() -> None:
    with ucxio.Server(pipes=True) as server:
        reader, writer = both(server.url_of("any name"))
        with writer:
            writer.write(b"direct")
        server.close()  # the bytes go from end to end
        with reader:
            assert reader.read() == b"direct"


def arrived(reader: ucxio.Pipe) -> bytes | None:
    try:
        return reader.read(100)
    except TimeoutError:
        return None


@pytest.mark.usefixtures("nothing_left_behind")
def test_keyboard_interrupt_ends_a_read_and_the_pipe_goes_on(meeting: str) -> None:
    reader, writer = both(meeting, ("rb", 0), ("wb", 0))
    with reader, writer:
        buffer = bytearray(100)
        interrupted(lambda: reader.readinto(buffer))
        assert soon(lambda: (ucxio._core.count_left_behind() == 0) and is_free(buffer))
        writer.write(b"later")
        writer.flush()
        assert reader.read(100) == b"later"


@pytest.mark.usefixtures("nothing_left_behind")
def test_keyboard_interrupt_ends_opening_and_writing(place: str) -> None:
    interrupted(lambda: ucxio.open_pipe(place, "rb"))
    reader, writer = both(place, ("rb", 0), ("wb", 0), window=64 << 10)
    data = bytes(64 << 20)
    with pytest.raises(ucxio.Error), reader:
        interrupted(lambda: writer.write(data), lambda: writer.sent > 0)
        with pytest.raises(ucxio.Error):
            writer.close()  # part of it is missing
        reader.readall()
    assert soon(lambda: ucxio._core.count_left_behind() == 0)


def test_several_writers_and_readers(place: str) -> None:
    reader, *writers = both(place, ("rb", 0), *[("wb", 0)] * 3, writers=3)
    for number, each in enumerate(writers):
        each.write(bytes([number]) * 1000)
        each.close()
    with reader:
        assert sorted(reader.readall()) == sorted(bytes([0, 1, 2]) * 1000)
    writer, *readers = both(place, ("wb", 0), *[("rb", 0)] * 3, readers=3)
    with writer:
        writer.write(b"to all")
    for each in readers:
        with each:
            assert each.readall() == b"to all"


def test_end_that_reads_and_writes(meeting: str) -> None:
    first, second = both(meeting, "r+b", "r+b")
    assert first.readable()
    assert first.writable()
    first.write(b"question")
    first.close_output()
    assert second.readall() == b"question"
    second.write(b"answer")
    thread = on_thread(second.close)
    assert first.readall() == b"answer"
    joined(thread)
    first.close()


def test_ends_that_do_not_meet(place: str, local_server: ucxio.Server) -> None:
    with pytest.raises(TimeoutError) as late:
        ucxio.open_pipe(place, connect_timeout=0.1)
    assert late.value.code == "timed_out"
    with pytest.raises(io.UnsupportedOperation, match="takes no pipes"):
        ucxio.open_pipe(local_server.url_of("pipe"))
    for wrong in "", "rw", "a", "x", "rbt", "r+", "rr":
        with pytest.raises(ValueError, match="invalid mode"):
            ucxio.open_pipe(place, wrong)
    with pytest.raises(ValueError, match="unbuffered"):
        ucxio.open_pipe(place, "r", 0)
    with pytest.raises(ValueError, match="encoding"):
        ucxio.open_pipe(place, "rb", encoding="utf-8")
    with pytest.raises(ValueError, match="buffering"):
        ucxio.open_pipe(place, "rb", -2)
    with pytest.raises(ValueError, match="no buffer"):
        ucxio.open_pipe(place, "r+b", 4096)
    for wrong in {"encoding": "none"}, {"errors": "none"}:  # no other end meets it
        with pytest.raises(LookupError, match="none"):
            ucxio.open_pipe(place, "r", **wrong)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="newline"):
        ucxio.open_pipe(place, "r", newline="none")
    with pytest.raises(ValueError, match="has no name"):
        ucxio.open_pipe(local_server.url)
    with pytest.raises(ValueError, match="no policy"):
        ucxio.open_pipe(place, slow_reader="x")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="window"):
        ucxio.open_pipe(place, window=1)
    with pytest.raises(ValueError, match="timeout"):
        ucxio.open_pipe(place, timeout=0)
    with pytest.raises(TypeError, match="speed"):
        ucxio.open_pipe(place, speed=1)  # type: ignore[call-overload]
    with pytest.raises(ConnectionRefusedError):
        ucxio.open_pipe("ucx+unix:///run/none.sock/pipe")


@pytest.fixture
def command() -> str:
    """The command of the build, by the UCX of the system."""
    file = Path(ucxio._core.__file__ or "").parents[2] / "bin" / "ucxio"
    if not file.is_file():
        pytest.skip(f"there is no {file}: it was not built")
    return str(file)


@contextlib.contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as made:
        try:
            yield made
        finally:
            made.kill()


@pytest.mark.parametrize("way", ["ucxs", "ucx+unix"])
def test_other_end_may_be_the_command(command: str, way: str) -> None:
    options: Any = {"connect_timeout": limit, "timeout": limit}
    with ucxio.Server(**ways[way], pipes=True) as server:
        url = server.url_of("pipe")
        for writes in True, False:
            with running([command, "pipe", "receive" if writes else "send", url]) as other:
                if writes:
                    with ucxio.open_pipe(url, "wb", **options) as writer:
                        writer.write(whole)
                    out, errors = other.communicate(timeout=limit)
                    assert (out == whole, errors, other.returncode) == (True, b"", 0)
                else:
                    sending = on_thread(lambda: other.communicate(whole, limit))
                    with ucxio.open_pipe(url, **options) as reader:
                        assert reader.read() == whole
                    joined(sending)
                    assert other.returncode == 0


def test_ends_without_an_ip_address(tmp_path: Path) -> None:
    file = f"{tmp_path}/address"
    with ucxio.Server(transport="ucx", pipes=True) as server:
        server.publish_address(file)
        by_file = f"ucx+file://{file}/pipe"
        with pytest.raises(io.UnsupportedOperation, match="without an IP address"):
            ucxio.open_pipe(by_file, "rb")
        with ThreadPoolExecutor(1) as threads:
            opened = threads.submit(ucxio.open_pipe, by_file, "wb", timeout=limit)
            with ucxio.open_pipe(server.url_of("pipe"), timeout=limit) as reader:
                with opened.result(limit) as writer:
                    writer.write(b"by the file")
                assert reader.read() == b"by the file"


def test_calls_that_make_no_sense(place: str) -> None:
    reader, writer = both(place, ("rb", 0), ("wb", 0))
    with writer, reader:
        for call in reader.fileno, reader.tell, lambda: reader.seek(0), writer.truncate:
            with pytest.raises(io.UnsupportedOperation):
                call()
        with pytest.raises(io.UnsupportedOperation, match="writable"):
            reader.write(b"x")
        with pytest.raises(io.UnsupportedOperation, match="readable"):
            writer.readinto(bytearray(1))
        with pytest.raises(TypeError, match="read-only"):
            reader.readinto(b"constant")
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(reader)
        assert (reader.seekable(), reader.readable(), reader.writable()) == (False, True, False)
        assert repr(reader) == f"<ucxio.Pipe {place!r} mode='rb'>"
        assert writer.write(b"") == 0
    assert repr(reader) == f"<ucxio.Pipe {place!r} mode='rb' closed>"
    for call in reader.read, reader.flush, reader.readable, lambda: writer.write(b"x"):
        with pytest.raises(ValueError, match="closed"):
            call()
