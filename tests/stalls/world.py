"""The cluster in which it happens: many topics and groups of others, an aggressor with its own, and a victim.

    ours      an instance each, written by contract; doors "tenant" (the aggressor's listener) and "internal" (the cluster's)
    apache    one Apache Kafka, where all are alike; its one listener is the door "tenant"

What there is on our side can be restarted: a broker that holds more memory than it may would fail all rows behind.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from dataplane.config import Settings
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import MAX_ELEMENTS
from dataplane.protocol.messages.discovery import FindCoordinatorRequest, MetadataRequest
from dataplane.protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from dataplane.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from dataplane.requests.dispatch import MAX_OTHER_FRAME_BYTES, OF_ANY_LENGTH
from quota.contracts.instance import GIB, MIB, Limits
from quota.zookeeper.client import Client
from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.rig import Rig
from tests.benchmarks.server import Server
from tests.stalls import observed
from tests.stalls.largest import Bounds, Known
from tests.stalls.machine import make_give_way
from tests.support.processes import SECRET
from tests.support.specs import Specs, Tenant
from tests.support.waiting import wait_for
from tests.support.wire import Wire
from tests.support.zookeeper import operator

TENANT, INTERNAL = "tenant", "internal"
VICTIM, SINK, SINK_PARTITIONS = "victim", "sink", 104
_AT_ONCE = 50
_ROOM = 250
"""Partitions that the aggressor may make beside its own: old versions of CreateTopics cannot only be validated."""
_OFFSETS_EACH = 10
_NO_BOUND = 2**31
_PLENTY = 100 * GIB
_PASSING = (("retention.bytes", "1048576"), ("segment.bytes", "16777216"))
"""Of topics that are written to for hours: nothing of it is kept."""

Address = tuple[str, int]


@dataclass(frozen=True)
class Sizes:
    """How much there is."""

    others: int  # topics of other tenants
    own: int  # of the aggressor
    groups: int  # of each of both
    frame_mib: float = 100.0  # of Produce
    internal_mib: float = 2.0  # of other requests on the internal door
    bandwidth_mib: float = 100.0  # that the aggressor has bought
    warm_bytes: int = 0  # of the machine's memory, which is touched before


@dataclass(frozen=True)
class World:
    """See the file's text. `victim` is where it is served; `turns` the file in which the first broker writes down its turns."""

    server: Server
    sizes: Sizes
    doors: dict[str, Address]
    known: dict[str, Known]
    victim: Address
    tenants: dict[str, Tenant] | None = None
    turns: Path | None = None
    noted: dict[str, int] = field(default_factory=dict)
    """What the preparation of a row has to tell those who make its frames."""

    @property
    def is_ours(self) -> bool:
        return self.tenants is not None

    def bounds(self, door: str, key: int) -> Bounds:
        """Of a request of this kind."""
        elements = _NO_BOUND if door != TENANT and key in OF_ANY_LENGTH else MAX_ELEMENTS
        if key == ApiKey.PRODUCE:
            most = int(self.sizes.frame_mib * MIB)
            if door == TENANT and self.is_ours:
                most = min(most, Settings().tenant_max_request_bytes)
            return Bounds(most, elements)
        return Bounds(MAX_OTHER_FRAME_BYTES if door == TENANT else int(self.sizes.internal_mib * MIB), elements)

    def connect(self, door: str) -> socket.socket:
        """A connection through which requests are served."""
        wire = Wire(self.doors[door])
        if door == INTERNAL:
            try:
                assert wire.say("everybody", SECRET) == 0  # what a broker may ask and what an operator may
            except (OSError, AssertionError):
                wire.socket.close()
                raise
        return wire.socket

    def controller(self) -> tuple[int, int]:
        """Its id and epoch, as they are now."""
        with zookeeper(self.server.zookeeper) as client:
            found = json.loads(client.get("/controller")[0])["brokerid"], client.get("/controller_epoch")[0]
        return int(found[0]), int(found[1])

    def restart(self) -> None:
        """The broker, on its data."""
        self.server.kill(1)
        self.server.restart(1)
        wait_for(lambda: _leads(self.victim, VICTIM), 120, "the broker to lead again")
        wait_for(lambda: _serves(self.victim, VICTIM), 120, "the victim to be served again")  # it leads thousands

    @property
    def pid(self) -> int:
        return self.server.pid()


@contextmanager
def zookeeper(hosts: str) -> Iterator[Client]:
    """A client that is connected."""
    client = operator(hosts)
    client.start(timeout=20)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def _warm(server: Server, sizes: Sizes, say: Callable[[str], None]) -> None:
    """What a virtual machine's host has to give first costs up to 15 us a page: turns of 50 ms that are not the broker's."""
    if sizes.warm_bytes:
        say(f"touching {sizes.warm_bytes / 2**30:.0f} GiB so that they are warm")
        server.keep_pages_warm(sizes.warm_bytes)


@contextmanager
def ours(sizes: Sizes, brokers: int, say: Callable[[str], None]) -> Iterator[World]:
    """ZooKeeper, brokers, instances; everything filled."""
    with Rig({"log_retention_check_interval_ms": 5_000}, brokers=brokers, module=observed.__name__) as rig:
        make_give_way(rig.zookeeper_pid)  # in the field it has a machine of its own
        _warm(rig, sizes, say)
        ids = list(rig.brokers)
        limit = int(sizes.bandwidth_mib * MIB)
        plenty = Limits(_PLENTY, _PLENTY, _PLENTY, 100_000)
        factor = min(3, brokers)
        most = (sizes.own + SINK_PARTITIONS + _ROOM) * factor
        with zookeeper(rig.zookeeper) as client:
            specs = Specs(client)
            tenants = {
                "victim": specs.create(ids, limits=plenty),
                "others": specs.create(ids, limits=plenty),
                "aggressor": specs.create(ids, limits=Limits(limit, limit, _PLENTY, most)),
                "indebted": specs.create(ids, limits=Limits(MIB, MIB, _PLENTY, most)),
            }
        places = {name: tenant.addresses[1] for name, tenant in tenants.items()}
        _fill(places["others"], "other", sizes.others, sizes.groups, say)
        _fill(places["aggressor"], "own", sizes.own, sizes.groups, say)
        for name in ("aggressor", "indebted"):
            _create(places[name], [SINK], SINK_PARTITIONS, _PASSING, led_by=_first(brokers))
        _create(places["victim"], [VICTIM], 2, _PASSING, led_by=_first(brokers))
        key = tenants["aggressor"].key
        internal = rig.internal_address()
        doors = {TENANT: places["aggressor"], INTERNAL: internal, "indebted": places["indebted"]}
        own = _known(places["aggressor"], [f"own-{n}" for n in range(sizes.groups)], SINK)
        everybody = [
            f"{tenants[n].key}.{w}-{i}"
            for n, w in (("aggressor", "own"), ("others", "other"))
            for i in range(sizes.groups)
        ]
        all_of_it = _known(internal, everybody, f"{key}.{SINK}", secret=SECRET)
        known = {TENANT: own, INTERNAL: all_of_it, "indebted": own}
        turns = (rig.directory / "broker-1").with_suffix(observed.SUFFIX)
        yield World(rig, sizes, doors, known, places["victim"], tenants, turns)


@contextmanager
def apache(sizes: Sizes, brokers: int, say: Callable[[str], None]) -> Iterator[World]:
    """Apache Kafka with as much in it."""
    settings = {
        "log.retention.check.interval.ms": 5_000,
        "log.initial.task.delay.ms": 1_000,
        "auto.create.topics.enable": "false",
    }
    with ApacheRig(settings, brokers=brokers) as kafka:
        _warm(kafka, sizes, say)
        place = kafka.address()
        wait_for(lambda: _members(place) == brokers, 60, "all brokers to know each other")
        _fill(place, "other", sizes.others, sizes.groups, say)
        _fill(place, "own", sizes.own, sizes.groups, say)
        _create(place, [SINK], SINK_PARTITIONS, _PASSING, led_by=_first(brokers))
        _create(place, [VICTIM], 2, _PASSING, led_by=_first(brokers))
        known = _known(place, [f"own-{n}" for n in range(sizes.groups)], SINK)
        yield World(kafka, sizes, {TENANT: place, "indebted": place}, {TENANT: known, "indebted": known}, place)


def _first(brokers: int) -> tuple[int, ...]:
    """The broker that all is sent to leads; of one alone nothing has to be said."""
    return (1, 2, 3) if brokers > 1 else ()


def _known(address: Address, groups: Sequence[str], sink: str, secret: str = "") -> Known:
    with Wire(address, timeout_s=60) as wire:
        if secret:
            assert wire.log_in(secret) == 0
        topics = [topic for topic in wire.call(MetadataRequest(topics=None), 12).topics if not topic.is_internal]
    ids: list[UUID] = [topic.topic_id for topic in topics]
    return Known([topic.name for topic in topics], groups, ids, sink, SINK_PARTITIONS)


def _fill(address: Address, word: str, topics: int, groups: int, say: Callable[[str], None]) -> None:
    names = [f"{word}-{number:05d}" for number in range(topics)]
    _create(address, names, 1)
    with Wire(address, timeout_s=60) as wire:
        asked = FindCoordinatorRequest(key=f"{word}-0")
        wait_for(lambda: wire.call(asked, 3).error_code == 0, 30, "a coordinator")
        for number in range(groups):
            request = _commit(f"{word}-{number}", names[:_OFFSETS_EACH])
            wait_for(lambda: _is_well(wire.call(request, 7)), 30, "a commit")  # noqa: B023 - called at once
    say(f"{topics} topics and {groups} groups called {word}-…")


def _commit(group: str, topics: Sequence[str]) -> OffsetCommitRequest:
    partition = (OffsetCommitRequestPartition(0, 1, committed_metadata=""),)
    return OffsetCommitRequest(group, topics=tuple(OffsetCommitRequestTopic(name, partition) for name in topics))


def _is_well(answer: Any) -> bool:
    return not any(partition.error_code for topic in answer.topics for partition in topic.partitions)


def _create(
    address: Address,
    names: Sequence[str],
    partitions: int,
    configs: Sequence[tuple[str, str]] = (),
    *,
    led_by: Sequence[int] = (),
) -> None:
    """Topics; `led_by`: all of their replicas, in this order, where it matters who leads them."""
    settings = tuple(CreatableTopicConfig(*each) for each in configs)
    there = tuple(CreatableReplicaAssignment(index, (*led_by,)) for index in range(partitions)) if led_by else ()
    number = -1 if led_by else partitions
    with Wire(address, timeout_s=120) as wire:
        for first in range(0, len(names), _AT_ONCE):
            topics = tuple(
                CreatableTopic(name, number, -1, there, settings) for name in names[first : first + _AT_ONCE]
            )
            answer = wire.call(CreateTopicsRequest(topics=topics, timeout_ms=100_000), 5)
            assert not any(topic.error_code for topic in answer.topics), answer.topics[0]
    wait_for(lambda: _leads(address, names[-1]), 30, f"leaders of {names[-1]}")


def _members(address: Address) -> int:
    with Wire(address) as wire:
        return len(wire.call(MetadataRequest(topics=()), 5).brokers)


def _serves(address: Address, topic: str) -> bool:
    """Whether the leader knows that it is one: what metadata say of it may come first."""
    partitions = tuple(ListOffsetsPartition(index, timestamp=-1) for index in (0, 1))
    with Wire(address) as wire:
        return _is_well(wire.call(ListOffsetsRequest(-1, topics=(ListOffsetsTopic(topic, partitions),)), 5))


def _leads(address: Address, topic: str) -> bool:
    with Wire(address) as wire:
        found = [t for t in wire.call(MetadataRequest(topics=None), 5).topics if t.name == topic]
    return bool(found) and all(partition.leader_id > 0 for partition in found[0].partitions)
