"""Clients that use a topic now and that new ACLs would cut off: they are told before anything is made."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from controlplane.access import acls, cut_off, records, selectors
from controlplane.instances.selectors import instance_get
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from tests.controlplane.connections.conftest import connection, hers  # noqa: F401  # hers is a fixture

from .conftest import text_of

ANONYMOUS = "User:ANONYMOUS"
PRESET = {"preset": "producer", "principal": "User:shop", "topic": "orders"}
FORM = {**PRESET, "pattern_type": "LITERAL", "host": "*"}
ACL = {
    "permission": "ALLOW",
    "principal": "User:shop",
    "operation": "WRITE",
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "host": "*",
}


def acl(principal="User:shop", operation=AclOperation.WRITE, permission=Permission.ALLOW, kind=ResourceType.TOPIC):
    return Acl(kind, PatternType.LITERAL, "orders", principal, "*", operation, permission)


@pytest.fixture
def place(alice, instance):
    return {"organisation": alice.organisation, "instance_id": instance.id}


@pytest.fixture
def busy(hers):  # noqa: F811
    """Two clients write to orders, one without a login and one as User:shop; a third reads payments, and one is idle."""
    hers.say(
        1,
        connections=(
            connection("till-1", "10.0.0.7", principal=ANONYMOUS),
            connection("shop-1", "10.0.0.8", principal="User:shop"),
            connection("idle-1", "10.0.0.9", principal=ANONYMOUS),
        ),
        talkers=(hers.talker("till-1", produces=100), hers.talker("shop-1", produces=100, address="10.0.0.8")),
    )
    hers.say(
        2,
        connections=(connection("reader-1", "10.0.0.10", principal=ANONYMOUS),),
        talkers=(hers.talker("reader-1", "payments", consumes=100, address="10.0.0.10"),),
    )
    return hers


def cut_by(place, *added):
    found = cut_off.acls_cut_off(**place, added=added)
    return [(each.topic, each.principal, each.operation, each.clients) for each in found]


def test_the_first_acl_of_a_topic_cuts_off_who_uses_it_without_a_login(place, busy):
    assert cut_by(place, acl()) == [("orders", ANONYMOUS, "WRITE", ("till-1 (10.0.0.7)",))]


def test_where_one_allows_them_as_well_nobody_is_cut_off(place, busy):
    assert cut_by(place, acl(), acl(ANONYMOUS)) == []


def test_one_that_denies_cuts_off_whom_it_names(place, busy):
    acls.acls_create(**place, actor="a", acls=[acl(), acl(ANONYMOUS)])
    denied = acl("User:shop", permission=Permission.DENY)
    assert cut_by(place, denied) == [("orders", "User:shop", "WRITE", ("shop-1 (10.0.0.8)",))]


def test_whoever_is_refused_already_is_not_told(place, busy):
    acls.acls_create(**place, actor="a", acls=[acl()])
    assert cut_by(place, acl("User:other")) == []


def test_where_nobody_can_be_asked_nobody_is_told(place, busy, admin):
    admin.connections.away = {1, 2}
    assert cut_by(place, acl()) == []


def test_a_dry_run_names_them_and_makes_nothing(alice, instance, place, busy):
    url = f"/api/v1/instances/{instance.id}/acls"
    effect = f"use topic orders now as {ANONYMOUS}: WRITE would be refused to them"
    told = [{"who": "clients", "count": 1, "names": ["till-1 (10.0.0.7)"], "effect": effect}]
    for address, body in ((url, ACL), (f"{url}/presets", PRESET), (f"{url}/batch", {"items": [ACL]})):
        assert alice.api.post(f"{address}?dry_run=true", body).json()["affected"] == told, address
    assert selectors.acl_list(**place) == []


def test_another_organisation_learns_nothing_of_them(charlie, instance, busy):
    for path in ("acls", "acls/presets"):
        body = PRESET if path.endswith("presets") else ACL
        assert charlie.api.post(f"/api/v1/instances/{instance.id}/{path}?dry_run=true", body).status_code == 404


@pytest.mark.parametrize(("path", "form", "made"), [("new-acl", ACL, 1), ("new-acls", FORM, 3)])
def test_the_console_lists_them_and_makes_nothing_until_that_is_confirmed(
    at_alice, instance, place, busy, path, form, made
):
    at = f"instances/{instance.id}/{path}"
    assert 'name="accept_cut_off"' not in at_alice.get(at).content.decode()
    page = at_alice.post(at, form)
    assert page.status_code == 422
    assert f"1 client uses orders now as {ANONYMOUS}; WRITE will be refused to it: till-1 (10.0.0.7)" in text_of(page)
    assert "shop-1" not in text_of(page)
    assert 'name="accept_cut_off"' in page.content.decode()
    assert selectors.acl_list(**place) == []
    assert at_alice.post(at, {**form, "accept_cut_off": "on", "cut_off_shown": "of another list"}).status_code == 422
    assert selectors.acl_list(**place) == []
    shown = re.search(r'name="cut_off_shown" value="([0-9a-f]{64})"', page.content.decode())[1]
    assert at_alice.post(at, {**form, "accept_cut_off": "on", "cut_off_shown": shown}).status_code == 302
    assert len(selectors.acl_list(**place)) == made


def test_where_nobody_is_cut_off_nothing_is_asked(at_alice, instance, place, hers):  # noqa: F811
    assert at_alice.post(f"instances/{instance.id}/new-acl", ACL).status_code == 302
    assert selectors.acl_list(**place) == [acl()]


# --- deleting -------------------------------------------------------------------------------------------------------------


def then(place, *removed):
    found = cut_off.acls_cut_off(**place, removed=list(removed).__contains__)
    return [(each.topic, each.principal, each.operation, each.clients, each.is_let_in) for each in found]


def test_without_the_acl_that_allows_it_a_client_is_cut_off(place, busy):
    allowed, other = acl(), acl("User:other")
    acls.acls_create(**place, actor="a", acls=[allowed, other])
    assert then(place, allowed) == [("orders", "User:shop", "WRITE", ("shop-1 (10.0.0.8)",), False)]
    assert then(place, other) == []


def test_without_the_last_acl_of_a_topic_whoever_is_connected_is_let_in(place, busy, instance):
    only = acl("User:other")
    acls.acls_create(**place, actor="a", acls=[only])
    found = then(place, only)
    assert {(topic, principal, is_let_in) for topic, principal, _, _, is_let_in in found} == {
        ("orders", ANONYMOUS, True),
        ("orders", "User:shop", True),
    }
    assert {client for _, _, _, clients, _ in found for client in clients} >= {"idle-1 (10.0.0.9)", "shop-1 (10.0.0.8)"}


def test_without_the_acl_that_denies_it_a_client_is_let_in(place, busy):
    denies = acl("User:shop", permission=Permission.DENY)
    acls.acls_create(**place, actor="a", acls=[acl(), acl(ANONYMOUS), denies])
    assert then(place, denies) == [("orders", "User:shop", "WRITE", ("shop-1 (10.0.0.8)",), True)]


def test_an_acl_of_a_group_is_told_nothing_of(place, busy):
    of_group = acl(kind=ResourceType.GROUP, operation=AclOperation.READ)
    acls.acls_create(**place, actor="a", acls=[of_group])
    assert then(place, of_group) == []


def test_a_dry_run_of_deleting_names_them(alice, instance, place, busy):
    acls.acls_create(**place, actor="a", acls=[acl(), acl("User:other")])
    url = f"/api/v1/instances/{instance.id}/acls?dry_run=true"
    told = alice.api.delete(url, {"principal": "User:shop"}).json()["affected"]
    effect = "use topic orders now as User:shop: WRITE would be refused to them"
    assert told == [{"who": "clients", "count": 1, "names": ["shop-1 (10.0.0.8)"], "effect": effect}]
    assert len(selectors.acl_list(**place)) == 2


def test_the_console_deletes_nothing_until_that_is_confirmed(at_alice, instance, place, busy):
    acls.acls_create(**place, actor="a", acls=[acl(), acl("User:other")])
    at = f"instances/{instance.id}/acl-deletion"
    page = at_alice.post(at, ACL)
    assert page.status_code == 422
    assert "1 client uses orders now as User:shop; WRITE will be refused to it: shop-1 (10.0.0.8)" in text_of(page)
    assert "Nothing has been deleted yet." in text_of(page)
    assert len(selectors.acl_list(**place)) == 2
    assert at_alice.post(at, {**ACL, "accept_cut_off": "on", "cut_off_shown": "of another list"}).status_code == 422
    assert len(selectors.acl_list(**place)) == 2
    body = page.content.decode()
    shown = re.search(r'name="cut_off_shown" value="([0-9a-f]{64})"', body)[1]
    hidden = dict(re.findall(r'<input type="hidden" name="(?!csrf|cut_off|next)(\w+)" value="([^"]*)"', body))
    assert hidden == ACL, "the page sends what it was sent"
    assert at_alice.post(at, {**hidden, "accept_cut_off": "on", "cut_off_shown": shown}).status_code == 302
    assert [each.principal for each in selectors.acl_list(**place)] == ["User:other"]


def test_deleting_one_that_nobody_uses_asks_nothing(at_alice, instance, place, busy):
    acls.acls_create(**place, actor="a", acls=[acl(), acl("User:other")])
    assert at_alice.post(f"instances/{instance.id}/acl-deletion", {**ACL, "principal": "User:other"}).status_code == 302


def test_clients_that_come_and_go_do_not_undo_what_was_confirmed(at_alice, instance, place, busy):
    acls.acls_create(**place, actor="a", acls=[acl(), acl("User:other")])
    at = f"instances/{instance.id}/acl-deletion"
    shown = re.search(r'name="cut_off_shown" value="([0-9a-f]{64})"', at_alice.post(at, ACL).content.decode())[1]
    busy.say(
        1,
        connections=(connection("shop-2", "10.0.0.18", principal="User:shop"),),
        talkers=(busy.talker("shop-2", produces=100, address="10.0.0.18"),),
    )
    assert at_alice.post(at, {**ACL, "accept_cut_off": "on", "cut_off_shown": shown}).status_code == 302
    assert [each.principal for each in selectors.acl_list(**place)] == ["User:other"]


def test_another_principal_that_has_come_meanwhile_is_shown(at_alice, instance, place, busy):
    everybody = acl("User:*")
    acls.acls_create(**place, actor="a", acls=[everybody, acl("User:other")])
    at, form = f"instances/{instance.id}/acl-deletion", {**ACL, "principal": "User:*"}
    shown = re.search(r'name="cut_off_shown" value="([0-9a-f]{64})"', at_alice.post(at, form).content.decode())[1]
    busy.say(
        2,
        connections=(connection("till-2", "10.0.0.19", principal="User:till"),),
        talkers=(busy.talker("till-2", produces=100, address="10.0.0.19"),),
    )
    assert at_alice.post(at, {**form, "accept_cut_off": "on", "cut_off_shown": shown}).status_code == 422
    assert len(selectors.acl_list(**place)) == 2


def test_only_topics_that_the_acls_name_are_looked_at(place, busy, monkeypatch):
    """Everything else is as it was, whoever is connected."""
    asked = set()

    class Noting(cut_off.AclBook):
        def decide(self, *about):
            asked.add(about[-1])
            return super().decide(*about)

    monkeypatch.setattr(cut_off, "AclBook", Noting)
    monkeypatch.setattr(cut_off, "_used", lambda _told: ())
    for pattern, name, topics in (
        (PatternType.LITERAL, "orders", {"orders"}),
        (PatternType.PREFIXED, "pay", {"payments"}),
        (PatternType.LITERAL, "*", {"orders", "payments"}),
    ):
        one = Acl(ResourceType.TOPIC, pattern, name, "User:x", "*", AclOperation.READ, Permission.ALLOW)
        acls.acls_create(**place, actor="a", acls=[one])
        asked.clear()
        then(place, one)
        assert asked == topics


def test_each_of_many_acls_is_looked_at_a_few_times_alone(place, busy, monkeypatch):
    many = [
        Acl(ResourceType.TOPIC, PatternType.LITERAL, f"t{n}", "User:x", "*", AclOperation.READ, Permission.ALLOW)
        for n in range(300)
    ]
    compared = []
    spec = SimpleNamespace(
        acls=SimpleNamespace(items=tuple(many)),
        authorizer=records.spec_read(instance_get(**place)).authorizer,
    )
    monkeypatch.setattr(cut_off.records, "spec_read", lambda _instance: spec)
    is_same = Acl.__eq__
    monkeypatch.setattr(Acl, "__eq__", lambda self, other: compared.append(1) or is_same(self, other))
    cut_off.acls_cut_off(**place, removed=lambda each: each.resource_name != "t0")
    assert len(compared) < 3 * len(many)
