"""What acks=0, 1 and all promise, and what a producer hears when too few replicas are in sync."""

from __future__ import annotations

import pytest

from dataplane.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from tests.integration import asks
from tests.integration.asks import batch, error_codes
from tests.integration.clients import Sender, create_topic, read_all
from tests.support.waiting import wait_for
from tests.support.wire import Wire

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

NOT_ENOUGH = {19, 20}  # NOT_ENOUGH_REPLICAS, before and after the append


def leader_address(cluster, tenant):
    return tenant.addresses[cluster.leader(tenant, "orders")]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_stores_everything(tenant, acks):
    create_topic(tenant, "orders", 2)
    sender = Sender(tenant, acks=acks)
    values = [b"%d" % number for number in range(500)]
    for value in values:
        sender.send("orders", value, value)
    sender.flush()
    assert not sender.refused

    def stored() -> bool:
        return sorted(value for part in read_all(tenant, "orders").values() for value in part) == sorted(values)

    wait_for(stored, 30, "everything to be stored")  # acks=0 is told before


def test_without_enough_replicas_acks_all_is_refused_and_acks_1_is_not(cluster, tenant):
    create_topic(tenant, "orders", min_insync_replicas="2")
    leader = cluster.leader(tenant, "orders")
    with Wire(tenant.addresses[leader], timeout_s=20) as wire:
        assert error_codes(wire.call(asks.produce("orders"), 9)) == set()
        for other in cluster.other_brokers(leader):
            cluster.brokers[other].kill()
        wait_for(lambda: error_codes(wire.call(asks.produce("orders"), 9)) == {19}, 30, "the ISR to shrink")
        assert error_codes(wire.call(asks.produce("orders", acks=1), 9)) == set()
        end = wire.call(asks.list_offsets("orders"), 7).topics[0].partitions[0].offset
        before = len(wire.call(asks.fetch("orders"), 12).responses[0].partitions[0].records)
        for _ in range(5):
            assert error_codes(wire.call(asks.produce("orders"), 9)) <= NOT_ENOUGH
        after = wire.call(asks.list_offsets("orders"), 7).topics[0].partitions[0].offset
        assert after == end, "what was refused before the append was stored all the same"
        assert before > 0
        for other in cluster.other_brokers(leader):
            cluster.restart(other)
        wait_for(lambda: error_codes(wire.call(asks.produce("orders"), 9)) == set(), 30, "replicas to come back")


def test_a_repeated_batch_is_stored_once_and_a_gap_is_refused(cluster, tenant):
    create_topic(tenant, "orders")
    with Wire(leader_address(cluster, tenant)) as wire:
        given = wire.call(InitProducerIdRequest(None, 60_000), 4)
        assert given.error_code == 0
        producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}

        def send(sequence: int) -> tuple[int, int]:
            answer = wire.call(asks.produce("orders", batch(count=10, base_sequence=sequence, **producer)), 9)
            row = answer.responses[0].partition_responses[0]
            return row.error_code, row.base_offset

        assert send(0) == (0, 0)
        assert send(10) == (0, 10)
        assert send(0) == (0, 0)  # again, and long after
        assert send(10) == (0, 10)
        assert send(30)[0] == 45  # OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(20) == (0, 20)
        assert wire.call(asks.list_offsets("orders"), 7).topics[0].partitions[0].offset == 30


def test_a_new_leader_recognises_what_the_old_one_has_stored(cluster, tenant):
    create_topic(tenant, "orders", min_insync_replicas="2")
    leader = cluster.leader(tenant, "orders")
    with Wire(tenant.addresses[leader]) as wire:
        given = wire.call(InitProducerIdRequest(None, 60_000), 4)
        producer = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
        request = asks.produce("orders", batch(count=10, base_sequence=0, **producer))
        assert error_codes(wire.call(request, 9)) == set()
    cluster.brokers[leader].kill()
    wait_for(lambda: cluster.leader(tenant, "orders") not in (leader, -1), 30, "another leader")

    def again() -> bool:
        with Wire(leader_address(cluster, tenant)) as wire:
            row = wire.call(request, 9).responses[0].partition_responses[0]
            return (row.error_code, row.base_offset) == (0, 0)

    wait_for(again, 30, "the new leader to know the batch")
    with Wire(leader_address(cluster, tenant)) as wire:
        assert wire.call(asks.list_offsets("orders"), 7).topics[0].partitions[0].offset == 10


@pytest.mark.parametrize("acks", [-2, 2, 3])
def test_other_acks_are_refused(cluster, tenant, acks):
    create_topic(tenant, "orders")
    with Wire(leader_address(cluster, tenant)) as wire:
        request: ProduceRequest = asks.produce("orders", acks=acks)
        assert error_codes(wire.call(request, 9)) == {21}  # INVALID_REQUIRED_ACKS
