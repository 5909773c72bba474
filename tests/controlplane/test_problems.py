"""Whatever is sent, the answer is a problem document and never a traceback."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .test_instances_api import problem

URL = "/api/v1/instances"


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "5",
        "null",
        '{"name": NaN}',
        '{"a": 1, "a": 2}',
        "[" * 100_000,
        '{"a":' * 50_000,
        b"\xff\xfe",
        '{"name": "\\ud800"}',
        '{"x\\udfff": 1}',
    ],
)
def test_a_body_that_is_no_json_object_is_malformed(alice, body):
    problem(alice.api.generic("POST", URL, body, content_type="application/json"), 400, "malformed")


def test_a_number_beyond_all_bounds_is_a_bad_member(alice):
    body = '{"name": "x", "bandwidth_mib_per_s": 1e999, "storage_gib": 1, "partitions": 1, "whitelist": []}'
    answer = problem(alice.api.generic("POST", URL, body, content_type="application/json"), 400, "invalid")
    assert answer["errors"][0]["field"] == "bandwidth_mib_per_s"


def test_a_body_that_is_too_large_is_refused(alice):
    body = '{"name": "' + "x" * 2**20 + '"}'
    problem(alice.api.generic("POST", URL, body, content_type="application/json"), 413, "body_too_large")


def test_another_media_type_is_refused(alice):
    answer = alice.api.generic("POST", URL, "name=x", content_type="application/x-www-form-urlencoded")
    problem(answer, 415, "unsupported_media_type")


def test_another_method_is_refused_with_those_allowed(alice):
    answer = alice.api.put(URL, {})
    problem(answer, 405, "method_not_allowed")
    assert "POST" in answer["Allow"]


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/v2/instances", "/api/v1/instances/x", "/api/v1/instances/INS-00000000"]
)
def test_an_address_without_a_route_is_not_found(client, path):
    problem(client.get(path), 404, "not_found")


def test_accept_does_not_matter(alice):
    assert alice.api.get(URL, headers={"accept": "text/html"}).json() == {"items": [], "next": None}


def test_a_bug_is_a_500_that_tells_nothing(alice, monkeypatch):
    from controlplane.instances import selectors

    def broken(**_arguments):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(selectors, "instance_list", broken)
    api = alice.api
    api.raise_request_exception = False
    answer = api.get(URL)
    assert "secret" not in problem(answer, 500, "internal")["detail"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.sampled_from(["name", "bandwidth_mib_per_s", "storage_gib", "partitions", "whitelist", "cidrs", "x"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.dictionaries(MEMBERS, JSON, max_size=6))
def test_no_body_is_an_internal_error(alice, instance, body):
    for method, path in (("post", URL), ("patch", f"{URL}/{instance.id}"), ("put", f"{URL}/{instance.id}/whitelist")):
        assert getattr(alice.api, method)(path, body).status_code in (200, 202, 400)


def test_health_needs_no_key(client, db):
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_health_is_503_without_a_database(client, db, monkeypatch):
    def refuse():
        raise DatabaseError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(connection, "cursor", refuse)
        assert client.get("/health").status_code == 503


def test_the_landing_page_says_where_the_api_is(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert b"/api/v1/schema" in answer.content
