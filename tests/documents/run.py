#!/usr/bin/env python3
"""Runs what README.md and docs/ show: compiles the blocks of C++, and types the blocks of commands.

  run.py compile BUILD_DIR COMPILER    each block of C++ compiles against include/
  run.py type BUILD_DIR COMPILER       the commands of each page, in order, in one shell and a folder of its own
  run.py list                          what is compiled, typed, and left out, and why

A fence names what is in it: ```cpp, ```sh, or what is not run: ```text, ```cmake, ```json, ```python. Further words:
  ```cpp file=NAME     also written to NAME in the folder in which the page's commands run
  ```cpp global        declarations: what is not marked stands in a function, or in a coroutine where it awaits
  ```sh serves=URL     begins a server in the background, which answers there
  ```sh not-run="why"  and ```cpp not-run="why" are left out, and listed
A page's <!-- code ... --> holds declarations for the blocks behind it, such as of the functions that they call.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_RUN = {"text", "cmake", "json", "python", "html"}
SECONDS_OF_A_PAGE = 240

PRELUDE = """#include <ucx/messages.hpp>
#include <ucx/regions.hpp>
#include <ucx/streams.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <coroutine>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
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

# A server that is started in the background answers before the next command is typed. `ucxio` itself says when: its first
# line is there when everything can be read.
SHELL_PRELUDE = r"""
set -eo pipefail
answers() {
  for _ in $(seq 200); do
    "$UCXIO_TOOL" ls --names --timeout 1 "$1" >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  echo "nothing answers at $1" >&2
  return 1
}
"""


class Block:
    def __init__(self, page, line, info, text):
        self.page, self.line, self.text = page, line, text
        words = re.findall(r'[^\s"]+="[^"]*"|\S+', info)
        self.language = words[0] if words else ""
        self.words = dict(word.split("=", 1) if "=" in word else (word, "") for word in words[1:])

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def reason(self):
        """Returns why it is not run, or None."""
        return self.words["not-run"].strip('"') if "not-run" in self.words else None

    @property
    def is_program(self):
        return "int main(" in self.text


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(page):
    """Returns the blocks of a page in order; the language of a hidden comment's is "code"."""
    found, lines = [], page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = re.match(r"(\s*)```(.*)", lines[number])
        if fence or lines[number] == "<!-- code":
            end = next(i for i in range(number + 1, len(lines)) if lines[i].strip() == ("```" if fence else "-->"))
            indent = len(fence.group(1)) if fence else 0
            text = "\n".join(line[indent:] for line in lines[number + 1:end]) + "\n"
            found.append(Block(page, number + 2, fence.group(2) if fence else "code", text))
            number = end
        elif re.match(r"    \S", lines[number]) and number and not lines[number - 1].strip() and not in_list(lines, number):
            sys.exit(f"{page.relative_to(ROOT)}:{number + 1}: an indented block does not say what it is: use a fence")
        number += 1
    for block in found:
        if block.language not in {"cpp", "sh", "code"} | NOT_RUN:
            sys.exit(f"{block.place}: a fence of the unknown language \"{block.language}\"")
    return found


def in_list(lines, number):
    """Returns whether a line goes on with an item of a list."""
    for line in reversed(lines[:number]):
        if line.strip() and not line.startswith(" "):
            return bool(re.match(r"([-*+]|\d+\.)\s", line))
    return False


def sources_of(page):
    """Yields (name, text): each program of a page, and one source of all its fragments."""
    fragments, shared, any_fragment = [], [], False
    for block in blocks_of(page):
        if block.language == "code":
            fragments.append(f'#line {block.line} "{block.page}"\n{block.text}')
        elif block.language == "cpp" and block.reason is None:
            if block.is_program:
                yield block.place, f'#line {block.line} "{block.page}"\n{block.text}'
                continue
            any_fragment = True
            includes = [line for line in block.text.splitlines() if line.startswith("#include")]
            shared += includes
            body = "\n".join("" if line.startswith("#include") else line for line in block.text.splitlines())
            line = f'#line {block.line} "{block.page}"\n'
            if "global" in block.words:
                fragments.append(f"namespace block_{block.line} {{\n{line}{body}\n}}\nusing namespace block_{block.line};\n")
            else:
                returned = "awaiting" if "co_await" in body else "void"
                fragments.append(f"{returned} block_{block.line}() {{\n{line}{body}\n}}\n")
    if any_fragment:
        yield f"{page.relative_to(ROOT)}: fragments", PRELUDE + "\n".join(shared) + "\n" + "\n".join(fragments)


def compile_source(compiler, folder, number, source):
    place, text = source
    path = folder / f"{number}.cpp"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-I", ROOT / "include", path], text=True, capture_output=True,
                          timeout=SECONDS_OF_A_PAGE)
    return (place, done.stderr) if done.returncode else None


def compile_all(build, compiler):
    sources = [source for page in pages() for source in sources_of(page)]
    with tempfile.TemporaryDirectory() as made, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(made)
        failed = [each for each in pool.map(lambda each: compile_source(compiler, folder, *each), enumerate(sources)) if each]
    for place, told in failed:
        print(f"{place}\n{told}", file=sys.stderr)
    print(f"{len(sources)} sources, {len(failed)} failed")
    return not failed


def script_of(blocks):
    """Returns what is typed. A command in the background that serves is waited for."""
    typed = [SHELL_PRELUDE]
    for block in blocks:
        for line in block.text.splitlines():
            typed.append(line)
            at = re.search(r"ucxio serve .*--bind (\S+)", line)
            if at and line.rstrip().endswith("&"):
                typed.append(f"answers ucx://{at.group(1)}")
        if "serves" in block.words:
            typed.append(f"answers {block.words['serves']}")
    return "\n".join(typed) + "\n"


def type_page(page, build, compiler):
    """Returns whether all commands of a page succeeded, in a network of their own where the system grants one."""
    blocks = blocks_of(page)
    typed = [block for block in blocks if block.language == "sh" and block.reason is None]
    if not typed:
        return True
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        clone = folder / "clone"
        (clone / "build").mkdir(parents=True)
        (clone / "build" / "quickstart").symlink_to(build)
        (folder / "home").mkdir()
        for block in blocks:
            if "file" in block.words:
                target = folder / "files" / block.words["file"]
                target.parent.mkdir(exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
        shell = folder / "typed.sh"
        # The files that a page shows are there in whatever folder its commands change to.
        copies = 'cd() { builtin cd "$@" && if [ -d "$SHOWN" ]; then cp -n "$SHOWN"/* . ; fi; }\n'
        shell.write_text(copies + script_of(typed), encoding="utf-8")
        environment = {
            **os.environ, "HOME": str(folder / "home"), "UCXIO_TOOL": str(build / "bin" / "ucxio"), "SHOWN": str(folder / "files"),
            "PATH": f"{build / 'bin'}:{os.environ['PATH']}", "CXX": compiler,
        }
        network = ["unshare", "--net"] if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0 else []
        lo = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"] if network else []
        run = subprocess.Popen([*network, *lo, "bash", str(shell)], cwd=clone, env=environment, text=True, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            told, _ = run.communicate(timeout=SECONDS_OF_A_PAGE)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            told, _ = run.communicate()
            told += f"\nnot done after {SECONDS_OF_A_PAGE} s"
        finally:
            try:
                os.killpg(run.pid, signal.SIGTERM)  # what a page leaves running
            except ProcessLookupError:
                pass
        print(f"{page.relative_to(ROOT)}: {len(typed)} blocks, {'typed' if run.returncode == 0 else 'FAILED'}")
        if run.returncode:
            print(told, file=sys.stderr)
        return run.returncode == 0


def list_all():
    for page in pages():
        for block in blocks_of(page):
            if block.language in {"cpp", "sh"}:
                how = f"left out: {block.reason}" if block.reason is not None else "compiled" if block.language == "cpp" else "typed"
                print(f"{block.place}: {block.language}: {how}")


def main():
    reads = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reads.add_argument("what", choices=["compile", "type", "list"])
    reads.add_argument("build", nargs="?", type=pathlib.Path)
    reads.add_argument("compiler", nargs="?", default="c++")
    asked = reads.parse_args()
    if asked.what == "list":
        return list_all()
    if asked.build is None:
        reads.error("BUILD_DIR is missing")
    if asked.what == "compile":
        sys.exit(not compile_all(asked.build, asked.compiler))
    sys.exit(not all([type_page(page, asked.build.resolve(), asked.compiler) for page in pages()]))


if __name__ == "__main__":
    main()
