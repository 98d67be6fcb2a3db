"""The build backend: scikit-build-core's, and an sdist that has the C++ library in it.

The library is the parent folder of a checkout. For an sdist, what the wheel is compiled from is
copied into `library/`, which goes again afterwards.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scikit_build_core.build import *  # noqa: F403
from scikit_build_core.build import build_sdist as _build_sdist

_here = Path(__file__).resolve().parent.parent
_parts = ("CMakeLists.txt", "LICENSE", "cmake", "include", "src", "streams", "tools")


@contextlib.contextmanager
def _library() -> Iterator[None]:
    """Have the library's sources in `library/`."""
    copied = _here / "library"
    source = _here.parent
    if copied.exists() or not (source / "streams").is_dir():
        yield  # of an sdist, which has them
        return
    try:
        copied.mkdir()
        for part in _parts:
            if (source / part).is_dir():
                shutil.copytree(source / part, copied / part)
            else:
                shutil.copy2(source / part, copied / part)
        yield
    finally:
        shutil.rmtree(copied, ignore_errors=True)


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Build an sdist from which wheels can be built without a checkout."""
    with _library():
        return _build_sdist(sdist_directory, config_settings)
