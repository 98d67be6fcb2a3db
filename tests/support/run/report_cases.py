#!/usr/bin/env python3
"""Says of the cases that run_cases.py ran how many passed, why some were skipped, and which were slow.

  ctest --show-only=json-v1 ... | report_cases.py --expect FILE    writes to FILE which cases these tests of ctest have,
                                                                   and prints how many
  report_cases.py [--slowest N] [--of FILE] RESULTS

RESULTS is a folder of what `run_cases.py --results` wrote. Exits with 1 if no case ran, if one of FILE did not, or if
one was skipped for a reason that no line of the file $UCXIO_EXPECTED_SKIPS matches, which has regular expressions.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys


def cases_of(test):
    """Returns (part, case) of each case of one test of ctest's."""
    command = test.get("command", [""])
    if not command[0].endswith("run_cases.py"):
        return []
    properties = {each["name"]: each["value"] for each in test["properties"]}
    environment = os.environ | dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))
    done = subprocess.run([*command, "--list"], env=environment, stdout=subprocess.PIPE, text=True, check=False)
    # Where they can not be listed, the part fails by itself; here it is missed.
    names = done.stdout.split() if done.returncode == 0 else ["(cases that can not be listed)"]
    return [(test["name"], name) for name in names]


def expect(plan, path):
    """Writes the cases of a plan of ctest's, and prints how many there are."""
    with concurrent.futures.ThreadPoolExecutor(2) as lanes:
        rows = [row for rows in lanes.map(cases_of, plan["tests"]) for row in rows]
    path.write_text("".join(f"{part}\t{case}\n" for part, case in rows))
    print(len(rows))


def read(folder):
    """Returns (part, status, milliseconds, case, reason) of each case."""
    rows = []
    for path in sorted(folder.iterdir()):
        for line in path.read_text(encoding="utf-8").splitlines():
            status, milliseconds, case, reason = line.split("\t")
            rows.append((path.name, status, int(milliseconds), case, reason))
    return rows


def unexpected_skips(rows):
    """Returns the names of the cases that were skipped for a reason that is not expected."""
    path = os.environ.get("UCXIO_EXPECTED_SKIPS")
    if not path:
        return []
    patterns = [line for line in pathlib.Path(path).read_text().splitlines() if line and not line.startswith("#")]
    return [case for _, status, _, case, reason in rows
            if status == "skipped" and not any(re.fullmatch(pattern, reason) for pattern in patterns)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slowest", type=int, default=0)
    parser.add_argument("--of", type=pathlib.Path)
    parser.add_argument("--expect", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path, nargs="?")
    options = parser.parse_args()
    if options.expect:
        expect(json.load(sys.stdin), options.expect)
        return
    if not options.results:
        parser.error("RESULTS is missing")

    rows = read(options.results) if options.results.is_dir() else []
    count = collections.Counter(status for _, status, _, _, _ in rows)
    skipped = collections.defaultdict(list)
    for _, status, _, case, reason in rows:
        if status == "skipped":
            skipped[re.sub(r"region [0-9]+ .* session [0-9a-f]+", "a region", reason)].append(case)
    for reason, cases in sorted(skipped.items(), key=lambda item: -len(item[1])):
        print(f"skipped {len(cases):4}: {reason} ({cases[0]}{', ...' if len(cases) > 1 else ''})")
    for part, _, milliseconds, case, _ in sorted(rows, key=lambda row: -row[2])[:options.slowest]:
        print(f"{milliseconds / 1000:8.1f} s  {part}: {case}")
    for part, status, _, case, _ in rows:
        if status == "failed":
            print(f"FAILED: {part}: {case}")
    missing = []
    if options.of:
        ran = {(part, case) for part, _, _, case, _ in rows}
        planned = [tuple(line.split("\t")) for line in options.of.read_text().splitlines()]
        missing = [f"{part}: {case}" for part, case in planned if (part, case) not in ran]
    missing += unexpected_skips(rows)
    for case in missing[:50]:
        print(f"did NOT RUN: {case}")
    if len(missing) > 50:
        print(f"did NOT RUN: {len(missing) - 50} more")
    print(f"{len(rows)} cases: {count['passed']} passed, {count['skipped']} skipped, {count['failed']} failed, "
          f"{len(missing)} not run")
    sys.exit(0 if rows and not missing else 1)


if __name__ == "__main__":
    main()
