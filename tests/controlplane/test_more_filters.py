"""Lists of keys, people, alarms, routes, rules, loads, budgets, invoices, operations and connections, narrowed by REST."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.accounts.models import ApiKey
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import Operation
from tests.controlplane.fakes import FakeGroup

from .alarms.rows import alarm_row
from .budgets.rows import budget_row
from .connections.conftest import connection, refused, rest
from .loads.rows import load_row
from .rows import LONG_AGO, access_key_row, custom_role_row
from .test_instances_api import URL, problem
from .test_list_filters import OPERATIONS, found

KEYS, MEMBERS = "/api/v1/api-keys", "/api/v1/members"


def key(person, name, **members):
    key_id = person.api.post(KEYS, {"name": name}).json()["id"]
    ApiKey.objects.unscoped("a test").filter(pk=key_id).update(**members)
    return key_id


class TestKeys:
    def test_by_state(self, alice):
        past = SYSTEM_CLOCK.now() - timedelta(days=1)
        ids = {
            "active": key(alice, "a"),
            "asleep": key(alice, "b", sso_until=past),
            "expired": key(alice, "c", expires_at=past, sso_until=past),
            "revoked": key(alice, "d", revoked_at=past, expires_at=past),
        }
        for state, key_id in ids.items():
            wanted = found(alice, KEYS, state=state)
            assert key_id in wanted
            assert not set(wanted) & (set(ids.values()) - {key_id}), state

    def test_that_were_not_used_since(self, alice, bob):
        never, old = key(alice, "x1"), key(alice, "x2", last_used_at=LONG_AGO)
        new = key(alice, "x3", last_used_at=LONG_AGO + timedelta(days=2))
        at = (LONG_AGO + timedelta(days=1)).date().isoformat()
        assert set(found(alice, KEYS, name_prefix="x", last_used_before=at)) == {never, old}
        assert new in found(alice, KEYS, name_prefix="x", last_used_before="2026-06-01")
        assert found(alice, KEYS, name_prefix="x", owner="Alice@example.com") != []
        assert found(alice, KEYS, name_prefix="x", owner="bob@example.com") == []

    def test_access_keys(self, alice):
        row = access_key_row(alice.organisation, alice.user)
        url = "/api/v1/access-keys"
        assert found(alice, url, name_prefix="sd", state="active", last_used_before="2026-06-01") == [row.id]
        assert found(alice, url, state="revoked") == []
        assert found(alice, url, state="expired") == []
        type(row).objects.unscoped("a test").update(expires_at=LONG_AGO + timedelta(days=90))
        assert (found(alice, url, state="expired"), found(alice, url, state="active")) == ([row.id], [])
        problem(alice.api.get(url, {"state": "lost"}), 400, "invalid")


def test_members_by_role_and_address(alice, bob, viewer):
    assert found(alice, MEMBERS, "email", role="owner") == ["alice@example.com"]
    assert found(alice, MEMBERS, "email", prefix="Bob") == ["bob@example.com"]
    own = custom_role_row(alice.organisation)
    membership = alice.organisation.memberships.get(user=viewer.user)
    membership.custom_role = own
    membership.save()
    assert found(alice, MEMBERS, "email", role="viewer") == [], "a role of their own stands in its place"
    assert found(alice, MEMBERS, "email", custom_role=own.id) == ["vera@example.com"]


def test_alarms(alice, instance):
    url = f"{URL}/{instance.id}/alarms"
    fires = alarm_row(instance, "alm-000000000001", name="storage", phase="firing").id
    off = alarm_row(instance, "alm-000000000002", name="route", watch="route_down", enabled=False).id
    assert found(alice, url, state="firing") == [fires]
    assert found(alice, url, watch="route_down") == [off]
    assert found(alice, url, enabled="false") == [off]
    assert found(alice, url, enabled="true", prefix="st") == [fires]
    assert found(alice, url, prefix="r", state="firing") == []


def test_routes(alice, instance):
    url = f"{URL}/{instance.id}/routes"
    assert alice.api.post(url, {"security": "ssl"}).status_code == 202
    assert found(alice, url, security="ssl") == ["r2"]
    assert found(alice, url, state="running") == ["default"]
    assert found(alice, url, state="closed") == []


def test_users(alice, instance):
    url = f"{URL}/{instance.id}/users"
    for name, mechanisms in (("ann", ["SCRAM-SHA-256"]), ("anton", ["SCRAM-SHA-512"]), ("bob", ["SCRAM-SHA-256"])):
        assert alice.api.post(url, {"name": name, "mechanisms": mechanisms}).status_code == 201
    assert found(alice, url, "name", prefix="an") == ["ann", "anton"]
    assert found(alice, url, "name", mechanism="SCRAM-SHA-512") == ["anton"]
    assert found(alice, url, "name", sort="-name") == ["bob", "anton", "ann"]


def test_throttle_rules(alice, instance):
    url = f"{URL}/{instance.id}/throttle-rules"
    of_topic = alice.api.post(url, {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 1}).json()["id"]
    of_client = alice.api.post(url, {"kind": "client", "clients": ["shop"], "produce_mib_per_s": 1}).json()["id"]
    assert found(alice, url, kind="client") == [of_client]
    assert found(alice, url, topic="orders") == [of_topic]
    assert found(alice, url, client="shop", kind="topic") == []
    assert found(alice, url, group="shop") == []


def test_groups_by_state(alice, instance, admin):
    name = instance.id.removeprefix("ins-")
    admin.groups.found[f"{name}.billing"] = FakeGroup()
    url = f"{URL}/{instance.id}/groups"
    (state,) = found(alice, url, "state")
    assert found(alice, url, "name", state=state) == ["billing"]
    assert found(alice, url, "name", state="Dead") == []
    problem(alice.api.get(url, {"state": "dead"}), 400, "invalid")


def test_loads(alice, instance):
    url = f"{URL}/{instance.id}/lake-loads"
    first = load_row(instance, "load-000000000001").id
    second = load_row(instance, "load-000000000002", topic="clicks", enabled=False).id
    assert found(alice, url, topic="orders") == [first]
    assert found(alice, url, enabled="false") == [second]
    assert found(alice, url, kind="bucket") == []


def test_budgets(alice, instance):
    every = budget_row(alice.organisation).id
    of_one = budget_row(alice.organisation, budget_id="bud-000000000002", name="one", instance=instance).id
    assert found(alice, "/api/v1/budgets", instance_id=instance.id) == [of_one]
    assert found(alice, "/api/v1/budgets", prefix="all") == [every]


def test_operations_by_kind_and_time(alice, instance):
    row = Operation.objects.for_organisation(alice.organisation).get()
    assert found(alice, OPERATIONS, kind="instance") == [row.id]
    assert found(alice, OPERATIONS, kind=row.kind) == [row.id]
    assert found(alice, OPERATIONS, kind="route") == []
    day = row.created_at.date()
    assert found(alice, OPERATIONS, **{"from": str(day), "to": str(day + timedelta(days=1))}) == [row.id]
    assert found(alice, OPERATIONS, to=str(day)) == []


def test_connections(alice, instance, admin):
    admin.connections.say(
        instance.id,
        1,
        connections=(connection("a"), connection("b", "10.0.0.9", sends=5), connection("b", principal="")),
        refused=(refused(), refused("192.0.2.9", "sasl", 2)),
        other_connections=rest(5, 7, 9),
        other_refused=4,
    )
    url = f"{URL}/{instance.id}/connections"
    assert found(alice, url, "address", client_id="b", principal="User:ann") == ["10.0.0.9"]
    assert found(alice, url, "client_id", address="10.0.0.7", route_id="default") == ["a", "b"]
    assert alice.api.get(url).json()["others"]["count"] == 5
    narrowed = alice.api.get(url, {"client_id": "b", "limit": 1}).json()
    assert narrowed["others"]["count"] == 1, "those that are not told may have another client id"
    url = f"{URL}/{instance.id}/refused-connections"
    assert found(alice, url, "address", reason="sasl") == ["192.0.2.9"]
    assert alice.api.get(url, {"reason": "sasl"}).json()["other_count"] == 0
    assert alice.api.get(url).json()["other_count"] == 4


@pytest.mark.parametrize("path", ["/audit", "/audit.csv", "/operations", "/instances/{}/events", "/instances/{}/audit"])
def test_a_span_that_ends_before_it_begins_is_refused(alice, instance, path):
    url = f"/api/v1{path.format(instance.id)}"
    body = problem(alice.api.get(url, {"from": "2026-11-22", "to": "2026-11-21"}), 400, "invalid")
    assert body["errors"] == [{"field": "from", "detail": "must not be later than to"}]
    both = problem(alice.api.get(url, {"from": "x", "to": "y"}), 400, "invalid")["errors"]
    assert [each["field"] for each in both] == ["from", "to"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (KEYS, "name_prefix"), (KEYS, "owner"), (MEMBERS, "prefix"), (MEMBERS, "custom_role"), (URL, "prefix"),
        (OPERATIONS, "kind"), ("/api/v1/invoices", "instance_id"), ("/api/v1/budgets", "prefix"), ("/api/v1/roles", "prefix"),
    ],
)  # fmt: skip
def test_what_no_database_takes_is_refused(alice, url, name):
    assert problem(alice.api.get(url, {name: "a\0"}), 400, "invalid")["errors"][0]["field"] == name
