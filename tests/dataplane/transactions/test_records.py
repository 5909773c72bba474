"""The records of the topic of transactions: Kafka's formats, written and read."""

import pytest

from dataplane.protocol.codec import encode
from dataplane.protocol.messages.transaction_records import PartitionsSchema, TransactionLogValue
from dataplane.protocol.primitives import DecodeError
from dataplane.transactions.model import Transaction, TransactionState, durable_value, loaded
from dataplane.transactions.records import read_record, write_transaction

OPEN = Transaction(
    "aaaabbbb.t", 7, 3, 60_000, TransactionState.ONGOING, dict.fromkeys([("b", 1), ("a", 0), ("b", 0)]), 5, 6
)


def test_a_key_is_a_version_and_the_id():
    key, value = write_transaction("t", None)
    assert (key, value) == (b"\0\0\0\1t", None)
    assert read_record(key, value) == ("t", None)


def test_a_value_is_of_the_version_that_every_kafka_reads():
    key, value = write_transaction("aaaabbbb.t", durable_value(OPEN))
    assert value[:2] == b"\0\0"
    record = read_record(key, value)
    assert record.value.transaction_partitions == (PartitionsSchema("a", (0,)), PartitionsSchema("b", (0, 1)))
    assert loaded(record.transactional_id, record.value) == OPEN


def test_an_empty_one_says_null_of_its_partitions_and_a_complete_one_that_it_has_none():
    assert durable_value(Transaction("t", 7, 0, 1)).transaction_partitions is None
    assert durable_value(Transaction("t", 7, 0, 1, TransactionState.COMPLETE_ABORT)).transaction_partitions == ()


def test_the_version_of_clusters_with_the_second_part_of_kip_890_is_read():
    value = TransactionLogValue(producer_id=7, producer_epoch=3, transaction_status=4, transaction_partitions=())
    key, _ = write_transaction("t", None)
    record = read_record(key, b"\0\1" + encode(value, 1))
    assert loaded("t", record.value).state is TransactionState.COMPLETE_COMMIT


def test_a_key_of_another_version_is_somebody_elses():
    assert read_record(b"\0\1\0\1t", b"") is None
    assert read_record(b"\0\1", None) is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0", b"\0\7\0\0\0\0\0\0"])
def test_a_value_that_cannot_be_read_is_said_to_be_so(value):
    with pytest.raises((DecodeError, ValueError)):
        read_record(b"\0\0\0\1t", value)


@pytest.mark.parametrize("status", [-1, 6, 7, 8])
def test_a_state_that_no_record_has_is_none(status):
    value = TransactionLogValue(producer_id=7, transaction_status=status, transaction_partitions=None)
    with pytest.raises(ValueError, match="state"):
        loaded("t", value)
