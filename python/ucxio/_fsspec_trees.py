"""Many files and directories that are moved, or removed, by one call of fsspec."""

from __future__ import annotations

import errno
import io
import os
import posixpath
from collections.abc import Iterable, Iterator
from typing import Any

from fsspec.core import has_magic
from fsspec.spec import AbstractFileSystem

from .errors import Error, ErrorCode

__all__ = ["move", "not_below_others", "remove_tree"]


def _error(kind: type[OSError], number: int, path: str) -> OSError:
    return kind(number, os.strerror(number), path)


def move(fs: AbstractFileSystem, old: Any, new: Any, *, recursive: bool) -> None:
    """Rename a file or directory; copy and remove patterns, lists, and names of two stores."""
    if not isinstance(old, str) or not isinstance(new, str):
        return _copy_and_remove(fs, old, new, recursive=recursive)
    name, new_name = fs._strip_protocol(old), fs._strip_protocol(new)
    if name == new_name:
        return None
    if old.endswith("/") or _is_pattern(fs, name):
        return _copy_and_remove(fs, old, new, recursive=recursive)
    if new.endswith("/") or fs.isdir(new_name):
        new_name = f"{new_name}/{name.rpartition('/')[2]}".lstrip("/")
        if name == new_name:
            return None
    try:
        fs.client.rename(name, new_name)
    except io.UnsupportedOperation:  # between stores
        _copy_and_remove(fs, [name], [new_name], recursive=fs.isdir(name))
    return None


def _is_pattern(fs: AbstractFileSystem, name: str) -> bool:
    """Return whether a name stands for others: it is no file itself."""
    return has_magic(name) and not fs.exists(name)


def _copy_and_remove(fs: AbstractFileSystem, old: Any, new: Any, *, recursive: bool) -> None:
    """Copy files and trees, and then remove what was copied. What stays in place is skipped.

    Nothing is changed where a file can not be removed, or one would be lost.
    """
    pairs = _pairs(fs, old, new, recursive)
    moved = {source: target for source, target in pairs.items() if source != target}
    found = {each: fs.info(each) for each in moved}
    directories = {each for each in moved if found[each]["type"] == "directory"}
    if directories and not recursive:
        raise _error(IsADirectoryError, errno.EISDIR, min(directories))
    _check_that_nothing_is_lost(pairs, directories)
    for each in moved.keys() - directories:
        _check_that_it_can_go(found[each])
    for source, target in moved.items():
        fs.cp_file(source, target, autocommit=True)  # what is removed is there, come what may
    client = fs.client
    for source in sorted(moved, reverse=True):
        try:
            client.remove(source)
        except Error as failed:
            if source not in directories or not _stays(failed):
                raise


def _pairs(fs: AbstractFileSystem, old: Any, new: Any, recursive: bool) -> dict[str, str]:
    """Return the paths that files and directories get, by those that they have."""
    into = fs._strip_protocol(new if isinstance(new, str) else list(new))
    if isinstance(old, str) and not isinstance(new, str):
        old = _expanded(fs, [fs._strip_protocol(old)])
    if isinstance(old, str):
        names = _expanded(fs, [fs._strip_protocol(old)])
        if names != [fs._strip_protocol(old)]:  # a pattern
            if not recursive:
                names = [each for each in names if not fs.isdir(each)]
            above = _common(names)
            targets = [f"{into}/{each[len(above) :].lstrip('/')}" for each in names]
        elif not old.endswith("/") and (new.endswith("/") or fs.isdir(into)):
            targets = [f"{into}/{names[0].rpartition('/')[2]}"]
        else:
            targets = [into]
    elif isinstance(new, str):
        names = _expanded(fs, fs._strip_protocol(list(old)))
        targets = [f"{into}/{each.rpartition('/')[2]}" for each in names]
    else:
        names, targets = fs._strip_protocol(list(old)), into
        if len(names) != len(targets):
            raise ValueError("there are not as many new paths as present ones")
    pairs: dict[str, str] = {}
    for source, target in zip(names, fs._strip_protocol(targets), strict=True):
        if pairs.setdefault(source, target) != target:
            raise ValueError(f"{source}: it would get two names")
    if recursive:
        for source, target in list(pairs.items()):
            for each in fs.find(source, withdirs=True):
                pairs.setdefault(each, target + each[len(source) :])
    return pairs


def _expanded(fs: AbstractFileSystem, names: list[str]) -> list[str]:
    found: set[str] = set()
    for name in names:
        those = fs.glob(name) if _is_pattern(fs, name) else [name]
        if not those:
            raise _error(FileNotFoundError, errno.ENOENT, name)
        found.update(those)
    return sorted(found)


def _common(names: list[str]) -> str:
    """Return the directory that has all names, or one of them that is above the others."""
    if len(names) == 1:
        return names[0].rpartition("/")[0]
    return posixpath.commonpath(names) if names else ""


def _above(path: str) -> Iterator[str]:
    """Yield all directories above a path."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _check_that_nothing_is_lost(pairs: dict[str, str], directories: set[str]) -> None:
    taken: dict[str, str] = {}
    for source, target in pairs.items():
        if target in taken:
            raise ValueError(f"{taken[target]} and {source} would both get the name {target}")
        taken[target] = source
        if source == target:
            continue
        if pairs.get(target, target) != target:
            raise ValueError(f"{source}: its new name {target} is that of another one to be moved")
        if not directories.isdisjoint(_above(target)):
            raise ValueError(f"{source}: a directory can not be moved into itself, to {target}")


def _check_that_it_can_go(found: dict[str, Any]) -> None:
    path = found["name"]
    if found["is_memory"]:
        text = f"{path}: memory is published by its server, and can not be moved"
        raise Error(errno.ENOTSUP, text, ErrorCode.not_supported)
    if found["access"] == "read":
        text = f"{path}: it can not be removed, as clients may only read it"
        raise Error(errno.EACCES, text, ErrorCode.permission_denied)


def _stays(failed: Error) -> bool:
    """Return whether it is a store itself, a directory that names of stores make, or not empty."""
    return failed.code in (ErrorCode.bad_name, ErrorCode.no_such_name, ErrorCode.already_exists)


def not_below_others(paths: Iterable[str]) -> list[str]:
    """Return the paths, without those below another one."""
    all_of_them = set(paths)
    return [each for each in sorted(all_of_them) if all_of_them.isdisjoint(_above(each))]


def remove_tree(fs: AbstractFileSystem, path: str, maxdepth: int | None) -> None:
    """Remove a file, or a directory with what is in it down to a depth. Stores stay."""
    found = fs.find(path, maxdepth=maxdepth, withdirs=True, detail=True)
    if not found and path:
        raise _error(FileNotFoundError, errno.ENOENT, path)
    client = fs.client
    for name, each in sorted(found.items(), reverse=True):
        try:
            client.remove(name)
        except FileExistsError:
            if each["type"] != "directory" or maxdepth is None:
                raise
        except Error as failed:
            # A store itself, or a directory that names of stores make.
            is_store = failed.code in (ErrorCode.bad_name, ErrorCode.no_such_name)
            if each["type"] != "directory" or not is_store:
                raise
