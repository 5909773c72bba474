"""An invoice as a PDF, read back by another program: every line and total is there, and any name fits in."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfReader

from controlplane.billing.exports.document import Names
from controlplane.billing.exports.pdf import invoice_pdf
from controlplane.billing.pricing.plans import PRO
from controlplane.billing.pricing.rating import Adjusts, Line

from .bills import rate_under
from .documents import ISSUED, invoice, worked
from .test_golden_bill import MAY, SMALL

START = datetime(2025, 4, 3, 7, tzinfo=UTC)
LATE = Line(
    "produced", Decimal("-1234567.891234567"), "GB", Decimal("0.60"), Decimal("-740740.73"), START,
    START + timedelta(hours=2), "traffic", 1, Adjusts("inv-00000009", "2025-04", 3),
)  # fmt: skip


def pages(document) -> list[str]:
    """The text of each page, without what is white: names may be folded."""
    reader = PdfReader(io.BytesIO(invoice_pdf(document)), strict=True)
    return ["".join(page.extract_text().split()) for page in reader.pages]


def text(document) -> str:
    (page,) = pages(document)
    return page


def test_the_worked_bill_is_one_page_with_every_line_and_total():
    shown = text(worked())
    for line in (
        "1.Bandwidth2025-05-1513:00to2025-05-2010:00UTCPlanpro,version1117hours7.86919.62",
        "2.Storagebought2025-05-1513:00to2025-05-2010:00UTCPlanpro,version11,170x100GB-hours0.25292.50",
        "3.Partitionsbeyondthefreeones2025-05-1513:00to2025-05-2010:00UTCPlanpro,version1117x100partition-hours0.3136.27",
        "4.Bandwidth2025-05-2010:00to2025-05-2511:00UTCPlanpro,version1121hours9.401,137.40",
        "5.Storagebought2025-05-2010:00to2025-05-2511:00UTCPlanpro,version13,630x100GB-hours0.25907.50",
        "Chargesof2025-05CNY3,293.29",
        "TotalCNY3,293.29",
    ):
        assert line in shown
    assert "Adjust" not in shown


@pytest.mark.parametrize(("period", "amount"), [(0, "1,248.39"), (1, "2,044.90")])
def test_its_halves_have_the_totals_of_the_public_example(period, amount):
    from .test_golden_bill import LARGE

    assert f"TotalCNY{amount}" in text(worked((SMALL, LARGE)[period]))


def test_the_head_says_who_bills_whom_for_what():
    document = worked()
    shown = text(document)
    for part in (
        "Invoiceinv-00000017",
        "FromSluice",
        "ToFruitandmore(org-fruitmore)",
        "Period2025-05-0100:00to2025-06-0100:00UTC",
        "Issued2025-06-0106:00UTC",
        "CurrencyCNY",
        "Instanceorders(ins-abcdefgh)",
        f"nextinvoicecarries:{document.hash}",
        f"beforeit:{'0' * 64}",
        "Page1",
    ):
        assert part in shown
    assert "counted" not in shown


def test_an_adjustment_names_what_it_adjusts_and_is_summed_by_itself():
    shown = text(invoice([*rate_under(PRO, [SMALL], MAY, ISSUED), LATE]))
    assert "Chargesof2025-05CNY1,248.39" in shown
    assert "4.Recordsproduced2025-04-0307:00to2025-04-0309:00UTC" in shown
    assert "Adjustsinvoiceinv-00000009of2025-04,line3-1,234,567.891234567GB0.60-740,740.73" in shown
    assert "AdjustmentsCNY-740,740.73" in shown
    assert "TotalCNY-739,492.34" in shown


def test_an_adjustment_of_a_line_that_was_not_there_names_the_invoice():
    shown = text(invoice([replace(LATE, adjusts=Adjusts("inv-00000009", "2025-04", None))]))
    assert "Nochargesin2025-05." in shown
    assert "Adjustsinvoiceinv-00000009of2025-04-1,234" in shown


def test_an_invoice_that_did_not_wait_says_so():
    assert "Writtenbeforeallusagehadbeencounted." in text(invoice([], waived=True))


def test_a_long_one_goes_on_with_its_heads_and_loses_no_line():
    (line, *_) = rate_under(PRO, [SMALL], MAY, ISSUED)
    found = pages(invoice([line] * 100))
    assert len(found) > 2
    with_lines = [page for page in found if ".Bandwidth" in page]
    assert len(with_lines) >= len(found) - 1, "the last one may hold the total alone"
    assert all("ItemQuantityUnitUnitpriceAmount" in page for page in with_lines)
    assert all(f"Page{number}" in page and "Invoiceinv-00000017" in page for number, page in enumerate(found, start=1))
    together = "".join(found)
    assert all(f"{number}.Bandwidth2025-05-15" in together for number in range(1, 101))
    assert together.count("919.62") == 100
    assert "TotalCNY91,962.00" in found[-1]


def test_a_number_that_is_too_long_for_its_column_is_folded_and_whole():
    line = replace(LATE, quantity=Decimal("123456789012345678901234567890.123456789"), adjusts=None)
    assert "123,456,789,012,345,678,901,234,567,890.123456789GB" in text(invoice([line]))


def test_the_same_invoice_gives_the_same_bytes_whatever_was_made_between():
    first = invoice_pdf(worked())
    invoice_pdf(invoice([LATE], names=Names("Å", "ß", "é")))
    assert invoice_pdf(worked()) == first


def test_pages_that_are_made_at_the_same_time_do_not_mix():
    documents = [invoice([LATE] * 5, names=Names(f"Seller {letter * 9}", letter, letter)) for letter in "AbÇdÉfGh"]
    alone = [invoice_pdf(document) for document in documents]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(invoice_pdf, documents * 3)) == alone * 3


@pytest.mark.parametrize(
    "name",
    [
        "<b>bold</b>",
        "a & b &amp; c",
        "<para>",
        "</para>",
        "<img src='http://127.0.0.1/x'/>",
        "<a href='x'>",
        "&#1;",
        "<br/>",
    ],
)
def test_a_name_is_no_markup(name):
    shown = text(invoice([], names=Names(name, name, name)))
    assert shown.count("".join(name.split())) == 3
    (page,) = PdfReader(io.BytesIO(invoice_pdf(invoice([], names=Names(name, name, name))))).pages
    assert not page.get("/Annots")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("Zürich", "Zürich"), ("Zu\N{COMBINING DIAERESIS}rich", "Zürich"), ("订单 & ölig", "订单&ölig"),
     ("臺灣の船", "臺灣の船"), ("\x00a\x1b[31m", "◊a◊[31m"), ("\N{PILE OF POO}", "◊"), ("\u202egnp", "◊gnp"), ("항구", "◊◊")],
)  # fmt: skip
def test_a_character_that_the_fonts_lack_is_a_lozenge_and_the_page_says_so(name, shown):
    found = text(invoice([], names=Names("Sluice", name, "orders")))
    assert f"To{shown}(org-fruitmore)" in found
    assert ("◊standsforacharacter" in found) is ("◊" in shown)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=128), st.text(max_size=128), st.text(max_size=128))
def test_any_name_can_be_shown(seller, organisation, instance):
    assert "TotalCNY0.00" in "".join(pages(invoice([], names=Names(seller, organisation, instance))))
