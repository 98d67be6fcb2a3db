"""Memory of other programs by UCX's keys, by the names of UCX-Py.

    from ucxio.ucp._libs import ucx_api

    context = ucx_api.UCXContext()
    memory = ucx_api.UCXMemoryHandle.map(context, bytearray(4096))
    key = bytes(memory.pack_rkey())  # to be sent, with the address of the memory and the worker

    # In another process:
    worker = ucx_api.UCXWorker(ucx_api.UCXContext())
    endpoint = ucx_api.UCXEndpoint.create_from_worker_address(worker, address)
    rkey = endpoint.unpack_rkey(ucx_api.PackedRemoteKey.from_buffer(key))
    file = ucx_api.UCXIO(base, 4096, rkey)

Programs of UCX-Py change ``from ucp._libs import ucx_api`` to this. UCX alone moves the bytes, so
the other process may be one without ucxio. **Both sides have to trust each other**: who has a key
may reach more than the memory it was made for. `docs/how-to/coming-from-ucx-py.md` of the
repository has the differences.
"""

from __future__ import annotations

from ... import _core
from .. import get_ucx_version
from ..address import UCXAddress
from .packed_remote_key import PackedRemoteKey
from .ucx_context import Feature, UCXContext
from .ucx_endpoint import UCXEndpoint
from .ucx_io import UCXIO
from .ucx_memory_handle import UCXMemoryHandle
from .ucx_object import UCXObject
from .ucx_request import UCXRequest
from .ucx_rkey import UCXRkey
from .ucx_rma import RemoteMemory
from .ucx_worker import UCXWorker

__all__ = [
    "UCXIO",
    "Feature",
    "PackedRemoteKey",
    "RemoteMemory",
    "UCXAddress",
    "UCXContext",
    "UCXEndpoint",
    "UCXMemoryHandle",
    "UCXObject",
    "UCXRequest",
    "UCXRkey",
    "UCXWorker",
    "get_current_options",
    "get_ucx_version",
]


def get_current_options() -> dict[str, str]:
    """Return UCX's configuration, as a context would have it now."""
    return dict(_core.configuration())
