"""Streams are cut into frames, wherever the pieces end; lengths that cannot be are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.protocol.frame import FrameError, FrameSplitter


def framed(body):
    return len(body).to_bytes(4, "big") + body


@given(bodies=st.lists(st.binary(max_size=20)), cuts=st.lists(st.integers(1, 30), min_size=1))
def test_frames_do_not_depend_on_where_the_pieces_end(bodies, cuts):
    stream = b"".join(framed(body) for body in bodies)
    splitter = FrameSplitter(20)
    found, position, step = [], 0, 0
    while position < len(stream):
        size = cuts[step % len(cuts)]
        found += splitter.feed(stream[position : position + size])
        position, step = position + size, step + 1
    assert found == bodies
    assert splitter.pending_bytes() == 0


@pytest.mark.parametrize("size", [11, 2**31 - 1, -1, -(2**31)])
def test_a_length_that_cannot_be_ends_the_stream(size):
    splitter = FrameSplitter(10)
    with pytest.raises(FrameError):
        splitter.feed(size.to_bytes(4, "big", signed=True))
    with pytest.raises(FrameError):
        splitter.feed(framed(b"fine"))


def test_the_longest_allowed_frame_passes():
    assert FrameSplitter(10).feed(framed(b"0123456789")) == [b"0123456789"]


def test_a_length_is_judged_before_its_frame_arrives():
    splitter = FrameSplitter(10)
    assert splitter.feed(b"\x00\x00\x00") == []
    with pytest.raises(FrameError):
        splitter.feed(b"\x0b")


def test_the_rest_of_an_incomplete_frame_waits():
    splitter = FrameSplitter(10)
    assert splitter.feed(framed(b"ab") + framed(b"cdef")[:6]) == [b"ab"]
    assert splitter.pending_bytes() == 6
    assert splitter.feed(b"ef") == [b"cdef"]
