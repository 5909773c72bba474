"""All error codes of an answer are found, wherever its rows are."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest

from dataplane.protocol.api import APIS
from dataplane.protocol.error_codes import error_codes
from dataplane.protocol.messages.discovery import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from dataplane.protocol.messages.groups import HeartbeatResponse
from dataplane.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.support.random_messages import random_message


def test_an_answer_without_rows_has_its_own():
    assert list(error_codes(HeartbeatResponse(error_code=27))) == [27]


def test_rows_have_theirs():
    rows = tuple(PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate((0, 6)))
    response = ProduceResponse(responses=(TopicProduceResponse(name="a", partition_responses=rows),) * 2)
    assert list(error_codes(response)) == [0, 6, 0, 6]


def test_codes_of_a_row_come_before_those_of_what_it_holds():
    topic = MetadataResponseTopic(name="a", error_code=3, partitions=(MetadataResponsePartition(error_code=5),))
    assert list(error_codes(MetadataResponse(topics=(topic,)))) == [3, 5]


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_every_answer_of_every_version_can_be_asked(api):
    for version in range(api.versions.low, api.versions.high + 1):
        found = list(error_codes(random_message(Random(version), api.response, version, ["orders"])))
        assert all(isinstance(code, int) for code in found)
    if any(field.name == "error_code" for field in fields(api.response)):
        assert found
