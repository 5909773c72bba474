"""Two tenants with the same names of everything: neither can see, change, or so much as guess the other's."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from tests.integration import asks
from tests.integration.asks import ASKS, SILENT, error_codes
from tests.integration.clients import (
    TIMEOUT_S,
    admin,
    consumer,
    create_topic,
    delete_topic,
    produce,
    read_all,
    take,
)
from tests.support.wire import Wire

pytestmark = pytest.mark.integration


@pytest.fixture
def pair(new_tenant):
    """Harbour and orchard: the same topic, the same group."""
    tenants = new_tenant(), new_tenant()
    for tenant, name in zip(tenants, (b"harbour", b"orchard"), strict=True):
        create_topic(tenant, "orders", 2)
        produce(tenant, "orders", [name + b"-%d" % number for number in range(50)])
        with consumer(tenant, asks.GROUP) as reader:
            reader.subscribe(["orders"])
            take(reader, 50)
    return tenants


def everything(tenant, topic="orders"):
    return sorted(value for part in read_all(tenant, topic).values() for value in part)


def test_each_reads_back_only_its_own(pair):
    harbour, orchard = pair
    assert everything(harbour) == sorted(b"harbour-%d" % number for number in range(50))
    assert everything(orchard) == sorted(b"orchard-%d" % number for number in range(50))


def test_offsets_of_the_same_group_are_apart(pair):
    harbour, orchard = pair
    partition = TopicPartition("orders", 0)
    with consumer(harbour, "billing") as mine, consumer(orchard, "billing") as theirs:
        mine.assign([partition])
        mine.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
        assert mine.committed([partition], TIMEOUT_S)[0].offset == 7
        assert theirs.committed([partition], TIMEOUT_S)[0].offset < 0


def test_listings_hold_only_ones_own(pair):
    harbour, orchard = pair
    create_topic(harbour, "harbour-only")
    with consumer(harbour, "harbour-group") as reader:
        reader.subscribe(["orders"])
        take(reader, 1)
        client = admin(orchard)
        assert list(client.list_topics(timeout=10).topics) == ["orders"]
        groups = {group.group_id for group in client.list_consumer_groups().result(TIMEOUT_S).valid}
        assert "harbour-group" not in groups
        described = client.describe_consumer_groups(["harbour-group"])["harbour-group"].result(TIMEOUT_S)
        assert described.state.name == "DEAD"
        assert described.members == []


def test_a_deleted_topic_or_group_of_one_is_still_there_for_the_other(pair):
    harbour, orchard = pair
    delete_topic(harbour, "orders")
    client = admin(harbour)
    client.delete_consumer_groups([asks.GROUP])[asks.GROUP].result(TIMEOUT_S)
    assert len(everything(orchard)) == 50
    others = admin(orchard)
    assert asks.GROUP in {group.group_id for group in others.list_consumer_groups().result(TIMEOUT_S).valid}


def test_a_topic_id_of_somebody_else_is_unknown(pair, cluster):
    harbour, orchard = pair
    with Wire(harbour.addresses[1]) as wire:
        topic_id = wire.call(MetadataRequest(topics=None), 12).topics[0].topic_id
    with Wire(orchard.addresses[cluster.controller()]) as wire:
        by_id = MetadataRequest(topics=(MetadataRequestTopic(topic_id, None),))
        assert error_codes(wire.call(by_id, 12)) == {100}  # UNKNOWN_TOPIC_ID
        delete = DeleteTopicsRequest(topics=(DeleteTopicState(None, topic_id),), timeout_ms=5000)
        assert error_codes(wire.call(delete, 6)) == {100}
    assert len(everything(harbour)) == 50


PHYSICAL_GUESSES = ["{key}.orders", "{other}.orders", "__consumer_offsets", "{other}.orders-0"]


def test_a_physical_name_leads_nowhere(pair, cluster):
    harbour, orchard = pair
    for kind, ask in ASKS.items():
        if ask.makes_it:
            continue
        with Wire(harbour.addresses[ask.broker(cluster, harbour, "orders")]) as wire:
            for guess in PHYSICAL_GUESSES:
                name = guess.format(key=harbour.key, other=orchard.key)
                codes = error_codes(wire.call(ask.of(name), ask.version))
                if kind.startswith("OffsetFetch"):
                    assert codes == ask.answers, kind  # what was never committed
                else:
                    assert len(codes) == 1, kind
                    assert codes <= {3, 17}, kind  # UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION
    assert len(everything(orchard)) == 50


def test_no_answer_holds_a_physical_name_or_anything_of_the_other(pair, cluster):
    """The bytes of every answer, for topics that exist, that do not, and that cannot."""
    harbour, orchard = pair
    create_topic(orchard, "nobody-else-knows")
    forbidden = [f"{harbour.key}.".encode(), orchard.key.encode(), b"nobody-else-knows", b"orchard"]
    plain = [MetadataRequest(topics=None)]
    plain += [HANDLERS[key].api.request() for key in (ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_CLUSTER)]
    seen = 0
    for broker in harbour.addresses:
        requests = [
            (ask.of(topic), ask.version) for ask in (ASKS | SILENT).values() for topic in ("orders", "ghost", "a b", "")
        ]
        requests += [(request, HANDLERS[_key(request)].high) for request in plain]
        requests += [(request, version) for request, version in requests if "Delete" not in type(request).__name__]
        with Wire(harbour.addresses[broker]) as wire:
            for request, version in requests:
                wire.send(request, version)
                frame = wire.frame()
                seen += 1
                assert not [word for word in forbidden if word in frame], f"{type(request).__name__}: {frame!r}"
    assert seen > 100
    assert cluster.behind() == []


def _key(request):
    return next(key for key, row in HANDLERS.items() if isinstance(request, row.api.request))
