"""An invoice in FOCUS 1.2: the worked bill to the letter, and what holds for every invoice."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controlplane.billing.costs import ITEMS
from controlplane.billing.exports.document import TITLES, Names
from controlplane.billing.exports.focus import COLUMNS, UNITS, Kind, focus_csv
from controlplane.billing.pricing.money import amount_of
from controlplane.billing.pricing.plans import EDITIONS, PRO, TRAFFIC, hourly
from controlplane.billing.pricing.prepaid_prices import PREPAID_EDITIONS, monthly
from controlplane.billing.pricing.rating import CREDIT, ELASTIC, TAX, Adjusts, Line, Used
from controlplane.core.text import FORMULA

from .bills import rate_under
from .documents import ISSUED, invoice, sealed, worked
from .test_golden_bill import LARGE, MAY, SMALL

MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost",
    "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName",
    "ServiceCategory", "ServiceName",
}  # fmt: skip
"""What the specification calls mandatory, in version 1.2."""
NEVER_NULL = MANDATORY - {
    "BillingAccountName", "ChargeClass", "ChargeDescription", "PricingQuantity", "PricingUnit",
} | {"ChargeFrequency", "ServiceSubcategory"}  # fmt: skip
NUMBER = re.compile(r"-?\d+(\.\d+)?")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def read(document) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(focus_csv(document).decode(), newline="")))


class TestTheWorkedBill:
    def test_each_line_is_a_row(self):
        rows = read(worked())
        assert [
            (row["SkuId"], row["PricingQuantity"], row["PricingUnit"], row["ListUnitPrice"], row["BilledCost"])
            for row in rows
        ] == [
            ("bandwidth", "117", "Hours", "7.86", "919.62"),
            ("disk", "1170", "100 GB-Hours", "0.25", "292.50"),
            ("partitions", "117", "100 Partition-Hours", "0.31", "36.27"),
            ("bandwidth", "121", "Hours", "9.40", "1137.40"),
            ("disk", "3630", "100 GB-Hours", "0.25", "907.50"),
        ]

    @pytest.mark.parametrize(("period", "amount"), [(SMALL, "1248.39"), (LARGE, "2044.90")])
    def test_rows_add_up_to_the_public_example(self, period, amount):
        assert sum(Decimal(row["BilledCost"]) for row in read(worked(period))) == Decimal(amount)

    def test_a_whole_row(self):
        row = read(worked())[1]
        assert row == {
            "BilledCost": "292.50", "EffectiveCost": "292.50", "ListCost": "292.50", "ContractedCost": "292.50",
            "BillingAccountId": "org-fruitmore", "BillingAccountName": "Fruit and more", "BillingCurrency": "CNY",
            "BillingPeriodStart": "2025-05-01T00:00:00Z", "BillingPeriodEnd": "2025-06-01T00:00:00Z",
            "ChargeCategory": "Usage", "ChargeClass": "", "ChargeDescription": "Storage bought",
            "ChargeFrequency": "Usage-Based",
            "ChargePeriodStart": "2025-05-15T13:00:00Z", "ChargePeriodEnd": "2025-05-20T10:00:00Z",
            "ConsumedQuantity": "117000", "ConsumedUnit": "GB-Hours",
            "PricingQuantity": "1170", "PricingUnit": "100 GB-Hours", "PricingCategory": "Standard",
            "ListUnitPrice": "0.25", "ContractedUnitPrice": "0.25",
            "InvoiceId": "inv-00000017", "InvoiceIssuerName": "Sluice", "ProviderName": "Sluice", "PublisherName": "Sluice",
            "ResourceId": "ins-abcdefgh", "ResourceName": "orders", "ResourceType": "Kafka instance",
            "ServiceCategory": "Integration", "ServiceSubcategory": "Messaging", "ServiceName": "Kafka",
            "SkuId": "disk", "SkuMeter": "Storage bought", "SkuPriceId": "pro.1.disk.0.25",
            "SkuPriceDetails": '{"x_Plan": "pro", "x_PlanVersion": "1"}',
            "SubAccountId": "", "SubAccountName": "",
            "x_AdjustedInvoiceId": "", "x_AdjustedInvoiceLine": "", "x_InvoiceLine": "2",
        }  # fmt: skip


def test_what_is_given_back_is_a_credit_that_consumed_nothing():
    start = datetime(2025, 5, 3, tzinfo=UTC)
    price = Decimal("188.64")
    back = Line(
        CREDIT, Decimal("-0.25"), "day", price, Decimal("-47.16"), start, start + timedelta(days=1), "guarantee", 1
    )
    (row,) = read(invoice([back]))
    assert [row[name] for name in ("ChargeCategory", "ChargeClass", "ChargeFrequency", "BilledCost", "PricingQuantity")] == [
        "Credit", "", "One-Time", "-47.16", "-0.25",
    ]  # fmt: skip
    assert (row["PricingUnit"], row["ConsumedQuantity"], row["ConsumedUnit"]) == ("Days", "", "")
    assert row["ChargeDescription"] == "Credit: bandwidth that could not be had"


def test_an_adjustment_is_a_correction_that_names_what_it_corrects():
    start = datetime(2025, 4, 3, 7, tzinfo=UTC)
    late = Line(
        "produced", Decimal("-0.5"), "GB", Decimal("0.60"), Decimal("-0.30"), start, start + timedelta(hours=2),
        "traffic", 1, Adjusts("inv-00000009", "2025-04", 3),
    )  # fmt: skip
    (row,) = read(invoice([late]))
    assert (row["ChargeCategory"], row["ChargeClass"]) == ("Usage", "Correction")
    assert (row["x_AdjustedInvoiceId"], row["x_AdjustedInvoiceLine"]) == ("inv-00000009", "3")
    assert row["ChargeDescription"] == "Records produced: adjusts invoice inv-00000009 of 2025-04, line 3"
    assert (row["ChargePeriodStart"], row["BillingPeriodStart"]) == ("2025-04-03T07:00:00Z", "2025-05-01T00:00:00Z")
    assert (row["BilledCost"], row["PricingQuantity"], row["ConsumedQuantity"]) == ("-0.30", "-0.5", "-0.5")


def test_what_is_listed_without_a_price_costs_0_and_not_minus_0():
    start = datetime(2025, 4, 3, 7, tzinfo=UTC)
    free = Line(
        "produced", Decimal("-0.5"), "GB", Decimal(0), Decimal("0.00"), start, start + timedelta(hours=2),
        "pro", 1, Adjusts("inv-00000009", "2025-04", None),
    )  # fmt: skip
    (row,) = read(invoice([free]))
    assert (row["BilledCost"], row["ListCost"]) == ("0.00", "0")


def test_an_invoice_without_lines_is_a_header():
    assert read(invoice([])) == []
    assert focus_csv(invoice([])).decode() == ",".join(column.name for column in COLUMNS) + "\r\n"


def test_the_columns_are_those_of_the_specification_and_our_own():
    assert {column.name for column in COLUMNS if column.mandatory} == MANDATORY
    assert {column.name for column in COLUMNS if not column.nullable} - {"x_InvoiceLine"} == NEVER_NULL
    assert len({column.name for column in COLUMNS}) == len(COLUMNS)
    assert all(re.fullmatch(r"(x_)?([A-Z][a-z]+)+", column.name) for column in COLUMNS)


def test_every_unit_and_item_on_sale_has_its_words():
    entries = [
        entry
        for edition in EDITIONS
        for entry in hourly(edition.plan, bandwidth_mb_per_s=Decimal(50), disk_gb=Decimal(50), partitions=90_000)
    ]
    months = [
        entry
        for edition in PREPAID_EDITIONS
        for entry in monthly(edition.prices, bandwidth_mb_per_s=Decimal(50), disk_gb=Decimal(50), partitions=90_000)
    ]
    entries = [*entries, *months]
    used = [line for edition in EDITIONS for line in rate_under(edition.plan, [SMALL], MAY, ISSUED, Used(1, 1, 10**12))]
    assert {entry.unit for entry in entries} | {line.unit for line in used} | {"day"} == set(UNITS)
    assert (
        {entry.item for entry in entries} | {line.item for line in used} | {*ELASTIC, CREDIT, TAX}
        == set(TITLES)
        == set(ITEMS)
    )


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "=cmd|' /C calc'!A0", "＝1"])  # noqa: RUF001
def test_a_name_is_no_formula(name):
    (row, *_) = read(worked_of(name))
    assert row["ResourceName"] == row["BillingAccountName"] == f"'{name}"


@pytest.mark.parametrize("name", ["plain", "it's", 'say "hi"', "a,b", "a\nb", "订单", "a=b", "1-2"])
def test_any_other_name_stays_as_it_is(name):
    (row, *_) = read(worked_of(name))
    assert row["ResourceName"] == row["BillingAccountName"] == name


def worked_of(name: str):
    return invoice(rate_under(PRO, [SMALL], MAY, ISSUED), names=Names("Sluice", name, name))


def test_lines_that_do_not_add_up_to_the_total_are_not_handed_out():
    from controlplane.billing.exports.document import invoice_document

    lines = rate_under(PRO, [SMALL], MAY, ISSUED)
    with pytest.raises(ValueError, match="do not add up"):
        invoice_document(sealed(lines, amount=Decimal("1248.40")), Names("a", "b", "c"), last_plan=PRO)


HOURS = st.integers(0, 700).map(lambda hours: MAY.start + timedelta(hours=hours))
SOLD = st.sampled_from([("bandwidth", "hour"), ("disk", "100 GB hour"), ("partitions", "100 partitions hour")])
USED = st.sampled_from([("produced", "GB"), ("consumed", "GB"), ("stored", "GB hour")])


@st.composite
def lines(draw):
    item, unit = draw(SOLD | USED)
    adjusts = draw(
        st.none() | st.builds(Adjusts, st.just("inv-00000003"), st.just("2025-04"), st.none() | st.integers(1, 9))
    )
    lowest = 0 if adjusts is None else -(10**15)
    quantity = Decimal(draw(st.integers(lowest, 10**15))) / draw(st.sampled_from([1, 10**9]))
    price = Decimal(draw(st.integers(0, 10**7))) / 10**4
    start = draw(HOURS)
    plan = draw(st.sampled_from([PRO, TRAFFIC]))
    end = start + timedelta(hours=draw(st.integers(1, 100)))
    return Line(item, quantity, unit, price, amount_of(quantity, price), start, end, plan.name, plan.version, adjusts)


ANY = st.text(max_size=20)


@given(st.lists(lines(), max_size=12), ANY, ANY)
@example([], "=", "\x00")
def test_whatever_the_invoice_its_rows_keep_to_the_specification(found, organisation, instance):
    document = invoice(found, names=Names("Sluice", organisation, instance))
    rows = read(document)
    assert len(rows) == len(found)
    assert sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0)) == document.total
    for row, line in zip(rows, found, strict=True):
        for column in COLUMNS:
            assert_typed(column, row[column.name])
        list_cost = Decimal(row["ListUnitPrice"]) * Decimal(row["PricingQuantity"])
        assert Decimal(row["ListCost"]) == list_cost == Decimal(row["ContractedCost"])
        assert abs(Decimal(row["BilledCost"]) - list_cost) <= Decimal("0.005")
        assert (row["ChargeClass"] == "Correction") is (line.adjusts is not None)
        assert row["ChargePeriodStart"] < row["ChargePeriodEnd"]
        assert (row["SubAccountId"], row["SubAccountName"]) == ("", "")


def assert_typed(column, text):
    if text == "":
        assert column.nullable, column.name
    elif column.kind is Kind.DECIMAL:
        assert NUMBER.fullmatch(text)
        assert text not in ("-0", "-0.00"), column.name
    elif column.kind is Kind.INTEGER:
        assert text.isdigit(), column.name
    elif column.kind is Kind.MOMENT:
        assert MOMENT.fullmatch(text), column.name
    elif column.kind is Kind.JSON:
        assert all(isinstance(value, str) and key.startswith("x_") for key, value in json.loads(text).items())
    else:
        assert not text.startswith(FORMULA), column.name
