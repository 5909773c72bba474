"""Rows of a table by partition and offset, read without Spark: for somebody who waits for an answer.

The reader is delta-rs (`deltalake`), which reads the table's log and then only what the question needs: files whose statistics
have the partition and the offsets, in them the pages whose index has them. Offsets come first, by themselves, since they are
small; then the rows, a few at a time, until there are enough or there is no room left.

Tables are in folders that the service alone writes. All the same: a log could name files elsewhere, by an absolute address,
and give their rows this topic's id as the value of a partition column, and delta-rs would read them. So a table that is not as
`lake_load` makes them is refused before any of its files is opened: features beyond the first reader version (deletion vectors,
renamed columns, other checkpoints), partition columns, other types, and files that are not in the table's own folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.lake.errors import LakeError
from controlplane.lake.manifest import Manifest
from controlplane.lake.planning import Span, Spans

if TYPE_CHECKING:
    from deltalake import DeltaTable, QueryBuilder

TYPES: Mapping[str, str] = {
    "topic_id": "string", "partition": "integer", "offset": "long", "timestamp_ms": "long", "key": "binary", "value": "binary",
}  # fmt: skip
"""What has to be there as such."""
HEADERS = {"key": "string", "value": "binary"}
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\.parquet", re.ASCII)
TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII)
NEWEST_COMMITS = (3, 50)
"""Among so many a commit of `lake_load` is looked for; others (OPTIMIZE) may stand behind it."""
FIRST_ROWS, MOST_ROWS = 8, 256
AIM_BYTES = 2**20
"""Rows that are read together: so many, and after the first ones as many as have about so many bytes."""
LARGEST_BYTES = 32 * 2**20
"""Of one row. Kafka's records are smaller."""
SESSION = {
    "datafusion.execution.batch_size": "64",  # rows in memory at once, of any size
    "datafusion.execution.target_partitions": "1",
    "datafusion.execution.parquet.pushdown_filters": "true",  # values of rows that are not wanted are not decoded
}


class NotReadableError(LakeError):
    """`reason`: absent (there is no table), foreign (it is none of `lake_load`), broken, away (the store), not_installed."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Row:
    """A record, as its topic had it."""

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name.encode()) + len(content or b"") for name, content in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


@dataclass(frozen=True, slots=True)
class Found:
    """Rows in the order of their offsets; every offset before `upto` was passed."""

    rows: list[Row]
    upto: int


class Rows:
    """Of one topic, by its id, in one table as it is now. Every call may raise NotReadableError."""

    def __init__(self, uri: str, options: Mapping[str, str], topic_id: str) -> None:
        if not TOPIC_ID.fullmatch(topic_id):
            raise NotReadableError("foreign", f"{topic_id!r} is no topic id")
        self._topic_id = topic_id
        self._table = _opened(uri, options)
        _check(self._table)
        self._session: QueryBuilder | None = None

    def spans(self) -> Spans:
        """What the table has of the topic; empty: nothing, or it has gone on to another topic of that name."""
        for most in NEWEST_COMMITS:
            with _translated():
                commits = [each for each in self._table.history(most) if each["version"] <= self._table.version()]
            found = (Manifest.from_json(commit.get("userMetadata")) for commit in commits)
            manifest = next((each for each in found if each is not None), None)
            if manifest is not None:
                return manifest.loaded.spans if manifest.topic_id == self._topic_id else {}
        return {}

    def read(self, partition: int, span: Span, most_rows: int, most_bytes: int) -> Found:
        """From the first offset of the span on. One row may have more bytes than `most_bytes`."""
        offsets = self._offsets(partition, span, most_rows)
        found: list[Row] = []
        left, at, together = most_bytes, 0, FIRST_ROWS
        while at < len(offsets) and left > 0:
            chosen = offsets[at : at + together]
            for row in self._rows(partition, chosen):
                found.append(row)
                left -= row.size
                if left <= 0:
                    return self._found(found, offsets, span, most_rows)
            at += len(chosen)
            mean = max(1, (most_bytes - left) // max(1, len(found)))
            together = max(1, min(MOST_ROWS, AIM_BYTES // mean, left // mean))
        return self._found(found, offsets, span, most_rows)

    @staticmethod
    def _found(found: list[Row], offsets: list[int], span: Span, most_rows: int) -> Found:
        is_whole = len(offsets) < most_rows and len(found) == len(offsets)
        return Found(found, span.end if is_whole else found[-1].offset + 1 if found else span.first)

    def _offsets(self, partition: int, span: Span, most: int) -> list[int]:
        # Each once: two rows of one offset can only be there if somebody else has written to the table.
        sql = f'SELECT DISTINCT "offset" {self._where(partition, span)} ORDER BY "offset" LIMIT {most:d}'
        return [row["offset"] for row in self._select(sql)]

    def _rows(self, partition: int, offsets: list[int]) -> list[Row]:
        wanted = set(offsets)
        columns = 'topic_id, partition, "offset", timestamp_ms, key, value, headers'
        sql = f"SELECT {columns} {self._where(partition, Span(offsets[0], offsets[-1] + 1))} LIMIT {2 * len(offsets):d}"
        found: dict[int, Row] = {}
        for members in self._select(sql):
            # The question has said so already. It is what keeps tenants apart, so it is looked at once more.
            if (
                members["topic_id"] == self._topic_id
                and members["partition"] == partition
                and members["offset"] in wanted
            ):
                found.setdefault(members["offset"], _row(members))
        if len(found) < len(wanted):
            raise NotReadableError("broken", "the table does not give the rows of which it has offsets")
        return [found[offset] for offset in offsets]

    def _where(self, partition: int, span: Span) -> str:
        return (
            f"FROM records WHERE topic_id = '{self._topic_id}' AND partition = {partition:d}"
            f' AND "offset" >= {span.first:d} AND "offset" < {span.end:d}'
        )

    def _select(self, sql: str) -> list[dict[str, Any]]:
        from deltalake import QueryBuilder  # noqa: PLC0415  # see `_opened`

        with _translated():
            if self._session is None:
                self._session = QueryBuilder(SESSION).register("records", self._table)
            batches = [batch.to_struct_array() for batch in self._session.execute(sql)]
            return [batch[at].as_py() for batch in batches for at in range(len(batch))]


def _opened(uri: str, options: Mapping[str, str]) -> DeltaTable:
    # The wheel is 50 MB, and there is none for every machine: without it nothing is read from tables, and all else works.
    try:
        from deltalake import DeltaTable  # noqa: PLC0415
    except ImportError as error:
        raise NotReadableError("not_installed", f"this installation has no reader of tables: {error}") from error
    with _translated():
        return DeltaTable(uri, storage_options=dict(options))


def _check(table: DeltaTable) -> None:
    """Raises NotReadableError where it is not as `lake_load` makes tables."""
    with _translated():
        version, partitioned = table.protocol().min_reader_version, table.metadata().partition_columns
    if version != 1 or partitioned:
        raise NotReadableError(
            "foreign", f"it needs a reader of version {version}, and is partitioned by {partitioned}"
        )
    with _translated():
        types = {field["name"]: field["type"] for field in json.loads(table.schema().to_json())["fields"]}
        names = table.get_add_actions(flatten=True).column("path").to_pylist()
    wrong = [name for name, kind in TYPES.items() if types.get(name) != kind]
    if wrong or not _is_headers(types.get("headers")):
        raise NotReadableError("foreign", f"it has other columns than lake_load makes: {wrong or 'headers'}")
    for name in names:
        if not FILE_NAME.fullmatch(name):
            raise NotReadableError("foreign", f"it has a file of another place: {name[:200]!r}")


def _is_headers(kind: Any) -> bool:
    element = kind.get("elementType") if isinstance(kind, dict) else None
    fields = element.get("fields", []) if isinstance(element, dict) else []
    return {field["name"]: field["type"] for field in fields} == HEADERS


def _row(members: Mapping[str, Any]) -> Row:
    headers = tuple((header["key"] or "", header["value"]) for header in members["headers"] or () if header is not None)
    row = Row(members["offset"], members["timestamp_ms"], members["key"], members["value"], headers)
    if row.size > LARGEST_BYTES:
        raise NotReadableError("broken", f"the row of offset {row.offset} is larger than any record: {row.size} bytes")
    return row


@contextmanager
def _translated() -> Iterator[None]:
    """What delta-rs raises, as one error. Its texts are for the log: they name files and addresses."""
    try:
        yield
    except LakeError:
        raise
    except Exception as error:  # it raises bare ones as well
        raise NotReadableError(_reason(error), f"{type(error).__name__}: {error}") from error


def _reason(error: Exception) -> str:
    if type(error).__name__ == "TableNotFoundError":
        return "absent"
    return "away" if isinstance(error, OSError) or "Generic S3 error" in str(error) else "broken"
