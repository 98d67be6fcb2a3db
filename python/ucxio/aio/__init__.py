"""Servers and their memory and files, awaited in an event loop of asyncio.

    import ucxio.aio

    async with await ucxio.aio.connect("ucxs://127.0.0.1:7471") as client:
        region = await client.open("weights")
        header = await region.read(0, 64)

The methods have the names of those that wait, in `ucxio`, and are coroutines. They raise the same
errors. No thread of the library calls Python: the loop watches one descriptor for each connection.
An object belongs to the loop in which it was made.

A call that is cancelled raises CancelledError when UCX has let go of its buffer, and not before.
So `asyncio.timeout` bounds a call, and its buffer is the program's again.
"""

from __future__ import annotations

from .calls import Calls
from .client import Client, connect
from .files import RemoteFile, open
from .pipes import Pipe, open_pipe
from .region import Region

__all__ = ["Calls", "Client", "Pipe", "Region", "RemoteFile", "connect", "open", "open_pipe"]
