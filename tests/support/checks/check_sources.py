#!/usr/bin/env python3
"""Looks at each source by itself, with nothing precompiled: does it include what it names?

  tests/support/checks/check_sources.py [--passed FOLDER] BUILD [PATTERN]

BUILD has a compile_commands.json, made with UCXIO_PRECOMPILE=OFF and UCXIO_UNITY=OFF. PATTERN is a regular expression
for the files' paths. Compiles nothing, reads only; prints what the compiler says.

With --passed, a source is not read again that has passed with the same command, compiler and files: FOLDER remembers,
of each source, the files that were read, and a digest of them all.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile


@functools.cache
def digest_of_file(path):
    """Returns the digest of a file, or of its absence."""
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return "absent"


@functools.cache
def compiler_version(compiler):
    """Returns what a compiler says of itself."""
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


def digest(words, files):
    """Returns the digest of a command and of all the files that it reads. Where the tree lies does not matter."""
    here = os.getcwd()
    parts = [compiler_version(words[0])] + [word.replace(here, ".") for word in words]
    parts += [f"{file} {digest_of_file(file)}" for file in files]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def files_read(rule, directory):
    """Returns the files that a makefile's rule names, relative to the tree where they are in it."""
    words = shlex.split(rule.replace("\\\n", " "))[1:]
    here = os.getcwd()
    paths = {os.path.normpath(os.path.join(directory, word)) for word in words}
    return sorted(os.path.relpath(path) if path.startswith(here + os.sep) else path for path in paths)


class Check:
    """What is looked at in one run."""

    def __init__(self, passed):
        self.passed = passed
        self.unchanged = 0

    def says(self, entry):
        """Returns what the compiler has to say of one source; nothing if all is well."""
        words = shlex.split(entry["command"])
        words = words[next(at for at, word in enumerate(words) if re.search(r"(clang|g)\+\+", word)):]
        place = words.index("-o")
        del words[place:place + 2]
        memory = self.passed and self.passed / hashlib.sha256(os.path.relpath(entry["file"]).encode()).hexdigest()
        known, *files = memory.read_text().splitlines() if memory and memory.exists() else ("",)
        if files and digest(words, files) == known:
            self.unchanged += 1
            return ""
        with tempfile.NamedTemporaryFile("r", suffix=".d") as rule:
            done = subprocess.run([*words, "-fsyntax-only", "-MD", "-MF", rule.name], cwd=entry["directory"],
                                  capture_output=True, text=True, check=False)
            if memory and done.returncode == 0:
                files = files_read(rule.read(), entry["directory"])
                half_written = memory.with_suffix(f".{os.getpid()}")
                half_written.write_text("\n".join([digest(words, files), *files]))
                half_written.replace(memory)
        return done.stderr if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passed", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("pattern", nargs="?", default="", type=re.compile)
    options = parser.parse_args()
    entries = json.loads((options.build / "compile_commands.json").read_text())
    # One entry for each: some are of several targets.
    chosen = list({entry["file"]: entry for entry in entries if re.search(options.pattern, entry["file"])}.values())
    mixed = [entry["file"] for entry in chosen if re.search(r"cmake_pch|/Unity/", entry["command"])]
    if mixed or not chosen:
        sys.exit(f"{options.build} has no sources by themselves: {(mixed or ['none at all'])[0]}")
    if options.passed:
        options.passed.mkdir(parents=True, exist_ok=True)
    check = Check(options.passed)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        complaints = [text for text in workers.map(check.says, chosen) if text]
    print("\n".join(complaints) or
          f"{len(chosen)} sources include what they name; {check.unchanged} are unchanged since they passed")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
