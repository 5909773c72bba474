"""The records of ``__transaction_state``, in Kafka's own formats, so that Kafka's tools can read the topic.

    key:   int16 version, transactional id     value: int16 version, then its fields, or null: a tombstone
    0                                          0, or 1 of a transaction whose end raises the epoch (KIP-890)

The topic is compacted: the last record of a key counts, and says everything. Each change of a transaction writes all of its
partitions.
"""

from __future__ import annotations

from typing import NamedTuple

from dataplane.coordination.effects import KeyValue
from dataplane.coordination.versioned import number_of, read, written
from dataplane.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue

_KEY = 0


class TransactionRecord(NamedTuple):
    """The durable side of a transactional id; without a value, its end."""

    transactional_id: str
    value: TransactionLogValue | None


def write_transaction(transactional_id: str, value: TransactionLogValue | None) -> KeyValue:
    """Key and value."""
    key = written(TransactionLogKey(transactional_id), _KEY)
    if value is None:
        return key, None
    return key, written(value, int(value.client_transaction_version > 0))


def read_record(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """One record; None for a key that is not ours. Raises DecodeError or ValueError for what cannot be read."""
    if number_of(key) != _KEY:
        return None
    name = read(TransactionLogKey, key).transactional_id
    return TransactionRecord(name, None if value is None else read(TransactionLogValue, value))
