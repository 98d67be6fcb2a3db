"""A connection of UCX's."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any

from ..._core import PlainEndpoint
from ...errors import Error
from ..address import UCXAddress
from ..exceptions import UCXCloseError, UCXUnreachable, end_of, translated
from .packed_remote_key import PackedRemoteKey
from .ucx_object import UCXObject
from .ucx_request import UCXRequest
from .ucx_rkey import UCXRkey
from .ucx_worker import UCXWorker, next_number

__all__ = ["UCXEndpoint"]

logger = logging.getLogger("ucx")


class UCXEndpoint(UCXObject):
    """A connection to a worker of UCX's: `create` and `create_from_worker_address` make it."""

    def __init__(self, worker: UCXWorker, core: PlainEndpoint) -> None:
        """Wrap a connection. Use `create` or `create_from_worker_address` instead."""
        super().__init__()
        self.worker = worker
        self._core: PlainEndpoint | None = core
        self._number = next_number()
        self._handle = core.handle  # UCX's own is gone after a failure
        worker._children.add(self)

    @classmethod
    def create(
        cls, worker: UCXWorker, ip_address: str, port: int, endpoint_error_handling: bool = True
    ) -> UCXEndpoint:
        """Begin to connect to a listener of a program that has UCX alone.

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
            return cls(worker, core.connect_to(host, port))

    @classmethod
    def create_from_worker_address(
        cls, worker: UCXWorker, address: UCXAddress, endpoint_error_handling: bool = True
    ) -> UCXEndpoint:
        """Begin to connect to a worker.

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
        del endpoint_error_handling
        core = worker._opened()
        with translated("create_from_worker_address"):
            return cls(worker, core.connect_to_worker(address))

    def _opened(self) -> PlainEndpoint:
        if self._core is None:
            raise UCXCloseError("Endpoint closed")
        return self._core

    def _drop(self) -> None:
        core, self._core = self._core, None
        assert core is not None
        try:
            core.close()
        except Error as failed:
            logger.debug("closing an endpoint: %s", failed)

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
        with translated("flush"):
            operation = self._opened().flush()
        call = (cb_func, cb_args, cb_kwargs)
        return self.worker._start(operation, "flush", self._number, call, is_flush=True)

    def is_alive(self) -> bool:
        """Return whether the connection has not failed."""
        return self._core is not None and self._core.failure is None

    def raise_on_error(self) -> None:
        """Raise why the connection failed, if it did."""
        core = self._opened()
        if (failed := core.failure) is not None:
            raise end_of(failed, hex(self._handle)) from failed

    @property
    def handle(self) -> int:
        """UCX's endpoint: ``ucp_ep_h``."""
        with translated("handle"):
            return self._opened().handle

    def info(self) -> str:
        """Return a description of the endpoint, of several lines."""
        core = self._opened()
        with translated("info"):
            lanes = "".join(f"\n#   lane: {each}" for each in core.transports)
            return f"# endpoint {self._handle:#x}, {core.state}{lanes}\n"

    def __repr__(self) -> str:
        return f"<ucxio.ucp UCXEndpoint, {'open' if self.initialized else 'closed'}>"
