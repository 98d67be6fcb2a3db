"""A connection to a peer."""

from __future__ import annotations

import array
import asyncio
import logging
import operator
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

from .._buffer import Buffer
from .._core import MessageEndpoint, Operation, is_forked_child, size_of_buffer
from ..aio._driver import set_done
from ..errors import Error
from ._truth import Truth
from .exceptions import (
    UCXCanceled,
    UCXCloseError,
    UCXError,
    UCXMsgTruncated,
    end_of,
    failure_of,
    failure_of_receive,
)
from .utils import hash64bits, stable_hash

if TYPE_CHECKING:
    from ._context import Context

__all__ = ["Endpoint"]

T = TypeVar("T")
logger = logging.getLogger("ucx")

# The tag of messages that were sent without one.
_untagged = hash64bits("ucxio.ucp", "no tag")


def check_length(doing: str, got: int, expected: int) -> None:
    """Raise where a message has not the length of its buffer."""
    if got != expected:
        raise UCXMsgTruncated(f"<{doing}>: length mismatch: {got} (got) != {expected} (expected)")


class Endpoint:
    """A connection to one peer. `create_endpoint` makes it, and listeners do.

    An endpoint that no object refers to any more is closed: what was sent before still goes out.

    Raises
    ------
    UCXCloseError, UCXConnectionReset, UCXError
        Each method raises these where the endpoint has ended: it was closed by either side, or
        lost. A receive still returns what has come before.
    UCXCanceled
        The endpoint ended during the call.
    """

    def __init__(
        self, core: MessageEndpoint, context: Context, *, by_address: bool = False
    ) -> None:
        """Wrap a connection. Use `create_endpoint` instead."""
        self._ep: MessageEndpoint | None = core
        self._ctx: Context | None = context
        self._number = core.number
        self._uid = core.handle or core.id
        self._by_address = by_address
        self._send_count = 0
        self._recv_count = 0
        self._finished_recv_count = 0
        self._close_after_n_recv: int | None = None
        self._is_closing = False
        self._close_callback: Callable[[], object] | None = None
        # Receives in flight, those that wait for news, and those that wait for active messages.
        self._receives: set[Operation[Any]] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._line: list[object] = []
        context.listen_to(self._number, self._told)

    # The news of the connection.

    def _told(self) -> None:
        """Look at the connection: it stands, it ended, or an active message has come."""
        waiters, self._waiters = self._waiters, []
        for each in waiters:
            set_done(each)
        if self._ctx is not None:
            self._ctx.listen_to(self._number, self._told)
        if self._has_ended():
            self._cancel_receives()
            self._tell_end(self._ctx)

    async def _news(self) -> None:
        """Return when there may be news."""
        context = self._ctx
        if context is None:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiters.append(future)
        # As long as a task waits, it is kept.
        context.listen_to(self._number, self._told, keep=True)
        context.driver().soon()
        try:
            await future
        finally:
            if future in self._waiters:
                self._waiters.remove(future)
            if not self._waiters and self._ctx is not None:
                self._ctx.listen_to(self._number, self._told)

    async def _connected(self) -> None:
        """Return when the connection stands."""
        try:
            while self._ep is not None and self._ep.state == "connecting":
                await self._news()
        except BaseException:
            self.abort()
            raise
        failed = self._ep.failure if self._ep is not None else None
        if failed is not None:
            self.abort()
            raise failure_of(failed, "create_endpoint") from failed

    def _has_ended(self) -> bool:
        return self._ep is None or self._ep.state in ("failed", "closed")

    def _check(self) -> tuple[MessageEndpoint, Context]:
        """Return what the endpoint is made of. Raises where it has ended."""
        if self._ep is None or self._ctx is None:
            raise UCXCloseError("Endpoint closed")
        if (failed := self._ep.failure) is not None:
            raise end_of(failed, hex(self._uid)) from failed
        return self._ep, self._ctx

    def _check_receive(self, number: int, forced: bool) -> tuple[MessageEndpoint, Context]:
        """Likewise. Where a message has come the endpoint may have ended."""
        core, context = self._ep, self._ctx
        if core is not None and context is not None:
            probe = context.core.probe if forced else core.probe
            if probe(number):
                return core, context
        return self._check()

    def _cancel_receives(self) -> None:
        for each in self._receives:
            each.cancel()

    def _tell_end(self, context: Context | None) -> None:
        if self._close_callback is not None and context is not None:
            callback, self._close_callback = self._close_callback, None
            context.call(callback)

    # Messages.

    def _tag(self, tag: Hashable | None, force_tag: bool) -> tuple[int, bool]:
        """Return the number of a tag, and whether it is the program's own."""
        if tag is not None and force_tag:
            if not isinstance(tag, SupportsIndex):
                raise TypeError("force_tag=True needs a number for a tag")
            return operator.index(tag), True
        if self._by_address:
            raise ValueError(
                "an endpoint by worker address needs a tag of both sides: tag=..., force_tag=True"
            )
        return (_untagged if tag is None else stable_hash(tag)), False

    async def send(
        self, buffer: Buffer, tag: Hashable | None = None, force_tag: bool = False
    ) -> None:
        """Send the bytes of a buffer. When it returns, the buffer may be changed.

        Parameters
        ----------
        buffer : object with the buffer protocol, array of a device
            C-contiguous. All of its bytes are one message.
        tag : hashable, optional
            The message goes to a receive with an equal tag: text, bytes, a number, a tuple of
            these; others need an equal `hash` in both processes. None is a tag, too.
        force_tag : bool
            `tag` is a number of 64 bits, which `ucxio.ucp.recv` of the peer can receive, too.
        """
        number, _ = self._tag(tag, force_tag)
        core, context = self._check()
        self._send_count += 1
        doing = f"[Send #{self._send_count - 1:03}] ep: {self._uid:#x}, tag: {number:#x}"
        await self._finish(context, core.send(buffer, number), doing)

    async def am_send(self, buffer: Buffer) -> None:
        """Send the bytes of a buffer to `am_recv` of the peer."""
        core, context = self._check()
        self._refuse_by_address("am_send")
        self._send_count += 1
        doing = f"[AM Send #{self._send_count - 1:03}] ep: {self._uid:#x}"
        await self._finish(context, core.send_active(buffer), doing)

    async def send_multi(
        self, buffers: Iterable[Buffer], tag: Hashable | None = None, force_tag: bool = False
    ) -> None:
        """Send several buffers as one message, to `recv_multi` of the peer."""
        number, _ = self._tag(tag, force_tag)
        core, context = self._check()
        self._send_count += 1
        doing = f"[Send Multi #{self._send_count - 1:03}] ep: {self._uid:#x}, tag: {number:#x}"
        await self._finish(context, core.send_parts(list(buffers), number), doing)

    async def send_obj(self, obj: Buffer, tag: Hashable | None = None) -> None:
        """Send the length of a buffer, and then the buffer, to `recv_obj` of the peer."""
        length = array.array("Q", [size_of_buffer(obj)])
        await self.send(length, tag=tag)
        await self.send(obj, tag=tag)

    async def recv(
        self, buffer: Buffer, tag: Hashable | None = None, force_tag: bool = False
    ) -> None:
        """Receive the next message into a buffer, which it has to fill.

        Parameters
        ----------
        buffer : object with the buffer protocol, array of a device
            Writable, C-contiguous.
        tag : hashable, optional
            The tag of the message: see `send`.
        force_tag : bool
            `tag` is a number of 64 bits. Its message may come from any peer.

        Raises
        ------
        UCXMsgTruncated
            The message is longer, or shorter. Of a longer one nothing was written.
        """
        number, forced = self._tag(tag, force_tag)
        core, context = self._check_receive(number, forced)
        doing = f"[Recv #{self._recv_count:03}] ep: {self._uid:#x}, tag: {number:#x}"
        self._recv_count += 1
        from_any = context.core.receive
        started = from_any(buffer, number) if forced else core.receive(buffer, number)
        lengths = await self._receive(context, started, doing)
        check_length(doing, *lengths)
        self._count_received()

    async def recv_multi(
        self, tag: Hashable | None = None, force_tag: bool = False
    ) -> list[memoryview]:
        """Receive what `send_multi` of the peer sent: a writable memoryview of each buffer."""
        number, forced = self._tag(tag, force_tag)
        core, context = self._check_receive(number, forced)
        doing = f"[Recv Multi #{self._recv_count:03}] ep: {self._uid:#x}, tag: {number:#x}"
        self._recv_count += 1
        from_any = context.core.receive_parts
        started = from_any(number) if forced else core.receive_parts(number)
        parts = await self._receive(context, started, doing)
        self._count_received()
        return parts

    async def recv_obj(
        self, tag: Hashable | None = None, allocator: Callable[[int], Any] = bytearray
    ) -> Any:
        """Receive what `send_obj` of the peer sent, in a buffer that `allocator` makes.

        Parameters
        ----------
        tag : hashable, optional
            The tag of both messages: see `send`.
        allocator : callable
            Gets the number of bytes, and returns a buffer of so many.
        """
        length = array.array("Q", [0])
        await self.recv(length, tag=tag)
        made = allocator(length[0])
        await self.recv(made, tag=tag)
        return made

    async def am_recv(self) -> Any:
        """Receive the next buffer of `am_send`, in one that a registered allocator makes.

        See `ucxio.ucp.register_am_allocator`. A message that the allocator has no buffer for is
        refused: its sender, too, may get UCXError.
        """
        self._refuse_by_address("am_recv")
        if self._ep is None or not self._ep.has_active:
            self._check()
        doing = f"[am_recv #{self._recv_count:03}] ep: {self._uid:#x}"
        self._recv_count += 1
        context = self._ctx
        assert context is not None
        message = await self._next_active(doing)
        made = context.allocate("cuda" if message.is_of_device else "host", message.length)
        await self._receive(context, message.receive(made), doing)
        self._count_received()
        return made

    async def _next_active(self, doing: str) -> Any:
        """Take the next active message, in the order of the calls."""
        ticket = object()
        self._line.append(ticket)
        try:
            while True:
                if self._line[0] is ticket and self._ep is not None:
                    message = self._ep.take_active()
                    if message is not None:
                        return message
                if self._is_closing or self._has_ended():
                    raise UCXCanceled(f"<{doing}>: the endpoint was closed before a message came")
                await self._news()
        finally:
            self._line.remove(ticket)
            if self._line:
                self._told()  # the next in line looks

    async def _finish(self, context: Context, operation: Operation[T], doing: str) -> T:
        driver = context.driver()
        driver.soon()  # UCX may have to send what it has taken
        try:
            return await driver.finish(operation)
        except Error as failed:
            raise failure_of(failed, doing) from failed

    async def _receive(self, context: Context, operation: Operation[T], doing: str) -> T:
        driver = context.driver()
        self._receives.add(operation)
        try:
            return await driver.finish(operation)
        except Error as failed:
            raise failure_of_receive(failed, doing) from failed
        finally:
            self._receives.discard(operation)

    def _count_received(self) -> None:
        self._finished_recv_count += 1
        last = self._close_after_n_recv
        if last is not None and self._finished_recv_count >= last:
            self.abort()

    def _refuse_by_address(self, call: str) -> None:
        if self._by_address:
            raise UCXError(f"{call}: an endpoint by worker address has messages with tags only")

    # The end.

    async def flush(self) -> None:
        """Wait until what was sent before is at the peer's UCX."""
        core, context = self._check()
        await self._finish(context, core.flush(), f"[Flush] ep: {self._uid:#x}")

    async def close(self) -> None:
        """Close the endpoint. The peer receives what was sent before, and its endpoint ends, too.

        Receives that wait raise UCXCanceled. A peer that does not answer is waited for, for 5 s at
        most. Idempotent.
        """
        core, context = self._ep, self._ctx
        if core is None or context is None or self._has_ended():
            self.abort()
            return
        if self._is_closing:
            while self._ep is not None:  # another task closes it
                await self._news()
            return
        self._is_closing = True
        self._cancel_receives()
        try:
            await self._finish(context, core.close(), f"[Close] ep: {self._uid:#x}")
        except Exception as failed:
            logger.debug("closing an endpoint: %s", failed)
        finally:
            self.abort()

    def abort(self) -> None:
        """Close the endpoint at once. What is on its way may be lost. Idempotent."""
        core, context, self._ep, self._ctx = self._ep, self._ctx, None, None
        if core is None or context is None:
            return
        context.forget(self._number)
        core.abort()
        self._tell_end(context)
        self._told()

    def __del__(self) -> None:
        context = getattr(self, "_ctx", None)
        if context is not None and not is_forked_child():
            context.forget(self._number)
            self._tell_end(context)

    @property
    def closed(self) -> Truth:
        """Whether either side has closed the endpoint, or it is lost: a property, and a method."""
        return Truth(self._has_ended())

    def close_after_n_recv(self, n: int, count_from_ep_creation: bool = False) -> None:
        """Close the endpoint when it has received `n` more messages.

        Parameters
        ----------
        n : int
            The number of messages: of all calls that receive, each of which counts one. Of
            `recv_obj` it is two.
        count_from_ep_creation : bool
            Counts those that were received before, too.

        Raises
        ------
        UCXError
            It was called before, or more messages were received already.
        """
        if not count_from_ep_creation:
            n += self._finished_recv_count
        if self._close_after_n_recv is not None:
            text = f"close_after_n_recv has already been set to: {self._close_after_n_recv} (abs)"
            raise UCXError(text)
        if n < self._finished_recv_count:
            text = f"{n} (abs) < {self._finished_recv_count} (abs)"
            raise UCXError(f"`n` cannot be less than current recv_count: {text}")
        if n == self._finished_recv_count:
            self.abort()
        else:
            self._close_after_n_recv = n

    def set_close_callback(self, callback_func: Callable[[], object]) -> None:
        """Have a function called once when the endpoint ends, in any way.

        It may be a coroutine function. Its exceptions go to the handler of the event loop.
        """
        self._close_callback = callback_func
        if self._has_ended():
            self._tell_end(self._ctx)

    # Facts.

    @property
    def uid(self) -> int:
        """A number of the endpoint that no other one of the process has while it is open."""
        return self._uid

    def cuda_support(self) -> bool:
        """Return whether UCX was built and set up for CUDA."""
        return self._check()[1].core.supports_cuda

    def get_ucp_worker(self) -> int:
        """Return UCX's worker: ``ucp_worker_h``."""
        return self._check()[1].core.handle

    def get_ucp_endpoint(self) -> int:
        """Return UCX's endpoint: ``ucp_ep_h``."""
        return self._check()[0].handle

    def ucx_info(self) -> str:
        """Return a description of the endpoint, of several lines."""
        core, _ = self._check()
        lanes = "".join(f"\n#   lane: {each}" for each in core.transports)
        return f"# endpoint {self._uid:#x}, {core.state}\n#   peer: {core.peer}{lanes}\n"

    def __repr__(self) -> str:
        if is_forked_child():
            return f"<ucxio.ucp.Endpoint {self._uid:#x} of the parent>"
        peer = "" if self._ep is None else f" to {self._ep.peer}"
        return f"<ucxio.ucp.Endpoint {self._uid:#x}{peer}, {'closed' if self.closed else 'open'}>"
