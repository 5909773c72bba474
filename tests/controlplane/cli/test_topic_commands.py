"""What a topic holds, its configurations, its note, and several topics changed at once, by the command line."""

from __future__ import annotations

import pytest

from controlplane.core.errors import Invalid


@pytest.fixture
def events(ok, instance):
    for name in ("clicks", "orders"):
        ok("topic", "create", instance.name, name, "--partitions", 1)
    return instance.name


def test_figures_and_configurations_are_what_rest_answers(ok, alice, events, instance):
    url = f"/api/v1/instances/{instance.id}/topics/orders"
    assert ok("topic", "figures", events, "orders", "-o", "json").json == alice.api.get(f"{url}/figures").json()
    assert ok("topic", "configs", events, "orders", "-o", "json").json == alice.api.get(f"{url}/configs").json()
    assert "The age at which segments are deleted" in ok("topic", "configs", events, "orders").out


def test_a_note_is_written_read_and_taken_away(ok, as_alice, events):
    ok("topic", "note", events, "orders", "--note", "ask billing", "--tag", "prod", "--tag", "billing")
    assert ok("topic", "note", events, "orders", "-o", "json").json == {
        "note": "ask billing",
        "tags": ["billing", "prod"],
    }
    listed = ok("topic", "list", events, "--tag", "prod", "-o", "json").json
    assert [row["name"] for row in listed["items"]] == ["orders"]
    dry = ok("topic", "note", events, "orders", "--no-tags", "--dry-run", "-o", "json").json
    assert dry["changes"] == {"tags": [["billing", "prod"], []]}
    assert ok("topic", "note", events, "orders", "--no-tags", "--note", "", "-o", "json").json["tags"] == []
    assert as_alice("topic", "note", events, "orders", "--tag", "a", "--no-tags").status == 2


def test_several_topics_are_changed_by_one_operation(ok, events, instance, admin):
    dry = ok("topic", "configure", events, "orders", "clicks", "-c", "retention.ms=5", "--dry-run", "-o", "json").json
    assert dry["changes"] == {"orders.retention.ms": [None, "5"], "clicks.retention.ms": [None, "5"]}
    ok("topic", "configure", events, "orders", "clicks", "-c", "retention.ms=5")
    assert list(admin.configs.values()) == [{"retention.ms": "5"}] * 2
    ok("topic", "configure", events, "orders", "--reset", "retention.ms")
    assert admin.configs[f"{instance.id.removeprefix('ins-')}.orders"] == {}


def test_one_that_fails_is_named_and_the_exit_status_says_so(as_alice, events, instance, admin):
    name = f"{instance.id.removeprefix('ins-')}.orders"
    admin.refusals[name] = Invalid("retention.ms must be a whole number", code="invalid_config")
    ran = as_alice("topic", "configure", events, "orders", "clicks", "-c", "retention.ms=5")
    assert ran.status == 1
    assert "orders: retention.ms must be a whole number" in ran.err
    assert "1 of 2 topics were not changed" in ran.err
    assert as_alice("topic", "configure", events, "orders").status == 2
