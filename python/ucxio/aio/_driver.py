"""The progress of a connection in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from .. import _core
from ..errors import Error, ErrorCode

__all__ = ["Driver", "Ending"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# The rounds of progress that a callback of the loop makes, so that others have their turn.
_rounds = 64
# Tasks of handlers: the loop refers to tasks weakly.
_handlers: set[asyncio.Future[Any]] = set()


class Ending(Protocol[T_co]):
    """What `Driver.finish` needs of an operation: `_core.Operation` has it."""

    @property
    def done(self) -> bool: ...
    @property
    def number(self) -> int: ...
    def cancel(self) -> None: ...
    def result(self) -> T_co: ...
    def release(self) -> None: ...


class Driver:
    """Drives the worker of one connection, and wakes the tasks whose operations have ended.

    The loop watches the worker's descriptor, and has one timer at most. Both refer to the driver
    weakly while no task waits, so it goes when no client, region or file needs it any more. While
    one waits they keep the driver, and so the task.
    """

    __slots__ = (
        "__weakref__",
        "_context",
        "_core",
        "_descriptor",
        "_has_turn",
        "_is_closed",
        "_is_watched",
        "_loop",
        "_on_closed",
        "_on_told",
        "_reference",
        "_rings",
        "_timer",
        "_waiting",
        "_wakes_all",
        "_watched",
    )

    def __init__(
        self, core: _core.LoopWorker, on_told: Callable[[int | None], object] | None = None
    ) -> None:
        """Watch a worker.

        `on_told` gets the numbers that no task of this loop waits for, and None where numbers
        may have been lost.
        """
        self._loop = asyncio.get_running_loop()
        self._core = core
        self._on_told = on_told
        self._descriptor = core.event_fd
        # By the numbers of operations.
        self._waiting: dict[int, asyncio.Future[None]] = {}
        # What the loop has: the driver, or a weak reference to it.
        self._reference: _Reference = [weakref.ref(self)]
        self._has_turn = False
        self._wakes_all = False
        self._is_closed = False
        self._is_watched = False
        self._timer: asyncio.TimerHandle | None = None
        self._rings = 0.0
        self._watched: _core.LoopClient | None = None
        self._on_closed: Callable[[], Awaitable[object] | None] | None = None
        self._context = contextvars.copy_context()  # of who connects: that of the handler
        self._watch()

    def check(self) -> None:
        """Raise unless the caller runs in the loop of the connection.

        Raises
        ------
        RuntimeError
            It runs in another loop.
        Error
            ``closed``, ``forked_child``.
        """
        if asyncio.get_running_loop() is not self._loop:
            _core.refuse_forked_child()
            raise RuntimeError("the connection belongs to another event loop")
        if self._is_closed:
            code = ErrorCode.closed
            raise Error(_core.errno_of(code), "the connection was closed", code)

    async def finish(self, operation: Ending[T]) -> T:
        """Return the result of an operation, when it has ended.

        Raises
        ------
        Error
            The operation's.
        asyncio.CancelledError
            The task was cancelled. UCX has let go of the operation's memory.
        """
        stopped: BaseException | None = None
        try:
            while not operation.done:
                try:
                    await self._end_of(operation)
                except asyncio.CancelledError as cancelled:
                    if stopped is None:
                        stopped = cancelled
                        operation.cancel()
            if stopped is not None:
                operation.release()
                raise stopped
            return operation.result()
        finally:
            del stopped  # its frames refer to this one

    async def finish_all(self, operations: Sequence[_core.Operation[T]]) -> list[T | Exception]:
        """Return the result, or the failure, of each operation, when all have ended.

        Raises
        ------
        asyncio.CancelledError
            The task was cancelled. UCX has let go of the memory of all operations.
        """
        stopped: BaseException | None = None
        outcomes: list[T | Exception] = []
        try:
            for each in operations:
                while not each.done:
                    try:
                        await self._end_of(each)
                    except asyncio.CancelledError as cancelled:
                        if stopped is None:
                            stopped = cancelled
                            for other in operations:
                                other.cancel()
            if stopped is not None:
                for each in operations:
                    each.release()
                raise stopped
            for each in operations:
                try:
                    outcomes.append(each.result())
                except Error as failed:
                    outcomes.append(failed)
            return outcomes
        finally:
            del stopped

    async def _end_of(self, operation: Ending[object]) -> None:
        """Return at the operation's end, or sooner."""
        number = operation.number
        future = self._waiting[number] = self._loop.create_future()
        self._reference[0] = self
        try:
            self.soon()
            await future
        finally:
            self._waiting.pop(number, None)
            if not self._waiting:
                self._reference[0] = weakref.ref(self)

    def wake(self, number: int) -> bool:
        """Wake the task that waits for an operation, by its number. Returns whether one does."""
        future = self._waiting.pop(number, None)
        if future is not None:
            set_done(future)
        return future is not None

    def wake_all(self) -> None:
        """Wake all tasks: each looks at its operation again."""
        for number in list(self._waiting):
            self.wake(number)

    def miss(self) -> None:
        """Have the next turn, which follows, wake all: numbers may have been lost."""
        self._wakes_all = True
        self.soon()

    def soon(self) -> None:
        """Have the loop make a turn before it sleeps."""
        if self._has_turn or self._loop.is_closed():
            return
        self._has_turn = True
        if not self._is_watched:
            self._watch()
        self._loop.call_soon(self.turn)

    def tell_end(
        self,
        client: _core.LoopClient | None,
        handler: Callable[[], Awaitable[object] | None] | None,
    ) -> None:
        """Have a handler called once when the connection is lost, or the server closes it."""
        self._watched = client
        self._on_closed = handler
        if handler is not None:
            self.soon()  # it may have been lost already

    def close(self) -> None:
        """Stop watching, when no operation is in flight any more."""
        self._is_closed = True
        self._on_closed = self._watched = None
        if not self._waiting and not self._has_turn:
            self._unwatch()

    def end(self) -> None:
        """Make a last turn, so that the other side is told, and close. Any thread may call it."""
        if _core.is_forked_child():
            self.close()
            return
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._end()
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        try:
            if not self.is_over:
                self.turn()
        finally:
            self.close()

    def _watch(self) -> None:
        self._loop.add_reader(self._descriptor, _turn_of, self._reference)
        self._is_watched = True

    def _unwatch(self) -> None:
        if self._is_watched and not _core.is_forked_child():  # it has the parent's selector
            self._loop.remove_reader(self._descriptor)
        self._is_watched = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is to be told to the server: `close` was called, or by a forked child."""
        return self._is_closed or _core.is_forked_child()

    def turn(self) -> None:
        """Make progress now.

        What is raised in the middle, by a signal handler or for want of memory, goes to the caller.
        The next turn follows, and wakes all tasks, each of which looks at its operation. `on_told`
        is called with None.
        """
        self._has_turn = False
        try:
            self._make_progress()
        except BaseException:
            self.miss()
            raise

    def _make_progress(self) -> None:
        try:
            ended, again = self._core.turn(_rounds)
        except Error as failed:
            if failed.code != ErrorCode.forked_child:
                raise
            # Nothing of the parent's can go on. The loop's selector is the parent's, too.
            for future in self._waiting.values():
                if not future.done() and not _is_of_closed_loop(future):
                    future.set_exception(failed)
            return
        if self._wakes_all:
            self._wakes_all = False
            self.wake_all()
            if self._on_told is not None:
                self._on_told(None)
        for number in ended:
            if not self.wake(number) and self._on_told is not None:
                self._on_told(number)
        if again == 0:
            self.soon()
        elif self._is_closed and not self._waiting:
            self._unwatch()
        elif again is not None:
            self._ring_in(again)
        if self._on_closed is not None:
            self._look_at_connection()

    def _ring_in(self, seconds: float) -> None:
        """Have the loop make a turn after a while. A timer that rings sooner is enough."""
        when = self._loop.time() + seconds
        if self._timer is not None:
            if self._rings <= when:
                return
            self._timer.cancel()
        self._rings = when
        self._timer = self._loop.call_later(seconds, _ring, self._reference)

    def _look_at_connection(self) -> None:
        if self._watched is None or self._watched.is_open:
            return
        handler, self._on_closed, self._watched = self._on_closed, None, None
        if handler is not None:
            self._loop.call_soon(call_handler, self._loop, handler, context=self._context)

    def __del__(self) -> None:
        if not self._is_watched or self._loop.is_closed() or _core.is_forked_child():
            return
        # The descriptor goes with the worker, which has to stay until the loop forgets it.
        with contextlib.suppress(RuntimeError):  # it was closed just now
            self._loop.call_soon_threadsafe(_forget, self._loop, self._descriptor, self._core)


_Reference: TypeAlias = list[Driver | weakref.ref[Driver]]


def _driver_of(reference: _Reference) -> Driver | None:
    driver = reference[0]
    return driver() if isinstance(driver, weakref.ref) else driver


def _turn_of(reference: _Reference) -> None:
    driver = _driver_of(reference)
    if driver is not None:
        driver.turn()


def _ring(reference: _Reference) -> None:
    driver = _driver_of(reference)
    if driver is not None:
        driver._timer = None
        driver.turn()


def _forget(loop: asyncio.AbstractEventLoop, descriptor: int, core: _core.LoopWorker) -> None:
    loop.remove_reader(descriptor)
    del core


def _is_of_closed_loop(task: asyncio.Future[Any]) -> bool:
    return task.get_loop().is_closed()  # so it never ends


def set_done(future: asyncio.Future[None]) -> None:
    """Have the task that awaits a future go on, unless its loop was closed."""
    loop = future.get_loop()
    if loop.is_closed():
        return
    if loop.is_running() and loop is not asyncio._get_running_loop():  # in another thread
        with contextlib.suppress(RuntimeError):  # it was closed just now
            loop.call_soon_threadsafe(_set_done, future)
    else:
        _set_done(future)


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def call_handler(
    loop: asyncio.AbstractEventLoop,
    handler: Callable[..., Awaitable[object] | object],
    *arguments: object,
) -> None:
    """Call a handler, which may be a coroutine. Its exceptions go to the loop's handler."""

    def tell(failed: BaseException) -> None:
        loop.call_exception_handler(
            {"message": f"Exception in {handler!r} of ucxio", "exception": failed}
        )

    def end(task: asyncio.Future[Any]) -> None:
        _handlers.discard(task)
        if not task.cancelled() and (failed := task.exception()) is not None:
            tell(failed)

    try:
        made = handler(*arguments)
        if inspect.isawaitable(made):
            task = asyncio.ensure_future(made, loop=loop)
            _handlers.difference_update([each for each in _handlers if _is_of_closed_loop(each)])
            _handlers.add(task)
            task.add_done_callback(end)
    except Exception as failed:
        tell(failed)
