"""Messages are values: frozen, equal by content, with defaults; that they are made in an unusual way does not show."""

import copy
import dataclasses
import pickle

import pytest

from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.headers import ResponseHeader
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.protocol.schema import Versions
from tests.dataplane.protocol.strategies import all_messages

REQUEST = ProduceRequest(acks=-1, topic_data=(TopicProduceData(name="t", partition_data=(PartitionProduceData(3),)),))


@pytest.mark.parametrize("message", [REQUEST, decode(ProduceRequest, 9, encode(REQUEST, 9))])
def test_messages_are_frozen(message):
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.acks = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.topic_data[0].name = "other"


def test_a_decoded_message_is_like_a_constructed_one():
    decoded = decode(ProduceRequest, 9, encode(REQUEST, 9))
    assert type(decoded) is ProduceRequest
    assert decoded == REQUEST
    assert hash(decoded) == hash(REQUEST)
    assert repr(decoded) == repr(REQUEST)


def test_fields_may_be_given_by_place_by_name_or_not_at_all():
    assert PartitionProduceData(3) == PartitionProduceData(index=3, records=None)
    assert ResponseHeader() == ResponseHeader(correlation_id=0)


def test_a_field_that_is_not_declared_is_refused():
    with pytest.raises(TypeError):
        PartitionProduceData(partition=3)


def test_copies_are_equal():
    changed = dataclasses.replace(REQUEST, acks=1)
    assert (changed.acks, changed.topic_data, REQUEST.acks) == (1, REQUEST.topic_data, -1)
    assert copy.deepcopy(REQUEST) == REQUEST
    assert pickle.loads(pickle.dumps(REQUEST)) == REQUEST


@pytest.mark.parametrize("cls", sorted({cls for cls, _ in all_messages()}, key=lambda cls: cls.__name__))
def test_every_message_can_be_made_of_defaults_only(cls):
    message = cls()
    for field in dataclasses.fields(cls):
        assert getattr(message, field.name) == field.default


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3", [3], [2, 4]), ("3-5", [3, 5], [2, 6]), ("3+", [3, 32767], [2]), ("none", [], [0, 1]), (None, [], [0, 1])],
)
def test_version_ranges_are_kafkas(text, inside, outside):
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_a_version_that_a_message_does_not_have_is_refused():
    with pytest.raises(ValueError, match="no version 99"):
        encode(REQUEST, 99)
    with pytest.raises(ValueError, match="no version 99"):
        decode(ProduceRequest, 99, b"")
