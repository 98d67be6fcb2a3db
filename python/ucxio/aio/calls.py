"""Functions that other processes call, run in an event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from functools import partial

from .. import _core
from ..calls import Served, tell_failure, text_of
from ..errors import Error, ErrorCode
from ..server import Server
from ._closing import AsyncClosing

__all__ = ["Calls"]


class Calls(AsyncClosing):
    """Functions and coroutine functions that clients of a server call. They run in this event loop.

    Parameters
    ----------
    server : Server
        The server. Functions of `ucxio.Server.calls` may be beside these.

    Notes
    -----
    Each call is a task, and calls begin in the order in which they came. A task is cancelled when
    its caller gives up. No thread of the library calls Python: the loop watches one descriptor.
    """

    __slots__ = ("__weakref__", "_core", "_functions", "_loop", "_queue", "_tasks")

    def __init__(self, server: Server) -> None:
        self._core = server._core
        self._loop = asyncio.get_running_loop()
        self._queue = _core.CallQueue()
        self._functions: list[Served] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._loop.add_reader(self._queue.event_fd, self._turn)

    def add(
        self,
        name: str,
        function: Callable[..., object],
        *,
        signature: str | None = None,
        records: Iterable[type] = (),
        documentation: str | None = None,
    ) -> None:
        """Have clients call a function, or coroutine function, from now on.

        The parameters and errors are those of `ucxio.calls.Calls.add`. A function that is no
        coroutine must not wait.

        Raises
        ------
        RuntimeError
            It is called in another event loop.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("the functions belong to another event loop")
        if self._queue.is_closed:
            code = ErrorCode.closed
            raise Error(_core.errno_of(code), "the functions were closed", code)
        served = Served(name, function, signature, records)
        self._functions.append(served)
        words = text_of(documentation, function)
        self._core.add_call(served.form, self._queue, len(self._functions) - 1, words)

    def _turn(self) -> None:
        calls, given_up = self._queue.take_all()
        for call in calls:
            task = self._loop.create_task(_run(call, self._functions[call.function]))
            self._tasks[call.id] = task
            task.add_done_callback(partial(self._forget, call.id))
        for number in given_up:
            if number in self._tasks:
                self._tasks[number].cancel()
        if self._queue.is_closed:
            self._loop.remove_reader(self._queue.event_fd)

    def _forget(self, number: int, _: asyncio.Task[None]) -> None:
        del self._tasks[number]

    async def close(self) -> None:
        """End serving these functions, and cancel those that run. Idempotent.

        Their callers get ``call_failed``. So do later ones, while the server lives: the names stay.
        """
        if not self._queue.is_closed:
            self._queue.close()
            self._loop.remove_reader(self._queue.event_fd)
        running = list(self._tasks.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)


async def _run(call: _core.Call, served: Served) -> None:
    try:
        if call.is_given_up:
            return
        result = served.begin(call)
        if inspect.isawaitable(result):
            result = await result
        call.answer(served.form, result)
    except asyncio.CancelledError:
        call.fail("the function was cancelled", str(ErrorCode.canceled), 0)
        raise
    except BaseException as failed:
        tell_failure(call, failed)
        if not isinstance(failed, Exception):
            raise
