"""Memory of CUDA devices, by the driver."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any

from ..._core import is_forked_child
from ..exceptions import UCXError

__all__ = ["CudaMemory", "CudaPart", "set_device"]

_legacy_stream = 1  # CU_STREAM_LEGACY: what others enqueue on the default stream comes after
_device = 0


@functools.cache
def _library() -> ctypes.CDLL:
    try:
        found = ctypes.CDLL(os.environ.get("UCXIO_CUDA_DRIVER") or "libcuda.so.1")
    except OSError as failed:
        raise UCXError(f"memory of a device needs the CUDA driver: {failed}") from failed
    if code := found.cuInit(0):
        raise UCXError(f"the CUDA driver can not be used: cuInit returned {code}")
    return found


def _call(name: str, *arguments: Any) -> None:
    if code := getattr(_library(), name)(*arguments):
        raise UCXError(f"the CUDA driver failed: {name} returned {code}")


@functools.cache
def _context(device: int) -> ctypes.c_void_p:
    """Return the context of a device that libraries of CUDA's runtime use, too."""
    ordinal, made = ctypes.c_int(), ctypes.c_void_p()
    _call("cuDeviceGet", ctypes.byref(ordinal), device)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(made), ordinal)
    return made


@contextlib.contextmanager
def _within(device: int) -> Iterator[None]:
    _call("cuCtxPushCurrent_v2", _context(device))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def set_device(device: int) -> None:
    """Choose the device of memory that is allocated from now on."""
    global _device
    _context(device)
    _device = device


class CudaMemory:
    """Memory of a device. It goes with the object."""

    def __init__(self, size: int) -> None:
        """Allocate `size` bytes. Their content is anything."""
        self.size, self._device, self._address = size, _device, 0
        made = ctypes.c_uint64()
        with _within(self._device):
            _call("cuMemAlloc_v2", ctypes.byref(made), ctypes.c_size_t(max(size, 1)))
        self._address = made.value

    def __del__(self) -> None:
        if self._address and not sys.is_finalizing() and not is_forked_child():
            with contextlib.suppress(UCXError), _within(self._device):
                _call("cuMemFree_v2", ctypes.c_uint64(self._address))

    @property
    def address(self) -> int:
        """Where it is."""
        return self._address

    def fill(self, value: int, size: int) -> None:
        """Set the first bytes to a value."""
        source = ctypes.create_string_buffer(bytes([value]) * size, size)
        self._copy(self._address, ctypes.addressof(source), size)

    def content(self, size: int) -> bytes:
        """Return the first bytes."""
        into = ctypes.create_string_buffer(size)
        self._copy(ctypes.addressof(into), self._address, size)
        return into.raw

    def _copy(self, into: int, source: int, size: int) -> None:
        with _within(self._device):
            _call("cuMemcpy", ctypes.c_uint64(into), ctypes.c_uint64(source), ctypes.c_size_t(size))


class CudaPart:
    """The first bytes of a device's memory, which it keeps."""

    def __init__(self, of: CudaMemory, size: int) -> None:
        self._of, self._size = of, size

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where they are."""
        return {
            "shape": (self._size,),
            "typestr": "|u1",
            "data": (self._of.address, False),
            "version": 3,
            "stream": _legacy_stream,
        }
