"""The tests that fsspec has for every file system, over TLS and over a Unix socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ways

import ucxio

pytest.importorskip("fsspec")

import fsspec.tests.abstract as abstract

from ucxio.fsspec import UcxFileSystem


@pytest.fixture(scope="class")
def class_server(request: pytest.FixtureRequest) -> Iterator[ucxio.Server]:
    with ucxio.Server(**ways[request.cls.way]) as made:
        yield made


class Fixtures(abstract.AbstractFixtures):
    way = "ucxs"

    @pytest.fixture
    def fs(self, class_server: ucxio.Server, tmp_path: Path) -> Iterator[UcxFileSystem]:
        place = tmp_path / "store"
        place.mkdir()
        with class_server.publish_directory(place, "store", writable=True):
            yield UcxFileSystem(class_server.url, skip_instance_cache=True)

    @pytest.fixture
    def fs_path(self) -> str:
        return "store/tests"

    @pytest.fixture
    def local_path(self, tmpdir):
        return tmpdir.mkdir("local")


class TestCopy(abstract.AbstractCopyTests, Fixtures):
    pass


class TestGet(abstract.AbstractGetTests, Fixtures):
    pass


class TestPut(abstract.AbstractPutTests, Fixtures):
    way = "ucx+unix"


class TestOpen(abstract.AbstractOpenTests, Fixtures):
    pass


class TestPipe(abstract.AbstractPipeTests, Fixtures):
    pass
