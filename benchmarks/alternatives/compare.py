#!/usr/bin/env python3
"""Compares our streams with other libraries, each with an owner and a reader of its own, in turns,
from as many starts as there are contenders.

  benchmarks/alternatives/compare.py RESULTS STREAM_CONTENDER PYTHON UCXX_CONTENDER [--host]
      [--passes=N] [--pass_seconds=S]

PYTHON has the other libraries; those that it lacks, or that do not start, are left out, and it is said
why, and so is UCXX where its program is not there. Over TCP; with --host, reads within one host by what
each of them takes there. Prints a table, and writes RESULTS/loopback/alternatives[_host]_benchmark.json.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PR_SET_PDEATHSIG = 1
OTHERS = {"NIXL": "nixl_contender.py", "Mooncake": "mooncake_contender.py"}
HOST = "posix,cma,self,tcp"  # UCX's transports within a host, from which the libraries choose


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Contender:
    def __init__(self, name, command, host):
        self.name = name
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
        # Ours would read the memory in place, and not over TCP.
        environment |= {"ALTERNATIVES_TLS": HOST} if host else {"UCXIO_TRANSFER_METHOD": "message"}
        self.complaints = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=self.complaints, env=environment, start_new_session=True,
                                        preexec_fn=end_with_parent)
        self.expect("ready")
        self.rest()

    def rest(self):
        """Stops reader and owner: some libraries have threads that always spin, on the cores of all."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def expect(self, wanted):
        # Libraries print what they like.
        for line in self.process.stdout:
            if line.strip() == wanted:
                return
        raise RuntimeError(self.why())

    def why(self):
        self.close()
        self.complaints.seek(0)
        lines = self.complaints.read().strip().splitlines()
        return lines[-1] if lines else f"{self.name} ended"

    def run(self, verb, seconds):
        os.killpg(self.process.pid, signal.SIGCONT)
        try:
            self.process.stdin.write(f"{verb} {seconds}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(self.why()) from None
        for line in self.process.stdout:
            try:
                rate = float(line)
            except ValueError:
                continue
            self.rest()
            return rate
        raise RuntimeError(self.why())

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def commands_of(chosen):
    commands = {"ucxio": [chosen.contender]} | {name: [chosen.python, str(HERE / script)]
                                                for name, script in OTHERS.items()}
    if chosen.host:
        del commands["Mooncake"]  # over TCP alone
    return commands | {"UCXX": [chosen.ucxx]}


def start_all(commands, chosen):
    """Starts them in this order; returns those that start, and drops the others from `commands`."""
    running = []
    for name, command in list(commands.items()):
        try:
            running.append(Contender(name, command, chosen.host))
        except (RuntimeError, OSError) as failure:
            print(f"without {name}: {failure}", file=sys.stderr)
            del commands[name]
    return running


def run_in_turns(running, verb, chosen, rates):
    """Appends what each came to, pass by pass."""
    for each in running:
        each.run(verb, chosen.pass_seconds)
    shuffled = random.Random(1)
    order = list(running)
    for _ in range(chosen.passes):
        shuffled.shuffle(order)
        for each in order:
            rates[each.name].append(each.run(verb, chosen.pass_seconds))


def run_all(chosen):
    """Returns by verb what each came to. All are started anew as often as there are contenders, each
    as the first of them once, and as the last: on virtual machines who is started later may get memory
    that is read half as fast again, and keeps it."""
    commands = commands_of(chosen)
    verbs = ("read",) if chosen.host else ("read", "write")
    rates = {verb: {name: [] for name in commands} for verb in verbs}
    for _ in range(len(commands)):
        running = start_all(commands, chosen)
        try:
            for verb in verbs:
                if len(running) > 1:
                    run_in_turns(running, verb, chosen, rates[verb])
        finally:
            for each in running:
                each.close()
        first = next(iter(commands), None)
        commands[first] = commands.pop(first, None)  # the last of the next start
    return {verb: {name: found for name, found in of.items() if name in commands} for verb, of in rates.items()}


def line_of(what, name, rates):
    ratios = [ours / theirs for ours, theirs in zip(rates["ucxio"], rates[name])]
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return {"name": f"ratio/alternatives/{what}/1MiB, {name}", "label": name,
            "ratio": statistics.median(ratios), "ratio_q1": quartiles[0], "ratio_q3": quartiles[2],
            "target": 1.0, "smaller_is_better": 0, "ours": statistics.median(rates["ucxio"]),
            "best": statistics.median(rates[name])}


def show(line):
    verdict = "" if line["ratio"] >= line["target"] else "  SHORT"
    print(f"{line['name'].removeprefix('ratio/'):34} {line['ours']:9.3f} {line['best']:9.3f} {line['ratio']:8.2f}   "
          f"[{line['ratio_q1']:.2f} .. {line['ratio_q3']:.2f}]  >= {line['target']:.2f}{verdict}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description="Compares our streams with other libraries, in turns.")
    arguments.add_argument("results", type=pathlib.Path)
    arguments.add_argument("contender")
    arguments.add_argument("python")
    arguments.add_argument("ucxx")
    arguments.add_argument("--host", action="store_true", help="reads within one host, and not over TCP")
    arguments.add_argument("--passes", type=int, default=15)
    arguments.add_argument("--pass_seconds", type=float, default=0.1)
    chosen, _ = arguments.parse_known_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines = []
    for verb, rates in run_all(chosen).items():
        what = f"host {verb}" if chosen.host else verb
        ours = rates.get("ucxio")
        lines += [line_of(what, name, rates) for name in rates if ours and name != "ucxio"]
    for line in lines:
        show(line)
    if lines:
        folder = chosen.results / "loopback"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"alternatives{'_host' if chosen.host else ''}_benchmark.json"
        (folder / name).write_text(json.dumps({"benchmarks": lines}, indent=1))


if __name__ == "__main__":
    main()
