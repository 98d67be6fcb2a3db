"""The command `ucxio`, with the same OpenUCX as the package."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from . import _libucx


def main() -> None:
    """Become the program `ucxio` of this package."""
    program = Path(__file__).parent / "bin" / "ucxio"
    if not program.is_file():
        sys.exit("ucxio: this package was built without the command (UCXIO_BUILD_TOOLS=OFF)")
    try:
        _libucx.load()
        folder = str(Path(_libucx.loaded()[0]).parent)
    except ImportError as failed:
        sys.exit(f"ucxio: {failed}")
    before = os.environ.get("LD_LIBRARY_PATH")
    # The program finds the system's by itself.
    if not folder.startswith(("/lib/", "/usr/lib/")):
        os.environ["LD_LIBRARY_PATH"] = folder + (os.pathsep + before if before else "")
    os.execv(program, [str(program), *sys.argv[1:]])
