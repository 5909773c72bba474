"""Answers made comparable, and what must not be in them.

Two answers are equal when their bytes are, after

* what a server chooses anew each time was replaced (`CHOSEN`, which is all of it), where it is there at all;
* the absent name in the one was replaced by the foreign name in the other. They have the same length, so nothing else moves.
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any
from uuid import UUID

from dataplane.protocol.api import Api
from dataplane.protocol.codec import encode
from dataplane.protocol.headers import decode_response
from dataplane.protocol.schema import wires
from tests.leaks.client import Told
from tests.leaks.kinds import Kind
from tests.leaks.planting import Facts
from tests.leaks.values import Pair

CHOSEN: Mapping[tuple[str, str], str] = {
    ("FetchResponse", "session_id"): "drawn for each session",
    ("JoinGroupResponse", "member_id"): "ends with a random id, drawn for each member",
    ("JoinGroupResponse", "leader"): "likewise",
    ("JoinGroupResponseMember", "member_id"): "likewise",
    ("InitProducerIdResponse", "producer_id"): "the next of the broker's block",
    ("CreatableTopicResult", "topic_id"): "drawn for each topic",
    ("PartitionProduceResponse", "base_offset"): "the second of two batches lies behind the first",
    ("WritableTxnMarkerResult", "producer_id"): "the one that was named, as it was named",
    ("ProducerState", "last_timestamp"): "the time of the answer, until its log is next looked through",
}
"""By field, with the reason. A value that is the declaration's default (no session, no offset) stays as it is."""

_DRAWN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TELLING = 2**24
"""A number below may be anything."""
_BY_TYPE: Mapping[type, Any] = {int: 1, UUID: UUID(int=1)}


def comparable(api: Api, version: int, told: Told, pair: Pair | None, kind: Kind) -> bytes | None:
    """The answer to the foreign one (`pair` is None), or to the absent one with its name swapped."""
    answer = told.answer
    if answer is None:
        return None
    if pair is not None and kind in (Kind.BROKER, Kind.BROKER_NAME):
        answer = _again(api, version, answer, lambda text: re.sub(rf"\b{pair.absent}\b", str(pair.foreign), text))
    elif pair is not None:
        for absent, foreign in zip(_bytes_of(pair.absent), _bytes_of(pair.foreign), strict=True):
            answer = answer.replace(absent, foreign)
    return _again(api, version, answer, None) if _has_chosen(api.response, version) else answer


def _bytes_of(value: Any) -> Iterator[bytes]:
    """What an answer may repeat of a value, in the forms that it has there. Of numbers nothing is repeated."""
    if isinstance(value, str):
        yield value.encode()
    elif isinstance(value, UUID):
        yield value.bytes
    elif isinstance(value, bytes):
        yield from ([value.split(b"\0")[1]] if value.startswith(b"\0") and value.count(b"\0") == 2 else [])


def _again(api: Api, version: int, answer: bytes, on_texts: Any) -> bytes:
    """Decoded, changed and encoded; what stands before the body as it was."""
    message = decode_response(api, version, answer)[1]
    body = encode(message, version)
    head = answer[: len(answer) - len(body)]
    return head + encode(_changed(message, on_texts), version)


def _changed(value: Any, on_texts: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_changed(each, on_texts) for each in value)
    if isinstance(value, str):
        return value if on_texts is None else on_texts(value)
    if not dataclasses.is_dataclass(value):
        return value
    members = {}
    for name, _, default in wires(type(value)):
        found = _changed(getattr(value, name), on_texts)
        if (type(value).__name__, name) in CHOSEN and found != default:
            found = _DRAWN.sub("drawn", found) if isinstance(found, str) else _BY_TYPE[type(found)]
        members[name] = found
    return type(value)(**members)


@cache
def _has_chosen(cls: type, version: int) -> bool:
    for name, wire, _ in wires(cls):
        if version in wire.versions:
            if (cls.__name__, name) in CHOSEN:
                return True
            if isinstance(wire.element, type) and _has_chosen(wire.element, version):
                return True
    return False


def in_words(api: Api, version: int, told: Told) -> str:
    """For people."""
    if told.answer is None:
        return told.in_words
    try:
        message = decode_response(api, version, told.answer)[1]
    except (ValueError, struct.error):
        return told.in_words
    return f"{message}, connection {told.connection}"


# --- words that must not be there ---------------------------------------------------------------------------------------


def words_of(facts: Facts, inside: Iterable[tuple[str, bytes]], own: Facts) -> dict[str, bytes]:
    """What no answer to A may hold: all of B that can be told from anything else, and the cluster's inside."""
    words = {
        "a word of B's": facts.token.encode(),
        "B's cluster id": facts.cluster_id.encode(),
        "B's producer id": struct.pack(">q", facts.producer_id),
        "B's committed offset": struct.pack(">q", facts.numbers.committed_offset),
        "B's configuration": facts.numbers.retention_ms.encode(),
        "B's quota": struct.pack(">d", facts.numbers.quota_rate),
        "B's fetch session": struct.pack(">i", facts.session_id),
        "a host of B's ACL": facts.acl_host.encode(),
        "the host of B's member": facts.member_host.encode(),
        **{f"the id of B's {name}": topic_id.bytes for name, topic_id in facts.topics.items()},
        **dict(inside),
    }
    for whose, side in (("B's", facts), ("A's", own)):
        if side.key is not None:
            words[f"{whose} physical names"] = f"{side.key}.".encode()
    if facts.producer_id < _TELLING:
        del words["B's producer id"]
    if facts.member_host == own.member_host:
        del words["the host of B's member"]
    return words


def found_in(told: Told, words: Mapping[str, bytes]) -> list[str]:
    """Which of them an answer holds."""
    return [] if told.answer is None else [name for name, word in words.items() if word in told.answer]


def addresses_in(answer: Any) -> set[tuple[str, int]]:
    """All addresses that a decoded answer names; no host is none."""
    if isinstance(answer, tuple):
        return set().union(*map(addresses_in, answer))
    if not dataclasses.is_dataclass(answer):
        return set()
    found = {(answer.host, answer.port)} if getattr(answer, "host", "") and hasattr(answer, "port") else set()
    return found.union(*(addresses_in(getattr(answer, name)) for name, *_ in wires(type(answer))))
