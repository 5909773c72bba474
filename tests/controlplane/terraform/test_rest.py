"""HTTP by itself: no process, no site. Answers are given, and time passes only where something waits."""

from __future__ import annotations

import json

import pytest
import requests

from controlplane.cli import operations as ops
from controlplane.terraform import rest
from controlplane.terraform.diagnostics import Away, Missing, ProviderError, Refused

PROBLEM = {"title": "No", "detail": "", "code": "not_found", "retriable": False}
LATER = {**PROBLEM, "code": "too_many_requests", "retriable": True}


class Time:
    """A clock, and the pauses that move it."""

    def __init__(self):
        self.now = 0.0
        self.pauses = []

    def monotonic(self):
        return self.now

    def pause(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time(monkeypatch):
    found = Time()
    monkeypatch.setattr(rest, "time", found, raising=False)
    return found


@pytest.fixture
def asked(monkeypatch, time):
    """What is sent; `asked.answers` is what comes: (status, headers, content), or seconds until a call is given up."""

    class Asked(list):
        answers = ()

    found = Asked()

    def request(_session, method, url, **_others):
        found.append((method, url))
        assert len(found) < 1000, "it asks without end"
        answer = found.answers[min(len(found), len(found.answers)) - 1]
        if isinstance(answer, int):
            time.now += answer
            raise requests.exceptions.ReadTimeout
        response = requests.Response()
        response.status_code, headers, content = answer
        response.headers.update(headers)
        response._content = content
        return response

    monkeypatch.setattr(requests.Session, "request", request)
    return found


@pytest.fixture
def client(time):
    return rest.Client("https://sluice.example.com", "slc_x", time)


def problem(status, document, **headers):
    return status, {"Content-Type": rest.PROBLEM, **headers}, json.dumps(document).encode()


def test_five_minutes_are_five_minutes_however_long_each_answer_takes(client, asked, time):
    asked.answers = [rest.ANSWER_S]
    with pytest.raises(Away):
        client.get(ops.ZONES)
    assert rest.PATIENCE_S - rest.ANSWER_S < time.now < rest.PATIENCE_S + rest.ANSWER_S


def test_who_may_ask_again_at_once_neither_hurries_nor_goes_on_without_end(client, asked, time, monkeypatch):
    monkeypatch.setattr(client, "_patience_s", 10)
    asked.answers = [problem(429, LATER, **{"Retry-After": "0"})]
    with pytest.raises(Refused):
        client.get(ops.ZONES)
    assert min(time.pauses) > 0
    assert time.now <= 10


def test_what_a_proxy_says_of_too_many_requests_is_waited_for(client, asked):
    asked.answers = [(429, {"Content-Type": "text/html"}, b"<h1>Slow down</h1>"), (200, {}, b"{}")]
    assert client.get(ops.ZONES) == {}


def test_only_the_service_itself_can_say_that_something_is_gone(client, asked):
    """Or an endpoint with a mistake in it would take everything out of the state."""
    asked.answers = [(404, {"Content-Type": "text/html"}, b"<h1>Not found</h1>")]
    with pytest.raises(Refused, match="endpoint") as refused:
        client.get(ops.INSTANCE, instance_id="ins-1")
    assert not isinstance(refused.value, Missing)
    asked.answers = [problem(404, PROBLEM)]
    with pytest.raises(Missing):
        client.get(ops.INSTANCE, instance_id="ins-1")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_an_address_loses_is_not_sent(client, asked, name):
    """`topics/../whitelist` would be the whitelist of the instance."""
    with pytest.raises(ProviderError, match="That is no name"):
        client.change(ops.TOPIC_WHITELIST, {"cidrs": []}, instance_id="ins-1", topic=name)
    assert not asked
