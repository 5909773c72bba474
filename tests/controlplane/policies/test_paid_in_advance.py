"""More storage of what is paid in advance is charged at once: only who may pay in advance can have a policy buy it."""

from __future__ import annotations

import pytest

from controlplane.admission import prepaid
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.console.conftest import visit
from tests.controlplane.test_custom_roles import built_in_given
from tests.controlplane.test_instances_api import URL, problem

from .conftest import REASON

EXPANSION = {"policy": "expansion", "max_storage_gib": 12}


@pytest.fixture
def operator(alice, bob):
    """Bob runs instances, and pays nothing in advance."""
    built_in_given(alice, bob, "operator")
    return bob


def pay_in_advance(world):
    paid = world.person.api.post(f"{URL}/{world.instance.pk}/prepaid", {"months": 1, "confirm_price": True})
    assert run_to_the_end(paid.json()["operation_id"]).state == "succeeded"


def put(person, world, **members):
    return person.api.put(f"{world.url}/disk", {**EXPANSION, **members})


def size(world):
    world.instance.refresh_from_db()
    return world.instance.storage_gib


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_an_operator_has_no_policy_buy_storage_that_is_paid_in_advance(world, operator, query):
    pay_in_advance(world)
    problem(operator.api.put(f"{world.url}/disk{query}", EXPANSION), 403, "not_in_role")
    assert world.shown()["policy"] == "none"
    world.fills(80)
    assert world.look() == []


def test_the_page_says_why(world, operator):
    pay_in_advance(world)
    members = {"level_percent": 75, "step_percent": 10, "floor_minutes": 60, "save": "1"}
    answer = visit(operator).post(f"instances/{world.instance.pk}/policies", {**EXPANSION, **members})
    assert answer.status_code == 422
    assert "Your role does not pay in advance" in answer.content.decode()


def test_what_is_paid_by_the_hour_is_the_operators_to_have_bought(world, operator):
    assert put(operator, world).status_code == 200
    world.fills(80)
    assert (world.act().state, size(world)) == ("succeeded", 11)


def test_an_operator_may_always_have_it_buy_no_more_or_shorten_instead(world, operator):
    pay_in_advance(world)
    world.set(**EXPANSION)
    problem(put(operator, world, max_storage_gib=14), 403, "not_in_role")
    assert put(operator, world).status_code == 200  # it says so already
    assert operator.api.put(f"{world.url}/disk", {"policy": "retention"}).status_code == 200
    assert operator.api.put(f"{world.url}/disk", {"policy": "none"}).status_code == 200
    problem(put(operator, world), 403, "not_in_role")


def test_the_policy_of_an_operator_buys_nothing_of_what_is_paid_in_advance_later(world, operator):
    assert put(operator, world).status_code == 200
    pay_in_advance(world)
    charged = prepaid.charged(world.instance, SYSTEM_CLOCK)
    world.fills(80)
    failed = world.act()
    assert (failed.state, failed.error_code, size(world)) == ("failed", "not_in_role", 10)
    assert prepaid.charged(world.instance, SYSTEM_CLOCK) == charged
    assert "paid in advance" in world.shown()["problem"]


@pytest.mark.parametrize("again", [{}, {"max_storage_gib": 14}], ids=["the same", "another"])
def test_it_buys_when_somebody_who_pays_in_advance_has_said_so(world, operator, again):
    put(operator, world)
    pay_in_advance(world)
    world.fills(80)
    world.act()
    world.set(**{**EXPANSION, **again})
    assert world.shown()["problem"] is None
    assert (world.act().state, size(world)) == ("succeeded", 11)


def test_what_a_member_has_set_buys_also_of_what_is_paid_in_advance_later(world, operator):
    world.set(**EXPANSION)
    pay_in_advance(world)
    put(operator, world)  # said again by somebody who does not pay, it is as it was
    world.fills(80)
    assert (world.act().state, size(world)) == ("succeeded", 11)


def test_that_somebody_who_pays_says_the_same_again_is_on_record(world, alice, operator):
    put(operator, world)
    entries = AuditEntry.objects.unscoped(REASON).filter(action="instance.policy.disk")
    assert entries.count() == 1
    for _ in range(2):
        world.set(**EXPANSION)
    assert entries.count() == 2
    assert entries.latest("pk").detail == {"pays_in_advance": {"from": False, "to": True}}
