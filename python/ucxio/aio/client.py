"""A connection to a server, in an event loop."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Literal, TypeVar

from .. import _core
from .._buffer import Buffer
from .._client_facts import ClientFacts, DirectoryListing
from .._core import LoopClient, LoopRegion
from ..calls import CallSignature, Deadline, Listing
from ..entry import Access, Entry
from ..errors import Error, ErrorCode
from ._closing import AsyncClosing
from ._driver import Driver
from .region import Region

__all__ = ["Client", "connect"]

# The questions that a call has at the server at once: the server answers 256 of a client.
_at_once = 64

T = TypeVar("T")
Mode = Literal["replace", "exclusive", "append", "overwrite"]


class Client(ClientFacts, AsyncClosing):
    """A connection of its own to one server, for one event loop: `ucxio.Client`, awaited.

    `connect` makes it. Any number of tasks may use it at once.

    Notes
    -----
    Each method may raise the errors of its namesake of `ucxio.Client`, and RuntimeError in another
    event loop. A call that is cancelled raises CancelledError when it has ended. What a cancelled
    change has done is not known.
    """

    __slots__ = ("__weakref__", "_driver")

    _shown = "ucxio.aio.Client"

    _core: LoopClient

    def __init__(self, core: LoopClient, url: str, driver: Driver) -> None:
        """Wrap a connection. Use `connect` instead."""
        super().__init__(core, url)
        self._driver = driver

    def _checked(self) -> LoopClient:
        """Return the extension's client, for a caller in the loop of the connection."""
        self._driver.check()
        return self._core

    async def list(self, *, timeout: float | None = None) -> builtins.list[Entry]:
        """Return all published names, in order, without the files of stores."""
        found = await self._driver.finish(self._checked().list(timeout))
        return [Entry(*each) for each in found]

    async def list_directory(
        self, directory: str = "", *, timeout: float | None = None
    ) -> DirectoryListing:
        """Return the files and directories directly in a directory of a store."""
        started = self._checked().list_directory(directory, timeout)
        entries, unserved = await self._driver.finish(started)
        found = DirectoryListing(Entry(*each) for each in entries)
        found.unserved = unserved
        return found

    async def stat(self, name: str, *, timeout: float | None = None) -> Entry:
        """Return what the server tells of a name."""
        return Entry(*await self._driver.finish(self._checked().stat(name, timeout)))

    async def exists(self, name: str, *, timeout: float | None = None) -> bool:
        """Return whether the server has a name, a file or a directory."""
        try:
            await self.stat(name, timeout=timeout)
        except FileNotFoundError:
            return False
        return True

    def _region(self, core: LoopRegion, name: str) -> Region:
        return Region(core, self._url, name, self._driver)

    async def open(
        self, name: str, access: Access = "read", *, timeout: float | None = None
    ) -> Region:
        """Open a name to read and write it at offsets (`ucxio.Client.open`)."""
        core = await self._driver.finish(self._checked().open(name, access, timeout))
        return self._region(core, name)

    async def create(
        self,
        name: str,
        mode: Mode = "replace",
        *,
        readable: bool = False,
        timeout: float | None = None,
    ) -> Region:
        """Open a file of a writable store to be written (`ucxio.Client.create`).

        A new file has no name until `Region.commit`, and is thrown away without it.
        """
        started = self._checked().create(name, mode, readable, timeout)
        return self._region(await self._driver.finish(started), name)

    async def open_many(
        self, names: Iterable[str], access: Access = "read", *, timeout: float | None = None
    ) -> builtins.list[Region | Exception]:
        """Open many names, with a round trip for each 64. Returns an outcome for each, in order.

        An exception is returned, not raised.
        """
        core = self._checked()
        outcomes: builtins.list[Region | Exception] = []
        for some in _parts(list(names)):
            opened = await self._driver.finish_all(
                [core.open(each, access, timeout) for each in some]
            )
            outcomes += [
                each if isinstance(each, Exception) else self._region(each, name)
                for name, each in zip(some, opened, strict=True)
            ]
        return outcomes

    async def read_many(
        self, names: Iterable[str], max_size: int = 16 << 20, *, timeout: float | None = None
    ) -> builtins.list[bytes | Exception]:
        """Return the contents of many short files, with two round trips for each 64.

        An outcome for each name, in order: the whole file, or an exception.
        ``message_truncated`` means a file of more than `max_size` bytes.
        """
        outcomes: builtins.list[bytes | Exception] = []
        for some in _parts(list(names)):
            opened = await self.open_many(some, timeout=timeout)
            cores = [
                each._core
                for each in opened
                if not isinstance(each, Exception) and each.size <= max_size
            ]
            started = [each.read(0, each.size, timeout, False) for each in cores]
            found = iter(await self._driver.finish_all(started))
            for each in opened:
                if isinstance(each, Exception):
                    outcomes.append(each)
                elif each.size > max_size:
                    outcomes.append(_too_long(each, max_size))
                else:
                    outcomes.append(next(found))
            for core in cores:
                core.close()
        return outcomes

    async def write_many(
        self,
        files: Mapping[str, Buffer] | Iterable[tuple[str, Buffer]],
        mode: Literal["replace", "exclusive"] = "replace",
        *,
        timeout: float | None = None,
    ) -> builtins.list[Exception | None]:
        """Write many short files of stores, each whole or not at all.

        An outcome for each file, in order: None, or an exception. With three round trips for
        each 64.

        Raises
        ------
        TypeError, ValueError
            Those of `ucxio.Region.write_from`: nothing is written.
        """
        self._driver.check()
        pairs = list(files.items() if isinstance(files, Mapping) else files)
        for _, buffer in pairs:
            _core.check_buffer(buffer)
        outcomes: builtins.list[Exception | None] = []
        for some in _parts(pairs):
            outcomes += await self._write_some(some, mode, timeout)
        return outcomes

    async def _write_some(
        self, files: Sequence[tuple[str, Buffer]], mode: str, timeout: float | None
    ) -> builtins.list[Exception | None]:
        core, finish_all = self._core, self._driver.finish_all
        made = await finish_all([core.create(name, mode, False, timeout) for name, _ in files])
        going = {index: each for index, each in enumerate(made) if not isinstance(each, Exception)}
        outcomes = [each if isinstance(each, Exception) else None for each in made]

        def take(found: Sequence[object]) -> None:
            for index, outcome in zip(list(going), found, strict=True):
                if isinstance(outcome, Exception):
                    outcomes[index] = outcome
                    going.pop(index).close()

        written: builtins.list[_core.Operation[int]] = []
        try:
            for index, each in going.items():
                written.append(each.write_from(files[index][1], 0, False, timeout))
        except BaseException:
            await finish_all(written)  # so that their buffers are free
            raise
        take(await finish_all(written))
        committed = [each.commit(False, True, timeout) for each in going.values()]
        take(await finish_all(committed))
        for each in going.values():
            each.close()
        return outcomes

    async def remove(self, name: str, *, timeout: float | None = None) -> None:
        """Remove a file, or an empty directory, of a writable store."""
        await self._driver.finish(self._checked().remove(name, timeout))

    async def rename(self, name: str, new_name: str, *, timeout: float | None = None) -> None:
        """Rename a file or directory within a writable store. Missing directories are made."""
        await self._driver.finish(self._checked().rename(name, new_name, timeout))

    async def make_directory(self, name: str, *, timeout: float | None = None) -> None:
        """Make a directory in a writable store, and those above it that are missing."""
        await self._driver.finish(self._checked().make_directory(name, timeout))

    async def resize(self, name: str, size: int, *, timeout: float | None = None) -> None:
        """Make a file of a writable store `size` bytes long. Added bytes are zero."""
        await self._driver.finish(self._checked().resize(name, size, timeout))

    async def call(
        self,
        name: str,
        /,
        *arguments: object,
        timeout: float | None = None,
        signature: str | None = None,
        records: Iterable[type] = (),
    ) -> Any:
        """Call a function that the server's program serves (`ucxio.Client.call`).

        A cancelled call is given up: the server is told. The function may have run.
        """
        core, deadline, classes = self._checked(), Deadline(timeout), tuple(records)
        form = self._functions.form(name, signature, classes)
        if form is None:
            form = self._functions.form(name, await self._signature_of(name, deadline), classes)
            assert form is not None
        try:
            return await self._driver.finish(core.call(form, arguments, deadline.left()))
        except Error as failed:
            self._functions.forget(name, failed)
            raise

    async def _signature_of(self, name: str, deadline: Deadline) -> str:
        listing = Listing()
        while not listing.is_whole and listing.last.encode() < name.encode():
            part = self._checked().signatures(listing.last, deadline.left())
            listing.add(await self._driver.finish(part))
        self._functions.learn(listing.found)
        return listing.signature_of(name)

    async def signatures(self, *, timeout: float | None = None) -> builtins.list[CallSignature]:
        """Return the functions that the server serves and lets this client call, by name."""
        deadline, listing = Deadline(timeout), Listing()
        while not listing.is_whole:
            part = self._checked().signatures(listing.last, deadline.left())
            listing.add(await self._driver.finish(part))
        return listing.found

    async def close(self) -> None:
        """Close the connection, for every region of it. Idempotent.

        A server that does not answer is waited for, for 5 s at most.
        """
        if self._driver.is_over:
            return
        core = self._checked()
        self._driver.tell_end(None, None)
        try:
            if core.is_open:
                with contextlib.suppress(Error):  # it is closed all the same
                    await self._driver.finish(core.close())
        finally:
            self._driver.close()


async def connect(
    url: str,
    *,
    timeout: float | None = None,
    connect_timeout: float | None = None,
    transports: Sequence[str] = (),
    token_file: str | PathLike[str] = "",
    configuration: Mapping[str, str] | None = None,
    on_closed: Callable[[], Awaitable[object] | None] | None = None,
) -> Client:
    """Connect to a server. The parameters are those of `ucxio.Client`.

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
    on_closed : function or coroutine function, optional
        Called once, without arguments, when the connection is lost, or the server closes it. Its
        exceptions go to the exception handler of the loop.

    Raises
    ------
    Error
        Those of `ucxio.Client`.
    RuntimeError
        No event loop runs.

    Notes
    -----
    By ``ucxs://`` the bytes go by TLS, also on loopback. UCX and the tokens are looked up on a
    thread of the loop's executor.
    """
    # A thread of the executor would not be there.
    _core.refuse_forked_child()
    given = dict(configuration or {})
    worker = await asyncio.to_thread(
        _core.LoopWorker,
        url,
        list(transports),
        fspath(token_file),
        connect_timeout,
        timeout,
        given,
    )
    driver = Driver(worker)
    try:
        core = await driver.finish(worker.connect(url, None))
    except BaseException:
        driver.close()
        raise
    if on_closed is not None:
        driver.tell_end(core, on_closed)
    return Client(core, url, driver)


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Return the items in parts that a server answers at once."""
    return (items[begin : begin + _at_once] for begin in range(0, len(items), _at_once))


def _too_long(region: Region, max_size: int) -> Error:
    code = ErrorCode.message_truncated
    text = f'"{region.name}": {region.size} bytes, which is more than {max_size}'
    return Error(_core.errno_of(code), text, code)
