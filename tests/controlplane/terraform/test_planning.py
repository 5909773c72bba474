"""Values, plans and paths by themselves: no process, no site."""

from __future__ import annotations

from decimal import Decimal

import msgpack
import pytest

from controlplane.terraform.diagnostics import Diagnostic, Missing, path_message, path_of, refused
from controlplane.terraform.planning import changed, kept, planned, settled
from controlplane.terraform.schema import BOOL, NUMBER, SETTINGS, STRING, STRINGS, Attribute, networks
from controlplane.terraform.values import UNKNOWN, is_known, number, plain
from controlplane.terraform.wire import from_json, from_msgpack, to_msgpack

ID = Attribute("id", STRING, "", computed=True, settable=False)
NAME = Attribute("name", STRING, "", required=True, replaces=True)
RATE = Attribute("rate", NUMBER, "")
NETS = Attribute("nets", STRINGS, "", computed=True, canonical=networks)
MAP = Attribute("settings", SETTINGS, "", empty_is_null=True)
SECRET = Attribute("secret", STRING, "", write_only=True, sensitive=True)
NESTED = Attribute(
    "nested",
    STRING,
    "",
    computed=True,
    nested=(Attribute("on", BOOL, "", computed=True), Attribute("size", NUMBER, "")),
)
ALL = (ID, NAME, RATE, NETS, MAP, SECRET, NESTED)
NONE = dict.fromkeys(each.name for each in ALL)


def whole(**members):
    return {**NONE, **members}


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (whole(rate=5), {"rate": 5}),
        (whole(rate=Decimal("5.1")), {"rate": "5.1"}),
        (whole(nets=frozenset(("b", "a"))), {"nets": ["a", "b"]}),
        (whole(settings={"x": "1"}), {"settings": {"x": "1"}}),
        (whole(nested={"on": True, "size": UNKNOWN}), {"nested": {"on": True, "size": msgpack.ExtType(0, b"\0")}}),
        (whole(id=UNKNOWN), {"id": msgpack.ExtType(0, b"\0")}),
    ],
)
def test_values_go_there_and_back(value, wire):
    packed = to_msgpack(value, ALL)
    assert msgpack.unpackb(packed) == {**NONE, **wire}
    assert from_msgpack(packed, ALL) == value


def test_nothing_is_nothing():
    assert from_msgpack(b"", ALL) is None
    assert from_msgpack(to_msgpack(None, ALL), ALL) is None
    assert from_json(b"null", ALL) is None


def test_a_state_of_a_file_loses_what_is_no_more_and_has_null_for_what_is_new():
    assert from_json(b'{"name": "x", "rate": 5.1, "gone": 1}', ALL) == whole(name="x", rate=Decimal("5.1"))


def test_refinements_of_what_is_not_known_are_passed_over():
    refined = msgpack.packb({"name": msgpack.ExtType(12, msgpack.packb({1: False}))})
    assert from_msgpack(refined, ALL)["name"] is UNKNOWN


@pytest.mark.parametrize(
    ("value", "found"), [(5.1, Decimal("5.1")), ("5.10", Decimal("5.1")), (5.0, 5), ("60", 60), (10**20, 10**20)]
)
def test_numbers(value, found):
    assert number(value) == found
    assert type(number(value)) is type(found)


def test_what_is_sent_has_neither_nulls_nor_unknowns_within():
    assert plain({"a": None, "b": UNKNOWN, "c": Decimal("1.5"), "d": frozenset(("y", "x"))}) == {
        "c": 1.5,
        "d": ["x", "y"],
    }
    assert not is_known({"a": frozenset((UNKNOWN,))})
    assert is_known({"a": frozenset(("x",)), "b": None})


def test_of_a_new_one_only_the_service_knows_what_it_says():
    plan = planned(ALL, None, whole(name="x", secret="s", nested={"on": None, "size": 1}))
    assert plan.planned == whole(id=UNKNOWN, name="x", nets=UNKNOWN, nested={"on": UNKNOWN, "size": 1})
    assert plan.replaced == ()


def test_another_spelling_is_planned_as_what_is():
    prior = whole(id="1", name="x", nets=frozenset(("10.0.0.1/32",)), rate=Decimal("5.09999999"), settings=None)
    proposed = {**prior, "nets": frozenset(("10.0.0.1",)), "rate": Decimal("5.1"), "settings": {}}
    plan = planned(ALL, prior, proposed)
    assert plan.planned == {**prior, "settings": {}}
    assert changed(ALL, prior, plan.planned, "nets", "rate", "settings") == {}


def test_a_name_that_is_another_replaces_and_a_rate_does_not():
    prior = whole(id="1", name="x", rate=1)
    plan = planned(ALL, prior, {**prior, "name": "y", "rate": 2})
    assert plan.replaced == (("name",),)
    assert changed(ALL, prior, plan.planned, "name", "rate", "nets") == {"name": "y", "rate": 2}
    assert planned(ALL, prior, {**prior, "rate": 2}).replaced == ()


def test_whole_numbers_that_are_near_are_others():
    prior = whole(id="1", rate=10_000_000)
    assert planned(ALL, prior, {**prior, "rate": 10_000_001}).planned["rate"] == 10_000_001


def test_what_is_within_is_planned_by_its_members():
    prior = whole(nested={"on": True, "size": 1})
    plan = planned(ALL, prior, whole(nested={"on": True, "size": 2})).planned
    assert plan["nested"] == {"on": True, "size": 2}
    fresh = planned(ALL, whole(nested=None), whole(nested={"on": None, "size": 2})).planned
    assert fresh["nested"] == {"on": UNKNOWN, "size": 2}


def test_an_answer_is_told_in_the_words_of_the_plan():
    plan = whole(id=UNKNOWN, nets=frozenset(("10.0.0.1",)), nested={"on": UNKNOWN, "size": Decimal("1.1")})
    answer = whole(
        id="1", nets=frozenset(("10.0.0.1/32",)), settings={}, nested={"on": True, "size": Decimal("1.1000001")}
    )
    assert settled(ALL, answer, plan) == whole(
        id="1", nets=plan["nets"], settings=None, nested={"on": True, "size": Decimal("1.1")}
    )


def test_what_only_the_service_says_stays_as_it_was_planned_until_the_next_look():
    plan, answer = whole(id="1", rate=1), whole(id="2", rate=3)
    assert kept(ALL, answer, plan) == whole(id="1", rate=3)
    assert settled(ALL, answer, plan)["id"] == "2"


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("name", ("name",)),
        ("nested.size", ("nested", "size")),
        ("nested.other", ("nested",)),
        ("nets.3", ("nets",)),
        ("settings.retention.ms", ("settings", "[retention.ms]")),
        ("settings", ("settings",)),
        ("elsewhere", ()),
        ("", ()),
    ],
)
def test_a_field_of_rest_is_an_attribute(field, path):
    assert path_of(ALL, field) == path
    steps = [(each.attribute_name, each.element_key_string) for each in path_message(path).steps]
    assert steps == [("", each[1:-1]) if each.startswith("[") else (each, "") for each in path]


def test_a_refusal_is_one_diagnostic_for_each_field_or_one_at_what_its_code_is_about():
    problem = {
        "title": "No",
        "detail": "both",
        "code": "invalid",
        "errors": [{"field": "name", "detail": "a"}, {"field": "rate"}],
    }
    assert refused(400, problem).at(ALL, {}) == (Diagnostic("No", "a", ("name",)), Diagnostic("No", "", ("rate",)))
    full = {"title": "Full", "detail": "no room", "code": "cluster_full", "exceeded": [{"resource": "rate"}]}
    assert refused(409, full).at(ALL, {}) == (Diagnostic("Full", "no room", ("rate",)),)
    assert refused(409, {"title": "Taken", "code": "exists"}).at(ALL, {"exists": "name"}) == (
        Diagnostic("Taken", "", ("name",)),
    )
    assert refused(418, {}).at(ALL, {}) == (Diagnostic("The service answers 418"),)


@pytest.mark.parametrize(("status", "kind"), [(404, True), (410, True), (403, False), (409, False)])
def test_what_is_missing_is_an_error_of_its_own(status, kind):
    assert isinstance(refused(status, {}), Missing) is kind
