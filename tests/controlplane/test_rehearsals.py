"""A dry run is the call, taken back: it leaves nothing behind, and says what the call then does.

Every call that changes something by REST is asked here, with the ids and bodies of `test_foreign_ids`; one that has no dry run
stands in a list, with the reason.
"""

from __future__ import annotations

import re
from copy import deepcopy
from datetime import timedelta

import pytest
from django.urls import resolve

from controlplane.accounts import services as accounts
from controlplane.accounts.models import AccessKey, ApiKey
from controlplane.api.dry_runs import DRAWN, SECRETS, has_one, is_rehearsed
from controlplane.clusters import zookeeper
from controlplane.clusters.zookeeper import Check, Create, Delete, Put, TakenBack, VersionMismatch
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.dry_runs import differences, flat
from controlplane.env import ROOT
from controlplane.instances.models import Instance
from controlplane.kafka.group_door import Member
from controlplane.sso import asking
from controlplane.tenants.invitations import invitation_list
from controlplane.tenants.models import Membership
from controlplane.token_issuers import installed

from .conftest import run_to_the_end
from .fakes import FakeTree
from .organisations.rows import emptied
from .rows import access_key_row
from .sso.rows import provider_row
from .test_foreign_ids import (
    ACL,
    BODIES,
    DELETION,
    OF_WHAT_IS_PAID,
    OPERATORS,
    PREFIX,
    WITH_IDS,
    address,
    endpoints,
    paid_until,
    rows,
    theirs,  # noqa: F401  # a fixture
)
from .test_instances_api import problem

LOOKS = "it changes nothing"
WITHOUT = {
    ("post", "instances/<id:instance_id>/access-check"): LOOKS,
    ("post", "invoices/<id:number>/verify"): LOOKS,
}
"""Calls that cannot be asked what they would do, and why not."""
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}")
PEM = re.compile("-----BEGIN CERTIFICATE-----")
CHANGES = [(method, text) for method, text in endpoints() if method != "get"]


def view_of(text):
    """The view behind an address, whatever ids it has."""
    path = re.sub(r"<int:[^>]*>", "1", re.sub(r"<route:[^>]*>", "default", re.sub(r"<part:[^>]*>", "key", text)))
    path = re.sub(r"<id:number>", "inv-00000001", re.sub(r"<id:[^>]*>", "abc-00000000", path))
    return resolve("/" + PREFIX + re.sub(r"<[^>]*>", "default", path)).func.view_class


def test_every_change_has_a_dry_run_but_for_those_that_say_why_not():
    without = {(method, text) for method, text in CHANGES if not has_one(view_of(text), method.upper())}
    assert without == set(WITHOUT)


def test_documents_say_that_every_call_has_one():
    assert set(WITHOUT.values()) == {LOOKS}
    assert "Every call that changes something has a dry run" in (ROOT / "docs/subsystems/controlplane.md").read_text()
    said = next(
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if "`--dry-run` on every call" in line
    )
    assert "but for" not in said


# --- who gets in afterwards -------------------------------------------------------------------------------------------------


def made_for(organisation, user):
    """Keys of a member that single sign-on has made: an API key, and an access key."""
    until = SYSTEM_CLOCK.now() + timedelta(days=30)
    accounts.api_key_create(organisation=organisation, user=user, name="by sso", sso_until=until)
    pair = access_key_row(organisation, user)
    pair.sso_until = until
    pair.save(update_fields=["sso_until"])


def good(organisation):
    """What somebody gets in by: keys and links of invitations that are good, as pairs of a kind and an id."""
    organisation.refresh_from_db()
    if not organisation.is_in_use:
        return set()
    keys = ApiKey.objects.for_organisation(organisation).filter(revoked_at=None)
    found = {
        "api_keys": keys.filter(service_account__disabled_at=None),
        "access_keys": AccessKey.objects.for_organisation(organisation).filter(revoked_at=None),
        "invitations": invitation_list(organisation=organisation),
    }
    return {(who, row.pk) for who, rows_ in found.items() for row in rows_}


def ended_in_silence(said, before, after, url):
    """Of what the call has ended, what its dry run has not named. What stands in the address is the thing itself."""
    named = {(each["who"], name) for each in said["affected"] for name in each["names"]}
    return {(who, name) for who, name in before - after - named if name not in url}


HAVE_ONE = [each for each in WITH_IDS if each[0] != "get" and each not in WITHOUT]


@pytest.fixture
def everything(tree, admin, wakeups):
    """All that there is: the database, ZooKeeper, Kafka, and who was woken."""

    def look():
        kafka = (admin.topics, admin.configs, admin.groups.found, admin.transactions.found)
        return rows(), *deepcopy((tree.nodes, *kafka, list(wakeups)))

    return look


def prepared(alice, theirs, admin, flow_master, method, text):  # noqa: F811
    """The body of a call that its owner may make."""
    if "<name:member>" in text:
        (group,) = admin.groups.found.values()
        group.members.append(Member("reader-1", "reader", "10.0.0.7", ()))
    if text.endswith("/lake-loads/<id:load_id>/stop"):
        alice.api.post(address(text.replace("/stop", "/runs"), theirs), {})
    if text.endswith("/restore"):
        Instance.objects.unscoped("a test").update(state="isolated")
    if (method, text) == DELETION:
        emptied(alice.organisation)
    flow_master.answers[theirs["<id:instance_id>"]] = {}
    body = BODIES.get((method, text))
    if (method, text) in OF_WHAT_IS_PAID:
        ends_at = paid_until(alice, theirs)
        body = {**body, "ends_at": ends_at} if "ends_at" in body else body
    return body


@pytest.mark.parametrize(("method", "text"), HAVE_ONE)
def test_a_dry_run_is_answered_and_leaves_nothing(alice, theirs, admin, flow_master, everything, method, text):  # noqa: F811
    if (method, text) in OPERATORS:
        alice.user.is_staff = True
        alice.user.save()
    mia = Membership.objects.get(pk=theirs["<int:membership_id>"])
    made_for(alice.organisation, mia.user)
    of_account = alice.api.post(address("service-accounts/<id:service_account_id>/keys", theirs), {"name": "ci"})
    assert of_account.status_code == 201, of_account.content
    body = prepared(alice, theirs, admin, flow_master, method, text)
    url, call = address(text, theirs), getattr(alice.api, method)
    before = everything()
    answer = call(f"{url}?dry_run=true", body, HTTP_IDEMPOTENCY_KEY="dry")
    if text.endswith("/credit-notes"):  # of an invoice of nothing
        refused = problem(call(url, body, HTTP_IDEMPOTENCY_KEY="made"), 409, "nothing_to_credit")
        assert (problem(answer, 409, "nothing_to_credit"), everything()) == (refused, before)
        return
    assert answer.status_code == 200, answer.content
    said = answer.json()
    assert said["dry_run"] is True
    assert {"plan", "price_change", "bytes_to_move", "seconds"} <= set(said)
    assert said["plan"] or not (said["changes"] or said["affected"])
    assert everything() == before
    assert not {name.rpartition(".")[2] for name in said["changes"]} & SECRETS

    shown = alice.api.get(url)
    got_in = good(alice.organisation)
    made = call(url, body, HTTP_IDEMPOTENCY_KEY="made")
    assert made.status_code in (200, 201, 202, 204), made.content
    assert ended_in_silence(said, got_in, good(alice.organisation), url) == set()
    if shown.status_code != 200 or not is_rehearsed(view_of(text), method.upper()) or "items" in shown.json():
        return
    afterwards = alice.api.get(url)
    gone = afterwards.status_code == 404
    happened = differences(flat(shown.json()), {} if gone else flat(afterwards.json()))
    expected = {name: list(values) for name, values in happened.items() if name not in DRAWN}
    assert legible(said["changes"]) == legible(expected)


def legible(changes):
    """Without moments, which pass, and certificates, which are signed anew: within a second, with the same end."""
    changes = {name: pair for name, pair in changes.items() if name != "not_after" or None in pair}
    for said, pattern in (("a moment", MOMENT), ("a certificate", PEM)):
        changes = {
            name: [said if pattern.match(str(each)) else each for each in pair] for name, pair in changes.items()
        }
    return changes


def test_dry_runs_of_another_organisations_are_not_found(charlie, theirs, everything):  # noqa: F811
    """One after the other: none leaves anything behind."""
    before = everything()
    for method, text in sorted(set(HAVE_ONE) - OPERATORS):
        url, call = address(text, theirs), getattr(charlie.api, method)
        asked, called = (call(each, BODIES.get((method, text))) for each in (f"{url}?dry_run=true", url))
        assert problem(asked, 404, "not_found") == problem(called, 404, "not_found"), (method, text)
    assert everything() == before


def test_calls_without_one_refuse_it_and_are_not_made(alice, theirs, admin, flow_master, everything):  # noqa: F811
    for method, text in sorted(set(WITHOUT) & set(WITH_IDS)):
        body = prepared(alice, theirs, admin, flow_master, method, text)
        before = everything()
        refused = problem(getattr(alice.api, method)(f"{address(text, theirs)}?dry_run=true", body), 400, "invalid")
        assert refused["detail"] == "dry_run: this call has no dry run; nothing was changed", (method, text)
        assert everything() == before, (method, text)


def test_a_dry_run_does_not_tell_whether_a_password_is_the_present_one(alice, theirs, everything):  # noqa: F811
    url = address("instances/<id:instance_id>/users/<name:user>/password", theirs)
    assert alice.api.put(url, {"password": "correct horse battery"}).status_code == 200
    before = everything()
    told = [
        alice.api.put(f"{url}?dry_run=true", {"password": password}).content
        for password in ("correct horse battery", "wrong horse battery")
    ]
    assert everything() == before
    assert told[0] == told[1]
    assert b"horse" not in told[0]
    problem(alice.api.put(f"{url}?dry_run=true", {"password": "no"}), 400, "invalid")


def test_a_dry_run_does_not_tell_whether_another_organisation_has_a_name(alice, charlie, theirs, everything):  # noqa: F811
    url = address("organisations/<id:organisation_id>", theirs)
    before = everything()
    taken, free = (alice.api.patch(f"{url}?dry_run=true", {"name": name}).json() for name in ("charlie's", "nobody's"))
    assert everything() == before
    assert {**taken, "changes": {}, "plan": []} == {**free, "changes": {}, "plan": []}
    assert taken["changes"] == {"name": ["alice's", "charlie's"]}
    problem(alice.api.patch(url, {"name": "charlie's"}), 409, "already_exists")
    problem(alice.api.patch(f"{url}?dry_run=true", {"name": ""}), 400, "invalid")


# --- what has no id in its address ----------------------------------------------------------------------------------------


def test_a_budget_would_be_made(alice, instance, everything):
    body = {"name": "all of it", "amount": "100.00", "instance_id": instance.id}
    before = everything()
    changes = alice.api.post("/api/v1/budgets?dry_run=true", body).json()["changes"]
    assert everything() == before
    assert (changes["name"], changes["amount"]) == ([None, "all of it"], [None, "100.00"])
    assert "id" not in changes
    made = alice.api.post("/api/v1/budgets", body).json()
    assert made["name"] == "all of it"


def test_another_plan_would_hold(alice, everything):
    state = alice.api.get("/api/v1/plan").json()
    name = next(plan["name"] for plan in state["offered"] if plan["name"] != state["plan"]["name"])
    before = everything()
    answer = alice.api.put("/api/v1/plan?dry_run=true", {"plan": name})
    assert answer.json()["changes"]["next.name"] == [None, name], answer.content
    assert everything() == before
    assert alice.api.get("/api/v1/plan").json() == state


def test_what_only_operators_do_is_refused_to_owners_in_a_dry_run_too(alice, everything):
    for _ in range(2):
        before = everything()  # the second time: the first refusal of an hour goes on record, and no other
        for method, url, body in (
            ("put", "/api/v1/capacity", {"resource": "partitions", "per_broker": 1, "overcommit": 1, "reason": "r"}),
            ("post", "/api/v1/clusters", {"name": "more", "zookeeper_hosts": "127.0.0.1:1", "reason": "r"}),
            ("post", "/api/v1/rebalances", {}),
            ("post", "/api/v1/metering/waivers", {"month": "2026-05", "reason": "gone"}),
        ):
            problem(getattr(alice.api, method)(f"{url}?dry_run=true", body), 403, "forbidden")
    assert everything() == before


def test_an_operators_rebalance_would_be_planned(alice, instance, brokers, everything):
    alice.user.is_staff = True
    alice.user.save()
    before = everything()
    changes = alice.api.post("/api/v1/rebalances?dry_run=true", {}).json()["changes"]
    assert changes["state"] == [None, "planning"]
    assert everything() == before
    assert alice.api.get("/api/v1/rebalances").json()["items"] == []


ISSUER = {"label": "Corp", "issuer": "https://other.example.com", "client_id": "sluice", "client_secret": "s"}


@pytest.mark.parametrize(("method", "body"), [("patch", {"in_force": False}), ("put", ISSUER), ("delete", None)])
def test_whatever_ends_with_single_sign_on_was_named_by_the_dry_run(alice, bob, monkeypatch, everything, method, body):
    monkeypatch.setattr(asking, "endpoints_at", lambda _issuer: None)
    monkeypatch.setattr(installed, "places", lambda: ("somewhere",))
    provider = provider_row(alice.organisation)
    provider.is_on = True
    provider.save(update_fields=["is_on"])
    made_for(alice.organisation, bob.user)
    url, call = "/api/v1/sso", getattr(alice.api, method)
    before, got_in = everything(), good(alice.organisation)
    said = call(f"{url}?dry_run=true", body).json()
    assert everything() == before
    assert call(url, body).status_code in (200, 204)
    left = good(alice.organisation)
    assert len(got_in - left) == 2
    assert ended_in_silence(said, got_in, left, url) == set()


# --- the tree ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def rehearsed():
    real = FakeTree(party=None)
    real.ensure("/a")
    real.write([Create("/a/one", b"1"), Create("/a/two", b"2")])
    return real, TakenBack(real)


def test_what_is_written_in_a_dry_run_is_read_in_it_alone(rehearsed):
    real, dry = rehearsed
    before = dict(real.nodes)
    dry.write(
        [Put("/a/one", b"other", 0), Delete("/a/two", 0), Create("/a/three", b"3"), Create("/a/n-", b"", sequence=True)]
    )
    assert dry.get("/a/one") == (b"other", 1)
    assert dry.get_many(["/a/one", "/a/two", "/a/three"]) == [(b"other", 1), None, (b"3", 0)]
    assert dry.children("/a") == ["one", "three"]
    dry.ensure("/a/b/c")
    dry.write([Put("/a/one", b"again", 1)])
    assert dry.get("/a/one") == (b"again", 2)
    assert real.nodes == before


@pytest.mark.parametrize(
    "write",
    [
        Put("/a/one", b"", 1),
        Put("/a/none", b"", 0),
        Check("/a/one", 7),
        Check("/a/none", 0),
        Delete("/a/one", 3),
        Delete("/a/none"),
        Create("/a/one", b""),
    ],
)
def test_what_the_tree_would_refuse_is_refused_in_a_dry_run_and_nothing_of_it_is_kept(rehearsed, write):
    real, dry = rehearsed
    for tree in (dry, real):
        with pytest.raises(VersionMismatch):
            tree.write([Create("/a/new", b""), write])
        assert tree.get("/a/new") is None


def test_what_was_removed_can_be_made_again(rehearsed):
    _, dry = rehearsed
    dry.write([Delete("/a/one", 0), Create("/a/one", b"new")])
    assert dry.get("/a/one") == (b"new", 0)


def test_only_a_dry_run_has_a_tree_that_is_taken_back(tree, alice):
    assert zookeeper.tree(None) is tree


def test_the_operation_of_a_dry_run_is_not_there(alice, instance, everything):
    """And a real one is, afterwards."""
    before = everything()
    url = f"/api/v1/instances/{instance.id}/elastic-bandwidth"
    body = {"cap_mib_per_s": instance.bandwidth_mib_per_s * 2}
    assert alice.api.put(f"{url}?dry_run=true", body).status_code == 200
    assert everything() == before
    run_to_the_end(alice.api.put(url, body).json()["operation_id"])
    assert alice.api.get(url).json()["state"] == "on"


# --- what is there already, and what goes with it -----------------------------------------------------------------------------


def test_acls_that_are_there_would_not_be_made_once_more(alice, instance):
    url = f"/api/v1/instances/{instance.id}/acls"
    assert alice.api.post(url, ACL).status_code == 201
    other = {**ACL, "operation": "WRITE"}
    assert alice.api.post(f"{url}?dry_run=true", ACL).json()["changes"] == {}
    assert alice.api.post(f"{url}?dry_run=true", other).json()["changes"]["operation"] == [None, "WRITE"]
    assert alice.api.post(f"{url}/batch?dry_run=true", {"items": [ACL]}).json()["changes"] == {}
    said = alice.api.post(f"{url}/batch?dry_run=true", {"items": [ACL, other]}).json()["changes"]["items"]
    assert [[each["operation"] for each in part] for part in said] == [["READ"], ["READ", "WRITE"]]
    preset = {"preset": "producer", "principal": "User:ann", "topic": "orders"}
    assert alice.api.post(f"{url}/presets?dry_run=true", preset).json()["changes"] != {}
    assert alice.api.post(f"{url}/presets", preset).status_code == 201
    assert alice.api.post(f"{url}/presets?dry_run=true", preset).json()["changes"] == {}


def test_acls_that_a_filter_takes_would_go_and_of_none_nothing(alice, instance):
    url = f"/api/v1/instances/{instance.id}/acls"
    assert alice.api.post(url, ACL).status_code == 201
    (gone,) = alice.api.delete(f"{url}?dry_run=true", {"principal": "User:ann"}).json()["changes"].items()
    assert (gone[0], [each["principal"] for each in gone[1][0]], gone[1][1]) == ("items", ["User:ann"], None)
    assert alice.api.delete(f"{url}?dry_run=true", {"principal": "User:bob"}).json()["changes"] == {}


def test_acls_that_would_go_with_a_user_are_told(alice, instance):
    url = f"/api/v1/instances/{instance.id}"
    assert alice.api.post(f"{url}/users", {"name": "ann"}).status_code == 201
    assert alice.api.post(f"{url}/acls", ACL).status_code == 201
    alone = alice.api.delete(f"{url}/users/ann?dry_run=true").json()["changes"]
    assert ("name" in alone, "acls" in alone) == (True, False)
    both = (
        alice.api.delete(f"{url}/users/ann?with_acls=true&dry_run=true"),
        alice.api.delete(f"{url}/users?dry_run=true", {"name": "ann", "with_acls": True}),
    )
    for answer in both:
        before, after = answer.json()["changes"]["acls"]
        assert ([each["resource_name"] for each in before], after) == (["orders"], None)
    assert len(alice.api.get(f"{url}/acls").json()["items"]) == 1


def test_where_the_cluster_is_away_nothing_is_said_to_be_stored(alice, instance, tree, everything):
    url, body = f"/api/v1/instances/{instance.id}/whitelist", {"cidrs": ["10.0.0.0/8"]}
    before = everything()
    tree.away = True
    asked = problem(alice.api.put(f"{url}?dry_run=true", body), 503, "cluster_unavailable")
    assert "stored" not in asked["detail"]
    assert everything() == before
    made = problem(alice.api.put(url, body), 503, "cluster_unavailable")
    assert made["detail"].startswith("the change is stored")
