"""The context that the functions of `ucxio.ucp` share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import socket
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from .. import _core
from .._buffer import Buffer
from ..aio._driver import Driver, call_handler
from ..errors import Error
from .address import UCXAddress
from .endpoint import Endpoint, check_length
from .exceptions import UCXError, failure_of
from .listener import Listener

__all__ = ["Context"]

T = TypeVar("T")
# What others change is looked at so often, in seconds.
_longest_sleep = 0.05
logger = logging.getLogger("ucx")


class Context:
    """A worker, and the event loops that drive it.

    One event loop at a time runs. It drives what others have begun, too.
    """

    __slots__ = (
        "__weakref__",
        "_anywhere",
        "_calls",
        "_drivers",
        "_has_missed",
        "_late",
        "allocators",
        "core",
    )

    def __init__(
        self,
        options: Mapping[str, str],
        env_takes_precedence: bool,
        connect_timeout: float,
        peer_timeout: float,
        close_timeout: float,
    ) -> None:
        try:
            self.core = _core.MessageWorker(
                dict(options), env_takes_precedence, connect_timeout, peer_timeout, close_timeout
            )
        except Error as failed:
            raise failure_of(failed, "init") from failed
        self._drivers: dict[asyncio.AbstractEventLoop, Driver] = {}
        # What is told by numbers, and what was told while no loop ran.
        self._calls: dict[int, Callable[[], Callable[[], None] | None]] = {}
        self._late: set[int] = set()
        # The numbers that are told where no loop runs, too.
        self._anywhere: set[int] = set()
        self._has_missed = False
        self.allocators: dict[str, Callable[[int], Buffer]] = {"host": bytearray}

    def driver(self) -> Driver:
        """Return the driver of the running loop."""
        loop = asyncio.get_running_loop()
        driver = self._drivers.get(loop)
        if driver is None:
            for each in [each for each in self._drivers if each.is_closed()]:
                del self._drivers[each]
            driver = self._drivers[loop] = Driver(self.core, partial(_tell, weakref.ref(self)))
            driver.soon()
        if self._late or self._has_missed:
            driver.miss()
        return driver

    def listen_to(
        self, number: int, call: Callable[[], None], *, keep: bool = False, anywhere: bool = False
    ) -> None:
        """Have a method called whenever the worker tells a number.

        Its object is kept only where `keep` says so. It is called in a running loop, and with
        `anywhere` also in calls that drive the worker themselves.
        """
        self._calls[number] = (lambda: call) if keep else weakref.WeakMethod(call)
        if anywhere:
            self._anywhere.add(number)

    def forget(self, number: int) -> None:
        """Have nothing called for a number any more."""
        self._calls.pop(number, None)
        self._anywhere.discard(number)

    def tell(self, number: int) -> None:
        """Pass on a number that the worker told."""
        if number in self._calls:
            told = self._calls[number]()
            if told is None:
                del self._calls[number]
            elif _is_in_loop() or number in self._anywhere:
                told()
            else:
                self._late.add(number)
            return
        for driver in self._drivers.values():
            if driver.wake(number):
                return

    def tell_all(self) -> None:
        """Have all look whether they missed a number. Called in a loop."""
        self._has_missed = False
        self._late.clear()
        try:
            for number in list(self._calls):
                self.tell(number)
            for driver in self._drivers.values():
                driver.wake_all()
        except BaseException:
            self._has_missed = True
            raise

    def call(self, function: Callable[..., Awaitable[object] | object], *arguments: object) -> None:
        """Have a function of the program's called soon. It may be a coroutine function.

        Where no event loop runs it is called now.
        """
        running = asyncio._get_running_loop()
        if running is not None:
            running.call_soon(call_handler, running, function, *arguments)
            return
        for loop in self._drivers:
            if loop.is_running():  # in another thread
                with contextlib.suppress(RuntimeError):  # it was closed just now
                    loop.call_soon_threadsafe(call_handler, loop, function, *arguments)
                    return
        try:
            function(*arguments)
        except Exception:
            logger.exception("Exception in %r of ucxio", function)

    def progress(self) -> bool:
        """Make a round of progress."""
        return self._turn() == 0

    def drive_until(self, condition: Callable[[], object], timeout: float | None = None) -> bool:
        """Make progress until a condition holds. The thread sleeps while nothing happens.

        Returns
        -------
        bool
            Whether it holds: False after `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        events = select.poll()
        events.register(self.core.event_fd, select.POLLIN)
        while not condition():
            left = _longest_sleep if end is None else min(end - time.monotonic(), _longest_sleep)
            if left < 0:
                return False
            again = self._turn()
            if again != 0 and not condition():
                events.poll(1000 * (left if again is None else min(left, again)))
        if _is_in_loop():
            self.driver().soon()  # the loop's timer is of the turn before
        return True

    def _turn(self) -> float | None:
        """Make a round of progress. Return the seconds until the next one; 0 if it was busy."""
        try:
            ended, again = self.core.turn(1)
            for number in ended:
                self.tell(number)
        except BaseException:
            self._has_missed = True
            for driver in self._drivers.values():
                driver.miss()
            raise
        return 0 if ended else again

    def listen(
        self,
        callback: Callable[[Endpoint], Awaitable[object] | object],
        address: str,
        port: int,
    ) -> Listener:
        """Make a listener."""
        if _is_in_loop():
            self.driver()
        try:
            return Listener(self.core.listen(address, port), self, callback)
        except Error as failed:
            raise failure_of(failed, "create_listener") from failed

    async def connect(self, host: str, port: int) -> Endpoint:
        """Connect to a listener."""
        driver = self.driver()
        try:
            endpoint = Endpoint(self.core.connect_to(await _numeric(host), port), self)
        except Error as failed:
            raise failure_of(failed, "create_endpoint") from failed
        driver.soon()
        await endpoint._connected()
        return endpoint

    def connect_by_address(self, address: UCXAddress, watched: bool) -> Endpoint:
        """Connect to a worker."""
        driver = self.driver()
        try:
            core = self.core.connect_to_worker(address, watched)
        except Error as failed:
            raise failure_of(failed, "create_endpoint_from_worker_address") from failed
        driver.soon()
        return Endpoint(core, self, by_address=True)

    async def receive(self, buffer: Buffer, tag: int) -> None:
        """Receive a message of any peer."""
        doing = f"[Worker Recv] tag: {tag:#x}"
        driver = self.driver()
        try:
            lengths = await driver.finish(self.core.receive(buffer, tag))
        except Error as failed:
            raise failure_of(failed, doing) from failed
        check_length(doing, *lengths)

    async def flush(self) -> None:
        """Wait until what was started over each connection is visible at its peer."""
        driver = self.driver()
        try:
            await driver.finish(self.core.flush())
        except Error as failed:
            raise failure_of(failed, "flush") from failed

    def allocate(self, kind: str, length: int) -> Buffer:
        """Return a buffer for an active message."""
        allocator = self.allocators.get(kind)
        if allocator is None:
            raise UCXError(f'no allocator of type "{kind}" is registered')
        return allocator(length)


def _tell(reference: weakref.ref[Context], number: int | None) -> None:
    context = reference()
    if context is None:
        return
    if number is None:
        context.tell_all()
    else:
        context.tell(number)


def _is_in_loop() -> bool:
    return asyncio._get_running_loop() is not None


async def _numeric(host: str) -> str:
    """Return the IPv4 address of a host."""
    try:
        socket.inet_aton(host)
    except OSError:
        loop = asyncio.get_running_loop()
        kind = socket.SOCK_STREAM
        found = await loop.getaddrinfo(host, None, family=socket.AF_INET, type=kind)
        return str(found[0][4][0])
    return host
