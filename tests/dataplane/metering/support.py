"""A meter on a virtual clock, with a topic that takes its records, or does not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from dataplane.config import BrokerConfig, Settings
from dataplane.doors import Doors
from dataplane.metering.hours import hour_of, hour_text
from dataplane.metering.meter import Meter
from quota.contracts.usage import HoursComplete, InstanceRecord, UsageRecord, UserRecord
from tests.support.memory_files import ImmediateBackground, MemoryFiles
from tests.support.virtual_loop import WALL_CLOCK_START_MS, VirtualNetwork

ORDERS, EVENTS = "aaaabbbb.orders", "aaaabbbb.events"
SECONDS_TO_FIRST_EDGE = 3600 - WALL_CLOCK_START_MS // 1000 % 3600


class Topic:
    """What `__usage` holds: every record that was acknowledged, in order."""

    def __init__(self, loop, clock):
        self.loop = loop
        self.clock = clock  # of who leads the topic: it is right
        self.records = []
        self.instances = []  # what was told of whole instances
        self.users = []  # and of their users
        self.complete = []  # what was said of whole hours, each with how many records had been acknowledged before
        self.all = []  # of all kinds, in order
        self.calls = []  # sizes of the requests
        self.refuses = lambda record: False
        self.answers_after_s = 0.005

    async def publish(self, records):
        from dataplane.tasks import sleep

        self.calls.append(len(records))
        await sleep(self.loop, self.answers_after_s)
        taken = [record for record in records if not self.refuses(record)]
        for record in taken:
            booked = self._booked(record)
            self.all.append(booked)
            if isinstance(record, UsageRecord):
                self.records.append(booked)
            elif isinstance(record, InstanceRecord):
                self.instances.append(booked)
            elif isinstance(record, UserRecord):
                self.users.append(booked)
            else:
                self.complete.append((booked, len(self.records)))
        return taken

    def _booked(self, record):
        """As the contract has it read: no record is of an hour that had not come, or ended, when it was written."""
        written = hour_of(self.clock.now_ms())
        last = written - 1 if isinstance(record, HoursComplete) else written
        return replace(record, hour=min(record.hour, hour_text(last)))

    def of(self, topic, *, boot=None):
        return [r for r in self.records if r.topic == topic and boot in (None, r.boot)]


class Life:
    """One boot of broker 1."""

    def __init__(self, network, files, boot, *, start=True, directories=("/data",), offline=(), **settings):
        self.network = network
        self.loop = network.loop("b1")
        self.sink = Topic(self.loop, network.clock)
        self.said = []
        config = BrokerConfig(1, directories, ("b1", 9000), settings=Settings(**settings))
        doors = Doors(self.loop, files, None, ImmediateBackground(), Random(1))
        for directory in directories:
            files.make_directory(directory)
        self.meter = Meter(config, doors, boot, self.sink, self.said.append)
        self.meter.open([directory for directory in directories if directory not in offline])
        if start:
            self.meter.start()

    def run(self, seconds):
        self.network.run_for(seconds)


class World:
    """The machine on which boots follow each other."""

    def __init__(self, **settings):
        self.network, self.files, self.settings = VirtualNetwork(1), MemoryFiles(), settings
        self._boots = 0

    def boot(self, **options) -> Life:
        self._boots += 1
        return Life(self.network, self.files, f"{self._boots:016x}", **self.settings, **options)

    def kill(self):
        self.network.crash("b1")

    def counter_files(self):
        return [name for name in self.files.list("/data") if name.startswith("usage-")]


def totals(records):
    """(topic) -> produced, consumed, stored: what a reader of the topic makes of it, over all hours."""
    largest = {}
    for r in records:
        counters = (r.produced_bytes, r.consumed_bytes, r.stored_byte_seconds)
        key = (r.boot, r.instance, r.topic)
        largest[key] = tuple(map(max, largest.get(key, (0, 0, 0)), counters))
    sums = {}
    for (_, _, topic), counters in largest.items():
        sums[topic] = tuple(a + b for a, b in zip(sums.get(topic, (0, 0, 0)), counters, strict=True))
    return sums


def hourly(records, topic):
    """hour -> produced, consumed, stored within it, as the contract says: what its largest is beyond the largest before."""
    found = {}
    for boot in {r.boot for r in records}:
        largest = {}
        for r in records:
            if (r.topic, r.boot) == (topic, boot):
                counters = (r.produced_bytes, r.consumed_bytes, r.stored_byte_seconds)
                largest[r.hour] = tuple(map(max, largest.get(r.hour, (0, 0, 0)), counters))
        before = (0, 0, 0)
        for hour in sorted(largest):
            grown = tuple(max(0, b - a) for a, b in zip(before, largest[hour], strict=True))
            found[hour] = tuple(a + b for a, b in zip(found.get(hour, (0, 0, 0)), grown, strict=True))
            before = tuple(map(max, before, largest[hour]))
    return found
