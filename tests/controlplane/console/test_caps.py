"""Caps and capacity in the console: a tenant's page, operators' pages, and forms that refuse, or ask for a price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client

from controlplane.accounts import services as accounts
from controlplane.admission.models import ClusterRoom
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance

from .conftest import text_of

SIZES = {"name": "second", "bandwidth_mib_per_s": "5", "storage_gib": "10", "partitions": "60", "whitelist": ""}
DEAR = {**SIZES, "bandwidth_mib_per_s": "240", "storage_gib": "1000", "partitions": "1700"}


@pytest.fixture
def at_staff(db):
    user, _ = accounts.admin_ensure(email="admin@example.com", password=None)
    client = Client()
    client.force_login(user)
    return client


def count():
    return Instance.objects.unscoped("a test").count()


def test_a_tenant_reads_caps_and_use_and_how_to_have_more(at_viewer, instance):
    text = text_of(at_viewer.get("caps"))
    assert "Bandwidth 5 MiB/s 1 % 400 MiB/s 400 MiB/s" in text
    assert "CNY 1 160.70 a month" in text
    assert "To have a cap raised, ask the operators of this service" in text
    assert at_viewer.organisation.id in text


def test_what_is_beyond_a_cap_is_refused_in_words(at_alice, instance):
    page = at_alice.post("instances/new", SIZES | {"bandwidth_mib_per_s": "90000"})
    assert page.status_code == 422
    text = text_of(page)
    assert "Bandwidth: the organisation may have 400 MiB/s (in use: 5 MiB/s; asked for: 90 000 MiB/s more)" in text
    assert "To have a cap raised, ask the operators of this service" in text
    assert count() == 1


def test_a_change_too(at_alice, instance):
    page = at_alice.post(f"instances/{instance.id}/settings", SIZES | {"bandwidth_mib_per_s": "401"})
    assert "(in use: 5 MiB/s; asked for: 396 MiB/s more)" in text_of(page)
    instance.refresh_from_db()
    assert instance.bandwidth_mib_per_s == 5


def test_the_box_for_a_price_comes_with_the_price(at_alice, instance):
    assert "confirm_price" not in at_alice.get("instances/new").content.decode()
    page = at_alice.post("instances/new", DEAR)
    assert (page.status_code, count()) == (422, 1)
    assert "The instance costs CNY 7 789.10 a month, which is more than 5 000.00." in text_of(page)
    assert "ask again" not in text_of(page)
    assert 'name="confirm_price"' in page.content.decode()
    assert at_alice.post("instances/new", DEAR | {"confirm_price": "on"}).status_code == 302
    assert count() == 2


def test_the_box_for_full_storage_stays_while_the_price_is_confirmed(at_alice, instance, flow_master, settings):
    """Or two boxes that are needed at once would take turns."""
    flow_master.answers[instance.id] = {"storage_used_bytes": 6 * 2**30, "storage_full": False}
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, price_confirmed_above="1")
    sizes = DEAR | {"storage_gib": "5"}
    path = f"instances/{instance.id}/settings"
    assert 'name="accept_full_storage"' in at_alice.post(path, sizes).content.decode()
    page = at_alice.post(path, sizes | {"accept_full_storage": "on"}).content.decode()
    assert 'name="accept_full_storage"' in page
    assert 'name="confirm_price"' in page
    both = sizes | {"accept_full_storage": "on", "confirm_price": "on"}
    assert at_alice.post(path, both).status_code == 302


def test_an_operator_raises_a_cap_on_a_page(at_staff, at_alice, instance):
    path = f"/fleet/organisations/{at_alice.organisation.id}"
    now = {"instances": "20", "bandwidth_mib_per_s": "400", "storage_gib": "4000", "partitions": "6000"}
    now["price_per_month"] = "30000"
    assert at_staff.post(path, now | {"instances": "40"}).status_code == 422  # no reason
    assert at_staff.post(path, now | {"instances": "40", "reason": "ticket 7"}).status_code == 302
    entry = AuditEntry.objects.for_organisation(at_alice.organisation).get(action="organisation.caps")
    assert entry.detail == {"caps": {"instances": {"from": 20, "to": 40}}, "reason": "ticket 7"}
    text = text_of(at_staff.get(path))
    assert "Instances: 20 → 40 admin@example.com ticket 7" in text
    assert "40" in text_of(at_alice.get("caps"))


def test_an_operator_sets_what_a_broker_has_on_a_page(at_staff, at_alice, instance):
    room = {"resource": "bandwidth_mib_per_s", "per_broker": "2", "overcommit": "1.5", "reason": "measured"}
    assert at_staff.post("/fleet/capacity", room).status_code == 302
    text = text_of(at_staff.get("/fleet/capacity"))
    assert "Bandwidth 2 1.5 9 MiB/s 5 MiB/s 56 %" in text
    assert "admin@example.com measured" in text
    assert ClusterRoom.objects.get().resource == "bandwidth_mib_per_s"
    assert "Bandwidth: the cluster has 9 MiB/s (in use: 5 MiB/s; asked for: 5 MiB/s more)." in text_of(
        at_alice.post("instances/new", SIZES)
    )
    page = at_staff.post("/fleet/capacity", room | {"overcommit": "0", "reason": "x"})
    assert page.status_code == 422
    assert "Must be at least 0.1" in text_of(page)


def test_organisations_are_searched_by_name(at_staff, at_alice, at_charlie, instance):
    text = text_of(at_staff.get("/fleet/capacity?q=charlie", headers={"HX-Request": "true"}))
    assert "charlie" in text
    assert "alice" not in text
