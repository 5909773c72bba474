"""A load that begins at once: where a destination leads, the two forms of the call, the time it covers, and its operation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.models import AuditEntry, Operation
from controlplane.core.operations import MOST_RUNNING
from controlplane.loads import claiming, services
from controlplane.loads.destinations import Kind, Place, place_of
from controlplane.loads.models import Load, LoadRun, RunState
from controlplane.loads.ranges import Asked
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_instances_api import problem

FOLDER = {"topic": "orders", "destination": "folder:"}
BUCKET = {
    "topic": "orders", "destination": "s3://events-1/lake/orders", "region": "eu-central-1", "access_key": "AK1",
    "secret_key": "very-secret",
}  # fmt: skip
OF_LOAD = "file:/lake"


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/lake-loads"


@pytest.fixture
def logs(instance, orders, admin):
    """Records of the topic by their times: of partition 0 from offset 100 on."""
    key = instance.id.removeprefix("ins-")
    admin.groups.logs[f"{key}.orders", 0] = (100, [1000, 2000, 3000, 4000])
    admin.groups.logs[f"{key}.orders", 1] = (0, [2500])
    return admin.groups.logs


def loads():
    return Load.objects.unscoped("a test")


def runs():
    return LoadRun.objects.unscoped("a test").order_by("pk")


def begun():
    return Operation.objects.unscoped("a test").filter(kind=services.FIRST_RUN)


# --- where to ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("s3://events-1/lake/orders", Place(Kind.BUCKET, "events-1", "lake/orders")),
        ("s3a://events-1/lake/orders/", Place(Kind.BUCKET, "events-1", "lake/orders")),
        ("folder:", Place(Kind.FOLDER)),
        ("file:/lake", Place(Kind.FOLDER)),
        ("file:/lake/", Place(Kind.FOLDER)),
        ("file:/lake/org-1/ins-1", Place(Kind.FOLDER)),
        ("file:/lake/org-2", None),
        ("file:/lake/org-1/ins-2", None),
        ("file:/lake/org-1/ins-1/load-1", None),
        ("file:/lake/../etc", None),
        ("file:///etc/passwd", None),
        ("file:/", None),
        ("hdfs://name/lake", None),
        ("s3://events-1", None),
        ("s3:///lake", None),
        ("/lake", None),
        ("", None),
    ],
)
def test_a_destination_leads_into_a_bucket_or_a_folder_of_the_load_s_own(said, place):
    assert place_of(said, OF_LOAD, "org-1", "ins-1") == place


@given(st.text())
def test_nothing_else_leads_to_a_folder_of_this_machine(said):
    found = place_of(said, "", "org-1", "ins-1")
    assert found is None or found.kind == Kind.BUCKET or said.rstrip("/") == "folder:"


def test_a_folder_is_the_load_s_own_below_the_root_whatever_was_named(alice, instance, url, orders):
    for said in ("folder:", "file:/lake", f"file:/lake/{alice.organisation.pk}/{instance.id}"):
        made = alice.api.post(url, {**FOLDER, "destination": said}).json()
        assert made["uri"] == f"file:/lake/{alice.organisation.pk}/{instance.id}/{made['id']}"


def test_a_bucket_has_what_the_uri_names_and_its_secret_is_shown_to_nobody(alice, url, orders):
    answer = alice.api.post(url, BUCKET)
    assert answer.status_code == 202, answer.content
    row = loads().get()
    assert (row.bucket, row.path, row.region, row.secret_opened()) == (
        "events-1", "lake/orders", "eu-central-1", "very-secret",
    )  # fmt: skip
    trail = repr(list(AuditEntry.objects.unscoped("a test").values()))
    operation = repr(list(Operation.objects.unscoped("a test").values()))
    assert "very-secret" not in answer.content.decode() + trail + operation


# --- two forms ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({**FOLDER, "kind": "folder"}, ["kind"]),
        ({**BUCKET, "bucket": "events-1", "path": "lake"}, ["bucket", "path"]),
        ({"topic": "orders", "kind": "folder", "format": "delta"}, ["format"]),
        ({"topic": "orders", "kind": "folder", "from": 1, "to": 2}, ["from", "to"]),
        ({"topic": "orders"}, ["kind"]),
        ({**FOLDER, "topic": "a/b", "kind": "folder"}, ["kind"]),
        ({**FOLDER, "format": "csv"}, ["format"]),
        ({**FOLDER, "format": "csv", "kind": "folder"}, ["format", "kind"]),
        ({**FOLDER, "destination": "file:///etc"}, ["destination"]),
        ({**FOLDER, "destination": 5}, ["destination"]),
        ({**FOLDER, "destination": None}, ["destination"]),
        ({**BUCKET, "destination": "s3://My_Bucket/../x"}, ["destination", "destination"]),
        ({"topic": "orders", "destination": "s3://events-1/lake"}, ["access_key", "secret_key"]),
        ({**FOLDER, "access_key": "AK1"}, ["access_key"]),
        ({**FOLDER, "topic": "none-such"}, ["topic"]),
        ({**FOLDER, "from": "yesterday"}, ["from"]),
        ({**FOLDER, "from": True}, ["from"]),
        ({**FOLDER, "from": -1}, ["from"]),
        ({**FOLDER, "to": "9999-12-31"}, ["to"]),
        ({**FOLDER, "from": 2000, "to": 2000}, ["to"]),
        ({**FOLDER, "to": 4000, "every_minutes": 30}, ["every_minutes"]),
    ],
)
def test_what_makes_no_sense_is_refused_by_name_and_nothing_begins(alice, url, logs, body, fields):
    refused = problem(alice.api.post(url, body), 400, "invalid")
    assert sorted(each["field"] for each in refused["errors"]) == fields
    assert not loads().exists()
    assert not begun().exists()


def test_the_form_with_a_kind_is_as_it_was(alice, url, orders):
    answer = alice.api.post(url, {"topic": "orders", "kind": "folder"})
    assert answer.status_code == 201
    assert "operation_id" not in answer.json()
    assert (answer.json()["state"], answer.json()["format"], answer.json()["partitions"]) == ("idle", "delta", [])
    assert not runs().exists()


def test_where_nothing_is_written_to_buckets_a_bucket_is_refused(alice, url, orders, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_buckets="")
    refused = problem(alice.api.post(url, BUCKET), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == ["destination"]
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders="")
    problem(alice.api.post(url, FOLDER), 409, "loads_off")


# --- which records ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("range_", "asked"),
    [
        ({}, Asked()),
        ({"from": None, "to": None}, Asked()),
        ({"from": 2000}, Asked(2000)),
        ({"from": "1970-01-01T01:00:02+01:00"}, Asked(2000)),
        ({"to": 3000}, Asked(offsets={0: (100, 102), 1: (0, 1)})),
        ({"from": 3000, "to": 4000}, Asked(offsets={0: (102, 103)})),
        ({"from": "1970-01-01T00:00:02", "to": "2099-01-01"}, Asked(offsets={0: (101, 104), 1: (0, 1)})),
    ],
)
def test_from_is_the_first_record_as_new_and_to_is_before_the_first_as_new(alice, url, logs, range_, asked):
    answer = alice.api.post(url, {**FOLDER, **range_})
    assert answer.status_code == 202, answer.content
    assert Asked.from_json(runs().get().asked) == asked


def test_a_time_without_a_record_begins_nothing(alice, url, logs):
    refused = problem(alice.api.post(url, {**FOLDER, "from": 4001, "to": 5000}), 400, "invalid")
    assert refused["errors"] == [{"field": "to", "detail": "the topic has no record in this time"}]
    assert not loads().exists()


def test_a_partition_without_a_leader_is_not_left_out_in_silence(alice, url, logs, monkeypatch):
    spans = services.groups.spans
    monkeypatch.setattr(services.groups, "spans", lambda *about: dict(list(spans(*about).items())[:1]))
    assert alice.api.post(url, {**FOLDER, "to": 3000}).status_code == 503
    assert not loads().exists()


# --- its operation ------------------------------------------------------------------------------------------------------------


def test_the_operation_is_over_when_the_run_is(alice, url, orders):
    made = alice.api.post(url, FOLDER).json()
    run = claiming.claim("one", runs().get().asked_at)
    assert run is not None
    claiming.end(run, "one", run.started_at, state=RunState.SUCCEEDED, members={"says": "5 rows", "row_count": 5})
    ended = run_to_the_end(made["operation_id"])
    assert (ended.state, ended.result["rows"]) == ("succeeded", 5)
    assert [step["state"] for step in ended.steps] == ["succeeded", "succeeded"]


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.STOPPED])
def test_a_run_that_does_not_succeed_fails_it_with_what_it_says(alice, url, orders, state):
    made = alice.api.post(url, FOLDER).json()
    runs().update(state=state, says="the bucket refuses the key")
    ended = run_to_the_end(made["operation_id"])
    assert (ended.state, ended.error) == ("failed", f"the run {state}: the bucket refuses the key")


def test_a_load_that_is_deleted_meanwhile_fails_it(alice, url, orders):
    made = alice.api.post(url, FOLDER).json()
    assert alice.api.delete(f"{url}/{made['id']}").status_code == 204
    assert run_to_the_end(made["operation_id"]).error == "the load was deleted"


def test_the_operation_of_a_load_keeps_no_other_from_the_instance(alice, instance, url, orders):
    for _ in range(services.MOST_LOADS):
        assert alice.api.post(url, FOLDER).status_code == 202
    assert begun().count() >= MOST_RUNNING
    assert alice.api.patch(f"/api/v1/instances/{instance.id}", {"name": "other"}).status_code == 202


def test_one_too_many_leaves_no_operation_behind(alice, url, orders):
    for _ in range(services.MOST_LOADS):
        alice.api.post(url, FOLDER)
    problem(alice.api.post(url, FOLDER), 409, "too_many_loads")
    assert begun().count() == services.MOST_LOADS == loads().count()


def test_a_call_that_is_sent_again_by_its_key_begins_one(alice, url, orders):
    first, again = (alice.api.post(url, FOLDER, HTTP_IDEMPOTENCY_KEY="once") for _ in range(2))
    assert (again.status_code, again.json()) == (202, first.json())
    assert loads().count() == 1


# --- who may --------------------------------------------------------------------------------------------------------------------


def test_viewers_and_strangers_begin_nothing(viewer, charlie, url, orders):
    problem(viewer.api.post(url, FOLDER), 403, "forbidden")
    for body in (FOLDER, BUCKET, {**FOLDER, "destination": "file:///etc"}):
        missing = problem(charlie.api.post(url.replace(url.split("/")[4], "ins-00000000"), FOLDER), 404, "not_found")
        refused = problem(charlie.api.post(url, body), 404, "not_found")
        assert refused["title"] == missing["title"]
    assert not loads().exists()


def test_another_organisation_does_not_find_the_operation(alice, charlie, url, orders):
    made = alice.api.post(url, FOLDER).json()
    problem(charlie.api.get(f"/api/v1/operations/{made['operation_id']}"), 404, "not_found")
