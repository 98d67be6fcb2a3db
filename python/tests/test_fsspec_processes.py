"""File systems of fsspec in processes that were forked, and in those that load data."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Process, forked, ways

pytest.importorskip("fsspec")

before = """
import fsspec, ucxio, ucxio.fsspec
server = ucxio.Server(**eval(sys.argv[1]))
store = server.allocate_directory("store", quota=1 << 20)
fs, path = fsspec.url_to_fs(server.url_of("store"))
fs.pipe("store/file", b"data")
url = server.url_of("store/file")
new = fs.open("store/new", "wb")
new.write(b"half")
calls = {
    "info": lambda: fs.info("store/file"),
    "info of the root": lambda: fs.info(""),
    "exists": lambda: fs.exists("store/file"),
    "isfile": lambda: fs.isfile("store/file"),
    "isdir": lambda: fs.isdir("store/file"),
    "ls": lambda: fs.ls("store"),
    "find": lambda: fs.find("store"),
    "glob": lambda: fs.glob("store/*"),
    "walk": lambda: list(fs.walk("store")),
    "modified": lambda: fs.modified("store/file"),
    "checksum": lambda: fs.checksum("store/file"),
    "cat": lambda: fs.cat("store/file"),
    "cat of many": lambda: fs.cat(["store/file", "store/file2"], on_error="raise"),
    "cat_ranges": lambda: fs.cat_ranges(["store/file"], 0, 1),
    "open": lambda: fs.open("store/file"),
    "open to write": lambda: fs.open("store/x", "wb"),
    "pipe": lambda: fs.pipe({"store/x": b""}),
    "touch": lambda: fs.touch("store/x"),
    "mkdir": lambda: fs.mkdir("store/x"),
    "makedirs": lambda: fs.makedirs("store/x", exist_ok=True),
    "rmdir": lambda: fs.rmdir("store"),
    "rm": lambda: fs.rm("store/file"),
    "rm of a tree": lambda: fs.rm("store", recursive=True),
    "cp": lambda: fs.cp_file("store/file", "store/x"),
    "mv": lambda: fs.mv("store/file", "store/x"),
    "fsspec.open": lambda: fsspec.open(url).open(),
    "a new instance": lambda: ucxio.fsspec.UcxFileSystem(server_url).exists("store"),
}
server_url = server.url
"""
in_child = """
new.discard()
server.close()
"""
after = """
new.close()
assert fs.find("store") == ["store/file", "store/new"]
"""


@pytest.mark.parametrize("way", ways)
def test_every_call_in_a_forked_child_raises_at_once(way: str) -> None:
    with Process(forked(before, in_child, after), repr(ways[way])) as running:
        assert running.end() == (0, "", "")


loads = """
import multiprocessing, pickle, sys, fsspec, ucxio, ucxio.fsspec
class Data:
    def __init__(self, fs): self.fs = fs
    def __getitem__(self, i): return self.fs.cat_file(f"store/{i}")
def load(data, todo, done):
    for i in iter(todo.get, None):
        try:
            done.put((i, data[i]))
        except Exception as failed:
            # As torch's DataLoader does it.
            done.put((i, (type(failed), str(failed))))
def main():
    context = multiprocessing.get_context(sys.argv[1])
    with ucxio.Server("unix:") as server, server.allocate_directory("store", quota=1 << 20):
        fs = fsspec.filesystem("ucxs", server=server.url)
        fs.pipe({f"store/{i}": bytes(i) for i in range(8)})
        todo, done = context.SimpleQueue(), context.Queue()
        workers = [context.Process(target=load, args=(Data(fs), todo, done)) for _ in range(2)]
        for each in workers:
            each.start()
        for i in [*range(8), None, None]:
            todo.put(i)
        found = dict(done.get(timeout=200) for _ in range(8))
        for each in workers:
            each.join(200)
            assert each.exitcode == 0
        if sys.argv[1] == "fork":
            assert all(issubclass(kind, RuntimeError) for kind, _ in found.values()), found
            assert all("multiprocessing_context" in text for _, text in found.values()), found
        else:
            assert found == {i: bytes(i) for i in range(8)}, found
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_workers_that_load_data_are_started_anew_or_told(tmp_path: Path, method: str) -> None:
    # The other methods find the program's functions in a file.
    (tmp_path / "loads.py").write_text(loads)
    program = "import sys; sys.path.insert(0, sys.argv[2]); import loads; loads.main()"
    with Process(program, method, str(tmp_path), PYTHONWARNINGS="ignore") as running:
        assert running.end() == (0, "", "")
