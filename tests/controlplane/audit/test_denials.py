"""Who was refused something is on record in their own organisation: folded, bounded, and never in another's log."""

from __future__ import annotations

from datetime import timedelta

from django.db import DatabaseError

from controlplane.accounts import denials
from controlplane.core import audit_folds
from controlplane.core.audit_folds import Most, record_once
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry, AuditFold
from controlplane.instances.models import Instance
from controlplane.tenants.models import Organisation
from tests.controlplane.console.conftest import at_alice, at_viewer, visit  # noqa: F401  # fixtures
from tests.controlplane.test_limited_keys import made


def entries(person, action="access.denied"):
    return list(AuditEntry.objects.for_organisation(person.organisation).filter(action=action).order_by("pk"))


def told(person):
    return [(each.actor, each.detail.get("method"), each.target, each.detail.get("code")) for each in entries(person)]


def test_a_role_is_refused_on_record(alice, viewer, instance):
    path = f"/api/v1/instances/{instance.id}/topics"
    assert viewer.api.post(path, {"name": "orders"}, REMOTE_ADDR="10.9.9.9").status_code == 403
    [entry] = entries(alice)
    assert (entry.actor, entry.target, entry.address) == ("vera@example.com", path, "10.9.9.9")
    assert entry.detail == {
        "method": "POST",
        "code": "forbidden",
        "reason": "viewers may look, but not change anything",
    }
    assert (bool(entry.key), bool(entry.request_id)) == (True, True)


def test_a_scope_is_refused_on_record_with_the_key(alice, instance):
    key, api = made(alice, scopes=["read"])
    assert api.get("/api/v1/audit").status_code == 403
    [entry] = entries(alice)
    assert (entry.key, entry.target, entry.detail["code"]) == (key.id, "/api/v1/audit", "scope_needed")


def test_what_owners_alone_decide_is_refused_on_record(alice, bob):
    assert bob.api.post("/api/v1/invitations", {"email": "dora@example.com", "role": "member"}).status_code == 403
    assert told(alice) == [("bob@example.com", "POST", "/api/v1/invitations", "forbidden")]


def test_what_operators_alone_do_is_refused_on_record(alice):
    assert alice.api.get("/api/v1/clusters").status_code == 403
    assert told(alice) == [("alice@example.com", "GET", "/api/v1/clusters", "forbidden")]


def test_an_instance_that_a_key_is_not_for_is_missing_to_it_and_on_record(alice, instance):
    _, api = made(alice, instances=["ins-aaaaaaaa"])
    path = f"/api/v1/instances/{instance.id}"
    refused, missing = api.get(path), alice.api.get("/api/v1/instances/ins-zzzzzzzz")
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    assert refused.content == missing.content.replace(b"ins-zzzzzzzz", instance.id.encode())
    assert told(alice) == [("alice@example.com", "GET", path, "instances_limited")]


def test_another_organisations_thing_is_missing_and_in_nobodys_log(alice, charlie, instance):
    path = f"/api/v1/instances/{instance.id}"
    theirs, missing = charlie.api.get(path), charlie.api.get("/api/v1/instances/ins-zzzzzzzz")
    assert theirs.content == missing.content.replace(b"ins-zzzzzzzz", instance.id.encode())
    assert charlie.api.get(f"/api/v1/organisations/{alice.organisation.id}/caps").status_code == 404
    assert (told(alice), told(charlie)) == ([], [])


def test_a_key_that_is_refused_at_anothers_tells_its_own_organisation_alone(alice, charlie, instance):
    _, api = made(charlie, instances=["ins-aaaaaaaa"])
    assert api.get(f"/api/v1/instances/{instance.id}").status_code == 404
    assert (len(told(alice)), len(told(charlie))) == (0, 1)


def test_pages_refuse_on_record_too(alice, at_alice, at_viewer, instance):  # noqa: F811
    where = f"instances/{instance.id}/new-topic"
    assert at_viewer.post(where, {"name": "orders"}).status_code == 403
    assert told(alice) == [("vera@example.com", "POST", at_viewer.address(where), "forbidden")]
    assert at_alice.get(f"instances/{instance.id}").status_code == 200
    assert len(told(alice)) == 1


def test_a_refusal_beside_a_form_is_on_record(alice, bob, instance):
    Instance.objects.unscoped("a test").update(state="isolated", destroys_at=SYSTEM_CLOCK.now() + timedelta(days=1))
    page = visit(bob)
    answer = page.post(f"instances/{instance.id}/delete", {"confirmation": instance.name})
    assert answer.status_code == 422
    assert told(alice) == [("bob@example.com", "POST", page.address(f"instances/{instance.id}/delete"), "forbidden")]


def test_a_thousand_times_is_once_an_hour(alice, viewer, instance):
    path = f"/api/v1/instances/{instance.id}/topics"
    for _ in range(5):
        assert viewer.api.post(path, {"name": "orders"}).status_code == 403
    assert len(entries(alice)) == 1
    viewer.api.delete(f"{path}/orders")
    assert len(entries(alice)) == 2, "another way and object is another entry"
    AuditFold.objects.unscoped("a test").update(at=SYSTEM_CLOCK.now() - timedelta(hours=1, seconds=1))
    viewer.api.post(path, {"name": "orders"})
    assert len(entries(alice)) == 3


def test_what_is_told_already_costs_a_look_and_no_write(alice, django_assert_num_queries):
    def once():
        return record_once(
            organisation=alice.organisation, actor="vera@example.com", action="access.denied", target="x", detail={}
        )

    assert once() is not None
    with django_assert_num_queries(1):
        assert once() is None


def test_nobody_floods_the_log_nor_hides_others_in_it(alice, bob, viewer, instance, monkeypatch):
    monkeypatch.setattr(denials, "MOST", Most(of_actor=3, of_all=5))
    at = f"/api/v1/instances/{instance.id}/topics"
    for number in range(20):
        viewer.api.delete(f"{at}/t{number}")
    assert [line[2] for line in told(alice)] == [f"{at}/t0", f"{at}/t1", f"{at}/t2", "more"]
    assert entries(alice)[-1].detail == {"written_within_the_hour": 3}
    bob.api.post("/api/v1/invitations", {"email": "dora@example.com", "role": "member"})
    assert told(alice)[-1][0] == "bob@example.com", "there is room for others"
    for number in range(20):
        bob.api.delete(f"/api/v1/members/{number + 1000}")
    assert len(entries(alice)) == 6
    assert (entries(alice)[-1].actor, entries(alice)[-1].target) == ("system", "more")
    assert AuditFold.objects.unscoped("a test").count() <= 5 + 2


def test_rows_that_remember_do_not_pile_up(alice, viewer, instance):
    at = f"/api/v1/instances/{instance.id}/topics"
    for number in range(4):
        viewer.api.delete(f"{at}/t{number}")
    AuditFold.objects.unscoped("a test").update(at=SYSTEM_CLOCK.now() - timedelta(hours=2))
    viewer.api.delete(f"{at}/t9")
    assert AuditFold.objects.unscoped("a test").exclude(action="").count() == 1


def test_a_log_that_cannot_be_written_changes_no_answer(alice, viewer, instance, monkeypatch, caplog):
    def fail(**_options):
        raise DatabaseError("no")

    monkeypatch.setattr(denials, "record_once", fail)
    answer = viewer.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders"})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "a denial is not in the audit trail" in caplog.text
    assert timedelta(hours=1) == audit_folds.TOGETHER


def test_denials_are_chained_like_everything_else(alice, viewer, instance, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        viewer.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders"})
    found = alice.api.get("/api/v1/audit/verify").json()
    assert (found["broken"], found["waiting"]) == (None, 0)


def test_what_an_account_lacks_is_one_entry_whatever_was_asked_for(alice, bob):
    Organisation.objects.filter(pk=alice.organisation.pk).update(second_factor_demanded=True)
    for path in ("instances", "audit", "operations"):
        assert bob.api.get(f"/api/v1/{path}").status_code == 403
    assert told(alice) == [("bob@example.com", "GET", alice.organisation.id, "second_factor_needed")]


def test_nobody_without_a_key_is_anybodys_denial(alice, client):
    assert client.get("/api/v1/audit").status_code == 401
    assert told(alice) == []
