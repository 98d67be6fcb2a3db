#!/usr/bin/env python3
"""Makes tables and plots of what the suite has measured.

  benchmarks/report.py RESULTS [--docs FOLDER]

Reads RESULTS/NETWORK/*.json and RESULTS/made, writes RESULTS/report.md and RESULTS/plots/*.svg. With --docs shorter
tables replace what is between the marks in FOLDER/explanation/performance.md, and the plots go to FOLDER/plots.
Without matplotlib there are no plots.
"""
import argparse
import json
import pathlib
import re
import shutil
import sys

import plots

PROGRAMS = ["stream", "latency", "cpu", "server", "carrier", "connections", "message", "text", "mapped", "key", "boost",
            "store", "alternatives", "alternatives_host"]
NETWORKS = {"loopback": "Over the loopback interface, and within one host",
            "namespaces": "Over a pair of interfaces between two namespaces",
            "newest": "Within one host, with UCX's newest release"}
# Sections of the page, and the lines in each.
SECTIONS = {"Streams": r"(tcp|host|shm)/(read( verified)?|write|seek\+read|write\+flush)/(?!.* lanes)",
            "Processor time": r"cpu/",
            "Servers": r"server/|.* lanes",
            "Sockets and TLS": r"carrier/",
            "Messages": r"(tcp|shm)/(round trip|send|rate)/|socket/|by hand/",
            "Text, mapped memory, Boost and stores": r"text/|mapped/|store/|\w+/boost ",
            "Memory by its bare key": r"key/",
            "Other libraries": r"alternatives/"}
# Lines without a target that the page has all the same: those within one host.
WITHOUT_TARGET = r"(host|shm)/(?!boost)"
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


def goal_of(line):
    return f"{'<=' if line['smaller_is_better'] > 0 else '>='}{line['target']:g}" if line["target"] > 0 else ""


def cell(line):
    """Returns ratio, quartiles and both rates; the ratio is bold where it misses the target."""
    if line is None:
        return ""
    key = "ratio" if "ratio" in line else "ms"
    value, target = line[key], line["target"]
    is_met = target <= 0 or (value <= target if line["smaller_is_better"] > 0 else value >= target)
    told = number(value) if is_met else f"**{number(value)}**"
    return (f"{told} ({number(line[key + '_q1'])}-{number(line[key + '_q3'])}) "
            f"{number(line['ours'])}/{number(line['best'])}")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return [re.sub(" +", " ", f"| {' | '.join(line)} |") for line in lines]


def side_by_side(names, networks):
    """Returns a table of these lines, a column for each network that has one of them."""
    shown = {network: lines for network, lines in networks.items() if any(name in lines for name in names)}
    known = {name: line for lines in reversed(shown.values()) for name, line in lines.items()}
    return table(["line", "target", *shown],
                 [[name, goal_of(known[name]), *(cell(lines.get(name)) for lines in shown.values())] for name in names])


def for_page(results, drawn, made):
    """Returns what the page has: networks side by side, no names of contenders, few lines without target."""
    networks = {name: lines for name, lines in results.items() if name != "newest"}
    every = {name: line for lines in reversed(networks.values()) for name, line in lines.items()}
    first = next(iter(networks.values()))
    every = {name: every[name] for name in [*first, *(name for name in every if name not in first)]}
    text = [f"Made by `benchmarks/run.sh`: {made}."]
    for section, pattern in SECTIONS.items():
        names = [name for name, line in every.items() if "target" in line and re.match(pattern, name)
                 and (line["target"] > 0 or re.match(WITHOUT_TARGET, name))]
        if names:
            text += ["", f"### {section}", "", *side_by_side(names, networks)]
        if section == "Streams" and "newest" in results:
            names = [name for name, line in results["newest"].items() if "target" in line]
            text += ["", f"{NETWORKS['newest']}:", "", *side_by_side(names, {"newest": results["newest"]})]
    names = [name for name in every if name.startswith("latency/")]
    if names:
        text += ["", "### Latency of 8 bytes", "", "Median/90 %/99 %/99.9 %:", ""]
        text += table(["microseconds", *networks],
                      [[name.removeprefix("latency/8B/"),
                        *("/".join(number(lines[name][key]) for key in ("p50", "p90", "p99", "p99.9")
                                   if key in lines.get(name, {})) for lines in networks.values())] for name in names])
    chosen = {name: line for name, line in every.items() if "connect_us" in line}
    if chosen:
        count = next(iter(chosen.values()))["connections"]
        text += ["", f"### {count:.0f} connections to one server, microseconds each", ""]
        text += table(["segments", "connect", "echo 1 KiB", "echo 1 MiB", "close", "kB, connected", "behind 1 KiB",
                       "behind 1 MiB"],
                      [[name.removeprefix("connections/").removeprefix("segments of "),
                        *(f"{float(f'{line[key]:.3g}'):g}" for key in
                          ("connect_us", "short_echo_us", "long_echo_us", "close_us", "connected_kB", "short_echo_kB",
                           "long_echo_kB"))] for name, line in chosen.items()])
    for name, caption in drawn:
        text += ["", f"![{caption}](../plots/{name})"]
    return "\n".join(text).strip() + "\n"


def bring_into(docs, text, folder):
    page = docs / "explanation" / "performance.md"
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
    told = made.read_text().strip() if made.exists() else "when and where is not known"
    text = report(results, drawn, told)
    (chosen.results / "report.md").write_text(text)
    if chosen.docs:
        bring_into(chosen.docs, for_page(results, drawn, told), chosen.results / "plots")


if __name__ == "__main__":
    main()
