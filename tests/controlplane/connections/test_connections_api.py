"""Connections by REST, over brokers in memory."""

from __future__ import annotations

import pytest

from tests.controlplane.test_instances_api import problem

from .conftest import connection, refused, rest


def test_connections_of_all_brokers_come_by_what_they_move(alice, hers, his):
    hers.say(1, connections=(connection("slow", sends=10), connection("idle", principal="")))
    hers.say(2, connections=(connection("fast", sends=1_000, is_sent=24, requests=3),))
    his.say(1, connections=(connection("secret", sends=10**6),))
    answer = alice.api.get(f"{hers.url}/connections").json()
    rows = answer["items"]
    assert [(row["client_id"], row["broker"]) for row in rows] == [("fast", 2), ("slow", 1), ("idle", 1)]
    assert (rows[0]["in_bytes_per_s"], rows[0]["out_bytes_per_s"], rows[0]["requests_per_s"]) == (1000.0, 24.0, 3.0)
    assert (rows[0]["software_name"], rows[0]["software_version"]) == ("apache-kafka-java", "3.9.1")
    assert (rows[0]["address"], rows[0]["principal"], rows[0]["route_id"]) == ("10.0.0.7", "User:ann", "default")
    assert rows[0]["security"] == "plaintext"
    assert rows[0]["connected_at"].endswith("Z")
    assert rows[2]["principal"] is None
    assert answer["others"] == {"count": 0, "in_bytes_per_s": 0, "out_bytes_per_s": 0}
    assert answer["missing_brokers"] == []


def test_of_more_than_are_wanted_the_others_are_summed_up(alice, hers):
    for broker in (1, 2):
        hers.say(
            broker,
            connections=(connection("a", sends=100 * broker), connection("b", sends=10)),
            other_connections=rest(5, 7, 9),
        )
    answer = alice.api.get(f"{hers.url}/connections?limit=2").json()
    assert [row["in_bytes_per_s"] for row in answer["items"]] == [200.0, 100.0]
    assert answer["others"] == {"count": 12, "in_bytes_per_s": 34, "out_bytes_per_s": 18}


def test_a_broker_that_does_not_answer_is_named_and_none_is_503(alice, hers):
    hers.say(2, connections=(connection("here"),))
    hers.door.away = {1}
    answer = alice.api.get(f"{hers.url}/connections").json()
    assert ([row["client_id"] for row in answer["items"]], answer["missing_brokers"]) == (["here"], [1])
    hers.door.away = {1, 2}
    for path in ("connections", "refused-connections", "talkers"):
        problem(alice.api.get(f"{hers.url}/{path}"), 503, "cluster_unavailable")


def test_who_was_refused_is_added_up_over_brokers_the_latest_first(alice, hers):
    hers.say(1, refused=(refused(count=3, age_s=600), refused("192.0.2.9", "sasl", 2, age_s=60)), other_refused=4)
    hers.say(2, refused=(refused(count=4, age_s=10),))
    answer = alice.api.get(f"{hers.url}/refused-connections").json()
    told = [(row["address"], row["reason"], row["count"]) for row in answer["items"]]
    assert told == [("192.0.2.1", "whitelist", 7), ("192.0.2.9", "sasl", 2)]
    assert answer["items"][0]["last_at"] > answer["items"][1]["last_at"]
    assert answer["other_count"] == 4
    first = alice.api.get(f"{hers.url}/refused-connections?limit=1").json()
    assert (len(first["items"]), first["other_count"]) == (1, 6)


def test_who_was_refused_is_named_as_the_last_of_them_on_any_broker(alice, hers):
    hers.say(1, refused=(refused(reason="sasl", age_s=600, user="ann", client_id="shop"),))
    hers.say(2, refused=(refused(reason="sasl", age_s=10, user="bob", client_id="till"), refused(age_s=900)))
    first, second = alice.api.get(f"{hers.url}/refused-connections").json()["items"]
    assert (first["count"], first["user"], first["client_id"]) == (2, "bob", "till")
    assert (second["user"], second["client_id"]) == (None, "")


def test_a_client_id_is_taken_as_it_is_and_a_reason_that_there_is_none_of_is_refused(alice, hers):
    hers.say(1, connections=(connection(" a"), connection("a")), refused=(refused(),))
    answer = alice.api.get(f"{hers.url}/connections", {"client_id": " a"}).json()
    assert [row["client_id"] for row in answer["items"]] == [" a"]
    body = problem(alice.api.get(f"{hers.url}/refused-connections?reason=whitelsit"), 400, "invalid")
    assert body["errors"][0]["detail"].startswith("must be one of")
    answer = alice.api.get(f"{hers.url}/refused-connections?reason=whitelist").json()
    assert [row["reason"] for row in answer["items"]] == ["whitelist"]


def test_who_produces_and_consumes_is_added_up_over_brokers(alice, hers, his):
    hers.say(1, talkers=(hers.talker(produces=10), hers.talker("billing", consumes=25)), other_talkers=rest(2, 3, 4))
    hers.say(2, talkers=(hers.talker(produces=20), hers.talker("billing", "events", consumes=1)))
    answer = alice.api.get(f"{hers.url}/talkers").json()
    told = [
        (row["client_id"], row["topic"], row["produced_bytes_per_s"], row["consumed_bytes_per_s"])
        for row in answer["items"]
    ]
    assert told == [
        ("shop", "orders", 30.0, 0.0),
        ("billing", "orders", 0.0, 25.0),
        ("billing", "events", 0.0, 1.0),
    ]
    assert answer["others"] == {"count": 2, "produced_bytes_per_s": 3, "consumed_bytes_per_s": 4}
    assert (answer["produced_bytes_per_s"], answer["consumed_bytes_per_s"]) == (33.0, 30.0)
    of_one = alice.api.get(f"{hers.url}/talkers?topic=events").json()
    assert [row["client_id"] for row in of_one["items"]] == ["billing"]
    assert alice.api.get(f"{hers.url}/talkers?topic=missing").json()["items"] == []


def test_a_topic_of_somebody_else_would_not_be_told(alice, hers, his):
    """No broker says so; if one did, its name would be another tenant's."""
    hers.say(1, talkers=(his.talker("thief", "secret", produces=5), hers.talker(produces=1)))
    answer = alice.api.get(f"{hers.url}/talkers")
    assert [row["client_id"] for row in answer.json()["items"]] == ["shop"]
    assert "secret" not in answer.content.decode()


def test_brokers_are_asked_once_and_for_no_more_than_is_wanted(alice, hers):
    physical = f"{hers.instance_id.removeprefix('ins-')}.orders"
    alice.api.get(f"{hers.url}/connections?limit=7")
    alice.api.get(f"{hers.url}/talkers?topic=orders")
    assert hers.door.asked_for == [(hers.instance_id, None, 7, 0), (hers.instance_id, physical, 0, 100)]


@pytest.mark.parametrize("path", ["connections", "refused-connections", "talkers"])
@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=x", "colour=red"])
def test_a_question_that_means_nothing_is_refused(alice, hers, path, query):
    problem(alice.api.get(f"{hers.url}/{path}?{query}"), 400, "invalid")


@pytest.mark.parametrize("path", ["connections", "refused-connections", "talkers"])
def test_another_ones_instance_is_not_found(charlie, hers, path):
    problem(charlie.api.get(f"{hers.url}/{path}"), 404, "not_found")
