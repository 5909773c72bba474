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

Transactions and their ids are counted likewise, and each broker is told what the others have (`quota.core.transactions`).

A broker that left still holds its replicas: its storage counts on for a while, so that a crash does not open the fence.
Grants answer a report and name only instances that this broker leads something of. Time is monotonic seconds.

Work follows what changes. Reports are kept turned around, by instance and then by broker (`quota.core.spread`); only a row
that differs from the last one, or a broker that falls silent, makes an instance be divided again. Each change is numbered:
the answer to a partial report looks at what has changed since the broker's last answer, and names what became of it.

What is said of instances here holds for throttle rules within them too: each has a row of its own (`quota.core.limited`),
with limits and flows, and nothing stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from quota.contracts.grant import BLOCKED_STORAGE, Grant, Grants, InstanceGrant
from quota.contracts.instance import ContractError, InstanceSpec, InstanceState
from quota.contracts.report import Absent, FlowReport, InstanceReport, LoopLoad, Members
from quota.core.allocate import allocate, divide
from quota.core.fence import Fences
from quota.core.limited import Limited, learn_row, limited_rows
from quota.core.loop_book import LoopBook
from quota.core.model import Allocation, Branch, BrokerFlow, Strategy
from quota.core.spread import Cells, Row, Spread
from quota.core.transactions import NONE, TransactionCounts
from quota.core.windows import RequestBook

# Where a master looks at 200,000 rows a second, fields are read by their places: names cost twice as much, and a
# NamedTuple's constructor three times what this does.
_new = tuple.__new__
GOOD_FOR_PERIODS = 2
STORAGE_KEPT_S = 900.0  # of a broker that does not report


@dataclass(slots=True)
class Heard:
    """What is known of one broker's reports, and of what it was answered."""

    boot: str
    sequence: int
    at: float
    rows: dict[str, None]  # that it reports on
    whole: bool  # it is to be answered everything
    loop: LoopLoad | None = None  # as it said last
    trouble: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # likewise
    absent: Absent = field(default_factory=dict)  # likewise
    requests_until: int | None = None  # likewise
    granted: dict[str, InstanceGrant] = field(default_factory=dict)  # as last answered
    elsewhere: dict[str, tuple[int, int]] = field(default_factory=dict)  # transactions of others, as last answered
    gone: list[str] = field(default_factory=list)  # of what it was answered, and does not report on any more
    answered_at: int = -1


class Ledger:
    """The state of one mastership, from election to loss. A new mastership begins with a new ledger."""

    def __init__(self, *, epoch: int, now: float, period_ms: int, lease_ms: int, is_metered: bool = False) -> None:
        self.epoch = epoch
        self._is_metered = is_metered  # what is carried above what was bought is counted, so it may be granted
        self.lease_ms = lease_ms
        self.specs: Mapping[str, InstanceSpec] = {}
        self._limited: dict[str, Limited] = {}  # instances, and the throttle rules within them
        self._good_for_s = GOOD_FOR_PERIODS * period_ms / 1000
        self._learning_until = now + lease_ms / 1000
        self._registered: frozenset[int] | None = None
        self._heard: dict[int, Heard] = {}
        self._spreads: dict[str, Spread] = {}  # of the brokers that are heard
        self._flowing: dict[str, None] = {}  # of which something flowed when last looked at
        self._members: dict[int, Members] = {}  # of groups with a rule, by the broker that coordinates them
        self._left: dict[int, Heard] = {}  # the last of brokers that are not waited for any more: they still store
        self._fences = Fences()
        self._transactions = TransactionCounts()
        self.windows = RequestBook()  # of requests
        self.loop_times = LoopBook()
        self._change = 0  # the number of those that come now
        self._all_changed_at = 0
        self._fresh: frozenset[int] = frozenset()
        self._silent: frozenset[int] = frozenset()
        self._fresh_until = now
        self._was_learning = True

    # --- what comes in ------------------------------------------------------------------------------------------------

    def set_specs(self, specs: Mapping[str, InstanceSpec], now: float) -> None:
        """The instances as they stand now; deleted ones may be among them."""
        self.specs = {key: spec for key, spec in specs.items() if spec.state is not InstanceState.DELETED}
        self._fences.keep(self.specs)
        self._limited = limited_rows(self.specs.values(), self._spreads, is_metered=self._is_metered)
        self._all_changed_at = self._change
        for instance in self.specs:
            self._fence(instance, now)

    def set_registered(self, brokers: Collection[int] | None) -> None:
        """The brokers in ZooKeeper; None while that is not known."""
        self._registered = None if brokers is None else frozenset(brokers)
        if self._registered:
            self.loop_times.keep(self._registered)

    def report(self, report: FlowReport, now: float) -> bool:
        """Take a report. False: it is older than one already taken (a connection that died late).

        Raises ContractError where it continues one that is not known here.
        """
        broker, last = report.broker, self._heard.get(report.broker)
        if last and last.boot == report.boot and last.sequence >= report.sequence:
            return False
        heard = self._continued(report, last, now) if report.partial else self._begun(report, last, now)
        heard.loop, heard.trouble, heard.absent = report.loop, report.trouble, report.absent
        heard.requests_until = report.requests_until
        if report.requests:
            self.windows.take(broker, report.requests)
        if report.loop is not None and report.loop.times:
            self.loop_times.take(broker, report.loop.times)
        if report.members or self._members:
            self._members[broker] = report.members
        if broker not in self._fresh:
            self._fresh_until = now  # look again for brokers that are silent
        spreads, period_ms, change = self._spreads, report.period_ms, self._change
        for instance, entry in report.instances.items():
            spread = spreads.get(instance)
            if spread is None:
                spread = spreads[instance] = Spread()
            row = spread.rows.get(broker)
            flows = entry[0][0] > 0 or entry[1][0] > 0
            if row is not None and row[0] == entry and (row[1] == period_ms or not flows):
                continue
            spread.put(broker, entry, period_ms)
            spread.changed_at = change
            if flows:
                self._flowing[instance] = None
            if row is None:
                heard.rows[instance] = None
            if row is None or row[0][2] != entry[2] or entry[0][5] is not None:
                self._look_at_storage(instance, broker, entry, now)
        for instance, counts in report.transactions.items():
            self._count_transactions(instance, broker, counts)
        return True

    def _begun(self, report: FlowReport, last: Heard | None, now: float) -> Heard:
        """A report that names all of the broker's rows."""
        before = last or self._left.pop(report.broker, None)
        if before is not None:
            for row in before.rows.keys() - report.instances.keys():
                self._forget(row, report.broker, now)
            for row in before.rows.keys() - report.transactions.keys():
                self._count_transactions(row, report.broker, NONE)
        heard = Heard(report.boot, report.sequence, now, dict.fromkeys(report.instances), whole=True)
        self._heard[report.broker] = heard
        return heard

    def _continued(self, report: FlowReport, last: Heard | None, now: float) -> Heard:
        """A report that names what has changed since the last one."""
        if last is None or (last.boot, last.sequence + 1) != (report.boot, report.sequence):
            raise ContractError(f"flow report: {report.sequence} continues one that is not known here")
        last.sequence, last.at = report.sequence, now
        last.whole = last.whole and last.answered_at < 0
        for row in report.gone:
            if row in last.rows:
                del last.rows[row]
                last.elsewhere.pop(row, None)
                if last.granted.pop(row, None) is not None:
                    last.gone.append(row)
                self._forget(row, report.broker, now)
        return last

    def tick(self, now: float) -> None:
        """Once a period: forget brokers that are gone, look at every fence again."""
        for broker, heard in list(self._heard.items()):
            if not self._is_good(heard, now) and self._registered is not None and broker not in self._registered:
                self._left[broker] = self._heard.pop(broker)
                self._members.pop(broker, None)
                for row in heard.rows:
                    self._drop(row, broker)
                    self._count_transactions(row, broker, NONE)
        for broker, heard in list(self._left.items()):
            if now - heard.at > STORAGE_KEPT_S:
                del self._left[broker]
                for row in heard.rows:
                    self._forget(row, broker, now)
        for instance in self.specs:
            self._fence(instance, now)

    # --- what goes out ------------------------------------------------------------------------------------------------

    def knows(self, broker: int) -> bool:
        """Whether a report of the broker is remembered."""
        return broker in self._heard

    def grants(self, broker: int, now: float) -> Grants:
        """The answer to the broker's last report. KeyError when it never reported.

        A partial one is answered once: asked again, there is nothing new.
        """
        heard = self._heard[broker]
        self._look_who_is_silent(now)
        spreads, fences, rows = self._spreads, self._fences, list(heard.rows)
        if heard.whole:
            heard.granted, heard.elsewhere = {}, {}
        elif self._all_changed_at <= heard.answered_at:
            since = heard.answered_at
            rows = [row for row in rows if spreads[row].changed_at > since]
        named: dict[str, InstanceGrant] = {}
        before, gone = heard.granted, heard.gone
        counted, told = self._transactions.counts, heard.elsewhere
        transactions: dict[str, tuple[int, int]] = {}
        for row in rows:
            spread = spreads[row]
            if row in counted or row in told:
                elsewhere = self._transactions.elsewhere(row, broker, self._silent)
                if elsewhere != told.get(row, NONE):
                    transactions[row] = told[row] = elsewhere
            if spread.divided_at < spread.changed_at or spread.divided_at < self._all_changed_at:
                self._divide(row, spread, now)
            place = spread.places.get(broker) if spread.places else None
            if place is None or spread.divided is None:
                if before.pop(row, None) is not None:
                    gone.append(row)
                continue
            (produce, branches), (consume, other_branches) = spread.divided
            blocked = BLOCKED_STORAGE if fences.is_up.get(row) else None
            one = _new(Grant, (produce(place), branches[place], blocked))
            other = _new(Grant, (consume(place), other_branches[place], None))
            grant = _new(InstanceGrant, (one, other, fences.used_bytes[row]))
            if before.get(row) != grant:
                named[row] = before[row] = grant
        heard.gone, heard.answered_at = [], self._change
        self._change += 1
        members = self._members_of(heard)
        return Grants(
            self.epoch, heard.sequence, self.lease_ms, named, members, not heard.whole, tuple(gone), transactions
        )

    def _members_of(self, heard: Heard) -> Members:
        """Of the rules for groups that the broker reports on; a member that moved may be known to two coordinators."""
        found: dict[str, dict[tuple[str, str], None]] = {}
        for _, rows in sorted(self._members.items()):
            for row, members in rows.items():
                if row in heard.rows:
                    found.setdefault(row, {}).update(dict.fromkeys(members))
        return {row: tuple(members) for row, members in found.items()}

    def allocation(self, instance: str, direction: str, now: float) -> Allocation:
        """What is granted of one limit now, to every leader. KeyError: no such instance, or rule within one.

        While learning, an allocation of None under a limit means that the broker stands on its initial share.
        """
        limited = self._limited[instance]
        self._look_who_is_silent(now)
        flows = [
            _broker_flow(broker, row, direction, silent=broker not in self._fresh)
            for broker, row in sorted(self._rows(instance).items())
        ]
        allocation = allocate(limited.limit(direction), flows, limited.strategy)
        if not self.learning(now) or not allocation.limit_bytes_per_s:
            return allocation
        return _renewed(allocation, allocation.limit_bytes_per_s, self.held(instance, direction))

    def limited(self, name: str) -> Limited | None:
        """The limits of an instance, or of a throttle rule within one; None: there is none of this name."""
        return self._limited.get(name)

    def held(self, instance: str, direction: str) -> dict[int, int | None]:
        """What each broker said that it holds, bytes/s; None: it has no grant, or nothing limits it."""
        rows = self._rows(instance)
        return {broker: entry.flow(direction).allocation for broker, (entry, _) in rows.items()}

    def holds(self, instance: str, direction: str, broker: int) -> tuple[int | None, int]:
        """What one broker said that it holds, as `held`, and what flowed there, bytes/s; one that is not known: None, 0."""
        row = self._rows(instance).get(broker)
        if row is None:
            return None, 0
        entry, period_ms = row
        flow = entry.flow(direction)
        return flow.allocation, flow.bytes * 1000 // (period_ms or 1)

    def totals(self) -> Iterator[tuple[str, int, int]]:
        """Produce and consume over all brokers in bytes/s, of instances of which anything flows."""
        for instance in list(self._flowing):
            spread = self._spreads.get(instance)
            produce, consume = spread.totals() if spread else (0, 0)
            if produce or consume:
                yield instance, produce, consume
            else:
                del self._flowing[instance]

    def flowing(self, instance: str, now: float) -> tuple[int, int]:
        """Produce and consume in bytes/s over the brokers whose last report is good: what is billed is no old news."""
        self._look_who_is_silent(now)
        produce = consume = 0
        for broker, (entry, period_ms) in self._rows(instance).items():
            if broker in self._fresh:
                produce += entry.produce.bytes * 1000 // (period_ms or 1)
                consume += entry.consume.bytes * 1000 // (period_ms or 1)
        return produce, consume

    def storage_used_bytes(self, instance: str) -> int:
        """Over all brokers, every replica counted."""
        return self._fences.used_bytes.get(instance, 0)

    def connections(self, instance: str) -> int:
        """Over all brokers."""
        return sum(entry.connections for entry, _ in self._rows(instance).values())

    def transactions(self, instance: str, now: float) -> tuple[int, int]:
        """Transactions that are open, and transactional ids, over all brokers that are heard."""
        self._look_who_is_silent(now)
        return self._transactions.total(instance, self._silent)

    def with_transactions(self) -> list[str]:
        """Instances that have transactional ids."""
        return [instance for instance in sorted(self._transactions.counts) if instance in self.specs]

    def storage_full(self, instance: str) -> bool:
        """Whether the fence is up."""
        return self._fences.is_up.get(instance, False)

    def trouble(self, now: float) -> Mapping[str, tuple[int, int]]:
        """Partitions without a leader, and those with replicas that are behind, as the controller's broker says.

        By instance, those that have none left out.
        """
        found: dict[str, tuple[int, int]] = {}
        for heard in self._heard.values():
            if heard.trouble and self._is_good(heard, now):
                for instance, counts in heard.trouble.items():
                    found[instance] = max(counts, found.get(instance, counts))
        return found

    def absent(self, now: float) -> Absent:
        """What the cluster lacks of each broker, as the controller's broker says."""
        found: dict[int, tuple[int, int, int]] = {}
        for heard in self._heard.values():
            if heard.absent and self._is_good(heard, now):
                found |= heard.absent
        return found

    def requests_until(self) -> dict[int, int | None]:
        """By broker: it has told all of windows that began before this second; None: not known.

        A broker that is registered and is not heard of may have answered requests all the same.
        """
        brokers = sorted({*self._heard, *(self._registered or ())})
        return {broker: self._heard[broker].requests_until if broker in self._heard else None for broker in brokers}

    def learning(self, now: float) -> bool:
        """Whether the first lease has not passed yet."""
        return now < self._learning_until

    def loads(self, now: float) -> dict[int, LoopLoad]:
        """How busy the loops of the brokers are whose last report is good, as far as they say."""
        heard = ((broker, self._heard[broker].loop) for broker in self.reporting(now))
        return {broker: load for broker, load in heard if load is not None}

    def reporting(self, now: float) -> tuple[int, ...]:
        """The brokers whose last report is good."""
        return tuple(broker for broker, heard in sorted(self._heard.items()) if self._is_good(heard, now))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _rows(self, instance: str) -> Mapping[int, Row]:
        spread = self._spreads.get(instance)
        return spread.rows if spread else {}

    def _is_good(self, heard: Heard, now: float) -> bool:
        return now - heard.at <= self._good_for_s

    def _look_who_is_silent(self, now: float) -> None:
        """What was worked out holds until a broker falls silent or is heard again, or learning ends."""
        if now < self._fresh_until:
            return
        fresh = frozenset(broker for broker, heard in self._heard.items() if self._is_good(heard, now))
        if fresh != self._fresh or self.learning(now) != self._was_learning:
            self._all_changed_at = self._change
        self._fresh, self._silent, self._was_learning = fresh, frozenset(self._heard) - fresh, self.learning(now)
        ends = [heard.at + self._good_for_s for broker, heard in self._heard.items() if broker in fresh]
        if self._was_learning:
            ends.append(self._learning_until)
        self._fresh_until = min(ends, default=now)

    def _divide(self, row: str, spread: Spread, now: float) -> None:
        """Both directions; it holds until the spread changes."""
        spread.lay_out()
        if row in self._limited:
            spread.divided = (
                self._cells(row, "produce", spread, spread.produce, now),
                self._cells(row, "consume", spread, spread.consume, now),
            )
        else:
            spread.divided = None
        spread.divided_at = self._change

    def _cells(self, row: str, direction: str, spread: Spread, used: list[int], now: float) -> Cells:
        limited, places = self._limited[row], spread.lay_out()
        limit = limited.limit(direction)
        if limit is None or self.learning(now) or not self._silent.isdisjoint(places):
            shares = self.allocation(row, direction, now).shares
            amounts = [share.allocation_bytes_per_s for share in shares]
            return Cells(amounts.__getitem__, [share.branch.value for share in shares])
        waits = spread.waits(direction) if limited.strategy == Strategy.BOUNDED else ()
        branch, amount = divide(limit, spread.leaders, used, waits, limited.strategy)
        return Cells(amount, [branch.value] * len(places))

    def _look_at_storage(self, instance: str, broker: int, entry: InstanceReport, now: float) -> None:
        """Of a row that is new here, stores other than before, or is blocked."""
        if instance not in self._limited:
            learn_row(self._limited, instance)
        self._fences.store(instance, broker, entry.storage_bytes)
        if instance in self.specs:
            reported = self.learning(now) and entry.produce.blocked == BLOCKED_STORAGE
            if reported and self._fences.move(instance, up=True):
                self._touch(instance)
            self._fence(instance, now)

    def _drop(self, row: str, broker: int) -> None:
        spread = self._spreads.get(row)
        if spread:
            spread.drop(broker)
            spread.changed_at = self._change

    def _count_transactions(self, instance: str, broker: int, counts: tuple[int, int]) -> None:
        if self._transactions.put(instance, broker, counts):
            self._touch(instance)

    def _forget(self, instance: str, broker: int, now: float) -> None:
        """The broker has nothing of the instance any more."""
        self._drop(instance, broker)
        self._count_transactions(instance, broker, NONE)
        if self._fences.forget(instance, broker):
            self._spreads.pop(instance, None)
        if instance in self.specs:
            self._fence(instance, now)

    def _fence(self, instance: str, now: float) -> None:
        if self._fences.look(instance, self.specs[instance].limits.storage_bytes, may_fall=not self.learning(now)):
            self._touch(instance)

    def _touch(self, row: str) -> None:
        spread = self._spreads.get(row)
        if spread:
            spread.changed_at = self._change


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
        leaders=entry.produce.leaders,  # of both directions
        flow_bytes_per_s=flow.bytes * 1000 // max(period_ms, 1),
        throttled=flow.throttled_ms > 0 or flow.queued_bytes > 0,
        silent=silent,
    )
