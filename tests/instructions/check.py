#!/usr/bin/env python3
"""Counts the instructions of the paths that matter, and compares them with recorded.txt.

  tests/instructions/check.py PROGRAM [--record]
  tests/instructions/check.py --without WHAT

Runs PROGRAM, ucxio-hot-paths of the preset `dev`, under callgrind. Fails (1) where a path grew by more
than 5 %. Skips (77), saying why, where the counts can not be those that were recorded: another
compiler, other flags, another UCX, no valgrind; and what was not there when the program was to be built. Where one grew, it tells that path's
dearest functions. `--record` writes what was counted to recorded.txt.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

RECORD = pathlib.Path(__file__).with_name("recorded.txt")
MOST_GROWTH = 0.05
SKIPPED = 77
DEAREST = 12

# The C library chooses its copying loops by the processor, and by the size of its caches; with these
# it takes the same ones everywhere.
SAME_LOOPS = ":".join([
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM",
    "glibc.cpu.x86_non_temporal_threshold=0x40000000",
    "glibc.cpu.x86_rep_movsb_threshold=0x40000000",
])

# The simulation's border, and the walk itself.
HARNESS = re.compile(r"^ucx::test::")

# The bytes themselves.
COPYING = re.compile(r"^_*(mem(cpy|move|pcpy))")

Count = collections.namedtuple("Count", "own copying")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def environment_of(program):
    lines = subprocess.run([program, "--environment"], check=True, capture_output=True, text=True).stdout
    return [" ".join(line.split()) for line in lines.splitlines()]


def run(program, folder):
    """Returns how many operations each path counted."""
    command = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--dump-instr=no",
               f"--callgrind-out-file={folder}/paths", program]
    # Nothing of the caller's environment: it is in the program's memory, and so in its addresses.
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "LD_BIND_NOW": "1", "UCX_HANDLE_ERRORS": "none",
                   "GLIBC_TUNABLES": SAME_LOOPS}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    operations = {}
    for line in done.stdout.splitlines():
        path, number = line.split("\t")
        operations[path] = int(number)
    return operations


def self_costs(dump):
    """Returns the path that a dump is about, and the instructions of each function itself."""
    path, costs, names = None, collections.Counter(), {}
    function, called = None, False
    for line in dump.read_text().splitlines():
        if match := re.match(r"desc: Trigger: Client Request: (.*)", line):
            path = match.group(1)
        elif match := re.match(r"fn=\((\d+)\)(?: (.*))?", line):
            number, name = match.groups()
            function = names.setdefault(number, name)
        elif match := re.match(r"cfn=\((\d+)\) (.*)", line):
            names[match.group(1)] = match.group(2)
        elif line.startswith("calls="):
            called = True  # the next line is what the callee cost
        elif match := re.match(r"[-+*\d]\S* (\d+)$", line):
            if not called:
                costs[function] += int(match.group(1))
            called = False
    return path, costs


def counted(program, folder):
    operations = run(program, folder)
    counts, functions = {}, {}
    for dump in sorted(pathlib.Path(folder).glob("paths.*")):
        path, costs = self_costs(dump)
        costs = collections.Counter({name: cost for name, cost in costs.items() if not HARNESS.match(name)})
        if path not in operations:
            continue
        copying = sum(cost for name, cost in costs.items() if COPYING.match(name))
        own = sum(costs.values()) - copying
        counts[path] = Count(own / operations[path], copying / operations[path])
        functions[path] = [(name, cost / operations[path]) for name, cost in costs.most_common(DEAREST)]
    missing = [path for path in operations if path not in counts]
    if missing:
        sys.exit(f"callgrind did not count: {', '.join(missing)}")
    return {path: counts[path] for path in operations}, functions


def write_record(environment, counts):
    width = max(map(len, counts))
    with RECORD.open("w") as out:
        out.write("# Instructions of one operation, both sides together: ours, and those that copy bytes.\n"
                  "# Written by `tests/instructions/check.py PROGRAM --record`; docs/contributing.md explains.\n")
        out.writelines(f"# {line}\n" for line in environment)
        for path, count in counts.items():
            out.write(f"{path:{width}}  {count.own:10.1f}  {count.copying:10.1f}\n")


def read_record():
    environment, counts = [], {}
    for line in RECORD.read_text().splitlines():
        if match := re.match(r"# (compiler .*|flags .*|libraries .*)", line):
            environment.append(match.group(1))
        elif match := re.match(r"(\S.*?)  +([\d.]+)  +([\d.]+)$", line):
            counts[match.group(1)] = Count(float(match.group(2)), float(match.group(3)))
    return environment, counts


def growth(now, before):
    return now / before - 1 if before >= 1 else (0 if now < 1 else float("inf"))


def compare(counts, recorded):
    """Prints both, and returns the paths that grew too much."""
    grown = []
    print(f"{'instructions of one operation':44} {'recorded':>10} {'now':>10} {'change':>8}")
    for path, now in counts.items():
        before = recorded.get(path)
        if before is None:
            grown.append(path)
            print(f"{path:44} not recorded")
            continue
        for what, old, new in (("", before.own, now.own), (", copying", before.copying, now.copying)):
            if what and old < 1 and new < 1:
                continue
            more = growth(new, old)
            verdict = ""
            if more > MOST_GROWTH:
                verdict = "  TOO MUCH"
                grown.append(path)
            print(f"{path + what:44} {old:10.1f} {new:10.1f} {more:+8.1%}{verdict}")
    for path in recorded.keys() - counts.keys():
        print(f"{path}: recorded, and no longer counted")
        grown.append(path)
    return grown


def main():
    arguments = argparse.ArgumentParser(description="Compares instruction counts with recorded.txt.")
    arguments.add_argument("program", nargs="?")
    arguments.add_argument("--without", metavar="WHAT", help="there is no program, for want of this: skip")
    arguments.add_argument("--record", action="store_true", help="write what was counted to recorded.txt")
    chosen = arguments.parse_args()
    if chosen.without:
        skip(f"the program was not built: there is no {chosen.without}")
    if not chosen.program:
        arguments.error("which program?")
    if shutil.which("valgrind") is None:
        skip("there is no valgrind")
    environment = environment_of(chosen.program)
    if not chosen.record:
        recorded_environment, recorded = read_record()
        if environment != recorded_environment:
            here = "; ".join(line for line in environment if line not in recorded_environment)
            skip(f"recorded for {'; '.join(recorded_environment)}; here: {here}")
    with tempfile.TemporaryDirectory() as folder:
        counts, functions = counted(chosen.program, folder)
    if chosen.record:
        write_record(environment, counts)
        return 0
    grown = compare(counts, recorded)
    if grown:
        for path in dict.fromkeys(grown):
            print(f"\n{path}: instructions of one operation, by function")
            for name, cost in functions.get(path, []):
                print(f"{cost:10.1f}  {name[:120]}")
        print(f"\nMore than {MOST_GROWTH:.0%} longer: {', '.join(dict.fromkeys(grown))}.\n"
              "docs/contributing.md says how to look for the cause, and how to record what is meant.")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
