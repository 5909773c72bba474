"""`sluice load`: loads of topics into Delta Lake tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.kafka import topics
from controlplane.loads.models import Load, LoadRun

BUCKET = ("bucket", "--bucket", "events-1", "--path", "lake/orders", "--region", "eu-central-1", "--access-key", "AK1")


@pytest.fixture
def events(as_alice, instance, settings):
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, lake_folders="file:/lake", lake_buckets="aws", metering_absent=""
    )
    topics.create(instance.cluster.address, instance.id, "orders", partitions=2, replication_factor=1, config={})
    return instance.id


def loads():
    return Load.objects.unscoped("a test")


def test_the_life_of_a_load(ok, sluice, events):
    made = ok("load", "create", events, "orders", "folder", "--every", "60", "--skip-expired", "-o", "json").json
    assert (made["kind"], made["every_minutes"], made["skip_expired"]) == ("folder", 60, True)
    assert ok("load", "show", events, made["id"], "-o", "json").json == made
    changed = ok("load", "update", events, made["id"], "--every", "null", "--disabled", "-o", "json").json
    assert (changed["every_minutes"], changed["enabled"]) == (None, False)
    run = ok(
        "load", "run", events, made["id"], "--offsets", "0:100-200", "--offsets", "1:0-5", "--new-topic", "-o", "json"
    ).json
    assert run["asked"] == {"offsets": {"0": [100, 200], "1": [0, 5]}, "new_topic": True}
    assert ok("load", "runs", events, made["id"], "-o", "json").json["items"] == [run]
    assert "waiting" in ok("load", "list", events).out
    assert "stops" in ok("load", "stop", events, made["id"]).err
    assert sluice("load", "stop", events, made["id"]).status == 1
    assert sluice("load", "delete", events, made["id"], stdin="other\n").status == 2
    LoadRun.objects.unscoped("a test").update(state="succeeded")
    ok("load", "run", events, made["id"])
    assert "is deleted" in ok("load", "delete", events, made["id"], "--yes").err
    assert made["id"] in ok("load", "tables", events).out
    assert "is being removed" in ok("load", "remove-table", events, made["id"], "--yes").err
    assert ok("load", "tables", events, "-o", "json").json["items"] == []
    assert sluice("load", "show", events, made["id"]).status == 4


def test_a_load_begins_at_a_destination(ok, sluice, events):
    begun = ("load", "begin", events, "orders", "s3://events-1/lake", "--format", "parquet", "--access-key", "AK1")
    made = ok(*begun, "--from", "2026-05-01", "--no-wait", "-o", "json", stdin="very-secret\n").json
    assert made["operation_id"]
    row = loads().get()
    assert (row.format, row.bucket, row.path, row.secret_opened()) == ("parquet", "events-1", "lake", "very-secret")
    assert LoadRun.objects.unscoped("a test").get().asked == {"from_time_ms": 1777593600000}
    tried = ok("load", "begin", events, "orders", "folder:", "--dry-run", "-o", "json").json
    assert [step["name"] for step in tried["plan"]] == ["wait for a runner", "load"]
    assert loads().count() == 1
    assert sluice("load", "begin", events, "orders", "file:///etc").status != 0


def test_a_buckets_secret_comes_by_standard_input_and_goes_nowhere_else(ok, sluice, events, tmp_path):
    schema = tmp_path / "schema"
    schema.write_text("id BIGINT\n")
    ran = ok("load", "create", events, "orders", *BUCKET, "--schema-file", schema, stdin="very-secret\n")
    assert "very-secret" not in ran.out + ran.err
    row = loads().get()
    assert (row.uri, row.schema, row.secret_opened()) == (
        f"s3://events-1/lake/orders/{row.pk}",
        "id BIGINT",
        "very-secret",
    )
    ok("load", "update", events, row.pk, "--ask-secret", stdin="another\n")
    assert loads().get().secret_opened() == "another"
    ok("load", "update", events, row.pk, "--access-key", "AK2", stdin="third\n")
    assert (loads().get().access_key, loads().get().secret_opened()) == ("AK2", "third")
    assert sluice("load", "create", events, "orders", *BUCKET).status == 2, "no secret was given"


def test_a_time_is_in_utc_where_no_zone_is_said(ok, events):
    load = ok("load", "create", events, "orders", "folder", "-o", "json").json["id"]
    for typed in ("2026-05-02T10:00", "2026-05-02T12:00:00+02:00"):
        LoadRun.objects.unscoped("a test").all().delete()
        run = ok("load", "run", events, load, "--from-time", typed, "--skip-expired", "-o", "json").json
        assert run["asked"] == {"from_time_ms": 1_777_716_000_000, "skip_expired": True}


@pytest.mark.parametrize(
    "typed",
    [
        ("run", "LOAD", "--offsets", "0-5"),
        ("run", "LOAD", "--from-time", "yesterday"),
        ("update", "LOAD"),
        ("create", "orders", "folder", "--schema", "raw", "--schema-file", "x"),
    ],
)
def test_what_cannot_be_read_is_wrong_usage_and_nothing_is_asked_for(ok, sluice, events, typed):
    load = ok("load", "create", events, "orders", "folder", "-o", "json").json["id"]
    name, *rest = (load if each == "LOAD" else each for each in typed)
    assert sluice("load", name, events, *rest).status == 2
    assert not LoadRun.objects.unscoped("a test").exists()
