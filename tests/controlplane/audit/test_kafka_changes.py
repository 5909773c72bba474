"""What Kafka clients change stands in the audit trail of the organisation: once, bounded, whatever becomes of the worker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core.cache import cache

from controlplane.clusters.models import ChangesRead
from controlplane.core.audit_folds import Most
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.models import AuditEntry
from controlplane.instances import kafka_changes
from controlplane.instances.models import Instance
from controlplane.kafka import changes
from quota.contracts.audit import CHANGES_TOPIC, AuditKind, AuditRecord

PLACE = CHANGES_TOPIC, 0
NOON_MS = 1_795_348_800_000


class Topic:
    """The cluster's `__changes`."""

    def __init__(self, admin, instance):
        self.groups, self.number = admin.groups, 0
        admin.create(CHANGES_TOPIC, partitions=1, replication_factor=3, config={})
        self.usual = AuditRecord(
            NOON_MS,
            1,
            AuditKind.REQUEST,
            "NONE",
            "10.0.0.7",
            "default",
            principal="User:ann",
            client_id="admin-1",
            api="CREATE_TOPICS",
            resource="TOPIC:orders",
            instance=instance.id,
        )

    def write(self, **members):
        self.number += 1
        record = replace(self.usual, **{"time_ms": NOON_MS + 1_000 * self.number, **members})
        self.again(record.value())
        return record

    def again(self, value):
        self.groups.write(PLACE, NOON_MS, value)


@pytest.fixture
def topic(admin, instance):
    return Topic(admin, instance)


def entries(person):
    rows = AuditEntry.objects.for_organisation(person.organisation).filter(action__startswith="kafka.")
    return list(rows.order_by("pk"))


def read(*_args):
    return kafka_changes.changes_read_all()


def test_a_change_says_who_what_from_where_and_with_which_client(alice, topic, instance):
    topic.write()
    assert read() == 1
    [entry] = entries(alice)
    assert (entry.actor, entry.action, entry.target, entry.address) == (
        "User:ann",
        "kafka.create_topics",
        f"{instance.id}/orders",
        "10.0.0.7",
    )
    assert entry.at.timestamp() * 1000 == NOON_MS + 1_000
    assert entry.detail == {
        "principal": "User:ann",
        "client_id": "admin-1",
        "resource": "TOPIC:orders",
        "route": "default",
        "broker": 1,
        "kind": "TOPIC",
    }
    shown = alice.api.get("/api/v1/audit", {"action": "kafka"}).json()["items"][0]
    assert (shown["actor"], shown["object"], shown["source"]) == ("User:ann", f"{instance.id}/orders", "10.0.0.7")


@pytest.mark.parametrize(
    "members",
    [
        {"outcome": "TOPIC_AUTHORIZATION_FAILED"},
        {"kind": AuditKind.DENIAL},
        {"kind": AuditKind.CONNECTION, "outcome": "accepted"},
        {"instance": None},
        {"instance": "ins-zzzzzzzz"},
    ],
)
def test_what_changed_nothing_or_is_nobodys_is_no_entry(alice, topic, members):
    topic.write(**members)
    assert read() == 1
    assert entries(alice) == []


def test_each_change_is_told_however_alike_they_are(alice, topic):
    for _ in range(3):
        topic.write(api="INCREMENTAL_ALTER_CONFIGS")
    topic.write(api="CREATE_ACLS", resource=None)
    read()
    assert [entry.action for entry in entries(alice)] == [*["kafka.incremental_alter_configs"] * 3, "kafka.create_acls"]


def test_what_a_broker_writes_twice_is_told_once(alice, topic):
    record = topic.write()
    read()
    topic.again(record.value())
    topic.again(record.value())
    assert read() == 2
    assert len(entries(alice)) == 1


def test_a_worker_that_dies_in_between_leaves_neither_a_gap_nor_a_twin(alice, topic, monkeypatch):
    for _ in range(3):
        topic.write()
    real, calls = kafka_changes.record_once, []

    def die(**options):
        calls.append(options)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(**options)

    with monkeypatch.context() as patch:
        patch.setattr(kafka_changes, "record_once", die)
        with pytest.raises(KeyboardInterrupt):
            read()
    assert (entries(alice), ChangesRead.objects.get().offset) == ([], 0)
    read()
    assert (len(entries(alice)), ChangesRead.objects.get().offset) == (3, 3)
    assert read() == 0


def test_of_two_workers_at_once_one_writes(alice, topic, instance, monkeypatch):
    topic.write()
    real = changes.portion

    def slow(*args, **options):
        found = real(*args, **options)
        monkeypatch.setattr(changes, "portion", real)
        assert read() == 1, "the other one is faster"
        return found

    monkeypatch.setattr(changes, "portion", slow)
    assert kafka_changes.changes_read(instance.cluster) == 0
    assert len(entries(alice)) == 1


def test_a_loop_of_a_client_does_not_fill_the_log(alice, topic, monkeypatch):
    monkeypatch.setattr(kafka_changes, "MOST", Most(of_actor=3, of_all=5))
    for number in range(10):
        topic.write(resource=f"TOPIC:t{number}")
    for number in range(10):
        topic.write(principal="User:bob", resource=f"TOPIC:t{number}")
    read()
    told = [(entry.actor, entry.target.rpartition("/")[2]) for entry in entries(alice)]
    assert told == [
        ("User:ann", "t0"),
        ("User:ann", "t1"),
        ("User:ann", "t2"),
        ("User:ann", "more"),
        ("User:bob", "t0"),
        ("system", "more"),
    ]


def test_records_that_a_program_purges_all_the_time_are_one_entry_an_hour(alice, topic):
    for _ in range(50):
        topic.write(api="DELETE_RECORDS", resource="TOPIC:app-repartition")
    read()
    assert [entry.action for entry in entries(alice)] == ["kafka.delete_records"]


def test_what_cannot_be_read_stops_nothing(alice, topic):
    topic.again(b"nonsense")
    topic.again(b'{"version": 99}')
    topic.write(principal="User:a\0nn", resource="TOPIC:" + "x" * 250)
    assert read() == 3
    [entry] = entries(alice)
    assert entry.actor == "User:a\N{REPLACEMENT CHARACTER}nn"


def test_another_clusters_brokers_say_nothing_of_an_instance(alice, topic, instance):
    from controlplane.clusters.models import PhysicalCluster

    other = PhysicalCluster.objects.create(name="second", zookeeper_hosts="127.0.0.1:1/second")
    topic.write()
    assert kafka_changes.changes_read(other) == 1
    assert entries(alice) == []


def test_it_is_said_where_nothing_was_ever_read_of_an_instance(alice, charlie, topic, client):
    def said():
        client.force_login(alice.user)
        return "have recorded none yet" in client.get(f"/{alice.organisation.id}/audit").content.decode()

    read()
    assert said(), "the topic is there, and nobody has changed anything"
    assert not kafka_changes.some_have_told_none(charlie.organisation), "who has no instance misses nothing"
    topic.write()
    read()
    assert not said()


def test_each_organisation_reads_its_own(alice, charlie, topic, instance):
    topic.write()
    read()
    assert (len(entries(alice)), len(entries(charlie))) == (1, 0)


def test_a_topic_that_is_not_there_or_was_made_anew_is_no_trouble(alice, admin, instance, topic):
    ChangesRead.objects.update_or_create(cluster=instance.cluster, defaults={"offset": 1_000})
    topic.write()
    assert read() == 1
    assert ChangesRead.objects.get().offset == 1
    admin.delete(CHANGES_TOPIC)
    assert read() == 0


def test_a_cluster_that_is_away_is_read_later(alice, topic, instance, monkeypatch, caplog):
    caplog.set_level("DEBUG")
    topic.write()

    def away(*_args, **_options):
        raise ClusterUnavailable("no")

    with monkeypatch.context() as patch:
        patch.setattr(changes, "portion", away)
        assert read() == 0
    assert "is not read" in caplog.text
    assert read() == 0, "nobody waits for it again at once"
    cache.delete(f"kafka-changes-away:{instance.cluster_id}")
    assert read() == 1
    assert Instance.objects.unscoped("a test").count() == 1
