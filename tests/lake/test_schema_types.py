"""What a schema that somebody else has written may say, before Spark hears of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.lake.errors import LakeError, RequestError, SchemaError
from controlplane.lake.manifest import Schema
from controlplane.lake.schema_types import DEEPEST, MOST_FIELDS, SIMPLE, checked

UDT = {"type": "udt", "class": None, "pyClass": "os.nope", "sqlType": "string", "serializedClass": "gASVAAAA"}


def struct(types):
    """Of these types, in Spark's JSON."""
    fields = [{"name": f"f{n}", "type": each, "nullable": n % 2 == 0, "metadata": {}} for n, each in enumerate(types)]
    return {"type": "struct", "fields": fields}


TYPES = st.recursive(
    st.sampled_from([*sorted(SIMPLE), "decimal(38,18)", "decimal(1,0)"]),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "elementType": inner, "containsNull": st.booleans()}),
        st.fixed_dictionaries(
            {
                "type": st.just("map"),
                "keyType": st.just("string"),
                "valueType": inner,
                "valueContainsNull": st.booleans(),
            }
        ),
        st.lists(inner, min_size=1, max_size=4).map(struct),
    ),
    max_leaves=12,
)


def field(kind, name="a", **more):
    return {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}, **more}]}


@given(st.lists(TYPES, min_size=1, max_size=4).map(struct))
def test_what_is_made_of_known_types_stays_as_it_is(found):
    assert checked(found) == found


@pytest.mark.parametrize(
    "found",
    [
        UDT, field(UDT), field({"type": "array", "elementType": UDT}), field({"type": "struct", "fields": [UDT]}),
        field({"type": "map", "keyType": "string", "valueType": UDT}),
        field("udt"), field("decimal(39,1)"), field("decimal(3,5)"), field("x\x00y"), field(7), field(None), field([]),
        field("string", name=""), field("string", name="a\x00b"), field("string", name=5), field("string", name="x" * 256),
        "string", 7, None, [], {}, {"type": "struct"}, {"type": "struct", "fields": 5},
        {"type": "struct", "fields": [5]}, {"fields": 5}, {"type": 7},
    ],
)  # fmt: skip
def test_anything_else_is_refused_in_a_sentence(found):
    with pytest.raises(RequestError):
        checked(found)


def test_metadata_in_which_expressions_can_stand_is_left_out():
    found = checked(field("string", metadata={"delta.generationExpression": "java_method('a', 'b')"}, more=1))
    assert found == field("string")


def test_depth_and_number_of_fields_have_a_bound():
    deep = "string"
    for _ in range(DEEPEST + 1):
        deep = {"type": "array", "elementType": deep}
    with pytest.raises(LakeError):
        checked(field(deep))
    wide = {"type": "struct", "fields": [{"name": f"f{n}", "type": "string"} for n in range(MOST_FIELDS + 1)]}
    with pytest.raises(LakeError):
        checked(wide)


def test_a_manifest_s_schema_is_looked_at_as_well():
    with pytest.raises(RequestError):
        Schema("given", field(UDT))


def of_names(*names):
    return {"type": "struct", "fields": [{"name": name, "type": "long"} for name in names]}


def a_map(key):
    return {"type": "map", "keyType": key, "valueType": "string"}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (field(a_map("integer")), "the map a of the schema must have keys of STRING"),
        (field({"type": "array", "elementType": field(a_map("binary"), "b")}), "the map a.b of the schema"),
        (field(a_map(a_map("string"))), "the map a of the schema"),
        (of_names("a", "b", "a"), "the schema has the field a twice"),
        (of_names("id", "ID"), "the fields id and ID of the schema are one to Spark"),
        (field(of_names("id", "Id"), "s"), "the fields s.id and s.Id of the schema"),
        (
            field({"type": "map", "keyType": "string", "valueType": of_names("id", "Id")}, "m"),
            "the fields m.id and m.Id",
        ),
        (of_names("\u017f", "s"), "the fields \u017f and s"),
        (of_names("K", "k"), "the fields K and k"),
        (of_names("\u0130", "i\u0307"), "the fields \u0130 and i\u0307"),
        (of_names("\u0131", "i"), "the fields \u0131 and i"),
        (of_names("\u03c3", "\u03c2"), "the fields \u03c3 and \u03c2"),
        (of_names(), "the schema has no field"),
        (field(of_names()), "the struct a of the schema must have a field"),
        (field({"type": "array", "elementType": of_names()}), "the struct a of the schema"),
        (of_names("a b"), "the field a b of the schema has a space or one of ,;{}()= in its name"),
        (field(of_names("a=b"), "s"), "the field s.a=b of the schema"),
    ],
)
def test_what_spark_or_delta_would_refuse_names_the_field(found, said):
    with pytest.raises(SchemaError) as caught:
        checked(found)
    assert str(caught.value).startswith(said)


def test_names_that_spark_tells_apart_stay():
    names = ("ß", "SS", "a.b", "a`b", "ä", "a", "_malformed", "größe")
    assert [each["name"] for each in checked(of_names(*names))["fields"]] == list(names)


def test_a_field_deep_in_a_schema_is_named_in_a_short_sentence():
    found = of_names()
    for _ in range(8):
        found = field(found, "n" * 200)
    with pytest.raises(SchemaError) as caught:
        checked(found)
    assert len(str(caught.value)) < 200
