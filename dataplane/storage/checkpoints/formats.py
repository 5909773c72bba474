"""The small text files beside the logs, in Kafka's formats.

    replication-offset-checkpoint, recovery-point-offset-checkpoint, log-start-offset-checkpoint
        0 | number of entries | one line "topic partition offset" each
    leader-epoch-checkpoint (in each partition's directory)
        0 | number of entries | one line "epoch start-offset" each
    partition.metadata      version: 0 | topic_id: <base64url of the UUID, no padding>
    meta.properties         key=value lines: version, broker.id

A file that cannot be read as its format counts as absent: each can be rebuilt or is only a hint. The exception is
partition.metadata, whose loss would give a topic's data to another topic of the same name.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataplane.doors import Files

VERSION = "0"


class MetadataError(Exception):
    """partition.metadata or meta.properties is not what it should be; the text names the file."""


def write_rows(files: Files, path: str, rows: Iterable[tuple[object, ...]]) -> None:
    """Replace a checkpoint, durably."""
    files.write_file(path, content_of(rows))


def content_of(rows: Iterable[tuple[object, ...]]) -> bytes:
    """Of a checkpoint with these rows."""
    return content([" ".join(map(str, row)).encode() for row in rows])


def content(lines: list[bytes]) -> bytes:
    """Of a checkpoint with these lines."""
    return b"\n".join([VERSION.encode(), str(len(lines)).encode(), *lines, b""])


def read_rows(files: Files, path: str, width: int) -> list[list[str]]:
    """The rows of a checkpoint, empty when it is absent or damaged."""
    try:
        version, count, *lines = files.read_file(path).decode().splitlines()
        rows = [line.split(" ") for line in lines]
        if version != VERSION or int(count) != len(rows) or any(len(row) != width for row in rows):
            return []
    except (FileNotFoundError, ValueError):
        return []
    return rows


def read_offsets(files: Files, path: str) -> dict[tuple[str, int], int]:
    """Offset by topic and partition."""
    try:
        return {(topic, int(partition)): int(offset) for topic, partition, offset in read_rows(files, path, 3)}
    except ValueError:
        return {}


def topic_id_content(topic_id: UUID) -> bytes:
    """Of partition.metadata."""
    text = base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
    return f"version: {VERSION}\ntopic_id: {text}\n".encode()


def read_topic_id(files: Files, path: str) -> UUID:
    """Read partition.metadata. Raises MetadataError, FileNotFoundError."""
    lines = files.read_file(path).decode(errors="replace").splitlines()
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return UUID(bytes=base64.urlsafe_b64decode(values["topic_id"] + "=="))
    except (KeyError, ValueError, binascii.Error) as error:
        raise MetadataError(f"{path} does not name a topic id") from error


def read_properties(files: Files, path: str) -> dict[str, str]:
    """Keys and values of a properties file, empty when it is absent."""
    try:
        lines = files.read_file(path).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return {}
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
