"""What hours cost, in the campaign's own computation: worked by hand, and as the product's published lists have it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from controlplane.billing.pricing.plans import PRO, TRAFFIC, hourly
from tests.killed.pricing import FINE, PRICES, SIZE, bill

OPENED = datetime(2026, 5, 1, 10, 40, tzinfo=UTC)
NOW = datetime(2026, 5, 1, 12, 5, tzinfo=UTC)
USED = {"2026-05-01T10:00:00Z": (10**9, 2 * 10**9, 0), "2026-05-01T12:00:00Z": (5 * 10**8, 1, 3600 * 10**9)}


def test_what_is_reserved_costs_each_hour_that_began():
    assert bill("pro", "2026-05", OPENED, NOW, {}) == {"bandwidth": "4.02", "disk": "0.75", "total": "4.77"}
    assert bill("pro", "2026-05", OPENED, datetime(2026, 5, 1, 12, tzinfo=UTC), {})["bandwidth"] == "2.68"


def test_what_is_used_costs_by_gb_and_gb_hour_rounded_once():
    # 1.5 GB at 0.60, 2.000000001 GB at 0.25, one GB hour at 0.0025
    assert bill("traffic", "2026-05", OPENED, NOW, USED) == {
        "produced": "0.90", "consumed": "0.50", "stored": "0.00", "total": "1.40",
    }  # fmt: skip


def test_half_a_cent_is_rounded_up_and_a_byte_shows_under_the_fine_plan():
    half = {"2026-05-01T10:00:00Z": (25_000_000, 0, 0)}  # 0.025 GB at 0.60 is 0.015
    assert bill("traffic", "2026-05", OPENED, NOW, half)["produced"] == "0.02"
    one, two = (bill(FINE, "2026-05", OPENED, NOW, {"2026-05-01T10:00:00Z": (count, 0, 0)}) for count in (1, 2))
    assert (one["total"], two["total"]) == ("0.01", "0.02")


def test_a_month_has_its_own_hours_and_no_others():
    used = USED | {"2026-04-30T23:00:00Z": (10**12, 0, 0)}
    opened = datetime(2026, 4, 30, 22, 30, tzinfo=UTC)
    assert bill("traffic", "2026-05", opened, NOW, used) == bill("traffic", "2026-05", opened, NOW, USED)
    assert bill("pro", "2026-04", opened, NOW, {})["bandwidth"] == "2.68"


def test_the_prices_are_the_published_ones():
    sizes = dict(zip(("bandwidth_mb_per_s", "disk_gb", "partitions"), SIZE.values(), strict=True))
    reserved = hourly(PRO, **{name: value if name == "partitions" else Decimal(value) for name, value in sizes.items()})
    assert {each.item: each.units * each.unit_price for each in reserved} == {
        item: Decimal(PRICES["pro"][item]) for item in ("bandwidth", "disk")
    }
    for plan in (PRO, TRAFFIC):
        used = (plan.produced_per_gb, plan.consumed_per_gb, plan.stored_per_gb_hour)
        assert [Decimal(PRICES[plan.name][item]) for item in ("produced", "consumed", "stored")] == list(used)
