"""Each kind of buffer, to be read into, to be written from, and to be published."""

from __future__ import annotations

import array
import ctypes
import io
import mmap
from typing import Any

import numpy as np
import pytest

import ucxio

pattern = bytes(range(1, 97))  # 96 bytes: whole items of each type below


def made_mmap() -> mmap.mmap:
    return mmap.mmap(-1, 96)


# Writable, C-contiguous buffers of 96 bytes.
kinds = {
    "bytearray": lambda: bytearray(96),
    "memoryview": lambda: memoryview(bytearray(96)),
    "memoryview with shape": lambda: memoryview(bytearray(96)).cast("B", (4, 24)),
    "slice of a memoryview": lambda: memoryview(bytearray(200))[50:146],
    "mmap": made_mmap,
    "array.array": lambda: array.array("d", [0.0] * 12),
    "ctypes": lambda: (ctypes.c_uint32 * 24)(),
    "BytesIO": lambda: io.BytesIO(bytes(96)).getbuffer(),
    "NumPy": lambda: np.zeros(12),
    "NumPy matrix": lambda: np.zeros((3, 4)),
    "NumPy of zero dimensions": lambda: np.zeros((), dtype="V96"),
    "NumPy structured": lambda: np.zeros(8, dtype=[("a", "u4"), ("b", "f8")]),
    "NumPy with a field named O": lambda: np.zeros(12, dtype=[("O", "f8")]),
    "NumPy datetime64": lambda: np.zeros(12, dtype="datetime64[ns]"),
    "NumPy bytes": lambda: np.zeros(12, dtype="S8"),
    "NumPy complex": lambda: np.zeros(6, dtype="c16"),
    "NumPy float16": lambda: np.zeros(48, dtype="f2"),
    "NumPy big-endian": lambda: np.zeros(12, dtype=">f8"),
    "NumPy bool": lambda: np.zeros(96, dtype="?"),
    "NumPy row of a matrix": lambda: np.zeros((3, 12))[1],
    "NumPy Fortran, one dimension": lambda: np.zeros(12, order="F"),
}

# Writable, but not C-contiguous.
layouts = {
    "Fortran": lambda: np.zeros((3, 4), order="F"),
    "negative strides": lambda: np.zeros(12)[::-1],
    "every second": lambda: np.zeros(24)[::2],
    "column": lambda: np.zeros((12, 3))[:, 1],
    "transposed": lambda: np.zeros((3, 4)).T,
    "broken matrix": lambda: np.zeros((3, 8))[:, :4],
    "memoryview": lambda: memoryview(bytearray(192))[::2],
}

read_only = {
    "bytes": lambda: bytes(96),
    "memoryview of bytes": lambda: memoryview(bytes(96)),
    "memoryview, made read-only": lambda: memoryview(bytearray(96)).toreadonly(),
    "NumPy": lambda: frozen(np.zeros(12)),
    "NumPy over bytes": lambda: np.frombuffer(bytes(96)),
    "mmap": lambda: mmap.mmap(-1, 96, prot=mmap.PROT_READ),
}

no_buffers = {
    "None": None,
    "number": 7,
    "text": "text",
    "list": [1, 2, 3],
    "object array": np.array([object()]),
    "array of structures with objects": np.zeros(2, dtype=[("a", "u4"), ("b", "O")]),
    "objects beside dates": np.zeros(2, dtype=[("a", "M8[s]"), ("b", "O")]),
}


def frozen(of: Any) -> Any:
    of.flags.writeable = False
    return of


def bytes_of(buffer: Any) -> bytes:
    if isinstance(buffer, np.ndarray):
        return buffer.tobytes()
    return bytes(memoryview(buffer).cast("B")) if not isinstance(buffer, mmap.mmap) else buffer[:]


@pytest.fixture
def region(local_server: ucxio.Server) -> Any:
    data = bytearray(pattern)
    with (
        local_server.publish("data", data, writable=True),
        ucxio.Client(local_server.url) as client,
    ):
        with client.open("data", "read_write") as opened:
            yield opened


@pytest.mark.parametrize("kind", kinds)
def test_each_kind_is_read_into_in_place(region: ucxio.Region, kind: str) -> None:
    into = kinds[kind]()
    assert region.read_into(into) == 96
    assert bytes_of(into) == pattern


@pytest.mark.parametrize("kind", kinds)
def test_each_kind_is_written_from(region: ucxio.Region, kind: str) -> None:
    buffer = kinds[kind]()
    region.read_into(buffer)
    region.write_from(bytes(96))
    region.flush()
    assert region.read() == bytes(96)
    assert region.write_from(buffer) == 96
    region.flush()
    assert region.read() == pattern


@pytest.mark.parametrize("kind", kinds)
def test_each_kind_is_published_in_place(local_server: ucxio.Server, kind: str) -> None:
    buffer = kinds[kind]()
    with (
        local_server.publish("it", buffer, writable=True) as shown,
        ucxio.open(shown.url, "r+b", 0) as file,
    ):
        assert file.write(pattern) == 96
        file.flush()
        assert bytes_of(buffer) == pattern


@pytest.mark.parametrize("kind", layouts)
def test_other_layouts_are_a_value_error_with_shape_and_strides(
    region: ucxio.Region, kind: str
) -> None:
    buffer = layouts[kind]()
    view = memoryview(buffer)
    with pytest.raises(ValueError, match="C-contiguous") as failed:
        region.read_into(buffer)
    assert f"shape {view.shape} and strides {view.strides}" in str(failed.value)
    with pytest.raises(ValueError, match="C-contiguous"):
        region.write_from(buffer)
    with pytest.raises(ValueError, match="C-contiguous"):
        region.read_batch([(0, bytearray(4)), (4, buffer)])
    assert not any(bytes(view))


@pytest.mark.parametrize("kind", layouts)
def test_other_layouts_are_not_published(local_server: ucxio.Server, kind: str) -> None:
    with pytest.raises(ValueError, match="C-contiguous"):
        local_server.publish("it", layouts[kind]())
    assert local_server.list() == []


@pytest.mark.parametrize("kind", read_only)
def test_read_only_buffers_are_a_type_error_to_read_into(region: ucxio.Region, kind: str) -> None:
    buffer = read_only[kind]()
    with pytest.raises(TypeError, match="read-only"):
        region.read_into(buffer)
    assert region.write_from(buffer) == 96


@pytest.mark.parametrize("kind", read_only)
def test_read_only_buffers_are_published_for_reading_alone(
    local_server: ucxio.Server, kind: str
) -> None:
    buffer = read_only[kind]()
    with pytest.raises(TypeError, match="read-only"):
        local_server.publish("it", buffer, writable=True)
    with local_server.publish("it", buffer) as shown, ucxio.open(shown.url) as file:
        assert file.read() == bytes(96)
    with local_server.publish("it", buffer) as shown, pytest.raises(PermissionError):
        ucxio.open(shown.url, "r+b")


@pytest.mark.parametrize("kind", no_buffers)
def test_objects_without_bytes_are_a_type_error(region: ucxio.Region, kind: str) -> None:
    with pytest.raises(TypeError, match="needed|references"):
        region.read_into(no_buffers[kind])
    with pytest.raises(TypeError, match="needed|references"):
        region.write_from(no_buffers[kind])


def test_no_bytes_are_read_and_written_at_once(region: ucxio.Region) -> None:
    for empty in (bytearray(), np.zeros(0), np.zeros((3, 0)), memoryview(b"")[:0].toreadonly()):
        assert region.write_from(empty) == 0
    assert region.read_into(bytearray()) == 0
    assert region.read_into(np.zeros((0, 5))) == 0
    assert region.read_into(bytearray(), offset=96) == 0
    assert region.read(size=0) == b""


def test_buffer_can_not_change_its_size_while_it_is_published(local_server: ucxio.Server) -> None:
    data = bytearray(96)
    shown = local_server.publish("it", data)
    with pytest.raises(BufferError):
        data.append(1)
    shown.close()
    data.append(1)


def test_transfer_leaves_no_reference_to_its_buffer(region: ucxio.Region) -> None:
    data = bytearray(96)
    region.read_into(data)
    region.write_from(data)
    data.append(1)  # a BufferError if anything had a view


def test_torch_tensors_go_by_their_numpy_view(region: ucxio.Region) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.zeros(12, dtype=torch.float64)
    region.read_into(tensor.numpy())
    assert tensor.numpy().tobytes() == pattern
