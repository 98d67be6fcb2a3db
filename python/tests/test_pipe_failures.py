"""Pipes that go on, or not, after a call has failed: no byte comes twice, and none is lost."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from conftest import Process, is_free, soon
from test_pipes import arrived, both, joined, limit, on_thread
from test_waiting import interrupted

import ucxio

# More than a reader with the least window takes unread.
much = 1 << 20
window = 64 << 10


@pytest.fixture
def place() -> Iterator[str]:
    """The URL of a pipe, for what is the same by all ways."""
    with ucxio.Server("unix:", pipes=True) as server:
        yield server.url_of("pipe")


def impatient_writer(url: str, *mode: Any) -> tuple[Any, Any]:
    """Return a reader, and a writer whose calls do not wait for that."""
    with ThreadPoolExecutor(1) as threads:
        opened = threads.submit(ucxio.open_pipe, url, *mode, timeout=0.05)
        reader = ucxio.open_pipe(url, "rb", 0, window=window, timeout=limit)
        return reader, opened.result(limit)


def impatient_reader(url: str, *mode: Any) -> tuple[Any, Any]:
    """Return a reader whose calls do not wait for the writer, and a writer without a buffer."""
    with ThreadPoolExecutor(1) as threads:
        opened = threads.submit(ucxio.open_pipe, url, "wb", 0, timeout=limit)
        reader = ucxio.open_pipe(url, *mode, timeout=0.05)
        return reader, opened.result(limit)


def check_that_it_is_over(*calls: Callable[[], object]) -> None:
    for call in calls:
        with pytest.raises(ucxio.Error, match="does not go on") as failed:
            call()
        assert failed.value.code == "canceled"  # a program that tries again after a time-out ends


def check_that_the_reader_fails(reader: Any) -> None:
    with reader, pytest.raises(ConnectionResetError):
        reader.readall()


def flush(writer: Any, data: Any) -> None:
    writer.write(data)
    writer.flush()


def write_more_than_the_buffer(writer: Any, data: Any) -> None:
    writer.write(data + data)


@pytest.mark.parametrize("mode", ["wb", "w"])
@pytest.mark.parametrize("write", [flush, write_more_than_the_buffer])
def test_failed_write_by_a_buffer_gives_up(
    place: str, mode: str, write: Callable[[Any, Any], None]
) -> None:
    reader, writer = impatient_writer(place, mode)
    data: Any = "x" if mode == "w" else b"x"
    with pytest.raises(TimeoutError):
        write(writer, data * (much - 1))
    check_that_it_is_over(lambda: writer.write(data), writer.flush, writer.close)
    assert writer.closed
    writer.close()
    check_that_the_reader_fails(reader)


def test_pipe_without_a_buffer_writes_no_more_after_a_failed_write(place: str) -> None:
    reader, writer = impatient_writer(place, "wb", 0)
    data = bytes(much)
    with pytest.raises(TimeoutError):
        writer.write(data)
    # As much as was missing would follow, and the whole twice.
    check_that_it_is_over(lambda: writer.write(data), writer.flush)
    with pytest.raises(ucxio.Error):
        writer.close()
    check_that_the_reader_fails(reader)


def test_buffers_of_io_over_a_pipe_do_not_write_twice(place: str) -> None:
    reader, raw = impatient_writer(place, "wb", 0)
    writer = io.BufferedWriter(raw, 2 * much)
    writer.write(bytes(much))
    with pytest.raises(TimeoutError):
        writer.flush()
    check_that_it_is_over(writer.flush)
    with pytest.raises(ucxio.Error):
        writer.close()
    assert raw.closed
    check_that_the_reader_fails(reader)


@pytest.mark.parametrize("mode", ["wb", "w"])
def test_interrupted_write_by_a_buffer_gives_up(place: str, mode: str) -> None:
    reader, writer = both(place, ("rb", 0), mode, window=window)
    data: Any = ("x" if mode == "w" else b"x") * (4 * much)
    interrupted(lambda: flush(writer, data), lambda: writer._raw.sent > 0)
    check_that_it_is_over(writer.close)
    check_that_the_reader_fails(reader)


def test_interrupt_between_text_and_its_buffer_gives_up(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = both(place, ("rb", 0), "w")
    writer.write("pending")
    with monkeypatch.context() as patched:

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr(ucxio.pipes.PipeWriter, "write", interrupt)
        with pytest.raises(KeyboardInterrupt):
            writer.flush()
    check_that_it_is_over(writer.close)
    check_that_the_reader_fails(reader)


@pytest.mark.parametrize("mode", ["rb", "r"])
def test_failed_read_by_a_buffer_is_the_last(place: str, mode: str) -> None:
    reader, writer = impatient_reader(place, mode)
    flush(writer, b"abc")
    with pytest.raises(TimeoutError):
        reader.read(6)
    writer.write(b"def")
    writer.close()
    check_that_it_is_over(
        lambda: reader.read(1), reader.read, reader.readline, lambda: list(reader)
    )
    if mode == "rb":
        check_that_it_is_over(reader.peek, reader.read1, lambda: reader.readinto(bytearray(1)))
    reader.close()


@pytest.mark.parametrize("mode", ["rb", "r"])
def test_interrupted_read_by_a_buffer_is_the_last(place: str, mode: str) -> None:
    reader, writer = both(place, mode, ("wb", 0))
    flush(writer, b"abc")
    interrupted(lambda: reader.read(6), lambda: reader._raw.received == 3)
    writer.write(b"def")
    writer.close()
    check_that_it_is_over(reader.read, lambda: reader.read(1))
    reader.close()


@pytest.mark.parametrize("method", ["readall", "readline"])
def test_failed_call_of_many_reads_is_the_last_if_it_had_bytes(place: str, method: str) -> None:
    reader, writer = impatient_reader(place, "rb", 0)
    with pytest.raises(TimeoutError):
        getattr(reader, method)()
    flush(writer, b"abc")

    def first() -> bytes | None:
        try:
            return bytes(reader.read(1))
        except TimeoutError:
            return None

    assert soon(lambda: first() == b"a")  # so the others are there, too
    with pytest.raises(TimeoutError):
        getattr(reader, method)()
    writer.close()
    check_that_it_is_over(reader.readall, lambda: reader.read(1))
    reader.close()


def test_line_of_a_pipe_without_a_buffer(place: str) -> None:
    reader, writer = both(place, ("rb", 0), ("wb", 0))
    writer.write(b"first\nsecond\nrest")
    writer.close()
    with reader:
        assert (reader.readline(), reader.readline(3)) == (b"first\n", b"sec")
        assert list(reader) == [b"ond\n", b"rest"]
        assert reader.readline() == b""


class HandledError(Exception):
    pass


def test_bytes_that_came_with_the_interrupt_are_no_silent_gap(place: str) -> None:
    reader, writer = both(place, ("rb", 0), ("wb", 0))
    buffer = bytearray(100)

    def handle(*_: object) -> None:
        # The read that is interrupted gets them.
        flush(writer, b"lost")
        assert soon(lambda: buffer[:4] == b"lost")
        raise HandledError

    def interrupt() -> None:
        soon(lambda: not is_free(buffer))
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    thread = threading.Thread(target=interrupt, daemon=True)
    try:
        thread.start()
        with pytest.raises(HandledError):
            reader.readinto(buffer)
        joined(thread)
    finally:
        signal.signal(signal.SIGUSR1, before)
    writer.write(b"next")
    writer.close()
    for _ in range(2):
        with pytest.raises(ucxio.Error, match="4 bytes, which are lost"):
            reader.read(100)
    reader.close()


def test_wrong_arguments_change_nothing(place: str) -> None:
    reader, writer = both(place)
    for wrong in "text", None, 1:
        with pytest.raises(TypeError):
            writer.write(wrong)
    with pytest.raises(io.UnsupportedOperation):
        writer.truncate()
    with pytest.raises(io.UnsupportedOperation):
        writer.seek(0)
    writer.write(b"whole")
    joined(on_thread(writer.close))
    with pytest.raises(ValueError, match="-1"):
        reader.read(-5)
    with pytest.raises(TypeError):
        reader.readinto(b"constant")
    with pytest.raises(io.UnsupportedOperation):
        reader.write(b"x")
    with reader:
        assert reader.read() == b"whole"


def test_text_that_can_not_be_encoded_changes_nothing(place: str) -> None:
    with ThreadPoolExecutor(1) as threads:
        opened = threads.submit(ucxio.open_pipe, place, "w", encoding="cp1252", timeout=limit)
        reader = ucxio.open_pipe(place, "r", encoding="ascii", timeout=limit)
        writer = opened.result(limit)
    writer.write("first")
    with pytest.raises(UnicodeEncodeError):
        writer.write("\u0394")
    with pytest.raises(TypeError):
        writer.write(b"bytes")
    writer.write("ä")
    joined(on_thread(writer.close))
    with pytest.raises(UnicodeDecodeError):
        reader.read()
    check_that_it_is_over(reader.read)
    reader.close()


def test_read_goes_on_after_a_deadline(place: str) -> None:
    reader, writer = impatient_reader(place, "rb", 0)
    with pytest.raises(TimeoutError) as failed:
        reader.read(1)
    assert failed.value.code == "timed_out"  # type: ignore[attr-defined]
    writer.write(b"late")
    writer.close()
    assert soon(lambda: arrived(reader) == b"late")
    assert soon(lambda: arrived(reader) == b"")
    reader.discard()


program = """
import _thread, sys, threading, ucxio
reader = ucxio.open_pipe(sys.argv[1], "rb", 0)
try:
    threading.Timer(0.1, _thread.interrupt_main).start()
    reader.readinto(bytearray(100))
except KeyboardInterrupt:
    pass
if sys.argv[2]:
    reader.discard()
"""


@pytest.mark.parametrize("how", ["discarded", ""])
def test_process_ends_after_an_interrupted_read(place: str, how: str) -> None:
    with Process(program, place, how, PYTHONWARNINGS="ignore") as other:
        with ucxio.open_pipe(place, "wb", 0, timeout=limit) as writer:
            assert other.end() == (0, "", "")
            writer.discard()
