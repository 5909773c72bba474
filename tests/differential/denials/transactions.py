"""Transactional ids: who produces under them, adds, ends, and looks."""

from __future__ import annotations

from typing import Any

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.produce import InitProducerIdRequest
from dataplane.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.differential.denials import NOWHERE, ORDERS, OTHER, READERS, World, case, cluster, group, topic, transaction
from tests.differential.denials.groups import MANY_KEYS

PAYMENTS, FORGERIES = "payments", "forgeries"
"""Transactional ids: the one that a right is for, and one without any."""
OF_BROKERS = 4
UNKNOWN = 1_000_000_000


@case(ApiKey.INIT_PRODUCER_ID, transaction("WRITE"))
@case(ApiKey.INIT_PRODUCER_ID, topic("WRITE"))
def init_producer_id_of_a_transaction(_: World) -> Any:
    return InitProducerIdRequest(PAYMENTS, 0)


@case(ApiKey.ADD_PARTITIONS_TO_TXN, transaction("WRITE"), topic("WRITE"))
@case(ApiKey.ADD_PARTITIONS_TO_TXN, transaction("WRITE"))
@case(ApiKey.ADD_PARTITIONS_TO_TXN, topic("WRITE"))
def add_partitions_to_txn(world: World) -> Any:
    if world.version >= OF_BROKERS:
        return AddPartitionsToTxnRequest()
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=PAYMENTS,
        v3_and_below_producer_id=UNKNOWN,
        v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name, (0,)) for name in (ORDERS, OTHER, NOWHERE)),
    )


@case(ApiKey.ADD_OFFSETS_TO_TXN, transaction("WRITE"), group("READ"))
@case(ApiKey.ADD_OFFSETS_TO_TXN, transaction("WRITE"))
@case(ApiKey.ADD_OFFSETS_TO_TXN, group("READ"))
def add_offsets_to_txn(_: World) -> Any:
    return AddOffsetsToTxnRequest(PAYMENTS, UNKNOWN, 0, READERS)


@case(ApiKey.END_TXN, transaction("WRITE"))
def end_txn(_: World) -> Any:
    return EndTxnRequest(PAYMENTS, UNKNOWN, 0, committed=True)


@case(ApiKey.WRITE_TXN_MARKERS, cluster("ALTER"))
@case(ApiKey.WRITE_TXN_MARKERS, topic("WRITE"))
def write_txn_markers(_: World) -> Any:
    """As `kafka-transactions abort`."""
    topics = tuple(WritableTxnMarkerTopic(name, (0,)) for name in (ORDERS, OTHER, NOWHERE))
    return WriteTxnMarkersRequest((WritableTxnMarker(UNKNOWN, 0, transaction_result=False, topics=topics),))


@case(ApiKey.DESCRIBE_TRANSACTIONS, transaction("DESCRIBE"))
@case(ApiKey.DESCRIBE_TRANSACTIONS, transaction("WRITE"))
def describe_transactions(_: World) -> Any:
    return DescribeTransactionsRequest((PAYMENTS, FORGERIES))


@case(ApiKey.LIST_TRANSACTIONS, transaction("DESCRIBE"))
def list_transactions(_: World) -> Any:
    return ListTransactionsRequest()


@case(ApiKey.FIND_COORDINATOR, transaction("DESCRIBE"))
def find_coordinator_of_a_transaction(world: World) -> Any:
    if world.version >= MANY_KEYS:
        return FindCoordinatorRequest(key_type=1, coordinator_keys=(PAYMENTS, FORGERIES))
    return FindCoordinatorRequest(PAYMENTS, 1 if world.version >= 1 else 0)
