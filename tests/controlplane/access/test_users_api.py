"""Users by REST: made, shown without their verifiers, given another password, deleted."""

from __future__ import annotations

import base64
import json
import logging
from datetime import timedelta

import pytest

from controlplane.access import users as services
from controlplane.access.selectors import user_shown
from controlplane.clusters import coordination
from controlplane.core.errors import AlreadyExists, ClusterUnavailable
from controlplane.core.models import AuditEntry
from controlplane.idempotency.models import RepeatableCall
from quota.contracts.apart import acls_path, users_from_json, users_path
from quota.contracts.users import MOST_USERS, ScramMechanism, User, UserSet
from quota.core import scram
from tests.controlplane.fakes import ManualClock
from tests.controlplane.test_instances_api import problem

CANARY = "canary-7f3a-never-to-be-seen"
OTHER = "another-canary-91bc-to-hide"


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/users"


def in_force(tree, instance):
    return users_from_json(coordination.beside_read(tree, users_path(instance.id))).items


def fits(user, password, *, now_ms=0):
    """Whether a password is good for each mechanism of a user at a time."""
    good = {one.mechanism for one in user.credentials if one.until_ms is None or one.until_ms > now_ms}
    return bool(good) and all(
        any(
            scram.is_password(one, password)
            for one in user.of(mechanism)
            if one.until_ms is None or one.until_ms > now_ms
        )
        for mechanism in good
    )


def test_a_new_user_is_what_brokers_read(alice, instance, tree, url):
    answer = alice.api.post(url, {"name": "ann", "password": CANARY})
    assert answer.status_code == 201
    assert answer.json() == {
        "name": "ann",
        "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"],
        "iterations": {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 8192},
        "previous_password_until": None,
        "password": None,
    }
    [user] = in_force(tree, instance)
    assert {one.mechanism for one in user.credentials} == set(ScramMechanism)
    assert all((len(one.salt), one.iterations) == (24, 8192) for one in user.credentials)
    assert len({one.salt for one in user.credentials}) == 2
    assert fits(user, CANARY)
    assert not fits(user, OTHER)


def test_a_change_node_tells_brokers(alice, instance, tree, url):
    before = len(tree.children("/sluice/changes"))
    alice.api.post(url, {"name": "ann"})
    assert len(tree.children("/sluice/changes")) == before + 1


def test_a_password_that_we_made_is_in_one_answer_and_in_no_other(alice, instance, tree, url):
    answer = alice.api.post(url, {"name": "ann", "mechanisms": ["SCRAM-SHA-512"]})
    password = answer.json()["password"]
    assert len(password) == 32
    assert "no-store" in answer["Cache-Control"]
    assert fits(in_force(tree, instance)[0], password)
    assert password not in alice.api.get(f"{url}/ann").content.decode()
    assert password not in alice.api.get(url).content.decode()


def test_the_list_shows_each_by_name_and_in_pages(alice, url):
    for name in ("cyd", "ann", "bob", "ann/of/sales"):
        assert alice.api.post(url, {"name": name, "mechanisms": ["SCRAM-SHA-256"]}).status_code == 201
    page = alice.api.get(url, {"limit": 3}).json()
    rest = alice.api.get(url, {"cursor": page["next"]}).json()
    assert [user["name"] for user in page["items"] + rest["items"]] == ["ann", "ann/of/sales", "bob", "cyd"]
    assert alice.api.get(f"{url}/ann/of/sales").json() == page["items"][1]
    assert alice.api.delete(f"{url}/ann/of/sales").status_code == 204
    assert alice.api.delete(url, {"name": "bob"}).status_code == 204
    assert [user["name"] for user in alice.api.get(url).json()["items"]] == ["ann", "cyd"]


def test_another_password_ends_the_one_before_at_once(alice, instance, tree, url):
    alice.api.post(url, {"name": "ann", "password": CANARY})
    [before] = in_force(tree, instance)
    answer = alice.api.put(f"{url}/ann/password", {"password": OTHER})
    assert (answer.status_code, answer.json()["previous_password_until"]) == (200, None)
    [after] = in_force(tree, instance)
    assert fits(after, OTHER)
    assert not fits(after, CANARY)
    assert {one.salt for one in before.credentials}.isdisjoint(one.salt for one in after.credentials)


def test_two_passwords_are_good_for_a_while_with_one_salt(alice, instance, tree, place_of):
    clock = ManualClock()
    place = place_of(alice, instance)
    services.user_create(**place, name="ann", password=CANARY)
    user, made = services.user_password_set(**place, name="ann", keep_previous_s=600, clock=clock)
    now_ms = int(clock.now().timestamp() * 1000)
    [stored] = in_force(tree, instance)
    assert stored == user
    for mechanism in ScramMechanism:
        new, old = stored.of(mechanism)
        assert (new.salt, new.iterations) == (old.salt, old.iterations)
        assert (new.until_ms, old.until_ms) == (None, now_ms + 600_000)
    for password, good_now in ((made, True), (CANARY, True), (OTHER, False)):
        assert fits(stored, password, now_ms=now_ms) is good_now
    assert not fits(stored, CANARY, now_ms=now_ms + 600_000)


def test_of_three_passwords_the_first_ends(alice, instance, tree, place_of):
    place = place_of(alice, instance)
    services.user_create(**place, name="ann", password=CANARY)
    services.user_password_set(**place, name="ann", password=OTHER, keep_previous_s=600)
    services.user_password_set(**place, name="ann", password="the third of them all", keep_previous_s=600)
    [user] = in_force(tree, instance)
    assert [len(user.of(mechanism)) for mechanism in ScramMechanism] == [2, 2]
    assert not fits(user, CANARY)
    assert fits(user, OTHER)


def test_a_rotation_is_shown_until_it_ends(alice, instance, url):
    alice.api.post(url, {"name": "ann"})
    until = alice.api.put(f"{url}/ann/password", {"keep_previous_s": 3600}).json()["previous_password_until"]
    assert until is not None
    assert alice.api.get(f"{url}/ann").json()["previous_password_until"] == until
    assert alice.api.put(f"{url}/ann/password", {"keep_previous_s": 0}).json()["previous_password_until"] is None


def test_what_has_ended_is_not_shown(alice, instance, place_of):
    clock = ManualClock()
    place = place_of(alice, instance)
    services.user_create(**place, name="ann", password=CANARY)
    user, _ = services.user_password_set(**place, name="ann", password=OTHER, keep_previous_s=60, clock=clock)
    shown = user_shown(user, clock=clock)
    assert shown.previous_password_until == clock.now() + timedelta(seconds=60)
    clock.advance(60)
    assert user_shown(user, clock=clock).previous_password_until is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "ann", "password": "short of it"}, "password"),
        ({"name": "ann", "password": "x" * 257}, "password"),
        ({"name": "ann", "password": "nul\x00in the middle"}, "password"),
        ({"name": "ann", "password": 123456789012}, "password"),
        ({"name": ""}, "name"),
        ({"name": "n" * 256}, "name"),
        ({"name": "*"}, "name"),
        ({"name": "ANONYMOUS"}, "name"),
        ({"name": "line\nend"}, "name"),
        ({"name": "ann", "mechanisms": []}, "mechanisms"),
        ({"name": "ann", "mechanisms": ["PLAIN"]}, "mechanisms"),
        ({"name": "ann", "roles": ["admin"]}, "roles"),
        ({}, "name"),
    ],
)
def test_what_cannot_be_is_refused_by_name(alice, instance, tree, url, body, field):
    refused = problem(alice.api.post(url, body), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == [field]
    assert in_force(tree, instance) == ()
    assert str(body.get("password", CANARY)) not in json.dumps(refused)


@pytest.mark.parametrize("body", [{}, None])
def test_a_password_is_not_changed_by_a_request_that_says_nothing(alice, instance, tree, url, body):
    alice.api.post(url, {"name": "ann", "password": CANARY})
    problem(alice.api.put(f"{url}/ann/password", body), 400, "invalid")
    assert fits(in_force(tree, instance)[0], CANARY)


def test_a_name_is_taken_once(alice, url):
    alice.api.post(url, {"name": "ann"})
    problem(alice.api.post(url, {"name": "ann"}), 409, "user_exists")


def test_an_unknown_user_is_not_found(alice, url):
    problem(alice.api.get(f"{url}/nobody"), 404, "not_found")
    problem(alice.api.put(f"{url}/nobody/password", {"keep_previous_s": 0}), 404, "not_found")
    problem(alice.api.delete(f"{url}/nobody"), 404, "not_found")


def test_there_are_at_most_500(alice, instance, tree, url):
    full = UserSet().changed([User(f"user-{at}", ()) for at in range(MOST_USERS)])
    coordination.beside_write(tree, instance.id, users_path(instance.id), lambda _: full.to_json())
    refused = problem(alice.api.post(url, {"name": "one-more"}), 409, "too_many_users")
    assert "500" in refused["detail"]


def test_viewers_look_and_change_nothing(alice, viewer, instance, tree, url):
    alice.api.post(url, {"name": "ann", "password": CANARY})
    before = in_force(tree, instance)
    assert viewer.api.get(url).status_code == 200
    assert viewer.api.get(f"{url}/ann").status_code == 200
    problem(viewer.api.post(url, {"name": "bob"}), 403, "forbidden")
    problem(viewer.api.put(f"{url}/ann/password", {"keep_previous_s": 0}), 403, "forbidden")
    problem(viewer.api.delete(f"{url}/ann"), 403, "forbidden")
    problem(viewer.api.delete(url, {"name": "ann"}), 403, "forbidden")
    assert in_force(tree, instance) == before


def test_no_secret_is_in_answers_errors_audit_logs_or_rows(alice, instance, tree, url, caplog):
    caplog.set_level(logging.DEBUG)
    told = []

    def call(method, path, body):
        ask, key = getattr(alice.api, method), f"{method}-{len(told)}"
        told.extend([ask(path, body), ask(path, body, HTTP_IDEMPOTENCY_KEY=key)])

    call("post", url, {"name": "ann", "password": CANARY})
    call("post", url, {"name": "ann", "password": CANARY})  # taken
    call("post", url, {"name": "", "password": CANARY, "mechanisms": ["PLAIN"]})
    call("put", f"{url}/ann/password", {"password": OTHER, "keep_previous_s": 60})
    call("put", f"{url}/ann/password", {"password": OTHER, "keep_previous_s": -1})
    call("put", f"{url}/nobody/password", {"password": OTHER})
    tree.away = True
    call("post", url, {"name": "bob", "password": CANARY})
    tree.away = False
    call("get", url, {})
    [user] = in_force(tree, instance)
    secrets = {CANARY, OTHER, CANARY[:20], OTHER[:20]}
    for one in user.credentials:
        secrets |= {text for key in (one.stored_key, one.server_key, one.salt) for text in spellings(key)}
    rows = [entry.detail for entry in AuditEntry.objects.for_organisation(alice.organisation)]
    rows += [vars(call) for call in RepeatableCall.objects.for_organisation(alice.organisation)]
    seen = [answer.content.decode() for answer in told] + [repr(row) for row in rows] + [caplog.text]
    assert [(secret, text) for secret in secrets for text in seen if secret in text] == []


def spellings(data):
    return {base64.b64encode(data).decode(), data.hex(), repr(data)}


@pytest.fixture
def acls(alice, instance):
    """Principals of the ACLs that are there, after some were made of ann and others."""
    at = f"/api/v1/instances/{instance.id}/acls"
    for principal in ("User:ann", "User:anna", "User:*"):
        for operation in ("READ", "WRITE"):
            said = {"principal": principal, "operation": operation, "resource_type": "TOPIC", "resource_name": "orders"}
            assert alice.api.post(at, said).status_code == 201
    return lambda: sorted({each["principal"] for each in alice.api.get(at).json()["items"]})


def told(answer):
    """How many ACLs went and how many stay, and whether he is still a super user."""
    assert answer.status_code == 204
    return tuple(answer.headers.get(f"Sluice-{name}") for name in ("Acls-Deleted", "Acls-Left", "Super-User"))


def test_acls_of_a_deleted_user_stay_as_in_kafka_and_are_counted(alice, url, acls):
    alice.api.post(url, {"name": "ann"})
    assert told(alice.api.delete(f"{url}/ann")) == ("0", "2", "false")
    assert acls() == ["User:*", "User:ann", "User:anna"]


@pytest.mark.parametrize("by_body", [False, True])
def test_acls_that_name_the_user_go_with_him_where_that_is_wanted_and_no_others(alice, url, acls, by_body):
    alice.api.post(url, {"name": "ann"})
    body = {"name": "ann", "with_acls": True}
    answer = alice.api.delete(url, body) if by_body else alice.api.delete(f"{url}/ann?with_acls=true")
    assert told(answer) == ("2", "0", "false")
    assert acls() == ["User:*", "User:anna"]
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(action__endswith=".delete")
    assert sorted(entry.action for entry in entries) == ["acl.delete", "user.delete"]


def test_a_deletion_that_was_broken_off_is_finished_when_it_is_asked_for_again(alice, url, acls, monkeypatch):
    alice.api.post(url, {"name": "ann"})
    with monkeypatch.context() as patch:
        patch.setattr(services, "acls_delete", _away)
        assert alice.api.delete(f"{url}/ann?with_acls=true").status_code == 503
    problem(alice.api.delete(f"{url}/ann"), 404, "not_found")
    assert told(alice.api.delete(f"{url}/ann?with_acls=true")) == ("2", "0", "false")
    assert acls() == ["User:*", "User:anna"]
    problem(alice.api.delete(f"{url}/ann?with_acls=true"), 404, "not_found")


def _away(**_members):
    raise ClusterUnavailable("away")


def test_a_user_is_deleted_although_nobody_can_read_the_acls(alice, instance, tree, url):
    alice.api.post(url, {"name": "ann"})
    tree.nodes[acls_path(instance.id)] = (b"{", 0)
    assert told(alice.api.delete(f"{url}/ann")) == ("0", None, "false")
    assert in_force(tree, instance) == ()


def test_who_is_a_super_user_by_the_config_is_said_to_stay_one(alice, instance, url):
    type(instance).objects.unscoped("a test").filter(pk=instance.pk).update(config={"super_users": ["User:ann"]})
    alice.api.post(url, {"name": "ann"})
    assert told(alice.api.delete(f"{url}/ann")) == ("0", "0", "true")


@pytest.mark.parametrize("text", ["1", "True", "yes", ""])
def test_what_is_neither_true_nor_false_deletes_nothing(alice, instance, tree, url, text):
    alice.api.post(url, {"name": "ann"})
    problem(alice.api.delete(f"{url}/ann?with_acls={text}"), 400, "invalid")
    assert len(in_force(tree, instance)) == 1


def test_each_change_is_in_the_audit_trail(alice, instance, url):
    alice.api.post(url, {"name": "ann", "password": CANARY})
    alice.api.put(f"{url}/ann/password", {"keep_previous_s": 60})
    alice.api.delete(f"{url}/ann")
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(target=f"{instance.id}/ann")
    assert [(entry.action, entry.detail) for entry in entries.order_by("at", "pk")] == [
        ("user.create", {"mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"], "generated": False}),
        ("user.password", {"keep_previous_s": 60, "generated": True}),
        ("user.delete", {"mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}),
    ]


def test_of_two_writers_at_once_both_are_kept(alice, instance, tree, place_of):
    place = place_of(alice, instance)
    others = [User("by-a-kafka-client", ()), User("and-another", ())]

    def another_writes():
        if others:
            now = users_from_json(tree.nodes.get(users_path(instance.id), (None,))[0])
            data = now.changed([*now.items, others.pop()]).to_json()
            version = tree.nodes.get(users_path(instance.id), (b"", -1))[1] + 1
            tree.nodes[users_path(instance.id)] = (data, version)

    tree.before_write = another_writes
    services.user_create(**place, name="ann", password=CANARY)
    assert [user.name for user in in_force(tree, instance)] == ["and-another", "ann", "by-a-kafka-client"]


def test_of_two_who_make_the_same_user_one_is_told(alice, instance, tree, place_of):
    place = place_of(alice, instance)

    def another_writes():
        tree.before_write = lambda: None
        services.user_create(**place, name="ann", password=OTHER)

    tree.before_write = another_writes
    with pytest.raises(AlreadyExists):
        services.user_create(**place, name="ann", password=CANARY)
    assert fits(in_force(tree, instance)[0], OTHER)


def test_users_that_nobody_can_read_are_not_overwritten(alice, instance, tree, url):
    tree.nodes[users_path(instance.id)] = (b'{"version": 1, "items": [{"name": "ann"}]}', 0)
    problem(alice.api.get(url), 409, "access_illegible")
    problem(alice.api.post(url, {"name": "bob"}), 409, "access_illegible")
    assert b"bob" not in tree.nodes[users_path(instance.id)][0]


def test_an_instance_that_is_away_is_said(alice, instance, tree, url):
    tree.away = True
    problem(alice.api.get(url), 503, "cluster_unavailable")
