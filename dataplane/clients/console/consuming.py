"""`consume`: messages of a topic to the standard output, a line each.

With a group it is one of its members, and what was printed is committed. Without one it reads all partitions, or one,
and leaves no trace in the cluster.
"""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any, BinaryIO, TextIO

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from dataplane.clients.console.connection import configuration
from dataplane.clients.console.failures import USAGE, Failure, failure_of

_POLL_S = 0.2
_NO_GROUP = "console-without-group"  # the library wants a name; nothing is ever committed under it
_PLACES = {"beginning": OFFSET_BEGINNING, "end": OFFSET_END}


def consume(arguments: Namespace, out: BinaryIO, err: TextIO) -> None:
    """Until as many were printed as wanted, nothing came for the idle time, or it is interrupted."""
    consumer = _consumer(arguments)
    printed = 0
    try:
        _begin(consumer, arguments)
        quiet_since = time.monotonic()
        while arguments.max_messages is None or printed < arguments.max_messages:
            message = consumer.poll(_POLL_S)
            if message is None:
                if arguments.idle_s is not None and time.monotonic() - quiet_since > arguments.idle_s:
                    break
                continue
            problem = message.error()
            if problem is not None:
                _judge(problem, arguments)
                continue
            line = _line(message, arguments)
            printed += 1  # before anybody can see it, and interrupt: an unbuffered output shows it at once
            out.write(line)
            out.flush()
            quiet_since = time.monotonic()
            if arguments.group is not None:
                consumer.store_offsets(message)
    finally:
        consumer.close()
        print(f"{printed} messages.", file=err)
    if arguments.max_messages is not None and printed < arguments.max_messages:
        raise Failure(f"nothing came for {arguments.idle_s} s: {printed} of {arguments.max_messages} messages")


def _consumer(arguments: Namespace) -> Consumer:
    if arguments.group is not None and (arguments.partition is not None or arguments.offset is not None):
        raise Failure("a group decides itself what is read: --partition and --offset go without --group", USAGE)
    if arguments.from_beginning and arguments.offset is not None:
        raise Failure("--from-beginning or --offset, not both", USAGE)
    if arguments.offset is not None and arguments.offset.isdecimal() and arguments.partition is None:
        raise Failure("a number as --offset goes with --partition: offsets are those of one partition", USAGE)
    own = {
        "group.id": arguments.group or _NO_GROUP,
        "enable.auto.commit": arguments.group is not None,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest" if arguments.from_beginning else "latest",
        "allow.auto.create.topics": False,
    }
    try:
        return Consumer(own | configuration(arguments))
    except KafkaException as error:
        raise Failure(error.args[0].str(), USAGE) from error


def _begin(consumer: Consumer, arguments: Namespace) -> None:
    doing = f"consuming {arguments.topic}"
    try:
        found = consumer.list_topics(arguments.topic, timeout=arguments.timeout).topics[arguments.topic]
    except KafkaException as error:
        raise failure_of(error, doing) from error
    if found.error is not None:
        raise failure_of(found.error, doing)
    if arguments.group is not None:
        consumer.subscribe([arguments.topic])
        return
    chosen = sorted(found.partitions) if arguments.partition is None else [arguments.partition]
    if not set(chosen) <= set(found.partitions):
        raise Failure(f"{doing}: it has no partition {arguments.partition}")
    place = "beginning" if arguments.from_beginning else arguments.offset or "end"
    offset = _PLACES[place] if place in _PLACES else int(place)
    consumer.assign([TopicPartition(arguments.topic, index, offset) for index in chosen])


def _judge(error: KafkaError, arguments: Namespace) -> None:
    """What the library gets over by itself is no failure."""
    passing = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._PARTITION_EOF)
    if error.fatal() or (error.code() not in passing and not error.retriable()):
        raise failure_of(error, f"consuming {arguments.topic}")


def _line(message: Message, arguments: Namespace) -> bytes:
    parts: list[bytes] = []
    if arguments.print_timestamp:
        kind, at_ms = message.timestamp()
        parts.append(f"{('NoTimestamp', 'CreateTime', 'LogAppendTime')[kind]}:{at_ms}".encode())
    if arguments.print_partition:
        parts.append(f"Partition:{message.partition()}".encode())
    if arguments.print_offset:
        parts.append(f"Offset:{message.offset()}".encode())
    if arguments.print_headers:
        headers: Any = message.headers() or []
        parts.append(b",".join(name.encode() + b":" + _text(value) for name, value in headers) or b"NO_HEADERS")
    if arguments.print_key:
        parts.append(_text(message.key()))
    parts.append(_text(message.value()))
    return str(arguments.separator).encode().join(parts) + b"\n"


def _text(data: str | bytes | None) -> bytes:
    return b"null" if data is None else data.encode() if isinstance(data, str) else data
