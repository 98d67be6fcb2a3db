"""A server that publishes memory, files and directories."""

from __future__ import annotations

import atexit
import builtins
import contextlib
import math
import os
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from . import _core
from ._buffer import Buffer
from ._closing import Closing
from .calls import Calls
from .entry import Access, Entry

if TYPE_CHECKING:
    import numpy

__all__ = ["Publication", "Server", "ServerStatistics"]


@dataclass(frozen=True, slots=True)
class ServerStatistics:
    """Counters of a server.

    Attributes
    ----------
    clients : int
        Clients that are connected now.
    clients_served : int
        Clients since the server was made.
    names : int
        Names that are published now.
    opens : int
        Requests that were answered with a region.
    refusals : int
        Requests that were answered with an error.
    """

    clients: int
    clients_served: int
    names: int
    opens: int
    refusals: int


class Publication(Closing):
    """A name that a server publishes, while this object lives and `close` was not called."""

    __slots__ = ("__weakref__", "_core", "_dtype", "_name", "_shape")

    def __init__(
        self,
        core: _core.Publication,
        name: str,
        shape: tuple[int, ...] | None = None,
        dtype: object = None,
    ) -> None:
        """Wrap a publication. Use the methods of `Server` instead."""
        self._core = core
        self._name = name
        self._shape = shape
        self._dtype = dtype

    @property
    def name(self) -> str:
        """The name; of a store, its prefix."""
        return self._name

    @property
    def size(self) -> int:
        """Bytes."""
        return self._core.size

    @property
    def access(self) -> Access:
        """What clients may do."""
        return cast(Access, self._core.access)

    @property
    def url(self) -> str:
        """The URL of the name."""
        return self._core.url

    @property
    def closed(self) -> bool:
        """Whether clients can not open the name any more."""
        return not self._core.is_open

    def memoryview(self) -> memoryview:
        """Return the published memory: its bytes, writable where `Server.allocate` made it.

        While such a view exists, `close` raises BufferError.

        Raises
        ------
        Error
            ``not_supported`` (a file or a store), ``closed``.
        """
        return self._core.view(self._shape is not None)

    def array(self) -> numpy.ndarray[Any, Any]:
        """Return the memory of `Server.allocate` as a NumPy array of its shape and type.

        Raises
        ------
        ValueError
            `Server.allocate` did not make it.
        ImportError
            There is no NumPy.
        """
        import numpy

        if self._shape is None:
            raise ValueError("only memory that Server.allocate made has a shape")
        flat = numpy.frombuffer(self.memoryview(), dtype=cast(Any, self._dtype))
        return flat[: math.prod(self._shape)].reshape(self._shape)

    def close(self) -> None:
        """Withdraw the name. Clients that have it open get ``revoked``. Idempotent.

        Returns when no answer reads the memory any more, after some seconds at most.

        Raises
        ------
        BufferError
            A memoryview or an array of it exists.
        """
        self._core.close()

    def __repr__(self) -> str:
        return f"<ucxio.Publication {self._name!r}{', closed' if self.closed else ''}>"


_transports: dict[str, list[str]] = {
    "tls": [],
    "socket": ["socket"],
    "ucx": ["ucx"],
}
_open_servers: weakref.WeakSet[Server] = weakref.WeakSet()


class Server(Closing):
    """Publishes memory, files and directories for other processes. A thread of its own serves.

    Parameters
    ----------
    bind : str
        ``host:port`` to listen on; port 0 lets the system choose. ``unix:/path/x.sock`` is a Unix
        socket, ``unix:`` one whose place the server chooses; only this user's processes get in.
    transport : {"tls", "socket", "ucx"}
        How bytes move: by TLS (``ucxs://``), with a Unix socket beside the port for this user's own
        processes; by a TCP socket without encryption (``ucx+tcp://``); by UCX (``ucx://``), with
        shared memory and RDMA. **By UCX each process that can connect can read and write all
        memory of this one** (`docs/how-to/security.md`): choose it where you trust them all.
        A Unix socket needs none of them.
    insecure : bool
        Allows an address that is not loopback to the transports without TLS.
    token_file : path
        The tokens of clients by TLS; the user's own without it.
    peer_users : iterable of int
        Further users that may connect by a Unix socket.
    rules : str, optional
        Who may do what with which names (`docs/reference/rules.md`).
    max_clients : int
        The clients at a time.
    workers : int
        The threads that serve.
    audit_file : path
        A file that gets a line of JSON for each open, refusal and change.
    pipes : bool
        Lets the ends of pipes meet here, under names of their choice (`open_pipe`).
    call_threads : int
        The threads that run the functions of `calls`, at the first of which they start.

    Raises
    ------
    Error
        ``not_secure`` (not loopback, without TLS and `insecure`), ``address_in_use``,
        ``permission_denied`` (also: there is no token), ``bad_address``, ``bad_configuration``
        (`rules`; `insecure` with TLS).
    ValueError
        There is no such transport, or `call_threads` is below 1.

    Notes
    -----
    Any thread may call it. In a forked child every method raises `Error` (``forked_child``).
    """

    __slots__ = ("__weakref__", "_calls", "_core")

    def __init__(
        self,
        bind: str = "127.0.0.1:0",
        *,
        transport: Literal["tls", "socket", "ucx"] = "tls",
        insecure: bool = False,
        token_file: str | os.PathLike[str] = "",
        peer_users: Iterable[int] = (),
        rules: str | None = None,
        max_clients: int = 10_000,
        workers: int = 1,
        audit_file: str | os.PathLike[str] = "",
        pipes: bool = False,
        call_threads: int = 1,
    ) -> None:
        if transport not in _transports:
            raise ValueError(f"{transport!r} is no transport: one of {', '.join(_transports)}")
        if call_threads < 1:
            raise ValueError(f"functions need a thread: call_threads is {call_threads}")
        by_unix = bind.startswith("unix:")
        self._core = _core.Server(
            bind,
            ["socket"] if by_unix else _transports[transport],
            insecure,
            os.fspath(token_file),
            list(peer_users),
            rules,
            max_clients,
            workers,
            os.fspath(audit_file),
            pipes,
        )
        self._calls = Calls(self._core, call_threads)
        _open_servers.add(self)

    @property
    def url(self) -> str:
        """The server's URL.

        Raises
        ------
        Error
            ``closed``.
        """
        return self._core.url("")

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return not self._core.is_open

    @property
    def calls(self) -> Calls:
        """The functions that clients call: `Calls.add` adds one."""
        return self._calls

    def publish(
        self, name: str, what: Buffer | str | os.PathLike[str], *, writable: bool = False
    ) -> Publication:
        """Publish a buffer, or a regular file, under a name. Nothing is copied.

        Parameters
        ----------
        name : str
            The name: up to 1024 bytes of UTF-8, with slashes.
        what : object with the buffer protocol, array of a device, or path
            A C-contiguous buffer of any shape and format: clients read, and with `writable` write,
            this very memory. Without the buffer protocol: an array with the CUDA array interface,
            or with DLPack. What was enqueued on the array's stream is waited for. A file is read
            when clients ask.
        writable : bool
            Lets clients write the buffer.

        Returns
        -------
        Publication
            It keeps the buffer. Keep it: the name is withdrawn when it goes.

        Raises
        ------
        TypeError
            No buffer and no path, or a read-only buffer that is to be `writable`.
        ValueError, BufferError
            Those of `Region.read_into`.
        Error
            ``already_exists``, ``bad_name``, ``closed``, ``no_such_name`` (the file),
            ``not_supported`` (no regular file; a file that is to be `writable`),
            ``invalid_argument``.
        """
        if isinstance(what, str | os.PathLike):
            if writable:
                raise ValueError("a file can not be published writable: publish its directory")
            return Publication(self._core.publish_file(name, os.fspath(what)), name)
        return Publication(self._core.publish(name, what, writable), name)

    def allocate(
        self,
        name: str,
        shape: int | tuple[int, ...],
        dtype: object = "u1",
        *,
        writable: bool = True,
    ) -> Publication:
        """Allocate zeroed memory that processes of this machine map, and publish it.

        Parameters
        ----------
        name : str
            The name.
        shape : int or tuple of int
            The shape, in items; the bytes, without a type.
        dtype : NumPy type, optional
            The type of an item. Types other than "u1" need NumPy.
        writable : bool
            Lets clients write it.

        Returns
        -------
        Publication
            `Publication.array` and `Publication.memoryview` are the memory.

        Raises
        ------
        ValueError
            A negative number in the shape, or memory of no bytes.
        Error
            Those of `publish`; ``no_memory``, ``no_shared_memory``.
        """
        dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(each < 0 for each in dimensions):
            raise ValueError(f"a shape has no negative number: {dimensions}")
        size = math.prod(dimensions) * _item_size(dtype)
        if size == 0:
            raise ValueError("memory of no bytes can not be allocated")
        return Publication(self._core.allocate(name, size, writable), name, dimensions, dtype)

    def publish_directory(
        self,
        directory: str | os.PathLike[str],
        prefix: str = "",
        *,
        writable: bool = False,
        quota: int | None = None,
    ) -> Publication:
        """Publish the files of a directory, and of the directories below: a store.

        Parameters
        ----------
        directory : path
            The directory. Symbolic links in it are not followed.
        prefix : str
            The first part of the names: "data" makes "data/a.bin" of a.bin.
        writable : bool
            Lets clients create, replace, append to, rename and remove files.
        quota : int, optional
            The bytes of all files together may not grow beyond this.

        Raises
        ------
        Error
            ``already_exists``, ``bad_name``, ``no_such_name``, ``permission_denied``,
            ``not_supported`` (not a directory), ``busy`` (another server writes it).
        """
        core = self._core.publish_store(os.fspath(directory), prefix, writable, quota, False)
        return Publication(core, prefix)

    def allocate_directory(
        self, prefix: str = "", *, quota: int, within: str | os.PathLike[str] = ""
    ) -> Publication:
        """Publish a new, writable store in this machine's memory. It goes with the publication.

        Parameters
        ----------
        prefix : str
            The first part of the names.
        quota : int
            The bytes of all files together may not grow beyond this.
        within : path
            A tmpfs that has the files; ``/dev/shm`` without it.

        Raises
        ------
        Error
            Those of `publish_directory`; ``not_supported`` (no tmpfs), ``no_space``.
        """
        return Publication(
            self._core.publish_store(os.fspath(within), prefix, True, quota, True), prefix
        )

    def list(self) -> builtins.list[Entry]:
        """Return the published names, in order."""
        return [Entry(*each) for each in self._core.list()]

    def url_of(self, name: str) -> str:
        """Return the URL of a name, which is percent-encoded, "::" of the name too."""
        server = self._core.url("")
        return server + self._core.url(name)[len(server) :].replace("::", "%3A%3A")

    def invite(self, name: str) -> str:
        """Return a code by which one client of another user gets a token: ``ucxio login``.

        Raises
        ------
        Error
            ``not_supported`` (no TLS), ``bad_name``.
        """
        return self._core.invite(name)

    def publish_address(self, file: str | os.PathLike[str]) -> None:
        """Write the server's address into a file: ``ucx+file:///path`` then reaches it.

        Raises
        ------
        Error
            ``not_supported`` (a server without UCX), ``already_exists``, ``permission_denied``.
        """
        self._core.publish_address(os.fspath(file))

    @property
    def statistics(self) -> ServerStatistics:
        """Counters."""
        return ServerStatistics(*self._core.statistics())

    def close(self) -> None:
        """Withdraw every name and disconnect the clients. Idempotent.

        Raises
        ------
        BufferError
            A memoryview or an array of published memory exists. The server stays open.
        """
        self._core.close()

    def __repr__(self) -> str:
        return "<ucxio.Server, closed>" if self.closed else f"<ucxio.Server {self.url}>"


def _item_size(dtype: object) -> int:
    if dtype == "u1":
        return 1
    import numpy

    return int(numpy.dtype(cast(Any, dtype)).itemsize)


@atexit.register
def _end() -> None:
    """Have no thread of a server run when the process's static objects go."""
    if _core.is_forked_child():
        return
    try:
        for each in list(_open_servers):
            with contextlib.suppress(OSError):
                each._core.end()
    finally:
        _core.end(2.0)
