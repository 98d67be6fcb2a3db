"""A connection to a peer."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from ..._buffer import Buffer
from ..._core import MessageEndpoint, Operation, is_forked_child
from ...errors import Error
from .._context import Context
from ..exceptions import UCXCloseError, translated
from ..utils import hash64bits
from ._message import ucp_msg
from ._region import buffer_region
from ._transfer import CommFuture, Transfer, ucp_comm_request

__all__ = ["ucp_py_ep"]

T = TypeVar("T")
logger = logging.getLogger("ucx")

# Messages have one tag, in whose lowest bit is whether they are text.
_bytes_tag = hash64bits("ucxio.ucp.early", "message") & ~1
_text_tag = _bytes_tag | 1
_both = (1 << 64) - 2


class ucp_py_ep:
    """A connection to one peer: `get_endpoint` makes it, and listeners do.

    Messages come in the order in which they were sent. Each receive takes one, whichever calls of
    the peer's sent it. An endpoint that no object refers to any more is closed.

    Raises
    ------
    UCXCloseError
        Each method raises it where the endpoint was closed by this side.
    UCXCanceled
        Of a receive: the endpoint ended before a message came.
    UCXConnectionReset, UCXError
        Of a send: likewise.
    UCXMsgTruncated
        Of a receive: the message is longer than its length, and lost. Nothing was written.
    """

    def __init__(self, core: MessageEndpoint, context: Context) -> None:
        """Wrap a connection. Use `get_endpoint` instead."""
        self._core: MessageEndpoint | None = core
        self._context = context
        self._receives: weakref.WeakSet[Transfer[Any]] = weakref.WeakSet()

    def _opened(self) -> MessageEndpoint:
        if self._core is None:
            raise UCXCloseError("Endpoint closed")
        return self._core

    def _send(self, message: ucp_msg, length: int, doing: str) -> Transfer[None]:
        core = self._opened()
        source, size = message._region._source(length)
        is_text = isinstance(message._region._object, str)
        with translated(doing):
            operation = core.send(source, _text_tag if is_text else _bytes_tag)
        message._length = size
        return Transfer(self._context, operation, message, None, doing)

    def _receive(self, message: ucp_msg, length: int, doing: str) -> Transfer[Any]:
        core = self._opened()
        place = message._region._place(length)
        if place is None:
            return self._receive_whole(message, doing)
        message._length = length

        def end(lengths: tuple[int, int]) -> None:
            message._length = lengths[0]

        with translated(doing):
            operation = core.receive(place, _bytes_tag, _both)
        return self._received(operation, message, end, doing)

    def _receive_whole(self, message: ucp_msg, doing: str) -> Transfer[Any]:
        core = self._opened()

        def end(came: tuple[memoryview, int]) -> None:
            message._take(came[0], came[1] == _text_tag)

        with translated(doing):
            operation = core.receive_whole(_bytes_tag, _both)
        return self._received(operation, message, end, doing)

    def _received(
        self, operation: Operation[T], message: ucp_msg, end: Callable[[T], None], doing: str
    ) -> Transfer[T]:
        transfer = Transfer(self._context, operation, message, end, doing)
        self._receives.add(transfer)
        return transfer

    def send(self, msg: ucp_msg, len: int) -> CommFuture:
        """Send the first `len` bytes of a message. They may be changed when the future is done."""
        return CommFuture(self._send(msg, len, "send"))

    def recv(self, msg: ucp_msg, len: int) -> CommFuture:
        """Receive a message of up to `len` bytes into the memory of `msg`."""
        return CommFuture(self._receive(msg, len, "recv"))

    def send_fast(self, msg: ucp_msg, len: int) -> ucp_comm_request:
        """Send as `send` does, without a future."""
        return ucp_comm_request(self._send(msg, len, "send_fast"))

    def recv_fast(self, msg: ucp_msg, len: int) -> ucp_comm_request:
        """Receive as `recv` does, without a future."""
        return ucp_comm_request(self._receive(msg, len, "recv_fast"))

    def recv_future(self) -> CommFuture:
        """Receive a message of any length, into memory that is made for it.

        `get_obj_from_msg` of the result returns its bytes, or its text.
        """
        return CommFuture(self._receive_whole(ucp_msg(), "recv_future"))

    def send_obj(self, msg: str | Buffer, len: int) -> ucp_comm_request:
        """Send text, or a buffer, as a whole.

        Parameters
        ----------
        msg : str or object with the buffer protocol
            The object. It may be changed when the request is done.
        len : int
            Ignored: programs have ``sys.getsizeof(msg)``, which counts other bytes, too.

        Raises
        ------
        TypeError
            It is neither text nor a buffer.
        """
        del len
        made = _message_of(msg)
        return ucp_comm_request(self._send(made, made._region._size, "send_obj"))

    def recv_obj(self, msg: str | Buffer, len: int) -> ucp_comm_request:
        """Receive into a writable buffer, or as an object of its own.

        Parameters
        ----------
        msg : str or object with the buffer protocol
            A writable buffer gets the message. Others, as `str` and `bytes`, stay as they are.
        len : int
            Ignored, as by `send_obj`: a message may fill the buffer.

        Returns
        -------
        ucp_comm_request
            `get_obj_from_msg` of its result returns the object: the buffer, or the text or bytes
            that came.

        Raises
        ------
        TypeError
            It is neither text nor a buffer.
        """
        del len
        made = _message_of(msg)
        return ucp_comm_request(self._receive(made, made._region._size, "recv_obj"))

    def send_msg(self, msg: str | Buffer, len: int) -> ucp_comm_request:
        """Send text, or a buffer: the older name of `send_obj`."""
        return self.send_obj(msg, len)

    def recv_msg(self, msg: str | Buffer, len: int) -> ucp_comm_request:
        """Receive text, or into a buffer: the older name of `recv_obj`."""
        return self.recv_obj(msg, len)

    def close(self) -> int:
        """Close the endpoint: as `destroy_ep`."""
        core, self._core = self._core, None
        if core is None or is_forked_child():
            return 0
        for each in self._receives:
            each.cancel()
        try:
            operation = core.close()
            self._context.drive_until(lambda: operation.done)
            operation.result()
        except Error as failed:
            logger.debug("closing an endpoint: %s", failed)
        return 0

    def _abort(self) -> None:
        core, self._core = self._core, None
        if core is not None:
            core.abort()

    def __repr__(self) -> str:
        state = "closed" if self._core is None or is_forked_child() else self._core.state
        return f"<ucxio.ucp.early.ucp_py_ep, {state}>"


def _message_of(of: str | Buffer) -> ucp_msg:
    region = buffer_region()
    region.populate_ptr(of)
    return ucp_msg(region)
