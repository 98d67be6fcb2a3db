"""What people open URLs of fsspec with. `tests/support/run/python_venv.sh` has the versions."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ucxio

fsspec = pytest.importorskip("fsspec")

from ucxio.fsspec import UcxFileSystem  # noqa: E402


@pytest.fixture
def url(local_server: ucxio.Server, tmp_path: Path) -> Iterator[str]:
    """A folder of a writable store."""
    with local_server.publish_directory(tmp_path, writable=True):
        yield local_server.url_of("folder")
    UcxFileSystem.clear_instance_cache()


@pytest.fixture
def fs(url: str) -> UcxFileSystem:
    return fsspec.url_to_fs(url)[0]


def test_pandas_reads_and_writes_csv(url: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": range(1000), "b": [f"é{i}" for i in range(1000)]})
    table.to_csv(f"{url}/table.csv", index=False)
    assert (tmp_path / "folder/table.csv").read_text().startswith("a,b\n0,é0\n")
    assert pandas.read_csv(f"{url}/table.csv").equals(table)
    table.to_csv(f"{url}/table.csv.gz", index=False)
    assert pandas.read_csv(f"{url}/table.csv.gz").equals(table)
    parts = list(pandas.read_csv(f"{url}/table.csv", chunksize=300))
    assert [len(each) for each in parts] == [300, 300, 300, 100]
    with pytest.raises(FileNotFoundError):
        pandas.read_csv(f"{url}/none.csv")


def test_pandas_reads_and_writes_parquet(url: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.DataFrame({"a": np.arange(1000), "b": np.arange(1000) / 3, "c": ["x"] * 1000})
    table.to_parquet(f"{url}/table.parquet")
    assert pandas.read_parquet(f"{url}/table.parquet").equals(table)
    assert list(pandas.read_parquet(f"{url}/table.parquet", columns=["b"]).columns) == ["b"]
    table.to_parquet(f"{url}/parts", partition_cols=["c"])
    assert len(pandas.read_parquet(f"{url}/parts", filters=[("a", ">", 989)])) == 10


def test_pyarrow_reads_and_writes_data_sets(fs: UcxFileSystem) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    table = pyarrow.table({"year": [2024, 2025, 2025], "value": [1.0, 2.0, 3.0]})
    dataset.write_dataset(
        table,
        "set",
        filesystem=fs,
        format="parquet",
        partitioning=["year"],
        partitioning_flavor="hive",
    )
    assert [each.rpartition("/")[0] for each in fs.find("set")] == [
        "set/year=2024",
        "set/year=2025",
    ]
    found = dataset.dataset("set", filesystem=fs, partitioning="hive")
    assert found.count_rows() == 3
    got = found.to_table(columns=["value"], filter=dataset.field("year") == 2025)
    assert sorted(got["value"].to_pylist()) == [2.0, 3.0]
    with pytest.raises(FileNotFoundError):
        dataset.dataset("none", filesystem=fs)


def test_zarr_reads_and_writes_arrays(url: str, fs: UcxFileSystem) -> None:
    zarr = pytest.importorskip("zarr")
    from zarr.storage import FsspecStore

    values = np.arange(10_000, dtype="f4").reshape(100, 100)
    store = FsspecStore.from_url(f"{url}/array.zarr")
    made = zarr.create_array(store=store, shape=values.shape, chunks=(30, 30), dtype="f4")
    made[:] = values
    again = zarr.open_array(
        store=FsspecStore.from_url(f"{url}/array.zarr", read_only=True), mode="r"
    )
    assert (again[:] == values).all()
    assert (again[10:50, 70] == values[10:50, 70]).all()
    made[5, 5] = -1
    assert again[5, 5] == -1
    group = zarr.open_group(FsspecStore.from_url(f"{url}/group.zarr"), mode="w")
    group.create_array("one/two", shape=(4,), dtype="i4")[:] = [1, 2, 3, 4]
    found = zarr.open_group(f"{url}/group.zarr", mode="r")
    assert list(found["one"].array_keys()) == ["two"]
    assert found["one/two"][:].tolist() == [1, 2, 3, 4]
    zarr.create_array(store=store, shape=(3,), dtype="i1", overwrite=True)
    assert fs.ls("folder/array.zarr", detail=False) == ["folder/array.zarr/zarr.json"]


def test_h5py_reads_and_writes_files(fs: UcxFileSystem) -> None:
    h5py = pytest.importorskip("h5py")
    values = np.random.default_rng(1).random((300, 300))
    with fs.open("folder/file.h5", "w+b") as file:
        with h5py.File(file, "w") as data:
            data.create_dataset("a/values", data=values, chunks=(50, 50), compression="gzip")
    with fs.open("folder/file.h5", "rb") as file, h5py.File(file, "r") as data:
        assert (data["a/values"][120:130, 40:60] == values[120:130, 40:60]).all()
        assert (data["a/values"][:] == values).all()


def test_tarfile_reads_and_writes_archives(fs: UcxFileSystem) -> None:
    with fs.open("folder/archive.tar.gz", "wb") as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            for i in range(20):
                about = tarfile.TarInfo(f"{i}.bin")
                about.size = 1000 * i
                archive.addfile(about, io.BytesIO(bytes([i]) * about.size))
    with fs.open("folder/archive.tar.gz") as file, tarfile.open(fileobj=file) as archive:
        assert len(archive.getmembers()) == 20
        got = archive.extractfile("7.bin")
        assert got is not None
        assert got.read() == bytes([7]) * 7000
    assert fsspec.open(f"tar://3.bin::{fs.unstrip_protocol('folder/archive.tar.gz')}").open().read(
        2
    ) == bytes([3, 3])


def test_zipfile_reads_and_writes_archives(fs: UcxFileSystem) -> None:
    with fs.open("folder/archive.zip", "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "one")
        archive.writestr("b/c.txt", "two" * 10_000, zipfile.ZIP_DEFLATED)
    with fs.open("folder/archive.zip", "rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.read("b/c.txt") == b"two" * 10_000
    with fs.open("folder/archive.zip", "r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.writestr("d.txt", "three")
    with fs.open("folder/archive.zip", "rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["a.txt", "b/c.txt", "d.txt"]


def test_numpy_reads_and_writes_arrays(fs: UcxFileSystem) -> None:
    with fs.open("folder/arrays.npz", "wb") as file:
        np.savez(file, a=np.arange(10), b=np.eye(3))
    with fs.open("folder/arrays.npz", "rb") as file, np.load(file) as found:
        assert found["a"].tolist() == list(range(10))
        assert (found["b"] == np.eye(3)).all()


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG"])
def test_pil_reads_and_writes_images(fs: UcxFileSystem, kind: str) -> None:
    image = pytest.importorskip("PIL.Image")
    row = np.arange(256, dtype="u1")
    pixels = np.stack(
        [np.tile(row, (100, 1)), np.full((100, 256), 7, "u1"), row[:100, None] + row], 2
    )
    name = f"folder/image.{kind.lower()}"
    with fs.open(name, "wb") as file:
        image.fromarray(pixels).save(file, kind)
    with fs.open(name, "rb") as file, image.open(file) as found:
        assert (found.format, found.size, found.mode) == (kind, (256, 100), "RGB")
        part = np.asarray(found.crop((10, 20, 30, 40)))
    close = 40 if kind == "JPEG" else 0
    assert np.abs(part.astype(int) - pixels[20:40, 10:30]).max() <= close
    with fs.open("folder/none", "wb") as file:
        file.write(b"no image")
    with fs.open("folder/none", "rb") as file, pytest.raises(image.UnidentifiedImageError):
        image.open(file)


def test_torch_saves_and_loads(url: str, fs: UcxFileSystem) -> None:
    torch = pytest.importorskip("torch")
    state = {"weight": torch.arange(1000.0), "step": 7}
    with fsspec.open(f"{url}/model.pt", "wb") as file:
        torch.save(state, file)
    with fs.open("folder/model.pt", "rb") as file:
        found = torch.load(file, weights_only=True)
    assert found["step"] == 7
    assert torch.equal(found["weight"], state["weight"])


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("is_async", [False, True])
def test_torch_saves_and_loads_distributed_checkpoints(
    url: str, fs: UcxFileSystem, is_async: bool
) -> None:
    torch = pytest.importorskip("torch")
    checkpoint = pytest.importorskip("torch.distributed.checkpoint")
    import torch.distributed as distributed
    from torch.distributed.checkpoint.fsspec_filesystem import FsspecReader, FsspecWriter

    state = {"weight": torch.arange(100_000.0), "bias": torch.ones(3), "step": 7}
    place = f"{url}/checkpoint"
    if is_async:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MASTER_ADDR", "127.0.0.1")
            patch.setenv("MASTER_PORT", "0")
            distributed.init_process_group("gloo", rank=0, world_size=1)
            try:
                checkpoint.async_save(state, storage_writer=FsspecWriter(place)).result(60)
            finally:
                distributed.destroy_process_group()
    else:
        checkpoint.save(state, storage_writer=FsspecWriter(place), no_dist=True)
    assert fs.exists("folder/checkpoint/.metadata")
    found = {"weight": torch.zeros(100_000), "bias": torch.zeros(3), "step": 0}
    checkpoint.load(found, storage_reader=FsspecReader(place), no_dist=True)
    assert found["step"] == 7
    assert torch.equal(found["weight"], state["weight"])
    assert torch.equal(found["bias"], state["bias"])


class Numbers:
    """A data set of torch."""

    def __init__(self, fs: UcxFileSystem) -> None:
        self.fs = fs

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> int:
        return len(self.fs.cat_file(f"folder/{i}"))


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_torch_loads_data_in_workers(fs: UcxFileSystem, method: str) -> None:
    data = pytest.importorskip("torch.utils.data")
    fs.pipe({f"folder/{i}": bytes(i) for i in range(8)})
    loader = data.DataLoader(
        Numbers(fs), batch_size=2, num_workers=2, multiprocessing_context=method, timeout=200
    )
    if method == "fork":
        with pytest.raises(RuntimeError, match="multiprocessing_context"):
            list(loader)
    else:
        assert [each.tolist() for each in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
