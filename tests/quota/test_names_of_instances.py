"""Whose a physical name is, and what a tenant may call a topic."""

import pytest

from quota.contracts.namespace import (
    ClusterNames,
    ForeignNameError,
    InstanceNames,
    instance_id_of_key,
    instance_key,
    split_physical,
    topic_name_problem,
)

NAMES = InstanceNames("k3v9x2qa")


def test_an_instance_id_and_its_key_lead_to_each_other():
    assert instance_key("ins-k3v9x2qa") == "k3v9x2qa"
    assert instance_id_of_key("k3v9x2qa") == "ins-k3v9x2qa"


@pytest.mark.parametrize(
    "text", ["", "k3v9x2qa", "ins-", "ins-k3v9x2q", "ins-k3v9x2qaa", "ins-K3V9X2QA", "INS-k3v9x2qa"]
)
def test_nothing_else_is_an_instance_id(text):
    with pytest.raises(ValueError, match=f"^not an instance id: '{text}'$"):
        instance_key(text)


@pytest.mark.parametrize("tenants", ["orders", "a", ".", "k3v9x2qa.orders", ""])
def test_a_physical_name_is_the_key_a_dot_and_the_tenants_name(tenants):
    physical = NAMES.topic_in(tenants)
    assert physical == f"k3v9x2qa.{tenants}"
    assert split_physical(physical) == ("k3v9x2qa", tenants)
    assert NAMES.owns(physical)
    assert NAMES.topic_out(physical) == tenants


@pytest.mark.parametrize(
    "name", ["", "orders", "k3v9x2qa", "k3v9x2qaorders", "k3v9x2qa-orders", "__consumer_offsets", "K3V9X2QA.a"]
)
def test_a_name_without_a_key_is_the_clusters(name):
    assert split_physical(name) is None
    assert not NAMES.owns(name)


@pytest.mark.parametrize("key", ["k3v9x2qb", "a3v9x2qa", "k3v9x2q", "k3v9x2qaa"])
def test_a_key_that_differs_in_one_character_is_another_instance(key):
    assert not NAMES.owns(f"{key}.orders")
    with pytest.raises(
        ForeignNameError, match=f"^instance key k3v9x2qa does not own a name of {len(key) + 7} characters$"
    ):
        NAMES.group_out(f"{key}.orders")


@pytest.mark.parametrize("name", ["orders", "k3v9x2qa.orders", "__usage"])
def test_inside_the_cluster_every_name_is_itself_and_visible(name):
    assert ClusterNames().topic_in(name) == ClusterNames().topic_out(name) == name
    assert ClusterNames().owns(name)


@pytest.mark.parametrize("name", ["a", "...", "a_b-c.D9", "_one", "x" * 230])
def test_a_good_topic_name_has_no_problem(name):
    assert topic_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the topic name is empty"),
        (".", "the topic name cannot be '.' or '..'"),
        ("..", "the topic name cannot be '.' or '..'"),
        ("x" * 231, "the topic name has 231 characters; at most 230 are allowed"),
        ("a b", "the topic name may hold only letters, digits, '.', '_' and '-'"),
        ("ä", "the topic name may hold only letters, digits, '.', '_' and '-'"),
        ("__usage", "topic names that begin with '__' are reserved"),
    ],
)
def test_a_bad_one_has_a_sentence(name, problem):
    assert topic_name_problem(name) == problem
