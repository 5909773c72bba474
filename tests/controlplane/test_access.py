"""Who may call, and what is of others: keys, roles, and the 404 of every path for a stranger."""

from __future__ import annotations

import random

import pytest

from controlplane.accounts import keys
from controlplane.accounts import services as accounts
from controlplane.accounts.identity import links
from controlplane.accounts.joining import demo_tenant_ensure
from controlplane.accounts.models import ApiKey, LinkPurpose, MailedLink, SecondFactor, User
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.sealed import sealed
from controlplane.tenants.models import Membership

from .conftest import WANTED, client_of
from .test_instances_api import problem

PATHS = [
    ("get", "", None),
    ("patch", "", {"name": "mine"}),
    ("delete", "", None),
    ("put", "/whitelist", {"cidrs": ["0.0.0.0/0"]}),
    ("get", "/allocation", None),
    ("get", "/topics", None),
    ("post", "/topics", {"name": "t", "partitions": 1}),
    ("get", "/topics/orders", None),
    ("patch", "/topics/orders", {"partitions": 9}),
    ("delete", "/topics/orders", None),
    ("put", "/topics/orders/whitelist", {"cidrs": []}),
]


@pytest.fixture
def orders(alice, instance):
    assert alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders"}).status_code == 201


@pytest.mark.parametrize(("method", "path", "body"), PATHS)
def test_a_strangers_id_is_not_found_and_nothing_happens(
    alice, charlie, instance, orders, tree, admin, method, path, body
):
    nodes, topics = dict(tree.nodes), dict(admin.topics)
    answer = getattr(charlie.api, method)(f"/api/v1/instances/{instance.id}{path}", body)
    theirs = problem(answer, 404, "not_found")
    missing = getattr(charlie.api, method)(f"/api/v1/instances/ins-00000000{path}", body)
    assert theirs["detail"].replace(instance.id, "ins-00000000") == problem(missing, 404, "not_found")["detail"]
    assert (tree.nodes, admin.topics) == (nodes, topics)
    instance.refresh_from_db()
    assert instance.state == "running"


def test_operations_and_keys_of_others_are_not_found(alice, charlie, instance):
    operation_id = alice.api.get("/api/v1/operations").json()["items"][0]["id"]
    problem(charlie.api.get(f"/api/v1/operations/{operation_id}"), 404, "not_found")
    key_id = alice.api.get("/api/v1/api-keys").json()["items"][0]["id"]
    problem(charlie.api.delete(f"/api/v1/api-keys/{key_id}"), 404, "not_found")
    assert alice.api.get("/api/v1/me").status_code == 200
    for path in ("instances", "operations"):
        assert charlie.api.get(f"/api/v1/{path}").json()["items"] == []


@pytest.mark.parametrize(("method", "path", "body"), PATHS)
def test_without_a_key_every_path_is_401(client, instance, method, path, body):
    answer = getattr(client, method)(f"/api/v1/instances/{instance.id}{path}", body, content_type="application/json")
    problem(answer, 401, "unauthenticated")
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", ["Bearer", "Bearer x", "Basic YTpi", "Bearer slc_aaaaaaaa_" + "a" * 40, "Bearer ä"])
def test_a_wrong_key_is_401(client, db, header):
    problem(client.get("/api/v1/instances", headers={"authorization": header}), 401, "unauthenticated")


def test_half_a_key_is_401(alice):
    wrong_end = alice.key[:-1] + ("a" if alice.key[-1] != "a" else "b")
    problem(client_of(wrong_end).get("/api/v1/me"), 401, "unauthenticated")


def test_a_viewer_looks_and_changes_nothing(viewer, instance):
    base = f"/api/v1/instances/{instance.id}"
    assert viewer.api.get(base).status_code == 200
    problem(viewer.api.post("/api/v1/instances", WANTED), 403, "forbidden")
    problem(viewer.api.put(f"{base}/whitelist", {"cidrs": []}), 403, "forbidden")
    problem(viewer.api.patch(base, {"name": "mine"}), 403, "forbidden")
    problem(viewer.api.delete(base), 403, "forbidden")
    instance.refresh_from_db()
    assert (instance.name, instance.state) == (WANTED["name"], "running")


def test_me_says_who_where_and_as_what(bob):
    assert bob.api.get("/api/v1/me").json() == {
        "email": "bob@example.com",
        "service_account": None,
        "role": "member",
        "custom_role": None,
        "organisation": {"id": bob.organisation.id, "name": "alice's"},
        "key": {
            "id": ApiKey.objects.for_organisation(bob.organisation).get(user=bob.user).pk,
            "name": "test",
            "scopes": None,
            "instances": None,
            "addresses": None,
            "expires_at": None,
        },
        "address": "127.0.0.1",
    }


def test_me_says_the_address_as_a_whitelist_would_judge_it(bob):
    for seen, judged in (("::ffff:10.1.2.3", "10.1.2.3"), ("2001:db8::7", "2001:db8::7"), ("", None)):
        assert bob.api.get("/api/v1/me", REMOTE_ADDR=seen).json()["address"] == judged


def test_a_new_key_works_is_shown_once_and_ends_when_revoked(alice):
    made = alice.api.post("/api/v1/api-keys", {"name": "ci"})
    assert made.status_code == 201
    new = client_of(made.json()["key"])
    assert new.get("/api/v1/me").json()["email"] == "alice@example.com"
    listed = alice.api.get("/api/v1/api-keys")
    assert made.json()["key"].encode() not in listed.content
    assert alice.api.delete(f"/api/v1/api-keys/{made.json()['id']}").status_code == 204
    problem(new.get("/api/v1/me"), 401, "unauthenticated")


def test_only_owners_revoke_keys_of_other_people(alice, bob):
    rows = ApiKey.objects.for_organisation(alice.organisation)
    alices, bobs = rows.get(user=alice.user), rows.get(user=bob.user)
    problem(bob.api.delete(f"/api/v1/api-keys/{alices.pk}"), 403, "forbidden")
    assert alice.api.get("/api/v1/me").status_code == 200
    assert alice.api.delete(f"/api/v1/api-keys/{bobs.pk}").status_code == 204
    problem(bob.api.get("/api/v1/me"), 401, "unauthenticated")


def test_a_key_dies_with_the_membership_and_with_the_person(alice, bob):
    Membership.objects.filter(user=bob.user).delete()
    problem(bob.api.get("/api/v1/instances"), 401, "unauthenticated")
    User.objects.filter(pk=alice.user.pk).update(is_active=False)
    problem(alice.api.get("/api/v1/instances"), 401, "unauthenticated")


def test_no_part_of_a_keys_secret_is_stored(alice):
    row = ApiKey.objects.for_organisation(alice.organisation).get()
    secret = alice.key.rpartition("_")[2]
    assert all(secret not in str(value) for value in vars(row).values())
    assert keys.matches(alice.key, row.digest)


def test_keys_come_from_the_source_that_is_handed_in():
    assert keys.generate(random.Random(1)) == keys.generate(random.Random(1))
    assert keys.generate(random.Random(1)) != keys.generate(random.Random(2))


def test_a_demo_tenant_is_made_once_and_its_key_shown_once(db):
    organisation, key = demo_tenant_ensure(name="Demo A")
    assert client_of(key).get("/api/v1/me").json()["organisation"]["name"] == "Demo A"
    assert demo_tenant_ensure(name="Demo A") == (organisation, None)


def test_the_admin_gets_the_password_given_last(db):
    admin, made = accounts.admin_ensure(email="admin@sluice.invalid", password="first password")
    assert made
    assert admin.check_password("first password")
    again, made = accounts.admin_ensure(email="Admin@sluice.invalid", password="second password")
    assert (again.pk, made) == (admin.pk, False)
    assert again.check_password("second password")
    assert again.is_superuser


def test_who_becomes_an_operator_leaves_keys_factors_and_links_behind(alice, charlie):
    """Keys of an operator act everywhere, and whoever had the account before must not sign in as one."""
    now = SYSTEM_CLOCK.now()
    User.objects.filter(pk=alice.user.pk).update(second_factor_at=now)
    secret = sealed(SecondFactor, "secret", b"x", user_id=alice.user.pk)
    SecondFactor.objects.create(user=alice.user, secret=secret, last_step=1)
    links.link_make(user=alice.user, purpose=LinkPurpose.RESET, address=alice.user.email, now=now)
    admin, made = accounts.admin_ensure(email="Alice@example.com", password="a password of ours")
    assert (admin.pk, made, admin.is_staff, admin.second_factor_at) == (alice.user.pk, False, True, None)
    assert client_of(alice.key).get("/api/v1/me").status_code == 401
    assert client_of(charlie.key).get("/api/v1/me").status_code == 200
    assert not SecondFactor.objects.filter(user=admin).exists()
    assert not MailedLink.objects.filter(user=admin, used_at=None).exists()
    _, text = accounts.api_key_create(organisation=alice.organisation, user=admin, name="an operator's")
    User.objects.filter(pk=admin.pk).update(second_factor_at=now)
    accounts.admin_ensure(email="alice@example.com", password="another password of ours")
    assert client_of(text).get("/api/v1/me").status_code == 200, "who is one already keeps theirs"
    assert User.objects.get(pk=admin.pk).second_factor_at is not None
