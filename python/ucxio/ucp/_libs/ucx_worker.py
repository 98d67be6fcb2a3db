"""The worker of UCX's."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import select
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..._buffer import Buffer
from ..._core import MessageWorker, Operation, PlainWorker
from ...errors import Error
from ..address import UCXAddress
from ..exceptions import UCXBaseException, UCXCloseError, UCXError, failure_of, translated
from .ucx_context import AllocatorType, Feature, UCXContext
from .ucx_object import UCXObject
from .ucx_request import Call, Flight, UCXRequest

if TYPE_CHECKING:
    from .ucx_endpoint import UCXEndpoint

__all__ = ["UCXWorker"]

logger = logging.getLogger("ucx")

# The rounds of progress that a call makes at most, so that it returns where a peer never stops.
_rounds = 1024
_numbers = itertools.count(1)


class UCXWorker(UCXObject):
    """A worker. The program drives it by `progress`.

    A process whose memory others reach has to drive its workers, too, unless RDMA hardware or
    shared memory moves the bytes. Connecting may take ``UCXPY_CONNECT_TIMEOUT`` seconds, or 5.

    One thread at a time may call `progress`, `close` and what begins transfers. Others may use
    `UCXIO` meanwhile. Functions of requests that have not ended when the worker is closed are never
    called.

    Parameters
    ----------
    context : UCXContext
        The context that it is made from.
    """

    def __init__(self, context: UCXContext) -> None:
        super().__init__()
        limit = float(os.environ.get("UCXPY_CONNECT_TIMEOUT", 5))
        with translated("UCXWorker"):
            self._core: PlainWorker | None = PlainWorker(context._opened(), limit)
        self._context = context
        # By the numbers that the core tells, which may be lost by an exception in the middle.
        self._flights: dict[int, Flight] = {}
        self._untold: deque[int] = deque()
        self._looks_at_all = False
        # Requests whose function is to be called, in their order.
        self._due: dict[UCXRequest, None] = {}
        # Failures that no call has told yet, by the numbers of endpoints.
        self._failures: dict[int, Exception] = {}
        # For messages: who is told of news by the core's numbers, and of which there are any.
        self._messages: MessageWorker | None = None
        self._listening: dict[int, weakref.WeakMethod[Callable[[], None]]] = {}
        self._news: dict[int, None] = {}
        self._endpoints: weakref.WeakSet[UCXEndpoint] = weakref.WeakSet()
        self._allocators: dict[AllocatorType, Callable[[int], Buffer]] = {
            AllocatorType.HOST: bytearray
        }
        context._children.add(self)

    def _opened(self) -> PlainWorker:
        if self._core is None:
            raise UCXCloseError("the worker was closed")
        return self._core

    def _drop(self) -> None:
        try:
            with contextlib.suppress(Error, UCXBaseException):
                for each in list(self._flights.values()):
                    each.operation.cancel()
                self.progress()  # tells of the ends
        finally:
            self._core = self._messages = None
            self._listening.clear()
            self._flights.clear()
            self._due.clear()

    def _start(
        self,
        operation: Operation[None],
        doing: str,
        endpoint: int | None,
        call: Call,
        *,
        is_flush: bool = False,
    ) -> UCXRequest | None:
        """Return a request for an operation; None where nothing is in flight."""
        flight = Flight(operation, doing, endpoint)
        before = self._flights_of(endpoint) if is_flush else []
        request = UCXRequest(doing, call[0], call[1] or (), call[2] or {}, flight)
        if is_flush:
            request._failure = self._take_failure(endpoint)
        if operation.done:
            failure = flight.end() or request._failure
            if failure is not None:
                raise failure
        else:
            self._add(flight)
            request._wait_for(flight)
        for each in before:
            request._wait_for(each)
        return request if request._flights else None

    def _start_implicit(self, operation: Operation[None], doing: str, endpoint: int) -> bool:
        """Note an operation that a later flush covers. Returns whether it has ended."""
        flight = Flight(operation, doing, endpoint)
        if not operation.done:
            self._add(flight)
            return False
        failure = flight.end()
        if failure is not None:
            raise failure
        return True

    def _start_receive(
        self,
        operation: Operation[Any],
        doing: str,
        endpoint: int | None,
        call: Call,
        check: Callable[[Any], Exception | None] | None = None,
    ) -> UCXRequest | None:
        """Return a request for a receive; None where it has ended."""
        flight = Flight(operation, doing, endpoint, is_receive=True, check=check)
        if operation.done:
            failure = flight.end()
            if failure is not None:
                raise failure
            return None
        request = UCXRequest(doing, call[0], call[1] or (), call[2] or {}, flight)
        self._add(flight)
        request._wait_for(flight)
        return request

    def _message_core(self, feature: Feature | None = None) -> MessageWorker:
        """Return what messages go by. Without a feature, those of any kind."""
        core = self._opened()
        wanted = {Feature.TAG, Feature.AM, Feature.STREAM} if feature is None else {feature}
        if not wanted & self._context._features:
            names = " or ".join(f"`{each}`" for each in sorted(wanted, key=str))
            raise ValueError(f"UCXContext must be created with {names}")
        if self._messages is None:
            with translated("UCXWorker"):
                self._messages = core.messages()
        return self._messages

    @property
    def _is_for_keys(self) -> bool:
        return Feature.RMA in self._context._features

    def _listen_to(self, number: int, call: Callable[[], None]) -> None:
        """Have a method called when there is news of a number. Its object is not kept."""
        listening = self._listening
        listening[number] = weakref.WeakMethod(call, lambda _: listening.pop(number, None))
        self._news[number] = None  # there may be some

    def _forget(self, number: int) -> None:
        self._listening.pop(number, None)
        self._news.pop(number, None)

    def _call(self, function: Callable[..., object], *arguments: Any, **keywords: Any) -> None:
        """Call a function of the program's."""
        try:
            function(*arguments, **keywords)
        except Exception:
            logger.exception("Exception in %r of ucxio", function)

    def _drive_until(self, condition: Callable[[], object]) -> None:
        """Make progress until a condition holds. The thread sleeps while nothing happens."""
        events = select.poll()
        events.register(self._opened().event_fd, select.POLLIN)
        while not condition():
            if not self.progress() and not condition() and self.arm():
                events.poll(50)

    def _add(self, flight: Flight) -> None:
        number = flight.operation.number
        self._flights[number] = flight
        if flight.operation.done:
            self._untold.append(number)  # another thread may have been told meanwhile

    def _flights_of(self, endpoint: int | None) -> list[Flight]:
        flights = [each for each in self._flights.values() if not each.is_receive]
        return [each for each in flights if endpoint is None or each.endpoint == endpoint]

    def _take_failure(self, endpoint: int | None) -> Exception | None:
        if endpoint is not None:
            return self._failures.pop(endpoint, None)
        failures = list(self._failures.values())
        self._failures.clear()
        return failures[0] if failures else None

    def _tell(self, number: int) -> None:
        """Count an end down. It can be told again where an exception came in the middle."""
        flight = self._flights.get(number)
        if flight is None:
            if number in self._listening:
                self._news[number] = None
            return
        failure = flight.end()
        has_function = any(each._call is not None for each in flight.requests)
        is_told = has_function or flight.is_receive
        if failure is not None and not is_told and flight.endpoint is not None:
            self._failures.setdefault(flight.endpoint, failure)
        for each in flight.requests:
            if each._ended(flight):
                self._due[each] = None
        self._flights.pop(number, None)
        flight.requests.clear()  # they refer to it, too

    def progress(self) -> bool:
        """Make progress, and call the functions of requests that ended.

        Returns
        -------
        bool
            Whether anything happened.

        Raises
        ------
        KeyboardInterrupt
            Or what else a function raises that is no Exception. A further call goes on with the
            functions of other requests.
        """
        core = self._opened()
        try:
            if self._looks_at_all:
                self._looks_at_all = False
                flights = list(self._flights.items())
                self._untold.extend(number for number, each in flights if each.operation.done)
                self._news.update(dict.fromkeys(self._listening))
            ended, is_busy = core.progress(_rounds)
            self._untold.extend(ended)
            while self._untold:
                self._tell(self._untold.popleft())
            # All have counted down: a function that raises keeps no other from its call.
            for each in list(self._due):
                each._tell()
                self._due.pop(each, None)
            for number in list(self._news):
                self._news.pop(number, None)
                told = self._listening[number]() if number in self._listening else None
                if told is not None:
                    told()
        except Error as failed:
            self._looks_at_all = True
            raise failure_of(failed, "progress") from failed
        except BaseException:
            self._looks_at_all = True
            raise
        return is_busy

    def flush(
        self,
        cb_func: Callable[..., object] | None,
        cb_args: tuple[Any, ...] | None = None,
        cb_kwargs: Mapping[str, Any] | None = None,
    ) -> UCXRequest | None:
        """Have a function called when all that was started over the worker has ended.

        As `UCXEndpoint.flush`, for all its endpoints.

        Raises
        ------
        UCXError
            As by `UCXEndpoint.flush`.
        """
        with translated("flush"):
            operation = self._opened().flush()
        call = (cb_func, cb_args, cb_kwargs)
        return self._start(operation, "flush", None, call, is_flush=True)

    def fence(self) -> None:
        """Order operations: those that are started later take effect after the earlier ones."""
        with translated("fence"):
            self._opened().fence()

    def request_cancel(self, req: UCXRequest) -> None:
        """Ask for an early end of a request. Its function is still called.

        A flush still waits for the end of the transfers before it.
        """
        self._opened()
        if not req.closed():
            req._started.operation.cancel()

    def cancel_inflight_messages(self) -> int:
        """Give up all receives that wait. Return how many: their functions get UCXCanceled."""
        waiting = [each for each in self._flights.values() if each.is_receive]
        for each in waiting:
            each.operation.cancel()
        return len(waiting) + sum(each._cancel_active() for each in list(self._endpoints))

    def tag_probe(self, tag: int) -> bool:
        """Return whether a message with a tag has come that no receive took."""
        with translated("tag_probe"):
            return self._message_core(Feature.TAG).probe(tag)

    def register_am_allocator(
        self, allocator: Callable[[int], Buffer], allocator_type: AllocatorType
    ) -> None:
        """Have `am_recv_nb` make its buffers by a function.

        Parameters
        ----------
        allocator : callable
            Gets the number of bytes, and returns a buffer of so many.
        allocator_type : AllocatorType
            ``HOST``, where `bytearray` is the default, or ``CUDA``, for what the peer sent from
            memory of a CUDA device.

        Raises
        ------
        UCXError
            There is no such type.
        """
        if allocator_type not in (AllocatorType.HOST, AllocatorType.CUDA):
            raise UCXError(f"{allocator_type} is no type of allocator")
        self._allocators[allocator_type] = allocator

    def _allocate(self, is_of_device: bool, length: int) -> Buffer:
        kind = AllocatorType.CUDA if is_of_device else AllocatorType.HOST
        if kind not in self._allocators:
            raise UCXError(f"no allocator of {kind} is registered")
        return self._allocators[kind](length)

    def get_address(self) -> UCXAddress:
        """Return the address by which other programs connect."""
        with translated("get_address"):
            return UCXAddress(self._opened().address())

    def init_blocking_progress_mode(self) -> int:
        """Return a descriptor that polls readable when there is progress to make: see `arm`."""
        with translated("init_blocking_progress_mode"):
            descriptor = self._opened().event_fd
        if descriptor < 0:
            raise UCXError("the context has no events to wait for")
        self.arm()
        return descriptor

    def arm(self) -> bool:
        """Prepare the descriptor. Returns False where there is progress to make already.

        Wait for it for a second at most: limits of time pass without an event.
        """
        with translated("arm"):
            return self._opened().arm()

    @property
    def handle(self) -> int:
        """UCX's worker: ``ucp_worker_h``."""
        return self._opened().handle

    def info(self) -> str:
        """Return a description of the worker."""
        core = self._opened()
        with translated("info"):
            return f"# worker {core.handle:#x}, address of {len(core.address())} bytes\n"

    def __repr__(self) -> str:
        return f"<ucxio.ucp UCXWorker, {'open' if self.initialized else 'closed'}>"


def next_number() -> int:
    """Return the number of a new endpoint."""
    return next(_numbers)
