"""The palette: places by a part of their names, of one's own organisation alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.urls import reverse

import controlplane.urls  # noqa: F401  # it knows the converters that the routes of the console use
from controlplane.console import palette
from controlplane.console import urls as pages
from controlplane.console.places import ORGANISATION
from controlplane.history.models import LagGroup, LagMinutes
from controlplane.instances.models import Instance, InstanceState
from controlplane.topics import services as topics
from tests.controlplane.test_custom_roles import given_to, role_of

from .conftest import text_of

HTMX = {"headers": {"HX-Request": "true"}}


def now_s():
    return int(datetime.now(UTC).timestamp()) // 60 * 60


def group(instance_id, name, seen_s=None):
    row = LagGroup.objects.create(instance=instance_id, digest=name[:32], name=name)
    at = now_s() if seen_s is None else seen_s
    LagMinutes.objects.create(group=row.pk, at=at, until=at, late_s=0, messages=0, oldest_ms=None)


@pytest.fixture
def place(alice, instance):
    for name in ("orders", "orders.archive", "payments"):
        topics.topic_create(
            organisation=alice.organisation, actor="a", instance_id=instance.id, name=name, partitions=1
        )
    group(instance.id, "orders-reader")
    group(instance.id, "orders-of-old", now_s() - 3600)
    group("ins-stranger1", "orders-secret")
    return instance


def hits(visitor, text, **query):
    page = visitor.get("palette", data={"q": text, **query}, **HTMX)
    assert page.status_code == 200
    return re.findall(r'role="option"[^>]* href="([^"]+)"', page.content.decode())


def test_topics_groups_instances_and_pages_are_found_by_a_part_of_the_name(at_alice, place):
    one = at_alice.address(f"instances/{place.id}")
    assert hits(at_alice, "ORD") == [
        f"{one}/topics/orders",
        f"{one}/topics/orders.archive",
        f"{one}/groups/orders-reader",
    ]
    assert hits(at_alice, "arch ord") == [f"{one}/topics/orders.archive"]
    assert hits(at_alice, place.name)[0] == one
    assert hits(at_alice, "bills") == [at_alice.address("bills")]


def test_with_nothing_typed_there_are_pages_and_instances(at_alice, place):
    found = hits(at_alice, "")
    assert at_alice.address("operations") in found
    assert at_alice.address(f"instances/{place.id}") in found
    assert not [each for each in found if "orders" in each]


def test_pages_of_the_instance_where_somebody_is_come_first(at_alice, place):
    one = at_alice.address(f"instances/{place.id}")
    assert hits(at_alice, "topics", instance=place.id)[0] == f"{one}/topics"
    assert hits(at_alice, "quota") == []
    assert hits(at_alice, "quota", instance=place.id) == [
        f"{one}/{page}" for page in ("quota", "quota-report", "throttle-rules")
    ]


def test_nothing_of_anothers_is_found(at_charlie, place):
    assert hits(at_charlie, "orders", instance=place.id) == []
    assert hits(at_charlie, place.id) == []
    assert at_charlie.client.get(f"/{place.organisation_id}/palette").status_code == 404


def test_a_cluster_that_is_away_hides_only_its_topics(at_alice, place, tree):
    tree.away = True
    assert [each.rpartition("/")[2] for each in hits(at_alice, "orders")] == ["orders-reader"]


def test_and_it_is_said_where_nothing_else_fits(at_alice, place, tree):
    tree.away = True
    for path, text in (("palette", "nothing of this name"), ("search", "nothing of this name")):
        shown = text_of(at_alice.get(path, data={"q": text}, **(HTMX if path == "palette" else {})))
        assert "Not everything was looked through: a cluster is away" in shown
        assert "Nothing fits." not in shown
    tree.away = False
    assert "Nothing fits." in text_of(at_alice.get("palette", data={"q": "nothing of this name"}, **HTMX))


def test_of_an_instance_that_does_not_run_there_are_no_topics(at_alice, place):
    Instance.objects.unscoped("a test").filter(pk=place.pk).update(state=InstanceState.ISOLATED)
    assert hits(at_alice, "orders") == []
    assert hits(at_alice, place.name) == [at_alice.address(f"instances/{place.id}")]


def test_what_is_typed_is_no_markup_and_too_much_is_cut_off(at_alice, place):
    page = at_alice.get("palette", data={"q": "<script>alert(1)</script>" * 9})
    assert b"<script>alert" not in page.content
    assert "Nothing fits." in text_of(page)


def test_without_scripts_it_is_a_page(at_alice, place):
    text = text_of(at_alice.get("palette", data={"q": "orders"}))
    assert "Topics orders events orders.archive events" in text
    assert "Groups orders-reader events" in text


def test_every_page_of_a_tenant_has_it(at_alice, place):
    page = at_alice.get(f"instances/{place.id}/topics").content.decode()
    assert 'id="palette-text"' in page
    assert f'hx-vals=\'{{"instance": "{place.id}"}}\'' in page


# --- roles -------------------------------------------------------------------------------------------------------------------


def test_a_role_finds_the_pages_that_are_open_to_it_and_no_others(alice, bob, at_bob, place):
    given_to(alice, bob, role_of(alice, scopes={"instances": "look"}))
    for text in ("deletion", "roles", "members", "bills", "audit log", "service accounts", "lake loads", "acls"):
        assert hits(at_bob, text, instance=place.id) == [], text
    assert hits(at_bob, "api keys") == [at_bob.address("keys")]
    assert hits(at_bob, "overview", instance=place.id) == [at_bob.address(f"instances/{place.id}")]


@pytest.mark.parametrize(
    "scopes",
    [
        {"instances": "look"},
        {"read": "look"},
        {"read": "look", "billing": "look"},
        {"instances": "change", "access": "look"},
    ],
)
def test_whatever_a_role_finds_is_open_to_it(alice, bob, at_bob, place, admin, flow_master, scopes):
    given_to(alice, bob, role_of(alice, scopes=scopes))
    found = {
        address
        for _, _, title in (*palette.PAGES, *palette.INSTANCE_PAGES)
        for address in hits(at_bob, title, instance=place.id)
    }
    assert at_bob.address("instances") in found
    for address in found:
        assert at_bob.client.get(address).status_code == 200, address


def test_a_role_of_some_instances_finds_nothing_of_the_whole(alice, bob, at_bob, place):
    given_to(alice, bob, role_of(alice, scopes={"instances": "look", "billing": "look"}, instances=[place.id]))
    assert hits(at_bob, "bills") == []
    assert hits(at_bob, "bill", instance=place.id) == [at_bob.address(f"instances/{place.id}/bill")]


def test_who_finds_names_of_instances_alone_has_no_palette(alice, bob, at_bob, place):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}))
    page = at_bob.get("instance-names")
    assert (page.status_code, 'id="palette"' in page.content.decode()) == (200, False)
    assert at_bob.get("palette").status_code == 403
    assert f'href="{at_bob.address("search")}"' in page.content.decode(), (
        "but the page of results, which the menu leads to"
    )


@pytest.mark.parametrize("scope", ["billing", "members", "alarms"])
def test_the_menu_leads_every_role_to_the_search(alice, bob, at_bob, place, scope):
    given_to(alice, bob, role_of(alice, scopes={scope: "look"}))
    assert f'href="{at_bob.address("search")}"' in at_bob.get("keys").content.decode()
    assert at_bob.get("search", data={"q": "orders"}).status_code == 200


@pytest.mark.parametrize("path", ["palette", "search"])
def test_an_action_on_what_a_role_does_not_find_is_passed_over(alice, bob, at_bob, place, path):
    given_to(alice, bob, role_of(alice, scopes={"instances": "look", "messages": "look"}))
    page = at_bob.get(path, data={"q": "messages of orders"})
    assert (page.status_code, "Messages of orders" in text_of(page)) == (200, False)


def test_names_are_shown_on_one_line_with_what_is_not_seen(at_alice, place):
    group(place.id, "orders\nsecond\x1b")
    for path in ("palette", "search"):
        text = at_alice.get(path, data={"q": "reset offsets of second"}).content.decode()
        assert "Reset offsets of orders\\nsecond\\x1b" in text
        assert "orders\nsecond" not in text
        assert "orders\\nsecond\\x1b" in at_alice.get(path, data={"q": "second"}).content.decode()


def test_deletion_is_found_by_owners_alone(at_alice, at_bob, at_viewer):
    assert hits(at_alice, "deletion") == [at_alice.address("deletion")]
    for visitor in (at_bob, at_viewer):
        assert hits(visitor, "deletion") == []
        assert hits(visitor, "settings") == [visitor.address("settings")]


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("storage", "settings"),
        ("price", "bill"),
        ("webhook", "receivers"),
        ("messages", "topics"),
        ("prepaid", "prepaid"),
        ("config", "config"),
        ("elastic", "elastic-bandwidth"),
        ("policies", "policies"),
        ("events", "timeline"),
        ("new alarm", "new-alarm"),
        ("routes", "access"),
    ],
)
def test_pages_are_found_by_what_people_call_them(at_alice, place, text, page):
    found = hits(at_alice, text, instance=place.id)
    assert at_alice.address(f"instances/{place.id}/{page}") in found
    for address in found:
        assert at_alice.client.get(address).status_code == 200, address


def test_pages_of_the_organisation_are_as_well(at_alice):
    assert hits(at_alice, "plan") == [at_alice.address("bills"), reverse("console:prices")]
    assert hits(at_alice, "statement") == [at_alice.address("statement")]
    assert at_alice.address("instances/new") in hits(at_alice, "price")


def test_whose_title_fits_comes_first(at_alice, place):
    assert hits(at_alice, "bill", instance=place.id)[0] == at_alice.address(f"instances/{place.id}/bill")
    assert set(palette.SYNONYMS) <= {name for name, _, _ in (*palette.PAGES, *palette.INSTANCE_PAGES)}


def test_each_page_that_is_found_is_a_page_of_the_console():
    known = {route.name: str(route.pattern).removeprefix(ORGANISATION) for route in pages.urlpatterns}
    for name, address, _ in palette.PAGES:
        assert known[name] == address
    for name, rest, _ in palette.INSTANCE_PAGES:
        assert known[name] == f"instances/<id:instance_id>{rest}"
