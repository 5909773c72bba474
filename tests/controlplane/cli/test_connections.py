"""Connections on the command line."""

from __future__ import annotations

from tests.controlplane.connections.conftest import Given, connection, refused, rest

from .test_whole_life import WANTED


def test_who_is_connected_who_was_refused_and_who_moves_most(ok, as_alice, brokers, admin):
    instance_id = ok("instance", "create", "events", *WANTED, "-o", "json").json["id"]
    hers = Given(instance_id, admin.connections)
    hers.say(
        1,
        connections=(connection("shop", sends=1_000), connection("billing", principal="")),
        refused=(refused("192.0.2.1", "sasl", 3),),
        talkers=(hers.talker(produces=10), hers.talker("billing", "clicks", consumes=5)),
        other_talkers=rest(0),
    )
    listed = ok("connections", "list", "events", "-o", "json").json
    assert [row["client_id"] for row in listed["items"]] == ["shop", "billing"]
    assert "apache-kafka-java" in ok("connections", "list", "events").out
    assert len(ok("connections", "list", "events", "--limit", 1, "-o", "json").json["items"]) == 1
    (row,) = ok("connections", "refused", "events", "-o", "json").json["items"]
    assert (row["address"], row["reason"], row["count"]) == ("192.0.2.1", "sasl", 3)
    talkers = ok("connections", "talkers", "events", "clicks", "-o", "json").json
    assert [row["client_id"] for row in talkers["items"]] == ["billing"]
    assert as_alice("connections", "list", "events", "--limit", 1_001).status == 2
