from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import Process

import ucxio
from ucxio import _core, _libucx

needed = """
import sys, os, ucxio
print(ucxio.__version__)
"""


def test_version_is_the_librarys() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", ucxio.__version__)
    assert re.fullmatch(r"\d+\.\d+\.\d+", ucxio.ucx_version())


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in ucxio.__all__:
        assert getattr(ucxio, name) is not None
        if not isinstance(getattr(ucxio, name), str):
            assert getattr(ucxio, name).__doc__, name


def test_show_config_names_libucp_and_keys(capsys: pytest.CaptureFixture[str]) -> None:
    ucxio.show_config()
    told = capsys.readouterr().out
    assert ucxio.__version__ in told
    assert _libucx.loaded()[0] in told
    assert "UCX_TLS=" in told


def test_one_libucp_is_loaded() -> None:
    assert len(_libucx.loaded()) == 1


def test_extension_needs_no_cuda() -> None:
    found = subprocess.run(["readelf", "-d", _core.__file__], capture_output=True, text=True)
    assert "NEEDED" in found.stdout
    assert "cuda" not in found.stdout


def test_stubs_name_what_the_extension_has() -> None:
    stub = (Path(ucxio.__file__).parent / "_core.pyi").read_text()
    for kind in ("Client", "Publication", "Region", "Server"):
        body = re.search(rf"^class {kind}:\n((?:    .*\n|\n)*)", stub, re.M)
        assert body is not None
        told = set(re.findall(r"def (\w+)", body[1])) - {"__init__"}
        has = {each for each in vars(getattr(_core, kind)) if not each.startswith("_")}
        assert told == has, kind
    functions = {each for each in vars(_core) if callable(getattr(_core, each))}
    told = set(re.findall(r"^def (\w+)", stub, re.M))
    assert told == {each for each in functions if each[0].islower()}


def system_libucp() -> str:
    return os.path.realpath(_libucx.loaded()[0])


chooses = pytest.mark.skipif(
    bool(os.environ.get("UCXIO_LIBUCX")), reason="UCXIO_LIBUCX has chosen a libucp"
)


def test_libucp_of_the_variable_is_used() -> None:
    program = "import ucxio; from ucxio import _libucx; print(_libucx.loaded()[0])"
    folder = os.path.dirname(system_libucp())
    with Process(program, UCXIO_LIBUCX=folder) as running:
        code, out, errors = running.end()
    assert (code, os.path.realpath(out.strip()), errors) == (0, system_libucp(), "")


def test_libucp_that_is_not_there_is_an_import_error() -> None:
    with Process("import ucxio", UCXIO_LIBUCX="/nowhere") as running:
        code, _, errors = running.end()
    assert code == 1
    assert "ImportError: UCXIO_LIBUCX=/nowhere: there is no libucp.so.0" in errors


def test_without_ucx_the_import_error_says_what_helps() -> None:
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import ctypes
def refuse(file, *_): raise OSError(f"{file}: cannot open shared object file")
ctypes.CDLL = refuse
import ucxio
"""
    with Process(program, str(Path(ucxio.__file__).parent.parent)) as running:
        code, _, errors = running.end()
    assert code == 1
    assert "apt install libucx0" in errors
    assert "pip install libucx-cu13" in errors


@chooses
def test_second_libucp_is_an_import_error_that_names_both(tmp_path: Path) -> None:
    # Another file of the same library, as a wheel that bundles it has.
    other = tmp_path / "libucp-0badcafe.so.0.0.0"
    other.write_bytes(Path(system_libucp()).read_bytes())
    program = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); import ucxio"
    with Process(program, str(other)) as running:
        code, _, errors = running.end()
    assert code == 1
    assert "ImportError" in errors
    assert str(other) in errors
    assert "libucp.so.0" in errors


@chooses
def test_libucp_of_another_place_than_the_loaded_one_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "libucp.so.0"
    other.write_bytes(Path(system_libucp()).read_bytes())
    program = "import ctypes; ctypes.CDLL('libucp.so.0'); import ucxio"
    with Process(program, UCXIO_LIBUCX=str(tmp_path)) as running:
        code, _, errors = running.end()
    assert code == 1
    assert "two different OpenUCX" in errors
    assert str(other) in errors


examples = Path(__file__).parent.parent / "examples"


def test_example_serves_an_array() -> None:
    with Process((examples / "serve_array.py").read_text()) as running:
        code, out, errors = running.end()
    assert (code, errors) == (0, "")
    assert out.count("the sum is 499999500000.0") == 2


def test_example_writes_a_checkpoint(local_server: ucxio.Server) -> None:
    with local_server.allocate_directory("results", quota=64 << 20):
        program = (examples / "checkpoint.py").read_text()
        with Process(program, local_server.url_of("results")) as running:
            code, out, errors = running.end()
    assert (code, errors) == (0, "")
    assert "step 1000, 8000000 bytes of weights" in out


@chooses
def test_libucp_of_the_wheel_is_used_where_the_system_has_none(tmp_path: Path) -> None:
    wheel = tmp_path / "libucx/lib/libucp.so.0"
    wheel.parent.mkdir(parents=True)
    wheel.write_bytes(Path(system_libucp()).read_bytes())
    program = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
load = ctypes.CDLL
def load_named(file, *_):
    if file == "libucp.so.0":
        raise OSError("cannot open shared object file")
    return load(file)
ctypes.CDLL = load_named
from ucxio import _libucx
print(*_libucx.loaded())
"""
    with Process(program, str(tmp_path)) as running:
        assert running.end() == (0, f"{wheel}\n", "")
