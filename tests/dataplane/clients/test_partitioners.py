"""Partitions by key: the same as Java's, whatever the process."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.clients.partitioners import (
    HashPartitioner,
    Murmur2Partitioner,
    RoundRobin,
    abs_as_java,
    java_hash,
    murmur2,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka.partitioner.default import murmur2 as other_murmur2

KEYS = st.one_of(st.text(), st.binary(), st.integers(-(2**63), 2**63 - 1))


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),  # two chars of UTF-16
        (b"", 1),
        (b"\x01\xff", 991),
        (7, 7),
        (-7, -7),
        (2**31, -(2**31)),
        (-(2**31) - 1, -(2**31)),
        (2**31 - 1, 2**31 - 1),
        (2**32, 1),
        (2**63 - 1, -(2**31)),
        (-(2**63), -(2**31)),
    ],
)
def test_hash_codes_are_javas(key, code):
    assert java_hash(key) == code


def test_the_least_number_becomes_partition_0():
    assert abs_as_java(-(2**31)) == 0
    assert HashPartitioner().partition("polygenelubricants", 7) == 0
    assert HashPartitioner().partition(-9, 7) == 2


def test_a_key_without_a_hash_code_is_refused():
    for key in (1.5, 2**63, -(2**63) - 1):
        with pytest.raises(TypeError, match="partitioner"):
            java_hash(key)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(data, code):
    """As Apache Kafka's own tests have them."""
    assert murmur2(data) == code & 0xFFFFFFFF


@given(st.binary(max_size=64))
def test_murmur2_is_that_of_another_client(data):
    assert murmur2(data) == other_murmur2(data) & 0xFFFFFFFF


@settings(max_examples=50)
@given(KEYS, st.integers(1, 1000))
def test_every_key_has_a_partition(key, count):
    assert 0 <= HashPartitioner().partition(key, count) < count
    if not isinstance(key, int):
        assert 0 <= Murmur2Partitioner().partition(key, count) < count


def test_partitions_are_those_of_kafkas_producer():
    """The sign bit is taken off, then comes the remainder: worked out from Kafka's own numbers."""
    assert Murmur2Partitioner().partition(b"21", 1000) == (2**31 - 973932308) % 1000
    assert Murmur2Partitioner().partition("abc", 1000) == 107
    assert HashPartitioner().partition("hello", 1000) == 322
    assert HashPartitioner().partition(-(2**31) + 1, 1000) == 647


def test_without_a_key_partitions_take_turns_for_each_topic():
    turns = RoundRobin()
    assert [turns.next("a", [0, 2, 3]) for _ in range(4)] == [0, 2, 3, 0]
    assert turns.next("b", [0, 2, 3]) == 0
