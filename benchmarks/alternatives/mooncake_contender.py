"""Mooncake's transfer engine over TCP: batches of many MiBs, which it works on with threads of its own."""
import os
import time

import contender
from contender import CALLS, MIB, SIZE, Memory

BATCH = 16  # MiBs of one batch

os.environ |= {"MC_LOG_LEVEL": "ERROR", "GLOG_minloglevel": "2"}


def make_engine(memories):
    from mooncake.engine import TransferEngine
    engine = TransferEngine()
    if engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") != 0:
        raise SystemExit("Mooncake's engine does not start")
    for memory in memories:
        if engine.register_memory(memory.address, len(memory.array)) != 0:
            raise SystemExit("Mooncake registers no memory")
    return engine


def serve(pipe):
    read, written = Memory(SIZE), Memory(SIZE)
    read.fill_pattern()
    engine = make_engine((read, written))
    pipe.send((f"127.0.0.1:{engine.get_rpc_port()}", read.address, written.address))
    while True:  # what is at an offset of what was written
        offset = pipe.recv()
        pipe.send(bytes(written.pages[offset:offset + 8]))


class Reader:
    def __init__(self, pipe):
        self.pipe = pipe
        self.memory = Memory(BATCH * MIB)
        self.engine = make_engine((self.memory,))
        self.owner, self.to_read, self.to_write = pipe.recv()
        self.stamp = 0

    def run(self, transfer, base, seconds, after):
        done, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds or done == 0:
            first = done * BATCH % CALLS
            here = [self.memory.address + i * MIB for i in range(BATCH)]
            there = [base + (first + i) * MIB for i in range(BATCH)]
            if transfer(self.owner, here, there, [MIB] * BATCH) != 0:
                raise SystemExit("a transfer of Mooncake's failed")
            after(first)
            done += 1
        return done * BATCH * MIB / passed / 1e9

    def check(self, first):
        for i in range(BATCH):
            self.memory.check(i * MIB, (first + i) * MIB)

    def read(self, seconds):
        return self.run(self.engine.batch_transfer_sync_read, self.to_read, seconds, self.check)

    def write(self, seconds):
        self.stamp += 1
        self.memory.stamp(0, self.stamp)
        rate = self.run(self.engine.batch_transfer_sync_write, self.to_write, seconds, lambda first: None)
        self.pipe.send(0)
        if self.pipe.recv() != self.stamp.to_bytes(8, "little"):
            raise SystemExit("what Mooncake wrote is not there")
        return rate


pipe = contender.fork_owner(serve)
contender.pin(contender.READER_CORE)
reader = Reader(pipe)
contender.serve_passes({"read": reader.read, "write": reader.write})
