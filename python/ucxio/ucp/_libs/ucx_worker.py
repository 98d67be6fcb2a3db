"""The worker of UCX's."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ..._core import Operation, PlainWorker
from ...errors import Error
from ..address import UCXAddress
from ..exceptions import UCXBaseException, UCXCloseError, UCXError, failure_of, translated
from .ucx_context import UCXContext
from .ucx_object import UCXObject
from .ucx_request import Flight, UCXRequest

__all__ = ["UCXWorker"]

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
            self._core = None
            self._flights.clear()
            self._due.clear()

    def _start(
        self,
        operation: Operation[None],
        doing: str,
        endpoint: int | None,
        call: tuple[Callable[..., object] | None, tuple[Any, ...] | None, Mapping[str, Any] | None],
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

    def _add(self, flight: Flight) -> None:
        number = flight.operation.number
        self._flights[number] = flight
        if flight.operation.done:
            self._untold.append(number)  # another thread may have been told meanwhile

    def _flights_of(self, endpoint: int | None) -> list[Flight]:
        flights = list(self._flights.values())
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
            return
        failure = flight.end()
        has_function = any(each._call is not None for each in flight.requests)
        if failure is not None and not has_function and flight.endpoint is not None:
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
            ended, is_busy = core.progress(_rounds)
            self._untold.extend(ended)
            while self._untold:
                self._tell(self._untold.popleft())
            # All have counted down: a function that raises keeps no other from its call.
            for each in list(self._due):
                each._tell()
                self._due.pop(each, None)
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
