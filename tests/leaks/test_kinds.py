"""Every field of what a tenant may ask has a kind, and no entry of the tables is about a field that is not there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataplane.handlers.table import served
from dataplane.protocol.schema import Wire, message, string, wires
from tests.leaks import kinds
from tests.leaks.asking import VALUES, VARIANTS, Maker, Variant, fields_of, variants
from tests.leaks.comparing import CHOSEN
from tests.leaks.kinds import Kind, kind_of
from tests.leaks.planting import Facts, Numbers

ROWS = served(tenant=True)


def fields(cls: type) -> Iterator[tuple[type, str, Wire]]:
    for name, wire, _ in wires(cls):
        yield cls, name, wire
        if isinstance(wire.element, type):
            yield from fields(wire.element)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.api.key.name)
def test_every_field_of_a_tenants_request_has_a_kind(row):
    for cls, name, wire in fields(row.api.request):
        kind_of(cls, name, wire)


def test_a_field_that_nobody_has_thought_of_has_none():
    @message(api_key=999, versions="0", flexible="0+")
    class DescribeShelvesRequest:
        shelf_name: str = string()

    with pytest.raises(LookupError, match=r"DescribeShelvesRequest\.shelf_name has no kind"):
        list(fields_of(DescribeShelvesRequest, 0, Variant()))


def test_tables_name_what_is_there():
    asked = {(cls.__name__, name) for row in ROWS for cls, name, _ in fields(row.api.request)}
    told = {(cls.__name__, name) for row in ROWS for cls, name, _ in fields(row.api.response)}
    named = {*kinds.BY_FIELD, *kinds.NOTHING_BY_FIELD, *VALUES}
    named |= {place for ways in VARIANTS.values() for way in ways for place in (*way.values, *way.kinds)}
    assert named - asked == set()
    assert {*kinds.BY_NAME, *kinds.NOTHING} - {name for _, name in asked} == set()
    assert set(CHOSEN) - told == set()
    assert set(VARIANTS) - {row.api.request.__name__ for row in ROWS} == set()


def test_every_entity_of_a_declaration_is_asked_about_in_every_version():
    """A variant that leaves a field out may not be the only one."""
    for row in ROWS:
        for version in range(row.low, row.high + 1):
            reached = {
                path
                for way in variants(row.api.request)
                if version >= way.low
                for path, kind in fields_of(row.api.request, version, way)
            }
            everything = {path for path, kind in fields_of(row.api.request, version, Variant())}
            assert everything - reached == set(), f"{row.api.key.name} v{version}"


def test_only_what_depends_on_a_type_is_left_to_the_variant():
    for row in ROWS:
        for way in variants(row.api.request):
            kinds_of_way = {kind for _, kind in fields_of(row.api.request, row.high, way)}
            assert Kind.BY_VARIANT not in kinds_of_way, f"{row.api.key.name} {way.name}"


def test_one_field_is_replaced_and_nothing_else():
    row = next(row for row in ROWS if row.api.key.name == "OFFSET_FETCH")
    make = Maker(facts(), 8, Variant())
    request = make.request(row.api.request, ("groups", "topics", "name"), "elsewhere")
    own = make.request(row.api.request)
    assert request.groups[0].topics[0].name == "elsewhere"
    assert own.groups[0].topics[0].name == "t"
    assert request.groups[0].group_id == own.groups[0].group_id == "g"


def facts():
    return Facts("own", "ins-aaaabbbb", (1,), "t", "g", "shared", "c", Numbers(1, "2", 3.0, "10.0.0.1", 4096))
