"""Prices that were published stay as they are; a new price is a new version, and prices only months that begin with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from controlplane.billing import closing, selectors, services
from controlplane.billing.models import Invoice
from controlplane.billing.pricing import plans
from controlplane.billing.pricing.documents import digest_of
from controlplane.billing.pricing.plans import EDITIONS, PRO, Edition, plan_on, plan_version
from controlplane.billing.pricing.rating import Month
from controlplane.billing.verification import invoice_verify
from controlplane.instances.models import SpecChange
from tests.controlplane.fakes import ManualClock

PUBLISHED = {
    ("pro", 1): "96b9ad2edcefc40e9f8c02665162929f371c510c8e0b495d705a6a247836a34c",
    ("traffic", 1): "644ad648b959c0ff2fc8a5b6b5422459df77e8658dbfea93353e5262b76bd4c3",
    ("pro-usd", 1): "d2bd57de66f5f594c74028c6d826d046e656de18068cf6dfd5e34aa282d8071d",
    ("traffic-usd", 1): "63eecea2ab178da7db49b429d950c9469a8ff779efb44f519dfb68ceef3f4639",
}
"""SHA-256 of every version that was ever sold. One that fails here was changed: give it a new version instead."""
DEARER = replace(PRO, version=2, disk_per_100_gb_hour=Decimal("0.50"))


def verified(invoice) -> list[tuple[str, str]]:
    return [(each.code, each.detail) for each in invoice_verify(invoice=invoice)]


@pytest.mark.parametrize("edition", EDITIONS, ids=lambda edition: f"{edition.plan.name} {edition.plan.version}")
def test_a_published_price_never_changes(edition):
    assert digest_of(edition.plan.document()) == PUBLISHED[edition.plan.name, edition.plan.version]


def test_no_published_version_is_taken_away_and_none_has_two_meanings():
    sold = [(edition.plan.name, edition.plan.version) for edition in EDITIONS]
    assert len(sold) == len(set(sold))
    assert set(PUBLISHED) <= set(sold)


@pytest.fixture
def dearer_from_10_may(monkeypatch):
    monkeypatch.setattr(plans, "EDITIONS", (*EDITIONS, Edition(date(2026, 5, 10), DEARER)))


@pytest.mark.usefixtures("dearer_from_10_may")
class TestANewPrice:
    def test_it_prices_the_months_that_begin_after_its_day(self):
        assert [plan_on("pro", day).version for day in (date(2026, 4, 1), date(2026, 5, 1), date(2026, 6, 1))] == [
            1,
            1,
            2,
        ]
        assert plan_version("pro", 1) == PRO
        with pytest.raises(LookupError):
            plan_version("pro", 3)

    def test_a_month_that_began_under_the_old_one_keeps_it_and_the_next_has_the_new_one(self, alice, instance):
        SpecChange.objects.unscoped("a test").update(at=datetime(2026, 4, 30, 23, tzinfo=UTC))
        clock = ManualClock()
        clock.time = datetime(2026, 7, 1, 12, tzinfo=UTC)
        disks = {}
        for month in (Month(2026, 5), Month(2026, 6)):
            bill = selectors.bill_get(
                organisation=alice.organisation, instance_id=instance.id, month=month, clock=clock
            )
            disks[str(month)] = next(line for line in bill.lines if line["item"] == "disk")
        assert [(disks[month]["unit_price"], disks[month]["plan_version"]) for month in disks] == [
            ("0.25", 1),
            ("0.50", 2),
        ]

    def test_an_old_invoice_is_checked_with_its_own_version(self, instance, monkeypatch):
        SpecChange.objects.unscoped("a test").update(at=datetime(2026, 4, 30, 23, tzinfo=UTC))
        monkeypatch.setattr(plans, "EDITIONS", EDITIONS)
        closing.invoice_close(instance=instance, month=Month(2026, 4), now=datetime(2026, 5, 1, 7, tzinfo=UTC))
        monkeypatch.setattr(plans, "EDITIONS", (*EDITIONS, Edition(date(2026, 5, 1), DEARER)))
        invoice = Invoice.objects.unscoped("a test").get()
        assert verified(invoice) == []

    def test_a_price_that_was_changed_without_a_new_version_is_found(self, instance, monkeypatch):
        SpecChange.objects.unscoped("a test").update(at=datetime(2026, 4, 30, 23, tzinfo=UTC))
        closing.invoice_close(instance=instance, month=Month(2026, 4), now=datetime(2026, 5, 1, 7, tzinfo=UTC))
        invoice = Invoice.objects.unscoped("a test").get()
        cheaper = replace(PRO, disk_per_100_gb_hour=Decimal("0.20"))
        monkeypatch.setattr(plans, "EDITIONS", (Edition(date(2000, 1, 1), cheaper),))
        assert verified(invoice) == [("price_list", "version 1 of the plan 'pro' has other prices today")]


def test_a_plan_that_is_not_sold_yet_is_not_chosen(alice, monkeypatch):
    from controlplane.core.errors import Invalid

    novel = replace(PRO, name="novel")
    monkeypatch.setattr(plans, "EDITIONS", (*EDITIONS, Edition(date(2026, 6, 1), novel)))
    clock = ManualClock()
    clock.time = datetime(2026, 5, 20, tzinfo=UTC)
    about = {"organisation": alice.organisation, "actor": "alice@example.com", "plan": "novel", "clock": clock}
    with pytest.raises(Invalid):
        services.plan_choose(**about, when="now")
    assert services.plan_choose(**about, when="next_month").at == datetime(2026, 6, 1, tzinfo=UTC)
