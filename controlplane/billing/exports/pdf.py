"""An invoice as a PDF on A4. Pure: the same document gives the same bytes, on any day.

The head says who bills whom for what, the tables have the charges of the instance and then the adjustments of earlier
months, and the foot has the total and the hashes by which the invoice can be checked. A table that goes on over a page
repeats its head; every page has the invoice's number and its own.

reportlab reads a little markup language in paragraphs. Whatever comes from outside is escaped before it gets there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    Flowable,
    KeepTogether,
    LongTable,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    Table,
    TableStyle,
)

from controlplane.billing.exports.document import CHARGED, Charge, InvoiceDocument, unit_name
from controlplane.billing.exports.fonts import BOLD, CHINESE, INSTEAD, PLAIN, runs, shown
from controlplane.billing.pricing.money import text_of, total_of
from controlplane.billing.pricing.rating import TAX
from controlplane.billing.pricing.taxes import tax_name

HEADS = ("Item", "Quantity", "Unit", "Unit price", "Amount")
WIDTHS = (60 * mm, 38 * mm, 36 * mm, 20 * mm, 26 * mm)
PADDING = 6  # of a cell and of a page, left and right, in points
MARGIN = 15 * mm
LINE = colors.HexColor("#c8ccd2")
TEXT = ParagraphStyle("text", fontName=PLAIN, fontSize=8, leading=11, wordWrap="CJK")  # breaks long names, too
SMALL = ParagraphStyle("small", parent=TEXT, fontSize=6.5, leading=9, textColor=colors.HexColor("#4a5058"))
_RIGHT = ParagraphStyle("right", parent=TEXT, alignment=TA_RIGHT)
STRONG = ParagraphStyle("strong", parent=TEXT, fontName=BOLD)
STRONG_RIGHT = ParagraphStyle("strong right", parent=STRONG, alignment=TA_RIGHT)
HEADING = ParagraphStyle("heading", parent=STRONG, fontSize=10, leading=14, spaceBefore=5 * mm, spaceAfter=1.5 * mm)
TITLE = ParagraphStyle("title", parent=STRONG, fontSize=16, leading=22)
TABLE = TableStyle(
    [
        ("FONT", (0, 0), (-1, -1), PLAIN, TEXT.fontSize, TEXT.leading),
        ("ALIGN", (1, 0), (-1, -1), "RIGHT"),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LINEBELOW", (0, 0), (-1, -2), 0.4, LINE),
        ("LINEABOVE", (0, -1), (-1, -1), 0.8, colors.black),
        ("LEFTPADDING", (0, 0), (0, -1), 0),
        ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
        ("TOPPADDING", (0, 0), (-1, -1), 2),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
    ]
)
"""Heads, rows, and a line of sums."""


def invoice_pdf(document: InvoiceDocument) -> bytes:
    """The whole file."""
    return file_of(f"Invoice {document.number}", _parts(document))


def file_of(title: str, parts: Iterable[Flowable]) -> bytes:
    """A document of ours, whose pages have its title and their numbers at the foot."""
    written = _Bytes()
    pages = SimpleDocTemplate(
        written,
        pagesize=A4,
        leftMargin=MARGIN - PADDING,  # what reportlab puts between a margin and its text
        rightMargin=MARGIN - PADDING,
        topMargin=MARGIN,
        bottomMargin=MARGIN + 5 * mm,
        title=title,
        author="",
        creator="",
        lang="en",
        invariant=1,  # no date and no chance in the file
    )
    number_page = partial(_number_page, title=title)
    pages.build(list(parts), onFirstPage=number_page, onLaterPages=number_page)
    return bytes(written.buffer)


def _parts(document: InvoiceDocument) -> Iterator[Flowable]:
    yield Paragraph(f"Invoice {document.number}", TITLE)
    yield _head(document)
    currency = document.currency
    yield Paragraph(safe(f"Instance {document.names.instance} ({document.instance_id})"), HEADING)
    if document.charges:
        yield _table(document.charges, f"Charges of {document.month}", currency)
    else:
        yield Paragraph(f"No charges in {document.month}.", TEXT)
    if document.adjustments:
        yield Paragraph("Adjustments of months that had been invoiced before", HEADING)
        yield _table(document.adjustments, "Adjustments", currency)
    if document.taxes:
        yield Paragraph("Tax", HEADING)
        yield _table(document.taxes, "Tax", currency)
    yield KeepTogether([Spacer(1, 6 * mm), _total(document), Spacer(1, 6 * mm), *_seal(document)])


def _head(document: InvoiceDocument) -> Table:
    names = document.names
    rows = [
        ("From", safe(names.seller)),
        ("To", safe(f"{names.organisation} ({document.organisation_id})")),
        ("Period", f"{moment(document.start)} to {moment(document.end)} UTC"),
        ("Issued", f"{moment(document.issued)} UTC"),
        ("Currency", document.currency),
    ]
    return facts(rows)


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """Names with what they say, which is markup already."""
    table = Table(
        [[Paragraph(name, STRONG), Paragraph(text, TEXT)] for name, text in rows],
        colWidths=(25 * mm, sum(WIDTHS) - 25 * mm),
    )
    table.setStyle(TableStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), ("LEFTPADDING", (0, 0), (0, -1), 0)]))
    return table


def _table(charges: Sequence[Charge], sum_of: str, currency: str) -> LongTable:
    heads = [Paragraph(head, STRONG if place == 0 else STRONG_RIGHT) for place, head in enumerate(HEADS)]
    amount = total_of(charge.amount for charge in charges)
    last = [
        Paragraph(sum_of, STRONG),
        "",
        "",
        Paragraph(currency, STRONG_RIGHT),
        Paragraph(money_text(amount), STRONG_RIGHT),
    ]
    table = LongTable([heads, *map(_row, charges), last], colWidths=WIDTHS, repeatRows=1)
    table.setStyle(TABLE)
    return table


def _row(charge: Charge) -> list[str | Flowable | list[Flowable]]:
    is_tax = charge.item == TAX
    notes = [
        f"{moment(charge.start)} to {moment(charge.end)} UTC",
        tax_name(charge.plan, charge.unit_price) if is_tax else f"Plan {charge.plan}, version {charge.plan_version}",
    ]
    if charge.charged is not None:
        notes.append(f"{CHARGED[charge.charged.kind]}, {moment(charge.charged.at)} UTC")
    if charge.adjusts is not None:
        line = "" if charge.adjusts.line is None else f", line {charge.adjusts.line}"
        notes.append(f"Adjusts invoice {charge.adjusts.invoice} of {charge.adjusts.month}{line}")
    return [
        [Paragraph(f"{charge.number}. {charge.title}", TEXT), Paragraph("<br/>".join(map(safe, notes)), SMALL)],
        *map(
            _cell,
            (_plain(charge.quantity), unit_name(charge.unit), _plain(charge.unit_price), money_text(charge.amount)),
            WIDTHS[1:],
        ),
    ]


def _cell(text: str, width: float) -> str | Paragraph:
    """A text as it is, which is quick; a paragraph where it takes more than one line."""
    fits = stringWidth(text, PLAIN, TEXT.fontSize) <= width - 2 * PADDING
    return text if fits else Paragraph(safe(text), _RIGHT)


def _total(document: InvoiceDocument) -> Table:
    return sum_line("Total", document.currency, document.total)


def sum_line(name: str, currency: str, amount: Decimal) -> Table:
    """What a document comes to, large."""
    big = ParagraphStyle("big", parent=STRONG, fontSize=12, leading=16)
    right = ParagraphStyle("big right", parent=big, alignment=TA_RIGHT)
    cells = [Paragraph(name, big), Paragraph(f"{currency} {money_text(amount)}", right)]
    table = Table([cells], colWidths=(sum(WIDTHS) / 2, sum(WIDTHS) / 2))
    table.setStyle(
        TableStyle(
            [
                ("LINEABOVE", (0, 0), (-1, 0), 1.2, colors.black),
                ("LEFTPADDING", (0, 0), (0, -1), 0),
                ("RIGHTPADDING", (-1, 0), (-1, -1), 0),
            ]
        )
    )
    return table


def amounts(parts: Sequence[tuple[str, Decimal]], currency: str) -> Table:
    """What a sum is made of: names, which are markup already, with amounts."""
    rows = [[Paragraph(name, TEXT), Paragraph(f"{currency} {money_text(amount)}", _RIGHT)] for name, amount in parts]
    table = Table(rows, colWidths=(sum(WIDTHS) / 2, sum(WIDTHS) / 2))
    table.setStyle(TableStyle([("LEFTPADDING", (0, 0), (0, -1), 0), ("RIGHTPADDING", (-1, 0), (-1, -1), 0)]))
    return table


def _seal(document: InvoiceDocument) -> Iterator[Flowable]:
    yield Paragraph(f"SHA-256 of this invoice, which the next invoice carries: {document.hash}", SMALL)
    yield Paragraph(f"SHA-256 of the invoice before it: {document.previous_hash}", SMALL)
    if document.is_waived:
        yield Paragraph("Written before all usage had been counted. What is counted later is adjusted later.", SMALL)
    names = document.names
    yield from lozenges(names.seller, names.organisation, names.instance, *(tax.plan for tax in document.taxes))


def lozenges(*texts: str) -> Iterator[Flowable]:
    """A line that says what a lozenge is, where the page has one."""
    if any(INSTEAD in shown(text) for text in texts):
        yield Paragraph(f"{INSTEAD} stands for a character that this page's fonts do not have.", SMALL)


def _number_page(canvas: Canvas, pages: SimpleDocTemplate, *, title: str) -> None:
    canvas.saveState()
    canvas.setFont(PLAIN, 6.5)
    canvas.drawString(MARGIN, MARGIN, title)
    canvas.drawRightString(A4[0] - MARGIN, MARGIN, f"Page {pages.page}")
    canvas.restoreState()


def safe(text: str) -> str:
    """As a paragraph takes it: none of its own markup, and no character that the fonts lack."""
    return "".join(
        f'<font name="{CHINESE}">{escape(part)}</font>' if is_chinese else escape(part)
        for part, is_chinese in runs(text)
    )


def moment(when: datetime) -> str:
    """In UTC, to the minute."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"


def money_text(amount: Decimal) -> str:
    """Thousands apart, cents behind a point."""
    return f"{amount:,.2f}"


def _plain(number: Decimal) -> str:
    """All its digits, thousands apart."""
    whole, dot, decimals = text_of(number).partition(".")
    return f"{Decimal(whole):,}{dot}{decimals}" if whole.lstrip("-") != "0" else text_of(number)


class _Bytes:
    """What reportlab writes to: it asks for no more than `write`."""

    def __init__(self) -> None:
        self.buffer = bytearray()

    def write(self, some: bytes, /) -> None:
        self.buffer += some
