"""What operators of the service look at of an organisation is on record there: by page and by REST, once an hour."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.accounts.models import User
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry, AuditFold, Operation
from tests.controlplane.console.conftest import visit


def views(person):
    rows = AuditEntry.objects.for_organisation(person.organisation).filter(action="staff.viewed").order_by("pk")
    return [(row.actor, row.target, row.detail["place"]) for row in rows]


@pytest.fixture
def operator(charlie):
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    charlie.user.refresh_from_db()
    return charlie


@pytest.fixture
def browser(operator):
    return visit(operator).client


def test_a_page_of_an_instance_and_its_live_figures_are_one_view(alice, instance, browser):
    page = f"/fleet/instances/{instance.id}"
    for _ in range(3):
        assert browser.get(page).status_code == 200
        assert browser.get(f"{page}/live").status_code == 200
    assert views(alice) == [("charlie@example.com", instance.id, page)]
    AuditFold.objects.unscoped("a test").update(at=SYSTEM_CLOCK.now() - timedelta(hours=1, seconds=1))
    browser.get(page)
    assert len(views(alice)) == 2


def test_a_page_of_an_organisation_is_a_view_of_it(alice, browser):
    page = f"/fleet/organisations/{alice.organisation.id}"
    assert browser.get(page).status_code == 200
    assert views(alice) == [("charlie@example.com", alice.organisation.id, page)]


@pytest.mark.parametrize("rest", ["", "/caps"])
def test_reading_by_rest_is_a_view(alice, operator, rest):
    path = f"/api/v1/organisations/{alice.organisation.id}{rest}"
    for _ in range(2):
        assert operator.api.get(path).status_code == 200
    assert views(alice) == [("charlie@example.com", f"{alice.organisation.id}{rest}", f"GET {path}")]


def test_following_an_operation_is_a_view(alice, operator, instance):
    operation = Operation.objects.for_organisation(alice.organisation).latest("created_at")
    assert operator.api.get(f"/api/v1/operations/{operation.id}").status_code == 200
    assert [view[1] for view in views(alice)] == [operation.id]


def test_what_is_ones_own_is_no_view(alice, operator, instance):
    assert operator.api.get(f"/api/v1/organisations/{operator.organisation.id}/caps").status_code == 200
    assert alice.api.get(f"/api/v1/organisations/{alice.organisation.id}").status_code == 200
    operation = Operation.objects.for_organisation(alice.organisation).latest("created_at")
    assert alice.api.get(f"/api/v1/operations/{operation.id}").status_code == 200
    assert (views(alice), views(operator)) == ([], [])


def test_lists_of_everybody_are_no_view(alice, instance, browser):
    for page in ("/fleet", "/fleet/allocation", "/fleet/capacity"):
        assert browser.get(page).status_code == 200
    assert views(alice) == []


def test_what_an_operator_changes_has_its_own_entry_and_is_no_view(alice, operator):
    path = f"/api/v1/organisations/{alice.organisation.id}/caps"
    body = {"instances": 3, "reason": "asked"}
    assert operator.api.patch(path, body).status_code == 200
    assert views(alice) == []
    assert AuditEntry.objects.for_organisation(alice.organisation).filter(action="organisation.caps").count() == 1


def test_a_dry_run_tells_how_things_are_and_so_is_a_view(alice, operator):
    path = f"/api/v1/organisations/{alice.organisation.id}/caps"
    answer = operator.api.patch(f"{path}?dry_run=true", {"instances": 3, "reason": "asked"})
    assert answer.json()["changes"]
    assert views(alice) == [("charlie@example.com", f"{alice.organisation.id}/caps", f"PATCH {path}")]


def test_who_is_no_operator_leaves_nothing_at_another_organisation(alice, charlie, instance):
    stranger = visit(charlie).client
    assert stranger.get(f"/fleet/instances/{instance.id}").status_code == 404
    assert charlie.api.get(f"/api/v1/organisations/{alice.organisation.id}").status_code == 404
    assert views(alice) == []
