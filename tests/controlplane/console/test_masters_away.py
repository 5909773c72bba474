"""With both masters stopped, pages show the last known figures with their age, and what brokers do meanwhile."""

from __future__ import annotations

import pytest

from controlplane.quotas import figures

from .conftest import text_of
from .test_instance_pages import MIB, flowing

IDLE = {"produce": {"flow": MIB, "allocation": 2 * MIB}, "consume": {"flow": 0, "allocation": 2 * MIB}}


@pytest.fixture
def stopped(instance, flow_master):
    flow_master.answers[instance.id] = flowing()
    flow_master.broker_rows = [{"broker": 1, "reporting": True, "instances": 1, "leaders": 4, **IDLE}]
    figures.figures_keep()
    flow_master.answers.clear()
    flow_master.broker_rows = []


@pytest.mark.parametrize("path", ["instances", "instances/{id}", "instances/{id}/quota", "instances/{id}/quota/now"])
def test_a_tenants_pages_show_the_last_known_figures(at_alice, instance, stopped, path):
    text = text_of(at_alice.get(path.format(id=instance.id)))
    assert "No flow master is active." in text
    assert "last known" in text
    assert "until their leases end" in text
    assert "4 MiB/s" in text


def test_storage_that_was_full_is_still_full(at_alice, instance, flow_master):
    flow_master.answers[instance.id] = flowing() | {"storage_full": True, "storage_used_bytes": 10 * 2**30}
    figures.figures_keep()
    flow_master.answers.clear()
    text = text_of(at_alice.get(f"instances/{instance.id}"))
    assert text.index("Storage is full") < text.index("Current figures are not known")


@pytest.mark.parametrize("path", ["/fleet", "/fleet/allocation", "/fleet/instances/{id}"])
def test_operators_pages_do_too(at_staff, instance, stopped, path):
    text = text_of(at_staff.get(path.format(id=instance.id)))
    assert "last known" in text
    assert "4 MiB/s" in text


def test_a_broker_has_its_last_known_figures(at_staff, instance, stopped):
    text = text_of(at_staff.get("/fleet/brokers"))
    assert "Broker 1 127.0.0.1:19001 Registered 4 100 % 1 1 MiB/s of 2 MiB/s" in text


def test_the_live_part_draws_them_as_what_they_are(at_alice, instance, stopped):
    document = at_alice.get(f"instances/{instance.id}/live").json()
    assert document["known"] is False
    assert document["why"].startswith("No flow master is active.")
    assert "last known" in document["why"]
    assert document["last"]["produce"]["bar"]["used"] == 4 * MIB


def test_where_nothing_is_known_the_live_part_says_why_alone(at_alice, instance):
    document = at_alice.get(f"instances/{instance.id}/live").json()
    assert document["last"] is None
    assert "last known" not in document["why"]
