"""Every REST endpoint with an id: what its owner is answered. What others are, test_foreign_by_role.py asks with the same ids.

The endpoints come from the routes themselves, so that one added later is in this table by having a route. An id that no
one here knows how to make fails the test until it is taught.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.urls.resolvers import URLPattern
from pypdf import PdfReader

import controlplane.urls
from controlplane.accounts import services as accounts
from controlplane.accounts.models import AccessKey, ApiKey
from controlplane.billing import closing
from controlplane.billing.pricing.rating import Month
from controlplane.core.models import Operation
from controlplane.instances.history import spec_change_record
from controlplane.instances.models import Instance, SpecChangeKind
from controlplane.kafka.group_door import Member
from controlplane.tenants import invitations
from controlplane.tenants.models import Membership, Role
from controlplane.token_issuers import fetching
from tests.support.certificates import Authority
from tests.support.tokens import Issuer

from .admission.rows import change_row
from .alarms.rows import CODE, alarm_row, event_row, receiver_row
from .billing.rows import note_row
from .budgets.rows import budget_row
from .conftest import run_to_the_end
from .fakes import FakeGroup
from .loads.rows import kept_table_row, load_row
from .organisations.rows import emptied
from .rows import custom_role_row, service_account_row
from .sso.rows import provider_row
from .test_instances_api import problem
from .token_issuers.rows import NOWHERE, token_issuer_row

OF_WHAT_IS_PAID = (
    ("patch", "instances/<id:instance_id>/prepaid"),
    ("post", "instances/<id:instance_id>/prepaid/renew"),
)
METHODS = ("get", "post", "put", "patch", "delete")
DELETION = ("post", "organisations/<id:organisation_id>/deletion")
"""Refused while there is anything: `organisations.rows.emptied`."""
ACL = {"principal": "User:ann", "operation": "READ", "resource_type": "TOPIC", "resource_name": "orders"}
# What each endpoint takes from its owner, so that nothing but the id is wrong.
AUTHORITY = Authority()
OWN = AUTHORITY.issue("own", ["127.0.0.1"])
SOON = f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%dT%H:%M:%SZ}"
BODIES = {
    ("patch", "instances/<id:instance_id>"): {"name": "mine"},
    ("post", "instances/<id:instance_id>/scheduled-changes"): {"at": SOON, "partitions": 90},
    ("post", "instances/<id:instance_id>/destroy"): {"name": "events"},
    ("put", "instances/<id:instance_id>/elastic-bandwidth"): {"cap_mib_per_s": 8},
    ("post", "instances/<id:instance_id>/prepaid"): {"months": 1},
    ("patch", "instances/<id:instance_id>/prepaid"): {"at_end": "renew"},
    ("post", "instances/<id:instance_id>/prepaid/renew"): {"months": 1, "ends_at": SOON},
    ("put", "instances/<id:instance_id>/whitelist"): {"cidrs": ["0.0.0.0/0"]},
    ("patch", "instances/<id:instance_id>/whitelist"): {"add": ["0.0.0.0/0"]},
    ("put", "instances/<id:instance_id>/limits"): {"topics": 1000},
    ("patch", "organisations/<id:organisation_id>"): {"name": "mine"},
    ("post", "organisations/<id:organisation_id>/transfer"): {"member_id": 987654321, "step_down_to": "member"},
    ("post", "organisations/<id:organisation_id>/deletion"): {"name": "alice's"},
    ("patch", "organisations/<id:organisation_id>/caps"): {"instances": 40, "reason": "more"},
    ("post", "organisations/<id:organisation_id>/invoices/<id:number>/credit-notes"): {
        "amount": "1.00",
        "reason": "sorry",
    },
    ("post", "instances/<id:instance_id>/topics"): {"name": "t", "partitions": 1},
    ("patch", "instances/<id:instance_id>/topics/<str:topic>"): {"partitions": 9},
    ("put", "instances/<id:instance_id>/topics/<str:topic>/whitelist"): {"cidrs": []},
    ("post", "instances/<id:instance_id>/topics/<str:topic>/messages"): {"value": None},
    ("post", "instances/<id:instance_id>/topics/<str:topic>/delete-records"): {"before": {"0": 0}},
    ("patch", "instances/<id:instance_id>/topics/<str:topic>/note"): {"note": "mine"},
    ("put", "instances/<id:instance_id>/topics/<str:topic>/schemas/<part:part>"): {
        "format": "avro",
        "definition": '"long"',
    },
    ("post", "instances/<id:instance_id>/topic-configs"): {"topics": ["orders"], "config": {"retention.ms": "5"}},
    ("post", "instances/<id:instance_id>/groups"): {"name": "new", "topics": ["orders"]},
    ("post", "instances/<id:instance_id>/groups/<name:group>/offsets"): {"strategy": "earliest", "topic": "orders"},
    ("post", "instances/<id:instance_id>/throttle-rules"): {
        "kind": "topic",
        "topics": ["orders"],
        "produce_mib_per_s": 1,
    },
    ("patch", "instances/<id:instance_id>/throttle-rules/<id:rule_id>"): {"produce_mib_per_s": 2},
    ("post", "instances/<id:instance_id>/alarms"): {"name": "storage", "watch": "storage_full"},
    ("patch", "instances/<id:instance_id>/alarms/<id:alarm_id>"): {"name": "mine"},
    ("post", "instances/<id:instance_id>/alarms/<id:alarm_id>/silence"): {"until": None},
    ("post", "instances/<id:instance_id>/silence"): {"until": None},
    ("post", "api-keys/<id:key_id>/rotate"): {"overlap_s": 60},
    ("patch", "roles/<id:role_id>"): {"name": "mine"},
    ("patch", "service-accounts/<id:service_account_id>"): {"name": "mine"},
    ("post", "service-accounts/<id:service_account_id>/keys"): {"name": "mine"},
    ("patch", "members/<int:membership_id>"): {"role": "viewer"},
    ("patch", "budgets/<id:budget_id>"): {"name": "mine"},
    ("put", "instances/<id:instance_id>/policies/disk"): {"policy": "retention"},
    ("post", "instances/<id:instance_id>/receivers"): {
        "name": "mine",
        "kind": "webhook",
        "address": "https://hooks.example.com/",
    },
    ("patch", "instances/<id:instance_id>/receivers/<id:receiver_id>"): {"name": "mine"},
    ("post", "instances/<id:instance_id>/receivers/<id:receiver_id>/confirm"): {"code": CODE},
    ("post", "instances/<id:instance_id>/lake-loads"): {"topic": "orders", "kind": "folder"},
    ("patch", "instances/<id:instance_id>/lake-loads/<id:load_id>"): {"every_minutes": 30},
    ("post", "instances/<id:instance_id>/lake-loads/<id:load_id>/runs"): {},
    ("post", "instances/<id:instance_id>/users"): {"name": "bob"},
    ("delete", "instances/<id:instance_id>/users"): {"name": "ann"},
    ("put", "instances/<id:instance_id>/users/<name:user>/password"): {"keep_previous_s": 60},
    ("post", "instances/<id:instance_id>/token-issuers"): {
        "issuer": "https://other.example.com",
        "jwks_url": NOWHERE,
        "audiences": ["kafka"],
    },
    ("post", "instances/<id:instance_id>/access-check"): {
        "source": "10.0.0.7",
        "operation": "READ",
        "resource_type": "TOPIC",
        "resource_name": "orders",
    },
    ("put", "instances/<id:instance_id>/proposal"): {"whitelist": []},
    ("post", "instances/<id:instance_id>/acls"): ACL,
    ("post", "instances/<id:instance_id>/acls/batch"): {"items": [ACL]},
    ("post", "instances/<id:instance_id>/acls/presets"): {
        "preset": "producer",
        "principal": "User:ann",
        "topic": "orders",
    },
    ("delete", "instances/<id:instance_id>/acls"): {"resource_type": "ANY"},
    ("post", "instances/<id:instance_id>/routes"): {"security": "plaintext"},
    ("patch", "instances/<id:instance_id>/routes/<route:route_id>"): {"connections": 5},
    ("put", "instances/<id:instance_id>/routes/<route:route_id>/certificate"): {"chain": OWN.pem, "key": OWN.key_pem},
    ("put", "instances/<id:instance_id>/routes/<route:route_id>/client-ca"): {"client_ca": AUTHORITY.pem},
}
# Operators of the service alone may ask for these; an owner learns that.
OPERATORS = {
    ("put", "instances/<id:instance_id>/limits"),
    ("get", "organisations/<id:organisation_id>/caps"),
    ("patch", "organisations/<id:organisation_id>/caps"),
    ("get", "organisations/<id:organisation_id>/invoices/<id:number>/credit-notes"),
    ("post", "organisations/<id:organisation_id>/invoices/<id:number>/credit-notes"),
    ("get", "organisations/<id:organisation_id>/credit-notes/<id:note>/pdf"),
}
PREFIX = f"{controlplane.urls.V1}/"


def endpoints():
    for route in controlplane.urls.urlpatterns:
        text = str(route.pattern)
        if isinstance(route, URLPattern) and text.startswith(PREFIX):
            allowed = [method for method in METHODS if hasattr(route.callback.view_class, method)]
            yield from ((method, text.removeprefix(PREFIX)) for method in allowed)


OF_NOBODY = {"metering/brokers/<int:broker>/waiver", "jobs/<str:job>/runs"} | {
    f"rebalances/<id:rebalance_id>{part}" for part in ("", "/actions", "/moves", "/events")
}
OF_NOBODY |= {
    f"clusters/<cluster:cluster>{part}"
    for part in ("", "/brokers/<int:broker>", "/brokers/<int:broker>/history", "/events", "/leaving", "/rebalancing")
}
OF_NOBODY |= {"metering/losses/<int:loss_id>/settle", "fleet/instances/<id:instance_id>"}
"""Brokers, jobs and clusters are no organisation's; who is no operator is told so, whichever of them it names.

So is who asks as an operator for an instance, whosever it is and whether it is there or not.
"""
WITH_IDS = [(method, text) for method, text in endpoints() if "<" in text and text not in OF_NOBODY]
WITHOUT = sorted({text for _, text in endpoints() if "<" not in text})


@pytest.fixture
def theirs(alice, instance, admin, settings, monkeypatch):
    """Alice's ids, by the names that routes give them."""
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, token_issuer_hosts="login.example.com", lake_folders="file:/lake", metering_absent=""
    )
    monkeypatch.setattr(fetching, "fetched", lambda _address: json.dumps(Issuer(keys={"one": "P-256"}).jwks()).encode())
    assert alice.api.post(f"/{PREFIX}instances/{instance.id}/topics", {"name": "orders"}).status_code == 201
    rule = {"kind": "client", "users": ["ann"], "consume_mib_per_s": 1}
    rule_id = alice.api.post(f"/{PREFIX}instances/{instance.id}/throttle-rules", rule).json()["id"]
    assert alice.api.post(f"/{PREFIX}instances/{instance.id}/users", {"name": "ann"}).status_code == 201
    assert alice.api.post(f"/{PREFIX}instances/{instance.id}/acls", ACL).status_code == 201
    proposal = alice.api.put(f"/{PREFIX}instances/{instance.id}/proposal", {"whitelist": ["10.0.0.0/8"]}).json()["id"]
    access_key = AccessKey(
        id="key-aliceaccess1", organisation=alice.organisation, user=alice.user, name="sdk",
        secret_id="slak" + "a" * 24, made_with="", created_at=datetime(2026, 5, 2, tzinfo=UTC),
    )  # fmt: skip
    access_key.save(force_insert=True)
    closing.invoice_close(instance=instance, month=Month(2026, 5), now=datetime(2026, 6, 2, tzinfo=UTC))
    route = alice.api.post(f"/{PREFIX}instances/{instance.id}/routes", {"security": "ssl"}).json()
    run_to_the_end(route["operation_id"])  # brokers know it, and it has a certificate
    invitation, _ = invitations.invitation_create(
        organisation=alice.organisation, inviter=alice.user, email="dora@example.com", role=Role.VIEWER
    )
    provider_row(alice.organisation)
    alarm = alarm_row(instance)
    event_row(alarm)
    key = instance.id.removeprefix("ins-")
    admin.messages.write(f"{key}.orders", 0, b"a message")
    schema = {"format": "avro", "definition": '"string"'}
    assert alice.api.put(f"/api/v1/instances/{instance.id}/topics/orders/schemas/value", schema).status_code == 200
    admin.groups.found[f"{key}.readers"] = FakeGroup({(f"{key}.orders", 0): 0})
    admin.transactions.begin(f"{key}.copier", (f"{key}.orders", 0))
    admin.transactions.hang((f"{key}.orders", 0), at=0)
    return {
        "<id:organisation_id>": alice.organisation.id,
        "<id:instance_id>": instance.id,
        "<id:number>": "inv-00000001",
        "<id:note>": note_row(alice.organisation).number_text,
        "<str:topic>": "orders",
        "<part:part>": "value",
        "<int:partition>": "0",
        "<int:offset>": "0",
        "<int:broker>": "1",
        "<id:rule_id>": rule_id,
        "<id:change_id>": change_row(instance).id,
        "<id:proposal_id>": proposal,
        "<route:route_id>": route["id"],
        "<name:group>": "readers",
        "<name:member>": "reader-1",
        "<name:transactional_id>": "copier",
        "<name:user>": "ann",
        "<id:issuer_id>": token_issuer_row(instance).id,
        "<id:alarm_id>": alarm.id,
        "<id:load_id>": kept_table_row(instance, load_row(instance).id).id,  # both have it: one of each is there
        "<id:budget_id>": budget_row(alice.organisation, instance=instance).id,
        "<id:receiver_id>": receiver_row(instance).id,
        "<id:operation_id>": Operation.objects.for_organisation(alice.organisation).first().id,
        "<id:access_key_id>": access_key.id,
        "<id:role_id>": custom_role_row(alice.organisation).id,
        "<id:service_account_id>": service_account_row(alice.organisation).id,
        "<int:membership_id>": str(member_row(alice.organisation).pk),
        "<id:invitation_id>": invitation.id,
        "<id:key_id>": ApiKey.objects.for_organisation(alice.organisation).first().id,
    }


def member_row(organisation, pk=987654321):
    """A member beside the owner, with an id that stands in no text by chance."""
    user, _ = accounts.user_ensure(email="mia@example.com", password=None)
    return Membership.objects.create(pk=pk, organisation=organisation, user=user, role=Role.MEMBER)


def paid_until(alice, theirs):
    """Alice's instance is open, and paid in advance for a month."""
    instance = Instance.objects.unscoped("a test").get(pk=theirs["<id:instance_id>"])
    spec_change_record(instance=instance, kind=SpecChangeKind.OPENED, at=datetime.now(UTC) - timedelta(hours=1))
    url = address("instances/<id:instance_id>/prepaid", theirs)
    assert alice.api.post(url, {"months": 1}).status_code == 202
    return alice.api.get(url).json()["ends_at"]


def address(text, ids):
    for name, value in ids.items():
        text = text.replace(name, value)
    assert "<" not in text, f"tell the fixture how to make the ids of {text}"
    return f"/{PREFIX}{text}"


def _is_denial(row, table, organisation):
    """Of this organisation alone: no other is told anything."""
    if table not in ("core_auditentry", "core_auditfold") or row["organisation_id"] != organisation.pk:
        return False
    return row["action"] in ("access.denied", "")  # the row that is locked meanwhile has none


def rows(*, but_denials_of=None):
    """The whole database, but for when keys were last used, and for what one organisation's log says of who was refused."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            found[table] = sorted(
                repr(
                    [
                        value
                        for name, value in zip(names, row, strict=True)
                        if name not in ("last_used_at", "last_used_address")
                    ]
                )
                for row in cursor.fetchall()
                if but_denials_of is None or not _is_denial(dict(zip(names, row, strict=True)), table, but_denials_of)
            )
    return found


def test_its_owner_sees_each(alice, theirs, flow_master):
    """Or the 404 of the others would mean nothing. In one world: looking changes nothing."""
    flow_master.answers[theirs["<id:instance_id>"]] = {}
    seen = [text for method, text in WITH_IDS if method == "get"]
    answers = {text: alice.api.get(address(text, theirs)).status_code for text in seen}
    assert answers == {text: 403 if ("get", text) in OPERATORS else 200 for text in seen}


@pytest.mark.parametrize(("method", "text"), [(method, text) for method, text in WITH_IDS if method != "get"])
def test_its_owner_changes_it(alice, theirs, admin, flow_master, method, text):
    if "<name:member>" in text:
        (group,) = admin.groups.found.values()
        group.members.append(Member("reader-1", "reader", "10.0.0.7", ()))
    if text.endswith("/lake-loads/<id:load_id>/stop"):
        alice.api.post(address(text.replace("/stop", "/runs"), theirs), {})
    if text.endswith("/restore"):
        Instance.objects.unscoped("a test").update(state="isolated")
    if (method, text) == DELETION:
        emptied(alice.organisation)
    flow_master.answers[theirs["<id:instance_id>"]] = {}
    body = BODIES.get((method, text))
    if (method, text) in OF_WHAT_IS_PAID:
        ends_at = paid_until(alice, theirs)
        body = {**body, "ends_at": ends_at} if "ends_at" in body else body
    answer = getattr(alice.api, method)(address(text, theirs), body)
    assert answer.status_code in ((403,) if (method, text) in OPERATORS else (200, 201, 202, 204)), answer.content


def pdf_text(answer) -> str:
    return "".join(page.extract_text() for page in PdfReader(io.BytesIO(answer.getvalue())).pages)


def test_what_has_no_id_in_its_address_shows_nothing_of_another_organisation(charlie, theirs):
    secrets = {"alice", *(value for name, value in theirs.items() if name.startswith("<id:"))}
    for text in WITHOUT:
        answer = charlie.api.get(f"/{PREFIX}{text}")
        shown = pdf_text(answer) if answer.headers["Content-Type"] == "application/pdf" else answer.getvalue().decode()
        assert {secret for secret in secrets if secret in shown} == set(), text


@pytest.mark.parametrize("text", sorted(OF_NOBODY))
@pytest.mark.parametrize("broker", ["1", "99"])
def test_what_is_of_no_organisation_is_for_operators(alice, charlie, text, broker):
    address = text.replace("<int:broker>", broker).replace("<id:rebalance_id>", f"reb-{broker:0>12}")
    address = address.replace("<cluster:cluster>", "default" if broker == "1" else "other").replace(
        "<int:loss_id>", broker
    )
    address = address.replace("<id:instance_id>", f"ins-{broker:0>8}")
    for person in (alice, charlie):
        problem(person.api.post(f"/{PREFIX}{address}", {"reason": "gone"}), 403, "forbidden")


def test_every_body_in_the_table_belongs_to_an_endpoint():
    assert set(BODIES) <= set(WITH_IDS)
