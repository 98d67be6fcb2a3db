"""The version of the package: the library's, which stands once, in its CMakeLists.txt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_here = Path(__file__).resolve().parent.parent


def dynamic_metadata(field: str, settings: Mapping[str, Any] | None = None) -> str:
    """Return the version."""
    if field != "version" or settings:
        raise ValueError(f"only a version without settings can be told, not {field}")
    for folder in (_here / "library", _here.parent):
        file = folder / "CMakeLists.txt"
        if file.is_file():
            found = re.search(r"^\s*VERSION (\d+\.\d+\.\d+)$", file.read_text(), re.M)
            if found:
                return found[1]
    raise RuntimeError("the library's CMakeLists.txt with its version was not found")
