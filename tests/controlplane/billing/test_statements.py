"""Statements: a month of an organisation in one paper, which adds up to the documents that it names."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from operator import attrgetter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pypdf import PdfReader

from controlplane.billing import closing, statements
from controlplane.billing.exports.credit_note import CreditNoteDocument
from controlplane.billing.exports.document import Names
from controlplane.billing.exports.statement import StatedInvoice, Statement
from controlplane.billing.exports.statement_pdf import statement_pdf
from controlplane.billing.models import Invoice
from controlplane.billing.pricing.credited_taxes import CreditedTax
from controlplane.billing.pricing.rating import Month
from controlplane.billing.services import tax_set
from controlplane.instances.models import Instance
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem
from tests.support.clocks import StandingClock as At

from .test_credit_notes import note
from .test_invoice_chain import anything_goes, chained  # noqa: F401  # fixtures

APRIL, MAY, JUNE = "2026-04", "2026-05", Month(2026, 6)
DUE = datetime(2026, 7, 1, 6, tzinfo=UTC)  # June is
NOVEMBER = datetime(2026, 11, 1, tzinfo=UTC)


def statement(person, month: str, path: str = ""):
    return person.api.get(f"/api/v1/statement{path}?month={month}")


def text_of(content: bytes) -> str:
    return "".join("".join(page.extract_text().split()) for page in PdfReader(io.BytesIO(content)).pages)


def invoice(
    number: int, total: str, *, tax: str = "0.00", currency: str = "CNY", name: str = "orders"
) -> StatedInvoice:
    return StatedInvoice(f"inv-{number:08}", f"ins-{number:08}", name, currency, Decimal(tax), Decimal(total), NOVEMBER)


def credit(number: int, amount: str, *, currency: str = "CNY", tax: str = "0.00") -> CreditNoteDocument:
    taxes = (CreditedTax(2, "VAT", Decimal("0.06"), Decimal(tax)),)
    return CreditNoteDocument(
        f"crn-{number:08}", Names("Sluice", "Acme", "orders"), "org-1", "ins-00000001", "inv-00000001", "0" * 64, "2026-10",
        NOVEMBER, NOVEMBER, NOVEMBER, NOVEMBER, currency, Decimal(amount), taxes, "the port was down", NOVEMBER,
        "0" * 64, "0" * 64,
    )  # fmt: skip


def of(invoices=(), notes=(), **others) -> Statement:
    about = {"seller": "Sluice", "organisation_id": "org-1", "organisation": "Acme", "month": "2026-11"}
    about |= {
        "start": NOVEMBER,
        "end": datetime(2026, 12, 1, tzinfo=UTC),
        "to_come": 0,
        "may_come": 0,
        "is_complete": True,
    }
    return Statement(**about | others, invoices=tuple(invoices), notes=tuple(notes))


class TestSums:
    def test_they_are_by_currency_and_a_note_counts_in_its_own(self):
        notes = [credit(1, "3.00", currency="USD", tax="0.17")]
        found = of([invoice(1, "106.00", tax="6.00"), invoice(2, "10.00", currency="USD")], notes)
        amounts = attrgetter("net", "tax", "invoiced", "credited", "credited_tax", "total")
        assert [(each.currency, *map(str, amounts(each))) for each in found.sums] == [
            ("CNY", "100.00", "6.00", "106.00", "0.00", "0.00", "106.00"),
            ("USD", "10.00", "0.00", "10.00", "3.00", "0.17", "7.00"),
        ]

    def test_a_month_with_notes_alone_is_below_nothing(self):
        (found,) = of([], [credit(1, "3.00")]).sums
        assert (found.invoiced, found.total) == (Decimal("0.00"), Decimal("-3.00"))


class TestPdf:
    def test_it_names_every_document_and_the_sums(self):
        said = text_of(
            statement_pdf(of([invoice(1, "1106.00", tax="6.00"), invoice(2, "1.00")], [credit(1, "3.00", tax="0.17")]))
        )
        for words in (
            "Statement2026-11", "inv-00000001", "inv-00000002", "1,106.00", "crn-00000001", "theportwasdown", "-2.83-0.17-3.00",
            "Invoiceslesscreditnotesof2026-11CNY1,104.00",
        ):  # fmt: skip
            assert words in said, words
        assert "complete" not in said

    @pytest.mark.parametrize(
        ("to_come", "may_come", "words"),
        [
            (0, 0, "Thismonthcanstillbringinvoicesandcreditnotes."),
            (0, 1, "Notcomplete:aninvoicethatadjustsanearliermonthmaystillcome."),
            (1, 1, "Notcomplete:1invoiceisstilltocome."),
            (1200, 0, "Notcomplete:1,200invoicesarestilltocome."),
        ],
    )
    def test_it_says_that_it_is_not_complete(self, to_come, may_come, words):
        said = text_of(statement_pdf(of(to_come=to_come, may_come=may_come, is_complete=False)))
        assert words in said
        assert "Noinvoiceof2026-11,andnocreditnoteinit." in said

    def test_large_sums_stay_on_a_line(self):
        content = statement_pdf(
            of([invoice(1, "99999999.99", tax="9999999.99")], [credit(1, "99999999.99", tax="9999999.99")])
        )
        lines = PdfReader(io.BytesIO(content)).pages[0].extract_text().splitlines()
        assert sum(line.count("99,999,999.99") for line in lines) == 4
        assert sum(line.count("9,999,999.99") for line in lines) == 8, "four of these are in those"

    def test_markup_in_names_is_text_and_many_invoices_take_many_pages(self):
        content = statement_pdf(of([invoice(number, "1.00", name="<b>&amp;" + "x" * 200) for number in range(1, 301)]))
        pages = PdfReader(io.BytesIO(content)).pages
        assert len(pages) > 5
        assert all("Without tax" in page.extract_text() for page in pages[:-1]), "the head is on every page"
        assert "<b>&amp;" in text_of(content)

    def test_the_same_statement_gives_the_same_bytes(self):
        assert statement_pdf(of([invoice(1, "1.00")])) == statement_pdf(of([invoice(1, "1.00")]))


def test_it_has_the_invoices_of_the_month_and_the_notes_written_in_it(alice, chained):  # noqa: F811
    note(chained, "12.50", clock=At(datetime(2026, 5, 31, 23, 59, 59, tzinfo=UTC)))  # of April, in May
    note(chained, "1.00", clock=At(datetime(2026, 6, 1, tzinfo=UTC)))
    april, may = (statement(alice, month).json() for month in (APRIL, MAY))
    assert [each["number"] for each in april["invoices"]] == ["inv-00000001", "inv-00000002"]
    assert april["credit_notes"] == []
    assert [each["number"] for each in may["invoices"]] == ["inv-00000003", "inv-00000004"]
    assert [(each["number"], each["month"]) for each in may["credit_notes"]] == [("crn-00000001", APRIL)]
    assert (may["complete"], may["to_come"]) == (True, 0)
    (added,) = may["totals"]
    invoices = [each for each in alice.api.get("/api/v1/invoices").json()["items"] if each["month"] == MAY]
    total = sum(Decimal(each["total"]) for each in invoices)
    assert (Decimal(added["invoiced"]), Decimal(added["total"])) == (total, total - Decimal("12.50"))
    assert added["tax"] == "0.00"


def test_tax_stands_apart(alice, chained):  # noqa: F811
    before = datetime(2026, 5, 1, tzinfo=UTC)
    tax_set(organisation=chained, month=Month(2026, 6), name="VAT", percent=Decimal(6), actor="a", clock=At(before))
    for each in Instance.objects.for_organisation(chained):
        closing.invoice_close(instance=each, month=Month(2026, 6), now=datetime(2026, 7, 2, tzinfo=UTC))
    (largest, *_) = sorted(statement(alice, "2026-06").json()["invoices"], key=lambda each: -Decimal(each["total"]))
    note(chained, "106.00", invoice=largest["number"], clock=At(datetime(2026, 6, 30, tzinfo=UTC)))
    found = statement(alice, "2026-06").json()
    (added,) = found["totals"]
    net, tax = Decimal(added["net"]), Decimal(added["tax"])
    assert Decimal("0.05") < tax / net < Decimal("0.07")
    assert net + tax == Decimal(added["invoiced"])
    assert (added["credited"], added["credited_tax"]) == ("106.00", "6.00")
    assert [(each["amount"], each["tax"]) for each in found["credit_notes"]] == [("106.00", "6.00")]


def test_the_focus_file_has_the_rows_of_each_document_under_one_head(alice, chained):  # noqa: F811
    note(chained, "12.50", clock=At(datetime(2026, 5, 20, tzinfo=UTC)))
    answer = statement(alice, MAY, "/focus.csv")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="statement-{MAY}-focus.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    paths = ["invoices/inv-00000003", "invoices/inv-00000004", "credit-notes/crn-00000001"]
    files = [alice.api.get(f"/api/v1/{each}/focus.csv").content.decode() for each in paths]
    assert rows == [each for file in files for each in csv.DictReader(io.StringIO(file, newline=""))]
    (added,) = statement(alice, MAY).json()["totals"]
    assert sum(Decimal(each["BilledCost"]) for each in rows) == Decimal(added["total"])


def test_the_pdf_is_a_file_to_be_saved(alice, bob, chained):  # noqa: F811
    for person in (alice, bob):
        answer = statement(person, MAY, "/pdf")
        assert answer.headers["Content-Type"] == "application/pdf"
        assert answer.headers["Content-Disposition"] == f'attachment; filename="statement-{MAY}.pdf"'
        assert "inv-00000004" in text_of(answer.content)


def test_it_is_complete_once_every_invoice_is_there_six_hours_after_the_end(alice, chained):  # noqa: F811
    first, second = Instance.objects.for_organisation(chained).order_by("pk")
    june = Month(2026, 6)

    def state(*moment: int) -> tuple[bool, int]:
        found = statements.statement_get(organisation=chained, month=june, clock=At(datetime(*moment, tzinfo=UTC)))
        return found.is_complete, found.to_come

    assert state(2026, 6, 15) == (False, 2)
    closing.invoice_close(instance=first, month=june, now=datetime(2026, 7, 1, 6, tzinfo=UTC))
    assert state(2026, 7, 1, 6) == (False, 1)
    closing.invoice_close(instance=second, month=june, now=datetime(2026, 7, 1, 6, tzinfo=UTC))
    assert state(2026, 7, 1, 5, 59) == (False, 0)
    assert state(2026, 7, 1, 6) == (True, 0)


@pytest.fixture
def gone(chained):  # noqa: F811
    """The one that was never open was deleted in May; the other one has its invoice of June."""
    second, first = Instance.objects.for_organisation(chained).order_by("name")  # "events" is open
    Instance.objects.unscoped("a test").filter(pk=first.pk).update(deleted_at=datetime(2026, 5, 20, tzinfo=UTC))
    first.refresh_from_db()
    closing.invoice_close(instance=second, month=JUNE, now=DUE)
    return first


def missing(organisation, now=DUE, month=JUNE) -> tuple[bool, int, int]:
    found = statements.statement_get(organisation=organisation, month=month, clock=At(now))
    return found.is_complete, found.to_come, found.may_come


def test_one_that_was_gone_before_may_bring_an_invoice_which_adjusts(chained, gone):  # noqa: F811
    assert missing(chained) == (False, 0, 1)
    raised([row(gone.id, "2026-05-02T01", 5 * 10**12)])
    assert closing.invoice_close(instance=gone, month=JUNE, now=DUE)
    assert missing(chained) == (True, 0, 0)


def test_one_that_was_gone_before_and_owes_nothing_is_waited_for_until_that_is_known(chained, gone):  # noqa: F811
    assert not closing.invoice_close(instance=gone, month=JUNE, now=DUE)
    assert missing(chained) == (True, 0, 0)


def test_one_that_was_gone_before_brings_nothing_any_more_when_the_next_month_is_due(chained, gone):  # noqa: F811
    assert missing(chained, datetime(2026, 8, 1, 5, 59, tzinfo=UTC)) == (False, 0, 1)
    assert missing(chained, datetime(2026, 8, 1, 6, tzinfo=UTC)) == (True, 0, 0)


def test_what_is_gone_elsewhere_is_nothing_to_others(charlie, gone):
    assert missing(charlie.organisation) == (True, 0, 0)


def test_a_month_that_is_closed_no_more_waits_for_nothing(chained):  # noqa: F811
    closed_until = datetime(2028, 7, 1, 6, tzinfo=UTC)  # months_due looks back two years
    assert missing(chained, closed_until - timedelta(minutes=1)) == (False, 2, 0)
    assert missing(chained, closed_until) == (True, 0, 0)


def test_another_organisation_has_nothing_of_it(charlie, chained):  # noqa: F811
    body = statement(charlie, MAY).json()
    assert (body["invoices"], body["credit_notes"], body["totals"]) == ([], [], [])
    assert len(statement(charlie, MAY, "/focus.csv").content.decode().splitlines()) == 1


@pytest.mark.parametrize("path", ["", "/pdf", "/focus.csv"])
@pytest.mark.parametrize("month", ["2026-13", "May", "9999-12", "2999-01"])
def test_a_month_that_is_none_or_has_not_begun_is_refused_by_name(alice, path, month):
    body = problem(statement(alice, month, path), 400, "invalid")
    assert [each["field"] for each in body["errors"]] == ["month"]


@pytest.mark.parametrize("path", ["", "/pdf", "/focus.csv"])
def test_a_document_that_is_not_what_was_sealed_is_not_added_up(alice, chained, anything_goes, path):  # noqa: F811
    Invoice.objects.for_organisation(chained).filter(number=3).update(total=Decimal(1))
    problem(statement(alice, MAY, path), 409, "invoice_damaged")
    assert statement(alice, APRIL, path).status_code == 200


@pytest.mark.parametrize("path", ["", "/pdf", "/focus.csv"])
def test_nor_is_one_that_was_sealed_and_does_not_add_up(alice, chained, anything_goes, path):  # noqa: F811
    invoice = Invoice.objects.for_organisation(chained).get(number=3)
    invoice.total += 1
    changed = {"total": invoice.total, "hash": invoice.sealed().hash()}
    Invoice.objects.for_organisation(chained).filter(number=3).update(**changed)
    problem(statement(alice, MAY, path), 409, "invoice_damaged")


@pytest.mark.parametrize("total", [0, 5])
@pytest.mark.parametrize(
    "path", ["statement?month=2026-05", "statement/pdf?month=2026-05", "credit-notes/crn-00000001/pdf"]
)
def test_nor_is_a_note_on_a_damaged_invoice_of_another_month(alice, chained, anything_goes, path, total):  # noqa: F811
    """How much of the note is tax is computed from its invoice."""
    note(chained, "1.00", clock=At(datetime(2026, 5, 20, tzinfo=UTC)))
    Invoice.objects.for_organisation(chained).filter(number=1).update(total=Decimal(total))
    problem(alice.api.get(f"/api/v1/{path}"), 409, "invoice_damaged")
    assert [each["tax"] for each in alice.api.get("/api/v1/credit-notes").json()["items"]] == ["0.00"]


def test_queries_do_not_grow_with_the_notes(alice, chained):  # noqa: F811
    def asked(notes: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert len(statement(alice, MAY).json()["credit_notes"]) == notes
        return len(queries)

    def write() -> None:
        note(chained, "1.00", clock=At(datetime(2026, 5, 20, tzinfo=UTC)))

    asked(0)  # a key's first use is noted
    write()
    with_one = asked(1)
    for _ in range(4):
        write()
    assert asked(5) == with_one < 20
