"""Functions of a server that clients call: types, errors, time, ends."""

from __future__ import annotations

import dataclasses
import gc
import math
import os
import pickle
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Process, forked, is_free, soon

import ucxio
from ucxio import _core
from ucxio.calls import CallContext, f32, i8, i32, u8, u64


@dataclasses.dataclass
class Point:
    x: float
    y: float


@dataclasses.dataclass
class Shape:
    name: str
    corners: list[Point]
    weight: f32 | None = None


def add(a: int, b: int) -> int:
    """Add two numbers.

    Not told.
    """
    return a + b


def same(value: Any, annotation: Any) -> Any:
    """Return a function that returns its argument."""

    def function(given):
        seen.append(given)
        return given

    seen: list[Any] = []
    function.__annotations__ = {"given": annotation, "return": annotation}
    return function, seen


values: list[tuple[Any, str, list[Any]]] = [
    (bool, "bool", [True, False]),
    (int, "i64", [0, -1, 2**63 - 1, -(2**63)]),
    (i8, "i8", [127, -128]),
    (i32, "i32", [2**31 - 1, -(2**31)]),
    (u8, "u8", [0, 255]),
    (u64, "u64", [0, 2**64 - 1, 2**63]),
    (float, "f64", [0.5, -0.0, math.inf]),
    (f32, "f32", [0.5, -math.inf]),
    (str, "text", ["", "Grüße", "a\0b"]),
    (bytes, "bytes", [b"", b"\0\xff"]),
    (list[int], "list<i64>", [[], [1, 2, 3]]),
    (list[list[str]], "list<list<text>>", [[["a"], []]]),
    (tuple[int, str], "tuple<i64,text>", [(1, "one")]),
    (dict[str, float], "map<text,f64>", [{}, {"a": 1.0, "b": 2.0}]),
    (dict[i32, bool], "map<i32,bool>", [{-1: True}]),
    (int | None, "optional<i64>", [None, 7]),
    (Point, "Point{x:f64,y:f64}", [Point(1, 2)]),
    (
        Shape,
        "Shape{name:text,corners:list<Point{x:f64,y:f64}>,weight:optional<f32>}",
        [Shape("line", [Point(0, 0), Point(1, 1)], 0.5), Shape("none", [])],
    ),
]


@pytest.mark.parametrize(("annotation", "text", "some"), values, ids=lambda each: str(each)[:20])
def test_values_come_as_they_went(
    local_server: ucxio.Server, annotation: Any, text: str, some: list[Any]
) -> None:
    function, seen = same(None, annotation)
    local_server.calls.add("same", function)
    with ucxio.Client(local_server.url) as client:
        assert [each.signature for each in client.signatures()] == [f"({text})->{text}"]
        for each in some:
            found = client.call("same", each, records=[Point, Shape])
            assert found == each
            assert type(found) is type(each)
            assert seen.pop() == each


def test_functions_are_called_by_each_way(server: ucxio.Server) -> None:
    server.calls.add("add", add)
    server.calls.add("text", lambda: "one", signature="()->text")
    with ucxio.Client(server.url) as client:
        assert client.call("add", 25, 17) == 42
        assert client.call("text") == "one"
        assert client.call("add", 1, 2, signature="(i64,i64)->i64", timeout=60) == 3


def test_arguments_are_what_python_takes_for_them(local_server: ucxio.Server) -> None:
    serve = local_server.calls.add
    serve("sum", lambda each: sum(each), signature="(list<f64>)->f64")
    serve("three", lambda each: each, signature="(array<i32,3>)->array<i32,3>")
    serve("point", lambda each: each, signature="(point{x:f64,y:f64})->point{x:f64,y:f64}")
    serve("bytes", lambda each: each, signature="(bytes)->bytes")
    with ucxio.Client(local_server.url) as client:
        assert client.call("sum", (1, 2)) == 3.0
        assert client.call("sum", numpy.array([1, 2.5])) == 3.5
        assert client.call("three", numpy.arange(3)) == [0, 1, 2]
        assert client.call("point", Point(1, 2)) == {"x": 1.0, "y": 2.0}
        assert client.call("point", {"y": 2, "x": 1}) == {"x": 1.0, "y": 2.0}
        assert client.call("bytes", bytearray(b"some")) == b"some"
        assert client.call("bytes", numpy.zeros(3, "u2")) == bytes(6)


bad_arguments: list[tuple[str, Any, type[Exception], str]] = [
    ("bool", 1, TypeError, "argument 1 of f needs bool, not int"),
    ("i64", 1.5, TypeError, "argument 1 of f needs i64, not float"),
    ("i64", "1", TypeError, "argument 1 of f needs i64, not str"),
    ("i64", 2**63, ValueError, "outside i64"),
    ("u64", 2**64, ValueError, "outside u64"),
    ("u64", -1, ValueError, "outside u64"),
    ("i8", 128, ValueError, "outside i8"),
    ("u8", -1, ValueError, "outside u8"),
    ("f64", "1", TypeError, "needs f64, not str"),
    ("f32", 1e300, ValueError, "outside f32"),
    ("text", b"1", TypeError, "needs text, not bytes"),
    ("text", "\ud800", UnicodeEncodeError, "surrogates"),
    ("bytes", "1", TypeError, "needs bytes, not str"),
    ("bytes", numpy.zeros((4, 4))[:, 1], ValueError, "contiguous"),
    ("list<text>", "abc", TypeError, "needs list, not str"),
    ("list<i64>", {1: 2}, TypeError, "needs list, not dict"),
    ("list<i64>", [1, None], TypeError, "needs i64, not NoneType"),
    ("array<i64,2>", [1], ValueError, "array has 2 elements, not 1"),
    ("tuple<i64,i64>", (1, 2, 3), ValueError, "tuple has 2 elements, not 3"),
    ("map<text,i64>", [("a", 1)], TypeError, "needs map, not list"),
    ("map<text,i64>", {1: 1}, TypeError, "needs text, not int"),
    ("optional<i64>", "", TypeError, "needs i64, not str"),
    ("point{x:f64}", {}, TypeError, "needs point, not dict"),
    ("point{x:f64}", {"y": 1.0}, TypeError, 'dict has no "x"'),
    ("point{x:f64}", {"x": 1.0, "y": 1.0}, TypeError, "needs point, not dict"),
    ("point{x:f64}", 7, TypeError, 'int has no "x"'),
    ("window:w", b"read-only", TypeError, "read-only"),
    ("window:r", 7, TypeError, "buffer"),
]


@pytest.mark.parametrize(
    ("kind", "value", "failure", "text"), bad_arguments, ids=lambda each: str(each)[:20]
)
def test_other_arguments_are_refused_before_they_are_sent(
    local_server: ucxio.Server, kind: str, value: Any, failure: type[Exception], text: str
) -> None:
    local_server.calls.add("add", add)
    with ucxio.Client(local_server.url) as client:
        with pytest.raises(failure, match=text) as failed:
            client.call("f", value, signature=f"({kind})->nil")
        assert not isinstance(failed.value, ucxio.Error)
        assert client.call("add", 1, 2) == 3


def test_number_of_arguments_is_compared(local_server: ucxio.Server) -> None:
    local_server.calls.add("add", add)
    with ucxio.Client(local_server.url) as client:
        with pytest.raises(TypeError, match=r"add takes 2 arguments, not 1: \(i64,i64\)->i64"):
            client.call("add", 1)


def test_functions_without_wire_types_are_refused(local_server: ucxio.Server) -> None:
    def no_annotation(a, b: int) -> int:
        raise AssertionError

    def no_result(a: int):
        raise AssertionError

    def unknown_type(a: int) -> complex:
        raise AssertionError

    def many(*a: int) -> int:
        raise AssertionError

    def keyword(*, a: int) -> int:
        raise AssertionError

    def unknown_name(a: Missing) -> int:  # type: ignore[name-defined]  # noqa: F821
        raise AssertionError

    def other_point(a: Point, b: Other) -> None:
        raise AssertionError

    async def later(a: int) -> int:
        raise AssertionError

    @dataclasses.dataclass
    class Other:
        z: float

    Other.__name__ = "Point"
    other_point.__annotations__ = {"a": Point, "b": Other, "return": None}
    for function, text in [
        (no_annotation, "parameter a has no annotation"),
        (no_result, "result has no annotation"),
        (unknown_type, "no wire type: <class 'complex'>"),
        (many, "has no place"),
        (keyword, "has no place"),
        (unknown_name, "can not be read"),
        (other_point, "two classes have the name Point"),
        (later, "ucxio.aio.Calls"),
        (7, "a function is needed"),
    ]:
        with pytest.raises(TypeError, match=text):
            local_server.calls.add("f", function)  # type: ignore[arg-type]
    for annotation in (list, dict[bytes, int], tuple[int, ...], tuple, int | str, Any):
        with pytest.raises((TypeError, ucxio.Error)):
            local_server.calls.add("f", same(None, annotation)[0])


def test_recursive_records_are_refused(local_server: ucxio.Server) -> None:
    with pytest.raises(TypeError, match="deeper than 16"):
        local_server.calls.add("f", same(None, Tree)[0])


@dataclasses.dataclass
class Tree:
    parts: list[Tree]


def test_names_and_signatures_are_compared(local_server: ucxio.Server) -> None:
    serve = local_server.calls.add
    serve("add", add)
    for name, options, code in [
        ("add", {}, "already_exists"),
        ("1add", {}, "bad_name"),
        ("", {}, "bad_name"),
        ("f", {"signature": "(i32"}, "invalid_argument"),
        ("f", {"signature": "(any)->nil"}, "not_supported"),
        ("f", {"signature": "(window:r)->nil"}, "not_supported"),
        ("f", {"signature": "(buffer)->nil"}, "not_supported"),
        ("f", {"signature": "()->tensor"}, "not_supported"),
        ("f", {"documentation": "x" * 5000}, "invalid_argument"),
    ]:
        with pytest.raises(ucxio.Error) as failed:
            serve(name, add, **options)  # type: ignore[arg-type]
        assert failed.value.code == code
    serve("f", add)  # none of these was added
    with ucxio.Client(local_server.url) as client:
        with pytest.raises(FileNotFoundError, match="none"):
            client.call("none", 1)
        with pytest.raises(ucxio.Error) as failed:
            client.call("add", 1, 2, signature="(i32,i32)->i32")
        assert failed.value.code == "signature_differs"
        assert "(i32,i32)->i32" in str(failed.value)
        assert "(i64,i64)->i64" in str(failed.value)
        assert client.call("add", 1, 2) == 3


def test_discovery_tells_names_types_and_words(local_server: ucxio.Server) -> None:
    local_server.calls.add("add", add)
    local_server.calls.add("add/2", lambda: None, signature="()->nil", documentation="Nothing.")
    with ucxio.Client(local_server.url) as client:
        found = client.signatures(timeout=60)
    assert [(each.name, each.version) for each in found] == [("add", 1), ("add/2", 2)]
    assert [each.documentation for each in found] == ["Add two numbers.", "Nothing."]
    assert len(found[0].hash) == 32


def test_discovery_of_many_functions_has_parts(local_server: ucxio.Server) -> None:
    names = [f"function_{number:04}" for number in range(1000)]
    for each in names:
        local_server.calls.add(each, add, documentation="x" * 100)
    with ucxio.Client(local_server.url) as client:
        assert client.call(names[-1], 1, 2) == 3
        assert [each.name for each in client.signatures()] == names


def test_server_without_functions_serves_no_calls(local_server: ucxio.Server) -> None:
    with ucxio.Client(local_server.url) as client:
        with pytest.raises(ucxio.Error) as failed:
            client.call("add", 1, 2)
        assert failed.value.code == "no_such_handler"


def test_what_a_function_raises_is_told(local_server: ucxio.Server) -> None:
    def fails(how: str) -> int:
        if how == "result":
            return "text"  # type: ignore[return-value]
        if how == "library":
            code = ucxio.ErrorCode.no_space
            raise ucxio.Error(28, "the shelf is full", code)
        if how == "exit":
            raise SystemExit("no end")
        raise {"value": ValueError("Grüße"), "system": FileNotFoundError(2, "not here")}[how]

    local_server.calls.add("fails", fails)
    local_server.calls.add("long", lambda: "x" * (2 << 20), signature="()->text")
    with ucxio.Client(local_server.url) as client:
        for how, text, cause in [
            ("value", "ValueError: Grüße", None),
            ("system", "FileNotFoundError", 2),
            ("library", "the shelf is full", "no_space"),
            ("result", "the result of fails needs i64, not str", None),
            ("exit", "no end", None),
        ]:
            with pytest.raises(ucxio.Error) as failed:
                client.call("fails", how)
            assert (failed.value.code, failed.value.cause) == ("call_failed", cause)
            assert text in str(failed.value)
            assert pickle.loads(pickle.dumps(failed.value)).cause == cause
        with pytest.raises(ucxio.Error) as failed:
            client.call("long")
        assert (failed.value.code, failed.value.cause) == ("call_failed", "no_space")
        with pytest.raises(ucxio.Error) as failed:
            client.call("fails", "x" * (2 << 20))
        assert failed.value.code == "no_space"


class Untold(OSError):
    """An exception that fails when it is asked."""

    def __getattribute__(self, name: str) -> Any:
        if name == "errno":
            raise ValueError("it has no number")
        return super().__getattribute__(name)


def test_odd_exceptions_are_told_and_end_nothing(local_server: ucxio.Server) -> None:
    name = os.fsdecode(b"\xff")
    full = ucxio.ErrorCode.no_space
    odd: list[tuple[BaseException, str, object]] = [
        (ValueError(name), r"ValueError: \udcff", None),
        (FileNotFoundError(2, "not here", name), "not here", 2),
        (ucxio.Error(28, f"no room for {name}", full), r"no room for \udcff", full),
        (OSError("a", "b"), "OSError: [Errno a] b", None),
        (OSError(1 << 40, "a"), "OSError: [Errno 1099511627776] a", None),
        (OSError(-1, "a"), "OSError: [Errno -1] a", None),
        (Untold(2, "a"), "Untold, which does not tell what it is", None),
    ]

    def fails(which: int) -> None:
        raise odd[which][0]

    local_server.calls.add("fails", fails)
    with ucxio.Client(local_server.url) as client:
        for which, (_, text, cause) in enumerate(odd):
            with pytest.raises(ucxio.Error) as failed:
                client.call("fails", which, timeout=60)
            assert (failed.value.code, failed.value.cause) == ("call_failed", cause)
            assert text in str(failed.value)


def test_class_of_a_record_may_refuse_its_values(local_server: ucxio.Server) -> None:
    @dataclasses.dataclass
    class Positive:
        value: int

        def __post_init__(self) -> None:
            if self.value < 0:
                raise ValueError(f"{self.value} is negative")

    local_server.calls.add("f", same(None, Positive)[0])
    with ucxio.Client(local_server.url) as client:
        assert client.call("f", {"value": 1}) == {"value": 1}
        with pytest.raises(ucxio.Error, match="-1 is negative"):
            client.call("f", {"value": -1})


def test_function_knows_its_caller(local_server: ucxio.Server) -> None:
    seen: list[CallContext] = []

    def function(call: CallContext, number: int) -> int:
        seen.append(call)
        assert call.remaining is not None
        assert 0 < call.remaining < 1000
        assert not call.is_given_up
        return number

    local_server.calls.add("f", function)
    with ucxio.Client(local_server.url) as client:
        assert client.signatures()[0].signature == "(i64)->i64"
        assert client.call("f", 7, timeout=100) == 7
    assert seen[0].identity.startswith("owner")
    assert "owner" in repr(seen[0])


class Gate:
    """A function that waits until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.open = threading.Event()
        self.context: CallContext | None = None

    def __call__(self, call: CallContext) -> int:
        self.context = call
        self.entered.release()
        assert self.open.wait(60)
        return 7


def test_deadline_ends_a_call(local_server: ucxio.Server) -> None:
    gate = Gate()
    local_server.calls.add("wait", gate)
    local_server.calls.add("add", add)
    with ucxio.Client(local_server.url) as client:
        with pytest.raises(TimeoutError) as failed:
            client.call("wait", timeout=0.05)
        assert failed.value.code == "timed_out"  # type: ignore[attr-defined]
        assert gate.entered.acquire(timeout=60)
        assert gate.context is not None
        assert soon(lambda: gate.context is not None and gate.context.is_given_up)
        gate.open.set()
        assert client.call("add", 1, 2) == 3
        for wrong in (0, -1, math.nan):
            with pytest.raises((ValueError, TimeoutError)):
                client.call("add", 1, 2, timeout=wrong)


def test_threads_run_functions_at_a_time() -> None:
    together = threading.Barrier(3)
    with ucxio.Server("unix:", call_threads=3) as server:
        server.calls.add("meet", lambda: together.wait(60), signature="()->i64")
        found: list[int] = []
        with ucxio.Client(server.url) as client:
            threads = [
                threading.Thread(target=lambda: found.append(client.call("meet"))) for _ in range(3)
            ]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
    assert sorted(found) == [0, 1, 2]
    with pytest.raises(ValueError, match="call_threads is 0"):
        ucxio.Server("unix:", call_threads=0)


def test_waiting_call_leaves_the_gil_to_others(local_server: ucxio.Server) -> None:
    counted = 0

    def count() -> int:
        nonlocal counted
        for _ in range(1000):
            counted += 1
            time.sleep(0)
        return counted

    local_server.calls.add("count", count)
    with ucxio.Client(local_server.url) as client:
        assert client.call("count") == 1000  # in this process: it needs the GIL


@pytest.fixture
def callee() -> Iterator[ucxio.Client]:
    """A client of a program of C++, which has functions with windows."""
    program = Path(_core.__file__ or "").parents[2] / "bin/ucxio-python-callee"
    if not program.is_file():
        pytest.skip(f"there is no program of C++ to call: {program}")
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as far:
        assert far.stdin is not None
        assert far.stdout is not None
        with ucxio.Client(far.stdout.readline().rstrip("\n")) as client:
            yield client
        far.stdin.close()


def test_function_of_cpp_reads_and_fills_buffers(callee: ucxio.Client) -> None:
    assert callee.call("add", 25, 17) == 42
    assert callee.call("sum", bytes(range(100))) == sum(range(100))
    numbers = numpy.zeros((10, 100), "u2")
    assert callee.call("fill", numbers, 1) is None
    assert numbers.tolist() == [[257] * 100] * 10
    buffer = bytearray(1000)
    callee.call("fill", buffer, 7)
    assert is_free(buffer)
    assert buffer == b"\7" * 1000
    with pytest.raises(TypeError, match="read-only"):
        callee.call("fill", bytes(10), 1)
    with pytest.raises(ucxio.Error) as failed:
        callee.call("sum", b"", signature="(bytes)->u64")
    assert failed.value.code == "signature_differs"
    assert "(window:r)->u64" in str(failed.value)


def test_function_may_call_back(local_server: ucxio.Server) -> None:
    with ucxio.Server("unix:") as other, ucxio.Client(other.url) as back:
        other.calls.add("add", add)
        local_server.calls.add("twice", lambda a: back.call("add", a, a), signature="(i64)->i64")
        with ucxio.Client(local_server.url) as client:
            assert client.call("twice", 21) == 42


def test_keyboard_interrupt_ends_a_wait(local_server: ucxio.Server) -> None:
    gate = Gate()
    local_server.calls.add("wait", gate)
    local_server.calls.add("add", add)

    def interrupt() -> None:
        gate.entered.acquire(timeout=60)
        os.kill(os.getpid(), signal.SIGINT)

    with ucxio.Client(local_server.url) as client:
        waits = threading.Thread(target=interrupt)
        waits.start()
        with pytest.raises(KeyboardInterrupt):
            client.call("wait")
        waits.join()
        assert soon(lambda: gate.context is not None and gate.context.is_given_up)
        gate.open.set()
        assert client.call("add", 1, 2) == 3


def test_too_many_calls_are_busy(local_server: ucxio.Server) -> None:
    gate = Gate()
    local_server.calls.add("wait", gate)
    codes: list[str] = []

    def call() -> None:
        try:
            client.call("wait", timeout=100)
        except ucxio.Error as failed:
            codes.append(str(failed.code))

    with ucxio.Client(local_server.url) as client:
        assert [each.name for each in client.signatures()] == ["wait"]
        threads = [threading.Thread(target=call) for _ in range(300)]
        for each in threads:
            each.start()
        assert soon(lambda: len(codes) == 300 - 256)
        gate.open.set()
        for each in threads:
            each.join()
    assert codes == ["busy"] * (300 - 256)


serve_calls = """
import sys, threading, ucxio
entered = threading.Event()
def wait() -> None:
    print("entered", flush=True)
    threading.Event().wait()
def add(a: int, b: int) -> int:
    return a + b
server = ucxio.Server(**eval(sys.argv[1]))
server.calls.add("wait", wait)
server.calls.add("add", add)
print(server.url, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("way", [{"bind": "unix:"}, {}, {"transport": "ucx"}], ids=str)
def test_killed_server_leaves_the_outcome_unknown(way: dict[str, Any]) -> None:
    failures: list[ucxio.Error] = []

    def call() -> None:
        with pytest.raises(ucxio.Error) as failed:
            client.call("wait", timeout=100)
        failures.append(failed.value)

    with Process(serve_calls, repr(way)) as running:
        client = ucxio.Client(running.line())
        assert client.call("add", 1, 2) == 3
        waits = threading.Thread(target=call)
        waits.start()
        assert running.line() == "entered"
        running.running.kill()
        waits.join()
    assert failures[0].code == "call_outcome_unknown"
    with pytest.raises(ucxio.Error) as failed:
        client.call("add", 1, 2)
    assert failed.value.code in ("connection_reset", "closed_by_peer", "closed")
    client.close()


def test_process_ends_while_functions_run() -> None:
    def call() -> None:
        with pytest.raises(ucxio.Error):
            client.call("wait", timeout=100)

    with Process(serve_calls, repr({"bind": "unix:"})) as running:
        with ucxio.Client(running.line()) as client:
            waits = threading.Thread(target=call)
            waits.start()
            assert running.line() == "entered"
            assert running.end() == (0, "", "")
            waits.join()


def test_closed_server_fails_its_calls(local_server: ucxio.Server) -> None:
    gate = Gate()
    local_server.calls.add("wait", gate)
    failures: list[str] = []

    def call() -> None:
        try:
            client.call("wait", timeout=100)
        except ucxio.Error as failed:
            failures.append(str(failed.code))

    with ucxio.Client(local_server.url) as client:
        threads = [threading.Thread(target=call) for _ in range(2)]
        for each in threads:
            each.start()
        assert gate.entered.acquire(timeout=60)
        queue = local_server.calls._queue
        assert queue is not None
        assert soon(lambda: queue.waiting == 1)
        local_server.close()
        for each in threads:
            each.join()
        gate.open.set()
    assert len(failures) == 2
    assert set(failures) <= {"call_failed", "call_outcome_unknown"}
    with pytest.raises(ucxio.Error) as failed:
        local_server.calls.add("add", add)
    assert failed.value.code == "closed"


def serving_threads() -> int:
    return sum(each.name == "ucxio calls" for each in threading.enumerate())


def test_server_without_references_ends_its_threads() -> None:
    gc.collect()
    assert soon(lambda: serving_threads() == 0)
    server = ucxio.Server("unix:")
    server.calls.add("add", add)
    assert serving_threads() == 1
    server.calls.add("other", add)
    assert serving_threads() == 1
    del server
    gc.collect()
    assert soon(lambda: serving_threads() == 0)


def test_function_that_is_refused_starts_no_threads(local_server: ucxio.Server) -> None:
    gc.collect()
    assert soon(lambda: serving_threads() == 0)
    with pytest.raises(ucxio.Error) as failed:
        local_server.calls.add("add", add, documentation="x" * 5000)
    assert failed.value.code == "invalid_argument"
    assert serving_threads() == 0
    local_server.calls.add("add", add)
    with ucxio.Client(local_server.url) as client:
        assert client.call("add", 1, 2, timeout=60) == 3


def test_client_that_was_closed_calls_nothing(local_server: ucxio.Server) -> None:
    local_server.calls.add("add", add)
    client = ucxio.Client(local_server.url)
    client.close()
    for call in (lambda: client.call("add", 1, 2), client.signatures):
        with pytest.raises(ucxio.Error) as failed:
            call()
        assert failed.value.code == "closed"


def test_rules_hold_for_calls() -> None:
    rules = "deny anybody call hidden\nallow anybody all **"
    with ucxio.Server("unix:", rules=rules) as server:
        server.calls.add("hidden", add)
        server.calls.add("shown", add)
        with ucxio.Client(server.url) as client:
            assert [each.name for each in client.signatures()] == ["shown"]
            with pytest.raises(FileNotFoundError):
                client.call("hidden", 1, 2, signature="(i64,i64)->i64")


def test_forked_child_calls_nothing() -> None:
    program = forked(
        """
import ucxio
def add(a: int, b: int) -> int:
    return a + b
server = ucxio.Server("unix:")
server.calls.add("add", add)
client = ucxio.Client(server.url)
client.call("add", 1, 2)
calls = {
    "call": lambda: client.call("add", 1, 2),
    "signatures": client.signatures,
    "add": lambda: server.calls.add("add/2", add),
}
""",
        "sys.stdout.flush()",
        "assert client.call('add', 1, 2) == 3",
    )
    with Process(program) as running:
        assert running.end() == (0, "", "")
