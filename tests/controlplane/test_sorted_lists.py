"""Every list by REST that has pages is sorted by ``?sort=``, or says why not; and those that were sorted last, one by one."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import get_resolver
from rest_framework.views import APIView

from controlplane.admission.models import ScheduledChange
from controlplane.api import parameters
from controlplane.billing.models import CreditNote, Invoice, MonthCost
from controlplane.instances.models import Route
from controlplane.tenants.models import Invitation
from controlplane.token_issuers.models import TokenIssuer

from .alarms.rows import receiver_row
from .billing.rows import note_row
from .loads.rows import load_row
from .rows import LONG_AGO, instance_row
from .test_instances_api import URL, problem
from .test_sorting import by, cursor
from .token_issuers.rows import token_issuer_row
from .transactions.conftest import hers  # noqa: F401  # a fixture

STREAM = "a stream by time: where one looks is said by its times, and a page goes on where the page before has ended"
DECIDED = "operators' decisions and what was found, in the order in which they came: a record of them"
FEW = "short, and by what it is about"
NOT_SORTED = {
    "audit": STREAM,
    "instances/{}/audit": STREAM,
    "instances/{}/events": STREAM,
    "instances/{}/alarms/{}/events": STREAM,
    "instances/{}/receivers/{}/messages": STREAM,
    "instances/{}/lake-loads/{}/runs": STREAM,
    "instances/{}/topics/{}/messages": STREAM,
    "instances/{}/throttling": STREAM,
    "instances/{}/quota-report": STREAM,
    "instances/{}/usage": STREAM,
    "instances/{}/usage/records": STREAM,
    "budgets/{}/alerts": STREAM,
    "jobs/{}/runs": STREAM,
    "quota-report": STREAM,
    "rebalances": STREAM,
    "rebalances/{}/moves": "in the order in which they are made",
    "metering/caps": DECIDED,
    "metering/differences": DECIDED,
    "metering/losses": DECIDED,
    "metering/reconciliations": DECIDED,
    "metering/waivers": DECIDED,
    "taxes": DECIDED,
    "fleet/problems": FEW,
    "instances/{}/hanging-transactions": FEW,
    "instances/{}/lake-tables": FEW,
    "instance-names": "ids and names alone, for a list to choose from",
}
"""Why a list has one order."""


def lists():
    """Each list that has pages: its address, and the parameters that it takes."""
    for pattern in get_resolver().url_patterns:
        kind, path = getattr(getattr(pattern, "callback", None), "cls", None), str(pattern.pattern)
        if kind is None or not issubclass(kind, APIView) or not path.startswith("api/v1/"):
            continue
        known = parameters.declared(kind, "GET") or ()
        if "cursor" in known:
            yield re.sub("<[^>]*>", "{}", path.removeprefix("api/v1/")), known


def test_every_list_that_has_pages_is_sorted_or_says_why_not():
    unsorted = {path for path, known in lists() if "sort" not in known}
    assert unsorted == set(NOT_SORTED)


def test_how_lists_are_sorted_is_not_another_parameter_of_some():
    assert {path for path, known in lists() if "order" in known} == {"operations", "instances/{}/throttling"}


def test_routes_by_number_security_state_and_end(alice, instance):
    for number, security, days in ((2, "tls", None), (10, "plaintext", 3), (9, "sasl_tls", 1)):
        Route(
            organisation=instance.organisation, instance=instance, number=number, key=f"r{number}", security=security,
            state="running", created_at=LONG_AGO + timedelta(days=number),
            closes_at=None if days is None else LONG_AGO + timedelta(days=10_000 + days),
        ).save(force_insert=True)  # fmt: skip
    url = f"{URL}/{instance.id}/routes"
    assert by(alice, url, "id", "-id") == ["r10", "r9", "r2", "default"]
    assert by(alice, url, "id", "security") == ["default", "r10", "r9", "r2"]
    assert by(alice, url, "id", "closes_at") == ["r9", "r10", "default", "r2"], "what does not close comes last"
    assert by(alice, url, "id", "-closes_at") == ["r10", "r9", "default", "r2"]
    assert by(alice, url, "id", "state") == ["default", "r2", "r9", "r10"]
    assert by(alice, url, "id", "created_at") == ["r2", "r9", "r10", "default"], "the instance's own was made just now"


def test_throttle_rules_by_how_much_they_let_through(alice, instance):
    url = f"{URL}/{instance.id}/throttle-rules"
    rates = ({"produce_mib_per_s": 2.5}, {"produce_mib_per_s": 10}, {"consume_mib_per_s": 1})
    for kind, rate in zip(("topic", "client", "group"), rates, strict=True):
        assert alice.api.post(url, {"kind": kind, f"{kind}s": ["x"], **rate}).status_code == 201
    assert by(alice, url, "kind", "kind") == ["client", "group", "topic"]
    assert by(alice, url, "kind", "-produce_mib_per_s") == ["client", "topic", "group"], "no limit comes last"
    assert by(alice, url, "kind", "produce_mib_per_s") == ["topic", "client", "group"]
    assert by(alice, url, "id", "-id") == sorted(by(alice, url, "id", "kind"), reverse=True)
    assert by(alice, url, "kind", "-kind", kind="topic") == ["topic"]


def test_lake_loads_by_topic_schedule_and_next_start(alice, instance):
    for number, topic, minutes in ((1, "b", 60), (2, "a", None), (3, "c", 5)):
        at = None if minutes is None else LONG_AGO + timedelta(minutes=minutes)
        load_row(instance, f"load-00000000000{number}", topic=topic, every_minutes=minutes, next_start_at=at)
    url = f"{URL}/{instance.id}/lake-loads"
    assert by(alice, url, "topic", "topic") == ["a", "b", "c"]
    assert by(alice, url, "topic", "every_minutes") == ["c", "b", "a"]
    assert by(alice, url, "topic", "-next_start_at") == ["b", "c", "a"], "what nobody has planned comes last"


def test_receivers_by_name_and_kind(alice, instance):
    for number, name, kind in ((1, "b", "webhook"), (2, "a", "webhook"), (3, "c", "email")):
        receiver_row(instance, f"rcv-00000000000{number}", name=name, kind=kind)
    url = f"{URL}/{instance.id}/receivers"
    assert by(alice, url, "name", "-name") == ["c", "b", "a"]
    assert by(alice, url, "name", "kind") == ["c", "b", "a"], "of equal ones the smaller id"


def test_token_issuers_by_who_they_are_and_when_keys_came(alice, instance):
    for number in (1, 2, 3):
        row = token_issuer_row(instance, f"iss-00000000000{number}")
        TokenIssuer.objects.unscoped("a test").filter(pk=row.pk).update(
            keys_fetched_at=LONG_AGO + timedelta(hours=-number, microseconds=number % 2)
        )
    url = f"{URL}/{instance.id}/token-issuers"
    ids = [f"iss-00000000000{number}" for number in (1, 2, 3)]
    assert by(alice, url, "id", "-issuer") == ids[::-1]
    assert by(alice, url, "id", "keys_fetched_at") == ids[::-1]
    assert by(alice, url, "id", "created_at") == ids


def test_acls_by_any_member(alice, instance):
    url = f"{URL}/{instance.id}/acls"
    for principal, operation, name in (("User:b", "READ", "x"), ("User:a", "WRITE", "z"), ("User:c", "DESCRIBE", "y")):
        body = {
            "principal": principal, "host": "*", "operation": operation, "permission": "ALLOW", "resource_type": "TOPIC",
            "resource_name": name, "pattern_type": "LITERAL",
        }  # fmt: skip
        assert alice.api.post(url, body).status_code == 201
    assert by(alice, url, "principal", "principal") == ["User:a", "User:b", "User:c"]
    assert by(alice, url, "principal", "-resource_name") == ["User:a", "User:c", "User:b"]
    assert by(alice, url, "operation", "operation") == ["DESCRIBE", "READ", "WRITE"]
    assert len(by(alice, url, "principal", "permission")) == 3
    assert by(alice, url, "principal", "-principal", principal="User:a") == ["User:a"]


def test_transactions_by_id_and_only_those_on_the_page_are_asked_for(alice, hers):  # noqa: F811
    for name in ("archiver", "zipper"):
        hers.begin(name, 0)
    field = "transactional_id"
    assert by(alice, hers.url, field, f"-{field}") == ["zipper", "copier", "archiver"]
    assert by(alice, hers.url, field, field) == ["archiver", "copier", "zipper"]
    problem(alice.api.get(hers.url, {"sort": "state"}), 400, "invalid")


def test_scheduled_changes_by_when_they_are_made(alice, instance):
    for number, state, days in ((1, "waiting", 3), (2, "cancelled", 1), (3, "waiting", 2)):
        ScheduledChange(
            id=f"chg-00000000000{number}", organisation=instance.organisation, instance=instance, actor="a",
            changes={"partitions": number}, at=LONG_AGO + timedelta(days=days), state=state,
            created_at=LONG_AGO + timedelta(hours=number), ended_at=LONG_AGO if state == "cancelled" else None,
        ).save(force_insert=True)  # fmt: skip
    url = f"{URL}/{instance.id}/scheduled-changes"
    assert by(alice, url, "partitions", "at") == [2, 3, 1]
    assert by(alice, url, "partitions", "-at") == [1, 3, 2]
    assert by(alice, url, "partitions", "state") == [2, 1, 3]
    assert by(alice, url, "partitions", "ended_at") == [2, 1, 3]
    assert [item["partitions"] for item in alice.api.get(url).json()["items"]] == [3, 2, 1], "else the newest first"


def test_invitations_by_address_role_and_time(alice):
    url = "/api/v1/invitations"
    for email, role in (("b@example.com", "viewer"), ("a@example.com", "owner"), ("c@example.com", "member")):
        assert alice.api.post(url, {"email": email, "role": role}).status_code == 201
    Invitation.objects.unscoped("a test").filter(email="c@example.com").update(expires_at=LONG_AGO)
    assert by(alice, url, "email", "email") == ["a@example.com", "b@example.com", "c@example.com"]
    assert by(alice, url, "role", "-role") == ["viewer", "owner", "member"]
    assert by(alice, url, "email", "expires_at")[0] == "c@example.com"
    assert by(alice, url, "email", "-created_at") == ["c@example.com", "a@example.com", "b@example.com"]


def test_costs_by_instance_name_and_amount(alice):
    for number, name, amount in ((1, "b", "9.90"), (2, "a", "10.00"), (3, "c", "0.50")):
        MonthCost(
            organisation=alice.organisation,
            instance=instance_row(alice.organisation, f"ins-00000000000{number}", name),
            month="2026-05", currency="CNY", so_far=Decimal(amount), forecast=20 - Decimal(amount), counted_until=LONG_AGO,
            computed_at=LONG_AGO,
        ).save(force_insert=True)  # fmt: skip
    url, month = "/api/v1/cost/instances", {"month": "2026-05"}
    assert by(alice, url, "name", "name", **month) == ["a", "b", "c"]
    assert by(alice, url, "name", "-so_far", **month) == ["a", "b", "c"]
    assert by(alice, url, "name", "-forecast", **month) == ["c", "b", "a"]
    assert by(alice, url, "name", "-instance_id", **month) == ["c", "a", "b"]
    assert [row["name"] for row in alice.api.get(url, month).json()["items"]] == ["b", "a", "c"]


@pytest.fixture
def notes(alice):
    """Three credit notes; numbers of the first two are of the newest invoice."""
    for number in (1, 2):
        Invoice(
            number=number, organisation=alice.organisation, instance=instance_row(alice.organisation, f"ins-00000000000{number}"),
            month=f"2026-0{number}", currency="CNY", total=Decimal(10), lines=[], inputs={}, input_hash="a" * 64,
            created_at=LONG_AGO, previous_hash="0" * 64, hash="b" * 64,
        ).save(force_insert=True)  # fmt: skip
    rows = [note_row(alice.organisation) for _ in range(3)]
    return [row.number_text for row in rows]


def test_credit_notes_by_number_invoice_and_amount(alice, notes):
    url = "/api/v1/credit-notes"
    assert by(alice, url, "number", "-number") == notes[::-1]
    for field in ("invoice", "month", "amount", "created_at"):
        assert by(alice, url, "number", field) == notes, "all are equal: as they were written"
    assert CreditNote.objects.for_organisation(alice.organisation).count() == 3


@pytest.mark.parametrize(
    ("path", "sort", "members"),
    [
        ("routes", "closes_at", ("sort", "closes_at", 7, "000000001")),
        ("routes", "closes_at", ("sort", "closes_at", "2026-01-01", 1)),
        ("lake-loads", "every_minutes", ("sort", "every_minutes", "5", "load-1")),
        ("acls", "principal", ("sort", "principal", ["User:a"], "x")),
        ("receivers", "name", ("sort", "name", "a\0", "rcv-1")),
        ("transactions", "transactional_id", ("sort", "transactional_id", 1, "a")),
    ],
)
def test_a_cursor_that_nobody_was_given_is_refused(alice, instance, hers, path, sort, members):  # noqa: F811
    load_row(instance, every_minutes=5)
    Route.objects.unscoped("a test").filter(instance=instance).update(closes_at=LONG_AGO + timedelta(days=10_000))
    alice.api.post(f"{URL}/{instance.id}/acls", {
        "principal": "User:a", "host": "*", "operation": "READ", "permission": "ALLOW", "resource_type": "TOPIC",
        "resource_name": "x", "pattern_type": "LITERAL",
    })  # fmt: skip
    answer = alice.api.get(f"{URL}/{instance.id}/{path}", {"sort": sort, "cursor": cursor(*members)})
    assert problem(answer, 400, "invalid")["errors"][0]["field"] == "cursor"
