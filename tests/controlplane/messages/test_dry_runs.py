"""Dry runs of messages: none is written and none deleted; what brokers would refuse is refused, in the same words."""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import replace

import pytest

from controlplane.core.models import AuditEntry
from controlplane.kafka import message_door
from controlplane.messages import outlook
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.test_instances_api import problem
from tests.controlplane.test_limited_keys import made

from .conftest import in_base64

DRY = "?dry_run=true"
VALUE = {"value": in_base64(b"hello"), "key": in_base64(b"k"), "headers": [["h", in_base64(b"v")]]}


@pytest.fixture
def dry(admin, orders):
    """Asks for a dry run: 200, and nothing was sent that changes. What it says."""

    def ask(call, url, body):
        logs = deepcopy(admin.groups.logs)
        admin.groups.rounds.clear()
        answer = call(f"{url}{DRY}", body)
        assert answer.status_code == 200, answer.content
        assert not set(admin.groups.rounds) & {"produce", "produce_several", "delete_before", "read"}
        assert admin.groups.logs == logs
        assert not AuditEntry.objects.unscoped("a test").filter(action__in=AUDITED).exists()
        return answer.json()

    return ask


AUDITED = ("message.produce", "topic.records.delete")


# --- writing ----------------------------------------------------------------------------------------------------------


def test_where_a_message_would_stand_and_how_large_it_is(alice, address, orders, dry, flow_master, instance):
    flow_master.answers[instance.id] = {"storage_full": False}
    orders(1, b"before")
    said = dry(alice.api.post, address, {**VALUE, "partition": 1})
    assert {name: pair[1] for name, pair in said["changes"].items()} == {
        "partition": 1, "offset": 1, "key_bytes": 1, "value_bytes": 5, "headers_bytes": 2, "header_count": 1,
        "batch_bytes": 78,
    }  # fmt: skip
    assert said["problems"] == []
    written = alice.api.post(address, {**VALUE, "partition": 1}).json()
    assert (written["partition"], written["offset"]) == (1, 1)


def test_a_partition_that_is_not_named_is_not_foretold(alice, address, dry):
    said = dry(alice.api.post, address, VALUE)
    assert not {"partition", "offset"} & set(said["changes"])
    assert said["problems"] == ["whether storage is full is not known now"]


@pytest.mark.parametrize(
    ("config", "body", "code"),
    [
        ({"max.message.bytes": "77"}, {**VALUE, "partition": 1}, "message_too_large"),
        ({"cleanup.policy": "compact"}, {"value": in_base64(b"v")}, "invalid_record"),
        ({"cleanup.policy": "compact,delete"}, {"value": None}, "invalid_record"),
        ({"message.timestamp.before.max.ms": "1000"}, {**VALUE, "timestamp_ms": 5}, "invalid_timestamp"),
        ({"message.timestamp.after.max.ms": "1000"}, {**VALUE, "timestamp_ms": 2**50}, "invalid_timestamp"),
    ],
)
def test_what_the_topic_does_not_take_is_refused(alice, address, admin, orders, config, body, code):
    admin.configs.setdefault(orders.physical, {}).update(config)
    problem(alice.api.post(f"{address}{DRY}", body), 400, code)
    assert not admin.groups.rounds["produce"]


def test_what_the_topic_takes_just_so_is_not_refused(alice, address, admin, orders, dry):
    now = int(time.time() * 1000)
    admin.configs.setdefault(orders.physical, {}).update(
        {"max.message.bytes": "78", "message.timestamp.before.max.ms": "60000", "cleanup.policy": "compact"}
    )
    dry(alice.api.post, address, {**VALUE, "timestamp_ms": now})
    admin.configs[orders.physical].update({"message.timestamp.type": "LogAppendTime"})
    dry(alice.api.post, address, {**VALUE, "timestamp_ms": 5})


def test_full_storage_and_replicas_out_of_sync_refuse_as_brokers_do(
    alice, address, admin, orders, flow_master, instance
):
    flow_master.answers[instance.id] = {"storage_full": True}
    full = problem(alice.api.post(f"{address}{DRY}", VALUE), 409, "storage_full")
    admin.messages.refusal = message_door.storage_full()
    assert full == problem(alice.api.post(address, VALUE), 409, "storage_full")
    flow_master.answers[instance.id] = {"storage_full": False}
    admin.configs.setdefault(orders.physical, {})["min.insync.replicas"] = "2"
    assert alice.api.post(f"{address}{DRY}", VALUE).status_code == 200  # one replica is all there are
    one = admin.topics[orders.physical]
    parts = tuple(replace(each, replicas=(1, 2), isr=(1,)) for each in one.partitions)
    admin.topics[orders.physical] = replace(one, partitions=parts)
    asked = problem(alice.api.post(f"{address}{DRY}", VALUE), 503, "cluster_unavailable")
    assert asked["detail"] == message_door.too_few_in_sync().detail
    layout = admin.topics[orders.physical]
    parts = tuple(replace(each, leader=None) for each in layout.partitions)
    admin.topics[orders.physical] = replace(layout, partitions=parts)
    problem(alice.api.post(f"{address}{DRY}", {**VALUE, "partition": 0}), 503, "cluster_unavailable")


@pytest.mark.parametrize(
    ("config", "body"),
    [
        ({"max.message.bytes": "77"}, VALUE),
        ({"cleanup.policy": "compact"}, {"value": in_base64(b"v")}),
        ({"message.timestamp.before.max.ms": "1000"}, {**VALUE, "timestamp_ms": 5}),
        ({"min.insync.replicas": "2"}, VALUE),
    ],
    ids=["size", "key", "time", "replicas"],
)
def test_of_several_reasons_full_storage_is_told_as_brokers_tell_it(
    alice, address, admin, orders, flow_master, instance, config, body
):
    flow_master.answers[instance.id] = {"storage_full": True}
    admin.configs.setdefault(orders.physical, {}).update(config)
    one = admin.topics[orders.physical]
    parts = tuple(replace(each, replicas=(1, 2), isr=(1,)) for each in one.partitions)
    admin.topics[orders.physical] = replace(one, partitions=parts)
    problem(alice.api.post(f"{address}{DRY}", body), 409, "storage_full")


@pytest.mark.parametrize(
    ("topic", "body", "status", "code"),
    [
        ("orders", {**VALUE, "partition": 9}, 400, "invalid"),
        ("orders", {"value": "no base64!"}, 400, "invalid"),
        ("orders", {}, 400, "invalid"),
        ("nothing", VALUE, 404, "topic_not_found"),
        ("__sluice_audit", VALUE, 409, "topic_reserved"),
    ],
)
def test_what_the_call_refuses_the_dry_run_refuses(alice, address, topic, body, status, code):
    url = address.replace("/orders/", f"/{topic}/")
    assert problem(alice.api.post(f"{url}{DRY}", body), status, code) == problem(
        alice.api.post(url, body), status, code
    )


# --- deleting ---------------------------------------------------------------------------------------------------------


def test_what_would_be_left_in_records_and_bytes(alice, deletion, orders, dry):
    for n in range(6):
        orders(n % 2, b"x")
    said = dry(alice.api.post, deletion, {"before": {"0": 2, "1": -1}})
    assert said["changes"] == {
        "partitions.0.first_offset": [0, 2],
        "partitions.0.records": [3, 1],
        "partitions.0.bytes": [300, 100],
        "partitions.1.first_offset": [0, 3],
        "partitions.1.records": [3, 0],
        "partitions.1.bytes": [300, 0],
    }
    assert said["problems"] == ["5 records (about 500 bytes, one replica counted) would be deleted for good"]


def test_groups_that_have_not_read_it_are_named_with_what_they_would_lose(
    alice, deletion, orders, admin, dry, instance
):
    for _ in range(4):
        orders(0, b"x")
    key = instance.id.removeprefix("ins-")
    place = (orders.physical, 0)
    admin.groups.found[f"{key}.slow"] = FakeGroup({place: 1})
    admin.groups.found[f"{key}.slower"] = FakeGroup({place: 0})
    admin.groups.found[f"{key}.soon"] = FakeGroup({place: 2})
    admin.groups.found[f"{key}.quick"] = FakeGroup({place: 4})
    admin.groups.found["another.slowest"] = FakeGroup({place: 0})
    said = dry(alice.api.post, deletion, {"before": {"0": 3}})
    assert [(each["names"], each["effect"]) for each in said["affected"]] == [
        (["slower"], "would lose 3 records that it has not read"),
        (["slow"], "would lose 2 records that it has not read"),
        (["soon"], "would lose 1 record that it has not read"),
    ]


def test_of_more_groups_than_are_asked_nothing_is_known(alice, deletion, orders, admin, dry, instance, monkeypatch):
    monkeypatch.setattr(outlook, "MOST_GROUPS", 0)
    orders(0, b"x")
    admin.groups.found[f"{instance.id.removeprefix('ins-')}.slow"] = FakeGroup({(orders.physical, 0): 0})
    said = dry(alice.api.post, deletion, {"before": {"0": 1}})
    assert said["affected"] == []
    assert said["problems"][1] == "who has still to read these records is not known: there are more than 0 groups"


def test_bytes_that_no_broker_says_are_not_guessed(alice, deletion, orders, admin, dry):
    orders(0, b"x")
    admin.backlogs.unknown.add((orders.physical, 0))
    said = dry(alice.api.post, deletion, {"before": {"0": -1}})
    assert said["changes"]["partitions.0.bytes"] == [None, 0]
    assert said["problems"] == ["1 record would be deleted for good"]


def test_where_nothing_would_go_nobody_is_asked_who_reads_it(alice, deletion, orders, admin, dry):
    orders(0, b"x")
    said = dry(alice.api.post, deletion, {"before": {"0": 0}})
    assert (said["changes"], said["problems"], said["affected"]) == ({}, [], [])
    assert not admin.groups.rounds["listed"]


def test_deletions_are_refused_as_the_call_is(alice, bob, deletion, admin, orders):
    orders(0, b"x")
    for person, body, status, code in (
        (alice, {"before": {"0": 2}}, 400, "offset_out_of_range"),
        (alice, {"before": {"3": 0}}, 400, "invalid"),
        (bob, {"before": {"0": 1}}, 403, "forbidden"),
    ):
        asked = problem(person.api.post(f"{deletion}{DRY}", body), status, code)
        assert asked == problem(person.api.post(deletion, body), status, code)
    problem(alice.api.post(f"{deletion}{DRY}", {"before": {"0": 1}, "dry_run": True}), 400, "invalid")
    admin.configs.setdefault(orders.physical, {})["cleanup.policy"] = "compact"
    problem(alice.api.post(f"{deletion}{DRY}", {"before": {"0": 1}}), 409, "topic_compacted")
    assert alice.api.post(f"{deletion}{DRY}", {"before": {"0": 0}}).json()["changes"] == {}  # nothing would go
    assert not admin.groups.rounds["delete_before"]


def test_a_key_for_messages_alone_is_told_how_many_groups_and_no_names(alice, deletion, orders, admin, instance):
    orders(0, b"x")
    admin.groups.found[f"{instance.id.removeprefix('ins-')}.slow"] = FakeGroup({(orders.physical, 0): 0})
    _, api = made(alice, scopes=["messages"])
    said = api.post(f"{deletion}{DRY}", {"before": {"0": 1}})
    assert said.status_code == 200, said.content
    assert "slow" not in said.content.decode()
    assert said.json()["affected"] == [
        {"who": "groups", "count": 1, "names": [], "effect": "would lose records that they have not read"}
    ]


def test_a_master_that_is_learning_does_not_know_whether_storage_is_full(alice, address, dry, flow_master, instance):
    flow_master.answers[instance.id] = {"storage_full": False, "learning": True}
    assert dry(alice.api.post, address, VALUE)["problems"] == ["whether storage is full is not known now"]
