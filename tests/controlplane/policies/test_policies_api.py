"""REST of policies: set, shown, refused, previewed."""

from __future__ import annotations

import pytest

from controlplane.core.models import AuditEntry
from controlplane.policies.models import DiskPolicy
from tests.controlplane.admission.conftest import installed  # noqa: F401  # a fixture

from .conftest import DAY_S, HOUR_S, REASON

DEFAULTS = {
    "policy": "none",
    "level_percent": 75,
    "step_percent": 10,
    "floor_minutes": 60,
    "spare_unread": False,
    "max_storage_gib": None,
}


def test_without_a_policy_nothing_is_done(world):
    assert world.shown() == {
        **DEFAULTS,
        "used_percent": 10.0,
        "problem": None,
        "problem_since": None,
        "shortened_topics": [],
        "operation_id": None,
    }
    assert world.look() == []


def test_it_is_set_shown_and_on_record(world, alice):
    answer = world.set("retention", level_percent=80, spare_unread=True)
    assert answer == world.shown()
    assert {name: answer[name] for name in DEFAULTS} == {
        **DEFAULTS,
        "policy": "retention",
        "level_percent": 80,
        "spare_unread": True,
    }
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.policy.disk")
    assert entry.detail == {
        "policy": {"from": "none", "to": "retention"},
        "level_percent": {"from": 75, "to": 80},
        "spare_unread": {"from": False, "to": True},
    }


def test_said_again_nothing_happens(world):
    world.set("retention")
    revision = world.policy().revision
    world.set("retention")
    assert world.policy().revision == revision
    assert AuditEntry.objects.unscoped(REASON).filter(action="instance.policy.disk").count() == 1


def test_a_repeated_call_with_a_key_is_answered_as_before(world, alice):
    key = {"HTTP_IDEMPOTENCY_KEY": "policy"}
    first = alice.api.put(f"{world.url}/disk", {"policy": "retention"}, **key)
    world.set("none")
    again = alice.api.put(f"{world.url}/disk", {"policy": "retention"}, **key)
    assert again.json() == first.json()
    assert world.policy().policy == "none"


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({}, "policy"),
        ({"policy": "both"}, "policy"),
        ({"policy": "retention", "level_percent": 20}, "level_percent"),
        ({"policy": "retention", "step_percent": 0}, "step_percent"),
        ({"policy": "retention", "floor_minutes": 0}, "floor_minutes"),
        ({"policy": "retention", "spare_unread": "yes"}, "spare_unread"),
        ({"policy": "expansion"}, "max_storage_gib"),
        ({"policy": "expansion", "max_storage_gib": 9}, "max_storage_gib"),
        ({"policy": "expansion", "max_storage_gib": -1}, "max_storage_gib"),
        ({"policy": "none", "level": 75}, "level"),
    ],
)
def test_what_is_wrong_is_named(world, alice, members, field):
    answer = alice.api.put(f"{world.url}/disk", members)
    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["errors"]] == [field]
    assert not DiskPolicy.objects.unscoped(REASON).exists()


def test_a_member_sets_it_a_viewer_looks_and_a_stranger_finds_nothing(world, bob, viewer, charlie):
    assert bob.api.put(f"{world.url}/disk", {"policy": "retention"}).status_code == 200
    assert viewer.api.get(world.url).json()["disk"]["policy"] == "retention"
    assert viewer.api.put(f"{world.url}/disk", {"policy": "none"}).status_code == 403
    assert charlie.api.get(world.url).status_code == 404
    assert charlie.api.put(f"{world.url}/disk", {"policy": "none"}).status_code == 404
    assert world.policy().policy == "retention"


def test_an_isolated_instance_has_its_policy_as_it_was(world, alice, grace):
    world.set("retention")
    assert alice.api.delete(f"/api/v1/instances/{world.instance.id}").status_code == 202
    answer = alice.api.put(f"{world.url}/disk", {"policy": "none"})
    assert (answer.status_code, answer.json()["code"]) == (409, "instance_isolated")
    world.fills(99)
    assert world.look() == []


# --- the price --------------------------------------------------------------------------------------------------------


def test_what_it_may_come_to_cost_is_confirmed(world, alice, installed):  # noqa: F811
    installed(price_confirmed_above=1)
    answer = alice.api.put(f"{world.url}/disk", {"policy": "expansion", "max_storage_gib": 2000})
    assert (answer.status_code, answer.json()["code"]) == (409, "price_unconfirmed")
    world.set("expansion", max_storage_gib=2000, confirm_price=True)


# --- previews ---------------------------------------------------------------------------------------------------------


def preview(world, **members):
    answer = world.person.api.put(f"{world.url}/disk?dry_run=true", members)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_preview_says_who_would_lose_what_and_changes_nothing(world):
    world.topic("orders", [6 * DAY_S, 5 * DAY_S, 2 * HOUR_S, 60], start=100, retention_ms=str(8 * DAY_S * 1000))
    world.topic("forever", [60], retention_ms="-1")
    world.group("billing", orders=100)
    world.admin.placement.sizes[f"{world.key}.orders", 0] = 8 * 2**20
    said = preview(world, policy="retention", step_percent=30, floor_minutes=60)
    assert said["changes"] == {"policy": ["none", "retention"], "step_percent": [10, 30]}
    assert said["problems"] == [
        "retention that was set for a topic would be shortened, too: orders",
        "topics that keep everything are never shortened: forever",
        "if the level were reached now, group billing would lose up to 1 unread records of orders (about 2.0 MiB)",
        "at the floor of 60 min groups would lose up to 3 records that they have not read: billing (orders: 3)",
    ]
    assert not DiskPolicy.objects.unscoped(REASON).exists()
    assert world.retention("orders") == str(8 * DAY_S * 1000)


def test_a_preview_that_spares_says_what(world):
    world.topic("orders", [6 * DAY_S, 60])
    world.group("billing", orders=0)
    (problem,) = preview(world, policy="retention", step_percent=30, spare_unread=True)["problems"]
    assert "has still to be read by groups, and is spared (topics: orders)" in problem


def test_where_brokers_do_not_answer_a_preview_says_that_it_is_not_known(world):
    world.topic("orders", [6 * DAY_S])
    world.admin.away = True
    (problem,) = preview(world, policy="retention")["problems"]
    assert problem.startswith("who would lose unread records is not known now: ")


def test_a_preview_of_buying_says_up_to_which_price_and_what_could_not_be_bought_now(world, installed):  # noqa: F811
    said = preview(world, policy="expansion", max_storage_gib=2000)
    assert said["problems"] == []
    assert float(said["price"]["per_month_after"]) > float(said["price"]["per_month_before"]) > 0
    installed(caps={"storage_gib": 15})
    (problem,) = preview(world, policy="expansion", max_storage_gib=20)["problems"]
    assert problem.startswith("20 GiB could not be bought now: storage: the organisation may have 15 GiB")


def test_a_preview_is_refused_as_the_change_would_be(world, alice):
    answer = alice.api.put(f"{world.url}/disk?dry_run=true", {"policy": "expansion", "max_storage_gib": 1})
    assert answer.status_code == 400


def test_a_method_that_there_is_not_is_refused_as_such_also_where_a_dry_run_is_asked_for(world, alice):
    assert alice.api.generic("TRACE", f"{world.url}/disk?dry_run=true").status_code == 405
