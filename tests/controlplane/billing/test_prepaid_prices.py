"""Monthly prices that were published stay as they are, and cost what the public list says."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from controlplane.billing.pricing.documents import digest_of
from controlplane.billing.pricing.plans import PRO
from controlplane.billing.pricing.prepaid_prices import (
    PREPAID_EDITIONS,
    PRO_PREPAID,
    monthly,
    prices_in,
    prices_on,
    prices_version,
)

PUBLISHED = {
    ("pro_prepaid", 1): "11157d55eb4bce022dac3b367c09b1ae3ce7ead40604d76e5f17f4dc91342271",
    ("pro_prepaid_usd", 1): "be3c2f7194daf2c2a1fe838ab807cc89d0c70455c51629157856642a8b01fed9",
}
"""SHA-256 of every version that was ever sold. One that fails here was changed: give it a new version instead."""


@pytest.mark.parametrize(
    "edition", PREPAID_EDITIONS, ids=lambda edition: f"{edition.prices.name} {edition.prices.version}"
)
def test_a_published_price_never_changes(edition):
    assert digest_of(edition.prices.document()) == PUBLISHED[edition.prices.name, edition.prices.version]


def test_no_published_version_is_taken_away():
    sold = [(edition.prices.name, edition.prices.version) for edition in PREPAID_EDITIONS]
    assert len(sold) == len(set(sold))
    assert set(PUBLISHED) <= set(sold)


@pytest.mark.parametrize("edition", PREPAID_EDITIONS, ids=lambda edition: edition.prices.name)
def test_a_list_comes_out_of_its_document_as_it_was(edition):
    assert prices_in(edition.prices.document()) == edition.prices


def test_a_plan_that_reserves_nothing_has_no_monthly_prices():
    assert prices_on("pro", date(2026, 5, 1)) == PRO_PREPAID
    assert prices_version("pro_prepaid", 1) == PRO_PREPAID
    with pytest.raises(LookupError, match="cannot be paid in advance"):
        prices_on("traffic", date(2026, 5, 1))
    with pytest.raises(LookupError, match="no version 9"):
        prices_version("pro_prepaid", 9)


@pytest.mark.parametrize(
    ("bandwidth", "price"),
    [
        ("1", "890"), ("20", "890"), ("21", "1990"), ("40", "1990"), ("60", "2290"), ("100", "2890"), ("120", "3377"),
        ("300", "6005"), ("320", "6147"), ("620", "11687"), ("920", "15380"), ("1600", "20570"), ("1700", "22990"),
    ],
)  # fmt: skip
def test_bandwidth_costs_what_the_public_list_says(bandwidth, price):
    entry = monthly(PRO_PREPAID, bandwidth_mb_per_s=Decimal(bandwidth), disk_gb=Decimal(1), partitions=1)[0]
    assert (entry.item, entry.units, entry.unit_price) == ("prepaid_bandwidth", 1, Decimal(price))


def test_storage_and_partitions_are_sold_in_hundreds_and_partitions_above_the_free_ones():
    found = monthly(PRO_PREPAID, bandwidth_mb_per_s=Decimal(20), disk_gb=Decimal(101), partitions=501)
    assert [(entry.item, entry.units, entry.unit) for entry in found[1:]] == [
        ("prepaid_disk", 2, "100 GB month"),
        ("prepaid_partitions", 2, "100 partitions month"),
    ]
    assert monthly(PRO_PREPAID, bandwidth_mb_per_s=Decimal(40), disk_gb=Decimal(1), partitions=800)[2].units == 0


def test_the_bands_are_those_of_the_plan():
    for ours, of_plan in zip(PRO_PREPAID.bands, PRO.bands, strict=True):
        assert (ours.from_mb_per_s, ours.to_mb_per_s, ours.step_mb_per_s, ours.free_partitions) == (
            of_plan.from_mb_per_s, of_plan.to_mb_per_s, of_plan.step_mb_per_s, of_plan.free_partitions,
        )  # fmt: skip
