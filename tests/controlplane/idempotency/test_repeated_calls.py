"""`Idempotency-Key`: a call that is repeated is answered as it was, and done once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError
from rest_framework.test import APIClient

from controlplane.accounts.models import ApiKey
from controlplane.accounts.services import api_key_create
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import CapacityExhausted
from controlplane.idempotency import services
from controlplane.idempotency.models import RepeatableCall
from controlplane.instances import services as instances
from controlplane.instances.models import Instance
from tests.controlplane.alarms.rows import alarm_row
from tests.controlplane.conftest import WANTED, client_of
from tests.controlplane.test_instances_api import URL, problem

KEY = {"HTTP_IDEMPOTENCY_KEY": "5f0c-first"}


def count() -> int:
    return Instance.objects.unscoped("a test").count()


def calls():
    return RepeatableCall.objects.unscoped("a test")


def grow_old(by: timedelta) -> None:
    for row in calls():
        calls().filter(pk=row.pk).update(created_at=row.created_at - by)


def test_the_same_key_and_body_make_one_instance_and_one_answer(alice, brokers):
    first = alice.api.post(URL, WANTED, **KEY)
    again = alice.api.post(URL, WANTED, **KEY)
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert count() == 1


def test_without_a_key_or_with_another_each_call_is_one_of_its_own(alice, brokers):
    for headers in ({}, {}, KEY, {"HTTP_IDEMPOTENCY_KEY": "second"}):
        assert alice.api.post(URL, WANTED, **headers).status_code == 202
    assert count() == 4


@pytest.mark.parametrize("other", [{"bandwidth_mib_per_s": 6}, {"name": "others"}])
def test_another_body_under_the_same_key_is_refused_and_does_nothing(alice, brokers, other):
    alice.api.post(URL, WANTED, **KEY)
    refused = alice.api.post(URL, WANTED | other, **KEY)
    assert "another request" in problem(refused, 409, "idempotency_key_reused")["detail"]
    assert count() == 1


def test_another_call_under_the_same_key_is_refused(alice, instance):
    assert alice.api.patch(f"{URL}/{instance.id}", {"name": "a"}, **KEY).status_code == 202
    problem(alice.api.delete(f"{URL}/{instance.id}", **KEY), 409, "idempotency_key_reused")
    problem(alice.api.patch(f"{URL}/{instance.id}?x=1", {"name": "a"}, **KEY), 409, "idempotency_key_reused")


def test_every_kind_of_change_is_repeatable(alice, instance):
    one = f"{URL}/{instance.id}"
    for number, (method, path, body, status) in enumerate(
        [
            ("patch", one, {"name": "renamed"}, 202),
            ("put", f"{one}/whitelist", {"cidrs": ["10.0.0.0/8"]}, 200),
            ("post", f"{one}/topics", {"name": "orders", "partitions": 1}, 201),
            ("patch", f"{one}/topics/orders", {"partitions": 2}, 200),
            ("delete", f"{one}/topics/orders", None, 204),
            ("post", f"{one}/throttle-rules", {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 1}, 201),
            ("delete", one, None, 202),
        ]
    ):
        headers = {"HTTP_IDEMPOTENCY_KEY": f"key-{number}"}
        answers = [getattr(alice.api, method)(path, body, **headers) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [status, status], (method, path, answers[1].content)
        assert answers[0].content == answers[1].content
        assert answers[1]["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("put", "/whitelist", {"cidrs": ["10.0.0.0/8"]}),
        ("patch", "/alarms/alm-000000000001", {"threshold": 70}),
    ],
)
def test_a_repeated_answer_has_the_etag_with_which_its_client_goes_on(alice, instance, method, path, body):
    alarm_row(instance, "alm-000000000001")
    url, change = f"{URL}/{instance.id}{path}", getattr(alice.api, method)
    first, again = (change(url, body, **KEY) for _ in range(2))
    assert again["ETag"] == first["ETag"]
    assert change(url, body, HTTP_IF_MATCH=again["ETag"]).status_code == 200
    problem(change(url, body, HTTP_IF_MATCH='"of another day"'), 412, "precondition_failed")


def test_a_repeated_answer_has_no_etag_where_the_first_had_none(alice, brokers):
    first, again = (alice.api.post(URL, WANTED, **KEY) for _ in range(2))
    assert "ETag" not in first
    assert "ETag" not in again


def test_a_repeated_answer_without_a_body_says_no_type_of_one(alice, instance):
    alice.api.post(f"{URL}/{instance.id}/topics", {"name": "orders", "partitions": 1})
    first, again = (alice.api.delete(f"{URL}/{instance.id}/topics/orders", **KEY) for _ in range(2))
    for answer in (first, again):
        assert (answer.status_code, answer.content) == (204, b"")
        assert "Content-Type" not in answer


def test_what_was_kept_before_etags_were_is_answered_without_one(alice, instance):
    url = f"{URL}/{instance.id}/whitelist"
    alice.api.put(url, {"cidrs": ["10.0.0.0/8"]}, **KEY)
    calls().update(etag="")
    assert "ETag" not in alice.api.put(url, {"cidrs": ["10.0.0.0/8"]}, **KEY)


def test_a_call_is_answered_though_its_answer_could_not_be_kept(alice, brokers, monkeypatch):
    def away(_claim):
        raise OperationalError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(services, "_row", away)
        assert alice.api.post(URL, WANTED, **KEY).status_code == 202
    problem(alice.api.post(URL, WANTED, **KEY), 409, "idempotency_in_progress")
    assert count() == 1


def test_a_key_is_the_callers_own(alice, bob, charlie, brokers):
    ids = [person.api.post(URL, WANTED, **KEY).json()["id"] for person in (alice, bob, charlie)]
    assert len(set(ids)) == 3
    assert [row["id"] for row in charlie.api.get(URL).json()["items"]] == [ids[2]]


def test_another_api_key_of_the_same_person_repeats_the_same_call(alice, brokers):
    first = alice.api.post(URL, WANTED, **KEY).json()
    _, text = api_key_create(organisation=alice.organisation, user=alice.user, name="rotated")
    assert client_of(text).post(URL, WANTED, **KEY).json() == first


def test_who_has_no_valid_api_key_repeats_nothing(alice, brokers):
    alice.api.post(URL, WANTED, **KEY)
    stranger = APIClient()
    assert stranger.post(URL, WANTED, format="json", **KEY).status_code == 401
    assert client_of("slc_wrong").post(URL, WANTED, **KEY).status_code == 401


def test_what_an_owner_did_is_not_told_to_a_member(alice, bob):
    """That owners alone may make the call is known to its view, which a repetition does not reach."""
    role = {"name": "readers", "scopes": {"topics": "look"}}
    bob.user.memberships.update(role="owner")
    assert bob.api.post("/api/v1/roles", role, **KEY).status_code == 201
    bob.user.memberships.update(role="member")
    problem(bob.api.post("/api/v1/roles", role, **KEY), 409, "idempotency_other_role")
    bob.user.memberships.update(role="owner")
    assert bob.api.post("/api/v1/roles", role, **KEY)["Idempotency-Replayed"] == "true"


def test_who_has_risen_meanwhile_does_nothing_twice(alice, bob, brokers):
    assert bob.api.post(URL, WANTED, **KEY).status_code == 202
    bob.user.memberships.update(role="owner")
    problem(bob.api.post(URL, WANTED, **KEY), 409, "idempotency_other_role")
    assert count() == 1


def test_a_viewer_may_not_repeat_what_was_done_before_the_role_changed(alice, bob, brokers):
    bob.api.post(URL, WANTED, **KEY)
    bob.user.memberships.update(role="viewer")
    problem(bob.api.post(URL, WANTED, **KEY), 403, "forbidden")


def test_a_call_that_was_refused_may_be_made_again_under_its_key(alice, brokers, monkeypatch):
    problem(alice.api.post(URL, WANTED | {"partitions": 0}, **KEY), 400, "invalid")

    def full(**_members):
        raise CapacityExhausted("no room")

    with monkeypatch.context() as patch:
        patch.setattr(instances, "instance_create", full)
        problem(alice.api.post(URL, WANTED, **KEY), 409, "capacity_exhausted")
    assert alice.api.post(URL, WANTED, **KEY).status_code == 202
    assert count() == 1


def test_a_duplicate_that_comes_while_the_first_is_under_way_is_told_to_wait(alice, brokers, monkeypatch):
    create, seen = instances.instance_create, []

    def slow(**members):
        seen.append(alice.api.post(URL, WANTED, **KEY))
        return create(**members)

    monkeypatch.setattr(instances, "instance_create", slow)
    assert alice.api.post(URL, WANTED, **KEY).status_code == 202
    (meanwhile,) = seen
    assert problem(meanwhile, 409, "idempotency_in_progress")["retriable"] is True
    assert int(meanwhile["Retry-After"]) > 0
    assert count() == 1


def test_a_call_whose_server_died_is_not_done_again(alice, brokers, monkeypatch):
    class Died(BaseException):
        pass

    def dies(**_members):
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(instances, "instance_create", dies)
        with pytest.raises(Died):
            alice.api.post(URL, WANTED, **KEY)
    problem(alice.api.post(URL, WANTED, **KEY), 409, "idempotency_in_progress")
    grow_old(timedelta(minutes=5))
    unknown = problem(alice.api.post(URL, WANTED, **KEY), 409, "idempotency_outcome_unknown")
    assert unknown["retriable"] is False
    assert count() == 0


def test_after_24_hours_a_key_is_new_and_the_row_is_swept(alice, brokers):
    alice.api.post(URL, WANTED, **KEY)
    grow_old(timedelta(hours=25))
    assert alice.api.post(URL, WANTED | {"name": "another"}, **KEY).status_code == 202
    assert count() == 2
    assert services.calls_purge() == 0
    grow_old(timedelta(hours=25))
    assert services.calls_purge(clock=SYSTEM_CLOCK) == 1
    assert not calls().exists()


def test_the_text_of_an_api_key_is_in_one_answer_and_nowhere_else(alice):
    made = alice.api.post("/api/v1/api-keys", {"name": "ci"}, **KEY)
    assert made.status_code == 201
    assert not any(made.json()["key"] in row.body for row in calls())
    again = problem(alice.api.post("/api/v1/api-keys", {"name": "ci"}, **KEY), 409, "idempotency_answer_not_kept")
    assert "not kept" in again["detail"]
    assert ApiKey.objects.unscoped("a test").filter(name="ci").count() == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "a\tb", "\N{SNOWMAN}"])
def test_what_cannot_be_a_key_is_refused(alice, brokers, key):
    answer = alice.api.post(URL, WANTED, HTTP_IDEMPOTENCY_KEY=key)
    assert "Idempotency-Key" in problem(answer, 400, "invalid")["detail"]
    assert count() == 0


def test_reading_takes_no_notice_of_a_key(alice, instance):
    assert alice.api.get(f"{URL}/{instance.id}", **KEY).status_code == 200
    assert alice.api.get(URL, **KEY).status_code == 200
    assert not calls().exists()


def test_neither_the_key_nor_the_request_is_kept_in_the_clear(alice, brokers):
    alice.api.post(URL, WANTED, **KEY)
    (row,) = calls().values()
    assert KEY["HTTP_IDEMPOTENCY_KEY"] not in str(row)
    assert "events" not in str(row)
