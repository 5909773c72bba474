"""`sluice service-account`: what programs act as, and the keys of it."""

from __future__ import annotations

from controlplane.accounts.models import ApiKey
from tests.controlplane.conftest import client_of


def test_the_life_of_one(ok, as_alice, alice):
    made = ok(
        "service-account", "create", "pipeline", "--role", "viewer", "--description", "deploys", "-o", "json"
    ).json
    (row,) = ok("service-account", "list", "-o", "json").json["items"]
    assert row == made == ok("service-account", "show", made["id"], "-o", "json").json
    changed = ok("service-account", "change", made["id"], "--name", "deployer", "--role", "member", "-o", "json").json
    assert (changed["name"], changed["role"], changed["description"]) == ("deployer", "member", "deploys")
    ran = ok("service-account", "key", made["id"], "ci", "--scope", "topics", "-o", "json")
    api = client_of(ran.json["key"])
    ok("service-account", "disable", made["id"])
    assert api.get("/api/v1/me").status_code == 401
    ok("service-account", "enable", made["id"])
    assert "The secret is shown this once." in ok("service-account", "key", made["id"], "other").err
    assert api.get("/api/v1/me").json()["key"]["scopes"] == ["topics"]
    key, other = ok("service-account", "keys", made["id"], "-o", "json").json["items"]
    assert (key["id"], other["name"]) == (ran.json["id"], "other")
    assert as_alice("service-account", "delete", made["id"], stdin="another\n").status == 2
    assert f"{made['id']} is deleted." in ok("service-account", "delete", made["id"], stdin=f"{made['id']}\n").err
    assert ApiKey.objects.for_organisation(alice.organisation).get(pk=key["id"]).revoked_at is not None
    assert as_alice("service-account", "show", made["id"]).status == 4
    assert as_alice("service-account", "create", "x", "--role", "owner").status == 2
