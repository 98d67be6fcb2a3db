"""Memory of other programs by UCX's keys, and messages, by the names of UCX-Py.

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

Messages go between programs that have ucxio, as those of `ucxio.ucp` do:

    def accept(conn_request):
        peers.append(ucx_api.UCXEndpoint.create_from_conn_request(worker, conn_request))

    worker = ucx_api.UCXWorker(ucx_api.UCXContext(feature_flags=(ucx_api.Feature.TAG,)))
    listener = ucx_api.UCXListener(worker=worker, port=0, cb_func=accept)
"""

from __future__ import annotations

from ... import _core
from .. import get_ucx_version
from ..address import UCXAddress
from .packed_remote_key import PackedRemoteKey
from .ucx_context import AllocatorType, Feature, UCXContext
from .ucx_endpoint import UCXEndpoint
from .ucx_io import UCXIO
from .ucx_listener import UCXListener
from .ucx_memory_handle import UCXMemoryHandle
from .ucx_messages import (
    am_recv_nb,
    am_send_nbx,
    stream_recv_nb,
    stream_send_nb,
    tag_recv_nb,
    tag_send_nb,
)
from .ucx_object import UCXObject
from .ucx_request import UCXRequest
from .ucx_rkey import UCXRkey
from .ucx_rma import RemoteMemory
from .ucx_worker import UCXWorker

__all__ = [
    "UCXIO",
    "AllocatorType",
    "Feature",
    "PackedRemoteKey",
    "RemoteMemory",
    "UCXAddress",
    "UCXContext",
    "UCXEndpoint",
    "UCXListener",
    "UCXMemoryHandle",
    "UCXObject",
    "UCXRequest",
    "UCXRkey",
    "UCXWorker",
    "am_recv_nb",
    "am_send_nbx",
    "get_current_options",
    "get_ucx_version",
    "stream_recv_nb",
    "stream_send_nb",
    "tag_recv_nb",
    "tag_send_nb",
]


def get_current_options() -> dict[str, str]:
    """Return UCX's configuration, as a context would have it now."""
    return dict(_core.configuration())
