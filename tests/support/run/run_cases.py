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

A case that crashes the program, or that takes too long, fails by its name; the cases behind it run in a new process.
A case that was chosen and did not run is a failure. What a case printed is shown when it fails.
With gdb installed, the stacks of a program that took too long are shown.

$UCXIO_CASES, another filter, leaves of all these only what it names, which may be none.
$UCXIO_PROGRESS names a file to which each case that ends appends one letter: p(assed), s(kipped) or f(ailed).

Exits with 0 if every case passed or was skipped, else with 1.
"""
import argparse
import collections
import ctypes
import dataclasses
import os
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
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GTEST_")}
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
    parser.add_argument("program")
    parser.add_argument("arguments", nargs="*")
    options = parser.parse_args()
    options.label = options.label or pathlib.Path(options.program).name

    begun = time.monotonic()
    names = chosen_cases(options)
    if options.list:
        print("\n".join(names))
        return
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
          f"{time.monotonic() - begun:.1f} s")
    sys.exit(0 if (names or ONLY) and not missing and not count["failed"] else 1)


if __name__ == "__main__":
    main()
