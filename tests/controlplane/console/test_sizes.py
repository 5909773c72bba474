"""Choosing sizes in the console: everything wrong at once, the estimate stays, and what would stop producers is confirmed."""

from __future__ import annotations

import re

import pytest

from controlplane.instances.models import Instance

from .conftest import problem_beside, text_of
from .test_instance_pages import SIZES, flowing

GIB = 2**30


@pytest.fixture
def used(instance, flow_master):
    flow_master.answers[instance.id] = flowing() | {"storage_used_bytes": 6 * GIB}


def test_everything_that_is_wrong_is_said_at_once(at_alice, brokers):
    page = at_alice.post(
        "instances/new",
        {
            "name": "",
            "bandwidth_mib_per_s": "much",
            "storage_gib": "-1",
            "partitions": "0",
            "whitelist": "10.0.0.0/8\nhome",
        },
    )
    for field in ("name", "bandwidth_mib_per_s", "storage_gib", "partitions"):
        assert problem_beside(page, field)
    assert "Line 2" in problem_beside(page, "whitelist")


def test_the_estimate_stays_when_the_form_comes_back(at_alice, brokers, instance):
    page = text_of(at_alice.post("instances/new", SIZES | {"whitelist": "", "storage_gib": "-1"}))
    assert "a month" in page
    page = text_of(at_alice.post(f"instances/{instance.id}/settings", SIZES | {"storage_gib": "-1"}))
    assert "a month" in page
    assert "Now: " in page


def test_while_a_size_is_being_typed_the_last_estimate_is_left_standing(at_alice):
    sizes = {"bandwidth_mib_per_s": "20", "storage_gib": "", "partitions": "6"}
    answer = at_alice.get("instances/estimate", data=sizes, headers={"HX-Request": "true"})
    assert answer.status_code == 204


def test_every_size_that_is_typed_asks_for_the_price(at_alice, brokers, instance):
    """`find` in htmx's trigger takes the first match only: then storage and partitions would ask for nothing."""
    for path in ("instances/new", f"instances/{instance.id}/settings"):
        page = at_alice.get(path).content.decode()
        (trigger,) = re.findall(r'hx-get="[^"]*/estimate[^"]*" hx-trigger="([^"]*)"', page)
        assert trigger.split()[0] == "input"
        assert "from:" not in trigger, "input events of all three fields come up to what stands around them"


@pytest.mark.parametrize(("name", "value"), [("storage_gib", "0"), ("partitions", "-1"), ("bandwidth_mib_per_s", "x")])
def test_what_is_no_size_has_no_price(at_alice, instance, name, value):
    sizes = {"bandwidth_mib_per_s": "20", "storage_gib": "500", "partitions": "60"} | {name: value}
    of = {**sizes, "instance": instance.id}
    text = text_of(at_alice.get("instances/estimate", data=of, headers={"HX-Request": "true"}))
    assert "There is no price for this." in text
    assert {"storage_gib": "Storage:", "partitions": "Partitions:", "bandwidth_mib_per_s": "Bandwidth:"}[name] in text
    assert "for every hour begun" not in text
    assert "Now: " in text


def test_an_estimate_says_what_it_is_of_and_what_is_paid_now(at_alice, instance):
    sizes = {"bandwidth_mib_per_s": "20", "storage_gib": "500", "partitions": "60"}
    text = text_of(at_alice.get("instances/estimate", data={**sizes, "instance": instance.id}))
    assert "20 MiB/s, 500 GiB, 60 partitions" in text
    assert "Now: " in text
    assert "Now: " not in text_of(at_alice.get("instances/estimate", data=sizes))


def test_an_estimate_beside_another_tenants_instance_is_not_found(at_charlie, instance):
    sizes = {"bandwidth_mib_per_s": "20", "storage_gib": "500", "partitions": "60", "instance": instance.id}
    assert at_charlie.get("instances/estimate", data=sizes).status_code == 404


def test_less_storage_than_is_used_is_confirmed(at_alice, instance, used):
    page = at_alice.get(f"instances/{instance.id}/settings")
    assert 'name="accept_full_storage"' not in page.content.decode()
    page = at_alice.post(f"instances/{instance.id}/settings", SIZES | {"storage_gib": "5"})
    assert page.status_code == 422
    assert "6 GiB" in problem_beside(page, "storage_gib")
    assert 'name="accept_full_storage"' in page.content.decode()
    answer = at_alice.post(
        f"instances/{instance.id}/settings", SIZES | {"storage_gib": "5", "accept_full_storage": "on"}
    )
    assert answer.status_code == 302
    assert Instance.objects.unscoped("a test").get(pk=instance.pk).storage_gib == 5
