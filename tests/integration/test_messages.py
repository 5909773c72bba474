"""The control plane looks at tenants' messages, writes and deletes them: on real brokers, on the tenant's bandwidth."""

from __future__ import annotations

import os
import time
import warnings
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from crc32c import crc32c

from controlplane.clusters import zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import BandwidthUsedUp, Conflict, Invalid, LimitReached, NotFound
from controlplane.instances.models import InstanceState
from controlplane.kafka import client, group_door, message_door
from controlplane.messages import debts, selectors, services
from controlplane.messages.looking import Filter
from controlplane.messages.selectors import Start, Wanted
from dataplane.records.batch import Record, build_batch
from quota.contracts.identity import credential
from quota.contracts.instance import MIB, Limits
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.asks import produce as produce_request
from tests.integration.clients import QUIET, create_topic, produce, read_all
from tests.support.processes import HOST, SECRET
from tests.support.waiting import promised, wait_for
from tests.support.wire import Wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaProducer

pytestmark = pytest.mark.integration

CLUSTER = ClusterAddress(0, "")
TOPIC = "orders"
KIB = 1024


@pytest.fixture
def at(cluster, monkeypatch, patient_doors):
    """As a process of the control plane, but for its database and its cache: a function that takes the tenant's place."""
    bootstrap = ",".join(f"{HOST}:{broker.ports['internal']}" for broker in cluster.brokers.values())
    asks = client.KafkaAdmin(bootstrap, Identification(credential(SECRET, "controlplane")))
    hosts = ",".join(f"{host}:{port}" for host, port in cluster.zookeeper.hosts)
    tree = zookeeper.KazooTree(hosts, access_by_secret((SECRET,), Party.CONTROL_PLANE))
    tree.wait_connected(30)
    kept = {}
    trail = []
    monkeypatch.setattr(client, "admin", lambda _cluster: asks)
    monkeypatch.setattr(group_door, "door", lambda _cluster: group_door.KafkaGroups(CLUSTER, asks))
    monkeypatch.setattr(message_door, "door", lambda _cluster: message_door.KafkaMessages(asks))
    monkeypatch.setattr(zookeeper, "tree", lambda _cluster: tree)
    monkeypatch.setattr(
        debts, "cache", SimpleNamespace(get=kept.get, set=lambda key, value, _s: kept.update({key: value}))
    )
    monkeypatch.setattr(services.audit, "record", lambda **entry: trail.append(entry))

    def place(tenant):
        known = SimpleNamespace(id=tenant.id, cluster=SimpleNamespace(address=CLUSTER), state=InstanceState.RUNNING)
        monkeypatch.setattr(selectors, "instance_get", lambda **_: known)
        monkeypatch.setattr(selectors, "decoders_of", lambda _instance, _topic: {})
        monkeypatch.setattr(services, "instance_running_get", lambda **_: known)
        return SimpleNamespace(
            page=lambda **wanted: selectors.messages_page(
                organisation=None, instance_id=tenant.id, topic=TOPIC, wanted=Wanted(**wanted), may_read=True
            ),
            get=lambda partition, offset: selectors.message_get(
                organisation=None, instance_id=tenant.id, topic=TOPIC, partition=partition, offset=offset, may_read=True
            ),
            produce=lambda **message: services.message_produce(
                organisation=None, actor="a", instance_id=tenant.id, topic=TOPIC, **message
            ),
            produce_several=lambda messages: services.messages_produce(
                organisation=None, actor="a", instance_id=tenant.id, topic=TOPIC, messages=messages
            ),
            delete=lambda before, **how: services.records_delete(
                organisation=None, actor="a", instance_id=tenant.id, topic=TOPIC, before=before, is_owner=True, **how
            ),
            trail=trail,
        )

    yield place
    tree.close()


def offsets(page):
    return [(message.partition, message.offset) for message in page.messages]


def stamped(tenant, rows):
    """(partition, ms, key, value), one batch each."""
    producer = Producer({"bootstrap.servers": tenant.bootstrap, "acks": "all", **QUIET})
    for partition, ms, key, value in rows:
        producer.produce(TOPIC, value, key, partition, timestamp=ms, headers=[("from", b"shop"), ("empty", None)])
        assert producer.flush(20) == 0


def test_a_topic_is_looked_through_from_either_end_from_an_offset_and_from_a_time(tenant, at):
    create_topic(tenant, TOPIC, partitions=2, retention_ms="-1")  # its records are years old
    rows = [(n % 2, 1_700_000_000_000 + n, f"k{n % 3}".encode(), f"value {n}".encode()) for n in range(10)]
    stamped(tenant, rows)
    here = at(tenant)
    newest = here.page(limit=4)
    assert [message.value for message in newest.messages] == [b"value 9", b"value 8", b"value 7", b"value 6"]
    assert newest.messages[0].headers == (("from", b"shop"), ("empty", None))
    rest = here.page(position=newest.following)
    assert [message.value for message in rest.messages] == [f"value {n}".encode() for n in range(5, -1, -1)]
    assert rest.following is None
    assert [m.value for m in here.page(start=Start.OLDEST, limit=3).messages] == [b"value 0", b"value 1", b"value 2"]
    assert offsets(here.page(partition=1, offset=3)) == [(1, 3), (1, 4)]
    assert [m.value for m in here.page(timestamp_ms=1_700_000_000_008).messages] == [b"value 8", b"value 9"]
    keyed = here.page(filter=Filter(key=b"k2"))
    assert [message.value for message in keyed.messages] == [b"value 8", b"value 5", b"value 2"]
    assert here.page(filter=Filter(text=b"ue 4")).messages[0].offset == 2
    with pytest.raises(Invalid) as refused:
        here.page(partition=0, offset=6)
    assert (refused.value.code, refused.value.members) == ("offset_out_of_range", {"first_offset": 0, "end_offset": 5})


@pytest.mark.parametrize("start", [Start.NEWEST, Start.OLDEST])
def test_page_after_page_brings_each_message_once(tenant, at, start):
    """Stretches of one client follow each other quickly: none may be answered with what was fetched for the one before."""
    create_topic(tenant, TOPIC, partitions=3)
    written = produce(tenant, TOPIC, [b"%d" % n for n in range(400)], linger_ms=0, batch_num_messages=5)
    here, shown, position = at(tenant), [], None
    while True:
        page = here.page(start=start, position=position, limit=7)
        shown += [(message.partition, message.offset, message.value) for message in page.messages]
        if page.following is None:
            break
        position = page.following
    assert sorted(shown) == sorted(written)


def test_a_key_goes_where_another_client_sends_it(tenant, at):
    """kafka-python's producer, which chooses as Java's does."""
    create_topic(tenant, TOPIC, partitions=7)
    keys = [f"order-{number}".encode() for number in range(12)]
    here = at(tenant)
    ours = [here.produce(key=key, value=b"x").partition for key in keys]
    together = [found.partition for found in here.produce_several([(key, b"x") for key in keys])]
    theirs = KafkaProducer(bootstrap_servers=tenant.bootstrap.split(","))
    try:
        chosen = [theirs.send(TOPIC, b"x", key).get(20).partition for key in keys]
    finally:
        theirs.close()
    assert ours == together == chosen
    assert len(set(chosen)) > 1


def test_a_topic_of_more_partitions_than_a_look_goes_through_is_shown_whole(tenant, at, monkeypatch):
    monkeypatch.setattr(selectors, "MOST_S", 4.0)  # as a page has it: a look that gets on shows what it has
    create_topic(tenant, TOPIC, partitions=130)
    written = produce(tenant, TOPIC, [b"%d" % n for n in range(400)])
    here, shown, position = at(tenant), [], None
    newer = None
    while True:
        began = time.monotonic()
        page = here.page(position=position, limit=200)
        took_s = time.monotonic() - began
        print(f"{len(page.messages)} of {page.records} in {took_s:.1f} s, {page.waiting} partitions wait")
        newer = newer or page.newer
        shown += [(message.partition, message.offset, message.value) for message in page.messages]
        if page.following is None:
            break
        position = page.following
    assert sorted(shown) == sorted(written)
    here.produce(partition=129, value=b"new")
    assert [message.value for message in here.page(position=newer).messages] == [b"new"]


def test_a_tail_brings_what_came_since_and_nothing_twice(tenant, at):
    create_topic(tenant, TOPIC)
    produce(tenant, TOPIC, [b"before"])
    here = at(tenant)
    page = here.page(start=Start.END)
    assert (page.messages, page.following) == ([], None)
    produce(tenant, TOPIC, [b"one", b"two"])
    page = here.page(position=page.newer)
    assert sorted(message.value for message in page.messages) == [b"one", b"two"]
    assert here.page(position=page.newer).messages == []


def test_several_messages_are_written_together_and_one_that_is_refused_keeps_no_other_back(tenant, at):
    create_topic(tenant, TOPIC, max_message_bytes="1000")
    here = at(tenant)
    small = [(b"k", b"%03d" % n * 30) for n in range(50)]  # together more than the topic takes at once
    *written, large, last = here.produce_several([*small, (b"k", b"x" * 2000), (None, b"last")])
    assert read_all(tenant, TOPIC)[0] == [*(value for _, value in small), b"last"]
    assert [each.offset for each in (*written, last)] == list(range(51))
    assert (type(large), large.code) == (Invalid, "message_too_large")
    assert here.trail[0]["detail"] == {"messages": 51, "bytes": 50 * 91 + 4}


def test_what_was_produced_is_read_by_the_tenants_own_consumer_and_by_its_offset(tenant, at):
    create_topic(tenant, TOPIC)
    here = at(tenant)
    written = here.produce(key=b"k", value=b"\xff\x00test", headers=[("a", b"1"), ("b", None)])
    assert read_all(tenant, TOPIC)[0] == [b"\xff\x00test"]
    whole = here.get(written.partition, written.offset)
    assert (whole.key, whole.value, whole.headers) == (b"k", b"\xff\x00test", (("a", b"1"), ("b", None)))
    assert whole.timestamp_ms == written.timestamp_ms
    here.produce(value=None, key=b"k")
    assert here.page(limit=1).messages[0].is_tombstone
    assert "test" not in str(here.trail[0])
    assert here.trail[0]["detail"]["partition"] == written.partition
    with pytest.raises(NotFound):
        here.get(written.partition, 99)
    with pytest.raises(Invalid):
        here.produce(value=b"x", partition=7)


def test_limits_of_the_topic_and_of_the_storage_hold_and_say_which(new_tenant, at):
    tenant = new_tenant(limits=Limits(None, None, 3 * MIB, None))
    create_topic(tenant, TOPIC, max_message_bytes="20000")
    here = at(tenant)
    with pytest.raises(Invalid) as refused:
        here.produce(value=os.urandom(30_000))
    assert refused.value.code == "message_too_large"
    create_topic(tenant, "filler")
    produce(tenant, "filler", [os.urandom(64 * KIB) for _ in range(17)])  # three replicas of 1.06 MiB

    def fenced():
        try:
            here.produce(value=b"x")
        except LimitReached as error:
            return error.code == "storage_full"
        return False

    here.produce(value=b"there is room")
    wait_for(fenced, 30, "the fence")
    assert here.page(limit=1).messages  # reading goes on


def test_records_before_an_offset_are_deleted_and_a_dry_run_deletes_none(tenant, at):
    create_topic(tenant, TOPIC)
    produce(tenant, TOPIC, [b"%d" % n for n in range(6)])
    here = at(tenant)
    assert [each.records for each in here.delete({0: 4}, dry_run=True)] == [4]
    assert len(here.page(partition=0).messages) == 6
    here.delete({0: 4})
    assert offsets(here.page(partition=0)) == [(0, 5), (0, 4)]
    assert here.trail[-1]["detail"] == {"records": 4, "before": {"0": 4}}
    with pytest.raises(Invalid) as refused:
        here.page(partition=0, offset=3)
    assert refused.value.members == {"first_offset": 4, "end_offset": 6}
    here.delete({0: services.TO_THE_END})
    assert here.page(partition=0).messages == []


def test_a_compacted_topic_is_told_apart(tenant, at):
    create_topic(tenant, TOPIC, cleanup_policy="compact")
    here = at(tenant)
    here.produce(key=b"k", value=b"1")
    with pytest.raises(Invalid) as refused:
        here.produce(value=b"without a key")
    assert refused.value.code == "invalid_record"
    with pytest.raises(Conflict) as refused:
        here.delete({0: services.TO_THE_END})
    assert refused.value.code == "topic_compacted"


def test_what_is_looked_at_is_charged_to_the_instances_bandwidth(new_tenant, at):
    """Who reads more than was bought is told to wait, as a consumer is."""
    tenant = new_tenant(limits=Limits(None, 128 * KIB, None, None))
    create_topic(tenant, TOPIC)
    produce(tenant, TOPIC, [os.urandom(32 * KIB) for _ in range(40)])
    here = at(tenant)

    def told_to_wait():
        try:
            here.page(start=Start.OLDEST, limit=20)
        except BandwidthUsedUp as error:
            return error.retry_after_s >= 1
        return False

    wait_for(told_to_wait, 20, "the debt")


def test_a_headers_name_that_is_not_utf_8_takes_no_message_away(cluster, tenant, at):
    create_topic(tenant, TOPIC)
    written = bytes(build_batch([Record(b"k", b"odd", (("ab", b"1"),))], now_ms=int(time.time() * 1000)))
    odd = written.replace(b"\x04ab", b"\x04\xff\xfe")
    odd = odd[:17] + crc32c(odd[21:]).to_bytes(4) + odd[21:]
    with Wire(tenant.addresses[cluster.leader(tenant, TOPIC)]) as wire:
        (answer,) = wire.call(produce_request(TOPIC, odd), 7).responses
        assert answer.partition_responses[0].error_code == 0
    produce(tenant, TOPIC, [b"another"])
    here = at(tenant)
    page = here.page(limit=5)
    assert [(message.value, message.headers) for message in page.messages] == [
        (b"another", ()),
        (b"odd", ((message_door.NOT_LEGIBLE, None),)),
    ]
    assert here.get(0, 0).value == b"odd"


def test_a_search_does_not_stand_still_between_two_fetches(tenant, at):
    """A pause of a second after each would be a dozen of them."""
    create_topic(tenant, TOPIC)
    produce(tenant, TOPIC, [b"%0100d" % n for n in range(3_000)])
    began, page = time.monotonic(), at(tenant).page(start=Start.OLDEST, filter=Filter(text=b"nothing of the kind"))
    assert page.records == 3_000
    assert time.monotonic() - began < promised(4.0)


def test_batches_larger_than_a_fetch_come_from_every_partition(tenant, at):
    create_topic(tenant, TOPIC, partitions=30)
    produce(tenant, TOPIC, [os.urandom(1000) for _ in range(3_000)], linger_ms=500, batch_size=90_000)
    began, page = time.monotonic(), at(tenant).page(start=Start.OLDEST, filter=Filter(text=b"nothing of the kind"))
    assert page.records == 3_000
    assert time.monotonic() - began < promised(5.0)


@pytest.mark.parametrize("start", [Start.OLDEST, Start.NEWEST])
def test_a_small_page_is_not_charged_for_what_lies_beyond_it(new_tenant, at, start):
    """A megabyte that is fetched ahead would be seconds of this bandwidth."""
    tenant = new_tenant(limits=Limits(None, 128 * KIB, None, None))
    create_topic(tenant, TOPIC)
    produce(tenant, TOPIC, [os.urandom(2 * KIB) for _ in range(500)], linger_ms=0, batch_num_messages=1)
    here = at(tenant)
    for _ in range(3):
        assert here.page(start=start, limit=2).bytes <= 3 * (2 * KIB + 8)
