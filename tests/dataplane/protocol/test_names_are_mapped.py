"""Fields that hold names are mapped, all of them, both ways; what a tenant does not own stays in."""

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.protocol.api import APIS
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.messages.discovery import MetadataResponse, MetadataResponseTopic
from dataplane.protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic
from dataplane.protocol.schema import Wire, wires
from quota.contracts.namespace import ForeignNameError, InstanceNames
from tests.dataplane.protocol.strategies import all_messages, messages

NAMES = InstanceNames("k3v9x2qa")
MAPPED = [(cls, version) for cls, version in all_messages() if version == cls.INFO.versions.high]
KINDS = ("topic", "group", "transactional_id")


def physical(message):
    """The message with the instance's key in front of every name, done by walking the declaration."""
    changes = {}
    for name, wire, _ in wires(type(message)):
        value = getattr(message, name)
        if value is None:
            continue
        if wire.entity:
            changes[name] = f"k3v9x2qa.{value}"
        elif isinstance(wire.element, Wire) and wire.element.entity:
            changes[name] = tuple(f"k3v9x2qa.{item}" for item in value)
        elif wire.kind == "struct":
            changes[name] = physical(value)
        elif wire.kind == "array" and isinstance(wire.element, type):
            changes[name] = tuple(physical(item) for item in value)
    return dataclasses.replace(message, **changes)


@pytest.mark.parametrize(("cls", "version"), MAPPED, ids=[cls.__name__ for cls, _ in MAPPED])
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(data=st.data())
def test_a_tenants_names_become_physical_and_come_back(cls, version, data):
    value = data.draw(messages(cls, version))
    as_sent = encode(value, version)
    inside = decode(cls, version, as_sent, 0, NAMES)
    # Only fields of this version: the others keep their defaults, which no mapping has seen.
    assert inside == decode(cls, version, encode(physical(value), version))
    assert encode(inside, version, NAMES) == as_sent


def test_a_name_of_another_instance_is_never_written():
    answer = MetadataResponse(topics=(MetadataResponseTopic(name="aaaaaaaa.orders"),))
    with pytest.raises(ForeignNameError):
        encode(answer, 12, NAMES)


def test_a_null_name_stays_null():
    answer = MetadataResponse(topics=(MetadataResponseTopic(name=None),))
    assert decode(MetadataResponse, 12, encode(answer, 12, NAMES)).topics[0].name is None


def test_names_are_mapped_at_every_depth():
    request = OffsetFetchRequest(group_id="g", topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0,)),))
    inside = decode(OffsetFetchRequest, 5, encode(request, 5), 0, NAMES)
    assert (inside.group_id, inside.topics[0].name) == ("k3v9x2qa.g", "k3v9x2qa.t")


def entities(cls, path=""):
    for name, wire, _ in wires(cls):
        own = wire.entity or (wire.element.entity if isinstance(wire.element, Wire) else None)
        if own:
            yield f"{path}{name}", own
        if isinstance(wire.element, type):
            yield from entities(wire.element, f"{path}{name}.")


def test_every_field_that_is_called_by_a_name_of_a_topic_group_or_transaction_is_mapped():
    for api in APIS.values():
        for cls in (api.request, api.response):
            marked = dict(entities(cls))
            for name, wire, _ in wires(cls):
                if name in ("group_id", "transactional_id", "topic_name") and wire.kind == "string":
                    assert marked.get(name) in KINDS, f"{cls.__name__}.{name}"
