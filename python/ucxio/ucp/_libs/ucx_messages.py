"""Messages by calls that do not wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._buffer import Buffer
from ..._core import ActiveMessage, Operation
from ...errors import Error
from ..exceptions import UCXMsgTruncated, failure_of, translated
from .arr import Array, part_of
from .ucx_context import Feature
from .ucx_endpoint import UCXEndpoint
from .ucx_request import Call, UCXRequest
from .ucx_worker import UCXWorker

__all__ = [
    "ActiveReceive",
    "am_recv_nb",
    "am_send_nbx",
    "stream_recv_nb",
    "stream_send_nb",
    "tag_recv_nb",
    "tag_send_nb",
]


def _check_length(doing: str, lengths: tuple[int, int]) -> Exception | None:
    got, expected = lengths
    if got == expected:
        return None
    text = f"<{doing}>: length mismatch: {got} (got) != {expected} (expected)"
    return UCXMsgTruncated(text)


def _send(
    ep: UCXEndpoint,
    start: Callable[[Buffer], Operation[None]],
    buffer: Buffer | Array[Any],
    nbytes: int,
    doing: str,
    call: Call,
) -> UCXRequest | None:
    with translated(doing):
        operation = start(part_of(buffer, nbytes))
    return ep.worker._start(operation, doing, ep._number, call)


def tag_send_nb(
    ep: UCXEndpoint,
    buffer: Buffer | Array[Any],
    nbytes: int,
    tag: int,
    cb_func: Callable[..., object] | None,
    cb_args: tuple[Any, ...] | None = None,
    cb_kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> UCXRequest | None:
    """Send the first bytes of a buffer to a receive with a tag.

    Parameters
    ----------
    ep : UCXEndpoint
        The connection to the peer.
    buffer : Array, or object with a buffer
        In use until the send has ended.
    nbytes : int
        How many bytes.
    tag : int
        A number of 64 bits. `tag_recv_nb` of the peer has the same.
    cb_func : callable
        Gets the request, and an exception or None, when the buffer may be changed. It is called by
        `UCXWorker.progress`.
    cb_args : tuple, optional
        Further arguments.
    cb_kwargs : dict, optional
        Further arguments, by their names.
    name : str, optional
        What the operation is called in errors.

    Returns
    -------
    UCXRequest or None
        None where it has ended: the function is not called then.

    Raises
    ------
    UCXError, UCXConnectionReset, UCXCloseError
        The endpoint has ended.
    ValueError
        The context is without ``Feature.TAG``, or the buffer has not so many bytes.
    """
    core = ep._messages(Feature.TAG)
    call = (cb_func, cb_args, cb_kwargs)
    return _send(ep, lambda part: core.send(part, tag), buffer, nbytes, name or "tag_send_nb", call)


def tag_recv_nb(
    worker: UCXWorker,
    buffer: Buffer | Array[Any],
    nbytes: int,
    tag: int,
    cb_func: Callable[..., object] | None,
    cb_args: tuple[Any, ...] | None = None,
    cb_kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
    ep: UCXEndpoint | None = None,
) -> UCXRequest | None:
    """Receive a message of any peer into the first bytes of a buffer, which it has to fill.

    Otherwise as `tag_send_nb`. It waits until the message comes, `UCXWorker.request_cancel`,
    `UCXWorker.cancel_inflight_messages`, or `ep`, where it is given, is closed by this side: the
    function gets UCXCanceled then. It gets UCXMsgTruncated where the message is longer or shorter.
    """
    doing = name or "tag_recv_nb"
    core = worker._message_core(Feature.TAG)
    with translated(doing):
        operation = core.receive(part_of(buffer, nbytes), tag)
    call = (cb_func, cb_args, cb_kwargs)
    by = None if ep is None else ep._number
    return worker._start_receive(
        operation, doing, by, call, lambda lengths: _check_length(doing, lengths)
    )


def stream_send_nb(
    ep: UCXEndpoint,
    buffer: Buffer | Array[Any],
    nbytes: int,
    cb_func: Callable[..., object] | None,
    cb_args: tuple[Any, ...] | None = None,
    cb_kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> UCXRequest | None:
    """Send the first bytes of a buffer by the connection's stream. Otherwise as `tag_send_nb`."""
    start = ep._messages(Feature.STREAM).stream_send
    call = (cb_func, cb_args, cb_kwargs)
    return _send(ep, start, buffer, nbytes, name or "stream_send_nb", call)


def stream_recv_nb(
    ep: UCXEndpoint,
    buffer: Buffer | Array[Any],
    nbytes: int,
    cb_func: Callable[..., object] | None,
    cb_args: tuple[Any, ...] | None = None,
    cb_kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> UCXRequest | None:
    """Receive the next bytes of the peer's stream: `nbytes`, not less. Else as `tag_send_nb`."""
    doing = name or "stream_recv_nb"
    core = ep._messages(Feature.STREAM)
    with translated(doing):
        operation = core.stream_receive(part_of(buffer, nbytes))
    call = (cb_func, cb_args, cb_kwargs)
    return ep.worker._start_receive(operation, doing, ep._number, call)


def am_send_nbx(
    ep: UCXEndpoint,
    buffer: Buffer | Array[Any],
    nbytes: int,
    cb_func: Callable[..., object] | None,
    cb_args: tuple[Any, ...] | None = None,
    cb_kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> UCXRequest | None:
    """Send the first bytes of a buffer to `am_recv_nb` of the peer. Otherwise as `tag_send_nb`."""
    start = ep._messages(Feature.AM, by_listener=True).send_active
    call = (cb_func, cb_args, cb_kwargs)
    return _send(ep, start, buffer, nbytes, name or "am_send_nb", call)


def am_recv_nb(
    ep: UCXEndpoint,
    cb_func: Callable[..., object],
    cb_args: tuple[Any, ...] | None = None,
    cb_kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> None:
    """Receive the next message of `am_send_nbx` of the peer, in memory that an allocator makes.

    Parameters
    ----------
    ep : UCXEndpoint
        The connection to the peer.
    cb_func : callable
        Gets the object of the allocator (`UCXWorker.register_am_allocator`), and None; or None, and
        an exception. It is called by `UCXWorker.progress`, or at once where the message is there.
    cb_args : tuple, optional
        Further arguments.
    cb_kwargs : dict, optional
        Further arguments, by their names.
    name : str, optional
        What the operation is called in errors.

    Raises
    ------
    UCXError, UCXConnectionReset, UCXCloseError
        The endpoint has ended, and no message is there.
    ValueError
        The context is without ``Feature.AM``.
    """
    ep._messages(Feature.AM, by_listener=True, receives=True)
    ep._await_active(ActiveReceive(ep, cb_func, cb_args or (), cb_kwargs or {}, name or "am_recv"))


class ActiveReceive:
    """A receive that waits for an active message, or for its bytes."""

    __slots__ = ("_arguments", "_call", "_keywords", "_number", "_worker", "doing")

    def __init__(
        self,
        ep: UCXEndpoint,
        call: Callable[..., object],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        doing: str,
    ) -> None:
        """Wait. `am_recv_nb` makes it."""
        self.doing = doing
        self._worker, self._number = ep.worker, ep._number
        self._call, self._arguments, self._keywords = call, arguments, keywords

    def take(self, came: ActiveMessage) -> None:
        """Receive the bytes of a message."""
        try:
            made = self._worker._allocate(came.is_of_device, came.length)
            request = self._worker._start_receive(
                came.receive(made),
                self.doing,
                self._number,
                (lambda _, failure: self.end(None if failure else made, failure), None, None),
            )
        except Error as failed:
            self.end(None, failure_of(failed, self.doing))
        except Exception as failed:
            self.end(None, failed)
        else:
            if request is None:
                self.end(made, None)

    def end(self, made: Any, failure: Exception | None) -> None:
        """Call the function."""
        self._worker._call(self._call, made, failure, *self._arguments, **self._keywords)
