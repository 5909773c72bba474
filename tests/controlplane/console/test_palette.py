"""The palette: places by a part of their names, of one's own organisation alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from controlplane.history.models import LagGroup, LagMinutes
from controlplane.instances.models import Instance, InstanceState
from controlplane.topics import services as topics

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
    assert hits(at_alice, "quota", instance=place.id) == [f"{one}/quota"]


def test_nothing_of_anothers_is_found(at_charlie, place):
    assert hits(at_charlie, "orders", instance=place.id) == []
    assert hits(at_charlie, place.id) == []
    assert at_charlie.client.get(f"/{place.organisation_id}/palette").status_code == 404


def test_a_cluster_that_is_away_hides_only_its_topics(at_alice, place, tree):
    tree.away = True
    assert [each.rpartition("/")[2] for each in hits(at_alice, "orders")] == ["orders-reader"]


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
