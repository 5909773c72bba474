"""The worked bill of the public price list, from calls of REST to its invoice, the PDF and the FOCUS rows."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import pytest

from controlplane.billing import closing
from tests.controlplane.admission.passing import Passing
from tests.controlplane.test_instances_api import URL
from tests.support.usage import usage_complete

SMALL = {"bandwidth_mib_per_s": 240, "storage_gib": 1000, "partitions": 1700}
LARGE = {"bandwidth_mib_per_s": 320, "storage_gib": 3000, "partitions": 1800}
LINES = [
    ("bandwidth", "117", "7.86", "919.62"),
    ("disk", "1170", "0.25", "292.50"),
    ("partitions", "117", "0.31", "36.27"),
    ("bandwidth", "121", "9.40", "1137.40"),
    ("disk", "3630", "0.25", "907.50"),
]
NUMBER = "/api/v1/invoices/inv-00000001"


@pytest.fixture
def invoiced(alice, brokers, monkeypatch):
    """Bought on 15 May at 13:20, enlarged on the 20th at 10:00, deleted on the 25th at 10:30."""
    time = Passing(monkeypatch)
    time.to(2026, 5, 15, 13, 20)
    made = alice.api.post(URL, {"name": "worked", "whitelist": [], "confirm_price": True, **SMALL})
    url = f"{URL}/{made.json()['id']}"
    assert time.done(made).state == "succeeded"
    time.to(2026, 5, 20, 10)
    assert time.done(alice.api.patch(url, {**LARGE, "confirm_price": True})).state == "succeeded"
    time.to(2026, 5, 25, 10, 30)
    assert time.done(alice.api.delete(url)).state == "succeeded"
    time.to(2026, 6, 1, 6)
    usage_complete(time.now)
    assert closing.invoices_close() == 1
    return url


def test_the_invoice_says_1248_39_and_2044_90(alice, invoiced):
    body = alice.api.get(NUMBER).json()
    lines = [(line["item"], line["quantity"], line["unit_price"], line["amount"]) for line in body["lines"]]
    assert lines == LINES
    assert sum(Decimal(line[3]) for line in lines[:3]) == Decimal("1248.39")
    assert sum(Decimal(line[3]) for line in lines[3:]) == Decimal("2044.90")
    assert (body["total"], body["currency"]) == ("3293.29", "CNY")
    assert [(line["from"], line["to"]) for line in body["lines"][::3]] == [
        ("2026-05-15T13:00:00Z", "2026-05-20T10:00:00Z"),
        ("2026-05-20T10:00:00Z", "2026-05-25T11:00:00Z"),
    ]


def test_it_can_be_computed_again(alice, invoiced):
    found = alice.api.post(f"{NUMBER}/verify").json()
    assert (found["equal"], found["differences"]) == (True, [])


def test_its_files_say_the_same(alice, invoiced):
    assert alice.api.get(f"{NUMBER}/pdf").getvalue().startswith(b"%PDF")
    rows = list(csv.DictReader(io.StringIO(alice.api.get(f"{NUMBER}/focus.csv").getvalue().decode())))
    assert [(row["SkuId"], row["BilledCost"]) for row in rows] == [(item, amount) for item, _, _, amount in LINES]
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("3293.29")
