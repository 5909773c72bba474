"""The gate: an instance's buckets, made of its limits, and the storage fence.

One look-up a request: an instance holds the buckets that each kind of request has to pass (`throttle.tolls`);
`requests.turnstile` asks them before it lets a request begin. Traffic of the internal listener has no instance and is not
charged, but for what the control plane reads and writes for a tenant (`RequestContext.payer`): that never waits here, and
makes the instance's own clients wait. What a fetch brings is charged when it is known: here, or by the short cut itself
(`Turnstile.consumed`).

What consumer groups store is charged to a bucket of its own: it is nobody's bandwidth, but it lies on the disks that all
share, and a producer that is throttled must not hold up the commits of consumers. What an instance's requests cost the loop
is charged by the loop, to the bucket that it is told of here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.doors import Loop
from dataplane.throttle.debt_queue import DebtQueues
from dataplane.throttle.rules import InstanceRules
from dataplane.throttle.tolls import tolls_by_key
from quota.agent.agent import Agent
from quota.contracts.rows import Row, Unit
from quota.contracts.sizes import size_text
from quota.core.bucket import TokenBucket
from quota.core.shares import Sender

if TYPE_CHECKING:
    from dataplane.tenancy.instance import Instance


CONNECTIONS_AT_ONCE_S = 1.0
"""So many seconds' worth of connections may begin at once: clients connect to all brokers when they start."""


class Gate:
    """Every instance's buckets: made when it comes, asked and charged for its requests, gone when it goes."""

    def __init__(self, agent: Agent, loop: Loop, debt_queues: DebtQueues, group_bytes_per_s: int) -> None:
        self._agent, self._loop, self._debt_queues = agent, loop, debt_queues
        self._group_bytes_per_s = group_bytes_per_s
        self._clock = loop.clock

    def configure(self, instance: Instance) -> None:
        """An instance appeared or its limits changed."""
        limits, name = instance.spec.limits, instance.spec.id
        now = self._clock.monotonic()
        self._agent.configure(
            name, limits.produce_bytes_per_s, limits.consume_bytes_per_s, now, elastic=limits.elastic_bytes_per_s
        )
        instance.produce_bucket = self._agent.bucket(name, "produce")
        instance.consume_bucket = self._agent.bucket(name, "consume")
        if instance.group_bucket is None:
            instance.group_bucket = TokenBucket(self._group_bytes_per_s, now)
        if instance.connection_bucket is None:
            instance.connection_bucket = TokenBucket(limits.connections_per_s, now)
        instance.connection_bucket.set_rate(limits.connections_per_s, now)
        before = instance.request_bucket, instance.loop_bucket
        instance.request_bucket = self._bucket_of_all_brokers(instance, Unit.REQUESTS)
        instance.loop_bucket = self._bucket_of_all_brokers(instance, Unit.LOOP_TIME)
        for bucket in before:
            if bucket is not None and bucket not in (instance.request_bucket, instance.loop_bucket):
                bucket.set_rate(None, now)  # those who wait for a limit that is gone are let go
        self._loop.charge_to(instance.names.key, instance.loop_bucket)
        instance.tolls, instance.other_tolls = tolls_by_key(
            instance.produce_bucket,
            instance.consume_bucket,
            instance.group_bucket,
            instance.request_bucket,
            instance.loop_bucket,
        )
        self._configure_rules(instance)
        self._agent.watch_fence(name, instance.access_changed)
        instance.access_changed()

    def _bucket_of_all_brokers(self, instance: Instance, unit: Unit) -> TokenBucket | None:
        """Of what comes to every broker alike, whoever leads what. None: there is no such limit."""
        spec, row = instance.spec, Row(instance.spec.id, unit=unit).key
        limit = spec.limits.rate(unit)
        if limit is None:
            self._agent.remove(row)
            return None
        now = self._clock.monotonic()
        self._agent.configure(row, limit, None, now)
        self._agent.set_leaders(row, 1, len(spec.hosts), now)
        return self._agent.bucket(row, "produce")

    def _configure_rules(self, instance: Instance) -> None:
        spec, rules = instance.spec, instance.rules
        if spec.rules.items:
            if rules is None:
                rules = instance.rules = InstanceRules(self._agent, self._clock, spec.id, instance.names)
            if rules.version != spec.rules.version:
                rules.configure(spec.rules)
        elif rules is not None:
            rules.close()
            instance.rules = None

    def remove(self, instance: Instance) -> None:
        """An instance is gone."""
        self._agent.remove(instance.spec.id)
        for unit in (Unit.REQUESTS, Unit.LOOP_TIME):
            self._agent.remove(Row(instance.spec.id, unit=unit).key)
        self._loop.forget_account(instance.names.key)
        if instance.rules is not None:
            instance.rules.close()

    def connection_wait_s(self, instance: Instance) -> float:
        """For how long no connection of the instance may begin: its limit of those that begin in a second is reached.

        Not of one that may have none at all: who waited for that would wait for ever, and is refused.
        """
        bucket = instance.connection_bucket
        if bucket is None or not bucket.rate:
            return 0.0
        delay_s = bucket.delay(self._clock.monotonic())
        return max(delay_s - CONNECTIONS_AT_ONCE_S, 0.001) if delay_s >= CONNECTIONS_AT_ONCE_S else 0.0

    def admits_connection(self, instance: Instance) -> bool:
        """Whether one more connection may begin now. One that is refused costs nothing: who waits a little gets in."""
        bucket, now = instance.connection_bucket, self._clock.monotonic()
        if bucket is None:
            return True
        if bucket.delay(now) >= CONNECTIONS_AT_ONCE_S:
            return False
        bucket.charge(1, now)
        return True

    def charge_consume(self, instance: Instance | None, sender: Sender, size: int, told_s: float = 0.0) -> float:
        """Charge the bytes of a fetch answer; the seconds that its sender is told to wait before the next."""
        if instance is None or instance.consume_bucket is None:
            return told_s
        return max(told_s, self._debt_queues.charge(instance.consume_bucket, sender, size, self._clock.monotonic()))

    def charge_produce(self, instance: Instance | None, sender: Sender, size: int) -> float:
        """Charge a batch that came by the internal listener for an instance; the seconds that its sender is told to wait."""
        if instance is None or instance.produce_bucket is None:
            return 0.0
        return self._debt_queues.charge(instance.produce_bucket, sender, size, self._clock.monotonic())

    def fetch_bytes(self, instance: Instance | None, window_s: float) -> int | None:
        """The most that one fetch answer should hold; None: no limit. Never nothing: a consumer must not stall."""
        if instance is None or instance.consume_bucket is None:
            return None
        return instance.consume_bucket.fetch_bytes(window_s)

    def refused(self, instance: Instance | None, size: int) -> None:
        """A request of this size was charged, and its records were not taken: it is no flow."""
        if instance is not None and instance.produce_bucket is not None:
            instance.produce_bucket.refused_bytes += size

    def produce_refusal(self, instance: Instance | None) -> str | None:
        """Why producing is refused, in a sentence that names limit and use; None: it is not."""
        if instance is None or instance.produce_bucket is None or instance.produce_bucket.blocked is None:
            return None
        limit = instance.spec.limits.storage_bytes or 0
        used = self._agent.storage_used_bytes(instance.spec.id)
        return (
            f"storage is full: {size_text(used)} used of {size_text(limit)}; "
            "delete topics or enlarge the instance. Consuming goes on"
        )
