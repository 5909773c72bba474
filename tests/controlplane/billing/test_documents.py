"""What a bill is computed from survives as JSON: the same lines, the same digest, on any machine and years later."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from controlplane.billing.pricing.adjustments import Late, adjustments
from controlplane.billing.pricing.documents import (
    digest_of,
    has_hours,
    hours_in,
    inputs_document,
    late_in,
    line_document,
    line_documents,
    moment_text,
    month_of,
    rated,
)
from controlplane.billing.pricing.money import amount_of, in_units, text_of, total_of
from controlplane.billing.pricing.plans import HUNDRED, PRO, TRAFFIC, Band, Plan, band_of, hourly
from controlplane.billing.pricing.rating import Line, Month, Period, Size, Term, Used, rate

from .bills import rate_under

MAY = Month(2025, 5)
NOW = datetime(2025, 5, 20, 12, 30, tzinfo=UTC)
SIZE = Size(Decimal("240.5"), Decimal(1000), 1700)
PERIODS = [
    Period(datetime(2025, 5, 1, 13, 20, tzinfo=UTC), datetime(2025, 5, 2, tzinfo=UTC), SIZE),
    Period(datetime(2025, 5, 3, tzinfo=UTC), None, Size(Decimal(320), Decimal(3000), 2500)),
]
USED = Used(produced_bytes=5 * 10**9, consumed_bytes=7, stored_byte_seconds=3600 * 10**9)
HOURS = {datetime(2025, 5, 2, 7, tzinfo=UTC): USED, datetime(2025, 5, 1, 3, tzinfo=UTC): Used(2, 10**15, 10**30)}
TERMS = [Term(MAY.start, TRAFFIC), Term(datetime(2025, 5, 10, 11, tzinfo=UTC), PRO)]


def inputs_of(plan: Plan) -> dict[str, Any]:
    return inputs_document([Term(MAY.start, plan)], PERIODS, MAY, NOW, HOURS)


def test_the_inputs_are_these_members():
    inputs = inputs_of(PRO)
    assert sorted(inputs) == ["late", "metering", "month", "now", "periods", "terms", "used", "version"]
    assert (inputs["version"], inputs["late"], inputs["metering"]) == (2, [], "complete")
    assert inputs["periods"] == [
        {
            "start": "2025-05-01T13:20:00Z",
            "until": "2025-05-02T00:00:00Z",
            "bandwidth_mb_per_s": "240.5",
            "disk_gb": "1000",
            "partitions": 1700,
        },
        {
            "start": "2025-05-03T00:00:00Z",
            "until": None,
            "bandwidth_mb_per_s": "320",
            "disk_gb": "3000",
            "partitions": 2500,
        },
    ]
    assert (inputs["month"], inputs["now"]) == ("2025-05", "2025-05-20T12:30:00Z")
    assert inputs["used"] == [
        ["2025-05-01T03:00:00Z", 2, 10**15, 10**30],
        ["2025-05-02T07:00:00Z", 5 * 10**9, 7, 3600 * 10**9],
    ]
    assert inputs["terms"] == [{"start": "2025-05-01T00:00:00Z", "plan": PRO.document()}]


def test_a_plans_document_has_its_prices_as_text():
    document = PRO.document()
    assert document["bands"][1] == {
        "from_mb_per_s": 40,
        "to_mb_per_s": 100,
        "price": "3.04",
        "step_mb_per_s": 20,
        "step_price": "0.46",
        "free_partitions": 800,
    }
    assert {name: value for name, value in document.items() if name != "bands"} == {
        "name": "pro",
        "version": 1,
        "title": "Pro, by the hour",
        "currency": "CNY",
        "disk_per_100_gb_hour": "0.25",
        "partitions_per_100_hour": "0.31",
        "produced_per_gb": "0",
        "consumed_per_gb": "0",
        "stored_per_gb_hour": "0",
    }
    assert TRAFFIC.document()["disk_per_100_gb_hour"] is None


@pytest.mark.parametrize("terms", [[Term(MAY.start, PRO)], [Term(MAY.start, TRAFFIC)], TERMS])
def test_the_lines_come_out_of_json_as_they_were(terms):
    inputs = json.loads(json.dumps(inputs_document(terms, PERIODS, MAY, NOW, HOURS)))
    assert rated(inputs) == rate(terms, PERIODS, MAY, NOW, HOURS) != ()


def test_late_usage_comes_out_of_json_as_it_was():
    late = Late(
        invoice="inv-00000007",
        month=Month(2025, 4),
        terms=(Term(datetime(2025, 4, 1, tzinfo=UTC), TRAFFIC),),
        lines={("produced", datetime(2025, 4, 1, tzinfo=UTC)): 2},
        billed={datetime(2025, 4, 1, tzinfo=UTC): USED},
        changed={datetime(2025, 4, 30, 23, tzinfo=UTC): Used(-1, 2 * 10**9, 0)},
    )
    inputs = json.loads(json.dumps(inputs_document(TERMS, PERIODS, MAY, NOW, HOURS, late=[late])))
    assert late_in(inputs) == (late,)
    assert rated(inputs) == (*rate(TERMS, PERIODS, MAY, NOW, HOURS), *adjustments(late))
    assert line_documents(inputs)[-1] == {
        "item": "consumed",
        "quantity": "2",
        "unit": "GB",
        "unit_price": "0.25",
        "amount": "0.50",
        "from": "2025-04-30T23:00:00Z",
        "to": "2025-05-01T00:00:00Z",
        "plan": "traffic",
        "plan_version": 1,
        "adjusts": {"invoice": "inv-00000007", "month": "2025-04", "line": None},
    }


def test_an_invoice_of_the_first_kind_gives_the_lines_that_it_gave():
    first = {name: value for name, value in inputs_of(PRO).items() if name not in ("terms", "late", "metering")} | {
        "version": 1, "plan": PRO.document(),
        "used": {"produced_bytes": 5 * 10**9, "consumed_bytes": 7, "stored_byte_seconds": 3600 * 10**9},
    }  # fmt: skip
    assert digest_of(first) == "ed9246f72de7311e32d54e04454613ccc9e359b6c1bcf1705138aef1670c9e87"
    lines = line_documents(json.loads(json.dumps(first)))
    assert [(line["item"], line["quantity"], line["amount"]) for line in lines][-3:] == [
        ("produced", "5", "0.00"), ("consumed", "0.000000007", "0.00"), ("stored", "1", "0.00"),
    ]  # fmt: skip
    assert {name for line in lines for name in line} == {
        "item", "quantity", "unit", "unit_price", "amount", "from", "to",
    }  # fmt: skip
    assert hours_in(first) == {MAY.start: USED}
    assert not has_hours(first)
    assert has_hours(inputs_of(PRO))


def test_the_digest_is_of_the_canonical_json():
    assert digest_of({"b": [1, 2], "a": "x"}) == hashlib.sha256(b'{"a":"x","b":[1,2]}').hexdigest()


def test_a_line_is_written_with_decimals_as_text_and_moments_in_utc():
    start = datetime(2025, 5, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    line = Line("disk", Decimal("10.50"), "100 GB hour", Decimal("0.250"), Decimal("2.60"), start, NOW, "pro", 3)
    assert line_document(line) == {
        "item": "disk",
        "quantity": "10.50",
        "unit": "100 GB hour",
        "unit_price": "0.25",
        "amount": "2.60",
        "from": "2025-05-01T00:00:00Z",
        "to": "2025-05-20T12:30:00Z",
        "plan": "pro",
        "plan_version": 3,
    }


def test_a_moment_has_a_fraction_only_where_there_is_one():
    assert moment_text(NOW) == "2025-05-20T12:30:00Z"
    assert moment_text(NOW.replace(microsecond=5000)) == "2025-05-20T12:30:00.005000Z"


def test_moments_are_in_utc_wherever_the_program_runs(monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "JST-9")
        time.tzset()
        assert moment_text(NOW) == "2025-05-20T12:30:00Z"
    time.tzset()


@pytest.mark.parametrize("text", ["2000-01", "2025-12", "2999-10"])
def test_a_month_is_read(text):
    assert str(month_of(text)) == text


@pytest.mark.parametrize(
    "text", ["", "2025", "2025-5", "2025-005", "2025/05", "2025-0x", "20x5-01", "\uff12\uff10\uff12\uff15-05"]
)
def test_what_is_no_month_is_refused(text):
    with pytest.raises(ValueError, match=r"^must be a month such as 2026-11$"):
        month_of(text)


@pytest.mark.parametrize("text", ["2025-00", "2025-13", "202-505"])
def test_months_are_from_01_to_12(text):
    with pytest.raises(ValueError, match=r"^must be a month such as 2026-11, from 01 to 12$"):
        month_of(text)


@pytest.mark.parametrize("text", ["1999-12", "3000-01"])
def test_a_month_out_of_range_is_refused(text):
    with pytest.raises(ValueError, match=r"^must be a month of the years 2000 to 2999$"):
        month_of(text)


# --- money ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantity", "price", "amount"), [("1", "0.005", "0.01"), ("1", "0.0149", "0.01"), ("3", "0.335", "1.01")]
)
def test_an_amount_is_rounded_half_up_once(quantity, price, amount):
    assert str(amount_of(Decimal(quantity), Decimal(price))) == amount


def test_nothing_costs_0_00():
    assert str(total_of(())) == "0.00"
    assert str(total_of((Decimal("0.10"), Decimal("0.25")))) == "0.35"


def test_a_large_sum_keeps_its_cents():
    assert str(total_of([Decimal("9" * 30 + ".99"), Decimal("0.01")])) == "1" + "0" * 30 + ".00"
    assert str(amount_of(Decimal("9" * 30), Decimal("1.01"))) == "1009999999999999999999999999998.99"


@pytest.mark.parametrize(
    ("count", "unit", "quantity"),
    [(1, 3, "0.333333333"), (2, 3, "0.666666667"), (10**40 + 1, 10**9, "1" + "0" * 31 + ".000000001")],
)
def test_a_quantity_has_nine_decimals(count, unit, quantity):
    assert str(in_units(count, unit)) == quantity


@pytest.mark.parametrize(
    ("value", "text"),
    [("1248.30", "1248.30"), ("100", "100"), ("1E+3", "1000"), ("0.250", "0.25"), ("2.000", "2"), ("0.1", "0.1")],
)
def test_a_decimal_is_written_as_plain_digits(value, text):
    assert text_of(Decimal(value)) == text


# --- what an hour costs -----------------------------------------------------------------------------------------------


def test_each_item_says_how_many_of_what_at_which_price():
    found = hourly(PRO, bandwidth_mb_per_s=Decimal(20), disk_gb=Decimal(101), partitions=501)
    assert [(entry.item, entry.units, entry.unit, str(entry.unit_price)) for entry in found] == [
        ("bandwidth", 1, "hour", "1.34"),
        ("disk", 2, "100 GB hour", "0.25"),
        ("partitions", 2, "100 partitions hour", "0.31"),
    ]
    assert HUNDRED == 100


def test_partitions_cost_only_above_those_that_are_free():
    def items(partitions):
        return [
            entry.item
            for entry in hourly(PRO, bandwidth_mb_per_s=Decimal(1), disk_gb=Decimal(1), partitions=partitions)
        ]

    assert items(400) == ["bandwidth", "disk"]
    assert items(401) == ["bandwidth", "disk", "partitions"]


def test_without_bands_no_partition_is_free():
    plan = Plan("p", 1, "", "CNY", (), None, Decimal(1), Decimal(0), Decimal(0), Decimal(0))
    (entry,) = hourly(plan, bandwidth_mb_per_s=Decimal(1), disk_gb=Decimal(1), partitions=1)
    assert (entry.item, entry.units) == ("partitions", 1)
    assert hourly(plan, bandwidth_mb_per_s=Decimal(1), disk_gb=Decimal(1), partitions=0) == ()


def test_a_band_ends_with_its_last_size_and_the_last_band_never():
    bands = tuple(Band(low, high, Decimal(low), 20, Decimal(1), 0) for low, high in ((20, 20), (40, 100), (120, 200)))
    plan = Plan("p", 1, "", "CNY", bands, None, None, Decimal(0), Decimal(0), Decimal(0))
    assert [band_of(plan, Decimal(size)).from_mb_per_s for size in (20, 21, 100, 101, 201)] == [20, 40, 40, 120, 120]


# --- lines ------------------------------------------------------------------------------------------------------------


def test_a_line_carries_its_unit_and_price():
    size = Size(Decimal(20), Decimal(100), 500)
    period = Period(datetime(2025, 5, 2, tzinfo=UTC), datetime(2025, 5, 2, 2, tzinfo=UTC), size)
    lines = rate_under(PRO, [period], MAY, NOW)
    assert [(line.item, line.unit, line.start, line.end) for line in lines] == [
        ("bandwidth", "hour", period.start, period.until),
        ("disk", "100 GB hour", period.start, period.until),
        ("partitions", "100 partitions hour", period.start, period.until),
    ]


@pytest.mark.parametrize(
    ("now", "end"),
    [
        (datetime(2025, 4, 1, tzinfo=UTC), datetime(2025, 5, 1, tzinfo=UTC)),  # not begun
        (NOW, datetime(2025, 5, 20, 13, tzinfo=UTC)),
        (datetime(2025, 7, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)),
    ],
)
def test_what_was_used_covers_the_month_so_far(now, end):
    (line,) = rate_under(TRAFFIC, [], MAY, now, Used(produced_bytes=10**9))
    assert (line.unit_price, line.start, line.end) == (Decimal("0.60"), MAY.start, end)
