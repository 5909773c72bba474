"""Protobuf by a .proto file, and what serializers for a registry put before the content."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.schemas import compiler
from controlplane.schemas.decoding import LARGEST_BYTES, LONGEST_DEFINITION, Decoder, Format, Schema
from controlplane.schemas.framing import Framing, unframed, zigzag
from controlplane.schemas.values import Allowance, Decoded, SchemaError, UndecodableError

SHOP = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  string id = 1;
  int64 cents = 2;
  State state = 3;
  Line line = 4;
  map<string, bytes> more = 5;
  google.protobuf.Timestamp at = 6;
  Order before = 7;
  message Line { repeated int32 amounts = 1; }
}
message Refund { string order_id = 1; }
enum State { NEW = 0; PAID = 1; }
"""
ORDER = b"\n\x01a\x10\x96\x01\x18\x01\x22\x04\n\x02\x01\x02"
AS_JSON = {"id": "a", "cents": "150", "state": "PAID", "line": {"amounts": [1, 2]}}


@pytest.fixture(scope="module")
def shop() -> Schema:
    return Schema(Format.PROTOBUF, SHOP).compile()


def decoder(shop, **how) -> Decoder:
    return Decoder(Schema(Format.PROTOBUF, shop.definition, compiled=shop.compiled, **how))


def test_the_first_message_of_the_file_is_read_unless_another_is_named(shop):
    assert decoder(shop).messages == ["shop.Order", "shop.Order.Line", "shop.Refund"]
    assert decoder(shop).decode(ORDER, Allowance()) == Decoded(AS_JSON)
    assert decoder(shop, message="shop.Refund").decode(b"\n\x01a", Allowance()) == Decoded({"order_id": "a"})


def test_well_known_types_are_what_people_read(shop):
    found = decoder(shop).decode(b"\x32\x02\x08\x01\x2a\x06\n\x01k\x12\x01\xff", Allowance())
    assert found == Decoded({"at": "1970-01-01T00:00:01Z", "more": {"k": "/w=="}})


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (b"\x00", ORDER, AS_JSON),
        (b"\x02\x00", ORDER, AS_JSON),
        (b"\x04\x00\x00", b"\n\x02\x01\x02", {"amounts": [1, 2]}),  # Java's serializer: the map's entry does not count
        (b"\x04\x00\x02", b"\n\x02\x01\x02", {"amounts": [1, 2]}),  # Go's and Python's
        (b"\x02\x02", b"\n\x01a", {"order_id": "a"}),
    ],
)
def test_in_front_of_a_registry_content_says_which_message_it_is(shop, path, content, expected):
    of = decoder(shop, framing=Framing.REGISTRY)
    assert of.decode(b"\0\0\0\0\x07" + path + content, Allowance()) == Decoded(expected)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\0\0\0", "it does not begin with the id of a schema (a byte 0, and four bytes)"),
        (b"\1\0\0\0\7\0", "it does not begin with the id of a schema (a byte 0, and four bytes)"),
        (b"\0\0\0\0\7", "it ends within a number"),
        (b"\0\0\0\0\7\1", "it does not say which message of its file it is"),
        (b"\0\0\0\0\7\x02\x0a", "it says that it is message 5 of its file, which the schema does not have"),
        (b"\0\0\0\0\7\0\n\x05a", "it is no shop.Order"),
    ],
)
def test_what_does_not_fit_is_said(shop, content, problem):
    assert decoder(shop, framing=Framing.REGISTRY).decode(content, Allowance()) == Decoded(problem=problem)


def test_a_message_that_is_named_is_it_whatever_content_says(shop):
    of = decoder(shop, framing=Framing.REGISTRY, message="shop.Refund")
    assert of.decode(b"\0\0\0\0\7\x02\x00\n\x01a", Allowance()) == Decoded({"order_id": "a"})


def test_no_content_is_nothing_and_much_is_not_read(shop):
    assert decoder(shop).decode(None, Allowance()) is None
    assert decoder(shop).decode(b"", Allowance()) == Decoded({})
    assert decoder(shop).decode(bytes(LARGEST_BYTES + 1), Allowance()) == Decoded(problem="it is larger than 256 KiB")
    assert decoder(shop).decode(ORDER, Allowance(5)).problem == "it holds more values than can be shown here"
    assert "as much as can be read" in decoder(shop).decode(ORDER, Allowance(bytes_left=5)).problem


def test_what_counts_is_what_is_made_and_not_how_long_a_text_is(shop):
    """A page of twenty messages with a long text each."""
    allowance, content = Allowance(1_000), b"\n\x98\x75" + b"x" * 15_000
    for _ in range(20):
        assert decoder(shop).decode(content, allowance) == Decoded({"id": "x" * 15_000})


def test_one_that_is_too_much_leaves_something_for_the_others(shop):
    allowance = Allowance()
    many = b"\x22" + b"\xc8\xd0\x07" + b"\n" + b"\xc4\xd0\x07" + bytes(125_000)
    assert decoder(shop).decode(many, allowance).problem is not None
    assert decoder(shop).decode(ORDER, allowance) == Decoded(AS_JSON)


def test_messages_within_messages_have_an_end(shop):
    content = b""
    for _ in range(60):
        length = len(content)
        content = b"\x3a" + (bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7])) + content
    assert "levels" in decoder(shop).decode(content, Allowance()).problem


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ('syntax = "proto3"; message A {', "schema.proto:1:31: Reached end of input"),
        ('syntax = "proto3"; import "/etc/passwd"; message A {}', 'Import "/etc/passwd" was not found'),
        ('syntax = "proto3"; import "../../etc/passwd"; message A {}', "was not found"),
        ('syntax = "proto3";', "has no message"),
        ('syntax = "proto3"; message A { int32 ' + "a" * 201 + " = 1; }", "has a name of more than 200 characters"),
        ('syntax = "proto3"; message ' + "m" * 32_000 + "{" + "message M{}", "Reached end of input"),
        ("message " + "m" * 32_000 + "{" + "".join(f"message M{n}{{}}" for n in range(2_000)) + "}", "more than 200"),
        ('syntax="proto3";message ' + "m" * 32_000 + "{message A{" + "A a=1;" * 4_900 + "}}", "is already defined"),
        (
            'syntax="proto3";message '
            + "m" * 32_000
            + "{message A{"
            + "".join(f"A a{n}={n};" for n in range(1, 2_300))
            + "}}",
            "cannot be compiled: it is too large",
        ),
        (
            'syntax="proto2";message '
            + "p" * 190
            + "{"
            + ("message " + "q" * 190 + "{") * 3
            + "extensions 9; "
            + "}" * 4,
            "or with its package 500",
        ),
        (" ", "must not be empty"),
        ("x" * (LONGEST_DEFINITION + 1), "must have at most 65536 characters"),
    ],
)
def test_a_schema_that_is_none_is_refused_with_what_the_compiler_says(definition, problem):
    with pytest.raises(SchemaError) as caught:
        Schema(Format.PROTOBUF, definition).compile()
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 1_100
    assert "/tmp" not in str(caught.value)


def test_a_message_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(SchemaError, match=r"has no message shop.Oder: it has shop.Order, shop.Order.Line, shop.Refund"):
        Schema(Format.PROTOBUF, SHOP, message="shop.Oder").compile()


def test_a_compiler_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr(compiler, "_WAIT_S", 0.001)
    with pytest.raises(SchemaError, match="takes too long"):
        compiler.compiled("protobuf", SHOP)


@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_numbers_with_a_sign_are_read_where_they_stand(number, before, behind):
    left, octets = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        octets.append(left & 0x7F | 0x80)
        left >>= 7
    octets.append(left)
    assert zigzag(before + bytes(octets) + behind, len(before)) == (number, len(before) + len(octets))


def test_avro_has_no_path_behind_the_id():
    assert unframed(b"\0\0\0\1\0abc").content == b"abc"
    assert unframed(b"\0\0\0\1\0abc").schema_id == 256
    with pytest.raises(UndecodableError):
        unframed(b"")


@pytest.mark.parametrize(
    ("definition", "content", "problem"),
    [
        ('syntax = "proto3"; message A { int32 DESCRIPTOR = 1; }', b"\x08\x01", "cannot be shown as JSON"),
        (
            'syntax = "proto3"; package google.protobuf; message Timestamp { optional int32 x = 1; }',
            b"\x08\x01",
            "cannot be shown as JSON",
        ),
        (
            'syntax = "proto3"; import "google/protobuf/any.proto"; message A { google.protobuf.Any any = 1; }',
            b"\n\x05\n\x03x/y",
            "cannot be shown as JSON: ",
        ),
    ],
)
def test_what_the_library_stumbles_over_is_a_problem_and_no_error(definition, content, problem):
    of = Decoder(Schema(Format.PROTOBUF, definition).compile())
    assert problem in of.decode(content, Allowance()).problem


def test_where_serializers_count_differently_the_message_has_to_be_named():
    definition = """syntax = "proto3";
    message O { map<string, int32> m = 1; message I { int32 i = 1; } message J { int32 j = 1; } }"""
    schema = Schema(Format.PROTOBUF, definition, Framing.REGISTRY).compile()
    content = b"\0\0\0\0\1\x04\x00\x02\x08\x01"
    assert "serializers do not agree" in Decoder(schema).decode(content, Allowance()).problem
    named = Schema(Format.PROTOBUF, definition, Framing.REGISTRY, "O.J", schema.compiled)
    assert Decoder(named).decode(content, Allowance()) == Decoded({"j": 1})


def test_the_compiler_sees_none_of_our_secrets(monkeypatch):
    seen = {}
    run = compiler.subprocess.run
    monkeypatch.setattr(compiler.subprocess, "run", lambda *of, **how: seen.update(how) or run(*of, **how))
    compiler.compiled("protobuf", SHOP)
    assert seen["env"] == {}
