"""What was recomputed and what differs, as operators read it: by REST, on the page, in /metrics. Tenants read nothing of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client

from controlplane.accounts.models import User
from controlplane.metering import selectors
from controlplane.metering.metrics import metrics_text
from controlplane.metering.models import Difference, Reconciliation
from tests.controlplane.console.conftest import text_of
from tests.controlplane.test_instances_api import problem

AT = datetime(2026, 5, 2, 0, 40, tzinfo=UTC)
pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(charlie):
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    charlie.user.refresh_from_db()
    return charlie


def compared(day: int, *counters: str, against: str = "database") -> Reconciliation:
    run = Reconciliation.objects.create(
        start_hour=f"2026-05-{day:02}T00:00:00Z", end_hour=f"2026-05-{day + 1:02}T00:00:00Z",
        at_ms=int(AT.timestamp() * 1000), compared=480, different=len(counters), raised=0,
    )  # fmt: skip
    for number, counter in enumerate(counters):
        Difference.objects.create(
            reconciliation=run, against=against, instance="ins-k3v9x2qa", hour=f"2026-05-{day:02}T{number:02}:00:00Z",
            boot="5f0c" if against == "database" else "", topic="orders" if against == "database" else "",
            counter=counter, recomputed=str(10**20 + number), known="5",
        )  # fmt: skip
    return run


def test_operators_read_runs_and_differences(alice, operator):
    compared(1)
    run = compared(2, "produced_bytes", "stored_byte_seconds")
    items = operator.api.get("/api/v1/metering/reconciliations").json()["items"]
    assert [each["different"] for each in items] == [2, 0], "the last first"
    assert items[0] == {
        "id": run.pk, "hours_from": "2026-05-02T00:00:00Z", "hours_to": "2026-05-03T00:00:00Z",
        "at": "2026-05-02T00:40:00Z", "compared": 480, "different": 2, "raised": 0, "gone": [], "begins_later": [],
    }  # fmt: skip
    found = operator.api.get("/api/v1/metering/differences").json()["items"]
    assert found[0] == {
        "reconciliation": run.pk, "against": "database", "instance_id": "ins-k3v9x2qa", "hour": "2026-05-02T00:00:00Z",
        "boot": "5f0c", "topic": "orders", "counter": "produced_bytes", "recomputed": "100000000000000000000", "known": "5",
    }  # fmt: skip
    assert [each["counter"] for each in found] == ["produced_bytes", "stored_byte_seconds"]
    for path in ("reconciliations", "differences"):
        problem(alice.api.get(f"/api/v1/metering/{path}"), 403, "forbidden")


def test_a_page_goes_on_where_the_one_before_it_ended(operator):
    runs = [compared(day, "produced_bytes", "consumed_bytes") for day in (1, 2, 3)]
    for path, expected in (
        ("reconciliations", [run.pk for run in reversed(runs)]),
        ("differences", [run.pk for run in reversed(runs) for _ in range(2)]),
    ):
        seen, cursor = [], ""
        while cursor is not None:
            body = operator.api.get(f"/api/v1/metering/{path}?limit=1{cursor and f'&cursor={cursor}'}").json()
            seen += [each.get("id", each.get("reconciliation")) for each in body["items"]]
            cursor = body["next"]
        assert seen == expected


def test_differences_of_one_run(operator):
    first, second = compared(1, "produced_bytes"), compared(2, "consumed_bytes")
    for run, counter in ((first, "produced_bytes"), (second, "consumed_bytes")):
        items = operator.api.get(f"/api/v1/metering/differences?reconciliation={run.pk}").json()["items"]
        assert [each["counter"] for each in items] == [counter]
    problem(operator.api.get("/api/v1/metering/differences?reconciliation=x"), 400, "invalid")


def test_the_page_shows_them_once_there_are_any(operator):
    browser = Client()
    browser.force_login(operator.user)
    assert "Recomputed from the raw records" not in text_of(browser.get("/fleet/metering"))
    compared(1, "produced_bytes", against="invoices")
    page = text_of(browser.get("/fleet/metering"))
    assert "Recomputed from the raw records" in page
    assert "ins-k3v9x2qa 2026-05-01 00:00 Invoices produced_bytes 100 000 000 000 000 000 000 5" in page


def test_clusters_that_were_left_out_are_named(operator):
    run = compared(1)
    run.gone, run.begins_later = ["second", "third"], ["fourth"]
    run.save()
    (item,) = operator.api.get("/api/v1/metering/reconciliations").json()["items"]
    assert (item["gone"], item["begins_later"]) == (["second", "third"], ["fourth"])
    browser = Client()
    browser.force_login(operator.user)
    page = text_of(browser.get("/fleet/metering"))
    assert "second, third Raw records are not there fourth Raw records begin later" in page


def test_rows_of_an_older_job_have_left_out_nobody(operator):
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO metering_reconciliation (start_hour, end_hour, at_ms, compared, different, raised)"
            " VALUES ('2026-05-01T00:00:00Z', '2026-05-02T00:00:00Z', 0, 1, 0, 0)"
        )
    (item,) = operator.api.get("/api/v1/metering/reconciliations").json()["items"]
    assert (item["gone"], item["begins_later"]) == ([], [])


def test_an_alarm_can_be_made_of_the_last_run():
    assert selectors.differences_now() == 0
    compared(1, "produced_bytes")
    assert selectors.differences_now() == 1
    text = metrics_text(selectors.status(), [], open_losses=0, now=AT, differences=selectors.differences_now())
    assert "# TYPE sluice_metering_differences gauge\nsluice_metering_differences 1\n" in text
    compared(2)
    assert selectors.differences_now() == 1, "a run may have several parts"
    Reconciliation.objects.update(at_ms=F("at_ms") - 1)
    compared(2)
    assert selectors.differences_now() == 0
