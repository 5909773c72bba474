"""Messages that have expired, looked at in the table that `lake_load` has made of them: a real broker, Spark's own Delta table.

The database is stood in for: the test says which loads there are. Everything else is what a process of the control plane has.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition

from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import Invalid, NotFound
from controlplane.instances.models import InstanceState
from controlplane.kafka import client, group_door, message_door
from controlplane.loads import tables
from controlplane.loads.models import Load
from controlplane.messages import debts, selectors
from controlplane.messages.selectors import Start, Wanted
from controlplane.stack.metering import absence
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import TIMEOUT_S, admin, create_topic
from tests.support.processes import HOST, SECRET

from .test_loads import write
from .world import running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),  # once, when Delta and Spark's Kafka source must be fetched first; a minute without
    pytest.mark.skipif(bool(absence()), reason=absence() or "-"),
]
CLUSTER = ClusterAddress(0, "")
TOPIC, LOAD = "orders", "load-000000000001"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with running(tmp_path_factory.mktemp("expired")) as made:
        made.new_tenant()
        yield made


@pytest.fixture
def look(world, monkeypatch):
    """`selectors.messages_page` and `message_get` for the tenant; the tables are those of `world.load`."""
    asks = client.KafkaAdmin(f"{HOST}:{world.inside}", Identification(credential(SECRET, "controlplane")))
    tree = zookeeper.KazooTree(world.zookeeper, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    kept = {}
    monkeypatch.setattr(client, "admin", lambda _cluster: asks)
    monkeypatch.setattr(group_door, "door", lambda _cluster: group_door.KafkaGroups(CLUSTER, asks))
    monkeypatch.setattr(message_door, "door", lambda _cluster: message_door.KafkaMessages(asks))
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)
    monkeypatch.setattr(
        debts, "cache", SimpleNamespace(get=kept.get, set=lambda key, value, _s: kept.update({key: value}))
    )
    known = SimpleNamespace(id=world.tenant.id, cluster=SimpleNamespace(address=CLUSTER), state=InstanceState.RUNNING)
    monkeypatch.setattr(selectors, "instance_get", lambda **_: known)
    monkeypatch.setattr(selectors, "decoders_of", lambda _instance, _topic: {})
    monkeypatch.setattr(tables, "has_loads", lambda _instance, _topic: True)

    def candidates(_instance, topic, topic_id):
        assert tables.as_in_tables(topic_id) == world.topic_id(topic), "the table has the id as Spark writes it"
        return [Load(id=LOAD, kind="folder", folder=world.uri(topic), topic=topic)]

    monkeypatch.setattr(tables, "candidates", candidates)
    asked = {"organisation": None, "instance_id": world.tenant.id, "topic": TOPIC, "may_read": True, "or_lake": True}
    yield SimpleNamespace(
        page=lambda **wanted: selectors.messages_page(**asked, wanted=Wanted(**wanted)),
        get=lambda partition, offset: selectors.message_get(**asked, partition=partition, offset=offset),
    )
    tree.close()


def as_read(message):
    return (message.partition, message.offset, message.timestamp_ms, message.key, message.value, list(message.headers))


def pages(look, **wanted):
    found, position = [], None
    while True:
        page = look.page(**wanted, position=position, limit=11)
        found += page.messages
        if page.following is None:
            return found
        position = page.following


def test_what_was_deleted_from_the_topic_is_read_from_the_table_and_then_goes_on(world, look):
    began = time.monotonic()
    create_topic(world.tenant, TOPIC, 2, factor=1, retention_ms="-1")
    write(world, TOPIC, 80)
    loaded = world.load(TOPIC, "--schema", "inferred")
    print(f"loaded after {time.monotonic() - began:.1f} s")
    assert loaded["status"] == 0, loaded
    write(world, TOPIC, 20, from_number=80)
    records = {(r[0], r[1]): (*r[:3], *r[4:]) for r in world.records(TOPIC)}

    client_ = admin(world.tenant)
    [future] = client_.delete_records([TopicPartition(TOPIC, 0, 30)], request_timeout=TIMEOUT_S).values()
    future.result(TIMEOUT_S)
    with pytest.raises(Invalid):
        selectors.messages_page(
            organisation=None, instance_id=world.tenant.id, topic=TOPIC, may_read=True,
            wanted=Wanted(partition=0, offset=5),
        )  # fmt: skip

    began = time.monotonic()
    found = pages(look, partition=0, offset=5)
    print(f"{len(found)} messages over pages of 11 in {time.monotonic() - began:.1f} s")
    assert [as_read(message) for message in found] == [records[0, offset] for offset in range(5, 50)]
    assert [message.load_id for message in found] == [LOAD] * 25 + [""] * 20
    began = time.monotonic()
    assert as_read(look.get(0, 3)) == records[0, 3]
    print(f"one message in {time.monotonic() - began:.1f} s")
    assert [message.offset for message in look.page(partition=0, start=Start.OLDEST, limit=2).messages] == [30, 31]
    page = look.page(partition=0, offset=20, limit=5)
    assert [message.offset for message in look.page(position=page.older, limit=50).messages] == list(range(19, -1, -1))

    # Beyond what was loaded: offsets 40 to 44 are in neither.
    [future] = client_.delete_records([TopicPartition(TOPIC, 0, 45)], request_timeout=TIMEOUT_S).values()
    future.result(TIMEOUT_S)
    with pytest.raises(Invalid) as refused:
        look.page(partition=0, offset=42)
    assert refused.value.members == {"first_offset": 45, "end_offset": 50}
    with pytest.raises(NotFound):
        look.get(0, 42)
    ends = look.page(partition=0, offset=35, limit=50)
    assert ([message.offset for message in ends.messages], ends.following) == (list(range(35, 40)), None)

    again = world.load(TOPIC, "--skip-expired")
    assert again["status"] == 0, again
    found = pages(look, partition=0, offset=35)
    assert [message.offset for message in found] == [35, 36, 37, 38, 39, 45, 46, 47, 48, 49]
    assert [bool(message.load_id) for message in found] == [True] * 5 + [False] * 5
