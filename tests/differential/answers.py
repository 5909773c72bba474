"""An answer as comparable text: {path: value}, with what differs between any two brokers made equal.

`topics[orders].partitions[0].error_code` -> 3. Elements of an array of structs are named by their identity (a topic, a
partition, a config's name), so their order does not matter; two of one identity become `[x]` and `[x#2]`.
Times near now, uuids, producer ids, member ids, addresses, paths and the cluster's id become words; of an error's sentence only
whether there is one is kept.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any
from uuid import UUID

from dataplane.records.legacy import read_message_set, read_shallow

_MAGIC_AT = 16
_IDENTITIES = (
    "topic", "name", "topic_name", "partition_index", "partition", "index", "api_key", "group_id", "node_id",
    "broker_id", "resource_name", "user", "key", "member_id", "topic_id", "log_dir", "batch_index", "producer_id",
)  # fmt: skip
_WORDS = {
    "host": "address", "port": "address", "client_host": "address", "cluster_id": "the cluster", "member_id": "member",
    "leader": "member", "producer_id": "producer", "log_dir": "folder", "total_bytes": "bytes", "usable_bytes": "bytes",
    "session_id": "session", "finalized_features_epoch": "epoch", "partition_size": "bytes",
}  # fmt: skip
_SENTENCES = ("error_message", "batch_index_error_message", "documentation")
_NEAR_S = 24 * 3600
NOTHING: dict[str, tuple[object, ...]] = {
    "producer_id": (-1,),
    "session_id": (0,),
    "total_bytes": (-1,),
    "usable_bytes": (-1,),
}


def flat(answer: object) -> dict[str, object]:
    """Every field of a message."""
    out: dict[str, object] = {}
    _into(out, "", "", answer)
    return out


def _into(out: dict[str, object], path: str, name: str, value: Any) -> None:
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _into(out, f"{path}.{field.name}" if path else field.name, field.name, getattr(value, field.name))
    elif isinstance(value, tuple | list) and value and dataclasses.is_dataclass(value[0]):
        out[path] = "some"
        seen: dict[str, int] = {}
        for element in value:
            identity = _identity(element)
            seen[identity] = seen.get(identity, 0) + 1
            mark = f"#{seen[identity]}" if seen[identity] > 1 else ""
            _into(out, f"{path}[{identity}{mark}]", name, element)
    elif isinstance(value, tuple | list):
        out[path] = [_plain(name, element) for element in value]
    else:
        out[path] = _plain(name, value)


def _identity(element: Any) -> str:
    names = [field.name for field in dataclasses.fields(element)]
    for name in _IDENTITIES:
        if name in names and (value := getattr(element, name)) is not None:
            if name == "topic" and value == "":  # a version that names topics by id
                continue
            return str(_plain(name, value))
    return "*"


def _plain(name: str, value: Any) -> object:
    if isinstance(value, UUID):
        return "no uuid" if value.int == 0 else "uuid"
    if name == "records" and value is not None and len(value) > _MAGIC_AT and value[_MAGIC_AT] < 2:
        return _messages(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if name in _SENTENCES:
        return None if value is None else ("a sentence" if value else "")
    if name in _WORDS and value not in ("", None) and value not in NOTHING.get(name, ()):
        return _WORDS[name]
    if type(value) is int and abs(value / 1000 - time.time()) < _NEAR_S and "time" in name and value % 1000 != 7:
        return "now"  # our own records' times end in 7 and must come back as they are
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Messages(list[str]):
    """Of formats 0 and 1: what is whole, opened."""

    def __eq__(self, other: object) -> bool:
        """Kafka sends as many bytes as are stored, the last message in part; we send what fits."""
        if not isinstance(other, Messages):
            return False
        size = min(len(self), len(other))
        return size > 0 and self[:size] == other[:size]

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]


def _messages(message_set: Any) -> Messages:
    codec = next(read_shallow(message_set)).codec
    return Messages(
        f"magic {m.magic}, codec {codec}: {m.offset} {m.timestamp} {m.key and bytes(m.key)!r} {m.value and bytes(m.value)!r}"
        for m in read_message_set(message_set)
    )


def different(ours: dict[str, object], theirs: dict[str, object]) -> list[tuple[str, object, object]]:
    """(path, ours, theirs) of each field that is not equal; what one side has not at all is one difference, "absent"."""
    found: list[tuple[str, object, object]] = []
    for path in dict.fromkeys((*theirs, *ours)):
        mine, others = ours.get(path, "absent"), theirs.get(path, "absent")
        if mine == others:
            continue
        if "absent" in (mine, others):
            element = path.rpartition("]")[0] + "]" if "]" in path else ""
            side = ours if mine == "absent" else theirs
            if element and not any(other.startswith(element) for other in side):
                there = (element, "absent", "there") if mine == "absent" else (element, "there", "absent")
                if there not in found and not _is_said(found, element):
                    found.append(there)
                continue
        found.append((path, mine, others))
    return found


def _is_said(found: list[tuple[str, object, object]], element: str) -> bool:
    """Whether what is around it is said to differ already: missing, null or empty."""
    return any(element.startswith(path + end) for path, _, _ in found for end in (".", "[")) or any(
        path == element.rpartition("[")[0] for path, _, _ in found
    )
