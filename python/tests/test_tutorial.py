"""The program of the tutorial is killed in the middle of a file, and goes on."""

from __future__ import annotations

import signal
from pathlib import Path

from conftest import Process, files_in, soon

import ucxio

examples = Path(__file__).parent.parent / "examples"

program = """
import os, signal, sys
sys.path.insert(0, sys.argv.pop(1))
import numpy, resume_checkpoint
whole = numpy.save
limit = int(sys.argv.pop(1))
def save(file, array):
    global limit
    limit -= 1
    if limit == 0:
        file.write(bytes(3 << 20))
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    whole(file, array)
numpy.save = save
resume_checkpoint.main()
"""


def run(action: str, url: str, limit: int = -1) -> tuple[int, list[str], str]:
    with Process(program, str(examples), str(limit), action, url) as running:
        code, out, errors = running.end()
        return code, out.splitlines(), errors


def test_killed_run_is_resumed(local_server: ucxio.Server, tmp_path: Path) -> None:
    with local_server.publish_directory(tmp_path, "store", writable=True):
        url = local_server.url_of("store/step-1000")
        code, lines, _ = run("save", url, 4)
        assert code == -signal.SIGKILL
        assert lines == [f"layer{i} saved" for i in range(3)]
        code, lines, errors = run("load", url)
        assert (code, lines) == (1, [])
        assert "FileNotFoundError" in errors
        # The server has noticed, and thrown the half of a file away.
        named = [f"layer{i}.npy" for i in range(3)]
        assert soon(lambda: files_in(tmp_path) == named)
        code, lines, errors = run("save", url)
        assert (code, errors) == (0, "")
        assert lines == [f"layer{i} is there" for i in range(3)] + [
            f"layer{i} saved" for i in range(3, 20)
        ]
        code, lines, errors = run("load", url)
        assert (code, errors) == (0, "")
        assert lines[7] == "layer7 (500, 500) 7.0"
        assert len(lines) == 20
