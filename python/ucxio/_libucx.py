"""Finds the one libucp that the process uses, before the extension is loaded."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
from pathlib import Path

# Wheels rename what they bundle: libucp-3a2b91c4.so.0.0.0.
_libucp = re.compile(r"libucp(-[0-9a-f]+)?\.so(\.\d+)*")
_soname = "libucp.so.0"
_advice = (
    "ucxio needs OpenUCX 1.13 or newer. Debian and Ubuntu: `apt install libucx0`. "
    "Anywhere: `pip install libucx-cu13`. Installed elsewhere: set UCXIO_LIBUCX to its folder."
)


def loaded() -> list[str]:
    """Return the paths of the different libucp that this process has loaded."""
    found: dict[tuple[str, str], str] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            parts = line.rstrip("\n").split(maxsplit=5)
            if len(parts) == 6 and _libucp.fullmatch(os.path.basename(parts[5])):
                found.setdefault((parts[3], parts[4]), parts[5])
    return list(found.values())


def _asked_for(place: str) -> Path:
    """Return the libucp that UCXIO_LIBUCX means: a file, or a folder that has it or its lib/."""
    given = Path(place)
    for file in (given, given / _soname, given / "lib" / _soname):
        if file.is_file():
            return file
    raise ImportError(f"UCXIO_LIBUCX={place}: there is no {_soname}")


def _of_wheel() -> Path | None:
    """Return the libucp of the wheels libucx-cu12, libucx-cu13, if one is installed."""
    found = importlib.util.find_spec("libucx")
    for folder in (found.submodule_search_locations or []) if found else []:
        file = Path(folder) / "lib" / _soname
        if file.is_file():
            return file
    return None


def _load(file: str | Path) -> None:
    # The extension needs it by its SONAME, which the linker then finds in the process.
    ctypes.CDLL(str(file))


def refuse_two() -> None:
    """Raise ImportError if the process has two different libucp."""
    all_of_them = loaded()
    if len(all_of_them) > 1:
        raise ImportError(
            "this process has loaded two different OpenUCX, which hangs or crashes: "
            + " and ".join(all_of_them)
            + ". Install one, or set UCXIO_LIBUCX to the one that the others use."
        )


def load() -> None:
    """Load libucp.

    The first of these counts: UCXIO_LIBUCX, one that is loaded already, the system's, that of the
    wheel libucx.

    Raises
    ------
    ImportError
        There is none, or there would be two.
    """
    before = loaded()
    place = os.environ.get("UCXIO_LIBUCX")
    if place:
        _load_first([_asked_for(place)])
    elif before:
        # Of another SONAME it is of no use to the extension, and a second one must not come.
        if not re.fullmatch(r"libucp\.so(\.\d+)*", os.path.basename(before[0])):
            raise ImportError(
                f"another package has loaded an OpenUCX of its own, {before[0]}, and ucxio would "
                f"load {_of_wheel() or _soname} beside it, which hangs or crashes. Import ucxio in "
                "another process."
            )
    else:
        wheel = _of_wheel()
        _load_first([Path(_soname), *([wheel] if wheel else [])])
    refuse_two()


def _load_first(files: list[Path]) -> None:
    why = []
    for file in files:
        try:
            return _load(file)
        except OSError as failed:
            why.append(str(failed))
    raise ImportError(f"OpenUCX could not be loaded ({'; '.join(why)}). {_advice}")
