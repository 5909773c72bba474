"""Messages of a partition. As the vendor has it, lists say where messages are, and one message is read by its offset.

Keys and values are text there: what is not UTF-8 has U+FFFD in its place. Who may not read messages may list them, and reads
none.
"""

from __future__ import annotations

import json
from itertools import takewhile
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
MOST_WHOLE = 100


def by_offset(call: Call) -> dict[str, Any]:
    """FetchMessageByOffset."""
    _check_may_read(call)
    topic, partition, offset = _asked(call, "Offset")
    found = selectors.message_get(**call.view, topic=topic, partition=partition, offset=offset, may_read=True)
    return _whole(topic, found)


def list_by_offset(call: Call) -> list[dict[str, Any]]:
    """FetchMessageListByOffset."""
    topic, partition, offset = _asked(call, "Offset")
    return _listed(call, topic, Wanted(partition=partition, offset=offset, limit=_limit(call)))


def whole_from(call: Call) -> list[dict[str, Any]]:
    """FetchLatestDatahubMessageList, of `Topic`: as many as there is room for in an answer, each as it is.

    One that has no room beside those before it begins the next list; alone it is read whatever its size.
    """
    _check_may_read(call)
    topic, partition, offset = _asked(call, "Offset")
    wanted = Wanted(partition=partition, offset=offset, limit=_limit(call, "MessageCount", MOST_WHOLE))
    page = selectors.messages_page(**call.view, topic=topic, wanted=wanted, may_read=True)
    whole = list(takewhile(lambda message: not message.is_cut, page.messages))
    if page.messages and not whole:
        first = page.messages[0]
        whole = [
            selectors.message_get(**call.view, topic=topic, partition=partition, offset=first.offset, may_read=True)
        ]
    return [_whole(topic, message) for message in whole]


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


def _limit(call: Call, name: str = "SinglePartitionRecordNumber", most: int = DEFAULT_LIMIT) -> int:
    limit = call.parameters.get(name, DEFAULT_LIMIT)
    if not 1 <= limit <= most:
        raise CkafkaError(Code.INVALID_VALUE, f"{name} must be 1 to {most}.")
    return int(limit)


def _check_may_read(call: Call) -> None:
    if not call.caller.may_read_messages:
        raise Forbidden("your role may not read messages")


def _listed(call: Call, topic: str, wanted: Wanted) -> list[dict[str, Any]]:
    page = selectors.messages_page(**call.view, topic=topic, wanted=wanted, may_read=False)
    return [_row(topic, message) for message in page.messages]


def _whole(topic: str, message: Shown) -> dict[str, Any]:
    headers = {name: _text(content) for name, content in message.headers}
    return {
        **_row(topic, message),
        "Key": _text(message.key),
        "Value": _text(message.value),
        "Headers": json.dumps(headers, ensure_ascii=False),
    }


def _row(topic: str, message: Shown) -> dict[str, Any]:
    return {
        "Topic": topic,
        "Partition": message.partition,
        "Offset": message.offset,
        "Timestamp": UNDATED_MS if message.timestamp_ms is None else message.timestamp_ms,
    }


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")
