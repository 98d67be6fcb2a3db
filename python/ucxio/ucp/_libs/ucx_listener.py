"""A listener."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..._core import MessageEndpoint, MessageListener, is_forked_child
from .. import get_address
from ..exceptions import translated
from .ucx_object import UCXObject
from .ucx_worker import UCXWorker

__all__ = ["ConnectionRequest", "UCXListener"]

logger = logging.getLogger("ucx")


class ConnectionRequest:
    """A peer that has connected: `UCXEndpoint.create_from_conn_request` takes it.

    Where no object refers to it any more, and it was not taken, the peer is turned away.
    """

    def __init__(self, core: MessageEndpoint) -> None:
        """Wrap a connection. Listeners make it."""
        self._core: MessageEndpoint | None = core


class UCXListener(UCXObject):
    """Accepts peers, which have ucxio, too, until `close`, or until no object refers to it.

    Parameters
    ----------
    worker : UCXWorker
        The worker that is to listen, of a context with ``Feature.TAG``, ``AM`` or ``STREAM``.
    port : int
        The port; with 0 the system chooses one: `port` of the object.
    cb_func : callable
        Gets a connection request, for `UCXEndpoint.create_from_conn_request`, and the other
        arguments. It is called by `UCXWorker.progress`.
    cb_args : tuple, optional
        Further arguments.
    cb_kwargs : dict, optional
        Further arguments, by their names.
    ip_address : str, optional
        The address on which it listens, ``"0.0.0.0"`` for all. Without it: that of
        `ucxio.ucp.get_address`, which is loopback unless ``UCXPY_IFNAME`` names an interface.
        **All who can connect are accepted.**

    Raises
    ------
    UCXError
        The port is in use, or the address is not of this machine.
    ValueError
        The context is without messages.
    """

    def __init__(
        self,
        worker: UCXWorker,
        port: int,
        cb_func: Callable[..., object],
        cb_args: tuple[Any, ...] | None = None,
        cb_kwargs: Mapping[str, Any] | None = None,
        *,
        ip_address: str | None = None,
    ) -> None:
        super().__init__()
        self._call = (cb_func, cb_args or (), cb_kwargs or {})
        with translated("UCXListener"):
            core = worker._message_core().listen(ip_address or get_address(), port)
        self._core: MessageListener | None = core
        self._worker = worker
        self.ip, self.port = core.host, core.port
        worker._listen_to(core.number, self._told)
        worker._children.add(self)

    def _told(self) -> None:
        if self._core is None:
            return
        call, arguments, keywords = self._call
        for each in self._core.take_peers():
            try:
                call(ConnectionRequest(each), *arguments, **keywords)
            except Exception:
                logger.exception("Exception in %r of ucxio", call)

    def _drop(self) -> None:
        core, self._core = self._core, None
        if core is not None and not is_forked_child():
            self._worker._forget(core.number)
            core.close()

    def __repr__(self) -> str:
        state = "open" if self.initialized else "closed"
        return f"<ucxio.ucp UCXListener at {self.ip}:{self.port}, {state}>"
