"""What clients are told when the log does not take a coordinator's records: one table, to which each coordinator adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    ErrorCode.NONE: ErrorCode.NONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""Both answers are retriable: the first of the same broker, the second after a new look for the coordinator."""

BEFORE_APPEND = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.NOT_ENOUGH_REPLICAS})
"""With these the log has certainly not got the records; with any other it may have them, and a successor find them."""


def told(error: ErrorCode, table: Mapping[ErrorCode, ErrorCode] = LOG_ERRORS) -> ErrorCode:
    """What a client is told of an error of the log; UNKNOWN_SERVER_ERROR where the table says nothing."""
    return table.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
