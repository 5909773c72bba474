"""No sequence of purchases, resizes, renewals, failures and retries oversells a cluster, or bills what does not exist.

A machine calls what REST calls, and is the workers, beat and the brokers, in any order, with brokers and ZooKeeper away and
processes that die in between. Beside each instance it keeps a *life* (tests/controlplane/billing/prepaid_lives.py), which adds
up by the sentences of the documents what has happened: what is on bills has to be that.

What is sold is added up from the rows, as a person would, after every step.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import ClassVar

import pytest
from django.core.cache import cache
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from controlplane.admission import endings, prepaid, purchases
from controlplane.billing import selectors as billing
from controlplane.billing.models import PrepaidEvent
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.prepaid import AT_END
from controlplane.billing.pricing.rating import HOUR, Month, total
from controlplane.clusters import zookeeper
from controlplane.core import audit, operations
from controlplane.core.clock import SystemClock
from controlplane.core.errors import SluiceError
from controlplane.core.models import Operation
from controlplane.instances import lifecycle, reconcile
from controlplane.instances.models import Instance, SpecChange
from controlplane.kafka import client
from tests.controlplane.billing.prepaid_lives import SIZES, Life
from tests.controlplane.conftest import WANTED
from tests.controlplane.fakes import FakeAdmin, FakeBrokers, FakeTree

BEGIN = datetime(2026, 1, 29, 7, 31, tzinfo=UTC)
REASON = "a test"
BROKERS = 3
ROOM = {"bandwidth_mib_per_s": (60, 1), "storage_gib": (400, 1), "partitions": (1000, 1), "connections": (3500, 2)}
CAPS = {"instances": 3, "bandwidth_mib_per_s": 150, "storage_gib": 1000}
QUICK, LONG = 12, 10_000

organisations = st.integers(0, 1)
sizes = st.integers(0, 3)
months = st.sampled_from([1, 1, 2, 3])
ends = st.sampled_from(AT_END)


class Killed(BaseException):
    """SIGKILL, before the transaction was committed."""


class Held:
    """The machine's time, where a clock is handed in; waiting takes none."""

    def __init__(self, machine):
        self._machine = machine

    def now(self):
        return self._machine.now

    def sleep(self, _seconds):
        """The next look comes when time has passed."""


def members_of(size):
    chosen = SIZES[size]
    return {
        "bandwidth_mib_per_s": float(chosen.bandwidth_mb_per_s),
        "storage_gib": float(chosen.disk_gb),
        "partitions": chosen.partitions,
    }


class AnySequence(RuleBasedStateMachine):
    """Each example is taken back at its end, and begins with two organisations and an empty cluster."""

    monkeypatch: ClassVar[pytest.MonkeyPatch]
    owners: ClassVar[list]
    instances = Bundle("instances")

    def __init__(self):
        super().__init__()
        self._transaction = transaction.atomic()
        self._transaction.__enter__()
        cache.clear()
        self.now = BEGIN
        self.clock = Held(self)
        self.tree = FakeTree()
        self.brokers = FakeBrokers(self.tree)
        admin = FakeAdmin(self.tree)
        self.monkeypatch.setattr(zookeeper, "tree", lambda _cluster: self.tree)
        self.monkeypatch.setattr(client, "admin", lambda _cluster: admin)
        self.monkeypatch.setattr(SystemClock, "now", lambda _self: self.now)
        self.lives: dict[str, Life] = {}
        self.owner: dict[str, object] = {}
        self.tried: set[str] = set()  # organisations that have used the five-day rule
        self.last = None  # the last request that was answered with an operation, and which

    def teardown(self):
        try:
            for instance_id in self.lives:
                self.check_bills(instance_id)
        finally:
            transaction.set_rollback(True)
            self._transaction.__exit__(None, None, None)

    # --- requests -----------------------------------------------------------------------------------------------------

    def ask(self, call, *, repeatable=False):
        """What a request answers; None where it is refused, which changes nothing."""
        before = self.snapshot()
        self.last = None
        try:
            with transaction.atomic():
                answer = call()
        except SluiceError as error:
            assert self.snapshot() == before
            self.refusal = error.code
            return None
        self.refusal = ""
        if repeatable:
            self.last = (call, answer.id)
        return answer

    def about(self, instance_id):
        return {"organisation": self.owner[instance_id], "actor": "a", "instance_id": instance_id}

    def life(self, instance_id):
        life = self.lives[instance_id]
        life.now = self.now
        return life

    @rule(target=instances, owner=organisations, size=sizes, paid=st.none() | months, at_end=ends)
    def buy(self, owner, size, paid, at_end):
        organisation = self.owners[owner]
        more = {} if paid is None else {"prepaid_months": paid, "prepaid_at_end": at_end}
        wanted = {**WANTED, **members_of(size), **more}
        made = self.ask(
            lambda: purchases.instance_buy(organisation=organisation, actor="a", confirm_price=True, **wanted)
        )
        if made is None:
            return self.passed("none")
        instance_id = made[0].id
        self.owner[instance_id] = organisation
        life = self.lives[instance_id] = Life(at_end, now=self.now, size=size)
        if paid is not None:
            life.buy(paid)
        return self.passed(instance_id)

    @rule(instance_id=instances, size=sizes)
    def resize(self, instance_id, size):
        if instance_id not in self.lives:
            return
        life = self.life(instance_id)
        shrinks = size < life.size
        changed = self.ask(
            lambda: purchases.instance_change(
                **self.about(instance_id), changes=members_of(size), confirm_price=True, accept_full_storage=True
            )
        )
        if changed is not None:
            assert not (shrinks and (life.terms or life.waiting)), "what is paid in advance does not become smaller"
            life.resize(size)
        self.passed()

    @rule(instance_id=instances)
    def delete(self, instance_id):
        if instance_id not in self.lives:
            return
        organisation = self.owner[instance_id]
        if self.ask(lambda: endings.instance_delete(**self.about(instance_id)), repeatable=True) is not None:
            life = self.life(instance_id)
            life.has_tried = organisation.id in self.tried
            life.delete()
            if life.has_tried:
                self.tried.add(organisation.id)
        self.passed()

    @rule(instance_id=instances)
    def restore(self, instance_id):
        if instance_id in self.lives:
            self.ask(lambda: lifecycle.instance_restore(**self.about(instance_id)), repeatable=True)
            self.passed()

    @rule(instance_id=instances, count=months, at_end=ends)
    def begin(self, instance_id, count, at_end):
        if instance_id not in self.lives:
            return
        life = self.life(instance_id)
        was_prepaid = bool(life.terms or life.waiting)
        asked = {**self.about(instance_id), "months": count, "at_end": at_end, "confirm_price": True}
        if self.ask(lambda: prepaid.prepaid_begin(**asked), repeatable=True) is not None and not was_prepaid:
            life.at_end = at_end
            life.buy(count)
        self.passed()

    @rule(instance_id=instances, count=months, is_stale=st.booleans())
    def renew(self, instance_id, count, is_stale):
        if instance_id not in self.lives or not self.lives[instance_id].terms:
            return
        life = self.life(instance_id)
        end = life.terms[-1].end - (timedelta(days=1) if is_stale else timedelta(0))
        asked = {**self.about(instance_id), "months": count, "ends_at": end, "confirm_price": True}
        if self.ask(lambda: prepaid.prepaid_renew(**asked), repeatable=True) is not None:
            assert not is_stale
            life.renew(count)
        elif not is_stale:
            assert self.refusal in ("prepaid_too_long", "prepaid_ended", "too_many_operations")
        self.passed()

    @rule(instance_id=instances, at_end=ends)
    def decide(self, instance_id, at_end):
        if instance_id not in self.lives:
            return
        life = self.life(instance_id)
        asked = {**self.about(instance_id), "at_end": at_end}
        if self.ask(lambda: prepaid.prepaid_set(**asked)) is not None and at_end != life.at_end:
            life.decide(at_end)
        self.passed()

    @precondition(lambda self: self.last is not None)
    @rule(minutes=st.sampled_from([0, 5]))
    def again(self, minutes):
        """The same request once more: the same answer, and nothing has changed."""
        call, operation_id = self.last
        self.now += timedelta(minutes=minutes)
        before = self.snapshot()
        with transaction.atomic():
            assert call().id == operation_id
        assert self.snapshot() == before
        self.passed()

    @rule(instance_id=instances, what=st.sampled_from(["buy", "resize", "delete", "restore", "begin", "renew"]))
    def die(self, instance_id, what):
        """A process that is killed in the middle of a request leaves nothing of it."""
        if instance_id not in self.lives:
            return
        life, about = self.life(instance_id), self.about(instance_id)
        end = life.terms[-1].end if life.terms else self.now
        calls = {
            "buy": lambda: purchases.instance_buy(
                organisation=about["organisation"], actor="a", confirm_price=True, prepaid_months=1, **WANTED
            ),
            "resize": lambda: purchases.instance_change(**about, changes={"partitions": 75}, confirm_price=True),
            "delete": lambda: endings.instance_delete(**about),
            "restore": lambda: lifecycle.instance_restore(**about),
            "begin": lambda: prepaid.prepaid_begin(**about, months=1, confirm_price=True),
            "renew": lambda: prepaid.prepaid_renew(**about, months=1, ends_at=end, confirm_price=True),
        }

        def dies(**_members):
            raise Killed

        before, real = self.snapshot(), audit.record
        audit.record = dies
        try:
            with transaction.atomic():
                calls[what]()
        except (Killed, SluiceError):
            pass
        finally:
            audit.record = real
        assert self.snapshot() == before  # also where it was answered: then it was no news
        self.passed()

    # --- the rest of the world ------------------------------------------------------------------------------------------

    @rule()
    def work(self):
        """Workers carry on what can be carried on now."""
        self.last = None
        for _ in range(3):
            for operation_id in list(operations.runnable(clock=self.clock).values_list("pk", flat=True)):
                operations.run(operation_id, clock=self.clock)
        self.passed()

    @rule()
    def beat(self):
        """What the clock does: grace periods, what is paid in advance, the reconciler."""
        self.last = None
        lifecycle.grace_periods_end()
        for instance_id, life in self.lives.items():
            if life.terms and life.terms[-1].end <= self.now:
                self.life(instance_id)._come_to_its_end()
        prepaid.prepaid_look()
        reconcile.reconcile_all()
        self.passed()

    @rule(minutes=st.sampled_from([1, 29, 61, 1440, 7200, 10_080, 45_000]))
    def wait(self, minutes):
        self.now += timedelta(minutes=minutes)
        self.passed()

    @rule(broker=st.integers(1, BROKERS))
    def away(self, broker):
        self.brokers.paused.add(broker)

    @rule()
    def back(self):
        self.tree.away = False
        self.brokers.paused.clear()
        self.brokers.apply()

    @rule()
    def work_without_zookeeper(self):
        """Whatever is tried now is tried again."""
        self.last = None
        self.tree.away = True
        for operation_id in list(operations.runnable(clock=self.clock).values_list("pk", flat=True)):
            operations.run(operation_id, clock=self.clock)
        self.tree.away = False
        self.passed()

    # --- what has to hold -----------------------------------------------------------------------------------------------

    def passed(self, answer=None):
        """The end of a step: what was opened meanwhile is open; no two things happen at one moment."""
        for row in self.rows():
            life = self.life(row.id) if row.id in self.lives else None
            if life is not None and row.state == "running" and not life.is_open:
                life.open()
            assert life is None or life.is_open == (row.state == "running"), (row.id, row.state)
        self.now += timedelta(minutes=1)
        return answer

    def rows(self):
        return list(Instance.objects.unscoped(REASON).order_by("pk"))

    def snapshot(self):
        """What requests write, but for operations."""
        instances = [
            (
                row.id,
                row.state,
                row.generation,
                row.partitions,
                row.storage_gib,
                row.bandwidth_mib_per_s,
                row.destroys_at,
            )
            for row in self.rows()
        ]
        history = SpecChange.objects.unscoped(REASON).count()
        return (
            instances,
            history,
            PrepaidEvent.objects.unscoped(REASON).count(),
            Operation.objects.unscoped(REASON).count(),
        )

    @invariant()
    def nothing_is_oversold(self):
        held = [row for row in self.rows() if row.state != "deleted"]
        names = ("bandwidth_mib_per_s", "storage_gib", "partitions")

        def sold(rows):
            sums = {name: sum(Fraction(str(getattr(row, name))) for row in rows) for name in names}
            return sums | {"instances": len(rows), "connections": 1000 * BROKERS * len(rows)}

        in_all = sold(held)
        for name, (per_broker, overcommit) in ROOM.items():
            assert in_all[name] <= per_broker * overcommit * BROKERS, name
        for organisation in self.owners:
            of_one = sold([row for row in held if row.organisation_id == organisation.id])
            assert all(of_one[name] <= cap for name, cap in CAPS.items())

    def check_bills(self, instance_id):
        """Every hour in which it was open is paid once, by the hour or in advance, and nothing else is."""
        life, instance = self.life(instance_id), Instance.objects.unscoped(REASON).get(pk=instance_id)
        by_the_hour, charged = set(), []
        month = Month.of(BEGIN)
        while month.start <= self.now:
            terms = billing.terms_of(organisation=instance.organisation, month=month)
            lines = documents.rated(billing.inputs_of(instance, terms, month, self.now))
            for line in lines:
                if line.item == "bandwidth":
                    hours = {line.start + number * HOUR for number in range((line.end - line.start) // HOUR)}
                    assert not hours & by_the_hour, "billed twice"
                    by_the_hour |= hours
            charged += [line for line in lines if line.charged]
            month = month.before(-1)
        assert by_the_hour == life.hours_by_the_hour()
        assert abs(Fraction(total(charged)) - sum(life.expected, Fraction(0))) <= Fraction(len(charged), 100)
        assert total(charged) >= 0
        if not life.periods:
            assert (by_the_hour, charged) == (set(), [])


def run(alice, charlie, installed, monkeypatch, examples, steps):
    installed(room=ROOM, caps=CAPS, price_confirmed_above="1000000")
    AnySequence.monkeypatch = monkeypatch
    AnySequence.owners = [alice.organisation, charlie.organisation]
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        AnySequence,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=quiet),
    )


@pytest.mark.usefixtures("grace")
def test_nothing_is_oversold_and_nothing_is_billed_that_is_not_there(alice, charlie, installed, monkeypatch):
    run(alice, charlie, installed, monkeypatch, QUICK, 30)


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)  # an hour or two, too long for a night (tests/nightly/long_tests.py)
@pytest.mark.usefixtures("grace")
def test_ten_thousand_sequences(alice, charlie, installed, monkeypatch):
    run(alice, charlie, installed, monkeypatch, LONG, 40)
