"""Frames: any cut of the stream gives the same documents; what is not a frame ends the connection."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.wire import MAX_HELLO_BYTES, Decoder, Hello, WireError, frame

documents = st.lists(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.text(max_size=9))), max_size=5)


@given(documents, st.lists(st.integers(1, 9), min_size=1, max_size=20))
def test_any_cut_of_the_stream_gives_the_same_documents(documents, cuts):
    stream = b"".join(frame(json.dumps(document).encode()) for document in documents)
    decoder, decoded, turn = Decoder(), [], 0
    while stream:
        size = cuts[turn % len(cuts)]
        decoded += decoder.feed(stream[:size])
        stream, turn = stream[size:], turn + 1
    assert decoded == documents


def test_a_frame_of_the_maximum_length_passes_and_one_byte_more_does_not():
    exact = json.dumps({"a": "x" * 91}).encode()
    assert len(exact) == 100
    assert list(Decoder(100).feed(frame(exact))) == [{"a": "x" * 91}]
    with pytest.raises(WireError, match="101 bytes; at most 100"):
        list(Decoder(100).feed(frame(exact + b" ")))


def test_a_length_alone_is_enough_to_refuse_a_frame():
    with pytest.raises(WireError):
        list(Decoder().feed(b"\xff\xff\xff\xff"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"null", b"\xff\xfe", b"[" * 100_000])
def test_what_is_not_an_object_is_refused(content):
    with pytest.raises(WireError):
        list(Decoder().feed(frame(content)))


def test_the_limit_may_be_raised_between_two_documents_of_one_feed():
    decoder = Decoder(MAX_HELLO_BYTES)
    stream = decoder.feed(frame(b"{}") + frame(json.dumps({"a": "x" * 2 * MAX_HELLO_BYTES}).encode()))
    assert next(stream) == {}
    decoder.max_frame_bytes = 10 * MAX_HELLO_BYTES
    assert len(next(stream)["a"]) == 2 * MAX_HELLO_BYTES


def test_a_hello_comes_back_as_it_was():
    hello = Hello("secret", 3)
    assert Hello.from_document(json.loads(hello.to_json())) == hello


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"type": "report", "version": 1, "secret": "s", "broker": 1},
        {"type": "hello", "version": 2, "secret": "s", "broker": 1},
        {"type": "hello", "version": 1, "secret": None, "broker": 1},
        {"type": "hello", "version": 1, "secret": "s", "broker": True},
    ],
)
def test_what_is_not_a_hello_is_refused(document):
    with pytest.raises(WireError):
        Hello.from_document(document)
