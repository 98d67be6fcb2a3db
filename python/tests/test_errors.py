from __future__ import annotations

import copy
import errno
import io
import pickle

import pytest

import ucxio
from ucxio import _core, errors
from ucxio.errors import _error_of


def test_codes_are_the_librarys() -> None:
    assert [each.value for each in ucxio.ErrorCode] == _core.error_codes()


@pytest.mark.parametrize(
    ("code", "number", "kind"),
    [
        ("no_such_name", errno.ENOENT, FileNotFoundError),
        ("permission_denied", errno.EACCES, PermissionError),
        ("not_secure", errno.EPERM, PermissionError),
        ("already_exists", errno.EEXIST, FileExistsError),
        ("timed_out", errno.ETIMEDOUT, TimeoutError),
        ("connection_reset", errno.ECONNRESET, ConnectionResetError),
        ("connection_refused", errno.ECONNREFUSED, ConnectionRefusedError),
        ("broken_pipe", errno.EPIPE, BrokenPipeError),
        ("busy", errno.EAGAIN, BlockingIOError),
        ("bad_url", errno.EINVAL, ValueError),
        ("closed", errno.EBADF, ValueError),
        ("not_supported", errno.ENOTSUP, io.UnsupportedOperation),
        ("forked_child", errno.ENOTSUP, RuntimeError),
        ("no_space", errno.ENOSPC, OSError),
    ],
)
def test_error_is_of_the_class_that_programs_catch(
    code: str, number: int, kind: type[Exception]
) -> None:
    made = _error_of(code, number, "what failed", None)
    assert isinstance(made, ucxio.Error)
    assert isinstance(made, kind)
    assert isinstance(made, OSError)
    assert (made.code, made.errno, made.strerror) == (code, number, "what failed")
    assert type(made).__name__ == "Error"


def test_error_survives_pickling() -> None:
    made = _error_of("connection_reset", errno.ECONNRESET, "lost", -25)
    back = pickle.loads(pickle.dumps(made))
    assert isinstance(back, ConnectionResetError)
    assert (back.code, back.errno, back.ucx_status, str(back)) == (
        "connection_reset",
        errno.ECONNRESET,
        -25,
        str(made),
    )


def test_errors_of_newer_peers_are_errors() -> None:
    made = _error_of("unknown", errno.EIO, "what failed", None, "unknown")
    assert (made.code, made.cause, str(made)) == ("io_error", None, "[Errno 5] what failed")
    assert _error_of("call_failed", errno.EIO, "it failed", None, "no_space").cause == "no_space"


class Derived(ucxio.Error):
    pass


def test_class_of_an_error_survives_pickling() -> None:
    # As torch's DataLoader sends the class of what a worker raised.
    kinds = {ucxio.Error, *errors._by_code.values(), *errors._by_number.values()}
    assert len(kinds) > 10
    for kind in (*kinds, Derived):
        assert pickle.loads(pickle.dumps(kind)) is kind
        assert copy.deepcopy(kind) is kind


@pytest.mark.parametrize("code", list(ucxio.ErrorCode))
def test_no_error_of_the_library_has_errno_zero(code: ucxio.ErrorCode) -> None:
    assert _core.errno_of(code) > 0


@pytest.mark.parametrize(
    "url", ["", "nothing", "/a/path", "http://127.0.0.1/x", "ucx://", "ucx://host", "ucx://[::1/x"]
)
def test_wrong_url_is_a_value_error(url: str) -> None:
    with pytest.raises(ucxio.Error) as failed:
        ucxio.open(url)
    assert failed.value.code == ucxio.ErrorCode.bad_url
    assert isinstance(failed.value, ValueError)
    with pytest.raises(ucxio.Error) as failed:
        ucxio.Client(url)
    assert failed.value.code == ucxio.ErrorCode.bad_url


def test_url_without_a_name_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="no name"):
        ucxio.open("ucx+tcp://127.0.0.1:1")
    with pytest.raises(ValueError, match="no name"):
        ucxio.open_region("ucx+tcp://127.0.0.1:1")


def test_dead_server_is_connection_refused(unused_port: int) -> None:
    with pytest.raises(ConnectionRefusedError) as failed:
        ucxio.open(f"ucx+tcp://127.0.0.1:{unused_port}/x")
    assert isinstance(failed.value, ucxio.Error)
    with pytest.raises(ConnectionRefusedError):
        ucxio.Client(f"ucx+tcp://127.0.0.1:{unused_port}")


def test_unix_socket_that_is_not_there_is_connection_refused() -> None:
    with pytest.raises(ConnectionRefusedError):
        ucxio.open("ucx+unix:///nowhere/x.sock/name")
