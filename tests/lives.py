"""`python -m tests.lives`: which files a Produce and a Fetch pass, in order, as a simulated cluster serves them.

ARCHITECTURE.md tells these lives, and how many files each has. A call from a file of one package to a file of another
is a call over a wall; two packages that call each other are printed, since a reader goes there and back between them.
The network's own files are not among them: the simulation has another network.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from tests.simulation.cluster import SimulatedCluster
from tests.support.virtual_loop import VirtualLoop

ROOT = f"{Path(__file__).parent.parent}/"
OURS = (f"{ROOT}dataplane/", f"{ROOT}quota/")


class Watch:
    """Calls into our files, with the host that runs."""

    def __init__(self):
        self.calls, self._host = [], None
        turn = VirtualLoop._turn

        def turned(loop):
            before, self._host = self._host, loop.host
            try:
                turn(loop)
            finally:
                self._host = before

        VirtualLoop._turn = turned

    def __call__(self, frame, event, _argument):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(OURS):
            caller = frame.f_back
            while caller is not None and not caller.f_code.co_filename.startswith(OURS):
                caller = None if caller.f_code.co_filename.startswith(f"{ROOT}tests/") else caller.f_back
            self.calls.append((self._host, path, caller and caller.f_code.co_filename))


def package(path):
    parts = Path(path.removeprefix(ROOT)).with_suffix("").parts
    return parts[0] if parts[0] == "quota" else parts[1]


class Lives:
    """A cluster with one topic, and a client that knows its leader."""

    def __init__(self):
        self.watch = Watch()
        self.cluster = SimulatedCluster(seed=1)
        self.cluster.until(self.cluster.up)
        self.cluster.create_topic("orders", 1, min_insync_replicas="2")
        client, ids = self.cluster.client, self.cluster.ids
        self.leader = self.cluster.run(client.leader("orders", 0, ids))
        self.cluster.network.run_for(3)

    def tell(self, title, request, version):
        """Ask, and print what was passed until the answer came."""
        self.cluster.network.run_for(0.05)  # what brokers do by themselves is mostly over
        self.watch.calls.clear()
        sys.setprofile(self.watch)
        try:
            self.cluster.run(self._asked(request, version))
        finally:
            sys.setprofile(None)
        leader = self.cluster.host(self.leader)
        self._print(f"{title}, leader", [call for call in self.watch.calls if call[0] == leader])
        others = {self.cluster.host(broker) for broker in self.cluster.ids} - {leader}
        self._print(f"{title}, followers", [call for call in self.watch.calls if call[0] in others])

    async def _asked(self, request, version):
        return await self.cluster.client.call(self.leader, request, version)

    def _print(self, title, calls):
        files = dict.fromkeys(path.removeprefix(ROOT).removeprefix("dataplane/") for _, path, _ in calls)
        walls = Counter((package(caller), package(path)) for _, path, caller in calls if caller is not None)
        walls = Counter({pair: count for pair, count in walls.items() if pair[0] != pair[1]})
        both = sorted(f"{a} and {b}" for a, b in walls if a < b and (b, a) in walls)
        print(f"{title}: {len(files)} files, {walls.total()} calls over walls")
        print("   ", "  ".join(files) or "none")
        print("    call each other:", ", ".join(both) or "none")


def produced(value):
    batch = bytes(build_batch([Record(b"k", value)], now_ms=1_700_000_000_000))
    data = TopicProduceData("orders", (PartitionProduceData(0, batch),))
    return ProduceRequest(acks=-1, timeout_ms=3000, topic_data=(data,))


def fetched(offset):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
    return FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=2**20, topics=(FetchTopic("orders", partitions=(wanted,)),)
    )


if __name__ == "__main__":
    lives = Lives()
    lives.tell("produce", produced(b"1"), 9)
    lives.tell("produce, again", produced(b"2"), 9)
    lives.tell("produce, a third time", produced(b"3"), 9)
    lives.tell("fetch", fetched(0), 11)
    lives.tell("fetch, again", fetched(1), 11)
    lives.tell("fetch, a third time", fetched(2), 11)
