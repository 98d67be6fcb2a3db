#!/usr/bin/env python3
"""Runs the cases of a GoogleTest program in one process, and says of each how it ended.

  run_cases.py [OPTION...] PROGRAM [-- ARGUMENT...]

  --part I/N        runs every N-th case, from the I-th on (I counts from 0)
  --filter F        runs only what GoogleTest's filter F names
  --instances N     of each parameterised case, runs one instance for each transport; or N, where there is no transport
  --names FILE      runs only the cases that FILE names, one a line
  --limit S         ends a case that takes longer than S seconds
  --results FILE    writes one line a case: status, milliseconds, name, and the reason of a skip
  --label L         the name of the program in what is printed
  --list            prints the names of the cases, and runs none
  --first-failure   stops behind the first case that fails
  --alone           the program starts no other program of this build

A case that crashes the program, or that takes too long, fails by its name; the cases behind it run in a new process.
A case that was chosen and did not run is a failure. What a case printed is shown when it fails.
With gdb installed, the stacks of a program that took too long are shown.

$UCXIO_CASES, another filter, leaves of all these only what it names, which may be none.
$UCXIO_PASSED names a folder that keeps what passed. Cases whose program, libraries, options, environment and system are
those of a run that passed are not run again: they count as they ended then.
$UCXIO_PROGRESS names a file to which each case that ends appends one letter: p(assed), s(kipped) or f(ailed).

Exits with 0 if every case passed or was skipped, else with 1.
"""
import argparse
import collections
import ctypes
import dataclasses
import hashlib
import os
import platform
import pathlib
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BEGIN = re.compile(rb"^\[ RUN      \] (\S+)")
END = re.compile(rb"^(.*)\[  (     OK|FAILED |SKIPPED) \] ([^\s,]+)(?:, where .*)? \((\d+) ms\)$")
CLOSING = re.compile(rb"^\[==========\] \d+ tests? from .* ran\.")
TRANSPORT = re.compile(r"(?:tcp|verbs)_(?:by_address|by_listener|to_itself)|shared_memory|loopback|mapped|borrowed")
STATUS = {b"     OK": "passed", b"FAILED ": "failed", b"SKIPPED": "skipped"}
LIBC = ctypes.CDLL(None)
ONLY = os.environ.get("UCXIO_CASES")
# Variables, and facts of the system, on which outcomes depend.
OUTCOMES = re.compile(r"UCX|LD_|LC_|LANG|PATH$|HOME$|TMPDIR$|XDG_|OPENSSL_|RES_OPTIONS$|[A-Z]+SAN_OPTIONS$")
FACTS = ("/proc/self/limits", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/net/ipv6/conf/all/disable_ipv6")
FOLDERS = ("/sys/class/net", "/sys/class/infiniband")
LONGEST_KEPT = 7 * 24 * 3600  # seconds; then a race gets another chance to show
NO_INPUT = {"UCXIO_PROGRESS", "UCXIO_PASSED", "UCXIO_EXPECTED_SKIPS"}
MOST_KEPT = 16  # outcomes of one label
KEPT_OUTPUT = 256 * 1024  # bytes of a case's output that are kept, of the beginning and of the end


@dataclasses.dataclass
class Case:
    """One case that ended, or one that has begun."""

    name: str
    begun: float
    status: str = "running"
    milliseconds: int = 0
    output: bytearray = dataclasses.field(default_factory=bytearray)

    def say(self, line):
        """Keeps a line of the case's output."""
        self.output += line
        if len(self.output) > 2 * KEPT_OUTPUT:
            self.output[KEPT_OUTPUT:-KEPT_OUTPUT] = b"\n[... some output is left out ...]\n"

    def reason(self):
        """Returns why the case was skipped, in one line."""
        text = self.output.decode(errors="replace")
        found = re.search(r": Skipped\n(.*?)(?:\n\n|\n\[|\Z)", text, re.DOTALL)
        return " ".join(found.group(1).split()) if found else "no reason given"


def list_cases(program, pattern):
    """Returns the names of the program's cases, in its order."""
    done = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{program} --gtest_list_tests ended with {done.returncode}")
    names, suite = [], ""
    for line in done.stdout.decode().splitlines():
        word = line.split("#")[0].rstrip()
        if line.startswith("  "):
            names.append(suite + word.strip())
        elif word.endswith("."):
            suite = word
    return names


def end_words(status):
    """Says how a process ended."""
    if status < 0:
        return f"signal {-status}, {signal.strsignal(-status)}"
    return f"exit status {status}"


def stacks_of(pid):
    """Returns the stacks of a process's threads, if gdb can tell."""
    if not shutil.which("gdb"):
        return b"(no gdb is installed, which would show the stacks)\n"
    try:
        done = subprocess.run(["gdb", "-q", "-batch", "-p", str(pid), "-ex", "thread apply all backtrace 40"],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        return done.stdout
    except subprocess.TimeoutExpired:
        return b"(gdb did not show the stacks within a minute)\n"


def prepare_child():
    """Has the system kill the calling process when this program ends, however it ends. No signal is ignored: those of a
    shell's background jobs would be, and tests interrupt programs."""
    LIBC.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(each, signal.SIG_DFL)


class Process:
    """One process of the program, which runs some of the cases."""

    def __init__(self, program, arguments, names, first_failure):
        self.flags = tempfile.NamedTemporaryFile("w", prefix="ucxio-cases-")
        # No name has a minus or a question mark, which mean something in a filter.
        self.flags.write(f"--gtest_filter={':'.join(names)}\n--gtest_color=no\n")
        if first_failure:
            self.flags.write("--gtest_fail_fast\n")
        self.flags.flush()
        # Short: the names of Unix sockets have an end. Of its own: other processes' may stand still, and hold its lock.
        self.runtime = tempfile.TemporaryDirectory(prefix="ucxio-run-", dir="/tmp", ignore_cleanup_errors=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}
        environment["XDG_RUNTIME_DIR"] = self.runtime.name
        self.child = subprocess.Popen([program, f"--gtest_flagfile={self.flags.name}", *arguments], env=environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      start_new_session=True, preexec_fn=prepare_child)
        self.waiting = selectors.DefaultSelector()
        self.waiting.register(self.child.stdout, selectors.EVENT_READ)
        os.set_blocking(self.child.stdout.fileno(), False)
        self.rest = b""
        self.at_end = False

    def lines(self, seconds):
        """Returns the whole lines that come within so many seconds; none if none came."""
        if self.at_end:
            time.sleep(seconds)
            return []
        if not self.waiting.select(seconds):
            return []
        try:
            some = os.read(self.child.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return []
        if not some:
            self.at_end = True
            return [self.rest + b"\n"] if self.rest else []
        *whole, self.rest = (self.rest + some).split(b"\n")
        return [line + b"\n" for line in whole]

    def kill(self):
        """Ends the process, and what it has started in its session."""
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self):
        """Waits for the process's end and lets go of everything."""
        self.kill()
        status = self.child.wait()
        self.child.stdout.close()
        self.flags.close()
        self.runtime.cleanup()
        return status


class Run:
    """All cases of one call."""

    def __init__(self, options):
        self.options = options
        self.ended = []
        self.results = open(options.results, "w", encoding="utf-8", buffering=1) if options.results else None
        progress = os.environ.get("UCXIO_PROGRESS")
        self.progress = open(progress, "ab", buffering=0) if progress else None

    def note(self, case):
        """Keeps a case that ended, and shows what a failed one printed."""
        self.ended.append(case)
        if self.results:
            reason = case.reason() if case.status == "skipped" else ""
            self.results.write(f"{case.status}\t{case.milliseconds}\t{case.name}\t{reason}\n")
        if self.progress:
            self.progress.write(case.status[:1].encode())
        if case.status == "failed":
            sys.stdout.buffer.write(case.output)
            sys.stdout.flush()

    def all_of(self, names):
        """Runs these cases, in as many processes as crashes make necessary."""
        left = list(names)
        while left:
            before = len(left)
            self.some_of(left)
            if self.options.first_failure and any(case.status == "failed" for case in self.ended):
                return
            ended = {case.name for case in self.ended}
            left = [name for name in left if name not in ended]
            if len(left) == before:
                return

    def some_of(self, names):
        """Runs these cases in one process, up to one that crashes it or takes too long."""
        process = Process(self.options.program, self.options.arguments, names, self.options.first_failure)
        try:
            self.follow(process)
        finally:
            process.close()

    def follow(self, process):
        """Notes how the cases of a process end."""
        running, outside, since_exit, closed = None, Case("", time.monotonic()), None, False
        while True:
            for line in process.lines(0.2):
                if found := BEGIN.match(line):
                    running = Case(found.group(1).decode(), time.monotonic())
                    running.say(line)
                elif running and (found := END.match(line)) and found.group(3).decode() == running.name:
                    running.say(line)
                    running.status, running.milliseconds = STATUS[found.group(2)], int(found.group(4))
                    self.note(running)
                    running, outside = None, Case("", time.monotonic())
                else:
                    closed = closed or CLOSING.match(line) is not None
                    (running or outside).say(line)
            current, now = running or outside, time.monotonic()
            if process.child.poll() is not None:
                # A process that a case left behind may hold the pipe open.
                since_exit = since_exit or now
                if process.at_end or now - since_exit > 2:
                    break
            elif now - current.begun > self.options.limit:
                current.say(stacks_of(process.child.pid))
                current.say(f"took longer than {self.options.limit} s, and was ended\n".encode())
                self.give_up(running, outside)
                return
        # GoogleTest exits with 1 where a case failed.
        status = process.child.returncode
        failed = any(case.status == "failed" for case in self.ended)
        if running or status not in ((0, 1) if failed else (0,)):
            current.say(f"ended the program: {end_words(status)}\n".encode())
            self.give_up(running, outside)
        elif not closed:
            # What comes at the end, such as a search for leaks, did not.
            outside.say(b"ended the program before GoogleTest was at its end\n")
            self.give_up(None, outside)

    def give_up(self, running, outside):
        """Notes the case that ended its process; or, where there was none, the process itself."""
        case = running or outside
        case.name = case.name or f"{self.options.label}.outside_of_all_cases"
        case.status = "failed"
        case.milliseconds = int((time.monotonic() - case.begun) * 1000)
        case.say(f"[  FAILED  ] {case.name}\n".encode())
        self.note(case)


def some_instances(names, most):
    """Leaves, of each parameterised case, one instance for each transport that its parameters name; where they name
    none, at most so many. The next case of the suite gets the next ones."""
    groups = collections.defaultdict(lambda: collections.defaultdict(list))  # of each case: by transport
    for name in names:
        case = name.rsplit("/", 1)[0] if name.count("/") > name.split(".")[0].count("/") else name
        transport = TRANSPORT.search(name[len(case):])
        groups[case][transport.group(0) if transport else ""].append(name)
    left, before = set(), collections.Counter()
    for case, by_transport in groups.items():
        number = before[case.split(".")[0]]
        before[case.split(".")[0]] += 1
        for transport, instances in by_transport.items():
            count = 1 if transport else min(most, len(instances))
            left.update(instances[(number + at * len(instances) // count) % len(instances)] for at in range(count))
    return [name for name in names if name in left]


def chosen_cases(options):
    """Returns the names of the cases that the options, and $UCXIO_CASES, choose."""
    names = list_cases(options.program, options.filter)
    if options.names:
        named = set(options.names.read_text().split())
        names = [name for name in names if name in named]
    if options.instances:
        names = some_instances(names, options.instances)
    part, parts = (int(word) for word in options.part.split("/"))
    names = names[part::parts]
    if ONLY:
        asked = set(list_cases(options.program, ONLY))
        names = [name for name in names if name in asked]
    return names


def libraries_of(program):
    """Returns the libraries that a program loads. Those that UCX loads by name lie beside its own."""
    done = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    found = {pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", done.stdout)}
    for folder in {path.resolve().parent / "ucx" for path in found if path.name.startswith("libucp")}:
        found.update(folder.glob("*.so*"))
    return found


def facts():
    """Returns what the system allows and has."""
    rights = [line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")]
    files = [pathlib.Path(path).read_text() for path in FACTS if os.path.exists(path)]
    folders = [sorted(os.listdir(path)) for path in FOLDERS if os.path.isdir(path)]
    return rights, files, folders, shutil.disk_usage("/dev/shm").total


def digest_of_inputs(options):
    """Returns a digest of what the outcome of these cases depends on."""
    program = pathlib.Path(options.program)
    files = {program, pathlib.Path(__file__)} | libraries_of(program)
    if options.names:
        files.add(options.names)
    if not options.alone:
        files.update(path for path in [*program.parent.iterdir(), *(program.parent.parent / "lib").iterdir()]
                     if not path.name.endswith(("-tests", "_benchmark")))
    variables = {name: value for name, value in os.environ.items() if OUTCOMES.match(name) and name not in NO_INPUT}
    named = [pathlib.Path(part) for value in variables.values() for part in re.split("[:=]", value) if "/" in part]
    files.update(path for path in named if path.is_file())
    for path in [path for path in files if path not in (program, options.names) and os.access(path, os.X_OK)]:
        files |= libraries_of(path)
    packages = subprocess.run(["dpkg-query", "-W"], stdout=subprocess.PIPE, check=True).stdout
    digest = hashlib.sha256(packages)
    chosen = (options.part, options.filter, options.instances, options.limit, options.first_failure, options.arguments)
    for text in (chosen, sorted(variables.items()), platform.uname(), os.cpu_count(), os.getuid(), facts()):
        digest.update(repr(text).encode())
    for path in sorted(files):
        if path.is_file():
            digest.update(f"{path}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


class Passed:
    """The outcomes of earlier runs, of which none failed."""

    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(os.environ["UCXIO_PASSED"])
        self.path = self.folder / f"{options.label}-{digest_of_inputs(options)}"

    def repeat(self):
        """Says once more how these cases ended, if they passed. Returns whether it did."""
        try:
            written = self.path.stat().st_mtime
            rows = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:  # or another run has just dropped it
            return False
        if time.time() - written > LONGEST_KEPT:
            return False
        self.options.results.parent.mkdir(parents=True, exist_ok=True)
        self.options.results.write_text(rows, encoding="utf-8")
        if progress := os.environ.get("UCXIO_PROGRESS"):
            with open(progress, "ab", buffering=0) as file:
                file.write("".join(row[0] for row in rows.splitlines()).encode())
        passed = time.strftime("%F %T", time.localtime(written))
        print(f"{self.options.label}: {len(rows.splitlines())} cases, unchanged since they passed, {passed}")
        return True

    def keep(self):
        """Keeps how these cases ended."""
        self.folder.mkdir(parents=True, exist_ok=True)
        begun = self.path.with_suffix(f".{os.getpid()}")
        shutil.copyfile(self.options.results, begun)
        begun.rename(self.path)
        kept = sorted(self.folder.glob(f"{self.options.label}-*"), key=os.path.getmtime)
        for path in kept[:-MOST_KEPT]:
            path.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--filter", default="*")
    parser.add_argument("--instances", type=int, default=0)
    parser.add_argument("--names", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--label")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--first-failure", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    options.label = options.label or pathlib.Path(options.program).name

    begun = time.monotonic()
    if options.list:
        print("\n".join(chosen_cases(options)))
        return
    passed = None
    if options.results and os.environ.get("UCXIO_PASSED"):
        try:
            passed = Passed(options)
        except (OSError, subprocess.SubprocessError) as failure:
            print(f"no digest of {options.label}, so it runs: {failure}")
    if passed and passed.repeat():
        return
    names = chosen_cases(options)
    if options.results:
        options.results.parent.mkdir(parents=True, exist_ok=True)
    # The program has a session of its own: whoever ends this one ends that, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    run = Run(options)
    run.all_of(names)

    count = {status: [case.name for case in run.ended if case.status == status]
             for status in ("passed", "skipped", "failed")}
    missing = sorted(set(names) - {case.name for case in run.ended})
    for name in count["failed"]:
        print(f"FAILED: {name}")
    if missing and not (options.first_failure and count["failed"]):
        print("did NOT RUN: " + " ".join(missing))
    print(f"{options.label} {options.part}: {len(names)} cases, {len(count['passed'])} passed, "
          f"{len(count['skipped'])} skipped, {len(count['failed'])} failed, {len(missing)} not run, "
          f"{time.monotonic() - begun:.1f} s, {sum(os.times()[2:4]):.1f} s of the processor")
    if not (names or ONLY) or missing or count["failed"]:
        sys.exit(1)
    try:
        if passed:
            passed.keep()
    except OSError as failure:
        print(f"the outcome of {options.label} is not kept: {failure}")


if __name__ == "__main__":
    main()
