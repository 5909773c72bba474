"""Credit notes: numbers without gaps, never changed, chained, and together never more than their invoice."""

from __future__ import annotations

import io
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.accounts.models import User
from controlplane.billing import closing, crediting
from controlplane.billing.chain import FIRST, SealedNote
from controlplane.billing.crediting import credit_note_write
from controlplane.billing.models import CreditNote, Invoice
from controlplane.billing.pricing.rating import Month
from controlplane.billing.selectors import credited_of
from controlplane.billing.verification import invoice_verify, organisation_verify
from controlplane.core.errors import ConcurrentChange, Conflict, Invalid, NotFound, PreconditionFailed
from controlplane.core.models import AuditEntry
from controlplane.core.staff_views import VIEWED
from controlplane.instances.models import Instance
from tests.controlplane.test_instances_api import problem

from .test_invoice_chain import chained  # noqa: F401  # a fixture

FIRST_OF_ALL, THIRD = "inv-00000001", "inv-00000003"
TOO_MUCH = Decimal(10) ** 9
KEY = {"Idempotency-Key": "one"}


def note(organisation, amount="10.00", invoice=FIRST_OF_ALL, reason="the port was down", **options) -> CreditNote:
    about = {"organisation": organisation, "invoice": invoice, "reason": reason, "actor": "ops@example.com"}
    return credit_note_write(amount=Decimal(amount), **about, **options)


def notes(organisation) -> list[CreditNote]:
    return list(CreditNote.objects.for_organisation(organisation).select_related("invoice").order_by("number"))


def codes(found) -> list[tuple[str, str | None, str]]:
    return [(each.invoice, each.credit_note, each.code) for each in found]


@pytest.fixture
def operator(charlie):
    """Charlie works for the service."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    return charlie


@pytest.fixture
def anything_goes(db):
    """Someone with the database in their hands: the triggers are gone."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("DROP TRIGGER billing_creditnote_no_update")
            cursor.execute("DROP TRIGGER billing_creditnote_no_delete")
        else:
            cursor.execute("DROP TRIGGER billing_creditnote_append_only ON billing_creditnote")


def test_numbers_count_from_1_and_each_note_carries_the_hash_of_the_one_before(chained):  # noqa: F811
    for invoice in (FIRST_OF_ALL, THIRD, FIRST_OF_ALL):
        note(chained, invoice=invoice)
    found = notes(chained)
    assert [each.number_text for each in found] == ["crn-00000001", "crn-00000002", "crn-00000003"]
    assert [each.previous_hash for each in found] == [FIRST, found[0].hash, found[1].hash]
    assert organisation_verify(organisation=chained) == []
    assert [invoice_verify(invoice=each.invoice) for each in found] == [[], [], []]


def test_the_invoice_and_its_chain_stay_as_they_were(chained):  # noqa: F811
    before = list(Invoice.objects.for_organisation(chained).order_by("number").values())
    note(chained)
    assert list(Invoice.objects.for_organisation(chained).order_by("number").values()) == before


def test_it_is_on_record_with_its_reason(chained):  # noqa: F811
    note(chained, "12.5", reason="  the port was down ")
    [entry] = AuditEntry.objects.for_organisation(chained).filter(action="credit_note.write")
    assert (entry.actor, entry.target) == ("ops@example.com", "crn-00000001")
    currency = notes(chained)[0].currency
    assert entry.detail == {
        "invoice": FIRST_OF_ALL, "amount": "12.50", "currency": currency, "reason": "the port was down",
    }  # fmt: skip


def test_every_organisation_counts_for_itself(chained, charlie, instance):  # noqa: F811
    note(chained)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(organisation=charlie.organisation)
    theirs = Instance.objects.unscoped("a test").get(pk=instance.pk)
    closing.invoice_close(instance=theirs, month=Month(2026, 6), now=datetime(2026, 7, 2, tzinfo=UTC))
    assert note(charlie.organisation).number == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.update(amount=Decimal("0.01")),
        lambda rows: rows.update(reason="another"),
        lambda rows: rows.filter(number=1).delete(),
    ],
)
def test_the_database_refuses_to_change_and_to_remove_notes(chained, change):  # noqa: F811
    note(chained)
    with pytest.raises(DatabaseError, match="credit notes are append-only"), transaction.atomic():
        change(CreditNote.objects.for_organisation(chained))
    assert [each.amount for each in notes(chained)] == [Decimal("10.00")]


class TestHowMuch:
    def test_all_of_an_invoice_and_then_nothing_more(self, chained):  # noqa: F811
        invoice = Invoice.objects.for_organisation(chained).get(number=1)
        note(chained, invoice.total - 1)
        with pytest.raises(Invalid, match=r"amount: must be at most 1\.00"):
            note(chained, "1.01")
        note(chained, "1.00")
        with pytest.raises(Conflict, match="nothing is left of inv-00000001"):
            note(chained, "0.01")
        assert credited_of(invoice) == invoice.total
        assert organisation_verify(organisation=chained) == []

    @pytest.mark.parametrize("total", ["0.00", "-3.20"])
    def test_an_invoice_that_asks_for_nothing_has_none(self, chained, instance, monkeypatch, total):  # noqa: F811
        monkeypatch.setattr(closing, "total", lambda _lines: Decimal(total))
        closing.invoice_close(instance=instance, month=Month(2026, 6), now=datetime(2026, 7, 2, tzinfo=UTC))
        with pytest.raises(Conflict) as refused:
            note(chained, "0.01", invoice="inv-00000005")
        assert refused.value.code == "nothing_to_credit"

    def test_what_is_wrong_is_said_at_once(self, chained):  # noqa: F811
        for amount, said in (("-1", "above 0"), ("0", "above 0"), ("NaN", "above 0"), ("1.001", "two decimals")):
            with pytest.raises(Invalid, match=said) as refused:
                note(chained, amount, reason=" ")
            assert [each.field for each in refused.value.errors] == ["amount", "reason"]
        for reason in ("x" * 1001, "two\nlines", "nothing\0"):
            with pytest.raises(Invalid, match="reason: must"):
                note(chained, reason=reason)
        assert notes(chained) == []

    def test_who_has_seen_something_else_looks_again(self, chained):  # noqa: F811
        total = Invoice.objects.for_organisation(chained).get(number=1).total
        note(chained, "10.00", left=total)
        with pytest.raises(PreconditionFailed, match="look again"):
            note(chained, "10.00", left=total)
        assert len(notes(chained)) == 1

    def test_of_no_invoice_there_is_none(self, chained, charlie):  # noqa: F811
        for organisation, number in (
            (chained, "inv-00000099"),
            (chained, "crn-00000001"),
            (charlie.organisation, THIRD),
        ):
            with pytest.raises(NotFound):
                note(organisation, invoice=number)


class TestTwoOperators:
    def test_the_slower_one_takes_the_next_number_and_counts_what_is_left_anew(self, chained, monkeypatch):  # noqa: F811
        """While one computes, another one gives back all but a cent."""
        total = Invoice.objects.for_organisation(chained).get(number=1).total
        between(monkeypatch, [lambda: note(chained, total - Decimal("0.01"))])
        with pytest.raises(Invalid, match=r"at most 0\.01"):
            note(chained, "10.00")
        assert [each.amount for each in notes(chained)] == [total - Decimal("0.01")]

    def test_of_two_invoices_both_are_written(self, chained, monkeypatch):  # noqa: F811
        between(monkeypatch, [lambda: note(chained, invoice=THIRD)])
        note(chained)
        assert [(each.number, each.invoice.number) for each in notes(chained)] == [(1, 3), (2, 1)]
        assert organisation_verify(organisation=chained) == []

    def test_who_is_always_slower_gives_up_with_a_sentence(self, chained, monkeypatch):  # noqa: F811
        note(chained)
        between(monkeypatch, [lambda: note(chained, "0.01", invoice=THIRD)] * crediting.ATTEMPTS)
        with pytest.raises(ConcurrentChange):
            note(chained)

    def test_what_the_database_refuses_for_another_reason_is_no_race(self, chained, monkeypatch):  # noqa: F811
        drafts, draft = [], crediting._draft

        def wrong(*arguments):
            drafts.append(made := draft(*arguments))
            made.amount = Decimal(-1)
            return made

        monkeypatch.setattr(crediting, "_draft", wrong)
        with pytest.raises(IntegrityError, match="credit_notes_give_something_back"):
            note(chained)
        assert len(drafts) == 1

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(parts=st.lists(st.tuples(st.integers(1, 70), st.booleans()), min_size=1, max_size=8))
    def test_however_they_come_between_one_another_no_more_is_given_back_than_there_is(self, chained, parts):  # noqa: F811
        """Each part is a percentage of the invoice; the next one comes while it is computed, or after it."""
        with pytest.MonkeyPatch.context() as here, transaction.atomic():
            invoice = Invoice.objects.for_organisation(chained).get(number=1)
            waiting = [(invoice.total * percent / 100, inside) for percent, inside in parts]
            while waiting:
                amount, inside = waiting.pop(0)
                other = waiting.pop(0)[0] if inside and waiting else None
                with here.context() as raced:
                    between(raced, [] if other is None else [lambda amount=other: tried(chained, amount)])
                    tried(chained, amount)
            assert credited_of(invoice) <= invoice.total
            assert organisation_verify(organisation=chained) == []
            transaction.set_rollback(True)


def tried(organisation, amount) -> None:
    with suppress(Invalid, Conflict):
        note(organisation, amount.quantize(Decimal("0.01")))


def between(monkeypatch, others) -> None:
    """After each draft, before it is saved, another operator does the next of these."""
    draft, waiting = crediting._draft, list(others)
    inside = []

    def slowly(*arguments):
        made = draft(*arguments)
        if waiting and not inside:
            inside.append(True)
            waiting.pop(0)()
            inside.pop()
        return made

    monkeypatch.setattr(crediting, "_draft", slowly)


@pytest.mark.usefixtures("anything_goes")
class TestWhatSomeoneWithTheDatabaseDoes:
    @pytest.fixture
    def three(self, chained):  # noqa: F811
        for _ in range(3):
            note(chained)
        return CreditNote.objects.for_organisation(chained)

    @pytest.mark.parametrize("change", [{"amount": Decimal("0.01")}, {"reason": "another"}, {"actor": "nobody"}])
    def test_another_note_is_found(self, chained, three, change):  # noqa: F811
        three.filter(number=2).update(**change)
        assert codes(organisation_verify(organisation=chained)) == [(FIRST_OF_ALL, "crn-00000002", "hash")]

    def test_a_note_that_is_moved_to_another_invoice_is_found(self, chained, three):  # noqa: F811
        other = Invoice.objects.for_organisation(chained).get(number=3)
        three.filter(number=2).update(invoice=other)
        assert codes(organisation_verify(organisation=chained)) == [(THIRD, "crn-00000002", "hash")]
        assert codes(invoice_verify(invoice=other)) == [(THIRD, "crn-00000002", "hash")]

    def test_one_that_was_forged_whole_does_not_fit_the_next_one(self, chained, three):  # noqa: F811
        forged = notes(chained)[1]
        forged.reason = "another"
        three.filter(number=2).update(reason="another", hash=forged.sealed().hash())
        assert codes(organisation_verify(organisation=chained)) == [(FIRST_OF_ALL, "crn-00000003", "chain")]

    def test_one_that_was_taken_out_is_missed(self, chained, three):  # noqa: F811
        three.filter(number=2).delete()
        [found] = organisation_verify(organisation=chained)
        assert (found.credit_note, found.code, found.detail) == (
            "crn-00000003", "number", "crn-00000002 is missing before it",
        )  # fmt: skip
        invoice = Invoice.objects.for_organisation(chained).get(number=1)
        assert codes(invoice_verify(invoice=invoice)) == [(FIRST_OF_ALL, "crn-00000003", "number")]

    def test_more_than_the_invoice_has_is_found_although_it_is_sealed(self, chained, three, capsys):  # noqa: F811
        forged = notes(chained)[2]
        forged.amount = forged.invoice.total
        three.filter(number=3).update(amount=forged.amount, hash=forged.sealed().hash())
        [found] = organisation_verify(organisation=chained)
        assert (found.credit_note, found.code) == ("crn-00000003", "credited")
        assert (found.invoiced, found.recomputed) == (
            f"{forged.currency} {forged.invoice.total}",
            f"{forged.currency} {forged.invoice.total + 20}",
        )
        out = io.StringIO()
        with pytest.raises(CommandError, match="4 invoices and 3 credit notes of 1 organisation: 1 difference"):
            call_command("invoices", "verify", stdout=out)
        assert out.getvalue() == "inv-00000001 crn-00000003: with it more is given back than the invoice has\n"


def test_verifying_on_the_command_line_counts_them(chained):  # noqa: F811
    note(chained)
    out = io.StringIO()
    call_command("invoices", "verify", stdout=out)
    assert out.getvalue() == "4 invoices and 1 credit note of 1 organisation: all as they were sealed\n"


def test_the_hash_of_a_note_is_this_one():
    """Sealed notes lie in databases: what they are hashed from never changes."""
    sealed = SealedNote(
        number=3,
        organisation="org-k3v9x2qa",
        invoice=17,
        invoice_hash="b" * 64,
        currency="CNY",
        amount=Decimal("12.30"),
        reason="the port was down",
        actor="ops@example.com",
        created_at=datetime(2026, 6, 1, 7, tzinfo=UTC),
        previous_hash=FIRST,
    )
    assert sealed.hash() == "f1f2736a864c36f52b5fc9823647c7b4d97e11f6777847fa75d64042f32213b3"


class TestRest:
    def path(self, organisation, number=FIRST_OF_ALL) -> str:
        return f"/api/v1/organisations/{organisation.id}/invoices/{number}/credit-notes"

    def test_an_operator_writes_one_and_its_tenant_reads_it(self, alice, bob, operator, chained, instance):  # noqa: F811
        body = {"amount": "12.5", "reason": "the port was down"}
        answer = operator.api.post(self.path(chained), body, headers=KEY)
        assert answer.status_code == 201, answer.content
        body = answer.json()
        assert {name: body[name] for name in ("number", "invoice", "instance_id", "month", "amount", "reason", "actor")} == {
            "number": "crn-00000001", "invoice": FIRST_OF_ALL, "instance_id": instance.id, "month": "2026-04",
            "amount": "12.50", "reason": "the port was down", "actor": operator.user.email,
        }  # fmt: skip
        for person in (alice, bob):
            assert person.api.get("/api/v1/credit-notes/crn-00000001").json() == body
            assert person.api.get("/api/v1/credit-notes").json() == {"items": [body], "next": None}
        assert operator.api.get("/api/v1/credit-notes").json() == {"items": [], "next": None}

    def test_an_invoice_names_its_notes_and_what_they_give_back(self, alice, chained):  # noqa: F811
        before = alice.api.get("/api/v1/invoices/inv-00000001").json()
        assert (before["credited"], before["credit_notes"]) == ("0.00", [])
        note(chained, "10.00")
        note(chained, "0.50")
        body = alice.api.get("/api/v1/invoices/inv-00000001").json()
        assert (body["total"], body["credited"]) == (before["total"], "10.50")
        assert [(each["number"], each["amount"]) for each in body["credit_notes"]] == [
            ("crn-00000001", "10.00"),
            ("crn-00000002", "0.50"),
        ]
        listed = alice.api.get("/api/v1/invoices").json()["items"]
        assert [each["credited"] for each in listed] == ["10.50", "0.00", "0.00", "0.00"]

    def test_they_are_listed_a_page_at_a_time(self, alice, chained):  # noqa: F811
        for _ in range(3):
            note(chained)
        body = alice.api.get("/api/v1/credit-notes?limit=2").json()
        assert [each["number"] for each in body["items"]] == ["crn-00000001", "crn-00000002"]
        body = alice.api.get(f"/api/v1/credit-notes?limit=2&cursor={body['next']}").json()
        assert ([each["number"] for each in body["items"]], body["next"]) == (["crn-00000003"], None)

    def test_a_key_is_answered_once(self, operator, chained):  # noqa: F811
        body = {"amount": "10.00", "reason": "the port was down"}
        answers = [operator.api.post(self.path(chained), body, headers={"Idempotency-Key": "one"}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert answers[0].json() == answers[1].json()
        assert len(notes(chained)) == 1

    def test_without_a_key_none_is_written_which_could_be_written_twice(self, operator, chained):  # noqa: F811
        body = {"amount": "10.00", "reason": "the port was down"}
        found = problem(operator.api.post(self.path(chained), body), 400, "invalid")
        assert "Idempotency-Key: must be sent" in found["detail"]
        problem(operator.api.post(self.path(chained), body, headers={"Idempotency-Key": ""}), 400, "invalid")
        assert notes(chained) == []

    def test_what_is_wrong_is_said_at_once_and_by_field(self, operator, chained):  # noqa: F811
        for amount in (12, "12,5", "-1", "0.00", "1.001", "1e3", ""):
            body = {"amount": amount, "reason": "", "more": 1}
            found = problem(operator.api.post(self.path(chained), body), 400, "invalid")
            assert {each["field"] for each in found["errors"]} == {"amount", "reason", "more"}
        body = {"amount": f"{TOO_MUCH}", "reason": "two\nlines"}
        found = problem(operator.api.post(self.path(chained), body, headers=KEY), 400, "invalid")
        assert {each["field"] for each in found["errors"]} == {"amount", "reason"}
        assert notes(chained) == []

    def test_one_that_is_not_written_is_sealed_in_no_log(self, chained, operator, caplog):  # noqa: F811
        caplog.set_level("INFO", "controlplane.billing.crediting")
        body = {"amount": "12.50", "reason": "the port was down"}
        answer = operator.api.post(f"{self.path(chained)}?dry_run=true", body, headers=KEY)
        assert answer.json()["changes"]["amount"] == [None, "12.50"], answer.content
        assert "hash" not in answer.json()["changes"]  # it is of the moment, too
        assert "sealed" not in caplog.text
        assert not CreditNote.objects.unscoped("a test").exists()

    @pytest.mark.parametrize(
        ("query", "amount", "status"),
        [("?dry_run=true", "1.00", 200), ("?dry_run=true", "1000000", 400), ("", "1000000", 400)],
    )
    def test_who_asks_what_one_would_do_or_is_refused_has_looked(self, chained, operator, query, amount, status):  # noqa: F811
        answer = operator.api.post(f"{self.path(chained)}{query}", {"amount": amount, "reason": "down"}, headers=KEY)
        assert answer.status_code == status, answer.content
        entry = AuditEntry.objects.for_organisation(chained).get(action=VIEWED)
        looked_at = self.path(chained).removeprefix("/api/v1/organisations/")
        assert (entry.target, entry.actor) == (looked_at, operator.user.email)

    def test_one_that_is_written_is_no_look(self, chained, operator):  # noqa: F811
        operator.api.post(self.path(chained), {"amount": "1.00", "reason": "down"}, headers=KEY)
        assert not AuditEntry.objects.for_organisation(chained).filter(action=VIEWED).exists()

    def test_an_operator_reads_what_is_left_and_what_was_given_back(self, operator, chained):  # noqa: F811
        total = Invoice.objects.for_organisation(chained).get(number=1).total
        found = operator.api.get(self.path(chained)).json()
        assert found == {
            "invoice": FIRST_OF_ALL, "currency": "CNY", "total": f"{total}", "credited": "0.00", "left": f"{total}",
            "credit_notes": [],
        }  # fmt: skip
        written = operator.api.post(self.path(chained), {"amount": "12.50", "reason": "the port was down"}, headers=KEY)
        note(chained, invoice=THIRD)
        found = operator.api.get(self.path(chained)).json()
        assert (found["credited"], found["left"]) == ("12.50", f"{total - Decimal('12.50')}")
        assert found["credit_notes"] == [written.json()]
        problem(operator.api.get(self.path(chained, "inv-00000009")), 404, "not_found")

    def test_a_tenant_reads_its_own_elsewhere(self, alice, charlie, chained):  # noqa: F811
        found = problem(alice.api.get(self.path(chained)), 403, "forbidden")
        assert "/api/v1/credit-notes" in found["detail"]
        problem(charlie.api.get(self.path(chained)), 404, "not_found")

    def test_a_tenant_writes_none(self, alice, bob, charlie, chained):  # noqa: F811
        body = {"amount": "1.00", "reason": "please"}
        for person in (alice, bob):
            problem(person.api.post(self.path(chained), body), 403, "forbidden")
        problem(charlie.api.post(self.path(chained), body), 404, "not_found")

    def test_what_there_is_not_is_not_found(self, alice, charlie, operator, chained):  # noqa: F811
        note(chained)
        for path in ("", "/pdf", "/focus.csv"):
            for number in ("crn-00000002", "crn-abcdefgh", "crn-999999999999", FIRST_OF_ALL):
                problem(alice.api.get(f"/api/v1/credit-notes/{number}{path}"), 404, "not_found")
            problem(charlie.api.get(f"/api/v1/credit-notes/crn-00000001{path}"), 404, "not_found")
        body = {"amount": "1.00", "reason": "the port was down"}
        problem(operator.api.post(self.path(chained, "inv-00000009"), body, headers=KEY), 404, "not_found")

    def test_verifying_its_invoice_looks_at_it(self, alice, chained, anything_goes):  # noqa: F811
        note(chained)
        assert alice.api.post("/api/v1/invoices/inv-00000001/verify").json()["equal"] is True
        CreditNote.objects.for_organisation(chained).update(reason="another")
        body = alice.api.post("/api/v1/invoices/inv-00000001/verify").json()
        [difference] = body["differences"]
        assert (difference["code"], difference["credit_note"]) == ("hash", "crn-00000001")
        problem(alice.api.get("/api/v1/credit-notes/crn-00000001/pdf"), 409, "credit_note_damaged")

    def test_costs_are_as_they_were(self, alice, chained):  # noqa: F811
        address = "/api/v1/cost?month=2026-04"
        before = alice.api.get(address).json()
        note(chained)
        assert alice.api.get(address).json() == before
