"""Mirrors on the command line."""

from __future__ import annotations

from controlplane.mirrors.records import STATUS_TOPIC
from controlplane.topics import services as topics
from tests.controlplane.mirrors.conftest import ROW, Given

from .test_whole_life import WANTED


def test_how_far_each_mirror_is(ok, alice, brokers, admin):
    instance_id = ok("instance", "create", "events", *WANTED, "-o", "json").json["id"]
    assert ok("mirror", "list", "events", "-o", "json").json["items"] == []
    topics.topic_create(
        organisation=alice.organisation, actor="a", instance_id=instance_id, name=STATUS_TOPIC, partitions=1
    )
    hers = Given(instance_id, admin.messages)
    hers.say(rows=[ROW, {**ROW, "partition": 1, "state": "stuck"}])
    (row,) = ok("mirror", "list", "events", "-o", "json").json["items"]
    assert (row["source"], row["lag"], len(row["furthest_behind"])) == ("old", 7, 2)
    title, line = ok("mirror", "list", "events").out.splitlines()[:2]
    assert "waiting" in title.lower()
    assert "exactly_once" in line
    assert "stuck" in ok("mirror", "show", "events").out
