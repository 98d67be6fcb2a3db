"""Connections to servers that are made at the first use, and again when they were lost."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from typing import Any

from . import _core
from .client import Client

__all__ = ["Connection", "connection_to"]

# After so many seconds without a call, a server is asked for a sign of life: between calls nothing
# notices that it went without a word.
_idle = 1.0


class Connection:
    """A client for one server and one set of options, which many objects share."""

    __slots__ = (
        "__weakref__",
        "_client",
        "_lock",
        "_options",
        "_server",
        "_used",
    )

    def __init__(self, server: str, options: dict[str, Any]) -> None:
        self._server = server
        self._options = options
        self._client: Client | None = None
        self._lock = threading.Lock()
        self._used = 0.0

    def client(self) -> Client:
        """Return the client, connected as far as is known by now.

        Raises
        ------
        Error
            Those of `Client`.
        """
        if _core.is_forked_child():  # another thread may have had the lock
            return self._connect()
        client = self._client
        if client is None or not self._is_usable(client):
            with self._lock:
                client = self._client
                if client is None or not client.is_connected:
                    client = self._client = self._connect()
        self._used = time.monotonic()
        return client

    def _is_usable(self, client: Client) -> bool:
        if client.is_connected and time.monotonic() - self._used > _idle:
            with contextlib.suppress(ConnectionError, ValueError):  # lost, closed
                client.exists("-")
        return client.is_connected

    def _connect(self) -> Client:
        options = {**self._options, "configuration": dict(self._options["configuration"])}
        return Client(self._server, **options)


_connections: weakref.WeakValueDictionary[tuple[object, ...], Connection] = (
    weakref.WeakValueDictionary()
)
# Two threads that ask at once get the same.
_connections_lock = threading.Lock()


def connection_to(server: str, **options: Any) -> Connection:
    """Return the connection that all who name this server and these options share."""
    key = (server, *sorted(options.items(), key=lambda item: item[0]))
    with _connections_lock:
        return _connections.setdefault(key, Connection(server, options))
