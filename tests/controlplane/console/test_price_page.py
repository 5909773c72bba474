"""Prices, for whoever has not signed in as well: every price of every plan, and what a size would cost."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from django.test import Client

from controlplane.billing.pricing.elastic import ELASTIC_EDITIONS
from controlplane.billing.pricing.plans import EDITIONS, PRO_USD, TRAFFIC
from controlplane.billing.pricing.prepaid_prices import PREPAID_EDITIONS
from controlplane.billing.selectors import estimate

from .conftest import text_of

PAGE = "/prices"
SIZES = {"bandwidth_mib_per_s": 110, "storage_gib": 250, "partitions": 2000}

pytestmark = pytest.mark.django_db


def numbers(page) -> set[str]:
    """As the page writes them, without what stands between thousands."""
    return set(re.findall(r"\d+(?:\.\d+)?", page.content.decode().replace("\N{NARROW NO-BREAK SPACE}", "")))


def in_decimals(price: Decimal) -> str:
    whole, _, decimals = f"{price:f}".partition(".")
    return f"{whole}.{decimals.ljust(2, '0')}"


def test_every_price_of_every_plan_is_there_for_a_stranger():
    page = Client().get(PAGE)
    assert page.status_code == 200
    prices = [
        price
        for edition in EDITIONS
        for price in (
            edition.plan.disk_per_100_gb_hour, edition.plan.partitions_per_100_hour, edition.plan.produced_per_gb,
            edition.plan.consumed_per_gb, edition.plan.stored_per_gb_hour,
            *(price for band in edition.plan.bands for price in (band.price, band.step_price)),
        )
    ]  # fmt: skip
    for listed in (each.prices for each in PREPAID_EDITIONS):
        prices += [listed.disk_per_100_gb_month, listed.partitions_per_100_month]
        prices += [price for band in listed.bands for price in (band.price, band.step_price)]
    prices += [
        price for each in ELASTIC_EDITIONS for price in (each.prices.produced_per_gb, each.prices.consumed_per_gb)
    ]
    assert {in_decimals(price) for price in prices if price} <= numbers(page)
    for currency in ("CNY", "USD"):
        assert f"Prices in {currency}" in text_of(page)


@pytest.mark.parametrize("plan", [PRO_USD, TRAFFIC])
def test_what_a_size_costs_is_what_the_form_of_a_new_instance_says(plan):
    page = Client().get(PAGE, {**SIZES, "plan": plan.name})
    assert page.status_code == 200
    found = estimate(**SIZES, plan=plan)
    assert f"{found.currency} {found.per_month:,.2f}".replace(",", " ") in text_of(page)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"plan": "gold"}, "Select a valid choice"),
        ({"partitions": "x"}, "Enter a whole number"),
        ({"storage_gib": "-1"}, "Must be"),
        ({"bandwidth_mib_per_s": "nan"}, "Enter a number"),
        ({"bandwidth_mib_per_s": ""}, "This field is required"),
    ],
)
def test_what_is_no_size_is_said_beside_its_field(wrong, said):
    page = Client().get(PAGE, {**SIZES, "plan": "pro", **wrong})
    assert page.status_code == 422
    assert said in text_of(page)
    assert "Prices in CNY" in text_of(page)


def test_strangers_find_it_and_people_who_are_signed_in_too(at_alice):
    for address in ("/", "/sign-in", "/sign-up"):
        assert f'href="{PAGE}"' in Client().get(address).content.decode(), address
    page = at_alice.client.get(PAGE)
    assert page.status_code == 200
    assert 'href="/sign-in"' not in page.content.decode()


def test_it_changes_nothing():
    assert Client().post(PAGE, {"plan": "pro"}).status_code == 405


def test_in_chinese():
    page = Client(headers={"accept-language": "zh-CN"}).get(PAGE)
    assert "价格" in text_of(page)
    assert "Prices" not in text_of(page)
