"""The largest request is one that a broker takes, and as large as may be."""

from functools import cache
from uuid import UUID

import pytest

from dataplane.handlers.table import HANDLERS, served
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import MAX_ELEMENTS, encode, limited_decoder
from dataplane.protocol.headers import parse_request_header
from dataplane.protocol.messages.configs import DescribeConfigsRequest
from dataplane.protocol.messages.discovery import FindCoordinatorRequest, MetadataRequest
from dataplane.protocol.messages.fetch import FetchRequest, ListOffsetsRequest
from dataplane.protocol.messages.groups import HeartbeatRequest
from dataplane.protocol.messages.produce import ProduceRequest
from dataplane.protocol.messages.topics import DeleteTopicsRequest
from dataplane.records.header import read_header
from quota.contracts.namespace import InstanceNames, topic_name_problem
from tests.stalls.attacks import framed, generated
from tests.stalls.largest import Bounds, Known, Shape, count, largest, shapes_of

MIB = 2**20
KNOWN = Known(
    [f"topic-{n}" for n in range(50)], [f"group-{n}" for n in range(50)], [UUID(int=1_000 + n) for n in range(50)]
)
BOUNDS = Bounds(2 * MIB, MAX_ELEMENTS)
NEWEST = [(row.api.request, row.high) for row in served(tenant=True)]


@cache
def of(cls, version, shape=Shape.WIDE, bounds=BOUNDS):
    return largest(cls, version, shape, KNOWN, bounds)


def decoded_by_a_broker(cls, version, shape, bounds):
    """As a tenant's request is; the bytes of its frame, too."""
    frame = memoryview(framed(of(cls, version, shape, bounds), version))[4:]
    names = InstanceNames("k3v9x2qa")
    return limited_decoder(cls, version)(frame, parse_request_header(frame).position, names)[0], len(frame)


@pytest.mark.parametrize(("cls", "version"), NEWEST, ids=lambda value: getattr(value, "__name__", value))
def test_the_largest_request_of_each_api_fills_its_bounds_and_passes_none(cls, version):
    bounds = Bounds(MIB // 10, MAX_ELEMENTS // 10)
    for shape in shapes_of(cls, version):
        request, size = decoded_by_a_broker(cls, version, shape, bounds)
        elements = count(request)
        assert size <= bounds.bytes
        assert elements <= bounds.elements
        assert shape is Shape.FLAT or elements > 0.95 * bounds.elements or size > 0.9 * bounds.bytes


@pytest.mark.parametrize("cls", [MetadataRequest, DescribeConfigsRequest])
def test_the_largest_of_all_is_what_a_broker_reads_from_a_tenant_and_no_more(cls):
    request, size = decoded_by_a_broker(cls, 4, Shape.WIDE, BOUNDS)
    assert 0.95 * MAX_ELEMENTS < count(request) <= MAX_ELEMENTS
    assert 0.9 * 2 * MIB < size <= 2 * MIB


def test_every_version_of_every_handler_has_a_row_on_its_doors():
    rows = {(attack.door, attack.api, attack.version) for attack in generated()}
    wanted = {
        (HANDLERS[key].api.key.name, v) for key in HANDLERS for v in range(HANDLERS[key].low, HANDLERS[key].high + 1)
    }
    assert {(api, v) for door, api, v in rows if door == "internal"} == wanted
    offered = {(row.api.key.name, v) for row in served(tenant=True) for v in range(row.low, row.high + 1)}
    assert {(api, v) for door, api, v in rows if door == "tenant"} == offered


def test_rows_have_names_of_their_own():
    names = [attack.name for attack in generated()]
    assert len(names) == len(set(names))


def test_what_exists_comes_first_and_then_long_names_that_a_topic_may_have():
    names = [topic.name for topic in of(MetadataRequest, 12).topics]
    assert names[:50] == KNOWN.topics
    assert len(set(names)) == len(names)
    assert len(names[-1]) > 50
    assert topic_name_problem(names[-1]) is None


def test_a_fetch_by_id_names_topics_that_exist():
    assert [topic.topic_id for topic in of(FetchRequest, 17).topics][:50] == KNOWN.ids


def test_a_wide_request_is_of_many_topics_and_a_deep_one_of_one_with_many_partitions():
    wide, deep = (of(ListOffsetsRequest, 7, shape) for shape in (Shape.WIDE, Shape.DEEP))
    assert len(wide.topics) > 9_000
    assert {len(topic.partitions) for topic in wide.topics} == {1}
    assert len(deep.topics) == 1
    indexes = [partition.partition_index for partition in deep.topics[0].partitions]
    assert len(set(indexes)) == len(indexes) > 19_000


def test_configurations_are_asked_for_whole_or_by_many_names():
    wide, deep = (of(DescribeConfigsRequest, 4, shape) for shape in (Shape.WIDE, Shape.DEEP))
    assert {resource.configuration_keys for resource in wide.resources} == {None}
    assert len(deep.resources[0].configuration_keys) > 19_000


def test_without_arrays_texts_are_long():
    assert len(of(HeartbeatRequest, 4, Shape.FLAT).member_id) == 32_000


def test_an_operator_is_bounded_by_bytes_alone():
    request = of(FindCoordinatorRequest, 4, bounds=Bounds(2 * MIB, 2**31))
    assert len(request.coordinator_keys) > 100_000
    assert len(encode(request, 4)) <= 2 * MIB


def test_what_is_deleted_was_never_there():
    assert not {topic.name for topic in of(DeleteTopicsRequest, 6).topics} & {*KNOWN.topics}


@pytest.mark.parametrize("mib", [2, 60, 100])
def test_produce_fills_its_frame_with_batches_that_a_topic_takes(mib):
    request = of(ProduceRequest, 11, bounds=Bounds(mib * MIB, MAX_ELEMENTS))
    size = len(framed(request, 11))
    assert 0.9 * mib * MIB < size <= mib * MIB
    for partition in request.topic_data[0].partition_data:
        assert read_header(partition.records).size < MIB
        break


def test_every_api_key_that_is_served_is_known_here():
    assert {APIS[key].key for key in HANDLERS} <= {*ApiKey}
