#!/usr/bin/env python3
"""Says of the cases that tests/support/run_cases.py ran how many passed, why some were skipped, and which were slow.

  ctest --show-only=json-v1 ... | report_cases.py --expected      prints how many cases these tests of ctest's have
  report_cases.py [--slowest N] [--of N] RESULTS

RESULTS is a folder of what `run_cases.py --results` wrote. Exits with 1 if no case ran, or not so many as --of says.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys


def expected(plan):
    """Returns how many cases a plan of ctest's has."""
    cases = 0
    for test in plan["tests"]:
        command = test.get("command", [""])
        if not command[0].endswith("run_cases.py"):
            continue
        properties = {each["name"]: each["value"] for each in test["properties"]}
        environment = dict(os.environ, **dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", [])))
        cases += int(subprocess.run([*command, "--count"], env=environment, capture_output=True, check=True).stdout)
    return cases


def read(folder):
    """Returns (part, status, milliseconds, case, reason) of each case."""
    rows = []
    for path in sorted(folder.iterdir()):
        for line in path.read_text(encoding="utf-8").splitlines():
            status, milliseconds, case, reason = line.split("\t")
            rows.append((path.name, status, int(milliseconds), case, reason))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slowest", type=int, default=0)
    parser.add_argument("--of", type=int, default=0)
    parser.add_argument("--expected", action="store_true")
    parser.add_argument("results", type=pathlib.Path, nargs="?")
    options = parser.parse_args()
    if options.expected:
        print(expected(json.load(sys.stdin)))
        return
    if not options.results:
        parser.error("RESULTS is missing")

    rows = read(options.results) if options.results.is_dir() else []
    count = collections.Counter(status for _, status, _, _, _ in rows)
    skipped = collections.Counter(reason for _, status, _, _, reason in rows if status == "skipped")
    for reason, times in skipped.most_common():
        print(f"skipped {times:4}: {reason}")
    for part, _, milliseconds, case, _ in sorted(rows, key=lambda row: -row[2])[:options.slowest]:
        print(f"{milliseconds / 1000:8.1f} s  {part}: {case}")
    for part, status, _, case, _ in rows:
        if status == "failed":
            print(f"FAILED: {part}: {case}")
    if len(rows) < options.of:
        print(f"{options.of - len(rows)} of {options.of} cases did NOT RUN")
    print(f"{len(rows)} cases: {count['passed']} passed, {count['skipped']} skipped, {count['failed']} failed")
    sys.exit(0 if rows and len(rows) >= options.of else 1)


if __name__ == "__main__":
    main()
