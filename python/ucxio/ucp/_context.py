"""The context that the functions of `ucxio.ucp` share."""

from __future__ import annotations

import asyncio
import inspect
import logging
import socket
import weakref
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from .. import _core
from .._buffer import Buffer
from ..aio._driver import Driver, _call
from ..errors import Error
from .address import UCXAddress
from .endpoint import Endpoint, check_length
from .exceptions import UCXError, failure_of
from .listener import Listener

__all__ = ["Context"]

T = TypeVar("T")
logger = logging.getLogger("ucx")


class Context:
    """A worker, and the event loops that drive it.

    One event loop at a time runs. It drives what others have begun, too.
    """

    __slots__ = ("__weakref__", "_calls", "_drivers", "_late", "allocators", "core")

    def __init__(
        self,
        options: Mapping[str, str],
        env_takes_precedence: bool,
        connect_timeout: float,
        peer_timeout: float,
    ) -> None:
        try:
            self.core = _core.MessageWorker(
                dict(options), env_takes_precedence, connect_timeout, peer_timeout
            )
        except Error as failed:
            raise failure_of(failed, "init") from failed
        self._drivers: dict[asyncio.AbstractEventLoop, Driver] = {}
        # What is told by numbers, and what was told while no loop ran.
        self._calls: dict[int, Callable[[], Callable[[], None] | None]] = {}
        self._late: set[int] = set()
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
        late, self._late = self._late, set()
        for number in late:
            self.tell(number)
        return driver

    def listen_to(self, number: int, call: Callable[[], None], *, keep: bool = False) -> None:
        """Have a method called whenever the worker tells a number.

        Its object is kept only where `keep` says so.
        """
        self._calls[number] = (lambda: call) if keep else weakref.WeakMethod(call)

    def forget(self, number: int) -> None:
        """Have nothing called for a number any more."""
        self._calls.pop(number, None)

    def tell(self, number: int) -> None:
        """Pass on a number that the worker told."""
        if number in self._calls:
            call = self._calls[number]()
            if call is None:
                del self._calls[number]
            elif _is_in_loop():
                call()
            else:
                self._late.add(number)
            return
        for driver in self._drivers.values():
            if driver.wake(number):
                return

    def call(self, function: Callable[[], Awaitable[object] | object]) -> None:
        """Call a function of the program's, which may be a coroutine function."""
        if _is_in_loop():
            _call(asyncio.get_running_loop(), partial(_called, function))
            return
        try:
            _called(function)
        except Exception:
            logger.exception("Exception in %r of ucxio", function)

    def progress(self) -> bool:
        """Make a round of progress."""
        ended, again = self.core.turn(1)
        for number in ended:
            self.tell(number)
        return bool(ended) or again == 0

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


def _tell(reference: weakref.ref[Context], number: int) -> None:
    context = reference()
    if context is not None:
        context.tell(number)


def _is_in_loop() -> bool:
    return asyncio._get_running_loop() is not None


def _called(function: Callable[[], Awaitable[object] | object]) -> Awaitable[object] | None:
    made = function()
    return made if inspect.isawaitable(made) else None


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
