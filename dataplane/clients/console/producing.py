"""`produce`: a message of every line of the standard input."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import TextIO

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from dataplane.clients.console.connection import configuration, pairs
from dataplane.clients.console.failures import USAGE, Failure, failure_of

_POLL_S = 0.1
_UNKNOWN_TOPIC_AFTER_MS = 5_000


class _Deliveries:
    """What became of the messages."""

    def __init__(self) -> None:
        self.done = 0
        self.refused = 0
        self.first: KafkaError | None = None

    def report(self, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            self.done += 1
        else:
            self.refused += 1
            self.first = self.first or error


def produce(arguments: Namespace, lines: Iterable[bytes], err: TextIO) -> None:
    """Until the input ends; what was sent by then is waited for, also when something is wrong."""
    producer = _producer(arguments)
    headers = _headers(arguments)
    deliveries = _Deliveries()
    try:
        for number, line in enumerate(lines, 1):
            key, value = _parse(line.removesuffix(b"\n"), number, arguments)
            _send(producer, arguments, key, value, headers, deliveries)
    finally:
        left = producer.flush(arguments.timeout)
        print(f"{deliveries.done} messages delivered.", file=err)
    if deliveries.first is not None:
        failure = failure_of(deliveries.first, f"producing to {arguments.topic}")
        raise Failure(f"{failure}; {deliveries.refused} messages were not delivered", failure.status)
    if left:
        raise failure_of(KafkaError(KafkaError._TIMED_OUT), f"producing to {arguments.topic}: {left} are left")


def _producer(arguments: Namespace) -> Producer:
    own = {
        "acks": arguments.acks,
        "compression.type": arguments.compression,
        "message.timeout.ms": int(arguments.timeout * 1000),
        "topic.metadata.propagation.max.ms": min(_UNKNOWN_TOPIC_AFTER_MS, int(arguments.timeout * 1000)),
        "linger.ms": 5,
    }
    try:
        return Producer(own | configuration(arguments))
    except KafkaException as error:
        raise Failure(error.args[0].str(), USAGE) from error


Headers = list[tuple[str, str | bytes | None]]


def _headers(arguments: Namespace) -> Headers:
    return [(name, value.encode()) for name, value in pairs(arguments.header, "--header").items()]


def _parse(line: bytes, number: int, arguments: Namespace) -> tuple[bytes | None, bytes | None]:
    key: bytes | None = None
    if arguments.key_separator is not None:
        separator = arguments.key_separator.encode()
        key, found, line = line.partition(separator)
        if not found:
            raise Failure(f"line {number} holds no key: {arguments.key_separator!r} is not in it")
    is_null = arguments.null is not None and line == arguments.null.encode()
    return key, None if is_null else line


def _send(
    producer: Producer,
    arguments: Namespace,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    deliveries: _Deliveries,
) -> None:
    while True:
        try:
            producer.produce(
                arguments.topic,
                value=value,
                key=key,
                headers=headers,
                partition=-1 if arguments.partition is None else arguments.partition,
                on_delivery=deliveries.report,
            )
        except BufferError:
            producer.poll(_POLL_S)
            continue
        except KafkaException as error:
            raise failure_of(error, f"producing to {arguments.topic}") from error
        producer.poll(0)
        return
