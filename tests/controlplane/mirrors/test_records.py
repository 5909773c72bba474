"""What a mirror says of itself: read as it is written, and nothing else is believed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.mirrors.records import MOST_ROWS, STATUS_TOPIC, said
from dataplane.clients.mirror.config import Target
from dataplane.clients.mirror.metrics import COPYING, RESTING, STUCK, Row
from dataplane.clients.mirror.status import status_message
from tests.controlplane.mirrors.conftest import ROW, status


def test_what_a_mirror_writes_is_read():
    rows = [
        Row("old", "orders", 0, 7, 1200, 1150, 3, 100, end=1207, map_segments=64, map_slack=3, map_from=20),
        Row("old", "orders", 1, 0, 0, 0, 0, 0, is_waiting=1, state=RESTING),
        Row("old", "orders", 2, 0, 5, 0, 0, 0, is_waiting=1, state=STUCK),
    ]
    message = status_message(
        rows, (120.5, 9.0), source="old", target="new", delivery="at_least_once", at_ms=5, every_s=2.5
    )
    found = said(message.value)
    assert (found.source, found.target, found.delivery, found.at_ms, found.every_s) == (
        "old",
        "new",
        "at_least_once",
        5,
        2.5,
    )
    assert (found.lag, found.messages_per_s, found.bytes_per_s, found.partitions) == (7, 120.5, 9.0, 3)
    assert [(row.partition, row.state, row.map_from) for row in found.rows] == [
        (0, COPYING, 20),
        (1, RESTING, None),
        (2, STUCK, None),
    ]
    first = found.rows[0]
    assert (first.lag, first.source_end, first.source_offset, first.target_offset) == (7, 1207, 1200, 1150)


def test_the_topic_is_the_mirrors_default():
    assert Target(name="new", bootstrap=(), settings=None).status_topic == STATUS_TOPIC


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"null",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        status(version=2),
        status(source=""),
        status(source="x" * 250),
        status(source="a\nb"),
        status(delivery="twice"),
        status(lag=-1),
        status(lag=True),
        status(lag="7"),
        status(lag=2**63),
        status(messages_per_s=float("nan")),
        status(messages_per_s=float("inf")),
        status(messages_per_s=1e300),
        status(messages_per_s=10**400),
        status(bytes_per_s=-1),
        status(rows={}),
        status(rows=[ROW] * (MOST_ROWS + 1)),
        status(rows=[{**ROW, "state": "<b>"}]),
        status(rows=[{**ROW, "source_end": -2}]),
        status(rows=[{key: value for key, value in ROW.items() if key != "lag"}]),
        status(rows=[1]),
    ],
)
def test_what_is_none_is_none(value):
    assert said(value) is None


@given(
    st.binary()
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_nothing_that_may_stand_there_raises(value):
    assert said(value) is None
