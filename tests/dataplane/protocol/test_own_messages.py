"""The bytes of the API that is ours: pinned, since a control plane and a broker of different releases speak it."""

from __future__ import annotations

from dataplane.protocol.api import OWN, ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.backlogs import (
    BacklogPartition,
    BacklogPartitionResult,
    BacklogTopic,
    BacklogTopicResult,
    DescribeBacklogsRequest,
    DescribeBacklogsResponse,
)
from dataplane.protocol.messages.connections import (
    ConnectionRow,
    DescribeConnectionsRequest,
    DescribeConnectionsResponse,
    FlowOfTheRest,
    RefusedConnectionRow,
    TalkerRow,
)

REQUEST = DescribeConnectionsRequest("ins-aaaabbbb", "aaaabbbb.t", 100, 20)
REQUEST_BYTES = "0d" + b"ins-aaaabbbb".hex() + "0b" + b"aaaabbbb.t".hex() + "00000064" + "00000014" + "00"


def joined(data):
    return b"".join(map(bytes, data)) if isinstance(data, list) else bytes(data)


def test_the_request():
    assert joined(encode(REQUEST, 0)).hex() == REQUEST_BYTES
    assert decode(DescribeConnectionsRequest, 0, bytes.fromhex(REQUEST_BYTES)) == REQUEST


def test_no_topic_is_null():
    data = joined(encode(DescribeConnectionsRequest("i", None, 1, 0), 0))
    assert data.hex() == "0269" + "00" + "00000001" + "00000000" + "00"


def test_the_response():
    answer = DescribeConnectionsResponse(
        0,
        (ConnectionRow("c", "s", "1", "a", "User:u", "r", 1, 2, 3, 4, 5),),
        FlowOfTheRest(1, 2, 3, 4),
        (RefusedConnectionRow("a", "r", "sasl", 2, 3),),
        7,
        (TalkerRow("c", "a", "k.t", 1, 2, 3),),
        FlowOfTheRest(0, 1, 0, 0),
    )
    numbers = {number: f"{number:016x}" for number in range(8)}
    row = "0263" + "0273" + "0231" + "0261" + "07" + b"User:u".hex() + "0272"
    expected = (
        "0000"
        + ("02" + row + "".join(numbers[each] for each in (1, 2, 3, 4, 5)) + "00")
        + ("".join(numbers[each] for each in (1, 2, 3, 4)) + "00")
        + ("02" + "0261" + "0272" + "05" + b"sasl".hex() + numbers[2] + numbers[3] + "00")
        + numbers[7]
        + ("02" + "0263" + "0261" + "04" + b"k.t".hex() + "".join(numbers[each] for each in (1, 2, 3)) + "00")
        + ("".join(numbers[each] for each in (0, 1, 0, 0)) + "00")
        + "00"
    )
    assert joined(encode(answer, 0)).hex() == expected
    assert decode(DescribeConnectionsResponse, 0, bytes.fromhex(expected)) == answer


def test_who_was_refused_is_named_in_tagged_fields_that_earlier_readers_pass_over():
    row = RefusedConnectionRow("a", "r", "sasl", 2, 3, "ann", "shop")
    answer = DescribeConnectionsResponse(refused=(row,))
    written = joined(encode(answer, 0))
    named = "02" + "0004" + "04" + b"ann".hex() + "0105" + "05" + b"shop".hex()
    assert f"{2:016x}{3:016x}{named}" in written.hex()
    assert decode(DescribeConnectionsResponse, 0, written) == answer


def test_backlogs_are_asked_and_answered_by_topic_and_partition():
    asked = DescribeBacklogsRequest((BacklogTopic("k.t", (BacklogPartition(3, (1, 2)),)),))
    head = "02" + "04" + b"k.t".hex() + "02" + "00000003"
    written = head + "03" + f"{1:016x}{2:016x}" + "00" + "00" + "00"
    assert joined(encode(asked, 0)).hex() == written
    assert decode(DescribeBacklogsRequest, 0, bytes.fromhex(written)) == asked
    told = DescribeBacklogsResponse((BacklogTopicResult("k.t", (BacklogPartitionResult(3, 6, (7,), 9),)),))
    written = head + "0006" + "02" + f"{7:016x}" + f"{9:016x}" + "00" + "00" + "00"
    assert joined(encode(told, 0)).hex() == written
    assert decode(DescribeBacklogsResponse, 0, bytes.fromhex(written)) == told


def test_keys_of_our_own_are_far_from_kafkas():
    assert all(key >= 20_000 for key in OWN)
    assert all(key < 1_000 for key in ApiKey if key not in OWN)
