#!/usr/bin/env python3
"""Makes tables and plots of what the suite has measured.

  benchmarks/report.py RESULTS [--docs FOLDER]

Reads RESULTS/NETWORK/*.json and RESULTS/made, writes RESULTS/report.md and RESULTS/plots/*.svg. With --docs the tables
also replace what is between the marks in FOLDER/performance.md, and the plots go to FOLDER/plots.
Without matplotlib there are no plots.
"""
import argparse
import json
import pathlib
import re
import shutil
import sys

import plots

PROGRAMS = ["stream", "latency", "cpu", "server", "connections", "message", "text", "mapped", "boost", "store",
            "alternatives", "alternatives_host"]
NETWORKS = {"loopback": "Over the loopback interface, and within one host",
            "namespaces": "Over a pair of interfaces between two namespaces",
            "newest": "Within one host, with UCX's newest release"}
BEGIN, END = "<!-- The suite's report begins. -->", "<!-- The suite's report ends. -->"


def read_results(folder):
    """Returns, for each network, the measurements by name, in the order of PROGRAMS."""
    found = {}
    for network in NETWORKS:
        lines = {}
        for program in PROGRAMS:
            path = folder / network / f"{program}_benchmark.json"
            if not path.exists() or path.stat().st_size == 0:  # nothing of it was to be measured
                continue
            for line in json.loads(path.read_text())["benchmarks"]:
                name = re.sub(r"/iterations:.*", "", line["name"]).removeprefix("ratio/")
                lines[name] = line
        if lines:
            found[network] = lines
    return found


def number(value):
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"


def row(name, line):
    key = "ratio" if "ratio" in line else "ms"
    unit = "" if key == "ratio" else " ms"
    smaller = line["smaller_is_better"] > 0
    value, target = line[key], line["target"]
    goal, verdict = "", ""
    if target > 0:
        goal = f"{'<=' if smaller else '>='} {target:g}{unit}"
        verdict = "" if (value <= target if smaller else value >= target) else " **short**"
    return (f"| {name} | {goal} | {number(value)}{unit}{verdict} | {number(line[key + '_q1'])} - "
            f"{number(line[key + '_q3'])} | {number(line['ours'])} | {number(line['best'])}, {line['label']} |")


def comparisons(lines):
    table = ["| | target | ratio | quartiles | ours | best of the others |", "| --- | --- | --- | --- | --- | --- |"]
    table += [row(name, line) for name, line in lines.items() if "target" in line]
    return table


def latencies(lines):
    chosen = {name: line for name, line in lines.items() if name.startswith("latency/")}
    if not chosen:
        return []
    table = ["", "| 8 bytes, microseconds | median | 90 % | 99 % | 99.9 % |", "| --- | --- | --- | --- | --- |"]
    for name, line in chosen.items():
        values = " | ".join(number(line[key]) if key in line else "" for key in ("p50", "p90", "p99", "p99.9"))
        table.append(f"| {name.removeprefix('latency/8B/')} | {values} |")
    return table


def memory(lines):
    chosen = {name: line for name, line in lines.items() if "memory of a connection" in name}
    if not chosen:
        return []
    table = ["", "| connections | kB of the server for each |", "| --- | --- |"]
    table += [f"| {line['connections']:.0f} | {line['rate']:.1f} |" for line in chosen.values()]
    return table


def connections(lines):
    chosen = {name: line for name, line in lines.items() if "connect_us" in line}
    if not chosen:
        return []
    count = next(iter(chosen.values()))["connections"]
    table = ["", f"| {count:.0f} connections to one server, microseconds each | connect | echo 1 KiB | echo 1 MiB "
             "| close | kB of the server for each, connected | behind 1 KiB | behind 1 MiB |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for name, line in chosen.items():
        values = " | ".join(number(line[key]) for key in ("connect_us", "short_echo_us", "long_echo_us", "close_us",
                                                          "connected_kB", "short_echo_kB", "long_echo_kB"))
        table.append(f"| {name.removeprefix('connections/')} | {values} |")
    return table


def report(results, drawn, made):
    text = [f"Made by `benchmarks/run.sh`: {made}."]
    for network, lines in results.items():
        text += ["", f"{NETWORKS[network]}:", ""]
        text += comparisons(lines) + latencies(lines) + memory(lines) + connections(lines)
    for name, caption in drawn:
        text += ["", f"![{caption}](plots/{name})"]
    return "\n".join(text).strip() + "\n"


def bring_into(docs, text, folder):
    page = docs / "performance.md"
    before = page.read_text()
    if BEGIN not in before or END not in before:
        sys.exit(f"{page} has no place for the report")
    head, rest = before.split(BEGIN, 1)
    page.write_text(head + BEGIN + "\n" + text + END + rest.split(END, 1)[1])
    (docs / "plots").mkdir(exist_ok=True)
    for plot in sorted(folder.glob("*.svg")):
        shutil.copy(plot, docs / "plots" / plot.name)


def main():
    arguments = argparse.ArgumentParser(description="Makes tables and plots of the suite's results.")
    arguments.add_argument("results", type=pathlib.Path)
    arguments.add_argument("--docs", type=pathlib.Path)
    chosen = arguments.parse_args()
    results = read_results(chosen.results)
    if not results:
        sys.exit(f"there are no results in {chosen.results}")
    networks = {name: lines for name, lines in results.items() if name != "newest"}
    drawn = plots.draw(networks, chosen.results / "plots")
    made = chosen.results / "made"
    text = report(results, drawn, made.read_text().strip() if made.exists() else "when and where is not known")
    (chosen.results / "report.md").write_text(text)
    if chosen.docs:
        bring_into(chosen.docs, text, chosen.results / "plots")


if __name__ == "__main__":
    main()
