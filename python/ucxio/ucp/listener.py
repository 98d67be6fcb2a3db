"""A listener."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .._core import MessageListener, is_forked_child
from ._truth import Truth
from .endpoint import Endpoint

if TYPE_CHECKING:
    from ._context import Context

__all__ = ["Listener"]


class Listener:
    """Accepts peers while the object exists, until `close`. `create_listener` makes it."""

    def __init__(
        self,
        core: MessageListener,
        context: Context,
        callback: Callable[[Endpoint], Awaitable[object] | object],
    ) -> None:
        """Wrap a listener. Use `create_listener` instead."""
        self._core = core
        self._ctx: Context | None = context
        self._callback = callback
        self._ip, self._port = core.host, core.port
        context.listen_to(core.number, self._told)

    def _told(self) -> None:
        if self._ctx is None:
            return
        for core in self._core.take_peers():
            self._ctx.call(self._callback, Endpoint(core, self._ctx))

    @property
    def closed(self) -> Truth:
        """Whether it was closed: a property, and a method."""
        return Truth(self._ctx is None)

    @property
    def ip(self) -> str:
        """The address on which it listens."""
        return self._ip

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self._port

    def close(self) -> None:
        """Stop listening. Endpoints live on. Idempotent.

        The callback still gets the peers that have connected before, in a running event loop.
        Those that are connecting are refused.
        """
        if self._ctx is None:
            return
        if asyncio._get_running_loop() is not None and not is_forked_child():
            self._told()
        self._ctx.forget(self._core.number)
        self._core.close()
        self._ctx = None

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<ucxio.ucp.Listener at {self._ip}:{self._port}, {state}>"
