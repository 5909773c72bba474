"""The checksum in the head of an lz4 frame: put right wherever it stands, and wrong only where the old format wants it so."""

from __future__ import annotations

import cramjam
import pytest

from dataplane.records.compression import LZ4
from dataplane.records.header import CorruptBatchError
from dataplane.records.legacy import Message, read_message_set, write_message, write_message_set
from dataplane.records.lz4 import compress_frame, with_right_checksum


def frame_head(flags, fields=b""):
    """The head of a frame, the magic included, up to its checksum."""
    return b"\x04\x22\x4d\x18" + bytes([flags, 0x40]) + fields


SIZE, DICTIONARY = (5).to_bytes(8, "little"), b"1234"


@pytest.mark.parametrize(
    ("head", "right"),
    [
        (frame_head(0x60), 0x82),
        (frame_head(0x68, SIZE), 0x61),
        (frame_head(0x61, DICTIONARY), 0x1E),
        (frame_head(0x69, SIZE + DICTIONARY), 0x56),
    ],
    ids=["plain", "with its size", "with a dictionary", "with both"],
)
def test_the_checksum_behind_the_head_of_a_frame_is_put_right(head, right):
    """A library takes a frame with the right one only."""
    blocks = compress_frame(b"value")[7:]
    for wrong in (right ^ 1, right ^ 0x80):
        frame = head + bytes([wrong]) + blocks
        with pytest.raises(cramjam.DecompressionError):
            cramjam.lz4.decompress(frame)
        assert with_right_checksum(frame) == head + bytes([right]) + blocks
        assert with_right_checksum(head + bytes([wrong])) == head + bytes([right])
    whole = head + bytes([right]) + blocks
    assert bytes(cramjam.lz4.decompress(whole)) == b"value"
    assert with_right_checksum(whole) is whole
    for size in range(len(head) + 1):
        assert with_right_checksum(head[:size]) == head[:size]  # it is not there


def test_what_is_no_frame_stays_as_it_is():
    frame = compress_frame(b"value", wrong_checksum=True)
    for at in range(4):
        other = bytearray(frame)
        other[at] ^= 1
        assert with_right_checksum(other) is other


@pytest.mark.parametrize("magic", [0, 1])
def test_the_historic_checksum_is_taken_in_format_0_only(magic):
    inside = write_message_set([Message(0, magic, 0, 1 if magic else -1, b"k", b"v")])
    right, wrong = [
        write_message(magic, 0, 1, None, compress_frame(inside, wrong_checksum=is_wrong), LZ4)
        for is_wrong in (False, True)
    ]
    assert [bytes(message.value) for message in read_message_set(right)] == [b"v"]
    if magic:
        with pytest.raises(CorruptBatchError):
            read_message_set(wrong)
    else:
        assert read_message_set(wrong) == read_message_set(right)
