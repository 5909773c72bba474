"""Schemas that are judged from values; and the words of the command line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from controlplane.lake.columns import malformed_column
from controlplane.lake.inference import MOST_LEVELS, MOST_MEMBERS, infer
from controlplane.lake.planning import Span
from controlplane.lake.request import Request, moment_ms, offsets
from controlplane.lake.schema_types import checked

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
WORDS = ["--brokers", "h:1", "--topic", "orders", "--to", "file:/lake/orders"]


def ddl(*documents: object) -> str:
    return StructType.fromJson(infer([json.dumps(document).encode() for document in documents])).simpleString()


@pytest.mark.parametrize(
    ("documents", "wanted"),
    [
        ([{"a": 1, "b": "x", "c": True, "d": 1.5}], "struct<a:bigint,b:string,c:boolean,d:double>"),
        ([{"a": 1}, {"b": 2}], "struct<a:bigint,b:bigint>"),
        ([{"a": 1}, {"a": 1.5}], "struct<a:double>"),
        ([{"a": 1}, {"a": "1"}], "struct<a:string>"),
        ([{"a": 1}, {"a": True}], "struct<a:string>"),
        ([{"a": None}, {"a": 3}], "struct<a:bigint>"),
        ([{"a": None}], "struct<a:string>"),
        ([{"a": 2**63}], "struct<a:double>"),
        ([{"a": {}}, {"a": {"b": 1}}], "struct<a:struct<b:bigint>>"),
        ([{"a": {}}], "struct<a:string>"),
        ([{"a": {"b": 1}}, {"a": [1]}], "struct<a:string>"),
        ([{"a": [1, None, 2.5]}, {"a": []}], "struct<a:array<double>>"),
        ([{"a": [{"b": 1}, {"c": "x"}]}], "struct<a:array<struct<b:bigint,c:string>>>"),
        ([{"a b": 1, "c": 2}], "struct<c:bigint>"),
        ([{"a": 1, "A": 2}], "struct<a:bigint>"),
        ([[1], 3, "x", None], "struct<>"),
    ],
)
def test_of_these_documents(documents, wanted):
    assert ddl(*documents) == wanted


def test_what_is_no_json_says_nothing():
    assert infer([None, b"", b"\xff", b"{", b'{"a": 1}']) == infer([b'{"a": 1}'])
    assert infer([b"[" * 100_000])["fields"] == []


def test_maps_with_keys_that_are_data_and_deep_nesting_become_strings():
    wide = {str(number): 1 for number in range(MOST_MEMBERS + 1)}
    assert ddl({"users": wide}) == "struct<users:string>"
    assert len(infer([json.dumps(wide).encode()])["fields"]) == MOST_MEMBERS
    deep: object = 1
    for _ in range(100):
        deep = {"a": deep}
    assert ddl(deep).count("struct") == MOST_LEVELS + 1


@given(st.lists(JSON, max_size=4))
def test_every_schema_is_one_that_spark_takes(documents):
    made = infer([json.dumps(document).encode() for document in documents])
    assert StructType.fromJson(made).jsonValue() == made


@given(st.lists(JSON, max_size=4), st.randoms(use_true_random=False))
def test_types_do_not_depend_on_the_order_of_values(documents, random):
    values = [json.dumps(document).encode() for document in documents if isinstance(document, dict)]
    names = [name.lower() for value in values for name in json.loads(value)]
    shuffled = random.sample(values, len(values))
    if len({name for value in values for name in json.loads(value)}) == len(set(names)):
        assert kinds(infer(values)) == kinds(infer(shuffled))


def kinds(schema) -> dict[str, str]:
    """Of members; those within them may come in another order, or differ in case only."""
    found = {field["name"]: field["type"] for field in schema["fields"]}
    return {name: kind if isinstance(kind, str) else kind["type"] for name, kind in found.items()}


def test_words_of_the_command_line():
    request = Request.read([*WORDS, "--offsets", "0:5-30,2:0-1", "--schema", "inferred", "--skip-expired"])
    assert (request.brokers, request.topic, request.destination) == ("h:1", "orders", "file:/lake/orders")
    assert request.offsets == {0: Span(5, 30), 2: Span(0, 1)}
    assert (request.schema, request.skip_expired, request.new_topic) == ("inferred", True, False)
    assert Request.read([*WORDS, "--from-time", "1970-01-01T01:00:01+01:00"]).from_time_ms == 1000


@pytest.mark.parametrize("text", ["", "0", "0:5", "0:5-5", "0:7-5", "0:1-2,0:3-4", "x:1-2", "0:-1-2"])
def test_offsets_that_make_no_sense(text):
    with pytest.raises(ValueError):
        offsets(text)


def test_a_moment_without_a_zone_is_utc():
    assert moment_ms("1970-01-01T00:00:02") == moment_ms("1970-01-01T00:00:02Z") == 2000


@pytest.mark.parametrize(
    "more",
    [["--from-time", "yesterday"], ["--from-time", "1969-12-31T23:59:59.999Z"], ["--offsets", "all"], ["--offsets-a-commit", "0"],
     ["--from-time", "2026-01-01", "--offsets", "0:1-2"], ["--unknown"]],
)  # fmt: skip
def test_words_that_make_no_sense_end_with_status_2(more, capsys):
    with pytest.raises(SystemExit) as ended:
        Request.read([*WORDS, *more])
    assert ended.value.code == 2
    assert "lake_load: error" in capsys.readouterr().err


@given(st.lists(st.dictionaries(st.text(max_size=300), JSON, max_size=5), max_size=4))
def test_whatever_was_inferred_is_a_schema_that_a_table_can_have(documents):
    found = infer(json.dumps(document).encode() for document in documents)
    if found["fields"]:  # else the load says that there is nothing to infer from
        assert checked(found) == found


def test_members_that_spark_does_not_tell_apart_are_one():
    assert ddl({"s": 1, "\u017f": 2, "S": 3, "t": 4}) == "struct<s:bigint,t:bigint>"


def test_what_cannot_be_read_has_a_column_that_no_member_is_named_like():
    assert malformed_column(["a", "b"]) == "_malformed"
    assert malformed_column(["_Malformed", "_malformed_"]) == "_malformed__"


def test_very_deep_and_very_wide_values_are_too():
    deep = {"a": 1}
    for _ in range(60):
        deep = {"a": [deep]}
    wide = {f"f{n}": {f"g{m}": 1 for m in range(30)} for n in range(100)}
    for document in (deep, wide):
        found = infer([json.dumps(document).encode()])
        assert checked(found) == found
