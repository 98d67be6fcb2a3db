"""What is known of a connection without asking its server."""

from __future__ import annotations

import builtins
from typing import ClassVar

from . import _core
from .calls import KnownFunctions
from .entry import Entry

__all__ = ["ClientFacts", "DirectoryListing"]


class DirectoryListing(list[Entry]):
    """The entries of a directory, by name.

    Attributes
    ----------
    unserved : int
        How many further names are not served: symbolic links, special files.
    """

    unserved: int = 0

    def __repr__(self) -> str:
        unserved = f", {self.unserved} not served" if self.unserved else ""
        return f"<ucxio.DirectoryListing {super().__repr__()}{unserved}>"


class ClientFacts:
    """The properties of a client, for calls that wait and for those that are awaited."""

    __slots__ = ("_core", "_functions", "_url")

    _shown: ClassVar[str] = "ucxio.Client"

    def __init__(self, core: _core.Client | _core.LoopClient, url: str) -> None:
        self._core: _core.Client | _core.LoopClient = core
        self._url = _core.split_url(url)[0]
        self._functions = KnownFunctions()

    @property
    def url(self) -> str:
        """The server's URL."""
        return self._url

    @property
    def server_version(self) -> str:
        """The version of the server's library."""
        return self._core.server_version

    @property
    def identity(self) -> str:
        """Who this client is to the server: "token build", "user alice"."""
        return self._core.identity

    @property
    def transports(self) -> builtins.list[str]:
        """The transports in use, as "transport/device"."""
        return self._core.transports

    @property
    def is_connected(self) -> bool:
        """Whether the connection is usable, as far as is known by now."""
        return self._core.is_open

    def __repr__(self) -> str:
        return f"<{self._shown} of {self._url}>"
