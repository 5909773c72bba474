"""Changing a topic's partitions and configurations in the console."""

from __future__ import annotations

import pytest

from controlplane.core.errors import Invalid
from controlplane.core.models import AuditEntry
from controlplane.topics import services

from .conftest import problem_beside, shown_by, text_of

EMPTY = dict.fromkeys(["retention_h", "retention_gib", "cleanup_policy", "min_insync_replicas", "max_message_kib"], "")


@pytest.fixture
def physical(alice, instance):
    """A topic with three partitions, kept for two days; its name in the cluster."""
    services.topic_create(
        organisation=alice.organisation,
        actor="a",
        instance_id=instance.id,
        name="orders",
        partitions=3,
        config={"retention.ms": "172800000", "segment.ms": "600000"},
    )
    return f"{instance.id.removeprefix('ins-')}.orders"


@pytest.fixture
def save(at_alice, instance, physical):
    """Send the form; what is not named is as the page has it at first."""

    def save(**fields):
        return at_alice.post(
            f"instances/{instance.id}/topics/orders/settings",
            {"partitions": "3", **EMPTY, "retention_h": "48"} | fields,
        )

    return save


def test_the_form_begins_with_what_is_set(at_alice, instance, physical):
    body = at_alice.get(f"instances/{instance.id}/topics/orders/settings").content.decode()
    assert 'name="retention_h" value="48"' in body
    assert 'name="partitions" value="3"' in body


def test_what_is_changed_is_set_and_the_rest_stays(save, admin, physical):
    answer = save(retention_h="72", min_insync_replicas="2", max_message_kib="2048")
    assert answer.status_code == 302, text_of(answer)
    assert admin.configs[physical] == {
        "retention.ms": "259200000",
        "segment.ms": "600000",
        "min.insync.replicas": "2",
        "max.message.bytes": "2097152",
    }
    entry = AuditEntry.objects.unscoped("a test").filter(action="topic.update").get()
    assert entry.detail["config"]["min.insync.replicas"]["to"] == "2"


def test_empty_takes_a_setting_back_to_its_default_once_confirmed(save, admin, physical):
    assert "Confirm this" in problem_beside(save(retention_h=""), "confirmed")
    assert save(retention_h="", confirmed="on").status_code == 302
    assert "retention.ms" not in admin.configs[physical]


def test_for_ever_is_no_loss(save, admin, physical):
    assert save(retention_h="-1").status_code == 302
    assert admin.configs[physical]["retention.ms"] == "-1"


@pytest.mark.parametrize(
    "fields",
    [{"partitions": "6"}, {"retention_h": "47"}, {"retention_gib": "1.5"}, {"cleanup_policy": "compact"}],
)
def test_what_cannot_be_undone_is_confirmed(save, admin, physical, fields):
    before = (admin.topics[physical], dict(admin.configs[physical]))
    answer = save(**fields)
    assert answer.status_code == 422
    assert "Confirm this" in problem_beside(answer, "confirmed")
    assert (admin.topics[physical], admin.configs[physical]) == before
    assert save(**fields, confirmed="on").status_code == 302
    assert (admin.topics[physical], admin.configs[physical]) != before


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("partitions", "2", "The topic has 3; partitions cannot be taken away."),
        ("partitions", "many", "Enter a whole number."),
        ("partitions", "90", "the instance has 60 partitions"),
        ("min_insync_replicas", "4", "The topic has 3 replicas"),
        ("retention_h", "-2", "greater than or equal to -1"),
        ("max_message_kib", "0", "greater than or equal to 1"),
        ("cleanup_policy", "burn", "burn is not one of the available choices"),
    ],
)
def test_bad_input_is_answered_beside_its_field(save, admin, physical, field, value, said):
    before = (admin.topics[physical], dict(admin.configs[physical]))
    answer = save(**{field: value, "confirmed": "on"})
    assert answer.status_code == 422
    assert said.lower() in problem_beside(answer, field).lower()
    assert (admin.topics[physical], admin.configs[physical]) == before


def test_of_several_changes_none_is_made_where_one_is_over_the_limit(save, admin, physical):
    before = dict(admin.configs[physical])
    assert save(partitions="90", retention_h="-1", confirmed="on").status_code == 422
    assert admin.configs[physical] == before


def test_a_setting_that_the_cluster_refuses_is_answered_beside_its_field(save, admin, monkeypatch):
    def refuse(name, changes):
        raise Invalid("Invalid value 1025 for configuration max.message.bytes", code="invalid_config")

    monkeypatch.setattr(admin, "config_set", refuse)
    assert "Invalid value 1025" in problem_beside(save(max_message_kib="1.001"), "max_message_kib")


def test_nothing_changed_is_said(save):
    answer = save()
    assert answer.status_code == 422
    assert "Nothing was changed: the topic is like this already." in text_of(answer)


@pytest.fixture
def meanwhile(save, at_alice, instance):
    """The page is opened, then a colleague changes the topic; the form of the page that was opened."""

    def meanwhile(**theirs):
        shown = shown_by(at_alice.get(f"instances/{instance.id}/topics/orders/settings"))
        assert save(**theirs, confirmed="on").status_code == 302
        return lambda **fields: save(**fields, **shown)

    return meanwhile


def test_a_page_that_was_opened_earlier_takes_nothing_back_and_asks_for_no_confirmation(meanwhile, admin, physical):
    """A colleague keeps records longer and adds partitions; here only the largest batch is changed."""
    late = meanwhile(retention_h="720", cleanup_policy="compact,delete", partitions="6")
    assert late(max_message_kib="2048").status_code == 302
    assert admin.configs[physical]["retention.ms"] == str(720 * 3_600_000)
    assert admin.configs[physical]["cleanup.policy"] == "compact,delete"
    assert admin.configs[physical]["max.message.bytes"] == "2097152"


@pytest.mark.parametrize("policy", ["delete,compact", "compact, delete"])
def test_policies_in_another_order_are_the_same_ones_and_stay(at_alice, instance, save, admin, physical, policy):
    """As a client of Kafka's may write them."""
    admin.configs[physical]["cleanup.policy"] = policy
    page = at_alice.get(f"instances/{instance.id}/topics/orders/settings")
    assert '<option value="compact,delete" selected>' in page.content.decode()
    assert save(max_message_kib="2048", cleanup_policy="compact,delete", **shown_by(page)).status_code == 302
    assert admin.configs[physical]["cleanup.policy"] == policy


def test_what_is_lost_is_told_by_what_is_in_force_and_not_by_what_the_page_had_shown(meanwhile):
    late = meanwhile(retention_h="720")
    assert "Confirm this" in problem_beside(late(retention_h="72"), "confirmed"), "more than 48, less than 720"
    assert late(retention_h="72", confirmed="on").status_code == 302


def test_a_page_that_comes_back_still_knows_what_it_had_shown(meanwhile, save, admin, physical):
    refused = meanwhile(retention_h="720")(max_message_kib="0")
    assert refused.status_code == 422
    assert save(max_message_kib="2048", **shown_by(refused)).status_code == 302
    assert admin.configs[physical]["retention.ms"] == str(720 * 3_600_000)


def test_fewer_partitions_than_a_colleague_has_made_are_refused_only_to_whoever_asks_for_them(meanwhile):
    late = meanwhile(partitions="6")
    assert "The topic has 6" in problem_beside(late(partitions="5", confirmed="on"), "partitions")
    assert "Nothing was changed" in text_of(late())


def test_a_viewer_sees_no_form(at_viewer, instance, physical):
    page = at_viewer.get(f"instances/{instance.id}/topics/orders/settings")
    assert "You may look, but not change anything here." in text_of(page)
    assert b"<form" not in page.content.split(b"<main")[1]
