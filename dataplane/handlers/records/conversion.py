"""Records that cannot be stored or sent as they are: Produce and Fetch as before 0.11, and topics that ask for more.

What has to be done is in `dataplane.records` (`preparation`, `down_conversion`); here is who gets it done, in slices of
the loop (`dataplane.slices`), with what bounds:

* a message set of an old producer must be worth one batch of `max.message.bytes`;
* an old fetch gets at most `MAX_CONVERTED_BYTES` in one answer, whatever it asks for; which partition comes first
  changes from answer to answer, so that none starves behind the others;
* a connection whose request is being worked on is not read from (`held_until`), as Kafka handles one request of a
  connection at a time: so a producer's batches keep their order, and answers do not pile up.

Down-conversion reads the log when its turn has come, not when the request did.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.release import released
from dataplane.records.compression import ZSTD
from dataplane.records.down_conversion import Converted, down_convert
from dataplane.records.header import (
    HEADER_SIZE,
    MAGIC,
    BatchHeader,
    CorruptBatchError,
    check_batch,
    claimed_size,
    codec_of,
    magic_of,
    read_header,
)
from dataplane.records.legacy import OVERHEAD
from dataplane.records.preparation import NO_RULES, prepare_batch, prepare_messages
from dataplane.records.steps import Pace
from dataplane.replication.replica.partition import Partition
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.tasks import failed

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.fetch import (
        FetchPartition,
        FetchRequest,
        FetchResponse,
        FetchResponsePartitionData,
    )
    from dataplane.records.steps import Steps
    from dataplane.tasks import Future

FIRST_BATCHES_PRODUCED = 3
"""Version of Produce since which records are one batch of magic 2."""
FIRST_ZSTD_PRODUCED = 7
FIRST_NATIVE_FETCH = 4
"""Version of Fetch since which batches are sent as they are stored."""
_FIRST_ZSTD_FETCH = 10
_FIRST_FORMAT_1_FETCH = 2

MAX_CONVERTED_BYTES = 4 * 2**20
_CHUNK_BYTES = 2**20
_MOST_CHUNKS = 16
_READ_HERE_BYTES = 64 * 2**10
_OLD_TO_NEW = 4
"""A message of format 0 or 1 is at most so many times as large as its record, key and value apart."""
_SHORTEST = OVERHEAD[0]
"""Bytes of what has a length of its own, in any format."""
_ENTRY_US, _ROW_US = 1, 4


# --- produce ----------------------------------------------------------------------------------------------------------


class Prepared(NamedTuple):
    """What is to be appended. No batch: there was nothing in what was sent."""

    batch: memoryview | None
    log_append_time: int = -1


def produce_problem(records: object, version: int) -> ErrorCode:
    """What can be said of a partition's records before looking into them."""
    if not isinstance(records, memoryview):
        return ErrorCode.INVALID_RECORD
    if version < FIRST_BATCHES_PRODUCED:
        return ErrorCode.NONE
    magic = magic_of(records)
    if magic is None:
        return ErrorCode.INVALID_RECORD
    size = claimed_size(records)
    if size < _SHORTEST:
        return ErrorCode.CORRUPT_MESSAGE
    if magic != MAGIC:
        return ErrorCode.INVALID_RECORD if magic < MAGIC else ErrorCode.CORRUPT_MESSAGE
    if is_early_zstd(records, version):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if size > len(records) or (len(records) >= HEADER_SIZE and size < len(records)):
        return ErrorCode.INVALID_RECORD  # cut on its way, or more than one batch
    return ErrorCode.NONE


def is_early_zstd(batch: memoryview, version: int) -> bool:
    """Whether a client sends zstd that could not know it."""
    return version < FIRST_ZSTD_PRODUCED and codec_of(batch) == ZSTD


def needs_preparation(partition: Partition, version: int) -> bool:
    """Whether records cannot be appended as they came."""
    return partition.state.settings.rules is not None or version < FIRST_BATCHES_PRODUCED


def prepare(ctx: RequestContext, partition: Partition, records: memoryview) -> Future[Prepared]:
    """The batch to append for a producer's records. Fails with CorruptBatchError."""
    limit = partition.state.settings.max_message_bytes
    magic = magic_of(records)
    if len(records) > (_OLD_TO_NEW * limit if magic is not None and magic < MAGIC else limit):
        return failed(CorruptBatchError("more than the topic takes", ErrorCode.MESSAGE_TOO_LARGE))
    now_ms = ctx.broker.doors.clock.now_ms()
    if not (ctx.is_long and magic is not None and magic < MAGIC):
        records = memoryview(
            bytearray(records)
        )  # the frame's memory ends with this turn, or a batch is changed in place
    steps = _prepared(records, partition, now_ms)
    return ctx.broker.slices.run(ctx.owner, steps)


def _prepared(records: memoryview, partition: Partition, now_ms: int) -> Steps[Prepared]:
    rules, limit = partition.state.settings.rules or NO_RULES, partition.state.settings.max_message_bytes
    magic = magic_of(records)
    if magic is None:
        return Prepared(None)  # of an old producer: less than a message, which Kafka takes for none
    batch: memoryview | None
    if magic < MAGIC:
        batch = yield from prepare_messages(records, rules, now_ms, limit)
        if batch is None:
            return Prepared(None)
    else:
        header: BatchHeader = read_header(records)
        code = check_batch(records, header, limit)
        if code:
            raise CorruptBatchError("refused by its header", code)
        batch = yield from prepare_batch(records, header, rules, now_ms)
    if len(batch) > limit:
        raise CorruptBatchError("larger than the topic takes after conversion", ErrorCode.MESSAGE_TOO_LARGE)
    return Prepared(batch, now_ms if rules.stamps else -1)


# --- fetch ------------------------------------------------------------------------------------------------------------


def fetch_refusal(partition: Partition, version: int) -> ErrorCode:
    """Why a consumer with this version of Fetch cannot read the topic, if it cannot."""
    if version >= _FIRST_ZSTD_FETCH:
        return ErrorCode.NONE
    config = partition.log.config
    if config.compression_type == "zstd":
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if version < FIRST_NATIVE_FETCH and not config.message_downconversion_enable:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE


def convert_answer(ctx: RequestContext, request: FetchRequest, response: FetchResponse) -> Future[FetchResponse]:
    """An answer to Fetch before version 4, with message sets instead of batches."""
    return ctx.broker.slices.run(ctx.owner, converted(ctx, request, response))


def converted(ctx: RequestContext, request: FetchRequest, response: FetchResponse) -> Steps[FetchResponse]:
    """The same in steps."""
    pace = Pace()
    wanted: dict[tuple[str, int], FetchPartition] = {}
    for t in request.topics:
        for p in t.partitions:
            if pace.over(_ENTRY_US):
                yield None
            wanted[t.topic, p.partition] = p
    rows: list[tuple[str, FetchResponsePartitionData]] = []
    for told in response.responses:
        if pace.over(_ENTRY_US):
            yield None
        rows += [(told.topic, data) for data in told.partitions]
    left = min(request.max_bytes, MAX_CONVERTED_BYTES, ctx.broker.config.settings.fetch_max_bytes)
    first = ctx.correlation_id % len(rows) if rows else 0
    made: dict[tuple[str, int], FetchResponsePartitionData] = {}
    taken = 0
    for topic, data in chain(islice(rows, first, None), islice(rows, first)):
        key = (topic, data.partition_index)
        if pace.over(_ROW_US):
            yield None
        if data.error_code or not data.records:
            made[key] = data
            continue
        limit = min(wanted[key].partition_max_bytes, left - taken)
        if taken and limit <= 0:
            made[key] = replace(data, records=b"")
            continue
        converted = Converted(wanted[key].fetch_offset, max(0, limit), at_least_one=taken == 0)
        made[key] = yield from _convert_partition(ctx, topic, data, converted)
        taken += len(converted.data)
    topics = []
    for told in response.responses:
        if pace.over(_ROW_US + _ENTRY_US * len(told.partitions)):
            yield None
        topics.append(replace(told, partitions=tuple(made[told.topic, d.partition_index] for d in told.partitions)))
    for keys in (wanted, made):
        while keys:
            if pace.over(_ENTRY_US):
                yield None
            keys.popitem()
    yield from released(rows)
    return replace(response, responses=tuple(topics))


def _convert_partition(
    ctx: RequestContext, topic: str, data: FetchResponsePartitionData, converted: Converted
) -> Steps[FetchResponsePartitionData]:
    magic = 0 if ctx.version < _FIRST_FORMAT_1_FETCH else 1
    partition = ctx.broker.replicas.registry.leader(topic, data.partition_index)
    if isinstance(partition, ErrorCode):
        return _refused(data, partition)
    try:
        for _ in range(_MOST_CHUNKS):
            batches = yield from _read(partition, converted)
            if batches is None:
                break
            before = converted.next_offset
            yield from down_convert(batches, magic, converted)
            if converted.is_full or converted.next_offset == before:
                break
    except CorruptBatchError as error:
        if not converted.data:
            return _refused(data, error.code)
    except OffsetOutOfRangeError:
        return _refused(data, ErrorCode.OFFSET_OUT_OF_RANGE)
    except OSError:
        return _refused(data, ErrorCode.KAFKA_STORAGE_ERROR)
    if partition.usage is not None and not ctx.session.is_internal:
        partition.usage.consumed(len(converted.data))
    return replace(data, records=bytes(converted.data), high_watermark=partition.state.high_watermark)


def _read(partition: Partition, converted: Converted) -> Steps[memoryview | None]:
    """The next batches, not many more than fit: what is read is read again with the next fetch."""
    room = min(_CHUNK_BYTES, converted.limit - len(converted.data))
    if converted.data and room <= 0:
        return None
    end = partition.readable_end(stable_only=False)  # who wants the old formats knows of no transactions
    found = partition.read(converted.next_offset, room, end, at_least_one=not converted.data, wait=True)
    if found is None:
        return None
    return memoryview(found.read() if found.size <= _READ_HERE_BYTES else (yield found.read))


def _refused(data: FetchResponsePartitionData, code: ErrorCode) -> FetchResponsePartitionData:
    return replace(data, error_code=code, high_watermark=-1, records=None)
