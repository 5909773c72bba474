"""The bill by REST, the history it is computed from, and invoices."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from controlplane.accounts.models import User
from controlplane.billing import closing, selectors, waiting
from controlplane.billing.models import Invoice
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.plans import PRO
from controlplane.billing.pricing.rating import Month, Size
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.instances import lifecycle
from controlplane.instances import services as instances
from controlplane.instances.history import spec_change_list
from controlplane.instances.models import Instance, SpecChange, SpecChangeKind
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.fakes import ManualClock
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem
from tests.support.usage import usage_complete


@pytest.fixture
def billed(instance):
    """Open from 1 May 10:20 on, enlarged on 2 May, with usage at both ends of the month."""
    SpecChange.objects.unscoped("a test").all().delete()
    for kind, day, hour, minute, bandwidth in (("opened", 1, 10, 20, 20), ("resized", 2, 10, 0, 240)):
        SpecChange.objects.unscoped("a test").create(
            organisation=instance.organisation, instance=instance, kind=kind, bandwidth_mib_per_s=bandwidth,
            storage_gib=1000, partitions=1700 if bandwidth > 20 else 100,
            at=datetime(2026, 5, day, hour, minute, tzinfo=UTC),
        )  # fmt: skip
    raised(
        [
            row(instance.id, "2026-04-30T23", 5_000_000_000),
            row(instance.id, "2026-05-01T00", 6_234_567_891, consumed=17),
            row(instance.id, "2026-06-01T00", 9_000_000_000),
        ]
    )
    return instance


def bill(person, instance, query: str = "month=2026-05") -> dict:
    answer = person.api.get(f"/api/v1/instances/{instance.id}/bill?{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def at(monkeypatch, moment: datetime) -> None:
    clock = type(selectors.SYSTEM_CLOCK)
    monkeypatch.setattr(clock, "now", lambda _self: moment)


def test_a_bill_has_the_fixed_fields_with_decimals_as_strings(alice, billed, monkeypatch):
    at(monkeypatch, datetime(2026, 5, 2, 12, 30, tzinfo=UTC))
    body = bill(alice, billed)
    fixed = ("item", "quantity", "unit", "unit_price", "amount")
    assert [tuple(line[name] for name in fixed) for line in body["lines"]] == [
        ("bandwidth", "24", "hour", "1.34", "32.16"),
        ("disk", "270", "100 GB hour", "0.25", "67.50"),
        ("bandwidth", "3", "hour", "7.86", "23.58"),
        ("partitions", "3", "100 partitions hour", "0.31", "0.93"),
        ("produced", "1.234567891", "GB", "0", "0.00"),
        ("consumed", "0.000000017", "GB", "0", "0.00"),
    ]
    assert (body["currency"], body["total"], body["so_far"], body["plan"]) == ("CNY", "124.17", True, "pro")
    assert Decimal(body["total"]) == sum(Decimal(line["amount"]) for line in body["lines"])


def test_each_line_leads_to_the_usage_rows_of_its_hours(alice, billed, monkeypatch):
    at(monkeypatch, datetime(2026, 6, 3, tzinfo=UTC))
    line = next(line for line in bill(alice, billed)["lines"] if line["item"] == "produced")
    rows = alice.api.get(line["usage"]).json()["items"]
    assert sum(row["produced_bytes"] for row in rows) == int(Decimal(line["quantity"]) * 10**9)


def test_the_same_month_under_another_plan(alice, billed, monkeypatch):
    at(monkeypatch, datetime(2026, 6, 3, tzinfo=UTC))
    body = bill(alice, billed, "month=2026-05&plan=traffic")
    assert [(line["item"], line["amount"]) for line in body["lines"]] == [("produced", "0.74"), ("consumed", "0.00")]
    assert body["plan"] == "traffic"


def test_another_organisations_bill_does_not_exist(charlie, billed):
    problem(charlie.api.get(f"/api/v1/instances/{billed.id}/bill?month=2026-05"), 404, "not_found")


@pytest.mark.parametrize(
    ("query", "field"),
    [("month=2026-13", "month"), ("month=2026-5", "month"), ("month=", "month"), ("month=may", "month"),
     ("month=0000-01", "month"), ("month=2999-01", "month"), ("month=2026-05&plan=free", "plan")],
)  # fmt: skip
def test_what_is_no_month_is_refused_by_name(alice, billed, query, field):
    body = problem(alice.api.get(f"/api/v1/instances/{billed.id}/bill?{query}"), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == [field]


def test_a_month_without_anything_is_an_empty_bill(alice, billed):
    body = bill(alice, billed, "month=2024-01")
    assert (body["lines"], body["total"]) == ([], "0.00")


class TestTheHistoryOfSizes:
    """Written by the services of instances; read as periods."""

    def test_it_begins_when_the_instance_opens_and_not_again(self, alice, instance):
        assert [change.kind for change in spec_change_list(instance=instance)] == ["opened"]

    def test_a_new_size_is_noted_and_a_new_name_is_not(self, alice, instance):
        about = {"organisation": alice.organisation, "actor": "alice@example.com", "instance_id": instance.id}
        instances.instance_update(**about, changes={"name": "other"})
        instances.instance_update(**about, changes={"partitions": 90})
        kinds = [(change.kind, change.partitions) for change in spec_change_list(instance=instance)]
        assert kinds == [("opened", 60), ("resized", 90)]

    def test_deleting_ends_it_at_the_request(self, alice, instance, monkeypatch):
        about = {"organisation": alice.organisation, "actor": "alice@example.com", "instance_id": instance.id}
        clock = ManualClock()
        clock.time = SpecChange.objects.unscoped("a test").get().at + timedelta(hours=5)
        asked_at = clock.time
        operation = lifecycle.instance_delete(**about, clock=clock)
        assert run_to_the_end(operation.id).state == "succeeded"
        (period,) = selectors.periods_of(instance)
        assert (period.until, period.size) == (asked_at, Size(Decimal("5.0"), Decimal("10.0"), 60))
        problem(alice.api.get(f"/api/v1/instances/{instance.id}"), 404, "not_found")
        monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: asked_at)
        assert bill(alice, instance, f"month={asked_at:%Y-%m}")["lines"][0]["item"] == "bandwidth"

    def test_what_never_opened_costs_nothing(self, alice, instance):
        SpecChange.objects.unscoped("a test").update(kind=SpecChangeKind.RESIZED)
        assert selectors.periods_of(instance) == []


class TestInvoices:
    """A month is frozen six hours after its end."""

    def close(self, day: int, hour: int) -> int:
        usage_complete(datetime(2026, 6, 1, 2, tzinfo=UTC))
        clock = ManualClock()
        clock.time = datetime(2026, 6, day, hour, tzinfo=UTC)
        return closing.invoices_close(clock=clock)

    def may(self, instance) -> Invoice:
        return Invoice.objects.unscoped("a test").get(instance=instance, month="2026-05")

    @pytest.fixture(autouse=True)
    def _made_in_may(self, billed):
        billed.created_at = datetime(2026, 5, 1, 10, tzinfo=UTC)
        billed.save()

    def test_nothing_closes_before_the_six_hours_are_over(self, billed):
        assert waiting.months_due(datetime(2026, 6, 1, 5, 59, tzinfo=UTC))[-1] == Month(2026, 4)
        assert self.close(1, 5) == 0
        assert self.close(1, 6) == 1
        assert self.close(1, 7) == 0

    def test_one_that_cannot_be_computed_is_no_obstacle_to_those_behind_it_and_operators_see_it(
        self, alice, billed, monkeypatch, client
    ):
        others = [
            instances.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": name})[0]
            for name in ("one", "two")
        ]
        made = Instance.objects.unscoped("a test")
        made.update(created_at=datetime(2026, 5, 1, 10, tzinfo=UTC))
        first, ill, last = sorted([billed, *others], key=lambda instance: instance.id)
        inputs_of = closing.inputs_of

        def of_all_but_one(instance, *arguments, **options):
            if instance.id == ill.id:
                raise ValueError("no plan knows this")
            return inputs_of(instance, *arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(closing, "inputs_of", of_all_but_one)
            assert self.close(1, 6) == 2
            assert self.close(1, 7) == 0
        assert {self.may(instance).instance_id for instance in (first, last)} == {first.id, last.id}
        [failure] = selectors.invoice_failures()
        assert (failure.instance_id, failure.month) == (ill.id, "2026-05")
        User.objects.filter(pk=alice.user.pk).update(is_staff=True)
        client.force_login(User.objects.get(pk=alice.user.pk))
        assert "for 2026-05 cannot be closed: ValueError: no plan knows this" in client.get("/fleet").content.decode()
        assert self.close(1, 8) == 1
        assert self.may(ill).instance_id == ill.id
        assert list(selectors.invoice_failures()) == []

    def test_an_invoice_is_the_bill_and_later_records_do_not_change_it(self, alice, billed, monkeypatch):
        at(monkeypatch, datetime(2026, 6, 1, 5, tzinfo=UTC))
        before = bill(alice, billed)
        self.close(1, 6)
        raised([row(billed.id, "2026-05-31T23", 8_000_000_000)])
        after = bill(alice, billed)
        assert (after["lines"], after["total"]) == (before["lines"], before["total"])
        assert (before["so_far"], after["so_far"]) == (True, False)
        assert len(after["input_hash"]) == 64

    def test_inputs_survive_json(self, billed):
        self.close(1, 6)
        invoice = self.may(billed)
        again = json.loads(json.dumps(invoice.inputs))
        assert documents.line_documents(again) == invoice.lines


def test_an_estimate_says_what_a_size_costs_beforehand():
    price = selectors.estimate(bandwidth_mib_per_s=240, storage_gib=1000, partitions=1700, plan=PRO)
    assert (price.currency, price.per_hour, price.per_month) == ("CNY", Decimal("10.67"), Decimal("7789.10"))
    assert dict(price.lines) == {
        "bandwidth": Decimal("7.86"), "disk": Decimal("2.50"), "partitions": Decimal("0.31"),
    }  # fmt: skip
