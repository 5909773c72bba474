"""Mirrors by REST, over a topic in memory."""

from __future__ import annotations

import time

import pytest

from controlplane.mirrors.selectors import MOST_RECORDS
from tests.controlplane.mirrors.conftest import ROW
from tests.controlplane.test_instances_api import problem


def items(answer):
    assert answer.status_code == 200, answer.json()
    return answer.json()["items"]


def test_where_there_is_no_mirror_there_is_none(alice, instance):
    assert items(alice.api.get(f"/api/v1/instances/{instance.id}/mirrors")) == []


def test_a_topic_in_which_nobody_has_said_anything_is_none_either(alice, hers):
    assert items(alice.api.get(hers.url)) == []


def test_a_mirror_says_its_lag_rates_and_offsets(alice, hers, his):
    his.say(source="secret")
    hers.say()
    (row,) = items(alice.api.get(hers.url))
    assert (row["source"], row["target"], row["delivery"], row["silent"]) == ("old", "new", "exactly_once", False)
    assert (row["lag"], row["messages_per_s"], row["bytes_per_s"], row["partitions"]) == (7, 120.5, 98304.0, 1)
    assert row["furthest_behind"] == [ROW]
    assert row["age_s"] == pytest.approx(0, abs=30)
    assert row["at"].endswith("Z")


def test_of_each_mirror_the_last_counts(alice, hers):
    hers.say(source="b", lag=5)
    hers.say(source="a", lag=1)
    hers.say(source="b", lag=3)
    assert [(row["source"], row["lag"]) for row in items(alice.api.get(hers.url))] == [("a", 1), ("b", 3)]


def test_what_others_write_there_is_passed_over(alice, hers):
    hers.say()
    for value in (b"hello", b"{}", None):
        hers.messages.write(f"{hers.instance_id.removeprefix('ins-')}.mirror-status", 0, value)
    assert [row["source"] for row in items(alice.api.get(hers.url))] == ["old"]


def test_one_that_should_have_said_more_is_silent(alice, hers):
    now_ms = int(time.time() * 1000)
    hers.say(source="slow", at_ms=now_ms - 100_000, every_s=60.0)
    hers.say(source="dead", at_ms=now_ms - 100_000, every_s=10.0)
    hers.say(source="of-tomorrow", at_ms=10**18)
    assert [(row["source"], row["silent"]) for row in items(alice.api.get(hers.url))] == [
        ("dead", True),
        ("of-tomorrow", False),
        ("slow", False),
    ]


def test_a_look_has_an_end(alice, hers):
    hers.say(source="first")
    for number in range(MOST_RECORDS):
        hers.say(source="second", lag=number)
    assert [(row["source"], row["lag"]) for row in items(alice.api.get(hers.url))] == [("second", MOST_RECORDS - 1)]


def test_what_is_read_is_the_instances_bandwidth(alice, hers):
    hers.say()
    hers.messages.wait_s = 5.0
    assert items(alice.api.get(hers.url))
    problem(alice.api.get(hers.url), 429, "bandwidth_used_up")


def test_a_stranger_and_a_viewer(viewer, charlie, hers):
    hers.say()
    assert items(viewer.api.get(hers.url))
    problem(charlie.api.get(hers.url), 404, "not_found")


def test_a_cluster_that_is_away_is_said(alice, hers, tree):
    hers.say()
    hers.messages.admin.away = True
    problem(alice.api.get(hers.url), 503, "cluster_unavailable")
