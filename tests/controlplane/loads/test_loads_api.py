"""Loads by REST: set up, changed, run, stopped, deleted; what is kept secret, and who may."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.core.models import AuditEntry
from controlplane.loads.models import Load, LoadRun, RunState
from controlplane.loads.services import MOST_LOADS, MOST_RUNS_KEPT
from tests.controlplane.test_instances_api import problem

from .rows import load_row

FOLDER = {"topic": "orders", "kind": "folder"}
BUCKET = {
    "topic": "orders", "kind": "bucket", "bucket": "events-1", "path": "lake/orders", "region": "eu-central-1",
    "access_key": "AK1", "secret_key": "very-secret",
}  # fmt: skip


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/lake-loads"


@pytest.fixture
def made(alice, url, orders):
    answer = alice.api.post(url, FOLDER)
    assert answer.status_code == 201, answer.content
    return answer.json()


def loads():
    return Load.objects.unscoped("a test")


def runs():
    return LoadRun.objects.unscoped("a test").order_by("pk")


def trail():
    entries = AuditEntry.objects.unscoped("a test").filter(action__startswith="load.").order_by("pk")
    return [(entry.action, entry.detail) for entry in entries]


# --- set up -------------------------------------------------------------------------------------------------------------


def test_a_load_into_a_folder_has_one_of_its_own(alice, instance, made, url):
    assert made["uri"] == f"file:/lake/{alice.organisation.pk}/{instance.id}/{made['id']}"
    expected = {"topic": "orders", "kind": "folder", "schema": "raw", "every_minutes": None, "enabled": True,
                "next_start_at": None, "failures": 0, "last_run": None, "skip_expired": False}  # fmt: skip
    assert made.items() >= expected.items()
    assert made["reading"].keys() == {"how", "spark", "python"}
    assert "Only the service can read this folder" in made["reading"]["how"]
    assert alice.api.get(f"{url}/{made['id']}").json() == made
    assert alice.api.get(url).json() == {"items": [made], "next": None}
    detail = {"topic": "orders", "to": made["uri"], "schema": "raw", "every_minutes": None}
    assert trail() == [("load.create", detail)]


def test_a_bucket_s_secret_is_sealed_and_shown_to_nobody(alice, url, orders):
    answer = alice.api.post(url, BUCKET)
    shown = answer.json()
    assert (answer.status_code, shown["uri"]) == (201, f"s3://events-1/lake/orders/{shown['id']}")
    assert "very-secret" not in answer.content.decode() + alice.api.get(url).content.decode() + repr(trail())
    row = loads().get()
    assert b"very-secret" not in bytes(row.secret_key)
    assert row.secret_opened() == "very-secret"


def test_with_a_schedule_the_first_run_is_due_at_once(alice, url, orders):
    shown = alice.api.post(url, {**FOLDER, "every_minutes": 15}).json()
    assert shown["next_start_at"] == shown["created_at"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**FOLDER, "topic": "none-such"}, "topic"),
        ({**FOLDER, "topic": "a/b"}, "topic"),
        ({**FOLDER, "kind": "tape"}, "kind"),
        ({**FOLDER, "bucket": "events-1"}, "bucket"),
        ({**FOLDER, "every_minutes": 14}, "every_minutes"),
        ({**FOLDER, "every_minutes": 7 * 24 * 60 + 1}, "every_minutes"),
        ({**FOLDER, "schema": ""}, "schema"),
        ({**BUCKET, "path": "../others"}, "path"),
        ({**BUCKET, "secret_key": ""}, "secret_key"),
        ({name: value for name, value in BUCKET.items() if name != "access_key"}, "access_key"),
        ({**BUCKET, "endpoint": "http://10.0.0.1"}, "endpoint"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(alice, url, orders, body, field):
    refused = problem(alice.api.post(url, body), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == [field]
    assert not loads().exists()


@pytest.mark.parametrize(
    ("members", "fields"),
    [
        ({"bucket": "My_Bucket", "path": "../x", "region": "a b", "secret_key": ""}, ["bucket", "path", "region", "secret_key"]),
        ({"bucket": "b" * 300, "path": "/abs", "region": ""}, ["bucket", "path", "region"]),
        ({"bucket": "My_Bucket", "schema": "a nonsense", "topic": "a/b"}, ["bucket", "schema", "topic"]),
        ({"bucket": 5, "schema": "a nonsense", "every_minutes": 1}, ["bucket", "every_minutes", "schema"]),
        ({"kind": "ftp", "schema": ["raw"], "topic": "a/b"}, ["kind", "schema", "topic"]),
        ({"topic": 5, "none_such": 1, "path": "/abs"}, ["none_such", "path", "topic"]),
    ],
)  # fmt: skip
def test_all_that_is_wrong_is_said_at_once(alice, url, orders, members, fields):
    refused = problem(alice.api.post(url, {**BUCKET, **members}), 400, "invalid")
    assert sorted(each["field"] for each in refused["errors"]) == fields
    assert len({each["detail"] for each in refused["errors"] if each["field"] == "bucket"}) < 2


def test_a_choice_that_is_none_names_those_that_there_are(alice, url, orders):
    refused = problem(alice.api.post(url, {**FOLDER, "kind": "ftp"}), 400, "invalid")
    assert refused["errors"] == [{"field": "kind", "detail": "must be one of folder, bucket"}]


@pytest.mark.parametrize(
    "schema", ["id bigint, name nonsense", "a b c d", '{"type":"udt"}', '{"type":"struct","fields":[{"name":"a","type":"x"}]}']
)  # fmt: skip
def test_a_schema_that_can_never_work_is_refused_with_what_is_allowed(alice, url, orders, schema):
    refused = problem(alice.api.post(url, {**FOLDER, "schema": schema}), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == ["schema"]
    assert "allowed are names with types of BIGINT" in refused["detail"]
    assert not loads().exists()


def test_a_schema_that_can_work_is_taken_as_it_was_written(alice, url, orders):
    schema = "id BIGINT NOT NULL, tags ARRAY<STRUCT<name: STRING, at: TIMESTAMP>> COMMENT 'so'"
    assert alice.api.post(url, {**FOLDER, "schema": schema}).json()["schema"] == schema


def test_two_loads_into_one_path_have_a_folder_each(alice, url, orders):
    uris = {alice.api.post(url, BUCKET).json()["uri"] for _ in range(2)}
    assert len(uris) == 2, "what is there already is not looked at, so two tables in one folder would be none"
    assert all(uri.startswith("s3://events-1/lake/orders/load-") for uri in uris)


def test_an_instance_has_so_many_loads_and_no_more(alice, instance, url, orders):
    for number in range(MOST_LOADS):
        load_row(instance, f"load-{number:012}")
    problem(alice.api.post(url, FOLDER), 409, "too_many_loads")


def test_where_operators_have_set_no_place_nothing_can_be_loaded(alice, url, orders, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders="", lake_buckets="")
    assert "SLUICE_LAKE_FOLDERS" in problem(alice.api.post(url, FOLDER), 409, "loads_off")["detail"]
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders="file:/lake")
    refused = problem(alice.api.post(url, BUCKET), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == ["kind"]


def test_without_spark_nothing_can_be_loaded(alice, url, orders, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, metering_absent="no Java")
    problem(alice.api.post(url, FOLDER), 409, "loads_off")


# --- changed ------------------------------------------------------------------------------------------------------------


def test_a_schedule_is_changed_and_switched_off(alice, made, url):
    one = f"{url}/{made['id']}"
    assert alice.api.patch(one, {"every_minutes": 30}).json()["next_start_at"] is not None
    assert alice.api.patch(one, {"enabled": False}).json()["next_start_at"] is None
    assert alice.api.patch(one, {"every_minutes": 60}).json()["next_start_at"] is None
    shown = alice.api.patch(one, {"enabled": True, "every_minutes": None}).json()
    assert (shown["next_start_at"], shown["every_minutes"], shown["enabled"]) == (None, None, True)
    assert trail()[1] == ("load.update", {"every_minutes": {"from": None, "to": 30}})


def test_a_key_is_changed_with_its_secret(alice, url, orders):
    one = f"{url}/{alice.api.post(url, BUCKET).json()['id']}"
    refused = problem(alice.api.patch(one, {"access_key": "AK2"}), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == ["secret_key"]
    assert alice.api.patch(one, {"access_key": "AK2", "secret_key": "other"}).json()["access_key"] == "AK2"
    assert loads().get().secret_opened() == "other"
    assert "other" not in repr(trail())


def test_a_folder_has_no_key(alice, made, url):
    problem(alice.api.patch(f"{url}/{made['id']}", {"secret_key": "x"}), 400, "invalid")


@pytest.mark.parametrize("name", ["topic", "kind", "bucket", "path", "schema"])
def test_where_it_goes_and_what_it_loads_stay(alice, made, url, name):
    refused = problem(alice.api.patch(f"{url}/{made['id']}", {name: "other", "every_minutes": 30}), 400, "invalid")
    assert refused["errors"] == [{"field": name, "detail": "cannot be changed; set up another load"}]


def test_a_change_of_nothing_is_refused(alice, made, url):
    problem(alice.api.patch(f"{url}/{made['id']}", {}), 400, "invalid")


def test_all_that_is_wrong_with_a_change_is_said_at_once(alice, url, orders):
    one = f"{url}/{alice.api.post(url, BUCKET).json()['id']}"
    refused = problem(alice.api.patch(one, {"region": "a b", "secret_key": "", "bucket": "x"}), 400, "invalid")
    assert sorted(each["field"] for each in refused["errors"]) == ["bucket", "region", "secret_key"]


# --- run ----------------------------------------------------------------------------------------------------------------


def test_a_run_is_asked_for_and_waits(alice, made, url):
    runs_url = f"{url}/{made['id']}/runs"
    answer = alice.api.post(runs_url, {"offsets": [{"partition": 1, "first": 5, "end": 9}], "skip_expired": True})
    run = answer.json()
    assert (answer.status_code, run["state"], run["asked_by"]) == (202, "waiting", "alice@example.com")
    assert run["asked"] == {"offsets": {"1": [5, 9]}, "skip_expired": True}
    assert alice.api.get(runs_url).json() == {"items": [run], "next": None}
    assert alice.api.get(f"{url}/{made['id']}").json()["last_run"] == run
    problem(alice.api.post(runs_url, {}), 409, "load_under_way")


@pytest.mark.parametrize(
    "body",
    [
        {"offsets": [{"partition": 0, "first": 5, "end": 5}]},
        {"offsets": [{"partition": 0, "first": 1, "end": 2}, {"partition": 0, "first": 3, "end": 4}]},
        {"offsets": [{"partition": 0, "first": 1, "end": 2}], "from_time_ms": 5},
        {"offsets": [{"partition": -1, "first": 1, "end": 2}]},
        {"from_time_ms": -1},
        {"from_time_ms": 2**53 - 1},
    ],
)
def test_a_range_that_makes_no_sense_is_refused(alice, made, url, body):
    problem(alice.api.post(f"{url}/{made['id']}/runs", body), 400, "invalid")
    assert not runs().exists()


def test_what_waits_is_stopped_and_what_runs_is_asked_to_stop(alice, made, url):
    one = f"{url}/{made['id']}"
    problem(alice.api.post(f"{one}/stop"), 409, "load_not_running")
    alice.api.post(f"{one}/runs", {})
    assert alice.api.post(f"{one}/stop").status_code == 204
    assert [run.state for run in runs()] == [RunState.STOPPED]
    alice.api.post(f"{one}/runs", {})
    runs().filter(state=RunState.WAITING).update(state=RunState.RUNNING)
    assert alice.api.post(f"{one}/stop").status_code == 204
    assert [(run.state, run.stop_asked) for run in runs()] == [(RunState.STOPPED, False), (RunState.RUNNING, True)]


def test_old_runs_are_forgotten(alice, made, url):
    load = loads().get()
    LoadRun.objects.unscoped("a test").bulk_create(
        LoadRun(
            load=load, organisation=load.organisation, state=RunState.SUCCEEDED, asked_by="", asked_at=load.created_at
        )
        for _ in range(MOST_RUNS_KEPT + 5)
    )  # fmt: skip
    newest = runs().last().pk
    alice.api.post(f"{url}/{made['id']}/runs", {})
    assert runs().count() == MOST_RUNS_KEPT
    assert runs().filter(pk=newest).exists()


def test_a_load_that_runs_is_not_deleted_and_one_that_waits_is(alice, made, url):
    one = f"{url}/{made['id']}"
    alice.api.post(f"{one}/runs", {})
    runs().update(state=RunState.RUNNING)
    problem(alice.api.delete(one), 409, "load_running")
    runs().update(state=RunState.WAITING)
    assert alice.api.delete(one).status_code == 204
    assert (loads().count(), runs().count()) == (0, 0)
    problem(alice.api.get(one), 404, "not_found")
    assert trail()[-1][0] == "load.delete"


# --- who may ------------------------------------------------------------------------------------------------------------


def test_viewers_look_and_change_nothing(viewer, made, url):
    one = f"{url}/{made['id']}"
    assert viewer.api.get(one).status_code == 200
    for answer in (
        viewer.api.post(url, FOLDER), viewer.api.patch(one, {"every_minutes": 15}), viewer.api.delete(one),
        viewer.api.post(f"{one}/runs", {}), viewer.api.post(f"{one}/stop"),
    ):  # fmt: skip
        problem(answer, 403, "forbidden")


def test_another_organisation_finds_nothing(charlie, made, url):
    one = f"{url}/{made['id']}"
    for answer in (
        charlie.api.get(url),
        charlie.api.get(one),
        charlie.api.post(f"{one}/runs", {}),
        charlie.api.delete(one),
    ):
        problem(answer, 404, "not_found")
