"""The records of ``__transaction_state``, in Kafka's own formats, so that Kafka's tools can read the topic.

    key:   int16 version, transactional id     value: int16 version, then its fields, or null: a tombstone
    0                                          0, or 1 of a transaction whose end raises the epoch (KIP-890)

The topic is compacted: the last record of a key counts, and says everything. Each change of a transaction writes all of its
partitions.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from dataplane.coordination.effects import KeyValue
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue
from dataplane.protocol.primitives import DecodeError

_VERSION = Struct(">h")
_KEY = 0


class TransactionRecord(NamedTuple):
    """The durable side of a transactional id; without a value, its end."""

    transactional_id: str
    value: TransactionLogValue | None


def write_transaction(transactional_id: str, value: TransactionLogValue | None) -> KeyValue:
    """Key and value."""
    key = _VERSION.pack(_KEY) + encode(TransactionLogKey(transactional_id), _KEY)
    if value is None:
        return key, None
    version = int(value.client_transaction_version > 0)
    return key, _VERSION.pack(version) + encode(value, version)


def read_record(key: bytes, value: bytes | None) -> TransactionRecord | None:
    """One record; None for a key that is not ours. Raises DecodeError or ValueError for what cannot be read."""
    if _version(key) != _KEY:
        return None
    transactional_id = decode(TransactionLogKey, _KEY, key, _VERSION.size).transactional_id
    if value is None:
        return TransactionRecord(transactional_id, None)
    return TransactionRecord(transactional_id, decode(TransactionLogValue, _version(value), value, _VERSION.size))


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("no version")
    return int(_VERSION.unpack_from(data)[0])
