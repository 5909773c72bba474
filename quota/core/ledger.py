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

Work follows what changes. Reports are kept turned around, by instance and then by broker; only a row that differs from
the last one, or a broker that falls silent, makes an instance's grants be worked out again, for all its brokers at once.

What is said of instances here holds for throttle rules within them too: each has a row of its own (`quota.core.limited`),
with limits and flows, and nothing stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from quota.contracts.grant import BLOCKED_STORAGE, Grant, Grants, InstanceGrant
from quota.contracts.instance import InstanceSpec, InstanceState
from quota.contracts.report import DIRECTIONS, FlowReport, InstanceReport, Members
from quota.core.allocate import allocate, divide
from quota.core.limited import Limited, learn_row, limited_rows
from quota.core.model import Allocation, Branch, BrokerFlow

# Where a master looks at 200,000 rows a second, fields are read by their places: names cost twice as much, and a
# NamedTuple's constructor three times what this does.
_new = tuple.__new__
GOOD_FOR_PERIODS = 2
STORAGE_KEPT_S = 900.0  # of a broker that does not report
LIFTED_UNDER_PERCENT = 97


@dataclass(frozen=True, slots=True)
class Heard:
    """A broker's last report."""

    report: FlowReport
    at: float


Row = tuple[InstanceReport, int]
"""What a broker last said of an instance, and over how many milliseconds."""
Granted = dict[int, InstanceGrant]
"""By broker, of those that lead something of the instance."""


class Ledger:
    """The state of one mastership, from election to loss. A new mastership begins with a new ledger."""

    def __init__(self, *, epoch: int, now: float, period_ms: int, lease_ms: int) -> None:
        self.epoch = epoch
        self.lease_ms = lease_ms
        self.specs: Mapping[str, InstanceSpec] = {}
        self._limited: dict[str, Limited] = {}  # instances, and the throttle rules within them
        self._good_for_s = GOOD_FOR_PERIODS * period_ms / 1000
        self._learning_until = now + lease_ms / 1000
        self._registered: frozenset[int] | None = None
        self._heard: dict[int, Heard] = {}
        self._rows: dict[str, dict[int, Row]] = {}  # of the brokers that are heard
        self._flowing: dict[str, None] = {}  # of which something flowed when last looked at
        self._members: dict[int, Members] = {}  # of groups with a rule, by the broker that coordinates them
        self._left: dict[int, Heard] = {}  # the last of brokers that are not waited for any more: they still store
        self._stored: dict[str, dict[int, int]] = {}  # bytes, also of those that have left
        self._stored_sum: dict[str, int] = {}
        self._full: dict[str, bool] = {}
        self._granted: dict[str, Granted] = {}  # as worked out for `_fresh`, until something changes
        self._fresh: frozenset[int] = frozenset()
        self._fresh_until = now
        self._was_learning = True

    # --- what comes in ------------------------------------------------------------------------------------------------

    def set_specs(self, specs: Mapping[str, InstanceSpec], now: float) -> None:
        """The instances as they stand now; deleted ones may be among them."""
        self.specs = {key: spec for key, spec in specs.items() if spec.state is not InstanceState.DELETED}
        for gone in [instance for instance in self._full if instance not in self.specs]:
            del self._full[gone]
        self._limited = limited_rows(self.specs.values(), self._rows)
        self._granted.clear()
        for instance in self.specs:
            self._fence(instance, now)

    def set_registered(self, brokers: Collection[int] | None) -> None:
        """The brokers in ZooKeeper; None while that is not known."""
        self._registered = None if brokers is None else frozenset(brokers)

    def report(self, report: FlowReport, now: float) -> bool:
        """Take a report. False: it is older than one already taken (a connection that died late)."""
        broker, last = report.broker, self._heard.get(report.broker)
        if last and last.report.boot == report.boot and last.report.sequence >= report.sequence:
            return False
        self._heard[broker] = Heard(report, now)
        if report.members or self._members:
            self._members[broker] = report.members
        if broker not in self._fresh:
            self._fresh_until = now  # look again who is silent
        before = last or self._left.pop(broker, None)
        if before is not None:
            for instance in before.report.instances.keys() - report.instances.keys():
                self._forget(instance, broker, now)
        rows, period_ms = self._rows, report.period_ms
        for instance, entry in report.instances.items():
            known = rows.get(instance)
            if known is None:
                known = rows[instance] = {}
            row = known.get(broker)
            flows = entry[0][0] > 0 or entry[1][0] > 0
            if row is not None and row[0] == entry and (row[1] == period_ms or not flows):
                continue
            known[broker] = (entry, period_ms)
            self._granted.pop(instance, None)
            if flows:
                self._flowing[instance] = None
            if row is None or row[0][2] != entry[2] or entry[0][5] is not None:
                self._look_at_storage(instance, broker, entry, now)
        return True

    def tick(self, now: float) -> None:
        """Once a period: forget who is gone, look at every fence again."""
        for broker, heard in list(self._heard.items()):
            if not self._is_good(heard, now) and self._registered is not None and broker not in self._registered:
                self._left[broker] = self._heard.pop(broker)
                self._members.pop(broker, None)
                for instance in heard.report.instances:
                    self._rows.get(instance, {}).pop(broker, None)
                    self._granted.pop(instance, None)
        for broker, heard in list(self._left.items()):
            if now - heard.at > STORAGE_KEPT_S:
                del self._left[broker]
                for instance in heard.report.instances:
                    self._forget(instance, broker, now)
        for instance in self.specs:
            self._fence(instance, now)

    # --- what goes out ------------------------------------------------------------------------------------------------

    def knows(self, broker: int) -> bool:
        """Whether a report of the broker is remembered."""
        return broker in self._heard

    def grants(self, broker: int, now: float) -> Grants:
        """The answer to the broker's last report. KeyError when it never reported."""
        report = self._heard[broker].report
        self._look_who_is_silent(now)
        instances = {}
        for instance, entry in report.instances.items():
            if entry[0][3] > 0 and instance in self._limited:
                granted = self._granted.get(instance)
                if granted is None:
                    granted = self._granted[instance] = self._work_out(instance, now)
                instances[instance] = granted[broker]
        return Grants(self.epoch, report.sequence, self.lease_ms, instances, self._members_of(report))

    def _members_of(self, report: FlowReport) -> Members:
        """Of the rules for groups that the broker reports on; a member that moved may be known to two coordinators."""
        found: dict[str, dict[tuple[str, str], None]] = {}
        for _, rows in sorted(self._members.items()):
            for row, members in rows.items():
                if row in report.instances:
                    found.setdefault(row, {}).update(dict.fromkeys(members))
        return {row: tuple(members) for row, members in found.items()}

    def allocation(self, instance: str, direction: str, now: float) -> Allocation:
        """What is granted of one limit now, to every leader. KeyError: no such instance, or rule within one.

        While learning, an allocation of None under a limit means that the broker stands on its initial share.
        """
        limited = self._limited[instance]
        self._look_who_is_silent(now)
        rows = sorted(self._rows.get(instance, {}).items())
        flows = [_broker_flow(broker, row, direction, silent=broker not in self._fresh) for broker, row in rows]
        allocation = allocate(limited.limit(direction), flows, limited.strategy)
        if not self.learning(now) or not allocation.limit_bytes_per_s:
            return allocation
        return _renewed(allocation, allocation.limit_bytes_per_s, self.held(instance, direction))

    def limited(self, name: str) -> Limited | None:
        """The limits of an instance, or of a throttle rule within one; None: there is none of this name."""
        return self._limited.get(name)

    def held(self, instance: str, direction: str) -> dict[int, int | None]:
        """What each broker said that it holds, bytes/s; None: it has no grant, or nothing limits it."""
        rows = self._rows.get(instance, {})
        return {broker: entry.flow(direction).allocation for broker, (entry, _) in rows.items()}

    def totals(self) -> Iterator[tuple[str, int, int]]:
        """Produce and consume over all brokers in bytes/s, of instances of which anything flows."""
        for instance in list(self._flowing):
            produce = consume = 0
            for entry, period_ms in self._rows.get(instance, {}).values():
                produce += entry[0][0] * 1000 // (period_ms or 1)
                consume += entry[1][0] * 1000 // (period_ms or 1)
            if produce or consume:
                yield instance, produce, consume
            else:
                del self._flowing[instance]

    def storage_used_bytes(self, instance: str) -> int:
        """Over all brokers, every replica counted."""
        return self._stored_sum.get(instance, 0)

    def connections(self, instance: str) -> int:
        """Over all brokers."""
        return sum(entry.connections for entry, _ in self._rows.get(instance, {}).values())

    def storage_full(self, instance: str) -> bool:
        """Whether the fence is up."""
        return self._full.get(instance, False)

    def learning(self, now: float) -> bool:
        """Whether the first lease has not passed yet."""
        return now < self._learning_until

    def reporting(self, now: float) -> tuple[int, ...]:
        """The brokers whose last report is good."""
        return tuple(broker for broker, heard in sorted(self._heard.items()) if self._is_good(heard, now))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _is_good(self, heard: Heard, now: float) -> bool:
        return now - heard.at <= self._good_for_s

    def _look_who_is_silent(self, now: float) -> None:
        """What was worked out holds until a broker falls silent or is heard again, or learning ends."""
        if now < self._fresh_until:
            return
        fresh = frozenset(broker for broker, heard in self._heard.items() if self._is_good(heard, now))
        if fresh != self._fresh or self.learning(now) != self._was_learning:
            self._granted.clear()
        self._fresh, self._was_learning = fresh, self.learning(now)
        ends = [heard.at + self._good_for_s for broker, heard in self._heard.items() if broker in fresh]
        if self._was_learning:
            ends.append(self._learning_until)
        self._fresh_until = min(ends, default=now)

    def _work_out(self, instance: str, now: float) -> Granted:
        rows = self._rows[instance]
        leading = sorted(broker for broker, (entry, _) in rows.items() if entry[0][3] > 0)
        produce, consume = (self._column(instance, direction, leading, now) for direction in DIRECTIONS)
        if self._full.get(instance):
            produce = [Grant(allocation, branch, BLOCKED_STORAGE) for allocation, branch, _ in produce]
        stored = self._stored_sum[instance]
        return {
            broker: _new(InstanceGrant, (one, other, stored))
            for broker, one, other in zip(leading, produce, consume, strict=True)
        }

    def _column(self, instance: str, direction: str, leading: list[int], now: float) -> list[Grant]:
        """The grants of one direction, in the order of `leading`."""
        limited, rows = self._limited[instance], self._rows[instance]
        limit = limited.limit(direction)
        if limit is None or self.learning(now) or not self._fresh.issuperset(leading):
            shares = self.allocation(instance, direction, now).shares
            return [Grant(share.allocation_bytes_per_s, share.branch.value) for share in shares]
        of_leaders = [rows[broker] for broker in leading]
        if direction == "produce":
            flows = [(entry[0], period_ms) for entry, period_ms in of_leaders]
        else:
            flows = [(entry[1], period_ms) for entry, period_ms in of_leaders]
        used = [flow[0] * 1000 // (period_ms or 1) for flow, period_ms in flows]
        waits = [flow[1] > 0 or flow[2] > 0 for flow, _ in flows]
        branch, amounts = divide(limit, [flow[3] for flow, _ in flows], used, waits, limited.strategy)
        name = branch.value
        return [_new(Grant, (amount, name, None)) for amount in amounts]

    def _look_at_storage(self, instance: str, broker: int, entry: InstanceReport, now: float) -> None:
        """Of a row that is new here, stores other than before, or is blocked."""
        if instance not in self._limited:
            learn_row(self._limited, instance)
        self._store(instance, broker, entry.storage_bytes)
        if instance in self.specs:
            if self.learning(now) and entry.produce.blocked == BLOCKED_STORAGE:
                self._set_full(instance, full=True)
            self._fence(instance, now)

    def _store(self, instance: str, broker: int, size: int) -> None:
        stored = self._stored.setdefault(instance, {})
        self._stored_sum[instance] = self._stored_sum.get(instance, 0) + size - stored.get(broker, 0)
        stored[broker] = size

    def _forget(self, instance: str, broker: int, now: float) -> None:
        """The broker has nothing of the instance any more."""
        self._rows.get(instance, {}).pop(broker, None)
        self._granted.pop(instance, None)
        stored = self._stored.get(instance, {})
        self._stored_sum[instance] = self._stored_sum.get(instance, 0) - stored.pop(broker, 0)
        if not stored:
            for table in (self._rows, self._stored, self._stored_sum):
                table.pop(instance, None)
        if instance in self.specs:
            self._fence(instance, now)

    def _fence(self, instance: str, now: float) -> None:
        limit = self.specs[instance].limits.storage_bytes
        used, full = self._stored_sum.get(instance, 0), self._full.get(instance, False)
        if limit is None:
            full = False
        elif used >= limit:
            full = True
        elif used * 100 < limit * LIFTED_UNDER_PERCENT and not self.learning(now):
            full = False
        self._set_full(instance, full=full)

    def _set_full(self, instance: str, *, full: bool) -> None:
        if self._full.get(instance) is not full:
            self._full[instance] = full
            self._granted.pop(instance, None)


def _renewed(allocation: Allocation, limit: int, held: Mapping[int, int | None]) -> Allocation:
    """The same leaders with what they hold already, as far as the limit allows."""
    shares = []
    for share in allocation.shares:
        amount = held[share.broker]
        renewed = None if amount is None else min(amount, limit)
        shares.append(replace(share, allocation_bytes_per_s=renewed, branch=Branch.LEARNING))
    return Allocation(limit, Branch.LEARNING, tuple(shares))


def _broker_flow(broker: int, row: Row, direction: str, *, silent: bool) -> BrokerFlow:
    entry, period_ms = row
    flow = entry.flow(direction)
    return BrokerFlow(
        broker=broker,
        leaders=flow.leaders,
        flow_bytes_per_s=flow.bytes * 1000 // max(period_ms, 1),
        throttled=flow.throttled_ms > 0 or flow.queued_bytes > 0,
        silent=silent,
    )
