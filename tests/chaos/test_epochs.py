"""Why a producer gave up an epoch is read in what librdkafka says."""

from __future__ import annotations

import pytest

from tests.chaos.epochs import Epochs

DRAIN = (
    "[thrd:main]: Beginning partition drain in state Assigned for PID{Id:1000,Epoch:3} epoch bump for 2 partition(s) "
)
SKIPPED = (
    "with in-flight requests: ProduceRequest for round-1 [4] with 3 message(s) failed due to skipped sequence numbers "
    "(Broker: Broker received an out of order sequence number, base seq 12 > next seq 9) caused by previous failed request "
    "(Broker: Not leader for partition, actions Refresh,MsgNotPersisted, base seq 9..11, base msgid 10, 3ms ago)"
)


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        (SKIPPED, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("with in-flight requests: x failed: Broker: Unknown Producer Id", "UNKNOWN_PRODUCER_ID"),
        ("with in-flight requests: 2 message(s) timed out on round-1 [4]", ""),
    ],
)
def test_an_epoch_that_ends_is_noted_with_the_error_that_ended_it(reason, error):
    epochs = Epochs()
    epochs.heard(DRAIN + reason)
    assert epochs.ended == [(1000, 3, error)]


def test_other_words_are_passed_over():
    epochs = Epochs()
    epochs.heard("[thrd:main]: All partitions drained, bumped epoch to PID{Id:1000,Epoch:4}")
    assert epochs.ended == []


def test_a_producer_can_be_given_what_listens():
    from confluent_kafka import Producer

    epochs = Epochs()
    producer = Producer(
        {"bootstrap.servers": "127.0.0.1:1", "debug": "eos", "log_level": 7}, logger=epochs.logger("p1")
    )
    producer.poll(0.05)
    assert epochs.ended == []
