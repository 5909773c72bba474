"""What instances did that belongs to no topic: bytes on the wire, requests, time of the loop, waiting; and their users (`users`).

Nothing is counted here. Connections, buckets and accounts count anyway; once a period, and when an hour has ended, all instances
are read, a few in each turn, and those that have done anything are told. A reading that is lower than the one before it is of
something that has begun again from zero (an instance that went and came back), and counts whole.

What is read just after an hour's edge belongs to the hour that has ended. Connections add what they moved when they are looked
at (ten times in `connections_max_idle_ms`) and when they end, so these counters are a minute or two late, and less exact at an
edge than those of topics. Nothing of them outlives a killed process.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dataplane.metering.hours import hour_text
from dataplane.metering.users import Users
from quota.contracts.usage import InstanceRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.doors import Loop
    from dataplane.tenancy.instance import Instance
    from dataplane.tenancy.registry import Registry
    from dataplane.tenancy.user_traffic import UserTraffics
    from quota.contracts.usage import UserRecord

MICROSECONDS = 1_000_000
MILLISECONDS = 1_000


class Reading(NamedTuple):
    """Counters that only grow, or begin again; in the order of `quota.contracts.usage.INSTANCE_COUNTERS`."""

    wire_in_bytes: int
    wire_out_bytes: int
    requests: int
    loop_us: int
    throttled_ms: int


NOTHING = Reading(0, 0, 0, 0, 0)


class Source(Protocol):
    """The instances that there are now."""

    def ids(self) -> Iterable[str]:
        """All of them."""
        ...

    def read(self, instance_id: str) -> Reading | None:
        """One of them; None: it is gone."""
        ...

    def users(self, instance_id: str) -> UserTraffics | None:
        """What its users have moved; None: it is gone."""
        ...


class Nobody:
    """Where no instances are served."""

    def ids(self) -> Iterable[str]:
        """None."""
        return ()

    def read(self, instance_id: str) -> None:
        """Nothing."""
        del instance_id

    def users(self, instance_id: str) -> None:
        """Nor anything of users."""
        del instance_id


class ServedInstances:
    """Those of a broker."""

    def __init__(self, registry: Registry, loop: Loop) -> None:
        self._registry, self._loop = registry, loop

    def ids(self) -> Iterable[str]:
        """All of them."""
        return [instance.spec.id for instance in self._registry.all()]

    def read(self, instance_id: str) -> Reading | None:
        """One of them; None: it is gone."""
        instance = self._registry.get(instance_id)
        return None if instance is None else self.reading(instance)

    def users(self, instance_id: str) -> UserTraffics | None:
        """What its users have moved; None: it is gone."""
        instance = self._registry.get(instance_id)
        return None if instance is None else instance.user_traffic

    def reading(self, instance: Instance) -> Reading:
        """Also of one that the registry has just forgotten."""
        now = self._loop.clock.monotonic()
        buckets = (instance.produce_bucket, instance.consume_bucket)
        waited_s = sum(bucket.throttled_s(now) for bucket in buckets if bucket is not None)
        traffic = instance.traffic
        return Reading(
            traffic.received_bytes,
            traffic.sent_bytes,
            traffic.requests,
            int(self._loop.worked_s(instance.names.key) * MICROSECONDS),
            int(waited_s * MILLISECONDS),
        )


class _Usage:
    """Of one instance, since the boot."""

    __slots__ = ("last", "told", "totals")

    def __init__(self) -> None:
        self.last = self.totals = NOTHING
        self.told: Reading | None = NOTHING  # None: it is to be told whatever it says

    def add(self, reading: Reading) -> None:
        grown = [now - before if now >= before else now for now, before in zip(reading, self.last, strict=True)]
        self.totals = Reading(*(total + more for total, more in zip(self.totals, grown, strict=True)))
        self.last = reading


class Instances:
    """All instances that this boot has seen, and a walk around them."""

    def __init__(self, *, broker: int, boot: str, cluster: str) -> None:
        self._broker, self._boot, self._cluster = broker, boot, cluster
        self.source: Source = Nobody()
        self._usage: dict[str, _Usage] = {}
        self._gone: dict[str, None] = {}  # and not told since
        self._walk: deque[str] = deque()
        self._users = Users(broker=broker, boot=boot, cluster=cluster)
        self._hour = 0
        self._closes = self._anew = False  # as `begin` was told

    @property
    def has_more(self) -> bool:
        """Whether a walk is under way."""
        return bool(self._walk) or self._users.has_more

    @property
    def users_are_next(self) -> bool:
        """Whether what comes next is a user of an instance that was looked at."""
        return self._users.has_more

    @property
    def is_urgent(self) -> bool:
        """Whether the walk that is under way has to come to its end soon: an hour has ended, or the clock was put right."""
        return (self._closes or self._anew) and self.has_more

    @property
    def is_closing(self) -> bool:
        """Whether the walk that is under way is of an hour that has ended."""
        return self._closes and self.has_more

    def begin(self, hour: int, *, closes: bool = False, anew: bool = False) -> None:
        """Walk around all instances, and tell under this hour; in place of a walk that is under way.

        `closes`: the hour has ended. `anew`: also those of which nothing has changed, since they may have been told under an
        hour that had not come.
        """
        self._hour, self._closes, self._anew = hour, closes, anew
        if anew:
            for usage in self._usage.values():
                usage.told = None
        self._walk = deque(dict.fromkeys([*self.source.ids(), *self._gone]))

    def next(self) -> InstanceRecord | UserRecord | None:
        """Look at another user of the last one, or else at the next one; the record where there is anything to tell."""
        if self._users.has_more:
            return self._users.next(self._hour)
        instance_id = self._walk.popleft()
        self._users.look_at(instance_id, self.source.users(instance_id), closes=self._closes, anew=self._anew)
        usage, reading = self._usage.get(instance_id), self.source.read(instance_id)
        if usage is None:
            usage = self._usage[instance_id] = _Usage()
        if reading is not None:
            usage.add(reading)
        self._gone.pop(instance_id, None)
        if usage.totals == usage.told:
            return None
        usage.told = usage.totals
        return InstanceRecord(
            self._broker, self._boot, hour_text(self._hour), instance_id, *usage.totals, cluster=self._cluster
        )

    def gone(self, instance_id: str, reading: Reading, users: UserTraffics) -> None:
        """The broker forgets an instance: this is the last that is read of it. The next walk tells it."""
        self._users.gone(instance_id, users)
        usage = self._usage.setdefault(instance_id, _Usage())
        usage.add(reading)
        # Whatever comes under its name counts from zero, but for the loop, which may remember it.
        usage.last = NOTHING._replace(loop_us=reading.loop_us)
        self._gone[instance_id] = None
