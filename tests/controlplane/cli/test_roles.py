"""`sluice role`: roles of the organisation's own, and giving one."""

from __future__ import annotations


def test_the_life_of_one(ok, as_alice, alice, bob):
    made = ok("role", "create", "on call", "--look", "read", "--change", "alarms", "-o", "json").json
    assert made["scopes"] == {"read": "look", "alarms": "change"}
    (row,) = ok("role", "list", "-o", "json").json["items"]
    assert row == made == ok("role", "show", made["id"], "-o", "json").json
    changed = ok("role", "change", made["id"], "--name", "nights", "--look", "topics", "-o", "json").json
    assert (changed["name"], changed["scopes"]) == ("nights", {"topics": "look"})
    assert ok("role", "change", made["id"], "--all-instances", "-o", "json").json["instances"] is None
    assert ok("member", "role", "bob@example.com", made["id"], "-o", "json").json["custom_role"]["name"] == "nights"
    assert as_alice("role", "delete", made["id"], "--yes").status == 1
    assert ok("member", "role", "bob@example.com", "viewer", "-o", "json").json["custom_role"] is None
    account = ok("service-account", "create", "ci", "--role", made["id"], "-o", "json").json
    assert account["custom_role"]["id"] == made["id"]
    ok("service-account", "change", account["id"], "--role", "viewer")
    assert as_alice("role", "delete", made["id"], stdin="another\n").status == 2
    assert f"{made['id']} is deleted." in ok("role", "delete", made["id"], stdin=f"{made['id']}\n").err


def test_inviting_with_one_and_with_those_that_every_organisation_has(ok, alice):
    made = ok("role", "create", "on call", "--look", "read", "-o", "json").json
    asked = ok("member", "invite", "dora@example.com", "--role", made["id"], "-o", "json").json
    assert (asked["role"], asked["custom_role"]["name"]) == ("viewer", "on call")
    assert "on call" in ok("invitation", "list").out
    for role in ("operator", "billing"):
        asked = ok("member", "invite", f"{role}@example.com", "--role", role, "-o", "json").json
        assert (asked["role"], asked["custom_role"]) == (role, None)


def test_what_contradicts_itself_is_not_sent(as_alice, alice, bob):
    assert as_alice("member", "invite", "dora@example.com", "--role", "king").status == 2
    assert as_alice("member", "role", "bob@example.com", "king").status == 2
    assert as_alice("role", "change", "rol-abcdefghijkl", "--instance", "x", "--all-instances").status == 2
    assert as_alice("role", "change", "rol-abcdefghijkl", "--name", "x").status == 4
