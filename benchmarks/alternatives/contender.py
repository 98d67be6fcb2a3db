"""One way to read and write another process's memory, as compare.py drives it.

The reader is this process, the owner a second one that it forks. Each line of the standard input is
one pass: "read SECONDS" or "write SECONDS"; it is answered by a line with gigabytes in a second, and
what went wrong ends the program.
"""
import ctypes
import mmap
import multiprocessing
import os
import signal
import struct
import sys

MIB = 1 << 20
SIZE = 128 * MIB
CALLS = SIZE // MIB
OWNER_CORE, READER_CORE = 0, 1
PR_SET_PDEATHSIG = 1


def pin(core):
    try:
        os.sched_setaffinity(0, {core})
    except OSError:
        print(f"not pinned to core {core}: expect other figures", file=sys.stderr)


def word(offset):
    return struct.pack("<Q", offset * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)


class Memory:
    """Bytes at a place that stays, for a library to register."""

    def __init__(self, size):
        import numpy
        self.pages = mmap.mmap(-1, size)
        self.array = numpy.frombuffer(self.pages, dtype=numpy.uint8)
        self.array[:] = 0
        self.address = self.array.ctypes.data

    def fill_pattern(self):
        import numpy
        places = numpy.arange(0, len(self.array), 8, dtype=numpy.uint64)
        self.array.view(numpy.uint64)[:] = places * numpy.uint64(0x9E3779B97F4A7C15)

    def stamp(self, at, number):
        self.pages[at:at + 8] = number.to_bytes(8, "little")

    def check(self, at, offset):
        """Fails unless first and last word of the MiB at `at` are what the owner has at `offset`."""
        last = MIB - 8
        if self.pages[at:at + 8] != word(offset) or self.pages[at + last:at + last + 8] != word(offset + last):
            sys.exit(f"read other bytes than there are at offset {offset}")


def fork_owner(serve):
    """Lets `serve(pipe)` run in the owner's process, and returns the pipe's other end."""
    ours, theirs = multiprocessing.Pipe()

    def run():
        ours.close()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        pin(OWNER_CORE)
        serve(theirs)

    multiprocessing.get_context("fork").Process(target=run, daemon=True).start()
    theirs.close()
    return ours


def serve_passes(passes):
    """Answers the lines of the standard input; `passes` has a function of seconds for each verb."""
    print("ready", flush=True)
    for line in sys.stdin:
        verb, seconds = line.split()
        print(passes[verb](float(seconds)), flush=True)
    # Not by way of the libraries' own ends, which need not be ready for it; the owner goes with us.
    os._exit(0)
