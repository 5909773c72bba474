"""``?sort=`` of lists by REST: any field, both ways, page by page; what has no value last; what is no field of theirs refused."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest

from controlplane.accounts.models import ApiKey
from controlplane.api import sorting
from controlplane.core.models import Operation
from controlplane.groups import earlier
from controlplane.groups.earlier import Earlier
from controlplane.instances.models import Instance
from tests.controlplane.fakes import FakeGroup

from .alarms.rows import alarm_row
from .budgets.rows import budget_row
from .connections.conftest import connection, refused
from .rows import LONG_AGO, instance_row, reason_row
from .test_instances_api import URL, problem

KEYS, MEMBERS, OPERATIONS, BUDGETS = "/api/v1/api-keys", "/api/v1/members", "/api/v1/operations", "/api/v1/budgets"


def pages(person, url, limit=1, **query):
    """Every item, a page at a time."""
    found, cursor = [], None
    while True:
        answer = person.api.get(url, {**query, "limit": limit, **({"cursor": cursor} if cursor else {})})
        assert answer.status_code == 200, answer.content
        found += answer.json()["items"]
        cursor = answer.json()["next"]
        if cursor is None:
            return found
        assert len(found) < 100, "it ends"


def by(person, url, field, sort, **query):
    """One member of every item, the same page by page as at once."""
    at_once = [item[field] for item in pages(person, url, limit=200, sort=sort, **query)]
    assert [item[field] for item in pages(person, url, sort=sort, **query)] == at_once
    return at_once


@pytest.fixture
def instances(alice):
    rows = [instance_row(alice.organisation, f"ins-00000000000{number}") for number in (1, 2, 3, 4)]
    for row, name, gib in zip(rows, ("b", "a", "b", "c"), (30, 10.5, 20, 10.5), strict=True):
        row.name, row.storage_gib = name, gib
        row.save()
    return rows


def test_instances_both_ways_and_by_id_where_they_are_equal(alice, instances):
    first, second, third, fourth = (row.id for row in instances)
    assert by(alice, URL, "id", "name") == [second, first, third, fourth]
    assert by(alice, URL, "id", "-name") == [fourth, first, third, second]
    assert by(alice, URL, "id", "storage_gib") == [second, fourth, third, first]
    assert by(alice, URL, "id", "-storage_gib") == [first, third, second, fourth]
    assert by(alice, URL, "id", "-created_at") == [first, second, third, fourth], "all were made at once"
    assert by(alice, URL, "id", "name", prefix="b") == [first, third]


def test_instances_by_health_the_worst_first_and_those_that_do_not_run_last(alice, instances):
    first, second, third, fourth = (row.id for row in instances)
    reason_row(second, "storage_full", "critical")
    reason_row(second, "storage_nearly_full", "degraded")
    reason_row(third, "flow_unknown", "degraded")
    Instance.objects.unscoped("a test").filter(pk=first).update(state="isolated")
    assert by(alice, URL, "id", "health") == [second, third, fourth, first]
    assert by(alice, URL, "id", "-health") == [fourth, third, second, first]
    assert by(alice, URL, "id", "health", health="degraded") == [third]


def test_others_are_in_nobodys_order(charlie, instances):
    for sort in ("name", "-storage_gib"):
        assert charlie.api.get(URL, {"sort": sort}).json()["items"] == []


def test_a_page_is_right_while_rows_come_go_and_change(alice, instances):
    page = alice.api.get(URL, {"sort": "name", "limit": 2}).json()
    assert [item["name"] for item in page["items"]] == ["a", "b"]
    instance_row(alice.organisation, "ins-000000000000")  # "events": behind what was shown
    Instance.objects.unscoped("a test").filter(pk=instances[1].pk).update(name="0")  # was shown, and stays before
    Instance.objects.unscoped("a test").filter(pk=instances[0].pk).update(name="0")  # the last that was shown moves
    rest = alice.api.get(URL, {"sort": "name", "cursor": page["next"]}).json()["items"]
    assert [item["name"] for item in rest] == ["b", "c", "events"]


def test_what_was_never_used_comes_last_both_ways(alice):
    for name, days in (("old", 3), ("new", 1), ("never", None), ("never either", None)):
        key_id = alice.api.post(KEYS, {"name": name}).json()["id"]
        at = None if days is None else LONG_AGO - timedelta(days=days)
        ApiKey.objects.unscoped("a test").filter(pk=key_id).update(last_used_at=at)
    used = "2026-06-01"  # the key that asks is used now
    assert by(alice, KEYS, "name", "last_used_at", last_used_before=used)[:2] == ["old", "new"]
    assert by(alice, KEYS, "name", "-last_used_at", last_used_before=used)[:2] == ["new", "old"]
    for sort in ("last_used_at", "-last_used_at"):
        assert set(by(alice, KEYS, "name", sort, last_used_before=used)[2:]) == {"never", "never either"}


def test_members_by_what_their_people_are_called(alice, bob, viewer):
    for person, name in ((alice, "Zoe"), (bob, "Bob"), (viewer, "Vera")):
        person.user.name = name
        person.user.save()
    assert by(alice, MEMBERS, "name", "name") == ["Bob", "Vera", "Zoe"]
    assert by(alice, MEMBERS, "role", "-role") == ["viewer", "owner", "member"]
    assert by(alice, MEMBERS, "email", "-email")[0] == "vera@example.com"
    assert [item["email"] for item in pages(alice, MEMBERS)] == [
        "alice@example.com", "bob@example.com", "vera@example.com"
    ]  # fmt: skip


def test_operations_by_kind_and_not_in_two_orders(alice, instance):
    (first,) = Operation.objects.for_organisation(alice.organisation)
    for number, (kind, minute) in enumerate((("b", 2), ("a", None), ("c", 1), ("b", None)), 1):
        first.pk, first.kind = f"opr-00000000000{number}", kind
        first.finished_at = None if minute is None else LONG_AGO + timedelta(minutes=minute)
        first.save(force_insert=True)
    rows = Operation.objects.for_organisation(alice.organisation)
    rows.exclude(pk__startswith="opr-00000000000").update(finished_at=LONG_AGO, kind="d")
    assert by(alice, OPERATIONS, "kind", "kind") == ["a", "b", "b", "c", "d"]
    assert by(alice, OPERATIONS, "kind", "-kind") == ["d", "c", "b", "b", "a"]
    assert by(alice, OPERATIONS, "kind", "finished_at")[:3] == ["d", "c", "b"], "what has not ended comes last"
    assert by(alice, OPERATIONS, "kind", "-finished_at")[:3] == ["b", "c", "d"]
    body = problem(alice.api.get(OPERATIONS, {"sort": "kind", "order": "newest"}), 400, "invalid")
    assert body["errors"] == [{"field": "sort", "detail": "goes without `order`: say one of them"}]


@pytest.mark.parametrize("key", ["a\0b", "\ud800"])
def test_a_cursor_that_no_database_takes_is_refused(alice, key):
    cursor = base64.urlsafe_b64encode(json.dumps(["2026-01-01T00:00:00+00:00", key]).encode()).decode().rstrip("=")
    problem(alice.api.get(URL, {"cursor": cursor}), 400, "invalid")


def test_budgets_by_amount_to_the_cent(alice):
    for number, amount in enumerate(("900.10", "1000.00", "900.09")):
        budget_row(alice.organisation, budget_id=f"bud-00000000000{number}", amount=Decimal(amount))
    assert by(alice, BUDGETS, "amount", "amount") == ["900.09", "900.10", "1000.00"]
    assert by(alice, BUDGETS, "amount", "-amount") == ["1000.00", "900.10", "900.09"]


def test_alarms_by_state(alice, instance):
    for number, phase in enumerate(("ok", "firing", "no_data")):
        alarm_row(instance, f"alm-00000000000{number}", phase=phase)
    assert by(alice, f"{URL}/{instance.id}/alarms", "state", "state") == ["firing", "no_data", "ok"]


class TestTopics:
    @pytest.fixture
    def url(self, alice, instance):
        url = f"{URL}/{instance.id}/topics"
        for name, partitions in (("b", 1), ("a", 3), ("c", 3)):
            assert alice.api.post(url, {"name": name, "partitions": partitions}).status_code == 201
        return url

    def test_by_partitions_and_by_name(self, alice, url):
        assert by(alice, url, "name", "-partitions") == ["a", "c", "b"]
        assert by(alice, url, "name", "partitions") == ["b", "a", "c"]
        assert by(alice, url, "name", "-name") == ["c", "b", "a"]

    def test_by_size_with_the_size_of_each(self, alice, instance, admin, url):
        key = instance.id.removeprefix("ins-")
        admin.sizes.held |= {(f"{key}.a", 1): 700, (f"{key}.c", 0): 5}
        items = pages(alice, url, sort="-stored_bytes")
        assert [item["name"] for item in items] == ["a", "c", "b"]
        replicas = items[0]["replication_factor"]
        assert [item["stored_bytes"] for item in items] == [700 * replicas, 5 * replicas, 0]
        assert {item["stored_bytes"] for item in pages(alice, url)} == {None}, "nobody has asked brokers"

    def test_sizes_that_no_broker_tells_come_last(self, alice, instance, admin, url):
        admin.sizes.silent = {1, 2, 3}
        items = pages(alice, url, sort="-stored_bytes")
        assert [(item["name"], item["stored_bytes"]) for item in items] == [("a", None), ("b", None), ("c", None)]


class TestGroups:
    @pytest.fixture
    def url(self, instance, admin, monkeypatch):
        key = instance.id.removeprefix("ins-")
        for name in ("audit", "billing", "mails", "quiet"):
            admin.groups.found[f"{key}.{name}"] = FakeGroup()
        found = {"audit": Earlier(5, 60.0, 0), "billing": Earlier(900, 2.5, 0), "mails": Earlier(5, None, 0)}
        monkeypatch.setattr(earlier, "_TELLS", [lambda *_asked: found])
        return f"{URL}/{instance.id}/groups"

    def test_by_lag_as_it_was_a_minute_ago(self, alice, url):
        assert by(alice, url, "name", "-lag_messages") == ["billing", "audit", "mails", "quiet"]
        assert by(alice, url, "name", "lag_messages") == ["audit", "mails", "billing", "quiet"]
        assert by(alice, url, "name", "-lag_seconds") == ["audit", "billing", "mails", "quiet"]

    def test_the_age_of_a_lag_says_of_when_it_is(self, alice, url):
        items = {each["name"]: each for each in alice.api.get(url).json()["items"]}
        told = {name: (each["lag_seconds"], each["lag_seconds_at"]) for name, each in items.items()}
        assert told["audit"] == (60.0, "1970-01-01T00:00:00Z")
        assert told["mails"] == told["quiet"] == (None, None)
        assert "lag_seconds_at" not in alice.api.get(f"{url}/audit").json(), "there it is of this moment"

    def test_by_name_backwards_and_none_twice(self, alice, url):
        assert by(alice, url, "name", "-name") == ["quiet", "mails", "billing", "audit"]


class TestConnections:
    @pytest.fixture
    def url(self, instance, admin):
        admin.connections.say(
            instance.id,
            1,
            connections=(connection("b", sends=5), connection("a", "10.0.0.9", sends=1), connection("c", principal="")),
            refused=(refused(count=2, age_s=9), refused("192.0.2.9", "sasl", 7, age_s=99)),
        )
        return f"{URL}/{instance.id}"

    def test_by_any_member(self, alice, url):
        for sort, names in (("client_id", "abc"), ("-in_bytes_per_s", "bac"), ("address", "bca")):
            found = alice.api.get(f"{url}/connections", {"sort": sort}).json()["items"]
            assert "".join(row["client_id"] for row in found) == names, sort
        last = alice.api.get(f"{url}/connections", {"sort": "-principal"}).json()["items"][-1]
        assert (last["client_id"], last["principal"]) == ("c", None), "nobody knows who it is: last"

    def test_the_first_of_the_order_is_told_and_not_of_the_busiest(self, alice, url):
        answer = alice.api.get(f"{url}/connections", {"sort": "client_id", "limit": 1}).json()
        assert [row["client_id"] for row in answer["items"]] == ["a"]
        assert answer["others"]["count"] == 2

    def test_refused_ones(self, alice, url):
        counts = [
            row["count"] for row in alice.api.get(f"{url}/refused-connections", {"sort": "-count"}).json()["items"]
        ]
        assert counts == [7, 2]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("", "name, state, health, bandwidth_mib_per_s, storage_gib, partitions, created_at"),
        ("/topics", "name, partitions, replication_factor, stored_bytes"),
        ("/groups", "name, state, lag_messages, lag_seconds"),
        ("/alarms", "name, watch, state, since, created_at"),
    ],
)
@pytest.mark.parametrize("word", ["colour", "", "-", "--name", "+name", "name,state", "user__email", "NAME"])
def test_what_is_no_field_is_refused_with_those_that_there_are(alice, instance, path, fields, word):
    url = f"{URL}/{instance.id}{path}" if path else URL
    body = problem(alice.api.get(url, {"sort": word}), 400, "invalid")
    detail = f"must be one of {fields}, or one of them with a - before it"
    assert body["errors"] == [{"field": "sort", "detail": detail}]


def cursor(*members):
    return base64.urlsafe_b64encode(json.dumps(members).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("sort", "members"),
    [
        ("name", ()),
        ("name", ("sort", "name", "a")),
        ("name", ("sort", "name", "a", 1)),
        ("name", ("sort", "name", 1, "ins-1")),
        ("name", ("sort", "name", "a\0", "ins-1")),
        ("name", ("sort", "name", "a", "\ud800")),
        ("name", ("sort", "name", ["a"], "ins-1")),
        ("name", ("sort", "name", {"a": 1}, "ins-1")),
        ("name", ("sort", "name", True, "ins-1")),
        ("name", ("other", "name", "a", "ins-1")),
        ("storage_gib", ("sort", "storage_gib", "a", "ins-1")),
        ("storage_gib", ("sort", "storage_gib", float("nan"), "ins-1")),
        ("storage_gib", ("sort", "storage_gib", float("inf"), "ins-1")),
        ("partitions", ("sort", "partitions", 2**63, "ins-1")),
        ("partitions", ("sort", "partitions", 1.5, "ins-1")),
        ("created_at", ("sort", "created_at", "yesterday", "ins-1")),
        ("created_at", ("sort", "created_at", 7, "ins-1")),
        ("health", ("sort", "health", 7, "ins-1")),
        ("health", ("sort", "health", "a\0", "ins-1")),
        ("created_at", ("2026-05-02T00:00:00+00:00", "ins-1")),
    ],
)
def test_a_cursor_that_nobody_was_given_is_refused(alice, instances, sort, members):
    body = problem(alice.api.get(URL, {"sort": sort, "cursor": cursor(*members)}), 400, "invalid")
    assert body["errors"][0]["field"] == "cursor"


@pytest.mark.parametrize("amount", ["1e999999", "NaN", "0.001", "9" * 60, "1" + "0" * 30, ""])
def test_a_cursor_with_an_amount_that_no_column_holds_is_refused(alice, amount):
    budget_row(alice.organisation)
    query = {"sort": "amount", "cursor": cursor("sort", "amount", amount, "bud-1")}
    assert problem(alice.api.get(BUDGETS, query), 400, "invalid")["errors"][0]["field"] == "cursor"


def test_a_cursor_of_another_order_is_refused(alice, instances):
    following = alice.api.get(URL, {"sort": "name", "limit": 1}).json()["next"]
    body = problem(alice.api.get(URL, {"sort": "-name", "cursor": following}), 400, "invalid")
    assert body["errors"] == [{"field": "cursor", "detail": "is of another order than -name: begin again without it"}]
    problem(alice.api.get(URL, {"cursor": following}), 400, "invalid")
    plain = alice.api.get(URL, {"limit": 1}).json()["next"]
    problem(alice.api.get(URL, {"sort": "name", "cursor": plain}), 400, "invalid")


def test_what_is_equal_stands_by_its_key_in_both_directions():
    rows = [("a", 1), ("b", None), ("c", 1), ("d", 2)]
    for word, keys in (("x", "acdb"), ("-x", "dacb")):
        order = sorting.Order("x", word.startswith("-"))
        found = sorting.in_order(rows[::-1], order, value=lambda row: row[1], key=lambda row: row[0])
        assert "".join(key for key, _ in found) == keys


def test_a_page_without_an_order_leaves_nothing_out_however_a_database_sorts_signs():
    """As PostgreSQL may have it, for which signs count for less than letters."""
    listed, found, cursor = ["https://ab/", "https://a.d/", "https://a-e/"], [], None
    while len(found) < len(listed):
        asked = SimpleNamespace(query_params={"limit": "1", **({"cursor": cursor} if cursor else {})})
        page, cursor = sorting.known_page(asked, listed, {"issuer": str}, str)
        found += page
        if cursor is None:
            break
    assert found == ["https://a-e/", "https://a.d/", "https://ab/"]
