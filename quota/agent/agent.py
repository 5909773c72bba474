"""The agent inside a broker: it owns the buckets, builds reports, obeys grants. Sans-IO: time and facts are passed in.

What the broker does with it (all times are the loop's monotonic seconds)::

    agent = Agent(broker=2, boot=boot_id, now=now)
    agent.configure("ins-k3v9x2qa", limits.produce_bytes_per_s, limits.consume_bytes_per_s, now)  # spec is here
    agent.remove("ins-k3v9x2qa")                                                                  # spec is gone

    # the gate, on every request; keep the bucket, it stays the same object as long as the instance is configured
    bucket = agent.bucket("ins-k3v9x2qa", "produce")        # or "consume"; None: not configured
    if agent.blocked("ins-k3v9x2qa"): answer POLICY_VIOLATION, before the bucket is charged
    delay_s = bucket.charge(size, now)                      # see quota.core.bucket

    agent.set_leaders("ins-k3v9x2qa", leaders, all_leaders, now)      # when metadata changes: the initial share follows

`quota.agent.transport.MasterLink` does the rest: every 100 ms `tick`, and when `report_due`, `report_steps(facts)`; every
answer goes to `apply`. Of thousands of instances a report is made in pieces, so that requests are served between them, and
after the first of a connection (`begin_anew`) it names what has changed. `facts` is what only the broker knows:
`InstanceFacts` per instance. Bytes and throttled time come from the buckets themselves.

The rate of a bucket, in this order::

    limit None (unlimited) or 0 (blocked)        the limit itself, whatever was granted
    a grant whose lease has not expired          the grant, never more than the limit
    otherwise                                    the initial share L * n_b / sum(n); all of L while leaders are unknown

A report covers the last whole period, counted back from the moment it is made, however soon it follows the one before:
so the flows of several brokers stay comparable when some of them report early (a window that began with the last report
would show a broker that reported lately several times the flow of another under the same load). For that, `tick` notes
what was paid in directions that are in use.

Bytes of requests that were refused because storage is full are paid for and are not flow: an instance refused at the rate of
the limit carries nothing.

A block for full storage outlives the lease: only a later grant lifts it. Grants of a lower epoch than seen are refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from quota.contracts.grant import Grant, Grants
from quota.contracts.report import DIRECTIONS, Flow, FlowReport, InstanceReport
from quota.core.allocate import initial_share
from quota.core.bucket import TokenBucket
from quota.steps import ROWS_PER_STEP, Steps, run_through

_new = tuple.__new__  # a third of the cost of a NamedTuple's constructor
EARLY_REPORT_S = 0.1
NO_TRANSACTIONS = (0, 0)
NEVER = float("inf")
NEVER_BEFORE = float("-inf")
TOLERANCE_S = 0.001
"""Timers are early or late by this much without meaning it."""


def _nothing() -> None:
    """Nobody watches."""


class InstanceFacts(NamedTuple):
    """What the broker knows of one instance at the moment of a report."""

    leaders: int  # partitions of the instance that this broker leads
    all_leaders: int  # partitions of the instance that have a leader, on any broker
    storage_bytes: int  # every replica on this broker
    connections: int
    members: tuple[tuple[str, str], ...] = ()  # (client id, address), of a rule's groups that this broker coordinates
    leaderless: int = 0  # partitions without a leader, and those with fewer replicas in sync than they have:
    behind: int = 0  # both are told by the controller's broker alone
    transactions: tuple[int, int] = (0, 0)  # that are open, and transactional ids: those that this broker coordinates


class Carried(NamedTuple):
    """What has flowed of an instance: it grows for as long as the number stays the same."""

    number: int  # another one for each time that the instance came
    produced_bytes: int
    consumed_bytes: int


NOTHING_CARRIED = Carried(0, 0, 0)


class _Direction:
    """One instance and direction: its bucket, its limit, its grant, and what was already reported."""

    __slots__ = (
        "_charged",
        "_left_out",
        "_notes",
        "_paid",
        "_settled",
        "_throttled_s",
        "bucket",
        "cap",
        "granted",
        "limit",
    )

    def __init__(self, limit: int | None, bucket: TokenBucket) -> None:
        self.limit = self.cap = limit
        self.bucket = bucket
        self.granted: int | None = None
        self._notes: deque[tuple[float, int]] = deque([(NEVER_BEFORE, 0)])  # moments, and bytes that flowed until then
        self._paid = self._left_out = 0  # bytes that were noted: paid for; of them, those of refused requests
        self._charged = 0
        self._settled = True
        self._throttled_s = 0.0  # as last reported

    def refresh(self, leaders: int, all_leaders: int, now: float) -> None:
        self.bucket.set_rate(self._rate(leaders, all_leaders), now)

    def _rate(self, leaders: int, all_leaders: int) -> int | None:
        if not self.limit:
            return self.limit
        if self.granted is not None:
            return min(self.granted, self.limit if self.cap is None else self.cap)
        # A partition may be led here before the counts say so: a rate of 0 would stall it for no reason.
        return initial_share(self.limit, max(leaders, 1), max(leaders, all_leaders, 1))

    def note(self, now: float) -> None:
        """Remember what was paid by now. Nothing to do where nothing was charged and no debt is being paid."""
        bucket = self.bucket
        if self._settled and bucket.charged_bytes == self._charged:
            return
        paid = bucket.paid_bytes(now)
        fresh, refused = self._fresh(paid)
        self._paid += fresh
        self._left_out += refused
        self._notes.append((now, self._paid - self._left_out))
        self._charged = bucket.charged_bytes
        self._settled = paid == self._charged

    def _fresh(self, paid: int) -> tuple[int, int]:
        """Bytes paid for since the last note, and how many of them are of refused requests."""
        fresh = max(0, paid - self._paid)
        return fresh, min(fresh, self.bucket.refused_bytes - self._left_out)

    def flow(self, leaders: int, since: float, now: float) -> Flow:
        """What flowed from `since`, a moment of `note`, to now; throttled time is what no report had yet."""
        bucket = self.bucket
        if len(self._notes) == 1 and self._settled and bucket.charged_bytes == self._charged:
            # Nothing since the last report: so it is with most of the thousands that a broker has.
            return _new(Flow, (0, 0, 0, leaders, self.granted, bucket.blocked))
        while len(self._notes) > 1 and self._notes[1][0] <= since:
            self._notes.popleft()
        throttled_s = bucket.throttled_s(now)
        fresh, refused = self._fresh(bucket.paid_bytes(now))
        flow = Flow(
            bytes=self._paid + fresh - self._left_out - refused - self._notes[0][1],
            throttled_ms=max(0, round((throttled_s - self._throttled_s) * 1000)),
            queued_bytes=int(bucket.debt_bytes(now)),
            leaders=leaders,
            allocation=self.granted,
            blocked=bucket.blocked,
        )
        self._throttled_s = throttled_s
        return flow

    def carried_bytes(self, now: float) -> int:
        """What has flowed since the direction was configured, as `flow` has it of a period."""
        bucket = self.bucket
        if self._settled and bucket.charged_bytes == self._charged:
            return self._paid - self._left_out
        fresh, refused = self._fresh(bucket.paid_bytes(now))
        return self._paid + fresh - self._left_out - refused


class _Instance:
    """Both directions of one instance and what they share."""

    __slots__ = ("all_leaders", "directions", "fence_moved", "leaders", "number", "storage_used_bytes")

    def __init__(self, directions: dict[str, _Direction], number: int) -> None:
        self.directions = directions
        self.number = number
        self.leaders = 0
        self.all_leaders = 0
        self.storage_used_bytes = 0
        self.fence_moved: Callable[[], None] = _nothing

    def refresh(self, now: float) -> None:
        for direction in self.directions.values():
            direction.refresh(self.leaders, self.all_leaders, now)


class Agent:
    """A broker's end of the line to the master: reports go out, grants come in, buckets follow."""

    def __init__(self, *, broker: int, boot: str, now: float, period_ms: int = 1000) -> None:
        self._broker = broker
        self._boot = boot
        self._period_s = period_ms / 1000
        self._instances: dict[str, _Instance] = {}
        self._came = 0  # instances that were configured so far, each time that they came
        self._sequence = 0
        self._reported_at = now
        self._ticks = deque([now])  # the moments of the last period, and one before
        self._early = False
        self._epoch = 0
        self._held: dict[str, _Instance] = {}  # under the lease
        self._lease_ends = NEVER
        self._anew = True
        self._reported: dict[str, InstanceReport] = {}  # as the last report has it, or the ones before it
        self._gone: list[str] = []  # since the last report
        self._members: dict[str, frozenset[tuple[str, str]]] = {}  # by the row of a rule for groups
        self._counted: dict[str, tuple[int, int]] = {}  # transactions and their ids, as the last report has them
        self._elsewhere: dict[str, tuple[int, int]] = {}  # those of other brokers, under the lease

    # --- what the broker tells ----------------------------------------------------------------------------------------

    def configure(
        self,
        instance: str,
        produce_limit: int | None,
        consume_limit: int | None,
        now: float,
        *,
        elastic: int | None = None,
    ) -> None:
        """An instance's limits in bytes/s as in its spec (None = unlimited, 0 = blocked). Buckets stay the same.

        `elastic`: a master may grant so much, of each direction; by itself, without a grant, the broker goes by the limits.
        """
        limits = dict(zip(DIRECTIONS, (produce_limit, consume_limit), strict=True))
        entry = self._instances.get(instance)
        if entry is None:
            directions = {
                name: _Direction(limit, TokenBucket(limit, now, self._throttling_started))
                for name, limit in limits.items()
            }
            self._came += 1
            entry = self._instances[instance] = _Instance(directions, self._came)
        for name, limit in limits.items():
            entry.directions[name].limit = limit
            entry.directions[name].cap = limit if elastic is None or limit is None else max(limit, elastic)
        entry.refresh(now)

    def remove(self, instance: str) -> None:
        """The instance is gone."""
        self._instances.pop(instance, None)
        self._held.pop(instance, None)
        self._reported.pop(instance, None)
        self._counted.pop(instance, None)
        self._elsewhere.pop(instance, None)
        self._gone.append(instance)  # said also where it comes back at once: that one holds no grant

    def set_leaders(self, instance: str, leaders: int, all_leaders: int, now: float) -> None:
        """How many of the instance's partitions this broker leads, and how many have a leader at all."""
        entry = self._instances.get(instance)
        if entry and (entry.leaders, entry.all_leaders) != (leaders, all_leaders):
            entry.leaders, entry.all_leaders = leaders, all_leaders
            entry.refresh(now)

    def watch_fence(self, instance: str, moved: Callable[[], None]) -> None:
        """Call this when a direction of the instance is blocked, or is not any more (`blocked`)."""
        entry = self._instances.get(instance)
        if entry:
            entry.fence_moved = moved

    def see_epoch(self, epoch: int) -> None:
        """A master of this election epoch is active: older ones are not obeyed any more."""
        self._epoch = max(self._epoch, epoch)

    # --- what the gate asks -------------------------------------------------------------------------------------------

    def bucket(self, instance: str, direction: str) -> TokenBucket | None:
        """The bucket to charge, the same object for as long as the instance is configured."""
        entry = self._instances.get(instance)
        return entry.directions[direction].bucket if entry else None

    def rate(self, instance: str, direction: str) -> int | None:
        """The rate in force in bytes/s: None = unlimited (or not configured), 0 = blocked."""
        bucket = self.bucket(instance, direction)
        return bucket.rate if bucket else None

    def carried_bytes(self, instance: str, now: float) -> Carried:
        """Since the instance was configured; of one that is not, nothing."""
        entry = self._instances.get(instance)
        if entry is None:
            return NOTHING_CARRIED
        directions = entry.directions
        return Carried(entry.number, directions["produce"].carried_bytes(now), directions["consume"].carried_bytes(now))

    def blocked(self, instance: str, direction: str = "produce") -> str | None:
        """Why this direction is refused altogether ("storage"), or None."""
        entry = self._instances.get(instance)
        return entry.directions[direction].bucket.blocked if entry else None

    def storage_used_bytes(self, instance: str) -> int:
        """What the whole instance stores as the master last said, for error texts."""
        entry = self._instances.get(instance)
        return entry.storage_used_bytes if entry else 0

    def is_member(self, row: str, client_id: str, address: str) -> bool:
        """Whether a client is known to belong to a group of this rule, on whatever broker it has joined."""
        members = self._members.get(row)
        return members is not None and (client_id, address) in members

    def transactions_elsewhere(self, instance: str) -> tuple[int, int]:
        """What other brokers coordinate of it, as the master last said: open transactions, and transactional ids.

        Nothing without a master: then each broker lets an instance have what it may have.
        """
        return self._elsewhere.get(instance, NO_TRANSACTIONS)

    # --- what the transport does --------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Note what was paid by now, let expired leases go. Every 100 ms; cheap for instances at rest."""
        for entry in self._instances.values():
            for direction in entry.directions.values():
                direction.note(now)
        self._ticks.append(now)
        while self._ticks[1] <= now - self._period_s + TOLERANCE_S:
            self._ticks.popleft()
        if now >= self._lease_ends:
            for entry in self._held.values():
                _withdraw(entry, now)
            self._held.clear()
            self._elsewhere.clear()
            self._lease_ends = NEVER
            self.begin_anew()  # a partial answer would renew what is not held any more

    def begin_anew(self) -> None:
        """The next report is for somebody who does not know the last one: it names everything."""
        self._anew = True

    def report_due(self, now: float) -> bool:
        """Once a period; earlier where throttling has started, but at most every 100 ms."""
        since = now - self._reported_at
        return since >= self._period_s or (self._early and since >= EARLY_REPORT_S)

    def report(self, facts: Mapping[str, InstanceFacts], now: float) -> FlowReport:
        """The report of the last period, naming everything. Instances without facts are left out."""
        self.begin_anew()
        return run_through(self.report_steps(facts.items(), lambda: now))

    def report_steps(self, facts: Iterable[tuple[str, InstanceFacts]], clock: Callable[[], float]) -> Steps[FlowReport]:
        """A report in pieces; a row of a later piece covers the milliseconds until it was made as well."""
        now = clock()
        self.tick(now)
        since = self._ticks[0]
        self._sequence += 1
        self._reported_at, self._early = now, False
        sequence, period_ms = self._sequence, max(1, round((now - since) * 1000))
        partial, self._anew = not self._anew, False
        before = self._reported if partial else {}
        removed, self._gone = self._gone, []
        named: dict[str, InstanceReport] = {}
        rows: dict[str, InstanceReport] = {}
        members: dict[str, tuple[tuple[str, str], ...]] = {}
        trouble: dict[str, tuple[int, int]] = {}
        counted = self._counted if partial else {}
        transactions: dict[str, tuple[int, int]] = {}
        counts: dict[str, tuple[int, int]] = {}
        for count, (instance, fact) in enumerate(facts):
            if count and not count % ROWS_PER_STEP:
                yield
                now = clock()
            if instance in self._instances:
                if fact.members:
                    members[instance] = fact.members
                if fact.leaderless or fact.behind:
                    trouble[instance] = (fact.leaderless, fact.behind)
                if fact.transactions != counted.get(instance, NO_TRANSACTIONS):
                    transactions[instance] = fact.transactions
                if fact.transactions != NO_TRANSACTIONS:
                    counts[instance] = fact.transactions
                self.set_leaders(instance, fact.leaders, fact.all_leaders, now)
                row = rows[instance] = _instance_report(self._instances[instance], fact, since, now)
                if row.is_busy or row != before.get(instance):
                    named[instance] = row
        gone = (*removed, *(before.keys() - rows.keys())) if partial else ()
        for instance in self._gone:
            rows.pop(instance, None)  # while the report was made: the next one says so
            counts.pop(instance, None)
        self._reported, self._counted = rows, counts
        return FlowReport(
            broker=self._broker,
            boot=self._boot,
            sequence=sequence,
            period_ms=period_ms,
            instances=named,
            members=members,
            partial=partial,
            gone=gone,
            trouble=trouble,
            transactions=transactions,
        )

    def apply(self, grants: Grants, now: float) -> bool:
        """Obey. False: the grants are of a master that was replaced, nothing has changed."""
        if grants.epoch < self._epoch:
            return False
        self._epoch = grants.epoch
        self._members = {row: frozenset(members) for row, members in grants.members.items()}
        for instance in grants.gone if grants.partial else [*(self._held.keys() - grants.instances.keys())]:
            entry = self._held.pop(instance, None)
            if entry:
                _withdraw(entry, now)
        for instance, grant in grants.instances.items():
            entry = self._instances.get(instance)
            if entry is None:
                continue
            moved = _take(entry.directions["produce"], grant.produce)
            moved = _take(entry.directions["consume"], grant.consume) or moved
            entry.storage_used_bytes = grant.storage_used_bytes
            entry.refresh(now)
            self._held[instance] = entry
            if moved:
                entry.fence_moved()
        if not grants.partial:
            self._elsewhere.clear()
        for instance, counts in grants.transactions.items():
            if counts == NO_TRANSACTIONS:
                self._elsewhere.pop(instance, None)
            else:
                self._elsewhere[instance] = counts
        self._lease_ends = now + grants.lease_ms / 1000
        return True

    @property
    def epoch(self) -> int:
        """The highest election epoch seen."""
        return self._epoch

    def _throttling_started(self) -> None:
        self._early = True


def _instance_report(entry: _Instance, fact: InstanceFacts, since: float, now: float) -> InstanceReport:
    produce, consume = entry.directions["produce"], entry.directions["consume"]
    flow = produce.flow(fact.leaders, since, now)
    back = consume.flow(fact.leaders, since, now)
    return _new(InstanceReport, (flow, back, fact.storage_bytes, fact.connections))


def _withdraw(entry: _Instance, now: float) -> None:
    for direction in entry.directions.values():
        direction.granted = None
    entry.refresh(now)


def _take(direction: _Direction, grant: Grant) -> bool:
    """Whether it is blocked, and was not, or the other way round."""
    direction.granted = grant.allocation
    before, direction.bucket.blocked = direction.bucket.blocked, grant.blocked
    return before != grant.blocked
