"""Every address of the console, and who may open it. That others never learn of it is asked in test_foreign_by_role.py.

The addresses come from the routes themselves, so that a page added later is in these tests by being a page.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.test import Client
from django.urls import reverse

import controlplane.urls  # noqa: F401  # it knows the converters that the console's routes use
from controlplane.access import users
from controlplane.accounts.models import ApiKey
from controlplane.billing import closing
from controlplane.billing.pricing.rating import Month
from controlplane.console import urls
from controlplane.console.middleware import CONTENT_SECURITY_POLICY
from controlplane.console.views.api_docs import POLICY
from controlplane.core.models import Operation
from controlplane.tenants import invitations
from controlplane.tenants.models import Membership, Role
from controlplane.throttle_rules.services import throttle_rule_create
from controlplane.topics import services as topics
from tests.controlplane.admission.rows import change_row
from tests.controlplane.alarms.rows import alarm_row, receiver_row
from tests.controlplane.billing.rows import note_row
from tests.controlplane.budgets.rows import budget_row
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.loads.rows import load_row
from tests.controlplane.rebalancing.rows import rebalance_row
from tests.controlplane.rows import access_key_row, custom_role_row, service_account_row
from tests.controlplane.token_issuers.rows import NOWHERE, token_issuer_row

from .conftest import text_of

POSTS_ONLY = {
    "sign_out",
    "theme",
    "key_revoke",
    "key_rotate",
    "member_role",
    "member_remove",
    "plan",
    "user_delete",
    "acl_delete",
}
POSTS_ONLY |= {"language", "service_account_key", "service_account_switch", "service_account_delete", "role_delete"}
POSTS_ONLY |= {"token_issuer_delete", "token_issuer_refresh", "invitation_withdraw", "throttle_rule_delete"}
POSTS_ONLY |= {
    "instance_restore",
    "change_cancel",
    "instance_load_stop",
    "instance_load_delete",
    "instance_table_remove",
}
POSTS_ONLY |= {
    "alarm_delete",
    "budget_delete",
    "alarm_silence",
    "alarms_silence",
    "receiver_delete",
    "receiver_test",
    "address_send",
    "second_factor_demand",
    "sign_in_passkey",
    "passkey_challenge",
    "access_key_revoke",
}
HOOK = "https://hooks.example.com/alarms"
NAMES = [route.name for route in urls.urlpatterns]
TENANTS = [route.name for route in urls.urlpatterns if "organisation_id" in str(route.pattern)]
OPERATORS = [name for name in NAMES if name.startswith("fleet")]
PAGES = [name for name in NAMES if name not in POSTS_ONLY]
TENANTS_PAGES = [name for name in TENANTS if name not in POSTS_ONLY]


@pytest.fixture
def address(alice, instance, admin):
    """The address of a page by name, with alice's own ids in it."""
    topics.topic_create(organisation=alice.organisation, actor="a", instance_id=instance.id, name="orders")
    closing.invoice_close(instance=instance, month=Month(2026, 5), now=datetime(2026, 6, 2, tzinfo=UTC))
    users.user_create(organisation=alice.organisation, actor="a", instance_id=instance.id, name="ann")
    rule = throttle_rule_create(
        organisation=alice.organisation, actor="a", instance_id=instance.id,
        kind="topic", topics=["orders"], produce_mib_per_s=1,
    )  # fmt: skip
    invitation, token = invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email="dora@example.com", role=Role.VIEWER
    )
    key = instance.id.removeprefix("ins-")
    admin.groups.found[f"{key}.readers"] = FakeGroup({(f"{key}.orders", 0): 0})
    admin.transactions.begin(f"{key}.copier", (f"{key}.orders", 0))
    admin.transactions.hang((f"{key}.orders", 0), at=0)
    admin.messages.write(f"{key}.orders", 0, b"a message")
    ids = {
        "partition": 0,
        "offset": 0,
        "route_id": "default",
        "group": "readers",
        "member": "reader-1",
        "transactional_id": "copier",
        "user": "ann",
        "alarm_id": alarm_row(instance).id,
        "load_id": load_row(instance).id,
        "budget_id": budget_row(alice.organisation, instance=instance).id,
        "receiver_id": receiver_row(instance, address=HOOK).id,
        "rebalance_id": rebalance_row(instance.cluster).id,
        "cluster": instance.cluster.name,
        "broker": 1,
        "change_id": change_row(instance).id,
        "issuer_id": token_issuer_row(instance).id,
        "number": "inv-00000001",
        "note": note_row(alice.organisation).number_text,
        "organisation_id": alice.organisation.id,
        "owner_id": alice.organisation.id,
        "whose": alice.organisation.id,
        "instance_id": instance.id,
        "topic": "orders",
        "part": "value",
        "hour": "2025-11-21T09",
        "operation_id": Operation.objects.for_organisation(alice.organisation).first().id,
        "invitation_id": invitation.id,
        "rule_id": rule.id,
        "token": token,
        "access_key_id": access_key_row(alice.organisation, alice.user).id,
        "key_id": ApiKey.objects.for_organisation(alice.organisation).first().id,
        "role_id": custom_role_row(alice.organisation).id,
        "service_account_id": service_account_row(alice.organisation).id,
        "membership_id": Membership.objects.get(organisation=alice.organisation, user=alice.user).id,
    }
    routes = {route.name: route.pattern.converters for route in urls.urlpatterns}
    return lambda name, **other: reverse(f"console:{name}", kwargs={key: (ids | other)[key] for key in routes[name]})


# Looking changes nothing, and neither does what is refused: all pages of such a test are asked for in one world, since to make
# one takes longer than to open its pages.
LOOKED_AT = {name: 405 if name in POSTS_ONLY else 200 for name in TENANTS}


def test_its_owner_opens_each(at_alice, address):
    assert {name: at_alice.client.get(address(name)).status_code for name in TENANTS} == LOOKED_AT


def test_a_viewer_opens_each_too_and_changes_nothing(at_viewer, address):
    form = {"name": "x", "confirmation": "events"}
    assert {name: at_viewer.client.get(address(name)).status_code for name in TENANTS} == LOOKED_AT
    answers = {name: at_viewer.client.post(address(name), form).status_code for name in TENANTS}
    assert {name: status for name, status in answers.items() if status not in (403, 405)} == {}


# What a form of its own organisation sends, so that nothing but the id is wrong.
FORMS = {
    "instance_settings": {"name": "mine", "bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60},
    "key_rotate": {"overlap_s": "3600"},
    "instance_config": {"default_partitions": 6, "default_replication_factor": 3, "max_message_bytes": 5000},
    "instance_policies": {"policy": "retention", "level_percent": 75, "step_percent": 10, "floor_minutes": 60},
    "instance_elastic": {"cap_mib_per_s": "8", "budget_per_month": ""},
    "instance_prepaid": {"months": 1, "at_end": "expire", "ends_at": "", "buy": "1"},
    "instance_delete": {"confirmation": "events"},
    "instance_access": {"cidrs": "0.0.0.0/0"},
    "topic_new": {"name": "mine", "partitions": 1, "replication_factor": 1},
    "topic_access": {"cidrs": "0.0.0.0/0", "own": "on"},
    "topic_delete": {"confirmation": "orders"},
    "topic_note": {"note": "mine", "tags": "mine"},
    "topic_schema": {"format": "avro", "definition": '"string"', "framing": "none"},
    "topics_configure": {"topics": "orders", "key_1": "retention.ms", "value_1": "5", "change": ""},
    "topic_message_new": {"value": "mine"},
    "topic_records_delete": {"partitions": "0", "before": 1, "confirmation": "orders"},
    "group_new": {"name": "mine", "topics": ["orders"]},
    "group_topic_delete": {"confirmation": "orders"},
    "group_reset": {"strategy": "earliest", "topic": "orders", "move": ""},
    "group_delete": {"confirmation": "readers"},
    "transaction_end": {"confirmation": "copier"},
    "hanging_transaction_end": {"confirmation": "orders"},
    "alarm": {
        "name": "mine",
        "watch": "storage_full",
        "duration_min": 0,
        "repeat_s": 0,
        "receivers": [],
        "enabled": "on",
    },
    "alarm_new": {"name": "mine", "watch": "storage_full", "duration_min": 0, "repeat_s": 0, "receivers": []},
    "alarm_silence": {"silence_s": 3600},
    "alarms_silence": {"silence_s": 3600},
    "alarm_delete": {},
    "budget": {"name": "mine", "amount": "1"},
    "budget_delete": {},
    "receivers": {"name": "mine", "kind": "webhook", "address": "https://hooks.example.com/"},
    "receiver": {"secret": ""},
    "receiver_test": {},
    "receiver_delete": {},
    "key_revoke": {},
    "invitation_withdraw": {},
    "throttle_rule_new": {"topics": "mine", "produce_mib_per_s": 1},
    "throttle_rule": {"topics": "mine", "produce_mib_per_s": 1},
    "throttle_rule_delete": {},
    "instance_load_new": {"topic": "orders", "kind": "folder", "schema": "raw", "every_minutes": ""},
    "instance_load": {"every_minutes": "30", "enabled": "on"},
    "instance_load_delete": {},
    "member_role": {"role": "viewer"},
    "member_remove": {},
}


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_same_form_is_answered_to_its_owner(at_alice, address, name):
    """Or the 404 of the others would mean nothing."""
    assert at_alice.client.post(address(name), FORMS[name]).status_code in (200, 302, 422)


def test_whoever_is_not_signed_in_is_asked_to(address):
    for name in TENANTS_PAGES:
        answer = Client().get(address(name))
        assert answer.status_code == 302, name
        assert answer["Location"].startswith("/sign-in?next=%2Forg-"), name


def test_operators_pages_are_for_operators(at_staff, at_alice, address):
    for name in OPERATORS:
        asked = (at_staff, at_alice.client, Client())
        assert [client.get(address(name)).status_code for client in asked] == [200, 404, 302], name


def test_an_operator_is_no_member(at_staff, address):
    assert at_staff.get(address("instance")).status_code == 404


def test_every_page_is_strict_about_what_it_may_load(at_alice, at_staff, address):
    for name in PAGES:
        client = at_staff if name in OPERATORS else at_alice.client
        check_strictness(client.get(address(name)), name)


def check_strictness(page, name):
    assert page["Content-Security-Policy"] == (POLICY if name == "api_docs" else CONTENT_SECURITY_POLICY)
    assert page["X-Frame-Options"] == "DENY"
    assert page["X-Content-Type-Options"] == "nosniff"
    body = page.getvalue().decode(errors="replace")  # a file may hold any bytes, and come piece by piece
    assert " style=" not in body
    assert "<style" not in body
    assert " onclick=" not in body
    assert "javascript:" not in body
    body = body.replace(HOOK.removesuffix("/alarms"), "")  # of a receiver: text as well, with its path or without
    told = NOWHERE.removesuffix("/jwks.json")  # of a token issuer: text, and nothing that is loaded
    assert f'="{told}' not in body
    for text in ("http://testserver", "http://www.w3.org", "http://maven.apache.org/POM/", told):
        body = body.replace(text, "")
    assert "://" not in body


@pytest.mark.parametrize("path", ["/nothing", "/org-000000000000/instances", "/org-000000000000", "/instances/<b>x"])
def test_what_is_not_there_is_a_page_and_not_json(at_alice, path):
    page = at_alice.client.get(path)
    assert page.status_code == 404
    assert "There is nothing" in text_of(page)


def test_under_api_it_stays_a_problem_document(at_alice):
    assert at_alice.client.get("/api/v1/nothing").json()["code"] == "not_found"
