"""A coordinator on virtual time, over a log in memory that commits when it is told to."""

from itertools import count
from random import Random
from uuid import UUID

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.groups.classic.events import (
    Heartbeat,
    Join,
    Leave,
    Sync,
)
from dataplane.groups.consumer.model import Topic
from dataplane.groups.coordinator import GroupCoordinator
from dataplane.groups.settings import GroupSettings
from quota.contracts.namespace import split_physical
from tests.dataplane.coordination.support import MemoryLog
from tests.support.memory_files import ImmediateBackground
from tests.support.virtual_loop import VirtualNetwork

PARTITIONS = 4


class FixedTopics:
    """The cluster's topics, as groups of the consumer protocol see them; `put` creates one, or has it grow."""

    def __init__(self, **sizes):
        self.version = 0
        self.rows = {}
        self._ids = count(1)
        self._names = {}
        for name, size in sizes.items():
            self.put(name, size)

    def put(self, name, size):
        known = self.rows.get(name)
        self.rows[name] = Topic(known.topic_id if known else UUID(int=next(self._ids)), size)
        self._changed()

    def drop(self, name):
        del self.rows[name]
        self._changed()

    def _changed(self):
        self.version += 1
        self._names = {}

    def find(self, name):
        return self.rows.get(name)

    def beside(self, group_id):
        owner = split_physical(group_id)
        key = owner and owner[0]
        if key not in self._names:
            mine = [name for name in sorted(self.rows) if key is None or (split_physical(name) or ("",))[0] == key]
            self._names[key] = mine
        return self._names[key]


class World:
    """One coordinator that leads every partition."""

    def __init__(self, **changes):
        self.network = VirtualNetwork(seed=1)
        self.loop = self.network.loop("broker")
        self.log = MemoryLog(self.loop)
        self.background = ImmediateBackground()
        self.topics = FixedTopics()
        self.settings = GroupSettings(**{"group_initial_rebalance_delay_ms": 0, **changes})
        self.epoch = 0
        self.coordinator = self.new_coordinator()
        self.elect()

    def new_coordinator(self):
        return GroupCoordinator(
            self.loop, self.log, Random(1), self.settings, lambda: PARTITIONS, self.background, self.topics
        )

    def elect(self):
        self.epoch += 1
        for index in range(PARTITIONS):
            self.coordinator.on_leadership(OFFSETS_TOPIC, index, self.epoch)
        self.run(0.01)

    def resign(self):
        for index in range(PARTITIONS):
            self.coordinator.on_leadership(OFFSETS_TOPIC, index, None)

    def take_over(self):
        """Another broker, with the same log, leads from now on."""
        self.coordinator.stop()
        self.coordinator = self.new_coordinator()
        self.elect()

    def run(self, seconds):
        self.network.run_for(seconds)

    def join(self, group="g", member_id="", **more):
        more = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "client_id": "me", **more}
        return self.coordinator.join(group, Join(member_id, "consumer", (("range", b"x"),), **more))

    def sync(self, member_id, generation=1, group="g"):
        return self.coordinator.sync(group, Sync(generation, member_id))

    def heartbeat(self, member_id, generation=1, group="g"):
        future = self.coordinator.heartbeat(group, Heartbeat(generation, member_id))
        return future.result().error

    def leave(self, *member_ids, group="g"):
        return self.coordinator.leave(group, Leave(tuple((m, None) for m in member_ids)))

    def alone(self, group="g", **more):
        """A stable group of one member; its id."""
        joined = self.join(group, **more)
        self.run(0.01)
        member_id = joined.result().member_id
        synced = self.coordinator.sync(group, Sync(1, member_id, assignments={member_id: b"all"}))
        self.run(0.01)
        assert synced.result().assignment == b"all"
        return member_id

    def group(self, group="g"):
        entry = self.coordinator.find(group)
        return None if entry is None else entry.group
