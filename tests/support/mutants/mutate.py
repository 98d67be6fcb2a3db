#!/usr/bin/env python3
"""Breaks the source in each way of tests/support/mutants/list.toml, one at a time, and says which tests notice.

  tests/support/mutants/mutate.py [--tree DIR] [--work DIR] [--presets P,...] [--every-suite] [--tsv FILE] [NAME...]

All mutants are compiled at once, into a scratch copy of the tree; the environment says which one is on. One run of all
tests without a mutant shows which cases come by which mutant; with a mutant on, only these cases run, up to the first
that fails, crashes, or takes too long. A mutant that no suite of a preset notices goes on to the next preset.

  --tree DIR       the tree that is broken (default: this one, with what is not committed)
  --work DIR       where the copies and their builds are kept (default: build/mutants)
  --presets P,...  default: dev,asan,tsan
  --every-suite    goes on behind the first suite that notices, so that the table has all of them
  --tsv FILE       writes the table to FILE, too
  --fit            only looks whether each mutant still fits the source
  NAME             the mutants of these names only

Takes about an hour on two cores. Exits with 1 where a mutant lives that list.toml does not say to live (`lives`, with
the reason), or where the source has changed so that a mutant does not fit any more: then mend list.toml.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
RUN = HERE.parent / "run"
KINDS = ("bound", "state", "unlock", "swallowed-error", "order", "sign", "wake-up", "owner", "peer-check", "leak")
LANES = 3 * os.cpu_count()  # programs at a time: tests wait more than they work
MAP_SIZE = 4096  # of switch.hpp
# In this order they are asked: what is quick first.
SUITES = {
    "dev": ("unit", "device", "fabric", "conformance", "gpu", "tool", "process"),
    "asan": ("unit", "device", "gpu", "fabric", "conformance"),
    "tsan": ("unit", "device", "fabric", "conformance"),
}
ENVIRONMENT = {"UCX_HANDLE_ERRORS": "none", "RES_OPTIONS": "timeout:1 attempts:1"}


@dataclasses.dataclass
class Mutant:
    """One way in which the source is broken."""

    number: int
    name: str
    kind: str
    file: str
    form: str
    was: str
    becomes: str
    why: str
    lives: str = ""
    noticed: list = dataclasses.field(default_factory=list)
    reached_by: int = 0

    def apply(self, text):
        """Returns the file's text with both versions in it."""
        condition = f"ucxio_mutants::on({self.number})"
        if self.form == "expression":
            both = f"({condition} ? ({self.becomes}) : ({self.was}))"
        else:
            both = f"if ({condition}) {{ {self.becomes} }} else {{ {self.was} }}"
        return text.replace(self.was, both)

    def begins_a_statement(self, text):
        """Returns whether what stands before a statement that is replaced ends another one."""
        before = re.sub(r"//[^\n]*", "", text[:text.index(self.was)]).rstrip()
        return self.form == "expression" or before[-1:] in ";{}):"


def read_mutants(path):
    """Returns what list.toml has, or ends with what is wrong with it."""
    tables = tomllib.loads(path.read_text())["mutant"]
    mutants = [Mutant(number=number, **table) for number, table in enumerate(tables, 1)]
    for mutant in mutants:
        if mutant.kind not in KINDS or mutant.form not in ("expression", "statement"):
            sys.exit(f"{path}: {mutant.name}: an unknown kind or form")
    if len({mutant.name for mutant in mutants}) != len(mutants):
        sys.exit(f"{path}: two mutants have one name")
    return mutants


def files_of(tree):
    """Returns the files of a tree, but for what was built, with what is in them."""
    files = {}
    for folder, folders, names in os.walk(tree):
        if pathlib.Path(folder) == tree:
            folders[:] = [name for name in folders if not re.match(r"build|out$|\.git$|\.cache$", name)]
        for name in names:
            path = pathlib.Path(folder, name)
            files[str(path.relative_to(tree))] = path.read_bytes()
    return files


def file_of(mutant, files):
    """Returns the one file that has the mutant's text: the one that it names, or the one where that has gone."""
    sources = [name for name in files if re.match(r"(src|streams|tools)/.*\.[ch]pp$", name)]
    counts = {name: files[name].decode().count(mutant.was) for name in sources}
    if counts.get(mutant.file) == 1:
        return mutant.file
    found = [name for name in sources if counts[name]]
    return found[0] if len(found) == 1 and counts[found[0]] == 1 else None


def break_files(files, mutants):
    """Puts all mutants into the text of these files; ends where one does not fit."""
    broken, wrong = set(), []
    for mutant in mutants:
        name = file_of(mutant, files)
        if name and not mutant.begins_a_statement(files[name].decode()):
            wrong.append(f"{mutant.name}: its text begins within a statement of {name}")
        elif name:
            files[name] = mutant.apply(files[name].decode()).encode()
            broken.add(name)
        else:
            wrong.append(f"{mutant.name}: its text is not in {mutant.file}, nor once elsewhere")
    if wrong:
        sys.exit("These mutants do not fit the source any more; mend tests/support/mutants/list.toml:\n"
                 + "\n".join(wrong))
    for name in broken:
        files[name] = b'#include "ucxio_mutants.hpp"\n' + files[name]
    files["include/ucxio_mutants.hpp"] = (HERE / "switch.hpp").read_bytes()
    files["mutants_listener.cpp"] = (HERE / "listener.cpp").read_bytes()


def make_copy(tree, target, mutants):
    """Makes the scratch copy. A file that is as it was is not written, and so not compiled again."""
    files = files_of(tree)
    break_files(files, mutants)
    for path in [target / name for name in files_of(target) if name not in files] if target.exists() else []:
        path.unlink()
    for name, data in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
            if (tree / name).exists():
                shutil.copymode(tree / name, path)


def build(copy, preset, newest):
    """Builds the test programs of a preset in the copy, and returns the folder of the build."""
    folder = copy / "build" / preset
    suites = [f"ucxio-{suite}-tests" for suite in SUITES[preset]]
    extra = ["ucxio-test-peer"] if preset == "dev" else []
    configure = ["cmake", "--preset", preset, "-DUCXIO_BUILD_BENCHMARKS=OFF", "-DUCXIO_BUILD_EXAMPLES=OFF",
                 f"-DCMAKE_PROJECT_ucxio_INCLUDE={HERE / 'inject.cmake'}",
                 f"-DUCXIO_MUTANTS_LISTENER={copy / 'mutants_listener.cpp'}"]
    if preset == "asan" and newest:
        configure.append(f"-DCMAKE_PREFIX_PATH={newest}")
    with open(copy / f"{preset}.log", "w", encoding="utf-8") as log:
        for command in (configure, ["cmake", "--build", folder, "--target", *suites, *extra]):
            if subprocess.run(command, cwd=copy, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
                sys.exit(f"the mutated copy does not build: see {log.name}")
    return folder


class Preset:
    """The programs of one build, and which of their cases come by which mutant."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        own = {name: value for name, value in os.environ.items() if not name.startswith("UCXIO_")}
        self.environment = own | ENVIRONMENT
        suppressions = folder.parent.parent / "tests/suppressions"
        if name != "dev":
            self.environment["UCX_MEM_EVENTS"] = "n"
            self.environment["ASAN_OPTIONS"] = ("allocator_may_return_null=1:detect_stack_use_after_return=1:"
                                                f"suppressions={suppressions}/asan.txt")
            self.environment["LSAN_OPTIONS"] = f"suppressions={suppressions}/lsan.txt:print_suppressions=0"
            self.environment["TSAN_OPTIONS"] = (f"allocator_may_return_null=1:suppressions={suppressions}/tsan.txt:"
                                                "print_suppressions=0:halt_on_error=1")
        self.reached = {}  # of each suite: a list of (case, milliseconds, mutants)
        self.unusable = []  # cases that fail without a mutant

    def run(self, suite, environment, *options):
        """Runs cases of a suite; returns whether none failed, and what was printed."""
        if suite == "gpu":
            environment = dict(environment, UCXIO_CUDA_DRIVER=str(self.folder / "lib/libucxio-ready-cuda.so"))
        around = ["setarch", os.uname().machine, "-R"] if self.name == "tsan" else []
        done = subprocess.run([*around, RUN / "run_cases.py", "--label", suite, *options,
                               self.folder / "bin" / f"ucxio-{suite}-tests"],
                              env=environment, capture_output=True, text=True, errors="replace", check=False)
        return done.returncode == 0, done.stdout

    def look(self):
        """Runs everything without a mutant, to see who comes by what."""
        with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
            list(lanes.map(self.look_at, SUITES[self.name]))

    def look_at(self, suite):
        """Does that with one suite."""
        log, reached = self.folder / f"{suite}.reached", self.folder / f"{suite}.map"
        log.unlink(missing_ok=True)
        reached.write_bytes(bytes(MAP_SIZE))
        well, said = self.run(suite, dict(self.environment, UCXIO_MUTANTS_REACHED=str(reached),
                                          UCXIO_MUTANTS_LOG=str(log)))
        failed = {line.split(": ")[1] for line in said.splitlines() if line.startswith("FAILED: ")}
        if not well:
            self.unusable += sorted(failed) or [f"some of {suite}"]
            print(f"{self.name}: fails without a mutant: {' '.join(sorted(failed))}\n{said[-2000:]}", flush=True)
        cases = [line.split("\t") for line in log.read_text().splitlines()]
        self.reached[suite] = [(case, int(ms), {int(number) for number in numbers})
                               for case, ms, *numbers in cases if case not in failed]
        print(f"{self.name}: {suite}: {len(self.reached[suite])} cases looked at", flush=True)

    def ask(self, mutant, suite):
        """Returns what of a suite notices the mutant: the name of a case, or nothing."""
        cases = [(case, ms) for case, ms, numbers in self.reached[suite] if mutant.number in numbers]
        mutant.reached_by += len(cases)
        if not cases:
            return ""
        names = self.folder / f"{suite}.{mutant.number}.cases"
        names.write_text("\n".join(case for case, _ in cases))
        limit = 30 + 5 * max(ms for _, ms in cases) // 1000
        options = ("--first-failure", "--limit", str(limit), "--names", names)
        well, said = self.run(suite, self.environment | {"UCXIO_MUTANT": str(mutant.number)}, *options)
        if well:
            return ""
        found = [line.split(": ")[1] for line in said.splitlines() if line.startswith("FAILED: ")]
        if not found:
            sys.exit(f"{mutant.name}: {suite} failed, but no case of it:\n{said[-2000:]}")
        # One that fails now and then proves nothing.
        names.write_text(found[0])
        if found[0] in {case for case, _ in cases} and not self.run(suite, self.environment, *options)[0]:
            self.unusable.append(found[0])
        return found[0]


def ask_all(preset, mutants, every_suite):
    """Asks the suites of one preset about each of these mutants."""

    def ask(mutant):
        for suite in SUITES[preset.name]:
            case = preset.ask(mutant, suite)
            if case:
                mutant.noticed.append((preset.name, suite, case))
                if not every_suite:
                    break
        print(row(mutant), flush=True)

    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(ask, mutants))


def row(mutant):
    """Returns one line of the table."""
    noticed = ", ".join(f"{preset}/{suite} ({case})" for preset, suite, case in mutant.noticed)
    return f"{mutant.number}\t{mutant.kind}\t{mutant.name}\t{noticed or f'LIVES, reached by {mutant.reached_by} cases'}"


def newest_ucx():
    """Returns the prefix of UCX's wheel, which is fetched where it is not there."""
    return subprocess.run([RUN / "newest_ucx.sh"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=pathlib.Path, default=TOP)
    parser.add_argument("--work", type=pathlib.Path, default=TOP / "build/mutants")
    parser.add_argument("--presets", default="dev,asan,tsan")
    parser.add_argument("--every-suite", action="store_true")
    parser.add_argument("--tsv", type=pathlib.Path)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    mutants = read_mutants(HERE / "list.toml")
    if options.fit:
        break_files(files_of(options.tree.resolve()), mutants)
        print(f"{len(mutants)} mutants fit the source")
        return
    if unknown := set(options.names) - {mutant.name for mutant in mutants}:
        parser.error(f"no mutant has the name {', '.join(sorted(unknown))}")
    copy = options.work.resolve()
    make_copy(options.tree.resolve(), copy, mutants)
    asked = [mutant for mutant in mutants if not options.names or mutant.name in options.names]
    unusable = []
    for name in options.presets.split(","):
        left = [mutant for mutant in asked if not mutant.noticed]
        if not left:
            break
        preset = Preset(name, build(copy, name, newest_ucx()))
        preset.look()
        ask_all(preset, left, options.every_suite)
        unusable += preset.unusable

    table = [row(mutant) for mutant in asked]
    if options.tsv:
        options.tsv.write_text("\n".join(table) + "\n")
    if unusable:
        print(f"these cases fail without a mutant, too: {' '.join(unusable)}")
    alive = [mutant for mutant in asked if not mutant.noticed]
    unexpected = [mutant for mutant in alive if not mutant.lives]
    print("\n".join(table))
    print(f"{len(asked) - len(alive)} of {len(asked)} mutants were noticed; {len(alive)} live, "
          f"of which {len(alive) - len(unexpected)} are known to, for a reason")
    sys.exit(1 if unexpected or unusable else 0)


if __name__ == "__main__":
    main()
