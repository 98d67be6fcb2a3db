from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy
import pytest
from conftest import Process, Run, is_free, soon, until, ways
from test_pipes import program as other_end

import ucxio
from ucxio import aio

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


async def both(url: str, *modes: str, **options: Any) -> list[aio.Pipe]:
    """Return ends of a pipe, of these modes; first a reader and a writer."""
    return await asyncio.gather(
        *(aio.open_pipe(url, mode, **options) for mode in modes or ("rb", "wb"))
    )


def test_bytes_arrive_and_then_the_end(meeting: str, run: Run[None]) -> None:
    async def write(end: aio.Pipe) -> None:
        async with end:
            assert await end.write(whole) == len(whole)
        await end.close()

    async def main() -> None:
        reader, writer = await both(meeting)
        writing = asyncio.ensure_future(write(writer))
        async with reader:
            assert await reader.read(0) == b""
            first = await reader.read(10)
            assert first + await reader.read() == whole
            assert await reader.read() == b""
        await writing
        assert (writer.closed, reader.received, writer.sent) == (True, len(whole), len(whole))

    run(main())


@pytest.mark.parametrize("is_writer", [False, True])
def test_other_end_may_be_a_file_object(meeting: str, run: Run[None], is_writer: bool) -> None:
    def blocking() -> bytes:
        with ucxio.open_pipe(meeting, "wb" if is_writer else "rb") as end:
            if not is_writer:
                return bytes(end.read())
            end.write(whole)
        return b""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as threads:
            other = loop.run_in_executor(threads, blocking)
            async with await aio.open_pipe(meeting, "rb" if is_writer else "wb") as end:
                if is_writer:
                    assert await end.read() == whole
                else:
                    await end.write(whole)
            assert await other == (b"" if is_writer else whole)

    run(main())


def test_bytes_go_by_tls_where_that_is_asked_for(run: Run[None]) -> None:
    async def main(url: str) -> None:
        reader, writer = await both(url, transports=["tls"])
        await writer.write(b"by TLS")
        await writer.close()
        async with reader:
            assert await reader.read() == b"by TLS"

    with ucxio.Server(pipes=True) as server:
        run(main(server.url_of("pipe")))


def test_reads_straight_into_arrays(place: str, run: Run[None]) -> None:
    async def main() -> None:
        reader, writer = await both(place)
        sent = numpy.arange(1000.0)
        found = numpy.empty_like(sent)
        async with reader:
            await writer.write(sent)
            await writer.flush()
            assert await reader.readinto(found) == sent.nbytes
            assert (found == sent).all()
            await writer.close()
            assert await reader.readinto(found) == 0

    run(main())


def test_cancelled_read_gives_the_buffer_back_and_the_pipe_goes_on(
    meeting: str, run: Run[None]
) -> None:
    async def main() -> None:
        reader, writer = await both(meeting)
        async with reader, writer:
            buffer = bytearray(100)
            reading = asyncio.ensure_future(reader.readinto(buffer))
            await asyncio.sleep(0)
            assert not is_free(buffer)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert is_free(buffer)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await reader.readinto(buffer)
            assert is_free(buffer)
            await writer.write(b"later")
            await writer.flush()
            assert await reader.read(100) == b"later"

    run(main())


def test_cancelled_write_is_no_clean_end(place: str, run: Run[None]) -> None:
    async def main() -> None:
        reader, writer = await both(place, window=64 << 10)
        data = bytearray(64 << 20)
        writing = asyncio.ensure_future(writer.write(data))
        assert await reader.read(1) == b"\0"
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert is_free(data)
        with pytest.raises(ucxio.Error):
            await writer.close()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        await reader.discard()

    run(main())


class OwnError(Exception):
    pass


@pytest.mark.parametrize("how", ["exception", "discard", "garbage", "cancelled close"])
def test_what_is_no_clean_end_is_a_failure(meeting: str, run: Run[None], how: str) -> None:
    async def give_up(ends: list[aio.Pipe]) -> None:
        if how == "exception":
            with pytest.raises(OwnError):
                async with ends.pop():
                    raise OwnError
        elif how == "discard":
            writer = ends.pop()
            await writer.discard()
            await writer.discard()
        elif how == "garbage":
            with pytest.warns(ResourceWarning, match="unclosed pipe"):
                ends.pop()
        else:
            writer = ends.pop()
            # More than the reader's process takes unread: else it may have been told the end.
            await writer.write(bytes(8 << 20))
            closing = asyncio.ensure_future(writer.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert writer.closed

    async def main() -> None:
        ends = await both(meeting)
        async with ends[0] as reader:
            await ends[1].write(b"half")
            await ends[1].flush()
            assert await reader.read(100) == b"half"
            await give_up(ends)
            with pytest.raises(ConnectionResetError) as failed:
                await reader.read()
            assert failed.value.code == "connection_reset"  # type: ignore[attr-defined]

    run(main())


def test_writer_learns_that_the_reader_left(place: str, run: Run[None]) -> None:
    async def main() -> None:
        reader, writer = await both(place)
        await reader.close()

        async def write() -> None:
            while True:  # `run` has a bound
                await writer.write(whole)
                await writer.flush()

        with pytest.raises(BrokenPipeError):
            await write()
        with pytest.raises(BrokenPipeError):
            await writer.close()
        assert writer.closed

    run(main())


def test_reader_of_a_killed_writer_fails(place: str, run: Run[None]) -> None:
    async def main() -> None:
        with Process(other_end, place, "wb") as other:
            async with await aio.open_pipe(place) as reader:
                assert await reader.read(100) == b"some"
                other.running.kill()
                with pytest.raises(ConnectionResetError):
                    await reader.read(1)

    run(main())


def test_opening_is_cancelled(meeting: str, run: Run[None]) -> None:
    async def main() -> None:
        opening = asyncio.ensure_future(aio.open_pipe(meeting))
        await asyncio.sleep(0.05)  # it has begun, or not: the outcome is the same
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        with pytest.raises(TimeoutError):
            await aio.open_pipe(meeting, connect_timeout=0.05)
        reader, writer = await both(meeting, connect_timeout=60)
        await writer.close()
        async with reader:
            assert await reader.read() == b""

    run(main())


def test_end_that_reads_and_writes(place: str, run: Run[None]) -> None:
    async def main() -> None:
        first, second = await both(place, "r+b", "r+b")
        await first.write(b"question")
        await first.close_output()
        assert await second.read() == b"question"
        await second.write(b"answer")
        _, answer = await asyncio.gather(second.close(), first.read())
        assert answer == b"answer"
        await first.close()

    run(main())


def test_calls_that_make_no_sense(place: str, local_server: ucxio.Server, run: Run[None]) -> None:
    async def main() -> None:
        for mode, why in ("r", "for text"), ("a", "invalid mode"):
            with pytest.raises(ValueError, match=why):
                await aio.open_pipe(place, mode)
        with pytest.raises(io.UnsupportedOperation, match="takes no pipes"):
            await aio.open_pipe(local_server.url_of("pipe"))
        with pytest.raises(TypeError, match="speed"):
            await aio.open_pipe(place, speed=1)  # type: ignore[call-arg]
        reader, writer = await both(place)
        async with writer, reader:
            with pytest.raises(io.UnsupportedOperation, match="writable"):
                await reader.write(b"x")
            with pytest.raises(io.UnsupportedOperation, match="readable"):
                await writer.read(1)
            assert repr(reader) == f"<ucxio.aio.Pipe {place!r} mode='rb'>"
        assert repr(reader) == f"<ucxio.aio.Pipe {place!r} mode='rb' closed>"
        for call in reader.read, reader.flush, reader.close_output, lambda: reader.readinto(b""):
            with pytest.raises(ValueError, match="closed"):
                await call()

    run(main())


def test_pipe_belongs_to_its_loop(place: str) -> None:
    first = asyncio.new_event_loop()
    reader, writer = first.run_until_complete(both(place))
    for call in reader.read, reader.close, writer.flush:
        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(call())
    first.run_until_complete(asyncio.wait_for(writer.close(), 60))
    first.run_until_complete(asyncio.wait_for(reader.close(), 60))
    first.close()


def test_pipe_is_given_up_in_another_loop(place: str) -> None:
    first = asyncio.new_event_loop()
    reader, writer = first.run_until_complete(both(place))
    failed = OwnError()
    asyncio.run(writer.__aexit__(OwnError, failed, None))  # raises nothing instead of it
    assert writer.closed
    with pytest.raises(ConnectionResetError):
        first.run_until_complete(asyncio.wait_for(reader.read(), 60))
    for _ in range(2):
        asyncio.run(reader.discard())
        assert reader.closed
    first.run_until_complete(asyncio.sleep(0))
    assert not writer._driver._is_watched
    first.close()


def test_several_tasks_close(place: str, run: Run[None]) -> None:
    async def main() -> None:
        reader, writer = await both(place)
        await writer.write(whole)
        found, *ends = await asyncio.gather(reader.read(), *(writer.close() for _ in range(3)))
        assert (found == whole, ends) == (True, [None] * 3)
        await asyncio.gather(reader.close(), reader.close())

    run(main())


def test_several_tasks_see_that_closing_fails(place: str, run: Run[None]) -> None:
    async def main() -> None:
        reader, writer = await both(place)
        # More than the reader's process takes unread, so that closing waits.
        await writer.write(bytes(8 << 20))
        closing = [asyncio.ensure_future(writer.close()) for _ in range(3)]
        await asyncio.sleep(0)
        await reader.discard()
        for each in closing:
            with pytest.raises(ucxio.Error) as failed:
                await each
            assert failed.value.code in ("broken_pipe", "connection_reset")
        await writer.close()

    run(main())


def test_bytes_that_a_cancelled_read_had_are_read_next(place: str, run: Run[None]) -> None:
    async def main() -> None:
        reader, writer = await both(place)
        buffer = bytearray(3)
        reading = asyncio.ensure_future(reader.readinto(buffer))
        await asyncio.sleep(0)
        await writer.write(b"abcdef")
        flushing = asyncio.ensure_future(writer.flush())
        await asyncio.sleep(0)

        def has_come() -> bool:
            # The task of the read does not run meanwhile.
            writer._driver.turn()
            reader._driver.turn()
            return reader.received > 0

        assert not reading.done()
        assert soon(has_come)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await flushing
        assert is_free(buffer)
        assert await reader.read(2) == b"ab"
        assert await reader.readinto(buffer) == 1
        assert buffer == b"cbc"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.read()
        await writer.close()
        async with reader:
            assert await reader.read() == b"def"

    run(main())


def test_no_write_follows_one_that_failed(place: str, run: Run[None]) -> None:
    async def main() -> None:
        reader, writer = await both(place, window=64 << 10)
        with pytest.raises(TypeError):
            await writer.write("text")  # type: ignore[arg-type]
        await writer.write(b"some")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await writer.write(bytes(4 << 20))
        for call in lambda: writer.write(bytes(4 << 20)), writer.flush:
            with pytest.raises(ucxio.Error, match="does not go on"):
                await call()
        with pytest.raises(ucxio.Error):
            await writer.close()
        async with reader:
            with pytest.raises(ConnectionResetError):
                await reader.read()

    run(main())


def test_pipe_costs_nothing_while_it_waits_and_goes_with_its_loop(
    place: str, run: Run[None]
) -> None:
    async def main() -> None:
        reader, writer = await both(place)
        assert await until(lambda: not reader._driver._waiting)
        await writer.close()
        await reader.close()
        assert not reader._driver._is_watched
        assert not writer._driver._is_watched

    run(main())
    run(main())
