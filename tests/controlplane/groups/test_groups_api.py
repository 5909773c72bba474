"""Groups by REST, over coordinators in memory."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import NotFound
from controlplane.core.models import AuditEntry
from controlplane.groups import selectors
from controlplane.groups.serializers import GroupSerializer
from controlplane.kafka import client, groups
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.history.test_lag_api import lag_of
from tests.controlplane.test_instances_api import problem

from .conftest import ALIVE


@pytest.fixture
def as_given(hers, monkeypatch):
    """It is when the records have the ages that `given` says, and stays so however long the machine takes."""
    _, stamps_ms = hers.groups.logs[f"{hers.key}.orders", 0]
    moment = datetime.fromtimestamp(stamps_ms[-1] / 1000 + 10, UTC)
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: moment)


def test_a_list_has_state_protocol_members_and_lag_and_only_ones_own(alice, hers, his):
    hers.groups.found[f"{hers.key}.audit"] = FakeGroup()
    hers.groups.found["__consumer"] = FakeGroup()
    hers.billing.members.append(ALIVE)
    his.groups.found[f"{his.key}.secret"] = FakeGroup()
    page = alice.api.get(hers.url).json()
    assert page == {
        "items": [
            {
                "name": "audit",
                "state": "Empty",
                "protocol": "",
                "members": [],
                "lag_messages": None,
                "lag_bytes": None,
                "lag_seconds": None,
                "lag_seconds_at": None,
                "partitions": [],
                "known": True,
            },
            {
                "name": "billing",
                "state": "Stable",
                "protocol": "range",
                "members": [
                    {
                        "id": "billing-1-uuid",
                        "client_id": "billing-1",
                        "group_instance_id": None,
                        "host": "10.0.0.7",
                        "partitions": [{"topic": "orders", "partitions": [0, 1]}],
                    }
                ],
                "lag_messages": 2,
                "lag_bytes": 200,
                "lag_seconds": None,
                "lag_seconds_at": None,
                "partitions": page["items"][1]["partitions"],
                "known": True,
            },
        ],
        "next": None,
        "missing_brokers": [],
    }
    behind, read = page["items"][1]["partitions"]
    assert behind == {
        "topic": "orders",
        "partition": 0,
        "offset": 102,
        "start_offset": 100,
        "end_offset": 104,
        "lag_messages": 2,
        "lag_bytes": 200,
        "lag_seconds": None,
        "lag_seconds_unknown": selectors.OF_GROUP_ALONE,
        "expired_messages": 0,
        "client_id": "billing-1",
        "consume_rate_per_s": None,
        "produce_rate_per_s": None,
        "drain_seconds": None,
    }
    assert (read["offset"], read["lag_messages"], read["lag_seconds"], read["drain_seconds"]) == (2, 0, 0.0, 0.0)
    first = alice.api.get(hers.url, {"limit": 1}).json()
    second = alice.api.get(hers.url, {"limit": 1, "cursor": first["next"]}).json()
    assert [row["name"] for row in (*first["items"], *second["items"])] == ["audit", "billing"]


@pytest.mark.usefixtures("as_given")
def test_a_group_says_its_lag_in_records_and_seconds(alice, hers):
    shown = alice.api.get(f"{hers.url}/billing").json()
    assert (shown["lag_messages"], shown["state"]) == (2, "Empty")
    assert shown["lag_seconds"] == pytest.approx(30, abs=2)
    behind, current = shown["partitions"]
    assert behind["lag_seconds"] == shown["lag_seconds"]
    assert (behind["offset"], behind["start_offset"], behind["end_offset"], behind["lag_messages"]) == (
        102,
        100,
        104,
        2,
    )
    assert (current["lag_messages"], current["lag_seconds"], current["lag_seconds_unknown"]) == (0, 0, "")
    assert (shown["consume_rate_per_s"], shown["drain_seconds"]) == (None, None)


def test_a_group_says_its_lag_in_bytes_where_all_of_its_leaders_do(alice, hers, admin):
    hers.billing.offsets[f"{hers.key}.orders", 1] = 0
    shown = alice.api.get(f"{hers.url}/billing").json()
    assert [(row["lag_messages"], row["lag_bytes"]) for row in shown["partitions"]] == [(2, 200), (2, 200)]
    assert shown["lag_bytes"] == 400
    admin.backlogs.unknown = {(f"{hers.key}.orders", 1)}
    shown = alice.api.get(f"{hers.url}/billing").json()
    assert [row["lag_bytes"] for row in shown["partitions"]] == [200, None]
    assert shown["lag_bytes"] is None


def test_a_group_that_has_read_all_has_no_bytes_left_and_nobody_is_asked(alice, hers, admin):
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 104}
    shown = alice.api.get(f"{hers.url}/billing").json()
    assert (shown["lag_bytes"], shown["partitions"][0]["lag_bytes"], admin.backlogs.asked) == (0, 0, 0)


def test_bytes_are_of_what_can_still_be_read(alice, hers):
    hers.billing.offsets[f"{hers.key}.orders", 0] = 90
    row = alice.api.get(f"{hers.url}/billing").json()["partitions"][0]
    assert (row["lag_messages"], row["lag_bytes"]) == (4, 400)


@pytest.mark.usefixtures("as_given")
def test_records_that_expired_unread_are_counted_and_no_part_of_the_lag(alice, hers):
    hers.billing.offsets[f"{hers.key}.orders", 0] = 90
    row = alice.api.get(f"{hers.url}/billing").json()["partitions"][0]
    assert (row["lag_messages"], row["expired_messages"]) == (4, 10)
    assert row["lag_seconds"] == pytest.approx(90, abs=2)  # of the oldest that is left


def test_two_looks_make_a_rate_and_a_time_to_drain(alice, hers, clock, instance):
    hers.log(0, 0, [0.0] * 1000)
    at = {"organisation": alice.organisation, "instance_id": instance.id, "name": "billing", "clock": clock}
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 100}
    assert selectors.group_get(**at).pace is None
    clock.advance(10)
    hers.billing.offsets[f"{hers.key}.orders", 0] = 400
    hers.log(0, 0, [0.0] * 1100)
    view = selectors.group_get(**at)
    assert (view.pace.consumed_per_s, view.pace.produced_per_s, view.drain_seconds) == (30, 10, 35)


def test_one_partition_that_stands_still_is_seen_beside_one_that_is_read(alice, hers, clock, instance):
    hers.log(0, 0, [0.0] * 1000)
    hers.log(1, 0, [0.0] * 1000)
    at = {"organisation": alice.organisation, "instance_id": instance.id, "name": "billing", "clock": clock}
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 100, (f"{hers.key}.orders", 1): 100}
    assert [row.pace for row in selectors.group_get(**at).partitions] == [None, None]
    clock.advance(10)
    hers.billing.offsets[f"{hers.key}.orders", 0] = 400
    hers.log(1, 0, [0.0] * 1100)
    read, stuck = selectors.group_get(**at).partitions
    assert (read.pace.consumed_per_s, read.pace.produced_per_s, read.drain_seconds) == (30, 0, 20)
    assert (stuck.pace.consumed_per_s, stuck.pace.produced_per_s, stuck.drain_seconds) == (0, 10, None)
    assert (read.falls_behind, stuck.falls_behind) == (False, True)
    clock.advance(10)
    shown = GroupSerializer(selectors.group_get(**at)).data["partitions"][0]
    assert (shown["consume_rate_per_s"], shown["produce_rate_per_s"], shown["drain_seconds"]) == (15.0, 0.0, 40.0)


def test_a_first_look_knows_from_the_history_when_it_will_have_caught_up(alice, hers):
    hers.log(0, 0, [0.0] * 1000)
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 400}
    now_s = int(time.time())
    lag_of(hers.instance_id, "billing", now_s - 60, 1200, 30)
    shown = alice.api.get(f"{hers.url}/billing").json()
    assert (shown["lag_messages"], shown["consume_rate_per_s"]) == (600, None)
    assert shown["drain_seconds"] == pytest.approx(60, abs=5)  # ten a second nearer, for a minute


def test_nor_does_it_say_so_of_one_that_falls_behind_or_of_a_minute_that_is_not_fresh(alice, hers):
    hers.log(0, 0, [0.0] * 1000)
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 400}
    lag_of(hers.instance_id, "billing", int(time.time()) - 900, 1200, 30)
    assert alice.api.get(f"{hers.url}/billing").json()["drain_seconds"] is None
    lag_of(hers.instance_id, "billing", int(time.time()) - 60, 500, 30)
    assert alice.api.get(f"{hers.url}/billing").json()["drain_seconds"] is None


def test_a_list_has_the_age_of_the_lag_from_the_history(alice, hers):
    lag_of(hers.instance_id, "billing", int(time.time()) - 60, 2, 31)
    assert alice.api.get(hers.url).json()["items"][0]["lag_seconds"] == 31.0
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 104, (f"{hers.key}.orders", 1): 2}
    assert alice.api.get(hers.url).json()["items"][0]["lag_seconds"] == 0.0


def test_a_page_of_groups_of_very_many_partitions_ends_early_and_goes_on(alice, hers, monkeypatch):
    monkeypatch.setattr(selectors, "MOST_ROWS", 3)
    for name in ("a", "b", "c"):
        hers.groups.found[f"{hers.key}.{name}"] = FakeGroup({(f"{hers.key}.orders", 0): 101})
    pages, cursor = [], None
    while True:
        body = alice.api.get(hers.url, {"cursor": cursor} if cursor else {}).json()
        pages.append([row["name"] for row in body["items"]])
        cursor = body["next"]
        if cursor is None:
            break
    assert pages == [["a", "b"], ["billing", "c"]]  # billing has two partitions, the others one


def test_members_count_as_partitions_do(alice, hers, monkeypatch):
    monkeypatch.setattr(selectors, "MOST_ROWS", 3)
    for name in ("a", "b", "c"):
        hers.groups.found[f"{hers.key}.{name}"] = FakeGroup(members=[replace(ALIVE, partitions=())] * 2)
    page = alice.api.get(hers.url).json()
    assert [row["name"] for row in page["items"]] == ["a"]
    assert [row["name"] for row in alice.api.get(hers.url, {"cursor": page["next"]}).json()["items"]] == ["b"]


def test_a_static_member_says_its_name(alice, hers):
    hers.billing.members += [replace(ALIVE, group_instance_id="till-3"), replace(ALIVE, id="billing-2")]
    members = alice.api.get(f"{hers.url}/billing").json()["members"]
    assert [member["group_instance_id"] for member in members] == ["till-3", None]


def test_moving_the_offsets_begins_the_rates_anew(alice, hers, clock, instance):
    at = {"organisation": alice.organisation, "instance_id": instance.id, "name": "billing", "clock": clock}
    selectors.group_get(**at)
    clock.advance(10)
    assert alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "latest"}).status_code == 200
    assert selectors.group_get(**at).pace is None


def test_what_cannot_be_known_is_null_and_says_why(alice, hers, admin):
    hers.groups.slow = True
    shown = alice.api.get(f"{hers.url}/billing").json()
    row = shown["partitions"][0]
    assert (row["lag_messages"], row["lag_seconds"], shown["lag_seconds"]) == (2, None, None)
    assert row["lag_seconds_unknown"] == selectors.NO_ANSWER
    hers.billing.members.append(ALIVE)
    del hers.billing.offsets[f"{hers.key}.orders", 1]
    row = alice.api.get(f"{hers.url}/billing").json()["partitions"][1]
    assert (row["offset"], row["lag_seconds_unknown"]) == (None, selectors.NEVER_COMMITTED)
    assert row["client_id"] == "billing-1"
    del admin.topics[f"{hers.key}.orders"]
    row = alice.api.get(f"{hers.url}/billing").json()["partitions"][0]
    assert (row["end_offset"], row["lag_messages"], row["lag_seconds_unknown"]) == (None, None, selectors.NO_LEADER)


def test_a_page_is_one_round_of_each_question(alice, hers, admin):
    topic = f"{hers.key}.orders"
    for number in range(40):
        hers.groups.found[f"{hers.key}.group-{number}"] = FakeGroup({(topic, 0): 101, (topic, 1): 1})
    hers.groups.rounds.clear()
    assert len(alice.api.get(hers.url).json()["items"]) == 41
    assert hers.groups.rounds == {"listed": 1, "described": 1, "committed": 1, "spans": 1}
    assert admin.backlogs.asked == 1
    hers.groups.rounds.clear()
    alice.api.get(f"{hers.url}/billing")
    assert hers.groups.rounds == {"described": 1, "committed": 1, "spans": 1, "oldest": 1}


# --- moving offsets ---------------------------------------------------------------------------------------------------


def moves(answer):
    assert answer.status_code == 200, answer.content
    return [(row["partition"], row["from"], row["to"]) for row in answer.json()["partitions"]]


@pytest.mark.parametrize(
    ("body", "after", "again", "skipped"),
    [
        ({"strategy": "earliest"}, [(0, 102, 100), (1, 2, 0)], 4, 0),
        ({"strategy": "latest"}, [(0, 102, 104), (1, 2, 2)], 0, 2),
        ({"strategy": "shift", "value": -1}, [(0, 102, 101), (1, 2, 1)], 2, 0),
        ({"strategy": "shift", "value": 50}, [(0, 102, 104), (1, 2, 2)], 0, 2),
        ({"strategy": "offset", "value": 103, "topic": "orders", "partitions": [0]}, [(0, 102, 103)], 0, 1),
        ({"strategy": "earliest", "topic": "orders", "partitions": [1]}, [(1, 2, 0)], 2, 0),
        (
            {"strategy": "earliest", "topic": "orders", "partitions": None, "value": None},
            [(0, 102, 100), (1, 2, 0)],
            4,
            0,
        ),
    ],
)
def test_offsets_are_moved_as_their_preview_said(alice, hers, body, after, again, skipped):
    kept = dict(hers.billing.offsets)
    preview = alice.api.post(f"{hers.url}/billing/offsets", {**body, "dry_run": True})
    assert moves(preview) == after
    assert (preview.json()["read_again"], preview.json()["skipped"]) == (again, skipped)
    assert hers.billing.offsets == kept
    assert alice.api.post(f"{hers.url}/billing/offsets", body).json() == preview.json()
    assert hers.billing.offsets == kept | {(f"{hers.key}.orders", p): to for p, _, to in after}


def test_a_time_is_the_first_record_of_it_or_later(alice, hers):
    _, stamps = hers.groups.logs[f"{hers.key}.orders", 0]
    body = {"topic": "orders", "strategy": "timestamp", "value": stamps[1], "dry_run": True}
    assert moves(alice.api.post(f"{hers.url}/billing/offsets", body)) == [(0, 102, 101), (1, 2, 0)]


def test_an_offset_beyond_the_partition_is_the_nearest_and_says_so(alice, hers):
    body = {"topic": "orders", "strategy": "offset", "value": 5, "dry_run": True}
    rows = alice.api.post(f"{hers.url}/billing/offsets", body).json()["partitions"]
    assert [(row["to"], row["clamped"]) for row in rows] == [(100, True), (2, True)]


def test_while_members_live_nothing_is_moved_and_the_preview_is(alice, hers):
    hers.billing.members.append(ALIVE)
    kept = dict(hers.billing.offsets)
    refusal = problem(alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "latest"}), 409, "group_not_empty")
    assert refusal["detail"].startswith("the group has a member: stop it first")
    assert moves(alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "latest", "dry_run": True}))
    problem(alice.api.delete(f"{hers.url}/billing"), 409, "group_not_empty")
    assert hers.billing.offsets == kept


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "strategy"),
        ({"strategy": "newest"}, "strategy"),
        ({"strategy": "shift"}, "value"),
        ({"strategy": "offset", "value": -1}, "value"),
        ({"strategy": "earliest", "value": 1}, "value"),
        ({"strategy": "earliest", "partitions": [0]}, "partitions"),
        ({"strategy": "earliest", "topic": "orders", "partitions": [2]}, "partitions"),
        ({"strategy": "earliest", "topic": "orders", "partitions": []}, "partitions"),
        ({"strategy": "earliest", "dryrun": True}, "dryrun"),
    ],
)
def test_a_bad_member_is_named(alice, hers, body, field):
    body = problem(alice.api.post(f"{hers.url}/billing/offsets", body), 400, "invalid")
    assert body["errors"][0]["field"].partition(".")[0] == field


def test_a_topic_that_is_gone_does_not_keep_the_others_from_being_moved(alice, hers):
    hers.billing.offsets[f"{hers.key}.gone", 0] = 7
    assert len(moves(alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "earliest"}))) == 2


def test_a_missing_topic_and_a_group_without_offsets_are_said(alice, hers):
    answer = alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "earliest", "topic": "nothing"})
    problem(answer, 404, "topic_not_found")
    hers.groups.found[f"{hers.key}.new"] = FakeGroup()
    problem(alice.api.post(f"{hers.url}/new/offsets", {"strategy": "earliest"}), 400, "invalid")
    answer = alice.api.post(f"{hers.url}/new/offsets", {"strategy": "earliest", "topic": "orders"})
    assert moves(answer) == [(0, None, 100), (1, None, 0)]


# --- making a group, and having it leave a topic ----------------------------------------------------------------------


def test_a_new_group_begins_with_what_comes(alice, hers):
    answer = alice.api.post(hers.url, {"name": "a/new", "topics": ["orders"]})
    assert answer.status_code == 201
    assert (answer.json()["state"], answer.json()["lag_messages"]) == ("Empty", 0)
    assert [(row["partition"], row["offset"]) for row in answer.json()["partitions"]] == [(0, 104), (1, 2)]
    problem(alice.api.post(hers.url, {"name": "a/new", "topics": ["orders"]}), 409, "group_exists")
    problem(alice.api.post(hers.url, {"name": "new", "topics": ["orders", "gone"]}), 404, "topic_not_found")
    assert set(hers.groups.found) == {f"{hers.key}.billing", f"{hers.key}.a/new"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"topics": ["orders"]}, "name"),
        ({"name": "", "topics": ["orders"]}, "name"),
        ({"name": "x" * 1001, "topics": ["orders"]}, "name"),
        ({"name": "a\0b", "topics": ["orders"]}, "name"),
        ({"name": "new"}, "topics"),
        ({"name": "new", "topics": []}, "topics"),
        ({"name": "new", "topics": ["orders"] * 101}, "topics"),
        ({"name": "new", "topics": ["orders"], "topic": "orders"}, "topic"),
    ],
)
def test_a_bad_member_of_a_new_group_is_named(alice, hers, body, field):
    body = problem(alice.api.post(hers.url, body), 400, "invalid")
    assert body["errors"][0]["field"].partition(".")[0] == field


def test_a_group_leaves_one_topic_and_with_its_last_it_is_gone(alice, hers):
    hers.billing.offsets[f"{hers.key}.clicks", 0] = 7
    assert alice.api.delete(f"{hers.url}/billing/topics/orders").status_code == 204
    assert hers.billing.offsets == {(f"{hers.key}.clicks", 0): 7}
    problem(alice.api.delete(f"{hers.url}/billing/topics/orders"), 404, "offset_not_found")
    assert alice.api.delete(f"{hers.url}/billing/topics/clicks").status_code == 204
    problem(alice.api.delete(f"{hers.url}/billing/topics/clicks"), 404, "group_not_found")


def test_while_members_live_no_topic_is_left(alice, hers):
    hers.billing.members.append(ALIVE)
    problem(alice.api.delete(f"{hers.url}/billing/topics/orders"), 409, "group_not_empty")
    assert len(hers.billing.offsets) == 2


# --- deleting, removing, and who may ----------------------------------------------------------------------------------


def test_a_deleted_group_is_gone(alice, hers):
    assert alice.api.delete(f"{hers.url}/billing").status_code == 204
    problem(alice.api.get(f"{hers.url}/billing"), 404, "group_not_found")
    problem(alice.api.delete(f"{hers.url}/billing"), 404, "group_not_found")


def test_a_member_is_removed_by_its_id(alice, hers):
    hers.billing.members.append(ALIVE)
    problem(alice.api.delete(f"{hers.url}/billing/members/nobody"), 404, "member_not_found")
    assert alice.api.delete(f"{hers.url}/billing/members/{ALIVE.id}").status_code == 204
    assert hers.billing.members == []


@pytest.mark.parametrize("late", [False, True])
def test_a_member_is_removed_while_the_group_finds_another_coordinator(alice, hers, monkeypatch, late):
    """Whether or not the first attempt was carried out: NOT_COORDINATOR is no answer for a person."""
    hers.billing.members.append(ALIVE)
    attempts, remove = [], hers.groups.remove

    def changing(name, member_id):
        attempts.append(member_id)
        if len(attempts) > 1 and late:
            raise NotFound("the member has left the group", code="member_not_found")
        if len(attempts) == 1 and not late:
            raise client.ClusterChanging("a broker has gone")
        remove(name, member_id)
        if late:
            raise client.ClusterChanging("a broker has gone")

    monkeypatch.setattr(hers.groups, "remove", changing)
    assert alice.api.delete(f"{hers.url}/billing/members/{ALIVE.id}").status_code == 204
    assert attempts == [ALIVE.id] * 2
    assert hers.billing.members == []


@pytest.mark.parametrize("name", ["a/b", "ü ber", "50%", "..x", "a?b#c", "members", "two\nlines"])
def test_a_name_may_hold_anything(alice, hers, name):
    hers.groups.found[f"{hers.key}.{name}"] = FakeGroup({(f"{hers.key}.orders", 0): 104})
    url = f"{hers.url}/{quote(name, safe='')}"
    assert alice.api.get(url).json()["name"] == name
    assert moves(alice.api.post(f"{url}/offsets", {"strategy": "earliest"})) == [(0, 104, 100)]
    assert alice.api.delete(url).status_code == 204


@pytest.mark.parametrize("name", ["billing%00x", "x" * 1001, "%ED%A0%80"])
def test_a_name_that_no_group_can_have_is_not_found(alice, hers, name):
    assert alice.api.get(f"{hers.url}/{name}").status_code == 404
    assert alice.api.delete(f"{hers.url}/{name}").status_code == 404


def test_the_same_names_at_another_tenant_are_other_groups(alice, charlie, hers, his):
    kept = dict(his.billing.offsets)
    alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "earliest"})
    alice.api.delete(f"{hers.url}/billing")
    assert his.billing.offsets == kept
    assert [row["name"] for row in charlie.api.get(his.url).json()["items"]] == ["billing"]
    assert alice.api.get(hers.url).json()["items"] == []


def test_anothers_group_is_byte_for_byte_like_one_that_is_missing(charlie, hers, his):
    missing = hers.url.replace(hers.instance_id, "ins-00000000")
    hers.billing.members.append(ALIVE)
    for method, path, body in (
        ("get", "", None),
        ("get", "/billing", None),
        ("delete", "/billing", None),
        ("post", "/billing/offsets", {"strategy": "earliest"}),
        ("post", "", {"name": "new", "topics": ["orders"]}),
        ("delete", "/billing/topics/orders", None),
        ("delete", f"/billing/members/{ALIVE.id}", None),
    ):
        call = getattr(charlie.api, method)
        theirs, nothing = call(hers.url + path, body), call(missing + path, body)
        assert theirs.status_code == nothing.status_code == 404
        assert theirs.content.replace(hers.instance_id.encode(), b"ins-00000000") == nothing.content
    his.groups.found.pop(f"{his.key}.billing")  # hers has this name, and his has not any more
    there, not_there = charlie.api.get(f"{his.url}/billing"), charlie.api.get(f"{his.url}/nothing")
    assert there.status_code == not_there.status_code == 404
    assert there.content.replace(b"billing", b"nothing") == not_there.content


def test_a_viewer_looks_and_changes_nothing(viewer, hers):
    assert viewer.api.get(hers.url).status_code == viewer.api.get(f"{hers.url}/billing").status_code == 200
    kept = dict(hers.billing.offsets)
    problem(viewer.api.post(f"{hers.url}/billing/offsets", {"strategy": "latest"}), 403, "forbidden")
    problem(viewer.api.delete(f"{hers.url}/billing"), 403, "forbidden")
    problem(viewer.api.delete(f"{hers.url}/billing/members/x"), 403, "forbidden")
    problem(viewer.api.delete(f"{hers.url}/billing/topics/orders"), 403, "forbidden")
    problem(viewer.api.post(hers.url, {"name": "new", "topics": ["orders"]}), 403, "forbidden")
    assert hers.billing.offsets == kept


def test_changes_are_in_the_audit_trail_with_their_actor(alice, bob, hers):
    hers.billing.members.append(ALIVE)
    bob.api.delete(f"{hers.url}/billing/members/{ALIVE.id}")
    alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "earliest", "dry_run": True})
    alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "earliest"})
    alice.api.delete(f"{hers.url}/billing")
    rows = AuditEntry.objects.for_organisation(alice.organisation).filter(target=f"{hers.instance_id}/groups/billing")
    assert [(row.actor, row.action) for row in rows.order_by("id")] == [
        ("bob@example.com", "group.member.remove"),
        ("alice@example.com", "group.offsets.reset"),
        ("alice@example.com", "group.delete"),
    ]
    reset = rows.get(action="group.offsets.reset").detail
    assert reset["moved"][0] == {"topic": "orders", "partition": 0, "from": 102, "to": 100}


def test_the_longest_name_fits_the_audit_trail(alice, hers):
    name = "x" * groups.MOST_NAME
    hers.groups.found[f"{hers.key}.{name}"] = FakeGroup()
    assert alice.api.delete(f"{hers.url}/{name}").status_code == 204
    row = AuditEntry.objects.for_organisation(alice.organisation).get(action="group.delete")
    assert (len(row.target), row.detail["group"]) == (320, name)


def test_a_repeated_call_with_its_key_moves_once(alice, hers):
    body, key = {"strategy": "shift", "value": -1}, {"HTTP_IDEMPOTENCY_KEY": "shift-once"}
    first = alice.api.post(f"{hers.url}/billing/offsets", body, **key)
    again = alice.api.post(f"{hers.url}/billing/offsets", body, **key)
    assert again.json() == first.json()
    assert hers.billing.offsets[f"{hers.key}.orders", 0] == 101


def test_a_cluster_that_is_away_is_a_retriable_503(alice, hers, admin):
    admin.away = True
    for path in ("", "/billing"):
        assert problem(alice.api.get(hers.url + path), 503, "cluster_unavailable")["retriable"] is True


def test_an_instance_that_does_not_run_has_its_groups_left_alone(alice, hers):
    alice.api.delete(f"/api/v1/instances/{hers.instance_id}")
    problem(alice.api.post(f"{hers.url}/billing/offsets", {"strategy": "earliest"}), 409, "instance_not_running")


@pytest.mark.parametrize("path", ["", "/billing"])
def test_the_first_look_after_a_brokers_death_is_answered(alice, hers, monkeypatch, path):
    """A client that knew the broker learns in its first attempt that it is gone; the next begins with those that are there."""
    asked = []

    def listed_or_read(name):
        real = getattr(hers.groups, name)

        def once_away(*arguments):
            asked.append(name)
            if len(asked) == 1:
                raise client.ClusterChanging("the brokers do not answer in time")
            return real(*arguments)

        return once_away

    for name in ("listed", "read"):
        monkeypatch.setattr(hers.groups, name, listed_or_read(name))
    assert alice.api.get(hers.url + path).status_code == 200
    assert asked[0] == asked[1]


def test_a_cluster_that_stays_away_is_asked_twice_and_not_longer(alice, hers, admin):
    admin.away = True
    assert alice.api.get(hers.url).status_code == 503
    assert hers.groups.rounds["listed"] == 2
