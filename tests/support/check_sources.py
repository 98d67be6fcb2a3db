#!/usr/bin/env python3
"""Looks at each source by itself, with nothing precompiled: does it include what it names?

  tests/support/check_sources.py BUILD [PATTERN]

BUILD has a compile_commands.json, made with UCXIO_PRECOMPILE=OFF and UCXIO_UNITY=OFF. PATTERN is a
regular expression for the files' paths. Compiles nothing, reads only; prints what the compiler says.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys


def says(entry):
    """Returns what the compiler has to say of one source; nothing if all is well."""
    words = shlex.split(entry["command"])
    place = words.index("-o")
    del words[place:place + 2]
    done = subprocess.run(words + ["-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    pattern = re.compile(sys.argv[2] if len(sys.argv) == 3 else "")
    entries = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    # One entry for each: some are of several targets.
    chosen = list({entry["file"]: entry for entry in entries if pattern.search(entry["file"])}.values())
    mixed = [entry["file"] for entry in chosen if re.search(r"cmake_pch|/Unity/", entry["command"])]
    if mixed or not chosen:
        sys.exit(f"{sys.argv[1]} has no sources by themselves: {(mixed or ['none at all'])[0]}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        complaints = [text for text in workers.map(says, chosen) if text]
    print("\n".join(complaints) or f"{len(chosen)} sources include what they name")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
