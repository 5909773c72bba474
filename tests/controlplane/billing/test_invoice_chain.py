"""Invoices have numbers without gaps, are never changed, and are chained: whatever is done to one is found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client

from controlplane.billing import closing
from controlplane.billing.chain import FIRST, Sealed, number_of, number_text
from controlplane.billing.models import Invoice
from controlplane.billing.pricing.rating import Month
from controlplane.billing.verification import invoice_verify, organisation_verify
from controlplane.core.errors import ConcurrentChange
from controlplane.instances import lifecycle
from controlplane.instances import services as instances
from controlplane.instances.models import Instance, SpecChange
from controlplane.metering.models import Difference, Reconciliation
from tests.controlplane.conftest import WANTED
from tests.controlplane.console.conftest import text_of
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem

APRIL, MAY = Month(2026, 4), Month(2026, 5)
NOW = datetime(2026, 6, 1, 7, 0, 0, 123456, tzinfo=UTC)


def invoices(organisation) -> list[Invoice]:
    return list(Invoice.objects.for_organisation(organisation).order_by("number"))


def look(day: int, until: int, *, different: int = 0, gone: tuple[str, ...] | list[str] = ()) -> Reconciliation:
    return Reconciliation.objects.create(
        start_hour=f"2026-05-{day:02}T00:00:00Z", end_hour=f"2026-05-{until:02}T00:00:00Z", at_ms=1_777_682_400_000,
        compared=24, different=different, raised=0, gone=list(gone),
    )  # fmt: skip


@pytest.fixture
def chained(alice, instance):
    """Two instances, two months each: four invoices."""
    other, _ = instances.instance_create(organisation=alice.organisation, actor="a", **{**WANTED, "name": "other"})
    opened = datetime(2026, 3, 31, 23, tzinfo=UTC)
    Instance.objects.unscoped("a test").update(created_at=opened)
    SpecChange.objects.unscoped("a test").update(at=opened)
    raised([row(instance.id, "2026-04-02T00", 10**9), row(instance.id, "2026-05-02T00", 3 * 10**9)])
    for month in (APRIL, MAY):
        for each in (instance, other):
            closing.invoice_close(instance=each, month=month, now=NOW)
    return alice.organisation


@pytest.fixture
def anything_goes(db):
    """Someone with the database in their hands: the triggers are gone."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("DROP TRIGGER billing_invoice_no_update")
            cursor.execute("DROP TRIGGER billing_invoice_no_delete")
        else:
            cursor.execute("DROP TRIGGER billing_invoice_append_only ON billing_invoice")


def codes(found) -> list[tuple[str, str]]:
    return [(each.invoice, each.code) for each in found]


def test_numbers_begin_with_1_and_have_no_gaps(chained):
    found = invoices(chained)
    assert [invoice.number for invoice in found] == [1, 2, 3, 4]
    assert [invoice.previous_hash for invoice in found] == [FIRST, *[invoice.hash for invoice in found[:-1]]]
    assert organisation_verify(organisation=chained) == []
    assert [invoice_verify(invoice=invoice) for invoice in found] == [[], [], [], []]


def test_every_organisation_counts_for_itself(chained, charlie, instance):
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(organisation=charlie.organisation)
    theirs = Instance.objects.unscoped("a test").get(pk=instance.pk)
    closing.invoice_close(instance=theirs, month=Month(2026, 6), now=datetime(2026, 7, 2, tzinfo=UTC))
    assert [invoice.number for invoice in invoices(charlie.organisation)] == [1]
    assert len(invoices(chained)) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.update(total=Decimal("0.01")),
        lambda rows: rows.update(number=9),
        lambda rows: rows.filter(number=4).delete(),
    ],
)
def test_the_database_refuses_to_change_and_to_remove_invoices(chained, change):
    rows = Invoice.objects.for_organisation(chained)
    with pytest.raises(DatabaseError, match="invoices are append-only"), transaction.atomic():
        change(rows)
    assert [invoice.number for invoice in invoices(chained)] == [1, 2, 3, 4]


@pytest.mark.usefixtures("anything_goes")
class TestWhatSomeoneWithTheDatabaseDoes:
    def test_another_total_is_found(self, chained):
        Invoice.objects.for_organisation(chained).filter(number=2).update(total=Decimal("0.01"))
        assert codes(organisation_verify(organisation=chained)) == [("inv-00000002", "hash"), ("inv-00000002", "total")]

    def test_another_line_is_found_and_said(self, chained):
        invoice = invoices(chained)[0]
        invoice.lines[0]["amount"] = "0.01"
        Invoice.objects.for_organisation(chained).filter(number=1).update(lines=invoice.lines)
        found = organisation_verify(organisation=chained)
        assert codes(found) == [("inv-00000001", "hash"), ("inv-00000001", "line")]
        assert (found[1].line, found[1].item, found[1].invoiced, found[1].recomputed) == (
            1, "bandwidth", "720 hour, 0.01", "720 hour, 964.80",
        )  # fmt: skip

    def test_a_line_that_was_taken_away_is_found(self, chained):
        invoice = invoices(chained)[0]
        Invoice.objects.for_organisation(chained).filter(number=1).update(lines=invoice.lines[:-1])
        found = organisation_verify(organisation=chained)
        assert (found[1].code, found[1].line, found[1].item, found[1].invoiced) == ("line", 3, "produced", None)

    def test_other_inputs_are_found(self, chained):
        invoice = invoices(chained)[0]
        invoice.inputs["used"][0][1] += 10**9
        Invoice.objects.for_organisation(chained).filter(number=1).update(inputs=invoice.inputs)
        assert [each.code for each in organisation_verify(organisation=chained)] == ["inputs", "line"]

    def test_an_invoice_that_was_forged_whole_does_not_fit_the_next_one(self, chained):
        forged = invoices(chained)[1]
        forged.currency = "USD"
        Invoice.objects.for_organisation(chained).filter(number=2).update(currency="USD", hash=forged.sealed().hash())
        assert codes(organisation_verify(organisation=chained)) == [("inv-00000003", "chain")]
        assert codes(invoice_verify(invoice=invoices(chained)[2])) == [("inv-00000003", "chain")]

    def test_one_that_was_taken_out_is_missed(self, chained):
        Invoice.objects.for_organisation(chained).filter(number=2).delete()
        [found] = organisation_verify(organisation=chained)
        assert (found.invoice, found.code, found.detail) == (
            "inv-00000003", "number", "inv-00000002 is missing before it",
        )  # fmt: skip
        assert codes(invoice_verify(invoice=invoices(chained)[1])) == [("inv-00000003", "number")]


class TestTwoWorkers:
    def test_who_finds_the_number_taken_takes_the_next_one(self, chained, instance, monkeypatch):
        """While one worker computes, another one closes a month of the same organisation."""
        other = Instance.objects.for_organisation(chained).exclude(pk=instance.pk).get()
        june, later = Month(2026, 6), NOW + timedelta(days=30)
        draft = closing._draft
        raced = []

        def slowly(*arguments, **options):
            made = draft(*arguments, **options)
            if not raced:
                raced.append(True)
                closing.invoice_close(instance=other, month=june, now=later)
            return made

        monkeypatch.setattr(closing, "_draft", slowly)
        assert closing.invoice_close(instance=instance, month=june, now=later)
        assert [(invoice.number, invoice.instance_id) for invoice in invoices(chained)[4:]] == [
            (5, other.id),
            (6, instance.id),
        ]
        assert organisation_verify(organisation=chained) == []

    def test_a_month_is_closed_once(self, chained, instance, monkeypatch):
        june, later = Month(2026, 6), NOW + timedelta(days=30)
        draft = closing._draft
        raced = []

        def slowly(*arguments, **options):
            made = draft(*arguments, **options)
            if not raced:
                raced.append(True)
                assert closing.invoice_close(instance=instance, month=june, now=later)
            return made

        monkeypatch.setattr(closing, "_draft", slowly)
        assert not closing.invoice_close(instance=instance, month=june, now=later)
        assert [invoice.number for invoice in invoices(chained)] == [1, 2, 3, 4, 5]

    def test_what_the_database_refuses_for_another_reason_is_no_race(self, chained, instance, monkeypatch):
        drafts, draft = [], closing._draft

        def wrong(*arguments, **options):
            drafts.append(made := draft(*arguments, **options))
            made.number = 0
            return made

        monkeypatch.setattr(closing, "_draft", wrong)
        with pytest.raises(IntegrityError, match="numbers_begin_with_1"):
            closing.invoice_close(instance=instance, month=Month(2026, 6), now=datetime(2026, 7, 2, tzinfo=UTC))
        assert len(drafts) == 1

    def test_who_is_always_slower_gives_up_with_a_sentence(self, chained, instance, monkeypatch):
        draft = closing._draft

        def late(*arguments, **options):
            made = draft(*arguments, **options)
            made.number = 1
            return made

        monkeypatch.setattr(closing, "_draft", late)
        with pytest.raises(ConcurrentChange):
            closing.invoice_close(instance=instance, month=Month(2026, 6), now=NOW + timedelta(days=30))


def test_a_size_that_changes_after_the_month_is_no_difference(chained, alice, instance):
    about = {"organisation": alice.organisation, "actor": "alice@example.com", "instance_id": instance.id}
    instances.instance_update(**about, changes={"partitions": 90})
    lifecycle.instance_delete(**about)
    assert [invoice_verify(invoice=invoice) for invoice in invoices(chained)] == [[], [], [], []]


def test_the_hash_of_an_invoice_is_this_one():
    """Sealed invoices lie in databases: what they are hashed from never changes."""
    sealed = Sealed(
        number=17,
        organisation="org-k3v9x2qa",
        instance="ins-k3v9x2qa",
        month="2026-05",
        currency="CNY",
        total=Decimal("-12.30"),
        created_at=datetime(2026, 6, 1, 7, tzinfo=UTC),
        lines=[{"item": "produced", "amount": "-12.30"}],
        input_hash="a" * 64,
        previous_hash=FIRST,
    )
    assert sealed.hash() == "718386f477b8946e48879ba8d21b9fb37e2f4cf0643e8e30bf89192b3836c718"


def test_a_number_is_written_so_that_it_sorts():
    assert number_text(17) == "inv-00000017"
    assert [number_of(number_text(number)) for number in (1, 99_999_999, 123_456_789)] == [1, 99_999_999, 123_456_789]
    for text in ("17", "inv-17", "inv-0000001x", "inv-", ""):
        with pytest.raises(ValueError):
            number_of(text)


class TestRest:
    def test_invoices_are_listed_by_number(self, alice, chained):
        body = alice.api.get("/api/v1/invoices?limit=3").json()
        assert [invoice["number"] for invoice in body["items"]] == [f"inv-0000000{number}" for number in (1, 2, 3)]
        body = alice.api.get(f"/api/v1/invoices?limit=3&cursor={body['next']}").json()
        assert ([invoice["number"] for invoice in body["items"]], body["next"]) == (["inv-00000004"], None)

    def test_one_shows_its_lines_and_its_place_in_the_chain(self, alice, chained, instance):
        body = alice.api.get("/api/v1/invoices/inv-00000003").json()
        assert (body["instance_id"], body["month"], body["currency"]) == (instance.id, "2026-05", "CNY")
        assert Decimal(body["total"]) == sum(Decimal(line["amount"]) for line in body["lines"])
        assert body["previous_hash"] == invoices(chained)[1].hash

    def test_verifying_says_that_all_is_equal_or_what_is_not(self, alice, chained, instance):
        body = alice.api.post("/api/v1/invoices/inv-00000003/verify").json()
        assert (body["equal"], body["differences"]) == (True, [])
        raised([row(instance.id, "2026-05-31T23", 8 * 10**9)])
        body = alice.api.post("/api/v1/invoices/inv-00000003/verify").json()
        assert body["equal"] is False
        [difference] = body["differences"]
        assert (difference["code"], difference["line"], difference["item"]) == ("usage", 3, "produced")
        assert (difference["invoiced"], difference["recomputed"]) == ("2 GB", "7 GB")
        assert "2026-05-31 23:00 to 2026-06-01 00:00 UTC" in difference["detail"]

    def test_it_says_what_the_raw_records_had_to_say_of_the_month(self, alice, chained, instance):
        path = "/api/v1/invoices/inv-00000003/verify"
        nothing = alice.api.post(path).json()["raw"]
        assert (nothing["compared"], len(nothing["not_compared"]), nothing["at"]) == ([], 31, None)
        look(1, 3)
        run = look(3, 4, different=2)
        look(4, 5, gone=[instance.cluster.name])
        look(5, 6, different=10**6)
        for of, hour in ((instance.pk, 3), ("ins-somebody", 4)):
            Difference.objects.create(
                reconciliation=run, against="database", instance=of, hour=f"2026-05-03T0{hour}:00:00Z", boot="b", topic="orders",
                counter="produced_bytes", recomputed="7", known="5",
            )  # fmt: skip
        body = alice.api.post(path).json()
        assert (body["equal"], body["differences"]) == (False, [])
        assert body["raw"]["compared"] == ["2026-05-01", "2026-05-02", "2026-05-03"]
        assert body["raw"]["not_compared"][:2] == ["2026-05-04", "2026-05-05"], (
            "its records were away; too many to be kept"
        )
        assert body["raw"]["at"] == "2026-05-02T00:40:00Z"
        assert body["raw"]["differences"] == [
            {"hour": "2026-05-03T03:00:00Z", "against": "database", "topic": "orders", "counter": "produced_bytes",
             "recomputed": "7", "known": "5"},
        ]  # fmt: skip
        browser = Client()
        browser.force_login(alice.user)
        page = text_of(browser.get(f"/{alice.organisation.id}/invoices/inv-00000003/verify"))
        assert "3 days of the month were recomputed from the raw records" in page
        assert "28 days were not recomputed" in page
        look(3, 4)  # a later look counts
        body = alice.api.post(path).json()
        assert (body["equal"], body["raw"]["differences"]) == (True, [])

    def test_a_viewer_may_verify(self, viewer, chained):
        assert viewer.api.post("/api/v1/invoices/inv-00000001/verify").json()["equal"] is True

    def test_what_is_no_number_is_not_found(self, alice, chained):
        for number in ("inv-00000099", "inv-abcdefgh", "inv-999999999999"):
            problem(alice.api.get(f"/api/v1/invoices/{number}"), 404, "not_found")
