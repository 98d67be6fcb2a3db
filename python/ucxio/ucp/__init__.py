"""Messages between processes, by the names of UCX-Py.

    from ucxio import ucp

    async def echo(endpoint):
        await endpoint.send_obj(await endpoint.recv_obj())

    listener = ucp.create_listener(echo)
    endpoint = await ucp.create_endpoint(listener.ip, listener.port)

Programs of UCX-Py change ``import ucp`` to this. Both processes use ucxio. A listener binds the
loopback interface unless it is told another address. Messages that were not received are bounded.
`docs/how-to/coming-from-ucx-py.md` of the repository has all differences.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import os
import weakref
from collections.abc import Awaitable, Callable, Mapping

from .. import __version__, _core, ucx_version
from .._buffer import Buffer
from . import exceptions, utils
from ._context import Context
from .address import UCXAddress
from .endpoint import Endpoint
from .exceptions import UCXError
from .listener import Listener

__all__ = [
    "Endpoint",
    "Listener",
    "UCXAddress",
    "__ucx_version__",
    "__version__",
    "continuous_ucx_progress",
    "create_endpoint",
    "create_endpoint_from_worker_address",
    "create_listener",
    "exceptions",
    "fence",
    "flush",
    "get_active_transports",
    "get_address",
    "get_config",
    "get_ucp_context_info",
    "get_ucp_worker",
    "get_ucp_worker_info",
    "get_ucx_address_from_buffer",
    "get_ucx_version",
    "get_worker_address",
    "init",
    "progress",
    "recv",
    "register_am_allocator",
    "reset",
    "utils",
]

__ucx_version__: str = ucx_version()

_ctx: Context | None = None
# How long connections that were dropped may take to close, in seconds, where nothing drives them.
_last_words = 1.0
# How long closing a connection may take.
_close_timeout = 5.0


def _get_ctx() -> Context:
    if _ctx is None:
        init()
    assert _ctx is not None
    return _ctx


def init(
    options: Mapping[str, str] | None = None,
    env_takes_precedence: bool = False,
    blocking_progress_mode: bool | None = None,
    connect_timeout: float | None = None,
    *,
    peer_timeout: float = 60.0,
) -> None:
    """Make the context. Without this call the first one that needs it makes it.

    Parameters
    ----------
    options : mapping of str to str, optional
        UCX's configuration: keys without the prefix ``UCX_``.
    env_takes_precedence : bool
        The variables ``UCX_...`` win over `options`.
    blocking_progress_mode : bool, optional
        Ignored: the event loop watches UCX's descriptor in any case.
    connect_timeout : float, optional
        Seconds that connecting may take: ``UCXPY_CONNECT_TIMEOUT``, or 5, without it.
    peer_timeout : float
        Seconds without progress after which a peer counts as dead, while something waits for it.

    Raises
    ------
    RuntimeError
        There is one already: `reset` comes first.
    UCXConfigError
        UCX does not know a key, or its value.
    """
    global _ctx
    del blocking_progress_mode
    if _ctx is not None:
        raise RuntimeError("UCX is already initiated: call reset() before init()")
    if connect_timeout is None:
        connect_timeout = float(os.environ.get("UCXPY_CONNECT_TIMEOUT", 5))
    _ctx = Context(
        options or {}, env_takes_precedence, connect_timeout, peer_timeout, _close_timeout
    )


def reset() -> None:
    """Drop the context. The next call that needs one makes a new one.

    Raises
    ------
    UCXError
        An endpoint or listener is not closed. The context goes with it.
    """
    global _ctx
    if _ctx is None:
        return
    gc.collect()
    _ctx.core.settle(_last_words)
    still = weakref.ref(_ctx)
    _ctx = None
    gc.collect()
    if still() is not None:
        raise UCXError(
            "Trying to reset UCX but not all Endpoints and/or Listeners are closed(), "
            "or calls of theirs wait"
        )


def _end() -> None:
    """Let what was sent go out, at the end of the process."""
    if _ctx is not None and not _core.is_forked_child():
        gc.collect()
        _ctx.core.settle(_last_words)


atexit.register(_end)


def get_ucx_version() -> tuple[int, ...]:
    """Return the version of UCX: three numbers. It makes no context."""
    return tuple(int(each) for each in ucx_version().split("."))


def get_config() -> dict[str, str]:
    """Return UCX's configuration: that of the context, or that which one would have now."""
    return dict(_core.configuration() if _ctx is None else _ctx.core.configuration())


def get_address(ifname: str | None = None) -> str:
    """Return the IPv4 address on which listeners of this process listen.

    Parameters
    ----------
    ifname : str, optional
        A network interface, whose address is returned. Without it: that of the variable
        ``UCXPY_IFNAME``, else loopback, which other machines do not reach.

    Raises
    ------
    OSError
        There is no such interface.
    RuntimeError
        It has no IPv4 address.
    """
    name = ifname or os.environ.get("UCXPY_IFNAME")
    if not name:
        return "127.0.0.1"
    found = _core.interface_addresses(name)
    if not found:
        raise RuntimeError(f'the network interface "{name}" has no IPv4 address')
    return found[0]


def create_listener(
    callback_func: Callable[[Endpoint], Awaitable[object] | object],
    port: int | None = None,
    endpoint_error_handling: bool = True,
    *,
    ip_address: str | None = None,
    exchange_peer_info_timeout: float | None = None,
) -> Listener:
    """Accept peers. The listener lasts as long as the returned object.

    It accepts while an event loop drives the context. The loop in which it is called does so;
    where none runs yet, `continuous_ucx_progress` in the loop is needed, or another call.

    Parameters
    ----------
    callback_func : function or coroutine function
        Gets the `Endpoint` of each peer. Its exceptions go to the handler of the event loop.
    port : int, optional
        Without it, or with 0, the system chooses one: `Listener.port`.
    endpoint_error_handling : bool
        Ignored: connections to a listener are always watched.
    ip_address : str, optional
        The address on which it listens, ``"0.0.0.0"`` for all. Without it: that of `get_address`,
        which is loopback unless ``UCXPY_IFNAME`` names an interface.
        **All who can connect are accepted.**
    exchange_peer_info_timeout : float, optional
        Ignored, as is that of `create_endpoint`: UCXX has it.

    Raises
    ------
    UCXError
        The port is in use, or the address is not of this machine.
    """
    del endpoint_error_handling, exchange_peer_info_timeout
    return _get_ctx().listen(callback_func, ip_address or get_address(), port or 0)


async def create_endpoint(
    ip_address: str,
    port: int,
    endpoint_error_handling: bool = True,
    *,
    exchange_peer_info_timeout: float | None = None,
) -> Endpoint:
    """Connect to a listener.

    Parameters
    ----------
    ip_address : str
        An IPv4 address, or the name of a host.
    port : int
        The listener's port.
    endpoint_error_handling : bool
        Ignored: connections to a listener are always watched.
    exchange_peer_info_timeout : float, optional
        Ignored: `init` has `connect_timeout`.

    Raises
    ------
    UCXNotConnected, UCXUnreachable, UCXError
        No listener answers.
    TimeoutError
        It does not answer in time: see `init`.
    """
    del endpoint_error_handling, exchange_peer_info_timeout
    return await _get_ctx().connect(ip_address, port)


async def create_endpoint_from_worker_address(
    address: UCXAddress, endpoint_error_handling: bool = True
) -> Endpoint:
    """Connect to a worker. Returns before the peer has answered.

    Its messages need tags that both sides know: ``force_tag=True``.

    Parameters
    ----------
    address : UCXAddress
        What `get_worker_address` of the peer returned.
    endpoint_error_handling : bool
        Without it UCX does not watch the connection, and may use shared memory.

    Raises
    ------
    UCXError
        The address is damaged.
    UCXUnreachable
        No transport leads to it.
    """
    return _get_ctx().connect_by_address(address, endpoint_error_handling)


def get_worker_address() -> UCXAddress:
    """Return the address of this process's worker, by which others connect without a listener."""
    return UCXAddress(_get_ctx().core.address())


def get_ucx_address_from_buffer(buffer: bytes | bytearray | memoryview) -> UCXAddress:
    """Return the address that a buffer has: what a peer sent of its `get_worker_address`."""
    return UCXAddress.from_buffer(buffer)


async def recv(buffer: Buffer, tag: int) -> None:
    """Receive a message of any peer that was sent with ``force_tag=True``.

    Parameters
    ----------
    buffer : object with the buffer protocol, array of a device
        Writable, C-contiguous. The message has to fill it.
    tag : int
        The number that the message was sent with.

    Raises
    ------
    UCXMsgTruncated
        The message is longer, or shorter.
    """
    await _get_ctx().receive(buffer, tag)


def register_am_allocator(allocator: Callable[[int], Buffer], allocator_type: str) -> None:
    """Have `Endpoint.am_recv` make its buffers by a function.

    Parameters
    ----------
    allocator : callable
        Gets the number of bytes, and returns a buffer of so many.
    allocator_type : str
        ``"host"``, where `bytearray` is the default, or ``"cuda"``, for what the peer sent from
        memory of a CUDA device.

    Raises
    ------
    UCXError
        There is no such type.
    """
    if allocator_type not in ("host", "cuda"):
        raise UCXError(f'"{allocator_type}" is no type of allocator')
    _get_ctx().allocators[allocator_type] = allocator


def progress() -> bool:
    """Make a round of progress. Returns whether anything happened."""
    return _get_ctx().progress()


def continuous_ucx_progress(event_loop: asyncio.AbstractEventLoop | None = None) -> None:
    """Have an event loop drive the context. All calls do so for the loop that they run in."""
    context = _get_ctx()
    if event_loop is None:
        with contextlib.suppress(RuntimeError):  # none runs
            context.driver()
    else:
        event_loop.call_soon_threadsafe(_drive, weakref.ref(context))


def _drive(reference: weakref.ref[Context]) -> None:
    context = reference()
    if context is not None:
        context.driver()


async def flush() -> None:
    """Wait until what was started before is visible at every peer."""
    if _ctx is None:
        await asyncio.sleep(0)
    else:
        await _ctx.flush()


def fence() -> None:
    """Order operations: those that are started later take effect after the earlier ones."""
    if _ctx is not None:
        _ctx.core.fence()


def get_ucp_worker() -> int:
    """Return UCX's worker: ``ucp_worker_h``."""
    return _get_ctx().core.handle


def get_ucp_context_info() -> str:
    """Return UCX's description of the context, of many lines."""
    return _get_ctx().core.description()


def get_ucp_worker_info() -> str:
    """Return a description of the worker, of several lines."""
    core = _get_ctx().core
    names = "".join(f"\n#   transport: {each}" for each in core.transports())
    return f"# worker {core.handle:#x}, address of {len(core.address())} bytes{names}\n"


def get_active_transports() -> set[str]:
    """Return the names of the transports that UCX may use."""
    return {each.split("/")[0] for each in _get_ctx().core.transports()}
