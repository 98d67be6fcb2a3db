"""A connection to a server."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Literal

from . import _core
from ._buffer import Buffer
from ._client_facts import ClientFacts, DirectoryListing
from ._closing import Closing
from ._core import Client as CoreClient
from .calls import CallSignature, Deadline, Listing
from .entry import Access, Entry
from .errors import Error
from .region import Region

__all__ = ["Client", "DirectoryListing"]


class Client(ClientFacts, Closing):
    """A connection of its own to one server.

    Parameters
    ----------
    url : str
        The server: ``ucxs://host:port``, ``ucx://host:port``, ``ucx+tcp://host:port``,
        ``ucx+unix:///path/x.sock`` or ``ucx+file:///path``. A name in it is ignored.
    timeout : float, optional
        Seconds that each operation may take; 30 without it.
    connect_timeout : float, optional
        Seconds that connecting may take; 5 without it.
    transports : sequence of str
        The transports that UCX may use, as UCX names them. Only for ``ucx://``.
    token_file : path
        The file with tokens for ``ucxs://``; the user's without it.
    configuration : mapping of str to str
        UCX's configuration: keys without the prefix ``UCX_``.

    Raises
    ------
    Error
        ``bad_url``, ``host_not_found``, ``connection_refused``, ``unreachable``, ``timed_out``,
        ``permission_denied`` (no token that the server knows), ``bad_configuration``.

    Notes
    -----
    Any thread may call it. Each method may raise `Error` with one of the codes
    ``connection_reset``, ``closed_by_peer``, ``timed_out``, ``closed``, and in a forked child
    ``forked_child``. It can be pickled by its URL and options, and connects again then.
    """

    __slots__ = ("__weakref__", "_options")

    _core: CoreClient

    def __init__(
        self,
        url: str,
        *,
        timeout: float | None = None,
        connect_timeout: float | None = None,
        transports: Sequence[str] = (),
        token_file: str | PathLike[str] = "",
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self._options = {
            "timeout": timeout,
            "connect_timeout": connect_timeout,
            "transports": list(transports),
            "token_file": fspath(token_file),
            "configuration": dict(configuration or {}),
        }
        core = _core.Client.connect(
            url,
            list(transports),
            fspath(token_file),
            connect_timeout,
            timeout,
            dict(configuration or {}),
        )
        super().__init__(core, url)

    def list(self, *, timeout: float | None = None) -> builtins.list[Entry]:
        """Return all published names, in order, without the files of stores.

        Raises
        ------
        Error
            ``no_memory`` (some million names); the connection's.
        """
        return [Entry(*each) for each in self._core.list(timeout)]

    def list_directory(
        self, directory: str = "", *, timeout: float | None = None
    ) -> DirectoryListing:
        """Return the files and directories directly in a directory of a store.

        Raises
        ------
        Error
            ``no_such_name``, ``not_supported`` (a file), ``permission_denied``.
        """
        entries, unserved = self._core.list_directory(directory, timeout)
        found = DirectoryListing(Entry(*each) for each in entries)
        found.unserved = unserved
        return found

    def stat(self, name: str, *, timeout: float | None = None) -> Entry:
        """Return what the server tells of a name.

        Raises
        ------
        Error
            ``no_such_name``, ``bad_name``.
        """
        return Entry(*self._core.stat(name, timeout))

    def exists(self, name: str, *, timeout: float | None = None) -> bool:
        """Return whether the server has a name, a file or a directory.

        Raises
        ------
        Error
            ``bad_name``; the connection's.
        """
        try:
            self._core.stat(name, timeout)
        except FileNotFoundError:
            return False
        return True

    def open(self, name: str, access: Access = "read", *, timeout: float | None = None) -> Region:
        """Open a name to read and write it at offsets.

        Parameters
        ----------
        name : str
            The published name, or that of a file in a store.
        access : {"read", "write", "read_write"}
            What is to be done.

        Raises
        ------
        Error
            ``no_such_name``, ``permission_denied``, ``bad_name``.
        ValueError
            There is no such access.
        """
        return Region(self._core.open(name, access, timeout), self._url, name)

    def create(
        self,
        name: str,
        mode: Literal["replace", "exclusive", "append", "overwrite"] = "replace",
        *,
        readable: bool = False,
        timeout: float | None = None,
    ) -> Region:
        """Open a file of a writable store to be written.

        A new file has no name until `Region.commit`, and is thrown away without it.

        Parameters
        ----------
        mode : {"replace", "exclusive", "append", "overwrite"}
            A new file, which replaces the present one when it is committed; a new file, whose name
            must be free; the present file, in place, which is made if it is missing; like
            "replace", but a name that was published by itself is opened as it is.
        readable : bool
            The written bytes can be read back.

        Raises
        ------
        Error
            ``no_such_name`` (no store has such names), ``bad_name``, ``permission_denied``,
            ``busy`` (another client writes it), ``already_exists``, ``no_space``.
        ValueError
            There is no such mode.
        """
        return Region(self._core.create(name, mode, readable, timeout), self._url, name)

    def open_many(
        self, names: Iterable[str], access: Access = "read", *, timeout: float | None = None
    ) -> builtins.list[Region | Exception]:
        """Open many names, with a round trip for each 64. Returns an outcome for each, in order.

        Returns
        -------
        list of Region or Error
            Those of `open`; an exception is returned, not raised.
        """
        asked = list(names)
        return [
            each if isinstance(each, Exception) else Region(each, self._url, name)
            for name, each in zip(asked, self._core.open_many(asked, access, timeout), strict=True)
        ]

    def read_many(
        self, names: Iterable[str], max_size: int = 16 << 20, *, timeout: float | None = None
    ) -> builtins.list[bytes | Exception]:
        """Return the contents of many short files, with a round trip for each 64.

        Parameters
        ----------
        max_size : int
            The most bytes that a file may have.

        Returns
        -------
        list of bytes or Error
            The whole files; ``message_truncated`` for a longer one, and the errors of `open`.
        """
        return self._core.read_many(list(names), max_size, timeout)

    def write_many(
        self,
        files: Mapping[str, Buffer] | Iterable[tuple[str, Buffer]],
        mode: Literal["replace", "exclusive"] = "replace",
        *,
        timeout: float | None = None,
    ) -> builtins.list[Exception | None]:
        """Write many short files of stores, each whole or not at all.

        Returns
        -------
        list of None or Error
            None for each file that has its name; else the errors of `create` and `commit`.

        Raises
        ------
        TypeError, ValueError
            Those of `Region.write_from`: nothing is written.
        """
        pairs = files.items() if isinstance(files, Mapping) else files
        return self._core.write_many(pairs, mode, timeout)

    def remove(self, name: str, *, timeout: float | None = None) -> None:
        """Remove a file, or an empty directory, of a writable store.

        Raises
        ------
        Error
            ``no_such_name``, ``permission_denied``, ``busy`` (a client writes it),
            ``already_exists`` (a directory that is not empty).
        """
        self._core.remove(name, timeout)

    def rename(self, name: str, new_name: str, *, timeout: float | None = None) -> None:
        """Rename a file or directory within a writable store. Missing directories are made.

        Raises
        ------
        Error
            Those of `remove`; ``not_supported`` (between stores).
        """
        self._core.rename(name, new_name, timeout)

    def make_directory(self, name: str, *, timeout: float | None = None) -> None:
        """Make a directory in a writable store, and those above it that are missing.

        Raises
        ------
        Error
            ``already_exists``, ``permission_denied``, ``no_space``.
        """
        self._core.make_directory(name, timeout)

    def resize(self, name: str, size: int, *, timeout: float | None = None) -> None:
        """Make a file of a writable store `size` bytes long. Added bytes are zero.

        Raises
        ------
        Error
            ``no_such_name``, ``permission_denied``, ``no_space``, ``busy``.
        """
        self._core.resize(name, size, timeout)

    def call(
        self,
        name: str,
        /,
        *arguments: object,
        timeout: float | None = None,
        signature: str | None = None,
        records: Iterable[type] = (),
    ) -> Any:
        """Call a function that the server's program serves, once, and return its result.

        Parameters
        ----------
        name : str
            The function: "add", or "add/2" for its second version.
        *arguments
            Its arguments. They become the types of its signature, which the server is asked for at
            the first call. For a record an object with its fields, or a dict; for a window a
            buffer, which the function reads or writes until the call has ended.
        timeout : float, optional
            Seconds for the call, and the question for its signature; the client's without it. The
            server is told how much is left.
        signature : str, optional
            The signature, ``(i32,i32)->i32``: the server is not asked, and compares it.
        records : iterable of dataclasses
            The classes of the result's records, by their names. Others become dicts.

        Raises
        ------
        TypeError, ValueError
            The arguments are not those of the signature. Nothing was sent.
        Error
            ``call_failed`` (the function raised; its text, and `Error.cause`), ``no_such_name``,
            ``signature_differs``, ``permission_denied``, ``busy`` (too many calls under way),
            ``no_such_handler`` (the server serves no calls): the function has not run, but for
            ``call_failed``. ``call_outcome_unknown``: the connection was lost; it may have run.
            ``timed_out``: it may have run, or may run.
        """
        deadline, classes = Deadline(timeout), tuple(records)
        form = self._functions.form(name, signature, classes)
        if form is None:
            form = self._functions.form(name, self._signature_of(name, deadline), classes)
            assert form is not None
        try:
            return self._core.call(form, arguments, deadline.left())
        except Error as failed:
            self._functions.forget(name, failed)
            raise

    def _signature_of(self, name: str, deadline: Deadline) -> str:
        listing = Listing()
        while not listing.is_whole and listing.last.encode() < name.encode():
            listing.add(self._core.signatures(listing.last, deadline.left()))
        self._functions.learn(listing.found)
        return listing.signature_of(name)

    def signatures(self, *, timeout: float | None = None) -> builtins.list[CallSignature]:
        """Return the functions that the server serves and lets this client call, by name.

        Raises
        ------
        Error
            ``no_such_handler`` (the server serves no calls), ``protocol_error``; the connection's.
        """
        deadline, listing = Deadline(timeout), Listing()
        while not listing.is_whole:
            listing.add(self._core.signatures(listing.last, deadline.left()))
        return listing.found

    def close(self) -> None:
        """Close the connection, for every region of it. Idempotent."""
        self._core.close()

    def __reduce__(self) -> tuple[object, ...]:
        return _connect, (self._url, self._options)


def _connect(url: str, options: dict[str, object]) -> Client:
    return Client(url, **options)  # type: ignore[arg-type]
