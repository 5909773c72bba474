"""Schemas by REST: given, tried, removed; messages are shown by them; they stay with their topic."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.kafka import topics
from controlplane.messages import selectors
from controlplane.schemas import services
from controlplane.schemas.models import MessageSchema
from controlplane.schemas.values import MOST_VALUES, Allowance
from quota.contracts.namespace import AUDIT_TOPIC
from tests.controlplane.messages.conftest import in_base64
from tests.controlplane.test_instances_api import problem

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "string"}, {"name": "cents", "type": "long"}],
}
AVRO = {"format": "avro", "definition": json.dumps(ORDER)}
PROTO = {"format": "protobuf", "definition": 'syntax = "proto3"; message Order { string id = 1; } message Line {}'}
NOTHING = {"key": None, "value": None}


@pytest.fixture
def url(instance, orders):
    return f"/api/v1/instances/{instance.id}/topics/orders/schemas"


def given(alice, url, part="value", **members):
    answer = alice.api.put(f"{url}/{part}", members or AVRO)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_schema_that_is_given_is_told(alice, url):
    assert alice.api.get(url).json() == {"items": []}
    shown = given(alice, url)
    assert shown.pop("updated_at").endswith("Z")
    assert shown == {"part": "value", "format": "avro", "framing": "none", "message": "", "messages": [], **AVRO}
    given(alice, url, "key", **PROTO, framing="registry", message="Line")
    found = alice.api.get(url).json()["items"]
    assert [(each["part"], each["messages"], each["message"]) for each in found] == [
        ("key", ["Order", "Line"], "Line"),
        ("value", [], ""),
    ]


def test_messages_are_shown_by_the_schemas_of_their_parts(alice, url, address, orders):
    orders(0, b"\x02a\x96\x02", key=b"\n\x01k")
    orders(0, b"no order", key=None)
    orders(0, None, key=b"\n\x01l")
    assert [row["decoded"] for row in alice.api.get(address).json()["items"]] == [NOTHING] * 3
    given(alice, url)
    given(alice, url, "key", **PROTO)
    expected = [
        {
            "key": {"value": {"id": "k"}, "problem": None},
            "value": {"value": {"id": "a", "cents": 139}, "problem": None},
        },
        {"key": None, "value": {"value": None, "problem": "it ends within a value of 55 bytes"}},
        {"key": {"value": {"id": "l"}, "problem": None}, "value": None},
    ]
    found = alice.api.get(address, {"start": "oldest"}).json()["items"]
    assert [row["decoded"] for row in found] == expected
    assert [row["value"] for row in found] == [in_base64(b"\x02a\x96\x02"), in_base64(b"no order"), None]
    one = alice.api.get(f"{address}/0/0").json()
    assert (one["decoded"], one["value"]) == (expected[0], in_base64(b"\x02a\x96\x02"))
    assert alice.api.delete(f"{url}/value").status_code == 204
    assert alice.api.get(f"{address}/0/0").json()["decoded"] == {**expected[0], "value": None}


def test_a_value_that_a_page_cuts_is_read_whole(alice, url, address, orders, monkeypatch):
    monkeypatch.setattr(selectors, "PAGE_BYTES", 10)
    orders(0, b"\x28" + b"x" * 20 + b"\x02")
    given(alice, url)
    [row] = alice.api.get(address).json()["items"]
    assert (row["cut"], row["decoded"]["value"]["value"]) == (True, {"id": "x" * 20, "cents": 1})


def test_all_messages_of_a_page_share_what_may_be_shown(alice, url, address, orders, monkeypatch):
    monkeypatch.setattr(selectors, "Allowance", lambda: Allowance(7))
    for _ in range(3):
        orders(0, b"\x02a\x02")
    given(alice, url)
    found = [row["decoded"]["value"] for row in alice.api.get(address, {"start": "oldest"}).json()["items"]]
    assert [each["problem"] for each in found] == [None, None, "it holds more values than can be shown here"]
    assert MOST_VALUES > 7


def test_who_may_not_read_messages_is_shown_nothing_of_them_by_a_schema_either(alice, viewer, url, address, orders):
    orders(0, b"\x02a\x02")
    given(alice, url)
    [row] = viewer.api.get(address).json()["items"]
    assert (row["masked"], row["decoded"]) == (True, NOTHING)
    assert viewer.api.get(url).json()["items"][0]["format"] == "avro"
    assert viewer.api.put(f"{url}/value", AVRO).status_code == 403
    assert viewer.api.delete(f"{url}/value").status_code == 403


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({**AVRO, "definition": "{"}, "definition", "is no Avro schema"),
        ({**PROTO, "definition": "message"}, "definition", "schema.proto:1:8"),
        ({**PROTO, "message": "Oder"}, "message", "has no message Oder: it has Order, Line"),
        ({**AVRO, "message": "Order"}, "message", "is of Protobuf"),
        ({**AVRO, "format": "json"}, "format", "must be one of avro, protobuf"),
        ({**AVRO, "framing": "glue"}, "framing", "must be one of none, registry"),
        ({"format": "avro"}, "definition", "required"),
        ({**AVRO, "definition": "\0"}, "definition", ""),
    ],
)
def test_what_is_wrong_is_said_beside_its_member(alice, url, body, field, says):
    answer = problem(alice.api.put(f"{url}/value", body), 400, "invalid")
    [refused] = answer["errors"]
    assert refused["field"] == field
    assert says in refused["detail"]
    assert alice.api.get(url).json()["items"] == []


def test_a_dry_run_says_what_would_change_and_changes_nothing(alice, url):
    changes = alice.api.put(f"{url}/value?dry_run=true", AVRO).json()["changes"]
    assert changes["format"] == [None, "avro"]
    assert alice.api.get(url).json()["items"] == []
    assert alice.api.delete(f"{url}/value?dry_run=true").status_code == 404
    given(alice, url)
    assert alice.api.delete(f"{url}/value?dry_run=true").json()["changes"]["format"] == ["avro", None]
    assert alice.api.put(f"{url}/value?dry_run=true", AVRO).json()["changes"] == {}
    assert len(alice.api.get(url).json()["items"]) == 1


def test_what_is_not_there_is_not_found(alice, charlie, url, instance):
    problem(alice.api.delete(f"{url}/value"), 404, "schema_not_found")
    other = url.replace("orders", "payments")
    assert alice.api.get(other).status_code == 404
    assert alice.api.put(f"{other}/value", AVRO).status_code == 404
    assert alice.api.put(f"{url}/header", AVRO).status_code == 404
    for answer in (charlie.api.get(url), charlie.api.put(f"{url}/value", AVRO), charlie.api.delete(f"{url}/value")):
        assert answer.status_code == 404
    reserved = alice.api.put(f"/api/v1/instances/{instance.id}/topics/{AUDIT_TOPIC}/schemas/value", AVRO)
    problem(reserved, 409, "topic_reserved")


def test_changes_are_on_the_audit_trail(alice, url, instance):
    given(alice, url)
    given(alice, url, **AVRO, framing="registry")
    alice.api.delete(f"{url}/value")
    rows = AuditEntry.objects.unscoped("a test").filter(action__startswith="topic.schema").order_by("pk")
    assert [(row.action, row.target, row.detail["part"]) for row in rows] == [
        ("topic.schema.set", f"{instance.id}/orders", "value"),
        ("topic.schema.set", f"{instance.id}/orders", "value"),
        ("topic.schema.delete", f"{instance.id}/orders", "value"),
    ]
    assert rows[1].detail["framing"] == {"from": "none", "to": "registry"}
    assert set(rows[1].detail) == {"part", "framing"}
    assert rows[0].detail["definition"]["to"].startswith("sha256:"), "64 KiB of it are no line of a trail"


def test_schemas_go_with_their_topic_and_another_of_its_name_begins_without(alice, url, address, orders, admin):
    given(alice, url)
    topic = url.removesuffix("/schemas")
    assert alice.api.delete(topic).status_code == 204
    assert MessageSchema.objects.unscoped("a test").count() == 0


def test_a_topic_that_a_client_has_deleted_and_made_again_begins_without(alice, url, address, orders, instance):
    given(alice, url)
    MessageSchema.objects.unscoped("a test").update(topic_id="of the one before")
    orders(0, b"\x02a\x02")
    assert alice.api.get(url).json() == {"items": []}
    assert alice.api.get(address).json()["items"][0]["decoded"] == NOTHING
    assert services.tidy() == 0, "too young: a broker may not know better"
    MessageSchema.objects.unscoped("a test").update(updated_at=SYSTEM_CLOCK.now() - timedelta(hours=1))
    assert services.tidy() == 1


def test_a_schema_that_is_taken_no_more_is_said_and_can_be_removed(alice, url, address, orders):
    given(alice, url)
    MessageSchema.objects.unscoped("a test").update(definition='{"type": "nothing"}')
    orders(0, b"\x02a\x02")
    [row] = alice.api.get(address).json()["items"]
    assert row["decoded"]["value"]["problem"].startswith("its schema is no Avro schema")
    assert alice.api.get(url).json()["items"][0]["messages"] == []
    assert alice.api.delete(f"{url}/value").status_code == 204


def test_a_key_for_messages_sets_schemas_and_one_that_reads_does_not(alice, url):
    def by(*scopes):
        made = alice.api.post("/api/v1/api-keys", {"name": "k", "scopes": list(scopes)}).json()
        return replace(alice, key=made["key"]).api

    assert by("messages").put(f"{url}/value", AVRO).status_code == 200
    assert by("read", "topics").put(f"{url}/value", AVRO).status_code == 403
    assert by("read", "topics").get(url).status_code == 403


def test_a_cluster_that_gives_topics_no_ids_has_no_schemas(alice, url, address, orders, admin, monkeypatch):
    orders(0, b"\x02a\x02")
    got = topics.get
    monkeypatch.setattr(topics, "get", lambda *of, **how: replace(got(*of, **how), id=""))
    assert alice.api.get(url).json() == {"items": []}
    assert alice.api.put(f"{url}/value", AVRO).status_code == 501
    assert alice.api.get(address).json()["items"][0]["decoded"] == NOTHING
