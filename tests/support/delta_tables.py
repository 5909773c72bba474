"""Delta tables as `lake_load` makes them, written by delta-rs: the same columns, a manifest in each commit, no JVM. And read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arro3.core import Array, DataType, Field, RecordBatch, Schema, Table, list_array, struct_array
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from controlplane.lake.manifest import Manifest
from controlplane.lake.manifest import Schema as Typed
from controlplane.lake.planning import Loaded, Span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

HEADER = DataType.struct([Field("key", DataType.utf8()), Field("value", DataType.binary())])
COLUMNS = Schema(
    [
        Field("topic_id", DataType.utf8()),
        Field("partition", DataType.int32()),
        Field("offset", DataType.int64()),
        Field("timestamp_ms", DataType.int64()),
        Field("timestamp_type", DataType.int32()),
        Field("key", DataType.binary()),
        Field("value", DataType.binary()),
        Field("headers", DataType.list(Field("element", HEADER))),
    ]
)


def rows_of(topic_id: str, records: Sequence[tuple[Any, ...]]) -> Table:
    """Records are (partition, offset, timestamp_ms, key, value, headers)."""
    headers = [headers for *_, headers in records]
    names = [name for each in headers for name, _ in each]
    contents = [content for each in headers for _, content in each]
    ends = [sum(len(each) for each in headers[:count]) for count in range(len(headers) + 1)]
    fields = [Field("key", DataType.utf8()), Field("value", DataType.binary())]
    pairs = struct_array([Array(names, DataType.utf8()), Array(contents, DataType.binary())], fields=fields)
    columns = [
        Array([topic_id] * len(records), DataType.utf8()),
        *(Array([each[at] for each in records], COLUMNS.field(at + 1).type) for at in range(3)),
        Array([0] * len(records), DataType.int32()),
        *(Array([each[at] for each in records], DataType.binary()) for at in (3, 4)),
        list_array(Array(ends, DataType.int32()), pairs, type=COLUMNS.field("headers").type),
    ]
    return Table.from_batches([RecordBatch.from_arrays(columns, schema=COLUMNS)], schema=COLUMNS)


def commit(
    uri: str,
    topic_id: str,
    records: Sequence[tuple[Any, ...]],
    loaded: Mapping[int, tuple[int, int]],
    *,
    sequence: int = 1,
    table: Table | None = None,
    **options: Any,
) -> None:
    """One more commit; `loaded`: what the table has of each partition after it."""
    spans = {partition: Span(*pair) for partition, pair in loaded.items()}
    manifest = Manifest("orders", Loaded(topic_id, spans), Typed(), "a-table", sequence, "a-load")
    said = CommitProperties(custom_metadata={"userMetadata": manifest.to_json()})
    rows = rows_of(topic_id, records) if table is None else table
    write_deltalake(uri, rows, mode="append", commit_properties=said, **options)


def rows_in(table: Path) -> list[str]:
    """Of any table, each as text, in order."""
    batches = QueryBuilder().register("found", DeltaTable(table)).execute("SELECT * FROM found")
    structs = [batch.to_struct_array() for batch in batches]
    return sorted(repr(sorted(struct[at].as_py().items())) for struct in structs for at in range(len(struct)))
