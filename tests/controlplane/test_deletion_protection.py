"""A protected instance is deleted by nobody until its protection is switched off, whichever door is tried."""

from __future__ import annotations

import pytest

from controlplane.core.errors import Conflict
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances import lifecycle, services
from controlplane.instances.models import Instance

from .conftest import WANTED, run_to_the_end
from .test_instances_api import URL, problem

ON, OFF = {"deletion_protection": True}, {"deletion_protection": False}


@pytest.fixture
def url(instance):
    return f"{URL}/{instance.id}"


@pytest.fixture
def protected(alice, url):
    run_to_the_end(alice.api.patch(url, ON).json()["operation_id"])
    return url


def row():
    return Instance.objects.unscoped("a test").get()


def deletions():
    return Operation.objects.unscoped("a test").filter(kind="instance.delete").count()


def test_it_is_off_unless_it_is_asked_for(alice, brokers, url):
    assert alice.api.get(url).json()["deletion_protection"] is False
    made = alice.api.post(URL, {**WANTED, **ON}).json()
    assert alice.api.get(f"{URL}/{made['id']}").json()["deletion_protection"] is True


@pytest.mark.parametrize("dry_run", ["", "?dry_run=true"])
def test_deleting_is_refused_with_a_sentence_and_nothing_happens(alice, bob, protected, dry_run):
    for person in (alice, bob):
        refused = problem(person.api.delete(protected + dry_run), 409, "deletion_protected")
        assert "switch its deletion protection off first" in refused["detail"]
        assert refused["retriable"] is False
    assert alice.api.get(protected).json()["state"] == "running"
    assert deletions() == 0


def test_switched_off_it_is_deleted(alice, protected):
    assert alice.api.patch(protected, OFF).status_code == 202
    done = alice.api.delete(protected)
    assert done.status_code == 202
    assert run_to_the_end(done.json()["operation_id"]).state == "succeeded"


def test_other_changes_leave_it_as_it_is(alice, protected):
    alice.api.patch(protected, {"name": "orders", "partitions": 90})
    assert alice.api.get(protected).json()["deletion_protection"] is True


def test_it_is_on_record_and_moves_the_etag(alice, url):
    before = alice.api.get(url)["ETag"]
    alice.api.patch(url, ON)
    assert alice.api.get(url)["ETag"] != before
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.update")
    assert entry.detail == {"deletion_protection": {"from": False, "to": True}}


def test_of_one_who_protects_and_one_who_deletes_at_once_one_is_refused(alice, instance, monkeypatch):
    look = services.instance_get

    def then_protected(**names):
        found = look(**names)
        Instance.objects.unscoped("a test").update(deletion_protection=True)
        return found

    monkeypatch.setattr(services, "instance_get", then_protected)
    with pytest.raises(Conflict, match="protected against deletion"):
        lifecycle.instance_delete(organisation=alice.organisation, actor="a", instance_id=instance.id)
    assert deletions() == 0


@pytest.mark.parametrize("value", [1, "on", None, []])
def test_it_is_true_or_false(alice, url, value):
    problem(alice.api.patch(url, {"deletion_protection": value}), 400, "invalid")
    assert row().deletion_protection is False


def test_a_dry_run_says_what_would_change(alice, url):
    said = alice.api.patch(f"{url}?dry_run=true", ON).json()
    assert said["changes"] == {"deletion_protection": [False, True]}
    assert row().deletion_protection is False


def test_asked_twice_it_is_one_operation(alice, url):
    first, second = (alice.api.patch(url, ON).json()["operation_id"] for _ in range(2))
    assert first == second


def test_a_viewer_switches_nothing_and_a_stranger_finds_nothing(viewer, charlie, protected):
    problem(viewer.api.patch(protected, OFF), 403, "forbidden")
    problem(charlie.api.patch(protected, OFF), 404, "not_found")
    assert row().deletion_protection is True
