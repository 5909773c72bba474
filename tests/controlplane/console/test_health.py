"""Health in the console: it stands where "Running" stood, on the list, the overview and the fleet, and follows by itself."""

from __future__ import annotations

import pytest

from controlplane.health import services

from .conftest import text_of
from .test_instance_pages import flowing

GIB = 2**30


@pytest.fixture
def full(instance, flow_master):
    flow_master.answers[instance.id] = flowing() | {"storage_used_bytes": 10 * GIB, "storage_full": True}
    return flow_master.answers


def test_a_well_instance_is_healthy_on_the_list_and_the_overview(at_alice, instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    for path in ("instances", f"instances/{instance.id}"):
        text = text_of(at_alice.get(path))
        assert "Healthy" in text
        assert "Running" not in text


@pytest.mark.parametrize("path", ["instances", "instances/{id}", "instances/{id}/quota"])
def test_full_storage_is_told_before_anything_else(at_alice, instance, full, path):
    page = at_alice.get(path.format(id=instance.id))
    text = text_of(page)
    assert "Critical" in text
    assert "Storage is full" in text
    assert 'class="state critical"' in page.content.decode()
    assert "Running" not in text


def test_the_list_is_narrowed_to_a_health_and_keeps_it(at_alice, instance, full):
    services.health_observe()
    page = at_alice.get("instances?health=critical")
    assert instance.id in text_of(page)
    assert '<input type="hidden" name="health" value="critical">' in page.content.decode()
    none = text_of(at_alice.get("instances?health=healthy"))
    assert instance.id not in none
    assert "No instance is so now" in none
    assert instance.id in text_of(at_alice.get("instances?health=colour")), "what is no health is passed over"


def test_the_overview_says_what_is_refused_and_leads_to_the_remedy(at_alice, instance, full):
    page = at_alice.get(f"instances/{instance.id}")
    assert "Producing is refused: 10 GiB of 10 GiB is used" in text_of(page)
    assert at_alice.address(f"instances/{instance.id}/settings") in page.content.decode()


def test_the_quota_page_names_storage_and_not_bandwidth(at_alice, instance, full):
    text = text_of(at_alice.get(f"instances/{instance.id}/quota"))
    assert text.index("Storage is full") < text.index("Produce")


def test_the_part_that_comes_again_has_the_state_beside_the_name_too(at_alice, instance, full):
    page = at_alice.get(f"instances/{instance.id}/health")
    body = page.content.decode()
    assert "Storage is full" in text_of(page)
    assert 'id="state"' in body
    assert "hx-swap-oob" in body


def test_other_pages_of_the_instance_show_what_was_last_seen_of_it(at_alice, instance, full, flow_master):
    services.health_observe()
    asked = flow_master.asked
    assert "Critical" in text_of(at_alice.get(f"instances/{instance.id}/access"))
    assert flow_master.asked == asked


def test_the_fleet_shows_it_for_every_tenant(at_staff, instance, full):
    for path in ("/fleet", f"/fleet/instances/{instance.id}"):
        text = text_of(at_staff.get(path))
        assert "Critical" in text
        assert "Storage is full" in text


def test_a_stranger_does_not_learn_of_it(at_charlie, at_alice, instance, full):
    assert at_charlie.client.get(at_alice.address(f"instances/{instance.id}/health")).status_code == 404
