"""A plan counts from the hour after it was chosen, or from the next month: never backwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.test import Client

from controlplane.billing import selectors, services
from controlplane.billing.pricing import plans
from controlplane.billing.pricing.plans import TRAFFIC, Edition
from controlplane.billing.pricing.rating import Month
from controlplane.core.errors import Conflict, Invalid
from controlplane.core.models import AuditEntry
from controlplane.instances.models import SpecChange
from tests.controlplane.conftest import Person
from tests.controlplane.fakes import ManualClock
from tests.controlplane.metering.conftest import raised, row

GB = 10**9


@pytest.fixture
def used(instance):
    """Open since before May 2026; 1 GB written on 2 May and 2 GB on 31 May after 20:00."""
    SpecChange.objects.unscoped("a test").filter(instance=instance).update(at=datetime(2026, 4, 1, tzinfo=UTC))
    raised([row(instance.id, "2026-05-02T00", GB), row(instance.id, "2026-05-31T20", 3 * GB)])
    return instance


def at(monkeypatch, moment: datetime) -> None:
    monkeypatch.setattr(type(selectors.SYSTEM_CLOCK), "now", lambda _self: moment)


def choose(person: Person, plan: str, when: str) -> None:
    client = Client()
    client.force_login(person.user)
    assert client.post(f"/{person.organisation.id}/plan", {"plan": plan, "when": when}).status_code == 302


def lines(person: Person, instance, month: str = "2026-05") -> list[tuple[str, ...]]:
    body = person.api.get(f"/api/v1/instances/{instance.id}/bill?month={month}").json()
    assert Decimal(body["total"]) == sum(Decimal(line["amount"]) for line in body["lines"])
    return [
        (line["item"], line["quantity"], line["amount"], line["from"][5:16], line["to"][5:16]) for line in body["lines"]
    ]


def test_a_cheaper_plan_on_the_last_day_does_not_make_the_month_cheaper(alice, used, monkeypatch):
    at(monkeypatch, datetime(2026, 5, 31, 19, 40, tzinfo=UTC))
    choose(alice, "traffic", "now")
    at(monkeypatch, datetime(2026, 6, 1, 1, tzinfo=UTC))
    assert lines(alice, used) == [
        ("bandwidth", "740", "991.60", "05-01T00:00", "05-31T20:00"),
        ("disk", "740", "185.00", "05-01T00:00", "05-31T20:00"),
        ("produced", "1", "0.00", "05-01T00:00", "05-31T20:00"),
        ("produced", "2", "1.20", "05-31T20:00", "06-01T00:00"),
    ]


def test_a_plan_can_be_chosen_for_the_next_month(alice, used, monkeypatch):
    at(monkeypatch, datetime(2026, 5, 31, 19, 40, tzinfo=UTC))
    choose(alice, "traffic", "next_month")
    at(monkeypatch, datetime(2026, 6, 1, 1, tzinfo=UTC))
    assert [line[:3] for line in lines(alice, used)] == [
        ("bandwidth", "744", "996.96"),
        ("disk", "744", "186.00"),
        ("produced", "3", "0.00"),
    ]
    assert lines(alice, used, "2026-06") == []


class TestChoosing:
    def choose(self, alice, plan: str, when: str, moment: datetime):
        clock = ManualClock()
        clock.time = moment
        about = {"organisation": alice.organisation, "actor": "alice@example.com", "clock": clock}
        return services.plan_choose(**about, plan=plan, when=when).at

    def plan_at(self, alice, *moment: int) -> str:
        return selectors.plan_of(organisation=alice.organisation, at=datetime(*moment, tzinfo=UTC)).name

    def test_who_never_chose_has_the_default_plan(self, alice):
        assert self.plan_at(alice, 2026, 5, 20) == "pro"

    def test_now_is_the_next_full_hour(self, alice):
        moment = datetime(2026, 5, 20, 9, 0, 1, tzinfo=UTC)
        assert self.choose(alice, "traffic", "now", moment) == datetime(2026, 5, 20, 10, tzinfo=UTC)
        assert self.plan_at(alice, 2026, 5, 20, 9, 59) == "pro"
        assert self.plan_at(alice, 2026, 5, 20, 10) == "traffic"
        assert self.plan_at(alice, 2026, 7, 1) == "traffic"
        full = datetime(2026, 5, 21, 9, tzinfo=UTC)
        assert self.choose(alice, "pro", "now", full) == full

    def test_what_changes_nothing_is_no_change_that_is_to_come(self, alice, monkeypatch):
        moment = datetime(2026, 5, 20, 9, 30, tzinfo=UTC)
        at(monkeypatch, moment)
        about = {"organisation": alice.organisation, "at": moment}
        self.choose(alice, "pro", "now", moment)
        assert selectors.plan_state(**about).following is None
        self.choose(alice, "traffic", "next_month", moment)
        following = selectors.plan_state(**about).following
        assert (following.plan, following.at.month) == ("traffic", 6)
        assert alice.api.get("/api/v1/plan").json()["next"]["name"] == "traffic"
        self.choose(alice, "pro", "now", moment)
        assert selectors.plan_state(**about).following is None

    def test_the_last_word_counts_for_hours_to_come_and_for_none_before(self, alice):
        first = datetime(2026, 5, 20, 9, 30, tzinfo=UTC)
        self.choose(alice, "traffic", "now", first)
        self.choose(alice, "pro", "next_month", first)
        self.choose(alice, "pro", "now", datetime(2026, 5, 20, 10, 30, tzinfo=UTC))
        self.choose(alice, "traffic", "now", datetime(2026, 5, 20, 10, 40, tzinfo=UTC))
        terms = selectors.terms_of(organisation=alice.organisation, month=Month(2026, 5))
        assert [(term.start.day, term.start.hour, term.plan.name) for term in terms] == [
            (1, 0, "pro"), (20, 10, "traffic"), (20, 11, "traffic"),
        ]  # fmt: skip
        assert self.plan_at(alice, 2026, 6, 1) == "traffic", "what was chosen for June is overruled"

    @pytest.mark.usefixtures("instance")
    def test_a_plan_in_another_currency_waits_for_the_next_month(self, alice, monkeypatch):
        euros = Edition(date(2000, 1, 1), replace(TRAFFIC, name="euros", currency="EUR"))
        monkeypatch.setattr(plans, "EDITIONS", (*plans.EDITIONS, euros))
        moment = datetime(2026, 5, 20, 9, 30, tzinfo=UTC)
        with pytest.raises(Conflict) as refused:
            self.choose(alice, "euros", "now", moment)
        assert refused.value.code == "other_currency"
        assert self.choose(alice, "euros", "next_month", moment) == datetime(2026, 6, 1, tzinfo=UTC)

    def test_what_is_no_plan_and_no_time_is_refused(self, alice):
        for plan, when in (("gold", "now"), ("pro", "last_month")):
            with pytest.raises(Invalid):
                self.choose(alice, plan, when, datetime(2026, 5, 20, tzinfo=UTC))

    def test_it_is_on_record(self, alice):
        self.choose(alice, "traffic", "now", datetime(2026, 5, 20, 9, 30, tzinfo=UTC))
        entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="plan.choose")
        assert (entry.actor, entry.detail) == (
            "alice@example.com",
            {"plan": {"from": "pro", "to": "traffic"}, "at": "2026-05-20T10:00:00+00:00"},
        )
