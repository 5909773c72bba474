"""Avro: what the Apache library writes is read as it reads it, and a tenant's schema cannot use up the process."""

from __future__ import annotations

import io
import json
import struct
import warnings

import avro.io
import avro.schema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.schemas.avro_values import AvroDecoder
from controlplane.schemas.decoding import Decoder, Format, Schema
from controlplane.schemas.values import Allowance, SchemaError, UndecodableError

SCALARS = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(max_size=20),
}
NAMES = iter(range(10**9))


def name() -> str:
    return f"n{next(NAMES)}"


@st.composite
def typed(draw, depth=3):
    """(schema, a value of it)."""
    kinds = [*SCALARS, "enum"] + (["record", "array", "map", "union"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind in SCALARS:
        return kind, draw(SCALARS[kind])
    if kind == "enum":
        return {"type": "enum", "name": name(), "symbols": ["A", "B", "C"]}, draw(st.sampled_from("ABC"))
    if kind == "record":
        members = draw(st.lists(typed(depth - 1), max_size=3))
        fields = [{"name": f"f{place}", "type": schema} for place, (schema, _) in enumerate(members)]
        value = {f"f{place}": value for place, (_, value) in enumerate(members)}
        return {"type": "record", "name": name(), "fields": fields}, value
    schema, value = draw(typed(depth - 1))
    if kind == "array":
        return {"type": "array", "items": schema}, [value] * draw(st.integers(0, 3))
    if kind == "map":
        return {"type": "map", "values": schema}, dict.fromkeys(draw(st.lists(st.text(max_size=4), max_size=3)), value)
    if schema == "null" or isinstance(schema, list):
        return schema, value
    return ["null", schema], draw(st.sampled_from([None, value]))


def written(definition, value) -> bytes:
    out = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(definition)).write(value, avro.io.BinaryEncoder(out))
    return out.getvalue()


@settings(max_examples=300, deadline=None)
@given(typed())
def test_what_the_library_writes_is_read_as_it_was(pair):
    schema, value = pair
    definition = json.dumps(schema)
    content = written(definition, value)
    assert AvroDecoder(definition).decode(content, Allowance()) == value


@settings(max_examples=300, deadline=None)
@given(typed(), st.binary(max_size=60))
def test_other_bytes_are_a_value_or_a_sentence(pair, content):
    schema = Schema(Format.AVRO, json.dumps(pair[0]))
    found = Decoder(schema).decode(content, Allowance(2_000))
    assert found is not None
    assert json.dumps(found.value, allow_nan=False)
    assert found.problem is None or found.problem.startswith("it ")


@pytest.mark.parametrize(
    ("schema", "content", "expected"),
    [
        ("bytes", b"\x04\x00\xff", "AP8="),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc", "YWJj"),
        ("float", struct.pack("<f", 0.1), 0.1),
        ("float", struct.pack("<f", 1e-20), 1e-20),
        ("float", struct.pack("<f", 3.4028234663852886e38), 3.4028234663852886e38),
        ("double", struct.pack("<d", float("nan")), "NaN"),
        ("double", struct.pack("<d", float("-inf")), "-Infinity"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, b"\x04\xcf\xc7", "-123.45"),
        ({"type": "int", "logicalType": "date"}, b"\x02", "1970-01-02"),
        ({"type": "int", "logicalType": "date"}, b"\xfe\xff\xff\xff\x0f", 2**31 - 1),
        ({"type": "int", "logicalType": "time-millis"}, b"\x02", "00:00:00.001"),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\x02", "1970-01-01T00:00:00.001Z"),
        ({"type": "long", "logicalType": "timestamp-micros"}, b"\x01", "1969-12-31T23:59:59.999999Z"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, b"\x00", "1970-01-01T00:00:00.000"),
        ({"type": "string", "logicalType": "uuid"}, b"\x02u", "u"),
        ({"type": "long", "logicalType": "our-own"}, b"\x02", 1),
        # A block of an array may say how long it is.
        ({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x00", [1, 2]),
    ],
)
def test_values_are_shown_as_people_read_them(schema, content, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoder = AvroDecoder(json.dumps(schema))
    assert decoder.decode(content, Allowance()) == expected


@pytest.mark.parametrize(
    ("schema", "content", "problem"),
    [
        ("int", b"", "it ends within a number"),
        ("int", b"\x02\x02", "it has 1 bytes behind its end"),
        ("long", b"\xff" * 11, "it holds a number of more than 64 bits"),
        ("long", b"\xff" * 9 + b"\x7f", "it holds a number of more than 64 bits"),
        ("boolean", b"\x02", "it holds 2 where a boolean stands"),
        ("string", b"\x06ab", "it ends within a value of 3 bytes"),
        ("string", b"\x01", "it ends within a value of -1 bytes"),
        ("string", b"\x02\xff", "it holds bytes where text stands"),
        (["null", "int"], b"\x04", "it names branch 2 of a union of 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01", "it names symbol -1 of 1"),
    ],
)
def test_what_does_not_fit_is_said(schema, content, problem):
    with pytest.raises(UndecodableError) as caught:
        AvroDecoder(json.dumps(schema)).decode(content, Allowance())
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ("{", "is no Avro schema"),
        ('{"type": "record"}', "is no Avro schema"),
        ('"nothing"', "is no Avro schema"),
        ("[" * 5_000, "is nested too deeply"),
        ('{"type": "array", "items": ' * 200 + '"int"' + "}" * 200, "is nested too deeply"),
        (json.dumps({"type": "enum", "name": "E", "symbols": ["A" * 201]}), "has a name of more than 200 characters"),
        (
            json.dumps({"type": "record", "name": "R", "fields": [{"name": "<b>", "type": "int"}]}),
            "none in Avro: '<b>'",
        ),
        (json.dumps({"type": "record", "name": "R", "fields": [{"name": "\ud800", "type": "int"}]}), "none in Avro"),
        ('"\\ud800"', "is no Avro schema"),
        (json.dumps({"type": "fixed", "name": "F", "size": True}), "size"),
        ('{"type":"fixed","name":"F","logicalType":"decimal","precision":1,"size":1' + "0" * 400 + "}", "."),
    ],
)
def test_a_schema_that_is_none_is_refused(definition, problem):
    with pytest.raises(SchemaError, match=problem) as caught:
        AvroDecoder(definition)
    str(caught.value).encode()


@pytest.mark.parametrize("letter", ["\N{LATIN SMALL LETTER A}", "\U0010ffff"])
def test_a_schema_whose_refusal_would_be_a_gigabyte_is_refused_in_a_process_of_its_own(letter):
    """The library says with each level what is in it, and what is in that."""
    definition = '{"type":"array","items":' * 60 + json.dumps(letter * 50_000, ensure_ascii=False) + "}" * 60
    with pytest.raises(SchemaError) as caught:
        Schema(Format.AVRO, definition).compile()
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("logical", [{}, [], 5, None])
def test_a_logical_type_that_is_no_name_is_none(logical):
    assert AvroDecoder(json.dumps({"type": "int", "logicalType": logical})).decode(b"\x02", Allowance()) == 1


def test_text_that_does_not_stand_in_the_content_counts():
    fixed = {"type": "fixed", "name": "F", "size": 0, "logicalType": "decimal", "precision": 0, "scale": 100}
    decoder = AvroDecoder(json.dumps({"type": "array", "items": fixed}))
    with pytest.raises(UndecodableError, match="more values than can be shown here"):
        decoder.decode(b"\xc0\x84\x3d\x00", Allowance(1_000))


def test_many_values_in_few_bytes_end_where_enough_is_shown():
    """An item that takes no byte, 2^62 times."""
    decoder = AvroDecoder('{"type": "array", "items": "null"}')
    with pytest.raises(UndecodableError, match="more values than can be shown here"):
        decoder.decode(b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", Allowance(1_000))


def test_an_allowance_is_of_all_that_is_read_with_it():
    decoder, allowance = AvroDecoder('"int"'), Allowance(2)
    for _ in range(2):
        assert decoder.decode(b"\x02", allowance) == 1
    with pytest.raises(UndecodableError):
        decoder.decode(b"\x02", allowance)


def test_a_list_whose_items_hold_the_next_is_not_followed_for_ever():
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
    decoder = AvroDecoder(json.dumps(node))
    assert decoder.decode(b"\x02\x00", Allowance()) == {"next": {"next": None}}
    with pytest.raises(UndecodableError, match="more than 40 levels"):
        decoder.decode(b"\x02" * 100_000 + b"\x00", Allowance())


def test_a_schema_whose_records_hold_each_other_twice_is_no_trouble():
    """Thirty of them have a billion fields together."""
    schema: object = {"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}
    for place in range(1, 30):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"r{place - 1}"}]
        schema = {"type": "record", "name": f"r{place}", "fields": fields}
    decoder = AvroDecoder(json.dumps({"type": "array", "items": schema}))
    with pytest.raises(UndecodableError, match="it ends within a number"):
        decoder.decode(b"\x02" + bytes(1_000), Allowance())
