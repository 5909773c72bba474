"""Loads into a lake in the console: what is shown, set up, run, changed and deleted; and what is shown to nobody."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controlplane.core.errors import Unavailable
from controlplane.core.sealed import sealed
from controlplane.kafka import topics
from controlplane.loads.models import KeptTable, Load, LoadRun, RunState
from tests.controlplane.loads.rows import LONG_AGO, load_row

from .conftest import problem_beside, text_of

FORM = {"topic": "orders", "kind": "folder", "schema": "raw", "every_minutes": ""}
BUCKET = {
    **FORM, "kind": "bucket", "bucket": "events-1", "path": "lake/orders", "region": "eu-central-1",
    "access_key": "AK1", "secret_key": "very-secret",
}  # fmt: skip
LOAD = "load-000000000001"
HTMX = {"HX-Request": "true"}


@pytest.fixture(autouse=True)
def places(settings):
    settings.ENVIRONMENT = replace(
        settings.ENVIRONMENT, lake_folders="file:/lake", lake_buckets="aws", metering_absent=""
    )


@pytest.fixture(autouse=True)
def orders(instance):
    topics.create(instance.cluster.address, instance.id, "orders", partitions=2, replication_factor=1, config={})


@pytest.fixture
def at(instance):
    return f"instances/{instance.id}/lake-loads"


@pytest.fixture
def new(instance):
    return f"instances/{instance.id}/new-lake-load"


@pytest.fixture
def bucket(instance):
    secret = sealed(Load, "secret_key", b"very-secret", id=LOAD)
    return load_row(
        instance, kind="bucket", folder="", bucket="events-1", path="lake/orders", region="eu-central-1", access_key="AK1",
        secret_key=secret,
    )  # fmt: skip


def run_row(load, state, **members):
    usual = {"asked_by": "", "asked_at": LONG_AGO, "started_at": LONG_AGO, "ended_at": LONG_AGO}
    row = LoadRun(load=load, organisation=load.organisation, state=state, **{**usual, **members})
    row.save(force_insert=True)
    return row


def loads():
    return Load.objects.unscoped("a test")


def runs():
    return LoadRun.objects.unscoped("a test").order_by("pk")


# --- the list -----------------------------------------------------------------------------------------------------------


def test_without_a_load_it_says_what_one_does(at_alice, at):
    page = text_of(at_alice.get(at))
    assert "No load yet" in page
    assert "Set up a load" in page


def test_each_load_stands_with_its_last_run(at_alice, at, instance):
    done = load_row(instance, every_minutes=60, next_start_at=datetime(2026, 5, 3, 12, 30, tzinfo=UTC))
    run_row(done, RunState.FAILED)
    run_row(done, RunState.SUCCEEDED, row_count=12_431)
    load_row(instance, "load-000000000002", topic="payments", every_minutes=30, enabled=False)
    page = text_of(at_alice.get(at))
    assert "orders load-000000000001 every 1 h Succeeded 12 431" in page
    assert "2026-05-03 12:30 UTC" in page
    assert "every 30 min switched off none yet" in page
    assert "Failed" not in page


def test_its_rows_come_again_by_themselves(at_alice, at, instance):
    load_row(instance)
    part = at_alice.get(at, headers=HTMX).content.decode()
    assert "<html" not in part
    assert f'hx-get="{at_alice.address(at)}"' in part


@pytest.mark.parametrize("where", ["", "new"])
def test_where_nothing_can_be_loaded_it_says_who_can_help(at_alice, at, new, settings, where):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders="", lake_buckets="")
    page = text_of(at_alice.get(new if where else at))
    assert "Nothing can be loaded now: The operators of this service have set no place for loads" in page
    assert "<form" not in page
    assert "Set it up" not in page


# --- set up -------------------------------------------------------------------------------------------------------------


def test_a_folder_is_set_up(at_alice, new):
    assert '<option value="orders"' in at_alice.get(new).content.decode()
    page = text_of(at_alice.post(new, {**FORM, "every_minutes": "60"}, follow=True))
    assert "The load of orders was set up. The first run begins at once." in page
    row = loads().get()
    assert (row.kind, row.every_minutes, row.schema, row.skip_expired) == ("folder", 60, "raw", False)


def test_a_bucket_is_set_up_with_a_schema_of_ones_own(at_alice, new):
    form = {**BUCKET, "schema": "own", "own_schema": "id BIGINT", "skip_expired": "on"}
    page = at_alice.post(new, form, follow=True)
    assert "It runs when you ask for it." in text_of(page)
    row = loads().get()
    assert (row.uri, row.schema, row.skip_expired) == (f"s3://events-1/lake/orders/{row.pk}", "id BIGINT", True)
    assert row.secret_opened() == "very-secret"
    assert "very-secret" not in page.content.decode()


def test_what_a_folder_has_no_use_for_is_passed_over(at_alice, new):
    at_alice.post(new, {**BUCKET, "kind": "folder"})
    assert (loads().get().kind, loads().get().access_key) == ("folder", "")


@pytest.mark.parametrize(
    ("form", "field", "said"),
    [
        ({**FORM, "every_minutes": "4"}, "every_minutes", "greater than or equal to 15"),
        ({**FORM, "schema": "own", "own_schema": ""}, "own_schema", "needed for this choice"),
        ({**BUCKET, "bucket": "No"}, "bucket", "name of a bucket"),
        ({**BUCKET, "path": "../others"}, "path", "folder in the bucket"),
        ({**BUCKET, "access_key": ""}, "access_key", "needed for this choice"),
        ({**BUCKET, "secret_key": ""}, "secret_key", "needed for this choice"),
        ({**FORM, "topic": "none-such"}, "topic", "Select a valid choice"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(at_alice, new, form, field, said):
    page = at_alice.post(new, form)
    assert page.status_code == 422
    assert said in problem_beside(page, field)
    assert "very-secret" not in page.content.decode()
    assert not loads().exists()


def test_while_the_cluster_is_away_a_name_is_typed(at_alice, new, monkeypatch):
    def away(*_arguments):
        raise Unavailable("away", code="cluster_unavailable")

    monkeypatch.setattr(topics, "names_listed", away)
    assert '<input type="text" name="topic"' in at_alice.get(new).content.decode()
    assert "no topic none-such" in problem_beside(at_alice.post(new, {**FORM, "topic": "none-such"}), "topic")
    assert "letters" in problem_beside(at_alice.post(new, {**FORM, "topic": "a/b"}), "topic").lower()


def test_without_a_topic_it_says_that_one_is_needed_and_where_it_is_made(at_alice, new, instance, monkeypatch):
    monkeypatch.setattr(topics, "names_listed", lambda *_: {instance.pk: []})
    page = at_alice.get(new)
    assert "the instance needs a topic first" in text_of(page)
    assert at_alice.address(f"instances/{instance.id}/new-topic") in page.content.decode()
    assert 'name="topic"' not in page.content.decode()


def test_a_schema_that_can_never_work_stands_beside_the_field_in_which_it_was_typed(at_alice, new):
    page = at_alice.post(new, {**FORM, "schema": "own", "own_schema": "id bigint, name nonsense"})
    assert "allowed are names with types of BIGINT" in problem_beside(page, "own_schema")


def test_all_that_a_bucket_lacks_is_said_at_once(at_alice, new):
    page = at_alice.post(new, {**BUCKET, "topic": "", "bucket": "", "path": "", "access_key": "", "secret_key": ""})
    assert "required" in problem_beside(page, "topic")
    for field in ("bucket", "path", "access_key", "secret_key"):
        assert "needed for this choice" in problem_beside(page, field)


@pytest.mark.parametrize(("buckets", "offered"), [("", ["folder"]), ("aws", ["folder", "bucket"])])
def test_what_is_not_installed_is_not_offered(at_alice, new, settings, buckets, offered):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders="file:/lake", lake_buckets=buckets)
    page = at_alice.get(new).content.decode()
    assert [kind for kind in ("folder", "bucket") if f'name="kind" value="{kind}"' in page] == offered


# --- one load -----------------------------------------------------------------------------------------------------------


def test_its_page_shows_its_runs_and_no_secret(at_alice, at, bucket):
    asked = {"from_time_ms": 1_790_000_000_000, "skip_expired": True}
    run_row(
        bucket, RunState.SUCCEEDED, says="2 rows", row_count=2, byte_count=2048, commits=1, problems=1, asked=asked,
        gaps=["offsets 0 to 7 of partition 0"], asked_by="alice@example.com",
    )  # fmt: skip
    page = at_alice.get(f"{at}/{LOAD}")
    text = text_of(page)
    assert "s3://events-1/lake/orders" in text
    assert "alice@example.com again from 2026-09-21 14:13:20 UTC; skip expired" in text
    assert "missing: offsets 0 to 7 of partition 0" in text
    assert "1 row does not fit the schema" in text
    assert "2 KiB" in text
    assert "AK1" in text
    assert "very-secret" not in page.content.decode()
    assert bytes(bucket.secret_key).hex() not in page.content.decode()


def test_while_it_runs_its_progress_comes_every_two_seconds(at_alice, at, instance):
    run_row(load_row(instance), RunState.RUNNING, says="commit 1 of 2: reading 5 offsets", ended_at=None)
    part = at_alice.get(f"{at}/{LOAD}", headers=HTMX)
    assert 'hx-trigger="every 2s"' in part.content.decode()
    assert "Commit 1 of 2: reading 5 offsets." in text_of(part)
    assert "Stop" in text_of(part)
    assert "Run now" not in text_of(part)
    assert "Save changes" not in text_of(part), "a form that somebody fills in is not replaced"


@pytest.mark.parametrize(
    ("status", "said", "button"),
    [
        (3, "told to load the new topic", "new_topic"),
        (4, "told to skip what has expired", "skip_expired"),
        (5, "goes into another table", None),
        (6, "Run it again", None),
        (2, "with one that the topic still has", None),
        (8, "Make a bucket of this name, or delete this load and set up another", None),
        (9, "with another schema or with none", None),
        (1, "goes on where the table ends", None),
        (None, "goes on where the table ends", None),
    ],
)
def test_what_a_failed_run_needs_next_stands_beside_it(at_alice, at, instance, status, said, button):
    run_row(load_row(instance), RunState.FAILED, exit_status=status, says="it was so")
    page = at_alice.get(f"{at}/{LOAD}")
    assert said in text_of(page)
    hidden = f'<input type="hidden" name="{button}" value="on">'
    assert (hidden in page.content.decode()) is (button is not None)
    if button is not None:
        at_alice.post(f"{at}/{LOAD}", {"run": "next", button: "on"})
        assert runs().last().asked == {button: True}


def test_rows_of_a_run_whose_copy_failed_are_shown(at_alice, at, bucket):
    run_row(bucket, RunState.FAILED, exit_status=1, says="the bucket refuses the key (AccessDenied)", row_count=5000)
    for page in (text_of(at_alice.get(at)), text_of(at_alice.get(f"{at}/{LOAD}"))):
        assert "5 000 loaded, not all copied by this run" in page


def test_of_a_run_without_rows_none_are_shown_and_of_one_that_was_stopped_those_that_are_known(at_alice, at, instance):
    load = load_row(instance)
    run_row(load, RunState.FAILED, exit_status=1)
    assert "loaded" not in text_of(at_alice.get(at, headers=HTMX))
    run_row(load, RunState.STOPPED, row_count=7)
    assert "7 at least" in text_of(at_alice.get(f"{at}/{LOAD}"))


@pytest.mark.parametrize(
    ("says", "shown"),
    [
        ("it was made again. new_topic goes on with the new one", "“New topic” goes on with the new one"),
        ("or were deleted. skip_expired goes on behind them, and", "“Skip what has expired” goes on behind them"),
        (
            "name what to load with offsets, which takes the place of",
            "with “These offsets again”, which takes the place",
        ),
        ("Kafka does not say what new_topic is: so", "Kafka does not say what new_topic is"),
    ],
)
def test_what_the_program_calls_by_members_of_rest_has_the_names_of_the_page(at_alice, at, instance, says, shown):
    run_row(load_row(instance), RunState.FAILED, exit_status=3, says=says)
    assert shown in text_of(at_alice.get(f"{at}/{LOAD}"))


def test_a_table_in_a_folder_is_shown_without_the_server_s_path(at_alice, at, instance, settings):
    load_row(instance, folder=f"file:/lake/org-1/{instance.id}/{LOAD}")
    for path in (at, f"{at}/{LOAD}"):
        page = at_alice.get(path).content.decode()
        assert f"org-1/{instance.id}/{LOAD}" in page
        assert "file:/" not in page
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders="file:/elsewhere")
    assert "file:/" not in at_alice.get(at).content.decode(), "the root may have been another one"


def test_only_the_last_run_is_given_advice(at_alice, at, instance):
    load = load_row(instance)
    run_row(load, RunState.FAILED, exit_status=4)
    run_row(load, RunState.SUCCEEDED)
    assert "told to skip" not in text_of(at_alice.get(f"{at}/{LOAD}"))


def test_it_is_run_now_and_stopped(at_alice, at, instance):
    load_row(instance)
    page = text_of(at_alice.post(f"{at}/{LOAD}", {"run": "now"}, follow=True))
    assert "The run was asked for" in page
    assert "Waiting" in page
    again = at_alice.post(f"{at}/{LOAD}", {"run": "now"})
    assert again.status_code == 422
    assert "waits or is under way already" in text_of(again)
    assert "stops within seconds" in text_of(at_alice.post(f"{at}/{LOAD}/stop", follow=True))
    assert [run.state for run in runs()] == [RunState.STOPPED]


def test_it_is_run_with_more_than_what_is_new(at_alice, at, instance):
    load_row(instance)
    at_alice.post(f"{at}/{LOAD}", {"run": "more", "offsets": "0:100-200\n3:0-50", "new_topic": "on"})
    assert runs().get().asked == {"offsets": {"0": [100, 200], "3": [0, 50]}, "new_topic": True}
    runs().delete()
    at_alice.post(f"{at}/{LOAD}", {"run": "more", "from_time": "2026-05-02T10:00:00", "skip_expired": "on"})
    assert runs().get().asked == {"from_time_ms": 1_777_716_000_000, "skip_expired": True}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"offsets": "all of it"}, "“all” is no range of offsets"),
        ({"offsets": "0:1-2 0:5-9"}, "Partition 0 is named twice"),
        ({"offsets": "0:9-5"}, "the first offset, and a larger one"),
        ({"offsets": "0:1-2", "from_time": "2026-05-02T10:00:00"}, "a time or offsets, not both"),
        ({"from_time": "yesterday"}, "valid date/time"),
    ],
)
def test_what_makes_no_sense_stands_beside_its_field_in_the_open_part(at_alice, at, instance, typed, said):
    load_row(instance)
    page = at_alice.post(f"{at}/{LOAD}", {"run": "more", **typed})
    assert page.status_code == 422
    assert said in text_of(page)
    assert '<details class="opens card" open>' in page.content.decode()
    assert not runs().exists()


def test_its_schedule_is_changed(at_alice, at, instance):
    load_row(instance)
    assert 'name="enabled"' not in at_alice.get(f"{at}/{LOAD}").content.decode(), "there is no schedule to switch off"
    page = at_alice.post(f"{at}/{LOAD}", {"every_minutes": "30", "skip_expired": "on"}, follow=True)
    assert 'name="enabled"' in page.content.decode()
    assert "The load was changed." in text_of(page)
    assert (loads().get().every_minutes, loads().get().enabled, loads().get().skip_expired) == (30, True, True)
    at_alice.post(f"{at}/{LOAD}", {"every_minutes": ""})
    assert (loads().get().every_minutes, loads().get().enabled) == (None, False)
    assert "greater than or equal" in problem_beside(
        at_alice.post(f"{at}/{LOAD}", {"every_minutes": "1"}), "every_minutes"
    )


def test_its_key_is_changed_with_its_secret_and_stays_without(at_alice, at, bucket):
    form = {"every_minutes": "", "enabled": "on", "region": "eu-central-1", "access_key": "AK1", "secret_key": ""}
    at_alice.post(f"{at}/{LOAD}", form)
    assert loads().get().secret_opened() == "very-secret"
    page = at_alice.post(f"{at}/{LOAD}", {**form, "access_key": "AK2"})
    assert "needs its secret" in problem_beside(page, "secret_key")
    page = at_alice.post(f"{at}/{LOAD}", {**form, "access_key": "AK2", "secret_key": "other-secret"}, follow=True)
    assert (loads().get().access_key, loads().get().secret_opened()) == ("AK2", "other-secret")
    assert "other-secret" not in page.content.decode()


def test_it_is_deleted_unless_it_runs(at_alice, at, instance):
    run = run_row(load_row(instance), RunState.RUNNING, ended_at=None)
    refused = at_alice.post(f"{at}/{LOAD}/removal")
    assert refused.status_code == 409
    assert "stop it first" in text_of(refused)
    runs().filter(pk=run.pk).update(state=RunState.SUCCEEDED)
    page = at_alice.get(f"{at}/{LOAD}")
    assert "messages that have expired are not shown from its table any more" in text_of(page)
    assert "Keep the table in the folders of this service" in text_of(page)
    assert "Its table stays as it is" in text_of(at_alice.post(f"{at}/{LOAD}/removal", follow=True))
    assert not loads().exists()


def test_tables_of_deleted_loads_are_listed_and_removed(at_alice, at_viewer, at, instance):
    run_row(load_row(instance), RunState.SUCCEEDED)
    at_alice.post(f"{at}/{LOAD}/removal", {"table": "keep"})
    assert "not counted yet" in text_of(at_alice.get(at))
    KeptTable.objects.unscoped("a test").update(byte_count=5 * 2**20)
    assert "5 MiB" in text_of(at_alice.get(at))
    assert 'method="post"' not in at_viewer.get(at).content.decode().partition("<main")[2]
    removal = f"{at}/{LOAD}/removal".replace("lake-loads", "lake-tables")
    assert at_viewer.post(removal).status_code == 403
    assert "The table is removed within a minute" in text_of(at_alice.post(removal, follow=True))
    assert "Tables of deleted loads" not in text_of(at_alice.get(at))

    run_row(load_row(instance, "load-000000000002"), RunState.SUCCEEDED)
    page = at_alice.post(f"{at}/load-000000000002/removal", {"table": "remove"}, follow=True)
    assert "Its table is removed within a minute" in text_of(page)
    assert "Tables of deleted loads" not in text_of(page)


def test_how_a_table_is_read_is_said(at_alice, at, instance, bucket, settings):
    page = text_of(at_alice.get(f"{at}/{LOAD}"))
    assert "Whoever has a key that may list and read the bucket" in page
    assert f"s3a://events-1/lake/orders/{LOAD}" in page
    load_row(instance, "load-000000000002")
    page = text_of(at_alice.get(f"{at}/load-000000000002"))
    assert "Only the service can read this folder" in page
    assert "DeltaTable" not in page


# --- who may ------------------------------------------------------------------------------------------------------------


def test_viewers_see_everything_and_change_nothing(at_viewer, at, new, bucket):
    run_row(bucket, RunState.FAILED, exit_status=4, says="no longer in the topic")
    for path in (at, f"{at}/{LOAD}"):
        page = at_viewer.get(path)
        assert "Failed" in text_of(page)
        main = page.content.decode().partition("<main")[2]
        assert 'method="post"' not in main
    assert "told to skip what has expired" in text_of(page)
    assert "You may look, but not change" in text_of(at_viewer.get(new))
    for path in (new, f"{at}/{LOAD}", f"{at}/{LOAD}/stop", f"{at}/{LOAD}/removal"):
        assert at_viewer.post(path, {"run": "now"}).status_code == 403


def test_another_organisations_load_is_not_there(at_charlie, alice, at, instance):
    load_row(instance)
    for organisation in (alice.organisation.id, at_charlie.organisation.id):
        for path in ("", f"/{LOAD}"):
            assert at_charlie.client.get(f"/{organisation}/{at}{path}").status_code == 404


def test_a_load_of_another_instance_is_not_there(at_alice, at):
    assert at_alice.get(f"{at}/load-000000000009").status_code == 404


def test_in_chinese_it_says_the_same(at_alice, at, instance):
    run_row(
        load_row(instance), RunState.RUNNING, ended_at=None,
        says="commit 2 of 5: reading 1,000,000 offsets: 12 s, 3 of 8 tasks",
    )  # fmt: skip
    at_alice.client.cookies["language"] = "zh-hans"
    page = text_of(at_alice.get(f"{at}/{LOAD}")).replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert "读取 1 000 000 个位点" in page
    assert "任务 3/8" in page
