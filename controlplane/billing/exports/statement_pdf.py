"""A statement as a PDF: a line for each invoice and each credit note, with their sums. Pure, and the same bytes on any day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reportlab.lib.units import mm
from reportlab.platypus import Flowable, LongTable, Paragraph, Spacer

from controlplane.billing.exports.pdf import (
    HEADING,
    SMALL,
    STRONG,
    STRONG_RIGHT,
    TABLE,
    TEXT,
    TITLE,
    facts,
    file_of,
    lozenges,
    moment,
    money_text,
    safe,
    sum_line,
)
from controlplane.billing.exports.statement import CurrencySum, Statement

INVOICES = ("Invoice", "Instance", "Without tax", "Tax", "Total")
NOTES = ("Credit note", "Reason", "Without tax", "Tax", "Given back")
WIDTHS = (26 * mm, 57 * mm, 33 * mm, 31 * mm, 33 * mm)


def statement_pdf(statement: Statement) -> bytes:
    """The whole file."""
    return file_of(f"Statement {statement.month}", _parts(statement))


def _parts(statement: Statement) -> Iterator[Flowable]:
    yield Paragraph(f"Statement {statement.month}", TITLE)
    yield facts(
        [
            ("From", safe(statement.seller)),
            ("To", safe(f"{statement.organisation} ({statement.organisation_id})")),
            ("Period", f"{moment(statement.start)} to {moment(statement.end)} UTC"),
        ]
    )
    if not statement.is_complete:
        yield Paragraph(_to_come(statement), TEXT)
    if not statement.sums:
        yield Paragraph(f"No invoice of {statement.month}, and no credit note in it.", TEXT)
    for each in statement.sums:
        yield from _of_currency(statement, each)
    yield Spacer(1, 6 * mm)
    yield Paragraph(
        "A statement adds up and seals nothing: the invoices and credit notes that it names are what counts. An invoice is of the"
        " month that it names; a credit note is in the month in which it was written.",
        SMALL,
    )
    yield from lozenges(
        statement.seller,
        statement.organisation,
        *(invoice.instance for invoice in statement.invoices),
        *(note.reason for note in statement.notes),
    )


def _to_come(statement: Statement) -> str:
    if statement.to_come:
        invoices = "1 invoice is" if statement.to_come == 1 else f"{statement.to_come:,} invoices are"
        return f"Not complete: {invoices} still to come."
    if statement.may_come:
        return "Not complete: an invoice that adjusts an earlier month may still come."
    return "This month can still bring invoices and credit notes."


def _of_currency(statement: Statement, added: CurrencySum) -> Iterator[Flowable]:
    currency = added.currency
    invoices = [
        [
            invoice.number,
            Paragraph(safe(f"{invoice.instance} ({invoice.instance_id})"), TEXT),
            money_text(invoice.net),
            money_text(invoice.tax),
            money_text(invoice.total),
        ]
        for invoice in statement.invoices
        if invoice.currency == currency
    ]
    notes = [
        [
            note.number,
            Paragraph(safe(f"Invoice {note.invoice} of {note.month}: {note.reason}"), TEXT),
            money_text(-note.net),
            money_text(note.net - note.amount),
            money_text(-note.amount),
        ]
        for note in statement.notes
        if note.currency == currency
    ]
    if invoices:
        yield Paragraph(f"Invoices in {currency}", HEADING)
        sums = (added.net, added.tax, added.invoiced)
        yield _table(INVOICES, invoices, f"Invoices of {statement.month}", [money_text(each) for each in sums])
    if notes:
        yield Paragraph(f"Credit notes in {currency}", HEADING)
        given = (added.credited_tax - added.credited, -added.credited_tax, -added.credited)
        yield _table(NOTES, notes, f"Credit notes in {statement.month}", [money_text(each) for each in given])
    yield Spacer(1, 3 * mm)
    yield sum_line(f"Invoices less credit notes of {statement.month}", currency, added.total)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], name: str, sums: Sequence[str]) -> LongTable:
    first = [Paragraph(head, STRONG if place < 2 else STRONG_RIGHT) for place, head in enumerate(heads)]
    last = ["", Paragraph(name, STRONG), *(Paragraph(text, STRONG_RIGHT) for text in sums)]
    table = LongTable([first, *rows, last], colWidths=WIDTHS, repeatRows=1)
    table.setStyle(TABLE)
    return table
