"""A process that copies one topic to another, each record exactly once: consumer, producer and offsets in one transaction.

    python -m tests.chaos.copier NAME BOOTSTRAP SOURCE TARGET GROUP RECORDS

As an application is written with Kafka's clients: it reads as a member of a group, writes what it read with a transactional id of
its own, sends its offsets with the transaction, and commits. What the client says must be aborted is aborted and read again; a
fatal error ends the process, and whoever started it starts it again. It runs until stdin is closed. Lines on stdout:
`aborted WHY`, `fatal WHY`, `stuck in CALL`.

A call that does not come back long after its time is over ends the process too. librdkafka 2.16 has one:
`send_offsets_to_transaction` looks for the group's coordinator without minding its time-out (its issue 5456), and where that
broker has left the metadata meanwhile, as one that was killed does, it goes on waiting for a connection that nobody makes
any more (5511). The consumer of such a copier lives on: it heartbeats, and does not join again, so the whole group would
wait for it until its `max.poll.interval.ms` is over.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TRANSACTION_MS = 10_000
REQUEST_S = 15.0
STUCK_S = 2 * REQUEST_S
"""No call may take so long: each is told to be over in REQUEST_S."""


class Copier:
    """One life."""

    def __init__(self, name: str, bootstrap: str, source: str, target: str, group: str, records: int) -> None:
        self._source, self._target, self._records = source, target, records
        common = {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 500}
        self._producer = Producer(
            common
            | {
                "transactional.id": name,
                "transaction.timeout.ms": TRANSACTION_MS,
                "linger.ms": 5,
                "retry.backoff.ms": 50,
            }
        )
        self._consumer = Consumer(
            common
            | {
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 1000,
            }
        )
        self._is_moved = False  # partitions went, or came, while messages were taken

    def run(self, is_over: threading.Event) -> None:
        """Until it is over. Raises KafkaException where there is nothing left but to begin anew."""
        self._producer.init_transactions(60)
        self._consumer.subscribe([self._source], on_assign=self._moved, on_revoke=self._moved, on_lost=self._moved)
        while not is_over.is_set():
            self._is_moved = False
            messages = [message for message in self._consumer.consume(self._records, 0.2) if message.error() is None]
            if self._is_moved:
                self._read_again()  # some of them may be of a partition that another member has now
            elif messages:
                self._transaction(messages)
        self._consumer.close()

    def _moved(self, *_: Any) -> None:
        self._is_moved = True

    def _transaction(self, messages: list[Any]) -> None:
        try:
            self._producer.begin_transaction()
            for message in messages:
                self._producer.produce(self._target, message.value(), partition=message.partition())
            _patiently("send_offsets_to_transaction", lambda: self._send_offsets(messages))
            _patiently("commit_transaction", lambda: self._producer.commit_transaction(REQUEST_S))
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            print(f"aborted {error.args[0].name()}", flush=True)
            _patiently("abort_transaction", lambda: self._producer.abort_transaction(REQUEST_S))
            self._read_again()

    def _send_offsets(self, messages: list[Any]) -> None:
        behind = {message.partition(): message.offset() + 1 for message in messages}
        positions = [TopicPartition(self._source, partition, offset) for partition, offset in behind.items()]
        self._producer.send_offsets_to_transaction(positions, self._consumer.consumer_group_metadata(), REQUEST_S)

    def _read_again(self) -> None:
        """From where the group has committed: what was read since went with the transaction."""
        assigned = self._consumer.assignment()
        if not assigned:
            return
        for place in _patiently("committed", lambda: self._committed(assigned)):
            self._consumer.seek(TopicPartition(place.topic, place.partition, max(place.offset, 0)))

    def _committed(self, assigned: list[TopicPartition]) -> list[TopicPartition]:
        places: list[TopicPartition] = self._consumer.committed(assigned, REQUEST_S)
        for place in places:
            if place.error is not None:  # else its offset would look as if nothing were committed
                raise KafkaException(place.error)
        return places


def _patiently(name: str, call: Callable[[], Any]) -> Any:
    """What may be tried again is tried again."""
    while True:
        try:
            with comes_back(name, STUCK_S):
                return call()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


@contextmanager
def comes_back(name: str, within_s: float) -> Iterator[None]:
    """A call: the process ends where it takes longer."""
    timer = threading.Timer(within_s, _end, (name,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(name: str) -> None:
    print(f"stuck in {name}", flush=True)
    os._exit(1)  # without a word to the client, which would wait for what is stuck


def main(name: str, bootstrap: str, source: str, target: str, group: str, records: str) -> int:
    """See the file's text."""
    is_over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
    try:
        Copier(name, bootstrap, source, target, group, int(records)).run(is_over)
    except KafkaException as error:
        print(f"fatal {error.args[0].name()}: {error.args[0].str()}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
