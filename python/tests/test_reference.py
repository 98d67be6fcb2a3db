"""The page of the reference has every public name, with its docstring."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import ucxio
import ucxio.aio
import ucxio.calls
import ucxio.fsspec
import ucxio.safetensors
import ucxio.ucp
import ucxio.ucp._libs.ucx_api
import ucxio.ucp.early
import ucxio.ucp.exceptions

file = Path(__file__).parent.parent.parent / "docs" / "python_reference.py"
modules = [
    ucxio,
    ucxio.aio,
    ucxio.calls,
    ucxio.ucp,
    ucxio.ucp.exceptions,
    ucxio.ucp.early,
    ucxio.ucp._libs.ucx_api,
    ucxio.fsspec,
    ucxio.safetensors,
]


def made_page(package: Path | None = None) -> str:
    described = importlib.util.spec_from_file_location("python_reference", file)
    assert described is not None
    assert described.loader is not None
    made = importlib.util.module_from_spec(described)
    described.loader.exec_module(made)
    if package is not None:
        made.PACKAGE = package
    return str(made.page())


@pytest.fixture(scope="module")
def page() -> str:
    return made_page()


@pytest.mark.parametrize("module", modules, ids=lambda module: module.__name__)
def test_page_has_the_public_names(page: str, module: ModuleType) -> None:
    for name in module.__all__:
        what = getattr(module, name)
        if not (inspect.isclass(what) or inspect.isroutine(what)):
            continue
        part = page.partition(f"\n### {module.__name__}.{name}\n")[2]
        assert part, name
        summary = (inspect.getdoc(what) or "").split("\n")[0]
        assert summary
        plain = re.sub(r"``([^`]+)``", r"`\1`", summary)
        assert plain in part[:1000], name


def test_page_has_no_sections_that_were_not_understood(page: str) -> None:
    assert not re.search(r"^-{4,}$", page, re.M)
    assert "``" not in re.sub(r"```", "", page)
    assert "#### Pipe.readinto\n" in page
    assert "await read(size=-1, /)" in page


def test_modules_among_the_public_names_have_no_page_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('from . import inner\n__all__ = ["inner"]\n')
    (tmp_path / "inner.py").write_text("__all__ = []\n")
    assert "inner" not in made_page(tmp_path)
