"""Messages between processes, by the names of UCX-Py's first bindings, of 2018 and 2019.

    import ucxio.ucp.early as ucp  # before: import ucp_py as ucp

    async def greet(ep):
        await ep.send_obj("hello", 5)
        ucp.destroy_ep(ep)
        ucp.stop_listener()

    ucp.init()
    asyncio.run(ucp.start_listener(greet, is_coroutine=True))
    ucp.fin()

New programs use `ucxio.ucp`. Both processes use this module. A listener binds the loopback
interface unless it is told another address. One thread at a time may call the module.
`docs/how-to/coming-from-ucx-py.md` of the repository has all differences.
"""

from __future__ import annotations

import atexit
import gc
import os
import socket
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ... import _core
from .. import get_address
from .._context import Context
from ..exceptions import UCXUnreachable, failure_of, translated
from ._cuda import set_device
from ._endpoint import ucp_py_ep
from ._listener import Listener
from ._message import ucp_msg
from ._region import buffer_region
from ._transfer import CommFuture, ucp_comm_request

__all__ = [
    "CommFuture",
    "buffer_region",
    "destroy_ep",
    "fin",
    "get_endpoint",
    "get_listener_port",
    "get_obj_from_msg",
    "init",
    "progress",
    "set_cuda_dev",
    "start_listener",
    "start_server",
    "stop_listener",
    "stop_server",
    "ucp_comm_request",
    "ucp_msg",
    "ucp_py_ep",
]

_usual_port = 13337
_peer_timeout = 60.0
# How long closing an endpoint may take, and what was sent may take to go out at the end.
_close_timeout = 5.0
_last_words = 1.0

_ctx: Context | None = None
_listener: Listener | None = None
_endpoints: weakref.WeakSet[ucp_py_ep] = weakref.WeakSet()


def _context() -> Context:
    if _ctx is None:
        raise RuntimeError("call init() first")
    return _ctx


def init() -> int:
    """Make the context, which all other calls need. Return 0.

    Raises
    ------
    RuntimeError
        There is one already: `fin` comes first.
    UCXConfigError
        A variable ``UCX_...`` of the environment has a wrong value.
    """
    global _ctx
    if _ctx is not None:
        raise RuntimeError("init() was called before: call fin() first")
    limit = float(os.environ.get("UCXPY_CONNECT_TIMEOUT", 5))
    _ctx = Context({}, False, limit, _peer_timeout, _close_timeout)
    return 0


def fin() -> int:
    """Close the listener and all endpoints, and drop the context. Return 0. Idempotent.

    What was sent goes out, within a second. Transfers that have not ended raise UCXCanceled.
    """
    global _ctx
    context, _ctx = _ctx, None
    if context is None:
        return 0
    _stop_listening()
    gc.collect()
    if not _core.is_forked_child():
        context.core.settle(_last_words)
        for each in list(_endpoints):
            each._abort()
    _endpoints.clear()
    return 0


def _end() -> None:
    """Let what was sent go out, at the end of the process."""
    if _ctx is not None and not _core.is_forked_child():
        gc.collect()
        _ctx.core.settle(_last_words)


atexit.register(_end)


def _stop_listening() -> None:
    global _listener
    listener, _listener = _listener, None
    if listener is not None:
        listener.close()


def start_listener(
    py_func: Callable[[ucp_py_ep], Awaitable[object] | object],
    listener_port: int = -1,
    is_coroutine: bool = False,
    *,
    ip_address: str | None = None,
) -> Coroutine[Any, Any, None] | int:
    """Accept peers, until `stop_listener`.

    Parameters
    ----------
    py_func : function or coroutine function
        Gets the `ucp_py_ep` of each peer. In an event loop its exceptions go to the loop's handler,
        else to the logger ``ucx``.
    listener_port : int
        The port: 13337 by default. With 0 the system chooses one: `get_listener_port`.
    is_coroutine : bool
        `py_func` is a coroutine function.
    ip_address : str, optional
        The address on which it listens, ``"0.0.0.0"`` for all. Without it: that of
        `ucxio.ucp.get_address`, which is loopback unless ``UCXPY_IFNAME`` names an interface.
        **All who can connect are accepted.**

    Returns
    -------
    coroutine or int
        With `is_coroutine`: what is to be awaited. It ends by `stop_listener`. Else 0: then calls
        of `progress`, and those that wait, call `py_func`.

    Raises
    ------
    RuntimeError
        `init` was not called, or there is a listener already.
    UCXError
        The port is in use, or the address is not of this machine.
    """
    global _listener
    context = _context()
    if _listener is not None:
        raise RuntimeError("there is a listener already: call stop_listener() first")
    port = _usual_port if listener_port == -1 else listener_port
    with translated("start_listener"):
        core = context.core.listen(ip_address or get_address(), port)
    _listener = Listener(core, context, py_func, is_coroutine, _endpoints.add)
    return _listener.serve() if is_coroutine else 0


def start_server(
    py_func: Callable[[ucp_py_ep], Awaitable[object] | object],
    server_port: int = -1,
    is_coroutine: bool = False,
    *,
    ip_address: str | None = None,
) -> Coroutine[Any, Any, None] | int:
    """Accept peers, until `stop_server`: the older name of `start_listener`."""
    return start_listener(py_func, server_port, is_coroutine, ip_address=ip_address)


def stop_listener() -> None:
    """Stop listening. Endpoints live on. Idempotent."""
    _stop_listening()


def stop_server() -> None:
    """Stop listening: the older name of `stop_listener`."""
    _stop_listening()


def get_listener_port() -> int:
    """Return the port of the listener. The first bindings had no such call.

    Raises
    ------
    RuntimeError
        There is no listener.
    """
    if _listener is None:
        raise RuntimeError("there is no listener")
    return _listener.port


def get_endpoint(peer_ip: str | bytes, peer_port: int) -> ucp_py_ep:
    """Connect to a listener, and wait until it has accepted. Progress is made meanwhile.

    Parameters
    ----------
    peer_ip : str or bytes
        An IPv4 address, or the name of a host.
    peer_port : int
        The listener's port.

    Raises
    ------
    RuntimeError
        `init` was not called.
    UCXNotConnected, UCXUnreachable, UCXError
        No listener answers.
    TimeoutError
        It does not answer within ``UCXPY_CONNECT_TIMEOUT`` seconds, or 5.
    """
    context = _context()
    name = peer_ip.decode() if isinstance(peer_ip, bytes) else peer_ip
    try:
        host = socket.gethostbyname(name)
    except (OSError, UnicodeError) as failed:  # a name that is none is UnicodeError
        raise UCXUnreachable(f"<get_endpoint>: no address of {name!r}: {failed}") from failed
    with translated("get_endpoint"):
        core = context.core.connect_to(host, peer_port)
        context.drive_until(lambda: core.state != "connecting")
        failure = core.failure
    if failure is not None:
        raise failure_of(failure, "get_endpoint") from failure
    made = ucp_py_ep(core, context)
    _endpoints.add(made)
    return made


def destroy_ep(ucp_ep: ucp_py_ep) -> int:
    """Close an endpoint. The peer receives what was sent before. Return 0. Idempotent.

    It waits for the peer, for 5 s at most. Receives that have not ended raise UCXCanceled.
    """
    return ucp_ep.close()


def progress() -> None:
    """Make a round of progress, and have functions called for peers that have connected."""
    _context().progress()


def set_cuda_dev(dev: int) -> int:
    """Choose the CUDA device for `buffer_region.alloc_cuda`, by its number. Return 0.

    Raises
    ------
    UCXError
        There is no CUDA driver, or no such device.
    """
    set_device(dev)
    return 0


def get_obj_from_msg(msg: ucp_msg) -> Any:
    """Return the object of a message that was received.

    Returns
    -------
    str, bytes, or the buffer
        Text where it was sent as text, else bytes; the buffer that `recv_obj` was given, if it is
        writable.

    Raises
    ------
    ValueError
        Nothing was received, into memory of a device, or what came as text is no UTF-8.
    """
    return msg.get_obj()
