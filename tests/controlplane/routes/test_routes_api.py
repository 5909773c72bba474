"""Routes by REST: opened, changed and removed while others stay as they are, and what brokers are told of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.clusters.models import PortAllocation
from controlplane.core import operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances import lifecycle, reconcile
from controlplane.instances.models import Instance, Route
from controlplane.instances.plan import Settled
from controlplane.routes.validation import DEFAULTS
from tests.controlplane.conftest import run_to_the_end

SCRAM = {"security": "sasl_ssl", "mechanisms": ["SCRAM-SHA-512"]}


def problem(answer):
    """Status, code, and what is said of each member."""
    document = answer.json()
    return answer.status_code, document["code"], {each["field"]: each["detail"] for each in document.get("errors", ())}


def published(tree, instance):
    return {route.id: route for route in tree.spec(instance.id).routes}


def ports(instance, route):
    rows = PortAllocation.objects.filter(owner=instance.id, route=route, state="held")
    return {row.broker.broker_id: row.port for row in rows}


# --- opening ----------------------------------------------------------------------------------------------------------


def test_an_instance_begins_with_its_default_route(alice, instance, url):
    default = {
        "id": "default",
        "security": "plaintext",
        "mechanisms": [],
        "bootstrap": "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102",
        "state": "running",
        "allow_plain_in_clear": False,
        "client_certificates": "none",
        "principal_mapping": [],
        "proxy_protocol": False,
        "whitelist": None,
        "connections": None,
        "connections_per_address": None,
        "advertised_host": "",
        "advertised_hosts": {},
        "public": False,
        "closes_at": None,
    }
    [shown] = alice.api.get(url).json()["items"]
    assert shown.pop("created_at")
    assert shown == default


def test_a_new_route_has_ports_of_its_own_and_comes_up_in_visible_steps(alice, instance, url, tree):
    before = published(tree, instance)["default"]
    answer = alice.api.post(url, SCRAM | {"whitelist": ["10.0.0.0/8"], "connections": 50})
    assert answer.status_code == 202
    assert answer.json()["id"] == "r2"
    assert alice.api.get(f"{url}/r2").json()["state"] == "creating"
    done = run_to_the_end(answer.json()["operation_id"])
    steps = ["allocate addresses", "write specification", "wait for brokers", "open for use"]
    assert [(step["name"], step["state"]) for step in done.steps] == [(name, "succeeded") for name in steps]
    assert done.result == {"instance_id": instance.id, "route_id": "r2"}
    shown = alice.api.get(f"{url}/r2").json()
    assert (shown["state"], shown["security"], shown["mechanisms"]) == ("running", "sasl_ssl", ["SCRAM-SHA-512"])
    assert shown["bootstrap"] == "127.0.0.1:20103,127.0.0.1:20104,127.0.0.1:20105"
    told = published(tree, instance)
    assert told["default"] == before
    assert {broker: each.bind[1] for broker, each in told["r2"].endpoints.items()} == ports(instance, "r2")
    assert (told["r2"].security, told["r2"].whitelist, told["r2"].connections) == ("sasl_ssl", ("10.0.0.0/8",), 50)


def test_the_instance_shows_its_routes_and_its_bootstrap_stays_the_default_routes(alice, instance, opened, url):
    opened()
    for shown in (
        alice.api.get(f"/api/v1/instances/{instance.id}").json(),
        alice.api.get("/api/v1/instances").json()["items"][0],
    ):
        assert [route["id"] for route in shown["routes"]] == ["default", "r2"]
        assert shown["bootstrap"] == "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102"


def test_what_a_route_says_reaches_brokers(instance, opened, tree):
    end = datetime(2040, 1, 2, 3, 4, 5, tzinfo=UTC)
    members = {
        "security": "ssl",
        "client_certificates": "required",
        "principal_mapping": ["RULE:^CN=(.*?),.*$/$1/L", "DEFAULT"],
        "proxy_protocol": True,
        "connections_per_address": 3,
        "public": True,
        "closes_at": end.isoformat(),
        "advertised_host": "kafka.example.com",
        "advertised_hosts": {"2": "203.0.113.2"},
    }
    shown = opened(**members)
    assert {name: shown[name] for name in members} == members | {"closes_at": "2040-01-02T03:04:05Z"}
    assert shown["bootstrap"] == "kafka.example.com:20103,203.0.113.2:20104,kafka.example.com:20105"
    route = published(tree, instance)["r2"]
    assert route.closes_at_ms == 2_209_086_245_000 == round(end.timestamp() * 1000)
    assert (route.client_certificates, route.proxy_protocol, route.connections_per_address) == ("required", True, 3)
    assert route.principal_mapping == ("RULE:^CN=(.*?),.*$/$1/L", "DEFAULT")
    assert [route.endpoints[broker].advertised[0] for broker in (1, 2, 3)] == [
        "kafka.example.com", "203.0.113.2", "kafka.example.com",
    ]  # fmt: skip
    assert {endpoint.bind[0] for endpoint in route.endpoints.values()} == {"127.0.0.1"}


def test_a_broker_that_comes_later_gets_a_port_for_each_route(instance, opened, brokers, tree):
    opened()
    brokers.start(4)
    assert isinstance(reconcile.converge(instance.id), Settled)
    assert all(set(route.endpoints) == {1, 2, 3, 4} for route in published(tree, instance).values())


def test_a_port_that_is_taken_is_replaced_for_the_route_that_has_it(instance, opened, brokers, tree):
    opened()
    before = published(tree, instance)
    brokers.taken_ports.add(20104)
    brokers.apply()
    assert isinstance(reconcile.converge(instance.id), Settled)
    after = published(tree, instance)
    assert after["default"] == before["default"]
    assert {broker: each.bind[1] for broker, each in after["r2"].endpoints.items()} == {1: 20103, 2: 20106, 3: 20105}


def test_a_route_that_brokers_cannot_open_fails_with_their_words_and_stands_in_nobodys_way(
    alice, instance, url, brokers, tree, opened
):
    brokers.unserved.add("ssl")
    answer = alice.api.post(url, {"security": "ssl"})
    done = run_to_the_end(answer.json()["operation_id"])
    assert done.state == "failed"
    assert "route r2: this broker does not serve 'ssl'" in done.error
    assert alice.api.get(f"{url}/r2").json()["state"] == "failed"
    opened()
    assert set(published(tree, instance)) == {"default", "r3"}
    brokers.unserved.clear()
    again = alice.api.patch(f"{url}/r2", {"connections": 5})
    assert run_to_the_end(again.json()["operation_id"]).state == "succeeded"
    assert alice.api.get(f"{url}/r2").json()["state"] == "running"
    assert set(published(tree, instance)) == {"default", "r2", "r3"}


def test_a_worker_that_dies_leaves_a_route_that_comes_up_all_the_same(alice, instance, url, monkeypatch):
    answer = alice.api.post(url, {"security": "plaintext"})
    with monkeypatch.context() as patch:
        patch.setattr(reconcile, "publish", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        operations.run(answer.json()["operation_id"])
    first = ports(instance, "r2")
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    assert ports(instance, "r2") == first


# --- limits -----------------------------------------------------------------------------------------------------------


def test_there_are_five_at_most_and_one_public(alice, url, opened):
    opened(public=True)
    assert problem(alice.api.post(url, {"security": "plaintext", "public": True}))[:2] == (409, "public_route_limit")
    for _ in range(3):
        opened()
    assert problem(alice.api.post(url, {"security": "plaintext"}))[:2] == (409, "route_limit")
    assert problem(alice.api.patch(f"{url}/r3", {"public": True}))[:2] == (409, "public_route_limit")
    gone = alice.api.delete(f"{url}/r2")
    run_to_the_end(gone.json()["operation_id"])
    assert alice.api.patch(f"{url}/r3", {"public": True}).status_code == 202


def test_an_id_is_never_used_again(alice, url, opened):
    opened()
    run_to_the_end(alice.api.delete(f"{url}/r2").json()["operation_id"])
    assert opened()["id"] == "r3"


@pytest.mark.parametrize(
    ("members", "field", "words"),
    [
        ({"security": "tls"}, "security", "must be one of "),
        ({"security": "sasl_ssl"}, "mechanisms", "needs one or more of PLAIN"),
        ({"security": "sasl_ssl", "mechanisms": ["GSSAPI"]}, "mechanisms.0", "must be one of "),
        ({"security": "sasl_ssl", "mechanisms": ["PLAIN", "PLAIN"]}, "mechanisms", "twice"),
        ({"security": "ssl", "mechanisms": ["PLAIN"]}, "mechanisms", "nobody logs in"),
        ({"security": "sasl_plaintext", "mechanisms": ["PLAIN"]}, "mechanisms", "shows passwords"),
        ({"security": "sasl_plaintext", "mechanisms": ["OAUTHBEARER"]}, "mechanisms", "shows tokens"),
        ({"security": "ssl", "allow_plain_in_clear": True}, "allow_plain_in_clear", "is for PLAIN or OAUTHBEARER"),
        ({"security": "plaintext", "client_certificates": "required"}, "client_certificates", "no TLS"),
        ({"security": "ssl", "principal_mapping": ["DEFAULT"]}, "principal_mapping", "set client_certificates"),
        ({"security": "ssl", "client_certificates": "required", "principal_mapping": ["CN=x"]}, "principal_mapping", "no rule"),
        ({"security": "plaintext", "whitelist": ["10.0.0.1/8"]}, "whitelist.0", "did you mean 10.0.0.0/8"),
        ({"security": "plaintext", "connections": -1}, "connections", "greater than or equal to 0"),
        ({"security": "plaintext", "closes_at": "2020-01-01T00:00:00Z"}, "closes_at", "must be in the future"),
        ({"security": "plaintext", "closes_at": "tomorrow"}, "closes_at", "wrong format"),
        ({"security": "plaintext", "advertised_host": "kafka.example.com:9092"}, "advertised_host", "the port is given out"),
        ({"security": "plaintext", "advertised_hosts": {"one": "a.b"}}, "advertised_hosts", "ids of brokers"),
        ({"security": "plaintext", "port": 9092}, "port", "unknown field"),
        ({}, "security", "required"),
    ],
)  # fmt: skip
def test_what_a_route_cannot_be_is_said_with_the_member_at_fault(alice, url, members, field, words):
    status, _, errors = problem(alice.api.post(url, members))
    assert status == 400
    assert words in errors[field]


def test_plain_in_clear_is_taken_where_it_is_meant(opened):
    shown = opened(security="sasl_plaintext", mechanisms=["PLAIN", "SCRAM-SHA-256"], allow_plain_in_clear=True)
    assert shown["mechanisms"] == ["PLAIN", "SCRAM-SHA-256"]


# --- changing ---------------------------------------------------------------------------------------------------------


def test_a_change_keeps_the_rest_and_the_ports(alice, instance, url, opened, tree):
    before = opened(whitelist=["10.0.0.0/8"], connections=5)
    answer = alice.api.patch(f"{url}/r2", {"security": "sasl_ssl", "mechanisms": ["PLAIN"]})
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    shown = alice.api.get(f"{url}/r2").json()
    assert shown == before | {"security": "sasl_ssl", "mechanisms": ["PLAIN"]}
    assert published(tree, instance)["r2"].whitelist == ("10.0.0.0/8",)


def test_a_whitelist_is_in_force_before_the_answer_comes(alice, instance, url, opened, tree):
    opened()
    assert alice.api.patch(f"{url}/r2", {"whitelist": []}).status_code == 202
    assert published(tree, instance)["r2"].whitelist == ()
    tree.away = True  # the operation writes it later
    assert alice.api.patch(f"{url}/r2", {"whitelist": None}).status_code == 202
    tree.away = False
    run_to_the_end(Operation.objects.unscoped("a test").latest("created_at").id)
    assert published(tree, instance)["r2"].whitelist is None


def test_a_change_of_nothing_or_into_what_cannot_be_is_refused(alice, url, opened):
    opened(**SCRAM)
    assert problem(alice.api.patch(f"{url}/r2", {}))[0] == 400
    assert "nobody logs in" in problem(alice.api.patch(f"{url}/r2", {"security": "plaintext"}))[2]["mechanisms"]


def test_a_route_whose_end_has_come_is_closed_and_opens_where_the_end_is_moved(alice, instance, url, opened):
    opened(closes_at="2040-01-01T00:00:00Z")
    Route.objects.unscoped("a test").filter(key="r2").update(closes_at=SYSTEM_CLOCK.now() - timedelta(seconds=1))
    assert alice.api.get(f"{url}/r2").json()["state"] == "closed"
    assert alice.api.patch(f"{url}/r2", {"connections": 7}).status_code == 202  # its end is not asked for
    assert alice.api.patch(f"{url}/r2", {"closes_at": None}).status_code == 202
    assert alice.api.get(f"{url}/r2").json()["state"] == "running"


# --- removing ---------------------------------------------------------------------------------------------------------


def test_a_removed_route_is_told_to_nobody_and_its_ports_rest(alice, instance, url, opened, tree, brokers):
    opened()
    held = ports(instance, "r2")
    brokers.paused.add(2)
    answer = alice.api.delete(f"{url}/r2")
    assert answer.status_code == 202
    assert alice.api.delete(f"{url}/r2").json() == answer.json()  # asked again, the same
    operation = answer.json()["operation_id"]
    operations.run(operation)
    assert ports(instance, "r2") == held  # broker 2 may still listen
    assert alice.api.get(f"{url}/r2").json()["state"] == "deleting"
    assert problem(alice.api.patch(f"{url}/r2", {"connections": 1}))[:2] == (409, "route_deleting")
    brokers.paused.clear()
    brokers.apply()
    assert run_to_the_end(operation).state == "succeeded"
    assert set(published(tree, instance)) == {"default"}
    assert alice.api.get(f"{url}/r2").status_code == 404
    assert ports(instance, "r2") == {}
    rested = PortAllocation.objects.filter(port__in=held.values())
    assert {row.state for row in rested} == {"released"}
    assert not set(opened()["bootstrap"].split(",")) & {f"127.0.0.1:{port}" for port in held.values()}


def test_the_default_route_may_go_while_another_is_open_and_then_bootstrap_is_the_others(
    alice, instance, url, opened, tree
):
    assert problem(alice.api.delete(f"{url}/default"))[:2] == (409, "last_route")
    other = opened()
    run_to_the_end(alice.api.delete(f"{url}/default").json()["operation_id"])
    assert set(published(tree, instance)) == {"r2"}
    assert alice.api.get(f"/api/v1/instances/{instance.id}").json()["bootstrap"] == other["bootstrap"]
    assert problem(alice.api.delete(f"{url}/r2"))[:2] == (409, "last_route")


def test_a_route_that_is_not_open_yet_is_no_reason_to_remove_the_last_one(alice, url):
    alice.api.post(url, {"security": "plaintext"})
    assert problem(alice.api.delete(f"{url}/default"))[:2] == (409, "last_route")


def test_a_route_can_be_removed_while_it_is_being_opened(alice, instance, url, brokers, tree):
    brokers.paused.add(1)
    opening = alice.api.post(url, {"security": "plaintext"}).json()["operation_id"]
    operations.run(opening)
    closing = alice.api.delete(f"{url}/r2").json()["operation_id"]
    brokers.paused.clear()
    brokers.apply()
    assert run_to_the_end(closing).state == "succeeded"
    assert "being removed" in run_to_the_end(opening).error
    assert set(published(tree, instance)) == {"default"}
    assert ports(instance, "r2") == {}


def test_with_its_instance_all_its_routes_go(alice, instance, opened):
    opened()
    gone = lifecycle.instance_delete(organisation=alice.organisation, actor="a", instance_id=instance.id)
    assert run_to_the_end(gone.id).state == "succeeded"
    assert {route.state for route in Route.objects.unscoped("a test")} == {"removed"}
    assert not PortAllocation.objects.filter(state="held").exists()


# --- who may, and what is remembered ----------------------------------------------------------------------------------


def test_only_those_of_the_organisation_look_and_only_those_who_may_change(alice, bob, viewer, charlie, url, opened):
    opened()
    for call in ("get", "delete"):
        assert getattr(charlie.api, call)(f"{url}/r2").status_code == 404
    assert charlie.api.get(url).status_code == charlie.api.post(url, {"security": "ssl"}).status_code == 404
    assert charlie.api.patch(f"{url}/r2", {"public": True}).status_code == 404
    assert viewer.api.get(f"{url}/r2").status_code == 200
    assert viewer.api.post(url, {"security": "ssl"}).status_code == viewer.api.delete(f"{url}/r2").status_code == 403
    assert bob.api.patch(f"{url}/r2", {"public": True}).status_code == 202
    assert alice.api.get(f"{url}/r9").status_code == alice.api.get(f"{url}/x").status_code == 404


def test_every_change_is_in_the_audit_trail(alice, instance, url, opened):
    opened(closes_at="2040-01-01T00:00:00Z")
    alice.api.patch(f"{url}/r2", {"connections": 3})
    alice.api.delete(f"{url}/r2")
    rows = AuditEntry.objects.for_organisation(alice.organisation).filter(action__startswith="route.").order_by("pk")
    made = {**DEFAULTS, "closes_at": "2040-01-01T00:00:00+00:00"}
    assert [(row.action, row.target, row.detail) for row in rows] == [
        ("route.create", f"{instance.id}/r2", made),
        ("route.update", f"{instance.id}/r2", {"connections": {"from": None, "to": 3}}),
        ("route.delete", f"{instance.id}/r2", {**made, "connections": 3}),
    ]
    assert {row.actor for row in rows} == {"alice@example.com"}


def test_a_call_that_is_repeated_with_its_key_opens_one_route(alice, url):
    headers = {"HTTP_IDEMPOTENCY_KEY": "once"}
    first, second = (alice.api.post(url, {"security": "plaintext"}, **headers) for _ in range(2))
    assert first.json() == second.json()
    assert len(alice.api.get(url).json()["items"]) == 2


def test_an_instance_that_is_not_running_keeps_its_routes(alice, instance, url):
    Instance.objects.unscoped("a test").update(state="creating")
    assert problem(alice.api.post(url, {"security": "plaintext"}))[:2] == (409, "instance_not_running")
