"""Snippets by REST: programs for a client, with the addresses, the security and a topic of the instance, and no secret."""

from __future__ import annotations

import pytest

from controlplane.console.commandline import command_of
from controlplane.core.errors import ClusterUnavailable
from controlplane.instances.models import Route
from controlplane.snippets import selectors
from controlplane.snippets.programs import KEYS
from tests.controlplane.conftest import client_of, run_to_the_end
from tests.controlplane.test_instances_api import URL, problem

MECHANISMS = ["SCRAM-SHA-512", "PLAIN"]


@pytest.fixture
def ask(viewer, instance):
    """A viewer's question, who may look and not change."""
    return lambda **query: viewer.api.get(f"{URL}/{instance.id}/snippets", query)


@pytest.fixture
def secured(alice, instance):
    """A second route of the instance, on which clients log in inside TLS."""
    body = {"security": "sasl_ssl", "mechanisms": MECHANISMS}
    run_to_the_end(alice.api.post(f"{URL}/{instance.id}/routes", body).json()["operation_id"])
    return "r2"


def texts(answer):
    assert answer.status_code == 200, answer.content
    return {each["file"]: each["content"] for each in answer.json()["snippet"]["files"]}


def test_without_a_client_the_ten_are_listed(ask, instance):
    found = ask().json()
    assert [each["client"] for each in found["items"]] == list(KEYS)
    assert all(set(each) == {"client", "client_name"} for each in found["items"])
    assert found["snippet"] is None
    assert (found["route"], found["security"], found["mechanism"]) == ("default", "plaintext", "")
    assert found["topic"] == "my-topic"


@pytest.mark.parametrize("client", KEYS)
def test_each_has_files_with_the_addresses_and_the_topic_and_lines_that_run_them(ask, client):
    answer = ask(client=client, topic="orders")
    files, whole = texts(answer), "\n".join(texts(answer).values())
    assert all(address in whole for address in answer.json()["bootstrap"].split(","))
    assert "orders" in whole
    assert "my-topic" not in whole
    assert answer.json()["snippet"]["run"]
    assert all(name and not name.startswith("/") for name in files)


@pytest.mark.parametrize("client", ["java", "spring"])
def test_those_of_java_are_a_program_that_maven_builds(ask, client):
    answer = ask(client=client, topic="orders")
    files = texts(answer)
    assert "pom.xml" in files
    (program,) = [text for name, text in files.items() if name.endswith(".java")]
    assert ("KafkaProducer" in program and "KafkaConsumer" in program) or (
        "KafkaTemplate" in program and "@KafkaListener" in program
    )
    assert answer.json()["snippet"]["run"][0].startswith("mvn ")


def test_a_route_is_chosen_and_its_best_mechanism(ask, secured):
    found = ask(route=secured, client="kcat").json()
    assert (found["route"], found["security"], found["mechanism"]) == (secured, "sasl_ssl", "SCRAM-SHA-512")
    text = texts(ask(route=secured, client="kcat"))["commands.sh"]
    assert "-X sasl.username=USER -X sasl.password=PASSWORD" in text
    assert "ssl.ca.location=ca.pem" in text


def test_or_another_mechanism_that_it_has(ask, secured):
    assert "sasl.mechanism=PLAIN" in texts(ask(route=secured, client="java", mechanism="PLAIN"))["client.properties"]
    refused = problem(ask(route=secured, mechanism="OAUTHBEARER"), 400, "invalid")
    assert refused["errors"] == [{"field": "mechanism", "detail": "the route has SCRAM-SHA-512, PLAIN"}]
    assert problem(ask(mechanism="PLAIN"), 400, "invalid")["errors"][0]["detail"] == "nobody logs in on this route"


@pytest.mark.parametrize(
    "topic", ["$(reboot)", "a b", "a;b", "a\nb", '"', "`id`", "..", "a/b", "x" * 231, "__", "é", "a\x00b"]
)
def test_what_is_no_name_of_a_topic_gets_into_no_program(ask, topic):
    """Somebody may be sent an address, and pastes what it shows."""
    answer = ask(client="kcat", topic=topic)
    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["errors"]] == ["topic"]


@pytest.mark.parametrize("topic", ["orders.eu_1-a", "-orders", "__sluice_audit"])
def test_any_name_of_a_topic_does_whether_it_is_there_or_not(ask, topic):
    assert ask(topic=topic).json()["topic"] == topic


@pytest.mark.parametrize("query", [{"client": "perl"}, {"mechanism": "GSSAPI"}, {"route": "r9"}, {"route": "$(id)"}])
def test_what_there_is_not_is_refused_by_name(ask, query):
    refused = problem(ask(**query), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == list(query)


def test_the_first_topic_is_named_and_a_cluster_that_is_away_keeps_nobody(ask, monkeypatch):
    monkeypatch.setattr(selectors.groups, "topic_names", lambda *_: {"zebra", "orders", "__sluice_audit"})
    assert ask().json()["topic"] == "orders"

    def away(*_):
        raise ClusterUnavailable("ZooKeeper does not answer")

    monkeypatch.setattr(selectors.groups, "topic_names", away)
    assert ask().json()["topic"] == "my-topic"
    assert ask(topic="clicks").json()["topic"] == "clicks"


def test_an_instance_without_addresses_has_none_yet(ask, monkeypatch):
    real = selectors.routes_shown

    def without(instances):
        found = real(instances)
        for route in next(iter(found.values())):
            route.bootstrap = None
        return found

    monkeypatch.setattr(selectors, "routes_shown", without)
    problem(ask(), 409, "route_not_ready")
    problem(ask(route="default"), 409, "route_not_ready")


def test_a_route_that_is_being_removed_is_none(ask, secured):
    Route.objects.unscoped("a test").filter(key=secured).update(state="deleting")
    assert problem(ask(route=secured), 400, "invalid")["errors"][0]["field"] == "route"


def test_another_organisation_learns_nothing(charlie, instance):
    query = {"client": "kcat", "topic": "$(id)", "route": "r9"}
    foreign = problem(charlie.api.get(f"{URL}/{instance.id}/snippets", query), 404, "not_found")
    missing = problem(charlie.api.get(f"{URL}/ins-00000000/snippets", query), 404, "not_found")
    assert {**foreign, "detail": foreign["detail"].replace(instance.id, "ins-00000000")} == missing


def test_nobody_learns_anything_without_a_key(instance):
    assert client_of("slc_none").get(f"{URL}/{instance.id}/snippets").status_code == 401


def test_no_secret_is_in_any(alice, ask, secured):
    """A user of the instance is made: neither the name nor the password is in what is shown, to those who made them either."""
    path = f"{URL}/{alice.api.get(URL).json()['items'][0]['id']}"
    made = alice.api.post(f"{path}/users", {"name": "annabel-of-the-shop"}).json()
    for client in KEYS:
        answer = alice.api.get(f"{path}/snippets", {"client": client, "route": secured}).content.decode()
        assert made["password"] not in answer
        assert "annabel" not in answer


def test_the_page_says_the_command_with_what_was_chosen_and_with_nothing_else():
    ids = {"instance_id": "ins-abcdefgh"}
    line = command_of("instance_snippets", ids, {"topic": "-orders", "route": "r2", "mechanism": "PLAIN"})
    said = "sluice instance snippet --client kcat --topic=-orders --route=r2 --mechanism=PLAIN ins-abcdefgh"
    assert line == said
    plain = command_of("instance_snippets", ids)
    assert command_of("instance_snippets", ids, {"topic": "$(id)", "route": "r2;", "mechanism": "a b"}) == plain
