"""Two who add different addresses to a whitelist at once: neither loses the other's, whichever way they came."""

from __future__ import annotations

import pytest

from controlplane.console.views import whitelists
from controlplane.core.models import AuditEntry
from controlplane.instances import services
from controlplane.instances.models import Instance
from tests.controlplane.console.conftest import at_alice  # noqa: F401  # fixtures
from tests.controlplane.test_instances_api import problem


@pytest.fixture
def path(instance):
    return f"/api/v1/instances/{instance.id}/whitelist"


def on_the_list():
    return Instance.objects.unscoped("a test").get().whitelist


def test_an_address_that_somebody_adds_between_reading_and_writing_stays(alice, at_alice, instance, monkeypatch):  # noqa: F811
    """The page is about to add one; another person is faster by this much."""
    known = whitelists.covers

    def planted(whitelist, address):
        monkeypatch.setattr(whitelists, "covers", known)
        services.instance_whitelist_change(
            organisation=alice.organisation, actor="bob@example.com", instance_id=instance.id, add=["10.0.0.7"]
        )
        return known(whitelist, address)

    monkeypatch.setattr(whitelists, "covers", planted)
    answer = at_alice.post(f"instances/{instance.id}/access", {"add": "1", "address": "10.0.0.8"})
    assert answer.status_code == 302
    assert on_the_list() == ["127.0.0.0/8", "10.0.0.7/32", "10.0.0.8/32"]
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.whitelist").order_by("pk")
    assert [entry.sides.after["cidrs"][-1] for entry in entries] == ["10.0.0.7/32", "10.0.0.8/32"]
    assert entries[1].sides.before == entries[0].sides.after


def test_by_rest_some_are_added_and_some_removed_and_the_others_stay(alice, path):
    answer = alice.api.patch(path, {"add": ["10.0.0.0/8", "10.0.0.7", "127.0.0.0/8"]})
    assert answer.status_code == 200, answer.content
    assert answer.json()["whitelist"] == ["127.0.0.0/8", "10.0.0.0/8", "10.0.0.7/32"], "none twice"
    answer = alice.api.patch(path, {"add": ["::1"], "remove": ["10.0.0.7"]})
    assert answer.json()["whitelist"] == ["127.0.0.0/8", "10.0.0.0/8", "::1/128"]


def test_a_dry_run_adds_nothing(alice, path):
    said = alice.api.patch(f"{path}?dry_run=true", {"add": ["10.0.0.0/8"]}).json()
    assert said["changes"] == {"whitelist": [["127.0.0.0/8"], ["127.0.0.0/8", "10.0.0.0/8"]]}
    assert on_the_list() == ["127.0.0.0/8"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, None),
        ({"add": [], "remove": []}, None),
        ({"add": ["10.0.0.1/8"]}, "add.0"),
        ({"add": ["nonsense"]}, "add.0"),
        ({"remove": ["10.0.0.0/8"]}, "remove.0"),
        ({"add": [f"10.0.{number // 256}.{number % 256}" for number in range(513)]}, "add"),
        ({"cidrs": ["10.0.0.0/8"]}, "cidrs"),
    ],
)
def test_what_cannot_be_done_is_named_and_nothing_is_changed(alice, path, body, field):
    said = problem(alice.api.patch(path, body), 400, "invalid")
    if field is not None:
        assert [each["field"] for each in said["errors"]] == [field]
    assert on_the_list() == ["127.0.0.0/8"]


def test_a_list_that_grew_too_long_together_is_refused(alice, path):
    many = [f"10.0.{number // 256}.{number % 256}" for number in range(512)]
    problem(alice.api.patch(path, {"add": many}), 400, "invalid")
    assert on_the_list() == ["127.0.0.0/8"]


def test_who_may_not_change_it_does_not(viewer, charlie, path):
    assert viewer.api.patch(path, {"add": ["10.0.0.0/8"]}).status_code == 403
    assert charlie.api.patch(path, {"add": ["10.0.0.0/8"]}).status_code == 404
    assert on_the_list() == ["127.0.0.0/8"]
