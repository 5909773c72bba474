"""Listing one instance's topics: what is asked for does not grow with other instances' topics."""

from __future__ import annotations

import pytest

from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.topic_names import TOPICS_PATH, physical_names
from controlplane.kafka import topics
from controlplane.kafka.client import Layout, Partition

CLUSTER = ClusterAddress(1, "127.0.0.1:1")
MINE, OTHER = "ins-k3v9x2qa", "ins-k3v9x2qb"
PARTITIONS = (Partition(0, 1, (1, 2, 3), (1, 2, 3)),)


@pytest.fixture
def put(admin):
    def put_one(name):
        admin.topics[name] = Layout(name, PARTITIONS)

    return put_one


@pytest.fixture
def reads(tree, monkeypatch):
    """How often the whole list of names was read."""
    counted = []
    real = tree.children
    monkeypatch.setattr(tree, "children", lambda path: counted.append(path) or real(path))
    return counted


def names(instance_id):
    return [topic.name for topic in topics.list_all(CLUSTER, instance_id)]


@pytest.mark.parametrize("others", [0, 1, 20_000])
def test_only_the_instances_own_topics_are_described(admin, put, others):
    for number in range(others):
        put(f"{number:08}.orders")
    for name in ("orders", "clicks", "a.b"):
        put(f"k3v9x2qa.{name}")
    for name in ("__usage", "__consumer_offsets", "k3v9x2qaorders", "k3v9x2qa-b", "k3v9x2qa_b", "k3v9x2qb.theirs"):
        put(name)
    assert names(MINE) == ["a.b", "clicks", "orders"]
    assert admin.asked == 3


def test_the_list_of_names_is_read_again_only_after_it_has_changed(tree, admin, put, reads):
    put("k3v9x2qa.orders")
    for _ in range(5):
        assert names(MINE) == ["orders"]
        assert names(OTHER) == []
    assert reads == [TOPICS_PATH]
    put("k3v9x2qb.theirs")
    assert names(OTHER) == ["theirs"]
    assert names(MINE) == ["orders"]
    assert len(reads) == 2
    admin.delete(["k3v9x2qa.orders"])
    assert names(MINE) == []
    assert len(reads) == 3


def test_a_name_whose_topic_is_just_going_is_left_out(tree, admin, put, monkeypatch):
    put("k3v9x2qa.orders")
    monkeypatch.setattr(tree, "children", lambda _: ["k3v9x2qa.gone", "k3v9x2qa.orders"])
    assert physical_names(tree, MINE) == ["k3v9x2qa.gone", "k3v9x2qa.orders"]
    assert names(MINE) == ["orders"]


def test_all_of_an_instances_topics_go_and_no_other(admin, put):
    for number in range(60):
        put(f"k3v9x2qa.t{number:02}")
    put("k3v9x2qb.t00")
    assert topics.delete_all(CLUSTER, MINE) == 60
    assert topics.delete_all(CLUSTER, MINE) == 10
    assert topics.delete_all(CLUSTER, MINE) == 0
    assert list(admin.topics) == ["k3v9x2qb.t00"]
