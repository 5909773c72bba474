"""A schema in DDL, read without Spark: what works is as Spark reads it, what can never work is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import DataType, StructType

from controlplane.lake.ddl import read
from controlplane.lake.errors import SchemaError
from controlplane.lake.schema_types import checked

from .test_schema_types import TYPES, field, struct


def ddl_of(kind):
    """Of a type in Spark's JSON."""
    if isinstance(kind, str):
        return {"integer": "INT", "long": "bigint", "short": "SmallInt", "byte": "TINYINT"}.get(kind, kind)
    if kind["type"] == "array":
        return f"ARRAY<{ddl_of(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map < {ddl_of(kind['keyType'])},{ddl_of(kind['valueType'])} >"
    return f"struct<{fields_of(kind, ': ')}>"


def fields_of(kind, between=" "):
    return ", ".join(
        f"{each['name']}{between}{ddl_of(each['type'])}{'' if each['nullable'] else ' NOT NULL'}"
        for each in kind["fields"]
    )


def with_nulls(kind):
    """As DDL has it, which cannot say that an array or a map has no nulls within."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": [{**each, "type": with_nulls(each["type"])} for each in kind["fields"]]}
    if kind["type"] == "array":
        return {**kind, "elementType": with_nulls(kind["elementType"]), "containsNull": True}
    keys, values = with_nulls(kind["keyType"]), with_nulls(kind["valueType"])
    return {**kind, "keyType": keys, "valueType": values, "valueContainsNull": True}


@given(st.lists(TYPES, min_size=1, max_size=4).map(struct))
def test_every_schema_that_a_table_can_have_is_read(found):
    assert checked(read(fields_of(found))) == with_nulls(found)
    assert checked(read(json.dumps(found))) == found


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a decimal", "decimal(10,0)"),
        ("a DEC(5)", "decimal(5,0)"),
        ("a numeric( 5 , 2 )", "decimal(5,2)"),
        ("`a` INTEGER", "integer"),
        ("a: long", "long"),
        ("  a\n STRING COMMENT 'it''s' ".replace("''", "\\'"), "string"),
        ("a real", "float"),
        ("struct<a: int>", "integer"),
    ],
)
def test_ways_to_write_one_field(text, kind):
    assert checked(read(text)) == field(kind)


def test_names_in_backquotes_have_any_sign_and_not_null_is_kept():
    found = read("`a ``b``, c` STRING NOT NULL, of_it INT, 2nd DATE")
    assert [(each["name"], each["nullable"]) for each in found["fields"]] == [
        ("a `b`, c", False), ("of_it", True), ("2nd", True),
    ]  # fmt: skip
    with pytest.raises(SchemaError, match="the field a `b`, c of the schema"):  # which no table can have
        checked(found)


@pytest.mark.parametrize(
    "text",
    ["id bigint, name nonsense", "a b c d", "a", "bigint", "", ",", "a int,", "a int b int", "a array<int", "a array<>",
     "a map<int>", "a struct<b int", "a decimal(x)", "a decimal(39,1)", "a varchar(5)", "a int default 5", "a int; drop",
     "a 'b'", "a int not", "a " + "array<" * 30 + "int" + ">" * 30, "{", "{}", '{"type": "udt"}', "a timestamp_ntz", "`a int",
     "größe int", "struct<a int", "struct<a int>, b int", "a map<int, int>", "id int, ID string", "a struct<>", "struct<>"],
)  # fmt: skip
def test_what_can_never_work_is_refused(text):
    with pytest.raises(SchemaError):
        checked(read(text))


def test_deep_json_ends_in_a_sentence():
    with pytest.raises(SchemaError):
        checked(read('{"type":' * 100_000))


def test_spark_s_own_types_are_what_they_are_called_here():
    made = StructType.fromJson(checked(read("a BIGINT, b ARRAY<MAP<STRING, DECIMAL(10,2)>>, c STRUCT<d: DATE>")))
    assert isinstance(made, DataType)
    assert made.simpleString() == "struct<a:bigint,b:array<map<string,decimal(10,2)>>,c:struct<d:date>>"
