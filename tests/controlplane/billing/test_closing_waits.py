"""A month closes when all its usage has been counted, or when an operator says by name that it shall not wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from controlplane.accounts.models import User
from controlplane.billing import closing, selectors, services, verification, waiting
from controlplane.billing.models import Invoice
from controlplane.billing.pricing import credits as credit_rules
from controlplane.billing.pricing.plans import FROM_THE_BEGINNING
from controlplane.billing.pricing.rating import Month
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.core.models import AuditEntry
from controlplane.instances import services as instances
from controlplane.instances.models import Instance, SpecChange
from controlplane.metering.models import Boot, JobRun, Progress
from controlplane.quotas.models import QuotaDay
from tests.controlplane.conftest import WANTED, Person
from tests.controlplane.console.conftest import text_of
from tests.controlplane.fakes import ManualClock
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem
from tests.support.usage import hours_told, usage_complete

MAY = Month(2026, 5)
REASON = "broker 3 burned down, its counters with it"


@pytest.fixture
def billed(alice, instance):
    """Two instances since 1 May, the first with usage."""
    instances.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": "other"})
    opened = datetime(2026, 5, 1, tzinfo=UTC)
    Instance.objects.unscoped("a test").update(created_at=opened)
    SpecChange.objects.unscoped("a test").update(at=opened)
    raised([row(instance.id, "2026-05-02T00", 10**9)])
    return instance


@pytest.fixture
def operator(charlie) -> Person:
    """An operator of the service, who is in another organisation."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    charlie.user.refresh_from_db()
    return charlie


@pytest.fixture
def metrics(client, tmp_path, monkeypatch):
    """The lines that a Prometheus reads."""
    path = tmp_path / "secrets.json"
    path.write_text('{"metrics_token": "token"}')
    monkeypatch.setattr(settings, "ENVIRONMENT", replace(settings.ENVIRONMENT, secrets_file=path))
    return lambda: client.get("/metrics", headers={"Authorization": "Bearer token"}).content.decode().splitlines()


@pytest.fixture
def guaranteed(monkeypatch):
    """Terms are in force in the months of these tests."""
    monkeypatch.setattr(credit_rules, "CREDIT_EDITIONS", ((FROM_THE_BEGINNING, credit_rules.GUARANTEE),))


def clock_at(day: int, hour: int, month: int = 6) -> ManualClock:
    clock = ManualClock()
    clock.time = datetime(2026, month, day, hour, tzinfo=UTC)
    return clock


def close(day: int, hour: int, month: int = 6) -> int:
    return closing.invoices_close(clock=clock_at(day, hour, month))


def at(monkeypatch, *moment: int) -> None:
    monkeypatch.setattr(type(selectors.SYSTEM_CLOCK), "now", lambda _self: datetime(*moment, tzinfo=UTC))


def reported(to: datetime) -> None:
    """The quota report has been made for all days up to a midnight."""
    at_ms = int(to.timestamp() * 1000)
    JobRun.objects.create(
        job="quota_report",
        state="succeeded",
        asked_at_ms=at_ms,
        started_at_ms=at_ms,
        ended_at_ms=at_ms,
        done_to_ms=at_ms,
    )


def day_of(instance: str, day: str, resource: str, **columns: object) -> QuotaDay:
    """A day of the quota report of which every minute was seen."""
    told: dict[str, object] = {
        "limit_in_force": 20 << 20, "p50": 0, "p95": 0, "p99": 0, "most": 0, "used_permille": 0, "minutes": 1440,
        "throttled_minutes": 0, "throttled_ms": 0,
    }  # fmt: skip
    return QuotaDay(instance=instance, day=day, resource=resource, **told, **columns)


def invoices() -> list[str]:
    return sorted(invoice.instance_id for invoice in Invoice.objects.unscoped("a test"))


class TestMetering:
    def test_a_month_of_which_nothing_is_known_is_not_closed(self, billed):
        assert close(1, 6) == 0
        assert close(30, 0) == 0

    def test_it_waits_for_metering_that_stands_before_the_months_end_and_closes_when_it_has_caught_up(self, billed):
        usage_complete(datetime(2026, 5, 31, 21, tzinfo=UTC))
        assert close(2, 6) == 0
        usage_complete(datetime(2026, 6, 1, 0, 30, tzinfo=UTC))
        assert close(2, 7) == 0, "the months end, and the grace"
        usage_complete(datetime(2026, 6, 1, 1, 10, tzinfo=UTC))
        assert close(2, 8) == 2
        assert {invoice.inputs["metering"] for invoice in Invoice.objects.unscoped("a test")} == {"complete"}

    def test_metering_that_has_caught_up_does_not_make_the_six_hours_shorter(self, billed):
        usage_complete(datetime(2026, 6, 1, 5, tzinfo=UTC))
        assert close(1, 5) == 0
        assert close(1, 6) == 2

    def test_months_that_waited_for_long_are_closed_in_their_order(self, billed):
        usage_complete(datetime(2026, 5, 20, tzinfo=UTC))
        assert close(2, 0, month=12) == 0
        usage_complete(datetime(2026, 12, 2, tzinfo=UTC))
        assert close(2, 6, month=12) == 14
        rows = Invoice.objects.unscoped("a test").filter(instance=billed).order_by("number")
        assert [invoice.month for invoice in rows] == [f"2026-{month:02}" for month in range(5, 12)]

    def test_it_waits_for_the_quota_report_of_its_last_day_where_there_are_reports(
        self, billed, guaranteed, monkeypatch
    ):
        at(monkeypatch, 2026, 6, 1, 7)
        usage_complete(datetime(2026, 6, 1, 5, tzinfo=UTC))
        reported(datetime(2026, 5, 31, tzinfo=UTC))
        assert close(1, 6) == 0
        (waits, *_) = waiting.waiting(datetime(2026, 6, 1, 6, tzinfo=UTC))
        assert waits.why == "the quota report has come to 2026-05-31; it must come to 2026-06-01"
        reported(datetime(2026, 6, 1, tzinfo=UTC))
        assert close(1, 7) == 2

    def test_it_waits_for_no_report_where_none_was_made_for_so_long_that_none_can_be(
        self, billed, guaranteed, monkeypatch
    ):
        usage_complete(datetime(2026, 6, 20, tzinfo=UTC))
        reported(datetime(2026, 5, 31, tzinfo=UTC))
        at(monkeypatch, 2026, 6, 14, 7)
        assert close(14, 7) == 0
        at(monkeypatch, 2026, 6, 16, 7)
        assert close(16, 7) == 2

    def test_a_report_of_days_to_come_was_made_by_a_clock_that_was_ahead(self, billed, guaranteed, monkeypatch):
        at(monkeypatch, 2026, 6, 1, 7)
        usage_complete(datetime(2026, 6, 1, 5, tzinfo=UTC))
        reported(datetime(2026, 5, 31, tzinfo=UTC))
        reported(datetime(2026, 7, 31, tzinfo=UTC))
        assert close(1, 7) == 0

    def test_days_on_which_the_guarantee_was_missed_are_credited(self, billed, guaranteed):
        QuotaDay.objects.bulk_create(
            day_of(billed.id, day, resource, **columns)
            for day, resource, columns in (
                ("2026-05-03", "produce", {"under_limit_ms": 864_000, "guarantee": "missed"}),
                ("2026-05-03", "consume", {"under_limit_ms": 4_321_000, "guarantee": "missed"}),
                ("2026-05-04", "produce", {"under_limit_ms": 10, "guarantee": "kept"}),
                ("2026-06-01", "produce", {"under_limit_ms": 86_400_000, "guarantee": "missed"}),
            )
        )
        usage_complete(datetime(2026, 6, 1, 5, tzinfo=UTC))
        assert close(1, 6) == 2
        invoice = Invoice.objects.unscoped("a test").get(instance=billed)
        (credit,) = (line for line in invoice.lines if line["item"] == "guarantee_credit")
        (bandwidth,) = (line for line in invoice.lines if line["item"] == "bandwidth")
        day = 24 * Decimal(bandwidth["unit_price"])
        assert (credit["quantity"], Decimal(credit["unit_price"]), Decimal(credit["amount"])) == ("-1", day, -day)
        assert invoice.total == sum(Decimal(line["amount"]) for line in invoice.lines)
        assert verification.invoice_verify(invoice=invoice) == []
        QuotaDay.objects.filter(instance=billed.id, day="2026-05-03").update(guarantee="kept")
        assert [found.code for found in verification.invoice_verify(invoice=invoice)] == ["guarantee"]

    def test_an_invoice_of_a_month_without_terms_has_no_credit_and_is_not_said_to_lack_it(self, billed):
        QuotaDay.objects.bulk_create(
            [day_of(billed.id, "2026-05-03", "produce", under_limit_ms=10**7, guarantee="missed")]
        )
        usage_complete(datetime(2026, 6, 1, 5, tzinfo=UTC))
        assert close(1, 6) == 2
        invoice = Invoice.objects.unscoped("a test").get(instance=billed)
        assert "guarantee" not in invoice.inputs
        assert verification.invoice_verify(invoice=invoice) == []

    def test_the_closer_says_in_the_log_what_waits_and_why(self, billed, caplog):
        usage_complete(datetime(2026, 5, 31, 21, tzinfo=UTC))
        with caplog.at_level("WARNING"):
            close(2, 6)
        assert "2 invoices of 2026-05 on cluster default wait: metering has come to 2026-05-31 21:00 UTC" in caplog.text


class TestWaiving:
    def waive(self, operator, **members):
        about = {"month": MAY, "instance_id": None, "actor": operator.user.email, "reason": REASON}
        return services.metering_waive(**about | members, clock=clock_at(2, 0))

    def test_a_month_closes_without_metering_when_an_operator_waives_it(self, billed, operator):
        self.waive(operator)
        assert close(2, 0) == 2
        assert {invoice.inputs["metering"] for invoice in Invoice.objects.unscoped("a test")} == {"waived"}
        for entry in AuditEntry.objects.unscoped("a test").filter(action="invoice.close_waived"):
            assert entry.detail["missing"] == "the meter has not said yet how far it has come"
            [word] = entry.detail["waivers"]
            assert (word["not_waited_for"], word["reason"], word["by"]) == (
                "metering of 2026-05", REASON, "charlie@example.com",
            )  # fmt: skip

    def test_what_waits_for_nothing_leaves_no_record_of_waivers(self, billed):
        usage_complete(datetime(2026, 6, 2, tzinfo=UTC))
        assert close(2, 6) == 2
        assert not AuditEntry.objects.unscoped("a test").filter(action="invoice.close_waived").exists()

    def test_of_one_instance_alone(self, billed, operator):
        self.waive(operator, instance_id=billed.id)
        assert close(2, 0) == 1
        assert invoices() == [billed.id]

    def test_only_the_month_that_was_named(self, billed, operator):
        self.waive(operator)
        assert close(2, 0, month=7) == 2
        assert {invoice.month for invoice in Invoice.objects.unscoped("a test")} == {"2026-05"}

    def test_it_is_on_record_in_every_organisation_that_it_concerns(self, alice, billed, operator):
        self.waive(operator)
        [entry] = AuditEntry.objects.unscoped("a test").filter(action="invoice.waive_metering")
        assert (entry.organisation_id, entry.actor, entry.target) == (
            alice.organisation.id, "charlie@example.com", "2026-05",
        )  # fmt: skip
        assert entry.detail == {
            "month": "2026-05", "reason": REASON, "waited_for": "the meter has not said yet how far it has come",
        }  # fmt: skip

    def test_once_more_is_the_same(self, billed, operator):
        assert self.waive(operator).pk == self.waive(operator, reason="another").pk
        assert AuditEntry.objects.unscoped("a test").filter(action="invoice.waive_metering").count() == 1

    def test_what_comes_after_all_is_adjusted(self, billed, operator):
        self.waive(operator)
        close(2, 0)
        raised([row(billed.id, "2026-05-31T23", 3 * 10**9)])
        usage_complete(datetime(2026, 7, 2, tzinfo=UTC))
        close(2, 0, month=7)
        june = Invoice.objects.unscoped("a test").get(instance=billed, month="2026-06")
        assert june.inputs["metering"] == "complete"
        assert [line["quantity"] for line in june.lines if "adjusts" in line] == ["2"]

    def test_a_month_that_is_not_over_or_waits_for_nothing_is_not_waived(self, billed, operator):
        for month in (Month(2026, 6), Month(2026, 4)):
            with pytest.raises(Conflict):
                self.waive(operator, month=month)
        usage_complete(datetime(2026, 6, 2, tzinfo=UTC))
        with pytest.raises(Conflict):
            self.waive(operator)

    def test_it_needs_a_reason_and_an_instance_that_waits(self, billed, operator):
        with pytest.raises(Invalid):
            self.waive(operator, reason="  ")
        with pytest.raises(NotFound):
            self.waive(operator, instance_id="ins-00000000")

    def test_by_rest(self, alice, billed, operator, monkeypatch):
        at(monkeypatch, 2026, 6, 2)
        body = {"month": "2026-05", "instance_id": billed.id, "reason": REASON}
        problem(alice.api.post("/api/v1/metering/waivers", body), 403, "forbidden")
        answer = operator.api.post("/api/v1/metering/waivers", body)
        assert answer.status_code == 201
        assert answer.json() | {"id": 0} == {
            "id": 0, "month": "2026-05", "cluster": "", "instance_id": billed.id, "actor": "charlie@example.com",
            "reason": REASON,
            "at": "2026-06-02T00:00:00Z",
        }  # fmt: skip
        assert [waiver["month"] for waiver in operator.api.get("/api/v1/metering/waivers").json()["items"]] == [
            "2026-05"
        ]
        problem(alice.api.get("/api/v1/metering/waivers"), 403, "forbidden")
        assert closing.invoices_close() == 1

    def test_in_a_dry_run_one_that_is_there_already_is_no_new_one(self, billed, operator, monkeypatch):
        at(monkeypatch, 2026, 6, 2)
        url, body = "/api/v1/metering/waivers", {"month": "2026-05", "instance_id": billed.id, "reason": REASON}
        new = operator.api.post(f"{url}?dry_run=true", body).json()["changes"]
        assert (new["month"], new["reason"]) == ([None, "2026-05"], [None, REASON])
        assert operator.api.get(url).json()["items"] == []
        assert operator.api.post(url, body).status_code == 201
        again = operator.api.post(f"{url}?dry_run=true", {**body, "reason": "said once more"})
        assert (again.status_code, again.json()["changes"]) == (200, {})
        others = operator.api.post(f"{url}?dry_run=true", {**body, "instance_id": None}).json()["changes"]
        assert others["month"] == [None, "2026-05"]

    def test_a_dry_run_says_whose_invoices_are_written_without_what_is_missing(
        self, alice, billed, operator, monkeypatch
    ):
        at(monkeypatch, 2026, 6, 2)
        url = "/api/v1/metering/waivers?dry_run=true"
        both = sorted(Instance.objects.unscoped("a test").values_list("pk", flat=True))
        organisation = [{"who": "organisations", "count": 1, "names": [alice.organisation.id],
                         "effect": "have it in their audit logs"}]  # fmt: skip
        for wanted, names in (({"instance_id": billed.id}, [billed.id]), ({"instance_id": None}, both)):
            said = operator.api.post(url, {"month": "2026-05", "reason": REASON, **wanted}).json()["affected"]
            effect = "their invoices of 2026-05 are written without what is missing; it is adjusted later"
            instances_of_it = {"who": "instances", "count": len(names), "names": names, "effect": effect}
            assert said == [instances_of_it, *organisation]
        body = {"month": "2026-05", "instance_id": billed.id, "reason": REASON}
        assert operator.api.post("/api/v1/metering/waivers", body).status_code == 201
        assert operator.api.post(url, body).json()["affected"] == [], "it is there already"
        others = operator.api.post(url, {**body, "instance_id": None}).json()["affected"]
        assert others[0]["names"] == [each for each in both if each != billed.id], "hers waits no more"

    def test_by_command(self, billed, operator, monkeypatch, capsys):
        at(monkeypatch, 2026, 6, 2)
        call_command("invoices", "waiting")
        assert capsys.readouterr().out.splitlines() == [
            "2026-05: 2 wait: the meter has not said yet how far it has come",
            *(f"  broker {broker}: hours from the beginning to 2026-06-01 01:00" for broker in (1, 2, 3)),
        ]
        with pytest.raises(CommandError, match="month"):
            call_command("invoices", "waive", "may", "--actor", operator.user.email, "--reason", REASON)
        with pytest.raises(CommandError, match="no operator"):
            call_command("invoices", "waive", "2026-05", "--actor", "ops@example.com", "--reason", REASON)
        call_command("invoices", "waive", "2026-05", "--actor", operator.user.email, "--reason", REASON)
        assert AuditEntry.objects.unscoped("a test").get(action="invoice.waive_metering").actor == operator.user.email
        call_command("invoices", "close")
        assert "2 invoices" in capsys.readouterr().out
        call_command("invoices", "verify")
        assert capsys.readouterr().out == "2 invoices of 1 organisation: all as they were sealed\n"

    def test_on_the_operators_page(self, alice, billed, operator, monkeypatch):
        at(monkeypatch, 2026, 6, 2)
        browser = Client()
        browser.force_login(alice.user)
        assert browser.post("/fleet/invoices", {"month": "2026-05", "reason": REASON}).status_code == 404
        browser.force_login(operator.user)
        page = browser.post("/fleet/invoices", {"month": "2026-05", "reason": REASON, "instance": ""}, follow=True)
        assert "Invoices of 2026-05 no longer wait for metering" in page.content.decode()
        assert closing.invoices_close() == 2


class TestWhatIsSaidMeanwhile:
    def bill(self, person, instance, month: str = "2026-05") -> dict:
        return person.api.get(f"/api/v1/instances/{instance.id}/bill?month={month}").json()

    def test_a_tenant_reads_why_there_is_no_invoice(self, alice, billed, monkeypatch):
        at(monkeypatch, 2026, 5, 31, 23)
        body = self.bill(alice, billed)
        assert (body["state"], body["so_far"], body["invoice"]) == ("open", True, None)
        at(monkeypatch, 2026, 6, 1, 3)
        assert self.bill(alice, billed)["state"] == "waiting_for_metering"
        usage_complete(datetime(2026, 5, 31, 21, tzinfo=UTC))
        body = self.bill(alice, billed)
        assert (body["state"], body["so_far"], body["counted_until"]) == (
            "waiting_for_metering", True, "2026-05-31T21:00:00Z",
        )  # fmt: skip
        usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
        assert self.bill(alice, billed)["state"] == "closing"
        close(1, 6)
        body = self.bill(alice, billed)
        assert (body["state"], body["so_far"], body["metering"]) == ("invoiced", False, "complete")
        assert body["invoice"] in ("inv-00000001", "inv-00000002")
        assert self.bill(alice, billed, "2026-04")["state"] == "nothing"

    def test_operators_are_told_which_months_wait_and_why(self, billed, operator, monkeypatch):
        at(monkeypatch, 2026, 6, 2)
        usage_complete(datetime(2026, 5, 31, 21, tzinfo=UTC))
        browser = Client()
        browser.force_login(operator.user)
        said = "2 invoices of 2026-05 wait: Metering has come to 2026-05-31 21:00 UTC"
        assert said in text_of(browser.get("/fleet"))
        page = text_of(browser.get("/fleet/invoices"))
        assert said in page
        assert "Usage has been counted up to 2026-05-31 21:00 UTC" in page
        assert f"events {billed.id} alice's 2026-05 Metering has come to" in page

    def test_what_cannot_be_computed_is_shown_with_its_error_and_tried_again(
        self, billed, operator, monkeypatch, metrics
    ):
        at(monkeypatch, 2026, 6, 2)
        usage_complete(datetime(2026, 6, 2, tzinfo=UTC))
        inputs_of = closing.inputs_of

        def of_all_but_one(instance, *arguments, **options):
            if instance.id == billed.id:
                raise ValueError("no plan knows this")
            return inputs_of(instance, *arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(closing, "inputs_of", of_all_but_one)
            assert closing.invoices_close() == 1
        browser = Client()
        browser.force_login(operator.user)
        assert "ValueError: no plan knows this" in browser.get("/fleet/invoices").content.decode()
        assert 'sluice_invoices_failing{month="2026-05"} 1' in metrics()
        assert closing.invoices_close() == 1
        assert not any(line.startswith("sluice_invoices_failing{") for line in metrics())

    def test_metrics_count_what_waits(self, billed, monkeypatch, metrics):
        at(monkeypatch, 2026, 6, 2)
        assert 'sluice_invoices_waiting{month="2026-05"} 2' in metrics()
        assert "# TYPE sluice_invoices_waiting gauge" in metrics()
        usage_complete(datetime(2026, 6, 1, 7, tzinfo=UTC))
        close(2, 0)
        assert not any(line.startswith("sluice_invoices_waiting{") for line in metrics())


class TestWhatIsMissing:
    """All has been read; broker 9 died in the last hours of May, and its boot has told usage of them."""

    @pytest.fixture(autouse=True)
    def _a_broker_that_died(self, billed, monkeypatch):
        at(monkeypatch, 2026, 6, 2)
        usage_complete(datetime(2026, 6, 1, 7, tzinfo=UTC))
        hours_told(9, "2026-05-31T20", datetime(2026, 5, 31, 21, tzinfo=UTC), boot="b2")
        Boot.objects.create(
            broker=9, boot="b3", first_hour="2026-05-31T21:00:00Z", last_hour="2026-05-31T22:00:00Z",
            first_at_ms=int(datetime(2026, 5, 31, 21, 10, tzinfo=UTC).timestamp() * 1000),
        )  # fmt: skip

    def test_operators_read_by_rest_for_which_hours_and_boots_a_month_waits(self, alice, operator):
        [month] = operator.api.get("/api/v1/metering/months").json()["items"]
        assert (month["month"], month["invoices"]) == ("2026-05", 2)
        why = "broker 9 has told all up to 2026-05-31 21:00 UTC"
        assert month["why"] == f"{why}; it must come to 2026-06-01 01:00 UTC"
        assert month["brokers"] == [
            {
                "broker": 9, "hours_from": "2026-05-31T21:00:00Z", "hours_to": "2026-06-01T01:00:00Z",
                "boots": ["b2", "b3"], "why": why,
            }
        ]  # fmt: skip
        problem(alice.api.get("/api/v1/metering/months"), 403, "forbidden")

    def test_on_the_page_and_by_command(self, operator, capsys):
        browser = Client()
        browser.force_login(operator.user)
        page = text_of(browser.get("/fleet/invoices"))
        assert "Broker 9 2026-05 2026-05-31 21:00 UTC 2026-06-01 01:00 UTC b2, b3" in page
        call_command("invoices", "waiting")
        assert capsys.readouterr().out.splitlines()[1:] == [
            "  broker 9: hours from 2026-05-31 21:00 to 2026-06-01 01:00, boots b2, b3"
        ]

    def test_no_tenant_hears_of_brokers(self, alice, billed):
        body = alice.api.get(f"/api/v1/instances/{billed.id}/bill?month=2026-05").content.decode()
        assert "waiting_for_metering" in body
        assert "broker" not in body

    def test_invoices_are_written_once_a_boot_has_told_what_both_had_counted(self):
        assert closing.invoices_close() == 0
        hours_told(9, "2026-06-01T01", datetime(2026, 6, 1, 2, tzinfo=UTC), boot="b4", after="b2")
        assert closing.invoices_close() == 0, "nobody has told what b3 counted last"
        hours_told(9, "2026-06-01T02", datetime(2026, 6, 1, 3, tzinfo=UTC), boot="b4", after="b2,b3")
        assert closing.invoices_close() == 2
        assert {invoice.inputs["metering"] for invoice in Invoice.objects.unscoped("a test")} == {"complete"}

    def test_a_broker_is_waived_by_name_and_that_is_on_record_in_every_organisation_whose_invoices_waited(
        self, alice, operator
    ):
        reason = {"reason": REASON}
        problem(alice.api.post("/api/v1/metering/brokers/9/waiver", reason), 403, "forbidden")
        assert operator.api.post("/api/v1/metering/brokers/9/waiver", reason).status_code == 201
        [entry] = AuditEntry.objects.unscoped("a test").filter(action="invoice.waive_broker")
        assert (entry.organisation_id, entry.actor, entry.target) == (
            alice.organisation.id, "charlie@example.com", "broker 9",
        )  # fmt: skip
        assert entry.detail == {
            "cluster": "default", "months": ["2026-05"],
            "reason": REASON, "waited_for": "broker 9 has told all up to 2026-05-31 21:00 UTC",
        }  # fmt: skip
        assert closing.invoices_close() == 2
        assert {invoice.inputs["metering"] for invoice in Invoice.objects.unscoped("a test")} == {"waived"}

    def test_a_dry_run_of_waiving_a_broker_says_whose_invoices_wait_for_it(self, alice, operator):
        both = sorted(Instance.objects.unscoped("a test").values_list("pk", flat=True))
        said = operator.api.post("/api/v1/metering/brokers/9/waiver?dry_run=true", {"reason": REASON}).json()[
            "affected"
        ]
        effect = "their invoices of 2026-05 wait for this broker no more; what it tells after all is adjusted later"
        assert said == [
            {"who": "instances", "count": 2, "names": both, "effect": effect},
            {
                "who": "organisations",
                "count": 1,
                "names": [alice.organisation.id],
                "effect": "have it in their audit logs",
            },
        ]
        assert closing.invoices_close() == 0

    def test_a_waiver_from_before_the_month_was_due_is_on_record_when_the_invoice_is_written(
        self, alice, operator, monkeypatch
    ):
        at(monkeypatch, 2026, 6, 1, 3)
        assert operator.api.get("/api/v1/metering/months").json() == {"items": []}, "May is not due yet"
        assert operator.api.post("/api/v1/metering/brokers/9/waiver", {"reason": REASON}).status_code == 201
        assert not AuditEntry.objects.unscoped("a test").filter(action="invoice.waive_broker").exists()
        at(monkeypatch, 2026, 6, 2)
        assert closing.invoices_close() == 2
        entries = AuditEntry.objects.unscoped("a test").filter(action="invoice.close_waived").order_by("pk")
        assert [(entry.organisation_id, entry.actor, entry.target) for entry in entries] == [
            (alice.organisation.id, "system", "inv-00000001"), (alice.organisation.id, "system", "inv-00000002"),
        ]  # fmt: skip
        assert entries[0].detail["missing"] == "", "but for the broker all was there"
        assert entries[0].detail["waivers"] == [
            {
                "not_waited_for": "broker 9 of cluster default", "reason": REASON, "by": "charlie@example.com",
                "at": "2026-06-01T03:00:00+00:00",
            }
        ]  # fmt: skip

    def test_what_cannot_be_waived_leaves_no_record(self, operator):
        for broker, reason, status in ((9, " ", 400), (77, REASON, 404)):
            answer = operator.api.post(f"/api/v1/metering/brokers/{broker}/waiver", {"reason": reason})
            assert answer.status_code == status
        assert not AuditEntry.objects.unscoped("a test").filter(action="invoice.waive_broker").exists()

    def test_when_nothing_waits_nothing_is_said(self, operator):
        hours_told(9, "2026-06-01T02", datetime(2026, 6, 1, 3, tzinfo=UTC), boot="b4", after="b2,b3")
        assert operator.api.get("/api/v1/metering/months").json() == {"items": []}


def test_what_is_complete_is_what_every_partition_is(billed):
    usage_complete(datetime(2026, 6, 2, tzinfo=UTC))
    Progress.objects.create(partition=7, topic_id="t", next_offset=1, end_offset=1, looked_at_ms=0, complete_to_ms=None)
    assert close(2, 6) == 0
    Progress.objects.filter(partition=7).update(complete_to_ms=(MAY.end + timedelta(days=1)).timestamp() * 1000)
    assert close(2, 6) == 2
