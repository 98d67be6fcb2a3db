"""A listener, and the coroutine that keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..._core import MessageListener, is_forked_child
from ...aio._driver import set_done
from .._context import Context
from ._endpoint import ucp_py_ep

__all__ = ["Listener"]


class Listener:
    """Accepts peers, and calls a function for each."""

    def __init__(
        self,
        core: MessageListener,
        context: Context,
        function: Callable[[ucp_py_ep], Awaitable[object] | object],
        is_coroutine: bool,
        accepted: Callable[[ucp_py_ep], object],
    ) -> None:
        """Have `accepted` told of each endpoint, and then `function` called."""
        self.port = core.port
        self._core = core
        self._context = context
        self._function = function
        self._is_coroutine = is_coroutine
        self._accepted = accepted
        self._is_open = True
        self._waiters: list[asyncio.Future[None]] = []
        context.listen_to(core.number, self._told, anywhere=not is_coroutine)

    def _told(self) -> None:
        if not self._is_open or (self._is_coroutine and asyncio._get_running_loop() is None):
            return  # a coroutine has its turn in `serve`
        for each in self._core.take_peers():
            made = ucp_py_ep(each, self._context)
            self._accepted(made)
            self._context.call(self._function, made)

    async def serve(self) -> None:
        """Accept peers in the running loop until the listener is closed."""
        loop = asyncio.get_running_loop()
        self._context.driver().soon()
        self._told()  # who came before
        while self._is_open:
            self._waiters.append(loop.create_future())
            await self._waiters[-1]

    def close(self) -> None:
        """Stop listening, and have `serve` return. Endpoints live on. Idempotent."""
        if not self._is_open:
            return
        if not is_forked_child():
            self._told()
            self._core.close()
        self._is_open = False
        self._context.forget(self._core.number)
        waiters, self._waiters = self._waiters, []
        for each in waiters:
            set_done(each)
