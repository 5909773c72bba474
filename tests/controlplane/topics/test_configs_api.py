"""Every configuration of a topic: value, default, where it comes from, what it does."""

from __future__ import annotations

import pytest

from controlplane.instances.models import Instance
from tests.controlplane.test_instances_api import problem


@pytest.fixture
def url(alice, instance):
    path = f"/api/v1/instances/{instance.id}/topics"
    assert alice.api.post(path, {"name": "orders", "partitions": 1, "config": {"retention.ms": 5}}).status_code == 201
    return f"{path}/orders/configs"


def rows(alice, url):
    return {row["name"]: row for row in alice.api.get(url).json()["items"]}


def test_what_is_set_for_the_topic_stands_before_what_the_service_has(alice, url):
    assert rows(alice, url)["retention.ms"] == {
        "name": "retention.ms",
        "value": "5",
        "source": "topic",
        "default": "86400000",
        "default_source": "broker",
        "read_only": False,
        "documentation": "The age at which segments are deleted; -1 is never.",
    }


def test_kafkas_own_and_what_cannot_be_changed(alice, url):
    found = rows(alice, url)["preallocate"]
    assert (found["value"], found["source"], found["default"], found["read_only"]) == (
        "false",
        "default",
        "false",
        True,
    )
    assert list(rows(alice, url)) == sorted(rows(alice, url))


def test_the_instances_default_is_before_the_brokers(alice, url, instance):
    """Which are asked where they know nothing of it."""
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(config={"max_message_bytes": 5000})
    found = rows(alice, url)["max.message.bytes"]
    assert (found["value"], found["source"], found["default"]) == ("5000", "instance", "5000")
    alice.api.patch(url.removesuffix("/configs"), {"config": {"max.message.bytes": 7000}})
    found = rows(alice, url)["max.message.bytes"]
    assert (found["value"], found["source"]) == ("7000", "topic")
    assert (found["default"], found["default_source"]) == ("5000", "instance")


def test_a_viewer_looks_and_a_stranger_finds_nothing(viewer, charlie, url):
    assert viewer.api.get(url).status_code == 200
    problem(charlie.api.get(url), 404, "not_found")


def test_one_that_is_not_there_is_not_found(alice, url):
    problem(alice.api.get(url.replace("orders", "missing")), 404, "topic_not_found")


def test_a_cluster_that_is_away_is_said(alice, url, admin):
    admin.away = True
    problem(alice.api.get(url), 503, "cluster_unavailable")
