"""How fast a new replica gets in sync: topics on brokers 1 and 2 are reassigned to broker 3 as well, which has nothing.

The reassignment is asked for by Kafka's node in ZooKeeper, which ours and Apache Kafka's both obey. The clock runs from
there until all partitions have the new replica in their ISR; nobody else reads or writes meanwhile.
"""

from __future__ import annotations

import json
import time

from quota.zookeeper.client import Client
from tests.benchmarks import throughput
from tests.benchmarks.server import Server, create_topic
from tests.support.zookeeper import operator

BATCH_BYTES = 128 * 2**10
NEWCOMER = 3
_BEFORE = [1, 2]
_WITHIN_S = 180.0


def catch_up(server: Server, topic: str, total_bytes: int) -> tuple[float, float]:
    """(MB/s, CPU-s per GB of all brokers) of copying `total_bytes`, in three partitions, to a broker without them."""
    create_topic(server.bootstrap, topic, throughput.PARTITIONS, on=_BEFORE)
    throughput.produce(server, topic, BATCH_BYTES, total_bytes, acks="all")
    zookeeper = operator(server.zookeeper, closed=False, timeout=10)
    zookeeper.start(timeout=20)
    try:
        physical = next(name for name in zookeeper.get_children("/brokers/topics") if name.split(".")[-1] == topic)
        used, began = server.cpu_s(), time.monotonic()
        zookeeper.create("/admin/reassign_partitions", _wanted(physical), makepath=True)
        while not _is_in_sync(zookeeper, physical):
            if time.monotonic() - began > _WITHIN_S:
                raise TimeoutError(f"the replicas of {topic} are not in sync")
            time.sleep(0.02)
        return total_bytes / 1e6 / (time.monotonic() - began), (server.cpu_s() - used) / (total_bytes / 1e9)
    finally:
        zookeeper.stop()
        zookeeper.close()


def _wanted(physical: str) -> bytes:
    rows = [
        {"topic": physical, "partition": index, "replicas": [*_BEFORE, NEWCOMER]}
        for index in range(throughput.PARTITIONS)
    ]
    return json.dumps({"version": 1, "partitions": rows}).encode()


def _is_in_sync(zookeeper: Client, physical: str) -> bool:
    paths = [f"/brokers/topics/{physical}/partitions/{index}/state" for index in range(throughput.PARTITIONS)]
    return all(NEWCOMER in json.loads(zookeeper.get(path)[0])["isr"] for path in paths)
