"""A connection of UCX's."""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..._core import MessageEndpoint, PlainEndpoint, is_forked_child
from ...errors import Error
from ..address import UCXAddress
from ..exceptions import (
    UCXCanceled,
    UCXCloseError,
    UCXError,
    UCXUnreachable,
    end_of,
    translated,
)
from .packed_remote_key import PackedRemoteKey
from .ucx_context import Feature
from .ucx_object import UCXObject
from .ucx_request import UCXRequest
from .ucx_rkey import UCXRkey
from .ucx_worker import UCXWorker, next_number

if TYPE_CHECKING:
    from .ucx_listener import ConnectionRequest
    from .ucx_messages import ActiveReceive

__all__ = ["UCXEndpoint"]

logger = logging.getLogger("ucx")


class UCXEndpoint(UCXObject):
    """A connection to a worker of UCX's: `create` and `create_from_worker_address` make it."""

    def __init__(
        self,
        worker: UCXWorker,
        core: PlainEndpoint | None,
        connect: Callable[[], MessageEndpoint] | None = None,
        *,
        peer: MessageEndpoint | None = None,
    ) -> None:
        """Wrap a connection. Use `create` or `create_from_worker_address` instead.

        By `core` keys are used, by `peer` messages are sent. That is made by `connect` when there
        is a message.
        """
        super().__init__()
        self.worker = worker
        self._core = core
        self._connect = connect
        self._peer: MessageEndpoint | None = None
        self._number = next_number()
        self._waiting: deque[ActiveReceive] = deque()
        self._close_callback: Callable[[], object] | None = None
        if peer is not None:
            self._hold(peer)
        made = core or peer
        assert made is not None
        self._handle = made.handle  # UCX's own is gone after a failure
        worker._children.add(self)
        worker._endpoints.add(self)

    @classmethod
    def create(
        cls, worker: UCXWorker, ip_address: str, port: int, endpoint_error_handling: bool = True
    ) -> UCXEndpoint:
        """Begin to connect to a listener.

        Where the worker's context has ``Feature.RMA``, that is one of a program that has UCX alone,
        and the endpoint is for keys. Else it is a `UCXListener`, and the endpoint is for messages.
        The name of a host is looked up before it returns, for as long as the system's resolver
        takes.

        Parameters
        ----------
        worker : UCXWorker
            The worker that is to connect.
        ip_address : str
            An IPv4 address, or the name of a host that has one.
        port : int
            The listener's port.
        endpoint_error_handling : bool
            Ignored: UCX watches the connection.

        Raises
        ------
        UCXError
            It can not be begun. Later failures are raised where the connection is used.
        UCXUnreachable
            No host has the name, or no IPv4 address.
        """
        del endpoint_error_handling
        core = worker._opened()
        try:
            host = socket.gethostbyname(ip_address)
        except (OSError, UnicodeError) as failed:  # a name that is none is UnicodeError
            raise UCXUnreachable(f"<create>: no address of {ip_address!r}: {failed}") from failed
        with translated("create"):
            if worker._is_for_keys:
                return cls(worker, core.connect_to(host, port))
            return cls(worker, None, peer=worker._message_core().connect_to(host, port))

    @classmethod
    def create_from_conn_request(
        cls,
        worker: UCXWorker,
        conn_request: ConnectionRequest,
        endpoint_error_handling: bool = True,
    ) -> UCXEndpoint:
        """Return the endpoint of a peer that has connected: for messages.

        Parameters
        ----------
        worker : UCXWorker
            The worker of the listener.
        conn_request : connection request
            What the function of a `UCXListener` gets.
        endpoint_error_handling : bool
            Ignored: connections to a listener are always watched.

        Raises
        ------
        UCXError
            It was taken before.
        """
        del endpoint_error_handling
        core, conn_request._core = conn_request._core, None
        if core is None:
            raise UCXError("<create_from_conn_request>: it was taken before")
        return cls(worker, None, peer=core)

    @classmethod
    def create_from_worker_address(
        cls, worker: UCXWorker, address: UCXAddress, endpoint_error_handling: bool = True
    ) -> UCXEndpoint:
        """Begin to connect to a worker, for keys and messages with tags, as its context allows.

        Parameters
        ----------
        worker : UCXWorker
            The worker that is to connect, or the peer itself.
        address : UCXAddress
            What `UCXWorker.get_address` of the peer returned. That of a program without ucxio comes
            from `UCXAddress.from_native`.
        endpoint_error_handling : bool
            Ignored: UCX watches the connection where the context has transports between hosts.

        Raises
        ------
        UCXError
            The address is damaged.
        UCXUnreachable
            No transport leads to it.
        """
        core = worker._opened()

        def connect() -> MessageEndpoint:
            return worker._message_core().connect_to_worker(address, endpoint_error_handling)

        with translated("create_from_worker_address"):
            if worker._is_for_keys:
                return cls(worker, core.connect_to_worker(address), connect)
            return cls(worker, None, connect, peer=connect())

    def _opened(self) -> PlainEndpoint:
        self._check_open()
        if self._core is None:
            raise UCXError("the endpoint is for messages: its context is without `Feature.RMA`")
        return self._core

    def _check_open(self) -> None:
        if not self.initialized:
            raise UCXCloseError("Endpoint closed")

    def _drop(self) -> None:
        core, self._core = self._core, None
        peer, self._peer = self._peer, None
        try:
            if core is not None:
                core.close()
            if peer is not None and not is_forked_child():
                self._close_peer(peer)
        except Error as failed:
            logger.debug("closing an endpoint: %s", failed)

    # Messages.

    def _hold(self, peer: MessageEndpoint) -> None:
        self._peer = peer
        self.worker._listen_to(peer.number, self._told)

    def _close_peer(self, peer: MessageEndpoint) -> None:
        """Close the connection for messages, and wait until the peer has what was sent."""
        self.worker._forget(peer.number)
        self._cancel_active()
        for each in list(self.worker._flights.values()):
            if each.is_receive and each.endpoint == self._number:
                each.operation.cancel()
        try:
            # The peer gets to know of it, and of its end.
            self.worker._drive_until(lambda: peer.state != "connecting")
            operation = peer.close()
            self.worker._drive_until(lambda: operation.done)
            operation.result()
        finally:
            self._tell_end()

    def _messages(
        self, feature: Feature, *, by_listener: bool = False, receives: bool = False
    ) -> MessageEndpoint:
        """Return what messages of a kind go by. Raises where the endpoint has ended."""
        self._check_open()
        self.worker._message_core(feature)
        if by_listener and self._connect is not None:
            raise UCXError("an endpoint by worker address has messages with tags only")
        if self._peer is None:
            if self._connect is None:
                raise UCXError(
                    "the endpoint is for keys: its context has `Feature.RMA`. For messages connect "
                    "by worker address, or by a context without it"
                )
            with translated("connect"):
                self._hold(self._connect())
        assert self._peer is not None
        failed = self._peer.failure
        if failed is not None and not (receives and self._peer.has_active):
            raise end_of(failed, hex(self._handle)) from failed
        return self._peer

    def _told(self) -> None:
        """Look at the connection: it ended, or an active message has come."""
        peer = self._peer
        if peer is None:
            return
        while self._waiting and (came := peer.take_active()) is not None:
            self._waiting.popleft().take(came)
        if peer.state in ("failed", "closed"):
            self._tell_end()

    def _tell_end(self) -> None:
        callback, self._close_callback = self._close_callback, None
        if callback is not None:
            self.worker._call(callback)

    def _await_active(self, receive: ActiveReceive) -> None:
        self._waiting.append(receive)
        self._told()

    def _cancel_active(self) -> int:
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            each.end(None, UCXCanceled(f"<{each.doing}>: "))
        return len(waiting)

    def am_probe(self) -> bool:
        """Return whether an active message has come that no receive took."""
        self._check_open()
        return self._peer is not None and self._peer.has_active

    def set_close_callback(self, cb_func: Callable[[], object]) -> None:
        """Have a function called once when the connection for messages ends, in any way.

        It is called by `UCXWorker.progress`, or by `close`.
        """
        self._check_open()
        self._close_callback = cb_func
        self._told()

    def unpack_rkey(self, rkey: PackedRemoteKey) -> UCXRkey:
        """Return the key by which memory of the peer is reached over this endpoint.

        UCX reads its bytes where `RemoteMemory` or `UCXIO` is made.

        Raises
        ------
        UCXError
            It has no bytes, or more than 4096.
        """
        self._opened()
        return UCXRkey(self, rkey)

    def flush(
        self,
        cb_func: Callable[..., object] | None,
        cb_args: tuple[Any, ...] | None = None,
        cb_kwargs: Mapping[str, Any] | None = None,
    ) -> UCXRequest | None:
        """Have a function called when all that was started over the endpoint has ended.

        What was written is at the peer then, and what was read is in place.

        Parameters
        ----------
        cb_func : callable
            Gets the request, and the exception of the first failure, or None. It is called by
            `UCXWorker.progress`.
        cb_args : tuple, optional
            Further arguments.
        cb_kwargs : dict, optional
            Further arguments, by their names.

        Returns
        -------
        UCXRequest or None
            None where nothing is in flight: the function is not called then.

        Raises
        ------
        UCXError
            The endpoint has failed, or a `put_nbi` or `get_nbi` that has ended.
        """
        self._check_open()
        core = self._core or self._peer
        assert core is not None
        with translated("flush"):
            operation = core.flush()
        call = (cb_func, cb_args, cb_kwargs)
        return self.worker._start(operation, "flush", self._number, call, is_flush=True)

    def is_alive(self) -> bool:
        """Return whether the connection has not failed."""
        return self.initialized and self._failure() is None

    def _failure(self) -> Error | None:
        both = [each.failure for each in (self._core, self._peer) if each is not None]
        return next((each for each in both if each is not None), None)

    def raise_on_error(self) -> None:
        """Raise why the connection failed, if it did."""
        self._check_open()
        if (failed := self._failure()) is not None:
            raise end_of(failed, hex(self._handle)) from failed

    @property
    def handle(self) -> int:
        """UCX's endpoint: ``ucp_ep_h``."""
        self._check_open()
        core = self._core or self._peer
        assert core is not None
        with translated("handle"):
            return core.handle

    def info(self) -> str:
        """Return a description of the endpoint, of several lines."""
        self._check_open()
        core = self._core or self._peer
        assert core is not None
        with translated("info"):
            lanes = "".join(f"\n#   lane: {each}" for each in core.transports)
            return f"# endpoint {self._handle:#x}, {core.state}{lanes}\n"

    def __repr__(self) -> str:
        return f"<ucxio.ucp UCXEndpoint, {'open' if self.initialized else 'closed'}>"
