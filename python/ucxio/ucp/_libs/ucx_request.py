"""Operations in flight."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..._core import Operation
from ...errors import Error
from ..exceptions import failure_of

__all__ = ["Call", "Flight", "UCXRequest"]

logger = logging.getLogger("ucx")

# What is called at the end of an operation: a function, its arguments, and those by name.
Call: TypeAlias = tuple[
    Callable[..., object] | None, tuple[Any, ...] | None, Mapping[str, Any] | None
]


class UCXRequest:
    """A transfer or flush that has not ended when its call returned.

    `UCXWorker.progress` ends it, and then calls the function that the call was given.
    """

    def __init__(
        self,
        name: str,
        call: Callable[..., object] | None,
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        started: Flight,
    ) -> None:
        """Wait for nothing yet. Calls return requests."""
        self.info: dict[str, Any] = {"status": "pending", "name": name}
        self._call = call
        self._arguments, self._keywords = arguments, keywords
        self._started = started
        self._flights: set[Flight] = set()
        self._failure: Exception | None = None

    def _wait_for(self, flight: Flight) -> None:
        self._flights.add(flight)
        flight.requests.append(self)

    def _ended(self, flight: Flight) -> bool:
        """Note the end of what it waits for. Returns whether that was the last. Idempotent."""
        self._flights.discard(flight)
        self._failure = self._failure or flight.failure
        return not self._flights

    def _tell(self) -> None:
        """Call the function, unless it was called, or the request closed."""
        if self.closed():
            return
        self.info["status"] = "finished"
        call, self._call = self._call, None
        if call is None:
            return
        try:
            call(self, self._failure, *self._arguments, **self._keywords)
        except Exception:
            logger.exception("Exception in %r of ucxio", call)

    def closed(self) -> bool:
        """Return whether it has ended, or was closed."""
        return bool(self.info["status"] != "pending")

    def close(self) -> None:
        """Have no function called. The operation goes on."""
        if not self.closed():
            self.info["status"] = "closed"
            self._call = None

    def __repr__(self) -> str:
        return f"<ucxio.ucp UCXRequest {self.info['name']}, {self.info['status']}>"


class Flight:
    """An operation in flight, and the requests that wait for it."""

    __slots__ = (
        "_check",
        "doing",
        "endpoint",
        "failure",
        "has_result",
        "is_receive",
        "operation",
        "requests",
    )

    def __init__(
        self,
        operation: Operation[Any],
        doing: str,
        endpoint: int | None,
        *,
        is_receive: bool = False,
        check: Callable[[Any], Exception | None] | None = None,
    ) -> None:
        """Note an operation, and the number of its endpoint; None is that of all endpoints.

        `check` gets its result, and tells what is wrong with that. No flush waits for a receive.
        """
        self.operation = operation
        self.is_receive = is_receive
        self._check = check
        self.doing = doing
        self.endpoint = endpoint
        self.requests: list[UCXRequest] = []
        self.failure: Exception | None = None
        self.has_result = False

    def end(self) -> Exception | None:
        """Give back the buffers of the ended operation. Returns why it failed. Idempotent."""
        if not self.has_result:
            try:
                result = self.operation.result()
                self.failure = None if self._check is None else self._check(result)
            except Error as failed:
                self.failure = failure_of(failed, self.doing)
            self.has_result = True
        return self.failure
