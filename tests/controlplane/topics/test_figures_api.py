"""What a topic holds, as brokers, coordinators and the meter say it; and what is left out where they do not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.kafka.group_door import Member
from controlplane.metering.models import Progress
from controlplane.metering.selectors import hour_text
from controlplane.topic_insights import groups, written
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.metering.conftest import raised, row
from tests.controlplane.test_instances_api import problem

MINUTE_MS, DAY_MS = 60_000, 86_400_000


@pytest.fixture
def now_ms():
    """Of the test: the module was read long before."""
    return int(datetime.now(UTC).timestamp() * 1000)


@pytest.fixture
def key(instance):
    return instance.id.removeprefix("ins-")


@pytest.fixture
def url(alice, instance):
    path = f"/api/v1/instances/{instance.id}/topics"
    assert alice.api.post(path, {"name": "orders", "partitions": 2, "replication_factor": 3}).status_code == 201
    return f"{path}/orders/figures"


@pytest.fixture
def filled(url, admin, key, now_ms):
    """Three records in partition 0, of which the first is gone already, and one in partition 1."""
    admin.groups.logs[f"{key}.orders", 0] = (1, [now_ms - 5 * MINUTE_MS, now_ms - MINUTE_MS, now_ms - 2 * MINUTE_MS])
    admin.groups.logs[f"{key}.orders", 1] = (0, [now_ms - 10 * MINUTE_MS])
    return url


def figures(alice, url):
    answer = alice.api.get(url)
    assert answer.status_code == 200, answer.content
    return answer.json()


def hints(found):
    return [hint["code"] for hint in found["hints"]]


def moment(ms):
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def test_offsets_records_sizes_and_the_last_write(alice, filled, now_ms):
    found = figures(alice, filled)
    assert (found["records"], found["bytes"], found["stored_bytes"]) == (4, 400, 1200)
    assert found["last_write_at"] == moment(now_ms - MINUTE_MS)
    assert found["partitions"][0] == {
        "partition": 0,
        "leader": 1,
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "first_offset": 1,
        "end_offset": 4,
        "records": 3,
        "bytes": 300,
        "last_write_at": moment(now_ms - MINUTE_MS),
        "last_write_problem": None,
        "written_bytes_per_s": 0.083,
    }
    assert found["skew"] == {
        "fullest_partition": 0,
        "fullest": 1.5,
        "busiest_broker": 1,
        "leaders": 3.0,
        "not_preferred": 0,
        "hottest_partition": 0,
        "hottest": 1.5,
    }
    assert found["unknown"] == ["usage"], "no meter has said anything"
    assert found["flow"] is None


def test_an_empty_topic(alice, url):
    found = figures(alice, url)
    assert (found["records"], found["bytes"], found["last_write_at"], found["groups"]) == (0, 0, None, [])
    assert found["skew"]["fullest"] is None
    assert hints(found) == []
    assert (found["skew"]["hottest"], found["partitions"][0]["written_bytes_per_s"]) == (None, 0.0)


@pytest.mark.parametrize("stamp", [2**63 - 1, 2**62, 253_402_300_800_000, 253_370_764_800_000, -2, -(2**63)])
def test_a_time_that_is_no_moment_is_said_to_be_impossible(alice, filled, admin, key, stamp, now_ms):
    admin.groups.logs[f"{key}.orders", 1] = (0, [stamp])
    found = figures(alice, filled)
    rows = found["partitions"]
    assert (rows[1]["last_write_at"], rows[1]["last_write_problem"]) == (None, "impossible_time")
    assert (rows[0]["last_write_at"], rows[0]["last_write_problem"]) == (moment(now_ms - MINUTE_MS), None)
    assert (found["last_write_at"], found["last_write_problem"]) == (moment(now_ms - MINUTE_MS), "impossible_time")
    admin.groups.logs[f"{key}.orders", 0] = (0, [stamp])
    found = figures(alice, filled)
    assert (found["last_write_at"], found["last_write_problem"]) == (None, "impossible_time")


def test_a_moment_that_is_far_ahead_is_one(alice, filled, admin, key):
    admin.groups.logs[f"{key}.orders", 1] = (0, [253_370_764_799_000])
    assert figures(alice, filled)["last_write_at"] == "9998-12-31T23:59:59Z"


def test_what_was_written_in_the_last_hour_says_which_partition_is_hot(alice, filled, admin, key, now_ms):
    """Partition 1 holds most of what there is, of long ago; now it is partition 0 that is written to."""
    many = 20_000
    admin.groups.logs[f"{key}.orders", 0] = (0, [now_ms - MINUTE_MS] * many)
    admin.groups.logs[f"{key}.orders", 1] = (0, [now_ms - 90 * MINUTE_MS] * (9 * many) + [now_ms])
    found = figures(alice, filled)
    assert [each["written_bytes_per_s"] for each in found["partitions"]] == [555.556, 0.028]
    assert (found["skew"]["fullest_partition"], found["skew"]["hottest_partition"]) == (1, 0)
    (hint,) = [each for each in found["hints"] if each["code"] == "hot_partition"]
    assert hint["detail"].startswith("partition 0 took 99 % of the bytes of the last hour")


def test_of_a_topic_at_rest_what_it_holds_says_which_one_was_hot(alice, filled, admin, key, now_ms):
    admin.groups.logs[f"{key}.orders", 1] = (0, [now_ms - 90 * MINUTE_MS] * 20_000)
    (hint,) = [each for each in figures(alice, filled)["hints"] if each["code"] == "hot_partition"]
    assert hint["detail"].startswith("partition 1 holds 99 % of the topic's bytes")


def test_where_bytes_of_the_hour_are_not_known_of_one_partition_nothing_is_guessed(alice, filled, admin, key):
    admin.backlogs.unknown = {(f"{key}.orders", 1)}
    found = figures(alice, filled)
    assert [each["written_bytes_per_s"] for each in found["partitions"]] == [0.083, None]
    assert (found["skew"]["hottest_partition"], found["skew"]["hottest"]) == (None, None)


@pytest.mark.parametrize(("ahead_ms", "written_bytes_per_s"), [(MINUTE_MS // 2, 0.056), (2 * MINUTE_MS, None)])
def test_where_a_record_is_dated_ahead_what_was_written_in_the_hour_is_not_known(
    alice, filled, admin, key, now_ms, ahead_ms, written_bytes_per_s
):
    """All behind it were in the hour, as far as the broker says."""
    admin.groups.logs[f"{key}.orders", 1] = (0, [now_ms + ahead_ms, now_ms - 90 * MINUTE_MS])
    found = figures(alice, filled)
    assert [each["written_bytes_per_s"] for each in found["partitions"]] == [0.083, written_bytes_per_s]
    assert "written" not in found["unknown"]


def test_of_a_topic_of_very_many_partitions_it_is_not_asked(alice, filled, monkeypatch):
    monkeypatch.setattr(written, "MOST_PARTITIONS", 1)
    found = figures(alice, filled)
    assert "written" in found["unknown"]
    assert found["partitions"][0]["written_bytes_per_s"] is None


def test_of_more_groups_than_are_looked_at_it_is_said_how_many_there_are(alice, filled, admin, key, monkeypatch):
    monkeypatch.setattr(groups, "MOST_GROUPS", 2)
    for name in ("a", "b", "c"):
        admin.groups.found[f"{key}.{name}"] = FakeGroup({(f"{key}.gone", 0): 0})
    admin.groups.found[f"{key}.z"] = FakeGroup({}, [Member("m", "c", "h", (("orders", 1),))])
    found = figures(alice, filled)
    assert [each["group"] for each in found["groups"]] == ["z"], "those with members come first"
    assert (found["more_groups"], "groups" in found["unknown"]) == (2, False)
    del admin.groups.found[f"{key}.z"]
    assert hints(figures(alice, filled)) == [], "one of the others may read it"


def test_groups_that_read_it_with_their_lag_here(alice, filled, admin, key):
    place = (f"{key}.orders", 0)
    admin.groups.found[f"{key}.readers"] = FakeGroup({place: 0, (f"{key}.orders", 1): 1})
    admin.groups.found[f"{key}.new"] = FakeGroup({}, [Member("m", "c", "h", (("orders", 1),))])
    admin.groups.found[f"{key}.elsewhere"] = FakeGroup({(f"{key}.gone", 0): 0})
    admin.groups.found["zzzzzzzz.secret"] = FakeGroup({place: 0})
    found = figures(alice, filled)
    assert found["groups"] == [
        {"group": "readers", "state": "Empty", "members": 0, "lag": 3, "lag_bytes": 300, "lost": 1},
        {"group": "new", "state": "Stable", "members": 1, "lag": None, "lag_bytes": None, "lost": 0},
    ]
    assert hints(found) == ["records_lost"]
    assert "secret" not in str(found)


def test_a_group_whose_next_record_is_about_to_expire(alice, filled, admin, key, now_ms):
    """The service keeps a day: what is older than four fifths of it, and unread, may go before it is read."""
    admin.groups.logs[f"{key}.orders", 1] = (5, [now_ms - DAY_MS * 9 // 10])
    admin.groups.found[f"{key}.slow"] = FakeGroup({(f"{key}.orders", 1): 5})
    admin.groups.found[f"{key}.quick"] = FakeGroup({(f"{key}.orders", 0): 3, (f"{key}.orders", 1): 6})
    found = figures(alice, filled)
    assert hints(found) == ["lag_near_retention"]
    assert "slow" in found["hints"][0]["detail"]


def test_a_topic_that_nobody_reads(alice, filled):
    assert hints(figures(alice, filled)) == ["no_group"]


def test_what_a_broker_did_not_say_is_named_and_hides_nothing(alice, filled, admin):
    admin.sizes.silent = {1}
    found = figures(alice, filled)
    assert (found["missing_brokers"], found["bytes"], found["stored_bytes"]) == ([1], None, None)
    assert (found["records"], found["partitions"][0]["bytes"]) == (4, None)


def test_partitions_without_a_leader_are_not_asked_about(alice, filled, admin, key):
    layout = admin.topics[f"{key}.orders"]
    first, second = layout.partitions
    admin.topics[f"{key}.orders"] = replace(layout, partitions=(first, replace(second, leader=None, isr=())))
    found = figures(alice, filled)
    assert (found["partitions"][1]["end_offset"], found["records"], found["partitions"][0]["records"]) == (
        None,
        None,
        3,
    )
    assert hints(found)[0] == "no_leader"
    assert "no_group" not in hints(found)


class TestFlow:
    """What the meter has counted."""

    @pytest.fixture
    def hour(self):
        """The last full hour; the meter has read everything."""
        now = datetime.now(UTC)
        Progress.objects.create(
            partition=0, topic_id="t", next_offset=1, end_offset=1, looked_at_ms=0,
            complete_to_ms=int((now + timedelta(minutes=30)).timestamp() * 1000),
        )  # fmt: skip
        return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)

    def tell(self, instance, at, produced, consumed=0, topic="orders"):
        raised([row(instance.id, hour_text(at)[:13], produced, consumed=consumed, topic=topic)])

    def test_rates_of_the_last_hour_and_of_a_day(self, alice, filled, instance, hour):
        self.tell(instance, hour - timedelta(hours=2), 36_000)
        self.tell(instance, hour, 36_000 + 7200, consumed=3600)
        self.tell(instance, hour, 9**9, topic="payments")
        found = figures(alice, filled)
        ended_s = (datetime.now(UTC) - hour).total_seconds() - 3600
        assert ended_s - 60 < found["flow"].pop("age_s") <= ended_s
        assert found["flow"] == {
            "hour": hour.isoformat().replace("+00:00", "Z"),
            "hour_produced_bytes_per_s": 2.0,
            "hour_consumed_bytes_per_s": 1.0,
            "day_produced_bytes_per_s": 0.5,
            "day_consumed_bytes_per_s": 0.042,
        }
        assert found["unknown"] == []

    def test_one_that_nobody_used_for_a_week(self, alice, filled, instance, hour):
        self.tell(instance, hour - timedelta(days=8), 500)
        for back in (7 * 24, 5 * 24, 1):
            self.tell(instance, hour - timedelta(hours=back - 1), 500)
        assert "unused" in hints(figures(alice, filled))

    def test_one_that_is_used_now_is_used(self, alice, filled, instance, hour):
        self.tell(instance, hour - timedelta(hours=7 * 24 - 1), 0)
        self.tell(instance, hour + timedelta(hours=1), 500)
        assert "unused" not in hints(figures(alice, filled))

    def test_one_that_is_known_for_some_days_only_may_have_been_used_before(self, alice, filled, instance, hour):
        self.tell(instance, hour - timedelta(days=3), 0)
        assert "unused" not in hints(figures(alice, filled))

    def test_a_meter_that_stands_says_nothing(self, alice, filled, instance, hour, now_ms):
        self.tell(instance, hour, 500)
        Progress.objects.update(complete_to_ms=now_ms - 6 * 3_600_000)
        found = figures(alice, filled)
        assert (found["flow"], found["unknown"]) == (None, ["usage"])


def test_who_may_look(viewer, charlie, alice, filled):
    assert viewer.api.get(filled).status_code == 200
    problem(charlie.api.get(filled), 404, "not_found")
    problem(alice.api.get(filled.replace("orders", "missing")), 404, "topic_not_found")


def test_a_cluster_that_is_away_is_said(alice, filled, admin):
    admin.away = True
    problem(alice.api.get(filled), 503, "cluster_unavailable")
