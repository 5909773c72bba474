"""Records of the topic __transaction_state. Declarations only; see `dataplane.protocol.schema`.

The tagged fields belong to the second part of KIP-890, whose transactions are written in version 1.
"""

from __future__ import annotations

from dataplane.protocol.schema import (
    array,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
)


@message(versions="0", flexible="none")
class TransactionLogKey:
    transactional_id: str = string("0")


@struct
class PartitionsSchema:
    topic: str = string()
    partition_ids: tuple[int, ...] = array("int32")


@message(versions="0-1", flexible="1+")
class TransactionLogValue:
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: tuple[PartitionsSchema, ...] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    previous_producer_id: int = int64("1+", default=-1, tagged="1+", tag=0)
    next_producer_id: int = int64("1+", default=-1, tagged="1+", tag=1)
    client_transaction_version: int = int16("1+", default=0, tagged="1+", tag=2)
