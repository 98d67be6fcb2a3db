"""Memory and files of other processes, by URL, over OpenUCX.

    with ucxio.open("ucxs://127.0.0.1:7471/weights") as file:
        header = file.read(64)

`open` gives the file object of a published name. `Server` publishes; `Client` and `Region` read
and write at offsets, straight from and into buffers. Failed operations raise `Error`, an `OSError`.
"""

from __future__ import annotations

from . import _libucx

_libucx.load()

from . import _core  # noqa: E402

_libucx.refuse_two()

from . import calls  # noqa: E402
from .client import Client, DirectoryListing  # noqa: E402
from .copying import copy  # noqa: E402
from .entry import Entry  # noqa: E402
from .errors import Error, ErrorCode  # noqa: E402
from .files import RemoteFile, open  # noqa: E402
from .pipes import Pipe, open_pipe  # noqa: E402
from .region import Region, open_region  # noqa: E402
from .server import Publication, Server, ServerStatistics  # noqa: E402

__all__ = [
    "Client",
    "DirectoryListing",
    "Entry",
    "Error",
    "ErrorCode",
    "Pipe",
    "Publication",
    "Region",
    "RemoteFile",
    "Server",
    "ServerStatistics",
    "__version__",
    "calls",
    "copy",
    "open",
    "open_pipe",
    "open_region",
    "show_config",
    "ucx_version",
]

__version__: str = _core.version()


def ucx_version() -> str:
    """Return the version of the OpenUCX that the process runs with."""
    return _core.ucx_version()


def show_config() -> None:
    """Print versions, the libucp in use, and UCX's configuration in force.

    Raises
    ------
    Error
        ``bad_configuration``, ``no_memory``; ``forked_child``.
    """
    configuration = _core.configuration()
    print(f"ucxio {__version__}, protocol {_core.protocol_version()}")
    print(f"OpenUCX {ucx_version()}: {', '.join(_libucx.loaded())}")
    for key, value in configuration:
        print(f"UCX_{key}={value}")
