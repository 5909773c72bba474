"""Messages of a partition. As the vendor has it, lists say where messages are, and one message is read by its offset.

Keys and values are text there: what is not UTF-8 has U+FFFD in its place. Who may not read messages may list them, and reads
none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from controlplane.ckafka_api.errors import CkafkaError, Code
from controlplane.core.errors import Forbidden
from controlplane.messages import selectors
from controlplane.messages.selectors import DEFAULT_LIMIT, Wanted

if TYPE_CHECKING:
    from controlplane.ckafka_api.actions.calls import Call
    from controlplane.messages.cutting import Shown

UNDATED_MS = -1
MOST_NUMBER = 2**53


def by_offset(call: Call) -> dict[str, Any]:
    """FetchMessageByOffset."""
    if not call.caller.may_read_messages:
        raise Forbidden("your role may not read messages")
    topic, partition, offset = _asked(call, "Offset")
    found = selectors.message_get(**call.view, topic=topic, partition=partition, offset=offset, may_read=True)
    headers = {name: _text(content) for name, content in found.headers}
    return {
        **_row(topic, found),
        "Key": _text(found.key),
        "Value": _text(found.value),
        "Headers": json.dumps(headers, ensure_ascii=False),
    }


def list_by_offset(call: Call) -> list[dict[str, Any]]:
    """FetchMessageListByOffset."""
    topic, partition, offset = _asked(call, "Offset")
    return _listed(call, topic, Wanted(partition=partition, offset=offset, limit=_limit(call)))


def list_by_time(call: Call) -> list[dict[str, Any]]:
    """FetchMessageListByTimestamp."""
    topic, partition, time_ms = _asked(call, "StartTime")
    return _listed(call, topic, Wanted(partition=partition, timestamp_ms=time_ms, limit=_limit(call)))


def _asked(call: Call, start: str) -> tuple[str, int, int]:
    asked = call.parameters
    for name in ("Partition", start):
        if not 0 <= asked[name] <= MOST_NUMBER:
            raise CkafkaError(Code.INVALID_VALUE, f"{name} must be 0 to {MOST_NUMBER}.")
    return asked["Topic"], asked["Partition"], asked[start]


def _limit(call: Call) -> int:
    limit = call.parameters.get("SinglePartitionRecordNumber", DEFAULT_LIMIT)
    if not 1 <= limit <= DEFAULT_LIMIT:
        raise CkafkaError(Code.INVALID_VALUE, f"SinglePartitionRecordNumber must be 1 to {DEFAULT_LIMIT}.")
    return int(limit)


def _listed(call: Call, topic: str, wanted: Wanted) -> list[dict[str, Any]]:
    page = selectors.messages_page(**call.view, topic=topic, wanted=wanted, may_read=False)
    return [_row(topic, message) for message in page.messages]


def _row(topic: str, message: Shown) -> dict[str, Any]:
    return {
        "Topic": topic,
        "Partition": message.partition,
        "Offset": message.offset,
        "Timestamp": UNDATED_MS if message.timestamp_ms is None else message.timestamp_ms,
    }


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")
