"""What of REST is going away says so: in every answer, and in the schema."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from drf_spectacular.generators import SchemaGenerator

from controlplane.accounts.api import CallerApi
from controlplane.api.deprecation import LEAST, Deprecation
from controlplane.urls import urlpatterns

SINCE = datetime(2027, 1, 4, tzinfo=UTC)
GOING = Deprecation(since=SINCE, sunset=datetime(2027, 9, 1, tzinfo=UTC))
HEADERS = ("Deprecation", "Sunset", "Link")


@pytest.fixture
def going(monkeypatch):
    """One address that is deprecated."""
    monkeypatch.setattr(CallerApi, "deprecations", {"GET": GOING}, raising=False)


def told(answer):
    return [answer.headers.get(name) for name in HEADERS]


def test_every_answer_of_it_says_when(alice, client, going):
    expected = ["@1799020800", "Wed, 01 Sep 2027 00:00:00 GMT", '</docs/api>; rel="deprecation"; type="text/html"']
    assert int(expected[0][1:]) == int(SINCE.timestamp())
    assert told(alice.api.get("/api/v1/me")) == expected
    assert told(alice.api.head("/api/v1/me")) == expected
    assert told(client.get("/api/v1/me")) == expected, "a refusal, too"


def test_others_say_nothing(alice, client, going):
    for answer in (alice.api.get("/api/v1/instances"), alice.api.post("/api/v1/me"), client.get("/nothing")):
        assert told(answer) == [None] * 3


def test_the_schema_says_it(going):
    paths = SchemaGenerator().get_schema(public=True)["paths"]
    assert paths["/api/v1/me"]["get"]["deprecated"] is True
    assert "deprecated" not in paths["/api/v1/instances"]["get"]


def test_nothing_goes_sooner_than_was_promised():
    Deprecation(since=SINCE, sunset=SINCE + LEAST)
    with pytest.raises(ValueError, match="180 days"):
        Deprecation(since=SINCE, sunset=SINCE + LEAST - timedelta(seconds=1))


def test_nothing_is_deprecated_today():
    """Who deprecates something writes it into CHANGELOG.md, and its dates into this test."""
    views = {getattr(route.callback, "view_class", None) for route in urlpatterns if hasattr(route, "callback")}
    assert [view for view in views if getattr(view, "deprecations", None)] == []
