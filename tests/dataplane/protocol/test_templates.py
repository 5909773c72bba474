"""Templates read and write what the codecs, kio and Kafka itself do; what is not quite what was learned, they do not know."""

from __future__ import annotations

import dataclasses
import random
import struct
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import decode, encode, marking_decoder, marking_encoder
from dataplane.protocol.headers import encode_frame, encode_request, parse_request_header
from dataplane.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
    FetchTopic,
)
from dataplane.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from dataplane.protocol.primitives import DecodeError
from dataplane.protocol.schema import wires
from dataplane.protocol.source import FORMATS
from dataplane.protocol.templates import RecordRequests, Requests, answer_template, with_field
from quota.contracts.namespace import ClusterNames, InstanceNames
from tests.dataplane.protocol.kio_twins import kio_bytes, narrow, twin
from tests.dataplane.protocol.strategies import all_messages, messages
from tests.dataplane.protocol.test_same_bytes_as_kafka import MESSAGES, read_golden
from tests.support.random_messages import random_message

PHYSICAL = ClusterNames()
FETCH, PRODUCE = APIS[ApiKey.FETCH], APIS[ApiKey.PRODUCE]
SEVERAL = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), database=None)
INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
EDGES = (1, 126, 127, 16_382, 16_383, 2**21 - 2, 2**21 - 1, 2**21)
"""Sizes of records about those where their varint grows."""


# --- where fields stand, of every message -----------------------------------------------------------------------------


def plain_fields(cls, version):
    """(structure, name, wire) of every field with a place of its own, at any depth."""
    for name, wire, _ in wires(cls):
        if version in wire.versions and version not in wire.tagged:
            yield cls, name, wire
            if isinstance(wire.element, type):
                yield from plain_fields(wire.element, version)


def replaced(message, field, number, value):
    """The message with another value in the field, where it is met for the `number`-th time; and how often it was met."""
    part, wanted = field
    met, changes = 0, {}
    for name, wire, _ in wires(type(message)):
        held = getattr(message, name)
        if type(message) is part and name == wanted:
            if met == number:
                changes[name] = value
            met += 1
        elif isinstance(wire.element, type) and held is not None:
            items = held if wire.kind == "array" else (held,)
            made = []
            for item in items:
                other, count = replaced(item, field, number - met, value)
                met += count
                made.append(other)
            changes[name] = tuple(made) if wire.kind == "array" else made[0]
    return replace(message, **changes), met


@pytest.mark.parametrize("cls", sorted({cls for cls, _ in all_messages()}, key=lambda cls: cls.__name__))
def test_a_mark_is_where_the_field_is_read_and_written(cls):
    dice = random.Random(cls.__name__)
    for version in (version for each, version in all_messages() if each is cls):
        fixed = [(part, name, wire) for part, name, wire in plain_fields(cls, version) if wire.kind in FORMATS]
        if not fixed:
            continue
        part, name, wire = dice.choice(fixed)
        locate, write = (make(cls, version, ((part, name),)) for make in (marking_decoder, marking_encoder))
        for _ in range(3):
            message = random_message(dice, cls, version, ["orders"])
            data, marks, written = bytearray(), [], []
            write(message, data, PHYSICAL, [], written)
            assert data == encode(message, version)
            locate(data, 0, PHYSICAL, marks)
            assert marks == written
            assert len(marks) == replaced(message, (part, name), -1, None)[1]
            for number, mark in enumerate(marks):
                value = {"bool": True, "float64": 0.5}.get(wire.kind, 77)
                changed = bytearray(data)
                struct.pack_into(">" + FORMATS[wire.kind], changed, mark, value)
                expected, _ = replaced(message, (part, name), number, value)
                assert encode(decode(cls, version, bytes(changed)), version) == encode(expected, version)


@pytest.mark.parametrize(
    "fields",
    [
        ((FetchPartition, "fetch_offset"), (FetchRequest, "session_epoch")),  # not in their order
        ((FetchPartition, "replica_directory_id"),),  # tagged
        ((FetchRequest, "replica_id"),),  # of older versions
        ((FetchRequest, "offset"),),
    ],
)
def test_a_field_without_a_place_is_refused_when_the_text_is_written(fields):
    for make in (marking_decoder, marking_encoder):
        with pytest.raises(ValueError, match="FetchRequest 17: instead of"):
            make(FetchRequest, 17, fields)


def test_a_field_within_a_tagged_one_has_no_place():
    for make in (marking_decoder, marking_encoder):
        with pytest.raises(ValueError, match="there is nothing"):
            make(FetchResponse, 12, ((FetchResponseEpochEndOffset, "end_offset"),))


# --- fetch requests ---------------------------------------------------------------------------------------------------

OFFSET = (FetchPartition, "fetch_offset")
EPOCH = (FetchRequest, "session_epoch")


def body(message, version):
    """As kio writes it, where kio can."""
    return kio_bytes(message, version) if twin(type(message), version) is not None else encode(message, version)


def framed(api, version, correlation_id, message, client_id="client"):
    """A request as it comes, the body made by the oracle."""
    whole = encode_request(api, version, correlation_id, client_id, message)[4:]
    head = parse_request_header(memoryview(whole)).position
    return memoryview(bytearray(whole[:head] + body(message, version)))


def values_of(cls, version):
    return messages(cls, version, narrow(cls, version) if twin(cls, version) is not None else None)


def single(cls, version, topics, topic, partitions, partition):
    """Messages of one partition of one topic."""
    known = narrow(cls, version) if twin(cls, version) is not None else None
    return st.builds(
        lambda message, one, row: replace(message, **{topics: (replace(one, **{partitions: (row,)}),)}),
        messages(cls, version, known),
        messages(topic, version, known),
        messages(partition, version, known),
    )


def fetch_requests(version):
    return single(FetchRequest, version, "topics", FetchTopic, "partitions", FetchPartition)


def at(request, offset, epoch=None):
    topic = request.topics[0]
    row = replace(topic.partitions[0], fetch_offset=offset)
    made = replace(request, topics=(replace(topic, partitions=(row,)),))
    return made if epoch is None else replace(made, session_epoch=epoch)


@pytest.mark.parametrize("version", range(7, 18))
@SEVERAL
@given(data=st.data())
def test_a_fetch_that_differs_in_its_holes_only_is_known_and_read(version, data):
    request = data.draw(fetch_requests(version))
    offset, epoch, correlation_id = data.draw(INT64), data.draw(INT32), data.draw(INT32)
    plain, in_session = Requests(FETCH, (OFFSET,)), Requests(FETCH, (EPOCH, OFFSET))
    for known in (plain, in_session):
        assert known.find(framed(FETCH, version, 7, request)) is None
        assert known.learn(framed(FETCH, version, 7, request), PHYSICAL, "learned")
    told = struct.pack(">i", correlation_id)
    other = framed(FETCH, version, correlation_id, at(request, offset))
    assert plain.find(other) == ("learned", told, offset)
    other = framed(FETCH, version, correlation_id, at(request, offset, epoch))
    assert in_session.find(other) == ("learned", told, epoch, offset)
    assert (plain.find(other) is None) == (epoch != request.session_epoch)


@pytest.mark.parametrize("version", [7, 11, 12, 15, 17])
@SEVERAL
@given(data=st.data())
def test_whatever_is_known_means_what_was_learned_but_for_the_holes(version, data):
    """One byte is another, of any: either the frame is not known, or its decoder says so, too."""
    request = data.draw(fetch_requests(version))
    known, frame = Requests(FETCH, (EPOCH, OFFSET)), framed(FETCH, version, 7, request)
    known.learn(frame, PHYSICAL, "learned")
    hits = 0
    for place in range(len(frame)):
        changed = memoryview(bytearray(frame))
        changed[place] ^= data.draw(st.integers(1, 255))
        found = known.find(changed)
        if found is not None:
            hits += 1
            header = parse_request_header(changed)
            assert header[:2] == (FETCH.key, version)
            assert found[1] == struct.pack(">i", header.correlation_id)
            assert decode(FetchRequest, version, changed, header.position) == at(request, found[3], found[2])
    assert hits == 4 + 4 + 8  # the correlation id and the holes


@pytest.mark.parametrize("cut", [-1, 1])
def test_a_frame_that_is_longer_or_shorter_is_not_known(cut):
    request = FetchRequest(topics=(FetchTopic(topic="orders", partitions=(FetchPartition(),)),), rack_id="rack")
    known, frame = Requests(FETCH, (OFFSET,)), bytes(framed(FETCH, 12, 7, request))
    assert known.learn(memoryview(frame), PHYSICAL, "learned")
    assert known.find(memoryview(frame + b"\0" if cut > 0 else frame[:cut])) is None
    assert known.find(memoryview(b"")) is None


def test_what_has_no_hole_or_several_of_one_is_not_learned():
    two = FetchTopic(topic="orders", partitions=(FetchPartition(), FetchPartition()))
    one = FetchTopic(topic="orders", partitions=(FetchPartition(),))
    for topics in ((), (FetchTopic(topic="orders"),), (two,), (one, one)):
        known, frame = Requests(FETCH, (OFFSET,)), framed(FETCH, 12, 7, FetchRequest(topics=topics))
        assert not known.learn(frame, PHYSICAL, "learned")
        assert known.find(frame) is None
        assert len(known) == 0


def test_tags_that_nobody_knows_are_compared_like_everything_else():
    """A newer client sends them; the places before and behind them are those of the decoder."""
    request = FetchRequest(topics=(FetchTopic(topic="orders", partitions=(FetchPartition(),)),), rack_id="é" * 70)

    def tagged(offset, tag):
        plain = bytes(framed(FETCH, 12, 7, at(request, offset)))
        assert plain.endswith(b"\0")
        return memoryview(plain[:-1] + b"\x01\x63\x02" + tag)

    known = Requests(FETCH, (OFFSET,))
    assert known.learn(tagged(1, b"ab"), PHYSICAL, "learned")
    assert known.find(tagged(2**40, b"ab"))[2] == 2**40
    assert known.find(tagged(1, b"ac")) is None


def test_what_is_forgotten_is_not_known_and_can_be_learned_again():
    request = FetchRequest(topics=(FetchTopic(topic="orders", partitions=(FetchPartition(),)),))
    known, frame = Requests(FETCH, (OFFSET,)), framed(FETCH, 12, 7, request)
    for shape in "ab":
        known.learn(frame, PHYSICAL, shape)
        assert known.find(frame)[0] == shape
        known.forget()
        assert (known.find(frame), len(known)) == (None, 0)


def test_requests_of_one_size_are_told_apart_where_their_holes_differ():
    known = Requests(FETCH, (OFFSET,))
    frames = []
    for topic, rack in (("orders", "abcd"), ("ordersabcd", "")):
        request = FetchRequest(topics=(FetchTopic(topic=topic, partitions=(FetchPartition(),)),), rack_id=rack)
        frames.append((framed(FETCH, 12, 7, at(request, 2**40)), topic))
        known.learn(framed(FETCH, 12, 7, request), PHYSICAL, topic)
    assert len({len(frame) for frame, _ in frames}) == 1
    for frame, topic in frames:
        assert known.find(frame)[::2] == (topic, 2**40)


# --- produce requests -------------------------------------------------------------------------------------------------

RECORDS = (PartitionProduceData, "records")


def produce_requests(version):
    return single(ProduceRequest, version, "topic_data", TopicProduceData, "partition_data", PartitionProduceData)


def with_records(request, records):
    topic = request.topic_data[0]
    row = replace(topic.partition_data[0], records=records)
    return replace(request, topic_data=(replace(topic, partition_data=(row,)),))


@pytest.mark.parametrize("version", range(12))
@SEVERAL
@given(data=st.data())
def test_a_produce_that_differs_in_its_records_only_is_known_and_read(version, data):
    request, size = data.draw(produce_requests(version)), data.draw(st.sampled_from(EDGES[:-3]))
    known = RecordRequests(PRODUCE, RECORDS)
    assert known.learn(framed(PRODUCE, version, 7, with_records(request, b"r" * size)), PHYSICAL, "learned")
    correlation_id, records = data.draw(INT32), data.draw(st.binary(min_size=4, max_size=300))
    found = known.find(framed(PRODUCE, version, correlation_id, with_records(request, records)))
    assert found == ("learned", struct.pack(">i", correlation_id), records)
    assert known.find(framed(PRODUCE, version, 7, with_records(request, None))) is None


@pytest.mark.parametrize("version", [0, 3, 8, 9, 11])
def test_records_of_any_size_are_found(version):
    request = ProduceRequest(topic_data=(TopicProduceData("orders", (PartitionProduceData(3),)),))
    known = RecordRequests(PRODUCE, RECORDS)
    known.learn(framed(PRODUCE, version, 7, with_records(request, b"first")), PHYSICAL, "learned")
    for size in (4, *EDGES[1:]):
        found = known.find(framed(PRODUCE, version, 7, with_records(request, b"r" * size)))
        assert len(found[2]) == size


@pytest.mark.parametrize("version", [3, 8, 9, 11])
@SEVERAL
@given(data=st.data())
def test_whatever_is_known_of_produce_means_what_was_learned_but_for_the_records(version, data):
    request = with_records(data.draw(produce_requests(version)), b"records")
    known, frame = RecordRequests(PRODUCE, RECORDS), framed(PRODUCE, version, 7, request)
    known.learn(frame, PHYSICAL, "learned")
    hits = 0
    for place in range(len(frame)):
        changed = memoryview(bytearray(frame))
        changed[place] ^= data.draw(st.integers(1, 255))
        found = known.find(changed)
        if found is not None:
            hits += 1
            header = parse_request_header(changed)
            assert header[:2] == (PRODUCE.key, version)
            assert decode(ProduceRequest, version, changed, header.position) == with_records(request, found[2])
    assert hits == 4 + len(b"records")


@pytest.mark.parametrize("version", [3, 8, 9, 11])
def test_a_produce_that_is_cut_or_goes_on_is_not_known(version):
    request = ProduceRequest(topic_data=(TopicProduceData("orders", (PartitionProduceData(3, b"records"),)),))
    known, frame = RecordRequests(PRODUCE, RECORDS), bytes(framed(PRODUCE, version, 7, request))
    assert known.learn(memoryview(frame), PHYSICAL, "learned")
    for size in range(len(frame)):
        assert known.find(memoryview(frame[:size])) is None
    assert known.find(memoryview(frame + b"\0")) is None


def test_the_end_of_a_frame_is_not_taken_for_the_length_of_records_that_are_null():
    """With tags behind them, their length can be read out of the tags."""
    request = ProduceRequest(topic_data=(TopicProduceData("orders", (PartitionProduceData(3, b"records"),)),))
    plain = bytes(framed(PRODUCE, 9, 7, request))
    known = RecordRequests(PRODUCE, RECORDS)
    tail = b"\0\0\x01\x63\x02ab"
    assert known.learn(memoryview(plain[:-3] + tail), PHYSICAL, "learned")
    head = plain[: -3 - len(b"records") - 1]
    assert known.find(memoryview(head + b"\x08records" + tail))[2] == b"records"
    assert known.find(memoryview(head + tail)) is None
    assert known.find(memoryview(head + b"\0" + tail)) is None


def test_a_length_that_is_written_longer_than_need_be_is_read_as_the_decoder_does():
    request = ProduceRequest(topic_data=(TopicProduceData("orders", (PartitionProduceData(3, b"records"),)),))
    plain = bytes(framed(PRODUCE, 9, 7, request))
    head, tail = plain[: -3 - len(b"records") - 1], plain[-3:]
    known = RecordRequests(PRODUCE, RECORDS)
    for length in (b"\x08", b"\x88\0", b"\x88\x80\0", b"\x88\x80\x80\0", b"\x88\x80\x80\x80\0"):
        frame = memoryview(head + length + b"records" + tail)
        assert known.learn(frame, PHYSICAL, "learned")
        assert known.find(frame)[2] == b"records"
    assert len(known) == 1
    assert known.find(memoryview(head + b"\xff\xff\xff\xff\xff\xff" + b"records" + tail)) is None


def test_without_records_or_with_those_of_several_partitions_nothing_is_learned():
    row = PartitionProduceData(3, b"records")
    for rows in ((), (row, row), (PartitionProduceData(3),), (PartitionProduceData(3, b""),)):
        known = RecordRequests(PRODUCE, RECORDS)
        frame = framed(PRODUCE, 9, 7, ProduceRequest(topic_data=(TopicProduceData("orders", rows),)))
        assert not known.learn(frame, PHYSICAL, "learned")
        assert len(known) == 0


# --- answers ----------------------------------------------------------------------------------------------------------

FETCHED = (
    (FetchResponse, "throttle_time_ms"),
    (FetchResponsePartitionData, "high_watermark"),
    (FetchResponsePartitionData, "last_stable_offset"),
    (FetchResponsePartitionData, "log_start_offset"),
    (FetchResponsePartitionData, "records"),
)
PRODUCED = (
    (PartitionProduceResponse, "error_code"),
    (PartitionProduceResponse, "base_offset"),
    (PartitionProduceResponse, "log_start_offset"),
    (ProduceResponse, "throttle_time_ms"),
)


def filled(message, holes, values):
    for hole, value in zip(holes, values, strict=True):
        message, met = replaced(message, hole, 0, value)
        assert met == 1
    return message


def answer_bytes(api, version, correlation_id, message):
    """As the oracle writes it; ours says the same."""
    ours = b"".join(encode_frame(api, version, correlation_id, message))
    written = body(message, version)
    assert ours.endswith(written)
    return ours[: -len(written)] + written


@pytest.mark.parametrize("version", range(5, 18))
@SEVERAL
@given(data=st.data())
def test_a_fetch_is_answered_as_the_codec_and_kio_do(version, data):
    drawn = data.draw(
        single(FetchResponse, version, "responses", FetchableTopicResponse, "partitions", FetchResponsePartitionData)
    )
    template = answer_template(FETCH, version, filled(drawn, FETCHED, (1, 2, 3, 4, b"")), FETCHED, PHYSICAL)
    size = data.draw(st.sampled_from((0, *EDGES[:5])))
    numbers = (data.draw(INT32), data.draw(INT64), data.draw(INT64), data.draw(INT64))
    correlation_id = data.draw(INT32)
    told = template.head(struct.pack(">i", correlation_id), *numbers, size) + b"r" * size + template.tail
    assert told == answer_bytes(FETCH, version, correlation_id, filled(drawn, FETCHED, (*numbers, b"r" * size)))


@pytest.mark.parametrize("version", [5, 11, 12, 17])
@pytest.mark.parametrize("size", EDGES)
def test_answers_hold_records_of_any_size(version, size):
    row = FetchResponsePartitionData(records=b"")
    message = FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=(row,)),))
    template = answer_template(FETCH, version, message, FETCHED, PHYSICAL)
    told = template.head(bytes(4), 1, 2, 3, 4, size) + b"r" * size + template.tail
    assert told == b"".join(encode_frame(FETCH, version, 0, filled(message, FETCHED, (1, 2, 3, 4, b"r" * size))))


@pytest.mark.parametrize("version", range(5, 12))
@SEVERAL
@given(data=st.data())
def test_a_produce_is_answered_as_the_codec_and_kio_do(version, data):
    drawn = data.draw(
        single(
            ProduceResponse,
            version,
            "responses",
            TopicProduceResponse,
            "partition_responses",
            PartitionProduceResponse,
        )
    )
    template = answer_template(PRODUCE, version, drawn, PRODUCED, PHYSICAL)
    values = (data.draw(st.sampled_from([0, 6, 7, -1])), data.draw(INT64), data.draw(INT64), data.draw(INT32))
    correlation_id = data.draw(INT32)
    told = template.head(struct.pack(">i", correlation_id), *values)
    assert template.tail == b""
    assert told == answer_bytes(PRODUCE, version, correlation_id, filled(drawn, PRODUCED, values))


def test_names_are_mapped_in_templates_as_in_codecs():
    names = InstanceNames("k3v9x2qa")
    row = FetchResponsePartitionData(records=b"")
    message = FetchResponse(responses=(FetchableTopicResponse(topic="k3v9x2qa.orders", partitions=(row,)),))
    told = answer_template(FETCH, 12, message, FETCHED, names).head(bytes(4), 0, 0, 0, 0, 0)
    assert b"\x07orders" in told
    assert b"k3v9x2qa" not in told


@pytest.mark.parametrize("rows", [0, 2])
def test_a_template_has_each_hole_once(rows):
    partitions = (FetchResponsePartitionData(records=b""),) * rows
    message = FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=partitions),))
    with pytest.raises(ValueError, match="missing, or is there more than once"):
        answer_template(FETCH, 12, message, FETCHED, PHYSICAL)


THROTTLED = [(api, v) for api in APIS.values() for v in range(api.versions.low, api.versions.high + 1)]


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_field_that_stands_first_can_be_told_later(kind):
    dice, met = random.Random(1), 0
    for api, version in THROTTLED:
        if all(name != "throttle_time_ms" or version not in wire.versions for name, wire, _ in wires(api.response)):
            continue
        message = random_message(dice, api.response, version, ["orders"])
        told = b"".join(encode_frame(api, version, 7, replace(message, throttle_time_ms=1234)))
        head = kind(b"".join(encode_frame(api, version, 7, message)))
        try:
            other = with_field(api, version, head, "throttle_time_ms", 1234)
        except ValueError:
            assert wires(api.response)[0][0] != "throttle_time_ms"
            continue
        met += 1
        assert other == told
        assert (other is head) == (kind is bytearray)
    assert met >= 60
    with pytest.raises(ValueError, match="has no fixed place"):
        with_field(PRODUCE, 9, b"", "throttle_time_ms", 1)


# --- what Kafka wrote -------------------------------------------------------------------------------------------------


def goldens(name):
    """(version, message, bytes) of what Kafka wrote with one partition in it."""
    for version, _, data in read_golden(name):
        message = decode(MESSAGES[name], version, data)
        topics = next(
            getattr(message, each) for each in ("topics", "topic_data", "responses") if hasattr(message, each)
        )
        if len(topics) == 1 and len(getattr(topics[0], dataclasses.fields(topics[0])[-1].name)) == 1:
            yield version, message, data


def as_frame(api, version, correlation_id, message, data):
    """The message's own bytes behind our header."""
    ours = encode_request(api, version, correlation_id, None, message)[4:]
    return memoryview(ours[: len(ours) - len(encode(message, version))] + data)


def test_offsets_are_read_out_of_kafkas_own_fetch_requests():
    seen = set()
    for version, message, data in goldens("FetchRequest"):
        known = Requests(FETCH, (OFFSET,))
        assert known.learn(as_frame(FETCH, version, 7, at(message, 5), encode(at(message, 5), version)), PHYSICAL, "x")
        found = known.find(as_frame(FETCH, version, -9, message, data))
        assert found == ("x", struct.pack(">i", -9), message.topics[0].partitions[0].fetch_offset)
        seen.add(version)
    assert len(seen & set(range(10, 18))) >= 6


def test_records_are_read_out_of_kafkas_own_produce_requests():
    seen = set()
    for version, message, data in goldens("ProduceRequest"):
        records = message.topic_data[0].partition_data[0].records
        known, other = RecordRequests(PRODUCE, RECORDS), with_records(message, b"others")
        assert known.learn(as_frame(PRODUCE, version, 7, other, encode(other, version)), PHYSICAL, "x")
        found = known.find(as_frame(PRODUCE, version, -9, message, data))
        assert found == (None if records is None else ("x", struct.pack(">i", -9), records))
        seen.add(version)
    assert len(seen) >= 6


@pytest.mark.parametrize(
    ("name", "api", "holes", "low"),
    [("FetchResponse", FETCH, FETCHED, 5), ("ProduceResponse", PRODUCE, PRODUCED, 5)],
)
def test_answers_are_kafkas_own(name, api, holes, low):
    seen = set()
    for version, message, data in goldens(name):
        values = [value_of(message, hole) for hole in holes]
        if version < low or None in values:
            continue
        blank = [b"" if type(value) is bytes else 1 for value in values]
        template = answer_template(api, version, filled(message, holes, blank), holes, PHYSICAL)
        records = values[-1] if type(values[-1]) is bytes else b""
        told = template.head(bytes(4), *(len(v) if type(v) is bytes else v for v in values)) + records + template.tail
        assert told.endswith(data)
        assert told[: -len(data)] == b"".join(encode_frame(api, version, 0, message))[: len(told) - len(data)]
        seen.add(version)
    assert len(seen) >= 3


def value_of(message, hole):
    """What the only such field holds; records as bytes."""
    part, wanted = hole
    for name, wire, _ in wires(type(message)):
        held = getattr(message, name)
        if type(message) is part and name == wanted:
            return bytes(held) if wire.kind == "records" and held is not None else held
        if isinstance(wire.element, type):
            for item in (held or ()) if wire.kind == "array" else (held,):
                found = value_of(item, hole)
                if found is not None:
                    return found
    return None


def test_a_request_that_cannot_be_decoded_is_refused_and_not_learned():
    known = Requests(FETCH, (OFFSET,))
    frame = framed(FETCH, 12, 7, FetchRequest(topics=(FetchTopic(partitions=(FetchPartition(),)),)))
    with pytest.raises(DecodeError):
        known.learn(frame[:-6], PHYSICAL, "x")
    assert len(known) == 0
