#!/usr/bin/env python3
"""Runs what README.md and docs/ show: compiles the blocks of C++, and types the blocks of commands.

  run.py compile BUILD_DIR COMPILER    each block of C++ compiles against include/; each block of JSON is JSON
  run.py type BUILD_DIR COMPILER       the commands of each page, in order, in one shell on a machine of its own
  run.py list                          what is compiled, typed, run, and left out, and why

A fence names what is in it: ```cpp, ```sh, ```json, ```text (output, synopses), ```cmake, ```python (run by
python/tests/test_documents.py). Further words:
  ```cpp file=NAME      is written to NAME where the page's commands then are; so is ```cmake file=NAME, which needs it
  ```cpp run            is also built and run, and ends with 0 within a minute
  ```cpp global         a fragment that declares; others stand in a function, or in a coroutine where they await
  ```... needs=HEADER,...    is left out where the compiler has none of these headers
  ```sh terminal        is typed in a terminal of its own, which is closed by close_terminal or at the page's end;
                        $TERMINAL is a file of its output, $TERMINAL_PID its process; wait_until COMMAND... repeats it
  ```sh terminal says=TEXT   and the next command is typed when its output has TEXT
  ```sh serves=URL      and the next command is typed when a server answers there; `ucxio serve --bind X` needs no word
  ```... not-run="why"  is left out, and listed
What has #include or main() compiles by itself; the rest of a page is one source, behind the usual headers. A page's
<!-- code ... --> holds declarations for its fragments, and <!-- sh ... --> commands that prepare or check.

A machine of its own: see own_machine.sh. `type` ends with 77 where the system grants no namespaces for it. A digest in
BUILD_DIR tells that nothing changed since the blocks passed; where $UCXIO_PASSED names a folder, one in there, for a
week. With --again they are run all the same.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from blocks import ROOT, blocks_of, malformed, pages, shown

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_OF_A_PAGE = 240
SECONDS_OF_A_PROGRAM = 60
PROGRAMS = ["ucxio", "checkpoint_pipe"]  # of a build, that the pages run
LEFT_OUT = 77
LONGEST_KEPT = 7 * 24 * 3600  # seconds

PRELUDE = """#include <ucx/messages.hpp>
#include <ucx/regions.hpp>
#include <ucx/streams.hpp>
#include <algorithm>
#include <chrono>
#include <coroutine>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <system_error>
#include <vector>
using namespace std::chrono_literals;
struct awaiting {
  struct promise_type {
    awaiting get_return_object() { return {}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};
"""

# What is typed in other terminals is waited for: no command finds a server that is not there yet.
SHELL_PRELUDE = r"""set -eo pipefail
trap 'echo "failed at script line $LINENO: $BASH_COMMAND" >&2' ERR
close_terminal() { kill -- "-$TERMINAL_PID" && wait "$TERMINAL_PID" || true; }
wait_until() {
  local end=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "not so after a minute: $*" >&2 && return 1; }
    sleep 0.1
  done
}
answers() { wait_until "$UCXIO_TOOL" ls --names --timeout 1 "$1" || return 1; }
says() { wait_until grep -qF -- "$1" "$TERMINAL" || return 1; }
"""


def source_of(block, text):
    return f'#line {block.line} "{shown(block.page)}"\n{text}'


def sources_of(page, compiler):
    """Yields (place, text): each block that is a source by itself, and one source of all fragments of a page."""
    declared, fragments = [], []
    for block in blocks_of(page):
        if block.language == "code":
            declared.append(source_of(block, block.text))
        elif block.language == "cpp" and block.reason is None and not lacks_header(block, compiler):
            if block.is_whole:
                yield block.place, source_of(block, block.text)
                continue
            if "global" in block.words:
                name = f"block_{block.line}"
                fragments.append(f"namespace {name} {{\n{source_of(block, block.text)}}}\nusing namespace {name};\n")
            else:
                returned = "awaiting" if "co_await" in block.text else "void"
                fragments.append(f"{returned} block_{block.line}() {{\n{source_of(block, block.text)}}}\n")
    if fragments:
        yield f"{shown(page)}: fragments", PRELUDE + "\n".join(declared + fragments)


def lacks_header(block, compiler):
    if "needs" not in block.words:
        return False
    found = " || ".join(f"__has_include(<{header}>)" for header in block.words["needs"].split(","))
    tried = subprocess.run([compiler, "-std=c++20", "-x", "c++", "-E", "-"], text=True, capture_output=True,
                           input=f"#if !({found})\n#error\n#endif\n", timeout=SECONDS_OF_A_PROGRAM)
    if tried.returncode:
        print(f"{block.place}: left out: there is no {block.words['needs']} here")
    return tried.returncode != 0


def compile_source(compiler, seconds, source):
    place, text = source
    try:
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", ROOT / "include", "-x", "c++", "-"],
                              input=text, text=True, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return place, f"not compiled after {seconds} s"
    return (place, done.stderr) if done.returncode else None


def wrong_json(page):
    for block in blocks_of(page):
        if block.language == "json" and block.reason is None:
            try:
                json.loads(block.text)
            except ValueError as wrong:
                yield block.place, str(wrong)


def compile_all(asked):
    sources = [source for page in asked.pages for source in sources_of(page, asked.compiler)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = pool.map(lambda source: compile_source(asked.compiler, asked.seconds, source), sources)
        failed = [each for each in compiled if each] + [each for page in asked.pages for each in wrong_json(page)]
    for place, told in failed:
        print(f"{place}\n{told}", file=sys.stderr)
    print(f"{len(sources)} sources compiled, {len(failed)} blocks failed")
    return not failed


def is_typed(block, compiler):
    if block.reason is not None:
        return False
    return (block.language == "sh" or bool({"run", "file"} & block.words.keys())) and not lacks_header(block, compiler)


def lines_typed(block):
    """Yields (line of the page, text): the commands of one block."""
    if block.language != "sh":
        name = block.words.get("file", f"block_{block.line}.cpp")
        yield block.line, f"cp '{kept_name(block)}' '{name}'"
        if "run" in block.words:
            yield block.line, f"$CXX -std=c++20 -g0 '{name}' -o '{name}.run' $(pkg-config --cflags --libs ucxio)"
            yield block.line, f"timeout {SECONDS_OF_A_PROGRAM} './{name}.run' </dev/null"
        return
    terminal = "terminal" in block.words
    if terminal:
        yield block.line, 'TERMINAL=$(mktemp -p "$TERMINALS"); set -m; {'
    served = [f"answers '{block.words['serves']}'"] if "serves" in block.words else []
    for number, line in enumerate(block.text.splitlines()):
        yield block.line + number, line
        at = re.search(r"ucxio serve [^#]*--bind (\S+)", line)
        scheme = "ucx" if "--ucx" in line else "ucxs"
        served += [f"answers '{scheme}://{at.group(1)}'"] if at else []
        if line.endswith("&") and served and not terminal:
            yield block.line + number, served.pop()
    if terminal:
        yield block.line, '} >"$TERMINAL" 2>&1 & TERMINAL_PID=$!; set +m'
    if "says" in block.words:
        yield block.line, f"says '{block.words['says']}'"
    for waits in served:
        yield block.line, waits


def kept_name(block):
    return f"/tmp/shown/{block.line}"


def script_of(blocks):
    """Returns the script, and the page's line of each of its lines."""
    script, at = SHELL_PRELUDE, [None] * SHELL_PRELUDE.count("\n")
    for block in blocks:
        for line, text in lines_typed(block):
            script += text + "\n"
            at.append(line)
    return script, at


def run_bounded(command, seconds, **options):
    """Returns the exit code and the output; ends what is left."""
    if shutil.which(command[0]) is None:
        return 127, f"there is no {command[0]}\n"
    run = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace", start_new_session=True, **options)
    try:
        told, _ = run.communicate(timeout=seconds)
        return run.returncode, told
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        told, _ = run.communicate()
        return 124, f"{told}not done after {seconds} s\n"
    finally:
        try:
            os.killpg(run.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def namespaces():
    """Returns how to start a program on a machine of its own; ends with 77 where the system grants none."""
    own = ["--net", "--mount", "--pid", "--fork", "--kill-child"]
    for how in (["unshare", *own], ["unshare", "--user", "--map-root-user", *own]):
        with tempfile.TemporaryDirectory() as made:
            code, told = run_bounded([*how, HERE / "own_machine.sh", made, "--", "true"], SECONDS_OF_A_PROGRAM)
            if code == 0:
                return how
    print("Nothing was typed: the pages need a network, mounts and processes of their own, and this system grants none: "
          + told.strip())
    sys.exit(LEFT_OUT)


def environment_of(folder, asked):
    """Returns the environment of a page's commands: ucxio is installed, as README.md tells, in a folder."""
    not_the_pages = ("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "UCXIO_TOKEN")
    installed, outer = asked.installed, {name: value for name, value in os.environ.items() if name not in not_the_pages}
    return {
        **outer, "HOME": str(folder / "home"), "TERMINALS": str(folder / "terminals"), "UCXIO_TOOL": f"{installed}/bin/ucxio",
        "PATH": f"{installed}/bin:{outer['PATH']}", "LD_LIBRARY_PATH": f"{installed}/lib:{outer.get('LD_LIBRARY_PATH', '')}",
        "PKG_CONFIG_PATH": f"{installed}/lib/pkgconfig", "CMAKE_PREFIX_PATH": str(installed), "CXX": asked.compiler,
    }


def type_page(page, asked, how):
    """Returns whether all commands of a page succeeded."""
    blocks = [block for block in blocks_of(page) if is_typed(block, asked.compiler)]
    if not any(not block.hidden for block in blocks):
        return True
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        clone, shell = folder / "clone", folder / "typed.sh"
        (clone / "build").mkdir(parents=True)
        for name in ("quickstart", "dev", "release"):
            (clone / "build" / name).symlink_to(asked.build)
        for name in ("home", "terminals", "shown"):
            (folder / name).mkdir()
        for block in blocks:
            if block.language != "sh":
                (folder / "shown" / str(block.line)).write_text(block.text, encoding="utf-8")
        script, at = script_of(blocks)
        shell.write_text(f"ln -s {folder}/shown /tmp/shown; " + script, encoding="utf-8")
        seen = [ROOT, asked.build, asked.installed, *asked.see]
        code, told = run_bounded([*how, HERE / "own_machine.sh", folder, *seen, "--", "bash", shell], asked.seconds,
                                 cwd=clone, env=environment_of(folder, asked))
        runs = sum("run" in block.words for block in blocks)
        typed = sum(block.language == "sh" and not block.hidden for block in blocks)
        print(f"{shown(page)}: {typed} blocks typed, {runs} programs run{': FAILED' if code else ''}", flush=True)
        if code or asked.verbose:
            lined = re.sub(r"script line (\d+)", lambda found: f"{shown(page)}:{at[int(found.group(1)) - 1]}", told)
            said = [each.read_text(errors="replace") for each in sorted((folder / "terminals").iterdir())]
            print(lined, *(f"-- a terminal said:\n{each}" for each in said), sep="\n", file=sys.stderr, flush=True)
        return code == 0


def type_all(asked):
    how = namespaces()
    with tempfile.TemporaryDirectory() as made:
        asked.installed = pathlib.Path(made) / "installed"
        code, told = run_bounded(["cmake", "--install", asked.build, "--prefix", asked.installed], SECONDS_OF_A_PAGE)
        if code:
            print(f"{asked.build} can not be installed:\n{told}", file=sys.stderr)
            return False
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return all(list(pool.map(lambda page: type_page(page, asked, how), asked.pages)))


def list_all(asked):
    for page in asked.pages:
        for block in blocks_of(page):
            if block.hidden or block.language in {"text", "json", "python"} and block.reason is None:
                continue
            done = {"sh": "typed", "cmake": "included by a project that is built"}.get(block.language, "compiled")
            did = "compiled, run" if "run" in block.words else done
            print(f"{block.place}: {block.language}: " + (did if block.reason is None else f"left out: {block.reason}"))


def facts():
    """Returns what the system has installed, and which system it is."""
    try:
        packages = subprocess.run(["dpkg-query", "-W"], text=True, capture_output=True, timeout=SECONDS_OF_A_PROGRAM).stdout
    except FileNotFoundError:
        packages = ""
    return f"{platform.uname()} {os.getuid()} {packages}"


def has_passed(asked, now):
    """Returns the file that tells what passed, and whether it was this."""
    if kept := os.environ.get("UCXIO_PASSED"):
        path = pathlib.Path(kept) / f"documents.{asked.what}-{now[:32]}"
        return path, path.exists() and time.time() - path.stat().st_mtime < LONGEST_KEPT
    path = asked.build / f"documents.{asked.what}"
    return path, path.exists() and path.read_text() == now


def digest(asked):
    """Returns a digest of all that decides whether the blocks pass."""
    files = [*asked.pages, *sorted(HERE.iterdir()), *sorted((ROOT / "include").rglob("*.[hi]pp"))]
    if asked.what == "type":
        files += [*sorted(asked.build.glob("lib/libucxio-*.so")), *(asked.build / "bin" / each for each in PROGRAMS)]
        files += sorted((ROOT / "cmake").iterdir())
    whole = hashlib.sha256(facts().encode())
    compiler = subprocess.run([asked.compiler, "--version"], capture_output=True, timeout=SECONDS_OF_A_PROGRAM)
    whole.update(compiler.stdout + os.environ.get("LD_LIBRARY_PATH", "").encode())
    for path in files:
        if path.is_file():
            whole.update(f"{path}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def main():
    reads = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reads.add_argument("what", choices=["compile", "type", "list"])
    reads.add_argument("build", nargs="?", type=pathlib.Path)
    reads.add_argument("compiler", nargs="?", default="c++")
    reads.add_argument("--pages", nargs="+", type=pathlib.Path, help="these instead of all; no digest is kept")
    reads.add_argument("--seconds", type=int, default=SECONDS_OF_A_PAGE, help="the bound of each page and source")
    reads.add_argument("--again", action="store_true", help="also if nothing changed")
    reads.add_argument("--see", nargs="+", default=[], help="further folders that the commands see")
    reads.add_argument("--verbose", action="store_true", help="print what the pages' commands print")
    asked = reads.parse_args()
    some = bool(asked.pages)
    asked.pages = [page.resolve() for page in asked.pages] if some else pages()
    try:
        if asked.what == "list":
            return list_all(asked)
        if asked.build is None:
            reads.error("BUILD_DIR is missing")
        asked.build = asked.build.resolve()
        now = digest(asked)
        passed, is_known = has_passed(asked, now)
        if not some and not asked.again and is_known:
            print("unchanged since it passed")
            return None
        if not (compile_all if asked.what == "compile" else type_all)(asked):
            sys.exit(1)
        if not some:
            passed.parent.mkdir(parents=True, exist_ok=True)
            passed.write_text(now)
    except malformed as told:
        sys.exit(str(told))


if __name__ == "__main__":
    main()
