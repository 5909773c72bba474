"""What can go wrong with a client, as one tree.

::

    ClientError
    ├── ConfigurationError        a setting that does not exist, or a value that it cannot have
    ├── ClosedError               used after `close` or `shutdown`
    ├── NoBrokerError             *  none of the known addresses lets us in
    ├── ConnectionLostError       *  the connection ended, or no answer came in time: what was asked may have been done
    ├── AuthenticationError       the broker does not believe who we say we are
    ├── UnsupportedError          the broker has no version of an API that we speak, or not the one that is needed here
    ├── BrokerError               (*) an answer says so; `code` is Kafka's
    │   ├── OffsetOutOfRangeError     there is no message at this offset any more, or not yet
    │   └── FencedError               another producer has begun under the transactional id, or the transaction took too long
    ├── CorruptMessageError       bytes that are no messages, or whose CRC is wrong
    ├── QueueFullError            the asynchronous producer's queue: these messages were not taken
    ├── FailedToSendError         these messages are not acknowledged after all tries; `failures` says which and why
    ├── ConsumerTimeoutError      no message came within `consumer.timeout.ms`
    └── RebalanceError            the group's partitions could not be shared out within the tries

Where there is a star, `retriable` is true, in brackets by the code: the same again, later, may succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataplane.protocol.errors import ErrorCode

_RETRIABLE = frozenset(
    (
        ErrorCode.CORRUPT_MESSAGE,  # on its way: it is sent, or read, again
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # not yet known there
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.CONCURRENT_TRANSACTIONS,  # the last one is still being ended
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    )
)


class ClientError(Exception):
    """The root: what any call of a client may raise."""

    retriable = False


class ConfigurationError(ClientError, ValueError):
    """A setting that does not exist, or a value that it cannot have."""


class ClosedError(ClientError):
    """The client is closed."""


class NoBrokerError(ClientError):
    """None of the addresses that are known lets us in."""

    retriable = True


class ConnectionLostError(ClientError):
    """A connection ended before the answer, or the answer did not come in time."""

    retriable = True


class AuthenticationError(ClientError):
    """The broker refuses who we say we are."""


class UnsupportedError(ClientError):
    """Broker and client have no version of an API in common, or not the one that is needed."""


class BrokerError(ClientError):
    """What an answer says. `code` is Kafka's, also where it is one that we have no name for."""

    def __init__(self, code: int, doing: str) -> None:
        name = ErrorCode(code).name if code in set(ErrorCode) else f"error {code}"
        super().__init__(f"{doing}: {name}")
        self.code = code
        self.retriable = code in _RETRIABLE


class OffsetOutOfRangeError(BrokerError):
    """There is no message at this offset any more, or not yet."""


class FencedError(BrokerError):
    """This producer is not the latest of its transactional id: another has begun, or its transaction has timed out."""


class CorruptMessageError(ClientError):
    """Bytes that are no messages, or whose checksum is wrong."""


class QueueFullError(ClientError):
    """The queue has no room: these messages were not taken."""


class FailedToSendError(ClientError):
    """Messages that are not acknowledged after all tries; they may be there all the same where an answer was lost."""

    def __init__(self, failures: Sequence[tuple[Any, ClientError]]) -> None:
        super().__init__(f"{len(failures)} messages are not acknowledged; the first: {failures[0][1]}")
        self.failures = tuple(failures)


class ConsumerTimeoutError(ClientError):
    """No message came within `consumer.timeout.ms`. The stream can be asked again."""


class RebalanceError(ClientError):
    """The partitions of a group could not be shared out within `rebalance.max.retries` tries."""


def raise_for(code: int, doing: str) -> None:
    """Raises BrokerError unless the code is NONE."""
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise OffsetOutOfRangeError(code, doing)
    if code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        raise FencedError(code, doing)
    if code != ErrorCode.NONE:
        raise BrokerError(code, doing)
