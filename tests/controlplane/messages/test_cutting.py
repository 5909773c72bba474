"""A page of messages in at most so many bytes: the largest fields give way, and every length is said."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import Invalid
from controlplane.kafka.message_door import Message
from controlplane.messages import cursors, cutting
from controlplane.messages.looking import Direction, Position

FIELD = st.one_of(st.none(), st.binary(max_size=300))
HEADERS = st.lists(st.tuples(st.text(max_size=5), FIELD), max_size=4).map(tuple)
MESSAGES = st.lists(st.builds(Message, st.just(0), st.just(1), st.just(2), FIELD, FIELD, HEADERS), max_size=8)


def size(shown):
    headers = sum(len(name.encode()) + len(text or b"") for name, text in shown.headers)
    return len(shown.key or b"") + len(shown.value or b"") + headers


@given(MESSAGES, st.integers(0, 2_000))
def test_a_page_is_never_larger_and_what_is_cut_says_so(messages, most):
    shown = cutting.page(messages, most)
    assert sum(size(each) for each in shown) <= most
    for message, each in zip(messages, shown, strict=True):
        assert each.is_cut == ((each.key, each.value, each.headers) != (message.key, message.value, message.headers))
        assert each.value_bytes == (cutting.NULL if message.value is None else len(message.value))
        assert (each.key is None) == (message.key is None)
        assert message.value is None or message.value.startswith(each.value)


@given(MESSAGES)
def test_where_all_fits_nothing_is_cut(messages):
    assert not any(each.is_cut for each in cutting.page(messages, sum(message.size for message in messages)))


def test_the_small_stay_whole_beside_a_large_one():
    messages = [Message(0, n, 0, b"key", b"x" * length) for n, length in enumerate((10, 5_000_000, 20))]
    small, large, other = cutting.page(messages, 2**20)
    assert (small.is_cut, other.is_cut, large.is_cut) == (False, False, True)
    assert len(large.value) > 1_000_000
    assert large.value_bytes == 5_000_000


def test_nothing_of_a_masked_message_is_there_but_lengths():
    shown = cutting.masked(Message(3, 7, 9, b"secret", None, (("name", b"value"),)))
    assert (shown.key, shown.value, shown.headers, shown.is_masked) == (None, None, (), True)
    assert (shown.key_bytes, shown.value_bytes, shown.headers_bytes, shown.header_count) == (6, cutting.NULL, 9, 1)


@given(
    st.sampled_from(Direction),
    st.dictionaries(st.integers(0, 3000), st.integers(0, 2**63 - 1), min_size=1, max_size=100),
)
def test_a_cursor_is_what_was_made_one_and_fits_into_an_address(direction, offsets):
    text = cursors.text_of(Position(direction, offsets))
    assert cursors.position_of(text) == Position(direction, offsets)
    assert len(text) < 4_096


@given(
    st.sampled_from(Direction),
    st.dictionaries(st.integers(0, 3000), st.integers(0, 2**40), max_size=100),
    st.frozensets(st.integers(0, 3000), min_size=1),
    st.integers(0, 2**53),
)
def test_so_is_one_with_partitions_that_nobody_has_looked_through(direction, offsets, unseen, since_ms):
    position = Position(direction, offsets, unseen - offsets.keys(), since_ms)
    if not position.unseen:
        return
    text = cursors.text_of(position)
    assert cursors.position_of(text) == position
    assert len(text) < 4_096


@pytest.mark.parametrize(
    "document",
    [
        ["older", []],
        ["older", [], 0, ""],
        ["older", [[0, 1]], 0],
        ["older", [[0, 1]], 0, "AQ=="],  # in both
        ["older", [], -1, "AQ=="],
        ["older", [], True, "AQ=="],
        ["older", [], 2**53 + 1, "AQ=="],
        ["older", [], 0, "not base64"],
        ["older", [], 0, 1],
        ["older", [], 0, "AQ==", 0],
        ["older", [], 0, base64.b64encode(b"\xff" * 1251).decode()],  # of a partition that no topic can have
    ],
)
def test_what_is_wrong_in_a_document_is_refused(document):
    text = base64.urlsafe_b64encode(json.dumps(document).encode()).decode()
    with pytest.raises(Invalid):
        cursors.position_of(text)


@pytest.mark.parametrize(
    "text",
    ["", "x", "WyJvbGRlciIsW1swLC0xXV1d", "WyJvbGRlciIsW11d", "W10", "e30", "WyJ1cCIsW1swLDFdXV0", "[" * 9_000, "é"],
)
def test_what_is_none_is_refused(text):
    with pytest.raises(Invalid):
        cursors.position_of(text)
