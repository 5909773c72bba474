"""Token issuers by REST, with a real server that publishes their keys; what brokers read, and what becomes of it in time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from controlplane.clusters import coordination
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.instances import lifecycle
from controlplane.token_issuers import fetching, services
from controlplane.token_issuers.keys import KeySetProblem
from controlplane.token_issuers.models import TokenIssuer as Row
from quota.contracts.apart import token_issuers_from_json, token_issuers_path
from quota.contracts.token_issuers import MOST_ISSUERS
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_instances_api import problem
from tests.support.tokens import Issuer


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/token-issuers"


@pytest.fixture
def body(issuer, server):
    return {"issuer": issuer.name, "jwks_url": server.url, "audiences": ["kafka"]}


@pytest.fixture
def made(alice, url, body):
    answer = alice.api.post(url, body)
    assert answer.status_code == 201, answer.content
    return answer.json()


def in_force(tree, instance):
    return token_issuers_from_json(coordination.beside_read(tree, token_issuers_path(instance.id))).items


def rows():
    return Row.objects.unscoped("a test")


class Later:
    """A clock that is ahead."""

    def __init__(self, **ahead):
        self._ahead = timedelta(**ahead)

    def now(self):
        return SYSTEM_CLOCK.now() + self._ahead

    def sleep(self, seconds):
        raise AssertionError


# --- made and gone ------------------------------------------------------------------------------------------------------


def test_a_new_issuer_is_what_brokers_read_and_tells_them(alice, instance, tree, url, body, issuer):
    before = len(tree.children("/sluice/changes"))
    answer = alice.api.post(url, {**body, "principal_claim": "client_id", "scope": "kafka"})
    shown = answer.json()
    assert answer.status_code == 201
    assert shown.items() >= {**body, "principal_claim": "client_id", "scope": "kafka", "keys_error": None}.items()
    assert [key["kid"] for key in shown["keys"]] == ["one", "two"]
    assert "ES256" in shown["keys"][1]["algorithms"]
    trusted = Issuer(keys=issuer.keys, principal_claim="client_id", scope="kafka").trusted
    assert in_force(tree, instance) == (trusted,)
    assert len(tree.children("/sluice/changes")) == before + 1
    assert alice.api.get(f"{url}/{shown['id']}").json() == shown
    assert alice.api.get(url).json() == {"items": [shown], "next": None}


def test_what_is_not_said_is_sub_and_no_scope(made):
    assert (made["principal_claim"], made["scope"]) == ("sub", None)


def test_one_that_is_removed_lets_nobody_in(alice, instance, tree, url, made):
    assert alice.api.delete(f"{url}/{made['id']}").status_code == 204
    assert in_force(tree, instance) == ()
    assert alice.api.get(url).json()["items"] == []
    problem(alice.api.delete(f"{url}/{made['id']}"), 404, "not_found")


def test_changes_are_audited(alice, url, made):
    alice.api.delete(f"{url}/{made['id']}")
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(action__startswith="token_issuer")
    assert [entry.action for entry in entries.order_by("id")] == ["token_issuer.create", "token_issuer.delete"]


def test_viewers_look_and_change_nothing(viewer, url, made, body):
    assert viewer.api.get(url).json()["items"] == [made]
    problem(viewer.api.post(url, {**body, "issuer": "other"}), 403, "forbidden")
    problem(viewer.api.delete(f"{url}/{made['id']}"), 403, "forbidden")


def test_an_issuer_is_trusted_once_and_there_is_an_end_to_them(alice, instance, tree, url, made, body):
    problem(alice.api.post(url, body), 409, "token_issuer_exists")
    for number in range(MOST_ISSUERS - 1):
        assert alice.api.post(url, {**body, "issuer": f"issuer {number}"}).status_code == 201
    refused = problem(alice.api.post(url, {**body, "issuer": "one more"}), 409, "too_many_token_issuers")
    assert "4 token issuers, not 5" in refused["detail"]
    assert len(in_force(tree, instance)) == rows().count() == MOST_ISSUERS


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"issuer": ""}, "issuer"),
        ({"issuer": 7}, "issuer"),
        ({"audiences": []}, "audiences"),
        ({"audiences": ["a"] * 9}, "audiences"),
        ({"audiences": "kafka"}, "audiences"),
        ({"jwks_url": "http://127.0.0.2/"}, "jwks_url"),
        ({"jwks_url": "https://evil.example.com/"}, "jwks_url"),
        ({"jwks_url": "file:///etc/passwd"}, "jwks_url"),
        ({"principal_claim": ""}, "principal_claim"),
        ({"secret": "s"}, "secret"),
    ],
)
def test_what_cannot_be_is_refused_by_name_and_nobody_is_asked(alice, server, tree, url, body, change, field):
    refused = problem(alice.api.post(url, {**body, **change}), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == [field]
    assert not server.asked
    assert not rows().exists()


def test_a_scope_of_two_words_is_none(alice, url, body):
    problem(alice.api.post(url, {**body, "scope": "a b"}), 400, "invalid_token_issuer")


@pytest.mark.parametrize(
    ("status", "data", "words"),
    [(404, b"", "answers 404"), (200, b"<html>", "not JSON"), (200, b'{"keys":[]}', "no key")],
)
def test_keys_that_cannot_be_fetched_are_told_at_once_and_nothing_is_trusted(
    alice, instance, tree, server, url, body, status, data, words
):
    server.status, server.data = status, data
    refused = problem(alice.api.post(url, body), 400, "invalid")
    assert words in refused["errors"][0]["detail"]
    assert not rows().exists()
    assert in_force(tree, instance) == ()


def test_without_a_list_of_hosts_there_is_no_such_thing(alice, server, operator_lists, url, body):
    operator_lists("")
    refused = problem(alice.api.post(url, body), 409, "token_issuers_off")
    assert "SLUICE_TOKEN_ISSUER_HOSTS" in refused["detail"]
    assert not server.asked


def test_what_brokers_cannot_be_told_has_not_happened(alice, tree, url, made, body):
    tree.away = True
    assert alice.api.post(url, {**body, "issuer": "other"}).status_code == 503
    assert alice.api.delete(f"{url}/{made['id']}").status_code == 503
    tree.away = False
    assert [row.issuer for row in rows()] == [made["issuer"]]


# --- keys in time -------------------------------------------------------------------------------------------------------


def test_keys_are_fetched_anew_by_the_clock(alice, instance, tree, server, url, made):
    asked = len(server.asked)
    assert services.refresh_due() == 0
    assert len(server.asked) == asked
    server.document = Issuer(keys={"three": "RSA, another"}).jwks()
    assert services.refresh_due(clock=Later(minutes=6)) == 1
    assert [key.kid for key in in_force(tree, instance)[0].keys] == ["three"]
    assert [key["kid"] for key in alice.api.get(f"{url}/{made['id']}").json()["keys"]] == ["three"]


def test_the_same_keys_write_nothing(tree, made):
    before = dict(tree.nodes)
    assert services.refresh_due(clock=Later(minutes=6)) == 1
    assert tree.nodes == before


def test_while_it_fails_the_last_good_keys_stay_and_it_is_said(alice, instance, tree, server, url, made):
    server.status = 500
    assert services.refresh_due(clock=Later(minutes=6)) == 1
    shown = alice.api.get(f"{url}/{made['id']}").json()
    assert shown["keys_error"] == "127.0.0.1 answers 500"
    assert shown["keys"] == made["keys"]
    assert shown["keys_fetched_at"] == made["keys_fetched_at"] < shown["keys_tried_at"]
    assert len(in_force(tree, instance)[0].keys) == 2
    assert services.refresh_due(clock=Later(minutes=6, seconds=30)) == 0
    server.status = 200
    assert services.refresh_due(clock=Later(minutes=7, seconds=1)) == 1
    assert alice.api.get(f"{url}/{made['id']}").json()["keys_error"] is None


def test_a_host_that_is_taken_off_the_list_is_not_asked_any_more(server, operator_lists, made):
    operator_lists("login.example.com")
    asked = len(server.asked)
    services.refresh_due(clock=Later(minutes=6))
    assert len(server.asked) == asked
    assert "may not be fetched" in rows().get().keys_error


def test_an_address_is_asked_once_a_round(alice, server, url, made, body):
    alice.api.post(url, {**body, "issuer": "other"})
    asked = len(server.asked)
    assert services.refresh_due(clock=Later(minutes=6)) == 2
    assert len(server.asked) == asked + 1


def test_a_host_that_is_away_holds_up_a_round_once(alice, server, url, made, body, monkeypatch):
    for number in range(2):
        assert (
            alice.api.post(url, {**body, "issuer": str(number), "jwks_url": f"{server.url}?{number}"}).status_code
            == 201
        )
    asked = []

    def away(address):
        asked.append(address.target)
        raise KeySetProblem("127.0.0.1 has not answered within 5 s")

    monkeypatch.setattr(fetching, "fetched", away)
    monkeypatch.setattr(services, "SLOW_S", -1.0)
    assert services.refresh_due(clock=Later(minutes=6)) == 3
    assert len(asked) == 1
    assert {row.keys_error for row in rows()} == {"127.0.0.1 has not answered within 5 s"}


def test_one_that_goes_wrong_keeps_nobody_else_from_it(alice, tree, url, made, body, monkeypatch):
    alice.api.post(url, {**body, "issuer": "other"})
    real, seen = services.publish, []

    def publish(instance):
        seen.append(instance.id)
        if len(seen) == 1:
            raise RuntimeError("a bug")
        real(instance)

    monkeypatch.setattr(services, "publish", publish)
    assert services.refresh_due(clock=Later(minutes=6)) == 2
    assert len(seen) == 2


def test_a_node_that_is_not_as_the_rows_say_is_mended(instance, tree, made):
    tree.nodes[token_issuers_path(instance.id)] = (b"{", 0)
    services.refresh_due(clock=Later(minutes=6))
    assert [each.issuer for each in in_force(tree, instance)] == [made["issuer"]]


def test_keys_can_be_fetched_at_once_but_not_all_the_time(alice, instance, tree, server, url, made):
    problem(alice.api.post(f"{url}/{made['id']}/refresh"), 429, "too_many_attempts")
    rows().update(keys_tried_at=SYSTEM_CLOCK.now() - timedelta(minutes=1))
    server.document = Issuer(keys={"three": "P-256"}).jwks()
    answer = alice.api.post(f"{url}/{made['id']}/refresh")
    assert answer.status_code == 200
    assert [key["kid"] for key in answer.json()["keys"]] == ["three"]
    assert [key.kid for key in in_force(tree, instance)[0].keys] == ["three"]


def test_keys_are_not_fetched_to_see_what_that_would_do(alice, server, url, made):
    """A host of somebody's would be asked without a limit: when it was asked last would be taken back with the rest."""
    rows().update(keys_tried_at=SYSTEM_CLOCK.now() - timedelta(minutes=1))
    before, known = len(server.asked), rows().values().get()
    for _ in range(2):
        said = alice.api.post(f"{url}/{made['id']}/refresh?dry_run=true").json()
        (step,) = said["plan"]
        assert step["name"] == "fetch_keys"
        assert "2 are known now" in step["detail"]
        assert (said["changes"], said["problems"], said["price_change"]) == ({}, [], None)
    assert (len(server.asked), rows().values().get()) == (before, known)
    assert alice.api.post(f"{url}/{made['id']}/refresh").status_code == 200


def test_too_soon_is_too_soon_in_a_dry_run_as_well(alice, charlie, viewer, url, made):
    asked = f"{url}/{made['id']}/refresh?dry_run=true"
    assert problem(alice.api.post(asked), 429, "too_many_attempts") == problem(
        alice.api.post(asked.partition("?")[0]), 429, "too_many_attempts"
    )
    problem(viewer.api.post(asked), 403, "forbidden")
    problem(charlie.api.post(asked), 404, "not_found")
    problem(alice.api.post(f"{url}/iss-00000000/refresh?dry_run=true"), 404, "not_found")


def test_a_dry_run_says_that_its_host_may_not_be_asked_any_more(alice, server, operator_lists, url, made):
    rows().update(keys_tried_at=SYSTEM_CLOCK.now() - timedelta(minutes=1))
    operator_lists("")
    (said,) = alice.api.post(f"{url}/{made['id']}/refresh?dry_run=true").json()["problems"]
    assert "fetches keys from nowhere" in said


def test_with_its_instance_they_are_gone(alice, instance, tree, made):
    operation = lifecycle.instance_delete(organisation=alice.organisation, actor="a", instance_id=instance.id)
    assert run_to_the_end(operation.id).state == "succeeded"
    assert token_issuers_path(instance.id) not in tree.nodes
    services.refresh_due()
    assert not rows().exists()


# --- may he? --------------------------------------------------------------------------------------------------------------


def test_the_question_who_may_knows_of_them(alice, instance, tree, url, made):
    route = {"security": "sasl_plaintext", "mechanisms": ["OAUTHBEARER"], "allow_plain_in_clear": True}
    opened = alice.api.post(f"/api/v1/instances/{instance.id}/routes", route).json()
    assert run_to_the_end(opened["operation_id"]).state == "succeeded"
    asked = {"source": "127.0.0.7", "principal": "User:ann", "route": opened["id"], "operation": "WRITE"}
    asked |= {"resource_type": "TOPIC", "resource_name": "orders"}
    check = f"/api/v1/instances/{instance.id}/access-check"
    assert alice.api.post(check, asked).json()["allowed"]
    alice.api.delete(f"{url}/{made['id']}")
    found = alice.api.post(check, asked).json()
    assert (found["allowed"], found["rule"]["kind"]) == (False, "login")
    assert "trusts no token issuer" in found["reason"]


# --- two at once --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["create", "refresh", "delete"])
def test_the_node_is_written_while_nobody_else_can_change_the_rows_of_the_instance(
    alice, url, body, made, monkeypatch, change
):
    """Or keys that are fetched while an issuer is deleted would put the issuer back into the node, for good."""
    alone, write = [], coordination.beside_write

    def written(tree, instance_id, path, decide):
        alone.append(connection.in_atomic_block)
        write(tree, instance_id, path, decide)

    monkeypatch.setattr(coordination, "beside_write", written)
    if change == "create":
        alice.api.post(url, {**body, "issuer": "another"})
    elif change == "refresh":
        assert services.refresh_due(clock=Later(days=1)) == 1
    else:
        alice.api.delete(f"{url}/{made['id']}")
    assert alone == [True]
