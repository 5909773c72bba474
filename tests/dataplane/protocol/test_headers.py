"""Frames with their headers: what we send is read back; requests we do not know are known by key and version."""

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.protocol import headers
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import encode
from dataplane.protocol.headers import (
    RequestHeader,
    correlation_id_of,
    decode_request,
    decode_response,
    decode_response_in_steps,
    encode_frame,
    encode_frame_in_steps,
    encode_request,
    encode_request_in_steps,
    parse_request_header,
)
from dataplane.protocol.messages.discovery import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from dataplane.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, FetchResponsePartitionData
from dataplane.protocol.messages.groups import JoinGroupResponse, JoinGroupResponseMember
from dataplane.protocol.messages.headers import RequestHeader as RequestHeaderMessage
from dataplane.protocol.primitives import DecodeError
from dataplane.records.steps import run_through
from tests.dataplane.protocol.kio_twins import kio_bytes
from tests.dataplane.protocol.strategies import messages

ALL = [(api, version) for api in APIS.values() for version in range(api.versions.low, api.versions.high + 1)]
IDS = [f"{api.key.name}-v{version}" for api, version in ALL]
CHEAP = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), database=None)
CLIENT_IDS = st.none() | st.text(max_size=10)


@dataclass(frozen=True)
class FilePart:
    """Stands for a range of a file."""

    name: str
    size: int


def body_of(frame):
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    return memoryview(frame)[4:]


@pytest.mark.parametrize(("api", "version"), ALL, ids=IDS)
@CHEAP
@given(data=st.data(), correlation_id=st.integers(-(2**31), 2**31 - 1), client_id=CLIENT_IDS)
def test_a_request_is_read_as_it_was_written(api, version, data, correlation_id, client_id):
    message = data.draw(messages(api.request, version))
    whole = encode_request(api, version, correlation_id, client_id, message)
    assert run_through(encode_request_in_steps(api, version, correlation_id, client_id, message)) == whole
    frame = body_of(whole)
    header = parse_request_header(frame)
    told = None if api.request_header_version(version) == 0 else client_id
    assert header[:4] == (api.key, version, correlation_id, told)
    assert header.api is api
    assert decode_request(header, frame) == message


@pytest.mark.parametrize(("api", "version"), ALL, ids=IDS)
@CHEAP
@given(data=st.data(), correlation_id=st.integers(-(2**31), 2**31 - 1))
def test_an_answer_is_read_as_it_was_written(api, version, data, correlation_id):
    message = data.draw(messages(api.response, version).filter(lambda m: getattr(m, "error_code", 0) != 35))
    (frame,) = encode_frame(api, version, correlation_id, message)
    assert decode_response(api, version, body_of(frame)) == (correlation_id, message)
    assert correlation_id_of(body_of(frame)) == correlation_id
    assert run_through(decode_response_in_steps(api, version, body_of(frame))) == message


@pytest.mark.parametrize("flexible", [False, True])
@given(client_id=CLIENT_IDS)
def test_request_headers_have_kios_bytes(flexible, client_id):
    version = 12 if flexible else 11
    api = APIS[ApiKey.FETCH]
    theirs = kio_bytes(RequestHeaderMessage(1, version, 77, client_id), 2 if flexible else 1)
    body = encode(api.request(), version)
    assert encode_request(api, version, 77, client_id, api.request())[4:] == theirs + body


def test_tags_in_a_header_are_skipped():
    frame = bytearray(body_of(encode_request(APIS[18], 3, 5, "me", ApiVersionsRequest("name", "1"))))
    frame[12:13] = b"\x02\x00\x01z\x63\x02yy"  # tag 0 of one byte, tag 99 of two
    header = parse_request_header(memoryview(frame))
    assert decode_request(header, frame) == ApiVersionsRequest("name", "1")


@pytest.mark.parametrize(("key", "version"), [(18, 99), (18, -1), (999, 0), (-1, 0), (0, 100)])
@pytest.mark.parametrize(
    ("rest", "client_id"),
    [
        (b"\x00\x02me", "me"),
        (b"\xff\xff", None),
        (b"", None),
        (b"\x00", None),
        (b"\x00\x09me", None),
        (b"\x00\x01\xff", None),
    ],
)
def test_what_we_do_not_know_is_still_known_by_key_version_and_correlation_id(key, version, rest, client_id):
    frame = b"".join(n.to_bytes(s, "big", signed=True) for n, s in ((key, 2), (version, 2), (7, 4))) + rest
    header = parse_request_header(memoryview(frame))
    assert header[:4] == (key, version, 7, client_id)
    assert header.api is None
    with pytest.raises(DecodeError):
        decode_request(header, frame)


@pytest.mark.parametrize("size", range(8))
def test_a_frame_without_room_for_a_header_is_refused(size):
    with pytest.raises(DecodeError):
        parse_request_header(memoryview(bytes(size)))


@pytest.mark.parametrize("rest", [b"", b"\x00", b"\x00\x05abc", b"\xff\xfe", b"\x00\x01\xff"])
def test_of_a_version_we_know_a_broken_client_id_is_refused(rest):
    with pytest.raises(DecodeError):
        parse_request_header(memoryview(b"\x00\x12\x00\x00\x00\x00\x00\x07" + rest))


def test_controlled_shutdown_0_has_no_client_id():
    frame = memoryview(b"\x00\x07\x00\x00\x00\x00\x00\x05\x00\x00\x00\x03")
    header = parse_request_header(frame)
    assert header == RequestHeader(7, 0, 5, None, 8)
    assert decode_request(header, frame).broker_id == 3


def test_api_versions_of_an_unknown_version_is_answered_in_layout_0():
    """The 16 bytes every client understands: no throttle time, no tags."""
    refusal = ApiVersionsResponse(error_code=35, api_keys=(ApiVersion(18, 0, 4),))
    (frame,) = encode_frame(APIS[18], 0, 9, refusal)
    assert frame.hex() == "0000001000000009002300000001001200000004"
    assert decode_response(APIS[18], 4, body_of(frame)) == (9, refusal)


def fetched(*records):
    parts = tuple(FetchResponsePartitionData(partition_index=n, records=r) for n, r in enumerate(records))
    return FetchResponse(responses=(FetchableTopicResponse(topic="t", partitions=parts),))


@pytest.mark.parametrize("version", [4, 11, 12])
def test_record_bytes_in_files_are_sent_from_their_place(version):
    api = APIS[ApiKey.FETCH]
    contents = {"one": b"1" * 200, "two": b"2" * 3}
    one, two = FilePart("one", 200), FilePart("two", 3)
    parts = encode_frame(api, version, 6, fetched(one, b"in memory", two))
    assert [part for part in parts if isinstance(part, FilePart)] == [one, two]
    assert all(isinstance(part, (bytes, FilePart)) for part in parts)
    on_the_wire = b"".join(contents[part.name] if isinstance(part, FilePart) else part for part in parts)
    (whole,) = encode_frame(api, version, 6, fetched(contents["one"], b"in memory", contents["two"]))
    assert on_the_wire == whole


@pytest.mark.parametrize("version", [0, 5, 9])
def test_long_metadata_of_members_is_sent_from_its_place(version):
    long, short = bytes(range(256)) * 64, b"short"
    members = tuple(JoinGroupResponseMember(f"member-{each[:1]!r}", None, each) for each in (short, long, b"", long))
    answer = JoinGroupResponse(members=members)
    parts = encode_frame(APIS[ApiKey.JOIN_GROUP], version, 6, answer)
    assert sum(part is long for part in parts) == 2
    whole = b"".join(parts)
    assert decode_response(APIS[ApiKey.JOIN_GROUP], version, whole[4:]) == (6, answer)
    assert int.from_bytes(whole[:4]) == len(whole) - 4
    assert whole.endswith(encode(answer, version)), "in one piece it is the same"
    assert b"".join(run_through(encode_frame_in_steps(APIS[ApiKey.JOIN_GROUP], version, 6, answer))) == whole


@pytest.mark.parametrize("records", [b"in memory", FilePart("one", 200)])
def test_a_long_answer_is_made_in_parts_of_a_size_and_is_the_same(monkeypatch, records):
    monkeypatch.setattr(headers, "PART_BYTES", 1000)
    topic = FetchableTopicResponse(
        "t", partitions=tuple(FetchResponsePartitionData(n, records=records) for n in range(40))
    )
    answer = FetchResponse(responses=(topic,) * 40)
    parts = run_through(encode_frame_in_steps(APIS[ApiKey.FETCH], 11, 6, answer))
    assert type(parts[0]) is bytearray, "what is told in it may be changed in place"
    assert max(len(part) for part in parts if not isinstance(part, FilePart)) < 5_000

    def whole(parts):
        return b"".join(b"1" * part.size if isinstance(part, FilePart) else part for part in parts)

    assert whole(parts) == whole(encode_frame(APIS[ApiKey.FETCH], 11, 6, answer))


def test_an_empty_file_range_is_not_sent():
    parts = encode_frame(APIS[ApiKey.FETCH], 11, 6, fetched(FilePart("one", 0)))
    (whole,) = encode_frame(APIS[ApiKey.FETCH], 11, 6, fetched(b""))
    assert b"".join(parts) == whole


def test_a_request_cannot_refer_to_files():
    produce = APIS[ApiKey.PRODUCE].request
    topic = produce.__dataclass_fields__["topic_data"].metadata["wire"].element
    partition = topic.__dataclass_fields__["partition_data"].metadata["wire"].element
    request = produce(topic_data=(topic(name="t", partition_data=(partition(records=FilePart("one", 5)),)),))
    with pytest.raises(ValueError, match="itself"):
        encode_request(APIS[ApiKey.PRODUCE], 9, 1, None, request)


@pytest.mark.parametrize("size", range(4))
def test_an_answer_without_room_for_a_header_is_refused(size):
    with pytest.raises(DecodeError):
        decode_response(APIS[18], 0, bytes(size))
    with pytest.raises(DecodeError):
        correlation_id_of(bytes(size))
