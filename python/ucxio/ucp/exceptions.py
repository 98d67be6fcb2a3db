"""The exceptions of `ucxio.ucp`, by the names of UCX-Py's.

The cause of each is the `ucxio.Error` that the library raised, where there is one. UCX-Py raises
UCXError for failures that have a class of their own here, so these classes are UCXErrors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ..errors import Error, ErrorCode

__all__ = [
    "UCXBaseException",
    "UCXCanceled",
    "UCXCloseError",
    "UCXConfigError",
    "UCXConnectionReset",
    "UCXError",
    "UCXMsgTruncated",
    "UCXNotConnected",
    "UCXUnreachable",
    "UCXWarning",
]


class UCXBaseException(Exception):
    """What all exceptions of this module are."""


class UCXError(UCXBaseException):
    """A failed operation, or a call that does not fit the state of its object."""


class UCXConfigError(UCXError):
    """UCX does not know an option, or its value."""


class UCXWarning(UserWarning):
    """For programs that name it: the package warns of nothing by it."""


class UCXCloseError(UCXBaseException):
    """The endpoint was closed, by this side or by the peer."""


class UCXCanceled(UCXBaseException):
    """The endpoint ended, or the operation was given up, before a message came."""


class UCXConnectionReset(UCXError):
    """The peer has gone without a goodbye."""


class UCXMsgTruncated(UCXError):
    """The message has not the length of the buffer."""


class UCXNotConnected(UCXError):
    """No listener accepts at the address."""


class UCXUnreachable(UCXError):
    """No transport, or no route, leads to the peer."""


_by_code: dict[ErrorCode, type[Exception]] = {
    ErrorCode.bad_configuration: UCXConfigError,
    ErrorCode.canceled: UCXCanceled,
    ErrorCode.closed: UCXCanceled,
    ErrorCode.connection_refused: UCXNotConnected,
    ErrorCode.connection_reset: UCXConnectionReset,
    ErrorCode.closed_by_peer: UCXConnectionReset,
    ErrorCode.host_not_found: UCXUnreachable,
    ErrorCode.message_truncated: UCXMsgTruncated,
    ErrorCode.timed_out: TimeoutError,
    ErrorCode.unreachable: UCXUnreachable,
}
_ends = (ErrorCode.connection_reset, ErrorCode.closed_by_peer)


def failure_of(failed: Error, doing: str) -> Exception:
    """Return the exception for a failed operation. A forked child gets the library's."""
    if failed.code == ErrorCode.forked_child:
        raise failed
    return _by_code.get(failed.code, UCXError)(f"<{doing}>: {failed.strerror}")


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise the exceptions of this module for those of the library."""
    try:
        yield
    except Error as failed:
        raise failure_of(failed, doing) from failed


def failure_of_receive(failed: Error, doing: str) -> Exception:
    """Return the exception for a failed receive, which the end of its endpoint cancels."""
    if failed.code in _ends:
        return UCXCanceled(f"<{doing}>: {failed.strerror}")
    return failure_of(failed, doing)


def end_of(failed: Error, endpoint: str) -> Exception:
    """Return the exception for the use of an endpoint that has ended."""
    if failed.code in (ErrorCode.closed_by_peer, ErrorCode.closed, ErrorCode.canceled):
        return UCXCloseError(f"Endpoint {endpoint} closed: {failed.strerror}")
    return _by_code.get(failed.code, UCXError)(f"Endpoint {endpoint} error: {failed.strerror}")
