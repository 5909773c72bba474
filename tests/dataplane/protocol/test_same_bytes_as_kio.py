"""kio, generated from Kafka's definitions by other people, agrees with us on every message and version it has."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.protocol.codec import decode, encode
from tests.dataplane.protocol.kio_twins import kio_bytes, narrow, twin
from tests.dataplane.protocol.strategies import all_messages, messages

SHARED = [(cls, version) for cls, version in all_messages() if twin(cls, version) is not None]
NAMES = [f"{cls.__name__}-v{version}" for cls, version in SHARED]


QUICK = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def compare(cls, version, data):
    value = data.draw(messages(cls, version, narrow(cls, version)))
    theirs = kio_bytes(value, version)
    assert encode(value, version).hex() == theirs.hex()
    assert decode(cls, version, theirs) == value
    assert decode(cls, version, memoryview(theirs)) == value


@pytest.mark.parametrize(("cls", "version"), SHARED, ids=NAMES)
@QUICK
@given(data=st.data())
def test_both_write_the_same_bytes_and_we_read_them_back(cls, version, data):
    compare(cls, version, data)


@pytest.mark.long
@pytest.mark.parametrize(("cls", "version"), SHARED, ids=NAMES)
@settings(QUICK, max_examples=300)
@given(data=st.data())
def test_both_write_the_same_bytes_for_a_long_time(cls, version, data):
    compare(cls, version, data)


def test_kio_still_has_nearly_everything_newer_than_kafka_3():
    assert len(SHARED) >= 450
