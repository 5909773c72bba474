"""The page of policies: choose, look at what it would mean, save; what came of it."""

from __future__ import annotations

import pytest

from controlplane.policies.models import DiskPolicy
from tests.controlplane.admission.conftest import installed  # noqa: F401  # a fixture
from tests.controlplane.policies.conftest import DAY_S, REASON, world  # noqa: F401  # a fixture

from .conftest import problem_beside, text_of

FORM = {"policy": "retention", "level_percent": 75, "step_percent": 10, "floor_minutes": 60}


@pytest.fixture
def path(world):  # noqa: F811
    return f"instances/{world.instance.id}/policies"


def rows():
    return DiskPolicy.objects.unscoped(REASON)


def test_without_a_policy_it_says_what_happens_then(at_alice, path):
    page = text_of(at_alice.get(path))
    assert "nothing is done" in page
    assert "10 %" in page
    assert "Nothing yet." in page


def test_settings_lead_there(at_alice, world, path):  # noqa: F811
    assert f"/{path}" in at_alice.get(f"instances/{world.instance.id}/settings").content.decode()


def test_a_preview_says_who_would_lose_what_and_saves_nothing(at_alice, world, path):  # noqa: F811
    world.topic("orders", [6.5 * DAY_S, 60])
    world.group("billing", orders=0)
    page = at_alice.post(path, FORM | {"preview": "1"})
    assert page.status_code == 200
    assert "group billing would lose up to 1 unread records of orders" in text_of(page)
    assert "Nothing was changed yet" in text_of(page)
    assert not rows().exists()


def test_it_is_saved(at_alice, world, path):  # noqa: F811
    page = at_alice.post(path, FORM | {"spare_unread": "on", "save": "1"}, follow=True)
    assert "It is looked at once a minute" in text_of(page)
    assert (rows().get().policy, rows().get().spare_unread) == ("retention", True)
    assert "Nothing was changed" in text_of(at_alice.post(path, FORM | {"spare_unread": "on"}, follow=True))


@pytest.mark.parametrize(
    ("members", "field", "said"),
    [
        ({"level_percent": 20}, "level_percent", "50"),
        ({"step_percent": ""}, "step_percent", "required"),
        ({"floor_minutes": 2000}, "floor_minutes", "1800"),
        ({"policy": "expansion"}, "max_storage_gib", "up to which size"),
        ({"policy": "expansion", "max_storage_gib": 5}, "max_storage_gib", "at least what the instance has"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(at_alice, path, members, field, said):
    page = at_alice.post(path, FORM | members)
    assert page.status_code == 422
    assert said in problem_beside(page, field)
    assert not rows().exists()


def test_a_high_price_is_confirmed(at_alice, path, installed):  # noqa: F811
    installed(price_confirmed_above=1)
    wanted = FORM | {"policy": "expansion", "max_storage_gib": 2000}
    page = at_alice.post(path, wanted)
    assert page.status_code == 422
    assert "I know the price" in text_of(page)
    at_alice.post(path, wanted | {"confirm_price": "on"})
    assert rows().get().confirm_price


def test_a_preview_of_buying_has_a_price(at_alice, path):
    page = at_alice.post(path, FORM | {"policy": "expansion", "max_storage_gib": 20, "preview": "1"})
    assert "at the most that the policy may buy" in text_of(page)


def test_what_was_shortened_and_done_is_shown(at_alice, world, path):  # noqa: F811
    world.topic("orders", [6.5 * DAY_S, 60])
    world.group("billing", orders=0)
    world.set("retention")
    world.fills(80)
    done = world.act()
    page = text_of(at_alice.get(path))
    assert "Topics with a shortened retention" in page
    assert "6 days 7 h" in page
    topic = text_of(at_alice.get(f"instances/{world.instance.id}/topics/orders"))
    assert "keeps the retention of this topic shorter than the 7 days that it had" in topic
    assert "of which groups have not read 1: billing (orders: 1)" in page
    assert "billing (orders: 1)" in text_of(at_alice.get(f"operations/{done.pk}"))
    assert "billing (orders: 1)" in text_of(at_alice.get(f"instances/{world.instance.id}/timeline"))


def test_why_it_could_do_nothing_is_shown(at_alice, world, path):  # noqa: F811
    world.set("retention")
    world.fills(80)
    world.act()
    assert "No topic deletes by age" in text_of(at_alice.get(path))
    page = text_of(at_alice.get(f"instances/{world.instance.id}"))
    assert "Storage fills up, and the policy could do nothing: No topic deletes by age" in page
    assert "did not reach every broker" not in page


def test_a_viewer_looks(at_viewer, path):
    page = at_viewer.get(path)
    assert "You may look" in text_of(page)
    assert "Save policy" not in text_of(page)
    assert at_viewer.post(path, FORM).status_code == 403


def test_without_a_master_use_is_not_known(at_alice, world, path):  # noqa: F811
    world.fills(None)
    page = at_alice.get(path)
    assert page.status_code == 200
    assert "not known now" in text_of(page)


def test_in_chinese(at_alice, world, path):  # noqa: F811
    world.topic("orders", [6.5 * DAY_S, 60])
    world.group("billing", orders=0)
    at_alice.client.cookies["language"] = "zh-hans"
    page = text_of(at_alice.post(path, FORM | {"preview": "1"}))
    assert "billing" in page
    assert "would lose" not in page
    assert "Preview" not in page
