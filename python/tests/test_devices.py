"""Memory of CUDA devices and of DLPack's arrays, by a driver that tests pretend to have."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
from conftest import Process, soon, ways

import ucxio
from ucxio import aio

legacy = 1  # CU_STREAM_LEGACY


class Memory:
    """Memory of a device, as a program has it that calls the driver."""

    def __init__(self, driver: ctypes.CDLL, content: bytes) -> None:
        self._driver = driver
        self.size = len(content)
        made = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(made), ctypes.c_size_t(self.size)) == 0
        self.address = made.value
        self.put(content)

    def put(self, content: bytes) -> None:
        source = ctypes.create_string_buffer(content)
        assert self._copy(self.address, ctypes.addressof(source)) == 0

    def content(self) -> bytes:
        into = ctypes.create_string_buffer(self.size)
        assert self._copy(ctypes.addressof(into), self.address) == 0
        return into.raw

    def _copy(self, into: int, source: int) -> int:
        found = self._driver.cuMemcpy(
            ctypes.c_uint64(into), ctypes.c_uint64(source), ctypes.c_size_t(self.size)
        )
        return int(found)

    def free(self) -> None:
        assert self._driver.cuMemFree_v2(ctypes.c_uint64(self.address)) == 0


class Array:
    """An array of bytes with the CUDA array interface."""

    def __init__(self, memory: Memory | None = None, **changed: Any) -> None:
        self.memory = memory
        self.interface = {
            "shape": (memory.size if memory else 4,),
            "typestr": "|u1",
            "data": (memory.address if memory else 4096, False),
            "version": 3,
            "stream": None,
            **changed,
        }

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.interface


class Driver:
    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self._made: list[Memory] = []

    def memory(self, content: bytes) -> Memory:
        self._made.append(Memory(self.library, content))
        return self._made[-1]

    def stream(self) -> int:
        made = ctypes.c_void_p()
        assert self.library.cuStreamCreate(ctypes.byref(made), 1) == 0
        assert made.value
        return made.value

    def fill(self, memory: Memory, value: int, stream: int) -> None:
        """Enqueue that the memory is filled."""
        address, size = ctypes.c_uint64(memory.address), ctypes.c_size_t(memory.size)
        assert self.library.cuMemsetD8Async(address, value, size, ctypes.c_void_p(stream)) == 0

    def hold(self, stream: int, hold: bool) -> None:
        self.library.fake_cuda_hold_stream(ctypes.c_void_p(stream), int(hold))

    def free(self) -> None:
        for each in self._made:
            each.free()


@pytest.fixture
def driver(cuda_driver: str) -> Iterator[Driver]:
    library = ctypes.CDLL(cuda_driver)
    context = ctypes.c_void_p()
    assert library.cuInit(0) == 0
    assert library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert library.cuCtxPushCurrent_v2(context) == 0
    made = Driver(library)
    yield made
    made.free()
    assert library.cuCtxPopCurrent_v2(ctypes.byref(context)) == 0
    assert library.cuDevicePrimaryCtxRelease_v2(0) == 0


def test_device_memory_is_read_and_written(driver: Driver, server: ucxio.Server) -> None:
    data = bytearray(range(256)) * 1000
    with (
        server.publish("data", data, writable=True),
        ucxio.Client(server.url) as client,
        client.open("data", "read_write") as region,
    ):
        for version in (2, 3):
            array = Array(driver.memory(bytes(1000)), version=version)
            assert region.read_into(array, 5) == 1000
            assert array.memory is not None
            assert array.memory.content() == data[5:1005]
            array.memory.put(bytes([version]) * 1000)
            assert region.write_from(array, 100_000) == 1000
            region.flush()
            assert data[100_000:101_000] == bytes([version]) * 1000
        first, second = Array(driver.memory(bytes(10))), Array(driver.memory(bytes(20)))
        region.read_batch([(0, first), (100, second), (7, bytearray(3))])
        assert first.memory is not None
        assert second.memory is not None
        assert first.memory.content() == data[:10]
        assert second.memory.content() == data[100:120]
        region.write_batch([(50, first), (70, second)])
        region.flush()
        assert data[50:60] == data[:10]


def test_device_memory_is_published(driver: Driver, server: ucxio.Server) -> None:
    memory = driver.memory(bytes(range(100)))
    with (
        server.publish("tensor", Array(memory, shape=(5, 20)), writable=True),
        ucxio.Client(server.url) as client,
        client.open("tensor", "read_write") as region,
    ):
        assert (region.size, region.kind) == (100, "cuda")
        assert region.read() == bytes(range(100))
        region.write_from(b"written", 10)
        region.flush()
        assert memory.content()[10:17] == b"written"
    read_only = Array(memory, data=(memory.address, True))
    with pytest.raises(TypeError, match="read-only"):
        server.publish("x", read_only, writable=True)
    with server.publish("tensor", read_only):
        assert ucxio.open_region(server.url_of("tensor")).read(10, 7) == b"written"


def test_device_memory_in_a_loop(driver: Driver, local_server: ucxio.Server) -> None:
    data = bytearray(range(256))

    async def program() -> None:
        async with await aio.connect(local_server.url) as client:
            region = await client.open("data", "read_write")
            memory = driver.memory(bytes(256))
            await region.read_into(Array(memory))
            assert memory.content() == data
            memory.put(bytes(256))
            await region.write_from(Array(memory))
            await region.flush()
            assert data == bytes(256)

    with local_server.publish("data", data, writable=True):
        asyncio.run(program())


def test_work_of_the_stream_comes_first(driver: Driver, local_server: ucxio.Server) -> None:
    """A write, and a publication, have what was enqueued before; a read comes after it."""
    data = bytearray(1000)
    stream = driver.stream()
    memory = driver.memory(bytes(1000))
    array = Array(memory, stream=stream)
    shown = local_server.publish("data", data, writable=True)
    client = ucxio.Client(local_server.url)
    region = client.open("data", "read_write")

    def publish() -> None:
        with local_server.publish("tensor", array):
            found.append(client.open("tensor").read())

    found: list[bytes] = []
    calls: list[Callable[[], object]] = [
        lambda: (region.write_from(array), region.flush(), found.append(bytes(data))),
        publish,
        lambda: (region.read_into(array), found.append(b"read")),
    ]
    for value, call in enumerate(calls, 1):
        driver.hold(stream, True)
        driver.fill(memory, value, stream)
        thread = threading.Thread(target=call)
        thread.start()
        thread.join(0.2)
        waits = thread.is_alive()
        driver.hold(stream, False)
        thread.join()
        assert waits
        assert len(found) == value
    assert found == [bytes([1]) * 1000, bytes([2]) * 1000, b"read"]
    assert memory.content() == bytes([1]) * 1000
    region.close()
    client.close()
    shown.close()


def test_streams_of_a_batch_are_one(driver: Driver, local_server: ucxio.Server) -> None:
    arrays = [Array(driver.memory(bytes(4)), stream=driver.stream()) for _ in range(2)]
    with local_server.publish("data", bytes(100)) as shown:
        region = ucxio.open_region(shown.url)
        with pytest.raises(ValueError, match="different streams"):
            region.read_batch([(0, each) for each in arrays])
        region.read_batch([(0, arrays[0]), (4, Array(driver.memory(bytes(4))))])
        # Version 2 does not tell the stream: it is the legacy default stream.
        old = Array(driver.memory(bytes(4)), version=2)
        with pytest.raises(ValueError, match="different streams"):
            region.read_batch([(0, arrays[0]), (4, old)])
        region.read_batch([(0, Array(driver.memory(bytes(4)), stream=legacy)), (4, old)])
        for stream in (1, 2):
            assert region.read_into(Array(driver.memory(bytes(4)), stream=stream)) == 4


def test_memory_that_the_driver_knows_in_part_is_refused(
    driver: Driver, local_server: ucxio.Server
) -> None:
    memory = driver.memory(bytes(4))
    with (
        local_server.publish("data", bytes(4)) as shown,
        ucxio.open_region(shown.url) as region,
        pytest.raises(ValueError, match="does not know it"),
    ):
        region.read_into(Array(memory, shape=(1 << 30,)))


class Missing:
    pass


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        ({"version": 1}, ValueError, "neither version 2 nor 3"),
        ({"version": 4}, ValueError, "neither version 2 nor 3"),
        ({"version": "3"}, ValueError, "neither version 2 nor 3"),
        ({"version": Missing}, ValueError, 'no "version"'),
        ({"shape": Missing}, ValueError, 'no "shape"'),
        ({"shape": 4}, ValueError, "shape is no tuple"),
        ({"shape": [4]}, ValueError, "shape is no tuple"),
        ({"shape": (4.5,)}, ValueError, "no integer"),
        ({"shape": (-1,)}, ValueError, "negative"),
        ({"shape": (0, -1)}, ValueError, "negative"),
        ({"shape": (2**40, 2**40)}, ValueError, "too large"),
        ({"shape": (2**70,)}, ValueError, "no integer"),
        ({"typestr": Missing}, ValueError, 'no "typestr"'),
        ({"typestr": "u1"}, ValueError, "is no type"),
        ({"typestr": "<x4"}, ValueError, "is no type"),
        ({"typestr": "<f"}, ValueError, "is no type"),
        ({"typestr": "<f99999999999"}, ValueError, "is no type"),
        ({"typestr": "<f-4"}, ValueError, "is no type"),
        ({"typestr": 4}, ValueError, "no text"),
        ({"typestr": "|O8"}, TypeError, "references to objects"),
        ({"typestr": "|t1"}, TypeError, "bits"),
        ({"strides": (2,)}, ValueError, r"shape \(4,\) and strides \(2,\)"),
        ({"strides": (1, 1)}, ValueError, "differ in length"),
        ({"strides": 1}, ValueError, "strides is no tuple"),
        ({"shape": (2, 2), "strides": (1, 2)}, ValueError, "C-contiguous"),
        ({"strides": (-1,)}, ValueError, "C-contiguous"),
        ({"data": Missing}, ValueError, 'no "data"'),
        ({"data": 4096}, ValueError, "data is no pair"),
        ({"data": (4096,)}, ValueError, "data is no pair"),
        ({"data": ("x", False)}, ValueError, "data is no pair"),
        ({"data": (-1, False)}, ValueError, "data is no pair"),
        ({"data": (4096, None)}, ValueError, "data is no pair"),
        ({"data": (0, False)}, ValueError, "null"),
        ({"data": (4096, False)}, ValueError, "driver does not know"),
        ({"mask": "x"}, ValueError, "mask"),
        ({"stream": 0}, ValueError, "no stream"),
        ({"stream": -1}, ValueError, "neither None"),
        ({"stream": "x"}, ValueError, "neither None"),
    ],
    ids=str,
)
def test_wrong_interface_is_refused(
    local_server: ucxio.Server, changed: dict[str, Any], kind: type[Exception], text: str
) -> None:
    array = Array(**changed)
    array.interface = {key: value for key, value in array.interface.items() if value is not Missing}
    with local_server.publish("data", bytes(100)) as shown:
        region = ucxio.open_region(shown.url)
        with pytest.raises(kind, match=text):
            region.read_into(array)
        assert not isinstance(kind, ucxio.Error)


def test_address_of_the_host_is_refused(driver: Driver, local_server: ucxio.Server) -> None:
    """What says of itself that it is a device's would be copied by the processor."""
    host = ctypes.create_string_buffer(4)
    array = Array(data=(ctypes.addressof(host), False))
    for call in (lambda: local_server.publish("x", array),):
        with pytest.raises(ValueError, match="driver does not know"):
            call()


@pytest.mark.parametrize("interface", [5, "text", []])
def test_interface_that_is_no_dict_is_refused(
    local_server: ucxio.Server, interface: object
) -> None:
    array = Array()
    array.interface = interface  # type: ignore[assignment]
    with pytest.raises(ValueError, match="no dict"):
        local_server.publish("x", array)


def test_strides_that_do_not_matter(driver: Driver, local_server: ucxio.Server) -> None:
    memory = driver.memory(b"0123")
    for changed in (
        {"strides": None},
        {"strides": (1,)},
        {"shape": (1, 4), "strides": (77, 1)},
        {"shape": (2, 1), "typestr": "<u2", "strides": (2, 9)},
        {"shape": (), "typestr": "<U1", "strides": ()},
    ):
        with local_server.publish("data", Array(memory, **changed)) as shown:
            assert ucxio.open_region(shown.url).read() == b"0123"
    with local_server.publish("data", b"0123") as shown:
        empty = Array(shape=(3, 0), data=(0, False), strides=(5, 5))
        assert ucxio.open_region(shown.url).read_into(empty) == 0


# DLPack


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


class Exported:
    """An array that is exported by DLPack, in the old form or the new one."""

    def __init__(
        self,
        address: int,
        shape: tuple[int, ...],
        *,
        device: int = 1,
        said: int | None = None,
        strides: tuple[int, ...] | None = None,
        bits: int = 8,
        lanes: int = 1,
        offset: int = 0,
        flags: int = 0,
        major: int | None = 1,
    ) -> None:
        numbers = ctypes.c_int64 * len(shape)
        self.shape = numbers(*shape)
        self.strides = None if strides is None else numbers(*strides)
        tensor = Tensor(
            address, device, 0, len(shape), 1, bits, lanes, self.shape, self.strides, offset
        )
        self.device = device if said is None else said
        self.name = b"dltensor" if major is None else b"dltensor_versioned"
        self.whole: Managed | Versioned = (
            Managed(tensor, None, None)
            if major is None
            else Versioned(major, 0, None, None, flags, tensor)
        )
        self.is_old = major is None
        self.asked: list[dict[str, Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **asked: Any) -> object:
        if self.is_old and "max_version" in asked:
            raise TypeError("unexpected keyword argument max_version")
        self.asked.append(asked)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.whole), self.name, None)


def of_host(content: Any, **changed: Any) -> Exported:
    return Exported(ctypes.addressof(content), (len(content),), **changed)


@pytest.mark.parametrize("major", [None, 1])
def test_dlpack_of_the_host(server: ucxio.Server, major: int | None) -> None:
    data = bytearray(b"0123456789")
    memory = (ctypes.c_char * 4)()
    exported = of_host(memory, major=major, strides=(1,))
    with (
        server.publish("data", data, writable=True),
        ucxio.Client(server.url) as client,
        client.open("data", "read_write") as region,
    ):
        assert region.read_into(exported, 2) == 4
        assert memory.raw == b"2345"
        region.write_from(exported, 6)
        region.flush()
        assert data == b"0123452345"
        later = Exported(ctypes.addressof(memory), (2,), offset=2, major=major)
        region.read_into(later)
        assert memory.raw == b"2301"
    with server.publish("tensor", exported, writable=True) as shown:
        assert ucxio.open_region(shown.url).read() == b"2301"
    assert all(each.get("stream") is None for each in exported.asked)


def test_dlpack_of_a_device(driver: Driver, local_server: ucxio.Server) -> None:
    memory = driver.memory(b"0123")
    for major in (None, 1):
        exported = Exported(memory.address, (4,), device=2, major=major)
        with local_server.publish("tensor", exported) as shown:
            region = ucxio.open_region(shown.url)
            assert (region.kind, region.read()) == ("cuda", b"0123")
        assert [each["stream"] for each in exported.asked] == [legacy]
        with local_server.publish("data", b"4567") as shown:
            ucxio.open_region(shown.url).read_into(exported)
        assert memory.content() == b"4567"
        memory.put(b"0123")


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        ({"flags": 1}, TypeError, "read-only"),
        ({"flags": 2}, BufferError, "copy"),
        ({"major": 2}, ValueError, "another version"),
        ({"strides": (2,)}, ValueError, r"shape \(4,\) and strides \(2,\)"),
        ({"bits": 4}, TypeError, "whole bytes"),
        ({"bits": 0}, TypeError, "whole bytes"),
        ({"device": 10}, TypeError, "DLPack's type 10"),
        ({"said": 3}, ValueError, "another device"),
        ({"device": 2}, ValueError, "driver does not know"),
    ],
    ids=str,
)
def test_wrong_dlpack_is_refused(
    local_server: ucxio.Server, changed: dict[str, Any], kind: type[Exception], text: str
) -> None:
    memory = (ctypes.c_char * 4)()
    with local_server.publish("data", bytes(100)) as shown:
        region = ucxio.open_region(shown.url)
        with pytest.raises(kind, match=text):
            region.read_into(of_host(memory, **changed))
    with pytest.raises(ValueError, match="null"):
        local_server.publish("x", Exported(0, (4,)))
    with pytest.raises(ValueError, match="negative"):
        local_server.publish("x", Exported(4096, (-4,)))


def test_dlpack_that_is_none_is_refused(local_server: ucxio.Server) -> None:
    class NoCapsule:
        def __init__(self, device: object, made: object) -> None:
            self.device, self.made = device, made

        def __dlpack_device__(self) -> Any:
            return self.device

        def __dlpack__(self, **_: Any) -> Any:
            if isinstance(self.made, Exception):
                raise self.made
            return self.made

    for device, made, kind in (
        ((1, 0), 5, ValueError),
        (5, 5, ValueError),
        ((1, 0), BufferError("it requires gradients"), BufferError),
        ((1, 0), TypeError("it is sparse"), TypeError),
        (("x", 0), 5, ValueError),
    ):
        with pytest.raises(kind):
            local_server.publish("x", NoCapsule(device, made))


def test_arrays_with_a_buffer_are_taken_by_that(local_server: ucxio.Server) -> None:
    class Both(numpy.ndarray[Any, Any]):
        def __dlpack__(self, **_: Any) -> Any:  # type: ignore[override]
            raise AssertionError

    both = numpy.arange(4, dtype="u1").view(Both)
    with local_server.publish("data", both) as shown:
        assert ucxio.open_region(shown.url).read() == bytes(range(4))


def test_tensors_of_torch(server: ucxio.Server) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.arange(1000, dtype=torch.int64)
    with server.publish("tensor", tensor, writable=True) as shown:
        region = ucxio.open_region(shown.url, "read_write")
        into = torch.zeros(1000, dtype=torch.int64)
        assert region.read_into(into) == 8000
        assert torch.equal(into, tensor)
        with pytest.raises(ValueError, match="strides"):
            region.read_into(into.reshape(10, 100).T)
        with pytest.raises(BufferError):
            region.read_into(torch.zeros(4, requires_grad=True))
        region.close()


def test_dlpack_of_numpy_that_is_read_only(local_server: ucxio.Server) -> None:
    class Wrapped:
        """What has DLPack, and no buffer."""

        def __init__(self, array: numpy.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

        def __dlpack__(self, **asked: Any) -> Any:
            return self.array.__dlpack__(**asked)

    array = numpy.arange(10, dtype="<u4")
    with local_server.publish("data", Wrapped(array), writable=True) as shown:
        region = ucxio.open_region(shown.url, "read_write")
        assert region.read() == array.tobytes()
        region.write_from(Wrapped(array[5:]))
        region.flush()
        assert list(array[:5]) == [5, 6, 7, 8, 9]
        array.flags.writeable = False
        region.write_from(Wrapped(array))
        with pytest.raises(TypeError, match="read-only"):
            region.read_into(Wrapped(array))
        with pytest.raises(ValueError, match="strides"):
            region.write_from(Wrapped(array[::2]))
        region.close()


def test_server_of_another_process_reads_into_a_device(driver: Driver) -> None:
    program = """
import sys, ucxio
server = ucxio.Server(**eval(sys.argv[1]))
shown = server.publish("data", bytes(range(256)) * 4000)
print(server.url, flush=True)
sys.stdin.read()
"""
    for way in ways.values():
        with Process(program, repr(way)) as running:
            memory = driver.memory(bytes(1_024_000))
            ucxio.open_region(running.line() + "/data").read_into(Array(memory))
            assert memory.content() == bytes(range(256)) * 4000


def test_memory_comes_back(driver: Driver, local_server: ucxio.Server) -> None:
    import weakref

    array = Array(driver.memory(b"0123"))
    gone = weakref.ref(array)
    with local_server.publish("data", array):
        del array
        assert gone() is not None
    assert soon(lambda: gone() is None)
