"""How long the largest legal requests hold a broker's loop: milliseconds of its longest turn, and of all its turns.

    python -m tests.benchmarks.slices [--topics 10000] [--only NAME]

A broker of the simulated cluster, which is told of as many topics of one tenant as there may be, gets one request after
the other over the virtual network, and its turns are timed, in time of the processor: receiving, decoding, handling, encoding.
Each request is as large as a tenant may make it: nearly 20,000 elements, in a frame of up to two megabytes. Slices see
that clock. What other clients would wait for is the longest turn. var/reports/slices.json.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from dataplane.cluster.paths import INTERNAL_LISTENER
from dataplane.protocol.codec import MAX_ELEMENTS
from dataplane.protocol.messages import configs, discovery, fetch, groups, log_dirs, offsets, produce
from dataplane.protocol.messages.control import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from dataplane.records.batch import Record, build_batch
from tests.benchmarks.report import Say, keep, progress
from tests.simulation.cluster import SimulatedCluster

REPORT = Path("var/reports/slices.json")
KEY = "simulate"
GROUP = "readers"
MANY = MAX_ELEMENTS - 500


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.slices", description="The longest turns.")
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    say = progress()
    rows = measure(options.topics, options.only, say)
    keep(REPORT, {"topics": options.topics, "rows": rows})
    return 0


def measure(topics: int, only: str, say: Say) -> list[dict[str, Any]]:
    """One row for each request."""
    world = World(topics)
    say(f"{topics} topics\n{'request':34}{'longest ms':>12}{'all ms':>10}{'turns':>8}{'error':>8}")
    rows = []
    for name, version, make in requests(world):
        if only in name:
            row = {"request": f"{name} v{version}", **world.timed(make(), version)}
            rows.append(row)
            say(f"{row['request']:34}{row['longest_ms']:12.1f}{row['all_ms']:10.0f}{row['turns']:8}{row['error']!s:>8}")
    return rows


class World:
    """A cluster whose broker knows many topics, with one that is real, and a group that has read everything."""

    def __init__(self, topics: int) -> None:
        self.names = [f"topic-{number:06}-of-some-length" for number in range(topics)]
        self.cluster = SimulatedCluster(seed=1)
        self.cluster.until(self.cluster.up)
        self.cluster.create_topic("orders", 4)
        self.leader = self.cluster.brokers[1].metadata.partitions(f"{KEY}.orders")[0].leader
        self.broker = self.cluster.brokers[self.leader]
        if hasattr(self.broker.slices, "_clock"):
            self.broker.slices._clock = time.thread_time
        self.turns: list[float] = []
        self._tell_of_topics()
        self._watch_turns()
        asked = discovery.FindCoordinatorRequest(GROUP)
        self.coordinator = self._call(asked, 2).node_id
        while self.coordinator < 0:
            self.coordinator = self._call(asked, 2).node_id
        first = offsets.OffsetCommitRequest(GROUP, topics=_commit(["orders"], 1))
        while self._call(first, 8, self.coordinator).topics[0].partitions[0].error_code:
            self.cluster.network.run_for(0.2)

    def _tell_of_topics(self) -> None:
        for broker in self.cluster.brokers.values():
            alive = tuple(
                UpdateMetadataBroker(b.id, endpoints=(UpdateMetadataEndpoint(b.port, b.host, INTERNAL_LISTENER),))
                for b in broker.metadata.brokers.values()
            )
            state = UpdateMetadataPartitionState(
                partition_index=0, leader=self.leader, leader_epoch=0, replicas=(1, 2, 3), isr=(1, 2, 3)
            )
            states = tuple(
                UpdateMetadataTopicState(f"{KEY}.{name}", UUID(int=number + 1), (state,))
                for number, name in enumerate(self.names)
            )
            metadata = broker.metadata
            update = UpdateMetadataRequest(
                controller_id=metadata.controller_id,
                controller_epoch=metadata.controller_epoch,
                type=1,
                topic_states=states,
                live_brokers=alive,
            )
            metadata.apply(update)

    def _watch_turns(self) -> None:
        for number in self.cluster.brokers:
            loop = self.cluster.network.loop(self.cluster.host(number))
            turn = loop._turn

            def timed(turn: Callable[[], None] = turn) -> None:
                begin = time.thread_time()
                turn()
                self.turns.append(time.thread_time() - begin)

            loop._turn = timed  # type: ignore[method-assign]
            if hasattr(self.cluster.brokers[number].slices, "_clock"):
                self.cluster.brokers[number].slices._clock = time.thread_time

    def _call(self, request: Any, version: int, broker: int = -1) -> Any:
        answer = self.cluster.client.call(broker if broker >= 0 else self.leader, request, version)
        self.cluster.until(lambda: answer.done, 600)
        return answer.result()

    def timed(self, request: Any, version: int) -> dict[str, Any]:
        """What the turns of the brokers took until the answer was there."""
        is_for_group = "Offset" in type(request).__name__[:6] and hasattr(request, "group_id")
        gc.collect()
        gc.disable()
        self.turns.clear()
        answer = self._call(request, version, self.coordinator if is_for_group else -1)
        gc.enable()
        return {
            "longest_ms": round(max(self.turns) * 1000, 2),
            "all_ms": round(sum(self.turns) * 1000, 1),
            "turns": len(self.turns),
            "error": "closed" if answer is None else getattr(answer, "error_code", ""),
        }


def _commit(names: Sequence[str], partitions: int) -> tuple[offsets.OffsetCommitRequestTopic, ...]:
    rows = tuple(offsets.OffsetCommitRequestPartition(n, 5) for n in range(partitions))
    return tuple(offsets.OffsetCommitRequestTopic(name, rows) for name in names)


def requests(world: World) -> Iterator[tuple[str, int, Callable[[], Any]]]:
    """Name, version, and how to make it."""
    names, half = world.names, world.names[: MANY // 2]
    nowhere = [f"nowhere-{number:06}" for number in range(MANY)]
    yield "Metadata, all", 12, lambda: discovery.MetadataRequest(topics=None)
    yield (
        "Metadata, names",
        12,
        lambda: discovery.MetadataRequest(topics=tuple(map(_by_name, [*half, *nowhere[:9_000]]))),
    )
    yield "Metadata, to be created", 9, lambda: discovery.MetadataRequest(topics=tuple(map(_by_name, nowhere)))
    yield "DescribeTopicPartitions, all", 0, discovery.DescribeTopicPartitionsRequest
    yield (
        "DescribeTopicPartitions, names",
        0,
        lambda: discovery.DescribeTopicPartitionsRequest(
            topics=tuple(map(discovery.DescribeTopicPartitionsRequestTopicRequest, nowhere))
        ),
    )
    yield (
        "DescribeConfigs, 4,000",
        4,
        lambda: configs.DescribeConfigsRequest(
            resources=tuple(configs.DescribeConfigsResource(2, name) for name in names[:4_000]),
            include_synonyms=True,
            include_documentation=True,
        ),
    )
    yield (
        "DescribeConfigs, 0…01x",
        4,
        lambda: configs.DescribeConfigsRequest(
            resources=tuple(configs.DescribeConfigsResource(4, f"{world.leader:020}{number}") for number in range(MANY))
        ),
    )
    yield (
        "AlterConfigs, nowhere",
        2,
        lambda: configs.AlterConfigsRequest(
            resources=tuple(configs.AlterConfigsRequestAlterConfigsResource(2, name) for name in nowhere)
        ),
    )
    yield (
        "IncrementalAlterConfigs, names",
        1,
        lambda: configs.IncrementalAlterConfigsRequest(
            resources=tuple(configs.IncrementalAlterConfigsRequestAlterConfigsResource(2, name) for name in nowhere)
        ),
    )
    yield "DescribeLogDirs, all", 4, lambda: log_dirs.DescribeLogDirsRequest(topics=None)
    yield (
        "DescribeLogDirs, names",
        4,
        lambda: log_dirs.DescribeLogDirsRequest(
            topics=tuple(log_dirs.DescribableLogDirTopic(name, (0,)) for name in half)
        ),
    )
    yield "FindCoordinator", 4, lambda: discovery.FindCoordinatorRequest(coordinator_keys=tuple(nowhere))
    rows = tuple(fetch.ListOffsetsPartition(partition_index=n % 4, timestamp=-1) for n in range(MANY))
    for version in (0, 7):
        yield (
            "ListOffsets, one again and again",
            version,
            lambda: fetch.ListOffsetsRequest(topics=(fetch.ListOffsetsTopic("orders", rows),)),
        )
    yield (
        "ListOffsets, topics",
        7,
        lambda: fetch.ListOffsetsRequest(topics=tuple(fetch.ListOffsetsTopic(name, rows[:1]) for name in half)),
    )
    epochs = tuple(fetch.OffsetForLeaderPartition(partition=n % 4) for n in range(MANY))
    yield (
        "OffsetForLeaderEpoch",
        4,
        lambda: fetch.OffsetForLeaderEpochRequest(topics=(fetch.OffsetForLeaderTopic("orders", epochs),)),
    )
    yield "OffsetCommit", 8, lambda: offsets.OffsetCommitRequest(GROUP, topics=_commit(half, 1))
    yield (
        "OffsetFetch, all",
        8,
        lambda: offsets.OffsetFetchRequest(groups=(offsets.OffsetFetchRequestGroup(group_id=GROUP, topics=None),)),
    )
    yield (
        "OffsetFetch, groups",
        8,
        lambda: offsets.OffsetFetchRequest(
            groups=tuple(offsets.OffsetFetchRequestGroup(group_id=name, topics=None) for name in nowhere)
        ),
    )
    yield (
        "OffsetFetch, partitions",
        7,
        lambda: offsets.OffsetFetchRequest(
            GROUP, topics=(offsets.OffsetFetchRequestTopic("orders", tuple(range(MANY))),)
        ),
    )
    yield (
        "OffsetDelete",
        0,
        lambda: offsets.OffsetDeleteRequest(
            GROUP,
            topics=tuple(
                offsets.OffsetDeleteRequestTopic(name, (offsets.OffsetDeleteRequestPartition(0),)) for name in half
            ),
        ),
    )
    yield "ListGroups", 4, lambda: groups.ListGroupsRequest(states_filter=tuple(nowhere))
    yield "DescribeGroups", 5, lambda: groups.DescribeGroupsRequest(groups=tuple(nowhere))
    yield "DeleteGroups", 2, lambda: groups.DeleteGroupsRequest(groups_names=tuple(nowhere))
    yield (
        "DescribeProducers",
        0,
        lambda: produce.DescribeProducersRequest(
            topics=(produce.DescribeProducersRequestTopicRequest("orders", tuple(range(MANY))),)
        ),
    )
    yield (
        "DeleteRecords",
        2,
        lambda: fetch.DeleteRecordsRequest(
            topics=(
                fetch.DeleteRecordsTopic("orders", tuple(fetch.DeleteRecordsPartition(n % 8, 0) for n in range(MANY))),
            ),
            timeout_ms=100,
        ),
    )
    wanted = tuple(fetch.FetchPartition(partition=n, partition_max_bytes=1000) for n in range(MANY))
    yield (
        "Fetch",
        12,
        lambda: fetch.FetchRequest(
            replica_id=-1, max_wait_ms=0, max_bytes=10**6, topics=(fetch.FetchTopic(topic="orders", partitions=wanted),)
        ),
    )
    batch = build_batch([Record(b"k", b"v")], now_ms=1)
    data = tuple(produce.PartitionProduceData(n % 8, batch) for n in range(MANY))
    yield (
        "Produce",
        9,
        lambda: produce.ProduceRequest(acks=1, timeout_ms=1000, topic_data=(produce.TopicProduceData("orders", data),)),
    )


def _by_name(name: str) -> discovery.MetadataRequestTopic:
    return discovery.MetadataRequestTopic(name=name)


if __name__ == "__main__":
    sys.exit(main())
