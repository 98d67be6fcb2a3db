"""The exceptions of ucxio.

Every failed operation raises `Error`. It derives from `OSError` and has an `errno`. The exception
is also of the built-in class that programs catch: a name that is not there raises an exception that
is both an `Error` and a `FileNotFoundError`.
"""

from __future__ import annotations

import copyreg
import enum
import errno as numbers
import io
from typing import Any

__all__ = ["Error", "ErrorCode"]


class ErrorCode(enum.StrEnum):
    """The errors of the library. `docs/reference/errors.md` has cause and remedy of each."""

    invalid_argument = "invalid_argument"
    out_of_range = "out_of_range"
    no_space = "no_space"
    permission_denied = "permission_denied"
    no_such_region = "no_such_region"
    stale_region = "stale_region"
    revoked = "revoked"
    bad_descriptor = "bad_descriptor"
    bad_address = "bad_address"
    version_mismatch = "version_mismatch"
    protocol_error = "protocol_error"
    bad_configuration = "bad_configuration"
    feature_disabled = "feature_disabled"
    not_supported = "not_supported"
    host_not_found = "host_not_found"
    unreachable = "unreachable"
    connection_refused = "connection_refused"
    connection_reset = "connection_reset"
    address_in_use = "address_in_use"
    timed_out = "timed_out"
    canceled = "canceled"
    closed = "closed"
    would_deadlock = "would_deadlock"
    busy = "busy"
    no_memory = "no_memory"
    no_shared_memory = "no_shared_memory"
    no_lockable_memory = "no_lockable_memory"
    too_many_files = "too_many_files"
    message_truncated = "message_truncated"
    io_error = "io_error"
    unexpected = "unexpected"
    bad_url = "bad_url"
    bad_name = "bad_name"
    no_such_name = "no_such_name"
    already_exists = "already_exists"
    content_changed = "content_changed"
    not_secure = "not_secure"
    closed_by_peer = "closed_by_peer"
    no_rdma = "no_rdma"
    would_block = "would_block"
    header_too_long = "header_too_long"
    no_such_handler = "no_such_handler"
    message_refused = "message_refused"
    message_withdrawn = "message_withdrawn"
    empty_buffer = "empty_buffer"
    buffer_too_small = "buffer_too_small"
    bad_pool = "bad_pool"
    pooled_buffer = "pooled_buffer"
    checksum_mismatch = "checksum_mismatch"
    broken_pipe = "broken_pipe"
    too_many_store_files = "too_many_store_files"
    too_many_client_files = "too_many_client_files"
    too_many_writers = "too_many_writers"
    stale_store = "stale_store"
    forked_child = "forked_child"
    signature_differs = "signature_differs"
    call_failed = "call_failed"
    call_outcome_unknown = "call_outcome_unknown"


class _Kind(type):
    """The class of `Error` and of what derives from it here, which all show as `Error`."""

    _own_name: str


# By the name that it shows, pickle would find another class.
copyreg.pickle(_Kind, lambda kind: vars(kind).get("_own_name", kind.__qualname__))


class Error(OSError, metaclass=_Kind):
    """A failed operation.

    Parameters
    ----------
    errno : int
        The number of the system's error that comes nearest. It is never 0.
    strerror : str
        What was tried, on what, and what went wrong.
    code : ErrorCode
        The library's error.
    ucx_status : int, optional
        The status by which UCX failed, below 0. None where the failure was not UCX's.
    cause : ErrorCode or int, optional
        Of ``call_failed``: the code of what the function raised at the peer, an error of the
        library or a number of errno. None where that had no code.

    Notes
    -----
    Making an `Error` returns an instance of a class that also derives from the built-in exception
    which fits: `FileNotFoundError`, `PermissionError`, `FileExistsError`, `TimeoutError`,
    `ConnectionResetError`, `ConnectionRefusedError`, `BrokenPipeError`, `BlockingIOError`; from
    `ValueError` where an argument is wrong or an object is closed; from `io.UnsupportedOperation`
    where something is not supported; from `RuntimeError` in a forked child.
    """

    code: ErrorCode
    ucx_status: int | None
    cause: ErrorCode | int | None

    def __new__(
        cls,
        errno: int,
        strerror: str,
        code: ErrorCode = ErrorCode.io_error,
        ucx_status: int | None = None,
        cause: ErrorCode | int | None = None,
    ) -> Error:
        """Make an instance that is of the fitting built-in class, too."""
        made = super().__new__(_class_of(errno, code) if cls is Error else cls, errno, strerror)
        assert isinstance(made, Error)
        return made

    def __init__(
        self,
        errno: int,
        strerror: str,
        code: ErrorCode = ErrorCode.io_error,
        ucx_status: int | None = None,
        cause: ErrorCode | int | None = None,
    ) -> None:
        super().__init__(errno, strerror)
        self.code = ErrorCode(code)
        self.ucx_status = ucx_status
        self.cause = ErrorCode(cause) if isinstance(cause, str) else cause

    def __reduce__(self) -> tuple[Any, ...]:
        return Error, (self.errno, self.strerror, self.code, self.ucx_status, self.cause)


class _NotFound(Error, FileNotFoundError):
    pass


class _Denied(Error, PermissionError):
    pass


class _Exists(Error, FileExistsError):
    pass


class _TimedOut(Error, TimeoutError):
    pass


class _Reset(Error, ConnectionResetError):
    pass


class _Refused(Error, ConnectionRefusedError):
    pass


class _BrokenPipe(Error, BrokenPipeError):
    pass


class _Blocking(Error, BlockingIOError):
    pass


class _Unsupported(Error, io.UnsupportedOperation):
    pass


class _BadValue(Error, ValueError):
    pass


class _Forked(Error, RuntimeError):
    pass


_codes = {str(each): each for each in ErrorCode}
_by_code: dict[ErrorCode, type[Error]] = {
    ErrorCode.forked_child: _Forked,
    ErrorCode.closed: _BadValue,
}
_by_number: dict[int, type[Error]] = {
    numbers.ENOENT: _NotFound,
    numbers.EACCES: _Denied,
    numbers.EPERM: _Denied,
    numbers.EEXIST: _Exists,
    numbers.ETIMEDOUT: _TimedOut,
    numbers.ECONNRESET: _Reset,
    numbers.ECONNREFUSED: _Refused,
    numbers.EPIPE: _BrokenPipe,
    numbers.EAGAIN: _Blocking,
    numbers.ENOTSUP: _Unsupported,
    numbers.EINVAL: _BadValue,
}
Error._own_name = "Error"
for _each in {*_by_code.values(), *_by_number.values()}:
    _each._own_name = _each.__name__
    _each.__name__ = _each.__qualname__ = "Error"


def _class_of(number: int, code: ErrorCode) -> type[Error]:
    return _by_code.get(code) or _by_number.get(number) or Error


def _error_of(
    code: str, number: int, text: str, ucx_status: int | None, cause: str | int | None = None
) -> Error:
    """Return the exception of a failure of the library's.

    A peer may tell of an error that only a newer library has: it becomes ``io_error``, and as a
    cause None.
    """
    # The library's texts end with the sentence of the code: the system's would say it again.
    known = _codes.get(cause) if isinstance(cause, str) else cause
    return Error(number, text, _codes.get(code, ErrorCode.io_error), ucx_status, known)
