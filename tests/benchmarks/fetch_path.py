"""What a fetch costs between the frame and the answer's parts, without sockets: microseconds of one core.

    python -m tests.benchmarks.fetch_path

One partition without a session (as librdkafka asks), also one that is read to its end, one in a session (as the Java
client asks), 1,000 partitions named in each request, and sessions of 1,000 and 10,000 partitions of which one has
something new. Medians of rounds.
"""

from __future__ import annotations

import statistics
import time
from types import SimpleNamespace

from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.requests.dispatch import ClientConnection
from dataplane.tenancy.session import Session
from tests.dataplane.fetching.support import FETCH, NAME, Door, single
from tests.dataplane.replication.cluster import TOPIC

ROUNDS, PER_ROUND = 15, 2_000


class Connection:
    """Takes answers and forgets them."""

    max_frame_bytes = 2**31
    peer = ("127.0.0.1", 1)
    received_bytes = sent_bytes = 0
    parts = 0

    def send(self, parts):
        self.parts += len(parts)

    def pause_reading(self):
        pass

    resume_reading = close = pause_reading


def client(door):
    """A tenant's connection to the broker behind the door."""
    door.broker.doors = SimpleNamespace(loop=door.broker.replicas.loop, clock=door.broker.replicas.loop.clock)
    session = Session(door.instance, "default", door.instance.names, "127.0.0.1", authenticated=True)
    connection = ClientConnection(door.broker, Connection(), session)
    door.broker.replicas.loop.at_turn_end = lambda callback: callback()
    return connection


def frame(version, offsets, session_id=0, epoch=-1, max_wait_ms=0):
    rows = tuple(FetchPartition(partition=i, fetch_offset=o, partition_max_bytes=2**20) for i, o in offsets.items())
    topics = (FetchTopic(topic=NAME, partitions=rows),) if rows else ()
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=2**20,
        session_id=session_id,
        session_epoch=epoch,
        topics=topics,
    )
    return memoryview(bytearray(encode_request(FETCH, version, 7, "rdkafka", request)[4:]))


def measure(name, serve, frames, count=PER_ROUND):
    """Print the median time of one request."""
    took = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for n in range(count):
            serve(frames(n))
        took.append((time.perf_counter() - start) / count)
    median = statistics.median(took)
    print(f"{name:55} {median * 1e6:9.1f} us  {1 / median:9,.0f} /s   (best {min(took) * 1e6:.1f})")


def session_of(door, offsets):
    """A session with these partitions, for the principal of `client`."""
    door.session.principal = "User:ANONYMOUS"
    return door.fetch(offsets, 12, session_epoch=0).session_id


def main():
    cluster = single(1)
    for _ in range(20):
        cluster.produce(1, "x" * 100)
        cluster.run(0.01)
    door = Door(cluster)
    serve = client(door).frame
    for version in (4, 11, 12):
        frames = [frame(version, {0: offset}) for offset in range(20)]
        measure(f"one partition, a batch of it, version {version}", serve, lambda n, f=frames: f[n % 20])
    empty = frame(12, {0: 20})
    measure("one partition, nothing new, version 12", serve, lambda _: empty)
    at_end = frame(12, {0: 20}, max_wait_ms=500)
    place = cluster[1].replicas.registry.get(TOPIC, 0).queues.read_waiters

    def wait_and_wake(made):
        serve(made)
        for watcher in list(place):
            watcher.lost()

    measure("one partition, waits and is woken, version 12", wait_and_wake, lambda _: at_end)

    epochs = iter(range(1, 10**9))
    session = session_of(door, {0: 0})
    frames = [frame(12, {0: offset}, session, 0) for offset in range(20)]
    at = bytes(frames[0]).index(session.to_bytes(4)) + 4

    def in_session(n, frames=frames, at=at, epochs=epochs):
        made = frames[n % 20]
        made[at : at + 4] = next(epochs).to_bytes(4)
        return made

    measure("one partition in a session, a batch of it", serve, in_session)

    for partitions in (1_000, 10_000):
        cluster = single(partitions)
        cluster.produce(1, "x" * 100, index=7)
        cluster.run(0.1)
        door = Door(cluster)
        serve = client(door).frame
        if partitions == 1_000:
            every = frame(12, dict.fromkeys(range(partitions), 0))
            measure("1,000 partitions named, nothing in 999 of them", serve, lambda _, f=every: f, 20)
        session = session_of(door, dict.fromkeys(range(partitions), 0))
        door.fetch({7: 1}, session_id=session, session_epoch=1)
        epochs = iter(range(2, 10**9))
        one = frame(12, {7: 0}, session, 0)
        at = bytes(one).index(session.to_bytes(4)) + 4

        def next_of(_n, one=one, at=at, epochs=epochs):
            one[at : at + 4] = next(epochs).to_bytes(4)
            return one

        measure(f"session of {partitions:,}, one has a batch", serve, next_of)
        none = frame(12, {}, session, 0)
        measure(f"session of {partitions:,}, nothing named", serve, lambda _n, f=none: next_of(0, f))


if __name__ == "__main__":
    main()
