"""The page *Connect*: programs for a topic, a route and a mechanism that are chosen; a topic's page leads there."""

from __future__ import annotations

import pytest

from controlplane.console.views import snippets as page_of
from controlplane.core.errors import Conflict
from controlplane.snippets.programs import KEYS
from controlplane.topics import services as topics
from tests.controlplane.conftest import run_to_the_end

from .conftest import text_of


@pytest.fixture
def path(instance):
    return f"instances/{instance.id}"


@pytest.fixture
def secured(alice, path):
    body = {"security": "sasl_ssl", "mechanisms": ["SCRAM-SHA-256", "PLAIN"]}
    run_to_the_end(alice.api.post(f"/api/v1/{path}/routes", body).json()["operation_id"])
    return "r2"


def test_a_topics_page_leads_to_programs_of_that_topic(at_alice, alice, path, instance, admin):
    topics.topic_create(organisation=alice.organisation, actor="a", instance_id=instance.id, name="orders")
    assert f"{path}/snippets?topic=orders" in at_alice.get(f"{path}/topics/orders").content.decode()
    shown = at_alice.get(f"{path}/snippets?topic=orders")
    assert shown.status_code == 200
    found = shown.content.decode()
    for key in KEYS:
        assert f'id="snippet-{key}"' in found
    assert found.count("--topic orders") == 2  # of Kafka's tools
    assert "sluice instance snippet --client kcat --topic=orders" in found
    assert "my-topic" not in found
    for part in (
        "src/main/java/Main.java",
        "src/main/java/example/Application.java",
        "pom.xml",
        "mvn -q compile exec:java",
    ):
        assert part in found
    assert 'value="orders"' in found  # the form keeps it


def test_another_route_and_mechanism(at_alice, path, secured):
    shown = text_of(at_alice.get(f"{path}/snippets?route={secured}&mechanism=PLAIN"))
    assert "PlainLoginModule" in shown
    assert "SASL_SSL" in shown
    assert "ScramLoginModule" in text_of(at_alice.get(f"{path}/snippets?route={secured}"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("topic=%24(id)", "may hold only letters"),
        ("route=r9", "r9"),
        ("mechanism=PLAIN", "Nobody logs in on this route"),
    ],
)
def test_what_is_wrong_stands_in_the_form_and_nothing_can_be_pasted(at_alice, path, query, words):
    answer = at_alice.get(f"{path}/snippets?{query}")
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert "$(id)" not in answer.content.decode().replace('value="$(id)"', "")
    assert 'id="snippet-' not in answer.content.decode()


def test_an_instance_without_addresses_says_so(at_alice, path, monkeypatch):
    def none(**_):
        raise Conflict("no route of the instance has an address yet", code="route_not_ready")

    monkeypatch.setattr(page_of, "guide_get", none)
    assert "No route of the instance has an address yet" in text_of(at_alice.get(f"{path}/snippets"))


def test_a_viewer_opens_it_too(at_viewer, path):
    assert at_viewer.get(f"{path}/snippets").status_code == 200
