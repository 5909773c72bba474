"""A Fetch and a ListOffsets on one connection, for whatever version the broker has. What both consumers and the mirror read by.

A message that is larger than what was asked for must come all the same: brokers since 0.10.1 send the first entry whole. From
older ones comes a piece of it, and `fetch` asks again for twice as much, up to `LARGEST_FETCH`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dataplane.clients.cluster import Cluster
from dataplane.clients.connection import Connection
from dataplane.clients.errors import UnsupportedError, raise_for
from dataplane.clients.messages import Entries, read_entries, read_raw
from dataplane.clients.moving import MovedRecord
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchResponse,
    FetchResponsePartitionData,
    FetchTopic,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from dataplane.protocol.messages.fetch import FetchRequest as WireFetchRequest
from dataplane.protocol.messages.fetch import ListOffsetsRequest as WireListOffsetsRequest

LATEST_TIME = -1
EARLIEST_TIME = -2
LARGEST_FETCH = 2**28
_COMMITTED_ONLY_SINCE = 4  # of Fetch
_READ_COMMITTED = 1
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """What is wanted of one partition."""

    topic: str
    partition: int
    offset: int
    fetch_size: int = 2**20

    @property
    def place(self) -> Place:
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of one partition; `entries` is empty where `error_code` is not NONE."""

    request: FetchRequest
    error_code: int
    high_watermark: int
    last_stable_offset: int  # -1: the broker knows no transactions
    entries: Entries
    raw: list[MovedRecord] | None = None  # in place of messages in `entries`, where that was asked for

    def raise_for_error(self) -> None:
        """Raises BrokerError, of which OffsetOutOfRangeError is one."""
        raise_for(self.error_code, f"{self.request.topic}-{self.request.partition} at {self.request.offset}")


def fetch(
    connection: Connection,
    requests: Sequence[FetchRequest],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    committed_only: bool = False,
    raw_unless: bytes | None = None,
) -> list[Fetched]:
    """Of each what came, in their order. Raises ClientError of the connection, CorruptMessageError.

    A partition stands in a Fetch once: what is wanted of it a second time is fetched after that. With `raw_unless` records are
    not taken apart, but where these bytes stand among them, or they are of an old format.
    """
    first = list({request.place: request for request in reversed(requests)}.values())
    answers = _fetch_once(connection, first, max_wait_ms, min_bytes, committed_only)
    found: list[Fetched] = []
    seen: set[Place] = set()
    for request in requests:
        if request.place in seen:
            answers = {**answers, **_fetch_once(connection, [request], 0, min_bytes, committed_only)}
        seen.add(request.place)
        fetched = _read(request, answers[request.place], committed_only, raw_unless)
        while fetched.entries.is_cut and request.fetch_size < LARGEST_FETCH:
            request = replace(request, fetch_size=min(LARGEST_FETCH, 2 * request.fetch_size))  # noqa: PLW2901
            again = _fetch_once(connection, [request], 0, 1, committed_only)
            fetched = _read(request, again[request.place], committed_only, raw_unless)
        found.append(fetched)
    return found


def _fetch_once(
    connection: Connection, requests: Sequence[FetchRequest], max_wait_ms: int, min_bytes: int, committed_only: bool
) -> Mapping[Place, FetchResponsePartitionData]:
    version = connection.version(ApiKey.FETCH)
    if committed_only and version < _COMMITTED_ONLY_SINCE:
        raise UnsupportedError("the broker knows no transactions: it cannot say which messages are committed")
    wanted: dict[str, list[FetchPartition]] = defaultdict(list)
    for one in requests:
        wanted[one.topic].append(
            FetchPartition(partition=one.partition, fetch_offset=one.offset, partition_max_bytes=one.fetch_size)
        )
    request = WireFetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        isolation_level=_READ_COMMITTED if committed_only else 0,
        topics=tuple(FetchTopic(topic=topic, partitions=tuple(rows)) for topic, rows in wanted.items()),
    )
    answer: FetchResponse = connection.call(request, version=version, timeout_ms=max_wait_ms)
    raise_for(answer.error_code, "fetch")
    return {(topic.topic, one.partition_index): one for topic in answer.responses for one in topic.partitions}


def _read(
    request: FetchRequest, answer: FetchResponsePartitionData, committed_only: bool, raw_unless: bytes | None
) -> Fetched:
    entries = Entries((), request.offset, False)
    raw: list[MovedRecord] | None = None
    if answer.error_code == ErrorCode.NONE and answer.records is not None:
        assert isinstance(answer.records, bytes | bytearray | memoryview)
        aborted = answer.aborted_transactions if committed_only else None
        found = None if raw_unless is None else read_raw(answer.records, request.offset, aborted, unless=raw_unless)
        if found is None:
            entries = read_entries(answer.records, request.offset, aborted)
        else:
            entries, raw = Entries((), found.next_offset, found.is_cut), found.records
    return Fetched(request, answer.error_code, answer.high_watermark, answer.last_stable_offset, entries, raw)


def offsets_before(connection: Connection, topic: str, partition: int, time_ms: int, max_num: int) -> list[int]:
    """Valid offsets before a time, newest first, at most so many. Raises BrokerError.

    Version 0 of ListOffsets is made for this: it lists where segments begin. Kafka 4 has it no more. From later versions
    come the first offset not older than the time, or the end for LATEST_TIME, and the beginning.
    """
    if connection.versions[ApiKey.LIST_OFFSETS][0] == 0:
        answer = _listed(connection, topic, partition, time_ms, max_num, 0)
        return list(answer.old_style_offsets)
    found = [_listed(connection, topic, partition, at, 1, None).offset for at in (time_ms, EARLIEST_TIME)]
    return sorted({offset for offset in found if offset >= 0}, reverse=True)[:max_num]


def offset_at(connection: Connection, topic: str, partition: int, time_ms: int) -> int:
    """The offset at LATEST_TIME or EARLIEST_TIME. Raises BrokerError."""
    return offsets_before(connection, topic, partition, time_ms, 1)[0]


def offset_in(cluster: Cluster, place: Place, time_ms: int) -> int:
    """`offset_at`, asked of whoever leads the partition. Raises ClientError."""
    found: int = cluster.on(cluster.leader(*place), lambda it: offset_at(it, *place, time_ms))
    return found


def fetch_from(
    cluster: Cluster,
    broker: int,
    requests: Sequence[FetchRequest],
    *,
    max_wait_ms: int = 0,
    committed_only: bool = False,
    raw_unless: bytes | None = None,
) -> list[Fetched]:
    """`fetch` from a broker. With `committed_only` all messages of one that knows no transactions are. Raises ClientError."""

    def do(connection: Connection) -> list[Fetched]:
        knows = connection.version(ApiKey.FETCH) >= _COMMITTED_ONLY_SINCE
        return fetch(
            connection,
            requests,
            max_wait_ms=max_wait_ms,
            committed_only=committed_only and knows,
            raw_unless=raw_unless,
        )

    found: list[Fetched] = cluster.on(broker, do)
    return found


def _listed(
    connection: Connection, topic: str, partition: int, time_ms: int, max_num: int, at_most: int | None
) -> ListOffsetsPartitionResponse:
    request = WireListOffsetsRequest(
        replica_id=-1,
        topics=(
            ListOffsetsTopic(
                name=topic,
                partitions=(
                    ListOffsetsPartition(partition_index=partition, timestamp=time_ms, max_num_offsets=max_num),
                ),
            ),
        ),
    )
    version = connection.version(ApiKey.LIST_OFFSETS, at_most=at_most)
    answer: ListOffsetsResponse = connection.call(request, version=version)
    found = answer.topics[0].partitions[0]
    raise_for(found.error_code, f"offsets of {topic}-{partition}")
    return found
