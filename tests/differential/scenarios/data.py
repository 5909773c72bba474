"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, InitProducerId, DescribeProducers."""

from __future__ import annotations

from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from dataplane.protocol.messages.produce import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.records.legacy import Message, write_message_set
from tests.differential.asking import START_MS, Asker, batch
from tests.differential.scenarios import scenario
from tests.differential.scenarios.cluster import NOBODY

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def _broken(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def _resealed(data: bytes, at: int, value: bytes) -> bytes:
    """Changed, and with a checksum that fits."""
    from crc32c import crc32c

    changed = _broken(data, at, value)
    return _broken(changed, 17, crc32c(changed[21:]).to_bytes(4))


@scenario(ApiKey.PRODUCE)
def produce(asker: Asker) -> None:
    name = asker.topic("t", 2)

    def send(
        label: str, *parts: tuple[int, bytes | None], topic: str = name, acks: int = -1, **members: object
    ) -> None:
        data = tuple(PartitionProduceData(partition, records) for partition, records in parts)
        transactional = members.get("transactional_id")
        asker.ask(label, ProduceRequest(transactional, acks, 10_000, (TopicProduceData(topic, data),)))

    asker.ask("nothing", ProduceRequest(None, -1, 10_000, ()))
    send("a batch", (0, batch()))
    send("acks 1", (0, batch()), acks=1)
    send("acks 2", (0, batch()), acks=2)
    send("acks -2", (0, batch()), acks=-2)
    send("both partitions", (0, batch()), (1, batch()))
    send("the same partition twice", (0, batch()), (0, batch()), topic=asker.topic("twice"))
    send("an unknown partition", (9, batch()))
    send("a negative partition", (-1, batch()))
    send("one known, one unknown", (0, batch()), (9, batch()))
    send("an unknown topic", (0, batch()), topic=asker.name("no"))
    send("a name that cannot be", (0, batch()), topic="a b")
    send("an internal topic", (0, batch()), topic="__consumer_offsets")
    send("no records", (0, b""))
    if asker.version == 7:  # Apache Kafka does not answer
        send("null", (0, None))
    send("two batches", (0, batch() + batch()))
    for codec, number in CODECS.items():
        send(codec, (0, batch(codec=number)))
    whole = batch()
    send("cut short", (0, whole[:-3]))
    send("only the header", (0, whole[:61]))
    send("less than a header", (0, whole[:20]))
    send("a wrong checksum", (0, _broken(whole, 17, b"\0\0\0\0")))
    send("magic 3", (0, _broken(whole, 16, b"\3")))
    send("a length of 0", (0, _broken(whole, 8, b"\0\0\0\0")))
    send("a negative length", (0, _broken(whole, 8, b"\xff\xff\xff\xff")))
    send("a length beyond the end", (0, _broken(whole, 8, b"\0\1\0\0")))
    send("a base offset of 5", (0, _broken(whole, 0, (5).to_bytes(8))))
    send("a leader epoch", (0, _broken(whole, 12, (9).to_bytes(4))))
    send("a control batch", (0, _resealed(whole, 21, b"\0\x20")))
    send("a transactional batch", (0, _resealed(whole, 21, b"\0\x10")))
    send("an unknown codec", (0, _resealed(whole, 21, b"\0\7")))
    send("more records than said", (0, _resealed(whole, 57, (2).to_bytes(4))))
    send("fewer records than said", (0, _resealed(whole, 57, (9).to_bytes(4))))
    send("a count of 0", (0, _resealed(whole, 57, (0).to_bytes(4))))
    send("a count of -1", (0, _resealed(whole, 57, b"\xff\xff\xff\xff")))
    send("an offset delta that lies", (0, _resealed(whole, 23, (9).to_bytes(4))))
    send("a producer epoch without a producer", (0, _resealed(whole, 51, (5).to_bytes(2))))
    small = asker.topic("s", max_message_bytes="200")
    send("too large for the topic", (0, batch(20)), topic=small)
    send("small enough for the topic", (0, batch(1)), topic=small)
    stamped = asker.topic("a", message_timestamp_type="LogAppendTime")
    send("append time", (0, batch()), topic=stamped)
    compacted = asker.topic("c", cleanup_policy="compact")
    send("with keys, to a compacted topic", (0, batch()), topic=compacted)
    send("without keys, to a compacted topic", (0, _keyless()), topic=compacted)
    send("in sync too few", (0, batch()), topic=asker.topic("m", min_insync_replicas="2"))
    send("in sync too few, acks 1", (0, batch()), topic=asker.name("m"), acks=1)
    send("a time far ahead", (0, batch(first_ms=START_MS + 10 * 365 * 86_400_000)))
    if asker.version >= 3:
        send("a transactional id", (0, batch()), transactional_id="x")
        _idempotent(asker, name)


@scenario(ApiKey.PRODUCE)
def old_messages(asker: Asker) -> None:
    """Formats 0 and 1, good and bad, and what is stored of them."""
    if asker.version > 3:
        return
    name = asker.topic("t")
    stamped = asker.topic("a", message_timestamp_type="LogAppendTime")
    packed = asker.topic("p", compression_type="gzip")
    bounded = asker.topic("b", message_timestamp_before_max_ms="1000")

    def send(label: str, records: bytes, topic: str = name) -> None:
        data = TopicProduceData(topic, (PartitionProduceData(0, records),))
        asker.ask(label, ProduceRequest(None, -1, 10_000, (data,)))

    def messages(magic: int, count: int = 3, codec: int = 0, attributes: int = 0) -> bytes:
        return write_message_set(
            [
                Message(n, magic, attributes, START_MS + n * 1000 if magic else -1, b"k", b"value %d" % n)
                for n in range(count)
            ],
            codec,
        )

    for magic in (0, 1):
        for codec in range(4):
            for topic in (name, packed) if codec < 2 else (name,):
                send(f"format {magic}, codec {codec}", messages(magic, codec=codec), topic)
        good = messages(magic)
        send(f"format {magic}, append time", good, stamped)
        send(f"format {magic}, too old", good, bounded)
        send(f"format {magic}, one and a part", messages(magic, 1) + good[:20])
        send(f"format {magic}, a part", good[:20])
        send(f"format {magic}, a wrong checksum", _broken(good, 12, b"\0\0\0\0"))
        send(f"format {magic}, a size of 5", _broken(good, 8, (5).to_bytes(4)))
        send(f"format {magic}, a negative size", _broken(good, 8, b"\xff\xff\xff\xff"))
        wrapped = messages(magic, codec=1)
        send(f"format {magic}, two packed", wrapped + wrapped)
        send(f"format {magic}, plain and packed", good + wrapped)
        send(f"format {magic}, packed and plain", wrapped + good)
    send("both formats", messages(0) + messages(1))
    send("the producer says append time", messages(1, attributes=8))
    send("a batch behind a message", messages(0) + batch())
    for topic in (name, packed):
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=2**20, topics=(FetchTopic(topic, NOBODY, (wanted,)),)
        )
        asker.ask(f"what is in {'t' if topic == name else 'p'}", request, 1)


def _keyless() -> bytes:
    from dataplane.records.batch import Record, build_batch

    return bytes(build_batch([Record(None, b"v", timestamp=START_MS)], now_ms=START_MS))


def _idempotent(asker: Asker, name: str) -> None:
    answer = asker.quietly(InitProducerIdRequest(None, 60_000), 1)
    producer = answer.producer_id

    def send(
        label: str, sequence: int, *, epoch: int = 0, count: int = 3, who: int = producer, partition: int = 1
    ) -> None:
        data = batch(count, producer_id=who, producer_epoch=epoch, base_sequence=sequence)
        part = (PartitionProduceData(partition, data),)
        asker.ask(f"idempotent: {label}", ProduceRequest(None, -1, 10_000, (TopicProduceData(name, part),)))

    send("first", 0)
    send("next", 3)
    send("the last again", 3)
    send("the first again", 0)
    send("a gap", 9)
    send("part of an old one", 4)
    send("again with another count", 3, count=2)
    send("a higher epoch in the middle", 6, epoch=1)
    send("a higher epoch", 0, epoch=1)
    send("the old epoch", 6, epoch=0)
    for number in range(6):
        send(f"run {number}", 3 + number * 3, epoch=1)
    send("five back", 6, epoch=1)
    send("six back", 3, epoch=1)
    send("an unknown producer, from 0", 0, who=producer + 1_000_000)
    send("an unknown producer, in the middle", 7, who=producer + 1_000_001)
    send("a negative sequence", -1)
    send("a negative epoch", 0, epoch=-1)
    send("sequence at its end", 2**31 - 2, who=producer + 1_000_002)


@scenario(ApiKey.FETCH)
def fetch(asker: Asker) -> None:
    name = asker.topic("t", 2)
    asker.produce(name, batches=3)
    by_id = asker.version >= 13
    known = asker.topic_id(name) if by_id else NOBODY

    def get(
        label: str, *parts: FetchPartition, topic: str = name, topic_id: object = None, **members: object
    ) -> object:
        topics = (FetchTopic(topic, topic_id or (known if topic == name else NOBODY), parts),) if parts else ()
        settings = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 2**20, **members}
        return asker.ask(label, FetchRequest(topics=topics, **settings))

    def part(partition: int, offset: int, size: int = 2**20, **members: object) -> FetchPartition:
        return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size, **members)

    get("from 0", part(0, 0))
    get("from the middle of a batch", part(0, 4))
    get("from the end", part(0, 9))
    get("beyond the end", part(0, 10))
    get("a negative offset", part(0, -1))
    get("an empty partition", part(1, 0))
    get("both", part(0, 0), part(1, 0))
    get("one known, one unknown", part(0, 0), part(9, 0))
    get("an unknown partition", part(9, 0))
    get("a negative partition", part(-1, 0))
    get("an unknown topic", part(0, 0), topic=asker.name("no"))
    get("the same partition twice", part(0, 0), part(0, 3))
    get("one byte of the partition", part(0, 0, 1))
    get("no byte of the partition", part(0, 0, 0))
    get("a negative size of the partition", part(0, 0, -1))
    get("one batch and a half", part(0, 0, 150))
    get("one byte in all", part(0, 0), max_bytes=1)
    get("no byte in all", part(0, 0), max_bytes=0)
    get("a negative size in all", part(0, 0), max_bytes=-1)
    get("more bytes than there are, no time", part(0, 0), min_bytes=2**20)
    get("more bytes than there are, some time", part(0, 0), min_bytes=2**20, max_wait_ms=100)
    get("a negative wait", part(0, 9), min_bytes=1, max_wait_ms=-1)
    get("an error does not wait", part(9, 0), min_bytes=1, max_wait_ms=5_000)
    get("nothing", max_wait_ms=0)
    if asker.version >= 4:
        get("committed", part(0, 0), isolation_level=1)
        get("an unknown isolation level", part(0, 0), isolation_level=7)
    if asker.version >= 9:
        for epoch in (0, 5, -2):
            get(f"current leader epoch {epoch}", part(0, 0, current_leader_epoch=epoch))
    if asker.version >= 11:
        get("a rack", part(0, 0), rack_id="r")
    if asker.version >= 12:
        get("last fetched epoch 0", part(0, 3, last_fetched_epoch=0))
        get("last fetched epoch 0, beyond the end", part(0, 99, last_fetched_epoch=0))
        get("last fetched epoch 9", part(0, 3, last_fetched_epoch=9))
    if by_id:
        get("the id of nobody", part(0, 0), topic_id=NOBODY)
    for codec, number in CODECS.items():
        packed = asker.topic(codec)
        data = (PartitionProduceData(0, batch(codec=number)),)
        asker.quietly(ProduceRequest(None, -1, 10_000, (TopicProduceData(packed, data),)), 7)
        get(codec, part(0, 0), topic=packed, topic_id=asker.topic_id(packed))
    if asker.version >= 7:
        _session(asker, name, known, part)


def _session(asker: Asker, name: str, known: object, part: object) -> None:
    def get(label: str, session: int, epoch: int, *parts: FetchPartition, forget: tuple[int, ...] = ()) -> object:
        topics = (FetchTopic(name, known, parts),) if parts else ()
        forgotten = (ForgottenTopic(name, known, forget),) if forget else ()
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=2**20,
            session_id=session,
            session_epoch=epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        return asker.ask(f"session: {label}", request)

    get("none wanted", 0, -1, part(0, 0))
    first = get("begin", 0, 0, part(0, 0), part(1, 0))
    number = first.session_id if first is not None else 0
    get("nothing has changed", number, 1)
    get("one moves on", number, 2, part(0, 9))
    get("nothing new", number, 3)
    asker.produce(name, 1, 1)
    get("something new", number, 4)
    get("forget one", number, 5, forget=(1,))
    get("add an unknown one", number, 6, part(9, 0))
    get("the unknown one again", number, 7)
    get("a wrong epoch", number, 99)
    get("an unknown session", 12345, 1)
    get("end", number, -1)
    get("after the end", number, 8)
    get("begin with nothing", 0, 0)


@scenario(ApiKey.LIST_OFFSETS)
def list_offsets(asker: Asker) -> None:
    name = asker.topic("t", 2)
    asker.produce(name, batches=3)

    def get(label: str, *parts: tuple[int, int], topic: str = name, replica: int = -1, **members: int) -> None:
        epoch, count = members.pop("epoch", -1), members.pop("count", 1)
        partitions = tuple(ListOffsetsPartition(p, epoch, timestamp, count) for p, timestamp in parts)
        asker.ask(
            label, ListOffsetsRequest(replica, members.get("isolation", 0), (ListOffsetsTopic(topic, partitions),))
        )

    asker.ask("none", ListOffsetsRequest(-1, 0, ()))
    for what, timestamp in (
        ("latest", -1),
        ("earliest", -2),
        ("max timestamp", -3),
        ("earliest local", -4),
        ("last tiered", -5),
        ("an unknown special one", -6),
        ("time 0", 0),
        ("the first record", START_MS),
        ("between two records", START_MS + 1_500),
        ("in the second batch", START_MS + 4_000),
        ("the last record", START_MS + 8_000),
        ("after the last", START_MS + 9_000),
        ("for ever", 2**63 - 1),
    ):
        get(what, (0, timestamp))
        get(f"{what}, nothing there", (1, timestamp))
    get("both", (0, -1), (1, -1))
    get("the same twice", (0, -1), (0, -1))
    get("the same twice, differently", (0, -1), (0, -2))
    get("an unknown partition", (9, -1))
    get("a negative partition", (-1, -1))
    get("an unknown topic", (0, -1), topic=asker.name("no"))
    get("a name that cannot be", (0, -1), topic="a b")
    get("as a debugger", (0, -1), replica=-2)
    if asker.version == 0:
        for count in (0, 2, 100, -1):
            get(f"{count} of them", (0, -1), count=count)
    if asker.version >= 2:
        get("committed", (0, -1), isolation=1)
        get("an unknown isolation level", (0, -1), isolation=9)
    if asker.version >= 4:
        for epoch in (0, 5, -2):
            get(f"current leader epoch {epoch}", (0, -1), epoch=epoch)


@scenario(ApiKey.OFFSET_FOR_LEADER_EPOCH)
def offset_for_leader_epoch(asker: Asker) -> None:
    name = asker.topic("t", 2)
    asker.produce(name)

    def get(label: str, partition: int, epoch: int, current: int = -1, topic: str = name) -> None:
        parts = (OffsetForLeaderPartition(partition, current, epoch),)
        asker.ask(label, OffsetForLeaderEpochRequest(-1, (OffsetForLeaderTopic(topic, parts),)))

    asker.ask("none", OffsetForLeaderEpochRequest(-1, ()))
    for epoch in (0, 1, 5, -1, -2):
        get(f"epoch {epoch}", 0, epoch)
        get(f"epoch {epoch}, nothing there", 1, epoch)
    get("an unknown partition", 9, 0)
    get("an unknown topic", 0, 0, topic=asker.name("no"))
    if asker.version >= 2:
        get("the current epoch", 0, 0, 0)
        get("a future epoch", 0, 0, 5)


@scenario(ApiKey.INIT_PRODUCER_ID)
def init_producer_id(asker: Asker) -> None:
    asker.ask("idempotent", InitProducerIdRequest(None, 60_000))
    asker.ask("again", InitProducerIdRequest(None, 60_000))
    asker.ask("timeout 0", InitProducerIdRequest(None, 0))
    asker.ask("timeout -1", InitProducerIdRequest(None, -1))
    asker.ask("an empty transactional id", InitProducerIdRequest("", 60_000))
    if asker.version >= 3:
        asker.ask("an id without an epoch", InitProducerIdRequest(None, 60_000, 5, -1))
        asker.ask("an epoch without an id", InitProducerIdRequest(None, 60_000, -1, 5))
        asker.ask("an id and an epoch", InitProducerIdRequest(None, 60_000, 5, 3))


@scenario(ApiKey.DESCRIBE_PRODUCERS)
def describe_producers(asker: Asker) -> None:
    name = asker.topic("t", 2)
    producer = asker.quietly(InitProducerIdRequest(None, 60_000), 1).producer_id
    data = (PartitionProduceData(0, batch(producer_id=producer, producer_epoch=0, base_sequence=0)),)
    asker.quietly(ProduceRequest(None, -1, 10_000, (TopicProduceData(name, data),)), 7)
    topic = DescribeProducersRequestTopicRequest
    asker.ask("one", DescribeProducersRequest((topic(name, (0,)),)))
    asker.ask("none", DescribeProducersRequest(()))
    asker.ask("nobody there", DescribeProducersRequest((topic(name, (1,)),)))
    asker.ask("an unknown partition", DescribeProducersRequest((topic(name, (9,)),)))
    asker.ask("an unknown topic", DescribeProducersRequest((topic(asker.name("no"), (0,)),)))
    asker.ask("a name that cannot be", DescribeProducersRequest((topic("a b", (0,)),)))
