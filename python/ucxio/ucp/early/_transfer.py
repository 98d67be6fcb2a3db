"""Sends and receives under way."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from ..._core import Operation
from ...aio._driver import set_done
from ...errors import Error, ErrorCode
from .._context import Context
from ..exceptions import failure_of, failure_of_receive
from ._message import ucp_msg

__all__ = ["CommFuture", "Transfer", "ucp_comm_request"]

T = TypeVar("T")


class Transfer(Generic[T]):
    """What the objects that stand for a transfer have: its operation, and its outcome."""

    def __init__(
        self,
        context: Context,
        operation: Operation[T],
        message: ucp_msg,
        end: Callable[[T], None] | None,
        doing: str,
    ) -> None:
        """Have `end` called with the result of the operation. Without it a send is meant."""
        self.message = message
        self._context = context
        self._operation: Operation[T] | None = operation
        self._end = end
        self._doing = doing
        self._failed: Error | None = None
        self._is_awaited = False
        self._waiters: list[asyncio.Future[None]] = []

    # What `Driver.finish` needs.

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._operation is None or self._operation.done

    @property
    def number(self) -> int:
        """The number by which the worker tells the end."""
        assert self._operation is not None
        return self._operation.number

    def cancel(self) -> None:
        """Ask for an early end."""
        if self._operation is not None:
            self._operation.cancel()

    def result(self) -> None:
        """Note the outcome, when it has ended. Idempotent."""
        operation = self._operation
        if operation is None:
            return
        try:
            found = operation.result()
            if self._end is not None:
                self._end(found)
        except Error as failed:
            self._failed = failed
        self._operation = None

    def release(self) -> None:
        """Note the outcome, for others than the task that was cancelled."""
        self.result()

    # What requests need.

    def look(self) -> bool:
        """Make progress, and return whether it has ended."""
        if not self.done:
            self._context.progress()
        if self.done:
            self.result()
        return self._operation is None

    def wait(self, timeout: float | None = None) -> bool:
        """Return when it has ended: True, or after `timeout` seconds: False."""
        if not self.done and not self._context.drive_until(lambda: self.done, timeout):
            return False
        self.result()
        return True

    async def wait_in_loop(self) -> ucp_msg:
        """Return the message when the transfer has ended, or raise why it failed."""
        if self._is_awaited:
            future = asyncio.get_running_loop().create_future()
            self._waiters.append(future)
            await future
        elif self._operation is not None:
            self._is_awaited = True
            try:
                await self._context.driver().finish(self)
            finally:
                self._is_awaited = False
                waiters, self._waiters = self._waiters, []
                for each in waiters:
                    set_done(each)
        return self.outcome()

    @property
    def was_canceled(self) -> bool:
        """Whether it has ended because it was given up."""
        return self._failed is not None and self._failed.code == ErrorCode.canceled

    def outcome(self) -> ucp_msg:
        """Return the message of the ended transfer, or raise why it failed."""
        if self._failed is not None:
            translate = failure_of if self._end is None else failure_of_receive
            raise translate(self._failed, self._doing) from self._failed
        return self.message


class ucp_comm_request:
    """A transfer under way: what `send_fast`, `recv_fast` and the calls for objects return."""

    def __init__(self, transfer: Transfer[Any]) -> None:
        """Stand for a transfer. Calls of endpoints make it."""
        self._transfer = transfer

    def done(self) -> bool:
        """Make a round of progress, and return whether the transfer has ended, also by failure."""
        return self._transfer.look()

    def result(self) -> ucp_msg:
        """Wait until the transfer has ended, and return its message. Progress is made meanwhile.

        Raises
        ------
        UCXError, UCXCanceled, UCXConnectionReset, UCXMsgTruncated
            It failed: see `ucp_py_ep`.
        """
        self._transfer.wait()
        return self._transfer.outcome()

    def __await__(self) -> Generator[Any, None, ucp_msg]:
        return self._transfer.wait_in_loop().__await__()

    def __repr__(self) -> str:
        state = "done" if self._transfer.done else "pending"
        return f"<ucxio.ucp.early.ucp_comm_request, {state}>"


class CommFuture(concurrent.futures.Future[ucp_msg]):
    """A transfer under way, as a future: what `send`, `recv` and `recv_future` return.

    `done`, `result`, `exception` and ``await`` make progress. Nothing else does: a callback of
    `add_done_callback` is called by one of them.
    """

    def __init__(self, transfer: Transfer[Any]) -> None:
        """Stand for a transfer. Calls of endpoints make it."""
        super().__init__()
        self._transfer = transfer

    def done(self) -> bool:
        """Make a round of progress, and return whether the transfer has ended, also by failure."""
        if not super().done() and self._transfer.look():
            self._settle()
        return super().done()

    def result(self, timeout: float | None = None) -> ucp_msg:
        """Wait until the transfer has ended, and return its message. Progress is made meanwhile.

        Raises
        ------
        UCXError, UCXCanceled, UCXConnectionReset, UCXMsgTruncated
            It failed: see `ucp_py_ep`.
        TimeoutError
            It has not ended after `timeout` seconds, and goes on.
        """
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait until the transfer has ended, and return why it failed; None where it did not."""
        self._wait(timeout)
        return super().exception(0)

    def cancel(self) -> bool:
        """Give the transfer up, and wait until UCX has let go of its memory.

        Returns
        -------
        bool
            Whether nothing was transferred. A later `result` raises CancelledError then.
        """
        if not self.done():
            self._transfer.cancel()
            self._transfer.wait()
            if self._transfer.was_canceled:
                return super().cancel()
            self._settle()
        return self.cancelled()

    def _wait(self, timeout: float | None) -> None:
        if not super().done() and self._transfer.wait(timeout):
            self._settle()

    def _settle(self) -> None:
        if super().done():
            return
        try:
            self.set_result(self._transfer.outcome())
        except Exception as failed:
            self.set_exception(failed.with_traceback(None))  # its frames refer to the future

    async def _wait_in_loop(self) -> ucp_msg:
        if not super().done():
            with contextlib.suppress(Exception):  # it is the outcome
                await self._transfer.wait_in_loop()
            self._settle()
        return super().result(0)

    def __await__(self) -> Generator[Any, None, ucp_msg]:
        return self._wait_in_loop().__await__()

    def __repr__(self) -> str:
        return f"<ucxio.ucp.early.CommFuture, {'done' if self._transfer.done else 'pending'}>"
