"""What the active master knows, and the grants that follow from it. Pure: reports, specs and time in, grants out.

===============  =======================================================================================================
heard            the last report of each broker and when it came; good for 2 periods
silent           a leader not heard of for longer: its initial share is set aside until it reports again, or is gone
                 from ZooKeeper (then the controller has moved its leaderships, and it is forgotten)
learning         the first lease of a new master: it renews what brokers report holding before it changes anything,
                 because it cannot tell yet who else holds what. Limits of 0 and "unlimited" need no learning
storage fence    up when an instance's storage over all brokers reaches what was bought, down under 97 % of it. While
                 learning it can only go up: by what brokers report being blocked by, or by a sum that is already full
===============  =======================================================================================================

A broker that left still holds its replicas: its storage counts on for a while, so that a crash does not open the fence.
Grants answer a report and name only instances that this broker leads something of. Time is monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from quota.contracts.grant import BLOCKED_STORAGE, Grant, Grants, InstanceGrant
from quota.contracts.instance import InstanceSpec, InstanceState
from quota.contracts.report import DIRECTIONS, Flow, FlowReport
from quota.core.allocate import allocate
from quota.core.model import Allocation, Branch, BrokerFlow

GOOD_FOR_PERIODS = 2
STORAGE_KEPT_S = 900.0  # of a broker that does not report
LIFTED_UNDER_PERCENT = 97


@dataclass(frozen=True, slots=True)
class Heard:
    """A broker's last report."""

    report: FlowReport
    at: float


@dataclass(frozen=True, slots=True)
class Stored:
    """What one broker last said it stores of one instance."""

    bytes: int
    at: float


class Ledger:
    """The state of one mastership, from election to loss. A new mastership begins with a new ledger."""

    def __init__(self, *, epoch: int, now: float, period_ms: int, lease_ms: int) -> None:
        self.epoch = epoch
        self.lease_ms = lease_ms
        self.specs: Mapping[str, InstanceSpec] = {}
        self._good_for_s = GOOD_FOR_PERIODS * period_ms / 1000
        self._learning_until = now + lease_ms / 1000
        self._registered: frozenset[int] | None = None
        self._heard: dict[int, Heard] = {}
        self._stored: dict[str, dict[int, Stored]] = {}
        self._full: dict[str, bool] = {}

    # --- what comes in ------------------------------------------------------------------------------------------------

    def set_specs(self, specs: Mapping[str, InstanceSpec], now: float) -> None:
        """The instances as they stand now; deleted ones may be among them."""
        self.specs = {key: spec for key, spec in specs.items() if spec.state is not InstanceState.DELETED}
        for gone in [instance for instance in self._stored if instance not in self.specs]:
            del self._stored[gone]
            self._full.pop(gone, None)
        for instance in self.specs:
            self._fence(instance, now)

    def set_registered(self, brokers: Collection[int] | None) -> None:
        """The brokers in ZooKeeper; None while that is not known."""
        self._registered = None if brokers is None else frozenset(brokers)

    def report(self, report: FlowReport, now: float) -> bool:
        """Take a report. False: it is older than one already taken (a connection that died late)."""
        last = self._heard.get(report.broker)
        if last and last.report.boot == report.boot and last.report.sequence >= report.sequence:
            return False
        self._heard[report.broker] = Heard(report, now)
        for instance, entry in report.instances.items():
            if instance not in self.specs:
                continue
            self._stored.setdefault(instance, {})[report.broker] = Stored(entry.storage_bytes, now)
            if self.learning(now) and entry.produce.blocked == BLOCKED_STORAGE:
                self._full[instance] = True
            self._fence(instance, now)
        for instance, stored in self._stored.items():
            if report.broker in stored and instance not in report.instances:
                del stored[report.broker]
                self._fence(instance, now)
        return True

    def tick(self, now: float) -> None:
        """Once a period: forget who is gone, look at every fence again."""
        for broker, heard in list(self._heard.items()):
            if not self._fresh(heard, now) and self._registered is not None and broker not in self._registered:
                del self._heard[broker]
        for instance, stored in self._stored.items():
            for broker, entry in list(stored.items()):
                if broker not in self._heard and now - entry.at > STORAGE_KEPT_S:
                    del stored[broker]
            self._fence(instance, now)

    # --- what goes out ------------------------------------------------------------------------------------------------

    def knows(self, broker: int) -> bool:
        """Whether a report of the broker is remembered."""
        return broker in self._heard

    def grants(self, broker: int, now: float) -> Grants:
        """The answer to the broker's last report. KeyError when it never reported."""
        report = self._heard[broker].report
        instances = {
            instance: self._instance_grant(broker, instance, now)
            for instance, entry in report.instances.items()
            if instance in self.specs and entry.produce.leaders > 0
        }
        return Grants(self.epoch, report.sequence, self.lease_ms, instances)

    def allocation(self, instance: str, direction: str, now: float) -> Allocation:
        """What is granted of one limit now, to every leader. KeyError: no such instance.

        While learning, an allocation of None under a limit means that the broker stands on its initial share.
        """
        spec = self.specs[instance]
        heard = [each for _, each in sorted(self._heard.items()) if instance in each.report.instances]
        flows = [_broker_flow(each, instance, direction, silent=not self._fresh(each, now)) for each in heard]
        allocation = allocate(limit_of(spec, direction), flows, spec.strategy)
        if not self.learning(now) or not allocation.limit_bytes_per_s:
            return allocation
        held = {each.report.broker: each.report.instances[instance].flow(direction).allocation for each in heard}
        return _renewed(allocation, allocation.limit_bytes_per_s, held)

    def storage_used_bytes(self, instance: str) -> int:
        """Over all brokers, every replica counted."""
        return sum(entry.bytes for entry in self._stored.get(instance, {}).values())

    def connections(self, instance: str) -> int:
        """Over all brokers."""
        entries = (heard.report.instances.get(instance) for heard in self._heard.values())
        return sum(entry.connections for entry in entries if entry)

    def storage_full(self, instance: str) -> bool:
        """Whether the fence is up."""
        return self._full.get(instance, False)

    def learning(self, now: float) -> bool:
        """Whether the first lease has not passed yet."""
        return now < self._learning_until

    def reporting(self, now: float) -> tuple[int, ...]:
        """The brokers whose last report is good."""
        return tuple(broker for broker, heard in sorted(self._heard.items()) if self._fresh(heard, now))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _fresh(self, heard: Heard, now: float) -> bool:
        return now - heard.at <= self._good_for_s

    def _instance_grant(self, broker: int, instance: str, now: float) -> InstanceGrant:
        produce, consume = (self._grant(broker, instance, direction, now) for direction in DIRECTIONS)
        if self.storage_full(instance):
            produce = Grant(produce.allocation, produce.branch, BLOCKED_STORAGE)
        return InstanceGrant(produce, consume, self.storage_used_bytes(instance))

    def _grant(self, broker: int, instance: str, direction: str, now: float) -> Grant:
        share = self.allocation(instance, direction, now).share(broker)
        assert share is not None, "grants go to leaders only"
        return Grant(share.allocation_bytes_per_s, share.branch.value)

    def _fence(self, instance: str, now: float) -> None:
        limit = self.specs[instance].limits.storage_bytes
        used = self.storage_used_bytes(instance)
        if limit is None:
            self._full[instance] = False
        elif used >= limit:
            self._full[instance] = True
        elif used * 100 < limit * LIFTED_UNDER_PERCENT and not self.learning(now):
            self._full[instance] = False


def limit_of(spec: InstanceSpec, direction: str) -> int | None:
    """What was bought in one direction, bytes/s."""
    return spec.limits.produce_bytes_per_s if direction == "produce" else spec.limits.consume_bytes_per_s


def _renewed(allocation: Allocation, limit: int, held: Mapping[int, int | None]) -> Allocation:
    """The same leaders with what they hold already, as far as the limit allows."""
    shares = []
    for share in allocation.shares:
        amount = held[share.broker]
        renewed = None if amount is None else min(amount, limit)
        shares.append(replace(share, allocation_bytes_per_s=renewed, branch=Branch.LEARNING))
    return Allocation(limit, Branch.LEARNING, tuple(shares))


def _broker_flow(heard: Heard, instance: str, direction: str, *, silent: bool) -> BrokerFlow:
    flow: Flow = heard.report.instances[instance].flow(direction)
    return BrokerFlow(
        broker=heard.report.broker,
        leaders=flow.leaders,
        flow_bytes_per_s=flow.bytes * 1000 // max(heard.report.period_ms, 1),
        throttled=flow.throttled_ms > 0 or flow.queued_bytes > 0,
        silent=silent,
    )
