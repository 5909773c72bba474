"""Parameters of an address that no call has are refused: what was misspelt would answer everything, or do something else."""

from __future__ import annotations

import pytest
from django.urls import get_resolver
from rest_framework.views import APIView

from controlplane.accounts.permissions import RolePermission
from controlplane.api import parameters

from .test_instances_api import URL, problem


def refusals(answer):
    return {each["field"]: each["detail"] for each in problem(answer, 400, "invalid")["errors"]}


def views():
    """Every view of REST, by its route."""
    for pattern in get_resolver().url_patterns:
        kind = getattr(getattr(pattern, "callback", None), "cls", None)
        if kind is not None and issubclass(kind, APIView) and str(pattern.pattern).startswith("api/v1/"):
            yield kind


def test_a_misspelt_filter_does_not_answer_everything(alice):
    found = refusals(alice.api.get("/api/v1/audit", {"acter": "nobody"}))
    assert found == {"acter": "unknown parameter, did you mean `actor`?"}


def test_what_is_near_nothing_is_refused_with_those_that_there_are(alice, instance):
    found = refusals(alice.api.get(URL, {"colour": "red", "sate": "running"}))
    assert found["sate"] == "unknown parameter, did you mean `state`?"
    assert found["colour"].startswith("unknown parameter; known parameters: cursor, health, limit, name, prefix, sort")
    assert refusals(alice.api.get("/api/v1/me", {"x": "1"})) == {"x": "unknown parameter; this call takes none"}


def test_a_change_is_not_made(alice, instance):
    for method, body in (("patch", {"name": "other"}), ("delete", None)):
        answer = getattr(alice.api, method)(f"{URL}/{instance.id}?force=true", body)
        assert "force" in refusals(answer)
    assert alice.api.get(f"{URL}/{instance.id}").json()["name"] == instance.name
    assert "with_acl" in refusals(alice.api.delete(f"{URL}/{instance.id}/users/ann?with_acl=true"))


def test_what_stands_between_may_add_its_own(alice, instance):
    query = "_=1795251600&utm_source=mail&X-Amz-Date=20261121&x-forwarded=1"
    assert alice.api.get(f"{URL}?{query}").status_code == 200
    assert alice.api.head(f"{URL}?{query}").status_code == 200
    assert alice.api.head(f"{URL}?sate=running").status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "acls"),
        ("get", "audit"),
        ("get", "transactions"),
        ("get", "hanging-transactions"),
        ("get", "topics/orders/messages"),
        ("delete", "lake-loads/load-000000000001"),
        ("get", "connections"),
    ],
)
def test_it_is_passed_over_by_calls_with_many_parameters_too(alice, instance, method, path):
    url = f"{URL}/{instance.id}/{path}"
    without, answer = (getattr(alice.api, method)(f"{url}{query}") for query in ("", "?_=1795251600&utm_source=mail"))
    assert without.status_code != 405, "there is such a call"
    assert (answer.status_code, answer.content) == (without.status_code, without.content)
    assert answer.status_code != 400


def test_a_thousand_of_them_are_answered_shortly(alice):
    answer = alice.api.get("/api/v1/audit?" + "&".join(f"n{number}=1" for number in range(900)))
    assert len(refusals(answer)) == parameters.MOST_NAMED


def test_nobody_learns_by_it_what_there_is(charlie, instance):
    hers = charlie.api.get(f"{URL}/{instance.id}?colour=red")
    none = charlie.api.get(f"{URL}/ins-000000000000?colour=red")
    assert hers.content == none.content


def test_who_is_nobody_is_not_told_of_parameters(client, alice):
    assert client.get(f"{URL}?colour=red").status_code == 401


def test_every_call_declares_what_it_takes():
    """A view without a schema of its own, or with a permission that does not ask, would take anything."""
    kinds = set(views())
    assert len(kinds) > 100
    for kind in kinds:
        if kind.__module__.startswith("drf_spectacular"):
            continue
        assert all(issubclass(each, RolePermission) for each in kind.permission_classes), kind
        for method in ("get", "post", "put", "patch", "delete"):
            if hasattr(kind, method):
                assert parameters.declared(kind, method.upper()) is not None, (kind, method)


@pytest.mark.parametrize("name", ["limit", "cursor", "state", "sort"])
def test_what_the_schema_publishes_is_taken(name):
    (kind,) = {kind for kind in views() if kind.__name__ == "InstancesApi"}
    assert name in parameters.declared(kind, "GET")
    assert "dry_run" in parameters.declared(kind, "POST")
    assert "Idempotency-Key" not in parameters.declared(kind, "POST"), "that is a header"
