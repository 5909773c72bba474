"""Decoders and encoders that pause say the same as those that do not, of every message and version."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import (
    ELEMENTS_PER_STEP,
    MAX_ELEMENTS,
    NUMBERS_PER_STEP,
    SHORT_ELEMENTS,
    ManyElementsError,
    decoder,
    decoder_in_steps,
    encode,
    encoder,
    encoder_in_steps,
    limited_decoder,
    limited_decoder_in_steps,
    short_decoder,
)
from dataplane.protocol.headers import encode_frame, encode_frame_in_steps
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
)
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from dataplane.protocol.primitives import DecodeError
from dataplane.records.steps import run_through
from quota.contracts.namespace import ClusterNames, InstanceNames
from tests.dataplane.protocol.strategies import all_messages, messages
from tests.dataplane.protocol.test_same_bytes_as_kafka import MESSAGES, read_golden
from tests.support.random_messages import random_message

ALL = list(all_messages())
NAMES = [f"{cls.__name__}-v{version}" for cls, version in ALL]
PHYSICAL = ClusterNames()


def both(cls, version, data, names=PHYSICAL):
    def outcome(decode):
        """What comes of it: a message (as bytes: NaN does not equal itself) and where it ends, or the words of the refusal."""
        try:
            message, position = decode()
        except DecodeError as error:
            return type(error), str(error)
        return encode(message, version, names), position

    straight = outcome(lambda: decoder(cls, version)(data, 0, names))
    assert outcome(lambda: run_through(decoder_in_steps(cls, version)(data, 0, names))) == straight
    limited = outcome(lambda: limited_decoder(cls, version)(data, 0, names))
    assert outcome(lambda: run_through(limited_decoder_in_steps(cls, version)(data, 0, names))) == limited
    short = outcome(lambda: short_decoder(cls, version)(data, 0, names))
    assert short in (limited, (ManyElementsError, "too many elements"))


def compare(cls, version, value, cut):
    straight, out = bytearray(), bytearray()
    encoder(cls, version)(value, straight, PHYSICAL, [])
    run_through(encoder_in_steps(cls, version)(value, out, PHYSICAL, []))
    assert out == straight
    both(cls, version, memoryview(straight))
    both(cls, version, straight[: int(cut * len(straight))])


@pytest.mark.parametrize("cls", sorted({cls for cls, _ in ALL}, key=lambda cls: cls.__name__))
def test_both_ways_say_the_same(cls):
    dice = random.Random(cls.__name__)
    for version in (version for each, version in ALL if each is cls):
        for _ in range(5):
            compare(cls, version, random_message(dice, cls, version, ["orders", "g"]), dice.random())


@pytest.mark.long
@pytest.mark.parametrize(("cls", "version"), ALL, ids=NAMES)
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_both_ways_say_the_same_for_a_long_time(cls, version, data):
    compare(cls, version, data.draw(messages(cls, version)), data.draw(st.floats(0, 1)))


@pytest.mark.parametrize("name", MESSAGES)
def test_both_refuse_the_same_damage_in_the_same_words(name):
    dice = random.Random(name)
    for version, _, data in list(read_golden(name))[-6:]:
        for _ in range(20):
            damaged = bytearray(data)
            for _ in range(dice.choice((1, 2, 5))):
                if damaged:
                    damaged[dice.randrange(len(damaged))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
            both(MESSAGES[name], version, bytes(damaged))


def test_names_are_mapped_all_the_same():
    names = InstanceNames("key00001")
    request = MetadataRequest(topics=tuple(MetadataRequestTopic(name=f"t{n}") for n in range(300)))
    data = encode(request, 9)
    decoded = run_through(decoder_in_steps(MetadataRequest, 9)(data, 0, names))[0]
    assert decoded == decoder(MetadataRequest, 9)(data, 0, names)[0]
    assert decoded.topics[7].name == "key00001.t7"
    out = bytearray()
    run_through(encoder_in_steps(MetadataRequest, 9)(decoded, out, names, []))
    assert out == data


def commit(topics, partitions):
    rows = tuple(OffsetCommitRequestPartition(partition_index=n, committed_offset=n) for n in range(partitions))
    return OffsetCommitRequest(
        group_id="g", topics=tuple(OffsetCommitRequestTopic(name=f"t{n}", partitions=rows) for n in range(topics))
    )


@pytest.mark.parametrize(("topics", "partitions"), [(1, 10_000), (10_000, 0), (100, 100), (3_000, 1)])
def test_they_pause_after_so_many_elements_of_all_arrays_together(topics, partitions):
    request = commit(topics, partitions)
    elements = topics + topics * partitions
    data = encode(request, 8)
    assert len(list(decoder_in_steps(OffsetCommitRequest, 8)(data, 0, PHYSICAL))) == elements // ELEMENTS_PER_STEP
    pauses = list(encoder_in_steps(OffsetCommitRequest, 8)(request, bytearray(), PHYSICAL, []))
    assert len(pauses) == elements // ELEMENTS_PER_STEP


@pytest.mark.parametrize(
    "count", [NUMBERS_PER_STEP - 1, NUMBERS_PER_STEP, NUMBERS_PER_STEP + 1, 3 * NUMBERS_PER_STEP + 5]
)
@pytest.mark.parametrize("version", [1, 7])
def test_numbers_are_read_some_thousand_at_a_time(version, count):
    topics = (OffsetFetchRequestTopic("orders", tuple(range(count))), OffsetFetchRequestTopic("bills", (1, 2)))
    data = encode(OffsetFetchRequest("g", topics), version)
    both(OffsetFetchRequest, version, data)
    pauses = sum(1 for _ in decoder_in_steps(OffsetFetchRequest, version)(data, 0, PHYSICAL))
    assert pauses == (count - 1) // NUMBERS_PER_STEP


def test_a_short_decoder_says_at_the_first_count_that_there_is_too_much():
    assert short_decoder(OffsetCommitRequest, 8)(encode(commit(1, SHORT_ELEMENTS - 1), 8), 0, PHYSICAL)
    for request in (commit(1, SHORT_ELEMENTS), commit(SHORT_ELEMENTS + 1, 0), commit(SHORT_ELEMENTS // 2, 2)):
        with pytest.raises(ManyElementsError):
            short_decoder(OffsetCommitRequest, 8)(encode(request, 8), 0, PHYSICAL)
    with pytest.raises(DecodeError) as refused:  # where there are not so many bytes, it is nonsense at once
        short_decoder(FetchRequest, 4)(bytes(17) + b"\x7f\xff\xff\xff", 0, PHYSICAL)
    assert type(refused.value) is DecodeError


def test_a_strangers_limit_is_the_same_in_steps():
    within, beyond = encode(commit(1, MAX_ELEMENTS - 1), 8), encode(commit(1, MAX_ELEMENTS), 8)
    assert run_through(limited_decoder_in_steps(OffsetCommitRequest, 8)(within, 0, PHYSICAL))
    with pytest.raises(DecodeError, match="too many elements"):
        run_through(limited_decoder_in_steps(OffsetCommitRequest, 8)(beyond, 0, PHYSICAL))
    assert run_through(decoder_in_steps(OffsetCommitRequest, 8)(beyond, 0, PHYSICAL))


class Range:
    """Record bytes that are elsewhere."""

    def __init__(self, size):
        self.size = size


def test_frames_are_the_same_with_what_is_spliced_into_them():
    ranges = [Range(5), b"abc", Range(0), Range(70_000)]
    rows = tuple(FetchResponsePartitionData(partition_index=n, records=ranges[n % 4]) for n in range(500))
    answer = FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=rows),))
    for version in (4, 12):
        straight = encode_frame(APIS[ApiKey.FETCH], version, 9, answer)
        assert run_through(encode_frame_in_steps(APIS[ApiKey.FETCH], version, 9, answer)) == straight
        assert len(list(encode_frame_in_steps(APIS[ApiKey.FETCH], version, 9, answer))) == 501 // ELEMENTS_PER_STEP
