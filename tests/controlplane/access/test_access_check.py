"""May somebody do something: REST says what brokers go by, and which rule says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.clusters import coordination
from controlplane.core.models import AuditEntry
from quota.contracts.apart import acls_path, spec_path
from quota.contracts.instance import Authorizer, Security
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_instances_api import problem

ASKED = {
    "source": "127.0.0.7",
    "principal": "User:ann",
    "route": "scram",
    "operation": "WRITE",
    "resource_type": "TOPIC",
    "resource_name": "orders",
}
ACL = {"principal": "User:ann", "operation": "WRITE", "resource_type": "TOPIC", "resource_name": "ord"}


@pytest.fixture
def base(instance):
    return f"/api/v1/instances/{instance.id}"


@pytest.fixture
def url(base):
    return f"{base}/access-check"


@pytest.fixture
def scram(tree, instance):
    """A route on which clients log in."""
    spec = coordination.spec_read(tree, instance.id)[0]
    default = spec.routes[0]
    route = replace(default, id="scram", security=Security.SASL_PLAINTEXT.value, mechanisms=("SCRAM-SHA-256",))
    coordination.spec_write(tree, replace(spec, generation=spec.generation + 1, routes=(default, route)))


def test_each_rule_decides_once_those_before_it_let_him_pass(alice, base, url, scram):
    def answer(**members):
        found = alice.api.post(url, {**ASKED, **members}).json()
        return found["allowed"], found["rule"]["kind"], found["reason"]

    assert answer(source="10.0.0.7") == (
        False,
        "instance_whitelist",
        "10.0.0.7 is not on the whitelist of the instance",
    )
    assert answer(route="no")[:2] == (False, "route")
    assert answer() == (False, "login", "the instance has no user ann")
    alice.api.post(f"{base}/users", {"name": "ann"})
    assert answer()[:2] == (True, "no_acl")
    alice.api.post(f"{base}/acls", {**ACL, "pattern_type": "PREFIXED"})
    found = alice.api.post(url, ASKED).json()
    assert found == {
        "allowed": True,
        "rule": {
            "kind": "acl",
            "acl": {**ACL, "host": "*", "permission": "ALLOW", "pattern_type": "PREFIXED"},
        },
        "reason": "an ACL allows WRITE on TOPIC whose names begin with ord to User:ann from everywhere",
    }
    assert answer(operation="READ")[:2] == (False, "no_acl")
    alice.api.post(f"{base}/acls", {**ACL, "resource_name": "orders", "permission": "DENY", "host": "127.0.0.0/24"})
    assert answer()[:2] == (False, "acl")
    assert answer(source="127.0.1.7")[:2] == (True, "acl")


def test_a_name_without_user_is_the_user_of_that_name(alice, base, url, scram):
    alice.api.post(f"{base}/users", {"name": "ann"})
    assert alice.api.post(url, {**ASKED, "principal": "ann"}).json()["allowed"]


def test_who_has_not_logged_in_comes_by_the_default_route(alice, url):
    short = {name: ASKED[name] for name in ("source", "operation", "resource_type", "resource_name")}
    assert alice.api.post(url, short).json()["allowed"]
    named = alice.api.post(url, {**short, "principal": "User:ann"}).json()
    assert (named["allowed"], named["rule"]["kind"]) == (False, "login")


def test_it_changes_nothing_and_viewers_may_ask(alice, viewer, tree, url, instance):
    before, entries = dict(tree.nodes), AuditEntry.objects.for_organisation(alice.organisation).count()
    assert viewer.api.post(url, ASKED).status_code == 200
    assert (tree.nodes, AuditEntry.objects.for_organisation(alice.organisation).count()) == (before, entries)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": "nowhere"}, "source"),
        ({"operation": "ALL"}, "operation"),
        ({"resource_type": "ANY"}, "resource_type"),
        ({"when": "now"}, "when"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(alice, url, change, field):
    refused = problem(alice.api.post(url, {**ASKED, **change}), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == [field]


def test_acls_that_nobody_can_read_let_nobody_in_and_are_said(alice, tree, url, instance):
    tree.nodes[acls_path(instance.id)] = (b"{", 0)
    assert "nobody may connect" in problem(alice.api.post(url, ASKED), 409, "access_illegible")["detail"]


@pytest.mark.parametrize("data", [b"{", b'{"version": 99}'])
def test_a_specification_that_brokers_cannot_read_is_said_and_not_taken_for_a_wrong_address(
    alice, tree, url, instance, data
):
    path = spec_path(instance.id)
    tree.nodes[path] = (data, tree.nodes[path][1] + 1)
    told = problem(alice.api.post(url, ASKED), 503, "specification_illegible")
    assert told["detail"].startswith("brokers cannot read the specification of the instance")
    assert not told.get("errors")


def test_how_acls_are_meant_is_part_of_the_config(alice, instance, tree, brokers, base, url, scram):
    for name in ("ann", "root"):
        alice.api.post(f"{base}/users", {"name": name})
    config = {"allow_everyone_if_no_acl_found": False, "super_users": ["User:root"]}
    answer = alice.api.patch(base, {"config": config})
    assert answer.status_code == 202
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    assert tree.spec(instance.id).authorizer == Authorizer(
        allow_everyone_if_no_acl_found=False, super_users=("User:root",)
    )
    assert alice.api.get(base).json()["config"].items() >= config.items()
    found = alice.api.post(url, {**ASKED, "route": "default", "principal": "User:ANONYMOUS"}).json()
    assert (found["allowed"], found["rule"]["kind"]) == (False, "no_acl")


@pytest.mark.parametrize(
    "config",
    [
        {"super_users": ["root"]},
        {"super_users": ["User:*"]},
        {"super_users": ["User:" + "n" * 256]},
        {"super_users": [7]},
        {"super_users": "User:root"},
        {"super_users": [f"User:{at}" for at in range(51)]},
        {"allow_everyone_if_no_acl_found": "no"},
    ],
)
def test_what_the_config_cannot_say_is_refused(alice, base, config):
    refused = problem(alice.api.patch(base, {"config": config}), 400, "invalid")
    assert refused["errors"][0]["field"].startswith(f"config.{next(iter(config))}")
