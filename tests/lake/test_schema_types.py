"""What a schema that somebody else has written may say, before Spark hears of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.lake.errors import LakeError, RequestError
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
            {"type": st.just("map"), "keyType": inner, "valueType": inner, "valueContainsNull": st.booleans()}
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
