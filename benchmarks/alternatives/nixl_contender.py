"""NIXL over UCX's TCP, or within one host: transfers of many MiBs, two of them in flight."""
import os
import time

import contender
from contender import CALLS, MIB, SIZE, Memory

BATCH = 8  # MiBs of one transfer; 4 and 16 were no faster

# What made it fastest: the same as we use.
os.environ |= {"UCX_TLS": os.environ.get("ALTERNATIVES_TLS", "tcp"), "UCX_NET_DEVICES": "lo",
               "UCX_TCP_TX_SEG_SIZE": "1m", "UCX_TCP_RX_SEG_SIZE": "1m", "NIXL_LOG_LEVEL": "ERROR"}


def make_agent(name, memories, has_thread):
    from nixl_cu13._api import nixl_agent, nixl_agent_config
    agent = nixl_agent(name, nixl_agent_config(enable_prog_thread=has_thread, backends=["UCX"]))
    for memory in memories:
        place = (memory.address, len(memory.array), 0, "")
        if not agent.register_memory(agent.get_reg_descs([place], "DRAM")):
            raise SystemExit("NIXL registers no memory")
    return agent


def serve(pipe):
    read, written = Memory(SIZE), Memory(SIZE)
    read.fill_pattern()
    agent = make_agent("owner", (read, written), True)
    pipe.send((agent.get_agent_metadata(), read.address, written.address))
    agent.add_remote_agent(pipe.recv())
    while True:  # what is at an offset of what was written
        offset = pipe.recv()
        pipe.send(bytes(written.pages[offset:offset + 8]))


class Reader:
    def __init__(self, pipe):
        self.pipe = pipe
        self.memory = Memory(2 * BATCH * MIB)
        # Its one thread makes progress while it waits; another would only share its core.
        self.agent = make_agent("reader", (self.memory,), False)
        metadata, read, written = pipe.recv()
        self.agent.add_remote_agent(metadata)
        pipe.send(self.agent.get_agent_metadata())
        self.handles = {verb: [self.prepare(verb, base, number) for number in range(CALLS // BATCH)]
                        for verb, base in (("READ", read), ("WRITE", written))}
        self.stamp = 0

    def prepare(self, verb, base, number):
        here = [(self.memory.address + (number % 2 * BATCH + i) * MIB, MIB, 0) for i in range(BATCH)]
        there = [(base + (number * BATCH + i) * MIB, MIB, 0) for i in range(BATCH)]
        return self.agent.initialize_xfer(verb, self.agent.get_xfer_descs(here, "DRAM"),
                                          self.agent.get_xfer_descs(there, "DRAM"), "owner")

    def start(self, verb, number):
        if self.agent.transfer(self.handles[verb][number % len(self.handles[verb])]) == "ERR":
            raise SystemExit("a transfer of NIXL's failed")

    def finish(self, verb, number):
        while (state := self.agent.check_xfer_state(self.handles[verb][number % len(self.handles[verb])])) != "DONE":
            if state == "ERR":
                raise SystemExit("a transfer of NIXL's failed")

    def run(self, verb, seconds):
        """Keeps two transfers in flight."""
        done, start = 0, time.perf_counter()
        self.start(verb, 0)
        while (more := time.perf_counter() - start < seconds) or done == 0:
            self.start(verb, done + 1)
            self.finish(verb, done)
            self.check(verb, done)
            done += 1
        self.finish(verb, done)
        passed = time.perf_counter() - start
        self.check(verb, done)
        return (done + 1) * BATCH * MIB / passed / 1e9

    def check(self, verb, number):
        if verb == "READ":
            for i in range(BATCH):
                offset = (number * BATCH + i) * MIB % SIZE
                self.memory.check((number % 2 * BATCH + i) * MIB, offset)

    def write(self, seconds):
        # Another eight bytes at the head of each buffer, to be found at the owner.
        self.stamp += 1
        for buffer in range(2):
            self.memory.stamp(buffer * BATCH * MIB, self.stamp)
        rate = self.run("WRITE", seconds)
        self.pipe.send(0)
        if self.pipe.recv() != self.stamp.to_bytes(8, "little"):
            raise SystemExit("what NIXL wrote is not there")
        return rate

    def read(self, seconds):
        return self.run("READ", seconds)


pipe = contender.fork_owner(serve)
contender.pin(contender.READER_CORE)
reader = Reader(pipe)
contender.serve_passes({"read": reader.read, "write": reader.write})
