"""Files of safetensors, read from a server straight into tensors.

    with ucxio.safetensors.open("ucxs://node7:7471/model.safetensors", framework="pt") as file:
        weights = file.get_tensors()

It needs NumPy, or torch, but not the package `safetensors`, which takes paths and bytes only.
"""

from __future__ import annotations

import itertools
import json
import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from ._closing import Closing
from ._ranges import read_pieces
from .client import Client
from .region import Region, open_region

__all__ = ["SafetensorError", "SafetensorFile", "TensorSlice", "load_file", "open"]

_longest_header = 100_000_000
# Read at once with its length, as most headers are shorter.
_first_read = 64 << 10

# The bytes of an item, its type in NumPy, and in torch. Tensors of other types are not read.
_types: dict[str, tuple[int, str | None, str | None]] = {
    "BOOL": (1, "?", "bool"),
    "U8": (1, "u1", "uint8"),
    "I8": (1, "i1", "int8"),
    "F8_E4M3": (1, None, "float8_e4m3fn"),
    "F8_E5M2": (1, None, "float8_e5m2"),
    "F8_E4M3FNUZ": (1, None, "float8_e4m3fnuz"),
    "F8_E5M2FNUZ": (1, None, "float8_e5m2fnuz"),
    "F8_E8M0": (1, None, "float8_e8m0fnu"),
    "U16": (2, "<u2", "uint16"),
    "I16": (2, "<i2", "int16"),
    "F16": (2, "<f2", "float16"),
    "BF16": (2, None, "bfloat16"),
    "U32": (4, "<u4", "uint32"),
    "I32": (4, "<i4", "int32"),
    "F32": (4, "<f4", "float32"),
    "U64": (8, "<u8", "uint64"),
    "I64": (8, "<i8", "int64"),
    "F64": (8, "<f8", "float64"),
    "C64": (8, "<c8", "complex64"),
}


class SafetensorError(ValueError):
    """The file is not what safetensors writes: the text says what is wrong, and where."""


@dataclass(frozen=True, slots=True)
class _Tensor:
    """What the header tells of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    offset: int  # in the file
    size: int

    @property
    def item_size(self) -> int:
        return _types[self.dtype][0]


class _NumPy:
    """Makes arrays of NumPy."""

    def make(self, name: str, dtype: str, shape: tuple[int, ...]) -> tuple[Any, memoryview]:
        """Return an array, and its bytes."""
        import numpy

        numpys = _types[dtype][1]
        if numpys is None:
            raise TypeError(
                f'{_short(name)} is {dtype}, which NumPy does not have: use framework="pt"'
            )
        made: Any = numpy.empty(shape, numpys)
        return made, memoryview(made.reshape(-1).view("u1"))

    def finish(self, made: Any) -> Any:
        return made


class _Torch:
    """Makes tensors of torch."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def make(self, name: str, dtype: str, shape: tuple[int, ...]) -> tuple[Any, memoryview]:
        """Return a tensor, and its bytes."""
        import torch

        torchs = getattr(torch, _types[dtype][2] or "", None)
        if torchs is None:
            raise TypeError(f"{_short(name)} is {dtype}, which this torch does not have")
        flat = torch.empty(math.prod(shape) * _types[dtype][0], dtype=torch.uint8)
        return flat.view(torchs).reshape(shape), memoryview(flat.numpy())

    def finish(self, made: Any) -> Any:
        return made if str(self._device) == "cpu" else made.to(self._device)


class SafetensorFile(Closing):
    """An open file of safetensors, with the names of `safetensors.safe_open`.

    `open` makes it. One thread at a time uses it. Each method may raise the errors of `Region`.
    """

    def __init__(
        self, region: Region, maker: _NumPy | _Torch, timeout: float | None, verify: bool
    ) -> None:
        self._region = region
        self._maker = maker
        self._timeout = timeout
        self._verify = verify
        self._tensors, self._metadata = _read_header(region, timeout, verify)

    def keys(self) -> list[str]:
        """Return the names of the tensors, in order."""
        return sorted(self._tensors)

    def offset_keys(self) -> list[str]:
        """Return the names of the tensors, by their places in the file."""
        return list(self._tensors)

    def metadata(self) -> dict[str, str] | None:
        """Return what the writer told of the file, or None."""
        return None if self._metadata is None else dict(self._metadata)

    def get_tensor(self, name: str) -> Any:
        """Return a tensor.

        Raises
        ------
        KeyError
            There is no such tensor.
        TypeError
            The framework does not have its type, as NumPy has no BF16, or ucxio does not read it,
            as F4.
        """
        return self.get_tensors([name])[name]

    def get_tensors(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return tensors by name; without `names`, all. They are read together.

        Raises
        ------
        KeyError, TypeError
            Those of `get_tensor`. Nothing is read then.
        """
        made: dict[str, Any] = {}
        pieces = []
        for name in self.offset_keys() if names is None else names:
            tensor = self._find(name)
            made[name], into = self._make(name, tensor, tensor.shape)
            pieces.append((tensor.offset, into))
        read_pieces(self._region, pieces, timeout=self._timeout, verify=self._verify)
        return {name: self._maker.finish(each) for name, each in made.items()}

    def _make(self, name: str, tensor: _Tensor, shape: tuple[int, ...]) -> tuple[Any, memoryview]:
        if tensor.dtype not in _types:
            raise TypeError(f"{_short(name)} is {tensor.dtype}, which ucxio does not read")
        return self._maker.make(name, tensor.dtype, shape)

    def get_slice(self, name: str) -> TensorSlice:
        """Return a tensor of which parts can be read: ``file.get_slice("weight")[:, 10:20]``.

        Raises
        ------
        KeyError
            There is no such tensor.
        """
        return TensorSlice(self, name, self._find(name))

    def _find(self, name: str) -> _Tensor:
        try:
            return self._tensors[name]
        except KeyError:
            raise KeyError(
                f"{self._region.url or self._region.name} has no tensor {name!r}"
            ) from None

    def close(self) -> None:
        """Close the file. Tensors stay. Idempotent."""
        self._region.close()

    def __repr__(self) -> str:
        where = self._region.url or self._region.name
        return f"<ucxio.safetensors.SafetensorFile {where}, {len(self._tensors)} tensors>"


class TensorSlice:
    """A tensor of which parts can be read. `SafetensorFile.get_slice` makes it."""

    def __init__(self, file: SafetensorFile, name: str, tensor: _Tensor) -> None:
        self._file = file
        self._name = name
        self._tensor = tensor

    def get_shape(self) -> list[int]:
        """Return the whole tensor's shape."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """Return the type as the file names it: "F32"."""
        return self._tensor.dtype

    def __repr__(self) -> str:
        shown = f"{self._name!r}, {self.get_shape()} {self.get_dtype()}"
        return f"<ucxio.safetensors.TensorSlice {shown}>"

    def __getitem__(self, index: Any) -> Any:
        """Read a part, and nothing else: by numbers, slices without a step, and ``...``.

        Raises
        ------
        IndexError
            A number is out of range, or there are too many.
        ValueError
            A slice has a step.
        TypeError
            It is another kind of index.
        """
        tensor, file = self._tensor, self._file
        spans, shape = _spans_of(index, tensor.shape)
        counts = tuple(count for _, count in spans)
        made, into = file._make(self._name, tensor, counts)
        read_pieces(
            file._region,
            _pieces_of(tensor, spans, into),
            timeout=file._timeout,
            verify=file._verify,
        )
        return file._maker.finish(made.reshape(shape))


def _spans_of(index: Any, shape: tuple[int, ...]) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    """Return the first place and the count of each dimension, and the shape of the result."""
    parts = list(index) if isinstance(index, tuple) else [index]
    named = sum(each is not Ellipsis for each in parts)
    if named > len(shape) or len(parts) > named + 1:
        raise IndexError(f"too many indices for a tensor of shape {list(shape)}")
    place = next((i for i, each in enumerate(parts) if each is Ellipsis), len(parts))
    parts[place : place + 1] = [slice(None)] * (len(shape) - named)
    spans, left = [], []
    for each, length in zip(parts, shape, strict=True):
        if isinstance(each, slice):
            first, last, step = each.indices(length)
            if step != 1:
                raise ValueError("a slice of a tensor in a file has no step")
            spans.append((first, max(last - first, 0)))
            left.append(spans[-1][1])
        else:
            number = _number_of(each)
            if not -length <= number < length:
                raise IndexError(f"index {number} is out of range for {length}")
            spans.append((number % length, 1))
    return spans, tuple(left)


def _number_of(index: Any) -> int:
    try:
        if not isinstance(index, bool):
            return operator.index(index)
    except TypeError:
        pass
    raise TypeError(f"an index is a number, a slice or ..., not {type(index).__name__}")


def _pieces_of(
    tensor: _Tensor, spans: list[tuple[int, int]], into: memoryview
) -> Iterator[tuple[int, memoryview]]:
    """Yield the runs of bytes in the file that a part of a tensor has, and where they go."""
    if not len(into):
        return
    # Behind the last dimension that is cut, all bytes follow each other.
    whole = len(spans)
    while whole and spans[whole - 1] == (0, tensor.shape[whole - 1]):
        whole -= 1
    strides = [tensor.item_size] * len(spans)
    for i in range(len(spans) - 1, 0, -1):
        strides[i - 1] = strides[i] * tensor.shape[i]
    if whole == 0:
        yield tensor.offset, into
        return
    outer, (first, count) = spans[: whole - 1], spans[whole - 1]
    length = count * strides[whole - 1]
    begin = 0
    for places in itertools.product(*(range(at, at + many) for at, many in outer)):
        offset = sum(at * stride for at, stride in zip(places, strides, strict=False))
        offset += tensor.offset + first * strides[whole - 1]
        yield offset, into[begin : begin + length]
        begin += length


def open(
    url: str,
    framework: Literal["np", "numpy", "pt", "torch"] = "np",
    device: Any = "cpu",
    *,
    client: Client | None = None,
    timeout: float | None = None,
    verify: bool = False,
) -> SafetensorFile:
    """Open a file of safetensors, and read its header.

    Parameters
    ----------
    url : str
        The URL of the file. With `client`, its name.
    framework : {"np", "pt"}
        Tensors are arrays of NumPy, or tensors of torch.
    device : torch.device or str
        Where tensors of torch are put. They are read into host memory first.
    client : Client, optional
        The connection. Without it the process's shared connection to the server.
    timeout : float, optional
        Seconds that each 256 MiB may take.
    verify : bool
        Compares what is read with checksums of the server.

    Raises
    ------
    SafetensorError
        The header is damaged, or does not fit the file. A ValueError.
    ValueError
        There is no such framework; NumPy with a device.
    Error
        Those of `open_region`.
    """
    if framework not in ("np", "numpy", "pt", "torch"):
        raise ValueError(f"{framework!r} is no framework: np, pt")
    is_torch = framework in ("pt", "torch")
    if not is_torch and str(device) != "cpu":
        raise ValueError(f"NumPy has no device {device}")
    maker = _Torch(device) if is_torch else _NumPy()
    region = open_region(url) if client is None else client.open(url)
    try:
        return SafetensorFile(region, maker, timeout, verify)
    except BaseException:
        region.close()
        raise


def load_file(
    url: str,
    framework: Literal["np", "numpy", "pt", "torch"] = "np",
    device: Any = "cpu",
    **options: Any,
) -> dict[str, Any]:
    """Return all tensors of a file by name. Parameters and errors are those of `open`."""
    with open(url, framework, device, **options) as file:
        return file.get_tensors()


def _read_header(
    region: Region, timeout: float | None, verify: bool
) -> tuple[dict[str, _Tensor], dict[str, str] | None]:
    where = region.url or region.name
    size = region.size
    if size < 8:
        raise SafetensorError(f"{where}: {size} bytes are too short for a length")
    begin = region.read(0, min(size, _first_read), timeout=timeout, verify=verify)
    length = int.from_bytes(begin[:8], "little")
    if length > _longest_header:
        raise SafetensorError(
            f"{where}: the header would have {length} bytes, and may have {_longest_header}"
        )
    if length > size - 8:
        raise SafetensorError(
            f"{where}: the header would have {length} bytes, and the file has {size}"
        )
    header = begin[8 : 8 + length]
    if len(header) < length:
        rest = length - len(header)
        header += region.read(len(begin), rest, timeout=timeout, verify=verify)
    try:
        return _parse(header, 8 + length, size)
    except SafetensorError as wrong:
        raise SafetensorError(f"{where}: {wrong}") from None


def _parse(header: bytes, begin: int, end: int) -> tuple[dict[str, _Tensor], dict[str, str] | None]:
    """Return the tensors by their places, and the metadata. Tensors fill `begin` to `end`."""
    try:
        told = json.loads(header.decode(), object_pairs_hook=_without_repeats)
    except SafetensorError:
        raise
    except (ValueError, RecursionError) as wrong:
        raise SafetensorError(f"the header is no JSON: {wrong}") from None
    if not isinstance(told, dict):
        raise SafetensorError("the header is no object of JSON")
    metadata = told.pop("__metadata__", None)
    if metadata is not None and not (
        isinstance(metadata, dict) and all(isinstance(each, str) for each in metadata.values())
    ):
        raise SafetensorError("the metadata is no object of texts")
    tensors = {name: _tensor_of(name, each, begin) for name, each in told.items()}
    in_order = dict(
        sorted(tensors.items(), key=lambda item: (item[1].offset, item[1].size, item[0]))
    )
    at = begin
    for name, tensor in in_order.items():
        if tensor.offset != at:
            what = "overlaps the one before" if tensor.offset < at else "leaves a gap before it"
            at_byte = f"at byte {tensor.offset - begin}"
            raise SafetensorError(f"tensor {_short(name)} {what}, {at_byte}")
        at += tensor.size
    if at != end:
        raise SafetensorError(
            f"the tensors have {at - begin} bytes, and the file has {end - begin} for them"
        )
    return in_order, metadata


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise SafetensorError("the header has a name twice")
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _short(name: str) -> str:
    return repr(name if len(name) <= 80 else f"{name[:77]}...")


def _tensor_of(name: str, told: Any, begin: int) -> _Tensor:
    what = f"tensor {_short(name)}"
    if not isinstance(told, dict):
        raise SafetensorError(f"{what} is not described by an object of JSON")
    dtype, shape, offsets = (told.get(each) for each in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or not 0 < len(dtype) <= 40:
        raise SafetensorError(f"{what} has a type that can be none: {str(dtype)[:40]!r}")
    if not isinstance(shape, list) or len(shape) > 64 or not all(map(_is_number, shape)):
        raise SafetensorError(f"{what} has a shape that can be none: {str(shape)[:80]}")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_number, offsets)):
        raise SafetensorError(f"{what} has no two offsets: {str(offsets)[:80]}")
    first, last = offsets
    item = _types[dtype][0] if dtype in _types else 1
    # Also of an array without items, no two dimensions may be too much.
    if item * math.prod(each or 1 for each in shape) >= 1 << 63 and 0 in shape:
        raise SafetensorError(f"{what} has a shape that is too large: {str(shape)[:80]}")
    size = item * math.prod(shape) if dtype in _types else last - first
    if size < 0 or last - first != size:
        raise SafetensorError(f"{what} has the offsets {first} to {last}, but {max(size, 0)} bytes")
    return _Tensor(dtype, tuple(shape), begin + first, size)
