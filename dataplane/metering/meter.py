"""All topics that this broker has replicas of: their counters, and what of them is due to be told.

Told is what has changed: byte counters every `usage_emit_interval_ms`, storage alone every `usage_storage_interval_ms`,
and everything once under an hour when the hour has ended. Work is proportional to what there is to tell, in portions of
at most a few milliseconds, and the next portion is made when the one before it has been acknowledged:

    due      byte counters have changed
    closing  an hour has ended: all topics are closed, portion by portion. They can be, later, as of the hour's edge:
             since then their counters stand and their storage grows evenly. A change closes its topic first.
    former   what earlier boots left
    instances  what is counted of whole instances and their users (`instances`): a walk each `usage_instance_interval_ms`, and
             at an hour's end
    round    storage alone: a slow walk around all topics

So many records a second are made of what is due (`usage_emit_records_per_s`), as many of users, and no more: where very many
topics change all the time, each is told less often, in its turn. Hours are closed as fast as the topic takes it.

A record waits in `_pending` until it is acknowledged; a newer one of the same key takes its place. So while `__usage` has
no leader, nothing is lost and hardly anything is kept.

When all of an hour is acknowledged, and what earlier boots left, the topic is told that too (`HoursComplete`): an hour of
which every broker has said so does not change any more.

A topic whose last replica here goes away is told once more; then its slot is free. One whose byte-seconds come near to 63
bits (10 TB for 5 days) is told, and counts on from zero in another slot, as another boot. So does one that is made anew with
another UUID before that was done: no counter is of two topics.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from dataplane.metering.counters import Counters
from dataplane.metering.hours import HOUR_MS, hour_of, hour_text
from dataplane.metering.instances import Instances
from dataplane.metering.moved import MovedTopics
from dataplane.metering.previous_boots import PreviousBoots, counters_path
from dataplane.metering.usage import TopicUsage
from dataplane.protocol.schema import NO_UUID
from dataplane.tasks import Task, either, sleep
from quota.contracts.namespace import counted_key
from quota.contracts.usage import HoursComplete, InstanceRecord, UsageRecord, UserRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from dataplane.config import BrokerConfig
    from dataplane.doors import Doors, Timer
    from quota.contracts.usage import Told

TICK_S = 1.0
RETRY_S = 1.0
PORTION = 64
"""Records in one request: a millisecond or two to make."""
_MOST_PENDING = 1024
_LOOKED_AT = 512
"""Quiet topics passed over in one go."""
_INSTANCES_LOOKED_AT = 64
"""And instances, each of which takes some microseconds."""
_BREATH_S = 0.001


class Sink(Protocol):
    """Where records go (`publisher`)."""

    async def publish(self, records: Sequence[Told]) -> list[Told]:
        """Write each; returns those that were acknowledged."""
        ...


class _Credit:
    """Records that may be made now: so many a second, and no more saved up than one second's."""

    __slots__ = ("_at_ms", "is_unlimited", "records")

    def __init__(self) -> None:
        self.records = 0.0
        self._at_ms = 0
        self.is_unlimited = False

    @property
    def is_enough(self) -> bool:
        """For one more."""
        return self.is_unlimited or self.records >= 1

    def earn(self, rate: int, now_ms: int) -> None:
        """What has been earned since the last call."""
        self.records = min(self.records + rate * (now_ms - self._at_ms) / 1000, max(rate, 1))
        self._at_ms = now_ms


class Meter:
    """See the module. `open` comes before everything else."""

    def __init__(self, config: BrokerConfig, doors: Doors, boot: str, sink: Sink, log: Callable[[str], None]) -> None:
        self._config, self._doors, self._boot, self._sink, self._log = config, doors, boot, sink, log
        self._clock = doors.loop.clock
        self.cluster = config.cluster
        self.instances = Instances(broker=config.id, boot=boot, cluster=config.cluster)
        self._instances_at_ms = 0
        self.hour = hour_of(self._clock.now_ms())
        self._generation = 0
        self._counters: Counters | None = None
        self._former: PreviousBoots | None = None
        self._topics: dict[str, TopicUsage] = {}
        self.moved = MovedTopics(self.now_ms)
        self._dirty: list[TopicUsage] = []
        self._due: deque[TopicUsage] = deque()
        self._due_credit, self._user_credit = _Credit(), _Credit()
        self._is_stopping = False
        self._closing = 0  # so many topics of `_round`, from its front, have not been closed since the hour ended
        self._round: deque[TopicUsage] = deque()
        self._round_credit = 0.0
        self._retired: list[TopicUsage] = []
        self._left_slots: list[int] = []  # of topics that count elsewhere now
        self._pending: dict[tuple[str, ...], Told] = {}
        self._floor = 0  # the first hour that was not called told in full, by this boot or one before it
        self._emit_at_ms = 0
        self._flushing: Task[None] | None = None
        self._timer: Timer | None = None

    # --- life ---------------------------------------------------------------------------------------------------------

    def open(self, directories: Sequence[str] | None = None) -> None:
        """Find what earlier boots left in the data directories that can be read (None: all), and count in the first.

        Raises OSError.
        """
        files, directories = self._doors.files, directories or self._config.data_dirs
        self._former = PreviousBoots(files, directories, self._log, self.cluster)
        self._floor = self._former.floor
        self.hour = max(self.hour, self._floor)
        path = counters_path(directories[0], self._boot)
        self._counters = Counters(files, path, boot=int(self._boot, 16), broker=self._config.id)
        self._counters.open_from(self._floor)
        self._counters.alive(self.now_ms(), self.hour)

    def start(self) -> None:
        settings = self._config.settings
        self._emit_at_ms = self.now_ms() + settings.usage_emit_interval_ms
        self._instances_at_ms = self.now_ms() + settings.usage_instance_interval_ms
        self._tick()

    async def stop(self, within_s: float) -> None:
        """Tell what has changed, and wait a little. The next boot tells the rest: counting goes on until the end."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        self._is_stopping = True
        self._sign_of_life()
        if not self.instances.is_closing:
            self.instances.begin(self.hour)
        self._emit()
        if self._flushing is not None and not self._flushing.done:
            await either(self._flushing, sleep(self._doors.loop, within_s))
            self._flushing.cancel()

    # --- topics -------------------------------------------------------------------------------------------------------

    def topic(self, physical: str, topic_id: UUID = NO_UUID) -> TopicUsage | None:
        """The counters of a topic that has replicas here; None for one of the cluster's own."""
        usage = self._topics.get(physical)
        if usage is not None and NO_UUID not in (topic_id, usage.topic_id) and topic_id != usage.topic_id:
            self._begin_another(usage, topic_id)
        if usage is None:
            if self._counters is None or counted_key(physical) is None:
                return None
            usage = self._topics[physical] = TopicUsage(
                self,
                self._counters,
                physical,
                broker=self._config.id,
                boot=self._boot,
                generation=self._generation,
                topic_id=topic_id,
            )
            self._walk_by(usage)
        usage.is_retired = False
        return usage

    def _begin_another(self, usage: TopicUsage, topic_id: UUID) -> None:
        """Another topic has the name before the one before it was told to its end: that is done now.

        What an answer that is still leaving had read of the former one counts to the new one.
        """
        self.close_hours(usage)
        self._put(usage.take(self.now_ms()))
        usage.is_dirty = False
        self._begin_again(usage, topic_id)

    def _walk_by(self, usage: TopicUsage) -> None:
        """From now on the walk around all topics comes by: it tells what is quiet, and closes hours."""
        if not usage.in_round:
            usage.in_round = True
            self._round.append(usage)

    def retire(self, physical: str) -> None:
        """The topic has no replica here any more."""
        usage = self._topics.get(physical)
        if usage is not None and not usage.is_retired:
            usage.is_retired = True
            self.close_hours(usage)  # now: closed later it would count as told, and what it stored since would not be
            self._retired.append(usage)
            if not usage.is_dirty:
                self.changed(usage)

    def now_ms(self) -> int:
        """Monotonic."""
        return int(self._clock.monotonic() * 1000)

    def changed(self, usage: TopicUsage) -> None:
        """A byte counter changed that had not since the last record: one is due."""
        if usage.has_left and not self._revive(usage):
            return
        if usage.hour != self.hour:
            self.close_hours(usage)
        usage.is_dirty = True
        self._dirty.append(usage)
        self.moved.add(usage)

    def _revive(self, usage: TopicUsage) -> bool:
        """A topic that was told for the last time still sends something: count on, or with the topic that came since."""
        successor = self._topics.get(usage.physical)
        if successor is not None:
            produced = usage.produced_bytes - usage.emitted_produced
            consumed = usage.consumed_bytes - usage.emitted_consumed
            records = usage.produced_records - usage.emitted_records
            usage.emitted_produced, usage.emitted_consumed = usage.produced_bytes, usage.consumed_bytes
            usage.emitted_records = usage.produced_records
            usage.windows_produced += produced  # the other one tells it
            usage.windows_consumed += consumed
            usage.windows_records += records
            successor.produced(produced, records)
            successor.consumed(consumed)
            return False
        usage.hour = self.hour
        usage.settle_in()
        self._topics[usage.physical] = usage
        self._walk_by(usage)
        self._retired.append(usage)
        return True

    # --- by the clock -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        to_edge_s = (HOUR_MS - self._clock.now_ms() % HOUR_MS) / 1000
        period_s = min(TICK_S, self._config.settings.usage_emit_interval_ms / 1000, to_edge_s)
        self._timer = self._doors.loop.call_later(period_s, self._tick)
        self._sign_of_life()
        if self.now_ms() >= self._instances_at_ms:
            self._instances_at_ms = self.now_ms() + self._config.settings.usage_instance_interval_ms
            if not self.instances.has_more:  # else the one before it goes on
                self.instances.begin(self.hour)
                self._wake()
        if self.now_ms() >= self._emit_at_ms:
            self._emit()
        elif self._due or self.instances.has_more:
            self._wake()  # more of them may be told by now

    def _sign_of_life(self) -> None:
        hour = max(hour_of(self._clock.now_ms()), self._floor)
        if hour > self.hour or hour < self.hour - 1:
            self._turn_to(hour)
        assert self._counters is not None
        self._counters.alive(self.now_ms(), self.hour)

    def _turn_to(self, hour: int) -> None:
        """Every topic is told under the hour that ends when its turn comes, or when it changes. This turn is short.

        An hour before the last one: the clock had been far ahead, and has been put right.
        """
        if hour > self.hour:
            self.instances.begin(self.hour, closes=True)
        else:
            self.instances.begin(hour, anew=True)
        self.hour = hour
        self._closing = len(self._round)
        self._wake()

    def _emit(self) -> None:
        """What has changed is due."""
        settings = self._config.settings
        self._emit_at_ms = self.now_ms() + settings.usage_emit_interval_ms
        self._due.extend(self._dirty)
        self._dirty.clear()
        share = settings.usage_emit_interval_ms / settings.usage_storage_interval_ms
        self._round_credit = min(self._round_credit + share * len(self._round), len(self._round))
        self._wake()

    # --- records ------------------------------------------------------------------------------------------------------

    def close_hours(self, usage: TopicUsage) -> None:
        """Records of the hours that ended since the topic's last one, as of each hour's end."""
        if usage.hour > self.hour:
            # It may have been told under hours that had not come. Told again under this one it counts here, and no more there:
            # an hour's usage is what its counters have beyond those of all earlier hours.
            usage.hour = self.hour
            self._take(usage, self.now_ms())
        while usage.hour < self.hour:
            edge_ms = self._edge_ms(usage.hour + 1)
            if usage.is_dirty or usage.has_stored(edge_ms):
                self._take(usage, edge_ms)
            # What lies behind its last change already has nothing to tell: after a leap of the clock, very many hours.
            usage.hour = min(self.hour, max(usage.hour + 1, self._hour_at(usage.as_of_ms)))

    def _take(self, usage: TopicUsage, at_ms: int) -> None:
        self._put(usage.take(at_ms))
        usage.is_dirty = False
        if usage.is_nearly_full:
            self._begin_again(usage, usage.topic_id)

    def _begin_again(self, usage: TopicUsage, topic_id: UUID) -> None:
        self._generation += 1
        self._left_slots.append(usage.begin_again(self._boot, self._generation, topic_id))

    def _edge_ms(self, hour: int) -> int:
        """When an hour began, on the monotonic clock; never in the future."""
        return self.now_ms() - max(0, self._clock.now_ms() - hour * HOUR_MS)

    def _hour_at(self, at_ms: int) -> int:
        """The hour of a moment on the monotonic clock."""
        return hour_of(self._clock.now_ms() - (self.now_ms() - at_ms))

    def _put(self, record: UsageRecord) -> None:
        self._pending[record.boot, record.hour, record.instance, record.topic] = record

    def _refill(self) -> None:
        """Make another portion of records, unless too many wait already for a leader."""
        pending = self._pending
        room = min(PORTION, _MOST_PENDING - len(pending))
        full = len(pending) + room
        self._walk_closing(full)
        self._earn_credit()
        while self._due and self._due_credit.is_enough and len(pending) < full:
            usage = self._due.popleft()
            self.close_hours(usage)
            if usage.is_dirty:
                self._due_credit.records -= 1
                self._take(usage, self.now_ms())
        assert self._former is not None
        for record in self._former.next(full - len(pending)):
            self._put(record)
        self._walk_instances(full)
        self._walk_round(full)

    def _earn_credit(self) -> None:
        rate, now_ms = self._config.settings.usage_emit_records_per_s, self.now_ms()
        for credit in (self._due_credit, self._user_credit):
            credit.earn(rate, now_ms)
            credit.is_unlimited = self._is_stopping

    def _walk_instances(self, full: int) -> None:
        looked_at = 0
        while self._tells_instances and len(self._pending) < full and looked_at < _INSTANCES_LOOKED_AT:
            looked_at += 1
            record = self.instances.next()
            if isinstance(record, UserRecord):
                self._user_credit.records -= not self.instances.is_urgent
                self._pending[record.boot, record.hour, record.instance, "user", record.user] = record
            elif record is not None:
                self._pending[record.boot, record.hour, record.instance, ""] = record

    @property
    def _tells_instances(self) -> bool:
        """Whether the walk around instances goes on now: an hour's end waits for no credit, and takes none."""
        waits = self.instances.users_are_next and not self.instances.is_urgent and not self._user_credit.is_enough
        return self.instances.has_more and not waits

    def _walk_closing(self, full: int) -> None:
        self._closing = min(self._closing, len(self._round))  # the other walk drops topics, too
        looked_at = 0
        while self._closing and len(self._pending) < full and looked_at < _LOOKED_AT:
            self._closing -= 1
            looked_at += 1
            self._next_of_round()

    def _walk_round(self, full: int) -> None:
        looked_at = 0
        while self._round_credit >= 1 and len(self._pending) < full and looked_at < _LOOKED_AT and self._round:
            self._round_credit -= 1
            looked_at += 1
            usage = self._next_of_round()
            if usage is not None and not usage.is_dirty and usage.has_stored(self.now_ms()):
                self._take(usage, self.now_ms())

    def _next_of_round(self) -> TopicUsage | None:
        """The topic at the front, closed; it goes to the back, unless it has left."""
        usage = self._round.popleft()
        if usage.has_left:
            usage.in_round = False
            return None
        self._round.append(usage)
        self.close_hours(usage)
        return usage

    def _has_more(self) -> bool:
        assert self._former is not None
        return bool(
            (self._due and self._due_credit.is_enough)
            or self._closing
            or self._former.has_more
            or self._tells_instances
            or (self._round and self._round_credit >= 1)
        )

    # --- telling ------------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._flushing is None or self._flushing.done:
            self._flushing = Task(self._flush(), "usage records")

    async def _flush(self) -> None:
        """Portion by portion, until there is nothing more to tell."""
        while True:
            self._refill()
            if not self._pending:
                await sleep(self._doors.loop, _BREATH_S)
            elif not await self._tell():
                await sleep(self._doors.loop, RETRY_S)
            if not self._pending:
                self._all_told()
            self._say_complete()
            if not self._pending and not self._has_more():
                return

    async def _tell(self) -> bool:
        """Whether anything was acknowledged."""
        assert self._counters is not None
        pending = self._pending
        portion = list(islice(pending.items(), PORTION))
        acknowledged = await self._sink.publish([record for _, record in portion])
        told = {id(record) for record in acknowledged}
        for key, record in portion:
            if id(record) in told:
                if isinstance(record, HoursComplete):
                    self._counters.spoke(int(self._boot, 16))
                if pending.get(key) is record:
                    del pending[key]
            elif key in pending:
                pending[key] = pending.pop(key)  # others first: its leader may be away for long
        return bool(told)

    def _say_complete(self) -> None:
        """Once an hour: of those that have passed nothing is to be told any more, and nothing waits to be acknowledged.

        By the clock, where that is behind what is counted under: it had been ahead, and readers book by the time of writing.
        """
        assert self._former is not None
        assert self._counters is not None
        hour = min(hour_of(self._clock.now_ms()), self.hour) - 1
        if hour < self._floor or self._closing or self.instances.is_closing or self._former.owes:
            return
        if self._waits(hour_text(hour)):
            return
        self._floor = hour + 1
        self._counters.open_from(self._floor)  # before it is said: a kill in between closes an hour without a word
        after = tuple(f"{boot:016x}" for boot in sorted(self._former.boots))
        record = HoursComplete(self._config.id, self._boot, hour_text(hour), after, self.cluster)
        self._pending[record.boot, record.hour, "", ""] = record

    def _waits(self, hour: str) -> bool:
        """Whether a record of this hour, or one before it, is not acknowledged yet."""
        return any(
            isinstance(record, UsageRecord | InstanceRecord | UserRecord) and record.hour <= hour
            for record in self._pending.values()
        )

    def _all_told(self) -> None:
        """Every record made so far is acknowledged: what waited for that can go."""
        assert self._former is not None
        assert self._counters is not None
        self._former.acknowledged(self._counters.has_told)
        while self._left_slots:
            self._counters.release(self._left_slots.pop())
        retired, self._retired = self._retired, []
        for usage in retired:
            if not usage.is_retired or usage.has_left:
                continue  # it came back
            if usage.is_dirty:
                self._retired.append(usage)
                continue
            usage.move_out()
            del self._topics[usage.physical]
            self.moved.forget_gone(len(self._topics))
            self._generation += 1
