"""The worked bill of the public price list: 1 248.39, then 2 044.90."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from controlplane.billing.pricing.plans import PRO, TRAFFIC, hourly
from controlplane.billing.pricing.rating import Month, Period, Size, Used, total

from .bills import rate_under

MAY = Month(2025, 5)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2025, 5, day, hour, minute, tzinfo=UTC)


SMALL = Period(at(15, 13, 20), at(20, 10), Size(Decimal(240), Decimal(1000), 1700))
LARGE = Period(at(20, 10), at(25, 10, 30), Size(Decimal(320), Decimal(3000), 1800))


def bill(*periods: Period) -> list[tuple[str, str, str, str]]:
    lines = rate_under(PRO, periods, MAY, datetime(2025, 6, 2, tzinfo=UTC))
    return [(line.item, str(line.quantity), str(line.unit_price), str(line.amount)) for line in lines]


def test_the_first_half_costs_1248_39():
    assert bill(SMALL) == [
        ("bandwidth", "117", "7.86", "919.62"),
        ("disk", "1170", "0.25", "292.50"),
        ("partitions", "117", "0.31", "36.27"),
    ]
    assert total(rate_under(PRO, [SMALL], MAY, at(31, 0))) == Decimal("1248.39")


def test_the_second_half_costs_2044_90():
    assert bill(LARGE) == [("bandwidth", "121", "9.40", "1137.40"), ("disk", "3630", "0.25", "907.50")]
    assert total(rate_under(PRO, [LARGE], MAY, at(31, 0))) == Decimal("2044.90")


def test_together_they_are_the_sum():
    assert bill(SMALL, LARGE) == bill(SMALL) + bill(LARGE)
    assert total(rate_under(PRO, [LARGE, SMALL], MAY, at(31, 0))) == Decimal("3293.29")


@pytest.mark.parametrize(
    ("bandwidth", "price"),
    [
        ("0.5", "1.34"), ("20", "1.34"), ("20.1", "3.04"), ("40", "3.04"), ("41", "3.50"), ("100", "4.42"),
        ("110", "5.16"), ("120", "5.16"), ("300", "9.21"), ("301", "9.4"), ("600", "15.42"), ("900", "23.17"),
        ("1200", "27.69"), ("1500", "31.33"), ("1601", "35.03"), ("100000", "1851.73"),
    ],
)  # fmt: skip
def test_a_bandwidth_costs_what_the_next_size_on_sale_costs(bandwidth, price):
    first = hourly(PRO, bandwidth_mb_per_s=Decimal(bandwidth), disk_gb=Decimal(1), partitions=1)[0]
    assert (first.item, first.unit_price) == ("bandwidth", Decimal(price))


def test_more_bandwidth_never_costs_less():
    sizes = [Decimal(size) for size in range(1, 3000, 7)]
    prices = [hourly(PRO, bandwidth_mb_per_s=size, disk_gb=Decimal(1), partitions=1)[0].unit_price for size in sizes]
    assert prices == sorted(prices)


def test_the_traffic_plan_bills_record_bytes_to_the_byte_and_nothing_that_is_reserved():
    used = Used(produced_bytes=1_234_567_891, consumed_bytes=10**9, stored_byte_seconds=3600 * 2 * 10**9)
    lines = rate_under(TRAFFIC, [SMALL], MAY, at(31, 0), used)
    assert [(line.item, str(line.quantity), line.unit, str(line.amount)) for line in lines] == [
        ("produced", "1.234567891", "GB", "0.74"),
        ("consumed", "1.000000000", "GB", "0.25"),
        ("stored", "2.000000000", "GB hour", "0.01"),
    ]


def test_the_pro_plan_lists_what_was_used_and_charges_nothing_for_it():
    lines = rate_under(PRO, [SMALL], MAY, at(31, 0), Used(produced_bytes=5 * 10**9))
    assert [(line.item, str(line.amount)) for line in lines][-1] == ("produced", "0.00")
    assert total(lines) == Decimal("1248.39")
