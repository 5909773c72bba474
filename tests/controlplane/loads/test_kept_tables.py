"""What becomes of the table of a load that is deleted: kept and counted, or removed, now or later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.instances.models import Instance, InstanceState
from controlplane.loads import claiming, kept_tables, services
from controlplane.loads.destinations import folder_uri
from controlplane.loads.metrics import loads_text
from controlplane.loads.models import KeptTable, Load, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.services import MOST_LOADS, run_ask
from tests.controlplane.test_instances_api import problem

from .rows import load_row
from .test_loads_api import FOLDER, trail

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.fixture
def urls(instance):
    base = f"/api/v1/instances/{instance.id}"
    return f"{base}/lake-loads", f"{base}/lake-tables"


@pytest.fixture
def table(instance, tmp_path, settings):
    """The folder of a load that has run once."""
    root = (tmp_path / "lake").as_uri()
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, lake_folders=root)
    load = load_row(instance)
    load.folder = folder_uri(root, load.organisation_id, instance.pk, load.pk)
    load.save()
    has_run(load)
    folder = tmp_path / "lake" / load.organisation_id / instance.pk / load.pk
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "part-0.parquet").write_bytes(b"x" * 1000)
    (folder / "_delta_log" / "0.json").write_bytes(b"y" * 23)
    return folder


def has_run(load):
    run = run_ask(load, asked_by="alice", asked=Asked(), now=NOW)
    run.state = RunState.SUCCEEDED
    run.save()


def kept():
    return KeptTable.objects.unscoped("a test")


def test_it_is_kept_counted_and_removed_later(alice, table, urls):
    loads, tables = urls
    assert alice.api.delete(f"{loads}/{table.name}").status_code == 204
    kept_tables.tend(NOW)
    page = alice.api.get(tables).json()
    assert [(each["id"], each["topic"], each["bytes"]) for each in page["items"]] == [(table.name, "orders", 1023)]
    text = loads_text(NOW)
    assert "sluice_loads_kept_tables 1\n" in text
    assert "sluice_loads_kept_tables_bytes 1023\n" in text
    assert trail()[-1][1]["table"] == "kept"

    assert alice.api.delete(f"{tables}/{table.name}").status_code == 204
    assert alice.api.get(tables).json()["items"] == []
    assert trail()[-1] == ("load.table_remove", {"topic": "orders", "bytes": 1023})
    problem(alice.api.delete(f"{tables}/{table.name}"), 404, "not_found")
    kept_tables.tend(NOW)
    assert not table.exists()
    assert table.parent.exists()


def test_it_is_removed_with_its_load_also_where_a_run_that_was_thought_dead_writes_it_anew(alice, table, urls):
    loads, tables = urls
    assert alice.api.delete(f"{loads}/{table.name}?table=remove").status_code == 204
    assert alice.api.get(tables).json()["items"] == []
    assert trail()[-1][1]["table"] == "removed"
    asked_at = kept().get().removed_at
    for later in (timedelta(0), timedelta(hours=1), kept_tables.WATCHED):
        table.mkdir(exist_ok=True)
        kept_tables.tend(asked_at + later)
        assert not table.exists()
    assert kept().exists()
    kept_tables.tend(asked_at + kept_tables.WATCHED)
    assert not kept().exists()


def test_one_that_has_never_run_has_left_nothing(alice, instance, orders, urls):
    made = alice.api.post(urls[0], FOLDER).json()
    assert alice.api.delete(f"{urls[0]}/{made['id']}").status_code == 204
    assert not kept().exists()
    for other in ("burn", ""):
        problem(alice.api.delete(f"{urls[0]}/{made['id']}?table={other}"), 400, "invalid")


def test_kept_tables_count_as_loads(alice, instance, orders, urls):
    for number in range(MOST_LOADS):
        load = load_row(instance, f"load-{number:012}")
        has_run(load)
        services.load_delete(organisation=alice.organisation, actor="alice", instance_id=instance.pk, load_id=load.pk)
    problem(alice.api.post(urls[0], FOLDER), 409, "too_many_loads")
    services.kept_table_remove(
        organisation=alice.organisation, actor="alice", instance_id=instance.pk, load_id="load-000000000003"
    )
    assert alice.api.post(urls[0], FOLDER).status_code == 201


def test_nothing_is_removed_but_a_folder_of_a_load(alice, instance, tmp_path, urls):
    elsewhere = tmp_path / "lake" / "precious"
    elsewhere.mkdir(parents=True)
    load = load_row(instance, folder=elsewhere.as_uri())
    has_run(load)
    alice.api.delete(f"{urls[0]}/{load.pk}?table=remove")
    kept_tables.tend(NOW)
    assert elsewhere.exists()


def test_where_the_root_is_not_there_now_nothing_is_taken_for_removed(alice, table, urls, tmp_path):
    alice.api.delete(f"{urls[0]}/{table.name}?table=remove")
    (tmp_path / "lake").rename(tmp_path / "away")
    kept_tables.tend(datetime.now(UTC) + timedelta(days=3))
    assert kept().exists()


def test_they_go_with_their_instance(alice, table, urls):
    alice.api.delete(f"{urls[0]}/{table.name}")
    Instance.objects.unscoped("a test").update(state=InstanceState.DELETED)
    claiming.forget_gone()
    assert not kept().exists()
    assert not Load.objects.unscoped("a test").exists()


def test_viewers_look_and_strangers_find_nothing(alice, viewer, charlie, table, urls):
    alice.api.delete(f"{urls[0]}/{table.name}")
    assert len(viewer.api.get(urls[1]).json()["items"]) == 1
    problem(viewer.api.delete(f"{urls[1]}/{table.name}"), 403, "forbidden")
    problem(charlie.api.get(urls[1]), 404, "not_found")
    problem(charlie.api.delete(f"{urls[1]}/{table.name}"), 404, "not_found")
    assert kept().get().removed_at is None
