"""The page of results, actions of the palette, and what operators find."""

from __future__ import annotations

import re

import pytest

from controlplane.console.palette import ACTIONS, FLEET_PAGES, Action
from controlplane.core.models import Operation
from controlplane.tenants.models import Organisation
from tests.controlplane.rows import LONG_AGO
from tests.controlplane.search.conftest import zoo  # noqa: F401  # a fixture
from tests.controlplane.test_custom_roles import given_to, role_of

from .conftest import text_of
from .test_palette import HTMX, hits


def linked(page):
    return re.findall(r'<li><a href="([^"]+)">', page.content.decode().partition("<main")[2])


def test_results_are_a_page_without_scripts(at_alice, zoo):  # noqa: F811
    text = text_of(at_alice.get("search", data={"q": "zebra"}))
    assert "Topics zebra-events zebra other zebra" in text
    assert "Groups zebra-readers zebra Those that were seen in the last ten minutes." in text
    assert "Invitations zebra@example.com" in text


def test_one_kind_is_shown_alone(at_alice, zoo):  # noqa: F811
    page = at_alice.get("search", data={"q": "zebra", "kind": "topic"})
    one = at_alice.address(f"instances/{zoo.id}")
    assert linked(page) == [f"{one}/topics/zebra-events", f"{one}/topics/other"]
    assert at_alice.get("search", data={"q": "zebra", "kind": "nothing"}).status_code == 404


@pytest.mark.parametrize("text", ["x" * 101, "a\x00b", "a\x1bb"])
def test_what_cannot_be_looked_for_is_said_beside_the_box(at_alice, zoo, text):  # noqa: F811
    page = at_alice.get("search", data={"q": text})
    assert (page.status_code, "This cannot be looked for: must " in text_of(page)) == (422, True)


def test_with_nothing_typed_it_is_a_box(at_alice, zoo):  # noqa: F811
    assert linked(at_alice.get("search")) == []
    assert "Nothing fits." in text_of(at_alice.get("search", data={"q": "no such thing"}))


def test_what_is_typed_is_no_markup(at_alice, zoo):  # noqa: F811
    assert b"<script>alert" not in at_alice.get("search", data={"q": "<script>alert(1)</script>"}).content


def test_a_stranger_finds_nothing(at_charlie, zoo):  # noqa: F811
    assert linked(at_charlie.get("search", data={"q": "zebra"})) == []
    assert at_charlie.client.get(f"/{zoo.organisation_id}/search", {"q": "zebra"}).status_code == 404


def test_whatever_is_found_is_a_page(at_alice, zoo, flow_master):  # noqa: F811
    for text in ("zebra", "2026-03", "alice", "10.7.3.9", "default", "sdk", zoo.id):
        for address in linked(at_alice.get("search", data={"q": text})):
            assert at_alice.client.get(address.replace("&amp;", "&")).status_code == 200, address


@pytest.mark.parametrize("scopes", [{"topics": "look"}, {"billing": "look"}, {"read": "look"}, {"members": "look"}])
def test_whatever_a_role_finds_is_open_to_it(alice, bob, at_bob, zoo, flow_master, scopes):  # noqa: F811
    given_to(alice, bob, role_of(alice, scopes=scopes))
    for text in ("zebra", "2026-03", "alice", zoo.id, "delete zebra", "messages of zebra"):
        for address in linked(at_bob.get("search", data={"q": text})):
            assert at_bob.client.get(address.replace("&amp;", "&")).status_code == 200, address
    closed = at_bob.get("search", data={"q": "zebra", "kind": "access_key"})
    assert closed.status_code == 403


# --- actions ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("reset offsets of billing", "billing"),
        ("RESET billing", "billing"),
        ("res off bill", "bill"),
        ("reset offsets", ""),
        ("reset", None),
        ("re billing", None),
        ("offsets of billing", None),
        ("billing", None),
        ("", None),
    ],
)
def test_an_action_is_known_by_its_words(text, rest):
    assert Action("Reset offsets of {name}", "group", "group_reset", "topics").rest_of(text) == rest


def test_actions_are_offered_for_what_fits(at_alice, at_viewer, zoo):  # noqa: F811
    one = at_alice.address(f"instances/{zoo.id}")
    assert f"{one}/group-offsets/zebra-readers" in hits(at_alice, "reset offsets of zebra")
    assert f"{one}/topics/zebra-events/messages" in hits(at_alice, "messages of zebra")
    assert f"{one}/new-topic" in hits(at_alice, "new topic in zebra")
    assert "Reset offsets of zebra-readers" in text_of(at_alice.get("search", data={"q": "reset zebra"}))
    assert hits(at_viewer, "reset offsets of zebra") == []
    for text in ("delete topic zebra", "send zebra", "new topic zebra", "new alarm zebra", "resize zebra"):
        for address in hits(at_alice, text):
            assert at_alice.client.get(address).status_code == 200, address


def test_who_may_look_alone_is_offered_nothing_that_changes(alice, bob, at_bob, zoo):  # noqa: F811
    given_to(alice, bob, role_of(alice, scopes={"instances": "look", "topics": "look"}))
    assert hits(at_bob, "reset offsets of zebra") == []
    assert hits(at_bob, "delete topic zebra") == []
    assert len({each.words for each in ACTIONS}) == len(ACTIONS)


def test_the_palette_leads_to_all_results(at_alice, zoo):  # noqa: F811
    page = at_alice.get("operations").content.decode()
    assert f'id="palette-all" href="{at_alice.address("search")}"' in page


# --- operators --------------------------------------------------------------------------------------------------------------


def of_fleet(client, text):
    page = client.get("/fleet/search", {"q": text}, **HTMX)
    assert page.status_code == 200
    return re.findall(r'role="option"[^>]* href="([^"]+)"', page.content.decode())


def test_operators_find_everybodys_things(at_staff, zoo, charlie, admin, flow_master):  # noqa: F811
    operation = Operation.objects.for_organisation(zoo.organisation).first()
    assert of_fleet(at_staff, "zebra") == [f"/fleet/instances/{zoo.id}"]
    assert f"/fleet/organisations/{charlie.organisation.id}" in of_fleet(at_staff, "charlie")
    assert f"/fleet/organisations/{zoo.organisation_id}" in of_fleet(at_staff, zoo.organisation_id)
    assert of_fleet(at_staff, operation.id) == [f"/fleet/instances/{operation.target}"]
    assert "/fleet/clusters/default/brokers/1" in of_fleet(at_staff, "broker 1")
    assert "/fleet/clusters/default" in of_fleet(at_staff, "default")
    assert "/fleet/jobs?job=usage" in of_fleet(at_staff, "usage")
    assert of_fleet(at_staff, "heat") == ["/fleet/heat"]
    for text in ("zebra", "broker", "charlie", "default", "usage"):
        for address in of_fleet(at_staff, text):
            assert at_staff.get(address).status_code == 200, address


def test_where_there_are_more_than_are_shown_it_is_said(at_staff, zoo):  # noqa: F811
    Organisation.objects.bulk_create(
        [Organisation(id=f"org-herd{number:04}", name=f"herd {number}", created_at=LONG_AGO) for number in range(12)]
    )
    said = "There are more: type a longer part of the name."
    for query in ({}, HTMX):
        assert said in text_of(at_staff.get("/fleet/search", {"q": "herd"}, **query))
        assert said not in text_of(at_staff.get("/fleet/search", {"q": "charlie"}, **query))


def test_with_nothing_typed_operators_have_their_pages(at_staff, zoo):  # noqa: F811
    assert of_fleet(at_staff, "") == [f"/{each.replace('_', '/', 1).replace('_', '-')}" for each, _, _ in FLEET_PAGES]


def test_their_page_needs_no_scripts(at_staff, zoo):  # noqa: F811
    assert f"/fleet/instances/{zoo.id}" in linked(at_staff.get("/fleet/search", {"q": "zebra"}))
    assert at_staff.get("/fleet/search", {"q": "x" * 101}).status_code == 422
    assert linked(at_staff.get("/fleet/search")) == []
    page = at_staff.get("/fleet/search").content.decode()
    assert 'id="palette-text"' in page
    assert 'hx-get="/fleet/search"' in page


def test_nobody_else_learns_of_it(at_alice, zoo):  # noqa: F811
    for query in ({}, {"q": "zebra"}):
        assert at_alice.client.get("/fleet/search", query).status_code == 404
