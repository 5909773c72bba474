"""Records of an instance's audit are one JSON document each, in a form that readers may rely on."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.audit import MOST_TEXT, AuditKind, AuditRecord
from quota.contracts.instance import ContractError

DENIAL = AuditRecord(
    1_795_381_445_123,
    2,
    AuditKind.DENIAL,
    "TOPIC_AUTHORIZATION_FAILED",
    "10.0.0.7",
    "public",
    principal="User:bob",
    client_id="billing",
    api="PRODUCE",
    operation="WRITE",
    resource="TOPIC:orders",
    reason="no rule permits it",
    count=31,
)
GOLDEN = (
    b'{"api":"PRODUCE","broker":2,"client_id":"billing","count":31,"kind":"denial","operation":"WRITE",'
    b'"outcome":"TOPIC_AUTHORIZATION_FAILED","principal":"User:bob","reason":"no rule permits it",'
    b'"resource":"TOPIC:orders","route":"public","source":"10.0.0.7","time":"2026-11-22T21:04:05.123Z","version":1}'
)


def test_a_record_is_written_as_the_golden_bytes():
    assert DENIAL.value() == GOLDEN
    assert AuditRecord.from_value(GOLDEN) == DENIAL


texts = st.none() | st.text(max_size=MOST_TEXT)
records = st.builds(
    AuditRecord,
    time_ms=st.integers(0, 4_000_000_000_000),
    broker=st.integers(0, 1_000),
    kind=st.sampled_from(AuditKind),
    outcome=st.text(max_size=40),
    source=st.text(max_size=40),
    route=st.text(max_size=40),
    principal=texts,
    client_id=texts,
    api=texts,
    operation=texts,
    resource=texts,
    reason=texts,
    mechanism=texts,
    instance=texts,
    count=st.integers(1, 10**9),
    left_out=st.integers(0, 10**9),
)


@given(records)
def test_a_record_is_read_back(record):
    assert AuditRecord.from_value(record.value()) == record


def test_what_a_client_chooses_is_cut():
    record = AuditRecord(0, 1, AuditKind.CONNECTION, "accepted", "10.0.0.7", "r", client_id="x" * 30_000)
    assert len(record.value()) < 600


@pytest.mark.parametrize(
    "members",
    [{"version": 2}, {"kind": "gossip"}, {"time": "yesterday"}, {"broker": "2"}, {"count": True}, {"principal": 7}],
)
def test_what_is_no_record_is_refused(members):
    with pytest.raises(ContractError):
        AuditRecord.from_value(json.dumps({**json.loads(GOLDEN), **members}).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"null"])
def test_what_is_no_document_is_refused(data):
    with pytest.raises(ContractError):
        AuditRecord.from_value(data)
