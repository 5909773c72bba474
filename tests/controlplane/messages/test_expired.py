"""Offsets that have expired in a topic and are in the table of a load: REST over real Delta tables, roles, and what can be wrong.

Tables are written by delta-rs with the columns and manifests of `lake_load`; the reader is the real one, in its own process.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from controlplane.instances.models import Instance
from controlplane.loads import tables
from controlplane.loads.models import Load, LoadRun, RunState
from controlplane.messages import expired as falling
from tests.controlplane.loads.rows import load_row
from tests.controlplane.test_instances_api import problem
from tests.support.delta_tables import commit

from .conftest import in_base64
from .test_messages_api import ok, places

LOAD = "load-000000000001"
NOW = datetime(2026, 11, 2, tzinfo=UTC)
FIRST, END = 30, 50
"""What the topic still has of partition 0; the table has 0 to 39 of it, without offset 7."""


@pytest.fixture
def topic_id(admin, orders):
    """With the two letters that librdkafka and Java write in different ways."""
    admin.topics[orders.physical] = replace(admin.topics[orders.physical], id="a+b/c")
    return "a-b_c"


@pytest.fixture
def expired(admin, orders):
    """Fifty messages, of which the first thirty have expired."""
    for n in range(END):
        orders(0, b"value %d" % n, key=b"key", headers=(("n", b"%d" % n),))
    admin.messages.delete_before(orders.physical, {0: FIRST})
    for n in range(FIRST):
        admin.messages.compact(orders.physical, 0, n)


def record(offset, partition=0, value=b"value %d"):
    value = value % offset if b"%" in value else value
    return partition, offset, 1000 + offset, b"key", value, (("n", b"%d" % offset),)


def table_of(path, topic_id, first=0, end=40, **options):
    records = [record(offset) for offset in range(first, end) if offset != 7]
    commit(str(path), topic_id, records, {0: (first, end)}, **options)


def run_row(load, topic_id, state=RunState.SUCCEEDED):
    row = LoadRun(load=load, organisation=load.organisation, state=state, asked_at=NOW,
                  topic_id=topic_id)  # fmt: skip
    row.save(force_insert=True)


@pytest.fixture
def table(tmp_path, instance, topic_id, expired):
    """The folder; its load has run."""
    path = tmp_path / "lake" / LOAD
    table_of(path, topic_id)
    run_row(load_row(instance, LOAD, folder=f"file:{path}"), topic_id)
    return path


def asked(person, address, offset, **members):
    return person.api.get(address, {"partition": 0, "offset": offset, **members})


def whole(person, address, answer):
    """All pages from an answer on: offset, source and value of each message."""
    shown = []
    while True:
        body = ok(answer).json()
        shown += [(item["offset"], item["source"], item["value"]) for item in body["items"]]
        assert all(item["load"] == (LOAD if item["source"] == "lake" else None) for item in body["items"])
        if body["next"] is None:
            return shown
        answer = person.api.get(address, {"cursor": body["next"], "limit": 13})


def value(offset):
    return in_base64(b"value %d" % offset)


# --- from the table into the topic ------------------------------------------------------------------------------------


def test_pages_go_from_the_table_into_the_topic_with_each_message_once(alice, address, table):
    shown = whole(alice, address, asked(alice, address, 3, limit=13))
    wanted = [n for n in range(3, END) if n != 7]
    assert shown == [(n, "lake" if n < FIRST else "topic", value(n)) for n in wanted]


def test_a_message_of_the_table_is_told_as_one_of_the_topic(alice, address, table):
    first = ok(asked(alice, address, 3, limit=1)).json()
    (item,) = first["items"]
    assert item == {
        "partition": 0, "offset": 3, "timestamp_ms": 1003, "key": in_base64(b"key"), "value": value(3),
        "headers": [["n", in_base64(b"3")]], "key_bytes": 3, "value_bytes": 7, "headers_bytes": 2, "header_count": 1,
        "cut": False, "masked": False, "source": "lake", "load": LOAD,
        "decoded": {"key": None, "value": None},
    }  # fmt: skip
    assert first["looked_at"]["partitions"] == [
        {"partition": 0, "first_offset": FIRST, "end_offset": END, "from_offset": 3, "to_offset": 4,
         "lake": {"load": LOAD, "first_offset": 0, "end_offset": FIRST}}
    ]  # fmt: skip
    assert ok(alice.api.get(f"{address}/0/3")).json() == item


def test_older_pages_lead_to_the_tables_first_offset(alice, address, table):
    body = ok(asked(alice, address, 20, limit=5)).json()
    body = ok(alice.api.get(address, {"cursor": body["older"], "limit": 30})).json()
    assert [item["offset"] for item in body["items"]] == [n for n in range(19, -1, -1) if n != 7]
    assert body["next"] is None
    newest = ok(alice.api.get(address, {"partition": 0, "limit": 200})).json()
    assert newest["next"] is None, "without a word about an offset a look ends with the topic, as it always has"
    body = ok(alice.api.get(address, {"cursor": newest["older"]})).json()
    assert [item["offset"] for item in body["items"]][:3] == [29, 28, 27]


def test_a_filter_holds_in_the_table_as_well(alice, address, table):
    body = ok(asked(alice, address, 0, contains="value 2")).json()
    assert [item["offset"] for item in body["items"]] == [2, *range(20, 30)]
    assert body["looked_at"]["records"] == END - 1


def test_what_is_from_the_table_costs_nothing_and_is_read_by_who_has_used_up_the_bandwidth(
    alice, address, admin, table, orders
):
    admin.messages.wait_s = 9.0
    ok(alice.api.get(address))
    admin.groups.rounds.clear()
    problem(alice.api.get(address), 429, "bandwidth_used_up")
    assert len(ok(asked(alice, address, 3, limit=10)).json()["items"]) == 10
    ok(alice.api.get(f"{address}/0/3"))
    assert not admin.groups.rounds["read"]
    problem(asked(alice, address, 25, limit=10), 429, "bandwidth_used_up")
    problem(asked(alice, address, FIRST), 429, "bandwidth_used_up")
    problem(alice.api.get(f"{address}/0/{FIRST}"), 429, "bandwidth_used_up")


def test_a_page_of_large_messages_is_bounded_as_those_of_the_topic(
    alice, address, instance, topic_id, expired, tmp_path
):
    path = tmp_path / "large"
    records = [record(offset, value=os.urandom(500_000).replace(b"%", b"-")) for offset in range(40)]
    commit(str(path), topic_id, records, {0: (0, 40)})
    run_row(load_row(instance, LOAD, folder=f"file:{path}"), topic_id)
    body = ok(asked(alice, address, 0, limit=200)).json()
    assert body["looked_at"]["bytes"] < 9 * 2**20
    assert 10 < len(body["items"]) < 30
    assert all(item["cut"] for item in body["items"])
    assert ok(alice.api.get(f"{address}/0/1")).json()["value"] == in_base64(records[1][4])


# --- what is in neither -----------------------------------------------------------------------------------------------


def refused_as_ever(person, address, offset, sentence=""):
    body = problem(asked(person, address, offset), 400, "offset_out_of_range")
    assert (body["first_offset"], body["end_offset"]) == (FIRST, END)
    assert body["detail"].startswith(f"partition 0 holds offsets from 30 to 49: {offset} is not among them")
    assert body["detail"].endswith(sentence or "among them"), body["detail"]
    one = problem(person.api.get(f"{address}/0/{offset}"), 404, "message_not_found")
    assert one["detail"].endswith(sentence or "49"), one["detail"]
    return body


def test_a_table_that_begins_later_or_has_none_of_it_changes_nothing(
    alice, address, instance, topic_id, expired, tmp_path
):
    refused_as_ever(alice, address, 3)
    path = tmp_path / "t"
    table_of(path, topic_id, first=10, end=40)
    run_row(load_row(instance, LOAD, folder=f"file:{path}"), topic_id)
    refused_as_ever(alice, address, 3)
    refused_as_ever(alice, address, 60)
    assert places(ok(asked(alice, address, 10, limit=2))) == [(0, 10), (0, 11)]
    problem(alice.api.get(address, {"partition": 1, "offset": 60}), 400, "offset_out_of_range")


def test_where_the_table_does_not_reach_the_topic_the_look_ends_with_it(
    alice, address, instance, topic_id, expired, tmp_path
):
    path = tmp_path / "t"
    table_of(path, topic_id, end=20)
    run_row(load_row(instance, LOAD, folder=f"file:{path}"), topic_id)
    body = ok(asked(alice, address, 15)).json()
    assert ([item["offset"] for item in body["items"]], body["next"]) == ([15, 16, 17, 18, 19], None)
    assert body["looked_at"]["partitions"][0]["lake"]["end_offset"] == 20
    refused_as_ever(alice, address, 25)
    after = ok(alice.api.get(address, {"cursor": body["newer"]})).json()
    assert after["items"][0]["offset"] == FIRST


def test_an_offset_that_was_compacted_away_before_it_was_loaded_is_not_found(alice, address, table):
    problem(alice.api.get(f"{address}/0/7"), 404, "message_not_found")
    assert places(ok(asked(alice, address, 7, limit=1))) == [(0, 8)]


def test_a_table_of_a_topic_that_was_made_again_is_not_looked_at(alice, address, admin, orders, table, topic_id):
    admin.topics[orders.physical] = replace(admin.topics[orders.physical], id="another")
    refused_as_ever(alice, address, 3)
    run_row(Load.objects.unscoped("a test").get(), "another")  # its table was written by the run before
    refused_as_ever(alice, address, 3)


def test_rows_of_an_earlier_topic_in_the_same_table_are_left_out(alice, address, table, topic_id):
    """`--new-topic`: the table has both, each under its id."""
    older = [record(offset, value=b"of the older topic") for offset in range(40)]
    commit(str(table), "older", older, {0: (0, 40)}, sequence=2)
    commit(str(table), topic_id, [], {0: (0, 40)}, sequence=3)
    body = ok(asked(alice, address, 0, limit=20)).json()
    assert [item["value"] for item in body["items"]] == [value(n) for n in range(21) if n != 7]


def test_a_topic_without_loads_and_what_is_in_the_topic_cost_no_question_more(alice, address, table, monkeypatch):
    monkeypatch.setattr(falling.topics, "get", pytest.fail)
    ok(asked(alice, address, FIRST))
    ok(alice.api.get(address))
    Load.objects.unscoped("a test").all().delete()
    refused_as_ever(alice, address, 3)


# --- whose it is ------------------------------------------------------------------------------------------------------


def test_a_viewer_sees_where_messages_of_the_table_are_and_no_content(viewer, address, table):
    answer = ok(asked(viewer, address, 3))
    item = answer.json()["items"][0]
    assert (item["key"], item["value"], item["headers"], item["masked"]) == (None, None, [], True)
    assert (item["value_bytes"], item["header_count"], item["source"]) == (7, 1, "lake")
    one = ok(viewer.api.get(f"{address}/0/3"))
    for told in (answer, one):
        assert value(3).encode() not in told.content
        assert in_base64(b"key").encode() not in told.content
    problem(asked(viewer, address, 3, contains="value"), 403, "forbidden")


def test_a_member_reads(bob, address, table):
    assert ok(bob.api.get(f"{address}/0/3")).json()["value"] == value(3)


def test_another_organisation_sees_nothing_of_it(charlie, instance, address, table):
    made_up = address.replace(instance.id, "ins-aaaaaaaa")
    for path in ("?partition=0&offset=3", "/0/3"):
        theirs, nobodys = charlie.api.get(address + path), charlie.api.get(made_up + path)
        assert (theirs.status_code, nobodys.status_code) == (404, 404)
        assert theirs.content.replace(instance.id.encode(), b"") == nobodys.content.replace(b"ins-aaaaaaaa", b"")


def test_a_load_of_another_instance_or_topic_is_not_asked(
    alice, address, instance, topic_id, expired, tmp_path, monkeypatch
):
    """Even one whose run says this topic's id."""
    path = tmp_path / "t"
    table_of(path, topic_id)
    run_row(load_row(instance, LOAD, folder=f"file:{path}", topic="ordres"), topic_id)
    other = Instance.objects.unscoped("a test").get(pk=instance.pk)
    other.pk, other.name = "ins-zzzzzzzz", "another"
    other.save(force_insert=True)
    run_row(load_row(other, "load-000000000002", folder=f"file:{path}"), topic_id)
    monkeypatch.setattr(tables, "_Process", pytest.fail)
    refused_as_ever(alice, address, 3)


# --- what can be wrong ------------------------------------------------------------------------------------------------


CANNOT = f"the table of {LOAD} may have what has expired, but cannot be read: "


def test_a_table_that_is_gone_or_damaged_is_said_beside_what_was_always_said(alice, address, table):
    for path in table.glob("*.parquet"):
        path.write_bytes(b"garbage")
    body = refused_as_ever(alice, address, 3, CANNOT + "it is damaged")
    assert body["load"] == LOAD
    shutil.rmtree(table)
    refused_as_ever(alice, address, 3, CANNOT + "it is no longer there")
    table.mkdir()
    (table / "_delta_log").mkdir()
    (table / "_delta_log" / "00000000000000000000.json").write_text("{garbage")
    refused_as_ever(alice, address, 3, CANNOT + "it is damaged")


def test_a_page_that_cannot_go_on_in_the_table_is_an_error_and_leaves_nothing_out(alice, address, table):
    body = ok(asked(alice, address, 3, limit=5)).json()
    shutil.rmtree(table)
    for way in ("next", "older"):
        told = problem(alice.api.get(address, {"cursor": body[way]}), 400, "offset_out_of_range")
        assert told["detail"].endswith("it is no longer there")


def test_a_second_load_is_asked_where_the_first_cannot_be_read(alice, address, table, instance, topic_id, tmp_path):
    path = tmp_path / "second"
    table_of(path, topic_id)
    shutil.rmtree(table)
    other = load_row(instance, "load-000000000002", folder=f"file:{path}")
    run_row(other, topic_id)
    assert ok(alice.api.get(f"{address}/0/3")).json()["load"] == other.pk
    LoadRun.objects.unscoped("a test").filter(load=other).delete()
    refused_as_ever(alice, address, 3, CANNOT + "it is no longer there")


def test_without_the_library_all_is_as_it_was(alice, address, table, monkeypatch, tmp_path):
    (tmp_path / "empty" / "deltalake").mkdir(parents=True)
    (tmp_path / "empty" / "deltalake" / "__init__.py").write_text("raise ImportError('no wheel')")
    monkeypatch.setattr(tables, "ENVIRONMENT", tables.ENVIRONMENT | {"PYTHONPATH": str(tmp_path / "empty")})
    refused_as_ever(alice, address, 3, CANNOT + "this installation has no reader of tables")
    assert len(places(ok(asked(alice, address, FIRST)))) == 20


def test_a_folder_that_only_spark_can_reach_is_said(alice, address, instance, topic_id, expired):
    run_row(load_row(instance, LOAD, folder=f"s3a://operators/{LOAD}"), topic_id)
    refused_as_ever(alice, address, 3, CANNOT + "it is in a place that cannot be read from here")


def test_an_organisation_that_reads_much_waits_for_a_turn_and_keeps_nobody_else_out(alice, address, table, monkeypatch):
    monkeypatch.setattr(tables, "OPEN_S", 0.2)
    own, now = alice.organisation.pk, time.monotonic()
    with tables.TURNS.turn(own, now) as first, tables.TURNS.turn(own, now) as second:
        assert (first, second) == (True, True)
        for path in ("?partition=0&offset=3", "/0/3"):
            body = problem(alice.api.get(address + path), 503, "lake_unavailable")
            assert body["retriable"]
            assert body["detail"].endswith("many tables are being read at the moment")
        with tables.TURNS.turn("another", now) as third, tables.TURNS.turn("a third", now) as fourth:
            assert (third, fourth) == (True, True)
            with tables.TURNS.turn("a fourth", now) as fifth:
                assert not fifth
    monkeypatch.setattr(tables, "OPEN_S", 5.0)
    ok(asked(alice, address, 3))
    assert not tables.TURNS._under_way


def test_a_turn_comes_as_soon_as_one_is_free():
    turns, came = tables.Turns(), []

    def wait():
        with turns.turn("o", time.monotonic() + 10) as has_come:
            came.append(has_come)

    with turns.turn("o", 0.0), turns.turn("o", 0.0):
        thread = threading.Thread(target=wait)
        thread.start()
    thread.join(5)
    assert came == [True]


def test_a_reader_that_dies_is_damage_and_leaves_no_process(alice, address, table, monkeypatch):
    monkeypatch.setattr(tables, "MODULE", "no_such_module")
    refused_as_ever(alice, address, 3, CANNOT + "it is damaged")


# --- a bucket of the tenant's -----------------------------------------------------------------------------------------


def test_of_a_load_into_a_bucket_the_folder_of_the_service_is_read(
    alice, address, instance, topic_id, expired, tmp_path
):
    table_of(tmp_path / "orders", topic_id)
    members = {"kind": "bucket", "bucket": "events-1", "path": "lake/orders", "region": "us-east-1", "access_key": "AK"}
    run_row(load_row(instance, LOAD, folder=(tmp_path / "orders").as_uri(), **members), topic_id)
    assert alice.api.get(address, {"partition": 0, "offset": 3, "limit": 1}).json()["items"][0]["offset"] == 3
