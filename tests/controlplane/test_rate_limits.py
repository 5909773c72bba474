"""Requests by REST are limited by key and by organisation; every answer says how many are left."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.cache import cache
from redis.exceptions import RedisError

from controlplane.accounts import services as accounts
from controlplane.api import rates
from controlplane.core import kept
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.env import REST_LIMITS
from controlplane.tenants import services as tenants

from .conftest import client_of
from .fakes import ManualClock
from .test_instances_api import problem

ME, KEYS = "/api/v1/me", "/api/v1/api-keys"
HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy")
NONE = dict.fromkeys(REST_LIMITS, 0)
BUDGET = {"name": "all", "amount": "100.00"}


@pytest.fixture(autouse=True)
def the_minute_has_begun(monkeypatch):
    """Ten seconds ago; it goes on where a test says so."""
    clock = ManualClock()
    clock.time = SYSTEM_CLOCK.now().replace(second=10, microsecond=0)
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: clock.time)
    rates.AWAY.forget()
    yield clock
    rates.AWAY.forget()


@pytest.fixture
def limit(settings):
    """Other limits; of what is not named there is none."""

    def change(**limits):
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, rest_limits={**NONE, **limits})

    return change


def told(answer):
    return [answer.headers.get(name) for name in HEADERS]


def test_answers_say_how_many_are_left(alice):
    for used in (1, 2):
        assert told(alice.api.get(ME)) == ["3000", str(3_000 - used), "50", "3000;w=60, 12000;w=60"]
    assert told(alice.api.post(KEYS, {"name": "x"})) == ["600", "599", "50", "600;w=60, 2400;w=60"]
    assert told(alice.api.get("/api/v1/instances/ins-00000000"))[1] == "2997", "refusals are requests"


def test_what_is_too_much_is_refused_and_says_when_to_come_back(alice, limit, the_minute_has_begun):
    limit(key_reads=2)
    assert [alice.api.get(ME).status_code for _ in range(3)] == [200, 200, 429]
    answer = alice.api.get(ME)
    found = problem(answer, 429, "too_many_requests")
    assert found["detail"] == "this API key has made 2 requests in this minute: try again in 50 s"
    assert found["retriable"] is True
    assert answer["Retry-After"] == "50"
    assert told(answer) == ["2", "0", "50", "2;w=60"]
    the_minute_has_begun.advance(50)
    assert told(alice.api.get(ME)) == ["2", "1", "60", "2;w=60"]


def test_reads_and_changes_are_counted_apart(alice, limit):
    limit(key_reads=1, key_changes=1)
    assert alice.api.get(ME).status_code == 200
    assert alice.api.post(KEYS, {"name": "x"}).status_code == 201
    problem(alice.api.get(ME), 429, "too_many_requests")
    refused = alice.api.post(KEYS, {"name": "y"})
    assert "has made 1 changes in this minute" in problem(refused, 429, "too_many_requests")["detail"]
    assert alice.api.head(ME).status_code == 429


def test_an_organisation_has_a_limit_over_all_of_its_keys(alice, bob, charlie, limit):
    limit(key_reads=3, organisation_reads=4)
    assert [alice.api.get(ME).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    last = bob.api.get(ME)
    assert last.status_code == 200, "what alice's key was refused is not counted for the others"
    assert told(last) == ["4", "0", "50", "3;w=60, 4;w=60"], "the limit that is nearer to its end"
    refused = bob.api.get(ME)
    assert "the organisation has made 4 requests" in problem(refused, 429, "too_many_requests")["detail"]
    assert charlie.api.get(ME).status_code == 200, "another's requests are another's"


def test_each_key_is_counted_by_itself(alice, limit):
    limit(key_reads=1)
    _, second = accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="second")
    assert alice.api.get(ME).status_code == 200
    assert client_of(second).get(ME).status_code == 200
    assert alice.api.get(ME).status_code == 429


def test_a_limit_of_nothing_is_none(alice, limit):
    limit()
    answer = alice.api.get(ME)
    assert answer.status_code == 200
    assert told(answer) == [None] * 4


def test_repetitions_are_no_way_around_it(alice, limit):
    limit(key_changes=3)
    answers = [alice.api.post("/api/v1/budgets", BUDGET, headers={"Idempotency-Key": "k"}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
    assert answers[1]["Idempotency-Replayed"] == "true"
    assert [told(answer)[1] for answer in answers] == ["2", "1", "0", "0"]


def test_who_is_nobody_uses_up_nothing(alice, client, limit):
    limit(key_reads=1)
    wrong = alice.key[:-1] + ("x" if alice.key[-1] != "x" else "y")
    for _ in range(3):
        assert told(client.get(ME)) == [None] * 4
        assert client_of(wrong).get(ME).status_code == 401
    assert alice.api.get(ME).status_code == 200


def test_probes_are_not_counted(client, limit, alice, tmp_path, settings):
    limit(key_reads=1, organisation_reads=1)
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"metrics_token": "token"}))
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=secrets)
    for address in ("/health", "/api/v1/schema", "/metrics"):
        for _ in range(3):
            answer = client.get(address, headers={"Authorization": "Bearer token"} if address == "/metrics" else {})
            assert answer.status_code == 200, address
            assert told(answer) == [None] * 4


def test_operators_go_on_working_but_not_their_limited_keys(db, limit):
    user, _ = accounts.admin_ensure(email="opal@example.com", password="x")
    organisation = tenants.organisation_create(name="Operators", owner=user)
    _, whole = accounts.api_key_create(organisation=organisation, user=user, name="whole")
    _, limited = accounts.api_key_create(organisation=organisation, user=user, name="limited", scopes=["read"])
    limit(key_reads=1)
    assert [client_of(whole).get(ME).status_code for _ in range(3)] == [200, 200, 200]
    assert [client_of(limited).get(ME).status_code for _ in range(2)] == [200, 429]


# --- without the cache ----------------------------------------------------------------------------------------------------


@pytest.fixture
def away(monkeypatch):
    """The cache does not answer; how often it was asked."""
    asked = []

    def fail(*_args, **_options):
        asked.append(1)
        raise RedisError("away")

    monkeypatch.setattr(kept, "cache", type("Away", (), {"add": fail, "incr": fail})())
    return asked


def test_without_the_cache_requests_are_let_through_and_counted_so(alice, limit, away, monkeypatch, caplog):
    limit(key_reads=1)
    now = [1_000.0]
    monkeypatch.setattr(rates, "monotonic", lambda: now[0])
    for _ in range(5):
        answer = alice.api.get(ME)
        assert answer.status_code == 200
        assert told(answer) == [None] * 4
    assert len(away) == 1, "a cache that is away is not asked again at once: each question may take a second"
    assert "requests are let through uncounted: away" in caplog.text
    assert " 5\n" in rates.metrics_text()
    now[0] += rates.AWAY_S
    alice.api.get(ME)
    assert len(away) == 2


def test_when_it_is_back_they_are_limited_again(alice, limit, away, monkeypatch):
    limit(key_reads=1)
    assert alice.api.get(ME).status_code == 200
    monkeypatch.setattr(kept, "cache", cache)
    rates.AWAY.forget()
    assert [alice.api.get(ME).status_code for _ in range(2)] == [200, 429]


def test_prometheus_is_told(client, tmp_path, settings, db):
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"metrics_token": "token"}))
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=secrets)
    rates.AWAY.let_through(was_asked=False)
    text = client.get("/metrics", headers={"Authorization": "Bearer token"}).content.decode()
    assert "# TYPE sluice_rest_uncounted_requests_total counter\n" in text
    (line,) = [line for line in text.splitlines() if line.startswith("sluice_rest_uncounted_requests_total{")]
    assert line.endswith(" 1")


def test_a_count_that_has_gone_between_two_calls_begins_anew(monkeypatch):
    def gone(*_args):
        raise ValueError("no such key")

    monkeypatch.setattr(kept, "cache", type("Gone", (), {"add": lambda *_args: True, "incr": gone})())
    assert kept.counted("k", 60, rates.LOG, "x") == 1


def test_a_window_is_a_minute_of_the_clock(rf, limit, the_minute_has_begun):
    limit(key_reads=1)
    clock = the_minute_has_begun
    first = rf.get(ME)
    rates.admit(first, key="k", organisation="o", clock=clock)
    rates.admit(first, key="k", organisation="o", clock=clock)  # the same request
    clock.time += timedelta(seconds=49)
    with pytest.raises(rates.TooManyRequests):
        rates.admit(rf.get(ME), key="k", organisation="o", clock=clock)
    clock.time += timedelta(seconds=1)
    rates.admit(rf.get(ME), key="k", organisation="o", clock=clock)
