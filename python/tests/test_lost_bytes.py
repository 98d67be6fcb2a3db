"""New files that lack bytes get no name, whatever came between."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from conftest import files_in, soon

import ucxio
from ucxio import files


class Limit(Exception):
    """What a signal handler may raise."""


@pytest.fixture(autouse=True)
def _short_collections() -> Iterator[None]:
    """What other tests imported is not looked through each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def url(local_server: ucxio.Server, tmp_path: Path) -> Any:
    """The URL of a file that is not there, in a writable store, which is `tmp_path`."""
    with local_server.publish_directory(tmp_path, writable=True):
        yield local_server.url_of("file")


class Interrupter:
    """Raises as the nth line or call of the files' code begins."""

    def __init__(self, number: int, kind: type[BaseException]) -> None:
        self.left = number
        self.kind = kind

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != files.__file__:
            return None
        if event in ("call", "line"):
            self.left -= 1
            if self.left == 0:
                raise self.kind
        return self


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Limit])
@pytest.mark.parametrize("mode", ["wb", "w", "w+b"])
def test_interrupt_anywhere_in_close_gives_no_half_file_a_name(
    url: str, tmp_path: Path, mode: str, kind: type[BaseException]
) -> None:
    data = b"x" * 1000
    before = sys.gettrace()
    for number in range(1, 1000):
        file: Any = ucxio.open(f"{url}{number}", mode, 300 if "b" in mode else -1)
        named = tmp_path / f"file{number}"
        file.write(data if "b" in mode else data.decode())
        raised = False
        interrupter = Interrupter(number, kind)
        sys.settrace(interrupter)
        try:
            file.close()
        except (kind, ValueError):
            raised = True  # what comes as `io` asks whether a file is closed is a ValueError
        finally:
            sys.settrace(before)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del file
            gc.collect()
        if named.exists():
            assert named.read_bytes() == data
            named.unlink()
        else:
            assert raised
        assert soon(lambda: not files_in(tmp_path))
        if interrupter.left > 0:
            assert not raised
            return
    pytest.fail("close does not end")


class FailsOnce:
    """A region one of whose calls fails, once."""

    def __init__(self, core: Any, call: str, failure: BaseException) -> None:
        self._core = core
        self._call = call
        self._failure: BaseException | None = failure

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._core, name)
        if name != self._call or self._failure is None:
            return found

        def failing(*_: object) -> None:
            failure, self._failure = self._failure, None
            assert failure is not None
            raise failure

        return failing


def failing(file: Any, call: str, failure: BaseException) -> None:
    raw = file
    while not isinstance(raw, ucxio.RemoteFile):
        raw = raw.buffer if hasattr(raw, "buffer") else raw.raw
    raw._core = FailsOnce(raw._core, call, failure)  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Limit])
@pytest.mark.parametrize("call", ["write_from", "flush"])
@pytest.mark.parametrize("mode", ["wb", "w", "w+b"])
def test_handler_that_raises_while_close_waits_leaves_no_file(
    url: str, tmp_path: Path, mode: str, call: str, kind: type[BaseException]
) -> None:
    file = ucxio.open(url, mode)
    file.write(b"half" if "b" in mode else "half")
    failing(file, call, kind("told"))
    with pytest.raises(kind, match="told"):
        file.close()
    assert file.closed
    assert soon(lambda: not files_in(tmp_path))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Limit])
def test_text_of_earlier_calls_is_not_lost_without_a_word(
    url: str, tmp_path: Path, kind: type[BaseException]
) -> None:
    file = ucxio.open(url, "w", 16)
    file.write("kept back for later\n")
    failing(file, "write_from", kind("told"))
    with pytest.raises(kind, match="told"):
        file.write("x" * 100_000)
    file.write("more\n")
    with pytest.raises(ucxio.Error, match="a write failed") as failed:
        file.close()
    assert failed.value.code == ucxio.ErrorCode.canceled
    assert soon(lambda: not files_in(tmp_path))


def test_mistakes_lose_nothing(url: str, tmp_path: Path) -> None:
    with ucxio.open(url, "w", encoding="ascii") as file:
        file.write("text\n")
        with pytest.raises(TypeError):
            file.write(7)  # type: ignore[arg-type]
        with pytest.raises(UnicodeEncodeError):
            file.write("ä")
        file.flush()
    assert (tmp_path / "file").read_text() == "text\n"
    with ucxio.open(url, "wb", 0) as raw:
        with pytest.raises(TypeError):
            raw.write(7)
        raw.write(b"bytes")
    assert (tmp_path / "file").read_bytes() == b"bytes"
