from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Process

import ucxio
import ucxio.safetensors as safetensors

arrays = {
    "a": np.arange(12, dtype="<f4").reshape(3, 4),
    "b": np.arange(24, dtype="<i8").reshape(2, 3, 4),
    "c": np.array(7, dtype="<u2"),
    "d": np.array([True, False]),
    "e": np.empty((0, 5), "<f8"),
}
types = {"<f4": "F32", "<i8": "I64", "<u2": "U16", "|b1": "BOOL", "<f8": "F64"}


def encoded(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def file_of(all_of_them: dict[str, np.ndarray], **metadata: str) -> bytes:
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, each in all_of_them.items():
        begin = len(data)
        data += each.tobytes()
        header[name] = {
            "dtype": types[each.dtype.str],
            "shape": list(each.shape),
            "data_offsets": [begin, len(data)],
        }
    return encoded(header, data)


@pytest.fixture
def url(server: ucxio.Server) -> Iterator[str]:
    with server.publish("model.safetensors", file_of(arrays, by="a test")) as shown:
        yield shown.url


def test_tensors_are_those_that_were_written(url: str) -> None:
    with safetensors.open(url) as file:
        assert file.keys() == sorted(arrays)
        assert file.offset_keys() == list(arrays)
        assert file.metadata() == {"by": "a test"}
        assert repr(file) == f"<ucxio.safetensors.SafetensorFile {url}, 5 tensors>"
        for name, each in arrays.items():
            got = file.get_tensor(name)
            assert (got.dtype, got.shape) == (each.dtype, each.shape)
            assert (got == each).all()
        some = file.get_tensors(["b", "d"])
        assert list(some) == ["b", "d"]
        with pytest.raises(KeyError, match="no tensor 'x'"):
            file.get_tensor("x")
        with pytest.raises(KeyError):
            file.get_slice("x")
    for name, got in safetensors.load_file(url).items():
        assert (got == arrays[name]).all()
    with pytest.raises(ValueError, match="closed"):
        file.get_tensor("a")


indices = [
    np.s_[1],
    np.s_[-1],
    np.s_[0:1],
    np.s_[:, 1:3],
    np.s_[..., 2],
    np.s_[:, 1],
    np.s_[1, :, 1:2],
    np.s_[:, 1:, 2:],
    np.s_[1, 2, 3],
    np.s_[1, ..., 0:2],
    np.s_[...],
    np.s_[:],
    np.s_[5:],
    np.s_[:, -2:],
    np.s_[0, 1],
]


@pytest.mark.parametrize("index", indices, ids=str)
def test_part_of_a_tensor_is_what_numpy_has(url: str, index: Any) -> None:
    with safetensors.open(url, verify=True) as file:
        part = file.get_slice("b")
        assert (part.get_shape(), part.get_dtype()) == ([2, 3, 4], "I64")
        got = part[index]
        assert got.shape == arrays["b"][index].shape
        assert (got == arrays["b"][index]).all()


def test_index_that_can_not_be_is_an_error(url: str) -> None:
    with safetensors.open(url) as file:
        part = file.get_slice("b")
        for index in (np.s_[2], np.s_[-3], np.s_[0, 0, 0, 0], np.s_[..., ...]):
            with pytest.raises(IndexError):
                part[index]
        with pytest.raises(ValueError, match="step"):
            part[::2]
        for index in ([0, 1], None, True, "a"):
            with pytest.raises(TypeError):
                part[index]
        assert part[np.int64(1), np.uint8(2)].tolist() == arrays["b"][1, 2].tolist()
        for index in (np.True_, 1.0, np.array([0, 1])):
            with pytest.raises(TypeError):
                part[index]
        assert file.get_slice("c")[()] == 7
        assert file.get_slice("e")[0:0, 1:2].shape == (0, 1)


def test_header_longer_than_the_first_read(local_server: ucxio.Server) -> None:
    many = {f"layer.{i}.{'x' * 60}": np.full(3, i, "<f4") for i in range(2000)}
    content = file_of(many)
    assert struct.unpack_from("<Q", content)[0] > 2 * safetensors._first_read
    with local_server.publish("model", content) as shown, ucxio.Client(local_server.url) as client:
        with safetensors.open("model", client=client) as file:
            got = file.get_tensors()
        assert len(got) == 2000
        assert all((got[name] == each).all() for name, each in many.items())
        assert safetensors.load_file(shown.url).keys() == many.keys()


def test_large_batches_are_split(
    local_server: ucxio.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ucxio import _ranges

    monkeypatch.setattr(_ranges, "_most_bytes", 10)
    monkeypatch.setattr(_ranges, "_most_pieces", 3)
    with local_server.publish("model", file_of(arrays)) as shown:
        for name, got in safetensors.load_file(shown.url).items():
            assert (got == arrays[name]).all()


def test_empty_file_has_no_tensors(local_server: ucxio.Server) -> None:
    with local_server.publish("model", encoded(b"{}  ")) as shown:
        with safetensors.open(shown.url) as file:
            assert file.keys() == []
            assert file.metadata() is None
            assert file.get_tensors() == {}


@pytest.mark.parametrize(("dtype", "size"), [("BF16", 4), ("F8_E4M3FNUZ", 2), ("F8_E5M2FNUZ", 2)])
def test_type_that_numpy_lacks_names_torch(
    local_server: ucxio.Server, dtype: str, size: int
) -> None:
    header = {"x": {"dtype": dtype, "shape": [2], "data_offsets": [0, size]}}
    with local_server.publish("model", encoded(header, bytes(size))) as shown:
        with safetensors.open(shown.url) as file:
            assert file.get_slice("x").get_dtype() == dtype
            with pytest.raises(TypeError, match='framework="pt"'):
                file.get_tensor("x")
            with pytest.raises(TypeError):
                file.get_slice("x")[0:1]


def test_type_that_is_unknown_hinders_no_other_tensor(local_server: ucxio.Server) -> None:
    header = {
        "x" * 1000: described([3], end=2, dtype="F4"),
        "y": described([2], begin=2, end=10),
    }
    content = encoded(header, bytes(2) + np.array([5, 6], "<f4").tobytes())
    with local_server.publish("model", content) as shown:
        with safetensors.open(shown.url) as file:
            assert file.get_tensor("y").tolist() == [5, 6]
            part = file.get_slice("x" * 1000)
            assert (part.get_dtype(), part.get_shape()) == ("F4", [3])
            for read in (
                file.get_tensors,
                lambda: part[0],
                lambda: file.get_tensor("x" * 1000),
            ):
                with pytest.raises(TypeError, match="F4") as failed:
                    read()
                assert len(str(failed.value)) < 200


def described(shape: Any = (2,), begin: Any = 0, end: Any = 8, dtype: Any = "F32") -> Any:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


hostile: dict[str, tuple[bytes, str]] = {
    "no length": (b"1234567", "too short"),
    "longer than the file": (encoded(b"{}", length=3), "and the file has 10"),
    "far longer": (encoded(b"{}", length=(1 << 64) - 1), "may have 100000000"),
    "no text": (encoded(b"\xff\xfe"), "no JSON"),
    "no JSON": (encoded(b"{"), "no JSON"),
    "nested": (encoded(b'{"a":' + b"[" * 200_000), "no JSON"),
    "a list": (encoded(b"[]"), "no object"),
    "nothing": (encoded(b""), "no JSON"),
    "metadata": (encoded({"__metadata__": {"a": 1}}), "metadata"),
    "metadata is a list": (encoded({"__metadata__": []}), "metadata"),
    "no tensor": (encoded({"x": 3}), "not described"),
    "no type": (encoded({"x": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)), "type"),
    "type is too long": (encoded({"x": described(dtype="F" * 50)}, bytes(8)), "type"),
    "type is a list": (encoded({"x": described(dtype=["F32"])}, bytes(8)), "type"),
    "unknown type goes back": (
        encoded({"x": described(begin=8, end=0, dtype="F4")}, bytes(8)),
        "offsets",
    ),
    "huge shape of nothing": (encoded({"x": described(shape=[0, 1 << 62], end=0)}), "too large"),
    "long name": (encoded({"x" * 100_000: described()}, bytes(7)), "and the file has 7"),
    "long name of a wrong one": (encoded({"x" * 100_000: 3}), "not described"),
    "long name behind a gap": (encoded({"x" * 100_000: described([2], 4, 12)}, bytes(12)), "gap"),
    "no shape": (encoded({"x": described(shape="2")}, bytes(8)), "shape"),
    "negative shape": (encoded({"x": described(shape=[-2])}, bytes(8)), "shape"),
    "shape of truths": (encoded({"x": described(shape=[True, 2])}, bytes(8)), "shape"),
    "shape of halves": (encoded({"x": described(shape=[2.0])}, bytes(8)), "shape"),
    "huge shape": (encoded({"x": described(shape=[1 << 62, 1 << 62])}, bytes(8)), "offsets"),
    "number too long": (encoded(b'{"x": ' + b"9" * 5000 + b"}"), "no JSON"),
    "too many dimensions": (encoded({"x": described(shape=[1] * 65)}, bytes(8)), "shape"),
    "no offsets": (encoded({"x": {"dtype": "F32", "shape": [2]}}, bytes(8)), "offsets"),
    "one offset": (
        encoded({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0]}}, bytes(8)),
        "offsets",
    ),
    "negative offset": (encoded({"x": described(begin=-8, end=0)}, bytes(8)), "offsets"),
    "offsets that go back": (encoded({"x": described(begin=8, end=0)}, bytes(8)), "offsets"),
    "wrong size": (encoded({"x": described(end=4)}, bytes(8)), "but 8 bytes"),
    "beyond the end": (encoded({"x": described()}, bytes(7)), "and the file has 7"),
    "far beyond the end": (encoded({"x": described(begin=1 << 62, end=(1 << 62) + 8)}), "gap"),
    "bytes of none": (encoded({"x": described()}, bytes(9)), "and the file has 9"),
    "overlap": (
        encoded({"x": described(), "y": described(begin=4, end=12)}, bytes(12)),
        "overlaps",
    ),
    "same place": (encoded({"x": described(), "y": described()}, bytes(8)), "overlaps"),
    "gap": (encoded({"x": described(), "y": described(begin=12, end=20)}, bytes(20)), "gap"),
    "name twice": (encoded(b'{"x": {}, "x": {}}'), "twice"),
}


@pytest.mark.parametrize("name", hostile)
def test_damaged_header_is_an_error_that_says_what(local_server: ucxio.Server, name: str) -> None:
    content, text = hostile[name]
    with local_server.publish("model", content) as shown:
        with pytest.raises(safetensors.SafetensorError) as failed:
            safetensors.open(shown.url)
        assert str(failed.value).startswith(shown.url)
    assert text in str(failed.value)
    assert len(str(failed.value)) < 500


def test_every_bit_of_a_header_may_be_wrong(local_server: ucxio.Server) -> None:
    content = bytearray(file_of({"a": arrays["a"], "d": arrays["d"]}))
    length = 8 + struct.unpack_from("<Q", content)[0]
    with local_server.publish("model", content) as shown, ucxio.Client(local_server.url) as client:
        for bit in range(0, 8 * length, 3):
            content[bit // 8] ^= 1 << bit % 8
            try:
                with safetensors.open("model", client=client) as file:
                    file.get_tensors()
            except safetensors.SafetensorError:
                pass
            except TypeError as failed:  # another type
                assert "which ucxio does not read" in str(failed)  # noqa: PT017
            content[bit // 8] ^= 1 << bit % 8
        assert safetensors.load_file(shown.url).keys() == {"a", "d"}


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda url: safetensors.open(url + "x"), FileNotFoundError),
        (lambda url: safetensors.open(url, "tf"), ValueError),
        (lambda url: safetensors.open(url, "np", "cuda:0"), ValueError),
        (lambda url: safetensors.open("no URL"), ValueError),
    ],
)
def test_wrong_call_is_an_error(
    local_server: ucxio.Server, call: Callable[[str], object], kind: type[Exception]
) -> None:
    with local_server.publish("model", file_of(arrays)) as shown, pytest.raises(kind):
        call(shown.url)


def test_tensors_of_torch(url: str) -> None:
    torch = pytest.importorskip("torch")
    with safetensors.open(url, framework="pt") as file:
        for name, each in arrays.items():
            got = file.get_tensor(name)
            assert isinstance(got, torch.Tensor)
            assert tuple(got.shape) == each.shape
            assert (got.numpy() == each).all()
        assert file.get_slice("b")[:, 1].tolist() == arrays["b"][:, 1].tolist()


@pytest.mark.parametrize("dtype", safetensors._types)
def test_every_type_is_that_of_torch(local_server: ucxio.Server, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    size, _, name = safetensors._types[dtype]
    data = bytes(i % 2 for i in range(6 * size))
    header = {"x": described([2, 3], end=len(data), dtype=dtype)}
    with local_server.publish("model", encoded(header, data)) as shown:
        with safetensors.open(shown.url, framework="pt") as file:
            got = file.get_tensor("x")
            row = file.get_slice("x")[1]
    assert got.dtype == row.dtype == getattr(torch, name)
    assert got.view(torch.uint8).numpy().tobytes() == data
    assert row.view(torch.uint8).numpy().tobytes() == data[3 * size :]


def test_package_safetensors_reads_and_writes_the_same(
    local_server: ucxio.Server, tmp_path: Path
) -> None:
    package = pytest.importorskip("safetensors.numpy")
    package.save_file(arrays, tmp_path / "model.safetensors", {"by": "the package"})
    with local_server.publish_directory(tmp_path):
        url = local_server.url_of("model.safetensors")
        got = safetensors.load_file(url)
        assert all((got[name] == each).all() for name, each in arrays.items())


def test_import_of_ucxio_imports_neither_numpy_nor_torch() -> None:
    program = "import sys, ucxio.safetensors; print({'numpy', 'torch'} & set(sys.modules))"
    with Process(program) as running:
        assert running.end() == (0, "set()\n", "")
