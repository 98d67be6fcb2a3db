"""Functions that other processes call, with typed arguments.

    def add(a: int, b: int) -> int:
        return a + b

    with ucxio.Server() as server:
        server.calls.add("add", add)
        with ucxio.Client(server.url) as client:
            assert client.call("add", 25, 17) == 42

The types ``i8``, ``i16``, ``i32``, ``i64``, ``u8``, ``u16``, ``u32``, ``u64`` and ``f32`` are
annotations for numbers of that size: plain ``int`` is ``i64``, and ``float`` is a double.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from . import _core
from ._call_signatures import (
    CallContext,
    Described,
    describe,
    f32,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from .errors import Error, ErrorCode

__all__ = [
    "CallContext",
    "CallSignature",
    "Calls",
    "f32",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]

# A peer that tells of more functions is not believed, as in the library.
_most_functions = 1 << 16


@dataclass(frozen=True, slots=True)
class CallSignature:
    """A function that a server serves.

    Attributes
    ----------
    name : str
        The name, with its version: "add", "add/2".
    version : int
        The number behind the slash; 1 without one.
    signature : str
        The types: ``(i64,i64)->i64``.
    hash : str
        The hash of the signature.
    documentation : str
        The server's words. They may have any characters.
    """

    name: str
    version: int
    signature: str
    hash: str
    documentation: str


class Served:
    """A function, and how its arguments and its result are read and written."""

    __slots__ = ("form", "function", "takes_context")

    def __init__(
        self, name: str, function: Callable[..., object], signature: str | None, records: Any
    ) -> None:
        if not callable(function):
            raise TypeError(f"a function is needed, not {type(function).__name__}")
        found = (
            describe(function)
            if signature is None
            else Described(signature, {each.__name__: each for each in records}, False)
        )
        self.form = _core.CallForm(name, found.text, found.records)
        self.function = function
        self.takes_context = found.takes_context

    def begin(self, call: _core.Call) -> Any:
        """Return what the function returns."""
        values = call.arguments(self.form)
        if self.takes_context:
            return self.function(CallContext(call.identity, call), *values)
        return self.function(*values)


def tell_failure(call: _core.Call, failed: BaseException) -> None:
    """Answer a call with what its function raised."""
    try:
        text, code, number = _facts_of(failed)
    except BaseException:  # it fails when it is asked
        text, code, number = f"{type(failed).__name__}, which does not tell what it is", "", 0
    # Names of files may have characters that UTF-8 has not.
    call.fail(text.encode("utf-8", "backslashreplace").decode(), code, number)


def _facts_of(failed: BaseException) -> tuple[str, str, int]:
    """Return the text of an exception, its code, and its number of errno; 0 is none."""
    if isinstance(failed, Error):
        return f"{failed.strerror}", str(ErrorCode(failed.code)), 0
    text = "".join(traceback.format_exception_only(failed)).strip()
    number: object = failed.errno if isinstance(failed, OSError) else None
    if isinstance(number, int) and 0 < number < 1 << 31:
        return text, "", number
    return text, "", 0


def text_of(documentation: str | None, function: Callable[..., object]) -> str:
    """Return the words that discovery tells: those given, or the summary of the docstring."""
    if documentation is not None:
        return documentation
    return (inspect.getdoc(function) or "").partition("\n")[0]


class Calls:
    """The functions of a `Server`, by name. `Server.calls` is the one of a server."""

    __slots__ = ("_functions", "_lock", "_queue", "_server", "_threads")

    def __init__(self, server: _core.Server, threads: int) -> None:
        """Wrap a server. Use `Server.calls` instead."""
        self._server = server
        self._threads = threads  # that are to be started
        self._lock = threading.Lock()
        self._functions: list[Served] = []
        self._queue: _core.CallQueue | None = None

    def add(
        self,
        name: str,
        function: Callable[..., object],
        *,
        signature: str | None = None,
        records: Iterable[type] = (),
        documentation: str | None = None,
    ) -> None:
        """Have clients call a function from now on.

        Parameters
        ----------
        name : str
            The name: "add", or "add/2" for its second version.
        function : callable
            It runs on one of the `call_threads` threads of the server, and may wait. Its
            annotations say the types: bool, int, float, str, bytes, list, dict, tuple, dataclasses,
            ``T | None``, and the numbers of `ucxio.calls`. A first parameter `CallContext` gets
            the facts of the call.
        signature : str, optional
            The types, instead of the annotations: ``(array<f64,3>)->nil``.
        records : iterable of dataclasses
            With `signature`: the classes of its records, by their names. Others become dicts.
        documentation : str, optional
            What `Client.signatures` tells; without it the first line of the docstring.

        Raises
        ------
        TypeError
            An annotation is missing or has no wire type; `function` is a coroutine function, for
            which there is `ucxio.aio.Calls`.
        Error
            ``bad_name``, ``already_exists``, ``closed``, ``invalid_argument`` (the signature is
            none, or too long; the documentation is too long), ``not_supported`` (windows).

        Notes
        -----
        What the function raises is ``call_failed`` at the caller, with the text of the exception.
        """
        if inspect.iscoroutinefunction(function):
            raise TypeError("coroutine functions are served by ucxio.aio.Calls")
        served = Served(name, function, signature, records)
        with self._lock:
            if self._queue is None:
                self._queue = _core.CallQueue()
            queue = self._queue
            number = len(self._functions)
            self._functions.append(served)
        words = text_of(documentation, function)
        self._server.add_call(served.form, queue, number, words)
        # The server closes the queue of a function that it has: that ends the threads.
        with self._lock:
            missing, self._threads = self._threads, 0
        for _ in range(missing):
            # A daemon: the server's end ends it, unless a function runs.
            threading.Thread(
                target=_serve, args=(queue, self._functions), name="ucxio calls", daemon=True
            ).start()


def _serve(queue: _core.CallQueue, functions: list[Served]) -> None:
    """Run functions until the queue is closed."""
    while (call := queue.take()) is not None:
        served = functions[call.function]
        try:
            if not call.is_given_up:
                call.answer(served.form, served.begin(call))
        except BaseException as failed:
            # A call that is dropped fails, too.
            with contextlib.suppress(BaseException):
                tell_failure(call, failed)
        del call, served


class Deadline:
    """One time for several questions."""

    __slots__ = ("_end",)

    def __init__(self, timeout: float | None) -> None:
        self._end = None if timeout is None else monotonic() + timeout

    def left(self) -> float | None:
        """Return the seconds that are left; a moment where there are none."""
        return None if self._end is None else max(self._end - monotonic(), 1e-9)


class KnownFunctions:
    """What a client knows of its server's functions."""

    __slots__ = ("_forms", "_signatures")

    def __init__(self) -> None:
        self._signatures: dict[str, str] = {}
        self._forms: dict[tuple[object, ...], _core.CallForm] = {}

    def form(
        self, name: str, signature: str | None, records: Iterable[type]
    ) -> _core.CallForm | None:
        """Return how a function is called. None where its signature is not known."""
        text = self._signatures.get(name) if signature is None else signature
        if text is None:
            return None
        classes = tuple(records)
        key = (name, text, classes)
        made = self._forms.get(key)
        if made is None:
            by_name = {each.__name__: each for each in classes}
            made = self._forms[key] = _core.CallForm(name, text, by_name)
        return made

    def learn(self, found: Iterable[CallSignature]) -> None:
        """Take note of functions."""
        self._signatures.update({each.name: each.signature for each in found})

    def forget(self, name: str, failed: Error) -> None:
        """Drop what a failed call shows to be out of date."""
        if failed.code in (ErrorCode.no_such_name, ErrorCode.signature_differs):
            self._signatures.pop(name, None)


class Listing:
    """The functions of a server, from the parts in which they come."""

    __slots__ = ("found", "is_whole")

    def __init__(self) -> None:
        self.found: list[CallSignature] = []
        self.is_whole = False

    @property
    def last(self) -> str:
        """The name behind which the next part begins."""
        return self.found[-1].name if self.found else ""

    def add(self, part: tuple[list[_core.FunctionFields], bool]) -> None:
        """Take a part.

        Raises
        ------
        Error
            ``protocol_error``: it does not come next, or there are too many functions.
        """
        functions = [CallSignature(*each) for each in part[0]]
        if functions and functions[0].name.encode() <= self.last.encode():
            raise _error(ErrorCode.protocol_error, "the server tells of a function twice")
        self.found += functions
        self.is_whole = part[1]
        if len(self.found) > _most_functions:
            raise _error(ErrorCode.protocol_error, "the server tells of too many functions")

    def signature_of(self, name: str) -> str:
        """Return the signature of a function.

        Raises
        ------
        Error
            ``no_such_name``.
        """
        for each in self.found:
            if each.name == name:
                return each.signature
        raise _error(ErrorCode.no_such_name, f'calling "{name}": the server has no such function')


def _error(code: ErrorCode, text: str) -> Error:
    return Error(_core.errno_of(code), text, code)
