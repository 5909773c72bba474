"""What must hold at every moment of a run, whoever dies: looked at after each turn of a broker.

one leader         at most one broker leads a partition in an epoch
newest controller  who has heard of a controller never goes back to an earlier one
no way back        a leader's high watermark never moves back; no leader of a newer epoch lacks what was ever committed
equal logs         what two replicas hold below the smaller of their high watermarks is the same, batch for batch
enough copies      what is acknowledged is in the logs of min.insync.replicas brokers at that moment, or has been
stable reads       what was read once at an offset is there for every later reader
on disk            what a durable topic acknowledges is on the disks of as many (`disks.py`)
deleted for good   who leads after DeleteRecords was answered begins there, or later, as long as nobody has died since: what
                   followers know of it is in their memory only, until their next checkpoint. A leader that does not know yet
                   that it has been deposed goes by what they said before they died, as Kafka's does: it does not count

Has been: who is down counts with what it had when it went, and who lost power with what it had before that, until it is
in sync again. For a leader goes by what a follower said that it has, until the session of that life ends. The follower's
power may have gone a moment after it said so, and that may be the moment in which it joins the ISR and makes enough of too
few; retries are answered too from then on. The record is still on the others that counted, and none of them loses power
meanwhile (`faults`): that is what is promised.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from dataplane.storage.log import lookup
from tests.simulation.disks import Disks

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.broker import Broker
    from dataplane.replication.replica.partition import Partition
    from tests.simulation.cluster import SimulatedCluster

LOOK_EVERY_S = 0.5
MIN_INSYNC_REPLICAS = 2


class ViolationError(AssertionError):
    """An invariant does not hold; the text says which, where and when."""


class Invariants:
    """Watches the partitions of one topic.

    `internal`: one of the cluster's own; `topic_id`: where another one had its name before. Logs that are compacted are not
    equal.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        topic: str,
        partitions: int,
        *,
        internal: bool = False,
        are_logs_equal: bool = True,
        topic_id: UUID | None = None,
    ) -> None:
        self._cluster = cluster
        name = topic if internal else f"simulate.{topic}"
        self._places = [(name, index) for index in range(partitions)]
        self._are_logs_equal, self._topic_id = are_logs_equal, topic_id
        self._disks: Disks | None = None
        self._deleted: dict[int, int] = {}  # partition -> DeleteRecords was answered up to there
        self._leaders: dict[tuple[int, int], int] = {}  # (partition, epoch) -> broker
        self._marks: dict[tuple[int, int], int] = {}  # (partition, epoch) -> high watermark of its leader
        self._committed: dict[int, int] = {}  # partition -> the highest high watermark ever
        self._read: dict[tuple[int, int], bytes] = {}
        self._next_look = 0.0
        self._controllers: dict[Broker, int] = {}  # the epoch of the last one that each life of a broker heard of
        self._newest: dict[int, int] = {}  # partition -> the highest epoch that was led
        self._compared: dict[int, int] = {}  # partition -> logs were equal up to there
        self._broker_at = {cluster.host(broker): broker for broker in cluster.ids}
        cluster.network.looks.append(self._look)
        cluster.deaths.append(lambda _broker: self._deleted.clear())

    def close(self) -> None:
        """Look no more: the topic goes."""
        self._cluster.network.looks.remove(self._look)

    def watch_disks(self) -> None:
        """The topic is a durable one."""
        self._disks = Disks(self._cluster, self._places)

    def _look(self, host: str) -> None:
        """What the turn of a host has changed is in its broker. Raises ViolationError."""
        broker = self._broker_at.get(host)
        running = self._cluster.brokers.get(broker) if broker is not None else None
        if broker is not None and running is not None:
            self._obeys(broker, running)
            for name, index in self._places:
                partition = running.replicas.registry.get(name, index)
                if partition is not None and partition.state.is_leader and self._is_ours(partition.topic_id):
                    self._leads(broker, index, partition)
        now = self._cluster.network.clock.seconds
        if now >= self._next_look:
            self._next_look = now + LOOK_EVERY_S
            self.compare_logs()

    def read(self, index: int, offset: int, value: bytes) -> None:
        """A reader got this. Raises ViolationError."""
        before = self._read.setdefault((index, offset), value)
        if before != value:
            self._violated(f"partition {index} offset {offset} was {before!r} for one reader and is {value!r} now")

    def acknowledged(self, index: int, offset: int) -> None:
        """A producer with acks=all was told so. Raises ViolationError."""
        without = [broker for broker in self._cluster.ids if not self._has_or_had(broker, index, offset)]
        if len(self._cluster.ids) - len(without) < MIN_INSYNC_REPLICAS:
            self._violated(f"partition {index} offset {offset} is acknowledged, and brokers {without} do not have it")

    def acknowledged_durably(self, index: int, offset: int) -> None:
        """The same of a durable topic. Raises ViolationError."""
        assert self._disks is not None
        having = [broker for broker in self._cluster.ids if self._disks.has_or_had(broker, index, offset)]
        if len(having) < MIN_INSYNC_REPLICAS:
            self._violated(f"partition {index} offset {offset} is acknowledged, and on the disks of {having} only")

    def deleted(self, index: int, offset: int, *, by: int) -> None:
        """DeleteRecords was answered by a broker. It goes by what replicas that are alive have said, in this life or before."""
        if len(self._cluster.brokers) < len(self._cluster.ids) or not self._cluster.up():
            return
        if self._leaders.get((index, self._newest.get(index, -1))) != by:
            return
        self._deleted[index] = max(offset, self._deleted.get(index, 0))

    def _is_ours(self, topic_id: UUID) -> bool:
        return self._topic_id in (None, topic_id)

    def _has_or_had(self, broker: int, index: int, offset: int) -> bool:
        cluster = self._cluster
        latest = cluster.brokers.get(broker) or cluster.former[broker]
        return any(self._end(life, index) > offset for life in (latest, *cluster.before_power_cuts.get(broker, ())))

    def _end(self, life: Broker, index: int) -> int:
        name = self._places[index][0]
        partition = life.replicas.registry.get(name, index)
        log = life.logs.get(name, index) if partition is None else partition.log
        return 0 if log is None or not self._is_ours(log.topic_id) else log.end_offset

    def compare_logs(self, *, all_of_them: bool = False) -> None:
        """All replicas of all partitions: what came since the last time, or everything. Raises ViolationError."""
        if not self._are_logs_equal:
            return
        for name, index in self._places:
            found = []
            for broker, running in self._cluster.brokers.items():
                if self._cluster.files[broker].fault is not None:
                    continue  # it cannot be read
                partition = running.replicas.registry.get(name, index)
                if partition is not None and not partition.state.is_offline and self._is_ours(partition.topic_id):
                    found.append((broker, partition))
            known = 0 if all_of_them else self._compared.get(index, 0)
            for (a, first), (b, second) in itertools.pairwise(found):
                end = min(first.state.high_watermark, second.state.high_watermark)
                start = max(first.log.start_offset, second.log.start_offset, known)
                if _content(first, start, end) != _content(second, start, end):
                    self._violated(f"partition {index}: brokers {a} and {b} differ between {start} and {end}")
            if len(found) == len(self._cluster.ids):
                self._compared[index] = max(known, min(partition.state.high_watermark for _, partition in found))

    def _obeys(self, broker: int, running: Broker) -> None:
        epoch, before = running.metadata.controller_epoch, self._controllers.get(running, -1)
        if epoch < before:
            self._violated(f"broker {broker} obeyed the controller of epoch {before}, and then that of epoch {epoch}")
        self._controllers[running] = epoch

    def _leads(self, broker: int, index: int, partition: Partition) -> None:
        key = (index, partition.state.leader_epoch)
        if self._leaders.setdefault(key, broker) != broker:
            self._violated(f"partition {index} epoch {key[1]}: led by {self._leaders[key]} and by {broker}")
        mark = partition.state.high_watermark
        if mark < self._marks.get(key, 0):
            self._violated(
                f"partition {index} epoch {key[1]}: the high watermark went from {self._marks[key]} to {mark}"
            )
        self._marks[key] = mark
        newest = self._newest[index] = max(key[1], self._newest.get(index, 0))
        if key[1] == newest:
            if partition.log.end_offset < self._committed.get(index, 0):
                self._violated(
                    f"partition {index}: broker {broker} leads epoch {key[1]} and ends at {partition.log.end_offset}, "
                    f"but {self._committed[index]} was committed"
                )
            self._committed[index] = max(mark, self._committed.get(index, 0))
            if partition.log.start_offset < self._deleted.get(index, 0):
                self._violated(
                    f"partition {index}: broker {broker} leads epoch {key[1]} and begins at {partition.log.start_offset}, "
                    f"but what lies before {self._deleted[index]} was deleted"
                )

    def _violated(self, what: str) -> None:
        raise ViolationError(f"{self._cluster.network.clock.monotonic():.3f} s: {self._places[0][0]}: {what}")


def _content(partition: Partition, start: int, end: int) -> list[bytes]:
    """Batches from `start` on that end below `end`; their leader epochs belong to it."""
    if end <= start:
        return []
    return [bytes(batch) for header, batch in lookup.batches(partition.log, start, end) if header.last_offset < end]
