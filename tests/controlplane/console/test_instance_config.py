"""The defaults of an instance's topics in the console."""

from __future__ import annotations

from controlplane.core.models import Operation
from controlplane.instances.models import Instance

from .conftest import problem_beside, shown_by, text_of

SAME = {"default_partitions": "3", "default_replication_factor": "3", "max_message_bytes": "1048588"}


def post(visitor, instance, **members):
    return visitor.post(f"instances/{instance.id}/config", members)


def test_settings_show_the_defaults_and_a_change_is_on_its_way(at_alice, instance):
    assert (
        at_alice.address(f"instances/{instance.id}/config")
        in at_alice.get(f"instances/{instance.id}/settings").content.decode()
    )
    page = at_alice.get(f"instances/{instance.id}/config")
    assert "Defaults of topics" in text_of(page)
    assert 'name="auto_create_topics"' in page.content.decode()
    answer = post(
        at_alice,
        instance,
        **SAME | {"default_partitions": "6", "auto_create_topics": "on", "max_message_bytes": "2097152"},
    )
    assert answer.status_code == 302
    row = Instance.objects.unscoped("a test").get(pk=instance.pk)
    assert row.config == {"auto_create_topics": True, "default_partitions": 6, "max_message_bytes": 2_097_152}
    assert Operation.objects.for_organisation(at_alice.organisation).filter(kind="instance.update").count() == 1
    text = text_of(at_alice.get(f"instances/{instance.id}"))
    assert "Auto-create topics on" in text


def test_without_a_change_nothing_is_begun(at_alice, instance):
    assert post(at_alice, instance, **SAME).status_code == 302
    assert not Operation.objects.for_organisation(at_alice.organisation).filter(kind="instance.update").exists()


def test_a_page_that_was_opened_earlier_takes_nothing_back(at_alice, alice, instance):
    """A colleague changes one default meanwhile, and here another one is changed."""
    shown = shown_by(at_alice.get(f"instances/{instance.id}/config"))
    theirs = {"config": {"default_partitions": 12, "max_message_bytes": 2_097_152}}
    assert alice.api.patch(f"/api/v1/instances/{instance.id}", theirs).status_code == 202
    assert post(at_alice, instance, **SAME | {"default_replication_factor": "2"}, **shown).status_code == 302
    instance.refresh_from_db()
    assert instance.config == theirs["config"] | {"default_replication_factor": 2}


def test_what_a_colleague_has_set_to_the_same_meanwhile_is_no_change(at_alice, alice, instance):
    shown = shown_by(at_alice.get(f"instances/{instance.id}/config"))
    alice.api.patch(f"/api/v1/instances/{instance.id}", {"config": {"default_partitions": 6}})
    answer = at_alice.post(f"instances/{instance.id}/config", SAME | {"default_partitions": "6"} | shown, follow=True)
    assert "Nothing was changed." in text_of(answer)


def test_everything_that_is_wrong_is_said_beside_its_field_at_once(at_alice, instance):
    page = post(at_alice, instance, default_partitions="0", default_replication_factor="", max_message_bytes="1023")
    assert page.status_code == 422
    for field in ("default_partitions", "default_replication_factor", "max_message_bytes"):
        assert problem_beside(page, field)


def test_more_replicas_than_brokers_is_said_beside_the_field(at_alice, instance):
    page = post(at_alice, instance, **SAME | {"default_replication_factor": "4"})
    assert "3 brokers" in problem_beside(page, "default_replication_factor")


def test_a_new_topic_begins_with_them(at_alice, instance):
    post(at_alice, instance, **SAME | {"default_partitions": "6"})
    assert 'name="partitions" value="6"' in at_alice.get(f"instances/{instance.id}/new-topic").content.decode()


def test_a_viewer_changes_nothing(at_viewer, instance):
    assert post(at_viewer, instance, **SAME | {"default_partitions": "6"}).status_code == 403
