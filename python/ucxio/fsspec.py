"""Servers as file systems of fsspec, for programs that take its URLs: pandas, pyarrow, zarr, torch.

    with fsspec.open("ucxs://127.0.0.1:7471/results/table.csv", "rt") as file:
        first = file.readline()

It needs the package `fsspec` (``pip install 'ucxio[fsspec]'``). An installed ucxio registers its
schemes with fsspec, and importing this module does.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NoReturn

import fsspec
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.spec import AbstractFileSystem

from ._compressed import Compressed
from ._connection import connection_to
from ._fsspec_names import (
    beginnings,
    children,
    details,
    directory,
    has_store_above,
    join,
    parent,
    schemes,
    split,
    strip,
)
from ._fsspec_trees import move, not_below_others, remove_tree
from ._fsspec_writes import write_files
from ._ranges import ranges_of, read_slices, read_whole
from .client import Client
from .errors import Error, ErrorCode
from .files import Text, _check_mode, _open_binary
from .region import Region

__all__ = ["UcxFileSystem"]

# What fsspec, and programs for it, give to all file systems.
_options_of_fsspec = {
    "asynchronous",
    "batch_size",
    "block_size",
    "cache_options",
    "cache_type",
    "default_block_size",
    "default_cache_type",
    "listings_expiry_time",
    "loop",
    "max_paths",
    "skip_instance_cache",
    "use_listings_cache",
}
_copied_at_once = 4 << 20
# XXH3-128 of no bytes.
_hash_of_nothing = 0x99AA06D3014798D86001C324468D497F

# What says that a directory can not be listed, and not that the server can not be asked.
_of_a_directory = (FileNotFoundError, PermissionError, NotADirectoryError, io.UnsupportedOperation)


class UcxFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The names of one server as a file system of fsspec.

    fsspec makes it: ``fsspec.open(url)``, ``fsspec.url_to_fs(url)``,
    ``fsspec.filesystem("ucxs", server="ucxs://host:port")``. Paths are names, or their URLs.

    Parameters
    ----------
    server : str
        The server's URL, as for `Client`. fsspec takes it from the URL of a name.
    timeout, connect_timeout, transports, token_file, configuration
        As for `Client`.
    verify : bool
        Compares what is read with checksums of the server.

    Raises
    ------
    Error
        ``bad_url`` (a ValueError): `server` is no URL of a server.
    TypeError
        There is no such option.

    Notes
    -----
    Instances for one server and with the same options share one `Client`. It connects at the first
    call, and anew when the connection was lost. Every method may raise `Error`, an OSError, as
    those of `Client` do, and in a forked child RuntimeError.

    Directories are those of stores. Names that were published by themselves make directories where
    no store has one. Listings are not cached.
    """

    protocol: str | tuple[str, ...] = schemes
    root_marker = ""

    def __init__(
        self,
        server: str,
        *,
        timeout: float | None = None,
        connect_timeout: float | None = None,
        transports: Sequence[str] = (),
        token_file: str | os.PathLike[str] = "",
        configuration: Mapping[str, str] | None = None,
        verify: bool = False,
        **storage_options: Any,
    ) -> None:
        wrong = sorted(storage_options.keys() - _options_of_fsspec)
        if wrong:
            raise TypeError(f"UcxFileSystem has no option {', '.join(wrong)}")
        super().__init__(**storage_options)
        self._server = split(server)[0]
        self.protocol = self._server.partition(":")[0]
        self._verify = verify
        self._connection = connection_to(
            self._server,
            timeout=timeout,
            connect_timeout=connect_timeout,
            transports=tuple(transports),
            token_file=os.fspath(token_file),
            configuration=tuple(sorted((configuration or {}).items())),
        )
        # URLs of other servers are no paths of this one. It keeps no reference to the instance.
        self._strip_protocol = partial(strip, server=self._server)  # type: ignore[method-assign]

    @property
    def client(self) -> Client:
        """The connection, for what fsspec has no call for."""
        return self._connection.client()

    @property
    def fsid(self) -> str:
        """The server's URL."""
        return self._server

    def __repr__(self) -> str:
        return f"<ucxio.fsspec.UcxFileSystem of {self._server}>"

    # URLs and paths

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        return strip(path)

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, str]:
        # A chain's inner path comes with the server as an option.
        return {"server": split(path)[0]} if path.startswith(beginnings) else {}

    @classmethod
    def _parent(cls, path: Any) -> str:
        return parent(path)

    def unstrip_protocol(self, name: str) -> str:
        """Return the URL of a path, which is percent-encoded, "::" too."""
        return join(self._server, self._strip_protocol(name))

    # What there is

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """Return what the server tells of a path.

        Returns
        -------
        dict
            ``name``, ``size`` (bytes), ``type`` ("file" or "directory"), ``mtime`` (seconds since
            1970, or None), ``access``, ``generation``, ``is_memory``.

        Raises
        ------
        FileNotFoundError
            There is no such name.
        """
        path = self._strip_protocol(path)
        client = self.client
        if not path:
            return directory(path)
        try:
            return details(client.stat(path))
        except FileNotFoundError:
            if not children(client, path) or has_store_above(client, path):
                raise
        return directory(path)

    def _type(self, path: str) -> str | None:
        """Return the type of a path, or None if there is no such name, or can be none."""
        try:
            return str(self.info(path)["type"])
        except FileNotFoundError:
            return None
        except Error as failed:
            if failed.code != ErrorCode.bad_name:
                raise
            return None

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Return whether there is such a file or directory.

        Raises
        ------
        Error
            The server could not be asked.
        """
        return self._type(path) is not None

    def isdir(self, path: str) -> bool:
        """Return whether it is a directory. It raises what `exists` does."""
        return self._type(path) == "directory"

    def isfile(self, path: str) -> bool:
        """Return whether it is a file. It raises what `exists` does."""
        return self._type(path) == "file"

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """Return what is directly in a directory, by name: what `info` does, or the paths alone.

        Raises
        ------
        Error
            ``no_such_name`` (FileNotFoundError), ``permission_denied``.
        """
        found = self._list(self._strip_protocol(path))
        return found if detail else [each["name"] for each in found]

    def _list(self, path: str) -> list[dict[str, Any]]:
        client = self.client
        try:
            return [details(each) for each in client.list_directory(path)]
        except FileNotFoundError:
            pass
        except io.UnsupportedOperation:  # a file
            return [self.info(path)]
        if path:
            found = self.info(path)
            if found["type"] == "file":
                return [found]
        return children(client, path)

    def walk(
        self,
        path: str,
        maxdepth: int | None = None,
        topdown: bool = True,
        on_error: Any = "omit",
        **kwargs: Any,
    ) -> Iterator[Any]:
        """Go through a directory and those below, as `os.walk` does.

        Parameters
        ----------
        on_error : {"omit", "raise"} or callable
            What is done about a directory that can not be listed. An error of the server or of the
            connection is raised in any case.
        """

        def told(failed: OSError) -> None:
            if on_error == "raise" or not isinstance(failed, _of_a_directory):
                raise failed
            if callable(on_error):
                on_error(failed)

        yield from super().walk(path, maxdepth, topdown, told, **kwargs)

    def created(self, path: str) -> NoReturn:
        """Raise NotImplementedError: no server tells when a file was made."""
        raise NotImplementedError("no server tells when a file was made")

    def modified(self, path: str) -> datetime:
        """Return the time of the last change, in UTC.

        Raises
        ------
        NotImplementedError
            The server does not know it, as for memory.
        """
        path = self._strip_protocol(path)
        found = self.client.stat(path).modified if path else None
        if found is None:
            raise NotImplementedError(f"{path!r}: the server does not know when it was changed")
        return found

    def checksum(self, path: str) -> int:
        """Return the hash of a file's content, XXH3-128. The server reads the file.

        Raises
        ------
        Error
            ``not_supported`` (memory).
        """
        with self._open_region(self._strip_protocol(path)) as region:
            return int(region.digest()[0], 16) if region.size else _hash_of_nothing

    # Reading

    def _open_region(self, path: str) -> Region:
        try:
            return self.client.open(path)
        except io.UnsupportedOperation as failed:
            self._refuse_directory(path, failed)
            raise

    def _refuse_directory(self, path: str, failed: BaseException | None = None) -> None:
        if self.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from failed

    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return the bytes of a file, or those of a slice.

        Raises
        ------
        Error
            Those of `Client.open` and `Region.read`.
        IsADirectoryError
            It is a directory.
        """
        with self._open_region(self._strip_protocol(path)) as region:
            first, last, _ = slice(start, end).indices(region.size)
            return region.read(first, max(last - first, 0), verify=self._verify)

    def cat(
        self,
        path: Any,
        recursive: bool = False,
        on_error: str = "raise",
        *,
        start: int | None = None,
        end: int | None = None,
    ) -> Any:
        """Return the bytes of files. Many short ones take a round trip for each 64.

        Parameters
        ----------
        path : str or list of str
            Paths, which may be patterns.
        recursive : bool
            All files of directories.
        on_error : {"raise", "omit", "return"}
            What is done about a file that can not be read.
        start, end : int, optional
            A slice of each file, as those of Python.

        Returns
        -------
        bytes or dict of str to bytes
            The bytes of one path; else those of each, by path.
        """
        if on_error not in ("raise", "omit", "return"):
            raise ValueError(f"{on_error!r} is no on_error: raise, omit, return")
        paths = self.expand_path(path)
        if isinstance(path, str) and not recursive and paths == [self._strip_protocol(path)]:
            return self.cat_file(paths[0], start, end)
        if recursive:
            paths = sorted({each for above in paths for each in self.find(above)})
        found: dict[str, bytes | Exception] = {}
        if start is None and end is None:
            read = read_whole(self.client, paths, verify=self._verify)
        else:
            slices = [(start, end)] * len(paths)
            read = read_slices(self.client, paths, slices, verify=self._verify)
        for each, got in zip(paths, self._explained(paths, read), strict=True):
            if isinstance(got, Exception) and on_error == "raise":
                raise got
            if not isinstance(got, Exception) or on_error == "return":
                found[each] = got
        return found

    def cat_ranges(
        self,
        paths: Sequence[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[bytes | Exception]:
        """Return the bytes of many slices. All short ones of a file are read in one operation.

        Parameters
        ----------
        paths : sequence of str
            The file of each slice.
        starts, ends : sequence of int or None, or one for all
            The slices, as those of Python: negative numbers count from the end.
        on_error : {"return", "raise"}
            What is done about a slice that can not be read.
        """
        if max_gap is not None:
            raise NotImplementedError("max_gap: the server reads each slice by itself")
        if on_error not in ("return", "raise"):
            raise ValueError(f"{on_error!r} is no on_error: return, raise")
        if isinstance(paths, str):
            raise TypeError("a list of paths is needed")
        names = [self._strip_protocol(each) for each in paths]
        slices = ranges_of(starts, ends, len(names))
        read = read_slices(self.client, names, slices, verify=self._verify)
        found = self._explained(names, read)
        failed = next((each for each in found if isinstance(each, Exception)), None)
        if failed is not None and on_error == "raise":
            raise failed
        return found

    def _explained(
        self, paths: Sequence[str], outcomes: list[bytes | Exception]
    ) -> list[bytes | Exception]:
        """Return the outcomes, with errors that say which paths are directories."""
        for place, (path, got) in enumerate(zip(paths, outcomes, strict=True)):
            try:
                if isinstance(got, io.UnsupportedOperation):
                    self._refuse_directory(path, got)
            except OSError as why:
                outcomes[place] = why
        return outcomes

    # Writing

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | str | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        cache_type: str | None = None,
        size: int | None = None,
    ) -> Any:
        """Open a file for bytes. There is no cache but its buffer."""
        buffering = block_size if isinstance(block_size, int) and block_size > 1 else -1
        try:
            file = _open_binary(
                path, mode, buffering, self.client, verify=self._verify, is_deferred=not autocommit
            )
        except io.UnsupportedOperation as failed:
            self._refuse_directory(path, failed)
            raise
        # Programs for fsspec do not close what they read.
        file.raw._warns = mode != "rb"
        return file

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | str | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        autocommit: bool | None = None,
        cache_type: str | None = None,
        size: int | None = None,
    ) -> Any:
        """Open a file, as `ucxio.open` does.

        Leaving a ``with`` block by an exception throws a new file away. In a transaction a new file
        gets its name at the end of it.

        Parameters
        ----------
        path : str
            The path, or its URL.
        mode : str
            Those of `ucxio.open`.
        block_size : int, optional
            The bytes of the buffer; 1 MiB without it.
        compression : str, optional
            A codec that fsspec knows; "infer" takes it from the name.
        encoding, errors, newline : str, optional
            As for `ucxio.open`.
        autocommit : bool, optional
            Whether a new file gets its name at `close`, and not by `commit`.
        cache_options, cache_type, size
            Accepted, and ignored: nothing is cached.

        Raises
        ------
        Error
            Those of `ucxio.open`.
        IsADirectoryError
            It is a directory.
        """
        path = self._strip_protocol(path)
        bytes_mode, is_text = _check_mode(mode)
        if not is_text and (encoding is not None or errors is not None or newline is not None):
            raise ValueError("binary mode doesn't take an encoding, errors or newline argument")
        commits = not self._intrans if autocommit is None else autocommit
        file = self._open(path, bytes_mode, block_size, commits, cache_options)
        below = file
        try:
            if compression is not None:
                codec = get_compression(path, compression)
                if codec is not None:
                    file = Compressed(compr[codec](file, mode=mode[0]), file)
            if is_text:
                file = Text(file, encoding or "utf-8", errors, newline)
                file.mode = mode  # type: ignore[misc]
        except BaseException:
            below.discard()
            raise
        if self._intrans and not commits and bytes_mode[0] != "r":
            self.transaction.files.append(file)
        return file

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write a whole file.

        Parameters
        ----------
        value : object with the buffer protocol
            The bytes.
        mode : {"overwrite", "create"}
            Replaces the file that is there, or raises FileExistsError.

        Raises
        ------
        Error
            Those of `Client.write_many`; ``not_supported``: published memory has another size.
        """
        write_files(self, {self._strip_protocol(path): value}, mode)

    def pipe(self, path: Any, value: Any = None, *, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write a whole file, or many: short ones take a round trip for each 2 MiB or 256.

        Parameters
        ----------
        path : str or dict of str to bytes
            The path of `value`, or the content of each path. Each file is written whole or not at
            all. If one fails, the others may have been written.
        """
        if isinstance(path, str):
            self.pipe_file(path, value, mode)
        elif isinstance(path, dict):
            write_files(self, {self._strip_protocol(name): path[name] for name in path}, mode)
        else:
            raise ValueError("path must be str or dict")

    def touch(self, path: str, truncate: bool = True, **kwargs: Any) -> None:
        """Make an empty file, in place of one that is there. Published memory can not be it.

        Parameters
        ----------
        truncate : bool
            With False, a file that is there raises NotImplementedError: its time can not be set.
        """
        if truncate:
            return self.pipe_file(path, b"")
        try:
            return self.pipe_file(path, b"", "create")
        except FileExistsError as failed:
            raise NotImplementedError(f"{path}: the time of a file can not be set") from failed

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Make a directory of a writable store, and those above.

        Parameters
        ----------
        create_parents : bool
            With False, the directory above has to be there.

        Raises
        ------
        Error
            ``already_exists`` (FileExistsError), ``permission_denied``.
        """
        path = self._strip_protocol(path)
        above = self._parent(path)
        if not create_parents and not self.isdir(above):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), above)
        try:
            self.client.make_directory(path)
        except ValueError as failed:  # a store itself, or no name
            if self.isdir(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from failed
            raise

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a directory, and those above. With `exist_ok` it may be there."""
        try:
            self.mkdir(path)
        except OSError:
            if not exist_ok or not self.isdir(path):
                raise

    def rmdir(self, path: str) -> None:
        """Remove an empty directory.

        Raises
        ------
        NotADirectoryError
            It is a file.
        Error
            ``already_exists`` (FileExistsError: it is not empty), ``no_such_name``.
        """
        path = self._strip_protocol(path)
        if self.info(path)["type"] != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        self.client.remove(path)

    def _rm(self, path: str) -> None:
        """Remove a file."""
        path = self._strip_protocol(path)
        self._refuse_directory(path)
        self.client.remove(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove files; directories with all that is in them if it is `recursive`. Stores stay.

        Parameters
        ----------
        path : str or list of str
            Paths, which may be patterns.
        maxdepth : int, optional
            What is further down stays, and the directories above it.

        Raises
        ------
        IsADirectoryError
            It is a directory, and `recursive` is False.
        Error
            Those of `Client.remove`.
        """
        paths = self.expand_path(path)
        if not recursive:
            for each in paths:
                self._rm(each)
            return
        # What is further down goes first, as those above end before they come to it.
        for each in not_below_others(paths) if maxdepth is None else reversed(paths):
            remove_tree(self, each, maxdepth)

    def cp_file(
        self, path1: str, path2: str, *, autocommit: bool | None = None, **kwargs: Any
    ) -> None:
        """Copy a file, by way of this process. Of a directory it makes an empty one."""
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        with (
            self.open(path1) as source,
            self.open(path2, "wb", autocommit=autocommit) as copy,
        ):
            shutil.copyfileobj(source, copy, _copied_at_once)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Rename a file, or a directory with all that is in it.

        Patterns, lists, and names of two stores are copied, and then removed. Nothing is changed
        where a file can not be removed, or would be overwritten by another one that is moved.
        In a transaction, too, it is done at once.

        Parameters
        ----------
        path1 : str or list of str
            The present path.
        path2 : str or list of str
            The new one. In a directory that is there, or that is named with a slash at its end, the
            file keeps its name.
        recursive : bool
            Patterns and lists move directories, too.

        Raises
        ------
        NotImplementedError
            `maxdepth` is given.
        ValueError
            Two files would get one name, or that of another one that is moved; a directory would
            be moved into itself. There are not as many new paths as present ones.
        IsADirectoryError
            A list has a directory, and `recursive` is False.
        Error
            Those of `Client.rename`; ``not_supported`` (published memory), ``permission_denied``.
        """
        if maxdepth is not None:
            raise NotImplementedError("maxdepth: what is further down would have no place")
        move(self, path1, path2, recursive=recursive)


for _each in schemes:
    fsspec.register_implementation(_each, UcxFileSystem, clobber=True)
