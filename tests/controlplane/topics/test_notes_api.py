"""Notes and tags: kept with the topic, by its id, and gone with it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import QuerySet

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.instances.models import Instance, InstanceState
from controlplane.topics import notes
from controlplane.topics.models import TopicNote
from controlplane.topics.notes import notes_named
from tests.controlplane.test_instances_api import problem


@pytest.fixture
def url(alice, instance):
    path = f"/api/v1/instances/{instance.id}/topics"
    for name in ("orders", "payments"):
        assert alice.api.post(path, {"name": name, "partitions": 1}).status_code == 201
    return path


def written(alice, url, topic="orders", **members):
    answer = alice.api.patch(f"{url}/{topic}/note", members)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_what_is_written_is_shown_and_what_is_left_out_stays(alice, url):
    assert (
        written(alice, url, note="ask billing\nfirst", tags=["prod", "billing", "prod"])["note"] == "ask billing\nfirst"
    )
    assert written(alice, url, tags=["billing"])["note"] == "ask billing\nfirst"
    assert written(alice, url, note="")["tags"] == ["billing"]
    alice.api.patch(f"{url}/orders", {"partitions": 2, "config": {"retention.ms": "60000"}})
    found = alice.api.get(f"{url}/orders").json()
    assert (found["note"], found["tags"]) == ("", ["billing"])
    listed = {row["name"]: row["tags"] for row in alice.api.get(url).json()["items"]}
    assert listed == {"orders": ["billing"], "payments": []}


def test_a_list_holds_those_that_have_the_tag(alice, url):
    written(alice, url, tags=["prod", "über uns"])
    written(alice, url, "payments", tags=["production"])

    def found(**query):
        return [row["name"] for row in alice.api.get(url, query).json()["items"]]

    assert (found(tag="prod"), found(tag="über uns"), found(tag="pro")) == (["orders"], ["orders"], [])
    assert found(tag="production", prefix="o") == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"note": "x" * 2001}, "note"),
        ({"note": "\0"}, "note"),
        ({"note": "a\u202eb"}, "note"),
        ({"note": 5}, "note"),
        ({"tags": ["x" * 41]}, "tags.0"),
        ({"tags": ["fine", "a,b"]}, "tags.1"),
        ({"tags": [" a"]}, "tags.0"),
        ({"tags": [""]}, "tags.0"),
        ({"tags": [str(number) for number in range(11)]}, "tags"),
        ({"tags": "prod"}, "tags"),
        ({"labels": []}, "labels"),
    ],
)
def test_what_is_too_long_or_no_text_is_refused(alice, url, body, field):
    found = problem(alice.api.patch(f"{url}/orders/note", body), 400, "invalid")
    assert [each["field"] for each in found["errors"]] == [field]
    assert not TopicNote.objects.unscoped("a test").exists()


def test_nothing_is_no_change(alice, url):
    problem(alice.api.patch(f"{url}/orders/note", {}), 400, "invalid")


def test_the_longest_are_taken(alice, url):
    tags = [f"{number}" * 40 for number in range(10)]
    found = written(alice, url, note="x" * 2000, tags=tags)
    assert (len(found["note"]), found["tags"]) == (2000, tags)


def test_it_is_gone_with_the_topic_and_one_made_again_begins_without(alice, url):
    written(alice, url, note="of the first", tags=["old"])
    assert alice.api.delete(f"{url}/orders").status_code == 204
    assert not TopicNote.objects.unscoped("a test").exists()
    assert alice.api.post(url, {"name": "orders", "partitions": 1}).json()["tags"] == []


def test_one_that_a_client_deleted_and_made_again_inherits_nothing(alice, url, admin, instance):
    written(alice, url, note="of the first", tags=["old"])
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    admin.delete([physical])
    admin.create(physical, partitions=1, replication_factor=3, config={})
    found = alice.api.get(f"{url}/orders").json()
    assert (found["note"], found["tags"]) == ("", [])
    assert [row["name"] for row in alice.api.get(url, {"tag": "old"}).json()["items"]] == []
    assert written(alice, url, tags=["new"])["note"] == ""


def test_what_no_topic_can_be_called_is_not_looked_for(instance, django_assert_num_queries):
    """PostgreSQL takes no NUL in a text."""
    with django_assert_num_queries(0):
        assert notes_named(instance, "a\0") == []


def test_an_empty_one_leaves_no_row(alice, url):
    written(alice, url, note="x", tags=["y"])
    written(alice, url, note=" ", tags=[])
    assert not TopicNote.objects.unscoped("a test").exists()


def test_it_is_in_the_audit_trail_once_and_only_where_something_changed(alice, url, instance):
    written(alice, url, note="x")
    written(alice, url, note="x")
    (entry,) = AuditEntry.objects.for_organisation(alice.organisation).filter(action="topic.note")
    assert (entry.actor, entry.target) == ("alice@example.com", f"{instance.id}/orders")
    assert entry.detail == {"note": {"from": "", "to": "x"}}


def test_a_dry_run_says_it_and_writes_nothing(alice, url):
    found = alice.api.patch(f"{url}/orders/note?dry_run=true", {"tags": ["prod"]}).json()
    assert found["changes"] == {"tags": [[], ["prod"]]}
    assert not TopicNote.objects.unscoped("a test").exists()


def test_a_viewer_reads_it_and_writes_none_and_a_stranger_finds_nothing(alice, viewer, charlie, url):
    written(alice, url, note="ours")
    assert viewer.api.get(f"{url}/orders").json()["note"] == "ours"
    problem(viewer.api.patch(f"{url}/orders/note", {"note": "mine"}), 403, "forbidden")
    problem(charlie.api.patch(f"{url}/orders/note", {"note": "mine"}), 404, "not_found")


def test_a_topic_that_is_not_there_has_none(alice, url):
    problem(alice.api.patch(f"{url}/missing/note", {"note": "x"}), 404, "topic_not_found")


class TestTidying:
    """Of notes whose topics went without this service."""

    @pytest.fixture
    def old(self, alice, url):
        for topic in ("orders", "payments"):
            written(alice, url, topic, tags=["kept"])
        TopicNote.objects.unscoped("a test").update(updated_at=SYSTEM_CLOCK.now() - timedelta(hours=1))
        return TopicNote.objects.unscoped("a test")

    def test_topics_that_are_there_keep_theirs(self, old):
        assert notes.tidy() == 0
        assert old.count() == 2

    def test_those_of_topics_that_are_gone_or_made_again_go(self, old, admin, instance):
        key = instance.id.removeprefix("ins-")
        admin.delete([f"{key}.orders", f"{key}.payments"])
        admin.create(f"{key}.payments", partitions=1, replication_factor=3, config={})
        assert notes.tidy() == 2
        assert not old.exists()

    def test_what_was_written_just_now_is_let_be(self, old, admin, instance):
        old.update(updated_at=SYSTEM_CLOCK.now())
        admin.delete([f"{instance.id.removeprefix('ins-')}.orders"])
        assert notes.tidy() == 0

    def test_a_cluster_that_is_away_takes_none(self, old, admin, tree):
        tree.away = True
        assert notes.tidy() == 0
        tree.away, admin.away = False, True
        assert notes.tidy() == 0
        assert old.count() == 2

    def test_those_of_an_instance_that_is_gone_go(self, old, instance):
        Instance.objects.unscoped("a test").filter(pk=instance.pk).update(state=InstanceState.DELETED)
        assert notes.tidy() == 2


def test_of_two_who_write_with_if_match_none_locks_the_key_of_the_instance(alice, url, monkeypatch):
    """On PostgreSQL a note refers to it: with a lock on the key each would wait for the other."""
    locked, lock = [], QuerySet.select_for_update

    def spied(rows, **how):
        locked.append((rows.model, how.get("no_key", False)))
        return lock(rows, **how)

    monkeypatch.setattr(QuerySet, "select_for_update", spied)
    etag = alice.api.get(f"{url}/orders").headers["ETag"]
    answer = alice.api.patch(f"{url}/orders/note", {"note": "ask billing"}, headers={"If-Match": etag})
    assert answer.status_code == 200, answer.content
    assert (Instance, True) in locked
    assert (Instance, False) not in locked
