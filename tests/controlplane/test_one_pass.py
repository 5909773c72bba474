"""Validation answers once: whatever is wrong with a request, of its shape or its rules, stands in the same answer."""

from __future__ import annotations

from controlplane.api import serializers

from .conftest import WANTED
from .test_instances_api import URL, problem


def fields(answer, status=400, code="invalid") -> set[str]:
    return {each["field"] for each in problem(answer, status, code)["errors"]}


def test_creating_names_every_wrong_member_at_once(alice, brokers):
    body = {
        "name": "\u202e",
        "bandwidth_mib_per_s": 0,
        "storage_gib": "ten",
        "whitelist": ["10.0.0.0/8", "10.0.0.1/8", "home"],
        "bandwith": 5,
    }
    expected = {"name", "bandwidth_mib_per_s", "storage_gib", "partitions", "whitelist.1", "whitelist.2", "bandwith"}
    assert fields(alice.api.post(URL, body)) == expected


def test_changing_names_every_wrong_member_at_once(alice, instance):
    body = {"name": " ", "partitions": 0, "storage": 5, "bandwidth_mib_per_s": True}
    expected = {"name", "partitions", "storage", "bandwidth_mib_per_s"}
    assert fields(alice.api.patch(f"{URL}/{instance.id}", body)) == expected


def test_a_topic_names_every_wrong_member_at_once(alice, instance):
    body = {"name": "or ders", "partitions": 0, "replication_factor": "3", "retention": 1}
    expected = {"name", "partitions", "replication_factor", "retention"}
    assert fields(alice.api.post(f"{URL}/{instance.id}/topics", body)) == expected


def test_a_throttle_rule_names_every_wrong_member_at_once(alice, instance):
    body = {"kind": "topic", "topics": ["or ders"], "produce_mib_per_s": 0, "consume_mib_per_s": -1}
    expected = {"topics.0", "produce_mib_per_s", "consume_mib_per_s"}
    assert fields(alice.api.post(f"{URL}/{instance.id}/throttle-rules", body)) == expected


def test_what_is_right_is_still_taken(alice, brokers):
    assert alice.api.post(URL, WANTED).status_code == 202


def test_a_misspelt_field_is_named_with_the_one_that_was_meant(alice, brokers):
    answer = problem(alice.api.post(URL, WANTED | {"bandwith_mib_per_s": 5, "colour": "red"}), 400, "invalid")
    said = {each["field"]: each["detail"] for each in answer["errors"]}
    assert said["bandwith_mib_per_s"] == "unknown field, did you mean `bandwidth_mib_per_s`?"
    assert said["colour"] == "unknown field"


def test_names_are_guessed_for_a_few_fields_only(alice, brokers, monkeypatch):
    """Each is compared letter by letter with all that are known: a large body of them must cost no more than a small one."""
    guessed = []
    monkeypatch.setattr(serializers, "get_close_matches", lambda name, *_args, **_named: guessed.append(name) or [])
    body = {f"storage_gi{number}": 1 for number in range(1000)} | {"x" * 65: 1}
    problem(alice.api.post(URL, body), 400, "invalid")
    assert len(guessed) == serializers.MOST_GUESSED
