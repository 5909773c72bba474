"""`config` of an instance: topics that come by themselves, and what holds for topics that do not say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.core.models import AuditEntry
from controlplane.instances.reconcile import reconcile_all
from quota.contracts.apart import spec_path
from quota.contracts.instance import TopicDefaults

from .conftest import WANTED, run_to_the_end
from .test_instances_api import URL, problem

DEFAULT = {
    "auto_create_topics": False,
    "default_partitions": 3,
    "default_replication_factor": 3,
    "max_message_bytes": 1_048_588,
    "allow_everyone_if_no_acl_found": True,
    "super_users": [],
    "audit": False,
}


def config_of(person, instance_id) -> dict:
    return person.api.get(f"{URL}/{instance_id}").json()["config"]


def change(person, instance, **config):
    return person.api.patch(f"{URL}/{instance.id}", {"config": config})


def test_an_instance_shows_its_config_and_brokers_are_told_of_it(alice, instance, tree):
    assert config_of(alice, instance.id) == DEFAULT
    spec = tree.spec(instance.id)
    assert spec.auto_create_topics is False
    assert spec.topic_defaults == TopicDefaults(3, 3, 1_048_588)


def test_a_change_is_an_operation_that_ends_when_brokers_have_it(alice, instance, tree, brokers):
    brokers.paused = {2}
    answer = change(alice, instance, auto_create_topics=True, max_message_bytes=8_000_000)
    assert answer.status_code == 202
    operation = f"/api/v1/operations/{answer.json()['operation_id']}"
    assert alice.api.get(operation).json()["state"] == "running"
    brokers.paused = set()
    brokers.apply()
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    assert config_of(alice, instance.id) == DEFAULT | {"auto_create_topics": True, "max_message_bytes": 8_000_000}
    spec = tree.spec(instance.id)
    assert (spec.auto_create_topics, spec.topic_defaults.max_message_bytes) == (True, 8_000_000)
    entry = AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.update").latest("at")
    assert entry.detail == {
        "config": {
            "auto_create_topics": {"from": False, "to": True},
            "max_message_bytes": {"from": 1_048_588, "to": 8_000_000},
        }
    }


def test_what_is_not_named_stays(alice, instance):
    change(alice, instance, default_partitions=12)
    change(alice, instance, auto_create_topics=True)
    assert config_of(alice, instance.id) == DEFAULT | {"default_partitions": 12, "auto_create_topics": True}


def test_it_can_be_given_when_the_instance_is_made(alice, brokers, tree):
    made = alice.api.post(URL, WANTED | {"config": {"auto_create_topics": True}}).json()
    run_to_the_end(made["operation_id"])
    assert config_of(alice, made["id"]) == DEFAULT | {"auto_create_topics": True}
    assert tree.spec(made["id"]).auto_create_topics is True


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        ({"auto_create_topics": "true"}, {"config.auto_create_topics"}),
        (
            {"default_partitions": 0, "default_replication_factor": 10},
            {"config.default_partitions", "config.default_replication_factor"},
        ),
        ({"max_message_bytes": 1023}, {"config.max_message_bytes"}),
        ({"max_message_bytes": 12_582_913}, {"config.max_message_bytes"}),
        ({"default_partitions": 3001}, {"config.default_partitions"}),
        ({"retention": 5}, {"config.retention"}),
    ],
)  # fmt: skip
def test_what_is_out_of_bounds_is_named(alice, instance, config, fields):
    body = problem(alice.api.patch(f"{URL}/{instance.id}", {"config": config}), 400, "invalid")
    assert {each["field"] for each in body["errors"]} == fields
    assert config_of(alice, instance.id) == DEFAULT


def test_more_replicas_than_there_are_brokers_are_refused(alice, instance):
    body = problem(change(alice, instance, default_replication_factor=4), 400, "invalid")
    assert "3 brokers" in body["detail"]
    assert {each["field"] for each in body["errors"]} == {"config.default_replication_factor"}


def test_an_empty_config_is_no_change(alice, instance):
    problem(change(alice, instance), 400, "invalid")


def test_topics_made_by_rest_get_the_same_defaults(alice, instance):
    change(alice, instance, default_partitions=4, default_replication_factor=2)
    made = alice.api.post(f"{URL}/{instance.id}/topics", {"name": "orders"}).json()
    assert (made["partitions"], made["replication_factor"]) == (4, 2)
    said = alice.api.post(
        f"{URL}/{instance.id}/topics", {"name": "said", "partitions": 1, "replication_factor": 3}
    ).json()
    assert (said["partitions"], said["replication_factor"]) == (1, 3)


def test_an_instance_from_before_is_told_to_brokers_by_the_reconciler(alice, instance, tree):
    old = replace(tree.spec(instance.id), topic_defaults=TopicDefaults(), whitelists_of=instance.generation)
    tree.put(spec_path(instance.id), old.head_json())
    assert tree.spec(instance.id).topic_defaults == TopicDefaults()
    reconcile_all()
    assert tree.spec(instance.id).topic_defaults == TopicDefaults(3, 3, 1_048_588)
