"""URLs, paths and entries of servers, as fsspec has them."""

from __future__ import annotations

import ipaddress
from typing import Any

from fsspec.utils import stringify_path

from . import _core
from .client import Client
from .entry import Entry

__all__ = [
    "beginnings",
    "children",
    "details",
    "directory",
    "has_store_above",
    "join",
    "parent",
    "schemes",
    "split",
    "strip",
]

schemes = ("ucxs", "ucx", "ucx+tcp", "ucx+unix", "ucx+file")
beginnings = tuple(f"{each}://" for each in schemes)


class PathOfServer(str):
    """A path that came from a URL. fsspec gives it to file systems of other servers, too."""

    __slots__ = ("server",)
    server: str

    def __new__(cls, path: str, server: str) -> PathOfServer:
        made = super().__new__(cls, path)
        made.server = server
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.server

    # fsspec fills patterns of names to write by it.
    def replace(self, *arguments: Any) -> PathOfServer:
        return PathOfServer(super().replace(*arguments), self.server)


def strip(path: Any, server: str | None = None) -> Any:
    """Return the path of a URL or path, or those of a list.

    Without a server, the path of a URL keeps that of the URL. With one, another is a ValueError.
    """
    if isinstance(path, list):
        return [strip(each, server) for each in path]
    text = stringify_path(path)
    if isinstance(text, PathOfServer):
        found, name = text.server, str(text)
    elif text.startswith(beginnings):
        found, name = split(text)
    else:
        return text.strip("/")
    if server is None:
        return PathOfServer(name.strip("/"), found)
    if found != server:
        raise ValueError(f"{join(found, name)}: this is the file system of {server}")
    return name.strip("/")


def parent(path: Any) -> str:
    """Return the directory above a path or URL. It is of the same server."""
    name = strip(path)
    above: str = name.rpartition("/")[0]
    return PathOfServer(above, name.server) if isinstance(name, PathOfServer) else above


def join(server: str, name: str) -> str:
    """Return a URL that fsspec does not cut: it takes "::" as the end of one."""
    url = _core.join_url(server, name)
    return server + url[len(server) :].replace("::", "%3A%3A")


def split(url: str) -> tuple[str, str]:
    """Return the server of a URL and the name, with an IPv6 address that fsspec can pass."""
    # They are characters of patterns, and of names.
    text = url.replace("?", "%3F").replace("#", "%23")
    server, name = _core.split_url(_whole(text))
    begin, _, rest = server.partition("://")
    host, closed, port = rest.partition("]")
    if host.startswith("[") and closed:
        address, percent, zone = host[1:].partition("%")
        groups = ipaddress.IPv6Address(address).exploded.split(":")
        spelled = ":".join(f"{int(each, 16):x}" for each in groups)
        server = f"{begin}://[{spelled}{percent}{zone}]{port}"
    return server, name


def _whole(url: str) -> str:
    """Return a URL, unless fsspec has cut it within an IPv6 address."""
    host = url.partition("://")[2]
    if host.startswith("[") and "]" not in host:
        raise ValueError(
            f'{url}: fsspec cuts URLs at "::". Write all eight numbers of the IPv6 address: '
            "[0:0:0:0:0:0:0:1] for [::1], [fe80:0:0:0:0:0:0:7] for [fe80::7]"
        )
    return url


def details(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "size": 0 if entry.is_directory else entry.size,
        "type": "directory" if entry.is_directory else "file",
        "mtime": None if entry.modified_ns is None else entry.modified_ns / 1e9,
        "access": entry.access,
        "generation": entry.generation,
        "is_memory": entry.type == "memory",
    }


def directory(path: str) -> dict[str, Any]:
    """Return what there is to tell of a directory that no store has."""
    return {
        "name": path,
        "size": 0,
        "type": "directory",
        "mtime": None,
        "access": "read",
        "generation": 0,
        "is_memory": False,
    }


def children(client: Client, path: str) -> list[dict[str, Any]]:
    """Return what all names of the server have directly below a path."""
    begin = f"{path}/" if path else ""
    found: dict[str, dict[str, Any]] = {}
    for each in client.list():
        if each.name.startswith(begin):
            first, slash, _ = each.name[len(begin) :].partition("/")
            name = begin + first
            if slash:
                found.setdefault(name, directory(name))
            else:
                found[name] = details(each)
    return list(found.values())


def has_store_above(client: Client, path: str) -> bool:
    """Return whether a store has one of the directories above: then it has those below."""
    above = parent(path)
    while above:
        if client.exists(above):
            return True
        above = parent(above)
    try:
        client.list_directory("")
    except FileNotFoundError:
        return False
    return True
