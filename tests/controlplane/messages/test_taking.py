"""How large a message is in its batch: as brokers' own code builds it, to the byte."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controlplane.kafka.message_door import Message
from controlplane.messages.taking import batch_bytes
from dataplane.records.batch import Record, build_batch

CONTENT = st.none() | st.binary(max_size=300) | st.integers(0, 3).map(lambda n: b"x" * (63 + 64**n))
HEADERS = st.lists(st.tuples(st.text(max_size=80), st.none() | st.binary(max_size=80)), max_size=70).map(tuple)


@given(key=CONTENT, value=CONTENT, headers=HEADERS)
def test_a_message_is_as_large_as_its_batch(key, value, headers):
    built = build_batch([Record(key, value, headers)], now_ms=1_700_000_000_000)
    assert batch_bytes(Message(-1, -1, None, key, value, headers)) == len(built)
