"""Storage is bought as a person would buy it: step by step, to the most, within room, caps, price and budgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from controlplane.accounts.models import User
from controlplane.admission import prepaid
from controlplane.billing.pricing.rating import Month
from controlplane.core.clock import SYSTEM_CLOCK, SystemClock
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances.models import Instance, SpecChange
from controlplane.policies import storage
from tests.controlplane.admission.conftest import installed  # noqa: F401  # a fixture
from tests.controlplane.budgets.rows import budget_row, cost_row
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_instances_api import URL

from .conftest import REASON
from .test_retention import Killed, subjects


@pytest.fixture(autouse=True)
def before_the_last_days_of_a_month(monkeypatch):
    """What a step costs until the month's end is next to nothing on its last days, so on those it is five days earlier."""
    late = timedelta(days=5 if datetime.now(UTC).day > 24 else 0)
    monkeypatch.setattr(SystemClock, "now", lambda _self: datetime.now(UTC) - late)


@pytest.fixture
def full(world):
    """10 GiB, of which more than the level is used; 12 may be bought."""
    world.set("expansion", max_storage_gib=12)
    world.fills(80)
    return world


@pytest.fixture
def large(world):
    """1000 GiB: every step has its price from there on."""
    Instance.objects.unscoped(REASON).filter(pk=world.instance.pk).update(storage_gib=1000)
    world.set("expansion", max_storage_gib=2000)
    world.fills(80)
    return world


def size(world):
    world.instance.refresh_from_db()
    return world.instance.storage_gib


def test_one_step_is_bought_by_an_operation_as_ever(full, alice, tree):
    done = full.act()
    assert (done.kind, done.state, size(full)) == ("policies.expand", "succeeded", 11)
    assert done.result["said"] == "storage was raised from 10 to 11 GiB"
    assert run_to_the_end(done.result["operation_id"], full.clock).kind == "instance.update"
    assert tree.spec(full.instance.id).limits.storage_bytes == 11 * 2**30
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.update")
    assert (entry.actor, entry.detail) == ("system", {"storage_gib": {"from": 10, "to": 11}})
    assert SpecChange.objects.unscoped(REASON).filter(kind="resized", storage_gib=11).count() == 1


def test_up_to_the_most_and_no_further(full):
    full.act()
    full.later(minutes=6)
    full.fills(80)
    full.act()
    assert size(full) == 12
    full.later(minutes=6)
    full.fills(80)
    failed = full.act()
    assert (failed.state, failed.error_code, size(full)) == ("failed", "policy_at_its_most", 12)
    assert full.shown()["problem"] == "storage is at the most that the policy buys: 12 GiB"
    full.later(hours=5)
    assert full.look() == []
    full.set("expansion", max_storage_gib=12)  # said again: nothing happens
    assert full.look() == []
    full.set("expansion", max_storage_gib=14)
    full.act()
    assert (size(full), full.shown()["problem"]) == (14, None)


@pytest.mark.parametrize(
    ("limits", "code"),
    [({"caps": {"storage_gib": 10}}, "organisation_cap"), ({"room": {"storage_gib": (3, 1)}}, "cluster_full")],
)
def test_caps_and_room_hold(full, installed, limits, code):  # noqa: F811
    installed(**limits)
    failed = full.act()
    assert (failed.state, failed.error_code, size(full)) == ("failed", code, 10)
    assert "storage" in full.shown()["problem"]
    assert not Operation.objects.unscoped(REASON).filter(kind="instance.update").exists()


def test_a_price_that_was_not_confirmed_is_not_paid(large, installed):  # noqa: F811
    installed(price_confirmed_above=1)
    failed = large.act()
    assert (failed.state, failed.error_code, size(large)) == ("failed", "price_unconfirmed", 1000)


def month():
    return str(Month.of(SYSTEM_CLOCK.now()))


@pytest.mark.parametrize(
    ("members", "is_bought"),
    [
        ({"amount": Decimal(100)}, False),
        ({"amount": Decimal(100), "is_its": True}, False),
        ({"amount": Decimal(10**6)}, True),
        ({"amount": Decimal(100), "currency": "USD"}, True),
    ],
)
def test_budgets_hold(large, alice, members, is_bought):
    cost_row(large.instance, 90, 100, month=month())
    asked = dict(members)
    instance = large.instance if asked.pop("is_its", False) else None
    budget_row(alice.organisation, instance=instance, **asked)
    done = large.act()
    assert (done.state == "succeeded") is is_bought
    if not is_bought:
        assert done.error_code == "over_budget"
        assert "would cost more than the budget all of it" in large.shown()["problem"]
    assert size(large) == (1100 if is_bought else 1000)


def test_what_was_bought_since_the_forecast_counts_for_budgets(large, alice):
    """The forecast is of before the first step: it would let step after step pass."""
    now, later = (storage.amounts_at(large.instance, gib, SYSTEM_CLOCK)["price_per_month"] for gib in (1000, 1100))
    SpecChange.objects.unscoped(REASON).update(storage_gib=1000)
    cost_row(large.instance, 90, 100, month=month(), computed_at=SYSTEM_CLOCK.now())
    of_month = Month.of(SYSTEM_CLOCK.now())
    left = Decimal(str((of_month.end - SYSTEM_CLOCK.now()) / (of_month.end - of_month.start)))
    budget_row(alice.organisation, amount=100 + (later - now) * left * Decimal("1.5"))  # for one step, and not for two
    assert (large.act().state, size(large)) == ("succeeded", 1100)
    large.later(minutes=8)
    large.fills(80)
    failed = large.act()
    assert (failed.state, failed.error_code, size(large)) == ("failed", "over_budget", 1100)
    assert not failed.result


@pytest.mark.parametrize(("amount", "is_bought"), [(1_500, False), (2_100, True)])
def test_of_what_is_paid_in_advance_all_that_it_costs_until_the_end_counts_for_a_budget(
    large, alice, amount, is_bought
):
    """100 GiB for a year: 1920."""
    SpecChange.objects.unscoped(REASON).update(storage_gib=1000)
    paid = alice.api.post(f"{URL}/{large.instance.pk}/prepaid", {"months": 12, "confirm_price": True})
    assert run_to_the_end(paid.json()["operation_id"]).state == "succeeded"
    cost_row(large.instance, 90, 100, month=month(), computed_at=SYSTEM_CLOCK.now())
    budget_row(alice.organisation, amount=Decimal(amount))
    done = large.act()
    assert (done.error_code, size(large)) == (("", 1100) if is_bought else ("over_budget", 1000))


def test_what_another_instance_bought_since_counts_for_a_budget_of_all(large, alice):
    other = Instance.objects.unscoped(REASON).get(pk=large.instance.pk)
    other.pk, other.name, other.state = "ins-other000", "other", "running"
    other.save(force_insert=True)
    at = SYSTEM_CLOCK.now()
    cost_row(large.instance, 90, 100, month=month(), computed_at=at)
    cost_row(other, 90, 100, month=month(), computed_at=at)
    sizes = {"bandwidth_mib_per_s": other.bandwidth_mib_per_s, "partitions": other.partitions}
    for kind, gib, when in (("opened", 10, at - timedelta(days=40)), ("resized", 100_000, SYSTEM_CLOCK.now())):
        SpecChange(
            organisation=other.organisation, instance=other, kind=kind, storage_gib=gib, at=when, **sizes
        ).save(force_insert=True)  # fmt: skip
    budget_row(alice.organisation, amount=Decimal(10_000))
    failed = large.act()
    assert (failed.state, failed.error_code, size(large)) == ("failed", "over_budget", 1000)


@pytest.mark.parametrize("is_bought", [False, True])
def test_what_another_instance_paid_in_advance_since_counts_for_a_budget_of_all(large, alice, is_bought):
    """A year is charged at once; by the hour it then costs nothing more this month."""
    other = Instance.objects.unscoped(REASON).get(pk=large.instance.pk)
    other.pk, other.name, other.state = "ins-other000", "other", "running"
    other.save(force_insert=True)
    opened = SYSTEM_CLOCK.now() - timedelta(days=40)
    sizes = {name: getattr(other, name) for name in ("bandwidth_mib_per_s", "storage_gib", "partitions")}
    SpecChange(organisation=other.organisation, instance=other, kind="opened", at=opened, **sizes).save(
        force_insert=True
    )
    for each in (large.instance, other):
        cost_row(each, 90, 100, month=month(), computed_at=SYSTEM_CLOCK.now())
    paid = alice.api.post(f"{URL}/{other.pk}/prepaid", {"months": 12, "confirm_price": True})
    assert run_to_the_end(paid.json()["operation_id"]).state == "succeeded"
    charged = prepaid.charged(other, SYSTEM_CLOCK)
    assert charged > 5_000
    budget_row(alice.organisation, amount=200 + (charged + 1_000 if is_bought else charged / 2))
    done = large.act()
    assert (done.error_code, size(large)) == (("", 1100) if is_bought else ("over_budget", 1000))


def test_what_costs_nothing_more_is_bought_whatever_the_month_costs(full, alice):
    cost_row(full.instance, 900, 1000, month=month())
    budget_row(alice.organisation, amount=Decimal(100))
    assert full.act().state == "succeeded"
    assert size(full) == 11


def test_a_budget_of_which_nothing_is_computed_yet_holds_nothing(full, alice):
    budget_row(alice.organisation, amount=Decimal(1))
    assert full.act().state == "succeeded"


@pytest.mark.parametrize("stale", ["a broker is silent", "the master is new", "the master is away"])
def test_figures_that_are_doubtful_buy_nothing(full, stale):
    (begun,) = full.look()
    if stale == "a broker is silent":
        full.master.broker_rows[0]["reporting"] = False
    else:
        full.fills(80 if stale == "the master is new" else None, learning=True)
    assert run_to_the_end(begun.pk, full.clock).state == "failed"
    assert size(full) == 10


def test_below_the_level_again_nothing_is_bought(full):
    (begun,) = full.look()
    full.fills(20)
    assert run_to_the_end(begun.pk, full.clock).state == "succeeded"
    assert size(full) == 10


def test_of_another_policy_meanwhile_nothing_is_bought(full):
    (begun,) = full.look()
    full.set("none")
    assert run_to_the_end(begun.pk, full.clock).state == "succeeded"
    assert size(full) == 10


def test_a_worker_that_dies_behind_the_purchase_has_bought_once(full, monkeypatch):
    (begun,) = full.look()
    real = storage._bought

    def dies(*arguments):
        real(*arguments)
        raise Killed

    monkeypatch.setattr(storage, "_bought", dies)
    with pytest.raises(Killed):
        run_to_the_end(begun.pk, full.clock)
    monkeypatch.setattr(storage, "_bought", real)
    full.fills(80)  # of 11 GiB: the level is reached again
    full.later(minutes=5)
    assert run_to_the_end(begun.pk, full.clock).state == "succeeded"
    assert size(full) == 11


def test_a_worker_that_dies_within_it_has_bought_nothing(full, monkeypatch):
    (begun,) = full.look()

    def dies(*_arguments, **_members):
        raise Killed

    monkeypatch.setattr(storage.telling, "expanded_tell", dies)
    with pytest.raises(Killed):
        run_to_the_end(begun.pk, full.clock)
    assert size(full) == 10
    assert not Operation.objects.unscoped(REASON).filter(kind="instance.update").exists()


def test_owners_are_told_of_each_purchase(full, mails):
    User.objects.update(email_verified_at=timezone.now())
    full.act()
    assert subjects(mails) == [f"Instance events ({full.instance.id}) was given more storage: 11 GiB"]
    assert "will not be raised beyond 12 GiB" in mails.mails[0].get_content()


def test_from_shortening_to_buying_retention_is_put_back_first(world):
    world.topic("orders", [6.5 * 24 * 3600])
    world.set("retention")
    world.fills(80)
    world.act()
    back = world.set("expansion", max_storage_gib=12)["operation_id"]
    assert world.look() == []  # one thing at a time
    run_to_the_end(back, world.clock)
    assert world.retention("orders") is None
    assert world.act().kind == "policies.expand"
